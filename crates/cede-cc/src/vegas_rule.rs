//! Vegas's step once per round, which NICE takes as well, and its parameters.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet" (JSAC 1995), as section
//! II-B of "A hands-on assessment of transport protocols with lower than best effort priority" (LCN 2010), Linux 6.12
//! (`net/ipv4/tcp_vegas.c`) and ns-3 (`tcp-vegas.cc`) have it. The backlog of a window W in packets:
//! ```text
//! classic  W (1 - base/rtt)               Linux  floor(W (rtt - base)/base)           ns-3  W - floor(W base/rtt)
//! ```
//! W is the window at the beginning of the round (`window = round`; Linux 2.6 took what was outstanding then), as the
//! round's RTTs belong to it; Linux 6.12 and ns-3 take the present one, which in slow start is twice as large and
//! leaves slow start with nearly all of it. With more than two samples in the round, backlog > gamma ends slow start; outside of it backlog > beta takes a packet,
//! backlog < alpha adds one. With two samples or fewer it is Reno's increase.
//!
//! *What it leaves out:* the paper's finer retransmission timers, which neither Linux nor ns-3 has.
//! *How it was validated:* the numbered checks of `vegas.rs`.

use crate::Feedback;
use crate::instruments::RoundSummary;
use crate::params::{ParamDoc, ParamError, ParamKind, Settings, count};
use crate::reno_window::RenoWindow;
use alloc::borrow::ToOwned;
use alloc::format;

/// ssthresh never falls below this part of the window (Linux: `tcp_current_ssthresh`).
const SSTHRESH_PART: f64 = 0.75;

pub(crate) const fn backlog_param(default: &'static str) -> ParamDoc {
    ParamDoc {
        name: "backlog",
        kind: ParamKind::Word(&["classic", "linux", "ns3"]),
        default,
        doc: "How the packets in the queue are reckoned: W (1 - base/rtt), or as Linux or ns-3 do, in whole packets.",
    }
}

const fn packets_param(name: &'static str, default: &'static str, doc: &'static str) -> ParamDoc {
    ParamDoc { name, kind: ParamKind::Number { min: 0.0, max: 1000.0 }, default, doc }
}

pub(crate) const fn alpha_param(default: &'static str) -> ParamDoc {
    packets_param("alpha", default, "Backlog in packets below which the window grows; beta at most.")
}

pub(crate) const fn beta_param(default: &'static str) -> ParamDoc {
    packets_param("beta", default, "Backlog in packets above which the window shrinks.")
}

pub(crate) const GAMMA: ParamDoc =
    packets_param("gamma", "1", "Backlog in packets above which slow start ends.");

pub(crate) const MIN_SAMPLES: ParamDoc = count(
    "min_samples",
    "2",
    (0, 1000),
    "RTT samples of a round up to which it is judged by none, and Reno's increase takes its place (Linux, ns-3: 2).",
);

pub(crate) const EVERY_OTHER: ParamDoc = ParamDoc {
    name: "slow_start_every_other",
    kind: ParamKind::Switch,
    default: "off",
    doc: "Slow start doubles the window in every other round only, as the paper has it.",
};

pub(crate) const AT_SSTHRESH: ParamDoc = ParamDoc {
    name: "slow_start_at_ssthresh",
    kind: ParamKind::Switch,
    default: "off",
    doc: "A window equal to ssthresh is in slow start, as in Linux before 4.2 and in ns-2: a floor of 2 packets is 3 in effect.",
};

pub(crate) const WINDOW: ParamDoc = ParamDoc {
    name: "window",
    kind: ParamKind::Word(&["round", "present"]),
    default: "round",
    doc: "The W of the backlog: that at the beginning of the round, which its RTTs belong to, or the present one.",
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Backlog {
    Classic,
    Linux,
    Ns3,
}

/// The rule with its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct VegasRule {
    backlog: Backlog,
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// A round needs more samples than this.
    min_samples: u32,
    every_other: bool,
    /// The backlog is that of the window at the beginning of the round, in packets; else of the present one.
    round_window: Option<f64>,
    /// With `every_other`: slow start rests in this round.
    rests: bool,
}

