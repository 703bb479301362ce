//! Records over a stream.

use super::{SealError, TAG_BYTES};
use snow::TransportState;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

pub(super) const HEAD_BYTES: usize = 2;
/// Octets that one record carries at most.
const MAX_PAYLOAD_BYTES: usize = 8 << 10;
/// Octets of the longest record, its head included.
pub const MAX_RECORD_BYTES: usize = HEAD_BYTES + MAX_PAYLOAD_BYTES + TAG_BYTES;
/// Records that are sealed, or read, at once.
const RECORDS: usize = 8;
/// A record of nothing.
pub(super) const EMPTY_RECORD_BYTES: usize = HEAD_BYTES + TAG_BYTES;

/// The length of a record with this head, its head included.
///
/// # Errors
/// [`SealError::Length`].
pub fn record_bytes(head: [u8; HEAD_BYTES]) -> Result<usize, SealError> {
    let bytes = HEAD_BYTES + usize::from(u16::from_be_bytes(head));
    if (EMPTY_RECORD_BYTES..=MAX_RECORD_BYTES).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(SealError::Length(bytes))
    }
}

/// A stream whose octets are encrypted and authenticated, both ways. Each direction ends by itself: reading at the other
/// end's [`shutdown`](AsyncWriteExt::shutdown), and with an error where the stream ended without one. What was written has
/// left once it has been flushed.
#[derive(Debug)]
pub struct Sealed<S> {
    inner: S,
    noise: TransportState,
    incoming: Incoming,
    outgoing: Outgoing,
}

#[derive(Debug, Default)]
struct Incoming {
    /// What has come: `start..end` is still sealed. It grows while more comes at once than it holds.
    raw: Vec<u8>,
    start: usize,
    end: usize,
    /// A record that its reader had no room for, as far as it is not read.
    plain: Vec<u8>,
    left: Range<usize>,
    /// Nothing belongs behind the last record.
    has_ended: bool,
    broken: Option<SealError>,
    payload_bytes: u64,
}

#[derive(Debug)]
struct Outgoing {
    /// What is still to be handed to the stream: `start..end`.
    raw: Vec<u8>,
    start: usize,
    end: usize,
    has_ended: bool,
    /// Since the stream began, the handshake included.
    raw_bytes: u64,
    payload_bytes: u64,
}

impl<S> Sealed<S> {
    /// From the end of a handshake on, in which this end has written so many octets.
    pub(super) fn new(inner: S, noise: TransportState, written_bytes: usize) -> Self {
        let outgoing = Outgoing {
            raw: Vec::new(),
            start: 0,
            end: 0,
            has_ended: false,
            raw_bytes: written_bytes as u64,
            payload_bytes: 0,
        };
        Self { inner, noise, incoming: Incoming::default(), outgoing }
    }

    /// The stream below.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Octets that were read.
    pub const fn received_bytes(&self) -> u64 {
        self.incoming.payload_bytes
    }

