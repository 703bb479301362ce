//! The parameters of the four controllers, which differ in them alone. Names in brackets are PCC-Uspace's.

use crate::params::{ParamDoc, ParamKind};
use cede_units::Rate;

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
pub(super) const PROBE_STEP: ParamDoc = ParamDoc {
    name: "probe_step",
    kind: ParamKind::Number { min: 0.001, max: 0.5 },
    default: "0.05",
    doc: "How far the rates of probes lie from the central rate (kProbingStepSize).",
};
pub(super) const PRIMARY_PAIRS: ParamDoc = ParamDoc {
    name: "primary_pairs",
    kind: ParamKind::Count { min: 1, max: 10 },
    default: "3",
    doc: "Pairs of probes before a primary decides (kNumIntervalGroupsInProbingPrimary).",
};
pub(super) const SCAVENGER_PAIRS: ParamDoc = ParamDoc {
    name: "scavenger_pairs",
    kind: ParamKind::Count { min: 1, max: 10 },
    default: "2",
    doc: "Pairs of probes before a scavenger decides (kNumIntervalGroupsInProbingScavenger).",
};
pub(super) const EXPONENT: ParamDoc = ParamDoc {
    name: "exponent",
    kind: ParamKind::Number { min: 0.1, max: 1.0 },
    default: "0.9",
    doc: "Exponent of the rate in the utility (kSendingRateExponent).",
};
pub(super) const GRADIENT_WEIGHT: ParamDoc = ParamDoc {
    name: "gradient_weight",
    kind: ParamKind::Number { min: 0.0, max: 1e6 },
    default: "900",
    doc: "What a rising RTT costs (kLatencyCoefficient).",
};
pub(super) const LOSS_WEIGHT: ParamDoc = ParamDoc {
    name: "loss_weight",
    kind: ParamKind::Number { min: 0.0, max: 1e6 },
    default: "11.35",
    doc: "What loss costs (kVivaceLossCoefficient).",
};
pub(super) const DEVIATION_WEIGHT: ParamDoc = ParamDoc {
    name: "deviation_weight",
    kind: ParamKind::Number { min: 0.0, max: 1e9 },
    default: "1500",
    doc: "What the RTT's deviation costs a scavenger, per second (kRttDeviationCoefficient).",
};
pub(super) const GRADIENT_TOLERANCE: ParamDoc = ParamDoc {
    name: "gradient_tolerance",
    kind: ParamKind::Number { min: 0.0, max: 1.0 },
    default: "0.01",
    doc: "RTT gradients below this count as zero.",
};
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
pub(super) const SEED: ParamDoc = ParamDoc {
    name: "seed",
    kind: ParamKind::Count { min: 0, max: u32::MAX },
    default: "0",
    doc: "Of the random order of probes; scenarios derive it from the run's seed and the flow's name.",
};

pub(super) const VIVACE: &[ParamDoc] = &[
    MIN_RATE,
    MIN_CHANGE,
    PROBE_STEP,
    PRIMARY_PAIRS,
    EXPONENT,
    GRADIENT_WEIGHT,
    LOSS_WEIGHT,
    GRADIENT_TOLERANCE,
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
    SEED,
];
