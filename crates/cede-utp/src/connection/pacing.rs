//! When packets leave within what the controller allows.
//!
//! Source: a controller's pacing rate is its own. Windows without one leave as acknowledgements let them, which on a real
//! host is in batches: what arrives together is answered by one acknowledgement, and whoever wakes late finds several.
//! A queue that holds less than such a burst drops it, though the window were right. Where
//! [`Config::pace_windows`](crate::Config::pace_windows) wants it, a window therefore leaves spread over most of a round trip,
//! as Linux paces TCP (`tcp_update_pacing_rate`: 1.2 windows per round trip, two in slow start) and as RFC 9002 section
//! 7.7 asks of QUIC (1.25).
//!
//! How fast a window grows shows in what each acknowledgement adds to it: one octet for each acknowledged is slow start, in
//! which two windows leave per round trip, or else growth would wait for the pacing. The first window has nothing to go
//! by: what RFC 6928 lets leave at once leaves within a sixteenth of the round trip that the handshake took, so that
//! whoever starts up fast learns whether there is room for sixteen times as much, and a larger one within a quarter.
//!
//! It is never slower than what arrives: after a window was halved the smoothed round trip still tells of a queue that is going,
//! and the link would wait for the pacing.
//!
//! A host that calls late makes up for it by a burst ([`Config::pacing_granularity`](crate::Config::pacing_granularity)); a
//! round trip of no more than two such granules cannot be divided further, and its windows are left alone.
//!
//! **What it leaves out.** Other flows of the host: each paces for itself.
//! **How it was validated.** `tests/pacing.rs`.

use super::Connection;
use crate::config::Config;
use cede_cc::Allowance;
use cede_cc::instruments::Pacer;
use cede_units::{Instant, Rate};

/// What a late host makes up for at once: two of these fit the receive buffer that Linux gives a socket (208 KiB).
const MAX_GRANULE_BYTES: u64 = 96 << 10;
/// Windows per round trip at least (RFC 9002 section 7.7): acknowledgements keep the pace, not the pacing.
const LEAST_GAIN: f64 = 1.25;
/// Windows per round trip at most.
const MOST_GAIN: f64 = 4.0;
/// And for a first window of no more than [`FIRST_PACKETS`].
const FIRST_GAIN: f64 = 16.0;
/// Section 2 of RFC 6928.
const FIRST_PACKETS: u64 = 10;
/// Packets that may leave together.
const BURST_PACKETS: u32 = 2;

/// The pacer, and what a window's own rate follows from.
#[derive(Debug)]
pub(super) struct Pacing {
    pacer: Pacer,
    paces: bool,
    /// Windows per round trip, once anything was acknowledged.
    gain: Option<f32>,
}

impl Pacing {
    pub fn new(allowance: &Allowance, config: &Config) -> Self {
        let mut pacing = Self { pacer: Pacer::new(), paces: false, gain: None };
        pacing.set(allowance, config);
        pacing
    }

    /// Takes over rate and burst, with as large a burst as a host of this granularity needs to keep the rate.
    fn set(&mut self, allowance: &Allowance, config: &Config) {
        let granule = allowance.pacing_rate.map_or(0, |rate| rate.bytes_in(config.pacing_granularity));
        let burst_bytes = allowance.burst_bytes.max(granule.min(MAX_GRANULE_BYTES) as u32);
        self.paces = allowance.pacing_rate.is_some();
        self.pacer.set(&Allowance { burst_bytes, ..*allowance });
    }

    /// When a packet of so many octets may leave.
    #[inline]
    pub fn departure(&self, now: Instant, bytes: u32) -> Instant {
        if self.paces { self.pacer.departure(now, u64::from(bytes)) } else { now }
    }

    /// A packet of so many octets leaves.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u32) {
        if self.paces {
            self.pacer.on_sent(now, u64::from(bytes));
        }
    }

    /// So many octets were acknowledged, and raised the window by so many.
    #[inline]
    pub fn note_growth(&mut self, acked_bytes: u64, grown_bytes: u64) {
        if acked_bytes > 0 {
            let gain = 1.0 + grown_bytes as f64 / acked_bytes as f64;
            self.gain = Some(gain.clamp(LEAST_GAIN, MOST_GAIN) as f32);
        }
    }
}

impl Connection {
    /// Paces by what the controller allows.
    #[inline]
    pub(super) fn pace(&mut self) {
        let own = if self.config.pace_windows { self.window_pace() } else { None };
        self.sending.pacing.set(&own.unwrap_or(self.allowance), &self.config);
    }

    /// The pace of a window whose controller has none.
    fn window_pace(&self) -> Option<Allowance> {
        let (round_trip, cwnd) =
            (self.rtt.srtt(), self.allowance.cwnd_bytes.min(self.config.max_cwnd_bytes()));
        let payload = u64::from(self.mtu.payload_bytes());
        let burst_bytes = BURST_PACKETS * self.mtu.payload_bytes();
        let divisible = round_trip > self.config.pacing_granularity * 2;
        if self.allowance.pacing_rate.is_some() || !divisible || cwnd < u64::from(burst_bytes) {
            return None;
        }
        let first_gain = if cwnd <= FIRST_PACKETS * payload { FIRST_GAIN } else { MOST_GAIN };
        let gain = self.sending.pacing.gain.map_or(first_gain, f64::from);
        let window_rate = cwnd as f64 * 8e9 / round_trip.as_nanos() as f64;
        let rate = window_rate.max(self.sending.delivery_bits_per_sec()) * gain;
        let pacing_rate = Some(Rate::from_bits_per_sec(rate as u64));
        Some(Allowance { pacing_rate, burst_bytes, ..self.allowance })
    }
}
