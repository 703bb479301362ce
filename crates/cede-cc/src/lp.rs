//! TCP-LP by its paper's equations.
//!
//! Source: Kuzmanovic and Knightly, "TCP-LP: low-priority service via end-point congestion control" (INFOCOM 2003, ToN
//! 2006), as section II-A, equations 1 and 2, of "A hands-on assessment of transport protocols with lower than best effort
//! priority" (LCN 2010) has it. Per delay sample d:
//! ```text
//! sd = (1 - gamma) sd + gamma d                gamma = 1/8                              (1)
//! early congestion:  sd > dmin + (dmax - dmin) delta           delta = 0.15             (2)
//! ```
//! The first early congestion halves the window and opens an inference phase of three RTTs, in which it does not grow; early
//! congestion in that phase takes it to one packet ("zero" in the paper) and restarts the phase. Otherwise Reno.
//!
//! The extremes are gathered in the initial slow start and are used from the first loss on (`begin`, as the authors' paper is
//! remembered to have it; it could not be consulted). With `begin = at_once` a flow that is alone never learns how
//! long the queue can be: its own pairs of packets are 15 % of the little it has seen, and it stays at one packet.
//!
//! A loss that was none gives back Reno's window, and the inference phase that it ended; the extremes are gathered on.
//!
//! Choices: one packet is the least; ssthresh follows the window, so that growth goes on additively; the second indication
//! counts from one smoothed RTT after the first (`guard`), as the average stays high for as long; delays must have spread
//! by `min_spread` before equation 2 says anything.
//!
//! `signal = owd` as in the source; with `rtt` the queue of the way back counts as well.
//!
//! *What it leaves out:* a drift of the two clocks, which moves d, dmin and dmax apart; Linux's arithmetic (`lp_linux`).
//! *How it was validated:* the numbered checks below and in `tests/background.rs`; the vectors of
//! `tests/vectors/tcp_lp.json`; the conformance suite; beside Reno (`docs/validation.md`).

use crate::entry::Entry;
use crate::instruments::{DelayFilter, DelayRange, FilterKind, Signal};
use crate::nice::{BEGIN, min_spread_param};
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings, count, number};
use crate::reno::INIT_CWND;
use crate::reno_window::{News, RenoWindow};
use crate::signal::{signal_of, signal_param};
use crate::undo::Undo;
use crate::{Allowance, Controller, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Duration, Instant};

const PARAMS: &[ParamDoc] = &[
    signal_param("owd"),
    number(
        "weight",
        "0.125",
        (0.001, 1.0),
        "gamma: weight of the newest sample in the smoothed delay (equation 1).",
    ),
    number(
        "threshold",
        "0.15",
        (0.0, 1.0),
        "delta: where between the smallest and the largest delay congestion begins (equation 2).",
    ),
    number("inference", "3", (0.1, 1000.0), "Smoothed RTTs that an inference phase lasts."),
    ParamDoc {
        name: "guard",
        kind: ParamKind::Word(&["one_rtt", "none"]),
        default: "one_rtt",
        doc: "From when on early congestion counts in an inference phase: one_rtt after it began, or at once.",
    },
    BEGIN,
    min_spread_param("1 ms"),
    count(
        "history",
        "0",
        (0, 1440),
        "Minutes for which an extreme of the delay counts; 0: the whole connection.",
    ),
    INIT_CWND,
];

