//! Headers of what leaves.
//!
//! Source: BEP 29, header format. A mask is sent as long as needed in multiples of four octets: on a STATE up to what an
//! extension can say, which is 2016 packets; on DATA and FIN up to 256 packets, with a STATE to follow where more is to
//! be told. (libutp sends four octets on STATE only; libtorrent up to 120, of lengths that are no multiple of four, which
//! some implementations refuse; utp-rs up to 252. All of them read any length.) The longest makes a STATE 274 octets long, half of the
//! smallest datagram that every host takes.
//!
//! **What it leaves out.** What a SYN and its answer say of their sender: that is in `peer.rs`.
//! **How it was validated.** `tests/checks.rs` (checks 1 to 5).

use super::receive::Ack;
use super::{Connection, State};
use crate::timers::Timer;
use alloc::sync::Arc;
use alloc::vec;
use cede_units::{Instant, Seq16};
use cede_wire::utp::{
    EXT_CLOSE_REASON, EXT_FAR_ACK, EXT_PADDING, EXT_SELECTIVE_ACK, HEADER_BYTES, Header, Kind,
    close_reason_body,
};
use cede_wire::{Ecn, Head, Payload, Transmit};

/// Octets that an extension has before its body.
const EXTENSION_HEADER_BYTES: usize = 2;
/// The longest mask within a head, where a close reason may follow it.
const MAX_HEAD_MASK_BYTES: usize = 32;

impl Connection {
    /// The fixed header of any packet, which then leaves: the window that it tells is noted.
    #[inline]
    pub(super) fn header(&mut self, now: Instant, kind: Kind, seq: Seq16) -> Header {
        self.receiving.advertised_bytes = self.window_bytes();
        Header {
            kind,
            connection_id: self.ids.send,
            timestamp_us: self.delays.clock_us(now),
            timestamp_difference_us: self.delays.reply_us(),
            window_bytes: self.receiving.advertised_bytes,
            seq,
            ack: self.receiving.ack_nr,
        }
    }

    /// Octets that a mask would take now in a head, extension header included.
    pub(super) fn mask_bytes(&self) -> usize {
        if self.receiving.reorder.is_empty() {
            return 0;
        }
        self.mask_len_bytes().min(MAX_HEAD_MASK_BYTES) + EXTENSION_HEADER_BYTES
    }

    fn mask_len_bytes(&self) -> usize {
        self.receiving.reorder.mask_len_bytes(self.receiving.ack_nr)
    }

    /// The mask as far as a head has room for it, and its length.
    fn head_mask(&self) -> ([u8; MAX_HEAD_MASK_BYTES], usize) {
        let mut mask = [0; MAX_HEAD_MASK_BYTES];
        let len = self.receiving.reorder.write_mask(self.receiving.ack_nr, &mut mask);
        (mask, len)
    }

    /// A packet leaves with as much of the mask as a head holds: no STATE is owed any more, if that was all.
    fn settle_ack(&mut self) {
        if self.mask_len_bytes() <= MAX_HEAD_MASK_BYTES {
            self.receiving.ack = Ack::None;
        }
    }

    /// The head of a DATA or FIN. It acknowledges as a STATE would, so none is owed after it, unless a packet that
    /// was cut earlier leaves no room for the mask, or the mask is longer than a head.
    pub(super) fn head_of_numbered(
        &mut self,
        now: Instant,
        kind: Kind,
        number: u64,
        bytes: u32,
        again: bool,
    ) -> Head {
        let header = self.header(now, kind, self.seq_of(number));
        if kind == Kind::Fin {
            return self.head_of_fin(now, &header, again);
        }
        let room = self.mtu.payload_bytes().max(bytes) - bytes;
        let encoded = if self.mask_bytes() <= room as usize {
            self.settle_ack();
            self.encode_with_mask(&header)
        } else {
            header.encode(&[])
        };
        self.finish_head(now, encoded)
    }

