//! TCP Vegas.
//!
//! Source: see `vegas_rule.rs` for the step per round. Losses, marks and timeouts are Reno's (`reno_window.rs`); while a loss
//! is being repaired Vegas rests and then counts a fresh round. A loss that was none gives back Reno's window (Linux's `tcp_vegas` as well). After idleness the smallest RTT is forgotten (Linux).
//!
//! `signal = rtt` as in the sources; with `owd` the queue of the way back does not count.
//!
//! *What it leaves out:* what `vegas_rule.rs` and `instruments/round.rs` leave out.
//! *How it was validated:* the numbered checks below and in `tests/background.rs`; the conformance suite; beside Reno, with
//! ns-2 and ns-3 (`docs/validation.md`).

use crate::entry::Entry;
use crate::instruments::{Round, RoundRtts};
use crate::ledbat::packets_param;
use crate::params::{ParamDoc, ParamError, Params, Settings};
use crate::reno::INIT_CWND;
use crate::reno_window::{News, RenoWindow};
use crate::signal::{signal_of, signal_param};
use crate::vegas_rule::{
    AT_SSTHRESH, EVERY_OTHER, GAMMA, MIN_SAMPLES, VegasRule, WINDOW, alpha_param, backlog_param, beta_param,
};
use crate::{Allowance, Controller, Feedback, Path, Snapshot, Timeout};
use alloc::boxed::Box;

const PARAMS: &[ParamDoc] = &[
    signal_param("rtt"),
    backlog_param("classic"),
    alpha_param("2"),
    beta_param("4"),
    GAMMA,
    MIN_SAMPLES,
    EVERY_OTHER,
    WINDOW,
    AT_SSTHRESH,
    packets_param("min_cwnd", "2", "The smallest window in packets, but after a timeout."),
    INIT_CWND,
];

pub(crate) const ENTRY: Entry = Entry {
    name: "vegas",
    summary: "TCP Vegas: keeps a few packets of its own in the queue.",
    formula: "once per round, with its smallest RTT: backlog = W (1 - base/rtt); slow start until backlog > gamma; \
              backlog < alpha: W += 1; backlog > beta: W -= 1; loss and timeout as Reno",
    source: "Brakmo and Peterson, JSAC 1995; Linux 6.12 tcp_vegas.c; ns-3 tcp-vegas.cc",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Vegas {
    rule: VegasRule,
    window: RenoWindow,
    /// In packets.
    floor: f64,
    round: Round,
    rtts: RoundRtts,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    Ok(Box::new(Vegas {
        rule: VegasRule::of(&settings)?,
        window: RenoWindow::new(path, settings.number("init_cwnd"))
            .with_inclusive_slow_start(settings.switch("slow_start_at_ssthresh")),
        floor: settings.number("min_cwnd"),
        round: Round::default(),
        rtts: RoundRtts::new(signal_of(&settings)),
    }))
}

impl Vegas {
    fn on_acked(&mut self, feedback: &Feedback<'_>) {
        if !self.round.ends(feedback) {
            self.rule.within_round(&mut self.window, feedback);
            return;
        }
        let (base_ns, round) = (self.rtts.base_ns(), self.rtts.finish());
        self.rule.end_round(&mut self.window, feedback, base_ns, round);
        if self.window.packets() < self.floor {
            self.window.set_packets(self.floor);
        }
    }
}

impl Controller for Vegas {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.rtts.add(feedback);
        if self.window.take(feedback) == News::Acked {
            self.on_acked(feedback);
        } else {
            self.rtts.finish();
            self.round.restart(feedback.next_number);
        }
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        self.window.undo()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        if timeout.idle {
            self.rtts.forget_base();
        }
        self.rtts.finish();
        self.round.restart(timeout.next_number);
        self.window.on_timeout(timeout)
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.window.on_mss(mss_bytes)
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { base_delay_ns: self.rtts.base_ns(), ..self.window.snapshot() }
    }
}

/// What a test feeds: rounds of equal RTTs.
#[cfg(test)]
pub(crate) mod testing {
    use crate::Controller;
    use crate::testing::{Owned, ack, loss};
    use cede_units::{Duration, Instant};

    /// The packet `number` acknowledged after `rtt_us`; `next_number` is next.
    pub(crate) fn at(number: u64, next_number: u64, rtt_us: u64) -> Owned {
        let mut one = ack(number, 1000);
        one.feedback.next_number = next_number;
        one.feedback.now = Instant::from_millis(1000 + 100 * number);
        one.feedback.rtt = Some(Duration::from_micros(rtt_us));
        one
    }

    /// Leaves slow start with a window of `packets` packets of 1000 octets and a base of `base_us`.
    pub(crate) fn settle(flow: &mut dyn Controller, packets: u64, base_us: u64) {
        flow.on_feedback(&at(0, 1, base_us).feedback());
        let mut lost = loss(5, 10);
        lost.feedback.in_flight_before_bytes = 2000 * packets;
        flow.on_feedback(&lost.feedback());
        let mut full = at(9, 10, base_us);
        full.feedback.in_flight_bytes = 1000 * packets - 1000;
        flow.on_feedback(&full.feedback());
    }

