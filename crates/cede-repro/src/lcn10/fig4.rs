//! Figure 4: one Reno flow beside N flows of LEDBAT, NICE, TCP-LP or Reno. What it says of NICE and TCP-LP is in
//! `fig4_background.rs`.

use super::claim::{
    Claim, Curve, Judgement, ends_lower, falls, is_flat, known, loses_less, near_least, stays_within,
};
use super::fig4_background;
use super::panels::{Drawn, Plot, caption, one_to_ten};
use super::plan::{FigureNumber, Point};
use super::results::{Metric, Results, Spread};
use super::setting::{Kind, Ledbat, Part};
use super::simulators::Compared;
use cede_plot::{Axis, Dash, Figure, Series};

const QUICK_COUNTS: &[u32] = &[1, 2, 5, 10];

fn beside_reno(kind: Kind, count: u32) -> Vec<Part> {
    vec![Part::one("tcp", Kind::Reno), Part::one("lbe", kind).times(count)]
}

pub(super) fn points(quick: bool) -> Vec<Point> {
    let counts: Vec<u32> = if quick { QUICK_COUNTS.to_vec() } else { (1..=10).collect() };
    let point = |curve, kind, &count: &u32| Point::new(curve, f64::from(count), beside_reno(kind, count));
    let mut points: Vec<Point> =
        counts.iter().map(|count| point("n-ledbat", Kind::Ledbat(Ledbat::PAPER), count)).collect();
    points.extend(counts.iter().map(|count| point("n-reno", Kind::Reno, count)));
    for (curve, kind) in fig4_background::CURVES {
        points.extend(counts.iter().map(|count| point(curve, Kind::Background(*kind), count)));
    }
    points
}

const PANELS: [(Metric, &str, &str, (f64, f64)); 6] = [
    (Metric::Efficiency, "(a) efficiency", "eta", (0.9, 1.005)),
    (Metric::TcpPercent, "(b) TCP %", "share of the first Reno flow", (0.0, 105.0)),
    (Metric::FairnessLong, "(c) fairness among all", "F", (0.0, 1.03)),
    (Metric::FairnessOthers, "(d) fairness among the N", "F", (0.0, 1.03)),
    (Metric::QueueIndex, "(e) queue index", "B", (0.5, 0.9)),
    (Metric::LossPercent, "(f) loss probability", "P_l", (0.0, 1.4)),
];

pub(super) fn draw(results: &Results) -> Figure {
    let curves = [
        Drawn { curve: "n-ledbat", name: "N LEDBAT flows", slot: 1 },
        Drawn { curve: "n-reno", name: "N Reno flows", slot: 0 },
        Drawn { curve: "n-nice", name: "N NICE, floor 2", slot: 2 },
        Drawn { curve: "n-nice-fractional", name: "N NICE, floor 1/48", slot: 5 },
        Drawn { curve: "n-lp", name: "N TCP-LP, 32 bits", slot: 3 },
        Drawn { curve: "n-lp-known", name: "N TCP-LP, rate known", slot: 7 },
        Drawn { curve: "n-lp-equations", name: "N TCP-LP, equations", slot: 4 },
    ];
    let panels = PANELS.map(|(metric, title, label, (low, high))| {
        let y = Axis::new(label).range(low, high);
        let percent = matches!(metric, Metric::LossPercent | Metric::TcpPercent);
        let (x, y) = (one_to_ten("N"), if percent { y.unit("%") } else { y });
        let compared = &["n-ledbat", "n-reno", "n-nice", "n-lp", "n-lp-known"];
        let panel = Plot { title: title.into(), x, y, metric, curves: &curves, compared }.panel(results);
        if metric == Metric::FairnessLong { panel.series(least_fairness()) } else { panel }
    });
    Figure::new("Fig. 4: one Reno flow beside N others")
        .subtitle("LEDBAT with a target of 25 ms")
        .caption(caption(results))
        .columns(3)
        .panel_height(170.0)
        .shared_legend(true)
        .panels(panels)
}

/// F where one of N + 1 flows has everything.
fn least_fairness() -> Series {
    let points = (10..=100).map(|tenth| f64::from(tenth) / 10.0).map(|n| (n, 1.0 / (n + 1.0)));
    Series::line("1/(N+1)", points).slot(6).dash(Dash::Dotted)
}

pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let ledbat = |metric| results.along("n-ledbat", metric);
    let reno = |metric| results.along("n-reno", metric);
    let mut claims =
        efficiency_claims(&ledbat(Metric::Efficiency), &reno(Metric::Efficiency), &reno(Metric::Goodput));
    claims.extend(share_claims(results));
    claims.extend(queue_claims(&ledbat(Metric::QueueIndex), &reno(Metric::QueueIndex)));
    claims.push(claim(
        "V-A, Fig. 4f",
        "LEDBAT loses clearly less than Reno.",
        "P_l beside N LEDBAT flows is at most half of that beside N Reno flows from N = 5 on, and lower at every N",
        loses_less(&ledbat(Metric::LossPercent), &reno(Metric::LossPercent)),
    )
    .of(26));
    claims.extend(fig4_background::claims(results));
    claims
}

