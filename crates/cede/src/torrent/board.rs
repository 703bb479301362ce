//! The line that says how all torrents of a process stand.

use super::gauge::{Standing, line, peers};
use crate::carry::numbers;
use crate::progress::{Pace, StatusLine, bar, clock};
use cede_units::Rate;
use std::borrow::Cow;
use std::time::Duration;

/// Where there is no terminal, a line every so often.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// How often a line is drawn that several torrents change.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// What is known of a torrent.
#[derive(Clone, Debug)]
enum Row {
    /// It is looked for, or waits for its turn.
    Waiting,
    /// This part of what is there has been checked.
    Checking(f64),
    Running(Standing),
    /// How it stood in the end; `None` where it did not begin.
    Over(Option<Standing>),
    /// Nothing is known of it any more.
    Gone,
}

/// The line.
pub struct Board {
    status: StatusLine,
    rows: Vec<Row>,
}

impl Board {
    /// For so many torrents.
    pub fn new(count: usize) -> Self {
        let every = if count > 1 { DRAW_EVERY } else { Duration::ZERO };
        let elsewhere = Pace { first: LINE_EVERY, every: LINE_EVERY };
        let status = StatusLine::begin(Pace { first: Duration::ZERO, every }, Some(elsewhere));
        Self { status, rows: vec![Row::Waiting; count] }
    }

    /// For torrents that come and go. Where there is no terminal nothing is shown, however long that is.
    pub fn open() -> Self {
        Self {
            status: StatusLine::begin(Pace { first: Duration::ZERO, every: DRAW_EVERY }, None),
            rows: Vec::new(),
        }
    }

    /// For one more: its number.
    pub fn add(&mut self) -> usize {
        self.rows.push(Row::Waiting);
        self.rows.len() - 1
    }

    /// For one less.
    pub fn remove(&mut self, torrent: usize) {
        self.set(torrent, Row::Gone);
    }

    /// How much of a torrent's content has been checked, while it is.
    pub fn checked(&self, torrent: usize) -> Option<f64> {
        match self.rows.get(torrent)? {
            Row::Checking(part) => Some(*part),
            _ => None,
        }
    }

    /// This part of a torrent's content has been checked.
    pub fn checking(&mut self, torrent: usize, part: f64) {
        self.set(torrent, Row::Checking(part));
    }

    /// A torrent runs, and stands so.
    pub fn running(&mut self, torrent: usize, standing: Standing) {
        self.set(torrent, Row::Running(standing));
    }

    /// A torrent has ended.
    pub fn over(&mut self, torrent: usize) {
        let last = match self.rows.get(torrent) {
            Some(Row::Running(standing)) => Some(standing.at_rest()),
            _ => None,
        };
        self.set(torrent, Row::Over(last));
        if self.rows.iter().all(|row| matches!(row, Row::Over(_))) {
            self.clear();
        }
    }

    /// Takes the line away, for something else to be said.
    pub fn clear(&mut self) {
        self.status.clear();
    }

    fn set(&mut self, torrent: usize, row: Row) {
        if let Some(place) = self.rows.get_mut(torrent) {
            *place = row;
        }
        let is_gone = |row: &Row| matches!(row, Row::Gone);
        let shown: Cow<'_, [Row]> = match self.rows.iter().any(is_gone) {
            true => self.rows.iter().filter(|row| !is_gone(row)).cloned().collect(),
            false => self.rows[..].into(),
        };
        if let Some(text) = text(&shown, self.status.columns()) {
            self.status.show(|_| text);
        }
    }
}

/// What is to be said in so many columns, if anything.
fn text(rows: &[Row], columns: usize) -> Option<String> {
    match rows {
        [Row::Running(standing)] => Some(line(standing, columns)),
        [Row::Checking(part)] => Some(format!("{}  checking what is there", bar(*part))),
        [_] | [] => None,
        _ if rows.iter().all(|row| matches!(row, Row::Over(_))) => None,
        _ => Some(text_of_several(rows)),
    }
}

