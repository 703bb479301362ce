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
//! sample. Where the receiver answers several packets at once (`ack_habit.rs`), a window of less than two is two packets every
//! 2n round trips, as the original has it always (`pair_turns.rs`): what a lone packet meets there is the receiver's timer.
//! Behind one of 200 ms each lone packet is late, and the window never leaves 1/48. For the same reason its answers to
//! single packets raise no maxRTT: with 40 ms in that, six of queue are never late, and NICE takes a quarter of CUBIC's link.
//! Losses, marks and timeouts are Reno's (`reno_window.rs`), as is what a loss that was none gives back; the extremes are gathered on then.
//!
//! The extremes are gathered in an initial slow start that is Reno's, and are used from the first loss on (`begin`). With
//! `begin = at_once` a flow that is alone never learns how long the queue can be: its own packets are a fifth of the
//! little it has seen, and it stays at a small window.
//!
//! Choices: rounds are judged at their end, not as soon as the count is reached; before RTTs have spread by `min_spread`
//! nothing is late; windows below one packet double with each packet that is answered in time, a rule that neither source
//! states.
//!
//! *Behind few packets of buffer* the rule is at its end. A fifth of the queue must hold what the flow puts there by itself: the
//! second of two packets that leave together, the one by which the window grew, the one to three that Vegas keeps. With
//! fewer than five packets of buffer one of them is late already, and with ten or fewer Vegas's own are, at which the window
//! is halved twice: the round after a cut is judged by packets that left before it (figures: `docs/validation.md`).
//!
//! `signal = rtt` as in the sources; with `owd` the queue of the way back does not count.
//!
//! *What it leaves out:* RTTs of retransmitted packets that are ambiguous, which would raise maxRTT (no transport hands them in);
//! what `vegas_rule.rs` and `instruments/round.rs` leave out.
//! *How it was validated:* the numbered checks below and in `tests/background.rs`; the conformance suite; beside Reno, with
//! ns-2 (`docs/validation.md`).

use crate::entry::Entry;
use crate::instruments::{AckHabit, DelayRange, Round, RoundRtts, RoundSummary};
use crate::pair_turns::PairTurns;
use crate::params::{ParamDoc, ParamError, ParamKind, Params, Settings, count, number};
use crate::reno::INIT_CWND;
use crate::reno_window::{News, RenoWindow};
use crate::signal::{signal_of, signal_param};
use crate::undo::Undo;
use crate::vegas_rule::{
    AT_SSTHRESH, EVERY_OTHER, GAMMA, MIN_SAMPLES, VegasRule, WINDOW, alpha_param, backlog_param, beta_param,
};
use crate::{Allowance, Controller, Feedback, Path, Sent, Snapshot, Tag, Timeout};
use alloc::boxed::Box;
use cede_units::{Duration, Instant};

/// So many doublings take the smallest window of all to one packet.
const DOUBLINGS_TO_ONE: u32 = 10;

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
    number(
        "threshold",
        "0.2",
        (0.0, 1.0),
        "delta: where between the smallest and the largest RTT lateness begins.",
    ),
    number(
        "fraction",
        "0.5",
        (0.0, 1.0),
        "phi: the part of a round's samples of which more must be late for the window to be halved.",
    ),
    count("max_fwnd", "48", (1, 1000), "The smallest window is one packet over this (the original: 48)."),
    number(
        "min_cwnd",
        "0",
        (0.0, 1000.0),
        "The smallest window in packets, but after a timeout; 0 takes 1/max_fwnd.",
    ),
    ParamDoc {
        name: "pairs",
        kind: ParamKind::Switch,
        default: "on",
        doc: "Below two packets, two leave at a time where the receiver answers several at once (the original: always).",
    },
    BEGIN,
    min_spread_param("1 ms"),
    number(
        "max_decay",
        "0",
        (0.0, 1.0),
        "Part of its way to the present RTT that the largest RTT goes with each round; 0 keeps it for ever.",
    ),
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
    pairs: bool,
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
    /// Packets answered in the round.
    packets: u32,
    /// The extremes are still being gathered.
    gathering: bool,
    habit: AckHabit,
    turns: PairTurns,
    srtt: Duration,
    /// Whether the extremes were being gathered before the last loss or timeout.
    undo: Undo<bool>,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let config = Config {
        threshold: settings.number("threshold"),
        fraction: settings.number("fraction"),
        max_decay: settings.number("max_decay"),
        pairs: settings.switch("pairs"),
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
        packets: 0,
        gathering: settings.word("begin") == "first_loss",
        habit: AckHabit::default(),
        turns: PairTurns::default(),
        srtt: Duration::ZERO,
        undo: Undo::new(),
    }))
}