    /// A close reason goes only behind a mask, if need be one without bits: libutp does not see packets that begin with
    /// it. A FIN that is sent again goes without, in case that was why.
    fn head_of_fin(&mut self, now: Instant, header: &Header, again: bool) -> Head {
        self.settle_ack();
        let (mask, len) = self.head_mask();
        let encoded = match self.close_reason_to_send() {
            Some(reason) if !again => header.encode(&[
                (EXT_SELECTIVE_ACK, &mask[..len.max(4)]),
                (EXT_CLOSE_REASON, &close_reason_body(reason)),
            ]),
            _ => self.encode_with_mask(header),
        };
        self.finish_head(now, encoded)
    }

    /// A path-MTU probe: an ordinary DATA packet, filled up with padding. The mask in front, if need be one without
    /// bits, is for libutp, which does not see packets that begin with an unknown extension. What is more than a head
    /// holds goes before the payload.
    pub(super) fn probe(&mut self, now: Instant, number: u64, payload: &Payload) -> Transmit {
        self.settle_ack();
        let header = self.header(now, Kind::Data, self.seq_of(number));
        let (mask, len) = self.head_mask();
        let len = len.max(4);
        let ordinary = HEADER_BYTES + EXTENSION_HEADER_BYTES + len + payload.len() as usize;
        let wanted = usize::from(self.mtu.probe_bytes(number).unwrap_or_default());
        let padding = wanted.saturating_sub(ordinary).max(EXTENSION_HEADER_BYTES);
        let first = padding_link(padding);
        let encoded =
            header.encode(&[(EXT_SELECTIVE_ACK, &mask[..len]), (EXT_PADDING, &[])]).map(|mut head| {
                let end = head.len();
                head.as_mut_slice()[end - 2..].copy_from_slice(&first);
                head
            });
        let mut octets = vec![0; padding - EXTENSION_HEADER_BYTES + payload.len() as usize];
        let (fill, data) = octets.split_at_mut(padding - EXTENSION_HEADER_BYTES);
        write_padding(fill, first);
        payload.copy_to(data);
        let head = self.finish_head(now, encoded);
        Transmit {
            head,
            payload: Payload::from_shared(Arc::from(octets)),
            dont_fragment: true,
            may_fragment: false,
            ecn: Ecn::NotEct,
        }
    }

    fn encode_with_mask(&self, header: &Header) -> Option<Head> {
        if self.receiving.reorder.is_empty() {
            return header.encode(&[]);
        }
        let (mask, len) = self.head_mask();
        header.encode(&[(EXT_SELECTIVE_ACK, &mask[..len])])
    }

    /// A STATE whose mask follows the head.
    #[cold]
    fn state_with_long_mask(&mut self, now: Instant, header: &Header) -> Transmit {
        let mask = self.receiving.reorder.shared_mask(header.ack, self.tells_far());
        let next = if mask.has_far { EXT_FAR_ACK } else { 0 };
        let encoded = Head::new(&header.to_bytes(EXT_SELECTIVE_ACK))
            .and_then(|mut head| head.push(&[next, mask.mask_bytes as u8]).map(|()| head));
        Transmit { payload: mask.octets, ..self.send_head(now, encoded) }
    }

    /// Does the peer know our extension? Whoever has set up windows of many packets without announcing them knows that it
    /// does.
    fn tells_far(&self) -> bool {
        self.is_peer_known() || !self.config.announce
    }

    /// True where a STATE wants to leave.
    pub(crate) fn owes_state(&self) -> bool {
        self.receiving.ack == Ack::Scheduled
    }

    /// A STATE, where one is owed.
    pub(super) fn transmit_state(&mut self, now: Instant) -> Option<Transmit> {
        if self.receiving.ack != Ack::Scheduled {
            return None;
        }
        self.receiving.ack = Ack::None;
        self.counters.states_sent += 1;
        // Whatever has been sent since, the initiator counts from the number in the answer.
        let answers = matches!(self.state, State::SynReceived { .. });
        let seq = if answers { self.first_seq } else { self.next_seq() };
        let header = self.header(now, Kind::State, seq);
        if !answers && self.mask_len_bytes() > MAX_HEAD_MASK_BYTES {
            let state = self.state_with_long_mask(now, &header);
            self.receiving.reorder.note_told();
            return Some(state);
        }
        self.receiving.reorder.note_told();
        let encoded = if answers { self.encode_with_limits(&header) } else { self.encode_with_mask(&header) };
        Some(self.send_head(now, encoded))
    }

