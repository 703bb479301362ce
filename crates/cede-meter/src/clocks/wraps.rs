//! Readings of 32 bits, followed over their wraps.

use crate::clocks::clock::Point;
use crate::clocks::shelf::{Lent, Shelf};
use crate::store::pool::Pool;
use crate::store::samples::Series;

/// Readings of 32 bits begin anew after so many.
pub(crate) const WRAP: f64 = (1_u64 << 32) as f64;

/// Follows readings of 32 bits over their wraps.
#[derive(Default)]
pub(crate) struct Unwrap {
    value: i64,
    last: Option<u32>,
}

impl Unwrap {
    pub(crate) fn next(&mut self, raw: u32) -> f64 {
        let step = |last: u32| i64::from(raw.wrapping_sub(last).cast_signed());
        // The first is taken as a number with a sign, as the differences are that follow.
        self.value += self.last.map_or(i64::from(raw.cast_signed()), step);
        self.last = Some(raw);
        self.value as f64
    }
}

/// Readings without their wraps, over time: of each so many one, where there is no room for all.
pub(crate) fn unwrapped<'a>(pool: &Pool, shelf: &'a Shelf, series: &Series, stride: usize) -> Lent<'a> {
    let mut unwrap = Unwrap::default();
    let mut points = shelf.lend(series.len().div_ceil(stride));
    pool.each(series, stride, |sample| points.push(Point::at(sample.time_us, unwrap.next(sample.raw))));
    points
}
