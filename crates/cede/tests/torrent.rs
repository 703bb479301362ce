//! `cede torrent` as its users meet it: the program against itself on the loopback. Ports are free ones, read from what the
//! program says; every wait has an end, and times are only ever bounded from below.

mod support;

use cede_bt::metainfo::Metainfo;
use cede_torrent::check::{Watch, check};
use cede_torrent::session::stamps;
use cede_torrent::storage::{Notes, Storage};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use support::{Finished, Folder, Running};

/// An empty folder that is gone afterwards, and an empty one in it.
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
        fs::create_dir(folder.path("out")).unwrap();
        Self(folder)
    }

    fn start(&self, words: &str) -> Running {
        Running::begin(&mut self.command(std::iter::once("torrent").chain(words.split_whitespace())))
    }

    fn cede(&self, words: &str) -> Finished {
        self.start(words).end()
    }

    /// A torrent of `film`, and who gives it: the address to name.
    fn seeded(&self, bytes: usize, options: &str) -> (Vec<u8>, Running, String) {
        let content = self.write_pattern("film", bytes);
        self.cede("make film -l 16KiB --force").exits(0);
        let mut seed = self.start(&format!("seed film.torrent {QUIET} {options}"));
        let address = format!("127.0.0.1:{}", port_of(&mut seed));
        (content, seed, address)
    }
}

