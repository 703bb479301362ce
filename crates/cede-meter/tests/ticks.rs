//! Where within a tick of a sender's clock its empty queue lies.

mod common;

use cede_meter::{Config, Estimator};
use common::{A, B, Tap, Tcp};

/// A full packet takes so long at 50 Mbit/s; and what an acknowledgement takes to B.
const FULL_US: u64 = 245;
const BACK_US: u64 = 30;

/// When each packet of B's is sent, and by what acknowledgement: two for each of them until 400 ms of packets wait, then one.
fn slow_start(begin: u64) -> Vec<(u64, u64, Option<usize>)> {
    const FIRST: usize = 10;
    const WAITING: usize = 1_600;
    let mut packets: Vec<(u64, u64, Option<usize>)> = Vec::new();
    let leave = |packets: &mut Vec<(u64, u64, Option<usize>)>, sent: u64, by: Option<usize>| {
        let free = packets.last().map_or(0, |last| last.1 + FULL_US);
        packets.push((sent, free.max(sent + 20), by));
    };
    (0..FIRST).for_each(|_| leave(&mut packets, begin, None));
    for number in 0..40_000 {
        let acknowledged = packets[number].1 + BACK_US;
        for _ in 0..if packets.len() - number < WAITING { 2 } else { 1 } {
            leave(&mut packets, acknowledged, Some(number));
        }
    }
    packets
}

/// Acknowledgements that are many in a tick ask as their own clock turns, which is always at the same place within the sender's tick: what
/// they are answered by tells nothing of where that ends.
#[test]
fn answers_at_one_place_within_a_tick_do_not_tell_where_it_ends() {
    let mut tap = Tap::new(Config::default());
    let begin = 10_000_200;
    let of_a = |at: u64| ((at + 10) / 1_000) as u32 + 5_000;
    let packets = slow_start(begin);
    // What the first ones answer.
    let begins = Tcp { seq: 1, ack: 0, flags: 0x10, clock: of_a(begin - BACK_US), echo: 9, len: 0 };
    tap.tcp(begin - BACK_US, A, B, &begins);
    for (number, &(sent, seen, by)) in packets.iter().enumerate() {
        let echo = by.map_or(begins.clock, |by| of_a(packets[by].1));
        let (seq, flags) = (number as u32 * 1_448, 0x10);
        let data = Tcp { seq, ack: 1, flags, clock: (sent / 1_000) as u32, echo, len: 1_448 };
        let ack = Tcp { seq: 1, ack: seq + 1_448, flags, clock: of_a(seen), echo: data.clock, len: 0 };
        tap.tcp(seen, B, A, &data);
        tap.tcp(seen + 10, A, B, &ack);
    }
    let delays = tap.found().queue_us(B.0, Estimator::Direct);
    assert_eq!(delays.len(), packets.len());
    let off = |(delay, packet): (&f64, &(u64, u64, _))| (delay - (packet.1 - packet.0 - 20) as f64).abs();
    let far = delays.iter().zip(&packets).map(off).filter(|off_us| *off_us >= 1_000.0).count();
    assert!(far * 100 < packets.len(), "{far} of {}", packets.len());
}
