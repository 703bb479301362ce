//! What the choker decides becomes messages.

use super::conn::Conn;
use super::{Action, Engine, PeerAddress};
use crate::choker::{Candidate, ChokerRule, Occasion, Situation};
use crate::disposition::Duplicates;
use crate::wire::Message;
use alloc::vec::Vec;
use cede_units::Instant;

impl<A: PeerAddress> Engine<A> {
    pub(super) fn rechoke_at_event(&mut self, now: Instant) {
        self.rechoke(now, Occasion::Event);
    }

    pub(super) fn rechoke(&mut self, now: Instant, occasion: Occasion) {
        let candidates: Vec<Candidate> = self
            .list
            .iter()
            .filter_map(|&index| self.slots[index as usize].as_deref())
            .map(|conn| self.candidate(now, conn))
            .collect();
        let candidates = self.ranked(now, candidates);
        let situation = Situation {
            now,
            seeding: self.complete,
            slots: self.profile.slots(self.limiter.limit()),
            piece_bytes: self.geometry.piece_bytes(),
            occasion,
        };
        let decision = self.choker.decide(&situation, &candidates);
        for (place, &unchoke) in decision.unchoke.iter().enumerate() {
            let (index, on_trial) = (self.list[place], decision.optimistic.contains(&place));
            // Most stay as they are.
            let changes = unchoke != candidates[place].unchoked || on_trial;
            if changes && !self.is_spared(index) {
                self.set_choke(now, index, unchoke, on_trial);
            }
        }
        if occasion == Occasion::Round && self.profile.choker == ChokerRule::Libtorrent {
            for conn in self.slots.iter_mut().flatten() {
                (conn.tally.round_download, conn.tally.round_upload) = (0, 0);
            }
        }
        if !self.list.is_empty() {
            self.list.rotate_left(decision.first % candidates.len().max(1));
        }
    }

    /// Whether a peer takes no slot: one in our own private network, by libtorrent's rule.
    pub(super) fn is_spared(&self, index: u32) -> bool {
        // Asked of each peer whenever somebody is unchoked: other profiles look nobody up.
        self.profile.spares_neighbours && self.peek(index).is_some_and(|conn| conn.address.is_neighbour())
    }

    /// A peer that takes no slot is unchoked or choked as it wants something or not, without a round.
    pub(super) fn serve_spared(&mut self, now: Instant, index: u32, unchoke: bool) {
        if self.is_spared(index) {
            self.set_choke(now, index, unchoke, false);
        }
    }

    /// What the choker looks at. Everybody is a candidate in every round, and what is known of them lies all over memory: what the
    /// rule does not ask for stays there.
    fn candidate(&self, now: Instant, conn: &Conn<A>) -> Candidate {
        // Where each side sends over its own connections alone, the others' never get a place.
        let may_serve = self.profile.duplicates != Duplicates::KeepBoth || conn.opened_by_us;
        let interested = conn.peer_interested && may_serve && !self.is_spared(conn.id.index);
        let standing = Candidate { interested, unchoked: !conn.choking, ..Candidate::default() };
        if !interested {
            return standing;
        }
        let by_rate = self.profile.choker != ChokerRule::Libtorrent;
        let snubbed = by_rate && self.is_snubbed(now, conn);
        if by_rate && !self.complete {
            let download_rate = if snubbed { 0.0 } else { conn.download.rate(now) };
            return Candidate { snubbed, download_rate, ..standing };
        }
        Candidate {
            snubbed,
            upload_rate: if by_rate { conn.upload.rate(now) } else { 0.0 },
            downloaded: conn.tally.round_download,
            uploaded: conn.tally.round_upload,
            uploaded_in_turn: conn.tally.turn_upload,
            unchoke_round: conn.tally.unchoke_round,
            unchoked_at: conn.tally.unchoked_at,
            optimistic_at: conn.tally.optimistic_at,
            has_requests: !conn.out.uploads.is_empty(),
            flushed: conn.out.room > 0,
            rank: (conn.tally.unused_slots, 0),
            ..standing
        }
    }

    fn set_choke(&mut self, now: Instant, index: u32, unchoke: bool, on_trial: bool) {
        let (notes, round) = (self.notes, self.choker.round());
        let Some(conn) = self.at(index) else { return };
        if on_trial && conn.choking {
            conn.tally.optimistic_at = Some(now);
        }
        if unchoke != conn.choking {
            return;
        }
        // The block under way is not among those that wait, for mainline's choker neither.
        let (id, busy) = (conn.id, !conn.out.uploads.is_empty());
        conn.choking = !unchoke;
        if unchoke {
            (conn.tally.unchoke_round, conn.tally.unchoked_at) = (round, Some(now));
            conn.tally.requested_at = None;
            conn.tally.turn_upload = 0;
            self.say(now, index, &Message::Unchoke);
        } else {
            self.choke(now, index);
        }
        if notes {
            self.act(Action::Unchoked { conn: id, unchoked: unchoke, busy });
        }
    }

    /// Chokes: requests that wait are dropped, but for granted pieces; with the fast extension each is answered.
    fn choke(&mut self, now: Instant, index: u32) {
        self.say(now, index, &Message::Choke);
        let Some(conn) = self.at(index) else { return };
        let waiting = core::mem::take(&mut conn.out.uploads);
        let (kept, dropped): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|block| conn.out.granted.has(block.piece));
        conn.out.uploads = kept.into();
        if conn.fast {
            dropped.into_iter().for_each(|block| self.say(now, index, &Message::Reject(block)));
        }
    }
}
