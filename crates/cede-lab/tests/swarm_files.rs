//! Swarm files: those that come with Cede run and complete, their reference is the generated one, and a swarm's capture
//! holds what the swarm moved.

use cede_bt::engine::AnnounceEvent;
use cede_lab::scenario::{Overrides, SWARM_TABLES, parse_swarm, swarm_reference};
use cede_lab::swarm::{
    Packets, Swarm, SwarmOutcome, SwarmWatcher, run, run_captured, summary_table, to_json, write,
};
use cede_units::{Duration, Instant};
use cede_wire::pcap::Reader;
use cede_wire::utp::{EXT_PADDING, Packet};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example(name: &str, set: &[&str]) -> Swarm {
    let path = root().join("scenarios/swarms").join(name);
    let text = fs::read_to_string(path).unwrap();
    let overrides = Overrides::new(set.iter().copied());
    parse_swarm(name, &text, &overrides).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn played(swarm: &Swarm) -> SwarmOutcome {
    let outcome = run(swarm, &mut ()).unwrap();
    assert!(outcome.peers.iter().all(|peer| peer.record.corrupt_bytes == 0));
    outcome
}

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("swarm-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

#[test]
fn every_example_runs_to_its_end() {
    let examples = fs::read_dir(root().join("scenarios/swarms")).unwrap();
    let names: Vec<String> =
        examples.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.len() >= 4, "{names:?}");
    for name in names {
        let swarm = example(&name, &["swarm.content=1 MB"]);
        assert_eq!(format!("{}.toml", swarm.name), name);
        let outcome = played(&swarm);
        let summary = outcome.summary(swarm.content_bytes);
        let gone = outcome.peers.iter().filter(|peer| peer.record.left_at.is_some()).count();
        assert!(summary.complete + gone >= summary.leechers, "{name}: {summary:?}");
        assert!(summary.complete > 0, "{name}: {summary:?}");
    }
}

/// What its description says is to be seen in the run that everybody sees first, and not with another seed alone.
#[test]
fn leechers_of_the_churn_go_and_come_back() {
    let outcome = played(&example("churn.toml", &[]));
    let came = outcome.tracker.iter().filter(|entry| entry.event == Some(AnnounceEvent::Started)).count();
    assert!(came > outcome.peers.len(), "{came} arrivals of {} peers", outcome.peers.len());
    for group in [1, 2] {
        let of_group = || outcome.peers.iter().filter(|peer| peer.group == group);
        assert!(of_group().any(|peer| peer.record.left_at.is_some()), "nobody of group {group} left");
    }
}

#[test]
fn peers_without_access_links_reach_each_other() {
    let set = ["swarm.content=1 MB", "group.*.upload_limit=1 Mbit/s"];
    let mut swarm = example("flash-crowd.toml", &set);
    swarm.groups.iter_mut().for_each(|group| group.uplink = None);
    assert_eq!(played(&swarm).summary(swarm.content_bytes).complete, 8);
}

/// A seed that tells each peer of a few pieces gives fewer of them twice.
#[test]
fn who_super_seeds_sends_less() {
    let copies = |role: &str| {
        let role = format!("group.seed.role={role}");
        let set = ["swarm.content=5 MB", "swarm.piece=64 KiB", "group.*.profile=utorrent3", &role];
        let swarm = example("flash-crowd.toml", &set);
        let summary = played(&swarm).summary(swarm.content_bytes);
        assert_eq!(summary.complete, 8);
        summary.seed_copies
    };
    let (usual, few) = (copies("seed"), copies("super-seed"));
    assert!(few < 0.9 * usual && few >= 1.0, "{few} copies, {usual} otherwise");
}

#[test]
fn a_seed_that_leaves_when_done_leaves_after_its_time() {
    let set = ["swarm.content=1 MB", "group.seed.departure=when-done", "group.seed.after=3 s"];
    let outcome = played(&example("flash-crowd.toml", &set));
    let seed = &outcome.peers[0].record;
    let (arrived_at, left_at) = (seed.arrived_at.unwrap(), seed.left_at.unwrap());
    assert_eq!(left_at, arrived_at + Duration::from_secs(3));
}

/// In large or fast swarms a simulated second takes minutes.
#[test]
fn who_has_seen_enough_does_not_wait_for_the_end_of_a_second() {
    struct Enough;
    impl SwarmWatcher for Enough {
        fn progress(&mut self, _: Instant, _: usize, _: usize) -> bool {
            false
        }
    }
    let set = ["group.*.uplink=1 Gbit/s", "group.seed.within=0 s", "group.leecher.at=0 s"];
    let set = [&set[..], &["swarm.content=60 MB", "group.*.transports=5"]].concat();
    let outcome = run(&example("flash-crowd.toml", &set), &mut Enough).unwrap();
    assert!(outcome.is_interrupted && outcome.ended_at < Instant::from_secs(1), "{}", outcome.ended_at);
}

/// Octets of the packets in a capture, and how many packets there are.
fn captured(path: &Path) -> (u64, usize) {
    let octets = fs::read(path).unwrap();
    let reader = Reader::new(&octets).unwrap();
    let (mut bytes, mut packets) = (0, 0);
    for record in reader {
        let record = record.unwrap();
        bytes += record.captured.len() as u64;
        packets += 1;
    }
    (bytes, packets)
}

#[test]
fn a_capture_holds_what_was_moved() {
    let folder = folder("capture");
    let mut sizes = Vec::new();
    for packets in [Packets::Sent, Packets::Seeds] {
        let mut swarm =
            example("mixed.toml", &["swarm.content=1 MB", "group.tcp.count=1", "group.utp.count=1"]);
        swarm.records.packets = packets;
        let outcome = run_captured(&swarm, &folder, &mut ()).unwrap();
        let files = write(&swarm, &outcome, &folder).unwrap();
        assert!(files.iter().any(|file| file.ends_with("queue.csv")));
        assert_eq!(to_json(&swarm, &outcome)["complete"], 2);
        let (bytes, count) = captured(&folder.join("packets.pcapng"));
        let moved: u64 = outcome.peers.iter().flat_map(|peer| peer.record.totals.uploaded).sum();
        if packets == Packets::Sent {
            assert!(bytes > moved, "{bytes} octets captured, {moved} moved");
        }
        sizes.push(count);
    }
    assert!(sizes[0] > sizes[1] && sizes[1] > 100, "{sizes:?}");
}

/// What fills up a search for the path's MTU lies before the payload and is none of it.
#[test]
fn sizes_of_payloads_are_those_of_the_packets_in_the_capture() {
    let folder = folder("payloads");
    let mut swarm = example("flash-crowd.toml", &["swarm.content=1 MB", "group.*.transports=10"]);
    swarm.records.packets = Packets::Sent;
    let outcome = run_captured(&swarm, &folder, &mut ()).unwrap();
    let mut noted: BTreeMap<u32, u64> = BTreeMap::new();
    for (&size, &packets) in outcome.peers.iter().flat_map(|peer| &peer.record.payloads) {
        *noted.entry(size).or_default() += packets;
    }
    let octets = fs::read(folder.join("packets.pcapng")).unwrap();
    let (mut seen, mut padded): (BTreeMap<u32, u64>, u32) = (BTreeMap::new(), 0);
    for record in Reader::new(&octets).unwrap() {
        // IPv4 without options, and UDP.
        let packet = Packet::decode(&record.unwrap().captured[28..]).unwrap();
        padded += u32::from(packet.extensions.iter().any(|extension| extension.kind == EXT_PADDING));
        if packet.payload.len() > 200 {
            *seen.entry(packet.payload.len() as u32).or_default() += 1;
        }
    }
    assert_eq!(noted, seen);
    assert!(padded > 20, "{padded}");
}

/// Over either transport, and also where that is less than what libtorrent's search for the path's MTU begins with.
#[test]
fn no_packet_is_larger_than_its_group_says() {
    let folder = folder("packet");
    for transports in ["group.*.transports=5", "group.*.transports=10"] {
        let mut swarm =
            example("flash-crowd.toml", &["swarm.content=200 kB", "group.*.packet=400 B", transports]);
        swarm.records.packets = Packets::Sent;
        run_captured(&swarm, &folder, &mut ()).unwrap();
        let octets = fs::read(folder.join("packets.pcapng")).unwrap();
        let largest = Reader::new(&octets).unwrap().map(|record| record.unwrap().captured.len()).max();
        assert!(largest.is_some_and(|bytes| (380..=400).contains(&bytes)), "{transports}: {largest:?}");
    }
}

/// The rows of a file, by the names of their columns.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let headings: Vec<String> = lines.next().unwrap().collect();
    lines.map(|fields| headings.iter().cloned().zip(fields).collect()).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap()
}

