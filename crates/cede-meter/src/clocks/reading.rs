//! From raw samples of one direction to its readings without wraps, drift, and what packets take by themselves.

use crate::clocks::about::{self, Said};
use crate::clocks::ahead::{Ahead, leave_out_ahead};
use crate::clocks::around::{Around, growth_us_max};
use crate::clocks::clock::{self, DRIFT_PPM_MIN, DRIFT_US_MIN, Point, span_s};
use crate::clocks::doubt::Trips;
use crate::clocks::drift::{Clocks, Receiver, against_arrival, own_drift, said_drift};
use crate::clocks::own::Own;
use crate::clocks::rate::{self, Echo, RATE_ASSUMED_HZ, Rate, Rates};
use crate::clocks::shelf::Lent;
use crate::clocks::short::Short;
use crate::clocks::sieve;
use crate::clocks::told::Told;
use crate::clocks::track::Track;
use crate::clocks::transmission::{Floors, PerOctet};
use crate::clocks::wraps::Unwrap;
use crate::packet::length::Length;
use crate::packet::rtt::Rtt;
use crate::store::flow::Protocol;
use crate::store::sample::Sample;

/// How far from the middle of a tick, and of two clocks' ticks, the base may lie: half a tick, one tick, and a quarter for
/// what is not exact.
const ZERO_TICKS_MAX: [f64; 2] = [0.75, 1.25];
const MANY_ANSWERS: u32 = 32;
/// The echoed estimate's own base stays where it is higher than the direct one tells by less than both clocks' ticks, and half of one for
/// what is not exact.
const LOWER_TICKS_MIN: f64 = 2.5;
/// Estimates are compared by so many packets in each third of the time, of which the least but two counts. Where the direct one's base was
/// told by others the echoed one's own is too high for sure, and what all packets agree on is better, however few there are.
const APART_MIN: usize = 8;
const APART_MIN_TOLD: usize = 1;
const APART_ODD: usize = 2;

/// What else is known of a direction's sender.
pub(crate) struct Known<'a> {
    /// Round trips to it.
    pub rtt: &'a Rtt,
    pub trips: Trips<'a>,
    /// The rate of its TCP clock that other flows tell.
    pub lent_hz: &'a dyn Fn() -> Option<f64>,
    /// What other directions told of its clock.
    pub told: Option<&'a Told>,
    /// Whether an octet makes packets of its other flows later by much less than that.
    pub is_quicker: &'a dyn Fn(f64) -> bool,
}

/// What was read of a direction.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub direct: Track,
    pub echoed: Track,
    pub rate: Option<Rate>,
    /// What was taken out.
    pub drift_ppm: Option<f64>,
    /// What the direction itself told, however little.
    pub drift_found: Option<f64>,
    /// What packets take by themselves on the slowest link was taken out.
    pub without_transmission: bool,
}

/// Reads a direction of a uTP flow, to whose sender round trips were timed; of a short one nothing but itself.
pub(crate) fn read_utp(mut own: Own, known: &Known<'_>, around: Option<&Around<'_>>) -> Reading {
    let Known { rtt, ref trips, told, is_quicker, .. } = *known;
    let origin = told.and_then(|told| told.origin);
    origin.iter().for_each(|origin| own.count_wraps_as(origin));
    let overtaken_t = own.leave_out_overtaken();
    let Own { points: direct, lengths, .. } = own;
    let mut echoed = Vec::new();
    if let Some(around) = around.filter(|around| around.with_echoed) {
        echoed = said(around, &direct, &overtaken_t);
        sieve::leave_out_late(&mut echoed, &direct, &overtaken_t, 0.0);
    }
    // The sender's clock against the receiver's, as the sender says; the receiver's against the observer's.
    let asked = around.map_or_else(Lent::default, |around| around.unwrapped_if_long(&around.to().direct));
    let reverse = around.and_then(|around| said_drift(around, &direct, &asked));
    let receiver = reverse.and_then(|_| clock::drift_ppm(&asked));
    // Where the other direction is never empty, as a seed's, this one may tell by itself. A queue that is held at a target has an edge,
    // too, but no sharp one.
    let is_told = origin.is_some() || reverse.is_some() && receiver.is_some();
    let own = around.filter(|_| !is_told).and_then(|_| own_drift(&direct, true));
    let short = around.filter(|_| told.is_none()).and_then(|around| Short::of_utp(around, &direct));
    let found = reverse.zip(receiver).map(|(reverse, receiver)| receiver - reverse);
    let drift_found = found.or(own).or(short.map(|short| short.found_ppm));
    let mut reading = Reading::new([direct, echoed], 0.0, drift_found, trips);
    reading.drift_ppm = told.map(|told| told.drift_ppm).or(drift_found);
    let told = || Some(reading.drift_ppm? - clock::drift_ppm(&asked).unwrap_or(0.0));
    let is_echoed = around.is_some_and(|around| around.with_echoed);
    let said_ppm = reverse.map(|reverse| -reverse).or(short.map(|short| short.echoed_ppm));
    let echoed_ppm = said_ppm.or_else(|| if is_echoed { told() } else { None });
    reading.take_out_drift(echoed_ppm, origin);
    reading.direct.hold_against(rtt, trips);
    reading.take_out_transmission(&lengths, is_quicker);
    reading.take_out_floors(&lengths);
    reading.settle_echoed();
    reading
}

