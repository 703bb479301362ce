//! Swarm files through the program: what is refused and where, what is written, and that it agrees with itself.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const SWARM: &str = r#"name = "small"

[swarm]
content = "400 kB"
piece = "64 KiB"

[[group]]
name = "seed"
role = "seed"
uplink = "2 Mbit/s"

[[group]]
name = "tcp"
count = 2
uplink = "1 Mbit/s"
transports = 5
at = "1 s"

[[group]]
name = "utp"
count = 2
uplink = "1 Mbit/s"
buffer = "40 packets"
transports = 10
profile = "mainline4"
upload_limit = "100 KiB/s"
at = "1 s"

[links]
rtt = "20 ms"

[records]
queue = true
"#;

/// A folder of a test's own, and what `cede run` says and does in it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("swarm-cli-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("small.toml"), SWARM).unwrap();
        Self(path)
    }

    /// Exit code, standard output, standard error.
    fn cede(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output =
            Command::new(env!("CARGO_BIN_EXE_cede")).args(arguments).current_dir(&self.0).output().unwrap();
        let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The rows of a table, each by its headings.
    fn rows(&self, name: &str) -> Vec<BTreeMap<String, String>> {
        let text = self.read(name);
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_string));
        let headings: Vec<String> = lines.next().unwrap().collect();
        lines.map(|row| headings.iter().cloned().zip(row).collect()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn number(row: &BTreeMap<String, String>, key: &str) -> f64 {
    row[key].parse().unwrap_or_else(|_| panic!("{key} in {row:?}"))
}

#[test]
fn a_swarm_leaves_every_record_that_its_reference_names() {
    let place = Place::new("records");
    let (code, out, err) = place.cede(&["run", "small.toml", "-o", "out", "--json", "--pcap"]);
    assert_eq!(code, Some(0), "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told, serde_json::from_str::<Value>(&place.read("out/summary.json")).unwrap());
    assert_eq!((&told["complete"], &told["leechers"]), (&4.into(), &4.into()));

    let reference =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/swarm-format.md")).unwrap();
    let table = reference.split("The run folder holds:").nth(1).unwrap().split("\n## ").next().unwrap();
    let named: Vec<&str> = table.split('`').skip(1).step_by(2).filter(|word| word.contains('.')).collect();
    for file in fs::read_dir(place.0.join("out")).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        assert!(named.contains(&file.as_str()), "{file} is not in the reference");
    }
    for file in
        ["peers", "links", "tracker", "pieces", "unchokes", "rounds", "payloads", "gaps", "rtts", "queue"]
    {
        assert!(!place.rows(&format!("out/{file}.csv")).is_empty(), "{file}.csv is empty");
    }
}

#[test]
fn records_agree_with_each_other() {
    let place = Place::new("agree");
    let (code, out, err) = place.cede(&["run", "small.toml", "-o", "out", "--json", "--seed", "3"]);
    assert_eq!(code, Some(0), "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["seed"], 3);
    let peers = place.rows("out/peers.csv");
    let sum = |keys: [&str; 2]| peers.iter().flat_map(|peer| keys.map(|key| number(peer, key))).sum::<f64>();
    let (up, down) = (sum(["up_tcp", "up_utp"]), sum(["down_tcp", "down_utp"]));
    // What was under way at the end, or was cancelled, has left and not arrived.
    assert!(up >= down && down >= 4.0 * 400_000.0, "{up} up, {down} down");
    let seed = number(&peers[0], "up_tcp") + number(&peers[0], "up_utp");
    assert!((told["copies_sent_by_seeds"].as_f64().unwrap() - seed / 400_000.0).abs() < 1e-9);
    // 400 kB in pieces of 64 KiB are 7.
    let pieces = place.rows("out/pieces.csv");
    assert_eq!(pieces.len(), 4 * 7);
    for peer in peers.iter().skip(1) {
        let mine = pieces.iter().filter(|row| row["peer"] == peer["peer"]);
        let last = mine.map(|row| number(row, "time_s")).fold(0.0, f64::max);
        let complete = number(peer, "arrived_s") + number(peer, "complete_after_s");
        assert!((last - complete).abs() < 2e-3, "{last} and {complete}");
    }
    let tcp_peers_over_utp = peers.iter().filter(|peer| peer["peer"].contains("-tcp-"));
    assert!(tcp_peers_over_utp.into_iter().all(|peer| number(peer, "down_utp") == 0.0));
    let queue = place.rows("out/queue.csv");
    let dequeues: f64 = place.rows("out/links.csv").iter().map(|link| number(link, "dequeues")).sum();
    assert_eq!(queue.len() as f64, dequeues);
    let announces = place.rows("out/tracker.csv");
    let of = |event: &str| announces.iter().filter(|row| row["event"] == event).count();
    assert_eq!((of("started"), of("completed")), (5, 4));
    assert!(place.rows("out/rounds.csv").iter().all(|row| number(row, "rounds") >= 0.0));
    let rtts = place.rows("out/rtts.csv");
    assert!(rtts.iter().all(|row| number(row, "rtt_ms") >= 19.9), "a round trip takes 20 ms at least");
    let payloads = place.rows("out/payloads.csv");
    assert!(payloads.iter().all(|row| number(row, "payload_bytes") <= 1460.0));
}

#[test]
fn a_wrong_swarm_is_refused_with_its_lines() {
    let place = Place::new("wrong");
    fs::write(
        place.0.join("wrong.toml"),
        SWARM.replace("count = 2", "cuont = 2").replace("\"2 Mbit/s\"", "2").replace("rtt =", "rrt ="),
    )
    .unwrap();
    let (code, out, err) = place.cede(&["run", "wrong.toml"]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    for said in ["--> wrong.toml:10:", "--> wrong.toml:14:", "did you mean `count`?", "--> wrong.toml:30:"] {
        assert!(err.contains(said), "{said} in {err}");
    }
    assert!(!place.0.join("cede-out").exists());
    let (code, _, err) = place.cede(&["run", "small.toml", "-s", "group.nobody.count=3"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("nobody"), "{err}");
}

#[test]
fn overrides_reach_a_group_by_its_name_and_all_of_them() {
    let place = Place::new("overrides");
    let sets = ["-s", "group.utp.count=3", "-s", "group.*.uplink=4 Mbit/s", "-s", "swarm.content=100 kB"];
    let (code, out, err) = place.cede(&[&["run", "small.toml", "-o", "out", "--json"][..], &sets].concat());
    assert_eq!(code, Some(0), "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["leechers"], &told["overrides"][0]), (&5.into(), &"group.utp.count=3".into()));
    assert!(place.rows("out/links.csv").iter().all(|link| number(link, "rate_mbps") == 4.0));
}

#[test]
fn a_swarm_is_read_from_standard_input_as_from_a_file() {
    let place = Place::new("stdin");
    let file = fs::File::open(place.0.join("small.toml")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cede"));
    command.args(["run", "-", "-o", "piped", "--json"]).current_dir(&place.0).stdin(file);
    let piped = command.output().unwrap();
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    let (code, ..) = place.cede(&["run", "small.toml", "-o", "read"]);
    assert_eq!(code, Some(0));
    // The same seed gives the same swarm, whichever way the file came.
    for table in ["peers.csv", "queue.csv", "unchokes.csv", "tracker.csv"] {
        assert!(place.read(&format!("piped/{table}")) == place.read(&format!("read/{table}")), "{table}");
    }
}

#[test]
fn part_of_a_paper_is_run_and_reported_as_part() {
    let place = Place::new("part");
    let words = ["repro", "tma12", "--quick", "-o", "out", "--only", "13 and 14, 10 MB", "--json"];
    let (code, out, err) = place.cede(&words);
    assert_eq!(code, Some(0), "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["runs_there"], 1);
    let verdict = |told: &Value, id: &str| {
        let claims = told["claims"].as_array().unwrap();
        claims.iter().find(|claim| claim["id"] == id).unwrap()["verdict"].clone()
    };
    assert_eq!((verdict(&told, "A2"), verdict(&told, "A9")), ("holds".into(), "open".into()));
    // What is there is reported again without being run.
    let (code, again, err) =
        place.cede(&["repro", "tma12", "--quick", "-o", "out", "--iterations", "0", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(verdict(&serde_json::from_str(&again).unwrap(), "A2"), "holds");
    assert!(place.read("out/tma12.md").contains("1 of "));
    let (code, _, err) = place.cede(&["repro", "tma12", "--only", "no such swarm"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no such swarm") && err.contains("31 at 1 Mbit/s"), "{err}");
    let (code, ..) = place.cede(&["repro", "ledbatpp", "--only", "BBR"]);
    assert_eq!(code, Some(2));
}
