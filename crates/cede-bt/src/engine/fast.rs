//! Pieces that a peer may ask for while it is choked.
//!
//! Source: BEP 6, "Allowed Fast": pieces drawn by the digest of the peer's address and the torrent's name, so that a peer is
//! told of the same ones by everybody. As libtorrent does it: five that the peer lacks, however many it has already, without
//! the BEP's masking of the address, told once the peer is interested; while it is choked, three times their blocks at most.
//! In a flash crowd each leecher asks the seed for its five at once, and the seed is busy with copies of them long before all
//! pieces are out: with 40 pieces and 76 leechers this is most of what it sends.
//!
//! **What it leaves out.** Suggested pieces.
//! **How it was validated.** The BEP's own example; a choked peer in `tests/swarm.rs`; real swarms of 8 to 76 leechers
//! (`docs/swarms.md`).

use super::Engine;
use super::address::PeerAddress;
use super::conn::Conn;
use super::grants::Grants;
use crate::wire::Message;
use alloc::vec::Vec;
use cede_units::Instant;
use core::net::IpAddr;
use sha1::{Digest, Sha1};

/// Pieces are drawn so often at most: there may be few that the peer lacks (libtorrent).
const DRAWS_MAX: usize = 500;

/// The first `count` pieces that a host is given which it lacks.
fn draw(
    host: IpAddr,
    info_hash: &[u8; 20],
    pieces: u32,
    count: usize,
    lacks: impl Fn(u32) -> bool,
) -> Vec<u32> {
    if count >= pieces as usize {
        return (0..pieces).filter(|&piece| lacks(piece)).collect();
    }
    let mut digest = match host {
        IpAddr::V4(host) => Sha1::new_with_prefix(host.octets()),
        IpAddr::V6(host) => Sha1::new_with_prefix(host.octets()),
    };
    digest.update(info_hash);
    let mut digest: [u8; 20] = digest.finalize().into();
    let mut drawn = Vec::with_capacity(count);
    for _ in 0..DRAWS_MAX / 5 {
        for word in digest.chunks_exact(4) {
            let piece = word.iter().fold(0, |number: u32, &octet| number << 8 | u32::from(octet)) % pieces;
            if drawn.len() < count && lacks(piece) && !drawn.contains(&piece) {
                drawn.push(piece);
            }
        }
        if drawn.len() == count {
            break;
        }
        digest = Sha1::digest(digest).into();
    }
    drawn
}

impl<A: PeerAddress> Conn<A> {
    /// The pieces that it is to be told of, where it has not been.
    fn grants_due(&self, info_hash: &[u8; 20], pieces: u32, count: usize) -> Vec<u32> {
        if !self.fast || !self.out.granted.is_empty() || count == 0 {
            return Vec::new();
        }
        draw(self.address.host(), info_hash, pieces, count, |piece| !self.have.has(piece))
    }
}

impl<A: PeerAddress> Engine<A> {
    /// Tells a peer, once, what it may ask for while it is choked.
    pub(super) fn grant(&mut self, now: Instant, index: u32) {
        if self.is_super_seeding() {
            return;
        }
        let (count, info_hash) = (self.profile.allowed_fast as usize, self.info_hash);
        let Some(conn) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) else { return };
        let pieces = conn.grants_due(&info_hash, self.geometry.pieces(), count);
        if pieces.is_empty() {
            return;
        }
        conn.out.granted = Grants::new(pieces.clone(), &self.geometry);
        for piece in pieces {
            self.say(now, index, &Message::AllowedFast(piece));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    /// BEP 6: the torrent of twenty times 0xaa, 1,313 pieces, and 80.4.4.200, whose last octet the BEP masks.
    #[test]
    fn the_bep_s_example() {
        let host = Ipv4Addr::new(80, 4, 4, 0).into();
        let seven = draw(host, &[0xaa; 20], 1313, 7, |_| true);
        assert_eq!(seven, [1059, 431, 808, 1217, 287, 376, 1188]);
        let nine = draw(host, &[0xaa; 20], 1313, 9, |_| true);
        assert_eq!(nine, [1059, 431, 808, 1217, 287, 376, 1188, 353, 508]);
    }

    #[test]
    fn pieces_that_are_there_are_not_offered_and_the_search_ends() {
        let host = Ipv4Addr::LOCALHOST.into();
        assert_eq!(draw(host, &[1; 20], 3, 5, |piece| piece != 1), [0, 2]);
        assert!(draw(host, &[1; 20], 40, 5, |_| false).is_empty());
        assert_eq!(draw(host, &[1; 20], 40, 5, |piece| piece == 7), [7]);
    }
}
