//! Trains: a few packets back to back, whose spacing on arrival shows a scheduler that divides the link among flows.
//!
//! Behind fair queueing (FQ-CoDel, RFC 8290; fq; cake) a flow sees its own queue alone, and half of a link shared with another
//! looks like a link of half the rate: no delay tells. What tells is the spacing within a train that finds the flow's own
//! queue empty. Deficit round robin serves the first packets of a flow that was away at once, by its new quantum; the others
//! take turns with those of the other flows. On a link of one's own, and behind a queue that all share, all packets of the
//! train are equally far apart. So the first gap is one packet's time, and the later ones are that times the number of
//! flows that are served. A token bucket after a pause passes the train whole; a policer has no queue.
//!
//! Arrivals are told by one-way delays where the peer's stamps are finer than a millisecond, and else by the arrival of
//! acknowledgements. A train of which a packet was lost, sent again, or acknowledged together with its first two says nothing.
//!
//! Source: of this project.
//!
//! *What it leaves out:* schedulers that divide by host or by bytes of bursts; links that deliver in batches (Wi-Fi), whose first gap is
//! zero, and peers that acknowledge every other packet: both are left undecided.
//! *How it was validated:* unit tests below; the battery (`queues/fq-codel-cubic` beside `queues/fq-codel`, `queues/token-bucket`).

use crate::{Feedback, PacketFact, Sent};
use cede_units::{Duration, Instant, Rate};

/// Later gaps over the first one from which on the link is divided, and up to which the ratio is believed: what is further
/// apart is no gap of one packet's time but a batch.
const DIVIDED: (f64, f64) = (1.6, 20.0);
/// Of the last four trains so many must agree.
const AGREEING: u32 = 3;
const REMEMBERED: u32 = 4;
/// Packets that leave within this of one another are back to back.
const BACK_TO_BACK: Duration = Duration::from_micros(100);

/// The train that is under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    first: u64,
    sent: u64,
    last_left: Instant,
    /// Arrivals of the first, the second and the newest packet, in nanoseconds on any scale.
    arrivals_ns: [i64; 3],
    arrived: u64,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Trains {
    length: u64,
    under_way: Option<UnderWay>,
    leaving: bool,
    /// What was under way when it began.
    before_bytes: u64,
    /// What the path takes to serve it, for which nothing follows it.
    hold: Duration,
    /// Verdicts of the last trains, the newest in the lowest bit.
    verdicts: u32,
    /// Stamps have been seen that are finer than a millisecond.
    fine_stamps: bool,
    /// What the scheduler gave in the last train that was divided.
    share: Option<Rate>,
}

impl Trains {
    pub(super) const fn new(length: usize) -> Self {
        Self {
            length: length as u64,
            under_way: None,
            leaving: false,
            before_bytes: 0,
            hold: Duration::ZERO,
            verdicts: 0,
            fine_stamps: false,
            share: None,
        }
    }

    /// The own share of the link, where it is divided.
    pub(super) fn share(&self) -> Option<Rate> {
        let recent = self.verdicts & ((1 << REMEMBERED) - 1);
        self.share.filter(|_| recent.count_ones() >= AGREEING)
    }

    /// A train is to leave: the packets from `next_number` on, behind so many octets that are under way. The path takes `hold` to
    /// serve it.
    pub(super) fn begin(&mut self, next_number: u64, in_flight_bytes: u64, hold: Duration) {
        (self.leaving, self.before_bytes, self.hold) = (true, in_flight_bytes, hold);
        self.under_way = Some(UnderWay {
            first: next_number,
            sent: 0,
            last_left: Instant::ZERO,
            arrivals_ns: [0; 3],
            arrived: 0,
        });
    }

    /// While a train is leaving, nothing may hold it up and nothing else may leave: the window for that, in octets. A packet more
    /// than it needs would be one too many for a buffer that just holds a train.
    pub(super) fn window(&self, mss: f64) -> Option<f64> {
        self.leaving.then_some(self.before_bytes as f64 + self.length as f64 * mss)
    }

