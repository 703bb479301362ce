//! What a world hands to a host, and what it gets back. Both are plain data, so a run is its scenario, its seed and
//! the order of these values.

use alloc::vec::Vec;
use cede_units::Instant;
use cede_wire::{Head, Payload};

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
    /// Octets of network headers that no field holds: 20 for IPv4, 40 for IPv6, more for link layers that count.
    pub network_overhead_bytes: u8,
    /// The transport's header.
    pub head: Head,
    /// What the transport carries.
    pub payload: Payload,
}

impl Datagram {
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

/// A participant: a value that is handed packets and the time and answers with packets and its next deadline.
///
/// It reads no clock, opens no socket and draws no random number of its own. `now` is the host's own clock, which a
/// world may offset and skew against those of others.
pub trait Host {
    /// Takes one input at local time `now` and says what is to be done.
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output);
}

impl<H: Host + ?Sized> Host for alloc::boxed::Box<H> {
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output) {
        (**self).handle(now, input, output);
    }
}