/// Every access link is recorded, in both directions, and what leaves a queue does so at the link's rate.
#[test]
fn dequeues_of_uplinks_and_downlinks_follow_the_links_rates() {
    let folder = folder("access");
    let set = ["swarm.content=2 MB", "group.seed.uplink=8 Mbit/s", "group.leecher.downlink=2 Mbit/s"];
    let mut swarm = example("flash-crowd.toml", &set);
    swarm.records.queue = true;
    write(&swarm, &played(&swarm), &folder).unwrap();
    let log = rows(&folder.join("queue.csv"));
    let links = rows(&folder.join("links.csv"));
    let ways = |way: &str| links.iter().filter(|link| link["way"] == way).count();
    assert_eq!((ways("up"), ways("down")), (9, 8));
    for link in &links {
        let same = |row: &&BTreeMap<_, _>| (&row["peer"], &row["way"]) == (&link["peer"], &link["way"]);
        let dequeues: Vec<_> = log.iter().filter(same).collect();
        assert_eq!(dequeues.len() as f64, number(link, "dequeues"));
        let octets = number(link, "tcp_bytes") + number(link, "udp_bytes");
        let last = octets - number(dequeues[dequeues.len() - 1], "served_bytes");
        assert!(
            (1.0..=1500.0).contains(&last),
            "what was served by the last packet's turn lacks that one: {last}"
        );
        assert!(link["way"] == "up" || octets > 2e6, "all of the content came in: {link:?}");
        let served = |place: usize| number(dequeues[place], "served_bytes");
        for place in (1..dequeues.len()).filter(|&place| number(dequeues[place], "packets") > 0.0) {
            let gap = number(dequeues[place], "time_s") - number(dequeues[place - 1], "time_s");
            let sent = (served(place) - served(place - 1)) * 8e-6 / number(link, "rate_mbps");
            assert!((gap - sent).abs() < 2e-6, "{gap} s after {sent} s of sending: {:?}", dequeues[place]);
        }
    }
    let behind = |way: &str| {
        let of_way = links.iter().filter(|link| link["way"] == way);
        of_way.map(|link| number(link, "busy_dequeues")).sum::<f64>()
    };
    assert!(behind("down") > 100.0, "downlinks of a quarter of the seed's rate have queues");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let swarm = example("flash-crowd.toml", &["swarm.content=1 MB", "group.leecher.count=1"]);
    let folder = folder("unwritable");
    fs::create_dir_all(folder.join("pieces.csv")).unwrap();
    let error = write(&swarm, &played(&swarm), &folder).unwrap_err();
    assert!(error.to_string().starts_with("pieces.csv: "), "{error}");
}

