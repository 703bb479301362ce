//! The options of swarm files: a file with a table `[swarm]` is one.

use super::schema::Fallback::{Absent, Required, Value};
use super::schema::{Kind, OptionDoc, TableDoc, option, table, words};

/// Every table of a swarm file.
pub const SWARM_TABLES: &[TableDoc] = &[
    table("swarm_file", "top of a swarm file", "The swarm as a whole.", FILE),
    table("swarm", "[swarm]", "What is shared, and how long it is looked at.", SWARM),
    table("swarm_group", "[[group]]", "Peers that are alike.", GROUP),
    table("swarm_links", "[links]", "What lies between the peers' access links.", LINKS),
    table(
        "swarm_device",
        "[[device]]",
        "A machine with netem-like devices, which its peers share: a packet is delayed at egress and at ingress.",
        DEVICE,
    ),
    table("swarm_records", "[records]", "What is written down beyond the peers' totals.", RECORDS),
];

const ANY: u64 = super::schema::SIZE_MAX_BYTES;

const FILE: &[OptionDoc] = &[
    option("name", Kind::Name, Required, "flash-crowd", "The swarm's name."),
    option("description", Kind::Text, Value(""), "A seed and 75 leechers", "What it is for."),
    option(
        "seed",
        Kind::Integer { min: 0, max: i64::MAX },
        Value("1"),
        "7",
        "All random numbers come from it.",
    ),
    option("swarm", Kind::Table("swarm"), Required, "", "See below."),
    option("group", Kind::Tables("swarm_group"), Required, "", "See below."),
    option("links", Kind::Table("swarm_links"), Absent("no delay between access links"), "", "See below."),
    option("device", Kind::Tables("swarm_device"), Absent("none"), "", "See below."),
    option("records", Kind::Table("swarm_records"), Absent("all but dequeues and packets"), "", "See below."),
];

const SWARM: &[OptionDoc] = &[
    option("content", Kind::Size { min: 1, max: ANY }, Required, "100 MB", "Octets of the torrent."),
    option("piece", Kind::Size { min: 1, max: 1 << 30 }, Value("256 KiB"), "1 MiB", "Octets of a piece."),
    option("duration", Kind::Span, Value("24 h"), "1 h", "The run ends here at the latest."),
    option(
        "hashing",
        words(&[
            ("compare", "each run of octets is compared with the content by its place"),
            ("sha1", "pieces are written out and hashed as well"),
        ]),
        Value("compare"),
        "sha1",
        "How pieces are checked.",
    ),
    option(
        "tracker_peers",
        Kind::Integer { min: 1, max: 10_000 },
        Value("50"),
        "200",
        "The most peers that the tracker names at a time.",
    ),
    option(
        "announce_every",
        Kind::Span,
        Absent(
            "never: only when they come, and each five minutes while they lack something and have fewer than 20 connections",
        ),
        "30 min",
        "Peers announce themselves again, and ask for others while they lack something; at least 1 s.",
    ),
    option("measure_from", Kind::Time, Value("0 s"), "30 s", "Queues count from this time on."),
];

