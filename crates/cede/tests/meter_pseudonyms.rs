//! `cede meter --pseudonyms`: nothing that it writes says who was seen, neither in words nor by the order of rows.

mod support;

use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use support::Folder;

const HOSTS: u8 = 16;
const PACKETS: u32 = 24;

/// Hosts that send, and the one that receives, of each family.
fn hosts() -> Vec<IpAddr> {
    let v4 = (0..HOSTS).map(|k| IpAddr::from([203, 0, 113, 9 + 7 * k]));
    let v6 =
        (0..HOSTS).map(|k| IpAddr::from([0x2001, 0xdb8, 0x77, 0, 0, 0, 0, 0x41a0 + 0x111 * u16::from(k)]));
    v4.chain(v6).chain(observers()).collect()
}

fn observers() -> [IpAddr; 2] {
    [IpAddr::from([198, 51, 100, 77]), IpAddr::from([0x2001, 0xdb8, 0x99, 0, 0, 0, 0, 0xabcd])]
}

/// A segment of TCP with timestamps, of 100 octets.
fn segment(from: IpAddr, to: IpAddr, seq: u32, clock: u32) -> Vec<u8> {
    let mut tcp = [5001_u16.to_be_bytes(), 5002_u16.to_be_bytes()].concat();
    tcp.extend([seq.to_be_bytes(), 1_u32.to_be_bytes()].concat());
    tcp.extend([0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
    tcp.extend([clock.to_be_bytes(), 1_u32.to_be_bytes()].concat());
    tcp.extend([0; 100]);
    let len = tcp.len() as u16;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let len = (20 + len).to_be_bytes();
            let head = [0x45, 0, len[0], len[1], 0, 0, 0x40, 0, 64, 6, 0, 0];
            [&head[..], &from.octets(), &to.octets(), &tcp].concat()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let len = len.to_be_bytes();
            let head = [0x60, 0, 0, 0, len[0], len[1], 6, 64];
            [&head[..], &from.octets(), &to.octets(), &tcp].concat()
        }
        _ => unreachable!("one family"),
    }
}

/// A capture of raw IP: each host has a queue of its own that comes and goes.
fn capture() -> Vec<u8> {
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101];
    let mut file: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    for k in 0..PACKETS {
        for (place, from) in hosts().into_iter().enumerate().filter(|(_, from)| !observers().contains(from)) {
            let to = observers()[usize::from(from.is_ipv6())];
            let queue_us = (k % 5) * 1_000 * (1 + place as u32 % 9);
            let sent_us = 500_000 * k + 1_000 * place as u32;
            let (seq, clock) = (1 + 100 * k, 7_000 + sent_us / 1_000);
            let frame = segment(from, to, seq, clock);
            let at_us = sent_us + queue_us;
            let words = [
                1_700_000_000 + at_us / 1_000_000,
                at_us % 1_000_000,
                frame.len() as u32,
                frame.len() as u32,
            ];
            file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            file.extend(frame);
        }
    }
    file
}

/// How an address may be written: as people do, long, with what names of files have, as a number, and as its octets are.
fn spellings(address: IpAddr) -> Vec<Vec<u8>> {
    let octets = match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    let mut all = vec![address.to_string(), hex.clone(), hex.to_uppercase()];
    match address {
        IpAddr::V4(v4) => all.push(v4.to_bits().to_string()),
        IpAddr::V6(v6) => {
            let groups = v6.segments();
            all.push(groups.map(|group| format!("{group:x}")).join(":"));
            all.push(groups.map(|group| format!("{group:04x}")).join(":"));
            all.push(v6.to_bits().to_string());
        }
    }
    let apart: Vec<String> = ["-", "_"].map(|sign| address.to_string().replace(['.', ':'], sign)).into();
    let turned = octets.iter().rev().copied().collect();
    all.into_iter().chain(apart).map(String::into_bytes).chain([octets, turned]).collect()
}

