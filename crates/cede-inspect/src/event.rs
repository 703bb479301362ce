//! What is told while packets are read.

use cede_bt::tracker::Announce;
use cede_bt::wire::{BlockRef, Handshake, Message, Reserved};
use cede_meter::{Protocol, Socket};
use core::fmt;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal;)*) => {
        /// The kinds of messages.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Kind {
            $($(#[doc = $doc])* $name,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name, as in "have-all".
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// The first 68 octets.
    Handshake = "handshake";
    /// Four zeros.
    KeepAlive = "keep-alive";
    /// 0.
    Choke = "choke";
    /// 1.
    Unchoke = "unchoke";
    /// 2.
    Interested = "interested";
    /// 3.
    NotInterested = "not-interested";
    /// 4.
    Have = "have";
    /// 5.
    Bitfield = "bitfield";
    /// 6.
    Request = "request";
    /// 7.
    Piece = "piece";
    /// 8.
    Cancel = "cancel";
    /// 9.
    Port = "port";
    /// 13 (BEP 6).
    Suggest = "suggest";
    /// 14 (BEP 6).
    HaveAll = "have-all";
    /// 15 (BEP 6).
    HaveNone = "have-none";
    /// 16 (BEP 6).
    Reject = "reject";
    /// 17 (BEP 6).
    AllowedFast = "allowed-fast";
    /// 20 (BEP 10).
    Extended = "extended";
    /// 21 (BEP 52).
    HashRequest = "hash-request";
    /// 22 (BEP 52).
    Hashes = "hashes";
    /// 23 (BEP 52).
    HashReject = "hash-reject";
    /// Any other number.
    Other = "other";
}

impl Kind {
    /// The kind of a message.
    #[must_use]
    pub const fn of(message: &Message) -> Self {
        match message {
            Message::KeepAlive => Self::KeepAlive,
            Message::Choke => Self::Choke,
            Message::Unchoke => Self::Unchoke,
            Message::Interested => Self::Interested,
            Message::NotInterested => Self::NotInterested,
            Message::Have(_) => Self::Have,
            Message::Bitfield(_) => Self::Bitfield,
            Message::Request(_) => Self::Request,
            Message::Cancel(_) => Self::Cancel,
            Message::Port(_) => Self::Port,
            Message::Suggest(_) => Self::Suggest,
            Message::HaveAll => Self::HaveAll,
            Message::HaveNone => Self::HaveNone,
            Message::Reject(_) => Self::Reject,
            Message::AllowedFast(_) => Self::AllowedFast,
            Message::Extended(..) => Self::Extended,
            Message::HashRequest(_) => Self::HashRequest,
            Message::Hashes(..) => Self::Hashes,
            Message::HashReject(_) => Self::HashReject,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What can be said of a connection in which no message was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cover {
    /// Both sides begin as message stream encryption does: with as many random octets as its public numbers and padding.
    Encrypted,
    /// Its beginning was not captured, or it has no form that is known here.
    Unknown,
    /// It is something else: TLS, HTTP, SSH, or of a form that BitTorrent does not have.
    Foreign,
}

/// Something that happened on a connection.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// When it was captured, in nanoseconds since the capture's epoch; of a message, its last octet.
    pub time_ns: u64,
    /// The connection's number, from 0.
    pub connection: u32,
    /// Who sent it.
    pub from: Socket,
    /// Who it is for.
    pub to: Socket,
    /// What carried it.
    pub transport: Protocol,
    /// The torrent, where a handshake told it.
    pub info_hash: Option<[u8; 20]>,
    /// What happened.
    pub what: What<'a>,
}

/// What happens on connections.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// A SYN: `from` opens the connection.
    Opened,
    /// A handshake.
    Handshake(&'a Handshake),
    /// A handshake of which only the first octets were captured, and what these say.
    CutHandshake {
        /// What the peer says that it can do.
        reserved: Option<Reserved>,
        /// The torrent.
        info_hash: Option<[u8; 20]>,
    },
    /// A message other than a block.
    Message {
        /// It.
        message: &'a Message,
        /// What an extended message is called, where the receiver's handshake told that.
        extension: Option<&'a str>,
        /// Octets of it were not captured: what it says is not known, only its kind.
        is_cut: bool,
    },
    /// A block, whole.
    Block(&'a Block),
    /// A message whose id means nothing to us.
    Other {
        /// Its id.
        id: u8,
        /// Octets behind the id.
        len: u32,
    },
    /// Octets were not captured: from here on nothing is known of this direction, until it is resumed.
    Lost,
    /// Messages were found, behind so many octets (as far as these are known) that could not be read.
    Resumed {
        /// Octets that were not read.
        octets: u64,
    },
    /// Neither handshake nor message is in what was seen.
    Covered(Cover),
    /// A FIN.
    Finished,
    /// A reset.
    Reset,
}

/// A block that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The connection's number.
    pub connection: u32,
    /// Who sent it.
    pub from: Socket,
    /// Who asked for it.
    pub to: Socket,
    /// What carried it.
    pub transport: Protocol,
    /// The torrent, where a handshake told it.
    pub info_hash: Option<[u8; 20]>,
    /// Which.
    pub block: BlockRef,
    /// When its request was captured; `None` where it was not.
    pub requested_ns: Option<u64>,
    /// When the first of its octets was captured.
    pub first_ns: u64,
    /// When the last of its octets could be read.
    pub last_ns: u64,
    /// Packets with octets of it that were sent again or came late.
    pub repairs: u32,
    /// Octets of it that were not captured.
    pub missing: u32,
    /// The receiver had it already.
    pub is_duplicate: bool,
}

impl Block {
    /// From the request to the last octet.
    #[must_use]
    pub fn latency_ns(&self) -> Option<u64> {
        self.requested_ns.map(|requested| self.last_ns.saturating_sub(requested))
    }
}

/// Something beside the connections.
#[derive(Clone, Debug)]
pub struct Aside {
    /// When it was captured, in nanoseconds since the capture's epoch.
    pub time_ns: u64,
    /// Who sent it.
    pub from: Socket,
    /// Who it is for.
    pub to: Socket,
    /// What it is.
    pub about: About,
}

/// What there is beside the connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum About {
    /// An announce to a tracker.
    Announce {
        /// What it says.
        announce: Box<Announce>,
        /// Over HTTP, and not over UDP.
        is_http: bool,
    },
    /// A message of the distributed hash table (BEP 5).
    Dht {
        /// The query's name, "response" or "error".
        kind: String,
        /// What it is about, where it is about a torrent.
        info_hash: Option<[u8; 20]>,
    },
}

/// Hears what is found.
pub trait Sink {
    /// Something happened on a connection.
    fn event(&mut self, _event: &Event<'_>) {}

    /// Something happened beside.
    fn aside(&mut self, _aside: &Aside) {}
}

impl Sink for () {}
