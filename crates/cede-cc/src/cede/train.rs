//! Trains: a few packets back to back, whose spacing on arrival shows a scheduler that divides the link among flows.
//!
//! Behind fair queueing (FQ-CoDel, RFC 8290; fq; cake) a flow sees its own queue alone, and half of a link shared with another
//! looks like a link of half the rate: no delay tells. What tells is the spacing within a train that finds the flow's own
//! queue empty. Deficit round robin serves the first packets of a flow that was away at once, by its new quantum; the others
//! take turns with those of the other flows. On a link of one's own, and behind a queue that all share, all packets of the
//! train are equally far apart. So the first gap is one packet's time, and the later ones are that times the number of
//! flows that are served. A token bucket after a pause passes the train whole; a policer has no queue.
//!
//! That holds as long as each of the others has a packet waiting at its every turn, as a download has. Flows of our own kind,
//! each content with a part of its share, leave turns unused: by the mean gap four of them took one another for a download, and
//! left a quarter of the link to nobody. So in the second half of a train, which is served in turns for certain, all gaps but
//! one must be long. (A scheduler that counts octets lets a flow send two packets at one turn now and then.)
//!
//! Arrivals are told by one-way delays where the peer's stamps are finer than a millisecond, and else by the arrival of
//! acknowledgements. A train of which a packet was lost, sent again, or acknowledged otherwise than expected says nothing.
//!
//! A peer that answers pairs (every TCP; QUIC by default) tells of each second packet alone. If those are the second, the fourth
//! and so on, all gaps are alike behind any scheduler. So three packets go ahead, of which the third waits for another, and the train
//! follows when they have been served but the peer's timer has not run: the first, third, fifth ... packets of the train are told of. With n
//! other flows they are (n + 2), then 2 (n + 1), 2 (n + 1) ... packets' times apart: the first gap is three quarters of the others, down to a
//! half; they must be alike. A single packet would do, but for senders whose timeout is hardly longer than a round trip.
//!
//! Source: of this project.
//!
//! *What it leaves out:* schedulers that divide by host or by bytes of bursts; links that deliver in batches (Wi-Fi), whose first gap is
//! zero; peers that answer more than two packets at once: undecided.
//! *How it was validated:* unit tests below; the battery (`queues/fq-codel-cubic` beside `queues/fq-codel`, `queues/token-bucket`).

use crate::{Feedback, PacketFact, Sent};
use cede_units::{Duration, Instant, Rate};

/// Later gaps over the first one from which on the link is divided, and up to which the ratio is believed: what is further
/// apart is no gap of one packet's time but a batch.
const DIVIDED: (f64, f64) = (1.6, 20.0);
/// The same where pairs are told of: between one and 4/3, and a little more than the 2 of very many flows.
const DIVIDED_PAIRS: (f64, f64) = (1.17, 2.2);
/// Later gaps of pairs differ by this part at most.
const ALIKE: f64 = 0.1;
/// So many packets go ahead of pairs, an odd number.
const AHEAD: u64 = 3;
/// They are ahead by what the path takes to serve so many, within these bounds: a part of a round trip, and less than peers hold an
/// acknowledgement back (Linux: 40 ms; QUIC: 25 ms).
const LEAD_PACKETS: f64 = 5.0;
const LEAD: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(15));
const LEAD_RTTS: f64 = 0.5;
/// So many gaps of the second half of a train may be no longer than one packet's time.
const UNUSED_TURNS: u32 = 1;
/// Of the last four trains so many must agree.
const AGREEING: u32 = 3;
const REMEMBERED: u32 = 4;
/// Packets that leave within this of one another are back to back.
const BACK_TO_BACK: Duration = Duration::from_micros(100);

/// The train that is under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    first: u64,
    length: u64,
    /// Packets that one acknowledgement is expected to tell of.
    step: u64,
    sent: u64,
    last_left: Instant,
    /// Arrivals of the first packet, of the next that is told of, and of the newest, in nanoseconds on any scale.
    arrivals_ns: [i64; 3],
    /// The smallest and the largest gap behind those two.
    later_ns: (i64, i64),
    /// Gaps of its second half that are those of an undivided link.
    unused_turns: u32,
    /// The place of the packet that is to be told of next.
    expected: u64,
}

/// What leaves now.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    Nothing,
    /// What goes ahead: so many of it have left, the last one then.
    Lead {
        sent: u64,
        last_left: Instant,
    },
    Train,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Trains {
    length: u64,
    under_way: Option<UnderWay>,
    leaving: Leaving,
    /// What was under way when it began.
    before_bytes: u64,
    /// What the path takes to serve it, for which nothing follows it.
    hold: Duration,
    /// How long what goes ahead is ahead.
    lead: Duration,
    /// Verdicts of the last trains, the newest in the lowest bit.
    verdicts: u32,
    /// Stamps have been seen that are finer than a millisecond.
    fine_stamps: bool,
    /// What the scheduler gave in the last train that was divided.
    share: Option<Rate>,
}

