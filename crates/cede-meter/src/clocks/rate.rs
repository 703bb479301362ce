//! The rate of TCP's timestamp clock of a stranger.
//!
//! Sources: RFC 7323 section 5.4 (a tick of 1 ms to 1 s; current systems also have 1 us).
//!
//! **What it leaves out.** A fingerprint by TTL, which names systems of long ago.
//!
//! **How it was validated.** Synthetic clocks with growing queues (below), the recorded captures.

use crate::clocks::clock::{POINTS_MIN, Point};
use core::cmp::Ordering;

/// Rates that systems have, in ticks per second: 10 (Windows long ago), 100, 200, 250 and 300 (kernels' own ticks), 500,
/// 1000 (nearly everything today), 10 and 100 kHz, 1 MHz (Linux with the route's feature).
const RATES_HZ: [f64; 10] = [10.0, 100.0, 200.0, 250.0, 300.0, 500.0, 1e3, 1e4, 1e5, 1e6];
/// Rates that few have, too near to one of those for anything but minutes to tell: 1,024 (Linux on Alpha and IA-64).
const RATES_RARE_HZ: [f64; 1] = [1_024.0];
/// In the long run no clock of a rate is off by more, in parts: crystals are by a fiftieth of that.
const RATE_MISFIT_LONG: f64 = 0.01;
/// What is assumed where a flow is too short to tell.
pub(crate) const RATE_ASSUMED_HZ: f64 = 1e3;
/// What it takes to tell a rate.
const RATE_SPAN_US_MIN: f64 = 1e6;
/// A longer silence tells no more than one that lasts this long.
const RATE_SILENCE_US_MAX: f64 = 10e6;
/// Pieces that a flow is cut into, if they are no shorter than that.
const RATE_PIECES: f64 = 32.0;
/// Fewer are like one of the rates by chance.
const RATE_PIECES_MIN: f64 = 3.0;
/// A rate this near is meant. Packets come the later the longer a queue grows, so that a clock looks slower: in slow start a queue
/// grows by a second each second, and a clock seems to run at half its rate. One that shrinks does not do so for long.
const RATE_MISFIT_EXACT: f64 = 0.05;
const RATE_MISFIT_GROWING: f64 = 0.45;
const RATE_MISFIT_SHRINKING: f64 = 0.25;
/// A clock of up to so many times the rate may look like this one, by a queue that grows by no more than that.
const RATE_SLOWED_MAX: f64 = 2.2;
const RATE_SLOWED_US_MAX: f64 = 10e6;
/// What it takes where it is known how old echoes are.
const ECHOED_SPAN_US_MIN: f64 = 200_000.0;
/// What comes after a silence of a longer part of the time may echo what is as old.
const ECHO_SILENCE_PART: f64 = 8.0;
/// A rate told by echoes is one that systems have if it is this near.
const RATE_MISFIT_TOLD: f64 = 0.25;
/// And one that fits by itself stays, unless they say quite another.
const RATE_MISFIT_TOLD_EXACT: f64 = 0.4;

/// How many ticks a second a clock has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Rate {
    /// One of those that systems have.
    Snapped(f64),
    /// Too short to tell.
    Unknown,
    /// Too short to tell; other flows of the address have this one.
    Lent(f64),
    /// It runs at this rate, which nobody's clock has; or it does not run.
    Odd(f64),
}

impl Rate {
    /// Ticks per second that it stands for, where it can be used.
    pub(crate) const fn hz(self) -> Option<f64> {
        match self {
            Self::Snapped(hz) | Self::Lent(hz) => Some(hz),
            Self::Unknown => Some(RATE_ASSUMED_HZ),
            Self::Odd(_) => None,
        }
    }

    /// What others have, where it is too short to tell.
    pub(crate) fn or_lent(self, hz: impl FnOnce() -> Option<f64>) -> Self {
        if self == Self::Unknown { hz().map_or(self, Self::Lent) } else { self }
    }
}

