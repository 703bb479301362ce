//! Queue disciplines, marks, policers, token buckets and changes, from the scenario to the outcome.

use cede_lab::outcome::Outcome;
use cede_lab::run::Run;
use cede_lab::scenario::{Overrides, Scenario, render};

const BASE: &str = r#"
duration = "30 s"
warmup = "5 s"
[link]
rate = "10 Mbit/s"
delay = "20 ms"
buffer = "200 packets"
[[flow]]
name = "cubic"
protocol = "tcp"
controller = "cubic"
"#;

fn scenario(overrides: &[&str]) -> Result<Scenario, String> {
    Scenario::parse_with("base", BASE, &Overrides::new(overrides.iter().copied())).map_err(|p| render(&p))
}

fn run(overrides: &[&str]) -> Outcome {
    let scenario = scenario(overrides).unwrap_or_else(|problems| panic!("{problems}"));
    let (outcome, _) = Run::new(&scenario).go(&mut ()).expect("it runs");
    assert!(outcome.flows.iter().all(|flow| flow.intact && flow.error.is_none()));
    outcome
}

fn drops(outcome: &Outcome, cause: &str) -> u64 {
    outcome.links[0].drops[cause]
}

#[test]
fn each_discipline_holds_the_delay_it_promises_and_drops_for_its_own_reason() {
    // A full drop-tail queue of 200 packets is 240 ms of delay; the managed ones hold far less of it.
    let tail = run(&["link.queue=droptail"]);
    assert!(tail.links[0].delays.p50_ms > 100.0 && drops(&tail, "queue_full") > 0);
    let head = run(&["link.queue=head-drop"]);
    assert!(drops(&head, "pushed_out") > 0 && drops(&head, "queue_full") == 0);
    for (queue, cause, p50_ms) in [
        ("codel", "sojourn", 15.0),
        ("fq-codel", "sojourn", 15.0),
        ("pie", "early", 30.0),
        ("red", "early", 40.0),
    ] {
        let outcome = run(&[&format!("link.queue={queue}")]);
        let link = &outcome.links[0];
        assert!(link.delays.p50_ms < p50_ms, "{queue}: {}", link.delays.p50_ms);
        assert!(link.efficiency > 0.8, "{queue}: {}", link.efficiency);
        assert!(drops(&outcome, cause) > 0, "{queue}: {:?}", link.drops);
        let total: u64 = link.drops.values().sum();
        assert_eq!(total, drops(&outcome, cause) + drops(&outcome, "queue_full"), "{queue}");
    }
}

#[test]
fn a_flow_that_understands_marks_loses_nothing_to_a_queue_that_marks() {
    for queue in ["codel", "fq-codel", "pie", "red"] {
        let with_ecn = ["link.ecn=true", "flow.0.tcp.ecn=true"];
        let queue = format!("link.queue={queue}");
        let marked = run(&[&queue, with_ecn[0], with_ecn[1]]);
        assert!(marked.links[0].marked > 0.0, "{queue}");
        // What is dropped all the same falls into the slow start, before the warm-up is over.
        assert_eq!(marked.links[0].loss, 0.0, "{queue}: {:?}", marked.links[0].drops);
        assert!(marked.links[0].efficiency > 0.8, "{queue}");
        // One end alone is not enough: then there are drops and no marks.
        for lacking in [with_ecn[0], with_ecn[1]] {
            let outcome = run(&[&queue, lacking]);
            assert!(outcome.links[0].marked == 0.0 && outcome.links[0].loss > 0.0, "{queue} {lacking}");
        }
    }
}

/// What happened to which packet and when.
fn tape(overrides: &[&str]) -> String {
    run(overrides).tape
}

