//! Connections of one host that stamp by one clock, offset and all.
//!
//! RFC 7323 lets a connection's stamps begin at anything. Linux draws an offset for each connection since 6.18, before for each pair
//! of addresses (`secure_tcp_ts_off`), and none where `tcp_timestamps` is 2; embedded systems mostly count from when they were
//! started. Where connections share it, what one of them saw of an empty queue holds for the others, whether it was there with
//! them or before.
//!
//! That two offsets are alike by chance happens to one pair in 200,000 (20 s of 50 days), and what it made of a connection is bounded by
//! round trips, as all is that a connection is told ([`super::company`]).
//!
//! **What it leaves out.** Connections whose beginning was not seen: all of their packets may be long ones, which take longer without any
//! queue. Where no drift is told, what two clocks may come apart by until the later one was seen.
//!
//! **How it was validated.** Synthetic connections (`tests/company.rs`), and captures beside each packet's true delay
//! (`docs/bufferbloat.md`).

use crate::clocks::clock::DRIFT_PPM_MIN;
use crate::hosts::direction::{Direction, WRAP_TICKS};
use crate::hosts::several::SAME_CLOCK_US;

/// What crystals come apart by at most, where it was not measured.
const DRIFT_PPM_UNKNOWN: f64 = 100.0;

/// Where a connection's stamps put an empty queue.
pub(crate) struct Stamps {
    tick_us: f64,
    hop_limit: u8,
    zero: f64,
    first_us: f64,
    last_us: f64,
    /// What its readings were made straight by, from the first one on; `None` where no drift was told, however small.
    drift_ppm: Option<f64>,
}

/// By how much a connection's base is above that of another one of its clock, and what their drift leaves open.
pub(crate) struct Higher {
    pub us: f64,
    pub open_us: f64,
}

impl Stamps {
    /// Of a direction over TCP whose clock was followed throughout.
    pub(crate) fn of(direction: &Direction) -> Option<Self> {
        let reading = &direction.reading;
        let [piece] = &reading.direct.pieces[..] else { return None };
        reading.rate?.hz()?;
        Some(Self {
            tick_us: reading.direct.tick_us,
            hop_limit: direction.about.hop_limit.0,
            zero: piece.zero(reading.direct.tick_us),
            first_us: piece.points.first()?.t,
            last_us: piece.points.last()?.t,
            drift_ppm: reading.drift_ppm.or(reading.drift_found.map(|_| 0.0)),
        })
    }

    /// By how much this is above the one of others with its clock that leaves least open of how much it is at least.
    pub(crate) fn above(&self, others: &[Self]) -> Option<Higher> {
        let least = |higher: &Higher| higher.us - higher.open_us;
        let higher = others.iter().filter_map(|other| self.above_one(other));
        higher.max_by(|a, b| least(a).total_cmp(&least(b)))
    }

    fn above_one(&self, other: &Self) -> Option<Higher> {
        if self.tick_us != other.tick_us || self.hop_limit != other.hop_limit {
            return None;
        }
        let drift_ppm = self.drift_ppm.or(other.drift_ppm);
        let later_us = self.first_us - other.first_us;
        let wraps_us = self.tick_us * WRAP_TICKS;
        let apart_us = self.zero - other.zero - drift_ppm.unwrap_or(0.0) / 1e6 * later_us;
        let us = apart_us - (apart_us / wraps_us).round() * wraps_us;
        let between_us = (self.last_us - other.first_us).max(other.last_us - self.first_us);
        let open_ppm = if drift_ppm.is_some() { DRIFT_PPM_MIN } else { DRIFT_PPM_UNKNOWN };
        (us.abs() <= SAME_CLOCK_US).then_some(Higher { us, open_us: open_ppm / 1e6 * between_us })
    }
}

impl Higher {
    /// Where it is more than a tick and what is left open.
    pub(crate) fn tells(&self, tick_us: f64) -> Option<f64> {
        (self.us > tick_us + self.open_us).then_some(self.us)
    }
}
