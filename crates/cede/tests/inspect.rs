//! `cede inspect`, on recorded captures of three libtorrent peers.

mod support;

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Finished, Folder, PATIENCE, until_taken};

const TCP: &[u8] = include_bytes!("../../cede-inspect/tests/vectors/tcp.pcapng.gz");
const UTP: &[u8] = include_bytes!("../../cede-inspect/tests/vectors/utp.pcapng.gz");
const ENCRYPTED: &[u8] = include_bytes!("../../cede-inspect/tests/vectors/tcp_encrypted.pcapng.gz");

/// A folder with the captures, removed in the end.
struct Place(Folder);

impl Deref for Place {
    type Target = Folder;
    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        folder.write("tcp.pcapng.gz", TCP);
        folder.write("utp.pcapng.gz", UTP);
        folder.write("hidden.pcapng.gz", ENCRYPTED);
        Self(folder)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.0.command([&["inspect"], arguments].concat())
    }

    fn inspect(&self, arguments: &[&str]) -> (i32, String, String) {
        Finished::of(self.command(arguments).output().unwrap()).told()
    }

    fn good(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.inspect(arguments);
        assert_eq!(code, 0, "{arguments:?}: {err}");
        out
    }

    fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let out = self.good(&[arguments, &["--json"]].concat());
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn document(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(&[arguments, &["--json"]].concat())).unwrap()
    }
}

/// A number of both sides of all connections.
fn total(document: &Value, of: impl Fn(&Value) -> &Value) -> u64 {
    let connections = document["connections"].as_array().unwrap();
    connections
        .iter()
        .flat_map(|one| one["sides"].as_array().unwrap())
        .map(|side| of(side).as_u64().unwrap())
        .sum()
}

#[test]
fn every_form_says_the_same() {
    let place = Place::new("forms");
    let document = place.document(&["tcp.pcapng.gz"]);
    let pieces = total(&document, |side| &side["messages"]["piece"]);
    assert!(pieces >= 2 * 184, "{pieces}");
    let text = place.good(&["tcp.pcapng.gz"]);
    assert!(text.contains("libtorrent 2.1.1.0") && text.contains("allowed-fast"), "{text}");
    let csv = place.good(&["tcp.pcapng.gz", "--csv"]);
    let headings: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(csv.lines().count(), 1 + 6);
    assert!(csv.lines().skip(1).all(|line| line.split(',').count() == headings.len()), "{csv}");
    let log = place.lines(&["tcp.pcapng.gz", "--log"]);
    let of = |kind: &str| log.iter().filter(|line| line["type"] == kind).count() as u64;
    for kind in ["handshake", "request", "piece", "have", "unchoke", "extended", "allowed-fast"] {
        assert_eq!(of(kind), total(&document, |side| &side["messages"][kind]), "{kind}");
    }
    assert_eq!(of("opened"), 3);
    let words = place.good(&["tcp.pcapng.gz", "--log"]);
    assert_eq!(words.lines().count(), log.len());
    assert_eq!(place.good(&["tcp.pcapng.gz", "--log", "--csv"]).lines().count(), 1 + log.len());
    let blocks = place.lines(&["tcp.pcapng.gz", "--pieces"]);
    assert_eq!(blocks.len() as u64, pieces);
    assert!(blocks.iter().all(|block| block["last_octet"].as_u64() >= block["requested"].as_u64()));
    assert_eq!(place.good(&["tcp.pcapng.gz", "--pieces"]).lines().count(), blocks.len());
}

#[test]
fn every_column_is_explained() {
    let place = Place::new("columns");
    let tables = [&["--csv"][..], &["--csv", "--log"], &["--csv", "--pieces"]];
    let tables = tables.map(|how| place.good(&[&["tcp.pcapng.gz"], how].concat()));
    for heading in tables.iter().flat_map(|csv| csv.lines().next().unwrap().split(',')) {
        let told =
            Command::new(env!("CARGO_BIN_EXE_cede")).args(["explain", heading, "--json"]).output().unwrap();
        let topics: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert!(
            topics.as_array().unwrap().iter().any(|topic| topic["kind"] == "column"),
            "{heading}: {topics}"
        );
    }
}

