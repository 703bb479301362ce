//! The search for the path's MTU on paths that say nothing, on paths that say something, and on hosts that refuse.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Seq16};
use cede_utp::{Config, Mtu};
use cede_wire::Payload;
use cede_wire::utp::Kind;
use common::{Fate, Script, Setup, World, ms};

fn searching(mtu: Mtu) -> Config {
    Config { mtu, ..Config::default() }
}

#[test]
fn a_silent_black_hole_never_stalls_the_data() {
    for (mtu, floor, passes) in
        [(Mtu::SEARCH_IPV4, 548, 548), (Mtu::SEARCH_IPV4, 548, 1000), (Mtu::SEARCH_IPV6, 1232, 1240)]
    {
        let config = searching(mtu);
        let setup = Setup { configs: [config.clone(), config], ..Setup::default() };
        let mut world = World::connected(&setup);
        // Fragments would be lost too: whatever is large goes, whether it may be fragmented or not.
        world.judge = Box::new(move |seen| if seen.udp_bytes > passes { Fate::Drop } else { Fate::Deliver });
        world.sides[0].to_write = 3_000_000;
        let end = world.now + Duration::from_secs(60);
        assert!(world.run_until(end, |world| world.sides[1].received == 3_000_000), "{passes} stalls");
        let sender = &world.sides[0].connection;
        let statistics = sender.statistics();
        assert!(statistics.mtu_probes_lost >= 1 && statistics.mtu_probes_sent <= 8);
        // Nothing else was lost, and no probe was lost twice.
        assert_eq!((statistics.timeouts, statistics.losses), (0, 0));
        assert_eq!(statistics.retransmissions, statistics.mtu_probes_lost);
        let found = sender.snapshot().payload_bytes as usize + 20;
        assert!(found >= floor && found <= passes && passes - found <= 16, "{found} of {passes}");
        assert!(world.log.iter().all(|seen| seen.dont_fragment || seen.udp_bytes <= found));
    }
}

#[test]
fn a_lone_lost_probe_costs_a_timeout_and_no_window() {
    let mut script = Script::new(searching(Mtu::SEARCH_IPV4), 1 << 16, Seq16(1), Seq16(900));
    script.connection.write(Payload::Pattern { start: 0, len: 528 }).unwrap();
    let probe = script.drain();
    assert!(probe.len() == 1 && probe[0].dont_fragment);
    script.wait(ms(500));
    let again = script.drain();
    assert_eq!((again.len(), again[0].dont_fragment, again[0].udp_bytes), (1, false, 548));
    assert_eq!(script.connection.statistics().timeouts, 0);
    script.state(Seq16(1), &[]);
    assert_eq!(script.connection.snapshot().unacked_bytes, 0);
}

#[test]
fn a_lost_probe_that_a_tail_probe_repeats_is_no_loss() {
    let config = Config { rack: true, ..searching(Mtu::SEARCH_IPV4) };
    let mut script = Script::new(config, 1 << 16, Seq16(1), Seq16(900));
    script.connection.write(Payload::Pattern { start: 0, len: 100 }).unwrap();
    script.drain();
    script.wait(ms(20));
    script.state(Seq16(1), &[]);
    script.connection.write(Payload::Pattern { start: 100, len: 528 }).unwrap();
    let probe = script.drain();
    assert!(probe.len() == 1 && probe[0].dont_fragment);
    script.wait(ms(400));
    let again = script.drain();
    assert_eq!((again.len(), again[0].dont_fragment, again[0].udp_bytes), (1, false, 548));
    script.wait(ms(20));
    script.state(Seq16(2), &[]);
    let statistics = script.connection.statistics();
    assert_eq!((statistics.tail_probes, statistics.mtu_probes_lost, statistics.timeouts), (1, 1, 0));
    assert_eq!(statistics.losses, 0, "too large, and no sign of congestion");
    assert_eq!(script.connection.snapshot().unacked_bytes, 0);
}

#[test]
fn a_probe_is_padded_by_extensions_that_begin_with_a_mask() {
    let mut script = Script::new(searching(Mtu::SEARCH_IPV4), 1 << 16, Seq16(1), Seq16(900));
    let ahead = script.header(Kind::Data, Seq16(902), Seq16(0));
    script.packet(&ahead, &[], Payload::copy_from(b"ahead"));
    script.connection.write(Payload::Pattern { start: 0, len: 2000 }).unwrap();
    let sent = script.drain();
    let probe = sent.iter().find(|seen| seen.dont_fragment).unwrap();
    assert_eq!((probe.mask.as_deref(), probe.udp_bytes), (Some(&[2, 0, 0, 0][..]), 1472));
    assert_eq!(probe.payload_bytes, 528 - 6);
    script.state(Seq16(sent.len() as u16), &[]);
    assert_eq!(script.connection.snapshot().payload_bytes, 1472 - 20);
}

