//! Who sent a direction of a flow, as a number by which directions are put in order.

use crate::packet::key::{Address, Key, Side};
use crate::report::Protocol;
use crate::store::place::Place;

/// A direction: from the highest bits on the rank of the address that sends, whether it is TCP, its port, the flow's place
/// (32 bits) and the side. So directions in order are those of one host, and among these of one socket, next to each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Sender(u128);

impl Sender {
    const HOST: u32 = 50;
    const PROTOCOL: u32 = 49;
    const PORT: u32 = 33;
    /// Octets that a flow takes while the report is made: both directions, and an address that no other has.
    pub(crate) const FLOW_BYTES: usize = 2 * size_of::<Self>() + 2 * size_of::<Address>();

    pub(crate) fn new(host: u32, key: &Key, place: Place, side: Side) -> Self {
        let socket = u128::from(key.is_tcp()) << Self::PROTOCOL | u128::from(key.port(side)) << Self::PORT;
        Self(u128::from(host) << Self::HOST | socket | u128::from(place.bits()) << 1 | side as u128)
    }

    /// The number or the rank of the address that sends.
    pub(crate) const fn host(self) -> u32 {
        (self.0 >> Self::HOST) as u32
    }

    /// The same direction of another number, or of a rank in its place.
    pub(crate) const fn with_host(self, host: u32) -> Self {
        Self(self.0 ^ ((self.host() ^ host) as u128) << Self::HOST)
    }

    pub(crate) const fn place(self) -> Place {
        Place::from_bits((self.0 >> 1) as u32)
    }

    pub(crate) const fn side(self) -> Side {
        (self.0 & 1) as Side
    }

    pub(crate) const fn protocol(self) -> Protocol {
        if self.0 >> Self::PROTOCOL & 1 == 1 { Protocol::Tcp } else { Protocol::Utp }
    }

    /// Whether both are of one host.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.host() == other.host()
    }

    /// Whether both have one clock and one base: uTP from one socket.
    pub(crate) fn shares_base_with(&self, other: &Self) -> bool {
        self.protocol() == Protocol::Utp && self.0 >> Self::PORT == other.0 >> Self::PORT
    }
}
