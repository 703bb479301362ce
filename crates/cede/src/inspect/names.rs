//! How things are written.

use super::InspectArgs;
use cede_inspect::SideReport;
use cede_meter::Socket;
use std::fmt::Write as _;
use std::net::SocketAddr;

/// Octets as hexadecimal digits.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut out, octet| {
        let _ = write!(out, "{octet:02x}");
        out
    })
}

/// A torrent; nothing where it is not known.
pub fn torrent(info_hash: Option<[u8; 20]>) -> String {
    info_hash.map_or_else(String::new, |hash| hex(&hash))
}

/// A peer id as text where it is one: octets that are no letters, digits or signs as `%ff`.
pub fn peer_id(id: &[u8; 20]) -> String {
    id.iter().fold(String::new(), |mut out, &octet| {
        let is_plain = octet.is_ascii_graphic() && !matches!(octet, b'%' | b'"' | b',');
        let _ = if is_plain { write!(out, "{}", char::from(octet)) } else { write!(out, "%{octet:02x}") };
        out
    })
}

impl InspectArgs {
    /// `192.0.2.1:80`, `[2001:db8::1]:80`, or a pseudonym's.
    pub fn end(&self, socket: Socket) -> String {
        SocketAddr::new(self.veil.shown(socket.address), socket.port).to_string()
    }

    /// A side's peer id. It names a peer as an address does.
    pub fn peer_id(&self, side: &SideReport) -> Option<String> {
        side.peer_id.filter(|_| self.pseudonyms.is_none()).map(|id| peer_id(&id))
    }
}
