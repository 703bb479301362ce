//! LEDBAT++ as the fork of libutp runs it: integers in octets and microseconds, its quirks included.
//!
//! Source: the behaviour of meng-tong/libutp at 788418a (2020), which implements draft-irtf-iccrg-ledbat-plus-plus-01 on
//! libutp, written anew from its description. Against libutp, five changes: a gain that follows the smallest RTT, a decrease in
//! proportion to the window, a slow start that ends at three quarters of the target, a smallest window of two packets, and periodic
//! slowdowns. Its own rule: a loss or a timeout cancels a slowdown that is under way, and puts off one that is due.
//!
//! Where it differs from the draft (`plus_plus.rs`): no gain in slow start; one-way delays; the smallest RTT of the whole
//! connection, which is also what waits are measured in; decreases with each acknowledgement; the spacing of slowdowns
//! counts from the end of the freeze.
//!
//! A loss or a timeout that was none gives back the slowdown that it cancelled or put off as well, unless one has begun since: that leads
//! back to the window that was taken.
//!
//! *What it leaves out:* what `delay_hist.rs` and `utp_window.rs` leave out; that a smoothed RTT below one millisecond
//! makes it forget its smallest RTT.
//! *How it was validated:* unit tests below, which compute from the rules; the conformance suite; `tests/ledbat_plus_plus.rs`;
//! beside CUBIC on the fork's own test bed (`docs/validation.md`).

use super::delay_window::{SLOW_START_EXIT, target_param};
use super::utp_window::{Held, LOSS_INTERVAL, UtpWindow, min_window_param};
use crate::entry::Entry;
use crate::params::{ParamDoc, ParamError, Params, Settings, count, number};
use crate::undo::Undo;
use crate::{Allowance, Controller, Feedback, Path, Phase, Snapshot, Timeout};
use alloc::boxed::Box;
use cede_units::{Duration, Instant};

/// The packet size of the rules, whatever the packets' real size.
const MSS_BYTES: f64 = 1500.0;
/// The window after a timeout.
const TIMEOUT_PACKETS: i64 = 2;

const PARAMS: &[ParamDoc] = &[
    target_param("60 ms"),
    super::plus_plus::MAX_GAIN_DIVISOR,
    super::plus_plus::SLOWDOWNS,
    number(
        "slowdown_spacing",
        "9",
        (0.0, 1000.0),
        "Time to the next slowdown, over that from the end of the last freeze to the end of its recovery.",
    ),
    number(
        "freeze",
        "2",
        (0.1, 100.0),
        "Smallest RTTs for which a slowdown keeps the window at its smallest, and for which one that was put off waits.",
    ),
    SLOW_START_EXIT,
    min_window_param("3000 B"),
    LOSS_INTERVAL,
    count("init_cwnd", "2", (1, 1000), "The initial window in packets."),
];

pub(crate) const ENTRY: Entry = Entry {
    name: "ledbat++-libutp",
    summary: "LEDBAT++ as the fork of libutp has it: whole octets, one-way delay, slow start without gain.",
    formula: "G = 1/min(16, ceil(2 TARGET/min RTT)); f = min(a,W)/max(a,W); q <= TARGET: W += 1500 G f; above: W += max(1500 G f \
              - W f (q/TARGET - 1), -W f/2); slow start: W += acked; slowdown: 3000 B for 2 min RTT, back by slow start; loss: \
              W/2; timeout: 2 packets",
    source: "meng-tong/libutp 788418a, by behaviour; draft-irtf-iccrg-ledbat-plus-plus-01",
    params: PARAMS,
    responsive: true,
    experimental: false,
    build,
};

/// Where the slowdowns stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slowdown {
    /// Before the end of the initial slow start.
    NotYet,
    /// Between two.
    Due(Instant),
    /// The window stands at its smallest.
    Frozen { until: Instant },
    /// In slow start back to where it came from.
    Recovering { since: Instant },
}