impl Nice {
    fn measure(&mut self, feedback: &Feedback<'_>) {
        self.packets = self.packets.saturating_add(feedback.acked.len() as u32);
        let Some(rtt_ns) = self.rtts.add(feedback) else { return };
        if self.habit.may_have_kept_back(feedback) {
            self.range.update_min(feedback.now, rtt_ns);
        } else {
            self.range.update(feedback.now, rtt_ns);
        }
        let late = self.range.threshold_ns(self.config.threshold).is_some_and(|limit| rtt_ns as f64 > limit);
        self.late = self.late.saturating_add(u32::from(late));
    }

    fn fresh_round(&mut self) -> RoundSummary {
        (self.late, self.packets) = (0, 0);
        self.rtts.finish()
    }

    fn on_acked(&mut self, feedback: &Feedback<'_>) {
        if !self.round.ends(feedback) {
            self.rule.within_round(&mut self.window, feedback);
            return;
        }
        let (late, packets, base_ns) = (f64::from(self.late), self.packets, self.rtts.base_ns());
        let round = self.fresh_round();
        if let Some(rtt_ns) = round.rtt_ns {
            self.range.decay_max(rtt_ns, self.config.max_decay);
        }
        if late > self.config.fraction * f64::from(round.samples) {
            self.halve();
        } else if self.window.packets() < 1.0 {
            let doubled = self.window.packets() * f64::from(1_u32 << packets.min(DOUBLINGS_TO_ONE));
            self.window.set_packets(doubled.min(1.0));
        } else {
            self.rule.end_round(&mut self.window, feedback, base_ns, round);
        }
    }

    fn halve(&mut self) {
        self.window.set(self.window.cwnd / 2.0);
        self.window.end_slow_start();
    }

    /// A slow start goes by single packets, from the one that a timeout leaves.
    fn take_turns(&mut self, now: Instant) {
        if self.config.pairs && self.habit.answers_several() && self.window.cwnd >= self.window.ssthresh {
            self.turns.update(now, self.window.packets(), self.srtt);
        } else {
            self.turns.end();
        }
    }
}

impl Controller for Nice {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.turns.on_sent(sent.now);
        0
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.srtt = feedback.srtt;
        self.habit.update(feedback);
        self.measure(feedback);
        match self.window.take(feedback) {
            News::Acked if self.gathering => {
                if !feedback.app_limited {
                    self.window.grow(feedback.acked_bytes);
                }
            }
            News::Acked => self.on_acked(feedback),
            news => {
                if news == News::Cut {
                    self.undo.note_event(feedback, self.gathering);
                    self.gathering = false;
                }
                self.fresh_round();
                self.round.restart(feedback.next_number);
            }
        }
        self.take_turns(feedback.now);
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        self.window.undo();
        self.gathering |= self.undo.take() == Some(true);
        if !PairTurns::are_needed(self.window.packets()) {
            self.turns.end();
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.undo.note_timeout(timeout, self.window.is_repairing(), self.gathering);
        self.gathering &= timeout.idle;
        self.fresh_round();
        self.round.restart(timeout.next_number);
        self.window.on_timeout(timeout);
        self.take_turns(timeout.now);
        self.allowance()
    }

    fn on_timer(&mut self, now: Instant) -> Allowance {
        self.take_turns(now);
        self.allowance()
    }

