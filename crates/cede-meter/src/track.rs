//! From raw samples of one direction to queueing delays.

use crate::clock::{self, Point, RATE_ASSUMED_HZ, Rate};
use crate::flow::{Direction, Flow};
use crate::key::Side;
use crate::meter::Base;
use crate::samples::{Pool, Sample};
use crate::summary::Delay;

/// A silence after which a 32-bit clock of microseconds cannot be followed any more.
const SILENCE_US_MAX: f64 = 30.0 * 60e6;
/// A jump of one clock against the other that no queue makes.
const STEP_US: f64 = 10e6;
/// A base that was confirmed does not fall by more than this but by a step.
const BASE_FALL_US: f64 = 200_000.0;
/// A delay this near the base confirms it; in as many seconds as that it is held for sure.
const NEAR_BASE_US: f64 = 3_000.0;
const CONFIRMED_SECONDS: u32 = 3;
/// Below this a drift makes no difference, and is within the error of its own measurement.
const DRIFT_PPM_MIN: f64 = 5.0;

/// A direction's delays with an unknown constant in them, in pieces with one constant each.
#[derive(Debug, Default)]
pub(crate) struct Track {
    pub pieces: Vec<Piece>,
    /// One tick of the sender's clock; zero where it is finer than the observer's.
    pub tick_us: f64,
}

/// Points that share a base.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub points: Vec<Point>,
    pub base: f64,
    /// Different seconds in which the delay was near the base.
    pub revisits: u32,
    near_base: u32,
}

impl Track {
    /// Cuts a series wherever its constant changes.
    pub(crate) fn new(points: &[Point], tick_us: f64) -> Self {
        let mut pieces = Vec::new();
        let mut current = Watch::default();
        for &point in points {
            if current.breaks(point, tick_us) {
                pieces.push(core::mem::take(&mut current).points);
            }
            current.push(point, tick_us);
        }
        pieces.push(current.points);
        let piece = |points: Vec<Point>| Piece { points, ..Piece::default() };
        let mut track =
            Self { pieces: pieces.into_iter().filter(|p| !p.is_empty()).map(piece).collect(), tick_us };
        track.find_bases();
        track
    }

    /// Takes a slope out of all points.
    pub(crate) fn straighten(&mut self, ppm: f64) {
        for piece in &mut self.pieces {
            let Some(&Point { t: from, .. }) = piece.points.first() else { continue };
            piece.points.iter_mut().for_each(|point| point.x -= ppm * (point.t - from) / 1e6);
        }
        self.find_bases();
    }

    fn find_bases(&mut self) {
        for piece in &mut self.pieces {
            let base = piece.points.iter().map(|point| point.x).fold(f64::INFINITY, f64::min);
            piece.set_base(base, self.tick_us);
        }
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
        self.pieces.iter().any(|piece| piece.revisits < 2)
    }

    /// The delays, in the order of the points.
    pub(crate) fn delays(&self, base: Base) -> Vec<Delay> {
        let delay =
            |point: &Point, zero: f64| Delay { time_us: point.t as u64, queue_us: (point.x - zero).max(0.0) };
        let mut delays = Vec::with_capacity(self.pieces.iter().map(|piece| piece.points.len()).sum());
        for piece in &self.pieces {
            let zero = piece.base + piece.rounding(self.tick_us);
            let mut least = f64::INFINITY;
            delays.extend(piece.points.iter().map(|point| match base {
                Base::Whole => delay(point, zero),
                Base::Running => {
                    least = least.min(point.x);
                    delay(point, least)
                }
            }));
        }
        delays
    }
}

impl Piece {
    fn set_base(&mut self, base: f64, tick_us: f64) {
        self.base = base;
        let mut second = f64::NEG_INFINITY;
        (self.revisits, self.near_base) = (0, 0);
        for point in &self.points {
            self.near_base += u32::from(point.x - base <= tick_us);
            if point.x - base <= NEAR_BASE_US + tick_us && point.t - second >= 1e6 {
                (self.revisits, second) = (self.revisits + 1, point.t);
            }
        }
    }

