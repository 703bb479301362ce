//! The battery tells controllers that yield from those that do not, and takes those from outside the registry.

use cede_cc::registry::{Entry, find};
use cede_lab::check::{Battery, Findings, Subject, cases};
use cede_lab::scenario::{ProtocolKind, Scenario};

fn check(entry: &Entry, over: ProtocolKind, only: &[&str]) -> Vec<Findings> {
    let names: Vec<String> = only.iter().map(ToString::to_string).collect();
    let battery = Battery::new(Subject::new(entry)).over(over).only(&names).expect("the names are known");
    battery.run(&|_| true).expect("it runs")
}

fn passed(findings: &[Findings]) -> Vec<(&str, bool)> {
    findings.iter().map(|findings| (findings.case, findings.passed)).collect()
}

#[test]
fn cases_have_names_of_their_own_and_tell_a_story() {
    let names: Vec<&str> = cases().map(|case| case.name).collect();
    assert!(names.len() >= 45, "{}", names.len());
    for (index, case) in cases().enumerate() {
        assert!(!names[..index].contains(&case.name), "{}", case.name);
        assert_eq!(case.name.split('/').next(), Some(case.family.word()), "{}", case.name);
        assert!(
            case.story.ends_with('.') && case.story.len() > 40 && !case.world.is_empty(),
            "{}",
            case.name
        );
    }
}

#[test]
fn reno_passes_what_asks_for_throughput_and_fails_what_asks_for_yielding() {
    let reno = find("reno").expect("it is there");
    let only = ["loss/single", "path/faster", "yields/reno", "buffers/bloated"];
    for over in [ProtocolKind::Utp, ProtocolKind::Tcp] {
        let findings = check(reno, over, &only);
        let expected = [
            ("yields/reno", false),
            ("loss/single", true),
            ("path/faster", true),
            ("buffers/bloated", false),
        ];
        assert_eq!(passed(&findings), expected);
        let decisive = findings[3].decisive().expect("a figure decides");
        // A full buffer of five seconds.
        assert!(decisive.measured > 1_000.0 && !decisive.holds, "{}", decisive.figure());
    }
}

#[test]
fn an_entry_from_elsewhere_is_measured_as_one_of_ours() {
    let known = find("ledbat").expect("it is there");
    let stranger = Entry { name: "stranger", ..*known };
    let only = ["application/limited", "loss/no-crawl"];
    let (ours, theirs) = (check(known, ProtocolKind::Utp, &only), check(&stranger, ProtocolKind::Utp, &only));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.findings, theirs.findings);
    }
}

#[test]
fn an_entry_from_elsewhere_may_go_by_a_name_of_ours() {
    let (reno, ledbat) = (find("reno").expect("it is there"), find("ledbat").expect("it is there"));
    let only = ["buffers/bloated"];
    let theirs = check(reno, ProtocolKind::Utp, &only);
    // By its name alone; and by all that is said of it.
    for like_ledbat in [Entry { name: "ledbat", ..*reno }, Entry { build: reno.build, ..*ledbat }] {
        assert_eq!(check(&like_ledbat, ProtocolKind::Utp, &only)[0].findings, theirs[0].findings);
    }
    let set = Battery::new(Subject::new(&Entry { name: "ledbat", ..*reno })).set("increase=2");
    let set = set.and_then(|battery| battery.only(&only.map(String::from)));
    let found = set.expect("a parameter of its own").run(&|_| true).expect("it runs");
    assert_eq!(found[0].failure, None);
}

#[test]
fn other_links_are_drawn_by_a_seed_and_cede_passes_on_them() {
    let battery = |seed: u64| {
        let only = ["yields/cubic", "path/longer", "loss/1-percent"].map(String::from);
        let battery = Battery::new(Subject::new(find("cede").expect("it is there")))
            .only(&only)
            .expect("the names are known");
        battery.vary(seed).run(&|_| true).expect("it runs")
    };
    let (first, again, other) = (battery(1), battery(1), battery(2));
    assert_eq!(first, again);
    assert!(first.iter().zip(&other).all(|(first, other)| first.scenarios != other.scenarios));
    assert!(first.iter().chain(&other).all(|findings| findings.passed), "{first:?} {other:?}");
}

