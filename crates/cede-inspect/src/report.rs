//! What was found, as plain data.

use crate::event::{Cover, Kind};
use cede_bt::wire::Reserved;
use cede_meter::{Counters, Histogram, Protocol, Socket};

/// What can be told of what was said.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Speech {
    /// In the clear: handshake and messages were read.
    Plain,
    /// In the clear from a handshake on that stands behind other octets, such as an encryption that ends with it.
    PlainBehind,
    /// Messages in the clear were found, and no handshake: the connection began before the capture, or its handshake was
    /// hidden by an encryption that ends with it.
    PlainLater,
    /// Nothing was read.
    Covered(Cover),
}

impl Speech {
    /// The name, as in "encrypted".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::PlainBehind => "plain, late handshake",
            Self::PlainLater => "plain, no handshake",
            Self::Covered(Cover::Encrypted) => "encrypted",
            Self::Covered(Cover::Unknown) => "unknown",
            Self::Covered(Cover::Foreign) => "foreign",
        }
    }
}

/// A connection between two peers.
#[derive(Clone, Debug)]
pub struct ConnectionReport {
    /// Its number, as events have it.
    pub number: u32,
    /// Both ends; the one that opened it first, where that was seen, and else who was heard first: the order of addresses would tell of
    /// pseudonyms which of two addresses is the lower one.
    pub ends: [Socket; 2],
    /// The first end is known to have opened it.
    pub is_opened_by_first: bool,
    /// What carried it.
    pub transport: Protocol,
    /// What can be told of what was said.
    pub speech: Speech,
    /// The torrent.
    pub info_hash: Option<[u8; 20]>,
    /// Times of its first and last packet, in nanoseconds since the capture's epoch.
    pub span_ns: (u64, u64),
    /// It was reset.
    pub is_reset: bool,
    /// What each end sent.
    pub sides: [SideReport; 2],
}

/// What is counted of a direction beneath its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Packets.
    pub packets: u64,
    /// Octets of them on the wire.
    pub wire_bytes: u64,
    /// Octets of the stream, each once.
    pub stream_bytes: u64,
    /// Packets whose octets were seen before.
    pub repeated_packets: u64,
    /// Octets that were seen before.
    pub repeated_bytes: u64,
    /// Packets of whose octets the capture has only the first.
    pub cut_packets: u64,
}

/// What one end of a connection sent.
#[derive(Clone, Debug, Default)]
pub struct SideReport {
    /// Its peer id.
    pub peer_id: Option<[u8; 20]>,
    /// The client, by its own words in the extension handshake, or else by its peer id.
    pub client: Option<String>,
    /// What it says that it understands.
    pub reserved: Option<Reserved>,
    /// Packets and octets beneath messages.
    pub carried: Carried,
    /// Messages by kind.
    pub counts: [u64; Kind::ALL.len()],
    /// Blocks that it sent, each as often as it was sent.
    pub blocks: u64,
    /// Octets of them.
    pub block_bytes: u64,
    /// Blocks of which not all was seen, as the thread was lost or the connection ended.
    pub broken_blocks: u64,
    /// Octets of what was seen of them.
    pub broken_bytes: u64,
    /// Blocks that their receiver had already.
    pub duplicate_blocks: u64,
    /// Octets of them.
    pub duplicate_bytes: u64,
    /// Blocks whose request was not seen.
    pub unrequested_blocks: u64,
    /// From the other end's request to the last octet of a block.
    pub latency: Histogram,
    /// The mean of that in milliseconds.
    pub latency_mean_ms: Option<f64>,
    /// Times that it unchoked the other end.
    pub unchokes: u64,
    /// Seconds that it choked and did not choke the other end, as far as that is known.
    pub choking_s: (f64, f64),
    /// Seconds that it was and was not interested.
    pub interested_s: (f64, f64),
    /// Times that nothing more could be read, as octets were not captured.
    pub losses: u64,
    /// Octets that were not read for it, or as the connection had begun before the capture; those among them that were not
    /// captured, as far as they can be counted.
    pub unread_bytes: u64,
    /// Octets of the stream that were put in order, and those between them that were not captured, as far as they can be
    /// counted: all that could be read if nothing was missing.
    pub ordered_bytes: u64,
    /// Holes in what was captured of it.
    pub holes: u64,
    /// Octets of them, as far as they can be counted.
    pub missing_bytes: u64,
    /// Octets of the stream that came behind some that were lost on the way and never sent again: the receiver could not read
    /// them.
    pub undelivered_bytes: u64,
}

/// What is not listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unlisted {
    /// Connections of TCP that are something else.
    pub tcp_connections: u64,
    /// Octets of them on the wire.
    pub tcp_bytes: u64,
    /// Datagrams that are no uTP, those of trackers and of the hash table left out.
    pub datagrams: u64,
    /// Directions of datagrams that look like uTP without an answer that fits.
    pub lone_utp: u64,
    /// Connections whose report was given up for want of memory.
    pub given_up: u64,
    /// Blocks of which nobody can say whether they were sent twice, for want of memory.
    pub unchecked_blocks: u64,
}

/// Everything.
#[derive(Clone, Debug)]
pub struct Report {
    /// What became of the packets.
    pub counters: Counters,
    /// Connections, in the order in which they were found.
    pub connections: Vec<ConnectionReport>,
    /// What is not listed.
    pub unlisted: Unlisted,
}

impl SideReport {
    /// Octets that are no data of blocks: messages, as far as they were read, or all octets where none were.
    #[must_use]
    pub const fn protocol_bytes(&self) -> u64 {
        self.ordered_bytes.saturating_sub(self.block_bytes + self.broken_bytes + self.unread_bytes)
    }

    /// How many messages of a kind it sent.
    #[must_use]
    pub const fn count(&self, kind: Kind) -> u64 {
        self.counts[kind as usize]
    }
}
