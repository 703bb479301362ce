//! All flows, short and long, found by their key.

use crate::packet::key::{Key, Side};
use crate::packet::{Marks, Packet};
use crate::store::embryo::{BLOCKS_MAX, Embryo};
use crate::store::flow::Flow;
use crate::store::gone::Gone;
use crate::store::pages::Pages;
use crate::store::place::Place;
use crate::store::pool::{NONE, Pool};
use crate::store::sender::Sender;
use crate::store::table::Table;
use core::cell::RefCell;
use core::hint::black_box;
use foldhash::fast::RandomState;

/// Flows whose memory is brought near together.
pub(crate) const NEAR: usize = 32;
/// What of a flow is brought near.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Where the next packet's samples go.
    End,
    /// All of a short one; of a long one where it begins.
    Whole,
}

/// Flows of a page.
const PAGE: usize = 1 << 9;
/// All flows and what is kept of them.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    hash: RandomState,
    table: Table,
    flows: Pages<Flow, PAGE>,
    embryos: Pages<Embryo, PAGE>,
    /// Places of embryos that are gone.
    vacant: Vec<u32>,
    pub pool: Pool,
    /// What was given up for want of memory.
    pub gone: Gone,
    /// Octets that long flows take beside their samples.
    flow_bytes: usize,
}

impl Stock {
    /// Flows.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Octets of everything but the blocks of the pool.
    pub(crate) fn bytes(&self) -> usize {
        self.flow_bytes
            + self.embryos.len() * size_of::<Embryo>()
            + self.table.bytes()
            + self.table.len() * Sender::FLOW_BYTES
            + self.gone.bytes()
    }

    /// What a flow is found by.
    // In the way of every packet.
    #[inline(always)]
    pub(crate) fn hash(&self, key: &Key) -> u64 {
        key.hash(&self.hash)
    }

    /// As [`Self::bring_near`], of the flows that hashes most likely belong to, as far as they are there.
    pub(crate) fn bring_likely_near(&self, hashes: impl Iterator<Item = u64> + Clone, part: Part) {
        self.table.bring_near(hashes.clone());
        self.bring_near(hashes.filter_map(|hash| self.table.likely(hash)), part);
    }

    /// Has the memory of up to [`NEAR`] flows brought near. The processor waits for all of them together, where it would wait for each when
    /// it comes to it; nothing else is done with what is read.
    pub(crate) fn bring_near(&self, places: impl Iterator<Item = Place>, part: Part) {
        let mut at = [NONE; NEAR];
        for (at, place) in at.iter_mut().zip(places) {
            let index = place.index();
            let [first, last] =
                if place.is_short() { self.embryos.get(index).ends() } else { self.flows.get(index).ends() };
            *at = if part == Part::End { last } else { first };
        }
        let blocks = if part == Part::End { 1 } else { BLOCKS_MAX };
        for _ in 0..blocks {
            let is_there = |at: &&mut u32| **at != NONE;
            at.iter_mut().filter(is_there).for_each(|at| *at = self.pool.block(*at).next);
        }
        black_box(at);
    }

    /// Takes a packet in; whether it is the first one of its flow, as far as is known.
    #[inline]
    pub(crate) fn take(&mut self, key: Key, hash: u64, packet: &Packet) -> bool {
        let (place, is_new) = match self.find(hash, &key) {
            Some(place) => (place, false),
            None => self.begin_flow(key, hash, packet.time_us),
        };
        self.take_at(place, hash, packet);
        is_new
    }

    /// Where a flow is that is not there, and whether it never was, as far as is known.
    #[inline(never)]
    fn begin_flow(&mut self, key: Key, hash: u64, time_us: u64) -> (Place, bool) {
        let mut embryo = Embryo::new(key, time_us);
        let (is_back, marks) = self.returned(&key);
        embryo.marks.set(marks);
        (self.begin(hash, embryo), !is_back)
    }

