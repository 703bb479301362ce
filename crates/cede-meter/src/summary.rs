//! A series of queueing delays in a few numbers.
//!
//! The mean over time comes first: a LEDBAT sender sends least when the queue is longest, so that a mean over samples
//! may see a third of the truth. Nothing can be seen while a host is silent, so the seconds that were covered stand
//! beside it.

/// A silence of more than this is not bridged: what happened to the queue meanwhile is unknown.
const BRIDGED_US_MAX: u64 = 10_000_000;
/// Nor is one between unlike delays that is this much longer than the longer one. A sender that waits for an acknowledgement is
/// silent for a round trip, the queue included; one that is silent for longer had nothing to send.
const IDLE_US: f64 = 1_000_000.0;
/// What counts as bufferbloat (ITU-T G.114 wants less than 150 ms one way in all).
const BLOAT_US: f64 = 100_000.0;

/// A queueing delay at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delay {
    /// When the packet was captured, in microseconds since the capture's epoch.
    pub time_us: u64,
    /// How long it had queued, in microseconds.
    pub queue_us: f64,
}

impl Delay {
    /// Whether two samples tell what the queue was between them: on average what lies on the line from one to the other.
    #[must_use]
    pub fn is_bridged_to(&self, later: &Self) -> bool {
        let gap_us = later.time_us.saturating_sub(self.time_us);
        // Nearly always.
        if gap_us <= IDLE_US as u64 {
            return true;
        }
        let is_round_trip = gap_us as f64 <= self.queue_us.max(later.queue_us) + IDLE_US;
        gap_us <= BRIDGED_US_MAX && (is_round_trip || (later.queue_us - self.queue_us).abs() <= BLOAT_US)
    }
}

/// What a series of delays comes to; times in milliseconds unless a name says otherwise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// Samples.
    pub samples: u64,
    /// The mean over time: trapezoids between samples that tell of the time between them ([`Delay::is_bridged_to`]). With
    /// fewer than two such samples it is the mean of the samples.
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
        Scratch::default().sum_up(delays, &[])
    }
}

/// Memory that several series of one host need one after the other: each time the system gives such memory anew it clears it.
#[derive(Default)]
pub(crate) struct Scratch {
    delays: Vec<Delay>,
    values: Vec<u64>,
}

