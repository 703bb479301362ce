//! Swarm files through the program: what is refused and where, what is written, and that it agrees with itself.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use support::{Folder, Running};

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

/// A folder with the swarm in it.
fn place(name: &str) -> Folder {
    let place = Folder::new(name);
    place.write("small.toml", SWARM);
    place
}

/// The rows of a table, each by its headings.
fn rows(place: &Folder, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = place.text(name);
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_string));
    let headings: Vec<String> = lines.next().unwrap().collect();
    lines.map(|row| headings.iter().cloned().zip(row).collect()).collect()
}

fn number(row: &BTreeMap<String, String>, key: &str) -> f64 {
    row[key].parse().unwrap_or_else(|_| panic!("{key} in {row:?}"))
}

/// What a complete leecher received is the content, what it had already, and what came to nothing.
fn assert_balanced(peer: &BTreeMap<String, String>, content: f64) {
    let down = number(peer, "down_tcp") + number(peer, "down_utp");
    assert_eq!(down - number(peer, "redundant") - number(peer, "cut"), content, "{peer:?}");
}

#[test]
fn a_swarm_leaves_every_record_that_its_reference_names() {
    let place = place("records");
    let told = place.cede(&["run", "small.toml", "-o", "out", "--json", "--pcap=senders"]).exits(0).json();
    assert_eq!(told["command"], "cede run small.toml -s records.packets=seeds", "{}", told["overrides"]);
    assert_eq!(told, serde_json::from_str::<Value>(&place.text("out/summary.json")).unwrap());
    assert_eq!((&told["complete"], &told["leechers"]), (&4.into(), &4.into()));

    let reference =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/swarm-format.md")).unwrap();
    let table = reference.split("The run folder holds:").nth(1).unwrap().split("\n## ").next().unwrap();
    let named: Vec<&str> = table.split('`').skip(1).step_by(2).filter(|word| word.contains('.')).collect();
    for file in fs::read_dir(place.path("out")).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        assert!(named.contains(&file.as_str()), "{file} is not in the reference");
    }
    for file in
        ["peers", "links", "tracker", "pieces", "unchokes", "rounds", "payloads", "gaps", "rtts", "queue"]
    {
        assert!(!rows(&place, &format!("out/{file}.csv")).is_empty(), "{file}.csv is empty");
    }
}

#[test]
fn every_column_of_every_table_is_explained() {
    let place = place("columns");
    place.cede(&["run", "small.toml", "-o", "out"]).exits(0);
    let reference = place.cede(&["explain", "swarm"]).exits(0).text().to_owned();
    for file in fs::read_dir(place.path("out")).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let Some(text) = file.ends_with(".csv").then(|| place.text(&format!("out/{file}"))) else { continue };
        let listed =
            reference.split(&format!("\n`{file}`:\n\n")).nth(1).unwrap().split("\n\n").next().unwrap();
        let listed: Vec<&str> = listed.lines().filter_map(|line| line.split('`').nth(1)).collect();
        let headings: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        assert_eq!(listed, headings, "{file}");
        assert!(text.lines().all(|line| line.split(',').count() == headings.len()), "{file}");
        for heading in headings {
            let topics = place.cede(&["explain", heading, "--json"]).exits(0).json();
            let is_column = |topic: &Value| topic["kind"] == "column" && topic["name"] == heading;
            assert!(topics.as_array().unwrap().iter().any(is_column), "{heading}: {topics}");
        }
    }
}

