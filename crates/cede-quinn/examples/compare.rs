//! Measures controllers over quinn in the simulated world: `cargo run --release -p cede-quinn --example compare`.
//!
//! 20 Mbit/s, 40 ms, 200 ms of buffer. For each controller: alone, and beside quinn's CUBIC from 20 to 80 s. The
//! controllers that `cede_quinn::UNFIT` refuses are measured too, which is why they are refused.

#[path = "../tests/world/mod.rs"]
mod world;

use cede_cc::{Params, registry};
use cede_lab::check::marks::TAKEN_BACK;
use cede_quinn::{AckDelay, Scavenger};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use std::sync::Arc;
use world::{Flow, Path, run};

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

fn measure(name: &str, congestion: &Factory) {
    let path = Path::default();
    let own = || Flow { name: "own", congestion: congestion.clone(), span_s: (0, 110) };
    let cubic = || Flow { name: "cubic", congestion: Arc::new(CubicConfig::default()), span_s: (20, 80) };
    let alone = run(path, vec![own()], 60);
    let other = run(path, vec![cubic()], 85).rate_mbps("cubic", 25.0, 80.0);
    let both = run(path, vec![own(), cubic()], 110);
    println!(
        "| {name} | {:.2} | {:.0} / {:.0} | {} | {:.2} | {:.1} % | {:.1} |",
        alone.rate_mbps("own", 15.0, 60.0),
        alone.queue_ms(50.0, 15.0, 60.0),
        alone.queue_ms(95.0, 15.0, 60.0),
        alone.dropped,
        both.rate_mbps("own", 25.0, 80.0),
        100.0 * both.rate_mbps("cubic", 25.0, 80.0) / other,
        both.time_to_reach_s("own", TAKEN_BACK * path.rate.as_mbit_f64(), 80.0),
    );
}

fn main() {
    println!(
        "| controller | alone, Mbit/s | queue p50 / p95, ms | drops | beside CUBIC, Mbit/s | CUBIC keeps | link back after, s |"
    );
    println!("|---|---|---|---|---|---|---|");
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for entry in registry::all() {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == entry.name) {
            continue;
        }
        for (suffix, ack_delay) in [("", AckDelay::Removed), (", ack delay included", AckDelay::Included)] {
            match Scavenger::even_if_unfit(entry.name, &Params::new()) {
                Ok(scavenger) => {
                    let factory: Factory = Arc::new(scavenger.ack_delay(ack_delay));
                    measure(&format!("{}{suffix}", entry.name), &factory);
                }
                Err(error) => println!("| {} | {error} | | | | | |", entry.name),
            }
        }
    }
    if wanted.is_empty() {
        measure("quinn's CUBIC", &(Arc::new(CubicConfig::default()) as Factory));
        measure("quinn's BBR", &(Arc::new(BbrConfig::default()) as Factory));
    }
}
