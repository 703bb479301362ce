//! Capture files read in place: classic pcap and pcapng.
//!
//! Sources: draft-ietf-opsawg-pcap (file header, packet records), draft-ietf-opsawg-pcapng sections 3 and 4 (section
//! header, interface description, enhanced and simple packet blocks) and appendix A (packet blocks of old). Both byte orders, microseconds and nanoseconds
//! and every other resolution that an interface may state; a record may hold less than was on the wire.
//!
//! **What it leaves out.** Blocks and options other than those named are skipped. Nothing is copied but the table of
//! interfaces, which grows by an entry for each interface description in the file.
//!
//! **How it was validated.** Recorded files (`tests/captures.rs`), hand-made ones of every byte order and resolution
//! (`tests/capture_files.rs`), arbitrary and damaged octets (`tests/fuzz.rs`).

mod classic;
mod ng;
mod recover;

pub use recover::{Rest, Resume, Verdict};

use crate::link::LinkType;
use core::fmt;

/// One captured packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// When it was captured, in nanoseconds since the file's epoch (1970 in files of the real world). `None` in
    /// pcapng's simple packet blocks, which have no time.
    pub time_ns: Option<u64>,
    /// Where: the interface's number within its section; zero in classic files.
    pub interface: u32,
    /// What the octets begin with.
    pub link_type: LinkType,
    /// The packet, or its front.
    pub captured: &'a [u8],
    /// Octets that the packet had on the wire.
    pub original_len: u32,
}

/// What is wrong with a capture file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReadErrorKind {
    /// The first octets are those of no capture format known here.
    NotACapture,
    /// A version of the format that is not known here.
    Version(u16),
    /// The file ends within a header, record or block, as it does when its writer was stopped.
    Truncated,
    /// A record's length is greater than any packet's.
    RecordLength(u32),
    /// What stands here looks like a record, but what is behind it does not follow, or is far away in time.
    Implausible,
    /// A block's length is greater than any, no multiple of four, less than its own fields, or differs from its repetition at the end.
    BlockLength(u32),
    /// A packet says that it has more octets than its block.
    PacketLength(u32),
    /// A packet of an interface that was not described.
    UnknownInterface(u32),
    /// An option runs over the end of its block.
    OptionOverrun,
}

/// Where a capture file is wrong, and how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReadError {
    /// Offset in the file of the header, record or block at fault.
    pub offset: usize,
    /// What is wrong with it.
    pub kind: ReadErrorKind,
}

impl fmt::Display for ReadErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotACapture => write!(f, "neither pcap nor pcapng"),
            Self::Version(version) => write!(f, "unknown format version {version}"),
            Self::Truncated => write!(f, "the file ends here before its time"),
            Self::RecordLength(len) => write!(f, "a record cannot have a length of {len} octets"),
            Self::Implausible => write!(f, "what stands here is no record"),
            Self::BlockLength(len) => write!(f, "a block cannot have a length of {len} octets"),
            Self::PacketLength(len) => write!(f, "a packet of {len} octets is longer than its block"),
            Self::UnknownInterface(number) => write!(f, "interface {number} was not described"),
            Self::OptionOverrun => write!(f, "an option is longer than its block"),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.kind)
    }
}

impl core::error::Error for ReadError {}

/// The packets of a capture file, in the file's order. After an error there are no more.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    cursor: Cursor<'a>,
    decoder: Decoder,
    /// An error was met.
    is_broken: bool,
}

impl<'a> Reader<'a> {
    /// A reader of the capture file with these octets.
    ///
    /// # Errors
    /// [`ReadErrorKind::NotACapture`], [`ReadErrorKind::Version`] or [`ReadErrorKind::Truncated`].
    pub fn new(file: &'a [u8]) -> Result<Self, ReadError> {
        let mut cursor = Cursor { file, offset: 0 };
        let format = Format::read(&mut cursor)?;
        Ok(Self { cursor, decoder: Decoder { format: Some(format) }, is_broken: false })
    }

    /// The offset in the file that was reached.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.cursor.offset
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken {
            return None;
        }
        let record = self.decoder.step(&mut self.cursor);
        self.is_broken = record.is_err();
        record.transpose()
    }
}

/// Reads a capture that comes in pieces, such as from a pipe or a decompressor.
///
/// ```
/// use cede_wire::pcap::{Decoder, ReadErrorKind};
///
/// /// Counts the packets at the front of `octets` and says how many octets they took.
/// fn count(decoder: &mut Decoder, octets: &[u8]) -> Result<(usize, usize), ReadErrorKind> {
///     let (mut packets, mut taken) = (0, 0);
///     loop {
///         match decoder.next(octets, &mut taken) {
///             Ok(Some(_record)) => packets += 1,
///             Ok(None) => return Ok((packets, taken)),
///             // The rest is the beginning of something: it belongs in front of the next piece.
///             Err(error) if error.kind == ReadErrorKind::Truncated => return Ok((packets, taken)),
///             Err(error) => return Err(error.kind),
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// `None` until the file's header was seen.
    format: Option<Format>,
}