/// What was not measured is no zero.
#[test]
fn links_count_from_a_time_on_and_what_is_not_known_is_left_out() {
    let place = place("from");
    let run = |out: &str, sets: &[&str]| {
        let sets: Vec<&str> =
            ["group.tcp.buffer=4 packets"].iter().chain(sets).flat_map(|set| ["-s", set]).collect();
        place.cede(&[&["run", "small.toml", "-o", out][..], &sets].concat()).exits(0);
    };
    run("all", &[]);
    run("part", &["swarm.measure_from=3 s", "records.rtt=false"]);
    let total = |out: &str, key: &str| {
        rows(&place, &format!("{out}/links.csv")).iter().map(|row| number(row, key)).sum::<f64>()
    };
    // What had happened before is known from the log of all dequeues: drops come with the next one.
    let log = rows(&place, "all/queue.csv");
    let late = log.iter().filter(|row| number(row, "time_s") >= 3.0).count() as f64;
    assert_eq!(total("part", "dequeues"), late);
    let mut early: BTreeMap<&str, f64> = BTreeMap::new();
    for row in log.iter().filter(|row| number(row, "time_s") < 3.0) {
        early.insert(&row["peer"], number(row, "dropped"));
    }
    let early: f64 = early.values().sum();
    let (all, part) = (total("all", "dropped"), total("part", "dropped"));
    assert!(
        early > 5.0 && part > 0.0 && (all - early - part).abs() <= 4.0,
        "{all} of which {early}, then {part}"
    );
    assert!(rows(&place, "part/peers.csv").iter().all(|row| row["mean_rtt_ms"].is_empty()));
    let rtts: Vec<f64> = rows(&place, "all/peers.csv").iter().map(|row| number(row, "mean_rtt_ms")).collect();
    assert!(rtts.iter().all(|rtt| *rtt > 19.9), "{rtts:?}");
    run("none", &["swarm.measure_from=23 h"]);
    let links = rows(&place, "none/links.csv");
    assert!(links.iter().all(|row| row["dequeues"] == "0" && row["queue_mean_ms"].is_empty()), "{links:?}");
}

/// As with a scenario's folder, which a swarm's may follow, and the other way round.
#[test]
fn a_folder_holds_one_swarm_and_nothing_of_an_earlier_run() {
    let place = place("one");
    let told = place.cede(&["run", "small.toml", "-o", "out", "--pcap"]).exits(0);
    let count = || fs::read_dir(place.path("out")).unwrap().count();
    let records = format!("Records: {} files in out", count());
    assert!(told.text().contains(&records), "{}", told.text());
    assert!(place.path("out/packets.pcapng").exists() && place.path("out/queue.csv").exists());
    place.cede(&["run", "small.toml", "-o", "out", "-s", "records.queue=false"]).exits(0);
    assert!(!place.path("out/packets.pcapng").exists() && !place.path("out/queue.csv").exists());
    place.cede(&["demo", "-o", "out"]).exits(0);
    assert!(place.path("out/flows.csv").exists() && !place.path("out/peers.csv").exists());
    assert!(!place.path("out/summary.json").exists() && !place.path("out/swarm.toml").exists());
    place.cede(&["run", "small.toml", "-o", "out"]).exits(0);
    assert!(!place.path("out/manifest.json").exists() && place.path("out/peers.csv").exists());

    place.write("letters/summary.md", "dear");
    place.write("letters/summary.json", "{}");
    place.cede(&["run", "small.toml", "-o", "letters"]).exits(1).complains("holds files that no run wrote");
    assert_eq!(place.text("letters/summary.md"), "dear");
}

#[test]
fn records_agree_with_each_other() {
    let place = place("agree");
    let told = place.cede(&["run", "small.toml", "-o", "out", "--json", "--seed", "3"]).exits(0).json();
    assert_eq!(told["seed"], 3);
    let peers = rows(&place, "out/peers.csv");
    let sum = |keys: [&str; 2]| peers.iter().flat_map(|peer| keys.map(|key| number(peer, key))).sum::<f64>();
    let (up, down) = (sum(["up_tcp", "up_utp"]), sum(["down_tcp", "down_utp"]));
    // What was under way at the end, or was cancelled, has left and not arrived.
    assert!(up >= down && down >= 4.0 * 400_000.0, "{up} up, {down} down");
    let seed = number(&peers[0], "up_tcp") + number(&peers[0], "up_utp");
    assert!((told["copies_sent_by_seeds"].as_f64().unwrap() - seed / 400_000.0).abs() < 1e-9);
    // 400 kB in pieces of 64 KiB are 7.
    let pieces = rows(&place, "out/pieces.csv");
    assert_eq!(pieces.len(), 4 * 7);
    for peer in peers.iter().skip(1) {
        assert_balanced(peer, 400_000.0);
        let mine = pieces.iter().filter(|row| row["peer"] == peer["peer"]);
        let last = mine.map(|row| number(row, "time_s")).fold(0.0, f64::max);
        let complete = number(peer, "arrived_s") + number(peer, "complete_after_s");
        assert!((last - complete).abs() < 2e-3, "{last} and {complete}");
    }
    let tcp_peers_over_utp = peers.iter().filter(|peer| peer["peer"].contains("-tcp-"));
    assert!(tcp_peers_over_utp.into_iter().all(|peer| number(peer, "down_utp") == 0.0));
    let queue = rows(&place, "out/queue.csv");
    let dequeues: f64 = rows(&place, "out/links.csv").iter().map(|link| number(link, "dequeues")).sum();
    assert_eq!(queue.len() as f64, dequeues);
    let announces = rows(&place, "out/tracker.csv");
    let of = |event: &str| announces.iter().filter(|row| row["event"] == event).count();
    assert_eq!((of("started"), of("completed")), (5, 4));
    assert!(rows(&place, "out/rounds.csv").iter().all(|row| number(row, "rounds") >= 0.0));
    let rtts = rows(&place, "out/rtts.csv");
    assert!(rtts.iter().all(|row| number(row, "rtt_ms") >= 19.9), "a round trip takes 20 ms at least");
    let payloads = rows(&place, "out/payloads.csv");
    assert!(payloads.iter().all(|row| number(row, "payload_bytes") <= 1460.0));
}

