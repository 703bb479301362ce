//! The parameters of the four controllers, which differ in them alone. Names in brackets are PCC-Uspace's.

use crate::params::{ParamDoc, ParamKind, count, number};
use cede_units::{Duration, Rate};

const fn span(name: &'static str, default: &'static str, doc: &'static str) -> ParamDoc {
    let kind = ParamKind::Duration { min: Duration::ZERO, max: Duration::from_secs(60) };
    ParamDoc { name, kind, default, doc }
}

pub(super) const MIN_RATE: ParamDoc = ParamDoc {
    name: "min_rate",
    kind: ParamKind::Rate { min: Rate::from_bits_per_sec(1000), max: Rate::from_mbit(1000) },
    default: "500 kbit/s",
    doc: "The lowest rate (kMinSendingRate).",
};
pub(super) const MIN_CHANGE: ParamDoc = ParamDoc {
    name: "min_change",
    kind: ParamKind::Rate { min: Rate::from_bits_per_sec(1), max: Rate::from_mbit(1000) },
    default: "500 kbit/s",
    doc: "The smallest change of the rate (kMinRateChange).",
};
pub(super) const PROBE_STEP: ParamDoc = number(
    "probe_step",
    "0.05",
    (0.001, 0.5),
    "How far the rates of probes lie from the central rate (kProbingStepSize).",
);
pub(super) const PRIMARY_PAIRS: ParamDoc = count(
    "primary_pairs",
    "3",
    (1, 10),
    "Pairs of probes before a primary decides (kNumIntervalGroupsInProbingPrimary).",
);
pub(super) const SCAVENGER_PAIRS: ParamDoc = count(
    "scavenger_pairs",
    "2",
    (1, 10),
    "Pairs of probes before a scavenger decides (kNumIntervalGroupsInProbingScavenger).",
);
pub(super) const EXPONENT: ParamDoc =
    number("exponent", "0.9", (0.1, 1.0), "Exponent of the rate in the utility (kSendingRateExponent).");
pub(super) const GRADIENT_WEIGHT: ParamDoc =
    number("gradient_weight", "900", (0.0, 1e6), "What a rising RTT costs (kLatencyCoefficient).");
pub(super) const LOSS_WEIGHT: ParamDoc =
    number("loss_weight", "11.35", (0.0, 1e6), "What loss costs (kVivaceLossCoefficient).");
pub(super) const DEVIATION_WEIGHT: ParamDoc = number(
    "deviation_weight",
    "1500",
    (0.0, 1e9),
    "What the RTT's deviation costs a scavenger, per second (kRttDeviationCoefficient).",
);
pub(super) const GRADIENT_TOLERANCE: ParamDoc =
    number("gradient_tolerance", "0.01", (0.0, 1.0), "RTT gradients below this count as zero.");
pub(super) const REGRESSION_ERROR: ParamDoc = ParamDoc {
    name: "regression_error",
    kind: ParamKind::Word(&["gradient", "slope"]),
    default: "gradient",
    doc: "What the error of the RTT regression is taken about: the gradient, as PCC-Uspace does, or the slope per packet.",
};
pub(super) const THRESHOLD: ParamDoc = ParamDoc {
    name: "threshold",
    kind: ParamKind::Rate { min: Rate::from_bits_per_sec(1000), max: Rate::from_mbit(1_000_000) },
    default: "5 Mbit/s",
    doc: "The rate up to which a hybrid is a primary, and from which it yields.",
};
pub(super) const SEED: ParamDoc = count(
    "seed",
    "0",
    (0, u32::MAX),
    "Of the random order of probes; scenarios derive it from the run's seed and the flow's name.",
);
pub(super) const INITIAL_RATE: ParamDoc = ParamDoc {
    name: "initial_rate",
    kind: ParamKind::Rate { min: Rate::from_bits_per_sec(1000), max: Rate::from_mbit(1000) },
    default: "1.12 Mbit/s",
    doc: "The rate before the first RTT, which a path below 100 ms raises in proportion (ten packets of 1400 B in 100 ms).",
};
pub(super) const AMPLIFY_EXPONENT: ParamDoc = number(
    "amplify_exponent",
    "1.2",
    (0.0, 10.0),
    "Exponent with which changes grow over rounds in one direction (kRateChangeAmplifyExponent).",
);
pub(super) const MAX_STEP: ParamDoc = number(
    "max_step",
    "0.05",
    (0.001, 1.0),
    "Part of the rate by which the first change moves it at most (kInitialMaximumProportionalChange).",
);
pub(super) const MAX_STEP_MORE: ParamDoc = number(
    "max_step_more",
    "0.05",
    (0.0, 1.0),
    "What each further change that is held by that bound adds to it (kMaximumProportionalChangeStepSize).",
);
pub(super) const INTERVAL_RTTS: ParamDoc = number(
    "interval_rtts",
    "1",
    (0.0, 100.0),
    "How long a monitor interval lasts at least, in smallest RTTs (kMonitorIntervalDurationRatio).",
);
pub(super) const INTERVAL_SAMPLES: ParamDoc = count(
    "interval_samples",
    "4",
    (1, 1000),
    "Reliable RTT samples that an interval needs (kMinReliableRtt).",
);
pub(super) const RELIABLE_SHARE: ParamDoc = number(
    "reliable_share",
    "0.8",
    (0.0, 1.0),
    "An interval of which no more than this part of the samples is reliable lasts twice as long, once (kMinReliabilityRatio).",
);
pub(super) const BURST_RATIO: ParamDoc = number(
    "burst_ratio",
    "50",
    (1.0, 1e9),
    "Gaps between acknowledgements that differ by so many times what is usual make RTT samples unreliable.",
);
pub(super) const STARTING_RISE: ParamDoc = span(
    "starting_rise",
    "1 ms",
    "In the first phase RTTs that rise by less than this in an interval count as constant.",
);
pub(super) const AVERAGE_WEIGHT: ParamDoc = number(
    "average_weight",
    "0.1",
    (0.001, 1.0),
    "Weight of the newest interval in the averages of noise (kAlpha).",
);
pub(super) const TREND_INTERVALS: ParamDoc = count(
    "trend_intervals",
    "6",
    (2, 1000),
    "Intervals over which the trend of the mean RTT is taken (kRttHistoryLen).",
);
pub(super) const TREND_GAIN_LOW: ParamDoc = number(
    "trend_gain_low",
    "2",
    (0.0, 1000.0),
    "Deviations by which a trend may leave its average and still be noise, where the RTT's own deviation is below deviation_min (kInflationToleranceGainLow).",
);
pub(super) const TREND_GAIN_HIGH: ParamDoc =
    number("trend_gain_high", "2", (0.0, 1000.0), "The same where it is not (kInflationToleranceGainHigh).");
