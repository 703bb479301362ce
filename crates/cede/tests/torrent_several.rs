//! Several torrents in one process, as its users meet them: one port, limits for all together, each with its own end.

mod support;

use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use support::{Finished, Folder, Running};

const QUIET: &str = "--no-dht --no-lsd --no-port-mapping -p 0 -B 127.0.0.1";

/// Torrents of three kinds in a folder, with their content.
struct Place {
    folder: Folder,
    contents: Vec<(&'static str, Vec<u8>)>,
}

impl Place {
    fn new(name: &str, bytes: usize) -> Self {
        let folder = Folder::new(name);
        fs::create_dir(folder.path("out")).unwrap();
        let contents = [("one", ""), ("two", "--v2"), ("three", "-t udp://127.0.0.1:9/announce")];
        let contents = contents.map(|(name, options)| {
            let content = folder.write_pattern(name, bytes);
            folder.cede(&words(&format!("torrent make {name} -l 16KiB {options}"))).exits(0);
            (name, content)
        });
        Self { folder, contents: contents.into() }
    }

    fn start(&self, line: &str) -> Running {
        Running::begin(&mut self.folder.command(words(&format!("torrent {line}"))))
    }

    /// One process that gives all of them, and where.
    fn seeded(&self, options: &str) -> (Running, String) {
        let mut seed = self.start(&format!("seed one.torrent two.torrent three.torrent {QUIET} {options}"));
        let ports: Vec<String> = (0..3).map(|_| port_of(&mut seed)).collect();
        assert!(ports.iter().all(|port| *port == ports[0]), "they are not at one port: {ports:?}");
        (seed, format!("127.0.0.1:{}", ports[0]))
    }

    fn get_all(&self, options: &str) -> Finished {
        let torrents = "one.torrent two.torrent three.torrent";
        self.start(&format!("get {torrents} -o out --json {QUIET} {options}")).end()
    }

    /// Everything has come; it is taken away for another time.
    fn all_came(&self, circumstances: &str) {
        for (name, content) in &self.contents {
            assert!(self.folder.read(&format!("out/{name}")) == *content, "{name}: {circumstances}");
            fs::remove_file(self.folder.path(&format!("out/{name}"))).unwrap();
        }
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The port that a headline ends with.
fn port_of(program: &mut Running) -> String {
    program.says("are here; ").rsplit(' ').next().unwrap().trim().to_owned()
}

/// The events of each torrent, by its hash.
fn by_torrent(done: &Finished) -> HashMap<String, Vec<Value>> {
    let mut events: HashMap<String, Vec<Value>> = HashMap::new();
    for line in done.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        events.entry(line["torrent"].as_str().unwrap_or_default().to_owned()).or_default().push(line);
    }
    events
}

#[test]
fn one_port_leads_to_each_torrent_over_each_transport_in_the_clear_or_not() {
    let place = Place::new("several", 300_000);
    for (given, taken) in [("allow", "allow"), ("allow", "require"), ("require", "prefer"), ("off", "off")] {
        let (_seed, peer) = place.seeded(&format!("--encryption {given}"));
        for transport in ["tcp", "utp"] {
            let options = format!("--peer {peer} --transport {transport} --encryption {taken}");
            let done = place.get_all(&options).exits(0);
            place.all_came(&format!("{given} {taken} {transport}"));
            let events = by_torrent(&done);
            assert_eq!(events.len(), 3, "{:?}", events.keys());
            for events in events.values() {
                let named = |name: &str| events.iter().filter(|event| event["event"] == name).count();
                assert_eq!((named("begin"), named("complete"), named("end")), (1, 1, 1));
                let (begin, end) = (&events[0], &events[events.len() - 1]);
                assert_eq!(begin["data"]["info_hash"], begin["torrent"]);
                assert_eq!(begin["data"]["what"], end["data"]["what"]);
                assert_eq!(end["data"]["downloaded"][transport], 300_000);
            }
        }
    }
}

/// However slow the machine, all together are not faster than the limit and a second's worth of it.
#[test]
fn limits_are_those_of_all_torrents_together() {
    let place = Place::new("several-limits", 600_000);
    for (give, take) in [("--up 600kB/s", ""), ("", "--down 600kB/s")] {
        for transport in ["tcp", "utp"] {
            let (_seed, peer) = place.seeded(give);
            let done = place.get_all(&format!("--peer {peer} --transport {transport} {take}")).exits(0);
            place.all_came(transport);
            let ends = done.text().lines().filter_map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                (line["event"] == "end").then(|| line["data"]["seconds"].as_f64().unwrap())
            });
            let took = ends.fold(0.0, f64::max);
            let least = (1_800_000.0 - 600_000.0) / 600_000.0 * 0.95;
            assert!(took > least, "{give}{take} {transport}: all within {took} s");
        }
    }
}