/// Whole units towards zero; the numbers are windows and delays, which fit.
fn whole(x: f64) -> f64 {
    x as i64 as f64
}

impl VegasRule {
    /// An alpha above beta is refused: in between, a window would have to grow and to shrink.
    pub(crate) fn of(settings: &Settings) -> Result<Self, ParamError> {
        let (alpha, beta) = (settings.number("alpha"), settings.number("beta"));
        if alpha > beta {
            return Err(ParamError::Conflict {
                name: "alpha".to_owned(),
                given: format!("{alpha}"),
                allowed: format!("a number up to \"beta\", which is {beta}"),
            });
        }
        let backlog = match settings.word("backlog") {
            "linux" => Backlog::Linux,
            "ns3" => Backlog::Ns3,
            _ => Backlog::Classic,
        };
        Ok(Self {
            backlog,
            alpha,
            beta,
            gamma: settings.number("gamma"),
            min_samples: settings.count("min_samples") as u32,
            every_other: settings.switch("slow_start_every_other"),
            round_window: (settings.word("window") == "round").then_some(f64::INFINITY),
            rests: false,
        })
    }

    /// The packets of a window that wait in the queue.
    pub(crate) fn backlog(&self, window: f64, base: f64, rtt: f64) -> f64 {
        match self.backlog {
            Backlog::Classic => window * (1.0 - base / rtt),
            Backlog::Linux => whole(whole(window) * (rtt - base) / base),
            Backlog::Ns3 => whole(window) - whole(whole(window) * base / rtt),
        }
    }

    /// Slow start between the ends of rounds.
    pub(crate) fn within_round(&self, window: &mut RenoWindow, feedback: &Feedback<'_>) {
        if window.in_slow_start() && !self.rests && !feedback.app_limited {
            window.grow(feedback.acked_bytes);
        }
    }

    /// The end of a round, and the beginning of the next one.
    pub(crate) fn end_round(
        &mut self,
        window: &mut RenoWindow,
        feedback: &Feedback<'_>,
        base_ns: Option<i64>,
        round: RoundSummary,
    ) {
        self.step(window, feedback, base_ns, round);
        self.round_window = self.round_window.map(|_| window.packets());
    }

    fn step(
        &mut self,
        window: &mut RenoWindow,
        feedback: &Feedback<'_>,
        base_ns: Option<i64>,
        round: RoundSummary,
    ) {
        let measured = round.rtt_ns.zip(base_ns).filter(|_| round.samples > self.min_samples);
        let Some((rtt_ns, base_ns)) = measured else {
            if !feedback.app_limited {
                window.grow(feedback.acked_bytes);
            }
            return;
        };
        // Never zero: Linux adds a microsecond to its samples for the same reason.
        let (base, rtt) = (base_ns.max(1) as f64, rtt_ns.max(base_ns).max(1) as f64);
        let judged = self.round_window.map_or(window.packets(), |began| began.min(window.packets()));
        let backlog = self.backlog(judged, base, rtt);
        if !window.in_slow_start() {
            self.avoid(window, backlog, feedback.app_limited);
        } else if backlog > self.gamma {
            self.leave_slow_start(window, judged, base / rtt);
        } else {
            self.rests = self.every_other && !self.rests;
            self.within_round(window, feedback);
        }
        window.ssthresh = window.ssthresh.max(SSTHRESH_PART * window.cwnd);
    }

    fn leave_slow_start(&self, window: &mut RenoWindow, judged: f64, empty_part: f64) {
        let served = judged * empty_part;
        let served = if self.backlog == Backlog::Classic { served } else { whole(served) };
        window.set_packets(window.packets().min(served + 1.0));
        window.end_slow_start();
        if self.backlog == Backlog::Ns3 {
            // A packet below the window, two at least.
            let below = (window.packets() - 1.0).max(2.0) * window.bounds.mss;
            window.ssthresh = window.ssthresh.min(below);
        }
    }

    fn avoid(&self, window: &mut RenoWindow, backlog: f64, app_limited: bool) {
        if backlog > self.beta {
            window.set_packets(window.packets() - 1.0);
            window.end_slow_start();
        } else if backlog < self.alpha && !app_limited {
            window.set_packets(window.packets() + 1.0);
        }
    }
}