/// What the receiver of a uTP direction said of its packets, by when these were seen.
fn said(around: &Around<'_>, direct: &[Point], overtaken_t: &[f64]) -> Vec<Point> {
    let (pool, series) = (around.pool, &around.from().echo);
    // Among those of which some were left out the packet that said it is not found.
    if around.stride > 1 || pool.thinned() > 0 {
        return around.unwrapped(series, around.stride).to_vec();
    }
    let mut said = Said::all(pool, series);
    sieve::leave_out_at(&mut said, overtaken_t, |said| said.point.t);
    about::put_where_seen(&said, &around.unwrapped(&around.to().direct, 1), direct)
}

/// Reads a direction of a TCP flow, to whose sender round trips were timed; of a short one nothing but itself.
pub(crate) fn read_tcp(mut own: Own, known: &Known<'_>, around: Option<&Around<'_>>) -> Reading {
    let Known { rtt, ref trips, lent_hz, told, is_quicker } = *known;
    let rate = rate(&own.points, rtt, around).or_lent(lent_hz);
    let Some(hz_from) = rate.hz() else { return Reading { rate: Some(rate), ..Reading::default() } };
    let tick_us = 1e6 / hz_from;
    leave_out_ahead(&mut own, tick_us);
    against_arrival(&mut own.points, tick_us);
    let overtaken_t = own.leave_out_overtaken();
    let Own { points: direct, lengths, .. } = own;
    let clocks = around.map_or_else(Clocks::default, |around| Clocks::of(around, tick_us, &direct));
    let mut echoed = Vec::new();
    if let Some((around, hz_to)) = around.filter(|around| around.with_echoed).zip(clocks.receiver_hz) {
        let tick_us_to = 1e6 / hz_to;
        echoed = echoed_points(around, [tick_us, tick_us_to]);
        sieve::leave_out_late(&mut echoed, &direct, &overtaken_t, tick_us_to);
    }
    let drift_found = clocks.found_ppm.or_else(|| own_drift(&direct, false));
    let told_ppm = told.map(|told| told.drift_ppm).filter(|ppm| ppm.abs() * span_s(&direct) >= DRIFT_US_MIN);
    let short = around.filter(|_| told.is_none()).and_then(|around| Short::of_tcp(around, tick_us, &direct));
    let mut reading = Reading::new([direct, echoed], tick_us, drift_found, trips);
    let short_ppm = short.map(|short| short.found_ppm);
    (reading.rate, reading.drift_ppm) = (Some(rate), drift_found.or(told_ppm).or(short_ppm));
    // Where the sender's own direction told it, that is against the observer's clock, for which the receiver's is taken if it does not
    // tell of itself: it is near.
    let told_ppm = || Some(reading.drift_ppm? - clocks.receiver_ppm.unwrap_or(0.0));
    let said_ppm = clocks.said_ppm.map(|said| -said).or(short.map(|short| short.echoed_ppm));
    let echoed_ppm = said_ppm.or_else(told_ppm);
    reading.take_out_drift(echoed_ppm, None);
    reading.direct.hold_against(rtt, trips);
    reading.take_out_transmission(&lengths, is_quicker);
    reading.find_ticks(rtt);
    reading.take_out_floors(&lengths);
    reading.settle_echoed();
    reading
}

/// The rate of the clock of a direction by itself.
pub(crate) fn rate(own: &[Point], rtt: &Rtt, around: Option<&Around<'_>>) -> Rate {
    rate::rate(own, growth_us_max(rtt), || around.and_then(|it| told_rate(it, own)))
}

/// The rate of the sender's clock that its echoes of the receiver's tell.
fn told_rate(around: &Around<'_>, readings: &[Point]) -> Option<Rates> {
    let receiver = Receiver::of(around);
    let mut differences = around.pool.all(&around.from().reverse);
    if let Protocol::Tcp(side) = &around.from().protocol {
        differences.extend(side.latest_difference());
    }
    if receiver.stamps.is_empty() {
        let mut unwrap = Unwrap::default();
        let point = |sample: &Sample| Point { t: sample.time_us as f64, x: unwrap.next(sample.raw) };
        let differences: Vec<Point> = differences.iter().map(point).collect();
        return rate::rate_by_echoes(&differences, readings, receiver.hz?);
    }
    let echo = |difference: &Sample| {
        let seen = difference.time_us as f64;
        let packet = readings.get(readings.partition_point(|packet| packet.t < seen))?;
        let stamp = packet.x as i64 as u32;
        let (after, next) = receiver.seen_around(stamp.wrapping_sub(difference.raw))?;
        (packet.t == seen).then(|| Echo::new(seen, packet.x, after, next))
    };
    rate::rate_by_echoed(&differences.iter().filter_map(echo).collect::<Vec<_>>())
}