/// Kinds, an option each, a value that is not its default, and what the option needs beside it.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("codel", "target = \"8 ms\"", ""),
    ("codel", "interval = \"200 ms\"", ""),
    ("codel", "max_packet = \"9 kB\"", ""),
    ("codel", "memory = 0", ""),
    ("fq-codel", "target = \"8 ms\"", ""),
    ("fq-codel", "interval = \"200 ms\"", ""),
    ("fq-codel", "max_packet = \"9 kB\"", ""),
    ("fq-codel", "memory = 0", ""),
    ("fq-codel", "quantum = \"6000 B\"", ""),
    ("fq-codel", "queues = 1", ""),
    ("fq-codel", "exact = true", "queues = 2"),
    ("fq-codel", "drop_batch = 1", "target = \"500 ms\""),
    ("pie", "target = \"20 ms\"", ""),
    ("pie", "update = \"30 ms\"", ""),
    ("pie", "burst = \"0 s\"", ""),
    ("pie", "profile = \"linux\"", ""),
    ("pie", "alpha = 0.5", ""),
    ("pie", "beta = 5.0", ""),
    ("pie", "mean_packet = \"6 kB\"", ""),
    ("pie", "decay = 0.5", ""),
    ("pie", "max_step = 0.0001", "alpha = 100.0"),
    ("pie", "high_delay = \"20 ms\"", ""),
    ("pie", "first_update = \"2 s\"", ""),
    ("red", "min = 3.0", ""),
    ("red", "max = 30.0", ""),
    ("red", "max_p = 0.3", ""),
    ("red", "weight = 0.02", ""),
    ("red", "gentle = false", ""),
    ("red", "mean_packet = \"100 B\"", "min = 1.0"),
    ("red", "adaptive = true", ""),
    ("red", "adapt_every = \"100 ms\"", "adaptive = true"),
    ("red", "adapt_up = 0.001", "adaptive = true"),
    ("red", "adapt_down = 0.5", "adaptive = true"),
    ("red", "adapt_ceiling = 0.0", "adaptive = true"),
    ("red", "adapt_floor = 0.5", "adaptive = true"),
    ("red", "adapt_low = 0.0", "adaptive = true"),
    ("red", "adapt_high = 1.0", "adaptive = true"),
];

#[test]
fn each_option_of_each_discipline_changes_what_the_link_does() {
    let of = |kind: &str, options: &[&str]| {
        let given: String =
            options.iter().filter(|option| !option.is_empty()).map(|option| format!(", {option}")).collect();
        let queue = format!("link.queue={{ kind = \"{kind}\"{given} }}");
        tape(&[&queue, "flow.0.count=5", "link.buffer=40 packets"])
    };
    for (kind, option, beside) in OPTIONS {
        assert_ne!(of(kind, &[beside, option]), of(kind, &[beside]), "{kind}: {option}");
    }
    let marked = |max: &str| {
        tape(&[
            &format!("link.queue={{ kind = \"pie\", mark_max = {max} }}"),
            "flow.0.count=9",
            "link.ecn=true",
            "flow.0.tcp.ecn=true",
        ])
    };
    assert_ne!(marked("0.1"), marked("0.01"));
}

#[test]
fn what_is_given_as_the_default_changes_nothing() {
    for (kind, options) in [
        ("codel", "target = \"5 ms\", interval = \"100 ms\", max_packet = \"1514 B\", memory = 16"),
        ("fq-codel", "max_packet = \"1514 B\", memory = 16, quantum = \"1514 B\", drop_batch = 64"),
        ("pie", "alpha = 0.125, beta = 1.25, mean_packet = \"1500 B\", decay = 0.98, first_update = \"0 s\""),
        (
            "pie",
            "profile = \"linux\", max_step = 0.02, high_delay = \"250 ms\", decay = 0.984375, first_update = \"500 ms\"",
        ),
        ("red", "adapt_every = \"500 ms\", adapt_up = 0.01, adapt_down = 0.9, adaptive = true"),
    ] {
        let profile = match options {
            _ if options.contains("linux") => ", profile = \"linux\"",
            _ if options.contains("adaptive") => ", adaptive = true",
            _ => "",
        };
        let plain = tape(&[&format!("link.queue={{ kind = \"{kind}\"{profile} }}")]);
        assert_eq!(
            tape(&[&format!("link.queue={{ kind = \"{kind}\", {options} }}")]),
            plain,
            "{kind}: {options}"
        );
    }
}

#[test]
fn utp_is_never_marked() {
    let outcome =
        run(&["flow.0.protocol=utp", "flow.0.controller=reno", "link.queue=codel", "link.ecn=true"]);
    assert!(outcome.links[0].marked == 0.0 && drops(&outcome, "sojourn") > 0);
}

#[test]
fn fq_codel_shares_between_a_gentle_and_a_greedy_flow() {
    let two = format!("{BASE}[[flow]]\nname = \"reno\"\nprotocol = \"tcp\"\ncontroller = \"reno\"\n");
    let share = |queue: &str| {
        let overrides = Overrides::new([format!("link.queue={queue}"), "flow.cubic.count=3".to_string()]);
        let scenario =
            Scenario::parse_with("two", &two, &overrides).unwrap_or_else(|p| panic!("{}", render(&p)));
        let (outcome, _) = Run::new(&scenario).totals_only().go(&mut ()).expect("it runs");
        outcome.fairness_long.expect("something arrived")
    };
    let fair = share("{ kind = \"fq-codel\", exact = true }");
    assert!(fair > 0.98, "{fair}");
}

