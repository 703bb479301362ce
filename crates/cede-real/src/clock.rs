//! The real clock, on the scale that protocol code knows.

use cede_units::{Duration, Instant};

/// Where the scale begins, so that a time just before the origin can be told from none.
const BEGINNING: Duration = Duration::from_secs(1);

/// One origin of time. All of a socket's instants count from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    pub fn new() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    pub fn now(&self) -> Instant {
        let elapsed = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::ZERO + BEGINNING + Duration::from_nanos(elapsed)
    }

    /// The same moment on the runtime's scale.
    pub fn to_runtime(self, at: Instant) -> tokio::time::Instant {
        let since = at.since(Instant::ZERO + BEGINNING);
        (self.origin + std::time::Duration::from_nanos(since.as_nanos())).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_scales_show_the_same_moment() {
        let clock = Clock::new();
        let before = tokio::time::Instant::now();
        let at = clock.to_runtime(clock.now());
        assert!(before <= at && at <= tokio::time::Instant::now());
    }
}
