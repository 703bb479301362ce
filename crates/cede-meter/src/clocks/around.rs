//! The flow that a direction is of.

use crate::clocks::about::{self, Said};
use crate::clocks::clock::{self, Point};
use crate::clocks::doubt::How;
use crate::clocks::shelf::{Lent, Shelf};
use crate::clocks::wraps::{WRAP, unwrapped};
use crate::packet::key::Side;
use crate::packet::rtt::Rtt;
use crate::store::flow::{Direction, Flow};
use crate::store::place::ENTRIES_MAX;
use crate::store::pool::Pool;
use crate::store::sample::Sample;
use crate::store::samples::Series;

/// The flow of a direction, as far as it is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub flow: &'a Flow,
    pub side: Side,
    pub pool: &'a Pool,
    /// What points are put into.
    pub shelf: &'a Shelf,
    /// Of so many samples one is.
    pub stride: usize,
    /// Whether what the receiver said of it is.
    pub with_echoed: bool,
}

impl<'a> Around<'a> {
    pub(crate) const fn from(&self) -> &'a Direction {
        &self.flow.sides[self.side]
    }

    pub(crate) const fn to(&self) -> &'a Direction {
        &self.flow.sides[1 - self.side]
    }

    pub(crate) fn is_long(&self, series: &Series) -> bool {
        self.pool.span_us(series) >= clock::DRIFT_SPAN_US_MIN
    }

    /// Readings, but nothing where these are too few to tell how clocks run.
    pub(crate) fn unwrapped_if_many(&self, series: &Series) -> Lent<'a> {
        let are_many = series.len() / self.stride >= clock::POINTS_MIN;
        if are_many { self.unwrapped(series, self.stride) } else { Lent::default() }
    }

    /// Of so many readings one.
    pub(crate) fn unwrapped(&self, series: &Series, stride: usize) -> Lent<'a> {
        unwrapped(self.pool, self.shelf, series, stride)
    }

    /// All samples, but nothing where these are too short to tell a drift.
    pub(crate) fn all_if_long(&self, series: &Series) -> Vec<Sample> {
        if self.is_long(series) { self.pool.all(series) } else { Vec::new() }
    }

    /// Readings, but nothing where these are too few or too short to tell a drift.
    pub(crate) fn unwrapped_if_long(&self, series: &Series) -> Lent<'a> {
        if self.is_long(series) { self.unwrapped_if_many(series) } else { Lent::default() }
    }
}

/// Round trips to who sent a direction, by when they ended.
pub(crate) fn trips(around: &Around<'_>, how: How) -> Vec<Point> {
    let Around { flow, side, pool, .. } = *around;
    let mut trips = Vec::new();
    if how == How::Said {
        // What short flows say they say in every form that they are kept in: nothing.
        let is_short = flow.sides.iter().map(|side| side.direct.len()).sum::<usize>() <= ENTRIES_MAX;
        return if flow.key.is_tcp() || is_short { trips } else { said_trips(around) };
    }
    let trip = |sample: Sample| Point { t: sample.time_us as f64, x: sample.raw.into() };
    pool.each(&flow.sides[1 - side].trips, 1, |sample| trips.push(trip(sample)));
    trips
}

/// As [`trips`], by what the sender says of the packets that it got, and the delays of its own and of these.
fn said_trips(around: &Around<'_>) -> Vec<Point> {
    /// No more than what a round trip is compared with may be off ([`crate::clocks::doubt`]).
    const OPEN_US_MAX: f64 = 20_000.0;
    let (from, to) = (around.from(), around.to());
    let [own, other] = [from, to].map(|direction| around.unwrapped(&direction.direct, 1));
    let mut trips = Vec::new();
    about::each(&Said::all(around.pool, &to.echo), &own, &other, |about| {
        trips.extend(about.filter(|about| about.open_us() <= OPEN_US_MAX).map(|about| {
            let us = about.answer.x + about.said.point.x - about.packet().x;
            Point { t: about.answer.t, x: (us + WRAP / 2.0).rem_euclid(WRAP) - WRAP / 2.0 }
        }));
    });
    trips
}

/// The most that a sender's queue grows: its packets' round trips are known to be shorter than that, where any were timed.
pub(crate) fn growth_us_max(rtt: &Rtt) -> f64 {
    const UNKNOWN_US: f64 = 10e6;
    const LEAST_US: f64 = 1e6;
    if rtt.count == 0 { UNKNOWN_US } else { LEAST_US + 4.0 * rtt.sum_us as f64 / f64::from(rtt.count) }
}
