//! CPU time per delivered data packet, its acknowledgement included (6 hops), through full uTP and TCP endpoints.
//!
//! The two dumbbells that other simulators were measured on: 11 flows (1 Reno over TCP, 10 LEDBAT over uTP) at 10 Mbit/s
//! for 120 s, and 100 flows (50 Reno, 50 LEDBAT) at 1 Gbit/s for 10 s. ns-2 and ns-3 run beside it on the same network, all
//! flows TCP, where they are installed. Medians of seven runs of ours, one run of theirs.

use cede_lab::run::Run;
use cede_lab::scenario::Scenario;
use std::process::Command;

const SMALL: &str = r#"
name = "eleven"
duration = "120 s"
[link]
rate = "10 Mbit/s"
delay = "23 ms"
buffer = "100 packets"
[[flow]]
name = "reno"
protocol = "tcp"
controller = "reno"
packet = "1500 B"
tcp = { ack = "every", initial_window = "2 packets", min_rto = "200 ms" }
[[flow]]
name = "ledbat"
count = 10
protocol = "utp"
controller = { name = "ledbat-draft", target = "25 ms" }
packet = "1500 B"
"#;

fn parse(name: &str, text: &str) -> Scenario {
    Scenario::parse(name, text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// CPU time of this thread in nanoseconds; wall time where the system does not tell.
fn cpu_ns() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn measure(scenario: &Scenario) -> (f64, f64, u64) {
    let start = cpu_ns();
    let (outcome, meters) = Run::new(scenario).totals_only().go(&mut ()).expect("the scenario runs");
    let spent = (cpu_ns() - start) as f64;
    let packets: u64 = meters.deliveries().bytes.iter().map(|bytes| bytes / 1_500).sum();
    (spent / 1e9, spent / packets as f64, outcome.events)
}

/// `-- --once`: one run of ours and no peers, for profilers.
fn once() -> bool {
    std::env::args().any(|argument| argument == "--once")
}

/// The medians of seven runs: CPU seconds, CPU nanoseconds per data packet, events.
fn ours(scenario: &Scenario) -> (f64, f64, u64) {
    let repetitions = if once() { 1 } else { 7 };
    let mut runs: Vec<(f64, f64, u64)> = (0..repetitions).map(|_| measure(scenario)).collect();
    runs.sort_by(|a, b| a.1.total_cmp(&b.1));
    runs[runs.len() / 2]
}

/// A dumbbell's size: flows, Mbit/s, packets of buffer, seconds.
type Size = [u32; 4];

fn report(label: &str, scenario: &Scenario, size: Size, peers: &[Peer]) {
    let (seconds, ns, events) = ours(scenario);
    println!("{label}");
    println!("  {:<26} {seconds:>8.3} s CPU {ns:>9.0} ns per data packet {events:>9} events", "cede");
    for peer in peers {
        match peer.measure(size) {
            Some((seconds, peer_ns)) => println!(
                "  {:<26} {seconds:>8.3} s CPU {peer_ns:>9.0} ns per data packet {:>9.1} times ours",
                peer.name,
                peer_ns / ns
            ),
            None => println!("  {:<26} did not run", peer.name),
        }
    }
}

/// Another simulator on the same dumbbell: all flows TCP, with its own idea of the details.
struct Peer {
    name: &'static str,
    command: String,
}

impl Peer {
    /// CPU seconds and CPU nanoseconds per data packet of one run, start-up included.
    fn measure(&self, size: Size) -> Option<(f64, f64)> {
        let [flows, rate, buffer, seconds] = size;
        let script = format!("{} {flows} {rate} {buffer} {seconds}; times", self.command);
        let output = Command::new("bash").args(["-c", &script]).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let packets: f64 = text.lines().find_map(|line| line.trim().parse().ok())?;
        // The shell's `times` ends with the user and system time of its children, as 0m1.234s.
        let spent: f64 = text.lines().last()?.split_whitespace().filter_map(minutes_and_seconds).sum();
        Some((spent, spent * 1e9 / packets))
    }
}

fn minutes_and_seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

/// The simulators that are installed; says which are not.
fn peers() -> Vec<Peer> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers");
    let ns2 = installed("ns").then(|| Peer { name: "ns-2", command: format!("ns {folder}/dumbbell.tcl") });
    let found = [ns2, ns3(folder)];
    if found.iter().any(Option::is_none) {
        println!("note: to compare, install Debian's packages ns2 and libns3-dev");
    }
    found.into_iter().flatten().collect()
}

fn installed(command: &str) -> bool {
    Command::new("which").arg(command).output().is_ok_and(|output| output.status.success())
}

/// Builds the ns-3 program against the system's libraries; none where there are none.
fn ns3(folder: &str) -> Option<Peer> {
    let program = std::env::temp_dir().join(format!("cede-bench-ns3-{}", std::process::id()));
    let modules = ["core", "network", "internet", "applications", "point-to-point", "traffic-control"];
    let built = Command::new("g++")
        .args(["-O2", "-std=c++17", "-o"])
        .arg(&program)
        .arg(format!("{folder}/dumbbell.cc"))
        .args(modules.map(|module| format!("-lns3-{module}")))
        .output();
    let built = built.is_ok_and(|output| output.status.success());
    built.then(|| Peer { name: "ns-3", command: program.display().to_string() })
}

fn main() {
    let large = SMALL
        .replace("\"eleven\"", "\"hundred\"")
        .replace("120 s", "10 s")
        .replace("10 Mbit/s", "1 Gbit/s")
        .replace("100 packets", "1000 packets")
        .replace("count = 10", "count = 50")
        .replace("name = \"reno\"", "name = \"reno\"\ncount = 50");
    let peers = if once() { Vec::new() } else { peers() };
    report("11 flows, 10 Mbit/s, 120 s", &parse("eleven", SMALL), [11, 10, 100, 120], &peers);
    report("100 flows, 1 Gbit/s, 10 s", &parse("hundred", &large), [100, 1_000, 1_000, 10], &peers);
}
