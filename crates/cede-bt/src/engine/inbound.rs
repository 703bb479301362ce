//! What peers say.

use super::conn::{Conn, ConnId};
use super::stage::Stage;
use super::{Action, CloseReason, Engine, PeerAddress, Verdict};
use crate::bitfield::Bitfield;
use crate::choker::ChokerRule;
use crate::disposition::Transport;
use crate::extension::{OUR_REQUESTS, UPLOAD_ONLY};
use crate::wire::{BlockRef, Handshake, Item, Message, Reserved};
use cede_units::Instant;
use cede_wire::Payload;

/// Requests of one peer that wait to be answered; more are refused.
const UPLOADS_MAX: usize = OUR_REQUESTS as usize;
/// Pieces that a peer may allow us while it chokes us.
const ALLOWED_FAST_MAX: usize = 32;
/// Octets of control messages that wait for a peer that reads nothing; beyond, it is closed.
const CONTROL_BYTES_MAX: usize = 1 << 20;
/// A peer's node moves so often.
const PORTS_HEARD_MAX: u8 = 4;

impl<A> Conn<A> {
    /// Whether nothing has come yet that a bitfield would have to precede. libtorrent and aria2 introduce their extensions
    /// before they say what they have.
    fn is_first(&mut self, message: &Message) -> bool {
        let first = self.stage == Stage::Greeted;
        if !matches!(message, Message::Extended(..) | Message::Port(_) | Message::KeepAlive) {
            self.stage = Stage::Talking;
        }
        first
    }
}

impl<A: PeerAddress> Engine<A> {
    /// Octets came over a connection.
    pub fn received(&mut self, now: Instant, id: ConnId, mut payload: Payload) {
        if let Some(conn) = self.conn(id) {
            conn.times.heard_at = now;
            conn.tally.chatter.hear(payload.len());
        }
        self.note_read(now, id, payload.len());
        while let Some(conn) = self.conn(id) {
            match conn.decoder.next(&mut payload) {
                Ok(None) => {
                    let said = conn.tally.chatter.octets();
                    return self.weigh_chatter(now, id, said);
                }
                Ok(Some(item)) => {
                    if let Err(reason) = self.on_item(now, id.index, item) {
                        return self.close(now, id.index, reason);
                    }
                }
                Err(error) => return self.close(now, id.index, CloseReason::Wire(error)),
            }
        }
    }

    fn on_item(&mut self, now: Instant, index: u32, item: Item) -> Verdict {
        match item {
            Item::Data { block, at, payload } => self.on_data(now, index, (block, at), payload),
            Item::Unknown { .. } => self.is_another(index),
            Item::Message(message) => {
                self.is_another(index).and_then(|()| self.on_message(now, index, message))
            }
            Item::Handshake(handshake) => self.on_handshake(now, index, &handshake),
        }
    }

    /// Whoever has greeted us by our own id has nothing more to say.
    fn is_another(&self, index: u32) -> Verdict {
        let is_ourselves = self.peek(index).is_some_and(|conn| conn.stage == Stage::Handshaking);
        if is_ourselves { Err(CloseReason::Ourselves) } else { Ok(()) }
    }

    /// More may have been called than there are places for.
    const fn has_place(&self) -> Verdict {
        let is_full = self.list.len() >= self.profile.connections_max as usize;
        if is_full { Err(CloseReason::Crowded) } else { Ok(()) }
    }

    // Beside the path that most packets take, which needs nothing of what this makes ready.
    #[inline(never)]
    fn on_handshake(&mut self, now: Instant, index: u32, handshake: &Handshake) -> Verdict {
        let is_v2 = self.info_hash_v2 == Some(handshake.info_hash);
        if handshake.info_hash != self.info_hash && !is_v2 {
            return Err(CloseReason::OtherTorrent);
        }
        if handshake.peer_id == self.peer_id {
            self.meet_ourselves(now, index);
            return Ok(());
        }
        self.has_place()?;
        let fast = self.profile.fast && handshake.reserved.has(Reserved::FAST);
        let Some(conn) = self.at(index) else { return Ok(()) };
        (conn.peer_id, conn.reserved, conn.fast) = (handshake.peer_id, handshake.reserved, fast);
        (conn.stage, conn.is_v2) = (Stage::Greeted, is_v2);
        let (id, answered, transport) = (conn.id, conn.we_sent_handshake, conn.transport);
        if !self.settle_duplicates(now, index) {
            return Ok(());
        }
        if !answered {
            self.send_handshake(now, index);
        }
        self.totals.connections[usize::from(transport == Transport::Utp)] += 1;
        self.introduce(now, index);
        self.serve_spared(now, index, true);
        self.act(Action::Ready { conn: id, peer_id: handshake.peer_id, reserved: handshake.reserved });
        // New connections stand at a random place (mainline).
        let place = self.random.below(self.list.len() as u64 + 1) as usize;
        self.list.insert(place, index);
        if self.profile.choker == ChokerRule::Mainline4 {
            self.rechoke_at_event(now);
        }
        Ok(())
    }