    /// Forgets what the packets of one side of a flow said so far.
    pub(crate) fn begin_again(&mut self, key: &Key, side: Side) {
        let Some(place) = self.find(self.hash(key), key) else { return };
        let index = place.index();
        if place.is_short() {
            return self.embryos.get_mut(index).begin_again(side, &mut self.pool);
        }
        let flow = self.flows.get_mut(index);
        self.flow_bytes -= flow.heap_bytes();
        flow.begin_again(side, &mut self.pool);
        self.flow_bytes += flow.heap_bytes();
    }

    /// Takes in what a packet says that was seen too early to tell how long it waited. Of a flow that is not there it tells nothing.
    pub(crate) fn take_early(&mut self, key: &Key, packet: &Packet) {
        let hash = self.hash(key);
        let Some(place) = self.find(hash, key) else { return };
        let index = if place.is_short() { self.grow(place.index(), hash) } else { place.index() };
        let grown = self.flows.get_mut(index).take_early(packet, &mut self.pool);
        self.flow_bytes = self.flow_bytes.wrapping_add(grown);
    }

    /// Takes a flow out, which is another one's; whether it was there.
    pub(crate) fn remove(&mut self, key: &Key) -> bool {
        let hash = self.hash(key);
        let Some(place) = self.find(hash, key) else { return false };
        self.table.remove(hash, place);
        let index = place.index();
        if place.is_short() {
            self.vacate(index);
            return true;
        }
        let last = (self.flows.len() - 1) as u32;
        let (last_hash, mut flow) = (self.hash(&self.flows.get(last).key), self.flows.swap_remove(index));
        if last != index {
            self.table.replace(last_hash, Place::long(last), Place::long(index));
        }
        self.flow_bytes -= flow.bytes();
        flow.forget_samples(&mut self.pool);
        true
    }

    /// Whether a flow is remembered.
    #[inline(never)]
    pub(crate) fn knows(&self, key: &Key) -> bool {
        self.find(self.hash(key), key).is_some()
    }

    #[inline(always)]
    fn find(&self, hash: u64, key: &Key) -> Option<Place> {
        self.table.find(
            hash,
            #[inline(always)]
            |place| *self.key(place) == *key,
        )
    }

    #[inline(always)]
    pub(crate) fn key(&self, place: Place) -> &Key {
        key_of(&self.flows, &self.embryos, place)
    }

    #[inline(always)]
    fn take_at(&mut self, place: Place, hash: u64, packet: &Packet) {
        let index = place.index();
        let index = if place.is_short() {
            if self.embryos.get_mut(index).take(packet, &mut self.pool).is_some() {
                return;
            }
            self.grow(index, hash)
        } else {
            index
        };
        let grown = self.flows.get_mut(index).take(packet, &mut self.pool);
        self.flow_bytes = self.flow_bytes.wrapping_add(grown);
    }

    fn begin(&mut self, hash: u64, embryo: Embryo) -> Place {
        let index = match self.vacant.pop() {
            Some(index) => {
                *self.embryos.get_mut(index) = embryo;
                index
            }
            None => self.embryos.push(embryo),
        };
        let place = Place::short(index);
        self.table.insert(hash, place);
        place
    }

    /// The place of a short flow is another's from now on.
    fn vacate(&mut self, index: u32) {
        self.embryos.get_mut(index).leave(&mut self.pool);
        self.vacant.push(index);
    }

    /// Gives a short flow the form of a long one: its new index.
    fn grow(&mut self, index: u32, hash: u64) -> u32 {
        let embryo = self.embryos.get_mut(index);
        let entries = embryo.copy_entries(&self.pool);
        let flow = embryo.grown(&entries, &mut self.pool);
        self.vacate(index);
        self.flow_bytes += flow.bytes();
        let grown = self.flows.push(flow);
        self.table.replace(hash, Place::short(index), Place::long(grown));
        grown
    }

    /// Long flows.
    pub(crate) fn long(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter()
    }

    /// Long flows, and what their samples are in.
    pub(crate) fn long_mut(&mut self) -> (impl Iterator<Item = &mut Flow>, &mut Pool) {
        (self.flows.iter_mut(), &mut self.pool)
    }

