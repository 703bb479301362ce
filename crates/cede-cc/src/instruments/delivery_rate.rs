//! Delivery-rate samples.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation, section 3: each packet carries away the state of delivery
//! ([`SendRecord`]); when its acknowledgement arrives, what was delivered in between over the longer of the sending and
//! the acknowledging interval is the rate, which thus never exceeds what left.
//!
//! A transport keeps one [`DeliveryRate`], asks [`DeliveryRate::record`] for the packet's record at each
//! transmission, and calls [`DeliveryRate::on_delivered`] for each packet acknowledged.
//!
//! *What it leaves out:* samples below the path's minimum RTT are for the controller to refuse, as in BBR.
//! *How it was validated:* unit tests below.

use crate::{PacketFact, SendRecord};
use cede_units::{Duration, Instant, Rate};

/// One sample of the rate at which a connection delivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliverySample {
    /// Octets delivered in the interval.
    pub delivered_bytes: u64,
    /// The longer of the sending and the acknowledging interval.
    pub interval: Duration,
    /// The sender lacked data at some time of the interval: the path can do at least this.
    pub app_limited: bool,
}

impl DeliverySample {
    /// The rate; zero for an empty interval.
    #[must_use]
    pub fn rate(&self) -> Rate {
        Rate::from_bytes_over(self.delivered_bytes, self.interval)
    }

    /// The sample that the newest packet of an acknowledgement gives, when `delivered_bytes` have been delivered on
    /// the connection in all. This is all that a controller needs.
    #[must_use]
    pub fn of(now: Instant, delivered_bytes: u64, newest: &PacketFact) -> Self {
        let sending = newest.sent_at.since(newest.record.first_sent_at);
        let acknowledging = now.since(newest.record.delivered_at);
        Self {
            delivered_bytes: delivered_bytes.saturating_sub(newest.record.delivered_bytes),
            interval: sending.max(acknowledging),
            app_limited: newest.record.app_limited,
        }
    }
}

/// A connection's state of delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeliveryRate {
    state: SendRecord,
    app_limited_until_bytes: u64,
}

impl DeliveryRate {
    /// Nothing delivered.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The record that a packet leaving now carries. `in_flight_bytes` is what is under way without it.
    pub fn record(&mut self, now: Instant, in_flight_bytes: u64) -> SendRecord {
        if in_flight_bytes == 0 {
            self.state.first_sent_at = now;
            self.state.delivered_at = now;
        }
        SendRecord { app_limited: self.state.delivered_bytes < self.app_limited_until_bytes, ..self.state }
    }

    /// One packet has been acknowledged for the first time. Of those acknowledged at one time the newest opens the next
    /// sampling interval; it may have left before one that was acknowledged earlier.
    pub fn on_delivered(&mut self, now: Instant, packet: &PacketFact) {
        let newer = self.state.delivered_at != now || packet.sent_at > self.state.first_sent_at;
        self.state.delivered_bytes = self.state.delivered_bytes.saturating_add(u64::from(packet.bytes));
        self.state.delivered_at = now;
        if newer {
            self.state.first_sent_at = packet.sent_at;
        }
    }

    /// The application has nothing to send though the window would allow it: what is under way now will not show
    /// what the path can do.
    pub fn on_app_limited(&mut self, in_flight_bytes: u64) {
        self.app_limited_until_bytes = self.state.delivered_bytes.saturating_add(in_flight_bytes).max(1);
    }

    /// Octets delivered so far.
    #[must_use]
    pub const fn delivered_bytes(&self) -> u64 {
        self.state.delivered_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64, sent_at: Instant, record: SendRecord) -> PacketFact {
        PacketFact { number, bytes: 1000, sent_at, retransmitted: false, tag: 0, record }
    }

    /// Ten packets leave `gap_ms` apart, each acknowledged 50 ms after it left; the sample of the last.
    fn run(gap_ms: u64) -> DeliverySample {
        let mut rate = DeliveryRate::new();
        let sent = |i: u64| Instant::from_millis(i * gap_ms);
        let packets: alloc::vec::Vec<_> =
            (0..10).map(|i| packet(i, sent(i), rate.record(sent(i), 1000 * i))).collect();
        let mut sample = None;
        for p in &packets {
            let now = p.sent_at + Duration::from_millis(50);
            rate.on_delivered(now, p);
            sample = Some(DeliverySample::of(now, rate.delivered_bytes(), p));
        }
        sample.unwrap()
    }

    #[test]
    fn the_longer_of_the_two_intervals_counts() {
        // All ten left in one flight from t = 0: the last is acknowledged 9 gaps + 50 ms after that.
        let sample = run(10);
        assert_eq!((sample.delivered_bytes, sample.interval), (10_000, Duration::from_millis(140)));
        assert_eq!(sample.rate().bits_per_sec(), 571_428);
    }

    #[test]
    fn acknowledgements_that_arrive_together_do_not_inflate_the_rate() {
        let mut rate = DeliveryRate::new();
        let packets: alloc::vec::Vec<_> = (0..10_u64)
            .map(|i| {
                packet(i, Instant::from_millis(10 * i), rate.record(Instant::from_millis(10 * i), 1000 * i))
            })
            .collect();
        let now = Instant::from_millis(91);
        for p in &packets {
            rate.on_delivered(now, p);
        }
        let sample = DeliverySample::of(now, rate.delivered_bytes(), &packets[9]);
        assert_eq!(sample.interval, Duration::from_millis(91));
    }

    #[test]
    fn the_newest_of_an_acknowledgement_opens_the_next_interval() {
        let mut rate = DeliveryRate::new();
        let at = Instant::from_millis;
        let record = rate.record(at(0), 0);
        // A retransmission of 60 ms is acknowledged first; then, at one time, packets of 30, 40 and 20 ms.
        rate.on_delivered(at(100), &packet(0, at(60), record));
        assert_eq!(rate.record(at(100), 1000).first_sent_at, at(60));
        for (number, sent_at) in [(1, at(30)), (2, at(40)), (3, at(20))] {
            rate.on_delivered(at(101), &packet(number, sent_at, record));
        }
        let record = rate.record(at(101), 1000);
        assert_eq!(
            (record.first_sent_at, record.delivered_at, record.delivered_bytes),
            (at(40), at(101), 4000)
        );
    }

    #[test]
    fn what_leaves_while_data_is_lacking_is_marked() {
        let mut rate = DeliveryRate::new();
        rate.on_app_limited(0);
        let record = rate.record(Instant::ZERO, 0);
        assert!(record.app_limited);
        rate.on_delivered(Instant::from_millis(1), &packet(0, Instant::ZERO, record));
        assert!(!rate.record(Instant::from_millis(2), 0).app_limited);
    }
}
