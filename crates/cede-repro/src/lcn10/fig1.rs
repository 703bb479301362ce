//! Figure 1: congestion windows and queue over time, Reno alone and beside LEDBAT, NICE and TCP-LP.

use super::claim::{Claim, Judgement, known, stays_within};
use super::measure::Traces;
use super::plan::{FigureNumber, Point};
use super::results::{Metric, Results, Spread};
use super::setting::{BUFFER_PACKETS, Background, Kind, Ledbat, PACKET_MS, Part, TARGET_MS};
use super::simulators::Compared;
use cede_plot::{Axis, Dash, Figure, Legend, Panel, Series};

/// The start is over: slow start, and LEDBAT's climb at one packet per round trip.
const SETTLED_S: f64 = 20.0;

pub(super) fn points() -> Vec<Point> {
    let reno = || Part::one("tcp", Kind::Reno);
    let ledbat = || Part::one("lbe", Kind::Ledbat(Ledbat::PAPER));
    let over_time = |curve, parts| Point { series: true, ..Point::new(curve, 1.0, parts) };
    let other = |kind| Part::one("lbe", Kind::Background(kind));
    let (nice, lp) = (other(Background::NICE_LINUX26), other(Background::LP_32_BITS));
    let (known, equations) = (other(Background::LP_KNOWN_RATE), other(Background::LP_EQUATIONS));
    vec![
        over_time("reno+nice", vec![reno(), nice.clone()]),
        over_time("nice", vec![nice]),
        over_time("reno+lp", vec![reno(), lp.clone()]),
        over_time("lp", vec![lp]),
        over_time("lp-known", vec![known]),
        over_time("lp-equations", vec![equations]),
        over_time("reno", vec![reno()]),
        over_time("reno+ledbat", vec![reno(), ledbat()]),
        over_time("ledbat", vec![ledbat()]),
        Point::new("ledbat-100", 1.0, vec![Part::one("lbe", Kind::Ledbat(Ledbat::with_target_ms(100.0)))]),
    ]
}

/// A column of the figure: its runs, and the flows in them with their styles.
struct Column {
    curve: &'static str,
    title: &'static str,
    flows: &'static [(&'static str, usize)],
}

const OTHERS: [Column; 5] = [
    Column { curve: "reno+nice", title: "Reno and NICE", flows: &[("Reno", 0), ("NICE", 2)] },
    Column { curve: "nice", title: "NICE alone", flows: &[("NICE", 2)] },
    Column { curve: "reno+lp", title: "Reno and TCP-LP", flows: &[("Reno", 0), ("TCP-LP", 3)] },
    Column { curve: "lp", title: "TCP-LP alone", flows: &[("TCP-LP", 3)] },
    Column { curve: "lp-equations", title: "TCP-LP (equations) alone", flows: &[("TCP-LP", 3)] },
];

const COLUMNS: [Column; 3] = [
    Column { curve: "reno", title: "Reno alone", flows: &[("Reno", 0)] },
    Column { curve: "reno+ledbat", title: "Reno and LEDBAT", flows: &[("Reno", 0), ("LEDBAT", 1)] },
    Column { curve: "ledbat", title: "LEDBAT alone", flows: &[("LEDBAT", 1)] },
];

pub(super) fn draw(results: &Results) -> Figure {
    sheet(results, &COLUMNS, "Fig. 1: congestion windows and queue over time").subtitle(
        "Reno fills the buffer and halves; LEDBAT alone stops at its target of 25 ms and yields to Reno",
    )
}

pub(super) fn draw_others(results: &Results) -> Figure {
    sheet(results, &OTHERS, "Fig. 1, continued: NICE and TCP-LP")
        .subtitle(
            "NICE with a floor of two packets; TCP-LP as Linux 2.6 had it on 32 bits, and by its equations",
        )
        .width(1200.0)
}

fn sheet(results: &Results, columns: &[Column], title: &str) -> Figure {
    let windows = columns.iter().map(|column| window_panel(results, column));
    let queues = columns.iter().map(|column| queue_panel(results, column.curve));
    Figure::new(title)
        .caption(
            "10 Mbit/s, 25 ms one way, 100 packets of buffer, 1500-octet packets; one run with simultaneous starts, \
             sampled every 50 ms. Reno's first slow start goes beyond the picture (285 packets). Queue: mean wait of the packets that left in 50 ms, in packets of 1.2 ms.",
        )
        .columns(columns.len())
        .panel_height(150.0)
        .shared_legend(true)
        .share_x()
        .share_y()
        .panels(windows)
        .panels(queues)
}

