//! Packets that have been sent and not yet cumulatively acknowledged: a ring indexed by packet number.

use alloc::vec::Vec;
use cede_cc::{PacketFact, SendRecord, Tag};
use cede_units::Instant;
use cede_wire::Payload;

/// The ring never outgrows this many packets: a quarter of the sequence space, so that serial comparisons hold.
pub(crate) const MAX_PACKETS: u16 = 1 << 14;
/// Few: of connections that say a word now and then there may be many, and rings come and go among what stays in memory.
const INITIAL_SLOTS: usize = 4;

/// What is known of a packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Fate {
    /// Under way.
    #[default]
    Outstanding,
    /// Taken for lost, waiting to be sent again.
    Lost,
    /// Selectively acknowledged.
    Acked,
}

/// A packet as it was first cut; retransmissions carry the same payload.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub payload: Payload,
    pub payload_bytes: u32,
    pub fate: Fate,
    pub fin: bool,
    /// The last transmission was a path-MTU probe.
    pub probe: bool,
    /// The last transmission was a tail probe.
    pub tail_probe: bool,
    pub transmissions: u16,
    pub tag: Tag,
    pub sent_at: Instant,
    pub record: SendRecord,
}

impl Slot {
    /// The controller knows of it, and nothing has become of it.
    pub fn is_data_outstanding(&self) -> bool {
        self.fate == Fate::Outstanding && !self.fin
    }

    /// What the controller learns of the packet, by its number.
    pub fn fact(&self, number: u64) -> PacketFact {
        PacketFact {
            number,
            bytes: self.payload_bytes,
            sent_at: self.sent_at,
            retransmitted: self.transmissions > 1,
            tag: self.tag,
            record: self.record,
        }
    }
}

/// The ring. Packet numbers are 64 bits wide and do not wrap; number 0 is the first after the handshake.
#[derive(Debug)]
pub(crate) struct Outbox {
    ring: Vec<Slot>,
    una: u64,
    next: u64,
}

impl Outbox {
    pub fn new() -> Self {
        Self { ring: Vec::new(), una: 0, next: 0 }
    }

    /// The oldest number not cumulatively acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The number of the next new packet.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Packets held.
    pub fn len(&self) -> u64 {
        self.next - self.una
    }

    pub fn is_empty(&self) -> bool {
        self.una == self.next
    }

    fn index(&self, number: u64) -> usize {
        number as usize & (self.ring.len() - 1)
    }

    /// The packet with this number, where it is held.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Slot> {
        if number < self.una || number >= self.next {
            return None;
        }
        let index = self.index(number);
        self.ring.get_mut(index)
    }

    /// As [`Outbox::get_mut`], to look at.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Slot> {
        if number < self.una || number >= self.next {
            return None;
        }
        self.ring.get(self.index(number))
    }

    /// Appends a packet. The caller minds [`MAX_PACKETS`].
    pub fn push(&mut self, slot: Slot) {
        if self.len() as usize == self.ring.len() {
            self.grow();
        }
        let index = self.index(self.next);
        self.ring[index] = slot;
        self.next += 1;
    }

    /// Takes the oldest packet off.
    #[inline]
    pub fn pop(&mut self) -> Option<Slot> {
        if self.is_empty() {
            return None;
        }
        let index = self.index(self.una);
        self.una += 1;
        self.ring.get_mut(index).map(core::mem::take)
    }

    /// Gives the memory back where nothing is in it.
    pub fn release(&mut self) {
        if self.is_empty() {
            self.clear();
        }
    }

    /// Forgets all packets.
    pub fn clear(&mut self) {
        self.ring = Vec::new();
        self.una = self.next;
    }

    fn grow(&mut self) {
        let slots = (self.ring.len() * 2).max(INITIAL_SLOTS);
        let mut larger: Vec<Slot> = Vec::new();
        larger.resize_with(slots, Slot::default);
        for number in self.una..self.next {
            let from = self.index(number);
            larger[number as usize & (slots - 1)] = core::mem::take(&mut self.ring[from]);
        }
        self.ring = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_numbers_while_the_ring_grows_and_turns() {
        let mut outbox = Outbox::new();
        let mut next = 0_u32;
        for round in 1..200 {
            for _ in 0..round {
                outbox.push(Slot { payload_bytes: next, ..Slot::default() });
                next += 1;
            }
            for _ in 0..round / 2 {
                let una = outbox.una();
                assert_eq!(outbox.pop().unwrap().payload_bytes, una as u32);
            }
            for number in outbox.una()..outbox.next() {
                assert_eq!(outbox.get(number).unwrap().payload_bytes, number as u32);
            }
        }
        assert!(outbox.get(outbox.next()).is_none());
        assert!(outbox.get_mut(outbox.una() - 1).is_none());
    }
}
