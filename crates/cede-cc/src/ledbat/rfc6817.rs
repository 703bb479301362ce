//! LEDBAT as RFC 6817 specifies it.
//!
//! Source: RFC 6817, section 2.4.2, per acknowledgement of `a` octets with flight size `f` before it:
//! ```text
//! q    = FILTER(current_delays) - MIN(base_delays)
//! off  = (TARGET - q) / TARGET
//! cwnd = cwnd + GAIN * off * a * MSS / cwnd
//! cwnd = min(cwnd, f + ALLOWED_INCREASE * MSS)
//! cwnd = max(cwnd, MIN_CWND * MSS)
//! ```
//! loss or mark, once per window: `cwnd = min(cwnd, max(cwnd / 2, MIN_CWND * MSS))`; timeout: `cwnd = MSS`.
//!
//! Where it leaves the plain rule, each by a parameter: `correct_drift` and `hold_base` (on; the reasons are at the
//! head of `instruments/queueing_delay.rs`), and `slow_start` (on), which the RFC permits without saying how. Growth is
//! TCP's, times what is left of the way from the empty queue to `slow_start_exit` times TARGET: the queue answers a round
//! trip late, so a window that doubled until it hears of that mark would end far beyond TARGET. After the first such
//! landing the window approaches at an eighth of that growth, times what is left of the way to TARGET, up to nine tenths
//! of it: equation 2.4.2 alone would need minutes on long fast paths. A loss ends both. `fast_start` (off, and on for
//! streams of `cede-real`) lets the first slow start treble what is acknowledged while the queue is below a twentieth of
//! TARGET: a window that has left at four times its own rate, as transports pace it then, and has met no queue, has shown
//! that there is room for one four times as large (compare SUSS, Arghavani et al., SIGCOMM 2024). The first window leaves at
//! sixteen times its rate; once its last packet has met no queue either, the window is sixteen times as large. A queue beyond that
//! twentieth holds the window for a round trip, after which it shows what the window makes of it: TCP's growth goes on from
//! there, or the fast one where it was a passing one. It is the one place in which this ramps up faster than TCP. `decrease_gain` (3) makes a flow
//! give way in 6 s where the plain rule takes 10, beside the kernel's CUBIC, whose own start is careful (10 Mbit/s, 1 s of
//! buffer).
//!
//! *What it leaves out:* the late-comer's advantage is not mended here (see `fledbat` and, later, LEDBAT++); a flow
//! whose floor of two packets is itself a queue beyond the target cannot see its base.
//! *How it was validated:* the steps of `tests/vectors/ledbat.json`; the conformance suite; the link runs of
//! `tests/link.rs`, which hold checks on target, utilisation, drift and route changes.

use super::delay_window::{
    BASE_HISTORY, CLAMP, DelayWindow, FILTER_LENGTH, FILTER_WEIGHT, Steered, drift_param, filter_param,
    hold_param, packets_param, slow_start_param, target_param,
};
use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings, number};
use crate::signal::signal_param;
use crate::undo::Undo;
use crate::window::congested_number;
use crate::{Allowance, Controller, Feedback, Path, Snapshot, Timeout};
use alloc::boxed::Box;

const PARAMS: &[ParamDoc] = &[
    target_param("100 ms"),
    signal_param("owd"),
    number(
        "gain",
        "1",
        (0.001, 100.0),
        "Packets per round trip by which an empty queue raises the window (RFC 6817: at most 1).",
    ),
    number(
        "decrease_gain",
        "3",
        (0.0, 100.0),
        "The gain above the target; 0 takes that of gain, as the formula has it.",
    ),
    CLAMP,
    number(
        "allowed_increase",
        "1",
        (0.001, 1000.0),
        "Packets by which the window may exceed what is under way (ALLOWED_INCREASE).",
    ),
    BASE_HISTORY,
    filter_param("min"),
    FILTER_LENGTH,
    FILTER_WEIGHT,
    packets_param("min_cwnd", "2", "The smallest window in packets, but after a timeout (MIN_CWND)."),
    packets_param("init_cwnd", "2", "The initial window in packets (INIT_CWND)."),
    slow_start_param("on"),
    number(
        "slow_start_exit",
        "0.35",
        (0.01, 100.0),
        "Queueing delay, as a share of the target, at which growth as TCP's has faded out.",
    ),
    number(
        "approach",
        "0.125",
        (0.0, 1.0),
        "What slow start's growth is multiplied by after its first landing, times what is left of the way to the target; 0: the rule alone.",
    ),
    number(
        "approach_end",
        "0.9",
        (0.0, 1.0),
        "Queueing delay, as a share of the target, at which that is over.",
    ),
    ParamDoc {
        name: "fast_start",
        kind: ParamKind::Switch,
        default: "off",
        doc: "Grow up to twice as fast as TCP's slow start while there is no queue, after a first window up to four times; \
              for transports that pace.",
    },
    drift_param("on"),
    hold_param("on"),
];

