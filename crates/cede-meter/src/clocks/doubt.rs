//! Whether a delay that changed at once is of a queue, or of a clock that was set: a queue is part of the round trips through it.
//!
//! A round trip between the observer and the sender ends with one of the packets whose delays are judged, and has met the queue that
//! this packet met. So the delay less the round trip holds no queue of the sender's, but both clocks: where it changes as well, a clock
//! was set. That must be more than what senders wait before they answer: a delay that is longer than the round trip it is part of,
//! counted from the least of the other clock, is no queue's at all. A uTP sender that is only acknowledged ends no round trip; but what it says of the packets that it got makes one with the
//! delays of both directions.
//!
//! **What it leaves out.** Clocks that are set by less than the shortest round trip. Clocks that are set while the sender is silent, where the queue that drains meanwhile hides it; clocks that are set while nothing travels both ways within half a minute; a queue on the way to the sender
//! that grows or empties at the same moment, by as much, and stays so, looks like a clock.
//!
//! **How it was validated.** Both kinds of jumps, at both ends, forwards and backwards (`tests/steps.rs`).

use crate::clocks::clock::Point;
use core::cell::OnceCell;

/// Round trips are compared from so long before a jump to so long behind it.
const REACH_US: f64 = 30e6;
/// And so many on either side, at least two.
const TRIPS_MAX: usize = 64;
const TRIPS_MIN: usize = 2;
/// A round trip is compared with the delay of the packet that ended it; where that was left out, with one as near as this.
const SAME_US: f64 = 20_000.0;
/// The part of a jump that must show where there is no queue.
const PART_OF_CLOCK: f64 = 0.5;

/// How a round trip is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// The observer timed it.
    Timed,
    /// The sender said what it measured.
    Said,
}

/// Round trips to who sent a direction, by when they ended; they are looked up where there is a doubt, which is rare.
pub(crate) struct Trips<'a> {
    load: &'a dyn Fn(How) -> Vec<Point>,
    loaded: [OnceCell<Vec<Point>>; 2],
}

impl<'a> Trips<'a> {
    pub(crate) const fn new(load: &'a dyn Fn(How) -> Vec<Point>) -> Self {
        Self { load, loaded: [OnceCell::new(), OnceCell::new()] }
    }

    /// In the order of time, which a clock that was set back disturbs.
    fn all(&self, how: How) -> &[Point] {
        self.loaded[how as usize].get_or_init(|| {
            let mut trips = (self.load)(how);
            if !trips.is_sorted_by(|a, b| a.t <= b.t) {
                trips.sort_by(|a, b| a.t.total_cmp(&b.t));
            }
            trips
        })
    }

    /// Whether delays that changed between two runs of packets did so by a clock; `None` where round trips do not tell.
    pub(crate) fn is_clock(&self, before: &[Point], after: &[Point], doubt: Doubt) -> Option<bool> {
        let by = |how| is_clock(self.all(how), before, after, doubt);
        by(How::Timed).or_else(|| by(How::Said))
    }
}

/// A delay that changed at once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Doubt {
    /// By so much.
    pub change_us: f64,
    /// Where the lower of both lies, the sender's ticks included: no round trip is shorter than what a delay exceeds this by.
    pub least_us: f64,
}

fn is_clock(trips: &[Point], before: &[Point], after: &[Point], doubt: Doubt) -> Option<bool> {
    let Doubt { change_us, least_us } = doubt;
    let (last, next) = (before.last()?.t, after.first()?.t);
    let (early, rest) = trips.split_at(trips.partition_point(|trip| trip.t <= last));
    let early = early.iter().rev().take_while(|trip| trip.t >= last - REACH_US);
    // One that was under way meanwhile was timed by both clocks.
    let late = rest.iter().take_while(|trip| trip.t <= next + REACH_US).filter(|trip| trip.t - trip.x > last);
    let (early, late) = (without_queue(before, early)?, without_queue(after, late)?);
    let (higher, changes) = if change_us > 0.0 { (late, late - early) } else { (early, early - late) };
    // Who answers with the next of its messages, each second say, does so after as long whatever the queue is.
    let is_beyond_queue = higher > least_us + SAME_US;
    Some(is_beyond_queue && changes >= PART_OF_CLOCK * change_us.abs())
}

/// Delays less round trips, the greatest: of that in which the way to the sender and the sender itself took least.
fn without_queue<'a>(points: &[Point], trips: impl Iterator<Item = &'a Point>) -> Option<f64> {
    let told = trips.filter_map(|trip| {
        let at = points.partition_point(|point| point.t < trip.t);
        let near = [at.checked_sub(1), Some(at)].into_iter().flatten().filter_map(|k| points.get(k));
        let point = near.min_by(|a, b| (a.t - trip.t).abs().total_cmp(&(b.t - trip.t).abs()))?;
        ((point.t - trip.t).abs() <= SAME_US).then_some(point.x - trip.x)
    });
    let (count, greatest) =
        told.take(TRIPS_MAX).fold((0, f64::NEG_INFINITY), |(count, most), one| (count + 1, one.max(most)));
    (count >= TRIPS_MIN).then_some(greatest)
}

/// The same of what a receiver said of packets whose direct delays are of one constant: whether what both are apart changed at once, and as
/// much in the middle of the nearest packets on either side. One that was said late or of another packet is among them, and is no clock.
pub(crate) fn is_apart(before: &[Point], after: &[Point], direct: &[Point], doubt: Doubt) -> Option<bool> {
    const NEAREST: usize = 7;
    /// Before, one suffices: where the piece has just begun.
    const LATER_MIN: usize = 3;
    let apart = |said: &Point| {
        let at = direct.partition_point(|packet| packet.t < said.t);
        direct.get(at).filter(|packet| packet.t == said.t).map(|packet| said.x - packet.x)
    };
    let middle = |mut apart: Vec<f64>, least: usize| {
        let middle = apart.len() / 2;
        (apart.len() >= least).then(|| *apart.select_nth_unstable_by(middle, f64::total_cmp).1)
    };
    let early = middle(before.iter().rev().filter_map(apart).take(NEAREST).collect(), 1)?;
    let late = middle(after.iter().filter_map(apart).take(NEAREST).collect(), LATER_MIN)?;
    let at_once = apart(after.first()?)? - apart(before.last()?)?;
    let is_of_both = (late - early - at_once).abs() <= PART_OF_CLOCK * at_once.abs();
    Some(is_of_both && at_once.abs() >= PART_OF_CLOCK * doubt.change_us.abs())
}
