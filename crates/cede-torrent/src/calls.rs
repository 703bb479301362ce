//! What becomes of calls to peers: where nobody is connected, a person wants to know why.

use crate::agree::Encryption;
use cede_bt::Transport;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// Peers of whom something is remembered.
const MAX_PEERS: usize = 2_000;

/// Why a peer that was called is not connected; the later ones tell more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Miss {
    /// It was not called, as its address is one to leave alone.
    Filtered,
    /// It does not answer.
    Silent,
    /// The system knows no way to it.
    Unreachable,
    /// Nobody takes connections there.
    Refused,
    /// It hung up before it said anything: it may not have the torrent, or take only what is enciphered, or what is not.
    HungUp,
    /// It takes connections, and did not agree on the encryption without which none is to be.
    Clear,
    /// It talks, and could not tell what a link stands for.
    Ignorant,
}

impl Miss {
    /// Why no stream came to be.
    pub(crate) fn of(error: &io::Error) -> Self {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, TimedOut};
        match error.kind() {
            TimedOut => Self::Silent,
            ConnectionRefused | ConnectionReset | ConnectionAborted => Self::Refused,
            _ => Self::Unreachable,
        }
    }

    /// Why one that was to be enciphered did not come to be, where that is a must.
    pub(crate) const fn of_agreement(encryption: Encryption) -> Self {
        if matches!(encryption, Encryption::Require) { Self::Clear } else { Self::HungUp }
    }
}

/// How many peers are not connected, by why.
pub type Misses = BTreeMap<Miss, usize>;

/// What became of the last call to each peer. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Calls(Rc<RefCell<HashMap<SocketAddr, [Option<Miss>; 2]>>>);

impl Calls {
    pub(crate) fn missed(&self, peer: SocketAddr, transport: Transport, miss: Miss) {
        let mut peers = self.0.borrow_mut();
        if peers.len() < MAX_PEERS || peers.contains_key(&peer) {
            peers.entry(peer).or_default()[transport as usize] = Some(miss);
        }
    }

    /// It has said something.
    pub(crate) fn heard(&self, peer: SocketAddr) {
        self.0.borrow_mut().remove(&peer);
    }

    /// Peers that were called and have not been heard since.
    #[must_use]
    pub fn misses(&self) -> Misses {
        let mut misses = Misses::new();
        for miss in self.0.borrow().values().filter_map(|ways| ways.iter().flatten().max()) {
            *misses.entry(*miss).or_default() += 1;
        }
        misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_counts_once_by_what_tells_most() {
        let calls = Calls::default();
        let peer = |port| SocketAddr::from(([192, 0, 2, 1], port));
        calls.missed(peer(1), Transport::Utp, Miss::Silent);
        calls.missed(peer(1), Transport::Tcp, Miss::Refused);
        calls.missed(peer(2), Transport::Utp, Miss::Silent);
        calls.missed(peer(3), Transport::Tcp, Miss::Clear);
        assert_eq!(calls.misses(), Misses::from([(Miss::Silent, 1), (Miss::Refused, 1), (Miss::Clear, 1)]));
        // The last call of each kind counts.
        calls.missed(peer(1), Transport::Tcp, Miss::Silent);
        calls.heard(peer(3));
        assert_eq!(calls.misses(), Misses::from([(Miss::Silent, 2)]));
    }

    #[test]
    fn whoever_is_told_of_is_bounded() {
        let calls = Calls::default();
        for number in 0..3_000_u16 {
            calls.missed(SocketAddr::from(([192, 0, 2, 1], number)), Transport::Tcp, Miss::Silent);
        }
        assert_eq!(calls.misses(), Misses::from([(Miss::Silent, MAX_PEERS)]));
    }
}