pub(crate) const ENTRY: Entry = Entry {
    name: "ledbat",
    summary: "LEDBAT (RFC 6817): yields as the queueing delay nears its target.",
    formula: "q = filtered delay - base delay; cwnd += GAIN * (TARGET - q)/TARGET * acked * MSS/cwnd; \
              cwnd <= flight + ALLOWED_INCREASE * MSS; loss: cwnd/2; timeout: MSS",
    source: "RFC 6817 section 2.4.2",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

/// Where the queue is empty, a fast start adds so many octets to each that slow start adds.
const FAST_GROWTH: f64 = 2.0;
/// After a first window that met no queue the next is so many times as large: transports pace the first at that many times
/// its own rate.
const FIRST_GROWTH: f64 = 16.0;
/// A fast start is TCP's from this part of the target on.
const FAST_END: f64 = 0.05;

#[derive(Clone, Copy, PartialEq, Debug)]
struct Config {
    target_ns: f64,
    gain: f64,
    decrease_gain: f64,
    clamp: bool,
    allowed_increase: f64,
    slow_start: bool,
    slow_start_exit: f64,
    /// What the growth of slow start is multiplied by in the approach: half of Conservative Slow Start's (RFC 9406, section
    /// 4.2), so that the round trip by which the queue answers late does not carry the window past the target.
    approach: f64,
    /// The approach ends at this part of the target: the rest is the controller's own.
    approach_end: f64,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Ledbat {
    config: Config,
    window: DelayWindow,
    /// The first slow start is over, and the queue not yet near its target.
    approaches: bool,
    fast: FastStart,
    /// Before the last loss: the window, whether it approached, and the fast start.
    undo: Undo<(Steered, bool, FastStart)>,
}

/// Where a fast start stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FastStart {
    /// There was none, or it is over.
    Over,
    /// Nothing was acknowledged yet.
    Unheard,
    /// The first window, of so many octets, is over when a packet behind this number is acknowledged.
    First {
        last: u64,
        bytes: u32,
    },
    Growing,
    /// The window stays as it is until a packet from this number on is acknowledged.
    Held {
        until: u64,
    },
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let gain = settings.number("gain");
    let decrease_gain = settings.number("decrease_gain");
    let config = Config {
        target_ns: settings.duration("target").as_nanos() as f64,
        gain,
        decrease_gain: if decrease_gain > 0.0 { decrease_gain } else { gain },
        clamp: settings.switch("clamp"),
        allowed_increase: settings.number("allowed_increase"),
        slow_start: settings.switch("slow_start"),
        slow_start_exit: settings.number("slow_start_exit"),
        approach: settings.number("approach"),
        approach_end: settings.number("approach_end"),
    };
    let fast = if settings.switch("fast_start") { FastStart::Unheard } else { FastStart::Over };
    let window = DelayWindow::new(&settings, path, config.slow_start);
    Ok(Box::new(Ledbat { config, window, approaches: false, fast, undo: Undo::new() }))
}

impl Ledbat {
    /// How far off the target, in [-infinity, 1], times the gain.
    fn scaled_offset(&self, queueing_ns: i64) -> f64 {
        let offset = (self.config.target_ns - queueing_ns as f64) / self.config.target_ns;
        let gain = if offset < 0.0 { self.config.decrease_gain } else { self.config.gain };
        if self.config.clamp { (gain * offset).min(1.0) } else { gain * offset }
    }

    /// What an acknowledgement adds to the window, and how large the window may get.
    fn on_ack(&mut self, feedback: &Feedback<'_>, queueing_ns: i64) {
        let (acked, flight) = (feedback.acked_bytes as f64, feedback.in_flight_before_bytes as f64);
        let (cwnd, mss) = (self.window.cwnd, self.window.bounds.mss);
        let allowed = flight + self.config.allowed_increase * mss;
        if let Some(growth) = self.start_up(feedback, queueing_ns) {
            // What is acknowledged counts in octets: acknowledgements may answer many packets, or come in batches.
            let most = flight * (1.0 + growth.max(1.0));
            return self.window.set((cwnd + acked * growth).min(allowed.max(most)));
        }
        // Two short chains of arithmetic in place of one long one: the share does not wait for the delay.
        let share = acked * mss / cwnd;
        self.window.set((cwnd + self.scaled_offset(queueing_ns) * share).min(allowed));
    }

    /// Octets by which one that is acknowledged raises the window while the flow starts up; none once it has.
    fn start_up(&mut self, feedback: &Feedback<'_>, queueing_ns: i64) -> Option<f64> {
        let queueing = queueing_ns as f64 / self.config.target_ns;
        if self.window.in_slow_start() {
            if queueing < self.config.slow_start_exit {
                let growth = (1.0 - queueing / self.config.slow_start_exit).min(1.0);
                return Some(self.fast_start(feedback, queueing, growth));
            }
            self.fast = FastStart::Over;
            self.approaches = self.window.ssthresh.is_infinite();
            self.window.ssthresh = self.window.cwnd;
        }
        self.approaches &= self.config.approach > 0.0 && queueing < self.config.approach_end;
        self.approaches.then_some(self.config.approach * (1.0 - queueing))
    }

    /// The growth of slow start, as a fast start changes it.
    fn fast_start(&mut self, feedback: &Feedback<'_>, queueing: f64, growth: f64) -> f64 {
        let was = self.fast;
        self.fast = self.follow_fast_start(feedback, queueing);
        match (was, self.fast) {
            (_, FastStart::Over) => growth,
            (_, FastStart::Held { .. }) => 0.0,
            (FastStart::First { bytes, .. }, FastStart::Growing) => {
                let room = FIRST_GROWTH * f64::from(bytes) - self.window.cwnd;
                (room / feedback.acked_bytes as f64).max(growth)
            }
            _ => growth + FAST_GROWTH * (1.0 - queueing.max(0.0) / FAST_END),
        }
    }

    fn follow_fast_start(&self, feedback: &Feedback<'_>, queueing: f64) -> FastStart {
        let newest = feedback.acked.last().map_or(0, |packet| packet.number);
        let queues = queueing >= FAST_END;
        match self.fast {
            FastStart::Over => FastStart::Over,
            FastStart::Held { until } if newest < until => self.fast,
            FastStart::Held { .. } if queues => FastStart::Over,
            _ if queues => FastStart::Held { until: feedback.next_number },
            FastStart::Unheard => FastStart::First {
                last: feedback.next_number.saturating_sub(1),
                bytes: feedback.in_flight_before_bytes.min(u64::from(u32::MAX)) as u32,
            },
            FastStart::First { last, .. } if newest < last => self.fast,
            _ => FastStart::Growing,
        }
    }

    /// Section 2.4.2, `on data loss`, and no higher than it stood before this feedback.
    fn cut(&mut self, before: f64) {
        let half = (before / 2.0).max(self.window.floor());
        self.window.cwnd = before.min(half);
        self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd);
        self.approaches = false;
        self.fast = FastStart::Over;
    }
}