/// The rate of a clock from readings (`x` in ticks) over time. A growing queue makes it look slower, as times are those of
/// arrivals; it grows by no more than `growth_us_max` in all. Where that leaves it open which rate it is, `told` is asked for the
/// rate that echoes tell.
pub(crate) fn rate(readings: &[Point], growth_us_max: f64, told: impl FnOnce() -> Option<Rates>) -> Rate {
    let span_us = span_us(readings);
    if readings.len() < POINTS_MIN || span_us < RATE_SPAN_US_MIN {
        return Rate::Unknown;
    }
    let raw_hz = median_slope(readings, (span_us / RATE_PIECES).max(RATE_SPAN_US_MIN)) * 1e6;
    let series = Series { readings, growth_us_max };
    if raw_hz <= 0.0 {
        // Messages that were sent at once have one stamp each, for as long as the queue is.
        let runs = readings.first().zip(readings.last()).is_some_and(|(first, last)| last.x > first.x);
        return if runs && series.may_be_usual() { Rate::Unknown } else { Rate::Odd(raw_hz) };
    }
    match likely_rate(raw_hz, span_us, &series, told) {
        Rate::Snapped(hz) => rate_after_all(readings, series.rate_of_all(hz), raw_hz, growth_us_max),
        rate => rate,
    }
}

/// Readings behind a queue that grows by no more than so much in all.
struct Series<'a> {
    readings: &'a [Point],
    growth_us_max: f64,
}

impl Series<'_> {
    /// The delays that a rate makes of them, but for a constant.
    fn delays(&self, hz: f64) -> impl Iterator<Item = f64> {
        self.readings.iter().map(move |point| point.t - point.x / hz * 1e6)
    }

    /// Whether delays fall by more than a queue is long.
    fn falls(&self, hz: f64) -> bool {
        let mut most = f64::NEG_INFINITY;
        self.delays(hz).any(|delay| {
            most = most.max(delay);
            most - delay > self.growth_us_max
        })
    }

    /// How far apart the shortest delay and the longest are, if no more than a queue makes it.
    fn range_us(&self, hz: f64) -> Option<f64> {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        let is_within = self.delays(hz).all(|delay| {
            (least, most) = (least.min(delay), most.max(delay));
            most - least <= self.growth_us_max
        });
        is_within.then_some(most - least)
    }

    fn may_be_usual(&self) -> bool {
        self.range_us(RATE_ASSUMED_HZ).is_some()
    }

    /// The rate of a clock that looked like one of `hz` in most pieces: a higher one by which delays stay within what the queue makes,
    /// where by that one they fall by more. Of two bursts with a silence between, most pieces are those in which the queue grew.
    fn rate_of_all(&self, hz: f64) -> f64 {
        if hz >= RATE_ASSUMED_HZ || !self.falls(hz) {
            return hz;
        }
        let higher = RATES_HZ.into_iter().filter(|higher| *higher > hz);
        let within =
            higher.filter_map(|higher| Some((higher != RATE_ASSUMED_HZ, self.range_us(higher)?, higher)));
        within
            .min_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(Ordering::Equal))
            .map_or(hz, |it| it.2)
    }
}

/// The rate that systems have and that looks like this one, of so long.
fn likely_rate(raw_hz: f64, span_us: f64, series: &Series<'_>, told: impl FnOnce() -> Option<Rates>) -> Rate {
    let growth_us_max = series.growth_us_max;
    let rates = || RATES_HZ.iter().copied();
    let is_it = |hz: &f64| misfit(*hz, raw_hz) <= RATE_MISFIT_EXACT;
    let can_grow = |hz: &f64| (1.0 - raw_hz / hz) * span_us <= growth_us_max.max(RATE_SLOWED_US_MAX);
    let is_other = |hz: &f64| *hz > raw_hz && *hz <= raw_hz * RATE_SLOWED_MAX && !is_it(hz) && can_grow(hz);
    let exact = rates().find(is_it);
    let others: Vec<f64> = rates().filter(is_other).collect();
    let is_sure = exact.is_some() && span_us >= RATE_PIECES_MIN * RATE_SPAN_US_MIN;
    let told = if is_sure && others.is_empty() { None } else { told() };
    if let Some(hz) = told.and_then(|told| told.confirmed(exact, &others, series)) {
        return Rate::Snapped(hz);
    }
    // A queue that grows all the time is more usual than one that shrinks all the time.
    let is_slowed = |hz: &f64| {
        let growth = 1.0 - raw_hz / hz;
        growth > 0.0 && growth <= RATE_MISFIT_GROWING && growth * span_us <= growth_us_max
    };
    let is_hurried = |hz: &f64| raw_hz > *hz && raw_hz <= *hz * (1.0 + RATE_MISFIT_SHRINKING);
    let found = exact.or_else(|| rates().find(is_slowed)).or_else(|| rates().rev().find(is_hurried));
    let growth = 1.0 - raw_hz / RATE_ASSUMED_HZ;
    // Nearly everything has the usual rate: no other is told by what that one looks like in slow start, nor where it explains as well what
    // looks like none, or like one of so many by a few pieces.
    let looks_so = (0.0..=1.0 - 1.0 / RATE_SLOWED_MAX).contains(&growth) && growth * span_us <= growth_us_max;
    let may_be_usual = || series.may_be_usual() && told.is_none_or(|told| told.tells(RATE_ASSUMED_HZ));
    if found != Some(RATE_ASSUMED_HZ) && (looks_so || !is_sure && may_be_usual()) {
        return Rate::Unknown;
    }
    found.map_or(Rate::Odd(raw_hz), Rate::Snapped)
}

