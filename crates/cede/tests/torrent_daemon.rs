//! `cede torrent daemon` as whoever steers it meets it: orders over HTTP on the loopback, and `transmission-remote` where that is installed.

mod support;

use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};
use support::daemon::{FETCHES, GIVES, PATIENCE, Place, QUIET, STOPPED};
use support::has;

#[test]
fn torrents_come_by_file_link_and_octets_and_go_with_their_files() {
    let place = Place::new("daemon-ways", 300_000);
    let mut daemon = place.daemon(&[]);
    let octets = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD_NO_PAD,
        place.folder.read("film.torrent"),
    );
    for arguments in [
        json!({ "filename": place.torrent() }),
        json!({ "filename": place.link() }),
        json!({ "metainfo": octets }),
    ] {
        let added = daemon.order("torrent-add", &arguments)["torrent-added"].clone();
        let torrent = daemon.until("given", |it| it["status"] == GIVES && it["leftUntilDone"] == 0);
        assert_eq!((&torrent["name"], &torrent["percentDone"]), (&json!("film"), &json!(1.0)));
        assert_eq!((&torrent["id"], &torrent["hashString"]), (&added["id"], &added["hashString"]));
        assert_eq!(
            torrent["files"],
            json!([{ "name": "film", "length": 300_000, "bytesCompleted": 300_000 }])
        );
        assert_eq!(place.folder.read("out/film"), place.content);
        // Once more is the same.
        let twice = daemon.order("torrent-add", &arguments);
        assert_eq!(twice["torrent-duplicate"]["id"], added["id"]);
        daemon.order("torrent-remove", &json!({ "ids": [added["id"]], "delete-local-data": true }));
        daemon.until_none();
        let began = Instant::now();
        while fs::read_dir(place.folder.path("out")).unwrap().count() > 0 {
            assert!(began.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let removed = daemon.order("torrent-get", &json!({ "fields": ["id"], "ids": "recently-active" }));
    assert_eq!(removed, json!({ "torrents": [], "removed": [1, 2, 3] }));
    daemon.order("session-close", &json!({}));
    daemon.running.end().exits(0);
    place.seed.kill();
}

#[test]
fn what_is_added_is_remembered_through_an_end_and_a_kill() {
    let place = Place::new("daemon-memory", 2_000_000);
    let mut daemon = place.daemon(&["--down", "200kB/s"]);
    let other = place.folder.path("other").to_str().unwrap().to_owned();
    let more = json!({ "download-dir": other, "labels": ["holidays"] });
    daemon.add(&place.link(), &more);
    daemon.until("begun", |it| it["haveValid"].as_u64().unwrap() > 0);
    daemon.running.kill();
    // Without a limit now.
    let mut daemon = place.daemon(&[]);
    let torrent = daemon.until_there();
    assert_eq!((&torrent["labels"], &torrent["downloadDir"]), (&json!(["holidays"]), &json!(other)));
    assert!(torrent["downloadedEver"].as_u64().unwrap() < 2_000_000, "it went on: {torrent}");
    daemon.order("torrent-stop", &json!({ "ids": torrent["hashString"] }));
    daemon.until("stopped", |it| it["status"] == STOPPED);
    assert_eq!(place.folder.read("other/film"), place.content);
    daemon.running.signal("-TERM");
    daemon.running.end().exits(130);
    // It is not begun again, and known all the same.
    let mut daemon = place.daemon(&[]);
    let torrent = daemon.until("stopped", |it| it["status"] == STOPPED && it["percentDone"] == 1.0);
    daemon.order("torrent-start", &json!({ "ids": [torrent["id"]] }));
    daemon.until("given", |it| it["status"] == GIVES);
    // Another one would write over what this one remembers.
    let words = ["torrent", "daemon", "-o", "out", "--state", "state", "--rpc", "127.0.0.1:0"];
    place.folder.cede(&[&words[..], &QUIET].concat()).exits(1).complains("in use by another one");
    daemon.running.kill();
    place.seed.kill();
}

/// As long as no file has changed, what was checked once is not read again; what has changed is noticed.
#[test]
fn what_was_checked_is_known_until_a_file_changes() {
    let place = Place::new("daemon-known", 300_000);
    let mut daemon = place.daemon(&[]);
    daemon.add(&place.torrent(), &json!({}));
    daemon.until_there();
    daemon.running.interrupt();
    daemon.running.end().exits(130);
    let path = place.folder.path("out/film");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let spoil = |time| {
        let file = fs::File::options().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"something else", 100_000).unwrap();
        file.set_modified(time).unwrap();
    };
    // Who sets a file's time back deceives, and so is believed until it is told to check.
    spoil(time);
    let mut daemon = place.daemon(&[]);
    daemon.running.says("19 of 19 pieces are here");
    daemon.until("given", |it| it["status"] == GIVES && it["leftUntilDone"] == 0);
    daemon.order("torrent-verify", &json!({}));
    daemon.running.says("18 of 19 pieces are here");
    daemon.until("there again", |it| it["status"] == GIVES && it["leftUntilDone"] == 0);
    assert_eq!(place.folder.read("out/film"), place.content);
    daemon.order("session-close", &json!({}));
    daemon.running.end().exits(0);
    spoil(time + Duration::from_secs(1));
    let mut daemon = place.daemon(&[]);
    daemon.running.says("18 of 19 pieces are here");
    daemon.until("there again", |it| it["status"] == GIVES && it["leftUntilDone"] == 0);
    assert_eq!(place.folder.read("out/film"), place.content);
    daemon.running.kill();
    place.seed.kill();
}

#[test]
fn what_is_said_changes_what_runs() {
    let place = Place::new("daemon-changes", 4_000_000);
    let mut daemon = place.daemon(&["--down", "100kB/s"]);
    daemon.add(&place.torrent(), &json!({ "paused": true }));
    daemon.until("stopped", |it| it["status"] == STOPPED && it["percentDone"] == 0.0);
    // Nothing has moved, but it is new: who asks for nothing else would never hear of it.
    let lately = daemon.order("torrent-get", &json!({ "fields": ["name"], "ids": "recently-active" }));
    assert_eq!(lately["torrents"], json!([{ "name": "film" }]));
    daemon.order("torrent-start", &json!({}));
    daemon.until("fetched", |it| it["status"] == FETCHES && it["rateDownload"].as_u64().unwrap() > 0);
    let session = daemon.order("session-get", &json!({}));
    assert_eq!(
        (&session["speed-limit-down"], &session["speed-limit-down-enabled"]),
        (&json!(100), &json!(true))
    );
    assert!(session["version"].as_str().unwrap().starts_with("3.00 (Cede "));
    assert_eq!(
        daemon.order("session-get", &json!({ "fields": ["rpc-version"] })),
        json!({ "rpc-version": 16 })
    );
    // At a hundred kilobytes per second it would take as long as is waited for.
    daemon.order("session-set", &json!({ "speed-limit-down-enabled": false }));
    daemon.until_there();
    let sums = daemon.order("session-stats", &json!({}));
    assert_eq!((&sums["torrentCount"], &sums["activeTorrentCount"]), (&json!(1), &json!(1)));
    assert!(sums["current-stats"]["downloadedBytes"].as_u64().unwrap() >= 4_000_000);
    let (status, head, metrics) = daemon.ask("GET", "/metrics", "", "");
    assert!(status == 200 && head.contains("version=0.0.4"), "{head}");
    assert!(metrics.contains("\ncede_torrent_torrents_giving 1\n"), "{metrics}");
    let free = daemon.order("free-space", &json!({ "path": place.folder.path("out") }));
    assert!(free["size-bytes"].as_u64().unwrap() > 0);
    // Nothing is wanted any more, and what is there stays.
    daemon.order("torrent-set", &json!({ "files-unwanted": [] }));
    let torrent = daemon.until("unwanted", |it| it["wanted"] == json!([0]) && it["status"] == GIVES);
    assert_eq!((&torrent["sizeWhenDone"], &torrent["error"]), (&json!(0), &json!(0)));
    // What is not wanted counts as not there, although nothing has changed since it was checked.
    daemon.until("begun anew", |it| it["haveValid"] == 0);
    daemon.order("torrent-set", &json!({ "files-wanted": [] }));
    daemon.until("there again", |it| it["haveValid"] == 4_000_000 && it["leftUntilDone"] == 0);
    // 245 pieces, and three bits that mean none.
    let fields = json!(["pieces", "secondsDownloading", "secondsSeeding", "seedRatioLimit", "peer-limit"]);
    let told = daemon.order("torrent-get", &json!({ "fields": fields }))["torrents"][0].clone();
    assert_eq!(told["pieces"], format!("{}+A==", "/".repeat(40)), "{told}");
    assert!(fields.as_array().unwrap().iter().all(|it| !told[it.as_str().unwrap()].is_null()), "{told}");
    assert!(session["encryption"] == "tolerated" && session["idle-seeding-limit-enabled"] == false);
    let table = daemon.order("torrent-get", &json!({ "fields": ["name", "nothing"], "format": "table" }));
    assert_eq!(table["torrents"], json!([["name", "nothing"], ["film", null]]));
    daemon.running.kill();
    place.seed.kill();
}

#[test]
fn what_cannot_be_is_refused_in_words_and_changes_nothing() {
    let place = Place::new("daemon-refusals", 50_000);
    let mut daemon = place.daemon(&[]);
    let id = daemon.add(&place.torrent(), &json!({ "paused": true }));
    for (method, arguments, words) in [
        ("torrent-fly", json!({}), "no such method"),
        ("torrent-add", json!({}), "no filename"),
        ("torrent-add", json!({ "filename": "/nowhere/x.torrent" }), "cannot be read"),
        ("torrent-add", json!({ "filename": "magnet:?xt=urn:btih:zz" }), ""),
        ("torrent-add", json!({ "filename": "/dev/null" }), "is no file"),
        ("torrent-add", json!({ "metainfo": "AAAA" }), ""),
        ("torrent-add", json!({ "metainfo": "%" }), "metainfo"),
        ("torrent-add", json!({ "filename": place.link(), "download-dir": "out" }), "from / on"),
        ("torrent-get", json!({ "ids": 1 }), "fields"),
        ("torrent-get", json!({ "fields": [], "ids": [{}] }), "ids"),
        ("torrent-set", json!({ "ids": id, "peer-limit": 5 }), "peer-limit is not known here"),
        ("torrent-set", json!({ "ids": id, "files-wanted": ["a"] }), "numbers of files"),
        ("torrent-set", json!({ "ids": id, "files-unwanted": 0 }), "numbers of files"),
        ("torrent-set", json!({ "ids": id, "labels": "a" }), "a list of words"),
        ("torrent-remove", json!({}), "ids"),
        ("torrent-verify", json!({ "ids": id }), "when it is started"),
        ("session-set", json!({ "speed-limit-up": 0 }), "kB/s"),
        ("session-set", json!({ "speed-limit-up": 50, "speed-limit-down": 0 }), "kB/s"),
        ("session-set", json!({ "alt-speed-enabled": true }), "not known here"),
        ("free-space", json!({ "path": "/nowhere" }), "/nowhere"),
    ] {
        let said = daemon.refused(method, &arguments);
        assert!(said.contains(words), "{method} {arguments}: {said}");
    }
    for body in ["", "{", "[]", "7", "{\"method\": 3}", "{\"method\": \"torrent-get\", \"arguments\": 3}"] {
        assert_ne!(daemon.post(body)["result"], "success", "{body}");
    }
    assert_eq!(daemon.torrents().len(), 1);
    assert_eq!(daemon.torrents()[0]["wanted"], json!([1]));
    assert_eq!(daemon.order("session-get", &json!({}))["speed-limit-up"], 100);
    let answers = [
        ("GET", "/", "", 200),
        ("HEAD", "/page.css", "", 200),
        ("POST", "/", "", 404),
        ("GET", "/", "Host: evil.example\r\n", 421),
        ("GET", "/nowhere", "", 404),
        ("GET", "/transmission/rpc", "", 409),
        ("POST", "/transmission/rpc", "X-Transmission-Session-Id: 0\r\n", 409),
        ("GET", "/metrics", "Host: evil.example\r\n", 421),
        ("POST", "/transmission/rpc", "Host: evil.example:9091\r\n", 421),
    ];
    for (method, path, headers, status) in answers {
        assert_eq!(daemon.ask(method, path, headers, "").0, status, "{method} {path} {headers}");
    }
    daemon.running.kill();
    place.seed.kill();
}

/// The page is itself alone, and gives no orders in the name of whoever has it open elsewhere.
#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let place = Place::new("daemon-page", 50_000);
    let daemon = place.daemon(&[]);
    let (_, head, page) = daemon.ask("GET", "/", "", "");
    assert!(head.contains("default-src 'none'") && head.contains("frame-ancestors 'none'"), "{head}");
    for part in ["page.js", "page.css"] {
        assert!(page.contains(part));
        let (status, head, text) = daemon.ask("GET", &format!("/{part}"), "", "");
        assert!(
            status == 200 && head.contains("content-security-policy") && !text.contains("://"),
            "{part}: {head}"
        );
        // A number is another torrent's once the daemon has begun anew, and the page may still have the old one.
        assert!(!text.contains(".id") && !text.contains("\"id\""), "{part} names torrents by their hashes");
    }
    daemon.running.kill();
    place.seed.kill();
}

