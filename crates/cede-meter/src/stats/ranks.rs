//! The delays of given ranks among many: quantiles.
//!
//! Source: nearest ranks, found by counting what shares the upper bits of a number (the first pass of a radix sort) and looking at those alone
//! among which a rank is, like ones that follow each other as one; few are looked at as they are.
//!
//! **How it was validated.** Beside sorting (below).

use crate::stats::delay::Delay;

/// More are counted first.
const FEW: usize = 1 << 13;
/// The upper bits of a number that are counted by: all of its exponent, and eight of its fraction, so that numbers of one count differ by four in a
/// thousand at most.
const SHIFT: u32 = 44;
/// All below a microsecond are counted as one, and all beyond half an hour.
const FIRST: u64 = 1.0_f64.to_bits() >> SHIFT;
const COUNTS: usize = 31 << 8;

/// Shares whose ranks are asked for, in growing order.
pub(crate) const SHARES: [f64; 4] = [0.50, 0.95, 0.99, 1.0];
/// What half of the delays are at most, and so on for all [`SHARES`].
pub(crate) type Quantiles = [f64; SHARES.len()];
/// More than the digits that may be sought: those of two series, and of both together.
const SOUGHT: usize = 16;

/// Memory that one host leaves to the next.
#[derive(Default)]
pub(crate) struct Ranks {
    /// Few values, among which ranks are.
    few: Vec<u64>,
    /// Of each series, the values whose digits are sought.
    runs: [Vec<Run>; 2],
}

/// Like values: few differ where a clock has ticks or a queue is empty.
#[derive(Clone, Copy, Default)]
struct Run {
    value: u64,
    count: u32,
}

/// Where a rank is: its digit, and its rank among all values of that.
struct Sought {
    digit: usize,
    rank: usize,
}

/// Bits of numbers that are not negative are in the numbers' order, and compared faster.
#[inline]
fn value(delay: &Delay) -> u64 {
    (delay.queue_us + 0.0).to_bits()
}

#[inline]
fn digit(value: u64) -> usize {
    ((value >> SHIFT).saturating_sub(FIRST - 1) as usize).min(COUNTS - 1)
}

/// How many values there are of each digit.
fn counted(delays: &[Delay]) -> Vec<u32> {
    let mut counts = vec![0; COUNTS];
    delays.iter().for_each(|delay| counts[digit(value(delay))] += 1);
    counts
}

/// The nearest ranks of the shares.
fn ranks(len: usize) -> [usize; SHARES.len()] {
    SHARES.map(|share| ((share * len as f64).ceil() as usize).clamp(1, len) - 1)
}

/// The same among what was counted.
fn sought(counts: &[u32]) -> [Sought; SHARES.len()] {
    let (mut digit, mut below) = (0, 0);
    ranks(counts.iter().map(|&count| count as usize).sum()).map(|rank| {
        while below + counts[digit] as usize <= rank {
            below += counts[digit] as usize;
            digit += 1;
        }
        Sought { digit, rank: rank - below }
    })
}

/// Puts the values whose digits have a number into runs, in their order.
fn gather(delays: &[Delay], numbers: &[u8; COUNTS], runs: &mut Vec<Run>) {
    let mut open = [Run::default(); SOUGHT];
    for value in delays.iter().map(value) {
        let number = numbers[digit(value)];
        if number == 0 {
            continue;
        }
        let run = &mut open[usize::from(number) % SOUGHT];
        if run.value != value {
            runs.push(core::mem::replace(run, Run { value, count: 0 }));
        }
        run.count += 1;
    }
    runs.extend(open);
    runs.sort_unstable_by_key(|run| run.value);
}

/// The value that is sought, among the runs of two series.
fn find(runs: [&[Run]; 2], sought: &Sought) -> f64 {
    let from = |runs: &'_ [Run]| runs.partition_point(|run| digit(run.value) < sought.digit);
    let [mut a, mut b] = runs.map(|runs| runs[from(runs)..].iter().peekable());
    let mut passed = 0;
    loop {
        let is_of_b = |other: &&Run| a.peek().is_none_or(|run| other.value < run.value);
        let Some(run) = b.next_if(is_of_b).or_else(|| a.next()) else { return 0.0 };
        passed += run.count as usize;
        if passed > sought.rank {
            return f64::from_bits(run.value);
        }
    }
}

