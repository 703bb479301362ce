//! What others have told our node: which peers have which torrent; and the tokens by which they show that they are where they say.

use super::{Id, digest};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};
use core::net::SocketAddr;

/// A peer is told of for so long.
const KEPT: Duration = Duration::from_secs(30 * 60);
/// A token is good for between one and two of these.
const TOKEN_LIFE: Duration = Duration::from_secs(5 * 60);
const TOKEN_BYTES: usize = 8;
/// Torrents, and peers of each, that are remembered.
const TORRENTS: usize = 2_000;
const PEERS: usize = 200;
/// Peers in an answer, which is to fit into a datagram.
const TOLD: usize = 50;

#[derive(Debug)]
pub(super) struct Store {
    secret: [u8; 20],
    torrents: BTreeMap<Id, Vec<(SocketAddr, Instant)>>,
}

impl Store {
    pub fn new(secret: [u8; 20]) -> Self {
        Self { secret, torrents: BTreeMap::new() }
    }

    pub fn token(&self, now: Instant, to: SocketAddr) -> Vec<u8> {
        self.token_of(now.as_nanos() / TOKEN_LIFE.as_nanos(), to)
    }

    fn token_of(&self, period: u64, to: SocketAddr) -> Vec<u8> {
        digest(&self.secret, &period.to_be_bytes(), to.ip())[..TOKEN_BYTES].to_vec()
    }

    pub fn is_good(&self, now: Instant, from: SocketAddr, token: &[u8]) -> bool {
        let period = now.as_nanos() / TOKEN_LIFE.as_nanos();
        [period, period.saturating_sub(1)].iter().any(|period| self.token_of(*period, from) == token)
    }

    /// Remembers a peer. Where there is no room for another torrent, it is forgotten at once; of peers the oldest makes room.
    pub fn add(&mut self, now: Instant, info_hash: Id, peer: SocketAddr) {
        self.forget(now);
        if self.torrents.len() >= TORRENTS && !self.torrents.contains_key(&info_hash) {
            return;
        }
        let peers = self.torrents.entry(info_hash).or_default();
        peers.retain(|(known, _)| *known != peer);
        if peers.len() >= PEERS {
            peers.remove(0);
        }
        peers.push((peer, now));
    }

    fn forget(&mut self, now: Instant) {
        self.torrents.retain(|_, peers| {
            peers.retain(|(_, at)| now.since(*at) < KEPT);
            !peers.is_empty()
        });
    }

    /// Those that came last.
    pub fn peers(&self, now: Instant, info_hash: &Id) -> Vec<SocketAddr> {
        let known = self.torrents.get(info_hash).into_iter().flatten().rev();
        known.filter(|(_, at)| now.since(*at) < KEPT).map(|(peer, _)| *peer).take(TOLD).collect()
    }
}
