//! pcapng files: sections of blocks, each with its own byte order and interfaces.

use super::recover::{Look, Seen, is_odd};
use super::{Cursor, Endian, ReadError, ReadErrorKind, Record};
use crate::link::LinkType;
use alloc::vec::Vec;

// Draft, section 10.1. The section header's type reads the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
/// Appendix A: what programs wrote before there were enhanced packets, alike but for the interface's number, which has 16 bits there.
const OLD_PACKET: u32 = 2;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

// Section 4.2: options of an interface.
const OPT_END: u16 = 0;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// Type and both lengths.
const BLOCK_OVERHEAD_BYTES: u32 = 12;
/// No block is longer, as Wireshark has it.
const BLOCK_BYTES_MAX: u32 = 1 << 24;
/// Section 4.8: custom blocks.
const CUSTOM: [u32; 2] = [0x0bad, 0x4000_0bad];
/// The greatest type of block that stands in the draft beside those of this module.
const KNOWN_TYPE_MAX: u32 = 0xa;

/// The section being read.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    endian: Endian,
    interfaces: Vec<Interface>,
    /// Where the last packet's block begins, and whether it is odd.
    pub(super) last: (usize, bool),
}

#[derive(Clone, Debug)]
struct Interface {
    link_type: LinkType,
    /// Most octets that are kept of a packet; zero for no limit.
    snap_len: u32,
    unit: TimeUnit,
    offset_s: i64,
}

/// What an interface's times count (option `if_tsresol`).
#[derive(Clone, Copy, Debug)]
enum TimeUnit {
    /// Ten to this power of them make a second.
    PowerOfTen(u8),
    /// Two to this power of them make a second.
    PowerOfTwo(u8),
}

impl TimeUnit {
    /// The draft's default: microseconds.
    const DEFAULT: Self = Self::PowerOfTen(6);

    const fn from_option(value: u8) -> Self {
        if value & 0x80 == 0 { Self::PowerOfTen(value) } else { Self::PowerOfTwo(value & 0x7f) }
    }

    /// `ticks` in nanoseconds, rounded down.
    fn nanoseconds(self, ticks: u64) -> u128 {
        let ns = u128::from(ticks);
        match self {
            Self::PowerOfTen(power @ 0..=9) => ns * 10_u128.pow(9 - u32::from(power)),
            // 64 bits count less than 10^20, so that any divisor beyond gives zero.
            Self::PowerOfTen(power) => ns / 10_u128.pow(u32::from(power - 9).min(38)),
            Self::PowerOfTwo(power) => (ns * 1_000_000_000) >> power,
        }
    }
}

/// A whole block.
struct Block<'a> {
    block_type: u32,
    /// Between the two lengths.
    body: &'a [u8],
    /// Where it begins in the file.
    offset: usize,
}

impl Block<'_> {
    const fn error(&self, kind: ReadErrorKind) -> ReadError {
        ReadError { offset: self.offset, kind }
    }

    /// Checks that the body has `len` octets of fixed fields.
    fn require(&self, len: usize) -> Result<(), ReadError> {
        if self.body.len() < len {
            return Err(self.error(ReadErrorKind::BlockLength(self.body.len() as u32 + BLOCK_OVERHEAD_BYTES)));
        }
        Ok(())
    }
}

impl Section {
    /// How many are described.
    pub(super) const fn interfaces(&self) -> usize {
        self.interfaces.len()
    }

    /// The next packet; other blocks on the way are taken in or skipped.
    pub(super) fn next<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, ReadError> {
        while !cursor.is_at_end() {
            let block = self.next_block(cursor)?;
            match block.block_type {
                SECTION_HEADER => self.begin(&block)?,
                INTERFACE_DESCRIPTION => self.describe_interface(&block)?,
                ENHANCED_PACKET | OLD_PACKET => return self.enhanced_packet(&block).map(Some),
                SIMPLE_PACKET => return self.simple_packet(&block).map(Some),
                _ => {}
            }
        }
        Ok(None)
    }

