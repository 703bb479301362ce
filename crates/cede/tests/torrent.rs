//! `cede torrent` as its users meet it: the program against itself on the loopback. Ports are free ones, read from what the
//! program says; every wait has an end, and times are only ever bounded from below.

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// An empty folder that is gone afterwards.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("torrent-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("out")).unwrap();
        Self(path)
    }

    fn start(&self, words: &str) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cede"));
        command.arg("torrent").args(words.split_whitespace()).current_dir(&self.0);
        command.env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1").stdin(Stdio::null());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running::new(child, words.to_owned())
    }

    fn cede(&self, words: &str) -> Finished {
        self.start(words).end()
    }

    fn write(&self, name: &str, bytes: usize) -> Vec<u8> {
        let octets: Vec<u8> =
            (0..bytes as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &octets).unwrap();
        octets
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A torrent of `film`, and who gives it: the address to name.
    fn seeded(&self, bytes: usize, options: &str) -> (Vec<u8>, Running, String) {
        let content = self.write("film", bytes);
        self.cede("make film -l 16KiB").exits(0);
        let mut seed = self.start(&format!("seed film.torrent --no-dht -p 0 -B 127.0.0.1 {options}"));
        let address = format!("127.0.0.1:{}", seed.port());
        (content, seed, address)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A `cede` that runs; it does not outlive the test.
struct Running {
    child: Child,
    name: String,
    out: Receiver<String>,
    err: Receiver<String>,
    said: Vec<String>,
}

struct Finished {
    code: Option<i32>,
    out: Vec<String>,
    err: String,
}

fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (into, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = into.send(line);
        }
    });
    lines
}

/// The first line that has this in it.
fn until(lines: &Receiver<String>, said: &mut Vec<String>, name: &str, what: &str) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let line = lines.recv_timeout(end.saturating_duration_since(Instant::now()));
        let line = line.unwrap_or_else(|_| panic!("{name}: no \"{what}\" in {said:?}"));
        said.push(line.clone());
        if line.contains(what) {
            return line;
        }
    }
}

impl Running {
    fn new(mut child: Child, name: String) -> Self {
        let (out, err) = (lines_of(child.stdout.take().unwrap()), lines_of(child.stderr.take().unwrap()));
        Self { child, name, out, err, said: Vec::new() }
    }

    fn says(&mut self, what: &str) -> String {
        until(&self.err, &mut self.said, &self.name, what)
    }

    fn prints(&mut self, what: &str) -> Value {
        serde_json::from_str(&until(&self.out, &mut self.said, &self.name, what)).unwrap()
    }

    fn port(&mut self) -> u16 {
        let line = self.says("port ");
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    fn end(mut self) -> Finished {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "{} does not end; it said {:?}", self.name, self.said);
            thread::sleep(Duration::from_millis(10));
        };
        let out = self.out.iter().collect();
        let err = self.said.drain(..).chain(self.err.iter()).collect::<Vec<_>>().join("\n");
        Finished { code: status.code(), out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{:?}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn explains(&self, what: &str) {
        assert!(self.err.contains(what), "no \"{what}\" in: {}", self.err);
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out.join("\n")).unwrap()
    }

    fn event(&self, name: &str) -> Value {
        let lines = self.out.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut found = lines.filter(|line| line["event"] == name);
        found.next().unwrap_or_else(|| panic!("no event {name}: {:?}", self.out))["data"].clone()
    }
}

const QUIET: &str = "--no-dht -p 0 -B 127.0.0.1";