    /// A clock with ticks is half a tick slow on average, and at the base, the least of many, by less: what is to be
    /// taken off in the middle.
    fn rounding(&self, tick_us: f64) -> f64 {
        tick_us * (0.5 - 1.0 / (f64::from(self.near_base) + 1.0)).max(0.0)
    }
}

/// Follows a series to find where its constant changes.
#[derive(Default)]
struct Watch {
    points: Vec<Point>,
    base: f64,
    confirmations: u32,
    confirmed_at: f64,
}

impl Watch {
    fn breaks(&self, point: Point, tick_us: f64) -> bool {
        let Some(last) = self.points.last() else { return false };
        let (silence, change) = (point.t - last.t, point.x - last.x);
        // Packets do not overtake each other in a queue: a delay grows no faster than time passes.
        silence > SILENCE_US_MAX
            || change > silence.max(0.0) + STEP_US
            || change < -STEP_US
            || (self.confirmations >= CONFIRMED_SECONDS && point.x < self.base - BASE_FALL_US - tick_us)
    }

    fn push(&mut self, point: Point, tick_us: f64) {
        if self.points.is_empty() || point.x < self.base - NEAR_BASE_US - tick_us {
            (self.base, self.confirmations, self.confirmed_at) = (point.x, 1, point.t);
        } else if point.x < self.base + NEAR_BASE_US + tick_us && point.t - self.confirmed_at >= 1e6 {
            (self.confirmations, self.confirmed_at) = (self.confirmations + 1, point.t);
        }
        self.base = self.base.min(point.x);
        self.points.push(point);
    }
}

/// Readings of 32 bits without their wraps, over time.
pub(crate) fn unwrap(samples: &[Sample]) -> Vec<Point> {
    let mut value = 0_i64;
    let mut last = None;
    let mut point = |sample: &Sample| {
        let step = |last: u32| i64::from(sample.raw.wrapping_sub(last).cast_signed());
        // The first is taken as a number with a sign, as the differences are that follow.
        value += last.map_or(i64::from(sample.raw.cast_signed()), step);
        last = Some(sample.raw);
        Point { t: sample.time_us as f64, x: value as f64 }
    };
    samples.iter().map(&mut point).collect()
}

/// What was read of a direction.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub direct: Track,
    pub echoed: Track,
    pub rate: Option<Rate>,
    pub drift_ppm: Option<f64>,
}

/// Ticks per second that a rate stands for, where it can be used.
pub(crate) fn hz(rate: Rate) -> Option<f64> {
    match rate {
        Rate::Snapped(hz) => Some(hz),
        Rate::Unknown => Some(RATE_ASSUMED_HZ),
        Rate::Odd(_) => None,
    }
}

/// Reads a direction of a uTP flow.
pub(crate) fn read_utp(flow: &Flow, side: Side, pool: &Pool) -> Reading {
    let (from, to) = (&flow.sides[side], &flow.sides[1 - side]);
    let direct = unwrap(&pool.read(&from.direct));
    let echoed = unwrap(&pool.read(&from.echo));
    // The sender's clock against the receiver's, as the sender says; the receiver's against the observer's.
    let reverse = clock::drift_ppm(&unwrap(&pool.read(&to.echo)));
    let receiver = clock::drift_ppm(&unwrap(&pool.read(&to.direct)));
    let mut reading = Reading {
        direct: Track::new(&direct, 0.0),
        echoed: Track::new(&echoed, 0.0),
        rate: None,
        drift_ppm: reverse.zip(receiver).map(|(reverse, receiver)| receiver - reverse),
    };
    reading.take_out_drift(reverse.map(|reverse| -reverse));
    reading
}

