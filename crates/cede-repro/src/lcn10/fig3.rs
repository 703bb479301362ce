//! Figure 3: two LEDBAT flows with different targets (top) or gains (bottom).

use super::claim::{Claim, Curve, Judgement, known, means, overall, stays_within, within};
use super::panels::{Drawn, Plot, caption, one_to_ten};
use super::plan::{FigureNumber, Point};
use super::results::{Metric, Results};
use super::setting::{Choices, Kind, Ledbat, Part, target_ms};
use super::simulators::Compared;
use cede_plot::{Axis, Figure, Panel};

/// T2, the smaller target, in percent of the buffer.
const SMALLER_TARGET: f64 = 20.0;
const TARGET_RATIOS: &[f64] = &[1.0, 1.1, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
const QUICK_TARGET_RATIOS: &[f64] = &[1.0, 1.1, 1.5, 2.0, 4.0, 5.0, 10.0];
const QUICK_GAIN_RATIOS: &[f64] = &[1.0, 2.0, 5.0, 10.0];

fn two(first: Ledbat, second: Ledbat) -> Vec<Part> {
    vec![Part::one("a", Kind::Ledbat(first)), Part::one("b", Kind::Ledbat(second))]
}

pub(super) fn points(quick: bool) -> Vec<Point> {
    let gains: Vec<f64> = if quick { QUICK_GAIN_RATIOS.to_vec() } else { (1..=10).map(f64::from).collect() };
    let targets = if quick { QUICK_TARGET_RATIOS } else { TARGET_RATIOS };
    let target = |ratio: f64| Ledbat::with_target_ms(target_ms(SMALLER_TARGET * ratio));
    let free = Choices { clamp: false, ..Choices::PRIMARY };
    let gain = |curve, ratio: f64| Point::new(curve, ratio, two(Ledbat::with_gain(ratio), Ledbat::PAPER));
    let mut points: Vec<Point> = targets
        .iter()
        .map(|&ratio| Point::new("target-ratio", ratio, two(target(ratio), target(1.0))))
        .collect();
    points.extend(gains.iter().map(|&ratio| gain("gain-ratio", ratio)));
    points.extend(gains.iter().map(|&ratio| gain("gain-ratio-free", ratio).with(free)));
    points
}

const PANELS: [(Metric, &str, (f64, f64)); 4] = [
    (Metric::FairnessLong, "F", (0.45, 1.03)),
    (Metric::Efficiency, "eta", (0.9, 1.005)),
    (Metric::QueueIndex, "B", (0.0, 1.0)),
    (Metric::LossPercent, "P_l", (-0.0005, 0.0125)),
];

pub(super) fn draw(results: &Results) -> Figure {
    let target = [Drawn { curve: "target-ratio", name: "targets differ", slot: 0 }];
    let gain = [
        Drawn { curve: "gain-ratio", name: "gains differ, clamped", slot: 1 },
        Drawn { curve: "gain-ratio-free", name: "gains differ, no clamp", slot: 2 },
    ];
    let top = PANELS.map(|spec| panel(results, &spec, "ratio of targets T1/T2", &target, &["target-ratio"]));
    let compared: &[&'static str] = &["gain-ratio", "gain-ratio-free"];
    let bottom = PANELS.map(|spec| panel(results, &spec, "ratio of gains G1/G2", &gain, compared));
    Figure::new("Fig. 3: two LEDBAT flows with different targets (top) and gains (bottom)")
        .subtitle("T2 = 20 % of the buffer; clamp: gain times offset is at most one packet per round trip. ns-2 clamps, ns-3 does not")
        .caption(caption(results))
        .columns(4)
        .width(1200.0)
        .panel_height(160.0)
        .shared_legend(true)
        .panels(top)
        .panels(bottom)
}

fn panel(
    results: &Results,
    &(metric, name, (low, high)): &(Metric, &str, (f64, f64)),
    axis: &str,
    curves: &[Drawn],
    compared: &[&'static str],
) -> Panel {
    let title = match metric {
        Metric::FairnessLong => "fairness",
        Metric::Efficiency => "efficiency",
        Metric::QueueIndex => "queue index",
        _ => "loss probability",
    };
    let y = Axis::new(name).range(low, high);
    let y = if metric == Metric::LossPercent { y.unit("%") } else { y };
    let x = one_to_ten(axis);
    Plot { title: title.into(), x, y, metric, curves, compared }.panel(results)
}

pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let target = |metric| results.along("target-ratio", metric);
    let gain = |curve: &str| results.along(curve, Metric::FairnessLong);
    let claim =
        |place, says, criterion, judgement| Claim::new(FigureNumber::Fig3, place, says, criterion, judgement);
    vec![
        claim(
            "IV-B, Fig. 3 top",
            "Fairness drops to 1/2 as soon as one target is larger.",
            "F of 0.95 or more at T1/T2 = 1, 0.75 or less at 1.1, 0.56 or less from 2 on",
            drops_at_once(&target(Metric::FairnessLong)),
        )
        .of(19),
        claim(
            "IV-B, Fig. 3 top",
            "Losses appear once T1 + T2 exceeds the buffer, at the ratio 5.",
            "no run with losses up to T1/T2 = 4, losses at every ratio from 5 on",
            losses_appear(&target(Metric::LossPercent)),
        )
        .of(20)
        .note("T1 + T2 reaches the buffer at the ratio 4; at 5 T1 alone does"),
        claim(
            "IV-B, Fig. 3 top",
            "Losses do not mend the unfairness.",
            "F of 0.56 or less at every ratio from 5 on",
            stays_within(&within(&target(Metric::FairnessLong), 5.0, 10.0), 0.0, 0.56, 3),
        )
        .of(20),
        claim(
            "IV-B, Fig. 3",
            "The link stays fully used.",
            "eta of 0.99 or more at every ratio of targets",
            stays_within(&target(Metric::Efficiency), 0.99, 1.0, 4),
        ),
        claim(
            "IV-B, Fig. 3 bottom",
            "Different gains change fairness very little, up to a ratio of 10.",
            "F of 0.95 or more at every ratio, with gain times offset clamped",
            stays_within(&gain("gain-ratio"), 0.95, 1.0, 3),
        )
        .of(18)
        .note("the code behind the paper's figures clamps; its equation 5 does not"),
        claim(
            "IV-B, Fig. 3 bottom",
            "The same, by equation 5 as printed.",
            "F of 0.95 or more at every ratio, without the clamp",
            stays_within(&gain("gain-ratio-free"), 0.95, 1.0, 3),
        )
        .of(18)
        .note("ns-3, which does not clamp, has 0.73 at the ratio 10"),
    ]
}

fn drops_at_once(fairness: &Curve) -> Judgement {
    let at = |x: f64| overall(&within(fairness, x, x)).mean;
    let (equal, little, much) = (at(1.0), at(1.1), overall(&within(fairness, 2.0, 10.0)));
    let largest = means(&within(fairness, 2.0, 10.0)).into_iter().fold(f64::NEG_INFINITY, f64::max);
    let text = format!("{equal:.3} at 1, {little:.3} at 1.1, at most {largest:.3} from 2 on");
    let holds = equal >= 0.95 && little <= 0.75 && largest <= 0.56;
    Judgement::new(text, known(&[equal, little, much.mean], holds))
}

fn losses_appear(loss: &Curve) -> Judgement {
    let (below, above) = (overall(&within(loss, 1.0, 4.0)), within(loss, 5.0, 10.0));
    let first = loss.iter().find(|(_, spread)| spread.max > 0.0);
    let text = match (first, above.last()) {
        (Some((ratio, spread)), Some((last, at_last))) => {
            format!("first at {ratio:.0} ({:.4} %), {:.4} % at {last:.0}", spread.mean, at_last.mean)
        }
        _ => "none".to_string(),
    };
    let holds = below.max == 0.0 && above.iter().all(|(_, spread)| spread.mean > 0.0);
    Judgement::new(text, known(&[below.max, overall(&above).mean], holds))
}

pub(super) const COMPARED: &[Compared] = &[
    Compared { curve: "target-ratio", axis: "T1/T2 = {}", metrics: FOUR },
    Compared { curve: "gain-ratio", axis: "G1/G2 = {}, clamped", metrics: FOUR },
    Compared { curve: "gain-ratio-free", axis: "G1/G2 = {}, no clamp", metrics: FOUR },
];

const FOUR: &[(Metric, &str)] = &[
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

    fn curve(points: &[(f64, f64)]) -> Vec<(f64, Spread)> {
        points.iter().map(|&(x, mean)| (x, Spread { mean, min: mean, max: mean, runs: 1 })).collect()
    }

    #[test]
    fn a_slow_decline_is_not_a_drop() {
        let drop = curve(&[(1.0, 1.0), (1.1, 0.65), (2.0, 0.53), (10.0, 0.52)]);
        let slope = curve(&[(1.0, 1.0), (1.1, 0.95), (2.0, 0.8), (10.0, 0.52)]);
        assert_eq!(drops_at_once(&drop).verdict, Verdict::Holds);
        assert_eq!(drops_at_once(&slope).verdict, Verdict::Fails);
        assert_eq!(drops_at_once(&[]).verdict, Verdict::Open);
    }

    #[test]
    fn losses_must_begin_at_the_ratio_5() {
        let loss = |at_4: f64, at_5: f64| curve(&[(1.0, 0.0), (4.0, at_4), (5.0, at_5), (10.0, 0.008)]);
        assert_eq!(losses_appear(&loss(0.0, 0.001)).verdict, Verdict::Holds);
        assert_eq!(losses_appear(&loss(0.001, 0.001)).verdict, Verdict::Fails);
        assert_eq!(losses_appear(&loss(0.0, 0.0)).verdict, Verdict::Fails);
    }
}
