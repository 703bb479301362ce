//! The share of one Reno flow beside N flows of TCP-LP or Vegas on the paper's link, in per cent, over many repetitions: `cargo run
//! --release -p cede-repro --example background_share [-- REPETITIONS]`. Single runs differ by ten points and more, so the figures' ten
//! say little. What it is held against is `background_ns2.tcl`, for the same runs in ns-2 (docs/validation.md).

use cede_repro::lcn10::Spread;
use cede_repro::lcn10::measure::measure;
use cede_repro::lcn10::setting::{Background, Choices, Kind, Part, Setting};

fn main() {
    let repetitions: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60);
    println!(
        "| rules | N | TCP % | standard deviation | smallest | largest |\n|---|---:|---:|---:|---:|---:|"
    );
    let all = [
        ("TCP-LP, 32 bits", Background::LP_32_BITS),
        ("TCP-LP, 64 bits", Background::LP_NS2),
        ("Vegas", Background::new("\"vegas\"")),
        ("Vegas, as in ns-3", Background::VEGAS_NS3),
        ("Vegas, as in Linux 6.12", Background::VEGAS_LINUX),
    ];
    for (name, rules) in all {
        for count in [1, 5, 10, 15] {
            let shares: Vec<f64> = (1..=repetitions).map(|seed| share(rules, count, seed)).collect();
            let Spread { mean, min, max, .. } = Spread::of(&shares);
            let squares: Vec<f64> = shares.iter().map(|share| (share - mean).powi(2)).collect();
            let deviation = Spread::of(&squares).mean.sqrt();
            println!("| {name} | {count} | {mean:.1} | {deviation:.1} | {min:.1} | {max:.1} |");
        }
    }
}

/// One run. Its repetition is its seed.
fn share(rules: Background, count: u32, repetition: u32) -> f64 {
    let parts = vec![Part::one("tcp", Kind::Reno), Part::one("lbe", Kind::Background(rules)).times(count)];
    let setting = Setting { parts, choices: Choices::PRIMARY, repetition, series: false };
    measure(&setting, &|| false).expect("the experiment's own scenario runs").tcp_percent()
}
