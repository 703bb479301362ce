//! `cede`: a scavenger put together from what works.
//!
//! Source: of this project; `docs/cede-controller.md` argues each part from measurements. The parts and where they come from:
//! ```text
//! q        = min(queue by one-way delay, queue by RTT)                            queue.rs
//!            less jitter: delays without memory that reach the base                jitter.rs, bunches.rs
//! slow start:  W += a, paced at 2 W / RTT; until q > 3/4 T, then W = delivered rate * base RTT
//! q <= T:      W += (G + v) a / W per ack; G = min(1, base RTT / 30 ms), 1/16 at least
//!              v doubles per round trip while q < T/2, up to W/10 and to a queue of T; 0 from then on
//!              paced at the delivered rate, and so much more or less as brings the queue to T in a round trip, a quarter at most;
//!              after three more rounds without a queue to 2 T, 4 T, 6 T: where T is a fortieth of a round trip, a climb is long
//! q >  T:      first W *= (base + T/2) / (base + q), which takes our own queue away, 9/10 at least where q < 3 T; then, once per RTT,
//!              or per 30 ms where that is longer and q < 3 T, W -= W min(1/2, q/T - 1)   LEDBAT++, section 4.2, K = 1
//! pairs:       at two packets a peer that answers pairs is sent pairs (pairs.rs); above T two packets leave in 40 ms at most
//! slowdown:    W = 2 for 2 RTT, then with an acknowledgement W as before, paced; again after 20 times that  after LEDBAT++, section 4.4
//! loss:        with a queue: W/2, and T = a third of that queue where it is shorter; after the second such loss G is half; without: 4/5 W
//! divided link (trains of packets say so, train.rs): half of the own share         explicit
//! ```
//! T (target.rs) is 15 ms or three quarters of the base RTT, or two packets' time at the largest rate seen where that is more (60 ms at most).
//!
//! *What it leaves out:* telling a competitor that holds its queue still from a route (`queue.rs` says what limits the harm);
//! fair queueing where packets are few or batched (`train.rs`).
//! *How it was validated:* unit tests; the conformance suite; the battery, with its parts switched off one by one and with
//! varied links (`docs/cede-controller.md`).

mod bunches;
mod config;
mod jitter;
mod pace;
mod pairs;
mod queue;
mod rounds;
mod slowdown;
mod target;
mod train;
mod undo;

use crate::entry::Entry;
use crate::instruments::{DelayFilter, FilterKind, LossEpoch};
use crate::params::{ParamError, Params, Settings};
use crate::undo::Undo;
use crate::window::{Bounds, congested_number, snapshot_of};
use crate::{Allowance, Controller, Feedback, Path, Phase, Sent, Snapshot, Tag, Timeout};
use alloc::boxed::Box;
use alloc::format;
use cede_units::{Duration, Instant};
use config::{Config, PARAMS};
use jitter::Jitter;
use pairs::Pairs;
use queue::{Queue, Steer};
use rounds::{Rounds, Seen};
use target::{MIN_TARGET_NS, Target};
use train::Trains;

/// Queue over the target at which slow start ends.
const SLOW_START_EXIT: f64 = 0.75;
/// Samples of which slow start takes the smallest.
const EXIT_SAMPLES: usize = 8;
/// Queue over the target below which there is none.
const NO_QUEUE: f64 = 0.5;
/// Rounds without a queue after which growth doubles.
const QUIET_ROUNDS: i32 = 3;
/// The least growth per round in packets.
const MIN_GAIN: f64 = 1.0 / 16.0;
/// The queue that growth and pacing may make before a round trip has shown it, in targets.
const AHEAD_TARGETS: f64 = 1.0;
/// The same after so many rounds without a queue: it doubles with each further one.
const LONG_QUIET_ROUNDS: i32 = 3;
/// Queue over the target from which on the window shrinks each round trip, however short.
const FAR_ABOVE: f64 = 3.0;
/// What the first decrease leaves at least where the queue is far above.
const LEAST_LEFT_FAR: f64 = 0.5;
/// What is left of the gain while the target has adapted to a short queue and losses come unannounced.
const ADAPTED_GAIN: f64 = 0.5;

