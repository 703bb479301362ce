//! A direction's readings in pieces with one constant each, and the delays that they come to.

use crate::clocks::clock::Point;
use crate::clocks::doubt::{Doubt, Trips, is_apart};
use crate::clocks::shelf::Shelf;
use crate::clocks::sliding::Slots;
use crate::config::Base;
use crate::packet::rtt::Rtt;
use crate::stats::delay::Delay;
use core::ops::Range;

/// A silence after which a 32-bit clock of microseconds cannot be followed any more.
const SILENCE_US_MAX: f64 = 30.0 * 60e6;
/// A jump of one clock against the other that no queue makes.
const STEP_US: f64 = 10e6;
/// A clock that is so far behind what it said before was set back: packets that were merely overtaken are left out before
/// ([`super::sieve`]). Less is slewed (NTP steps from 128 ms on).
const SET_BACK_US: f64 = 100_000.0;
/// What falls by more than this below a base that was confirmed is a clock's if round trips say so.
const BASE_FALL_US: f64 = 200_000.0;
/// The observer's clock that is set back by more than this shows two packets in the wrong order.
const OBSERVER_BACK_US: f64 = 50_000.0;
/// A queue is part of the round trips through it. Delays that are this many times as long on average, and more, are no queue's.
const ROUND_TRIPS_MAX: f64 = 2.0;
const ROUND_TRIPS_MORE_US: f64 = 100_000.0;
/// Then a jump of a second, or of as many round trips, is of a clock that was set.
const JUMP_US_MIN: f64 = 1e6;
/// A delay this near the base confirms it; in as many seconds as that it is held for sure.
pub(crate) const NEAR_BASE_US: f64 = 3_000.0;
const CONFIRMED_SECONDS: u32 = 3;
/// A direction's delays with an unknown constant in them, in pieces with one constant each.
#[derive(Debug, Default)]
pub(crate) struct Track {
    pub pieces: Vec<Piece>,
    /// One tick of the sender's clock; zero where it is finer than the observer's.
    pub tick_us: f64,
    /// Delays are longer than the round trips that they are part of.
    pub is_beyond_round_trips: bool,
    /// Whether others saw the queue empty where the base is, where that is known from them.
    pub confirmed_by_others: Option<bool>,
    /// What all directions of the sender's clock saw, slot by slot, where that is asked for and known.
    pub shared: Option<Slots>,
}

/// Points that share a base.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub points: Vec<Point>,
    pub base: f64,
    /// Different seconds in which the delay was near the base.
    pub revisits: u32,
    pub near_base: u32,
    /// How far they are above it, together.
    near_base_us: f64,
    /// How far above the base the middle of the ticks is, where that is known.
    pub middle: Option<f64>,
}

impl Track {
    /// Cuts a series wherever its constant changes; packets that are seen directly are in the order of their stamps.
    pub(crate) fn direct(points: Vec<Point>, tick_us: f64, trips: &Trips<'_>) -> Self {
        let is_clock = |before: &[Point], after: &[Point], doubt| trips.is_clock(before, after, doubt);
        Self::new(points, tick_us, SET_BACK_US + tick_us, is_clock)
    }

    /// The same of what a receiver said. Where one constant holds for the direct series throughout, a clock that was set is the
    /// receiver's, and shows in what both are apart.
    pub(crate) fn echoed(points: Vec<Point>, direct: &Self, trips: &Trips<'_>) -> Self {
        let is_clock = |before: &[Point], after: &[Point], doubt| {
            let by_both = || {
                if let [piece] = &direct.pieces[..] {
                    is_apart(before, after, &piece.points, doubt)
                } else {
                    None
                }
            };
            by_both().or_else(|| trips.is_clock(before, after, doubt))
        };
        Self::new(points, direct.tick_us, STEP_US, is_clock)
    }

    fn new(points: Vec<Point>, tick_us: f64, step_us: f64, is_clock: impl IsClock) -> Self {
        if points.is_empty() {
            return Self { tick_us, ..Self::default() };
        }
        Self::cut(points, tick_us, &Watch { step_us, jump_us: f64::INFINITY, ..Watch::default() }, is_clock)
    }

