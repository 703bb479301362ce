//! `cede torrent` in networks of its own: peers that find each other in the hash table of IPv6 alone (BEP 32). Skipped aloud where namespaces
//! cannot be made, and where there is no libtorrent.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::Stdio;
use support::nets::Nets;
use support::{Folder, Running};

const BYTES: usize = 300_000;
/// Peers come from the table and from nowhere else.
const TABLE_ALONE: &str = "--no-pex --no-lsd --no-port-mapping";

/// A torrent, its content, and two machines at one wire.
struct Place {
    folder: Folder,
    nets: Nets,
    content: Vec<u8>,
    link: String,
}

impl Place {
    fn new(name: &str) -> Option<Self> {
        let (nets, folder) = (Nets::pair()?, Folder::new(name));
        if std::net::TcpListener::bind("[::1]:0").is_err() {
            println!("SKIPPED: there is no IPv6");
            return None;
        }
        let content = folder.write_pattern("film", BYTES);
        folder.cede(&["torrent", "make", "film", "-l", "16KiB"]).exits(0);
        let shown = folder.cede(&["torrent", "show", "film.torrent", "--json"]).exits(0).json();
        let link = format!("magnet:?xt=urn:btih:{}", shown["info_hash"].as_str().unwrap());
        std::fs::create_dir(folder.path("out")).unwrap();
        Some(Self { folder, nets, content, link })
    }

    /// Ours at one machine, which knows that there may be a node at the other.
    fn ours(&self, at: usize, words: &str) -> Running {
        let (own, other) = (at + 1, 2 - at);
        let words =
            format!("torrent {words} {TABLE_ALONE} -B 2001:db8::{own} --dht-node [2001:db8::{other}]:6881");
        Running::begin(&mut self.nets.within(at, &self.folder.command(words.split_whitespace())))
    }

    fn seed(&self, at: usize) -> Running {
        let mut seed = self.ours(at, "seed film.torrent -p 7000");
        seed.says("port ");
        seed
    }

    /// libtorrent at one machine, likewise.
    fn theirs(&self, python: &Path, at: usize, what: &str, folder: &str) -> Running {
        let table = format!("dht/2001:db8::{}/6881", 2 - at);
        let command = self.folder.libtorrent(python, &[what, folder, &table]);
        Running::begin(self.nets.within(at, &command).stdin(Stdio::piped()))
    }

    fn has_all(&self) {
        assert!(self.folder.read("out/film") == self.content);
        std::fs::remove_file(self.folder.path("out/film")).unwrap();
    }
}

#[test]
fn two_of_ours_find_each_other_in_the_table_of_ipv6() {
    let Some(place) = Place::new("dht-six") else { return };
    let _seed = place.seed(0);
    for what in ["film.torrent", &place.link] {
        place.ours(1, &format!("get {what} -o out")).end().exits(0);
        place.has_all();
    }
}

/// The table is ours and libtorrent's alone, in which each finds the other, by file and by link. libtorrent's node answers nobody whose id
/// does not follow from its address (BEP 42), so ours has to take such a one first.
#[test]
fn libtorrent_and_ours_are_a_table_of_ipv6() {
    let Some(place) = Place::new("dht-six-libtorrent") else { return };
    let Some(python) = support::libtorrent() else {
        println!("SKIPPED: no libtorrent of PyPI");
        return;
    };
    for what in ["film.torrent", &place.link] {
        let (seed, mut get) = (place.seed(0), place.theirs(&python, 1, what, "out"));
        get.out_line("complete");
        drop((seed, get));
        place.has_all();
        let mut seed = place.theirs(&python, 0, "film.torrent", ".");
        seed.out_line("complete");
        place.ours(1, &format!("get {what} -o out")).end().exits(0);
        place.has_all();
    }
}
