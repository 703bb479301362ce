//! FQ-CoDel: a queue for each flow, served in turn by octets, new flows first, with CoDel on each.
//!
//! Source: RFC 8290, sections 4 and 5; from Linux's `sch_fq_codel` the rule that a queue whose credits are used up
//! exactly waits for its next turn (`<= 0`; the RFC's text says "negative"), and that at most 64 packets are dropped
//! when the whole is full.
//!
//! What it leaves out: Linux's limit on memory beside that on packets, and its test of the whole backlog in place of a
//! queue's own against CoDel's one packet.
//!
//! How it was validated: a sparse flow beside a bulk one waits no longer than a quantum, shares by octets, the fattest
//! flow pays for an overflow, and the conservation law (tests below and of the link).

use super::codel::{Codel, CodelConfig, Pass};
use super::{Fifo, QueueLimit, Verdicts, Waiting};
use crate::log::{DropCause, LinkLog};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cede_units::Instant;

/// What can be set on FQ-CoDel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FqCodelConfig {
    /// CoDel on each queue.
    pub codel: CodelConfig,
    /// Octets that a queue may send in a turn (section 5.2.3).
    pub quantum_bytes: u32,
    /// Queues to which flows are hashed (section 5.2.4).
    pub queues: u32,
    /// Each flow has a queue of its own as long as there have been no more flows than queues.
    pub exact: bool,
    /// Packets that are dropped at an overflow at most (Linux: `FQ_CODEL_DROP_BATCH`); half of the queue is RFC 8290's rule
    /// (section 4.1).
    pub drop_batch: u32,
}

impl Default for FqCodelConfig {
    /// Section 5.2: a quantum of 1,514 octets, 1,024 queues; Linux's 64 packets.
    fn default() -> Self {
        let codel = CodelConfig::default();
        Self { codel, quantum_bytes: 1_514, queues: 1_024, exact: false, drop_batch: 64 }
    }
}

/// Which list a queue is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Listed {
    No,
    New,
    Old,
}

/// The queue of a flow, or of several whose hashes meet.
#[derive(Clone, Debug)]
struct FlowQueue<T> {
    packets: Fifo<T>,
    codel: Codel,
    credits: i64,
    listed: Listed,
}

/// All queues of a link.
#[derive(Clone, Debug)]
pub(crate) struct FqCodel<T> {
    config: FqCodelConfig,
    queues: Vec<FlowQueue<T>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    salt: u64,
    /// With `exact`: the flows that have a queue of their own, by key.
    known: Vec<(u64, u32)>,
    packets: usize,
    bytes: u64,
}

