//! Runs a scenario file and prints what it showed, with the time it took.
use cede_lab::run::Run;
use cede_lab::scenario::Scenario;
fn main() {
    let file = std::env::args().nth(1).expect("a file");
    let text = std::fs::read_to_string(&file).expect("readable");
    let scenario = match Scenario::parse(&file, &text) {
        Ok(s) => s,
        Err(p) => {
            for p in p {
                eprintln!("{p}");
            }
            std::process::exit(2)
        }
    };
    let start = std::time::Instant::now();
    let run = if std::env::args().nth(2).is_some() {
        Run::new(&scenario).totals_only()
    } else {
        Run::new(&scenario)
    };
    let (outcome, _) = run.go(&mut ()).expect("runs");
    let took = start.elapsed();
    println!("{:#?}", outcome.links);
    for f in &outcome.flows {
        println!(
            "{} {}/{} rate {:.3} share {:.4} loss {:.5} goodput {:.3} retx {:.4} to {} intact {} {:?} p50 {:.1} p95 {:.1}",
            f.name,
            f.protocol,
            f.controller,
            f.rate_mbps,
            f.share,
            f.loss,
            f.goodput_mbps,
            f.retransmitted,
            f.timeouts,
            f.intact,
            f.error,
            f.delays.p50_ms,
            f.delays.p95_ms
        );
    }
    println!(
        "fair {:?} {:?} tape {} events {}",
        outcome.fairness_long, outcome.fairness_short, outcome.tape, outcome.events
    );
    println!("took {took:?}");
}
