//! Figure 2: one LEDBAT flow beside one Reno flow, over LEDBAT's target and its gain.

use super::claim::{
    Claim, Curve, Judgement, extreme, is_flat, is_shaky, known, means, overall, rises, stays_within, within,
};
use super::panels::{Drawn, Plot, caption, one_to_ten};
use super::plan::{FigureNumber, Point};
use super::results::{Metric, Results, Spread};
use super::setting::{BUFFER_PACKETS, Choices, Kind, Ledbat, PACKET_MS, Part, TARGET_MS, target_ms};
use super::simulators::Compared;
use cede_plot::{Axis, Figure, Panel};

/// Targets in percent of the buffer. Points of other simulators are among them, and the ends of the paper's regions.
const TARGETS: &[f64] = &[
    2.0, 5.0, 10.0, 15.0, 18.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0,
    97.0, 100.0, 103.0, 110.0, 120.0, 130.0, 140.0, 150.0,
];
const QUICK_TARGETS: &[f64] = &[2.0, 18.0, 20.0, 30.0, 50.0, 65.0, 70.0, 80.0, 90.0, 100.0, 120.0, 150.0];
const QUICK_GAINS: &[f64] = &[1.0, 4.0, 10.0];

/// The regions that the paper finds in Fig. 2b, in percent of the buffer.
const T1: (f64, f64) = (2.0, 18.0);
const T2: (f64, f64) = (18.0, 65.0);
const T3: (f64, f64) = (65.0, 100.0);
const T4: (f64, f64) = (100.0, 150.0);

fn beside_reno(ledbat: Ledbat) -> Vec<Part> {
    vec![Part::one("tcp", Kind::Reno), Part::one("lbe", Kind::Ledbat(ledbat))]
}

pub(super) fn points(quick: bool) -> Vec<Point> {
    let (targets, gains) = if quick { (QUICK_TARGETS, QUICK_GAINS.to_vec()) } else { (TARGETS, all_gains()) };
    let target = |curve, &percent: &f64| {
        Point::new(curve, percent, beside_reno(Ledbat::with_target_ms(target_ms(percent))))
    };
    let without_sack = Choices { sack: false, ..Choices::PRIMARY };
    let mut points: Vec<Point> = targets.iter().map(|percent| target("target", percent)).collect();
    points.extend(targets.iter().map(|percent| target("target-newreno", percent).with(without_sack)));
    points.extend(gains.iter().map(|&gain| Point::new("gain", gain, beside_reno(Ledbat::with_gain(gain)))));
    let two = vec![Part::one("tcp", Kind::Reno), Part::one("lbe", Kind::Reno)];
    points.push(Point::new("two-reno", 1.0, two));
    points
}

fn all_gains() -> Vec<f64> {
    (1..=10).map(f64::from).collect()
}

/// The six metrics of the paper's panels a to f, and the ends of their axes.
const PANELS: [(Metric, &str, (f64, f64)); 6] = [
    (Metric::Efficiency, "(a) efficiency", (0.9, 1.005)),
    (Metric::TcpPercent, "(b) TCP %", (0.0, 105.0)),
    (Metric::FairnessLong, "(c) fairness F, whole run", (0.45, 1.03)),
    (Metric::FairnessShort, "(d) fairness F, windows of 1 s", (0.45, 1.03)),
    (Metric::QueueIndex, "(e) queue index B", (0.6, 1.0)),
    (Metric::LossPercent, "(f) loss probability", (0.10, 0.30)),
];

pub(super) fn draw_targets(results: &Results) -> Figure {
    let curves = [
        Drawn { curve: "target", name: "Cede, Reno with SACK", slot: 0 },
        Drawn { curve: "target-newreno", name: "Cede, NewReno without SACK", slot: 1 },
    ];
    let panels = PANELS.map(|(metric, title, (low, high))| {
        let x = Axis::new("target T").unit("% of the buffer").range(0.0, 150.0);
        let plot = Plot {
            title: title.into(),
            x,
            y: y_axis(metric, low, high),
            metric,
            curves: &curves,
            compared: &["target"],
        };
        regions(plot.panel(results), metric)
    });
    sheet("Fig. 2, left: one LEDBAT flow beside one Reno flow, over LEDBAT's target", results)
        .subtitle("Shaded: the regions T1 (2-18 %) and T3 (65-100 %) of the paper; ns-2 has Reno with SACK, ns-3 NewReno")
        .panels(panels)
}