impl Ranks {
    /// The quantiles of a series that is not empty.
    pub(crate) fn of(&mut self, delays: &[Delay]) -> Quantiles {
        if delays.len() < FEW {
            return self.of_few([delays, &[]]);
        }
        let sought = sought(&counted(delays));
        self.gather([delays, &[]], sought.iter());
        sought.map(|sought| find([&self.runs[0], &[]], &sought))
    }

    /// Those of two series together, neither of which is empty, and of each.
    pub(crate) fn of_two(&mut self, [a, b]: [&[Delay]; 2]) -> [Quantiles; 3] {
        if a.len() + b.len() < FEW {
            return [[a, b], [a, &[]], [b, &[]]].map(|series| self.of_few(series));
        }
        let (of_a, of_b) = (counted(a), counted(b));
        let of_both: Vec<u32> = of_a.iter().zip(&of_b).map(|(a, b)| a + b).collect();
        let all = [of_both, of_a, of_b].map(|counts| sought(&counts));
        self.gather([a, b], all.iter().flatten());
        let [a, b] = self.runs.each_ref().map(Vec::as_slice);
        let [both, of_a, of_b] = all;
        let found = |runs, all: [Sought; SHARES.len()]| all.map(|sought| find(runs, &sought));
        [found([a, b], both), found([a, &[]], of_a), found([b, &[]], of_b)]
    }

    fn of_few(&mut self, series: [&[Delay]; 2]) -> Quantiles {
        self.few.clear();
        series.iter().for_each(|delays| self.few.extend(delays.iter().map(value)));
        let mut from = 0;
        // Each rank looks only at what is above the one before.
        ranks(self.few.len()).map(|rank| {
            let (_, &mut value, _) = self.few[from..].select_nth_unstable(rank - from);
            from = rank;
            f64::from_bits(value)
        })
    }

    fn gather<'a>(&mut self, series: [&[Delay]; 2], sought: impl Iterator<Item = &'a Sought>) {
        let mut numbers = [0; COUNTS];
        sought.zip(1..).for_each(|(sought, number)| numbers[sought.digit] = number);
        for (runs, delays) in self.runs.iter_mut().zip(series) {
            runs.clear();
            gather(delays, &numbers, runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    #[test]
    fn ranks_are_those_of_the_sorted_series() {
        let mut stream = Stream::named(13, "ranks");
        let mut ranks = Ranks::default();
        let cases: [(u64, f64); 7] =
            [(1, 1e3), (7, 1e3), (1_000, 1e6), (40_000, 1e6), (50_000, 0.01), (60_000, 1e10), (70_000, 0.0)];
        for (len, scale) in cases {
            let mut delay = |k: u64| {
                let queue_us =
                    [stream.exponential(scale.max(1e-9)), 300.0 * scale][usize::from(stream.below(3) == 0)];
                Delay { time_us: k, queue_us: if scale == 0.0 { -0.0 } else { queue_us } }
            };
            let delays: Vec<Delay> = (0..len).map(&mut delay).collect();
            let expected = |delays: &[Delay]| {
                let mut sorted: Vec<f64> = delays.iter().map(|delay| delay.queue_us + 0.0).collect();
                sorted.sort_by(f64::total_cmp);
                let at = |share: f64| ((share * sorted.len() as f64).ceil() as usize).max(1) - 1;
                SHARES.map(|share| sorted[at(share)].to_bits())
            };
            let bits = |quantiles: Quantiles| quantiles.map(f64::to_bits);
            assert_eq!(bits(ranks.of(&delays)), expected(&delays), "{len} {scale}");
            let (a, b) = delays.split_at(delays.len() / 3);
            if !a.is_empty() {
                assert_eq!(ranks.of_two([a, b]).map(bits), [&delays, a, b].map(expected), "{len} {scale}");
            }
        }
    }
}
