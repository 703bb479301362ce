//! The delays of given ranks among many: quantiles.
//!
//! Source: nearest ranks, found by counting what shares the upper bits of a number (the first pass of a radix sort) and looking at those alone
//! among which a rank is; few are looked at as they are. Nothing is sorted.
//!
//! **How it was validated.** Beside sorting (below).

use crate::summary::Delay;

/// More are counted first.
const FEW: usize = 1 << 15;
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

/// Memory that one host leaves to the next.
#[derive(Default)]
pub(crate) struct Ranks {
    /// The values among which ranks are.
    gathered: Vec<u64>,
}

/// By which counts ranks are.
struct Found {
    wanted: Vec<bool>,
    /// Values that have these counts, and ranks among them.
    values: usize,
    ranks: [usize; SHARES.len()],
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

impl Found {
    fn among(counts: &[u32]) -> Self {
        let mut ranks = ranks(counts.iter().map(|&count| count as usize).sum());
        let (mut below, mut left_out) = (0, 0);
        let mut ahead = ranks.iter_mut().peekable();
        let mut is_wanted = |&count: &u32| {
            below += count as usize;
            let mut is_wanted = false;
            while let Some(rank) = ahead.next_if(|rank| **rank < below) {
                *rank -= left_out;
                is_wanted = true;
            }
            left_out += if is_wanted { 0 } else { count as usize };
            is_wanted
        };
        let wanted = counts.iter().map(&mut is_wanted).collect();
        Self { wanted, values: below - left_out, ranks }
    }
}

impl Ranks {
    /// The quantiles of a series that is not empty.
    pub(crate) fn of(&mut self, delays: &[Delay]) -> Quantiles {
        if delays.len() < FEW {
            self.of_few([delays, &[]])
        } else {
            self.of_many([delays, &[]], &counted(delays))
        }
    }

    /// Those of two series together, neither of which is empty, and of each.
    pub(crate) fn of_two(&mut self, [a, b]: [&[Delay]; 2]) -> [Quantiles; 3] {
        if a.len() + b.len() < FEW {
            return [[a, b], [a, &[]], [b, &[]]].map(|series| self.of_few(series));
        }
        let (of_a, of_b) = (counted(a), counted(b));
        let of_both: Vec<u32> = of_a.iter().zip(&of_b).map(|(a, b)| a + b).collect();
        let each = [([a, b], of_both), ([a, &[]], of_a), ([b, &[]], of_b)];
        each.map(|(series, counts)| self.of_many(series, &counts))
    }

    fn of_few(&mut self, series: [&[Delay]; 2]) -> Quantiles {
        self.gathered.clear();
        self.gathered.extend(series.into_iter().flatten().map(value));
        let ranks = ranks(self.gathered.len());
        self.at(ranks)
    }

    fn of_many(&mut self, series: [&[Delay]; 2], counts: &[u32]) -> Quantiles {
        let Found { wanted, values, ranks } = Found::among(counts);
        let gathered = &mut self.gathered;
        gathered.clear();
        gathered.reserve_exact(values);
        for delays in series {
            delays
                .iter()
                .map(value)
                .filter(|&value| wanted[digit(value)])
                .for_each(|value| gathered.push(value));
        }
        self.at(ranks)
    }

    /// Each rank looks only at what is above the one before.
    fn at(&mut self, ranks: [usize; SHARES.len()]) -> Quantiles {
        let mut from = 0;
        ranks.map(|rank| {
            let (_, &mut value, _) = self.gathered[from..].select_nth_unstable(rank - from);
            from = rank;
            f64::from_bits(value)
        })
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