#[test]
fn a_wrong_swarm_is_refused_with_its_lines() {
    let place = place("wrong");
    let wrong =
        SWARM.replace("count = 2", "cuont = 2").replace("\"2 Mbit/s\"", "2").replace("rtt =", "rrt =");
    place.write("wrong.toml", wrong);
    let run = place.cede(&["run", "wrong.toml"]).exits(2);
    for said in ["--> wrong.toml:10:", "--> wrong.toml:14:", "did you mean `count`?", "--> wrong.toml:30:"] {
        assert!(run.err.contains(said), "{said} in {}", run.err);
    }
    assert!(run.out.is_empty() && !place.path("cede-out").exists());
    place.cede(&["run", "small.toml", "-s", "group.nobody.count=3"]).exits(2).complains("nobody");
}

#[test]
fn a_swarm_that_contradicts_itself_is_refused() {
    let place = place("contradiction");
    let device = "[[device]]\nname = \"as1\"\n\n";
    for (from, to, said) in [
        ("name = \"utp\"", "name = \"tcp\"".to_string(), "two groups are called `tcp`"),
        ("[links]\nrtt = \"20 ms\"", format!("{device}{device}"), "two devices are called `as1`"),
        (
            "[swarm]",
            "[swarm]\nduration = \"1 min\"\nmeasure_from = \"2 min\"".into(),
            "nothing is left to measure",
        ),
        (
            "rtt = \"20 ms\"",
            "matrix = \"0 ms, 1 ms, 1 ms; 1 ms, -1 ms, 1 ms; 1 ms, 1 ms, 0 ms\"".into(),
            "`-1 ms`",
        ),
        ("rtt = \"20 ms\"", "matrix = \"0 ms, 1 ms; 1 ms, 0 ms\"".into(), "does not fit the groups"),
        ("buffer = \"40 packets\"", "buffer = \"1 kB\"".into(), "a `buffer` of 1000 B holds no packet"),
        ("role = \"seed\"", "role = \"seed\"\nmachine = \"zz\"".into(), "there are no devices"),
    ] {
        let wrong = SWARM.replacen(from, &to, 1);
        let wrong = if to.contains("[[device]]") {
            wrong.replace("role = \"seed\"", "role = \"seed\"\nmachine = \"as1\"")
        } else {
            wrong
        };
        assert!(wrong != SWARM, "{from}");
        place.write("wrong.toml", wrong);
        place.cede(&["run", "wrong.toml"]).exits(2).complains(said);
    }
}

#[test]
fn a_swarm_that_does_not_finish_says_why() {
    let place = place("unfinished");
    let run = |sets: &[&str]| {
        let words = ["run", "small.toml", "-o", "out", "--json", "-s", "swarm.duration=20 s"];
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["-s", set]).collect();
        place.cede(&[&words[..], &sets].concat()).exits(0)
    };
    let done = run(&["group.*.uplink=9 Mbit/s", "group.utp.upload_limit=9 Mbit/s"]);
    assert!(!done.err.contains("not complete"), "{}", done.err);
    let alone = run(&["group.seed.transports=5", "group.tcp.transports=16"]);
    alone.complains("4 of 4 leechers are not complete: by their `transports` nobody can connect to tcp");
    run(&["group.utp.at=48 h"]).complains("after 20 s, and 2 of them never came");
    run(&["group.seed.at=48 h"]).complains("after 20 s: no seed ever came, they arrive later");
    run(&["group.*.transports=0"]).complains("not complete");
    let summary = place.text("out/summary.md");
    assert!(summary.lines().any(|line| line.contains("over TCP") && line.contains('–')), "{summary}");
    run(&["group.*.uplink=20 kbit/s"]).complains("4 of 4 leechers are not complete after 20 s\n");
    let left = run(&["group.*.uplink=100 kbit/s", "group.seed.departure=churn", "group.seed.after=1 s"]);
    let gone = rows(&place, "out/peers.csv")[0]["left_s"].parse::<f64>().unwrap();
    assert!((1.0..20.0).contains(&gone), "{gone}");
    left.complains("4 of 4 leechers are not complete after 20 s: the last seed left at ");
}