/// What is wrong with one is no matter of the others.
#[test]
fn a_torrent_that_fails_leaves_the_others_alone() {
    let place = Place::new("several-failing", 100_000);
    let (seed, peer) = place.seeded("");
    // Another torrent of a file by the same name, and something that is none.
    fs::create_dir(place.folder.path("other")).unwrap();
    place.folder.write("other/one", b"other content");
    place.folder.cede(&words("torrent make other/one -o clash.torrent")).exits(0);
    // And one that would have a folder where the file is.
    fs::create_dir_all(place.folder.path("deep/one")).unwrap();
    place.folder.write("deep/one/x", b"more content");
    place.folder.cede(&words("torrent make deep/one -o folder.torrent")).exits(0);
    place.folder.write("broken.torrent", b"d4:infoi1ee");
    let what = "one.torrent broken.torrent two.torrent one.torrent three.torrent clash.torrent away.torrent folder.torrent";
    let words = format!("get {what} -o out {QUIET} --peer {peer}");
    let done = place.start(&words).end().exits(1);
    place.all_came("beside others that failed");
    let said = &done.err;
    for (what, why) in [
        ("broken.torrent", ": the torrent has no usable "),
        ("one.torrent", ": the same torrent as another one"),
        ("clash.torrent", ": one belongs to another one of these"),
        ("folder.torrent", ": one belongs to another one of these"),
        ("away.torrent", ": cannot be read: "),
    ] {
        let mut lines = said.lines().filter(|line| line.contains(what));
        let line = lines.next().unwrap_or_else(|| panic!("{what}: {said}"));
        assert!(line.starts_with(&format!("error: {what}: ")) && line.contains(why), "{what}, {why}: {said}");
        assert!(line.matches(what).count() == 1 && lines.next().is_none(), "{what} is named once: {said}");
    }
    assert!(said.contains("error: 5 of 8 torrents failed"), "{said}");
    let done = place.start(&format!("get one.torrent two.torrent --files 0 {QUIET}")).end().exits(2);
    assert!(done.err.contains("--files picks files of one torrent"), "{}", done.err);
    seed.interrupt();
    let done = seed.end().exits(130);
    assert_eq!(done.err.matches("nothing more is given").count(), 3, "{}", done.err);
}

/// Nothing comes of a torrent for whose file something longer is there; the other one of that name is what that belongs to.
#[test]
fn a_torrent_that_does_not_begin_keeps_its_names_from_nobody() {
    let place = Place::new("several-names", 100_000);
    fs::create_dir(place.folder.path("other")).unwrap();
    place.folder.write("other/one", b"short");
    place.folder.cede(&words("torrent make other/one -o short.torrent")).exits(0);
    fs::write(place.folder.path("out/one"), place.folder.read("one")).unwrap();
    let done = place.start(&format!("get short.torrent one.torrent -o out {QUIET}")).end().exits(1);
    assert!(done.err.contains("error: short.torrent: "), "{}", done.err);
    assert!(done.err.contains("error: 1 of 2 torrents failed"), "{}", done.err);
}

