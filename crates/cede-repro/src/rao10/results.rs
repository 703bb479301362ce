//! What is run, and what came of it.

use super::published::{Case, SYSTEMS};
use super::setting::{MACHINES, Setting};
use crate::swarms::{Cells, Job, Measured, jobs};
use cede_lab::swarm::{Device, SwarmRecords};
use cede_units::Duration;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// A smaller file, fewer leechers, fewer round-trip times, one iteration.
    pub quick: bool,
}

/// Sets of autonomous systems of Figures 8 and 9, by their numbers from 1.
const SETS: [[usize; 3]; 3] = [[1, 2, 3], [1, 3, 4], [1, 3, 5]];
/// Figure 5's round-trip times in ms; the paper names 120, 200, 400, 800 and 1000.
pub(super) const RTTS_MS: [u64; 8] = [0, 50, 120, 200, 400, 600, 800, 1000];
/// Upload limits in kB/s.
pub(super) const LIMITS: [u64; 4] = [10, 20, 50, 100];
/// Leechers per machine of Figure 2.
pub(super) const CROWDS: [u32; 4] = [2, 10, 50, 100];

impl Request {
    const fn iterations(self) -> u32 {
        if self.quick { 1 } else { 10 }
    }

    const fn few(self) -> u32 {
        if self.quick { 1 } else { 5 }
    }

    /// Round-trip times of Figure 5.
    #[must_use]
    pub fn rtts_ms(self) -> Vec<u64> {
        RTTS_MS.into_iter().filter(|rtt| !self.quick || [0, 400, 1000].contains(rtt)).collect()
    }

    /// A smaller swarm for a quick look.
    fn sized(self, setting: Setting) -> Setting {
        let per_machine = if self.quick { setting.per_machine.min(20) } else { setting.per_machine };
        let content_bytes = if self.quick { 10 << 20 } else { setting.content_bytes };
        Setting { per_machine, content_bytes, ..setting }
    }

    pub(super) fn case(self, kbps: u64, rtt_ms: u64, case: Case) -> Setting {
        let loss = if case == Case::Loss { 0.05 } else { 0.0 };
        let records = SwarmRecords { pieces: true, unchokes: true, sends: true, ..SwarmRecords::default() };
        self.sized(Setting {
            key: key(kbps, rtt_ms, case),
            offload: case == Case::Offload,
            records,
            ..Setting::homogeneous(kbps, rtt_ms, loss)
        })
    }

    /// Everything that is to be run, each with its iterations.
    #[must_use]
    pub fn settings(self) -> Vec<(Setting, u32)> {
        let mut all = Vec::new();
        for kbps in LIMITS {
            for rtt_ms in self.rtts_ms() {
                all.push((self.case(kbps, rtt_ms, Case::Plain), self.iterations()));
            }
            for (rtt_ms, case) in
                [0, 400, 1000].into_iter().flat_map(|rtt| [(rtt, Case::Offload), (rtt, Case::Loss)])
            {
                all.push((self.case(kbps, rtt_ms, case), self.iterations()));
            }
            for rtt_ms in [0, 400, 1000] {
                let setting =
                    Setting { utp: true, key: utp_key(kbps, rtt_ms), ..self.case(kbps, rtt_ms, Case::Plain) };
                all.push((setting, self.few().min(3)));
            }
        }
        for rtt_ms in [0, 400, 1000] {
            let setting = self.case(20, rtt_ms, Case::Plain);
            all.push((Setting { seed_kbps: 50, key: fast_seed_key(rtt_ms), ..setting }, self.few()));
            for crowd in CROWDS {
                all.push((self.crowd(crowd, rtt_ms), self.few()));
            }
        }
        for kbps in [20, 50] {
            all.extend(
                SETS.into_iter()
                    .flat_map(|set| set.map(|seed| (self.systems(kbps, set, seed), self.iterations()))),
            );
        }
        all
    }

    /// Figure 2: so many leechers on each machine.
    fn crowd(self, per_machine: u32, rtt_ms: u64) -> Setting {
        let records = SwarmRecords { rtt: true, ..SwarmRecords::default() };
        let setting = self.case(20, rtt_ms, Case::Plain);
        let content_bytes = if self.quick { 4 << 20 } else { 10 << 20 };
        Setting { key: crowd_key(per_machine, rtt_ms), per_machine, records, content_bytes, ..setting }
    }

