//! The pictures: throughput and queue over time, and what decides the duel with BBR.

use super::execute::Results;
use super::measure::{Measured, mean};
use super::setting::{
    BUFFER_BYTES, CAPACITY_MBPS, CONTENDER, Contender, DUEL_END_S, PHASES, RATES_MBPS, RTT_MS,
    Series as Varied, TARGET_MS,
};
use cede_plot::{Axis, Figure, Legend, Panel, Series};

/// The flows of the script with their styles.
const FLOWS: [(&str, &str, usize); 4] =
    [(CONTENDER, "scavenger", 0), ("cubic", "CUBIC", 1), ("bbr", "BBR", 2), ("proteus-p", "Proteus-P", 3)];
/// The end of a duel that counts, in seconds.
const COUNTED_S: f64 = 50.0;

fn over_time<'a>(run: &'a Measured, values: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + 'a {
    run.t_s.iter().copied().zip(values.iter().copied())
}

fn with_phases(panel: Panel) -> Panel {
    PHASES.iter().fold(panel, |panel, phase| panel.vline(phase.from_s, ""))
}

fn time_axis() -> Axis {
    Axis::new("time").unit("s").range(0.0, 450.0)
}

fn throughput_panel(results: &Results, contender: Contender) -> Panel {
    let run = results.script(contender).first();
    let series = FLOWS.into_iter().filter_map(|(flow, title, slot)| {
        let run = run?;
        let trace = run.flows.iter().find(|trace| trace.name == flow)?;
        // A flow that has not begun or has ended has no line.
        let shown =
            over_time(run, &trace.mbps).map(|(t, mbps)| (t, if mbps > 0.0 { mbps } else { f64::NAN }));
        Some(Series::line(title, shown).slot(slot).width(1.2))
    });
    let panel = Panel::new(contender.title())
        .x(time_axis())
        .y(Axis::new("throughput").unit("Mbit/s").range(0.0, 50.0))
        .all_series(series);
    with_phases(panel)
}

fn queue_panel(results: &Results, contender: Contender) -> Panel {
    let series = results
        .script(contender)
        .first()
        .map(|run| Series::line("queueing delay", over_time(run, &run.queue_ms)).slot(6).width(1.2));
    let buffer_ms = f64::from(BUFFER_BYTES) * 8.0 / CAPACITY_MBPS / 1e3;
    let panel = Panel::new(contender.title())
        .x(time_axis())
        .y(Axis::new("queue").unit("ms").range(0.0, 130.0))
        .all_series(series)
        .hline(buffer_ms, "buffer")
        .legend(Legend::None);
    let panel = match contender.target_ms() {
        Some(target_ms) => panel.hline(f64::from(target_ms), "target"),
        None => panel,
    };
    with_phases(panel)
}

pub(super) fn throughput(results: &Results) -> Figure {
    Figure::new("Throughput beside CUBIC, BBR and Proteus-P")
        .subtitle("LEDBAT++ yields to CUBIC more than LEDBAT does, and takes nearly everything from BBR")
        .caption(
            "50 Mbit/s, 30 ms, 750 kB of buffer. Payload that reached the receivers, each second of one run. CUBIC from \
             0 to 150 s, BBR from 200 to 300 s, Proteus-P from 350 s; the scavenger from 50 s.",
        )
        .columns(2)
        .panel_height(170.0)
        .shared_legend(true)
        .share_x()
        .share_y()
        .panels(Contender::ALL.map(|contender| throughput_panel(results, contender)))
}

pub(super) fn queue(results: &Results) -> Figure {
    Figure::new("Queueing delay")
        .caption("The same runs: the mean wait of the packets that left the bottleneck in each second.")
        .columns(2)
        .panel_height(150.0)
        .share_x()
        .share_y()
        .panels(Contender::ALL.map(|contender| queue_panel(results, contender)))
}

/// The end of a duel: the contender's share in percent.
pub(super) fn duel_share(run: &Measured) -> f64 {
    let end = f64::from(DUEL_END_S);
    100.0 * run.share("bbr", end - COUNTED_S, end)
}

