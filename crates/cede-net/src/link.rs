//! One direction of a wire: a queue, a transmitter of fixed rate, and propagation.
//!
//! Model: a packet that arrives at `t` and is admitted begins transmission at `s = max(t, end of the one before it)`,
//! occupies the transmitter for `8 L / R`, and is delivered at `s + 8 L / R + D`. The limit counts the packets that
//! *wait*, unless `count_in_service` is set.
//!
//! A link is brought up to the present first, always, and is otherwise at rest: dequeues happen at their exact virtual
//! times when someone next asks, so a link with packets under way needs one pending event, not one per packet.
//!
//! With a token bucket ([`crate::Shaper`]) a packet occupies the transmitter until it has its tokens, and a burst
//! leaves at once.
//!
//! What it leaves out: links whose rate varies from packet to packet (radio).
//!
//! How it was validated: the serialising-link and token-bucket examples and the conservation law of the tests below.

use crate::bucket::Shaping;
use crate::impairment::Impairer;
use crate::log::{Counters, Dequeue, DropCause, Enqueue, LinkLog};
use crate::queue::{Arrival, Discipline, Fifo, Managed, Queue, TrafficControl, Verdicts, Waiting};
use crate::{Impairments, QueueLimit};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cede_units::{Duration, Instant, Rate};

/// What a link is made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkConfig {
    /// The transmitter's rate.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// How much may wait.
    pub limit: QueueLimit,
    /// The packet being sent counts towards the limit.
    pub count_in_service: bool,
    /// A drop-tail queue's limit in packets counts those being sent and those that propagate, too, as Linux's netem does.
    pub count_delayed: bool,
    /// The queue's discipline, policer and shaper.
    pub control: TrafficControl,
    /// What the wire does to packets.
    pub impairments: Impairments,
}

impl LinkConfig {
    /// A perfect wire behind a drop-tail queue.
    #[must_use]
    pub const fn new(rate: Rate, delay: Duration, limit: QueueLimit) -> Self {
        Self {
            rate,
            delay,
            limit,
            count_in_service: false,
            count_delayed: false,
            control: TrafficControl {
                discipline: Discipline::DropTail,
                ecn: false,
                policer: None,
                shaper: None,
            },
            impairments: Impairments::NONE,
        }
    }
}

/// What changes on a link while the world runs: a path that is routed anew, a modem that trains again.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LinkChange {
    /// The rate from now on. A packet that is being sent ends at the old one.
    pub rate: Option<Rate>,
    /// The propagation delay of packets that leave from now on. Those under way are not overtaken, unless the link's
    /// impairments let packets overtake.
    pub delay: Option<Duration>,
    /// The probability of loss from now on.
    pub loss: Option<f64>,
    /// So many packets are lost, the next ones that leave.
    pub lose_packets: u64,
}

/// A packet on the wire.
#[derive(Clone, Copy, Debug)]
struct Flying<T> {
    arrival: Instant,
    token: T,
}

/// One direction of a wire, carrying packets that are known to it by a token each.
#[derive(Clone, Debug)]
pub struct Link<T> {
    busy_until: Instant,
    delay: Duration,
    /// The transmission time of the size sent last: packets come in few sizes and division is slow.
    last_size: (u32, Duration),
    in_service_bytes: u32,
    wire: VecDeque<Flying<T>>,
    queue: Queue<T>,
    counters: Counters,
    /// None on a perfect wire, so that the hop of most links touches little memory.
    impairer: Option<Box<Impairer>>,
    can_reorder: bool,
    lost: Vec<T>,
    /// The token bucket, where the rate is that of one.
    shaping: Option<Box<Shaping>>,
    config: Box<LinkConfig>,
    /// What names the link's random streams.
    origin: Box<(u64, alloc::string::String)>,
}