fn check(what: &str, octets: &[u8]) {
    for address in hosts() {
        for spelled in spellings(address) {
            let is_there = octets.windows(spelled.len()).any(|window| window == spelled);
            assert!(!is_there, "{what} says {address} as {:?}", String::from_utf8_lossy(&spelled));
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Rows of all files of a table, one a line, with the values of its columns by commas.
fn rows(files: &[PathBuf]) -> String {
    let mut out = String::new();
    for path in files {
        let file = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        for row in file.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let values = row.get_column_iter().map(|(_, value)| value.to_string().replace('"', ""));
            out += &format!("{}\n", values.collect::<Vec<_>>().join(","));
        }
    }
    out
}

/// Addresses in the order in which rows first say them, in a column.
fn order(rows: &str, column: usize) -> Vec<IpAddr> {
    let mut seen = Vec::new();
    for row in rows.lines() {
        let cell = row.split(',').nth(column).unwrap_or_default();
        let address = cell.parse().or_else(|_| cell.parse().map(|socket: std::net::SocketAddr| socket.ip()));
        seen.extend(address.ok().filter(|address| !seen.contains(address)));
    }
    seen
}

fn is_that_of_pseudonyms(rows: &str, column: usize) {
    let found = order(rows, column);
    assert!(found.len() == 2 * usize::from(HOSTS) && found.is_sorted(), "{found:?}");
}

/// Runs the meter on a capture that is called after two of its hosts.
fn meter(place: &Folder, more: &[&str]) -> String {
    let name = "203.0.113.9-2001-db8-77--41a0_198-51-100-77.pcap";
    place.write(name, capture());
    let found = place.cede(&[&["meter", name, "--pseudonyms=key"], more].concat()).exits(0);
    check(&format!("{more:?}"), &found.out);
    check(&format!("{more:?}, standard error"), found.err.as_bytes());
    found.text().to_owned()
}

#[test]
fn nothing_that_is_written_says_who_was_seen() {
    let place = Folder::new("said");
    place.write("key", [7; 32]);
    let forms = [
        "",
        "--flows",
        "--csv",
        "--csv --flows",
        "--json",
        "--json --flows",
        "--series",
        "--series --json",
        "--plot",
    ];
    for form in forms {
        let said = meter(&place, &form.split_whitespace().collect::<Vec<_>>());
        assert!(said.len() > 1_000, "{form}: {said}");
    }
    meter(&place, &["--report", "r.html", "--parquet", "set"]);
    check("the page", &place.read("r.html"));
    let said = meter(&place, &["--report", "-"]);
    assert!(said.contains(".pcap"), "a name without its addresses");
    for path in files(&place.path("set")) {
        check("a file's name", path.strip_prefix(place.path("set")).unwrap().to_str().unwrap().as_bytes());
        check("a file of the data set", &fs::read(&path).unwrap());
        check("a row of the data set", rows(&[path]).as_bytes());
    }
}

/// Where rows come by true addresses, who has many pseudonyms of a net has its hosts.
#[test]
fn no_order_of_rows_is_that_of_true_addresses() {
    let place = Folder::new("order");
    place.write("key", [7; 32]);
    is_that_of_pseudonyms(&meter(&place, &["--series"]), 1);
    meter(&place, &["--parquet", "set"]);
    for (table, column) in [("samples", 1), ("flows", 1), ("hosts", 1), ("histograms", 1)] {
        is_that_of_pseudonyms(&rows(&files(&place.path("set").join(table))), column);
    }
    // What sorts hosts is how long they wait: those that are alike come by what they are called.
    let out = meter(&place, &["--csv", "--until", "400 ms", "--min-samples", "1"]);
    let alike: BTreeSet<&str> = out.lines().skip(1).filter_map(|line| line.split(',').nth(4)).collect();
    assert_eq!(alike.len(), 1, "{out}");
    is_that_of_pseudonyms(&out, 0);
}
