//! Whom peers hear of: from peers (BEP 11) and from the tracker; and what the burst of a token bucket does to an access link.

use cede_bt::engine::AnnounceEvent;
use cede_bt::{Disposition, Profile};
use cede_lab::swarm::{
    Arrival, Departure, Group, Hashing, Links, Role, Swarm, SwarmOutcome, SwarmRecords, run,
};
use cede_net::QueueLimit;
use cede_units::{Duration, Rate};

fn group(name: &str, count: u32, transports: u8, exchanges: bool) -> Group {
    let role = if name == "seed" { Role::Seed } else { Role::Leecher };
    let at = Duration::from_secs(if role == Role::Leecher { 2 } else { 0 });
    Group {
        uplink: Some(Rate::from_mbit(1)),
        buffer: QueueLimit::Bytes(125_000),
        disposition: Disposition(transports),
        arrival: Arrival::Together { at, within: Duration::from_secs(2) },
        ..Group::new(name, count, role, Profile { exchanges, ..Profile::LIBTORRENT })
    }
}

/// A swarm with a tracker that tells of so many peers at a time.
fn swarm(tracker_peers: u32, groups: Vec<Group>) -> Swarm {
    Swarm {
        name: "exchange".to_string(),
        seed: 1,
        duration: Duration::from_secs(1_000),
        content_bytes: 2_000_000,
        piece_bytes: 64 << 10,
        hashing: Hashing::Compare,
        tracker_peers,
        announce_every: None,
        groups,
        links: Links::Homogeneous { rtt: Duration::ZERO, loss: 0.0 },
        records: SwarmRecords::default(),
        measure_from: Duration::ZERO,
    }
}

/// What becomes of it with twelve leechers.
fn played(tracker_peers: u32, groups: Vec<Group>) -> SwarmOutcome {
    let swarm = swarm(tracker_peers, groups);
    let outcome = run(&swarm, &mut ()).expect("the swarm runs");
    assert_eq!(outcome.completion_s().len(), 12);
    outcome
}

/// Connections that became ready, over TCP and over uTP, of the peers in their order.
fn connections(outcome: &SwarmOutcome) -> Vec<[u64; 2]> {
    outcome.peers.iter().map(|peer| peer.record.totals.connections.map(u64::from)).collect()
}

#[test]
fn peers_hear_of_each_other_where_the_tracker_tells_of_few() {
    let ready = |exchanges| {
        let groups = vec![group("seed", 1, 31, exchanges), group("leecher", 12, 31, exchanges)];
        connections(&played(1, groups)).into_iter().map(|[tcp, utp]| tcp + utp).collect::<Vec<u64>>()
    };
    let (with, without) = (ready(true), ready(false));
    assert!(with.iter().all(|&ready| ready >= 9), "of twelve others each meets most: {with:?}");
    let all = |ready: &[u64]| ready.iter().sum::<u64>();
    assert!(all(&with) > 2 * all(&without), "{with:?}, without {without:?}");
}

/// It was there first, and so the tracker has told it of nobody: those who call it do so over TCP alone.
#[test]
fn a_seed_calls_those_who_come_after_it() {
    let of_seed = |exchanges| {
        let groups = vec![group("seed", 1, 31, exchanges), group("leecher", 12, 13, exchanges)];
        connections(&played(200, groups))[0]
    };
    let (with, without) = (of_seed(true), of_seed(false));
    assert_eq!(without[1], 0, "{without:?}");
    assert!(with[1] > 0 && with[0] > 0, "{with:?}");
}

/// A peer that goes away while it calls others hears nothing of those calls when it is back, and calls in the same order.
#[test]
fn who_comes_back_takes_no_old_connection_for_a_new_one() {
    for transports in [5, 10] {
        for seed in 1..=4 {
            let profile = Profile { exchanges: false, ..Profile::UTORRENT3 };
            let comes_and_goes = Group {
                uplink: Some(Rate::from_mbit(2)),
                departure: Departure::Churn(Duration::from_secs(20)),
                profile,
                ..group("leecher", 12, transports, false)
            };
            let links = Links::Homogeneous { rtt: Duration::from_secs(1), loss: 0.0 };
            let groups = vec![group("seed", 1, transports, false), comes_and_goes];
            let swarm = Swarm { seed, links, ..swarm(50, groups) };
            let outcome = run(&swarm, &mut ()).expect("the swarm runs");
            let strange: u64 = outcome.peers.iter().map(|peer| peer.record.corrupt_bytes).sum();
            assert_eq!(strange, 0, "{transports} {seed}");
        }
    }
}

/// 60 kB over 1 Mbit/s take half a second, and no time at all where a token bucket lets so much through at once.
#[test]
fn a_burst_leaves_an_access_link_at_once() {
    let seconds = |burst_bytes| {
        let shaped = |name| Group { burst_bytes, ..group(name, 1, 31, true) };
        let swarm = Swarm {
            content_bytes: 60_000,
            groups: vec![shaped("seed"), shaped("leecher")],
            ..swarm(200, Vec::new())
        };
        let outcome = run(&swarm, &mut ()).expect("the swarm runs");
        outcome.completion_s()[0]
    };
    let (line, bucket) = (seconds(0), seconds(100_000));
    assert!(line > 0.48, "{line}");
    assert!(bucket < 0.2, "{bucket}");
}

/// Of a tracker that names one peer at a time they hear of more by asking again.
#[test]
fn peers_announce_themselves_again_and_ask_for_others_while_they_lack_something() {
    let every = Duration::from_secs(5);
    let groups = vec![group("seed", 1, 31, false), group("leecher", 12, 31, false)];
    let swarm = Swarm { announce_every: Some(every), ..swarm(1, groups.clone()) };
    let outcome = run(&swarm, &mut ()).expect("the swarm runs");
    let of_one = outcome.tracker.iter().filter(|entry| entry.peer == 3).collect::<Vec<_>>();
    let again: Vec<_> = of_one
        .iter()
        .filter(|entry| entry.event == Some(AnnounceEvent::More))
        .map(|entry| entry.at)
        .collect();
    assert!(again.len() >= 3, "{of_one:?}");
    for (at, next) in again.iter().zip(1..) {
        assert_eq!(at.since(of_one[0].at).as_nanos(), (every * next).as_nanos(), "{of_one:?}");
    }
    let ready = |outcome: &SwarmOutcome| connections(outcome).into_iter().flatten().sum::<u64>();
    assert!(ready(&outcome) > ready(&played(1, groups)));
}
