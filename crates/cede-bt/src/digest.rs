//! The hash of a piece, by either generation of the format.
//!
//! Source: BEP 3 (SHA-1 of its octets), BEP 52 (the root of a tree over its blocks).

use crate::merkle;
use sha1::{Digest as _, Sha1};

/// The hash of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Digest {
    /// SHA-1 of its octets.
    V1([u8; 20]),
    /// The root of the tree over its blocks.
    V2(merkle::Hash),
}

impl Digest {
    /// Its octets, as torrents have them.
    #[must_use]
    pub const fn octets(&self) -> &[u8] {
        match self {
            Self::V1(octets) => octets,
            Self::V2(octets) => octets,
        }
    }
}

/// Hashes the octets of a piece, which come in order.
#[derive(Clone, Debug)]
pub enum Hasher {
    /// As v1 has it.
    V1(Sha1),
    /// As v2 has it.
    V2(merkle::Hasher),
}

impl Hasher {
    /// As v1 has it.
    #[must_use]
    pub fn v1() -> Self {
        Self::V1(Sha1::new())
    }

    /// As v2 has it, in a tree with so many levels above its blocks.
    #[must_use]
    pub fn v2(levels: u32) -> Self {
        Self::V2(merkle::Hasher::new(levels))
    }

    /// The next octets.
    pub fn update(&mut self, octets: &[u8]) {
        match self {
            Self::V1(hasher) => hasher.update(octets),
            Self::V2(hasher) => hasher.update(octets),
        }
    }

    /// The hash of all that came.
    #[must_use]
    pub fn finish(self) -> Digest {
        match self {
            Self::V1(hasher) => Digest::V1(hasher.finalize().into()),
            Self::V2(hasher) => Digest::V2(hasher.finish()),
        }
    }
}
