//! What `docs/meter.md` calls each quantity in each output, held against the outputs.

mod support;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use support::Folder;
use support::captures::{TCP, UTP};

const DOCS: &str = include_str!("../../../docs/meter.md");

/// A record of an output: its values by their names.
type Named = BTreeMap<String, Value>;

/// The three names of each quantity in the table of the documentation that begins with this: what stands in backticks.
fn table(of: &str) -> Vec<[Vec<String>; 3]> {
    let (_, table) = DOCS.split_once(&format!("| {of} |")).expect("a table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| -> [Vec<String>; 3] {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        [2, 3, 4].map(|k| cells[k].split('`').skip(1).step_by(2).map(str::to_owned).collect())
    };
    rows.map(cells).collect()
}

fn csv(text: &str) -> Vec<Named> {
    let mut lines = text.lines().map(|line| line.split(','));
    let headings: Vec<&str> = lines.next().unwrap().collect();
    let read = |cell: &str| cell.parse::<f64>().map_or_else(|_| cell.into(), Value::from);
    lines.map(|cells| headings.iter().map(|&name| name.to_owned()).zip(cells.map(read)).collect()).collect()
}

/// Members within members have the names of both.
fn json(record: &Value) -> Named {
    let mut named = Named::new();
    for (name, value) in record.as_object().unwrap() {
        match value {
            Value::Object(_) => {
                named
                    .extend(json(value).into_iter().map(|(inner, value)| (format!("{name}.{inner}"), value)));
            }
            _ => drop(named.insert(name.clone(), value.clone())),
        }
    }
    named
}

fn parquet(folder: &Path) -> Vec<Named> {
    let dates = fs::read_dir(folder).unwrap().map(|date| date.unwrap().path());
    let mut found = Vec::new();
    for file in dates.flat_map(|date| fs::read_dir(date).unwrap()) {
        let file = SerializedFileReader::new(File::open(file.unwrap().path()).unwrap()).unwrap();
        for row in file.get_row_iter(None).unwrap() {
            let value = |field: &Field| match field {
                Field::Long(number) => Value::from(*number),
                Field::TimestampMicros(number) => Value::from(*number),
                Field::Double(number) => Value::from(*number),
                Field::Str(text) => Value::from(text.as_str()),
                _ => Value::Null,
            };
            let row = row.unwrap();
            found.push(row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect());
        }
    }
    found
}

/// Each name of the table is in the output, and each name of the output in the table.
fn are_all(named: &[Vec<String>], record: &Named) {
    let told: BTreeSet<&str> = named.iter().flatten().map(String::as_str).collect();
    let has: BTreeSet<&str> = record.keys().map(String::as_str).collect();
    assert_eq!(told, has);
}

/// Where a quantity has one name in two outputs, and both have numbers, these are equal, but for what is rounded.
fn is_same(names: [&[String]; 2], records: [&Named; 2], rounded: f64) -> bool {
    let [[one], [other]] = names else { return false };
    let [one, other] = [&records[0][one], &records[1][other]].map(Value::as_f64);
    let (Some(one), Some(other)) = (one, other) else { return false };
    assert!((one - other).abs() <= rounded + 1e-9 * one.abs(), "{names:?}: {one} and {other}");
    true
}

struct Place(Folder);

impl Place {
    fn new(name: &str) -> Self {
        let place = Folder::new(name);
        place.write("utp.pcap.gz", UTP);
        place.write("tcp.pcap.gz", TCP);
        Self(place)
    }

    fn meter(&self, more: &[&str]) -> String {
        let arguments = [&["meter", "utp.pcap.gz", "tcp.pcap.gz", "--parquet", "set"], more].concat();
        self.0.cede(&arguments).exits(0).text().to_owned()
    }

    fn parquet(&self, table: &str) -> Vec<Named> {
        parquet(&self.0.path("set").join(table))
    }
}

