//! `cede torrent seed` gives to libtorrent over uTP, through a router whose far side comes to carry less in the middle of it: what is under
//! way is too large then, and libtorrent has to have it as it is. Skipped aloud where namespaces cannot be made, and where there is no
//! libtorrent.
#![cfg(target_os = "linux")]

mod support;

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use support::nets::Nets;
use support::{Folder, Running};

/// Four seconds at the rate that the seed gives at.
const BYTES: usize = 4_000_000;
const UP: &str = "8Mbit/s";
const NARROW: u16 = 1300;

const SEED: usize = 0;
const ROUTER: usize = 1;
const LEECH: usize = 2;

/// The seed's network and the other one, in each of which the router is the first.
struct Networks {
    prefixes: [&'static str; 2],
    bits: u8,
}

const IPV4: Networks = Networks { prefixes: ["192.0.2.", "198.51.100."], bits: 24 };
const IPV6: Networks = Networks { prefixes: ["2001:db8:1::", "2001:db8:2::"], bits: 64 };

/// The router does not say what fits.
const SILENT: &str = "
table inet filter {
  chain output { type filter hook output priority 0; icmp type destination-unreachable drop; }
}
";

struct Place {
    folder: Folder,
    nets: Nets,
    content: Vec<u8>,
    seed: IpAddr,
    python: PathBuf,
}

impl Place {
    fn new(name: &str, networks: &Networks) -> Option<Self> {
        let Some(python) = support::libtorrent() else {
            println!("SKIPPED: no libtorrent (./test installs it)");
            return None;
        };
        let nets = Nets::row(networks.prefixes, networks.bits, "")?;
        let folder = Folder::new(name);
        let content = folder.write_pattern("film", BYTES);
        folder.cede(&["torrent", "make", "film", "-l", "16KiB"]).exits(0);
        std::fs::create_dir(folder.path("out")).unwrap();
        let seed = format!("{}2", networks.prefixes[0]).parse().unwrap();
        Some(Self { folder, nets, content, seed, python })
    }

    fn at_router(&self, words: &[&str]) {
        self.nets.done(ROUTER, &self.folder.program(words));
    }

    /// Everything comes, over the connection that there was before.
    fn fetch_while_it_narrows(&self) {
        let words = format!(
            "torrent seed film.torrent -p 7000 -B {} --up {UP} --transport utp --no-dht --no-lsd --no-port-mapping",
            self.seed
        );
        let seed = &mut self.nets.within(SEED, &self.folder.command(words.split_whitespace()));
        let mut seed = Running::begin(seed);
        seed.says("port ");
        let peer = SocketAddr::new(self.seed, 7000).to_string();
        let leech = self.folder.libtorrent(&self.python, &["film.torrent", "out", &peer, "6881", "utp"]);
        let mut leech = Running::begin(self.nets.within(LEECH, &leech).stdin(Stdio::piped()));
        leech.out_line("quarter");
        self.nets.run(ROUTER, &format!("link set far mtu {NARROW}"));
        self.nets.run(LEECH, &format!("link set wire mtu {NARROW}"));
        leech.out_line("complete");
        drop(leech.stdin());
        let told = leech.end();
        let (before, _) = told.text().split_once("complete").unwrap();
        assert!(!before.contains("gone"), "{before}");
        assert!(self.folder.read("out/film") == self.content);
    }
}

#[test]
fn a_router_says_what_fits() {
    let Some(place) = Place::new("narrow", &IPV4) else { return };
    place.fetch_while_it_narrows();
}

#[test]
fn a_router_says_nothing() {
    if !support::has("nft") {
        return;
    }
    let Some(place) = Place::new("narrow-silent", &IPV4) else { return };
    place.folder.write("silent", SILENT);
    place.at_router(&["nft", "-f", "silent"]);
    place.fetch_while_it_narrows();
}

/// Nobody cuts there but the seed's own system, which must have heard what fits.
#[test]
fn a_router_of_ipv6_says_what_fits() {
    if TcpListener::bind("[::1]:0").is_err() {
        println!("SKIPPED: there is no IPv6");
        return;
    }
    let Some(place) = Place::new("narrow-six", &IPV6) else { return };
    place.fetch_while_it_narrows();
}