impl<T> FqCodel<T> {
    /// Empty queues; `salt` is what keeps hashes unforeseeable.
    pub(crate) fn new(config: FqCodelConfig, salt: u64) -> Self {
        let queue =
            || FlowQueue { packets: Fifo::default(), codel: Codel::new(), credits: 0, listed: Listed::No };
        Self {
            queues: (0..config.queues.max(1)).map(|_| queue()).collect(),
            config,
            new: VecDeque::new(),
            old: VecDeque::new(),
            salt,
            known: Vec::new(),
            packets: 0,
            bytes: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.packets
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The queue of a flow.
    fn place(&mut self, key: u64) -> u32 {
        if self.config.exact {
            match self.known.binary_search_by_key(&key, |&(known, _)| known) {
                Ok(found) => return self.known[found].1,
                Err(at) if self.known.len() < self.queues.len() => {
                    let place = self.known.len() as u32;
                    self.known.insert(at, (key, place));
                    return place;
                }
                Err(_) => {}
            }
        }
        ((u128::from(mix(key ^ self.salt)) * self.queues.len() as u128) >> 64) as u32
    }

    /// Appends a packet to its flow's queue; where the whole is beyond its limit, the fattest queue pays.
    pub(crate) fn enqueue<L: LinkLog<T>>(
        &mut self,
        limit: QueueLimit,
        packet: Waiting<T>,
        in_service: Option<u32>,
        verdicts: &mut Verdicts<'_, T, L>,
    ) {
        let place = self.place(verdicts.log.flow_key(&packet.token));
        let (now, bytes) = (packet.since, packet.bytes);
        let quantum = i64::from(self.config.quantum_bytes);
        self.packets += 1;
        self.bytes += u64::from(bytes);
        let queue = &mut self.queues[place as usize];
        queue.packets.push(packet);
        if queue.listed == Listed::No {
            (queue.listed, queue.credits) = (Listed::New, quantum);
            self.new.push_back(place);
        }
        // Counted without the newcomer, as if it were asking to be let in.
        if !limit.admits(self.packets - 1, self.bytes - u64::from(bytes), bytes, in_service) {
            self.drop_from_fattest(now, verdicts);
        }
    }

    /// Section 4.1: half of the queue with most octets goes, from its head.
    fn drop_from_fattest<L: LinkLog<T>>(&mut self, now: Instant, verdicts: &mut Verdicts<'_, T, L>) {
        let fattest = self.queues.iter_mut().max_by_key(|queue| queue.packets.bytes());
        let Some(queue) = fattest else { return };
        let half = queue.packets.bytes() / 2;
        for _ in 0..self.config.drop_batch {
            if queue.packets.bytes() <= half {
                break;
            }
            let Some(packet) = queue.packets.pop() else { break };
            self.packets -= 1;
            self.bytes -= u64::from(packet.bytes);
            verdicts.drop(packet, now, DropCause::PushedOut);
        }
    }

    /// The packet that leaves next (section 4.2).
    pub(crate) fn dequeue<L: LinkLog<T>>(
        &mut self,
        now: Instant,
        ecn: bool,
        verdicts: &mut Verdicts<'_, T, L>,
    ) -> Option<Waiting<T>> {
        loop {
            let place = *self.new.front().or(self.old.front())?;
            if self.queues[place as usize].credits <= 0 {
                self.queues[place as usize].credits += i64::from(self.config.quantum_bytes);
                self.move_to_old(place);
                continue;
            }
            if let Some(packet) = self.take(place, now, ecn, verdicts) {
                self.queues[place as usize].credits -= i64::from(packet.bytes);
                return Some(packet);
            }
            // A new queue that ran empty is passed by once more before it counts as new again.
            if self.queues[place as usize].listed == Listed::New {
                self.move_to_old(place);
            } else {
                self.old.pop_front();
                self.queues[place as usize].listed = Listed::No;
            }
        }
    }

    fn move_to_old(&mut self, place: u32) {
        match core::mem::replace(&mut self.queues[place as usize].listed, Listed::Old) {
            Listed::New => self.new.pop_front(),
            Listed::Old | Listed::No => self.old.pop_front(),
        };
        self.old.push_back(place);
    }

    fn take<L: LinkLog<T>>(
        &mut self,
        place: u32,
        now: Instant,
        ecn: bool,
        verdicts: &mut Verdicts<'_, T, L>,
    ) -> Option<Waiting<T>> {
        let queue = &mut self.queues[place as usize];
        let (packets, bytes) = (&mut self.packets, &mut self.bytes);
        let mut pass = Pass { config: &self.config.codel, ecn, now, verdicts };
        pass.dequeue(&mut queue.codel, || {
            let packet = queue.packets.pop()?;
            *packets -= 1;
            *bytes -= u64::from(packet.bytes);
            Some((packet, queue.packets.bytes()))
        })
    }
}

/// A step of SplitMix64 (Steele, Lea and Flood, 2014).
const fn mix(key: u64) -> u64 {
    let z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Desk, waiting};
    use super::*;
    use cede_units::Duration;

    /// A packet whose flow is `flow`.
    fn of(flow: u64, number: u64, bytes: u32, since: Instant) -> Waiting<u64> {
        waiting(flow << 32 | number, bytes, since)
    }

    fn queues() -> (FqCodel<u64>, Desk) {
        (FqCodel::new(FqCodelConfig::default(), 7), Desk::default())
    }

    #[test]
    fn a_sparse_flow_waits_no_longer_than_a_quantum_beside_a_bulk_one() {
        // 12 Mbit/s: a packet of 1,500 B takes 1 ms. The bulk flow keeps 50 packets waiting; every 10 ms, just after a
        // departure, a packet of the sparse flow comes.
        let (mut queues, mut desk) = queues();
        let mut worst = Duration::ZERO;
        for ms in 0..5_000_u64 {
            let now = Instant::from_millis(ms);
            while queues.len() < 50 {
                let packet = of(1, ms, 1_500, now);
                queues.enqueue(QueueLimit::Unlimited, packet, None, &mut desk.verdicts());
            }
            let leaving = queues.dequeue(now, false, &mut desk.verdicts()).unwrap();
            if leaving.token >> 32 == 2 {
                worst = worst.max(now.since(leaving.since));
            }
            if ms % 10 == 3 {
                queues.enqueue(QueueLimit::Unlimited, of(2, ms, 100, now), None, &mut desk.verdicts());
            }
        }
        assert!(worst > Duration::ZERO && worst <= Duration::from_millis(1), "{worst}");
    }

    #[test]
    fn octets_are_shared_whatever_the_packets_are_like() {
        let (mut queues, mut desk) = queues();
        let mut served = [0_u64; 2];
        for number in 0..200 {
            let now = Instant::from_millis(number);
            queues.enqueue(QueueLimit::Unlimited, of(0, number, 1_500, now), None, &mut desk.verdicts());
            for _ in 0..15 {
                queues.enqueue(QueueLimit::Unlimited, of(1, number, 100, now), None, &mut desk.verdicts());
            }
        }
        for _ in 0..1_000 {
            let packet = queues.dequeue(Instant::from_millis(200), false, &mut desk.verdicts()).unwrap();
            served[(packet.token >> 32) as usize] += u64::from(packet.bytes);
        }
        let ratio = served[0] as f64 / served[1] as f64;
        assert!((0.95..1.05).contains(&ratio), "{served:?}");
    }

    #[test]
    fn the_fattest_flow_pays_for_an_overflow() {
        let (mut queues, mut desk) = queues();
        let limit = QueueLimit::Packets(20);
        for number in 0..20 {
            queues.enqueue(limit, of(1, number, 1_500, Instant::ZERO), None, &mut desk.verdicts());
        }
        queues.enqueue(limit, of(2, 0, 1_500, Instant::ZERO), None, &mut desk.verdicts());
        assert_eq!(desk.dropped().len(), 10);
        assert!(
            desk.dropped().iter().all(|&(token, cause)| token >> 32 == 1 && cause == DropCause::PushedOut)
        );
        assert_eq!(queues.len(), 11);
    }

    #[test]
    fn no_more_go_at_an_overflow_than_a_batch() {
        let config = FqCodelConfig { drop_batch: 3, ..FqCodelConfig::default() };
        let (mut queues, mut desk) = (FqCodel::new(config, 7), Desk::default());
        for number in 0..21 {
            let packet = of(1, number, 1_500, Instant::ZERO);
            queues.enqueue(QueueLimit::Packets(20), packet, None, &mut desk.verdicts());
        }
        assert_eq!((desk.dropped().len(), queues.len()), (3, 18));
    }

    #[test]
    fn exact_queues_keep_flows_apart_until_there_are_too_many() {
        let config = FqCodelConfig { queues: 4, exact: true, ..FqCodelConfig::default() };
        let mut queues = FqCodel::<u64>::new(config, 7);
        let places: Vec<u32> = (0..4).map(|flow| queues.place(flow * 99)).collect();
        assert_eq!(places, [0, 1, 2, 3]);
        assert_eq!(queues.place(99), 1);
        assert!(queues.place(1 << 40) < 4);
    }
}