impl Controller for Ledbat {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let before = self.window.cwnd;
        let queueing = self.window.measure(feedback);
        if let Some(queueing_ns) = queueing.filter(|_| feedback.acked_bytes > 0) {
            self.on_ack(feedback, queueing_ns);
        }
        if let Some(number) = congested_number(feedback) {
            self.window.cwnd = self.window.cwnd.min(before);
            if self.window.is_new_event(number) {
                self.undo.note_event(feedback, (self.window.present(), self.approaches, self.fast));
                self.window.begin_event(feedback);
                self.cut(before);
            }
        }
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some((was, approaches, fast)) = self.undo.take() {
            self.window.give_back(&was);
            (self.approaches, self.fast) = (approaches, fast);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.undo.forget();
        // Of the window: what is under way when a repair is given up is next to nothing.
        let half = (self.window.cwnd / 2.0).max(self.window.floor());
        self.approaches = false;
        self.fast = FastStart::Over;
        self.window.on_timeout(timeout, if self.config.slow_start { half } else { self.window.ssthresh })
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.window.on_mss(mss_bytes)
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }

    fn snapshot(&self) -> Snapshot {
        self.window.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;
    use crate::testing::{Owned, ack, loss, path, timeout};
    use crate::{ParamValue, registry};
    use cede_units::Instant;

    const MS: i64 = 1_000_000;

    fn ledbat(params: &Params) -> Box<dyn Controller> {
        let mut ledbat = registry::build("ledbat", params, &path(1500)).unwrap();
        let mut base = ack(0, 0);
        base.feedback.one_way_delay_ns = Some(-7 * MS);
        ledbat.on_feedback(&base.feedback());
        ledbat
    }

    /// The steady rule alone.
    fn plain() -> Params {
        Params::new().with("slow_start", ParamValue::Switch(false))
    }

    /// One packet acknowledged with this queueing delay, an hour of RTTs apart so that the filter keeps nothing old.
    fn at(number: u64, queueing_ms: i64, in_flight_before_bytes: u64) -> Owned {
        let mut one = ack(number, 1500);
        one.feedback.now = Instant::from_millis(1000 + 200 * number);
        one.feedback.one_way_delay_ns = Some((queueing_ms - 7) * MS);
        one.feedback.in_flight_before_bytes = in_flight_before_bytes;
        one
    }

    /// A flow with this window, with the RFC's parameters but for those named.
    fn with_window(cwnd: f64, target_ns: f64, gain: f64) -> Ledbat {
        let config = Config {
            target_ns,
            gain,
            decrease_gain: gain,
            clamp: true,
            allowed_increase: 1.0,
            slow_start: false,
            slow_start_exit: 0.75,
            approach: 0.125,
            approach_end: 0.9,
        };
        let settings = Settings::resolve(&Params::new(), PARAMS).unwrap();
        let mut window = DelayWindow::new(&settings, &path(1500), false);
        window.cwnd = cwnd;
        Ledbat { config, window, approaches: false, fast: FastStart::Over, undo: Undo::new() }
    }

    fn step(cwnd: f64, flight: u64, acked: u64, queueing_s: f64, target_s: f64, gain: f64) -> f64 {
        let mut one = with_window(cwnd, target_s * 1e9, gain);
        let mut feedback = ack(1, acked);
        feedback.feedback.in_flight_before_bytes = flight;
        one.on_ack(&feedback.feedback(), (queueing_s * 1e9) as i64);
        one.window.cwnd
    }

    #[test]
    fn check_1_steps_have_the_vectors_values() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/vectors/ledbat.json")).unwrap();
        for case in vectors["rfc6817_step"].as_array().unwrap() {
            let number = |key: &str| case[key].as_f64().unwrap();
            let octets = |key: &str| case[key].as_u64().unwrap();
            assert_eq!(
                (number("mss"), number("allowed_increase"), number("min_cwnd_pkts")),
                (1500.0, 1.0, 2.0)
            );
            let (flight, acked) = (octets("flightsize_before"), octets("acked"));
            let after = step(number("cwnd"), flight, acked, number("q"), number("target"), number("gain"));
            assert!((after - number("cwnd_after")).abs() < 1e-6, "{case}: {after}");
        }
    }

