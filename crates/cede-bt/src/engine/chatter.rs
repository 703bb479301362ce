//! Talk of no use: whoever says without end what changes nothing is let go.
//!
//! What a peer says costs whoever listens: its part of a limit on what is read, and time. Each octet that comes counts, whatever it says
//! (keep-alives, the same again, what nobody understands, blocks that nobody asked for), and what is of use is taken off again: blocks that were
//! asked for, pieces that the peer had not told of before, requests that are taken, and what our own words have it answer. What is
//! left is forgotten at a rate that no client comes near to. A host whose caller was let go for it does not begin anew by calling again.

use super::hosts::Hosts;
use cede_units::{Duration, Instant};
use core::net::IpAddr;

/// So many octets of no use may have come, beyond two bitfields. Of the requests that are on their way when we choke a peer, which nobody can help, 2,000
/// are 34 kB.
pub(super) const CHATTER_MAX: u32 = 128 << 10;
/// So many octets are forgotten in a second.
const FORGOTTEN_PER_S: u32 = 4 << 10;
/// What comes with a block beside its octets: its head, and word of what else has changed.
const BESIDE_A_BLOCK: u32 = 64;
/// A word of a piece, and what it has the other end say.
const BESIDE_A_PIECE: u32 = 16;
/// A request, or a message of about its length, that is answered.
const QUESTION: u32 = 64;

/// What one peer has said for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chatter {
    octets: u32,
    /// Octets of blocks that it is not asked for any more, and may have sent before it heard of that.
    taken_back: u64,
}

impl Chatter {
    /// So many octets are about to be looked at.
    pub(super) const fn hear(&mut self, octets: u32) {
        self.octets = self.octets.saturating_add(octets);
    }

    /// Octets that were of use.
    const fn excuse(&mut self, octets: u32) {
        self.octets = self.octets.saturating_sub(octets);
    }

    /// Octets of no use, and not forgotten yet.
    pub(super) const fn octets(&self) -> u32 {
        self.octets
    }

    /// So many octets of blocks are not asked for any more.
    pub(super) const fn take_back(&mut self, octets: u32) {
        self.taken_back += octets as u64;
    }

    /// Octets of a block have come, and whether that was asked for, or is missing.
    pub(super) fn note_data(&mut self, octets: u32, is_due: bool) {
        let late = if is_due { 0 } else { self.taken_back.min(u64::from(octets)) as u32 };
        self.taken_back -= u64::from(late);
        self.excuse(if is_due { octets } else { late });
    }

    /// All of a block has come.
    pub(super) fn note_block(&mut self) {
        self.excuse(BESIDE_A_BLOCK);
    }

    /// The peer has told of so many pieces that it was not known to have, or was told of them.
    pub(super) fn note_pieces(&mut self, pieces: u32) {
        self.excuse(pieces.saturating_mul(BESIDE_A_PIECE));
    }

    /// What the peer asks for it gets.
    pub(super) fn note_question(&mut self) {
        self.excuse(QUESTION);
    }

    /// The peer has refused what it was asked for.
    pub(super) fn note_answer(&mut self) {
        self.excuse(QUESTION);
    }

    /// Time has gone by.
    pub(super) fn forget(&mut self, time: Duration) {
        self.excuse(u32::try_from(forgotten_in(time)).unwrap_or(u32::MAX));
    }
}

const fn forgotten_in(time: Duration) -> u64 {
    (time.as_nanos() / 1_000_000_000).saturating_mul(FORGOTTEN_PER_S as u64)
}

/// Hosts whose callers were let go, and how much those had said.
#[derive(Debug, Default)]
pub(super) struct Chatterers(Hosts);

impl Chatterers {
    /// A host's caller was let go for so many octets.
    pub(super) fn note(&mut self, now: Instant, host: IpAddr, octets: u32) {
        self.0.note(now, host, octets);
    }

    /// What is left by now of what a host has said.
    pub(super) fn of(&self, now: Instant, host: IpAddr) -> Chatter {
        let Some((since, octets)) = self.0.get(host) else { return Chatter::default() };
        let mut left = Chatter { octets, taken_back: 0 };
        left.forget(now.since(since));
        left
    }
}
