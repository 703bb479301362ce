//! Delays of many flows in the order of time, slot of time by slot: each flow's are in order already.
//!
//! Source: LSD radix sort (Knuth, The Art of Computer Programming, volume 3, section 5.2.5), whose first pass takes delays from where they
//! are, and whose digits are all counted beforehand.

use crate::stats::delay::Delay;
use core::ops::Range;

/// Bits of a time that are looked at together where delays are put in order: their counters stay in a processor's own cache.
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Fewer are compared with each other.
const BY_DIGITS_MIN: usize = 256;
/// About so many are in a slot, so that they stay in its own cache as well.
const SLOT: usize = 1 << 12;
/// Of each slot every run is asked; so often in all for each delay.
const ASKED_MAX: usize = 4;

/// Puts delays in the order of time; those of one time stay as they are.
pub(crate) fn put_in_order(delays: &mut [Delay]) {
    if !delays.is_sorted_by_key(|delay| delay.time_us) {
        delays.sort_by_key(|delay| delay.time_us);
    }
}

/// Memory for the delays of a slot, of two series.
#[derive(Default)]
pub(crate) struct Slots {
    slots: [Slot; 2],
}

impl Slots {
    /// Hands over both series in the order of time, slot by slot; delays of one time in the order in which they are there.
    pub(crate) fn each(&mut self, series: [&[Delay]; 2], mut take: impl FnMut(&[Delay], &[Delay])) {
        if let [a, []] | [[], a] = series
            && a.is_sorted_by_key(|delay| delay.time_us)
        {
            return take(series[0], series[1]);
        }
        let [mut runs_a, mut runs_b] = series.map(runs);
        let count = runs_a.len() + runs_b.len();
        let samples = series[0].len() + series[1].len();
        let runs = || runs_a.iter().chain(&runs_b);
        let ends = runs().filter_map(|run| Some((run.first()?.time_us, run.last()?.time_us)));
        let Some((first, last)) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return };
        let slots = (samples / SLOT).min(ASKED_MAX * samples / count).max(1);
        let slot_us = (last - first) / slots as u64 + 1;
        let fill = if samples / slots < BY_DIGITS_MIN { Slot::fill_few } else { fill_by(slot_us) };
        let [a, b] = &mut self.slots;
        let mut begin = first;
        while begin <= last {
            let within = begin..begin + slot_us;
            take(fill(a, &mut runs_a, &within), fill(b, &mut runs_b, &within));
            begin += slot_us;
        }
    }
}

/// The parts of a series that are in order.
fn runs(delays: &[Delay]) -> Vec<&[Delay]> {
    delays.chunk_by(|a, b| a.time_us <= b.time_us).collect()
}

/// Moves what is within a slot from the front of runs there, in the order of time: all of it.
type Fill = for<'a> fn(&'a mut Slot, &mut [&[Delay]], &Range<u64>) -> &'a [Delay];

/// By as many digits as the times within a slot have.
fn fill_by(slot_us: u64) -> Fill {
    match (slot_us - 1).checked_ilog2().unwrap_or(0) / DIGIT_BITS {
        0 => Slot::fill::<1>,
        1 => Slot::fill::<2>,
        2 => Slot::fill::<3>,
        3 => Slot::fill::<4>,
        _ => Slot::fill_few,
    }
}

/// Memory for the delays of a slot, twice.
#[derive(Default)]
struct Slot([Vec<Delay>; 2]);

impl Slot {
    fn fill_few<'a>(&'a mut self, runs: &mut [&[Delay]], within: &Range<u64>) -> &'a [Delay] {
        let slot = &mut self.0[0];
        slot.clear();
        for run in runs {
            let (front, rest) =
                run.split_at(run.iter().take_while(|delay| delay.time_us < within.end).count());
            slot.extend_from_slice(front);
            *run = rest;
        }
        put_in_order(slot);
        slot
    }

    fn fill<'a, const COUNT: usize>(&'a mut self, runs: &mut [&[Delay]], within: &Range<u64>) -> &'a [Delay] {
        let digit = |delay: &Delay, k: usize| {
            ((delay.time_us - within.start) >> (k as u32 * DIGIT_BITS)) as usize % DIGITS
        };
        let is_within = |delay: &&Delay| delay.time_us < within.end;
        let mut places = [[0_u32; DIGITS]; COUNT];
        for delay in runs.iter().flat_map(|run| run.iter().take_while(is_within)) {
            places.iter_mut().zip(0..).for_each(|(places, k)| places[digit(delay, k)] += 1);
        }
        let count = places.iter_mut().map(begin).max().unwrap_or(0);
        let [mut from, mut to] = self.0.each_mut().map(|room| {
            room.resize(room.len().max(count), Delay { time_us: 0, queue_us: 0.0 });
            &mut room[..count]
        });
        for run in runs {
            let mut rest = *run;
            while let Some((delay, behind)) = rest.split_first()
                && is_within(&delay)
            {
                put(delay, &mut places[0][digit(delay, 0)], from);
                rest = behind;
            }
            *run = rest;
        }
        for (places, k) in places.iter_mut().zip(0..).skip(1) {
            from.iter().for_each(|delay| put(delay, &mut places[digit(delay, k)], to));
            core::mem::swap(&mut from, &mut to);
        }
        from
    }
}

/// Where each digit's begin, of so many of each; how many there are in all.
fn begin(places: &mut [u32; DIGITS]) -> usize {
    let mut passed = 0;
    places.iter_mut().for_each(|place| passed += core::mem::replace(place, passed));
    passed as usize
}

#[inline(always)]
fn put(delay: &Delay, place: &mut u32, to: &mut [Delay]) {
    to[*place as usize] = *delay;
    *place += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_of_any_number_come_in_order_and_those_of_one_time_stay() {
        let mut stream = cede_units::Stream::named(3, "order");
        let mut slots = Slots::default();
        for (len, span_us) in
            // By all numbers of digits, and by none.
            [
                (0, 9),
                (2, 9),
                (200, 50),
                (300, 1 << 40),
                (5_000, 100),
                (6_000, 1 << 16),
                (70_000, 1 << 24),
                (8_000, 1 << 30),
                (9_000, 1),
            ]
        {
            // Flows one behind the other, each in its own order or nearly.
            let mut series: [Vec<Delay>; 2] = Default::default();
            for k in 0..len {
                let time_us = (k % 1_000) * span_us / 1_000 + stream.below(1 + span_us / 500);
                let delay = Delay { time_us: (1 << 50) + time_us, queue_us: k as f64 };
                series[usize::from(stream.below(5) == 0)].push(delay);
            }
            let mut come: [Vec<Delay>; 2] = Default::default();
            slots.each([&series[0], &series[1]], |a, b| {
                let times = || a.iter().chain(b).map(|delay| delay.time_us);
                let before = come.iter().flatten().map(|delay| delay.time_us).max();
                assert!(times().all(|time| before.is_none_or(|before| before < time)));
                come[0].extend(a);
                come[1].extend(b);
            });
            series.iter_mut().for_each(|delays| put_in_order(delays));
            assert!(come == series, "{len} {span_us}");
        }
    }
}
