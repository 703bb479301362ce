//! TCP-NICE: Vegas that halves its window in each round in which too many packets were delayed.
//!
//! Source: Venkataramani, Kokku, Dahlin, "TCP Nice: a mechanism for background transfers" (OSDI 2002), as section II-B of "A
//! hands-on assessment of transport protocols with lower than best effort priority" (LCN 2010) has it. An acknowledgement
//! is late where its RTT exceeds minRTT + (maxRTT - minRTT) `threshold`; at the end of a round:
//! ```text
//! late > fraction * samples:  W = W / 2          else: Vegas's step (vegas_rule.rs)
//! W below 1 packet:           late: W = max(W/2, 1/48)      not late: W = min(2 W, 1)
//! ```
//! A window of 1/n packets is one packet every n round trips, which the transport paces; its acknowledgement is the round's one
//! sample. Losses, marks and timeouts are Reno's (`reno_window.rs`).
//!
//! The extremes are gathered in an initial slow start that is Reno's, and are used from the first loss on (`begin`). With
//! `begin = at_once` a flow that is alone never learns how long the queue can be: its own packets are a fifth of the
//! little it has seen, and it stays at a small window.
//!
//! Choices: rounds are judged at their end, not as soon as the count is reached; before RTTs have spread by `min_spread`
//! nothing is late; windows double below one packet, a rule that neither source states.
//!
//! `signal = rtt` as in the sources; with `owd` the queue of the way back does not count.
//!
//! *What it leaves out:* RTTs of retransmitted packets, which would raise maxRTT (transports hand in unambiguous ones only);
//! what `vegas_rule.rs` and `instruments/round.rs` leave out.
//! *How it was validated:* the numbered checks below and in `tests/background.rs`; the conformance suite; beside Reno, with
//! ns-2 (`docs/validation.md`).

use crate::entry::Entry;
use crate::instruments::{DelayRange, Round, RoundRtts, RoundSummary};
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings};
use crate::reno::INIT_CWND;
use crate::reno_window::{News, RenoWindow};
use crate::signal::{signal_of, signal_param};
use crate::vegas_rule::{
    AT_SSTHRESH, EVERY_OTHER, GAMMA, MIN_SAMPLES, VegasRule, WINDOW, alpha_param, backlog_param, beta_param,
};
use crate::{Allowance, Controller, Feedback, Path, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::Duration;

/// RTTs, or one-way delays, must have spread by so much before a threshold between them means anything.
pub(crate) const fn min_spread_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "min_spread",
        kind: ParamKind::Duration { min: Duration::ZERO, max: Duration::from_secs(1) },
        default,
        doc: "Spread of the delays below which nothing counts as late.",
    }
}

/// The extremes of the delay mean something once a queue has been full.
pub(crate) const BEGIN: ParamDoc = ParamDoc {
    name: "begin",
    kind: ParamKind::Word(&["first_loss", "at_once"]),
    default: "first_loss",
    doc: "From when on delays count: after an initial slow start that ended with a loss, or at once.",
};

const PARAMS: &[ParamDoc] = &[
    signal_param("rtt"),
    ParamDoc {
        name: "threshold",
        kind: ParamKind::Number { min: 0.0, max: 1.0 },
        default: "0.2",
        doc: "delta: where between the smallest and the largest RTT lateness begins.",
    },
    ParamDoc {
        name: "fraction",
        kind: ParamKind::Number { min: 0.0, max: 1.0 },
        default: "0.5",
        doc: "phi: the part of a round's samples of which more must be late for the window to be halved.",
    },
    ParamDoc {
        name: "max_fwnd",
        kind: ParamKind::Count { min: 1, max: 1000 },
        default: "48",
        doc: "The smallest window is one packet over this (the original: 48).",
    },
    ParamDoc {
        name: "min_cwnd",
        kind: ParamKind::Number { min: 0.0, max: 1000.0 },
        default: "0",
        doc: "The smallest window in packets, but after a timeout; 0 takes 1/max_fwnd.",
    },
    BEGIN,
    min_spread_param("1 ms"),
    ParamDoc {
        name: "max_decay",
        kind: ParamKind::Number { min: 0.0, max: 1.0 },
        default: "0",
        doc: "Part of its way to the present RTT that the largest RTT goes with each round; 0 keeps it for ever.",
    },
    backlog_param("classic"),
    alpha_param("1"),
    beta_param("3"),
    GAMMA,
    MIN_SAMPLES,
    EVERY_OTHER,
    WINDOW,
    AT_SSTHRESH,
    INIT_CWND,
];