/// Whatever an order is made of, it is answered, and the next one too.
#[test]
fn orders_of_all_kinds_are_answered() {
    let place = Place::new("daemon-orders", 50_000);
    let mut daemon = place.daemon(&[]);
    daemon.add(&place.torrent(), &json!({ "paused": true }));
    let methods =
        ["torrent-get", "torrent-set", "torrent-stop", "torrent-verify", "torrent-reannounce", "session-get"];
    let more = ["torrent-add", "torrent-remove", "session-stats", "free-space", "nothing", ""];
    let methods: Vec<&str> = methods.into_iter().chain(more).collect();
    let keys = [
        "ids",
        "fields",
        "format",
        "filename",
        "metainfo",
        "files-wanted",
        "files-unwanted",
        "labels",
        "path",
        "paused",
    ];
    let mut random = cede_units::Stream::named(1, "orders");
    let mut pick = |count: usize| random.below(count as u64) as usize;
    for _ in 0..400 {
        let mut arguments = json!({});
        for _ in 0..pick(4) {
            let values = [
                json!(null),
                json!(-1),
                json!(u64::MAX),
                json!(1.5e300),
                json!(""),
                json!("recently-active"),
                json!("\u{0}%"),
                json!([]),
                json!([null, {}]),
                json!([u64::MAX, 2]),
                json!({ "a": [] }),
                json!(true),
                json!("x".repeat(100_000)),
            ];
            arguments[keys[pick(keys.len())]] = values[pick(values.len())].clone();
        }
        let answer = daemon
            .post(&json!({ "method": methods[pick(methods.len())], "arguments": arguments }).to_string());
        assert!(answer["result"].is_string(), "{arguments}: {answer}");
    }
    daemon.running.kill();
    place.seed.kill();
}