pub(crate) const ENTRY: Entry = Entry {
    name: "cede",
    summary: "Cede's own: LEDBAT++'s slowdowns with a short target, pacing, a base that follows routes, and answers to shallow, managed and fair queues.",
    formula: "q <= T: W += (G + v) a/W, v doubling while q < T/2; q > T: W (base + T/2)/(base + q), then -W min(1/2, q/T - 1) per RTT; \
              slowdown: 2 packets for 2 RTT, again after 20 times that; loss: W/2 with a queue, 4/5 W without; fair queueing: half the share",
    source: "docs/cede-controller.md",
    params: PARAMS,
    responsive: true,
    experimental: true,
    build,
};

/// Where the flow stands.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    SlowStart,
    Steady,
    /// The window stands at its smallest, and was so large.
    Slowdown {
        began: Instant,
        until: Instant,
        before: f64,
    },
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Cede {
    config: Config,
    bounds: Bounds,
    cwnd: f64,
    ssthresh: f64,
    stage: Stage,
    queue: Queue,
    jitter: Jitter,
    /// The smallest of the last samples of the queue, and what it is.
    recent: DelayFilter,
    recent_ns: i64,
    rounds: Rounds,
    trains: Trains,
    pairs: Pairs,
    epoch: LossEpoch,
    target: Target,
    /// Growth per round beyond the gain, in octets.
    velocity: f64,
    /// After a loss below zero.
    quiet_rounds: i32,
    /// Rounds in a row above the target.
    loud_rounds: u32,
    /// The smallest queue of this slowdown.
    slowdown_least_ns: i64,
    /// How far ahead of what is delivered growth and pacing may go.
    ahead_targets: f64,
    careful_until: Instant,
    next_decrease: Instant,
    next_slowdown: Option<Instant>,
    next_number: u64,
    srtt: Duration,
    /// When the last acknowledgement came.
    now: Instant,
    /// The first round after a slowdown.
    restoring: bool,
    /// The last loss with a queue was not the first one since the target has adapted.
    repeated: bool,
    /// What there was before the last loss.
    undo: Undo<undo::Before>,
}

/// How far ahead of what is delivered growth may go after so many rounds without a queue, in targets, and at most.
fn ahead_after(quiet_rounds: i32, most: f64) -> f64 {
    let longer = (quiet_rounds - LONG_QUIET_ROUNDS).clamp(0, 8);
    (AHEAD_TARGETS * f64::from(1 << longer)).min(most)
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    Ok(Box::new(Cede::of(params, path)?))
}

impl Cede {
    fn of(params: &Params, path: &Path) -> Result<Self, ParamError> {
        let settings = Settings::resolve(params, PARAMS)?;
        let (config, bounds) = (Config::of(&settings), Bounds::of(path));
        let route_time = settings.switch("follow_route").then(|| settings.duration("route_time"));
        Ok(Self {
            config,
            bounds,
            cwnd: bounds.initial(config.init_packets, path),
            ssthresh: f64::INFINITY,
            stage: Stage::SlowStart,
            queue: Queue::new(Steer::of(settings.word("signal")), route_time.unwrap_or_default()),
            jitter: Jitter::new(),
            recent: DelayFilter::new(FilterKind::MinOf(EXIT_SAMPLES)),
            recent_ns: 0,
            rounds: Rounds::new(),
            trains: Trains::new(config.train),
            pairs: Pairs::new(),
            epoch: LossEpoch::new(),
            target: Target::new(&config),
            velocity: 0.0,
            quiet_rounds: 0,
            loud_rounds: 0,
            slowdown_least_ns: i64::MAX,
            ahead_targets: AHEAD_TARGETS,
            careful_until: Instant::ZERO,
            next_decrease: Instant::ZERO,
            next_slowdown: None,
            next_number: 0,
            srtt: Duration::ZERO,
            now: Instant::ZERO,
            restoring: false,
            repeated: false,
            undo: Undo::new(),
        })
    }

    fn floor(&self) -> f64 {
        self.config.min_packets * self.bounds.mss
    }

    fn set(&mut self, cwnd: f64) {
        self.cwnd = self.bounds.bound(cwnd, self.floor()).min(self.share_limit().max(self.floor()));
        self.cwnd = self.bounds.bound(self.cwnd, self.floor());
    }

