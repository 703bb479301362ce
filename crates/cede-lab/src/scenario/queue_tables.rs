//! The table of options, continued: queue disciplines, policer, and what changes while the world runs.

use super::model::{PIE_WORDS, QUEUE_WORDS};
use super::schema::Fallback::{Absent, Required, Value};
use super::schema::{Kind, OptionDoc, SIZE_MAX_BYTES, TableDoc, option, table, words};

/// The key that every form of `queue` has.
const KIND: OptionDoc = option("kind", words(QUEUE_WORDS), Value("droptail"), "codel", "The discipline.");
const BURST_SIZE: Kind = Kind::Size { min: 128, max: SIZE_MAX_BYTES };

pub(crate) const QUEUE: TableDoc = table(
    "queue",
    "queue = { ... }",
    "The discipline of a link's queue and its parameters. `queue = \"codel\"` is short for `queue = { kind = \"codel\" }`. Drop-tail and head-drop have no parameters; how much may wait is `buffer` for all of them.",
    &[KIND],
);

pub(crate) const CODEL: TableDoc = table(
    "queue.codel",
    "queue = { kind = \"codel\", ... }",
    "CoDel: drops (or marks) packets at departure once packets have waited longer than `target` for an `interval`, the next ones after interval / sqrt(count). Source: RFC 8289, section 5.",
    &[KIND, TARGET_CODEL, INTERVAL, MAX_PACKET, MEMORY],
);

pub(crate) const FQ_CODEL: TableDoc = table(
    "queue.fq-codel",
    "queue = { kind = \"fq-codel\", ... }",
    "FQ-CoDel: a queue for each flow with CoDel on it, served in turn by octets, new flows first. Where the buffer is full, the flow with most octets loses half of what it has waiting. Source: RFC 8290.",
    &[
        KIND,
        TARGET_CODEL,
        INTERVAL,
        MAX_PACKET,
        MEMORY,
        option(
            "quantum",
            Kind::Size { min: 64, max: 1 << 20 },
            Value("1514 B"),
            "300 B",
            "Octets that a flow may send in its turn.",
        ),
        option(
            "queues",
            Kind::Integer { min: 1, max: 65_536 },
            Value("1024"),
            "32",
            "How many queues; flows are hashed to them.",
        ),
        option(
            "exact",
            Kind::Switch,
            Value("false"),
            "true",
            "Each flow has a queue of its own as long as there have been no more flows than queues.",
        ),
        option(
            "drop_batch",
            Kind::Integer { min: 1, max: 1_000_000 },
            Value("64"),
            "1",
            "Packets that the fattest queue loses at an overflow at most (Linux); RFC 8290's half of it is the other bound.",
        ),
    ],
);

const TARGET_CODEL: OptionDoc = option(
    "target",
    Kind::Span,
    Value("5 ms"),
    "15 ms",
    "The delay that a standing queue may have; at least the time of a packet (15 ms at 1 Mbit/s).",
);
const INTERVAL: OptionDoc = option(
    "interval",
    Kind::Span,
    Value("100 ms"),
    "300 ms",
    "How long it may have more: about the longest usual round-trip time.",
);
const MAX_PACKET: OptionDoc = option(
    "max_packet",
    Kind::Size { min: 0, max: 65_535 },
    Value("1514 B"),
    "3 kB",
    "A queue of no more octets is no standing queue (RFC 8289, section 5.2: one packet of the largest size).",
);
const MEMORY: OptionDoc = option(
    "memory",
    Kind::Integer { min: 0, max: 1_000_000 },
    Value("16"),
    "0",
    "Intervals after the end of dropping within which drops go on at the rate at which they ended (RFC 8289, section 5.5); 0: they always begin anew.",
);

pub(crate) const PIE: TableDoc = table(
    "queue.pie",
    "queue = { kind = \"pie\", ... }",
    "PIE: drops (or marks) packets at arrival with a probability that follows the queueing delay's distance from `target` and its change. Source: RFC 8033.",
    &[
        KIND,
        option("target", Kind::Span, Value("15 ms"), "20 ms", "The delay to hold."),
        option(
            "update",
            Kind::Span,
            Value("15 ms"),
            "30 ms",
            "From one update of the probability to the next.",
        ),
        option("burst", Kind::Time, Value("150 ms"), "0 s", "How long a burst is let through."),
        option("profile", words(PIE_WORDS), Value("rfc"), "linux", "Which PIE."),
        option(
            "alpha",
            WEIGHT,
            Value("0.125"),
            "0.25",
            "Weight of the delay's distance from `target`, per second of delay (section 4.2; Linux's `alpha` is this times 16).",
        ),
        option(
            "beta",
            WEIGHT,
            Value("1.25"),
            "2.5",
            "Weight of the delay's change from one update to the next, per second of delay (section 4.2; Linux's `beta` is this times 16).",
        ),
        option(
            "mark_max",
            Kind::Probability,
            Value("0.1"),
            "1.0",
            "Only with `ecn`: above this probability packets are dropped all the same (section 5.1).",
        ),
        option(
            "mean_packet",
            Kind::Size { min: 0, max: 65_535 },
            Value("1500 B"),
            "500 B",
            "Two packets of this size always fit (section 4.1).",
        ),
        option(
            "decay",
            Kind::Probability,
            Absent("0.98, with the profile linux 1 - 1/64"),
            "0.9",
            "What an update of an idle queue leaves of the probability (section 4.2).",
        ),
        option(
            "max_step",
            Kind::Probability,
            Absent("any, with the profile linux 0.02"),
            "0.05",
            "How much an update adds at most once a tenth is dropped (section 5.5).",
        ),
        option(
            "high_delay",
            Kind::Time,
            Absent("never, with the profile linux above 250 ms"),
            "100 ms",
            "Above this delay each update adds 0.02 more.",
        ),
        option(
            "first_update",
            Kind::Time,
            Absent("at once, with the profile linux after 500 ms"),
            "1 s",
            "How long after the beginning of the run the probability is updated for the first time.",
        ),
    ],
);