    #[test]
    fn check_1_ten_acknowledgements() {
        let ten =
            |queueing_s| (0..10).fold(15_000.0, |cwnd, _| step(cwnd, 1 << 20, 1500, queueing_s, 0.1, 1.0));
        assert!((ten(0.0) - 16_437.97).abs() < 0.01, "{}", ten(0.0));
        assert!((ten(0.2) - 13_425.65).abs() < 0.01, "{}", ten(0.2));
    }

    #[test]
    fn gains_below_and_above_the_target_are_separate_and_clamped() {
        let with = |name, value| plain().with(name, value).with("init_cwnd", ParamValue::Number(10.0));
        let step = |params: &Params, queueing_ms| {
            ledbat(params).on_feedback(&at(1, queueing_ms, 15_000).feedback()).cwnd_bytes
        };
        assert_eq!(step(&with("decrease_gain", ParamValue::Number(4.0)), 150), 15_000 - 300);
        assert_eq!(step(&with("decrease_gain", ParamValue::Number(4.0)), 50), 15_000 + 75);
        assert_eq!(step(&with("gain", ParamValue::Number(4.0)), 0), 15_000 + 150, "clamped to TCP's pace");
        let wild = with("gain", ParamValue::Number(4.0)).with("clamp", ParamValue::Switch(false));
        assert_eq!(step(&wild, 0), 15_000 + 600);
    }

