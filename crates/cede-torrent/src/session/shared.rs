//! What the session and a connection's task both know of the connection.

use super::outgoing::Outgoing;
use cede_bt::engine::ConnId;
use cede_bt::extension::Extension;
use cede_bt::pex::Told;
use cede_units::Instant as Time;
use std::net::{IpAddr, SocketAddr};
use std::task::Waker;
use tokio::task::AbortHandle;

/// What the session and the connection's task both know.
pub(crate) struct Shared {
    pub id: ConnId,
    pub address: SocketAddr,
    /// What is to be written, in the clear.
    pub out: Outgoing,
    pub is_closing: bool,
    /// It ends without a word.
    pub is_lost: bool,
    /// The machine's address that it goes out from.
    pub from: Option<IpAddr>,
    pub is_enciphered: bool,
    pub waker: Option<Waker>,
    /// The task that opens the connection, as long as it does.
    pub dial: Option<AbortHandle>,
    pub extension: Extension,
    /// Its handshake of the extension protocol has come.
    pub was_introduced: bool,
    pub told: Told,
    /// When it was told.
    pub told_at: Option<Time>,
    /// Parts of the info dictionary that the peer has had.
    pub metadata_sent: u64,
    /// Its requests for hashes.
    pub hashes_asked: u64,
}

impl Shared {
    pub fn new(id: ConnId, address: SocketAddr) -> Self {
        Self {
            id,
            address,
            out: Outgoing::default(),
            is_closing: false,
            is_lost: false,
            from: None,
            is_enciphered: false,
            waker: None,
            dial: None,
            extension: Extension::default(),
            was_introduced: false,
            told: Told::default(),
            told_at: None,
            metadata_sent: 0,
            hashes_asked: 0,
        }
    }

    pub fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Where the peer takes connections, as far as that is known and others can call it there.
    pub fn contact(&self, opened_by_us: bool) -> Option<SocketAddr> {
        if matches!(self.address.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local()) {
            return None;
        }
        if opened_by_us {
            return Some(self.address);
        }
        self.extension.port.map(|port| SocketAddr::new(self.address.ip(), port))
    }
}
