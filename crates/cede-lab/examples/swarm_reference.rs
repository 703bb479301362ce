//! One seed and eight leechers behind 1 Mbit/s uplinks, 20 MB, libtorrent's profile: the swarm that was run with real
//! clients (`cargo run --release -p cede-lab --example swarm_reference -- utp|tcp|mix [runs [leechers [octets [ms]]]]`, the last
//! being the time within which the leechers start; of a mix, half attempt TCP alone and half uTP, and accept both).

use cede_bt::{Disposition, Profile};
use cede_lab::swarm::{Arrival, ControllerChoice, Group, Hashing, Links, Role, Swarm, SwarmRecords, run};
use cede_net::QueueLimit;
use cede_units::{Duration, Rate};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let transport = args.first().map_or("utp", String::as_str);
    let number =
        |at: usize, otherwise: u64| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    for seed in 1..=number(1, 3) {
        let swarm = reference(transport, seed, number(2, 8) as u32, number(3, 20_000_000), number(4, 10));
        let began = std::time::Instant::now();
        match run(&swarm, &mut ()) {
            Ok(outcome) => {
                let summary = outcome.summary(swarm.content_bytes);
                println!(
                    "{transport} {seed}: {summary:.2?} events {} in {:?}",
                    outcome.events,
                    began.elapsed()
                );
            }
            Err(error) => println!("{error}"),
        }
    }
}

fn reference(transport: &str, seed: u64, leechers: u32, content_bytes: u64, within_ms: u64) -> Swarm {
    let group = |name, (count, disposition), role, at| Group {
        uplink: Some(Rate::from_mbit(1)),
        buffer: QueueLimit::Bytes(125_000),
        disposition,
        utp: ControllerChoice::named("ledbat-libtorrent"),
        arrival: Arrival::Together { at: Duration::from_secs(at), within: Duration::from_millis(within_ms) },
        ..Group::new(name, count, role, Profile::LIBTORRENT)
    };
    let all = if transport == "tcp" { Disposition::TCP } else { Disposition::ALL };
    let mut groups = vec![group("seed", (1, all), Role::Seed, 0)];
    let halves = [("tcp", Disposition(13)), ("utp", Disposition(14))];
    if transport == "mix" {
        groups.extend(halves.map(|(name, which)| group(name, (leechers / 2, which), Role::Leecher, 2)));
    } else {
        groups.push(group("leecher", (leechers, all), Role::Leecher, 2));
    }
    Swarm {
        name: "reference".to_string(),
        seed,
        duration: Duration::from_secs(3_000),
        content_bytes,
        piece_bytes: 256 << 10,
        hashing: Hashing::Compare,
        tracker_peers: 200,
        groups,
        links: Links::Homogeneous { rtt: Duration::ZERO, loss: 0.0 },
        records: SwarmRecords::default(),
        measure_from: Duration::ZERO,
    }
}
