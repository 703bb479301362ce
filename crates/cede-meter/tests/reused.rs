//! Connections one after the other between the same two sockets, which have numbers and clocks of their own.

mod common;

use cede_meter::{Config, Estimator};
use common::{A, B, Tap, Tcp};

const SEGMENTS: u32 = 200;

/// Where both ends' numbers and clocks begin.
#[derive(Clone, Copy)]
struct Connection {
    number: u32,
    ahead: u32,
    /// The SYN is shown once more between this segment and its acknowledgement.
    opens_again_at: Option<u32>,
}

impl Connection {
    fn segment(
        &self,
        at_us: u64,
        echoes_us: Option<u64>,
        (flags, [seq, ack], len): (u8, [u32; 2], usize),
    ) -> Tcp {
        let clock = |us: u64| ((us / 1000) as u32).wrapping_add(self.ahead);
        let [seq, ack] = [seq, ack].map(|octets| self.number.wrapping_add(octets));
        Tcp { seq, ack, flags, clock: clock(at_us), echo: echoes_us.map_or(0, clock), len }
    }

    /// B's data each 20 ms through a queue that grows to 20 ms, acknowledged at once.
    fn shown(&self, tap: &mut Tap, begins_us: u64) {
        let opening = self.segment(begins_us, None, (0x02, [0, 0], 0));
        tap.tcp(begins_us + 10_000, B, A, &opening);
        let answer = self.segment(begins_us + 10_000, Some(begins_us), (0x12, [0, 1], 0));
        tap.tcp(begins_us + 10_010, A, B, &answer);
        let mut answered = begins_us + 10_000;
        for k in 0..SEGMENTS {
            let sent = begins_us + 20_000 + u64::from(k) * 20_000;
            let arrives = sent + 10_000 + u64::from(k % 20) * 1_000;
            let from = 1 + k * 100;
            tap.tcp(arrives, B, A, &self.segment(sent, Some(answered), (0x10, [from, 1], 100)));
            answered = arrives;
            if self.opens_again_at == Some(k) {
                tap.tcp(arrives + 5, B, A, &opening);
            }
            tap.tcp(arrives + 10, A, B, &self.segment(arrives, Some(sent), (0x10, [1, from + 100], 0)));
        }
    }
}

/// Samples of the echoed estimate of what B sent, and round trips to B, of connections eight seconds apart.
fn found(connections: &[Connection]) -> (usize, u32) {
    let mut tap = Tap::new(Config::default());
    for (k, connection) in connections.iter().enumerate() {
        connection.shown(&mut tap, 1_000_000 + k as u64 * 8_000_000);
    }
    let found = tap.found();
    let queue_us = found.queue_us(B.0, Estimator::Echoed);
    assert!(queue_us.iter().all(|&us| us < 21_500.0), "{queue_us:?}");
    (queue_us.len(), found.flow(B.0).round_trip.map_or(0, |trip| trip.samples))
}

const HIGH: Connection = Connection { number: 0x9000_1234, ahead: 0x9000_0000, opens_again_at: None };
const LOW: Connection = Connection { number: 0x2000_4321, ahead: 0x2000_0000, opens_again_at: None };

#[test]
fn a_connection_is_not_held_against_the_numbers_and_clocks_of_the_one_before_it() {
    let (samples, trips) = found(&[HIGH]);
    assert!(samples >= SEGMENTS as usize - 1 && trips >= SEGMENTS / 2, "{samples} {trips}");
    for both in [[HIGH, LOW], [LOW, HIGH]] {
        let (all, all_trips) = found(&both);
        assert!(all >= samples * 2 - 1, "{all} samples");
        assert!(all_trips >= trips * 2 - 1, "{all_trips} round trips");
    }
}

#[test]
fn a_syn_that_is_shown_again_opens_nothing_anew() {
    assert_eq!(found(&[Connection { opens_again_at: Some(90), ..HIGH }]).0, found(&[HIGH]).0);
}