impl<T> Link<T> {
    /// An idle link; `name` and `seed` name its random streams.
    #[must_use]
    pub fn new(config: LinkConfig, seed: u64, name: &str) -> Self {
        let rules = config.impairments;
        let impaired = rules != Impairments::default();
        Self {
            busy_until: Instant::ZERO,
            delay: config.delay,
            last_size: (0, Duration::ZERO),
            in_service_bytes: 0,
            wire: VecDeque::new(),
            queue: queue_of(&config, seed, name),
            counters: Counters::default(),
            impairer: impaired.then(|| Box::new(Impairer::new(rules, seed, name))),
            can_reorder: rules.can_reorder(),
            lost: Vec::new(),
            shaping: config.control.shaper.map(|shaper| Box::new(Shaping::new(shaper, config.rate))),
            config: Box::new(config),
            origin: Box::new((seed, name.into())),
        }
    }

    /// Changes what the link is like, from `now` on.
    pub fn change(&mut self, now: Instant, change: &LinkChange, log: &mut impl LinkLog<T>) {
        self.advance(now, log);
        if let Some(rate) = change.rate {
            self.set_rate(rate);
        }
        if let Some(delay) = change.delay {
            (self.delay, self.config.delay) = (delay, delay);
        }
        if let Some(loss) = change.loss {
            self.config.impairments.loss = loss;
            self.impairer().set_loss(loss);
        }
        if change.lose_packets > 0 {
            self.impairer().lose_next(change.lose_packets);
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.config.rate = rate;
        self.last_size = (0, Duration::ZERO);
        if let Some(shaping) = &mut self.shaping {
            shaping.set_rate(rate);
        }
        if let Queue::Managed(managed) = &mut self.queue {
            managed.on_rate(rate);
        }
    }

    /// The link's impairer, which a perfect wire does not have until it needs one.
    fn impairer(&mut self) -> &mut Impairer {
        let (rules, (seed, name)) = (self.config.impairments, &*self.origin);
        self.impairer.get_or_insert_with(|| Box::new(Impairer::new(rules, *seed, name)))
    }

    /// What the link is made of.
    #[must_use]
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// What it has done so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets that wait, as of the last time the link was brought up to.
    #[must_use]
    pub fn queued_packets(&self) -> u32 {
        self.queue.len()
    }

    /// Whether the packet about to be offered shall be offered twice; draws from the link's random stream.
    pub fn duplicates(&mut self) -> bool {
        self.impairer.as_mut().is_some_and(|impairer| impairer.duplicates())
    }

    /// Offers a packet of `bytes` octets to the queue at `now`.
    ///
    /// # Errors
    /// The token comes back where the queue is full and the packet dropped.
    pub fn offer(&mut self, now: Instant, token: T, bytes: u32, log: &mut impl LinkLog<T>) -> Result<(), T> {
        self.advance(now, log);
        self.counters.arrived_packets += 1;
        let packet = Waiting { token, bytes, since: now };
        let free = self.busy_until <= now;
        let counted = (self.config.count_in_service && !free).then_some(self.in_service_bytes);
        let Queue::DropTail(limit, fifo) = &mut self.queue else {
            return self.offer_managed(Arrival { packet, idle: free, in_service: counted }, log);
        };
        let idle = free && fifo.is_empty();
        let full = if self.config.count_delayed {
            let under_way = self.wire.len() - self.wire.partition_point(|packet| packet.arrival <= now);
            !limit.admits(fifo.len() + under_way, fifo.bytes(), bytes, None)
        } else {
            !idle && !limit.admits(fifo.len(), fifo.bytes(), bytes, counted)
        };
        if full {
            return Err(self.refuse(now, packet, DropCause::QueueFull, log));
        }
        // A packet that finds the link idle never waits: its transmission begins as it arrives.
        let (packets, octets) = if idle { (0, 0) } else { (1, u64::from(bytes)) };
        let event = Enqueue {
            at: now,
            bytes,
            queued_packets: fifo.len() as u32 + packets,
            queued_bytes: fifo.bytes() + octets,
        };
        log.enqueued(&packet.token, &event);
        if idle {
            self.transmit(now, packet, log);
        } else {
            fifo.push(packet);
        }
        Ok(())
    }

    /// Offers a packet to a queue that decides. A packet that finds the link idle passes through the queue as well, so
    /// that the discipline sees it.
    #[cold]
    #[inline(never)]
    fn offer_managed(&mut self, mut arrival: Arrival<T>, log: &mut impl LinkLog<T>) -> Result<(), T> {
        let Queue::Managed(managed) = &mut self.queue else { return Ok(()) };
        arrival.idle &= managed.is_empty();
        let (now, idle) = (arrival.packet.since, arrival.idle);
        let mut verdicts = Verdicts { log, counters: &mut self.counters, lost: &mut self.lost };
        if let Err((packet, cause)) = managed.enqueue(arrival, &mut verdicts) {
            return Err(self.refuse(now, packet, cause, log));
        }
        if idle {
            self.serve_managed(now, log);
        }
        Ok(())
    }

    /// Begins every transmission that is due by `now`.
    #[inline]
    pub fn advance(&mut self, now: Instant, log: &mut impl LinkLog<T>) {
        while self.busy_until <= now {
            let Queue::DropTail(_, fifo) = &mut self.queue else { return self.advance_managed(now, log) };
            let Some(packet) = fifo.pop() else { return };
            self.transmit(self.busy_until, packet, log);
        }
    }

    #[cold]
    #[inline(never)]
    fn advance_managed(&mut self, now: Instant, log: &mut impl LinkLog<T>) {
        while self.busy_until <= now && !self.queue.is_empty() {
            self.serve_managed(self.busy_until, log);
        }
    }

    /// Begins the transmission of the packet that the discipline lets go at `at`, if it lets one go.
    fn serve_managed(&mut self, at: Instant, log: &mut impl LinkLog<T>) {
        let Queue::Managed(managed) = &mut self.queue else { return };
        let mut verdicts = Verdicts { log, counters: &mut self.counters, lost: &mut self.lost };
        if let Some(packet) = managed.dequeue(at, &mut verdicts) {
            self.transmit(at, packet, log);
        }
    }

    /// When the link wants to be looked at next: its head packet arrives, or, where packets may overtake or vanish,
    /// the next transmission begins.
    #[must_use]
    pub fn next_event(&self) -> Instant {
        let arrival = self.wire.front().map_or(Instant::NEVER, |head| head.arrival);
        let must_watch_queue = self.wire.is_empty() || self.can_reorder;
        if must_watch_queue && !self.queue.is_empty() { arrival.min(self.busy_until) } else { arrival }
    }

    /// Takes the packet that has arrived at the far end by `now`, if there is one.
    pub fn take_arrived(&mut self, now: Instant, log: &mut impl LinkLog<T>) -> Option<T> {
        self.advance(now, log);
        if self.wire.front()?.arrival > now {
            return None;
        }
        let packet = self.wire.pop_front()?;
        if self.wire.is_empty() {
            // An empty ring begins again where it began, in memory that is near.
            self.wire.clear();
        }
        Some(packet.token)
    }

    /// The packets that are to arrive next, in their order.
    pub fn under_way(&self) -> impl Iterator<Item = &T> {
        self.wire.iter().map(|flying| &flying.token)
    }

    /// Whether [`Link::take_lost`] has any.
    #[must_use]
    pub const fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Takes a packet that the wire has lost, so that its owner can reclaim what the token stands for.
    pub fn take_lost(&mut self) -> Option<T> {
        self.lost.pop()
    }

    fn refuse(&mut self, now: Instant, packet: Waiting<T>, cause: DropCause, log: &mut impl LinkLog<T>) -> T {
        self.counters.note_drop(packet.bytes, cause);
        log.dropped(&packet.token, now, cause);
        packet.token
    }

    fn transmit(&mut self, at: Instant, packet: Waiting<T>, log: &mut impl LinkLog<T>) {
        self.counters.served_packets += 1;
        self.counters.served_bytes += u64::from(packet.bytes);
        log.dequeued(
            &packet.token,
            &Dequeue {
                at,
                bytes: packet.bytes,
                waited: at.since(packet.since),
                queued_packets: self.queue.len(),
                queued_bytes: self.queue.bytes(),
                served_bytes: self.counters.served_bytes,
                dropped_packets: self.counters.dropped_packets,
            },
        );
        self.busy_until = at + self.transmission_time(at, packet.bytes);
        self.in_service_bytes = packet.bytes;
        let direct = self.busy_until + self.delay;
        let arrival = match &mut self.impairer {
            None => Some(direct),
            Some(impairer) => impairer.arrival(direct),
        };
        match arrival {
            Some(arrival) => self.launch(arrival, packet.token),
            None => self.lose(packet, log),
        }
    }

    /// The wire loses a packet that has been sent.
    #[cold]
    fn lose(&mut self, packet: Waiting<T>, log: &mut impl LinkLog<T>) {
        self.counters.lost_packets += 1;
        self.counters.drops.note(DropCause::Wire);
        log.dropped(&packet.token, self.busy_until, DropCause::Wire);
        self.lost.push(packet.token);
    }

    fn transmission_time(&mut self, at: Instant, bytes: u32) -> Duration {
        if self.last_size.0 != bytes {
            if let Some(shaping) = &mut self.shaping {
                return shaping.transmission_time(at, bytes);
            }
            self.last_size = (bytes, self.config.rate.time_to_send(u64::from(bytes)));
        }
        self.last_size.1
    }

    /// Puts a packet on the wire, in the order of arrival; among equals the one sent first stays first.
    fn launch(&mut self, arrival: Instant, token: T) {
        let last = self.wire.back().map_or(Instant::ZERO, |packet| packet.arrival);
        if arrival >= last {
            self.wire.push_back(Flying { arrival, token });
        } else if self.can_reorder {
            let place = self.wire.partition_point(|packet| packet.arrival <= arrival);
            self.wire.insert(place, Flying { arrival, token });
        } else {
            self.wire.push_back(Flying { arrival: last, token });
        }
    }
}

/// The queue that a configuration asks for: the plain one wherever that will do.
fn queue_of<T>(config: &LinkConfig, seed: u64, name: &str) -> Queue<T> {
    let plain = config.control.discipline == Discipline::DropTail && config.control.policer.is_none();
    if plain {
        return Queue::DropTail(config.limit, Fifo::default());
    }
    Queue::Managed(Box::new(Managed::new(&config.control, config.limit, config.rate, seed, name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shaper;
    use crate::queue::testing::{number, vector};
    use alloc::vec;

    fn config(rate: Rate, limit: QueueLimit) -> LinkConfig {
        LinkConfig::new(rate, Duration::ZERO, limit)
    }

    /// Runs arrivals of (time in us, octets) through a link and returns each packet's arrival in us, or none.
    fn run(mut link: Link<usize>, arrivals: &[(u64, u32)]) -> Vec<Option<u64>> {
        let mut finish = vec![None; arrivals.len()];
        let drain = |link: &mut Link<usize>, until: Instant, finish: &mut Vec<Option<u64>>| {
            while link.next_event() <= until {
                let at = link.next_event();
                while let Some(index) = link.take_arrived(at, &mut ()) {
                    finish[index] = Some(at.as_micros());
                }
            }
        };
        for (index, &(at, bytes)) in arrivals.iter().enumerate() {
            drain(&mut link, Instant::from_micros(at), &mut finish);
            let _ = link.offer(Instant::from_micros(at), index, bytes, &mut ());
        }
        drain(&mut link, Instant::from_secs(1_000_000), &mut finish);
        let counters = *link.counters();
        assert_eq!(counters.arrived_packets, counters.served_packets + counters.dropped_packets);
        finish
    }

    #[test]
    fn serialising_link_1_mbit_4500_bytes_counts_the_packet_in_service_when_told_to() {
        let mut config = config(Rate::from_mbit(1), QueueLimit::Bytes(4_500));
        config.count_in_service = true;
        // The fourth is dropped, and at 12 ms the first has just left.
        follows(config, "serialising_link_1Mbit_4500B_incl_in_service[t_ms,bytes,finish_ms]");
    }

    #[test]
    fn a_limit_in_packets_counts_those_that_wait() {
        let link = Link::new(config(Rate::from_mbit(12), QueueLimit::Packets(2)), 1, "test");
        let arrivals = [(0, 1500); 5];
        assert_eq!(run(link, &arrivals), [Some(1_000), Some(2_000), Some(3_000), None, None]);
    }

    #[test]
    fn jitter_keeps_the_order_unless_told_otherwise() {
        let mut config = config(Rate::from_mbit(12), QueueLimit::Unlimited);
        config.impairments.jitter = Duration::from_millis(20);
        let arrivals: Vec<(u64, u32)> = (0..200).map(|i| (i * 1_000, 1_500)).collect();
        let kept = run(Link::new(config, 3, "test"), &arrivals);
        assert!(kept.windows(2).all(|pair| pair[0] <= pair[1]));
        config.impairments.jitter_reorders = true;
        let mixed = run(Link::new(config, 3, "test"), &arrivals);
        assert!(mixed.windows(2).any(|pair| pair[0] > pair[1]));
        assert!(mixed.iter().all(Option::is_some));
    }

    #[test]
    fn an_overtaking_packet_is_not_held_back_by_a_detoured_head() {
        let mut config = config(Rate::from_mbit(12), QueueLimit::Unlimited);
        let rule = crate::Reordering { probability: 0.5, extra_delay: Duration::from_millis(50) };
        config.impairments.reordering = Some(rule);
        let arrivals = [(0, 1500); 20];
        let times = run(Link::new(config, 3, "test"), &arrivals);
        for (index, time) in times.iter().enumerate() {
            let direct = (index as u64 + 1) * 1_000;
            assert!(*time == Some(direct) || *time == Some(direct + 50_000), "{index}: {time:?}");
        }
    }

    #[test]
    fn lost_packets_are_served_and_handed_back() {
        let mut config = config(Rate::from_mbit(12), QueueLimit::Unlimited);
        config.impairments.loss = 1.0;
        let mut link = Link::new(config, 1, "test");
        for index in 0..3 {
            link.offer(Instant::ZERO, index, 1500, &mut ()).unwrap();
        }
        while link.next_event() != Instant::NEVER {
            let at = link.next_event();
            assert_eq!(link.take_arrived(at, &mut ()), None);
        }
        assert_eq!(core::iter::from_fn(|| link.take_lost()).count(), 3);
        assert_eq!(link.counters().served_packets, 3);
        assert_eq!(link.counters().lost_packets, 3);
    }

    /// A link gives a vector's packets (time in ms, octets, arrival in ms or null) the times that it says.
    fn follows(config: LinkConfig, name: &str) {
        let us = |ms: &serde_json::Value| ms.as_f64().map(|ms| (ms * 1e3 + 0.5) as u64);
        let packets = vector(name);
        let arrivals: Vec<(u64, u32)> = packets
            .iter()
            .map(|packet| (us(&packet[0]).expect("a time"), number(&packet[1]) as u32))
            .collect();
        let expected: Vec<Option<u64>> = packets.iter().map(|packet| us(&packet[2])).collect();
        assert_eq!(run(Link::new(config, 1, "test"), &arrivals), expected, "{name}");
    }

    #[test]
    fn tbf_1_mbit_burst_3000_bytes() {
        let mut config = config(Rate::from_mbit(1), QueueLimit::Unlimited);
        config.control.shaper = Some(Shaper { burst_bytes: 3_000, peak: None });
        follows(config, "tbf_1Mbit_burst3000B[t_ms,bytes,depart_ms,tokens_after]");
        // With a peak of 12 Mbit/s each packet takes its millisecond as well.
        config.control.shaper = Some(Shaper { burst_bytes: 3_000, peak: Some(Rate::from_mbit(12)) });
        let expected = [1_000, 2_000, 13_000, 25_000].map(Some);
        assert_eq!(run(Link::new(config, 1, "test"), &[(0, 1_500); 4]), expected);
    }

    /// Linux's netem delays first and serialises then; with a constant delay and one queue the order makes no difference.
    #[test]
    fn netem_delay_25_ms_rate_1_mbit() {
        let wire = LinkConfig::new(Rate::from_mbit(1), Duration::from_millis(25), QueueLimit::Unlimited);
        follows(wire, "netem_delay25ms_rate1Mbit[t_ms,bytes,time_to_send_ms]");
    }

    #[test]
    fn netem_limit_2_counts_what_is_merely_delayed() {
        let mut wire = LinkConfig::new(Rate::from_mbit(1), Duration::from_millis(25), QueueLimit::Packets(2));
        wire.count_delayed = true;
        follows(wire, "netem_limit2");
    }

    #[test]
    fn arrivals_are_served_dropped_or_queued_whatever_the_discipline() {
        let disciplines = [
            Discipline::DropTail,
            Discipline::HeadDrop,
            Discipline::Codel(crate::CodelConfig::default()),
            Discipline::FqCodel(crate::FqCodelConfig::default()),
            Discipline::Pie(crate::PieConfig::default()),
            Discipline::Red(crate::RedConfig::default()),
        ];
        let policer = crate::BucketConfig { rate: Rate::from_mbit(11), burst_bytes: 20_000 };
        for (index, discipline) in disciplines.into_iter().enumerate() {
            for policer in [None, Some(policer)] {
                let mut config = config(Rate::from_mbit(10), QueueLimit::Bytes(60_000));
                config.control =
                    TrafficControl { discipline, policer, ecn: true, ..TrafficControl::default() };
                let dropped = overload(Link::new(config, index as u64, "test"));
                assert!(dropped > 100, "{discipline:?} {policer:?}");
            }
        }
    }

    /// Offers 30 % more than the link carries for five seconds, then nothing; answers how many packets were dropped.
    fn overload(mut link: Link<usize>) -> u64 {
        let mut random = cede_units::Stream::named(5, "arrivals");
        let (mut now, mut reclaimed, mut arrived, mut refused) = (Instant::ZERO, 0, 0, 0);
        for index in 0..5_000_000 / 923 {
            now += Duration::from_nanos(random.below(2_000_000 * 923 / 1_000));
            refused += u64::from(link.offer(now, index, 1_500, &mut ()).is_err());
            while link.take_arrived(now, &mut ()).is_some() {
                arrived += 1;
            }
            reclaimed += core::iter::from_fn(|| link.take_lost()).count() as u64;
            let counters = link.counters();
            let queued = u64::from(link.queued_packets());
            let known = counters.served_packets + counters.dropped_packets + queued;
            assert_eq!(counters.arrived_packets, known);
            assert_eq!(counters.dropped_packets, reclaimed + refused, "every token comes back");
        }
        while link.next_event() != Instant::NEVER {
            let at = link.next_event();
            arrived += u64::from(link.take_arrived(at, &mut ()).is_some());
        }
        assert_eq!((link.queued_packets(), arrived), (0, link.counters().served_packets));
        let by_cause = DropCause::ALL.iter().map(|&cause| link.counters().drops.of(cause)).sum::<u64>();
        assert_eq!(by_cause, link.counters().dropped_packets);
        link.counters().dropped_packets
    }

    #[test]
    fn a_link_changes_while_packets_are_under_way() {
        let mut config = config(Rate::from_mbit(12), QueueLimit::Unlimited);
        config.delay = Duration::from_millis(50);
        let mut link = Link::new(config, 1, "test");
        link.offer(Instant::ZERO, 0, 1_500, &mut ()).unwrap();
        let change = LinkChange {
            delay: Some(Duration::from_millis(10)),
            rate: Some(Rate::from_mbit(6)),
            lose_packets: 1,
            ..LinkChange::default()
        };
        link.change(Instant::from_millis(5), &change, &mut ());
        for (ms, token) in [(5, 1), (20, 2), (60, 3)] {
            link.offer(Instant::from_millis(ms), token, 1_500, &mut ()).unwrap();
        }
        let mut arrivals = Vec::new();
        while link.next_event() != Instant::NEVER {
            let at = link.next_event();
            arrivals.extend(link.take_arrived(at, &mut ()).map(|token| (token, at.as_micros())));
        }
        // The second is lost; the third must not overtake the first; the fourth has the new delay.
        assert_eq!(arrivals, [(0, 51_000), (2, 51_000), (3, 72_000)]);
        assert_eq!(link.take_lost(), Some(1));
    }

    #[test]
    fn batches_arrive_at_their_slots() {
        let mut config = config(Rate::from_mbit(12), QueueLimit::Unlimited);
        config.impairments.batching = Duration::from_millis(20);
        let arrivals: Vec<(u64, u32)> = (0..30).map(|ms| (ms * 1_000, 1_500)).collect();
        let times = run(Link::new(config, 1, "test"), &arrivals);
        let slots: Vec<Option<u64>> = (0..30).map(|ms| Some(if ms < 20 { 20_000 } else { 40_000 })).collect();
        assert_eq!(times, slots);
    }
}
