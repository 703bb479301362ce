//! Figure 5: N flows each of TCP-LP, NICE and LEDBAT on one link, beside 3 N flows of Reno.

use super::claim::{Claim, Curve, Judgement, ends_lower, known, means, stays_within};
use super::panels::{Drawn, Plot, caption};
use super::plan::{FigureNumber, Point};
use super::results::{Metric, Results};
use super::setting::{Background, Kind, Ledbat, Part};
use super::simulators::Compared;
use cede_plot::{Axis, Figure};

const COUNTS: &[u32] = &[1, 2, 3, 4, 5];
const QUICK_COUNTS: &[u32] = &[1, 3, 5];

/// The mixes, by what runs as TCP-LP.
const MIXES: &[(&str, Background)] = &[
    ("mix", Background::LP_32_BITS),
    ("mix-known", Background::LP_KNOWN_RATE),
    ("mix-equations", Background::LP_EQUATIONS),
];

fn mix(lp: Background, count: u32) -> Vec<Part> {
    let part = |name, kind| Part::one(name, kind).times(count);
    vec![
        part("lp", Kind::Background(lp)),
        part("nice", Kind::Background(Background::NICE_LINUX26)),
        part("ledbat", Kind::Ledbat(Ledbat::PAPER)),
    ]
}

pub(super) fn points(quick: bool) -> Vec<Point> {
    let counts = if quick { QUICK_COUNTS } else { COUNTS };
    let reno = |count: u32| vec![Part::one("tcp", Kind::Reno).times(3 * count)];
    let mut points: Vec<Point> =
        counts.iter().map(|&count| Point::new("all-reno", f64::from(count), reno(count))).collect();
    for (curve, lp) in MIXES {
        points.extend(counts.iter().map(|&count| Point::new(curve, f64::from(count), mix(*lp, count))));
    }
    points
}

const PANELS: [(Metric, &str, &str, (f64, f64)); 6] = [
    (Metric::Efficiency, "(a) efficiency", "eta", (0.9, 1.005)),
    (Metric::QueueIndex, "(a) queue index", "B", (0.0, 1.0)),
    (Metric::LossPercent, "(b) loss probability", "P_l (%)", (0.0, 2.0)),
    (Metric::FairnessLong, "(b) fairness", "F", (0.0, 1.03)),
    (Metric::FirstThirdPercent, "(c) TCP-LP's part", "all of its flows (%)", (0.0, 105.0)),
    (Metric::FairnessShort, "fairness, windows of 1 s", "F", (0.0, 1.03)),
];

pub(super) fn draw(results: &Results) -> Figure {
    let curves = [
        Drawn { curve: "mix", name: "mix, TCP-LP of 32 bits", slot: 3 },
        Drawn { curve: "mix-known", name: "mix, TCP-LP with the clock's rate known", slot: 7 },
        Drawn { curve: "mix-equations", name: "mix, TCP-LP by its equations", slot: 5 },
        Drawn { curve: "all-reno", name: "3 N Reno flows", slot: 0 },
    ];
    let panels = PANELS.map(|(metric, title, label, (low, high))| {
        let ticks = COUNTS.iter().map(|count| (f64::from(*count), count.to_string()));
        let x = Axis::new("flows of each protocol").range(0.5, 5.5).ticks(ticks);
        let y = Axis::new(label).range(low, high);
        let compared = &["mix", "mix-known"];
        Plot { title: title.into(), x, y, metric, curves: &curves, compared }.panel(results)
    });
    Figure::new("Fig. 5: N flows each of TCP-LP, NICE and LEDBAT")
        .subtitle("beside as many flows of Reno alone")
        .caption(caption(results))
        .columns(3)
        .panel_height(170.0)
        .shared_legend(true)
        .panels(panels)
}

fn claim(place: &'static str, says: &'static str, criterion: &'static str, judgement: Judgement) -> Claim {
    Claim::new(FigureNumber::Fig5, place, says, criterion, judgement)
}

pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let mut claims = use_claims(results);
    claims.extend(part_claims(results));
    claims
}

