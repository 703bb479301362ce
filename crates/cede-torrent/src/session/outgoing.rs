//! What waits to be written to one connection: octets, with room between them for content, which is read when it is about to
//! leave.
//!
//! Blocks that lie one behind the other in the content are read by one call, whatever message heads stand between them.
//! Memory is neither cleared nor given back to the system between uses: it is shared by all connections through [`Spare`].

use crate::storage::{Storage, StorageError};

/// Buffers that are kept for another use.
const MAX_SPARE: usize = 16;
/// A connection that begins to send takes that much at least.
const MIN_BYTES: usize = 4 << 10;

/// Buffers that nobody uses.
#[derive(Default)]
pub(crate) struct Spare(Vec<Vec<u8>>);

/// Octets, and room for content.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// Longer than what is held: the rest is left over from earlier uses.
    buffer: Vec<u8>,
    len: usize,
    gaps: Vec<Gap>,
}

/// Room for a run of the content.
struct Gap {
    at: usize,
    len: usize,
    offset: u64,
}

impl Outgoing {
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is room for content in it.
    pub const fn has_content(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// All of it. Room for content is filled by [`Outgoing::fetch`] before.
    pub fn octets(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    pub fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }

    pub fn push(&mut self, octets: &[u8], spare: &mut Spare) {
        self.grow(octets.len(), spare).copy_from_slice(octets);
    }

    /// Leaves room for content.
    pub fn leave_room(&mut self, offset: u64, len: usize, spare: &mut Spare) {
        let at = self.len;
        self.grow(len, spare);
        match self.gaps.last_mut() {
            Some(last) if last.at + last.len == at && last.offset + last.len as u64 == offset => {
                last.len += len;
            }
            _ => self.gaps.push(Gap { at, len, offset }),
        }
    }

    fn grow(&mut self, len: usize, spare: &mut Spare) -> &mut [u8] {
        if self.buffer.is_empty() {
            self.buffer = spare.0.pop().unwrap_or_default();
        }
        let start = self.len;
        self.len += len;
        if self.buffer.len() < self.len {
            self.buffer.resize(self.len.next_power_of_two().max(MIN_BYTES), 0);
        }
        &mut self.buffer[start..self.len]
    }

    /// Reads the content for which there is room.
    ///
    /// # Errors
    /// What the storage says.
    pub fn fetch(&mut self, storage: &Storage) -> Result<(), StorageError> {
        let (mut rest, mut passed) = (&mut self.buffer[..self.len], 0);
        let adjoin = |a: &Gap, b: &Gap| a.offset + a.len as u64 == b.offset;
        for run in self.gaps.chunk_by(adjoin) {
            let mut parts = Vec::with_capacity(run.len());
            for gap in run {
                let (part, behind) = rest.split_at_mut(gap.at - passed).1.split_at_mut(gap.len);
                parts.push(part);
                (rest, passed) = (behind, gap.at + gap.len);
            }
            storage.read_parts(run[0].offset, &mut parts)?;
        }
        self.gaps.clear();
        Ok(())
    }

    /// Forgets what it holds, and keeps its memory.
    pub fn clear(&mut self) {
        self.len = 0;
        self.gaps.clear();
    }

    /// Forgets what it holds, and lets others have its memory.
    pub fn give_back(&mut self, spare: &mut Spare) {
        self.clear();
        let buffer = std::mem::take(&mut self.buffer);
        if !buffer.is_empty() && spare.0.len() < MAX_SPARE {
            spare.0.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_bt::metainfo::{File, Info, Writer, sha1};
    use std::fs;

    /// Two files of 5,000 and 15,000 octets, and their content.
    fn content(folder: &std::path::Path) -> (Storage, Vec<u8>) {
        let octets: Vec<u8> =
            (0..20_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let file = |name: &str, length, offset| File {
            path: vec!["t".to_owned(), name.to_owned()],
            length,
            offset,
            is_padding: false,
            is_executable: false,
        };
        let files = vec![file("a", 5_000, 0), file("b", 15_000, 5_000)];
        let pieces = octets.chunks(16_384).flat_map(sha1).collect();
        let writer = Writer { name: "t".into(), piece_length: 16_384, pieces, files, ..Writer::default() };
        let info = Info::parse(&writer.info().encode()).unwrap();
        let storage = Storage::new(folder, &info, &[]).unwrap();
        storage.write(0, &octets).unwrap();
        (storage, octets)
    }

    #[test]
    fn content_stands_where_room_was_left_between_what_was_said() {
        let folder = std::env::temp_dir().join(format!("cede-outgoing-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (storage, octets) = content(&folder);
        let (mut spare, mut out) = (Spare::default(), Outgoing::default());
        for _ in 0..2 {
            let mut expected = Vec::new();
            // In order, in two parts of one block, across the files' border, backwards.
            for (head, offset, len) in [
                ("one", 6_000, 1_000),
                ("two", 7_000, 2_000),
                ("", 9_000, 500),
                ("three", 4_000, 3_000),
                ("", 0, 7),
            ] {
                out.push(head.as_bytes(), &mut spare);
                out.leave_room(offset as u64, len, &mut spare);
                expected.extend_from_slice(head.as_bytes());
                expected.extend_from_slice(&octets[offset..offset + len]);
            }
            out.fetch(&storage).unwrap();
            assert_eq!(out.octets(), expected);
            out.give_back(&mut spare);
            assert!(out.is_empty() && spare.0.len() == 1);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let folder = std::env::temp_dir().join(format!("cede-outgoing-none-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (storage, _) = content(&folder);
        fs::write(folder.join("t/b"), b"cut").unwrap();
        let (mut spare, mut out) = (Spare::default(), Outgoing::default());
        out.leave_room(5_000, 100, &mut spare);
        assert!(out.fetch(&storage).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
