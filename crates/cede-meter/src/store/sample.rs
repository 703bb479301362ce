//! A reading of a clock at a time.

use crate::packet::length::Length;

/// A raw sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sample {
    /// Capture time in microseconds since the capture's epoch.
    pub time_us: u64,
    /// A clock reading or a difference of clocks, whatever the series is for.
    pub raw: u32,
    /// The length of its packet.
    pub length: Length,
}