pub(super) fn draw_gains(results: &Results) -> Figure {
    let curves = [Drawn { curve: "gain", name: "Cede, Reno with SACK", slot: 0 }];
    let panels = PANELS.map(|(metric, title, (low, high))| {
        let x = one_to_ten("gain G");
        Plot {
            title: title.into(),
            x,
            y: y_axis(metric, low, high),
            metric,
            curves: &curves,
            compared: &["gain"],
        }
        .panel(results)
    });
    sheet("Fig. 2, right: one LEDBAT flow beside one Reno flow, over LEDBAT's gain", results)
        .subtitle("gamma = G / tau, tau = 25 ms; the same axes as over the target")
        .panels(panels)
}

fn sheet(title: &str, results: &Results) -> Figure {
    Figure::new(title).caption(caption(results)).columns(3).panel_height(170.0).shared_legend(true)
}

fn y_axis(metric: Metric, low: f64, high: f64) -> Axis {
    let axis = match metric {
        Metric::Efficiency => Axis::new("eta"),
        Metric::TcpPercent => Axis::new("TCP share").unit("%"),
        Metric::QueueIndex => Axis::new("B"),
        Metric::LossPercent => Axis::new("P_l").unit("%"),
        _ => Axis::new("F"),
    };
    axis.range(low, high)
}

fn regions(panel: Panel, metric: Metric) -> Panel {
    let named = metric == Metric::TcpPercent;
    let label = |name| if named { name } else { "" };
    let panel = panel.region(T1.0, T1.1, label("T1")).region(T3.0, T3.1, label("T3"));
    if named { panel.hline(50.0, "") } else { panel }
}

pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let along = |metric| results.along("target", metric);
    let share = along(Metric::TcpPercent);
    let mut claims = vec![target_in_buffer(), flat_gain(results)];
    claims.extend(share_claims(&share));
    claims.extend(fairness_claims(&share, &along(Metric::FairnessLong), &along(Metric::FairnessShort)));
    let two_reno = results.at("two-reno", 1.0, Metric::LossPercent);
    claims.extend(queue_claims(&along(Metric::QueueIndex)));
    claims.extend(loss_claims(&along(Metric::LossPercent), two_reno));
    let used = Claim::new(
        FigureNumber::Fig2,
        "IV-A, Fig. 2a",
        "The link is fully used whatever the target.",
        "eta of 0.99 or more at every T",
        stays_within(&along(Metric::Efficiency), 0.99, 1.0, 4),
    );
    claims.push(used.of(9));
    claims
}

fn target_in_buffer() -> Claim {
    let percent = TARGET_MS / (BUFFER_PACKETS * PACKET_MS) * 100.0;
    Claim::new(
        FigureNumber::Fig2,
        "IV-A",
        "The draft's target of 25 ms is T = 20 % of the buffer, 120 ms is 100 %.",
        "tau C / (S Bmax) for 25 ms lies within 1 of 20 %",
        Judgement::new(format!("{percent:.1} %"), Some((percent - 20.0).abs() <= 1.0)),
    )
    .of(7)
    .note("RFC 6817 allows up to 100 ms")
}

/// How far a metric's means may lie apart over gains, to be called flat.
const FLAT: [(Metric, &str, f64); 6] = [
    (Metric::Efficiency, "eta", 0.01),
    (Metric::TcpPercent, "TCP %", 1.0),
    (Metric::FairnessLong, "F", 0.02),
    (Metric::FairnessShort, "F short", 0.02),
    (Metric::QueueIndex, "B", 0.02),
    (Metric::LossPercent, "P_l %", 0.03),
];