fn window_panel(results: &Results, column: &Column) -> Panel {
    let traces = results.traces(column.curve, 1.0);
    let series = column.flows.iter().enumerate().filter_map(|(flow, &(name, slot))| {
        let window = &traces?.cwnd_packets[flow];
        Some(Series::line(name, timed(traces?, window)).slot(slot).width(1.2))
    });
    Panel::new(column.title)
        .x(Axis::new("time").unit("s").range(0.0, 120.0))
        .y(Axis::new("window").unit("packets").from(0.0).to(160.0))
        .all_series(series)
}

fn queue_panel(results: &Results, curve: &str) -> Panel {
    let traces = results.traces(curve, 1.0);
    let series = traces.map(|traces| {
        Series::line("queue", timed(traces, &traces.queue_packets)).slot(6).dash(Dash::Solid).width(1.2)
    });
    // The sawtooth leaves no room for words in the other two columns.
    let label = |name| if curve == "ledbat" { name } else { "" };
    Panel::new("")
        .x(Axis::new("time").unit("s").range(0.0, 120.0))
        .y(Axis::new("queue").unit("packets").range(0.0, 110.0))
        .all_series(series)
        .hline(BUFFER_PACKETS, label("buffer"))
        .hline(TARGET_MS / PACKET_MS, label("target of LEDBAT"))
        .legend(Legend::None)
}

fn timed(traces: &Traces, values: &[Option<f64>]) -> Vec<(f64, f64)> {
    traces.t_s.iter().zip(values).map(|(&t, value)| (t, value.unwrap_or(f64::NAN))).collect()
}

/// The values of a trace once the start is over.
fn settled(traces: &Traces, values: &[Option<f64>]) -> Vec<f64> {
    timed(traces, values)
        .into_iter()
        .filter(|&(t, v)| t >= SETTLED_S && v.is_finite())
        .map(|(_, v)| v)
        .collect()
}

pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let along = |curve: &str, metric| results.along(curve, metric);
    vec![
        Claim::new(
            FigureNumber::Fig1,
            "II, Fig. 1",
            "Reno fills the buffer, loses, and halves its window, over and over.",
            "alone, after 20 s: the queue reaches 95 % of the buffer at least, and the smallest window is between 0.45 and 0.55 of the largest",
            results.traces("reno", 1.0).map_or_else(|| Judgement::open("not run"), sawtooth),
        )
        .of(2),
        Claim::new(
            FigureNumber::Fig1,
            "II-C, Fig. 1",
            "LEDBAT settles where its queueing delay equals the target.",
            "alone, after 20 s: the queue stays within 2 packets of tau = 25 ms (20.8 packets) and nothing is lost",
            results.traces("ledbat", 1.0).map_or_else(
                || Judgement::open("not run"),
                |traces| settles(traces, results.at("ledbat", 1.0, Metric::LossPercent)),
            ),
        )
        .of(2),
        Claim::new(
            FigureNumber::Fig1,
            "II-C, Fig. 1",
            "LEDBAT gives way to Reno.",
            "beside one Reno flow: TCP % of 95 or more",
            stays_within(&along("reno+ledbat", Metric::TcpPercent), 95.0, 100.0, 2),
        )
        .of(2),
        Claim::new(
            FigureNumber::Fig1,
            "II, VI",
            "LEDBAT alone uses the link fully.",
            "alone at 25 ms and at 100 ms: eta of 0.98 or more",
            stays_within(
                &[along("ledbat", Metric::Efficiency), along("ledbat-100", Metric::Efficiency)].concat(),
                0.98,
                1.0,
                4,
            ),
        )
        .of(2)
        .note("what is missing to 1 is the climb from two packets without slow start"),
        Claim::new(
            FigureNumber::Fig1,
            "II-A, Fig. 1",
            "TCP-LP's window is a sawtooth like Reno's.",
            "alone, after 20 s: the smallest window is at most 0.7 of the largest; eta of 0.8 or more",
            lp_sawtooth(results, "lp"),
        )
        .of(2)
        .note("Linux 2.6 with 32 bits; it has lost its sense of congestion by then"),
        Claim::new(
            FigureNumber::Fig1,
            "II-A, Fig. 1",
            "The same, with the rate of the peer's clock known.",
            "the same",
            lp_sawtooth(results, "lp-known"),
        )
        .of(2)
        .note("thresholds a seventh above a delay of 25 ms are 4 ms: three packets of its own are congestion"),
        Claim::new(
            FigureNumber::Fig1,
            "II-A, Fig. 1",
            "The same, by the paper's equations.",
            "the same",
            lp_sawtooth(results, "lp-equations"),
        )
        .of(2),
        Claim::new(
            FigureNumber::Fig1,
            "II-B, Fig. 1",
            "NICE is smooth around the link's capacity.",
            "alone, after 20 s: windows within 5 packets of each other; eta of 0.98 or more",
            nice_smooth(results),
        )
        .of(2),
    ]
}

