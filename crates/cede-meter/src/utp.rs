//! What uTP headers say about queues, and whether datagrams are uTP at all.
//!
//! Source: BEP 29 (the header's two clock fields); "Passive bufferbloat measurement exploiting transport layer
//! information" (GLOBECOM 2013), section III, equations 1 and 2, for the echoed estimate. The direct estimate, the
//! observer's clock less the sender's stamp, needs one direction only and is in no way delayed.
//!
//! Whether datagrams are uTP is decided for a flow, not for a packet: a version, a type and a chain of extensions that
//! fit are found in about one of 20,000 random payloads, and DNS and WireGuard have packets that always fit. So a flow
//! counts what else must hold: ids of both directions differ by one, and acknowledgements name packets that were sent.
//!
//! **What it leaves out.** Several connections between the same two sockets share one series: their stamps come from one
//! clock. Up to eight at a time are told apart where it is judged whether they are uTP. The rule for repeated differences
//! looks at the last packets of both directions, whichever connection they belong to.
//!
//! **How it was validated.** The sheets' vectors (`tests/vectors.rs`), recorded captures beside the queue's own log
//! (`tests/ground_truth.rs`), captures of other protocols on shared ports, and random datagrams (`tests/fuzz.rs`).

use crate::flow::{Flow, Protocol, Rtt};
use crate::key::Side;
use crate::pool::Pool;
use crate::samples::{Length, Sample};
use cede_wire::utp::{EXT_FAR_ACK, EXT_PADDING, HEADER_BYTES, Kind, VERSION, View};

/// What old uTorrent says where it has no measurement.
const NO_DIFFERENCE: u32 = 0x7fff_ffff;
/// How far an acknowledgement may be behind the newest packet of the other direction to be about it: numbers have 16 bits,
/// and fast paths have thousands of packets under way.
const ACK_WINDOW_PACKETS: i16 = 1 << 14;
/// How far an acknowledgement may be ahead of it: segmentation offload hands several packets over as one datagram, of which
/// only the first one's header is seen (Linux: UDP_MAX_SEGMENTS, 128).
const ACK_AHEAD_PACKETS: i16 = 128;

/// What STUN has in the place of the stamp (RFC 8489, section 5), and its answers have uTP's form besides: 0x0101 begins data with an
/// extension. Of uTP's packets one in 2^32 has it by chance.
const STUN_COOKIE: u32 = 0x2112_a442;

/// Connections between the same two sockets that are told apart.
const CONNECTIONS_MAX: usize = 8;

/// What is kept of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UtpSide {
    /// When the last packet came.
    last_us: u64,
    /// Of so many connections, the one of the last packet first: id and highest sequence number.
    newest: [(u16, u16); CONNECTIONS_MAX],
    connections: u8,
    /// The last acknowledgement, and the last difference that was reported.
    ack: u16,
    reported: u32,
    /// A packet was seen since the other side last reported a difference.
    is_unreported: bool,
    /// That packet repeats what the other side has acknowledged.
    is_repeated: bool,
}

/// What a packet says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    kind: Kind,
    id: u16,
    stamp_us: u32,
    difference_us: u32,
    seq: u16,
    ack: u16,
}

impl Said {
    /// `None` where a datagram is no uTP.
    // What is read stays in registers.
    #[inline(always)]
    pub(crate) fn of(payload: &[u8], payload_len: usize) -> Option<Self> {
        let (view, kind) = plausible(payload, payload_len)?;
        Some(Self {
            kind,
            id: view.connection_id(),
            stamp_us: view.timestamp_us(),
            difference_us: view.timestamp_difference_us(),
            seq: view.seq().0,
            ack: view.ack().0,
        })
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
    const fn reports(&self) -> bool {
        !matches!(self.difference_us, 0 | NO_DIFFERENCE)
    }
}

/// Takes in what a packet says of the other direction's packet before it, if that is news, and whether it bears out that this
/// is uTP.
// Beside the look-up of flows there is no room for it.
#[inline(never)]
pub(crate) fn take(flow: &mut Flow, side: Side, time_us: u64, said: &Said, pool: &mut Pool) {
    let [low, high] = &mut flow.sides;
    let (from, to) = if side == 0 { (low, high) } else { (high, low) };
    let (Protocol::Utp(mine), Protocol::Utp(theirs)) = (&mut from.protocol, &mut to.protocol) else { return };
    flow.evidence.add(theirs, said);
    mine.note(said, theirs);
    let reported_us = (said.reports() && mine.reports_news(said, theirs)).then_some(theirs.last_us);
    mine.last_us = time_us;
    if said.kind != Kind::Reset
        && let Some(time_us) = reported_us.filter(|&time_us| pool.wants(&to.echo, time_us))
    {
        pool.push(&mut to.echo, Sample { time_us, raw: said.difference_us, length: Length::default() });
    }
}

/// Packets that bore out that this is uTP, and that spoke against it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    support: u32,
    against: u32,
}

impl Evidence {
    /// Looks at a packet, before it is noted.
    #[inline]
    pub(crate) fn add(&mut self, theirs: &UtpSide, said: &Said) {
        match judge(theirs, said) {
            Some(true) => self.support = self.support.saturating_add(1),
            Some(false) => self.against = self.against.saturating_add(1),
            None => {}
        }
    }

    pub(crate) const fn append(&mut self, later: Self) {
        self.support = self.support.saturating_add(later.support);
        self.against = self.against.saturating_add(later.against);
    }

