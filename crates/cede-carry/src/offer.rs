//! What a sender says of a file before it sends it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Octets of a digest.
pub const DIGEST_BYTES: usize = blake3::OUT_LEN;

/// When a file was last changed, counted from the beginning of 1970; before it, seconds are negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Modified {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds beyond them.
    pub nanos: u32,
}

impl Modified {
    pub(crate) fn of(time: SystemTime) -> Option<Self> {
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => {
                Some(Self { seconds: i64::try_from(since.as_secs()).ok()?, nanos: since.subsec_nanos() })
            }
            Err(before) => {
                let before = before.duration();
                let seconds = i64::try_from(before.as_secs()).ok()?;
                match before.subsec_nanos() {
                    0 => Some(Self { seconds: -seconds, nanos: 0 }),
                    nanos => Some(Self { seconds: -seconds - 1, nanos: 1_000_000_000 - nanos }),
                }
            }
        }
    }

    pub(crate) fn time(self) -> Option<SystemTime> {
        let whole = Duration::from_secs(self.seconds.unsigned_abs());
        let second =
            if self.seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
        second?.checked_add(Duration::from_nanos(u64::from(self.nanos)))
    }
}

/// What is about to be sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offer {
    /// Its name, as the sender calls it: not to be trusted.
    pub name: String,
    /// Its size, where that is known.
    pub bytes: Option<u64>,
    /// When it was last changed.
    pub modified: Option<Modified>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_1970_survive_the_way() {
        for (seconds, nanos) in [(0, 0), (1, 5), (-1, 999_999_999), (-7, 0), (1 << 33, 1)] {
            let modified = Modified { seconds, nanos };
            assert_eq!(modified.time().and_then(Modified::of), Some(modified));
        }
    }
}