const WEIGHT: Kind = Kind::Number { min: 0.0, max: 1_000.0 };
const LENGTH: Kind = Kind::Number { min: 0.0, max: 1e9 };

pub(crate) const RED: TableDoc = table(
    "queue.red",
    "queue = { kind = \"red\", ... }",
    "RED: drops (or marks) packets at arrival with a probability that rises with the average length of the queue, in packets. Source: Floyd and Jacobson, Random Early Detection gateways for congestion avoidance, 1993.",
    &[
        KIND,
        option("min", LENGTH, Value("5.0"), "20.0", "Average below which nothing is dropped."),
        option(
            "max",
            LENGTH,
            Value("15.0"),
            "60.0",
            "Average at which the probability is `max_p`; above `min`.",
        ),
        option("max_p", Kind::Probability, Value("0.1"), "0.02", "The probability at `max`."),
        option(
            "weight",
            Kind::Probability,
            Value("0.002"),
            "0.01",
            "Weight of the present length in the average.",
        ),
        option(
            "gentle",
            Kind::Switch,
            Value("true"),
            "false",
            "From `max` to twice as much the probability rises to 1; otherwise everything is dropped from `max` on.",
        ),
        option(
            "adaptive",
            Kind::Switch,
            Value("false"),
            "true",
            "`max_p` follows the average, so that it stays in the middle; the `adapt_` options, which need it, say how (Floyd, Gummadi and Shenker 2001, as Linux has it).",
        ),
        option("adapt_every", Kind::Span, Value("500 ms"), "100 ms", "From one step of `max_p` to the next."),
        option(
            "adapt_up",
            Kind::Probability,
            Value("0.01"),
            "0.02",
            "What a step adds to `max_p` at most; a quarter of it is the other bound.",
        ),
        option("adapt_down", Kind::Probability, Value("0.9"), "0.5", "What a step down leaves of `max_p`."),
        option(
            "adapt_ceiling",
            Kind::Probability,
            Value("0.5"),
            "1.0",
            "No step up from above this `max_p`.",
        ),
        option(
            "adapt_floor",
            Kind::Probability,
            Value("0.01"),
            "0.001",
            "No step down from below this `max_p`.",
        ),
        option(
            "adapt_low",
            Kind::Probability,
            Value("0.4"),
            "0.3",
            "`max_p` falls while the average is below this part of the way from `min` to `max`.",
        ),
        option(
            "adapt_high",
            Kind::Probability,
            Value("0.6"),
            "0.7",
            "`max_p` rises while the average is above this part of it; not below `adapt_low`.",
        ),
        option(
            "mean_packet",
            Kind::Size { min: 64, max: 65_535 },
            Value("1000 B"),
            "1500 B",
            "A usual packet: an idle queue's average decays as if such packets had passed.",
        ),
    ],
);

pub(crate) const POLICER: &[OptionDoc] = &[
    option("rate", Kind::Rate, Required, "5 Mbit/s", "What may pass on average."),
    option("burst", BURST_SIZE, Value("15000 B"), "64 KiB", "What may pass at once after a pause."),
];

/// How a link's token bucket is described.
pub(crate) const BURST: OptionDoc = option(
    "burst",
    BURST_SIZE,
    Absent("no token bucket: each packet is serialised at `rate`"),
    "64 KiB",
    "Makes the link a token bucket that `rate` fills: after a pause so much leaves at once (Linux's tbf).",
);
pub(crate) const PEAK: OptionDoc = option(
    "peak",
    Kind::Rate,
    Absent("a packet that has its tokens takes no time"),
    "100 Mbit/s",
    "Only with `burst`: the rate at which packets that have their tokens are serialised; `rate` at least.",
);

pub(crate) const CHANGE: &[OptionDoc] = &[
    option("at", Kind::Time, Required, "30 s", "When; before the end of the run."),
    option(
        "link",
        Kind::Name,
        Absent("the bottleneck of a dumbbell; must be given elsewhere"),
        "return",
        "Which link.",
    ),
    option("rate", Kind::Rate, Absent("as it was"), "2 Mbit/s", "Its rate from then on."),
    option(
        "delay",
        Kind::Time,
        Absent("as it was"),
        "150 ms",
        "The propagation delay of packets that leave it from then on. Those under way are not overtaken unless its jitter or reordering lets them be.",
    ),
    option("loss", Kind::Probability, Absent("as it was"), "0.05", "Its probability of loss from then on."),
    option(
        "lose",
        Kind::Packets,
        Absent("none"),
        "1 packet",
        "The next packets that leave it, this many, are lost.",
    ),
];
