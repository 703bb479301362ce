//! CoDel: packets are dropped at departure while they have waited too long for too long.
//!
//! Source: RFC 8289, section 5 (pseudocode); where it and Linux differ, the RFC: `now >= first_above_time` and exact
//! square roots.
//!
//! What it leaves out: Linux's clock of 1,024 ns and its reciprocal square root of 16 bits, whose first drops come up to
//! a few per cent off; CE marking below the target (`ce_threshold`).
//!
//! How it was validated: the control law's first ten drop times and a queue of 400 packets served every millisecond,
//! both against an independent implementation of the RFC's pseudocode (tests below).

use super::{Verdicts, Waiting};
use crate::log::{DropCause, LinkLog};
use cede_units::{Duration, Instant, math};

/// What can be set on CoDel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CodelConfig {
    /// The delay that a standing queue may have (TARGET, section 4.4).
    pub target: Duration,
    /// How long it may have more (INTERVAL, section 4.3): about the longest usual round-trip time.
    pub interval: Duration,
    /// The octets up to which a queue is no standing queue: one packet of the largest size (section 5.2).
    pub max_packet_bytes: u32,
    /// After dropping ended, the rate of drops is taken up again within so many intervals (section 5.5).
    pub memory_intervals: u32,
}

impl CodelConfig {
    /// The constants of sections 4 and 5: 5 ms and 100 ms, 1,514 octets and 16 intervals.
    pub const RFC8289: Self = Self {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        max_packet_bytes: 1_514,
        memory_intervals: 16,
    };
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self::RFC8289
    }
}

/// Whether it is dropping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Waiting,
    Dropping,
}

/// The state of one CoDel queue (section 5.4).
#[derive(Clone, Debug)]
pub(crate) struct Codel {
    phase: Phase,
    /// When the delay has been above the target for an interval; `NEVER` while it is below.
    first_above: Instant,
    drop_next: Instant,
    count: u32,
    last_count: u32,
}