    fn short(&self) -> impl Iterator<Item = &Embryo> {
        self.embryos.iter().filter(|embryo| !embryo.is_gone())
    }

    /// When each flow was heard last.
    pub(crate) fn last_us(&self) -> impl Iterator<Item = u64> {
        self.flows.iter().map(Flow::last_us).chain(self.short().map(Embryo::last_us))
    }

    /// Gives up the samples of flows that were heard last by then: how many had any.
    pub(crate) fn forget_samples(&mut self, last_us_max: u64) -> u64 {
        let mut forgotten = 0;
        let Self { pool, gone, .. } = self;
        let long = self.flows.iter_mut().filter(|flow| flow.last_us() <= last_us_max && flow.has_samples());
        for flow in long {
            gone.hosts(&flow.key, flow.last_us(), flow.sampled());
            flow.forget_samples(pool);
            forgotten += 1;
        }
        let short = self.embryos.iter_mut().filter(|e| e.last_us() <= last_us_max && e.entries() > 0);
        for embryo in short {
            gone.hosts(&embryo.key, embryo.last_us(), embryo.sampled());
            embryo.forget_samples(pool);
            forgotten += 1;
        }
        forgotten
    }

    /// Gives up flows that were heard last by then, for want of memory: how many had not lost their samples before.
    pub(crate) fn evict(&mut self, last_us_max: u64) -> u64 {
        let Self { flows, embryos, gone, .. } = self;
        for flow in flows.iter().filter(|flow| flow.last_us() <= last_us_max) {
            let had_any = flow.has_samples() || flow.marks.has(Marks::EVICTED);
            gone.flow(&flow.key, flow.last_us(), flow.sampled(), had_any);
        }
        for embryo in embryos.iter().filter(|embryo| !embryo.is_gone() && embryo.last_us() <= last_us_max) {
            let had_any = embryo.entries() > 0 || embryo.marks.has(Marks::EVICTED);
            gone.flow(&embryo.key, embryo.last_us(), embryo.sampled(), had_any);
        }
        self.drop_flows(last_us_max)
    }

    /// Drops flows that were heard last by then: how many had not lost their samples before.
    pub(crate) fn drop_flows(&mut self, last_us_max: u64) -> u64 {
        let mut dropped = 0;
        let (flows, embryos) = (self.flows.drain(), self.embryos.drain());
        self.table.clear();
        self.vacant.clear();
        self.flow_bytes = 0;
        for mut flow in flows {
            if flow.last_us() <= last_us_max {
                dropped += u64::from(!flow.marks.has(Marks::EVICTED));
                flow.forget_samples(&mut self.pool);
                continue;
            }
            self.push_flow(flow);
        }
        for mut embryo in embryos.filter(|embryo| !embryo.is_gone()) {
            if embryo.last_us() <= last_us_max {
                dropped += u64::from(!embryo.marks.has(Marks::EVICTED));
                embryo.forget_samples(&mut self.pool);
                continue;
            }
            self.begin(self.hash(&embryo.key), embryo);
        }
        dropped
    }

    fn push_flow(&mut self, flow: Flow) {
        let hash = self.hash(&flow.key);
        self.flow_bytes += flow.bytes();
        let index = self.flows.push(flow);
        self.table.insert(hash, Place::long(index));
    }

