//! Packets that a capture of all interfaces shows more than once.
//!
//! A machine that forwards packets, captured by `-i any`, shows each one as it comes and as it goes: before its queue and behind it.
//! Of each direction one view is kept: that of the interface by which packets leave, which has the queue behind it, or else the first.
//! The headers of such captures ("cooked": LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2 of the registry of link types) tell whether a packet
//! leaves the machine, the second one also the interface.
//!
//! **What it leaves out.** Addresses that are translated on the way: what comes and what goes are two flows. Captures of several
//! interfaces that are not cooked.
//!
//! **How it was validated.** A router's view of a queue of its own (`tests/views.rs`), and a real one's beside the far end.

use crate::packet::key::{Key, Side};
use cede_wire::link::LinkType;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// A view that shows nothing for so long while another one does has ended: the way has changed.
const SILENCE_US: u64 = 5_000_000;

/// How a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct View {
    /// Zero where that is not told.
    interface: u32,
    leaves: bool,
}

impl View {
    /// Of a frame; `None` where its link type does not tell.
    #[inline]
    pub(crate) fn of(link_type: LinkType, frame: &[u8]) -> Option<Self> {
        const LEAVES: u8 = 4;
        match (link_type, frame) {
            (LinkType::LINUX_SLL, &[_, kind, ..]) => Some(Self { interface: 0, leaves: kind == LEAVES }),
            (LinkType::LINUX_SLL2, &[_, _, _, _, a, b, c, d, _, _, kind, ..]) => {
                Some(Self { interface: u32::from_be_bytes([a, b, c, d]), leaves: kind == LEAVES })
            }
            _ => None,
        }
    }
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
}

/// Views of all flows, of captures that have them.
#[derive(Debug, Default)]
pub(crate) struct Views {
    hash: RandomState,
    flows: HashTable<Sides>,
    room_bytes: usize,
}

impl Views {
    /// With so much memory at most; flows that come later are taken as they are.
    pub(crate) fn new(room_bytes: usize) -> Self {
        Self { room_bytes, ..Self::default() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.flows.capacity() * (size_of::<Sides>() + 1)
    }

    /// Notes a packet.
    pub(crate) fn note(&mut self, key: Key, side: Side, view: View, time_us: u64) -> Verdict {
        let now = Kept { view, last_us: time_us };
        let hash = key.hash(&self.hash);
        let Some(sides) = self.flows.find_mut(hash, |sides| sides.key == key) else {
            self.begin(hash, key, side, now);
            return Verdict::Take;
        };
        let verdict = sides.kept[side].map_or(Verdict::Take, |kept| kept.judge(view, time_us));
        if verdict != Verdict::Repeats {
            sides.kept[side] = Some(now);
        }
        verdict
    }

    fn begin(&mut self, hash: u64, key: Key, side: Side, now: Kept) {
        // A table that grows has twice the room, and the old one beside it.
        if self.flows.len() == self.flows.capacity() && 3 * self.bytes() > self.room_bytes {
            return;
        }
        let mut kept = [None; 2];
        kept[side] = Some(now);
        self.flows.insert_unique(hash, Sides { key, kept }, |sides| sides.key.hash(&self.hash));
    }
}

impl Kept {
    fn judge(&self, view: View, time_us: u64) -> Verdict {
        if self.view == view {
            Verdict::Take
        } else if view.leaves && !self.view.leaves {
            Verdict::Begins
        } else if view.leaves == self.view.leaves && time_us.saturating_sub(self.last_us) > SILENCE_US {
            Verdict::Take
        } else {
            Verdict::Repeats
        }
    }
}