    /// Figures 8 and 9: a machine for each system, and the seed's in one more like one of them.
    fn systems(self, kbps: u64, set: [usize; 3], seed: usize) -> Setting {
        let device = |number: usize| {
            let (loopback, ethernet) = SYSTEMS[number - 1];
            let [loopback, ethernet] = [loopback, ethernet].map(Duration::from_millis);
            Device { loopback, ethernet, loss: 0.0 }
        };
        let mut devices: Vec<Device> = set.map(device).into();
        devices.push(device(seed));
        debug_assert_eq!(devices.len(), MACHINES + 1);
        Setting { key: systems_key(kbps, set, seed), devices, ..self.case(kbps, 0, Case::Plain) }
    }

    /// The swarms, in the order of the settings and their iterations.
    #[must_use]
    pub fn jobs(self) -> Vec<Job> {
        jobs(&self.settings(), Setting::swarm)
    }
}

fn key(kbps: u64, rtt_ms: u64, case: Case) -> String {
    format!("{kbps} kB/s, RTT {rtt_ms} ms, {}", case.title())
}

fn utp_key(kbps: u64, rtt_ms: u64) -> String {
    format!("{kbps} kB/s, RTT {rtt_ms} ms, uTP")
}

fn fast_seed_key(rtt_ms: u64) -> String {
    format!("seed 50, leechers 20 kB/s, RTT {rtt_ms} ms")
}

fn crowd_key(per_machine: u32, rtt_ms: u64) -> String {
    format!("{per_machine} leechers per machine, RTT {rtt_ms} ms")
}

fn systems_key(kbps: u64, set: [usize; 3], seed: usize) -> String {
    let [a, b, c] = set;
    format!("systems {kbps} kB/s|AS{a}, AS{b}, AS{c}|AS'{seed}")
}

/// The systems and the seed's place of such a key.
pub(super) fn systems_of(key: &str) -> (String, String) {
    let mut parts = key.split('|').skip(1).map(str::to_string);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// What came of everything.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was asked for.
    pub request: Request,
    /// The iterations of each setting.
    pub cells: Cells<Setting>,
}

impl Results {
    /// Sorts what was measured, in the order of the jobs.
    #[must_use]
    pub fn sorted(request: Request, measured: Vec<Option<Measured>>) -> Self {
        let cells = Cells::sorted(request.settings(), measured);
        Self { request, cells }
    }

    fn of(&self, key: &str) -> &[Measured] {
        self.cells.of(key)
    }

    /// A cell of Table IV, or of Figure 5.
    #[must_use]
    pub fn table_iv(&self, kbps: u64, rtt_ms: u64, case: Case) -> &[Measured] {
        self.of(&key(kbps, rtt_ms, case))
    }

    /// The same over uTP.
    pub(super) fn over_utp(&self, kbps: u64, rtt_ms: u64) -> &[Measured] {
        self.of(&utp_key(kbps, rtt_ms))
    }

    /// A seed of 50 kB/s among leechers of 20 kB/s.
    pub(super) fn fast_seed(&self, rtt_ms: u64) -> &[Measured] {
        self.of(&fast_seed_key(rtt_ms))
    }

    /// So many leechers per machine.
    pub(super) fn crowd(&self, per_machine: u32, rtt_ms: u64) -> &[Measured] {
        self.of(&crowd_key(per_machine, rtt_ms))
    }

    /// Figures 8 and 9.
    pub(super) fn systems(&self) -> impl Iterator<Item = (&Setting, &[Measured])> {
        let is = |setting: &Setting| setting.key.starts_with("systems");
        self.cells.iter().filter(move |(setting, _)| is(setting))
    }
}

#[cfg(test)]
mod tests {
    use super::super::published::TABLE_IV;
    use super::*;
    use crate::swarms::{assert_in_place, numbered};

    #[test]
    fn every_run_finds_its_place() {
        for quick in [true, false] {
            let request = Request { quick };
            let jobs = request.jobs();
            let results = Results::sorted(request, numbered(&jobs));
            assert_in_place(&results.cells, &jobs);
            assert!(
                TABLE_IV.iter().all(|&(kbps, rtt, case, _)| !results.table_iv(kbps, rtt, case).is_empty())
            );
            assert_eq!(results.systems().count(), 18);
            assert!(!results.fast_seed(400).is_empty() && !results.over_utp(20, 400).is_empty());
        }
    }

    #[test]
    fn round_trips_between_systems_are_those_of_tables_ii_and_iii() {
        let one_way = |from: usize, to: usize| SYSTEMS[from - 1].1 + SYSTEMS[to - 1].1;
        assert_eq!([2 * one_way(1, 2), 2 * one_way(1, 5), 2 * one_way(4, 5)], [40, 210, 400]);
        assert_eq!(SYSTEMS.map(|(loopback, _)| 4 * loopback), [8, 20, 40, 100, 200]);
    }
}