/// A counter goes up alone, whatever is removed and begun anew; and what a run has done is nothing that others have.
#[test]
fn sums_outlast_torrents_and_runs() {
    let place = Place::new("daemon-sums", 300_000);
    let mut daemon = place.daemon(&[]);
    let id = daemon.add(&place.torrent(), &json!({}));
    daemon.until_there();
    daemon.order("torrent-remove", &json!({ "ids": [id, id] }));
    daemon.order("session-close", &json!({}));
    daemon.running.end().exits(0);
    let mut daemon = place.daemon(&[]);
    let sums = daemon.order("session-stats", &json!({}));
    let of = |which: &str| {
        ["downloadedBytes", "filesAdded", "sessionCount"].map(|name| sums[which][name].as_u64().unwrap())
    };
    assert_eq!((of("current-stats"), of("cumulative-stats")), ([0, 0, 1], [300_000, 1, 2]), "{sums}");
    let metrics = daemon.ask("GET", "/metrics", "", "").2;
    assert!(metrics.contains("\ncede_torrent_received_bytes_total 300000\n"), "{metrics}");
    daemon.running.kill();
    place.seed.kill();
}

#[test]
fn strangers_need_the_password() {
    let place = Place::new("daemon-password", 50_000);
    let open = ["torrent", "daemon", "-o", "out", "--state", "state", "--rpc", "0.0.0.0:0"];
    place.folder.cede(&open).exits(2).complains("--rpc-auth");
    place.folder.write("auth", "me\n");
    let auth = ["--rpc-auth", "auth"];
    place.folder.cede(&[&open[..], &auth].concat()).exits(2).complains("NAME:PASSWORD");
    place.folder.write("auth", "me:secret\n");
    let daemon = place.daemon(&auth);
    let (status, head, _) = daemon.ask("GET", "/metrics", "", "");
    assert!(status == 401 && head.contains("www-authenticate: basic"), "{head}");
    for (word, status) in [("bWU6c2VjcmV0", 200), ("bWU6U2VjcmV0", 401), ("", 401)] {
        let header = format!("Authorization: Basic {word}\r\n");
        assert_eq!(daemon.ask("GET", "/metrics", &header, "").0, status, "{word}");
    }
    daemon.running.kill();
    place.seed.kill();
}

