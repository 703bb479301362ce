//! A running hash of everything that happens, to show that two runs were the same.

use cede_net::{Datagram, HostId};
use cede_units::Instant;

/// A 64-bit hash over deliveries and drops: their times, places and octets, in order.
///
/// It tells runs apart; it is no protection against someone who wants two runs to look the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tape {
    hash: u64,
    events: u64,
}

impl Default for Tape {
    fn default() -> Self {
        Self { hash: 0x6a09_e667_f3bc_c908, events: 0 }
    }
}

impl Tape {
    /// The hash so far.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// How many events went into it.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn delivered(&mut self, at: Instant, to: HostId, datagram: &Datagram) {
        self.events += 1;
        self.mix(at.as_nanos());
        self.mix(u64::from(to.0) | (u64::from(datagram.source.host.0) << 32));
        for chunk in datagram.head.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        self.mix(u64::from(datagram.payload.len()));
    }

    pub(crate) fn dropped(&mut self, at: Instant, link: u32) {
        self.events += 1;
        self.mix(at.as_nanos());
        self.mix(!u64::from(link));
    }

    pub(crate) fn marked(&mut self, at: Instant, link: u32) {
        self.events += 1;
        self.mix(at.as_nanos());
        self.mix(!(u64::from(link) | (1 << 32)));
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}
