//! CPU time per delivered data segment through two connections back to back: sent, encoded, decoded, received,
//! acknowledged, the acknowledgement taken in by the controller. `cargo bench -p cede-tcp`; a part
//! of a label as argument measures what it names alone.

use cede_cc::{ParamValue, Params, registry};
use cede_tcp::{AckPolicy, Config, Connection, Ports, Segment};
use cede_units::{Bytes, Duration, Instant, Stream};
use cede_wire::{Payload, Transmit};
use std::collections::VecDeque;
use std::time::Instant as Wall;

/// Two connections, and what is on its way between them.
struct Pair {
    client: Connection,
    server: Connection,
    there: VecDeque<(Instant, Transmit)>,
    back: VecDeque<(Instant, Transmit)>,
    now: Instant,
    written: u64,
    received: u64,
    /// One data segment in so many is lost; none for 0.
    loss_every: u64,
    count: u64,
}

/// The time between segments on the wire; the window makes the queue.
const SPACING: Duration = Duration::from_micros(12);
const DELAY: Duration = Duration::from_millis(5);

impl Pair {
    fn new(config: &Config, controller: &str, window_segments: u64, loss_every: u64) -> Self {
        let mut random = Stream::named(1, "bench");
        let window = Bytes(window_segments * u64::from(config.payload_bytes()));
        let params = match controller {
            "fixed" => Params::new().with("cwnd", ParamValue::Bytes(window)),
            _ => Params::new(),
        };
        let build = || registry::build(controller, &params, &config.path()).expect("known controller");
        let ports = Ports { local: 1, remote: 2 };
        let mut client = Connection::connect(config.clone(), build(), ports, &mut random);
        let now = Instant::from_secs(1);
        let syn = client.poll_transmit(now).expect("a SYN");
        let (syn, _) = Segment::decode(&syn.head).expect("a header");
        let server = Connection::accept(now, config.clone(), build(), &syn, &mut random).expect("a SYN");
        let (there, back) = (VecDeque::new(), VecDeque::new());
        Self { client, server, there, back, now, written: 0, received: 0, loss_every, count: 0 }
    }

    /// Lets one data segment's time pass.
    fn tick(&mut self) {
        self.now += SPACING;
        while self.client.write_room() > 1 << 20 {
            self.written +=
                u64::from(self.client.write(Payload::Pattern { start: self.written, len: 1 << 20 }).unwrap());
        }
        while let Some(transmit) = self.client.poll_transmit(self.now) {
            self.count += u64::from(!transmit.payload.is_empty());
            if self.loss_every == 0 || self.count % self.loss_every != self.loss_every - 1 {
                let free = self.there.back().map_or(self.now, |last| last.0 + SPACING);
                self.there.push_back((free.max(self.now + DELAY), transmit));
            }
        }
        while self.client.poll_event().is_some() {}
        if self.client.poll_timeout().is_some_and(|at| at <= self.now) {
            self.client.handle_timeout(self.now);
        }
        self.deliver();
    }

    fn deliver(&mut self) {
        while self.there.front().is_some_and(|front| front.0 <= self.now) {
            let (_, transmit) = self.there.pop_front().unwrap();
            let (segment, _) = Segment::decode(&transmit.head).unwrap();
            self.server.handle(self.now, &segment, transmit.payload);
            while let Some(answer) = self.server.poll_transmit(self.now) {
                self.back.push_back((self.now + DELAY, answer));
            }
            while self.server.poll_event().is_some() {}
            while let Some(payload) = self.server.read() {
                self.received += u64::from(payload.len());
            }
            let _ = self.server.poll_timeout();
        }
        while self.back.front().is_some_and(|front| front.0 <= self.now) {
            let (_, transmit) = self.back.pop_front().unwrap();
            let (segment, _) = Segment::decode(&transmit.head).unwrap();
            self.client.handle(self.now, &segment, transmit.payload);
        }
    }
}

fn measure(label: &str, config: &Config, controller: &str, window_segments: u64, loss_every: u64) {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if wanted.is_some_and(|wanted| !label.contains(&wanted)) {
        return;
    }
    let mut pair = Pair::new(config, controller, window_segments, loss_every);
    for _ in 0..100_000 {
        pair.tick();
    }
    let (mut best, mut total) = (f64::MAX, 0);
    for _ in 0..7 {
        let (began, before) = (Wall::now(), pair.received);
        for _ in 0..200_000 {
            pair.tick();
        }
        let segments = (pair.received - before) / u64::from(config.payload_bytes());
        best = best.min(began.elapsed().as_nanos() as f64 / segments.max(1) as f64);
        total += segments;
    }
    println!("{label:<58} {best:>7.0} ns per segment ({total} segments)");
}

fn main() {
    let large = |config| Config { send_buffer_bytes: 64 << 20, receive_window_bytes: 64 << 20, ..config };
    let (delayed, newreno) = (large(Config::default()), large(Config::newreno()));
    let every = large(Config { ack_policy: AckPolicy::Every, ..Config::default() });
    measure("fixed window of 500, acknowledging every segment", &every, "fixed", 500, 0);
    measure("fixed window of 500, every second segment", &delayed, "fixed", 500, 0);
    measure("fixed window of 5000, every segment", &every, "fixed", 5_000, 0);
    measure("fixed window of 800, 1 in 100 lost, SACK", &every, "fixed", 800, 100);
    measure("fixed window of 5000, 1 in 20 lost, SACK", &every, "fixed", 5_000, 20);
    measure("reno, 1 in 1000 lost, SACK", &every, "reno", 0, 1_000);
    measure("cubic, 1 in 1000 lost, SACK", &every, "cubic", 0, 1_000);
    measure("reno, 1 in 1000 lost, NewReno without timestamps", &newreno, "reno", 0, 1_000);
}