fn flat_gain(results: &Results) -> Claim {
    let judged = FLAT.map(|(metric, name, tolerance)| {
        let judgement = is_flat(&results.along("gain", metric), tolerance, metric.decimals());
        (format!("{name} {}", judgement.measured), judgement.verdict)
    });
    let text: Vec<String> = judged.iter().map(|(text, _)| text.clone()).collect();
    let holds = judged.iter().all(|(_, verdict)| *verdict == cede_plot::Verdict::Holds);
    let open = judged.iter().any(|(_, verdict)| *verdict == cede_plot::Verdict::Open);
    Claim::new(
        FigureNumber::Fig2,
        "IV-A, Fig. 2",
        "Every metric is flat over the gain, G = 1 to 10.",
        "means lie within 0.01 (eta), 1 (TCP %), 0.02 (both F and B), 0.03 (P_l in %)",
        Judgement::new(text.join("; "), (!open).then_some(holds)),
    )
    .of(8)
}

fn share_claims(share: &Curve) -> Vec<Claim> {
    let claim =
        |place, says, criterion, judgement| Claim::new(FigureNumber::Fig2, place, says, criterion, judgement);
    let at_full = within(share, T3.1, T3.1);
    vec![
        claim(
            "IV-A, Fig. 2b, T1",
            "For T in 2-18 % the share of TCP is shaky.",
            "single runs in T1 differ by 5 points or more",
            is_shaky(&within(share, T1.0, T1.1), 5.0, 2),
        )
        .of(10)
        .note("neither ns-2 nor ns-3 shows it either (99.0 % throughout)"),
        claim(
            "IV-A, Fig. 2b, T2",
            "For T in 18-65 % LEDBAT yields completely.",
            "TCP % of 95 or more at every T in T2",
            stays_within(&within(share, T2.0, T2.1), 95.0, 100.0, 2),
        )
        .of(11),
        claim(
            "IV-A, Fig. 2b, T3",
            "For T in 65-100 % the share of TCP falls.",
            "means fall from each T in T3 to the next, by 40 points or more in all",
            share_falls(&within(share, T3.0, T3.1)),
        )
        .of(12),
        claim(
            "IV-A, Fig. 2b, T3",
            "At T = 100 % the share of TCP is about zero.",
            "TCP % of 5 or less at T = 100 %",
            Judgement::new(overall(&at_full).show(1), known(&means(&at_full), overall(&at_full).mean <= 5.0)),
        )
        .of(12)
        .note("neither ns-2 (41 %) nor ns-3 (36 %) shows it either"),
        claim(
            "IV-A, Fig. 2b, T4",
            "Beyond T = 100 % both have about half.",
            "TCP % within 50 +- 10 at every T beyond 100 %",
            stays_within(&within(share, T4.0 + 0.1, T4.1), 40.0, 60.0, 1),
        )
        .of(13)
        .note("at 103 % the sudden fall of T3 is not over yet"),
        claim(
            "IV-A, Fig. 2b, T4",
            "The same, from a tenth beyond on.",
            "TCP % within 50 +- 10 at every T of 110 % or more",
            stays_within(&within(share, 110.0, T4.1), 40.0, 60.0, 1),
        )
        .of(13),
        claim(
            "IV-A",
            "The region T3 is narrow: small changes of the target turn the outcome.",
            "within T3 the means fall by 40 points or more over 20 % of the buffer",
            steepest(&within(share, T3.0, T3.1), 20.0),
        )
        .of(17),
    ]
}

fn share_falls(curve: &Curve) -> Judgement {
    let means = means(curve);
    let (Some(first), Some(last)) = (means.first(), means.last()) else { return Judgement::open("not run") };
    let falling = means.windows(2).all(|pair| pair[1] < pair[0]);
    Judgement::new(format!("from {first:.1} to {last:.1} %"), known(&means, falling && first - last >= 40.0))
}

/// The largest fall between points at most `width` apart.
fn steepest(curve: &Curve, width: f64) -> Judgement {
    let pairs = curve.iter().flat_map(|&a| curve.iter().map(move |&b| (a, b)));
    let near = pairs.filter(|(a, b)| b.0 > a.0 && b.0 - a.0 <= width + 1e-9);
    let largest = near.max_by(|(a, b), (c, d)| (a.1.mean - b.1.mean).total_cmp(&(c.1.mean - d.1.mean)));
    let Some((a, b)) = largest else { return Judgement::open("not run") };
    let text = format!("{:.0} % at T = {:.0}, {:.0} % at T = {:.0}", a.1.mean, a.0, b.1.mean, b.0);
    Judgement::new(text, known(&[a.1.mean, b.1.mean], a.1.mean - b.1.mean >= 40.0))
}