    /// The window that takes the part of a divided link that is ours to take.
    fn share_limit(&self) -> f64 {
        let Some(share) = self.trains.share() else {
            return f64::INFINITY;
        };
        let rate = share.bits_per_sec() as f64 / 8.0 * self.config.fair_share;
        rate * self.queue.base_rtt().as_secs_f64()
    }

    /// The time of a packet at the largest rate that was seen, in nanoseconds.
    fn packet_ns(&self) -> f64 {
        self.bounds.mss * 8e9 / self.rounds.peak_rate().max(1.0)
    }

    /// The queue that is aimed at, in nanoseconds.
    fn target_ns(&self, now: Instant) -> f64 {
        let noise_ns = if self.config.allow_jitter { self.rounds.noise_ns() } else { 0 };
        self.target.ns(now, self.packet_ns(), noise_ns, self.queue.base_rtt())
    }

    /// Packets per round trip.
    fn gain(&self) -> f64 {
        let base = self.queue.base_rtt().as_secs_f64();
        let usual = (base / self.config.gain_rtt.as_secs_f64().max(1e-9)).clamp(MIN_GAIN, 1.0);
        // There, who grows at half the pace of others has the smaller share.
        if self.is_blind(self.now) { ADAPTED_GAIN * usual } else { usual }
    }

    /// Losses come before a queue shows, so that its absence says nothing.
    fn is_blind(&self, now: Instant) -> bool {
        self.repeated && self.target.is_adapted(now)
    }

    /// What the last sample has above the base and what jitter explains, in nanoseconds.
    fn queue_ns(&self) -> Option<i64> {
        let queue_ns = self.queue.queueing()?.as_nanos() as i64;
        Some((queue_ns - self.jitter.allowed_ns()).max(0))
    }

    /// The round trip without our queue, but with what the way back has, in seconds.
    fn path_rtt_s(&self) -> f64 {
        let queue_s = self.queue_ns().unwrap_or(0) as f64 / 1e9;
        (self.srtt.as_secs_f64() - queue_s).max(self.queue.base_rtt().as_secs_f64())
    }

    /// The round trip as it is now: the smoothed one follows slowly where few packets are under way.
    fn rtt_s(&self) -> f64 {
        let queue_s = self.queue.queueing().map_or(0.0, Duration::as_secs_f64);
        let srtt_s = self.srtt.as_secs_f64();
        if self.queue.base_rtt().is_zero() {
            srtt_s
        } else {
            srtt_s.min(self.queue.base_rtt().as_secs_f64() + queue_s)
        }
    }

    /// The largest rate of the last rounds in octets per second.
    fn delivered(&self) -> Option<f64> {
        Some(self.rounds.rate()?.bits_per_sec() as f64 / 8.0)
    }

    /// What the path holds at that rate.
    fn bdp(&self) -> Option<f64> {
        Some(self.delivered()? * self.path_rtt_s())
    }

    fn on_ack(&mut self, feedback: &Feedback<'_>, queue_ns: i64) {
        let may_grow = !feedback.app_limited;
        let acked = (feedback.acked_bytes as f64).min(self.cwnd);
        match self.stage {
            Stage::Slowdown { .. } => {}
            Stage::SlowStart => {
                if queue_ns as f64 > SLOW_START_EXIT * self.target_ns(feedback.now) {
                    let delivered = self.bdp().unwrap_or(self.cwnd).max(self.cwnd / 2.0);
                    self.leave_slow_start(feedback, delivered);
                } else if may_grow {
                    let grown = self.cwnd + acked;
                    self.set(grown.min(self.ssthresh));
                    if grown >= self.ssthresh {
                        self.leave_slow_start(feedback, self.cwnd);
                    }
                }
            }
            Stage::Steady if may_grow && self.loud_rounds == 0 && !feedback.in_recovery => {
                if queue_ns as f64 > NO_QUEUE * self.target_ns(feedback.now) {
                    self.velocity = 0.0;
                    self.ahead_targets = AHEAD_TARGETS;
                }
                let step = self.gain() * self.bounds.mss + self.velocity;
                self.set(self.cwnd + step * acked / self.cwnd);
            }
            Stage::Steady => {}
        }
    }

