//! Which pieces are there: their hashes say so, and nothing else does.

use crate::pieces::{Blank, Buffers, Content, digest, digests, on_all_cores};
use crate::storage::Storage;
use cede_bt::metainfo::Info;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

pub use crate::pieces::Watch;

/// A torrent's content, to be read until an end is asked for.
struct Watched<'a> {
    storage: &'a Storage,
    watch: &'a Watch,
}

impl Content for Watched<'_> {
    /// What cannot be read is not there, whatever the reason.
    type Error = ();

    fn is_hole(&mut self, range: &Range<u64>) -> Result<bool, ()> {
        Ok(self.storage.is_hole(range))
    }

    fn read(&mut self, at: u64, octets: &mut [u8]) -> Result<(), ()> {
        // A slow disk takes long for a piece.
        if self.watch.is_ended.load(Relaxed) {
            return Err(());
        }
        self.storage.read(at, octets).map_err(|error| self.watch.note(error))
    }
}

/// Hashes every piece that may be there: `skip` tells those that are known to be missing. The answer has a flag for each
/// piece.
#[must_use]
pub fn check(storage: &Storage, info: &Info, skip: &[bool], watch: &Watch) -> Vec<bool> {
    let blank = Blank::new(info.piece_length, info.whole_hasher());
    let is_due = |piece: &u32| !skip.get(*piece as usize).copied().unwrap_or(false);
    let task = |piece: u32| (info.hasher(piece), storage.layout().piece_range(piece));
    let found = on_all_cores(info.piece_count(), watch, || {
        let (mut buffers, mut content, blank) = (Buffers::default(), Watched { storage, watch }, &blank);
        move |first, second| {
            let pieces = [Some(first), second];
            let tasks = pieces.map(|piece| piece.filter(is_due).map(task));
            let digests = digests(tasks, blank, &mut buffers, &mut content);
            let octets = pieces.iter().flatten().map(|piece| u64::from(info.piece_bytes(*piece)));
            watch.done.fetch_add(octets.sum(), Relaxed);
            // What cannot be read is not there.
            let [a, b] = digests.map(|digest| digest.and_then(Result::ok));
            [(pieces[0], a), (pieces[1], b)]
                .map(|(piece, found)| (found? == info.piece_hash(piece?)?).then_some(()))
        }
    });
    let mut whole = vec![false; info.piece_count() as usize];
    found.iter().for_each(|(piece, ())| whole[*piece as usize] = true);
    whole
}

/// Whether what is stored of a piece has its hash. What cannot be read is not there.
#[must_use]
pub fn is_whole(storage: &Storage, info: &Info, piece: u32, buffer: &mut [u8]) -> bool {
    let task = (info.hasher(piece), storage.layout().piece_range(piece));
    let found = digest(task, buffer, |at, octets| storage.read(at, octets));
    found.is_ok_and(|digest| info.piece_hash(piece) == Some(digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_bt::metainfo::{File, Info, Writer, sha1};

    #[test]
    fn in_the_midst_of_a_piece_an_end_is_one() {
        let file = File {
            path: vec!["t".to_owned()],
            length: 100,
            offset: 0,
            is_padding: false,
            is_executable: false,
        };
        let (files, pieces) = (vec![file], sha1(&[7; 100]).to_vec());
        let writer =
            Writer { name: "t".to_owned(), piece_length: 1 << 14, pieces, files, ..Writer::default() };
        let info = Info::parse(&writer.info().encode()).unwrap();
        let folder = std::env::temp_dir().join(format!("cede-check-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (storage, watch) = (Storage::new(&folder, &info, &[]).unwrap(), Watch::default());
        storage.write(0, &[7; 100]).unwrap();
        let mut content = Watched { storage: &storage, watch: &watch };
        assert_eq!(content.read(0, &mut [0; 50]), Ok(()));
        watch.is_ended.store(true, Relaxed);
        assert_eq!(content.read(50, &mut [0; 50]), Err(()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
