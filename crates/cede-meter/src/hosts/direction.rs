//! What a direction of a flow says.

use crate::clocks::around::{self, Around};
use crate::clocks::clock::{DRIFT_SPAN_US_MIN, DRIFT_SPAN_US_SHORT, Rate};
use crate::clocks::doubt::Trips;
use crate::clocks::glance::{self, Glance};
use crate::clocks::own::Own;
use crate::clocks::reading::{self, Known, Reading};
use crate::clocks::shelf::Shelf;
use crate::clocks::told::Told;
use crate::hosts::quickest::Quickest;
use crate::hosts::several::Likeness;
use crate::packet::Marks;
use crate::packet::key::{Key, Side, Socket};
use crate::packet::rtt::Rtt;
use crate::report::{Flags, FlowReport, Protocol, RoundTrip};
use crate::stats::delay::Delay;
use crate::stats::summary;
use crate::store::flow::Totals;
use crate::store::sender::Sender;
use crate::store::stock::Reader;
use core::cell::OnceCell;
use core::cmp::Reverse;

const SHORT_SAMPLES: u64 = 50;
const SHORT_US: f64 = 10e6;
const COARSE_TICK_HZ: f64 = 250.0;
/// Clocks of 32 bits begin anew after so many ticks.
const WRAP_TICKS: f64 = (1_u64 << 32) as f64;

/// A direction that is to be analysed.
pub(crate) struct Direction {
    pub about: About,
    pub reading: Reading,
    /// Others of its host lowered its base.
    pub is_base_told: bool,
}

/// What is known of it beside its samples.
pub(crate) struct About {
    key: Key,
    side: Side,
    marks: Marks,
    packets: u32,
    bytes: u64,
    span_us: (u64, u64),
    /// And by how many packets it is that of most.
    pub hop_limit: (u8, u32),
    is_alone: bool,
    pub round_trip: Option<RoundTrip>,
}

/// Where a host's directions are read from: of so many samples one.
pub(crate) struct Source<'a> {
    pub flows: &'a Reader<'a>,
    pub host: &'a [Sender],
    pub stride: usize,
    /// What points are put into.
    pub shelf: &'a Shelf,
    /// The rate of its TCP clock, once it was asked for.
    lent_hz: OnceCell<Option<f64>>,
    /// How much later its packets are for their length, once that was asked for.
    quickest: Quickest,
}

/// How much of a direction is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// What its packets say of their own way, and round trips.
    Direct,
    /// Also what their receiver says.
    Whole,
}

impl<'a> Source<'a> {
    pub(crate) fn new(flows: &'a Reader<'a>, host: &'a [Sender], stride: usize, shelf: &'a Shelf) -> Self {
        Self { flows, host, stride, shelf, lent_hz: OnceCell::new(), quickest: Quickest::default() }
    }
}

