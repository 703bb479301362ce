//! What was published, and whether it holds.
//!
//! Source: the README and the three plots of meng-tong/libutp (2020). The plots give throughput over time; their ranges were
//! read off and stand here as published. The plots are of one run each, and repetitions of ours differ, so two things must be true for
//! what was read off: our mean over all repetitions is in the range or within 2.5 Mbit/s of it, a twentieth of the link, and so are
//! two thirds of the repetitions by themselves. That is asked of the last 20 s of each phase, of its first 10 s where the plot moves, and of every
//! 10 s beside CUBIC, where it does not.

use super::execute::Results;
use super::measure::{Measured, mean};
use super::setting::{ALONE, BESIDE_BBR, BESIDE_CUBIC, BESIDE_PROTEUS, CONTENDER, Contender, Phase};
use crate::{Judgement, Statement, known};

/// The end of a phase that is judged, in seconds.
const JUDGED_S: f64 = 20.0;
/// How far from a plotted range a mean may lie, in Mbit/s.
const TOLERANCE_MBPS: f64 = 2.5;
/// The part of all repetitions that must be near by themselves.
const MOST: f64 = 2.0 / 3.0;
/// The beginning of a phase that is judged where the plot moves, and the stretches into which a phase is cut, in seconds.
const STRETCH_S: f64 = 10.0;
/// How far the end of a phase must be from its beginning where the plot rises or falls, in Mbit/s.
const MOVED_MBPS: f64 = 5.0;
/// What counts as nine tenths of what is shared, in percent.
const NINE_TENTHS_PERCENT: f64 = 85.0;
/// What a scavenger beside CUBIC stays below, in percent of what the two carry.
const TENTH_PERCENT: f64 = 10.0;
/// The stretch in which a flow counts as gone, in seconds.
const GONE_S: usize = 5;
/// What counts as the link taken back.
const RECOVERED: f64 = 0.9;

/// A range of the plots, in Mbit/s.
type Range = (f64, f64);

/// What the plots show at the end of a phase.
struct Plotted {
    contender: Contender,
    phase: Phase,
    own: Range,
    rival: Option<Range>,
}

const fn plotted(contender: Contender, phase: Phase, own: Range, rival: Option<Range>) -> Plotted {
    Plotted { contender, phase, own, rival }
}

/// The plots, phase by phase; where throughput moves, what it comes to.
const PLOTS: [Plotted; 12] = [
    plotted(Contender::Ledbat, BESIDE_CUBIC, (3.0, 10.0), Some((38.0, 45.0))),
    plotted(Contender::Ledbat, ALONE, (48.5, 48.5), None),
    plotted(Contender::Ledbat, BESIDE_BBR, (24.5, 24.5), Some((24.0, 24.0))),
    plotted(Contender::Ledbat, BESIDE_PROTEUS, (46.0, 48.0), Some((1.0, 3.0))),
    plotted(Contender::PlusPlus, BESIDE_CUBIC, (0.3, 4.5), Some((43.5, 46.5))),
    plotted(Contender::PlusPlus, ALONE, (38.0, 48.5), None),
    plotted(Contender::PlusPlus, BESIDE_BBR, (44.0, 45.0), Some((3.0, 4.0))),
    plotted(Contender::PlusPlus, BESIDE_PROTEUS, (33.0, 38.0), Some((9.0, 15.0))),
    plotted(Contender::ProteusS, BESIDE_CUBIC, (0.2, 1.2), Some((47.5, 47.5))),
    plotted(Contender::ProteusS, ALONE, (41.0, 46.5), None),
    plotted(Contender::ProteusS, BESIDE_BBR, (0.0, 1.0), Some((47.5, 47.5))),
    plotted(Contender::ProteusS, BESIDE_PROTEUS, (3.0, 11.0), Some((35.0, 44.0))),
];

