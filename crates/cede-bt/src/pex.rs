//! Peers told by peers.
//!
//! Source: BEP 11. Once a minute each peer hears what has changed among our connections, at most 50 that came and 50 that
//! went. How it was validated: the tests below, a fuzz target, and libtorrent in both directions.

use crate::bencode::{Document, Form, Limits, Node};
use crate::tracker::compact;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::net::SocketAddr;

/// Peers of each kind in one message.
pub const MAX_PEERS: usize = 50;
/// A peer that wants nothing more (BEP 21).
const SEED: u8 = 2;
/// A peer that speaks uTP.
const UTP: u8 = 4;
/// A peer that lets itself be introduced (BEP 55).
const PUNCHES: u8 = 8;
/// A peer that was reached.
const REACHABLE: u8 = 0x10;

/// A peer that we are connected to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contact {
    /// Where it takes connections.
    pub address: SocketAddr,
    /// It has everything, or says that it wants nothing more.
    pub is_seed: bool,
    /// We are connected over uTP.
    pub is_utp: bool,
    /// It lets itself be introduced to others.
    pub punches: bool,
    /// We opened the connection.
    pub is_reached: bool,
}

/// What a peer has been told of our connections.
#[derive(Clone, Debug, Default)]
pub struct Told(BTreeSet<SocketAddr>);

impl Told {
    /// The message about what has changed; `None` where nothing has.
    pub fn update(&mut self, contacts: &[Contact]) -> Option<Vec<u8>> {
        let now: BTreeSet<SocketAddr> = contacts.iter().map(|contact| contact.address).collect();
        let fresh = contacts.iter().filter(|contact| !self.0.contains(&contact.address));
        let added: Vec<Contact> = fresh.take(MAX_PEERS).copied().collect();
        let dropped: Vec<SocketAddr> = self.0.difference(&now).take(MAX_PEERS).copied().collect();
        if added.is_empty() && dropped.is_empty() {
            return None;
        }
        self.0.retain(|address| !dropped.contains(address));
        self.0.extend(added.iter().map(|contact| contact.address));
        Some(message(&added, &dropped))
    }
}

/// A message of who has come and gone.
#[must_use]
pub fn message(added: &[Contact], dropped: &[SocketAddr]) -> Vec<u8> {
    let flags = |is_v6: bool| -> Vec<u8> {
        let family = added.iter().filter(|contact| contact.address.ip().to_canonical().is_ipv6() == is_v6);
        family.map(flags_of).collect()
    };
    let (added4, added6) = compact::strings(added.iter().map(|contact| contact.address));
    let (dropped4, dropped6) = compact::strings(dropped.iter().copied());
    Form::dict()
        .with("added", added4)
        .with("added.f", flags(false))
        .with("added6", added6)
        .with("added6.f", flags(true))
        .with("dropped", dropped4)
        .with("dropped6", dropped6)
        .encode()
}

const fn flags_of(contact: &Contact) -> u8 {
    let seed = if contact.is_seed { SEED } else { 0 };
    let utp = if contact.is_utp { UTP } else { 0 };
    let punches = if contact.punches { PUNCHES } else { 0 };
    let reached = if contact.is_reached { REACHABLE } else { 0 };
    seed | utp | punches | reached
}

/// A peer that a message tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// Where it takes connections.
    pub address: SocketAddr,
    /// It lets itself be introduced, by whoever tells of it.
    pub punches: bool,
}

/// The peers that a message tells of; `None` where it is no message. Those that went are not acted upon.
#[must_use]
pub fn parse(octets: &[u8]) -> Option<Vec<Heard>> {
    let document = Document::parse(octets, Limits::MESSAGE).ok()?;
    let root = document.root();
    if !root.is_dict() {
        return None;
    }
    let text = |key: &[u8]| root.get(key).and_then(Node::bytes).unwrap_or_default();
    let four = heard(text(b"added").chunks_exact(compact::V4_BYTES), text(b"added.f"));
    let six = heard(text(b"added6").chunks_exact(compact::V6_BYTES), text(b"added6.f"));
    // The first message may tell of more than the others.
    Some(four.take(2 * MAX_PEERS).chain(six.take(2 * MAX_PEERS)).collect())
}

/// Peers and their flags, which may be fewer or none. Nobody is at port zero.
fn heard<'a>(places: impl Iterator<Item = &'a [u8]>, flags: &'a [u8]) -> impl Iterator<Item = Heard> {
    let flags = flags.iter().copied().chain(core::iter::repeat(0));
    places.zip(flags).filter_map(|(place, flags)| {
        let address = compact::peer(place)?;
        Some(Heard { address, punches: flags & PUNCHES != 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(k: u8) -> Contact {
        let address = SocketAddr::from(([10, 0, 0, k], 6881));
        Contact { address, is_seed: k == 1, is_utp: k == 2, is_reached: k == 3, punches: k == 2 }
    }

    #[test]
    fn changes_are_told_once() {
        let mut told = Told::default();
        let six = Contact { address: "[2001:db8::1]:7".parse().unwrap(), ..contact(1) };
        let octets = told.update(&[contact(1), contact(2), contact(3), six]).unwrap();
        let peers = parse(&octets).unwrap();
        let heard = |contact: Contact| Heard { address: contact.address, punches: contact.punches };
        assert_eq!(peers, [contact(1), contact(2), contact(3), six].map(heard));
        let document = Document::parse(&octets, Limits::CANONICAL).unwrap();
        assert_eq!(document.root().get(b"added.f").unwrap().bytes(), Some(&[2, 12, 0x10][..]));
        assert_eq!(document.root().get(b"added6.f").unwrap().bytes(), Some(&[2][..]));
        assert_eq!(told.update(&[contact(1), contact(2), contact(3), six]), None);
        let octets = told.update(&[contact(1), contact(3), six]).unwrap();
        let document = Document::parse(&octets, Limits::CANONICAL).unwrap();
        assert_eq!(document.root().get(b"dropped").unwrap().bytes(), Some(&[10, 0, 0, 2, 26, 225][..]));
        assert_eq!(parse(&octets), Some(Vec::new()));
    }

    #[test]
    fn no_more_than_fifty_are_told_at_once() {
        let mut told = Told::default();
        let all: Vec<Contact> = (0..120).map(contact).collect();
        let counts: Vec<usize> = (0..3).map(|_| parse(&told.update(&all).unwrap()).unwrap().len()).collect();
        assert_eq!(counts, [50, 50, 20]);
    }
    #[test]
    fn flags_are_those_of_their_peers_however_many_there_are() {
        let octets = b"d5:added18:\x01\x02\x03\x04\x00\x05\x01\x02\x03\x05\x00\x00\x01\x02\x03\x06\x00\x057:added.f2:\x00\x08e";
        let punch: Vec<bool> = parse(octets).unwrap().iter().map(|heard| heard.punches).collect();
        assert_eq!(punch, [false, false], "the flag is of one at port zero, and the last has none");
        let octets = b"d5:added12:\x01\x02\x03\x05\x00\x00\x01\x02\x03\x06\x00\x057:added.f2:\x00\x08e";
        assert!(parse(octets).unwrap()[0].punches);
    }
}
