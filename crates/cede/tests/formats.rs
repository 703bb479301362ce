//! The forms in which a run is kept for other programs: tables as CSV, JSON lines and Parquet, and one file for flent.

mod support;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::fs;
use support::{Finished, Folder, SHORT};

#[test]
fn tables_as_json_lines() {
    let place = Folder::new("jsonl");
    place.write("short.toml", SHORT);
    place.cede(&["run", "short.toml", "--format", "jsonl,csv", "-o", "out", "--plot", "svg,png"]).exits(0);
    let text = place.text("out/flows.jsonl");
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["flow"], "scavenger");
    assert_eq!(text.lines().count() + 1, place.text("out/flows.csv").lines().count());
    assert!(
        place.text("out/figures.svg").starts_with("<svg")
            || place.text("out/figures.svg").starts_with("<?xml")
    );
    assert_eq!(place.read("out/figures.png")[1..4], *b"PNG");
    // A later run without them takes them away.
    place.cede(&["run", "short.toml", "-o", "out"]).exits(0);
    assert!(!place.path("out/flows.jsonl").exists() && !place.path("out/figures.png").exists());
}

#[test]
fn every_column_is_explained() {
    let place = Folder::new("explained");
    place.write("short.toml", SHORT);
    place.cede(&["run", "short.toml", "-o", "out", "-s", "record.controllers=true"]).exits(0);
    for stem in ["flows", "controllers", "queue-bottleneck"] {
        let text = place.text(&format!("out/{stem}.csv"));
        for column in text.lines().next().unwrap().split(',') {
            let topics = place.cede(&["explain", column, "--json"]).exits(0).json();
            let of = stem.replace("bottleneck", "LINK");
            let is_told = |topic: &Value| topic["kind"] == "column" && topic["name"] == column;
            let topics = topics.as_array().unwrap();
            assert!(topics.iter().any(is_told), "{column} of {of}: {topics:?}");
        }
    }
}

/// A name that is no Unicode, as file systems of Linux permit.
#[cfg(target_os = "linux")]
#[test]
fn a_run_folder_may_be_called_anything() {
    use std::os::unix::ffi::OsStrExt;
    let place = Folder::new("called");
    place.write("short.toml", SHORT);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    let mut command = place.command(["run", "short.toml", "-o"]);
    Finished::of(command.arg(name).output().unwrap()).exits(0);
    let manifest = fs::read(place.path("").join(name).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["command"].as_array().unwrap().last().unwrap(), "caf\u{fffd}");
    let told = place.cede(&["run", "short.toml", "-o", "it's a run", "--pcap"]).exits(0);
    assert!(told.text().contains(r"tshark -r 'it'\''s a run/packets.pcapng' "), "{}", told.text());
}

/// A field of Parquet and one of CSV, which has six decimals.
fn is_same(field: &Field, wanted: &str) -> bool {
    match field {
        Field::Null => wanted.is_empty(),
        Field::Str(text) => wanted == text,
        Field::Long(whole) => wanted == whole.to_string(),
        Field::Double(number) => wanted.parse::<f64>().is_ok_and(|wanted| (wanted - number).abs() <= 1e-6),
        _ => false,
    }
}

#[test]
fn tables_as_parquet_hold_what_those_as_csv_do() {
    let place = Folder::new("columns");
    place.write("short.toml", SHORT);
    let options = ["--format", "csv,parquet", "-o", "out", "-s", "record.queue=true"];
    place.cede(&[&["run", "short.toml"], &options[..]].concat()).exits(0);
    for stem in ["flows", "queue-bottleneck"] {
        let text = place.text(&format!("out/{stem}.csv"));
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let file = fs::File::open(place.path(&format!("out/{stem}.parquet"))).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let mut rows = reader.get_row_iter(None).unwrap();
        let mut seen = 0;
        for line in lines {
            let row = rows.next().unwrap().unwrap();
            for ((wanted, name), (column, field)) in line.iter().zip(&names).zip(row.get_column_iter()) {
                assert_eq!(name, column);
                assert!(is_same(field, wanted), "{name}: {wanted}, {field}");
            }
            seen += 1;
        }
        assert!(seen > 10 && rows.next().is_none(), "{stem}: {seen} rows");
    }
    // One that nothing is known of in a row: the queue that a controller believes in before it has seen any.
    assert!(place.text("out/flows.csv").contains(",,"));
}

#[test]
fn a_run_as_one_file_for_flent() {
    let place = Folder::new("flent");
    place.write("short.toml", SHORT);
    place.cede(&["run", "short.toml", "--format", "flent", "-o", "out"]).exits(0);
    assert!(!place.path("out/flows.csv").exists());
    let packed = place.read("out/short.flent.gz");
    let flent: Value = serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap();
    assert_eq!((flent["version"].as_u64(), flent["metadata"]["NAME"].as_str()), (Some(4), Some("tcp_nup")));
    let times = flent["x_values"].as_array().unwrap().len();
    let results = flent["results"].as_object().unwrap();
    assert!(times > 10 && results.values().all(|series| series.as_array().unwrap().len() == times));
    let manifest: Value = serde_json::from_str(&place.text("out/manifest.json")).unwrap();
    let flows = manifest["results"]["flows"].as_array().unwrap();
    let numbers =
        |of: &str| flent["results"][of].as_array().unwrap().iter().map(|x| x.as_f64().unwrap_or(0.0));
    let sum: f64 = numbers("TCP upload sum").sum();
    let single: f64 = (1..=flows.len()).map(|k| numbers(&format!("TCP upload::{k}")).sum::<f64>()).sum();
    assert!(sum > 0.0 && (sum - single).abs() < 1e-6 * sum);
    assert_eq!(flent["metadata"]["SERIES_META"]["TCP upload::1"]["FLOW"], flows[0]["name"]);
    let link = &manifest["results"]["links"][0]["delays"];
    let base = flent["metadata"]["SERIES_META"]["Ping (ms) ICMP"]["RTT_WITHOUT_QUEUES"].as_f64().unwrap();
    let longest = numbers("Ping (ms) ICMP").fold(0.0, f64::max);
    assert!(longest >= base && longest <= base + link["max_ms"].as_f64().unwrap(), "{longest}");
    // The same run is the same file.
    place.cede(&["run", "short.toml", "--format", "flent", "-o", "again"]).exits(0);
    assert_eq!(place.read("again/short.flent.gz"), packed);
}

#[test]
fn a_swarm_has_forms_of_its_own() {
    let place = Folder::new("swarm-forms");
    let swarm = "name = \"few\"\n[swarm]\ncontent = \"1 MB\"\n[[group]]\nname = \"seed\"\nrole = \"seed\"\n";
    place.write("few.toml", swarm);
    let refused = place.cede(&["run", "few.toml", "--format", "parquet"]).exits(2);
    assert!(refused.err.contains("--format is for scenarios"), "{}", refused.err);
    let refused = place.cede(&["run", "few.toml", "--plot", "svg"]).exits(2);
    assert!(refused.err.contains("--plot is for scenarios"), "{}", refused.err);
}
