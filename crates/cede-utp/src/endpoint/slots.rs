//! The places of an endpoint's connections.

use crate::connection::Connection;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Names a connection of one endpoint. A handle of a connection that is gone names nothing, even after its place has
/// been given to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle {
    index: u32,
    generation: u32,
}

impl Handle {
    /// A small number, free again once the connection is gone: for tables beside the endpoint's.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }
}

/// Whether a connection waits for a peer that has yet to show that it receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// It is ours, or the handshake is over, or the connection.
    Settled,
    /// A peer's SYN has opened it, and nobody has taken it up.
    HalfOpen,
    /// Likewise, and the application has taken it up all the same.
    Early,
}

/// A connection and what the endpoint knows of it.
pub(super) struct Slot<P> {
    pub handle: Handle,
    pub peer: P,
    /// The connection's, which the demultiplexer compares.
    pub receive_id: u16,
    pub connection: Box<Connection>,
    /// What it has in the account of the endpoint's budget.
    pub held_steps: u16,
    /// The application holds it.
    pub owned: bool,
    pub stage: Stage,
    /// It stands in the queue of those that may want to send.
    pub active: bool,
    /// It stands in the queue of those that may have events.
    pub eventful: bool,
}

impl<P> Slot<P> {
    /// True where the connection has events and is to be put into the queue of those that have. What nobody owns has
    /// nobody to tell, so a flood of SYNs leaves no trace in that queue.
    #[inline]
    pub fn has_news(&mut self) -> bool {
        self.owned && self.connection.has_events() && !core::mem::replace(&mut self.eventful, true)
    }
}

/// All connections; places are used again.
pub(super) struct Slots<P> {
    places: Vec<Place<P>>,
    free: Vec<u32>,
    len: usize,
}

struct Place<P> {
    generation: u32,
    slot: Option<Slot<P>>,
}

impl<P> Slots<P> {
    pub fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn insert(&mut self, peer: P, connection: Box<Connection>, owned: bool) -> Handle {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, slot: None });
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[index as usize];
        place.generation = place.generation.wrapping_add(1);
        let handle = Handle { index, generation: place.generation };
        let (receive_id, stage) = (connection.receive_id(), Stage::Settled);
        let (active, eventful) = (false, false);
        let held_steps = 0;
        place.slot =
            Some(Slot { handle, peer, receive_id, connection, held_steps, owned, stage, active, eventful });
        self.len += 1;
        handle
    }

    pub fn at_mut(&mut self, index: u32) -> Option<&mut Slot<P>> {
        self.places.get_mut(index as usize)?.slot.as_mut()
    }

    pub fn at(&self, index: u32) -> Option<&Slot<P>> {
        self.places.get(index as usize)?.slot.as_ref()
    }

    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut Slot<P>> {
        self.at_mut(handle.index).filter(|slot| slot.handle == handle)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Slot<P>> {
        self.places.iter().filter_map(|place| place.slot.as_ref())
    }

    pub fn get(&self, handle: Handle) -> Option<&Slot<P>> {
        self.places.get(handle.index as usize)?.slot.as_ref().filter(|slot| slot.handle == handle)
    }

    pub fn remove(&mut self, index: u32) -> Option<Slot<P>> {
        let slot = self.places.get_mut(index as usize)?.slot.take()?;
        self.free.push(index);
        self.len -= 1;
        Some(slot)
    }
}