#[test]
fn choices_leave_out_what_was_not_asked_for() {
    let place = Place::new("choices");
    let all = place.lines(&["utp.pcapng.gz", "--log"]);
    let hash = all.iter().find_map(|line| line["info_hash"].as_str()).unwrap().to_string();
    let pieces = place.lines(&["utp.pcapng.gz", "--pieces", "--info-hash", &hash[..6].to_uppercase()]);
    assert_eq!(pieces.len(), all.iter().filter(|line| line["type"] == "piece").count());
    let log = place.lines(&["utp.pcapng.gz", "--log", "--info-hash", &hash]);
    let of_it = |line: &&Value| line["info_hash"] == hash.as_str();
    assert_eq!(log.len(), all.iter().filter(of_it).count());
    let opened = |lines: &[Value]| lines.iter().filter(|line| line["type"] == "opened").count();
    assert!(opened(&log) > 0 && opened(&log) == opened(&all), "a connection's beginning is part of it");
    let other = if hash.starts_with('0') { "1" } else { "0" };
    assert!(place.lines(&["utp.pcapng.gz", "--pieces", "--info-hash", other]).is_empty());
    assert!(place.lines(&["utp.pcapng.gz", "--log", "--host", "192.0.2.1"]).is_empty());
    // That there are none at all would be another thing to say.
    for [choice, value] in [["--host", "192.0.2.1"], ["--info-hash", other]] {
        let told = place.good(&["utp.pcapng.gz", choice, value]);
        assert!(
            told.contains(&format!("No BitTorrent connection that {choice} asks for was found")),
            "{told}"
        );
    }
    assert_eq!(place.lines(&["utp.pcapng.gz", "--log", "--host", "127.0.0.1"]).len(), all.len());
    let text = place.good(&["utp.pcapng.gz", "--filter", "tcp"]);
    assert!(
        text.contains("No BitTorrent connection was found") && text.contains("held back by --filter"),
        "{text}"
    );
    let early = place.lines(&["utp.pcapng.gz", "--log", "--until", "1 s"]);
    assert!(!early.is_empty() && early.len() < all.len());
    let late = place.document(&["utp.pcapng.gz", "--since", "1 s"]);
    assert!(late["counters"]["packets_outside_time"].as_u64().unwrap() > 100);
}

#[test]
fn what_encryption_hides_is_said() {
    let place = Place::new("hidden");
    let text = place.good(&["hidden.pcapng.gz"]).replace('\n', " ");
    assert!(text.contains("1 encrypted connection: ") && text.contains("not even the torrent"), "{text}");
    let document = place.document(&["hidden.pcapng.gz"]);
    assert_eq!(document["connections"][0]["speech"], "encrypted");
    let log = place.lines(&["hidden.pcapng.gz", "--log"]);
    assert!(log.iter().any(|line| line["type"] == "encrypted"));
    let both = place.document(&["tcp.pcapng.gz", "hidden.pcapng.gz"]);
    assert_eq!(both["connections"].as_array().unwrap().len(), 4);
}

#[test]
fn pseudonyms_hide_addresses_and_peer_ids() {
    let place = Place::new("pseudonyms");
    place.write("key", [7; 32]);
    for form in [
        &[][..],
        &["--csv"],
        &["--json"],
        &["--log"],
        &["--log", "--json"],
        &["--pieces"],
        &["--pieces", "--csv"],
    ] {
        let out = place.good(&[&["tcp.pcapng.gz", "--pseudonyms=key"], form].concat());
        assert!(!out.contains("127.0.0.1") && !out.contains("-LT21") && out.len() > 100, "{form:?}: {out}");
    }
}

