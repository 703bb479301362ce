//! Classic pcap files: one header, then record after record.

use super::recover::{Look, Seen, is_odd};
use super::{Cursor, Decoder, Endian, ReadError, ReadErrorKind, Record};
use crate::link::LinkType;

// Draft, section 4: the magic number tells byte order and resolution.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// A record has no more octets than this, or than the snapshot length that the file states where that is greater, as tcpdump
/// has it; a snapshot length beyond the other one is none.
const CAPTURED_BYTES_MAX: u32 = 1 << 18;
const SNAPSHOT_BYTES_MAX: u32 = 1 << 24;

/// What the file header fixes for all records.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    endian: Endian,
    fraction_ns: u64,
    link_type: LinkType,
    captured_max: u32,
    /// Where the last record begins, and whether it is odd.
    pub(super) last: (usize, bool),
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
        let snapshot = endian.u32(header, 16);
        let stated = if snapshot <= SNAPSHOT_BYTES_MAX { snapshot } else { 0 };
        let captured_max = stated.max(CAPTURED_BYTES_MAX);
        Ok(Self { endian, fraction_ns, link_type, captured_max, last: (0, false) })
    }

    // What is returned stays in registers.
    #[inline(always)]
    pub(super) fn next<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<Record<'a>>, ReadError> {
        if cursor.is_at_end() {
            return Ok(None);
        }
        let header = cursor.rest().split_first_chunk::<RECORD_HEADER_BYTES>();
        let (header, rest) = header.ok_or(cursor.error(ReadErrorKind::Truncated))?;
        let [seconds, fraction, captured_len, original_len] = self.fields(header);
        if captured_len > self.captured_max {
            return Err(cursor.error(ReadErrorKind::RecordLength(captured_len)));
        }
        let captured = rest.get(..captured_len as usize).ok_or(cursor.error(ReadErrorKind::Truncated))?;
        self.last = (cursor.offset, self.is_odd(fraction, captured_len, original_len));
        cursor.advance(RECORD_HEADER_BYTES + captured.len());
        Ok(Some(Record {
            time_ns: Some(self.time_ns(seconds, fraction)),
            interface: 0,
            link_type: self.link_type,
            captured,
            original_len,
        }))
    }

    /// As [`Decoder::each_usual`].
    // What a record says stays in registers until it is handed over.
    #[inline(always)]
    pub(super) fn each_usual<'a>(
        &self,
        octets: &'a [u8],
        taken: &mut usize,
        last_ns: &mut u64,
        take: &mut impl FnMut(&Record<'a>),
    ) {
        let mut rest = octets.get(*taken..).unwrap_or_default();
        let mut last = *last_ns;
        while let Some((header, behind)) = rest.split_first_chunk::<RECORD_HEADER_BYTES>() {
            let [seconds, fraction, captured_len, original_len] = self.fields(header);
            let time_ns = self.time_ns(seconds, fraction);
            let is_usual = captured_len <= self.captured_max
                && !self.is_odd(fraction, captured_len, original_len)
                && !Decoder::is_far(last, time_ns);
            let Some((captured, behind)) =
                behind.split_at_checked(captured_len as usize).filter(|_| is_usual)
            else {
                break;
            };
            let link_type = self.link_type;
            take(&Record { time_ns: Some(time_ns), interface: 0, link_type, captured, original_len });
            (rest, last) = (behind, time_ns);
        }
        (*taken, *last_ns) = (octets.len() - rest.len(), last);
    }

    /// The four numbers of a record's header.
    #[inline(always)]
    fn fields(&self, header: &[u8; RECORD_HEADER_BYTES]) -> [u32; 4] {
        let (words, _) = header.as_chunks::<4>();
        let fields = [words[0], words[1], words[2], words[3]];
        // Asked once for all of them.
        match self.endian {
            Endian::Little => fields.map(u32::from_le_bytes),
            Endian::Big => fields.map(u32::from_be_bytes),
        }
    }

    #[inline]
    fn time_ns(&self, seconds: u32, fraction: u32) -> u64 {
        u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.fraction_ns
    }

    #[inline]
    fn is_odd(&self, fraction: u32, captured_len: u32, original_len: u32) -> bool {
        is_odd(captured_len, original_len) || u64::from(fraction) * self.fraction_ns >= 1_000_000_000
    }

    /// What stands at a place, by its header.
    pub(super) fn look(&self, octets: &[u8], at: usize) -> Look {
        let header = octets.get(at..).and_then(|rest| rest.first_chunk());
        let Some(header) = header else { return Look::Short };
        let [seconds, fraction, captured_len, original_len] = self.fields(header);
        // Zeros are what a file system puts where nothing was written.
        if captured_len > self.captured_max || seconds | fraction | captured_len | original_len == 0 {
            return Look::Unlike;
        }
        Look::Fits(Seen {
            len: RECORD_HEADER_BYTES + captured_len as usize,
            time_ns: Some(self.time_ns(seconds, fraction)),
            is_odd: self.is_odd(fraction, captured_len, original_len),
            is_section: false,
        })
    }
}