impl Codel {
    pub(crate) const fn new() -> Self {
        Self {
            phase: Phase::Waiting,
            first_above: Instant::NEVER,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// `ok_to_drop` of section 5.6, of a packet that has just left the queue with `left` octets behind it.
    fn may_drop<T>(&mut self, config: &CodelConfig, now: Instant, packet: &Waiting<T>, left: u64) -> bool {
        if now.since(packet.since) < config.target || left <= u64::from(config.max_packet_bytes) {
            self.first_above = Instant::NEVER;
        } else if self.first_above == Instant::NEVER {
            self.first_above = now + config.interval;
        } else {
            return now >= self.first_above;
        }
        false
    }

    /// The control law of section 5.3.
    fn after(&self, config: &CodelConfig, at: Instant) -> Instant {
        at + config.interval.mul_f64(1.0 / math::sqrt(f64::from(self.count.max(1))))
    }
}

/// A pass of CoDel over a queue at one departure.
pub(crate) struct Pass<'a, 'v, T, L> {
    pub(crate) config: &'a CodelConfig,
    pub(crate) ecn: bool,
    pub(crate) now: Instant,
    pub(crate) verdicts: &'a mut Verdicts<'v, T, L>,
}

impl<T, L: LinkLog<T>> Pass<'_, '_, T, L> {
    /// The packet that leaves, after those that CoDel drops; none where the queue ran empty.
    pub(crate) fn dequeue(
        &mut self,
        codel: &mut Codel,
        mut pull: impl FnMut() -> Option<(Waiting<T>, u64)>,
    ) -> Option<Waiting<T>> {
        let (packet, too_long) = self.take(codel, &mut pull)?;
        match codel.phase {
            Phase::Dropping if !too_long => {
                codel.phase = Phase::Waiting;
                Some(packet)
            }
            Phase::Dropping => self.go_on(codel, packet, &mut pull),
            Phase::Waiting if too_long => self.begin(codel, packet, &mut pull),
            Phase::Waiting => Some(packet),
        }
    }

    fn take(
        &mut self,
        codel: &mut Codel,
        pull: &mut impl FnMut() -> Option<(Waiting<T>, u64)>,
    ) -> Option<(Waiting<T>, bool)> {
        let Some((packet, left)) = pull() else {
            (codel.first_above, codel.phase) = (Instant::NEVER, Phase::Waiting);
            return None;
        };
        let too_long = codel.may_drop(self.config, self.now, &packet, left);
        Some((packet, too_long))
    }

    /// Marks the packet and gives it back, or drops it.
    fn signal(&mut self, mut packet: Waiting<T>) -> Option<Waiting<T>> {
        if self.ecn && self.verdicts.mark(&mut packet, self.now) {
            return Some(packet);
        }
        self.verdicts.drop(packet, self.now, DropCause::Sojourn);
        None
    }

    /// While dropping: as many drops as the control law has come to.
    fn go_on(
        &mut self,
        codel: &mut Codel,
        mut packet: Waiting<T>,
        pull: &mut impl FnMut() -> Option<(Waiting<T>, u64)>,
    ) -> Option<Waiting<T>> {
        while self.now >= codel.drop_next {
            codel.count = codel.count.saturating_add(1);
            if let Some(marked) = self.signal(packet) {
                codel.drop_next = codel.after(self.config, codel.drop_next);
                return Some(marked);
            }
            let (next, too_long) = self.take(codel, pull)?;
            packet = next;
            if !too_long {
                codel.phase = Phase::Waiting;
                return Some(packet);
            }
            codel.drop_next = codel.after(self.config, codel.drop_next);
        }
        Some(packet)
    }

    /// The first drop, at the rate at which the last time of dropping ended where that is not long ago.
    fn begin(
        &mut self,
        codel: &mut Codel,
        packet: Waiting<T>,
        pull: &mut impl FnMut() -> Option<(Waiting<T>, u64)>,
    ) -> Option<Waiting<T>> {
        let kept = self.signal(packet);
        let leaving = kept.or_else(|| self.take(codel, pull).map(|(packet, _)| packet));
        codel.phase = Phase::Dropping;
        let delta = codel.count.saturating_sub(codel.last_count);
        let memory = self.config.interval * u64::from(self.config.memory_intervals);
        let recent = self.now.since(codel.drop_next) < memory;
        codel.count = if delta > 1 && recent { delta } else { 1 };
        codel.drop_next = codel.after(self.config, self.now);
        codel.last_count = codel.count;
        leaving
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fifo;
    use super::super::testing::{Desk, Marking, number, vector, waiting};
    use super::*;
    use alloc::vec::Vec;

    const CONFIG: CodelConfig = CodelConfig::RFC8289;

    fn dequeue<L: LinkLog<u64>>(
        codel: &mut Codel,
        fifo: &mut Fifo<u64>,
        now: Instant,
        ecn: bool,
        verdicts: &mut Verdicts<'_, u64, L>,
    ) -> Option<Waiting<u64>> {
        dequeue_by(&CONFIG, codel, fifo, (now, ecn), verdicts)
    }

    fn dequeue_by<L: LinkLog<u64>>(
        config: &CodelConfig,
        codel: &mut Codel,
        fifo: &mut Fifo<u64>,
        (now, ecn): (Instant, bool),
        verdicts: &mut Verdicts<'_, u64, L>,
    ) -> Option<Waiting<u64>> {
        let mut pass = Pass { config, ecn, now, verdicts };
        pass.dequeue(codel, || fifo.pop().map(|packet| (packet, fifo.bytes())))
    }

    fn full_queue() -> Fifo<u64> {
        let mut fifo = Fifo::default();
        (0..400).for_each(|token| fifo.push(waiting(token, 1_500, Instant::ZERO)));
        fifo
    }

    #[test]
    fn codel_rfc8289_400_packets_served_every_millisecond() {
        let (mut codel, mut fifo, mut desk) = (Codel::new(), full_queue(), Desk::default());
        let mut drops = Vec::new();
        for ms in 1..=400 {
            let before = desk.dropped().len();
            dequeue(&mut codel, &mut fifo, Instant::from_millis(ms), false, &mut desk.verdicts());
            drops.extend(desk.dropped()[before..].iter().map(|&(token, _)| (ms, token)));
        }
        let expected = vector("codel_rfc8289_400pkts_at_t0_deq_every_1ms[t_ms,packet]");
        let expected: Vec<(u64, u64)> =
            expected.iter().map(|drop| (number(&drop[0]) as u64, number(&drop[1]) as u64)).collect();
        assert_eq!(drops, expected);
    }

    #[test]
    fn codel_control_law_has_its_drop_times() {
        let mut codel = Codel::new();
        let mut at = Instant::ZERO;
        let mut times = Vec::new();
        for count in 1..=11 {
            times.push(at.as_nanos() as f64 / 1e6);
            codel.count = count;
            at = codel.after(&CONFIG, at);
        }
        let expected = vector("codel_control_law_ms");
        assert_eq!(times.len(), expected.len());
        for (found, expected) in times.iter().zip(&expected) {
            assert!((found - number(expected)).abs() < 0.001, "{found} {expected}");
        }
    }

    #[test]
    fn marks_take_the_place_of_drops_one_for_one() {
        let (mut codel, mut fifo) = (Codel::new(), full_queue());
        let mut desk = Desk { log: Marking::default(), ..Desk::default() };
        let mut served = 0;
        for ms in 1..=400 {
            let at = Instant::from_millis(ms);
            served += u64::from(dequeue(&mut codel, &mut fifo, at, true, &mut desk.verdicts()).is_some());
        }
        // Nothing is lost, so each signal hits the packet that leaves at its time.
        assert_eq!(desk.log.marked, [104, 204, 275, 333, 383]);
        assert_eq!((served, desk.lost.len(), desk.counters.marked_packets), (400, 0, 5));
    }

    #[test]
    fn a_queue_of_one_packet_is_left_alone() {
        let (mut codel, mut desk) = (Codel::new(), Desk::default());
        for second in 0..10 {
            let mut fifo = Fifo::default();
            fifo.push(waiting(second, 1_500, Instant::from_secs(second)));
            let at = Instant::from_secs(second + 1);
            assert!(dequeue(&mut codel, &mut fifo, at, false, &mut desk.verdicts()).is_some());
        }
        assert!(desk.dropped().is_empty());
    }

    /// What a queue of 300 packets of 1,500 octets loses that is served every millisecond, and fills once more 200 ms after it ran dry.
    fn lost_by(config: &CodelConfig) -> usize {
        let (mut codel, mut fifo, mut desk) = (Codel::new(), Fifo::default(), Desk::default());
        for ms in 0..1_000 {
            let now = Instant::from_millis(ms);
            if ms % 500 == 0 {
                (0..300).for_each(|token| fifo.push(waiting(token, 1_500, now)));
            }
            dequeue_by(config, &mut codel, &mut fifo, (now, false), &mut desk.verdicts());
        }
        desk.dropped().len()
    }

    #[test]
    fn what_is_one_packet_and_what_is_remembered_can_be_set() {
        assert_eq!(lost_by(&CONFIG), 7);
        let huge = CodelConfig { max_packet_bytes: 450_000, ..CONFIG };
        assert_eq!(lost_by(&huge), 0, "all that waits is one packet");
        let forgetful = CodelConfig { memory_intervals: 0, ..CONFIG };
        assert_eq!(lost_by(&forgetful), 6, "the second queue is dropped from as the first was");
    }
}
