//! What other flows told of a sender's clock.

use crate::clocks::clock::Point;

/// What other flows told of a sender's clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Told {
    /// How much faster the observer's clock runs.
    pub drift_ppm: f64,
    /// For directions of one offset: a reading of one of them, from which all count.
    pub origin: Option<Point>,
    /// That of the packets of whoever told it.
    pub hop_limit: u8,
}

impl Told {
    /// Whether it may hold for a direction whose packets come with this hop limit.
    pub(crate) const fn fits(&self, hop_limit: u8) -> bool {
        self.origin.is_some() || self.hop_limit == hop_limit
    }
}