/// Mean, smallest and largest of what is a number.
pub(super) fn spread(values: &[f64]) -> (f64, f64, f64) {
    let known = || values.iter().copied().filter(|value| value.is_finite());
    (mean(known()), known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max))
}

/// "mean (smallest to largest)".
pub(super) fn show(values: &[f64], decimals: usize) -> String {
    let (mean, least, most) = spread(values);
    if !mean.is_finite() {
        return "-".into();
    }
    let (low, high) = (format!("{least:.decimals$}"), format!("{most:.decimals$}"));
    if low == high { low } else { format!("{mean:.decimals$} ({low} to {high})") }
}

/// A flow's throughput at the end of a phase, in each repetition.
pub(super) fn at_end(runs: &[Measured], flow: &str, phase: Phase) -> Vec<f64> {
    runs.iter().map(|run| run.mbps(flow, phase.to_s - JUDGED_S, phase.to_s)).collect()
}

fn is_near_one(value: f64, (low, high): Range) -> bool {
    value >= low - TOLERANCE_MBPS && value <= high + TOLERANCE_MBPS
}

/// How many of the repetitions are near a range.
fn near_count(values: &[f64], range: Range) -> usize {
    values.iter().filter(|&&value| is_near_one(value, range)).count()
}

fn is_near(values: &[f64], range: Range) -> Option<bool> {
    let found = mean(values.iter().copied());
    let most = are_most(near_count(values, range), values.len());
    found.is_finite().then_some(is_near_one(found, range) && most)
}

fn are_most(many: usize, of: usize) -> bool {
    many as f64 >= MOST * of as f64
}

/// "mean (smallest to largest), in range n of m".
fn show_near(values: &[f64], range: Range) -> String {
    format!("{}, {} of {} near", show(values, 1), near_count(values, range), values.len())
}

fn range((low, high): Range) -> String {
    if low == high { format!("{low}") } else { format!("{low} to {high}") }
}

fn judge_plot(results: &Results, plot: &Plotted) -> Statement {
    let runs = results.script(plot.contender);
    let own = at_end(runs, CONTENDER, plot.phase);
    let mut says = format!("{} {}: {}", plot.contender.title(), plot.phase.title, range(plot.own));
    let mut measured = show_near(&own, plot.own);
    let mut holds = is_near(&own, plot.own);
    if let (Some(rival), Some(name)) = (plot.rival, plot.phase.rival) {
        let other = at_end(runs, name, plot.phase);
        says += &format!(" / {}", range(rival));
        measured += &format!(" / {}", show_near(&other, rival));
        holds = holds.zip(is_near(&other, rival)).map(|(own, other)| own && other);
    }
    let criterion = format!(
        "the last {JUDGED_S} s of the phase within {TOLERANCE_MBPS} Mbit/s of the plotted ranges: the mean over repetitions, and two \
         thirds of these by themselves"
    );
    Statement::new("plot", says + " Mbit/s", criterion, Judgement::new(measured + " Mbit/s", holds))
}

/// What the plots show of a phase's beginning, where throughput moves: where it begins, in Mbit/s, and whether it rises.
struct Moving {
    contender: Contender,
    phase: Phase,
    from: f64,
    rises: bool,
}

const MOVING: [Moving; 4] = [
    Moving { contender: Contender::PlusPlus, phase: BESIDE_BBR, from: 24.0, rises: true },
    Moving { contender: Contender::PlusPlus, phase: BESIDE_PROTEUS, from: 48.0, rises: false },
    Moving { contender: Contender::ProteusS, phase: BESIDE_BBR, from: 43.0, rises: false },
    Moving { contender: Contender::ProteusS, phase: BESIDE_PROTEUS, from: 45.0, rises: false },
];

