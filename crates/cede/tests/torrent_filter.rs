//! Addresses that `cede torrent` neither calls nor hears (`--ip-filter`).

mod support;

use support::Folder;
use support::daemon::{Place, QUIET};

/// Waits at another address of this machine than [`QUIET`].
const ELSEWHERE: [&str; 7] = ["--no-dht", "--no-lsd", "--no-port-mapping", "-p", "0", "-B", "127.0.0.2"];

#[test]
fn who_is_on_the_list_is_not_called() {
    let place = Place::new("filter-calls", 50_000);
    place.folder.write("list", "# loopback\nsomebody:127.000.000.001-127.0.0.1\nrubbish\n");
    for what in ["film.torrent", &place.link()] {
        let words =
            ["torrent", "get", what, "-o", "out", "--json", "--ip-filter", "list", "--peer", &place.peer];
        let mut leech = place.folder.start(&[&words[..], &QUIET].concat());
        let told = leech.says("left alone");
        assert!(
            told.contains("1 range of addresses left alone; 1 line is none, the first is line 3"),
            "{told}"
        );
        if what == "film.torrent" {
            leech.prints_such(|event| event["data"]["unheard"]["filtered"] == 1);
        } else {
            leech.says("1 peer called: 1 left alone (--ip-filter)");
        }
        leech.interrupt();
        leech.end().exits(130);
    }
    assert!(!place.folder.path("out/film").exists());
    place.seed.kill();
}

#[test]
fn who_is_on_the_list_is_not_heard() {
    let mut place = Place::new("filter-hears", 50_000);
    place.folder.write("list", "127.0.0.2/32\n");
    place.reseed(&["film.torrent", "--ip-filter", "list"]);
    for transport in ["tcp", "utp"] {
        let words = ["torrent", "get", "film.torrent", "-o", "out", "-J", "--peer", &place.peer];
        let mut leech = place.folder.start(&[&words[..], &["--transport", transport], &ELSEWHERE].concat());
        leech.prints_such(|event| event["data"]["unheard"]["hung_up"] == 1);
        leech.interrupt();
        leech.end().exits(130);
    }
    // Others are.
    let words = ["torrent", "get", "film.torrent", "-o", "other", "--peer", &place.peer];
    place.folder.cede(&[&words[..], &QUIET].concat()).exits(0);
    assert_eq!(place.folder.read("other/film"), place.content);
    place.seed.kill();
}

#[test]
fn a_list_that_cannot_be_one_is_refused() {
    let folder = Folder::new("filter-wrong");
    folder.write("film", vec![7; 20_000]);
    folder.cede(&["torrent", "make", "film"]).exits(0);
    folder.write("rubbish", "no\naddresses\n");
    folder.write("cut.gz", [0x1f, 0x8b, 8, 0, 0, 0]);
    for (list, code, words) in [
        ("none", 1, "--ip-filter: cannot read none"),
        ("rubbish", 2, "--ip-filter: rubbish has no addresses (line 1, say, is none)"),
        ("cut.gz", 1, "--ip-filter: cannot read cut.gz"),
    ] {
        let all = ["torrent", "get", "film.torrent", "-o", "out", "--ip-filter", list];
        folder.cede(&[&all[..], &QUIET].concat()).exits(code).complains(words);
    }
}
