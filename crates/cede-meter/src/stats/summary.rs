//! A series of queueing delays in a few numbers.
//!
//! The mean over time comes first: a LEDBAT sender sends least when the queue is longest, so that a mean over samples
//! may see a third of the truth. Nothing can be seen while a host is silent, so the seconds that were covered stand
//! beside it.

use crate::stats::delay::Delay;
use crate::stats::order::Slots;
use crate::stats::ranks::{Quantiles, Ranks};

/// A silence of more than this is not bridged: what happened to the queue meanwhile is unknown.
const BRIDGED_US_MAX: u64 = 10_000_000;
/// A sender that waits for an acknowledgement is silent for a round trip, the queue included; one that is silent for this much
/// longer than the longer of two delays had nothing to send. Between unlike delays such a silence is not bridged.
const IDLE_US: f64 = 1_000_000.0;
/// A packet that met no more than this, a packet or two of others at most, met an empty queue.
const EMPTY_US: f64 = 20_000.0;
/// Delays are known no better than this.
const TICK_US: f64 = 2_000.0;
/// What counts as bufferbloat (ITU-T G.114 wants less than 150 ms one way in all).
const BLOAT_US: f64 = 100_000.0;

/// What two samples tell of the queue between them.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Between {
    /// On average what lies on the line from one to the other.
    Line,
    /// The host had nothing to send: what the first had met drained, down to the lesser of both, until then.
    Drained(Delay),
    Unknown,
}

impl Delay {
    /// Whether two samples tell what the queue was between them.
    #[must_use]
    pub fn is_bridged_to(&self, later: &Self) -> bool {
        self.until(later) != Between::Unknown
    }

    /// Where the host was silent between two samples: when, and how far, what it had left had drained.
    #[must_use]
    pub fn drained_before(&self, later: &Self) -> Option<Self> {
        match self.until(later) {
            Between::Drained(to) => Some(to),
            Between::Line | Between::Unknown => None,
        }
    }

    #[inline]
    fn until(&self, later: &Self) -> Between {
        let gap_us = later.time_us.saturating_sub(self.time_us);
        // Nearly always.
        if gap_us <= IDLE_US as u64 {
            return Between::Line;
        }
        if gap_us > BRIDGED_US_MAX {
            return Between::Unknown;
        }
        let is_round_trip = gap_us as f64 <= self.queue_us.max(later.queue_us) + IDLE_US;
        let are_alike = (later.queue_us - self.queue_us).abs() <= BLOAT_US;
        if is_round_trip {
            Between::Line
        } else if are_alike {
            // A queue falls by a second each second; the silence is longer than that takes.
            let level = self.queue_us.min(later.queue_us);
            let time_us = self.time_us + (self.queue_us - level) as u64;
            Between::Drained(Self { time_us, queue_us: level })
        } else {
            Between::Unknown
        }
    }
}

/// What a series of delays comes to; times in milliseconds unless a name says otherwise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// Samples.
    pub samples: u64,
    /// The mean over time: trapezoids between samples that tell of the time between them ([`Delay::is_bridged_to`]); where the
    /// host was silent for longer than a round trip, what it had left is taken to have drained. With fewer than two such samples
    /// it is the mean of the samples.
    pub time_mean_ms: f64,
    /// The mean over samples, as the paper has it.
    pub sample_mean_ms: f64,
    /// Half of the samples are at most this.
    pub p50_ms: f64,
    /// 95 of 100 samples are at most this.
    pub p95_ms: f64,
    /// 99 of 100 samples are at most this.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Time with more than 100 ms, in seconds.
    pub bloated_s: f64,
    /// Time between samples that was bridged, in seconds.
    pub covered_s: f64,
}

impl Summary {
    /// Sums up a series in the order of time; `None` for an empty one.
    #[must_use]
    pub fn of(delays: &[Delay]) -> Option<Self> {
        Self::of_pieces([delays]).next()
    }

    /// Sums up a series in pieces that are in the order of time, such as days, each but empty ones. What lies between two pieces is the
    /// later one's, so that areas and seconds of all add up to those of the series.
    pub fn of_pieces<'a>(pieces: impl IntoIterator<Item = &'a [Delay]>) -> impl Iterator<Item = Self> {
        let mut sums = Sums::default();
        pieces.into_iter().filter(|piece| !piece.is_empty()).map(move |piece| {
            sums = Sums { last: sums.last, is_accounted: sums.is_accounted, ..Sums::default() };
            sums.add_all(piece);
            sums.summary(piece.len(), Ranks::default().of(piece))
        })
    }
}