    /// When a train that has left has been served: what was held back for it may go. Sooner, it would find a short buffer full.
    pub(super) fn served_at(&self) -> Option<Instant> {
        let whole = self.under_way.filter(|train| self.leaving && train.sent >= self.length)?;
        Some(whole.last_left + self.hold)
    }

    /// Nothing is held back any longer, but behind a train that is being served. One that is not whole by now says nothing.
    pub(super) fn release(&mut self, now: Instant) {
        if self.leaving && self.served_at().is_none_or(|at| now >= at) {
            self.leaving = false;
            self.under_way = self.under_way.filter(|train| train.sent >= self.length);
        }
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) {
        let Some(train) = &mut self.under_way else { return };
        if train.sent >= self.length {
            return;
        }
        let follows = !sent.retransmission && sent.number == train.first.saturating_add(train.sent);
        let back_to_back = train.sent == 0 || sent.now.since(train.last_left) <= BACK_TO_BACK;
        if follows && back_to_back {
            (train.sent, train.last_left) = (train.sent + 1, sent.now);
        } else {
            self.under_way = None;
        }
    }

    pub(super) fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.before_bytes = self.before_bytes.saturating_sub(feedback.acked_bytes);
        self.fine_stamps |= feedback.one_way_delay_ns.is_some_and(|ns| ns % 1_000_000 != 0);
        let Some(train) = self.under_way else { return };
        if !feedback.lost.is_empty() {
            self.under_way = None;
            return;
        }
        let Some(newest) = feedback.acked.last().filter(|packet| packet.number >= train.first) else {
            return;
        };
        self.note(train, newest, arrival_ns(feedback, newest, self.fine_stamps), feedback.acked.len() as u64);
    }

    fn note(&mut self, mut train: UnderWay, newest: &PacketFact, at_ns: i64, acked: u64) {
        let place = newest.number - train.first;
        train.arrived += acked;
        // In order, whole, and the first two singly.

        if newest.retransmitted || train.arrived != place + 1 || (place >= 1 && train.arrived < 2) {
            self.under_way = None;
            return;
        }
        if acked > 1 && place < acked + 1 {
            self.under_way = None;
            return;
        }
        train.arrivals_ns[place.min(2) as usize] = at_ns;
        self.under_way = Some(train);
        if place + 1 >= self.length {
            self.under_way = None;
            self.judge(train, place, newest.bytes);
        }
    }

    fn judge(&mut self, train: UnderWay, place: u64, bytes: u32) {
        let [first, second, last] = train.arrivals_ns;
        let (first_gap, later) = ((second - first) as f64, (last - second) as f64 / (place - 1) as f64);
        let ratio = later / first_gap.max(1.0);
        let divided = first_gap > 0.0 && (DIVIDED.0..=DIVIDED.1).contains(&ratio);
        self.verdicts = self.verdicts << 1 | u32::from(divided);
        if divided {
            self.share = Some(Rate::from_bytes_over(bytes.into(), Duration::from_nanos(later as u64)));
        }
    }
}

