//! Classic pcap files: one header, then record after record.

use super::{Cursor, Endian, ReadError, ReadErrorKind, Record};
use crate::link::LinkType;

// Draft, section 4: the magic number tells byte order and resolution.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;

/// What the file header fixes for all records.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    endian: Endian,
    fraction_ns: u64,
    link_type: LinkType,
}

impl Layout {
    /// Reads the file header; `magic` is its first number read as big-endian.
    pub(super) fn read(magic: u32, cursor: &mut Cursor<'_>) -> Result<Self, ReadError> {
        let endian = match magic {
            MICROSECONDS | NANOSECONDS => Endian::Big,
            _ => Endian::Little,
        };
        let fraction_ns = match magic {
            MICROSECONDS => 1000,
            NANOSECONDS => 1,
            _ if magic.swap_bytes() == MICROSECONDS => 1000,
            _ if magic.swap_bytes() == NANOSECONDS => 1,
            _ => return Err(cursor.error(ReadErrorKind::NotACapture)),
        };
        let header = cursor.peek(FILE_HEADER_BYTES)?;
        match endian.u16(header, 4) {
            2 => {}
            other => return Err(cursor.error(ReadErrorKind::Version(other))),
        }
        cursor.advance(FILE_HEADER_BYTES);
        // The upper half of the last field speaks of frame check sequences.
        let link_type = LinkType(endian.u32(header, 20) as u16);
        Ok(Self { endian, fraction_ns, link_type })
    }

    // What is returned stays in registers.
    #[inline(always)]
    pub(super) fn next<'a>(&self, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, ReadError> {
        if cursor.is_at_end() {
            return Ok(None);
        }
        let header = cursor.peek(RECORD_HEADER_BYTES)?;
        let field = |at| self.endian.u32(header, at);
        let captured_len = field(8) as usize;
        let record = cursor.peek(RECORD_HEADER_BYTES.saturating_add(captured_len))?;
        cursor.advance(record.len());
        let seconds_ns = u64::from(field(0)) * 1_000_000_000;
        Ok(Some(Record {
            time_ns: Some(seconds_ns + u64::from(field(4)) * self.fraction_ns),
            interface: 0,
            link_type: self.link_type,
            captured: &record[RECORD_HEADER_BYTES..],
            original_len: field(12),
        }))
    }
}
