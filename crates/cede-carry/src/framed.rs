//! Frames over a stream.

use crate::error::WireError;
use crate::message::{HEAD_BYTES, Message, data_head, decode_head};
use crate::opening::SILENCE;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

/// How often a side that has nothing to say says so.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// Room that a body gets when it is announced. More comes with its octets: an announcement costs who makes it nothing.
const FIRST_ROOM_BYTES: usize = 16 << 10;

/// Reads frames. [`FrameReader::next`] may be dropped at any point and called again: nothing is lost.
#[derive(Debug)]
pub struct FrameReader<R> {
    inner: R,
    head: [u8; HEAD_BYTES],
    head_filled: usize,
    /// Grows to the largest body that came; `wanted` octets of it are the current one's.
    body: Vec<u8>,
    body_filled: usize,
    heard: Instant,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads from here on.
    pub fn new(inner: R) -> Self {
        let (head, body) = ([0; HEAD_BYTES], Vec::new());
        Self { inner, head, head_filled: 0, body, body_filled: 0, heard: Instant::now() }
    }

    /// When an octet came last.
    pub const fn heard(&self) -> Instant {
        self.heard
    }

    /// Waiting begins now: whatever silence there was is forgotten.
    pub fn listen_anew(&mut self) {
        self.heard = Instant::now();
    }

    /// The octets of the frame of data that came last.
    pub fn data(&self) -> &[u8] {
        &self.body[..self.body_filled]
    }

    /// Those octets as a buffer of their own, in exchange for another one.
    pub fn swap_data(&mut self, other: Vec<u8>) -> Vec<u8> {
        let mut data = std::mem::replace(&mut self.body, other);
        data.truncate(self.body_filled);
        self.body_filled = 0;
        data
    }

    /// Octets that are no frames.
    pub(crate) async fn raw(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out).await?;
        self.heard = Instant::now();
        Ok(n)
    }

    /// The next message. For [`Message::Data`] the octets are in [`FrameReader::data`] until the next call.
    ///
    /// # Errors
    /// [`WireError`]; a stream that ends is lost, since every conversation has an end of its own.
    pub async fn next(&mut self) -> Result<Message, WireError> {
        loop {
            if let Some(message) = self.advance().await? {
                return Ok(message);
            }
        }
    }

    /// As [`FrameReader::next`], and an error once nothing has been heard for [`SILENCE`].
    ///
    /// # Errors
    /// As [`FrameReader::next`], and [`WireError::Silent`].
    pub async fn next_in_time(&mut self) -> Result<Message, WireError> {
        loop {
            match timeout_at(self.heard + SILENCE, self.advance()).await {
                Ok(Ok(Some(message))) => return Ok(message),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(WireError::Silent),
            }
        }
    }

    /// One read, and the message that it completes.
    async fn advance(&mut self) -> Result<Option<Message>, WireError> {
        if self.head_filled < HEAD_BYTES {
            let n = self.inner.read(&mut self.head[self.head_filled..]).await?;
            self.hear(n)?;
            self.head_filled += n;
            self.body_filled = 0;
        }
        if self.head_filled < HEAD_BYTES {
            return Ok(None);
        }
        let (kind, wanted) = decode_head(self.head)?;
        if self.body_filled < wanted {
            let room = self.make_room(wanted);
            let n = self.inner.read(&mut self.body[self.body_filled..room]).await?;
            self.hear(n)?;
            self.body_filled += n;
        }
        if self.body_filled < wanted {
            return Ok(None);
        }
        self.head_filled = 0;
        Ok(Some(Message::decode(kind, &self.body[..wanted])?))
    }

    /// Room for some octets more of a body of so many, at most for as many again as have come; says where it ends.
    fn make_room(&mut self, wanted: usize) -> usize {
        if self.body.len() <= self.body_filled {
            let more = (2 * self.body_filled).max(FIRST_ROOM_BYTES);
            self.body.resize(more.min(wanted), 0);
        }
        self.body.len().min(wanted)
    }

    fn hear(&mut self, n: usize) -> Result<(), WireError> {
        self.heard = Instant::now();
        if n == 0 { Err(WireError::Lost(io::ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
    }
}

/// Writes frames.
#[derive(Debug)]
pub struct FrameWriter<W> {
    inner: W,
    said: Instant,
    /// A frame was begun and not ended: whatever followed would be taken for the rest of it.
    is_torn: bool,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    /// Writes from here on.
    pub fn new(inner: W) -> Self {
        Self { inner, said: Instant::now(), is_torn: false }
    }

    /// When something was said last.
    pub(crate) const fn said(&self) -> Instant {
        self.said
    }

    /// When the next [`Message::Alive`] is due.
    pub(crate) fn alive_due(&self) -> Instant {
        self.said + ALIVE_EVERY
    }

    /// Octets that are no frames.
    pub(crate) async fn raw(&mut self, octets: &[u8]) -> io::Result<()> {
        if self.is_torn {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.is_torn = true;
        self.inner.write_all(octets).await?;
        self.inner.flush().await?;
        (self.said, self.is_torn) = (Instant::now(), false);
        Ok(())
    }

    /// Sends a message. Where that is given up half-way, nothing more can be sent.
    ///
    /// # Errors
    /// Those of the stream, and `BrokenPipe` behind half a frame.
    pub async fn send(&mut self, message: &Message) -> io::Result<()> {
        self.raw(&message.encode()).await
    }

    /// Sends a frame of data, for which `frame` has left room of [`HEAD_BYTES`] in front.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn send_data(&mut self, frame: &mut [u8]) -> io::Result<()> {
        let bytes = frame.len().saturating_sub(HEAD_BYTES);
        if let Some(head) = frame.first_chunk_mut() {
            *head = data_head(bytes);
        }
        self.raw(frame).await
    }

    /// Ends our direction.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn end(&mut self) -> io::Result<()> {
        self.inner.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MAX_DATA_BYTES;

    #[tokio::test]
    async fn what_is_announced_takes_no_room_before_it_comes() {
        let head = data_head(MAX_DATA_BYTES);
        let mut reader = FrameReader::new(&head[..]);
        assert!(reader.next().await.is_err());
        assert!(reader.body.capacity() <= FIRST_ROOM_BYTES, "{}", reader.body.capacity());
    }

    #[tokio::test]
    async fn frames_of_any_length_come_whole() {
        let lengths = [MAX_DATA_BYTES, 1, 0, FIRST_ROOM_BYTES, FIRST_ROOM_BYTES + 1, 100_000, 7];
        let bodies = lengths.map(|bytes| (0..bytes).map(|k| (k % 251) as u8).collect::<Vec<_>>());
        let all: Vec<u8> =
            bodies.iter().flat_map(|body| [&data_head(body.len())[..], body].concat()).collect();
        let mut reader = FrameReader::new(&all[..]);
        for body in bodies {
            assert_eq!(reader.next().await.unwrap(), Message::Data);
            assert!(reader.data() == body, "{}", body.len());
        }
    }
}
