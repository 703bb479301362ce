//! Selective acknowledgements of any length, sent and received.
#![allow(missing_docs)]

mod common;

use cede_cc::{ParamValue, Params, registry};
use cede_units::{Bytes, Duration, Instant, Seq16, Stream};
use cede_utp::{Config, Connection, Mtu};
use cede_wire::Payload;
use cede_wire::utp::{HEADER_BYTES, Header, Kind, Packet};
use common::{Fate, Recorder, Script, Setup, World, ms};

/// Both ends tell 16384 packets apart.
fn wide() -> Config {
    Config {
        send_buffer_bytes: 16 << 20,
        receive_buffer_bytes: 16 << 20,
        initial_peer_window_bytes: 16 << 20,
        max_outstanding_packets: 16_383,
        seq_window_packets: 16_384,
        mtu: Mtu::Fixed(400),
        ..Config::default()
    }
}

/// The packet with this number.
fn data(now: Instant, first: Seq16, number: u16) -> Header {
    Header {
        kind: Kind::Data,
        connection_id: 100,
        timestamp_us: now.as_micros() as u32,
        timestamp_difference_us: 1000,
        window_bytes: 1 << 20,
        seq: first.add(number),
        ack: Seq16(4999),
    }
}

/// A receiver, and what its peer's first packet is numbered.
fn receiver(first: Seq16) -> (Connection, Instant) {
    let now = Instant::from_secs(1);
    let syn = Header { kind: Kind::Syn, connection_id: 99, seq: first.sub(1), ..data(now, first, 0) };
    let syn = syn.encode(&[]).unwrap();
    let config = Config { initial_seq: Some(Seq16(5000)), ..wide() };
    let mut random = Stream::named(1, "receiver");
    let controller = Recorder::boxed(1 << 20).0;
    let syn = Packet::decode(&syn).unwrap();
    let mut connection = Connection::accept(now, &syn, config, controller, &mut random).unwrap();
    while connection.poll_transmit(now).is_some() {}
    (connection, now)
}

/// Everything that wants to leave, as whole datagrams.
fn drain(connection: &mut Connection, now: Instant) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| connection.poll_transmit(now))
        .map(|packet| [packet.head.to_vec(), packet.payload.to_vec()].concat())
        .collect()
}

/// Whatever has arrived beyond a gap, the STATE that answers tells exactly that, as far as a mask reaches.
#[test]
fn the_mask_tells_what_is_held_at_any_reach() {
    let mut random = Stream::named(1, "reach");
    for round in 0..60 {
        let first = Seq16(random.next_u16());
        let (mut connection, now) = receiver(first);
        let reach = 1 + random.below([40, 300, 2000, 2100, 9000][round % 5]);
        let mut held = vec![false; 1 + reach as usize];
        for _ in 0..1 + random.below(600) {
            let number = 1 + random.below(reach) as u16;
            held[usize::from(number)] = true;
            let head = data(now, first, number).encode(&[]).unwrap();
            connection.handle(now, &head, Payload::copy_from(&[7]));
        }
        let sent = drain(&mut connection, now);
        let [state] = &sent[..] else { panic!("one STATE answers them all: {}", sent.len()) };
        let packet = Packet::decode(state).unwrap();
        assert_eq!((packet.header.kind, packet.header.ack), (Kind::State, first.sub(1)));
        assert!(packet.payload.is_empty());
        let mask = packet.extensions.selective_ack().unwrap();
        let farthest = held.iter().rposition(|&held| held).unwrap();
        assert_eq!(mask.as_bytes().len(), farthest.min(2016).div_ceil(32) * 4);
        for bit in 0..mask.len_bits() {
            let holds = held.get(usize::from(bit) + 1).copied().unwrap_or_default();
            assert_eq!(mask.contains(bit), holds, "round {round}, bit {bit}");
        }
    }
}

/// A packet with data tells what a head holds, and a STATE with the rest of it follows.
#[test]
fn data_that_cannot_carry_the_mask_leaves_it_to_a_state() {
    let first = Seq16(0xff00);
    let (mut connection, now) = receiver(first);
    for (number, masks) in [(30_u16, &[4][..]), (255, &[32]), (257, &[32, 36]), (2000, &[32, 252])] {
        let head = data(now, first, number).encode(&[]).unwrap();
        connection.handle(now, &head, Payload::copy_from(&[7]));
        let len = connection.snapshot().payload_bytes;
        connection.write(Payload::Pattern { start: 0, len }).unwrap();
        let sent = drain(&mut connection, now);
        let lens: Vec<usize> = sent
            .iter()
            .filter_map(|octets| Packet::decode(octets).unwrap().extensions.selective_ack())
            .map(|mask| mask.as_bytes().len())
            .collect();
        // What the mask takes from the first packet's payload leaves in another one.
        assert_eq!((lens.first(), lens.last()), (masks.first(), masks.last()), "{number}: {lens:?}");
        assert!(sent.iter().all(|octets| octets.len() <= len as usize + HEADER_BYTES));
    }
}

