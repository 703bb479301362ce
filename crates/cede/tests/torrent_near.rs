//! `cede torrent` in networks of its own: peers that find each other there, without a tracker. Skipped aloud where namespaces
//! cannot be made, and where there is no libtorrent.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::nets::Nets;
use support::{Folder, PATIENCE, Running};

const BYTES: usize = 300_000;

/// A torrent, its content, and two machines at one wire.
struct Place {
    folder: Folder,
    nets: Nets,
    content: Vec<u8>,
}

impl Place {
    fn new(name: &str) -> Option<Self> {
        let (nets, folder) = (Nets::pair()?, Folder::new(name));
        let content = folder.write_pattern("film", BYTES);
        folder.cede(&["torrent", "make", "film", "-l", "16KiB"]).exits(0);
        std::fs::create_dir(folder.path("out")).unwrap();
        Some(Self { folder, nets, content })
    }

    fn start(&self, at: usize, words: &str) -> Running {
        let words = format!("torrent {words} --no-dht");
        Running::begin(&mut self.nets.within(at, &self.folder.command(words.split_whitespace())))
    }

    fn seed(&self, at: usize, options: &str) -> Running {
        let mut seed = self.start(at, &format!("seed film.torrent {options}"));
        seed.says("port ");
        seed
    }

    fn hash(&self, torrent: &str) -> String {
        let shown = self.folder.cede(&["torrent", "show", torrent, "--json"]).exits(0).json();
        shown["info_hash"].as_str().unwrap().to_owned()
    }

    /// libtorrent, which finds others in the local network alone.
    fn libtorrent(&self, python: &Path, at: usize, folder: &str) -> Running {
        let command = self.folder.libtorrent(python, &["film.torrent", folder, "near"]);
        Running::begin(self.nets.within(at, &command).stdin(Stdio::piped()))
    }