impl UnderWay {
    fn new(first: u64, length: u64, step: u64) -> Self {
        // Of pairs the last one is to be told of, and short buffers hold no longer trains.
        let length = if step == 1 { length } else { (length - 1) | 1 };
        Self {
            first,
            length,
            step,
            sent: 0,
            last_left: Instant::ZERO,
            arrivals_ns: [0; 3],
            later_ns: (i64::MAX, 0),
            unused_turns: 0,
            expected: 0,
        }
    }

    fn has_left(&self) -> bool {
        self.sent >= self.length
    }

    /// Notes when the packet at `place` arrived, which an acknowledgement of so many told. None where it says nothing any longer.
    fn note(mut self, place: u64, at_ns: i64, acked: u64) -> Option<Self> {
        let told = self.expected == place && acked == self.step;
        // Behind the first two that are told of, several may be told of at once; of pairs nothing else would be believed.
        let late = self.step == 1 && self.expected > 1 && place + 1 == self.expected + acked;
        if !told && !late {
            return None;
        }
        if place > self.step {
            let gap_ns = at_ns - self.arrivals_ns[2];
            self.later_ns = (self.later_ns.0.min(gap_ns), self.later_ns.1.max(gap_ns));
            let unused = place >= self.length / 2 && (gap_ns as f64) < DIVIDED.0 * self.first_gap_ns();
            self.unused_turns += u32::from(unused);
        }
        self.arrivals_ns[(place / self.step).min(2) as usize] = at_ns;
        if place == self.step {
            self.arrivals_ns[2] = at_ns;
        }
        self.expected = place + self.step;
        Some(self)
    }

    fn first_gap_ns(&self) -> f64 {
        (self.arrivals_ns[1] - self.arrivals_ns[0]) as f64
    }

    /// The time between packets from the third on, in nanoseconds, where it is longer than the first gap as a scheduler makes it.
    fn divided_ns(&self) -> Option<f64> {
        let [_, next, last] = self.arrivals_ns;
        let told = (self.length - 1) / self.step;
        let (first_gap, later) = (self.first_gap_ns(), (last - next) as f64 / (told - 1) as f64);
        let pairs = self.step > 1;
        let (least, most) = if pairs { DIVIDED_PAIRS } else { DIVIDED };
        let in_turns = if pairs {
            (self.later_ns.1 - self.later_ns.0) as f64 <= ALIKE * later
        } else {
            self.unused_turns <= UNUSED_TURNS
        };
        let divided = first_gap > 0.0 && in_turns && (least..=most).contains(&(later / first_gap));
        divided.then_some(later / self.step as f64)
    }
}