impl Decoder {
    /// A decoder for the beginning of a file.
    #[must_use]
    pub const fn new() -> Self {
        Self { format: None }
    }

    /// The next packet of `octets` from `taken` on, which moves behind what was read; `None` where they end between
    /// two packets.
    ///
    /// # Errors
    /// [`ReadErrorKind::Truncated`] where a header, record or block is not whole: `taken` stands before it, and the call
    /// can be repeated with more octets. After any other [`Self::resume`] tells whether and where to go on. Offsets count from the beginning of `octets`.
    #[inline(always)]
    pub fn next<'a>(&mut self, octets: &'a [u8], taken: &mut usize) -> Result<Option<Record<'a>>, ReadError> {
        let mut cursor = Cursor { file: octets, offset: *taken };
        let record = self.step(&mut cursor);
        *taken = cursor.offset;
        record
    }

    /// Hands over records of a classic capture from `taken` on, which moves behind them, as long as each is whole, says what capture programs
    /// write, and is not far from the time of the one before: [`Self::next`] and [`Self::judge`] would do nothing else with them.
    /// Of pcapng there are none.
    #[inline(always)]
    pub fn each_usual<'a>(
        &self,
        octets: &'a [u8],
        taken: &mut usize,
        last_ns: &mut u64,
        take: &mut impl FnMut(&Record<'a>),
    ) {
        if let Some(Format::Classic(layout)) = &self.format {
            layout.each_usual(octets, taken, last_ns, take);
        }
    }

    /// Interfaces that were described so far, of pcapng in the section that was reached; of a classic capture one.
    #[must_use]
    pub const fn interfaces(&self) -> usize {
        match &self.format {
            Some(Format::Ng(section)) => section.interfaces(),
            Some(Format::Classic(_)) => 1,
            None => 0,
        }
    }

    // What is returned stays in registers.
    #[inline(always)]
    fn step<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, ReadError> {
        if cursor.is_at_end() {
            return Ok(None);
        }
        let format = match &mut self.format {
            Some(format) => format,
            none => none.insert(Format::read(cursor)?),
        };
        match format {
            Format::Classic(layout) => layout.next(cursor),
            Format::Ng(section) => section.next(cursor),
        }
    }
}

#[derive(Clone, Debug)]
enum Format {
    Classic(classic::Layout),
    Ng(ng::Section),
}

impl Format {
    /// Tells the format by the first octets, and passes the header where it is none of the blocks.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, ReadError> {
        match cursor.rest().first_chunk().copied().map(u32::from_be_bytes) {
            None => Err(cursor.error(ReadErrorKind::Truncated)),
            Some(ng::SECTION_HEADER) => Ok(Self::Ng(ng::Section::default())),
            Some(magic) => classic::Layout::read(magic, cursor).map(Self::Classic),
        }
    }
}

/// A place in the file.
#[derive(Clone, Debug)]
struct Cursor<'a> {
    file: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    fn is_at_end(&self) -> bool {
        self.offset >= self.file.len()
    }

    /// An error at this place.
    const fn error(&self, kind: ReadErrorKind) -> ReadError {
        ReadError { offset: self.offset, kind }
    }

    /// The octets from here on.
    fn rest(&self) -> &'a [u8] {
        self.file.get(self.offset..).unwrap_or_default()
    }

    /// The next `len` octets, without passing them.
    fn peek(&self, len: usize) -> Result<&'a [u8], ReadError> {
        self.rest().get(..len).ok_or(self.error(ReadErrorKind::Truncated))
    }

    /// Passes `len` octets that were looked at.
    fn advance(&mut self, len: usize) {
        self.offset += len;
    }
}

/// Which end of a number comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Endian {
    Big,
    #[default]
    Little,
}

impl Endian {
    /// The number at `at`; zero where there is none, so callers look first.
    #[inline]
    fn u16(self, octets: &[u8], at: usize) -> u16 {
        let pair = octets.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        match self {
            Self::Big => u16::from_be_bytes(pair),
            Self::Little => u16::from_le_bytes(pair),
        }
    }

    /// As [`Self::u16`].
    #[inline]
    fn u32(self, octets: &[u8], at: usize) -> u32 {
        let four = octets.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        match self {
            Self::Big => u32::from_be_bytes(four),
            Self::Little => u32::from_le_bytes(four),
        }
    }
}