/// Each stay counts, and the last alone would be less than the content.
#[test]
fn what_a_peer_did_before_it_came_back_is_counted() {
    let place = place("churn");
    let churn = SWARM.replace("at = \"1 s\"", "at = \"1 s\"\ndeparture = \"churn\"\nafter = \"3 s\"");
    place.write("churn.toml", churn);
    let told =
        place.cede(&["run", "churn.toml", "-o", "out", "--json", "-s", "swarm.content=2 MB"]).exits(0).json();
    assert_eq!(told["complete"], 4);
    let peers = rows(&place, "out/peers.csv");
    let stays = rows(&place, "out/tracker.csv").iter().filter(|row| row["event"] == "started").count();
    assert!(stays > 8, "{stays} stays");
    for peer in &peers[1..] {
        assert_balanced(peer, 2_000_000.0);
    }
    let down = |peer: &Value| ["tcp", "utp"].map(|by| peer["downloaded_bytes"][by].as_f64().unwrap());
    assert!(told["peers"].as_array().unwrap()[1..].iter().all(|peer| down(peer)[0] + down(peer)[1] >= 2e6));
}

/// The latency of a group counts in both directions, whatever else its access links are.
#[test]
fn latency_does_not_depend_on_other_options() {
    let place = place("latency");
    let flat = SWARM
        .replace("rtt = \"20 ms\"", "rtt = \"0 ms\"")
        .replace("uplink = \"1 Mbit/s\"", "latency = \"50 ms\"");
    place.write("flat.toml", &flat);
    place.write("slow.toml", flat.replace("latency =", "uplink = \"8 Mbit/s\"\nlatency ="));
    place.write("down.toml", flat.replace("latency =", "downlink = \"8 Mbit/s\"\nlatency ="));
    place.write("loss.toml", flat.replace("latency =", "loss = 0.0001\nlatency ="));
    for name in ["flat", "slow", "down", "loss"] {
        place
            .cede(&["run", &format!("{name}.toml"), "-o", name, "-s", "group.*.upload_limit=400 kbit/s"])
            .exits(0);
        let rtts = rows(&place, &format!("{name}/rtts.csv"));
        let seed =
            rtts.iter().find(|row| row["peer"].contains("-seed-") && row["percentile"] == "1").unwrap();
        let rtt_ms = number(seed, "rtt_ms");
        assert!((99.0..130.0).contains(&rtt_ms), "{name}: {rtt_ms}");
    }
}

#[test]
fn overrides_reach_a_group_by_its_name_and_all_of_them() {
    let place = place("overrides");
    let sets = ["-s", "group.utp.count=3", "-s", "group.*.uplink=4 Mbit/s", "-s", "swarm.content=100 kB"];
    let told =
        place.cede(&[&["run", "small.toml", "-o", "out", "--json"][..], &sets].concat()).exits(0).json();
    assert_eq!((&told["leechers"], &told["overrides"][0]), (&5.into(), &"group.utp.count=3".into()));
    assert!(rows(&place, "out/links.csv").iter().all(|link| number(link, "rate_mbps") == 4.0));
}

#[test]
fn a_swarm_is_read_from_standard_input_as_from_a_file() {
    let place = place("stdin");
    place.cede_reading(&["run", "-", "-o", "piped"], SWARM.as_bytes()).exits(0);
    place.cede(&["run", "small.toml", "-o", "read"]).exits(0);
    // The same seed gives the same swarm, whichever way the file came.
    for table in ["peers.csv", "queue.csv", "unchokes.csv", "tracker.csv"] {
        assert!(place.text(&format!("piped/{table}")) == place.text(&format!("read/{table}")), "{table}");
    }
    // What repeats it names the overrides, which the file that is kept has not.
    let sets = ["run", "-", "-o", "piped", "--json", "--seed", "7", "-s", "group.utp.count=3"];
    let told = place.cede_reading(&sets, SWARM.as_bytes()).exits(0).json();
    assert_eq!(told["command"], "cede run piped/swarm.toml -s group.utp.count=3 -s seed=7");
}

