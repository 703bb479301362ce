//! A token bucket: what is read is paid for out of it.

use std::time::Instant;

/// What may be read, where there is a limit.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    rate: Option<u64>,
    tokens: f64,
    at: Option<Instant>,
}

impl Bucket {
    /// So many octets per second, or as much as comes.
    pub fn new(rate: Option<u64>) -> Self {
        Self { rate, ..Self::default() }
    }

    /// How many octets may be read now; at least one where there is no limit.
    pub fn allowance(&mut self) -> usize {
        let Some(rate) = self.rate else { return usize::MAX };
        let (now, burst) = (Instant::now(), (rate as f64 / 4.0).max(16_384.0));
        let passed = self.at.replace(now).map_or(0.0, |at| (now - at).as_secs_f64());
        self.tokens = (self.tokens + passed * rate as f64).min(burst);
        self.tokens.max(0.0) as usize
    }

    pub fn spend(&mut self, octets: usize) {
        if self.rate.is_some() {
            self.tokens -= octets as f64;
        }
    }
}
