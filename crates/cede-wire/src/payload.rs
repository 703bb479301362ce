//! What a packet carries behind its header, without copying it.

use alloc::sync::Arc;
use alloc::vec::Vec;

/// The payload of one packet, or a run of a byte stream: either octets shared by reference count, or a *pattern*,
/// whose octets are a function of their place in the stream and so need no memory.
///
/// Simulations move patterns: gigabytes pass without a copy, yet every octet is defined, can be written to a
/// capture, and shows at the receiver whether the stream arrived whole and in order.
#[derive(Clone, Debug, Default)]
pub enum Payload {
    // Each begins with how many octets it has, so that the place of that is the same in all of them.
    /// Nothing.
    #[default]
    Empty,
    /// `len` octets of the pattern from stream offset `start` on, see [`pattern_octet`].
    Pattern {
        /// How many.
        len: u32,
        /// Offset of the first octet in the stream.
        start: u64,
    },
    /// `len` octets of a shared buffer from `start` on.
    Shared {
        /// How many.
        len: u32,
        /// Offset of the first octet in the buffer.
        start: u32,
        /// The buffer.
        buffer: Arc<[u8]>,
    },
    /// `len` octets of two payloads in a row, of which one at least is no buffer, from `start` of the first on, to beyond its end.
    Pair {
        /// How many.
        len: u32,
        /// Offset of the first octet in the first.
        start: u32,
        /// The two.
        parts: Arc<[Self; 2]>,
    },
}

/// The pattern's octet at `offset` of a stream: a multiplicative hash, so that shifted or swapped data shows.
///
/// It has seven bits: programs that read captures guess at what a stream carries, and the magic numbers that they look
/// for (Thrift's, say) have the eighth.
#[must_use]
pub const fn pattern_octet(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as u8
}

impl Payload {
    /// A payload that owns a copy of `octets`.
    ///
    /// # Panics
    /// Never for what fits a datagram; a buffer of 4 GiB or more is cut to `u32::MAX` octets.
    #[must_use]
    pub fn copy_from(octets: &[u8]) -> Self {
        Self::from_shared(Arc::from(octets))
    }

    /// A payload of the whole of a shared buffer.
    #[must_use]
    pub fn from_shared(buffer: Arc<[u8]>) -> Self {
        match u32::try_from(buffer.len()).unwrap_or(u32::MAX) {
            0 => Self::Empty,
            len => Self::Shared { buffer, start: 0, len },
        }
    }

    /// Octets.
    #[must_use]
    pub const fn len(&self) -> u32 {
        match self {
            Self::Empty => 0,
            Self::Pattern { len, .. } | Self::Shared { len, .. } | Self::Pair { len, .. } => *len,
        }
    }

    /// True for no octets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the first `n` octets off and returns them; all of them where there are no more than `n`.
    pub fn split_to(&mut self, n: u32) -> Self {
        if n >= self.len() {
            return core::mem::take(self);
        }
        let front = self.part(0, n);
        self.skip(n);
        front
    }

    /// Takes the first `n` octets off, or all where there are no more.
    pub fn skip(&mut self, n: u32) {
        if n >= self.len() {
            *self = Self::Empty;
            return;
        }
        match self {
            Self::Empty => {}
            Self::Pattern { start, len } => (*start, *len) = (*start + u64::from(n), *len - n),
            Self::Shared { start, len, .. } => (*start, *len) = (*start + n, *len - n),
            Self::Pair { parts, start, len } => *self = Self::of_pair(parts, *start + n, *len - n),
        }
    }

    /// Takes as many of the first octets off as `out` holds, into it, and answers how many those were.
    pub fn take_into(&mut self, out: &mut [u8]) -> usize {
        let n = self.copy_to(out);
        self.skip(n as u32);
        n
    }

    /// Octets `at .. at + n`, all of which there are.
    fn part(&self, at: u32, n: u32) -> Self {
        match self {
            _ if n == 0 => Self::Empty,
            Self::Empty => Self::Empty,
            Self::Pattern { start, .. } => Self::Pattern { start: *start + u64::from(at), len: n },
            Self::Shared { buffer, start, .. } => {
                Self::Shared { buffer: Arc::clone(buffer), start: *start + at, len: n }
            }
            Self::Pair { parts, start, .. } => Self::of_pair(parts, *start + at, n),
        }
    }

