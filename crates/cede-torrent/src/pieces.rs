//! Work on every piece of a torrent, on all cores, and the digests of pieces.
//!
//! Two pieces are the unit of work: each has a digest of its own, so none waits for another, two are hashed side by side
//! ([`cede_bt::abreast`]), and what is held in memory is two buffers for each thread whatever the length of pieces. Pieces are
//! handed out in order, so that a disk is still read almost from its beginning to its end.

use crate::storage::StorageError;
use cede_bt::digest::{Digest, Hasher};
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;

/// What a thread reads at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Where there is one core, a second thread still hides the waits for a disk.
const MIN_THREADS: usize = 2;

/// Work that goes on: others may look at it, and end it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Octets that have been dealt with.
    pub done: AtomicU64,
    /// The work is to end; pieces that have not been looked at then count as missing.
    pub is_ended: AtomicBool,
    /// The first file that is there and could not be read all the same, and why.
    pub unread: OnceLock<StorageError>,
}

impl Watch {
    /// Something could not be read. That a file is not there, or not all of it, or cannot be opened is told by others.
    pub(crate) fn note(&self, error: StorageError) {
        if error.action == "read" && !error.is_cut_short() {
            let _ = self.unread.set(error);
        }
    }
}

/// Gives pieces, two by two, to as many threads as there are cores, this one among them. What came of them, in their order,
/// where anything did. `worker` makes what one thread works with; the last piece may be alone.
pub fn on_all_cores<T, W>(count: u32, watch: &Watch, worker: impl Fn() -> W + Sync) -> Vec<(u32, T)>
where
    T: Send,
    W: FnMut(u32, Option<u32>) -> [Option<T>; 2],
{
    let next = AtomicU32::new(0);
    let run = || {
        let (mut work, mut made) = (worker(), Vec::new());
        while !watch.is_ended.load(Relaxed) {
            let piece = next.fetch_add(2, Relaxed);
            if piece >= count {
                break;
            }
            let results = work(piece, Some(piece + 1).filter(|second| *second < count));
            made.extend((piece..).zip(results).filter_map(|(piece, result)| Some((piece, result?))));
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

/// A run of the content, and what hashes it.
pub type Task = (Hasher, Range<u64>);

/// What one thread reads into.
pub struct Buffers([Vec<u8>; 2]);

impl Default for Buffers {
    fn default() -> Self {
        Self([vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]])
    }
}

/// The digest of a run of the content, read in portions of the buffer's length.
///
/// # Errors
/// Those of `read`.
pub fn digest<E>(
    (mut hasher, range): Task,
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

/// What pieces are read from.
pub trait Content {
    /// Why something cannot be read.
    type Error;

    /// Whether a range was never written to, and so reads as zeros.
    ///
    /// # Errors
    /// That cannot be said.
    fn is_hole(&mut self, range: &Range<u64>) -> Result<bool, Self::Error>;

    /// Reads what is at a place.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&mut self, at: u64, octets: &mut [u8]) -> Result<(), Self::Error>;
}

/// The digests of one run or two, side by side as far as they are as long; holes are not read.
pub fn digests<C: Content>(
    tasks: [Option<Task>; 2],
    blank: &Blank,
    buffers: &mut Buffers,
    content: &mut C,
) -> [Option<Result<Digest, C::Error>>; 2] {
    let [blank_a, blank_b] = tasks.each_ref().map(|task| {
        let (_, range) = task.as_ref()?;
        blank.digest_of(range, |range| content.is_hole(range)).transpose()
    });
    let [a, b] = tasks;
    let mut read = |at, octets: &mut [u8]| content.read(at, octets);
    match [a.filter(|_| blank_a.is_none()), b.filter(|_| blank_b.is_none())] {
        [Some(a), Some(b)] => match both([a.clone(), b.clone()], buffers, &mut read) {
            Ok(digests) => digests.map(|digest| Some(Ok(digest))),
            // That one cannot be read is no reason why the other could not.
            Err(_) => [a, b].map(|task| Some(digest(task, &mut buffers.0[0], &mut read))),
        },
        [a, b] => [(a, blank_a), (b, blank_b)]
            .map(|(task, known)| known.or_else(|| Some(digest(task?, &mut buffers.0[0], &mut read)))),
    }
}

fn both<E>(
    [(mut hasher_a, mut a), (mut hasher_b, mut b)]: [Task; 2],
    Buffers([buffer_a, buffer_b]): &mut Buffers,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<[Digest; 2], E> {
    while !a.is_empty() && !b.is_empty() {
        let left = usize::try_from((a.end - a.start).min(b.end - b.start)).unwrap_or(usize::MAX);
        let len = left.min(buffer_a.len());
        read(a.start, &mut buffer_a[..len])?;
        read(b.start, &mut buffer_b[..len])?;
        Hasher::update_both(&mut hasher_a, &buffer_a[..len], &mut hasher_b, &buffer_b[..len]);
        a.start += len as u64;
        b.start += len as u64;
    }
    Ok([digest((hasher_a, a), buffer_a, &mut read)?, digest((hasher_b, b), buffer_b, &mut read)?])
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
            let made = on_all_cores(count, &Watch::default(), || {
                let work = |piece| (piece % 3 != 1).then_some(piece * 2);
                move |first, second: Option<u32>| [work(first), second.and_then(work)]
            });
            let expected: Vec<(u32, u32)> =
                (0..count).filter(|piece| piece % 3 != 1).map(|piece| (piece, piece * 2)).collect();
            assert_eq!(made, expected);
        }
    }

    #[test]
    fn work_is_done_by_several_threads_at_a_time() {
        let threads = Mutex::new(HashSet::new());
        on_all_cores(4, &Watch::default(), || {
            |_, _| {
                // The first waits for another: alone it would wait for ever.
                threads.lock().unwrap().insert(thread::current().id());
                while threads.lock().unwrap().len() < 2 {
                    thread::yield_now();
                }
                [Some(()), None]
            }
        });
        assert!(threads.lock().unwrap().len() >= 2);
    }

    #[test]
    fn work_that_is_ended_ends() {
        let watch = Watch::default();
        let made = on_all_cores(1 << 22, &watch, || {
            |piece, _| {
                watch.is_ended.fetch_or(piece >= 100, Relaxed);
                [Some(()), Some(())]
            }
        });
        assert!(made.len() < 1 << 22, "{}", made.len());
    }

    /// Octets, of which the last ones cannot be read and some are a hole.
    struct Odd(Vec<u8>, Range<u64>);

    impl Content for Odd {
        type Error = u64;

        fn is_hole(&mut self, range: &Range<u64>) -> Result<bool, u64> {
            Ok(*range == self.1)
        }

        fn read(&mut self, at: u64, octets: &mut [u8]) -> Result<(), u64> {
            let end = at as usize + octets.len();
            octets.copy_from_slice(self.0.get(at as usize..end).ok_or(at)?);
            Ok(())
        }
    }

    #[test]
    fn of_two_pieces_each_has_its_digest_or_its_failure() {
        let length = CHUNK_BYTES as u64 + 1000;
        let octets: Vec<u8> = (0..3 * length).map(|at| (at * 7 % 251) as u8).collect();
        let mut content = Odd(octets, 3 * length..4 * length);
        let blank = Blank::new(length as u32, Hasher::v1());
        let task = |piece: u64, length: u64| (Hasher::v1(), piece * length..(piece + 1) * length);
        let expected: Vec<_> = (0..3)
            .map(|piece| &content.0[piece * length as usize..(piece + 1) * length as usize])
            .map(|octets| Some(Ok(Digest::V1(cede_bt::metainfo::sha1(octets)))))
            .collect();
        let mut buffers = Buffers::default();
        let mut found = |a, b| digests([a, b], &blank, &mut buffers, &mut content);
        let whole = |piece| Some(task(piece, length));
        assert_eq!(found(whole(0), whole(1)), [expected[0], expected[1]]);
        assert_eq!(found(None, whole(2)), [None, expected[2]]);
        assert_eq!(found(whole(2), whole(4)), [expected[2], Some(Err(4 * length))]);
        let zeros = Some(Ok(Digest::V1(cede_bt::metainfo::sha1(&vec![0; length as usize]))));
        assert_eq!(found(whole(3), whole(1)), [zeros, expected[1]]);
        // The last piece may be shorter.
        let [long, short] = found(whole(0), Some(task(1, 1000)));
        assert_eq!(long, expected[0]);
        assert_eq!(short, Some(Ok(Digest::V1(cede_bt::metainfo::sha1(&content.0[1000..2000])))));
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
