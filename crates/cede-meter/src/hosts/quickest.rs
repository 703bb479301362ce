//! Whether packets of a host are later for their length, by those of its flows that met an empty queue.
//!
//! Where a flow's only long packet without its own flow before it came behind one of another flow, it looks as if its octets took that
//! time ([`crate::clocks::transmission`]). Another flow's long packet that was as quick as a short one tells that they do not: the queue
//! is that of a token bucket, which has saved tokens for it.
//!
//! **What it leaves out.** Flows whose shortest round trip is not the host's: the least that they met may be a queue. Short flows.

use crate::clocks::drift::against_arrival;
use crate::clocks::transmission::least_per_octet;
use crate::hosts::direction::Source;
use crate::report::Protocol;
use crate::store::sender::Sender;
use core::cell::OnceCell;

/// So many flows are asked, whose shortest round trips are longer than the shortest by no more than that.
const ASKED_MAX: usize = 8;
const LONGER_US_MAX: f64 = 250.0;
/// An octet that makes packets later by less than this part of what it should makes them no later.
const MUCH_LESS: f64 = 0.5;

/// How much an octet makes packets later at least, of flows of either protocol that met an empty queue.
#[derive(Default)]
pub(crate) struct Quickest([OnceCell<Vec<(Sender, f64)>>; 2]);

impl Quickest {
    /// Whether other flows of the sender's host show much less than so many microseconds per octet.
    pub(crate) fn is_below(&self, us_per_octet: f64, source: &Source<'_>, sender: Sender) -> bool {
        let Self([utp, tcp]) = self;
        let known = if sender.protocol() == Protocol::Utp { utp } else { tcp };
        let all = known.get_or_init(|| per_octet(source, sender.protocol()));
        all.iter().any(|&(other, us)| other != sender && us < MUCH_LESS * us_per_octet)
    }
}

fn per_octet(source: &Source<'_>, protocol: Protocol) -> Vec<(Sender, f64)> {
    let of_protocol = source.host.iter().filter(|sender| sender.protocol() == protocol);
    let mut timed: Vec<(f64, Sender)> =
        of_protocol.filter_map(|sender| Some((source.round_trip_us(sender, 2)?.0, *sender))).collect();
    timed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let Some(&(shortest_us, _)) = timed.first() else { return Vec::new() };
    let near = timed.into_iter().take_while(|flow| flow.0 <= shortest_us + LONGER_US_MAX).take(ASKED_MAX);
    near.filter_map(|(_, sender)| Some((sender, own_per_octet(source, &sender)?))).collect()
}

fn own_per_octet(source: &Source<'_>, sender: &Sender) -> Option<f64> {
    let (mut own, hz) = source.own(sender)?;
    if sender.protocol() == Protocol::Tcp {
        against_arrival(&mut own.points, 1e6 / hz?);
    }
    own.leave_out_overtaken();
    least_per_octet(&own.points, &own.lengths)
}
