//! What uTP headers say about queues.
//!
//! Source: BEP 29 (the header's two clock fields); "Passive bufferbloat measurement exploiting transport layer
//! information" (GLOBECOM 2013), section III, equations 1 and 2, for the echoed estimate. The direct estimate, the
//! observer's clock less the sender's stamp, needs one direction only and is in no way delayed.
//!
//! A form that fits does not make a datagram uTP: that is judged by the flow (`store/utp.rs`).
//!
//! A datagram may begin with acknowledgements of other connections between the same sockets, each a head and no more, and hold another packet
//! behind them: some programs send so, and segmentation offload hands packets over so ([`packets`]).
//!
//! **What it leaves out.** What follows data in a datagram, as where offloading put together what was sent: no head says where data end.
//!
//! **How it was validated.** The sheets' vectors (`tests/vectors.rs`), recorded captures beside the queue's own log
//! (`tests/ground_truth.rs`), captures of other protocols on shared ports, and random datagrams (`tests/fuzz.rs`).

use crate::packet::rtt::Rtt;
use cede_wire::utp::{EXT_FAR_ACK, EXT_PADDING, EXT_PART, HEADER_BYTES, Kind, VERSION, View};

/// What old uTorrent says where it has no measurement.
const NO_DIFFERENCE: u32 = 0x7fff_ffff;
/// What STUN has in the place of the stamp (RFC 8489, section 5), and its answers have uTP's form besides: 0x0101 begins data with an
/// extension. Of uTP's packets one in 2^32 has it by chance.
const STUN_COOKIE: u32 = 0x2112_a442;

/// What a packet says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub kind: Kind,
    pub id: u16,
    pub stamp_us: u32,
    pub difference_us: u32,
    pub seq: u16,
    pub ack: u16,
}

impl Said {
    /// `None` where a datagram is no uTP, or may hold several packets.
    // What is read stays in registers.
    #[inline(always)]
    pub(crate) fn of_one(payload: &[u8], payload_len: usize) -> Option<Self> {
        let (view, kind) = plausible(payload, payload_len)?;
        let is_cut = payload.len() < payload_len;
        if is_cut && matches!(kind, Kind::State) { None } else { Some(Self::read(&view, kind)) }
    }

    /// `None` where a packet is none of uTP.
    pub(crate) fn of(payload: &[u8], payload_len: usize) -> Option<Self> {
        let (view, kind) = plausible(payload, payload_len)?;
        Some(Self::read(&view, kind))
    }

    #[inline(always)]
    fn read(view: &View<'_>, kind: Kind) -> Self {
        Self {
            kind,
            id: view.connection_id(),
            stamp_us: view.timestamp_us(),
            difference_us: view.timestamp_difference_us(),
            seq: view.seq().0,
            ack: view.ack().0,
        }
    }

    /// How far the observer's clock is ahead of the stamp; nothing where there is none.
    pub(crate) const fn reading(&self, time_us: u64) -> Option<u32> {
        if matches!(self.kind, Kind::Reset) || self.stamp_us == 0 {
            return None;
        }
        Some((time_us as u32).wrapping_sub(self.stamp_us))
    }

    pub(crate) const fn opens(&self) -> bool {
        matches!(self.kind, Kind::Syn)
    }

    /// Three words, half of one, and a few bits.
    pub(crate) const fn pack(&self) -> ([u32; 3], u16, u8) {
        let numbers = (self.seq as u32) << 16 | self.ack as u32;
        ([self.stamp_us, self.difference_us, numbers], self.id, self.kind as u8)
    }

    /// What was packed.
    pub(crate) fn unpack([stamp_us, difference_us, numbers]: [u32; 3], id: u16, kind: u8) -> Option<Self> {
        let kind = Kind::from_number(kind)?;
        Some(Self { kind, id, stamp_us, difference_us, seq: (numbers >> 16) as u16, ack: numbers as u16 })
    }

    /// Whether it says what its sender measured.
    pub(crate) const fn reports(&self) -> bool {
        !matches!(self.difference_us, 0 | NO_DIFFERENCE)
    }
}

/// Heads of one datagram were stamped within this.
const JOINED_US_MAX: u32 = 1_000_000;

/// Whether a datagram has the form of uTP: of one packet, or of several, behind acknowledgements without data.
#[must_use]
pub fn has_form(payload: &[u8], payload_len: usize) -> bool {
    plausible(payload, payload_len).is_some() || acknowledgements(payload, payload_len).is_some()
}

/// The packets in a datagram, each with its length on the wire: acknowledgements without data in front, and the one behind them, to which
/// all that follows is taken to belong. None where a datagram is no uTP.
pub(crate) fn packets(payload: &[u8], payload_len: usize) -> impl Iterator<Item = (&[u8], usize)> {
    let alone = || plausible(payload, payload_len).map(|_| 0);
    let mut fronts = acknowledgements(payload, payload_len).or_else(alone);
    let mut rest = (payload, payload_len);
    core::iter::from_fn(move || {
        let left = fronts?;
        fronts = left.checked_sub(1);
        let (payload, len) = rest;
        // It was looked at before.
        let front = if left > 0 { acknowledgement(payload, len)?.0 } else { len };
        rest = (payload.get(front..).unwrap_or_default(), len - front);
        Some((&payload[..front.min(payload.len())], front))
    })
}

