//! The meter: packets in, a report out.

use crate::analysis::{self, Visitor};
use crate::flow::{Flow, Marks};
use crate::frame::{Content, Seen};
use crate::intake::{Counters, Selection};
use crate::key::{Key, Side};
use crate::report::{Estimator, Protocol, Report};
use crate::samples::{Length, Pool};
use crate::{tcp, utp};
use cede_wire::link::LinkType;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// The largest frame on a path of 1500 octets: Ethernet with two tags.
const FRAME_BYTES_MAX: u32 = 1522;
const PAGE_FLOWS: usize = 1 << 12;
/// How the memory is divided: flows, samples and the making of the report have shares of their own, as what one of them
/// took from the system is not given back for the other.
pub(crate) const SHARES: usize = 16;
const SHARES_OF_SAMPLES: usize = 4;
const SHARES_OF_FLOWS: usize = 5;
pub(crate) const SHARES_OF_ANALYSIS: usize = 5;
/// Samples further apart than this are not left out for want of memory.
const SPACING_US_MAX: u32 = 1 << 19;
/// Samples of a direction that take no less if every other one is left out.
const SERIES_SHORT_BYTES: usize = 256;
/// Octets of the table for each flow that there is room for.
const TABLE_BYTES: usize = 6;

/// What a meter is asked to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Octets that flows, samples and the making of the report may take: five sixteenths for flows, four for samples.
    /// Beyond, samples that come soon after others are left out, and what was quiet longest is forgotten.
    pub memory_bytes: usize,
    /// Which packets are looked at.
    pub selection: Selection,
    /// A host with fewer samples is not listed.
    pub samples_min: u64,
    /// What delays are counted from.
    pub base: Base,
    /// Which estimate the hosts' figures are made of.
    pub estimator: Estimator,
    /// Only this protocol, if any.
    pub protocol: Option<Protocol>,
}

/// Where a direction's queue is taken to have been empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Base {
    /// At the shortest delay of all that was seen: the best there is once everything was seen.
    #[default]
    Whole,
    /// At the shortest delay so far, as one must say who speaks at once.
    Running,
}

impl Default for Config {
    /// 512 MiB, from the first packet to the last, hosts with 20 samples, by the direct estimate.
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            selection: Selection::default(),
            samples_min: 20,
            base: Base::Whole,
            estimator: Estimator::Direct,
            protocol: None,
        }
    }
}

