//! The forms in which `cede meter` says what it found: pages, narrow terminals, tables for programs.

mod support;

use serde_json::Value;
use std::net::Ipv6Addr;
use support::captures::UTP;
use support::{Finished, Folder};

fn place(name: &str) -> Folder {
    let place = Folder::new(name);
    place.write("utp.pcap.gz", UTP);
    place
}

#[test]
fn a_page_may_be_printed() {
    let place = place("page");
    let finished = place.cede(&["meter", "utp.pcap.gz", "--report", "-"]).exits(0);
    assert!(
        finished.text().starts_with("<!doctype html>") && finished.text().trim_end().ends_with("</html>")
    );
    assert!(finished.err.contains("what a flag means"), "{}", finished.err);
    assert!(!place.path("-").exists());
    let refused = place.cede(&["meter", "utp.pcap.gz", "--report", "-", "--json"]).exits(2);
    assert!(refused.text().is_empty() && refused.err.contains("--report -"), "{}", refused.err);
}

#[test]
fn a_page_that_cannot_be_whole_is_not_begun() {
    let place = place("whole");
    place.cede(&["meter", "utp.pcap.gz", "--report", "r.html"]).exits(0);
    let before = place.read("r.html");
    // What would become the page has no room where a folder has its name.
    std::fs::create_dir(place.path(".r.html.unfinished")).unwrap();
    let finished = place.cede(&["meter", "utp.pcap.gz", "--flows", "--report", "r.html"]).exits(1);
    assert!(finished.err.contains("cannot write r.html"), "{}", finished.err);
    assert!(!finished.text().is_empty() && place.read("r.html") == before);
}

/// Lines that are too narrow for everything have fewer columns, and whole addresses.
#[test]
fn hosts_can_be_told_apart_in_a_narrow_terminal() {
    let place = place("narrow");
    for columns in [40, 60, 80] {
        let mut command = place.command(["meter", "utp.pcap.gz", "--pseudonyms"]);
        let finished = Finished::of(command.env("COLUMNS", columns.to_string()).output().unwrap()).exits(0);
        let rows: Vec<&str> = finished.text().lines().skip(3).take(2).collect();
        let hosts = rows.iter().map(|row| row.split(' ').next().unwrap());
        assert!(hosts.clone().all(|host| host.parse::<std::net::IpAddr>().is_ok()), "{}", finished.text());
        assert!(rows.iter().all(|row| row.chars().count() <= columns), "{}", finished.text());
    }
}

/// A packet of uTP from the first address to the second: data with this number, or what answers it.
fn datagram([from, to]: [Ipv6Addr; 2], at_us: u32, number: u16, answers: bool) -> Vec<u8> {
    let (kind, id, seq, ack) = if answers { (0x21, 8_u16, 1, number) } else { (0x01, 9, number, 0) };
    let words = [at_us, 30_000, 1 << 20].map(u32::to_be_bytes).concat();
    let numbers = [seq, ack].map(u16::to_be_bytes).concat();
    let utp = [&[kind, 0][..], &id.to_be_bytes(), &words, &numbers, &[0; 100]].concat();
    let bytes = (8 + utp.len()) as u16;
    let udp = [&6881_u16.to_be_bytes()[..], &6881_u16.to_be_bytes(), &bytes.to_be_bytes(), &[0; 2]].concat();
    let ip = [&[0x60, 0, 0, 0][..], &bytes.to_be_bytes(), &[17, 64], &from.octets(), &to.octets()].concat();
    [ip, udp, utp].concat()
}