/// The windows of a curve's one flow once the start is over, and eta.
fn alone(results: &Results, curve: &str) -> Option<(Spread, f64)> {
    let traces = results.traces(curve, 1.0)?;
    let window = Spread::of(&settled(traces, &traces.cwnd_packets[0]));
    Some((window, results.at(curve, 1.0, Metric::Efficiency).mean))
}

fn lp_sawtooth(results: &Results, curve: &str) -> Judgement {
    let Some((window, eta)) = alone(results, curve) else { return Judgement::open("not run") };
    let ratio = window.min / window.max;
    let text = format!("window between {:.0} and {:.0} packets, eta {eta:.3}", window.min, window.max);
    Judgement::new(text, known(&[ratio, eta], ratio <= 0.7 && eta >= 0.8))
}

fn nice_smooth(results: &Results) -> Judgement {
    let Some((window, eta)) = alone(results, "nice") else { return Judgement::open("not run") };
    let text = format!("window between {:.0} and {:.0} packets, eta {eta:.3}", window.min, window.max);
    Judgement::new(text, known(&[window.min, eta], window.max - window.min <= 5.0 && eta >= 0.98))
}

fn sawtooth(traces: &Traces) -> Judgement {
    let queue = Spread::of(&settled(traces, &traces.queue_packets));
    let window = Spread::of(&settled(traces, &traces.cwnd_packets[0]));
    let (full, ratio) = (queue.max / BUFFER_PACKETS, window.min / window.max);
    let text = format!(
        "queue up to {:.0} % of the buffer; window between {:.0} and {:.0} packets (ratio {ratio:.2})",
        full * 100.0,
        window.min,
        window.max
    );
    Judgement::new(text, known(&[full, ratio], full >= 0.95 && (0.45..=0.55).contains(&ratio)))
}

fn settles(traces: &Traces, loss: Spread) -> Judgement {
    let queue = Spread::of(&settled(traces, &traces.queue_packets));
    let target = TARGET_MS / PACKET_MS;
    let near = (queue.min - target).abs() <= 2.0 && (queue.max - target).abs() <= 2.0;
    let text = format!("queue between {:.1} and {:.1} packets, P_l {:.3} %", queue.min, queue.max, loss.max);
    Judgement::new(text, known(&[queue.min, loss.max], near && loss.max == 0.0))
}

pub(super) const COMPARED: &[Compared] = &[
    Compared { curve: "reno", axis: "Reno alone", metrics: ALONE },
    Compared { curve: "ledbat", axis: "LEDBAT alone, 25 ms", metrics: ALONE },
    Compared { curve: "ledbat-100", axis: "LEDBAT alone, 100 ms", metrics: ALONE },
    Compared { curve: "nice", axis: "NICE alone", metrics: ALONE },
    Compared { curve: "lp", axis: "TCP-LP alone, 32 bits", metrics: ALONE },
    Compared { curve: "lp-known", axis: "TCP-LP alone, rate known", metrics: ALONE },
];

const ALONE: &[(Metric, &str)] =
    &[(Metric::Efficiency, "eta"), (Metric::QueueIndex, "B"), (Metric::LossPercent, "P_l (%)")];

#[cfg(test)]
mod tests {
    use super::*;
    use cede_plot::Verdict;

    fn traces(queue: impl Fn(usize) -> f64, window: impl Fn(usize) -> f64) -> Traces {
        Traces {
            t_s: (0..120).map(f64::from).collect(),
            cwnd_packets: vec![(0..120).map(|k| Some(window(k))).collect()],
            queue_packets: (0..120).map(|k| Some(queue(k))).collect(),
        }
    }

    #[test]
    fn a_sawtooth_is_told_from_a_plateau() {
        let saw = traces(|k| (k % 50) as f64 * 2.0, |k| 70.0 + (k % 50) as f64 * 1.4);
        assert_eq!(sawtooth(&saw).verdict, Verdict::Holds);
        assert_eq!(sawtooth(&traces(|_| 99.0, |_| 140.0)).verdict, Verdict::Fails);
        assert_eq!(
            sawtooth(&traces(|k| (k % 50) as f64, |k| 70.0 + (k % 50) as f64)).verdict,
            Verdict::Fails
        );
    }

    #[test]
    fn a_queue_at_its_target_is_told_from_one_that_swings() {
        let no_loss = Spread::of(&[0.0]);
        assert_eq!(settles(&traces(|_| 21.0, |_| 60.0), no_loss).verdict, Verdict::Holds);
        assert_eq!(settles(&traces(|k| 15.0 + (k % 10) as f64, |_| 60.0), no_loss).verdict, Verdict::Fails);
        assert_eq!(settles(&traces(|_| 21.0, |_| 60.0), Spread::of(&[0.1])).verdict, Verdict::Fails);
    }
}
