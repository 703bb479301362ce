//! Recorded captures beside the true delay of every packet in the queue.
//!
//! `utp_1m` and `tcp_1m`: libtorrent's uTP, and the kernel's CUBIC, through a 1 Mbit/s uplink, captured at the other end
//! (the first 70 and 110 s; 70 octets of each packet), and the queue's own log: the times in nanoseconds at which each
//! packet entered and left it. The way between queue and observer takes 20 ms.

mod common;

use cede_meter::{Config, Estimator, Feed};
use cede_wire::pcap::Reader;
use common::{Found, Tap};
use flate2::read::GzDecoder;
use std::io::Read;

const WAY_NS: u64 = 20_050_000;
const B: [u8; 4] = [10, 0, 1, 2];

fn found(capture: &[u8]) -> Found {
    let mut tap = Tap::new(Config::default());
    let mut feed = Feed::new(GzDecoder::new(capture));
    while feed.step(&mut tap.0).expect("a sound capture") {}
    tap.found()
}

/// The same of the first seconds of it, by an observer's clock that gains so much.
fn found_of(capture: &[u8], seconds: f64, ppm: f64) -> Found {
    let (mut tap, mut file, mut origin_ns) = (Tap::new(Config::default()), Vec::new(), None);
    GzDecoder::new(capture).read_to_end(&mut file).expect("a file");
    for record in Reader::new(&file).expect("a capture") {
        let mut record = record.expect("a sound capture");
        let time_ns = record.time_ns.expect("a time");
        let since_ns = time_ns - *origin_ns.get_or_insert(time_ns);
        if since_ns as f64 / 1e9 < seconds {
            record.time_ns = Some(time_ns.wrapping_add_signed((since_ns as f64 * ppm / 1e6) as i64));
            tap.0.record(&record);
        }
    }
    tap.found()
}

/// When packets left the queue, and how long they had been in it (ns).
fn truth(log: &[u8]) -> Vec<(u64, u64)> {
    let mut text = String::new();
    GzDecoder::new(log).read_to_string(&mut text).expect("text");
    let row = |line: &str| {
        let (entered, left) = line.split_once(',').expect("two columns");
        let (entered, left): (u64, u64) = (entered.parse().unwrap(), left.parse().unwrap());
        (left, left - entered)
    };
    text.lines().map(row).collect()
}

/// The errors in milliseconds of an estimate, in order.
fn errors_ms(found: &Found, truth: &[(u64, u64)], estimator: Estimator) -> Vec<f64> {
    errors_by(found, truth, estimator, |time_us| time_us * 1000)
}

/// As [`errors_ms`], by an observer's clock of which it is known when it shows a time.
fn errors_by(
    found: &Found,
    truth: &[(u64, u64)],
    estimator: Estimator,
    true_ns: impl Fn(u64) -> u64,
) -> Vec<f64> {
    let (mut errors, mut unmatched) = (Vec::new(), 0);
    for sample in &found.seen.samples {
        if sample.source.address != core::net::IpAddr::from(B) || sample.estimator != estimator {
            continue;
        }
        let left = true_ns(sample.delay.time_us) - WAY_NS;
        let next = truth.partition_point(|row| row.0 <= left);
        let near = truth[next.saturating_sub(1)..(next + 1).min(truth.len())].iter();
        let &(at, queued_ns) = near.min_by_key(|row| row.0.abs_diff(left)).expect("a packet");
        // The machine that captured was late now and then.
        if at.abs_diff(left) > 2_000_000 {
            unmatched += 1;
            continue;
        }
        errors.push((sample.delay.queue_us / 1e3 - queued_ns as f64 / 1e6).abs());
    }
    assert!(unmatched * 100 < errors.len(), "{unmatched} samples are of no packet that left the queue");
    errors.sort_by(f64::total_cmp);
    errors
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[(sorted.len() as f64 * share) as usize]
}

/// The mean over time of the true delay, in milliseconds, between the first and the last sample.
fn true_mean_ms(found: &Found, truth: &[(u64, u64)]) -> f64 {
    let times = || {
        found
            .seen
            .samples
            .iter()
            .filter(|s| s.source.address == core::net::IpAddr::from(B))
            .map(|s| s.delay.time_us * 1000 - WAY_NS)
    };
    let (from, to) = (times().min().unwrap(), times().max().unwrap());
    let within: Vec<&(u64, u64)> = truth.iter().filter(|row| (from..=to).contains(&row.0)).collect();
    let area: f64 =
        within.windows(2).map(|w| (w[1].0 - w[0].0) as f64 * (w[0].1 + w[1].1) as f64 / 2.0).sum();
    area / (within[within.len() - 1].0 - within[0].0) as f64 / 1e6
}