    /// `len` octets of a pair from `start` on: of one part alone where they lie in one.
    fn of_pair(parts: &Arc<[Self; 2]>, start: u32, len: u32) -> Self {
        let middle = parts[0].len();
        if start >= middle {
            parts[1].part(start - middle, len)
        } else if start + len > middle {
            Self::Pair { parts: Arc::clone(parts), start, len }
        } else {
            parts[0].part(start, len)
        }
    }

    /// This and `next` as one payload: without a copy where one continues the other or a pattern is among them.
    #[must_use]
    pub fn joined(mut self, next: Self) -> Self {
        let Err(next) = self.try_extend(next) else { return self };
        if let (Self::Shared { .. }, Self::Shared { .. }) = (&self, &next) {
            let mut octets = self.to_vec();
            octets.extend_from_slice(next.as_slice().unwrap_or_default());
            return Self::from_shared(octets.into());
        }
        let len = self.len() + next.len();
        Self::Pair { parts: Arc::new([self, next]), start: 0, len }
    }

    /// Joins `next` to the end where it continues this payload without a copy (the next run of the same pattern, or
    /// of the same buffer); hands it back where it does not.
    ///
    /// # Errors
    /// `next` itself, unchanged.
    pub fn try_extend(&mut self, next: Self) -> Result<(), Self> {
        match (&mut *self, &next) {
            (_, Self::Empty) => Ok(()),
            (Self::Empty, _) => {
                *self = next;
                Ok(())
            }
            (Self::Pattern { start, len }, Self::Pattern { start: more, len: n })
                if *start + u64::from(*len) == *more && len.checked_add(*n).is_some() =>
            {
                *len += n;
                Ok(())
            }
            (Self::Shared { buffer, start, len }, Self::Shared { buffer: other, start: more, len: n })
                if Arc::ptr_eq(buffer, other) && *start + *len == *more =>
            {
                *len += n;
                Ok(())
            }
            _ => Err(next),
        }
    }