impl Trains {
    pub(super) const fn new(length: usize) -> Self {
        Self {
            length: length as u64,
            under_way: None,
            leaving: Leaving::Nothing,
            before_bytes: 0,
            hold: Duration::ZERO,
            lead: Duration::ZERO,
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
        (self.leaving, self.before_bytes, self.hold) = (Leaving::Train, in_flight_bytes, hold);
        self.under_way = Some(UnderWay::new(next_number, self.length, 1));
    }

    /// The same for a peer that answers pairs: some packets go ahead.
    pub(super) fn begin_pairs(
        &mut self,
        next_number: u64,
        in_flight_bytes: u64,
        hold: Duration,
        rtt: Duration,
    ) {
        (self.before_bytes, self.hold) = (in_flight_bytes, hold);
        self.leaving = Leaving::Lead { sent: 0, last_left: Instant::ZERO };
        let served = hold.mul_f64(LEAD_PACKETS / self.length as f64);
        self.lead = served.clamp(LEAD.0, LEAD.1).min(rtt.mul_f64(LEAD_RTTS));
        self.under_way = Some(UnderWay::new(next_number.saturating_add(AHEAD), self.length, 2));
    }

    fn give_up(&mut self) {
        (self.under_way, self.leaving) = (None, Leaving::Nothing);
    }

    /// While a train is leaving, nothing may hold it up and nothing else may leave: the window for that, in octets. A packet more
    /// than it needs would be one too many for a buffer that just holds a train.
    pub(super) fn window(&self, mss: f64) -> Option<f64> {
        let packets = match self.leaving {
            Leaving::Nothing => return None,
            Leaving::Lead { sent, .. } => AHEAD - sent,
            Leaving::Train => self.under_way.map_or(self.length, |train| train.length),
        };
        Some(self.before_bytes as f64 + packets as f64 * mss)
    }

    /// When what is awaited has happened: what goes ahead has been served, or the train, so that what was held back for it may go. Sooner, it
    /// would find a short buffer full.
    pub(super) fn timer(&self) -> Option<Instant> {
        match self.leaving {
            Leaving::Lead { sent, last_left } => (sent == AHEAD).then(|| last_left + self.lead),
            Leaving::Train => Some(self.under_way.filter(UnderWay::has_left)?.last_left + self.hold),
            Leaving::Nothing => None,
        }
    }

    /// Nothing is held back any longer, but behind a train that is being served. One that is not whole by now says nothing.
    pub(super) fn release(&mut self, now: Instant) {
        if self.timer().is_some_and(|at| now < at) {
            return;
        }
        match self.leaving {
            Leaving::Lead { sent: AHEAD, .. } => self.leaving = Leaving::Train,
            Leaving::Lead { .. } => self.give_up(),
            Leaving::Train => {
                self.leaving = Leaving::Nothing;
                self.under_way = self.under_way.filter(UnderWay::has_left);
            }
            Leaving::Nothing => {}
        }
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) {
        let Some(train) = &mut self.under_way else { return };
        if train.has_left() {
            return;
        }
        if let Leaving::Lead { sent: ahead, last_left } = &mut self.leaving {
            let number = train.first - AHEAD + *ahead;
            if sent.retransmission || *ahead == AHEAD || sent.number != number {
                self.give_up();
            } else {
                (*ahead, *last_left) = (*ahead + 1, sent.now);
                self.before_bytes = self.before_bytes.saturating_add(sent.bytes.into());
            }
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
        // The last that went ahead was to wait for the first of the train; else the other packets are told of.
        let ahead = matches!(self.leaving, Leaving::Lead { .. });
        if ahead && feedback.acked.iter().any(|packet| packet.number.saturating_add(1) == train.first) {
            self.give_up();
            return;
        }
        let Some(newest) = feedback.acked.last().filter(|packet| packet.number >= train.first) else {
            return;
        };
        let (place, acked) = (newest.number - train.first, feedback.acked.len() as u64);
        let at_ns = arrival_ns(feedback, newest, self.fine_stamps);
        self.under_way = train.note(place, at_ns, acked).filter(|_| !newest.retransmitted);
        if let Some(train) = self.under_way.take_if(|train| train.expected >= train.length) {
            self.judge(&train, newest.bytes);
        }
    }

    /// When the newest packet arrived that this acknowledges, on a scale on which differences mean something.
    pub(super) fn arrived_ns(&self, feedback: &Feedback<'_>) -> Option<i64> {
        let newest = feedback.acked.last().filter(|packet| !packet.retransmitted)?;
        Some(arrival_ns(feedback, newest, self.fine_stamps))
    }

    fn judge(&mut self, train: &UnderWay, bytes: u32) {
        let divided_ns = train.divided_ns();
        self.verdicts = self.verdicts << 1 | u32::from(divided_ns.is_some());
        if let Some(divided_ns) = divided_ns {
            self.share = Some(Rate::from_bytes_over(bytes.into(), Duration::from_nanos(divided_ns as u64)));
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
impl Trains {
    /// As after trains that said so.
    pub(super) fn of_share(share: Rate) -> Self {
        Self { verdicts: u32::MAX, share: Some(share), ..Self::new(8) }
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

    fn leave(trains: &mut Trains, now: Instant, number: u64) {
        trains.on_sent(&Sent { now, number, bytes: 1500, in_flight_bytes: 0, retransmission: false });
    }

    /// The same to a peer that answers pairs, behind packets that go ahead; the first acknowledgement covers `answered` of all.
    fn run_pairs(trains: &mut Trains, first: u64, arrivals_us: &[u64], answered: u64) {
        let began = Instant::from_millis(first);
        trains.begin_pairs(first, 0, Duration::ZERO, Duration::from_millis(40));
        assert_eq!(trains.window(1500.0), Some(3.0 * 1500.0));
        (0..3).for_each(|place| leave(trains, began, first + place));
        assert_eq!(trains.window(1500.0), Some(3.0 * 1500.0), "nothing follows at once");
        let now = began + Duration::from_millis(2);
        assert_eq!(trains.timer(), Some(now));
        trains.release(now);
        assert_eq!(trains.window(1500.0), Some(10.0 * 1500.0));
        (3..10).for_each(|place| leave(trains, now, first + place));
        for told in (answered..=10).step_by(2) {
            let mut pair = crate::testing::ack_of_two(first + told - 2, 1500);
            let arrived_us = arrivals_us.get((told - 4) as usize).copied().unwrap_or_default();
            pair.feedback.now = now + Duration::from_micros(20_000 + arrived_us);
            trains.on_feedback(&pair.feedback());
        }
        trains.release(now + Duration::from_secs(1));
    }

    /// Eight packets of 600 us each; from the third on behind one of each of so many other flows.
    fn divided<const PACKETS: usize>(others: u64) -> [u64; PACKETS] {
        core::array::from_fn(|place| 600 * (place as u64 + others * (place as u64).saturating_sub(1)))
    }

    #[test]
    fn a_divided_link_shows_after_three_trains_and_is_over_after_two() {
        let mut trains = Trains::new(8);
        for round in 0..3 {
            assert_eq!(trains.share(), None);
            run(&mut trains, 1000 * round, &divided::<8>(1));
        }
        // 1500 octets in 1.2 ms.
        assert_eq!(trains.share(), Some(Rate::from_mbit(10)));
        run(&mut trains, 4000, &divided::<8>(0));
        assert!(trains.share().is_some());
        run(&mut trains, 5000, &divided::<8>(0));
        assert_eq!(trains.share(), None);
    }

    #[test]
    fn three_other_flows_leave_a_quarter() {
        let mut trains = Trains::new(8);
        (0..3).for_each(|round| run(&mut trains, 1000 * round, &divided::<8>(3)));
        assert_eq!(trains.share(), Some(Rate::from_mbit(5)));
    }

    #[test]
    fn links_of_ones_own_batches_and_lost_packets_say_nothing() {
        for arrivals in [divided::<8>(0), [0; 8], [0, 1, 9000, 9001, 9002, 9003, 9004, 9005]] {
            let mut trains = Trains::new(8);
            (0..8).for_each(|round| run(&mut trains, 1000 * round, &arrivals));
            assert_eq!(trains.share(), None, "{arrivals:?}");
        }
        let mut trains = Trains::new(8);
        for round in 0..8 {
            run(&mut trains, 1000 * round, &divided::<8>(1)[..4]);
            trains.on_feedback(&crate::testing::loss(1000 * round + 4, 1000 * round + 8).feedback());
        }
        assert_eq!(trains.share(), None);
    }

    #[test]
    fn others_that_leave_turns_unused_are_no_download() {
        let verdict = |gaps: [u64; 7]| {
            let mut at_us = 0;
            let arrivals = gaps.map(|gap| {
                at_us += 600 * gap;
                at_us
            });
            let mut trains = Trains::new(8);
            let arrivals: alloc::vec::Vec<u64> = core::iter::once(0).chain(arrivals).collect();
            (0..4).for_each(|round| run(&mut trains, 1000 * round, &arrivals));
            trains.share().is_some()
        };
        // As seen: CUBIC, whose packets come by two now and then; three others of ours.
        assert!(verdict([1, 1, 1, 4, 2, 2, 2]) && verdict([1, 1, 3, 3, 1, 3, 2]));
        assert!(!verdict([1, 2, 3, 3, 1, 4, 1]) && !verdict([1, 1, 6, 1, 1, 4, 3]));
    }

    #[test]
    fn pairs_tell_by_their_first_gap() {
        for (others, share) in [(1, 10), (3, 5)] {
            let mut trains = Trains::new(8);
            (0..3).for_each(|round| run_pairs(&mut trains, 1000 * round, &divided::<7>(others), 4));
            assert_eq!(trains.share(), Some(Rate::from_mbit(share)), "{others} other flows");
        }
        let uneven = [0, 600, 1800, 3000, 4200, 5400, 8000];
        for (arrivals, what) in [
            (divided::<7>(0), "a link of one's own"),
            ([0; 7], "a batch"),
            (uneven, "a flow that came between"),
        ] {
            let mut trains = Trains::new(8);
            (0..8).for_each(|round| run_pairs(&mut trains, 1000 * round, &arrivals, 4));
            assert_eq!(trains.share(), None, "{what}");
        }
        let mut trains = Trains::new(8);
        (0..8).for_each(|round| run_pairs(&mut trains, 1000 * round, &divided::<7>(1), 5));
        assert_eq!(trains.share(), None, "the other pairs");
    }

    #[test]
    fn what_goes_ahead_and_is_answered_by_itself_begins_nothing() {
        let mut trains = Trains::new(8);
        trains.begin_pairs(0, 0, Duration::ZERO, Duration::from_millis(40));
        (0..3).for_each(|number| leave(&mut trains, Instant::from_millis(1), number));
        trains.on_feedback(&ack(2, 1500).feedback());
        assert!(trains.window(1500.0).is_none() && trains.timer().is_none());
        trains.begin_pairs(3, 0, Duration::ZERO, Duration::from_millis(40));
        trains.release(Instant::from_millis(50));
        assert!(trains.window(1500.0).is_none(), "nothing was there to go ahead");
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
        assert!(trains.window(1500.0).is_none() && trains.timer().is_none());
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
        assert_eq!(trains.timer(), Some(Instant::from_millis(15)));
        trains.release(Instant::from_millis(15));
        assert_eq!(trains.window(1500.0), None);
    }
}
