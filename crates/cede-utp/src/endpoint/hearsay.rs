//! What routers and peers' systems say of our packets (ICMP), as far as the host hears of it.
//!
//! Source: RFC 5927: what to believe is the host's to judge, or the connection's. Packets are told by how they began.
//!
//! **How it was validated.** `tests/endpoint.rs`, `tests/keepalives.rs`.

use super::{Endpoint, Handle};
use crate::connection::Connection;
use alloc::vec::Vec;
use cede_units::{Instant, Seq16};
use cede_wire::utp::{HEADER_BYTES, Kind, VERSION};
use core::hash::Hash;

impl<P: Copy + Ord + Hash> Endpoint<P> {
    /// The host learnt (ICMP) that a packet to `peer`, which began with `head`, was not delivered.
    pub fn unreachable(&mut self, peer: P, head: &[u8]) {
        if let Some(index) = self.find_sender(peer, head) {
            self.with_connection(index, Connection::unreachable);
        }
    }

    /// The host learnt (ICMP) that nobody had the port of `peer` when a packet that began with `head` and has this number came there. Says
    /// whether it is of any account (see [`Connection::nobody_there`]); once a connection has found the peer gone, the others to it ask
    /// at once.
    pub fn nobody_there(&mut self, now: Instant, peer: P, head: &[u8], seq: Seq16) -> bool {
        let Some(index) = self.find_sender(peer, head) else { return false };
        let (mut counts, mut is_gone) = (false, false);
        self.with_connection(index, |connection| {
            counts = connection.nobody_there(now, seq);
            is_gone = counts && connection.error().is_some();
        });
        if is_gone {
            let others: Vec<Handle> =
                self.slots.iter().filter(|slot| slot.peer == peer).map(|slot| slot.handle).collect();
            for other in others {
                self.with_connection(other.index(), |connection| connection.ask_whether_gone(now));
            }
        }
        counts
    }

    /// Is a packet to `peer` under way that began with `head` and has this number? For hosts that doubt what they learn.
    pub fn is_under_way(&mut self, peer: P, head: &[u8], seq: Seq16) -> bool {
        let index = self.find_sender(peer, head);
        index.and_then(|index| self.slots.at_mut(index)).is_some_and(|slot| slot.connection.is_under_way(seq))
    }

    /// The host learnt that a packet to `peer`, which began with `head`, was too large; `fits_bytes` of UDP payload
    /// would have passed, where that is known.
    pub fn packet_too_big(&mut self, now: Instant, peer: P, head: &[u8], fits_bytes: Option<u32>) {
        if let Some(index) = self.find_sender(peer, head) {
            self.with_connection(index, |connection| connection.packet_too_big(now, fits_bytes));
        }
    }

    /// The connection that sent a packet which began with `head`. Extensions may be cut off: they are not looked at.
    fn find_sender(&mut self, peer: P, head: &[u8]) -> Option<u32> {
        let [version_and_kind, _, high, low, ..] = *head.first_chunk::<HEADER_BYTES>()?;
        let id = u16::from_be_bytes([high, low]);
        if version_and_kind == (Kind::Syn as u8) << 4 | VERSION {
            return self.look_up(peer, id);
        }
        self.find_by_send_id(peer, id)
    }
}
