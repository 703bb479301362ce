//! What is run, and what came of it.

use super::setting::Setting;
use crate::swarms::{Cells, Job, Measured, jobs};
use cede_bt::Profile;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// A smaller file, fewer peers, one capacity, one repetition.
    pub quick: bool,
}

/// The swarms of the paper's open questions (A20) and of its control (A19), by their keys.
pub(super) const ONE_WAY: &str = "50 % of 13, no preference, one way";
pub(super) const PER_HOST: &str = "31, two peers behind each uplink";
pub(super) const TARGETS: &str = "10, targets of 25 and 100 ms";
pub(super) const CAPACITIES: &str = "31, half the uplinks of twice the capacity";
pub(super) const CHURN: &str = "31, churn";
/// The questions in order.
pub(super) const QUESTIONS: [&str; 4] = [PER_HOST, TARGETS, CAPACITIES, CHURN];

impl Request {
    /// Repetitions.
    #[must_use]
    pub const fn repetitions(self) -> u32 {
        if self.quick { 1 } else { 3 }
    }

    /// Capacities in Mbit/s.
    #[must_use]
    pub const fn capacities_mbps(self) -> &'static [u64] {
        if self.quick { &[1] } else { &[1, 2, 5] }
    }

    const fn leechers(self) -> u32 {
        if self.quick { 39 } else { 75 }
    }

    const fn content_bytes(self) -> u64 {
        if self.quick { 30_000_000 } else { 100_000_000 }
    }

    /// Everything that is to be run, each with its repetitions.
    #[must_use]
    pub fn settings(self) -> Vec<(Setting, u32)> {
        let mut all: Vec<(Setting, u32)> =
            [25, 100].map(|target| (self.single_flow(target), self.repetitions().min(2))).into();
        for size_mb in if self.quick { vec![10] } else { vec![10, 50, 100] } {
            all.extend([(13, 14), (5, 31)].map(|(a, b)| (self.pair(a, b, size_mb), 1)));
        }
        for &capacity in self.capacities_mbps() {
            all.extend(self.at_capacity(capacity));
        }
        all.extend(self.questions().into_iter().map(|setting| (setting, self.repetitions())));
        all
    }

    /// The paper's swarms at one capacity, three homogeneous ones and three mixes, each with its repetitions.
    pub(super) fn at_capacity(self, capacity_mbps: u64) -> Vec<(Setting, u32)> {
        let homogeneous = [31, 10, 5].map(|disposition| self.homogeneous(disposition, capacity_mbps));
        let mixed = [25, 50, 75].map(|percent| self.mixed(percent, capacity_mbps));
        homogeneous.into_iter().chain(mixed).map(|setting| (setting, self.repetitions())).collect()
    }

    fn homogeneous(self, disposition: u8, capacity_mbps: u64) -> Setting {
        let small = if self.quick { 256 << 10 } else { 1 << 20 };
        let whole = Setting::homogeneous(disposition, capacity_mbps, self.leechers(), self.content_bytes());
        Setting { piece_bytes: small, ..whole }
    }

    fn mixed(self, percent: u32, capacity_mbps: u64) -> Setting {
        let small = if self.quick { 256 << 10 } else { 1 << 20 };
        let whole = Setting::mixed(percent, capacity_mbps, self.leechers(), self.content_bytes());
        Setting { piece_bytes: small, ..whole }
    }

    /// Figure 1: one seed, one leecher, 5 Mbit/s.
    fn single_flow(self, target_ms: u32) -> Setting {
        Setting {
            key: single_flow_key(target_ms),
            target_ms: vec![target_ms],
            piece_bytes: 256 << 10,
            profile: Profile::LIBTORRENT,
            from_s: 5,
            ..Setting::homogeneous(10, 5, 1, 25_000_000)
        }
    }

    /// Table 1: a seed at 31, and two leechers.
    fn pair(self, a: u8, b: u8, size_mb: u64) -> Setting {
        let piece_bytes = (256 << 10) * if size_mb > 50 { 4 } else { 1 + u32::from(size_mb > 10) };
        Setting {
            key: pair_key(a, b, size_mb),
            mix: vec![(50, a), (50, b)],
            piece_bytes,
            ..Setting::homogeneous(31, 5, 2, size_mb * 1_000_000)
        }
    }

    fn questions(self) -> Vec<Setting> {
        let keyed = |key: &str, setting: Setting| Setting { key: key.to_string(), ..setting };
        let base = self.homogeneous(31, 1);
        let halves = |disposition| vec![(50, disposition), (50, disposition)];
        vec![
            keyed(ONE_WAY, Setting { one_way: true, ..self.mixed(50, 1) }),
            keyed(PER_HOST, Setting { per_host: 2, ..base.clone() }),
            keyed(TARGETS, Setting { mix: halves(10), target_ms: vec![25, 100], ..base.clone() }),
            keyed(CAPACITIES, Setting { mix: halves(31), other_capacity_mbps: Some(2), ..base.clone() }),
            keyed(CHURN, Setting { churn_s: Some(300), ..base }),
        ]
    }

    /// The swarms, in the order of the settings and their repetitions.
    #[must_use]
    pub fn jobs(self) -> Vec<Job> {
        jobs(&self.settings(), Setting::swarm)
    }
}

pub(super) fn single_flow_key(target_ms: u32) -> String {
    format!("one flow, target {target_ms} ms")
}

pub(super) fn pair_key(a: u8, b: u8, size_mb: u64) -> String {
    format!("{a} and {b}, {size_mb} MB")
}

/// What came of everything.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was asked for.
    pub request: Request,
    /// The repetitions of each setting.
    pub cells: Cells<Setting>,
}

impl Results {
    /// Sorts what was measured, in the order of the jobs.
    #[must_use]
    pub fn sorted(request: Request, measured: Vec<Option<Measured>>) -> Self {
        let cells = Cells::sorted(request.settings(), measured);
        Self { request, cells }
    }

    /// The repetitions of a setting.
    #[must_use]
    pub fn of(&self, key: &str) -> &[Measured] {
        self.cells.of(key)
    }

    /// A homogeneous swarm.
    pub(super) fn homogeneous(&self, disposition: u8, capacity_mbps: u64) -> &[Measured] {
        self.of(&format!("{disposition} at {capacity_mbps} Mbit/s"))
    }

    /// A mix of 13 and 14.
    pub(super) fn mixed(&self, tcp_percent: u32, capacity_mbps: u64) -> &[Measured] {
        self.of(&format!("{tcp_percent} % of 13 at {capacity_mbps} Mbit/s"))
    }

    /// The paper's swarms: all but single flows, pairs and questions.
    pub(super) fn swarms(&self) -> impl Iterator<Item = (&Setting, &[Measured])> {
        let paper = |setting: &Setting| setting.key.contains(" at ");
        self.cells.iter().filter(move |(setting, _)| paper(setting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarms::{assert_in_place, numbered};

    #[test]
    fn every_run_finds_its_place() {
        for quick in [true, false] {
            let request = Request { quick };
            let jobs = request.jobs();
            let results = Results::sorted(request, numbered(&jobs));
            assert_in_place(&results.cells, &jobs);
            assert!(QUESTIONS.iter().all(|key| !results.of(key).is_empty()));
            assert!(!results.of(ONE_WAY).is_empty() && !results.mixed(25, 1).is_empty());
        }
    }
}
