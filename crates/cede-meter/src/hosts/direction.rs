//! What a direction of a flow says.

use crate::clocks::around::{self, Around};
use crate::clocks::doubt::Trips;
use crate::clocks::glance::{self, Glance};
use crate::clocks::own::Own;
use crate::clocks::rate::Rate;
use crate::clocks::reading::{self, Known, Reading};
use crate::clocks::told::Told;
use crate::hosts::several::Likeness;
use crate::hosts::source::Source;
use crate::packet::Marks;
use crate::packet::key::{Key, Side, Socket};
use crate::packet::rtt::Rtt;
use crate::report::{Flags, FlowReport, Protocol, RoundTrip};
use crate::stats::delay::Delay;
use crate::stats::summary;
use crate::store::flow::Totals;
use crate::store::sender::Sender;

const SHORT_SAMPLES: u64 = 50;
const SHORT_US: f64 = 10e6;
const COARSE_TICK_HZ: f64 = 250.0;
/// Clocks of 32 bits begin anew after so many ticks.
pub(crate) const WRAP_TICKS: f64 = (1_u64 << 32) as f64;

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

/// How much of a direction is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// What its packets say of their own way, and round trips.
    Direct,
    /// Also what their receiver says.
    Whole,
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

    pub(crate) const fn start_was_seen(&self) -> bool {
        self.marks.has(Marks::START)
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
        let is_quicker = |us_per_octet: f64| source.is_quicker(us_per_octet, sender);
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

    /// The shortest round trip to its sender.
    pub(crate) fn shortest_us(&self) -> Option<f64> {
        self.about.round_trip.map(|round_trip| round_trip.min_ms * 1e3)
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