#[test]
fn a_torrent_is_made_and_shown() {
    let place = Place::new("make");
    place.write("photos/a.jpg", 40_000);
    place.write("photos/more/b.jpg", 5);
    let words = "make photos -l 16KiB -t http://a.example/announce -t udp://b.example:6969 --private --comment hello --json";
    let made = place.cede(words).exits(0).json();
    let shown = place.cede("show photos.torrent --json").exits(0).json();
    assert_eq!(made["info_hash"], shown["info_hash"]);
    assert!(shown["magnet"].as_str().unwrap().starts_with("magnet:?xt=urn:btih:"));
    let text = place.cede("show photos.torrent").exits(0).out.join("\n");
    for word in ["a.jpg", "more/b.jpg", "http://a.example/announce", "udp://b.example:6969", "hello"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_went_wrong_says_what_to_do() {
    let place = Place::new("errors");
    place.write("film", 20_000);
    place.cede("make film").exits(0);
    place.cede("make film").exits(1).explains("--force");
    place.cede("make film --force").exits(0);
    place.cede("make film -t ftp://x -o y.torrent").exits(2).explains("udp://");
    place.cede("make film -l 20000").exits(2).explains("power of two");
    place.cede("show none.torrent").exits(1).explains("none.torrent");
    place.cede("show film").exits(1);
    place.cede("get film.torrent -o nowhere").exits(2).explains("mkdir");
    place.cede("get film.torrent --transport 32").exits(2).explains("uTP");
    place.cede("get film.torrent --transport quic").exits(2).explains("tcp, utp or both");
    place.cede("get film.torrent --up 100").exits(2);
    place.cede(&format!("get film.torrent -o out --files 7 {QUIET}")).exits(2).explains("cede torrent show");
    place.cede(&format!("get film.torrent -o out -C none {QUIET}")).exits(2).explains("none");
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
        let _ = fs::remove_file(place.0.join("out/film"));
        let done = place.cede(&format!("get {words} -o out --peer {peer} --json {QUIET}")).exits(0);
        assert_eq!(place.read("out/film"), content, "{words}");
        let end = done.event("end");
        assert!(end["downloaded"][over].as_u64().unwrap() >= 600_000, "{words}: {end}");
        assert_eq!(done.event("begin")["bytes"], 600_000);
        assert_eq!(end["complete"], true);
        assert_eq!(fs::read_dir(place.0.join("out")).unwrap().count(), 1, "nothing but the file is left");
    }
}

#[test]
fn a_download_that_was_killed_goes_on_and_nothing_bad_is_offered() {
    let place = Place::new("kill");
    let (content, _seed, peer) = place.seeded(1_500_000, "");
    let words = format!("get film.torrent -o out --peer {peer} --json {QUIET}");
    let mut first = place.start(&format!("{words} --down 300kB/s"));
    while first.prints("progress")["data"]["pieces"].as_u64().unwrap() < 10 {}
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    // What a torn write may leave: the middle of what came is something else.
    let mut torn = place.read("out/film");
    torn.iter_mut().take(20_000).for_each(|octet| *octet ^= 0x55);
    fs::write(place.0.join("out/film"), &torn).unwrap();
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
        place.write(name, bytes);
    }
    place.cede("make t -l 16KiB").exits(0);
    let mut seed = place.start(&format!("seed t.torrent {QUIET}"));
    let peer = format!("127.0.0.1:{}", seed.port());
    place.cede(&format!("get t.torrent -o out --files 0,c.txt --peer {peer} {QUIET}")).exits(0);
    assert_eq!(
        (place.read("out/t/a.txt"), place.read("out/t/c.txt")),
        (place.read("t/a.txt"), place.read("t/c.txt"))
    );
    assert!(!place.0.join("out/t/b.bin").exists() && !place.0.join("out/t/d").exists());
    place.cede(&format!("get t.torrent -o out --peer {peer} {QUIET}")).exits(0);
    assert_eq!(place.read("out/t/b.bin"), place.read("t/b.bin"));
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
fn a_tracker_logs_each_announce_over_http_and_udp() {
    let place = Place::new("tracker");
    let content = place.write("film", 100_000);
    let mut tracker = place.start("tracker -p 0 -B 127.0.0.1 --json");
    let line = tracker.says("tracker at ");
    let port = line.rsplit(':').next().unwrap().trim().to_owned();
    place.cede("make film -l 16KiB").exits(0);
    let mut seed = place.start(&format!("seed film.torrent -t http://127.0.0.1:{port}/announce {QUIET}"));
    let seeded_at = seed.port();
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

#[test]
fn ipv6_works_where_there_is_any() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        println!("SKIPPED: there is no IPv6 loopback");
        return;
    }
    let place = Place::new("ipv6");
    let content = place.write("film", 100_000);
    place.cede("make film -l 16KiB").exits(0);
    let mut seed = place.start("seed film.torrent --no-dht -p 0 -B ::1");
    let peer = format!("[::1]:{}", seed.port());
    for transport in ["tcp", "utp"] {
        let _ = fs::remove_file(place.0.join("out/film"));
        place
            .cede(&format!(
                "get film.torrent -o out --no-dht -p 0 -B ::1 --transport {transport} --peer {peer}"
            ))
            .exits(0);
        assert_eq!(place.read("out/film"), content);
    }
}

/// Torrents of v2 alone are shown and refused; hybrid ones come by their v1 side.
#[test]
fn torrents_of_v2_are_shown_and_refused() {
    let place = Place::new("v2");
    let root = [7_u8; 32];
    let mut octets = b"d4:infod9:file treed4:filmd0:d6:lengthi5e11:pieces root32:".to_vec();
    octets.extend(root);
    octets.extend(b"eee12:meta versioni2e4:name4:film12:piece lengthi16384eee");
    fs::write(place.0.join("v2.torrent"), octets).unwrap();
    let shown = place.cede("show v2.torrent").exits(0).out.join("\n");
    assert!(shown.contains("v2") && shown.contains("film"), "{shown}");
    place.cede(&format!("get v2.torrent -o out {QUIET}")).exits(1).explains("v2");
}
