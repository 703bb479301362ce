//! PCC Vivace and PCC Proteus as primary, scavenger and hybrid: rates that follow the gradient of a utility, measured by
//! sending a little faster and a little slower for about one round trip each.
//!
//! Source: the authors' PCC-Uspace (30c2cfe); Dong et al., "PCC Vivace: Online-Learning Congestion Control" (NSDI 2018); Meng et
//! al., "PCC Proteus: Scavenger Transport And Beyond" (SIGCOMM 2020). Utilities are in `utility.rs`, monitor intervals in
//! `interval.rs` and `queue.rs`, noise tolerance in `noise.rs`, the control of the rate in `control.rs`; this file joins them
//! to a transport. The four controllers differ in their parameters alone. Vivace's noise rule is not in that code; the
//! threshold of 0.01 is that of the Vivace in WebRTC.
//!
//! A packet's tag is the serial number of its transmission. A new interval opens as a packet leaves, and its rate holds from
//! the next packet on, by a timer that is due at once. PCC has no congestion window; as a safety at most twice the rate times
//! the smoothed RTT and ten packets are under way, after a timeout two packets and from there by what is acknowledged, and
//! feedback that reports a loss does not raise it. Packets leave back to back for a millisecond at most, and only a sender
//! that fell behind does so.
//!
//! Losses, or a timeout, that turn out to be none (`crate::undo`; the authors' code knows no such thing) are struck out of intervals that
//! are pending. Where a conclusion has been drawn from them and the rate was higher before, that is withdrawn, and what is pending is left
//! aside; and the safety window is there again. An interval judges losses and the RTT in one, so what else it said is withdrawn with it.
//!
//! The lowest rate and the smallest change, 500 kbit/s, are too coarse for links of a few Mbit/s: they are parameters.
//!
//! With random loss beyond the break-even of its utility a primary does not collapse where intervals have few packets: two pairs
//! of three move it up and three of three down, which chance alone grants it more often (`tests/rate.rs`, check 6).
//!
//! *What it leaves out:* marks (ECN), which no utility here knows (`Controller::answers_marks`); what the files named say.
//! *How it was validated:* checks 1 to 3 by the vectors in those files; checks 4 to 7 in `tests/rate.rs`; the conformance
//! suite; and the published evaluation in `docs/ledbatpp.md`.

mod control;
mod interval;
mod noise;
mod params;
mod queue;
mod utility;

use crate::entry::Entry;
use crate::instruments::{LossEpoch, RttConfig, RttEstimator};
use crate::params::{ParamDoc, ParamError, Params, Settings};
use crate::undo::{Repair, Undo};
use crate::window::Bounds;
use crate::{Allowance, Controller, Feedback, PacketFact, Path, Phase, Sent, Snapshot, Tag, Timeout};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cede_units::{Duration, Instant, Rate, Stream};
use control::{Control, Evaluated, Mode, Tuning};
use interval::{Interval, Needs, Purpose};
use noise::{Noise, TrendTuning};
use params::{DEVIATION_WEIGHT, GRADIENT_TOLERANCE, PROTEUS_H, PROTEUS_P, PROTEUS_S, THRESHOLD, VIVACE};
use queue::{Batch, Event, Queue};
use utility::{Role, Utility};

/// The safety window.
const WINDOW_GAIN: f64 = 2.0;
const WINDOW_SPARE_PACKETS: f64 = 10.0;
const TIMEOUT_PACKETS: f64 = 2.0;
/// How long a sender that fell behind may send back to back.
const BURSTS_PER_SECOND: f64 = 1000.0;

pub(crate) const VIVACE_ENTRY: Entry = Entry {
    name: "vivace",
    summary: "PCC Vivace: follows the gradient of a utility of rate, RTT gradient and loss.",
    formula: "u = x^0.9 - 900 x max(0, dRTT/dt) - 11.35 x L; the rate moves by du/dx, measured by probes of +-5 %",
    source: "Dong et al., NSDI 2018; PCC-Uspace 30c2cfe",
    params: VIVACE,
    responsive: true,
    experimental: true,
    build: |params, path| build(&Kind { name: "vivace", docs: VIVACE }, params, path),
};

