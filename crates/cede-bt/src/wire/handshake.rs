//! The first 68 octets of each direction.

use super::error::WireError;

/// Octets of a handshake.
pub const HANDSHAKE_BYTES: usize = 68;
/// What it begins with.
pub const PROTOCOL: &[u8; 20] = b"\x13BitTorrent protocol";
/// So many octets say which torrent is meant.
pub const HANDSHAKE_HEAD_BYTES: usize = 48;

/// The eight octets in which a peer says what it understands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reserved(pub [u8; 8]);

impl Reserved {
    /// The extension protocol (BEP 10).
    pub const EXTENDED: (usize, u8) = (5, 0x10);
    /// The distributed hash table (BEP 5).
    pub const DHT: (usize, u8) = (7, 0x01);
    /// The fast extension (BEP 6).
    pub const FAST: (usize, u8) = (7, 0x04);
    /// Torrents of version 2 (BEP 52).
    pub const V2: (usize, u8) = (7, 0x10);

    /// The same with one more bit.
    #[must_use]
    pub const fn with(mut self, (octet, bit): (usize, u8)) -> Self {
        self.0[octet] |= bit;
        self
    }

    /// Whether a bit is set.
    #[must_use]
    pub const fn has(self, (octet, bit): (usize, u8)) -> bool {
        self.0[octet] & bit != 0
    }
}

/// A handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handshake {
    /// What the sender understands.
    pub reserved: Reserved,
    /// The torrent: SHA-1 of the info dictionary, or the first 20 octets of its SHA-256.
    pub info_hash: [u8; 20],
    /// Who speaks.
    pub peer_id: [u8; 20],
}

impl Handshake {
    /// The octets.
    #[must_use]
    pub fn encode(&self) -> [u8; HANDSHAKE_BYTES] {
        let mut octets = [0; HANDSHAKE_BYTES];
        octets[..20].copy_from_slice(PROTOCOL);
        octets[20..28].copy_from_slice(&self.reserved.0);
        octets[28..48].copy_from_slice(&self.info_hash);
        octets[48..].copy_from_slice(&self.peer_id);
        octets
    }

    /// Which torrent is meant, as soon as it has been said: `None` before that.
    ///
    /// # Errors
    /// [`WireError::NotBitTorrent`] as soon as the octets are not the protocol's: a stranger is told from a peer by the first ones.
    pub fn torrent_of(head: &[u8]) -> Result<Option<[u8; 20]>, WireError> {
        let known = head.len().min(PROTOCOL.len());
        if head[..known] != PROTOCOL[..known] {
            return Err(WireError::NotBitTorrent);
        }
        Ok(head.get(28..HANDSHAKE_HEAD_BYTES).and_then(|octets| octets.first_chunk().copied()))
    }

    /// Reads a handshake.
    ///
    /// # Errors
    /// [`WireError::NotBitTorrent`] where the first 20 octets are not the protocol's.
    pub fn decode(octets: &[u8; HANDSHAKE_BYTES]) -> Result<Self, WireError> {
        let info_hash = Self::torrent_of(octets)?.ok_or(WireError::NotBitTorrent)?;
        let reserved = Reserved(core::array::from_fn(|index| octets[20 + index]));
        let peer_id = core::array::from_fn(|index| octets[HANDSHAKE_HEAD_BYTES + index]);
        Ok(Self { reserved, info_hash, peer_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_has_the_octets_of_bep_3_6_and_10() {
        let reserved = Reserved::default().with(Reserved::EXTENDED).with(Reserved::FAST).with(Reserved::DHT);
        let octets = Handshake { reserved, info_hash: [1; 20], peer_id: [2; 20] }.encode();
        assert_eq!(octets[..20], *b"\x13BitTorrent protocol");
        assert_eq!(octets[20..28], [0, 0, 0, 0, 0, 0x10, 0, 5]);
        assert_eq!(Handshake::decode(&octets).unwrap().reserved, reserved);
        assert_eq!(Handshake::torrent_of(&octets[..47]), Ok(None));
        assert_eq!(Handshake::torrent_of(&octets[..48]), Ok(Some([1; 20])));
        assert_eq!(Handshake::torrent_of(b"\x13Bitt"), Err(WireError::NotBitTorrent));
        let mut other = octets;
        other[3] ^= 1;
        assert_eq!(Handshake::decode(&other), Err(WireError::NotBitTorrent));
    }
}
