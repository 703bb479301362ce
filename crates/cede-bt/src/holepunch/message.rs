//! What peers say to each other to punch holes: one kind of message, of four or five fields.

use crate::tracker::compact::{self, V4_BYTES, V6_BYTES};
use alloc::vec::Vec;
use core::net::SocketAddr;

const RENDEZVOUS: u8 = 0;
const CONNECT: u8 = 1;
const ERROR: u8 = 2;
const V4: u8 = 0;
const V6: u8 = 1;

/// Why a peer is not introduced to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// That is no address of a peer.
    NoSuchPeer,
    /// The relay is not connected to it.
    NotConnected,
    /// It does not punch holes.
    NoSupport,
    /// It is the one that asks.
    NoSelf,
    /// Something that BEP 55 does not say.
    Other(u32),
}

impl Reason {
    const fn code(self) -> u32 {
        match self {
            Self::NoSuchPeer => 1,
            Self::NotConnected => 2,
            Self::NoSupport => 3,
            Self::NoSelf => 4,
            Self::Other(code) => code,
        }
    }

    const fn of(code: u32) -> Self {
        match code {
            1 => Self::NoSuchPeer,
            2 => Self::NotConnected,
            3 => Self::NoSupport,
            4 => Self::NoSelf,
            other => Self::Other(other),
        }
    }
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// To a relay: introduce me to this peer.
    Rendezvous(SocketAddr),
    /// From a relay: call this peer, which calls you.
    Connect(SocketAddr),
    /// From a relay: you are not introduced to this peer.
    Error(SocketAddr, Reason),
}

impl Message {
    /// Reads one; `None` where it is none. The code of an error may be left out where there is none, as libtorrent does; what stands
    /// behind is for later versions.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let (&[kind, family], rest) = octets.split_first_chunk()?;
        let len = match family {
            V4 => V4_BYTES,
            V6 => V6_BYTES,
            _ => return None,
        };
        let (place, rest) = rest.split_at_checked(len)?;
        // An address without a port is one that nobody is at: it is to be answered, and nothing else.
        let peer = compact::any(place)?;
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        match kind {
            RENDEZVOUS => Some(Self::Rendezvous(peer)),
            CONNECT => Some(Self::Connect(peer)),
            ERROR => Some(Self::Error(peer, Reason::of(u32::from_be_bytes(*rest.first_chunk()?)))),
            _ => None,
        }
    }

    /// Its octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, peer, code) = match *self {
            Self::Rendezvous(peer) => (RENDEZVOUS, peer, 0),
            Self::Connect(peer) => (CONNECT, peer, 0),
            Self::Error(peer, reason) => (ERROR, peer, reason.code()),
        };
        let mut octets = alloc::vec![kind, if peer.ip().to_canonical().is_ipv4() { V4 } else { V6 }];
        compact::push(&mut octets, peer);
        octets.extend_from_slice(&code.to_be_bytes());
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for peer in ["192.0.2.7:6881", "[2001:db8::7]:1"] {
            let peer: SocketAddr = peer.parse().unwrap();
            let reasons = (0..7).map(|code| Message::Error(peer, Reason::of(code)));
            for message in [Message::Rendezvous(peer), Message::Connect(peer)].into_iter().chain(reasons) {
                let octets = message.encode();
                assert_eq!(Message::parse(&octets), Some(message));
                for len in 0..octets.len() - 4 {
                    assert_eq!(Message::parse(&octets[..len]), None);
                }
            }
        }
    }

    #[test]
    fn messages_have_the_octets_of_bep_55() {
        let peer: SocketAddr = "1.2.3.4:258".parse().unwrap();
        assert_eq!(Message::Rendezvous(peer).encode(), [0, 0, 1, 2, 3, 4, 1, 2, 0, 0, 0, 0]);
        let error = Message::Error(peer, Reason::NoSupport);
        assert_eq!(error.encode(), [2, 0, 1, 2, 3, 4, 1, 2, 0, 0, 0, 3]);
        // libtorrent's, without a code.
        assert_eq!(Message::parse(&[1, 0, 1, 2, 3, 4, 1, 2]), Some(Message::Connect(peer)));
        assert_eq!(Message::parse(&[2, 0, 1, 2, 3, 4, 1, 2]), None);
        assert_eq!(Message::parse(&[3, 0, 1, 2, 3, 4, 1, 2]), None);
        assert_eq!(Message::parse(&[1, 2, 1, 2, 3, 4, 1, 2]), None);
    }
}
