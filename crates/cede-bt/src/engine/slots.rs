//! Slots that are held and not used.
//!
//! Anybody can say that it is interested, from as many connections as it is let have, and ask for nothing. The deployed clients' rounds
//! get to everybody in the end; an honest peer may wait for a minute. For drivers that face the open network
//! ([`Profile::slot_patience`](crate::Profile::slot_patience)): a slot whose owner asks for nothing goes to the next who waits, sooner
//! where it has never asked for anything or the owner's host has other slots too; whoever did not use one stands behind those that had none, and a host's second
//! connection behind the first ones of others. Of who is gone without a word, as over uTP nobody says so, a transport hears nothing long before it gives
//! up: as long as others wait such a one gets no slot, and loses the one that it has.

use super::conn::{Conn, ConnId};
use super::crowd::neighbourhood;
use super::{Engine, PeerAddress};
use crate::choker::Candidate;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// The patience with who has never asked for anything: an honest peer does so as soon as it hears that it may.
const FIRST_PATIENCE: Duration = Duration::from_secs(4);
/// The patience with who has more than one slot.
const SHARED_PATIENCE: Duration = Duration::from_secs(2);

impl<A: PeerAddress> Engine<A> {
    /// Says whether a connection's transport hears nothing of the peer, although it waits for an answer.
    pub fn set_unheard(&mut self, id: ConnId, is_unheard: bool) {
        if let Some(conn) = self.conn(id) {
            conn.out.is_unheard = is_unheard;
        }
    }

    /// Whether a peer has a slot and has asked for nothing for too long, or nothing is heard of it.
    fn wastes_slot(&self, now: Instant, conn: &Conn<A>) -> bool {
        let Some(patience) = self.profile.slot_patience else { return false };
        if conn.out.is_unheard {
            return true;
        }
        let Some(unused) = conn.asks_nothing_since().map(|at| now.since(at)) else { return false };
        let has_asked = conn.tally.requested_at.is_some();
        let own = if has_asked { patience } else { FIRST_PATIENCE.min(patience) };
        unused >= own || unused >= SHARED_PATIENCE.min(patience) && self.slots_of_host(conn) > 1
    }

    fn slots_of_host(&self, conn: &Conn<A>) -> usize {
        let host = neighbourhood(conn.address.host());
        let holds = |other: &&Conn<A>| {
            !other.choking && other.peer_interested && neighbourhood(other.address.host()) == host
        };
        self.ready().filter(holds).count()
    }

    fn ready(&self) -> impl Iterator<Item = &Conn<A>> {
        self.list.iter().filter_map(|&index| self.slots[index as usize].as_deref())
    }

    /// Where somebody waits, those that waste their slots lose them.
    pub(super) fn look_for_unused_slots(&mut self, now: Instant) {
        let waits = |conn: &Conn<A>| conn.choking && conn.peer_interested && !conn.out.is_unheard;
        if self.profile.slot_patience.is_none() || !self.ready().any(waits) {
            return;
        }
        let wastes = |conn: &&Conn<A>| !conn.choking && conn.peer_interested && self.wastes_slot(now, conn);
        let wasting: Vec<u32> = self.ready().filter(wastes).map(|conn| conn.id.index).collect();
        for &index in &wasting {
            if let Some(conn) = self.at(index) {
                conn.tally.unused_slots += 1;
            }
        }
        if !wasting.is_empty() {
            self.rechoke_at_event(now);
        }
    }

    /// Candidates with their places behind others of their hosts; those that waste their slots are none, where others wait.
    pub(super) fn ranked(&self, now: Instant, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        let waits = |peer: &Candidate| peer.interested && !peer.unchoked;
        if self.profile.slot_patience.is_none() || !candidates.iter().any(waits) {
            return candidates;
        }
        for (candidate, conn) in candidates.iter_mut().zip(self.ready()) {
            candidate.interested &= !self.wastes_slot(now, conn);
        }
        let hosts: Vec<_> = self.ready().map(|conn| neighbourhood(conn.address.host())).collect();
        for at in 0..candidates.len() {
            let is_before = |&other: &usize| {
                let (it, me) = (&candidates[other], &candidates[at]);
                let earlier = if it.unchoked == me.unchoked { other < at } else { it.unchoked };
                it.interested && earlier && hosts[other] == hosts[at]
            };
            let before = (0..candidates.len()).filter(is_before).count() as u32;
            candidates[at].rank.1 = before;
        }
        candidates
    }
}
