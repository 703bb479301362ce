//! Listening to a world.

use crate::LinkId;
use cede_net::{Datagram, Dequeue, DropCause, Enqueue, HostId};
use cede_units::{Duration, Instant};

/// A packet at a host.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent<'a> {
    /// When, in the world's time.
    pub at: Instant,
    /// At which host.
    pub host: HostId,
    /// The packet.
    pub datagram: &'a Datagram,
    /// How long it has waited in the queues of all links of its way, watched or not; nothing where it has just been sent.
    pub waited: Duration,
}

/// Hears what happens in a world. Every method does nothing by default, so the unit type costs nothing.
pub trait Observer {
    /// Whether the queue events of a link are wanted, but for drops; asked once, when the world is built. Links that nobody
    /// listens to spend no time on it.
    fn watches(&self, link: LinkId) -> bool {
        let _ = link;
        false
    }
    /// A packet joined the queue of a watched link.
    fn enqueued(&mut self, link: LinkId, datagram: &Datagram, event: &Enqueue) {
        let _ = (link, datagram, event);
    }
    /// A packet's transmission began on a watched link.
    fn dequeued(&mut self, link: LinkId, datagram: &Datagram, event: &Dequeue) {
        let _ = (link, datagram, event);
    }
    /// A packet was dropped or lost, on any link.
    fn dropped(&mut self, link: LinkId, datagram: &Datagram, at: Instant, cause: DropCause) {
        let _ = (link, datagram, at, cause);
    }
    /// A queue marked a packet "congestion experienced" on a watched link.
    fn marked(&mut self, link: LinkId, datagram: &Datagram, at: Instant) {
        let _ = (link, datagram, at);
    }
    /// A host sent a packet.
    fn sent(&mut self, event: &PacketEvent<'_>) {
        let _ = event;
    }
    /// A packet reached its host.
    fn delivered(&mut self, event: &PacketEvent<'_>) {
        let _ = event;
    }
}

impl Observer for () {}
