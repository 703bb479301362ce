//! The paper's figures.

use super::claims::average;
use super::published::Case;
use super::results::{CROWDS, LIMITS, Results};
use crate::swarms::Measured;
use cede_lab::swarm::mean;
use cede_plot::{Axis, Figure, Panel, Series};

pub(super) fn fig2(results: &Results) -> Figure {
    let series = [0, 400, 1000].map(|rtt| {
        let points =
            CROWDS.map(|crowd| (f64::from(crowd), average(results.crowd(crowd, rtt), |run| run.rtt_ms)));
        Series::line_points(format!("{rtt} ms"), points)
    });
    Figure::new("TCP's RTT estimates by leechers per machine").panel(
        Panel::new("mean of the smoothed RTT at each send")
            .x(Axis::new("leechers per machine"))
            .y(Axis::new("RTT").unit("ms").from(0.0))
            .all_series(series),
    )
}

/// The distribution of payloads by number of packets.
fn payload_cdf(runs: &[Measured]) -> Vec<(f64, f64)> {
    let Some(run) = runs.first() else { return Vec::new() };
    let total: u64 = run.payloads.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    let mut points = Vec::new();
    for &(size, count) in &run.payloads {
        seen += count;
        points.push((f64::from(size), seen as f64 / total as f64));
    }
    points
}

pub(super) fn fig4(results: &Results) -> Figure {
    let panels = [(Case::Plain, "TSO off"), (Case::Offload, "TSO on")].map(|(case, title)| {
        let series = [0, 400, 1000]
            .map(|rtt| Series::steps(format!("{rtt} ms"), payload_cdf(results.table_iv(20, rtt, case))));
        Panel::new(title)
            .x(Axis::new("payload").unit("octets"))
            .y(Axis::new("share of data packets").range(0.0, 1.0))
            .all_series(series)
    });
    Figure::new("Payloads at 20 kB/s")
        .caption("Packets that carry more than 200 octets, in one iteration.")
        .columns(2)
        .panels(panels)
}

pub(super) fn fig5(results: &Results) -> Figure {
    let panels = LIMITS.map(|kbps| {
        let spread = |rtt: u64| {
            let times: Vec<f64> =
                results.table_iv(kbps, rtt, Case::Plain).iter().map(|run| run.mean_s).collect();
            let (low, high) = times.iter().fold((f64::MAX, f64::MIN), |(l, h), &t| (l.min(t), h.max(t)));
            // Of a swarm that was not run there is no point.
            (!times.is_empty()).then(|| (rtt as f64, mean(&times), low, high))
        };
        let points: Vec<_> = results.request.rtts_ms().into_iter().filter_map(spread).collect();
        let line = Series::line_points("mean", points.iter().map(|&(rtt, mean, ..)| (rtt, mean)))
            .with_band(points.iter().map(|&(rtt, _, low, high)| (rtt, low, high)));
        Panel::new(format!("{kbps} kB/s"))
            .x(Axis::new("RTT").unit("ms"))
            .y(Axis::new("mean completion time").unit("s").from(0.0))
            .series(line)
    });
    Figure::new("Completion time by RTT").columns(2).panel_height(150.0).panels(panels)
}

pub(super) fn fig6(results: &Results) -> Figure {
    let percents = [10.0, 25.0, 50.0, 75.0, 90.0, 99.0];
    let panels = [0, 400].map(|rtt| {
        let series = LIMITS.map(|kbps| {
            let runs = results.table_iv(kbps, rtt, Case::Plain);
            let gaps = runs.first().map(|run| run.gaps_ms.clone()).unwrap_or_default();
            Series::line_points(format!("{kbps} kB/s"), gaps.into_iter().zip(percents.map(|p| p / 100.0)))
        });
        Panel::new(format!("RTT {rtt} ms"))
            .x(Axis::new("time between sends of a leecher").unit("ms"))
            .y(Axis::new("share").range(0.0, 1.0))
            .all_series(series)
    });
    Figure::new("Time between sends").columns(2).panels(panels)
}

pub(super) fn fig7(results: &Results) -> Figure {
    let curve = |runs: &[Measured]| runs.first().map(|run| run.pieces.clone()).unwrap_or_default();
    let panel = |title: &str, of: &dyn Fn(u64) -> Vec<(f64, f64)>| {
        Panel::new(title)
            .x(Axis::new("time").unit("s"))
            .y(Axis::new("pieces at leechers"))
            .all_series([0, 400, 1000].map(|rtt| Series::line(format!("{rtt} ms"), of(rtt))))
    };
    let same = |kbps| move |rtt| curve(results.table_iv(kbps, rtt, Case::Plain));
    Figure::new("Pieces at leechers")
        .columns(2)
        .panel_height(150.0)
        .panel(panel("seed 20, leechers 20 kB/s", &same(20)))
        .panel(panel("seed 50, leechers 20 kB/s", &|rtt| curve(results.fast_seed(rtt))))
        .panel(panel("seed 50, leechers 50 kB/s", &same(50)))
        .panel(panel("seed 100, leechers 100 kB/s", &same(100)))
}

pub(super) fn fig8(results: &Results) -> Figure {
    let panels = [20, 50].map(|kbps| {
        let cells: Vec<f64> = results
            .systems()
            .filter(|(setting, _)| setting.leecher_kbps == kbps)
            .map(|(_, runs)| average(runs, |run| run.mean_s))
            .collect();
        let points = cells.into_iter().enumerate().map(|(place, time)| (place as f64, time));
        let names = results
            .systems()
            .filter(|(setting, _)| setting.leecher_kbps == kbps)
            .enumerate()
            .map(|(place, (setting, _))| (place as f64, super::results::systems_of(&setting.key).1));
        Panel::new(format!("{kbps} kB/s"))
            .x(Axis::new("where the seed is: sets {1,2,3}, {1,3,4}, {1,3,5}")
                .ticks(names.collect::<Vec<_>>()))
            .y(Axis::new("mean completion time").unit("s").from(0.0))
            .series(Series::points("iterations' mean", points))
    });
    Figure::new("Autonomous systems").columns(2).panels(panels)
}

#[cfg(test)]
mod tests {
    use super::super::results::Request;
    use super::*;

    #[test]
    fn of_swarms_that_were_not_run_nothing_is_drawn() {
        let request = Request { quick: false };
        let jobs = request.jobs();
        let one = |key: &str| {
            key.starts_with("20 kB/s, RTT 400 ms")
                .then(|| Measured { mean_s: 4_000.0, ..Measured::default() })
        };
        let results = Results::sorted(request, jobs.iter().map(|job| one(&job.key)).collect());
        let svg = fig5(&results).to_svg();
        assert_eq!(svg.matches("4,000").count(), 1, "the axis of the one that was");
        assert!(!svg.contains("299"), "{svg}");
    }
}
