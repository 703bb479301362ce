//! LEDBAT's standing queue through the whole stack: held at the target, fair or not to a late-comer, and neither starved nor
//! bloated by clocks that drift.

use cede_lab::outcome::Outcome;
use cede_lab::run::Run;
use cede_lab::scenario::Scenario;

fn run(text: &str) -> Outcome {
    let scenario = Scenario::parse("standing.toml", text).unwrap_or_else(|problems| panic!("{problems:?}"));
    Run::new(&scenario).go(&mut ()).expect("it runs").0
}

fn alone(target_ms: u32, duration: &str, warmup: &str, drift: &str) -> Outcome {
    run(&format!(
        "name = \"alone\"\nduration = \"{duration}\"\nwarmup = \"{warmup}\"\n\
         [link]\nrate = \"5 Mbit/s\"\ndelay = \"23 ms\"\nbuffer = \"1 s\"\n\
         [record]\ninterval = \"60 s\"\n\
         [[host]]\nname = \"ledbat-receiver\"\nclock_drift = \"{drift}\"\n\
         [[flow]]\nname = \"ledbat\"\ncontroller = {{ name = \"ledbat\", target = \"{target_ms} ms\" }}\n"
    ))
}

#[test]
fn alone_the_queue_stays_within_2_ms_of_its_target_at_98_per_cent() {
    for target_ms in [25, 100] {
        let outcome = alone(target_ms, "120 s", "20 s", "0 ppm");
        let link = &outcome.links[0];
        assert!((link.delays.mean_ms - f64::from(target_ms)).abs() < 2.0, "{target_ms}: {link:?}");
        assert!(link.efficiency >= 0.98, "{target_ms}: {link:?}");
    }
}

#[test]
fn half_an_hour_of_clock_drift_neither_starves_nor_bloats() {
    for (target_ms, drift) in [(25, "50 ppm"), (25, "-50 ppm"), (100, "50 ppm"), (100, "-50 ppm")] {
        let outcome = alone(target_ms, "30 min", "1 min", drift);
        let link = &outcome.links[0];
        assert!(link.efficiency >= 0.98, "{target_ms} {drift}: {link:?}");
        // Minute by minute: a slow climb or fall would hide in a mean over the whole.
        let minutes = &outcome.series.queue_mean_ms[0][1..];
        let far = minutes.iter().find(|&&mean| (mean - f64::from(target_ms)).abs() > 2.5);
        assert_eq!(far, None, "{target_ms} {drift}: {minutes:?}");
    }
}

/// The late flow's share of what both carry in the last 60 s.
fn late_share(controller: &str) -> f64 {
    let flow = |name: &str, start: u32| {
        format!("[[flow]]\nname = \"{name}\"\nstart = \"{start} s\"\ncontroller = {controller}\n")
    };
    let outcome = run(&format!(
        "name = \"late\"\nduration = \"120 s\"\nwarmup = \"60 s\"\n\
         [link]\nrate = \"10 Mbit/s\"\ndelay = \"23 ms\"\nbuffer = \"400 packets\"\n{}{}",
        flow("first", 0),
        flow("late", 10)
    ));
    outcome.flows[1].share
}

#[test]
fn a_late_comer_takes_the_link_from_ledbat_and_shares_it_under_fledbat() {
    let ledbat = late_share("{ name = \"ledbat\", target = \"25 ms\" }");
    let draft = late_share("{ name = \"ledbat-draft\", target = \"25 ms\" }");
    let fledbat = late_share("{ name = \"fledbat\", target = \"100 ms\" }");
    assert!(ledbat > 0.9, "{ledbat}");
    assert!(draft > 0.9, "{draft}");
    assert!((fledbat - 0.5).abs() < 0.1, "{fledbat}");
}
