//! Whether packets of a host are later for their length, by those of its flows that met an empty queue.
//!
//! Where a flow's only long packet without its own flow before it came behind one of another flow, it looks as if its octets took that
//! time ([`crate::clocks::transmission`]). Another flow's long packet that was as quick as a short one tells that they do not: the queue
//! is that of a token bucket, which has saved tokens for it.
//!
//! **What it leaves out.** Flows whose shortest round trip is not the host's: the least that they met may be a queue. Short flows.

use crate::report::Protocol;
use crate::store::sender::Sender;
use core::cell::OnceCell;

/// So many flows are asked, whose shortest round trips are longer than the shortest by no more than this part of a full packet's time: on a
/// wire a long packet of theirs would have taken the rest of it more than whatever they saw least of.
const ASKED_MAX: usize = 8;
const LONGER: f64 = 0.5;
const FULL_BYTES: f64 = 1_500.0;
/// An octet that makes packets later by less than this part of what it should makes them no later.
const MUCH_LESS: f64 = 0.25;

/// A flow's shortest round trip, less that of its host; and how much an octet makes its packets later at least.
pub(crate) struct Flow {
    sender: Sender,
    longer_us: f64,
    us_per_octet: f64,
}

/// The flows of either protocol with the shortest round trips.
#[derive(Default)]
pub(crate) struct Quickest([OnceCell<Vec<Flow>>; 2]);

impl Quickest {
    /// Whether flows of the same host but this one, which met an empty queue, show much less than so many microseconds per octet; they are
    /// asked for once.
    pub(crate) fn is_below(
        &self,
        us_per_octet: f64,
        sender: Sender,
        ask: impl Fn(Protocol) -> Vec<Flow>,
    ) -> bool {
        let Self([utp, tcp]) = self;
        let known = if sender.protocol() == Protocol::Utp { utp } else { tcp };
        let is_quicker = |flow: &Flow| {
            let has_met_none = flow.longer_us <= LONGER * us_per_octet * FULL_BYTES;
            flow.sender != sender && has_met_none && flow.us_per_octet < MUCH_LESS * us_per_octet
        };
        known.get_or_init(|| ask(sender.protocol())).iter().any(is_quicker)
    }
}

/// Those of flows, each with its shortest round trip, that are asked, as far as they tell how much later octets make their packets.
pub(crate) fn quickest(
    mut timed: Vec<(f64, Sender)>,
    us_per_octet: impl Fn(&Sender) -> Option<f64>,
) -> Vec<Flow> {
    timed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let Some(&(shortest_us, _)) = timed.first() else { return Vec::new() };
    let flow = |&(round_trip_us, sender): &(f64, Sender)| {
        let us_per_octet = us_per_octet(&sender)?;
        Some(Flow { sender, longer_us: round_trip_us - shortest_us, us_per_octet })
    };
    timed.iter().take(ASKED_MAX).filter_map(flow).collect()
}