/// How many acknowledgements stand in front of a packet; `None` where none does, or none is behind them.
fn acknowledgements(mut payload: &[u8], mut payload_len: usize) -> Option<usize> {
    let (mut count, mut last_us) = (0, None);
    while let Some((front, stamp_us)) = acknowledgement(payload, payload_len) {
        let apart_us =
            last_us.replace(stamp_us).map_or(0, |last: u32| stamp_us.wrapping_sub(last).cast_signed());
        if apart_us.unsigned_abs() > JOINED_US_MAX {
            return None;
        }
        (payload, payload_len, count) = (&payload[front..], payload_len - front, count + 1);
    }
    let (view, _) = plausible(payload, payload_len).filter(|_| count > 0)?;
    let apart_us = view.timestamp_us().wrapping_sub(last_us?).cast_signed();
    (apart_us.unsigned_abs() <= JOINED_US_MAX).then_some(count)
}

/// Where an acknowledgement without data ends, behind which something follows of which a head is there; and its stamp.
fn acknowledgement(payload: &[u8], payload_len: usize) -> Option<(usize, u32)> {
    let view = head(payload).filter(|view| view.kind_number() == Kind::State as u8)?;
    let front = HEADER_BYTES + if view.first_extension() == 0 { 0 } else { chain_len(&view)? };
    let is_followed = front < payload_len && payload.len() >= front + HEADER_BYTES;
    is_followed.then_some((front, view.timestamp_us()))
}

/// A head of uTP's version.
#[inline(always)]
fn head(payload: &[u8]) -> Option<View<'_>> {
    View::new(payload).filter(|view| view.version() == VERSION && view.timestamp_us() != STUN_COOKIE)
}

/// What may be uTP by itself.
#[inline(always)]
fn plausible(payload: &[u8], payload_len: usize) -> Option<(View<'_>, Kind)> {
    let view = head(payload)?;
    let kind = Kind::from_number(view.kind_number())?;
    // Most have none.
    let chain_len = if view.first_extension() == 0 { 0 } else { chain_len(&view)? };
    let content = payload_len.checked_sub(HEADER_BYTES + chain_len)?;
    let fits = match kind {
        Kind::Data => content > 0,
        Kind::State | Kind::Syn => content == 0,
        Kind::Fin | Kind::Reset => true,
    };
    // A capture may end within the chain, so that its length is not known.
    (fits || payload.len() < payload_len).then_some((view, kind))
}

/// Octets of the chain of extensions; `None` for a chain that cannot be.
#[inline(never)]
fn chain_len(view: &View<'_>) -> Option<usize> {
    let (mut next, mut rest, mut len) = (view.first_extension(), view.behind_header(), 0);
    while next != 0 {
        let [following, body_len, ..] = *rest else { return Some(len) };
        let whole = 2 + usize::from(body_len);
        // Beyond selective acknowledgements (1), bits (2) and close reasons (3) nothing is in use but what we send; and only
        // padding may be empty.
        let is_empty = body_len == 0 && next != EXT_PADDING;
        if is_empty || !matches!(next, 1..=3 | EXT_PART | EXT_FAR_ACK | EXT_PADDING) {
            return None;
        }
        len += whole;
        rest = rest.get(whole..).unwrap_or_default();
        next = following;
    }
    Some(len)
}

/// A question that is older was lost, or its connection ended.
const ANSWER_US_MAX: u32 = 60_000_000;

/// A packet with data, or one that opens a connection, waits for the acknowledgement of its connection that covers it: a round trip that
/// ends with this packet.
#[inline]
pub(crate) fn answer(to: &mut Rtt, now: u32, said: &Said) -> Option<u32> {
    let (_, since) = to.pending.filter(|&(wanted, _)| covers(said, wanted))?;
    to.pending = None;
    to.add(now.wrapping_sub(since))
}

/// As [`answer`]: one that begins with it. What opens a connection is answered at once, which data need not be, and most often finds the
/// queue empty: receivers that wait before they acknowledge show the shortest round trip there alone.
#[inline]
pub(crate) fn ask(from: &mut Rtt, now: u32, said: &Said) {
    let id = match said.kind {
        Kind::Data => said.id,
        // The packets behind it have the next id.
        Kind::Syn => said.id.wrapping_add(1),
        Kind::Fin | Kind::State | Kind::Reset => return,
    };
    let wanted = u32::from(id) << 16 | u32::from(said.seq);
    let is_free = from.pending.is_none_or(|(_, since)| now.wrapping_sub(since) > ANSWER_US_MAX);
    if is_free {
        from.pending = Some((wanted, now));
    }
    // One that is repeated is timed from the first, as data are: too long a round trip does no harm to the shortest.
}

/// Whether a packet acknowledges what was wanted: an id of the other direction and a number. Several connections between the same
/// two sockets are one flow, but the numbers of one say nothing of another's.
fn covers(said: &Said, wanted: u32) -> bool {
    let (id, seq) = ((wanted >> 16) as u16, wanted as u16);
    matches!(said.id.wrapping_sub(id), 1 | u16::MAX) && said.ack.wrapping_sub(seq).cast_signed() >= 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_wire::utp::{EXT_BITS, EXT_CLOSE_REASON, EXT_SELECTIVE_ACK};

    #[test]
    fn what_is_in_use_has_the_form_of_utp_and_nothing_else() {
        let datagram = |extension: u8| {
            let mut octets = [0; HEADER_BYTES + 7];
            (octets[0], octets[1]) = (0x01, extension);
            // One extension of four octets, and one octet of data.
            octets[HEADER_BYTES + 1] = 4;
            octets
        };
        let has_form = |extension: u8| has_form(&datagram(extension), HEADER_BYTES + 7);
        let used: Vec<u8> = (1..=u8::MAX).filter(|&extension| has_form(extension)).collect();
        let ours = [EXT_SELECTIVE_ACK, EXT_BITS, EXT_CLOSE_REASON, EXT_PART, EXT_FAR_ACK, EXT_PADDING];
        assert_eq!(used, ours);
    }
}
