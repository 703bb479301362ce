//! `cede lab path`: a transfer over an emulated path, measured and predicted.

use super::show::{Line, Progress, chart, interrupted, table, unpredicted};
use crate::controllers;
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::{self, Screen};
use cede_lab::scenario::{Buffer, Limit};
use cede_testbed::path::{Measured, PathError, PathSpec, Sample, Showing, measure, predict};
use cede_units::{Bytes, Duration, Rate};
use serde_json::json;

/// A relay whose departures are later than this, one in a hundred, is no judge of millisecond queues.
const PUNCTUAL_MS: f64 = 2.0;

/// `cede lab path`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The bottleneck's rate, counted in IP datagrams
    #[arg(long, value_name = "RATE", default_value = "100Mbit")]
    rate: Rate,
    /// Propagation there and back
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    rtt: Duration,
    /// The bottleneck's drop-tail buffer: 2bdp, 300ms, 100packets or 64KiB
    #[arg(long, value_name = "SIZE", default_value = "1bdp", value_parser = buffer)]
    buffer: Buffer,
    /// Random loss of what is sent [example: --loss 1%]
    #[arg(long, value_name = "PART", default_value = "0%", value_parser = part)]
    loss: f64,
    /// IP datagrams of more octets vanish in silence
    #[arg(long, value_name = "OCTETS", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(576..=65_535))]
    mtu: u32,
    /// The congestion controller (cede list controllers)
    #[arg(short = 'C', long, value_name = "NAME", default_value = "ledbat")]
    controller: String,
    /// The queueing delay that it aims at, where it has a parameter `target`
    #[arg(long, value_name = "TIME")]
    target: Option<Duration>,
    /// How much is sent
    #[arg(long, value_name = "SIZE", default_value = "60MB")]
    bytes: Bytes,
    /// Over IPv6
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Names the random streams of loss
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON on standard output, and words on standard error
    #[arg(long)]
    json: bool,
}

/// Reads a part of the whole: 1% or 0.01.
fn part(text: &str) -> Result<f64, String> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let value =
        number.trim().parse::<f64>().map_err(|error| format!("{error}; write for instance 1%"))? / whole;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("not between 0% and 100%".to_string()) }
}

fn buffer(text: &str) -> Result<Buffer, String> {
    let lower = text.to_ascii_lowercase();
    let number = |suffix: &str| lower.strip_suffix(suffix).map(|number| number.trim().parse::<f64>());
    if let Some(Ok(factor)) = number("bdp").filter(|factor| factor.as_ref().is_ok_and(|factor| *factor > 0.0))
    {
        return Ok(Buffer::Bdp(factor));
    }
    if let Some(Ok(packets)) = lower.strip_suffix("packets").map(|number| number.trim().parse::<u64>()) {
        return Ok(Buffer::Packets(packets));
    }
    if let Ok(time) = text.parse::<Duration>() {
        return Ok(Buffer::Time(time));
    }
    text.parse::<Bytes>()
        .map(Buffer::Bytes)
        .map_err(|_| "allowed: 2bdp, 300ms, 100packets, 64KiB".to_string())
}

/// A buffer that holds no packet would let none pass, and the transfer wait for ever.
fn check_buffer(buffer: Buffer, rate: Rate, rtt: Duration, mtu: u32) -> Result<(), Failure> {
    // Nothing larger than an Ethernet frame's packets need pass.
    let packet = u64::from(mtu.min(1500));
    let holds = match buffer.limit(rate, Some(rtt)) {
        Some(Limit::Bytes(bytes)) if bytes < packet => format!("{bytes} B"),
        Some(Limit::Packets(0)) => "nothing".to_string(),
        _ => return Ok(()),
    };
    let text = format!("--buffer: {buffer} holds {holds}, less than one packet of {packet} B");
    Err(Failure::Usage(text))
}

impl Args {
    fn spec(&self) -> Result<PathSpec, Failure> {
        if self.bytes.0 == 0 || self.rate.bits_per_sec() == 0 || self.rtt.is_zero() {
            return Err(Failure::Usage("--bytes, --rate and --rtt must be above zero".to_string()));
        }
        check_buffer(self.buffer, self.rate, self.rtt, self.mtu)?;
        let stream = controllers::stream(&self.controller, self.target)?;
        Ok(PathSpec {
            buffer: self.buffer,
            loss: self.loss,
            mtu_bytes: self.mtu,
            ipv6: self.ipv6,
            seed: self.seed,
            stream,
            ..PathSpec::new(self.rate, self.rtt, self.bytes.0)
        })
    }
}

/// Measures, predicts, and shows both.
pub fn run(args: &Args) -> Result<(), Failure> {
    let spec = args.spec()?;
    let screen = Screen::new(args.json);
    let mut progress = Progress::begin();
    let show = |sample: &Sample, arrived: u64| {
        let queue = sample.queue_ms.unwrap_or_default();
        let words = format!("{:.1} s  {:.1} Mbit/s  queue {queue:.0} ms", sample.t_s, sample.rate_mbps);
        progress.update(arrived as f64 / spec.bytes as f64, &words)
    };
    let measured = measure(&spec, &mut { show }).map_err(|error| match error {
        PathError::Interrupted => interrupted(),
        error => Failure::Failed(error.to_string()),
    })?;
    drop(progress);
    let predicted = predict(&spec, &mut || !interrupt::is_asked()).map_err(unpredicted)?;
    screen.say(&words(&screen, &measured, &predicted))?;
    if args.json { screen::print(&as_json(&measured, &predicted)) } else { Ok(()) }
}

