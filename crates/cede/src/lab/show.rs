//! What the experiments show alike: a table of measured beside predicted, charts, and a line of progress.

use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Pace, StatusLine, bar};
use crate::screen::Screen;
use cede_lab::run::RunError;
use cede_plot::{Axis, Cell, Panel, Series, Table, terminal};
use cede_testbed::{NetnsError, shortest_buffer};
use cede_units::{Duration, Rate};

const CHART_LINES: usize = 12;

/// One line of the table: what, the unit, how many decimals, measured, predicted.
pub struct Line(pub String, pub usize, pub Option<f64>, pub Option<f64>);

/// Measured beside predicted.
pub fn table(screen: &Screen, lines: &[Line]) -> String {
    let cell = |value: Option<f64>, decimals| {
        value.map_or_else(|| "–".into(), |value| Cell::number(value, decimals))
    };
    let mut table = Table::new(["", "measured", "predicted"]);
    for Line(what, decimals, measured, predicted) in lines {
        table.push([what.as_str().into(), cell(*measured, *decimals), cell(*predicted, *decimals)]);
    }
    terminal::table(&table, screen.columns, screen.colour)
}

/// A curve: its name and its points.
pub type Curve<'a> = (&'a str, Vec<(f64, f64)>);

/// Curves over time.
pub fn chart(screen: &Screen, title: &str, what: &str, unit: &str, curves: Vec<Curve<'_>>) -> String {
    let panel = Panel::new(title).x(Axis::new("time").unit("s")).y(Axis::new(what).unit(unit).from(0.0));
    let panel =
        curves.into_iter().fold(panel, |panel, (name, points)| panel.series(Series::line(name, points)));
    terminal::chart(&panel, screen.columns, CHART_LINES, screen.colour) + "\n"
}

/// How far a measurement has come, where there is a terminal.
pub struct Progress(StatusLine);

impl Progress {
    pub fn begin() -> Self {
        Self(StatusLine::begin(Pace::UNHURRIED, None))
    }

    /// Draws it; false where somebody has asked for the end.
    pub fn update(&mut self, part: f64, words: &str) -> bool {
        self.0.show(|_| format!("{}  {words}", bar(part)));
        !interrupt::is_asked()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Refuses a bottleneck whose buffer is too short for a packet.
pub fn holds_a_packet(rate: Rate, buffer: Duration) -> Result<(), Failure> {
    let shortest = shortest_buffer(rate);
    if buffer >= shortest {
        return Ok(());
    }
    let text =
        format!("at {rate} a buffer of {buffer} holds no packet; {shortest} is the shortest that does");
    Err(Failure::Usage(text))
}

/// A measurement between namespaces that failed.
pub fn unmeasured(error: NetnsError) -> Failure {
    match error {
        NetnsError::Interrupted => interrupted(),
        NetnsError::Impossible(why) => {
            let text = "SKIPPED, network namespaces cannot be used here, which takes root";
            Failure::NotPermitted(format!("{text}: {why}"))
        }
        error => Failure::Failed(error.to_string()),
    }
}

/// A prediction that failed.
pub fn unpredicted(error: RunError) -> Failure {
    match error {
        RunError::Interrupted => interrupted(),
        error => Failure::Failed(error.to_string()),
    }
}

pub fn interrupted() -> Failure {
    Failure::Interrupted("the experiment was not finished".to_string())
}