/// See the file's head.
#[derive(Clone, Debug)]
pub struct PlusPlusLibutp {
    target_us: i64,
    max_divisor: u64,
    spacing: f64,
    slowdowns: bool,
    freeze: f64,
    slow_start_exit: f64,
    state: UtpWindow,
    slowdown: Slowdown,
    rtt_min: Option<Duration>,
    undo: Undo<Before>,
}

/// What there was before the last loss or timeout.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: Held,
    slowdown: Slowdown,
    /// Where the reduction left the slowdowns.
    left: Slowdown,
}

impl Before {
    /// The window that there was, or that slow start led back to.
    const fn whole(&self) -> i64 {
        match self.slowdown {
            Slowdown::Frozen { .. } | Slowdown::Recovering { .. } => self.window.ssthresh,
            Slowdown::NotYet | Slowdown::Due(_) => self.window.window,
        }
    }
}

fn build(params: &Params, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
    let settings = Settings::resolve(params, PARAMS)?;
    Ok(Box::new(PlusPlusLibutp {
        target_us: settings.duration("target").as_micros() as i64,
        max_divisor: settings.count("max_gain_divisor") as u64,
        spacing: settings.number("slowdown_spacing"),
        slowdowns: settings.switch("slowdowns"),
        freeze: settings.number("freeze"),
        slow_start_exit: settings.number("slow_start_exit"),
        state: UtpWindow::of(&settings, path, settings.count("init_cwnd") as i64, false),
        slowdown: Slowdown::NotYet,
        rtt_min: None,
        undo: Undo::new(),
    }))
}

/// An octet at least, in the direction of the gain.
fn at_least_one(gain: f64) -> f64 {
    if gain > 0.0 {
        gain.max(1.0)
    } else if gain < 0.0 {
        gain.min(-1.0)
    } else {
        0.0
    }
}

impl PlusPlusLibutp {
    fn divisor(&self) -> u64 {
        let rtt_us = self.rtt_min.map_or(0, Duration::as_micros);
        super::plus_plus::gain_divisor(self.target_us as u64, rtt_us, self.max_divisor)
    }

    fn wait(&self) -> Duration {
        self.rtt_min.unwrap_or(Duration::ZERO).mul_f64(self.freeze)
    }

    /// In a freeze nothing else happens; the acknowledgement that ends it changes nothing either.
    fn is_frozen(&mut self, now: Instant) -> bool {
        let Slowdown::Frozen { until } = self.slowdown else { return false };
        if now >= until {
            self.state.slow_start = true;
            self.slowdown = Slowdown::Recovering { since: now };
        }
        true
    }

    /// Begins a slowdown that is due, or puts it off where the window is at its smallest.
    fn slow_down(&mut self, now: Instant) {
        if !matches!(self.slowdown, Slowdown::Due(at) if now > at) {
            return;
        }
        if self.state.window == self.state.floor || !self.slowdowns {
            self.put_off(now);
            return;
        }
        self.state.ssthresh = self.state.window;
        self.state.set(self.state.floor);
        self.slowdown = Slowdown::Frozen { until: now + self.wait() };
    }

    fn steer(&mut self, now: Instant, acked: i64, delay_us: i64) {
        if self.is_frozen(now) {
            return;
        }
        let gain = self.state.validated(now, at_least_one(self.gain(acked, delay_us)));
        let steered = (self.state.window as f64 + gain) as i64;
        let next = if self.state.slow_start { self.started(now, acked, delay_us, steered) } else { steered };
        self.state.set(next);
        self.slow_down(now);
    }

    /// What an acknowledgement of `acked` octets changes outside of slow start.
    fn gain(&self, acked: i64, delay_us: i64) -> f64 {
        let factor = self.state.factor(acked);
        let up = MSS_BYTES * factor / self.divisor() as f64;
        let offset = (self.target_us - delay_us) as f64 / self.target_us as f64;
        if offset >= 0.0 {
            return up;
        }
        let window = self.state.window as f64;
        (up + window * factor * offset).max(-0.5 * window * factor)
    }

