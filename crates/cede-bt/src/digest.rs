//! The hash of a piece, by either generation of the format.
//!
//! Source: BEP 3 (SHA-1 of its octets), BEP 52 (the root of a tree over its blocks).

use crate::abreast::{Sha1, Stream};
use crate::merkle;

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
    V1(Stream<Sha1>),
    /// As v2 has it.
    V2(merkle::Hasher),
}

impl Hasher {
    /// As v1 has it.
    #[must_use]
    pub fn v1() -> Self {
        Self::V1(Stream::default())
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

    /// The next octets of two pieces; where they are as many, in little more time than those of one take.
    pub fn update_both(a: &mut Self, of_a: &[u8], b: &mut Self, of_b: &[u8]) {
        match (a, b) {
            (Self::V1(a), Self::V1(b)) => Stream::update_both(a, of_a, b, of_b),
            (Self::V2(a), Self::V2(b)) => merkle::Hasher::update_both(a, of_a, b, of_b),
            (a, b) => {
                a.update(of_a);
                b.update(of_b);
            }
        }
    }

    /// The hash of all that came.
    #[must_use]
    pub fn finish(self) -> Digest {
        match self {
            Self::V1(hasher) => Digest::V1(hasher.finish()),
            Self::V2(hasher) => Digest::V2(hasher.finish()),
        }
    }
}
