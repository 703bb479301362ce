//! Captures that come in pieces, into a meter.

use crate::meter::Meter;
use cede_wire::pcap::{Decoder, ReadError, ReadErrorKind, Record};
use core::fmt;
use std::io::{self, Read};

/// Octets read at once: so many stay in a processor's own cache. A packet that is longer than what is there makes the buffer grow, up to the limit below.
const CHUNK_BYTES: usize = 1 << 18;
/// No block of a capture is longer than this; a length that says so is a wrong one.
const BUFFER_BYTES_MAX: usize = 1 << 25;

/// Why a capture was not read to its end. What came before counts.
#[derive(Debug)]
pub enum FeedError {
    /// Reading failed.
    Io(io::Error),
    /// The capture is wrong, at this offset of it.
    Capture {
        /// Octets before what is wrong.
        offset: u64,
        /// What is wrong.
        kind: ReadErrorKind,
    },
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Capture { offset, kind } => write!(f, "at octet {offset}: {kind}"),
        }
    }
}

impl core::error::Error for FeedError {}

impl From<io::Error> for FeedError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a capture, pcap or pcapng, from anything that gives octets: a file, a pipe, a decompressor.
#[derive(Debug)]
pub struct Feed<R> {
    source: R,
    decoder: Decoder,
    buffer: Vec<u8>,
    /// What of the buffer is filled and not yet taken.
    begin: usize,
    end: usize,
    /// Octets that were in the buffer before.
    passed: u64,
}

impl<R: Read> Feed<R> {
    /// A feed from the beginning of a capture.
    pub const fn new(source: R) -> Self {
        Self { source, decoder: Decoder::new(), buffer: Vec::new(), begin: 0, end: 0, passed: 0 }
    }

    /// Octets of the capture that were read.
    pub const fn offset(&self) -> u64 {
        self.passed + self.begin as u64
    }

    /// Reads on by a piece and hands its packets to the meter; false at the end.
    ///
    /// # Errors
    /// [`FeedError`]; the packets before the error were handed over.
    pub fn step(&mut self, meter: &mut Meter) -> Result<bool, FeedError> {
        self.step_into(&mut |record| meter.record(record))
    }

    /// As [`Self::step`], for whatever takes packets.
    ///
    /// # Errors
    /// [`FeedError`]; the packets before the error were handed over.
    pub fn step_into(&mut self, take: &mut impl FnMut(&Record<'_>)) -> Result<bool, FeedError> {
        let is_over = self.refill()? == 0;
        loop {
            match self.decoder.next(&self.buffer[..self.end], &mut self.begin) {
                Ok(Some(record)) => take(&record),
                Ok(None) if is_over && self.offset() == 0 => return Err(self.error(ReadErrorKind::Truncated)),
                Ok(None) => return Ok(!is_over),
                Err(ReadError { kind: ReadErrorKind::Truncated, .. }) if !is_over && !self.is_stuck() => {
                    return Ok(true);
                }
                Err(error) => return Err(self.error(error.kind)),
            }
        }
    }

    /// A block that claims to be longer than any is.
    const fn is_stuck(&self) -> bool {
        self.end - self.begin >= BUFFER_BYTES_MAX
    }

    const fn error(&self, kind: ReadErrorKind) -> FeedError {
        FeedError::Capture { offset: self.offset(), kind }
    }

    /// Moves what is left to the front and reads more behind it: how many octets.
    fn refill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.passed += self.begin as u64;
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.buffer.len() < self.end + CHUNK_BYTES {
            self.buffer.resize((self.end + CHUNK_BYTES).next_power_of_two(), 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