    /// Says what we have, and what we understand.
    fn introduce(&mut self, now: Instant, index: u32) {
        let Some(conn) = self.at(index) else { return };
        let (fast, extends) = (conn.fast, conn.reserved.has(Reserved::EXTENDED));
        let (have, hides) = (self.picker.have(), self.is_super_seeding());
        let first = match (fast, have.is_full() && !hides, have.is_empty() || hides) {
            (true, true, _) => Some(Message::HaveAll),
            (true, _, true) => Some(Message::HaveNone),
            (false, _, true) => None,
            _ => Some(Message::Bitfield(have.to_octets())),
        };
        first.iter().for_each(|message| self.say(now, index, message));
        if let Some(handshake) = self.greeting.extended.clone().filter(|_| extends) {
            self.say(now, index, &Message::Extended(0, handshake));
        }
        self.tell_dht_port(now, index);
    }

    // Beside the path that most packets take, which needs nothing of what this makes ready.
    #[inline(never)]
    fn on_message(&mut self, now: Instant, index: u32, message: Message) -> Verdict {
        let Some(conn) = self.at(index) else { return Ok(()) };
        let (id, first) = (conn.id, conn.is_first(&message));
        if conn.out.control.len() > CONTROL_BYTES_MAX {
            return Err(CloseReason::Misbehaved);
        }
        match message {
            Message::Choke => return self.on_choke(now, index),
            Message::Unchoke => {
                if core::mem::replace(&mut conn.peer_choking, false) {
                    conn.refusals.forgive();
                }
                self.ask(now, index);
            }
            Message::Interested => self.on_interest(now, index, true),
            Message::NotInterested => self.on_interest(now, index, false),
            Message::Have(piece) => return self.on_have(now, index, piece),
            // Not only the first message: aria2 sends one in place of many that tell of a piece each.
            Message::Bitfield(octets) => {
                let have = Bitfield::from_octets(&octets, self.geometry.pieces());
                return self.on_bitfield(now, index, &have.ok_or(CloseReason::Misbehaved)?);
            }
            Message::Request(block) => return self.on_request(now, index, block),
            Message::Cancel(block) => self.on_cancel(now, index, block),
            Message::Port(port) => self.on_port(index, port),
            Message::Extended(0, payload) => return self.on_introduction(now, id, &payload),
            Message::Extended(UPLOAD_ONLY, payload) => return self.on_upload_only(index, &payload),
            Message::Extended(name, payload) => self.act(Action::Extended { conn: id, id: name, payload }),
            Message::HashRequest(range) => self.act(Action::HashRequest { conn: id, range }),
            // Whoever asks for hashes does so before there is an engine.
            Message::KeepAlive | Message::Hashes(..) | Message::HashReject(_) => {}
            other => return self.on_fast_message(now, index, &other, first),
        }
        Ok(())
    }

    /// A peer's node of the distributed hash table listens there.
    fn on_port(&mut self, index: u32, port: u16) {
        let Some(conn) = self.at(index).filter(|conn| conn.tally.ports_heard < PORTS_HEARD_MAX) else {
            return;
        };
        conn.tally.ports_heard += 1;
        let conn = conn.id;
        self.act(Action::DhtPort { conn, port });
    }

    /// Messages of the fast extension.
    fn on_fast_message(&mut self, now: Instant, index: u32, message: &Message, first: bool) -> Verdict {
        let pieces = self.geometry.pieces();
        let Some(conn) = self.at(index) else { return Ok(()) };
        if !conn.fast {
            return Err(CloseReason::Misbehaved);
        }
        match *message {
            // At any time, as bitfields: aria2 tells of its last pieces in that way.
            Message::HaveAll => return self.on_have_all(now, index),
            Message::HaveNone if first => self.tend_offers(now, false),
            Message::Suggest(_) => {}
            Message::AllowedFast(piece) if piece < pieces => {
                if conn.allowed_fast.len() < ALLOWED_FAST_MAX && !conn.allowed_fast.contains(&piece) {
                    conn.allowed_fast.push(piece);
                    self.ask(now, index);
                }
            }
            Message::Reject(block) => return self.on_reject(now, index, block),
            _ => return Err(CloseReason::Misbehaved),
        }
        Ok(())
    }

