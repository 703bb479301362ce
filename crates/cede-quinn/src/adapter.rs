//! quinn's calls in, [`cede_cc::Controller`]'s out.

use crate::ledger::{Departure, Ledger};
use crate::sample::{AckDelay, Estimate, Inversion};
use cede_cc::{Allowance, Controller, Feedback, PacketFact, SendRecord, Sent, Snapshot, Timeout, run_timers};
use cede_units::{Duration, Instant};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{self, ControllerMetrics};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time;

/// The smallest window, in packets: the peer may hold a lone packet's acknowledgement back.
const MIN_WINDOW_PACKETS: u64 = 2;
/// Departures are remembered for so long beyond the newest acknowledged, and four round trips.
const MEMORY: Duration = Duration::from_secs(3);

/// A controller of ours as quinn sees it. `Connection::congestion_state` gives a clone, whose `into_any` can be
/// downcast to this for its [`snapshot`](QuicController::snapshot).
///
/// Clones share their state.
#[derive(Clone)]
pub struct QuicController {
    shared: Arc<Mutex<State>>,
}

struct State {
    controller: Box<dyn Controller>,
    ack_delay: AckDelay,
    /// Time 0 of the controller's clock.
    origin: time::Instant,
    mtu: u32,
    allowance: Allowance,
    ledger: Ledger,
    next_number: u64,
    in_flight_bytes: u64,
    delivered_bytes: u64,
    /// Of the packet acknowledged last: when that was, and when it had left.
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Packets with smaller numbers had left when the loss was found that began the recovery period.
    recover: u64,
    flight: Flight,
    inversion: Inversion,
    srtt: Duration,
    batch: Batch,
}

/// The most that was under way in this round trip and the one before: at any one moment it may be less than the window only because
/// quinn paces.
#[derive(Default)]
struct Flight {
    before_bytes: u64,
    now_bytes: u64,
    /// An acknowledgement of this number or a later one ends the round trip.
    round_end: u64,
}

impl Flight {
    fn most_bytes(&self) -> u64 {
        self.before_bytes.max(self.now_bytes)
    }

    fn acknowledged(&mut self, newest: u64, next: u64, in_flight_bytes: u64) {
        if newest >= self.round_end {
            *self = Self { before_bytes: self.now_bytes, now_bytes: in_flight_bytes, round_end: next };
        }
    }
}

/// What `on_ack` has told since the last `on_end_acks`.
#[derive(Default)]
struct Batch {
    acked: Vec<PacketFact>,
    bytes: u64,
    /// `now - sent` of the packet that left last.
    raw_rtt: Option<time::Duration>,
    estimate: Option<Estimate>,
}

impl fmt::Debug for QuicController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QuicController").field(&self.snapshot()).finish()
    }
}

impl QuicController {
    pub(crate) fn new(
        controller: Box<dyn Controller>,
        ack_delay: AckDelay,
        now: time::Instant,
        mtu: u16,
    ) -> Self {
        let allowance = controller.allowance();
        let state = State {
            controller,
            ack_delay,
            origin: now,
            mtu: u32::from(mtu),
            allowance,
            ledger: Ledger::default(),
            next_number: 0,
            in_flight_bytes: 0,
            delivered_bytes: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            recover: 0,
            flight: Flight::default(),
            inversion: Inversion::default(),
            srtt: Duration::ZERO,
            batch: Batch::default(),
        };
        Self { shared: Arc::new(Mutex::new(state)) }
    }