fn use_claims(results: &Results) -> Vec<Claim> {
    let reno = |metric| results.along("all-reno", metric);
    let mix = |metric| results.along("mix", metric);
    vec![
        claim(
            "V-B, Fig. 5a",
            "The mix uses the link fully.",
            "eta of 0.98 or more at every N, TCP-LP of 32 bits",
            stays_within(&mix(Metric::Efficiency), 0.98, 1.0, 4),
        )
        .of(27)
        .note("in ns-2 0.973 to 0.994"),
        claim(
            "V-B, Fig. 5a",
            "With more Reno flows (3 to 15) their efficiency falls.",
            "the mean of eta with 15 flows is below that with 3 by 0.005 or more",
            ends_lower(&reno(Metric::Efficiency), 0.005, 4),
        )
        .of(27)
        .note("N is a third of the flows; nor does it fall in ns-2 (0.9989 to 0.9995)"),
        claim(
            "V-B, Fig. 5a",
            "Reno flows fill about 2/3 of the buffer, whatever their number.",
            "B within 0.667 +- 0.05 for 3 to 15 flows",
            stays_within(&reno(Metric::QueueIndex), 0.617, 0.717, 3),
        )
        .of(27)
        .note("in ns-2 0.71 to 0.79"),
        claim(
            "V-B, Fig. 5a",
            "The mix's queue reaches Reno's from two flows of each protocol on.",
            "B of the mix is below Reno's by 0.05 at most from N = 2 on",
            reaches(&mix(Metric::QueueIndex), &reno(Metric::QueueIndex)),
        )
        .of(27)
        .note("in ns-2 0.24 to 0.40 against 0.71 to 0.79"),
        claim(
            "V-B, Fig. 5b",
            "The mix loses less than Reno.",
            "P_l of the mix is below that of the 3 N Reno flows at every N",
            below(&mix(Metric::LossPercent), &reno(Metric::LossPercent), 4),
        )
        .of(28),
        claim(
            "V-B, Fig. 5b",
            "The mix is less fair than Reno, but fairer than one Reno flow beside LEDBAT (Fig. 4c).",
            "F of the mix is below Reno's at every N, and above 0.5 at N = 1, which is what LEDBAT leaves in Fig. 4c",
            between(results),
        )
        .of(28),
    ]
}

fn reaches(mix: &Curve, reno: &Curve) -> Judgement {
    let gaps: Vec<f64> =
        mix.iter().zip(reno).filter(|(m, _)| m.0 >= 2.0).map(|(m, r)| r.1.mean - m.1.mean).collect();
    let largest = gaps.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    Judgement::new(format!("lower by {least:.3} to {largest:.3}"), known(&gaps, largest <= 0.05))
}

fn below(mix: &Curve, reno: &Curve, decimals: usize) -> Judgement {
    let (Some(last_mix), Some(last_reno)) = (mix.last(), reno.last()) else {
        return Judgement::open("not run");
    };
    let holds = mix.iter().zip(reno).all(|(m, r)| m.1.mean < r.1.mean);
    let text =
        format!("{} against {} at the largest N", last_mix.1.show(decimals), last_reno.1.show(decimals));
    Judgement::new(text, known(&[last_mix.1.mean, last_reno.1.mean], holds))
}

fn between(results: &Results) -> Judgement {
    let (mix, reno) =
        (results.along("mix", Metric::FairnessLong), results.along("all-reno", Metric::FairnessLong));
    let judged = below(&mix, &reno, 3);
    let one = results.at("mix", 1.0, Metric::FairnessLong).mean;
    let holds = judged.verdict == cede_plot::Verdict::Holds && one > 0.5;
    Judgement::new(format!("{}; {one:.3} at N = 1", judged.measured), known(&[one], holds))
}

