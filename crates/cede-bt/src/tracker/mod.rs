//! What peers and trackers say to each other, over HTTP and UDP, and the book that a tracker keeps.
//!
//! Source: BEP 3 (announces), BEP 7 (IPv6), BEP 15 (UDP), BEP 23 (compact answers), BEP 48 (scrapes). Octets only: who
//! carries them is decided elsewhere, so the simulated world and the real one ask and answer alike.

pub mod book;
pub mod compact;
pub mod http;
pub mod share;
pub mod udp;

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

/// The most peers that are taken from one answer.
pub const MAX_PEERS: usize = 2_000;
/// The most that are taken by the names of their hosts.
pub const MAX_NAMED: usize = 50;
/// What a peer may lack: beyond that it has not counted.
const MOST_LEFT: u64 = i64::MAX as u64;
/// Announces are never further apart nor closer than that, whatever a tracker says, in seconds.
pub const INTERVAL_RANGE_S: (u32, u32) = (5, 24 * 3600);

/// Why a peer announces itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Event {
    /// The interval is over, or more peers are wanted.
    #[default]
    Interval,
    /// It begins.
    Started,
    /// It has become complete; not said by one that was complete when it began.
    Completed,
    /// It leaves.
    Stopped,
    /// It wants nothing more, although it has not everything: a partial seed (BEP 21). Said with each announce but the first. Over UDP
    /// there is no number for it, and it is an interval's.
    Paused,
}

impl Event {
    /// What it is called in logs and over HTTP, where that of an interval is not said.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Started => "started",
            Self::Completed => "completed",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
        }
    }
}

/// What a peer tells a tracker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announce {
    /// The torrent.
    pub info_hash: [u8; 20],
    /// The peer.
    pub peer_id: [u8; 20],
    /// Where it takes connections.
    pub port: u16,
    /// Octets of content sent since it began.
    pub uploaded: u64,
    /// Octets of content received since it began.
    pub downloaded: u64,
    /// Octets that it lacks; `None` where it says nothing that could be meant.
    pub left: Option<u64>,
    /// Why it announces itself.
    pub event: Event,
    /// Tells the same peer at a new address from another.
    pub key: u32,
    /// How many peers it wants; `None` leaves that to the tracker.
    pub wanted: Option<u32>,
}

/// What a tracker answers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// Seconds until the next announce.
    pub interval_s: u32,
    /// The least seconds between two.
    pub min_interval_s: Option<u32>,
    /// Peers that have everything.
    pub seeders: Option<u32>,
    /// Peers that have not.
    pub leechers: Option<u32>,
    /// Where peers are.
    pub peers: Vec<SocketAddr>,
    /// Their names, as many as there are peers where a tracker tells them; not read from answers.
    pub ids: Vec<[u8; 20]>,
    /// The host and port of peers that are listed by name, which only some trackers do over HTTP. To be looked up.
    pub named: Vec<(String, u16)>,
    /// Where the asker is (BEP 24), as far as the tracker can see; not read from answers.
    pub external_ip: Option<IpAddr>,
    /// To be shown.
    pub warning: Option<String>,
    /// To be sent back with the next announce.
    pub tracker_id: Option<Vec<u8>>,
}

impl Answer {
    /// The interval within reason.
    #[must_use]
    pub fn sane_interval_s(&self) -> u32 {
        self.interval_s.clamp(INTERVAL_RANGE_S.0, INTERVAL_RANGE_S.1)
    }
}

/// What a tracker knows of a torrent as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Peers that have everything.
    pub seeders: u32,
    /// How often a peer became complete.
    pub completed: u32,
    /// Peers that have not everything.
    pub leechers: u32,
}
