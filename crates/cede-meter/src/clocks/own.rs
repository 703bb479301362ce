//! A direction's own readings.

use crate::clocks::around::Around;
use crate::clocks::clock::Point;
use crate::clocks::sieve;
use crate::clocks::transmission::PerOctet;
use crate::clocks::wraps::{Unwrap, WRAP};
use crate::packet::Marks;
use crate::packet::length::Length;
use crate::store::low::Low;
use crate::store::sample::Sample;

/// A direction's own readings without their wraps, over time.
pub(crate) struct Own {
    pub points: Vec<Point>,
    /// None where they tell nothing: too few, or all alike as in most directions.
    pub lengths: Vec<Length>,
    /// Whether lengths are those of packets on their way.
    are_of_packets: bool,
}

impl Own {
    pub(crate) fn new(
        points: Vec<Point>,
        lengths: impl AsRef<[Length]> + Into<Vec<Length>>,
        are_of_packets: bool,
    ) -> Self {
        let lengths = if PerOctet::is_worth(lengths.as_ref()) { lengths.into() } else { Vec::new() };
        Self { points, lengths, are_of_packets }
    }

    /// Of each `stride` samples one, and the shortest.
    pub(crate) fn read(around: &Around<'_>) -> Self {
        let Around { flow, pool, shelf, stride, .. } = *around;
        let series = &around.from().direct;
        let count = series.len().div_ceil(stride);
        let mut unwrap = Unwrap::default();
        let (mut points, mut lengths) = (shelf.take(count), Vec::with_capacity(count));
        let mut take = |samples: &[Sample]| {
            points.extend(samples.iter().map(|sample| Point::at(sample.time_us, unwrap.next(sample.raw))));
            lengths.extend(samples.iter().map(|sample| sample.length));
        };
        if stride == 1 {
            pool.each_block(series, take);
        } else {
            let (mut low, mut number) = (Low::default(), 0);
            pool.each(series, 1, |sample| {
                let is_kept = number % stride == 0;
                if low.note(&sample, flow.key.is_tcp(), number / stride, is_kept) || is_kept {
                    take(&[sample]);
                }
                number += 1;
            });
        }
        Self::new(points, lengths, !flow.marks.has(Marks::OFFLOADED))
    }

    /// Counts wraps of the clock as they are counted for another direction of it.
    pub(crate) fn count_wraps_as(&mut self, other: &Point) {
        let Some(first) = self.points.first() else { return };
        let wraps_us = ((other.x - first.x) / WRAP).round() * WRAP;
        if wraps_us != 0.0 {
            self.points.iter_mut().for_each(|point| point.x += wraps_us);
        }
    }

    /// Leaves out packets that others overtook: their times. Lengths that are not those of packets on their way are forgotten: they tell what
    /// is an acknowledgement, and nothing else.
    pub(crate) fn leave_out_overtaken(&mut self) -> Vec<f64> {
        if !self.are_of_packets {
            self.lengths = Vec::new();
        }
        let overtaken = sieve::overtaken(&self.points);
        if overtaken.is_empty() {
            return Vec::new();
        }
        let times = overtaken.iter().map(|&k| self.points[k].t).collect();
        sieve::leave_out(&mut self.points, &overtaken);
        sieve::leave_out(&mut self.lengths, &overtaken);
        times
    }
}
