//! Datagrams that leave at the same moment for the same place: one system call carries those of one size, of which the
//! last may be shorter (Linux `UDP_SEGMENT`).

use super::direction::Parcel;
use cede_units::Instant;

/// Octets that one call can carry: the largest payload of UDP over IPv4 (RFC 768, RFC 791).
const MAX_BYTES: usize = 65_507;

#[derive(Default)]
pub(super) struct Batch {
    pub octets: Vec<u8>,
    pub client: usize,
    pub segment: usize,
    /// When each should have left.
    pub due: Vec<Instant>,
    sealed: bool,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    pub fn fits(&self, parcel: &Parcel, max_segments: usize) -> bool {
        let bytes = parcel.octets.len();
        self.is_empty()
            || (!self.sealed
                && self.client == parcel.client
                && (1..=self.segment).contains(&bytes)
                && self.octets.len() + bytes <= MAX_BYTES
                && self.due.len() < max_segments)
    }

    pub fn push(&mut self, due: Instant, parcel: &Parcel) {
        if self.is_empty() {
            (self.client, self.segment) = (parcel.client, parcel.octets.len());
        }
        self.sealed = parcel.octets.len() < self.segment;
        self.octets.extend_from_slice(&parcel.octets);
        self.due.push(due);
    }

    pub fn clear(&mut self) {
        self.octets.clear();
        self.due.clear();
        self.sealed = false;
    }
}
