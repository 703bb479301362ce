//! A line on the terminal that says how far a long run has come.

use cede_units::Instant as SimulatedInstant;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// A run that is over before this shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);
const REFRESH: Duration = Duration::from_millis(100);
const BAR_COLUMNS: usize = 30;

/// The progress of one run, on standard error, and only where that is a terminal.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    drawn: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    /// The progress of a run that begins now.
    pub fn begin() -> Self {
        Self { started: Instant::now(), drawn: None, is_terminal: io::stderr().is_terminal() }
    }

    /// `now` of `end` has been simulated.
    pub fn update(&mut self, now: SimulatedInstant, end: SimulatedInstant) {
        let elapsed = self.started.elapsed();
        let is_fresh = self.drawn.is_some_and(|drawn| drawn.elapsed() < REFRESH);
        if self.is_terminal && elapsed >= PATIENCE && !is_fresh {
            let text = line(elapsed.as_secs_f64(), now.as_secs_f64(), end.as_secs_f64());
            let _ = write!(io::stderr(), "\r\x1b[2K{text}");
            let _ = io::stderr().flush();
            self.drawn = Some(Instant::now());
        }
    }

    /// Clears the line and tells how long the run took, in seconds.
    pub fn end(&mut self) -> f64 {
        if self.drawn.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
            let _ = io::stderr().flush();
        }
        self.started.elapsed().as_secs_f64()
    }
}

fn line(elapsed_s: f64, now_s: f64, end_s: f64) -> String {
    let part = (now_s / end_s.max(1e-9)).clamp(0.0, 1.0);
    let left_s = elapsed_s * (1.0 - part) / part.max(1e-9);
    format!("{}  {now_s:.1} of {end_s:.1} s simulated, about {} left", bar(part), clock(left_s))
}

/// A bar for this part of the whole, with its percentage.
pub fn bar(part: f64) -> String {
    let filled = (part.clamp(0.0, 1.0) * BAR_COLUMNS as f64) as usize;
    format!("{}{} {:3.0} %", "█".repeat(filled), "░".repeat(BAR_COLUMNS - filled), part * 100.0)
}

/// "7 s", "3 min 20 s", "2 h 5 min".
pub fn clock(seconds: f64) -> String {
    let s = seconds.ceil() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_done_and_what_is_left() {
        let text = line(10.0, 30.0, 120.0);
        assert!(text.ends_with(" 25 %  30.0 of 120.0 s simulated, about 30 s left"), "{text}");
        assert!(line(1.0, 0.0, 0.0).contains("  0 %"));
        assert_eq!((clock(200.0).as_str(), clock(7500.0).as_str()), ("3 min 20 s", "2 h 5 min"));
    }
}
