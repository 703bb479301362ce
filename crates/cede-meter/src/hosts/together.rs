//! What the directions of one host have in common, one after the other: there may be a million of them.

use crate::hosts::several::{Likeness, Several};
use crate::report::{Flags, FlowReport, Protocol, RoundTrip};

/// What holds of flows that have together at least this part of the host's samples holds of the host.
pub(crate) const PART_THAT_COUNTS: u64 = 10;

/// What was gathered so far.
#[derive(Debug, Default)]
pub(crate) struct Together {
    /// Directions of flows.
    pub flows: u32,
    /// Ticks per second of the first TCP flow's clock.
    pub clock_hz: Option<f64>,
    samples: u64,
    /// Of how many samples each flag is said, by its number.
    flagged: [u64; Flags::COUNT],
    round_trip: Option<RoundTrip>,
    clocks: Several,
    /// Directions whose clock runs at a rate that no system has.
    pub odd_clocks: u64,
}

impl Together {
    /// Adds a direction of so many samples.
    pub(crate) fn add(&mut self, flow: &FlowReport, samples: u64, clock: &Likeness) {
        self.flows += 1;
        self.samples += samples;
        self.odd_clocks += u64::from(flow.flags.has(Flags::RATE_ODD));
        self.flag(samples, flow.flags);
        if flow.protocol == Protocol::Tcp {
            self.clock_hz = self.clock_hz.or(flow.clock_hz);
        }
        self.round_trip = match (self.round_trip, flow.round_trip) {
            (Some(mine), Some(other)) => Some(joined(&mine, &other)),
            (mine, other) => mine.or(other),
        };
        self.clocks.add(flow, clock);
    }

    /// Says something of so many samples.
    pub(crate) fn flag(&mut self, samples: u64, flags: Flags) {
        flags.numbers().for_each(|number| self.flagged[number] += samples);
    }

    /// The shortest round trip, and the mean of all.
    pub(crate) const fn round_trip(&self) -> Option<RoundTrip> {
        self.round_trip
    }

    /// What to bear in mind of the host.
    pub(crate) fn flags(&self) -> Flags {
        let mut flags = Flags::default();
        for (number, &flagged) in self.flagged.iter().enumerate() {
            let counts = flagged > 0 && flagged * PART_THAT_COUNTS >= self.samples;
            flags.set_if(counts, Flags::numbered(number));
        }
        flags.set_if(self.clocks.are_several(), Flags::SEVERAL_CLOCKS);
        flags
    }
}

fn joined(a: &RoundTrip, b: &RoundTrip) -> RoundTrip {
    let samples = a.samples.saturating_add(b.samples);
    let sum = |trip: &RoundTrip| trip.mean_ms * f64::from(trip.samples);
    RoundTrip {
        samples,
        min_ms: a.min_ms.min(b.min_ms),
        mean_ms: (sum(a) + sum(b)) / f64::from(samples.max(1)),
    }
}
