//! Packets that a capture of all interfaces shows more than once.
//!
//! A machine that forwards packets, captured by `-i any`, shows each one as it comes and as it goes: before its queue and behind it.
//! Of each direction one view is kept: that of the interface by which packets leave, which has the queue behind it, or else the first. Where they
//! leave by several, one below the other (a bridge and its port), it is the last.
//! The headers of such captures tell ([`view`](super::view)); of others that have several interfaces, packets that were seen at two of them do.
//!
//! Where addresses are translated on the way, what comes and what goes has two names ([`twins`](super::twins)): one of them stands for both.
//!
//! Several captures of the same time may be of one machine's interfaces, of two machines that the same packets pass, or of any two. So of each
//! direction the packets of one capture count, those of the one that shows them last where some were found in both; where none was, as the clocks
//! of two machines are too far apart, those of the capture that showed it first. When that one has ended, or says nothing more, another one
//! goes on from where it was; but for the times of its packets where these are yet to wait.
//!
//! **What it leaves out.** Of a direction whose packets go by turns over two wires that were captured apart, those of the other one. That a flow waits
//! which begins when the capture behind its queue has ended.
//!
//! **How it was validated.** A router's view of a queue of its own (`tests/views.rs`), and a real one's beside the far end.

use crate::packet::exits::Exits;
use crate::packet::key::{Address, Key, Side};
use crate::packet::tcp::is_before;
use crate::packet::twins::{Pair, Sight, Twin, Twins, WAIT_US_MAX};
use crate::packet::view::{Place, View};
use crate::packet::{Packet, Said};
use cede_wire::link::LinkType;
use foldhash::fast::RandomState;
use hashbrown::hash_table::Entry;
use hashbrown::{HashMap, HashTable};

/// A view that shows nothing for so long while another one does has ended: the way has changed. Where that other one is before it on the way, what it
/// shows may still wait between the two, for as long as any router keeps a packet.
const SILENCE_US: u64 = 5_000_000;
/// So many packets were seen under both names before a flow is believed to have two.
const PAIRS_MIN: u8 = 2;
/// Hosts of which it is remembered where packets for them leave; then all are forgotten.
const WAYS_MAX: usize = 1 << 13;
/// Names of names that are followed.
const NAMES_MAX: usize = 4;
/// So many packets of a direction were passed over for another capture's before that is worth a word.
const PASSED_OVER_MIN: u8 = 16;

/// What a packet's flow is called, and what is to be done with the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Judged {
    pub key: Key,
    pub side: Side,
    pub verdict: Verdict,
    /// Packets of its direction were seen in several places, between which their hop limits fall.
    is_passed_on: bool,
    /// A name that does not count from now on.
    pub dropped: Option<Key>,
}

