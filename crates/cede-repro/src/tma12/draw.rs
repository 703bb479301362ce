//! The paper's four figures.

use super::results::{Results, single_flow_key};
use crate::swarms::{Class, Measured, line_fit};
use cede_plot::{Axis, Figure, Panel, Series};

/// The distribution of completion times of all repetitions.
fn completion_cdf(runs: &[Measured], of: impl Fn(&Class) -> bool) -> Vec<(f64, f64)> {
    let leechers = runs.iter().flat_map(|run| run.classes.iter().skip(1)).filter(|class| of(class));
    let mut times: Vec<f64> = leechers.flat_map(|class| class.completion_s.iter().copied()).collect();
    times.sort_by(f64::total_cmp);
    let count = times.len() as f64;
    times.into_iter().enumerate().map(|(at, time)| (time, (at + 1) as f64 / count)).collect()
}

/// The queue's complementary distribution in the first repetition, of leechers of a class.
fn queue_ccdf(runs: &[Measured], of: impl Fn(&Class) -> bool) -> Vec<(f64, f64)> {
    let class = runs.first().and_then(|run| run.classes.iter().skip(1).find(|class| of(class)));
    class.map(|class| class.queue_ccdf.clone()).unwrap_or_default()
}

fn queue_panel(title: impl Into<String>, series: impl IntoIterator<Item = Series>) -> Panel {
    Panel::new(title)
        .x(Axis::new("queue").unit("ms"))
        .y(Axis::new("share of dequeues above").range(0.0, 1.0))
        .all_series(series)
}

fn time_panel(title: impl Into<String>, series: impl IntoIterator<Item = Series>) -> Panel {
    Panel::new(title)
        .x(Axis::new("completion time").unit("s"))
        .y(Axis::new("share of leechers").range(0.0, 1.0))
        .all_series(series)
}

pub(super) fn fig1(results: &Results) -> Figure {
    let series = [25, 100].map(|target| {
        let runs = results.of(&single_flow_key(target));
        let seed = runs.first().and_then(|run| run.class(0));
        let ccdf = seed.map(|seed| seed.queue_ccdf.clone()).unwrap_or_default();
        Series::line(format!("target {target} ms"), ccdf)
    });
    Figure::new("One uTP flow on 5 Mbit/s")
        .caption("The seed's queue at each dequeue from 5 s on.")
        .panel_height(190.0)
        .panel(queue_panel("queue", series))
}

pub(super) fn fig2(results: &Results) -> Figure {
    let titled = [(31, "TCP and uTP (31)"), (10, "uTP (10)"), (5, "TCP (5)")];
    let queues =
        titled.map(|(mask, title)| Series::line(title, queue_ccdf(results.homogeneous(mask, 1), |_| true)));
    let times = titled
        .map(|(mask, title)| Series::line(title, completion_cdf(results.homogeneous(mask, 1), |_| true)));
    Figure::new("Homogeneous swarms at 1 Mbit/s")
        .caption("Left: queues of the leechers' uplinks in one repetition. Right: completion times of all repetitions.")
        .columns(2)
        .panel_height(190.0)
        .shared_legend(true)
        .panel(queue_panel("queue", queues))
        .panel(time_panel("completion", times))
}

pub(super) fn fig3(results: &Results) -> Figure {
    let classes = [("p13", "TCP peers (13)"), ("p14", "uTP peers (14)")];
    let panels = [25, 50, 75].into_iter().flat_map(|percent| {
        let runs = results.mixed(percent, 1);
        let is = |name: &'static str| move |class: &Class| class.name.starts_with(name);
        let queues = classes.map(|(name, title)| Series::line(title, queue_ccdf(runs, is(name))));
        let times = classes.map(|(name, title)| Series::line(title, completion_cdf(runs, is(name))));
        let title = format!("{percent} % TCP peers");
        [queue_panel(title.clone(), queues), time_panel(title, times)]
    });
    Figure::new("Heterogeneous swarms at 1 Mbit/s")
        .columns(2)
        .panel_height(150.0)
        .shared_legend(true)
        .panels(panels)
}

/// Share of TCP in per cent, mean queue in ms and completion time of each run of the paper's swarms at 1 Mbit/s.
pub(super) fn points(results: &Results, capacity_mbps: u64) -> Vec<[f64; 3]> {
    let homogeneous = [31, 10, 5].into_iter().flat_map(|mask| results.homogeneous(mask, capacity_mbps));
    let mixed = [25, 50, 75].into_iter().flat_map(|percent| results.mixed(percent, capacity_mbps));
    homogeneous.chain(mixed).map(|run| [100.0 * run.tcp_share, run.queue_ms, run.mean_s]).collect()
}

pub(super) fn fig4(results: &Results) -> Figure {
    let points = points(results, 1);
    let panel = |title: &str, axis: Axis, of: &dyn Fn(&[f64; 3]) -> (f64, f64), fit: Vec<(f64, f64)>| {
        let mut panel = Panel::new(title)
            .x(axis)
            .y(Axis::new("mean completion time").unit("s"))
            .series(Series::points("swarms", points.iter().map(of)));
        if let Some((intercept, slope, _)) = line_fit(&fit) {
            let ends =
                fit.iter().fold((f64::MAX, f64::MIN), |(low, high), &(x, _)| (low.min(x), high.max(x)));
            let line = [ends.0, ends.1].map(|x| (x, intercept + slope * x));
            panel = panel.series(Series::line("regression", line));
        }
        panel
    };
    let by_share = |point: &[f64; 3]| (point[0], point[2]);
    let by_queue = |point: &[f64; 3]| (point[1], point[2]);
    let with_tcp = points.iter().filter(|point| point[0] > 1.0).map(by_share).collect();
    Figure::new("Completion time by traffic and by queue")
        .caption("Each point is one run at 1 Mbit/s. The regression by share leaves out swarms with 1 % of TCP and less, as the paper's those without.")
        .columns(2)
        .panel_height(190.0)
        .panel(panel("share of TCP", Axis::new("octets over TCP").unit("%"), &by_share, with_tcp))
        .panel(panel("queue", Axis::new("mean queue").unit("ms"), &by_queue, points.iter().map(by_queue).collect()))
}