    /// Puts a flow of another stock behind the one of the same key here, if there is one; whether it is new.
    pub(crate) fn append(&mut self, theirs: &Reader<'_>, place: Place) -> bool {
        let key = *theirs.stock.key(place);
        let hash = self.hash(&key);
        let found = self.find(hash, &key);
        let (is_back, marks) = if found.is_none() { self.returned(&key) } else { (false, Marks::NONE) };
        let mine = match found {
            None if place.is_short() => {
                let short = theirs.stock.embryos.get(place.index());
                let mut moved = short.moved(&theirs.stock.pool, &mut self.pool);
                moved.marks.set(marks);
                self.begin(hash, moved);
                return !is_back;
            }
            None => {
                let mut flow = theirs.with(place, |flow, _| Flow::new(key, flow.first_us));
                flow.marks.set(marks);
                self.push_flow(flow);
                (self.flows.len() - 1) as u32
            }
            Some(place) if place.is_short() => self.grow(place.index(), hash),
            Some(place) => place.index(),
        };
        let Self { flows, pool, flow_bytes, .. } = self;
        let mine = flows.get_mut(mine);
        let before = mine.heap_bytes();
        theirs.with(place, |later, samples| mine.append(later, samples, pool));
        *flow_bytes = *flow_bytes + mine.heap_bytes() - before;
        found.is_none() && !is_back
    }

    /// Whether a flow that is not here was given up before, and what it is marked with then.
    #[inline]
    fn returned(&self, key: &Key) -> (bool, Marks) {
        let (is_back, had_samples) = self.gone.knows(key);
        (is_back, if had_samples { Marks::EVICTED } else { Marks::NONE })
    }

    /// All flows, in an order that depends on nothing but the packets.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        let short = self.embryos.iter().zip(0..).filter(|(embryo, _)| !embryo.is_gone());
        (0..self.flows.len() as u32).map(Place::long).chain(short.map(|(_, k)| Place::short(k)))
    }

    /// The same, of which the next ones are always near.
    pub(crate) fn places_near(&self) -> impl Iterator<Item = Place> {
        let mut ahead = self.places();
        self.places().enumerate().map(move |(k, place)| {
            if k.is_multiple_of(NEAR) {
                self.bring_near(ahead.by_ref().take(NEAR), Part::Whole);
            }
            place
        })
    }
}

#[inline(always)]
fn key_of<'a>(flows: &'a Pages<Flow, PAGE>, embryos: &'a Pages<Embryo, PAGE>, place: Place) -> &'a Key {
    let index = place.index();
    if place.is_short() { &embryos.get(index).key } else { &flows.get(index).key }
}

/// Shows every flow in the form of a long one.
pub(crate) struct Reader<'a> {
    pub stock: &'a Stock,
    /// Samples of the short flow that is being looked at.
    scratch: RefCell<Pool>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(stock: &'a Stock) -> Self {
        Self { stock, scratch: RefCell::default() }
    }

    /// Hands a flow and what its samples are in to `look`, which must not look at another one meanwhile.
    pub(crate) fn with<T>(&self, place: Place, look: impl FnOnce(&Flow, &Pool) -> T) -> T {
        if !place.is_short() {
            return look(self.stock.flows.get(place.index()), &self.stock.pool);
        }
        let embryo = self.stock.embryos.get(place.index());
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        let flow = embryo.grown(&embryo.copy_entries(&self.stock.pool), &mut scratch);
        look(&flow, &scratch)
    }

    /// What is worth knowing of a flow.
    pub(crate) fn marks(&self, place: Place) -> Marks {
        let index = place.index();
        if place.is_short() { self.stock.embryos.get(index).marks } else { self.stock.flows.get(index).marks }
    }

    /// A short flow as it is kept, and what it is kept in.
    pub(crate) fn short(&self, place: Place) -> Option<(&Embryo, &Pool)> {
        place.is_short().then(|| (self.stock.embryos.get(place.index()), &self.stock.pool))
    }

    /// A flow that is no short one, and what its samples are in.
    pub(crate) fn long(&self, place: Place) -> Option<(&Flow, &Pool)> {
        (!place.is_short()).then(|| (self.stock.flows.get(place.index()), &self.stock.pool))
    }

    /// How many samples of the direct and the echoed estimate a direction has; of a short flow the most that there may be.
    pub(crate) fn samples(&self, place: Place, side: Side) -> (usize, usize) {
        if place.is_short() {
            let entries = self.stock.embryos.get(place.index()).entries();
            return (entries, entries);
        }
        let side = &self.stock.flows.get(place.index()).sides[side];
        (side.direct.len(), side.echo.len())
    }
}
