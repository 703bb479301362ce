//! Where a host's directions are read from, and what its flows tell each other when they are asked.

use crate::clocks::ahead::leave_out_ahead;
use crate::clocks::around::Around;
use crate::clocks::clock::{DRIFT_SPAN_US_MIN, DRIFT_SPAN_US_SHORT};
use crate::clocks::drift::against_arrival;
use crate::clocks::own::Own;
use crate::clocks::rate::Rate;
use crate::clocks::reading;
use crate::clocks::shelf::Shelf;
use crate::clocks::transmission::least_per_octet;
use crate::hosts::quickest::{Flow, Quickest, quickest};
use crate::report::Protocol;
use crate::store::sender::Sender;
use crate::store::stock::Reader;
use core::cell::OnceCell;
use core::cmp::Reverse;

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
    pub(crate) fn lent_hz(&self) -> Option<f64> {
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

    /// Whether other flows of the sender's host, which met an empty queue, show much less than so many microseconds per octet.
    pub(crate) fn is_quicker(&self, us_per_octet: f64, sender: Sender) -> bool {
        self.quickest.is_below(us_per_octet, sender, |protocol| self.quickest_of(protocol))
    }

    fn quickest_of(&self, protocol: Protocol) -> Vec<Flow> {
        let of_protocol = self.host.iter().filter(|sender| sender.protocol() == protocol);
        let timed = of_protocol.filter_map(|sender| Some((self.round_trip_us(sender, 2)?.0, *sender)));
        quickest(timed.collect(), |sender| self.own_per_octet(sender))
    }

    /// How much an octet makes a direction's packets later at least.
    fn own_per_octet(&self, sender: &Sender) -> Option<f64> {
        let (mut own, hz) = self.own(sender)?;
        if sender.protocol() == Protocol::Tcp {
            let tick_us = 1e6 / hz?;
            leave_out_ahead(&mut own, tick_us);
            against_arrival(&mut own.points, tick_us);
        }
        own.leave_out_overtaken();
        least_per_octet(&own.points, &own.lengths)
    }
}