fn words(screen: &Screen, measured: &Measured, predicted: &Showing) -> String {
    let real = &measured.showing;
    let both = |what, decimals, value: fn(&Showing) -> Option<f64>| {
        Line(String::from(what), decimals, value(real), value(predicted))
    };
    let lines = [
        both("goodput, start-up included (Mbit/s)", 1, |showing| Some(showing.goodput_mbps)),
        both("goodput in the second half (Mbit/s)", 1, |showing| Some(showing.steady_mbps)),
        both("first octet after (s)", 3, |showing| showing.first_octet_s),
        both("last octet after (s)", 2, |showing| showing.finish_s),
        both("mean queue in the second half (ms)", 1, |showing| Some(showing.queue_ms)),
        both("largest queue over 0.1 s (ms)", 1, |showing| Some(showing.queue_max_ms)),
        both("retransmissions", 0, |showing| Some(showing.retransmissions as f64)),
        both("timeouts", 0, |showing| Some(showing.timeouts as f64)),
    ];
    let rates =
        |showing: &Showing| showing.samples.iter().map(|sample| (sample.t_s, sample.rate_mbps)).collect();
    let queues = |showing: &Showing| {
        showing.samples.iter().filter_map(|sample| Some((sample.t_s, sample.queue_ms?))).collect()
    };
    let mut text = table(screen, &lines);
    let curves = vec![("measured", rates(real)), ("predicted", rates(predicted))];
    text += &chart(screen, "Rate at the receiver", "rate", "Mbit/s", curves);
    let curves = vec![("measured", queues(real)), ("predicted", queues(predicted))];
    text += &chart(screen, "Queueing delay at the bottleneck", "delay", "ms", curves);
    text + &conduct(measured)
}

/// What the relay says of itself.
fn conduct(measured: &Measured) -> String {
    let relay = &measured.relay;
    let link = &relay.forward.link;
    let mut text = format!(
        "bottleneck: {} packets dropped by the full queue, {} lost on the wire, {} too large\n\
         relay: {}; departures late by {}; its own losses: {}\n\
         the ends woke up late by {}\n",
        link.dropped_packets,
        link.lost_packets,
        relay.forward.too_large,
        relay.priority,
        relay.departures_late,
        relay.own_losses(),
        measured.ends_late,
    );
    if relay.departures_late.p99_ms > PUNCTUAL_MS {
        text += "the relay was late: this machine was too busy for these figures to be trusted\n";
    }
    if let Some(lost) = measured.end_overflows.filter(|&lost| lost > 0) {
        text += &format!("{lost} datagrams were lost in front of the ends' own sockets\n");
    }
    text
}

fn as_json(measured: &Measured, predicted: &Showing) -> String {
    let relay = &measured.relay;
    let value = json!({
        "measured": measured.showing,
        "predicted": predicted,
        "relay": {
            "realtime": relay.priority == cede_testbed::Priority::RealTime,
            "late_p50_ms": relay.departures_late.p50_ms,
            "late_p99_ms": relay.departures_late.p99_ms,
            "late_max_ms": relay.departures_late.max_ms,
            "own_losses": relay.own_losses(),
            "dropped": relay.forward.link.dropped_packets,
            "lost": relay.forward.link.lost_packets,
            "too_large": relay.forward.too_large,
        },
        "ends_late_max_ms": measured.ends_late.max_ms,
        "end_overflows": measured.end_overflows,
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_and_parts_are_read_as_people_write_them() {
        assert_eq!(buffer("4bdp"), Ok(Buffer::Bdp(4.0)));
        assert_eq!(buffer("0.5 BDP"), Ok(Buffer::Bdp(0.5)));
        assert_eq!(buffer("300 ms"), Ok(Buffer::Time(Duration::from_millis(300))));
        assert_eq!(buffer("100packets"), Ok(Buffer::Packets(100)));
        assert_eq!(buffer("12.5kB"), Ok(Buffer::Bytes(Bytes(12_500))));
        assert!(["", "-1bdp", "nanbdp", "7"].into_iter().all(|text| buffer(text).is_err()));
        assert_eq!((part("1%"), part("0.25")), (Ok(0.01), Ok(0.25)));
        assert!(part("101%").is_err() && part("x").is_err());
    }

    #[test]
    fn a_buffer_holds_a_packet() {
        let check =
            |text| check_buffer(buffer(text).unwrap(), Rate::from_mbit(10), Duration::from_millis(40), 1500);
        for text in ["0packets", "0s", "1us", "1499B", "0.02bdp"] {
            assert!(check(text).is_err_and(|failure| failure.exit_code() == 2), "{text}");
        }
        assert!(["1packets", "2ms", "1500B", "0.04bdp"].into_iter().all(|text| check(text).is_ok()));
    }
}
