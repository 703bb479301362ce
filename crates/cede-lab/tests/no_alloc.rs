//! No allocation per packet in steady state, and no memory that grows with simulated time.

use allocation_counter::{AllocationInfo, measure};
use cede_lab::run::Run;
use cede_lab::scenario::{Overrides, Scenario};

const ELEVEN: &str = r#"
name = "eleven"
duration = "100 s"
[link]
rate = "10 Mbit/s"
delay = "23 ms"
buffer = "100 packets"
[[flow]]
name = "reno"
protocol = "tcp"
controller = "reno"
[[flow]]
name = "ledbat"
count = 10
protocol = "utp"
controller = { name = "ledbat", target = "25 ms" }
"#;

/// What a run of this length allocates, from laying out the network to adding up.
fn allocations(seconds: u32) -> AllocationInfo {
    let length = Overrides::new([format!("duration={seconds} s")]);
    let scenario = Scenario::parse_with("eleven.toml", ELEVEN, &length).expect("a sound scenario");
    measure(|| {
        let (outcome, _) = Run::new(&scenario).totals_only().go(&mut ()).expect("it runs");
        assert!(outcome.links[0].efficiency > 0.9);
    })
}

#[test]
fn a_steady_run_neither_allocates_nor_grows() {
    let (short, long) = (allocations(100), allocations(200));
    // 80,000 data packets lie between the two. What is allowed is the doubling of a ring, a history or a list of one
    // fairness figure per second, not an allocation per packet.
    let more = long.count_total - short.count_total;
    assert!(more < 50, "{more} allocations for 100 s more");
    let grown = long.bytes_max - short.bytes_max;
    assert!(grown < 32 << 10, "{grown} octets more at the peak for 100 s more");
}