    #[test]
    fn a_loss_halves_once_per_window_down_to_the_floor() {
        let mut ledbat = ledbat(&Params::new().with("init_cwnd", ParamValue::Number(10.0)));
        assert_eq!(ledbat.on_feedback(&loss(5, 20).feedback()).cwnd_bytes, 7500);
        assert_eq!(ledbat.on_feedback(&loss(19, 25).feedback()).cwnd_bytes, 7500);
        assert_eq!(ledbat.on_feedback(&loss(25, 40).feedback()).cwnd_bytes, 3750);
        assert_eq!(ledbat.on_feedback(&loss(40, 50).feedback()).cwnd_bytes, 3000);
        assert_eq!(ledbat.on_feedback(&loss(50, 60).feedback()).cwnd_bytes, 3000);
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_the_next_acknowledgement_lifts_it_to_the_floor() {
        let mut ledbat = ledbat(&Params::new().with("init_cwnd", ParamValue::Number(10.0)));
        assert_eq!(ledbat.on_timeout(&timeout(15_000, 1)).cwnd_bytes, 1500);
        assert_eq!(ledbat.on_feedback(&at(1, 400, 1500).feedback()).cwnd_bytes, 3000);
        assert_eq!(
            ledbat.on_feedback(&loss(900, 1001).feedback()).cwnd_bytes,
            3000,
            "sent before the timeout"
        );
    }

    #[test]
    fn slow_start_lands_softly_and_the_approach_ends_near_the_target() {
        let mut ledbat = ledbat(&Params::new().with("slow_start_exit", ParamValue::Number(0.5)));
        let mut cwnd = |number, queueing_ms, flight| {
            let window = ledbat.on_feedback(&at(number, queueing_ms, flight).feedback()).cwnd_bytes;
            (window, ledbat.snapshot().phase)
        };
        assert_eq!(cwnd(1, 0, 3000), (4500, Phase::SlowStart), "an octet for each acknowledged");
        assert_eq!(cwnd(2, 10, 4500), (5700, Phase::SlowStart), "four fifths of the way are left");
        assert_eq!(cwnd(3, 60, 5700), (5775, Phase::CongestionAvoidance), "an eighth of 1500, times 0.4");
        assert_eq!(cwnd(4, 20, 5775), (5925, Phase::CongestionAvoidance), "an eighth of 1500, times 0.8");
        // Equation 2.4.2 from here on, and for good: 1500 * 0.05 * 1500 / 5925, then with 0.5.
        assert_eq!(cwnd(5, 95, 5925).0, 5943);
        assert_eq!(cwnd(6, 50, 5943).0, 5943 + 190);
    }

    /// A fast start of ten packets, and acknowledgements of number, queueing delay in ms, and octets under way before.
    fn fast_starter() -> impl FnMut(u64, i64, u64) -> u64 {
        let params = Params::new().with("fast_start", ParamValue::Switch(true));
        let mut ledbat = ledbat(&params.with("init_cwnd", ParamValue::Number(10.0)));
        move |number, queueing_ms, in_flight_bytes| {
            let mut one = at(number, queueing_ms, in_flight_bytes);
            one.feedback.next_number = number + 2;
            ledbat.on_feedback(&one.feedback()).cwnd_bytes
        }
    }

    #[test]
    fn a_first_window_without_a_queue_is_followed_by_one_sixteen_times_as_large() {
        let mut cwnd = fast_starter();
        assert_eq!(cwnd(1, 0, 15_000), 15_000 + 4500);
        assert_eq!(cwnd(2, 4, 16_500), 16 * 15_000, "the last of the first window");
        let mut cwnd = fast_starter();
        assert_eq!(cwnd(1, 0, 15_000), 15_000 + 4500);
        assert_eq!(cwnd(2, 6, 16_500), 19_500, "a queue: a round trip to look at it");
    }

    #[test]
    fn a_fast_start_trebles_what_is_acknowledged_while_there_is_no_queue() {
        let mut cwnd = fast_starter();
        assert_eq!((cwnd(1, 0, 15_000), cwnd(2, 0, 15_000)), (19_500, 240_000));
        let mut cwnd = |number, queueing_ms| cwnd(number, queueing_ms, 1 << 20);
        assert_eq!(cwnd(3, 0), 240_000 + 4500);
        assert_eq!(
            cwnd(4, 4),
            244_500 + 1500 - 172 + 600,
            "a fifth of the extra, and slow start less 4 of 35"
        );
        assert_eq!((cwnd(5, 7), cwnd(6, 7)), (246_428, 246_428), "a round trip to look at it");
        assert_eq!(cwnd(7, 0), 246_428 + 4500, "it has passed");
        assert_eq!((cwnd(8, 7), cwnd(9, 7)), (250_928, 250_928));
        assert_eq!((cwnd(10, 7), cwnd(11, 0)), (250_928 + 1200, 252_128 + 1500), "slow start alone");
    }

    #[test]
    fn batched_acknowledgements_grow_the_window_by_octets_up_to_twice_what_was_under_way() {
        let mut ledbat = ledbat(&Params::new());
        let mut many = at(9, 0, 15_000);
        many.feedback.acked_bytes = 15_000;
        assert_eq!(ledbat.on_feedback(&many.feedback()).cwnd_bytes, 18_000, "3000 and 15000");
        let mut idle = at(10, 0, 2000);
        idle.feedback.acked_bytes = 30_000;
        assert_eq!(ledbat.on_feedback(&idle.feedback()).cwnd_bytes, 4000);
    }

    #[test]
    fn a_loss_that_was_none_gives_back_what_it_took() {
        let mut ledbat = ledbat(&Params::new().with("init_cwnd", ParamValue::Number(10.0)));
        ledbat.on_feedback(&loss(5, 20).feedback());
        assert_eq!(ledbat.on_undo().cwnd_bytes, 15_000);
        assert_eq!(ledbat.on_feedback(&loss(19, 25).feedback()).cwnd_bytes, 7500, "another event");
        ledbat.on_timeout(&timeout(5000, 1));
        assert_eq!(ledbat.on_undo().cwnd_bytes, 1500, "no timeout");
    }

    #[test]
    fn a_loss_ends_slow_start_and_the_approach() {
        for landed in [false, true] {
            let mut ledbat = ledbat(&Params::new().with("init_cwnd", ParamValue::Number(100.0)));
            if landed {
                ledbat.on_feedback(&at(1, 50, 150_000).feedback());
            }
            ledbat.on_feedback(&loss(5, 20).feedback());
            let before = ledbat.snapshot().cwnd_bytes;
            let after = ledbat.on_feedback(&at(30, 0, 150_000).feedback()).cwnd_bytes as f64;
            assert!(after - before <= 1500.0 * 1500.0 / before, "{before} to {after}");
        }
    }
}