pub(crate) const PROTEUS_P_ENTRY: Entry = Entry {
    name: "proteus-p",
    summary: "PCC Proteus as a primary: Vivace's utility with tolerance for noise that adapts.",
    formula: "u_P = x^0.9 - 900 x max(0, dRTT/dt) - 11.35 x L, gradients within the noise being zero",
    source: "Meng et al., SIGCOMM 2020; PCC-Uspace 30c2cfe",
    params: PROTEUS_P,
    responsive: true,
    experimental: false,
    build: |params, path| build(&Kind { name: "proteus-p", docs: PROTEUS_P }, params, path),
};

pub(crate) const PROTEUS_S_ENTRY: Entry = Entry {
    name: "proteus-s",
    summary: "PCC Proteus as a scavenger: yields where RTTs begin to vary.",
    formula: "u_S = u_P - 1500 x sigma(RTT)",
    source: "Meng et al., SIGCOMM 2020; PCC-Uspace 30c2cfe",
    params: PROTEUS_S,
    responsive: true,
    experimental: false,
    build: |params, path| build(&Kind { name: "proteus-s", docs: PROTEUS_S }, params, path),
};

pub(crate) const PROTEUS_H_ENTRY: Entry = Entry {
    name: "proteus-h",
    summary: "PCC Proteus as a hybrid: a primary up to a rate that the application needs, a scavenger above.",
    formula: "u_H = u_P if x < threshold, else u_S",
    source: "Meng et al., SIGCOMM 2020; PCC-Uspace 30c2cfe",
    params: PROTEUS_H,
    responsive: true,
    experimental: false,
    build: |params, path| build(&Kind { name: "proteus-h", docs: PROTEUS_H }, params, path),
};

/// One of the four.
struct Kind {
    name: &'static str,
    docs: &'static [ParamDoc],
}

impl Kind {
    fn has(&self, doc: &ParamDoc) -> bool {
        self.docs.iter().any(|own| own.name == doc.name)
    }

    fn role(&self, settings: &Settings) -> Role {
        if self.has(&THRESHOLD) {
            Role::Hybrid { threshold_mbit: settings.rate(THRESHOLD.name).as_mbit_f64() }
        } else if self.has(&DEVIATION_WEIGHT) {
            Role::Scavenger
        } else {
            Role::Primary
        }
    }

    fn utility(&self, settings: &Settings) -> Utility {
        let yields = self.has(&DEVIATION_WEIGHT);
        Utility {
            role: self.role(settings),
            exponent: settings.number(params::EXPONENT.name),
            gradient_weight: settings.number(params::GRADIENT_WEIGHT.name),
            loss_weight: settings.number(params::LOSS_WEIGHT.name),
            deviation_weight: if yields { settings.number(DEVIATION_WEIGHT.name) } else { 0.0 },
        }
    }

    fn tuning(&self, settings: &Settings) -> Tuning {
        let pairs = |doc: &ParamDoc| if self.has(doc) { settings.count(doc.name) } else { 1 };
        let bits = |doc: &ParamDoc| settings.rate(doc.name).bits_per_sec() as f64;
        Tuning {
            min_rate: bits(&params::MIN_RATE),
            min_change: bits(&params::MIN_CHANGE),
            step: settings.number(params::PROBE_STEP.name),
            initial_rate: bits(&params::INITIAL_RATE),
            amplify_exponent: settings.number(params::AMPLIFY_EXPONENT.name),
            max_step: settings.number(params::MAX_STEP.name),
            max_step_more: settings.number(params::MAX_STEP_MORE.name),
            pairs: [pairs(&params::PRIMARY_PAIRS), pairs(&params::SCAVENGER_PAIRS)],
            role: self.role(settings),
        }
    }