    fn on_choke(&mut self, now: Instant, index: u32) -> Verdict {
        let Some(conn) = self.at(index) else { return Ok(()) };
        conn.peer_choking = true;
        let (generation, mut verdict) = (conn.id.generation, Ok(()));
        // With the fast extension each request is answered by itself.
        if !conn.fast {
            let lost = conn.reserved_blocks();
            if !conn.owed.is_empty() {
                verdict = conn.refusals.count(now, conn.times.content_at);
            }
            conn.tally.chatter.take_back(conn.owed.iter().map(|block| block.len).sum());
            conn.owed.clear();
            conn.overdue.clear();
            conn.wait.fruitless_since = None;
            self.picker.release(&lost);
        }
        self.drop_plans(index);
        self.take_suspects(generation);
        verdict
    }

    fn on_reject(&mut self, now: Instant, index: u32, block: BlockRef) -> Verdict {
        let Some(conn) = self.at(index) else { return Ok(()) };
        let Some(at) = conn.owed.iter().position(|&owed| owed == block) else { return Ok(()) };
        conn.owed.remove(at);
        conn.tally.chatter.note_answer();
        if conn.owed.is_empty() {
            conn.wait.fruitless_since = None;
        }
        conn.allowed_fast.retain(|&piece| piece != block.piece);
        let (choking, overdue, peer) = (conn.peer_choking, conn.take_overdue(block), conn.id.generation);
        if !overdue {
            self.picker.release(&[block]);
        }
        if choking {
            return Ok(());
        }
        // One that was cancelled is rejected as well.
        if self.picker.awaits(block, peer) {
            self.note_refusal(now, index, block.piece)?;
        }
        self.ask(now, index);
        Ok(())
    }

    fn on_interest(&mut self, now: Instant, index: u32, interested: bool) {
        let mainline = self.profile.choker == ChokerRule::Mainline4;
        let Some(conn) = self.at(index) else { return };
        let choking = conn.choking;
        if core::mem::replace(&mut conn.peer_interested, interested) == interested {
            return;
        }
        if interested {
            self.grant(now, index);
        }
        self.serve_spared(now, index, interested);
        // Mainline looks again only at those that are unchoked; libtorrent fills free places.
        if !choking || (!mainline && interested) {
            self.rechoke_at_event(now);
        }
    }

    fn on_have(&mut self, now: Instant, index: u32, piece: u32) -> Verdict {
        if piece >= self.geometry.pieces() {
            return Err(CloseReason::Misbehaved);
        }
        let lacked = self.picker.lacks(piece);
        let Some(conn) = self.slots[index as usize].as_deref_mut() else { return Ok(()) };
        if !conn.have.insert(piece) {
            return Ok(());
        }
        conn.wanted += u32::from(lacked);
        conn.tally.chatter.note_pieces(1);
        let is_seed = conn.have.is_full();
        self.picker.gain(piece);
        if is_seed && self.complete {
            return Err(CloseReason::BothComplete);
        }
        self.tend_offers(now, false);
        if lacked {
            self.tell_interest(now, index);
            self.ask(now, index);
        }
        Ok(())
    }

    /// What a peer has said that it has, it has: so no more is done than there is of news, and who says the same without end
    /// costs little.
    fn on_bitfield(&mut self, now: Instant, index: u32, have: &Bitfield) -> Verdict {
        let Some(conn) = self.slots[index as usize].as_deref_mut() else { return Ok(()) };
        let before = conn.have.count();
        for piece in have.iter().filter(|&piece| conn.have.insert(piece)) {
            self.picker.gain(piece);
            conn.wanted += u32::from(self.picker.lacks(piece));
        }
        if conn.have.is_full() && self.complete {
            return Err(CloseReason::BothComplete);
        }
        let news = conn.have.count() - before;
        conn.tally.chatter.note_pieces(news);
        self.tend_offers(now, false);
        if news > 0 {
            self.tell_interest(now, index);
            self.ask(now, index);
        }
        Ok(())
    }

