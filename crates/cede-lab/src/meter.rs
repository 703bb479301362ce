//! The lab's ear in a simulated world: what passes through the links under study, and what became of each flow's packets.

use crate::histogram::Histogram;
use crate::ports::FIRST_PORT;
use cede_net::{Datagram, Dequeue, DropCause, Drops, Enqueue, HostId};
use cede_sim::{LinkId, Observer, PacketEvent};
use cede_units::{Duration, Instant, Rate};

/// Windows of short-term fairness (20 round trips of 50 ms in the LCN 2010 paper).
const SHORT_TERM: Duration = Duration::from_secs(1);

/// What became of one flow's data packets since the meters were opened.
#[derive(Clone, Debug, Default)]
pub struct FlowMeter {
    /// Data packets that its host sent.
    pub sent_packets: u64,
    /// Data packets that were dropped or lost, on any link.
    pub dropped_packets: u64,
    /// Queueing delays of its data packets that arrived: of each what it waited on its whole way.
    pub delays: Histogram,
}

/// Where links times flows are more than this, links do not count the octets of each flow.
const MAX_LINK_FLOWS: usize = 1 << 20;

/// What happened at one link since the meter was opened.
#[derive(Clone, Debug)]
pub struct LinkMeter {
    /// Which link.
    pub link: LinkId,
    /// Octets of each flow's data packets that left, headers included, by flow number; empty in networks of so many
    /// links and flows that the table would be large and mostly zero.
    pub flow_bytes: Vec<u64>,
    /// Queueing delays of all packets.
    pub delays: Histogram,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets that the queue refused or dropped.
    pub dropped_packets: u64,
    /// Packets that the wire lost.
    pub lost_packets: u64,
    /// Packets that did not get through, by cause.
    pub drops: Drops,
    /// Packets that the queue marked in place of dropping them.
    pub marked_packets: u64,
    /// Octets that left, of data and acknowledgements.
    pub served_bytes: u64,
    /// Packets that were admitted, and the sum of the queue's lengths just after.
    enqueued_packets: u64,
    queue_length_sum: Length<u64>,
    /// Integral of the queue's length over time, in nanoseconds.
    queue_length_ns: Length<u128>,
    queue: Length<u64>,
    queue_since: Instant,
    /// When the packet whose transmission began last began, and its octets.
    in_service: (Instant, u32),
    /// The same of the last packet before the meter was opened.
    in_service_at_opening: (Instant, u32),
    /// Queueing delay in the present sampling interval.
    interval: IntervalDelay,
}

/// A queue's length, or a sum or mean of lengths, in packets and in octets.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Length<T> {
    /// Packets.
    pub packets: T,
    /// Octets, headers included.
    pub bytes: T,
}

/// Queueing delay of the packets that left in one sampling interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntervalDelay {
    sum_ns: u128,
    packets: u64,
    /// The longest wait.
    pub max: Duration,
}

impl IntervalDelay {
    /// The mean wait in milliseconds; `None` where nothing left.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.sum_ns as f64 / self.packets as f64 / 1e6)
    }

    fn record(&mut self, waited: Duration) {
        self.sum_ns += u128::from(waited.as_nanos());
        self.packets += 1;
        self.max = self.max.max(waited);
    }
}

impl LinkMeter {
    fn new(link: LinkId, flows: usize, opened: Instant) -> Self {
        Self {
            link,
            flow_bytes: vec![0; flows],
            delays: Histogram::default(),
            arrived_packets: 0,
            dropped_packets: 0,
            lost_packets: 0,
            drops: Drops::default(),
            marked_packets: 0,
            served_bytes: 0,
            enqueued_packets: 0,
            queue_length_sum: Length::default(),
            queue_length_ns: Length::default(),
            queue: Length::default(),
            queue_since: opened,
            in_service: (Instant::ZERO, 0),
            in_service_at_opening: (Instant::ZERO, 0),
            interval: IntervalDelay::default(),
        }
    }

    /// The mean of the queue's length, sampled just after each packet that was admitted.
    #[must_use]
    pub fn mean_queue_at_enqueue(&self) -> Length<f64> {
        let count = self.enqueued_packets.max(1) as f64;
        let Length { packets, bytes } = self.queue_length_sum;
        Length { packets: packets as f64 / count, bytes: bytes as f64 / count }
    }

