//! `cede lab gentle`: does a uTP flow make way for kernel TCP, and take the link back?

use super::kernel::SHARED;
use super::show::{Line, Progress, chart, holds_a_packet, table, unmeasured, unpredicted};
use crate::controllers;
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::{self, Screen};
use cede_real::StreamConfig;
use cede_testbed::gentle::{GentleSpec, Measured, Sample, Showing, measure, predict};
use cede_units::{Duration, Rate};
use serde_json::json;

/// `cede lab gentle`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The bottleneck's rate
    #[arg(long, value_name = "RATE", default_value = "10Mbit")]
    rate: Rate,
    /// The round-trip time of the empty path, by a delay line on the way back
    #[arg(long, value_name = "TIME", default_value = "0s")]
    rtt: Duration,
    /// How long a packet waits in the full buffer
    #[arg(long, value_name = "TIME", default_value = "1s")]
    buffer: Duration,
    /// How long the uTP flow is alone at first
    #[arg(long, value_name = "TIME", default_value = "30s")]
    alone: Duration,
    /// The congestion control of the kernel's TCP flow
    #[arg(long, value_name = "NAME", value_parser = SHARED, default_value = "cubic")]
    against: String,
    /// How long the TCP flow stays
    #[arg(long, value_name = "TIME", default_value = "40s")]
    joined: Duration,
    /// How long the uTP flow is alone again
    #[arg(long, value_name = "TIME", default_value = "40s")]
    again: Duration,
    /// The congestion controller of the uTP flow (cede list controllers)
    #[arg(short = 'C', long, value_name = "NAME", default_value = "ledbat")]
    controller: String,
    /// The queueing delay that it aims at, where it has a parameter `target`
    #[arg(long, value_name = "TIME")]
    target: Option<Duration>,
    /// Print JSON on standard output, and words on standard error
    #[arg(long)]
    json: bool,
}

impl Args {
    fn spec(&self) -> Result<GentleSpec, Failure> {
        controllers::stream(&self.controller, self.target)?;
        let stream = StreamConfig::with_controller(&self.controller);
        let (rate, buffer, target) = (self.rate, self.buffer, self.target);
        let spec = GentleSpec {
            rate,
            rtt: self.rtt,
            buffer,
            alone: self.alone,
            against: self.against.clone(),
            joined: self.joined,
            again: self.again,
            target,
            stream,
        };
        let parts = [spec.alone, spec.joined, spec.again, spec.buffer];
        if parts.iter().any(|part| part.is_zero()) || rate.bits_per_sec() == 0 {
            return Err(Failure::Usage("every time and the rate must be above zero".to_string()));
        }
        holds_a_packet(rate, buffer)?;
        Ok(spec)
    }
}

/// Measures, predicts, and shows both.
pub fn run(args: &Args) -> Result<(), Failure> {
    let spec = args.spec()?;
    let screen = Screen::new(args.json);
    let mut progress = Progress::begin();
    let whole = spec.duration().as_secs_f64();
    let show = |sample: &Sample| {
        let rates = format!("uTP {:.1}, TCP {:.1} Mbit/s", sample.utp_mbps, sample.tcp_mbps);
        progress.update(
            sample.t_s / whole,
            &format!("{:.0} s  queue {:.0} ms  {rates}", sample.t_s, sample.queue_ms),
        )
    };
    interrupt::insist_on_order();
    let measured = measure(&spec, &mut { show }).map_err(unmeasured)?;
    drop(progress);
    let predicted = predict(&spec, &mut || !interrupt::is_asked()).map_err(unpredicted)?;
    screen.say(&words(&screen, &spec, &measured, &predicted))?;
    if args.json { screen::print(&as_json(&spec, &measured, &predicted)) } else { Ok(()) }
}

fn lines(spec: &GentleSpec, measured: &Showing, predicted: &Showing) -> [Line; 8] {
    let name = spec.against.to_uppercase();
    let both = |what: &str, decimals, value: fn(&Showing) -> Option<f64>| {
        Line(what.replace("TCP", &name), decimals, value(measured), value(predicted))
    };
    [
        both("alone: mean queue (ms)", 1, |showing| Some(showing.alone_queue_ms)),
        both("alone: link used (%)", 2, |showing| Some(showing.alone_utilisation * 100.0)),
        both("beside TCP: uTP below a tenth after (s)", 1, |showing| showing.yielded_after_s),
        both("beside TCP: uTP's share from then on (%)", 1, |showing| Some(showing.share_beside * 100.0)),
        both("beside TCP: its rate, second half (Mbit/s)", 2, |showing| Some(showing.joined_tcp_mbps)),
        both("beside TCP: mean queue, second half (ms)", 0, |showing| Some(showing.joined_queue_ms)),
        both("alone again: link its own after (s)", 1, |showing| showing.own_again_after_s),
        both("alone again: mean queue, last 10 s (ms)", 1, |showing| Some(showing.again_queue_ms)),
    ]
}

fn words(screen: &Screen, spec: &GentleSpec, measured: &Measured, predicted: &Showing) -> String {
    let real = &measured.showing;
    let curve = |showing: &Showing, value: fn(&Sample) -> f64| {
        showing.samples.iter().map(|sample| (sample.t_s, value(sample))).collect::<Vec<_>>()
    };
    let mut text = table(screen, &lines(spec, real, predicted));
    let rates =
        vec![("uTP", curve(real, |sample| sample.utp_mbps)), ("TCP", curve(real, |sample| sample.tcp_mbps))];
    text += &chart(screen, "Measured rates at the receivers", "rate", "Mbit/s", rates);
    let queues = vec![
        ("measured", curve(real, |sample| sample.queue_ms)),
        ("predicted", curve(predicted, |sample| sample.queue_ms)),
    ];
    text += &chart(screen, "Queueing delay at the bottleneck", "delay", "ms", queues);
    text += &format!(
        "{}{} packets dropped; longest time between two samples {:.2} s{}\n",
        spec.target().map_or_else(String::new, |target| format!("target {target}; ")),
        measured.drops,
        measured.longest_gap_s,
        measured
            .latest_ms
            .map_or_else(String::new, |late| format!("; latest acknowledgement {late:.1} ms late"))
    );
    text
}

fn as_json(spec: &GentleSpec, measured: &Measured, predicted: &Showing) -> String {
    let value = json!({
        "target_ms": spec.target().map(Duration::as_millis_f64),
        "measured": measured.showing,
        "predicted": predicted,
        "drops": measured.drops,
        "longest_gap_s": measured.longest_gap_s,
        "latest_ms": measured.latest_ms,
        "against": spec.against,
    });
    format!("{value:#}\n")
}
