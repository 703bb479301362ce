//! Captures that come in pieces, into a meter.

use crate::meter::Meter;
use cede_wire::pcap::{Decoder, ReadError, ReadErrorKind, Record, Rest, Resume, Verdict};
use core::fmt;
use std::io::{self, Read};

/// Octets read at once: so many stay in a processor's own cache. A packet that is longer than what is there makes the buffer grow, up to the limit below.
const CHUNK_BYTES: usize = 1 << 18;
/// No row of records that tells where to go on is longer than this.
const BUFFER_BYTES_MAX: usize = 1 << 25;

/// What is wrong with a capture. What was handed over counts.
#[derive(Debug)]
pub enum FeedError {
    /// Reading failed.
    Io(io::Error),
    /// The capture is none, or ends before its time, at this offset of it.
    Capture {
        /// Octets before what is wrong.
        offset: u64,
        /// What is wrong.
        kind: ReadErrorKind,
    },
    /// It was read to its end, but for what is damaged.
    Damaged(Damage),
}

/// What was passed over of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Octets before the first damage.
    pub offset: u64,
    /// What is wrong there.
    pub kind: ReadErrorKind,
    /// In how many places there is any.
    pub places: u64,
    /// Octets that were passed over in all.
    pub bytes: u64,
    /// The capture ends within a record besides.
    pub ends_early: bool,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, kind, places, bytes, ends_early } = self;
        write!(f, "at octet {offset}: {kind}; ")?;
        match places {
            1 => write!(f, "{bytes} octets were passed over")?,
            _ => write!(f, "{bytes} octets in {places} places were passed over")?,
        }
        if *ends_early { write!(f, ", and the file ends before its time") } else { Ok(()) }
    }
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Capture { offset, kind } => write!(f, "at octet {offset}: {kind}"),
            Self::Damaged(damage) => write!(f, "{damage}"),
        }
    }
}

impl core::error::Error for FeedError {}

impl From<io::Error> for FeedError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a capture, pcap or pcapng, from anything that gives octets: a file, a pipe, a decompressor. What is damaged is passed over
/// ([`cede_wire::pcap::Decoder::resume`]).
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
    /// The time of the last packet that had one.
    last_ns: Option<u64>,
    damage: Option<Damage>,
    /// Where what is being passed over begins.
    lost_at: Option<u64>,
}

/// Why there are no more packets for now.
enum Stop {
    /// The octets end between two.
    Between,
    /// More would tell whether the next one is one.
    Undecided,
    Wrong(ReadError),
}

impl<R: Read> Feed<R> {
    /// A feed from the beginning of a capture.
    pub const fn new(source: R) -> Self {
        Self {
            source,
            decoder: Decoder::new(),
            buffer: Vec::new(),
            begin: 0,
            end: 0,
            passed: 0,
            last_ns: None,
            damage: None,
            lost_at: None,
        }
    }

    /// Octets of the capture that were read.
    pub const fn offset(&self) -> u64 {
        self.passed + self.begin as u64
    }

    /// Interfaces that the capture has described so far ([`Decoder::interfaces`]).
    pub const fn interfaces(&self) -> usize {
        self.decoder.interfaces()
    }

    /// Reads on by a piece and hands its packets to the meter; false at the end.
    ///
    /// # Errors
    /// [`FeedError`], at the end; the packets before it, and behind what is damaged, were handed over.
    pub fn step(&mut self, meter: &mut Meter) -> Result<bool, FeedError> {
        let mut batch = meter.batch();
        self.step_into(&mut |record| batch.record(record))
    }

