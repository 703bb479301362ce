//! The queue as two clocks and one see it, and the base delay below it.
//!
//! A queue on the way of the data shows in the one-way delay and in the RTT. What else moves only one of them does not
//! count: a queue on the way back, or a peer that waits before it acknowledges, raises the RTT alone; a clock that gains,
//! or is set forward, raises the one-way delay alone. So the queue is the smaller of what either has above its base.
//!
//! A base is the smallest sample of the last [`EPOCHS`] epochs; an epoch ends with each slowdown, so that minutes beside
//! somebody else's queue, in which there are no slowdowns, do not age it. A clock that loses lowers the one-way base with
//! each slowdown. One that gains is followed where a slowdown shows more one-way queue than RTT queue.
//!
//! **A route that becomes longer** looks like a queue of somebody else. Two things tell them apart, and both need the
//! flow to stand still at its smallest window: a queue that others fill moves (CUBIC's and Reno's saw-teeth, BBR's probes),
//! a route does not; and a queue ends. So a delay that has stood still for [`Route::time`] becomes the base *on trial*; a sample
//! that the old base would explain as well refutes it: that one is back, and the next trial must wait twice as long. A sample in
//! between lowers the base on trial: a receiver's timer for single acknowledgements runs at the smallest window and not at a larger one,
//! and the route is longer all the same. It counts against the next trial, which waits twice as long too. After a minute without
//! any the trial is over.
//!
//! Source: of this project; queues by two delays after RFC 6817 (one way) and LEDBAT++ (round trip).
//!
//! *What it leaves out:* drift of two clocks while the way back is congested as well.
//! *How it was validated:* unit tests below; the battery (`path`, `clock`, `feedback`).

use crate::Feedback;
use crate::instruments::Signal;
use cede_units::{Duration, Instant};

/// Epochs over which a base is the minimum: at the usual spacing of slowdowns about half a minute on a short path.
const EPOCHS: usize = 16;
/// Raw samples are clamped to this, so that no sum of two overflows.
const MAX_RAW_NS: i64 = i64::MAX / 8;
/// The part of its time that a clock may gain unseen between two slowdowns.
const CLOCK_TOLERANCE_NS: i64 = 1_000_000;
/// A delay stands still where the minima of its parts are within this of one another, or within a thirty-second of it.
const STILL_NS: i64 = 2_000_000;
/// Parts of the time for which a delay must stand still.
const PARTS: u32 = 8;
/// A trial that has not been refuted for so long has been right.
const TRIAL: Duration = Duration::from_secs(60);
/// The time before a trial is doubled so often at most.
const MAX_DOUBLINGS: u32 = 6;

/// Which delay steers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Steer {
    Both,
    One(Signal),
}

impl Steer {
    pub(super) fn of(word: &str) -> Self {
        match word {
            "owd" => Self::One(Signal::OneWay),
            "rtt" => Self::One(Signal::RoundTrip),
            _ => Self::Both,
        }
    }
}

/// The smallest sample of the last epochs.
#[derive(Clone, Debug)]
struct Base {
    epochs: [Option<i64>; EPOCHS],
    at: usize,
    least: Option<i64>,
}

impl Base {
    const fn new() -> Self {
        Self { epochs: [None; EPOCHS], at: 0, least: None }
    }

    /// Takes a sample; what it has above the base.
    fn add(&mut self, raw_ns: i64) -> i64 {
        let lower = |known: Option<i64>| Some(known.map_or(raw_ns, |known| known.min(raw_ns)));
        self.epochs[self.at] = lower(self.epochs[self.at]);
        self.least = lower(self.least);
        raw_ns - self.least.unwrap_or(raw_ns)
    }

    /// What the smallest sample of this epoch has above the base.
    fn epoch_queue_ns(&self) -> Option<i64> {
        Some(self.epochs[self.at]? - self.least?)
    }

    fn next_epoch(&mut self) {
        self.at = (self.at + 1) % EPOCHS;
        self.epochs[self.at] = None;
        self.least = self.epochs.iter().flatten().copied().min();
    }