/// Links among files; those that nobody knows keep nobody waiting.
#[test]
fn links_and_files_come_together() {
    let place = Place::new("several-links", 100_000);
    let (_seed, peer) = place.seeded("");
    let link = |name: &str| {
        let shown = place.folder.cede(&words(&format!("torrent show {name}.torrent --json"))).exits(0);
        shown.json()["magnet"].as_str().unwrap().to_owned()
    };
    let (one, two) = (link("one"), link("two"));
    let nobody = format!("magnet:?xt=urn:btih:{}", "7".repeat(40));
    let line = format!("torrent get {nobody} {one} three.torrent {two} -o out --json {QUIET} --peer {peer}");
    let mut get = Running::begin(&mut place.folder.command(words(&line)));
    for _ in 0..3 {
        get.prints("\"end\"");
    }
    place.all_came("by link");
    get.interrupt();
    let done = get.end().exits(130);
    assert!(done.err.contains(&format!("{nobody}: nothing was downloaded")), "{}", done.err);
}

/// libtorrent's three torrents come from one process of ours, and ours from one of its.
#[test]
fn libtorrent_has_several_torrents_of_one_port_too() {
    let Some(python) = support::libtorrent() else {
        println!("SKIPPED: no libtorrent of PyPI");
        return;
    };
    let place = Place::new("several-libtorrent", 300_000);
    let theirs = |folder: &str, peer: &str, (port, transport): (&str, &str)| {
        let words = ["one.torrent,two.torrent,three.torrent", folder, peer, port, transport];
        Running::begin(&mut place.folder.libtorrent(&python, &words))
    };
    let (_seed, peer) = place.seeded("");
    for transport in ["tcp", "utp"] {
        theirs("out", &peer, ("0", transport)).out_line("complete");
        place.all_came(transport);
    }
    let port = support::free_port().to_string();
    let mut seed = theirs(".", "near", (&port, "both"));
    seed.out_line("complete");
    for transport in ["tcp", "utp"] {
        place.get_all(&format!("--transport {transport} --peer 127.0.0.1:{port}")).exits(0);
        place.all_came(transport);
    }
}

/// Torrents that are fetched one after the other may have one name; nothing is lost by that, nor by a run that was ended at once.
#[test]
fn what_is_no_part_of_a_torrent_is_not_written_over() {
    let place = Place::new("strangers", 100_000);
    let (_seed, peer) = place.seeded("");
    let (ours, others) =
        (place.folder.read("one"), place.folder.read("one").iter().map(|octet| !octet).collect::<Vec<_>>());
    let put = |octets: &[u8]| fs::write(place.folder.path("out/one"), octets).unwrap();
    let is_ours = || place.folder.read("out/one") == ours;
    put(&others);
    let get = |options: &str| {
        place.start(&format!("get one.torrent -o out --peer {peer} --json {QUIET} {options}")).end()
    };
    for preallocate in ["", "--preallocate"] {
        let told = get(preallocate).exits(1);
        assert!(
            told.err.contains("out/one is there already") && told.err.contains("--overwrite"),
            "{}",
            told.err
        );
        assert!(told.event("end")["error"].as_str().unwrap().contains("no piece of this torrent"));
        assert!(place.folder.read("out/one") == others);
        let left = fs::read_dir(place.folder.path("out")).unwrap().count();
        assert_eq!(left, 1, "nothing stays of what was not begun");
    }
    get("--overwrite").exits(0);
    assert!(is_ours());
    // One piece of it is enough to go on by, and so is that there was an earlier run.
    put(&[&ours[..16_384], &others[16_384..]].concat());
    get("").exits(0);
    put(&others);
    let hash = place.folder.cede(&words("torrent show one.torrent --json")).exits(0).json();
    let notes = format!("out/.{}.cede-resume", hash["info_hash"].as_str().unwrap());
    fs::write(place.folder.path(&notes), "").unwrap();
    get("").exits(0);
    assert!(is_ours());
}
