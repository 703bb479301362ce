//! What the paper leaves open, read in other ways.

use super::setting::Setting;
use super::{Request, Results, draw_and_judge};
use crate::swarms::{Job, Keyed, Measured, Report, jobs};
use cede_bt::picker::PartialRule;
use cede_bt::{Profile, Transport};
use cede_lab::swarm::{ControllerChoice, Group, Role, Swarm, TcpStack, UtpStack};
use cede_units::Duration;

/// One way to read it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// What is read.
    says: &'static str,
    change: fn(&mut Swarm),
}

impl Reading {
    const fn new(says: &'static str, change: fn(&mut Swarm)) -> Self {
        Self { says, change }
    }

    /// The reading with this name, or the only one with this in its name.
    fn named(text: &str) -> Result<Self, UnknownReading> {
        let meant: Vec<Self> = READINGS.into_iter().filter(|reading| reading.says.contains(text)).collect();
        let exact = meant.iter().find(|reading| reading.says == text);
        let unknown = |of: &[Self]| UnknownReading {
            text: text.to_string(),
            meant: of.iter().map(|reading| reading.says).collect(),
        };
        match (exact, &meant[..]) {
            (Some(&reading), _) | (None, &[reading]) => Ok(reading),
            (None, []) => Err(unknown(&READINGS)),
            (None, several) => Err(unknown(several)),
        }
    }
}

/// No reading is meant by a text, or several are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownReading {
    /// The text.
    pub text: String,
    /// The names of those that were meant, or of all.
    pub meant: Vec<&'static str>,
}

/// Several readings at once: each changes what those before it have left.
#[derive(Clone, Debug, Default)]
pub struct Readings(Vec<Reading>);

impl Readings {
    /// The readings with these names, or with these in their names alone.
    ///
    /// # Errors
    /// The first that means none, or several.
    pub fn named(texts: &[String]) -> Result<Self, UnknownReading> {
        texts.iter().map(|text| Reading::named(text)).collect::<Result<_, _>>().map(Self)
    }

    /// The paper is read as in the report.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is read, reading by reading.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|reading| reading.says).collect()
    }

    /// What is read.
    #[must_use]
    pub fn says(&self) -> String {
        self.names().join(" + ")
    }

    /// These, and one more on top of each: first nothing more, then all readings that change something else. One that takes back what
    /// is read already is the same as alone.
    pub(super) fn and_each(&self, request: Request) -> Vec<Self> {
        let described = |readings: &Self| -> Vec<String> {
            let swarms = readings.of(request.at_capacity(1));
            swarms.map(|(swept, _)| format!("{:?}", swept.swarm(0))).collect()
        };
        let (mut all, mut known) = (Vec::new(), Vec::new());
        for reading in READINGS {
            let mut readings = self.clone();
            let changes = reading.says != READINGS[0].says;
            if changes || self.is_empty() {
                readings.0.push(reading);
            }
            let swarms = described(&readings);
            let is_that_alone = changes && !self.is_empty() && swarms == described(&Self(vec![reading]));
            if !is_that_alone && !known.contains(&swarms) {
                known.push(swarms);
                all.push(readings);
            }
        }
        all
    }

    /// The same swarms, read in these ways.
    pub(super) fn of(&self, settings: Vec<(Setting, u32)>) -> impl Iterator<Item = (Swept, u32)> {
        let (says, changes) = (self.says(), self.0.iter().map(|reading| reading.change).collect::<Vec<_>>());
        settings.into_iter().map(move |(setting, repetitions)| {
            let key = format!("{says}, {}", setting.key);
            (Swept { key, changes: changes.clone(), setting }, repetitions)
        })
    }

    /// All of the paper's swarms, read in these ways.
    #[must_use]
    pub fn jobs(&self, request: Request) -> Vec<Job> {
        jobs(&self.of(request.settings()).collect::<Vec<_>>(), Swept::swarm)
    }

    /// All claims, judged by swarms that are read in these ways.
    #[must_use]
    pub fn report(&self, request: Request, measured: Vec<Option<Measured>>) -> Report {
        draw_and_judge(&Results::sorted(request, measured), self)
    }
}

