//! What two packets of one flow have in common.

use core::hash::{BuildHasher, Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use foldhash::fast::RandomState;

/// The two ends of a flow in an order of their own, so that both directions have the same key.
#[derive(Clone, Copy, Eq, Debug)]
pub struct Key {
    addresses: [Address; 2],
    ports: [u16; 2],
    is_tcp: bool,
}

/// An address, packed. IPv4 addresses stand where no IPv6 address does: `::ffff:0:0/96` (RFC 4291, section 2.5.5.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address([u64; 2]);

/// One end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Socket {
    /// The address; IPv4 as it is.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

/// A socket, packed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct End {
    /// The address.
    pub address: Address,
    /// The port.
    pub port: u16,
}

/// Which end of the key sent a packet.
pub type Side = usize;

impl Key {
    /// None that a packet has.
    pub(crate) const NONE: Self = Self { addresses: [Address([0; 2]); 2], ports: [0; 2], is_tcp: false };

    /// The key of a packet, and the side that sent it.
    #[inline]
    #[must_use]
    pub fn of(source: End, destination: End, is_tcp: bool) -> (Self, Side) {
        let is_swapped = source > destination;
        // Word by word, so that all of them stay in registers.
        let pick = |a: u64, b: u64| if is_swapped { b } else { a };
        let ([a, b], [c, d]) = (source.address.0, destination.address.0);
        let addresses = [Address([pick(a, c), pick(b, d)]), Address([pick(c, a), pick(d, b)])];
        let (from, to) = (source.port.into(), destination.port.into());
        let ports = [pick(from, to) as u16, pick(to, from) as u16];
        (Self { addresses, ports, is_tcp }, usize::from(is_swapped))
    }

    /// As [`Self::of`], for IPv4 addresses, which fit one word with their ports.
    #[inline(always)]
    pub(crate) fn of_v4(source: (u32, u16), destination: (u32, u16), is_tcp: bool) -> (Self, Side) {
        let word = |end: (u32, u16)| u64::from(end.0) << 16 | u64::from(end.1);
        let (from, to) = (word(source), word(destination));
        let ends = [from.min(to), from.max(to)];
        let addresses = ends.map(|end| Address::v4((end >> 16) as u32));
        (Self { addresses, ports: ends.map(|end| end as u16), is_tcp }, usize::from(from > to))
    }

    /// The socket of a side.
    #[must_use]
    pub fn socket(&self, side: Side) -> Socket {
        Socket { address: self.addresses[side].ip(), port: self.ports[side] }
    }

    /// The socket of a side, packed.
    pub(crate) const fn end(&self, side: Side) -> End {
        End { address: self.addresses[side], port: self.ports[side] }
    }

    /// The port of a side.
    pub(crate) const fn port(&self, side: Side) -> u16 {
        self.ports[side]
    }

    /// The address of a side, packed.
    pub(crate) const fn address(&self, side: Side) -> Address {
        self.addresses[side]
    }

    /// Whether it is TCP, and not UDP.
    #[must_use]
    pub const fn is_tcp(&self) -> bool {
        self.is_tcp
    }

    /// A keyed hash, the same for both directions.
    #[inline(always)]
    #[must_use]
    pub fn hash(&self, state: &RandomState) -> u64 {
        let mut hasher = state.build_hasher();
        let [a, b] = self.addresses;
        if a.is_v4() && b.is_v4() {
            (a.0[1] << 32 | b.0[1] & u64::from(u32::MAX)).hash(&mut hasher);
        } else {
            (a, b).hash(&mut hasher);
        }
        let [low, high] = self.ports.map(u64::from);
        (low << 32 | high << 8 | u64::from(self.is_tcp)).hash(&mut hasher);
        // By itself it leaves flows of like addresses in a few runs of a table, as one seed in twenty has it.
        spread(hasher.finish())
    }
}

/// Both halves of a product, each bit of which tells of all bits before it.
#[inline(always)]
const fn spread(hash: u64) -> u64 {
    // The golden ratio's fraction: Knuth, volume 3, section 6.4.
    let product = hash as u128 * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u64 ^ product as u64
}

impl PartialEq for Key {
    // Word by word, as it was made: more at once would wait until these are in memory.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let ([Address([a, b]), Address([c, d])], [Address([e, f]), Address([g, h])]) =
            (self.addresses, other.addresses);
        let differ = (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h);
        differ == 0 && self.ports == other.ports && self.is_tcp == other.is_tcp
    }
}

const MAPPED: u64 = 0xffff_0000_0000;

impl Address {
    #[inline]
    pub(crate) fn v4(bits: u32) -> Self {
        Self([0, MAPPED | u64::from(bits)])
    }

    /// Whether this is an IPv4 address.
    #[inline]
    pub(crate) const fn is_v4(self) -> bool {
        self.0[0] == 0 && self.0[1] >> 32 == 0xffff
    }

    /// Whether the first so many of 128 bits are the same.
    pub(crate) fn shares(self, other: Self, bits: u32) -> bool {
        let whole = |address: Self| u128::from(address.0[0]) << 64 | u128::from(address.0[1]);
        let ignored = u128::MAX.checked_shr(bits).unwrap_or(0);
        (whole(self) ^ whole(other)) & !ignored == 0
    }

    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::v4(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                Self([(bits >> 64) as u64, bits as u64])
            }
        }
    }

    pub(crate) fn ip(self) -> IpAddr {
        match self.0 {
            [0, low] if low >> 32 == 0xffff => IpAddr::V4(Ipv4Addr::from_bits(low as u32)),
            [high, low] => IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table takes the upper bits: flows between two networks, of ports one behind the other, are to be spread over it whatever the seed.
    #[test]
    fn flows_of_like_addresses_are_spread_by_any_seed() {
        const SLOTS: usize = 256;
        let end = |address, port| End { address: Address::v4(address), port };
        let key = |k: u16| Key::of(end(0x0a00_0000, 6881), end(0xc0a8_0000, 1024 + k), k.is_multiple_of(2)).0;
        for _ in 0..100 {
            let (state, mut taken, mut passed) = (RandomState::default(), [false; SLOTS], 0);
            for k in 0..110 {
                let mut at = (key(k).hash(&state) >> 56) as usize;
                while core::mem::replace(&mut taken[at % SLOTS], true) {
                    (at, passed) = (at + 1, passed + 1);
                }
            }
            assert!(passed < 150, "{passed} slots of others were looked at");
        }
    }
}
