//! What a flow has to send, and when.

use std::time::Duration;

/// Data over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    /// Always.
    Backlogged,
    /// A burst each period, of one packet with so much payload, then two, four and on.
    Chirp { period: Duration, bytes: u64 },
    /// A message each period.
    Heartbeat { period: Duration, bytes: u64 },
}

impl Pattern {
    /// When after the beginning how many octets follow, for ever.
    pub fn messages(self) -> impl Iterator<Item = (Duration, u64)> {
        (0_u32..).map(move |number| match self {
            Self::Backlogged => (Duration::ZERO, u64::MAX),
            Self::Chirp { period, bytes } => (
                period.saturating_mul(number),
                bytes.saturating_mul(1_u64.checked_shl(number).unwrap_or(u64::MAX)),
            ),
            Self::Heartbeat { period, bytes } => (period.saturating_mul(number), bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_double_and_messages_come_in_time() {
        let second = Duration::from_secs(1);
        let first = |pattern: Pattern| pattern.messages().take(3).collect::<Vec<_>>();
        let chirp = first(Pattern::Chirp { period: second, bytes: 10 });
        assert_eq!(chirp, [(Duration::ZERO, 10), (second, 20), (2 * second, 40)]);
        let heartbeat = first(Pattern::Heartbeat { period: second, bytes: 7 });
        assert_eq!(heartbeat, [(Duration::ZERO, 7), (second, 7), (2 * second, 7)]);
        assert_eq!(first(Pattern::Backlogged)[0], (Duration::ZERO, u64::MAX));
        let chirp = Pattern::Chirp { period: second, bytes: 10 };
        assert_eq!(chirp.messages().nth(100).unwrap().1, u64::MAX, "it stops growing somewhere");
    }
}