/// Where a moving phase begins.
fn judge_start(results: &Results, plot: &Moving) -> Statement {
    let Moving { contender, phase, from, .. } = *plot;
    let runs = results.script(contender);
    let starts: Vec<f64> =
        runs.iter().map(|run| run.mbps(CONTENDER, phase.from_s, phase.from_s + STRETCH_S)).collect();
    Statement::new(
        "plot",
        format!("{} {} begins at {from} Mbit/s", contender.title(), phase.title),
        format!(
            "the first {STRETCH_S} s of the phase within {TOLERANCE_MBPS} Mbit/s of it: the mean over repetitions, and two thirds of \
             these by themselves"
        ),
        Judgement::new(show_near(&starts, (from, from)) + " Mbit/s", is_near(&starts, (from, from))),
    )
}

/// Which way a moving phase goes.
fn judge_trend(results: &Results, plot: &Moving) -> Statement {
    let Moving { contender, phase, rises, .. } = *plot;
    let rise = |run: &Measured| {
        run.mbps(CONTENDER, phase.to_s - JUDGED_S, phase.to_s)
            - run.mbps(CONTENDER, phase.from_s, phase.from_s + STRETCH_S)
    };
    let rises_by: Vec<f64> = results.script(contender).iter().map(rise).collect();
    let moved = |by: &&f64| if rises { **by >= MOVED_MBPS } else { **by <= -MOVED_MBPS };
    let many = rises_by.iter().filter(moved).count();
    let word = if rises { "rises" } else { "falls" };
    Statement::new(
        "plot",
        format!("{} {} {word}", contender.title(), phase.title),
        format!(
            "its last {JUDGED_S} s {} its first {STRETCH_S} s by {MOVED_MBPS} Mbit/s or more in two thirds of the repetitions",
            if rises { "exceed" } else { "stay below" }
        ),
        Judgement::new(
            format!("by {} Mbit/s, {many} of {}", show(&rises_by, 1), rises_by.len()),
            known(&rises_by, are_most(many, rises_by.len())),
        ),
    )
}

/// The largest mean of ten seconds in a phase, once its first ten are over.
fn best_stretch(run: &Measured, phase: Phase) -> f64 {
    let seconds = run.seconds(phase.from_s + STRETCH_S, phase.to_s);
    let stretch = |part: &[f64]| mean(part.iter().copied());
    seconds.windows(STRETCH_S as usize).map(stretch).fold(f64::NAN, f64::max)
}

/// Beside CUBIC the plots stay where they are: no ten seconds are above the range.
fn judge_stays(results: &Results, plot: &Plotted) -> Statement {
    let (_, high) = plot.own;
    let best: Vec<f64> =
        results.script(plot.contender).iter().map(|run| best_stretch(run, plot.phase)).collect();
    let range = (f64::NEG_INFINITY, high);
    Statement::new(
        "plot",
        format!("{} {} is at {high} Mbit/s at most, all the time", plot.contender.title(), plot.phase.title),
        format!(
            "the largest mean of {STRETCH_S} s, from {STRETCH_S} s on, no more than {TOLERANCE_MBPS} Mbit/s above: the mean over \
             repetitions, and two thirds of these by themselves"
        ),
        Judgement::new(show_near(&best, range) + " Mbit/s", is_near(&best, range)),
    )
}

/// The sheet's check 7, in the order that was published: CUBIC has the link when LEDBAT++ joins.
fn judge_tenth(results: &Results, contender: Contender) -> Statement {
    let share = |run: &Measured| 100.0 * run.share("cubic", BESIDE_CUBIC.to_s - JUDGED_S, BESIDE_CUBIC.to_s);
    let shares: Vec<f64> = results.script(contender).iter().map(share).collect();
    let many = shares.iter().filter(|&&share| share < TENTH_PERCENT).count();
    let found = mean(shares.iter().copied());
    Statement::new(
        "sheet",
        format!("{} has less than a tenth of what it shares with CUBIC", contender.title()),
        "share of the last 20 s below 10 %: the mean over repetitions, and two thirds of these by themselves",
        Judgement::new(
            format!("{} %, below in {many} of {}", show(&shares, 1), shares.len()),
            known(&[found], found < TENTH_PERCENT && are_most(many, shares.len())),
        ),
    )
}

