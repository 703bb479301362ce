//! One direction of a wire: a queue, a transmitter of fixed rate, and propagation.
//!
//! Model: a packet that arrives at `t` and is admitted begins transmission at `s = max(t, end of the one before it)`,
//! occupies the transmitter for `8 L / R`, and is delivered at `s + 8 L / R + D`. The limit counts the packets that
//! *wait*, unless `count_in_service` is set.
//!
//! A link is brought up to the present first, always, and is otherwise at rest: dequeues happen at their exact virtual
//! times when someone next asks, so a link with packets under way needs one pending event, not one per packet.
//!
//! What it leaves out: token-bucket shapers and disciplines other than drop-tail.
//!
//! How it was validated: the serialising-link example and the conservation law of the tests below.

use crate::impairment::{Fate, Impairer};
use crate::queue::{DropTail, Waiting};
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
    /// What the wire does to packets.
    pub impairments: Impairments,
}

/// What a link has done so far. Always `arrived = served + dropped + queued`, in packets and in octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets offered.
    pub arrived_packets: u64,
    /// Packets whose transmission began.
    pub served_packets: u64,
    /// Octets whose transmission began.
    pub served_bytes: u64,
    /// Packets refused by the full queue.
    pub dropped_packets: u64,
    /// Octets refused by the full queue.
    pub dropped_bytes: u64,
    /// Packets lost on the wire after transmission.
    pub lost_packets: u64,
}

/// A packet joined the queue (or, on an idle link, passed through it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enqueue {
    /// When.
    pub at: Instant,
    /// Octets of the packet.
    pub bytes: u32,
    /// Packets that wait afterwards, this one included unless its transmission begins at once.
    pub queued_packets: u32,
    /// Octets that wait afterwards.
    pub queued_bytes: u64,
}

/// A packet left the queue: its transmission begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dequeue {
    /// When.
    pub at: Instant,
    /// Octets of the packet.
    pub bytes: u32,
    /// How long it waited.
    pub waited: Duration,
    /// Packets that wait afterwards.
    pub queued_packets: u32,
    /// Octets that wait afterwards.
    pub queued_bytes: u64,
    /// Octets served since the beginning, this packet included.
    pub served_bytes: u64,
    /// Packets dropped since the beginning.
    pub dropped_packets: u64,
}

/// Why a packet did not get through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// The queue was full.
    QueueFull,
    /// The wire lost it after transmission.
    Wire,
}

/// Hears what happens on a link, in the order of its virtual times. The unit type hears nothing, at no cost.
pub trait LinkLog<T> {
    /// A packet was admitted.
    fn enqueued(&mut self, packet: &T, event: &Enqueue) {
        let _ = (packet, event);
    }
    /// A packet's transmission began.
    fn dequeued(&mut self, packet: &T, event: &Dequeue) {
        let _ = (packet, event);
    }
    /// A packet was dropped or lost.
    fn dropped(&mut self, packet: &T, at: Instant, cause: DropCause) {
        let _ = (packet, at, cause);
    }
}

impl<T> LinkLog<T> for () {}

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
    queue: DropTail<T>,
    counters: Counters,
    /// None on a perfect wire, so that the hop of most links touches little memory.
    impairer: Option<Box<Impairer>>,
    can_reorder: bool,
    lost: Vec<T>,
    config: Box<LinkConfig>,
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
            queue: DropTail::new(config.limit),
            counters: Counters::default(),
            impairer: impaired.then(|| Box::new(Impairer::new(rules, seed, name))),
            can_reorder: rules.can_reorder(),
            lost: Vec::new(),
            config: Box::new(config),
        }
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
        let idle = self.busy_until <= now && self.queue.is_empty();
        if !idle && !self.queue.admits(bytes, self.in_service(now)) {
            return Err(self.refuse(now, token, bytes, log));
        }
        // A packet that finds the link idle never waits: its transmission begins as it arrives.
        let (packets, octets) = if idle { (0, 0) } else { (1, u64::from(bytes)) };
        let event = Enqueue {
            at: now,
            bytes,
            queued_packets: self.queue.len() + packets,
            queued_bytes: self.queue.bytes() + octets,
        };
        log.enqueued(&token, &event);
        let packet = Waiting { token, bytes, since: now };
        if idle {
            self.transmit(now, packet, log);
        } else {
            self.queue.push(packet);
        }
        Ok(())
    }

    /// Begins every transmission that is due by `now`.
    pub fn advance(&mut self, now: Instant, log: &mut impl LinkLog<T>) {
        while self.busy_until <= now {
            let Some(packet) = self.queue.pop() else { return };
            self.transmit(self.busy_until, packet, log);
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
        self.wire.pop_front().map(|packet| packet.token)
    }

    /// Takes a packet that the wire has lost, so that its owner can reclaim what the token stands for.
    pub fn take_lost(&mut self) -> Option<T> {
        self.lost.pop()
    }

    fn in_service(&self, now: Instant) -> Option<u32> {
        (self.config.count_in_service && self.busy_until > now).then_some(self.in_service_bytes)
    }

    fn refuse(&mut self, now: Instant, token: T, bytes: u32, log: &mut impl LinkLog<T>) -> T {
        self.counters.dropped_packets += 1;
        self.counters.dropped_bytes += u64::from(bytes);
        log.dropped(&token, now, DropCause::QueueFull);
        token
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
        self.busy_until = at + self.transmission_time(packet.bytes);
        self.in_service_bytes = packet.bytes;
        let fate = self.impairer.as_mut().map_or(Fate::Delayed(Duration::ZERO), |impairer| impairer.fate());
        match fate {
            Fate::Delayed(extra) => self.launch(self.busy_until + self.delay + extra, packet.token),
            Fate::Lost => {
                self.counters.lost_packets += 1;
                log.dropped(&packet.token, self.busy_until, DropCause::Wire);
                self.lost.push(packet.token);
            }
        }
    }

    fn transmission_time(&mut self, bytes: u32) -> Duration {
        if self.last_size.0 != bytes {
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn config(rate: Rate, limit: QueueLimit) -> LinkConfig {
        LinkConfig {
            rate,
            delay: Duration::ZERO,
            limit,
            count_in_service: false,
            impairments: Impairments::default(),
        }
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
    fn a_serialising_link_counts_the_packet_in_service_when_told_to() {
        let mut config = config(Rate::from_mbit(1), QueueLimit::Bytes(4_500));
        config.count_in_service = true;
        let arrivals = [(0, 1500), (0, 1500), (0, 1500), (0, 1500), (12_000, 1500), (40_000, 100)];
        // Times in us; the fourth is dropped, and at 12 ms the first has just left.
        let expected = [Some(12_000), Some(24_000), Some(36_000), None, Some(48_000), Some(48_800)];
        assert_eq!(run(Link::new(config, 1, "test"), &arrivals), expected);
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
}