impl Source<'_> {
    /// Over how long a direction has samples, where that is long enough to tell how its clock runs; zero elsewhere.
    pub(crate) fn span_if_long_us(&self, sender: &Sender) -> f64 {
        self.span_if_us(sender, DRIFT_SPAN_US_MIN)
    }

    /// As [`Self::span_if_long_us`], of uTP also where it may be.
    pub(crate) fn span_if_told_us(&self, sender: &Sender) -> f64 {
        let is_tcp = sender.protocol() == Protocol::Tcp;
        self.span_if_us(sender, if is_tcp { DRIFT_SPAN_US_MIN } else { DRIFT_SPAN_US_SHORT })
    }

    fn span_if_us(&self, sender: &Sender, least_us: f64) -> f64 {
        self.flows.long(sender.place()).map_or(0.0, |(flow, pool)| {
            let span_us = pool.span_us(&flow.sides[sender.side()].direct);
            if span_us >= least_us { span_us } else { 0.0 }
        })
    }

    /// The shortest round trip to the sender of a flow that is no short one and has so many samples, and over how long it has them.
    pub(crate) fn round_trip_us(&self, sender: &Sender, samples_min: usize) -> Option<(f64, f64)> {
        let (flow, pool) = self.flows.long(sender.place())?;
        let (rtt, direct) = (&flow.sides[1 - sender.side()].rtt, &flow.sides[sender.side()].direct);
        let is_told = rtt.count > 0 && direct.len() >= samples_min;
        is_told.then(|| (f64::from(rtt.min_us), pool.span_us(direct)))
    }

    pub(crate) fn is_short(&self, sender: &Sender) -> bool {
        self.flows.short(sender.place()).is_some()
    }

    /// How many samples of a direction are looked at; of a short flow the most that there may be.
    pub(crate) fn samples(&self, sender: &Sender) -> usize {
        self.flows.samples(sender.place(), sender.side()).0.div_ceil(self.stride)
    }

    /// The rate of the host's TCP clock that the longest of its flows tell.
    fn lent_hz(&self) -> Option<f64> {
        const ASKED_MAX: usize = 4;
        *self.lent_hz.get_or_init(|| {
            let is_asked = |sender: &&Sender| {
                sender.protocol() == Protocol::Tcp && self.flows.long(sender.place()).is_some()
            };
            let mut asked: Vec<&Sender> = self.host.iter().filter(is_asked).collect();
            asked.sort_by_key(|sender| Reverse(self.samples(sender)));
            asked.into_iter().take(ASKED_MAX).find_map(|sender| self.own_hz(sender))
        })
    }

    fn own_hz(&self, sender: &Sender) -> Option<f64> {
        self.own(sender)?.1
    }

    /// The readings of a direction of no short flow by themselves, and the rate of a TCP clock where they tell it, in whose ticks they are.
    pub(crate) fn own(&self, sender: &Sender) -> Option<(Own, Option<f64>)> {
        let (side, stride, shelf) = (sender.side(), self.stride, self.shelf);
        let (flow, pool) = self.flows.long(sender.place())?;
        let around = Around { flow, side, pool, shelf, stride, with_echoed: false };
        let own = Own::read(&around);
        if sender.protocol() == Protocol::Utp {
            return Some((own, None));
        }
        let rate = reading::rate(&own.points, &flow.sides[1 - side].rtt, Some(&around));
        Some((own, if let Rate::Snapped(hz) = rate { Some(hz) } else { None }))
    }
}

impl About {
    /// What each side sent, the one in question first, and how long the other one's packets took to it and back.
    fn new((key, marks, first_us): (Key, Marks, u64), side: Side, totals: [Totals; 2], rtt: &Rtt) -> Self {
        let [totals, other] = totals;
        Self {
            key,
            side,
            marks,
            packets: totals.packets,
            bytes: totals.bytes,
            span_us: (first_us, totals.last_us),
            hop_limit: (totals.hop_limit.value, totals.hop_limit_ahead()),
            is_alone: other.packets == 0,
            // What the other side asked, this side answered.
            round_trip: round_trip(rtt),
        }
    }

    pub(crate) const fn protocol(&self) -> Protocol {
        protocol(&self.key)
    }

    pub(crate) fn source(&self) -> Socket {
        self.key.socket(self.side)
    }

    pub(crate) fn destination(&self) -> Socket {
        self.key.socket(1 - self.side)
    }
}

const fn protocol(key: &Key) -> Protocol {
    if key.is_tcp() { Protocol::Tcp } else { Protocol::Utp }
}

