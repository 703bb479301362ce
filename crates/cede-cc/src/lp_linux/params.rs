//! The parameters of TCP-LP as Linux runs it, and of whoever runs it otherwise.

use crate::params::{ParamDoc, ParamKind, count, number};
use crate::reno::INIT_CWND;
use crate::vegas_rule::AT_SSTHRESH;
use cede_units::Duration;

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

const PERCENT: ParamDoc =
    count("percent", "15", (0, 100), "Where between the smallest and the largest delay congestion begins.");

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

const INFERENCE: ParamDoc = count(
    "inference",
    "3",
    (0, 1_000),
    "Round-trip times that an inference phase lasts (Linux, ns-2 and ns-3: 3).",
);

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

const MIN_CWND: ParamDoc = number(
    "min_cwnd",
    "1",
    (1.0, 1_000.0),
    "Packets that early congestion within an inference phase leaves (the paper: none; Linux: 1).",
);

const fn params(bits: &'static str, at_ssthresh: &'static str) -> [ParamDoc; 15] {
    let (bits, at_ssthresh) = (bits_param(bits), ParamDoc { default: at_ssthresh, ..AT_SSTHRESH });
    [
        bits,
        CLOCK_RATE,
        STAMP_TICK,
        STAMP_ROUNDING,
        PERCENT,
        BOUNDARY,
        RESET_EXTREMES,
        INFERENCE,
        INFERENCE_HOLDS,
        JUDGE_REPAIRS,
        at_ssthresh,
        HALVES,
        GROWTH,
        MIN_CWND,
        INIT_CWND,
    ]
}

pub(super) const PARAMS: &[ParamDoc] = &params("64", "off");
pub(super) const PARAMS_26: &[ParamDoc] = &params("32", "on");
