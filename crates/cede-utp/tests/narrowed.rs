//! Paths that carry less than they did: packets under way, and those behind them, arrive all the same.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Stream};
use cede_utp::{Config, Event, Mtu};
use cede_wire::utp::EXT_PART;
use common::{Fate, Seen, Setup, World, ms};
use std::cell::Cell;
use std::rc::Rc;

const TOTAL: u64 = 10_000_000;

/// What a stream between two of our own kind finds; with losses told by time, or not.
fn config(mtu: Mtu, rack: bool) -> Config {
    Config { mtu, rack, ..Config::internet() }
}

/// A connection over a path that carries what the cell says, an Ethernet frame at first, after which `judge` judges; and octets that flow, in the largest packets that fit.
fn flowing(config: &Config, mut judge: impl FnMut(&Seen) -> Fate + 'static) -> (World, Rc<Cell<usize>>) {
    let passes = Rc::new(Cell::new(1472));
    let mut world =
        World::connected(&Setup { configs: [config.clone(), config.clone()], ..Setup::default() });
    let now_passes = Rc::clone(&passes);
    world.judge = Box::new(move |seen| match now_passes.get() {
        1472 => Fate::Deliver,
        passes if seen.udp_bytes > passes => Fate::Drop,
        _ => judge(seen),
    });
    world.sides[0].to_write = TOTAL;
    let end = world.now + Duration::from_secs(60);
    assert!(world.run_until(end, |world| world.sides[0].connection.snapshot().payload_bytes > 1400));
    assert!(world.sides[1].received < TOTAL / 2);
    (world, passes)
}

fn arrives(world: &mut World, within: Duration) -> bool {
    let end = world.now + within;
    world.run_until(end, |world| world.sides[1].received == TOTAL)
}

fn is_part(seen: &Seen) -> bool {
    seen.chain.iter().any(|&(kind, _)| kind == EXT_PART)
}

#[test]
fn a_path_that_narrows_in_silence_costs_some_timeouts_and_no_octet() {
    for (mtu, narrow) in [
        (Mtu::SEARCH_IPV4, 1252),
        (Mtu::SEARCH_IPV4, 548),
        (Mtu::SEARCH_IPV6, 1232),
        (Mtu::Halving { floor_bytes: 548, ceiling_bytes: 1472 }, 1000),
    ] {
        for rack in [false, true] {
            let (mut world, passes) = flowing(&config(mtu, rack), |_| Fate::Deliver);
            passes.set(narrow);
            assert!(arrives(&mut world, Duration::from_secs(10)), "{mtu:?} {narrow} {rack}");
            let sender = &world.sides[0].connection;
            let statistics = sender.statistics();
            assert_eq!((statistics.mtu_black_holes, statistics.timeouts), (1, 3));
            let found = sender.snapshot().payload_bytes as usize + 20;
            assert!(found <= narrow && narrow - found <= 16, "{found} of {narrow}");
            assert!(world.log.iter().any(is_part));
        }
    }
}

#[test]
fn parts_that_are_lost_late_or_twice_make_whole_packets() {
    for seed in 0..20 {
        let mut random = Stream::named(seed, "path");
        let bad = move |_: &Seen| match random.below(100) {
            0..5 => Fate::Drop,
            5..15 => Fate::Late(Duration::from_micros(random.below(5000))),
            15..20 => Fate::Twice,
            _ => Fate::Deliver,
        };
        let (mut world, passes) = flowing(&config(Mtu::SEARCH_IPV4, seed % 2 == 0), bad);
        passes.set(1000);
        assert!(arrives(&mut world, Duration::from_secs(120)), "seed {seed}");
    }
}