/// Whether so many microseconds lie between samples that are bridged.
pub(crate) fn cover(delays: &[Delay], us: f64) -> bool {
    let mut covered_us = 0.0;
    delays.windows(2).any(|pair| {
        if pair[0].is_bridged_to(&pair[1]) {
            covered_us += pair[1].time_us.saturating_sub(pair[0].time_us) as f64;
        }
        covered_us >= us
    })
}

/// Memory that one host leaves to the next: what the system gives anew it clears first.
#[derive(Default)]
pub(crate) struct Scratch {
    slots: Slots,
    ranks: Ranks,
}

impl Scratch {
    /// Sums up two series that are in runs of the order of time, both together and each for itself; `None` for an empty one.
    pub(crate) fn sum_up(&mut self, [a, b]: [&[Delay]; 2]) -> [Option<Summary>; 3] {
        let (mut both, mut of_a, mut of_b) = (Sums::default(), Sums::default(), Sums::default());
        let are_two = !a.is_empty() && !b.is_empty();
        self.slots.each([a, b], |a, b| {
            of_a.add_all(a);
            of_b.add_all(b);
            if are_two {
                both.add_both(a, b);
            }
        });
        if are_two {
            let [together, first, second] = self.ranks.of_two([a, b]);
            let sums = [(both, a.len() + b.len(), together), (of_a, a.len(), first), (of_b, b.len(), second)];
            return sums.map(|(sums, count, quantiles)| Some(sums.summary(count, quantiles)));
        }
        let only = |sums: &Sums, delays: &[Delay], ranks: &mut Ranks| {
            (!delays.is_empty()).then(|| sums.summary(delays.len(), ranks.of(delays)))
        };
        let [of_a, of_b] = [only(&of_a, a, &mut self.ranks), only(&of_b, b, &mut self.ranks)];
        [of_a.or(of_b), of_a, of_b]
    }
}

/// What delays that come in the order of time add up to, in microseconds.
#[derive(Default)]
struct Sums {
    delays: f64,
    area: f64,
    covered: f64,
    bloated: f64,
    last: Option<Delay>,
    /// Since a packet met an empty queue each one entered before the one before it had left: what is seen of the host accounts for the
    /// queue.
    is_accounted: bool,
}

impl Sums {
    /// Adds a series in the order of time, which is behind all before.
    fn add_all(&mut self, delays: &[Delay]) {
        // In registers meanwhile.
        let mut sums = core::mem::take(self);
        delays.iter().for_each(|delay| sums.add(delay));
        *self = sums;
    }

    /// Adds two such series as one.
    fn add_both(&mut self, a: &[Delay], b: &[Delay]) {
        let mut sums = core::mem::take(self);
        let (mut rest_a, mut rest_b) = (a.iter(), b.iter());
        let (mut next_a, mut next_b) = (rest_a.next(), rest_b.next());
        while let (Some(first), Some(other)) = (next_a, next_b) {
            if other.time_us < first.time_us {
                sums.add(other);
                next_b = rest_b.next();
            } else {
                sums.add(first);
                next_a = rest_a.next();
            }
        }
        next_a.into_iter().chain(rest_a).chain(next_b).chain(rest_b).for_each(|delay| sums.add(delay));
        *self = sums;
    }

    #[inline(always)]
    fn add(&mut self, delay: &Delay) {
        self.delays += delay.queue_us;
        let Some(last) = self.last.replace(*delay) else {
            self.is_accounted = delay.queue_us <= EMPTY_US;
            return;
        };
        let gap = delay.time_us.saturating_sub(last.time_us);
        // No two times are half of all apart.
        let gap_us = gap.cast_signed() as f64;
        let (has_left, is_empty) = (gap_us > delay.queue_us + TICK_US, delay.queue_us <= EMPTY_US);
        let was_accounted = self.is_accounted;
        self.is_accounted = is_empty || (was_accounted && !has_left);
        // Nothing was behind the first, and the queue empty when it had left; what is there is others', who came at once or just now.
        let was_empty = has_left && (is_empty || delay.queue_us <= last.queue_us) && was_accounted;
        let from_us = match (was_empty, is_empty) {
            (false, _) => last.queue_us,
            (true, false) => 0.0,
            (true, true) => delay.queue_us,
        };
        // Nearly always.
        if gap <= IDLE_US as u64 {
            return self.add_line(gap_us, from_us, delay.queue_us);
        }
        match last.until(delay) {
            Between::Line => self.add_line(gap_us, from_us, delay.queue_us),
            Between::Drained(_) if was_empty => self.add_line(gap_us, from_us, delay.queue_us),
            Between::Drained(Delay { queue_us: level, .. }) => {
                let falls_us = last.queue_us - level;
                self.add_line(falls_us, last.queue_us, level);
                self.add_line(gap_us - falls_us, level, level);
            }
            Between::Unknown => {}
        }
    }

