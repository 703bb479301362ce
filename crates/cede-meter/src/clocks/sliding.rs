//! The least readings of a series by slots of time: what delays are counted from where the path itself may change.
//!
//! Source: RFC 6817 keeps the least delay of each minute for ten minutes; here a slot is a tenth of the window. A trace knows what came
//! after: the first window's least counts from its beginning on.

use crate::clocks::clock::Point;
use std::collections::VecDeque;

/// Slots of a window, which reaches back from the end of one.
const SLOTS: i64 = 10;

/// The least reading of each slot that has any, in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    width_us: f64,
    list: Vec<(i64, f64)>,
}

impl Slots {
    /// Of a series, for a window of this length.
    pub(crate) fn of(points: &[Point], window_us: f64) -> Self {
        // Times are microseconds: no window is shorter than one.
        let width_us = window_us.max(1.0) / SLOTS as f64;
        let mut slots = Self { width_us, list: Vec::new() };
        for point in points {
            let slot = slots.slot(point.t);
            match slots.list.last_mut() {
                Some((last, least)) if *last == slot => *least = least.min(point.x),
                _ => slots.list.push((slot, point.x)),
            }
        }
        slots.put_in_order();
        slots
    }

    fn slot(&self, t: f64) -> i64 {
        (t / self.width_us).floor() as i64
    }

    fn put_in_order(&mut self) {
        self.list.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        self.list.dedup_by_key(|(slot, _)| *slot);
    }

    /// Adds what another series of the same clock saw.
    pub(crate) fn add(&mut self, other: &Self) {
        self.width_us = other.width_us;
        self.list.extend(&other.list);
        self.put_in_order();
    }

    /// For each slot the least of the window that ends with it, or of the first window.
    pub(crate) fn bases(&self) -> Bases {
        let first = self.list.first().map_or(0, |(slot, _)| *slot);
        // Readings that grow, each the least from itself on.
        let mut rising: VecDeque<(i64, f64)> = VecDeque::new();
        let (mut ahead, mut bases) = (self.list.iter().peekable(), Vec::with_capacity(self.list.len()));
        for (slot, _) in &self.list {
            let end = (*slot).max(first + SLOTS - 1);
            while let Some(&(next, least)) = ahead.next_if(|(next, _)| *next <= end) {
                while rising.pop_back_if(|(_, other)| *other >= least).is_some() {}
                rising.push_back((next, least));
            }
            while rising.pop_front_if(|(old, _)| *old <= end - SLOTS).is_some() {}
            bases.push((*slot, rising.front().map_or(0.0, |(_, least)| *least)));
        }
        Bases { slots: Self { width_us: self.width_us, list: bases } }
    }
}

/// What readings are counted from, slot by slot.
#[derive(Debug)]
pub(crate) struct Bases {
    slots: Slots,
}

impl Bases {
    /// At a time at which there was a reading.
    pub(crate) fn at(&self, t: f64) -> f64 {
        let found = self.slots.list.binary_search_by_key(&self.slots.slot(t), |(slot, _)| *slot);
        found.map_or(f64::INFINITY, |at| self.slots.list[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by looking at every point of the window.
    fn plainly(points: &[Point], width_us: f64, at: f64) -> f64 {
        let slot = |t: f64| (t / width_us).floor();
        let first = points.iter().map(|point| slot(point.t)).fold(f64::INFINITY, f64::min);
        let end = slot(at).max(first + 9.0);
        let inside = points.iter().filter(|point| (end - 9.0..=end).contains(&slot(point.t)));
        inside.map(|point| point.x).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_base_is_the_least_of_the_window() {
        let mut random = cede_units::Stream::named(1, "sliding");
        for _ in 0..50 {
            let mut t = 0.0;
            let mut point = |silence: f64| {
                t += -silence * (1.0 - random.unit()).ln();
                Point { t, x: random.unit() }
            };
            let mut points: Vec<Point> =
                (0..300).map(|k| point(if k % 40 == 0 { 5e6 } else { 2e5 })).collect();
            let (a, b): (Vec<Point>, Vec<Point>) = points.iter().partition(|point| point.x < 0.3);
            let mut slots = Slots::of(&a, 10e6);
            slots.add(&Slots::of(&b, 10e6));
            let bases = slots.bases();
            points.reverse();
            for point in &points {
                assert_eq!(bases.at(point.t), plainly(&points, 1e6, point.t));
            }
            assert_eq!(Slots::of(&points, 10e6).list, slots.list);
        }
    }

    #[test]
    fn a_window_of_nothing_is_one_of_a_microsecond() {
        let points: Vec<Point> =
            (0..100).map(|k| Point { t: f64::from(k) * 1e4, x: f64::from(k % 7) }).collect();
        let bases = Slots::of(&points, 0.0).bases();
        assert!(points.iter().all(|point| bases.at(point.t) == point.x));
    }
}