/// The port that it says it waits at.
fn port_of(program: &mut Running) -> u16 {
    let line = program.says("port ");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn port_of_tracker(tracker: &mut Running) -> String {
    tracker.says("tracker at ").rsplit(':').next().unwrap().trim().to_owned()
}

const QUIET: &str = "--no-dht --no-lsd -p 0 -B 127.0.0.1";

#[test]
fn a_torrent_is_made_and_shown() {
    let place = Place::new("make");
    place.write_pattern("photos/a.jpg", 40_000);
    place.write_pattern("photos/more/b.jpg", 5);
    let words = "make photos -l 16KiB -t http://a.example/announce -t udp://b.example:6969 --private --comment hello --json";
    let made = place.cede(words).exits(0).json();
    let shown = place.cede("show photos.torrent --json").exits(0).json();
    assert_eq!(made["info_hash"], shown["info_hash"]);
    assert!(shown["magnet"].as_str().unwrap().starts_with("magnet:?xt=urn:btih:"));
    let text = place.cede("show photos.torrent").exits(0).text().to_owned();
    for word in ["a.jpg", "more/b.jpg", "http://a.example/announce", "udp://b.example:6969", "hello"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_went_wrong_says_what_to_do() {
    let place = Place::new("errors");
    place.write_pattern("film", 20_000);
    place.cede("make film").exits(0);
    place.cede("make film").exits(1).complains("--force");
    place.cede("make film --force").exits(0);
    place.cede("make film -t ftp://x -o y.torrent").exits(2).complains("udp://");
    place.cede("make film -o none/film.torrent").exits(2).complains("mkdir -p none");
    place.cede("make film -o out").exits(2).complains("is a folder");
    place.cede("make film -o - --json").exits(2).complains("name a file");
    place.cede("make film -l 20000").exits(2).complains("power of two");
    place.cede("show none.torrent").exits(1).complains("none.torrent");
    place.cede("show film").exits(1);
    place.cede("get film.torrent -o nowhere/deeper").exits(2).complains("mkdir -p nowhere/deeper");
    place.cede("get film.torrent --transport 32").exits(2).complains("uTP");
    place.cede("get film.torrent --transport 16").exits(2).complains("tcp, utp or both");
    place.cede("get ftp://localhost/film.torrent").exits(2).complains("http");
    place.cede("get film.torrent --transport quic").exits(2).complains("tcp, utp or both");
    place.cede("get film.torrent --up 100").exits(2);
    place.cede(&format!("get film.torrent -o out --files 7 {QUIET}")).exits(2).complains("cede torrent show");
    place.cede(&format!("get film.torrent -o out -C none {QUIET}")).exits(2).complains("none");
    place.cede(&format!("get film.torrent -o out --files , {QUIET}")).exits(2).complains("cede torrent show");
    place.cede("get film.torrent -o out --peer 127.0.0.1").exits(2).complains("192.0.2.1:6881");
    place.cede("get film.torrent -o out --dht-node 127.0.0.1").exits(2).complains("192.0.2.1:6881");
    place.cede("get film.torrent -o out -t ftp://x").exits(2).complains("udp://");
    place.cede("get film.torrent -o out -p 0 -B 192.0.2.1").exits(1).complains("192.0.2.1, port 0");
    place.cede("tracker --interval 0s").exits(2).complains("at least 1s");
    place.cede("get magnet:?xt=urn:btih:zz -o out").exits(2);
    place.cede("seed none.torrent").exits(1);
}

#[test]
fn a_download_arrives_over_each_transport_by_file_and_by_link() {
    let place = Place::new("get");
    let (content, _seed, peer) = place.seeded(600_000, "");
    let magnet =
        place.cede("show film.torrent --json").exits(0).json()["magnet"].as_str().unwrap().to_owned();
    let ways = [
        ("film.torrent --transport tcp", "tcp"),
        ("film.torrent --transport 10 --utp-target-delay 25ms -C ledbat++", "utp"),
        ("film.torrent --transport 31 --profile libtorrent --encryption require", "utp"),
        ("film.torrent --transport 13 --profile mainline4 --preallocate", "tcp"),
        (&format!("{magnet} --transport 5"), "tcp"),
        (&format!("{magnet} --transport utp --encryption require"), "utp"),
    ];
    for (words, over) in ways {
        let _ = fs::remove_file(place.path("out/film"));
        let done = place.cede(&format!("get {words} -o out --peer {peer} --json {QUIET}")).exits(0);
        assert_eq!(place.read("out/film"), content, "{words}");
        let end = done.event("end");
        assert!(end["downloaded"][over].as_u64().unwrap() >= 600_000, "{words}: {end}");
        assert_eq!(done.event("begin")["bytes"], 600_000);
        assert_eq!(end["complete"], true);
        assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 1, "nothing but the file is left");
    }
}

/// Whoever came by a link can give, or go on, when nobody is left who has what is behind it.
#[test]
fn what_is_behind_a_link_can_be_kept() {
    for version in ["", "--v2"] {
        let place = Place::new(&format!("save{version}"));
        let content = place.write_pattern("film", 600_000);
        place.cede(&format!("make film -l 16KiB -t http://127.0.0.1:9/announce {version}")).exits(0);
        let mut seed = place.start(&format!("seed film.torrent {QUIET}"));
        let (peer, shown) = (port_of(&mut seed), place.cede("show film.torrent --json").exits(0).json());
        let get = |what: &str| {
            place.cede(&format!(
                "get {what} -o out --peer 127.0.0.1:{peer} --save-torrent kept.torrent {QUIET}"
            ))
        };
        let magnet = shown["magnet"].as_str().unwrap();
        get(magnet).exits(0);
        assert!(place.read("out/film") == content, "{version}");
        let kept = place.cede("show kept.torrent --json").exits(0).json();
        for key in ["info_hash", "info_hash_v2", "files", "pieces", "trackers", "version"] {
            assert_eq!(kept[key], shown[key], "{version} {key}");
        }
        // It has what files are checked by.
        place.cede("verify kept.torrent --data out").exits(0);
        get(magnet).exits(0);
        place.write("kept.torrent", "another");
        get(magnet).exits(1).complains("kept.torrent is there already");
        assert!(place.text("kept.torrent") == "another");
    }
    let place = Place::new("save-several");
    place.cede("get a.torrent b.torrent --save-torrent c.torrent").exits(2).complains("--save-torrent");
}

/// A link that was copied from a page has spaces around it.
#[test]
fn a_link_may_have_spaces_around_it() {
    let place = Place::new("spaces");
    let (content, _seed, peer) = place.seeded(40_000, "");
    let shown = place.cede("show film.torrent --json").exits(0).json();
    for link in [shown["magnet"].as_str().unwrap(), shown["info_hash"].as_str().unwrap()] {
        let _ = fs::remove_file(place.path("out/film"));
        let link = format!(" {link}\n");
        let words = format!("-o out --peer {peer} {QUIET}");
        let words = ["torrent", "get", &link].into_iter().chain(words.split_whitespace());
        Running::begin(&mut place.command(words)).end().exits(0);
        assert_eq!(place.read("out/film"), content);
    }
}

/// What other clients call a file that is not whole is left alone, and told of; under its own name it is gone on with.
#[test]
fn what_another_client_has_begun_is_told_of() {
    let place = Place::new("begun");
    let (content, _seed, peer) = place.seeded(600_000, "");
    let begun = place.path("out/film.!qB");
    fs::write(&begun, &content[..300_000]).unwrap();
    let words = format!("get film.torrent -o out --peer {peer} {QUIET}");
    place.cede(&words).exits(0).complains("film.!qB may be what another client has begun");
    assert_eq!(fs::read(&begun).unwrap(), content[..300_000]);
    fs::rename(&begun, place.path("out/film")).unwrap();
    let done = place.cede(&format!("{words} --json")).exits(0);
    assert_eq!(place.read("out/film"), content);
    let down = done.event("end")["downloaded"].clone();
    assert!(down["tcp"].as_u64().unwrap() + down["utp"].as_u64().unwrap() < 400_000, "{down}");
    assert!(!done.told().2.contains("another client"));
}

/// Whoever starts both ends by hand does not start the seed first each time. Other peers are left alone for a minute.
#[test]
fn a_peer_named_by_hand_may_begin_after_us() {
    let place = Place::new("late");
    let content = place.write_pattern("film", 100_000);
    place.cede("make film").exits(0);
    let port = support::free_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let words = format!("get film.torrent -o out --transport tcp --peer 127.0.0.1:{port} --json {QUIET}");
    let get = place.start(&words);
    drop(listener.accept().unwrap());
    drop(listener);
    let _seed = place.start(&format!("seed film.torrent --no-dht --no-lsd -B 127.0.0.1 -p {port}"));
    let end = get.end().exits(0).event("end");
    assert_eq!(place.read("out/film"), content);
    let seconds = end["seconds"].as_f64().unwrap();
    assert!(seconds < 55.0, "it was called again after {seconds} s");
}

#[test]
fn why_nobody_is_connected_is_told() {
    let place = Place::new("alone");
    let (_, _seed, peer) = place.seeded(40_000, "--encryption off");
    let nobody = support::free_port();
    let magnet = "magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567";
    let options = format!("-o out --peer {peer} --peer 127.0.0.1:{nobody} --transport tcp {QUIET}");
    let mut download = place.start(&format!("get film.torrent --json --encryption require {options}"));
    let mut link = place.start(&format!("get {magnet} {options}"));
    let told = |event: &Value| event["data"]["unheard"].as_object().is_some_and(|unheard| unheard.len() == 2);
    let unheard = download.prints_such(told)["data"]["unheard"].clone();
    assert_eq!(unheard, serde_json::json!({ "refused": 1, "unencrypted": 1 }));
    let said = download.says("nobody is connected");
    assert!(said.contains("1 where nobody takes connections, 1 without encryption"), "{said}");
    let said = link.says("nobody is connected");
    assert!(said.contains("1 where nobody takes connections, 1 hung up"), "{said}");
    for program in [download, link] {
        program.interrupt();
        program.end().exits(130);
    }
}

#[test]
fn a_download_that_was_killed_goes_on_and_nothing_bad_is_offered() {
    let place = Place::new("kill");
    let (content, _seed, peer) = place.seeded(1_500_000, "");
    let words = format!("get film.torrent -o out --peer {peer} --json {QUIET}");
    let mut first = place.start(&format!("{words} --down 300kB/s"));
    while first.prints("progress")["data"]["pieces"].as_u64().unwrap() < 10 {}
    first.kill();
    // What a torn write may leave: the middle of what came is something else.
    let mut torn = place.read("out/film");
    torn.iter_mut().take(20_000).for_each(|octet| *octet ^= 0x55);
    fs::write(place.path("out/film"), &torn).unwrap();
    let good = |octets: &[u8]| {
        let pairs = octets.chunks(16_384).zip(content.chunks(16_384));
        pairs.filter(|(there, expected)| there == expected).count() as u64
    };
    let there = good(&torn);
    let mut second = place.start(&format!("{words} --down 300kB/s"));
    let line = second.says("are here");
    let word = line.split(" of ").next().unwrap().rsplit(' ').next().unwrap();
    assert_eq!(word.parse::<u64>().unwrap(), there, "{line}");
    let done = second.end().exits(0);
    assert_eq!(place.read("out/film"), content);
    let came = done.event("end")["downloaded"]["tcp"].as_u64().unwrap()
        + done.event("end")["downloaded"]["utp"].as_u64().unwrap();
    assert!(came < 1_500_000 - (there - 1) * 16_384 + 200_000, "what was there was fetched again: {came}");
}

#[test]
fn some_files_of_many_are_enough() {
    let place = Place::new("files");
    for (name, bytes) in [("t/a.txt", 30_000), ("t/b.bin", 50_000), ("t/c.txt", 40_000), ("t/d", 100)] {
        place.write_pattern(name, bytes);
    }
    let mut tracker = place.start("tracker -p 0 -B 127.0.0.1 --json");
    let url = format!("http://127.0.0.1:{}/announce", port_of_tracker(&mut tracker));
    place.cede("make t -l 16KiB").exits(0);
    let mut seed = place.start(&format!("seed t.torrent {QUIET}"));
    let peer = format!("127.0.0.1:{}", port_of(&mut seed));
    let words = format!("get t.torrent -o out --files 0,c.txt --peer {peer} -t {url} --json {QUIET}");
    let got = place.cede(&words).exits(0);
    // All of the eight pieces but 2 and 3, and no download that trackers count.
    let end = got.event("end");
    assert_eq!(
        (&end["pieces"], &end["missing"]["pieces"], &end["complete"]),
        (&6.into(), &0.into(), &true.into())
    );
    assert_eq!(tracker.prints("paused")["left"], 2 * 16_384);
    assert_eq!(
        (place.read("out/t/a.txt"), place.read("out/t/c.txt")),
        (place.read("t/a.txt"), place.read("t/c.txt"))
    );
    assert!(!place.path("out/t/b.bin").exists() && !place.path("out/t/d").exists());
    place.cede(&format!("get t.torrent -o out --peer {peer} {QUIET}")).exits(0);
    assert_eq!(place.read("out/t/b.bin"), place.read("t/b.bin"));
    let left: Vec<_> =
        fs::read_dir(place.path("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["t"], "the ends of pieces are in their files, and the hidden one is gone");
}

/// Where everything wanted is there no notes are left, but for the ends of pieces that others share.
#[test]
fn a_file_that_was_damaged_is_fetched_again_when_others_are_wanted() {
    let place = Place::new("damaged");
    for (name, bytes) in [("t/a", 5_000), ("t/b", 60_000), ("t/c", 60_000)] {
        place.write_pattern(name, bytes);
    }
    place.cede("make t -l 16KiB").exits(0);
    let mut seed = place.start(&format!("seed t.torrent {QUIET}"));
    let get = format!("get t.torrent -o out --peer 127.0.0.1:{} {QUIET}", port_of(&mut seed));
    place.cede(&format!("{get} --files 0")).exits(0);
    fs::write(place.path("out/t/a"), &place.read("t/a")[..2_000]).unwrap();
    place.cede(&format!("{get} --files 0,2")).exits(0);
    for name in ["a", "c"] {
        assert_eq!(place.read(&format!("out/t/{name}")), place.read(&format!("t/{name}")));
    }
}

/// `/dev/full` stands in for a full disk.
#[test]
#[cfg(target_os = "linux")]
fn events_that_could_not_be_told_are_a_failure_of_what_came() {
    let place = Place::new("untold");
    let (content, _seed, peer) = place.seeded(20_000, "");
    let words = format!("torrent get film.torrent -o out --peer {peer} --json {QUIET}");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let got = place.command(words.split_whitespace()).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(got.stderr).unwrap();
    assert_eq!(got.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("error: cannot write to standard output").count(), 1, "{said}");
    assert!(said.contains("error: not all was told"), "{said}");
    assert_eq!(place.read("out/film"), content);
}

/// However slow the machine, nothing is faster than its limit and a second's worth of it.
#[test]
fn limits_on_both_directions_are_kept() {
    for (give, take) in [("--up 400kB/s", ""), ("", "--down 400kB/s")] {
        for transport in ["tcp", "utp"] {
            let place = Place::new(&format!("limits{}{transport}", take.len()));
            let (content, _seed, peer) = place.seeded(1_200_000, give);
            let words = format!(
                "get film.torrent -o out --transport {transport} --peer {peer} {take} --json {QUIET}"
            );
            let done = place.cede(&words).exits(0);
            assert_eq!(place.read("out/film"), content);
            let took = done.event("end")["seconds"].as_f64().unwrap();
            assert!(
                took > (1_200_000.0 - 200_000.0) / 400_000.0 * 0.95,
                "{give}{take} {transport}: {took} s"
            );
        }
    }
}

#[test]
fn no_more_peers_than_asked_for() {
    let place = Place::new("max-peers");
    let (content, _seed, first) = place.seeded(800_000, "");
    let mut other = place.start(&format!("seed film.torrent {QUIET}"));
    let second = port_of(&mut other);
    for (most, seen) in [(1, 1), (2, 2)] {
        let words = format!(
            "get film.torrent -o out --peer {first} --peer 127.0.0.1:{second} --max-peers {most} --down 400kB/s --json {QUIET}"
        );
        let got = place.cede(&words).exits(0);
        assert!(place.read("out/film") == content);
        let lines = got.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let peers = lines.filter_map(|line| line["data"]["peers"].as_array().map(Vec::len));
        assert_eq!(peers.max(), Some(seen), "{most}");
        fs::remove_file(place.path("out/film")).unwrap();
    }
    place.cede("get film.torrent --max-peers 0").exits(2).complains("--max-peers");
}

/// What is wrong with files is told of each, and changes nothing.
#[test]
fn files_are_held_against_a_torrent() {
    let place = Place::new("verify");
    fs::create_dir(place.path("trip")).unwrap();
    for name in ["a", "b", "c", "d"] {
        place.write_pattern(&format!("trip/{name}"), 100_000);
    }
    place.write("trip/empty", "");
    for version in ["", "--v2"] {
        place.cede(&format!("make trip -l 16KiB --force {version}")).exits(0);
        let whole = place.cede("verify trip.torrent --json").exits(0).json();
        assert!(whole["whole"] == true && whole["pieces"] == whole["pieces_right"], "{whole}");
        let [mut longer, mut changed] = ["a", "c"].map(|name| place.read(&format!("trip/{name}")));
        longer.push(0);
        changed[50_000] ^= 1;
        place.write("trip/a", &longer);
        place.write("trip/b", &longer[..60_000]);
        place.write("trip/c", &changed);
        fs::remove_file(place.path("trip/d")).unwrap();
        let told = place.cede("verify trip.torrent").exits(1).complains("4 of 5 files differ or are missing");
        for fault in
            ["a: has 100001 octets, and not 100000", "b: has 60000 octets of 100000; ", "d: is not there"]
        {
            assert!(told.text().contains(fault), "{version}: {}", told.text());
        }
        let faults = place.cede("verify trip.torrent --json").exits(1).json();
        let of = |name: &str| {
            let files = faults["files"].as_array().unwrap();
            files.iter().find(|file| file["path"] == format!("trip/{name}")).unwrap().clone()
        };
        assert_eq!((&of("empty")["whole"], &of("c")["found_length"]), (&true.into(), &100_000.into()));
        let [right, all] = ["pieces_right", "pieces"].map(|key| of("c")[key].as_u64().unwrap());
        // Of v1 its first and last piece are also those of files that are wrong.
        assert_eq!(all - right, if version.is_empty() { 3 } else { 1 }, "{}", of("c"));
        assert!(place.read("trip/a") == longer && place.read("trip/c") == changed, "it was written to");
        for name in ["a", "b", "c", "d"] {
            place.write_pattern(&format!("trip/{name}"), 100_000);
        }
    }
    place.cede("verify trip.torrent -d out").exits(1).complains("--data names the folder");
    place.cede("verify trip.torrent -d trip.torrent").exits(2).complains("is no folder");
    place.cede("verify no.torrent").exits(1).complains("no.torrent: cannot be read");
}

/// Whoever gives may be told when that is enough: what is under way then leaves all the same.
#[test]
fn giving_ends_when_it_was_asked_to() {
    for transport in ["tcp", "utp"] {
        let place = Place::new(&format!("until-{transport}"));
        let (content, seed, peer) = place.seeded(1_000_000, "--seed-ratio 1 --json");
        let words = |until: &str| {
            format!("get film.torrent -o out --peer {peer} --transport {transport} {until} --json {QUIET}")
        };
        let got = place.cede(&words("--seed-time 1.5s")).exits(0);
        assert!(place.read("out/film") == content, "{transport}");
        let end = got.event("end");
        assert_eq!(end["ended_by"], "--seed-time", "{end}");
        assert!(end["seconds"].as_f64().unwrap() >= 1.5, "{end}");
        let end = seed.end().exits(0).event("end");
        assert_eq!(
            (&end["ended_by"], end["uploaded"][transport].as_u64()),
            (&"--seed-ratio".into(), Some(1_000_000))
        );
        // What is there already is given at once.
        let end = place.cede(&words("--seed-ratio 2 --seed-time 1s")).exits(0).event("end");
        assert_eq!((&end["ended_by"], &end["complete"]), (&"--seed-time".into(), &true.into()));
    }
    let place = Place::new("until");
    place.cede("get film.torrent --seed-ratio 0").exits(2).complains("take more than 0");
    place.cede("seed film.torrent --seed-time soon").exits(2).complains("--seed-time");
}

/// What the system, or uTP, still has of what was sent is not lost with the process, whoever is slow to take it.
#[test]
fn who_reads_slowly_has_what_was_sent_before_the_end() {
    for transport in ["tcp", "utp"] {
        let place = Place::new(&format!("seen-off-{transport}"));
        let (content, seed, peer) = place.seeded(4_000_000, "--seed-ratio 1 --json");
        let slowly = format!("--peer {peer} --transport {transport} {QUIET} --down 1MB/s");
        place.cede(&format!("get film.torrent -o out {slowly}")).exits(0);
        assert!(place.read("out/film") == content, "{transport}");
        assert_eq!(seed.end().exits(0).event("end")["ended_by"], "--seed-ratio");
    }
}

/// What programs read is documented: each line is JSON, and each of its names stands in docs/torrent.md.
#[test]
fn every_line_for_programs_is_json_and_every_name_is_documented() {
    const PAGE: &str = include_str!("../../../docs/torrent.md");
    let place = Place::new("json");
    let mut tracker = place.start("tracker -p 0 -B 127.0.0.1 --json");
    let port = port_of_tracker(&mut tracker);
    let tracked = format!("-t http://127.0.0.1:{port}/announce");
    let (_, _seed, peer) = place.seeded(1_000_000, &tracked);
    // Long enough for a line of progress with a peer in it.
    let words = format!("get film.torrent -o out --peer {peer} {tracked} --down 400kB/s --json {QUIET}");
    let got = place.cede(&words).exits(0);
    let mut lines: Vec<Value> = got.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| !line["data"]["peers"][0].is_null()), "no peer was shown");
    lines.push(tracker.prints("started"));
    let mut names = Vec::new();
    lines.iter().for_each(|line| gather(line, &mut names));
    for name in names {
        assert!(PAGE.contains(&format!("`{name}`")), "{name} is not documented");
    }
}

/// The names of all values.
fn gather(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            names.extend(map.keys().filter(|name| !["event", "data"].contains(&name.as_str())).cloned());
            map.values().for_each(|value| gather(value, names));
        }
        Value::Array(values) => values.iter().for_each(|value| gather(value, names)),
        _ => {}
    }
}

