//! The meter inside another program, a router or a sensor, say: packets are handed in by hand as they come, and after every
//! 10 000 of them whoever had more than 100 ms of queue within the last minute is named. Here they come from a capture,
//! played as if it were live; nothing is sent.
//!
//! `cargo run --release -p cede-meter --example sensor -- CAPTURE.pcap`

use cede_meter::{Config, Meter};
use cede_wire::pcap::{Reader, Record};

const WINDOW_US: u64 = 60_000_000;
const EVERY: u64 = 10_000;
const BLOATED_MS: f64 = 100.0;

struct Sensor {
    meter: Meter,
    alarms: Vec<String>,
}

impl Sensor {
    /// A small box: 8 MiB for flows and samples, whoever sends whatever.
    fn new() -> Self {
        Self { meter: Meter::new(Config { memory_bytes: 8 << 20, ..Config::default() }), alarms: Vec::new() }
    }

    /// A packet: when it came, what its octets begin with, as many of them as there are, and its length on the wire.
    fn packet(&mut self, packet: &Record<'_>) {
        let Some(time_ns) = packet.time_ns else { return };
        self.meter.packet(time_ns, packet.link_type, packet.captured, packet.original_len);
        if self.meter.counters().packets.is_multiple_of(EVERY) {
            self.look(time_ns / 1000);
        }
    }

    fn look(&mut self, now_us: u64) {
        self.meter.forget_before(now_us.saturating_sub(WINDOW_US));
        for host in self.meter.report().hosts.iter().filter(|host| host.all.time_mean_ms > BLOATED_MS) {
            let flags: Vec<&str> = host.flags.names().collect();
            let mean = host.all.time_mean_ms;
            self.alarms.push(format!("{} has a queue of {mean:.0} ms {}", host.address, flags.join(" ")));
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which capture?")?;
    let mut sensor = Sensor::new();
    for packet in Reader::new(&std::fs::read(path)?)? {
        sensor.packet(&packet?);
    }
    sensor.alarms.iter().for_each(|alarm| println!("{alarm}"));
    println!("{} packets, {} kB", sensor.meter.counters().packets, sensor.meter.memory_bytes() / 1000);
    Ok(())
}
