//! B1 to B14: what the paper says, and whether it holds.

use super::published::{Case, TABLE_IV};
use super::results::{CROWDS, LIMITS, Results};
use crate::known;
use crate::swarms::{Claim, Measured, Shown};
use cede_lab::swarm::mean;
use cede_units::Duration;

type Judge = fn(&Results) -> (String, Option<bool>);
/// Number, place, statement, criterion, judge.
type Row = (&'static str, &'static str, &'static str, &'static str, Judge);

const CLAIMS: [Row; 15] = [
    (
        "T",
        "Table IV",
        "mean completion times, 36 cells",
        "each of the 36 within 15 % of the printed mean",
        table_iv,
    ),
    (
        "B1",
        "III, Fig 5",
        "from 0 to 1000 ms of RTT, without loss, completion grows by less than 15 %",
        "less than 15 % at each limit",
        latency,
    ),
    (
        "B2",
        "III, III-A",
        "10 kB/s: completion grows above 200 ms only",
        "up to 200 ms less than 5 %, at 1000 ms more than at 200",
        slow_limit,
    ),
    (
        "B3",
        "III, III-B",
        "20 kB/s: not monotone, T(1000) below T(400)",
        "T(1000) < T(400) and T(0) < T(400)",
        hump,
    ),
    (
        "B4",
        "III-B",
        "the seed ends unchokes early where pipelines run dry: often at 20 kB/s and 400 ms, not at 0 and 1000 ms, nor with a seed of 50 kB/s",
        "idle ends per round of the seed at 20 kB/s: 400 ms above 1.5 times those at 0 and 1000 ms, and above a 50 kB/s seed's",
        idle_ends,
    ),
    (
        "B5",
        "III-B, Fig 7",
        "pieces at leechers come later at 400 ms with 20/20, and alike at all RTTs with 50/20, 50/50, 100/100",
        "time of half of all pieces: 20/20 later by more than 3 % at 400 ms, the others within 5 %",
        piece_curves,
    ),
    (
        "B6",
        "III-A, Fig 6",
        "gaps between a leecher's sends are alike at 0 and 400 ms",
        "medians within 25 % at each limit",
        gaps,
    ),
    (
        "B7",
        "IV, Fig 8, 9",
        "between systems all differences stay below 15 %",
        "largest over smallest below 1.15 at 20 and 50 kB/s",
        systems,
    ),
    (
        "B8",
        "IV",
        "homogeneous latency bounds the heterogeneous one with the same maximum",
        "no swarm of systems with a maximum of 400 ms slower than the homogeneous one by more than 2 %",
        bound,
    ),
    (
        "B9",
        "V, Tab IV",
        "5 % loss and up to 400 ms: less than 15 % at all limits; more only at 1000 ms, at 10 and 100 kB/s",
        "these twelve ratios",
        loss,
    ),
    ("B10", "V", "TSO on or off: the same completion", "within 5 % in all twelve cells", offload),
    (
        "B11",
        "II-D, Fig 4",
        "TSO on: payloads beyond the MSS, larger with RTT; off: not beyond",
        "mean payload grows from 0 to 1000 ms with TSO; none above 1448 without",
        payloads,
    ),
    (
        "B12",
        "II-C, Fig 2",
        "2 to 100 leechers per machine change the mean RTT estimate by less than 15 %",
        "at RTTs of 400 and 1000 ms; at 0 by less than 40 ms, the delay of an acknowledgement",
        crowds,
    ),
    ("B13", "II-B", "of Internet links 98 % have RTTs below 400 ms", "needs iPlane's data", |_| {
        ("the data are not part of this".to_string(), None)
    }),
    (
        "B14",
        "II",
        "all of this is valid for uTP too (asserted, not tested)",
        "over uTP, 1000 ms of RTT lengthens completion by less than 15 % at each limit",
        over_utp,
    ),
];

