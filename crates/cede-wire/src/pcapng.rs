//! Captures written in the pcapng format, with times in nanoseconds.
//!
//! Source: draft-ietf-opsawg-pcapng, sections 3 (blocks and options), 4.1 (section header), 4.2 (interface description)
//! and 4.3 (enhanced packet).
//!
//! **What it leaves out.** Name resolution, interface statistics, decryption secrets and custom blocks. Numbers are
//! written little-endian, times in nanoseconds since the world's epoch.
//!
//! **How it was validated.** Wireshark reads back times, names, comments and packets, and finds nothing malformed
//! (`tests/tshark.rs`); our own reader finds the same (`tests/capture_files.rs`).

use crate::link::LinkType;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

/// Where a capture goes. A file is one behind a line of code; a vector is one as it stands.
pub trait Sink {
    /// Why octets could not be taken.
    type Error;

    /// Takes all of `octets`.
    ///
    /// # Errors
    /// The sink's own; the capture is broken from there on.
    fn write_all(&mut self, octets: &[u8]) -> Result<(), Self::Error>;
}

impl Sink for Vec<u8> {
    type Error = Infallible;

    fn write_all(&mut self, octets: &[u8]) -> Result<(), Infallible> {
        self.extend_from_slice(octets);
        Ok(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    type Error = S::Error;

    fn write_all(&mut self, octets: &[u8]) -> Result<(), S::Error> {
        (**self).write_all(octets)
    }
}

/// What the file says about itself; empty texts are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Section<'a> {
    /// The program that wrote the file.
    pub application: &'a str,
    /// Anything worth telling its reader, such as scenario and seed.
    pub comment: &'a str,
}

/// A place where packets were seen; empty texts are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface<'a> {
    /// Its name, such as "bottleneck".
    pub name: &'a str,
    /// What it is, in words.
    pub description: &'a str,
    /// What its packets begin with.
    pub link_type: LinkType,
}

/// The number of an interface within one capture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InterfaceId(pub u32);

/// One packet as it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured<'a> {
    /// Where it was seen.
    pub interface: InterfaceId,
    /// When, in nanoseconds since the world's epoch.
    pub time_ns: u64,
    /// The packet, or its front.
    pub octets: &'a [u8],
    /// Octets that it had on the wire, at least as many as `octets` has.
    pub original_len: u32,
    /// A remark on this packet, such as why it was dropped; empty for none.
    pub comment: &'a str,
}

/// Why a packet was not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteError<E> {
    /// The sink did not take it.
    Sink(E),
    /// The capture has no interface of this number; nothing was written.
    UnknownInterface(InterfaceId),
    /// More octets than a block can count; nothing was written.
    TooLong,
}

impl<E: fmt::Display> fmt::Display for WriteError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sink(error) => write!(f, "{error}"),
            Self::UnknownInterface(InterfaceId(number)) => write!(f, "the capture has no interface {number}"),
            Self::TooLong => write!(f, "the packet is too long for a block"),
        }
    }
}

impl<E: core::error::Error> core::error::Error for WriteError<E> {}

// Draft, section 10.1: block types.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Section 4.1: tells readers the byte order.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

// Section 3.5 and the blocks' own sections: option codes.
const OPT_END: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
/// Section 4.2: times count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes a capture, block by block. What is written is a whole file at any time.
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    /// Scratch: the block in the making.
    block: Vec<u8>,
    interfaces: u32,
}

impl<S: Sink> Writer<S> {
    /// Begins a capture.
    ///
    /// # Errors
    /// The sink's.
    pub fn new(sink: S, section: &Section<'_>) -> Result<Self, S::Error> {
        let mut writer = Self { sink, block: Vec::new(), interfaces: 0 };
        writer.begin(SECTION_HEADER);
        writer.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        // Version 1.0, and a section length of -1: "until the next section".
        writer.put(&[1, 0, 0, 0]);
        writer.put(&(-1_i64).to_le_bytes());
        writer.put_text(OPT_COMMENT, section.comment);
        writer.put_text(SHB_USERAPPL, section.application);
        writer.put_option(OPT_END, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Adds a place where packets are seen.
    ///
    /// # Errors
    /// The sink's.
    pub fn add_interface(&mut self, interface: &Interface<'_>) -> Result<InterfaceId, S::Error> {
        self.begin(INTERFACE_DESCRIPTION);
        self.put(&interface.link_type.0.to_le_bytes());
        // Reserved, and a snapshot length of zero: no limit.
        self.put(&[0; 6]);
        self.put_text(IF_NAME, interface.name);
        self.put_text(IF_DESCRIPTION, interface.description);
        self.put_option(IF_TSRESOL, &[NANOSECONDS]);
        self.put_option(OPT_END, &[]);
        self.end()?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Adds a packet. Packets need not come in the order of their times.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn write_packet(&mut self, packet: &Captured<'_>) -> Result<(), WriteError<S::Error>> {
        if packet.interface.0 >= self.interfaces {
            return Err(WriteError::UnknownInterface(packet.interface));
        }
        // Header, trailer and the longest comment take less than 128 KiB of what a block's length can say.
        let captured_len = match u32::try_from(packet.octets.len()) {
            Ok(len) if len <= u32::MAX - (1 << 17) => len,
            _ => return Err(WriteError::TooLong),
        };
        let original_len = packet.original_len.max(captured_len);
        self.begin(ENHANCED_PACKET);
        let (high, low) = ((packet.time_ns >> 32) as u32, packet.time_ns as u32);
        for field in [packet.interface.0, high, low, captured_len, original_len] {
            self.put(&field.to_le_bytes());
        }
        self.put(packet.octets);
        self.pad();
        if !packet.comment.is_empty() {
            self.put_text(OPT_COMMENT, packet.comment);
            self.put_option(OPT_END, &[]);
        }
        self.end().map_err(WriteError::Sink)
    }

    /// The sink, to look at.
    #[must_use]
    pub const fn sink(&self) -> &S {
        &self.sink
    }

    /// The sink, to flush it for instance.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Ends the capture.
    pub fn into_sink(self) -> S {
        self.sink
    }

    fn put(&mut self, octets: &[u8]) {
        self.block.extend_from_slice(octets);
    }

    /// Fills up to a multiple of four octets.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Type, and room for the length.
    fn begin(&mut self, block_type: u32) {
        self.block.clear();
        self.put(&block_type.to_le_bytes());
        self.put(&[0; 4]);
    }

    /// Puts the length in its two places and hands the block over.
    fn end(&mut self) -> Result<(), S::Error> {
        let len = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&len);
        self.put(&len);
        self.sink.write_all(&self.block)
    }

    fn put_option(&mut self, code: u16, value: &[u8]) {
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    /// A text of at most 65,535 octets, cut between two characters; an empty one is left out.
    fn put_text(&mut self, code: u16, text: &str) {
        let end = text.floor_char_boundary(usize::from(u16::MAX));
        if end > 0 {
            self.put_option(code, &text.as_bytes()[..end]);
        }
    }
}
