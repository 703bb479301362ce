//! TCP-LP as Linux runs it: whole milliseconds on TCP's timestamps, its quirks included.
//!
//! Source: the behaviour of Linux's `net/ipv4/tcp_lp.c` (2.6.18 to 6.12) and of the code behind the figures of "A hands-on
//! assessment of transport protocols with lower than best effort priority" (LCN 2010), which ran it in ns-2; ns-3's
//! `tcp-lp.cc`; written anew from its description. Per acknowledgement that carries an RTT sample, with TSval and TSecr:
//! 1. The peer's clock rate in Hz: 1000 dTSval / dTSecr between acknowledgements, averaged with weight 1/64, in integers.
//! 2. owd = |TSval (1000/rate) - TSecr|, integer division: a rate above 1000 gives 0, and -TSecr is what remains.
//! 3. Smallest and largest owd; "the largest of the largest is forgotten": a new one becomes the second largest.
//! 4. Early congestion: smoothed owd not below min + 15 (max - min)/100. Then min becomes the smoothed owd, max twice that, and
//!    the window is halved, or 1 within three RTTs of the last time. No growth in that time. ssthresh is left alone.
//!
//! `bits` is the width of the unsigned numbers behind all that. With 32 (as in 2010) -TSecr wraps to about 4 10^9, the largest
//! owd with it, and the flow no longer senses congestion; with 64, as ns-2 has it today, its absolute value is taken.
//! Which of the two it is hangs on the rate of step 1, and that on how the ticks of the two clocks fall: acknowledgements 1.2 ms
//! apart show 2000 Hz as often as 500 Hz, so that the average rises above 1000 while a flow's packets are next to each other. It
//! falls back where other flows' packets lie between them, as after a repair that lowers the window step by step (Linux, ns-2,
//! ns-3); after one that begins with a pause the flow stays a train, and blind for long.
//! `clock_rate = known` leaves step 1 out, `reset_extremes = off` is the paper's text; ns-3 has `clock_rate = known`,
//! `boundary = inclusive`, `inference_holds = avoidance` (its slow start goes on in an inference phase), `growth = fractions` and
//! `halves = pipe`.
//! Acknowledgements inside of a repair are judged too (`judge_repairs`; their cut of the window does not outlive the repair, which ends
//! at ssthresh). Linux before 4.2 is in slow start at ssthresh (`slow_start_at_ssthresh`, the default of `lp-linux26`); so is ns-2, which
//! rounds stamps to the nearest.
//!
//! A loss that was none gives back Reno's window (`tcp_reno_undo_cwnd`).
//!
//! *What it leaves out:* clocks of two rates: both tick by `stamp_tick`; what an indication within a repair does to the window until
//! the repair ends, and samples from duplicate acknowledgements, which ns-3 takes: neither moves ns-3's own results when it is taken out.
//! *How it was validated:* the vectors of `tests/vectors/tcp_lp.json`, and the numbered checks in `owd.rs` and in
//! `tests/background.rs`; the conformance suite; beside Reno, with ns-2 and ns-3 (`docs/validation.md`).

mod owd;
mod params;

use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, Params, Settings};
use crate::reno_window::{News, RenoWindow};
use crate::{Allowance, Controller, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Duration, Instant};
use owd::{Owd, STAMP_MASK};
use params::{PARAMS, PARAMS_26};

pub(crate) const ENTRY: Entry = Entry {
    name: "lp-linux",
    summary: "TCP-LP as Linux's tcp_lp has it, with 64-bit numbers as ns-2 runs it today.",
    formula: "owd = |TSval (1000/rate) - TSecr| in ms; smoothed owd >= min + 15 (max - min)/100: W/2, within 3 RTT of the last \
              time W = 1; min = smoothed, max = 2 smoothed; no growth for 3 RTT; else Reno",
    source: "Linux 6.12 net/ipv4/tcp_lp.c, by behaviour; ns-3 tcp-lp.cc",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

pub(crate) const ENTRY_26: Entry = Entry {
    name: "lp-linux26",
    summary: "TCP-LP as Linux 2.6 had it on 32-bit machines, which is probably what the LCN 2010 paper ran.",
    source: "Linux 2.6.22 net/ipv4/tcp_lp.c, by behaviour",
    params: PARAMS_26,
    build: build_26,
    ..ENTRY
};

/// See the file's head.
#[derive(Clone, Debug)]
pub struct LpLinux {
    name: &'static str,
    tick: Duration,
    nearest: bool,
    owd: Owd,
    window: RenoWindow,
    min_packets: f64,
    /// RTTs that an inference phase lasts, and what that comes to.
    inference_rtts: u64,
    inference: Duration,
    last_drop: Option<Instant>,
    infers: bool,
    judge_repairs: bool,
    /// Slow start goes on in an inference phase.
    starts_always: bool,
    /// The window has fractions of packets, and so has its half.
    by_fractions: bool,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    build_as(ENTRY.name, PARAMS, params, path)
}

fn build_26(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    build_as(ENTRY_26.name, PARAMS_26, params, path)
}

fn build_as(
    name: &'static str,
    docs: &[ParamDoc],
    params: &Params,
    path: &Path,
) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, docs)?;
    let by_fractions = settings.word("growth") == "fractions";
    Ok(Box::new(LpLinux {
        name,
        tick: settings.duration("stamp_tick"),
        nearest: settings.word("stamp_rounding") == "nearest",
        owd: Owd::of(&settings),
        window: RenoWindow::new(path, settings.number("init_cwnd"))
            .with_inclusive_slow_start(settings.switch("slow_start_at_ssthresh"))
            .with_halved_pipe(settings.word("halves") == "pipe")
            .with_growth_by_fractions(by_fractions),
        by_fractions,
        min_packets: settings.number("min_cwnd"),
        inference_rtts: settings.count("inference") as u64,
        inference: Duration::ZERO,
        last_drop: None,
        infers: false,
        judge_repairs: settings.switch("judge_repairs"),
        starts_always: settings.word("inference_holds") == "avoidance",
    }))
}

