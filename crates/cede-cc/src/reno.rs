//! Reno's window rules, as NewReno uses them.
//!
//! Source: RFC 5681, section 3.1 (slow start, congestion avoidance with byte counting, equation 4 for ssthresh), 4.1 (restart
//! after idleness); RFC 6582, section 3.2 (the window at the end of a recovery, option 1); RFC 3168, section 6.1.2 (a
//! mark counts as a loss).
//!
//! The window itself stands in `reno_window.rs`. The transport retransmits, and inflates the window during a recovery if it has no SACK; here the window is held
//! from the reduction until [`Feedback::in_recovery`] is over. At `cwnd == ssthresh` it is congestion avoidance.
//!
//! *What it leaves out:* pacing.
//! *How it was validated:* unit tests below; the conformance suite; alone on a link in `tests/link.rs`.

use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, Params, Settings, number};
use crate::reno_window::{News, RenoWindow};
use crate::{Allowance, Controller, Feedback, Path, Snapshot, Timeout};
use alloc::boxed::Box;

pub(crate) const INIT_CWND: ParamDoc = number(
    "init_cwnd",
    "0",
    (0.0, 1000.0),
    "The initial window in packets; 0 takes the transport's (RFC 5681 or RFC 6928).",
);

const PARAMS: &[ParamDoc] = &[
    INIT_CWND,
    number(
        "slow_start_limit",
        "1",
        (1.0, 1000.0),
        "Packets by which one acknowledgement raises the window at most in slow start (RFC 5681: 1; RFC 3465: 2).",
    ),
    number(
        "increase",
        "1",
        (0.001, 100.0),
        "Packets by which a round trip of congestion avoidance raises the window (RFC 5681: 1).",
    ),
    number(
        "beta",
        "0.5",
        (0.1, 0.99),
        "What a loss leaves of what is under way (RFC 5681, equation 4: half).",
    ),
];

