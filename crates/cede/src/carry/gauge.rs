//! The line that says how far a file has come.

use super::numbers;
use crate::progress::{Pace, StatusLine, bar, clock};
use cede_carry::file::{Phase, Progress};
use cede_units::{Duration as Span, Rate};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The rate is that of so long.
const WINDOW: Duration = Duration::from_secs(5);
/// A silence of so long is told in place of round trips, which are of the past then.
const TOLD_SILENCE: Duration = Duration::from_secs(3);
/// Where there is no terminal, a line every so often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The progress of one file: drawn anew on a terminal, single lines elsewhere.
pub struct Gauge {
    looks: VecDeque<(Instant, u64)>,
    status: StatusLine,
}

impl Gauge {
    /// Begins now.
    pub fn new() -> Self {
        let elsewhere = Pace { first: LINE_EVERY, every: LINE_EVERY };
        Self { looks: VecDeque::new(), status: StatusLine::begin(Pace::UNHURRIED, Some(elsewhere)) }
    }

    /// It has come so far.
    pub fn update(&mut self, progress: &Progress) {
        let now = Instant::now();
        self.looks.push_back((now, progress.done));
        while self.looks.len() > 2 && now - self.looks[1].0 >= WINDOW {
            self.looks.pop_front();
        }
        let rate = self.rate();
        self.status.show(|_| line(progress, rate));
    }

    fn rate(&self) -> Rate {
        let (Some((then, before)), Some((now, done))) = (self.looks.front(), self.looks.back()) else {
            return Rate::default();
        };
        let span = Span::from_secs_f64((*now - *then).as_secs_f64());
        Rate::from_bytes_over(done.saturating_sub(*before), span)
    }

    /// Takes the line away and says how long it took.
    pub fn end(&mut self) -> Duration {
        self.status.end()
    }
}

fn line(progress: &Progress, rate: Rate) -> String {
    let done = numbers::amount(progress.done);
    match progress.phase {
        Phase::Comparing => return "comparing what is there already".to_owned(),
        Phase::Settling => return format!("{done} sent; the other end checks and writes them out"),
        Phase::Moving => {}
    }
    let mut text = match progress.total {
        Some(total) => {
            let part = progress.done as f64 / total.max(1) as f64;
            let left = total.saturating_sub(progress.done) as f64 * 8.0 / rate.bits_per_sec().max(1) as f64;
            let eta = if rate.bits_per_sec() == 0 { "?".to_owned() } else { clock(left) };
            format!(
                "{}  {done} of {}, {}, {eta} left",
                bar(part),
                numbers::amount(total),
                numbers::rate(rate)
            )
        }
        None => format!("{done}, {}", numbers::rate(rate)),
    };
    if progress.silent >= TOLD_SILENCE {
        return text + &format!(", nothing heard for {} s", progress.silent.as_secs());
    }
    if let Some(stream) = progress.stream.as_ref().filter(|stream| !stream.srtt.is_zero()) {
        text += &format!(", RTT {}", numbers::span(stream.srtt));
        if let Some(queue) = stream.controller.queueing_delay {
            text += &format!(", queue {}", numbers::span(queue));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_how_fast_and_how_long_yet() {
        let progress = Progress {
            phase: Phase::Moving,
            done: 25_000_000,
            total: Some(100_000_000),
            resumed: 0,
            stream: None,
            retransmissions: 0,
            silent: Duration::ZERO,
        };
        let text = line(&progress, Rate::from_mbit(10));
        assert!(text.ends_with(" 25 %  25.0 MB of 100 MB, 10.0 Mbit/s, 1 min 0 s left"), "{text}");
        let text = line(&Progress { total: None, ..progress.clone() }, Rate::from_mbit(10));
        assert_eq!(text, "25.0 MB, 10.0 Mbit/s");
        let silent = Progress { silent: Duration::from_millis(4900), ..progress };
        let text = line(&silent, Rate::default());
        assert!(text.ends_with("0 bit/s, ? left, nothing heard for 4 s"), "{text}");
    }
}
