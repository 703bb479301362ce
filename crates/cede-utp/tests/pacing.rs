//! A pacing rate kept by hosts that call late.
#![allow(missing_docs)]

mod common;

use cede_cc::{ParamValue, Params, registry};
use cede_units::{Bytes, Duration, Instant, Rate, Stream};
use cede_utp::{Config, Connection};
use cede_wire::Payload;
use cede_wire::utp::Packet;
use common::{Setup, World, controller, ms};

/// Octets that leave within a second at this rate through a host that calls every millisecond only, and the most that
/// leave at once.
fn in_a_second(rate: Rate, granularity: Duration) -> (u64, u64) {
    let config = Config { pacing_granularity: granularity, send_buffer_bytes: 8 << 20, ..Config::default() };
    let mut params = Params::new();
    params.set("rate", ParamValue::Rate(rate));
    params.set("burst", ParamValue::Bytes(Bytes(3000)));
    let fixed = registry::build("fixed", &params, &config.path()).unwrap();
    let (mut now, mut random) = (Instant::from_secs(1), Stream::named(1, "pacing"));
    let mut alice = Connection::connect(now, config.clone(), fixed, &mut random);
    let syn = alice.poll_transmit(now).unwrap();
    let reno = controller("reno", &config);
    let mut bob =
        Connection::accept(now, &Packet::decode(&syn.head).unwrap(), config, reno, &mut random).unwrap();
    let (mut total, mut most, end) = (0, 0, now + Duration::from_secs(1));
    while now < end {
        while let Some(packet) = bob.poll_transmit(now) {
            alice.handle(now, &packet.head, packet.payload);
        }
        let _ = alice.write(Payload::Pattern { start: 0, len: 1 << 20 });
        let mut at_once = 0;
        while let Some(packet) = alice.poll_transmit(now) {
            at_once += u64::from(packet.payload.len());
            bob.handle(now, &packet.head, packet.payload);
        }
        while bob.read().is_some() {}
        (total, most) = (total + at_once, most.max(at_once));
        now += ms(1);
        alice.handle_timeout(now);
        bob.handle_timeout(now);
    }
    (total, most)
}

#[test]
fn a_host_that_calls_late_keeps_the_rate_by_bursts_of_its_granule() {
    for mbit in [1, 80, 300] {
        let rate = Rate::from_mbit(mbit);
        let wanted = mbit * 125_000;
        let (total, most) = in_a_second(rate, ms(2));
        assert!((wanted * 98 / 100..=wanted * 102 / 100 + 3000).contains(&total), "{mbit}: {total}");
        assert!(most <= (mbit * 250).max(3000), "{mbit}: {most} at once");
    }
    let (total, _) = in_a_second(Rate::from_mbit(80), Duration::ZERO);
    assert!(total < 8_000_000, "a burst of 3000 octets a millisecond cannot keep 80 Mbit/s: {total}");
}

#[test]
fn bursts_end_where_a_receiver_s_buffer_would() {
    let (_, most) = in_a_second(Rate::from_mbit(10_000), ms(2));
    assert!((90_000..=96 << 10).contains(&most), "{most}");
}

/// Departures of DATA in a run of `span` over a round trip of 40 ms, with a window of 64 packets.
fn departures(pace_windows: bool) -> Vec<Instant> {
    let config = Config { pace_windows, ..Config::default() };
    let setup = Setup { configs: [config.clone(), config], ..Setup::default() };
    let mut world = World::new(&setup);
    world.delay = ms(20);
    world.accept_next(&setup);
    world.run_for(ms(100));
    world.sides[0].connection.set_controller(|path| {
        let cwnd = ParamValue::Bytes(Bytes(64 * u64::from(path.mss_bytes)));
        registry::build("fixed", &Params::new().with("cwnd", cwnd), path).unwrap()
    });
    world.sides[0].to_write = 3000 * 1382;
    world.run_for(ms(1000));
    let sent = world.sent_by(0, cede_wire::utp::Kind::Data);
    sent.iter().filter(|seen| seen.payload_bytes == 1382).map(|seen| seen.at).collect()
}

/// The most departures within any 4 ms.
fn largest_burst(departures: &[Instant]) -> usize {
    let within =
        |first: &Instant| departures.iter().filter(|at| (*first..*first + ms(4)).contains(at)).count();
    departures.iter().map(within).max().unwrap_or_default()
}

#[test]
fn a_window_leaves_spread_over_the_round_trip_and_is_used_as_fully() {
    let (as_it_comes, paced) = (departures(false), departures(true));
    assert_eq!(largest_burst(&as_it_comes), 64, "a window at once, for ever");
    // The first window leaves in a quarter of the handshake's round trip, which was 20 ms here: 52 packets in 4 ms, and
    // a burst of two. Later 1.25 windows leave in the smoothed round trip, which grows to 40 ms.
    assert!(largest_burst(&paced) <= 54, "{}", largest_burst(&paced));
    assert!(largest_burst(&paced[320..]) <= 12, "{}", largest_burst(&paced[320..]));
    let (most, got) = (as_it_comes.len(), paced.len());
    assert!(got * 100 >= most * 95, "{got} of {most} packets");
}
