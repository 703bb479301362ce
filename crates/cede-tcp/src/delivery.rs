//! The delivery rate's bookkeeping, for controllers that estimate it.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation, sections 3.2 and 3.3. The estimate itself is the controller's;
//! this keeps what a [`SendRecord`] holds.

use cede_cc::{PacketFact, SendRecord};
use cede_units::Instant;

/// What has been delivered so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    bytes: u64,
    at: Instant,
    first_sent_at: Instant,
    /// Until so much is delivered, samples tell of the application and not of the path.
    app_limited_until_bytes: u64,
}

impl Delivery {
    /// Octets delivered, selectively acknowledged ones included.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A packet leaves; `idle` says that none was under way.
    pub(crate) const fn on_sent(&mut self, now: Instant, idle: bool) -> SendRecord {
        if idle {
            (self.at, self.first_sent_at) = (now, now);
        }
        SendRecord {
            delivered_bytes: self.bytes,
            delivered_at: self.at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until_bytes > self.bytes,
        }
    }

    /// Packets were delivered, `newest` the one sent last.
    pub(crate) const fn on_delivered(&mut self, now: Instant, bytes: u64, newest: &PacketFact) {
        self.bytes += bytes;
        self.at = now;
        self.first_sent_at = newest.sent_at;
    }

    /// The application has nothing to send while the window would allow it.
    pub(crate) const fn on_app_limited(&mut self, pipe_bytes: u64) {
        let until = self.bytes + pipe_bytes;
        self.app_limited_until_bytes = if until == 0 { 1 } else { until };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bubble_lasts_until_what_was_under_way_is_delivered() {
        let mut delivery = Delivery::default();
        let (start, later) = (Instant::from_millis(1), Instant::from_millis(2));
        let record = delivery.on_sent(start, true);
        assert!(!record.app_limited);
        assert_eq!((record.first_sent_at, record.delivered_at), (start, start));
        delivery.on_app_limited(1000);
        assert!(delivery.on_sent(later, false).app_limited);
        let fact =
            PacketFact { number: 0, bytes: 1000, sent_at: start, retransmitted: false, tag: 0, record };
        delivery.on_delivered(later, 1000, &fact);
        let record = delivery.on_sent(later, false);
        assert_eq!((record.app_limited, record.delivered_bytes, record.first_sent_at), (false, 1000, start));
    }
}