    #[inline(always)]
    fn add_line(&mut self, gap_us: f64, from: f64, to: f64) {
        self.covered += gap_us;
        self.area += gap_us * (from + to) / 2.0;
        if from > BLOAT_US || to > BLOAT_US {
            self.bloated += gap_us * share_above(from, to, BLOAT_US);
        }
    }

    /// All of it, of so many delays.
    fn summary(&self, count: usize, quantiles: Quantiles) -> Summary {
        let sample_mean = self.delays / count as f64;
        let [p50_ms, p95_ms, p99_ms, max_ms] = quantiles.map(|us| us / 1e3);
        Summary {
            samples: count as u64,
            time_mean_ms: if self.covered > 0.0 { self.area / self.covered } else { sample_mean } / 1e3,
            sample_mean_ms: sample_mean / 1e3,
            p50_ms,
            p95_ms,
            p99_ms,
            max_ms,
            bloated_s: self.bloated / 1e6,
            covered_s: self.covered / 1e6,
        }
    }
}

/// How much of a straight line from one value to another lies above a level.
#[inline]
fn share_above(from: f64, to: f64, level: f64) -> f64 {
    let (low, high) = (from.min(to), from.max(to));
    if high <= level {
        return 0.0;
    }
    if low >= level { 1.0 } else { (high - level) / (high - low) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(time_ms: u64, queue_ms: f64) -> Delay {
        Delay { time_us: time_ms * 1000, queue_us: queue_ms * 1000.0 }
    }

    #[test]
    fn means_weigh_time_and_samples_each_for_itself() {
        // Ten samples within a tenth of a second without a queue, then 1.2 seconds up to 300 ms in one step.
        let mut delays: Vec<Delay> = (0..10).map(|k| delay(k * 10, 0.0)).collect();
        delays.push(delay(1290, 300.0));
        let summary = Summary::of(&delays).unwrap();
        assert!((summary.sample_mean_ms - 300.0 / 11.0).abs() < 1e-9);
        assert!((summary.time_mean_ms - 150.0 * 1.2 / 1.29).abs() < 1e-9);
        assert!((summary.covered_s - 1.29).abs() < 1e-9);
        assert!((summary.bloated_s - 0.8).abs() < 1e-9, "two thirds of the rise");
        assert_eq!((summary.p50_ms, summary.max_ms, summary.samples), (0.0, 300.0, 11));
    }

    #[test]
    fn two_series_are_summed_up_as_one() {
        let delays: Vec<Delay> = (0..1_000).map(|k| delay(k * 7, (k * k % 311) as f64)).collect();
        let (mut a, mut b) = (delays.clone(), delays.clone());
        a.retain(|delay| delay.time_us % 3 == 0);
        b.retain(|delay| delay.time_us % 3 > 0);
        let [both, of_a, of_b] = Scratch::default().sum_up([&a, &b]);
        assert!(both.is_some() && both == Summary::of(&delays) && both != of_a);
        assert!(of_a == Summary::of(&a) && of_b == Summary::of(&b));
    }

    #[test]
    fn pieces_add_up_to_the_whole() {
        // Silences of 0.3 to 9 s, on either side of what is bridged; bursts that are seen whole, too.
        let delays: Vec<Delay> =
            (0..200).map(|k| delay(k * 3_000 + k % 7 * 450, (k * k % 311) as f64)).collect();
        let whole = Summary::of(&delays).unwrap();
        for len in [1, 2, 7, 63, 200] {
            let pieces: Vec<Summary> = Summary::of_pieces(delays.chunks(len)).collect();
            let sum = |of: fn(&Summary) -> f64| pieces.iter().map(of).sum::<f64>();
            assert!((sum(|piece| piece.covered_s) - whole.covered_s).abs() < 1e-9, "{len}");
            assert!((sum(|piece| piece.bloated_s) - whole.bloated_s).abs() < 1e-9, "{len}");
            let area = sum(|piece| piece.time_mean_ms * piece.covered_s);
            assert!((area - whole.time_mean_ms * whole.covered_s).abs() < 1e-6, "{len}");
            assert_eq!(pieces.iter().map(|piece| piece.samples).sum::<u64>(), whole.samples);
        }
        assert_eq!(Summary::of_pieces([&delays[..0], &delays[..], &[]]).collect::<Vec<_>>(), [whole]);
    }

    /// Eight packets at once on 1 Mbit/s, every eight seconds: the queue holds something for a tenth of a second.
    #[test]
    fn behind_a_burst_that_was_seen_whole_the_queue_is_empty() {
        let burst = |at: u64| (0..8).map(move |k| delay(at * 8_000 + k * 12, (k * 12) as f64));
        let delays: Vec<Delay> = (0..10).flat_map(burst).collect();
        let summary = Summary::of(&delays).unwrap();
        let rises = 10.0 * 0.084 * 42.0;
        assert!((summary.time_mean_ms - rises / summary.covered_s).abs() < 1e-9, "{summary:?}");
        assert!((summary.covered_s - 72.084).abs() < 1e-9 && summary.bloated_s == 0.0);
        // Whatever else came behind its last packet is not known where its beginning was not seen: that has drained at least.
        let (cut, falls) = (Summary::of(&delays[4..9]).unwrap(), 0.084 * 42.0);
        assert!((cut.time_mean_ms - (0.036 * 66.0 + falls) / cut.covered_s).abs() < 1e-9, "{cut:?}");
        // A queue that others keep full is there behind a silence, too.
        let others = Summary::of(&[delay(0, 250.0), delay(5_000, 200.0), delay(5_010, 200.0)]).unwrap();
        assert!((others.time_mean_ms - (200.0 + 1.25 / 5.01)).abs() < 1e-9, "{others:?}");
        assert!((others.bloated_s - 5.01).abs() < 1e-9);
    }

    /// Every six seconds a hundred packets at once on 1 Mbit/s, and a heartbeat each second, which finds nothing of them.
    #[test]
    fn a_burst_that_is_seen_whole_has_drained_once_its_last_packet_has_come() {
        let round = |at: u64| {
            let burst = (0..100).map(move |k| delay(at * 6_000 + k * 12, (k * 12) as f64));
            burst.chain((2..6).map(move |k| delay(at * 6_000 + k * 1_000, 0.0)))
        };
        let delays: Vec<Delay> = (0..10).flat_map(round).collect();
        let summary = Summary::of(&delays).unwrap();
        let truth = 10.0 * 1.188 * 1_188.0 / 2.0 / 59.0;
        assert!((summary.time_mean_ms / truth - 1.0).abs() < 0.01, "{} for {truth}", summary.time_mean_ms);
        // Others have begun to send at any time before the next one comes.
        let mut last = delays[delays.len() - 5..].to_vec();
        last[1..].iter_mut().for_each(|delay| delay.queue_us = 200_000.0);
        last.splice(..1, (0..100).map(|k| delay(54_000 + k * 12, (k * 12) as f64)));
        let summary = Summary::of(&last).unwrap();
        let truth = (1.188 * 1_188.0 / 2.0 + 0.812 * 100.0 + 3.0 * 200.0) / 5.0;
        assert!((summary.time_mean_ms / truth - 1.0).abs() < 0.01, "{} for {truth}", summary.time_mean_ms);
        // Heartbeats that met what others had sent tell nothing of when it drained.
        let others = Summary::of(&[delay(0, 0.0), delay(900, 300.0), delay(1_800, 0.0)]).unwrap();
        assert!((others.time_mean_ms - 150.0).abs() < 1e-9, "{others:?}");
    }

    /// A sender whose last packets were lost waits for a second; the next one finds what others have sent meanwhile.
    #[test]
    fn behind_what_was_seen_whole_others_fill_the_queue_from_nothing_to_what_the_next_finds() {
        let mut delays: Vec<Delay> = (0..11).map(|k| delay(k * 12, (k * 12) as f64)).collect();
        delays.push(delay(1_200, 60.0));
        let summary = Summary::of(&delays).unwrap();
        let truth = (0.12 * 60.0 + 1.08 * 30.0) / 1.2;
        assert!((summary.time_mean_ms - truth).abs() < 1e-9, "{} for {truth}", summary.time_mean_ms);
        // Where it had begun was not seen: others may have been in it.
        let cut = Summary::of(&delays[5..]).unwrap();
        let line = (0.06 * 90.0 + 1.08 * 90.0) / 1.14;
        assert!((cut.time_mean_ms - line).abs() < 1e-9, "{} for {line}", cut.time_mean_ms);
    }

    #[test]
    fn silences_are_not_bridged() {
        let summary = Summary::of(&[delay(0, 10.0), delay(20_000, 30.0)]).unwrap();
        assert_eq!((summary.covered_s, summary.time_mean_ms), (0.0, 20.0));
        assert_eq!(Summary::of(&[]), None);
        let bridged = |from, to| delay(0, from).is_bridged_to(&to);
        assert!(bridged(0.0, delay(9_000, 20.0)), "alike");
        assert!(bridged(5_000.0, delay(5_900, 100.0)), "a round trip");
        assert!(!bridged(2_000.0, delay(3_100, 100.0)), "the queue may have drained at any time");
    }
}
