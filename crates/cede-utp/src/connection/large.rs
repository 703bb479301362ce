//! Datagrams larger than an Ethernet frame, where both ends and the path take them.
//!
//! No source: this is Cede's own. uTP says nowhere how long a payload is, so a peer that receives into a buffer of, say,
//! 4096 octets cuts a larger datagram short and acknowledges what is left as if it were whole. Sizes beyond an Ethernet
//! frame are therefore tried only towards a peer that has said which it takes.
//!
//! It says so in the extension bits (extension 2) of its SYN, or of the answer to a SYN that does: eight octets, of which
//! BEP 29 defines none and which libutp and libtorrent read and ignore. Ours are a marker, and the largest datagram.
//!
//! **What it leaves out.** Nothing is believed for longer than the connection lives.
//! **How it was validated.** `tests/mtu.rs`: the search goes beyond a frame exactly where both ends said that it may.

use super::{Connection, State};
use cede_units::Instant;
use cede_wire::Head;
use cede_wire::utp::{EXT_BITS, Header, Packet};

/// How our extension bits begin, so that nobody else's are taken for a size.
const MARKER: [u8; 6] = *b"Cede\0\x01";

/// What is known of larger datagrams; zero where nothing is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Large {
    /// The peer takes datagrams of so many octets.
    peer_bytes: u16,
    /// The way begins with a link that does.
    link_bytes: u16,
}

impl Connection {
    /// The host knows that the first link of the way to the peer carries datagrams of `bytes` octets of UDP payload. The
    /// path-MTU search goes up to that size from now on, where the peer takes it too; see
    /// [`Config::datagram_limit_bytes`](crate::Config::datagram_limit_bytes).
    pub fn on_link_carries(&mut self, now: Instant, bytes: u16) {
        self.large.link_bytes = bytes;
        self.search_larger(now);
    }

    /// Takes in what the SYN, or its answer, says of datagrams.
    pub(super) fn note_datagram_limit(&mut self, packet: &Packet<'_>) {
        let bits = packet.extensions.find(EXT_BITS).and_then(|body| <&[u8; 8]>::try_from(body).ok());
        if let Some([marker @ .., high, low]) = bits
            && *marker == MARKER
        {
            self.large.peer_bytes = u16::from_be_bytes([*high, *low]);
        }
    }

    pub(super) fn search_larger(&mut self, now: Instant) {
        let ours = self.config.datagram_limit_bytes.unwrap_or_default();
        let bytes = ours.min(self.large.peer_bytes).min(self.large.link_bytes);
        self.mtu.raise_limit(bytes);
        self.plan_mtu_search(now);
    }

    /// The head of a SYN, or of the answer to one.
    pub(super) fn encode_with_limit(&self, header: &Header) -> Option<Head> {
        let asked = matches!(self.state, State::SynSent { .. }) || self.large.peer_bytes > 0;
        match self.config.datagram_limit_bytes {
            Some(bytes) if asked => {
                let mut bits = [0; 8];
                bits[..MARKER.len()].copy_from_slice(&MARKER);
                bits[MARKER.len()..].copy_from_slice(&bytes.to_be_bytes());
                header.encode(&[(EXT_BITS, &bits)])
            }
            _ => header.encode(&[]),
        }
    }
}