/// A person reads when somebody announced.
#[test]
fn a_line_of_the_tracker_begins_with_its_time() {
    let place = Place::new("tracker-time");
    let mut tracker = place.start("tracker -p 0 -B 127.0.0.1");
    let port = port_of_tracker(&mut tracker);
    let mut asker = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    asker.write_all(b"GET /announce?port=0 HTTP/1.0\r\n\r\n").unwrap();
    let line = tracker.out_line("http refused");
    let now = std::process::Command::new("date").args(["-u", "+%FT"]).output().unwrap().stdout;
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(rest.starts_with("127.0.0.1:"), "{line}");
    // Unless midnight lies between.
    let is_today = time.starts_with(String::from_utf8(now).unwrap().trim());
    assert!(time.len() == 20 && time.ends_with('Z') && (is_today || time.contains("T23:59:")), "{line}");
    let taken = place.cede(&format!("tracker -p {port} -B 127.0.0.1")).exits(1);
    taken.complains(&format!("port {port} is taken"));
    place.cede("tracker -p 0 -B 192.0.2.1").exits(1).complains("cannot wait at 192.0.2.1, port 0");
}

#[test]
fn a_tracker_logs_each_announce_over_http_and_udp() {
    let place = Place::new("tracker");
    let content = place.write_pattern("film", 100_000);
    let mut tracker = place.start("tracker -p 0 -B 127.0.0.1 --json");
    let line = tracker.says("tracker at ");
    let port = line.rsplit(':').next().unwrap().trim().to_owned();
    place.cede("make film -l 16KiB").exits(0);
    let mut seed = place.start(&format!("seed film.torrent -t http://127.0.0.1:{port}/announce {QUIET}"));
    let seeded_at = port_of(&mut seed);
    let started = tracker.prints("started");
    assert_eq!((&started["over"], &started["left"]), (&Value::from("http"), &Value::from(0)));
    assert_eq!(started["peer"], format!("127.0.0.1:{seeded_at}"));
    place.cede(&format!("get film.torrent -o out -t udp://127.0.0.1:{port} {QUIET}")).exits(0);
    assert_eq!(place.read("out/film"), content);
    let started = tracker.prints("started");
    assert_eq!(
        (&started["over"], &started["left"], &started["told"]),
        (&"udp".into(), &100_000.into(), &1.into())
    );
    assert_eq!(tracker.prints("completed")["over"], "udp");
    assert_eq!(tracker.prints("stopped")["left"], 0);
}

/// A tracker's answer often ends a download before the clock looks again.
#[test]
fn a_completion_is_told_however_soon_the_download_ends() {
    let place = Place::new("soon");
    let mut tracker = place.start("tracker -p 0 -B 127.0.0.1 --json");
    let line = tracker.says("tracker at ");
    let port = line.rsplit(':').next().unwrap().trim();
    let (_, _seed, peer) = place.seeded(100_000, "");
    for round in 0..8 {
        let words = format!(
            "get film.torrent -o out -t http://127.0.0.1:{port}/announce --peer {peer} --json {QUIET}"
        );
        let done = place.cede(&words).exits(0);
        assert_eq!(done.event("complete")["bytes"], 100_000, "round {round}");
        fs::remove_file(place.path("out/film")).unwrap();
    }
}