fn numbers(acked: &[bool]) -> Vec<u64> {
    (0..acked.len() as u64).filter(|&number| acked[number as usize]).collect()
}

/// Masks of every length that the octet of length can say are read, and cost no packet twice.
#[test]
fn masks_of_every_length_are_taken_in() {
    let mut random = Stream::named(1, "lengths");
    for len in 1..=255_u16 {
        let mut script = Script::new(wide(), 4 << 20, Seq16(random.next_u16()), Seq16(7));
        let sent = script.send_packets(2100);
        assert_eq!(sent.len(), 2100);
        let mut acked = vec![false; 2100];
        for _ in 0..4 {
            let mask: Vec<u8> = (0..len).map(|_| random.next_u32() as u8 & 0x5a).collect();
            for bit in 0..8 * usize::from(len) {
                acked[bit + 1] |= mask[bit / 8] >> (bit % 8) & 1 == 1;
            }
            script.state(script.first.sub(1), &mask);
        }
        let mut told = common::acked(&script.diary);
        told.sort_unstable();
        assert!(told == numbers(&acked), "{len} octets");
        assert_eq!(script.connection.suspicions().unsent_selective_acks, 0);
    }
}

/// What a mask told is remembered when the window slides on, and a mask that comes late takes nothing back.
#[test]
fn masks_and_cumulative_acknowledgements_in_any_order_agree() {
    let mut random = Stream::named(1, "sliding");
    for round in 0..40 {
        let mut script = Script::new(wide(), 4 << 20, Seq16(random.next_u16()), Seq16(7));
        script.send_packets(2000);
        let mut acked = vec![false; 2000];
        for _ in 0..60 {
            // Up to three packets late, which is as late as is believed.
            let oldest = acked.iter().position(|&acked| !acked).unwrap_or(acked.len());
            let below = (oldest + random.below(40) as usize).saturating_sub(3).min(1990);
            acked[..below].fill(true);
            // What newer acknowledgements have told to be missing no older one tells to be there.
            let missing = acked.iter().position(|&acked| !acked);
            let bits = random.below(1990 - below as u64 + 1) as usize;
            let mut mask = vec![0_u8; bits.div_ceil(32) * 4];
            for bit in 0..bits {
                if random.chance(0.1) && Some(below + 1 + bit) != missing {
                    mask[bit / 8] |= 1 << (bit % 8);
                    acked[below + 1 + bit] = true;
                }
            }
            script.state(script.first.add(below as u16).sub(1), &mask);
        }
        let mut told = common::acked(&script.diary);
        told.sort_unstable();
        assert!(told == numbers(&acked), "round {round}");
    }
}

/// Nearly every other packet of a window of 1500 is lost once: one round trip tells them all, and another repairs them.
#[test]
fn a_window_s_losses_are_repaired_in_a_few_round_trips() {
    let setup = Setup { configs: [wide(), wide()], ..Setup::default() };
    let mut world = World::connected(&setup);
    let cwnd = ParamValue::Bytes(Bytes(1500 * 400));
    world.sides[0]
        .connection
        .set_controller(|path| registry::build("fixed", &Params::new().with("cwnd", cwnd), path).unwrap());
    let mut dropped = std::collections::BTreeSet::new();
    world.judge = Box::new(move |seen| {
        let number = seen.header.seq.0;
        let lost = seen.header.kind == Kind::Data && number % 2 == 0 && dropped.len() < 740;
        if lost && dropped.insert(number) { Fate::Drop } else { Fate::Deliver }
    });
    world.sides[0].to_write = 1500 * 400;
    let (start, round_trip) = (world.now, world.delay + world.delay);
    let end = start + Duration::from_secs(60);
    assert!(world.run_until(end, |world| world.sides[1].received == 1500 * 400));
    let rounds = world.now.since(start).as_secs_f64() / round_trip.as_secs_f64();
    assert!(rounds < 2.6, "{rounds} round trips");
    assert_eq!(world.sides[0].connection.statistics().timeouts, 0);
    assert!(world.log.iter().any(|seen| seen.mask.as_ref().is_some_and(|mask| mask.len() > 180)));
    world.run_for(ms(100));
    assert_eq!(world.sides[0].connection.statistics().retransmissions, 740, "each of them once");
}