impl Scratch {
    /// Sums up two series as one, each in the order of time; `None` for empty ones.
    pub(crate) fn sum_up(&mut self, a: &[Delay], b: &[Delay]) -> Option<Summary> {
        let samples = a.len() + b.len();
        if samples == 0 {
            return None;
        }
        let values = &mut self.values;
        values.clear();
        values.reserve_exact(samples);
        let mut sums = Sums::default();
        let mut take = |delay: &Delay| {
            sums.add(delay);
            // Bits of numbers that are not negative are in the numbers' order, and compared faster.
            values.push((delay.queue_us + 0.0).to_bits());
        };
        if b.is_empty() {
            a.iter().for_each(take);
        } else {
            merge(a, b, &mut take);
        }
        let sample_mean = sums.delays / samples as f64;
        let [p50_ms, p95_ms, p99_ms, max_ms] =
            quantiles(values, [0.50, 0.95, 0.99, 1.0]).map(|bits| f64::from_bits(bits) / 1e3);
        Some(Summary {
            samples: samples as u64,
            time_mean_ms: if sums.covered > 0.0 { sums.area / sums.covered / 1e3 } else { sample_mean / 1e3 },
            sample_mean_ms: sample_mean / 1e3,
            p50_ms,
            p95_ms,
            p99_ms,
            max_ms,
            bloated_s: sums.bloated / 1e6,
            covered_s: sums.covered / 1e6,
        })
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
}

impl Sums {
    #[inline]
    fn add(&mut self, delay: &Delay) {
        self.delays += delay.queue_us;
        if let Some(last) = self.last.replace(*delay)
            && last.is_bridged_to(delay)
        {
            let gap_us = delay.time_us.saturating_sub(last.time_us);
            let (gap, from, to) = (gap_us as f64, last.queue_us, delay.queue_us);
            self.area += gap * (from + to) / 2.0;
            self.covered += gap;
            self.bloated += gap * share_above(from, to, BLOAT_US);
        }
    }
}

/// Bits of a time that are looked at together where delays are put in order: their counters stay in a processor's own cache.
const DIGIT_BITS: u32 = 8;
/// Fewer are compared with each other.
const BY_DIGITS_MIN: usize = 256;
/// More are first put into slots of time with about so many each, which stay in its own cache as well.
const SLOT: usize = 1 << 11;

/// Puts delays in the order of time; those of one time stay as they are. A host's flows are runs in order, so each fills slot behind
/// slot; within a slot delays are counted by the digits of their times, the lowest first, as in LSD radix sort.
pub(crate) fn put_in_order(delays: &mut [Delay], scratch: &mut Scratch) {
    let other = &mut scratch.delays;
    if is_put_in_order_at_once(delays) {
        return;
    }
    other.resize(delays.len().max(other.len()), Delay { time_us: 0, queue_us: 0.0 });
    let other = &mut other[..delays.len()];
    let times = || delays.iter().map(|delay| delay.time_us);
    let (first, last) = times().fold((u64::MAX, 0), |(low, high), time| (low.min(time), high.max(time)));
    let span_bits = u64::BITS - (last - first).leading_zeros();
    let slots_bits = (delays.len() / SLOT).checked_ilog2().unwrap_or(0).min(span_bits);
    let shift = span_bits - slots_bits;
    if slots_bits == 0 {
        return put_in_order_by_digits(delays, other, first, shift);
    }
    let ends = scatter(delays, other, 1 << slots_bits, |delay| ((delay.time_us - first) >> shift) as usize);
    let mut begin = 0;
    for end in ends {
        let (slot, room) = (&mut delays[begin..end], &mut other[begin..end]);
        slot.copy_from_slice(room);
        let first = slot.first().map_or(0, |delay| (delay.time_us - first) >> shift << shift) + first;
        if !is_put_in_order_at_once(slot) {
            put_in_order_by_digits(slot, room, first, shift);
        }
        begin = end;
    }
}

/// Whether that was done without room for others.
fn is_put_in_order_at_once(delays: &mut [Delay]) -> bool {
    let is_done = delays.is_sorted_by_key(|delay| delay.time_us);
    let is_short = delays.len() < BY_DIGITS_MIN;
    if !is_done && is_short {
        delays.sort_by_key(|delay| delay.time_us);
    }
    is_done || is_short
}

/// Puts delays in the order of the lowest bits of their times since `first`.
fn put_in_order_by_digits(delays: &mut [Delay], other: &mut [Delay], first: u64, bits: u32) {
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        let digit = |delay: &Delay| ((delay.time_us - first) >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        scatter(delays, other, 1 << DIGIT_BITS, digit);
        delays.copy_from_slice(other);
    }
}

/// Puts delays in the order of a number below `numbers`; where each number's end.
fn scatter(
    delays: &[Delay],
    to: &mut [Delay],
    numbers: usize,
    number: impl Fn(&Delay) -> usize,
) -> Vec<usize> {
    let mut ends = vec![0_usize; numbers];
    delays.iter().for_each(|delay| ends[number(delay)] += 1);
    let mut passed = 0;
    for end in &mut ends {
        passed += core::mem::replace(end, passed);
    }
    for delay in delays {
        let place = &mut ends[number(delay)];
        to[*place] = *delay;
        *place += 1;
    }
    ends
}

/// Hands over both series as one, in the order of time.
fn merge(mut a: &[Delay], mut b: &[Delay], take: &mut impl FnMut(&Delay)) {
    while let ([first, rest_a @ ..], [other, rest_b @ ..]) = (a, b) {
        if other.time_us < first.time_us {
            take(other);
            b = rest_b;
        } else {
            take(first);
            a = rest_a;
        }
    }
    a.iter().chain(b).for_each(take);
}

/// The values of the nearest ranks for shares that grow. Each looks only at what is above the one before, so nothing is
/// sorted.
fn quantiles<const N: usize>(values: &mut [u64], shares: [f64; N]) -> [u64; N] {
    let len = values.len();
    let mut from = 0;
    shares.map(|share| {
        let rank = ((share * len as f64).ceil() as usize).clamp(1, len) - 1;
        let (_, &mut value, _) = values[from..].select_nth_unstable(rank - from);
        from = rank;
        value
    })
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
    fn delays_of_any_number_are_put_in_order_and_those_of_one_time_stay() {
        let mut stream = cede_units::Stream::named(3, "order");
        let mut scratch = Scratch::default();
        for (len, span_us) in [(2, 9), (200, 50), (300, 1 << 40), (5_000, 100), (70_000, 1 << 24), (9_000, 1)]
        {
            // Flows one behind the other, each in its own order or nearly.
            let mut delays: Vec<Delay> = Vec::new();
            for k in 0..len {
                let time_us = (k % 1_000) * span_us / 1_000 + stream.below(1 + span_us / 500);
                delays.push(Delay { time_us: (1 << 50) + time_us, queue_us: k as f64 });
            }
            let mut expected = delays.clone();
            expected.sort_by_key(|delay| delay.time_us);
            put_in_order(&mut delays, &mut scratch);
            assert!(delays == expected, "{len} {span_us}");
        }
    }

    #[test]
    fn two_series_are_summed_up_as_one() {
        let delays: Vec<Delay> = (0..1_000).map(|k| delay(k * 7, (k * k % 311) as f64)).collect();
        let (mut a, mut b) = (delays.clone(), delays.clone());
        a.retain(|delay| delay.time_us % 3 == 0);
        b.retain(|delay| delay.time_us % 3 > 0);
        let both = Scratch::default().sum_up(&a, &b);
        assert!(both.is_some() && both == Summary::of(&delays) && both != Summary::of(&a));
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
