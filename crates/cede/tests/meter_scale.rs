//! Data sets: what `cede meter --parquet` writes, read by another program, and merged over captures by Dask on two local
//! workers (`docs/scale/many.py`).

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::captures::{TCP, UTP, halves, plain};
use support::{Finished, Folder, Running};

/// A folder with captures, removed in the end.
struct Place(Folder);

impl Place {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let [early, late] = halves(&plain(TCP));
        folder.write("utp.pcap.gz", UTP);
        folder.write("early.pcap", early);
        folder.write("late.pcap", late);
        Self(folder)
    }

    fn meter(&self, arguments: &[&str]) -> Finished {
        self.0.cede(&[&["meter"], arguments].concat()).exits(0)
    }

    fn python(&self, python: &Path, arguments: &[&str]) -> Value {
        let mut command = Command::new(python);
        command.current_dir(self.0.path("")).args(arguments).stdin(Stdio::null());
        Running::begin(&mut command).end().exits(0).json()
    }
}

/// The Python that `./test` puts beside the build.
fn python() -> Option<PathBuf> {
    let found = support::python_beside("scale-venv", "distributed, pyarrow");
    if found.is_none() {
        println!(
            "SKIPPED: there is no virtual environment scale-venv with Dask and pyarrow beside the build (./test makes it)"
        );
    }
    found
}

/// All delays in microseconds by host and protocol, from the samples in words.
fn delays(place: &Place, captures: &[&str]) -> BTreeMap<(String, String), Vec<f64>> {
    let mut delays: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for capture in captures {
        for line in place.meter(&[capture, "--series", "--json"]).text().lines() {
            let sample: Value = serde_json::from_str(line).unwrap();
            let host = sample["from"].as_str().unwrap().rsplit_once(':').unwrap().0.to_string();
            let key = (host, sample["protocol"].as_str().unwrap().to_string());
            delays.entry(key).or_default().push(sample["queue_us"].as_f64().unwrap());
        }
    }
    delays.values_mut().for_each(|delays| delays.sort_by(f64::total_cmp));
    delays
}

#[test]
fn runs_add_files_of_their_own_and_replace_them_when_repeated() {
    let place = Place::new("files");
    let list = || {
        let mut files = Vec::new();
        for table in ["samples", "flows", "hosts", "histograms"] {
            for date in fs::read_dir(place.0.path("set").join(table)).unwrap() {
                let date = date.unwrap().path();
                assert!(date.file_name().unwrap().to_string_lossy().starts_with("date=20"), "{date:?}");
                files.extend(fs::read_dir(date).unwrap().map(|file| file.unwrap().path()));
            }
        }
        files.sort();
        files
    };
    place.meter(&["early.pcap", "--parquet", "set"]);
    let first = list();
    assert_eq!(first.len(), 4, "{first:?}");
    for file in &first {
        let octets = fs::read(file).unwrap();
        assert!(octets.starts_with(b"PAR1") && octets.ends_with(b"PAR1"), "{file:?}");
        assert!(file.file_name().unwrap().to_string_lossy().starts_with("part-early-"));
    }
    place.meter(&["early.pcap", "--parquet", "set", "--json"]);
    assert_eq!(list(), first);
    // Nor does it matter how often, or in which order, captures are named.
    place.meter(&["early.pcap", "late.pcap", "--parquet", "pair"]);
    let pair = || {
        let dates = fs::read_dir(place.0.path("pair/flows")).unwrap();
        dates.flat_map(|date| fs::read_dir(date.unwrap().path()).unwrap()).count()
    };
    let of_pair = pair();
    place.meter(&["late.pcap", "early.pcap", "./late.pcap", "--parquet", "pair"]);
    assert_eq!(pair(), of_pair);
    place.meter(&["late.pcap", "--parquet", "set"]);
    let both = list();
    assert_eq!(both.len(), 8);
    // Asked for less, a run leaves nothing of what it said before, and all of the others'.
    place.meter(&["early.pcap", "--parquet", "set", "--filter", "udp"]);
    let late: Vec<_> = both.into_iter().filter(|file| !first.contains(file)).collect();
    assert_eq!(list(), late);
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let place = Place::new("told");
    place.0.write("file", "in the way");
    let told = place.0.cede(&["meter", "early.pcap", "--parquet", "file", "--report", "nowhere/r.html"]);
    let told = told.exits(1).complains("error: cannot write the data set file: ");
    let told = told.complains("error: cannot write nowhere/r.html: ");
    // What was found is shown all the same.
    assert!(!told.err.contains("External") && told.text().contains("10.0.1.2"), "{}", told.text());
}