    fn cut(points: Vec<Point>, tick_us: f64, begin: &Watch, is_clock: impl IsClock) -> Self {
        let mut watch = begin.clone();
        // Where pieces end, and their bases.
        let (mut cuts, mut piece) = (Vec::new(), 0);
        let mut k = 0;
        while let Some(&point) = points.get(k) {
            let breaks = match watch.change(point, tick_us) {
                Change::Usual => false,
                Change::Step => true,
                Change::Doubtful(doubt) => is_clock(&points[piece..k], &points[k..], doubt) == Some(true),
            };
            if breaks {
                cuts.push((k, watch.base));
                piece = k;
                watch = begin.clone();
            }
            watch.push(point, tick_us);
            k += 1;
            k += watch.follow(&points[k..], tick_us);
        }
        Self { pieces: pieces(points, &cuts, watch.base, tick_us), tick_us, ..Self::default() }
    }

    /// Holds delays against the round trips that they are part of. Where they are longer, clocks were set by less than silences
    /// explain: every jump that round trips do not is cut, of which one that stays is such a step.
    pub(crate) fn hold_against(&mut self, rtt: &Rtt, trips: &Trips<'_>) {
        let Some(round_trip_us) = rtt.over_time_us() else { return };
        let limit_us = ROUND_TRIPS_MAX * round_trip_us + ROUND_TRIPS_MORE_US;
        if self.mean_us() <= limit_us {
            return;
        }
        if let [piece] = &mut self.pieces[..] {
            let points = core::mem::take(&mut piece.points);
            let jump_us = limit_us.max(JUMP_US_MIN);
            let step_us = SET_BACK_US + self.tick_us;
            let is_clock = |before: &[Point], after: &[Point], doubt| trips.is_clock(before, after, doubt);
            *self =
                Self::cut(points, self.tick_us, &Watch { step_us, jump_us, ..Watch::default() }, is_clock);
        }
        self.is_beyond_round_trips = self.mean_us() > limit_us;
    }

    /// The mean delay, of so many points that they tell.
    fn mean_us(&self) -> f64 {
        const ENOUGH: usize = 512;
        let stride = self.pieces.iter().map(|piece| piece.points.len()).sum::<usize>() / ENOUGH + 1;
        let (mut sum, mut count) = (0.0, 0);
        for piece in &self.pieces {
            let points = piece.points.iter().step_by(stride);
            count += points.len();
            sum += points.map(|point| point.x - piece.base).sum::<f64>();
        }
        sum / count.max(1) as f64
    }

    /// Takes a slope out of all points, counted from an origin or from each piece's first. What the clock gained is in a packet's
    /// stamp since it was sent, not since it arrived: a delay of six seconds differs by 0.6 ms at 100 ppm.
    pub(crate) fn straighten(&mut self, ppm: f64, origin: Option<Point>) {
        let slope = ppm / 1e6;
        for piece in &mut self.pieces {
            let Some(from) = origin.or_else(|| piece.points.first().copied()) else { continue };
            let straight = |point: &Point| (point.x - from.x - slope * (point.t - from.t)) / (1.0 - slope);
            piece.points.iter_mut().for_each(|point| point.x = from.x + straight(point));
        }
        self.find_bases();
    }

    pub(crate) fn find_bases(&mut self) {
        for piece in &mut self.pieces {
            let base = piece.points.iter().map(|point| point.x).fold(f64::INFINITY, f64::min);
            piece.set_base(base, self.tick_us);
        }
    }

    /// What delays are counted from is known from elsewhere; it is believed where the base does not contradict it.
    pub(crate) fn set_zero(&mut self, zero: f64, ticks_max: f64) {
        let reach = self.tick_us * ticks_max;
        if let [piece] = &mut self.pieces[..]
            && (zero - piece.base).abs() <= reach
        {
            piece.middle = Some(zero - piece.base);
        }
    }

    pub(crate) fn only_zero(&self) -> Option<f64> {
        if let [piece] = &self.pieces[..] { Some(piece.zero(self.tick_us)) } else { None }
    }

    /// The only piece's readings slot by slot, where there is one piece.
    pub(crate) fn only_slots(&self, window_us: u64) -> Option<Slots> {
        if let [piece] = &self.pieces[..] { Some(Slots::of(&piece.points, window_us as f64)) } else { None }
    }

    /// The only piece's base, where there is one piece.
    pub(crate) fn only_base(&self) -> Option<f64> {
        if let [piece] = &self.pieces[..] { Some(piece.base) } else { None }
    }

    /// Lowers the only piece's base to one that is known from elsewhere.
    pub(crate) fn lower_base(&mut self, base: f64) {
        if let [piece] = &mut self.pieces[..] {
            piece.set_base(base, self.tick_us);
        }
    }