/// The rate of a clock that looked like one of `hz`: another one where each third of the time tells the same other, and so does the middle
/// of all pieces, and no queue makes it so: none grows so much in each third, or shrinks so much altogether. A clock that was set is
/// in one of them alone.
fn rate_after_all(readings: &[Point], hz: f64, raw_hz: f64, growth_us_max: f64) -> Rate {
    let rates_hz = readings.chunks(readings.len().div_ceil(3)).filter_map(|third| {
        let (first, last) = (third.first()?, third.last()?);
        let (ticks, us) = (last.x - first.x, last.t - first.t);
        let ahead_us = ticks / hz * 1e6 - us;
        let by_queue_us = if ahead_us > 0.0 { growth_us_max / 3.0 } else { growth_us_max };
        (ahead_us.abs() > by_queue_us.max(RATE_MISFIT_LONG * us)).then_some(ticks / us * 1e6)
    });
    let rates_hz: Vec<f64> = rates_hz.collect();
    let long_hz = rates_hz.iter().sum::<f64>() / 3.0;
    let is_long_rate = |hz: &f64| misfit(long_hz, *hz) <= RATE_MISFIT_LONG;
    if rates_hz.len() < 3 || !rates_hz.iter().chain([&raw_hz]).all(is_long_rate) {
        return Rate::Snapped(hz);
    }
    let known_hz = RATES_HZ.into_iter().chain(RATES_RARE_HZ).find(is_long_rate);
    known_hz.map_or(Rate::Odd(long_hz), Rate::Snapped)
}

/// How long readings last, long silences counted as short ones: what follows one may have come later by a clock that was set.
fn span_us(readings: &[Point]) -> f64 {
    let gap = |pair: &[Point]| (pair[1].t - pair[0].t).clamp(0.0, RATE_SILENCE_US_MAX);
    readings.windows(2).map(gap).sum()
}

/// How far a rate is off, in parts.
fn misfit(hz: f64, measured_hz: f64) -> f64 {
    (measured_hz / hz - 1.0).abs()
}

/// Between which rates echoes tell that a clock runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Rates {
    least_hz: f64,
    most_hz: f64,
}

impl Rates {
    const fn one(hz: f64) -> Self {
        Self { least_hz: hz, most_hz: hz }
    }

    /// How far a rate is off, in parts.
    fn misfit(self, hz: f64) -> f64 {
        misfit(hz, hz.max(self.least_hz).min(self.most_hz))
    }

    fn tells(self, hz: f64) -> bool {
        self.misfit(hz) <= RATE_MISFIT_TOLD
    }

    /// The rate that systems have and that is told, or the one that fits by itself if it is near; nothing where one of the `others`, as
    /// which that one may look, is told as well as that.
    fn confirmed(self, exact: Option<f64>, others: &[f64], series: &Series<'_>) -> Option<f64> {
        if let Some(exact) = exact.filter(|hz| self.misfit(*hz) <= RATE_MISFIT_TOLD_EXACT) {
            let is_open = others.iter().any(|other| self.misfit(*other) <= self.misfit(exact));
            return if is_open { None } else { Some(exact) };
        }
        // Of several that are told delays tell which they are, and nearly everything has the usual one.
        let unlikely = |hz: f64| (self.misfit(hz), series.range_us(hz).is_none(), hz != RATE_ASSUMED_HZ);
        let told = RATES_HZ.into_iter().filter(|hz| self.tells(*hz)).map(|hz| (unlikely(hz), hz));
        told.min_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal)).map(|told| told.1)
    }
}

