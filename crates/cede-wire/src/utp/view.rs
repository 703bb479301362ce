//! The fields of a header, read without judging it.

use super::{Extension, HEADER_BYTES};
use cede_units::Seq16;

/// The fields of what may be a uTP packet: any 20 octets or more have them. A meter that watches strangers' packets
/// decides for itself what it believes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View<'a> {
    header: &'a [u8; HEADER_BYTES],
    rest: &'a [u8],
}

impl<'a> View<'a> {
    /// A view of `octets`; `None` where they are fewer than a header has.
    #[inline]
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Option<Self> {
        match octets.split_first_chunk() {
            Some((header, rest)) => Some(Self { header, rest }),
            None => None,
        }
    }

    #[inline]
    pub(super) const fn of(header: &'a [u8; HEADER_BYTES]) -> Self {
        Self { header, rest: &[] }
    }

    const fn u16_at(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.header[at], self.header[at + 1]])
    }

    const fn u32_at(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.header[at], self.header[at + 1], self.header[at + 2], self.header[at + 3]])
    }

    /// The number of the packet's kind, 0 to 15; [`super::Kind`] names 0 to 4.
    #[must_use]
    pub const fn kind_number(&self) -> u8 {
        self.header[0] >> 4
    }

    /// The version, 0 to 15.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.header[0] & 0x0f
    }

    /// The kind of the first extension; zero for none.
    #[must_use]
    pub const fn first_extension(&self) -> u8 {
        self.header[1]
    }

    /// The connection id.
    #[must_use]
    pub const fn connection_id(&self) -> u16 {
        self.u16_at(2)
    }

    /// The sender's clock in microseconds modulo 2^32.
    #[must_use]
    pub const fn timestamp_us(&self) -> u32 {
        self.u32_at(4)
    }

    /// The one-way delay that the sender saw last, in microseconds of two clocks' difference modulo 2^32.
    #[must_use]
    pub const fn timestamp_difference_us(&self) -> u32 {
        self.u32_at(8)
    }

    /// The receive window in octets.
    #[must_use]
    pub const fn window_bytes(&self) -> u32 {
        self.u32_at(12)
    }

    /// The packet's number.
    #[must_use]
    pub const fn seq(&self) -> Seq16 {
        Seq16(self.u16_at(16))
    }

    /// The acknowledged number.
    #[must_use]
    pub const fn ack(&self) -> Seq16 {
        Seq16(self.u16_at(18))
    }

    /// The octets behind the fixed header: extensions and payload.
    #[must_use]
    pub const fn behind_header(&self) -> &'a [u8] {
        self.rest
    }

    /// The extensions as far as they are whole; a chain that does not fit ends early.
    pub fn extensions(&self) -> impl Iterator<Item = Extension<'a>> + Clone + use<'a> {
        super::extension::Walk::new(self.first_extension(), self.rest)
    }
}