pub(crate) const ENTRY: Entry = Entry {
    name: "nice",
    summary: "TCP-NICE: Vegas that halves where more than half of a round's packets were late; windows down to 1/48 packet.",
    formula: "late: rtt > minRTT + 0.2 (maxRTT - minRTT); round: late > 0.5 samples: W/2, else Vegas (backlog = W (1 - \
              base/rtt)); below one packet W doubles or halves, 1/48 at least; loss and timeout as Reno",
    source: "Venkataramani, Kokku, Dahlin, OSDI 2002; Carofiglio et al., LCN 2010, section II-B",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

#[derive(Clone, Copy, PartialEq, Debug)]
struct Config {
    threshold: f64,
    fraction: f64,
    max_decay: f64,
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Nice {
    config: Config,
    rule: VegasRule,
    window: RenoWindow,
    round: Round,
    rtts: RoundRtts,
    range: DelayRange,
    late: u32,
    /// The extremes are still being gathered.
    gathering: bool,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let config = Config {
        threshold: settings.number("threshold"),
        fraction: settings.number("fraction"),
        max_decay: settings.number("max_decay"),
    };
    let floor = settings.number("min_cwnd");
    let floor = if floor > 0.0 { floor } else { 1.0 / settings.number("max_fwnd") };
    Ok(Box::new(Nice {
        config,
        rule: VegasRule::of(&settings)?,
        window: RenoWindow::new(path, settings.number("init_cwnd"))
            .with_min_packets(floor)
            .with_inclusive_slow_start(settings.switch("slow_start_at_ssthresh")),
        round: Round::default(),
        rtts: RoundRtts::new(signal_of(&settings)),
        range: DelayRange::new(0, settings.duration("min_spread")),
        late: 0,
        gathering: settings.word("begin") == "first_loss",
    }))
}

impl Nice {
    fn measure(&mut self, feedback: &Feedback<'_>) {
        let Some(rtt_ns) = self.rtts.add(feedback) else { return };
        self.range.update(feedback.now, rtt_ns);
        let late = self.range.threshold_ns(self.config.threshold).is_some_and(|limit| rtt_ns as f64 > limit);
        self.late = self.late.saturating_add(u32::from(late));
    }

    fn fresh_round(&mut self) -> RoundSummary {
        self.late = 0;
        self.rtts.finish()
    }

    fn on_acked(&mut self, feedback: &Feedback<'_>) {
        if !self.round.ends(feedback) {
            self.rule.within_round(&mut self.window, feedback);
            return;
        }
        let (late, base_ns) = (f64::from(self.late), self.rtts.base_ns());
        let round = self.fresh_round();
        if let Some(rtt_ns) = round.rtt_ns {
            self.range.decay_max(rtt_ns, self.config.max_decay);
        }
        if late > self.config.fraction * f64::from(round.samples) {
            self.halve();
        } else if self.window.packets() < 1.0 {
            self.window.set_packets((2.0 * self.window.packets()).min(1.0));
        } else {
            self.rule.end_round(&mut self.window, feedback, base_ns, round);
        }
    }

    fn halve(&mut self) {
        self.window.set(self.window.cwnd / 2.0);
        self.window.end_slow_start();
    }
}

impl Controller for Nice {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.measure(feedback);
        match self.window.take(feedback) {
            News::Acked if self.gathering => {
                if !feedback.app_limited {
                    self.window.grow(feedback.acked_bytes);
                }
            }
            News::Acked => self.on_acked(feedback),
            news => {
                self.gathering &= news != News::Cut;
                self.fresh_round();
                self.round.restart(feedback.next_number);
            }
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.gathering &= timeout.idle;
        self.fresh_round();
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
        Snapshot { base_delay_ns: self.range.min_ns(), ..self.window.snapshot() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;
    use crate::vegas::testing::{at, round, settle};
    use crate::{ParamValue, registry};

    /// Ten packets of 1000 octets, RTTs from 50 to 170 ms seen: the threshold is 74 ms.
    fn nice(params: Params) -> Box<dyn Controller> {
        let params = params.with("init_cwnd", ParamValue::Number(19.0));
        let mut nice = registry::build("nice", &params, &path(1000)).unwrap();
        settle(&mut *nice, 10, 50_000);
        let mut largest = at(9, 10, 170_000);
        largest.feedback.in_recovery = true;
        nice.on_feedback(&largest.feedback());
        nice
    }

    #[test]
    fn check_4_more_than_half_of_the_samples_must_be_late() {
        let rtts = |late: usize| -> alloc::vec::Vec<u64> {
            (0..10).map(|k| if k < late { 80_000 } else { 60_000 }).collect()
        };
        assert_eq!(
            round(&mut *nice(Params::new()), 10, &rtts(5)),
            10.0,
            "Vegas: 1.67 packets, between 1 and 3"
        );
        assert_eq!(round(&mut *nice(Params::new()), 10, &rtts(6)), 5.0);
        let mut off = nice(Params::new().with("threshold", ParamValue::Number(1.0)));
        assert_eq!(round(&mut *off, 10, &rtts(6)), 10.0, "nothing is later than the latest");
    }

    #[test]
    fn check_5_windows_below_one_packet() {
        let mut nice = nice(Params::new());
        let mut number = 10;
        let mut one = |nice: &mut dyn Controller, rtt_us| {
            number += 1;
            nice.on_feedback(&at(number, number + 1, rtt_us).feedback());
            nice.snapshot().cwnd_bytes / 1000.0
        };
        while one(&mut *nice, 100_000) > 1.0 {}
        let shrinking: alloc::vec::Vec<f64> = (0..7).map(|_| one(&mut *nice, 100_000)).collect();
        // From 10: 5, 2.5, 1.25, 0.625, ...
        assert_eq!(shrinking[0], 0.3125);
        assert_eq!(shrinking[4..], [1.0 / 48.0; 3]);
        assert_eq!(nice.allowance().cwnd_bytes, 20, "octets of a packet of 1000");
        let growing: alloc::vec::Vec<f64> = (0..7).map(|_| one(&mut *nice, 51_000)).collect();
        assert_eq!(growing[..2], [1.0 / 24.0, 1.0 / 12.0]);
        assert_eq!(growing[5], 1.0, "1/48 doubled six times is more than one");
        assert!(growing[6] > 1.0, "then Reno's increase, as one sample is too few for Vegas");
    }

    #[test]
    fn check_5_from_one_packet_down_in_halves() {
        let mut nice = registry::build(
            "nice",
            &Params::new()
                .with("init_cwnd", ParamValue::Number(1.0))
                .with("min_spread", ParamValue::Duration(Duration::ZERO))
                .with("begin", ParamValue::Word("at_once".into())),
            &path(4800),
        )
        .unwrap();
        let windows: alloc::vec::Vec<f64> = (0..9)
            .map(|number| {
                let rtt_us = if number == 0 { 50_000 } else { 170_000 };
                let mut one = at(number, number + 1, rtt_us);
                one.feedback.app_limited = true;
                nice.on_feedback(&one.feedback());
                nice.snapshot().cwnd_bytes / 4800.0
            })
            .collect();
        let halves = [1.0, 1.0 / 2.0, 1.0 / 4.0, 1.0 / 8.0, 1.0 / 16.0, 1.0 / 32.0, 1.0 / 48.0, 1.0 / 48.0];
        assert_eq!(windows[..8], halves);
        assert_eq!(nice.allowance().cwnd_bytes, 100, "one packet every 48 round trips");
    }

    #[test]
    fn the_floor_may_be_one_packet_or_two() {
        for (floor, least) in [(0.0, 1.0 / 48.0), (1.0, 1.0), (2.0, 2.0)] {
            let mut nice = nice(Params::new().with("min_cwnd", ParamValue::Number(floor)));
            for number in 20..40 {
                nice.on_feedback(&at(number, number + 1, 100_000).feedback());
            }
            assert!((nice.snapshot().cwnd_bytes / 1000.0 - least).abs() < 1e-12, "{floor}");
        }
    }

    #[test]
    fn the_initial_slow_start_is_renos_until_a_loss_or_is_judged_at_once() {
        let run = |begin: &str| {
            let params = Params::new().with("begin", ParamValue::Word(begin.into()));
            let mut nice = registry::build("nice", &params, &path(1000)).unwrap();
            nice.on_feedback(&at(0, 1, 50_000).feedback());
            nice.on_feedback(&at(1, 2, 170_000).feedback());
            nice.snapshot().cwnd_bytes
        };
        assert_eq!((run("at_once"), run("first_loss")), (2500.0, 6000.0));
    }
}