impl Judged {
    /// What is left of a packet's hop limit to be held against other flows' of its host.
    pub(crate) const fn hop_limit(&self, seen: u8) -> u8 {
        if self.is_passed_on { 0 } else { seen }
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
    /// It is yet to wait, and where it leaves is shown no more: what it says counts, and when it was seen does not.
    Early,
}

/// The view that is kept of a direction, and when it showed a packet last.
#[derive(Clone, Copy, Debug)]
struct Kept {
    view: View,
    last_us: u64,
    /// What the sender's clock showed in the last packet that told it; zero before.
    stamp: u32,
    /// When another view was passed over first since then.
    missed_us: Option<u64>,
}

/// Views of both directions of a flow.
#[derive(Clone, Copy, Debug)]
struct Sides {
    key: Key,
    kept: [Option<Kept>; 2],
    /// By which interface packets leave, where views do not say.
    exits: [Exits; 2],
    /// Where packets are seen first now that the capture has ended that shows where they leave.
    early: [Option<Place>; 2],
    /// Until when what is known of a direction may be given up for what was learnt of that, once it first was.
    begins_until_us: [Option<u64>; 2],
    /// A packet was seen in another place, too.
    is_passed_on: [bool; 2],
    /// Packets that were passed over for those of another capture.
    passed_over: [u8; 2],
    /// Another name of the same flow, which stays, and how many packets were seen under both.
    also: Option<(Pair, u8)>,
    /// When it was seen last.
    last_us: u64,
    /// It was known before, and forgotten: what is known of it from then counts, whichever view it is of.
    is_back: bool,
    /// Packets since then of which another view may have been taken, too.
    taken_again: u32,
}

/// Views of all flows, of captures that have them.
#[derive(Debug, Default)]
pub(crate) struct Views {
    hash: RandomState,
    flows: HashTable<Sides>,
    twins: Twins,
    /// Where packets for a host leave, as flows showed that were seen already.
    ways: HashMap<Address, Place, RandomState>,
    room_bytes: usize,
    /// The interface of the packet that is being read, and whether there are several.
    interface: u32,
    are_several: bool,
    /// Which capture it is of, and those that have ended.
    capture: u16,
    ended: Vec<u16>,
    /// Flows were forgotten that may come back; what of them is counted in the end.
    has_forgotten: bool,
    taken_again: u64,
    apart: usize,
}

/// Who knows of a flow that it was seen before.
type Known<'a> = &'a dyn Fn(&Key) -> bool;

impl Views {
    /// From now on packets are of this interface of a capture, until another one is told.
    #[inline]
    pub(crate) const fn go_to(&mut self, interface: u32) {
        self.are_several |= interface != self.interface;
        self.interface = interface;
    }

    /// From now on packets are of this one of several captures of the same time.
    pub(crate) fn go_to_capture(&mut self, capture: u16) {
        (self.are_several, self.capture) = (true, capture);
        // It may go on in another file.
        if !self.ended.is_empty() {
            self.ended.retain(|&ended| ended != capture);
        }
    }

    /// It shows no more.
    pub(crate) fn end_capture(&mut self, capture: u16) {
        self.ended.push(capture);
    }

    /// The view of a packet whose link type tells none.
    #[inline]
    pub(crate) fn at_interface(&self) -> Option<View> {
        self.are_several.then(|| View::at(self.interface, self.capture))
    }

    /// The view of a packet.
    pub(crate) fn of(&self, link_type: LinkType, frame: &[u8]) -> Option<View> {
        View::of(link_type, frame, self.capture).or_else(|| self.at_interface())
    }

    /// Flows that several captures showed by clocks that do not agree.
    pub(crate) fn flows_apart(&self) -> usize {
        self.apart + self.flows.iter().filter(|sides| sides.is_apart()).count()
    }

    /// With so much memory at most: then the quieter half of all flows are forgotten.
    pub(crate) fn new(room_bytes: usize) -> Self {
        Self { room_bytes, ..Self::default() }
    }

    /// Packets of which two views may have been taken, as it had been forgotten which one counts.
    pub(crate) fn taken_again(&self) -> u64 {
        self.taken_again + self.flows.iter().map(|sides| u64::from(sides.taken_again)).sum::<u64>()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes_of_flows()
            + self.twins.bytes()
            + self.ways.capacity() * (size_of::<(Address, Place)>() + 1)
    }

    fn bytes_of_flows(&self) -> usize {
        self.flows.capacity() * (size_of::<Sides>() + 1)
    }

    /// Notes a packet.
    pub(crate) fn note(&mut self, key: Key, packet: &Packet, view: View, known: Known<'_>) -> Judged {
        let Packet { side, time_us, said, .. } = *packet;
        self.make_room();
        let is_asked = view.is_untold() || view.leaves() || !self.is_renamed(&key);
        let twin = is_asked.then(|| self.twins.note(Sight { key, side, view, time_us, said })).flatten();
        let dropped = twin.and_then(|twin| self.learn(&twin, known));
        let (key, side) = self.name(key, side, time_us);
        let verdict = self.judge(key, (side, view), (time_us, &said), known);
        let is_passed_on = self.find(&key).is_some_and(|sides| sides.is_passed_on[side]);
        Judged { key, side, verdict, is_passed_on, dropped }
    }

