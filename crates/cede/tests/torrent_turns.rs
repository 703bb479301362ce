//! Which files `cede torrent` fetches before others.

mod support;

use serde_json::{Value, json};
use std::time::Instant;
use support::daemon::{Daemon, PATIENCE, Place, QUIET, STOPPED, seeding};
use support::{Folder, pattern};

/// Octets of a piece.
const PIECE: usize = 16_384;
/// Slow enough for what comes in between to take seconds.
const SLOWLY: [&str; 2] = ["--down", "200kB/s"];

/// A folder with a seed of a tree of three files.
fn seeded(name: &str) -> Place {
    let folder = Folder::new(name);
    for (file, pieces) in [("tree/a", 8), ("tree/b", 120), ("tree/c", 20)] {
        folder.write(file, pattern(pieces * PIECE));
    }
    folder.cede(&["torrent", "make", "tree", "-l", "16KiB"]).exits(0);
    let (seed, peer) = seeding(&folder, &["tree.torrent"]);
    std::fs::create_dir(folder.path("out")).unwrap();
    Place { folder, content: Vec::new(), seed, peer }
}

/// The right pieces of each file of the tree.
fn right(folder: &Folder) -> Vec<u64> {
    let shown = folder.cede(&["torrent", "verify", "tree.torrent", "--data", "out", "--json"]).json();
    shown["files"].as_array().unwrap().iter().map(|file| file["pieces_right"].as_u64().unwrap()).collect()
}

/// Fetches with these options until the pieces of the files are such; what is there then, once it has ended.
fn fetched_until(place: &Place, options: &[&str], is_so: impl Fn(&[u64]) -> bool) -> Vec<u64> {
    let folder = &place.folder;
    let words = ["torrent", "get", "tree.torrent", "-o", "out", "--peer", &place.peer];
    let leech = folder.start(&[&words[..], &QUIET, &SLOWLY, options].concat());
    let began = Instant::now();
    while !is_so(&right(folder)) {
        assert!(began.elapsed() < PATIENCE, "{:?}", right(folder));
    }
    leech.interrupt();
    leech.end().exits(130);
    right(folder)
}

#[test]
fn files_come_first_and_last_as_they_are_named() {
    let place = seeded("turns-files");
    let here = fetched_until(&place, &["--first", "c", "--last", "0"], |here| here[2] == 20);
    assert_eq!((here[0], here[2]), (0, 20), "{here:?}");
    // The rest of it, and other files first where it has ended.
    let here = fetched_until(&place, &["--first", "0"], |here| here[0] == 8);
    assert!(here[1] < 60, "{here:?}");
    place.seed.kill();
}

#[test]
fn content_comes_from_its_beginning_on() {
    let place = seeded("turns-order");
    let here = fetched_until(&place, &["--in-order"], |here| here[0] == 8 && here[1] > 10);
    assert_eq!(here[2], 0, "{here:?}");
    let count = here[1] as usize * PIECE;
    assert_eq!(
        place.folder.read("out/tree/b")[..count],
        pattern(120 * PIECE)[..count],
        "not the first {} pieces",
        here[1]
    );
    place.seed.kill();
}

#[test]
fn turns_that_mean_nothing_are_refused() {
    let place = seeded("turns-wrong");
    for (options, words) in [
        (&["--first", "c", "--last", "c"][..], "--first and --last both have tree/c"),
        (&["--files", "a", "--first", "c"], "--first: tree/c is none of the files that are fetched"),
        (&["--last", "7"], "--last '7': there is no such file"),
        (&["tree.torrent", "--first", "c"], "--first picks files of one torrent"),
        (&["--save-torrent", "none/x.torrent"], "--save-torrent: there is no folder none"),
        (&["--save-torrent", "out"], "--save-torrent: out is a folder"),
    ] {
        let words_before = ["torrent", "get", "tree.torrent", "-o", "out"];
        place.folder.cede(&[&words_before[..], options, &QUIET].concat()).exits(2).complains(words);
    }
    let kept = ["torrent", "get", "tree.torrent", "-o", "out", "--save-torrent", "tree/a"];
    place.folder.cede(&[&kept[..], &QUIET].concat()).exits(1).complains("there already, and no torrent file");
    place.seed.kill();
}

/// The priorities of the files of the only torrent.
fn priorities(daemon: &mut Daemon) -> Value {
    let told = daemon.order("torrent-get", &json!({ "fields": ["priorities", "fileStats"] }));
    let torrent = &told["torrents"][0];
    let stats = torrent["fileStats"].as_array().unwrap();
    let same: Vec<&Value> = stats.iter().map(|file| &file["priority"]).collect();
    assert_eq!(torrent["priorities"], json!(same));
    torrent["priorities"].clone()
}

#[test]
fn the_daemon_takes_priorities_while_it_fetches() {
    let place = seeded("turns-daemon");
    let mut daemon = place.daemon(&SLOWLY);
    let torrent = place.folder.path("tree.torrent").to_str().unwrap().to_owned();
    daemon.add(&torrent, &json!({ "priority-low": [0], "priority-high": [2] }));
    assert_eq!(priorities(&mut daemon), json!([-1, 0, 1]));
    daemon.until("begun", |it| it["haveValid"].as_u64() > Some(0));
    daemon.order("torrent-set", &json!({ "priority-normal": [] }));
    assert_eq!(priorities(&mut daemon), json!([0, 0, 0]), "none named are all");
    daemon.order("torrent-set", &json!({ "priority-high": [0, 99] }));
    assert_eq!(priorities(&mut daemon), json!([1, 0, 0]));
    let done = |torrent: &Value, file: usize| torrent["files"][file]["bytesCompleted"].as_u64().unwrap();
    let torrent = daemon.until("there", |it| done(it, 0) == 8 * PIECE as u64);
    // By chance there would be most of it: nobody asks for the last of a first by luck.
    assert!(done(&torrent, 1) < 60 * PIECE as u64, "{torrent}");
    daemon.refused("torrent-set", &json!({ "priority-high": "a" }));
    daemon.order("torrent-stop", &json!({}));
    daemon.until("stopped", |it| it["status"] == STOPPED);
    daemon.running.kill();
    let mut daemon = place.daemon(&[]);
    assert_eq!(priorities(&mut daemon), json!([1, 0, 0]), "that is remembered");
    daemon.running.kill();
    place.seed.kill();
}
