//! The meter: packets in, a report out.

use crate::analysis::{self, Visitor};
use crate::config::Config;
use crate::intake::Counters;
use crate::packet::frame::Content;
use crate::packet::key::{Address, Key};
use crate::packet::views::{Verdict, Views};
use crate::packet::{Packet, Said, plain};
use crate::report::{Flags, Report};
use crate::store::flow::Flow;
use crate::store::stock::{Part, Reader, Stock};
use crate::waiting::Waiting;
use cede_wire::link::LinkType;

/// How the memory is divided, in sixteenths. Flows and what is kept of packets take what they need, up to thirteen together;
/// at least three are left for the making of the report. As what one of them took from the system is not given back for
/// the other, each has a share that the other leaves to it.
const SHARES: usize = 16;
const SHARES_KEPT: usize = 13;
const SHARES_OF_SAMPLES_MIN: usize = 4;
const SHARES_OF_FLOWS_MIN: usize = 2;
/// Samples further apart than this are not left out for want of memory.
const SPACING_US_MAX: u32 = 1 << 19;
/// Samples of a direction that take no less if every other one is left out.
const SERIES_SHORT_BYTES: usize = 256;

/// Reads packets and keeps what they say of queues, until a report is asked for.
#[derive(Debug)]
pub struct Meter {
    config: Config,
    counters: Counters,
    stock: Stock,
    /// Where the machine that captured saw packets.
    views: Views,
    /// The least time between two samples of a direction, as asked for and as the memory has it.
    spacing_us: [u32; 2],
    /// Octets of the memory that are not for the report.
    reserved_bytes: usize,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl Meter {
    /// A meter that has seen nothing.
    #[must_use]
    pub fn new(mut config: Config) -> Self {
        config.selection.learns_outside = true;
        let mut stock = Stock::default();
        stock.gone.set_room(config.memory_bytes / SHARES);
        let views = Views::new(config.memory_bytes / (2 * SHARES));
        Self { config, counters: Counters::default(), stock, views, spacing_us: [0; 2], reserved_bytes: 0 }
    }

    /// What became of the packets so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let Counters { thinned, taken_again, .. } = self.counters;
        Counters {
            thinned: thinned + self.stock.pool.thinned(),
            taken_again: taken_again + self.views.taken_again(),
            ..self.counters.clone()
        }
    }

