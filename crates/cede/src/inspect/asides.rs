//! What is told beside connections, counted.

use std::collections::BTreeMap;

/// Trackers and torrents that are told apart.
const ANNOUNCES_MAX: usize = 1 << 16;
/// Queries that are counted by their names; whoever sends packets may choose others.
const KINDS_MAX: usize = 64;
const OTHER: &str = "other";

/// What trackers and the hash table were told.
#[derive(Debug, Default)]
pub struct Asides {
    /// Announces by tracker and torrent: over HTTP and over UDP.
    pub announces: BTreeMap<(String, [u8; 20]), [u64; 2]>,
    /// Announces to trackers, or about torrents, beyond those that are told apart.
    pub more_announces: [u64; 2],
    /// Messages of the hash table by kind.
    pub dht: BTreeMap<String, u64>,
}

impl Asides {
    pub fn add_announce(&mut self, tracker: String, info_hash: [u8; 20], is_http: bool) {
        let key = (tracker, info_hash);
        let counts = if self.announces.len() < ANNOUNCES_MAX || self.announces.contains_key(&key) {
            self.announces.entry(key).or_default()
        } else {
            &mut self.more_announces
        };
        counts[usize::from(!is_http)] += 1;
    }

    pub fn add_dht(&mut self, kind: &str) {
        let is_told = self.dht.len() < KINDS_MAX || self.dht.contains_key(kind);
        let kind = if is_told { kind } else { OTHER };
        *self.dht.entry(kind.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_makes_up_names_and_torrents_fills_no_memory() {
        let mut asides = Asides::default();
        for number in 0..100_000_u32 {
            let mut info_hash = [0; 20];
            info_hash[..4].copy_from_slice(&number.to_be_bytes());
            asides.add_announce("192.0.2.1:6969".to_owned(), info_hash, false);
            asides.add_dht(&number.to_string());
        }
        asides.add_announce("192.0.2.1:6969".to_owned(), [0; 20], true);
        assert_eq!((asides.announces.len(), asides.dht.len()), (ANNOUNCES_MAX, KINDS_MAX + 1));
        assert_eq!(asides.announces[&("192.0.2.1:6969".to_owned(), [0; 20])], [1, 1]);
        assert_eq!(asides.more_announces, [0, 100_000 - ANNOUNCES_MAX as u64]);
        assert_eq!(asides.dht.values().sum::<u64>(), 100_000);
    }
}
