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
//! *What it leaves out:* clocks of two rates: both tick by `stamp_tick`; what an indication within a repair does to the window until
//! the repair ends, and samples from duplicate acknowledgements, which ns-3 takes: neither moves ns-3's own results when it is taken out.
//! *How it was validated:* the vectors of `tests/vectors/tcp_lp.json`, and the numbered checks here and in
//! `tests/background.rs`; the conformance suite; beside Reno, with ns-2 and ns-3 (`docs/validation.md`).

use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings};
use crate::reno::INIT_CWND;
use crate::reno_window::{News, RenoWindow};
use crate::vegas_rule::AT_SSTHRESH;
use crate::{Allowance, Controller, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Duration, Instant};

/// Hertz of our own clock, and the resolution in which delays are reckoned.
const OUR_HZ: u64 = 1000;
/// An inference phase lasts so many RTTs.
const INFERENCE_RTTS: u64 = 3;
/// Before the first sample the smallest delay is this.
const NO_MIN: u64 = 0xffff_ffff;
/// Timestamps have so many bits on the wire, whatever the host's numbers have.
const STAMP_MASK: u64 = 0xffff_ffff;

const fn bits_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "bits",
        kind: ParamKind::Word(&["32", "32-delay", "64"]),
        default,
        doc: "Width of the unsigned numbers: 32 wraps delays below zero to 4 10^9, and their average as well; 32-delay wraps delays alone; 64 takes their absolute value.",
    }
}

const CLOCK_RATE: ParamDoc = ParamDoc {
    name: "clock_rate",
    kind: ParamKind::Word(&["estimated", "known"]),
    default: "estimated",
    doc: "The rate of the peer's clock: estimated from its stamps, as Linux does, or known.",
};

const STAMP_TICK: ParamDoc = ParamDoc {
    name: "stamp_tick",
    kind: ParamKind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(1) },
    default: "1 ms",
    doc: "One tick of the timestamps that delays are reckoned from.",
};

const STAMP_ROUNDING: ParamDoc = ParamDoc {
    name: "stamp_rounding",
    kind: ParamKind::Word(&["down", "nearest"]),
    default: "down",
    doc: "How a time becomes a stamp: down as in Linux, to the nearest tick as in ns-2; the transport's own must be finer.",
};

const PERCENT: ParamDoc = ParamDoc {
    name: "percent",
    kind: ParamKind::Count { min: 0, max: 100 },
    default: "15",
    doc: "Where between the smallest and the largest delay congestion begins.",
};

const BOUNDARY: ParamDoc = ParamDoc {
    name: "boundary",
    kind: ParamKind::Word(&["strict", "inclusive"]),
    default: "strict",
    doc: "Whether a delay equal to the threshold is congestion (strict: Linux) or not (inclusive: ns-3).",
};

const RESET_EXTREMES: ParamDoc = ParamDoc {
    name: "reset_extremes",
    kind: ParamKind::Switch,
    default: "on",
    doc: "Early congestion moves the smallest and the largest delay, as in Linux; off: it leaves them.",
};

const JUDGE_REPAIRS: ParamDoc = ParamDoc {
    name: "judge_repairs",
    kind: ParamKind::Switch,
    default: "on",
    doc: "Acknowledgements inside of a repair are judged as well, as in Linux, ns-2 and ns-3: they move the extremes and begin inference.",
};

const INFERENCE_HOLDS: ParamDoc = ParamDoc {
    name: "inference_holds",
    kind: ParamKind::Word(&["growth", "avoidance"]),
    default: "growth",
    doc: "What waits in an inference phase: all growth as in Linux, or congestion avoidance alone as in ns-3.",
};

const HALVES: ParamDoc = ParamDoc {
    name: "halves",
    kind: ParamKind::Word(&["flight", "pipe"]),
    default: "flight",
    doc: "What a loss halves: what is outstanding, the window at most (RFC 5681, Linux), or what is left of it without arrived and lost packets (ns-3).",
};

const GROWTH: ParamDoc = ParamDoc {
    name: "growth",
    kind: ParamKind::Word(&["whole", "fractions"]),
    default: "whole",
    doc: "Avoidance adds a packet for each window acknowledged, and what early congestion cuts keeps what has been counted towards it (Linux), or a fraction per acknowledgement, which goes with what is cut (ns-3).",
};

const MIN_CWND: ParamDoc = ParamDoc {
    name: "min_cwnd",
    kind: ParamKind::Number { min: 1.0, max: 1_000.0 },
    default: "1",
    doc: "Packets that early congestion within an inference phase leaves (the paper: none; Linux: 1).",
};

const fn params(bits: &'static str, at_ssthresh: &'static str) -> [ParamDoc; 14] {
    let (bits, at_ssthresh) = (bits_param(bits), ParamDoc { default: at_ssthresh, ..AT_SSTHRESH });
    [
        bits,
        CLOCK_RATE,
        STAMP_TICK,
        STAMP_ROUNDING,
        PERCENT,
        BOUNDARY,
        RESET_EXTREMES,
        INFERENCE_HOLDS,
        JUDGE_REPAIRS,
        at_ssthresh,
        HALVES,
        GROWTH,
        MIN_CWND,
        INIT_CWND,
    ]
}

