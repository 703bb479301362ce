//! Work on every piece of a torrent, on all cores, and the digests of pieces.
//!
//! A piece is the unit of work: each has a digest of its own, so none waits for another, and what is held in memory is a
//! buffer for each thread whatever the length of pieces. Pieces are handed out in order, so that a disk is still read almost
//! from its beginning to its end.

use cede_bt::digest::{Digest, Hasher};
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;

/// What a thread reads at once.
pub const CHUNK_BYTES: usize = 256 << 10;
/// Where there is one core, a second thread still hides the waits for a disk.
const MIN_THREADS: usize = 2;

/// Work that goes on: others may look at it, and end it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Octets that have been dealt with.
    pub done: AtomicU64,
    /// The work is to end; pieces that have not been looked at then count as missing.
    pub is_ended: AtomicBool,
}

/// Gives each piece to one of as many threads as there are cores, this one among them. What came of them, in their order,
/// where anything did. `worker` makes what one thread works with.
pub fn on_all_cores<T, W>(count: u32, watch: &Watch, worker: impl Fn() -> W + Sync) -> Vec<(u32, T)>
where
    T: Send,
    W: FnMut(u32) -> Option<T>,
{
    let next = AtomicU32::new(0);
    let run = || {
        let (mut work, mut made) = (worker(), Vec::new());
        while !watch.is_ended.load(Relaxed) {
            let piece = next.fetch_add(1, Relaxed);
            if piece >= count {
                break;
            }
            made.extend(work(piece).map(|result| (piece, result)));
        }
        made
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.max(MIN_THREADS).min(count as usize);
    let mut made = thread::scope(|scope| {
        // Where the system has no more threads, those that are there do the work.
        let others = (1..threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok());
        let others: Vec<_> = others.collect();
        let mut made = run();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made
    });
    made.sort_unstable_by_key(|(piece, _)| *piece);
    made
}

/// The digest of a run of the content by `hasher`, read in portions of the buffer's length.
///
/// # Errors
/// Those of `read`.
pub fn digest<E>(
    mut hasher: Hasher,
    range: &Range<u64>,
    buffer: &mut [u8],
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Digest, E> {
    let mut at = range.start;
    while at < range.end {
        let len = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(buffer.len());
        read(at, &mut buffer[..len])?;
        hasher.update(&buffer[..len]);
        at += len as u64;
    }
    Ok(hasher.finish())
}

/// The digest of a whole piece of zeros, computed once it is needed. So a hole in a sparse file costs a question to the
/// system for each piece, however large it is.
#[derive(Debug)]
pub struct Blank {
    bytes: u64,
    hasher: Hasher,
    digest: OnceLock<Digest>,
}

impl Blank {
    /// That of pieces of a length, by what hashes them.
    pub const fn new(piece_length: u32, hasher: Hasher) -> Self {
        Self { bytes: piece_length as u64, hasher, digest: OnceLock::new() }
    }

    /// The digest of a range that is a hole; none where it is none, or is not of a piece's length, as the last one of a
    /// torrent may be.
    ///
    /// # Errors
    /// Those of `is_hole`.
    pub fn digest_of<E>(
        &self,
        range: &Range<u64>,
        is_hole: impl FnOnce(&Range<u64>) -> Result<bool, E>,
    ) -> Result<Option<Digest>, E> {
        let is_blank = range.end - range.start == self.bytes && is_hole(range)?;
        Ok(is_blank.then(|| *self.digest.get_or_init(|| self.compute())))
    }

    fn compute(&self) -> Digest {
        let zeros = [0; 4096];
        let mut hasher = self.hasher.clone();
        let mut left = self.bytes;
        while left > 0 {
            let len = left.min(zeros.len() as u64);
            hasher.update(&zeros[..len as usize]);
            left -= len;
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;

    #[test]
    fn each_piece_is_given_out_once_and_what_comes_of_them_is_in_order() {
        for count in [0, 1, 2, 3, 1000] {
            let made =
                on_all_cores(count, &Watch::default(), || |piece| (piece % 3 != 1).then_some(piece * 2));
            let expected: Vec<(u32, u32)> =
                (0..count).filter(|piece| piece % 3 != 1).map(|piece| (piece, piece * 2)).collect();
            assert_eq!(made, expected);
        }
    }

    #[test]
    fn work_is_done_by_several_threads_at_a_time() {
        let threads = Mutex::new(HashSet::new());
        on_all_cores(4, &Watch::default(), || {
            |_| {
                // The first waits for another: alone it would wait for ever.
                threads.lock().unwrap().insert(thread::current().id());
                while threads.lock().unwrap().len() < 2 {
                    thread::yield_now();
                }
                Some(())
            }
        });
        assert!(threads.lock().unwrap().len() >= 2);
    }

    #[test]
    fn work_that_is_ended_ends() {
        let watch = Watch::default();
        let made = on_all_cores(1 << 22, &watch, || {
            |piece| {
                watch.is_ended.fetch_or(piece >= 100, Relaxed);
                Some(())
            }
        });
        assert!(made.len() < 1 << 22, "{}", made.len());
    }

    #[test]
    fn zeros_have_their_digest() {
        for bytes in [1_u32, 4096, 16_384, 5000] {
            let blank = Blank::new(bytes, Hasher::v1());
            let of = |len: u64, is_hole| blank.digest_of(&(7..7 + len), |_| is_hole);
            let expected = Digest::V1(cede_bt::metainfo::sha1(&vec![0; bytes as usize]));
            assert_eq!(of(bytes.into(), Ok(true)), Ok(Some(expected)));
            assert_eq!(of(bytes.into(), Ok(false)), Ok(None));
            assert_eq!(of(bytes.into(), Err(())), Err(()));
            assert_eq!(of(u64::from(bytes) - 1, Ok(true)), Ok(None));
        }
    }
}
