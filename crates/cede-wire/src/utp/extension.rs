//! The chain of extensions behind the header. Each names the kind of the one after it; kind 0 ends the chain.

use super::DecodeError;

/// Selective acknowledgement: a mask of packets received beyond a gap.
pub const EXT_SELECTIVE_ACK: u8 = 1;
/// "Extension bits", 8 octets, obsolete.
pub const EXT_BITS: u8 = 2;
/// Why the sender closes, as libtorrent sends it; not in BEP 29.
pub const EXT_CLOSE_REASON: u8 = 3;
/// A packet's payload comes in parts, and this is one: where it belongs and how long the whole is, as Cede repeats to its own
/// kind what has become too large for the path; see [`Extensions::part`]. The number is nobody's.
pub const EXT_PART: u8 = 0xfd;
/// A mask of packets received far beyond the gap, which Cede sends to its own kind behind a selective acknowledgement of
/// full length; see [`Extensions::far_ack`]. The number is nobody's.
pub const EXT_FAR_ACK: u8 = 0xfe;
/// Octets without meaning, which Cede sends to make a path-MTU probe as large as it should be. The number is nobody's:
/// receivers skip what they do not know.
pub const EXT_PADDING: u8 = 0xff;

/// One extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extension<'a> {
    /// Which, see [`EXT_SELECTIVE_ACK`] and its neighbours; others are legal and mean nothing to us.
    pub kind: u8,
    /// Its octets, 0 to 255 of them.
    pub body: &'a [u8],
}

/// A chain of extensions, every one of them whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extensions<'a> {
    first: u8,
    chain: &'a [u8],
}

/// The kind of the next extension, this one's body, and the octets behind it.
type Link<'a> = (u8, &'a [u8], &'a [u8]);

fn split_link(octets: &[u8]) -> Result<Link<'_>, DecodeError> {
    let (&[next, len], rest) =
        octets.split_first_chunk::<2>().ok_or(DecodeError::TruncatedExtensionHeader)?;
    let (body, rest) = rest.split_at_checked(usize::from(len)).ok_or(DecodeError::ExtensionOverrun)?;
    Ok((next, body, rest))
}

impl<'a> Extensions<'a> {
    /// Splits the chain that begins with an extension of kind `first` off the front of `octets`.
    #[inline]
    pub(super) fn split_from(first: u8, octets: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        if first == 0 {
            return Ok((Self { first, chain: &[] }, octets));
        }
        let (mut kind, mut rest) = (first, octets);
        while kind != 0 {
            (kind, _, rest) = split_link(rest)?;
        }
        let (chain, payload) = octets.split_at(octets.len() - rest.len());
        Ok((Self { first, chain }, payload))
    }

    /// True where there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.first == 0
    }

    /// Each in turn.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Extension<'a>> + Clone + use<'a> {
        Walk::new(self.first, self.chain)
    }

    /// The body of the first extension of this kind.
    #[must_use]
    pub fn find(&self, kind: u8) -> Option<&'a [u8]> {
        self.iter().find(|extension| extension.kind == kind).map(|extension| extension.body)
    }

    /// The selective acknowledgement, if the packet has one.
    #[inline]
    #[must_use]
    pub fn selective_ack(&self) -> Option<SelectiveAck<'a>> {
        self.find(EXT_SELECTIVE_ACK).map(SelectiveAck::new)
    }

    /// The far mask ([`EXT_FAR_ACK`]), and the place of its first bit among those of a selective acknowledgement without end.
    /// An extension shorter than that place says nothing.
    #[must_use]
    pub fn far_ack(&self) -> Option<(u16, SelectiveAck<'a>)> {
        let (start, mask) = self.find(EXT_FAR_ACK)?.split_first_chunk::<2>()?;
        Some((u16::from_be_bytes(*start), SelectiveAck::new(mask)))
    }

    /// Where in its packet's payload this part begins, and how many octets the whole has ([`EXT_PART`]). An extension
    /// shorter than its four octets says nothing.
    #[must_use]
    pub fn part(&self) -> Option<(u16, u16)> {
        match *self.find(EXT_PART)? {
            [start, start_low, whole, whole_low, ..] => {
                Some((u16::from_be_bytes([start, start_low]), u16::from_be_bytes([whole, whole_low])))
            }
            _ => None,
        }
    }

    /// Why the sender closes, if it says so: a number to report and never to act upon. An extension shorter than
    /// its four octets says nothing.
    #[must_use]
    pub fn close_reason(&self) -> Option<u16> {
        match *self.find(EXT_CLOSE_REASON)? {
            [_, _, high, low, ..] => Some(u16::from_be_bytes([high, low])),
            _ => None,
        }
    }
}

/// Walks a chain and stops where it ends or breaks off.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    kind: u8,
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    #[inline]
    pub(super) const fn new(kind: u8, rest: &'a [u8]) -> Self {
        Self { kind, rest }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Extension<'a>;

    #[inline]
    fn next(&mut self) -> Option<Extension<'a>> {
        if self.kind == 0 {
            return None;
        }
        let kind = core::mem::take(&mut self.kind);
        let body;
        (self.kind, body, self.rest) = split_link(self.rest).ok()?;
        Some(Extension { kind, body })
    }
}

