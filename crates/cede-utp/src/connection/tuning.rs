//! Buffers that grow to the path's bandwidth-delay product.
//!
//! Source: the receiver's side is dynamic right-sizing (Fisk and Feng, "Dynamic right-sizing in TCP", 2001), as Linux does
//! it (`tcp_rcv_space_adjust`): once per round trip the receiver looks at how much its application has taken; where that
//! is more than half of the window, the window is what limits the sender, or will within a round trip of slow start,
//! and grows to four times what was taken. The sender's side follows the congestion window: twice as much is held, one
//! window under way and one that waits. On a path of less than [`SHORT_ROUND_TRIP`] it stays as it was: a window that
//! grows there measures the hosts' own queues, which controllers that steer by the network's delay do not see, and what
//! has left the processor's caches by the time that it is sent costs twice.
//!
//! A uTP receiver need not send data to know the round trip: each packet says how long our last one took to the peer,
//! its own timestamp says how long it took to us, and in the sum the clocks' difference cancels out. A peer that lies
//! about it makes its window grow sooner, as far as our application keeps reading, up to the limit and no further.
//!
//! A window that has been advertised is never taken back: the limit only rises. What rises is a limit: memory is taken by
//! octets that have arrived, or were written, and given back with them.
//!
//! **What it leaves out.** What other connections of the endpoint hold: beyond their common budget
//! ([`Limits::buffered_bytes`](crate::Limits::buffered_bytes)) nothing grows.
//!
//! **How it was validated.** `tests/tuning.rs`: long fat pipes fill, slow readers keep small windows.

use super::Connection;
use crate::config::Config;
use cede_units::{Duration, Instant};
use cede_wire::utp::Header;

/// A send buffer of 1 MiB carries 8 Gbit/s over it.
const SHORT_ROUND_TRIP: Duration = Duration::from_millis(1);
/// Round trips beyond this are not believed; a growth per second is slow enough.
const MAX_ROUND: Duration = Duration::from_secs(1);
/// Taken for the round trip before anything has told it.
const UNKNOWN_ROUND: Duration = Duration::from_millis(100);

/// The receive buffer's limit, and the round trip during which it is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveLimit {
    pub bytes: u32,
    /// The round trip, from both directions' timestamps; the smallest since the round began.
    round_trip_us: u32,
    round_began: Instant,
    /// Octets that the application had taken when the round began.
    taken_bytes: u64,
}

impl ReceiveLimit {
    pub fn new(config: &Config) -> Self {
        Self {
            bytes: config.receive_buffer_bytes,
            round_trip_us: 0,
            round_began: Instant::ZERO,
            taken_bytes: 0,
        }
    }

    fn round(&self) -> Duration {
        match self.round_trip_us {
            0 => UNKNOWN_ROUND,
            us => Duration::from_micros(u64::from(us)).min(MAX_ROUND),
        }
    }

    /// A packet told the delays of both directions; their sum is the round trip.
    fn note_round_trip(&mut self, sum_us: u32) {
        if self.round_trip_us == 0 || sum_us < self.round_trip_us {
            self.round_trip_us = sum_us;
        }
    }

    /// So much has the application taken by `now`: at the end of a round, is it worth a larger window?
    fn observe(&mut self, now: Instant, taken_bytes: u64, max_bytes: u32) {
        if now.since(self.round_began) < self.round() {
            return;
        }
        let taken = taken_bytes - self.taken_bytes;
        (self.round_began, self.taken_bytes) = (now, taken_bytes);
        // The next round's round trip is its own: a queue may have gone, or come.
        self.round_trip_us = 0;
        if 2 * taken >= u64::from(self.bytes) {
            self.bytes = (4 * taken).min(u64::from(max_bytes)) as u32;
        }
    }
}

impl Connection {
    /// Lets the receive window follow what the application takes, where it may.
    #[inline]
    pub(super) fn tune_receive_limit(&mut self, now: Instant, header: &Header) {
        let Some(max_bytes) = self.config.receive_buffer_limit_bytes else { return };
        let limit = &mut self.receiving.limit;
        if limit.bytes >= max_bytes || self.receiving.held_back {
            return;
        }
        if header.timestamp_us != 0 && header.timestamp_difference_us != 0 {
            let sum = self.delays.reply_us().wrapping_add(header.timestamp_difference_us);
            limit.note_round_trip(sum.max(1));
        }
        let taken = self.counters.bytes_delivered - self.receiving.ready.len_bytes();
        limit.observe(now, taken, max_bytes);
    }

    /// Octets that the send buffer holds at most now.
    pub(super) fn send_limit_bytes(&self) -> u32 {
        let least = self.config.send_buffer_bytes;
        match self.config.send_buffer_limit_bytes.filter(|_| !self.is_short_path()) {
            Some(most) => (2 * self.allowance.cwnd_bytes.min(u64::from(most))).min(u64::from(most)) as u32,
            None => least,
        }
        .max(least)
    }

    fn is_short_path(&self) -> bool {
        self.rtt.min().is_some_and(|least| least < SHORT_ROUND_TRIP)
    }

    /// How far ahead of the next expected number a packet may be. Beyond what every peer relies on, a window of packets
    /// is worth its ring's memory only in proportion to the window of octets.
    #[inline]
    pub(super) fn seq_window_packets(&self) -> u16 {
        let wanted = self.config.seq_window_packets;
        wanted.min(packets_for(self.receiving.limit.bytes))
    }

    /// Packets that may be outstanding: what the peer has said that it can tell apart, as far as that is in proportion
    /// to its window, or what all peers can.
    #[inline]
    pub(super) fn max_outstanding_packets(&self) -> u64 {
        let agreed = self.peer.seq_window_packets().map_or(self.config.max_outstanding_packets, |window| {
            window.min(packets_for(self.sending.peer_window_bytes)) - 1
        });
        u64::from(agreed)
    }
}

/// Packets that libutp can tell apart.
pub(super) const USUAL_SEQ_WINDOW: u16 = 1024;
/// Beyond them, a packet for each so many octets of the window.
const BYTES_PER_PLACE: u32 = 64;

fn packets_for(window_bytes: u32) -> u16 {
    u16::try_from(window_bytes / BYTES_PER_PLACE).unwrap_or(u16::MAX).max(USUAL_SEQ_WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit() -> ReceiveLimit {
        ReceiveLimit::new(&Config { receive_buffer_bytes: 1000, ..Config::default() })
    }

    #[test]
    fn more_than_half_a_window_per_round_trip_quadruples_what_was_taken() {
        let mut limit = limit();
        let at = Instant::from_millis;
        limit.observe(at(1000), 0, 1 << 20);
        limit.note_round_trip(50_000);
        limit.observe(at(1049), 700, 1 << 20);
        assert_eq!(limit.bytes, 1000, "the round is not over");
        limit.observe(at(1050), 800, 1 << 20);
        assert_eq!(limit.bytes, 3200);
        limit.note_round_trip(50_000);
        limit.observe(at(1100), 2000, 1 << 20);
        assert_eq!(limit.bytes, 3200, "less than half of the window");
        limit.note_round_trip(50_000);
        limit.observe(at(1150), 1_000_000, 1 << 20);
        assert_eq!(limit.bytes, 1 << 20, "the limit holds");
    }

    #[test]
    fn absurd_round_trips_are_cut() {
        let mut limit = limit();
        limit.observe(Instant::from_secs(1), 0, 1 << 20);
        limit.note_round_trip(u32::MAX);
        limit.observe(Instant::from_secs(2), 1000, 1 << 20);
        assert_eq!(limit.bytes, 4000);
    }
}