    fn leave_slow_start(&mut self, feedback: &Feedback<'_>, cwnd: f64) {
        self.set(cwnd.min(self.cwnd));
        self.stage = Stage::Steady;
        self.rounds.restart(feedback.next_number);
        self.end_growth();
        self.next_slowdown = Some(feedback.now + self.srtt * 2);
    }

    /// Growth begins anew. The rounds for which it waits after a loss go on: behind a policer each loss ends in a timeout, a slow
    /// start and a slowdown. Where the loss came with a queue, the time that it waits then is enough.
    fn end_growth(&mut self) {
        (self.velocity, self.loud_rounds, self.ahead_targets) = (0.0, 0, AHEAD_TARGETS);
        self.quiet_rounds = if self.now < self.careful_until { 0 } else { self.quiet_rounds.min(0) };
    }

    /// Once per round trip in the steady stage.
    fn end_round(&mut self, feedback: &Feedback<'_>, seen: Seen) {
        // A short queue that others fill moves within a round trip.
        let is_short = self.target.is_adapted(feedback.now);
        let queue_ns = if is_short { seen.queue_ns.midpoint(seen.peak_ns) } else { seen.queue_ns };
        let queueing = queue_ns as f64 / self.target_ns(feedback.now);
        if queueing > 1.0 {
            self.yield_to(feedback.now, queue_ns, queueing);
            return;
        }
        self.loud_rounds = 0;
        let quiet = queueing < NO_QUEUE && !seen.lost && !feedback.app_limited;
        self.quiet_rounds =
            if quiet { self.quiet_rounds.saturating_add(1) } else { self.quiet_rounds.min(0) };
        let known = feedback.now >= self.careful_until && !self.is_blind(feedback.now);
        let faster = self.config.velocity && known && self.quiet_rounds >= QUIET_ROUNDS;
        // What a round trip adds is seen a round trip later.
        self.ahead_targets =
            if faster { ahead_after(self.quiet_rounds, self.config.max_ahead) } else { AHEAD_TARGETS };
        let unseen =
            self.delivered().unwrap_or(0.0) * self.ahead_targets * self.target_ns(feedback.now) / 1e9;
        let most = unseen.min(self.config.max_velocity * self.cwnd);
        let doubled = (2.0 * self.velocity).max(self.gain() * self.bounds.mss).min(most);
        // What was delivered a moment ago will be again.
        let missing = self.bdp().map_or(0.0, |bdp| (bdp - self.cwnd) / 2.0);
        self.velocity = if faster { doubled.max(missing) } else { 0.0 };
    }

    /// A round was above the target. Our own queue goes first; what the next round still shows was sent before.
    fn yield_to(&mut self, now: Instant, queue_ns: i64, queueing: f64) {
        (self.velocity, self.quiet_rounds, self.ahead_targets) = (0.0, 0, AHEAD_TARGETS);
        let mut wait_s = self.rtt_s();
        match self.loud_rounds {
            0 => {
                wait_s *= 2.0;
                let path_ns = self.path_rtt_s() * 1e9;
                let target_ns = queue_ns as f64 / queueing;
                let kept = self.cwnd * (path_ns + target_ns / 2.0) / (path_ns + queue_ns as f64);
                let delivered =
                    self.bdp().map_or(kept, |bdp| bdp * (path_ns + target_ns / 2.0) / path_ns.max(1.0));
                // A short path has little under way beside its queue: it would give more than a long one, again and again.
                let least = if queueing < FAR_ABOVE { self.config.first_left } else { LEAST_LEFT_FAR };
                self.set(kept.min(delivered).max(least * self.cwnd));
            }
            // What was sent before the first decrease.
            1 if queueing >= FAR_ABOVE => {}
            _ if now < self.next_decrease && queueing < FAR_ABOVE => return,
            _ => self.set(self.cwnd * (2.0 - queueing).max(0.5)),
        }
        self.next_decrease = now + Duration::from_secs_f64(wait_s).max(self.config.gain_rtt);
        self.loud_rounds = self.loud_rounds.saturating_add(1);
    }

