//! A link so slow that its buffer holds a minute: round trips grow past every timeout, and nothing is lost by it.

use cede_cc::registry;
use cede_lab::outcome::FlowOutcome;
use cede_lab::run::Run;
use cede_lab::scenario::Scenario;

const SECONDS: u32 = 900;

/// 20 kbit/s behind 100 packets: 60 s of queue.
fn slow(controller: &str) -> FlowOutcome {
    let text = format!(
        "name = \"slow\"\nduration = \"{SECONDS} s\"\n[link]\nrate = \"20 kbit/s\"\ndelay = \"20 ms\"\nbuffer = \"100 packets\"\n\
         [[flow]]\nname = \"own\"\ncontroller = \"{controller}\"\n"
    );
    let scenario = Scenario::parse("slow.toml", &text).unwrap_or_else(|_| panic!("{text}"));
    let (mut outcome, _) = Run::new(&scenario).go(&mut ()).expect("it runs");
    outcome.flows.remove(0)
}

#[test]
fn round_trips_beyond_the_timeout_end_no_connection() {
    for entry in registry::all() {
        let flow = slow(entry.name);
        assert_eq!(flow.error, None, "{}", entry.name);
        // The first packets' timeouts are in vain, until one is answered.
        assert!((1..=10).contains(&flow.timeouts), "{}: {} timeouts", entry.name, flow.timeouts);
        // A window that ignores everything sends everything again.
        let again = if entry.responsive { 0.5 } else { 1.0 };
        assert!(flow.retransmitted < again, "{}: {} of what it sent", entry.name, flow.retransmitted);
        assert!(flow.rate_mbps > 0.015, "{}: {} Mbit/s", entry.name, flow.rate_mbps);
    }
}
