//! How fast captures are read, in packets a second on one core, beside a bare loop over the same octets that parses the
//! headers and does nothing else, and beside tshark and tcptrace where they are installed.
//!
//! `cargo bench -p cede-meter --bench captures [-- --packets 10000000] [--only NAME] [--alone] [--write DIR]`. Two captures are made: `bulk`, 220
//! directions of TCP and uTP data, and `churn`, where each flow has ten packets. They lie in memory; other programs get
//! them as files. With `--write` they are written to a folder, and nothing is measured.

use cede_meter::{Feed, Meter};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

fn main() {
    let packets = packets_asked_for();
    println!("{packets} packets each; medians of {ROUNDS} rounds, one core");
    for (name, flows) in [("bulk", 110), ("churn", packets / 10)] {
        if argument("--only").is_some_and(|only| only != name) {
            continue;
        }
        let capture = capture(packets, flows);
        if let Some(folder) = argument("--write") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}.pcap")), capture)
                .expect("room");
            continue;
        }
        println!("\n{name}: {} flows, {:.0} MB", flows, capture.len() as f64 / 1e6);
        let bare = median(|| bare_loop(&capture));
        let meter = median(|| read(&capture).1);
        let (seen, _) = read(&capture);
        row("bare loop", packets, capture.len(), bare, bare);
        row("cede-meter", packets, capture.len(), meter, bare);
        let began = now();
        let report = seen.report();
        let samples: u64 = report.hosts.iter().map(|host| host.all.samples).sum();
        println!(
            "  report: {:.2} s, {:.2} us a sample of {} hosts; memory {:.0} MB, {} flows given up, {} samples left out",
            (now() - began).as_secs_f64(),
            (now() - began).as_secs_f64() * 1e6 / samples.max(1) as f64,
            report.hosts.len(),
            seen.memory_bytes() as f64 / 1e6,
            report.counters.evicted,
            report.counters.thinned
        );
        others(name, &capture, packets, bare);
    }
}

fn packets_asked_for() -> usize {
    argument("--packets").and_then(|text| text.parse().ok()).unwrap_or(2_000_000)
}

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|arg| arg != name).nth(1)
}

fn median(mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| run()).collect();
    times.sort();
    times[ROUNDS / 2]
}

fn row(name: &str, packets: usize, bytes: usize, time: Duration, bare: Duration) {
    let seconds = time.as_secs_f64();
    let (rate, volume) = (packets as f64 / seconds / 1e6, bytes as f64 / seconds / 1e6);
    println!(
        "  {name:<12} {rate:8.3} Mpkt/s {volume:8.0} MB/s   {:.3} of the bare loop",
        bare.as_secs_f64() / seconds
    );
}

