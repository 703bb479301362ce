//! The application's side: writing and reading.

use super::{Connection, State};
use crate::event::WriteError;
use alloc::sync::Arc;
use cede_wire::Payload;

impl Connection {
    /// Queues as much of `payload` as the send buffer has room for, and returns how many octets that is. Writing is
    /// allowed from the start; what is written before the handshake is over leaves after it, but for the acceptor's first
    /// 528 octets.
    ///
    /// # Errors
    /// [`WriteError::Full`] where there is no room at all, [`WriteError::Closed`] after the stream was ended.
    pub fn write(&mut self, mut payload: Payload) -> Result<u32, WriteError> {
        let room = self.room_for(payload.len())?;
        self.sending.queue.push(payload.split_to(room));
        Ok(room)
    }

    /// As [`Connection::write`], copying octets.
    ///
    /// # Errors
    /// As [`Connection::write`].
    pub fn write_slice(&mut self, octets: &[u8]) -> Result<u32, WriteError> {
        let room = self.room_for(u32::try_from(octets.len()).unwrap_or(u32::MAX))?;
        self.sending.queue.push(Payload::from_shared(Arc::from(&octets[..room as usize])));
        Ok(room)
    }

    /// How many of `wanted` octets can be written now; notes where that is not all, so that
    /// [`Event::Writable`](crate::Event::Writable) follows.
    fn room_for(&mut self, wanted: u32) -> Result<u32, WriteError> {
        if self.sending.is_ended() || matches!(self.state, State::Closed { .. }) {
            return Err(WriteError::Closed);
        }
        let room = wanted.min(self.writable_bytes());
        self.sending.refused |= room < wanted;
        if room == 0 && wanted > 0 { Err(WriteError::Full) } else { Ok(room) }
    }

    /// Octets that [`Connection::write`] would take now.
    #[must_use]
    pub fn writable_bytes(&self) -> u32 {
        let held = self.sending.queue.len_bytes() + self.sending.unacked_bytes;
        u64::from(self.send_limit_bytes()).saturating_sub(held) as u32
    }

    /// Takes the next octets that arrived in order, as many as lie together.
    pub fn read(&mut self) -> Option<Payload> {
        let payload = self.receiving.ready.pop()?;
        self.after_reading();
        Some(payload)
    }

    /// Copies octets that arrived in order into `out` and returns how many; zero where there are none.
    pub fn read_slice(&mut self, out: &mut [u8]) -> usize {
        let n = self.receiving.ready.copy_out(out);
        if n > 0 {
            self.after_reading();
        }
        n
    }

    /// Octets that can be read now.
    #[must_use]
    pub fn readable_bytes(&self) -> u64 {
        self.receiving.ready.len_bytes()
    }

    /// True once the peer's stream has ended and everything in it has been read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.receiving.is_finished() && self.receiving.ready.is_empty()
    }
}
