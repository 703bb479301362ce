//! HyStart++: leaving slow start before it overshoots.
//!
//! Source: RFC 9406, section 4.2 and 4.3. Round by round the smallest RTT is compared with that of the round before; a rise by
//! [`HyStartConfig::threshold`] enters Conservative Slow Start (growth by a quarter), which ends in congestion avoidance after
//! five rounds, or goes back to slow start where the RTT falls again.
//!
//! *What it leaves out:* the unlimited L of paced senders; slow starts after the first, for which the RFC advises against it.
//! *How it was validated:* the thresholds of `tests/vectors/tcp.json`; unit tests below.

use crate::Feedback;
use crate::params::{ParamError, Settings};
use alloc::borrow::ToOwned;
use alloc::format;
use cede_units::Duration;

/// The constants of RFC 9406, section 4.3, and of Linux's HyStart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HyStartConfig {
    /// The least and the largest rise of the RTT that ends slow start: `MIN_RTT_THRESH` and `MAX_RTT_THRESH`.
    pub rise: (Duration, Duration),
    /// Between them it is the RTT over this: `MIN_RTT_DIVISOR`.
    pub divisor: u64,
    /// RTT samples of a round before it is judged: `N_RTT_SAMPLE`, in Linux `HYSTART_MIN_SAMPLES`.
    pub samples: u32,
    /// What growth is divided by in Conservative Slow Start: `CSS_GROWTH_DIVISOR`.
    pub css_divisor: f64,
    /// How many rounds it lasts, that of the entry counting: `CSS_ROUNDS`.
    pub css_rounds: u32,
    /// Packets by which one acknowledgement raises the window at most: `L`.
    pub limit: f64,
    /// Linux: the window in packets from which on slow start may end (`hystart_low_window`).
    pub low_window: f64,
    /// Linux: acknowledgements no further apart are a train (`hystart_ack_delta_us`).
    pub train_gap: Duration,
}

impl Default for HyStartConfig {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            rise: (ms(4), ms(16)),
            divisor: 8,
            samples: 8,
            css_divisor: 4.0,
            css_rounds: 5,
            limit: 8.0,
            low_window: 16.0,
            train_gap: ms(2),
        }
    }
}

impl HyStartConfig {
    /// As CUBIC's parameters say.
    pub(crate) fn of(settings: &Settings) -> Result<Self, ParamError> {
        let rise = (settings.duration("hystart_rise_min"), settings.duration("hystart_rise_max"));
        if rise.1 < rise.0 {
            return Err(ParamError::Conflict {
                name: "hystart_rise_max".to_owned(),
                given: format!("{}", rise.1),
                allowed: format!("a time from \"hystart_rise_min\" on, which is {}", rise.0),
            });
        }
        Ok(Self {
            rise,
            divisor: settings.count("hystart_divisor") as u64,
            samples: settings.count("hystart_samples") as u32,
            css_divisor: settings.number("css_divisor"),
            css_rounds: settings.count("css_rounds") as u32,
            limit: settings.number("hystart_limit"),
            low_window: settings.number("hystart_low_window"),
            train_gap: settings.duration("hystart_train_gap"),
        })
    }

    /// The rise of a round's smallest RTT that ends slow start, where the round before had `last_round_min`. Linux's HyStart has
    /// the same numbers, above the smallest RTT of all.
    #[must_use]
    pub fn threshold(&self, last_round_min: Duration) -> Duration {
        (last_round_min / self.divisor).max(self.rise.0).min(self.rise.1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    SlowStart,
    Conservative { baseline: Duration, rounds: u32 },
}

/// What an acknowledgement in slow start leads to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Verdict {
    /// The window grows by so many octets.
    Grow(f64),
    /// Slow start is over: ssthresh = cwnd.
    Leave,
}

/// The state of one slow start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HyStart {
    config: HyStartConfig,
    state: State,
    round_end: u64,
    last_round_min: Option<Duration>,
    round_min: Option<Duration>,
    samples: u32,
}

impl HyStart {
    /// Before the first acknowledgement.
    #[must_use]
    pub const fn new(config: HyStartConfig) -> Self {
        let (last_round_min, round_min) = (None, None);
        Self { config, state: State::SlowStart, round_end: 0, last_round_min, round_min, samples: 0 }
    }

    /// True in Conservative Slow Start.
    #[must_use]
    pub const fn is_conservative(&self) -> bool {
        matches!(self.state, State::Conservative { .. })
    }

    /// Takes an acknowledgement of new data.
    pub fn on_ack(&mut self, feedback: &Feedback<'_>, mss: f64) -> Verdict {
        if let Some(rtt) = feedback.rtt {
            self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
            self.samples = self.samples.saturating_add(1);
        }
        self.change_state();
        let growth = (feedback.acked_bytes as f64).min(self.config.limit * mss);
        let growth = if self.is_conservative() { growth / self.config.css_divisor } else { growth };
        if self.end_round(feedback) { Verdict::Leave } else { Verdict::Grow(growth) }
    }