/// Processor time of this thread where the system tells (Linux), so that a busy machine does not count; else the time.
fn now() -> Duration {
    static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let cpu_ns = told.and_then(|text| text.split(' ').next()?.parse().ok());
    cpu_ns.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

fn read(capture: &[u8]) -> (Meter, Duration) {
    let began = now();
    let mut meter = Meter::default();
    let mut feed = Feed::new(capture);
    while feed.step(&mut meter).expect("a sound capture") {}
    (meter, now() - began)
}

/// Finds every packet and reads the fields that an estimate needs.
fn bare_loop(capture: &[u8]) -> Duration {
    let began = now();
    let (mut at, mut sum) = (24, 0_u64);
    while let Some(header) = capture.get(at..at + 16) {
        let len = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let Some(frame) = capture.get(at + 16..at + 16 + len) else { break };
        let transport = &frame[14 + usize::from(frame[14] & 15) * 4..];
        let word = |at: usize| {
            u64::from(u32::from_be_bytes([
                transport[at],
                transport[at + 1],
                transport[at + 2],
                transport[at + 3],
            ]))
        };
        sum = sum.wrapping_add(word(0)) ^ word(12) ^ word(16);
        at += 16 + len;
    }
    std::hint::black_box(sum);
    now() - began
}

/// Classic pcap, microseconds, Ethernet, IPv4; TCP with timestamps and uTP by turns, data one way and acknowledgements
/// the other, ten packets of a flow on end in the churn.
fn capture(packets: usize, flows: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(packets * 100);
    out.extend([0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]);
    out.extend([0; 8]);
    out.extend(128_u32.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    let per_flow = packets.div_ceil(flows);
    for k in 0..packets {
        // In the bulk flows take turns; in the churn a thousand are under way at a time.
        let (flow, step) = if per_flow > 10 {
            (k % flows, k / flows)
        } else {
            let (block, within) = (k / 10_000, k % 10_000);
            (block * 1_000 + within % 1_000, within / 1_000)
        };
        let time_us = 1_700_000_000_000_000 + k as u64 * 2;
        frame(&mut out, time_us, flow as u32, step as u32);
    }
    out
}

fn frame(out: &mut Vec<u8>, time_us: u64, flow: u32, step: u32) {
    let (is_tcp, is_data) = (flow.is_multiple_of(2), !step.is_multiple_of(2));
    let payload_len: u16 = if is_data { 1000 } else { 0 };
    let transport_len: u16 = if is_tcp { 32 } else { 28 };
    let ip_len = 20 + transport_len + payload_len;
    let captured = 14 + 20 + u32::from(transport_len) + u32::from(payload_len.min(20));
    out.extend(((time_us / 1_000_000) as u32).to_le_bytes());
    out.extend(((time_us % 1_000_000) as u32).to_le_bytes());
    out.extend(captured.to_le_bytes());
    out.extend((u32::from(ip_len) + 14).to_le_bytes());
    out.extend([2; 12]);
    out.extend([8, 0, 0x45, 0]);
    out.extend(ip_len.to_be_bytes());
    out.extend([0, 0, 0x40, 0, 60, if is_tcp { 6 } else { 17 }, 0, 0]);
    let ends = [0x0a00_0000 | flow >> 8, 0xc0a8_0000 | flow >> 12];
    let ports = [6881_u16, 1024 + (flow & 0x3fff) as u16];
    let order = if is_data { [0, 1] } else { [1, 0] };
    order.iter().for_each(|&end| out.extend(ends[end].to_be_bytes()));
    order.iter().for_each(|&end| out.extend(ports[end].to_be_bytes()));
    let round = step / 2;
    let stamp_us = (time_us as u32).wrapping_sub(if is_data { 30_000 + step % 7 * 1000 } else { 10 });
    if is_tcp {
        let (seq, ack) = if is_data { (round * 1000, 1) } else { (1, round * 1000) };
        out.extend(seq.to_be_bytes());
        out.extend(ack.to_be_bytes());
        out.extend([0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        out.extend((stamp_us / 1000).to_be_bytes());
        out.extend(((time_us / 1000) as u32).to_be_bytes());
    } else {
        out.extend((8 + 20 + payload_len).to_be_bytes());
        out.extend([0, 0, if is_data { 0x01 } else { 0x21 }, 0]);
        out.extend((flow as u16).wrapping_add(u16::from(is_data)).to_be_bytes());
        out.extend(stamp_us.to_be_bytes());
        out.extend(40_000_u32.to_be_bytes());
        out.extend(0x10_0000_u32.to_be_bytes());
        let numbers = if is_data { [round as u16, 1] } else { [1, round as u16] };
        numbers.iter().for_each(|number| out.extend(number.to_be_bytes()));
    }
    out.extend(std::iter::repeat_n(0, usize::from(payload_len.min(20))));
}

/// The same capture through what others have, once each: they are slow.
fn others(name: &str, capture: &[u8], packets: usize, bare: Duration) {
    if std::env::args().any(|arg| arg == "--alone") {
        return;
    }
    let path = std::env::temp_dir().join(format!("cede-bench-{}-{name}.pcap", std::process::id()));
    if std::fs::write(&path, capture).is_err() {
        println!("  no room for a file: other programs left out");
        return;
    }
    let file = path.to_string_lossy();
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.options.timestamp.tsval"];
    for (program, arguments) in
        [("tshark", [&["-r", &*file][..], &fields].concat()), ("tcptrace", vec!["-n", &*file])]
    {
        let began = Instant::now();
        match Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(_) => row(program, packets, capture.len(), began.elapsed(), bare),
            Err(_) => println!("  {program:<12} not installed"),
        }
    }
    let _ = std::fs::remove_file(&path);
}