/// Reads a direction of a TCP flow.
pub(crate) fn read_tcp(flow: &Flow, side: Side, pool: &Pool) -> Reading {
    let (from, to) = (&flow.sides[side], &flow.sides[1 - side]);
    let clock = unwrap(&pool.read(&from.direct));
    let rate = clock::rate(&clock);
    let Some(hz_from) = hz(rate) else { return Reading { rate: Some(rate), ..Reading::default() } };
    let other = unwrap(&pool.read(&to.direct));
    let hz_to = hz(clock::rate(&other));
    let tick_us = 1e6 / hz_from;
    let direct: Vec<Point> = clock.iter().map(|p| Point { t: p.t, x: p.t - p.x * tick_us }).collect();
    let receiver_us =
        |hz: f64| other.iter().map(|p| Point { t: p.t, x: p.t - p.x * 1e6 / hz }).collect::<Vec<_>>();
    let receiver = hz_to.and_then(|hz| clock::drift_ppm(&receiver_us(hz)));
    let reverse = if hz_to == Some(hz_from) { reverse_drift(from, tick_us, pool) } else { None };
    let echoed =
        hz_to.map_or_else(Vec::new, |hz_to| echoed_points(&from_pairs(from, pool), tick_us, 1e6 / hz_to));
    let mut reading = Reading {
        direct: Track::new(&direct, tick_us),
        echoed: Track::new(&echoed, tick_us),
        rate: Some(rate),
        drift_ppm: reverse
            .zip(receiver)
            .map_or_else(|| own_drift(&direct), |(reverse, receiver)| Some(receiver - reverse)),
    };
    // Where the sender's own direction told it, the receiver's clock is taken for the observer's, which it is near.
    let echoed_ppm = reverse.map(|reverse| -reverse).or(reading.drift_ppm);
    reading.take_out_drift(echoed_ppm);
    reading
}

/// The drift that the queued direction itself shows, where the other direction does not tell: heartbeats are answered
/// after delays that vary. It is believed only where most seconds saw an empty queue ([`clock::drift_ppm`]).
fn own_drift(direct: &[Point]) -> Option<f64> {
    const SECOND_US: f64 = 1e6;
    let mut least: Vec<Point> = Vec::new();
    for point in direct {
        match least.last_mut() {
            Some(last) if (last.t / SECOND_US).floor() == (point.t / SECOND_US).floor() => {
                if point.x < last.x {
                    *last = *point;
                }
            }
            _ => least.push(*point),
        }
    }
    clock::drift_ppm(&least)
}

/// TSval less TSecr in what the sender says: its clock against the receiver's.
fn reverse_drift(from: &Direction, tick_us: f64, pool: &Pool) -> Option<f64> {
    let mut points = unwrap(&pool.read(&from.reverse));
    points.iter_mut().for_each(|point| point.x *= tick_us);
    clock::drift_ppm(&points)
}

/// The echoed samples of TCP come in pairs: the acknowledgement's clock, and the segment's.
fn from_pairs(from: &Direction, pool: &Pool) -> [Vec<Point>; 2] {
    let samples = pool.read(&from.echo);
    let every_second = |first: usize| samples.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
    [unwrap(&every_second(0)), unwrap(&every_second(1))]
}

/// Equation 3: the acknowledgement's clock less the segment's, each in its own ticks.
fn echoed_points(pairs: &[Vec<Point>; 2], tick_us: f64, tick_us_to: f64) -> Vec<Point> {
    pairs[0]
        .iter()
        .zip(&pairs[1])
        .map(|(ack, data)| Point { t: data.t, x: ack.x * tick_us_to - data.x * tick_us })
        .collect()
}

impl Reading {
    /// The direct estimate drifts as the observer's clock does against the sender's; the echoed one as the receiver's
    /// does.
    fn take_out_drift(&mut self, echoed_ppm: Option<f64>) {
        let worth_it = |ppm: &f64| ppm.abs() >= DRIFT_PPM_MIN;
        self.drift_ppm = self.drift_ppm.filter(worth_it);
        if let Some(ppm) = self.drift_ppm {
            self.direct.straighten(ppm);
        }
        if let Some(ppm) = echoed_ppm.filter(worth_it) {
            self.echoed.straighten(ppm);
        }
    }
}

/// Whether a direction's stamps run as fast as the observer's clock.
pub(crate) fn stamps_follow_time(direction: &Direction, pool: &Pool) -> bool {
    let points = unwrap(&pool.read(&direction.direct));
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return false };
    let span_us = last.t - first.t;
    // Random stamps would differ by a quarter of their range, half an hour, from one to the next.
    span_us >= 1e6 && points.windows(2).all(|pair| (pair[1].x - pair[0].x).abs() <= 60e6)
}
