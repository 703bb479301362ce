//! One-way delays as Linux's TCP-LP reckons them: steps 1 to 4 of `mod.rs`, in unsigned numbers that wrap.

use crate::params::Settings;

/// Hertz of our own clock, and the resolution in which delays are reckoned.
const OUR_HZ: u64 = 1000;
/// Before the first sample the smallest delay is this.
const NO_MIN: u64 = 0xffff_ffff;
/// Timestamps have so many bits on the wire, whatever the host's numbers have.
pub(super) const STAMP_MASK: u64 = 0xffff_ffff;

/// Where the delays stand, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owd {
    /// What an unsigned number can hold: a delay, and everything else.
    delay_mask: u64,
    mask: u64,
    known_rate: bool,
    percent: u64,
    inclusive: bool,
    reset_extremes: bool,
    rate_hz: u64,
    /// The stamps of the last acknowledgement, ours and the peer's.
    last_stamps: Option<(u64, u64)>,
    /// Eight times the smoothed delay; 0: none.
    smoothed8: u64,
    min: u64,
    max: u64,
    reserve: u64,
}

impl Owd {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            delay_mask: if settings.word("bits") == "64" { u64::MAX } else { STAMP_MASK },
            mask: if settings.word("bits") == "32" { STAMP_MASK } else { u64::MAX },
            known_rate: settings.word("clock_rate") == "known",
            percent: settings.count("percent") as u64,
            inclusive: settings.word("boundary") == "inclusive",
            reset_extremes: settings.switch("reset_extremes"),
            rate_hz: 0,
            last_stamps: None,
            smoothed8: 0,
            min: NO_MIN,
            max: 0,
            reserve: 0,
        }
    }

    fn smoothed(&self) -> u64 {
        self.smoothed8 >> 3
    }

    /// How far the smoothed delay is above the smallest, in ticks; none where nothing is smoothed yet.
    pub(super) fn above_min(&self) -> Option<u64> {
        (self.smoothed8 > 0).then(|| self.smoothed().saturating_sub(self.min))
    }

    fn minus(&self, a: u64, b: u64) -> u64 {
        a.wrapping_sub(b) & self.mask
    }

    fn times(&self, a: u64, b: u64) -> u64 {
        a.wrapping_mul(b) & self.mask
    }

    /// Step 1. The average is kept in whole Hertz, which lets it fall by steps of one and rise only by errors of 64.
    pub(super) fn estimate_rate(&mut self, ours: u64, theirs: u64) {
        if self.known_rate {
            self.rate_hz = OUR_HZ;
            return;
        }
        let Some((last_ours, last_theirs)) = self.last_stamps.replace((ours, theirs)) else { return };
        if last_ours == ours || last_theirs == theirs {
            return;
        }
        let theirs_passed = self.times(OUR_HZ, self.minus(theirs, last_theirs));
        let seen = (theirs_passed / self.minus(ours, last_ours).max(1)) as i64;
        let known = self.rate_hz as i64;
        let next =
            if known > 0 { known.wrapping_mul(64).wrapping_add(seen.wrapping_sub(known)) >> 6 } else { seen };
        self.rate_hz = next as u64 & self.mask;
    }

    /// Step 2; none where it is 0 or the rate is not known.
    pub(super) fn delay(&self, ours: u64, theirs: u64) -> Option<u64> {
        if self.rate_hz == 0 {
            return None;
        }
        let difference = theirs.wrapping_mul(OUR_HZ / self.rate_hz).wrapping_sub(ours) & self.delay_mask;
        Some((difference as i64).unsigned_abs()).filter(|&delay| delay > 0)
    }

    /// Step 3 and the smoothing.
    pub(super) fn add(&mut self, delay: u64) {
        self.min = self.min.min(delay);
        if delay > self.max {
            if delay > self.reserve {
                self.max = if self.reserve == 0 { delay } else { self.reserve };
                self.reserve = delay;
            } else {
                self.max = delay;
            }
        }
        self.smoothed8 = if self.smoothed8 == 0 {
            self.times(delay, 8)
        } else {
            self.smoothed8.wrapping_add(delay.wrapping_sub(self.smoothed())) & self.mask
        };
    }

    fn threshold(&self) -> u64 {
        let part = self.times(self.percent, self.minus(self.max, self.min)) / 100;
        self.min.wrapping_add(part) & self.mask
    }

    /// Step 4: early congestion?
    pub(super) fn is_early(&self) -> bool {
        let (smoothed, threshold) = (self.smoothed(), self.threshold());
        smoothed > threshold || (smoothed == threshold && !self.inclusive)
    }

    /// What follows from early congestion for the delays.
    pub(super) fn reset(&mut self) {
        if self.reset_extremes {
            self.min = self.smoothed();
            self.max = self.smoothed8 >> 2;
            self.reserve = self.max;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::params::PARAMS;
    use super::*;
    use crate::{ParamValue, Params};

    fn owd(params: &Params) -> Owd {
        Owd { rate_hz: OUR_HZ, ..Owd::of(&Settings::resolve(params, PARAMS).unwrap()) }
    }

    /// The rows of the vectors: sample, smoothed, min, max, reserve, threshold, early, and min, max, reserve after it.
    fn check_vectors(set: &str, case: &str, params: &Params, early: &[usize]) {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/vectors/tcp_lp.json")).unwrap();
        let mut owd = owd(params);
        let mut found = alloc::vec::Vec::new();
        for (k, row) in vectors[set][case].as_array().unwrap().iter().enumerate() {
            owd.add(row[0].as_u64().unwrap());
            let before = [owd.smoothed(), owd.min, owd.max, owd.reserve, owd.threshold()];
            if owd.is_early() {
                owd.reset();
                found.push(k + 1);
            }
            let after = [owd.min, owd.max, owd.reserve];
            assert_eq!(
                serde_json::json!(before).as_array().unwrap()[..],
                row.as_array().unwrap()[1..6],
                "{row}"
            );
            assert_eq!(
                serde_json::json!(after).as_array().unwrap()[..],
                row.as_array().unwrap()[7..10],
                "{row}"
            );
            assert_eq!(found.last() == Some(&(k + 1)), row[6].as_bool().unwrap(), "{row}");
        }
        assert_eq!(found, early, "{set} {case}");
    }

    const LINUX: &str = "linux[x,sowd>>3,min,max,rsv,thr,ECI,min_after,max_after,rsv_after]";

    #[test]
    fn check_2_synchronised_clocks() {
        check_vectors(LINUX, "synced", &Params::new(), &[1, 9, 13, 17, 18]);
        let inclusive = Params::new().with("boundary", ParamValue::Word("inclusive".into()));
        check_vectors("ns3(<=)", "synced", &inclusive, &[6, 12, 17]);
    }

    #[test]
    fn check_3_a_clock_100_ms_ahead() {
        check_vectors(LINUX, "offset100", &Params::new(), &[1, 7, 9]);
        let mut far = owd(&Params::new());
        far.add(125);
        far.reset();
        assert_eq!((far.min, far.max, far.threshold()), (125, 250, 143), "18 ms above, not 4");
    }

    #[test]
    fn a_rate_above_1000_leaves_only_our_stamp() {
        let delay = |bits: &str| {
            let mut owd = owd(&Params::new().with("bits", ParamValue::Word(bits.into())));
            owd.rate_hz = 1001;
            owd.delay(7000, 7030)
        };
        assert_eq!((delay("64"), delay("32")), (Some(7000), Some((1 << 32) - 7000)));
        assert_eq!(owd(&Params::new()).delay(7000, 7030), Some(30));
    }

    #[test]
    fn with_32_bits_two_such_delays_blind_the_flow() {
        let mut owd = owd(&Params::new().with("bits", ParamValue::Word("32".into())));
        owd.add(25);
        owd.reset();
        // The largest is forgotten, the second largest is not.
        owd.add((1 << 32) - 7000);
        owd.add((1 << 32) - 7001);
        for _ in 0..400 {
            owd.add(145);
        }
        assert!(owd.threshold() > 1_000_000 && !owd.is_early(), "{owd:?}");
    }

    #[test]
    fn the_rate_falls_one_by_one_and_rises_only_by_large_errors() {
        let mut owd = Owd { rate_hz: 0, ..owd(&Params::new()) };
        owd.estimate_rate(0, 0);
        owd.estimate_rate(1, 2);
        assert_eq!(owd.rate_hz, 2000, "the first is taken as it is");
        let (mut ours, mut theirs, mut steps) = (1, 2, 0);
        while owd.rate_hz > 1000 {
            (ours, theirs, steps) = (ours + 10, theirs + 10, steps + 1);
            owd.estimate_rate(ours, theirs);
        }
        assert!((100..300).contains(&steps), "{steps} acknowledgements of garbage");
        owd.estimate_rate(ours + 1000, theirs + 1063);
        assert_eq!(owd.rate_hz, 1000);
        owd.estimate_rate(ours + 2000, theirs + 2127);
        assert_eq!(owd.rate_hz, 1001);
    }

    /// Where the rate settles for packets `gap_us` apart whose stamps lie `shift_us` apart on the grid of 1.2 ms.
    fn settled(gap_us: u64, shift_us: u64) -> (u64, u64) {
        let mut owd = Owd { rate_hz: OUR_HZ, ..owd(&Params::new()) };
        let mut range = (u64::MAX, 0);
        for k in 0..4000 {
            let tick = |us: u64| (us + 500) / 1000;
            owd.estimate_rate(tick(k * gap_us + 130 + shift_us), tick(k * gap_us + 130));
            if k > 1000 {
                range = (range.0.min(owd.rate_hz), range.1.max(owd.rate_hz));
            }
        }
        range
    }

    #[test]
    fn the_rate_of_packets_next_to_each_other_is_wrong_and_of_those_far_apart_it_is_not() {
        for shift in 1..5 {
            let (low, high) = settled(1200, shift * 1200);
            assert!(low >= 1053 && high <= 1076, "neighbours: {low} to {high}");
            let (low, high) = settled(2400, shift * 1200);
            assert!(low >= 994 && high <= 1051, "one between: {low} to {high}");
            assert!(settled(4800, shift * 1200).1 < 1000, "three between");
        }
    }
}