#[test]
fn long_addresses_are_whole_in_a_usual_terminal() {
    let place = place("long");
    let ends = ["2001:db8:1111:2222:3333:4444:5555:6666", "2001:db8:1111:2222:3333:4444:5555:7777"]
        .map(|text| text.parse::<Ipv6Addr>().unwrap());
    // A classic capture of packets without anything before IP (RAW).
    let mut capture = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    for k in 0..400_u32 {
        let (answers, at_us) = (k % 2 == 1, k * 10_000 + k % 7 * 900);
        let way = if answers { [ends[1], ends[0]] } else { ends };
        let octets = datagram(way, at_us, k as u16 / 2 + 1, answers);
        let bytes = octets.len() as u32;
        let record = [1_700_000_000 + at_us / 1_000_000, at_us % 1_000_000, bytes, bytes];
        capture.extend(record.map(u32::to_le_bytes).concat());
        capture.extend(octets);
    }
    place.write("six.pcap", capture);
    let mut command = place.command(["meter", "six.pcap"]);
    let finished = Finished::of(command.env("COLUMNS", "80").output().unwrap()).exits(0);
    assert!(finished.text().contains(&ends[0].to_string()), "{}", finished.text());
}

/// Rows have no room for what is missing: it is told beside them.
#[test]
fn what_rows_do_not_tell_is_told_beside_them() {
    let place = place("beside");
    // Three packets of a link that is not read (USB).
    let mut usb = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 189].map(u32::to_le_bytes).concat();
    for k in 0..3 {
        usb.extend([1_700_000_000 + k, 7, 8, 8, 0, 0].map(u32::to_le_bytes).concat());
    }
    place.write("usb.pcap", usb);
    let unread = "3 packets whose link type 189 is not read";
    let table = place.cede(&["meter", "utp.pcap.gz", "usb.pcap"]).exits(0);
    let words = table.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(unread) && words.contains("20 packets neither of TCP"), "{words}");
    for how in [&["--csv"][..], &["--csv", "--flows"], &["--series"], &["--series", "--json"]] {
        let of = |more: &[&str]| place.cede(&[&["meter", "utp.pcap.gz"], how, more].concat()).exits(0);
        assert_eq!(of(&[]).err, "");
        assert!(of(&["usb.pcap"]).err.contains(unread), "{how:?}");
        assert!(of(&["--memory", "500 kB"]).err.contains("samples left out"), "{how:?}");
    }
}

#[test]
fn a_page_draws_the_mean_of_its_table_and_says_of_which_transport() {
    let place = place("means");
    let page = |more: &[&str]| {
        let finished = place.cede(&[&["meter", "utp.pcap.gz", "--report", "-"], more].concat()).exits(0);
        finished.text().to_string()
    };
    let whole = page(&[]);
    for title in ["Mean over time of each host, uTP", "Mean over samples of each host, uTP"] {
        assert!(whole.contains(title), "{title}");
    }
    // Where no host is listed none is drawn.
    assert!(whole.contains("Over hosts") && !page(&["--min-samples", "1000000"]).contains("Over hosts"));
    let plot = ["meter", "utp.pcap.gz", "--plot", "--min-samples", "1000000"];
    assert!(!place.cede(&plot).exits(0).text().contains("queueing delay (ms)"));
    // The one of the table comes first.
    assert!(whole.find("mean over time (ms)") < whole.find("mean over samples (ms)"));
}

#[test]
fn every_column_is_explained() {
    let place = place("columns");
    for how in [&[][..], &["--flows"], &["--series"]] {
        let table = place.cede(&[&["meter", "utp.pcap.gz", "--csv"], how].concat()).exits(0);
        for heading in table.text().lines().next().unwrap().split(',') {
            let topics = place.cede(&["explain", heading, "--json"]).exits(0).json();
            let is_told = |topic: &Value| {
                topic["kind"] == "column" && topic["of"].as_str().is_some_and(|of| of.contains("meter"))
            };
            assert!(topics.as_array().unwrap().iter().any(is_told), "{heading}: {topics}");
        }
        if how.contains(&"--series") {
            continue;
        }
        // So are those of the table for people, which stand two blanks apart.
        let mut wide = place.command([&["meter", "utp.pcap.gz"], how].concat());
        let table = Finished::of(wide.env("COLUMNS", "400").output().unwrap()).exits(0);
        let headings = table.text().lines().nth(1).unwrap().split("  ").map(str::trim);
        for heading in headings.filter(|heading| !heading.is_empty()) {
            place.cede(&["explain", heading]).exits(0);
        }
    }
}