    /// The mean of the queue's length over the `span` from the opening to the last [`Meters::settle`].
    #[must_use]
    pub fn mean_queue_over(&self, span: Duration) -> Length<f64> {
        let span_ns = (span.as_nanos() as f64).max(1.0);
        let Length { packets, bytes } = self.queue_length_ns;
        Length { packets: packets as f64 / span_ns, bytes: bytes as f64 / span_ns }
    }

    /// Octets that a link carried from `opened` to `end`: of a packet in transmission at either moment the part that falls
    /// between them, by the rate that the link had when its transmission began.
    #[must_use]
    pub fn carried_bytes(&self, rate_at: impl Fn(Instant) -> Rate, opened: Instant, end: Instant) -> f64 {
        let left = |(began, bytes): (Instant, u32), at: Instant| {
            let rate = rate_at(began).bits_per_sec() as f64;
            let sent = rate * at.since(began).as_nanos() as f64 / 8e9;
            (f64::from(bytes) - sent).max(0.0)
        };
        self.served_bytes as f64 + left(self.in_service_at_opening, opened) - left(self.in_service, end)
    }

    /// Takes the delay of the present sampling interval and begins the next one.
    pub fn take_interval(&mut self) -> IntervalDelay {
        core::mem::take(&mut self.interval)
    }

    fn settle(&mut self, now: Instant) {
        self.queue_becomes(now, self.queue);
    }

    fn queue_becomes(&mut self, now: Instant, queue: Length<u64>) {
        let span_ns = u128::from(now.since(self.queue_since).as_nanos());
        self.queue_length_ns.packets += u128::from(self.queue.packets) * span_ns;
        self.queue_length_ns.bytes += u128::from(self.queue.bytes) * span_ns;
        self.queue_since = self.queue_since.max(now);
        self.queue = queue;
    }
}

/// Jain's fairness index `(sum x)^2 / (n sum x^2)`: 1 where all are equal, 1/n where one has everything; `None` where
/// nobody has anything (Jain, Chiu and Hawe, 1984).
#[must_use]
pub fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// Hears every packet at a host, for captures.
pub trait PacketTap {
    /// A host sent (`outbound`) or received a packet.
    fn packet(&mut self, at: Instant, host: HostId, outbound: bool, datagram: &Datagram);
}

/// Hears every packet that leaves a metered link's queue, warm-up included, for records.
pub trait QueueTap {
    /// A packet's transmission began at the metered link of this index.
    fn dequeued(&mut self, link: usize, event: &Dequeue);
}

/// Octets of data that reached their receivers, headers included, and how fairly, second by second.
#[derive(Clone, Debug)]
pub struct Deliveries {
    /// Per flow, in the order of flow numbers.
    pub bytes: Vec<u64>,
    /// The same from the beginning of the run on, for series over time.
    pub bytes_since_start: Vec<u64>,
    window_bytes: Vec<u64>,
    window_end: Instant,
    /// Jain's index of each short-term window in which anything arrived.
    pub short_term_fairness: Vec<f64>,
}

impl Deliveries {
    fn new(flows: usize, opened: Instant) -> Self {
        Self {
            bytes: vec![0; flows],
            bytes_since_start: vec![0; flows],
            window_bytes: vec![0; flows],
            window_end: opened + SHORT_TERM,
            short_term_fairness: Vec::new(),
        }
    }

    fn record(&mut self, at: Instant, flow: usize, bytes: u32) {
        self.close_windows(at);
        self.bytes[flow] += u64::from(bytes);
        self.window_bytes[flow] += u64::from(bytes);
    }

    fn close_windows(&mut self, now: Instant) {
        while self.window_end <= now {
            self.window_end += SHORT_TERM;
            self.short_term_fairness.extend(jain(self.window_bytes.iter().map(|&bytes| bytes as f64)));
            self.window_bytes.fill(0);
        }
    }
}

/// All meters of a run.
pub struct Meters {
    deliveries: Deliveries,
    flows: Vec<FlowMeter>,
    links: Vec<LinkMeter>,
    /// Meter of each link, by number; links without one are not listened to.
    place: Vec<Option<usize>>,
    /// The host that sends each flow's data.
    senders: Vec<HostId>,
    /// Nothing before this counts.
    opened: Instant,
    tap: Option<Box<dyn PacketTap>>,
    queue_tap: Option<Box<dyn QueueTap>>,
}

