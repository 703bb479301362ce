//! What the paper has no figure for and ns-2 and ns-3 have points of: flows alone and in pairs, Vegas under different round-trip times,
//! and a primary that comes and goes beside LEDBAT on the path of the evaluation of LEDBAT++.
//!
//! On that path one thing decides: whether LEDBAT loses a packet of those that overflow the buffer at the end of the primary's slow
//! start. LEDBAT is a few packets of a burst that alternates between the two flows, so the order of arrivals, which starts shift,
//! says which flow's packets find the buffer full. [`phase_table`] tells the runs where it does from those where it does not.

use super::measure::Measured;
use super::plan::Point;
use super::results::{Metric, Results, Spread};
use super::setting::{Background, Bed, Choices, Kind, Ledbat, Part};
use super::simulators::Compared;
use cede_plot::{Cell, Table};

const CUBIC: Kind = Kind::Rival("\"cubic\"");
const BBR: Kind = Kind::Rival("\"bbr\"");
const LEDBAT_100: Kind = Kind::Ledbat(Ledbat::with_target_ms(100.0));
const RATIOS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];
const NEWRENO: Choices = Choices { sack: false, ..Choices::PRIMARY };
const EVALUATION: Choices = Choices { bed: Bed::Evaluation, ..Choices::PRIMARY };

/// One flow and two of a kind.
struct Pair {
    alone: Option<&'static str>,
    two: &'static str,
    kind: Kind,
    choices: Choices,
}

const fn pair(alone: Option<&'static str>, two: &'static str, kind: Kind) -> Pair {
    Pair { alone, two, kind, choices: Choices::PRIMARY }
}

/// Those without a curve of their own are alone in the other figures.
const PAIRS: [Pair; 11] = [
    pair(None, "two-reno", Kind::Reno),
    Pair { choices: NEWRENO, ..pair(Some("newreno"), "two-newreno", Kind::Reno) },
    pair(Some("cubic"), "two-cubic", CUBIC),
    pair(Some("bbr"), "two-bbr", BBR),
    pair(Some("vegas"), "two-vegas", Kind::Background(Background::VEGAS_NS3)),
    pair(Some("vegas-linux"), "two-vegas-linux", Kind::Background(Background::VEGAS_LINUX)),
    pair(None, "two-ledbat", Kind::Ledbat(Ledbat::PAPER)),
    pair(None, "two-ledbat-100", LEDBAT_100),
    pair(None, "two-nice", Kind::Background(Background::NICE_LINUX26)),
    pair(None, "two-lp", Kind::Background(Background::LP_32_BITS)),
    pair(None, "two-lp-known", Kind::Background(Background::LP_KNOWN_RATE)),
];

/// A primary beside LEDBAT on the evaluation's path, and what is altered.
struct Primary {
    curve: &'static str,
    title: &'static str,
    primary: Kind,
    ledbat: Kind,
    choices: Choices,
}

const fn primary(curve: &'static str, title: &'static str, primary: Kind, ledbat: Kind) -> Primary {
    Primary { curve, title, primary, ledbat, choices: EVALUATION }
}

const PRIMARIES: [Primary; 9] = [
    primary("g-cubic-100", "CUBIC", CUBIC, LEDBAT_100),
    Primary {
        choices: Choices { start_jitter_ms: 1000, ..EVALUATION },
        ..primary("g-cubic-100-starts", "CUBIC, starts within 1 s", CUBIC, LEDBAT_100)
    },
    Primary {
        choices: Choices { linux_acks: true, ..EVALUATION },
        ..primary("g-cubic-100-acks", "CUBIC, acknowledgements as Linux's", CUBIC, LEDBAT_100)
    },
    Primary {
        choices: Choices { noise_us: 500, ..EVALUATION },
        ..primary("g-cubic-100-noise", "CUBIC, packets held up by up to 0.5 ms", CUBIC, LEDBAT_100)
    },
    Primary {
        choices: Choices { filter: true, ..EVALUATION },
        ..primary("g-cubic-100-filter", "CUBIC, LEDBAT's filter a minimum of four", CUBIC, LEDBAT_100)
    },
    primary("g-reno-100", "Reno", Kind::Reno, LEDBAT_100),
    primary("g-bbr-100", "BBR", BBR, LEDBAT_100),
    primary("g-cubic-25", "CUBIC, target of 25 ms", CUBIC, Kind::Ledbat(Ledbat::PAPER)),
    primary("g-reno-25", "Reno, target of 25 ms", Kind::Reno, Kind::Ledbat(Ledbat::PAPER)),
];