#[test]
fn utp_is_within_a_fifth_of_a_millisecond() {
    let found = found(include_bytes!("vectors/utp_1m.pcap.gz"));
    let truth = truth(include_bytes!("vectors/utp_1m.truth.gz"));
    let direct = errors_ms(&found, &truth, Estimator::Direct);
    assert!(direct.len() > 5_500 && quantile(&direct, 0.95) <= 0.2, "{}", quantile(&direct, 0.95));
    let echoed = errors_ms(&found, &truth, Estimator::Echoed);
    assert!(echoed.len() > 5_000 && quantile(&echoed, 0.95) <= 1.5, "{}", quantile(&echoed, 0.95));
    let host = &found.report().hosts[0];
    assert_eq!((host.address, host.flows), (B.into(), 1), "the host with the queue comes first");
    let mean = true_mean_ms(&found, &truth);
    assert!((host.all.time_mean_ms / mean - 1.0).abs() < 0.06, "{} for {mean}", host.all.time_mean_ms);
    assert_eq!(found.report().other_udp_flows, 1, "probes on another port are no uTP");
}

#[test]
fn tcp_is_within_a_tick() {
    let found = found(include_bytes!("vectors/tcp_1m.pcap.gz"));
    let truth = truth(include_bytes!("vectors/tcp_1m.truth.gz"));
    let direct = errors_ms(&found, &truth, Estimator::Direct);
    assert!(direct.len() > 8_000 && quantile(&direct, 0.99) <= 1.0, "{}", quantile(&direct, 0.99));
    let echoed = errors_ms(&found, &truth, Estimator::Echoed);
    assert!(echoed.len() > 3_000 && quantile(&echoed, 0.95) <= 1.0, "{}", quantile(&echoed, 0.95));
    let host = &found.report().hosts[0];
    assert_eq!((host.address, host.clock_hz), (B.into(), Some(1000.0)));
    let mean = true_mean_ms(&found, &truth);
    assert!((host.all.time_mean_ms / mean - 1.0).abs() < 0.06, "{} for {mean}", host.all.time_mean_ms);
}

#[test]
fn a_capture_in_pieces_reads_like_one() {
    let capture: &[u8] = include_bytes!("vectors/tcp_1m.pcap.gz");
    let mut file = Vec::new();
    GzDecoder::new(capture).read_to_end(&mut file).unwrap();
    // A reader that gives no more than a few octets at a time.
    struct Drip<'a>(&'a [u8], usize);
    impl Read for Drip<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.1 = self.1 * 7 % 65_521 + 1;
            let len = self.1.min(self.0.len()).min(out.len());
            out[..len].copy_from_slice(&self.0[..len]);
            self.0 = &self.0[len..];
            Ok(len)
        }
    }
    let mut tap = Tap::new(Config::default());
    let mut feed = Feed::new(Drip(&file, 3));
    while feed.step(&mut tap.0).unwrap() {}
    assert_eq!(feed.offset(), file.len() as u64);
    assert_eq!(tap.found().report(), found(capture).report());
}

/// An observer's clock that gains or loses 80 ppm makes 1.5 ms of 20 s, and 4.9 of a minute.
#[test]
fn the_drift_of_less_than_a_minute_is_taken_out_where_it_is_told() {
    let utp: [&[u8]; 2] =
        [include_bytes!("vectors/utp_1m.pcap.gz"), include_bytes!("vectors/utp_1m.truth.gz")];
    let tcp: [&[u8]; 2] =
        [include_bytes!("vectors/tcp_1m.pcap.gz"), include_bytes!("vectors/tcp_1m.truth.gz")];
    for ([capture, log], all_seconds, bound_ms) in
        [(utp, &[20.0, 30.0, 45.0, 59.0][..], 0.2), (tcp, &[59.0], 1.0)]
    {
        let truth = truth(log);
        for (&seconds, ppm) in
            all_seconds.iter().flat_map(|seconds| [-80.0, 0.0, 80.0].map(|ppm| (seconds, ppm)))
        {
            let found = found_of(capture, seconds, ppm);
            let from_us = found.seen.flows.iter().map(|flow| flow.span_us.0).min().expect("flows");
            let true_ns = |time_us: u64| {
                from_us * 1_000 + ((time_us - from_us) as f64 * 1e3 / (1.0 + ppm / 1e6)) as u64
            };
            let errors = errors_by(&found, &truth, Estimator::Direct, true_ns);
            let told = format!(
                "{seconds} s, {ppm} ppm: {:?}, {} ms",
                found.flow(B).drift_ppm,
                quantile(&errors, 0.99)
            );
            assert!(quantile(&errors, 0.99) <= bound_ms, "{told}");
            assert!((found.flow(B).drift_ppm.unwrap_or_default() - ppm).abs() < 2.0, "{told}");
        }
    }
}