/// A packet of a sender's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    seen: f64,
    /// Its stamp.
    ticks: f64,
    /// Between which times it was sent, less what it takes to its sender.
    after: f64,
    before: f64,
}

impl Echo {
    /// With when the packet passed whose stamp it echoes, and the `next` one, that had not come to its sender when it was sent. Captures may
    /// show an echo before what it echoes.
    pub(crate) fn new(seen: f64, ticks: f64, after: f64, next: f64) -> Self {
        Self { seen, ticks, after, before: next.min(seen).max(after) }
    }
}

/// Between which rates a sender's clock runs, by what its packets echo. What they met afterwards does not slow it so, and how old an echo
/// may be is known: after a silence, or where messages of many packets are sent at once, all are as old.
pub(crate) fn rate_by_echoed(echoes: &[Echo]) -> Option<Rates> {
    let (first, last) = (echoes.first()?.seen, echoes.last()?.seen);
    let third = (last - first) / 3.0;
    let sharpest = |from: f64, to: f64| {
        let within = echoes.iter().filter(|echo| echo.seen >= from && echo.seen <= to);
        within.min_by(|a, b| (a.before - a.after).total_cmp(&(b.before - b.after)))
    };
    let (early, late) = (sharpest(first, first + third)?, sharpest(last - third, last)?);
    let (ticks, longest_us) = (late.ticks - early.ticks, late.before - early.after);
    let shortest_us = (late.after - early.before).max(1.0);
    let per_second = |us: f64| ticks / us * 1e6;
    (longest_us >= ECHOED_SPAN_US_MIN && ticks > 0.0)
        .then(|| Rates { least_hz: per_second(longest_us), most_hz: per_second(shortest_us) })
}

/// The same where the receiver's packets were not seen, from the rate of its clock, and from `differences`, the sender's readings less those
/// of the receiver's that they echo, and its own `readings`, both in ticks. Both clocks were read at one moment, so that what packets
/// met afterwards slows both alike.
pub(crate) fn rate_by_echoes(differences: &[Point], readings: &[Point], receiver_hz: f64) -> Option<Rates> {
    let (first, last) = (differences.first()?.t, differences.last()?.t);
    let third = (last - first) / 3.0;
    // What is echoed after a silence is old, which makes a difference too large, never too small. Where all of a third is, as of who sends
    // the same again and again and hears nothing, nothing is told.
    let is_fresh = |point: &&Point| {
        let before = readings[..readings.partition_point(|own| own.t < point.t)].last();
        before.is_none_or(|own| point.t - own.t <= (last - first) / ECHO_SILENCE_PART)
    };
    let least = |from: f64, to: f64| {
        let within = differences.iter().filter(|point| point.t >= from && point.t <= to).filter(is_fresh);
        within.min_by(|a, b| a.x.total_cmp(&b.x))
    };
    let (early, late) = (least(first, first + third)?, least(last - third, last)?);
    let at = |t: f64| readings.get(readings.partition_point(|point| point.t < t));
    let (own, other) = (at(late.t)?.x - at(early.t)?.x, late.x - early.x);
    let is_long = late.t - early.t >= RATE_SPAN_US_MIN;
    (is_long && own > 0.0 && own > other).then(|| Rates::one(receiver_hz * own / (own - other)))
}