    /// Whether any piece's base was met in one short time only.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        let is_alone = || self.pieces.iter().any(|piece| piece.revisits < 2);
        self.confirmed_by_others.map_or_else(is_alone, |is_confirmed| !is_confirmed)
    }

    /// Puts the delays of packets that were seen at these times, in the order of the points, behind what is there. The points are given
    /// up, and their room put back; what is known of pieces stays. Returns what is said `of_all`, those of other times among them.
    pub(crate) fn take_delays_within<T>(
        &mut self,
        within: Option<&Range<u64>>,
        base: Base,
        (delays, shelf): (&mut Vec<Delay>, &Shelf),
        of_all: impl FnOnce(&[Delay]) -> T,
    ) -> T {
        let before = delays.len();
        self.take_delays(base, delays, shelf);
        let said = of_all(&delays[before..]);
        if let Some(within) = within {
            let mut k = 0;
            delays.retain(|delay| {
                k += 1;
                k <= before || within.contains(&delay.time_us)
            });
        }
        said
    }

    /// As [`Self::take_delays_within`], of all times.
    pub(crate) fn take_delays(&mut self, base: Base, delays: &mut Vec<Delay>, shelf: &Shelf) {
        let delay = |point: &Point, zero: f64| Delay {
            time_us: point.time_us(),
            queue_us: (point.x - zero).max(0.0),
        };
        for piece in &mut self.pieces {
            let zero = piece.zero(self.tick_us);
            let mut least = f64::INFINITY;
            let points = core::mem::take(&mut piece.points);
            match base {
                Base::Sliding(window_us) => {
                    let slots = self.shared.take().unwrap_or_else(|| Slots::of(&points, window_us as f64));
                    let (bases, above) = (slots.bases(), zero - piece.base);
                    delays.extend(points.iter().map(|point| delay(point, bases.at(point.t) + above)));
                }
                Base::Whole => delays.extend(points.iter().map(|point| delay(point, zero))),
                Base::Running => delays.extend(points.iter().map(|point| {
                    least = least.min(point.x);
                    delay(point, least)
                })),
            }
            shelf.put(points);
        }
    }
}

/// Whether delays that changed between two runs of packets did so by a clock; `None` where that cannot be told.
trait IsClock: Fn(&[Point], &[Point], Doubt) -> Option<bool> {}

impl<F: Fn(&[Point], &[Point], Doubt) -> Option<bool>> IsClock for F {}

/// Cuts points where pieces end whose bases are told, the last one's beside.
fn pieces(mut points: Vec<Point>, cuts: &[(usize, f64)], last: f64, tick_us: f64) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(cuts.len() + 1);
    let mut base = last;
    for &(cut, before) in cuts.iter().rev() {
        pieces.push(Piece::of(points.split_off(cut), base, tick_us));
        base = before;
    }
    pieces.push(Piece::of(points, base, tick_us));
    pieces.reverse();
    pieces
}

impl Piece {
    fn of(points: Vec<Point>, base: f64, tick_us: f64) -> Self {
        let mut piece = Self { points, ..Self::default() };
        piece.set_base(base, tick_us);
        piece
    }

    fn set_base(&mut self, base: f64, tick_us: f64) {
        let (mut second, mut tick) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        let (mut revisits, mut near_base, mut near_base_us) = (0, 0, 0.0);
        for point in &self.points {
            let above_us = point.x - base;
            // Packets of one moment are at the same place within a tick.
            if above_us <= tick_us && point.t - tick >= tick_us {
                (near_base, tick) = (near_base + 1, point.t);
                near_base_us += above_us;
            }
            // Rarely so long after the one before.
            if point.t - second >= 1e6 && above_us <= NEAR_BASE_US + tick_us {
                (revisits, second) = (revisits + 1, point.t);
            }
        }
        let points = core::mem::take(&mut self.points);
        *self = Self { points, base, revisits, near_base, near_base_us, middle: None };
    }

    /// What delays are counted from. A clock with ticks is half a tick slow on average, and at the base, the least of
    /// many, by less; but a sender whose period is a number of ticks is always as slow.
    pub(crate) fn zero(&self, tick_us: f64) -> f64 {
        let near_base = f64::from(self.near_base);
        let expected = tick_us * (0.5 - 1.0 / (near_base + 1.0)).max(0.0);
        let met = self.near_base_us / near_base.max(1.0);
        self.base + self.middle.unwrap_or(expected.min(met))
    }
}

/// Follows a series to find where its constant changes.
#[derive(Clone, Default)]
struct Watch {
    /// By so much a delay may grow beyond the time that passes.
    step_us: f64,
    /// And by so much at once, either way.
    jump_us: f64,
    last: Option<Point>,
    base: f64,
    confirmations: u32,
    confirmed_at: f64,
}