    fn lift(&mut self, by_ns: i64) {
        let lifted = |known: i64| known.saturating_add(by_ns).clamp(-MAX_RAW_NS, MAX_RAW_NS);
        for known in self.epochs.iter_mut().flatten() {
            *known = lifted(*known);
        }
        self.least = self.least.map(lifted);
    }
}

/// Smallest queues by one-way delay and by RTT of some time.
#[derive(Clone, Copy, Debug)]
struct Pair {
    forward_ns: i64,
    round_trip_ns: i64,
}

impl Pair {
    const NONE: Self = Self { forward_ns: i64::MAX, round_trip_ns: i64::MAX };

    fn min(self, other: Self) -> Self {
        Self {
            forward_ns: self.forward_ns.min(other.forward_ns),
            round_trip_ns: self.round_trip_ns.min(other.round_trip_ns),
        }
    }

    /// What both agree on.
    fn common_ns(self) -> i64 {
        self.forward_ns.min(self.round_trip_ns)
    }
}

/// A delay that has stood still since the watch began.
#[derive(Clone, Copy, Debug)]
struct Watch {
    part_ends: Instant,
    part: Pair,
    parts: u32,
    all: Pair,
    lowest_ns: i64,
    highest_ns: i64,
}

/// A base that has been taken on trial.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The bases before.
    was: Pair,
    until: Instant,
    /// A sample has been below the base on trial, but not near the old one.
    was_lowered: bool,
}

/// Follows routes that become longer.
#[derive(Clone, Copy, Debug)]
struct Route {
    /// How long a delay must stand still at first; zero for never.
    time: Duration,
    watch: Option<Watch>,
    trial: Option<Trial>,
    doublings: u32,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    steer: Steer,
    forward: Base,
    round_trip: Base,
    route: Route,
    queue_ns: Option<i64>,
}

impl Queue {
    pub(super) const fn new(steer: Steer, route_time: Duration) -> Self {
        Self {
            steer,
            forward: Base::new(),
            round_trip: Base::new(),
            route: Route { time: route_time, watch: None, trial: None, doublings: 0 },
            queue_ns: None,
        }
    }

    /// The smallest RTT.
    pub(super) fn base_rtt(&self) -> Duration {
        Duration::from_nanos(self.round_trip.least.unwrap_or(0).max(0) as u64)
    }

    /// The base of what steers.
    pub(super) fn base_ns(&self) -> Option<i64> {
        match self.steer {
            Steer::One(Signal::RoundTrip) => self.round_trip.least,
            _ => self.forward.least.or(self.round_trip.least),
        }
    }

