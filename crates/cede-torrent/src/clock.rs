//! The real clock, on the scale that the protocols count in.

use cede_units::{Duration as Span, Instant as Time};
use std::time::{Duration, Instant};

/// One beginning of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    pub fn begin() -> Self {
        Self { began: Instant::now() }
    }

    pub fn now(self) -> Time {
        Time::ZERO + Span::from(self.elapsed())
    }

    pub fn elapsed(self) -> Duration {
        self.began.elapsed()
    }

    /// The same moment on the system's scale.
    pub fn to_system(self, time: Time) -> Instant {
        self.began + Duration::from(time.since(Time::ZERO))
    }
}
