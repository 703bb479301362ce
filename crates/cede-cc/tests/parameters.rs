//! Each parameter of each controller does something: at one end of its range at least, a run is another than with its default.

mod support;

use cede_cc::{Params, Path, registry};
use cede_units::{Instant, Rate};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use support::{Flow, MSS, World, build, ms, s};

const PATH: Path = Path { mss_bytes: MSS, initial_cwnd_bytes: 3 * MSS, max_cwnd_bytes: 1 << 24 };

/// Parameters and their values, as people write them.
type Words = &'static [(&'static str, &'static str)];

/// What a parameter needs beside it to mean anything: the controller (all where empty), the parameter, and that.
const BESIDE: &[(&str, &str, Words)] = &[
    ("", "filter_weight", &[("filter", "ewma")]),
    ("", "filter_length", &[("filter", "min")]),
    ("", "slow_start_exit", &[("slow_start", "on")]),
    ("", "clamp", &[("gain", "5")]),
    ("ledbat++", "hold_base", &[("base_history", "1"), ("slowdowns", "off")]),
    ("", "hold_base", &[("base_history", "1")]),
    ("ledbat++", "correct_drift", &[("signal", "owd")]),
    // The two gains are the same.
    ("", "deviation_min", &[("trend_gain_high", "50")]),
    ("", "reset_share", &[("deviation_gain", "0.5")]),
    ("fixed", "burst", &[("rate", "8 Mbit/s")]),
    ("nice", "gamma", &[("begin", "at_once"), ("threshold", "1")]),
    ("nice", "slow_start_every_other", &[("begin", "at_once")]),
    ("nice", "window", &[("begin", "at_once"), ("threshold", "1")]),
    ("cubic", "hystart_low_window", &[("rules", "linux")]),
    ("cubic", "hystart_train_gap", &[("rules", "linux")]),
];

/// What shows in no run here, and the test that shows it.
const ELSEWHERE: &[(&str, &str)] = &[
    // Acknowledgements here answer one packet each: `reno.rs`, `hystart.rs`, `nice.rs`.
    ("reno", "slow_start_limit"),
    ("cubic", "hystart_limit"),
    ("nice", "pairs"),
    // No flow here is idle: `libtorrent.rs`.
    ("ledbat-libtorrent", "min_timeout"),
    // Minutes of the smallest count are longer than these runs: `instruments/delay_range.rs`.
    ("lp", "history"),
    // No scheduler here divides the link: `cede/mod.rs`.
    ("cede", "fair_share"),
    // Both ends stand for the largest that the path allows: `fixed.rs`.
    ("fixed", "cwnd"),
];

/// A path: Mbit/s, RTT and buffer in ms, jitter in ms, loss, and so many seconds.
struct Place {
    rate: u64,
    times_ms: [u64; 3],
    loss: f64,
    seconds: u64,
}

/// The last but one for what takes minutes, the last for what takes large windows.
const PLACES: [Place; 5] = [
    Place { rate: 10, times_ms: [40, 60, 0], loss: 0.0, seconds: 14 },
    Place { rate: 10, times_ms: [90, 25, 15], loss: 0.003, seconds: 14 },
    Place { rate: 40, times_ms: [10, 400, 1], loss: 0.0, seconds: 14 },
    Place { rate: 2, times_ms: [40, 300, 5], loss: 0.0, seconds: 200 },
    Place { rate: 100, times_ms: [90, 60, 0], loss: 3e-4, seconds: 20 },
];

/// A run as a number: where the flow's window and pacing stood when, and what it had delivered. Beside a flow of Reno that comes and
/// goes, and another of its own kind, on a path of which one way becomes longer.
fn run(name: &str, params: &Params, place: &Place) -> u64 {
    let own = || Flow::new(registry::build(name, params, &PATH).unwrap());
    let at = |part: u64| s(place.seconds * part / 14);
    let reno = || Flow::new(build("reno", &[])).starting_at(at(6)).stopping_at(at(9));
    let [rtt, buffer, jitter] = place.times_ms.map(ms);
    let flows = vec![own().with_skew(1e-4), reno(), own().starting_at(at(3)).stopping_at(at(5))];
    let mut world = World::new(Rate::from_mbit(place.rate), rtt, buffer, flows);
    (world.jitter, world.loss) = (jitter, place.loss);
    let mut hasher = DefaultHasher::new();
    for tick in 1..20 * place.seconds {
        world.run_until(Instant::from_millis(50 * tick));
        if tick == 16 * place.seconds {
            world.forward += ms(30);
        }
        let snapshot = world.flows[0].controller.snapshot();
        (snapshot.cwnd_bytes.to_bits(), snapshot.pacing_rate, world.flows[0].delivered).hash(&mut hasher);
    }
    hasher.finish()
}

fn beside(controller: &str, param: &str) -> Words {
    let concerns = |row: &&(&str, &str, _)| (row.0.is_empty() || row.0 == controller) && row.1 == param;
    BESIDE.iter().find(concerns).map_or(&[], |row| row.2)
}

/// The parameters of a controller that change nothing.
fn idle(entry: &registry::Entry) -> Vec<String> {
    let mut plain = BTreeMap::new();
    let mut idle: BTreeMap<String, bool> =
        entry.params.iter().map(|doc| (doc.name.to_string(), true)).collect();
    for params in entry.at_the_ends(&PATH) {
        let name = params.iter().next().expect("it has one at least").0.to_string();
        let (mut base, mut changed) = (Params::new(), params.clone());
        for (other, value) in beside(entry.name, &name) {
            if entry.params.iter().any(|doc| doc.name == *other) {
                base.parse_and_set(entry.params, other, value).unwrap();
                changed.parse_and_set(entry.params, other, value).unwrap();
            }
        }
        // What made room for the value is no merit of it.
        for (other, value) in params.iter().skip(1) {
            base.set(other, value.clone());
        }
        let differs = |place: usize| {
            let key = (format!("{base:?}"), place);
            let usual = *plain.entry(key).or_insert_with(|| run(entry.name, &base, &PLACES[place]));
            usual != run(entry.name, &changed, &PLACES[place])
        };
        if idle[&name] && (0..PLACES.len()).any(differs) {
            idle.insert(name, false);
        }
    }
    idle.into_iter().filter(|(_, idle)| *idle).map(|(name, _)| name).collect()
}

#[test]
fn each_parameter_of_each_controller_changes_something() {
    let found: Vec<(&str, String)> = registry::all()
        .iter()
        .flat_map(|entry| idle(entry).into_iter().map(|name| (entry.name, name)))
        .collect();
    let expected: Vec<(&str, String)> =
        ELSEWHERE.iter().map(|&(controller, param)| (controller, param.to_string())).collect();
    assert!(found.iter().all(|one| expected.contains(one)), "without effect: {found:?}");
    assert!(expected.iter().all(|one| found.contains(one)), "with effect after all: {expected:?} {found:?}");
}
