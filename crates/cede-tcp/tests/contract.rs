//! What the contract with controllers promises beyond numbers: when the timer is asked for, which acknowledgements hold
//! the window, what a timeout calls under way; and that a pacing rate and a window below one segment are obeyed.

mod support;

use cede_cc::{Allowance, Controller, Feedback, ParamValue, Params, Sent, Snapshot, Tag, Timeout, registry};
use cede_tcp::{AckPolicy, Config, TimeoutReason};
use cede_units::{Bytes, Duration, Instant, Rate};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use support::{Net, Verdict, clear};

const SEGMENT: u64 = 1448;

/// What a [`Witness`] has been told.
#[derive(Default)]
struct Seen {
    /// Acknowledged out of order, and below which number everything is.
    beyond: BTreeSet<u64>,
    first: u64,
    next: u64,
    /// (it advanced, the window was to be held, it reported a loss), per acknowledgement.
    held: Vec<(bool, bool, bool)>,
    timeouts: Vec<Timeout>,
    /// Octets outstanding at each timeout, whether or not they had arrived.
    outstanding: Vec<u64>,
    timers: u32,
}

impl Seen {
    /// Whether an acknowledgement of these numbers moves on below which number everything is acknowledged.
    fn advance(&mut self, feedback: &Feedback<'_>) -> bool {
        let before = self.first;
        self.beyond.extend(feedback.acked.iter().map(|fact| fact.number));
        while self.beyond.remove(&self.first) {
            self.first += 1;
        }
        self.first > before
    }
}

/// A fixed window that widens when its timer, which it sets at each departure, runs out.
struct Witness {
    segments: u64,
    widens_to: u64,
    timer: Option<Instant>,
    seen: Arc<Mutex<Seen>>,
}

impl Controller for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.seen.lock().unwrap().next = sent.number + 1;
        if self.segments < self.widens_to {
            self.timer = Some(sent.now);
        }
        0
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let mut seen = self.seen.lock().unwrap();
        let advanced = seen.advance(feedback);
        seen.held.push((advanced, feedback.in_recovery, !feedback.lost.is_empty()));
        drop(seen);
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        let mut seen = self.seen.lock().unwrap();
        let outstanding = (timeout.next_number - seen.first) * SEGMENT;
        seen.timeouts.push(*timeout);
        seen.outstanding.push(outstanding);
        drop(seen);
        self.allowance()
    }

    fn on_timer(&mut self, _: Instant) -> Allowance {
        self.timer = None;
        self.segments = self.widens_to;
        self.seen.lock().unwrap().timers += 1;
        self.allowance()
    }

    fn timer(&self) -> Option<Instant> {
        self.timer
    }

    fn on_mss(&mut self, _: u32) -> Allowance {
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.segments * SEGMENT)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
}

fn witness(config: &Config, segments: u64, widens_to: u64) -> (Net, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut net = Net::new(config.clone(), config.clone(), Duration::from_millis(25));
    net.connect(Box::new(Witness { segments, widens_to, timer: None, seen: seen.clone() }));
    net.client.closes = false;
    (net, seen)
}

#[test]
fn a_timer_that_a_departure_set_is_asked_for_and_its_allowance_is_taken() {
    let (mut net, seen) = witness(&Config::default(), 2, 5);
    net.run(Instant::from_millis(1100), &mut clear);
    net.client.to_send = 20 * SEGMENT;
    net.client.written = 20 * SEGMENT;
    let now = net.now;
    let client = net.client();
    client.write(cede_wire::Payload::Pattern { start: 0, len: 20 * SEGMENT as u32 }).unwrap();
    let mut burst = || {
        let leaving = std::iter::from_fn(|| client.poll_transmit(now)).count();
        let due = client.poll_timeout_reason().unwrap();
        client.handle_timeout(now);
        (leaving, due)
    };
    assert_eq!(burst(), (2, (now, TimeoutReason::Controller)));
    let (leaving, (at, reason)) = burst();
    assert_eq!((leaving, reason), (3, TimeoutReason::Retransmission), "{at}");
    assert_eq!(seen.lock().unwrap().timers, 1);
}

