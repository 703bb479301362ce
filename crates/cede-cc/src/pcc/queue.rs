//! The monitor intervals that are pending, and which interval an acknowledgement belongs to.
//!
//! Source: PCC-Uspace (30c2cfe), `pcc_monitor_interval_queue.cpp` and `PccSender::CreateNewInterval`. Each RTT sample waits for
//! the next acknowledgement, since only then the gap after it is known: gaps that differ by far more than usual mean
//! acknowledgements that were held up and released together, whose RTTs say little.
//!
//! Three additions. Acknowledgements of one instant count as one. A burst also ends at RTTs that do not differ: where a path has
//! no noise at all, as in a simulator, that code waits for a rise for ever. A packet that the transport forgets, as uTP
//! a path-MTU probe that was too large, was not sent as far as its interval is concerned; one of which nothing has been heard for four
//! round trips and two seconds after its interval ended is lost.
//!
//! *What it leaves out:* the rule that holds sending back while more than four intervals that do not count are queued: at most
//! two can be, one before the first RTT sample and one behind those that count.
//! *How it was validated:* unit tests below; by the controllers.

use super::interval::{Interval, Needs, Purpose};
use crate::PacketFact;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// Of the newest gap ratio in the usual one.
const AVERAGE_WEIGHT: f64 = 0.1;
/// Acknowledgements of one instant are gathered up to this many packets.
const MAX_GATHERED: usize = 1024;
/// When a silent packet is given up.
const SILENCE_ROUND_TRIPS: u64 = 4;
const SILENCE: Duration = Duration::from_secs(2);

/// What an acknowledgement says to the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    pub now: Instant,
    pub acked: &'a [PacketFact],
    pub lost: &'a [PacketFact],
    /// The newest RTT sample, this one's where it has one.
    pub rtt: Duration,
    /// Their average.
    pub average_rtt: Duration,
    /// Since the acknowledgement before; none where this one has no RTT sample.
    pub gap: Option<Duration>,
}

/// What has become of the batch of intervals that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Batch {
    /// Something is still unknown.
    Pending,
    /// All is known.
    Available,
    /// It cannot be evaluated.
    Invalid,
}

/// Acknowledged packets (serial, octets) whose sample waits for the next acknowledgement.
#[derive(Clone, Debug, Default)]
struct Waiting {
    packets: Vec<(u32, u32)>,
    at: Instant,
    rtt: Duration,
    average_rtt: Duration,
    gap: Duration,
}

/// Whether samples can be relied upon.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Reliability {
    /// A gap ratio this many times the usual one begins a burst.
    burst_ratio: f64,
    in_burst: bool,
    usual_ratio: Option<f64>,
}

impl Reliability {
    const fn new(burst_ratio: f64) -> Self {
        Self { burst_ratio, in_burst: false, usual_ratio: None }
    }

    /// Judges one packet of `waiting` by the acknowledgement that followed.
    fn judge(&mut self, waiting: &Waiting, gap: Duration, next_rtt: Duration) -> bool {
        if waiting.gap.is_zero() {
            return false;
        }
        let (before, after) = (waiting.gap.as_nanos() as f64, gap.as_nanos() as f64);
        let ratio = if before < after { after / before } else { before / after.max(1.0) };
        let usual = self.usual_ratio.unwrap_or(ratio);
        self.usual_ratio = Some(usual * (1.0 - AVERAGE_WEIGHT) + ratio * AVERAGE_WEIGHT);
        if ratio > self.burst_ratio * usual {
            self.in_burst = true;
            return false;
        }
        let was_in_burst = self.in_burst;
        self.in_burst &= !(next_rtt >= waiting.rtt && waiting.rtt <= waiting.average_rtt);
        !was_in_burst
    }
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    needs: Needs,
    intervals: VecDeque<Interval>,
    waiting: Waiting,
    reliability: Reliability,
    /// The fate of packets up to this one has been settled by a timeout.
    settled: u32,
}

impl Queue {
    /// Gap ratios that are `burst_ratio` times the usual one begin a burst.
    pub(super) fn new(needs: Needs, burst_ratio: f64) -> Self {
        Self {
            needs,
            intervals: VecDeque::new(),
            waiting: Waiting::default(),
            reliability: Reliability::new(burst_ratio),
            settled: 0,
        }
    }

    pub(super) fn newest(&self) -> Option<&Interval> {
        self.intervals.back()
    }

    /// The intervals that count, in order.
    pub(super) fn useful(&self) -> impl Iterator<Item = &Interval> {
        self.intervals.iter().filter(|interval| interval.purpose.useful)
    }