fn fairness_claims(share: &Curve, long: &Curve, short: &Curve) -> Vec<Claim> {
    let even = extreme(share, |a, b| (a - 50.0).abs() < (b - 50.0).abs());
    let at = |curve: &Curve, x: f64| overall(&within(curve, x, x)).mean;
    let (even_x, even_f) = even.map_or((f64::NAN, f64::NAN), |(x, _)| (x, at(long, x)));
    let uneven = overall(&within(long, T1.0, 50.0));
    let text = format!(
        "F {even_f:.3} at T = {even_x:.0} %, where the split is most even; up to {:.3} for T up to 50 %",
        uneven.max
    );
    let over = short.iter().zip(long).map(|(s, l)| s.1.mean - l.1.mean).fold(f64::NEG_INFINITY, f64::max);
    vec![
        Claim::new(
            FigureNumber::Fig2,
            "IV-A, Fig. 2c",
            "F is near 1 for an even split and near 1/2 where LEDBAT yields.",
            "F of 0.98 or more where TCP % is nearest to 50; 0.55 or less for T up to 50 %",
            Judgement::new(text, known(&[even_f, uneven.max], even_f >= 0.98 && uneven.max <= 0.55)),
        )
        .of(14),
        Claim::new(
            FigureNumber::Fig2,
            "IV-A, Fig. 2d",
            "F over short windows has the same shape and lies below F of the whole run.",
            "at no T is the short-term mean above the long-term one by more than 0.01",
            Judgement::new(format!("largest excess {over:.4}"), known(&[over], over <= 0.01)),
        )
        .of(14),
    ]
}

fn queue_claims(queue: &Curve) -> Vec<Claim> {
    let claim =
        |place, says, criterion, judgement| Claim::new(FigureNumber::Fig2, place, says, criterion, judgement);
    vec![
        claim(
            "IV-A, Fig. 2e",
            "The queue grows with the target.",
            "means of B do not fall by more than 0.005 from one T to the next, T = 2 to 150 %",
            rises(queue, 0.005, 3),
        )
        .of(15)
        .note("beyond T = 100 % LEDBAT behaves as Reno and the queue falls; so it does in ns-2 and ns-3"),
        claim(
            "IV-A, Fig. 2e",
            "The queue grows with the target, as far as LEDBAT's target fits into the buffer.",
            "the same for T = 2 to 95 %",
            rises(&within(queue, T1.0, 95.0), 0.005, 3),
        )
        .of(15),
    ]
}

fn loss_claims(loss: &Curve, two_reno: Spread) -> Vec<Claim> {
    let claim =
        |place, says, criterion, judgement| Claim::new(FigureNumber::Fig2, place, says, criterion, judgement);
    vec![
        claim(
            "IV-A, Fig. 2f",
            "Losses grow with the target and are largest at T = 100 %.",
            "the largest mean of P_l is that at T = 100 %",
            peak(loss),
        )
        .of(16)
        .note("in ns-2 and ns-3 P_l is largest at 150 %, too"),
        claim(
            "IV-A, Fig. 2f",
            "Beyond T = 100 % losses are those of two Reno flows.",
            "P_l at T = 150 % within 5 % of that of two Reno flows",
            like_two_reno(within(loss, T4.1, T4.1).first().map(|point| point.1), two_reno),
        )
        .of(16)
        .note("about a tenth lower in ns-2 (0.171 against 0.194 %) and ns-3 (0.169 against 0.189 %) as well"),
    ]
}

fn peak(loss: &Curve) -> Judgement {
    let (Some(largest), Some(full)) =
        (extreme(loss, |a, b| a > b), within(loss, 100.0, 100.0).first().copied())
    else {
        return Judgement::open("not run");
    };
    let text =
        format!("{:.4} % at T = 100, largest {:.4} % at T = {:.0}", full.1.mean, largest.1.mean, largest.0);
    Judgement::new(text, known(&means(loss), (largest.0 - 100.0).abs() < 1e-9))
}

