//! The header octets of one packet, held inline.

use core::fmt;
use core::ops::Deref;

/// Room for the longest header that Cede writes: 60 octets of TCP with all options, or 20 of uTP with a selective
/// acknowledgement of 256 packets (34) and a close reason (6).
pub const HEAD_CAPACITY: usize = 64;

/// Up to [`HEAD_CAPACITY`] header octets without an allocation.
#[derive(Clone, Copy)]
pub struct Head {
    octets: [u8; HEAD_CAPACITY],
    len: u8,
}

impl Head {
    /// No octets.
    pub const EMPTY: Self = Self { octets: [0; HEAD_CAPACITY], len: 0 };

    /// A head of `octets`; `None` where there are more than [`HEAD_CAPACITY`].
    #[inline]
    #[must_use]
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut head = Self::EMPTY;
        head.push(octets)?;
        Some(head)
    }

    /// The first `len` of these octets, or all of them where there are no more.
    #[inline]
    #[must_use]
    pub const fn beginning(octets: [u8; HEAD_CAPACITY], len: usize) -> Self {
        let len = if len < HEAD_CAPACITY { len as u8 } else { HEAD_CAPACITY as u8 };
        Self { octets, len }
    }

    /// Appends `octets`; `None`, and no change, where they do not fit.
    #[inline]
    pub fn push(&mut self, octets: &[u8]) -> Option<()> {
        let start = usize::from(self.len);
        self.octets.get_mut(start..start + octets.len())?.copy_from_slice(octets);
        self.len += octets.len() as u8;
        Some(())
    }

    /// The octets, to be changed in place.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.octets[..usize::from(self.len)]
    }
}

impl Deref for Head {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }
}

impl Default for Head {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Head {}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_beyond_the_capacity_are_refused_whole() {
        let mut head = Head::new(&[1; 60]).unwrap();
        assert!(head.push(&[2; 5]).is_none());
        assert_eq!(head.len(), 60);
        assert!(head.push(&[2; 4]).is_some());
        assert_eq!(head.len(), HEAD_CAPACITY);
        assert!(Head::new(&[0; 65]).is_none());
    }
}