    fn judge(
        &mut self,
        key: Key,
        (side, view): (Side, View),
        (time_us, said): (u64, &Said),
        known: Known<'_>,
    ) -> Verdict {
        // It is looked at beside what is looked up.
        let ended = core::mem::take(&mut self.ended);
        let verdict = self.sides(key, time_us, known).judge(side, view, (time_us, said), &ended);
        self.ended = ended;
        verdict
    }

    fn find(&mut self, key: &Key) -> Option<&mut Sides> {
        self.flows.find_mut(key.hash(&self.hash), |sides| sides.key == *key)
    }

    fn is_renamed(&mut self, key: &Key) -> bool {
        self.find(key).is_some_and(|sides| sides.name().is_some())
    }

    /// The name that stays of a flow, and the side under it.
    fn name(&mut self, mut key: Key, mut side: Side, time_us: u64) -> (Key, Side) {
        for _ in 0..NAMES_MAX {
            let Some(sides) = self.find(&key) else { break };
            sides.last_us = time_us;
            let Some(pair) = sides.name() else { break };
            (key, side) = (pair.name, if pair.swaps { 1 - side } else { side });
        }
        (key, side)
    }

    /// Notes that a packet was seen twice; a name that does not count any more, once that is sure.
    fn learn(&mut self, twin: &Twin, known: Known<'_>) -> Option<Key> {
        let Twin { came, left } = twin;
        let pair = twin.pair();
        let name = pair.map_or(came.key, |pair| pair.name);
        let side = if name == came.key { came.side } else { left.side };
        let (name, side) = self.name(name, side, left.time_us);
        // What others' ways let expect has to be seen, also where it is told which way a packet goes.
        let is_way_told = left.view.has_way_beside(&came.view)
            && !self.find(&name).is_some_and(|sides| sides.exits[side].is_taken_over());
        if !is_way_told && (pair.is_some() || left.key == came.key) {
            self.note_way((name, side), twin, known);
        }
        pair.and_then(|pair| self.confirm(&pair, left.time_us, known))
    }

    /// Notes that a packet came by an interface and left by another.
    fn note_way(&mut self, (key, side): (Key, Side), Twin { came, left }: &Twin, known: Known<'_>) {
        let sides = self.sides(key, left.time_us, known);
        let before = sides.exits[side].exit();
        let places = [came.view.place(), left.view.place()];
        sides.exits[side].note(places, left.view.sightings_min(), [came.time_us, left.time_us]);
        let exit = sides.exits[side].exit();
        // Until now views of all interfaces were taken, or those of one that is no way out.
        if let Some(kept) = sides.kept[side].as_mut().filter(|_| before != exit) {
            kept.view = kept.view.no_exit(exit);
        }
        if let Some(exit) = exit.filter(|_| before != exit) {
            if self.ways.len() == WAYS_MAX {
                self.ways.clear();
            }
            self.ways.insert(key.address(1 - side), exit);
        }
    }

    /// Notes that a packet was seen under both names; the one that does not count any more, once that is sure.
    fn confirm(&mut self, pair: &Pair, now_us: u64, known: Known<'_>) -> Option<Key> {
        let sides = self.sides(pair.other, now_us, known);
        let pairs = sides.also.filter(|(known, _)| known == pair).map_or(0, |(_, pairs)| pairs);
        sides.also = Some((*pair, pairs.saturating_add(1)));
        sides.name().map(|_| pair.other)
    }

    /// What is known of a flow, of a new one nothing.
    fn sides(&mut self, key: Key, now_us: u64, known: Known<'_>) -> &mut Sides {
        let hash = |key: &Key| key.hash(&self.hash);
        match self.flows.entry(hash(&key), |sides| sides.key == key, |sides| hash(&sides.key)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(room) => {
                let is_back = self.has_forgotten && known(&key);
                let exits = [1, 0].map(|other| self.ways.get(&key.address(other)).copied());
                let exits = exits.map(|exit| Exits::like_others(exit, now_us));
                room.insert(Sides::new(key, exits, is_back)).into_mut()
            }
        }
    }

