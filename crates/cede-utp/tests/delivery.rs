//! Data across a connection: whole and in order, whatever the network does within reason.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Stream};
use cede_utp::{Config, DelayedAck, Event, Mtu};
use common::{Fate, Seen, Setup, World, ms, transfer};

#[test]
fn a_perfect_network_delivers_without_a_retransmission() {
    for name in ["reno", "ledbat", "cubic", "fixed"] {
        let world = transfer(&Setup { controller: name, ..Setup::default() }, 3_000_000, |_| Fate::Deliver);
        assert_eq!(world.sides[1].received, 3_000_000);
        let sent = world.sides[0].connection.statistics();
        assert_eq!((sent.retransmissions, sent.losses, sent.timeouts), (0, 0, 0), "{name}");
        assert!(world.sides.iter().all(|side| side.has(Event::Closed)));
    }
}

#[test]
fn a_bad_network_delivers_all_the_same() {
    for seed in 0..20 {
        let mut random = Stream::named(seed, "network");
        let judge = move |_: &common::Seen| match random.below(100) {
            0..5 => Fate::Drop,
            5..10 => Fate::Twice,
            10..20 => Fate::Late(ms(random.below(30))),
            _ => Fate::Deliver,
        };
        let world = transfer(&Setup { seed, ..Setup::default() }, 500_000, judge);
        assert_eq!(world.sides[1].received, 500_000, "{seed}");
    }
}

/// A network whose badness is drawn anew for each seed: loss, duplication, reordering in both directions, truncation,
/// garbled octets and packets of strangers' making. What its checksum would have caught still decodes now and then, so
/// garbling is confined to heads: a transport without a checksum cannot tell octets of payload from others.
fn bad_network(seed: u64) -> impl FnMut(&Seen) -> Fate {
    let mut random = Stream::named(seed, "bad network");
    let [loss, twice, late, garble] = [15, 10, 30, 5].map(|most| random.below(most));
    let spread = 1 + random.below(80);
    move |seen| {
        let draw = random.below(100);
        if draw < loss {
            Fate::Drop
        } else if draw < loss + twice {
            Fate::Twice
        } else if draw < loss + twice + late {
            Fate::Late(ms(random.below(spread)))
        } else if draw < loss + twice + late + garble {
            garbled(seen, &mut random)
        } else {
            Fate::Deliver
        }
    }
}

/// The head alone, cut short or with an octet changed behind its numbers; FINs and RESETs it must not become.
fn garbled(seen: &Seen, random: &mut Stream) -> Fate {
    let mut octets = seen.header.encode(&[]).unwrap().to_vec();
    if random.chance(0.5) {
        octets.truncate(random.below(20) as usize);
    } else {
        // Version and kind, id, timestamps or window.
        let at = random.below(16) as usize;
        octets[at] ^= 1 << random.below(8);
        if octets[0] != 0x21 {
            octets[0] = 0x7f;
        }
    }
    Fate::Garbled(octets)
}

#[test]
fn any_network_delivers_the_stream_or_a_typed_error() {
    let mut whole = 0;
    for seed in 0..300 {
        let names = ["reno", "ledbat", "cubic", "fixed"];
        let mut configs = [Config::default(), Config::default()];
        let (mut random, patient) = (Stream::named(seed, "setup"), seed % 2 == 1);
        for config in &mut configs {
            *config = match random.below(3) {
                0 => Config::libutp(),
                1 => Config::libtorrent(),
                _ => Config { mtu: Mtu::SEARCH_IPV4, ..Config::default() },
            };
            config.receive_buffer_bytes = 3000 << random.below(9);
            config.send_buffer_bytes = 3000 << random.below(9);
            config.nagle = random.chance(0.5);
            if patient {
                // Five failures in a row come by chance on such a network; fifteen do not.
                (config.max_retransmissions, config.fin_timeout) = (14, Duration::from_secs(200));
                config.max_transmissions = config.max_transmissions.map(|_| 15);
            }
            if random.chance(0.5) {
                config.delayed_ack = Some(DelayedAck { timeout: ms(100), every_packets: 2 });
            }
        }
        let setup = Setup { configs, seed, controller: names[random.below(4) as usize], ..Setup::default() };
        let mut world = World::connected(&setup);
        world.judge = Box::new(bad_network(seed));
        for side in &mut world.sides {
            side.to_write = random.below(200_000);
            side.close_after_writing = true;
        }
        let totals: Vec<u64> = world.sides.iter().map(|side| side.to_write).collect();
        let end = world.now + Duration::from_secs(4 * 3600);
        let ended = world.run_until(end, |world| world.sides.iter().all(|side| side.connection.is_drained()));
        assert!(
            ended,
            "{seed} stalls: {:#?}",
            world.sides.iter().map(|side| side.connection.snapshot()).collect::<Vec<_>>()
        );
        let complete = (0..2).all(|side| world.sides[side].received == totals[1 - side]);
        let failed = world.sides.iter().any(|side| matches!(side.events.last(), Some(Event::Failed(_))));
        assert!(complete || (failed && !patient), "{seed}: incomplete");
        whole += usize::from(complete);
    }
    assert!(whole >= 285, "only {whole} of 300 arrived whole");
}