#[test]
fn every_column_is_documented() {
    let document = include_str!("../../../docs/meter.md");
    let source = include_str!("../src/meter/parquet.rs");
    let columns = source.lines().filter_map(|line| line.trim().strip_suffix(';')).filter_map(|line| {
        let mut words = line.split(' ');
        matches!(words.next(), Some("REQUIRED" | "OPTIONAL")).then(|| words.nth(1))?
    });
    let columns: Vec<&str> = columns.collect();
    assert!(columns.len() > 40, "{columns:?}");
    for column in columns {
        assert!(document.contains(&format!("`{column}`")), "{column}");
    }
}

#[test]
fn another_program_reads_the_samples_back() {
    let Some(python) = python() else { return };
    let place = Place::new("read");
    place.meter(&["early.pcap", "--parquet", "set"]);
    let script = "import pyarrow.dataset as d, json; t = d.dataset('set/samples', partitioning='hive').to_table(); \
                  print(json.dumps([t.num_rows, str(t.schema.field('time').type), sum(t['queue_us'].to_pylist())]))";
    let read = place.python(&python, &["-c", script]);
    let wanted = delays(&place, &["early.pcap"]);
    assert_eq!(read[0].as_u64().unwrap() as usize, wanted.values().map(Vec::len).sum::<usize>());
    assert_eq!(read[1], "timestamp[us, tz=UTC]");
    let sum: f64 = wanted.values().flatten().sum();
    assert!((read[2].as_f64().unwrap() / sum - 1.0).abs() < 1e-6, "{read} for {sum}");
}

/// The same, seen so that the date changes in its midst.
fn across_midnight(capture: &[u8]) -> Vec<u8> {
    const MIDNIGHT_S: u32 = 1_775_001_600;
    let mut moved = capture.to_vec();
    let seconds = |octets: &[u8]| u32::from_le_bytes(octets[..4].try_into().unwrap());
    let (first, mut at) = (seconds(&moved[24..]), 24);
    while at < moved.len() {
        let time_s = seconds(&moved[at..]) - first + MIDNIGHT_S - 60;
        moved[at..at + 4].copy_from_slice(&time_s.to_le_bytes());
        at += 16 + seconds(&moved[at + 8..]) as usize;
    }
    moved
}

#[test]
fn dates_add_up_to_the_run() {
    let Some(python) = python() else { return };
    let place = Place::new("dates");
    place.0.write("night.pcap", across_midnight(&plain(TCP)));
    let found = place.meter(&["night.pcap", "--parquet", "set", "--json"]).json();
    let script = "import pyarrow.dataset as d, json; t = d.dataset('set/hosts', partitioning='hive').to_table().to_pylist(); \
                  print(json.dumps([[r['host'], r['covered_s'], r['area_ms_s'], r['above_100ms_s']] for r in t]))";
    let rows = place.python(&python, &["-c", script]);
    for host in found["hosts"].as_array().unwrap() {
        let dates: Vec<&Value> =
            rows.as_array().unwrap().iter().filter(|row| row[0] == host["address"]).collect();
        assert_eq!(dates.len(), 2, "{rows}");
        let [covered_s, area, above_s] =
            [1, 2, 3].map(|k| dates.iter().map(|row| row[k].as_f64().unwrap()).sum::<f64>());
        let of = |name: &str| host["queue"][name].as_f64().unwrap();
        assert!((covered_s - of("covered_s")).abs() < 1e-6, "{covered_s} for {host}");
        assert!((area / covered_s - of("time_mean_ms")).abs() < 1e-6, "{area} for {host}");
        assert!((above_s - of("above_100ms_s")).abs() < 1e-6, "{above_s} for {host}");
    }
}

