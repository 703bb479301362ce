//! Whether the clocks behind one address are those of several hosts, which share it (NAT).
//!
//! Sources: Kohno, Broido, Claffy, "Remote physical device fingerprinting" (IEEE Symposium on Security and Privacy 2005),
//! for telling hosts by drift and offset. RFC 7323 lets TCP's timestamps begin at anything: Linux 6.18 draws an offset for each
//! connection (seen on the loopback), earlier ones have one for each pair of addresses (`secure_tcp_ts_off`), and whoever sets
//! `tcp_timestamps` to 2 has none.
//!
//! uTP's stamps are those of one clock, whatever the connection: two offsets at one time are two clocks. An offset of TCP's
//! says nothing by itself; but connections to one address that share one show that their host has one offset for all of them,
//! and where two such groups live at one time there are two hosts.
//!
//! **What it leaves out.** Hosts of which only one connection was seen, where rate, drift and hop limit are the same;
//! programs of one host whose uTP clocks begin when they do are taken for hosts.
//!
//! **How it was validated.** Hosts by twos and threes with clocks of each kind (`tests/several.rs`).

use crate::packet::key::Socket;
use crate::report::{FlowReport, Protocol};
use core::net::IpAddr;

/// Clocks of one host differ by less than this in what is measured of their drifts.
pub(crate) const SAME_DRIFT_PPM: f64 = 30.0;
/// Offsets further apart than this are of different clocks: no queue explains it.
pub(crate) const SAME_CLOCK_US: f64 = 10e6;
/// Offsets that are remembered. A system with one for each connection fills them, and has no groups.
const OFFSETS_MAX: usize = 32;
/// Connections that must share an offset of TCP's to show that it is their host's.
const GROUP_MIN: u32 = 2;

/// A few packets may be of somebody on the way, who ends connections of others, or of anybody who says that he has this address.
const HOP_LIMIT_PACKETS_MIN: u32 = 8;

/// What a direction's clock is like, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Likeness {
    /// Ticks per second, where they are what systems have.
    pub rate_hz: Option<f64>,
    /// How far the observer's clock is ahead in microseconds, and after how many the clock begins anew.
    pub offset: Option<(f64, f64)>,
    /// And by how many packets it is that of most.
    pub hop_limit: (u8, u32),
}

/// Clocks that were seen behind one address.
#[derive(Debug, Default)]
pub(crate) struct Several {
    drift_ppm: Option<(f64, f64)>,
    rates: Distinct,
    hop_limits: Votes,
    offsets: Vec<Offset>,
}

/// Whether values differ.
#[derive(Debug, Default)]
struct Distinct {
    first: Option<u64>,
    are_several: bool,
}

impl Distinct {
    fn add(&mut self, value: u64) {
        self.are_several |= *self.first.get_or_insert(value) != value;
    }
}

/// Hop limits, and how many packets more than others had each of them, over all directions.
#[derive(Debug, Default)]
struct Votes(Vec<(u8, u32)>);

impl Votes {
    fn add(&mut self, limit: (u8, u32)) {
        match self.0.iter_mut().find(|known| known.0 == limit.0) {
            Some(known) => known.1 = known.1.saturating_add(limit.1),
            None => self.0.push(limit),
        }
    }

    fn are_several(&self) -> bool {
        self.0.iter().filter(|known| known.0 > 0 && known.1 >= HOP_LIMIT_PACKETS_MIN).count() > 1
    }
}

/// An offset, and how many connections between which times had it.
#[derive(Debug)]
struct Offset {
    /// TCP: to whom.
    to: Option<IpAddr>,
    us: f64,
    wraps_us: f64,
    span_us: (u64, u64),
    connections: u32,
}

impl Several {
    /// Adds what was found of a direction.
    pub(crate) fn add(&mut self, flow: &FlowReport, clock: &Likeness) {
        if let Some(ppm) = flow.drift_ppm {
            let (low, high) = self.drift_ppm.unwrap_or((ppm, ppm));
            self.drift_ppm = Some((low.min(ppm), high.max(ppm)));
        }
        clock.rate_hz.into_iter().for_each(|hz| self.rates.add(hz.to_bits()));
        self.hop_limits.add(clock.hop_limit);
        let Some((us, wraps_us)) = clock.offset else { return };
        let Socket { address, .. } = flow.destination;
        let to = (flow.protocol == Protocol::Tcp).then_some(address);
        self.add_offset(Offset { to, us, wraps_us, span_us: flow.span_us, connections: 1 });
    }

    fn add_offset(&mut self, new: Offset) {
        if let Some(known) = self.offsets.iter_mut().find(|known| known.is_near(&new)) {
            known.connections = known.connections.saturating_add(1);
            known.span_us = (known.span_us.0.min(new.span_us.0), known.span_us.1.max(new.span_us.1));
        } else if self.offsets.len() < OFFSETS_MAX {
            self.offsets.push(new);
        }
    }

    /// Whether there is more than one host.
    pub(crate) fn are_several(&self) -> bool {
        let drifts_differ = self.drift_ppm.is_some_and(|(low, high)| high - low > SAME_DRIFT_PPM);
        drifts_differ || self.rates.are_several || self.hop_limits.are_several() || self.offsets_differ()
    }

    fn offsets_differ(&self) -> bool {
        let tell =
            || self.offsets.iter().filter(|offset| offset.to.is_none() || offset.connections >= GROUP_MIN);
        tell().enumerate().any(|(k, one)| tell().skip(k + 1).any(|other| one.is_beside(other)))
    }
}

impl Offset {
    fn is_near(&self, other: &Self) -> bool {
        let apart = || (self.us - other.us).rem_euclid(self.wraps_us);
        let is_small = |apart: f64| apart.min(self.wraps_us - apart) <= SAME_CLOCK_US;
        self.is_comparable(other) && is_small(apart())
    }

    fn is_comparable(&self, other: &Self) -> bool {
        self.to == other.to && self.wraps_us == other.wraps_us
    }

    /// Whether both were there at one time.
    fn is_beside(&self, other: &Self) -> bool {
        self.is_comparable(other) && self.span_us.0 <= other.span_us.1 && other.span_us.0 <= self.span_us.1
    }
}
