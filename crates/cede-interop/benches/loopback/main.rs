//! One connection over the loopback, one way, beside others: goodput, CPU time of both ends, memory, and datagrams that the
//! socket buffers had no room for.
//!
//! `cargo bench -p cede-interop --bench loopback [-- ROUNDS [ONLY]]`; 5 rounds unless given, `ONLY` a part of a contestant's
//! name. Each transfer runs in a child process of its own that is both ends, libtorrent's ends in one each; as root in a
//! network namespace of its own, so that the kernel's counters count nothing else. The contestants take turns, so that a
//! busy machine is busy for all; what is printed are medians, and the medians of each round's ratios to ours. CPU time is
//! user and system time by `/proc`, in steps of 10 ms: there is none elsewhere than on Linux.

mod child;
mod cost;
mod plain;

use cost::Cost;
use std::process::{Command, Stdio};

/// Socket buffers where they are chosen: what BitTorrent clients ask for.
const LARGE_BYTES: usize = 4 << 20;

/// What moves the octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Carrier {
    Tcp,
    Udp,
    Cede,
    Rqbit,
    UtpRs,
    LibtorrentPypi,
    LibtorrentDebian,
}

/// A carrier with its socket buffers, and how much it carries.
struct Contestant {
    name: &'static str,
    carrier: Carrier,
    buffer_bytes: Option<usize>,
    megabytes: u64,
}

const fn contestant(
    name: &'static str,
    carrier: Carrier,
    buffer_bytes: Option<usize>,
    megabytes: u64,
) -> Contestant {
    Contestant { name, carrier, buffer_bytes, megabytes }
}

/// Ours come first: what the ratios are to. `utp-rs` moves 65,536 packets in a connection and no more.
const CONTESTANTS: [Contestant; 13] = [
    contestant("cede-real, default buffers", Carrier::Cede, None, 1000),
    contestant("cede-real, 4 MiB buffers", Carrier::Cede, Some(LARGE_BYTES), 1000),
    contestant("kernel TCP", Carrier::Tcp, None, 1000),
    contestant("plain UDP with offloads, default buffers", Carrier::Udp, None, 1000),
    contestant("plain UDP with offloads, 4 MiB buffers", Carrier::Udp, Some(LARGE_BYTES), 1000),
    contestant("librqbit-utp (sets its own buffers)", Carrier::Rqbit, None, 1000),
    contestant("utp-rs, default buffers", Carrier::UtpRs, None, 50),
    contestant("utp-rs, 4 MiB buffers", Carrier::UtpRs, Some(LARGE_BYTES), 50),
    contestant("libtorrent 2.1 (PyPI), default buffers", Carrier::LibtorrentPypi, None, 200),
    contestant("libtorrent 2.1 (PyPI), 4 MiB buffers", Carrier::LibtorrentPypi, Some(LARGE_BYTES), 200),
    contestant("libtorrent 2.0 (Debian), default buffers", Carrier::LibtorrentDebian, None, 200),
    contestant("libtorrent 2.0 (Debian), 4 MiB buffers", Carrier::LibtorrentDebian, Some(LARGE_BYTES), 200),
    contestant("cede-real, default buffers, once more", Carrier::Cede, None, 1000),
];

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench").peekable();
    if words.next_if(|word| word == "child").is_some() {
        let number: usize = words.next().and_then(|word| word.parse().ok()).expect("a contestant's number");
        return child::run(&CONTESTANTS[number]);
    }
    let rounds: u32 = words.next().and_then(|word| word.parse().ok()).unwrap_or(5);
    let only = words.next().unwrap_or_default();
    let mut costs: [Vec<Option<Cost>>; CONTESTANTS.len()] = Default::default();
    for round in 1..=rounds {
        for (number, contestant) in CONTESTANTS.iter().enumerate() {
            // Ours always runs: the ratios are to it.
            if number > 0 && !contestant.name.contains(&only) {
                continue;
            }
            let cost = in_a_child(number);
            eprintln!("{round}/{rounds} {}: {}", contestant.name, describe(cost.as_ref()));
            costs[number].push(cost.ok());
        }
    }
    print(&costs);
}

fn describe(cost: Result<&Cost, &String>) -> String {
    match cost {
        Ok(cost) => format!(
            "{:.0} MB/s, {:.3} CPU s/GB, {} KiB, {} overflows",
            cost.goodput(),
            cost.cpu_per_gb(),
            cost.peak_kib,
            cost.overflows
        ),
        Err(why) => format!("SKIPPED or failed: {why}"),
    }
}

/// Runs a contestant in a process of its own, in a network of its own where that is allowed.
fn in_a_child(number: usize) -> Result<Cost, String> {
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let alone = ["--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""];
    let is_allowed = Command::new("unshare").args(alone).arg("true").stderr(Stdio::null()).status();
    let mut command = if is_allowed.is_ok_and(|status| status.success()) {
        let mut command = Command::new("unshare");
        command.args(alone).arg(exe);
        command
    } else {
        Command::new(exe)
    };
    let output = command.args(["child", &number.to_string()]).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Cost::parse(&text).ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        complaint.lines().next_back().unwrap_or("no result").to_owned()
    })
}

fn print(costs: &[Vec<Option<Cost>>; CONTESTANTS.len()]) {
    println!(
        "\n| | goodput MB/s | CPU s/GB, both ends | goodput beside ours | CPU beside ours | peak KiB | overflows |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (contestant, own) in CONTESTANTS.iter().zip(costs) {
        let known: Vec<&Cost> = own.iter().flatten().collect();
        if known.is_empty() {
            continue;
        }
        // Beside ours with the same buffers.
        let ours = &costs[usize::from(contestant.buffer_bytes.is_some())];
        let ours = if ours.is_empty() { &costs[0] } else { ours };
        let ratio = |of: fn(&Cost) -> f64| {
            let pairs = own.iter().zip(ours).filter_map(|(a, b)| Some(of(a.as_ref()?) / of(b.as_ref()?)));
            cost::median(pairs.collect())
        };
        let median = |of: fn(&Cost) -> f64| cost::median(known.iter().map(|cost| of(cost)).collect());
        println!(
            "| {} | {:.0} | {:.3} | x {:.3} | x {:.2} | {:.0} | {:.0} |",
            contestant.name,
            median(Cost::goodput),
            median(Cost::cpu_per_gb),
            ratio(Cost::goodput),
            ratio(Cost::cpu_per_gb),
            median(|cost| cost.peak_kib as f64),
            median(|cost| cost.overflows as f64),
        );
    }
}
