//! What is sent: a file, or a stream without a known end, read by a thread of its own.

use super::holes::{Stretch, stretch};
use super::{DIGEST_BYTES, Modified, Offer, PIECE_BYTES, PIECES, Piece};
use crate::message::HEAD_BYTES;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::mpsc as std_mpsc;
use std::thread;
use tokio::sync::mpsc;

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// Something to be sent.
pub struct Source {
    input: Input,
    offer: Offer,
    /// What it is called where something is said of it.
    label: String,
    digest: blake3::Hasher,
    at: u64,
    stretch: Stretch,
}

enum Input {
    /// Can be read again from its beginning.
    File(File),
    /// Can be read once.
    Stream(Box<dyn Read + Send>),
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(out),
            Self::Stream(stream) => stream.read(out),
        }
    }
}

impl Source {
    /// A file. Devices and pipes are read as streams.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn file(path: &Path) -> Result<Self, String> {
        let label = path.display().to_string();
        let unreadable = |error: io::Error| format!("cannot read {label}: {error}");
        // Asked before it is opened: opening a pipe waits for a writer.
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        if metadata.is_dir() {
            let how = format!("tar c {label} | cede send - HOST:PORT");
            return Err(format!("{label} is a folder; pack it on the way: {how}"));
        }
        let mut file = File::open(path).map_err(unreadable)?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !metadata.is_file() || is_unmeasured(&mut file, &metadata).map_err(unreadable)? {
            return Ok(Self::stream(Box::new(file), &name, label));
        }
        let offer = Offer { name, bytes: Some(metadata.len()), modified: modified(&metadata) };
        Ok(Self::new(Input::File(file), offer, label))
    }

    /// A stream that is read to its end, such as standard input.
    #[must_use]
    pub fn stream(stream: Box<dyn Read + Send>, name: &str, label: String) -> Self {
        let offer = Offer { name: name.to_owned(), ..Offer::default() };
        Self::new(Input::Stream(stream), offer, label)
    }

    fn new(input: Input, offer: Offer, label: String) -> Self {
        Self { input, offer, label, digest: blake3::Hasher::new(), at: 0, stretch: Stretch::default() }
    }

    /// The same under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.offer.name);
        self
    }

    /// The same, called so where something is said of it: where on this machine it is, is nobody else's business.
    #[must_use]
    pub(crate) fn labelled(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    /// What it is called here in what goes wrong, and what it is called by others.
    pub(crate) fn names(&self) -> (String, String) {
        (self.label.clone(), self.offer.name.clone())
    }

    /// What the receiver is told.
    #[must_use]
    pub const fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Reads so much from the beginning, and says its digest.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn digest_of_first(&mut self, bytes: u64) -> Result<[u8; DIGEST_BYTES], String> {
        let mut piece = vec![0; PIECE_BYTES];
        while self.at < bytes {
            let most = (bytes - self.at).min(piece.len() as u64) as usize;
            match self.input.read(&mut piece[..most]) {
                Ok(0) => break,
                Ok(n) => {
                    self.digest.update(&piece[..n]);
                    self.at += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(&error)),
            }
        }
        Ok(self.digest.finalize().into())
    }

    /// Goes back to the beginning.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn rewind(&mut self) -> Result<(), String> {
        if let Input::File(file) = &mut self.input
            && self.at > 0
        {
            let rewound = file.rewind();
            rewound.map_err(|error| self.unreadable(&error))?;
        }
        (self.digest, self.at, self.stretch) = (blake3::Hasher::new(), 0, Stretch::default());
        Ok(())
    }

    /// Has a thread read the rest. Buffers that come back are used again.
    pub(crate) fn pump(self) -> Result<Pump, String> {
        let (pieces_in, pieces) = mpsc::channel(PIECES);
        let (spent, spent_out) = std_mpsc::channel();
        let thread = thread::Builder::new().name("source".to_owned());
        let spawned = thread.spawn(move || self.read_all(&pieces_in, &spent_out));
        spawned.map_err(|error| format!("no thread to read with: {error}"))?;
        Ok(Pump { pieces, spent })
    }

    fn read_all(mut self, out: &mpsc::Sender<Piece>, spent: &std_mpsc::Receiver<Vec<u8>>) {
        loop {
            let mut frame = spent.try_recv().unwrap_or_default();
            let filled = match self.skip() {
                Ok(0) => self.fill(&mut frame),
                Ok(bytes) => {
                    if out.blocking_send(Piece::Hole(bytes)).is_err() {
                        return;
                    }
                    continue;
                }
                Err(error) => Err(error),
            };
            let piece = match filled {
                Ok(0) => self.end(),
                Ok(bytes) if bytes == PIECE_BYTES && is_zero(&frame[HEAD_BYTES..]) => {
                    Piece::Hole(bytes as u64)
                }
                Ok(_) => Piece::Data(frame),
                Err(error) => Piece::Failed(self.unreadable(&error)),
            };
            let is_last = matches!(piece, Piece::End { .. } | Piece::Failed(_));
            if out.blocking_send(piece).is_err() || is_last {
                return;
            }
        }
    }

    /// Skips a piece of a hole, and says how long it was.
    fn skip(&mut self) -> io::Result<u64> {
        let (Input::File(file), Some(bytes)) = (&mut self.input, self.offer.bytes) else { return Ok(0) };
        if self.at >= self.stretch.end && self.at < bytes {
            self.stretch = stretch(file, self.at, bytes);
            file.seek(SeekFrom::Start(self.at))?;
        }
        let left = self.stretch.end.saturating_sub(self.at).min(PIECE_BYTES as u64);
        if !self.stretch.is_hole || left == 0 {
            return Ok(0);
        }
        self.at += left;
        file.seek(SeekFrom::Start(self.at))?;
        self.digest.update(&ZEROS[..left as usize]);
        Ok(left)
    }

    /// Fills a frame as far as what there is goes, and takes it into the digest.
    fn fill(&mut self, frame: &mut Vec<u8>) -> io::Result<usize> {
        let left = self.offer.bytes.map_or(u64::MAX, |bytes| bytes.saturating_sub(self.at));
        let most = left.min(PIECE_BYTES as u64) as usize;
        frame.resize(HEAD_BYTES + most, 0);
        let mut filled = 0;
        while filled < most {
            match self.input.read(&mut frame[HEAD_BYTES + filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // Whoever types wants to see it arrive.
            if matches!(self.input, Input::Stream(_)) {
                break;
            }
        }
        frame.truncate(HEAD_BYTES + filled);
        self.digest.update(&frame[HEAD_BYTES..]);
        self.at += filled as u64;
        Ok(filled)
    }

    fn end(&self) -> Piece {
        match self.offer.bytes {
            Some(bytes) if self.at < bytes => {
                let label = &self.label;
                let missing = bytes - self.at;
                Piece::Failed(format!(
                    "{label} became shorter while it was sent: {missing} octets are missing"
                ))
            }
            _ => Piece::End { bytes: self.at, digest: self.digest.finalize().into() },
        }
    }

    fn unreadable(&self, error: &io::Error) -> String {
        format!("cannot read {} at octet {}: {error}", self.label, self.at)
    }
}

/// A source that is being read.
pub(crate) struct Pump {
    /// What has been read, in order.
    pub pieces: mpsc::Receiver<Piece>,
    /// Where buffers go back.
    pub spent: std_mpsc::Sender<Vec<u8>>,
}

/// Whether it calls itself empty and is not, as those below `/proc` do: how long it is shows at its end alone.
fn is_unmeasured(file: &mut File, metadata: &Metadata) -> io::Result<bool> {
    let has_more = metadata.len() == 0 && file.read(&mut [0; 1])? > 0;
    file.rewind()?;
    Ok(has_more)
}

fn modified(metadata: &Metadata) -> Option<Modified> {
    metadata.modified().ok().and_then(Modified::of)
}

fn is_zero(octets: &[u8]) -> bool {
    octets.chunks(64).all(|chunk| chunk.iter().fold(0, |any, octet| any | octet) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_told_from_everything_else() {
        assert!(is_zero(&[]) && is_zero(&[0; 200]));
        assert!((0..200).all(|k| !is_zero(&std::array::from_fn::<u8, 200, _>(|j| u8::from(j == k)))));
    }

    #[test]
    fn folders_and_missing_files_are_refused_in_words() {
        assert!(Source::file(Path::new("/")).err().unwrap().contains("tar c"));
        assert!(Source::file(Path::new("/no such")).err().unwrap().contains("cannot read /no such"));
    }
}
