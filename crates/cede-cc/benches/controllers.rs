//! CPU time per acknowledged packet of each controller: one `on_sent` and one `on_feedback` with a delay sample, at 1000
//! packets a second over a path of 50 ms whose queue wanders about 25 ms. `fixed` shows what the loop itself costs.
//! `cargo bench -p cede-cc`; the name of one controller as argument measures that alone.

use cede_cc::{Controller, Feedback, PacketFact, Params, Path, SendRecord, Sent, registry};
use cede_units::{Duration, Instant};
use std::time::Instant as Wall;

const BYTES: u32 = 1448;
const UNDER_WAY: u64 = 50;
const BASE: Duration = Duration::from_millis(50);

/// The queue at packet `number` in microseconds: a triangle of two seconds from 20 to 30 ms, with jitter that a
/// multiplicative hash gives.
fn queue_us(number: u64) -> u64 {
    let phase = number % 2000;
    let jitter = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) / 4;
    20_000 + 10 * phase.min(2000 - phase) + jitter
}

fn step(controller: &mut dyn Controller, number: u64) {
    let now = Instant::from_millis(1000 + number);
    let queue = Duration::from_micros(queue_us(number));
    let in_flight_bytes = UNDER_WAY * u64::from(BYTES);
    let tag = controller.on_sent(&Sent {
        now,
        number: number + UNDER_WAY,
        bytes: BYTES,
        in_flight_bytes,
        retransmission: false,
    });
    let record = SendRecord::default();
    let sent_at = now.saturating_sub(BASE + queue);
    let acked = [PacketFact { number, bytes: BYTES, sent_at, retransmitted: false, tag, record }];
    let feedback = Feedback {
        now,
        acked: &acked,
        lost: &[],
        acked_bytes: u64::from(BYTES),
        lost_bytes: 0,
        in_flight_before_bytes: in_flight_bytes,
        in_flight_bytes: in_flight_bytes - u64::from(BYTES),
        delivered_bytes: number * u64::from(BYTES),
        next_number: number + UNDER_WAY + 1,
        rtt: Some(BASE + queue),
        rtt_min: Some(BASE + queue),
        srtt: BASE + Duration::from_millis(25),
        one_way_delay_ns: Some(-7_000_000_000 + queue.as_nanos() as i64),
        reverse_delay_ns: Some(7_050_000_000),
        ce_marked: 0,
        app_limited: false,
        in_recovery: false,
    };
    std::hint::black_box(controller.on_feedback(std::hint::black_box(&feedback)));
}

fn measure(name: &str) {
    const STEPS: u64 = 500_000;
    let path = Path { mss_bytes: BYTES, initial_cwnd_bytes: 10 * BYTES, max_cwnd_bytes: 1 << 20 };
    let mut controller = registry::build(name, &Params::new(), &path).expect("a registered name");
    let (mut best, mut number) = (f64::MAX, 0);
    for _ in 0..6 {
        let began = Wall::now();
        for _ in 0..STEPS {
            step(&mut *controller, number);
            number += 1;
        }
        best = best.min(began.elapsed().as_nanos() as f64 / STEPS as f64);
    }
    println!("{name:<24} {best:>6.1} ns per acknowledgement");
}

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for entry in registry::all() {
        if wanted.as_ref().is_none_or(|wanted| wanted == entry.name) {
            measure(entry.name);
        }
    }
}
