//! TCP headers with the options that a modern stack sends.
//!
//! Source: RFC 9293 section 3.1 (header), RFC 6691 (MSS), RFC 7323 sections 2 and 3 (window scale, timestamps),
//! RFC 2018 section 3 (selective acknowledgement).
//!
//! **What it leaves out.** The checksum is written as zero and not verified: it needs the IP addresses, so whoever
//! writes packets into a capture fills it in. The urgent pointer, reserved bits, accurate ECN's ninth flag and options
//! other than these five are skipped when read and not written.
//!
//! **How it was validated.** Layouts by hand against the RFCs, decoding of arbitrary octets never panics, whatever
//! decodes survives encoding unchanged, and segments of the Linux kernel's TCP re-encode to the same octets (tests).

use crate::head::{HEAD_CAPACITY, Head};
use cede_units::Seq32;

/// Octets of the header without options.
pub const HEADER_BYTES: usize = 20;
/// Octets that options may take: the data offset counts to fifteen words, five of which are the header.
pub const OPTION_BYTES_MAX: usize = 40;
/// How many blocks a selective acknowledgement can hold (RFC 2018, section 3); three beside timestamps.
pub const SACK_BLOCKS_MAX: usize = 4;

const KIND_END: u8 = 0;
const KIND_NOP: u8 = 1;
const KIND_MSS: u8 = 2;
const KIND_WINDOW_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;

/// The control bits (RFC 9293, section 3.1; ECE and CWR of RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True where every bit of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The timestamps option (RFC 7323, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock as last seen, where the segment has ACK.
    pub echo: u32,
}

/// Up to [`SACK_BLOCKS_MAX`] ranges of octets received beyond the acknowledgement: first number, number after the
/// last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [(Seq32, Seq32); SACK_BLOCKS_MAX],
    len: u8,
}

impl SackBlocks {
    /// No blocks.
    pub const NONE: Self = Self { blocks: [(Seq32(0), Seq32(0)); SACK_BLOCKS_MAX], len: 0 };

    /// Appends a block; `None`, and no change, where there are [`SACK_BLOCKS_MAX`] already.
    pub fn push(&mut self, start: Seq32, end: Seq32) -> Option<()> {
        *self.blocks.get_mut(usize::from(self.len))? = (start, end);
        self.len += 1;
        Some(())
    }

    /// The blocks in the order in which the segment holds them: the first holds the newest segment.
    #[must_use]
    pub fn as_slice(&self) -> &[(Seq32, Seq32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// True for no block.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The options of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The largest segment that the sender of this option wants to receive, without options (RFC 6691).
    pub mss: Option<u16>,
    /// How many bits the sender of this option shifts its window to the right.
    pub window_scale: Option<u8>,
    /// The sender of this option understands selective acknowledgements.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgement.
    pub sack: SackBlocks,
}

/// A TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// The sender's port.
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
    /// The number of the first payload octet, or of SYN.
    pub seq: Seq32,
    /// The number of the next octet expected, where ACK is set.
    pub ack: Seq32,
    /// The control bits.
    pub flags: Flags,
    /// The window as it stands in the header, not yet scaled.
    pub window: u16,
    /// The options.
    pub options: Options,
}

/// Why octets are no TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// Fewer than [`HEADER_BYTES`] octets.
    ShortHeader,
    /// The data offset points into the fixed header or beyond the octets: this many words.
    DataOffset(u8),
    /// An option of this kind has an impossible length.
    OptionLength(u8),
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::ShortHeader => write!(f, "fewer than {HEADER_BYTES} octets"),
            Self::DataOffset(words) => write!(f, "the data offset of {words} words is impossible"),
            Self::OptionLength(kind) => write!(f, "the option of kind {kind} has an impossible length"),
        }
    }
}

impl core::error::Error for DecodeError {}

