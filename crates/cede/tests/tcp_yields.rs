//! `cede torrent seed --tcp-controller` gives over TCP alone, through a router with a second of buffer before its narrow side: the system's TCP fills
//! that, ours leaves it empty but for what it aims at, and takes no longer. Skipped aloud where namespaces cannot be made.
#![cfg(target_os = "linux")]

mod support;

use std::time::Duration;
use support::nets::Nets;
use support::{Folder, Running};

/// Seven seconds of the narrow link.
const BYTES: usize = 4_400_000;
const RATE_MBPS: f64 = 5.0;
const BUFFER: &str = "625000";
/// Samples of the queue before slow start is over.
const BEGINNING: usize = 25;

const SEED: usize = 0;
const ROUTER: usize = 1;
const LEECH: usize = 2;

/// Three machines, of which the one between has the narrow link.
struct Place {
    folder: Folder,
    nets: Nets,
    content: Vec<u8>,
}

impl Place {
    fn new(name: &str) -> Option<Self> {
        // Whatever the machine's own controller is.
        let nets = Nets::row(["192.0.2.", "198.51.100."], 24, "congctl cubic")?;
        let folder = Folder::new(name);
        let content = folder.write_pattern("film", BYTES);
        folder.cede(&["torrent", "make", "film", "-l", "64KiB"]).exits(0);
        std::fs::create_dir(folder.path("out")).unwrap();
        let place = Self { folder, nets, content };
        let shape = ["tc", "qdisc", "add", "dev", "far", "root", "tbf", "rate", "5mbit", "burst", "3000"];
        place.at_router(&[&shape[..], &["limit", BUFFER]].concat());
        Some(place)
    }

    fn at_router(&self, words: &[&str]) -> String {
        self.nets.done(ROUTER, &self.folder.program(words))
    }

    /// What waits before the narrow link, as time.
    fn queue_ms(&self) -> f64 {
        let text = self.at_router(&["tc", "-j", "-s", "qdisc", "show", "dev", "far"]);
        let told: serde_json::Value = serde_json::from_str(&text).unwrap();
        told[0]["backlog"].as_f64().unwrap() * 8.0 / (RATE_MBPS * 1e3)
    }

    /// Has a client run at one of the ends.
    fn client(&self, at: usize, words: &[&str]) -> Running {
        let alone = ["--transport", "tcp", "--no-dht", "--no-lsd", "--no-port-mapping"];
        let command = self.folder.command([&["torrent"], words, &alone[..]].concat());
        Running::begin(&mut self.nets.within(at, &command))
    }

    /// The queue, sample by sample, while all of it is fetched.
    fn queues(&self, seed: &[&str]) -> Vec<f64> {
        let _seed = self.client(SEED, &[&["seed", "film.torrent", "-p", "7000"], seed].concat());
        let get = ["get", "film.torrent", "-o", "out", "-p", "7001", "--peer", "192.0.2.2:7000"];
        let mut leech = self.client(LEECH, &get);
        let mut queues = Vec::new();
        while !leech.has_ended() {
            assert!(queues.len() < 2_000, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
            queues.push(self.queue_ms());
        }
        assert!(std::fs::read(self.folder.path("out/film")).unwrap() == self.content);
        queues.retain(|&ms| ms > 0.0);
        queues.split_off(BEGINNING.min(queues.len()))
    }
}

/// What nine of ten samples do not exceed: where CUBIC leaves slow start early, it fills the buffer in the end all the same.
fn most(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() * 9 / 10]
}

#[test]
fn the_queue_that_the_systems_tcp_fills_stays_short() {
    let ways: [&[&str]; 2] = [&[], &["--tcp-controller", "ledbat", "--tcp-target-delay", "50ms"]];
    let queues = std::thread::scope(|scope| {
        let run =
            |at: usize| Place::new(&format!("tcp-yields-{at}")).map(|place| most(place.queues(ways[at])));
        let other = scope.spawn(move || run(1));
        [run(0), other.join().unwrap()]
    });
    let [Some(full), Some(short)] = queues else { return };
    println!("{full} and {short} ms");
    assert!(full > 250.0, "the system's TCP leaves {full} ms");
    assert!((5.0..=100.0).contains(&short), "a target of 50 ms, and {short} ms");
}
