//! Where packets live while they are under way: slots that are used again.

use alloc::vec::Vec;
use cede_net::Datagram;
use cede_units::Duration;

/// A packet's place in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PacketId(u32);

/// Packets under way, in slots that are used again.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    slots: Vec<Option<Datagram>>,
    /// How long each has waited in queues so far.
    waits: Vec<Duration>,
    free: Vec<u32>,
}

/// A token names a packet until that is taken out, and no longer.
const VACANT: &str = "a packet under way";

impl Pool {
    pub(crate) fn insert(&mut self, datagram: Datagram) -> PacketId {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(datagram);
                self.waits[slot as usize] = Duration::ZERO;
                PacketId(slot)
            }
            None => {
                self.slots.push(Some(datagram));
                self.waits.push(Duration::ZERO);
                PacketId(self.slots.len() as u32 - 1)
            }
        }
    }

    pub(crate) fn get(&self, id: PacketId) -> &Datagram {
        self.slots[id.0 as usize].as_ref().expect(VACANT)
    }

    pub(crate) fn get_mut(&mut self, id: PacketId) -> &mut Datagram {
        self.slots[id.0 as usize].as_mut().expect(VACANT)
    }

    /// A second packet that has gone the same way until now.
    pub(crate) fn duplicate(&mut self, id: PacketId) -> PacketId {
        let (datagram, waited) = (self.get(id).clone(), self.waited(id));
        let copy = self.insert(datagram);
        self.waits[copy.0 as usize] = waited;
        copy
    }

    /// How long a packet has waited in queues so far.
    pub(crate) fn waited(&self, id: PacketId) -> Duration {
        self.waits[id.0 as usize]
    }

    /// It has waited so much longer.
    pub(crate) fn wait(&mut self, id: PacketId, longer: Duration) {
        self.waits[id.0 as usize] += longer;
    }

    /// Takes a packet out; its slot is free afterwards.
    pub(crate) fn remove(&mut self, id: PacketId) -> Datagram {
        self.free.push(id.0);
        self.slots[id.0 as usize].take().expect(VACANT)
    }

    /// Packets under way.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