impl Segment {
    /// Reads a header from the front of `octets`: it, and how many octets it took with its options.
    ///
    /// # Errors
    /// [`DecodeError`] where the octets are no TCP header.
    pub fn decode(octets: &[u8]) -> Result<(Self, usize), DecodeError> {
        let fixed: &[u8; HEADER_BYTES] = octets.first_chunk().ok_or(DecodeError::ShortHeader)?;
        let words = fixed[12] >> 4;
        let len = usize::from(words) * 4;
        let options = octets.get(HEADER_BYTES..len).ok_or(DecodeError::DataOffset(words))?;
        let segment = Self {
            src_port: u16::from_be_bytes([fixed[0], fixed[1]]),
            dst_port: u16::from_be_bytes([fixed[2], fixed[3]]),
            seq: Seq32(be32(&fixed[4..8])),
            ack: Seq32(be32(&fixed[8..12])),
            flags: Flags(fixed[13]),
            window: u16::from_be_bytes([fixed[14], fixed[15]]),
            options: Options::decode(options)?,
        };
        Ok((segment, len))
    }

    /// The octets of the header, checksum zero. Options are laid out and padded as the Linux kernel does, without
    /// padding where they would not fit otherwise, and SACK blocks beyond [`OPTION_BYTES_MAX`] are left out.
    #[must_use]
    pub fn encode(&self) -> Head {
        let mut octets = [0; HEAD_CAPACITY];
        let len = HEADER_BYTES + self.options.encode(&mut octets[HEADER_BYTES..][..OPTION_BYTES_MAX]);
        octets[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        octets[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        octets[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        octets[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        octets[12] = (len as u8 / 4) << 4;
        octets[13] = self.flags.0;
        octets[14..16].copy_from_slice(&self.window.to_be_bytes());
        Head::beginning(octets, len)
    }
}

/// Four octets, most significant first; zero where there are not four.
fn be32(octets: &[u8]) -> u32 {
    octets.try_into().map_or(0, u32::from_be_bytes)
}

impl Options {
    /// Reads options up to the end-of-list mark. Where a kind is repeated the last one counts.
    fn decode(mut octets: &[u8]) -> Result<Self, DecodeError> {
        let mut options = Self::default();
        // What nearly every segment of an established connection carries, and nothing else.
        if let [KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10, body @ ..] = octets
            && body.len() == 8
        {
            options.timestamps = Some(Timestamps { value: be32(&body[..4]), echo: be32(&body[4..]) });
            return Ok(options);
        }
        loop {
            octets = match octets {
                [] | [KIND_END, ..] => return Ok(options),
                [KIND_NOP, rest @ ..] => rest,
                [kind] => return Err(DecodeError::OptionLength(*kind)),
                [kind, len, ..] => {
                    let body = octets.get(2..usize::from(*len)).ok_or(DecodeError::OptionLength(*kind))?;
                    options.set(*kind, body)?;
                    &octets[usize::from(*len)..]
                }
            }
        }
    }

    /// Takes in one option; unknown kinds are skipped.
    fn set(&mut self, kind: u8, body: &[u8]) -> Result<(), DecodeError> {
        match (kind, body) {
            (KIND_MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (KIND_WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (KIND_SACK_PERMITTED, &[]) => self.sack_permitted = true,
            (KIND_TIMESTAMPS, body) if body.len() == 8 => {
                self.timestamps = Some(Timestamps { value: be32(&body[..4]), echo: be32(&body[4..]) });
            }
            (KIND_SACK, body) if !body.is_empty() && body.len() % 8 == 0 => self.set_sack(body),
            (KIND_MSS | KIND_WINDOW_SCALE | KIND_SACK_PERMITTED | KIND_TIMESTAMPS | KIND_SACK, _) => {
                return Err(DecodeError::OptionLength(kind));
            }
            _ => {}
        }
        Ok(())
    }

    fn set_sack(&mut self, body: &[u8]) {
        self.sack = SackBlocks::NONE;
        for block in body.chunks_exact(8) {
            // At most four fit into the option space.
            let _ = self.sack.push(Seq32(be32(&block[..4])), Seq32(be32(&block[4..])));
        }
    }

    /// Writes the options and returns how many octets they took, a multiple of four.
    fn encode(&self, out: &mut [u8]) -> usize {
        if self.mss.is_none() && self.window_scale.is_none() && !self.sack_permitted && self.sack.is_empty() {
            return self.timestamps.map_or(0, |stamps| encode_timestamps(out, stamps));
        }
        let mut writer = Writer { out, len: 0 };
        let tight = self.bytes(true) > OPTION_BYTES_MAX && self.bytes(false) <= OPTION_BYTES_MAX;
        self.write_opening(&mut writer, tight);
        self.write_sack(&mut writer, tight);
        writer.finish()
    }

    /// Octets of the options, with all their blocks, in the padded or the tight layout.
    fn bytes(&self, padded: bool) -> usize {
        let sizes = |mss, scale, permitted, stamps, sack| {
            mss * usize::from(self.mss.is_some())
                + scale * usize::from(self.window_scale.is_some())
                + permitted * usize::from(self.sack_permitted)
                + stamps * usize::from(self.timestamps.is_some())
                + sack * usize::from(!self.sack.is_empty())
                + 8 * self.sack.as_slice().len()
        };
        match (padded, self.sack_permitted && self.timestamps.is_some()) {
            // "SACK permitted" takes the place of the padding in front of the timestamps.
            (true, true) => sizes(4, 4, 2, 10, 4),
            (true, false) => sizes(4, 4, 4, 12, 4),
            (false, _) => sizes(4, 3, 2, 10, 2),
        }
    }

    /// MSS, SACK permitted, timestamps and window scale.
    fn write_opening(&self, writer: &mut Writer<'_>, tight: bool) {
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            writer.put(&[KIND_MSS, 4, high, low]);
        }
        if !tight && (self.sack_permitted != self.timestamps.is_some()) {
            writer.put(&[KIND_NOP, KIND_NOP]);
        }
        if self.sack_permitted {
            writer.put(&[KIND_SACK_PERMITTED, 2]);
        }
        if let Some(stamps) = self.timestamps {
            writer.put(&[KIND_TIMESTAMPS, 10]);
            writer.put(&stamps.value.to_be_bytes());
            writer.put(&stamps.echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            let option = [KIND_NOP, KIND_WINDOW_SCALE, 3, shift];
            writer.put(&option[usize::from(tight)..]);
        }
    }

    fn write_sack(&self, writer: &mut Writer<'_>, tight: bool) {
        let overhead = if tight { 2 } else { 4 };
        let room = (OPTION_BYTES_MAX - writer.len).saturating_sub(overhead) / 8;
        let blocks = self.sack.as_slice();
        let blocks = &blocks[..blocks.len().min(room)];
        if blocks.is_empty() {
            return;
        }
        let option = [KIND_NOP, KIND_NOP, KIND_SACK, 2 + 8 * blocks.len() as u8];
        writer.put(&option[4 - overhead..]);
        for (start, end) in blocks {
            writer.put(&start.0.to_be_bytes());
            writer.put(&end.0.to_be_bytes());
        }
    }
}

/// The layout of nearly every segment, without a detour.
fn encode_timestamps(out: &mut [u8], stamps: Timestamps) -> usize {
    out[..4].copy_from_slice(&[KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10]);
    out[4..8].copy_from_slice(&stamps.value.to_be_bytes());
    out[8..12].copy_from_slice(&stamps.echo.to_be_bytes());
    12
}

/// Option octets in the making. Callers see to it that they fit.
struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    fn put(&mut self, octets: &[u8]) {
        if let Some(room) = self.out.get_mut(self.len..self.len + octets.len()) {
            room.copy_from_slice(octets);
            self.len += octets.len();
        }
    }

    /// Pads to a whole word; the octets are zero, which is the end of the list.
    fn finish(self) -> usize {
        self.len.next_multiple_of(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(options: Options) -> Segment {
        Segment {
            src_port: 0x1234,
            dst_port: 80,
            seq: Seq32(0xdead_beef),
            ack: Seq32(7),
            flags: Flags::ACK.with(Flags::PSH),
            window: 0x0102,
            options,
        }
    }

    fn stamps() -> Option<Timestamps> {
        Some(Timestamps { value: 0x0102_0304, echo: 0x0506_0708 })
    }

    fn blocks(n: u32) -> SackBlocks {
        let mut sack = SackBlocks::NONE;
        (0..n).for_each(|i| sack.push(Seq32(100 * i), Seq32(100 * i + 50)).unwrap());
        sack
    }

    #[test]
    fn the_fixed_header_lies_as_rfc_9293_draws_it() {
        let head = segment(Options::default()).encode();
        let expected = [0x12, 0x34, 0, 80, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 7, 0x50, 0x18, 1, 2, 0, 0, 0, 0];
        assert_eq!(*head, expected);
    }

    #[test]
    fn a_syn_lays_its_options_out_as_linux_does() {
        let options = Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: stamps(),
            sack: SackBlocks::NONE,
        };
        let head = segment(options).encode();
        let expected = [2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 3, 7];
        assert_eq!(head[20..], expected);
        let head = segment(Options { timestamps: None, ..options }).encode();
        assert_eq!(head[20..], [2, 4, 5, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7]);
    }

    #[test]
    fn a_data_segment_has_twelve_octets_of_timestamps() {
        let head = segment(Options { timestamps: stamps(), ..Options::default() }).encode();
        assert_eq!(head[20..], [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(head.len(), 32);
    }

    #[test]
    fn three_blocks_fit_beside_timestamps_and_four_without() {
        let both = Options { timestamps: stamps(), sack: blocks(4), ..Options::default() };
        let (back, len) = Segment::decode(&segment(both).encode()).unwrap();
        assert_eq!((back.options.sack, len), (blocks(3), 60));
        let alone = Options { sack: blocks(4), ..Options::default() };
        let (back, len) = Segment::decode(&segment(alone).encode()).unwrap();
        assert_eq!((back.options.sack, len), (blocks(4), 56));
        assert_eq!(segment(alone).encode()[20..24], [1, 1, 5, 34]);
    }

    #[test]
    fn every_set_of_options_that_fits_survives_encoding() {
        for set in 0..16_u8 {
            for count in 0..=4 {
                let options = Options {
                    mss: (set & 1 != 0).then_some(1460),
                    window_scale: (set & 2 != 0).then_some(9),
                    sack_permitted: set & 4 != 0,
                    timestamps: stamps().filter(|_| set & 8 != 0),
                    sack: blocks(count),
                };
                let (back, len) = Segment::decode(&segment(options).encode()).unwrap();
                assert!(len <= 60);
                if options.bytes(false) <= OPTION_BYTES_MAX {
                    assert_eq!(back, segment(options));
                }
                assert_eq!(Options { sack: options.sack, ..back.options }, options);
            }
        }
    }

    #[test]
    fn what_is_no_header_is_refused_with_the_reason() {
        let mut octets = [0_u8; 24];
        assert_eq!(Segment::decode(&octets[..19]), Err(DecodeError::ShortHeader));
        octets[12] = 0x40;
        assert_eq!(Segment::decode(&octets), Err(DecodeError::DataOffset(4)));
        octets[12] = 0x70;
        assert_eq!(Segment::decode(&octets), Err(DecodeError::DataOffset(7)));
        octets[12] = 0x60;
        for (option, kind) in [
            ([2, 3, 0, 0], 2),
            ([8, 4, 0, 0], 8),
            ([30, 1, 0, 0], 30),
            ([30, 9, 0, 0], 30),
            ([1, 1, 1, 3], 3),
        ] {
            octets[20..].copy_from_slice(&option);
            assert_eq!(Segment::decode(&octets), Err(DecodeError::OptionLength(kind)), "{option:?}");
        }
    }

    #[test]
    fn unknown_options_and_what_follows_the_end_are_skipped() {
        let mut octets = [0_u8; 32];
        octets[12] = 0x80;
        octets[20..].copy_from_slice(&[30, 4, 9, 9, 3, 3, 5, 0, 2, 4, 1, 1]);
        let (segment, len) = Segment::decode(&octets).unwrap();
        assert_eq!(len, 32);
        assert_eq!(segment.options, Options { window_scale: Some(5), ..Options::default() });
    }
}