    /// Enough where both directions were seen.
    pub(crate) fn is_enough(self) -> bool {
        self.support >= 2 && self.support / 4 >= self.against
    }
}

/// Whether a datagram has the form of uTP.
#[must_use]
pub fn has_form(payload: &[u8], payload_len: usize) -> bool {
    plausible(payload, payload_len).is_some()
}

/// What may be uTP by itself.
#[inline(always)]
fn plausible(payload: &[u8], payload_len: usize) -> Option<(View<'_>, Kind)> {
    let view = View::new(payload)?;
    if view.version() != VERSION || view.timestamp_us() == STUN_COOKIE {
        return None;
    }
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
        if is_empty || !matches!(next, 1..=3 | EXT_FAR_ACK | EXT_PADDING) {
            return None;
        }
        len += whole;
        rest = rest.get(whole..).unwrap_or_default();
        next = following;
    }
    Some(len)
}

/// Whether a packet bears out that the flow is uTP, as far as the other direction tells.
fn judge(theirs: &UtpSide, said: &Said) -> Option<bool> {
    if theirs.connections == 0 || matches!(said.kind, Kind::Syn | Kind::Reset) {
        return None;
    }
    let fits = |&(id, seq): &(u16, u16)| {
        // After a SYN the answer carries the same id.
        let is_pair = matches!(said.id.wrapping_sub(id), 0 | 1 | u16::MAX);
        let behind = seq.wrapping_sub(said.ack).cast_signed();
        is_pair && (-ACK_AHEAD_PACKETS..ACK_WINDOW_PACKETS).contains(&behind)
    };
    Some(theirs.newest[..theirs.connections.into()].iter().any(fits))
}

impl UtpSide {
    pub(crate) fn note(&mut self, said: &Said, theirs: &Self) {
        let Said { seq, kind, .. } = *said;
        let is_numbered = matches!(kind, Kind::Data | Kind::Fin);
        let is_answered = theirs.connections > 0;
        self.is_repeated = is_numbered && is_answered && seq.wrapping_sub(theirs.ack).cast_signed() <= 0;
        self.remember(said.id, seq);
        self.ack = said.ack;
        self.is_unreported |= kind != Kind::Reset;
    }

    fn remember(&mut self, id: u16, seq: u16) {
        // Nearly always the connection of the packet before.
        if self.connections > 0 && self.newest[0].0 == id {
            if seq.wrapping_sub(self.newest[0].1).cast_signed() > 0 {
                self.newest[0].1 = seq;
            }
            return;
        }
        let known = &mut self.newest[..self.connections.into()];
        match known.iter().position(|newest| newest.0 == id) {
            Some(at) => {
                known[..=at].rotate_right(1);
                if seq.wrapping_sub(known[0].1).cast_signed() > 0 {
                    known[0].1 = seq;
                }
            }
            None => {
                self.connections = (self.connections + 1).min(CONNECTIONS_MAX as u8);
                self.newest.copy_within(..CONNECTIONS_MAX - 1, 1);
                self.newest[0] = (id, seq);
            }
        }
    }

    /// Whether the difference in a packet is about a packet that it was not told of before. libutp does not look at the
    /// stamp of data that it has already acknowledged: it says once more what it said before.
    fn reports_news(&mut self, said: &Said, theirs: &mut Self) -> bool {
        let reported = core::mem::replace(&mut self.reported, said.difference_us);
        let is_fresh = core::mem::take(&mut theirs.is_unreported);
        is_fresh && !(theirs.is_repeated && self.reported == reported)
    }
}

/// A packet with data waits for the acknowledgement that covers it: a round trip that ends with this packet.
#[inline]
pub(crate) fn answer(to: &mut Rtt, now: u32, said: &Said) -> Option<u32> {
    let (_, since) =
        to.pending.filter(|&(wanted, _)| said.ack.wrapping_sub(wanted as u16).cast_signed() >= 0)?;
    to.pending = None;
    to.add(now.wrapping_sub(since))
}

/// As [`answer`]: one that begins with it.
#[inline]
pub(crate) const fn ask(from: &mut Rtt, now: u32, said: &Said) {
    if matches!(said.kind, Kind::Data) && from.pending.is_none() {
        from.pending = Some((said.seq as u32, now));
    }
}

/// Whether a flow was uTP, now that it was seen.
pub(crate) fn is_utp(flow: &Flow, advances: impl Fn(Side) -> bool) -> bool {
    if flow.sides.iter().all(|side| side.direct.len() > 0) {
        return flow.evidence.is_enough();
    }
    // One direction alone: its stamps must run as fast as time does.
    let side = usize::from(flow.sides[1].direct.len() > 0);
    flow.sides[side].direct.len() >= 10 && advances(side)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed's flow of a week has more packets than sixteen bits count.
    #[test]
    fn a_long_flow_is_judged_by_all_of_its_packets() {
        let said = |id, ack| Said { kind: Kind::State, id, stamp_us: 1, difference_us: 1, seq: 1, ack };
        let (mut theirs, mut whole) = (UtpSide::default(), Evidence::default());
        theirs.note(&said(7, 1), &UtpSide::default());
        for k in 0..200_000_u32 {
            // One in nine is of a connection that is not known.
            whole.add(&theirs, &said(if k % 9 == 0 { 999 } else { 8 }, 1));
        }
        assert!(whole.is_enough());
        let mut halves = Evidence::default();
        halves.append(whole);
        halves.append(whole);
        assert!(halves.is_enough());
    }
}
