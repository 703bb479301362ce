//! BBR's parameters: what the draft and Linux's `tcp_bbr.c` have as constants.

use crate::params::{ParamDoc, ParamKind, Settings, count, number};
use crate::reno::INIT_CWND;
use cede_units::Duration;

const fn span(
    name: &'static str,
    default: &'static str,
    (min, max): (Duration, Duration),
    doc: &'static str,
) -> ParamDoc {
    ParamDoc { name, kind: ParamKind::Duration { min, max }, default, doc }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) const PARAMS: &[ParamDoc] = &[
    INIT_CWND,
    number(
        "startup_gain",
        "2.88671875",
        (1.0, 16.0),
        "Pacing in STARTUP over the bandwidth (section 4.3.2.1: 2/ln 2; bbr_high_gain is 739/256).",
    ),
    number(
        "startup_cwnd_gain",
        "2.88671875",
        (1.0, 16.0),
        "Bandwidth-delay products that may be under way in STARTUP and DRAIN (section 4.3.2.1).",
    ),
    number(
        "drain_gain",
        "0.34375",
        (0.01, 1.0),
        "Pacing in DRAIN over the bandwidth (section 4.3.3: ln 2/2; bbr_drain_gain is 88/256).",
    ),
    number(
        "full_growth",
        "1.25",
        (1.0, 10.0),
        "The growth of the bandwidth in a round without which STARTUP is about to end (section 4.3.2.2).",
    ),
    count("full_rounds", "3", (1, 1000), "Rounds without it after which the pipe is full (section 4.3.2.2)."),
    number(
        "cwnd_gain",
        "2",
        (1.0, 16.0),
        "Bandwidth-delay products that may be under way in PROBE_BW (section 4.2.3.2).",
    ),
    number(
        "probe_up_gain",
        "1.25",
        (1.0, 16.0),
        "Pacing over the bandwidth in the phase of PROBE_BW that looks for more (section 4.3.4.3).",
    ),
    number(
        "probe_down_gain",
        "0.75",
        (0.01, 1.0),
        "The same in the phase behind it, which drains what that has queued.",
    ),
    count(
        "cycle_length",
        "8",
        (2, 1000),
        "Phases of PROBE_BW, one RTT each: one up, one down, the others at the bandwidth (section 4.3.4.3).",
    ),
    count(
        "bandwidth_rounds",
        "10",
        (1, 1000),
        "Rounds over which the largest delivery rate is the bandwidth (section 4.1.1.3).",
    ),
    span(
        "probe_rtt_interval",
        "10 s",
        (ms(100), ms(86_400_000)),
        "Time without a smaller RTT after which PROBE_RTT looks for one (section 4.1.2).",
    ),
    span(
        "probe_rtt_duration",
        "200 ms",
        (ms(1), ms(60_000)),
        "How long PROBE_RTT holds the window at its minimum (section 4.3.5).",
    ),
    count(
        "min_cwnd",
        "4",
        (1, 1000),
        "The smallest window in packets, which is that of PROBE_RTT (section 4.2.3.1).",
    ),
    number(
        "window_bursts",
        "3",
        (0.0, 1000.0),
        "Bursts of a millisecond of the rate that the window has room for beyond its bandwidth-delay products (bbr_quantization_budget).",
    ),
    ParamDoc {
        name: "aggregation",
        kind: ParamKind::Switch,
        default: "on",
        doc: "Allow for acknowledgements that arrive together, as Linux does since 5.1.",
    },
    count(
        "aggregation_rounds",
        "10",
        (1, 1000),
        "Rounds over which the largest such aggregation counts (bbr_extra_acked_win_rtts: twice five).",
    ),
    span(
        "aggregation_time",
        "100 ms",
        (Duration::ZERO, ms(60_000)),
        "Of it, what the bandwidth delivers in this time at most (bbr_extra_acked_max_us).",
    ),
    number(
        "pacing_margin",
        "0.01",
        (0.0, 0.5),
        "What pacing stays below the rate aimed at (bbr_pacing_margin_percent, Linux since 5.0; 0 before and in the draft).",
    ),
    span(
        "initial_rtt",
        "1 ms",
        (Duration::from_micros(1), ms(60_000)),
        "The RTT that the first rate is worked out from, at least (section 4.2.1).",
    ),
    count(
        "seed",
        "0",
        (0, u32::MAX),
        "Of the random phase in which PROBE_BW begins; scenarios derive it from the run's seed and the flow's name.",
    ),
];

/// What does not change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Pacing gains of STARTUP and DRAIN, and the window's there.
    pub(super) startup_gain: f64,
    pub(super) drain_gain: f64,
    pub(super) startup_cwnd_gain: f64,
    pub(super) full_growth: f64,
    pub(super) full_rounds: u32,
    /// The window's gain in PROBE_BW, and the pacing gains of its first two phases.
    pub(super) cwnd_gain: f64,
    pub(super) probe_gains: [f64; 2],
    pub(super) cycle_length: usize,
    pub(super) bandwidth_rounds: u64,
    pub(super) probe_rtt_interval: Duration,
    pub(super) probe_rtt_duration: Duration,
    pub(super) aggregation: bool,
    pub(super) aggregation_rounds: u64,
    pub(super) aggregation_time: Duration,
    pub(super) initial_rtt: Duration,
    /// One less the margin.
    pub(super) pacing: f64,
}

impl Tuning {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            startup_gain: settings.number("startup_gain"),
            drain_gain: settings.number("drain_gain"),
            startup_cwnd_gain: settings.number("startup_cwnd_gain"),
            full_growth: settings.number("full_growth"),
            full_rounds: settings.count("full_rounds") as u32,
            cwnd_gain: settings.number("cwnd_gain"),
            probe_gains: ["probe_up_gain", "probe_down_gain"].map(|name| settings.number(name)),
            cycle_length: settings.count("cycle_length"),
            bandwidth_rounds: settings.count("bandwidth_rounds") as u64,
            probe_rtt_interval: settings.duration("probe_rtt_interval"),
            probe_rtt_duration: settings.duration("probe_rtt_duration"),
            aggregation: settings.switch("aggregation"),
            aggregation_rounds: settings.count("aggregation_rounds") as u64,
            aggregation_time: settings.duration("aggregation_time"),
            initial_rtt: settings.duration("initial_rtt"),
            pacing: 1.0 - settings.number("pacing_margin"),
        }
    }

    /// Section 4.3.4.3: the gain of a phase of PROBE_BW.
    pub(super) fn cycle_gain(&self, phase: usize) -> f64 {
        self.probe_gains.get(phase).copied().unwrap_or(1.0)
    }
}
