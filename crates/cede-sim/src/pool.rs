//! Where packets live while they are under way: slots that are used again.

use alloc::vec::Vec;
use cede_net::Datagram;

/// A packet's place in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PacketId(u32);

/// Packets under way, in slots that are used again.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    slots: Vec<Datagram>,
    free: Vec<u32>,
}

impl Pool {
    pub(crate) fn insert(&mut self, datagram: Datagram) -> PacketId {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = datagram;
                PacketId(slot)
            }
            None => {
                self.slots.push(datagram);
                PacketId(self.slots.len() as u32 - 1)
            }
        }
    }

    pub(crate) fn get(&self, id: PacketId) -> &Datagram {
        &self.slots[id.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, id: PacketId) -> &mut Datagram {
        &mut self.slots[id.0 as usize]
    }

    /// Takes a packet out; its slot is free afterwards.
    pub(crate) fn remove(&mut self, id: PacketId) -> Datagram {
        self.free.push(id.0);
        core::mem::take(&mut self.slots[id.0 as usize])
    }

    /// Packets under way.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