    /// Waits until somebody at a machine is in the group that announces go to (239.192.152.143): who comes later has missed them.
    fn listens(&self, at: usize) {
        let end = Instant::now() + PATIENCE;
        let mut groups = Command::new("cat");
        groups.arg("/proc/net/igmp");
        loop {
            let listed = self.nets.within(at, &groups).output().unwrap();
            let listed = String::from_utf8(listed.stdout).unwrap();
            if listed.contains("8F98C0EF") {
                return;
            }
            assert!(Instant::now() < end, "nobody listens: {listed}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn has_all(&self) {
        assert!(self.folder.read("out/film") == self.content);
        std::fs::remove_file(self.folder.path("out/film")).unwrap();
    }
}

/// Whoever goes into another network goes on there, although nothing tells its connections that they are none any more.
fn goes_on_from_another_address(transport: &str) {
    let Some(place) = Place::new(&format!("away-{transport}")) else { return };
    let _seed = place.seed(0, "--no-lsd --up 40kB/s");
    let words =
        format!("get film.torrent -o out --no-lsd --json --transport {transport} --peer 192.0.2.1:6881");
    let mut download = place.start(1, &words);
    download.prints_such(|line| line["data"]["pieces"].as_u64().is_some_and(|pieces| pieces > 2));
    place.nets.run(1, "addr del 192.0.2.2/24 dev wire");
    download.prints_such(|line| line["data"]["peers"].as_array().is_some_and(Vec::is_empty));
    place.nets.run(1, "addr add 192.0.2.3/24 dev wire");
    let done = download.end().exits(0);
    assert_eq!(done.event("end")["complete"], true);
    place.has_all();
}

#[test]
fn a_download_over_tcp_goes_on_from_another_address() {
    goes_on_from_another_address("tcp");
}

#[test]
fn a_download_over_utp_goes_on_from_another_address() {
    goes_on_from_another_address("utp");
}

/// Whoever asks a tracker is led to where a seed is, and not to where it was.
#[test]
fn trackers_hear_of_another_address() {
    const TRACKER: &str = "-t http://192.0.2.1:6969/announce --no-lsd";
    let Some(place) = Place::new("moves") else { return };
    let mut tracker =
        Running::begin(&mut place.nets.within(0, &place.folder.command(["torrent", "tracker", "--json"])));
    tracker.says("6969");
    let _seed = place.seed(1, TRACKER);
    tracker.prints_such(|line| line["peer"] == "192.0.2.2:6881");
    place.nets.run(1, "addr del 192.0.2.2/24 dev wire");
    place.nets.run(1, "addr add 192.0.2.3/24 dev wire");
    tracker.prints_such(|line| line["peer"] == "192.0.2.3:6881");
    place.start(0, &format!("get film.torrent -o out {TRACKER}")).end().exits(0);
    place.has_all();
}

#[test]
fn two_of_ours_find_each_other_in_the_local_network() {
    let Some(place) = Place::new("near") else { return };
    for options in ["", "-B 0.0.0.0", "--transport tcp"] {
        let seed = place.seed(0, options);
        place.start(1, &format!("get film.torrent -o out {options}")).end().exits(0);
        place.has_all();
        seed.kill();
    }
    // Without addresses of their own, by those of the wire.
    for at in [0, 1] {
        place.nets.run(at, "addr flush dev wire scope global");
    }
    let _seed = place.seed(0, "-p 7000");
    place.start(1, "get film.torrent -o out").end().exits(0);
    place.has_all();
}

/// Who follows a link hears others, and says nothing before it is known that the torrent is not private.
#[test]
fn a_link_is_followed_to_whoever_announces_it() {
    let Some(place) = Place::new("near-link") else { return };
    let mut get = place.start(1, &format!("get {} -o out", place.hash("film.torrent")));
    get.says("looking for");
    place.listens(1);
    let _seed = place.seed(0, "");
    get.end().exits(0);
    place.has_all();
}

/// More torrents than one announce has room for: to one of ours, and to libtorrent where there is one.
#[test]
fn many_torrents_are_announced_together() {
    let Some(place) = Place::new("near-many") else { return };
    let names: Vec<String> = (0..30).map(|number| format!("t{number}")).collect();
    for name in &names {
        place.folder.write_pattern(name, 20_000);
        place.folder.cede(&["torrent", "make", name]).exits(0);
    }
    let torrents = names.iter().map(|name| format!("{name}.torrent")).collect::<Vec<_>>();
    let seed = || {
        let mut seed = place.start(0, &format!("seed {} -p 0", torrents.join(" ")));
        names.iter().for_each(|_| drop(seed.says("port ")));
        seed
    };
    let all_came = || {
        names.iter().all(|name| {
            let came = place.folder.read(&format!("out/{name}")) == place.folder.read(name);
            came && std::fs::remove_file(place.folder.path(&format!("out/{name}"))).is_ok()
        })
    };
    let given = seed();
    place.start(1, &format!("get {} -o out", torrents.join(" "))).end().exits(0);
    assert!(all_came());
    drop(given);
    let Some(python) = support::libtorrent() else {
        println!("SKIPPED: no libtorrent of PyPI");
        return;
    };
    let command = place.folder.libtorrent(&python, &[&torrents.join(","), "out", "near"]);
    let mut get = Running::begin(place.nets.within(1, &command).stdin(Stdio::piped()));
    get.out_line("ready");
    // It has spoken of one of them itself by then, and waits for ten seconds before the next.
    let _seed = seed();
    get.out_line("complete");
    assert!(all_came());
}

const LISTEN: &str = r"
import socket, sys
ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
ear.bind(('239.192.152.143', 6771))
group = socket.inet_aton('239.192.152.143') + socket.inet_aton('192.0.2.2')
ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
print('listening', file=sys.stderr, flush=True)
while True:
    for line in ear.recv(2000).decode().splitlines():
        if line.startswith('Infohash: '):
            print(line, file=sys.stderr, flush=True)
";

#[test]
fn private_torrents_and_who_does_not_want_it_are_silent() {
    let Some(place) = Place::new("near-private") else { return };
    place.folder.cede(&["torrent", "make", "film", "--private", "-o", "private.torrent"]).exits(0);
    place.folder.write_pattern("other", 20_000);
    place.folder.cede(&["torrent", "make", "other"]).exits(0);
    let loud_hash = place.hash("other.torrent");
    let mut python = Command::new("python3");
    let mut ear = Running::begin(&mut place.nets.within(1, python.args(["-c", LISTEN])));
    if ear.hears("listening").is_none() {
        println!("SKIPPED: no python3 to listen with");
        return;
    }
    let mut silent = place.start(0, "seed private.torrent -p 7001");
    silent.says("port ");
    let _unwilling = place.seed(0, "--no-lsd -p 7002");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let mut loud = place.start(0, "seed other.torrent -p 7003");
    loud.says("port ");
    let first = ear.says("Infohash: ");
    assert_eq!(first, format!("Infohash: {loud_hash}"));
}

#[test]
fn libtorrent_and_ours_find_each_other() {
    let Some(place) = Place::new("near-libtorrent") else { return };
    let Some(python) = support::libtorrent() else {
        println!("SKIPPED: no libtorrent of PyPI");
        return;
    };
    let theirs = |at: usize, folder: &str| place.libtorrent(&python, at, folder);
    let (seed, mut get) = (place.seed(0, ""), theirs(1, "out"));
    get.out_line("complete");
    place.has_all();
    drop((seed, get));
    let mut seed = theirs(0, ".");
    seed.out_line("complete");
    place.start(1, "get film.torrent -o out").end().exits(0);
    place.has_all();
}

/// A seed that seems to have nothing gives everything: to one of ours, and to libtorrent.
#[test]
fn who_super_seeds_gives_everything() {
    let Some(place) = Place::new("near-super") else { return };
    // A new one for each: nobody calls an address twice in a minute, nor announces itself.
    let seed = || {
        let mut seed = place.start(0, "seed film.torrent --super-seed");
        seed.says("two pieces at a time");
        seed
    };
    let first = seed();
    place.start(1, "get film.torrent -o out").end().exits(0);
    place.has_all();
    first.kill();
    let Some(python) = support::libtorrent() else {
        println!("SKIPPED: no libtorrent of PyPI");
        return;
    };
    let _second = seed();
    place.libtorrent(&python, 1, "out").out_line("complete");
    place.has_all();
}