    /// Once per window of data.
    fn cut(&mut self, feedback: &Feedback<'_>) {
        let peak_ns = self.rounds.recent_peak_ns() as f64;
        let queued = peak_ns > (1.5 * self.packet_ns()).max(MIN_TARGET_NS);
        // What loses so much is no short queue, whatever the losses before seemed to say.
        let heavy = self.rounds.loss() >= self.config.guard_loss;
        if heavy {
            self.target.forget();
        }
        let random = self.config.loss_guard && !queued && !heavy;
        let left = if random { self.config.guard_left } else { 0.5 };
        if let Stage::Slowdown { before, .. } = &mut self.stage {
            *before *= left;
            return;
        }
        if !random {
            self.repeated = self.target.is_adapted(feedback.now);
            self.careful_until = feedback.now + self.config.careful;
            let target_ns = self.target_ns(feedback.now);
            if self.config.adapt_target && peak_ns < 2.0 * target_ns && queued && !heavy {
                self.target.adapt(feedback.now, peak_ns);
            }
        }
        let cut = (self.cwnd * left).max(self.floor()).min(self.cwnd);
        if self.stage == Stage::SlowStart {
            self.leave_slow_start(feedback, cut);
        }
        (self.velocity, self.ahead_targets) = (0.0, AHEAD_TARGETS);
        self.quiet_rounds = -self.config.loss_rounds;
        (self.cwnd, self.ssthresh) = (cut, cut);
    }

    /// Packets that may leave together at the smallest windows.
    fn together(&self) -> f64 {
        if self.jitter.asks() { jitter::TOGETHER } else { pairs::PAIR }
    }

    /// The queue that an acknowledgement shows, and what the round showed that ends with it.
    fn see(&mut self, feedback: &Feedback<'_>) -> (Option<i64>, Option<Seen>) {
        let target_ns = self.target_ns(feedback.now) as i64;
        let above_base_ns = self.queue.measure(feedback, target_ns);
        let queue_ns = above_base_ns.and_then(|_| self.queue_ns());
        self.pairs.on_feedback(feedback);
        let waited = self.pairs.has_waited(feedback);
        let seen = self.rounds.on_feedback(feedback, queue_ns, waited);
        if let Some(above_base_ns) = above_base_ns.filter(|_| !waited) {
            self.watch_jitter(feedback, above_base_ns, seen.is_some());
        }
        self.slowdown_least_ns = self.slowdown_least_ns.min(queue_ns.unwrap_or(i64::MAX));
        (queue_ns, seen)
    }

    /// Above its target at its smallest window, the flow sees whether the delay moves.
    fn watch_route(&mut self, feedback: &Feedback<'_>) {
        let queue_ns = self.queue_ns().unwrap_or(0);
        let yields = self.stage == Stage::Steady
            && self.cwnd <= self.floor() + self.bounds.mss
            && queue_ns as f64 > self.target_ns(feedback.now);
        if self.queue.watch_route(feedback.now, feedback.srtt, yields) {
            self.stage = Stage::SlowStart;
            self.ssthresh = f64::INFINITY;
            self.loud_rounds = 0;
            self.recent.clear();
            self.recent_ns = 0;
            self.rounds.restart(feedback.next_number);
        }
    }
}

