//! What leaves: control messages and blocks, in turns under the upload limit.

use super::conn::{Conn, ConnId, Sending};
use super::{Chunk, Engine, PeerAddress};
use crate::disposition::Transport;
use crate::family::{Family, PerFamily};
use crate::mixed::Way;
use crate::wire::{Handshake, Message, PIECE_HEADER_BYTES, Reserved, piece_header};
use alloc::vec::Vec;
use cede_units::Instant;
use cede_wire::Payload;

/// Without an upload limit, so much leaves over one connection before the next has its turn.
const TURN_BYTES: u32 = 16 << 10;

/// Who is to hear what has changed of us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hearers {
    /// Every peer.
    All,
    /// Those whom we have called: they alone cannot know where we take connections but by our words.
    Called,
}

impl<A: PeerAddress> Engine<A> {
    /// Says how many octets the transport of a connection takes now.
    pub fn set_room(&mut self, id: ConnId, room: u32) {
        let Some(conn) = self.conn(id) else { return };
        conn.out.room = room;
        self.join_ring(id.index);
    }

    /// The next octets to send, and over which connection; none where nothing may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(ConnId, Chunk)> {
        while let Some(index) = self.prompt.pop_front() {
            if let Some((id, chunk)) = self.take_prompt(now, index) {
                return Some((id, chunk));
            }
        }
        loop {
            let (index, left) = match self.turn {
                Some(turn) => turn,
                None => self.next_turn(now)?,
            };
            let taken = self.take_chunk(now, index, left);
            self.turn = match &taken {
                Some((_, _, len)) if left > *len => Some((index, left - len)),
                _ => None,
            };
            if self.turn.is_none() {
                self.leave_turn(index);
            }
            if let Some((id, chunk, len)) = taken {
                self.limiter.spend(now, len);
                self.note_written(id, len);
                return Some((id, chunk));
            }
        }
    }

    /// The driver has given a peer something that is not content, such as metadata: it is good for something.
    pub fn note_service(&mut self, now: Instant, id: ConnId) {
        if let Some(conn) = self.conn(id) {
            conn.times.content_at = now;
            conn.tally.chatter.note_question();
        }
    }

    /// Sends a message of an extension under the peer's id for it.
    pub fn send_extended(&mut self, now: Instant, id: ConnId, extension: u8, payload: &[u8]) {
        self.send(now, id, &Message::Extended(extension, payload.to_vec()));
    }

    /// Sends a message that is none of the engine's own affairs: one that means nothing, or tells hashes of a v2 torrent.
    pub fn send(&mut self, now: Instant, id: ConnId, message: &Message) {
        if self.conn(id).is_some_and(|conn| conn.stage.is_ready()) {
            self.say(now, id.index, message);
        }
    }

    /// Our name to peers from now on: whoever has a connection to us that is lost, and has not noticed, takes no second one of the same name.
    pub const fn set_peer_id(&mut self, peer_id: [u8; 20]) {
        self.peer_id = peer_id;
    }

    /// What the handshake of the extension protocol says from now on, and who of those that are connected hears it again.
    pub fn set_extended(&mut self, now: Instant, handshake: Vec<u8>, hearers: Hearers) {
        let is_told = |conn: &Conn<A>| hearers == Hearers::All || conn.opened_by_us;
        for index in self.list.clone() {
            if self.at(index).is_some_and(|conn| is_told(conn) && conn.reserved.has(Reserved::EXTENDED)) {
                self.say(now, index, &Message::Extended(0, handshake.clone()));
            }
        }
        self.greeting.extended = Some(handshake);
    }

    /// We have nodes of the distributed hash table at these UDP ports: peers that have one are told of that of their family, those that
    /// are there and those to come (BEP 5, BEP 32).
    pub fn set_dht_ports(&mut self, now: Instant, ports: PerFamily<Option<u16>>) {
        self.greeting.dht_ports = ports;
        for index in self.list.clone() {
            self.tell_dht_port(now, index);
        }
    }

    /// Tells a peer whose handshake says that it has a node where ours listens.
    pub(super) fn tell_dht_port(&mut self, now: Instant, index: u32) {
        let ports = self.greeting.dht_ports;
        let Some(conn) = self.at(index).filter(|conn| conn.reserved.has(Reserved::DHT)) else { return };
        if let Some(port) = ports[Family::of(conn.address.host())] {
            self.say(now, index, &Message::Port(port));
        }
    }

    pub(super) fn say(&mut self, now: Instant, index: u32, message: &Message) {
        let Some(conn) = self.at(index) else { return };
        message.encode(&mut conn.out.control);
        conn.times.said_at = now;
        self.join_ring(index);
    }

    pub(super) fn send_handshake(&mut self, now: Instant, index: u32) {
        let mut reserved = Reserved::default();
        if self.profile.fast {
            reserved = reserved.with(Reserved::FAST);
        }
        if self.greeting.extended.is_some() {
            reserved = reserved.with(Reserved::EXTENDED);
        }
        let ports = self.greeting.dht_ports;
        let (v1, v2, peer_id) = (self.info_hash, self.info_hash_v2, self.peer_id);
        let Some(conn) = self.at(index) else { return };
        if ports[Family::of(conn.address.host())].is_some() {
            reserved = reserved.with(Reserved::DHT);
        }
        let info_hash = v2.filter(|_| conn.is_v2).unwrap_or(v1);
        let handshake = Handshake { reserved, info_hash, peer_id };
        conn.out.control.extend_from_slice(&handshake.encode());
        conn.we_sent_handshake = true;
        conn.times.said_at = now;
        self.join_ring(index);
    }

    /// Gives a connection that has something to send and room for it a place in the ring.
    pub(super) fn join_ring(&mut self, index: u32) {
        let spared = self.limiter.spares_control();
        let Some(conn) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) else { return };
        let out = &mut conn.out;
        let quota = conn.quotas[Way::Up as usize];
        if out.room == 0 || quota.waits && quota.octets == 0 {
            return;
        }
        // Behind a block of which a part has left, control messages wait.
        if spared && out.sending.is_none() && !out.control.is_empty() && !out.is_prompt {
            out.is_prompt = true;
            self.prompt.push_back(index);
        }
        if !out.in_ring && (out.has_blocks() || !spared && !out.control.is_empty()) {
            out.in_ring = true;
            self.ring.push_back(index);
        }
    }

    /// Control messages of a connection that wait for no turn.
    // Beside the path that most packets take, which needs nothing of what this makes ready.
    #[inline(never)]
    fn take_prompt(&mut self, now: Instant, index: u32) -> Option<(ConnId, Chunk)> {
        let conn = self.at(index)?;
        let out = &mut conn.out;
        out.is_prompt = false;
        if out.sending.is_some() {
            return None;
        }
        let (chunk, len) = take_control(&mut out.control, out.room)?;
        out.room -= len;
        conn.times.said_at = now;
        Some((conn.id, chunk))
    }

    fn next_turn(&mut self, now: Instant) -> Option<(u32, u32)> {
        let Some(&index) = self.ring.front() else {
            self.limiter.rest();
            return None;
        };
        let budget = match self.limiter.limit() {
            Some(_) => self.limiter.turn(now),
            None => TURN_BYTES,
        };
        if budget == 0 {
            return None;
        }
        self.ring.pop_front();
        Some((index, budget))
    }

    /// The turn is over: back to the end of the ring, where there is more.
    fn leave_turn(&mut self, index: u32) {
        if let Some(conn) = self.at(index) {
            conn.out.in_ring = false;
        }
        self.join_ring(index);
    }

    /// The next octets of one connection, at most `limit`; none where it has no room or nothing to say.
    // Beside the path that most packets take, which needs nothing of what this makes ready.
    #[inline(never)]
    fn take_chunk(&mut self, now: Instant, index: u32, limit: u32) -> Option<(ConnId, Chunk, u32)> {
        let limit = limit.min(self.may_write(now, index));
        if limit == 0 {
            return None;
        }
        let geometry = &self.geometry;
        let conn = self.slots.get_mut(index as usize)?.as_deref_mut()?;
        let out = &mut conn.out;
        if out.room == 0 {
            return None;
        }
        if out.sending.is_none() && out.control.is_empty() {
            out.sending = out.uploads.pop_front().map(|block| Sending { block, sent: 0 });
        }
        let room = limit.min(out.room);
        let (chunk, len) = match &mut out.sending {
            None => take_control(&mut out.control, room)?,
            Some(sending) => take_block(sending, geometry, room),
        };
        out.room -= len;
        if out.sending.is_some_and(|sending| sending.sent == sending.block.len + PIECE_HEADER_BYTES) {
            out.sending = None;
        }
        if matches!(chunk, Chunk::Content { .. }) {
            conn.upload.add(now, len);
            conn.times.content_at = now;
            conn.tally.round_upload += u64::from(len);
            conn.tally.turn_upload += u64::from(len);
            self.totals.uploaded[usize::from(conn.transport == Transport::Utp)] += u64::from(len);
        }
        conn.times.said_at = now;
        Some((conn.id, chunk, len))
    }
}

fn take_control(control: &mut alloc::vec::Vec<u8>, room: u32) -> Option<(Chunk, u32)> {
    let len = control.len().min(room as usize);
    if len == 0 {
        return None;
    }
    let octets = Payload::copy_from(&control[..len]);
    if len == control.len() {
        control.clear();
    } else {
        control.drain(..len);
    }
    Some((Chunk::Octets(octets), len as u32))
}

/// The head of a block, or the next run of its data.
fn take_block(sending: &mut Sending, geometry: &crate::Geometry, room: u32) -> (Chunk, u32) {
    let head_left = PIECE_HEADER_BYTES.saturating_sub(sending.sent);
    let (chunk, len) = if head_left > 0 {
        let len = head_left.min(room);
        let head = piece_header(sending.block);
        let start = sending.sent as usize;
        (Chunk::Octets(Payload::copy_from(&head[start..start + len as usize])), len)
    } else {
        let at = sending.sent - PIECE_HEADER_BYTES;
        let len = (sending.block.len - at).min(room);
        let offset = geometry.offset(sending.block.piece, sending.block.begin + at);
        (Chunk::Content { offset, len }, len)
    };
    sending.sent += len;
    (chunk, len)
}