/// A worker that cannot read its capture, be it the capture's fault or its own, takes nothing from the others.
#[test]
fn what_a_worker_cannot_read_is_told_and_the_rest_is_merged() {
    let Some(python) = python() else { return };
    let place = Place::new("unread");
    place.0.write("words.pcap", "no capture");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scale/many.py");
    let merge = |captures: &[&str], program: &str| {
        let mut command = Command::new(&python);
        command.current_dir(place.0.path("")).arg(script).args(captures);
        let set = format!("{}.set", captures[0]);
        command.args(["--out", &set, "--workers", "1", "--cede", program]).stdin(Stdio::null());
        Running::begin(command.env("PATH", "")).end().exits(1)
    };
    let cede = env!("CARGO_BIN_EXE_cede");
    for (captures, program, hosts, told) in [
        (&["words.pcap"][..], cede, 0, "words.pcap: exit code 1: error: "),
        (&["early.pcap"], "no-such-program", 0, "early.pcap: not read: "),
        (&["late.pcap", "words.pcap"], cede, 2, "words.pcap: exit code 1: error: "),
    ] {
        let merged = merge(captures, program).complains(told).json();
        assert_eq!((&merged["captures"], &merged["failed"]), (&captures.len().into(), &1.into()));
        assert_eq!(merged["hosts"].as_array().unwrap().len(), hosts, "{merged}");
    }
}

#[test]
fn two_workers_read_captures_and_the_merge_is_that_of_all_samples() {
    let Some(python) = python() else { return };
    let place = Place::new("workers");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scale/many.py");
    let captures = ["utp.pcap.gz", "early.pcap", "late.pcap"];
    let mut arguments = vec![script];
    arguments.extend(captures);
    arguments.extend(["--out", "set", "--workers", "2", "--cede", env!("CARGO_BIN_EXE_cede")]);
    let merged = place.python(&python, &arguments);
    assert_eq!((&merged["captures"], &merged["failed"]), (&Value::from(3), &Value::from(0)));
    let all = delays(&place, &captures);
    let hosts = merged["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), all.len());
    for host in hosts {
        let of = |name: &str| host[name].as_str().unwrap().to_string();
        let sorted = &all[&(of("host"), of("protocol"))];
        assert_eq!(host["samples"].as_u64().unwrap() as usize, sorted.len());
        for (name, share) in [("p50_us", 0.5), ("p95_us", 0.95)] {
            let exact = sorted[((share * sorted.len() as f64).ceil() as usize).max(1) - 1].round();
            let [low, high] = [0, 1].map(|k| host[name][k].as_f64().unwrap());
            assert!(low <= exact && exact < high, "{name}: {exact} is not within {low}..{high}");
        }
        assert!((host["max_ms"].as_f64().unwrap() * 1e3 - sorted[sorted.len() - 1]).abs() < 0.01);
    }
    // The mean over time of what was covered, against the runs' own.
    let (mut area, mut covered) = (0.0, 0.0);
    for capture in &captures[1..] {
        let json = place.meter(&[capture, "--json"]).json();
        let host =
            json["hosts"].as_array().unwrap().iter().find(|host| host["address"] == "10.0.1.2").unwrap();
        let seconds = host["queue"]["covered_s"].as_f64().unwrap();
        (area, covered) =
            (area + host["queue"]["time_mean_ms"].as_f64().unwrap() * seconds, covered + seconds);
    }
    let mean = hosts.iter().find(|host| host["host"] == "10.0.1.2" && host["protocol"] == "TCP").unwrap();
    assert!((mean["time_mean_ms"].as_f64().unwrap() - area / covered).abs() < 1e-6, "{mean}");
}