impl Controller for Cede {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.next_number = self.next_number.max(sent.number.saturating_add(1));
        self.trains.on_sent(sent);
        self.pairs.on_sent(sent.in_flight_bytes, self.together(), self.bounds.mss);
        0
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        (self.now, self.srtt) = (feedback.now, feedback.srtt);
        self.next_number = feedback.next_number;
        let (queue_ns, seen) = self.see(feedback);
        self.trains.release(feedback.now);
        self.trains.on_feedback(feedback);
        if let Some(number) = congested_number(feedback) {
            if self.epoch.is_new(number) {
                self.undo.note_event(feedback, self.before_cut());
                self.epoch.start(feedback.next_number);
                self.cut(feedback);
            }
            return self.allowance();
        }
        // What this acknowledgement shows beyond that is the slowdown's.
        if feedback.acknowledges() && self.end_slowdown(feedback) {
            return self.allowance();
        }
        if let Some(queue_ns) = queue_ns.filter(|_| feedback.acked_bytes > 0) {
            self.recent_ns = self.recent.update(feedback.now, queue_ns, feedback.srtt);
            self.on_ack(feedback, self.recent_ns);
        }
        self.restoring &= seen.is_none();
        if let Some(seen) = seen.filter(|_| self.stage == Stage::Steady) {
            self.end_round(feedback, seen);
        }
        self.watch_route(feedback);
        self.slow_down_if_due(feedback);
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some(before) = self.undo.take() {
            self.give_back(before);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.undo.forget();
        let before = match self.stage {
            Stage::Slowdown { before, .. } => before,
            _ => self.cwnd,
        };
        let restarts = self.stage == Stage::SlowStart;
        self.stage = Stage::SlowStart;
        if timeout.idle {
            self.ssthresh = before;
            self.cwnd = self.cwnd.min(self.config.init_packets * self.bounds.mss);
        } else {
            if timeout.consecutive <= 1 {
                // One that follows before the window was there again says no more of it than the first.
                let known =
                    if self.ssthresh.is_finite() && restarts { self.ssthresh.max(before) } else { before };
                self.ssthresh = (known / 2.0).max(self.floor());
            }
            let least = if self.pairs.answers() { 2.0 } else { 1.0 };
            self.cwnd = self.cwnd.min(self.floor()).min(least * self.bounds.mss);
            self.epoch.start(timeout.next_number);
            self.quiet_rounds = -self.config.loss_rounds;
        }
        self.pairs.on_timeout();
        self.end_growth();
        self.allowance()
    }

    fn on_timer(&mut self, now: Instant) -> Allowance {
        self.trains.release(now);
        self.allowance()
    }

    fn timer(&self) -> Option<Instant> {
        self.trains.timer()
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.bounds.set_mss(mss_bytes);
        self.cwnd = self.bounds.bound(self.cwnd, self.bounds.mss);
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        if let Some(train) = self.trains.window(self.bounds.mss) {
            let cwnd = if self.trains.share().is_some() { self.cwnd.max(train) } else { self.cwnd };
            return Allowance::window((self.bounds.bound(cwnd.min(train), 1.0) as u64).max(1));
        }
        let asks = self.jitter.asks() && self.stage == Stage::Steady;
        let least = if asks { self.together() * self.bounds.mss } else { 0.0 };
        let cwnd_bytes =
            (self.pairs.window(self.cwnd.max(least), self.together(), self.bounds.mss) as u64).max(1);
        let Some(rate) = self.pacing().filter(|_| !asks) else { return Allowance::window(cwnd_bytes) };
        Allowance { cwnd_bytes, pacing_rate: Some(rate), burst_bytes: self.burst_bytes(rate) }
    }

