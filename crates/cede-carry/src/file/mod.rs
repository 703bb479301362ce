//! A file, from one machine to another: resumable, and checked from end to end.
//!
//! The sender says what it has ([`Offer`]), the receiver how much of it lies in `NAME.part` from an earlier time. Both
//! compute the BLAKE3 digest of that much; where they agree, the rest is sent, and else everything. At the end the
//! receiver compares the digest of the whole, flushes the file to the disk and only then gives it its name.
//!
//! # What it leaves out
//! Owners, permissions, extended attributes and folders: `tar` packs them. Holes of sparse files arrive as holes where
//! they cover whole pieces of 256 KiB; their octets count towards the digest, and are not sent.

mod holes;
mod name;
mod part;
mod receive;
mod send;
mod source;

pub use name::safe_name;
pub use part::Destination;
pub use receive::receive;
pub(crate) use receive::{offered, receive_offered};
pub use send::send;
pub use source::Source;

pub use crate::offer::{DIGEST_BYTES, Modified, Offer};

use crate::error::WireError;
use crate::stop::Stop;
use cede_utp::Snapshot;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// Octets that are read, sent and written at once.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// Pieces between two threads.
pub(crate) const PIECES: usize = 4;
/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// What a transfer is busy with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Comparing what is there already.
    Comparing,
    /// Moving octets.
    Moving,
    /// Everything has been sent; the receiver checks it and writes it out.
    Settling,
}

/// How far a transfer has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What it is busy with.
    pub phase: Phase,
    /// Octets that are there, those of an earlier time included.
    pub done: u64,
    /// Octets of the whole.
    pub total: Option<u64>,
    /// Octets of an earlier time.
    pub resumed: u64,
    /// The stream, where it still stands.
    pub stream: Option<Snapshot>,
    /// Packets sent again.
    pub retransmissions: u64,
    /// How long nothing has been heard of the other side; where this side sends, only while it awaits something.
    pub silent: Duration,
}

/// What was moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The name that it goes by: the sender's for the sender, the safe one for the receiver.
    pub name: String,
    /// Where it lies now, for a receiver of a file.
    pub path: Option<PathBuf>,
    /// Its octets.
    pub bytes: u64,
    /// How many of them had been there.
    pub resumed: u64,
    /// The BLAKE3 digest of all.
    pub digest: [u8; DIGEST_BYTES],
}

/// Why a transfer did not come to its end.
#[derive(Debug)]
pub enum TransferError {
    /// The conversation broke; what has arrived is kept.
    Wire(WireError),
    /// What is to be sent cannot be read.
    Source(String),
    /// What arrives cannot be written.
    Destination(String),
    /// Somebody asked for the end.
    Stopped,
    /// The sender said nothing for a while, and another came with the same file.
    Superseded,
    /// Somebody else sends a file of this name, and goes on doing so: nothing began.
    Busy,
    /// Somebody else's file of this name has come, after this one was offered or as the only one: nothing began.
    Late,
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire(error) => error.fmt(f),
            Self::Source(text) | Self::Destination(text) => f.write_str(text),
            Self::Stopped => f.write_str("stopped before the end"),
            Self::Busy => f.write_str("somebody else is sending a file of this name"),
            Self::Late => f.write_str("somebody else has sent a file of this name meanwhile"),
            Self::Superseded => f.write_str("the sender went silent, and came again"),
        }
    }
}

impl std::error::Error for TransferError {}

impl From<WireError> for TransferError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl From<std::io::Error> for TransferError {
    fn from(error: std::io::Error) -> Self {
        Self::Wire(error.into())
    }
}

/// Who is told of progress, and who may ask for the end.
pub struct Attendant<'a> {
    /// Asks for the end.
    pub stop: Stop,
    /// Is told how far it has come.
    pub watch: &'a mut (dyn FnMut(&Progress) + Send),
}

/// What is told, and when next.
pub(crate) struct Ticker {
    pub progress: Progress,
    next: Instant,
}

impl Ticker {
    fn new(total: Option<u64>) -> Self {
        let progress = Progress {
            phase: Phase::Comparing,
            done: 0,
            total,
            resumed: 0,
            stream: None,
            retransmissions: 0,
            silent: Duration::ZERO,
        };
        Self { progress, next: Instant::now() + TELL_EVERY }
    }

    fn tell(&mut self, attendant: &mut Attendant<'_>) {
        (attendant.watch)(&self.progress);
        self.next = Instant::now() + TELL_EVERY;
    }
}

/// What goes from thread to thread.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Octets; a source leaves room for a frame's head in front.
    Data(Vec<u8>),
    /// So many octets of zero.
    Hole(u64),
    /// That was all.
    End { bytes: u64, digest: [u8; DIGEST_BYTES] },
    /// It cannot go on.
    Failed(String),
}