fn claim(place: &'static str, says: &'static str, criterion: &'static str, judgement: Judgement) -> Claim {
    Claim::new(FigureNumber::Fig4, place, says, criterion, judgement)
}

fn efficiency_claims(ledbat: &Curve, reno: &Curve, goodput: &Curve) -> Vec<Claim> {
    vec![
        claim(
            "V-A, Fig. 4a",
            "LEDBAT uses what Reno leaves over, fully.",
            "eta of 0.99 or more at every N",
            stays_within(ledbat, 0.99, 1.0, 4),
        )
        .of(21),
        claim(
            "V-A, Fig. 4a",
            "The efficiency of Reno flows falls with N.",
            "the mean of eta at the largest N is below that at N = 1 by 0.005 or more",
            ends_lower(reno, 0.005, 4),
        )
        .of(21)
        .note("nor does it in ns-2 (0.9986 to 0.9995) and ns-3; packets are dropped before the bottleneck"),
        claim(
            "V-A, Fig. 4a",
            "The same, with payload that was received in order in place of octets that left the bottleneck.",
            "the mean at the largest N is below that at N = 1 by 0.005 or more",
            ends_lower(goodput, 0.005, 4),
        )
        .of(21),
    ]
}

fn share_claims(results: &Results) -> Vec<Claim> {
    let at_ten = |metric| results.at("n-ledbat", 10.0, metric);
    let fairness = results.along("n-ledbat", Metric::FairnessLong);
    vec![
        claim(
            "V-A, Fig. 4b",
            "Beside ten LEDBAT flows Reno keeps about 90 %, each LEDBAT flow about 1 %.",
            "TCP % within 90 +- 2 and the others' mean within 1 +- 0.2 at N = 10",
            ninety(at_ten(Metric::TcpPercent), at_ten(Metric::OtherPercent)),
        )
        .of(22),
        claim(
            "V-A, Fig. 4c",
            "F among all flows is near its least value, 1/(N + 1).",
            "F is at most 1.25 / (N + 1) at every N",
            near_least(&fairness),
        )
        .of(23),
        claim(
            "V-A, Fig. 4d",
            "Among themselves the LEDBAT flows are fair.",
            "F among the N of 0.95 or more at every N",
            stays_within(&results.along("n-ledbat", Metric::FairnessOthers), 0.95, 1.0, 3),
        )
        .of(24)
        .note("they start together; a late-comer is another matter"),
    ]
}

fn ninety(tcp: Spread, other: Spread) -> Judgement {
    let text = format!("TCP {} %, each LEDBAT flow {} %", tcp.show(2), other.show(2));
    let holds = (tcp.mean - 90.0).abs() <= 2.0 && (other.mean - 1.0).abs() <= 0.2;
    Judgement::new(text, known(&[tcp.mean, other.mean], holds))
}

fn queue_claims(ledbat: &Curve, reno: &Curve) -> Vec<Claim> {
    vec![
        claim(
            "V-A, Fig. 4e",
            "The queue does not depend on the number of LEDBAT flows.",
            "means of B lie within 0.05",
            is_flat(ledbat, 0.05, 3),
        )
        .of(25),
        claim(
            "V-A, Fig. 4e",
            "The queue falls with the number of Reno flows.",
            "means of B do not rise by more than 0.005 from one N to the next",
            falls(reno, 0.005, 3),
        )
        .of(25)
        .note("it rises in ns-2 (0.695 to 0.767) and ns-3 as well"),
    ]
}

pub(super) const COMPARED: &[Compared] = &[
    Compared { curve: "n-ledbat", axis: "N = {} LEDBAT", metrics: SIX },
    Compared { curve: "n-reno", axis: "N = {} Reno", metrics: SIX },
    Compared { curve: "n-nice", axis: "N = {} NICE", metrics: SIX },
    Compared { curve: "n-lp", axis: "N = {} TCP-LP, 32 bits", metrics: SIX },
    Compared { curve: "n-lp-known", axis: "N = {} TCP-LP, rate known", metrics: SIX },
];

const SIX: &[(Metric, &str)] = &[
    (Metric::TcpPercent, "TCP %"),
    (Metric::Efficiency, "eta"),
    (Metric::FairnessLong, "F"),
    (Metric::FairnessOthers, "F of the N"),
    (Metric::QueueIndex, "B"),
    (Metric::LossPercent, "P_l (%)"),
];
#[cfg(test)]
mod tests {
    use super::*;
    use cede_plot::Verdict;

    fn spread(mean: f64) -> Spread {
        Spread { mean, min: mean, max: mean, runs: 1 }
    }

    #[test]
    fn ninety_and_one_percent() {
        assert_eq!(ninety(spread(90.7), spread(0.93)).verdict, Verdict::Holds);
        assert_eq!(ninety(spread(80.8), spread(1.9)).verdict, Verdict::Fails);
        assert_eq!(ninety(spread(f64::NAN), spread(1.0)).verdict, Verdict::Open);
    }
}
