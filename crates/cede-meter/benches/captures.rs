//! How fast captures are read, in packets a second on one core, beside bare loops in C that map the same file (`benches/bare.c`), and
//! beside tshark and tcptrace, where there are a compiler and these. Ratios are to the loop that parses headers.
//!
//! `cargo bench -p cede-meter --bench captures [-- --packets 10000000] [--only NAME] [--alone] [--write DIR]`. Two captures are made: `bulk`, 220
//! directions of TCP and uTP data, and `churn`, where each flow has ten packets. They are files, and lie in the page cache
//! when they are read. With `--write` they are written to a folder, and nothing is measured. Times are of processors, of other
//! programs that of the clock; MB/s are of the file, with the report made from what was read and without.

use cede_meter::{Feed, Meter};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

fn main() {
    let packets = packets_asked_for();
    let folder = Folder::new();
    let bare = folder.compile_bare_loop();
    println!("{packets} packets each; medians of {ROUNDS} rounds, one core");
    for (name, flows) in [("bulk", 110), ("churn", packets / 10)] {
        if argument("--only").is_some_and(|only| only != name) {
            continue;
        }
        let file = folder.0.join(format!("{name}.pcap"));
        std::fs::write(&file, capture(packets, flows)).expect("room for the capture");
        if argument("--write").is_none() {
            measure(name, &Capture::new(file, packets, flows), bare.as_deref());
        }
    }
}

/// Where captures are: what was asked for, or a place that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let own = || std::env::temp_dir().join(format!("cede-bench-{}", std::process::id()));
        let folder = argument("--write").map_or_else(own, PathBuf::from);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// The bare loop, where there is a compiler.
    fn compile_bare_loop(&self) -> Option<PathBuf> {
        let program = self.0.join("bare");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/bare.c");
        let compiled = Command::new("cc").arg("-O3").arg("-o").arg(&program).arg(source).status();
        compiled.is_ok_and(|status| status.success()).then_some(program)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if argument("--write").is_none() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

struct Capture {
    file: PathBuf,
    packets: usize,
    flows: usize,
    bytes: u64,
}

impl Capture {
    fn new(file: PathBuf, packets: usize, flows: usize) -> Self {
        let bytes = std::fs::metadata(&file).expect("a file").len();
        Self { file, packets, flows, bytes }
    }

    fn row(&self, name: &str, time: Duration, bare: Option<Duration>) {
        let seconds = time.as_secs_f64();
        let (rate, volume) = (self.packets as f64 / seconds / 1e6, self.bytes as f64 / seconds / 1e6);
        let ratio = bare.map_or("-".to_string(), |bare| format!("{:.3}", bare.as_secs_f64() / seconds));
        println!("  {name:<24} {rate:8.3} Mpkt/s {volume:8.0} MB/s   {ratio} of C that parses headers");
    }

    fn read(&self) -> (Meter, Duration) {
        let began = now();
        let mut meter = Meter::default();
        let mut feed = Feed::new(File::open(&self.file).expect("a file"));
        while feed.step(&mut meter).expect("a sound capture") {}
        (meter, now() - began)
    }
}

fn measure(name: &str, capture: &Capture, bare: Option<&Path>) {
    println!("\n{name}: {} flows, {:.0} MB", capture.flows, capture.bytes as f64 / 1e6);
    let bare = bare.map(|program| bare_loops(program, capture));
    if bare.is_none() {
        println!("  no C compiler: no bare loop");
    }
    capture.row("cede-meter, reading", median(|| capture.read().1), bare);
    let whole = || {
        let (meter, reading) = capture.read();
        let began = now();
        std::hint::black_box(meter.report());
        reading + (now() - began)
    };
    capture.row("cede-meter, with report", median(whole), bare);
    let (meter, _) = capture.read();
    let counters = meter.report().counters;
    println!(
        "  memory {:.0} MB, {} flows given up, {} samples left out",
        meter.memory_bytes() as f64 / 1e6,
        counters.evicted,
        counters.thinned
    );
    if !std::env::args().any(|arg| arg == "--alone") {
        others(capture, bare);
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

/// Processor time of this thread where the system tells (Linux), so that a busy machine does not count; else the time.
fn now() -> Duration {
    static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let cpu_ns = told.and_then(|text| text.split(' ').next()?.parse().ok());
    cpu_ns.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

/// What the bare loops take; the time of the one that parses headers.
fn bare_loops(program: &Path, capture: &Capture) -> Duration {
    let [words, headers, direct] =
        ["words", "headers", "direct"].map(|what| median(|| bare_loop(program, what, capture)));
    capture.row("C, three words of each", words, Some(headers));
    capture.row("C, parsing headers", headers, Some(headers));
    capture.row("C, and direct estimates", direct, Some(headers));
    headers
}

/// What a bare loop says that it took.
fn bare_loop(program: &Path, what: &str, capture: &Capture) -> Duration {
    let said =
        Command::new(program).arg(what).arg(&capture.file).output().expect("the bare loop runs").stdout;
    let said = String::from_utf8_lossy(&said);
    let mut numbers = said.split_whitespace().skip(1).filter_map(|number| number.parse::<u64>().ok());
    assert_eq!(numbers.next(), Some(capture.packets as u64), "it sees every packet");
    Duration::from_nanos(numbers.next().expect("a time"))
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
    let stamp_us = (time_us as u32).wrapping_sub(if is_data { 30_000 + step % 7 * 100 } else { 10 });
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
fn others(capture: &Capture, bare: Option<Duration>) {
    let file = capture.file.to_string_lossy();
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.options.timestamp.tsval"];
    for (program, arguments) in
        [("tshark", [&["-r", &*file][..], &fields].concat()), ("tcptrace", vec!["-n", &*file])]
    {
        let began = Instant::now();
        match Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(_) => capture.row(program, began.elapsed(), bare),
            Err(_) => println!("  {program:<24} not installed"),
        }
    }
}
