//! Where connections lie, for a driver that brings them near to the processor before they are needed.

use super::conn::Conn;
use super::{Engine, PeerAddress};

impl<A: PeerAddress> Engine<A> {
    /// Octets that a connection takes.
    pub const CONNECTION_BYTES: usize = size_of::<Conn<A>>();

    /// The index ([`ConnId::index`](super::ConnId::index)) of the connection whose turn to send is next, where one waits for it.
    #[must_use]
    pub fn next_to_send(&self) -> Option<usize> {
        let index = self.turn.map(|(index, _)| index).or_else(|| self.ring.front().copied())?;
        Some(index as usize)
    }

    /// Something in the first line of the [`Self::CONNECTION_BYTES`] octets of the connection at `index`, found without a look at them.
    #[must_use]
    pub fn beginning_of(&self, index: usize) -> Option<&A> {
        Some(&self.slots.get(index)?.as_deref()?.address)
    }
}
