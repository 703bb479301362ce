//! Asking for blocks.

use super::conn::{Conn, ConnId, REQUEST_LIMIT};
use super::{Action, CloseReason, Engine, PeerAddress, Verdict};
use crate::bitfield::Bitfield;
use crate::extension::Extension;
use crate::picker::Order;
use crate::wire::{BlockRef, Message, Reserved};
use alloc::vec::Vec;
use cede_units::Instant;

/// What is taken for one peer at a time is no more than this (libtorrent).
const RUN_BYTES_MAX: f64 = 8.0 * 1024.0 * 1024.0;

impl<A> Conn<A> {
    /// How many blocks of a piece are taken for it and have not come.
    fn outstanding_of(&self, piece: u32) -> u32 {
        (self.reserved_of(piece).count() + self.pipeline.planned_of(piece)) as u32
    }
}

impl<A: PeerAddress> Engine<A> {
    /// The handshake of the extension protocol says how many requests the peer answers at a time (BEP 10, `reqq`), and what came with
    /// it, an unchoke say, is not looked at before.
    pub(super) fn on_introduction(&mut self, now: Instant, id: ConnId, payload: &[u8]) -> Verdict {
        let Some(conn) = self.conn(id) else { return Ok(()) };
        let extension = Extension::parse(payload);
        let told = extension.as_ref().and_then(|extension| extension.requests);
        conn.request_limit = told.or(conn.request_limit).or(Some(REQUEST_LIMIT));
        self.ask(now, id.index);
        let Some(extension) = extension else { return Ok(()) };
        let upload_only = extension.upload_only;
        self.act(Action::Introduced { conn: id, extension });
        upload_only.map_or(Ok(()), |upload_only| self.note_upload_only(id.index, upload_only))
    }

    /// libtorrent tells of a change in a message of its own.
    pub(super) fn on_upload_only(&mut self, index: u32, payload: &[u8]) -> Verdict {
        payload.first().map_or(Ok(()), |told| self.note_upload_only(index, *told != 0))
    }

    fn note_upload_only(&mut self, index: u32, upload_only: bool) -> Verdict {
        let complete = self.complete;
        let Some(conn) = self.at(index) else { return Ok(()) };
        conn.tally.upload_only = upload_only;
        if complete && upload_only { Err(CloseReason::BothComplete) } else { Ok(()) }
    }

    /// How many blocks a peer owes us.
    #[must_use]
    pub fn owed(&self, id: ConnId) -> usize {
        self.peek(id.index).filter(|conn| conn.id == id).map_or(0, |conn| conn.owed.len())
    }

    /// How many requests a peer may have to answer at a time. Who is about to say so, and has sent nothing, is asked for one block
    /// until then: that costs part of a round trip, and what it would refuse much more.
    fn requests_max(&self, conn: &Conn<A>) -> u32 {
        let will_say = self.greeting.extended.is_some() && conn.reserved.has(Reserved::EXTENDED);
        let is_new = will_say && conn.tally.last_data_at.is_none();
        let most = conn.request_limit.unwrap_or(if is_new { 1 } else { REQUEST_LIMIT });
        most.min(conn.refusals.requests_max())
    }

    pub(super) fn ask_everybody(&mut self, now: Instant) {
        for place in 0..self.list.len() {
            self.ask(now, self.list[place]);
        }
    }

    /// Keeps a peer's pipeline full.
    pub(super) fn ask(&mut self, now: Instant, index: u32) {
        let Some(conn) = self.peek(index) else { return };
        if conn.peer_choking && conn.allowed_fast.is_empty() || !conn.interested || !conn.stage.is_ready() {
            return;
        }
        let snubbed = self.is_snubbed(now, conn);
        let most = self.requests_max(conn);
        let depth = conn.pipeline.depth(conn.download.rate(now), snubbed).min(most);
        if conn.owed.len() as u32 >= depth {
            return;
        }
        let fill = conn.pipeline.fill(depth).min(most);
        self.fill_pipeline(now, index, depth, fill);
    }

    fn fill_pipeline(&mut self, now: Instant, index: u32, depth: u32, fill: u32) {
        let mut found = core::mem::take(&mut self.scratch);
        while let Some(conn) = self.slots[index as usize].as_deref() {
            let (owed, generation) = (conn.owed.len() as u32, conn.id.generation);
            if owed >= depth {
                break;
            }
            found.clear();
            self.take_planned(index, fill - owed, &mut found);
            if found.is_empty() {
                self.choose(index, fill - owed, &mut found);
            }
            if found.is_empty() && self.relieve(now, index) {
                self.choose(index, fill - owed, &mut found);
            }
            let Some(&block) = found.first() else { break };
            self.picker.assign(block.piece, generation);
            if !self.leave_out_overdue(index, &mut found) {
                break;
            }
            self.plan(index, (fill - owed) as usize, &mut found);
            self.request(now, index, &found);
            self.discount(now, index);
        }
        self.scratch = found;
    }

