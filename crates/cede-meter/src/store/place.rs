//! Where flows are, the short ones and the long ones.

/// Packets that a short flow has at most, of which something is kept.
pub(crate) const ENTRIES_MAX: usize = 24;

/// Where a flow is; the highest bit tells those that are short.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place(u32);

impl Place {
    const SHORT: u32 = 1 << 31;

    pub(crate) const fn is_short(self) -> bool {
        self.0 & Self::SHORT != 0
    }

    pub(crate) const fn index(self) -> u32 {
        self.0 & !Self::SHORT
    }

    pub(crate) const fn short(index: u32) -> Self {
        Self(index | Self::SHORT)
    }

    pub(crate) const fn long(index: u32) -> Self {
        Self(index)
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}