#[test]
fn what_goes_wrong_with_a_torrent_is_told_of_it() {
    let place = Place::new("daemon-error", 50_000);
    place.folder.write("out/film", vec![7; 50_000]);
    let mut daemon = place.daemon(&[]);
    daemon.add(&place.torrent(), &json!({}));
    let torrent = daemon.until("failed", |it| it["error"] == 3);
    assert_eq!(torrent["status"], STOPPED);
    assert!(torrent["errorString"].as_str().unwrap().contains("no piece of this torrent"), "{torrent}");
    fs::remove_file(place.folder.path("out/film")).unwrap();
    daemon.order("torrent-start", &json!({}));
    let torrent = daemon.until_there();
    assert_eq!((&torrent["error"], &torrent["errorString"]), (&json!(0), &json!("")));
    daemon.running.kill();
    place.seed.kill();
}

/// Not half a century ago, and not to be asked when an earlier answer has said.
#[test]
fn of_a_tracker_that_does_not_answer_it_is_told_when_it_was_asked() {
    let place = Place::new("daemon-tracker", 50_000);
    let url = format!("http://127.0.0.1:{}/announce", support::free_port());
    let words = ["torrent", "make", "film", "-l", "16KiB", "-t", &url, "-o", "tracked.torrent"];
    place.folder.cede(&words).exits(0);
    let mut daemon = place.daemon(&[]);
    daemon.add(place.folder.path("tracked.torrent").to_str().unwrap(), &json!({}));
    let began = Instant::now();
    let told = loop {
        let told = daemon.order("torrent-get", &json!({ "fields": ["trackerStats"] }));
        let told = told["torrents"][0]["trackerStats"][0].clone();
        if told["hasAnnounced"] == true {
            break told;
        }
        assert!(began.elapsed() < PATIENCE, "{told}");
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(now - told["lastAnnounceTime"].as_u64().unwrap() <= PATIENCE.as_secs() + 1, "{told}");
    assert_eq!((&told["lastAnnounceSucceeded"], &told["announceState"]), (&json!(false), &json!(2)));
    daemon.running.kill();
    place.seed.kill();
}

#[test]
fn transmissions_own_tool_steers_it() {
    if !has("transmission-remote") {
        return;
    }
    let place = Place::new("daemon-remote", 3_000_000);
    let daemon = place.daemon(&["--down", "500kB/s"]);
    let tell = |words: &[&str]| {
        let done =
            place.folder.program(&[&["transmission-remote", &daemon.at], words].concat()).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    assert!(tell(&["-a", "film.torrent"]).contains("success"));
    let began = Instant::now();
    let until = |words: &[&str], what: &str| loop {
        let said = tell(words);
        if said.contains(what) {
            return said;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {said}");
        std::thread::sleep(Duration::from_millis(100));
    };
    until(&["-t", "1", "-ip"], "cede 0.1.0");
    until(&["-l"], "Downloading");
    assert!(tell(&["-t", "1", "-f"]).contains("3.00 MB  film"));
    assert!(tell(&["-D"]).contains("success"));
    let listed = until(&["-l"], "100%");
    assert!(listed.contains("Done") && listed.contains("film"), "{listed}");
    assert!(tell(&["-t", "1", "-i"]).contains("Downloaded: 3.0"));
    let session = tell(&["-si"]);
    assert!(session.contains("RPC version: 16") && session.contains("Download speed limit: "), "{session}");
    assert!(tell(&["-t", "1", "--verify"]).contains("success"));
    assert!(tell(&["-t", "1", "--stop"]).contains("success"));
    until(&["-l"], "Stopped");
    assert!(tell(&["-t", "1", "--remove-and-delete"]).contains("success"));
    let began = Instant::now();
    while place.folder.path("out/film").exists() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
    daemon.running.kill();
    place.seed.kill();
}
