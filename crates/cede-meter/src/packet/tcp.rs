//! What TCP timestamps say about queues.
//!
//! Source: RFC 7323 (timestamps); "Passive bufferbloat measurement exploiting transport layer information" (GLOBECOM
//! 2013), section III, equations 3 and 4, for the echoed estimate: the clock of an acknowledgement less the clock of the
//! last segment that it acknowledges, which is found among those that are kept (`store/tcp.rs`).
//!
//! **What it leaves out.** TSecr is not used for the echoed estimate: with delayed acknowledgements it names the first
//! segment, not the last. An odd segment acknowledged late by the delayed-acknowledgement timer says nothing.
//!
//! **How it was validated.** The sheets' vectors (`tests/vectors.rs`), recorded captures beside the queue's own log
//! (`tests/ground_truth.rs`).

use crate::packet::frame::Tcp;
use crate::packet::rtt::Rtt;

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;
/// Those that count.
pub(crate) const FLAGS: u8 = FIN | SYN | RST | ACK;

/// What a segment with timestamps says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    /// TSval and TSecr.
    pub clock: u32,
    pub echo: u32,
    pub payload_len: u32,
}

impl Said {
    /// Segments without timestamps say nothing, nor do those that end a connection at once.
    #[inline]
    pub(crate) fn of(tcp: &Tcp<'_>) -> Option<Self> {
        let (clock, echo) = tcp.timestamps.filter(|_| tcp.flags & RST == 0)?;
        let Tcp { seq, ack, flags, payload_len, .. } = *tcp;
        Some(Self { seq, ack, flags, clock, echo, payload_len })
    }
}

/// A packet's clock waits for the first packet back that echoes it or a later one: a round trip that ends with this packet.
#[inline]
pub(crate) fn answer(to: &mut Rtt, now: u32, said: &Said) -> Option<u32> {
    let Said { clock, echo, .. } = *said;
    let (wanted, since) = to.pending.filter(|&(wanted, _)| echo != 0 && !is_before(echo, wanted))?;
    to.pending = None;
    // Only the very clock that was waited for tells a round trip; a later one came with another packet.
    if echo != wanted {
        return None;
    }
    let trip = to.add(now.wrapping_sub(since));
    to.lead.note(since, clock);
    trip
}

/// As [`answer`]: one that begins with it.
#[inline]
pub(crate) const fn ask(from: &mut Rtt, now: u32, said: &Said) {
    let Said { clock, flags, .. } = *said;
    // A connection between the same sockets whose clock is behind that of the one before would never answer what that was not answered.
    let is_free = match from.pending {
        Some((wanted, _)) => flags & SYN != 0 && is_before(clock, wanted),
        None => true,
    };
    // What echoes a reading that two packets share may answer the earlier one.
    if is_free && from.clock != clock {
        from.pending = Some((clock, now));
    }
    from.clock = clock;
}

/// Whether a number of 32 bits comes before another one.
pub(crate) const fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}