const PARAMS: &[ParamDoc] = &params("64", "off");
const PARAMS_26: &[ParamDoc] = &params("32", "on");

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

/// Where the delays stand, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Owd {
    /// What an unsigned number can hold: a delay, and everything else.
    delay_mask: u64,
    mask: u64,
    known_rate: bool,
    percent: u64,
    inclusive: bool,
    reset_extremes: bool,
    rate_hz: u64,
    /// The stamps of the last acknowledgement, ours and the peer's.
    last_stamps: Option<(u64, u64)>,
    /// Eight times the smoothed delay; 0: none.
    smoothed8: u64,
    min: u64,
    max: u64,
    reserve: u64,
}

impl Owd {
    fn of(settings: &Settings) -> Self {
        Self {
            delay_mask: if settings.word("bits") == "64" { u64::MAX } else { STAMP_MASK },
            mask: if settings.word("bits") == "32" { STAMP_MASK } else { u64::MAX },
            known_rate: settings.word("clock_rate") == "known",
            percent: settings.count("percent") as u64,
            inclusive: settings.word("boundary") == "inclusive",
            reset_extremes: settings.switch("reset_extremes"),
            rate_hz: 0,
            last_stamps: None,
            smoothed8: 0,
            min: NO_MIN,
            max: 0,
            reserve: 0,
        }
    }

    fn smoothed(&self) -> u64 {
        self.smoothed8 >> 3
    }

    fn minus(&self, a: u64, b: u64) -> u64 {
        a.wrapping_sub(b) & self.mask
    }

    fn times(&self, a: u64, b: u64) -> u64 {
        a.wrapping_mul(b) & self.mask
    }

    /// Step 1. The average is kept in whole Hertz, which lets it fall by steps of one and rise only by errors of 64.
    fn estimate_rate(&mut self, ours: u64, theirs: u64) {
        if self.known_rate {
            self.rate_hz = OUR_HZ;
            return;
        }
        let Some((last_ours, last_theirs)) = self.last_stamps.replace((ours, theirs)) else { return };
        if last_ours == ours || last_theirs == theirs {
            return;
        }
        let theirs_passed = self.times(OUR_HZ, self.minus(theirs, last_theirs));
        let seen = (theirs_passed / self.minus(ours, last_ours).max(1)) as i64;
        let known = self.rate_hz as i64;
        let next =
            if known > 0 { known.wrapping_mul(64).wrapping_add(seen.wrapping_sub(known)) >> 6 } else { seen };
        self.rate_hz = next as u64 & self.mask;
    }

    /// Step 2; none where it is 0 or the rate is not known.
    fn delay(&self, ours: u64, theirs: u64) -> Option<u64> {
        if self.rate_hz == 0 {
            return None;
        }
        let difference = theirs.wrapping_mul(OUR_HZ / self.rate_hz).wrapping_sub(ours) & self.delay_mask;
        Some((difference as i64).unsigned_abs()).filter(|&delay| delay > 0)
    }

    /// Step 3 and the smoothing.
    fn add(&mut self, delay: u64) {
        self.min = self.min.min(delay);
        if delay > self.max {
            if delay > self.reserve {
                self.max = if self.reserve == 0 { delay } else { self.reserve };
                self.reserve = delay;
            } else {
                self.max = delay;
            }
        }
        self.smoothed8 = if self.smoothed8 == 0 {
            self.times(delay, 8)
        } else {
            self.smoothed8.wrapping_add(delay.wrapping_sub(self.smoothed())) & self.mask
        };
    }

    fn threshold(&self) -> u64 {
        let part = self.times(self.percent, self.minus(self.max, self.min)) / 100;
        self.min.wrapping_add(part) & self.mask
    }

    /// Step 4: early congestion?
    fn is_early(&self) -> bool {
        let (smoothed, threshold) = (self.smoothed(), self.threshold());
        smoothed > threshold || (smoothed == threshold && !self.inclusive)
    }