impl LpLinux {
    /// TSecr and TSval of this acknowledgement: the packet left an RTT ago by our clock, and arrived a one-way delay later by
    /// the peer's. Where the transport's own stamps have this tick, these are they.
    fn stamps(&self, feedback: &Feedback<'_>) -> Option<(u64, u64)> {
        let tick_ns = self.tick.as_nanos().max(1) as i64;
        let sent_ns = feedback.now.saturating_sub(feedback.rtt?).as_nanos().min(i64::MAX as u64 / 2) as i64;
        let arrived_ns = sent_ns.saturating_add(feedback.one_way_delay_ns?);
        let half_ns = if self.nearest { tick_ns / 2 } else { 0 };
        let ticks = |ns: i64| ns.saturating_add(half_ns).div_euclid(tick_ns) as u64 & STAMP_MASK;
        Some((ticks(sent_ns), ticks(arrived_ns)))
    }

    /// Whether the acknowledgement carries stamps.
    fn sample(&mut self, feedback: &Feedback<'_>) -> bool {
        let Some((ours, theirs)) = self.stamps(feedback) else { return false };
        self.owd.estimate_rate(ours, theirs);
        if let Some(delay) = self.owd.delay(ours, theirs) {
            self.owd.add(delay);
        }
        if let Some(rtt) = feedback.rtt.filter(|rtt| !rtt.is_zero()) {
            self.inference = rtt * self.inference_rtts;
        }
        true
    }

    /// Early congestion in this acknowledgement?
    fn judge(&mut self, now: Instant) -> bool {
        self.infers = self.last_drop.is_some_and(|drop| now.since(drop) < self.inference);
        let is_early = self.owd.is_early();
        if is_early {
            self.owd.reset();
            self.last_drop = Some(now);
        }
        is_early
    }

    fn on_acked(&mut self, feedback: &Feedback<'_>) {
        if self.judge(feedback.now) {
            let packets = self.window.packets();
            let half = if self.by_fractions { packets / 2.0 } else { (packets as u64 / 2) as f64 };
            self.window.set_packets(if self.infers { self.min_packets } else { half.max(self.min_packets) });
        }
        // The very acknowledgement that shows early congestion still grows the halved window.
        let holds = self.infers && !(self.starts_always && self.window.in_slow_start());
        if !holds && !feedback.app_limited {
            self.window.grow(feedback.acked_bytes);
        }
    }
}

