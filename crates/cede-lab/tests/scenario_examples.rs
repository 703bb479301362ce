//! The scenarios that come with Cede: each parses, and prints as text that parses back to the same.

use cede_lab::scenario::{Overrides, Scenario, Topology, render};
use cede_units::{Duration, Rate};
use std::path::PathBuf;

fn examples() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    found.sort();
    found
}

fn example(name: &str) -> String {
    examples().into_iter().find(|(file, _)| file == name).unwrap().1
}

fn parsed(file: &str, text: &str) -> Scenario {
    Scenario::parse(file, text).unwrap_or_else(|problems| panic!("{}", render(&problems)))
}

#[test]
fn every_example_parses_and_its_name_is_its_file() {
    let examples = examples();
    assert!(examples.len() >= 7, "{}", examples.len());
    for (file, text) in examples {
        let scenario = parsed(&file, &text);
        assert_eq!(format!("{}.toml", scenario.name), file);
        assert!(!scenario.description.is_empty(), "{file}");
    }
}

#[test]
fn every_example_prints_as_itself() {
    for (file, text) in examples() {
        let scenario = parsed(&file, &text);
        let printed = scenario.to_toml();
        assert_eq!(parsed("printed", &printed), scenario, "{printed}");
        assert_eq!(parsed("printed", &printed).content_hash(), scenario.content_hash());
    }
}

#[test]
fn the_demo_says_what_it_says() {
    let demo = parsed("demo.toml", &example("demo.toml"));
    let Topology::Dumbbell(dumbbell) = &demo.topology else { panic!("{:?}", demo.topology) };
    assert_eq!(dumbbell.link.rate, Rate::from_mbit(10));
    assert_eq!(dumbbell.base_rtt(), Duration::from_millis(50));
    assert_eq!(dumbbell.return_link.rate, Rate::from_mbit(10));
    assert_eq!(dumbbell.return_link.loss, 0.0);
    assert_eq!(demo.flows[1].start, Duration::from_secs(10));
    assert_eq!(demo.flows[1].stop, Some(Duration::from_secs(20)));
}

#[test]
fn routes_follow_delay_hops_and_statements() {
    let text = example("graph.toml");
    let graph = |text: &str| {
        let Topology::Graph(graph) = parsed("graph.toml", text).topology else { panic!() };
        graph
    };
    let names = |graph: &cede_lab::scenario::Graph, from, to| -> Vec<String> {
        let directed = graph.directed();
        graph.route(from, to).unwrap().into_iter().map(|i| directed[i].name.clone()).collect()
    };
    let plain = graph(&text);
    assert_eq!(names(&plain, "a", "c"), ["a-r1", "core-1", "core-2", "c-r3-back"]);
    assert_eq!(names(&plain, "c", "a"), ["c-r3", "core-2-back", "core-1-back", "a-r1-back"]);
    // A slow shortcut: fewer links, more delay.
    let shortcut = format!(
        "{text}\n[[link]]\nname = \"slow\"\nfrom = \"r1\"\nto = \"r3\"\nrate = \"1 Mbit/s\"\ndelay = \"1 s\"\n"
    );
    assert_eq!(names(&graph(&shortcut), "a", "c"), ["a-r1", "core-1", "core-2", "c-r3-back"]);
    let by_hops = graph(&shortcut.replace("routing = \"delay\"", "routing = \"hops\""));
    assert_eq!(names(&by_hops, "a", "c"), ["a-r1", "slow", "c-r3-back"]);
    // The way back is stated, so the shortcut does not change it.
    assert_eq!(names(&by_hops, "c", "a"), ["c-r3", "core-2-back", "core-1-back", "a-r1-back"]);
}

