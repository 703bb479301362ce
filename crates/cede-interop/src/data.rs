//! What is transferred: octets that depend on a seed, and their digest.

use cede_units::Stream;
use sha1::{Digest as _, Sha1};

/// A SHA-1 digest: BitTorrent's, and good enough against accidents.
pub type Digest = [u8; 20];

/// `len` octets that nothing compresses and no place of which resembles another.
#[must_use]
pub fn octets(seed: u64, len: usize) -> Vec<u8> {
    let mut stream = Stream::named(seed, "interop data");
    let mut octets = Vec::with_capacity(len + 8);
    while octets.len() < len {
        octets.extend_from_slice(&stream.next_u64().to_le_bytes());
    }
    octets.truncate(len);
    octets
}

/// The digest of some octets.
#[must_use]
pub fn digest(octets: &[u8]) -> Digest {
    Sha1::digest(octets).into()
}

/// A digest of octets that come one after another.
#[derive(Clone, Default)]
pub struct Running {
    state: Sha1,
    /// How many there have been.
    pub bytes: u64,
}

impl Running {
    /// Takes in more of them.
    pub fn add(&mut self, octets: &[u8]) {
        self.state.update(octets);
        self.bytes += octets.len() as u64;
    }

    /// The digest of all of them.
    #[must_use]
    pub fn finish(self) -> Digest {
        self.state.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_octets_and_pieces_the_same_digest() {
        let all = octets(7, 100_001);
        assert_eq!(all, octets(7, 100_001));
        assert_ne!(all, octets(8, 100_001));
        let mut running = Running::default();
        all.chunks(977).for_each(|piece| running.add(piece));
        assert_eq!(running.bytes, 100_001);
        assert_eq!(running.finish(), digest(&all));
    }
}
