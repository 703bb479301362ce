//! `cede torrent` behind two routers that let in nothing but answers, and a third peer in front of them that both are connected to: it
//! introduces them, and they call each other (BEP 55). With libtorrent in each of the three places. Skipped aloud where namespaces cannot be
//! made, and where there is no nft or no libtorrent.
#![cfg(target_os = "linux")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};
use support::nets::Nets;
use support::{Folder, Running};

/// Ports stay as they are where they can. What nobody has asked for is not even refused.
const RULES: &str = r#"
table inet filter {
  chain postrouting { type nat hook postrouting priority 100; policy accept; oifname "wan" masquerade; }
  chain input { type filter hook input priority 0; policy accept; iifname "wan" ct state { new, invalid } drop; }
  chain forward { type filter hook forward priority 0; policy accept; iifname "wan" ct state { new, invalid } drop; }
}
"#;

const BYTES: usize = 300_000;
const GREETED: Duration = Duration::from_secs(3);
/// A minute after it has begun, a peer hears of those that came since: then two may call each other at once by chance.
const BY_CHANCE: Duration = Duration::from_secs(55);

/// The peer in front (11.0.0.2), the routers (11.0.0.11 and .12), and the peers behind them.
const FRONT: usize = 0;
const ROUTERS: [usize; 2] = [1, 2];
const BEHIND: [usize; 2] = [3, 4];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Client {
    Ours,
    Libtorrent,
}

struct Place {
    folder: Folder,
    nets: Nets,
    content: Vec<u8>,
    python: PathBuf,
}

impl Place {
    fn new(name: &str, python: PathBuf) -> Option<Self> {
        let nets = Nets::new(5)?;
        nets.run(FRONT, "link add hub type bridge");
        nets.run(FRONT, "addr add 11.0.0.2/24 dev hub");
        nets.run(FRONT, "link set hub up");
        let folder = Folder::new(name);
        folder.write("rules", RULES);
        for (number, (router, behind)) in (1..).zip(ROUTERS.into_iter().zip(BEHIND)) {
            nets.join((FRONT, &format!("wire{number}")), (router, "wan"));
            nets.run(FRONT, &format!("link set wire{number} master hub"));
            nets.run(router, &format!("addr add 11.0.0.1{number}/24 dev wan"));
            nets.join((behind, "wire"), (router, "lan"));
            nets.run(router, &format!("addr add 192.168.{number}.1/24 dev lan"));
            nets.run(behind, &format!("addr add 192.168.{number}.2/24 dev wire"));
            nets.run(behind, &format!("route add default via 192.168.{number}.1"));
        }
        let content = folder.write_pattern("film", BYTES);
        folder.cede(&["torrent", "make", "film", "-l", "16KiB"]).exits(0);
        for path in ["out", "front"] {
            std::fs::create_dir(folder.path(path)).unwrap();
        }
        let place = Self { folder, nets, content, python };
        for router in ROUTERS {
            for words in [&["sysctl", "-qw", "net.ipv4.ip_forward=1"], &["nft", "-f", "rules"][..]] {
                place.nets.done(router, &place.folder.program(words));
            }
        }
        Some(place)
    }

    /// `cede torrent`, which finds others through peers alone.
    fn ours(&self, at: usize, words: &str) -> Running {
        let words = format!("torrent {words} --no-dht --no-lsd --no-port-mapping --json");
        Running::begin(&mut self.nets.within(at, &self.folder.command(words.split_whitespace())))
    }

    fn libtorrent(&self, at: usize, folder: &str, peer: &str) -> Running {
        let command = self.folder.libtorrent(&self.python, &["film.torrent", folder, peer]);
        Running::begin(self.nets.within(at, &command).stdin(Stdio::piped()))
    }

    /// Fetches from one behind a router to the other; the one in front has nothing, and hardly gives what it has.
    fn fetch(&self, [front, giver, taker]: [Client; 3]) {
        // libtorrent introduces those that it is connected to over uTP alone: one at a time is called over that first.
        let options = if front == Client::Libtorrent { "--profile libtorrent" } else { "" };
        let mut front_one = match front {
            Client::Ours => self.ours(FRONT, "get film.torrent -o front --up 8kbit/s --down 8kbit/s"),
            Client::Libtorrent => self.libtorrent(FRONT, "front", "none"),
        };
        // Who was called before it took up calls would be called again half a minute later.
        match front {
            Client::Ours => front_one.says("port "),
            Client::Libtorrent => front_one.out_line("ready"),
        };
        let _giver = self.give(giver, options);
        // One in front that reads a kilobyte per second takes as long to have heard its greeting, without which it introduces nobody.
        thread::sleep(GREETED);
        let began = Instant::now();
        match taker {
            Client::Ours => {
                let words = format!("get film.torrent -o out --peer 11.0.0.2:6881 {options}");
                let taken = self.ours(BEHIND[0], &words).end().exits(0).event("end");
                assert!(taken["downloaded"]["utp"].as_u64() > Some(BYTES as u64 * 3 / 4), "{taken}");
            }
            Client::Libtorrent => {
                self.libtorrent(BEHIND[0], "out", "11.0.0.2:6881").out_line("complete");
            }
        }
        assert!(began.elapsed() < BY_CHANCE, "{front:?} {giver:?} {taker:?}: {:?}", began.elapsed());
        assert!(self.folder.read("out/film") == self.content);
    }

    /// One that has everything and is connected to the one in front.
    fn give(&self, giver: Client, options: &str) -> Running {
        let connected = "11.0.0.2:6881";
        match giver {
            Client::Ours => {
                let mut giver =
                    self.ours(BEHIND[1], &format!("seed film.torrent --peer {connected} {options}"));
                giver.prints(connected);
                giver
            }
            Client::Libtorrent => {
                let mut giver = self.libtorrent(BEHIND[1], ".", connected);
                giver.out_line(connected);
                giver
            }
        }
    }
}

#[test]
fn two_behind_routers_are_introduced_and_meet() {
    if !support::has("nft") {
        return;
    }
    let Some(place) = Place::new("punch", Path::new("none").to_owned()) else { return };
    place.fetch([Client::Ours; 3]);
}

/// With libtorrent as one of the three. What one of them has opened stays open for minutes: each case has routers of its own.
fn with_libtorrent(other: usize) {
    let Some(python) = support::libtorrent() else {
        println!("SKIPPED: no libtorrent (./test installs it)");
        return;
    };
    let mut clients = [Client::Ours; 3];
    clients[other] = Client::Libtorrent;
    let place = support::has("nft").then(|| Place::new(&format!("punch-{other}"), python)).flatten();
    let Some(place) = place else { return };
    place.fetch(clients);
}

#[test]
fn libtorrent_introduces() {
    with_libtorrent(0);
}

#[test]
fn libtorrent_is_introduced() {
    with_libtorrent(1);
}

#[test]
fn libtorrent_asks_to_be_introduced() {
    with_libtorrent(2);
}
