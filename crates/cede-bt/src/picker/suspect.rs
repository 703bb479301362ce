//! Pieces that turned out bad and that nobody had sent alone.
//!
//! Who spoilt such a piece cannot be told, so nobody is charged with it. It is asked of a single peer from then on, and whoever
//! sends all of a bad piece has sent what is bad of it. It comes before other pieces, as a liar spoils more of those until it is
//! known. That peer has some time for it, twice as long at each attempt, and is
//! then left out for as long: a liar that falls silent keeps nobody waiting for ever, and a slow peer that is alone gets done.

use super::{NOT_BEGUN, Picker};
use crate::bitfield::Bitfield;
use crate::wire::BlockRef;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// What the first peer that a bad piece is asked of has for it.
const FIRST_ATTEMPT: Duration = Duration::from_secs(60);
/// The time is doubled so often at most.
const DOUBLINGS_MAX: u32 = 10;

/// A piece that is asked of one peer.
#[derive(Clone, Debug)]
pub(super) struct Suspect {
    pub(super) piece: u32,
    owner: Option<u32>,
    /// Whose time was over last.
    barred: Option<u32>,
    /// When it was first seen as it stands.
    since: Option<Instant>,
    attempts: u32,
}

impl Suspect {
    const fn new(piece: u32) -> Self {
        Self { piece, owner: None, barred: None, since: None, attempts: 0 }
    }

    fn is_closed_to(&self, peer: u32) -> bool {
        self.owner.is_some_and(|owner| owner != peer) || self.barred == Some(peer)
    }

    /// Whether what began with `since` is over. Begins it where it has not been seen before.
    fn is_over(&mut self, now: Instant) -> bool {
        let allowed = FIRST_ATTEMPT * (1 << self.attempts.min(DOUBLINGS_MAX));
        now.since(*self.since.get_or_insert(now)) >= allowed
    }
}

impl Picker {
    fn suspect_of(&self, piece: u32) -> Option<&Suspect> {
        self.suspects.iter().find(|suspect| suspect.piece == piece)
    }

    fn suspect_of_mut(&mut self, piece: u32) -> Option<&mut Suspect> {
        self.suspects.iter_mut().find(|suspect| suspect.piece == piece)
    }

    /// From now on this piece is asked of one peer at a time.
    pub fn suspect(&mut self, piece: u32) {
        if !self.is_suspect(piece) {
            self.suspects.push(Suspect::new(piece));
        }
    }

    /// What came of it was bad: somebody else may be asked.
    pub(super) fn forget_owner(&mut self, piece: u32) {
        if let Some(suspect) = self.suspect_of_mut(piece) {
            *suspect = Suspect { attempts: suspect.attempts, ..Suspect::new(piece) };
        }
    }

    /// Pieces that a peer is not to be asked for, as another one is.
    pub fn closed_to(&self, peer: u32) -> impl Iterator<Item = u32> + '_ {
        self.suspects.iter().filter(move |suspect| suspect.is_closed_to(peer)).map(|suspect| suspect.piece)
    }

    /// Asks a peer for blocks of a piece that it alone is asked for, or may be.
    pub fn pick_suspect(&mut self, theirs: &Bitfield, peer: u32, wanted: u32, out: &mut Vec<BlockRef>) {
        let open = |suspect: &&Suspect| theirs.has(suspect.piece) && !suspect.is_closed_to(peer);
        let mut pieces = self.suspects.iter().filter(open).map(|suspect| suspect.piece);
        let has_some = |&piece: &u32| self.has_free(piece) || self.begun[piece as usize] == NOT_BEGUN;
        if let Some(piece) = pieces.find(has_some) {
            self.pick_of(piece, wanted, out);
        }
    }

    /// A block of this piece is asked of this peer.
    pub fn assign(&mut self, piece: u32, peer: u32) {
        if let Some(suspect) = self.suspect_of_mut(piece).filter(|suspect| suspect.owner.is_none()) {
            (suspect.owner, suspect.barred, suspect.since) = (Some(peer), None, None);
        }
    }

    /// A peer is gone, or does not send: what it has begun alone is begun anew. Says which pieces.
    pub fn disown(&mut self, peer: u32) -> Vec<u32> {
        let mut left = Vec::new();
        for at in 0..self.suspects.len() {
            let Suspect { piece, owner, .. } = self.suspects[at];
            if owner == Some(peer) && self.is_under_way(piece) {
                self.begin_anew(piece);
                (self.suspects[at].owner, self.suspects[at].since) = (None, None);
                left.push(piece);
            }
        }
        left
    }

    /// Takes pieces from those whose time is over; says which, and from whom.
    pub fn take_from_late(&mut self, now: Instant) -> Vec<(u32, u32)> {
        let mut taken = Vec::new();
        for at in 0..self.suspects.len() {
            let Suspect { piece, owner, .. } = self.suspects[at];
            let (is_idle, is_over) = (!self.is_under_way(piece), self.suspects[at].is_over(now));
            let suspect = &mut self.suspects[at];
            match owner {
                None if is_over => suspect.barred = None,
                Some(owner) if is_over && !is_idle => {
                    (suspect.owner, suspect.barred, suspect.since) = (None, Some(owner), Some(now));
                    suspect.attempts += 1;
                    self.begin_anew(piece);
                    taken.push((piece, owner));
                }
                _ => {}
            }
        }
        taken
    }

    /// Whether a peer has sent something of a piece that has not been checked.
    #[must_use]
    pub fn has_part(&self, peer: u32) -> bool {
        self.partials.iter().any(|partial| partial.has_part(peer))
    }

    pub(super) fn is_suspect(&self, piece: u32) -> bool {
        self.suspect_of(piece).is_some()
    }

    /// Whether a piece that one peer is asked for may come from this one.
    pub(super) fn may_come_from(&self, piece: u32, peer: u32) -> bool {
        self.suspect_of(piece).is_none_or(|suspect| suspect.owner == Some(peer))
    }

    /// It has been begun, and is not whole.
    fn is_under_way(&self, piece: u32) -> bool {
        let begun = self.begun[piece as usize];
        begun != NOT_BEGUN && self.partials[begun as usize].missing > 0
    }

    pub(super) fn begin_anew(&mut self, piece: u32) {
        let partial = self.remove_partial(self.begun[piece as usize] as usize);
        self.free -= partial.free;
        if self.lacks(piece) {
            self.rarity.insert(piece);
        }
    }
}