#[test]
fn pipes_damage_and_wrong_usage_are_told_as_the_meter_tells_them() {
    let place = Place::new("damage");
    let whole = place.document(&["tcp.pcapng.gz"]);
    let piped = place.cede_reading(&["inspect", "-", "--json"], TCP).json();
    assert_eq!(piped["connections"], whole["connections"]);
    let mut plain = Vec::new();
    GzDecoder::new(TCP).read_to_end(&mut plain).unwrap();
    place.write("cut.pcapng", &plain[..plain.len() / 2]);
    let (code, out, err) = place.inspect(&["cut.pcapng"]);
    assert!(code == 1 && out.contains("libtorrent") && err.contains("what came before counts"), "{err}");
    let (code, _, err) = place.inspect(&["nowhere.pcap"]);
    assert!(code == 1 && err.contains("cannot read nowhere.pcap"), "{err}");
    for (wrong, word) in [
        (&["tcp.pcapng.gz", "--info-hash", "xyz"][..], "hexadecimal"),
        (&["tcp.pcapng.gz", "--since", "90"], "lacks its unit"),
        (&["tcp.pcapng.gz", "--filter", "prot 80"], "did you mean `port`?"),
        (&["tcp.pcapng.gz", "--log", "--pieces"], "cannot be used with"),
        (&[], "required"),
    ] {
        let (code, _, err) = place.inspect(wrong);
        assert!(code == 2 && err.contains(word), "{wrong:?}: {err}");
    }
}

/// Rows of a table in a data set, each as text.
fn rows(place: &Path, table: &str) -> Vec<String> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let mut rows = Vec::new();
    for date in fs::read_dir(place.join(table)).unwrap() {
        for file in fs::read_dir(date.unwrap().path()).unwrap() {
            let reader = SerializedFileReader::new(fs::File::open(file.unwrap().path()).unwrap()).unwrap();
            rows.extend(reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()));
        }
    }
    rows
}

#[test]
fn a_data_set_has_what_the_lines_have() {
    let place = Place::new("parquet");
    let (messages, blocks) =
        (place.lines(&["tcp.pcapng.gz", "--log"]), place.lines(&["tcp.pcapng.gz", "--pieces"]));
    // The same capture twice counts once.
    for _ in 0..2 {
        let text = place.good(&["tcp.pcapng.gz", "--parquet", "said"]);
        assert!(text.contains("libtorrent"), "{text}");
    }
    let folder = place.path("said");
    let (said, sent) = (rows(&folder, "messages"), rows(&folder, "blocks"));
    assert_eq!((said.len(), sent.len()), (messages.len(), blocks.len()));
    for (row, line) in said.iter().zip(&messages).chain(sent.iter().zip(&blocks)) {
        for field in ["piece", "offset", "length"] {
            let value = line[field].as_u64().map_or_else(|| "null".to_owned(), |value| value.to_string());
            assert!(row.contains(&format!("{field}: {value}")), "{field} of {line}: {row}");
        }
    }
    let directions = rows(&folder, "directions");
    let document = place.document(&["tcp.pcapng.gz"]);
    let have = total(&document, |side| &side["messages"]["have"]).to_string();
    let sum: u64 = directions
        .iter()
        .map(|row| {
            let count = row.split("messages_have: ").nth(1).unwrap();
            count.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u64>().unwrap()
        })
        .sum();
    assert_eq!((directions.len(), sum.to_string()), (6, have));
    let cut = total(&document, |side| &side["cut_packets"]);
    assert!(directions.iter().all(|row| row.contains("cut_packets: 0")) && cut == 0, "{cut}");
    place.good(&["tcp.pcapng.gz", "--parquet", "hidden", "--pseudonyms"]);
    place.write("in-the-way", "");
    let (code, out, err) = place.inspect(&["tcp.pcapng.gz", "--parquet", "in-the-way"]);
    assert!(code == 1 && err.contains("cannot write the data set in-the-way"), "{err}");
    assert!(out.contains("libtorrent"), "what was found is shown all the same: {out}");
}

