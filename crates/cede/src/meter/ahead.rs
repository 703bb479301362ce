//! What is inside of files, read and unpacked ahead by threads of their own.

use super::reading::Progress;
use super::unpack::decompressed;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Octets of a piece that is handed from who unpacks a file to who looks at its packets, and pieces that wait at most.
pub(super) const PIECE_BYTES: usize = 1 << 18;
pub(super) const PIECES_MAX: usize = 16;
/// Whoever waits for one looks as often for a signal.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

/// What is inside of a file, read by a thread of its own up to so many pieces ahead.
pub(super) fn unpacked_ahead(
    source: Box<dyn Read + Send>,
    pieces: usize,
    progress: &Arc<Progress>,
) -> Pieces {
    let (sender, receiver) = sync_channel(pieces);
    let progress = Arc::clone(progress);
    std::thread::spawn(move || {
        let counted = Box::new(Counted { source, progress: &progress });
        let mut octets = match decompressed(counted) {
            Ok(octets) => octets,
            Err(error) => return drop(sender.send(Err(error))),
        };
        let mut room = vec![0; PIECE_BYTES];
        loop {
            let piece = next_piece(&mut *octets, &mut room);
            let is_over = piece.as_ref().map_or(true, Vec::is_empty);
            // Nobody may want any more.
            if sender.send(piece).is_err() || is_over {
                return;
            }
        }
    });
    Pieces { receiver, piece: io::Cursor::default() }
}

/// As many octets as come at once: whoever waited until a piece is full would have nothing of what a slow pipe said last.
fn next_piece(octets: &mut dyn Read, room: &mut [u8]) -> io::Result<Vec<u8>> {
    loop {
        match octets.read(room) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read.map(|bytes| room[..bytes].to_vec()),
        }
    }
}

/// Octets that come in pieces from another thread; whoever asks for the end meanwhile finds one.
#[derive(Debug)]
pub(super) struct Pieces {
    receiver: Receiver<io::Result<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.piece.read(out)?;
        if read > 0 {
            return Ok(read);
        }
        while !crate::interrupt::is_asked() {
            match self.receiver.recv_timeout(SIGNALS_EVERY) {
                Ok(piece) => {
                    self.piece = io::Cursor::new(piece?);
                    return self.piece.read(out);
                }
                Err(RecvTimeoutError::Timeout) => {}
                // There is no more.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(0)
    }
}

/// Counts what was read for the line of progress.
pub(super) struct Counted<'a> {
    pub source: Box<dyn Read + Send>,
    pub progress: &'a Progress,
}

impl Read for Counted<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(out)?;
        self.progress.count(read);
        Ok(read)
    }
}