    /// Of what was written, how much the other end has, if it has so many octets of the stream below. Within one record
    /// that is an estimate; where it has all, this is all.
    pub fn payload_bytes_of(&self, raw_bytes: u64) -> u64 {
        let Outgoing { raw_bytes: all, payload_bytes, .. } = self.outgoing;
        let part = u128::from(payload_bytes) * u128::from(raw_bytes.min(all)) / u128::from(all.max(1));
        u64::try_from(part).unwrap_or(payload_bytes)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Sealed<S> {
    /// Shows the responder that this is no recording.
    pub(super) async fn confirm(&mut self) -> io::Result<()> {
        self.outgoing.seal(&mut self.noise, &[])?;
        self.flush().await
    }
}

impl Incoming {
    /// The record that has come whole, without its head.
    fn record(&self) -> Result<Option<Range<usize>>, SealError> {
        let Some(head) = self.raw[self.start..self.end].first_chunk() else { return Ok(None) };
        let end = self.start + record_bytes(*head)?;
        Ok((end <= self.end).then_some(self.start + HEAD_BYTES..end))
    }

    /// Opens what has come, as far as there is room for it.
    fn open(&mut self, noise: &mut TransportState, buf: &mut ReadBuf<'_>) -> Result<(), SealError> {
        while buf.remaining() > 0 {
            self.hand_over(buf);
            if buf.remaining() == 0 {
                break;
            }
            if self.has_ended && self.start < self.end {
                return Err(SealError::Trailing);
            }
            let Some(record) = self.record()? else { break };
            self.start = record.end;
            let bytes = self.open_one(noise, record, buf)?;
            self.has_ended = bytes == 0;
            self.payload_bytes += bytes as u64;
        }
        Ok(())
    }

    /// Opens a record, straight into the reader's room where that is enough: for the tag too, whose place some ciphers use.
    fn open_one(
        &mut self,
        noise: &mut TransportState,
        record: Range<usize>,
        buf: &mut ReadBuf<'_>,
    ) -> Result<usize, SealError> {
        let message = &self.raw[record];
        if buf.remaining() >= message.len() {
            let room = buf.initialize_unfilled_to(message.len());
            let bytes = noise.read_message(message, room).map_err(|_| SealError::Forged)?;
            buf.advance(bytes);
            return Ok(bytes);
        }
        self.plain.resize(MAX_PAYLOAD_BYTES + TAG_BYTES, 0);
        let bytes = noise.read_message(message, &mut self.plain).map_err(|_| SealError::Forged)?;
        self.left = 0..bytes;
        Ok(bytes)
    }

    /// What is left of a record that was opened.
    fn hand_over(&mut self, buf: &mut ReadBuf<'_>) {
        let bytes = self.left.len().min(buf.remaining());
        buf.put_slice(&self.plain[self.left.start..self.left.start + bytes]);
        self.left.start += bytes;
    }

    /// Room for what comes next: twice as much where all of it was used, up to [`RECORDS`].
    fn make_room(&mut self) {
        let is_full = self.end == self.raw.len();
        if self.start > 0 {
            self.raw.copy_within(self.start..self.end, 0);
        }
        (self.start, self.end) = (0, self.end - self.start);
        if is_full {
            let room = (self.raw.len() * 2).clamp(MAX_RECORD_BYTES, RECORDS * MAX_RECORD_BYTES);
            self.raw.resize(room, 0);
        }
    }

    /// What the end of the stream below means.
    fn at_end(&self) -> Result<(), SealError> {
        if self.has_ended { Ok(()) } else { Err(SealError::CutOff) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Sealed<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { inner, noise, incoming, .. } = self.get_mut();
        let before = buf.filled().len();
        loop {
            if let Some(error) = &incoming.broken {
                return Poll::Ready(Err(error.clone().into()));
            }
            let opened = incoming.open(noise, buf);
            incoming.broken = opened.err();
            if buf.filled().len() > before || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if incoming.broken.is_some() {
                continue;
            }
            incoming.make_room();
            let mut room = ReadBuf::new(&mut incoming.raw[incoming.end..]);
            ready!(Pin::new(&mut *inner).poll_read(cx, &mut room))?;
            let bytes = room.filled().len();
            incoming.end += bytes;
            if bytes == 0 {
                return Poll::Ready(incoming.at_end().map_err(io::Error::from));
            }
        }
    }
}

impl Outgoing {
    /// Seals what goes into one record, behind what still waits to leave.
    fn seal(&mut self, noise: &mut TransportState, payload: &[u8]) -> io::Result<()> {
        let bytes = HEAD_BYTES + payload.len() + TAG_BYTES;
        let end = self.end + bytes;
        if self.raw.len() < end {
            self.raw.resize(end, 0);
        }
        let record = &mut self.raw[self.end..end];
        record[..HEAD_BYTES].copy_from_slice(&((bytes - HEAD_BYTES) as u16).to_be_bytes());
        // Encrypted where it leaves from: what was written is read once.
        noise.write_message(payload, &mut record[HEAD_BYTES..]).map_err(|_| SealError::Failed)?;
        self.end = end;
        self.raw_bytes += bytes as u64;
        self.payload_bytes += payload.len() as u64;
        Ok(())
    }

    /// Hands on what is sealed.
    fn drain<S: AsyncWrite + Unpin>(&mut self, inner: &mut S, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.start < self.end {
            let n = ready!(Pin::new(&mut *inner).poll_write(cx, &self.raw[self.start..self.end]))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.start += n;
        }
        (self.start, self.end) = (0, 0);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sealed<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let Self { inner, noise, outgoing, .. } = self.get_mut();
        if outgoing.has_ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        ready!(outgoing.drain(inner, cx))?;
        let octets = &octets[..octets.len().min(RECORDS * MAX_PAYLOAD_BYTES)];
        for payload in octets.chunks(MAX_PAYLOAD_BYTES) {
            outgoing.seal(noise, payload)?;
        }
        // What does not leave now leaves with the next call.
        let _ = outgoing.drain(inner, cx)?;
        Poll::Ready(Ok(octets.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { inner, outgoing, .. } = self.get_mut();
        ready!(outgoing.drain(inner, cx))?;
        Pin::new(inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { inner, noise, outgoing, .. } = self.get_mut();
        if !outgoing.has_ended {
            outgoing.seal(noise, &[])?;
            outgoing.has_ended = true;
        }
        ready!(outgoing.drain(inner, cx))?;
        Pin::new(inner).poll_shutdown(cx)
    }
}
