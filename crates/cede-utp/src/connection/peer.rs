//! What the peer has said that it takes, beyond what every peer does.
//!
//! No source: this is Cede's own. Two limits of deployed peers are unwritten: a peer that receives into a buffer of, say,
//! 4096 octets cuts a larger datagram short and acknowledges what is left as if it were whole; and libutp drops packets
//! numbered 1024 or more ahead of the next expected one. Larger datagrams, and more packets, are therefore for peers
//! that have said so.
//!
//! They say so in the extension bits (extension 2) of their SYN, or of the answer to a SYN that does: eight octets, of
//! which BEP 29 defines none and which libutp and libtorrent read and ignore. Ours are a marker, the logarithm of the
//! sequence window (zero where it is the usual one), a version, and the largest datagram (zero where it is the usual).
//! A SYN that is sent again goes without, in case somebody is deaf to them.
//!
//! Peers that have spoken are Cede's own, which never mistake silence for death: they need no more keepalives than an
//! address translator does, to which all connections between two sockets are one. These leave keepalives at common times,
//! so that of those which fell silent apart one can send for all
//! ([`Config::keepalive_shared`](crate::Config::keepalive_shared)).
//!
//! **What it leaves out.** Nothing is believed for longer than the connection lives.
//! **How it was validated.** `tests/mtu.rs`: the search goes beyond a frame exactly where both ends said that it may;
//! `tests/tuning.rs`, for windows of more packets.

use super::tuning::USUAL_SEQ_WINDOW;
use super::{Connection, State};
use crate::reorder;
use crate::timers::Timer;
use cede_units::{Duration, Instant};
use cede_wire::Head;
use cede_wire::utp::{EXT_BITS, Header, Packet};

/// How our extension bits begin, so that nobody else's are taken for them.
const MARKER: [u8; 4] = *b"Cede";
const VERSION: u8 = 1;

/// What is known of the peer; zero where nothing is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Peer {
    /// It takes datagrams of so many octets.
    datagram_bytes: u16,
    /// The way to it begins with a link that does.
    link_bytes: u16,
    /// It tells so many packets apart.
    seq_window_packets: u16,
    /// It has said what it takes.
    has_spoken: bool,
    /// Complaints since it was heard last that nobody has its port.
    pub(super) complaints: u8,
    /// The same for all connections of an endpoint to this peer, and other for other peers.
    phase: u32,
}

/// Keepalives to different peers leave at so many different seconds,
const PHASES: u32 = 16;
/// and within a second so many nanoseconds apart, less than the millisecond of hosts' timers: those to one peer come in a row.
const ORDERS: u32 = 1_000_000;
/// Where connections share keepalives, they have so many times to choose from in an interval.
const SHARED_TIMES: u64 = 2;

impl Peer {
    /// Packets that the peer tells apart, where it has said so.
    #[inline]
    pub fn seq_window_packets(&self) -> Option<u16> {
        (self.seq_window_packets > 0).then_some(self.seq_window_packets)
    }
}

impl Connection {
    /// The host knows that the first link of the way to the peer carries datagrams of `bytes` octets of UDP payload. The
    /// path-MTU search goes up to that size from now on, where the peer takes it too; see
    /// [`Config::datagram_limit_bytes`](crate::Config::datagram_limit_bytes).
    pub fn on_link_carries(&mut self, now: Instant, bytes: u16) {
        self.peer.link_bytes = bytes;
        self.search_larger(now);
    }

    /// True where the peer has said what it takes, which Cede alone does.
    #[must_use]
    pub fn is_peer_known(&self) -> bool {
        self.peer.has_spoken
    }

    /// Takes in what the SYN, or its answer, says of the peer.
    pub(super) fn note_peer_limits(&mut self, packet: &Packet<'_>) {
        let bits = packet.extensions.find(EXT_BITS).and_then(|body| <&[u8; 8]>::try_from(body).ok());
        if let Some([marker @ .., window, VERSION, high, low]) = bits
            && *marker == MARKER
        {
            let window = 1_u16.checked_shl(u32::from(*window)).unwrap_or_default();
            self.peer.has_spoken = true;
            self.peer.datagram_bytes = u16::from_be_bytes([*high, *low]);
            self.peer.seq_window_packets = match window {
                0..=USUAL_SEQ_WINDOW => 0,
                more => more.min(reorder::MAX_PACKETS),
            };
        }
    }