/// What an announce says over HTTP, and the line of the log for it.
fn announced(tracker: &mut Running, port: &str, query: &str) -> Value {
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    write!(stream, "GET /announce?{query} HTTP/1.0\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    tracker.prints("at_s")
}

#[test]
fn announces_that_make_no_sense_are_told_and_count_for_no_seed() {
    let place = Place::new("senseless");
    let mut tracker = place.start("tracker -p 0 -B 127.0.0.1 --json");
    let port = port_of_tracker(&mut tracker);
    let hash = format!("info_hash={}", "%07".repeat(20));
    for (number, left) in ["", "&left=-5", "&left=99999999999999999999"].iter().enumerate() {
        let peer = format!("%0{number}").repeat(20);
        let line = announced(&mut tracker, &port, &format!("{hash}&peer_id={peer}&port=9{number}{left}"));
        let told = (&line["left"], &line["seeders"], &line["leechers"]);
        assert_eq!(told, (&Value::Null, &0.into(), &(number + 1).into()), "{left}");
    }
    let line = announced(&mut tracker, &port, &format!("{hash}&port=9&left=0"));
    assert!(line["refused"].as_str().unwrap().contains("peer_id"), "{line}");
    for (name, value) in line.as_object().unwrap() {
        assert_eq!(value.is_null(), !["at_s", "peer", "over", "refused"].contains(&name.as_str()), "{name}");
    }
    let line = announced(&mut tracker, &port, &format!("{hash}&peer_id={}&port=9&left=0", "%09".repeat(20)));
    assert_eq!((&line["left"], &line["seeders"], &line["leechers"]), (&0.into(), &1.into(), &3.into()));
}

/// As in `cede torrent seed ... --json | head -1`.
#[test]
fn who_reads_no_more_ends_what_would_run_for_ever() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let place = Place::new("unread");
    let (_, _seed, peer) = place.seeded(100_000, "");
    for words in [
        format!("seed film.torrent --json {QUIET}"),
        format!("get film.torrent -o out --seed --json --peer {peer} {QUIET}"),
        "tracker -p 0 -B 127.0.0.1 --json".to_owned(),
    ] {
        let mut command = place.command(std::iter::once("torrent").chain(words.split_whitespace()));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        err.read_line(&mut said).unwrap();
        drop(child.stdout.take());
        if let Some(port) = said.strip_prefix("tracker at ").and_then(|said| said.trim().rsplit(':').next()) {
            let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
            stream.write_all(b"GET /announce?x=y HTTP/1.0\r\n\r\n").unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if std::time::Instant::now() > end {
                let _ = child.kill();
                panic!("{words} goes on");
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        assert!(status.success(), "{words}: {status}");
        err.read_to_string(&mut said).unwrap();
        assert!(!said.contains("error"), "{words}: {said}");
    }
}

#[test]
fn content_that_is_there_is_complete_and_what_cannot_begin_ends() {
    let place = Place::new("events");
    let content = place.write_pattern("film", 100_000);
    place.cede("make film -l 16KiB").exits(0);
    place.write("out/film", content);
    let told = place.cede(&format!("get film.torrent -o out --json {QUIET}")).exits(0);
    assert_eq!(told.event("complete")["bytes"], 100_000);
    assert_eq!(told.event("end")["complete"], true);
    assert!(!told.err.contains("nobody is to be asked"), "{}", told.err);
    // A folder that is not there is made, and one where a file is wanted is in the way.
    fs::create_dir_all(place.path("made/film")).unwrap();
    let told = place.cede(&format!("get film.torrent -o made --preallocate --json {QUIET}")).exits(1);
    assert!(told.event("end")["error"].as_str().unwrap().contains("film"), "{}", told.text());
    let told = place.cede(&format!("get film.torrent -o fresh --files 7 --json {QUIET}")).exits(2);
    assert!(
        told.event("end")["error"].as_str().unwrap().contains("--files") && !place.path("fresh").exists()
    );
    let told = place.cede(&format!("seed none.torrent --json {QUIET}")).exits(1);
    assert!(told.event("end")["error"].as_str().unwrap().contains("none.torrent"), "{}", told.text());
    let (content, _seed, peer) = place.seeded(100_000, "");
    place.cede(&format!("get film.torrent -o fresh --peer {peer} {QUIET}")).exits(0);
    assert_eq!(place.read("fresh/film"), content);
}

/// Another user, where there is one to become, as whoever may write anywhere is not held up by permissions.
#[test]
#[cfg(unix)]
fn what_may_not_be_written_to_is_complete_where_all_of_it_is_there() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("forbidden");
    let content = place.write_pattern("film", 100_000);
    place.cede("make film -l 16KiB").exits(0);
    place.write("out/film", &content);
    fs::set_permissions(place.path("out"), fs::Permissions::from_mode(0o555)).unwrap();
    let words = format!("torrent get film.torrent -o out --json --no-port-mapping {QUIET}");
    let as_another = ["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_cede")];
    let begin = |words: &str| {
        if fs::write(place.path("out/probe"), "").is_err() {
            return Some(Running::begin(&mut place.command(words.split_whitespace())));
        }
        fs::remove_file(place.path("out/probe")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(as_another).args(words.split_whitespace()).current_dir(place.path(""));
        let asked = Command::new("setpriv").args(as_another).arg("--version").stdout(Stdio::null()).status();
        asked.is_ok_and(|status| status.success()).then(|| Running::begin(&mut command))
    };
    let Some(get) = begin(&words) else {
        println!("SKIPPED: this user may write to read-only folders, and cannot become another");
        return;
    };
    let told = get.end().exits(0);
    assert_eq!(
        (&told.event("complete")["bytes"], &told.event("end")["complete"]),
        (&100_000.into(), &true.into())
    );
    let mut seed = begin(&format!("{words} --seed")).unwrap();
    let port = seed.hears("TCP and UDP port ").unwrap().rsplit(' ').next().unwrap().to_owned();
    place.cede(&format!("get film.torrent -o fetched --peer 127.0.0.1:{port} {QUIET}")).exits(0);
    assert_eq!(place.read("fetched/film"), content);
    seed.interrupt();
    seed.end().exits(130);
    let wrong = [&content[..99_999], b"?"].concat();
    fs::write(place.path("out/film"), wrong).unwrap();
    let told = begin(&words).unwrap().end().exits(3);
    assert!(told.event("end")["error"].as_str().unwrap().contains("Permission denied"), "{}", told.text());
    // Nor is anybody called where the folder may be written to and a file that is gone on with may not.
    fs::set_permissions(place.path("out"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(place.path("out/film"), fs::Permissions::from_mode(0o444)).unwrap();
    let told = begin(&words).unwrap().end().exits(3);
    assert!(told.event("end")["error"].as_str().unwrap().contains("cannot write to "), "{}", told.text());
}

/// What begins with nothing at all, and what nobody is to be asked for.
#[test]
fn what_begins_in_vain_is_told_to_programs_and_people() {
    let place = Place::new("vain");
    place.write("film", b"x");
    place.cede("make film").exits(0);
    place.write("full", b"x");
    for (words, code, why) in [
        ("get film.torrent --json -o full", 2, "is no folder"),
        ("get film.torrent --json -C nothing", 2, "nothing"),
        ("seed film.torrent --json -d film", 2, "--data: film is no folder"),
        ("get film.torrent --json -B ::1 --peer 192.0.2.1:6881", 2, "--peer 192.0.2.1:6881"),
        ("get away.torrent --json", 1, "away.torrent: cannot be read: "),
        (
            "get HTTP://127.0.0.1:1/away.torrent -p 0 --no-port-mapping --json",
            1,
            "away.torrent: cannot be fetched: ",
        ),
        ("get film.torrent away.torrent --files 0 --json", 2, "--files"),
    ] {
        let end = place.cede(words).exits(code).event("end");
        assert!(end["error"].as_str().unwrap().contains(why), "{words}: {end}");
        assert!(end["what"].as_str().unwrap().ends_with(".torrent"), "{words}: {end}");
    }
    let link = format!("magnet:?xt=urn:btih:{}", "7".repeat(40));
    let mut get = place.start(&format!("get {link} {QUIET}"));
    get.says("nobody is to be asked for peers: name a tracker");
    get.interrupt();
    get.end().exits(130);
}

#[test]
fn an_interruption_says_what_is_there() {
    let place = Place::new("interrupted");
    place.write_pattern("film", 100_000);
    place.cede("make film -l 16KiB").exits(0);
    let mut waiting = place.start(&format!("get film.torrent -o out {QUIET}"));
    waiting.says("0 of 7 pieces are here");
    waiting.interrupt();
    waiting.end().exits(130).complains("0 of 7 pieces; the same command goes on");
    // What a silent server is asked for is not waited for.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/film.torrent", silent.local_addr().unwrap());
    for words in [format!("show {url}"), format!("get {url} -o out {QUIET}")] {
        let asking = place.start(&words);
        let _connection = silent.accept().unwrap();
        asking.interrupt();
        asking.end().exits(130).complains("nothing was downloaded");
    }
}

/// What comes while it ends would make the files newer than them, and everything would have to be read again.
#[test]
fn what_is_noted_at_an_interruption_is_of_use() {
    let place = Place::new("noted");
    let (_, _seed, peer) = place.seeded(40_000_000, "");
    // While a tracker is waited for that does not answer, peers go on.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let tracker = format!("http://{}/announce", silent.local_addr().unwrap());
    let options = format!("--peer {peer} -t {tracker} --down 10MB/s");
    let mut download = place.start(&format!("get film.torrent -o out {options} -J {QUIET}"));
    while download.prints("\"event\":\"progress\"")["data"]["pieces"].as_u64().unwrap() < 5 {}
    download.interrupt();
    download.end().exits(130);
    let info = Metainfo::parse(&place.read("film.torrent")).unwrap().info;
    let out = place.path("out");
    let storage = Storage::new(&out, &info, &[]).unwrap();
    let notes = Notes::open(&out, &info.info_hash()).unwrap();
    let missing = notes.missing(storage.layout(), &stamps(&storage));
    let whole = check(&storage, &info, &[], &Watch::default());
    assert!(missing.contains(&true), "nothing is known to be missing");
    assert!(missing.iter().zip(&whole).all(|(is_missing, is_whole)| is_missing != is_whole));
}

/// A single piece of 4 MiB, of which a megabyte had come: that is not fetched again.
#[test]
fn what_has_come_of_a_piece_is_gone_on_with() {
    let place = Place::new("begun");
    let content = place.write_pattern("film", 4 << 20);
    place.cede("make film -l 4MiB").exits(0);
    let mut seed = place.start(&format!("seed film.torrent {QUIET}"));
    let peer = format!("127.0.0.1:{}", port_of(&mut seed));
    let get = |out: &str| format!("get film.torrent -o {out} --peer {peer} -J {QUIET}");
    let received = |data: &Value| data["downloaded"]["tcp"].as_u64().unwrap();
    let interrupted = |out: &str| {
        let mut download = place.start(&format!("{} --down 1MB/s --transport tcp", get(out)));
        download.prints_such(|event| event["event"] == "progress" && received(&event["data"]) > 1_000_000);
        download.interrupt();
        received(&download.end().exits(130).event("end"))
    };
    let first = interrupted("out");
    let mut download = place.start(&format!("{} --transport tcp", get("out")));
    let line = download.says("0 of 1 piece is here, and ");
    let second = received(&download.end().exits(0).event("end"));
    // Blocks that were under way come again.
    let lost = first + second - content.len() as u64;
    assert!(lost < first / 2, "{first} and {second} received, {line}");
    assert_eq!(place.read("out/film"), content);

    // What others have spoilt since is noticed once all of it is there, and nobody is to blame.
    interrupted("spoilt");
    let film = fs::File::options().write(true).open(place.path("spoilt/film")).unwrap();
    film.write_all_at(&[7; 100_000], 0).unwrap();
    let end = place.start(&format!("{} --transport tcp", get("spoilt"))).end().exits(0).event("end");
    assert_eq!((&end["bad_pieces"], &end["banned"]), (&1.into(), &serde_json::json!([])));
    assert_eq!(place.read("spoilt/film"), content);
}

/// Pieces of a file that is there and cannot be used are not given, and whoever gives the rest is told which file that is.
#[test]
fn what_is_there_and_is_not_given_is_named() {
    let place = Place::new("torrent-not-given");
    fs::create_dir(place.path("d")).unwrap();
    place.write_pattern("d/one", 40_000);
    place.write_pattern("d/two", 40_000);
    place.cede("make d -l 16KiB").exits(0);
    let said = || {
        let mut seed = place.start(&format!("seed d.torrent {QUIET}"));
        seed.says("nobody is to be asked");
        seed.interrupt();
        seed.end().exits(130).err
    };
    let words = said();
    assert!(words.contains("5 of 5 pieces are here") && !words.contains("not given:"), "{words}");
    fs::OpenOptions::new().append(true).open(place.path("d/two")).unwrap().write_all(b"more").unwrap();
    let words = said();
    assert!(words.contains("2 of 5 pieces are here"), "{words}");
    assert!(words.contains("not given: cannot open ./d/two: it has 40004 octets"), "{words}");
}

#[test]
fn content_that_is_cut_short_under_a_seed_is_named() {
    let place = Place::new("cut");
    let (_, seed, peer) = place.seeded(100_000, "");
    fs::File::options().write(true).open(place.path("film")).unwrap().set_len(20_000).unwrap();
    let leech = place.start(&format!("get film.torrent -o out --peer {peer} {QUIET}"));
    seed.end().exits(1).complains("shorter than it was").complains("start again");
    drop(leech);
}

#[test]
fn content_that_others_write_to_is_not_given_on_by_who_has_fetched_it_either() {
    let place = Place::new("given-on");
    let (content, seed, peer) = place.seeded(100_000, "");
    let get = |options: &str| place.start(&format!("get film.torrent -o out --seed -J {options} {QUIET}"));
    let is_noticed = |mut giver: Running| {
        let address = format!("127.0.0.1:{}", port_of(&mut giver));
        giver.prints("\"event\":\"complete\"");
        let path = place.path("out/film");
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        let mut file = fs::File::options().write(true).open(&path).unwrap();
        file.write_all(b"something else").unwrap();
        file.set_modified(before + Duration::from_secs(9)).unwrap();
        thread::sleep(Duration::from_millis(1100));
        let leech = place.start(&format!("get film.torrent -o other --peer {address} {QUIET}"));
        giver.end().exits(1).complains("others have written to it").complains("start again");
        drop(leech);
    };
    is_noticed(get(&format!("--peer {peer}")));
    drop(seed);
    fs::write(place.path("out/film"), &content).unwrap();
    is_noticed(get(""));
}

#[test]
fn folders_inside_each_other_are_taken_alike_in_both_versions() {
    let place = Place::new("deep");
    let at = |levels: usize| format!("set/{}film", "d/".repeat(levels));
    for (levels, code) in [(63, 0), (64, 1)] {
        let _ = fs::remove_dir_all(place.path("set"));
        place.write_pattern(&at(levels), 20_000);
        for version in ["", "--v2"] {
            let made = place.cede(&format!("make set -l 16KiB --force {version}")).exits(code);
            if code == 0 {
                let shown = place.cede("show set.torrent --json").exits(0).json();
                let paths = shown["files"].as_array().unwrap().iter().map(|file| &file["path"]);
                assert!(paths.into_iter().any(|path| *path == at(levels)), "{version} {shown}");
            } else {
                made.complains("folders inside each other");
            }
        }
    }
}

#[test]
fn ipv6_works_where_there_is_any() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        println!("SKIPPED: there is no IPv6 loopback");
        return;
    }
    let place = Place::new("ipv6");
    let content = place.write_pattern("film", 100_000);
    place.cede("make film -l 16KiB").exits(0);
    let mut seed = place.start("seed film.torrent --no-dht --no-lsd -p 0 -B ::1");
    let peer = format!("[::1]:{}", port_of(&mut seed));
    for transport in ["tcp", "utp"] {
        let _ = fs::remove_file(place.path("out/film"));
        place
            .cede(&format!(
                "get film.torrent -o out --no-dht --no-lsd -p 0 -B ::1 --transport {transport} --peer {peer}"
            ))
            .exits(0);
        assert_eq!(place.read("out/film"), content);
    }
}

/// A torrent of v2 is made, shown, and comes by file and by link, over either transport.
#[test]
fn torrents_of_v2_are_made_and_come() {
    let place = Place::new("v2");
    fs::create_dir_all(place.path("set/inner")).unwrap();
    let names = ["set/a", "set/b", "set/inner/c", "set/inner/empty"];
    let lengths = [70_000, 20_000_000, 16_384, 0];
    let contents: Vec<_> =
        names.iter().zip(lengths).map(|(name, len)| place.write_pattern(name, len)).collect();
    place.cede("make set --v2 -l 16KiB").exits(0);
    let shown = place.cede("show set.torrent --json").exits(0).json();
    assert_eq!((&shown["version"], &shown["bytes"]), (&"v2".into(), &20_086_384.into()));
    let hash = shown["info_hash_v2"].as_str().unwrap();
    assert_eq!(shown["info_hash"], hash[..40]);
    let mut seed = place.start(&format!("seed set.torrent {QUIET}"));
    let peer = format!("127.0.0.1:{}", port_of(&mut seed));
    let link = format!("magnet:?xt=urn:btmh:1220{hash}");
    for (what, transport) in [("set.torrent", "tcp"), (&*link, "utp")] {
        place.cede(&format!("get {what} -o out --transport {transport} --peer {peer} {QUIET}")).exits(0);
        for (name, content) in names.iter().zip(&contents) {
            assert!(place.read(&format!("out/{name}")) == *content, "{what} {name}");
        }
        fs::remove_dir_all(place.path("out/set")).unwrap();
    }
    // Numbers are those that are shown, and of links: the padding that v2 implies has none.
    let listed = place.cede("show set.torrent").exits(0).text().to_owned();
    assert!(listed.contains("     2   16.4 kB  set/inner/c"), "{listed}");
    let one = format!("{link}&so=2");
    for what in [one.as_str(), "set.torrent --files 2", "set.torrent --files inner/c"] {
        place.cede(&format!("get {what} -o out --peer {peer} {QUIET}")).exits(0);
        assert!(place.read("out/set/inner/c") == contents[2] && !place.path("out/set/b").exists(), "{what}");
        fs::remove_dir_all(place.path("out/set")).unwrap();
    }
}

/// A torrent of two files with padding that is listed between them, beside its content.
fn padded(place: &Place) -> [Vec<u8>; 2] {
    let file = |name: &str, bytes: usize, attr: &str| format!("d{attr}6:lengthi{bytes}e4:pathl1:{name}ee");
    let files = file("a", 1_000, "") + &file("0", 15_384, "4:attr1:p") + &file("b", 2_000, "");
    let [a, b] = [("set/a", 1_000), ("set/b", 2_000)].map(|(name, bytes)| place.write_pattern(name, bytes));
    // What hashes its pieces have is told by that of one file.
    place.write("all", [&a[..], &[0; 15_384], &b].concat());
    place.cede("make all -l 16KiB").exits(0);
    let made = place.read("all.torrent");
    let at = made.windows(9).position(|window| window == b"pieces40:").unwrap() + 9;
    let head = format!("d4:infod5:filesl{files}e4:name3:set12:piece lengthi16384e6:pieces40:");
    place.write("set.torrent", [head.as_bytes(), &made[at..at + 40], b"ee"].concat());
    [a, b]
}

/// Padding that a torrent lists has numbers, as other clients count it, and is no content that anybody can want.
#[test]
fn padding_that_is_listed_cannot_be_picked() {
    let place = Place::new("padding");
    let [_, b] = padded(&place);
    let mut seed = place.start(&format!("seed set.torrent {QUIET}"));
    let peer = format!("127.0.0.1:{}", port_of(&mut seed));
    let shown = place.cede("show set.torrent --json").exits(0).json();
    let link = format!("magnet:?xt=urn:btih:{}", shown["info_hash"].as_str().unwrap());
    let picked = ["set.torrent --files 1".to_owned(), format!("{link}&so=1")];
    for (what, why) in picked.iter().zip(["--files '1'", "so="]) {
        place.cede(&format!("get {what} -o out --peer {peer} {QUIET}")).exits(2).complains(why);
    }
    // Of what stands beside it nothing comes along.
    for what in ["set.torrent --files 1-2".to_owned(), format!("{link}&so=1-2")] {
        let told = place.cede(&format!("get {what} -o out --peer {peer} --json {QUIET}")).exits(0);
        let came = told.event("end")["downloaded"].clone();
        assert_eq!(came["tcp"].as_u64().unwrap() + came["utp"].as_u64().unwrap(), 2_000, "{what}");
        assert!(place.read("out/set/b") == b && !place.path("out/set/a").exists(), "{what}");
        fs::remove_dir_all(place.path("out/set")).unwrap();
    }
    // Whoever picks all that is none has everything, and needs no ends of pieces that were kept before.
    place.write(&format!("out/.{}.cede-parts", shown["info_hash"].as_str().unwrap()), b"ends");
    place.cede(&format!("get set.torrent --files 0,2 -o out --peer {peer} {QUIET}")).exits(0);
    let left = fs::read_dir(place.path("out")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["set"]);
}

/// A torrent of v2 whose pieces' hashes are missing or wrong is not used.
#[test]
fn hashes_of_v2_that_are_not_those_of_the_file_are_refused() {
    let place = Place::new("layers");
    place.write_pattern("film", 40_000);
    place.cede("make film --v2 -l 16KiB").exits(0);
    let good = place.read("film.torrent");
    let at = good.windows(12).position(|window| window == b"piece layers").unwrap();
    let (mut wrong, mut none) = (good.clone(), good[..at - 3].to_vec());
    wrong[at + 60] ^= 1;
    none.push(b'e');
    place.write("wrong.torrent", wrong);
    place.write("none.torrent", none);
    place.cede("show wrong.torrent").exits(1).complains("piece layers");
    let shown = place.cede("show none.torrent").exits(0).text().to_owned();
    assert!(shown.contains("without the hashes of its pieces"), "{shown}");
    place.cede(&format!("get none.torrent -o out {QUIET}")).exits(1).complains("lacks the hashes");
}

/// A leecher that is told of one peer hears of the seed from that one.
#[test]
fn peers_tell_of_peers() {
    let place = Place::new("pex");
    let (content, _seed, seed) = place.seeded(800_000, "--up 150kB/s --no-pex");
    fs::create_dir(place.path("other")).unwrap();
    let between = format!("get film.torrent -o other --seed --peer {seed} --json {QUIET}");
    let mut between = place.start(&between);
    let known = format!("127.0.0.1:{}", port_of(&mut between));
    // It is connected to the seed before the other comes.
    between.prints(&seed);
    let mut last = place.start(&format!("get film.torrent -o out --peer {known} --json {QUIET}"));
    last.prints(&seed);
    last.end().exits(0);
    assert_eq!(place.read("out/film"), content);
}

/// Neither tracker nor peer is named: a table of the test's own knows the seed, for a file and for a link, and for a file that names a
/// node itself.
#[test]
fn the_hash_table_leads_to_peers() {
    let Ok(table) = mainline::Testnet::builder(5).build() else {
        println!("SKIPPED: no sockets for a table");
        return;
    };
    let place = Place::new("dht");
    let content = place.write_pattern("film", 300_000);
    place.cede("make film -l 16KiB").exits(0);
    let shown = place.cede("show film.torrent --json").exits(0).json();
    let node = &table.bootstrap[0];
    let mut seed = place.start(&format!("seed film.torrent -p 0 -B 127.0.0.1 --dht-node {node}"));
    let port = port_of(&mut seed);
    let hash = shown["info_hash"].as_str().unwrap();
    let digits = |at: usize| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap();
    until_known(&table.bootstrap, std::array::from_fn(digits), port);
    let (host, dht_port) = node.rsplit_once(':').unwrap();
    let mut named = place.read("film.torrent");
    named.pop();
    named.extend(format!("5:nodesll{}:{host}i{dht_port}eeee", host.len()).into_bytes());
    fs::write(place.path("named.torrent"), named).unwrap();
    let shown_named = place.cede("show named.torrent").exits(0);
    assert!(shown_named.text().contains(&format!("DHT node      {node}")), "{}", shown_named.text());
    let link = shown["magnet"].as_str().unwrap();
    for (what, node) in [("film.torrent", &node[..]), (link, node), ("named.torrent", "127.0.0.1:9")] {
        let _ = fs::remove_file(place.path("out/film"));
        place.cede(&format!("get {what} -o out -p 0 -B 127.0.0.1 --dht-node {node}")).exits(0);
        assert_eq!(place.read("out/film"), content, "{what}");
    }
}

/// Whoever has a node of the table is told where ours listens (BEP 5), and nobody else.
#[test]
fn peers_that_have_a_node_of_the_table_hear_of_ours() {
    let free = support::free_port();
    let place = Place::new("dht-port");
    place.write_pattern("film", 30_000);
    place.cede("make film -l 16KiB").exits(0);
    let shown = place.cede("show film.torrent --json").exits(0).json();
    let hash = shown["info_hash"].as_str().unwrap();
    let hash: [u8; 20] = std::array::from_fn(|at| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap());
    // Nobody answers at the node that is named.
    let node = format!("--no-lsd -B 127.0.0.1 --dht-node 127.0.0.1:9 --dht-port {free}");
    place.cede(&format!("seed film.torrent --no-dht {node}")).exits(2).complains("--dht-port");
    let mut seed = place.start(&format!("seed film.torrent -p 0 {node}"));
    let port = port_of(&mut seed);
    let began = std::time::Instant::now();
    while !greeted(port, hash, true).0 {
        assert!(began.elapsed() < support::PATIENCE, "its handshake never says that it has a node");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(greeted(port, hash, true), (true, Some(free)));
    assert_eq!(greeted(port, hash, false), (true, None));
    seed.interrupt();
    seed.end().exits(130);
    // The system chooses.
    let node = node.replace(&format!("--dht-port {free}"), "--dht-port 0");
    let mut seed = place.start(&format!("seed film.torrent -p 0 {node}"));
    let port = port_of(&mut seed);
    let began = std::time::Instant::now();
    let chosen = loop {
        assert!(began.elapsed() < support::PATIENCE, "its handshake never says that it has a node");
        if let (true, chosen) = greeted(port, hash, true) {
            break chosen;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert!(chosen.is_some_and(|chosen| chosen != 0), "{chosen:?}");
}

/// A peer's node is asked whether it is there, so that a table is entered through a peer alone; not one that is told of in a private
/// torrent (BEP 27).
#[test]
fn nodes_that_peers_tell_of_are_asked() {
    let place = Place::new("dht-told");
    let mut ports = Vec::new();
    for (name, options) in [("film", ""), ("own", "--private")] {
        place.write_pattern(name, 30_000);
        place.cede(&format!("make {name} -l 16KiB {options}")).exits(0);
        let node = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        node.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        let shown = place.cede(&format!("show {name}.torrent --json")).exits(0).json();
        let hash = shown["info_hash"].as_str().unwrap().to_owned();
        let hash: [u8; 20] =
            std::array::from_fn(|at| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap());
        ports.push((hash, node));
    }
    let words = "seed own.torrent film.torrent -p 0 --no-lsd -B 127.0.0.1 --dht-node 127.0.0.1:9";
    let mut seed = place.start(words);
    let port = port_of(&mut seed);
    let is_asked = |node: &std::net::UdpSocket| {
        let mut octets = [0; 1024];
        node.recv(&mut octets).is_ok_and(|len| octets[..len].windows(9).any(|part| part == b"1:q4:ping"))
    };
    let began = std::time::Instant::now();
    // The private one's peer has told of its node before, each time.
    while !is_asked(&ports[0].1) {
        assert!(began.elapsed() < support::PATIENCE, "nobody asks");
        for (hash, node) in ports.iter().rev() {
            tell_of_node(port, *hash, node.local_addr().unwrap().port());
        }
    }
    assert!(!is_asked(&ports[1].1));
}

/// A peer that has a node of the table there comes to the one at this port.
fn tell_of_node(port: u16, info_hash: [u8; 20], node: u16) {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    let [high, low] = node.to_be_bytes();
    let handshake =
        [b"\x13BitTorrent protocol", &[0, 0, 0, 0, 0, 0, 0, 1][..], &info_hash, b"-XX0001-abcdefghijkl"];
    // Until the other end has said something, or hung up, as before it is ready.
    let _ = stream.write_all(&[&handshake.concat()[..], &[0, 0, 0, 3, 9, high, low]].concat());
    let _ = stream.read_exact(&mut [0; 73]);
}

/// Whether the one at this port has a node of the table, and where it says that it is, to a peer that has one or has none.
fn greeted(port: u16, info_hash: [u8; 20], has_node: bool) -> (bool, Option<u16>) {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    let reserved = [0, 0, 0, 0, 0, 0, 0, u8::from(has_node)];
    let handshake = [b"\x13BitTorrent protocol", &reserved[..], &info_hash, b"-XX0001-abcdefghijkl"].concat();
    stream.write_all(&handshake).unwrap();
    let mut heard = [0; 68];
    stream.read_exact(&mut heard).unwrap();
    let has_one_too = heard[27] & 1 == 1;
    let (mut told, mut head) = (None, [0; 5]);
    // Where it has something to tell, until it has; and where it has not, until it says nothing more for a while.
    if !(has_node && has_one_too) {
        stream.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    }
    while !(has_node && told.is_some()) && stream.read_exact(&mut head).is_ok() {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut body = vec![0; length - 1];
        stream.read_exact(&mut body).unwrap();
        if head[4] == 9 {
            told = body.try_into().ok().map(u16::from_be_bytes);
        }
    }
    (has_one_too, told)
}

/// Waits until the table knows that somebody at this port has it.
fn until_known(nodes: &[String], info_hash: [u8; 20], port: u16) {
    let asker = mainline::Dht::builder().bootstrap(nodes).build().unwrap();
    let began = std::time::Instant::now();
    #[allow(deprecated, reason = "the other way needs an executor, and this thread has none")]
    while !asker.get_peers(info_hash.into()).flatten().any(|peer| peer.port() == port) {
        assert!(began.elapsed() < support::PATIENCE, "nobody has told the table");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Where a torrent's peers are to come from its trackers alone, the table hears of nobody, and whom it names is not asked for
/// content: only for the metadata, without which nobody knows that it is private.
#[test]
fn a_private_torrent_behind_a_link_is_not_told_to_the_table() {
    let Ok(table) = mainline::Testnet::builder(5).build() else {
        println!("SKIPPED: no sockets for a table");
        return;
    };
    let place = Place::new("dht-private");
    let content = place.write_pattern("film", 100_000);
    place.cede("make film -l 16KiB --private").exits(0);
    let mut seed = place.start(&format!("seed film.torrent {QUIET}"));
    let port = port_of(&mut seed);
    let magnet =
        place.cede("show film.torrent --json").exits(0).json()["magnet"].as_str().unwrap().to_owned();
    let shown = place.cede("show film.torrent --json").exits(0).json();
    let digits =
        |at: usize| u8::from_str_radix(&shown["info_hash"].as_str().unwrap()[2 * at..2 * at + 2], 16);
    let hash: [u8; 20] = std::array::from_fn(|at| digits(at).unwrap());
    let teller = mainline::Dht::builder().bootstrap(&table.bootstrap).build().unwrap();
    #[allow(deprecated, reason = "the other way needs an executor, and this thread has none")]
    teller.announce_peer(hash.into(), Some(port)).unwrap();
    until_known(&table.bootstrap, hash, port);
    let node = &table.bootstrap[0];
    let options = format!("-o out -p 0 -B 127.0.0.1 --dht-node {node}");
    let mut waiting = place.start(&format!("get {magnet} {options}"));
    let waits_at = port_of(&mut waiting);
    waiting.says("nobody is to be asked for peers");
    // Time in which it would have been told of, and would have fetched what is a moment's work.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let asker = mainline::Dht::builder().bootstrap(&table.bootstrap).build().unwrap();
    #[allow(deprecated, reason = "the other way needs an executor, and this thread has none")]
    let known: Vec<u16> = asker.get_peers(hash.into()).flatten().map(|peer| peer.port()).collect();
    assert!(known.contains(&port) && !known.contains(&waits_at), "{known:?}");
    waiting.interrupt();
    waiting.end().exits(130).complains("0 of 7 pieces");
    // Who is named by hand is asked.
    place.cede(&format!("get {magnet} {options} --peer 127.0.0.1:{port}")).exits(0);
    assert_eq!(place.read("out/film"), content);
}

/// Whoever looks for a link's torrent is a peer to trackers; one that leaves says so, and one that has found it stays the same.
#[test]
fn trackers_hear_when_a_link_is_given_up() {
    let place = Place::new("goodbye");
    let mut tracker = place.start("tracker -p 0 -B 127.0.0.1 --json");
    let port = port_of_tracker(&mut tracker);
    let link = format!("magnet:?xt=urn:btih:{}&tr=http://127.0.0.1:{port}/announce", "5a".repeat(20));
    let waiting = place.start(&format!("get {link} -o out {QUIET}"));
    let started = tracker.prints("started");
    waiting.interrupt();
    waiting.end().exits(130);
    let stopped = tracker.prints("stopped");
    assert_eq!((&stopped["peer_id"], &stopped["peer"]), (&started["peer_id"], &started["peer"]));

    let (_, _seed, peer) = place.seeded(100_000, "");
    let magnet =
        place.cede("show film.torrent --json").exits(0).json()["magnet"].as_str().unwrap().to_owned();
    place
        .cede(&format!("get {magnet}&tr=http://127.0.0.1:{port}/announce -o out --peer {peer} {QUIET}"))
        .exits(0);
    let started = tracker.prints("started");
    assert_eq!(tracker.prints("stopped")["peer_id"], started["peer_id"]);
    // Nothing begins where the files that are asked for are not there.
    let words =
        format!("get {magnet}&tr=http://127.0.0.1:{port}/announce -o out --files 7 --peer {peer} {QUIET}");
    place.cede(&words).exits(2);
    let started = tracker.prints("started");
    assert_eq!(tracker.prints("stopped")["peer_id"], started["peer_id"]);
}

/// What the search behind a link has said to a tracker that is slow comes before the goodbye of the download that followed, which would
/// leave a peer on its list else.
#[test]
fn a_goodbye_comes_last_whatever_a_search_has_begun_to_say() {
    let place = Place::new("ghost");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, events) = mpsc::channel();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let heard = heard.clone();
            thread::spawn(move || answer_slowly(stream, number == 0, &heard));
        }
    });
    let (_, _seed, peer) = place.seeded(50_000, "");
    let shown = place.cede("show film.torrent --json").exits(0).json();
    let link = format!("{}&tr=http://127.0.0.1:{port}/announce", shown["magnet"].as_str().unwrap());
    place.cede(&format!("get {link} -o out --peer {peer} {QUIET}")).exits(0);
    let mut all = Vec::new();
    while let Ok(event) = events.recv_timeout(Duration::from_secs(2)) {
        all.push(event);
    }
    assert_eq!((all.first(), all.last()), (Some(&"started"), Some(&"stopped")), "{all:?}");
}

/// Hears of an announce, the first one late, and answers it.
fn answer_slowly(mut stream: TcpStream, is_late: bool, heard: &mpsc::Sender<&'static str>) {
    let mut request = [0; 4096];
    let n = stream.read(&mut request).unwrap();
    let request = String::from_utf8_lossy(&request[..n]).into_owned();
    if is_late {
        thread::sleep(Duration::from_millis(1_500));
    }
    let event = ["started", "completed", "stopped"].into_iter().find(|event| request.contains(event));
    let _ = heard.send(event.unwrap_or("none"));
    let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nd8:intervali60e5:peers0:e");
}

/// A hybrid torrent is shown with both names, and comes by its v1 side, whichever name it is called by.
#[test]
fn hybrid_torrents_come_by_their_v1_side() {
    let place = Place::new("hybrid");
    let content = place.write_pattern("film", 40_000);
    place.cede("make film -l 16KiB").exits(0);
    let v1 = place.read("film.torrent");
    let at = |what: &[u8]| v1.windows(what.len()).position(|window| window == what).unwrap();
    let (info, name) = (at(b"4:infod") + 7, at(b"4:name4:film"));
    let tree = [&b"9:file treed4:filmd0:d6:lengthi40000e11:pieces root32:"[..], &[7; 32], b"eee"].concat();
    let hybrid = [&v1[..info], &tree, &v1[info..name], b"12:meta versioni2e", &v1[name..]].concat();
    place.write("film.torrent", hybrid);
    let shown = place.cede("show film.torrent --json").exits(0).json();
    assert_eq!(
        (&shown["version"], shown["info_hash_v2"].as_str().map(str::len)),
        (&"hybrid".into(), Some(64))
    );
    let mut seed = place.start(&format!("seed film.torrent {QUIET}"));
    let peer = format!("127.0.0.1:{}", port_of(&mut seed));
    let got = place.cede(&format!("get film.torrent -o out --peer {peer} {QUIET}")).exits(0);
    got.complains("v2 hashes are not checked");
    assert_eq!(place.read("out/film"), content);
    let link = format!("magnet:?xt=urn:btmh:1220{}", shown["info_hash_v2"].as_str().unwrap());
    for encryption in ["off", "require"] {
        fs::remove_file(place.path("out/film")).unwrap();
        let words = format!("get {link} -o out --peer {peer} --encryption {encryption} {QUIET}");
        place.cede(&words).exits(0);
        assert_eq!(place.read("out/film"), content, "by its v2 hash alone, encryption {encryption}");
    }
}

/// What a damaged torrent, a link without sense, a taken port or a folder that takes no files do.
#[test]
fn bad_input_ends_with_a_reason() {
    let place = Place::new("bad");
    place.write_pattern("film", 40_000);
    place.cede("make film -l 16KiB").exits(0);
    let whole = place.read("film.torrent");
    place.write("cut.torrent", &whole[..whole.len() / 2]);
    place.cede("show cut.torrent").exits(1).complains("cut.torrent");
    place.cede(&format!("get cut.torrent -o out {QUIET}")).exits(1).complains("cut.torrent");
    place.cede(&format!("get film.torrent -o film {QUIET}")).exits(2).complains("film");
    let name = b"4:name4:film";
    let at = whole.windows(name.len()).position(|window| window == name).unwrap();
    for bad in ["..", "a/b", ".", ""] {
        let named = format!("4:name{}:{bad}", bad.len());
        place.write("bad.torrent", [&whole[..at], named.as_bytes(), &whole[at + name.len()..]].concat());
        place.cede(&format!("get bad.torrent -o out {QUIET}")).exits(1).complains("bad.torrent");
    }
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 0, "nothing was written");
    for link in ["magnet:?dn=film", "magnet:?xt=urn:btih:123", "magnet:"] {
        place.cede(&format!("get {link} -o out {QUIET}")).exits(2).complains("magnet");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for verb in
        ["get film.torrent -o out --no-dht --no-lsd", "seed film.torrent --no-dht --no-lsd", "tracker"]
    {
        place.cede(&format!("{verb} -B 127.0.0.1 -p {port}")).exits(1).complains("0 for a free one");
    }
    for verb in ["get film.torrent", "seed film.torrent", "tracker"] {
        place.cede(&format!("{verb} -B eth0")).exits(2).complains("such as 192.0.2.1");
    }
    // A file where the folder of the content should be.
    place.write("photos/a", "x");
    place.cede("make photos").exits(0);
    place.write("out/photos", "in the way");
    place.cede(&format!("get photos.torrent -o out --preallocate {QUIET}")).exits(1).complains("photos");
    // A longer file than the torrent's: nobody is called, and nothing is left beside it.
    place.write("long/film", vec![0; 50_000]);
    place.cede(&format!("get film.torrent -o long {QUIET}")).exits(1).complains("move it away");
    assert_eq!(fs::read_dir(place.path("long")).unwrap().count(), 1);
}

/// Each of them came under another name to libtorrent 2.0.8 or Transmission 3.00, and the others did not.
#[test]
fn names_that_others_change_are_told() {
    let place = Place::new("changed");
    let long = "n".repeat(241);
    let changed =
        ["what?", "a:b", "say \"x\"", "a|b", "<a>", "a*", "\u{202e}gnp", "Film", "film", long.as_str()];
    let kept = ["films", " a", "a.", "a'b", "-a", "\u{e9}", &long[1..]];
    changed.iter().chain(&kept).for_each(|name| place.write(&format!("set/sub/{name}"), "x"));
    let (code, _, told) = place.cede("make set").told();
    assert_eq!(code, 0, "{told}");
    for name in changed {
        let shown = name.replace('\u{202e}', "\u{fffd}");
        assert!(told.contains(&format!("the name of set/sub/{shown}\n")), "{name}: {told}");
    }
    assert_eq!(told.matches("some clients").count(), changed.len(), "{told}");
}

/// Odd names, links that say too much, and a torrent that is made where it lies.
#[test]
fn odd_names_and_links_are_taken_and_nothing_at_all_is_no_success() {
    let place = Place::new("odd");
    let name = "a\\b\u{202e}\u{1b}[31m";
    let content = place.write_pattern(&format!("set/{name}"), 40_000);
    place.cede("make set -l 16KiB -o set/set.torrent").exits(0).complains("some clients");
    let first = place.cede("show set/set.torrent --json").exits(0).json();
    place.cede("make set -l 16KiB -o set/set.torrent --force --no-date").exits(0).complains("to be replaced");
    let second = place.cede("show set/set.torrent --json").exits(0).json();
    assert_eq!(first["info_hash"], second["info_hash"], "the torrent is no part of itself");
    let (code, shown, _) = place.cede("show set/set.torrent").told();
    assert!(code == 0 && shown.contains("a\\b") && !shown.contains(['\u{202e}', '\u{1b}']), "{shown}");
    let mut seed = place.start(&format!("seed set/set.torrent {QUIET}"));
    let peer = format!("127.0.0.1:{}", port_of(&mut seed));
    let hash = first["info_hash"].as_str().unwrap();
    for what in [hash.to_owned(), format!("magnet:?xt=urn:btih:{hash}&amp;dn=x&amp;x.pe={peer}")] {
        place.cede(&format!("get {what} -o out --peer {peer} {QUIET}")).exits(0);
        assert_eq!(place.read(&format!("out/set/{name}")), content, "{what}");
        fs::remove_dir_all(place.path("out/set")).unwrap();
    }
    let link = format!("magnet:?xt=urn:btih:{hash}&x.pe={peer}");
    let other = format!("{link}&xt=urn:btmh:1220{}", "ab".repeat(32));
    place.cede(&format!("get {other} -o out {QUIET}")).exits(1).complains("not one torrent's");
    assert!(!place.path("out/set").exists());
    place.cede(&format!("get {link}&so=7 -o out {QUIET}")).exits(2).complains("so=");
    place.cede(&format!("get {link} -o out {QUIET} --transport 12")).exits(2).complains("--transport");
    place
        .cede(&format!("get set/set.torrent -o out --peer {peer} {QUIET} --transport 1"))
        .exits(0)
        .complains("no peer can call us");
}

/// BEP 47, from one folder to another.
#[cfg(unix)]
#[test]
fn programs_stay_programs_and_can_be_left_unsaid() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("programs");
    place.write_pattern("tools/run", 40_000);
    place.write_pattern("tools/text", 40_000);
    let set = |mode| fs::set_permissions(place.path("tools/run"), fs::Permissions::from_mode(mode)).unwrap();
    let made = |options: &str| {
        let made = place.cede(&format!("make tools -l 16KiB --force --json {options}")).exits(0).json();
        made["info_hash"].as_str().unwrap().to_owned()
    };
    set(0o644);
    let plain = made("");
    set(0o755);
    assert_eq!(made("--no-attributes"), plain);
    assert_ne!(made(""), plain);
    let shown = place.cede("show tools.torrent").exits(0).text().to_owned();
    assert!(shown.contains("*tools/run") && shown.contains(" tools/text"), "{shown}");
    let shown = place.cede("show tools.torrent --json").exits(0).json();
    assert_eq!(
        (&shown["files"][0]["executable"], &shown["files"][1]["executable"]),
        (&true.into(), &false.into())
    );
    let mut seed = place.start(&format!("seed tools.torrent {QUIET}"));
    let peer = format!("127.0.0.1:{}", port_of(&mut seed));
    place.cede(&format!("get tools.torrent -o out --peer {peer} {QUIET}")).exits(0);
    let is_executable =
        |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o100 != 0;
    assert!(is_executable("out/tools/run") && !is_executable("out/tools/text"));
}

/// A tracker behind a certificate that is vouched for is asked; one behind any other is not.
#[test]
fn trackers_are_asked_over_https() {
    let place = Place::new("https");
    let make = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=tracker \
                -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    let made = std::process::Command::new("openssl")
        .args(make.split_whitespace())
        .current_dir(place.path(""))
        .output();
    let python = std::process::Command::new("python3").args(["-c", "import ssl"]).status();
    if !made.is_ok_and(|made| made.status.success()) || !python.is_ok_and(|status| status.success()) {
        println!("SKIPPED: openssl and python3 with ssl are needed for a tracker over TLS");
        return;
    }
    place.write("tracker.py", TLS_TRACKER);
    let mut tracker = std::process::Command::new("python3");
    let mut tracker = Running::begin(tracker.arg("tracker.py").current_dir(place.path("")));
    let port = tracker.prints("port")["port"].as_u64().unwrap();
    let (content, _seed, peer) = place.seeded(100_000, "");
    let words =
        format!("torrent get film.torrent -o out -t https://127.0.0.1:{port}/announce --peer {peer} {QUIET}");
    let get = |roots: Option<&str>| {
        let _ = fs::remove_file(place.path("out/film"));
        let mut command = place.command(words.split_whitespace());
        command.env_remove("SSL_CERT_FILE");
        if let Some(roots) = roots {
            command.env("SSL_CERT_FILE", roots);
        }
        let done = Running::begin(&mut command).end().exits(0);
        assert_eq!(place.read("out/film"), content);
        done
    };
    // A web seed is believed by the same certificates.
    place.cede(&format!("make film -o web.torrent --web-seed https://127.0.0.1:{port}/film")).exits(0);
    let begin = |roots: &str| {
        let mut command =
            place.command(format!("torrent get web.torrent -o out --json {QUIET}").split_whitespace());
        Running::begin(command.env("SSL_CERT_FILE", roots))
    };
    assert_eq!(begin("cert.pem").end().exits(0).event("end")["downloaded"]["web"], 100_000);
    assert_eq!(place.read("out/film"), content);
    fs::remove_file(place.path("out/film")).unwrap();
    place.write("none.pem", "");
    let mut doubted = begin("none.pem");
    doubted.says("web seed https");
    doubted.interrupt();
    doubted.end().exits(130).complains("0 of 7 pieces");
    get(Some("cert.pem"));
    let asked = tracker.prints("started");
    assert!(asked["path"].as_str().unwrap().starts_with("/announce?info_hash="), "{asked}");
    get(None);
}

const TLS_TRACKER: &str = r#"
import http.server, json, ssl
class Tracker(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(json.dumps({"path": self.path}), flush=True)
        body = open("film", "rb").read() if self.path == "/film" else b"d8:intervali1800e5:peers0:e"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tracker)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(json.dumps({"port": server.server_address[1]}), flush=True)
server.serve_forever()
"#;

/// A server of one file, in ranges where they are asked for, until the process ends; its port.
fn serve_file(content: Vec<u8>) -> u16 {
    use std::io::{BufRead, BufReader};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let converse = move |mut stream: &std::net::TcpStream, content: &[u8]| {
        let (mut lines, mut range) = (BufReader::new(stream).lines(), None);
        while let Some(Ok(line)) = lines.next() {
            let line = line.to_ascii_lowercase();
            if let Some((from, to)) = line.strip_prefix("range: bytes=").and_then(|it| it.split_once('-')) {
                range = Some((from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap()));
            }
            if !line.is_empty() {
                continue;
            }
            let (from, to) = range.unwrap_or((0, content.len() - 1));
            let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Range: bytes {from}-{to}/{}\r\nContent-Length: {}\r\n\r\n",
                content.len(),
                to + 1 - from
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content[from..=to]));
        }
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let content = content.clone();
            std::thread::spawn(move || converse(&stream, &content));
        }
    });
    port
}

