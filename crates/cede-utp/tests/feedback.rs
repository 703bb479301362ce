//! What the controller is told: every field of the feedback, from packets written by hand.
#![allow(missing_docs)]

mod common;

use cede_cc::{DelaySamples, PacketFact, SendRecord};
use cede_units::{Duration, Instant, Seq16};
use cede_utp::{Config, ConnectionError, Mtu, RttRule};
use cede_wire::Payload;
use cede_wire::utp::{Kind, Packet};
use common::{Script, Told, ms};

type Feedback = (Vec<PacketFact>, Vec<PacketFact>, cede_cc::Feedback<'static>);

fn feedbacks(script: &Script) -> Vec<Feedback> {
    let told = script.diary.lock().unwrap();
    told.iter()
        .filter_map(|told| match told {
            Told::Feedback { acked, lost, feedback } => Some((acked.clone(), lost.clone(), *feedback)),
            _ => None,
        })
        .collect()
}

fn numbers(facts: &[PacketFact]) -> Vec<u64> {
    facts.iter().map(|fact| fact.number).collect()
}

#[test]
fn a_cumulative_acknowledgement_is_told_whole() {
    let mut script = Script::new(Config::default(), 4 * 1382, Seq16(1), Seq16(900));
    let sent_at = script.now;
    script.send_packets(10);
    script.wait(ms(40));
    script.state(Seq16(3), &[]);
    let all = feedbacks(&script);
    let (acked, lost, feedback) = &all[0];
    assert_eq!((numbers(acked), lost.len()), (vec![0, 1, 2], 0));
    let record = SendRecord {
        delivered_bytes: 0,
        delivered_at: sent_at,
        first_sent_at: sent_at,
        // The script had nothing to send before it wrote.
        app_limited: true,
    };
    let expected = PacketFact { number: 2, bytes: 1382, sent_at, retransmitted: false, tag: 1002, record };
    assert_eq!(acked[2], expected);
    assert_eq!((feedback.acked_bytes, feedback.lost_bytes), (3 * 1382, 0));
    assert_eq!((feedback.in_flight_before_bytes, feedback.in_flight_bytes), (4 * 1382, 1382));
    assert_eq!((feedback.delivered_bytes, feedback.next_number), (3 * 1382, 4));
    assert_eq!((feedback.rtt, feedback.rtt_min), (Some(ms(40)), Some(ms(40))));
    // The handshake's 50 ms, then 40 ms: 7/8 and 1/8.
    assert_eq!(feedback.srtt, Duration::from_micros(48_750));
    assert_eq!(feedback.one_way_delay_ns, Some(25_000_000));
    assert_eq!(feedback.reverse_delay_ns, Some(0));
    assert!(!feedback.app_limited && !feedback.in_recovery);
    assert_eq!((feedback.ce_marked, feedback.now), (0, script.now));
}

/// Whoever keeps a base of delays has it from the handshake, before there is a queue of its own.
#[test]
fn packets_that_acknowledge_nothing_tell_their_delays() {
    let mut script = Script::new(Config::default(), 4 * 1382, Seq16(1), Seq16(900));
    let delays = |script: &Script| -> Vec<DelaySamples> {
        let told = script.diary.lock().unwrap();
        told.iter().filter_map(|told| if let Told::Delays(one) = told { Some(*one) } else { None }).collect()
    };
    let at = |now| DelaySamples { now, one_way_delay_ns: Some(25_000_000), reverse_delay_ns: Some(0) };
    let answered = script.now;
    assert_eq!(delays(&script), [at(answered)]);
    script.wait(ms(10));
    let data = script.header(Kind::Data, Seq16(900), Seq16(0));
    script.packet(&data, &[], Payload::Pattern { start: 0, len: 100 });
    assert_eq!(delays(&script), [at(answered), at(script.now)]);
    // An acknowledgement tells its own.
    script.send_packets(1);
    script.wait(ms(40));
    script.peer_seq = Seq16(901);
    script.state(Seq16(1), &[]);
    assert_eq!((delays(&script).len(), feedbacks(&script).len()), (2, 1));
}

#[test]
fn selective_acknowledgements_find_losses_and_open_a_recovery() {
    let mut script = Script::new(Config::default(), 8 * 1382, Seq16(1), Seq16(900));
    script.send_packets(20);
    script.wait(ms(40));
    script.state(Seq16(1), &[0b0000_0011, 0, 0, 0]);
    script.state(Seq16(1), &[0b0000_0111, 0, 0, 0]);
    let all = feedbacks(&script);
    assert_eq!((numbers(&all[0].0), numbers(&all[0].1)), (vec![0, 2, 3], vec![]));
    let (acked, lost, feedback) = &all[1];
    assert_eq!((numbers(acked), numbers(lost)), (vec![4], vec![1]));
    assert_eq!((feedback.acked_bytes, feedback.lost_bytes), (1382, 1382));
    assert_eq!(feedback.in_flight_bytes, 3 * 1382, "8 less 4 acknowledged and 1 lost");
    assert!(!feedback.in_recovery, "the loss itself is news");
    // The lost packet leaves first, with the tag of its new transmission; the window lets four more follow.
    assert_eq!(script.drain_data()[0], 2);
    script.wait(ms(10));
    script.state(Seq16(1), &[0b0000_1111, 0, 0, 0]);
    assert!(feedbacks(&script)[2].2.in_recovery);
    script.wait(ms(30));
    // The repetition arrives: no RTT from it, one from the newest that was sent once.
    script.state(Seq16(6), &[]);
    let (acked, _, feedback) = feedbacks(&script)[3].clone();
    assert_eq!(numbers(&acked), [1]);
    assert!(acked[0].retransmitted && feedback.rtt.is_none());
    assert!(feedback.in_recovery, "what was out at the loss is not all acknowledged");
    let next = feedback.next_number as u16;
    script.state(Seq16(next), &[]);
    let (_, _, feedback) = feedbacks(&script)[4].clone();
    assert!(!feedback.in_recovery && feedback.rtt.is_some());
}

/// libtorrent overwrites what the acknowledgement's number has told by what its mask tells.
#[test]
fn an_acknowledgement_with_a_mask_may_count_the_mask_alone() {
    for (masks_count_alone, acked_bytes) in [(false, 4 * 1382), (true, 1382)] {
        let config = Config { masks_count_alone, ..Config::default() };
        let mut script = Script::new(config, 8 * 1382, Seq16(1), Seq16(900));
        script.send_packets(8);
        script.wait(ms(40));
        // Numbers 1 to 3, and the one above the gap.
        script.state(Seq16(3), &[0b0000_0001, 0, 0, 0]);
        let (acked, _, feedback) = feedbacks(&script)[0].clone();
        assert_eq!(numbers(&acked), [0, 1, 2, 4]);
        assert_eq!((feedback.acked_bytes, feedback.in_flight_bytes), (acked_bytes, 4 * 1382));
        script.state(Seq16(5), &[]);
        assert_eq!(feedbacks(&script)[1].2.acked_bytes, 1382, "without a mask the number counts");
    }
}

#[test]
fn three_duplicate_states_lose_the_oldest_packet_unless_the_profile_says_otherwise() {
    for (config, resent) in [(Config::default(), vec![1]), (Config::libutp(), vec![])] {
        let mut script = Script::new(config, 8 * 1382, Seq16(1), Seq16(900));
        script.send_packets(8);
        for _ in 0..2 {
            script.state(Seq16(0), &[]);
            assert!(script.drain_data().is_empty());
        }
        script.state(Seq16(0), &[]);
        assert_eq!(script.drain_data(), resent);
        script.state(Seq16(0), &[]);
        assert!(script.drain_data().is_empty(), "once");
    }
}

#[test]
fn window_updates_are_no_duplicates() {
    let mut script = Script::new(Config::default(), 8 * 1382, Seq16(1), Seq16(900));
    script.send_packets(8);
    for step in 0..6 {
        let header = script.header(cede_wire::utp::Kind::State, Seq16(900), Seq16(0));
        let header = cede_wire::utp::Header { window_bytes: (1 << 20) + step * 1000, ..header };
        script.packet(&header, &[], Payload::Empty);
    }
    // The first states the window as it was; the other five open it.
    assert_eq!(script.connection.statistics().duplicate_acks_received, 1);
    assert!(script.drain_data().is_empty());
}

#[test]
fn a_timeout_is_told_with_what_was_under_way() {
    let mut script = Script::new(Config::default(), 4 * 1382, Seq16(1), Seq16(900));
    script.send_packets(10);
    let mut gaps = Vec::new();
    for _ in 0..3 {
        let at = script.connection.poll_timeout().unwrap();
        gaps.push(at.since(script.now));
        script.wait(at.since(script.now));
        let resent = script.drain_data();
        assert_eq!(resent[0], 1);
    }
    assert_eq!(gaps, [ms(500), ms(1000), ms(2000)]);
    let told = script.diary.lock().unwrap();
    let timeouts: Vec<_> = told
        .iter()
        .filter_map(|told| match told {
            Told::Timeout(timeout) => {
                Some((timeout.in_flight_bytes, timeout.consecutive, timeout.next_number, timeout.idle))
            }
            _ => None,
        })
        .collect();
    assert_eq!(timeouts, [(4 * 1382, 1, 4, false), (4 * 1382, 2, 4, false), (4 * 1382, 3, 4, false)]);
}

#[test]
fn samples_that_mean_none_are_told_as_none() {
    for (difference, expected) in
        [(0, None), (0x7fff_ffff, None), (0xffff_ffff, Some(-1_000)), (7, Some(7_000))]
    {
        let mut script = Script::new(Config::default(), 4 * 1382, Seq16(1), Seq16(900));
        // The first sample of a connection is taken as it stands.
        let mut fresh = Script::new(Config::default(), 4 * 1382, Seq16(1), Seq16(900));
        std::mem::swap(&mut script, &mut fresh);
        script.send_packets(1);
        let header = script.header(cede_wire::utp::Kind::State, Seq16(900), Seq16(1));
        let header =
            cede_wire::utp::Header { timestamp_difference_us: difference, timestamp_us: 0, ..header };
        script.packet(&header, &[], Payload::Empty);
        let feedback = feedbacks(&script)[0].2;
        assert_eq!(feedback.one_way_delay_ns, expected, "{difference:x}");
        assert_eq!(feedback.reverse_delay_ns, None, "a timestamp of zero is none");
    }
}

#[test]
fn the_flow_is_app_limited_exactly_where_a_full_packet_would_have_been_allowed() {
    let mut script = Script::new(Config::default(), 4 * 1382, Seq16(1), Seq16(900));
    script.send_packets(1);
    script.state(Seq16(1), &[]);
    script.send_packets(4);
    script.state(Seq16(3), &[]);
    script.drain();
    script.state(Seq16(5), &[]);
    let limited: Vec<bool> = feedbacks(&script).iter().map(|(_, _, feedback)| feedback.app_limited).collect();
    assert_eq!(limited, [true, false, true]);
}

#[test]
fn lost_probes_of_the_path_mtu_are_not_congestion() {
    let config = Config { mtu: Mtu::SEARCH_IPV4, ..Config::default() };
    let mut script = Script::new(config, 1 << 16, Seq16(1), Seq16(900));
    script.connection.write(Payload::Pattern { start: 0, len: 20_000 }).unwrap();
    let sent = script.drain();
    let probe = sent.iter().find(|seen| seen.dont_fragment).unwrap().clone();
    assert!(sent.iter().filter(|seen| seen.dont_fragment).count() == 1 && probe.udp_bytes > 900);
    assert!(sent.iter().all(|seen| seen.dont_fragment || seen.udp_bytes <= 548));
    let before = probe.header.seq.sub(1);
    script.state(before, &[0x07, 0, 0, 0]);
    let again = script.drain();
    assert_eq!((again[0].header.seq, again[0].dont_fragment), (probe.header.seq, false));
    assert_eq!(again[0].payload_bytes, probe.payload_bytes, "packets keep their payload");
    assert_eq!(again[0].udp_bytes, 548);
    assert!(feedbacks(&script).iter().all(|(_, lost, _)| lost.is_empty()));
    let statistics = script.connection.statistics();
    assert_eq!((statistics.mtu_probes_sent, statistics.mtu_probes_lost, statistics.losses), (1, 1, 0));
}

#[test]
fn a_probe_that_passes_raises_the_packet_size() {
    let config = Config { mtu: Mtu::SEARCH_IPV4, ..Config::default() };
    let mut script = Script::new(config, 1 << 20, Seq16(1), Seq16(900));
    let mut start = 0;
    for _ in 0..20 {
        let n = script.connection.write(Payload::Pattern { start, len: 30_000 }).unwrap();
        start += u64::from(n);
        let sent = script.drain();
        script.wait(ms(20));
        script.state(sent.last().unwrap().header.seq, &[]);
    }
    assert!(script.connection.snapshot().payload_bytes >= 1472 - 20 - 16);
    let told = script.diary.lock().unwrap();
    assert!(told.iter().any(|told| matches!(told, Told::Mss(bytes) if *bytes > 1400)));
    drop(told);
    while let Some(last) = script.drain().last() {
        script.state(last.header.seq, &[]);
    }
    // The search begins again half an hour later.
    let end = script.now + Duration::from_secs(31 * 60);
    while let Some(at) = script.connection.poll_timeout().filter(|&at| at < end) {
        script.wait(at.since(script.now));
        script.drain();
    }
    assert_eq!(script.connection.snapshot().payload_bytes, 528);
    assert!(script.now > Instant::from_secs(1700));
}

#[test]
fn delays_are_measured_by_when_a_packet_came_not_by_when_the_host_looked() {
    let mut script = Script::new(Config::default(), 1 << 16, Seq16(1), Seq16(900));
    script.connection.write(Payload::Pattern { start: 0, len: 100 }).unwrap();
    script.drain();
    script.wait(ms(30));
    let arrived_at = script.now;
    let header = script.header(Kind::State, Seq16(901), Seq16(1));
    let head = header.encode(&[]).unwrap();
    script.wait(ms(200));
    script.connection.handle_stamped(script.now, arrived_at, &Packet::decode(&head).unwrap(), Payload::Empty);
    let snapshot = script.connection.snapshot();
    assert_eq!((snapshot.rtt_latest, snapshot.unacked_bytes), (ms(30), 0));
    script.connection.write(Payload::Pattern { start: 100, len: 100 }).unwrap();
    let told = script.drain()[0].header.timestamp_difference_us;
    assert_eq!(told, (arrived_at.as_micros() as u32).wrapping_sub(header.timestamp_us).max(1));
}

/// What an acknowledgement of packets that a timeout sent again tells, where it says that it answers a packet that left so long
/// ago: the first transmission left 800 ms ago, the second 300 ms ago.
fn after_a_timeout(difference: u32) -> (Option<Duration>, u64) {
    let mut script = Script::new(Config::default(), 1382, Seq16(1), Seq16(900));
    script.send_packets(1);
    script.wait(ms(500));
    assert_eq!(script.drain_data(), [1], "the timeout's repetition");
    script.wait(ms(300));
    let mut header = script.header(Kind::State, Seq16(900), Seq16(1));
    header.timestamp_difference_us = difference;
    script.packet(&header, &[], Payload::Empty);
    let rtt = feedbacks(&script)[0].2.rtt;
    assert_eq!(
        script.connection.snapshot().rtt_latest,
        rtt.unwrap_or(ms(50)),
        "the handshake's, or this one"
    );
    (rtt, script.connection.statistics().timeouts_in_vain)
}

#[test]
fn the_peers_stamps_tell_a_timeout_in_vain_and_give_its_round_trip() {
    assert_eq!(after_a_timeout(800_000), (Some(ms(800)), 1));
    assert_eq!(after_a_timeout(330_000), (Some(ms(330)), 1));
    assert_eq!(after_a_timeout(300_000), (None, 0), "the repetition");
    assert_eq!(after_a_timeout(315_000), (None, 0), "as near as a coarse clock is");
    for none in [0, 0x7fff_ffff, 200_000_000] {
        assert_eq!(after_a_timeout(none), (None, 0), "no stamp that means anything");
    }
}

/// A path of 780 ms on which nothing ever varied, and a peer that then keeps an acknowledgement back for 100 ms.
#[test]
fn a_delayed_acknowledgement_on_a_steady_path_is_waited_for() {
    let in_vain = |config: Config| {
        let mut script = Script::new(config, 1382, Seq16(1), Seq16(900));
        for (number, round_trip) in (1..).zip((60..780).step_by(20).chain([780; 60]).chain([880])) {
            script.send_packets(1);
            for _ in 0..round_trip / 20 {
                script.wait(ms(20));
                script.drain();
            }
            script.state(Seq16(number), &[]);
        }
        script.connection.statistics().timeouts
    };
    assert_eq!(in_vain(Config::default()), 0);
    assert_eq!(in_vain(Config { rto_margin: Duration::ZERO, ..Config::default() }), 1);
}

#[test]
fn who_is_heard_is_waited_for_longer_and_not_for_ever() {
    let timeouts = |is_heard: bool| {
        let mut script = Script::new(Config::default(), 1382, Seq16(1), Seq16(900));
        script.send_packets(1);
        for _ in 0..4000 {
            script.wait(ms(100));
            script.drain();
            if is_heard {
                script.state(Seq16(0), &[]);
            }
            if let Some(error) = script.connection.error() {
                assert_eq!(error, ConnectionError::TimedOut);
                return script.connection.statistics().timeouts;
            }
        }
        panic!("it never ended");
    };
    assert_eq!((timeouts(false), timeouts(true)), (4, 9));
}

/// A peer that is heard all the time, and a packet that never arrives: libtorrent gives up when the timer runs out for the third
/// time.
#[test]
fn a_packet_may_leave_so_often_and_then_ends_the_connection() {
    let left = |max_transmissions: Option<u8>| {
        let config = Config { max_transmissions, ..Config::default() };
        let mut script = Script::new(config, 4 * 1382, Seq16(1), Seq16(900));
        script.send_packets(4);
        let mut left = 0;
        while script.connection.error().is_none() && left < 8 {
            script.wait(ms(100));
            script.state(Seq16(0), &[]);
            left += script.drain_data().iter().filter(|&&number| number == 1).count();
        }
        left
    };
    assert_eq!((left(Some(3)), left(Some(5)), left(None)), (3, 5, 8));
}

/// By libtorrent's rule each packet acknowledged is a sample, since it left last.
#[test]
fn libtorrents_round_trips_are_those_of_every_packet() {
    let rto = |rto_rule: RttRule| {
        let config = Config { rto_rule, min_rto: ms(1), rto_margin: Duration::ZERO, ..Config::default() };
        let mut script = Script::new(config, 2 * 1382, Seq16(1), Seq16(900));
        script.send_packets(2);
        script.wait(ms(150));
        script.state(Seq16(2), &[]);
        script.connection.poll_timeout().map(|_| script.connection.snapshot().srtt)
    };
    // The handshake took 50 ms; one sample of 150 ms weighs an eighth, two of three packets make two thirds of the mean.
    assert_eq!(rto(RttRule::Rfc6298), Some(Duration::from_micros(62_500)));
    assert_eq!(rto(RttRule::Libtorrent).map(Duration::as_millis), Some(116));
}

/// A packet that was sent again is acknowledged a moment later, which its first transmission had earned: a sample by libtorrent's rule,
/// but no round trip that the path can have.
#[test]
fn what_was_sent_again_tells_no_shortest_round_trip() {
    let config = Config { rto_rule: RttRule::Libtorrent, ..Config::default() };
    let mut script = Script::new(config, 1382, Seq16(1), Seq16(900));
    script.send_packets(1);
    script.wait(ms(500));
    assert_eq!(script.drain_data(), [1], "the timeout's repetition");
    script.wait(ms(1));
    script.state(Seq16(1), &[]);
    let snapshot = script.connection.snapshot();
    assert_eq!((snapshot.rtt_min, snapshot.srtt.as_micros()), (Some(ms(50)), 25_500));
}
