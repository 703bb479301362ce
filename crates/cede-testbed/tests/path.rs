//! Short transfers over the relay. What the schedule guarantees is asserted always; how fast the ends are, only where the
//! run's own log says that they and the relay got to run in time.

use cede_lab::scenario::Buffer;
use cede_testbed::path::{Measured, PathSpec, measure, predict};
use cede_units::{Bytes, Duration, Rate};

/// Headers of the largest packet that an Ethernet frame holds: IP, UDP, uTP.
const PAYLOAD_SHARE: f64 = (1500.0 - 48.0) / 1500.0;

/// Why the figures of a run say more of the machine than of the transport, if they do.
fn excuse(measured: &Measured) -> Option<String> {
    let relay = &measured.relay;
    let lost = relay.own_losses() + measured.end_overflows.unwrap_or_default();
    let in_time = relay.departures_late.p99_ms < 2.0 && measured.ends_late.max_ms < 20.0;
    (lost > 0 || !in_time).then(|| {
        format!(
            "relay late by {}, ends late by {}, {lost} datagrams lost by the machine ({})",
            relay.departures_late, measured.ends_late, relay.priority
        )
    })
}

#[test]
fn a_transfer_keeps_to_the_link_s_rate_and_comes_near_its_prediction() {
    let mut spec = PathSpec::new(Rate::from_mbit(20), Duration::from_millis(20), 8_000_000);
    spec.buffer = Buffer::Bdp(6.0);
    let measured = measure(&spec, &mut |_, _| true).unwrap();
    let showing = &measured.showing;
    let finish_s = showing.finish_s.expect("the transfer ends within minutes");
    let least_s = spec.ideal().as_secs_f64() / PAYLOAD_SHARE;
    assert!(finish_s >= least_s, "{finish_s} s, and the link needs {least_s}");
    let predicted = predict(&spec, &mut || true).unwrap();
    println!("measured {:.1}, predicted {:.1} Mbit/s", showing.goodput_mbps, predicted.goodput_mbps);
    match excuse(&measured) {
        Some(excuse) => println!("SKIPPED: {excuse}"),
        None => assert!(showing.goodput_mbps > predicted.goodput_mbps / 2.0, "{measured:?}, {predicted:?}"),
    }
}

#[test]
fn predicted_samples_count_payload_as_measured_ones_do() {
    let spec = PathSpec::new(Rate::from_mbit(20), Duration::from_millis(20), 8_000_000);
    let predicted = predict(&spec, &mut || true).unwrap();
    let mbits = predicted.samples.iter().map(|sample| sample.rate_mbps * 0.1).sum::<f64>();
    // Nothing is sent twice but what the queue dropped.
    assert!((mbits / 64.0 - 1.0).abs() < 0.01, "{mbits} of 64 Mbit");
}

/// The longer headers of IPv6 leave less of the link to what is carried, whatever the buffer is counted in.
#[test]
fn a_prediction_knows_the_headers_of_ipv6() {
    for buffer in [Buffer::Bdp(2.0), Buffer::Packets(60), Buffer::Bytes(Bytes(90_000))] {
        let mut spec = PathSpec::new(Rate::from_mbit(20), Duration::from_millis(20), 8_000_000);
        spec.buffer = buffer;
        let mut steady_mbps = |ipv6| {
            spec.ipv6 = ipv6;
            predict(&spec, &mut || true).unwrap().steady_mbps
        };
        let (four, six) = (steady_mbps(false), steady_mbps(true));
        let wanted = (1500.0 - 68.0) / (1500.0 - 48.0);
        assert!((six / four - wanted).abs() < 0.002, "{buffer}: {six} of {four} Mbit/s, {}", six / four);
    }
}

#[test]
fn a_black_hole_for_large_packets_is_found_and_lived_with() {
    let mut spec = PathSpec::new(Rate::from_mbit(20), Duration::from_millis(10), 3_000_000);
    spec.mtu_bytes = 1280;
    let measured = measure(&spec, &mut |_, _| true).unwrap();
    assert!(measured.showing.finish_s.is_some(), "{measured:?}");
    assert!(measured.relay.forward.too_large > 0, "larger packets were tried");
}

#[test]
fn losses_of_the_wire_are_the_link_s_and_are_repaired() {
    let mut spec = PathSpec::new(Rate::from_mbit(50), Duration::from_millis(2), 3_000_000);
    (spec.loss, spec.ipv6) = (0.02, std::net::UdpSocket::bind("[::1]:0").is_ok());
    let measured = measure(&spec, &mut |_, _| true).unwrap();
    assert!(measured.showing.finish_s.is_some(), "{measured:?}");
    assert!(measured.relay.forward.link.lost_packets > 0 && measured.showing.retransmissions > 0);
}

#[test]
fn a_measurement_ends_when_its_watcher_says_so() {
    let spec = PathSpec::new(Rate::from_mbit(1), Duration::from_millis(10), 10_000_000);
    let error = measure(&spec, &mut |_, _| false).unwrap_err();
    assert_eq!(error.to_string(), "interrupted");
}