    fn noise(&self, settings: &Settings) -> Noise {
        let micros = |doc: &ParamDoc| settings.duration(doc.name).as_nanos() as f64 / 1e3;
        let starting_rise_us = micros(&params::STARTING_RISE);
        if self.has(&GRADIENT_TOLERANCE) {
            return Noise::fixed(settings.number(GRADIENT_TOLERANCE.name), starting_rise_us);
        }
        let number = |doc: &ParamDoc| settings.number(doc.name);
        // What revokes the tolerance of a deviation means nothing to who does not yield to it.
        let of_scavenger = |doc: &ParamDoc| if self.has(doc) { number(doc) } else { 1.0 };
        let tuning = TrendTuning {
            weight: number(&params::AVERAGE_WEIGHT),
            intervals: settings.count(params::TREND_INTERVALS.name),
            trend_gains: [number(&params::TREND_GAIN_LOW), number(&params::TREND_GAIN_HIGH)],
            reset: number(&params::TREND_RESET),
            deviation_gain: of_scavenger(&params::DEVIATION_GAIN),
            deviation_min_us: micros(&params::DEVIATION_MIN),
            reset_share: of_scavenger(&params::RESET_SHARE),
        };
        Noise::adaptive(tuning, starting_rise_us)
    }

    fn by_slope(&self, settings: &Settings) -> bool {
        self.has(&params::REGRESSION_ERROR) && settings.word(params::REGRESSION_ERROR.name) == "slope"
    }
}

/// What intervals need, and when acknowledgements come in bursts.
fn queue_of(settings: &Settings) -> Queue {
    let needs = Needs {
        samples: settings.count(params::INTERVAL_SAMPLES.name) as u32,
        reliable_share: settings.number(params::RELIABLE_SHARE.name),
    };
    Queue::new(needs, settings.number(params::BURST_RATIO.name))
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Pcc {
    name: &'static str,
    bounds: Bounds,
    utility: Utility,
    noise: Noise,
    by_slope: bool,
    /// How long an interval lasts at least, in smallest RTTs.
    interval_rtts: f64,
    control: Control,
    queue: Queue,
    results: Vec<Evaluated>,
    random: Stream,
    rtt: RttEstimator,
    last_sample_at: Instant,
    serial: u32,
    window: f64,
    /// What a timeout left of the window.
    cap: f64,
    timer: Option<Instant>,
    epoch: LossEpoch,
    repair: Repair,
    undo: Undo<Before>,
}

/// What there was before the last loss or timeout.
#[derive(Clone, Debug)]
struct Before {
    epoch: LossEpoch,
    cap: f64,
    /// The control before the first conclusion from intervals with its losses, where one has been drawn.
    control: Option<Control>,
}

fn build(kind: &Kind, params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, kind.docs)?;
    let mut pcc = Pcc {
        name: kind.name,
        bounds: Bounds::of(path),
        utility: kind.utility(&settings),
        noise: kind.noise(&settings),
        by_slope: kind.by_slope(&settings),
        interval_rtts: settings.number(params::INTERVAL_RTTS.name),
        control: Control::new(kind.tuning(&settings)),
        queue: queue_of(&settings),
        results: Vec::new(),
        random: Stream::named(settings.number(params::SEED.name) as u64, "pcc/probes"),
        rtt: RttEstimator::new(RttConfig::default()),
        last_sample_at: Instant::ZERO,
        serial: 0,
        window: 0.0,
        cap: f64::INFINITY,
        timer: None,
        epoch: LossEpoch::new(),
        repair: Repair::default(),
        undo: Undo::new(),
    };
    pcc.set_window(f64::INFINITY);
    Ok(Box::new(pcc))
}

impl Pcc {
    /// The rate at which packets leave now, in bit/s.
    fn sending_rate(&self) -> f64 {
        self.queue.newest().map_or_else(|| self.control.rate(), |interval| interval.rate)
    }

    /// The safety window, at most `limit`.
    fn set_window(&mut self, limit: f64) {
        let rtt_s =
            if self.rtt.has_sample() { self.rtt.srtt().as_secs_f64() } else { control::INITIAL_RTT_S };
        let safety = WINDOW_GAIN * self.sending_rate() / 8.0 * rtt_s + WINDOW_SPARE_PACKETS * self.bounds.mss;
        if self.cap >= safety {
            self.cap = f64::INFINITY;
        }
        self.window = self.bounds.bound(safety.min(self.cap).min(limit), self.bounds.mss);
    }