pub(super) fn points() -> Vec<Point> {
    let pairs = PAIRS.iter().flat_map(|pair| {
        let point = |curve, count: u32| {
            let part = Part::one("one", pair.kind).times(count);
            Point::new(curve, f64::from(count), vec![part]).with(pair.choices)
        };
        pair.alone.map(|alone| point(alone, 1)).into_iter().chain([point(pair.two, 2)])
    });
    let rules = [("rtt-vegas", Background::VEGAS_NS3), ("rtt-vegas-linux", Background::VEGAS_LINUX)];
    let ratios = rules.into_iter().flat_map(|(curve, rules)| {
        RATIOS.into_iter().map(move |ratio| {
            let vegas = Kind::Background(rules);
            let parts = vec![Part::one("long", vegas).rtt_ratio(ratio), Part::one("short", vegas)];
            Point::new(curve, ratio, parts)
        })
    });
    let primaries = PRIMARIES.iter().map(|run| {
        let parts = vec![Part::one("primary", run.primary), Part::one("lbe", run.ledbat)];
        Point::new(run.curve, 1.0, parts).with(run.choices)
    });
    pairs.chain(ratios).chain(primaries).collect()
}

/// The share of the primary where LEDBAT lost a packet, and where it lost none.
pub(super) fn phase_table(results: &Results) -> Table {
    let headings =
        ["primary beside LEDBAT", "its share %", "where LEDBAT loses nothing", "where it loses a packet"];
    let mut table = Table::new(headings);
    for run in &PRIMARIES {
        let runs = results.runs(run.curve, 1.0);
        let (lucky, unlucky): (Vec<&Measured>, Vec<&Measured>) =
            runs.iter().partition(|run| run.loss_others == 0.0);
        let all: Vec<&Measured> = runs.iter().collect();
        let [all, lucky, unlucky] = [all, lucky, unlucky].map(|runs| shares(&runs, all_of(results)));
        table.push([Cell::from(run.title), all.into(), lucky.into(), unlucky.into()]);
    }
    table
}

fn all_of(results: &Results) -> usize {
    results.request.repetitions() as usize
}

/// "mean (smallest to largest)", and of how many repetitions where these are not all.
fn shares(runs: &[&Measured], of: usize) -> String {
    let values: Vec<f64> = runs.iter().map(|run| run.tcp_percent()).collect();
    match values.len() {
        0 => "–".to_string(),
        many if many == of => Spread::of(&values).show(1),
        many => format!("{}, {many} of {of}", Spread::of(&values).show(1)),
    }
}

pub(super) const COMPARED: &[Compared] = &[
    Compared { curve: "newreno", axis: "NewReno alone", metrics: ALONE },
    Compared { curve: "cubic", axis: "CUBIC alone", metrics: ALONE },
    Compared { curve: "bbr", axis: "BBR alone", metrics: ALONE },
    Compared { curve: "vegas-linux", axis: "Vegas alone, Linux's rules", metrics: ALONE },
    Compared { curve: "vegas", axis: "Vegas alone, ns-3's rules", metrics: ALONE },
    Compared { curve: "two-reno", axis: "two Reno", metrics: TWO },
    Compared { curve: "two-newreno", axis: "two NewReno", metrics: TWO },
    Compared { curve: "two-cubic", axis: "two CUBIC", metrics: TWO },
    Compared { curve: "two-bbr", axis: "two BBR", metrics: TWO },
    Compared { curve: "two-vegas-linux", axis: "two Vegas, Linux's rules", metrics: TWO },
    Compared { curve: "two-vegas", axis: "two Vegas, ns-3's rules", metrics: TWO },
    Compared { curve: "two-ledbat", axis: "two LEDBAT", metrics: TWO },
    Compared { curve: "two-ledbat-100", axis: "two LEDBAT, 100 ms", metrics: TWO },
    Compared { curve: "two-nice", axis: "two NICE", metrics: TWO },
    Compared { curve: "two-lp", axis: "two TCP-LP, 32 bits", metrics: TWO },
    Compared { curve: "two-lp-known", axis: "two TCP-LP, rate known", metrics: TWO },
    Compared { curve: "rtt-vegas-linux", axis: "two Vegas, Linux's rules, RTT ratio {}", metrics: RATIO },
    Compared { curve: "rtt-vegas", axis: "two Vegas, ns-3's rules, RTT ratio {}", metrics: RATIO },
    Compared { curve: "g-cubic-100", axis: "CUBIC beside LEDBAT, 100 ms", metrics: PRIMARY },
    Compared { curve: "g-reno-100", axis: "Reno beside LEDBAT, 100 ms", metrics: PRIMARY },
    Compared { curve: "g-bbr-100", axis: "BBR beside LEDBAT, 100 ms", metrics: PRIMARY },
    Compared { curve: "g-cubic-25", axis: "CUBIC beside LEDBAT, 25 ms", metrics: PRIMARY },
    Compared { curve: "g-reno-25", axis: "Reno beside LEDBAT, 25 ms", metrics: PRIMARY },
];