/// How a delay differs from the one before it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Change {
    Usual,
    /// As no queue's does.
    Step,
    /// It may be a queue's or a clock's.
    Doubtful(Doubt),
}

impl Watch {
    /// Passes over points up to the first that is to be looked at: how many. As nearly all are, these are like the one before, so that
    /// [`Self::change`] would call them usual, and tell nothing of the base.
    fn follow(&mut self, points: &[Point], tick_us: f64) -> usize {
        let Some(mut last) = self.last else { return 0 };
        let change_us = self.step_us.min(self.jump_us).min(STEP_US).min(SET_BACK_US + tick_us);
        let (base, since) = (self.base, self.confirmed_at);
        let near = base + NEAR_BASE_US + tick_us;
        let is_calm = |point: &&Point| {
            let (silence, before) = (point.t - last.t, last);
            last = **point;
            (0.0..=SILENCE_US_MAX).contains(&silence)
                && (last.x - before.x).abs() <= change_us
                && last.x >= base
                && (last.t - since < 1e6 || last.x >= near)
        };
        let count = points.iter().take_while(is_calm).count();
        self.last = count.checked_sub(1).map_or(self.last, |newest| Some(points[newest]));
        count
    }

    fn change(&self, point: Point, tick_us: f64) -> Change {
        let Some(last) = self.last else { return Change::Usual };
        let (silence, change) = (point.t - last.t, point.x - last.x);
        // Packets do not overtake each other in a queue: a delay grows no faster than time passes.
        if silence > SILENCE_US_MAX
            || change > silence.max(0.0) + self.step_us
            || change < -STEP_US
            || change.abs() > self.jump_us
            || silence < -OBSERVER_BACK_US && change < -OBSERVER_BACK_US - tick_us
        {
            return Change::Step;
        }
        // The observer's clock that is set forward makes time pass, too.
        if change > SET_BACK_US + tick_us {
            return Change::Doubtful(Doubt { change_us: change, least_us: self.base + tick_us });
        }
        let falls_us = self.base - point.x;
        if self.confirmations >= CONFIRMED_SECONDS && falls_us > BASE_FALL_US + tick_us {
            return Change::Doubtful(Doubt { change_us: -falls_us, least_us: point.x + tick_us });
        }
        Change::Usual
    }

    fn push(&mut self, point: Point, tick_us: f64) {
        if self.last.is_none() || point.x < self.base - NEAR_BASE_US - tick_us {
            (self.base, self.confirmations, self.confirmed_at) = (point.x, 1, point.t);
        } else if point.x < self.base + NEAR_BASE_US + tick_us && point.t - self.confirmed_at >= 1e6 {
            (self.confirmations, self.confirmed_at) = (self.confirmations + 1, point.t);
        }
        self.base = self.base.min(point.x);
        self.last = Some(point);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::doubt::How;

    /// A packet each 300 ms, of a queue that grows and falls by a tenth of a second from one to the next; round trips that show
    /// nothing of it, as those that ended with other packets.
    #[test]
    fn what_a_receiver_says_is_cut_by_its_own_clock_not_by_a_queue_that_both_show() {
        let direct = |k: u32| Point { t: 1e12 + f64::from(k) * 3e5, x: 4e6 + 12e4 * f64::from(k % 10) };
        let points: Vec<Point> = (0..200).map(direct).collect();
        let load = |_: How| points.iter().map(|point| Point { x: 3e4, ..*point }).collect::<Vec<_>>();
        let cuts = |set_us: f64, late_us: f64| {
            let said = |(k, point): (usize, &Point)| {
                let (set_us, late_us) =
                    (if k < 100 { 0.0 } else { set_us }, if k == 50 { late_us } else { 0.0 });
                Point { x: point.x + 3e6 + set_us + late_us, ..*point }
            };
            let trips = Trips::new(&load);
            let direct =
                Track { pieces: pieces(points.clone(), &[], 4e6, 1e3), tick_us: 1e3, ..Track::default() };
            let echoed = points.iter().enumerate().map(said).collect();
            Track::echoed(echoed, &direct, &trips).pieces.len()
        };
        assert_eq!((cuts(0.0, 0.0), cuts(0.0, 256_000.0)), (1, 1), "a queue, and one that was said late");
        assert_eq!((cuts(2e6, 0.0), cuts(-2e6, 0.0)), (2, 2), "the receiver's clock was set");
    }
}
