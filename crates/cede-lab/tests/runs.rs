//! Whole runs: determinism, independence of the file's order, integrity of the streams, conservation.

use cede_lab::outcome::Outcome;
use cede_lab::run::Run;
use cede_lab::scenario::{Overrides, Scenario};

/// A hostile bottleneck that two transports share.
const ROUGH: &str = r#"
name = "rough"
duration = "40 s"
[link]
rate = "8 Mbit/s"
delay = "15 ms"
buffer = "40 packets"
loss = 0.01
duplicate = 0.01
reorder = { probability = 0.01, extra_delay = "20 ms" }
jitter = "3 ms"
jitter_reorders = true
"#;

const UTP: &str = r#"
[[flow]]
name = "utp"
count = 2
protocol = "utp"
controller = { name = "ledbat", target = "25 ms" }
start_jitter = "500 ms"
bytes = "1 MB"
"#;

const TCP: &str = r#"
[[flow]]
name = "tcp"
protocol = "tcp"
controller = "cubic"
start_jitter = "500 ms"
bytes = "3 MB"
"#;

fn parse(text: &str, overrides: &[&str]) -> Scenario {
    let overrides = Overrides::new(overrides.iter().map(ToString::to_string));
    Scenario::parse_with("test.toml", text, &overrides).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn run(text: &str, overrides: &[&str]) -> Outcome {
    Run::new(&parse(text, overrides)).go(&mut ()).expect("it runs").0
}

#[test]
fn flows_go_by_the_controllers_that_they_had() {
    let scenario = parse(&format!("{ROUGH}{UTP}{TCP}"), &["duration=\"100 ms\""]);
    let vegas = cede_cc::registry::find("vegas").expect("it is there");
    let own = cede_cc::registry::Entry { name: "own", ..*vegas };
    let run = Run::new(&scenario).stand_in_of("utp", own, cede_cc::Params::new());
    let outcome = run.go(&mut ()).expect("it runs").0;
    let controllers: Vec<(&str, &str)> =
        outcome.flows.iter().map(|flow| (flow.name.as_str(), flow.controller.as_str())).collect();
    assert_eq!(controllers, [("utp-1", "own"), ("utp-2", "own"), ("tcp", "cubic")]);
    let nobody = Run::new(&scenario).stand_in_of("upt", own, cede_cc::Params::new()).go(&mut ());
    assert_eq!(nobody.err().map(|error| error.to_string()).as_deref(), Some("no flow is called `upt`"));
}

#[test]
fn a_seed_is_a_run_and_the_order_of_the_file_is_not() {
    let first = run(&format!("{ROUGH}{UTP}{TCP}"), &["seed=7"]);
    let again = run(&format!("{ROUGH}{UTP}{TCP}"), &["seed=7"]);
    let turned = run(&format!("{ROUGH}{TCP}{UTP}"), &["seed=7"]);
    let other = run(&format!("{ROUGH}{UTP}{TCP}"), &["seed=8"]);
    assert_eq!(first.tape, again.tape);
    assert_eq!(first.tape, turned.tape);
    assert_ne!(first.tape, other.tape);
    assert_eq!(first.flows[0].name, turned.flows[1].name);
    assert_eq!(first.flows[0].rate_mbps.to_bits(), turned.flows[1].rate_mbps.to_bits());
}

#[test]
fn streams_arrive_whole_over_a_rough_link() {
    for seed in 1..=5 {
        let outcome = run(&format!("{ROUGH}{UTP}{TCP}"), &[&format!("seed={seed}")]);
        for flow in &outcome.flows {
            assert!(flow.intact, "{}", flow.name);
            assert_eq!(flow.error, None, "{}", flow.name);
            let finish = flow.finish_s.unwrap_or(f64::INFINITY);
            assert!(finish < 40.0, "{} finished at {finish}", flow.name);
        }
        let received: f64 = outcome.flows.iter().map(|flow| flow.goodput_mbps * outcome.span_s / 8.0).sum();
        assert!((received - 5.0).abs() < 1e-9, "{received} MB");
    }
}

#[test]
fn clocks_that_disagree_change_no_rate() {
    let text = format!("{ROUGH}{UTP}\n[[host]]\nname = \"utp-receiver\"\nclock_offset = \"-900 s\"\n");
    let exact = run(&format!("{ROUGH}{UTP}"), &[]);
    let offset = run(&text, &[]);
    for (a, b) in exact.flows.iter().zip(&offset.flows) {
        assert!((a.finish_s.unwrap() - b.finish_s.unwrap()).abs() < 0.01, "{a:?} {b:?}");
    }
}

#[test]
fn every_traffic_model_delivers_what_it_offers() {
    let clean = "name = \"clean\"\nduration = \"30 s\"\n[link]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\nbuffer = \"200 ms\"\n";
    let models = [
        ("{ kind = \"heartbeat\", period = \"1 s\", bytes = \"5 kB\" }", 30.0 * 5_000.0),
        ("{ kind = \"paced\", rate = \"64 kbit/s\", message = \"160 B\" }", 30.0 * 8_000.0),
        (
            "{ kind = \"chirp\", period = \"2 s\", first = \"1 packets\", growth = 2, max = \"8 packets\" }",
            0.0,
        ),
    ];
    for protocol in ["utp", "tcp"] {
        for (model, expected) in models {
            let text =
                format!("{clean}[[flow]]\nname = \"app\"\nprotocol = \"{protocol}\"\ntraffic = {model}\n");
            let outcome = run(&text, &[]);
            let received = outcome.flows[0].goodput_mbps * 30.0 * 1e6 / 8.0;
            assert!(outcome.flows[0].intact && received > 0.0);
            // The last message may still be on its way.
            if expected > 0.0 {
                assert!((received / expected - 1.0).abs() < 0.04, "{protocol} {model}: {received}");
            }
        }
    }
}

#[test]
fn assertions_speak_for_the_worst_replicate() {
    let scenario =
        parse(&format!("{ROUGH}{UTP}[assert]\nflow.utp.loss = \"< 0.5\"\nqueue.p95_ms = \"< 1\"\n"), &[]);
    let outcome = Run::new(&scenario).go(&mut ()).expect("it runs").0;
    let verdicts = outcome.verdicts(&scenario);
    assert!(verdicts[0].holds, "{verdicts:?}");
    assert!(!verdicts[1].holds && verdicts[1].measured > 1.0, "{verdicts:?}");
}

fn outcome_of(link: &str, flow: &str) -> Outcome {
    let text = format!("duration = \"600 s\"\n[link]\n{link}\n[[flow]]\nprotocol = \"tcp\"\n{flow}\n");
    Run::new(&Scenario::parse("x.toml", &text).unwrap()).go(&mut ()).expect("it runs").0
}

#[test]
fn a_slow_link_does_not_carry_more_than_its_capacity() {
    // A packet takes 12 s; the one on the wire at the end counts with the part that has left.
    let outcome = outcome_of("rate = \"1 kbit/s\"\ndelay = \"20 ms\"\nbuffer = \"20 packets\"", "");
    let efficiency = outcome.links[0].efficiency;
    assert!(efficiency > 0.9 && efficiency <= 1.0, "{efficiency}");
}

#[test]
fn a_link_that_becomes_faster_or_slower_does_not_carry_more_than_its_capacity() {
    for later in ["40 Mbit/s", "2500 kbit/s"] {
        let link = format!(
            "rate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n[[change]]\nat = \"150 s\"\nrate = \"{later}\""
        );
        let outcome = outcome_of(&link, "");
        let link = &outcome.links[0];
        assert!(link.efficiency > 0.9 && link.efficiency <= 1.0, "{later}: {}", link.efficiency);
        assert!((link.rate_mbps / outcome.flows[0].rate_mbps - 1.0).abs() < 0.01);
    }
}

#[test]
fn small_packets_do_not_fill_a_buffer_of_octets_more_than_once() {
    let outcome =
        outcome_of("rate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"200 ms\"", "packet = \"128 B\"");
    let link = &outcome.links[0];
    assert!(link.loss > 0.0 && link.queue_index > 0.3 && link.queue_index <= 1.0, "{}", link.queue_index);
}

#[test]
fn what_a_flow_waits_and_loses_on_its_access_link_is_its_own() {
    let slow_access =
        "topology.access_buffer = \"20 packets\"\n[[flow]]\nprotocol = \"tcp\"\naccess_rate = \"2 Mbit/s\"\n";
    let text = format!(
        "duration = \"60 s\"\n{}",
        slow_access.replace("[[flow]]", "[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n[[flow]]",)
    );
    let outcome = run(&text, &[]);
    let (flow, link) = (&outcome.flows[0], &outcome.links[0]);
    assert_eq!((link.delays.p95_ms, link.loss), (0.0, 0.0), "nothing waits at the bottleneck");
    // Twenty packets of 6 ms each, and what the sender loses it has to send again.
    assert!((60.0..=126.0).contains(&flow.delays.p95_ms), "{:?}", flow.delays);
    assert!(flow.loss > 0.0 && (flow.loss / flow.retransmitted - 1.0).abs() < 0.2, "{flow:?}");
}

#[test]
fn what_was_sent_again_before_the_end_of_the_warm_up_does_not_count() {
    let text = "duration = \"60 s\"\nwarmup = \"30 s\"\n[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nloss = 0.02\n\
         [[change]]\nat = \"20 s\"\nloss = 0.0\n[[flow]]\nprotocol = \"tcp\"\ncontroller = { name = \"fixed\", cwnd = \"40 kB\" }\n";
    let early = run(text, &["warmup=0 s"]);
    assert!(early.flows[0].retransmitted > 0.002, "{}", early.flows[0].retransmitted);
    let late = run(text, &[]);
    assert_eq!((late.flows[0].retransmitted, late.flows[0].loss), (0.0, 0.0));
    assert!(late.flows[0].goodput_mbps > 5.0);
}

#[test]
fn what_a_packet_waits_at_two_links_is_one_delay() {
    let text = "duration = \"60 s\"\nwarmup = \"5 s\"\n[topology]\nkind = \"star\"\n\
         [uplink]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\nbuffer = \"50 ms\"\n\
         [downlink]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\nbuffer = \"50 ms\"\n\
         [[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[host]]\nname = \"c\"\n\
         [[flow]]\nname = \"over-both\"\nprotocol = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n\
         [[flow]]\nname = \"up\"\nprotocol = \"tcp\"\nfrom = \"a\"\nto = \"c\"\n\
         [[flow]]\nname = \"down\"\nprotocol = \"tcp\"\nfrom = \"c\"\nto = \"b\"\n";
    let outcome = run(text, &[]);
    let at = |name: &str| {
        outcome.links.iter().find(|link| link.name == name).map_or(f64::NAN, |link| link.delays.mean_ms)
    };
    let (both, apart) = (outcome.flows[0].delays.mean_ms, at("a-up") + at("b-down"));
    assert!((both / apart - 1.0).abs() < 0.2, "{both} of {} and {}", at("a-up"), at("b-down"));
}

#[test]
fn a_lost_handshake_is_no_lost_data() {
    let outcome = outcome_of("rate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nloss = 1.0", "");
    assert_eq!((outcome.flows[0].loss, outcome.links[0].loss), (0.0, 1.0));
}
