//! Packets that a router shows twice, and flows that it shows under two names, as it translates addresses.
//!
//! A capture of all interfaces of a router that translates addresses (NAT) shows each packet as it comes, under one name, and as it
//! leaves, under another: two flows, of which one is to count. What a packet says of clocks and sequence numbers stays the same on the
//! way, and so does one of its two ends. Two packets that agree in that, of which one comes and one leaves, are taken for one; two such
//! pairs tell that the flows are one. Where a capture tells interfaces but not ways, and between two captures, the packet that was seen first came.
//!
//! The name that stays is the one that the translated host has itself: under which what is for it leaves, and what it sends comes.
//!
//! **What it leaves out.** Packets that say nothing until their flow is known by others; routers that translate both ends at once, and
//! proxies, which are hosts of their own.
//!
//! **How it was validated.** A router's two views (`tests/views.rs`), real captures of one (`docs/bufferbloat.md`).

use crate::packet::Said;
use crate::packet::key::{Key, Side};
use crate::packet::view::View;
use core::cmp::Ordering;
use core::hash::BuildHasher;
use foldhash::fast::FixedState;

/// Packets that are remembered; one that comes later takes the place of another. A second of 10 Mbit/s is 830 packets and half as many
/// answers, which of eight times as many places leave seven of eight in peace.
const PACKETS: usize = 1 << 13;
/// No router keeps a packet for longer.
pub(crate) const WAIT_US_MAX: u64 = 10_000_000;

/// A packet as it was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    pub key: Key,
    pub side: Side,
    pub view: View,
    pub time_us: u64,
    pub said: Said,
}

/// One packet that was seen twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Twin {
    pub came: Sight,
    pub left: Sight,
}

/// Two names of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pair {
    /// The one that stays, and the other.
    pub name: Key,
    pub other: Key,
    /// Whether sides are the other way round under it.
    pub swaps: bool,
}

/// The packets that were seen last.
#[derive(Debug, Default)]
pub(crate) struct Twins {
    /// The same in each run, as the order in which packets displace one another shows in what is counted.
    hash: FixedState,
    seen: Vec<Option<Sight>>,
}

impl Twins {
    pub(crate) fn bytes(&self) -> usize {
        self.seen.capacity() * size_of::<Option<Sight>>()
    }

    /// Notes a packet; both times, if it was seen before on another way.
    pub(crate) fn note(&mut self, sight: Sight) -> Option<Twin> {
        let words = words(&sight.said)?;
        if self.seen.is_empty() {
            self.seen.resize(PACKETS, None);
        }
        let slot = self.hash.hash_one(words) as usize % PACKETS;
        let before = self.seen[slot].replace(sight)?;
        let is_late = sight.time_us.abs_diff(before.time_us) > WAIT_US_MAX;
        let is_same = Some(words) == self::words(&before.said);
        if is_late || !is_same || !before.view.may_be_followed_by(&sight.view) {
            return None;
        }
        if sight.view.has_way_beside(&before.view) {
            let (came, left) = if before.view.leaves() { (sight, before) } else { (before, sight) };
            return Some(Twin { came, left });
        }
        // Of what is captured at several interfaces, what was seen later may stand in front. What was seen last is held against what follows.
        if sight.time_us <= before.time_us {
            self.seen[slot] = Some(before);
        }
        match sight.time_us.cmp(&before.time_us) {
            Ordering::Less => Some(Twin { came: sight, left: before }),
            Ordering::Equal => None,
            Ordering::Greater => Some(Twin { came: before, left: sight }),
        }
    }
}

/// All that a packet says and no router changes.
fn words(said: &Said) -> Option<[u32; 6]> {
    match said {
        Said::Utp(said) => {
            let ([a, b, c], id, kind) = said.pack();
            Some([a, b, c, u32::from(id), u32::from(kind), 0])
        }
        Said::Tcp(said) => {
            let of_segment = u32::from(said.flags) << 24 ^ said.payload_len;
            Some([said.seq, said.ack, said.clock, said.echo, of_segment, 1])
        }
        Said::Silent | Said::Foreign => None,
    }
}

impl Twin {
    /// The names of its flow, where it has two, if the same end of both is the same.
    pub(crate) fn pair(&self) -> Option<Pair> {
        let Self { came, left } = self;
        if came.key.is_tcp() == left.key.is_tcp() { pair(came, left) } else { None }
    }
}

fn pair(came: &Sight, left: &Sight) -> Option<Pair> {
    let swaps = came.side != left.side;
    let is_same = |side: [Side; 2]| {
        let [a, b] = [came.key.end(side[0]), left.key.end(side[1])];
        a == b
    };
    match (is_same([came.side, left.side]), is_same([1 - came.side, 1 - left.side])) {
        // It was for the one that is translated.
        (true, false) => Some(Pair { name: left.key, other: came.key, swaps }),
        (false, true) => Some(Pair { name: came.key, other: left.key, swaps }),
        _ => None,
    }
}
