//! A line on standard error that says how far something long has come.

use crate::carry::numbers::amount;
use crate::screen;
use cede_units::Instant as SimulatedInstant;
use std::io::{self, Write};
use std::time::{Duration, Instant};

const BAR_COLUMNS: usize = 30;
/// A shorter bar says nothing.
const LEAST_BAR_COLUMNS: usize = 4;
const FILLED: char = '█';
const EMPTY: char = '░';

/// When a line is shown.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Nothing is shown of what is over before this.
    pub first: Duration,
    /// The least time between two lines.
    pub every: Duration,
}

impl Pace {
    /// Whatever there is, at once.
    pub const UNHURRIED: Self = Self { first: Duration::ZERO, every: Duration::ZERO };

    /// From the second second on, so many times a second.
    pub const fn patient(every: Duration) -> Self {
        Self { first: Duration::from_secs(2), every }
    }
}

/// A line that is drawn anew on a terminal; elsewhere single lines, or none.
#[derive(Debug)]
pub struct StatusLine {
    is_terminal: bool,
    pace: Option<Pace>,
    began: Instant,
    drawn: Option<Instant>,
}

impl StatusLine {
    /// A line of what begins now, at the pace of a terminal or, where there is none, at the other.
    pub fn begin(terminal: Pace, elsewhere: Option<Pace>) -> Self {
        let is_terminal = screen::draws_over();
        let pace = if is_terminal { Some(terminal) } else { elsewhere };
        Self { is_terminal, pace, began: Instant::now(), drawn: None }
    }

    /// Shows a text, given the time since the beginning in seconds, if it is time for one.
    pub fn show(&mut self, text: impl FnOnce(f64) -> String) {
        let Some(pace) = self.pace else { return };
        let elapsed = self.began.elapsed();
        if elapsed < pace.first || self.drawn.is_some_and(|drawn| drawn.elapsed() < pace.every) {
            return;
        }
        let text = text(elapsed.as_secs_f64());
        let text = screen::tame(&text, false);
        let _ = if self.is_terminal {
            // What is longer than a line could not be drawn over.
            let text = fitted(&text, screen::columns_of_terminal().saturating_sub(1));
            write!(io::stderr(), "\r\x1b[2K{text}").and_then(|()| io::stderr().flush())
        } else {
            writeln!(io::stderr(), "{text}")
        };
        self.drawn = Some(Instant::now());
    }

    /// How long a line may be.
    pub fn columns(&self) -> usize {
        if self.is_terminal { screen::columns_of_terminal() } else { usize::MAX }
    }

    /// Takes the line away for a while, so that something else can be said.
    pub fn clear(&mut self) {
        if self.is_terminal && self.drawn.is_some() {
            self.drawn = None;
            let _ = write!(io::stderr(), "\r\x1b[2K").and_then(|()| io::stderr().flush());
        }
    }

    /// Takes the line away and tells how long it took.
    pub fn end(&mut self) -> Duration {
        self.clear();
        self.began.elapsed()
    }
}

/// The progress of one run, where there is a terminal.
#[derive(Debug)]
pub struct Progress(StatusLine);

impl Progress {
    /// The progress of a run that begins now.
    pub fn begin() -> Self {
        Self(StatusLine::begin(Pace::patient(Duration::from_millis(100)), None))
    }

    /// `now` of `end` has been simulated.
    pub fn update(&mut self, now: SimulatedInstant, end: SimulatedInstant) {
        self.0.show(|elapsed_s| line(elapsed_s, now.as_secs_f64(), end.as_secs_f64()));
    }

    /// Clears the line and tells how long the run took, in seconds.
    pub fn end(&mut self) -> f64 {
        self.0.end().as_secs_f64()
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
    format!("{} {:3.0} %", cells(filled, BAR_COLUMNS), part * 100.0)
}

/// How far work on so many octets is that has taken so long, and what is being done to them.
pub fn work(done: u64, total: u64, elapsed_s: f64, what: &str) -> String {
    let part = done as f64 / total as f64;
    let left = clock(elapsed_s * (1.0 - part) / part.max(1e-9));
    format!("{}  {} of {} {what}, about {left} left", bar(part), amount(done), amount(total))
}

fn cells(filled: usize, columns: usize) -> String {
    (0..columns).map(|at| if at < filled { FILLED } else { EMPTY }).collect()
}

/// A line in so many columns: a bar at its beginning makes room for the words, which say more, and what is too long for all that is cut.
fn fitted(line: &str, columns: usize) -> String {
    let is_cell = |c: &char| matches!(*c, FILLED | EMPTY);
    let bar: Vec<char> = line.chars().take_while(is_cell).collect();
    let over = line.chars().count().saturating_sub(columns);
    if over == 0 || bar.is_empty() {
        return line.chars().take(columns).collect();
    }
    let words = line.chars().skip(bar.len());
    let left = bar.len().saturating_sub(over);
    if left < LEAST_BAR_COLUMNS {
        return words.skip_while(|c| c.is_whitespace()).take(columns).collect();
    }
    let filled = bar.iter().filter(|c| **c == FILLED).count() * left / bar.len();
    cells(filled, left).chars().chain(words).collect()
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
    fn a_bar_makes_room_for_words() {
        let line = format!("{}  3 of 6 pieces", bar(0.5));
        assert_eq!(fitted(&line, 80), line);
        assert_eq!(fitted(&line, 31), "████░░░░  50 %  3 of 6 pieces".replace("████░░░░", "█████░░░░░"));
        assert_eq!(fitted(&line, 25), "██░░  50 %  3 of 6 pieces");
        assert_eq!(fitted(&line, 24), "50 %  3 of 6 pieces");
        assert_eq!((fitted(&line, 6).as_str(), fitted(&line, 0).as_str()), ("50 %  ", ""));
        assert_eq!((fitted("no bar at all", 6).as_str(), fitted("", 6).as_str()), ("no bar", ""));
    }

    #[test]
    fn the_line_says_what_is_done_and_what_is_left() {
        let text = line(10.0, 30.0, 120.0);
        assert!(text.ends_with(" 25 %  30.0 of 120.0 s simulated, about 30 s left"), "{text}");
        assert!(line(1.0, 0.0, 0.0).contains("  0 %"));
        assert_eq!((clock(200.0).as_str(), clock(7500.0).as_str()), ("3 min 20 s", "2 h 5 min"));
    }
}
