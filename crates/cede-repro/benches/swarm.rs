//! How fast swarms run: virtual seconds per second of processor time, memory per peer.
//!
//! `cargo bench -p cede-repro --bench swarm [-- rao|tma|large|all [repetitions]]`. Each line is one swarm in a process of
//! its own, so that the peak of its memory is its own.

use cede_lab::swarm::{Swarm, run};
use cede_repro::{rao10, tma12};
use std::process::Command;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let Some(name) = args.first().and_then(|arg| arg.strip_prefix("--one=")) {
        return one(name);
    }
    let wanted = args.first().map_or("all", String::as_str);
    println!("| swarm | peers | virtual s | CPU s | virtual/CPU | events | GB moved | peak MiB | KiB/peer |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for name in ["rao", "tma-tcp", "tma-utp", "tma-mix", "large"] {
        if wanted == "all" || name.starts_with(wanted) {
            let me = std::env::current_exe().expect("a path to this benchmark");
            // As `cede` does for itself: large pages, or most of the time goes into looking pages up.
            let tuned = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
            let status = Command::new(me).arg(format!("--one={name}")).env(tuned.0, tuned.1).status();
            assert!(status.is_ok_and(|status| status.success()), "{name} did not run");
        }
    }
}

fn swarm(name: &str) -> Swarm {
    let tma = |disposition| tma12::setting::Setting::homogeneous(disposition, 1, 75, 100_000_000).swarm(0);
    match name {
        "rao" => rao10::setting::Setting::homogeneous(20, 0, 0.0).swarm(0),
        "tma-tcp" => tma(5),
        "tma-utp" => tma(10),
        "tma-mix" => tma12::setting::Setting::mixed(50, 1, 75, 100_000_000).swarm(0),
        "large" => {
            let mut setting = rao10::setting::Setting::homogeneous(100, 100, 0.0);
            (setting.per_machine, setting.content_bytes) = (1_000, 2 << 20);
            setting.swarm(0)
        }
        other => panic!("there is no swarm {other}"),
    }
}

fn one(name: &str) {
    let swarm = swarm(name);
    let peers: u32 = swarm.groups.iter().map(|group| group.count).sum();
    let before = status_kib("VmRSS:");
    let cpu = cpu_s();
    let outcome = run(&swarm, &mut ()).expect("the swarm runs");
    let cpu = cpu_s() - cpu;
    let summary = outcome.summary(swarm.content_bytes);
    let moved: u64 = outcome.peers.iter().map(|peer| peer.record.totals.uploaded.iter().sum::<u64>()).sum();
    let virtual_s = outcome.ended_at.as_secs_f64();
    let peak = status_kib("VmHWM:");
    println!(
        "| {name} ({} of {} complete, mean {:.0} s) | {peers} | {virtual_s:.0} | {cpu:.1} | {:.0} | {} | {:.2} | {} | {} |",
        summary.complete,
        summary.leechers,
        summary.mean_s,
        virtual_s / cpu,
        outcome.events,
        moved as f64 / 1e9,
        peak / 1024,
        peak.saturating_sub(before) / u64::from(peers),
    );
}

/// Processor time of this process in seconds (Linux); 0 elsewhere.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).map_or(0.0, |ns| ns / 1e9)
}

fn status_kib(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key)).map(str::to_string).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}