    /// Whoever has everything may say so any number of times.
    fn on_have_all(&mut self, now: Instant, index: u32) -> Verdict {
        let is_known = self.peek(index).is_none_or(|conn| conn.have.is_full());
        if is_known && !self.complete {
            return Ok(());
        }
        self.on_bitfield(now, index, &Bitfield::all(self.geometry.pieces()))
    }

    fn on_request(&mut self, now: Instant, index: u32, block: BlockRef) -> Verdict {
        let longest = self.profile.request_bytes_max;
        let is_here = self.geometry.holds(block) && self.picker.have().has(block.piece);
        let servable = is_here && !self.hides(index, block.piece);
        let Some(conn) = self.at(index) else { return Ok(()) };
        if block.len > longest {
            return Err(CloseReason::Misbehaved);
        }
        let fits = conn.out.uploads.len() < UPLOADS_MAX;
        if servable && fits && (!conn.choking || conn.out.granted.allow(block.piece)) {
            if !conn.out.uploads.contains(&block) {
                conn.out.uploads.push_back(block);
                conn.tally.chatter.note_question();
                (conn.tally.requested_at, conn.tally.unused_slots) = (Some(now), 0);
                self.join_ring(index);
            }
            return Ok(());
        }
        // One that was on its way when we choked is not the peer's fault.
        let (fast, choking) = (conn.fast, conn.choking);
        self.totals.requests_refused += 1;
        if fast {
            self.say(now, index, &Message::Reject(block));
        }
        if servable || choking { Ok(()) } else { Err(CloseReason::Misbehaved) }
    }

    fn on_cancel(&mut self, now: Instant, index: u32, block: BlockRef) {
        let Some(conn) = self.at(index) else { return };
        let Some(at) = conn.out.uploads.iter().position(|&waiting| waiting == block) else { return };
        conn.out.uploads.remove(at);
        if conn.fast {
            self.say(now, index, &Message::Reject(block));
        }
    }

    fn on_data(
        &mut self,
        now: Instant,
        index: u32,
        (block, at): (BlockRef, u32),
        payload: Payload,
    ) -> Verdict {
        let (len, holds) = (payload.len(), self.geometry.holds(block));
        let Some(conn) = self.slots[index as usize].as_deref_mut() else { return Ok(()) };
        conn.note_data(now, len);
        let (id, transport) = (conn.id, conn.transport);
        let owed = conn.owed.iter().position(|&owed| owed == block);
        // Who has not been asked for anything has nothing to send.
        if owed.is_none() && (conn.fast || !holds || !conn.wait.was_asked) {
            return Err(CloseReason::Misbehaved);
        }
        self.totals.downloaded[usize::from(transport == Transport::Utp)] += u64::from(len);
        // A block that was cancelled, or that a choke took off the list, is welcome where it is still missing.
        let is_awaited = self.picker.awaits(block, id.generation);
        conn.tally.chatter.note_data(len, owed.is_some() || is_awaited);
        conn.tally.part += if is_awaited { len } else { 0 };
        if is_awaited {
            if owed.is_none() {
                self.picker.note_shared(block);
            }
            self.act(Action::Store { conn: Some(id), block, at, payload });
        } else {
            self.totals.redundant += u64::from(len);
        }
        if at + len == block.len {
            self.on_block(now, index, owed, block);
        }
        Ok(())
    }

    // Beside the path that most packets take, which needs nothing of what this makes ready.
    #[inline(never)]
    fn on_block(&mut self, now: Instant, index: u32, owed: Option<usize>, block: BlockRef) {
        let was_overdue = self.note_block(now, index, owed);
        let Some(conn) = self.at(index) else { return };
        let (sender, part) = (conn.id.generation, core::mem::take(&mut conn.tally.part));
        conn.refusals.note_block(block.piece);
        conn.tally.chatter.note_block();
        let arrival = self.picker.arrive(block, sender);
        if arrival.is_none() {
            self.totals.cut += u64::from(part);
        }
        if let Some(arrival) = arrival {
            if arrival.others > 0 || was_overdue {
                self.cancel_elsewhere(now, index, block);
            }
            if arrival.whole {
                self.act(Action::Check { piece: block.piece });
            }
        }
        self.ask(now, index);
    }
}

impl<A: Copy> Conn<A> {
    fn note_data(&mut self, now: Instant, bytes: u32) {
        self.stage = Stage::Talking;
        self.download.add(now, bytes);
        self.tally.round_download += u64::from(bytes);
        self.pipeline.on_data(bytes);
        self.tally.last_data_at = Some(now);
        self.times.content_at = now;
        self.wait.anything_since = now;
        self.refusals.end_row();
    }
}
