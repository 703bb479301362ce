//! Two hosts that send each other data over one connection, paced, and acknowledge at once: what acknowledgements are stamped ahead of time is
//! no queue.

mod common;

use cede_meter::{Config, Estimator};
use common::{A, B, Tap, Tcp};
use std::collections::BTreeMap;

/// From one host to the other. The observer is beside A.
const WAY_US: u64 = 20_000;
const DATA_BYTES: usize = 1_448;
/// Half of a minute's packets.
const PACKETS: u64 = 400;

/// What a host sent: when, and whether it is data.
#[derive(Clone, Copy)]
struct Sent {
    at_us: u64,
    is_data: bool,
    seq: u32,
    ack: u32,
    clock: u32,
}

/// Grows to 120 ms within 1.6 s, drains as slowly, and is empty for 0.8 s.
fn queue_us(at_us: u64) -> u64 {
    let phase = at_us % 4_000_000;
    phase.min(4_000_000 - phase).saturating_sub(400_000) * 3 / 40
}

/// When a packet of B's passes A.
fn of_b_arrives_us(sent: &Sent) -> u64 {
    sent.at_us + WAY_US + queue_us(sent.at_us)
}

/// A packet each time that the pace allows, or a little later, and nothing for a while after each fourth.
fn data(pace_us: u64) -> Vec<Sent> {
    let packet = |k: u64| Sent {
        at_us: 1_000_000 + k * (pace_us + 1_300) + k % 2 * 1_300 + k / 4 * 3 * pace_us,
        is_data: true,
        seq: 1 + k as u32 * DATA_BYTES as u32,
        ack: 1,
        clock: 0,
    };
    (0..PACKETS).map(packet).collect()
}

/// All that a host sends: its data, and an acknowledgement of each packet of the other's when it comes, stamped when the next data may leave, if
/// that is later. What it sends as data acknowledges what came before.
fn all(own: &[Sent], others: &[(u64, u32)], pace_us: u64) -> Vec<Sent> {
    let answer =
        |(at_us, ack): &(u64, u32)| Sent { at_us: *at_us, is_data: false, seq: 0, ack: *ack, clock: 0 };
    let mut sent: Vec<Sent> = own.iter().copied().chain(others.iter().map(answer)).collect();
    sent.sort_by_key(|packet| packet.at_us);
    let (mut seq, mut ack, mut not_before_us) = (1, 1, 0);
    for packet in &mut sent {
        packet.clock = (packet.at_us.max(not_before_us) / 1_000) as u32;
        ack = packet.ack.max(ack);
        packet.ack = ack;
        if packet.is_data {
            (seq, not_before_us) = (packet.seq + DATA_BYTES as u32, packet.at_us + pace_us);
        } else {
            packet.seq = seq;
        }
    }
    sent
}

/// When a host's data come to the other, and what they are acknowledged with.
fn answered(data: &[Sent], arrives_us: impl Fn(&Sent) -> u64) -> Vec<(u64, u32)> {
    data.iter().map(|sent| (arrives_us(sent), sent.seq + DATA_BYTES as u32)).collect()
}

#[test]
fn acknowledgements_ahead_of_time_show_no_queue() {
    for (pace_a_us, pace_b_us) in [(60_000, 85_000), (85_000, 60_000), (300_000, 70_000), (90_000, 250_000)] {
        let (data_a, data_b) = (data(pace_a_us), data(pace_b_us));
        let of_a = all(&data_a, &answered(&data_b, of_b_arrives_us), pace_a_us);
        let of_b = all(&data_b, &answered(&data_a, |sent| sent.at_us + WAY_US), pace_b_us);
        let truth: BTreeMap<u64, f64> =
            of_b.iter().map(|sent| (of_b_arrives_us(sent), queue_us(sent.at_us) as f64)).collect();
        let seen_a = of_a.iter().map(|sent| (sent.at_us, A, B, sent));
        let mut seen: Vec<_> =
            of_b.iter().map(|sent| (of_b_arrives_us(sent), B, A, sent)).chain(seen_a).collect();
        seen.sort_by_key(|packet| packet.0);
        let mut tap = Tap::new(Config::default());
        for (time_us, from, to, &Sent { is_data, seq, ack, clock, .. }) in seen {
            let len = if is_data { DATA_BYTES } else { 0 };
            tap.tcp(time_us, from, to, &Tcp { seq, ack, flags: 0x10, clock, echo: 1, len });
        }
        let found = tap.found();
        for (estimator, least) in [(Estimator::Direct, 400), (Estimator::Echoed, 50)] {
            let samples = found.seen.samples.iter().filter(|sample| sample.estimator == estimator);
            let of_b: Vec<f64> = samples
                .clone()
                .filter(|sample| sample.source.address == std::net::IpAddr::from(B.0))
                .map(|sample| (sample.delay.queue_us - truth[&sample.delay.time_us]).abs())
                .collect();
            let worst = of_b.iter().fold(0.0_f64, |worst, off| worst.max(*off));
            assert!(
                of_b.len() >= least && worst < 2_000.0,
                "{estimator:?} {pace_a_us} {pace_b_us}: {worst} of {}",
                of_b.len()
            );
        }
        let beside = found.queue_us(A.0, Estimator::Direct);
        let worst = beside.iter().fold(0.0_f64, |worst, queue| worst.max(*queue));
        assert!(
            beside.len() > 300 && worst < 2_000.0,
            "{pace_a_us} {pace_b_us}: {worst} of {}",
            beside.len()
        );
    }
}