    /// What follows from early congestion for the delays.
    fn reset(&mut self) {
        if self.reset_extremes {
            self.min = self.smoothed();
            self.max = self.smoothed8 >> 2;
            self.reserve = self.max;
        }
    }
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct LpLinux {
    name: &'static str,
    tick: Duration,
    nearest: bool,
    owd: Owd,
    window: RenoWindow,
    min_packets: f64,
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
            self.inference = rtt * INFERENCE_RTTS;
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
        let above = self.owd.smoothed().saturating_sub(self.owd.min);
        let queueing_delay = (self.owd.smoothed8 > 0).then(|| self.tick * above);
        Snapshot { phase, queueing_delay, ..snapshot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Owned, ack, loss, path};
    use crate::{ParamValue, registry};

    fn owd(params: &Params) -> Owd {
        Owd { rate_hz: OUR_HZ, ..Owd::of(&Settings::resolve(params, PARAMS).unwrap()) }
    }

    /// The rows of the vectors: sample, smoothed, min, max, reserve, threshold, early, and min, max, reserve after it.
    fn check_vectors(set: &str, case: &str, params: &Params, early: &[usize]) {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../tests/vectors/tcp_lp.json")).unwrap();
        let mut owd = owd(params);
        let mut found = alloc::vec::Vec::new();
        for (k, row) in vectors[set][case].as_array().unwrap().iter().enumerate() {
            owd.add(row[0].as_u64().unwrap());
            let before = [owd.smoothed(), owd.min, owd.max, owd.reserve, owd.threshold()];
            if owd.is_early() {
                owd.reset();
                found.push(k + 1);
            }
            let after = [owd.min, owd.max, owd.reserve];
            assert_eq!(
                serde_json::json!(before).as_array().unwrap()[..],
                row.as_array().unwrap()[1..6],
                "{row}"
            );
            assert_eq!(
                serde_json::json!(after).as_array().unwrap()[..],
                row.as_array().unwrap()[7..10],
                "{row}"
            );
            assert_eq!(found.last() == Some(&(k + 1)), row[6].as_bool().unwrap(), "{row}");
        }
        assert_eq!(found, early, "{set} {case}");
    }

    const LINUX: &str = "linux[x,sowd>>3,min,max,rsv,thr,ECI,min_after,max_after,rsv_after]";

    #[test]
    fn check_2_synchronised_clocks() {
        check_vectors(LINUX, "synced", &Params::new(), &[1, 9, 13, 17, 18]);
        let inclusive = Params::new().with("boundary", ParamValue::Word("inclusive".into()));
        check_vectors("ns3(<=)", "synced", &inclusive, &[6, 12, 17]);
    }

    #[test]
    fn check_3_a_clock_100_ms_ahead() {
        check_vectors(LINUX, "offset100", &Params::new(), &[1, 7, 9]);
        let mut far = owd(&Params::new());
        far.add(125);
        far.reset();
        assert_eq!((far.min, far.max, far.threshold()), (125, 250, 143), "18 ms above, not 4");
    }

    #[test]
    fn a_rate_above_1000_leaves_only_our_stamp() {
        let delay = |bits: &str| {
            let mut owd = owd(&Params::new().with("bits", ParamValue::Word(bits.into())));
            owd.rate_hz = 1001;
            owd.delay(7000, 7030)
        };
        assert_eq!((delay("64"), delay("32")), (Some(7000), Some((1 << 32) - 7000)));
        assert_eq!(owd(&Params::new()).delay(7000, 7030), Some(30));
    }

    #[test]
    fn with_32_bits_two_such_delays_blind_the_flow() {
        let mut owd = owd(&Params::new().with("bits", ParamValue::Word("32".into())));
        owd.add(25);
        owd.reset();
        // The largest is forgotten, the second largest is not.
        owd.add((1 << 32) - 7000);
        owd.add((1 << 32) - 7001);
        for _ in 0..400 {
            owd.add(145);
        }
        assert!(owd.threshold() > 1_000_000 && !owd.is_early(), "{owd:?}");
    }

    #[test]
    fn the_rate_falls_one_by_one_and_rises_only_by_large_errors() {
        let mut owd = Owd { rate_hz: 0, ..owd(&Params::new()) };
        owd.estimate_rate(0, 0);
        owd.estimate_rate(1, 2);
        assert_eq!(owd.rate_hz, 2000, "the first is taken as it is");
        let (mut ours, mut theirs, mut steps) = (1, 2, 0);
        while owd.rate_hz > 1000 {
            (ours, theirs, steps) = (ours + 10, theirs + 10, steps + 1);
            owd.estimate_rate(ours, theirs);
        }
        assert!((100..300).contains(&steps), "{steps} acknowledgements of garbage");
        owd.estimate_rate(ours + 1000, theirs + 1063);
        assert_eq!(owd.rate_hz, 1000);
        owd.estimate_rate(ours + 2000, theirs + 2127);
        assert_eq!(owd.rate_hz, 1001);
    }

    /// Where the rate settles for packets `gap_us` apart whose stamps lie `shift_us` apart on the grid of 1.2 ms.
    fn settled(gap_us: u64, shift_us: u64) -> (u64, u64) {
        let mut owd = Owd { rate_hz: OUR_HZ, ..owd(&Params::new()) };
        let mut range = (u64::MAX, 0);
        for k in 0..4000 {
            let tick = |us: u64| (us + 500) / 1000;
            owd.estimate_rate(tick(k * gap_us + 130 + shift_us), tick(k * gap_us + 130));
            if k > 1000 {
                range = (range.0.min(owd.rate_hz), range.1.max(owd.rate_hz));
            }
        }
        range
    }

    #[test]
    fn the_rate_of_packets_next_to_each_other_is_wrong_and_of_those_far_apart_it_is_not() {
        for shift in 1..5 {
            let (low, high) = settled(1200, shift * 1200);
            assert!(low >= 1053 && high <= 1076, "neighbours: {low} to {high}");
            let (low, high) = settled(2400, shift * 1200);
            assert!(low >= 994 && high <= 1051, "one between: {low} to {high}");
            assert!(settled(4800, shift * 1200).1 < 1000, "three between");
        }
    }

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