const GROUP: &[OptionDoc] = &[
    option("name", Kind::Name, Required, "leecher", "The group's name."),
    option("count", Kind::Integer { min: 1, max: 100_000 }, Value("1"), "75", "How many peers."),
    option(
        "role",
        words(&[
            ("seed", "has everything"),
            ("super-seed", "has everything, and tells each peer of two pieces at a time (BEP 16)"),
            ("leecher", "has nothing"),
        ]),
        Value("leecher"),
        "seed",
        "What they begin with.",
    ),
    option(
        "uplink",
        Kind::Rate,
        Absent("no access link"),
        "1 Mbit/s",
        "Rate of the access link from a peer.",
    ),
    option("downlink", Kind::Rate, Absent("no limit"), "8 Mbit/s", "Rate of the access link to a peer."),
    option(
        "buffer",
        Kind::Buffer,
        Value("1 s"),
        "125 kB",
        "What waits before an access link, in each direction; a time is one of that link's rate.",
    ),
    option(
        "latency",
        Kind::Time,
        Value("0 s"),
        "5 ms",
        "Propagation between a peer and the network, in each direction.",
    ),
    option(
        "burst",
        Kind::Size { min: 0, max: 1 << 30 },
        Value("0 B"),
        "1600 B",
        "Makes access links token buckets, as Linux's tbf and htb: after a pause so much leaves at once, in no time.",
    ),
    option("loss", Kind::Probability, Value("0"), "0.01", "Loss on the way to a peer."),
    option("per_link", Kind::Integer { min: 1, max: 1_000 }, Value("1"), "2", "Peers that share one uplink."),
    option(
        "profile",
        words(&[
            ("mainline4", "the mainline client, release 4.0.2"),
            ("libtorrent", "libtorrent 2.0.8 in one private network, where upload slots do not count"),
            ("utorrent3", "uTorrent 3.0 as far as it is known"),
        ]),
        Value("libtorrent"),
        "mainline4",
        "Whose rules they follow.",
    ),
    option(
        "slots",
        Kind::Integer { min: 1, max: 1_000 },
        Absent("the profile's"),
        "4",
        "Upload slots; without, peers of the profile libtorrent unchoke everybody, as it does in one private network.",
    ),
    option(
        "pex",
        Kind::Switch,
        Absent("the profile's: libtorrent's alone do"),
        "false",
        "Peers hear of others from peers, within a second and then each minute (BEP 11).",
    ),
    option(
        "transports",
        Kind::Integer { min: 0, max: 31 },
        Value("31"),
        "13",
        "The bit mask: 1 attempts TCP, 2 uTP, 4 accepts TCP, 8 uTP; 16 changes nothing.",
    ),
    option(
        "controller",
        Kind::Controller,
        Absent("the profile's"),
        "ledbat-libutp",
        "The controller of uTP: libtorrent's own, or ledbat.",
    ),
    option("target", Kind::Span, Absent("the controller's"), "100 ms", "Its target delay."),
    option(
        "stack",
        words(&[
            ("standard", "BEP 29 where deployed peers agree with it"),
            (
                "libtorrent",
                "libtorrent's decisions: what it sends again and when, and what ends a connection",
            ),
            ("libutp", "libutp's"),
        ]),
        Value("libtorrent"),
        "libutp",
        "Whose decisions uTP takes beside its controller's.",
    ),
    option("tcp_controller", Kind::Controller, Value("cubic"), "reno", "The controller of TCP."),
    option(
        "tcp_stack",
        words(&[
            ("linux", "Linux of 3.2 to 4.17: losses by counting"),
            (
                "linux-4.18",
                "Linux since then: losses by time (RACK-TLP), what was in vain taken back, growth by whole flights; its CUBIC is { name = \"cubic\", rules = \"linux\" }",
            ),
            ("linux-2.6", "Linux of 2009 (2.6.25 to 2.6.38)"),
        ]),
        Value("linux"),
        "linux-4.18",
        "Which kernel's TCP it is, beside its controller.",
    ),
    option(
        "upload_limit",
        Kind::Rate,
        Absent("none"),
        "20 KiB/s",
        "What a peer itself sends at most, in octets of messages: headers of packets, and what is sent again, come on top.",
    ),
    option(
        "arrival",
        words(&[
            ("together", "at `at`, within `within` of each other"),
            ("poisson", "from `at` on, with a mean gap of `gap`"),
            ("trace", "at the `times`, one for each at most; the last of them serves for whoever is left"),
        ]),
        Value("together"),
        "poisson",
        "When they come.",
    ),
    option("at", Kind::Time, Value("0 s"), "2 s", "See `arrival`."),
    option("within", Kind::Time, Value("1 s"), "10 ms", "See `arrival`."),
    option("gap", Kind::Span, Value("10 s"), "30 s", "See `arrival`."),
    option("times", Kind::Text, Value(""), "0 s, 5 s, 20 s", "See `arrival`."),
    option(
        "departure",
        words(&[
            ("stay", "never"),
            ("when-done", "`after` they are complete"),
            (
                "churn",
                "after a random time with mean `after`, a second at least; who is not complete comes back after as long",
            ),
        ]),
        Value("stay"),
        "when-done",
        "When they leave.",
    ),
    option("after", Kind::Time, Value("0 s"), "5 min", "See `departure`."),
    option(
        "packet",
        Kind::Size { min: 200, max: 9_000 },
        Value("1500 B"),
        "1400 B",
        "A full packet with all headers.",
    ),
    option(
        "offload",
        Kind::Size { min: 0, max: 65_000 },
        Value("0 B"),
        "64 kB",
        "TCP segments travel together up to this.",
    ),
    option(
        "machine",
        Kind::Name,
        Absent("the first device"),
        "m1",
        "The device of a group, where links are devices.",
    ),
];

const LINKS: &[OptionDoc] = &[
    option("rtt", Kind::Time, Value("0 s"), "400 ms", "The round-trip time between all peers."),
    option(
        "matrix",
        Kind::Text,
        Absent("the same everywhere"),
        "0 ms, 40 ms; 40 ms, 0 ms",
        "Round-trip times between groups, row by row in the groups' order. The way from a row's group to a column's takes half of what stands there.",
    ),
    option("loss", Kind::Probability, Value("0"), "0.05", "Loss, each way."),
];

const DEVICE: &[OptionDoc] = &[
    option("name", Kind::Name, Required, "m1", "The machine's name."),
    option(
        "loopback",
        Kind::Time,
        Value("0 s"),
        "2 ms",
        "Delay of the loopback device, at egress and at ingress.",
    ),
    option("ethernet", Kind::Time, Value("0 s"), "5 ms", "Delay of the Ethernet device, likewise."),
    option("loss", Kind::Probability, Value("0"), "0.05", "Loss at ingress."),
];

const RECORDS: &[OptionDoc] = &[
    option("queue", Kind::Switch, Value("false"), "true", "Each dequeue of each uplink and downlink."),
    option("pieces", Kind::Switch, Value("true"), "false", "When each piece was at each peer."),
    option("unchokes", Kind::Switch, Value("true"), "false", "Unchokes and chokes."),
    option("sends", Kind::Switch, Value("true"), "false", "Gaps between sends and sizes of payloads."),
    option(
        "rtt",
        Kind::Switch,
        Value("true"),
        "false",
        "RTT estimates as data leave, over either transport.",
    ),
    option(
        "packets",
        words(&[
            ("none", "none"),
            ("sent", "every packet once, as it leaves its host"),
            ("seeds", "what captures on the seeds see"),
            ("leechers", "what captures on the leechers see"),
        ]),
        Value("none"),
        "seeds",
        "Packets whose octets are written to `packets.pcapng`. For `cede meter` take `seeds`: what several leechers see of each other is \
         captured at both ends, without the way between them.",
    ),
];