/// Equation 3: the acknowledgement's clock less the segment's, each in its own ticks. The samples come in pairs: the
/// acknowledgement's clock, and the segment's.
fn echoed_points(around: &Around<'_>, [tick_us, tick_us_to]: [f64; 2]) -> Vec<Point> {
    let (series, stride, ahead) =
        (&around.from().echo, around.stride, Ahead::of_receiver(around, tick_us_to));
    let mut points = Vec::with_capacity((series.len() / 2).div_ceil(stride));
    let (mut acks, mut segments) = (Unwrap::default(), Unwrap::default());
    let (mut ack, mut number) = (None, 0);
    around.pool.each(series, 1, |sample| {
        let Some(ack) = ack.take() else {
            ack = Some(sample.raw);
            return;
        };
        let t = sample.time_us as f64;
        if number % stride == 0 {
            let x = acks.next(ack) * tick_us_to - segments.next(sample.raw) * tick_us;
            points.extend((!ahead.has(ack, t)).then_some(Point { t, x }));
        }
        number += 1;
    });
    points
}

impl Reading {
    fn new(
        [direct, echoed]: [Vec<Point>; 2],
        tick_us: f64,
        drift_found: Option<f64>,
        trips: &Trips<'_>,
    ) -> Self {
        let direct = Track::direct(direct, tick_us, trips);
        let echoed = Track::echoed(echoed, &direct, trips);
        Self { direct, echoed, drift_found, ..Self::default() }
    }

    /// The direct estimate drifts as the observer's clock does against the sender's; the echoed one as the receiver's
    /// does.
    fn take_out_drift(&mut self, echoed_ppm: Option<f64>, origin: Option<Point>) {
        let worth_it = |ppm: &f64| ppm.abs() >= DRIFT_PPM_MIN;
        self.drift_ppm = self.drift_ppm.filter(worth_it);
        if let Some(ppm) = self.drift_ppm {
            self.direct.straighten(ppm, origin);
        }
        if let Some(ppm) = echoed_ppm.filter(worth_it) {
            self.echoed.straighten(ppm, None);
        }
    }

    /// Finds where within a tick the least delay lies. An answer that is given at once is stamped when the question arrives,
    /// so the latest stamp for its question tells where a tick ends; and the shortest round trip, which is measured in
    /// microseconds, where that is seen by the observer.
    fn find_ticks(&mut self, rtt: &Rtt) {
        let ([piece], true) = (&self.direct.pieces[..], self.has_usual_ticks()) else { return };
        let (lead, tick_us) = (rtt.lead, self.direct.tick_us);
        // The edge with more answers is the sharper one.
        if lead.count > piece.near_base && lead.is_spread() {
            let above = lead.us.wrapping_add(rtt.min_us).wrapping_sub(piece.base as i64 as u32);
            // The greatest of many is the end of a tick.
            let missing = if lead.count >= MANY_ANSWERS { 0.0 } else { 1.0 / (f64::from(lead.count) + 1.0) };
            let middle = f64::from(above.cast_signed()) + tick_us * (missing - 0.5);
            let zero = piece.base + middle;
            self.direct.set_zero(zero, ZERO_TICKS_MAX[0]);
        }
    }

    /// Whether it is known how ticks lie.
    fn has_usual_ticks(&self) -> bool {
        self.rate == Some(Rate::Snapped(RATE_ASSUMED_HZ)) && self.drift_ppm.is_none()
    }

    /// Takes from elsewhere that the queue was empty at delays so much lower, and whether that was seen again.
    pub(crate) fn lower_base(&mut self, by_us: f64, is_confirmed: bool) {
        if let Some((base, zero)) = self.direct.only_base().zip(self.direct.only_zero()) {
            self.direct.lower_base(base - by_us);
            // Where it lies within a tick was known, and is by how much that is lowered.
            self.direct.set_zero(zero - by_us, ZERO_TICKS_MAX[0]);
            self.direct.confirmed_by_others = Some(is_confirmed);
            self.settle_echoed();
        }
    }

    /// The echoed estimate begins where the direct one does.
    fn settle_echoed(&mut self) {
        if self.echoed.pieces.is_empty() {
            return;
        }
        let apart = self.apart();
        self.lower_echoed(&apart);
        self.align_echoed(&apart);
    }