    fn snapshot(&self) -> Snapshot {
        let phase = match self.stage {
            Stage::SlowStart => Phase::SlowStart,
            Stage::Steady => Phase::CongestionAvoidance,
            Stage::Slowdown { .. } => Phase::Named("slowdown"),
        };
        Snapshot {
            base_delay_ns: self.queue.base_ns(),
            queueing_delay: self.queue.queueing(),
            pacing_rate: self.pacing(),
            note: self.trains.share().map(|share| format!("divided link, own share {share}")),
            ..snapshot_of(self.cwnd, self.ssthresh, phase)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParamValue;
    use crate::testing::{ack, loss, path, timeout};
    use cede_units::Rate;

    /// A flow in slow start whose first round trip took 50 ms and whose second, of 18 packets, so long, at 8 Mbit/s.
    fn flow(rtt_ms: u64) -> Box<dyn Controller> {
        let params = Params::new().with("init_cwnd", ParamValue::Number(20.0));
        let mut flow = build(&params, &path(1000)).unwrap();
        for number in 0..19 {
            let mut one = ack(number, 1000);
            one.feedback.next_number = 20;
            one.feedback.rtt = Some(Duration::from_millis(if number == 0 { 50 } else { rtt_ms }));
            one.feedback.delivered_bytes = 1_000_000;
            flow.on_feedback(&one.feedback());
        }
        assert_eq!(flow.snapshot().cwnd_bytes, 39_000.0);
        flow
    }

    fn left_by_a_loss(rtt_ms: u64) -> f64 {
        let mut flow = flow(rtt_ms);
        flow.on_feedback(&loss(19, 20).feedback());
        flow.snapshot().cwnd_bytes / 39_000.0
    }

    #[test]
    fn a_loss_takes_half_with_a_queue_and_a_fifth_without() {
        assert!((left_by_a_loss(50) - 0.8).abs() < 1e-9);
        assert!((left_by_a_loss(60) - 0.5).abs() < 1e-9, "ten packets waited");
    }

    #[test]
    fn slow_start_ends_at_three_quarters_of_the_target_and_a_slowdown_restores_the_window() {
        let mut flow = flow(50);
        let mut feed = |number: u64, at_ms: u64, rtt_ms: u64| {
            let mut one = ack(number, 1000);
            one.feedback.now = Instant::from_millis(at_ms);
            one.feedback.next_number = number + 20;
            one.feedback.rtt = Some(Duration::from_millis(rtt_ms));
            one.feedback.srtt = Duration::from_millis(50);
            flow.on_feedback(&one.feedback());
            flow.snapshot()
        };
        // Eight samples of 13 ms of queue; the smallest of them counts.
        let last = (30..38).map(|number| feed(number, 1_100, 63)).last().expect("eight");
        assert_eq!(last.phase, Phase::CongestionAvoidance);
        // Two smoothed round trips later the first slowdown is due.
        let frozen = feed(40, 1_300, 50);
        assert_eq!((frozen.phase, frozen.cwnd_bytes), (Phase::Named("slowdown"), 2000.0));
        assert_eq!(feed(41, 1_399, 50).phase, Phase::Named("slowdown"));
        // The first acknowledgement after two round trips ends it.
        let restored = feed(42, 1_450, 50);
        assert!(restored.cwnd_bytes > 15_000.0, "{restored:?}");
    }

    #[test]
    fn the_pace_brings_the_queue_to_the_target_within_a_round_trip() {
        let mut flow = Cede::of(&Params::new(), &path(1000)).unwrap();
        (flow.stage, flow.cwnd, flow.srtt) = (Stage::Steady, 100_000.0, Duration::from_millis(100));
        let target_ns = flow.target_ns(flow.now);
        let mut pace = |over_ms: f64| {
            flow.recent_ns = (target_ns + over_ms * 1e6) as i64;
            flow.pacing().expect("it paces").as_mbit_f64()
        };
        // 100 kB in 100 ms.
        for (over_ms, mbit) in [(0.0, 8.0), (5.0, 7.6), (-5.0, 8.4), (80.0, 6.0), (-40.0, 10.0)] {
            assert!((pace(over_ms) - mbit).abs() < 0.01, "{over_ms} ms above: {}", pace(over_ms));
        }
    }

    #[test]
    fn what_a_loss_makes_growth_wait_for_outlives_timeouts_and_slowdowns() {
        let mut flow = Cede::of(&Params::new(), &path(1000)).unwrap();
        flow.on_timeout(&timeout(20_000, 1));
        assert_eq!(flow.quiet_rounds, -flow.config.loss_rounds);
        flow.end_growth();
        assert_eq!(flow.quiet_rounds, -flow.config.loss_rounds, "a slowdown is no pardon");
        flow.careful_until = flow.now + flow.config.careful;
        flow.end_growth();
        assert_eq!(flow.quiet_rounds, 0, "where there was a queue it waits by the clock");
    }

    #[test]
    fn of_a_divided_link_a_part_of_the_own_share_is_taken() {
        for (part, octets) in [(0.5, 31_250.0), (0.2, 12_500.0)] {
            let params = Params::new().with("fair_share", ParamValue::Number(part));
            let mut flow = Cede::of(&params, &path(1000)).unwrap();
            let mut one = ack(0, 1000);
            one.feedback.rtt = Some(Duration::from_millis(50));
            flow.on_feedback(&one.feedback());
            flow.trains = Trains::of_share(Rate::from_mbit(10));
            flow.set(1e6);
            assert_eq!(flow.snapshot().cwnd_bytes, octets, "{part} of 10 Mbit/s, 50 ms");
        }
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_remembers_half() {
        let mut flow = flow(50);
        flow.on_timeout(&timeout(20_000, 1));
        let snapshot = flow.snapshot();
        assert_eq!((snapshot.cwnd_bytes, snapshot.ssthresh_bytes), (1000.0, Some(19_500.0)));
    }
}
