//! The columns of a swarm's tables, and what they mean: their headings, their reference and `cede explain` are made of these.

/// A table of the run folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableFile {
    /// The file.
    pub name: &'static str,
    /// Its columns in their order: what each is called, and what it means.
    pub columns: &'static [(&'static str, &'static str)],
}

const PEER: (&str, &str) = ("peer", "The peer's name, `NN-GROUP-MMMMM`.");

pub(super) const PEERS: TableFile = TableFile {
    name: "peers.csv",
    columns: &[
        PEER,
        ("arrived_s", "When it came, in seconds; nothing where it never did."),
        (
            "complete_after_s",
            "Seconds from its arrival until everything was there: 0 of a seed, nothing where that never was.",
        ),
        ("left_s", "When it left for good, in seconds; nothing where it stayed."),
        ("down_tcp", "Octets of blocks that it received over TCP."),
        ("down_utp", "Octets of blocks that it received over uTP."),
        (
            "up_tcp",
            "Octets of blocks that it handed to connections over TCP: more than left it, where these ended before.",
        ),
        ("up_utp", "The same over uTP."),
        ("connections_tcp", "Connections over TCP on which handshakes were exchanged."),
        ("connections_utp", "The same over uTP."),
        (
            "haves_sent",
            "HAVE messages, one for each open connection, also where that ended before the message left.",
        ),
        ("requests_sent", "REQUEST messages."),
        ("redundant", "Octets of blocks that were here already."),
        (
            "cut",
            "Octets of blocks of which the rest did not come, or came from elsewhere first, or that were lost when the peer went away.",
        ),
        (
            "mean_rtt_ms",
            "Mean of its smoothed RTTs, with the samples of `rtts.csv`; nothing where there was none, or none was recorded.",
        ),
    ],
};

pub(super) const LINKS: TableFile = TableFile {
    name: "links.csv",
    columns: &[
        ("peer", "The peer whose access link it is; of an uplink that several share, the first of them."),
        ("way", "`up`: from the peer, `down`: to it, where its group has a `downlink`."),
        ("rate_mbps", "Its rate, in Mbit/s."),
        ("dequeues", "Packets that left the queue, here and below from `measure_from` on."),
        ("busy_dequeues", "Those that had waited for their turn: the packet before left them behind."),
        (
            "queue_mean_ms",
            "Mean, over the dequeues, of the time that the octets take to send which wait as a packet's turn comes, its own among them if it waited (what Linux's `tbf` tells of as left behind by the packet before); nothing where there were none.",
        ),
        ("queue_p95_ms", "The 95th percentile of the same."),
        ("wait_mean_ms", "Mean time that packets waited in the queue."),
        ("tcp_bytes", "Octets of packets of TCP, headers included."),
        ("udp_bytes", "Octets of packets of UDP, that is of uTP, headers included."),
        ("dropped", "Packets that found no room."),
    ],
};

pub(super) const TRACKER: TableFile = TableFile {
    name: "tracker.csv",
    columns: &[
        ("time_s", "When the peer announced itself, in seconds."),
        PEER,
        (
            "event",
            "Why: `started` (it comes, or comes back), `completed`, `more` (it wants more peers, or an interval is over: `announce_every`) or `stopped`.",
        ),
        ("named", "How many peers it was told of."),
    ],
};

pub(super) const PIECES: TableFile = TableFile {
    name: "pieces.csv",
    columns: &[
        (
            "time_s",
            "When all of the piece was there and right, and its HAVEs were handed to the connections, in seconds: they leave behind what waits there.",
        ),
        PEER,
        ("piece", "The piece's number, from 0."),
    ],
};

pub(super) const UNCHOKES: TableFile = TableFile {
    name: "unchokes.csv",
    columns: &[
        ("time_s", "When, in seconds."),
        ("peer", "Who unchokes or chokes."),
        ("whom", "Whom."),
        ("unchoked", "`true` for an unchoke, `false` for a choke."),
        ("requests_waited", "Whether requests of the other waited to be answered at that time."),
    ],
};

pub(super) const ROUNDS: TableFile = TableFile {
    name: "rounds.csv",
    columns: &[
        PEER,
        ("rounds", "How often its choker has looked whom to unchoke, over all of its stays."),
        ("unchokes", "Unchokes, over all peers."),
        ("unchokes_ended_idle", "Chokes of a peer of which no request waited."),
    ],
};

pub(super) const PAYLOADS: TableFile = TableFile {
    name: "payloads.csv",
    columns: &[
        PEER,
        (
            "payload_bytes",
            "Octets behind the headers of TCP or uTP, and behind what fills up a search for the path's MTU; packets of up to 200 are no data packets, and left out.",
        ),
        ("packets", "Packets of that size that left the peer, those sent again among them."),
    ],
};

pub(super) const GAPS: TableFile = TableFile {
    name: "gaps.csv",
    columns: &[
        PEER,
        ("percentile", "Which percentile."),
        ("gap_ms", "Time between a data packet (as in `payloads.csv`) that leaves the peer and the next."),
        ("samples", "Out of how many."),
    ],
};

pub(super) const RTTS: TableFile = TableFile {
    name: "rtts.csv",
    columns: &[
        PEER,
        ("percentile", "Which percentile."),
        (
            "rtt_ms",
            "The smoothed RTT of the connection, as it stood each time that data left it: over uTP at each packet, over TCP once for all segments that left at once.",
        ),
        ("samples", "Out of how many."),
    ],
};

pub(super) const QUEUE: TableFile = TableFile {
    name: "queue.csv",
    columns: &[
        (
            "time_s",
            "When a packet's turn came, in seconds: as the one before it had left, or as it arrived where the link was free.",
        ),
        ("peer", "The peer whose access link it is; of an uplink that several share, the first of them."),
        ("way", "`up`: from the peer, `down`: to it, where its group has a `downlink`."),
        (
            "packets",
            "Packets that had waited until then, itself among them: what the one before left behind.",
        ),
        ("bytes", "Octets of these."),
        ("served_bytes", "Octets of packets that had left by then."),
        ("dropped", "Packets that had found no room by then."),
    ],
};

/// Every table.
pub const TABLE_FILES: [TableFile; 10] =
    [PEERS, LINKS, TRACKER, PIECES, UNCHOKES, ROUNDS, PAYLOADS, GAPS, RTTS, QUEUE];

impl TableFile {
    /// What its columns are called.
    pub fn headings(self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(name, _)| *name)
    }
}
