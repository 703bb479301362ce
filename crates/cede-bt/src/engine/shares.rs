//! TCP held back beside uTP: who waits for what, and who is given it ([`crate::mixed`]).

use super::conn::{Conn, ConnId};
use super::{Action, Engine, PeerAddress};
use crate::disposition::Transport;
use crate::geometry::BLOCK_BYTES;
use crate::mixed::{Lane, MixedRule, Quota, SHARE_OUT, Waiting, Way};
use crate::wire::PIECE_HEADER_BYTES;
use alloc::vec::Vec;
use cede_units::Instant;

/// What libtorrent keeps read for a peer: half a second of what it sends, within these bounds.
const WATERMARK_BYTES: core::ops::RangeInclusive<u32> = 10 << 10..=500 << 10;
/// Beyond what is owed, a connection asks for so much: the heads of messages.
const HEADS_BYTES: u32 = 30;

/// What all connections over TCP have of it.
#[derive(Debug)]
pub(super) struct Shares {
    rule: MixedRule,
    lanes: [Lane; 2],
    shared_at: Instant,
    /// When it is half a second after the last tick.
    half_at: Instant,
    given: Vec<(u32, u32)>,
}

impl Shares {
    pub(super) fn new(rule: MixedRule) -> Self {
        Self {
            rule,
            lanes: Default::default(),
            shared_at: Instant::ZERO,
            half_at: Instant::NEVER,
            given: Vec::new(),
        }
    }

    /// When something is to be shared out.
    pub(super) fn next_at(&self) -> Instant {
        if self.lanes.iter().any(Lane::is_awaited) { self.half_at } else { Instant::NEVER }
    }

    /// Whether a connection has to ask in this direction, or waits for what it has asked for.
    fn holds(&self, way: Way, quota: Quota) -> bool {
        self.lanes[way as usize].is_limited() || quota.waits
    }
}

impl<A> Conn<A> {
    /// Octets that libtorrent keeps read for it.
    fn watermark(&self, now: Instant) -> u32 {
        (self.upload.rate(now) as u32 / 2).clamp(*WATERMARK_BYTES.start(), *WATERMARK_BYTES.end())
    }

    /// Octets of blocks that it has asked for and that the transport has not been given.
    fn unwritten(&self) -> u32 {
        let rest =
            self.out.sending.map_or(0, |sending| sending.block.len + PIECE_HEADER_BYTES - sending.sent);
        self.out.uploads.len() as u32 * BLOCK_BYTES + rest
    }

    /// What it is about to send: what libtorrent would have read for it, or a second of what it sends.
    fn about_to_send(&self, now: Instant) -> u32 {
        let waiting = self.out.control.len() as u32 + self.unwritten();
        waiting.min(self.watermark(now) + BLOCK_BYTES).max(self.upload.rate(now) as u32)
    }

    /// What it is about to receive: all that it owes, or three quarters of a second of what it sends.
    fn about_to_come(&self, now: Instant) -> u32 {
        let owed: u32 = self.owed.iter().map(|block| block.len).sum();
        (owed + HEADS_BYTES).max((self.download.rate(now) * 0.75) as u32)
    }

    /// What it is about to move in this direction.
    fn about_to_move(&self, now: Instant, way: Way) -> u32 {
        match way {
            Way::Up => self.about_to_send(now),
            Way::Down => self.about_to_come(now),
        }
    }

    /// Whether its transfer waits for the network, and libtorrent has something more for it than what it has read already. What the
    /// transport has been given ahead is, over uTP, what stands in libtorrent's own buffer; over TCP it is in the kernel's, and
    /// libtorrent's comes on top. Whoever has just been given something writes, and has not heard yet that the kernel took it.
    fn waits(&self, now: Instant, way: Way) -> bool {
        let quota = self.quotas[way as usize];
        let is_held = quota.waits && quota.octets == 0;
        let has_more = match way {
            // The transport has one block or two.
            Way::Up if self.transport == Transport::Utp => {
                self.out.has_blocks() && self.unwritten() + BLOCK_BYTES / 2 > self.watermark(now)
            }
            Way::Up => {
                let is_writing = self.out.room == 0 || quota.given_at == now;
                is_writing && self.unwritten() > self.watermark(now) + BLOCK_BYTES
            }
            Way::Down => self.owed.len() > 1,
        };
        has_more && !is_held
    }
}

impl<A: PeerAddress> Engine<A> {
    /// How many octets may be read of a connection, all that came before having been handed in.
    #[must_use]
    pub fn may_read(&self, id: ConnId) -> u32 {
        let conn = self.peek(id.index).filter(|conn| conn.id == id && conn.transport == Transport::Tcp);
        let quota = conn.map(|conn| conn.quotas[Way::Down as usize]);
        quota.filter(|&quota| self.shares.holds(Way::Down, quota)).map_or(u32::MAX, |quota| quota.octets)
    }