fn text_of_several(rows: &[Row]) -> String {
    let known = || {
        rows.iter().filter_map(|row| match row {
            Row::Running(standing) | Row::Over(Some(standing)) => Some(standing),
            _ => None,
        })
    };
    let count = rows.len();
    let is_open = |row: &&Row| !matches!(row, Row::Over(_));
    let rate = |of: fn(&Standing) -> &[Rate]| {
        Rate::from_bits_per_sec(known().flat_map(of).map(|rate| rate.bits_per_sec()).sum())
    };
    let peers = peers(known().map(|it| it.peers).sum(), known().map(|it| it.banned).sum());
    let up = numbers::rate(rate(|it| &it.rates.up));
    let is_given = |row: &Row| matches!(row, Row::Running(standing) if standing.is_complete);
    if rows.iter().filter(is_open).all(is_given) {
        let sent = numbers::amount(known().map(|it| it.sent).sum());
        let open = numbers::count(rows.iter().filter(is_open).count(), "torrent");
        return format!("seeding {open} to {peers}: {sent} sent, {up}");
    }
    let done = known().filter(|it| it.is_complete).count();
    let (here, wanted): (u64, u64) =
        known().fold((0, 0), |(here, wanted), it| (here + it.here.bytes, wanted + it.wanted.bytes));
    let down = rate(|it| &it.rates.down);
    let left = match down.bits_per_sec() {
        0 => "?".to_owned(),
        down => clock(wanted.saturating_sub(here) as f64 * 8.0 / down as f64),
    };
    let checking = rows.iter().filter(|row| matches!(row, Row::Checking(_))).count();
    let checking = if checking > 0 { format!(" ({checking} checked)") } else { String::new() };
    let bar = bar(here as f64 / wanted.max(1) as f64);
    let down = numbers::rate(down);
    format!("{bar}  {done} of {count} torrents{checking}, {left} left, {peers}, down {down}, up {up}")
}

#[cfg(test)]
mod tests {
    use super::super::gauge::Rates;
    use super::*;
    use cede_torrent::session::Part;

    fn standing(bytes: u64, down: u64) -> Standing {
        let rates = Rates { down: [Rate::from_bits_per_sec(down); 3], ..Rates::default() };
        Standing {
            wanted: Part { pieces: 2, bytes: 1_000 },
            here: Part { pieces: 1, bytes },
            is_complete: bytes == 1_000,
            peers: 2,
            banned: 0,
            sent: 5_000,
            is_web: false,
            rates,
        }
    }

    /// Where there is room for everything.
    fn said(rows: &[Row]) -> Option<String> {
        text(rows, usize::MAX)
    }

    #[test]
    fn several_torrents_are_one_line() {
        let rows = |last: Row| [Row::Running(standing(1_000, 0)), Row::Running(standing(500, 1_000)), last];
        let line = said(&rows(Row::Waiting)).unwrap();
        assert!(
            line.contains(" 75 %  1 of 3 torrents, 2 s left, 4 peers, down 3.00 kbit/s, up 0 bit/s"),
            "{line}"
        );
        let line = said(&rows(Row::Checking(0.5))).unwrap();
        assert!(line.contains("1 of 3 torrents (1 checked), "), "{line}");
        let rows = [Row::Running(standing(1_000, 0)), Row::Over(None), Row::Over(Some(standing(500, 0)))];
        let line = said(&rows).unwrap();
        assert!(line.contains("seeding 1 torrent to "), "{line}");
    }

    #[test]
    fn one_torrent_is_its_own_line() {
        assert_eq!(said(&[Row::Waiting]), None);
        assert!(said(&[Row::Checking(0.5)]).unwrap().ends_with(" 50 %  checking what is there"));
        assert!(said(&[Row::Running(standing(500, 0))]).unwrap().contains("1 of 2 pieces"));
        assert_eq!(said(&[Row::Over(None)]), None);
    }
}
