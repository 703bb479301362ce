//! The queueing delay that LEDBAT steers by: filtered current delay less base delay.
//!
//! Source: RFC 6817, section 2.4.2: `queuing_delay = FILTER(current_delays) - MIN(base_delays)`.
//!
//! # The two ways in which the plain rule drifts off, and what is done about them
//! A single flow that keeps its target for half an hour breaks the plain rule twice.
//! 1. **Clocks drift.** At 50 ppm raw delays move by 3 ms per minute. Rising, they make the flow believe in a queue that
//!    is not there: it starves by its own base history (10 minutes, 30 ms). Falling, they hide a growing queue behind a
//!    base that the flow, never letting the queue run empty, cannot see anew: it bloats. Remedy (`correct_drift`):
//!    [`ClockDrift`] measures the skew on the reverse direction, [`BaseHistory`] carries its minima along it.
//! 2. **The base expires behind the flow's own queue.** After BASE_HISTORY minutes at target the true minimum falls
//!    out of the list and what remains is base + target: the flow then aims at base + 2 target, and so on. Remedy
//!    (`hold_base`): a minute tells about the base only if for at least one smoothed RTT of it the flow kept no queue of
//!    its own, because its window stood at the floor or because the application had too little to send. Other
//!    minutes are *blind* and the history does not move on with them.
//!
//! What follows from holding the base: a base that *falls* is seen at once, as ever. A base that *rises by more than
//! the target* (a new route) pushes the flow to its floor, where minutes tell, and is learnt after BASE_HISTORY of
//! them, as RFC 6817 has it. One that rises by *less* than the target is not learnt while the flow stays busy: it
//! keeps a queue of target less rise, which fills the link just as well and delays others less. Beside a TCP that fills
//! the buffer the flow is at its floor and nothing changes. Flows that share the target fairly no longer climb together.
//! Of two flows where a late-comer starves the first, the first is at its floor, learns a base that holds the other's
//! queue, and the pair climbs as under the plain rule: that needs another cure (fLEDBAT, LEDBAT++). A flow whose floor
//! alone keeps a queue learns this queue as its base once, and is above its floor from then on.
//!
//! The alternative, to drain the flow's queue on purpose now and then and look (LEDBAT++'s slowdowns), was not
//! taken for this profile: with several flows each drain shows the base plus the others' queues, so that accepting
//! what it shows lifts the base of well-behaved flows, while holding leaves them where they agree.
//!
//! A clock that is set moves the whole history by the step that both directions saw (part of `correct_drift`). Where
//! the transport has no reverse samples, RTT less forward delay stands for them: it reads the same but for the time
//! that the peer held the acknowledgement, which the minima leave out.
//!
//! *What it leaves out:* drift where there are neither reverse nor RTT samples.
//! *How it was validated:* unit tests below; the runs of `tests/link.rs`.

use super::clock_drift::MIN_STEP;
use super::{BaseHistory, ClockDrift, ClockStep, DelayFilter, FilterKind, Signal};
use crate::Feedback;
use cede_units::{Duration, Instant};

/// Raw samples are clamped to this, a hundred years, so that no difference of them can overflow.
const MAX_RAW_NS: i64 = i64::MAX / 4;

/// Where the reverse delay is derived from the RTT, an RTT that belongs to another packet than the forward delay looks
/// like a step of the difference; no such difference is as long as this.
const MIN_DERIVED_STEP: Duration = Duration::from_secs(10);

/// What is switched on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueueingDelayConfig {
    /// Which delay is meant. The RTT is of one clock: nothing is corrected in it.
    pub signal: Signal,
    /// Length of the base history in minutes (BASE_HISTORY).
    pub base_minutes: usize,
    /// How the current delay is filtered (CURRENT_FILTER).
    pub filter: FilterKind,
    /// Measure the clocks' drift on the reverse direction and take it out; follow clock steps.
    pub correct_drift: bool,
    /// Minutes behind the flow's own queue do not move the base history on.
    pub hold_base: bool,
}

/// The raw delay of the reverse direction, measured or what the RTT leaves beside the forward delay, and the smallest
/// clock step to be read from it.
fn reverse_of(feedback: &Feedback<'_>, forward_ns: i64) -> Option<(i64, Duration)> {
    let clamp = |ns: i64| ns.clamp(-MAX_RAW_NS, MAX_RAW_NS);
    if let Some(reverse_ns) = feedback.reverse_delay_ns {
        return Some((clamp(reverse_ns), MIN_STEP));
    }
    let rtt_ns = feedback.rtt?.as_nanos().min(MAX_RAW_NS as u64) as i64;
    Some((clamp(rtt_ns - forward_ns), MIN_DERIVED_STEP))
}

/// The estimator with its state.
#[derive(Clone, Debug)]
pub struct QueueingDelay {
    base: BaseHistory,
    filter: DelayFilter,
    drift: ClockDrift,
    /// Never while the flow has a queue of its own.
    unloaded_since: Instant,
    signal: Signal,
    correct_drift: bool,
    hold_base: bool,
    minute_tells: bool,
    queueing_ns: Option<i64>,
}

impl QueueingDelay {
    /// An estimator that has seen nothing.
    #[must_use]
    pub fn new(config: QueueingDelayConfig) -> Self {
        Self {
            base: BaseHistory::new(config.base_minutes),
            filter: DelayFilter::new(config.filter),
            drift: ClockDrift::new(),
            unloaded_since: Instant::NEVER,
            signal: config.signal,
            correct_drift: config.correct_drift,
            hold_base: config.hold_base,
            minute_tells: false,
            queueing_ns: None,
        }
    }

