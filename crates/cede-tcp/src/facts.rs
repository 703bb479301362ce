//! The facts of the packets that one acknowledgement brings.

use alloc::vec::Vec;
use cede_cc::PacketFact;
use core::ops::Deref;

/// Facts by rising number. One alone, as most acknowledgements bring, stands on the stack, where memory is near; more lie in a buffer
/// that is used again.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    only: Option<PacketFact>,
    several: Vec<PacketFact>,
}

impl Facts {
    /// None yet, with a buffer to put several into.
    pub(crate) fn in_buffer(mut buffer: Vec<PacketFact>) -> Self {
        buffer.clear();
        Self { only: None, several: buffer }
    }

    /// The buffer, for the next time.
    pub(crate) fn into_buffer(self) -> Vec<PacketFact> {
        self.several
    }

    pub(crate) fn push(&mut self, fact: PacketFact) {
        if self.only.is_none() && self.several.is_empty() {
            self.only = Some(fact);
            return;
        }
        self.several.extend(self.only.take());
        self.several.push(fact);
    }
}

impl Deref for Facts {
    type Target = [PacketFact];

    fn deref(&self) -> &[PacketFact] {
        self.only.as_ref().map_or(&self.several, core::slice::from_ref)
    }
}