    /// A table that grows has twice the room, and the old one beside it.
    fn is_full(&self) -> bool {
        self.flows.len() == self.flows.capacity() && 3 * self.bytes_of_flows() > self.room_bytes
    }

    /// Forgets the quieter half of all flows where there is no room for another.
    fn make_room(&mut self) {
        if !self.is_full() || self.flows.is_empty() {
            return;
        }
        self.taken_again = self.taken_again();
        let mut times: Vec<u64> = self.flows.iter().map(|sides| sides.last_us).collect();
        let middle = times.len() / 2;
        let middle_us = *times.select_nth_unstable(middle).1;
        let goes = |sides: &&Sides| sides.last_us <= middle_us;
        self.apart += self.flows.iter().filter(goes).filter(|sides| sides.is_apart()).count();
        let stay: Vec<Sides> = self.flows.iter().filter(|sides| !goes(sides)).copied().collect();
        // What is taken out one by one leaves no room in such a table.
        self.flows.clear();
        let hash = |sides: &Sides| sides.key.hash(&self.hash);
        for sides in stay {
            self.flows.insert_unique(hash(&sides), Sides { taken_again: 0, ..sides }, hash);
        }
        self.has_forgotten = true;
    }
}

impl Sides {
    fn new(key: Key, exits: [Exits; 2], is_back: bool) -> Self {
        let (begins_until_us, passed_over) = ([None; 2], [0; 2]);
        Self {
            key,
            kept: [None; 2],
            exits,
            early: [None; 2],
            begins_until_us,
            is_passed_on: [false; 2],
            passed_over,
            also: None,
            last_us: 0,
            is_back,
            taken_again: 0,
        }
    }

    /// Whether several captures show it, and no packet tells which one does last, or both directions are last in the same one.
    fn is_apart(&self) -> bool {
        let are_seen = self.passed_over.map(|packets| packets >= PASSED_OVER_MIN);
        let exits = [self.exits[0].exit(), self.exits[1].exit()];
        match exits {
            [Some(one), Some(other)] => are_seen == [true; 2] && one.is_of_same_capture(other),
            _ => (0..2).any(|side| are_seen[side] && exits[side].is_none()),
        }
    }

    /// As [`Views::judge`].
    fn judge(&mut self, side: Side, view: View, said: (u64, &Said), ended: &[u16]) -> Verdict {
        self.last_us = said.0;
        self.judge_early(side, view.place(), ended)
            .unwrap_or_else(|| self.judge_beside_kept(side, view, said, ended))
    }

    fn judge_beside_kept(
        &mut self,
        side: Side,
        view: View,
        (time_us, said): (u64, &Said),
        ended: &[u16],
    ) -> Verdict {
        let kept = self.kept[side];
        // Of those that leave by two interfaces it is learnt by which they do last.
        let is_learnt = view.is_untold() || self.exits[side].exit().is_some();
        let is_over = self.is_over(side, view, is_learnt, time_us)
            || kept.is_some_and(|kept| ended.contains(&kept.view.capture));
        if is_over {
            self.exits[side] = Exits::default();
            // What was seen until then is worth as much as what comes.
            self.begins_until_us[side] = Some(0);
        }
        let view = view.where_left_by(self.exits[side].exit());
        let stamp = said.stamp();
        let verdict = kept.map_or(Verdict::Take, |kept| kept.judge(view, is_over, stamp));
        self.is_passed_on[side] |= verdict != Verdict::Take;
        let verdict = self.go_on(side, verdict, is_learnt.then_some(time_us));
        if verdict == Verdict::Repeats {
            let is_apart = kept.is_some_and(|kept| kept.view.capture != view.capture);
            self.passed_over[side] = self.passed_over[side].saturating_add(u8::from(is_apart));
            if let Some(kept) = &mut self.kept[side] {
                kept.missed_us.get_or_insert(time_us);
            }
        } else {
            let stamp = stamp.or(kept.map(|kept| kept.stamp)).unwrap_or(0);
            self.kept[side] = Some(Kept { view, last_us: time_us, stamp, missed_us: None });
        }
        verdict
    }