#[test]
fn a_router_that_says_what_fits_costs_no_timeout() {
    for named in [Some(1252), None] {
        let (mut world, passes) = flowing(&config(Mtu::SEARCH_IPV4, true), |_| Fate::Deliver);
        passes.set(1252);
        world.run_for(ms(25));
        // One complaint for each of several packets that were under way; a host refuses all of a batch in one go.
        for _ in 0..5 {
            if named.is_some() {
                world.run_for(ms(1));
            }
            let now = world.local(0);
            world.sides[0].connection.packet_too_big(now, named);
        }
        assert!(arrives(&mut world, Duration::from_secs(5)), "{named:?}");
        let sender = &world.sides[0].connection;
        assert_eq!(sender.statistics().timeouts, 0, "{named:?}");
        let found = sender.snapshot().payload_bytes as usize + 20;
        assert!((1232..=1252).contains(&found), "{named:?}: {found}");
    }
}

/// Peers of another make, which put no parts together.
#[test]
fn what_others_must_have_as_it_is_the_network_may_cut() {
    for named in [Some(None), Some(Some(1252)), None] {
        let config = Config { announce: false, ..config(Mtu::SEARCH_IPV4, true) };
        let (mut world, passes) = flowing(&config, |_| Fate::Deliver);
        assert!(
            !world.sides[0].connection.is_peer_known() && world.log.iter().all(|seen| !seen.may_fragment)
        );
        let inner = std::mem::replace(&mut world.judge, Box::new(|_| Fate::Deliver));
        let mut inner = inner;
        world.judge = Box::new(move |seen| if seen.may_fragment { Fate::Deliver } else { inner(seen) });
        passes.set(1252);
        world.run_for(ms(25));
        if let Some(named) = named {
            let now = world.local(0);
            world.sides[0].connection.packet_too_big(now, named);
        }
        assert!(arrives(&mut world, Duration::from_secs(10)), "{named:?}");
        let sender = &world.sides[0].connection;
        assert_eq!(sender.statistics().timeouts, if named.is_some() { 0 } else { 3 }, "{named:?}");
        assert!(!world.log.iter().any(is_part));
        let cut = world.log.iter().filter(|seen| seen.may_fragment);
        assert!(cut.clone().all(|seen| seen.udp_bytes > 1252) && (1..200).contains(&cut.count()));
        let found = sender.snapshot().payload_bytes as usize + 20;
        assert!(found <= 1252 && 1252 - found <= 16, "{found}");
    }
}

#[test]
fn an_outage_makes_packets_small_for_a_moment_only() {
    let (mut world, passes) = flowing(&config(Mtu::SEARCH_IPV4, true), |_| Fate::Deliver);
    passes.set(0);
    world.run_for(Duration::from_secs(4));
    passes.set(1472);
    assert!(arrives(&mut world, Duration::from_secs(30)));
    let sender = &world.sides[0].connection;
    assert_eq!(sender.statistics().mtu_black_holes, 1);
    assert!(sender.snapshot().payload_bytes > 1400);
}

#[test]
fn small_packets_that_go_unheard_say_nothing_of_sizes() {
    let (mut world, passes) = flowing(&config(Mtu::SEARCH_IPV4, true), |_| Fate::Deliver);
    assert!(arrives(&mut world, Duration::from_secs(30)));
    passes.set(0);
    let payload = cede_wire::Payload::Pattern { start: TOTAL, len: 10 };
    world.sides[0].connection.write(payload).unwrap();
    world.run_for(Duration::from_secs(4));
    passes.set(1472);
    let end = world.now + Duration::from_secs(10);
    assert!(world.run_until(end, |world| world.sides[1].received == TOTAL + 10));
    assert_eq!(world.sides[0].connection.statistics().mtu_black_holes, 0);
    assert!(world.sides[0].connection.snapshot().payload_bytes > 1400);
}

#[test]
fn whoever_gave_up_reading_still_acknowledges_parts() {
    let (mut world, passes) = flowing(&config(Mtu::SEARCH_IPV4, true), |_| Fate::Deliver);
    world.sides[0].close_after_writing = true;
    world.sides[1].connection.stop_reading();
    passes.set(1000);
    let end = world.now + Duration::from_secs(30);
    assert!(world.run_until(end, |world| world.sides[1].has(Event::PeerFinished)));
}
