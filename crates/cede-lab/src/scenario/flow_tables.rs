//! The table of options, continued: flows, their controllers, traffic and protocols.

use super::flow::{DISTRIBUTION_WORDS, PROTOCOL_WORDS, TCP_ACK_WORDS, TRAFFIC_WORDS, UTP_ACK_WORDS};
use super::schema::Fallback::{Absent, Required, Value};
use super::schema::{Kind, OptionDoc, SIZE_MAX_BYTES, option, words};

const ANY_SIZE: Kind = Kind::Size { min: 1, max: SIZE_MAX_BYTES };
/// No window of TCP is larger (RFC 7323, section 2.3), and no buffer over uTP need be.
const BUFFER_SIZE: Kind = Kind::Size { min: 2_000, max: 1 << 30 };

pub(crate) const FLOW: &[OptionDoc] = &[
    option("name", Kind::Name, Absent("the controller's name"), "late", "Name, as in metrics and records."),
    option(
        "count",
        Kind::Integer { min: 1, max: 10_000 },
        Value("1"),
        "10",
        "How many flows like this. Above 1 they are called NAME-1, NAME-2 and so on.",
    ),
    option("protocol", words(PROTOCOL_WORDS), Value("utp"), "tcp", "The transport."),
    option(
        "controller",
        Kind::Controller,
        Absent("ledbat for uTP, cubic for TCP"),
        "ledbat",
        "The congestion controller.",
    ),
    option(
        "from",
        Kind::Name,
        Absent("a host of its own (dumbbell); must be given elsewhere"),
        "a",
        "Star and graph: the sending host.",
    ),
    option(
        "to",
        Kind::Name,
        Absent("a host of its own (dumbbell); must be given elsewhere"),
        "b",
        "Star and graph: the receiving host.",
    ),
    option(
        "start",
        Kind::Time,
        Value("0 s"),
        "10 s",
        "When it opens its connection; before the end of the run.",
    ),
    option("stop", Kind::Span, Absent("never"), "20 s", "When it stops offering data; after `start`."),
    option(
        "start_jitter",
        Kind::Time,
        Value("0 s"),
        "1 s",
        "`start` is moved by a random time from 0 to this, another for each flow.",
    ),
    option("bytes", ANY_SIZE, Absent("no end"), "10 MB", "How much it has to send; then it closes."),
    option(
        "packet",
        Kind::Size { min: 128, max: 65_535 },
        Value("1500 B"),
        "1000 B",
        "Size of a full packet as an IP datagram.",
    ),
    option("traffic", Kind::Traffic, Value("backlogged"), "backlogged", "When the application has data."),
    option(
        "access_rate",
        Kind::Rate,
        Absent("`topology.access_rate`"),
        "2 Mbit/s",
        "Dumbbell: rate of the sender's access link, both ways.",
    ),
    option(
        "access_delay",
        Kind::Time,
        Absent("`topology.access_delay`"),
        "20 ms",
        "Dumbbell: propagation delay of the sender's access link for what the flow sends.",
    ),
    option(
        "return_delay",
        Kind::Time,
        Absent("`topology.access_delay`"),
        "50 ms",
        "Dumbbell: propagation delay of the sender's access link for what comes back. Differences here make RTTs differ on the return path alone.",
    ),
    option(
        "tcp",
        Kind::Table("flow.tcp"),
        Absent("the defaults of [flow.tcp]"),
        "",
        "Options of the model TCP.",
    ),
    option("utp", Kind::Table("flow.utp"), Absent("the defaults of [flow.utp]"), "", "Options of uTP."),
];

pub(crate) const CONTROLLER: &[OptionDoc] = &[option(
    "name",
    Kind::Name,
    Absent("ledbat for uTP, cubic for TCP"),
    "ledbat",
    "Which one. All other keys are the controller's own.",
)];

pub(crate) const TRAFFIC: &[OptionDoc] = &[
    option("kind", words(TRAFFIC_WORDS), Value("backlogged"), "chirp", "The model."),
    option(
        "period",
        Kind::Span,
        Required,
        "30 s",
        "chirp, heartbeat: from one burst or message to the next.",
    ),
    option(
        "first",
        Kind::Packets,
        Value("1 packets"),
        "10 packets",
        "chirp: size of the first burst, in full packets.",
    ),
    option(
        "growth",
        Kind::Number { min: 1.0, max: 1000.0 },
        Value("2.0"),
        "1.5",
        "chirp: ratio of a burst to the one before it.",
    ),
    option("max", Kind::Packets, Value("1000000 packets"), "1000 packets", "chirp: no burst is larger."),
    option("bytes", ANY_SIZE, Required, "100 B", "heartbeat: payload of a message."),
    option(
        "rate",
        Kind::Rate,
        Absent("on_off: as much as the connection takes; paced needs it"),
        "1 Mbit/s",
        "paced, on_off: payload bits per second.",
    ),
    option("message", ANY_SIZE, Value("1000 B"), "160 B", "paced: payload of a message."),
    option("on", Kind::Span, Required, "2 s", "on_off: mean time with data."),
    option("off", Kind::Span, Required, "5 s", "on_off: mean time without."),
    option(
        "distribution",
        words(DISTRIBUTION_WORDS),
        Value("constant"),
        "exponential",
        "on_off: how the times are drawn, on a random stream of the flow's own.",
    ),
];