/// Every reading; the first is the one that the report of the paper uses.
pub(super) const READINGS: [Reading; 19] = [
    Reading::new("as in the report: 1 MiB, four slots, libutp, today's Linux", |_| {}),
    Reading::new("pieces a quarter as large", |swarm| swarm.piece_bytes /= 4),
    Reading::new("pieces twice as large", |swarm| swarm.piece_bytes *= 2),
    Reading::new("2 upload slots", |swarm| each_profile(swarm, |profile| profile.slots = Some(2))),
    Reading::new("3 upload slots", |swarm| each_profile(swarm, |profile| profile.slots = Some(3))),
    Reading::new("8 upload slots", |swarm| each_profile(swarm, |profile| profile.slots = Some(8))),
    Reading::new("2 upload slots, pieces a quarter as large", |swarm| {
        swarm.piece_bytes /= 4;
        each_profile(swarm, |profile| profile.slots = Some(2));
    }),
    Reading::new("connections to everybody", |swarm| {
        let peers = swarm.groups.iter().map(|group| group.count).sum();
        swarm.tracker_peers = peers;
        for group in &mut swarm.groups {
            let Profile { initiate_max, connections_max, want_peers, .. } = &mut group.profile;
            (*initiate_max, *connections_max, *want_peers) = (peers, peers, peers);
        }
    }),
    Reading::new("a round trip of 20 ms", |swarm| {
        each_group(swarm, |group| group.latency = Duration::from_millis(10));
    }),
    Reading::new("256 KiB written ahead to each connection", |swarm| {
        each_group(swarm, |group| group.write_ahead_bytes = 256 << 10);
    }),
    Reading::new("Linux of 2009", |swarm| each_group(swarm, |group| group.tcp_stack = TcpStack::Linux26)),
    Reading::new("Reno", |swarm| each_group(swarm, |group| group.tcp.name = "reno".to_string())),
    Reading::new("LEDBAT of RFC 6817", |swarm| each_utp(swarm, "ledbat")),
    Reading::new("libtorrent's uTP", |swarm| {
        each_utp(swarm, "ledbat-libtorrent");
        each_group(swarm, |group| group.utp_stack = UtpStack::Libtorrent);
    }),
    // uTorrent's manual, of an option that is on by default: what uTP tells is used as a hint for limiting TCP. How, it does not say.
    Reading::new("TCP yields as uTP does, where a peer has both (bt.tcp_rate_control)", |swarm| {
        let mut leechers = swarm.groups.iter().filter(|group| group.role == Role::Leecher);
        if leechers.any(|group| group.disposition.attempts(Transport::Utp)) {
            each_group(swarm, |group| group.tcp = group.utp.clone());
        }
    }),
    Reading::new("started pieces first", |swarm| {
        each_profile(swarm, |profile| profile.picker.partials = PartialRule::Strict);
    }),
    Reading::new("libtorrent's rules but for the race", |swarm| {
        each_profile(swarm, |rules| race(rules, Profile::LIBTORRENT));
    }),
    Reading::new("mainline 4.0.2's rules but for the race", |swarm| {
        each_profile(swarm, |rules| race(rules, Profile { slots: Some(4), ..Profile::MAINLINE4 }));
    }),
    Reading::new("no reading, but a control: uTP that does not give way (CUBIC)", |swarm| {
        each_group(swarm, |group| group.utp = ControllerChoice::named("cubic"));
    }),
];

fn each_group(swarm: &mut Swarm, change: impl Fn(&mut Group)) {
    swarm.groups.iter_mut().for_each(change);
}

fn each_profile(swarm: &mut Swarm, change: impl Fn(&mut Profile)) {
    each_group(swarm, |group| change(&mut group.profile));
}

/// Another controller under uTP, with the target that it has.
fn each_utp(swarm: &mut Swarm, name: &str) {
    each_group(swarm, |group| group.utp.name = name.to_string());
}

/// Another client's rules, with the paper's race of transports.
fn race(rules: &mut Profile, other: Profile) {
    *rules = Profile { dialling: rules.dialling, duplicates: rules.duplicates, ..other };
}

