//! Figure 6: two flows of one kind whose round-trip times differ on the return path.

use super::claim::{Claim, Judgement, known, overall, stays_within};
use super::panels::{Drawn, Plot, caption, one_to_ten};
use super::plan::{FigureNumber, Point};
use super::results::{Metric, Results, Spread};
use super::setting::{Background, Kind, Ledbat, Part};
use super::simulators::Compared;
use cede_plot::{Axis, Figure};

/// F of two flows at or below this is called unfair: one has more than four fifths.
const UNFAIR: f64 = 0.7;
const QUICK_RATIOS: &[f64] = &[1.0, 2.0, 5.0, 10.0];

const BACKGROUND: &[(&str, Background)] = &[
    ("rtt-nice", Background::NICE_LINUX26),
    ("rtt-lp", Background::LP_32_BITS),
    ("rtt-lp-known", Background::LP_KNOWN_RATE),
];

pub(super) fn points(quick: bool) -> Vec<Point> {
    let ratios: Vec<f64> = if quick { QUICK_RATIOS.to_vec() } else { (1..=10).map(f64::from).collect() };
    let point = |curve, kind, ratio: f64| {
        Point::new(curve, ratio, vec![Part::one("long", kind).rtt_ratio(ratio), Part::one("short", kind)])
    };
    let ledbat = ratios.iter().map(|&ratio| point("rtt-ledbat", Kind::Ledbat(Ledbat::PAPER), ratio));
    let mut points: Vec<Point> =
        ledbat.chain(ratios.iter().map(|&ratio| point("rtt-reno", Kind::Reno, ratio))).collect();
    for (curve, kind) in BACKGROUND {
        points.extend(ratios.iter().map(|&ratio| point(curve, Kind::Background(*kind), ratio)));
    }
    points
}

const PANELS: [(Metric, &str, &str, (f64, f64)); 4] = [
    (Metric::Efficiency, "efficiency", "eta", (0.0, 1.005)),
    (Metric::FairnessLong, "fairness", "F", (0.45, 1.03)),
    (Metric::TcpPercent, "longer flow", "share (%)", (0.0, 100.0)),
    (Metric::QueueIndex, "queue index", "B", (0.0, 1.0)),
];

const COMPARED_CURVES: &[&str] = &["rtt-ledbat", "rtt-reno", "rtt-nice", "rtt-lp", "rtt-lp-known"];

pub(super) fn draw(results: &Results) -> Figure {
    let curves = [
        Drawn { curve: "rtt-ledbat", name: "two LEDBAT flows", slot: 1 },
        Drawn { curve: "rtt-reno", name: "two Reno flows", slot: 0 },
        Drawn { curve: "rtt-nice", name: "two NICE flows, floor 2", slot: 2 },
        Drawn { curve: "rtt-lp", name: "two TCP-LP flows, 32 bits", slot: 3 },
        Drawn { curve: "rtt-lp-known", name: "two TCP-LP flows, rate known", slot: 7 },
    ];
    let panels = PANELS.map(|(metric, title, label, (low, high))| {
        let (x, y) = (one_to_ten("ratio of round-trip times"), Axis::new(label).range(low, high));
        Plot { title: title.into(), x, y, metric, curves: &curves, compared: COMPARED_CURVES }.panel(results)
    });
    Figure::new("Fig. 6: two flows with different round-trip times")
        .subtitle("50 ms against 50 to 500 ms; the difference lies on the way of the acknowledgements")
        .caption(caption(results))
        .columns(2)
        .panel_height(170.0)
        .shared_legend(true)
        .panels(panels)
}

pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let claim =
        |place, says, criterion, judgement| Claim::new(FigureNumber::Fig6, place, says, criterion, judgement);
    let at_ten = |curve: &str, metric| results.at(curve, 10.0, metric);
    let eta = |curve: &str| results.along(curve, Metric::Efficiency);
    vec![
        claim(
            "V-C, Fig. 6",
            "Only NICE is fair when round-trip times differ: Reno and LEDBAT are not.",
            "F of 0.7 or less at the ratio 10, for both",
            both_unfair(at_ten("rtt-reno", Metric::FairnessLong), at_ten("rtt-ledbat", Metric::FairnessLong)),
        )
        .of(31),
        claim(
            "V-C, Fig. 6",
            "NICE is fair when round-trip times differ.",
            "F of 0.8 or more at every ratio",
            stays_within(&results.along("rtt-nice", Metric::FairnessLong), 0.8, 1.0, 3),
        )
        .of(31),
        claim(
            "V-C, Fig. 6",
            "NICE pays for its fairness with efficiency.",
            "the least mean of eta is below 0.95",
            least_below(&eta("rtt-nice"), 0.95),
        )
        .of(31),
        claim(
            "V-C, Fig. 6",
            "TCP-LP is unfair.",
            "F of 0.7 or less at the ratio 10",
            at_most(at_ten("rtt-lp", Metric::FairnessLong), UNFAIR, 3),
        )
        .of(32),
        claim(
            "V-C, Fig. 6",
            "TCP-LP is inefficient.",
            "the least mean of eta is below 0.95",
            least_below(&eta("rtt-lp"), 0.95),
        )
        .of(32),
        claim(
            "V-C, Fig. 6",
            "Reno is unfair.",
            "F of 0.7 or less at the ratio 10",
            at_most(at_ten("rtt-reno", Metric::FairnessLong), UNFAIR, 3),
        )
        .of(32)
        .note("between the ratios 2 and 5 phase effects decide; repetitions and simulators differ widely"),
        claim(
            "V-C, Fig. 6",
            "Reno is inefficient.",
            "the least mean of eta is below 0.95",
            least_below(&eta("rtt-reno"), 0.95),
        )
        .of(32)
        .note("ns-2 and ns-3 have 0.998 and 0.994 or more"),
        claim(
            "V-C, Fig. 6",
            "LEDBAT keeps the link fully used.",
            "eta of 0.98 or more at every ratio",
            stays_within(&eta("rtt-ledbat"), 0.98, 1.0, 4),
        )
        .of(33),
        claim(
            "V-C, Fig. 6",
            "LEDBAT's longer flow starves.",
            "the longer flow has 5 % or less at the ratio 10",
            at_most(at_ten("rtt-ledbat", Metric::TcpPercent), 5.0, 2),
        )
        .of(33),
    ]
}

fn both_unfair(reno: Spread, ledbat: Spread) -> Judgement {
    let text = format!("Reno {}, LEDBAT {}", reno.show(3), ledbat.show(3));
    Judgement::new(text, known(&[reno.mean, ledbat.mean], reno.mean <= UNFAIR && ledbat.mean <= UNFAIR))
}

fn at_most(value: Spread, bound: f64, decimals: usize) -> Judgement {
    Judgement::new(value.show(decimals), known(&[value.mean], value.mean <= bound))
}

fn least_below(curve: &super::claim::Curve, bound: f64) -> Judgement {
    let least = curve.iter().map(|(_, spread)| spread.mean).fold(f64::INFINITY, f64::min);
    Judgement::new(format!("at least {least:.4}"), known(&[overall(curve).mean], least < bound))
}

pub(super) const COMPARED: &[Compared] = &[
    Compared { curve: "rtt-ledbat", axis: "RTT ratio {}, LEDBAT", metrics: FOUR },
    Compared { curve: "rtt-reno", axis: "RTT ratio {}, Reno", metrics: FOUR },
    Compared { curve: "rtt-nice", axis: "RTT ratio {}, NICE", metrics: FOUR },
    Compared { curve: "rtt-lp", axis: "RTT ratio {}, TCP-LP, 32 bits", metrics: FOUR },
    Compared { curve: "rtt-lp-known", axis: "RTT ratio {}, TCP-LP, rate known", metrics: FOUR },
];

const FOUR: &[(Metric, &str)] = &[
    (Metric::FairnessLong, "F"),
    (Metric::FirstRate, "longer flow (kbit/s)"),
    (Metric::Efficiency, "eta"),
    (Metric::QueueIndex, "B"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use cede_plot::Verdict;

    fn spread(mean: f64) -> Spread {
        Spread { mean, min: mean, max: mean, runs: 1 }
    }

    #[test]
    fn bounds_are_bounds() {
        assert_eq!(both_unfair(spread(0.53), spread(0.51)).verdict, Verdict::Holds);
        assert_eq!(both_unfair(spread(0.53), spread(0.8)).verdict, Verdict::Fails);
        assert_eq!(at_most(spread(1.2), 5.0, 2).verdict, Verdict::Holds);
        assert_eq!(at_most(spread(7.0), 5.0, 2).verdict, Verdict::Fails);
        assert_eq!(least_below(&[(1.0, spread(0.99)), (2.0, spread(0.9))], 0.95).verdict, Verdict::Holds);
        assert_eq!(least_below(&[(1.0, spread(0.99))], 0.95).verdict, Verdict::Fails);
        assert_eq!(at_most(spread(f64::NAN), 5.0, 2).verdict, Verdict::Open);
    }
}