#[test]
fn what_is_at_a_url_is_shown_as_what_is_in_a_file() {
    let place = Place::new("url");
    place.write_pattern("film", 40_000);
    place.cede("make film -l 16KiB").exits(0);
    let shown = place.cede("show film.torrent --json").exits(0).json();
    let port = serve_file(fs::read(place.path("film.torrent")).unwrap());
    assert_eq!(place.cede(&format!("show http://127.0.0.1:{port}/a --json")).exits(0).json(), shown);
    let port = serve_file(b"no torrent".to_vec());
    place.cede(&format!("show http://127.0.0.1:{port}/a")).exits(1).complains("http://127.0.0.1");
    place.cede("show http://127.0.0.1:1/a").exits(1).complains("http://127.0.0.1:1/a: cannot be fetched: ");
    place.cede("show ftp://127.0.0.1/a").exits(2).complains("http");
}

/// Whoever is asked is not asked past it, and sees nothing of us.
#[test]
fn a_proxy_that_cannot_be_used_is_not_passed_over() {
    let place = Place::new("proxy");
    place.write_pattern("film", 40_000);
    place.cede("make film -l 16KiB").exits(0);
    let port = serve_file(fs::read(place.path("film.torrent")).unwrap());
    let show = |proxy: &str| {
        let url = format!("http://127.0.0.1:{port}/a");
        let mut command = place.command(["torrent", "show", url.as_str()]);
        command.env("ALL_PROXY", proxy).env_remove("NO_PROXY").env_remove("no_proxy");
        Running::begin(&mut command).end()
    };
    show("http://127.0.0.1:1").exits(1).complains("refused");
    show("socks5://127.0.0.1:1").exits(1).complains("refused");
    show("gopher://127.0.0.1:1").exits(1).complains("ALL_PROXY names no proxy that can be used");
    show("").exits(0);
}