impl Direction {
    /// Reads a direction, by what others told of its clock.
    pub(crate) fn read(source: &Source<'_>, sender: Sender, depth: Depth, told: Option<&Told>) -> Self {
        let (side, stride) = (sender.side(), source.stride);
        let lent_hz = || source.lent_hz();
        let is_quicker = |us_per_octet: f64| source.quickest.is_below(us_per_octet, source, sender);
        let read = |own: Own, (rtt, trips): (&Rtt, Trips<'_>), hop_limit: u8, around: Option<&Around<'_>>| {
            let told = told.filter(|told| told.fits(hop_limit));
            let known = Known { rtt, trips, lent_hz: &lent_hz, told, is_quicker: &is_quicker };
            match sender.protocol() {
                Protocol::Utp => reading::read_utp(own, &known, around),
                Protocol::Tcp => reading::read_tcp(own, &known, around),
            }
        };
        if depth == Depth::Direct
            && let Some((embryo, pool)) = source.flows.short(sender.place())
        {
            let Glance { own, rtt } = Glance::of(embryo, side, pool, stride);
            let totals = [side, 1 - side].map(|side| embryo.totals(side));
            let about = About::new((embryo.key, embryo.marks, embryo.first_us), side, totals, &rtt);
            let trips = |how| glance::trips(embryo, side, pool, how);
            let reading = read(own, (&rtt, Trips::new(&trips)), about.hop_limit.0, None);
            return Self { about, reading, is_base_told: false };
        }
        source.flows.with(sender.place(), |flow, pool| {
            let (shelf, with_echoed) = (source.shelf, depth == Depth::Whole);
            let around = Around { flow, side, pool, shelf, stride, with_echoed };
            let (own, rtt) = (Own::read(&around), &flow.sides[1 - side].rtt);
            let totals = [side, 1 - side].map(|side| flow.sides[side].totals);
            let about = About::new((flow.key, flow.marks, flow.first_us), side, totals, rtt);
            let trips = |how| around::trips(&around, how);
            let reading = read(own, (rtt, Trips::new(&trips)), about.hop_limit.0, Some(&around));
            Self { about, reading, is_base_told: false }
        })
    }

    /// Of a direction with direct samples.
    fn flags(&self, is_short: bool) -> Flags {
        let mut flags = Flags::default();
        let (marks, reading) = (self.about.marks, &self.reading);
        flags.set_if(!marks.has(Marks::START), Flags::START_NOT_SEEN);
        flags.set_if(marks.has(Marks::OFFLOADED), Flags::OFFLOADED);
        // Of what nobody acknowledges there is no track to be lost.
        flags.set_if(marks.has(Marks::LOST_TRACK) && !self.about.is_alone, Flags::LOST_TRACK);
        flags.set_if(marks.has(Marks::EVICTED), Flags::EVICTED);
        flags.set_if(reading.direct.is_unconfirmed(), Flags::BASE_NOT_REVISITED);
        flags.set_if(reading.direct.pieces.len() > 1, Flags::CLOCK_STEP);
        flags.set_if(reading.direct.is_beyond_round_trips, Flags::BEYOND_ROUND_TRIPS);
        flags.set_if(reading.drift_ppm.is_some(), Flags::DRIFT_CORRECTED);
        flags.set_if(self.is_base_told, Flags::BASE_TOLD);
        flags.set_if(reading.without_transmission, Flags::TRANSMISSION_REMOVED);
        flags.set_if(self.about.is_alone, Flags::ONE_DIRECTION);
        flags.set_if(is_short, Flags::SHORT);
        match reading.rate {
            Some(Rate::Unknown | Rate::Lent(_)) => flags.set_if(true, Flags::RATE_ASSUMED),
            Some(Rate::Snapped(hz)) => flags.set_if(hz <= COARSE_TICK_HZ, Flags::COARSE_CLOCK),
            Some(Rate::Odd(_)) | None => {}
        }
        flags
    }

    /// The sender's clock, as far as it was found.
    pub(crate) fn likeness(&self) -> Likeness {
        let (rate_hz, tick_us) = match self.reading.rate {
            Some(Rate::Snapped(hz)) => (Some(hz), Some(1e6 / hz)),
            Some(Rate::Unknown | Rate::Lent(_) | Rate::Odd(_)) => (None, None),
            None => (None, Some(1.0)),
        };
        let offset = self.reading.direct.only_base().zip(tick_us.map(|tick_us| tick_us * WRAP_TICKS));
        Likeness { rate_hz, offset, hop_limit: self.about.hop_limit }
    }

    /// What was found, of direct samples of the times asked for; whether all of them are few ([`is_short`]).
    pub(crate) fn report(&self, direct: &[Delay], is_short: bool) -> FlowReport {
        let about = &self.about;
        let mut flags = if direct.is_empty() { Flags::default() } else { self.flags(is_short) };
        flags.set_if(matches!(self.reading.rate, Some(Rate::Odd(_))), Flags::RATE_ODD);
        FlowReport {
            source: about.source(),
            destination: about.destination(),
            protocol: about.protocol(),
            packets: about.packets,
            bytes: about.bytes,
            span_us: about.span_us,
            flags,
            direct: None,
            echoed: None,
            clock_hz: self.reading.rate.and_then(Rate::hz),
            drift_ppm: self.reading.drift_ppm,
            round_trip: about.round_trip,
        }
    }
}

/// Whether samples are so few that the queue may never have been seen empty.
pub(crate) fn is_short(direct: &[Delay]) -> bool {
    (direct.len() as u64) < SHORT_SAMPLES || !summary::cover(direct, SHORT_US)
}

fn round_trip(rtt: &Rtt) -> Option<RoundTrip> {
    (rtt.count > 0).then(|| RoundTrip {
        samples: rtt.count,
        min_ms: f64::from(rtt.min_us) / 1e3,
        mean_ms: rtt.sum_us as f64 / f64::from(rtt.count) / 1e3,
    })
}