    fn next_block<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Block<'a>, ReadError> {
        let front = cursor.peek(BLOCK_OVERHEAD_BYTES as usize)?;
        // The first word of a section header's body tells the byte order of its length already.
        if Endian::Big.u32(front, 0) == SECTION_HEADER {
            self.endian = byte_order(front).ok_or(cursor.error(ReadErrorKind::NotACapture))?;
        }
        let len = self.endian.u32(front, 4);
        if !is_length(len) {
            return Err(cursor.error(ReadErrorKind::BlockLength(len)));
        }
        let octets = cursor.peek(len as usize)?;
        let body_end = octets.len() - 4;
        if self.endian.u32(octets, body_end) != len {
            return Err(cursor.error(ReadErrorKind::BlockLength(len)));
        }
        let offset = cursor.offset;
        cursor.advance(octets.len());
        Ok(Block { block_type: self.endian.u32(octets, 0), body: &octets[8..body_end], offset })
    }

    /// Section 4.1: a new section knows nothing of the one before.
    fn begin(&mut self, block: &Block<'_>) -> Result<(), ReadError> {
        block.require(16)?;
        self.interfaces.clear();
        match self.endian.u16(block.body, 4) {
            1 => Ok(()),
            other => Err(block.error(ReadErrorKind::Version(other))),
        }
    }

    /// Section 4.2.
    fn describe_interface(&mut self, block: &Block<'_>) -> Result<(), ReadError> {
        block.require(8)?;
        let mut interface = Interface {
            link_type: LinkType(self.endian.u16(block.body, 0)),
            snap_len: self.endian.u32(block.body, 4),
            unit: TimeUnit::DEFAULT,
            offset_s: 0,
        };
        let mut rest = &block.body[8..];
        while let Some((code, value)) = self.split_option(&mut rest, block)? {
            match (code, value) {
                (IF_TSRESOL, &[resolution, ..]) => interface.unit = TimeUnit::from_option(resolution),
                (IF_TSOFFSET, value) if value.len() == 8 => interface.offset_s = self.i64(value),
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn i64(&self, octets: &[u8]) -> i64 {
        let (front, back) = (self.endian.u32(octets, 0), self.endian.u32(octets, 4));
        let (high, low) = match self.endian {
            Endian::Big => (front, back),
            Endian::Little => (back, front),
        };
        (u64::from(high) << 32 | u64::from(low)) as i64
    }

    /// Section 3.5: takes one option off the front of `rest`; `None` at the end of the options.
    fn split_option<'a>(
        &self,
        rest: &mut &'a [u8],
        block: &Block<'_>,
    ) -> Result<Option<(u16, &'a [u8])>, ReadError> {
        if rest.is_empty() || self.endian.u16(rest, 0) == OPT_END {
            return Ok(None);
        }
        let code = self.endian.u16(rest, 0);
        let len = usize::from(self.endian.u16(rest, 2));
        // Blocks are whole words, so an option is at least one word and its padding lies within the block.
        let option =
            rest.get(..4 + len.next_multiple_of(4)).ok_or(block.error(ReadErrorKind::OptionOverrun))?;
        *rest = &rest[option.len()..];
        Ok(Some((code, &option[4..4 + len])))
    }

    fn interface(&self, number: u32, block: &Block<'_>) -> Result<&Interface, ReadError> {
        self.interfaces.get(number as usize).ok_or(block.error(ReadErrorKind::UnknownInterface(number)))
    }

    /// Section 4.3.
    fn enhanced_packet<'a>(&mut self, block: &Block<'a>) -> Result<Record<'a>, ReadError> {
        const FIXED_BYTES: usize = 20;
        block.require(FIXED_BYTES)?;
        let field = |at| self.endian.u32(block.body, at);
        let number = self.interface_number(block.block_type, block.body);
        let (captured_len, original_len) = (field(12), field(16));
        self.last = (block.offset, is_odd(captured_len, original_len));
        let interface = self.interface(number, block)?;
        let captured = block.body[FIXED_BYTES..]
            .get(..captured_len as usize)
            .ok_or(block.error(ReadErrorKind::PacketLength(captured_len)))?;
        Ok(Record {
            time_ns: Some(interface.time_ns(u64::from(field(4)) << 32 | u64::from(field(8)))),
            interface: number,
            link_type: interface.link_type,
            captured,
            original_len,
        })
    }

    /// What the body of a packet's block begins with.
    fn interface_number(&self, block_type: u32, body: &[u8]) -> u32 {
        if block_type == OLD_PACKET { self.endian.u16(body, 0).into() } else { self.endian.u32(body, 0) }
    }

    /// Section 4.4: a packet of the first interface, without a time.
    fn simple_packet<'a>(&mut self, block: &Block<'a>) -> Result<Record<'a>, ReadError> {
        block.require(4)?;
        self.last = (block.offset, false);
        let interface = self.interface(0, block)?;
        let original_len = self.endian.u32(block.body, 0);
        let captured_len = match interface.snap_len {
            0 => original_len,
            snap_len => original_len.min(snap_len),
        };
        let captured = block.body[4..]
            .get(..captured_len as usize)
            .ok_or(block.error(ReadErrorKind::PacketLength(captured_len)))?;
        Ok(Record { time_ns: None, interface: 0, link_type: interface.link_type, captured, original_len })
    }
}