    /// Whether the packet that leaves now is to begin an interval.
    pub(super) fn wants_interval(&mut self, now: Instant, has_rtt: bool) -> bool {
        let none_counts = self.useful().next().is_none();
        let Some(newest) = self.intervals.back_mut() else { return true };
        if !has_rtt {
            return false;
        }
        if none_counts {
            return true;
        }
        if !newest.purpose.useful || !newest.has_enough_samples(&self.needs) || !newest.has_lasted(now) {
            return false;
        }
        if newest.is_reliable(&self.needs) || newest.extended {
            return true;
        }
        newest.extended = true;
        newest.length = newest.length * 2;
        false
    }

    /// Opens an interval that begins with the packet `serial`.
    pub(super) fn open(&mut self, rate: f64, purpose: Purpose, length: Duration, serial: u32, now: Instant) {
        self.intervals.push_back(Interval::new(rate, purpose, length, serial, now));
    }

    pub(super) fn on_sent(&mut self, serial: u32, bytes: u32, now: Instant) {
        if let Some(newest) = self.intervals.back_mut() {
            newest.on_sent(serial, bytes, now);
        }
    }

    /// Books losses, and acknowledgements by one event late.
    pub(super) fn on_event(&mut self, event: &Event<'_>) -> Batch {
        if self.useful().next().is_none() {
            return Batch::Pending;
        }
        let same_instant = event.now == self.waiting.at && self.waiting.packets.len() < MAX_GATHERED;
        for packet in event.lost {
            self.on_packet(packet.tag, |interval| interval.lose(packet.bytes));
        }
        match event.gap {
            Some(gap) if !same_instant => self.book_waiting(gap, event.rtt),
            _ => {}
        }
        match event.gap {
            Some(gap) => self.wait(event, gap, same_instant),
            // Without an RTT there is nothing to wait for.
            None => {
                for packet in event.acked {
                    self.on_packet(packet.tag, |interval| interval.acknowledge(packet.bytes));
                }
            }
        }
        self.give_up_silent(event);
        self.batch()
    }

    fn on_packet(&mut self, serial: u32, act: impl FnOnce(&mut Interval)) {
        // Half the space of serial numbers lies behind.
        if serial.wrapping_sub(self.settled) as i32 <= 0 {
            return;
        }
        let found = self.intervals.iter_mut().find(|interval| interval.contains(serial));
        if let Some(interval) = found.filter(|interval| interval.purpose.useful) {
            act(interval);
        }
    }

    /// Nothing more will be told of a packet that has left.
    pub(super) fn forget(&mut self, serial: u32, bytes: u32) {
        self.on_packet(serial, |interval| interval.forget(bytes));
    }

    fn book_waiting(&mut self, gap: Duration, next_rtt: Duration) {
        let mut waiting = core::mem::take(&mut self.waiting);
        let mut reliability = self.reliability;
        for &(serial, bytes) in &waiting.packets {
            self.on_packet(serial, |interval| {
                let is_reliable = reliability.judge(&waiting, gap, next_rtt);
                interval.sample(serial, bytes, waiting.rtt, is_reliable);
            });
        }
        self.reliability = reliability;
        waiting.packets.clear();
        self.waiting = waiting;
    }

    fn wait(&mut self, event: &Event<'_>, gap: Duration, same_instant: bool) {
        let waiting = &mut self.waiting;
        waiting.packets.extend(event.acked.iter().map(|packet| (packet.tag, packet.bytes)));
        (waiting.rtt, waiting.average_rtt) = (event.rtt, event.average_rtt);
        if !same_instant {
            (waiting.at, waiting.gap) = (event.now, gap);
        }
    }

    /// Of the newest interval more is to come.
    fn give_up_silent(&mut self, event: &Event<'_>) {
        let patience = event.average_rtt * SILENCE_ROUND_TRIPS + SILENCE;
        let ended = self.intervals.len().saturating_sub(1);
        for interval in self.intervals.iter_mut().take(ended) {
            if event.now.since(interval.last_at()) > patience {
                interval.give_up();
            }
        }
    }

    /// A loss event begins.
    pub(super) fn begin_event(&mut self) {
        self.intervals.iter_mut().for_each(Interval::begin_event);
    }

    /// The last loss event was none.
    pub(super) fn absolve(&mut self) {
        self.intervals.iter_mut().for_each(Interval::absolve);
    }

    /// A timeout: whatever was under way up to the packet `serial` is lost.
    pub(super) fn settle(&mut self, serial: u32) -> Batch {
        if self.useful().next().is_none() {
            return Batch::Pending;
        }
        let packets = core::mem::take(&mut self.waiting.packets);
        for &(serial, bytes) in &packets {
            self.on_packet(serial, |interval| interval.acknowledge(bytes));
        }
        self.waiting = Waiting { packets, ..Waiting::default() };
        self.waiting.packets.clear();
        self.settled = serial;
        self.intervals.iter_mut().for_each(Interval::time_out);
        self.batch()
    }