    fn open_interval(&mut self, now: Instant) {
        let has_rtt = self.rtt.has_sample();
        let pending = self.queue.useful().count();
        let useful = has_rtt && pending < self.control.max_useful();
        let rate =
            if useful { self.control.next_rate(pending, &mut self.random) } else { self.control.rate() };
        let purpose = Purpose { useful, starting: self.control.mode() == Mode::Starting };
        let length = self.rtt.min().unwrap_or(Duration::ZERO).mul_f64(self.interval_rtts);
        self.queue.open(rate, purpose, length, self.serial, now);
    }

    /// Takes the RTT sample; answers with the gap since the one before.
    fn take_rtt(&mut self, feedback: &Feedback<'_>) -> Option<Duration> {
        let sample = feedback.rtt?;
        let is_first = !self.rtt.has_sample();
        self.rtt.update(sample);
        if is_first {
            self.control.on_first_rtt(sample.as_secs_f64());
        }
        let gap = if is_first { Duration::ZERO } else { feedback.now.since(self.last_sample_at) };
        self.last_sample_at = feedback.now;
        Some(gap)
    }

    fn begin_event(&mut self, feedback: &Feedback<'_>) {
        self.undo.note_event(feedback, Before { epoch: self.epoch, cap: self.cap, control: None });
        self.epoch.start(feedback.next_number);
        self.repair.begin(feedback);
        self.queue.begin_event();
    }

    /// A conclusion is certain to be drawn from one.
    fn begin_event_of_timeout(&mut self, timeout: &Timeout) {
        let (repairing, control) = (self.repair.is_under_way(), Some(self.control.clone()));
        self.undo.note_timeout(timeout, repairing, Before { epoch: self.epoch, cap: self.cap, control });
        if !repairing {
            self.queue.begin_event();
        }
        self.repair.end();
        self.epoch.start(timeout.next_number);
    }

    /// A conclusion is about to be drawn: where it is from losses that may turn out to be none, it can be withdrawn.
    fn note_doubtful(&mut self) {
        if self.queue.useful().any(Interval::is_doubtful)
            && let Some(before) = self.undo.pending()
        {
            before.control.get_or_insert_with(|| self.control.clone());
        }
    }

    /// The last losses, or the last timeout, were none.
    fn give_back(&mut self, was: Before) {
        self.epoch = was.epoch;
        self.repair.end();
        self.queue.absolve();
        if let Some(control) = was.control.filter(|control| control.rate() > self.control.rate()) {
            self.control = control;
            self.queue.remove_batch();
        }
        self.cap = self.cap.max(was.cap);
        self.set_window(f64::INFINITY);
    }

    fn conclude(&mut self, batch: Batch) {
        if batch == Batch::Available {
            self.note_doubtful();
            self.results.clear();
            for interval in self.queue.useful() {
                let seen = interval.statistics(self.bounds.mss, self.by_slope);
                let utility = self.utility.of(&self.noise.observe(&seen, interval.purpose.starting));
                self.results.push(Evaluated { rate: interval.rate, utility });
            }
            self.control.decide(&self.results);
        }
        if batch != Batch::Pending {
            self.queue.remove_batch();
        }
    }
}

