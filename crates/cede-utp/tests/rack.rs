//! RFC 8985: losses that time tells, and probes of a tail.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Seq16, Stream};
use cede_utp::{Config, DelayedAck, Statistics};
use cede_wire::utp::Kind;
use common::{Fate, Script, Seen, Setup, Told, World, ms};

/// Sends `bytes` over a path of 1 ms there and back, and says how long it took until all was there.
fn send(config: &Config, bytes: u64, judge: impl FnMut(&Seen) -> Fate + 'static) -> (Duration, Statistics) {
    let configs = [config.clone(), config.clone()];
    let mut world = World::connected(&Setup { configs, ..Setup::default() });
    world.delay = Duration::from_micros(500);
    // What the handshake took over the slower path is not this one's round trip.
    world.sides[0].to_write = 200_000;
    world.run_for(Duration::from_secs(2));
    world.judge = Box::new(judge);
    let begun = world.now;
    world.sides[0].to_write = bytes;
    let end = world.now + Duration::from_secs(600);
    assert!(world.run_until(end, |world| world.sides[1].received == 200_000 + bytes), "stalled");
    let took = world.now.since(begun);
    world.run_for(ms(5));
    (took, world.sides[0].connection.statistics())
}

/// Drops the transmissions of these DATA packets, counted from the first that is judged, as often as said.
fn dropping(lost: &'static [(u16, u32)]) -> impl FnMut(&Seen) -> Fate {
    let mut first: Option<Seq16> = None;
    let mut left: Vec<(u16, u32)> = lost.to_vec();
    move |seen| {
        if seen.header.kind != Kind::Data {
            return Fate::Deliver;
        }
        let number = seen.header.seq.distance_from(*first.get_or_insert(seen.header.seq));
        match left.iter_mut().find(|(lost, times)| *lost == number && *times > 0) {
            Some((_, times)) => {
                *times -= 1;
                Fate::Drop
            }
            None => Fate::Deliver,
        }
    }
}

const TEN_PACKETS: u64 = 10 * 1382;

#[test]
fn the_loss_of_the_last_packet_costs_no_timeout() {
    let (took, statistics) = send(&Config::internet(), TEN_PACKETS, dropping(&[(9, 1)]));
    assert!(took < ms(60), "{took}");
    assert_eq!((statistics.timeouts, statistics.tail_probes, statistics.losses), (0, 1, 1));
    let (took, statistics) = send(&Config::default(), TEN_PACKETS, dropping(&[(9, 1)]));
    assert!(took > ms(500), "{took}");
    assert_eq!((statistics.timeouts, statistics.tail_probes), (1, 0));
}

#[test]
fn the_loss_of_the_last_packets_costs_no_timeout() {
    let (took, statistics) =
        send(&Config::internet(), TEN_PACKETS, dropping(&[(6, 1), (7, 1), (8, 1), (9, 1)]));
    assert!(took < ms(60), "{took}");
    assert_eq!((statistics.timeouts, statistics.losses), (0, 4));
}

#[test]
fn a_lost_repetition_costs_no_timeout() {
    let (took, statistics) = send(&Config::internet(), 10 * TEN_PACKETS, dropping(&[(20, 3)]));
    assert!(took < ms(60), "{took}");
    assert_eq!((statistics.timeouts, statistics.losses), (0, 3));
    let (took, _) = send(&Config::default(), 10 * TEN_PACKETS, dropping(&[(20, 3)]));
    assert!(took > ms(500), "{took}");
}

#[test]
fn a_megabyte_with_three_percent_of_losses_takes_a_second_or_two() {
    for seed in 0..20 {
        let mut random = Stream::named(seed, "three percent");
        let judge = move |_: &Seen| if random.chance(0.03) { Fate::Drop } else { Fate::Deliver };
        let (took, statistics) = send(&Config::internet(), 1 << 20, judge);
        assert!(took < Duration::from_secs(2), "seed {seed}: {took}, {statistics:?}");
    }
}

#[test]
fn packets_that_swap_places_are_not_lost() {
    let mut random = Stream::named(1, "swaps");
    // Later by less than a quarter of the round trip, and by no more than two packets.
    let judge = move |seen: &Seen| match seen.header.kind {
        Kind::Data if random.chance(0.2) => Fate::Late(Duration::from_micros(200)),
        _ => Fate::Deliver,
    };
    let config = Config { sack_threshold: 4, duplicate_ack_threshold: None, ..Config::internet() };
    let (_, statistics) = send(&config, 2 * 1382, judge);
    assert_eq!((statistics.losses, statistics.timeouts), (0, 0));
}

/// Of 2 MB over a path of 40 ms there and back, whose packets come up to 15 ms later each by itself.
fn overtaking(config: &Config, lost: f64, late_us: u64) -> (Duration, Statistics) {
    let configs = [config.clone(), config.clone()];
    let mut world = World::connected(&Setup { configs, ..Setup::default() });
    world.delay = ms(20);
    let mut random = Stream::named(1, "overtaking");
    world.judge = Box::new(move |seen: &Seen| match seen.header.kind {
        Kind::Data if random.chance(lost) => Fate::Drop,
        Kind::Data => Fate::Late(Duration::from_micros(random.below(late_us))),
        _ => Fate::Deliver,
    });
    let begun = world.now;
    world.sides[0].to_write = 2_000_000;
    let end = world.now + Duration::from_secs(600);
    assert!(world.run_until(end, |world| world.sides[1].received == 2_000_000), "stalled");
    (world.now.since(begun), world.sides[0].connection.statistics())
}

