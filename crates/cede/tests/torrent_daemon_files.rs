//! Which files `cede torrent daemon` fetches, and which it takes away.

mod support;

use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::time::Instant;
use support::daemon::{Daemon, GIVES, PATIENCE, Place, QUIET, STOPPED};

/// What is said with a link, or the link itself, holds once it is known which files there are.
#[test]
fn a_link_may_say_which_files() {
    let mut place = Place::new("daemon-link", 50_000);
    for name in ["tree/a", "tree/b", "tree/c"] {
        place.folder.write(name, vec![7; 40_000]);
    }
    place.folder.cede(&["torrent", "make", "tree", "-l", "16KiB", "-o", "film.torrent", "--force"]).exits(0);
    place.reseed(&["film.torrent"]);
    let mut daemon = place.daemon(&[]);
    let link = place.link();
    for (link, more, wanted) in [
        (&*link, json!({ "files-wanted": [1] }), [0, 1, 0]),
        (&*link, json!({ "files-unwanted": [1] }), [1, 0, 1]),
        (&*format!("{link}&so=2"), json!({}), [0, 0, 1]),
    ] {
        daemon.add(link, &more);
        let torrent = daemon.until_there();
        assert_eq!(torrent["wanted"], json!(wanted), "{link} {more}");
        daemon.delete_all();
    }
    // There are no options to choose by here.
    daemon.add(&format!("{link}&so=7"), &json!({}));
    let torrent = daemon.until("refused", |it| it["error"] == 3);
    assert!(torrent["errorString"].as_str().unwrap().contains("add the link without that"), "{torrent}");
    daemon.running.kill();
    place.seed.kill();
}

/// The folder that torrents are remembered in may have any name, and lose what is in it.
#[test]
fn a_torrent_that_is_known_is_not_read_again() {
    let place = Place::new("daemon-known", 50_000);
    let mut daemon = place.daemon(&[]);
    daemon.add(&place.torrent(), &json!({}));
    let torrent = daemon.until_there();
    let kept = format!("state/{}.torrent", torrent["hashString"].as_str().unwrap());
    fs::remove_file(place.folder.path(&kept)).unwrap();
    daemon.order("torrent-stop", &json!({}));
    daemon.until("stopped", |it| it["status"] == STOPPED);
    daemon.order("torrent-start", &json!({}));
    let torrent = daemon.until("given", |it| it["status"] == GIVES || it["error"] != 0);
    assert_eq!(torrent["error"], 0, "{torrent}");
    daemon.running.kill();
    place.seed.kill();
}

/// A tracker that knows nobody, and lets whoever says goodbye wait.
fn slow_tracker() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/announce", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut waiting = Vec::new();
        for stream in listener.incoming() {
            let (mut stream, mut asked) = (stream.unwrap(), [0; 4_096]);
            let count = stream.read(&mut asked).unwrap();
            if String::from_utf8_lossy(&asked[..count]).contains("event=stopped") {
                waiting.push(stream);
                continue;
            }
            let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nd8:intervali1800e5:peers0:e";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

/// Whether it has a file open that is no more, whose room is taken as long as that lasts. Linux tells that.
fn holds_what_is_gone(daemon: &Daemon) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", daemon.running.id()));
    let is_gone = |it: fs::DirEntry| {
        fs::read_link(it.path()).is_ok_and(|it| it.to_string_lossy().ends_with("film (deleted)"))
    };
    open.into_iter().flatten().flatten().any(is_gone)
}

#[test]
fn one_that_says_goodbye_may_come_again_and_its_files_go() {
    let place = Place::new("daemon-goodbye", 300_000);
    let mut daemon = place.daemon(&["-t", &slow_tracker()]);
    let is_there = |it: &Value| it["status"] == GIVES && it["leftUntilDone"] == 0;
    let received = |daemon: &Daemon| {
        let metrics = daemon.ask("GET", "/metrics", "", "").2;
        let value = metrics.split("\ncede_torrent_received_bytes_total ").nth(1).unwrap();
        value.split('\n').next().unwrap().parse::<u64>().unwrap()
    };
    daemon.add(&place.torrent(), &json!({}));
    daemon.until("there", is_there);
    let before = received(&daemon);
    daemon.delete_all();
    assert!(received(&daemon) >= before, "a counter goes up alone");
    // The same again, while the other one's tracker and files are still to be seen to.
    daemon.add(&place.torrent(), &json!({}));
    let torrent = daemon.until("there", |it| is_there(it) || it["error"] == 3);
    assert_eq!(torrent["error"], 0, "{torrent}");
    assert_eq!(torrent["downloadedEver"], 300_000, "it was fetched again: {torrent}");
    assert_eq!(place.folder.read("out/film"), place.content);
    assert!(!holds_what_is_gone(&daemon), "the first one has ended");
    daemon.delete_all();
    daemon.order("session-close", &json!({}));
    daemon.running.end().exits(0);
    assert_eq!(fs::read_dir(place.folder.path("out")).unwrap().count(), 0);
    place.seed.kill();
}

