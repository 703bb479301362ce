//! Draws two sample figures, as SVG, PNG and in a report, into the directory given as argument.
//!
//! The data are made up by formula: they show what figures look like and mean nothing.

use cede_plot::html::{Report, Section};
use cede_plot::{Axis, Cell, Figure, Legend, Panel, Series, Table, Verdict, terminal};
use std::path::PathBuf;
use std::{env, error, fs};

fn main() -> Result<(), Box<dyn error::Error>> {
    let directory = PathBuf::from(env::args().nth(1).unwrap_or_else(|| "gallery".into()));
    fs::create_dir_all(&directory)?;
    for (name, figure) in [("time-series", time_series()), ("sweep", sweep()), ("styles", styles())] {
        fs::write(directory.join(name).with_extension("svg"), figure.to_svg())?;
        fs::write(directory.join(name).with_extension("png"), figure.to_png(2.0)?)?;
    }
    fs::write(directory.join("report.html"), report().to_html())?;
    println!("{}", terminal::charts(time_series().panel_list(), 90, 18, true));
    println!("{}", terminal::table(&table(), 90, true));
    println!("{}", terminal::sparkline(&(0..200).map(|t| noise(t, 3)).collect::<Vec<_>>(), 60));
    Ok(())
}

/// A value from -1 to 1 that looks random (a few rounds of an integer hash).
fn noise(index: u32, stream: u32) -> f64 {
    let mut h = index.wrapping_mul(0x9e37_79b9) ^ stream.wrapping_mul(0x85eb_ca6b);
    for _ in 0..3 {
        h = (h ^ (h >> 15)).wrapping_mul(0x2c1b_3c6d);
    }
    f64::from(h >> 8) / f64::from(1u32 << 23) - 1.0
}

/// Two flows on one link: one yields while the other is there.
fn time_series() -> Figure {
    let time = |i: u32| f64::from(i) / 50.0;
    let present = |t: f64| if (20.0..40.0).contains(&t) { 1.0 - (-(t - 20.0) / 1.5).exp() } else { 0.0 };
    let gone = |t: f64| if t >= 40.0 { 1.0 - (-(t - 40.0) / 2.0).exp() } else { 1.0 };
    let first = move |i: u32| {
        (time(i), (9.6 * (1.0 - present(time(i))) * gone(time(i)) + 0.4 * noise(i, 1)).max(0.05))
    };
    let second = move |i: u32| (time(i), 9.5 * present(time(i)) + 0.3 * noise(i, 2));
    let sawtooth = |t: f64| if (20.0..40.0).contains(&t) { 30.0 + (t * 13.0) % 65.0 } else { 24.0 };
    let delay = move |i: u32| (time(i), sawtooth(time(i)) + 4.0 * noise(i, 3));
    let rates = Panel::new("Sending rate")
        .x(Axis::new("time").unit("s"))
        .y(Axis::new("rate").unit("Mbit/s").from(0.0))
        .series(Series::line("scavenger", (0..3000).map(first)))
        .series(Series::line("loss-based", (1000..2000).map(second)))
        .region(20.0, 40.0, "both active")
        .hline(10.0, "capacity 10 Mbit/s");
    let delays = Panel::new("Queueing delay")
        .x(Axis::new("time").unit("s"))
        .y(Axis::new("delay").unit("ms").from(0.0))
        .series(Series::line("bottleneck queue", (0..3000).map(delay)).slot(2))
        .region(20.0, 40.0, "")
        .hline(25.0, "target 25 ms");
    Figure::new("A scavenger flow yields to a loss-based flow and takes the link back")
        .subtitle("Bottleneck of 10 Mbit/s, 100 ms of buffer, base round-trip time 40 ms")
        .caption("Made-up data. Rates are means over 20 ms.")
        .share_x()
        .panel(rates)
        .panel(delays)
}