    /// Slow start. The window passes ssthresh: else slowdowns from a window of a packet above the smallest would follow
    /// each other without end.
    fn started(&mut self, now: Instant, acked: i64, delay_us: i64, steered: i64) -> i64 {
        let grown = self.state.window + acked;
        if grown > self.state.ssthresh {
            self.state.slow_start = false;
            if let Slowdown::Recovering { since } = self.slowdown {
                self.slowdown = Slowdown::Due(now + now.since(since).mul_f64(self.spacing));
            }
            return grown;
        }
        if self.slowdown == Slowdown::NotYet && delay_us as f64 > self.slow_start_exit * self.target_us as f64
        {
            self.state.slow_start = false;
            self.state.ssthresh = grown;
            self.put_off(now);
            return grown;
        }
        grown.max(steered)
    }

    /// No slowdown for now.
    fn put_off(&mut self, now: Instant) {
        self.slowdown = Slowdown::Due(now + self.wait());
    }

    const fn before(&self, window: Held) -> Before {
        Before { window, slowdown: self.slowdown, left: self.slowdown }
    }

    /// As [`PlusPlusLibutp::put_off`], by a reduction that may turn out to have been in vain.
    fn put_off_by_loss(&mut self, now: Instant) {
        self.put_off(now);
        if let Some(before) = self.undo.pending() {
            before.left = self.slowdown;
        }
    }

    fn give_back(&mut self, was: &Before) {
        let state = &mut self.state;
        if self.slowdown == was.left {
            self.slowdown = was.slowdown;
            return state.give_back(&was.window);
        }
        state.end_event(&was.window);
        match self.slowdown {
            Slowdown::Frozen { .. } | Slowdown::Recovering { .. } => {
                state.ssthresh = state.ssthresh.max(was.whole());
            }
            Slowdown::NotYet | Slowdown::Due(_) => state.set(state.window.max(was.whole())),
        }
    }
}

impl Controller for PlusPlusLibutp {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        let before = self.state.window;
        if let Some(rtt) = feedback.rtt_min {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        if let Some((acked, delay_us)) = self.state.hear(feedback) {
            self.steer(feedback.now, acked, delay_us);
        }
        if let Some(decay) = self.state.decay(feedback, before) {
            if decay.is_new {
                self.undo.note_event(feedback, self.before(decay.was));
            }
            self.put_off_by_loss(feedback.now);
        }
        self.allowance()
    }