/// One of the paper's swarms under readings.
pub(super) struct Swept {
    key: String,
    changes: Vec<fn(&mut Swarm)>,
    setting: Setting,
}

impl Keyed for Swept {
    fn key(&self) -> &str {
        &self.key
    }
}

impl Swept {
    pub(super) fn swarm(&self, repetition: u32) -> Swarm {
        let mut swarm = self.setting.swarm(repetition);
        self.changes.iter().for_each(|change| change(&mut swarm));
        swarm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarms::numbered;

    #[test]
    fn a_reading_is_found_by_a_part_of_its_name_if_that_is_its_own() {
        let named = |text: &str| Reading::named(text).map(|reading| reading.says);
        assert_eq!(named("2009"), Ok("Linux of 2009"));
        assert_eq!(named("2 upload slots"), Ok("2 upload slots"), "another one begins alike");
        assert_eq!(named("upload slots, pieces"), Ok("2 upload slots, pieces a quarter as large"));
        assert_eq!(named("pieces twice"), Ok("pieces twice as large"));
        assert_eq!(named("nothing of the kind").unwrap_err().meant.len(), READINGS.len());
        assert!(named("slots").unwrap_err().meant.contains(&"8 upload slots"));
    }

    fn readings(texts: &[&str]) -> Readings {
        Readings::named(&texts.iter().map(|text| (*text).to_string()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_sweep_on_top_of_a_reading_leaves_out_what_takes_it_back() {
        let request = Request { quick: true };
        let plain = Readings::default().and_each(request);
        assert_eq!(plain.len(), READINGS.len());
        let names =
            |readings: &Readings| readings.and_each(request).iter().map(Readings::says).collect::<Vec<_>>();
        let swept = names(&readings(&["2 upload slots"]));
        assert_eq!(swept[..2], ["2 upload slots", "2 upload slots + pieces a quarter as large"]);
        assert!(swept.contains(&"2 upload slots + Reno".to_string()));
        // Another number of slots is read alone, and so is a client that has its own; smaller pieces with two slots are there already.
        for gone in [
            "8 upload slots",
            "2 upload slots, pieces a quarter as large",
            "mainline 4.0.2's rules but for the race",
        ] {
            assert!(!swept.contains(&format!("2 upload slots + {gone}")), "{swept:?}");
        }
        let both = readings(&["2 upload slots", "Reno"]);
        let swarm = |readings: &Readings| {
            let (swept, _) = readings.of(request.at_capacity(1)).next().unwrap();
            format!("{:?}", swept.swarm(0))
        };
        assert_ne!(swarm(&both), swarm(&readings(&["2 upload slots"])));
        assert_ne!(swarm(&both), swarm(&readings(&["Reno"])));
        let report = both.report(request, numbered(&both.jobs(request))).to_markdown();
        assert!(
            report.contains("cede repro tma12 --reading '2 upload slots' --reading 'Reno' --quick"),
            "{report}"
        );
    }

    #[test]
    fn all_claims_are_judged_by_runs_of_the_reading() {
        for quick in [true, false] {
            let (request, reading) = (Request { quick }, readings(&["2 upload slots"]));
            let (plain, jobs) = (request.jobs(), reading.jobs(request));
            assert_eq!(jobs.len(), plain.len());
            assert!(
                jobs.iter()
                    .zip(&plain)
                    .all(|(job, plain)| job.key == format!("{}, {}", reading.says(), plain.key))
            );
            assert!(
                jobs.iter()
                    .zip(&plain)
                    .all(|(job, plain)| format!("{:?}", job.swarm) != format!("{:?}", plain.swarm))
            );
            let report = reading.report(request, numbered(&jobs));
            assert!(
                report
                    .parts
                    .iter()
                    .filter_map(|part| part.picture.as_ref())
                    .all(|(name, _)| name.starts_with("reading-"))
            );
            let markdown = report.to_markdown();
            assert!(markdown.contains("cede repro tma12 --reading '2 upload slots'"), "{markdown}");
            assert!(markdown.contains("| A19 |") || markdown.contains("| A19  "), "{markdown}");
        }
    }
}
