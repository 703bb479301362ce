//! The lines of a test: one per interval and stream, as iperf3 prints them, with what uTP knows besides.

use super::numbers;
use cede_carry::bench::Sample;
use cede_units::{Duration, Rate};

/// The columns' heads.
pub const HEAD: &str =
    "[ ID]   Interval (s)    Transfer           Rate        RTT      Queue   Retr      Cwnd";

/// What one stream did between two looks at it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Row {
    /// Since the test began.
    pub start: Duration,
    /// Since the test began.
    pub end: Duration,
    /// Octets.
    pub bytes: u64,
    /// What the sender knows of its path, where it has said so.
    pub path: Option<Path>,
}

/// What a sender knows of its path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Path {
    /// The smoothed RTT.
    pub rtt: Duration,
    /// How long packets queue.
    pub queueing_delay: Option<Duration>,
    /// That is the RTT less the smallest.
    pub is_queue_estimated: bool,
    /// Packets sent again in the interval.
    pub retransmissions: u64,
    /// The congestion window.
    pub cwnd_bytes: u64,
}

impl Row {
    /// From one look to the next. `counted` is the side whose octets count, `sender` the side that sends.
    pub fn between(counted: [&Sample; 2], sender: Option<[&Sample; 2]>) -> Self {
        let [before, after] = counted;
        let path = sender.map(|[before, after]| Path {
            rtt: after.rtt,
            queueing_delay: after.queueing_delay,
            is_queue_estimated: after.is_queue_estimated,
            retransmissions: after.retransmissions.saturating_sub(before.retransmissions),
            cwnd_bytes: after.cwnd_bytes,
        });
        Self { start: before.at, end: after.at, bytes: after.bytes.saturating_sub(before.bytes), path }
    }

    /// All streams together: sums, and for times the mean.
    pub fn sum(rows: &[Self]) -> Self {
        let paths: Vec<Path> = rows.iter().filter_map(|row| row.path).collect();
        let count = paths.len().max(1) as u64;
        let mean = |spans: &mut dyn Iterator<Item = Duration>| {
            Duration::from_nanos(spans.map(Duration::as_nanos).sum::<u64>() / count)
        };
        let queues = || paths.iter().filter_map(|path| path.queueing_delay);
        let path = (!paths.is_empty()).then(|| Path {
            rtt: mean(&mut paths.iter().map(|path| path.rtt)),
            queueing_delay: (queues().count() == paths.len()).then(|| mean(&mut queues())),
            is_queue_estimated: paths.iter().any(|path| path.is_queue_estimated),
            retransmissions: paths.iter().map(|path| path.retransmissions).sum(),
            cwnd_bytes: paths.iter().map(|path| path.cwnd_bytes).sum(),
        });
        Self {
            start: rows.iter().map(|row| row.start).min().unwrap_or_default(),
            end: rows.iter().map(|row| row.end).max().unwrap_or_default(),
            bytes: rows.iter().map(|row| row.bytes).sum(),
            path,
        }
    }

    /// How long it is.
    pub fn span(&self) -> Duration {
        self.end - self.start
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        Rate::from_bytes_over(self.bytes, self.span())
    }

    /// The line, under [`HEAD`].
    pub fn line(&self, id: &str) -> String {
        let interval = format!("{:.1}-{:.1}", self.start.as_secs_f64(), self.end.as_secs_f64());
        let (bytes, rate) = (numbers::amount(self.bytes), numbers::rate(self.rate()));
        let mut line = format!("[{id:>3}] {interval:>14} {bytes:>11} {rate:>14}");
        if let Some(path) = &self.path {
            let rtt = if path.rtt.is_zero() { "-".to_owned() } else { numbers::span(path.rtt) };
            let queue = match path.queueing_delay {
                Some(span) if path.is_queue_estimated => format!("~{}", numbers::span(span)),
                Some(span) => numbers::span(span),
                None => "-".to_owned(),
            };
            let (again, cwnd) = (path.retransmissions, numbers::amount(path.cwnd_bytes));
            line += &format!(" {rtt:>10} {queue:>10} {again:>6} {cwnd:>9}");
        }
        line
    }
}

/// The rows of all streams, and their sum.
pub struct Rows {
    /// One for each stream.
    pub streams: Vec<Row>,
    /// All together.
    pub sum: Row,
}

impl Rows {
    /// From one look to the next: `here` at this end, `there` at the other, which may not have said anything yet.
    pub fn between(here: [&[Sample]; 2], there: [&[Sample]; 2], is_sender_here: bool) -> Self {
        let start = Sample::default();
        let at = |samples: &[Sample], index: usize| samples.get(index).copied();
        let streams: Vec<Row> = (0..here[1].len())
            .map(|index| {
                let counted = [at(here[0], index).unwrap_or(start), here[1][index]];
                let far = at(there[1], index).map(|after| [at(there[0], index).unwrap_or(start), after]);
                let sender = if is_sender_here { Some(counted) } else { far };
                Row::between(
                    [&counted[0], &counted[1]],
                    sender.as_ref().map(|[before, after]| [before, after]),
                )
            })
            .collect();
        let sum = Row::sum(&streams);
        Self { streams, sum }
    }

    /// The lines, with a sum where there are several.
    pub fn lines(&self) -> String {
        let numbered = self.streams.iter().enumerate();
        let mut text: String =
            numbered.map(|(index, row)| row.line(&(index + 1).to_string()) + "\n").collect();
        if self.streams.len() > 1 {
            text += &(self.sum.line("SUM") + "\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, bytes: u64, retransmissions: u64) -> Sample {
        Sample {
            at: Duration::from_millis(at_ms),
            bytes,
            retransmissions,
            cwnd_bytes: 100_000,
            rtt: Duration::from_micros(12_340),
            queueing_delay: Some(Duration::from_micros(2_500)),
            is_queue_estimated: false,
        }
    }

    #[test]
    fn rows_are_differences_and_their_sum_adds_them_up() {
        let (before, after) = ([sample(1000, 1_000_000, 5); 2], [sample(2000, 2_250_000, 7); 2]);
        let rows = Rows::between([&before, &after], [&[], &[]], true);
        assert_eq!(rows.streams[0].rate(), Rate::from_mbit(10));
        assert_eq!((rows.sum.bytes, rows.sum.path.unwrap().retransmissions), (2_500_000, 4));
        let lines = rows.lines();
        assert!(
            lines.contains(
                "[  1]        1.0-2.0     1.25 MB    10.0 Mbit/s    12.3 ms    2.50 ms      2    100 kB"
            ),
            "{lines}"
        );
        assert!(lines.contains("[SUM]"), "{lines}");
    }

    #[test]
    fn heads_stand_above_their_columns() {
        let line = Row::between(
            [&sample(0, 0, 0), &sample(1000, 1, 1)],
            Some([&sample(0, 0, 0), &sample(1000, 1, 1)]),
        )
        .line("1");
        assert_eq!(line.chars().count(), HEAD.chars().count(), "{line}\n{HEAD}");
    }

    #[test]
    fn a_sender_far_away_tells_of_the_path_once_it_has_spoken() {
        let here = [sample(1000, 10, 0)];
        let silent = Rows::between([&[], &here], [&[], &[]], false);
        assert_eq!(silent.streams[0].path, None);
        let there = [sample(900, 12, 3)];
        let rows = Rows::between([&[], &here], [&[], &there], false);
        assert_eq!((rows.sum.bytes, rows.sum.path.unwrap().retransmissions), (10, 3));
    }
}
