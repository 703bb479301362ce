//! A stable hash of what a scenario says.
//!
//! Source: FNV-1a with 128 bits (Fowler, Noll, Vo; draft-eastlake-fnv, sections 2 and 5). It names runs so that they
//! can be resumed; it does not guard against forgery.

use super::model::{Scenario, Topology};
use core::fmt;

const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = (1 << 88) + 0x13b;

/// The hash of a scenario's content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContentHash(pub u128);

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl ContentHash {
    fn of(text: &str) -> Self {
        Self(text.bytes().fold(OFFSET_BASIS, |hash, octet| (hash ^ u128::from(octet)).wrapping_mul(PRIME)))
    }
}

impl Scenario {
    /// A hash of the normalised text with flows, hosts, nodes and links by name: the same however the file was laid
    /// out, another wherever anything in it means something else.
    #[must_use]
    pub fn content_hash(&self) -> ContentHash {
        let mut ordered = self.clone();
        ordered.flows.sort_by(|a, b| a.name.cmp(&b.name));
        ordered.hosts.sort_by(|a, b| a.name.cmp(&b.name));
        if let Topology::Graph(graph) = &mut ordered.topology {
            graph.nodes.sort();
            graph.links.sort_by(|a, b| a.name.cmp(&b.name));
            graph.routes.sort();
        }
        ContentHash::of(&ordered.to_toml())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors() {
        assert_eq!(ContentHash::of("").to_string(), "6c62272e07bb014262b821756295c58d");
        assert_eq!(ContentHash::of("a").to_string(), "d228cb696f1a8caf78912b704e4a8964");
    }
}