/// The body of a close reason: two reserved octets and the reason.
#[must_use]
pub const fn close_reason_body(reason: u16) -> [u8; 4] {
    let [high, low] = reason.to_be_bytes();
    [0, 0, high, low]
}

/// The body of [`EXT_PART`]: where the part begins, and how long the whole is.
#[must_use]
pub const fn part_body(start: u16, whole_bytes: u16) -> [u8; 4] {
    let ([start, start_low], [whole, whole_low]) = (start.to_be_bytes(), whole_bytes.to_be_bytes());
    [start, start_low, whole, whole_low]
}

/// A mask of packets that were received although one before them is missing. Bit `i` stands for packet `ack + 2 + i`;
/// `ack + 1` is missing by definition. The least significant bit of each octet comes first.
///
/// The receiver of a mask must ignore bits of packets that it never sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SelectiveAck<'a> {
    mask: &'a [u8],
}

impl<'a> SelectiveAck<'a> {
    /// A mask of up to 255 octets; further ones have no place in a packet and are cut off.
    #[must_use]
    pub fn new(mask: &'a [u8]) -> Self {
        Self { mask: &mask[..mask.len().min(255)] }
    }

    /// The mask's octets.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.mask
    }

    /// How many packets the mask speaks of, set or not: at most 2040.
    #[must_use]
    pub const fn len_bits(&self) -> u16 {
        self.mask.len() as u16 * 8
    }

    /// True where bit `i` is set; bits beyond the mask are not.
    #[inline]
    #[must_use]
    pub fn contains(&self, i: u16) -> bool {
        self.mask.get(usize::from(i / 8)).is_some_and(|octet| octet >> (i % 8) & 1 == 1)
    }

    /// How many bits are set.
    #[inline]
    #[must_use]
    pub fn count_ones(&self) -> u32 {
        self.words().map(u64::count_ones).sum()
    }

    /// The mask 64 bits at a time, the first bit of each word the least significant; the last is filled up with zeros.
    #[inline]
    pub fn words(&self) -> impl Iterator<Item = u64> + Clone + use<'a> {
        self.mask.chunks(8).map(word)
    }

    /// The set bits in rising order.
    #[inline]
    pub fn bits(&self) -> impl Iterator<Item = u16> + Clone + use<'a> {
        Bits { word: 0, base: 0, rest: self.mask, next_base: 0 }
    }
}

/// Up to eight octets as a number whose bit `i` is the mask's bit `i`.
#[inline]
fn word(octets: &[u8]) -> u64 {
    match octets.try_into() {
        Ok(eight) => u64::from_le_bytes(eight),
        Err(_) => octets.iter().rev().fold(0, |word, &octet| word << 8 | u64::from(octet)),
    }
}

/// Takes 64 bits of the mask at a time and clears them one by one.
#[derive(Clone, Debug)]
struct Bits<'a> {
    word: u64,
    base: u16,
    rest: &'a [u8],
    next_base: u16,
}

impl Iterator for Bits<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        while self.word == 0 {
            if self.rest.is_empty() {
                return None;
            }
            let (chunk, rest) = self.rest.split_at(self.rest.len().min(8));
            (self.word, self.rest) = (word(chunk), rest);
            self.base = self.next_base;
            self.next_base += 64;
        }
        let bit = self.word.trailing_zeros() as u16;
        self.word &= self.word - 1;
        Some(self.base + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_says_where_it_belongs_and_how_long_the_whole_is() {
        let octets = [&[0, 4][..], &part_body(0x0102, 0xfffe), b"part"].concat();
        let (extensions, payload) = Extensions::split_from(EXT_PART, &octets).unwrap();
        assert_eq!((extensions.part(), payload), (Some((0x0102, 0xfffe)), &b"part"[..]));
        let (extensions, _) = Extensions::split_from(EXT_PART, &[0, 3, 1, 2, 3]).unwrap();
        assert_eq!(extensions.part(), None, "too short to say anything");
    }
    use alloc::vec::Vec;

    #[test]
    fn bits_agree_with_contains_at_every_length() {
        let octets: Vec<u8> =
            (0..255_u32).map(|k| (k.wrapping_mul(0x9e37_79b1) >> 27) as u8 & 0x5a).collect();
        for len in 0..=255 {
            let mask = SelectiveAck::new(&octets[..len]);
            let slow: Vec<u16> = (0..mask.len_bits() + 9).filter(|&i| mask.contains(i)).collect();
            assert_eq!(mask.bits().collect::<Vec<_>>(), slow, "{len} octets");
            assert_eq!(mask.count_ones() as usize, slow.len());
            let of_words = mask.words().enumerate().flat_map(|(k, word)| {
                (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * k as u16 + bit)
            });
            assert_eq!(of_words.collect::<Vec<_>>(), slow, "{len} octets in words");
        }
    }

    #[test]
    fn short_close_reasons_say_nothing() {
        let octets = [0, 3, 0, 0, 1];
        let (extensions, payload) = Extensions::split_from(EXT_CLOSE_REASON, &octets).unwrap();
        assert_eq!((extensions.close_reason(), payload), (None, &[][..]));
        assert_eq!(extensions.find(EXT_CLOSE_REASON), Some(&[0, 0, 1][..]));
    }
}
