//! What every controller does on a grid of links, kept as a committed table: throughput, delay and fairness alone, against
//! one Reno flow, and against itself; and the tapes of the example scenarios, which are the same on every machine.
//!
//! A change that moves a figure moves the table, so it is seen and has to be meant. To accept it, run
//! `CEDE_UPDATE=1 cargo test -p cede-lab --test behaviour` and read the difference.

use cede_lab::run::Run;
use cede_lab::scenario::Scenario;
use std::fmt::Write;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/behaviour.txt");

/// Rate, one-way delay of the bottleneck, buffer.
const LINKS: &[(&str, &str, &str)] = &[
    ("1 Mbit/s", "20 ms", "500 ms"),
    ("10 Mbit/s", "3 ms", "50 packets"),
    ("10 Mbit/s", "48 ms", "100 packets"),
    ("50 Mbit/s", "8 ms", "200 ms"),
];

fn flow(name: &str, count: u32, protocol: &str, controller: &str) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\ncount = {count}\nprotocol = \"{protocol}\"\ncontroller = \"{controller}\"\n\
         start_jitter = \"200 ms\"\n"
    )
}

/// Efficiency, mean queueing delay, the share of the first flow, fairness.
fn measure(link: (&str, &str, &str), flows: &str) -> [f64; 4] {
    let (rate, delay, buffer) = link;
    let text = format!(
        "name = \"behaviour\"\nduration = \"40 s\"\nwarmup = \"10 s\"\nseed = 1\n\
         [link]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nbuffer = \"{buffer}\"\n{flows}"
    );
    let scenario = Scenario::parse("behaviour.toml", &text).unwrap_or_else(|problems| panic!("{problems:?}"));
    let (outcome, _) = Run::new(&scenario).totals_only().go(&mut ()).expect("it runs");
    assert!(outcome.flows.iter().all(|flow| flow.intact && flow.error.is_none()));
    let bottleneck = &outcome.links[0];
    let fairness = outcome.fairness_long.unwrap_or(f64::NAN);
    [bottleneck.efficiency, bottleneck.delays.mean_ms, outcome.flows[0].share, fairness]
}

fn table() -> String {
    let mut table = String::from(
        "controller         link                            alone: efficiency  queue ms   | beside Reno: share  queue ms   | two: fairness\n",
    );
    for entry in cede_cc::registry::all().iter().filter(|entry| entry.responsive) {
        for &link in LINKS {
            let own = |count| flow("own", count, "utp", entry.name);
            let alone = measure(link, &own(1));
            let beside = measure(link, &format!("{}{}", own(1), flow("reno", 1, "tcp", "reno")));
            let two = measure(link, &own(2));
            let place = format!("{} {} {}", link.0, link.1, link.2);
            let _ = writeln!(
                table,
                "{:<18} {place:<31} {:>18.3} {:>9.1}   | {:>18.3} {:>9.1}   | {:>13.3}",
                entry.name, alone[0], alone[1], beside[2], beside[1], two[3]
            );
        }
    }
    table
}

/// The tapes of the example scenarios, by name.
fn tapes() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder exists").flatten().map(|entry| entry.path()).collect();
    // Swarms have a folder of their own in there.
    files.retain(|path| path.is_file());
    files.sort();
    let tape = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("the file is readable");
        let scenario =
            Scenario::parse("example.toml", &text).unwrap_or_else(|problems| panic!("{problems:?}"));
        let (outcome, _) = Run::new(&scenario).go(&mut ()).expect("it runs");
        format!("tape {:<20} {}\n", scenario.name, outcome.tape)
    };
    files.iter().map(tape).collect()
}

#[test]
fn the_behaviour_table_is_what_was_committed() {
    let found = table() + &tapes();
    if std::env::var_os("CEDE_UPDATE").is_some() {
        std::fs::write(TABLE, &found).expect("the table can be written");
    }
    let committed = std::fs::read_to_string(TABLE).unwrap_or_default();
    for (old, new) in committed.lines().zip(found.lines()) {
        assert_eq!(old, new, "behaviour changed; if it was meant to, see the head of this file");
    }
    assert_eq!(committed.lines().count(), found.lines().count());
}