    pub(super) fn search_larger(&mut self, now: Instant) {
        let ours = self.config.datagram_limit_bytes.unwrap_or_default();
        let bytes = ours.min(self.peer.datagram_bytes).min(self.peer.link_bytes);
        self.mtu.raise_limit(bytes);
        self.plan_mtu_search(now);
    }

    /// The head of a SYN, or of the answer to one.
    pub(super) fn encode_with_limits(&self, header: &Header) -> Option<Head> {
        let says = self.config.announce || self.config.datagram_limit_bytes.is_some();
        let asked = match self.state {
            State::SynSent { transmissions, .. } => transmissions == 1,
            _ => self.peer.has_spoken,
        };
        if !says || !asked {
            return header.encode(&[]);
        }
        let mut bits = [0; 8];
        bits[..4].copy_from_slice(&MARKER);
        bits[4] = if self.config.announce { self.config.seq_window_packets.ilog2() as u8 } else { 0 };
        bits[5] = VERSION;
        bits[6..].copy_from_slice(&self.config.datagram_limit_bytes.unwrap_or_default().to_be_bytes());
        header.encode(&[(EXT_BITS, &bits)])
    }

    /// Silence of ours after which this peer gets a keepalive.
    fn keepalive_interval(&self) -> Option<Duration> {
        let (usual, strangers) = (self.config.keepalive, self.config.keepalive_strangers);
        if self.peer.has_spoken { usual } else { strangers.or(usual) }
    }

    /// When the keepalive is due that follows a packet that left at `since`.
    pub(super) fn keepalive_after(&self, since: Instant) -> Option<Instant> {
        let interval = self.keepalive_interval()?;
        let due = since + interval;
        let step =
            if self.shares_keepalives() { interval / SHARED_TIMES } else { self.config.keepalive_step };
        let phase = u64::from(self.peer.phase % PHASES) * 1_000_000_000 + u64::from(self.peer.phase % ORDERS);
        let early = due.as_nanos().saturating_sub(phase).checked_rem(step.as_nanos()).unwrap_or_default();
        // Where the step is longer than the interval, no more than half of the latter.
        Some(Instant::from_nanos(due.as_nanos() - early).max(since + interval / 2))
    }

    fn shares_keepalives(&self) -> bool {
        self.peer.has_spoken && self.config.keepalive_shared.is_some()
    }

    /// Connections with the same `phase` have the same peer.
    pub(crate) fn set_keepalive_phase(&mut self, phase: u32) {
        self.peer.phase = phase;
    }

    /// Will a keepalive leave with the next [`Connection::poll_transmit`]?
    pub(crate) fn owes_keepalive(&self) -> bool {
        self.sending.keepalive_due
    }

    /// Another connection to the same peer sends a keepalive now: is that all that this one was called for? Not where it has
    /// ended its stream, and reads on; nor where neither end has heard of it for long: a peer that has lost it will say so.
    /// `patient` ones wait for a time at which fewer do so.
    pub(crate) fn leaves_keepalive_to_other(&mut self, now: Instant, patient: bool) -> bool {
        let Some(longest) = self.config.keepalive_shared.filter(|_| self.peer.has_spoken) else {
            return false;
        };
        let silent = now.since(self.sending.last_sent_at.max(self.delays.arrived_at));
        let speaks = silent >= longest && !patient || self.doubts_peer();
        if speaks || self.sending.is_ended() || self.timers.earliest_but(Timer::Keepalive) <= now {
            return false;
        }
        let (Some(due), Some(next)) =
            (self.keepalive_after(self.sending.last_sent_at), self.keepalive_after(now))
        else {
            return false;
        };
        if self.keepalive_interval().is_some_and(|interval| silent <= interval) {
            self.release_memory();
        }
        self.timers.set(Timer::Keepalive, if due > now { due } else { next });
        true
    }
}