    pub(super) fn queueing(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.queue_ns? as u64))
    }

    /// The queue in nanoseconds that this acknowledgement shows, where it has a sample; never negative.
    pub(super) fn measure(&mut self, feedback: &Feedback<'_>, target_ns: i64) -> Option<i64> {
        let raw = |signal: Signal| signal.sample_ns(feedback).map(|ns| ns.clamp(-MAX_RAW_NS, MAX_RAW_NS));
        self.refute(feedback.now, raw(Signal::OneWay), raw(Signal::RoundTrip), target_ns);
        let above = |base: &mut Base, signal| raw(signal).map_or(i64::MAX, |ns| base.add(ns));
        let pair = Pair {
            forward_ns: above(&mut self.forward, Signal::OneWay),
            round_trip_ns: above(&mut self.round_trip, Signal::RoundTrip),
        };
        let queue_ns = match self.steer {
            Steer::Both => pair.common_ns(),
            Steer::One(Signal::OneWay) => pair.forward_ns,
            Steer::One(Signal::RoundTrip) => pair.round_trip_ns,
        };
        if queue_ns == i64::MAX {
            return None;
        }
        if let Some(watch) = &mut self.route.watch {
            watch.part = watch.part.min(pair);
        }
        self.queue_ns = Some(queue_ns);
        self.queue_ns
    }

    /// A slowdown is over: what it showed is the base, and clocks are followed.
    pub(super) fn end_epoch(&mut self) {
        if let (Some(forward_ns), Some(round_trip_ns)) =
            (self.forward.epoch_queue_ns(), self.round_trip.epoch_queue_ns())
            && forward_ns - round_trip_ns > CLOCK_TOLERANCE_NS
        {
            self.forward.lift(forward_ns - round_trip_ns);
        }
        self.forward.next_epoch();
        self.round_trip.next_epoch();
    }

    /// The flow stands at its smallest window, or does not, and there is a queue beyond its target, or there is not.
    /// True where the base has been lifted.
    pub(super) fn watch_route(&mut self, now: Instant, srtt: Duration, yields: bool) -> bool {
        if !yields || self.route.time.is_zero() {
            self.route.watch = None;
            return false;
        }
        let part = (self.route.time / u64::from(PARTS)).max(srtt * 2);
        let watch = self.route.watch.get_or_insert_with(|| Watch::new(now + part));
        if now < watch.part_ends || watch.part.common_ns() == i64::MAX {
            return false;
        }
        watch.end_part(now + part);
        if watch.parts < PARTS << self.route.doublings {
            return false;
        }
        let seen = watch.all;
        self.lift(now, seen);
        true
    }

    fn lift(&mut self, now: Instant, seen: Pair) {
        let least = |base: &Base| base.least.unwrap_or(i64::MAX);
        let was = Pair { forward_ns: least(&self.forward), round_trip_ns: least(&self.round_trip) };
        let finite = |ns: i64| if ns == i64::MAX { 0 } else { ns };
        self.forward.lift(finite(seen.forward_ns));
        self.round_trip.lift(finite(seen.round_trip_ns));
        self.route.watch = None;
        // A trial within a trial goes back to what was before both.
        let was = self.route.trial.map_or(was, |trial| trial.was.min(was));
        self.route.trial = Some(Trial { was, until: now + TRIAL, was_lowered: false });
    }

    /// A sample below the base on trial. Where the old base would explain it as well, what stood above that was a queue, and it is back.
    /// Else the route is shorter than it seemed, or part of what stood there was a queue: the new base comes down to the sample.
    fn refute(&mut self, now: Instant, forward_ns: Option<i64>, round_trip_ns: Option<i64>, target_ns: i64) {
        let Some(trial) = self.route.trial else { return };
        // Clocks that run apart lower the one-way delay by themselves.
        let (base, was_ns, raw_ns) = if round_trip_ns.is_some() {
            (&self.round_trip, trial.was.round_trip_ns, round_trip_ns)
        } else {
            (&self.forward, trial.was.forward_ns, forward_ns)
        };
        let (Some(least_ns), Some(raw_ns)) = (base.least, raw_ns) else { return };
        let is_below = raw_ns < least_ns.saturating_sub(STILL_NS);
        if is_below && raw_ns < was_ns.saturating_add(target_ns / 2) {
            if trial.was.forward_ns != i64::MAX {
                self.forward.add(trial.was.forward_ns);
            }
            if trial.was.round_trip_ns != i64::MAX {
                self.round_trip.add(trial.was.round_trip_ns);
            }
            self.route.trial = None;
            self.route.doublings = (self.route.doublings + 1).min(MAX_DOUBLINGS);
        } else if now >= trial.until {
            self.route.trial = None;
            self.route.doublings = if trial.was_lowered { self.route.doublings } else { 0 };
        } else if is_below && !trial.was_lowered {
            self.route.trial = Some(Trial { was_lowered: true, ..trial });
            self.route.doublings = (self.route.doublings + 1).min(MAX_DOUBLINGS);
        }
    }
}

impl Watch {
    fn new(part_ends: Instant) -> Self {
        let none = Pair::NONE;
        Self { part_ends, part: none, parts: 0, all: none, lowest_ns: i64::MAX, highest_ns: 0 }
    }

