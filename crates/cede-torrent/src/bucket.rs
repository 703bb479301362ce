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

    /// What there is of a limit.
    pub const fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Changes the limit. Nothing is saved up, or owed, from before.
    pub const fn set_rate(&mut self, rate: Option<u64>) {
        *self = Self { rate, tokens: 0.0, at: None };
    }

    /// How many octets may be read now; none as long as it is not worth a read.
    pub fn allowance(&mut self) -> usize {
        let Some(rate) = self.rate else { return usize::MAX };
        let (now, burst) = (Instant::now(), (rate as f64 / 4.0).max(16_384.0));
        let passed = self.at.replace(now).map_or(0.0, |at| (now - at).as_secs_f64());
        self.tokens = (self.tokens + passed * rate as f64).min(burst);
        worth(self.tokens, rate)
    }

    pub fn spend(&mut self, octets: usize) {
        if self.rate.is_some() {
            self.tokens -= octets as f64;
        }
    }
}

/// What there is, or nothing where it is less than comes in a millisecond (a block at most): whoever reads the little that came since
/// the last read does nothing else.
fn worth(tokens: f64, rate: u64) -> usize {
    let least = (rate / 1000).clamp(1, 16_384) as f64;
    if tokens < least { 0 } else { tokens as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_little_is_left_until_there_is_more() {
        assert_eq!(
            [0.9, 1999.0, 2000.0, 40_000.5].map(|tokens| worth(tokens, 2_000_000)),
            [0, 0, 2000, 40_000]
        );
        assert_eq!([-5.0, 0.9, 1.0].map(|tokens| worth(tokens, 500)), [0, 0, 1]);
        assert_eq!([16_383.0, 16_384.0].map(|tokens| worth(tokens, 1_000_000_000)), [0, 16_384]);
    }
}
