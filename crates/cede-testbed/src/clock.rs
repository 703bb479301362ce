//! The real clock, on the scale that links know.

use cede_units::{Duration, Instant};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the scale begins, so that a time just before the origin can be told from none.
const BEGINNING: Duration = Duration::from_secs(1);

/// One origin of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    pub fn new() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    pub fn now(self) -> Instant {
        Instant::ZERO + BEGINNING + self.origin.elapsed().into()
    }

    /// The time that has passed since the origin.
    pub fn elapsed(self) -> Duration {
        self.origin.elapsed().into()
    }
}

/// How long ago a moment of the system's wall clock was; zero where it has not come yet.
pub(crate) fn age_of(wall: std::time::Duration) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(wall).into()
}