    fn timer(&self) -> Option<Instant> {
        self.turns.timer()
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.window.on_mss(mss_bytes);
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        let turn = self.turns.window_bytes(&self.window.bounds);
        turn.map_or_else(|| self.window.allowance(), Allowance::window)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { base_delay_ns: self.range.min_ns(), ..self.window.snapshot() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, ack_of_two, loss, path};
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

    /// As [`nice`], after a round of 60 ms behind a receiver that answers pairs, or each; the next one begins with packet 20.
    fn nice_behind(pairs: bool, params: Params) -> Box<dyn Controller> {
        let mut nice = nice(params);
        for number in (10..18).step_by(2) {
            let mut one = if pairs { ack_of_two(number, 1000) } else { ack(number, 1000) };
            (one.feedback.in_flight_before_bytes, one.feedback.next_number) = (10_000, 20);
            one.feedback.rtt = Some(Duration::from_millis(60));
            nice.on_feedback(&one.feedback());
        }
        assert_eq!(nice.snapshot().cwnd_bytes, 10_000.0);
        nice
    }

    #[test]
    fn what_a_receiver_may_have_kept_back_raises_no_largest_rtt() {
        let after = |mut nice: Box<dyn Controller>| {
            nice.on_feedback(&at(18, 20, 1_000_000).feedback());
            round(&mut *nice, 20, &[80_000; 6])
        };
        assert_eq!(after(nice_behind(true, Params::new())), 5.0, "80 ms are late as before");
        assert_eq!(
            after(nice_behind(false, Params::new())),
            10.0,
            "one that answers each has had a queue of 0.9 s"
        );
    }

    #[test]
    fn below_two_packets_two_leave_at_a_time_to_a_receiver_that_answers_pairs() {
        let small = |mut nice: Box<dyn Controller>| {
            (20..24).for_each(|number| {
                nice.on_feedback(&at(number, number + 1, 100_000).feedback());
            });
            assert_eq!(nice.snapshot().cwnd_bytes, 1250.0);
            let now = Instant::from_millis(3_300);
            nice.on_sent(&Sent {
                now,
                number: 24,
                bytes: 1000,
                in_flight_bytes: 1000,
                retransmission: false,
            });
            nice.on_feedback(&at(24, 25, 100_000).feedback());
            assert_eq!(nice.snapshot().cwnd_bytes, 625.0);
            nice
        };
        let mut paired = small(nice_behind(true, Params::new()));
        // Two packets in 2 / 0.625 round trips of 100 ms.
        let turn = Instant::from_millis(3_620);
        assert_eq!((paired.allowance().cwnd_bytes, paired.timer()), (1, Some(turn)));
        paired.on_timer(turn);
        assert_eq!((paired.allowance().cwnd_bytes, paired.timer()), (2000, None));
        for mut lone in [
            small(nice_behind(false, Params::new())),
            small(nice_behind(true, Params::new().with("pairs", ParamValue::Switch(false)))),
        ] {
            lone.on_timer(turn);
            assert_eq!((lone.allowance().cwnd_bytes, lone.timer()), (625, None));
        }
    }

    #[test]
    fn a_loss_that_was_none_ends_turns_as_it_gives_back_the_window() {
        let mut nice = nice_behind(true, Params::new());
        let mut lost = loss(19, 20);
        lost.feedback.in_flight_before_bytes = 10_000;
        nice.on_feedback(&lost.feedback());
        for number in 20..24 {
            let now = Instant::from_millis(1000 + 100 * number);
            nice.on_sent(&Sent { now, number, bytes: 1000, in_flight_bytes: 1000, retransmission: false });
            nice.on_feedback(&at(number, number + 1, 100_000).feedback());
        }
        assert_eq!(
            (nice.snapshot().cwnd_bytes, nice.allowance().cwnd_bytes),
            (250.0, 1),
            "a turn is to come"
        );
        assert_eq!((nice.on_undo().cwnd_bytes, nice.timer()), (10_000, None));
    }

    #[test]
    fn after_a_loss_that_was_none_the_extremes_are_gathered_on() {
        let after = |undone: bool| {
            let mut nice = registry::build("nice", &Params::new(), &path(1000)).unwrap();
            nice.on_feedback(&at(0, 1, 50_000).feedback());
            nice.on_feedback(&at(1, 2, 170_000).feedback());
            let mut lost = loss(5, 9);
            lost.feedback.in_flight_before_bytes = 6000;
            nice.on_feedback(&lost.feedback());
            if undone {
                nice.on_undo();
            }
            for number in [8, 9, 10] {
                let mut late = at(number, number + 1, 170_000);
                late.feedback.in_flight_bytes = 9000;
                nice.on_feedback(&late.feedback());
            }
            nice.snapshot().cwnd_bytes
        };
        assert_eq!((after(false), after(true)), (750.0, 9000.0), "halved twice, or three packets more");
    }

    #[test]
    fn a_packet_answered_in_time_doubles_a_window_below_one() {
        let mut nice = nice_behind(true, Params::new());
        for number in 20..40 {
            nice.on_feedback(&at(number, number + 1, 100_000).feedback());
        }
        let mut two = ack_of_two(40, 1000);
        two.feedback.rtt = Some(Duration::from_millis(51));
        nice.on_feedback(&two.feedback());
        assert!((nice.snapshot().cwnd_bytes - 4.0 * 1000.0 / 48.0).abs() < 1e-9);
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
