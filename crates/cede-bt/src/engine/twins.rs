//! Connections to the same peer, and to ourselves: which of them stays.
//!
//! Two peers that know of each other may call at the same time. Where both go by one rule they close the same connection, whatever order
//! they learn of the two in. Clients differ: uTorrent keeps uTP, libtorrent what the peer with the larger id has opened, others what they
//! knew first; and where each end closes another connection, none is left, and nobody calls again for a minute. So only a peer of our
//! own client, whose rule is known, is decided about at once. With others the one end that has made up its mind decides
//! ([`crate::Profile::duplicate_patience`]).

use super::conn::ConnId;
use super::{CloseReason, Engine, PeerAddress};
use crate::disposition::Duplicates;
use alloc::vec::Vec;
use cede_units::Instant;

/// So many octets of a peer's id say which client it is (BEP 20), without its version.
const CLIENT_OCTETS: usize = 3;

impl<A: PeerAddress> Engine<A> {
    /// Both handshakes are there: is this the connection to keep? Closes whichever loses, now or later; answers whether this one
    /// stays.
    pub(super) fn settle_duplicates(&mut self, now: Instant, index: u32) -> bool {
        if !self.draw_against_host(now, index) {
            return false;
        }
        let Some(conn) = self.at(index) else { return false };
        let (id, peer_id) = (conn.id, conn.peer_id);
        let is_ours = peer_id[..CLIENT_OCTETS] == self.peer_id[..CLIENT_OCTETS];
        let Some(patience) = self.profile.duplicate_patience.filter(|_| !is_ours) else {
            return self.keep_one(now, index);
        };
        if !self.rivals(index).is_empty() {
            self.dials.twins.push((now + patience, id));
        }
        true
    }

    /// Other clients have had the time to decide.
    pub(super) fn settle_twins(&mut self, now: Instant) {
        let mut twins = core::mem::take(&mut self.dials.twins);
        let due: Vec<ConnId> = twins.extract_if(.., |(at, _)| *at <= now).map(|(_, id)| id).collect();
        self.dials.twins = twins;
        for id in due {
            if self.conn(id).is_some() {
                self.keep_one(now, id.index);
            }
        }
    }

    /// Decides by the rule; answers whether this connection stays.
    fn keep_one(&mut self, now: Instant, index: u32) -> bool {
        let Some(conn) = self.peek(index) else { return false };
        let (newer, larger) = (conn.contender(), conn.peer_id < self.peer_id);
        for other in self.rivals(index) {
            let Some(older) = self.peek(other).map(|other| other.contender()) else { continue };
            match self.profile.duplicates.newer_wins(older, newer, larger) {
                Some(true) => self.close(now, other, CloseReason::Duplicate),
                Some(false) => {
                    self.close(now, index, CloseReason::Duplicate);
                    return false;
                }
                None => {}
            }
        }
        true
    }

    /// Other connections to the same peer.
    fn rivals(&self, index: u32) -> Vec<u32> {
        let Some(conn) = self.peek(index) else { return Vec::new() };
        let ready = self.list.iter().filter_map(|&other| self.peek(other));
        let rivals = ready.filter(|other| other.peer_id == conn.peer_id && other.id.index != index);
        rivals.map(|other| other.id.index).collect()
    }

    /// A peer that has called us has said who it is. Where we are connected with its host already, or are calling it, one of the two is
    /// closed, which is drawn (libtorrent 2.0.8, `peer_list::new_connection`, where the ports at which both take connections are alike).
    /// Answers whether this one stays.
    fn draw_against_host(&mut self, now: Instant, index: u32) -> bool {
        let Some(conn) = self.at(index) else { return false };
        let (host, opened_by_us) = (conn.address.host(), conn.opened_by_us);
        if self.profile.duplicates != Duplicates::Drawn || opened_by_us {
            return true;
        }
        let rivals: Vec<(u32, bool)> = (self.slots.iter().flatten())
            .filter(|other| other.id.index != index && other.address.host() == host)
            .filter(|other| other.opened_by_us || other.stage.is_ready())
            .map(|other| (other.id.index, other.opened_by_us))
            .collect();
        for (other, is_our_call) in rivals {
            if !is_our_call || self.random.below(2) == 0 {
                self.close(now, index, CloseReason::Duplicate);
                return false;
            }
            self.close(now, other, CloseReason::Duplicate);
        }
        true
    }

    /// The peer has our own id. Whoever called hears so from the end that was called, and calls that address no more.
    pub(super) fn meet_ourselves(&mut self, now: Instant, index: u32) {
        let Some(conn) = self.at(index) else { return };
        let (address, opened_by_us) = (conn.address, conn.opened_by_us);
        if !opened_by_us {
            return self.send_handshake(now, index);
        }
        self.dials.note_ourselves(&address);
        let calls = self.slots.iter().flatten().filter(|conn| conn.address == address && conn.opened_by_us);
        let calls: Vec<u32> = calls.map(|conn| conn.id.index).collect();
        calls.into_iter().for_each(|index| self.close(now, index, CloseReason::Ourselves));
    }
}