/// What a swarm showed until it was interrupted is there, and says that it was.
#[test]
fn an_interrupted_swarm_is_kept_as_far_as_it_came() {
    let place = place("interrupted");
    let large = ["-s", "swarm.content=4 GB", "-s", "swarm.piece=4 MiB", "-s", "group.*.uplink=10 Mbit/s"];
    let running = place.start(&[&["run", "small.toml", "-o", "out"][..], &large].concat());
    let patience = std::time::Instant::now();
    while !place.path("out").exists() && patience.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.interrupt();
    running.end().exits(130).complains("what was recorded until then is kept");
    let summary: Value = serde_json::from_str(&place.text("out/summary.json")).unwrap();
    assert_eq!((&summary["interrupted"], &summary["complete"]), (&true.into(), &0.into()));
    assert!(summary["ended_s"].as_f64().unwrap() >= 1.0, "{summary}");
    assert_eq!(rows(&place, "out/peers.csv").len(), 5);
}

/// Who is ended by force leaves word of whose files these are, and the same command replaces them; also where it names the file in the folder.
#[test]
fn a_swarm_that_was_ended_by_force_is_replaced() {
    let place = place("forced");
    place.cede(&["run", "small.toml", "-o", "out"]).exits(0);
    let large = ["-s", "swarm.content=4 GB", "-s", "swarm.piece=4 MiB", "-s", "group.*.uplink=10 Mbit/s"];
    let running = place.start(&[&["run", "out/swarm.toml", "-o", "out", "--pcap"][..], &large].concat());
    let patience = std::time::Instant::now();
    while !place.path("out/packets.pcapng").exists() && patience.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.kill();
    let summary: Value = serde_json::from_str(&place.text("out/summary.json")).unwrap();
    assert_eq!((&summary["interrupted"], &summary["complete"]), (&true.into(), &Value::Null));
    assert!(!place.path("out/peers.csv").exists(), "of an earlier run nothing stands beside this one");
    assert_eq!(place.text("out/swarm.toml"), SWARM, "the file that is run is never gone");
    place.cede(&["run", "out/swarm.toml", "-o", "out"]).exits(0);
    assert!(!place.path("out/packets.pcapng").exists() && place.path("out/peers.csv").exists());
}

/// A file that finds no room, as on a full disk.
#[test]
#[cfg(unix)]
fn a_swarm_whose_tables_find_no_room_is_replaced() {
    let place = place("room");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", r#"ulimit -f 8; exec "$@""#, "sh", env!("CARGO_BIN_EXE_cede")]);
    command.args(["run", "small.toml", "-o", "out"]).current_dir(place.path(""));
    Running::begin(&mut command).end().exits(1).complains("queue.csv");
    assert!(place.path("out/peers.csv").exists());
    place.cede(&["run", "small.toml", "-o", "out"]).exits(0);
}

#[test]
fn part_of_a_paper_is_run_and_reported_as_part() {
    let place = place("part");
    let words = ["repro", "tma12", "--quick", "-o", "out", "--json"];
    let verdict = |told: &Value, id: &str| {
        let claims = told["claims"].as_array().unwrap();
        claims.iter().find(|claim| claim["id"] == id).unwrap()["verdict"].clone()
    };
    let told = place.cede(&[&words[..], &["--only", "13 and 14, 10 MB"]].concat()).exits(0).json();
    assert_eq!(told["runs_there"], 1);
    assert_eq!((verdict(&told, "A2"), verdict(&told, "A9")), ("holds".into(), "open".into()));
    // What is there is reported again without being run.
    let again = place.cede(&[&words[..], &["--iterations", "0"]].concat()).exits(0).json();
    assert_eq!((&again["runs_there"], verdict(&again, "A2")), (&1.into(), "holds".into()));
    assert!(place.text("out/tma12.md").contains("1 of "));
    let refused = place.cede(&["repro", "tma12", "--only", "no such swarm"]).exits(2);
    refused.complains("no such swarm").complains("31 at 1 Mbit/s");
    place.cede(&["repro", "ledbatpp", "--only", "BBR"]).exits(2);
}