fn part_claims(results: &Results) -> Vec<Claim> {
    vec![
        claim(
            "V-B, Fig. 5c",
            "With one flow each TCP-LP and LEDBAT have about as much; with more TCP-LP dominates.",
            "TCP-LP's part is 45 % or less at N = 1 and 50 % or more from N = 3 on, with 32 bits",
            dominates(&results.along("mix", Metric::FirstThirdPercent)),
        )
        .of(29)
        .note("in ns-2 31, 60 and 54 % at N = 1, 3 and 5"),
        claim(
            "V-B, Fig. 5c",
            "The same, with the rate of the peer's clock known.",
            "the same",
            dominates(&results.along("mix-known", Metric::FirstThirdPercent)),
        )
        .of(29)
        .note("in ns-2 7, 12 and 15 %: LEDBAT dominates"),
        claim(
            "V-B",
            "LEDBAT often forces a single TCP-LP flow into low priority.",
            "at N = 1 TCP-LP has less than a third in a third of the runs or more, with 32 bits",
            forced(results),
        )
        .of(30)
        .note("in ns-2 its part is 7 to 53 % over four runs"),
    ]
}

fn dominates(curve: &Curve) -> Judgement {
    let shown: Vec<String> =
        curve.iter().map(|(n, spread)| format!("{} at {n:.0}", spread.show(0))).collect();
    let holds = curve.iter().all(|&(n, spread)| match n {
        n if n < 1.5 => spread.mean <= 45.0,
        n if n > 2.5 => spread.mean >= 50.0,
        _ => true,
    });
    Judgement::new(format!("{} %", shown.join(", ")), known(&means(curve), holds))
}

fn forced(results: &Results) -> Judgement {
    let parts: Vec<f64> =
        results.runs("mix", 1.0).iter().map(|run| Metric::FirstThirdPercent.of(run)).collect();
    let low = parts.iter().filter(|&&part| part < 100.0 / 3.0).count();
    let text = format!("in {low} of {} runs", parts.len());
    Judgement::new(text, known(&parts, 3 * low >= parts.len()))
}

pub(super) const COMPARED: &[Compared] = &[
    Compared { curve: "all-reno", axis: "3 x {} Reno", metrics: THREE },
    Compared { curve: "mix", axis: "mix of {}, 32 bits", metrics: FIVE },
    Compared { curve: "mix-known", axis: "mix of {}, rate known", metrics: FIVE },
];

const THREE: &[(Metric, &str)] =
    &[(Metric::Efficiency, "eta"), (Metric::QueueIndex, "B"), (Metric::LossPercent, "P_l (%)")];
const FIVE: &[(Metric, &str)] = &[
    (Metric::FirstThirdPercent, "TCP-LP %"),
    (Metric::FairnessLong, "F"),
    (Metric::Efficiency, "eta"),
    (Metric::QueueIndex, "B"),
    (Metric::LossPercent, "P_l (%)"),
];

#[cfg(test)]
mod tests {
    use super::super::results::Spread;
    use super::*;
    use cede_plot::Verdict;

    fn curve(values: &[f64]) -> Vec<(f64, Spread)> {
        let spread = |mean: f64| Spread { mean, min: mean, max: mean, runs: 1 };
        values.iter().enumerate().map(|(k, &mean)| (k as f64 + 1.0, spread(mean))).collect()
    }

    #[test]
    fn domination_begins_low_and_ends_high() {
        assert_eq!(dominates(&curve(&[30.0, 45.0, 55.0, 60.0])).verdict, Verdict::Holds);
        assert_eq!(dominates(&curve(&[60.0, 45.0, 55.0, 60.0])).verdict, Verdict::Fails);
        assert_eq!(dominates(&curve(&[7.0, 10.0, 12.0])).verdict, Verdict::Fails);
        assert_eq!(dominates(&[]).verdict, Verdict::Open);
    }

    #[test]
    fn queues_and_losses_are_held_against_renos() {
        let reno = curve(&[0.70, 0.72, 0.75]);
        assert_eq!(reaches(&curve(&[0.2, 0.70, 0.74]), &reno).verdict, Verdict::Holds);
        assert_eq!(reaches(&curve(&[0.2, 0.30, 0.40]), &reno).verdict, Verdict::Fails);
        assert_eq!(below(&curve(&[0.1, 0.2, 0.3]), &reno, 2).verdict, Verdict::Holds);
        assert_eq!(below(&curve(&[0.1, 0.9, 0.3]), &reno, 2).verdict, Verdict::Fails);
    }
}
