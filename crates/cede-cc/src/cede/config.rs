//! The parameters of `cede`.

use crate::params::{ParamDoc, ParamKind, Settings, count, number};
use cede_units::Duration;

const fn span(
    name: &'static str,
    default: &'static str,
    min_us: u64,
    max_ms: u64,
    doc: &'static str,
) -> ParamDoc {
    let kind = ParamKind::Duration { min: Duration::from_micros(min_us), max: Duration::from_millis(max_ms) };
    ParamDoc { name, kind, default, doc }
}

const fn switch(name: &'static str, doc: &'static str) -> ParamDoc {
    ParamDoc { name, kind: ParamKind::Switch, default: "on", doc }
}

pub(super) const PARAMS: &[ParamDoc] = &[
    span(
        "target",
        "15 ms",
        100,
        1_000,
        "The queueing delay aimed at (RFC 6817: at most 100 ms); two packets' time where that is more.",
    ),
    ParamDoc {
        name: "signal",
        kind: ParamKind::Word(&["both", "owd", "rtt"]),
        default: "both",
        doc: "The delay that steers: the smaller queue of one-way delay and RTT, or one of them alone.",
    },
    switch(
        "allow_jitter",
        "Aim at as much more as samples of one round trip differ by at the least: jitter is no queue.",
    ),
    switch(
        "adapt_target",
        "Where packets are lost at a full queue that is shorter than the target, aim at a third of that queue.",
    ),
    number(
        "gain_rtt",
        "30",
        (1.0, 10_000.0),
        "Base RTT in milliseconds from which on a round trip adds a whole packet; shorter ones add in proportion, a sixteenth at least.",
    ),
    switch(
        "velocity",
        "Double the growth each round trip while there is no queue, up to a tenth of the window.",
    ),
    switch("pace", "Spread packets over the round trip."),
    switch("slowdowns", "Drain the queue periodically, so that the base delay shows."),
    number(
        "freeze",
        "2",
        (0.1, 100.0),
        "Smoothed RTTs for which a slowdown keeps the window at its smallest.",
    ),
    number("slowdown_spacing", "20", (0.0, 1000.0), "Time to the next slowdown over the duration of one."),
    switch("loss_guard", "Losses without a queue take a fifth of the window in place of half of it."),
    number(
        "guard_loss",
        "0.15",
        (0.0, 1.0),
        "The part of what is sent above which losses count as congestion whatever the queue.",
    ),
    switch(
        "follow_route",
        "At the smallest window, take a higher delay that stands still for a new base, on trial.",
    ),
    span(
        "route_time",
        "6 s",
        1_000,
        3_600_000,
        "How long a delay must stand still at first to be taken for a new base.",
    ),
    switch(
        "fair_queueing",
        "Find schedulers that divide the link among flows, by trains of packets, and take less than the own share there.",
    ),
    number(
        "fair_share",
        "0.5",
        (0.05, 1.0),
        "Behind a scheduler that divides the link among flows: the part of the own share that is taken.",
    ),
    count(
        "train",
        "8",
        (4, 16),
        "Packets that leave back to back after a slowdown; their spacing shows such a scheduler.",
    ),
    number(
        "base_part",
        "0.75",
        (0.01, 100.0),
        "The part of the base RTT that the target is at most: BBR keeps a queue of about one.",
    ),
    number(
        "adapted_part",
        "0.33",
        (0.01, 1.0),
        "With adapt_target: the part of a short queue that is aimed at once it has overflowed.",
    ),
    number(
        "max_velocity",
        "0.1",
        (0.0, 1.0),
        "With velocity: the part of the window by which it grows per round trip at most.",
    ),
    number(
        "max_ahead",
        "6",
        (1.0, 100.0),
        "Targets that growth and pacing may make of a queue before a round trip has shown it, after long without one.",
    ),
    number(
        "steady_pace",
        "1.25",
        (1.0, 2.0),
        "With pace: how much above or below the delivered rate packets leave at most.",
    ),
    number(
        "first_left",
        "0.9",
        (0.5, 1.0),
        "What the first decrease leaves of the window at least, where the queue is below three targets.",
    ),
    number(
        "guard_left",
        "0.8",
        (0.5, 0.99),
        "With loss_guard: what a loss without a queue leaves of the window.",
    ),
    span("careful", "5 s", 1, 3_600_000, "How long growth does not double after a loss with a queue."),
    count(
        "loss_rounds",
        "8",
        (0, 1000),
        "Round trips for which growth does not double after any loss, beside the three without a queue.",
    ),
    number("min_cwnd", "2", (1.0, 1000.0), "The smallest window in packets."),
    number("init_cwnd", "4", (1.0, 1000.0), "The initial window in packets."),
];

/// What is set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Config {
    pub(super) target: Duration,
    pub(super) allow_jitter: bool,
    pub(super) adapt_target: bool,
    pub(super) gain_rtt: Duration,
    pub(super) velocity: bool,
    pub(super) pace: bool,
    pub(super) slowdowns: bool,
    pub(super) freeze: f64,
    pub(super) spacing: f64,
    pub(super) loss_guard: bool,
    pub(super) guard_loss: f64,
    pub(super) fair_queueing: bool,
    pub(super) fair_share: f64,
    pub(super) train: usize,
    pub(super) base_part: f64,
    pub(super) adapted_part: f64,
    pub(super) max_velocity: f64,
    pub(super) max_ahead: f64,
    pub(super) steady_pace: f64,
    pub(super) first_left: f64,
    pub(super) guard_left: f64,
    pub(super) careful: Duration,
    pub(super) loss_rounds: i32,
    pub(super) min_packets: f64,
    pub(super) init_packets: f64,
}

impl Config {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            target: settings.duration("target"),
            allow_jitter: settings.switch("allow_jitter"),
            adapt_target: settings.switch("adapt_target"),
            gain_rtt: Duration::from_secs_f64(settings.number("gain_rtt") / 1e3),
            velocity: settings.switch("velocity"),
            pace: settings.switch("pace"),
            slowdowns: settings.switch("slowdowns"),
            freeze: settings.number("freeze"),
            spacing: settings.number("slowdown_spacing"),
            loss_guard: settings.switch("loss_guard"),
            guard_loss: settings.number("guard_loss"),
            fair_queueing: settings.switch("fair_queueing"),
            fair_share: settings.number("fair_share"),
            train: settings.count("train"),
            base_part: settings.number("base_part"),
            adapted_part: settings.number("adapted_part"),
            max_velocity: settings.number("max_velocity"),
            max_ahead: settings.number("max_ahead"),
            steady_pace: settings.number("steady_pace"),
            first_left: settings.number("first_left"),
            guard_left: settings.number("guard_left"),
            careful: settings.duration("careful"),
            loss_rounds: settings.count("loss_rounds") as i32,
            min_packets: settings.number("min_cwnd"),
            init_packets: settings.number("init_cwnd"),
        }
    }
}
