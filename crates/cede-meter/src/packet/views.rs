//! Packets that a capture of all interfaces shows more than once.
//!
//! A machine that forwards packets, captured by `-i any`, shows each one as it comes and as it goes: before its queue and behind it.
//! Of each direction one view is kept: that of the interface by which packets leave, which has the queue behind it, or else the first.
//! The headers of such captures tell ([`view`](super::view)).
//!
//! Where addresses are translated on the way, what comes and what goes has two names ([`twins`](super::twins)): one of them stands for both.
//!
//! **What it leaves out.** Captures of several interfaces that are not cooked.
//!
//! **How it was validated.** A router's view of a queue of its own (`tests/views.rs`), and a real one's beside the far end.

use crate::packet::Packet;
use crate::packet::key::{Key, Side};
use crate::packet::twins::{Pair, Sight, Twins};
use crate::packet::view::View;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// A view that shows nothing for so long while another one does has ended: the way has changed.
const SILENCE_US: u64 = 5_000_000;
/// So many packets were seen under both names before a flow is believed to have two.
const PAIRS_MIN: u8 = 2;
/// Names of names that are followed.
const NAMES_MAX: usize = 4;

/// What a packet's flow is called, and what is to be done with the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Judged {
    pub key: Key,
    pub side: Side,
    pub verdict: Verdict,
    /// A name that does not count from now on.
    pub dropped: Option<Key>,
}

/// What is to be done with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Take,
    /// It is seen elsewhere.
    Repeats,
    /// It is seen better from now on: what was seen before does not count.
    Begins,
}

/// The view that is kept of a direction, and when it showed a packet last.
#[derive(Clone, Copy, Debug)]
struct Kept {
    view: View,
    last_us: u64,
}

/// Views of both directions of a flow.
#[derive(Clone, Copy, Debug)]
struct Sides {
    key: Key,
    kept: [Option<Kept>; 2],
    /// Another name of the same flow, which stays, and how many packets were seen under both.
    also: Option<(Pair, u8)>,
}

/// Views of all flows, of captures that have them.
#[derive(Debug, Default)]
pub(crate) struct Views {
    hash: RandomState,
    flows: HashTable<Sides>,
    twins: Twins,
    room_bytes: usize,
}

impl Views {
    /// With so much memory at most; flows that come later are taken as they are.
    pub(crate) fn new(room_bytes: usize) -> Self {
        Self { room_bytes, ..Self::default() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes_of_flows() + self.twins.bytes()
    }

    fn bytes_of_flows(&self) -> usize {
        self.flows.capacity() * (size_of::<Sides>() + 1)
    }

    /// Notes a packet.
    pub(crate) fn note(&mut self, key: Key, packet: &Packet, view: View) -> Judged {
        let Packet { side, time_us, said, .. } = *packet;
        let dropped = if self.is_renamed(&key) {
            None
        } else {
            self.twins.note(Sight { key, side, view, time_us, said }).and_then(|pair| self.confirm(&pair))
        };
        let (key, side) = self.name(key, side);
        Judged { key, side, verdict: self.judge(key, side, view, time_us), dropped }
    }

    fn judge(&mut self, key: Key, side: Side, view: View, time_us: u64) -> Verdict {
        let now = Kept { view, last_us: time_us };
        let Some(sides) = self.find(&key) else {
            let mut kept = [None; 2];
            kept[side] = Some(now);
            self.begin(Sides { key, kept, also: None });
            return Verdict::Take;
        };
        let verdict = sides.kept[side].map_or(Verdict::Take, |kept| kept.judge(view, time_us));
        if verdict != Verdict::Repeats {
            sides.kept[side] = Some(now);
        }
        verdict
    }

    fn find(&mut self, key: &Key) -> Option<&mut Sides> {
        self.flows.find_mut(key.hash(&self.hash), |sides| sides.key == *key)
    }

    fn is_renamed(&mut self, key: &Key) -> bool {
        self.find(key).is_some_and(|sides| sides.name().is_some())
    }

    /// The name that stays of a flow, and the side under it.
    fn name(&mut self, mut key: Key, mut side: Side) -> (Key, Side) {
        for _ in 0..NAMES_MAX {
            let Some(pair) = self.find(&key).and_then(|sides| sides.name()) else { break };
            (key, side) = (pair.name, if pair.swaps { 1 - side } else { side });
        }
        (key, side)
    }

    /// Notes that a packet was seen under both names; the one that does not count any more, once that is sure.
    fn confirm(&mut self, pair: &Pair) -> Option<Key> {
        let Some(sides) = self.find(&pair.other) else {
            self.begin(Sides { key: pair.other, kept: [None; 2], also: Some((*pair, 1)) });
            return None;
        };
        let pairs = sides.also.filter(|(known, _)| known == pair).map_or(0, |(_, pairs)| pairs);
        sides.also = Some((*pair, pairs.saturating_add(1)));
        sides.name().map(|_| pair.other)
    }

    fn begin(&mut self, sides: Sides) {
        // A table that grows has twice the room, and the old one beside it.
        if self.flows.len() == self.flows.capacity() && 3 * self.bytes_of_flows() > self.room_bytes {
            return;
        }
        let hash = sides.key.hash(&self.hash);
        self.flows.insert_unique(hash, sides, |sides| sides.key.hash(&self.hash));
    }
}

impl Sides {
    /// Another name that stays, where it is sure.
    fn name(&self) -> Option<Pair> {
        self.also.filter(|(_, pairs)| *pairs >= PAIRS_MIN).map(|(pair, _)| pair)
    }
}

impl Kept {
    fn judge(&self, view: View, time_us: u64) -> Verdict {
        if self.view == view {
            Verdict::Take
        } else if view.leaves() && !self.view.leaves() {
            Verdict::Begins
        } else if view.leaves() == self.view.leaves() && time_us.saturating_sub(self.last_us) > SILENCE_US {
            Verdict::Take
        } else {
            Verdict::Repeats
        }
    }
}
