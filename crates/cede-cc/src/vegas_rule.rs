//! Vegas's step once per round, which NICE takes as well, and its parameters.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet" (JSAC 1995), as section
//! II-B of "A hands-on assessment of transport protocols with lower than best effort priority" (LCN 2010), Linux 6.12
//! (`net/ipv4/tcp_vegas.c`) and ns-3 (`tcp-vegas.cc`) have it. The backlog of a window W in packets:
//! ```text
//! classic  W (1 - base/rtt)               Linux  floor(W (rtt - base)/base)           ns-3  W - floor(W base/rtt)
//! ```
//! With more than two samples in the round, backlog > gamma ends slow start; outside of it backlog > beta takes a packet,
//! backlog < alpha adds one. With two samples or fewer it is Reno's increase.
//!
//! *What it leaves out:* the paper's finer retransmission timers, which neither Linux nor ns-3 has.
//! *How it was validated:* the numbered checks of `vegas.rs`.

use crate::Feedback;
use crate::instruments::RoundSummary;
use crate::params::{ParamDoc, ParamKind, Settings};
use crate::reno_window::RenoWindow;

/// A round needs more samples than this (Linux, ns-3).
const MIN_SAMPLES: u32 = 2;
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
    packets_param("alpha", default, "Backlog in packets below which the window grows.")
}

pub(crate) const fn beta_param(default: &'static str) -> ParamDoc {
    packets_param("beta", default, "Backlog in packets above which the window shrinks.")
}

pub(crate) const GAMMA: ParamDoc =
    packets_param("gamma", "1", "Backlog in packets above which slow start ends.");

pub(crate) const EVERY_OTHER: ParamDoc = ParamDoc {
    name: "slow_start_every_other",
    kind: ParamKind::Switch,
    default: "off",
    doc: "Slow start doubles the window in every other round only, as the paper has it.",
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
    every_other: bool,
    /// With `every_other`: slow start rests in this round.
    rests: bool,
}

/// Whole units towards zero; the numbers are windows and delays, which fit.
fn whole(x: f64) -> f64 {
    x as i64 as f64
}

impl VegasRule {
    pub(crate) fn of(settings: &Settings) -> Self {
        let backlog = match settings.word("backlog") {
            "linux" => Backlog::Linux,
            "ns3" => Backlog::Ns3,
            _ => Backlog::Classic,
        };
        Self {
            backlog,
            alpha: settings.number("alpha"),
            beta: settings.number("beta"),
            gamma: settings.number("gamma"),
            every_other: settings.switch("slow_start_every_other"),
            rests: false,
        }
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

    /// The end of a round.
    pub(crate) fn end_round(
        &mut self,
        window: &mut RenoWindow,
        feedback: &Feedback<'_>,
        base_ns: Option<i64>,
        round: RoundSummary,
    ) {
        let measured = round.rtt_ns.zip(base_ns).filter(|_| round.samples > MIN_SAMPLES);
        let Some((rtt_ns, base_ns)) = measured else {
            if !feedback.app_limited {
                window.grow(feedback.acked_bytes);
            }
            return;
        };
        // Never zero: Linux adds a microsecond to its samples for the same reason.
        let (base, rtt) = (base_ns.max(1) as f64, rtt_ns.max(base_ns).max(1) as f64);
        let backlog = self.backlog(window.packets(), base, rtt);
        if !window.in_slow_start() {
            self.avoid(window, backlog, feedback.app_limited);
        } else if backlog > self.gamma {
            self.leave_slow_start(window, base / rtt);
        } else {
            self.rests = self.every_other && !self.rests;
            self.within_round(window, feedback);
        }
        window.ssthresh = window.ssthresh.max(SSTHRESH_PART * window.cwnd);
    }

    fn leave_slow_start(&self, window: &mut RenoWindow, empty_part: f64) {
        let (packets, mss) = (window.packets(), window.bounds.mss);
        let served = packets * empty_part;
        match self.backlog {
            // ns-3 keeps the window and sets the threshold a packet below it.
            Backlog::Ns3 => window.ssthresh = window.ssthresh.min(((packets - 1.0) * mss).max(2.0 * mss)),
            Backlog::Linux => window.set_packets(packets.min(whole(served) + 1.0)),
            Backlog::Classic => window.set_packets(packets.min(served + 1.0)),
        }
        window.end_slow_start();
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