pub(super) fn claims(results: &Results) -> Vec<Claim> {
    CLAIMS
        .iter()
        .map(|&(id, place, says, criterion, judge)| Claim::new(id, place, says, criterion, judge(results)))
        .collect()
}

/// The mean over iterations; no number where there are none.
pub(super) fn average(runs: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let values: Vec<f64> = runs.iter().map(of).collect();
    if values.is_empty() { f64::NAN } else { mean(&values) }
}

fn time(results: &Results, kbps: u64, rtt_ms: u64, case: Case) -> f64 {
    average(results.table_iv(kbps, rtt_ms, case), |run| run.mean_s)
}

/// By how many per cent `a` is longer than `b`.
fn longer(a: f64, b: f64) -> f64 {
    100.0 * (a / b - 1.0)
}

/// The smallest and the largest; not numbers where there is none, or one of them is not a number.
fn span(values: &[f64]) -> (f64, f64) {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return (f64::NAN, f64::NAN);
    }
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)))
}

/// A percentage; what was not run has none.
fn percent(value: f64) -> String {
    if value.is_nan() { Shown(value).to_string() } else { format!("{value:+.1} %") }
}

fn listed(values: &[f64]) -> String {
    values.iter().map(|&value| format!("{:+.1}", Shown(value))).collect::<Vec<_>>().join(", ")
}

fn table_iv(results: &Results) -> (String, Option<bool>) {
    if results.request.quick {
        return ("only comparable at full size".to_string(), None);
    }
    let off: Vec<f64> = TABLE_IV
        .iter()
        .map(|&(kbps, rtt, case, paper)| longer(time(results, kbps, rtt, case), paper))
        .collect();
    let there: Vec<f64> = off.iter().copied().filter(|off| off.is_finite()).collect();
    let within = there.iter().filter(|off| off.abs() <= 15.0).count();
    let worst =
        there.iter().copied().fold(0.0, |worst: f64, off| if off.abs() > worst.abs() { off } else { worst });
    let text = format!(
        "{within} of the {} cells that were run within 15 %, of {}; the worst off by {:+.1} %",
        there.len(),
        off.len(),
        Shown(worst)
    );
    (text, known(&off, within == off.len()))
}

fn latency(results: &Results) -> (String, Option<bool>) {
    let grown = LIMITS
        .map(|kbps| longer(time(results, kbps, 1000, Case::Plain), time(results, kbps, 0, Case::Plain)));
    let text = format!("{} % at 10, 20, 50, 100 kB/s", listed(&grown));
    (text, known(&grown, grown.iter().all(|&grown| grown < 15.0)))
}

fn slow_limit(results: &Results) -> (String, Option<bool>) {
    let [none, some, most] = [0, 200, 1000].map(|rtt| time(results, 10, rtt, Case::Plain));
    let text =
        format!("{} at 200 ms, {} at 1000 ms", percent(longer(some, none)), percent(longer(most, none)));
    (text, known(&[none, some, most], longer(some, none) < 5.0 && most > some))
}

fn hump(results: &Results) -> (String, Option<bool>) {
    let [none, some, most] = [0, 400, 1000].map(|rtt| time(results, 20, rtt, Case::Plain));
    (
        format!("{:.0}, {:.0}, {:.0} s", Shown(none), Shown(some), Shown(most)),
        known(&[none, some, most], most < some && none < some),
    )
}

fn idle_ends(results: &Results) -> (String, Option<bool>) {
    let ends = |runs: &[Measured]| average(runs, |run| run.seed_idle_ends);
    let [none, some, most] = [0, 400, 1000].map(|rtt| ends(results.table_iv(20, rtt, Case::Plain)));
    let fast = ends(results.fast_seed(400));
    let text = format!(
        "{:.2}, {:.2}, {:.2} at 0, 400, 1000 ms; 50 kB/s seed {:.2}",
        Shown(none),
        Shown(some),
        Shown(most),
        Shown(fast)
    );
    (text, known(&[none, some, most, fast], some > 1.5 * none && some > 1.5 * most && some > fast))
}