#[test]
fn a_policer_bounds_the_rate_and_a_token_bucket_lets_bursts_through() {
    let policed = run(&["link.policer={ rate = \"4 Mbit/s\", burst = \"30000 B\" }"]);
    assert!(drops(&policed, "policed") > 0 && policed.links[0].rate_mbps < 4.1);
    let paced =
        ["flow.0.traffic={ kind = \"chirp\", period = \"2 s\", first = \"60 packets\", growth = 1.0 }"];
    let wait = |more: &[&str]| run(&[&paced[..], more].concat()).links[0].delays.p95_ms;
    // Bursts of 60 packets wait for one another at 10 Mbit/s, and leave at once with a bucket of 100 kB.
    let (serialised, bucket) = (wait(&[]), wait(&["link.burst=100 kB", "link.peak=1 Gbit/s"]));
    assert!(bucket < serialised / 4.0, "{bucket} {serialised}");
}

#[test]
fn links_change_at_their_times() {
    let outcome = run(&[
        "change=[{ at = \"10 s\", rate = \"2 Mbit/s\" }, { at = \"20 s\", rate = \"10 Mbit/s\", link = \"bottleneck\" }]",
        "flow.0.controller={ name = \"fixed\", cwnd = \"60 kB\" }",
    ]);
    let mean = |from: f64, to: f64| {
        let series = &outcome.series;
        let within =
            series.t_s.iter().zip(&series.flows[0].rate_mbps).filter(|(t, _)| (from..to).contains(*t));
        let rates: Vec<f64> = within.map(|(_, &rate)| rate).collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    assert!((9.5..10.5).contains(&mean(6.0, 10.0)) && (1.8..2.2).contains(&mean(12.0, 20.0)));
    assert!((9.0..10.5).contains(&mean(22.0, 30.0)));
    let lost = run(&["change=[{ at = \"10 s\", lose = \"3 packets\" }]", "link.buffer=5000 packets"]);
    assert_eq!(drops(&lost, "wire"), 3);
}

#[test]
fn a_clock_that_is_set_moves_the_one_way_delay_and_nothing_else() {
    let stepped = |step: &str| {
        run(&[
            "flow.0.protocol=utp",
            "flow.0.controller={ name = \"fixed\", cwnd = \"60 kB\" }",
            &format!(
                "host=[{{ name = \"cubic-receiver\", clock_step = \"{step}\", clock_step_at = \"10 s\" }}]"
            ),
        ])
    };
    let (none, forward, back) = (stepped("0 s"), stepped("2 s"), stepped("-2 s"));
    for outcome in [&forward, &back] {
        let (rate, expected) = (outcome.flows[0].rate_mbps, none.flows[0].rate_mbps);
        assert!((rate - expected).abs() < 0.01 * expected, "{rate} {expected}");
        assert_eq!(outcome.flows[0].timeouts, 0);
    }
}

#[test]
fn batches_on_the_way_back_compress_acknowledgements() {
    let smooth = run(&["flow.0.controller={ name = \"fixed\", cwnd = \"60 kB\" }"]);
    let bursty =
        run(&["flow.0.controller={ name = \"fixed\", cwnd = \"60 kB\" }", "return_link.batch=30 ms"]);
    assert!(bursty.links[0].delays.max_ms > smooth.links[0].delays.max_ms + 10.0);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_does() {
    for (wrong, says) in [
        ("link.queue=fq_codel", "did you mean `fq-codel`?"),
        ("link.queue={ kind = \"codel\", limit = 5 }", "unknown key `limit` in queue = { kind = \"codel\""),
        ("link.queue={ kind = \"droptail\", target = \"5 ms\" }", "`target` is an option of"),
        ("link.queue={ kind = \"codel\", target = 5 }", "lacks its unit"),
        ("link.queue={ kind = \"red\", min = 20.0 }", "not above `min`"),
        ("link.queue={ kind = \"red\", adapt_low = 0.7 }", "`adapt_high` is 0.6, below `adapt_low`"),
        ("link.queue={ kind = \"pie\", decay = 1.5 }", "allowed: a number from 0 to 1"),
        ("link.queue={ kind = \"pie\", alpha = -1.0 }", "allowed: a number from 0 to 1000"),
        ("link.queue={ kind = \"codel\", memory = 1.5 }", "allowed: a whole number"),
        ("link.queue={ kind = \"fq-codel\", drop_batch = 0 }", "allowed: a whole number from 1"),
        ("link.queue=5", "`queue` is"),
        ("link.peak=1 Gbit/s", "has no token bucket"),
        ("link.policer={ burst = \"10 kB\" }", "`rate` is missing"),
        ("change=[{ at = \"60 s\", loss = 0.1 }]", "when the run is over"),
        ("change=[{ at = \"6 s\" }]", "nothing changes"),
        ("change=[{ at = \"6 s\", loss = 0.1, link = \"up\" }]", "unknown link `up`"),
    ] {
        let problems = scenario(&[wrong]).expect_err(wrong);
        assert!(problems.contains(says), "{wrong}:\n{problems}");
    }
}