/// When a phase's first five seconds with a mean below 1 Mbit/s are over, counted from its beginning.
fn time_below(run: &Measured, phase: Phase) -> f64 {
    let seconds = run.seconds(phase.from_s, phase.to_s);
    let is_below = |part: &[f64]| mean(part.iter().copied()) < 1.0;
    seconds.windows(GONE_S).position(is_below).map_or(f64::INFINITY, |place| (place + GONE_S) as f64)
}

fn gone(results: &Results) -> Statement {
    let times: Vec<f64> =
        results.script(Contender::ProteusS).iter().map(|run| time_below(run, BESIDE_BBR)).collect();
    let many = times.iter().filter(|&&time| time <= 30.0).count();
    let rivals: Vec<f64> = at_end(results.script(Contender::ProteusS), "bbr", BESIDE_BBR);
    Statement::new(
        "plot",
        "Proteus-S beside BBR is below 1 Mbit/s within 30 s.",
        "five seconds with a mean below 1 Mbit/s are over by then in two thirds of the repetitions",
        Judgement::new(
            format!("after {} s, {many} of {}", show(&times, 0), times.len()),
            known(&rivals, are_most(many, times.len())),
        ),
    )
}

/// The mean over repetitions of the contender's throughput at the end of a phase.
fn end_mean(results: &Results, contender: Contender, phase: Phase) -> f64 {
    mean(at_end(results.script(contender), CONTENDER, phase))
}

fn all_known(values: &[f64], holds: bool) -> Option<bool> {
    values.iter().all(|value| value.is_finite()).then_some(holds)
}

/// How far, in each repetition, the smallest second lies below the largest at the end of the first time alone.
fn swing(results: &Results, contender: Contender) -> Vec<f64> {
    let dip = |run: &Measured| {
        let seconds = run.seconds(ALONE.to_s - JUDGED_S, ALONE.to_s);
        let (_, least, most) = spread(&seconds);
        1.0 - least / most
    };
    results.script(contender).iter().map(dip).collect()
}

fn saw_tooth(results: &Results) -> Statement {
    let [plain, plus] = [Contender::Ledbat, Contender::PlusPlus].map(|who| swing(results, who));
    let means = [mean(plain.clone()), mean(plus.clone())];
    let percent = |values: &[f64]| show(&values.iter().map(|v| v * 100.0).collect::<Vec<f64>>(), 0);
    Statement::new(
        "README",
        "Alone, periodic slowdowns tell LEDBAT++ from LEDBAT.",
        "between 180 and 200 s the smallest second of LEDBAT++ lies a tenth or more below its largest, of LEDBAT less than 2 %",
        Judgement::new(
            format!("LEDBAT++ {} % below, LEDBAT {} %", percent(&plus), percent(&plain)),
            all_known(&means, means[1] >= 0.1 && means[0] < 0.02),
        ),
    )
}

fn conservative(results: &Results, phase: Phase) -> Statement {
    let [plain, plus] = [Contender::Ledbat, Contender::PlusPlus].map(|who| end_mean(results, who, phase));
    Statement::new(
        "README",
        format!("LEDBAT++ is more conservative than LEDBAT {}: its throughput is lower.", phase.title),
        "the contender's mean of the last 20 s is lower for LEDBAT++ than for LEDBAT",
        Judgement::new(
            format!("LEDBAT++ {plus:.1}, LEDBAT {plain:.1} Mbit/s"),
            all_known(&[plain, plus], plus < plain),
        ),
    )
}

/// How long each repetition takes after a rival has left, in seconds.
pub(super) fn recoveries(runs: &[Measured], phase: Phase) -> Vec<f64> {
    let one = |run: &Measured| {
        let plateau = run.mbps(CONTENDER, phase.to_s - JUDGED_S, phase.to_s);
        run.time_to_reach(RECOVERED * plateau, phase.from_s, phase.to_s).unwrap_or(f64::NAN)
    };
    runs.iter().map(one).collect()
}