    fn change_state(&mut self) {
        let Some(current) = self.round_min.filter(|_| self.samples >= self.config.samples) else { return };
        match (self.state, self.last_round_min) {
            (State::SlowStart, Some(last)) if current >= last + self.config.threshold(last) => {
                self.state = State::Conservative { baseline: current, rounds: 0 };
            }
            (State::Conservative { baseline, .. }, _) if current < baseline => self.state = State::SlowStart,
            _ => {}
        }
    }

    /// Starts a new round where this acknowledgement ends one; true where it was the last of Conservative Slow Start.
    fn end_round(&mut self, feedback: &Feedback<'_>) -> bool {
        if feedback.acked.last().is_none_or(|packet| packet.number < self.round_end) {
            return false;
        }
        self.round_end = feedback.next_number;
        self.last_round_min = self.round_min.take();
        self.samples = 0;
        let State::Conservative { baseline, rounds } = self.state else { return false };
        self.state = State::Conservative { baseline, rounds: rounds + 1 };
        rounds + 1 >= self.config.css_rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;

    /// One round of ten acknowledgements with this RTT; the growth of the last, none where slow start was left.
    fn round(hystart: &mut HyStart, start: u64, rtt_ms: u64) -> Option<f64> {
        let mut growth = None;
        for number in start..start + 10 {
            let mut one = ack(number, 1000);
            one.feedback.rtt = Some(Duration::from_millis(rtt_ms));
            one.feedback.next_number = start + 19;
            growth = match hystart.on_ack(&one.feedback(), 1000.0) {
                Verdict::Grow(octets) => Some(octets),
                Verdict::Leave => None,
            };
        }
        growth
    }

    #[test]
    fn the_threshold_has_the_vectors_values() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../tests/vectors/tcp.json")).unwrap();
        for (rtt_ms, eta_ms) in vectors["hystartpp_eta_ms"].as_object().unwrap() {
            let found = HyStartConfig::default().threshold(Duration::from_millis(rtt_ms.parse().unwrap()));
            assert_eq!(found.as_millis_f64(), eta_ms.as_f64().unwrap(), "{rtt_ms} ms");
        }
    }

    #[test]
    fn a_rising_rtt_slows_growth_and_five_rounds_of_it_end_it() {
        let mut hystart = HyStart::new(HyStartConfig::default());
        let mut results = alloc::vec::Vec::new();
        for (i, rtt) in [50, 50, 56, 57, 60, 60, 60, 60, 60].into_iter().enumerate() {
            results.push(round(&mut hystart, 10 * i as u64, rtt));
        }
        // 56 ms is below 50 + 6.25; 57 is compared with 56; 60 with 57: never steep enough.
        assert!(results.iter().all(|&growth| growth == Some(1000.0)), "{results:?}");
        let mut hystart = HyStart::new(HyStartConfig::default());
        for (i, rtt) in [50, 50, 57].into_iter().enumerate() {
            round(&mut hystart, 10 * i as u64, rtt);
        }
        assert!(hystart.is_conservative());
        let rounds: alloc::vec::Vec<_> = (3..8).map(|i| round(&mut hystart, 10 * i, 60)).collect();
        assert!(rounds[..3].iter().all(|&growth| growth == Some(250.0)), "{rounds:?}");
        assert!(rounds.contains(&None), "{rounds:?}");
    }

    #[test]
    fn a_falling_rtt_goes_back_to_slow_start() {
        let mut hystart = HyStart::new(HyStartConfig::default());
        for (i, rtt) in [50, 50, 60].into_iter().enumerate() {
            round(&mut hystart, 10 * i as u64, rtt);
        }
        assert!(hystart.is_conservative());
        assert_eq!(round(&mut hystart, 30, 52), Some(1000.0));
        assert!(!hystart.is_conservative());
    }

    #[test]
    fn each_of_its_constants_can_be_set() {
        let usual = HyStartConfig::default();
        let ms = Duration::from_millis;
        // The round after which slow start was left, and the growth of a round of Conservative Slow Start.
        let run = |config: HyStartConfig, last_ms: u64| {
            let mut hystart = HyStart::new(config);
            let growths: alloc::vec::Vec<_> = [50, 50, last_ms, last_ms, last_ms, last_ms, last_ms, last_ms]
                .into_iter()
                .enumerate()
                .map(|(i, rtt)| round(&mut hystart, 10 * i as u64, rtt))
                .collect();
            (growths.iter().position(Option::is_none), growths[3])
        };
        assert_eq!(run(usual, 57), (Some(6), Some(250.0)));
        assert_eq!(run(HyStartConfig { divisor: 4, ..usual }, 57), (None, Some(1000.0)));
        assert_eq!(run(HyStartConfig { rise: (ms(8), ms(16)), ..usual }, 57).0, None);
        assert_eq!(run(HyStartConfig { rise: (ms(4), ms(5)), ..usual }, 55).0, Some(6));
        assert_eq!(run(HyStartConfig { samples: 11, ..usual }, 57).0, None, "no round has so many");
        assert_eq!(run(HyStartConfig { css_divisor: 2.0, ..usual }, 57).1, Some(500.0));
        assert_eq!(run(HyStartConfig { css_rounds: 3, ..usual }, 57).0, Some(4));
        assert_eq!(run(HyStartConfig { limit: 0.5, ..usual }, 50), (None, Some(500.0)));
    }
}