/// Six panels of curves over a parameter, with the range over seeds.
fn sweep() -> Figure {
    let buffers = [16.0f64, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
    let panel = |k: u32| {
        let rtt = [10, 20, 50, 100, 200, 400][k as usize];
        let curve = |stream: u32, top: f64, bend: f64| {
            let value = move |b: f64| top * b / (b + bend * f64::from(rtt));
            let wobble = move |b: f64| 0.02 + 0.05 * noise(b as u32 + k, stream).abs();
            let middle = move |b: f64| value(b) + 0.02 * noise(b as u32, stream + k);
            let points: Vec<_> = buffers.iter().map(|&b| (b, middle(b))).collect();
            let band: Vec<_> =
                buffers.iter().map(|&b| (b, middle(b) - wobble(b), middle(b) + wobble(b))).collect();
            (points, band)
        };
        let (a, a_band) = curve(5, 0.98, 0.05);
        let (b, b_band) = curve(6, 0.95, 0.4);
        let (c, c_band) = curve(7, 0.6, 0.15);
        Panel::new(format!("Base round-trip time {rtt} ms"))
            .x(Axis::new("buffer").unit("KiB").log10())
            .y(Axis::new("share of the link").range(0.0, 1.05))
            .series(Series::line_points("alone", a).with_band(a_band))
            .series(Series::line_points("beside one flow", b).with_band(b_band))
            .series(Series::line_points("beside four flows", c).with_band(c_band))
            .vline(f64::from(rtt) * 1.25, "BDP")
    };
    Figure::new("Use of the link over buffer size")
        .subtitle("Mean over ten seeds; the shading spans least to greatest")
        .caption("Made-up data. The dashed line marks one bandwidth-delay product.")
        .columns(3)
        .share_x()
        .share_y()
        .panels((0..6).map(panel))
}

/// All eight styles, both legends inside the room of a panel, fixed ticks, gaps, large numbers.
fn styles() -> Figure {
    let line = |k: u32| (0..9).map(move |i| (f64::from(i), f64::from(k) + 0.3 * noise(i, k)));
    let gap = |i: u32| if i % 40 == 39 { f64::NAN } else { 4e6 + 2.5e6 * (f64::from(i) / 30.0).sin() };
    let names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
    let all = Panel::new("Eight styles")
        .y(Axis::new("value"))
        .x(Axis::new("choice").ticks((0..9u8).map(|i| (f64::from(i), format!("choice {i}")))))
        .all_series((0..8u32).map(|k| Series::line_points(names[k as usize], line(k))))
        .legend(Legend::Below);
    let steps = Panel::new("Steps, gaps and a crowd of labels")
        .x(Axis::new("sequence number"))
        .y(Axis::new("bytes"))
        .series(Series::line("with gaps", (0..200).map(|i| (f64::from(i) * 1000.0, gap(i)))))
        .series(Series::steps("steps", (0..11).map(|i| (f64::from(i) * 2e4, 1e6 * f64::from(i % 4)))))
        .series(Series::points("points", (0..60).map(|i| (f64::from(i) * 3300.0, 5e6 + 2e6 * noise(i, 9)))))
        .region(5e4, 8e4, "first")
        .region(7e4, 9e4, "second one")
        .vline(1e5, "here")
        .vline(1.04e5, "and here")
        .hline(8e6, "limit")
        .legend(Legend::Inside);
    Figure::new("Styles").columns(2).panel(all).panel(steps)
}

/// The figures in a page.
fn report() -> Report {
    let rerun = Section::new("How to draw this again")
        .code("shell", "cargo run -p cede-plot --example gallery -- out");
    Report::new("A gallery of figures")
        .lead("What figures, tables and prose look like. The data are made up by formula and **mean nothing**.")
        .fact("seed", "none")
        .fact("panels", "10")
        .section(
            Section::new("Over time")
                .prose("One panel over the other with a shared time axis. Move the pointer over a line to read `values`.")
                .figure(&time_series()),
        )
        .section(Section::new("Over a parameter").figure(&sweep()).table(&table()))
        .section(Section::new("Styles").figure(&styles()).details(&rerun).code("TOML", "[link]\nrate = \"10 Mbit/s\""))
        .footer("Drawn by `cede-plot`.")
}

fn table() -> Table {
    Table::new(["expectation", "measured", "bound", "verdict"])
        .caption("What was expected and what came")
        .row(["the flow yields".into(), Cell::number(0.031, 3), Cell::number(0.05, 3), Verdict::Holds.into()])
        .row([
            "the queue stays short".into(),
            Cell::number(61.2, 1),
            Cell::number(25.0, 1),
            Verdict::Fails.into(),
        ])
        .row(["shares are even".into(), Cell::number(0.92, 2), "–".into(), Verdict::Open.into()])
}