/// RFC 8985, section 6.2, steps 3 and 4: three that overtook are no sign, and what was lost in vain widens the window.
#[test]
fn a_path_on_which_packets_overtake_one_another_is_learnt() {
    let (took, statistics) = overtaking(&Config::internet(), 0.0, 15_000);
    assert!(statistics.losses <= 30 && statistics.timeouts == 0, "{statistics:?}");
    let (counting, _) = overtaking(&Config { rack: false, ..Config::internet() }, 0.0, 15_000);
    assert!(took * 2 < counting, "{took}, {counting}");
}

/// Later by more than the smallest round trip: an original arrives when a repetition could have as well, and the stamps tell which.
#[test]
fn a_path_on_which_packets_are_late_by_more_than_a_round_trip_is_learnt() {
    let (took, statistics) = overtaking(&Config::internet(), 0.0, 80_000);
    assert!(statistics.events_in_vain > 10 && statistics.timeouts == 0, "{statistics:?}");
    assert!(took < Duration::from_secs(3), "{took}, {statistics:?}");
}

#[test]
fn losses_on_such_a_path_are_found_without_timeouts() {
    let (_, statistics) = overtaking(&Config::internet(), 0.01, 15_000);
    assert!((10..60).contains(&statistics.losses), "{statistics:?}");
    assert!(statistics.timeouts <= 1, "{statistics:?}");
}

#[test]
fn a_peer_that_delays_its_acknowledgements_is_waited_for() {
    let patient = DelayedAck { timeout: ms(40), every_packets: 2 };
    let stranger = Config { delayed_ack: Some(patient), ..Config::default() };
    let configs = [Config { nagle: false, ..Config::internet() }, stranger];
    let mut world = World::connected(&Setup { configs, ..Setup::default() });
    world.delay = Duration::from_micros(500);
    for _ in 0..100 {
        world.sides[0].to_write += 500;
        world.run_for(ms(300));
    }
    let statistics = world.sides[0].connection.statistics();
    assert_eq!((statistics.tail_probes, statistics.retransmissions), (0, 0));
    assert_eq!(world.sides[1].received, 50_000);
}

/// Five packets have left; the first acknowledgement, of two of them, has made 50 ms the round trip.
fn five_out() -> (Script, Vec<u16>) {
    let mut script = Script::new(Config::internet(), 100_000, Seq16(100), Seq16(500));
    let sent = script.send_packets(5);
    script.wait(ms(50));
    script.state(Seq16(sent[1]), &[]);
    assert!(script.drain().is_empty());
    (script, sent)
}

#[test]
fn one_probe_leaves_after_two_round_trips_and_no_second_one() {
    let (mut script, sent) = five_out();
    script.wait(ms(109));
    assert!(script.drain().is_empty());
    script.wait(ms(1));
    assert_eq!(script.drain_data(), [sent[4]]);
    script.wait(ms(150));
    assert!(script.drain().is_empty(), "one probe until something is heard");
    script.wait(ms(200));
    assert_eq!(script.connection.statistics().timeouts, 1);
    assert_eq!(script.drain_data()[0], sent[2]);
}

#[test]
fn a_probe_is_new_data_where_there_is_any_whatever_the_window_says() {
    let mut script = Script::new(Config::internet(), 2 * 1382, Seq16(100), Seq16(500));
    let sent = script.send_packets(5);
    assert_eq!(sent.len(), 2);
    script.wait(ms(150));
    assert_eq!(script.drain_data(), [sent[1] + 1]);
    assert_eq!(script.connection.statistics().retransmissions, 0);
}

#[test]
fn a_probe_that_repaired_a_loss_is_a_loss_to_the_controller() {
    let (mut script, sent) = five_out();
    script.wait(ms(110));
    assert_eq!(script.drain_data(), [sent[4]]);
    script.wait(ms(50));
    script.state(Seq16(sent[4]), &[]);
    let diary = script.diary.lock().unwrap();
    let Some(Told::Feedback { acked, lost, .. }) = diary.last() else { panic!("feedback") };
    let numbers: Vec<u64> = lost.iter().map(|fact| fact.number).collect();
    assert_eq!((numbers, acked.len()), (vec![4], 3));
}

#[test]
fn a_probe_that_was_not_needed_is_no_loss() {
    let (mut script, sent) = five_out();
    script.wait(ms(110));
    assert_eq!(script.drain_data(), [sent[4]]);
    // Sooner than any round trip: this is about the first transmission.
    script.wait(ms(10));
    script.state(Seq16(sent[4]), &[]);
    assert_eq!(script.connection.statistics().losses, 0);
}

#[test]
fn a_packet_is_lost_when_a_later_one_has_arrived_and_its_own_time_is_over() {
    let (mut script, sent) = five_out();
    // The second of the three that are out is there.
    script.wait(ms(1));
    script.state(Seq16(sent[1]), &[1, 0, 0, 0]);
    assert_eq!(script.drain_data(), [0_u16; 0]);
    // All left at the same time, 51 ms ago; a quarter of the round trip later patience ends.
    script.wait(ms(11));
    assert_eq!(script.drain_data(), [0_u16; 0]);
    script.wait(ms(2));
    assert_eq!(script.drain_data(), [sent[2]]);
    assert_eq!(script.connection.statistics().losses, 1);
}

#[test]
fn a_window_of_zero_is_not_probed_as_a_tail() {
    let (mut script, sent) = five_out();
    let header = script.header(Kind::State, script.peer_seq, Seq16(sent[1]));
    let shut = cede_wire::utp::Header { window_bytes: 0, ..header };
    script.packet(&shut, &[], cede_wire::Payload::Empty);
    script.wait(ms(150));
    assert!(script.drain().is_empty());
    assert_eq!(script.connection.statistics().tail_probes, 0);
}
