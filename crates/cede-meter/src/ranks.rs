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

/// Memory that one series leaves to the next.
#[derive(Default)]
pub(crate) struct Ranks {
    values: Vec<u64>,
    counts: Vec<u32>,
}

/// Bits of numbers that are not negative are in the numbers' order, and compared faster.
fn values(delays: [&[Delay]; 2]) -> impl Iterator<Item = u64> {
    let bits = |delay: &Delay| (delay.queue_us + 0.0).to_bits();
    delays.into_iter().flatten().map(bits)
}

#[inline]
fn digit(value: u64) -> usize {
    ((value >> SHIFT).saturating_sub(FIRST - 1) as usize).min(COUNTS - 1)
}

impl Ranks {
    /// The values of the nearest ranks for shares that grow, among all of two series together, which are not both empty.
    pub(crate) fn of<const N: usize>(&mut self, delays: [&[Delay]; 2], shares: [f64; N]) -> [f64; N] {
        let len = delays[0].len() + delays[1].len();
        let mut ranks = shares.map(|share| ((share * len as f64).ceil() as usize).clamp(1, len) - 1);
        self.values.clear();
        if len < FEW {
            self.values.extend(values(delays));
        } else {
            self.gather(delays, &mut ranks);
        }
        let mut from = 0;
        ranks.map(|rank| {
            // Each looks only at what is above the one before.
            let (_, &mut value, _) = self.values[from..].select_nth_unstable(rank - from);
            from = rank;
            f64::from_bits(value)
        })
    }

    /// Gathers those among which ranks are, and turns these into ranks among them.
    fn gather(&mut self, delays: [&[Delay]; 2], ranks: &mut [usize]) {
        let Self { values: gathered, counts } = self;
        counts.clear();
        counts.resize(COUNTS, 0);
        values(delays).for_each(|value| counts[digit(value)] += 1);
        let (mut below, mut left_out) = (0, 0);
        let mut wanted = [false; COUNTS];
        let mut ahead = ranks.iter_mut().peekable();
        for (count, is_wanted) in counts.iter().zip(&mut wanted) {
            below += *count as usize;
            while let Some(rank) = ahead.next_if(|rank| **rank < below) {
                *rank -= left_out;
                *is_wanted = true;
            }
            left_out += if *is_wanted { 0 } else { *count as usize };
        }
        gathered.reserve_exact(below - left_out);
        values(delays).filter(|&value| wanted[digit(value)]).for_each(|value| gathered.push(value));
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
        let shares = [0.0, 0.5, 0.95, 0.99, 1.0];
        for (len, scale) in
            [(1, 1e3), (7, 1e3), (1_000, 1e6), (40_000, 1e6), (50_000, 0.01), (60_000, 1e10), (70_000, 0.0)]
        {
            let mut delay = |k: u64| {
                let queue_us =
                    [stream.exponential(scale.max(1e-9)), 300.0 * scale][usize::from(stream.below(3) == 0)];
                Delay { time_us: k, queue_us: if scale == 0.0 { -0.0 } else { queue_us } }
            };
            let delays: Vec<Delay> = (0..len).map(&mut delay).collect();
            let mut sorted: Vec<f64> = delays.iter().map(|delay| delay.queue_us + 0.0).collect();
            sorted.sort_by(f64::total_cmp);
            let expected =
                shares.map(|share| sorted[((share * len as f64).ceil() as usize).clamp(1, len as usize) - 1]);
            let (a, b) = delays.split_at(len as usize / 3);
            assert_eq!(
                ranks.of([a, b], shares).map(f64::to_bits),
                expected.map(f64::to_bits),
                "{len} {scale}"
            );
        }
    }
}