    /// Flows that are remembered.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.stock.len()
    }

    /// From now on, of the samples of one direction those that come sooner than this after the last one are left out
    /// and counted: for whoever must keep up. Zero keeps all.
    pub fn set_spacing_us(&mut self, spacing_us: u32) {
        self.spacing_us[0] = spacing_us;
        self.stock.pool.set_spacing_us(spacing_us.max(self.spacing_us[1]));
    }

    /// Gives up samples older than a time (microseconds since the capture's epoch), and flows that were silent since:
    /// so a meter that runs for ever looks back through a window. Up to twenty older samples of each series of a flow may stay.
    pub fn forget_before(&mut self, time_us: u64) {
        let (flows, pool) = self.stock.long_mut();
        flows.filter(|flow| flow.first_us < time_us).for_each(|flow| flow.trim(pool, time_us));
        if self.spacing_us[1] > 0 && self.stock.pool.bytes() < self.config.memory_bytes / SHARES {
            self.spacing_us[1] /= 2;
            self.stock.pool.set_spacing_us(self.spacing_us[1].max(self.spacing_us[0]));
        }
        self.stock.gone.forget_before(time_us);
        let silent = self.stock.last_us().filter(|&last_us| last_us < time_us).count();
        // Moving all flows is worth it for an eighth of them.
        if silent * 8 > self.stock.len() {
            self.stock.drop_flows(time_us.saturating_sub(1));
        }
    }

    /// Octets that flows and samples take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.stock.bytes() + self.stock.pool.bytes_taken() + self.views.bytes()
    }

    /// Takes a packet in: when it was captured (nanoseconds since the capture's epoch), what its octets begin with,
    /// the octets that were captured, and how many it had on the wire.
    #[inline]
    pub fn packet(&mut self, time_ns: u64, link_type: LinkType, captured: &[u8], original_len: u32) {
        self.read(time_ns, (link_type, captured, original_len), |meter, waiting| meter.take(&waiting));
        self.check_memory();
    }

    /// Behind a packet.
    #[inline]
    pub(crate) fn check_memory(&mut self) {
        // So few packets take next to nothing.
        if self.counters.packets.is_multiple_of(64) {
            self.stay_within_memory();
        }
    }

    /// As [`Self::packet`], for a record of a capture file; those without a time are counted and left out.
    pub fn record(&mut self, record: &cede_wire::pcap::Record<'_>) {
        self.go_to_interface(record.interface);
        match record.time_ns {
            Some(time_ns) => self.packet(time_ns, record.link_type, record.captured, record.original_len),
            None => self.counters.timeless(),
        }
    }

    /// The interface of the capture that the packets are of that come next.
    #[inline]
    pub(crate) const fn go_to_interface(&mut self, interface: u32) {
        self.views.go_to(interface);
    }

    /// From now on packets are of this one of several captures that were taken at the same time, such as one at each interface of a router: hand
    /// over those of all in the order of time, and tell of each piece whose it is, from the first one on. Of each direction of a flow one view is kept,
    /// as of the interfaces of one capture.
    pub fn go_to_capture(&mut self, capture: u16) {
        self.views.go_to_capture(capture);
    }

    /// One of several captures has no more packets: what others show of its flows counts from now on.
    pub fn end_capture(&mut self, capture: u16) {
        self.views.end_capture(capture);
    }

    /// Flows that several captures showed without a packet that was found in both within ten seconds, or both of whose directions were seen later in the
    /// same one: their clocks do not agree. What one of them shows counts.
    #[must_use]
    pub fn flows_apart(&self) -> usize {
        self.views.flows_apart()
    }

    /// Takes in what was read of packets that came one behind the other.
    pub(crate) fn take_all(&mut self, waiting: &[Waiting]) {
        self.stock.bring_likely_near(waiting.iter().map(|waiting| waiting.hash), Part::End);
        waiting.iter().for_each(|waiting| self.take(waiting));
        self.stay_within_memory();
    }

    /// Reads a packet; what something is to be kept of goes on to `then`: itself, or all that are in it, up to [`Packet::JOINED_MAX`].
    // What was parsed stays in registers.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        time_ns: u64,
        (link_type, captured, original_len): (LinkType, &[u8], u32),
        mut then: impl FnMut(&mut Self, Waiting),
    ) {
        let selection = &self.config.selection;
        if !self.counters.arrives(selection, time_ns, original_len) {
            return;
        }
        if link_type == LinkType::ETHERNET
            && selection.filter.is_none()
            && self.views.at_interface().is_none()
            && let Some((key, packet)) = plain::read(captured, time_ns / 1000, original_len)
        {
            let hash = self.stock.hash(&key);
            return then(self, Waiting { key, hash, packet, is_cut: false, view: None });
        }
        self.read_long_way(time_ns, (link_type, captured, original_len), then);
    }

    #[inline(never)]
    fn read_long_way(
        &mut self,
        time_ns: u64,
        (link_type, captured, original_len): (LinkType, &[u8], u32),
        mut then: impl FnMut(&mut Self, Waiting),
    ) {
        let Some(seen) = self.counters.read(&self.config.selection, link_type, captured, original_len) else {
            return;
        };
        let is_tcp = matches!(seen.content, Content::Tcp(_));
        let (key, side) = Key::of(seen.source, seen.destination, is_tcp);
        let hash = self.stock.hash(&key);
        let view = self.views.of(link_type, captured);
        Packet::each(&seen, side, time_ns / 1000, original_len, |packet| {
            let is_cut = matches!(packet.said, Said::Silent | Said::Foreign) && seen.ends_too_early();
            then(self, Waiting { key, hash, packet, is_cut, view });
        });
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, waiting: &Waiting) {
        if waiting.view.is_some() {
            return self.take_one_view(waiting);
        }
        self.take_as(waiting.key, waiting.hash, &waiting.packet, waiting.is_cut);
    }

    #[inline(always)]
    fn take_as(&mut self, key: Key, hash: u64, packet: &Packet, is_cut: bool) {
        self.counters.cut += u64::from(is_cut);
        let is_new = self.stock.take(key, hash, packet);
        self.counters.flows += u64::from(is_new);
    }

    /// Of what may be seen more than once.
    #[inline(never)]
    fn take_one_view(&mut self, waiting: &Waiting) {
        let Waiting { key, packet, is_cut, view: Some(view), .. } = *waiting else { return };
        let Self { views, stock, .. } = self;
        let judged = views.note(key, &packet, view, &|key| stock.knows(key));
        if let Some(dropped) = judged.dropped {
            self.counters.flows -= u64::from(self.stock.remove(&dropped));
        }
        let packet = Packet { side: judged.side, hop_limit: judged.hop_limit(packet.hop_limit), ..packet };
        match judged.verdict {
            Verdict::Repeats => return self.counters.seen_twice += 1,
            Verdict::Early => {
                self.counters.early += 1;
                return self.stock.take_early(&judged.key, &packet);
            }
            Verdict::Begins => self.stock.begin_again(&judged.key, judged.side),
            Verdict::Take => {}
        }
        let hash = self.stock.hash(&judged.key);
        self.take_as(judged.key, hash, &packet, is_cut);
    }

    #[inline]
    fn stay_within_memory(&mut self) {
        let share = self.config.memory_bytes / SHARES;
        let (samples, flows) = (self.stock.pool.bytes(), self.stock.bytes());
        if samples > share * SHARES_KEPT - flows.clamp(share * SHARES_OF_FLOWS_MIN, share * SHARES_KEPT) {
            self.make_room_for_samples();
        }
        let taken = self.stock.pool.bytes_taken().max(share * SHARES_OF_SAMPLES_MIN);
        if flows > (share * SHARES_KEPT).saturating_sub(taken) {
            self.make_room_for_flows();
        }
    }

    /// Leaves out samples that come soon after others while that is worth something; then forgets the samples of the
    /// quieter half of all flows, and those of all if that is not enough.
    fn make_room_for_samples(&mut self) {
        let goal = self.stock.pool.bytes() / 4 * 3;
        while self.spacing_us[1] < SPACING_US_MAX && self.has_long_series() {
            self.thin();
            if self.stock.pool.bytes() <= goal {
                return;
            }
        }
        for quiet_since in [self.median_last_us(), u64::MAX] {
            self.counters.evicted += self.stock.forget_samples(quiet_since);
            if self.stock.pool.bytes() <= goal {
                return;
            }
        }
    }

    /// Whether half of the samples' memory is that of flows with many.
    fn has_long_series(&self) -> bool {
        let bytes = self.stock.long().map(Flow::bytes_of_samples);
        bytes.filter(|&bytes| bytes > 4 * SERIES_SHORT_BYTES).sum::<usize>() * 2 > self.stock.pool.bytes()
    }

    /// Doubles the time between samples: from then on, and in what is there.
    fn thin(&mut self) {
        self.spacing_us[1] = (self.spacing_us[1] * 2).max(1 << 10);
        self.stock.pool.set_spacing_us(self.spacing_us[1].max(self.spacing_us[0]));
        let (flows, pool) = self.stock.long_mut();
        flows.filter(|flow| flow.bytes_of_samples() > SERIES_SHORT_BYTES).for_each(|flow| flow.thin(pool));
    }

    /// Forgets the quieter half of all flows.
    fn make_room_for_flows(&mut self) {
        self.counters.evicted += self.stock.evict(self.median_last_us());
    }

    fn median_last_us(&self) -> u64 {
        let mut times: Vec<u64> = self.stock.last_us().collect();
        let middle = times.len() / 2;
        // Where not even tables without flows have room there is none.
        if times.is_empty() { 0 } else { *times.select_nth_unstable(middle).1 }
    }

    /// So many octets of the memory allowed are taken by others while the report is made.
    pub const fn reserve(&mut self, bytes: usize) {
        self.reserved_bytes = bytes;
    }

    /// Puts what another meter saw later behind what this one saw, flow by flow. Answers to what was seen before the border say
    /// nothing, neither round trips nor the echoed estimate, nor where a tick of TCP's clock ends (delays may differ by some tenths of one):
    /// where round trips are longer than pieces of a capture, hand the packets to one meter.
    pub fn append(&mut self, later: &Self) {
        self.counters.add(&later.counters());
        // What the other one gave up is counted there alone.
        self.counters.flows += later.counters.flows.saturating_sub(later.stock.len() as u64);
        let theirs = Reader::new(&later.stock);
        for place in later.stock.places() {
            self.counters.flows += u64::from(self.stock.append(&theirs, place));
            self.stay_within_memory();
        }
        self.stock.gone.append(&later.stock.gone);
    }

    /// What was found out.
    #[must_use]
    pub fn report(&self) -> Report {
        self.report_to(&mut ())
    }

    /// As [`Self::report`]; every sample and every flow is handed to `visitor`, host by host.
    #[must_use]
    pub fn report_to(&self, visitor: &mut impl Visitor) -> Report {
        let share = self.config.memory_bytes / SHARES;
        // A share is for what is counted nowhere.
        let taken = self.memory_bytes().saturating_add(self.reserved_bytes).saturating_add(share);
        let room = self.config.memory_bytes.saturating_sub(taken).max(share);
        let flows = Reader::new(&self.stock);
        let mut report = analysis::report(&flows, room, &self.config, self.counters(), visitor);
        for host in &mut report.hosts {
            host.flags.set_if(self.stock.gone.has_host(Address::of(host.address)), Flags::EVICTED);
        }
        report
    }
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.outside += other.outside;
        self.other += other.other;
        self.unread += other.unread;
        self.filtered += other.filtered;
        self.fragments += other.fragments;
        self.cut += other.cut;
        self.timeless += other.timeless;
        self.seen_twice += other.seen_twice;
        self.early += other.early;
        self.taken_again += other.taken_again;
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
