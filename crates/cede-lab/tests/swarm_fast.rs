//! Swarms on paths that hold more than the transports' buffers: content arrives as it is, and as fast as the windows let it.

use cede_bt::{Disposition, Profile};
use cede_lab::swarm::{Arrival, Group, Hashing, Links, Role, Swarm, SwarmRecords, mean, run};
use cede_net::QueueLimit;
use cede_units::{Duration, Rate};

const CONTENT_BYTES: u64 = 60_000_000;
const RTT: Duration = Duration::from_millis(200);
/// Twenty round trips in which windows and pipelines of requests grow.
const GROWTH_S: f64 = 4.0;

fn group(name: &str, role: Role, transports: u8, rate: Option<Rate>) -> Group {
    Group {
        uplink: rate,
        buffer: QueueLimit::Bytes(8_000_000),
        disposition: Disposition(transports),
        arrival: Arrival::Together { at: Duration::ZERO, within: Duration::ZERO },
        ..Group::new(name, 1, role, Profile::UTORRENT3)
    }
}

/// Seconds that a leecher takes for the content from a seed.
fn seconds(transports: u8, rate: Option<Rate>, change: impl Fn(&mut Group)) -> f64 {
    let mut groups =
        vec![group("seed", Role::Seed, transports, rate), group("leecher", Role::Leecher, transports, rate)];
    groups.iter_mut().for_each(change);
    let swarm = Swarm {
        name: "fast".to_string(),
        seed: 1,
        duration: Duration::from_secs(600),
        content_bytes: CONTENT_BYTES,
        piece_bytes: 256 << 10,
        hashing: Hashing::Compare,
        tracker_peers: 50,
        announce_every: None,
        groups,
        links: Links::Homogeneous { rtt: RTT, loss: 0.0 },
        records: SwarmRecords::default(),
        measure_from: Duration::ZERO,
    };
    let outcome = run(&swarm, &mut ()).expect("the swarm runs");
    assert!(outcome.peers.iter().all(|peer| peer.record.corrupt_bytes == 0), "octets got lost on the way");
    let times = outcome.completion_s();
    assert_eq!(times.len(), 1, "the leecher is not complete");
    mean(&times)
}

/// 100 Mbit/s and 200 ms hold 2.5 MB: over TCP the windows of 4 MiB fill that, over uTP those of 1 MiB are what moves in a
/// round trip.
#[test]
fn paths_that_hold_more_than_a_mebibyte_are_filled_as_far_as_windows_go() {
    let rate = Rate::from_mbit(100);
    let tcp_s = seconds(5, Some(rate), |_| {});
    let bound_s = CONTENT_BYTES as f64 * 8.0 / 100e6;
    assert!((bound_s..bound_s + GROWTH_S).contains(&tcp_s), "TCP took {tcp_s:.2} s, at least {bound_s:.2} s");
    let utp_s = seconds(10, Some(rate), |_| {});
    let bound_s = CONTENT_BYTES as f64 / f64::from(1 << 20) * RTT.as_secs_f64();
    assert!((bound_s..bound_s + GROWTH_S).contains(&utp_s), "uTP took {utp_s:.2} s, at least {bound_s:.2} s");
}

/// Whatever is written ahead, nothing is lost and nothing stands still.
#[test]
fn nothing_is_lost_where_nothing_but_windows_bounds_the_rate() {
    for transports in [5, 10] {
        for write_ahead_bytes in [4 << 10, 256 << 10, 16 << 20] {
            let took_s = seconds(transports, None, |group| group.write_ahead_bytes = write_ahead_bytes);
            assert!(took_s < 60.0, "{transports}, {write_ahead_bytes}: {took_s:.1} s");
        }
    }
}
