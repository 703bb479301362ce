//! What a world hands to a host, and what it gets back. Both are plain data, so a run is its scenario, its seed and
//! the order of these values.

use alloc::vec::Vec;
use cede_units::Instant;
use cede_wire::{Ecn, Head, Payload};

/// A participant's place in its world, counted from 0 in the order of the participants' names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct HostId(pub u32);

/// A host and a port on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Address {
    /// Which host.
    pub host: HostId,
    /// Which port.
    pub port: u16,
}

impl Address {
    /// Port `port` of `host`.
    #[must_use]
    pub const fn new(host: HostId, port: u16) -> Self {
        Self { host, port }
    }
}

/// Which protocol the octets of a datagram speak, as far as IP tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// The head is what follows a UDP header of 8 octets.
    #[default]
    Udp,
    /// The head is a TCP header, ports and options included.
    Tcp,
}

/// One packet on its way: addresses, a small inline head, and a payload that is never copied.
#[derive(Clone, Debug, Default)]
pub struct Datagram {
    /// Who sent it.
    pub source: Address,
    /// Whom it is for.
    pub destination: Address,
    /// What the octets are.
    pub protocol: Protocol,
    /// It may not be fragmented.
    pub dont_fragment: bool,
    /// What the IP header says of congestion; queues on the way may mark it.
    pub ecn: Ecn,
    /// Octets of network headers that no field holds: 20 for IPv4, 40 for IPv6, more for link layers that count.
    pub network_overhead_bytes: u8,
    /// The transport's header.
    pub head: Head,
    /// What the transport carries.
    pub payload: Payload,
}

impl Datagram {
    /// A number that the packets of one flow share: addresses, ports and protocol in one word, for queues that keep
    /// flows apart. It is not a hash: whoever needs one mixes it.
    #[must_use]
    pub const fn flow_key(&self) -> u64 {
        let protocol = match self.protocol {
            Protocol::Udp => 0,
            Protocol::Tcp => 1 << 63,
        };
        let source = ((self.source.host.0 as u64) << 16) | self.source.port as u64;
        let destination = ((self.destination.host.0 as u64) << 16) | self.destination.port as u64;
        // An odd factor (2^64 over the golden ratio) spreads the one end's 48 bits before the other's are laid over.
        protocol ^ source.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ destination
    }

    /// Octets that the packet takes on a link: network, UDP where there is one, head and payload.
    #[must_use]
    pub fn wire_bytes(&self) -> u32 {
        let udp = match self.protocol {
            Protocol::Udp => 8,
            Protocol::Tcp => 0,
        };
        u32::from(self.network_overhead_bytes) + udp + self.head.len() as u32 + self.payload.len()
    }
}

/// What happens to a host.
#[derive(Clone, Debug)]
pub enum Input {
    /// The world begins.
    Start,
    /// A packet arrived.
    Datagram(Datagram),
    /// The instant that the host asked for in [`Output::wake_at`] has come.
    Timeout,
}

/// What a host wants done. The world empties `sends` after each call and obeys the last `wake_at` it was given.
#[derive(Debug, Default)]
pub struct Output {
    /// Packets to send, in order.
    pub sends: Vec<Datagram>,
    /// When the host wants [`Input::Timeout`] next, by its own clock; none to sleep until a packet comes.
    pub wake_at: Option<Instant>,
}

/// How near a packet is to the host that is told of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Foresight {
    /// It has been sent, or is not far behind others.
    Sent,
    /// It comes after the next one over the same link.
    Near,
    /// It is the next one over its link.
    Next,
    /// It is there, and will be handled now.
    Arrived,
}

/// A participant: a value that is handed packets and the time and answers with packets and its next deadline.
///
/// It reads no clock, opens no socket and draws no random number of its own. `now` is the host's own clock, which a
/// world may offset and skew against those of others.
pub trait Host {
    /// Takes one input at local time `now` and says what is to be done.
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output);

    /// Whether [`Host::foresee`] is of use: who has little in memory is told nothing, and pays nothing for it. The same for all hosts of a world.
    fn foresees(&self) -> bool {
        false
    }

    /// A packet for this host is on its way, so near: what it concerns may be brought near to the processor. A hint, which changes nothing.
    fn foresee(&self, packet: &Datagram, foresight: Foresight) {
        let _ = (packet, foresight);
    }
}

impl<H: Host + ?Sized> Host for alloc::boxed::Box<H> {
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output) {
        (**self).handle(now, input, output);
    }

    fn foresees(&self) -> bool {
        (**self).foresees()
    }

    fn foresee(&self, packet: &Datagram, foresight: Foresight) {
        (**self).foresee(packet, foresight);
    }
}
