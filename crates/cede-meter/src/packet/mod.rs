//! What a packet says: from octets to what counts of it.

pub(crate) mod exits;
pub(crate) mod filter;
pub(crate) mod frame;
pub(crate) mod key;
pub(crate) mod length;
pub(crate) mod plain;
pub(crate) mod rtt;
pub(crate) mod tcp;
pub(crate) mod twins;
pub(crate) mod utp;
pub(crate) mod view;
pub(crate) mod views;

use frame::{Content, Seen};
use key::Side;
use length::Length;
use rtt::Rtt;

/// No frame on a path of 1500 octets is larger: Ethernet with two tags takes 1522, with a tunnel's headers some 60 more. Two
/// full segments put together are far larger.
const FRAME_BYTES_MAX: u32 = 1600;

/// What counts of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub side: Side,
    pub time_us: u64,
    /// On the wire, whole and to eight octets.
    pub bytes: u32,
    pub length: Length,
    pub hop_limit: u8,
    /// It opens a connection.
    pub opens: bool,
    pub said: Said,
}

/// What it says of queues.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Utp(utp::Said),
    Tcp(tcp::Said),
    /// TCP, but nothing.
    Silent,
    /// UDP, but no uTP.
    Foreign,
}

impl Said {
    /// The reading of the sender's clock: of uTP, how far the observer's is ahead of it.
    #[inline]
    pub(crate) const fn reading(&self, time_us: u64) -> Option<u32> {
        match self {
            Self::Utp(said) => said.reading(time_us),
            Self::Tcp(said) => Some(said.clock),
            Self::Silent | Self::Foreign => None,
        }
    }

    /// What the sender's clock showed.
    pub(crate) const fn stamp(&self) -> Option<u32> {
        match self {
            Self::Utp(said) => Some(said.stamp_us),
            Self::Tcp(said) => Some(said.clock),
            Self::Silent | Self::Foreign => None,
        }
    }

    /// Times round trips: in microseconds the one that ends here.
    #[inline]
    pub(crate) fn time_round_trip(&self, from: &mut Rtt, to: &mut Rtt, now: u32) -> Option<u32> {
        let trip = self.answer(to, now);
        self.ask(from, now);
        trip
    }

    /// As [`Self::time_round_trip`], where the other side's packets began.
    #[inline]
    pub(crate) fn answer(&self, to: &mut Rtt, now: u32) -> Option<u32> {
        match self {
            Self::Utp(said) => utp::answer(to, now, said),
            Self::Tcp(said) => tcp::answer(to, now, said),
            Self::Silent | Self::Foreign => None,
        }
    }

    /// Begins one, where none is under way.
    #[inline]
    pub(crate) fn ask(&self, from: &mut Rtt, now: u32) {
        match self {
            Self::Utp(said) => utp::ask(from, now, said),
            Self::Tcp(said) => tcp::ask(from, now, said),
            Self::Silent | Self::Foreign => {}
        }
    }
}

impl Packet {
    /// One that says nothing.
    pub(crate) const SILENT: Self = Self {
        side: 0,
        time_us: 0,
        bytes: 0,
        length: Length::from_units(0),
        hop_limit: 0,
        opens: false,
        said: Said::Silent,
    };

    /// Of a datagram so many are read at most.
    pub(crate) const JOINED_MAX: usize = 8;

    /// Hands over what a frame holds: one packet, or of uTP several, the first of which has all octets.
    #[inline]
    pub(crate) fn each(seen: &Seen<'_>, side: Side, time_us: u64, bytes: u32, mut take: impl FnMut(Self)) {
        let (length, hop_limit) = (Length::of(bytes), seen.hop_limit);
        let one = |said, opens| Self { side, time_us, bytes, length, hop_limit, opens, said };
        match &seen.content {
            Content::Tcp(segment) => {
                let said = tcp::Said::of(segment).map_or(Said::Silent, Said::Tcp);
                take(one(said, segment.flags & tcp::SYN != 0));
            }
            Content::Udp { payload, payload_len } => {
                let packets = utp::packets(payload, *payload_len);
                let mut bytes = Some(bytes);
                for said in
                    packets.filter_map(|(packet, len)| utp::Said::of(packet, len)).take(Self::JOINED_MAX)
                {
                    let bytes = bytes.take().unwrap_or_default();
                    take(Self { bytes, ..one(Said::Utp(said), said.opens()) });
                }
                if bytes.is_some() {
                    take(one(Said::Foreign, false));
                }
            }
        }
    }

    /// What is worth knowing of its flow from now on; of one that opens a connection it is asked when uTP was last seen between its sockets.
    /// While that goes on, another connection of uTP begins in the midst of it, and says nothing of the flow's beginning.
    #[inline]
    pub(crate) fn marks(&self, utp_last_us: impl FnOnce() -> Option<u64>) -> Marks {
        const GOES_ON_US: u64 = 10_000_000;
        let is_amid = || utp_last_us().is_some_and(|last_us| self.time_us < last_us + GOES_ON_US);
        let opens = if self.opens && !is_amid() { Marks::START.0 } else { 0 };
        let is_large = if self.bytes > FRAME_BYTES_MAX { Marks::OFFLOADED.0 } else { 0 };
        Marks(opens | is_large)
    }
}

/// Things worth knowing about a flow, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks(pub u8);

impl Marks {
    pub(crate) const NONE: Self = Self(0);
    /// The packet that opens the flow was seen.
    pub(crate) const START: Self = Self(1);
    /// A frame was larger than any packet on a path of 1500 octets: it was captured before it was cut up, or after it
    /// was put together.
    pub(crate) const OFFLOADED: Self = Self(2);
    /// Samples were given up for want of memory.
    pub(crate) const EVICTED: Self = Self(8);
    /// More out-of-order data or data under way than is kept track of.
    pub(crate) const LOST_TRACK: Self = Self(16);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