/// Latency alone, or loss, makes no access link: nothing is told of a downlink that the file does not have.
#[test]
fn only_links_with_rates_are_told_of() {
    let folder = folder("rates");
    let set = ["swarm.content=500 kB", "group.*.latency=20 ms", "group.leecher.loss=0.001"];
    let mut swarm = example("flash-crowd.toml", &set);
    swarm.records.queue = true;
    write(&swarm, &played(&swarm), &folder).unwrap();
    for file in ["links.csv", "queue.csv"] {
        let ways: Vec<_> = rows(&folder.join(file)).into_iter().map(|row| row["way"].clone()).collect();
        assert!(ways.len() >= 9 && ways.iter().all(|way| way == "up"), "{file}");
    }
}

/// What the way loses behind a downlink's queue found room in it.
#[test]
fn only_what_found_no_room_was_dropped() {
    let folder = folder("dropped");
    let set = ["swarm.content=1 MB", "group.leecher.downlink=8 Mbit/s", "group.*.buffer=60 s"];
    let mut swarm = example("flash-crowd.toml", &set);
    swarm.groups[1].loss = 0.05;
    swarm.records.queue = true;
    let outcome = played(&swarm);
    write(&swarm, &outcome, &folder).unwrap();
    for file in ["links.csv", "queue.csv"] {
        assert!(rows(&folder.join(file)).iter().all(|row| row["dropped"] == "0"), "{file}");
    }
    let small = [&set[..2], &["group.*.buffer=3 kB"]].concat();
    let crowded = played(&example("flash-crowd.toml", &small));
    assert!(crowded.uplinks.iter().any(|(_, link)| link.dropped > 0));
}