impl Meters {
    /// Meters for `watched` of `links` links, that count from `opened` on.
    #[must_use]
    pub fn new(links: usize, watched: &[LinkId], senders: Vec<HostId>, opened: Instant) -> Self {
        let mut place = vec![None; links];
        for (index, link) in watched.iter().enumerate() {
            place[link.0 as usize] = Some(index);
        }
        let table = if links * senders.len() <= MAX_LINK_FLOWS { senders.len() } else { 0 };
        let meter = |&link| LinkMeter::new(link, table, opened);
        Self {
            deliveries: Deliveries::new(senders.len(), opened),
            flows: vec![FlowMeter::default(); senders.len()],
            links: watched.iter().map(meter).collect(),
            place,
            senders,
            opened,
            tap: None,
            queue_tap: None,
        }
    }

    /// Hands every packet at a host to `tap` as well.
    pub fn tap(&mut self, tap: Box<dyn PacketTap>) {
        self.tap = Some(tap);
    }

    /// Hands every dequeue at a metered link to `tap` as well.
    pub fn tap_queues(&mut self, tap: Box<dyn QueueTap>) {
        self.queue_tap = Some(tap);
    }

    /// The meters, in the order in which their links were named.
    #[must_use]
    pub fn links(&self) -> &[LinkMeter] {
        &self.links
    }

    /// The meters, to take intervals from.
    pub fn links_mut(&mut self) -> &mut [LinkMeter] {
        &mut self.links
    }

    /// What became of each flow's packets, by flow number.
    #[must_use]
    pub fn flows(&self) -> &[FlowMeter] {
        &self.flows
    }

    /// What reached the receivers.
    #[must_use]
    pub const fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// Brings all integrals and windows up to `now`.
    pub fn settle(&mut self, now: Instant) {
        self.links.iter_mut().for_each(|meter| meter.settle(now));
        self.deliveries.close_windows(now);
    }

    fn meter(&mut self, link: LinkId) -> Option<&mut LinkMeter> {
        self.place[link.0 as usize].map(|index| &mut self.links[index])
    }

    /// The flow whose data a packet carries; `None` for acknowledgements.
    fn data_flow(&self, datagram: &Datagram) -> Option<usize> {
        let flow = usize::from(datagram.source.port.checked_sub(FIRST_PORT)?);
        (self.senders.get(flow) == Some(&datagram.source.host)).then_some(flow)
    }
}

impl Observer for Meters {
    fn watches(&self, link: LinkId) -> bool {
        self.place.get(link.0 as usize).is_some_and(Option::is_some)
    }

    fn enqueued(&mut self, link: LinkId, _: &Datagram, event: &Enqueue) {
        let counts = event.at >= self.opened;
        let Some(meter) = self.meter(link) else { return };
        let queue = Length { packets: u64::from(event.queued_packets), bytes: event.queued_bytes };
        meter.queue_becomes(event.at, queue);
        if counts {
            meter.arrived_packets += 1;
            meter.enqueued_packets += 1;
            meter.queue_length_sum.packets += queue.packets;
            meter.queue_length_sum.bytes += queue.bytes;
        }
    }

    fn dequeued(&mut self, link: LinkId, datagram: &Datagram, event: &Dequeue) {
        let (flow, counts) = (self.data_flow(datagram), event.at >= self.opened);
        let Some(index) = self.place[link.0 as usize] else { return };
        if let Some(tap) = &mut self.queue_tap {
            tap.dequeued(index, event);
        }
        let meter = &mut self.links[index];
        let queue = Length { packets: u64::from(event.queued_packets), bytes: event.queued_bytes };
        meter.queue_becomes(event.at, queue);
        meter.interval.record(event.waited);
        meter.in_service = (event.at, event.bytes);
        if !counts {
            meter.in_service_at_opening = meter.in_service;
            return;
        }
        meter.delays.record(event.waited);
        meter.served_bytes += u64::from(event.bytes);
        if let Some(bytes) = flow.and_then(|flow| meter.flow_bytes.get_mut(flow)) {
            *bytes += u64::from(event.bytes);
        }
    }