impl Controller for LpLinux {
    fn name(&self) -> &'static str {
        self.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let has_stamps = self.sample(feedback);
        match self.window.take(feedback) {
            News::Acked => self.on_acked(feedback),
            // A repair ends at ssthresh, whatever delays said meanwhile; but they have said it.
            _ if self.judge_repairs && has_stamps && feedback.acked_bytes > 0 => {
                self.judge(feedback.now);
            }
            _ => {}
        }
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        self.window.undo()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.window.on_timeout(timeout)
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.window.on_mss(mss_bytes)
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }

    fn snapshot(&self) -> Snapshot {
        let snapshot = self.window.snapshot();
        let phase = if self.infers { Phase::Named("inference") } else { snapshot.phase };
        let above = self.owd.above_min();
        let queueing_delay = above.map(|ticks| self.tick * ticks);
        Snapshot { phase, queueing_delay, ..snapshot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Owned, ack, loss, path};
    use crate::{ParamValue, registry};

    fn at(now_ms: u64, delay_ms: i64) -> Owned {
        let mut one = ack(now_ms, 1000);
        one.feedback.now = Instant::from_millis(now_ms);
        one.feedback.rtt = Some(Duration::from_millis(50));
        one.feedback.one_way_delay_ns = Some(delay_ms * 1_000_000);
        one
    }

    #[test]
    fn the_first_sample_is_early_congestion_and_ssthresh_stays() {
        let params = Params::new().with("clock_rate", ParamValue::Word("known".into()));
        let params = params.with("init_cwnd", ParamValue::Number(10.0));
        let mut lp = registry::build("lp-linux", &params, &path(1000)).unwrap();
        assert_eq!(
            lp.on_feedback(&at(1000, 25).feedback()).cwnd_bytes,
            6000,
            "halved, and one packet of slow start"
        );
        assert_eq!(lp.on_feedback(&at(1001, 25).feedback()).cwnd_bytes, 6000, "inference");
        assert_eq!(lp.snapshot().phase, Phase::Named("inference"));
        assert_eq!(lp.on_feedback(&at(1149, 25).feedback()).cwnd_bytes, 6000);
        assert_eq!(lp.on_feedback(&at(1150, 25).feedback()).cwnd_bytes, 7000, "slow start again");
        for now_ms in 1151..1160 {
            lp.on_feedback(&at(now_ms, 145).feedback());
        }
        assert_eq!(lp.snapshot().cwnd_bytes, 1000.0, "a second one within the inference of the first");
        assert_eq!(lp.snapshot().ssthresh_bytes, None);
    }

    #[test]
    fn where_only_avoidance_waits_slow_start_goes_on_in_an_inference_phase() {
        let word = |word: &str| ParamValue::Word(word.into());
        let params =
            Params::new().with("clock_rate", word("known")).with("inference_holds", word("avoidance"));
        let params = params.with("init_cwnd", ParamValue::Number(10.0));
        let mut lp = registry::build("lp-linux", &params, &path(1000)).unwrap();
        assert_eq!(lp.on_feedback(&at(1000, 25).feedback()).cwnd_bytes, 6000, "halved, and one packet");
        assert_eq!(lp.on_feedback(&at(1001, 25).feedback()).cwnd_bytes, 7000);
        assert_eq!(lp.snapshot().phase, Phase::Named("inference"));
    }

    #[test]
    fn delays_inside_of_a_repair_count_where_they_are_judged() {
        let phase_after = |judged: bool| {
            let params = Params::new().with("clock_rate", ParamValue::Word("known".into()));
            let params = params.with("judge_repairs", ParamValue::Switch(judged));
            let mut lp = registry::build("lp-linux", &params, &path(1000)).unwrap();
            lp.on_feedback(&loss(5, 9).feedback());
            for now_ms in [1001, 1002] {
                let mut one = at(now_ms, 25);
                one.feedback.in_recovery = true;
                lp.on_feedback(&one.feedback());
            }
            lp.snapshot().phase
        };
        assert_eq!(phase_after(true), Phase::Named("inference"));
        assert_ne!(phase_after(false), Phase::Named("inference"));
    }

    /// From two packets to more than four in avoidance; then early congestion, and growth again.
    fn after_early_congestion(growth: &str) -> f64 {
        let word = |word: &str| ParamValue::Word(word.into());
        let params = Params::new().with("clock_rate", word("known")).with("boundary", word("inclusive"));
        let params = params.with("init_cwnd", ParamValue::Number(18.0)).with("growth", word(growth));
        let mut lp = registry::build("lp-linux", &params, &path(1000)).unwrap();
        let mut lost = loss(5, 9);
        lost.feedback.in_flight_before_bytes = 4_000;
        lp.on_feedback(&lost.feedback());
        // The first acknowledgement ends the repair, the tenth shows early congestion, the last comes after its inference phase.
        let times = (1000..1009).map(|now_ms| (now_ms, 25)).chain([(1010, 145), (1200, 40)]);
        for (now_ms, delay_ms) in times {
            let mut one = at(now_ms, delay_ms);
            one.feedback.in_flight_bytes = 9_000;
            lp.on_feedback(&one.feedback());
        }
        lp.snapshot().cwnd_bytes
    }

    #[test]
    fn what_was_counted_towards_growth_outlives_early_congestion_and_fractions_do_not() {
        let whole = after_early_congestion("whole");
        let fractions = after_early_congestion("fractions");
        assert_eq!(whole % 1000.0, 0.0, "{whole}");
        assert!(whole > fractions + 500.0 && fractions % 1000.0 > 0.0, "{whole}, {fractions}");
    }

    #[test]
    fn a_loss_halves_what_was_outstanding_or_what_is_left_under_way() {
        let left = |halves: &str| {
            let params = Params::new().with("halves", ParamValue::Word(halves.into()));
            let params = params.with("init_cwnd", ParamValue::Number(20.0));
            let mut lp = registry::build("lp-linux", &params, &path(1000)).unwrap();
            let mut lost = loss(5, 9);
            (lost.feedback.in_flight_before_bytes, lost.feedback.in_flight_bytes) = (20_000, 16_000);
            lp.on_feedback(&lost.feedback()).cwnd_bytes
        };
        assert_eq!((left("flight"), left("pipe")), (10_000, 8_000));
    }

    #[test]
    fn losses_are_renos() {
        let mut lp = registry::build("lp-linux26", &Params::new(), &path(1000)).unwrap();
        assert_eq!(lp.name(), "lp-linux26");
        let mut lost = loss(5, 9);
        lost.feedback.in_flight_before_bytes = 4000;
        assert_eq!(lp.on_feedback(&lost.feedback()).cwnd_bytes, 2000);
    }
}
