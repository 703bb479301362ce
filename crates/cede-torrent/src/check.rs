//! Which pieces are there: their hashes say so, and nothing else does.

use crate::pieces::{Blank, CHUNK_BYTES, digest, on_all_cores};
use crate::storage::Storage;
use cede_bt::metainfo::Info;
use std::convert::Infallible;
use std::sync::atomic::Ordering::Relaxed;

pub use crate::pieces::Watch;

/// Hashes every piece that may be there: `skip` tells those that are known to be missing. The answer has a flag for each
/// piece.
#[must_use]
pub fn check(storage: &Storage, info: &Info, skip: &[bool], watch: &Watch) -> Vec<bool> {
    let blank = Blank::new(info.piece_length, info.whole_hasher());
    let found = on_all_cores(info.piece_count(), watch, || {
        let (mut buffer, blank) = (vec![0; CHUNK_BYTES], &blank);
        move |piece| {
            let is_skipped = skip.get(piece as usize).copied().unwrap_or(false);
            let is_there = !is_skipped && is_there(storage, info, piece, blank, &mut buffer);
            watch.done.fetch_add(info.piece_bytes(piece).into(), Relaxed);
            is_there.then_some(())
        }
    });
    let mut whole = vec![false; info.piece_count() as usize];
    found.iter().for_each(|(piece, ())| whole[*piece as usize] = true);
    whole
}

/// The same as [`is_whole`], without reading where nothing was ever written.
fn is_there(storage: &Storage, info: &Info, piece: u32, blank: &Blank, buffer: &mut [u8]) -> bool {
    let range = storage.layout().piece_range(piece);
    match blank.digest_of(&range, |range| Ok::<_, Infallible>(storage.is_hole(range))) {
        Ok(Some(digest)) => info.piece_hash(piece) == Some(digest),
        Ok(None) => is_whole(storage, info, piece, buffer),
    }
}

/// Whether what is stored of a piece has its hash. What cannot be read is not there.
#[must_use]
pub fn is_whole(storage: &Storage, info: &Info, piece: u32, buffer: &mut [u8]) -> bool {
    let range = storage.layout().piece_range(piece);
    let found = digest(info.hasher(piece), &range, buffer, |at, octets| storage.read(at, octets));
    found.is_ok_and(|digest| info.piece_hash(piece) == Some(digest))
}