    /// A part is over. Where the delay has moved, the watch begins anew with it.
    fn end_part(&mut self, next_ends: Instant) {
        let seen_ns = self.part.common_ns();
        let (lowest_ns, highest_ns) = (self.lowest_ns.min(seen_ns), self.highest_ns.max(seen_ns));
        let stood_still = highest_ns - lowest_ns <= STILL_NS.max(lowest_ns / 32);
        let part = self.part;
        if !stood_still {
            *self = Self::new(next_ends);
        }
        self.parts += 1;
        self.all = self.all.min(part);
        (self.lowest_ns, self.highest_ns) = (self.lowest_ns.min(seen_ns), self.highest_ns.max(seen_ns));
        (self.part, self.part_ends) = (Pair::NONE, next_ends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Owned, ack};

    const MS: i64 = 1_000_000;
    const TARGET_NS: i64 = 15 * MS;

    fn sample(at_ms: u64, one_way_ms: i64, rtt_ms: u64) -> Owned {
        let mut one = ack(at_ms, 1000);
        one.feedback.now = Instant::from_millis(at_ms);
        one.feedback.one_way_delay_ns = Some(one_way_ms * MS);
        one.feedback.rtt = Some(Duration::from_millis(rtt_ms));
        one.feedback.srtt = Duration::from_millis(40);
        one
    }

    fn queue() -> Queue {
        Queue::new(Steer::Both, Duration::from_secs(4))
    }

    #[test]
    fn a_queue_is_what_both_delays_show() {
        let mut queue = queue();
        assert_eq!(queue.measure(&sample(0, -900, 40).feedback(), TARGET_NS), Some(0));
        assert_eq!(queue.measure(&sample(1, -880, 60).feedback(), TARGET_NS), Some(20 * MS));
        assert_eq!(
            queue.measure(&sample(2, -900, 540).feedback(), TARGET_NS),
            Some(0),
            "the way back is congested"
        );
        assert_eq!(
            queue.measure(&sample(3, 100, 45).feedback(), TARGET_NS),
            Some(5 * MS),
            "a clock was set forward"
        );
        assert_eq!(queue.measure(&sample(4, -1900, 50).feedback(), TARGET_NS), Some(0), "and back");
        assert_eq!(queue.base_rtt(), Duration::from_millis(40));
        assert_eq!(queue.measure(&ack(5, 1000).feedback(), TARGET_NS), None);
    }

    #[test]
    fn one_delay_alone_steers_where_it_is_asked_for() {
        for (word, expected) in [("owd", 5 * MS), ("rtt", 50 * MS)] {
            let mut queue = Queue::new(Steer::of(word), Duration::ZERO);
            queue.measure(&sample(0, 0, 40).feedback(), TARGET_NS);
            assert_eq!(queue.measure(&sample(1, 5, 90).feedback(), TARGET_NS), Some(expected), "{word}");
        }
    }

    #[test]
    fn a_clock_that_gains_is_followed_at_slowdowns() {
        let mut queue = queue();
        queue.measure(&sample(0, 0, 40).feedback(), TARGET_NS);
        queue.end_epoch();
        queue.measure(&sample(1, 6, 40).feedback(), TARGET_NS);
        queue.end_epoch();
        // 6 ms have been gained: the way there shows 10 ms more, and so does the round trip behind it.
        assert_eq!(queue.measure(&sample(2, 16, 400).feedback(), TARGET_NS), Some(10 * MS));
    }

    #[test]
    fn what_is_older_than_the_epochs_is_forgotten() {
        let mut queue = queue();
        queue.measure(&sample(0, 0, 40).feedback(), TARGET_NS);
        for epoch in 1..=EPOCHS as u64 {
            queue.end_epoch();
            let expected = if epoch < EPOCHS as u64 { 3 * MS } else { 0 };
            assert_eq!(queue.measure(&sample(epoch, 3, 43).feedback(), TARGET_NS), Some(expected), "{epoch}");
        }
    }

    /// The delay that `rtt_ms` gives each 10 ms, at the smallest window, until the base is lifted or time is over.
    fn watch(queue: &mut Queue, from_ms: u64, until_ms: u64, rtt_ms: impl Fn(u64) -> u64) -> Option<u64> {
        (from_ms..until_ms).step_by(10).find(|&at_ms| {
            let rtt_ms = rtt_ms(at_ms);
            queue.measure(&sample(at_ms, rtt_ms as i64 - 20, rtt_ms).feedback(), TARGET_NS);
            queue.watch_route(Instant::from_millis(at_ms), Duration::from_millis(40), true)
        })
    }

    #[test]
    fn a_delay_that_stands_still_becomes_the_base_and_one_that_moves_does_not() {
        let mut moves = queue();
        moves.measure(&sample(0, 20, 40).feedback(), TARGET_NS);
        // A saw-tooth of 72 ms in 6.7 s, as CUBIC keeps it at 20 Mbit/s behind 200 ms of buffer.
        assert_eq!(watch(&mut moves, 10, 60_000, |at_ms| 168 + at_ms % 6_700 * 72 / 6_700), None);
        let mut stands = queue();
        stands.measure(&sample(0, 20, 40).feedback(), TARGET_NS);
        let lifted = watch(&mut stands, 10, 60_000, |_| 140).expect("it stands still");
        assert!((4_000..4_500).contains(&lifted), "{lifted}");
        assert_eq!(stands.base_rtt(), Duration::from_millis(140));
    }

    #[test]
    fn a_trial_is_refuted_near_the_old_base_and_the_next_waits_longer() {
        let mut queue = queue();
        queue.measure(&sample(0, 20, 40).feedback(), TARGET_NS);
        let first = watch(&mut queue, 10, 60_000, |_| 140).expect("it stands still");
        let ended = queue.measure(&sample(first + 10, 25, 45).feedback(), TARGET_NS);
        assert_eq!((ended, queue.base_rtt().as_millis()), (Some(5 * MS), 40), "the old base is back");
        let second = watch(&mut queue, first + 20, 60_000, |_| 140).expect("it stands still again");
        assert!((8_000..9_000).contains(&(second - first)), "{first} {second}");
    }

    #[test]
    fn a_sample_between_the_bases_lowers_the_one_on_trial() {
        let mut queue = queue();
        queue.measure(&sample(0, 20, 40).feedback(), TARGET_NS);
        // The route is 80 ms longer, and at the smallest window each acknowledgement waits 40 ms for a timer.
        let first = watch(&mut queue, 10, 60_000, |_| 160).expect("it stands still");
        let mut between = |after_ms: u64, rtt_ms: u64| {
            let sample = sample(first + after_ms, rtt_ms as i64 - 20, rtt_ms);
            (queue.measure(&sample.feedback(), TARGET_NS), queue.base_rtt().as_millis())
        };
        assert_eq!(between(10, 120), (Some(0), 120), "no timer runs any longer");
        assert_eq!(between(20, 135), (Some(15 * MS), 120));
        // It was a queue after all.
        assert_eq!(between(30, 44), (Some(4 * MS), 40));
        let second = watch(&mut queue, first + 40, 60_000, |_| 160).expect("it stands still again");
        assert!((16_000..17_000).contains(&(second - first)), "twice doubled: {first} {second}");
    }

    #[test]
    fn a_trial_that_holds_for_a_minute_is_over() {
        let mut queue = queue();
        queue.measure(&sample(0, 20, 40).feedback(), TARGET_NS);
        let lifted = watch(&mut queue, 10, 60_000, |_| 140).expect("it stands still");
        queue.measure(&sample(lifted + 61_000, 120, 140).feedback(), TARGET_NS);
        assert_eq!(
            queue.measure(&sample(lifted + 62_000, 110, 130).feedback(), TARGET_NS),
            Some(0),
            "a base of its own"
        );
    }
}