/// Reads packets and keeps what they say of queues, until a report is asked for.
#[derive(Debug)]
pub struct Meter {
    config: Config,
    counters: Counters,
    hash: RandomState,
    table: HashTable<u32>,
    flows: Flows,
    pool: Pool,
    /// Octets that flows take; samples are counted by the pool.
    flow_bytes: usize,
    /// The least time between two samples of a direction, as asked for and as the memory has it.
    spacing_us: [u32; 2],
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl Meter {
    /// A meter that has seen nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            counters: Counters::default(),
            hash: RandomState::default(),
            table: HashTable::new(),
            flows: Flows::default(),
            pool: Pool::default(),
            flow_bytes: 0,
            spacing_us: [0; 2],
        }
    }

    /// What became of the packets so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { thinned: self.counters.thinned + self.pool.thinned(), ..self.counters.clone() }
    }

    /// Flows that are remembered.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.table.len()
    }

    /// From now on, of the samples of one direction those that come sooner than this after the last one are left out
    /// and counted: for whoever must keep up. Zero keeps all.
    pub fn set_spacing_us(&mut self, spacing_us: u32) {
        self.spacing_us[0] = spacing_us;
        self.pool.set_spacing_us(spacing_us.max(self.spacing_us[1]));
    }

    /// Gives up samples older than a time (microseconds since the capture's epoch), and flows that were silent since:
    /// so a meter that runs for ever looks back through a window. Up to two dozen older samples of a flow may stay.
    pub fn forget_before(&mut self, time_us: u64) {
        for flow in self.flows.iter_mut().filter(|flow| flow.first_us < time_us) {
            flow.trim(&mut self.pool, time_us);
        }
        if self.spacing_us[1] > 0 && self.pool.bytes() < self.config.memory_bytes / SHARES {
            self.spacing_us[1] /= 2;
            self.pool.set_spacing_us(self.spacing_us[1].max(self.spacing_us[0]));
        }
        let silent = self.flows.iter().filter(|flow| flow.last_us() < time_us).count();
        // Moving all flows is worth it for an eighth of them.
        if silent * 8 > self.table.len() {
            self.drop_flows(|flow| flow.last_us() < time_us);
        }
    }

    /// Octets that flows and samples take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes_of_flows() + self.pool.bytes_taken()
    }

    /// Takes a packet in: when it was captured (nanoseconds since the capture's epoch), what its octets begin with,
    /// the octets that were captured, and how many it had on the wire.
    #[inline]
    pub fn packet(&mut self, time_ns: u64, link_type: LinkType, captured: &[u8], original_len: u32) {
        let selection = &self.config.selection;
        let seen = self.counters.admit(selection, time_ns, (link_type, captured, original_len));
        if let Some(seen) = seen {
            self.take(&seen, time_ns / 1000, original_len);
        }
    }

    /// As [`Self::packet`], for a record of a capture file; those without a time are counted and left out.
    pub fn record(&mut self, record: &cede_wire::pcap::Record<'_>) {
        match record.time_ns {
            Some(time_ns) => self.packet(time_ns, record.link_type, record.captured, record.original_len),
            None => self.counters.timeless(),
        }
    }

    fn take(&mut self, seen: &Seen<'_>, time_us: u64, original_len: u32) {
        let is_tcp = matches!(seen.content, Content::Tcp(_));
        let (key, side) = Key::of(seen.source, seen.destination, is_tcp);
        let index = self.find_or_begin(key, time_us);
        let flow = self.flows.get_mut(index);
        let before = flow.bytes();
        if original_len > FRAME_BYTES_MAX {
            flow.marks.set(Marks::OFFLOADED);
        }
        let arrival = (time_us, Length::of(original_len));
        match seen.content {
            Content::Tcp(segment) => tcp::take(flow, side, arrival, &segment, &mut self.pool),
            Content::Udp { payload, payload_len } => {
                if !utp::take(flow, side, arrival, (payload, payload_len), &mut self.pool) {
                    flow.foreign = flow.foreign.saturating_add(1);
                }
            }
        }
        note(flow, side, time_us, original_len, seen.hop_limit);
        self.flow_bytes = self.flow_bytes + flow.bytes() - before;
        self.stay_within_memory();
    }

    #[inline]
    fn stay_within_memory(&mut self) {
        if self.pool.bytes() > self.config.memory_bytes / SHARES * SHARES_OF_SAMPLES {
            self.make_room_for_samples();
        }
        if self.bytes_of_flows() > self.config.memory_bytes / SHARES * SHARES_OF_FLOWS {
            self.make_room_for_flows();
        }
    }

    fn find_or_begin(&mut self, key: Key, time_us: u64) -> u32 {
        let hash = key.hash(&self.hash);
        if let Some(&index) = self.table.find(hash, |&index| self.flows.get(index).key == key) {
            return index;
        }
        self.counters.flows += 1;
        let flow = Flow::new(key, time_us);
        self.flow_bytes += flow.bytes();
        let index = self.flows.push(flow);
        self.table.insert_unique(hash, index, |&index| self.flows.get(index).key.hash(&self.hash));
        index
    }

    /// Leaves out samples that come soon after others while that is worth something; then forgets the samples of the
    /// quieter half of all flows, and those of all if that is not enough.
    fn make_room_for_samples(&mut self) {
        let goal = self.pool.bytes() / 4 * 3;
        while self.spacing_us[1] < SPACING_US_MAX && self.has_long_series() {
            self.thin();
            if self.pool.bytes() <= goal {
                return;
            }
        }
        for quiet_since in [self.median_last_us(), u64::MAX] {
            for flow in self.flows.iter_mut().filter(|flow| flow.last_us() <= quiet_since) {
                if flow.has_samples() {
                    flow.forget_samples(&mut self.pool);
                    self.counters.evicted += 1;
                }
            }
            if self.pool.bytes() <= goal {
                return;
            }
        }
    }

    /// Whether half of the samples' memory is that of flows with many.
    fn has_long_series(&self) -> bool {
        let long =
            self.flows.iter().map(Flow::bytes_of_samples).filter(|&bytes| bytes > 4 * SERIES_SHORT_BYTES);
        long.sum::<usize>() * 2 > self.pool.bytes()
    }

    /// Doubles the time between samples: from then on, and in what is there.
    fn thin(&mut self) {
        self.spacing_us[1] = (self.spacing_us[1] * 2).max(1 << 10);
        self.pool.set_spacing_us(self.spacing_us[1].max(self.spacing_us[0]));
        for flow in self.flows.iter_mut().filter(|flow| flow.bytes_of_samples() > SERIES_SHORT_BYTES) {
            flow.thin(&mut self.pool);
        }
    }

    /// Forgets the quieter half of all flows.
    fn make_room_for_flows(&mut self) {
        let median = self.median_last_us();
        let dropped = self.drop_flows(|flow| flow.last_us() <= median);
        self.counters.evicted += dropped;
    }

    fn median_last_us(&self) -> u64 {
        let mut times: Vec<u64> = self.flows.iter().map(Flow::last_us).collect();
        let middle = times.len() / 2;
        *times.select_nth_unstable(middle).1
    }

    fn bytes_of_flows(&self) -> usize {
        self.flow_bytes + self.table.capacity() * TABLE_BYTES
    }

    /// How many of those that are dropped had not lost samples before.
    fn drop_flows(&mut self, is_dropped: impl Fn(&Flow) -> bool) -> u64 {
        let mut dropped = 0;
        let old = core::mem::take(&mut self.flows);
        self.table.clear();
        self.flow_bytes = 0;
        for mut flow in old.pages.into_iter().flatten() {
            if is_dropped(&flow) {
                dropped += u64::from(!flow.marks.has(Marks::EVICTED));
                flow.forget_samples(&mut self.pool);
                continue;
            }
            let hash = flow.key.hash(&self.hash);
            self.flow_bytes += flow.bytes();
            let index = self.flows.push(flow);
            self.table.insert_unique(hash, index, |&index| self.flows.get(index).key.hash(&self.hash));
        }
        dropped
    }

    /// Puts what another meter saw later behind what this one saw, flow by flow: so several files of one capture can be
    /// read side by side. Acknowledgements of data across the border say nothing.
    pub fn append(&mut self, later: &Self) {
        self.counters.add(&later.counters());
        for flow in later.flows.pages.iter().flatten() {
            let index = self.find_or_begin(flow.key, flow.first_us);
            let mine = self.flows.get_mut(index);
            let before = mine.bytes();
            mine.append(flow, &later.pool, &mut self.pool);
            self.flow_bytes = self.flow_bytes + mine.bytes() - before;
            self.stay_within_memory();
        }
    }

    /// What was found out.
    #[must_use]
    pub fn report(&self) -> Report {
        self.report_to(&mut ())
    }

    /// As [`Self::report`]; every sample and every flow is handed to `visitor`, host by host.
    #[must_use]
    pub fn report_to(&self, visitor: &mut impl Visitor) -> Report {
        let flows: Vec<&Flow> = self.flows.iter().collect();
        analysis::report(&flows, &self.pool, &self.config, self.counters(), visitor)
    }
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.outside += other.outside;
        self.other += other.other;
        self.filtered += other.filtered;
        self.fragments += other.fragments;
        self.cut += other.cut;
        self.timeless += other.timeless;
        self.evicted += other.evicted;
        self.thinned += other.thinned;
        self.first_ns = self.first_ns.or(other.first_ns);
        self.unknown_link_type = self.unknown_link_type.or(other.unknown_link_type);
        self.span_ns = match (self.span_ns, other.span_ns) {
            (Some(mine), Some(theirs)) => Some((mine.0.min(theirs.0), mine.1.max(theirs.1))),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

fn note(flow: &mut Flow, side: Side, time_us: u64, len: u32, hop_limit: u8) {
    let direction = &mut flow.sides[side];
    direction.packets = direction.packets.saturating_add(1);
    direction.bytes += u64::from(len);
    direction.last_us = time_us;
    direction.hop_limit = hop_limit;
}

/// Flows by number, in pages, so that growing moves nothing.
#[derive(Debug, Default)]
struct Flows {
    pages: Vec<Vec<Flow>>,
}

impl Flows {
    #[inline]
    fn get(&self, index: u32) -> &Flow {
        &self.pages[index as usize / PAGE_FLOWS][index as usize % PAGE_FLOWS]
    }

    #[inline]
    fn get_mut(&mut self, index: u32) -> &mut Flow {
        &mut self.pages[index as usize / PAGE_FLOWS][index as usize % PAGE_FLOWS]
    }

    fn push(&mut self, flow: Flow) -> u32 {
        if self.pages.last().is_none_or(|page| page.len() == PAGE_FLOWS) {
            self.pages.push(Vec::with_capacity(PAGE_FLOWS));
        }
        let pages = self.pages.len();
        let page = &mut self.pages[pages - 1];
        page.push(flow);
        ((pages - 1) * PAGE_FLOWS + page.len() - 1) as u32
    }

    fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.pages.iter().flatten()
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.pages.iter_mut().flatten()
    }
}
