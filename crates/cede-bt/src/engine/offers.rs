//! A seed that seems to have nothing, and gives each piece to one peer (super-seeding).
//!
//! Source: BEP 16. A peer is told of two pieces that nobody has (libtorrent; the BEP has one), and of another when somebody else
//! tells that it has one of those: whoever does not pass on what it gets gets little. What the BEP leaves open: a piece that others
//! had before is done with when the peer has it, as is one where nobody is left to pass it on to; and after a minute the peer is
//! told of another all the same, so that nothing stands still where peers cannot reach each other.
//!
//! **What it leaves out.** It is never given up by itself once there are other seeds: it is asked for by hand.
//! **How it was validated.** Swarms in `tests/swarm.rs`: what a seed has sent when the swarm has a copy.

use super::stage::Stage;
use super::{Engine, PeerAddress};
use crate::bitfield::Bitfield;
use crate::wire::Message;
use alloc::vec;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// Pieces that a peer is told of at a time (libtorrent).
const OFFERS: usize = 2;
/// Who has a piece that nobody else gets is told of another after that.
const PATIENCE: Duration = Duration::from_secs(60);
/// Many clients do not tell of pieces to who is known to have them: who wants nothing so long after it was told of one has it.
const SATED: Duration = Duration::from_secs(5);

/// What a peer has been told of.
#[derive(Debug)]
pub(super) struct Offered {
    shown: Bitfield,
    open: Vec<Offer>,
}

/// A piece that is to come to others by this peer.
#[derive(Clone, Copy, Debug)]
struct Offer {
    piece: u32,
    told_at: Instant,
    /// Since when the peer has it.
    had_since: Option<Instant>,
}

impl Offered {
    fn new(pieces: u32) -> Self {
        Self { shown: Bitfield::none(pieces), open: Vec::new() }
    }
}

impl<A: PeerAddress> Engine<A> {
    /// Seems to have nothing from now on, as long as everything is here, and tells each peer of other pieces. To be called before there
    /// are connections.
    pub const fn super_seed(&mut self) {
        self.is_super_seed = true;
    }

    pub(super) const fn is_super_seeding(&self) -> bool {
        let is_of_use = self.geometry.pieces() > OFFERS as u32;
        self.is_super_seed && is_of_use && self.picker.have().is_full()
    }

    /// Whether a peer has not been told that we have a piece.
    pub(super) fn hides(&self, index: u32, piece: u32) -> bool {
        let is_shown = || {
            let offered = self.peek(index).and_then(|conn| conn.out.offered.as_ref());
            offered.is_some_and(|offered| offered.shown.has(piece))
        };
        self.is_super_seeding() && !is_shown()
    }

    /// Looks at what peers have and tells them of more. Who has not said what it has is waited for until the next tick.
    pub(super) fn tend_offers(&mut self, now: Instant, is_tick: bool) {
        if !self.is_super_seeding() {
            return;
        }
        for index in self.list.clone() {
            if is_tick || self.peek(index).is_some_and(|conn| conn.stage == Stage::Talking) {
                self.end_offers(now, index);
                self.make_offers(now, index);
            }
        }
    }

    fn end_offers(&mut self, now: Instant, index: u32) {
        let (peers, picker) = (self.list.len() as u32, &self.picker);
        let Some(conn) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) else { return };
        let Some(offered) = &mut conn.out.offered else { return };
        offered.open.retain_mut(|offer| {
            let has = conn.have.has(offer.piece);
            if has || !conn.peer_interested && now.since(offer.told_at) >= SATED {
                offer.had_since.get_or_insert(now);
            }
            let Some(since) = offer.had_since else { return true };
            let others = picker.availability(offer.piece) - u32::from(has);
            others == 0 && peers > 1 && now.since(since) < PATIENCE
        });
    }

    fn make_offers(&mut self, now: Instant, index: u32) {
        let (pieces, mut is_one_left) = (self.geometry.pieces(), false);
        loop {
            let Some(conn) = self.slots.get_mut(index as usize).and_then(Option::as_deref_mut) else {
                return;
            };
            let offered = conn.out.offered.get_or_insert_with(|| Offered::new(pieces));
            // libtorrent hangs up on who turns out to have everything while it wants nothing of it: the last two are told together.
            if offered.open.len() >= OFFERS && !is_one_left {
                return;
            }
            let Some((piece, left)) = self.next_offer(index) else { return };
            is_one_left = left == 1;
            if let Some(offered) = self.at(index).and_then(|conn| conn.out.offered.as_mut()) {
                offered.shown.insert(piece);
                offered.open.push(Offer { piece, told_at: now, had_since: None });
            }
            self.say(now, index, &Message::Have(piece));
            self.totals.haves_sent += 1;
        }
    }

    /// Of the pieces that the peer lacks and has not been told of the one that fewest have, or are about to have; any of those. Also how
    /// many are left then.
    fn next_offer(&mut self, index: u32) -> Option<(u32, usize)> {
        let mut coming = vec![0_u32; self.geometry.pieces() as usize];
        let offers = self.slots.iter().flatten().filter_map(|conn| Some((conn, conn.out.offered.as_ref()?)));
        for (conn, offer) in offers.flat_map(|(conn, offered)| offered.open.iter().map(move |it| (conn, it)))
        {
            coming[offer.piece as usize] += u32::from(!conn.have.has(offer.piece));
        }
        let conn = self.peek(index)?;
        let shown = &conn.out.offered.as_ref()?.shown;
        let (mut best, mut least, mut count) = (Vec::new(), u32::MAX, 0_usize);
        for piece in (0..).take(coming.len()).filter(|&piece| !conn.have.has(piece) && !shown.has(piece)) {
            count += 1;
            let holders = self.picker.availability(piece) + coming[piece as usize];
            if holders < least {
                (least, best) = (holders, Vec::new());
            }
            if holders == least {
                best.push(piece);
            }
        }
        let at = self.random.below(best.len().max(1) as u64) as usize;
        best.get(at).map(|&piece| (piece, count - 1))
    }
}