pub(crate) const ENTRY: Entry = Entry {
    name: "reno",
    summary: "Reno/NewReno: one packet more per round trip, half after a loss.",
    formula: "slow start: cwnd += min(acked, SMSS); then cwnd += SMSS per cwnd octets acknowledged; \
              loss: ssthresh = max(flight/2, 2 SMSS), cwnd = ssthresh; timeout: cwnd = SMSS",
    source: "RFC 5681 section 3.1 and 4.1; RFC 6582 section 3.2",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

/// See the file's head.
#[derive(Clone, Debug)]
pub struct Reno {
    window: RenoWindow,
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    let window = RenoWindow::new(path, settings.number("init_cwnd"));
    let window = window.with_slow_start_limit(settings.number("slow_start_limit"));
    let (increase, beta) = (settings.number("increase"), settings.number("beta"));
    Ok(Box::new(Reno { window: window.with_law(increase, beta) }))
}

impl Controller for Reno {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        if self.window.take(feedback) == News::Acked && !feedback.app_limited {
            self.window.grow(feedback.acked_bytes);
        }
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        self.window.undo()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.window.on_timeout(timeout)
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.window.on_mss(mss_bytes)
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }

    fn snapshot(&self) -> Snapshot {
        self.window.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;
    use crate::testing::{ack, loss, path, timeout};
    use crate::{ParamValue, registry};

    fn reno() -> Box<dyn Controller> {
        registry::build("reno", &Params::new(), &path(1000)).unwrap()
    }

    /// A connection that has left slow start with a window of 10 packets.
    fn in_avoidance() -> Box<dyn Controller> {
        let params = Params::new().with("init_cwnd", ParamValue::Number(20.0));
        let mut reno = registry::build("reno", &params, &path(1000)).unwrap();
        let mut first = loss(5, 20);
        first.feedback.in_flight_before_bytes = 20_000;
        reno.on_feedback(&first.feedback());
        let mut end = ack(20, 1000);
        end.feedback.in_flight_bytes = 9_000;
        reno.on_feedback(&end.feedback());
        assert_eq!(reno.snapshot().cwnd_bytes, 10_000.0);
        reno
    }

    #[test]
    fn slow_start_adds_one_packet_per_acknowledgement() {
        let mut reno = reno();
        assert_eq!(reno.allowance().cwnd_bytes, 4000, "the path's initial window");
        assert_eq!(reno.on_feedback(&ack(0, 1000).feedback()).cwnd_bytes, 5000);
        assert_eq!(reno.on_feedback(&ack(2, 2000).feedback()).cwnd_bytes, 6000, "min(N, SMSS)");
        let faster = Params::new().with("slow_start_limit", ParamValue::Number(2.0));
        let mut faster = registry::build("reno", &faster, &path(1000)).unwrap();
        assert_eq!(faster.on_feedback(&ack(2, 2000).feedback()).cwnd_bytes, 6000);
    }

    #[test]
    fn congestion_avoidance_adds_one_packet_per_window_acknowledged() {
        let mut reno = in_avoidance();
        for i in 0..9 {
            assert_eq!(reno.on_feedback(&ack(30 + i, 1000).feedback()).cwnd_bytes, 10_000);
        }
        assert_eq!(reno.on_feedback(&ack(40, 1000).feedback()).cwnd_bytes, 11_000);
    }

    #[test]
    fn one_reduction_per_window_and_none_in_recovery() {
        let mut reno = in_avoidance();
        let mut first = loss(40, 50);
        first.feedback.in_flight_before_bytes = 10_000;
        assert_eq!(reno.on_feedback(&first.feedback()).cwnd_bytes, 5000);
        assert_eq!(reno.on_feedback(&loss(45, 52).feedback()).cwnd_bytes, 5000, "45 left before the cut");
        let mut partial = ack(46, 3000);
        partial.feedback.in_recovery = true;
        assert_eq!(reno.on_feedback(&partial.feedback()).cwnd_bytes, 5000);
        assert_eq!(reno.snapshot().phase, Phase::Recovery);
        assert_eq!(reno.on_feedback(&loss(52, 60).feedback()).cwnd_bytes, 2000, "ssthresh's floor");
    }

    #[test]
    fn a_loss_that_was_none_gives_back_window_threshold_and_epoch() {
        let mut reno = in_avoidance();
        let mut lost = loss(40, 50);
        lost.feedback.in_flight_before_bytes = 10_000;
        assert_eq!(reno.on_feedback(&lost.feedback()).cwnd_bytes, 5000);
        assert_eq!(reno.on_undo().cwnd_bytes, 10_000);
        assert_eq!(
            (reno.snapshot().ssthresh_bytes, reno.snapshot().phase),
            (Some(10_000.0), Phase::CongestionAvoidance)
        );
        assert_eq!(reno.on_undo().cwnd_bytes, 10_000, "once");
        // Not of that event any more.
        let mut next = loss(45, 52);
        next.feedback.in_flight_before_bytes = 10_000;
        assert_eq!(reno.on_feedback(&next.feedback()).cwnd_bytes, 5000);
        // A timeout within a repair is taken back with it, and one of its own by itself.
        reno.on_timeout(&timeout(5000, 1));
        assert_eq!(reno.on_undo().cwnd_bytes, 10_000);
        reno.on_timeout(&timeout(5000, 1));
        reno.on_timeout(&timeout(1000, 2));
        assert_eq!((reno.allowance().cwnd_bytes, reno.on_undo().cwnd_bytes), (1000, 10_000));
    }

    #[test]
    fn a_full_acknowledgement_leaves_no_burst_rfc_6582() {
        let mut reno = in_avoidance();
        let mut lost = loss(40, 50);
        lost.feedback.in_flight_before_bytes = 10_000;
        reno.on_feedback(&lost.feedback());
        let mut full = ack(49, 8000);
        full.feedback.in_flight_bytes = 1000;
        assert_eq!(reno.on_feedback(&full.feedback()).cwnd_bytes, 2000, "min(ssthresh, flight + SMSS)");
        assert_eq!(reno.on_feedback(&ack(50, 1000).feedback()).cwnd_bytes, 3000, "slow start up to ssthresh");
    }

    #[test]
    fn repeated_timeouts_leave_the_threshold() {
        let mut reno = in_avoidance();
        reno.on_timeout(&timeout(10_000, 1));
        assert_eq!((reno.allowance().cwnd_bytes, reno.snapshot().ssthresh_bytes), (1000, Some(5000.0)));
        reno.on_timeout(&timeout(1_000, 2));
        assert_eq!((reno.allowance().cwnd_bytes, reno.snapshot().ssthresh_bytes), (1000, Some(5000.0)));
    }

    #[test]
    fn a_timeout_within_a_repair_halves_the_window_again_and_not_what_is_left_under_way() {
        let mut reno = in_avoidance();
        let mut lost = loss(60, 1000);
        lost.feedback.in_flight_before_bytes = 10_000;
        reno.on_feedback(&lost.feedback());
        reno.on_timeout(&timeout(1_000, 1));
        assert_eq!((reno.allowance().cwnd_bytes, reno.snapshot().ssthresh_bytes), (1000, Some(2500.0)));
    }

    #[test]
    fn an_application_limited_flow_does_not_grow_and_idleness_restarts() {
        let mut reno = in_avoidance();
        let mut limited = ack(60, 30_000);
        limited.feedback.app_limited = true;
        assert_eq!(reno.on_feedback(&limited.feedback()).cwnd_bytes, 10_000);
        let mut idle = timeout(0, 0);
        idle.idle = true;
        reno.on_feedback(&ack(61, 10_000).feedback());
        assert_eq!(reno.on_timeout(&idle).cwnd_bytes, 11_000, "min(initial, cwnd)");
        let mut fresh = self::reno();
        fresh.on_feedback(&ack(0, 1000).feedback());
        assert_eq!(fresh.on_timeout(&idle).cwnd_bytes, 4000);
    }

    #[test]
    fn a_mark_counts_as_a_loss_once_per_window() {
        let mut reno = in_avoidance();
        let mut marked = ack(60, 1000);
        marked.feedback.ce_marked = 1;
        marked.feedback.in_flight_before_bytes = 10_000;
        marked.feedback.next_number = 70;
        assert_eq!(reno.on_feedback(&marked.feedback()).cwnd_bytes, 5000);
        let mut again = ack(65, 1000);
        again.feedback.ce_marked = 1;
        assert_eq!(reno.on_feedback(&again.feedback()).cwnd_bytes, 5000);
    }

    #[test]
    fn its_increase_and_its_decrease_can_be_set() {
        let after = |name: &str, value: f64| {
            let params = Params::new()
                .with("init_cwnd", ParamValue::Number(20.0))
                .with(name, ParamValue::Number(value));
            let mut reno = registry::build("reno", &params, &path(1000)).unwrap();
            let mut first = loss(5, 20);
            first.feedback.in_flight_before_bytes = 20_000;
            reno.on_feedback(&first.feedback());
            let cut = reno.snapshot().cwnd_bytes;
            let mut end = ack(20, 1000);
            end.feedback.in_flight_bytes = 19_000;
            reno.on_feedback(&end.feedback());
            reno.on_feedback(&ack(30, 20_000).feedback());
            (cut, reno.snapshot().cwnd_bytes)
        };
        assert_eq!(after("beta", 0.5), (10_000.0, 11_000.0));
        assert_eq!(after("beta", 0.8), (16_000.0, 17_000.0));
        assert_eq!(after("increase", 2.5), (10_000.0, 12_500.0));
    }
}