    /// The octets, where they lie in memory; `None` for a pattern, and for a pair.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[u8]> {
        match self {
            Self::Empty => Some(&[]),
            Self::Pattern { .. } | Self::Pair { .. } => None,
            Self::Shared { buffer, start, len } => {
                Some(&buffer[*start as usize..*start as usize + *len as usize])
            }
        }
    }

    /// Octets `start .. start + len` of a shared buffer, as far as it has them.
    #[must_use]
    pub fn from_part(buffer: &Arc<[u8]>, start: u32, len: u32) -> Self {
        let held = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        match len.min(held.saturating_sub(start)) {
            0 => Self::Empty,
            len => Self::Shared { buffer: Arc::clone(buffer), start, len },
        }
    }

    /// Writes the octets into `out`, as many as fit, and returns how many were written.
    pub fn copy_to(&self, out: &mut [u8]) -> usize {
        let n = out.len().min(self.len() as usize);
        self.copy_part(0, &mut out[..n]);
        n
    }

    /// Fills `out` with the octets from `at` on, as many of which there are.
    fn copy_part(&self, at: u32, out: &mut [u8]) {
        match self {
            Self::Empty => {}
            Self::Pattern { start, .. } => {
                for (octet, offset) in out.iter_mut().zip(*start + u64::from(at)..) {
                    *octet = pattern_octet(offset);
                }
            }
            Self::Shared { buffer, start, .. } => {
                let start = (*start + at) as usize;
                out.copy_from_slice(&buffer[start..start + out.len()]);
            }
            Self::Pair { parts, start, .. } => {
                let (at, middle) = (*start + at, parts[0].len());
                let (front, back) = out.split_at_mut(out.len().min(middle.saturating_sub(at) as usize));
                if !front.is_empty() {
                    parts[0].copy_part(at, front);
                }
                if !back.is_empty() {
                    parts[1].copy_part(at.max(middle) - middle, back);
                }
            }
        }
    }

    /// The octets in a vector of their own.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut octets = alloc::vec![0; self.len() as usize];
        self.copy_to(&mut octets);
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_and_joining_a_pattern_is_lossless() {
        let mut rest = Payload::Pattern { start: 100, len: 10 };
        let mut front = rest.split_to(4);
        assert_eq!((front.len(), rest.len()), (4, 6));
        assert_eq!(front.to_vec()[3], pattern_octet(103));
        front.try_extend(rest).unwrap();
        assert_eq!(front.to_vec(), Payload::Pattern { start: 100, len: 10 }.to_vec());
    }

    #[test]
    fn shared_octets_are_split_without_copying() {
        let mut rest = Payload::copy_from(b"scavenger");
        let mut front = rest.split_to(4);
        assert_eq!(front.to_vec(), b"scav");
        assert_eq!(rest.to_vec(), b"enger");
        front.try_extend(rest).unwrap();
        assert_eq!(front.to_vec(), b"scavenger");
    }

    #[test]
    fn what_is_taken_off_the_front_is_the_same_in_each_way() {
        let (octets, pattern) = (Payload::copy_from(b"scav"), Payload::Pattern { start: 7, len: 5 });
        let pair = octets.clone().joined(pattern.clone());
        let nested = pattern.clone().joined(pair.clone());
        for whole in [Payload::Empty, octets, pattern, pair, nested] {
            let all = whole.to_vec();
            for n in 0..=all.len() + 1 {
                let (front, back) = all.split_at(n.min(all.len()));
                let [mut split, mut skipped, mut taken] = core::array::from_fn(|_| whole.clone());
                assert_eq!(split.split_to(n as u32).to_vec(), front);
                skipped.skip(n as u32);
                let mut out = alloc::vec![0; n];
                assert_eq!(taken.take_into(&mut out), front.len());
                assert_eq!(&out[..front.len()], front);
                assert!([split, skipped, taken].iter().all(|rest| rest.to_vec() == back));
            }
        }
    }

    #[test]
    fn a_part_of_a_buffer_lies_within_it() {
        let buffer: Arc<[u8]> = Arc::from(&b"scavenger"[..]);
        assert_eq!(Payload::from_part(&buffer, 4, 3).as_slice(), Some(&b"eng"[..]));
        assert_eq!(Payload::from_part(&buffer, 7, 9).as_slice(), Some(&b"er"[..]));
        assert!(Payload::from_part(&buffer, 9, 1).is_empty());
        assert_eq!(Payload::Pattern { start: 0, len: 1 }.as_slice(), None);
    }

    #[test]
    fn what_does_not_continue_is_handed_back() {
        let mut front = Payload::copy_from(b"one");
        assert!(front.try_extend(Payload::copy_from(b"two")).is_err());
        let mut pattern = Payload::Pattern { start: 0, len: 5 };
        assert!(pattern.try_extend(Payload::Pattern { start: 6, len: 1 }).is_err());
    }

    #[test]
    fn a_pair_is_cut_as_its_octets_are() {
        let parts = [
            Payload::copy_from(b"head"),
            Payload::Pattern { start: 7, len: 5 },
            Payload::copy_from(b"tail"),
            Payload::copy_from(b"s"),
        ];
        let octets: Vec<u8> = parts.iter().flat_map(Payload::to_vec).collect();
        let whole = parts.into_iter().fold(Payload::Empty, Payload::joined);
        assert_eq!((whole.to_vec(), whole.len(), whole.as_slice()), (octets.clone(), 14, None));
        for (from, to) in (0..=14).flat_map(|from| (from..=14).map(move |to| (from, to))) {
            let mut rest = whole.clone();
            let front = rest.split_to(from);
            let middle = rest.split_to(to - from);
            assert_eq!([&front, &middle, &rest].map(Payload::len), [from, to - from, 14 - to]);
            assert_eq!([front.to_vec(), middle.to_vec(), rest.to_vec()].concat(), octets, "{from} {to}");
        }
    }

    #[test]
    fn taking_everything_leaves_nothing() {
        let mut payload = Payload::copy_from(b"abc");
        assert_eq!(payload.split_to(9).len(), 3);
        assert!(payload.is_empty());
        assert!(payload.split_to(1).is_empty());
    }
}
