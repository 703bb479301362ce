//! Peers that peers tell of (BEP 11), for drivers that face the open network: words of strangers, which may all be lies.
//!
//! What one host tells in a minute is limited, and so is how many addresses of one host are believed, so that nobody has us call a
//! third party without end. Hearsay has half of the places in the book of peers, and is called after everybody else: whoever fills
//! it keeps out no peer that a tracker, the hash table or a person names. Of private networks only those in one tell, as with libtorrent.

use super::address::KNOWN_MAX;
use super::conn::ConnId;
use super::crowd::neighbourhood;
use super::{Engine, PeerAddress};
use alloc::collections::BTreeMap;
use cede_units::{Duration, Instant};
use core::net::IpAddr;

/// Addresses that nobody had told of before, of one host's telling in so much time: a first message of the deployed clients has a
/// hundred at most, later ones have fifty.
const NEWS_MAX: u32 = 200;
const NEWS_IN: Duration = Duration::from_secs(60);
/// Hosts whose telling is counted.
const TELLERS_MAX: usize = 1_000;
/// Peers behind one host of the Internet.
const OF_ONE_HOST: usize = 16;
/// Places for peers that nobody but peers has told of.
const HEARSAY_MAX: usize = KNOWN_MAX / 2;

/// How many addresses hosts have told of, and since when that is counted.
#[derive(Debug, Default)]
pub(super) struct Tellers(BTreeMap<IpAddr, (Instant, u32)>);

impl Tellers {
    /// What a host has told; `None` where there are too many that tell.
    fn told(&mut self, now: Instant, host: IpAddr) -> Option<&mut u32> {
        let is_over = |since: Instant| now.since(since) >= NEWS_IN;
        if self.0.len() >= TELLERS_MAX && !self.0.contains_key(&host) {
            self.0.retain(|_, (since, _)| !is_over(*since));
            if self.0.len() >= TELLERS_MAX {
                return None;
            }
        }
        let told = self.0.entry(host).or_insert((now, 0));
        if is_over(told.0) {
            *told = (now, 0);
        }
        Some(&mut told.1)
    }
}

impl<A: PeerAddress> Engine<A> {
    /// A peer tells of others.
    pub fn hear_of_peers(&mut self, now: Instant, id: ConnId, peers: &[A]) {
        let Some(teller) = self.conn(id).map(|conn| conn.address) else { return };
        for &address in peers.iter().filter(|peer| teller.is_neighbour() || !peer.is_neighbour()) {
            let is_known = self.dials.known.contains_key(&address);
            if is_known || self.is_believed(now, teller, address) {
                self.dials.known.entry(address).or_default().note_told(true);
                self.queue(now, address);
            }
        }
        self.dial(now);
    }

    /// Whether an address that nobody has told of yet is entered into the book.
    fn is_believed(&mut self, now: Instant, teller: A, address: A) -> bool {
        let told = self.dials.tellers.told(now, neighbourhood(teller.host()));
        let Some(told) = told.filter(|told| **told < NEWS_MAX) else { return false };
        *told += 1;
        let host = neighbourhood(address.host());
        let of_host = || self.dials.known.keys().filter(|known| neighbourhood(known.host()) == host).count();
        (address.is_neighbour() || of_host() < OF_ONE_HOST) && self.dials.make_room_for_hearsay(HEARSAY_MAX)
    }
}
