//! What is kept of uTP's packets, and whether datagrams are uTP at all.
//!
//! The latter is decided for a flow, not for a packet: a version, a type and a chain of extensions that
//! fit are found in about one of 20,000 random payloads, and DNS and WireGuard have packets that always fit. So a flow
//! counts what else must hold: ids of both directions differ by one, and acknowledgements name packets that were sent.
//!
//! **What it leaves out.** Several connections between the same two sockets share one series: their stamps come from one
//! clock. Up to eight at a time are told apart where it is judged whether they are uTP. What a packet reports counts only where
//! the other direction's last packet was of its connection: of those whose packets alternate on the way from an observer far from
//! the receiver, some reports are left out.
//!
//! **How it was validated.** As [`crate::packet::utp`], and captures of other protocols on shared ports.

use crate::packet::length::Length;
use crate::packet::utp::Said;
use crate::store::pool::Pool;
use crate::store::sample::Sample;
use crate::store::samples::Series;
use cede_wire::utp::Kind;

/// How far an acknowledgement may be behind the newest packet of the other direction to be about it: numbers have 16 bits,
/// and fast paths have thousands of packets under way.
const ACK_WINDOW_PACKETS: i16 = 1 << 14;
/// How far an acknowledgement may be ahead of it: segmentation offload hands several packets over as one datagram, of which
/// only the first one's header is seen (Linux: UDP_MAX_SEGMENTS, 128).
const ACK_AHEAD_PACKETS: i16 = 128;

/// Connections between the same two sockets that are told apart.
const CONNECTIONS_MAX: usize = 8;
/// A capture that goes back by so much was put together in the wrong order, or its clock was set: what came is no measure of what comes.
const BACK_US: u64 = 1_000_000;

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
    /// The highest number is that of a packet that was seen: what only acknowledges has the number of the next one.
    is_newest_seen: bool,
    /// How many packets up to that one had each the next number, one behind the other; none where it has no number that is new.
    in_order: u8,
}

/// Of a difference: how many packets before the last that was seen the acknowledged one came, where those between are known to have come in
/// their order, so that none of them had; [`crate::clocks::about`] says what that is worth. It stands in the place of a length.
pub(crate) const fn packets_behind(sample: &Sample) -> Option<usize> {
    (sample.length.units() as usize).checked_sub(1)
}

/// Takes in what a packet says of the other direction's packet before it, if that is news, and whether it bears out that this
/// is uTP. Several packets may be in one datagram where it `is_joined`; elsewhere what acknowledges one that was not seen, as a capture
/// may have lost it or have it later, is about none that was.
#[inline]
pub(crate) fn take(
    (mine, theirs): (&mut UtpSide, &mut UtpSide),
    time_us: u64,
    said: &Said,
    evidence: &mut Evidence,
    (echo, pool, is_joined): (&mut Series, &mut Pool, bool),
) {
    if time_us.saturating_add(BACK_US) < mine.last_us.max(theirs.last_us) {
        (*mine, *theirs) = (UtpSide::default(), UtpSide::default());
    }
    evidence.add(theirs, said);
    mine.note(said, theirs);
    let reported_us = (said.reports() && mine.reports_news(said, theirs)).then_some(theirs.last_us);
    mine.last_us = time_us;
    if said.kind != Kind::Reset
        && (is_joined || theirs.has_shown(said.ack))
        && let Some(time_us) = reported_us.filter(|&time_us| pool.wants(echo, time_us))
    {
        let behind = theirs.newest[0].1.wrapping_sub(said.ack);
        let units = if behind < theirs.in_order.into() { behind as u8 + 1 } else { 0 };
        pool.push(echo, Sample { time_us, raw: said.difference_us, length: Length::from_units(units) });
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

/// Whether a packet bears out that the flow is uTP, as far as the other direction tells.
fn judge(theirs: &UtpSide, said: &Said) -> Option<bool> {
    if theirs.connections == 0 || matches!(said.kind, Kind::Syn | Kind::Reset) {
        return None;
    }
    let fits = |&(id, seq): &(u16, u16)| {
        let behind = seq.wrapping_sub(said.ack).cast_signed();
        is_pair(said.id, id) && (-ACK_AHEAD_PACKETS..ACK_WINDOW_PACKETS).contains(&behind)
    };
    Some(theirs.newest[..theirs.connections.into()].iter().any(fits))
}

/// Whether ids are those of one connection's two directions. After a SYN the answer carries the same id.
const fn is_pair(one: u16, other: u16) -> bool {
    matches!(one.wrapping_sub(other), 0 | 1 | u16::MAX)
}

impl UtpSide {
    /// When the last packet came, if one did.
    pub(crate) fn last_us(&self) -> Option<u64> {
        (self.connections > 0).then_some(self.last_us)
    }

    // In the way of every packet; left to itself the compiler has it elsewhere now and then.
    #[inline(always)]
    pub(crate) fn note(&mut self, said: &Said, theirs: &Self) {
        let Said { seq, kind, .. } = *said;
        let is_numbered = matches!(kind, Kind::Data | Kind::Fin);
        let is_answered = theirs.connections > 0;
        self.is_repeated = is_numbered && is_answered && seq.wrapping_sub(theirs.ack).cast_signed() <= 0;
        let before = self.newest[0];
        let follows = before == (said.id, seq.wrapping_sub(1));
        self.remember(said.id, seq);
        let shows_newest = (is_numbered || kind == Kind::Syn) && self.newest[0].1 == seq;
        self.is_newest_seen = shows_newest || self.is_newest_seen && self.newest[0] == before;
        self.in_order = match is_numbered && !self.is_repeated && self.newest[0].1 == seq {
            true if follows => self.in_order.saturating_add(1),
            is_new => is_new.into(),
        };
        self.ack = said.ack;
        self.is_unreported |= kind != Kind::Reset;
    }

    /// Whether a packet of this number may have been seen.
    fn has_shown(&self, ack: u16) -> bool {
        self.newest[0].1.wrapping_sub(ack).cast_signed() >= i16::from(!self.is_newest_seen)
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
    /// stamp of data that it has already acknowledged: it says once more what it said before; and a connection that was silent
    /// says what it measured then, whatever others between the same sockets have met meanwhile.
    fn reports_news(&mut self, said: &Said, theirs: &mut Self) -> bool {
        if !is_pair(said.id, theirs.newest[0].0) {
            return false;
        }
        let reported = core::mem::replace(&mut self.reported, said.difference_us);
        let is_fresh = core::mem::take(&mut theirs.is_unreported);
        is_fresh && !(theirs.is_repeated && self.reported == reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two halves of a capture, the second one before the first.
    #[test]
    fn a_flow_whose_halves_were_put_together_in_the_wrong_order_is_judged_by_both() {
        let mut sides = (UtpSide::default(), UtpSide::default());
        let (mut pool, mut echo, mut evidence) = (Pool::default(), Series::EMPTY, Evidence::default());
        for k in (15_000..30_000_u16).chain(0..15_000) {
            let at = 1_000_000 + u64::from(k) * 10_000;
            let data = Said { kind: Kind::Data, id: 8, stamp_us: 1, difference_us: 1, seq: k, ack: 1 };
            let state = Said { kind: Kind::State, id: 7, seq: 1, ack: k, ..data };
            take((&mut sides.0, &mut sides.1), at, &data, &mut evidence, (&mut echo, &mut pool, false));
            take(
                (&mut sides.1, &mut sides.0),
                at + 100,
                &state,
                &mut evidence,
                (&mut echo, &mut pool, false),
            );
        }
        assert!(evidence.is_enough(), "{evidence:?}");
    }

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