/// Round trips of the internet are not always shorter by the straight way; but nobody's access link carries others' packets.
#[test]
fn what_two_peers_say_does_not_go_through_a_third() {
    let text = r#"
name = "detour"
[swarm]
content = "200 kB"
duration = "1 min"
[[group]]
name = "seed"
role = "seed"
uplink = "4 Mbit/s"
latency = "1 ms"
[[group]]
name = "between"
uplink = "64 kbit/s"
downlink = "64 kbit/s"
at = "50 min"
[[group]]
name = "far"
count = 2
uplink = "4 Mbit/s"
downlink = "8 Mbit/s"
[links]
matrix = "0 ms, 10 ms, 100 ms; 10 ms, 0 ms, 10 ms; 100 ms, 10 ms, 80 ms"
"#;
    let outcome = played(&parse_swarm("detour.toml", text, &Overrides::none()).unwrap());
    let far: Vec<_> = outcome.peers.iter().filter(|peer| peer.group == 2).collect();
    for peer in far {
        assert!(peer.completion_s().unwrap() < 10.0, "{}: {:?}", peer.name, peer.completion_s());
        // 102 ms from the seed, 80 from each other.
        assert!(peer.record.rtts.as_ref().unwrap().percentile_ms(0.0).unwrap() > 79.0, "{}", peer.name);
    }
    let carried: u64 = outcome
        .uplinks
        .iter()
        .chain(&outcome.downlinks)
        .filter(|(peer, _)| outcome.peers[*peer].group == 1)
        .map(|(_, link)| link.dequeues)
        .sum();
    assert_eq!(carried, 0, "who has not come yet carries nothing");
}

/// Peers of one machine speak through its loopback, also where the Ethernet would be faster.
#[test]
fn peers_of_one_machine_stay_in_it() {
    let text = r#"
name = "inside"
[swarm]
content = "200 kB"
[[device]]
name = "m"
loopback = "50 ms"
ethernet = "1 ms"
[[group]]
name = "seed"
role = "seed"
[[group]]
name = "leecher"
"#;
    let outcome = played(&parse_swarm("inside.toml", text, &Overrides::none()).unwrap());
    for peer in &outcome.peers {
        let least = peer.record.rtts.as_ref().unwrap().percentile_ms(0.0).unwrap();
        assert!((195.0..206.0).contains(&least), "{}: {least} ms", peer.name);
    }
}

/// What those send who have no uplink counts as well where it is said how much went over TCP.
#[test]
fn tcps_share_is_that_of_all_peers() {
    let mut swarm = example("mixed.toml", &["swarm.content=1 MB"]);
    swarm.groups[1].uplink = None;
    let outcome = played(&swarm);
    let [tcp, utp] = outcome
        .peers
        .iter()
        .map(|peer| peer.record.totals.uploaded)
        .fold([0, 0], |[tcp, utp], more| [tcp + more[0], utp + more[1]]);
    assert!(tcp > 0 && utp > 0, "{tcp} {utp}");
    let (share, of_blocks) = (outcome.tcp_share(), tcp as f64 / (tcp + utp) as f64);
    assert!((share - of_blocks).abs() < 0.01, "{share} of all, {of_blocks} of blocks");
}