#[test]
fn the_same_battery_gives_the_same_figures_on_any_number_of_threads() {
    let ledbat = Subject::new(find("ledbat").expect("it is there"));
    let battery = Battery::new(ledbat).only(&["application".to_string()]).expect("a family");
    let (one, two) = (battery.clone().jobs(1).run(&|_| true), battery.jobs(2).run(&|_| true));
    assert_eq!(one, two);
    assert_eq!(one.expect("it runs").len(), 2);
}

#[test]
fn parameters_and_names_are_checked() {
    let battery = || Battery::new(Subject::new(find("ledbat").expect("it is there")));
    assert!(battery().set("target=25 ms").is_ok());
    assert!(battery().set("target = \"25 ms\"").is_ok(), "as in a scenario");
    assert!(battery().set("signal=\"rtt\"").is_ok());
    for wrong in ["target=\"25 ms", "target=\"", "target=\"\"25 ms\"\"", "gain=\"2\""] {
        assert!(battery().set(wrong).is_err(), "{wrong}");
    }
    assert!(battery().set("target=25").is_err_and(|text| text.contains("a time from")));
    assert!(battery().set("aim=25 ms").is_err_and(|text| text.contains("allowed: target")));
    assert!(battery().set("target").is_err_and(|text| text.contains("PARAMETER=VALUE")));
    assert!(
        battery().only(&["yield".to_string()]).is_err_and(|text| text.contains("did you mean `yields`?"))
    );
}

#[test]
fn a_battery_that_is_stopped_says_so() {
    let battery = Battery::new(Subject::new(find("ledbat").expect("it is there")));
    assert_eq!(battery.run(&|_| false), Err(cede_lab::run::RunError::Interrupted));
}

#[test]
fn every_case_has_scenarios_that_can_be_read_and_names_for_them() {
    for (over, vary) in [(ProtocolKind::Utp, None), (ProtocolKind::Tcp, None), (ProtocolKind::Utp, Some(7))] {
        let battery = Battery::new(Subject::new(find("proteus-p").expect("it is there"))).over(over);
        let battery = vary.map_or(battery.clone(), |seed| battery.vary(seed));
        let scenarios = battery.scenarios().expect("they are run for a moment");
        assert_eq!(scenarios.len(), cases().count());
        for (case, staged) in &scenarios {
            let names: Vec<&str> = staged.iter().map(|staged| staged.name.as_str()).collect();
            assert!(names.contains(&"own"), "{}: {names:?}", case.name);
            for (index, staged) in staged.iter().enumerate() {
                assert!(!names[..index].contains(&staged.name.as_str()), "{}: {names:?}", case.name);
                let scenario =
                    Scenario::parse(case.name, &staged.text).unwrap_or_else(|_| panic!("{}", staged.text));
                let is_own = scenario.flows.iter().any(|flow| flow.name.starts_with("own"));
                assert_eq!(is_own, staged.name.starts_with("own"), "{}: {}", case.name, staged.name);
            }
        }
        assert!(scenarios.iter().filter(|(_, staged)| staged.len() > 1).count() >= 8);
    }
}

#[test]
fn what_is_shown_of_a_case_is_what_it_runs() {
    let only =
        ["loss/1-percent", "yields/web", "buffers/bloated-cubic", "sharing/four-equals"].map(String::from);
    for vary in [None, Some(3)] {
        let battery = Battery::new(Subject::new(find("ledbat++").expect("it is there")))
            .only(&only)
            .expect("they are there");
        let battery = vary.map_or(battery.clone(), |seed| battery.vary(seed));
        let (shown, run) = (battery.scenarios().expect("it runs"), battery.run(&|_| true).expect("it runs"));
        for ((case, shown), run) in shown.iter().zip(&run) {
            assert_eq!((case.name, shown), (run.case, &run.scenarios));
        }
        assert_eq!(shown.len(), run.len());
    }
}

#[test]
fn parameters_that_hold_only_together_are_set_together() {
    let vegas = || Battery::new(Subject::new(find("vegas").expect("it is there")));
    assert!(vegas().set_all(["alpha=5", "beta=8"]).is_ok());
    assert!(vegas().set("alpha=5").is_err_and(|text| text.contains("up to \"beta\", which is")));
}