const TCP_SEND_BUFFER: OptionDoc = option(
    "send_buffer",
    BUFFER_SIZE,
    Value("16 MiB"),
    "1 MiB",
    "Unacknowledged data that the sender keeps.",
);

pub(crate) const TCP: &[OptionDoc] = &[
    option(
        "sack",
        Kind::Switch,
        Value("true"),
        "false",
        "Selective acknowledgements and the recovery of RFC 6675; NewReno (RFC 6582) without.",
    ),
    option("ack", words(TCP_ACK_WORDS), Value("every"), "delayed", "When the receiver acknowledges."),
    option(
        "ack_delay",
        Kind::Span,
        Value("200 ms"),
        "40 ms",
        "Only with `ack = \"delayed\"`: how long an acknowledgement waits; at most 500 ms by RFC 5681.",
    ),
    option(
        "limited_transmit",
        Kind::Switch,
        Value("true"),
        "false",
        "New data on the first two duplicate acknowledgements (RFC 3042).",
    ),
    option(
        "rack",
        Kind::Switch,
        Value("false"),
        "true",
        "Only with `sack`: losses are found by time, and the last of a flight is probed for (RACK-TLP, RFC 8985, as in Linux since 4.18), in place of counting what arrives beyond a loss. What arrives twice is reported (RFC 2883), and repairs in vain are taken back.",
    ),
    option(
        "prr",
        Kind::Switch,
        Value("false"),
        "true",
        "Only with `sack`: a repair lowers the window in proportion to what is delivered (RFC 6937, as Linux does) in place of a pause.",
    ),
    option(
        "initial_window",
        Kind::Packets,
        Value("10 packets"),
        "2 packets",
        "Initial window in full segments (RFC 6928: 10).",
    ),
    option(
        "min_rto",
        Kind::Span,
        Value("1 s"),
        "200 ms",
        "Smallest retransmission timeout (RFC 6298: 1 s; Linux: 200 ms).",
    ),
    option(
        "ecn",
        Kind::Switch,
        Value("false"),
        "true",
        "Explicit congestion notification (RFC 3168): queues with `ecn` mark its data in place of dropping them. Refused with a controller that does not answer marks: bbr, vivace, proteus-p, proteus-s, proteus-h, fixed.",
    ),
    option(
        "timestamps",
        Kind::Switch,
        Value("true"),
        "false",
        "Timestamps option (RFC 7323). Without it there are no one-way delays: controllers that steer by them keep their first window, or go by losses alone; `signal = \"rtt\"` helps those that have it.",
    ),
    option(
        "timestamp_tick",
        Kind::Span,
        Value("1 ms"),
        "10 ms",
        "Only with `timestamps`: one tick of the timestamp clock, 1 ms to 1 s by RFC 7323.",
    ),
    option(
        "timestamp_random",
        Kind::Switch,
        Value("true"),
        "false",
        "Only with `timestamps`: the timestamp clock begins at a random value for each connection; it reads the host's clock otherwise.",
    ),
    TCP_SEND_BUFFER,
    option(
        "receive_buffer",
        BUFFER_SIZE,
        Value("16 MiB"),
        "64 KiB",
        "Unread data that the receiver keeps: the largest window it advertises.",
    ),
];

pub(crate) const UTP: &[OptionDoc] = &[
    option("ack", words(UTP_ACK_WORDS), Value("every"), "delayed", "When the receiver acknowledges."),
    option(
        "ack_delay",
        Kind::Span,
        Value("100 ms"),
        "20 ms",
        "Only with `ack = \"delayed\"`: how long an acknowledgement waits.",
    ),
    option(
        "ack_packets",
        Kind::Integer { min: 1, max: 255 },
        Value("2"),
        "4",
        "Only with `ack = \"delayed\"`: how many packets one acknowledgement may answer.",
    ),
    option(
        "min_rto",
        Kind::Span,
        Value("500 ms"),
        "1 s",
        "Smallest retransmission timeout (BEP 29: 500 ms; libutp: 1 s).",
    ),
    option(
        "mtu_search",
        Kind::Switch,
        Value("false"),
        "true",
        "Find the largest packet that passes, with `packet` as the upper bound. Otherwise every full packet has the size `packet`.",
    ),
    option(
        "internet",
        Kind::Switch,
        Value("false"),
        "true",
        "As on real sockets: losses are told by time too (RFC 8985), windows are paced, and the first has ten packets where the controller leaves it to the transport.",
    ),
    option(
        "send_buffer",
        BUFFER_SIZE,
        Value("16 MiB"),
        "1 MiB",
        "Unacknowledged data that the sender keeps. Beside it, no more than 16384 packets are under way.",
    ),
    option(
        "receive_buffer",
        BUFFER_SIZE,
        Value("16 MiB"),
        "1 MiB",
        "Unread data that the receiver keeps: the largest window it advertises.",
    ),
];