/// Of queues of which none was counted nothing is said, and least of all that they were empty.
#[test]
fn what_was_not_counted_is_not_said_to_be_nothing() {
    let set = ["swarm.content=500 kB", "group.*.transports=5", "swarm.measure_from=10 h"];
    let swarm = example("flash-crowd.toml", &set);
    let outcome = played(&swarm);
    let document = to_json(&swarm, &outcome);
    assert_eq!((outcome.tcp_share(), &document["tcp_share"]), (1.0, &1.0.into()));
    assert!(
        ["queue_mean_ms", "queue_p95_ms", "busy_share"].iter().all(|key| document[key].is_null()),
        "{document}"
    );
    assert!(!summary_table(&swarm, &outcome).to_markdown().contains("queue"));
}

/// Seeds may have no uplink where leechers have.
#[test]
fn a_seed_without_a_link_has_no_queue() {
    let told = |swarm: &Swarm| {
        let outcome = played(swarm);
        (to_json(swarm, &outcome)["seed_queue_ms"].as_f64(), summary_table(swarm, &outcome).to_markdown())
    };
    let mut swarm = example("flash-crowd.toml", &["swarm.content=500 kB"]);
    assert!(told(&swarm).0.is_some_and(|ms| ms > 0.0));
    (swarm.groups[0].uplink, swarm.groups[0].upload_limit) = (None, Some(100_000));
    let (ms, summary) = told(&swarm);
    assert!(ms.is_none() && summary.contains("seeds –"), "{ms:?}: {summary}");
}

/// Who only tries to connect sends octets as well.
#[test]
fn where_nothing_moved_tcp_has_no_share() {
    let set = ["swarm.duration=1 min", "group.*.transports=5", "group.leecher.loss=1"];
    let swarm = example("flash-crowd.toml", &set);
    let outcome = played(&swarm);
    assert!(outcome.uplinks.iter().any(|(_, link)| link.bytes[0] > 0));
    assert!(to_json(&swarm, &outcome)["tcp_share"].is_null());
}

/// What is missing is said to be missing, and not to be wrong.
#[test]
fn a_trace_without_times_is_told_from_one_with_wrong_times() {
    let text = fs::read_to_string(root().join("scenarios/swarms/flash-crowd.toml")).unwrap();
    let refused = |set: &[&str]| {
        let text = text.replace("at = \"2 s\"\nwithin = \"10 ms\"\n", "");
        let overrides = Overrides::new(["group.leecher.arrival=trace"].iter().chain(set).copied());
        format!("{:?}", parse_swarm("trace.toml", &text, &overrides).unwrap_err())
    };
    let (without, wrong) = (refused(&[]), refused(&["group.leecher.times=soon"]));
    assert!(without.contains("arrival is \\\"trace\\\", and there are no `times`"), "{without}");
    assert!(wrong.contains("`times` is no list of times"), "{wrong}");
}

#[test]
fn the_reference_is_the_generated_one_and_names_every_key() {
    let text = swarm_reference();
    for option in SWARM_TABLES.iter().flat_map(|table| table.options()) {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{}` |", option.key)));
        assert_eq!(row.map(|row| row.matches('|').count()), Some(6), "{}", option.key);
    }
    let path = root().join("docs/swarm-format.md");
    if std::env::var_os("CEDE_UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/swarm-format.md is not generated: CEDE_UPDATE=1 cargo test -p cede-lab --test swarm_files"
    );
}

#[test]
fn peers_exchange_peers_by_their_profile_unless_told_otherwise() {
    let exchanges = |set: &[&str]| example("flash-crowd.toml", set).groups[1].profile.exchanges;
    assert!(exchanges(&[]));
    assert!(!exchanges(&["group.leecher.profile=utorrent3"]));
    assert!(!exchanges(&["group.leecher.pex=false"]));
    assert!(!exchanges(&["group.leecher.profile=mainline4"]));
    assert!(exchanges(&["group.leecher.profile=mainline4", "group.leecher.pex=true"]));
}
