//! Delays of many flows in the order of time, slot of time by slot: each flow's are in order already.

use crate::summary::Delay;

/// Bits of a time that are looked at together where delays are put in order: their counters stay in a processor's own cache.
const DIGIT_BITS: u32 = 8;
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

/// Memory for the delays of a slot.
#[derive(Default)]
pub(crate) struct Slots {
    slots: [Vec<Delay>; 2],
    room: Vec<Delay>,
}

impl Slots {
    /// Hands over both series in the order of time, slot by slot; delays of one time in the order in which they are there.
    pub(crate) fn each(&mut self, series: [&[Delay]; 2], mut take: impl FnMut(&[Delay], &[Delay])) {
        if let [a, []] | [[], a] = series
            && a.is_sorted_by_key(|delay| delay.time_us)
        {
            return take(series[0], series[1]);
        }
        let mut runs = series.map(runs);
        let count = runs[0].len() + runs[1].len();
        let samples = series[0].len() + series[1].len();
        let ends = runs.iter().flatten().filter_map(|run| Some((run.first()?.time_us, run.last()?.time_us)));
        let Some((first, last)) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return };
        let slots = (samples / SLOT).min(ASKED_MAX * samples / count).max(1) as u64;
        let slot_us = (last - first) / slots + 1;
        let mut begin = first;
        while begin <= last {
            for (slot, runs) in self.slots.iter_mut().zip(&mut runs) {
                slot.clear();
                runs.iter_mut().for_each(|run| move_front(run, begin + slot_us, slot));
                sort(slot, &mut self.room, begin, slot_us);
            }
            take(&self.slots[0], &self.slots[1]);
            begin += slot_us;
        }
    }
}

/// The parts of a series that are in order.
fn runs(delays: &[Delay]) -> Vec<&[Delay]> {
    delays.chunk_by(|a, b| a.time_us <= b.time_us).collect()
}

/// Moves what is before a time from the front of a run to a slot.
fn move_front(run: &mut &[Delay], end_us: u64, slot: &mut Vec<Delay>) {
    let count = run.iter().position(|delay| delay.time_us >= end_us).unwrap_or(run.len());
    let (front, rest) = run.split_at(count);
    slot.extend_from_slice(front);
    *run = rest;
}

/// Delays are counted by the digits of their times, the lowest first, as in LSD radix sort.
fn sort(delays: &mut [Delay], room: &mut Vec<Delay>, first: u64, span_us: u64) {
    if delays.len() < BY_DIGITS_MIN || delays.is_sorted_by_key(|delay| delay.time_us) {
        return put_in_order(delays);
    }
    room.resize(delays.len().max(room.len()), Delay { time_us: 0, queue_us: 0.0 });
    let (mut from, mut to) = (delays, &mut room[..]);
    let mut is_in_room = false;
    for shift in (0..u64::BITS - span_us.leading_zeros()).step_by(DIGIT_BITS as usize) {
        let digit = |delay: &Delay| ((delay.time_us - first) >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        to = &mut to[..from.len()];
        scatter(from, to, digit);
        core::mem::swap(&mut from, &mut to);
        is_in_room = !is_in_room;
    }
    if is_in_room {
        to.copy_from_slice(from);
    }
}

/// Puts delays in the order of a digit.
fn scatter(delays: &[Delay], to: &mut [Delay], digit: impl Fn(&Delay) -> usize) {
    let mut places = [0_u32; 1 << DIGIT_BITS];
    delays.iter().for_each(|delay| places[digit(delay)] += 1);
    let mut passed = 0;
    for place in &mut places {
        passed += core::mem::replace(place, passed);
    }
    for delay in delays {
        let place = &mut places[digit(delay)];
        to[*place as usize] = *delay;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_of_any_number_come_in_order_and_those_of_one_time_stay() {
        let mut stream = cede_units::Stream::named(3, "order");
        let mut slots = Slots::default();
        for (len, span_us) in
            [(0, 9), (2, 9), (200, 50), (300, 1 << 40), (5_000, 100), (70_000, 1 << 24), (9_000, 1)]
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