/// The middle of the slopes of pieces at least this long: a clock that was set, or a queue that grew, is in few of them.
fn median_slope(readings: &[Point], piece_us: f64) -> f64 {
    let mut slopes = Vec::new();
    let mut from = readings[0];
    for point in readings {
        if point.t < from.t {
            // The clock was set back.
            from = *point;
        } else if point.t - from.t >= piece_us {
            slopes.push((point.x - from.x) / (point.t - from.t));
            from = *point;
        }
    }
    let middle = slopes.len() / 2;
    // The whole is at least as long as a piece, but where the clock was set back within it.
    if slopes.is_empty() { 0.0 } else { *slopes.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(readings: &[Point]) -> Rate {
        rate(readings, 1e7, || None)
    }

    #[test]
    fn rates_are_told_under_queues_that_grow_and_shrink() {
        for hz in RATES_HZ {
            for queue_us in [0.0, 200_000.0, -200_000.0] {
                let point = |k: u32| {
                    let sent = f64::from(k) * 40_000.0;
                    Point { t: sent + queue_us * f64::from(k) / 1000.0, x: (sent * hz / 1e6).floor() }
                };
                let readings: Vec<Point> = (0..1000).map(point).collect();
                assert_eq!(of(&readings), Rate::Snapped(hz), "{queue_us}");
                assert_eq!(of(&readings[..15]), Rate::Unknown);
            }
        }
        // Five seconds at half the usual rate may be slow start.
        let halved: Vec<Point> =
            (0..500).map(|k| Point { t: f64::from(k) * 1e4, x: f64::from(k * 5) }).collect();
        assert_eq!((of(&halved), rate(&halved, 2e6, || None)), (Rate::Unknown, Rate::Snapped(500.0)));
        // A buffer that fills for the whole of a short capture.
        for (growth, hz) in [(0.3, 1e3), (0.4, 1e3), (0.3, 100.0)] {
            let point = |k: u32| {
                let sent = f64::from(k) * 10_000.0;
                Point { t: sent * (1.0 + growth / (1.0 - growth)), x: (sent * hz / 1e6).floor() }
            };
            let readings: Vec<Point> = (0..1000).map(point).collect();
            assert_eq!(of(&readings), Rate::Snapped(hz), "{growth}");
        }
        let stopped: Vec<Point> = (0..100).map(|k| Point { t: f64::from(k) * 1e5, x: 7.0 }).collect();
        assert_eq!(of(&stopped), Rate::Odd(0.0));
    }

    /// Slow start fills the buffer by a second each second, and more behind it.
    #[test]
    fn a_clock_at_half_its_rate_is_told_by_echoes() {
        for (hz, receiver_hz, slowness) in
            [(1e3, 1e3, 2.0), (1e3, 250.0, 2.0), (250.0, 1e3, 2.0), (250.0, 250.0, 1.6), (500.0, 1e3, 1.0)]
        {
            let t = |k: u32| f64::from(k) * 10_000.0 * slowness;
            let ticks = |k: u32, hz: f64| (f64::from(k) * 10_000.0 * hz / 1e6).floor();
            let readings: Vec<Point> = (0..1000).map(|k| Point { t: t(k), x: ticks(k, hz) }).collect();
            // Once a second, of an acknowledgement that came up to 50 ms before.
            let difference = |k: u32| ticks(k, hz) - ticks(k.saturating_sub(k % 5), receiver_hz);
            let differences: Vec<Point> =
                (0..1000).step_by(93).map(|k| Point { t: t(k), x: difference(k) }).collect();
            let told = rate_by_echoes(&differences, &readings, receiver_hz).unwrap();
            assert!((told.most_hz / hz - 1.0).abs() < 0.02 && told.least_hz == told.most_hz, "{told:?}");
            assert_eq!(rate(&readings, 1e7, || Some(told)), Rate::Snapped(hz));
            assert_eq!(rate_by_echoes(&differences[..1], &readings, receiver_hz), None);
        }
    }

    /// Two messages of a window that doubles, a packet each 40 ms, with four seconds between them: when seen, and when sent.
    fn two_bursts() -> Vec<(f64, f64)> {
        let sent = |k: u32| f64::from(k / 10 * 150 + k % 10 / 9) / 1e3;
        let burst = |from: f64| (0_u32..28).map(move |k| (from + f64::from(k) * 0.04, from + sent(k)));
        burst(20.9).chain(burst(25.9)).collect()
    }

    /// Of three pieces of a second two are of the queue's growth.
    #[test]
    fn two_bursts_tell_the_rate_by_what_is_between_them() {
        for hz in [1e3, 500.0] {
            let point = |&(seen, sent): &(f64, f64)| Point { t: seen * 1e6, x: (sent * hz).floor() };
            let readings: Vec<Point> = two_bursts().iter().map(point).collect();
            assert_eq!(rate(&readings, 1.8e6, || None), Rate::Snapped(hz));
        }
    }

    /// A message through 300 kbit/s: ten packets at once, and two for each that is acknowledged. By what it looks like it has any rate.
    #[test]
    fn one_message_tells_no_rate_that_is_not_the_usual_one() {
        let sent = |k: u32| if k < 10 { 0.029 } else { 0.107 + f64::from((k - 10) / 2) * 0.04 };
        for (count, times_ms) in [(27, 40.0), (27, 60.0), (23, 94.0), (40, 40.0)] {
            let point = |k: u32| Point {
                t: (0.03 + f64::from(k) * times_ms / 1e3) * 1e6,
                x: (sent(k) * 1e3).floor() + 7e6,
            };
            let readings: Vec<Point> = (0..count).map(point).collect();
            assert_eq!(rate(&readings, 2e6, || None), Rate::Unknown, "{count} {times_ms}");
            // One stamp for all may be nobody's clock.
            let stopped: Vec<Point> = readings.iter().map(|point| Point { x: 7e6, ..*point }).collect();
            assert_eq!(rate(&stopped, 2e6, || None), Rate::Odd(0.0));
        }
    }

    /// All of the second message echoes what came four seconds before.
    #[test]
    fn how_old_an_echo_may_be_is_known() {
        for hz in [1e3, 250.0, 1e6] {
            let point = |&(seen, sent): &(f64, f64)| Point { t: seen * 1e6, x: (sent * hz).floor() };
            let readings: Vec<Point> = two_bursts().iter().map(point).collect();
            // What came until 80 ms before a packet was sent is echoed, but what is new of the second message's.
            let echo = |&(seen, sent): &(f64, f64)| {
                let [after, before] = if sent < 25.0 { [sent - 0.08, sent - 0.04] } else { [22.0, 26.0] };
                Echo {
                    seen: seen * 1e6,
                    ticks: (sent * hz).floor(),
                    after: after * 1e6,
                    before: before * 1e6,
                }
            };
            let told = rate_by_echoed(&two_bursts().iter().map(echo).collect::<Vec<_>>()).unwrap();
            assert!(
                told.misfit(hz) < 0.02 && told.misfit(hz * 10.0) > 0.3 && told.misfit(hz / 2.0) > 0.3,
                "{told:?}"
            );
            assert_eq!(rate(&readings, 1.8e6, || Some(told)), Rate::Snapped(hz), "{told:?}");
        }
    }

    /// Slow start, acknowledged without a pause: what is echoed is at most 10 ms old when it is sent.
    #[test]
    fn a_clock_at_half_its_rate_is_told_by_what_it_echoes() {
        for (hz, slowness) in [(1e3, 2.0), (250.0, 1.6), (500.0, 1.0)] {
            let sent = |k: u32| f64::from(k) * 1e4;
            let readings: Vec<Point> =
                (0..1000).map(|k| Point { t: sent(k) * slowness, x: (sent(k) * hz / 1e6).floor() }).collect();
            let echo = |(k, point): (u32, &Point)| Echo::new(point.t, point.x, sent(k) - 1e4, sent(k));
            let echoes: Vec<Echo> = (0..).zip(&readings).step_by(93).map(echo).collect();
            assert_eq!(rate(&readings, 1e7, || rate_by_echoed(&echoes)), Rate::Snapped(hz));
            assert_eq!(rate_by_echoed(&echoes[..1]), None);
            // In a capture whose parts stand in the wrong order nothing is told, or what it is.
            let early: Vec<Echo> = echoes
                .iter()
                .map(|echo| Echo::new(echo.seen - 5e6, echo.ticks, echo.after, echo.before))
                .collect();
            assert!(rate_by_echoed(&early).is_some_and(|told| told.least_hz <= told.most_hz));
        }
    }

    /// A connection whose other end is gone sends the same again after ever longer silences, and echoes what it heard last.
    #[test]
    fn echoes_of_who_hears_nothing_any_more_tell_no_other_rate() {
        for (hz, silences) in [(250.0, 4), (100.0, 4), (250.0, 7), (100.0, 7)] {
            let again = (0..silences).map(|k| 5.0 + 0.3 * f64::from(2_u32.pow(k)));
            let sent: Vec<f64> = (0..500).map(|k| f64::from(k) / 100.0).chain(again).collect();
            let point = |s: &f64, ticks: f64| Point { t: s * 1e6, x: ticks };
            let readings: Vec<Point> = sent.iter().map(|s| point(s, (s * hz).floor())).collect();
            let difference = |s: &f64| point(s, (s * hz).floor() - (s.min(5.0) * 1e3).floor());
            let differences: Vec<Point> = sent.iter().map(difference).collect();
            let told = || rate_by_echoes(&differences, &readings, 1e3);
            assert_eq!(rate(&readings, 1.2e6, told), Rate::Snapped(hz), "{hz} {silences} {:?}", told());
        }
    }

    /// In a minute no queue grows by half of that.
    #[test]
    fn a_rate_that_no_queue_explains_is_not_asked_for() {
        let readings: Vec<Point> =
            (0..600).map(|k| Point { t: f64::from(k) * 1e5, x: f64::from(k * 25) }).collect();
        assert_eq!(rate(&readings, 1.2e6, || Some(Rates::one(500.0))), Rate::Snapped(250.0));
        assert_eq!(rate(&readings[..150], 1e7, || Some(Rates::one(500.0))), Rate::Snapped(500.0));
    }

    #[test]
    fn a_clock_that_nobody_has_is_odd_where_no_queue_explains_it() {
        for hz in [60.0, 64.0, 128.0, 400.0, 700.0] {
            let point = |k: u32| Point { t: f64::from(k) * 1e5, x: (f64::from(k) * hz / 10.0).floor() };
            let readings: Vec<Point> = (0..600).map(point).collect();
            assert!(matches!(of(&readings), Rate::Odd(found) if (found / hz - 1.0).abs() < 0.02), "{hz}");
            // For a second or two it may be the usual one behind a queue.
            let usual = if hz < 600.0 { Rate::Unknown } else { Rate::Snapped(1e3) };
            assert_eq!(of(&readings[..21]), usual, "{hz}");
        }
    }

    /// Kernels of 1,024 ticks a second, in a queue that grows and drains: half a minute does not tell them from the usual ones.
    #[test]
    fn minutes_tell_a_rate_from_one_that_is_near() {
        let after = |hz: f64, seconds: u32, growth_us_max: f64| {
            let queue_us = |k: u32| f64::from(k % 70) * 3_000.0;
            let point = |k: u32| {
                let sent = f64::from(k) * 1e5;
                Point { t: sent + queue_us(k), x: (sent * hz / 1e6).floor() }
            };
            rate(&(0..seconds * 10).map(point).collect::<Vec<_>>(), growth_us_max, || None)
        };
        assert_eq!(after(1_024.0, 30, 1.2e6), Rate::Snapped(1e3));
        assert_eq!(after(1_024.0, 240, 1.2e6), Rate::Snapped(1_024.0));
        assert_eq!(after(1_024.0, 240, 1e7), Rate::Snapped(1e3), "nothing is known of its queue");
        assert_eq!(after(1_024.0, 600, 1e7), Rate::Snapped(1_024.0));
        assert!(matches!(after(1_040.0, 240, 1.2e6), Rate::Odd(hz) if (hz - 1_040.0).abs() < 3.0));
        for hz in [999.0, 1e3, 1_002.0] {
            assert_eq!(after(hz, 3_600, 1.2e6), Rate::Snapped(1e3));
        }
    }

    /// A clock is set forward and back, or does not run while its host sleeps: it is the same all the rest of the time.
    #[test]
    fn a_clock_that_was_set_has_the_rate_that_it_had() {
        let set = |k: u32| f64::from(k / 600) * 9e3 * if k > 3_000 { -1.0 } else { 1.0 };
        let asleep = |k: u32| f64::from(k / 400) * -5e3;
        for shift in [&set as &dyn Fn(u32) -> f64, &asleep] {
            let point = |k: u32| Point { t: f64::from(k) * 1e5, x: f64::from(k) * 100.0 + shift(k) };
            let readings: Vec<Point> = (0..4_000).map(point).collect();
            assert_eq!(rate(&readings, 1.2e6, || None), Rate::Snapped(1e3));
        }
    }
}