#[test]
fn a_probe_that_the_host_refuses_leaves_again_at_once_and_is_no_loss() {
    for named in [None, Some(1200), Some(8000), Some(600)] {
        let mut script = Script::new(searching(Mtu::SEARCH_IPV4), 1 << 16, Seq16(1), Seq16(900));
        let mut start = 0;
        let mut probes = Vec::new();
        for _ in 0..40 {
            let n = script.connection.write(Payload::Pattern { start, len: 5000 }).unwrap();
            start += u64::from(n);
            let mut last = Seq16(0);
            loop {
                let sent = script.drain();
                let Some(newest) = sent.iter().map(|seen| seen.header.seq).max_by_key(|seq| seq.0) else {
                    break;
                };
                last = if newest.0 > last.0 { newest } else { last };
                for probe in sent.iter().filter(|seen| seen.dont_fragment) {
                    probes.push(probe.udp_bytes);
                    script.connection.packet_too_big(script.now, named);
                }
            }
            script.wait(ms(20));
            script.state(last, &[]);
        }
        assert!(
            (1..=8).contains(&probes.len()) && probes.windows(2).all(|pair| pair[1] < pair[0]),
            "{probes:?}"
        );
        let statistics = script.connection.statistics();
        assert_eq!((statistics.losses, statistics.timeouts), (0, 0));
        assert_eq!(statistics.mtu_probes_lost as usize, probes.len());
        assert_eq!(script.connection.snapshot().payload_bytes, 528, "nothing larger has passed");
        assert_eq!(script.connection.snapshot().unacked_bytes, 0);
    }
}

/// What a sender finds with these limits of both ends where the path carries `passes`, and its link 16,000.
fn found(limits: [Option<u16>; 2], passes: usize) -> usize {
    let configs =
        limits.map(|datagram_limit_bytes| Config { datagram_limit_bytes, ..searching(Mtu::SEARCH_IPV4) });
    let mut world = World::connected(&Setup { configs, ..Setup::default() });
    world.judge = Box::new(move |seen| if seen.udp_bytes > passes { Fate::Drop } else { Fate::Deliver });
    let now = world.now;
    world.sides[0].connection.on_link_carries(now, 16_000);
    world.sides[0].to_write = 20_000_000;
    let end = world.now + Duration::from_secs(60);
    assert!(world.run_until(end, |world| world.sides[1].received == 20_000_000));
    assert_eq!(world.sides[0].connection.statistics().timeouts, 0);
    world.sides[0].connection.snapshot().payload_bytes as usize + 20
}

#[test]
fn sizes_beyond_a_frame_are_for_peers_that_have_said_so() {
    let large = Some(u16::MAX);
    for limits in [[None, None], [large, None], [None, large]] {
        assert!((1456..=1472).contains(&found(limits, 100_000)), "{limits:?}");
    }
    assert!((15_984..=16_000).contains(&found([large, large], 100_000)));
    assert!((8_984..=9_000).contains(&found([large, Some(9_000)], 100_000)));
    assert!((8_952..=8_972).contains(&found([large, large], 8_972)));
    assert!((984..=1000).contains(&found([large, large], 1000)));
}

#[test]
fn lost_probes_of_a_small_window_cost_nothing_else() {
    let config = Config { mtu: Mtu::SEARCH_IPV4, datagram_limit_bytes: Some(16_000), ..Config::internet() };
    let setup = Setup { configs: [config.clone(), config], controller: "ledbat++", ..Setup::default() };
    let mut world = World::connected(&setup);
    world.judge = Box::new(|seen| if seen.udp_bytes > 1472 { Fate::Drop } else { Fate::Deliver });
    let now = world.now;
    world.sides[0].connection.on_link_carries(now, 16_000);
    world.sides[0].to_write = 3_000_000;
    let end = world.now + Duration::from_secs(60);
    assert!(world.run_until(end, |world| world.sides[1].received == 3_000_000));
    let statistics = world.sides[0].connection.statistics();
    assert_eq!((statistics.mtu_probes_lost, statistics.timeouts), (2, 0));
    // What was selectively acknowledged above a repetition had left before it.
    assert_eq!((statistics.losses, statistics.retransmissions), (0, 2));
}