    fn choose(&mut self, index: u32, wanted: u32, found: &mut Vec<BlockRef>) {
        let Some(conn) = self.slots[index as usize].as_deref() else { return };
        let open = self.open_to(conn);
        let have = open.as_ref().unwrap_or(&conn.have);
        if conn.peer_choking {
            let mut allowed = conn.allowed_fast.iter().filter(|&&piece| have.has(piece));
            while let Some(&piece) = allowed.next().filter(|_| found.is_empty()) {
                self.picker.pick_of(piece, wanted, found);
            }
            return;
        }
        // Who has sent nothing yet is not trusted with what nobody else will be asked for.
        if conn.tally.last_data_at.is_some() {
            self.picker.pick_suspect(have, conn.id.generation, wanted, found);
            if !found.is_empty() {
                return;
            }
        }
        let many = (self.list.len(), self.order_for(conn));
        let whole = self.whole_blocks(conn);
        // Nor from what comes first.
        let first = if conn.snubbed { Vec::new() } else { self.picker.before_others(have) };
        for open in first.iter().chain([have]) {
            if found.is_empty() && whole > 0 {
                self.picker.pick_whole(open, many, whole, |piece| conn.outstanding_of(piece), found);
            }
            if found.is_empty() {
                self.picker.pick(open, many, wanted, found);
            }
        }
        if found.is_empty() && self.picker.is_end_game() {
            self.picker.pick_again(have, &conn.owed, wanted, found);
        }
    }

    /// Which of a peer's pieces it is asked for. One that is late keeps nobody from the beginning.
    const fn order_for(&self, conn: &Conn<A>) -> Order {
        match conn.snubbed {
            true => Order::CommonestFirst,
            false if self.picker.is_in_order() => Order::InOrder,
            false => Order::RarestFirst,
        }
    }

    /// Blocks of the whole pieces that a peer brings within the time which makes it a fast one; none of one that is not.
    fn whole_blocks(&self, conn: &Conn<A>) -> u32 {
        let Some(within) = self.profile.picker.whole_within else { return 0 };
        let bytes = (conn.pipeline.average() as f64 * within.as_secs_f64()).min(RUN_BYTES_MAX);
        (bytes / f64::from(self.geometry.piece_bytes())) as u32 * self.geometry.blocks(0)
    }

    /// What was taken for a peer and is still to come, in its order.
    fn take_planned(&mut self, index: u32, wanted: u32, found: &mut Vec<BlockRef>) {
        let Some(conn) = self.slots[index as usize].as_deref_mut() else { return };
        while found.len() < wanted as usize {
            let Some(block) = conn.pipeline.next_planned() else { break };
            // It may have come from elsewhere.
            if self.picker.awaits(block, conn.id.generation) {
                found.push(block);
            }
        }
    }

    /// What is beyond so many blocks is asked for as those come.
    fn plan(&mut self, index: u32, now_wanted: usize, found: &mut Vec<BlockRef>) {
        if found.len() > now_wanted
            && let Some(conn) = self.slots[index as usize].as_deref_mut()
        {
            conn.pipeline.plan(found.drain(now_wanted..));
        }
    }

    /// What was taken for a peer and not asked for is anybody's again.
    pub(super) fn drop_plans(&mut self, index: u32) {
        let Some(conn) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) else { return };
        self.picker.release(&conn.pipeline.drop_plans());
    }

    /// What a peer may be asked for, where that is not all that it has: of some pieces it has refused blocks, and some are asked
    /// of another one only.
    pub(super) fn open_to(&self, conn: &Conn<A>) -> Option<Bitfield> {
        let closed = self.picker.closed_to(conn.id.generation).chain(conn.refusals.pieces());
        let mut have = None;
        for piece in closed {
            have.get_or_insert_with(|| conn.have.clone()).remove(piece);
        }
        have
    }

    /// What a late peer owes may have been chosen once more, of it again: that is nothing to ask for. False where nothing
    /// is left.
    fn leave_out_overdue(&mut self, index: u32, found: &mut Vec<BlockRef>) -> bool {
        let Some(conn) = self.slots[index as usize].as_deref() else { return false };
        if !conn.overdue.is_empty() {
            let (again, fresh): (Vec<_>, Vec<_>) =
                found.iter().copied().partition(|block| conn.overdue.contains(block));
            self.picker.release(&again);
            *found = fresh;
        }
        !found.is_empty()
    }

    fn request(&mut self, now: Instant, index: u32, blocks: &[BlockRef]) {
        self.totals.requests_sent += blocks.len() as u64;
        let Some(conn) = self.at(index) else { return };
        if conn.owed.is_empty() {
            conn.wait.block_since = now;
        }
        conn.wait.anything_since = now;
        conn.wait.fruitless_since.get_or_insert(now);
        conn.wait.was_asked = true;
        for &block in blocks {
            conn.owed.push(block);
            conn.refusals.note_request(block.piece);
            Message::Request(block).encode(&mut conn.out.control);
        }
        conn.times.said_at = now;
        self.join_ring(index);
    }

    /// A block came: the others that were asked for it need not send it.
    pub(super) fn cancel_elsewhere(&mut self, now: Instant, except: u32, block: BlockRef) {
        self.excuse_sources(block);
        for place in 0..self.list.len() {
            let index = self.list[place];
            let Some(conn) = self.slots[index as usize].as_deref_mut().filter(|_| index != except) else {
                continue;
            };
            let Some(at) = conn.owed.iter().position(|&owed| owed == block) else { continue };
            // With the fast extension a cancelled request is still answered, so it stays on the list.
            if !conn.fast {
                conn.owed.remove(at);
                conn.tally.chatter.take_back(block.len);
                conn.take_overdue(block);
                if conn.owed.is_empty() {
                    conn.wait.excuse(now);
                }
            }
            self.say(now, index, &Message::Cancel(block));
            self.ask(now, index);
        }
    }

    /// Says whether we want anything of a peer, where that has changed.
    pub(super) fn tell_interest(&mut self, now: Instant, index: u32) {
        let Some(conn) = self.at(index) else { return };
        let interested = conn.wanted > 0;
        if interested != conn.interested {
            conn.interested = interested;
            if !interested {
                conn.pipeline.end_slow_start();
            }
            let message = if interested { Message::Interested } else { Message::NotInterested };
            self.say(now, index, &message);
        }
    }
}