/// When the packet arrived, on a scale on which differences mean something.
fn arrival_ns(feedback: &Feedback<'_>, packet: &PacketFact, fine_stamps: bool) -> i64 {
    let nanos = |at: Instant| at.as_nanos().min(i64::MAX as u64 / 4) as i64;
    match feedback.one_way_delay_ns {
        Some(delay_ns) if fine_stamps => {
            nanos(packet.sent_at) + delay_ns.clamp(-(i64::MAX / 4), i64::MAX / 4)
        }
        _ => nanos(feedback.now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;

    /// A train whose packets arrive at these times in microseconds, each acknowledged by itself 20 ms later.
    fn run(trains: &mut Trains, first: u64, arrivals_us: &[u64]) {
        trains.begin(first, 0, Duration::ZERO);
        for place in 0..arrivals_us.len() as u64 {
            let now = Instant::from_millis(first);
            trains.on_sent(&Sent {
                now,
                number: first + place,
                bytes: 1500,
                in_flight_bytes: 0,
                retransmission: false,
            });
        }
        for (place, at_us) in arrivals_us.iter().enumerate() {
            let mut one = ack(first + place as u64, 1500);
            one.feedback.now = Instant::from_micros(first * 1000 + 20_000 + at_us);
            trains.on_feedback(&one.feedback());
        }
    }

    /// Eight packets of 600 us each; from the third on behind one of each of so many other flows.
    fn divided(others: u64) -> [u64; 8] {
        core::array::from_fn(|place| 600 * (place as u64 + others * (place as u64).saturating_sub(1)))
    }

    #[test]
    fn a_divided_link_shows_after_three_trains_and_is_over_after_two() {
        let mut trains = Trains::new(8);
        for round in 0..3 {
            assert_eq!(trains.share(), None);
            run(&mut trains, 1000 * round, &divided(1));
        }
        // 1500 octets in 1.2 ms.
        assert_eq!(trains.share(), Some(Rate::from_mbit(10)));
        run(&mut trains, 4000, &divided(0));
        assert!(trains.share().is_some());
        run(&mut trains, 5000, &divided(0));
        assert_eq!(trains.share(), None);
    }

    #[test]
    fn three_other_flows_leave_a_quarter() {
        let mut trains = Trains::new(8);
        (0..3).for_each(|round| run(&mut trains, 1000 * round, &divided(3)));
        assert_eq!(trains.share(), Some(Rate::from_mbit(5)));
    }

    #[test]
    fn links_of_ones_own_batches_and_lost_packets_say_nothing() {
        for arrivals in [divided(0), [0; 8], [0, 1, 9000, 9001, 9002, 9003, 9004, 9005]] {
            let mut trains = Trains::new(8);
            (0..8).for_each(|round| run(&mut trains, 1000 * round, &arrivals));
            assert_eq!(trains.share(), None, "{arrivals:?}");
        }
        let mut trains = Trains::new(8);
        for round in 0..8 {
            run(&mut trains, 1000 * round, &divided(1)[..4]);
            trains.on_feedback(&crate::testing::loss(1000 * round + 4, 1000 * round + 8).feedback());
        }
        assert_eq!(trains.share(), None);
    }

    #[test]
    fn packets_that_leave_apart_are_no_train() {
        let mut trains = Trains::new(4);
        trains.begin(0, 0, Duration::ZERO);
        for number in 0..2 {
            let now = Instant::from_millis(number);
            trains.on_sent(&Sent { now, number, bytes: 1500, in_flight_bytes: 0, retransmission: false });
        }
        trains.release(Instant::from_millis(2));
        assert!(trains.window(1500.0).is_none() && trains.served_at().is_none());
    }

    #[test]
    fn nothing_follows_a_train_until_it_has_been_served() {
        let mut trains = Trains::new(4);
        trains.begin(10, 1500, Duration::from_millis(5));
        let now = Instant::from_millis(10);
        for number in 10..14 {
            assert_eq!(trains.window(1500.0), Some(5.0 * 1500.0));
            trains.on_sent(&Sent { now, number, bytes: 1500, in_flight_bytes: 0, retransmission: false });
        }
        // What was under way before it arrives, and makes no room for a fifth.
        trains.on_feedback(&ack(9, 1500).feedback());
        trains.release(Instant::from_millis(14));
        assert_eq!(trains.window(1500.0), Some(4.0 * 1500.0));
        assert_eq!(trains.served_at(), Some(Instant::from_millis(15)));
        trains.release(Instant::from_millis(15));
        assert_eq!(trains.window(1500.0), None);
    }
}