    /// A round of these RTTs, whose last sample is of the packet `first`, sent after it began, and the window after it in
    /// packets. [`settle`] leaves a round that begins with packet 10; each round takes one number.
    pub(crate) fn round(flow: &mut dyn Controller, first: u64, rtts_us: &[u64]) -> f64 {
        for (k, &rtt_us) in rtts_us.iter().enumerate() {
            let number = if k + 1 == rtts_us.len() { first } else { first - 1 };
            flow.on_feedback(&at(number, first + 1, rtt_us).feedback());
        }
        flow.snapshot().cwnd_bytes / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{at, round, settle};
    use super::*;
    use crate::testing::{path, timeout};
    use crate::{ParamValue, Phase, registry};

    fn vegas(packets: u64, base_us: u64, params: Params) -> Box<dyn Controller> {
        let params = params.with("init_cwnd", ParamValue::Number(2.0 * packets as f64 - 1.0));
        let mut vegas = registry::build("vegas", &params, &path(1000)).unwrap();
        settle(&mut *vegas, packets, base_us);
        assert_eq!(vegas.snapshot().cwnd_bytes, 1000.0 * packets as f64);
        assert_eq!(vegas.snapshot().phase, Phase::CongestionAvoidance);
        vegas
    }

    fn after(packets: u64, base_us: u64, rtt_us: u64, params: Params) -> f64 {
        round(&mut *vegas(packets, base_us, params), 10, &[rtt_us; 4])
    }

    fn linux() -> Params {
        Params::new().with("backlog", ParamValue::Word("linux".into()))
    }

    #[test]
    fn check_1_linux_backlog_and_step() {
        let cases = [
            (10, 50_000, 11.0),
            (10, 60_000, 10.0),
            (10, 65_000, 10.0),
            (10, 70_001, 10.0),
            (10, 75_000, 9.0),
            (20, 55_000, 20.0),
            (20, 60_001, 20.0),
            (20, 62_500, 19.0),
        ];
        for (window, rtt_us, next) in cases {
            assert_eq!(after(window, 50_000, rtt_us, linux()), next, "{window} packets, {rtt_us} us");
        }
    }

    #[test]
    fn check_2_the_three_ways_to_reckon_the_backlog() {
        let rule = |word: &str| {
            let params = Params::new().with("backlog", ParamValue::Word(word.into()));
            VegasRule::of(&Settings::resolve(&params, PARAMS).unwrap()).unwrap()
        };
        let backlog = |word| rule(word).backlog(10.0, 50.0, 60.0);
        assert!((backlog("classic") - 10.0 / 6.0).abs() < 1e-12);
        assert_eq!((backlog("linux"), backlog("ns3")), (2.0, 2.0));
        assert_eq!(rule("classic").backlog(10.0, 50.0, 100.0), 5.0);
        assert_eq!(rule("linux").backlog(10.0, 50.0, 100.0), 10.0, "rtt/base times as much");
        let held = Params::new()
            .with("backlog", ParamValue::Word("classic".into()))
            .with("alpha", ParamValue::Number(1.0))
            .with("beta", ParamValue::Number(3.0));
        assert_eq!(after(10, 50_000, 60_000, held), 10.0, "1.67 is between 1 and 3");
    }

    #[test]
    fn check_3_slow_start_ends_at_a_backlog_above_gamma() {
        let params = linux().with("init_cwnd", ParamValue::Number(16.0));
        let mut vegas = registry::build("vegas", &params, &path(1000)).unwrap();
        // The base comes with an acknowledgement of nothing new; then a round of three samples.
        let mut base = at(0, 20, 50_000);
        base.feedback.acked_bytes = 0;
        vegas.on_feedback(&base.feedback());
        for number in [0, 1] {
            let mut one = at(number, 20, 60_000);
            one.feedback.app_limited = true;
            vegas.on_feedback(&one.feedback());
        }
        vegas.on_feedback(&at(20, 40, 60_000).feedback());
        let snapshot = vegas.snapshot();
        assert_eq!((snapshot.cwnd_bytes, snapshot.ssthresh_bytes), (14_000.0, Some(14_000.0)));
        assert_eq!(snapshot.phase, Phase::CongestionAvoidance);
    }

    #[test]
    fn two_samples_are_too_few_and_give_renos_increase() {
        let mut vegas = vegas(4, 50_000, Params::new());
        for first in 10..14 {
            round(&mut *vegas, first, &[90_000; 2]);
        }
        assert!(vegas.snapshot().cwnd_bytes >= 4000.0, "no decrease, though 90 ms is far above");
    }

    #[test]
    fn a_timeout_is_renos_and_idleness_forgets_the_base() {
        let mut vegas = vegas(10, 50_000, Params::new());
        assert_eq!(vegas.on_timeout(&timeout(10_000, 1)).cwnd_bytes, 1000);
        assert!(vegas.snapshot().base_delay_ns.is_some());
        vegas.on_timeout(&Timeout { idle: true, ..timeout(0, 0) });
        assert_eq!(vegas.snapshot().base_delay_ns, None);
    }
}