    /// What is asked for once in a long while.
    #[cold]
    pub(super) fn transmit_rarity(&mut self, now: Instant) -> Option<Transmit> {
        if core::mem::take(&mut self.sending.close_due) {
            self.settle_close(now);
        }
        core::mem::take(&mut self.sending.keepalive_due).then(|| self.keepalive(now))
    }

    /// A STATE that acknowledges one packet less than the last did: it cannot be mistaken for news (libutp). Where nothing
    /// has come, there is nothing to be less than: utp-rs ends a connection at the acknowledgement of a packet that it
    /// never sent.
    fn keepalive(&mut self, now: Instant) -> Transmit {
        let header = self.header(now, Kind::State, self.next_seq());
        let less = u16::from(self.counters.data_packets_received > 0 || self.receiving.is_finished());
        self.counters.keepalives_sent += 1;
        self.counters.states_sent += 1;
        self.send_head(now, Header { ack: header.ack.sub(less), ..header }.encode(&[]))
    }

    /// A RESET, once, after the application has given up.
    pub(super) fn transmit_reset(&mut self, now: Instant) -> Option<Transmit> {
        if !self.take_reset_due() {
            return None;
        }
        let header = Header { window_bytes: 0, ..self.header(now, Kind::Reset, self.next_seq()) };
        Some(self.send_head(now, header.encode(&[])))
    }

    /// A packet without payload.
    pub(super) fn send_head(&mut self, now: Instant, encoded: Option<Head>) -> Transmit {
        Transmit {
            head: self.finish_head(now, encoded),
            payload: Payload::Empty,
            dont_fragment: false,
            may_fragment: false,
            ecn: Ecn::NotEct,
        }
    }

    /// Books of any packet that leaves.
    #[inline]
    fn finish_head(&mut self, now: Instant, encoded: Option<Head>) -> Head {
        if self.receiving.ack == Ack::None {
            self.timers.stop(Timer::DelayedAck);
        }
        self.window_told(now);
        self.sending.last_sent_at = now;
        self.counters.packets_sent += 1;
        debug_assert!(
            encoded.is_some(),
            "{HEADER_BYTES} octets, the longest mask and a close reason fit a head"
        );
        encoded.unwrap_or_default()
    }
}

/// The head of the first padding extension of a chain that takes `left` octets: what follows it, and its length. What is
/// left after it is never a single octet, which no extension is.
fn padding_link(left: usize) -> [u8; 2] {
    let longest = EXTENSION_HEADER_BYTES + usize::from(u8::MAX);
    if left <= longest {
        return [0, (left - EXTENSION_HEADER_BYTES) as u8];
    }
    let shortened = usize::from(left == longest + 1);
    [EXT_PADDING, u8::MAX - shortened as u8]
}

/// Writes a chain of padding behind the head of its first extension; `fill` is zero.
fn write_padding(fill: &mut [u8], first: [u8; 2]) {
    let (mut link, mut at) = (first, 0);
    while link[0] != 0 {
        at += usize::from(link[1]);
        link = padding_link(fill.len() - at);
        fill[at..at + EXTENSION_HEADER_BYTES].copy_from_slice(&link);
        at += EXTENSION_HEADER_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_wire::utp::Packet;

    #[test]
    fn padding_of_any_length_is_a_chain_that_ends_where_it_should() {
        for padding in EXTENSION_HEADER_BYTES..2000 {
            let first = padding_link(padding);
            let mut octets = vec![0x01, EXT_PADDING];
            octets.resize(HEADER_BYTES, 0);
            octets.extend(first);
            octets.resize(HEADER_BYTES + padding, 0);
            write_padding(&mut octets[HEADER_BYTES + EXTENSION_HEADER_BYTES..], first);
            octets.extend(b"payload");
            assert_eq!(Packet::decode(&octets).unwrap().payload, b"payload", "{padding}");
        }
    }
}