    /// As [`Self::step`], for whatever takes packets.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn step_into(&mut self, take: &mut impl FnMut(&Record<'_>)) -> Result<bool, FeedError> {
        let is_over = self.refill()? == 0;
        let is_all = is_over || self.end - self.begin >= BUFFER_BYTES_MAX;
        while self.is_found(is_all) {
            match self.records(is_all, take) {
                Stop::Wrong(error) if error.kind != ReadErrorKind::Truncated || is_all => {
                    self.lose(error)?;
                }
                Stop::Between if is_over && self.offset() == 0 => {
                    return Err(self.error(0, ReadErrorKind::Truncated));
                }
                _ => break,
            }
        }
        match self.damage {
            Some(damage) if is_over => Err(FeedError::Damaged(damage)),
            _ => Ok(!is_over),
        }
    }

    /// Hands over packets as long as one stands behind the other.
    #[inline]
    fn records(&mut self, is_all: bool, take: &mut impl FnMut(&Record<'_>)) -> Stop {
        let Self { decoder, buffer, begin, end, last_ns, .. } = self;
        let octets = &buffer[..*end];
        loop {
            if let Some(last_ns) = last_ns {
                decoder.each_usual(octets, begin, last_ns, take);
            }
            // It stays where it was put together: a copy would have to wait until all of it is in memory.
            let next = decoder.next(octets, begin);
            let record = match &next {
                Ok(Some(record)) => record,
                Ok(None) => return Stop::Between,
                Err(error) => return Stop::Wrong(*error),
            };
            let (at, is_odd) = decoder.last();
            let is_far = last_ns.zip(record.time_ns).is_some_and(|(last, next)| Decoder::is_far(last, next));
            if is_odd || is_far {
                match decoder.judge(Rest { octets, is_all }, at, *last_ns) {
                    Verdict::Fits => {}
                    Verdict::Undecided => {
                        *begin = at;
                        return Stop::Undecided;
                    }
                    Verdict::Unlike => {
                        return Stop::Wrong(ReadError { offset: at, kind: ReadErrorKind::Implausible });
                    }
                }
            }
            *last_ns = record.time_ns.or(*last_ns);
            take(record);
        }
    }

    /// Begins to pass over what is wrong, where that is not the end of everything.
    fn lose(&mut self, error: ReadError) -> Result<(), FeedError> {
        let (mut kind, mut begin) = (error.kind, error.offset + 1);
        let octets = &self.buffer[..self.end];
        if self.passed + error.offset as u64 == 0 {
            return Err(self.error(error.offset, kind));
        }
        if kind == ReadErrorKind::Truncated {
            // The end of the capture, or a length that is wrong: then there are others behind it.
            let rest = Rest { octets, is_all: true };
            let Resume::At(found) = self.decoder.resume(rest, begin, self.last_ns) else {
                let Some(damage) = self.damage else { return Err(self.error(error.offset, kind)) };
                return Err(FeedError::Damaged(Damage { ends_early: true, ..damage }));
            };
            (kind, begin) = (ReadErrorKind::Implausible, found);
        }
        let offset = self.passed + error.offset as u64;
        let none = Damage { offset, kind, places: 0, bytes: 0, ends_early: false };
        self.damage.get_or_insert(none).places += 1;
        self.lost_at = Some(offset);
        self.begin = begin;
        Ok(())
    }

    /// Whether there is a place to read on from: where something is passed over, behind it.
    fn is_found(&mut self, is_all: bool) -> bool {
        let Some(lost_at) = self.lost_at else { return true };
        let rest = Rest { octets: &self.buffer[..self.end], is_all };
        let found = self.decoder.resume(rest, self.begin, self.last_ns);
        self.begin = match found {
            Resume::At(at) | Resume::Undecided(at) => at,
            Resume::Never => self.end,
        };
        if let Resume::Undecided(_) = found {
            return false;
        }
        self.lost_at = None;
        let bytes = self.offset() - lost_at;
        self.damage.iter_mut().for_each(|damage| damage.bytes += bytes);
        true
    }

    const fn error(&self, at: usize, kind: ReadErrorKind) -> FeedError {
        FeedError::Capture { offset: self.passed + at as u64, kind }
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
