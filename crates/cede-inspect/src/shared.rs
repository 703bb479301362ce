//! What all connections share: their numbers, and which blocks each peer has.
//!
//! **What it leaves out.** Blocks beyond [`BLOCKS_MAX`], which count as news. **How it was validated.** Below.

use cede_bt::wire::BlockRef;
use core::net::IpAddr;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

/// Blocks of all peers that are remembered, some 16 octets each: 64 GB of content.
const BLOCKS_MAX: usize = 1 << 22;
/// Peers that are told apart.
const PEERS_MAX: usize = 1 << 18;

/// A peer of a torrent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Who {
    pub info_hash: Option<[u8; 20]>,
    pub address: IpAddr,
    /// Where it takes connections.
    pub port: Option<u16>,
    /// Where that is not known.
    pub peer_id: Option<[u8; 20]>,
}

/// What all connections share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    numbers: u32,
    peers: HashMap<Who, u32, RandomState>,
    blocks: HashSet<(u32, u32, u32), RandomState>,
    /// Blocks that could not be remembered.
    pub unchecked_blocks: u64,
}

impl Shared {
    pub(crate) const fn next_number(&mut self) -> u32 {
        let number = self.numbers;
        self.numbers += 1;
        number
    }

    /// Whether a peer has had this block before; it has it now.
    pub(crate) fn is_duplicate(&mut self, who: Who, block: &BlockRef) -> bool {
        let peers = self.peers.len();
        let Some(&mut peer) = (match self.peers.get_mut(&who) {
            None if peers < PEERS_MAX => Some(self.peers.entry(who).or_insert(peers as u32)),
            found => found,
        }) else {
            self.unchecked_blocks += 1;
            return false;
        };
        let key = (peer, block.piece, block.begin);
        if self.blocks.len() >= BLOCKS_MAX && !self.blocks.contains(&key) {
            self.unchecked_blocks += 1;
            return false;
        }
        !self.blocks.insert(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_block_once() {
        let mut shared = Shared::default();
        let who = |port, first| Who {
            info_hash: Some([1; 20]),
            address: IpAddr::from([10, 0, 0, 1]),
            port,
            peer_id: Some([first; 20]),
        };
        let block = BlockRef { piece: 1, begin: 0, len: 16_384 };
        let (a, b) = (who(Some(1), 1), who(None, 1));
        assert!(!shared.is_duplicate(a, &block) && shared.is_duplicate(a, &block));
        assert!(
            !shared.is_duplicate(b, &block) && !shared.is_duplicate(a, &BlockRef { begin: 16_384, ..block })
        );
    }
}