/// A proxy is mostly on this machine, and asks what is there as readily as we would.
#[test]
fn a_torrents_tracker_on_this_machine_is_not_asked_by_a_proxy_either() {
    let place = Place::new("proxy-home");
    place.write_pattern("film", 40_000);
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let port = proxy.local_addr().unwrap().port();
    for tracker in ["http://127.0.0.1:1/reboot", "http://127.1:1/reboot", "http://localhost:1/reboot"] {
        place.cede(&format!("make film -l 16KiB -t {tracker} --force")).exits(0);
        let words = format!("torrent get film.torrent -o out --json {QUIET}");
        let mut command = place.command(words.split(' '));
        command
            .env("ALL_PROXY", format!("http://127.0.0.1:{port}"))
            .env_remove("NO_PROXY")
            .env_remove("no_proxy");
        let mut get = Running::begin(&mut command);
        get.says("at /announce alone");
        get.interrupt();
        get.end().exits(130);
        assert_eq!(proxy.accept().map(drop).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{tracker}");
    }
}

/// By file and by link, with peers and without, interrupted or not.
#[test]
fn servers_that_a_torrent_names_are_used_unless_they_are_not_wanted() {
    let place = Place::new("web");
    let content = place.write_pattern("film", 1_000_000);
    let port = serve_file(content.clone());
    place.cede(&format!("make film -l 16KiB --private --web-seed http://127.0.0.1:{port}/")).exits(0);
    let shown = place.cede("show film.torrent --json").exits(0).json();
    assert_eq!(shown["web_seeds"][0], format!("http://127.0.0.1:{port}/"));
    let magnet = shown["magnet"].as_str().unwrap();
    assert!(magnet.contains("ws=http"), "{magnet}");
    let mut seed = place.start(&format!("seed film.torrent {QUIET} --up 100kB/s"));
    let peer = format!("127.0.0.1:{}", port_of(&mut seed));
    for what in ["film.torrent".to_owned(), format!("{magnet} --peer {peer}")] {
        let _ = fs::remove_file(place.path("out/film"));
        let end = place.cede(&format!("get {what} -o out --json {QUIET}")).exits(0).event("end");
        assert_eq!(place.read("out/film"), content, "{what}");
        assert!(end["downloaded"]["web"].as_u64().unwrap() > 500_000, "{end}");
    }
    let _ = fs::remove_file(place.path("out/film"));
    let words = format!("get film.torrent -o out --json {QUIET}");
    let mut slow = place.start(&format!("{words} --down 200kB/s"));
    let half =
        slow.prints_such(|line| line["event"] == "progress" && line["data"]["pieces"].as_u64() > Some(5));
    assert_eq!(half["data"]["web_seeds"][0], shown["web_seeds"][0]);
    slow.interrupt();
    slow.end().exits(130);
    let end = place.cede(&words).exits(0).event("end");
    assert_eq!(place.read("out/film"), content);
    assert!(end["downloaded"]["web"].as_u64().unwrap() < 950_000, "{end}");
    let _ = fs::remove_file(place.path("out/film"));
    let mut without = place.start(&format!("get film.torrent -o out --no-web-seeds {QUIET}"));
    without.says("nobody is to be asked for peers");
    std::thread::sleep(std::time::Duration::from_secs(1));
    without.interrupt();
    without.end().exits(130).complains("0 of 62 pieces");
    place.cede("make film --force --web-seed ftp://127.0.0.1/film").exits(2).complains("http");
}