    /// Whether what is kept of a direction shows no more.
    fn is_over(&self, side: Side, view: View, is_learnt: bool, time_us: u64) -> bool {
        let goes_on = self.exits[side].goes_on_from(view.place());
        let silence_us = if goes_on { WAIT_US_MAX } else { SILENCE_US };
        self.kept[side].is_some_and(|kept| {
            // Where no way is told, a view that comes first after a pause may be that of a packet which is still to leave.
            if is_learnt { kept.is_missed(time_us, silence_us) } else { kept.is_silent(time_us) }
        })
    }

    /// Of a packet that was seen in front of a queue, where the capture that shows how packets leave it has ended; else nothing. Of several that
    /// go on the first one counts.
    fn judge_early(&mut self, side: Side, place: Place, ended: &[u16]) -> Option<Verdict> {
        let is_over = |place: Place| ended.iter().any(|&ended| place.is_in(ended));
        let exits = &self.exits[side];
        if !exits.exit().is_some_and(is_over) || is_over(place) || !exits.wait_between(place) {
            return None;
        }
        let first = self.early[side].filter(|first| !is_over(*first)).unwrap_or(place);
        self.early[side] = Some(first);
        Some(if first == place { Verdict::Early } else { Verdict::Repeats })
    }

    /// What is known of a direction is given up for a better view at one time at most where that is learnt (`learnt_us`), and never of a flow
    /// that was forgotten meanwhile: then a packet counts in both. Of several interfaces before and behind a queue the next one is learnt at
    /// once, and the last one when the first packets have left.
    fn go_on(&mut self, side: Side, verdict: Verdict, learnt_us: Option<u64>) -> Verdict {
        let stays = |begins_until_us: &mut Option<u64>| {
            learnt_us.is_some_and(|now_us| now_us > *begins_until_us.get_or_insert(now_us + WAIT_US_MAX))
        };
        if verdict == Verdict::Begins && (self.is_back || stays(&mut self.begins_until_us[side])) {
            self.taken_again += u32::from(self.is_back);
            return Verdict::Take;
        }
        let is_any = learnt_us.is_some() && verdict == Verdict::Take && self.exits[side].exit().is_none();
        self.taken_again += u32::from(self.is_back && is_any);
        verdict
    }

    /// Another name that stays, where it is sure.
    fn name(&self) -> Option<Pair> {
        self.also.filter(|(_, pairs)| *pairs >= PAIRS_MIN).map(|(pair, _)| pair)
    }
}

impl Kept {
    const fn is_silent(&self, time_us: u64) -> bool {
        time_us.saturating_sub(self.last_us) > SILENCE_US
    }

    /// Whether others have been seen for so long, and not this one.
    fn is_missed(&self, time_us: u64, silence_us: u64) -> bool {
        self.missed_us.is_some_and(|since_us| time_us.saturating_sub(since_us) > silence_us)
    }

    /// Where it shows no more (`is_over`), what another one showed before by a clock that is late is no more worth than before.
    fn judge(&self, view: View, is_over: bool, stamp: Option<u32>) -> Verdict {
        if self.view == view {
            return Verdict::Take;
        }
        if self.view.capture != view.capture {
            return self.judge_apart(view, is_over && stamp.is_none_or(|stamp| is_before(self.stamp, stamp)));
        }
        if view.is_untold() {
            Verdict::Take
        } else if view.rank() > self.view.rank() {
            Verdict::Begins
        } else if view.rank() == self.view.rank() && is_over {
            Verdict::Take
        } else {
            Verdict::Repeats
        }
    }

    /// As [`Self::judge`], of another capture, which may go on from where this one is.
    const fn judge_apart(&self, view: View, goes_on: bool) -> Verdict {
        if goes_on {
            Verdict::Take
        } else if view.rank() > self.view.rank() {
            Verdict::Begins
        } else {
            Verdict::Repeats
        }
    }
}