    fn dropped(&mut self, link: LinkId, datagram: &Datagram, at: Instant, cause: DropCause) {
        if at < self.opened {
            return;
        }
        if let Some(flow) = self.data_flow(datagram)
            && !datagram.payload.is_empty()
        {
            self.flows[flow].dropped_packets += 1;
        }
        let Some(meter) = self.meter(link) else { return };
        // A packet that the queue drops after a while was counted when it joined, unless that was before the opening.
        meter.arrived_packets += u64::from(cause.is_at_arrival());
        let on_the_wire = u64::from(cause == DropCause::Wire);
        meter.dropped_packets += 1 - on_the_wire;
        meter.lost_packets += on_the_wire;
        meter.drops.note(cause);
    }

    fn marked(&mut self, link: LinkId, _: &Datagram, at: Instant) {
        let counts = at >= self.opened;
        if let Some(meter) = self.meter(link).filter(|_| counts) {
            meter.marked_packets += 1;
        }
    }

    fn sent(&mut self, event: &PacketEvent<'_>) {
        if event.at >= self.opened
            && let Some(flow) = self.data_flow(event.datagram)
            && !event.datagram.payload.is_empty()
        {
            self.flows[flow].sent_packets += 1;
        }
        if let Some(tap) = &mut self.tap {
            tap.packet(event.at, event.host, true, event.datagram);
        }
    }

    fn delivered(&mut self, event: &PacketEvent<'_>) {
        if let Some(flow) = self.data_flow(event.datagram) {
            let bytes = event.datagram.wire_bytes();
            self.deliveries.bytes_since_start[flow] += u64::from(bytes);
            if event.at >= self.opened {
                self.deliveries.record(event.at, flow, bytes);
                self.flows[flow].delays.record(event.waited);
            }
        }
        if let Some(tap) = &mut self.tap {
            tap.packet(event.at, event.host, false, event.datagram);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_has_its_known_values() {
        let index = |shares: &[f64]| jain(shares.iter().copied());
        assert_eq!(index(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(index(&[9.0, 0.0, 0.0]), Some(1.0 / 3.0));
        assert_eq!(index(&[0.0, 0.0]), None);
        assert!((index(&[9.9, 0.1]).unwrap() - 0.5101).abs() < 1e-4);
    }

    #[test]
    fn queue_means_are_taken_per_enqueue_and_over_time() {
        let mut meters = Meters::new(1, &[LinkId(0)], vec![HostId(0)], Instant::ZERO);
        let datagram = Datagram::default();
        let enqueue = |at_ms, queued_packets| Enqueue {
            at: Instant::from_millis(at_ms),
            bytes: 1,
            queued_packets,
            queued_bytes: 100 * u64::from(queued_packets),
        };
        meters.enqueued(LinkId(0), &datagram, &enqueue(0, 1));
        meters.enqueued(LinkId(0), &datagram, &enqueue(10, 2));
        meters.settle(Instant::from_millis(40));
        let meter = &meters.links()[0];
        assert_eq!(meter.mean_queue_at_enqueue(), Length { packets: 1.5, bytes: 150.0 });
        let mean = meter.mean_queue_over(Duration::from_millis(40));
        assert_eq!(mean, Length { packets: (10.0 + 60.0) / 40.0, bytes: 175.0 });
    }

    #[test]
    fn a_packet_in_transmission_counts_with_the_part_within_the_measured_time() {
        let opened = Instant::from_millis(1000);
        let mut meters = Meters::new(1, &[LinkId(0)], vec![HostId(0)], opened);
        let dequeue = |at_ms| Dequeue {
            at: Instant::from_millis(at_ms),
            bytes: 1000,
            waited: Duration::ZERO,
            queued_packets: 0,
            queued_bytes: 0,
            served_bytes: 0,
            dropped_packets: 0,
        };
        // 8 kbit/s: a packet takes a second. Three quarters of the first and a quarter of the third are within.
        for at_ms in [750, 1750, 2750] {
            meters.dequeued(LinkId(0), &Datagram::default(), &dequeue(at_ms));
        }
        let rate = Rate::from_bits_per_sec(8000);
        let carried = meters.links()[0].carried_bytes(|_| rate, opened, Instant::from_millis(3000));
        assert_eq!(carried, 2000.0);
    }
}