#[test]
fn whoever_asks_for_the_end_has_nothing_of_what_was_not_begun() {
    let place = Place::new("given-up");
    let mut running =
        place.start_reading(&["inspect", "-", "tcp.pcapng.gz", "utp.pcapng.gz"], Stdio::piped());
    let mut pipe = running.stdin();
    let mut octets = Vec::new();
    GzDecoder::new(ENCRYPTED).read_to_end(&mut octets).unwrap();
    pipe.write_all(&octets).unwrap();
    until_taken(&pipe);
    // What was taken is looked at within a moment.
    std::thread::sleep(Duration::from_secs(1));
    running.interrupt();
    let (code, out, err) = running.end().told();
    assert_eq!(code, 130, "{err}");
    assert!(err.contains("interrupted: 3 files were not read to the end; what came before counts"), "{err}");
    assert!(out.contains("encrypted") && !out.contains("libtorrent"), "{out}");
    drop(pipe);
}

/// A capture of many connections with a handshake each.
fn connections(count: u32) -> Vec<u8> {
    let mut out =
        [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 8], &[0xff, 0xff, 0, 0, 101, 0, 0, 0]].concat();
    let handshake = [&b"\x13BitTorrent protocol"[..], &[0; 8], &[7; 20], b"-XX1000-abcdefghijkl"].concat();
    for number in 0..count {
        for (seq, flags, payload) in [(1_u32, 2, &[][..]), (2, 0x18, &handshake)] {
            let len = (40 + payload.len()) as u16;
            let ip = [
                &[0x45, 0][..],
                &len.to_be_bytes(),
                &[0, 0, 0, 0, 64, 6, 0, 0, 10],
                &number.to_be_bytes()[1..],
            ];
            let tcp =
                [&[192, 0, 2, 1, 0x13, 0x88, 0x1a, 0xe1][..], &seq.to_be_bytes(), &[0, 0, 0, 1, 0x50, flags]];
            let packet = [&ip.concat()[..], &tcp.concat(), &[0xff, 0xff, 0, 0, 0, 0], payload].concat();
            let len = u32::from(len).to_le_bytes();
            out.extend([&(1 + number / 1_000).to_le_bytes()[..], &[0; 4], &len, &len, &packet].concat());
        }
    }
    out
}

/// 8,000 connections as one document in memory took 37 KB each.
#[test]
#[cfg(target_os = "linux")]
fn what_is_printed_of_many_connections_takes_no_memory_for_each() {
    const CONNECTIONS: u32 = 8_000;
    const ADDRESS_SPACE_KIB: u32 = 300_000;
    let place = Place::new("many");
    place.write("many.pcap", connections(CONNECTIONS));
    let limited = format!(
        "ulimit -v {ADDRESS_SPACE_KIB}; exec {} inspect many.pcap --memory '64 MiB' --json",
        env!("CARGO_BIN_EXE_cede")
    );
    let mut command = Command::new("sh");
    command.current_dir(place.path("")).args(["-c", &limited]);
    let found = Finished::of(command.output().unwrap()).exits(0).json();
    let given_up = found["not_listed"]["connections_given_up"].as_u64().unwrap();
    let listed = found["connections"].as_array().unwrap().len() as u64;
    assert_eq!(listed + given_up, u64::from(CONNECTIONS));
    assert!(listed > 7_000, "{listed}");
}

/// As of `tcpdump -w - | cede inspect - --log | head -1`: the pipe goes on, and whoever reads the lines has had enough.
#[test]
fn what_a_pipe_brings_is_told_as_it_comes_as_long_as_somebody_reads() {
    let place = Place::new("as-it-comes");
    let mut octets = Vec::new();
    GzDecoder::new(TCP).read_to_end(&mut octets).unwrap();
    let (begun, rest) = octets.split_at(octets.len() / 2);
    let mut command = place.command(&["-", "--log"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut pipe, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (told, first) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(out).read_line(&mut line);
        let _ = told.send(line);
    });
    // It may have ended before it has taken all.
    let _ = pipe.write_all(begun);
    let line = first.recv_timeout(PATIENCE);
    let _ = pipe.write_all(rest);
    let end = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() && Instant::now() < end && line.is_ok() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = child.try_wait().unwrap();
    let _ = (child.kill(), child.wait());
    assert!(line.unwrap().ends_with("TCP opened\n"));
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    drop(pipe);
}
