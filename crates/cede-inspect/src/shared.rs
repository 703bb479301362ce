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

/// What is known of a peer of a torrent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub info_hash: Option<[u8; 20]>,
    pub address: IpAddr,
    /// Where it takes connections. Of a connection of TCP that it opened this may be unknown.
    pub port: Option<u16>,
    /// Some draw it anew for each connection.
    pub peer_id: Option<[u8; 20]>,
}

/// One of the names that a peer goes by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Name {
    Port(u16),
    Id([u8; 20]),
    None,
}

impl Who {
    /// Its names: connections that have one in common are those of one peer.
    fn names(&self) -> [Name; 2] {
        let id = self.peer_id.map_or(Name::None, Name::Id);
        [self.port.map_or(id, Name::Port), id]
    }
}

/// What all connections share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    numbers: u32,
    /// Peers by torrent, address and name.
    peers: HashMap<(Option<[u8; 20]>, IpAddr, Name), u32, RandomState>,
    /// Peers that were told apart so far.
    people: u32,
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

    /// A peer's number, by any of its names, which it is found by from now on; `None` beyond what can be told apart.
    fn number_of(&mut self, who: &Who) -> Option<u32> {
        let [port, id] = who.names();
        let keys = [(who.info_hash, who.address, port), (who.info_hash, who.address, id)];
        // Whoever has a port and no id has one name, and so has whoever has an id and no port.
        let keys = if id == Name::None || id == port { &keys[..1] } else { &keys[..] };
        let known = keys.iter().find_map(|key| self.peers.get(key).copied());
        if known.is_none() && self.peers.len() >= PEERS_MAX {
            return None;
        }
        let number = known.unwrap_or(self.people);
        self.people += u32::from(known.is_none());
        for key in keys {
            if self.peers.len() < PEERS_MAX {
                self.peers.entry(*key).or_insert(number);
            }
        }
        Some(number)
    }

    /// Whether a peer has had this block before; it has it now.
    pub(crate) fn is_duplicate(&mut self, who: &Who, block: &BlockRef) -> bool {
        let Some(peer) = self.number_of(who) else {
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
    fn a_peer_has_a_block_once_by_whatever_name() {
        let mut shared = Shared::default();
        let who = |port, id: Option<u8>| Who {
            info_hash: Some([1; 20]),
            address: IpAddr::from([10, 0, 0, 1]),
            port,
            peer_id: id.map(|octet| [octet; 20]),
        };
        let block = BlockRef { piece: 1, begin: 0, len: 16_384 };
        let mut is_known = |who: Who| shared.is_duplicate(&who, &block);
        assert!(!is_known(who(None, Some(1))));
        // A connection with both names makes one peer of those with one of them.
        assert!(is_known(who(Some(1), Some(1))) && is_known(who(Some(1), None)));
        assert!(is_known(who(Some(1), Some(2))) && is_known(who(None, Some(2))));
        assert!(!is_known(who(Some(3), None)) && !is_known(who(None, Some(4))) && !is_known(who(None, None)));
        assert!(!shared.is_duplicate(&who(Some(1), None), &BlockRef { begin: 16_384, ..block }));
    }
}