#[test]
fn files_of_others_stay_where_a_torrent_goes_with_its_own() {
    let place = Place::new("daemon-others", 2_000_000);
    let mut daemon = place.daemon(&[]);
    let names = || {
        let all = fs::read_dir(place.folder.path("out")).unwrap();
        all.map(|it| it.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    // Somebody's own file, where the torrent's would be.
    place.folder.write("out/film", vec![7; 50_000]);
    daemon.add(&place.torrent(), &json!({}));
    daemon.until("failed", |it| it["error"] == 3);
    daemon.delete_all();
    // One that was never begun has no files, either.
    daemon.add(&place.torrent(), &json!({ "paused": true }));
    daemon.delete_all();
    // The same torrent begins once those are away.
    daemon.add(&place.torrent(), &json!({}));
    daemon.until("failed", |it| it["error"] == 3);
    assert_eq!(place.folder.read("out/film"), vec![7; 50_000]);
    fs::remove_file(place.folder.path("out/film")).unwrap();
    daemon.order("torrent-start", &json!({}));
    let first = daemon.until("there", |it| it["leftUntilDone"] == 0)["id"].clone();
    // Another torrent of the same file.
    place.folder.cede(&["torrent", "make", "film", "-l", "32KiB", "-o", "again.torrent"]).exits(0);
    daemon.order("torrent-stop", &json!({ "ids": first }));
    let again = place.folder.path("again.torrent").to_str().unwrap().to_owned();
    let again = daemon.add(&again, &json!({}));
    let began = Instant::now();
    while daemon.torrents().iter().any(|it| it["id"] == again && it["percentDone"] != 1.0) {
        assert!(began.elapsed() < PATIENCE, "{:?}", daemon.torrents());
    }
    daemon.order("torrent-remove", &json!({ "ids": again, "delete-local-data": true }));
    daemon.order("torrent-start", &json!({}));
    let torrent = daemon.until("given", |it| it["status"] == GIVES);
    assert!(torrent["leftUntilDone"] == 0 && names().contains(&"film".to_owned()), "{torrent}");
    daemon.delete_all();
    // Nor is its room taken any longer.
    let began = Instant::now();
    while names().contains(&"film".to_owned()) || holds_what_is_gone(&daemon) {
        assert!(began.elapsed() < PATIENCE, "{:?}", names());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // With what an unfinished download has beside it.
    daemon.order("session-set", &json!({ "speed-limit-down": 100, "speed-limit-down-enabled": true }));
    daemon.add(&place.torrent(), &json!({}));
    daemon.until("begun", |it| it["haveValid"].as_u64().unwrap() > 0);
    assert!(names().len() > 1);
    daemon.delete_all();
    daemon.order("session-close", &json!({}));
    daemon.running.end().exits(0);
    assert!(names().is_empty(), "{:?}", names());
    place.seed.kill();
}

/// However quickly they follow one another.
#[test]
fn orders_for_one_torrent_do_not_wait_for_one_another_without_end() {
    let place = Place::new("daemon-quick", 300_000);
    let mut daemon = place.daemon(&["-t", &slow_tracker()]);
    let is_there = |it: &Value| it["status"] == GIVES && it["leftUntilDone"] == 0;
    for _ in 0..2 {
        let id = daemon.add(&place.torrent(), &json!({}));
        daemon.until("there", is_there);
        // It is to begin anew once it has said goodbye, and is removed before that.
        for method in ["torrent-verify", "torrent-stop", "torrent-start"] {
            daemon.order(method, &json!({ "ids": id }));
        }
        daemon.order("torrent-remove", &json!({ "ids": id, "delete-local-data": true }));
    }
    daemon.order("session-close", &json!({}));
    daemon.running.end().exits(0);
    assert_eq!(fs::read_dir(place.folder.path("out")).unwrap().count(), 0);
    place.seed.kill();
}

/// One of them is in a folder of the other.
#[test]
fn no_file_belongs_to_two_torrents_of_different_folders() {
    let place = Place::new("daemon-nested", 50_000);
    place.folder.write("tree/film", vec![7; 40_000]);
    place.folder.cede(&["torrent", "make", "tree", "-l", "16KiB"]).exits(0);
    fs::create_dir(place.folder.path("out/tree")).unwrap();
    let mut daemon = place.daemon(&[]);
    let within = json!({ "download-dir": place.folder.path("out/tree") });
    let film = daemon.add(&place.torrent(), &within);
    daemon.until_there();
    let tree = daemon.add(place.folder.path("tree.torrent").to_str().unwrap(), &json!({}));
    let began = Instant::now();
    let told = loop {
        let all = daemon.torrents();
        let told = all.iter().find(|it| it["id"] == tree && it["status"] == STOPPED);
        if let Some(told) = told {
            break told["errorString"].as_str().unwrap().to_owned();
        }
        assert!(began.elapsed() < PATIENCE, "{all:?}");
    };
    assert!(told.contains("film belongs to another one"), "{told}");
    daemon.order("torrent-remove", &json!({ "ids": tree, "delete-local-data": true }));
    daemon.until("alone", |it| it["id"] == film);
    assert_eq!(place.folder.read("out/tree/film"), place.content);
    // What has been taken is given back.
    daemon.order("torrent-verify", &json!({}));
    daemon.until("given", |it| it["status"] == GIVES && it["error"] == 0);
    daemon.running.kill();
    place.seed.kill();
}

/// Whoever is connected to a torrent that is stopped is let go: as long as it stayed it was given what it asked for.
#[test]
fn what_is_stopped_is_given_to_nobody() {
    let place = Place::new("daemon-stopped", 4_000_000);
    // It would take longer than is waited for.
    let mut daemon = place.daemon(&["--up", "20kB/s"]);
    daemon.add(&place.torrent(), &json!({}));
    daemon.until_there();
    let at = format!("127.0.0.1:{}", daemon.order("session-get", &json!({}))["peer-port"]);
    let words = ["torrent", "get", "film.torrent", "-o", "other", "--no-pex", "--json", "--peer", &at];
    let mut leecher = place.folder.start(&[&words[..], &QUIET].concat());
    let peers = |it: &Value| it["data"]["peers"].as_array().map(Vec::len);
    leecher.prints_such(|it| peers(it) == Some(1));
    daemon.until("given", |it| it["uploadedEver"] != 0);
    daemon.order("torrent-stop", &json!({}));
    leecher.prints_such(|it| peers(it) == Some(0));
    daemon.order("torrent-start", &json!({}));
    leecher.prints_such(|it| peers(it) == Some(1));
    // Nor is the room of its files taken any longer.
    daemon.delete_all();
    leecher.prints_such(|it| peers(it) == Some(0));
    let began = Instant::now();
    while place.folder.path("out/film").exists() || holds_what_is_gone(&daemon) {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    leecher.kill();
    daemon.running.kill();
    place.seed.kill();
}

/// An order whose outcome cannot be remembered is not answered as if it would last: what was removed came again, and fetched its files anew.
#[test]
fn what_cannot_be_remembered_is_said_to_whoever_orders_it() {
    let place = Place::new("daemon-forgetful", 50_000);
    let mut daemon = place.daemon(&[]);
    daemon.add(&place.torrent(), &json!({}));
    let torrent = daemon.until_there();
    // A folder in the place of the document, which can neither be written nor removed as a file.
    let document = place.folder.path(&format!("state/{}.json", torrent["hashString"].as_str().unwrap()));
    fs::remove_file(&document).unwrap();
    fs::create_dir(&document).unwrap();
    assert!(daemon.refused("torrent-stop", &json!({})).contains("cannot remember it"));
    daemon.until("stopped all the same", |it| it["status"] == STOPPED);
    assert!(daemon.refused("torrent-set", &json!({ "labels": ["a"] })).contains("cannot remember it"));
    let everything = json!({ "ids": [1], "delete-local-data": true });
    assert!(daemon.refused("torrent-remove", &everything).contains("cannot forget it"));
    daemon.until("still there", |it| it["status"] == STOPPED);
    assert_eq!(place.folder.read("out/film"), place.content);
    fs::remove_dir(&document).unwrap();
    daemon.order("torrent-remove", &everything);
    daemon.until_none();
    daemon.running.kill();
    place.seed.kill();
}

#[test]
fn a_check_that_is_ended_does_not_say_that_there_was_an_earlier_run() {
    let place = Place::new("daemon-check", 100_000_000);
    place.folder.write("out/film", vec![7; 100_000_000]);
    let mut daemon = place.daemon(&[]);
    daemon.add(&place.torrent(), &json!({}));
    daemon.order("torrent-stop", &json!({}));
    daemon.until("stopped", |it| it["status"] == STOPPED);
    daemon.order("torrent-start", &json!({}));
    let torrent = daemon.until("checked", |it| it["error"] == 3 || it["haveValid"] != 0);
    assert!(torrent["errorString"].as_str().unwrap().contains("no piece of this torrent"), "{torrent}");
    assert!(place.folder.read("out/film") == vec![7; 100_000_000]);
    daemon.running.kill();
    place.seed.kill();
}
