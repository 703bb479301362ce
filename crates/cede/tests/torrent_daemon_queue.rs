//! The queue of `cede torrent daemon`: so many torrents are fetched at a time.

mod support;

use serde_json::{Value, json};
use std::time::Instant;
use support::daemon::{Daemon, FETCHES, GIVES, PATIENCE, Place, STOPPED};

const WAITS: u64 = 3;

/// The names of torrents in the order of the queue, and how they stand.
fn stands(daemon: &mut Daemon) -> Vec<(String, u64)> {
    let told = daemon.order("torrent-get", &json!({ "fields": ["name", "status", "queuePosition"] }));
    let mut all: Vec<Value> = told["torrents"].as_array().unwrap().clone();
    all.sort_by_key(|torrent| torrent["queuePosition"].as_u64());
    let positions: Vec<_> = all.iter().map(|torrent| torrent["queuePosition"].as_u64().unwrap()).collect();
    assert_eq!(positions, (0..all.len() as u64).collect::<Vec<_>>());
    let stand =
        |torrent: &Value| (torrent["name"].as_str().unwrap().to_owned(), torrent["status"].as_u64().unwrap());
    all.iter().map(stand).collect()
}

/// Waits until they stand so.
fn until(daemon: &mut Daemon, wanted: &[(&str, u64)]) {
    let began = Instant::now();
    loop {
        let now = stands(daemon);
        if now.iter().map(|(name, status)| (&**name, *status)).eq(wanted.iter().copied()) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{now:?} and not {wanted:?}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn torrents_wait_for_their_turn() {
    let place = Place::new("queue", 50_000);
    // Nobody has these.
    for name in ["one", "two"] {
        place.folder.write(name, name.repeat(20_000));
        place.folder.cede(&["torrent", "make", name]).exits(0);
        std::fs::remove_file(place.folder.path(name)).unwrap();
    }
    let path = |name: &str| place.folder.path(&format!("{name}.torrent")).to_str().unwrap().to_owned();
    let mut daemon = place.daemon(&["--queue", "1"]);
    let one = daemon.add(&path("one"), &json!({}));
    until(&mut daemon, &[("one", FETCHES)]);
    let film = daemon.add(&path("film"), &json!({}));
    let two = daemon.add(&path("two"), &json!({}));
    until(&mut daemon, &[("one", FETCHES), ("film", WAITS), ("two", WAITS)]);
    // Who is before the others is next, and takes nobody's place.
    daemon.order("queue-move-top", &json!({ "ids": [two] }));
    daemon.order("queue-move-up", &json!({ "ids": [film] }));
    until(&mut daemon, &[("two", WAITS), ("film", WAITS), ("one", FETCHES)]);
    daemon.order("torrent-stop", &json!({ "ids": [two] }));
    daemon.order("torrent-stop", &json!({ "ids": [one] }));
    // What is given counts no more, and nobody else waits.
    until(&mut daemon, &[("two", STOPPED), ("film", GIVES), ("one", STOPPED)]);
    daemon.order("torrent-start", &json!({ "ids": [one] }));
    daemon.order("torrent-start", &json!({ "ids": [two] }));
    until(&mut daemon, &[("two", WAITS), ("film", GIVES), ("one", FETCHES)]);
    daemon.order("torrent-start-now", &json!({ "ids": [two] }));
    until(&mut daemon, &[("two", FETCHES), ("film", GIVES), ("one", FETCHES)]);
    daemon.order("queue-move-bottom", &json!({ "ids": [two] }));
    daemon.running.kill();
    // All of that is remembered, but for who did not wait.
    let mut daemon = place.daemon(&["--queue", "1"]);
    until(&mut daemon, &[("film", GIVES), ("one", FETCHES), ("two", WAITS)]);
    daemon.refused("session-set", &json!({ "download-queue-size": 0 }));
    daemon.order("session-set", &json!({ "download-queue-size": 2 }));
    until(&mut daemon, &[("film", GIVES), ("one", FETCHES), ("two", FETCHES)]);
    let session = daemon.order("session-get", &json!({}));
    assert_eq!(
        (&session["download-queue-enabled"], &session["download-queue-size"]),
        (&json!(true), &json!(2))
    );
    daemon.order("torrent-remove", &json!({ "ids": [1, 2, 3] }));
    daemon.until_none();
    daemon.running.kill();
    place.seed.kill();
}

/// What is given waits for nobody, also where not all of it is wanted, and where it is seen for the first time in this run.
#[test]
fn what_is_there_does_not_wait() {
    let mut place = Place::new("queue-there", 50_000);
    for name in ["tree/a", "tree/b"] {
        place.folder.write(name, vec![7; 40_000]);
    }
    place.folder.write("one", "one".repeat(20_000));
    for name in ["tree", "one"] {
        place.folder.cede(&["torrent", "make", name, "-l", "16KiB"]).exits(0);
    }
    place.reseed(&["tree.torrent"]);
    let path = |name: &str| place.folder.path(&format!("{name}.torrent")).to_str().unwrap().to_owned();
    let mut daemon = place.daemon(&["--queue", "1"]);
    daemon.add(&path("tree"), &json!({ "files-unwanted": [1] }));
    until(&mut daemon, &[("tree", GIVES)]);
    let one = daemon.add(&path("one"), &json!({}));
    until(&mut daemon, &[("tree", GIVES), ("one", FETCHES)]);
    daemon.order("queue-move-top", &json!({ "ids": [one] }));
    // Who waits is removed, and so is who is fetched: the next one begins.
    let film = daemon.add(&path("film"), &json!({}));
    until(&mut daemon, &[("one", FETCHES), ("tree", GIVES), ("film", WAITS)]);
    daemon.order("torrent-stop", &json!({ "ids": "recently-active" }));
    daemon.order("torrent-start", &json!({ "ids": [one, film] }));
    until(&mut daemon, &[("one", FETCHES), ("tree", STOPPED), ("film", WAITS)]);
    daemon.order("torrent-start", &json!({}));
    until(&mut daemon, &[("one", FETCHES), ("tree", GIVES), ("film", WAITS)]);
    daemon.order("torrent-remove", &json!({ "ids": [one] }));
    until(&mut daemon, &[("tree", GIVES), ("film", FETCHES)]);
    daemon.running.kill();
    let mut daemon = place.daemon(&["--queue", "1"]);
    until(&mut daemon, &[("tree", GIVES), ("film", FETCHES)]);
    daemon.running.kill();
    place.seed.kill();
}

/// Whoever waits has not failed.
#[test]
fn what_failed_and_is_ordered_to_begin_waits_without_its_error() {
    let place = Place::new("queue-failed", 50_000);
    place.folder.write("one", "one".repeat(20_000));
    place.folder.cede(&["torrent", "make", "one"]).exits(0);
    std::fs::remove_file(place.folder.path("one")).unwrap();
    let mut daemon = place.daemon(&["--queue", "1"]);
    // A file is in the place of its folder.
    let film = daemon.add(&place.torrent(), &json!({ "download-dir": place.torrent() }));
    let errors = |daemon: &mut Daemon| {
        let told = daemon.order("torrent-get", &json!({ "ids": [film], "fields": ["error"] }));
        told["torrents"][0]["error"].as_u64().unwrap()
    };
    let began = Instant::now();
    while errors(&mut daemon) == 0 {
        assert!(began.elapsed() < PATIENCE);
    }
    daemon.add(place.folder.path("one.torrent").to_str().unwrap(), &json!({}));
    until(&mut daemon, &[("film", STOPPED), ("one", FETCHES)]);
    daemon.order("torrent-start", &json!({ "ids": [film] }));
    until(&mut daemon, &[("film", WAITS), ("one", FETCHES)]);
    assert_eq!(errors(&mut daemon), 0);
    daemon.running.kill();
    place.seed.kill();
}