fn piece_curves(results: &Results) -> (String, Option<bool>) {
    let half = |runs: &[Measured]| average(runs, |run| run.pieces.get(50).map_or(f64::NAN, |point| point.0));
    let same = |kbps| {
        longer(half(results.table_iv(kbps, 400, Case::Plain)), half(results.table_iv(kbps, 0, Case::Plain)))
    };
    let fast = longer(half(results.fast_seed(400)), half(results.fast_seed(0)));
    let later = [same(20), fast, same(50), same(100)];
    let text = format!("{} % later at 400 ms for 20/20, 50/20, 50/50, 100/100", listed(&later));
    (text, known(&later, later[0] > 3.0 && later[1..].iter().all(|later| later.abs() <= 5.0)))
}

fn gaps(results: &Results) -> (String, Option<bool>) {
    let median = |kbps, rtt| {
        average(results.table_iv(kbps, rtt, Case::Plain), |run| {
            run.gaps_ms.get(2).copied().unwrap_or(f64::NAN)
        })
    };
    let medians = LIMITS.map(|kbps| (median(kbps, 0), median(kbps, 400)));
    let text = medians.map(|(near, far)| format!("{:.0}/{:.0}", Shown(near), Shown(far))).join(", ");
    let all: Vec<f64> = medians.iter().flat_map(|&(near, far)| [near, far]).collect();
    let alike = medians.iter().all(|&(near, far)| longer(far, near).abs() <= 25.0);
    (format!("{text} ms at 0/400 ms for 10, 20, 50, 100 kB/s"), known(&all, alike))
}

fn systems(results: &Results) -> (String, Option<bool>) {
    let ratios = [20, 50].map(|kbps| {
        let times: Vec<f64> = results
            .systems()
            .filter(|(setting, _)| setting.leecher_kbps == kbps)
            .map(|(_, runs)| average(runs, |run| run.mean_s))
            .collect();
        let (low, high) = span(&times);
        longer(high, low)
    });
    let text = format!("{} % between the fastest and the slowest at 20, 50 kB/s", listed(&ratios));
    (text, known(&ratios, ratios.iter().all(|&ratio| ratio < 15.0)))
}

fn bound(results: &Results) -> (String, Option<bool>) {
    let homogeneous = |kbps| time(results, kbps, 400, Case::Plain);
    let far = results.systems().filter(|(setting, _)| setting.longest_rtt() == Duration::from_millis(400));
    let (bounds, times): (Vec<f64>, Vec<f64>) = far
        .map(|(setting, runs)| (homogeneous(setting.leecher_kbps), average(runs, |run| run.mean_s)))
        .unzip();
    let seconds: Vec<String> = times.iter().map(|&time| format!("{:.0}", Shown(time))).collect();
    let text = format!(
        "homogeneous 400 ms {:.0}, {:.0} s at 20, 50 kB/s; with the seed in AS'4, AS'5 {} s",
        Shown(homogeneous(20)),
        Shown(homogeneous(50)),
        seconds.join(", ")
    );
    let is_bounded = bounds.iter().zip(&times).all(|(bound, &time)| time <= 1.02 * bound);
    (text, known(&[bounds, times].concat(), is_bounded))
}

fn loss(results: &Results) -> (String, Option<bool>) {
    let grown = |kbps, rtt| longer(time(results, kbps, rtt, Case::Loss), time(results, kbps, 0, Case::Plain));
    let near: Vec<f64> = LIMITS.iter().flat_map(|&kbps| [grown(kbps, 0), grown(kbps, 400)]).collect();
    let far = LIMITS.map(|kbps| grown(kbps, 1000));
    let text = format!("0 and 400 ms: {}; 1000 ms: {} %", listed(&near), listed(&far));
    let as_said = far[0] >= 15.0 && far[1] < 15.0 && far[2] < 15.0 && far[3] >= 15.0;
    let all: Vec<f64> = near.iter().chain(&far).copied().collect();
    (text, known(&all, near.iter().all(|&grown| grown < 15.0) && as_said))
}

