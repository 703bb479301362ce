//! Swarms that were run with real clients, in the simulated world: one seed and so many leechers of libtorrent's profile.
//!
//!     cargo run --release -p cede-lab --example swarm_reference -- tcp|utp|mix [runs=3] [leechers=8] [octets=20000000]
//!         [within=10] [tcp=50] [mbps=1] [buffer=125000] [target=100] [rack=1] [burst=1600]
//!
//! `within` so many ms the leechers start; of a mix, `tcp` percent of them attempt TCP alone and the others uTP, and all accept both.
//! `buffer` is that of each uplink, in octets, and `burst` what its token bucket lets through at once, as with the real ones' `tbf`;
//! `target` is uTP's, in ms; with `rack=0` TCP
//! counts what arrives beyond a loss, and its CUBIC is the RFC's (the kernel that real ones ran on finds losses by time, and has rules of its own).
//! Prints each run, and their means.

use cede_bt::{Disposition, Profile};
use cede_cc::ParamValue;
use cede_lab::swarm::{
    Arrival, ControllerChoice, Group, Hashing, Links, Role, Summary, Swarm, SwarmRecords, TcpStack, mean, run,
};
use cede_net::QueueLimit;
use cede_units::{Duration, Rate};

/// What was asked for.
struct Wanted {
    transport: String,
    runs: u64,
    leechers: u64,
    octets: u64,
    within: u64,
    tcp: u64,
    mbps: u64,
    buffer: u64,
    target: u64,
    rack: u64,
    burst: u64,
}

impl Wanted {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut wanted = Self {
            transport: args.next().unwrap_or_else(|| "utp".to_string()),
            runs: 3,
            leechers: 8,
            octets: 20_000_000,
            within: 10,
            tcp: 50,
            mbps: 1,
            buffer: 125_000,
            target: 100,
            rack: 1,
            burst: 1_600,
        };
        for arg in args {
            let (key, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: write KEY=NUMBER"))?;
            let field = match key {
                "runs" => &mut wanted.runs,
                "leechers" => &mut wanted.leechers,
                "octets" => &mut wanted.octets,
                "within" => &mut wanted.within,
                "tcp" => &mut wanted.tcp,
                "mbps" => &mut wanted.mbps,
                "buffer" => &mut wanted.buffer,
                "target" => &mut wanted.target,
                "rack" => &mut wanted.rack,
                "burst" => &mut wanted.burst,
                _ => return Err(format!("{key}: not known")),
            };
            *field = value.parse().map_err(|error| format!("{arg}: {error}"))?;
        }
        Ok(wanted)
    }

    fn group(&self, name: &str, count: u64, disposition: Disposition) -> Group {
        let (role, at_s) = if name == "seed" { (Role::Seed, 0) } else { (Role::Leecher, 2) };
        let within = Duration::from_millis(self.within);
        let mut utp = ControllerChoice::named("ledbat-libtorrent");
        let (tcp, tcp_stack) = match self.rack {
            0 => (ControllerChoice::named("cubic"), TcpStack::Linux),
            _ => (ControllerChoice::of_kernel("cubic"), TcpStack::Linux418),
        };
        utp.params.set("target", ParamValue::Duration(Duration::from_millis(self.target)));
        Group {
            uplink: Some(Rate::from_mbit(self.mbps)),
            buffer: QueueLimit::Bytes(self.buffer),
            burst_bytes: self.burst,
            disposition,
            utp,
            tcp,
            tcp_stack,
            arrival: Arrival::Together { at: Duration::from_secs(at_s), within },
            ..Group::new(name, count as u32, role, Profile::LIBTORRENT)
        }
    }

    fn swarm(&self, seed: u64) -> Swarm {
        let all = if self.transport == "tcp" { Disposition::TCP } else { Disposition::ALL };
        let mut groups = vec![self.group("seed", 1, all)];
        if self.transport == "mix" {
            let tcp = self.leechers * self.tcp / 100;
            groups.push(self.group("tcp", tcp, Disposition(13)));
            groups.push(self.group("utp", self.leechers - tcp, Disposition(14)));
            groups.retain(|group| group.count > 0);
        } else {
            groups.push(self.group("leecher", self.leechers, all));
        }
        Swarm {
            name: "reference".to_string(),
            seed,
            duration: Duration::from_secs(3_000),
            content_bytes: self.octets,
            piece_bytes: 256 << 10,
            hashing: Hashing::Compare,
            tracker_peers: 200,
            announce_every: None,
            groups,
            links: Links::Homogeneous { rtt: Duration::ZERO, loss: 0.0 },
            records: SwarmRecords::default(),
            measure_from: Duration::ZERO,
        }
    }
}

fn report(wanted: &Wanted, summaries: &[Summary]) {
    let over = |of: fn(&Summary) -> f64| mean(&summaries.iter().map(of).collect::<Vec<f64>>());
    println!(
        "means of {}: T {:.1} s, queue {:.1} ms, p95 {:.0}, seed's {:.1}, copies {:.2}, TCP {:.1} %",
        wanted.runs,
        over(|run| run.mean_s),
        over(|run| run.queue_mean_ms),
        over(|run| run.queue_p95_ms),
        over(|run| run.seed_queue_ms),
        over(|run| run.seed_copies),
        over(|run| 100.0 * run.tcp_share),
    );
}

fn main() {
    let wanted = match Wanted::parse(std::env::args().skip(1)) {
        Ok(wanted) => wanted,
        Err(error) => return eprintln!("{error}"),
    };
    let mut summaries = Vec::new();
    for seed in 1..=wanted.runs {
        let swarm = wanted.swarm(seed);
        match run(&swarm, &mut ()) {
            Ok(outcome) => {
                let summary = outcome.summary(swarm.content_bytes);
                let groups: Vec<f64> =
                    (1..swarm.groups.len()).map(|group| mean(&outcome.group_completion_s(group))).collect();
                println!("{} {seed}: {groups:.1?} s, {summary:.2?}", wanted.transport);
                summaries.push(summary);
            }
            Err(error) => return eprintln!("{error}"),
        }
    }
    report(&wanted, &summaries);
}