fn column(rows: &[[Vec<String>; 3]], k: usize) -> Vec<Vec<String>> {
    rows.iter().map(|row| row[k].clone()).collect()
}

#[test]
fn hosts_have_the_names_that_the_documentation_says() {
    let (place, rows) = (Place::new("hosts"), table("of a host"));
    let by_csv = csv(&place.meter(&["--csv"]));
    let whole: Value = serde_json::from_str(&place.meter(&["--json"])).unwrap();
    let mut told = column(&rows, 1);
    let hosts: Vec<Named> = whole["hosts"].as_array().unwrap().iter().map(json).collect();
    are_all(&column(&rows, 0), &by_csv[0]);
    are_all(&column(&rows, 2), &place.parquet("hosts")[0]);
    // What was seen with one protocol has the members of what was seen at all.
    let both = |name: &String| ["utp", "tcp"].map(|of| name.replacen("queue", of, 1));
    let within: Vec<String> =
        told.iter().flatten().filter(|name| name.starts_with("queue.")).flat_map(both).collect();
    let (utp, tcp): (Vec<String>, Vec<String>) = within.into_iter().partition(|name| name.starts_with("utp"));
    told.iter_mut().for_each(|names| names.retain(|name| name != "utp" && name != "tcp"));
    for (host, row) in hosts.iter().zip(&by_csv) {
        let seen = |of: &str, members: &[String]| {
            if host.contains_key(of) { vec![of.to_owned()] } else { members.to_vec() }
        };
        are_all(&[&told[..], &[seen("utp", &utp), seen("tcp", &tcp)]].concat(), host);
        assert!(
            rows.iter().filter(|names| is_same([&names[0], &names[1]], [row, host], 0.0501)).count() >= 10
        );
    }
}

#[test]
fn flows_have_the_names_that_the_documentation_says() {
    let (place, rows) = (Place::new("flows"), table("of a flow's direction"));
    let by_csv = csv(&place.meter(&["--csv", "--flows"]));
    let whole: Value = serde_json::from_str(&place.meter(&["--json", "--flows"])).unwrap();
    let in_set = place.parquet("flows");
    are_all(&column(&rows, 0), &by_csv[0]);
    are_all(&column(&rows, 2), &in_set[0]);
    for (flow, row) in whole["flows"].as_array().unwrap().iter().zip(&by_csv) {
        let mut flow = json(flow);
        assert_eq!(flow["from"], row["from"]);
        let same = |other: &&Named| {
            let [from, to] = ["source", "destination"]
                .map(|end| format!("{}:{}", other[end].as_str().unwrap(), other[&format!("{end}_port")]));
            flow["from"] == from && flow["to"] == to
        };
        let set = in_set.iter().find(same).expect("the same flow");
        assert!(rows.iter().filter(|names| is_same([&names[1], &names[2]], [&flow, set], 0.0)).count() >= 11);
        assert!(
            rows.iter().filter(|names| is_same([&names[0], &names[1]], [row, &flow], 0.0501)).count() >= 10
        );
        // The other estimate has the same members.
        flow.retain(|name, _| !name.starts_with("echoed"));
        are_all(&column(&rows, 1), &flow);
    }
}

#[test]
fn samples_have_the_names_that_the_documentation_says() {
    let (place, rows) = (Place::new("samples"), table("of a sample"));
    let by_csv = csv(&place.meter(&["--series"]));
    let lines = place.meter(&["--series", "--json"]);
    let line = json(&serde_json::from_str(lines.lines().next().unwrap()).unwrap());
    are_all(&column(&rows, 0), &by_csv[0]);
    are_all(&column(&rows, 1), &line);
    are_all(&column(&rows, 2), &place.parquet("samples")[0]);
    assert_eq!(
        rows.iter().filter(|names| is_same([&names[0], &names[1]], [&by_csv[0], &line], 0.0501)).count(),
        2
    );
}
