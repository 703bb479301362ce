//! Results on disk, so that an interrupted reproduction goes on where it stopped.
//!
//! Each run is one file with one line of JSON: the key, and what was measured. A file counts only if its key is the
//! present one in full: the program's version, the revision of the metrics, a fingerprint of the physics, the
//! scenario's content hash, and the order of the flows. The fingerprint is the tape of a short run with every protocol
//! and option that the figures use, so a program that behaves otherwise finds nothing of what an older one left.

use super::measure::Measured;
use super::setting::Setting;
use cede_lab::run::Run;
use cede_lab::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// To be raised when [`Measured`] means something else for the same run.
const METRICS_REVISION: u32 = 2;

/// What the fingerprint runs: every kind of flow of the figures and of the sensitivity, with losses.
const CANARY: &str = r#"
name = "fingerprint"
duration = "25 s"
[link]
rate = "10 Mbit/s"
delay = "23 ms"
[[flow]]
name = "sack"
protocol = "tcp"
controller = "reno"
[flow.tcp]
initial_window = "2 packets"
min_rto = "200 ms"
[[flow]]
name = "newreno"
protocol = "tcp"
controller = "reno"
[flow.tcp]
sack = false
ack = "delayed"
min_rto = "200 ms"
[[flow]]
name = "draft"
controller = "ledbat-draft"
[[flow]]
name = "whole"
controller = { name = "ledbat-draft", filter = "min", whole_packets = true, target = "120 ms" }
[flow.utp]
ack = "delayed"
[[flow]]
name = "over-tcp"
protocol = "tcp"
controller = { name = "ledbat-draft", gain = 10.0, clamp = false, min_cwnd = 2.0 }
[flow.tcp]
min_rto = "200 ms"
[[flow]]
name = "lp"
protocol = "tcp"
controller = "lp"
[[flow]]
name = "lp-linux"
protocol = "tcp"
controller = "lp-linux26"
[flow.tcp]
timestamp_random = false
[[flow]]
name = "nice"
protocol = "tcp"
controller = { name = "nice", min_cwnd = 2.0, slow_start_at_ssthresh = true, backlog = "ns3" }
[[flow]]
name = "fractional"
protocol = "tcp"
controller = "nice"
"#;

/// A hash of how the program behaves.
fn physics() -> &'static str {
    static PHYSICS: OnceLock<String> = OnceLock::new();
    PHYSICS.get_or_init(|| {
        let scenario = Scenario::parse("fingerprint", CANARY).expect("the text above is a scenario");
        let run = Run::new(&scenario).go(&mut ());
        run.map_or_else(|_| String::new(), |(outcome, _)| outcome.tape)
    })
}

/// What a result was measured with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Key {
    version: String,
    metrics: u32,
    physics: String,
    scenario: String,
    flows: Vec<String>,
    series: bool,
}

impl Key {
    fn of(setting: &Setting) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_string(),
            metrics: METRICS_REVISION,
            physics: physics().to_string(),
            scenario: setting.scenario().content_hash().to_string(),
            flows: setting.parts.iter().map(|part| part.name.to_string()).collect(),
            series: setting.series,
        }
    }

    fn file_name(&self) -> String {
        let flows = self.flows.join("+");
        format!("{}-{flows}{}.json", self.scenario, if self.series { "-series" } else { "" })
    }
}

#[derive(Serialize, Deserialize)]
struct Line<K, M> {
    key: K,
    measured: M,
}

/// A folder of results.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A result could not be written.
#[derive(Debug)]
pub struct StoreError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub cause: io::Error,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.cause)
    }
}

impl std::error::Error for StoreError {}

impl Store {
    /// The results in `folder`, which is made where it is missing.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be made.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(|cause| StoreError { path: folder.to_path_buf(), cause })?;
        Ok(Self { folder: folder.to_path_buf() })
    }

    /// The result of this run, where this very program has measured it. What cannot be read or was measured with
    /// another program is as good as absent.
    #[must_use]
    pub fn load(&self, setting: &Setting) -> Option<Measured> {
        let key = Key::of(setting);
        let text = fs::read_to_string(self.folder.join(key.file_name())).ok()?;
        let line: Line<Key, Measured> = serde_json::from_str(&text).ok()?;
        (line.key == key).then_some(line.measured)
    }

    /// Keeps the result of a run. The file appears whole or not at all.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written.
    pub fn save(&self, setting: &Setting, measured: &Measured) -> Result<(), StoreError> {
        let key = Key::of(setting);
        let path = self.folder.join(key.file_name());
        let write = || -> io::Result<()> {
            let line = serde_json::to_string(&Line { key, measured })?;
            // Named after the process, so that two that run at once do not write into one file.
            let draft = path.with_extension(format!("{}.part", std::process::id()));
            fs::File::create(&draft)?.write_all(format!("{line}\n").as_bytes())?;
            fs::rename(&draft, &path)
        };
        write().map_err(|cause| StoreError { path: path.clone(), cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_the_same_each_time_and_not_empty() {
        assert_eq!(physics().len(), 16);
        let scenario = Scenario::parse("fingerprint", CANARY).unwrap();
        let (outcome, _) = Run::new(&scenario).go(&mut ()).unwrap();
        assert_eq!(outcome.tape, physics());
        assert!(outcome.links[0].drop_probability > 0.0, "losses are a part of the physics");
    }
}