    /// Octets came.
    pub(super) fn note_read(&mut self, now: Instant, id: ConnId, octets: u32) {
        if self.shares.rule == MixedRule::Free {
            return;
        }
        self.shares.lanes[Way::Down as usize].count(octets);
        let Some(conn) = self.conn(id).filter(|conn| conn.transport == Transport::Tcp) else { return };
        let quota = &mut conn.quotas[Way::Down as usize];
        quota.octets = quota.octets.saturating_sub(octets);
        self.ask_for_quota(now, id.index, Way::Down);
    }

    /// Octets were written.
    pub(super) fn note_written(&mut self, id: ConnId, octets: u32) {
        if self.shares.rule == MixedRule::Free {
            return;
        }
        self.shares.lanes[Way::Up as usize].count(octets);
        let Some(conn) = self.conn(id) else { return };
        let quota = &mut conn.quotas[Way::Up as usize];
        quota.octets = quota.octets.saturating_sub(octets);
    }

    /// How many octets a connection may send now.
    pub(super) fn may_write(&mut self, now: Instant, index: u32) -> u32 {
        if self.shares.rule == MixedRule::Free {
            return u32::MAX;
        }
        let Some(conn) = self.peek(index).filter(|conn| conn.transport == Transport::Tcp) else {
            return u32::MAX;
        };
        if !self.shares.holds(Way::Up, conn.quotas[Way::Up as usize]) {
            return u32::MAX;
        }
        self.ask_for_quota(now, index, Way::Up);
        self.peek(index).map_or(0, |conn| conn.quotas[Way::Up as usize].octets)
    }

    /// Asks for what a connection is about to move and may not yet, unless it waits already.
    fn ask_for_quota(&mut self, now: Instant, index: u32, way: Way) {
        let Some(conn) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) else { return };
        let lane = &mut self.shares.lanes[way as usize];
        let quota = conn.quotas[way as usize];
        if !lane.is_limited() || quota.waits {
            return;
        }
        let wanted = conn.about_to_move(now, way);
        let Some(lacking) = wanted.checked_sub(quota.octets).filter(|&lacking| lacking > 0) else { return };
        let given = lane.ask(index, lacking);
        let octets = quota.octets + given;
        conn.quotas[way as usize] = Quota { octets, waits: given == 0, ..quota };
        if way == Way::Down {
            let conn = conn.id;
            self.act(Action::MayRead { conn });
        }
    }

    /// Gives what has come together to those who wait.
    pub(super) fn share_out_at_half(&mut self, now: Instant) {
        if self.shares.half_at <= now {
            self.shares.half_at = Instant::NEVER;
            self.share_out(now);
        }
    }

    fn share_out(&mut self, now: Instant) {
        let after = now.since(self.shares.shared_at);
        self.shares.shared_at = now;
        for way in Way::BOTH {
            let mut given = core::mem::take(&mut self.shares.given);
            self.shares.lanes[way as usize].share_out(after, &mut given);
            given.drain(..).for_each(|(index, octets)| self.give(way, index, octets));
            self.shares.given = given;
        }
    }

    fn give(&mut self, way: Way, index: u32, octets: u32) {
        let given_at = self.shares.shared_at;
        let Some(conn) = self.at(index) else { return };
        let (id, quota) = (conn.id, &mut conn.quotas[way as usize]);
        *quota = Quota { octets: quota.octets + octets, waits: false, given_at };
        self.use_quota(way, id);
    }

    /// A connection may move something else than before.
    fn use_quota(&mut self, way: Way, conn: ConnId) {
        match way {
            Way::Up => self.join_ring(conn.index),
            Way::Down => self.act(Action::MayRead { conn }),
        }
    }

    /// A second is over: what there is is shared out, and then it is decided how much TCP may move in the next.
    pub(super) fn decide_shares(&mut self, now: Instant) {
        if self.shares.rule == MixedRule::Free {
            return;
        }
        self.share_out(now);
        self.shares.half_at = now + SHARE_OUT;
        for way in Way::BOTH {
            let mut waiting = Waiting::default();
            for conn in
                self.list.iter().filter_map(|&index| self.peek(index)).filter(|conn| conn.waits(now, way))
            {
                match conn.transport {
                    Transport::Tcp => waiting.tcp += 1,
                    Transport::Utp => waiting.utp += 1,
                }
            }
            let lane = &mut self.shares.lanes[way as usize];
            let was_limited = lane.is_limited();
            lane.decide(way, waiting);
            let is_limited = lane.is_limited();
            if is_limited != was_limited {
                self.turn_limit(now, way);
            }
        }
    }

    /// The limit begins or ends. Until it begins, a connection had what it was about to move.
    fn turn_limit(&mut self, now: Instant, way: Way) {
        for place in 0..self.list.len() {
            let Some(conn) = self.at(self.list[place]).filter(|conn| conn.transport == Transport::Tcp) else {
                continue;
            };
            if conn.quotas[way as usize].waits {
                continue;
            }
            conn.quotas[way as usize].octets = conn.about_to_move(now, way);
            let id = conn.id;
            self.use_quota(way, id);
        }
    }

    /// A connection is over.
    pub(super) fn leave_shares(&mut self, index: u32) {
        if self.shares.rule != MixedRule::Free {
            self.shares.lanes.iter_mut().for_each(|lane| lane.leave(index));
        }
    }
}
