//! RESETs for packets of no connection.
//!
//! Source: libutp (`utp_process_udp`): one RESET per peer, id and number, then none while such packets keep coming and
//! for ten seconds after the last; a thousand of them are remembered, and while that many are, nothing is answered.

use alloc::collections::{BTreeMap, VecDeque};
use cede_units::{Duration, Instant, Seq16, Stream};
use cede_wire::utp::{Header, Kind, Packet};
use cede_wire::{Ecn, Payload, Transmit};

const MEMORY: Duration = Duration::from_secs(10);
const MAX_REMEMBERED: usize = 1000;
/// RESETs that wait to be sent; more are not worth it.
const MAX_WAITING: usize = 64;

/// What was answered, and what is still to be.
pub(super) struct Strays<P> {
    seen: BTreeMap<(P, u16, u16), Instant>,
    /// When something can have been forgotten.
    swept_at: Instant,
    waiting: VecDeque<(P, Transmit)>,
}

impl<P: Copy + Ord> Strays<P> {
    pub fn new() -> Self {
        Self { seen: BTreeMap::new(), swept_at: Instant::ZERO, waiting: VecDeque::new() }
    }

    /// Takes note of a stray packet; true where a RESET will answer it. SYNs and RESETs get none.
    pub fn answer(&mut self, now: Instant, peer: P, packet: &Packet<'_>, random: &mut Stream) -> bool {
        if matches!(packet.header.kind, Kind::Syn | Kind::Reset) {
            return false;
        }
        let key = (peer, packet.header.connection_id, packet.header.seq.0);
        if let Some(last) = self.seen.get_mut(&key) {
            let recent = now.since(*last) < MEMORY;
            *last = now;
            return !recent && self.enqueue(peer, packet, random);
        }
        if !self.has_room(now) {
            return false;
        }
        self.seen.insert(key, now);
        self.enqueue(peer, packet, random)
    }

    /// Sweeps at most once a second: a flood of strays must not make each of them cost a sweep.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.seen.len() >= MAX_REMEMBERED && now.since(self.swept_at) >= Duration::from_secs(1) {
            self.swept_at = now;
            self.seen.retain(|_, last| now.since(*last) < MEMORY);
        }
        self.seen.len() < MAX_REMEMBERED
    }

    fn enqueue(&mut self, peer: P, packet: &Packet<'_>, random: &mut Stream) -> bool {
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        let head = reset_for(&packet.header, random).encode(&[]).unwrap_or_default();
        self.waiting.push_back((
            peer,
            Transmit {
                head,
                payload: Payload::Empty,
                dont_fragment: false,
                may_fragment: false,
                ecn: Ecn::NotEct,
            },
        ));
        true
    }

    pub fn pop(&mut self) -> Option<(P, Transmit)> {
        self.waiting.pop_front()
    }
}

/// The RESET that answers a packet of no connection: everything that would tell something is zero (libutp).
fn reset_for(header: &Header, random: &mut Stream) -> Header {
    Header {
        kind: Kind::Reset,
        connection_id: header.connection_id,
        timestamp_us: 0,
        timestamp_difference_us: 0,
        window_bytes: 0,
        seq: Seq16(random.next_u16()),
        ack: header.seq,
    }
}