pub(super) const TREND_RESET: ParamDoc = number(
    "trend_reset",
    "100",
    (1.0, 1e9),
    "A trend so many times smaller than the smallest begins its averages anew (kBeta).",
);
pub(super) const DEVIATION_GAIN: ParamDoc = number(
    "deviation_gain",
    "4",
    (0.0, 1000.0),
    "Deviations by which an interval's RTT deviation may exceed its average and still be noise.",
);
pub(super) const DEVIATION_MIN: ParamDoc =
    span("deviation_min", "1 ms", "RTT deviations up to this are noise whatever their average.");
pub(super) const RESET_SHARE: ParamDoc = number(
    "reset_share",
    "0.95",
    (0.0, 1.0),
    "Where so large a part of intervals was above that, the average begins anew (kTrendingResetIntervalRatio).",
);

pub(super) const VIVACE: &[ParamDoc] = &[
    MIN_RATE,
    MIN_CHANGE,
    PROBE_STEP,
    PRIMARY_PAIRS,
    EXPONENT,
    GRADIENT_WEIGHT,
    LOSS_WEIGHT,
    GRADIENT_TOLERANCE,
    INITIAL_RATE,
    AMPLIFY_EXPONENT,
    MAX_STEP,
    MAX_STEP_MORE,
    INTERVAL_RTTS,
    INTERVAL_SAMPLES,
    RELIABLE_SHARE,
    BURST_RATIO,
    STARTING_RISE,
    SEED,
];
pub(super) const PROTEUS_P: &[ParamDoc] = &[
    MIN_RATE,
    MIN_CHANGE,
    PROBE_STEP,
    PRIMARY_PAIRS,
    EXPONENT,
    GRADIENT_WEIGHT,
    LOSS_WEIGHT,
    REGRESSION_ERROR,
    INITIAL_RATE,
    AMPLIFY_EXPONENT,
    MAX_STEP,
    MAX_STEP_MORE,
    INTERVAL_RTTS,
    INTERVAL_SAMPLES,
    RELIABLE_SHARE,
    BURST_RATIO,
    STARTING_RISE,
    AVERAGE_WEIGHT,
    TREND_INTERVALS,
    TREND_GAIN_LOW,
    TREND_GAIN_HIGH,
    TREND_RESET,
    DEVIATION_MIN,
    SEED,
];
pub(super) const PROTEUS_S: &[ParamDoc] = &[
    MIN_RATE,
    MIN_CHANGE,
    PROBE_STEP,
    SCAVENGER_PAIRS,
    EXPONENT,
    GRADIENT_WEIGHT,
    LOSS_WEIGHT,
    DEVIATION_WEIGHT,
    REGRESSION_ERROR,
    INITIAL_RATE,
    AMPLIFY_EXPONENT,
    MAX_STEP,
    MAX_STEP_MORE,
    INTERVAL_RTTS,
    INTERVAL_SAMPLES,
    RELIABLE_SHARE,
    BURST_RATIO,
    STARTING_RISE,
    AVERAGE_WEIGHT,
    TREND_INTERVALS,
    TREND_GAIN_LOW,
    TREND_GAIN_HIGH,
    TREND_RESET,
    DEVIATION_GAIN,
    DEVIATION_MIN,
    RESET_SHARE,
    SEED,
];
pub(super) const PROTEUS_H: &[ParamDoc] = &[
    THRESHOLD,
    MIN_RATE,
    MIN_CHANGE,
    PROBE_STEP,
    PRIMARY_PAIRS,
    SCAVENGER_PAIRS,
    EXPONENT,
    GRADIENT_WEIGHT,
    LOSS_WEIGHT,
    DEVIATION_WEIGHT,
    REGRESSION_ERROR,
    INITIAL_RATE,
    AMPLIFY_EXPONENT,
    MAX_STEP,
    MAX_STEP_MORE,
    INTERVAL_RTTS,
    INTERVAL_SAMPLES,
    RELIABLE_SHARE,
    BURST_RATIO,
    STARTING_RISE,
    AVERAGE_WEIGHT,
    TREND_INTERVALS,
    TREND_GAIN_LOW,
    TREND_GAIN_HIGH,
    TREND_RESET,
    DEVIATION_GAIN,
    DEVIATION_MIN,
    RESET_SHARE,
    SEED,
];