    /// Where the controller stands. Delays are of the RTT.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.state().controller.snapshot()
    }

    /// The controller's name in the registry of `cede-cc`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.state().controller.name()
    }

    /// A panic elsewhere leaves nothing half done that matters here.
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl congestion::Controller for QuicController {
    fn on_sent(&mut self, now: time::Instant, bytes: u64, _last_packet_number: u64) {
        self.state().sent(now, bytes);
    }

    fn on_ack(
        &mut self,
        now: time::Instant,
        sent: time::Instant,
        bytes: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let estimate = Estimate { smoothed: rtt.get(), min: rtt.min(), conservative: rtt.conservative() };
        self.state().acked(now, sent, bytes, estimate);
    }

    fn on_end_acks(
        &mut self,
        now: time::Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.state().end_acks(now, in_flight, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: time::Instant,
        sent: time::Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let mut state = self.state();
        if lost_bytes == 0 {
            state.marked(now, sent);
        } else {
            state.lost(now, sent, lost_bytes);
        }
        if is_persistent_congestion {
            state.persistent_congestion(now);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let mut state = self.state();
        state.mtu = u32::from(new_mtu).max(1);
        let mtu = state.mtu;
        state.allowance = state.controller.on_mss(mtu);
    }

    fn window(&self) -> u64 {
        self.state().window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let state = self.state();
        let snapshot = state.controller.snapshot();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = state.window();
        metrics.ssthresh = snapshot.ssthresh_bytes.map(|octets| octets as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl State {
    /// quinn sends while `in_flight + next < window`: one octet more lets the window be filled.
    fn window(&self) -> u64 {
        self.allowance.cwnd_bytes.max(MIN_WINDOW_PACKETS * u64::from(self.mtu)).saturating_add(1)
    }

    fn clock(&self, at: time::Instant) -> Instant {
        Instant::ZERO + at.saturating_duration_since(self.origin).into()
    }

    fn sent(&mut self, now: time::Instant, bytes: u64) {
        let now = self.clock(now);
        if self.in_flight_bytes == 0 {
            (self.delivered_at, self.first_sent_at) = (now, now);
        }
        self.in_flight_bytes = self.in_flight_bytes.saturating_add(bytes);
        self.flight.now_bytes = self.flight.now_bytes.max(self.in_flight_bytes);
        self.next_number += bytes.div_ceil(u64::from(self.mtu.max(1))).max(1);
        let number = self.next_number - 1;
        let sent = Sent {
            now,
            number,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            in_flight_bytes: self.in_flight_bytes,
            retransmission: false,
        };
        let record = SendRecord {
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: false,
        };
        let tag = self.controller.on_sent(&sent);
        self.ledger.push(Departure { at: now, number, tag, record });
        self.run_timers(now);
    }

    fn acked(&mut self, now: time::Instant, sent: time::Instant, bytes: u64, estimate: Estimate) {
        let fact = self.fact(sent, bytes);
        // Packets are told of by rising number, so the last is the newest.
        self.batch.raw_rtt = Some(now.saturating_duration_since(sent));
        self.batch.estimate = Some(estimate);
        self.batch.bytes = self.batch.bytes.saturating_add(bytes);
        self.batch.acked.push(fact);
    }

    fn end_acks(&mut self, now: time::Instant, in_flight_bytes: u64, app_limited: bool) {
        let now = self.clock(now);
        let mut batch = std::mem::take(&mut self.batch);
        if let Some(newest) = batch.acked.last() {
            (self.delivered_at, self.first_sent_at) = (now, newest.sent_at);
            self.in_flight_bytes = in_flight_bytes;
            self.delivered_bytes = self.delivered_bytes.saturating_add(batch.bytes);
            let rtt = self.sample(&batch);
            let repairing = newest.number < self.recover;
            let oldest_wanted = newest.sent_at.saturating_sub(MEMORY + self.srtt * 4);
            let feedback = Feedback {
                acked: &batch.acked,
                acked_bytes: batch.bytes,
                in_flight_before_bytes: in_flight_bytes.saturating_add(batch.bytes),
                rtt,
                rtt_min: rtt,
                app_limited: app_limited || self.is_window_unused(),
                in_recovery: repairing,
                ..self.feedback(now)
            };
            self.allowance = self.controller.on_feedback(&feedback);
            self.flight.acknowledged(newest.number, self.next_number, in_flight_bytes);
            self.ledger.forget_before(oldest_wanted);
        }
        batch.acked.clear();
        self.batch = Batch { acked: batch.acked, ..Batch::default() };
        self.run_timers(now);
    }

    /// Less than three quarters of the window were used for a round trip: flow control, the peer's or that of our own send buffer,
    /// held the rest back. No reason to let out more (RFC 9002, section 7.8); quinn's word is of the application alone.
    fn is_window_unused(&self) -> bool {
        self.flight.most_bytes().saturating_add(u64::from(self.mtu)) < self.window() / 4 * 3
    }

    fn lost(&mut self, now: time::Instant, sent: time::Instant, bytes: u64) {
        let now = self.clock(now);
        let newest = [self.fact(sent, bytes)];
        let before = self.in_flight_bytes;
        self.in_flight_bytes = before.saturating_sub(bytes);
        let feedback = Feedback {
            lost: &newest,
            lost_bytes: bytes,
            in_flight_before_bytes: before,
            in_recovery: newest[0].number < self.recover,
            ..self.feedback(now)
        };
        self.allowance = self.controller.on_feedback(&feedback);
        // A packet of the flight that has been answered for begins no new recovery period (RFC 9002, section 7.3.2).
        if newest[0].number >= self.recover {
            self.recover = self.next_number;
        }
        self.run_timers(now);
    }

    /// A mark is told as one of a packet that has been acknowledged already, hence without octets.
    fn marked(&mut self, now: time::Instant, sent: time::Instant) {
        let now = self.clock(now);
        let newest = [self.fact(sent, 0)];
        let feedback = Feedback {
            acked: &newest,
            ce_marked: 1,
            in_recovery: newest[0].number < self.recover,
            ..self.feedback(now)
        };
        self.allowance = self.controller.on_feedback(&feedback);
        self.run_timers(now);
    }

    fn persistent_congestion(&mut self, now: time::Instant) {
        let now = self.clock(now);
        let timeout = Timeout {
            now,
            in_flight_bytes: self.in_flight_bytes,
            consecutive: 1,
            next_number: self.next_number,
            idle: false,
        };
        self.allowance = self.controller.on_timeout(&timeout);
        self.run_timers(now);
    }

    /// What every feedback says.
    fn feedback(&self, now: Instant) -> Feedback<'static> {
        Feedback {
            now,
            acked: &[],
            lost: &[],
            acked_bytes: 0,
            lost_bytes: 0,
            in_flight_before_bytes: self.in_flight_bytes,
            in_flight_bytes: self.in_flight_bytes,
            delivered_bytes: self.delivered_bytes,
            next_number: self.next_number,
            rtt: None,
            rtt_min: None,
            srtt: self.srtt,
            one_way_delay_ns: None,
            reverse_delay_ns: None,
            ce_marked: 0,
            app_limited: false,
            in_recovery: false,
        }
    }

    fn fact(&self, sent: time::Instant, bytes: u64) -> PacketFact {
        let sent_at = self.clock(sent);
        let departure = self.ledger.find(sent_at);
        PacketFact {
            number: departure.map_or(0, |departure| departure.number),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            sent_at,
            retransmitted: false,
            tag: departure.map_or(0, |departure| departure.tag),
            record: departure.map(|departure| departure.record).unwrap_or_default(),
        }
    }

    /// The RTT sample of a batch; moves the smoothed RTT on.
    ///
    /// None is zero. quinn stamps all datagrams that it finds in a socket with the time at which it began to read, so on a path of
    /// microseconds an acknowledgement may seem older than what it answers; as a smallest RTT that would hold for good, and all
    /// of a window would be queue.
    fn sample(&mut self, batch: &Batch) -> Option<Duration> {
        let (raw, estimate) = (batch.raw_rtt?, batch.estimate?);
        let adjusted = self.inversion.observe(estimate);
        // Until quinn has taken its first sample its average is a configured guess; the handshake's packets are
        // acknowledged at once, so the raw time will do.
        self.srtt = adjusted.map_or(raw, |_| estimate.smoothed).into();
        let sample = match self.ack_delay {
            AckDelay::Removed => adjusted.unwrap_or(raw),
            AckDelay::Included => raw,
        };
        Some(sample.into()).filter(|sample: &Duration| !sample.is_zero())
    }

    fn run_timers(&mut self, now: Instant) {
        self.allowance = run_timers(&mut *self.controller, now).unwrap_or(self.allowance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scavenger;
    use cede_cc::Params;
    use cede_units::Stream;
    use congestion::{Controller as _, ControllerFactory};

    const MTU: u16 = 1200;
    const PACKET: u64 = MTU as u64;

    struct Bench {
        quic: QuicController,
        origin: time::Instant,
    }

    impl Bench {
        fn new(name: &str) -> Self {
            let scavenger = Scavenger::even_if_unfit(name, &Params::new()).expect("it exists");
            let origin = time::Instant::now();
            let quic = Arc::new(scavenger).build(origin, MTU).into_any();
            Self { quic: *quic.downcast().expect("it is ours"), origin }
        }

        fn at(&self, ms: u64) -> time::Instant {
            self.origin + time::Duration::from_millis(ms)
        }

        fn window(&self) -> u64 {
            self.quic.window() - 1
        }

        fn send(&mut self, ms: u64, packets: u64) {
            for _ in 0..packets {
                self.quic.on_sent(self.at(ms), PACKET, 0);
            }
        }

        /// Acknowledges packets that left at one time, with an RTT that quinn's average agrees with.
        fn acknowledge(&mut self, ms: u64, sent_ms: u64, packets: u64, in_flight: u64) {
            let (now, sent) = (self.at(ms), self.at(sent_ms));
            let rtt = now - sent;
            let estimate = Estimate { smoothed: rtt, min: rtt, conservative: rtt };
            for _ in 0..packets {
                self.quic.state().acked(now, sent, PACKET, estimate);
            }
            self.quic.on_end_acks(now, in_flight * PACKET, false, None);
        }
    }

    #[test]
    fn a_window_of_n_packets_lets_quinn_send_n() {
        let bench = Bench::new("reno");
        let window = bench.quic.window();
        let packets = window / PACKET;
        // quinn's test for the last of them: in_flight + next >= window blocks.
        assert!((packets - 1) * PACKET + PACKET < window);
        assert!(packets * PACKET + PACKET >= window);
        assert_eq!(bench.quic.initial_window(), window);
    }

    #[test]
    fn losses_of_one_flight_are_one_event_and_the_window_stays_at_two_packets_or_more() {
        let mut bench = Bench::new("reno");
        let before = bench.window();
        bench.send(0, 10);
        bench.send(1, 10);
        bench.quic.on_congestion_event(bench.at(50), bench.at(0), false, PACKET);
        let halved = bench.window();
        assert!(halved < before, "{halved} after {before}");
        bench.quic.on_congestion_event(bench.at(51), bench.at(1), false, 3 * PACKET);
        assert_eq!(bench.window(), halved, "those had left before the first loss was found");
        for step in 1..40 {
            bench.send(100 * step, 2);
            bench.quic.on_congestion_event(bench.at(100 * step + 50), bench.at(100 * step), false, PACKET);
        }
        assert_eq!(bench.window(), 2 * PACKET);
    }

    #[test]
    fn a_recovery_period_is_not_prolonged_by_losses_of_its_own_flight() {
        let mut bench = Bench::new("reno");
        bench.send(0, 10);
        bench.send(1, 10);
        bench.quic.on_congestion_event(bench.at(50), bench.at(0), false, PACKET);
        bench.send(51, 5);
        bench.quic.on_congestion_event(bench.at(60), bench.at(1), false, PACKET);
        assert_eq!(bench.quic.state().recover, 20, "those of 51 ms left after the cut");
        bench.quic.on_congestion_event(bench.at(100), bench.at(51), false, PACKET);
        assert_eq!(bench.quic.state().recover, 25, "one of theirs is a new loss");
    }

    #[test]
    fn a_window_that_is_not_filled_does_not_grow() {
        let mut bench = Bench::new("reno");
        let before = bench.window();
        let packets = before / PACKET;
        bench.send(0, 4);
        bench.acknowledge(40, 0, 4, 0);
        assert_eq!(bench.window(), before, "flow control let four packets out");
        bench.send(50, packets);
        bench.acknowledge(90, 50, packets, 0);
        assert!(bench.window() > before);
    }

    #[test]
    fn a_mark_slows_like_a_loss_but_takes_nothing_off_what_is_under_way() {
        let mut bench = Bench::new("reno");
        let before = bench.window();
        bench.send(0, 10);
        bench.acknowledge(40, 0, 2, 8);
        bench.quic.on_congestion_event(bench.at(40), bench.at(0), false, 0);
        assert!(bench.window() < before);
        assert_eq!(bench.quic.state().in_flight_bytes, 8 * PACKET);
    }

    #[test]
    fn persistent_congestion_is_a_timeout() {
        let mut bench = Bench::new("reno");
        bench.send(0, 10);
        bench.quic.on_congestion_event(bench.at(4_000), bench.at(0), true, 10 * PACKET);
        assert_eq!(bench.window(), 2 * PACKET);
    }

    #[test]
    fn a_clone_shares_its_state_and_tells_of_the_path() {
        let mut bench = Bench::new("ledbat++");
        let clone = bench.quic.clone_box();
        for step in 0..20 {
            bench.send(50 * step, 2);
            bench.acknowledge(50 * step + 40, 50 * step, 2, 0);
        }
        assert_eq!(clone.window(), bench.quic.window());
        let base_ns = bench.quic.snapshot().base_delay_ns.expect("RTTs were seen");
        assert_eq!(base_ns, 40_000_000);
        bench.quic.on_mtu_update(1452);
        assert!(clone.window() > 2 * 1452);
    }

    #[test]
    fn an_acknowledgement_that_seems_to_take_no_time_is_no_sample() {
        for (name, ack_delay) in
            [("vegas", AckDelay::Removed), ("vegas", AckDelay::Included), ("lp", AckDelay::Included)]
        {
            let mut bench = Bench::new(name);
            bench.quic.state().ack_delay = ack_delay;
            bench.send(0, 4);
            bench.acknowledge(40, 0, 2, 2);
            bench.send(41, 2);
            bench.acknowledge(41, 41, 1, 3);
            bench.acknowledge(90, 50, 1, 2);
            assert_eq!(bench.quic.snapshot().base_delay_ns, Some(40_000_000), "{name}, {ack_delay:?}");
        }
    }

    #[test]
    fn no_order_of_calls_breaks_anything() {
        for name in ["ledbat++", "ledbat", "nice", "lp", "vegas", "proteus-s", "bbr", "reno"] {
            let mut random = Stream::named(7, name);
            let mut bench = Bench::new(name);
            for _ in 0..5_000 {
                let (now, sent) = (random.below(100_000), random.below(100_000));
                let bytes = random.below(70_000);
                match random.below(6) {
                    0 | 1 => bench.quic.on_sent(bench.at(now), bytes, 0),
                    2 => bench.acknowledge(now.max(sent), sent, random.below(4), random.below(100)),
                    3 => bench.quic.on_end_acks(bench.at(now), bytes, random.chance(0.5), None),
                    4 => {
                        let persistent = random.chance(0.1);
                        bench.quic.on_congestion_event(bench.at(now), bench.at(sent), persistent, bytes);
                    }
                    _ => bench.quic.on_mtu_update(random.below(65_536) as u16),
                }
                let window = bench.quic.window();
                assert!((2..=(64 << 20) + 131_072).contains(&window), "{name}: {window}");
                assert!(bench.quic.metrics().congestion_window == window);
            }
        }
    }
}
