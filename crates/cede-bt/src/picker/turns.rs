//! Which pieces come before others, whatever their rarity: somebody waits for some files, or reads from the beginning on.
//!
//! Who has a piece of the first tier that is to be had is asked for one of these, and so on, unless it is late; among the pieces of a tier the rule
//! chooses as it does without. A tier that is all here is no tier any more.
//!
//! **What it leaves out.** Nothing is asked of two peers for it before the end of everything: what a slow peer owes of the first tier is
//! waited for.
//! **How it was validated.** `tests.rs`; beside other clients' peers in `cede`'s tests.

use super::Picker;
use crate::bitfield::Bitfield;
use alloc::vec::Vec;

/// Which pieces come before others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Turns {
    /// What is in the first set comes first, then what is in the second, and what is in none at the end.
    pub tiers: Vec<Bitfield>,
    /// Among those that are alike, the one with the lowest number comes first, not the rarest.
    pub in_order: bool,
}

impl Picker {
    /// Asks for pieces in these turns from now on; what has been asked for comes as it comes.
    pub fn take_turns(&mut self, turns: Turns) {
        self.turns = turns;
        self.leave_finished_tiers();
    }

    /// Whether pieces are asked for from the beginning on.
    #[must_use]
    pub const fn is_in_order(&self) -> bool {
        self.turns.in_order
    }

    /// What is to be asked for before all that is `open`, set by set; nothing where all are alike.
    #[must_use]
    pub fn before_others(&self, open: &Bitfield) -> Vec<Bitfield> {
        let parts = self.turns.tiers.iter().map(|tier| open.within(tier));
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// To be called when a piece has come, or others are wanted.
    pub(super) fn leave_finished_tiers(&mut self) {
        if !self.turns.tiers.is_empty() {
            let mut tiers = core::mem::take(&mut self.turns.tiers);
            tiers.retain(|tier| tier.iter_beyond(&self.have).any(|piece| self.wanted.has(piece)));
            self.turns.tiers = tiers;
        }
    }
}
