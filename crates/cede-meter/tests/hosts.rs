//! Hosts of many flows, none of which says much by itself.

mod common;

use cede_meter::{Config, Estimator, Flags};
use cede_units::Stream;
use cede_wire::utp::Kind;
use common::{A, B, Clock, Tap, Tcp, connection, utp};

/// What a host of so many connections is flagged with, each of which sends from when the capture begins, or from a second later
/// than the one before it, for so many seconds into a queue that grows by 10 ms each second.
fn flags(connections: u16, begins_in_the_middle: bool, seconds: u64) -> Flags {
    let mut tap = Tap::new(Config::default());
    let mut packets = Vec::new();
    for flow in 0..connections {
        let begins = if begins_in_the_middle { 0 } else { u64::from(flow) } * 1_000_000 + 10_000_000;
        for k in 0..seconds * 10 {
            let sent = begins + k * 100_000 + u64::from(flow) * 700;
            let opens = k == 0 && !begins_in_the_middle;
            packets.push((
                sent + 300_000 + sent / 100,
                flow,
                sent,
                k as u32,
                if opens { 0x02 } else { 0x18 },
            ));
        }
    }
    packets.sort_unstable();
    for (seen, flow, sent, k, flags) in packets {
        let clock = (sent / 1_000) as u32 + u32::from(flow) * 77_777;
        tap.tcp(seen, (B.0, 7_000 + flow), A, &Tcp { seq: k, ack: 1, flags, clock, echo: 9, len: 1 });
    }
    let (plainly, found) = (tap.0.report(), tap.found());
    assert_eq!(plainly.hosts[0].flags, found.report().hosts[0].flags, "whatever else is asked for");
    assert_eq!(plainly.hosts[0].flows, u32::from(connections));
    plainly.hosts[0].flags
}

#[test]
fn what_holds_of_many_flows_together_holds_of_the_host() {
    let in_the_middle = Flags::START_NOT_SEEN.with(Flags::BASE_NOT_REVISITED);
    for connections in [3, 13, 60] {
        let flagged = flags(connections, true, 20);
        assert!(flagged.has(in_the_middle) && !flagged.has(Flags::SHORT), "{connections}: {flagged:?}");
        // Too few packets each for the clock's rate as well.
        let flagged = flags(connections, false, 1);
        assert!(flagged.has(Flags::SHORT.with(Flags::RATE_ASSUMED)), "{connections}: {flagged:?}");
        assert!(!flagged.has(Flags::START_NOT_SEEN), "{connections}: {flagged:?}");
    }
}

/// A seed's socket for 90 s: the queue is empty for two seconds and then holds 80 ms and a few; its second and third flow begin after
/// twenty seconds. Its clock, of so many parts in a million more than the observer's, begins anew on the way.
fn seed(ppm: f64) -> Tap {
    let of_b = |at: u64| ((1_u64 << 32) as f64 - 30e6 + at as f64 * (1.0 + ppm / 1e6)) as u64 as u32;
    let mut packets = Vec::new();
    for k in 0..9_000_u64 {
        let sent = 1_000_000 + k * 10_000;
        let flow = if k < 2_000 { 0 } else { k % 3 };
        let queue = if k < 200 { 0 } else { 80_000 + k * 37 % 4_000 };
        packets.push((sent + 20_000 + queue, flow, sent, (k % 65_000) as u16));
    }
    packets.sort_unstable();
    let (mut tap, mut heard) = (Tap::new(Config::default()), [0; 3]);
    for (seen, flow, sent, seq) in packets {
        let (to, id) = ((A.0, 6_900 + flow as u16), 8 + 2 * flow as u16);
        let stamp = of_b(sent);
        tap.utp(seen, B, to, &utp(Kind::Data, id, (seq, 4), (stamp, heard[flow as usize]), 100));
        let said = (seen as u32).wrapping_sub(stamp);
        tap.utp(seen + 10, to, B, &utp(Kind::State, id - 1, (5, seq), (seen as u32, said), 0));
        heard[flow as usize] = of_b(seen + 20_000).wrapping_sub(seen as u32);
    }
    tap
}

#[test]
fn flows_of_one_socket_share_a_base_however_its_clock_drifts() {
    for ppm in [0.0, 5.5, 20.0, -40.0, 100.0] {
        let tap = seed(ppm);
        let found = tap.found();
        let flows: Vec<_> = found.seen.flows.iter().filter(|flow| flow.source.port == B.1).collect();
        assert_eq!(flows.len(), 3);
        for flow in flows {
            let [direct, echoed] = [flow.direct.unwrap(), flow.echoed.unwrap()];
            assert!((direct.p50_ms - 82.0).abs() < 0.5, "{ppm}: {direct:?}");
            assert!((echoed.p50_ms - 82.0).abs() < 0.6, "{ppm}: {echoed:?}");
            assert!(!flow.flags.has(Flags::ESTIMATORS_DISAGREE), "{ppm}: {:?}", flow.flags);
            assert_eq!(flow.flags.has(Flags::DRIFT_CORRECTED), ppm != 0.0, "{ppm}: {:?}", flow.drift_ppm);
        }
        assert_eq!(tap.0.report().hosts, found.report().hosts, "whatever else is asked for");
    }
}

#[test]
fn a_connection_too_short_to_tell_a_drift_is_told_by_another() {
    let errors_us = |ppm: f64, has_other: bool| {
        let (mut tap, mut noise) = (Tap::new(Config::default()), Stream::named(9, "borrowed"));
        if has_other {
            connection(&mut tap, 5_000, &Clock { hz: 1_000, ppm, ahead: 99 }, 0..120, &mut noise);
        }
        connection(&mut tap, 5_001, &Clock { hz: 1_000, ppm, ahead: 7_777 }, 30..85, &mut noise);
        let found = tap.found();
        let samples = found
            .seen
            .samples
            .iter()
            .filter(|sample| (sample.source.port, sample.estimator) == (5_001, Estimator::Direct));
        let error = |(k, queue_us): (usize, f64)| (queue_us - (k % 100 * 150) as f64).abs();
        let mut errors: Vec<f64> =
            samples.map(|sample| sample.delay.queue_us).enumerate().map(error).collect();
        assert!(errors.len() > 2_700);
        errors.sort_by(f64::total_cmp);
        errors[errors.len() * 95 / 100]
    };
    for ppm in [100.0, -100.0] {
        let (alone, told) = (errors_us(ppm, false), errors_us(ppm, true));
        assert!(alone > 4_000.0 && told < 1_000.0, "{ppm}: {alone} alone, {told} told");
    }
}
