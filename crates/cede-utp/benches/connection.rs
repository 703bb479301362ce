//! CPU time per delivered data packet through two connections that are wired back to back: sent, received, read,
//! acknowledged, the acknowledgement taken in. No network, no timers in between.
//!
//! Time is taken over many short runs: on a machine that does other things too, the least of them is what the code
//! costs, and the median what it cost here. Where the machine is never quiet, count instructions instead:
//! `CEDE_BENCH_RUNS=2 valgrind --tool=callgrind` before the bench's binary.
#![allow(missing_docs)]

use cede_cc::{ParamValue, Params, registry};
use cede_units::{Bytes, Duration, Instant, Stream};
use cede_utp::{Config, Connection};
use cede_wire::utp::Packet;
use cede_wire::{Payload, Transmit};
use std::collections::VecDeque;
use std::time::Instant as Wall;

const PACKETS_PER_RUN: u64 = 20_000;
/// Packets that arrive before the receiver is asked for its acknowledgements.
const BATCHES: [usize; 2] = [1, 16];

struct Pair {
    sender: Connection,
    receiver: Connection,
    now: Instant,
    written: u64,
}

impl Pair {
    fn new(controller: &str) -> Self {
        let config = Config::default();
        let params = match controller {
            "fixed" => Params::new().with("cwnd", ParamValue::Bytes(Bytes(64 * 1382))),
            _ => Params::new(),
        };
        let build =
            || registry::build(controller, &params, &config.path()).expect("a controller of the registry");
        let (mut random, now) = (Stream::named(1, "bench"), Instant::from_secs(1));
        let mut sender = Connection::connect(now, config.clone(), build(), &mut random);
        let syn = sender.poll_transmit(now).expect("a SYN");
        let syn = Packet::decode(&syn.head).expect("a SYN");
        let mut receiver =
            Connection::accept(now, &syn, config.clone(), build(), &mut random).expect("a SYN");
        let answer = receiver.poll_transmit(now).expect("an answer");
        sender.handle(now, &answer.head, Payload::Empty);
        Self { sender, receiver, now, written: 0 }
    }

    /// Hands up to `batch` packets across and the acknowledgements back, and keeps the send buffer full.
    fn round(&mut self, batch: usize, flight: &mut VecDeque<Transmit>) {
        while let Ok(n) = self.sender.write(Payload::Pattern { start: self.written, len: 1 << 16 }) {
            self.written += u64::from(n);
        }
        self.send(flight);
        self.now += Duration::from_micros(10);
        for packet in flight.drain(..flight.len().min(batch)) {
            self.receiver.handle(self.now, &packet.head, packet.payload);
        }
        while let Some(answer) = self.receiver.poll_transmit(self.now) {
            self.sender.handle(self.now, &answer.head, Payload::Empty);
        }
        self.send(flight);
        while self.receiver.read().is_some() {}
        while self.sender.poll_event().is_some() {}
        while self.receiver.poll_event().is_some() {}
    }

    fn send(&mut self, flight: &mut VecDeque<Transmit>) {
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            flight.push_back(packet);
        }
    }
}

/// Nanoseconds per packet of one run.
fn run(pair: &mut Pair, batch: usize, flight: &mut VecDeque<Transmit>) -> f64 {
    let before = pair.sender.statistics().packets_acked;
    let start = Wall::now();
    while pair.sender.statistics().packets_acked < before + PACKETS_PER_RUN {
        pair.round(batch, flight);
    }
    let packets = pair.sender.statistics().packets_acked - before;
    start.elapsed().as_nanos() as f64 / packets as f64
}

fn measure(controller: &str, batch: usize, runs: usize) {
    let mut pair = Pair::new(controller);
    let mut flight = VecDeque::with_capacity(4096);
    for _ in 0..runs / 2 {
        run(&mut pair, batch, &mut flight);
    }
    let mut spent: Vec<f64> = (0..runs).map(|_| run(&mut pair, batch, &mut flight)).collect();
    spent.sort_by(f64::total_cmp);
    let window = pair.sender.snapshot().cwnd_bytes / 1382;
    println!(
        "{controller:>8}, {batch:>2} packets per acknowledgement, window {window:>4} packets: \
         {:6.1} ns per packet, median {:6.1} ns",
        spent[0],
        spent[runs / 2],
    );
}

fn main() {
    let runs = std::env::var("CEDE_BENCH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(100).max(1);
    for controller in ["fixed", "reno", "cubic", "ledbat"] {
        BATCHES.iter().for_each(|&batch| measure(controller, batch, runs));
    }
}