#[test]
fn what_the_star_inherits() {
    let star = parsed("star.toml", &example("star.toml"));
    let up = |name: &str| {
        let host = star.hosts.iter().find(|host| host.name == name).unwrap();
        host.access.as_ref().unwrap().up.clone()
    };
    assert_eq!(up("home").rate, Rate::from_mbit(1));
    assert_eq!(up("server").rate, Rate::from_mbit(100));
    // A key that the host leaves out comes from [uplink].
    assert_eq!(up("server").buffer.to_string(), "500 ms");
    assert_eq!(star.clock("friend").offset_ns, 120_000_000);
    assert_eq!(star.clock("home").offset_ns, 0);
    let names: Vec<String> = star.named_links().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["friend-down", "friend-up", "home-down", "home-up", "server-down", "server-up"]);
}

#[test]
fn overrides_reach_tables_lists_and_short_forms() {
    let apply = |overrides: &[&str]| {
        let overrides = Overrides::new(overrides.iter().copied());
        Scenario::parse_with("demo.toml", &example("demo.toml"), &overrides)
            .unwrap_or_else(|problems| panic!("{}", render(&problems)))
    };
    let changed = apply(&[
        "link.rate=5 Mbit/s",
        "flow.0.controller.target = 60 ms",
        "flow.cubic.start=5 s",
        "flow.*.start_jitter=\"1 s\"",
        "link.reorder.probability=0.01",
        "link.reorder.extra_delay=5 ms",
        "seed=9",
        "return_link.loss=0.001",
        "flow.cubic.traffic.kind=on_off",
        "flow.cubic.traffic.on=1 s",
        "flow.cubic.traffic.off=1 s",
        "flow.cubic.controller.name=reno",
        "record.links=[\"return\"]",
    ]);
    let Topology::Dumbbell(dumbbell) = &changed.topology else { panic!() };
    assert_eq!(dumbbell.link.rate, Rate::from_mbit(5));
    assert_eq!(dumbbell.return_link.rate, Rate::from_mbit(5));
    assert_eq!(dumbbell.return_link.loss, 0.001);
    assert_eq!(dumbbell.link.reorder.unwrap().probability, 0.01);
    assert_eq!(changed.seed, 9);
    assert_eq!(changed.flows[1].start, Duration::from_secs(5));
    assert_eq!(changed.flows[1].controller.name, "reno");
    assert!(changed.flows.iter().all(|flow| flow.start_jitter == Duration::from_secs(1)));
    assert!(changed.to_toml().contains("target = \"60 ms\""), "{}", changed.to_toml());
    assert_ne!(changed.content_hash(), apply(&[]).content_hash());
}

#[test]
fn the_order_of_the_file_changes_neither_hash_nor_instances() {
    let flow = |name: &str| format!("[[flow]]\nname = \"{name}\"\n");
    let file = |names: &[&str]| {
        let flows: String = names.iter().map(|name| flow(name)).collect();
        parsed("x", &format!("duration = \"1 s\"\n[link]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{flows}"))
    };
    let (ab, ba) = (file(&["a", "b"]), file(&["b", "a"]));
    assert_ne!(ab, ba);
    assert_eq!(ab.content_hash(), ba.content_hash());
    let names = |s: &Scenario| s.instances().into_iter().map(|i| (i.name, i.sender)).collect::<Vec<_>>();
    assert_eq!(names(&ab), names(&ba));
    assert_ne!(ab.content_hash(), file(&["a", "c"]).content_hash());
}

#[test]
fn replicates_share_the_clock_of_their_group_unless_they_have_their_own() {
    let text = "duration = \"1 s\"\n[link]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                [[host]]\nname = \"l-sender\"\nclock_drift = \"-50 ppm\"\n\
                [[host]]\nname = \"l-2-sender\"\nclock_drift = \"7 ppb\"\n\
                [[flow]]\nname = \"l\"\ncount = 3\n";
    let scenario = parsed("x", text);
    let drift = |host| scenario.clock(host).drift_ppb;
    assert_eq!([drift("l-1-sender"), drift("l-2-sender"), drift("l-1-receiver")], [-50_000, 7, 0]);
}