pub(crate) const ENTRY: Entry = Entry {
    name: "lp",
    summary: "TCP-LP (its paper's equations): Reno that halves at early congestion and waits.",
    formula: "sd = 7/8 sd + 1/8 d; early congestion: sd > dmin + 0.15 (dmax - dmin): W/2 and no growth for 3 RTT, again in \
              that time: W = 1; else Reno",
    source: "Kuzmanovic, Knightly, INFOCOM 2003; Carofiglio et al., LCN 2010, equations 1 and 2",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Config {
    signal: Signal,
    threshold: f64,
    inference: f64,
    guarded: bool,
}

/// Where the flow stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Increase,
    Inference { since: Instant, until: Instant },
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Lp {
    config: Config,
    window: RenoWindow,
    range: DelayRange,
    average: DelayFilter,
    average_ns: Option<i64>,
    state: State,
    /// The extremes are still being gathered.
    gathering: bool,
    /// Both before the last loss or timeout.
    undo: Undo<(State, bool)>,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let config = Config {
        signal: signal_of(&settings),
        threshold: settings.number("threshold"),
        inference: settings.number("inference"),
        guarded: settings.word("guard") == "one_rtt",
    };
    Ok(Box::new(Lp {
        config,
        window: RenoWindow::new(path, settings.number("init_cwnd")),
        range: DelayRange::new(settings.count("history"), settings.duration("min_spread")),
        average: DelayFilter::new(FilterKind::Ewma(settings.number("weight"))),
        average_ns: None,
        state: State::Increase,
        gathering: settings.word("begin") == "first_loss",
        undo: Undo::new(),
    }))
}

impl Lp {
    /// Equations 1 and 2: is there early congestion?
    fn sense(&mut self, feedback: &Feedback<'_>) -> bool {
        let Some(delay_ns) = self.config.signal.sample_ns(feedback) else { return false };
        self.range.update(feedback.now, delay_ns);
        let average_ns = self.average.update(feedback.now, delay_ns, Duration::ZERO);
        self.average_ns = Some(average_ns);
        let threshold_ns = self.range.threshold_ns(self.config.threshold).filter(|_| !self.gathering);
        threshold_ns.is_some_and(|limit| average_ns as f64 > limit)
    }

    fn on_acked(&mut self, feedback: &Feedback<'_>, early: bool) {
        if matches!(self.state, State::Inference { until, .. } if feedback.now >= until) {
            self.state = State::Increase;
        }
        match self.state {
            State::Increase if early => self.infer(feedback, self.window.packets() / 2.0),
            State::Increase => {
                if !feedback.app_limited {
                    self.window.grow(feedback.acked_bytes);
                }
            }
            State::Inference { since, .. } => {
                let counts = !self.config.guarded || feedback.now.since(since) >= feedback.srtt;
                if early && counts {
                    self.infer(feedback, 1.0);
                }
            }
        }
    }

    /// Takes the window down and begins an inference phase.
    fn infer(&mut self, feedback: &Feedback<'_>, packets: f64) {
        self.window.set_packets(packets);
        self.window.ssthresh = self.window.cwnd;
        let until = feedback.now + feedback.srtt.mul_f64(self.config.inference);
        self.state = State::Inference { since: feedback.now, until };
    }
}

impl Controller for Lp {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let early = self.sense(feedback);
        match self.window.take(feedback) {
            News::Acked => self.on_acked(feedback, early),
            News::Cut => {
                self.undo.note_event(feedback, (self.state, self.gathering));
                (self.state, self.gathering) = (State::Increase, false);
            }
            News::Held | News::Recovered => {}
        }
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some((state, gathering)) = self.undo.take() {
            // An inference phase that has begun since goes on.
            if self.state == State::Increase {
                self.state = state;
            }
            self.gathering = gathering;
        }
        self.window.undo()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.undo.note_timeout(timeout, self.window.is_repairing(), (self.state, self.gathering));
        self.state = State::Increase;
        self.gathering &= timeout.idle;
        self.window.on_timeout(timeout)
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.window.on_mss(mss_bytes)
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }

    fn snapshot(&self) -> Snapshot {
        let (snapshot, base_ns) = (self.window.snapshot(), self.range.min_ns());
        let above = self.average_ns.zip(base_ns).map(|(average, base)| average.saturating_sub(base).max(0));
        let phase = match self.state {
            State::Inference { .. } => Phase::Named("inference"),
            State::Increase => snapshot.phase,
        };
        let queueing_delay = above.map(|ns| Duration::from_nanos(ns.unsigned_abs()));
        Snapshot { phase, base_delay_ns: base_ns, queueing_delay, ..snapshot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Owned, ack, loss, path};
    use crate::{ParamValue, registry};

    const RTT_MS: u64 = 100;

    fn at(now_ms: u64, number: u64, delay_ms: f64) -> Owned {
        let mut one = ack(number, 1000);
        one.feedback.now = Instant::from_millis(now_ms);
        one.feedback.srtt = Duration::from_millis(RTT_MS);
        one.feedback.one_way_delay_ns = Some((delay_ms * 1e6) as i64);
        one
    }

    fn lp(params: &Params) -> Lp {
        let settings = Settings::resolve(params, PARAMS).unwrap();
        Lp {
            config: Config {
                signal: signal_of(&settings),
                threshold: settings.number("threshold"),
                inference: settings.number("inference"),
                guarded: settings.word("guard") == "one_rtt",
            },
            window: RenoWindow::new(&path(1000), 20.0),
            range: DelayRange::new(0, settings.duration("min_spread")),
            average: DelayFilter::new(FilterKind::Ewma(0.125)),
            average_ns: None,
            state: State::Increase,
            gathering: false,
            undo: Undo::new(),
        }
    }

    #[test]
    fn a_loss_that_was_none_leaves_inference_and_the_gathering_of_extremes_as_they_were() {
        let since = Instant::from_secs(1);
        let infers = State::Inference { since, until: Instant::from_millis(1300) };
        let mut flow = Lp { state: infers, gathering: true, ..lp(&Params::new()) };
        flow.on_feedback(&loss(5, 9).feedback());
        assert_eq!((flow.state, flow.gathering), (State::Increase, false));
        flow.on_undo();
        assert_eq!((flow.state, flow.gathering, flow.window.cwnd), (infers, true, 20_000.0));
        // Early congestion in between begins a phase that is not cut short.
        flow.on_feedback(&loss(9, 19).feedback());
        let later = State::Inference { since: Instant::from_secs(2), until: Instant::from_secs(3) };
        flow.state = later;
        flow.on_undo();
        assert_eq!((flow.state, flow.gathering), (later, true));
    }

    #[test]
    fn check_1_the_equations_have_the_vectors_values() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../tests/vectors/tcp_lp.json")).unwrap();
        let rows = vectors["ideal[x,sowd,min,max,thr,ECI]"].as_array().unwrap();
        assert_eq!(rows.len(), 12);
        let mut lp = lp(&Params::new().with("min_spread", ParamValue::Duration(Duration::ZERO)));
        for row in rows {
            let number = |k: usize| row[k].as_f64().unwrap();
            let early = lp.sense(&at(0, 0, number(0)).feedback());
            let average_ms = lp.average_ns.unwrap() as f64 / 1e6;
            assert!((average_ms - number(1)).abs() < 1e-5, "{row}: {average_ms}");
            let threshold_ms = lp.range.threshold_ns(0.15).unwrap() / 1e6;
            assert!((threshold_ms - number(4)).abs() < 1e-6, "{row}: {threshold_ms}");
            assert_eq!(
                (lp.range.min_ns(), early),
                (Some((number(2) * 1e6) as i64), row[5].as_bool().unwrap())
            );
        }
    }

    /// Twenty packets, out of slow start, 25 ms known as the smallest delay and 100 ms as the largest.
    fn flow(params: &Params) -> Lp {
        let mut lp = lp(params);
        lp.window.ssthresh = lp.window.cwnd;
        for delay_ms in [25, 100] {
            lp.range.update(Instant::ZERO, delay_ms * 1_000_000);
        }
        lp
    }

    fn packets(lp: &mut Lp, now_ms: u64, number: u64, delay_ms: f64) -> f64 {
        lp.average = DelayFilter::new(FilterKind::Ewma(0.125));
        lp.on_feedback(&at(now_ms, number, delay_ms).feedback());
        lp.window.packets()
    }

    #[test]
    fn check_4_halved_guarded_collapsed_and_additive_again() {
        let mut lp = flow(&Params::new());
        assert_eq!(packets(&mut lp, 1000, 0, 60.0), 10.0);
        assert_eq!(packets(&mut lp, 1050, 1, 60.0), 10.0, "half an RTT later: guarded");
        assert_eq!(packets(&mut lp, 1150, 2, 60.0), 1.0, "one and a half");
        assert_eq!(packets(&mut lp, 1249, 3, 60.0), 1.0);
        assert_eq!(packets(&mut lp, 1449, 4, 25.0), 1.0, "still within 3 RTT of the second");
        assert_eq!(packets(&mut lp, 1450, 5, 25.0), 2.0, "one window acknowledged: a packet more");
        assert_eq!(packets(&mut lp, 1500, 6, 25.0), 2.0);
        assert_eq!(packets(&mut lp, 1550, 7, 25.0), 3.0, "additive, not exponential");
    }

    #[test]
    fn without_the_guard_the_second_indication_counts_at_once() {
        let mut lp = flow(&Params::new().with("guard", ParamValue::Word("none".into())));
        assert_eq!([packets(&mut lp, 1000, 0, 60.0), packets(&mut lp, 1001, 1, 60.0)], [10.0, 1.0]);
    }

    #[test]
    fn early_congestion_that_passes_leaves_half_and_growth_resumes() {
        let mut lp = flow(&Params::new());
        assert_eq!(packets(&mut lp, 1000, 0, 60.0), 10.0);
        assert_eq!(packets(&mut lp, 1200, 1, 30.0), 10.0, "inference: no growth");
        for number in 2..12 {
            packets(&mut lp, 1300, number, 30.0);
        }
        assert_eq!(lp.window.packets(), 11.0);
    }

    #[test]
    fn losses_are_renos_and_end_an_inference() {
        let mut lp = flow(&Params::new());
        packets(&mut lp, 1000, 0, 60.0);
        let mut lost = loss(5, 9);
        lost.feedback.in_flight_before_bytes = 10_000;
        lp.on_feedback(&lost.feedback());
        assert_eq!((lp.window.packets(), lp.state), (5.0, State::Increase));
    }

    #[test]
    fn round_trip_times_serve_where_they_are_asked_for() {
        let params = Params::new().with("signal", ParamValue::Word("rtt".into()));
        let mut lp = registry::build("lp", &params, &path(1000)).unwrap();
        lp.on_feedback(&loss(0, 0).feedback());
        for (now_ms, rtt_ms) in [(0, 50), (100, 170), (200, 170)] {
            let mut one = at(now_ms, now_ms, 0.0);
            one.feedback.rtt = Some(Duration::from_millis(rtt_ms));
            lp.on_feedback(&one.feedback());
        }
        assert_eq!(lp.snapshot().phase, Phase::Named("inference"));
    }
}
