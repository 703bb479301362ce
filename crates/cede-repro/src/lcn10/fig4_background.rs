//! Figure 4, continued: what it says of NICE and TCP-LP.

use super::claim::{
    Claim, Curve, Judgement, ends_lower, falls, known, loses_less, means, near_least, rises, stays_within,
};
use super::plan::FigureNumber;
use super::results::{Metric, Results, Spread};
use super::setting::Background;

/// The curves, and what runs in them.
pub(super) const CURVES: &[(&str, Background)] = &[
    ("n-nice", Background::NICE_LINUX26),
    ("n-nice-fractional", Background::NICE_FRACTIONAL),
    ("n-lp", Background::LP_32_BITS),
    ("n-lp-known", Background::LP_KNOWN_RATE),
    ("n-lp-equations", Background::LP_EQUATIONS),
];

const NICE: [(&str, &str); 2] = [("n-nice", "floor 2"), ("n-nice-fractional", "floor 1/48")];
const LP: [(&str, &str); 3] =
    [("n-lp", "32 bits"), ("n-lp-known", "rate known"), ("n-lp-equations", "equations")];

fn claim(place: &'static str, says: &'static str, criterion: &'static str, judgement: Judgement) -> Claim {
    Claim::new(FigureNumber::Fig4, place, says, criterion, judgement)
}

pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let mut claims = vec![
        claim(
            "abstract, V-A, VI",
            "LEDBAT has the lowest priority, then NICE, then TCP-LP.",
            "beside N = 5 and 10 of them TCP % falls in that order, for TCP-LP with 32 bits",
            ordered(results, "n-lp"),
        )
        .of(1),
        claim(
            "abstract, V-A, VI",
            "The same, with TCP-LP whose rate of the peer's clock is known.",
            "the same",
            ordered(results, "n-lp-known"),
        )
        .of(1)
        .note("at N = 10 NICE and TCP-LP are then within a point of each other, and in ns-2"),
        claim(
            "abstract, V-A, VI",
            "The same, with windows of NICE and the rules of TCP-LP as their papers have them.",
            "TCP % beside 10 LEDBAT, NICE (1/48) and TCP-LP (equations) falls in that order",
            ordered_by_papers(results),
        )
        .of(1)
        .note("with windows below one packet NICE is the most polite of the three"),
    ];
    claims.extend(share_claims(results));
    claims.extend(fairness_claims(results));
    claims.extend(queue_claims(results));
    claims
}

fn share(results: &Results, curve: &str, count: f64) -> f64 {
    results.at(curve, count, Metric::TcpPercent).mean
}

fn falling(found: &[f64]) -> Option<bool> {
    known(found, found.windows(2).all(|pair| pair[0] > pair[1]))
}

fn ordered(results: &Results, lp: &str) -> Judgement {
    let at = |count: f64| ["n-ledbat", "n-nice", lp].map(|curve| share(results, curve, count));
    let (five, ten) = (at(5.0), at(10.0));
    let show = |[ledbat, nice, lp]: [f64; 3]| format!("{ledbat:.1}, {nice:.1}, {lp:.1} %");
    let text = format!("N = 5: {}; N = 10: {}", show(five), show(ten));
    Judgement::new(text, falling(&five).zip(falling(&ten)).map(|(five, ten)| five && ten))
}

fn ordered_by_papers(results: &Results) -> Judgement {
    let found = ["n-ledbat", "n-nice-fractional", "n-lp-equations"].map(|curve| share(results, curve, 10.0));
    let [ledbat, nice, lp] = found;
    Judgement::new(format!("{ledbat:.1}, {nice:.1}, {lp:.1} %"), falling(&found))
}

/// What each flow has at N = 10 under the first variant is judged; the others stand beside it.
fn each_takes(results: &Results, variants: &[(&str, &str)], percent: f64) -> Judgement {
    let at = |curve: &str| results.at(curve, 10.0, Metric::OtherPercent);
    let shown: Vec<String> =
        variants.iter().map(|(curve, name)| format!("{name} {} %", at(curve).show(2))).collect();
    let first = at(variants[0].0).mean;
    Judgement::new(shown.join("; "), known(&[first], (first - percent).abs() <= 0.5))
}

fn share_claims(results: &Results) -> Vec<Claim> {
    let eta = |curve: &str| results.along(curve, Metric::Efficiency);
    vec![
        claim(
            "V-A, Fig. 4a",
            "NICE uses what Reno leaves over, fully.",
            "eta of 0.99 or more at every N",
            stays_within(&eta("n-nice"), 0.99, 1.0, 4),
        )
        .of(21),
        claim(
            "V-A, Fig. 4a",
            "The efficiency of TCP-LP flows falls with N.",
            "the mean of eta at the largest N is below that at N = 1 by 0.005 or more",
            ends_lower(&eta("n-lp"), 0.005, 4),
        )
        .of(21),
        claim(
            "V-A, Fig. 4b",
            "Beside ten NICE flows each of them has about 3 %.",
            "within 3 +- 0.5 at N = 10 with a floor of two packets",
            each_takes(results, &NICE, 3.0),
        )
        .of(22)
        .note("slow start at ssthresh makes three of two packets; with windows down to 1/48 nothing like 3 % comes out"),
        claim(
            "V-A, Fig. 4b",
            "Beside ten TCP-LP flows each of them has about 5 %.",
            "within 5 +- 0.5 at N = 10 with 32 bits",
            each_takes(results, &LP, 5.0),
        )
        .of(22)
        .note("clock offsets between 100 and 200 ms give 5 % as well: see the table of variants; ns-2 has 3.7 (32 bits), 2.9 (rate known), 2.0 (64 bits), ns-3 3.2"),
    ]
}

