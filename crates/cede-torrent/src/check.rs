//! Which pieces are there: their hashes say so, and nothing else does.

use crate::storage::Storage;
use cede_bt::metainfo::Info;
use sha1::{Digest, Sha1};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What is read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// One thread hashes about as fast as a good disk reads; a second one hides its waits.
const THREADS: usize = 2;

/// A check that runs: others may look at it, and end it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Octets that have been dealt with.
    pub done: AtomicU64,
    /// The check is to end; pieces that have not been looked at then count as missing.
    pub is_ended: AtomicBool,
}

/// Hashes every piece that may be there: `skip` tells those that are known to be missing. The answer has a flag for each
/// piece.
#[must_use]
pub fn check(storage: &Storage, info: &Info, skip: &[bool], watch: &Watch) -> Vec<bool> {
    let next = AtomicU32::new(0);
    let work = || {
        let mut found = Vec::new();
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= info.piece_count() || watch.is_ended.load(Ordering::Relaxed) {
                return found;
            }
            let is_skipped = skip.get(piece as usize).copied().unwrap_or(false);
            if !is_skipped && is_whole(storage, info, piece, &mut buffer) {
                found.push(piece);
            }
            watch.done.fetch_add(info.piece_bytes(piece).into(), Ordering::Relaxed);
        }
    };
    let mut whole = vec![false; info.piece_count() as usize];
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for piece in threads.into_iter().filter_map(|thread| thread.join().ok()).flatten() {
            whole[piece as usize] = true;
        }
    });
    whole
}

/// Whether what is stored of a piece has its hash. What cannot be read is not there.
#[must_use]
pub fn is_whole(storage: &Storage, info: &Info, piece: u32, buffer: &mut [u8]) -> bool {
    let range = storage.layout().piece_range(piece);
    let (mut digest, mut at) = (Sha1::new(), range.start);
    while at < range.end {
        let len = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(buffer.len());
        if storage.read(at, &mut buffer[..len]).is_err() {
            return false;
        }
        digest.update(&buffer[..len]);
        at += len as u64;
    }
    info.piece_hash(piece) == Some(digest.finalize().into())
}