fn recovery(results: &Results) -> Statement {
    let times = recoveries(results.script(Contender::PlusPlus), ALONE);
    let (found, ..) = spread(&times);
    Statement::new(
        "README",
        "LEDBAT++ needs around 20 s to recover after CUBIC ends.",
        "mean time until nine tenths of what it comes to alone are held for 3 s: 15 to 25 s",
        Judgement::new(format!("{} s", show(&times, 0)), all_known(&[found], (15.0..=25.0).contains(&found))),
    )
}

/// The contender's mean throughput of the 20 s from so many seconds after a phase's beginning.
fn stretch(results: &Results, contender: Contender, phase: Phase, after_s: f64) -> f64 {
    let from = phase.from_s + after_s;
    mean(results.script(contender).iter().map(|run| run.mbps(CONTENDER, from, from + JUDGED_S)))
}

fn slow_takeover(results: &Results) -> Statement {
    let at = |after_s| stretch(results, Contender::PlusPlus, BESIDE_BBR, after_s);
    let steps = [0.0, 20.0, 40.0, 60.0, 80.0].map(at);
    let shown = steps.map(|mbps| format!("{mbps:.1}")).join(", ");
    Statement::new(
        "README",
        "LEDBAT++ takes up bandwidth slowly beside BBR.",
        "the contender's means of stretches of 20 s never fall by more than 1 Mbit/s, and the last is above the first by 5 or more",
        Judgement::new(
            format!("{shown} Mbit/s"),
            all_known(
                &steps,
                steps.windows(2).all(|pair| pair[1] >= pair[0] - 1.0) && steps[4] >= steps[0] + 5.0,
            ),
        ),
    )
}

fn inversion(results: &Results) -> Statement {
    let shares: Vec<f64> = results
        .script(Contender::PlusPlus)
        .iter()
        .map(|run| 100.0 * run.share("bbr", BESIDE_BBR.to_s - JUDGED_S, BESIDE_BBR.to_s))
        .collect();
    let (found, ..) = spread(&shares);
    let many = shares.iter().filter(|&&share| share >= NINE_TENTHS_PERCENT).count();
    Statement::new(
        "plot",
        "In the end LEDBAT++ has nine tenths of what it shares with BBR.",
        "mean share in the last 20 s: 85 % or more",
        Judgement::new(
            format!("{} %; 85 % or more in {many} of {}", show(&shares, 0), shares.len()),
            all_known(&[found], found >= NINE_TENTHS_PERCENT),
        ),
    )
}

fn robust(results: &Results) -> Statement {
    let phases = [BESIDE_CUBIC, BESIDE_BBR, BESIDE_PROTEUS];
    let of = |contender| phases.map(|phase| end_mean(results, contender, phase));
    let (plus, proteus) = (of(Contender::PlusPlus), of(Contender::ProteusS));
    let shown = |values: [f64; 3]| values.map(|mbps| format!("{mbps:.1}")).join(", ");
    Statement::new(
        "README",
        "Proteus-S is the more robust scavenger, above all beside Proteus-P.",
        "its means of the last 20 s beside CUBIC, BBR and Proteus-P are lower than those of LEDBAT++",
        Judgement::new(
            format!("Proteus-S {}; LEDBAT++ {} Mbit/s", shown(proteus), shown(plus)),
            all_known(
                &[plus, proteus].concat(),
                plus.iter().zip(&proteus).all(|(plus, proteus)| proteus < plus),
            ),
        ),
    )
}

