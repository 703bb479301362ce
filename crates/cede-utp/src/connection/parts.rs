//! Packets that have become too large for the path.
//!
//! No source: this is Cede's own. A path may carry less than it did: its route changes, or a tunnel opens. Packets under way keep their
//! payload, since each number of uTP's stands for certain octets: repeated as they are they never arrive, and nothing behind
//! them can be delivered. libutp and libtorrent send all but probes without "don't fragment", and leave it to routers, of which those for
//! IPv6 never do so, and to firewalls, which often drop fragments.
//!
//! To its own kind ([`Connection::is_peer_known`]) Cede repeats such a packet in parts: DATA of the same number, each with an
//! extension ([`EXT_PART`]) that says where in the payload it belongs and how long that is. A packet counts as arrived, and is
//! acknowledged, once all of it has. For congestion control it is one packet, whose parts leave in a row.
//!
//! To peers of other makes such a packet leaves again whole, and the network is asked to cut it
//! ([`Transmit::may_fragment`]): over IPv4 whoever has to, over IPv6 the sender's own system, where a router told it what fits.
//! Whatever is cut from the stream from then on is small.
//!
//! What shows that packets have become too large is a router that says so, or (RFC 8899 section 4.3, as with Linux's
//! `tcp_mtu_probing`) that a large one has been repeated in vain while three timeouts ran out: the search begins anew then.
//!
//! **What it leaves out.** Peers of other makes where fragments are dropped, or no router says over IPv6 what fits: what is under way is
//! lost with the connection, unless the path heals. Linux cuts nothing that fits into its own link, whatever a socket asks for
//! (`IPV6_MTU`). A connection to libtorrent ended five seconds later, and it called again at once.
//! **How it was validated.** `tests/narrowed.rs`; with libtorrent behind a router, `crates/cede/tests/torrent_narrow.rs`.

use super::Connection;
use crate::outbox::Fate;
use cede_units::Instant;
use cede_wire::utp::{EXT_PART, Kind, Packet, part_body};
use cede_wire::{Payload, Transmit};

/// Octets of the extension: its head, its place and the whole length.
const EXTENSION_BYTES: u32 = 6;
/// Timeouts in a row that make large packets suspicious (RFC 8899 section 5.1.2: `MAX_PROBES`; Linux: `tcp_retries1`).
const SUSPICIOUS_TIMEOUTS: u32 = 3;

impl Connection {
    /// A packet that is repeated is larger than what passes now.
    #[inline]
    pub(super) fn is_outgrown(&self, bytes: u32, again: bool) -> bool {
        again && bytes > self.mtu.payload_bytes()
    }

    /// The first part of a packet, which has been counted as one that leaves.
    #[cold]
    pub(super) fn transmit_in_parts(&mut self, now: Instant, number: u64) -> Option<Transmit> {
        self.transmit_part(now, number, 0)
    }

    /// The next part of the packet that is leaving in parts, where one is.
    #[inline]
    pub(super) fn transmit_next_part(&mut self, now: Instant) -> Option<Transmit> {
        let (number, start) = self.scratch.as_mut()?.next_part.take()?;
        self.transmit_part(now, number, start)
    }

    /// None where the packet has arrived meanwhile, or been taken for lost.
    #[cold]
    fn transmit_part(&mut self, now: Instant, number: u64, start: u32) -> Option<Transmit> {
        let slot = self.sending.outbox.get(number).filter(|slot| slot.fate == Fate::Outstanding)?;
        let (mut rest, whole_bytes) = (slot.payload.clone(), slot.payload_bytes);
        let _ = rest.split_to(start);
        let room = self.mtu.payload_bytes().saturating_sub(EXTENSION_BYTES).max(1);
        let payload = rest.split_to(room.min(rest.len()));
        let end = start + payload.len();
        if end < whole_bytes {
            self.scratch().next_part = Some((number, end));
        }
        // Datagrams are shorter than 64 KiB.
        let body = part_body(start as u16, whole_bytes as u16);
        let header = self.header(now, Kind::Data, self.seq_of(number));
        let head = header.encode(&[(EXT_PART, &body)]);
        Some(Transmit { payload, ..self.send_head(now, head) })
    }

    /// The payload of a DATA packet, or nothing where nobody wants it; `None` where it is a part and others are missing.
    #[inline]
    pub(super) fn whole_payload(
        &mut self,
        packet: &Packet<'_>,
        ahead: u16,
        payload: Payload,
    ) -> Option<Payload> {
        let payload = match (self.receiving.discarding, payload.is_empty()) {
            (true, _) => return Some(Payload::Empty),
            (false, true) => Payload::copy_from(packet.payload),
            (false, false) => payload,
        };
        match packet.extensions.is_empty() || packet.header.kind != Kind::Data {
            true => Some(payload),
            false => self.join_part(packet, ahead, payload),
        }
    }

    #[cold]
    fn join_part(&mut self, packet: &Packet<'_>, ahead: u16, payload: Payload) -> Option<Payload> {
        let Some((start, whole_bytes)) = packet.extensions.part() else { return Some(payload) };
        let seq = packet.header.seq;
        if !self.receiving.reorder.has_part(seq) && !self.has_room_for(ahead, u64::from(whole_bytes)) {
            self.counters.rare().discarded_buffer += 1;
            self.receiving.schedule_ack();
            return None;
        }
        let octets = payload.to_vec();
        let whole = self.receiving.reorder.take_in_part(seq, start, whole_bytes, &octets)?;
        Some(Payload::from_shared(whole.into()))
    }

    /// The oldest packet, `una`, is repeated for the third time in vain, or has been for more: where it is a large one, that
    /// may be why.
    pub(super) fn suspect_packet_size(&mut self, una: u64) {
        let bytes = self.sending.outbox.get(una).map_or(0, |slot| slot.payload_bytes);
        let large = bytes > self.mtu.least_payload_bytes();
        if large && self.loss.timeouts == SUSPICIOUS_TIMEOUTS && self.mtu.restart() {
            self.counters.rare().mtu_black_holes += 1;
            self.on_packet_size_changed();
        }
    }

    /// Larger packets than now fit are under way: they do not arrive, and leave again in parts, or for the network to cut.
    pub(super) fn return_outgrown(&mut self) {
        let most = self.mtu.payload_bytes();
        for number in self.sending.outbox.una()..self.sending.outbox.next() {
            let is_outgrown = self.sending.outbox.get(number).is_some_and(|slot| slot.payload_bytes > most);
            if is_outgrown && self.forget(number) {
                self.sending.resends_beyond_window = self.sending.resends_beyond_window.max(1);
            }
        }
    }
}