fn fairness_claims(results: &Results) -> Vec<Claim> {
    let among = |curve: &str| results.along(curve, Metric::FairnessOthers);
    vec![
        claim(
            "V-A, Fig. 4c",
            "F among all flows is near its least value, 1/(N + 1), for NICE too.",
            "F is at most 1.25 / (N + 1) at every N",
            near_least(&results.along("n-nice", Metric::FairnessLong)),
        )
        .of(23)
        .note("in ns-2 0.171 at N = 10, which is 1.9 / (N + 1)"),
        claim(
            "V-A, Fig. 4d",
            "Among themselves the NICE flows are fair, as the TCP-LP flows are.",
            "F among the N of 0.8 or more at every N, for NICE (floor 2) and TCP-LP (32 bits)",
            stays_within(&[among("n-nice"), among("n-lp")].concat(), 0.8, 1.0, 3),
        )
        .of(24),
        claim(
            "V-A, Fig. 4d",
            "NICE flows are less fair among themselves than LEDBAT flows.",
            "at N = 10 their F is lower by 0.005 or more",
            lower(
                results.at("n-nice", 10.0, Metric::FairnessOthers),
                results.at("n-ledbat", 10.0, Metric::FairnessOthers),
            ),
        )
        .of(24)
        .note("nor are they in ns-2 (1.000)"),
    ]
}

fn lower(nice: Spread, ledbat: Spread) -> Judgement {
    let text = format!("NICE {}, LEDBAT {}", nice.show(3), ledbat.show(3));
    Judgement::new(text, known(&[nice.mean, ledbat.mean], ledbat.mean - nice.mean >= 0.005))
}

fn queue_claims(results: &Results) -> Vec<Claim> {
    let queue = |curve: &str| results.along(curve, Metric::QueueIndex);
    let loss = |curve: &str| results.along(curve, Metric::LossPercent);
    vec![
        claim(
            "V-A, Fig. 4e",
            "The queue falls with the number of TCP-LP flows.",
            "means of B do not rise by more than 0.005 from one N to the next, with the clock's rate known",
            falls(&queue("n-lp-known"), 0.005, 3),
        )
        .of(25),
        claim(
            "V-A, Fig. 4e",
            "The queue rises slowly with the number of NICE flows.",
            "means of B do not fall by more than 0.005, and rise by 0.1 at most in all",
            rises_slowly(&queue("n-nice")),
        )
        .of(25),
        claim(
            "V-A, Fig. 4f",
            "NICE loses clearly less than Reno.",
            "P_l beside N NICE flows is at most half of that beside N Reno flows from N = 5 on, and lower at every N",
            loses_less(&loss("n-nice"), &loss("n-reno")),
        )
        .of(26),
        claim(
            "V-A, Fig. 4f",
            "TCP-LP's losses are strikingly like Reno's.",
            "P_l beside 10 TCP-LP flows (32 bits) is within a quarter of that beside 10 Reno flows",
            alike(results.at("n-lp", 10.0, Metric::LossPercent), results.at("n-reno", 10.0, Metric::LossPercent)),
        )
        .of(26)
        .note("in ns-2 0.32 against 1.21 %"),
    ]
}

fn rises_slowly(curve: &Curve) -> Judgement {
    let judged = rises(curve, 0.005, 3);
    let range = Spread::of(&means(curve));
    let slow = range.max - range.min <= 0.1;
    let holds = judged.verdict == cede_plot::Verdict::Holds && slow;
    Judgement::new(judged.measured, known(&means(curve), holds))
}

fn alike(lp: Spread, reno: Spread) -> Judgement {
    let text = format!("TCP-LP {} %, Reno {} %", lp.show(3), reno.show(3));
    Judgement::new(text, known(&[lp.mean, reno.mean], (lp.mean / reno.mean - 1.0).abs() <= 0.25))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_plot::Verdict;

    fn spread(mean: f64) -> Spread {
        Spread { mean, min: mean, max: mean, runs: 1 }
    }

    #[test]
    fn orders_are_strict_and_unknown_without_runs() {
        assert_eq!(falling(&[90.7, 72.0, 63.0]), Some(true));
        assert_eq!(falling(&[90.7, 63.0, 72.0]), Some(false));
        assert_eq!(falling(&[90.7, f64::NAN, 63.0]), None);
    }

    #[test]
    fn likeness_and_slow_rises_have_their_bounds() {
        assert_eq!(alike(spread(1.0), spread(1.2)).verdict, Verdict::Holds);
        assert_eq!(alike(spread(0.3), spread(1.2)).verdict, Verdict::Fails);
        assert_eq!(lower(spread(0.9), spread(1.0)).verdict, Verdict::Holds);
        assert_eq!(lower(spread(1.0), spread(1.0)).verdict, Verdict::Fails);
        let curve = |values: &[f64]| -> Vec<(f64, Spread)> {
            values.iter().enumerate().map(|(k, &mean)| (k as f64, spread(mean))).collect()
        };
        assert_eq!(rises_slowly(&curve(&[0.69, 0.70, 0.74])).verdict, Verdict::Holds);
        assert_eq!(rises_slowly(&curve(&[0.60, 0.70, 0.80])).verdict, Verdict::Fails);
    }
}
