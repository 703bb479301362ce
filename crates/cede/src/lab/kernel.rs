//! `cede lab kernel`: do the models of TCP behave as the kernel's own?

use super::show::{Curve, Line, Progress, chart, holds_a_packet, table, unmeasured, unpredicted};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::{self, Screen};
use cede_testbed::kernel::{KernelSpec, Measured, Phase, PhaseShowing, Sample, Showing, measure, predict};
use cede_units::{Duration, Rate};
use serde_json::json;

/// Congestion controls that the kernel and the registry know by the same name.
pub(super) const SHARED: [&str; 3] = ["cubic", "reno", "bbr"];

/// `cede lab kernel`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The flow that is there first, and leaves first
    #[arg(value_parser = SHARED, default_value = "cubic")]
    first: String,
    /// The flow that joins it, and stays
    #[arg(value_parser = SHARED, default_value = "bbr")]
    second: String,
    /// The bottleneck's rate
    #[arg(long, value_name = "RATE", default_value = "20Mbit")]
    rate: Rate,
    /// The round-trip time of the empty path
    #[arg(long, value_name = "TIME", default_value = "40ms")]
    rtt: Duration,
    /// How long a packet waits in the full buffer
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    buffer: Duration,
    /// How long each flow is alone
    #[arg(long, value_name = "TIME", default_value = "40s")]
    alone: Duration,
    /// How long both are there
    #[arg(long, value_name = "TIME", default_value = "80s")]
    together: Duration,
    /// Print JSON on standard output, and words on standard error
    #[arg(long)]
    json: bool,
}

impl Args {
    fn spec(&self) -> Result<KernelSpec, Failure> {
        let spec = KernelSpec {
            controls: [self.first.clone(), self.second.clone()],
            rate: self.rate,
            rtt: self.rtt,
            buffer: self.buffer,
            alone: self.alone,
            together: self.together,
        };
        let times = [spec.alone, spec.together, spec.buffer];
        if times.iter().any(|time| time.is_zero()) || spec.rate.bits_per_sec() == 0 {
            return Err(Failure::Usage("rate, buffer and phases must be above zero".to_string()));
        }
        holds_a_packet(spec.rate, spec.buffer)?;
        Ok(spec)
    }
}

/// Measures, predicts, and shows both.
pub fn run(args: &Args) -> Result<(), Failure> {
    let spec = args.spec()?;
    let screen = Screen::new(args.json);
    let mut progress = Progress::begin();
    let whole_s = spec.duration().as_secs_f64();
    let show = |sample: &Sample| {
        let [first, second] = sample.mbps;
        let rates = format!("{} {first:.1}, {} {second:.1} Mbit/s", spec.controls[0], spec.controls[1]);
        let words = format!("{:.0} s  queue {:.0} ms  {rates}", sample.t_s, sample.queue_ms);
        progress.update(sample.t_s / whole_s, &words)
    };
    interrupt::insist_on_order();
    let measured = measure(&spec, &mut { show }).map_err(unmeasured)?;
    drop(progress);
    let predicted = predict(&spec, &mut || !interrupt::is_asked()).map_err(unpredicted)?;
    screen.say(&words(&screen, &spec, &measured, &predicted))?;
    if args.json { screen::print(&as_json(&spec, &measured, &predicted)) } else { Ok(()) }
}

fn words(screen: &Screen, spec: &KernelSpec, measured: &Measured, predicted: &Showing) -> String {
    let [first, second] = &spec.controls;
    let mut text = table(screen, &lines(spec, &measured.showing, predicted));
    for (title, showing) in [("Measured", &measured.showing), ("Predicted", predicted)] {
        let title = format!("{title} rates at the receivers");
        let rates = vec![
            curve(first, showing, |sample| sample.mbps[0]),
            curve(second, showing, |sample| sample.mbps[1]),
        ];
        text += &chart(screen, &title, "rate", "Mbit/s", rates);
    }
    let queues = vec![
        curve("measured", &measured.showing, |sample| sample.queue_ms),
        curve("predicted", predicted, |sample| sample.queue_ms),
    ];
    text += &chart(screen, "Queueing delay at the bottleneck", "delay", "ms", queues);
    text + &format!(
        "{} packets dropped; longest time between two samples {:.2} s; latest acknowledgement {:.1} ms late\n",
        measured.drops, measured.longest_gap_s, measured.latest_ms
    )
}

fn lines(spec: &KernelSpec, measured: &Showing, predicted: &Showing) -> Vec<Line> {
    let [first, second] = &spec.controls;
    let names = [format!("{first} alone"), format!("{first} and {second}"), format!("{second} alone")];
    let mut lines = Vec::new();
    for (index, phase) in Phase::ALL.into_iter().enumerate() {
        let (real, model) = (&measured.phases[index], &predicted.phases[index]);
        let mut push = |what: &str, decimals, value: fn(&PhaseShowing) -> f64| {
            let words = format!("{}: {what}", names[index]);
            lines.push(Line(words, decimals, Some(value(real)), Some(value(model))));
        };
        if phase != Phase::Second {
            push(&format!("{first} (Mbit/s)"), 2, |showing| showing.mbps[0]);
        }
        if phase != Phase::First {
            push(&format!("{second} (Mbit/s)"), 2, |showing| showing.mbps[1]);
        }
        push("mean queue (ms)", 0, |showing| showing.queue_mean_ms);
        push("queue, 95th percentile (ms)", 0, |showing| showing.queue_p95_ms);
    }
    lines
}

fn curve<'a>(name: &'a str, showing: &Showing, value: fn(&Sample) -> f64) -> Curve<'a> {
    (name, showing.samples.iter().map(|sample| (sample.t_s, value(sample))).collect())
}

fn as_json(spec: &KernelSpec, measured: &Measured, predicted: &Showing) -> String {
    let value = json!({
        "controls": spec.controls,
        "phases": ["first", "both", "second"],
        "measured": measured.showing,
        "predicted": predicted,
        "drops": measured.drops,
        "longest_gap_s": measured.longest_gap_s,
        "latest_ms": measured.latest_ms,
    });
    format!("{value:#}\n")
}
