//! When acknowledgements leave.
//!
//! Source: RFC 5681 section 4.2, RFC 1122 section 4.2.3.2; for [`AckPolicy::Linux`] the behaviour of Linux 6.12
//! (`__tcp_ack_snd_check`, `tcp_event_data_recv`).
//!
//! **What it leaves out.** Linux's compression of the acknowledgements that report gaps, its return to quick
//! acknowledgements after a retransmission, and its switch to delayed ones while the application answers.
//!
//! **How it was validated.** The tests below.

use crate::config::AckPolicy;
use cede_units::{Duration, Instant};

/// Linux: segments acknowledged at once at the beginning and after idling.
const QUICK_SEGMENTS: u32 = 16;
const ATO_MIN: Duration = Duration::from_millis(40);
const ATO_MAX: Duration = Duration::from_millis(200);

/// What is owed to the peer.
#[derive(Clone, Debug)]
pub(crate) struct AckScheduler {
    policy: AckPolicy,
    /// Acknowledgements owed that must each leave on their own: the peer counts duplicates.
    duplicates: u32,
    /// An acknowledgement is due, which data may carry.
    due: bool,
    /// Segments and octets received since the last acknowledgement.
    segments: u32,
    bytes: u32,
    deadline: Instant,
    linux: LinuxPace,
}

/// How Linux times its delayed acknowledgements.
#[derive(Clone, Debug)]
struct LinuxPace {
    quick: u32,
    ato: Duration,
    last_data_at: Option<Instant>,
}

impl AckScheduler {
    pub(crate) const fn new(policy: AckPolicy) -> Self {
        let linux = LinuxPace { quick: QUICK_SEGMENTS, ato: ATO_MIN, last_data_at: None };
        Self { policy, duplicates: 0, due: false, segments: 0, bytes: 0, deadline: Instant::NEVER, linux }
    }

    /// Data of `bytes` continued the stream. `mss_bytes` is a full segment's payload, `srtt` and `rto` are the
    /// connection's.
    pub(crate) fn on_in_order(
        &mut self,
        now: Instant,
        bytes: u32,
        mss_bytes: u32,
        srtt: Duration,
        rto: Duration,
    ) {
        self.segments = self.segments.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        match self.policy {
            AckPolicy::Every => self.due = true,
            AckPolicy::Delayed { every, timeout } => {
                self.due |= self.segments >= every;
                self.deadline = self.deadline.min(now + timeout);
            }
            AckPolicy::Linux => {
                self.linux.on_data(now, rto);
                self.due |= self.bytes > mss_bytes || self.linux.quick > 0;
                self.deadline = self.deadline.min(now + self.linux.ato.min(srtt.max(ATO_MIN)));
            }
        }
    }

    /// An acknowledgement is due at once, and data may carry it.
    pub(crate) const fn on_immediate(&mut self) {
        self.due = true;
    }

    /// A segment arrived beyond a gap, or again: the peer is to count a duplicate acknowledgement.
    pub(crate) const fn on_duplicate(&mut self) {
        self.duplicates = self.duplicates.saturating_add(1);
    }

    /// The delay ran out.
    pub(crate) fn on_deadline(&mut self, now: Instant) {
        if self.deadline <= now {
            self.deadline = Instant::NEVER;
            self.due = true;
        }
    }

    /// When [`Self::on_deadline`] is wanted.
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) const fn owes_duplicate(&self) -> bool {
        self.duplicates > 0
    }

    pub(crate) const fn owes(&self) -> bool {
        self.due || self.duplicates > 0
    }

    /// A segment with the acknowledgement left.
    pub(crate) const fn on_sent(&mut self) {
        self.duplicates = self.duplicates.saturating_sub(1);
        self.linux.quick = self.linux.quick.saturating_sub(self.segments);
        (self.due, self.segments, self.bytes, self.deadline) = (false, 0, 0, Instant::NEVER);
    }
}

impl LinuxPace {
    fn on_data(&mut self, now: Instant, rto: Duration) {
        let Some(last) = self.last_data_at.replace(now) else { return };
        let gap = now.since(last);
        if gap > rto {
            self.quick = QUICK_SEGMENTS;
        }
        let step = if gap <= ATO_MIN / 2 { ATO_MIN / 2 } else { gap };
        if gap <= self.ato {
            self.ato = (self.ato / 2 + step).clamp(ATO_MIN, ATO_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_millis(300);
    const MSS: u32 = 1000;

    fn receive(scheduler: &mut AckScheduler, now: Instant) -> bool {
        scheduler.on_in_order(now, MSS, MSS, Duration::from_millis(100), RTO);
        let owes = scheduler.owes();
        if owes {
            scheduler.on_sent();
        }
        owes
    }

    #[test]
    fn every_segment_or_every_second_one_is_acknowledged() {
        let mut every = AckScheduler::new(AckPolicy::Every);
        let mut second = AckScheduler::new(AckPolicy::DELAYED);
        for i in 0..10 {
            assert!(receive(&mut every, Instant::from_millis(i)));
            assert_eq!(receive(&mut second, Instant::from_millis(i)), i % 2 == 1);
        }
    }

    #[test]
    fn a_lone_segment_waits_for_its_deadline() {
        let mut scheduler = AckScheduler::new(AckPolicy::DELAYED);
        assert!(!receive(&mut scheduler, Instant::from_millis(5)));
        assert_eq!(scheduler.deadline(), Instant::from_millis(205));
        scheduler.on_deadline(Instant::from_millis(204));
        assert!(!scheduler.owes());
        scheduler.on_deadline(Instant::from_millis(205));
        assert!(scheduler.owes() && !scheduler.owes_duplicate());
        scheduler.on_sent();
        assert_eq!(scheduler.deadline(), Instant::NEVER);
    }

    #[test]
    fn each_duplicate_is_owed_on_its_own() {
        let mut scheduler = AckScheduler::new(AckPolicy::DELAYED);
        (0..3).for_each(|_| scheduler.on_duplicate());
        for _ in 0..3 {
            assert!(scheduler.owes_duplicate());
            scheduler.on_sent();
        }
        assert!(!scheduler.owes());
    }

    #[test]
    fn linux_is_quick_at_first_and_after_idling_then_follows_the_spacing() {
        let mut scheduler = AckScheduler::new(AckPolicy::Linux);
        let mut at = Instant::ZERO;
        let mut answers = |scheduler: &mut AckScheduler, n: u32, gap_ms: u64| -> u32 {
            (0..n)
                .map(|_| {
                    at += Duration::from_millis(gap_ms);
                    u32::from(receive(scheduler, at))
                })
                .sum()
        };
        assert_eq!(answers(&mut scheduler, 16, 1), 16);
        assert_eq!(answers(&mut scheduler, 20, 1), 10);
        assert_eq!(scheduler.linux.ato, ATO_MIN);
        // After a pause longer than the RTO it is quick again; the fraction left over from before comes along.
        assert_eq!(answers(&mut scheduler, 1, 400), 1);
        assert_eq!(answers(&mut scheduler, 15, 1), 15);
        assert_eq!(answers(&mut scheduler, 2, 1), 1);
        // Data every 35 ms stretches the delay to 35 + half of itself.
        answers(&mut scheduler, 20, 35);
        assert!(scheduler.linux.ato > Duration::from_millis(60) && scheduler.linux.ato <= ATO_MAX);
    }
}
