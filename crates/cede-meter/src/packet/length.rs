//! Lengths of packets in an octet.

/// Lengths are kept in units of so many octets.
const LENGTH_UNIT_BYTES: u32 = 8;

/// The length of a packet on the wire, to eight octets; the longest stands for all beyond 2,040.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Length(u8);

impl Length {
    #[inline]
    pub(crate) fn of(bytes: u32) -> Self {
        Self((bytes / LENGTH_UNIT_BYTES).min(u8::MAX.into()) as u8)
    }

    pub(crate) fn bytes(self) -> f64 {
        f64::from(u32::from(self.0) * LENGTH_UNIT_BYTES)
    }

    pub(crate) const fn from_units(units: u8) -> Self {
        Self(units)
    }

    pub(crate) const fn units(self) -> u8 {
        self.0
    }
}