    fn on_undo(&mut self) -> Allowance {
        if let Some(before) = self.undo.take() {
            self.give_back(&before);
        }
        self.allowance()
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        let before = self.before(self.state.present());
        self.undo.note_timeout(timeout, self.state.is_repairing(), before);
        self.state.time_out(timeout, TIMEOUT_PACKETS);
        if timeout.idle {
            self.put_off(timeout.now);
        } else {
            self.put_off_by_loss(timeout.now);
        }
        self.allowance()
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.state.packet = i64::from(mss_bytes.max(1));
        self.allowance()
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.state.window as u64)
    }

    fn snapshot(&self) -> Snapshot {
        let snapshot = self.state.snapshot();
        match self.slowdown {
            Slowdown::Frozen { .. } => Snapshot { phase: Phase::Named("slowdown"), ..snapshot },
            _ => snapshot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::testing::{Owned, ack, loss, path, timeout};

    const RTT_MS: u64 = 40;

    fn fork(window: i64) -> PlusPlusLibutp {
        let mut state = UtpWindow::new(&path(1500), 3000, 2, false);
        (state.window, state.slow_start) = (window, false);
        PlusPlusLibutp {
            target_us: 60_000,
            max_divisor: 16,
            spacing: 9.0,
            slowdowns: true,
            freeze: 2.0,
            slow_start_exit: 0.75,
            state,
            slowdown: Slowdown::Due(Instant::from_secs(100)),
            rtt_min: Some(Duration::from_millis(RTT_MS)),
            undo: Undo::new(),
        }
    }

    /// So many octets acknowledged with a queue of `queueing_ms`, three equal samples for the filter.
    fn at(ms: u64, bytes: u64, queueing_ms: i64) -> Owned {
        let mut one = ack(0, bytes);
        one.feedback.now = Instant::from_millis(ms);
        one.feedback.rtt_min = Some(Duration::from_millis(RTT_MS + queueing_ms as u64));
        one.feedback.one_way_delay_ns = Some((queueing_ms - 900) * 1_000_000);
        one
    }

    #[test]
    fn the_steps_follow_from_the_rules() {
        // W = 30000, a = 1500: f = 1/20, G = 1/3.
        let after = |delay_us| {
            let mut one = fork(30_000);
            one.steer(Instant::from_millis(500), 1500, delay_us);
            one.state.window
        };
        assert_eq!([after(0), after(60_000)], [30_025, 30_025], "500 B per RTT up to the target");
        assert_eq!(after(66_000), 29_875, "25 - 30000 / 20 / 10");
        assert_eq!(after(600_000), 29_250, "never more than half of the window per RTT");
        let mut small = fork(1_500_000_000);
        small.steer(Instant::from_millis(500), 1, 0);
        assert_eq!(small.state.window, 1_500_000_001.min(small.state.max), "an octet at least");
    }

    #[test]
    fn slow_start_doubles_and_ends_at_three_quarters_of_the_target() {
        let mut fork = registry::build("ledbat++-libutp", &crate::Params::new(), &path(1500)).unwrap();
        assert_eq!(fork.allowance().cwnd_bytes, 3000);
        for (ms, queueing_ms, window) in [(0, 0, 6000), (1, 45, 9000), (2, 45, 12_000), (3, 45, 15_000)] {
            assert_eq!(fork.on_feedback(&at(ms, 3000, queueing_ms).feedback()).cwnd_bytes, window);
        }
        for ms in [4, 5, 6] {
            fork.on_feedback(&at(ms, 3000, 46).feedback());
        }
        assert_eq!(fork.snapshot().phase, Phase::CongestionAvoidance);
        assert_eq!(fork.snapshot().ssthresh_bytes, Some(24_000.0), "above 45 ms once all three samples are");
    }

    #[test]
    fn a_slowdown_and_the_next_one_nine_recoveries_after_it() {
        let mut one = fork(12_000);
        one.slowdown = Slowdown::Due(Instant::from_millis(1000));
        let step = |one: &mut PlusPlusLibutp, ms| one.on_feedback(&at(ms, 3000, 0).feedback()).cwnd_bytes;
        assert_eq!(step(&mut one, 1001), 3000, "ssthresh is 12125, after this packet's growth");
        assert_eq!((step(&mut one, 1080), one.snapshot().phase), (3000, Phase::Named("slowdown")));
        assert_eq!((step(&mut one, 1090), one.snapshot().phase), (3000, Phase::SlowStart), "only ends it");
        assert_eq!([step(&mut one, 1130), step(&mut one, 1170), step(&mut one, 1180)], [6000, 9000, 12_000]);
        assert_eq!(step(&mut one, 1200), 15_000, "past ssthresh");
        assert_eq!(one.slowdown, Slowdown::Due(Instant::from_millis(1200 + 9 * 110)));
    }

    #[test]
    fn at_the_smallest_window_a_slowdown_is_put_off() {
        let mut one = fork(3000);
        one.slowdown = Slowdown::Due(Instant::from_millis(1000));
        // Three samples of a full queue, of which the first two pass for an empty one.
        for queueing_ms in [0, 600, 600, 600] {
            one.on_feedback(&at(900, 1500, queueing_ms).feedback());
        }
        one.on_feedback(&at(1001, 1500, 600).feedback());
        assert_eq!(one.slowdown, Slowdown::Due(Instant::from_millis(1081)));
    }

    #[test]
    fn slowdowns_from_a_small_window_do_not_hold_it_there() {
        let mut one = fork(3500);
        one.slowdown = Slowdown::Due(Instant::from_millis(1000));
        for round in 0..400 {
            one.on_feedback(&at(1001 + 40 * round, 3000.min(one.allowance().cwnd_bytes), 0).feedback());
        }
        assert!(one.state.ssthresh > 20_000, "{}", one.state.ssthresh);
    }

    #[test]
    fn a_loss_cancels_a_slowdown_and_so_does_a_timeout() {
        let frozen = || {
            let mut one = fork(12_000);
            one.slowdown = Slowdown::Due(Instant::from_millis(900));
            one.on_feedback(&at(950, 3000, 0).feedback());
            assert!(matches!(one.slowdown, Slowdown::Frozen { .. }));
            one
        };
        let mut lost = frozen();
        lost.on_feedback(&loss(5, 9).feedback());
        assert_eq!(lost.slowdown, Slowdown::Due(Instant::from_millis(1080)), "the loss comes at 1000 ms");
        assert_eq!((lost.state.window, lost.state.slow_start), (3000, false));
        let mut timed_out = frozen();
        timed_out.on_timeout(&timeout(0, 1));
        assert_eq!(timed_out.slowdown, Slowdown::Due(Instant::from_millis(2080)));
        assert_eq!((timed_out.state.window, timed_out.state.slow_start), (3000, true));
    }

    #[test]
    fn what_a_loss_or_a_timeout_cancelled_comes_back_where_it_was_none() {
        let due = Slowdown::Due(Instant::from_millis(900));
        let mut one = PlusPlusLibutp { slowdown: due, ..fork(12_000) };
        one.on_feedback(&at(950, 3000, 0).feedback());
        let (frozen, whole) = (one.slowdown, one.state.ssthresh);
        one.on_feedback(&loss(5, 9).feedback());
        one.on_undo();
        assert_eq!((one.state.window, one.state.ssthresh, one.slowdown), (3000, whole, frozen));
        let mut one = PlusPlusLibutp { slowdown: due, ..fork(12_000) };
        one.on_timeout(&timeout(0, 1));
        one.on_undo();
        assert_eq!((one.state.window, one.state.slow_start, one.slowdown), (12_000, false, due));
    }

    #[test]
    fn a_slowdown_that_has_begun_since_leads_back_to_the_window_that_was_taken() {
        let mut one = PlusPlusLibutp { slowdown: Slowdown::Due(Instant::from_secs(9)), ..fork(12_000) };
        // At 1000 ms, so that a slowdown is due at 1080.
        one.on_feedback(&loss(5, 9).feedback());
        one.on_feedback(&at(1081, 3000, 0).feedback());
        assert_eq!((one.state.window, one.state.ssthresh), (3000, 6250));
        one.on_undo();
        assert_eq!((one.state.window, one.state.ssthresh), (3000, 12_000));
        assert!(matches!(one.slowdown, Slowdown::Frozen { .. }));
        // One in the freeze takes that again, and gives it back once all is over.
        one.on_feedback(&Owned::feedback(&{
            let mut lost = loss(15, 19);
            lost.feedback.now = Instant::from_millis(1150);
            lost
        }));
        assert_eq!(one.slowdown, Slowdown::Due(Instant::from_millis(1230)));
        one.slowdown = Slowdown::Due(Instant::from_secs(9));
        one.on_undo();
        assert_eq!(one.state.window, 12_000);
    }

    #[test]
    fn a_loss_puts_off_the_slowdown_that_is_due() {
        let mut one = fork(30_000);
        one.slowdown = Slowdown::Due(Instant::from_millis(1010));
        one.on_feedback(&loss(5, 9).feedback());
        assert_eq!((one.state.window, one.slowdown), (15_000, Slowdown::Due(Instant::from_millis(1080))));
    }
}