fn offload(results: &Results) -> (String, Option<bool>) {
    let cells = LIMITS.iter().flat_map(|&kbps| [0, 400, 1000].map(|rtt| (kbps, rtt)));
    let off: Vec<f64> = cells
        .map(|(kbps, rtt)| {
            longer(time(results, kbps, rtt, Case::Offload), time(results, kbps, rtt, Case::Plain))
        })
        .collect();
    (format!("{} %", listed(&off)), known(&off, off.iter().all(|off| off.abs() <= 5.0)))
}

fn payloads(results: &Results) -> (String, Option<bool>) {
    let mean_of = |rtt| average(results.table_iv(20, rtt, Case::Offload), |run| run.payload_mean);
    let [near, far] = [mean_of(0), mean_of(1000)];
    let plain = results.table_iv(20, 1000, Case::Plain);
    let largest = average(plain, |run| run.payloads.last().map_or(f64::NAN, |&(size, _)| f64::from(size)));
    let text = format!(
        "mean {:.0} at 0 ms, {:.0} at 1000 ms with TSO; at most {:.0} without",
        Shown(near),
        Shown(far),
        Shown(largest)
    );
    (text, known(&[near, far, largest], far > near && largest <= 1448.0))
}

fn crowds(results: &Results) -> (String, Option<bool>) {
    let spans = [0, 400, 1000]
        .map(|rtt| span(&CROWDS.map(|crowd| average(results.crowd(crowd, rtt), |run| run.rtt_ms))));
    let text = spans.map(|(low, high)| format!("{:.0}-{:.0}", Shown(low), Shown(high))).join(", ");
    let [near, far, farther] = spans;
    let holds = near.1 - near.0 < 40.0 && [far, farther].iter().all(|&(low, high)| longer(high, low) < 15.0);
    let all: Vec<f64> = spans.iter().flat_map(|&(low, high)| [low, high]).collect();
    (format!("{text} ms at 0, 400, 1000 ms"), known(&all, holds))
}

fn over_utp(results: &Results) -> (String, Option<bool>) {
    let time = |kbps, rtt| average(results.over_utp(kbps, rtt), |run| run.mean_s);
    let grown = LIMITS.map(|kbps| longer(time(kbps, 1000), time(kbps, 0)));
    let text = format!("{} % at 10, 20, 50, 100 kB/s", listed(&grown));
    (text, known(&grown, grown.iter().all(|&grown| grown < 15.0)))
}

#[cfg(test)]
mod tests {
    use super::super::results::Request;
    use super::*;
    use crate::swarms::assert_open;

    /// At either limit, and wherever the seed is a round trip of 400 ms away.
    #[test]
    fn systems_with_the_longest_round_trip_are_held_against_homogeneous_latency() {
        let request = Request { quick: true };
        let judged = |slow: &str| {
            let measured = request.jobs().into_iter().map(|job| {
                let mean_s = if job.key == slow { 103.0 } else { 100.0 };
                Some(Measured { mean_s, ..Measured::default() })
            });
            bound(&Results::sorted(request, measured.collect())).1
        };
        assert_eq!(
            judged("systems 20 kB/s|AS1, AS2, AS3|AS'3"),
            Some(true),
            "100 ms are not the same maximum"
        );
        for far in ["20 kB/s|AS1, AS3, AS4|AS'4", "20 kB/s|AS1, AS3, AS5|AS'5", "50 kB/s|AS1, AS3, AS4|AS'4"]
        {
            assert_eq!(judged(&format!("systems {far}")), Some(false), "{far}");
        }
    }

    #[test]
    fn where_nothing_was_run_every_claim_is_open() {
        let request = Request { quick: false };
        let nothing = request.jobs().iter().map(|_| None).collect();
        let results = Results::sorted(request, nothing);
        assert_open(&claims(&results));
        assert_eq!(slow_limit(&results).0, "not run at 200 ms, not run at 1000 ms");
    }
}