    fn batch(&self) -> Batch {
        let available = |interval: &&Interval| interval.is_available(&self.needs);
        if self.useful().filter(available).any(Interval::is_invalid) {
            Batch::Invalid
        } else if self.useful().all(|interval| interval.is_available(&self.needs)) {
            Batch::Available
        } else {
            Batch::Pending
        }
    }

    /// Removes all intervals up to the last that counts.
    pub(super) fn remove_batch(&mut self) {
        if let Some(last) = self.intervals.iter().rposition(|interval| interval.purpose.useful) {
            self.intervals.drain(..=last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Whether the samples of acknowledgements with these (gap, RTT) are reliable; the last one's is not known yet.
    fn reliable(acks: &[(u64, u64)]) -> Vec<bool> {
        let mut reliability = Reliability::new(50.0);
        let mut average = acks[0].1;
        let mut judge = |pair: &[(u64, u64)]| {
            average = (7 * average + pair[0].1) / 8;
            let waiting = Waiting {
                gap: ms(pair[0].0),
                rtt: ms(pair[0].1),
                average_rtt: ms(average),
                ..Waiting::default()
            };
            reliability.judge(&waiting, ms(pair[1].0), ms(pair[1].1))
        };
        acks.windows(2).map(&mut judge).collect()
    }

    #[test]
    fn the_first_sample_and_those_of_a_burst_are_unreliable() {
        let steady = [(0, 50), (10, 50), (10, 50), (10, 50)];
        assert_eq!(reliable(&steady), [false, true, true]);
        // A gap of a second, and acknowledgements that it held up: the RTT falls until the first that was not.
        let burst =
            [(10, 50), (10, 50), (1000, 1050), (10, 900), (10, 400), (10, 50), (10, 60), (10, 55), (10, 55)];
        assert_eq!(reliable(&burst), [true, false, false, false, false, false, true, true]);
    }

    #[test]
    fn a_burst_ends_where_rtts_stand_still() {
        let burst = [(10, 50), (10, 50), (1000, 50), (10, 50), (10, 50), (10, 50)];
        assert_eq!(reliable(&burst), [true, false, false, true, true]);
    }

    /// An interval of ten packets, one every 10 ms; and what is told of one of them `n` times 10 ms after the first left.
    fn ten_packets() -> Queue {
        let mut queue = Queue::new(Needs { samples: 4, reliable_share: 0.8 }, 50.0);
        let purpose = Purpose { useful: true, starting: false };
        queue.open(1e6, purpose, ms(50), 1, at(0));
        (0..10).for_each(|n| queue.on_sent(1 + n, 1500, at(u64::from(n))));
        queue
    }

    fn at(n: u64) -> Instant {
        Instant::from_millis(1000 + 10 * n)
    }

    fn hear(queue: &mut Queue, n: u64, tag: u32) -> Batch {
        let mut one = ack(n, 1500).feedback().acked[0];
        one.tag = tag;
        queue.on_event(&Event {
            now: at(n),
            acked: &[one],
            lost: &[],
            rtt: ms(50),
            average_rtt: ms(50),
            gap: Some(ms(10)),
        })
    }

    #[test]
    fn a_batch_waits_for_the_fate_of_every_packet() {
        let mut queue = ten_packets();
        assert!((1..=9).all(|tag| hear(&mut queue, 5 + u64::from(tag), tag) == Batch::Pending));
        let mut late = queue.clone();
        // The last packet's sample waits for one more acknowledgement; or a timeout settles it.
        assert_eq!(hear(&mut queue, 20, 10), Batch::Pending);
        assert_eq!(hear(&mut queue, 21, 99), Batch::Available);
        assert_eq!(late.settle(10), Batch::Available);
        late.remove_batch();
        assert!(late.newest().is_none());
    }

    #[test]
    fn a_forgotten_packet_is_not_waited_for_and_not_lost() {
        let mut queue = ten_packets();
        assert!((1..=10).filter(|&tag| tag != 4).all(|tag| {
            let n = 5 + u64::from(tag);
            hear(&mut queue, n, tag) == Batch::Pending
        }));
        assert_eq!(hear(&mut queue.clone(), 16, 99), Batch::Pending);
        queue.forget(4, 1500);
        assert_eq!(hear(&mut queue, 16, 99), Batch::Available);
        let loss = queue.useful().map(|interval| interval.statistics(1500.0, true).loss);
        assert_eq!(loss.collect::<Vec<_>>(), [0.0]);
    }
}