    /// By how much the echoed reading of a packet is above its direct one, over time.
    fn apart(&self) -> Vec<Point> {
        let ([direct], [echoed]) = (&self.direct.pieces[..], &self.echoed.pieces[..]) else {
            return Vec::new();
        };
        let mut packets = direct.points.iter().peekable();
        let same = |echoed: &Point| {
            while packets.next_if(|packet| packet.t < echoed.t).is_some() {}
            let packet = packets.peek().filter(|packet| packet.t == echoed.t)?;
            Some(Point { t: echoed.t, x: echoed.x - packet.x })
        };
        echoed.points.iter().filter_map(same).collect()
    }

    /// The receiver has a packet no sooner than the observer sees it. Where nothing lies between the two, a constant does between
    /// both estimates; where something does, the echoed one is above that, never below. So it is empty no higher than the direct one is,
    /// and what all thirds of the time agree on is believed: a queue behind the observer, or a clock that was set, still shows.
    fn lower_echoed(&mut self, apart: &[Point]) {
        let (Some(zero), Some(own)) = (self.direct.only_zero(), self.echoed.only_base()) else { return };
        let is_told = self.direct.confirmed_by_others.is_some();
        let third = if is_told { apart.len().div_ceil(3) } else { apart.len() / 3 };
        if third < if is_told { APART_MIN_TOLD } else { APART_MIN } {
            return;
        }
        let least = |third: &[Point]| {
            let mut apart: Vec<f64> = third.iter().map(|point| point.x).collect();
            let least = APART_ODD.min(apart.len() - 1);
            *apart.select_nth_unstable_by(least, f64::total_cmp).1
        };
        let constant = apart.chunks(third).take(3).map(least).fold(f64::NEG_INFINITY, f64::max);
        // Between both estimates lie the receiver's ticks alone, whose least is half of one below their middle. The echoed one has the
        // sender's besides, and its least is a whole one below.
        let tick_us = self.echoed.tick_us;
        let (zero, base) = (zero + constant + tick_us / 2.0, zero + constant - tick_us / 2.0);
        if base < own - LOWER_TICKS_MIN * tick_us {
            self.echoed.lower_base(base);
            self.echoed.set_zero(zero, ZERO_TICKS_MAX[1]);
        }
    }

    /// The echoed estimate has the ticks of two clocks: within these the direct one tells better where it begins.
    fn align_echoed(&mut self, apart: &[Point]) {
        let mut apart: Vec<f64> = apart.iter().map(|point| point.x).collect();
        let middle = apart.len() / 2;
        if let (Some(zero), true) = (self.direct.only_zero(), middle > 0) {
            let (_, &mut median, _) = apart.select_nth_unstable_by(middle, f64::total_cmp);
            self.echoed.set_zero(zero + median, ZERO_TICKS_MAX[1]);
        }
    }

    /// Both estimates contain what a packet takes by itself. It is taken out where there is one piece and that tells.
    fn take_out_transmission(&mut self, lengths: &[Length], is_quicker: &dyn Fn(f64) -> bool) {
        let [piece] = &self.direct.pieces[..] else { return };
        let per_octet = PerOctet::of(&piece.points, lengths, self.direct.tick_us);
        if let Some(per_octet) = per_octet.filter(|per_octet| !is_quicker(per_octet.us)) {
            self.take_out(lengths, |length| per_octet.excess_us(length));
        }
    }

    /// As [`Self::take_out_transmission`], by what messages of a length always take. Where the base was told otherwise, that
    /// counts.
    fn take_out_floors(&mut self, lengths: &[Length]) {
        let [piece] = &self.direct.pieces[..] else { return };
        if self.without_transmission || piece.middle.is_some() {
            return;
        }
        if let Some(floors) = Floors::of(&piece.points, lengths, self.direct.tick_us) {
            self.take_out(lengths, |length| floors.excess_us(length));
        }
    }

    fn take_out(&mut self, lengths: &[Length], excess_us: impl Fn(Length) -> f64) {
        let points = || self.direct.pieces.iter().flat_map(|piece| &piece.points);
        let mut packets = points().zip(lengths).peekable();
        let mut last = None;
        for point in self.echoed.pieces.iter_mut().flat_map(|piece| &mut piece.points) {
            while let Some(packet) = packets.next_if(|(packet, _)| packet.t <= point.t) {
                last = Some(packet);
            }
            point.x -= last.filter(|last| last.0.t == point.t).map_or(0.0, |last| excess_us(*last.1));
        }
        for (point, &length) in self.direct.pieces.iter_mut().flat_map(|piece| &mut piece.points).zip(lengths)
        {
            point.x -= excess_us(length);
        }
        self.direct.find_bases();
        self.echoed.find_bases();
        self.without_transmission = true;
    }
}
