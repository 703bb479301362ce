//! Whether stamps of one direction alone are a clock's.

use crate::clocks::clock::{Point, span_s};
use crate::clocks::shelf::Shelf;
use crate::clocks::wraps::{Unwrap, unwrapped};
use crate::store::flow::Direction;
use crate::store::pool::Pool;

/// Stamps of a direction alone that seem to run so many times as fast as time, or as slow, are none.
const STAMPS_OFF_MAX: f64 = 8.0;

/// So many packets of each direction are looked at where both were seen.
const FIRST: usize = 512;

/// Whether a direction's stamps run as fast as the observer's clock.
pub(crate) fn stamps_follow_time(direction: &Direction, pool: &Pool) -> bool {
    let shelf = Shelf::default();
    let points = unwrapped(pool, &shelf, &direction.direct, 1);
    // Random stamps would differ by a quarter of their range, half an hour, from one to the next.
    span_s(&points) >= 1.0
        && points.windows(2).all(|pair| (pair[1].x - pair[0].x).abs() <= 60e6)
        && go_on(&points)
}

/// Whether those of the first packets may, of a direction that the other one speaks for. A clock that is set may go back by more than a queue
/// is long, and what comes within a second may have one stamp.
pub(crate) fn stamps_may_follow_time(direction: &Direction, pool: &Pool) -> bool {
    let mut unwrap = Unwrap::default();
    let first = pool.first(&direction.direct, FIRST);
    let points: Vec<Point> =
        first.iter().map(|sample| Point::at(sample.time_us, unwrap.next(sample.raw))).collect();
    span_s(&points) < 1.0 || go_on(&points)
}

/// A number that stands there always, takes turns with another, counts packets or has another unit goes on far slower or faster than time,
/// or not at all. A queue that fills or drains takes a part of the time, and packets that were sent together are few milliseconds apart.
fn go_on(points: &[Point]) -> bool {
    const PARTS: usize = 16;
    const MOST: f64 = 0.75;
    let ends: Vec<&Point> = points.iter().step_by(points.len() / PARTS + 1).chain(points.last()).collect();
    let (mut whole_us, mut with_time_us) = (0.0, 0.0);
    for part in ends.windows(2) {
        let span_us = part[1].t - part[0].t;
        let stamped_us = span_us - (part[1].x - part[0].x);
        let is_with_time = (span_us / STAMPS_OFF_MAX..=span_us * STAMPS_OFF_MAX).contains(&stamped_us);
        whole_us += span_us;
        with_time_us += if is_with_time { span_us } else { 0.0 };
    }
    with_time_us >= MOST * whole_us
}
