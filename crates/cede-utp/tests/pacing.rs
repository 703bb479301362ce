//! A pacing rate kept by hosts that call late.
#![allow(missing_docs)]

mod common;

use cede_cc::{ParamValue, Params, registry};
use cede_units::{Bytes, Duration, Instant, Rate, Stream};
use cede_utp::{Config, Connection};
use cede_wire::Payload;
use cede_wire::utp::Packet;
use common::{controller, ms};

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