#[test]
fn selective_acknowledgements_hold_the_window_before_and_after_the_entry() {
    let (mut net, seen) = witness(&Config::default(), 20, 20);
    net.client.to_send = 200 * SEGMENT;
    net.run(Instant::from_secs(20), &mut |passing| {
        let lost = passing.from_client && passing.data_index == 60;
        if lost && !passing.payload.is_empty() { Verdict::Drop } else { Verdict::Deliver }
    });
    assert_eq!(net.server.received, 200 * SEGMENT);
    let seen = seen.lock().unwrap();
    let entries = seen.held.iter().filter(|&&(.., lost)| lost).count();
    assert_eq!(entries, 1);
    let (advancing, selective): (Vec<_>, Vec<_>) =
        seen.held.iter().filter(|&&(.., lost)| !lost).partition(|&&(advanced, ..)| advanced);
    assert!(selective.len() > 10, "two before the entry, the rest after it");
    assert!(selective.iter().all(|&&(_, held, _)| held));
    assert!(advancing.len() > 50 && advancing.iter().all(|&&(_, held, _)| !held));
}

#[test]
fn what_a_timeout_calls_under_way_leaves_out_what_has_arrived() {
    for sack in [false, true] {
        let config = Config { sack, timestamps: false, mss_bytes: SEGMENT as u16, ..Config::newreno() };
        let (mut net, seen) = witness(&config, 10, 10);
        net.client.to_send = 2000 * SEGMENT;
        let mut victim = None;
        net.run(Instant::from_secs(3), &mut |passing| {
            if passing.data_index == 60 && passing.from_client && !passing.payload.is_empty() {
                victim = Some(passing.segment.seq);
            }
            // Until the timer has run out once.
            let lost = victim == Some(passing.segment.seq) && passing.now < Instant::from_millis(1700);
            if lost && passing.from_client { Verdict::Drop } else { Verdict::Deliver }
        });
        let seen = seen.lock().unwrap();
        let (first, outstanding) = (seen.timeouts[0], seen.outstanding[0]);
        assert!(outstanding > 20 * SEGMENT, "{outstanding}");
        assert!((1..=11 * SEGMENT).contains(&first.in_flight_bytes), "{first:?}");
        assert!(first.consecutive == 1 && !first.idle);
    }
}

/// When data segments leave under the controller `fixed` with these parameters, up to two seconds after the start.
fn departures(params: &Params) -> Vec<Instant> {
    let config = Config { ack_policy: AckPolicy::Every, ..Config::default() };
    let mut net = Net::new(config.clone(), config.clone(), Duration::from_millis(25));
    net.connect(registry::build("fixed", params, &config.path()).unwrap());
    net.client.to_send = 10_000 * SEGMENT;
    let mut times = Vec::new();
    net.run(Instant::from_secs(3), &mut |passing| {
        if passing.from_client && !passing.payload.is_empty() {
            times.push(passing.now);
        }
        Verdict::Deliver
    });
    times
}

#[test]
fn segments_leave_at_the_pacing_rate_after_the_burst() {
    let rate = Rate::from_mbit(8);
    let burst = Bytes(3 * SEGMENT);
    let times = departures(
        &Params::new().with("rate", ParamValue::Rate(rate)).with("burst", ParamValue::Bytes(burst)),
    );
    assert!(times[2] == times[0] && times[3] > times[2]);
    assert!(times.windows(2).skip(2).all(|pair| pair[1].since(pair[0]) == rate.time_to_send(SEGMENT)));
}

#[test]
fn half_a_segment_of_window_sends_one_in_two_round_trips() {
    let times = departures(&Params::new().with("cwnd", ParamValue::Bytes(Bytes(SEGMENT / 2))));
    assert!(times.len() > 15, "{}", times.len());
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) == Duration::from_millis(100)), "{times:?}");
}