impl Controller for Pcc {
    fn name(&self) -> &'static str {
        self.name
    }

    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.serial = self.serial.wrapping_add(1);
        if self.queue.wants_interval(sent.now, self.rtt.has_sample()) {
            self.open_interval(sent.now);
            self.timer = Some(sent.now);
        }
        self.queue.on_sent(self.serial, sent.bytes, sent.now);
        self.serial
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.repair.hear(feedback);
        if feedback.lost.last().is_some_and(|lost| self.epoch.is_new(lost.number)) {
            self.begin_event(feedback);
        }
        let gap = self.take_rtt(feedback);
        let batch = self.queue.on_event(&Event {
            now: feedback.now,
            acked: feedback.acked,
            lost: feedback.lost,
            rtt: self.rtt.latest().unwrap_or_default(),
            average_rtt: self.rtt.srtt(),
            gap,
        });
        self.conclude(batch);
        self.cap += feedback.acked_bytes as f64;
        let may_grow = feedback.lost.is_empty() && feedback.acknowledges();
        let limit = if may_grow { f64::INFINITY } else { self.window };
        self.set_window(limit);
        self.allowance()
    }

    fn on_forgotten(&mut self, packet: &PacketFact) {
        self.queue.forget(packet.tag, packet.bytes);
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some(was) = self.undo.take() {
            self.give_back(was);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        if !timeout.idle {
            self.begin_event_of_timeout(timeout);
            let batch = self.queue.settle(self.serial);
            self.conclude(batch);
            self.cap = TIMEOUT_PACKETS * self.bounds.mss;
            self.set_window(self.window);
        }
        self.allowance()
    }

    fn on_timer(&mut self, _: Instant) -> Allowance {
        self.timer = None;
        self.allowance()
    }

    fn timer(&self) -> Option<Instant> {
        self.timer
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.bounds.set_mss(mss_bytes);
        self.set_window(self.window);
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        let rate = self.sending_rate();
        let burst = (rate / 8.0 / BURSTS_PER_SECOND).max(self.bounds.mss);
        Allowance {
            cwnd_bytes: self.window as u64,
            pacing_rate: Some(Rate::from_bits_per_sec(rate as u64)),
            burst_bytes: burst as u32,
        }
    }

    fn answers_marks(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Snapshot {
        let phase = match self.control.mode() {
            Mode::Starting => "starting",
            Mode::Probing => "probing",
            Mode::DecisionMade => "moving",
        };
        let least = self.rtt.min();
        Snapshot {
            cwnd_bytes: self.window,
            pacing_rate: Some(Rate::from_bits_per_sec(self.sending_rate() as u64)),
            base_delay_ns: least.map(|rtt| i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX)),
            queueing_delay: self.rtt.latest().zip(least).map(|(latest, least)| latest.saturating_sub(least)),
            phase: Phase::Named(phase),
            ..Snapshot::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::interval::tests::{interval_of, vectors};
    use super::*;
    use crate::testing::{ack, path, timeout};
    use crate::{SendRecord, registry};

    #[test]
    fn check_2_the_utilities_of_intervals_have_the_vectors_values() {
        for case in vectors() {
            let statistics = interval_of(&case).statistics(1500.0, false);
            for (name, key) in [("proteus-p", "u_P_if_tol_as_general"), ("proteus-s", "u_S")] {
                let docs = registry::find(name).unwrap().params;
                let settings = Settings::resolve(&Params::new(), docs).unwrap();
                let utility = Kind { name, docs }.utility(&settings);
                let found =
                    utility.of(&Noise::adaptive(noise::tests::USUAL, 1000.0).observe(&statistics, false));
                let wanted = case[key].as_f64().unwrap();
                assert!(
                    (found - wanted).abs() < 1e-6 * wanted.abs(),
                    "{} {name}: {found}, {wanted}",
                    case["case"]
                );
            }
        }
    }

    #[test]
    fn a_new_interval_asks_for_its_rate_at_once() {
        let mut pcc = registry::build("proteus-s", &Params::new(), &path(1500)).unwrap();
        let now = Instant::from_millis(5);
        let sent = |number| Sent { now, number, bytes: 1500, in_flight_bytes: 1500, retransmission: false };
        assert_eq!((pcc.on_sent(&sent(0)), pcc.timer()), (1, Some(now)));
        pcc.on_timer(now);
        assert_eq!((pcc.on_sent(&sent(1)), pcc.timer()), (2, None));
        assert_eq!(pcc.allowance().pacing_rate, Some(Rate::from_bits_per_sec(1_120_000)));
    }

    /// Packets that leave at the rate that is allowed, and of which something is heard 100 ms later.
    struct Line {
        pcc: Box<dyn Controller>,
        under_way: alloc::collections::VecDeque<PacketFact>,
        next_number: u64,
        next_at: Instant,
        now: Instant,
    }

    impl Line {
        fn new() -> Self {
            let pcc = registry::build("vivace", &Params::new(), &path(1500)).unwrap();
            let start = Instant::from_secs(1);
            Self { pcc, under_way: Default::default(), next_number: 0, next_at: start, now: start }
        }

        fn mbit(&self) -> f64 {
            self.pcc.allowance().pacing_rate.unwrap().as_mbit_f64()
        }

        fn send(&mut self) {
            let (number, sent_at) = (self.next_number, self.next_at);
            let in_flight_bytes = 1500 * (self.under_way.len() as u64 + 1);
            let sent = Sent { now: sent_at, number, bytes: 1500, in_flight_bytes, retransmission: false };
            let tag = self.pcc.on_sent(&sent);
            self.pcc.on_timer(sent_at);
            let record = SendRecord::default();
            let fact = PacketFact { number, bytes: 1500, sent_at, retransmitted: false, tag, record };
            self.under_way.push_back(fact);
            self.next_number += 1;
            self.next_at += Duration::from_secs_f64(0.012 / self.mbit());
        }

        /// The next departure, or the oldest packet's fate.
        fn step(&mut self, loses: impl Fn(u64) -> bool) {
            let heard_at = self.under_way.front().map(|fact| fact.sent_at + Duration::from_millis(100));
            let Some(heard_at) = heard_at.filter(|&at| at <= self.next_at) else { return self.send() };
            let fact = [self.under_way.pop_front().unwrap()];
            self.now = heard_at;
            let mut news = ack(0, 1500).feedback;
            (news.now, news.next_number) = (heard_at, self.next_number);
            (news.rtt, news.srtt) = (Some(Duration::from_millis(100)), Duration::from_millis(100));
            if loses(fact[0].number) {
                (news.acked_bytes, news.lost_bytes, news.rtt) = (0, 1500, None);
                self.pcc.on_feedback(&Feedback { lost: &fact, ..news });
            } else {
                self.pcc.on_feedback(&Feedback { acked: &fact, ..news });
            }
        }
    }

    /// One in its first rise whose intervals of two and a half round trips all fare well, just before the next packet is heard of.
    fn rising() -> Line {
        let mut line = Line::new();
        while line.mbit() < 4.0 {
            line.step(|_| false);
        }
        line
    }

    #[test]
    fn a_conclusion_from_losses_that_were_none_is_withdrawn() {
        let mut line = rising();
        let mut before = line.mbit();
        (0..500).find(|_| {
            line.step(|number| number % 2 == 0);
            let fell = line.mbit() < 0.8 * before;
            before = line.mbit().max(before);
            fell
        });
        assert_eq!(line.pcc.snapshot().phase, Phase::Named("probing"));
        line.pcc.on_undo();
        assert_eq!((line.mbit(), line.pcc.snapshot().phase), (before, Phase::Named("starting")));
        line.pcc.on_undo();
        assert_eq!(line.mbit(), before, "once");
    }

    #[test]
    fn losses_that_were_none_are_struck_out_of_intervals_that_are_pending() {
        let after = |undone: bool| {
            let mut line = rising();
            let first = line.next_number;
            let last = first + 9;
            while line.under_way[0].number < first + 500 {
                let is_last = line.under_way[0].number == last;
                line.step(|number| (first..=last).contains(&number));
                if undone && is_last && line.under_way[0].number > last {
                    line.pcc.on_undo();
                }
            }
            line.mbit()
        };
        assert!(after(true) > 2.0 * after(false), "{}, {}", after(true), after(false));
    }

    #[test]
    fn a_timeout_that_was_none_gives_back_rate_and_window() {
        let mut line = rising();
        (0..40).for_each(|_| line.step(|_| false));
        let before = (line.mbit(), line.pcc.allowance().cwnd_bytes);
        line.pcc.on_timeout(&timeout(30_000, 1));
        assert_eq!(line.pcc.allowance().cwnd_bytes, 3000);
        line.pcc.on_timeout(&timeout(3_000, 2));
        line.pcc.on_undo();
        assert_eq!((line.mbit(), line.pcc.allowance().cwnd_bytes), before);
    }
}