    /// Takes what an acknowledgement says. `at_floor`: the window stands at its minimum. Answers with the queueing
    /// delay in nanoseconds, where the acknowledgement carries a sample; never negative.
    pub fn update(&mut self, feedback: &Feedback<'_>, at_floor: bool) -> Option<i64> {
        let now = feedback.now;
        let forward = self.signal.sample_ns(feedback)?.clamp(-MAX_RAW_NS, MAX_RAW_NS);
        if self.correct_drift
            && self.signal == Signal::OneWay
            && let Some((reverse, min_step)) = reverse_of(feedback, forward)
        {
            self.follow_clocks(now, forward, reverse, min_step);
        }
        self.note_load(now, feedback.srtt, at_floor || feedback.app_limited);
        let blind = self.hold_base && !self.minute_tells;
        let skew = self.drift.skew();
        if self.base.update_with(now, forward, skew, blind) {
            self.minute_tells = false;
        }
        let current = self.filter.update(now, forward, feedback.srtt);
        let queueing = current.saturating_sub(self.base.latest_ns()?).max(0);
        self.queueing_ns = Some(queueing);
        self.queueing_ns
    }

    fn follow_clocks(&mut self, now: Instant, forward: i64, reverse: i64, min_step: Duration) {
        if let Some(step) = self.drift.update(now, forward, reverse, min_step) {
            self.follow_step(step);
        }
    }

    #[cold]
    #[inline(never)]
    fn follow_step(&mut self, step: ClockStep) {
        self.base.shift(step.forward_ns);
        self.filter.clear();
    }

    /// A minute tells about the base once the flow has been without a queue of its own for one RTT.
    fn note_load(&mut self, now: Instant, srtt: Duration, unloaded: bool) {
        if !unloaded {
            self.unloaded_since = Instant::NEVER;
            return;
        }
        self.unloaded_since = self.unloaded_since.min(now);
        if !srtt.is_zero() && now.since(self.unloaded_since) >= srtt {
            self.minute_tells = true;
        }
    }

    /// Nothing has been heard for more than an RTT.
    pub fn rest(&mut self) {
        self.filter.rest();
    }

    /// The base delay on the raw scale at the last sample.
    #[must_use]
    pub const fn base_ns(&self) -> Option<i64> {
        self.base.latest_ns()
    }

    /// The queueing delay at the last sample.
    #[must_use]
    pub fn queueing(&self) -> Option<Duration> {
        self.queueing_ns.map(|ns| Duration::from_nanos(ns.unsigned_abs()))
    }

    /// The drift of the forward scale that is being taken out, in seconds per second.
    #[must_use]
    pub const fn skew(&self) -> f64 {
        self.drift.skew()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;

    const MS: i64 = 1_000_000;

    fn estimator(correct_drift: bool, hold_base: bool) -> QueueingDelay {
        let filter = FilterKind::MinOf(4);
        let signal = Signal::OneWay;
        QueueingDelay::new(QueueingDelayConfig { signal, base_minutes: 10, filter, correct_drift, hold_base })
    }

    /// One sample a second with this raw delay on a clock that drifts; the last queueing delay in ms.
    fn run(
        delay: &mut QueueingDelay,
        seconds: core::ops::Range<u64>,
        raw_ms: i64,
        skew: f64,
        at_floor: bool,
    ) -> i64 {
        let mut last = 0;
        for second in seconds {
            let drifted = (skew * 1e9) as i64 * second as i64;
            let mut one = ack(second, 1000);
            one.feedback.now = Instant::from_secs(second);
            one.feedback.one_way_delay_ns = Some(raw_ms * MS + drifted);
            one.feedback.reverse_delay_ns = Some(20 * MS - drifted);
            last = delay.update(&one.feedback(), at_floor).unwrap();
        }
        (last + MS / 2) / MS
    }

    #[test]
    fn a_standing_queue_is_still_seen_after_an_hour() {
        let mut held = estimator(false, true);
        run(&mut held, 0..5, -500, 0.0, false);
        assert_eq!(run(&mut held, 5..3600, -400, 0.0, false), 100);
        let mut plain = estimator(false, false);
        run(&mut plain, 0..5, -500, 0.0, false);
        assert_eq!(run(&mut plain, 5..3600, -400, 0.0, false), 0, "the base has expired behind it");
    }

    #[test]
    fn minutes_at_the_floor_age_the_base_as_ever() {
        let mut held = estimator(false, true);
        run(&mut held, 0..5, 0, 0.0, false);
        assert_eq!(run(&mut held, 5..540, 80, 0.0, true), 80);
        assert_eq!(run(&mut held, 540..720, 80, 0.0, true), 0);
    }

    #[test]
    fn so_do_minutes_in_which_the_application_was_the_limit() {
        let mut held = estimator(false, true);
        run(&mut held, 0..5, 0, 0.0, false);
        for second in 5..720 {
            let mut one = ack(second, 1000);
            one.feedback.now = Instant::from_secs(second);
            one.feedback.one_way_delay_ns = Some(80 * MS);
            one.feedback.app_limited = true;
            held.update(&one.feedback(), false);
        }
        assert_eq!(held.queueing(), Some(Duration::ZERO));
    }

    #[test]
    fn drift_of_either_sign_is_taken_out_of_a_standing_queue() {
        for skew in [50e-6, -50e-6] {
            let mut delay = estimator(true, true);
            run(&mut delay, 0..5, 0, skew, false);
            assert_eq!(run(&mut delay, 5..7200, 25, skew, false), 25, "{skew}");
            assert!((delay.skew() - skew).abs() < 1e-7);
        }
    }

    #[test]
    fn without_samples_there_is_no_answer() {
        let mut delay = estimator(true, true);
        assert_eq!(delay.update(&ack(1, 1000).feedback(), true), None);
        assert_eq!((delay.base_ns(), delay.queueing()), (None, None));
    }
}