/// Every statement, judged.
#[must_use]
pub fn statements(results: &Results) -> Vec<Statement> {
    let mut all: Vec<Statement> = PLOTS.iter().map(|plot| judge_plot(results, plot)).collect();
    let beside_cubic = PLOTS.iter().filter(|plot| plot.phase == BESIDE_CUBIC);
    all.extend(beside_cubic.map(|plot| judge_stays(results, plot)));
    all.extend(MOVING.iter().map(|plot| judge_start(results, plot)));
    all.extend(MOVING.iter().map(|plot| judge_trend(results, plot)));
    all.push(gone(results));
    all.extend([Contender::PlusPlus, Contender::PlusPlusDraft].map(|who| judge_tenth(results, who)));
    all.push(saw_tooth(results));
    all.extend([BESIDE_CUBIC, BESIDE_BBR, BESIDE_PROTEUS].map(|phase| conservative(results, phase)));
    all.extend([inversion, slow_takeover, recovery, robust].map(|judge| judge(results)));
    all
}

#[cfg(test)]
mod tests {
    use super::super::execute::Request;
    use super::super::measure::tests::run;
    use super::*;
    use cede_plot::Verdict;

    /// Every contender carries `own` beside its rivals.
    fn results(own: impl Fn(Contender, f64) -> f64) -> Results {
        let scripts = Contender::ALL.map(|who| (who, vec![run("bbr", |t| own(who, t))]));
        Results { request: Request { quick: true }, scripts: scripts.into(), duels: Vec::new() }
    }

    fn verdict(results: &Results, says: &str) -> Verdict {
        let all = statements(results);
        let found = all.iter().find(|statement| statement.says.contains(says));
        found.unwrap_or_else(|| panic!("{says}: {all:?}")).verdict()
    }

    #[test]
    fn plotted_ranges_forgive_a_twentieth_of_the_link() {
        let at = |mbps| verdict(&results(|_, _| mbps), "LEDBAT (libutp) beside BBR");
        assert_eq!((at(24.0), at(26.4), at(28.0)), (Verdict::Holds, Verdict::Holds, Verdict::Fails));
        let missing = verdict(&results(|_, _| 5.0), "LEDBAT (libutp) beside CUBIC");
        assert_eq!(missing, Verdict::Open, "there is no such rival in these runs");
    }

    #[test]
    fn more_and_less_conservative_are_told_apart() {
        let less = results(|who, _| if who == Contender::PlusPlus { 40.0 } else { 20.0 });
        assert_eq!(verdict(&less, "more conservative than LEDBAT beside BBR"), Verdict::Fails);
        let more = results(|who, _| if who == Contender::PlusPlus { 10.0 } else { 20.0 });
        assert_eq!(verdict(&more, "more conservative than LEDBAT beside BBR"), Verdict::Holds);
    }

    #[test]
    fn a_slow_takeover_is_told_from_a_plateau_and_from_a_fall() {
        let rising =
            |from: f64, slope: f64| results(move |_, t| from + slope * (t - 200.0).clamp(0.0, 100.0));
        assert_eq!(verdict(&rising(5.0, 0.4), "slowly beside BBR"), Verdict::Holds);
        assert_eq!(verdict(&rising(5.0, 0.4), "nine tenths"), Verdict::Holds);
        assert_eq!(verdict(&rising(20.0, 0.0), "slowly beside BBR"), Verdict::Fails);
        assert_eq!(verdict(&rising(45.0, -0.4), "slowly beside BBR"), Verdict::Fails);
    }

    #[test]
    fn recovery_and_saw_tooth_come_from_the_seconds() {
        let ramp = results(|who, t| match who {
            Contender::PlusPlus if t == 185.0 => 38.0,
            Contender::PlusPlus => (2.0 * (t - 150.0)).clamp(0.0, 46.0),
            _ => 48.0,
        });
        assert_eq!(verdict(&ramp, "around 20 s"), Verdict::Holds);
        assert_eq!(verdict(&ramp, "periodic slowdowns"), Verdict::Holds);
        let flat = results(|_, _| 48.0);
        assert_eq!(verdict(&flat, "around 20 s"), Verdict::Fails);
        assert_eq!(verdict(&flat, "periodic slowdowns"), Verdict::Fails);
    }
}