fn like_two_reno(loss: Option<Spread>, two_reno: Spread) -> Judgement {
    let Some(loss) = loss else { return Judgement::open("not run") };
    let text = format!("{} % at T = 150, two Reno flows {} %", loss.show(4), two_reno.show(4));
    let ratio = loss.mean / two_reno.mean;
    Judgement::new(text, known(&[ratio], (ratio - 1.0).abs() <= 0.05))
}

pub(super) const COMPARED: &[Compared] = &[
    Compared { curve: "target", axis: "T = {} %", metrics: SIX },
    Compared { curve: "target-newreno", axis: "T = {} %, NewReno", metrics: NEWRENO },
    Compared { curve: "gain", axis: "G = {}", metrics: NEWRENO },
];

const SIX: &[(Metric, &str)] = &[
    (Metric::TcpPercent, "TCP %"),
    (Metric::Efficiency, "eta"),
    (Metric::FairnessLong, "F"),
    (Metric::FairnessShort, "F short"),
    (Metric::QueueIndex, "B"),
    (Metric::LossPercent, "P_l (%)"),
];
const NEWRENO: &[(Metric, &str)] = &[(Metric::TcpPercent, "TCP %"), (Metric::QueueIndex, "B")];

#[cfg(test)]
mod tests {
    use super::*;
    use cede_plot::Verdict;

    fn curve(points: &[(f64, f64)]) -> Vec<(f64, Spread)> {
        points.iter().map(|&(x, mean)| (x, Spread { mean, min: mean, max: mean, runs: 1 })).collect()
    }

    #[test]
    fn the_papers_own_share_would_hold_and_a_flat_one_would_not() {
        let paper =
            curve(&[(65.0, 95.0), (80.0, 60.0), (90.0, 20.0), (100.0, 0.0), (120.0, 50.0), (150.0, 52.0)]);
        let flat =
            curve(&[(65.0, 95.0), (80.0, 95.0), (90.0, 95.0), (100.0, 95.0), (120.0, 95.0), (150.0, 95.0)]);
        let verdicts =
            |curve: &Curve| share_claims(curve)[2..].iter().map(|c| c.judgement.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(&paper), [Verdict::Holds; 5]);
        assert_eq!(verdicts(&flat), [Verdict::Fails; 5]);
    }

    #[test]
    fn a_peak_must_stand_at_100_percent() {
        assert_eq!(peak(&curve(&[(50.0, 1.0), (100.0, 3.0), (150.0, 2.0)])).verdict, Verdict::Holds);
        assert_eq!(peak(&curve(&[(50.0, 1.0), (100.0, 3.0), (150.0, 4.0)])).verdict, Verdict::Fails);
        assert_eq!(peak(&curve(&[(50.0, 1.0)])).verdict, Verdict::Open);
    }

    #[test]
    fn losses_are_compared_with_two_renos() {
        let spread = |mean| Spread { mean, min: mean, max: mean, runs: 1 };
        assert_eq!(like_two_reno(Some(spread(0.195)), spread(0.2)).verdict, Verdict::Holds);
        assert_eq!(like_two_reno(Some(spread(0.17)), spread(0.2)).verdict, Verdict::Fails);
        assert_eq!(like_two_reno(None, spread(0.2)).verdict, Verdict::Open);
    }

    #[test]
    fn fairness_must_follow_the_split() {
        let share = curve(&[(20.0, 99.0), (90.0, 50.0)]);
        let verdicts = |long: &Curve, short: &Curve| {
            fairness_claims(&share, long, short).iter().map(|c| c.judgement.verdict).collect::<Vec<_>>()
        };
        let long = curve(&[(20.0, 0.51), (90.0, 0.999)]);
        assert_eq!(verdicts(&long, &curve(&[(20.0, 0.51), (90.0, 0.9)])), [Verdict::Holds, Verdict::Holds]);
        let other = curve(&[(20.0, 0.9), (90.0, 0.9)]);
        assert_eq!(verdicts(&other, &curve(&[(20.0, 0.95), (90.0, 0.9)])), [Verdict::Fails, Verdict::Fails]);
    }
}