impl Section {
    /// What stands at a place, by its header.
    pub(super) fn look(&self, octets: &[u8], at: usize) -> Look {
        let rest = octets.get(at..).unwrap_or_default();
        let Some(front) = rest.get(..BLOCK_OVERHEAD_BYTES as usize) else { return Look::Short };
        let is_section = Endian::Big.u32(front, 0) == SECTION_HEADER;
        let Some(endian) = (if is_section { byte_order(front) } else { Some(self.endian) }) else {
            return Look::Unlike;
        };
        let (block_type, len) = (endian.u32(front, 0), endian.u32(front, 4));
        if !is_length(len) || !(is_section || block_type <= KNOWN_TYPE_MAX || CUSTOM.contains(&block_type)) {
            return Look::Unlike;
        }
        let Some(block) = rest.get(..len as usize) else { return Look::Short };
        if endian.u32(block, block.len() - 4) != len {
            return Look::Unlike;
        }
        let seen = Seen { len: block.len(), time_ns: None, is_odd: false, is_section };
        let is_packet = matches!(block_type, ENHANCED_PACKET | OLD_PACKET);
        if is_packet { self.look_at_packet(block_type, block, seen) } else { Look::Fits(seen) }
    }

    fn look_at_packet(&self, block_type: u32, block: &[u8], seen: Seen) -> Look {
        if block.len() < 32 {
            return Look::Unlike;
        }
        let field = |at: usize| self.endian.u32(block, at);
        let number = self.interface_number(block_type, &block[8..]);
        let Some(interface) = self.interfaces.get(number as usize) else { return Look::Unlike };
        let (captured_len, original_len) = (field(20), field(24));
        if captured_len as usize > block.len() - 32 {
            return Look::Unlike;
        }
        let time_ns = interface.time_ns(u64::from(field(12)) << 32 | u64::from(field(16)));
        Look::Fits(Seen { time_ns: Some(time_ns), is_odd: is_odd(captured_len, original_len), ..seen })
    }
}

const fn is_length(len: u32) -> bool {
    len >= BLOCK_OVERHEAD_BYTES && len.is_multiple_of(4) && len <= BLOCK_BYTES_MAX
}

impl Interface {
    /// Nanoseconds since the epoch, held within what 64 bits count.
    fn time_ns(&self, ticks: u64) -> u64 {
        let offset_ns = i128::from(self.offset_s) * 1_000_000_000;
        // 64 bits of seconds are less than 2^94 ns.
        let time_ns = self.unit.nanoseconds(ticks) as i128 + offset_ns;
        time_ns.clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// From the first twelve octets of a section header.
fn byte_order(front: &[u8]) -> Option<Endian> {
    [Endian::Big, Endian::Little].into_iter().find(|endian| endian.u32(front, 8) == BYTE_ORDER_MAGIC)
}