/// The end of a duel: the mean wait, and the base delay that BBR believes in, both in milliseconds.
pub(super) fn duel_delays(run: &Measured) -> (f64, f64) {
    let end = f64::from(DUEL_END_S);
    (run.queue_ms(end - COUNTED_S, end), run.base_ms("bbr", end - COUNTED_S, end))
}

/// The queue that BBR's window allows at the end of a duel: the mean, and what a twentieth of the time exceeds.
pub(super) fn duel_allowed(run: &Measured) -> (f64, f64) {
    let end = f64::from(DUEL_END_S);
    run.allowed_queue_ms("bbr", end - COUNTED_S, end)
}

fn shares(results: &Results, varied: Varied, name: &str) -> Series {
    let of = results.duels.iter().filter(|(duel, _)| duel.series == varied);
    let points: Vec<(f64, f64, f64, f64)> = of
        .map(|(duel, runs)| {
            let shares: Vec<f64> = runs.iter().map(duel_share).collect();
            let (mean, least, most) = super::statements::spread(&shares);
            (duel.x, mean, least, most)
        })
        .collect();
    Series::line_points(name, points.iter().map(|&(x, mean, ..)| (x, mean)))
        .with_band(points.iter().map(|&(x, _, least, most)| (x, least, most)))
}

fn share_axis() -> Axis {
    Axis::new("share of LEDBAT++").unit("%").range(0.0, 100.0)
}

pub(super) fn why(results: &Results) -> Figure {
    let own = CAPACITY_MBPS as u32;
    let at = |(slot, rate): (usize, u32)| {
        shares(results, Varied::Target(rate), &format!("{rate} Mbit/s")).slot(slot)
    };
    let targets = Panel::new("base RTT of 30 ms")
        .x(Axis::new("target").unit("ms").range(0.0, 100.0))
        .y(share_axis())
        .all_series([own].into_iter().chain(RATES_MBPS).enumerate().map(at))
        .vline(f64::from(RTT_MS), "base RTT")
        .vline(1.5 * f64::from(RTT_MS), "1.5 base RTT");
    let rtts = Panel::new("target of 60 ms, 50 Mbit/s")
        .x(Axis::new("base RTT").unit("ms").range(0.0, 130.0))
        .y(share_axis())
        .series(shares(results, Varied::Rtt, "over the base RTT").slot(0))
        .vline(f64::from(TARGET_MS), "target")
        .vline(f64::from(TARGET_MS) / 1.5, "target / 1.5")
        .legend(Legend::None);
    Figure::new("What decides between LEDBAT++ and BBR")
        .subtitle(
            "The target against the queue that BBR's window allows: one base RTT at least, and up to half of one more after each \
             slowdown of LEDBAT++",
        )
        .caption(
            "LEDBAT++ (libutp) from 0 s, BBR from 50 s; the share of the last 50 s of 250. Means and ranges of the repetitions. \
             Where nothing is said, 50 Mbit/s, 30 ms, ten rounds and two bandwidth-delay products.",
        )
        .columns(2)
        .panel_height(190.0)
        .panels([targets, rtts].into_iter().chain(bbrs_own(results)))
}

/// What BBR remembers and allows itself.
fn bbrs_own(results: &Results) -> [Panel; 2] {
    let memory = Panel::new("target of 38 ms")
        .x(Axis::new("rounds that BBR remembers").log10().range(1.5, 30.0).ticks(ticks(&[2, 4, 10, 20])))
        .y(share_axis())
        .series(shares(results, Varied::Memory, "over BBR's memory").slot(0))
        .legend(Legend::None);
    let gain = Panel::new("target of 45 ms")
        .x(Axis::new("products that BBR allows itself").range(1.25, 2.75))
        .y(share_axis())
        .series(shares(results, Varied::Gain, "over BBR's gain").slot(0))
        .legend(Legend::None);
    [memory, gain]
}

fn ticks(values: &[u32]) -> Vec<(f64, String)> {
    values.iter().map(|&value| (f64::from(value), value.to_string())).collect()
}

/// The mean over repetitions.
pub(super) fn average(runs: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    mean(runs.iter().map(of))
}