const ALONE: &[(Metric, &str)] =
    &[(Metric::Efficiency, "eta"), (Metric::QueueIndex, "B"), (Metric::LossPercent, "P_l (%)")];
const TWO: &[(Metric, &str)] = &[
    (Metric::FairnessLong, "F"),
    (Metric::Efficiency, "eta"),
    (Metric::QueueIndex, "B"),
    (Metric::LossPercent, "P_l (%)"),
];
const RATIO: &[(Metric, &str)] = &[
    (Metric::FairnessLong, "F"),
    (Metric::FirstRate, "longer flow (kbit/s)"),
    (Metric::Efficiency, "eta"),
    (Metric::QueueIndex, "B"),
];
const PRIMARY: &[(Metric, &str)] = &[
    (Metric::TcpPercent, "share of the primary (%)"),
    (Metric::Efficiency, "eta"),
    (Metric::QueueIndex, "B"),
    (Metric::LossPercent, "P_l (%)"),
];

#[cfg(test)]
mod tests {
    use super::super::plan::{Plan, Request};
    use super::super::simulators::{self, Simulator};
    use super::*;

    #[test]
    fn every_run_is_compared_or_alters_one_that_is() {
        for point in points() {
            let compared = COMPARED.iter().find(|compared| point.curve.starts_with(compared.curve));
            let compared = compared.unwrap_or_else(|| panic!("{}", point.curve));
            let theirs = [Simulator::Ns2, Simulator::Ns3];
            let has =
                |simulator| simulators::at(simulator, compared.curve, point.x, Metric::Efficiency).is_some();
            assert!(theirs.into_iter().any(has), "{} at {}", point.curve, point.x);
        }
    }

    #[test]
    fn the_primary_comes_and_goes() {
        let all = points();
        let run = all.iter().find(|point| point.curve == "g-cubic-100").unwrap().example();
        let scenario = run.scenario();
        assert_eq!(scenario.flows[0].start, cede_units::Duration::from_secs(30));
        assert_eq!(scenario.flows[0].stop, Some(cede_units::Duration::from_secs(80)));
        assert_eq!((scenario.flows[1].start, scenario.flows[1].stop), (cede_units::Duration::ZERO, None));
    }

    #[test]
    fn runs_are_parted_by_what_ledbat_lost() {
        let request = Request { figures: Vec::new(), sensitivity: true, quick: true };
        let Plan { points, request, .. } = Plan::of(request, points());
        let measured = |primary_mbps: f64, loss_others| Measured {
            efficiency: 1.0,
            goodput_efficiency: 1.0,
            rates_mbps: vec![primary_mbps, 10.0 - primary_mbps],
            fairness_long: 1.0,
            fairness_short: 1.0,
            fairness_others: 1.0,
            queue_index: 0.5,
            queue_index_over_time: 0.5,
            loss: 0.0,
            loss_others,
            timeouts: 0,
            intact: true,
            series: None,
        };
        let runs = vec![measured(2.0, 0.0), measured(3.0, 1e-5), measured(2.0, 0.0)];
        let with_runs = points.into_iter().map(|point| (point, runs.clone())).collect();
        let text = phase_table(&Results::from_points(request, with_runs)).to_markdown();
        let text = text.split_whitespace().collect::<Vec<&str>>().join(" ");
        assert!(text.contains("| CUBIC | 23.3 (20.0 to 30.0) | 20.0, 2 of 3 | 30.0, 1 of 3 |"), "{text}");
    }
}
