//! In the steady state no packet costs an allocation.

mod support;

use cede_tcp::{AckPolicy, Config, Connection, Segment};
use cede_units::{Duration, Instant, Stream};
use cede_wire::{Payload, Transmit};
use std::collections::VecDeque;
use support::{PORTS, fixed_window};

struct Pair {
    client: Connection,
    server: Connection,
    there: VecDeque<Transmit>,
    back: VecDeque<Transmit>,
    now: Instant,
    written: u64,
    received: u64,
    loss_every: u64,
    sent: u64,
}

impl Pair {
    fn new(loss_every: u64) -> Self {
        let config = Config { ack_policy: AckPolicy::Every, ..Config::default() };
        let mut random = Stream::named(1, "allocation");
        let window = 200 * u64::from(config.payload_bytes());
        let mut client =
            Connection::connect(config.clone(), fixed_window(window, &config), PORTS, &mut random);
        let now = Instant::from_secs(1);
        let (syn, _) = Segment::decode(&client.poll_transmit(now).unwrap().head).unwrap();
        let controller = fixed_window(window, &config);
        let server = Connection::accept(now, config, controller, &syn, &mut random).unwrap();
        let room = || VecDeque::with_capacity(1000);
        Self {
            client,
            server,
            there: room(),
            back: room(),
            now,
            written: 0,
            received: 0,
            loss_every,
            sent: 0,
        }
    }

    /// A hundred round trips of a window each.
    fn run(&mut self) {
        for _ in 0..100 {
            self.now += Duration::from_millis(10);
            self.client.handle_timeout(self.now);
            let payload = Payload::Pattern { start: self.written, len: 1 << 20 };
            self.written += u64::from(self.client.write(payload).unwrap());
            while let Some(transmit) = self.client.poll_transmit(self.now) {
                self.sent += 1;
                if self.loss_every == 0 || !self.sent.is_multiple_of(self.loss_every) {
                    self.there.push_back(transmit);
                }
            }
            while let Some(transmit) = self.there.pop_front() {
                let (segment, _) = Segment::decode(&transmit.head).unwrap();
                self.server.handle(self.now, &segment, transmit.payload);
                self.back.extend(self.server.poll_transmit(self.now));
                self.received += self.server.read().map_or(0, |payload| u64::from(payload.len()));
            }
            while let Some(transmit) = self.back.pop_front() {
                let (segment, _) = Segment::decode(&transmit.head).unwrap();
                self.client.handle(self.now, &segment, transmit.payload);
            }
            while self.client.poll_event().or(self.server.poll_event()).is_some() {}
        }
    }
}

#[test]
fn the_steady_state_allocates_nothing_with_or_without_loss() {
    for loss_every in [0, 97] {
        let mut pair = Pair::new(loss_every);
        for _ in 0..5 {
            pair.run();
        }
        let before = pair.received;
        let seen = allocation_counter::measure(|| pair.run());
        let segments = (pair.received - before) / 1448;
        assert!(segments > 5_000, "{segments}");
        assert_eq!(seen.count_total, 0, "loss every {loss_every}: {segments} segments");
    }
}
