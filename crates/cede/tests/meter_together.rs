//! `cede meter`, on captures of the same time: of a router's interfaces, of two machines, of strangers.

mod support;

use serde_json::Value;
use std::io::Write;
use support::captures::{TCP, parts, plain};
use support::{Finished, Folder};

/// A packet, and when it was captured.
type Seen = (u64, Vec<u8>);

fn classic(mut seen: Vec<Seen>) -> Vec<u8> {
    seen.sort_by_key(|(time_us, _)| *time_us);
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1_u32];
    let mut out: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (time_us, frame) in seen {
        let (seconds, rest, len) = (time_us / 1_000_000, time_us % 1_000_000, frame.len() as u32);
        out.extend([seconds as u32, rest as u32, len, len].iter().flat_map(|word| word.to_le_bytes()));
        out.extend(frame);
    }
    out
}

const A: u8 = 2;

/// A TCP segment with timestamps in an Ethernet frame, from a host to another one.
fn segment([from, to]: [u8; 2], [seq, ack]: [u32; 2], [clock, echo]: [u32; 2], payload: usize) -> Vec<u8> {
    let mut tcp = [(5_000 + u16::from(from)).to_be_bytes(), (5_000 + u16::from(to)).to_be_bytes()].concat();
    tcp.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
    tcp.extend([0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
    tcp.extend([clock.to_be_bytes(), echo.to_be_bytes()].concat());
    tcp.extend(vec![0; payload]);
    let len = ((20 + tcp.len()) as u16).to_be_bytes();
    let ip = [0x45, 0, len[0], len[1], 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    [&[2; 12][..], &[8, 0], &ip, &tcp].concat()
}

/// Up to 300 ms and down again.
fn queue_us(k: u64) -> u64 {
    let step = k % 600;
    1_000 * if step <= 300 { step } else { 600 - step }
}

/// What a router shows of a host that sends to A for 30 s, before its queue and behind it; its own time, from this second on.
fn router(host: u8, from_s: u64) -> [Vec<Seen>; 2] {
    let [mut inside, mut outside] = [Vec::new(), Vec::new()];
    for k in 0..1_500_u64 {
        let sent = (1_700_000_000 + from_s) * 1_000_000 + k * 20_000;
        let leaves = sent + queue_us(k);
        let (seq, clock) = (k as u32 * 100, (sent / 1_000) as u32);
        let data = segment([host, A], [seq, 1], [clock, 9], 100);
        let ack = segment([A, host], [1, seq + 100], [(leaves / 1_000) as u32 + 5, clock], 0);
        inside.push((sent, data.clone()));
        outside.push((leaves + 10, data));
        outside.push((leaves + 5_000, ack.clone()));
        inside.push((leaves + 5_020, ack));
    }
    [inside, outside]
}

fn metered(place: &Folder, files: &[&str]) -> (Value, String) {
    let mut command = place.command([&["meter", "--json", "--flows"], files].concat());
    let (code, out, err) = Finished::of(command.output().unwrap()).told();
    assert_eq!(code, 0, "{err}");
    (serde_json::from_str(&out).unwrap(), err)
}

/// The mean over time of what a host sent, and its packets.
fn of_host(found: &Value, host: u8) -> (f64, u64) {
    let address = format!("10.0.0.{host}");
    let list = |name: &str| found[name].as_array().unwrap().clone();
    let of = list("hosts").into_iter().find(|one| one["address"] == *address).expect("the host");
    let flows = list("flows").into_iter();
    let packets = flows
        .filter(|flow| flow["from"].as_str().unwrap().starts_with(&format!("{address}:")))
        .map(|flow| flow["packets"].as_u64().unwrap())
        .sum();
    (of["queue"]["time_mean_ms"].as_f64().unwrap(), packets)
}

const NOTE: &str = "captures of the same time are put together";

/// Each interface in a file of its own, whole or in pieces, plain, compressed or from a pipe: as the one behind the queue has it.
#[test]
fn a_routers_interfaces_in_files_of_their_own_show_its_queue_once() {
    let place = Folder::new("together");
    let [inside, outside] = router(3, 0).map(classic);
    place.write("out.pcap", &outside);
    place.write("in.pcap", &inside);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&outside).unwrap();
    place.write("out.pcap.gz", encoder.finish().unwrap());
    for (name, capture) in [("r-in-", &inside), ("r-out-", &outside)] {
        parts(capture, 4).iter().enumerate().for_each(|(k, part)| place.write(&format!("{name}{k}"), part));
    }
    let (alone, _) = metered(&place, &["out.pcap"]);
    let (mean, packets) = of_host(&alone, 3);
    assert!((mean - 150.0).abs() < 2.0 && packets == 1_500, "{mean} {packets}");
    let pieces = ["r-in-0", "r-out-2", "r-in-2", "r-in-1", "r-out-0", "r-in-3", "r-out-3", "r-out-1"];
    for files in [&["in.pcap", "out.pcap"][..], &["out.pcap.gz", "in.pcap"], &pieces] {
        let (found, err) = metered(&place, files);
        let (both, twice) = of_host(&found, 3);
        assert!((both - mean).abs() < 0.2 && twice.abs_diff(packets) < 20, "{files:?} {both} {twice}");
        assert!(
            err.contains(NOTE) && err.contains("of 2 interfaces") && !err.contains("nothing tells"),
            "{err}"
        );
        assert_eq!(found["counters"]["packets"], 6_000);
    }
    let piped = place.cede_reading(&["meter", "in.pcap", "-", "--json", "--flows"], &outside).json();
    assert!((of_host(&piped, 3).0 - mean).abs() < 0.2);
}

/// Captures of two places that have nothing in common but their time, and one behind the other.
#[test]
fn captures_of_strangers_and_of_other_times_stay_what_they_are() {
    let place = Folder::new("strangers");
    place.write("one.pcap", classic(router(3, 0)[1].clone()));
    place.write("two.pcap", classic(router(4, 7)[1].clone()));
    place.write("later.pcap", classic(router(5, 40)[1].clone()));
    let alone = [("one.pcap", 3), ("two.pcap", 4), ("later.pcap", 5)]
        .map(|(file, host)| of_host(&metered(&place, &[file]).0, host));
    let (found, err) = metered(&place, &["later.pcap", "two.pcap", "one.pcap"]);
    assert_eq!([3, 4, 5].map(|host| of_host(&found, host)), alone);
    assert!(found["counters"]["packets_seen_twice"] == 0 && err.contains("of 2 interfaces"), "{err}");
    let (found, err) = metered(&place, &["later.pcap", "one.pcap"]);
    assert!(err.is_empty() && of_host(&found, 5) == alone[2], "{err}");
}

/// Two machines whose clocks are a second, or forty, apart.
#[test]
fn what_two_machines_show_by_clocks_that_differ_is_told_and_one_counts() {
    let place = Folder::new("clocks");
    let [before, behind] = router(3, 0);
    place.write("before.pcap", classic(before));
    let truth = of_host(
        &{
            place.write("behind.pcap", classic(behind.clone()));
            metered(&place, &["behind.pcap"]).0
        },
        3,
    );
    // Ten seconds apart no packet is found in both, and what was captured first counts.
    for (ahead_us, mean_ms) in [(1_000_000, truth.0), (12_000_000, 0.0)] {
        let behind = behind.iter().map(|(time_us, frame)| (time_us + ahead_us, frame.clone())).collect();
        place.write("behind.pcap", classic(behind));
        let (found, err) = metered(&place, &["before.pcap", "behind.pcap"]);
        let (mean, packets) = of_host(&found, 3);
        assert!((mean - mean_ms).abs() < 0.5 && packets < 1_600, "{ahead_us}: {mean} {packets}");
        assert!(err.contains("of 1 flow nothing tells which of several captures shows it last"), "{err}");
    }
}

/// A capture that was cut into pieces with packets in common is as if it were whole.
#[test]
fn pieces_with_packets_in_common_are_one_capture() {
    let place = Folder::new("common");
    let octets = plain(TCP);
    let parts = parts(&octets, 4);
    let later = |part: &Vec<u8>| part[24..].to_vec();
    place.write("whole", &octets);
    place.write("cap", [parts[0].clone(), later(&parts[1]), later(&parts[2])].concat());
    place.write("cap1", [parts[2].clone(), later(&parts[3])].concat());
    let ([whole, _], (both, err)) =
        ([metered(&place, &["whole"]).0, Value::Null], metered(&place, &["cap1", "cap"]));
    assert!(err.contains(NOTE), "{err}");
    for (one, other) in whole["hosts"].as_array().unwrap().iter().zip(both["hosts"].as_array().unwrap()) {
        assert_eq!(one["address"], other["address"]);
        let mean = |host: &Value| host["queue"]["time_mean_ms"].as_f64().unwrap();
        assert!((mean(one) - mean(other)).abs() < 0.5, "{one} {other}");
    }
}

/// A capture of several interfaces (pcapng), in the order that is given.
fn of_interfaces(seen: &[(u32, Seen)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let body = [body, &vec![0; body.len().wrapping_neg() % 4][..]].concat();
        let len = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, &body, &len].concat()
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut out = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    out.extend((0..2).flat_map(|_| block(1, &words(&[1, 0]))));
    for (interface, (time_us, frame)) in seen {
        let (len, time) = (frame.len() as u32, [(time_us >> 32) as u32, *time_us as u32]);
        out.extend(block(6, &[&words(&[*interface, time[0], time[1], len, len])[..], frame].concat()));
    }
    out
}

/// A router's interfaces, before and behind a queue that fills soon and is never empty again.
fn filling() -> Vec<(u32, Seen)> {
    let mut seen = Vec::new();
    for k in 0..1_500_u64 {
        let sent = 1_700_000_000_000_000 + k * 20_000;
        let leaves = sent + 10_000 * k.saturating_sub(5).min(20) + 1_000 * (k % 7);
        let data = segment([1, A], [k as u32 * 100, 1], [(sent / 1_000) as u32, 9], 100);
        let ack =
            segment([A, 1], [1, k as u32 * 100 + 100], [(leaves / 1_000) as u32, (sent / 1_000) as u32], 0);
        seen.extend([(0, (sent, data.clone())), (1, (leaves + 10, data))]);
        seen.extend([(1, (leaves + 5_000, ack.clone())), (0, (leaves + 5_020, ack))]);
    }
    seen
}

/// In order, and as dumpcap writes them: what one interface showed of a while, then what the other one did.
fn ordered_and_in_lots() -> [Vec<(u32, Seen)>; 2] {
    let mut ordered = filling();
    ordered.sort_by_key(|(_, (time_us, _))| *time_us);
    let mut lots = ordered.clone();
    lots.sort_by_key(|(interface, (time_us, _))| (time_us / 230_000, 1 - interface, *time_us));
    [ordered, lots]
}

#[test]
fn interfaces_that_stand_in_lots_are_put_in_order() {
    let place = Folder::new("lots");
    let [ordered, lots] = ordered_and_in_lots().map(|seen| of_interfaces(&seen));
    place.write("ordered.pcapng", ordered);
    place.write("lots.pcapng", &lots);
    let (ordered, _) = metered(&place, &["ordered.pcapng"]);
    let (mean_ms, _) = of_host(&ordered, 1);
    assert!((mean_ms - 200.0).abs() < 5.0, "{mean_ms}");
    let (found, _) = metered(&place, &["lots.pcapng"]);
    assert_eq!((&found["hosts"], &found["counters"]), (&ordered["hosts"], &ordered["counters"]));
    // Behind another file.
    let before = router(3, 0)[1].iter().map(|(us, frame)| (us - 100_000_000, frame.clone())).collect();
    place.write("before.pcap", classic(before));
    let (found, _) = metered(&place, &["lots.pcapng", "before.pcap"]);
    assert_eq!(of_host(&found, 1), of_host(&ordered, 1));
    // A pipe is read once.
    let (code, _, err) = place.cede_reading(&["meter", "--json", "-"], &lots).told();
    assert!(code == 0 && err.contains("give it as a file"), "{code} {err}");
}

/// `dumpcap -b`: wherever a file ends, and in whatever order they are named; alone, and beside another capture.
#[test]
fn lots_go_on_from_file_to_file_of_a_row() {
    let place = Folder::new("rows");
    let [ordered, lots] = ordered_and_in_lots();
    place.write("ordered.pcapng", of_interfaces(&ordered));
    place.write("lots.pcapng", of_interfaces(&lots));
    // A stranger's, which begins before the first lot.
    place.write(
        "stranger.pcap",
        classic(router(9, 3)[1].iter().map(|(us, frame)| (us - 6_000_000, frame.clone())).collect()),
    );
    let [beside, of_lots] =
        ["ordered.pcapng", "lots.pcapng"].map(|file| metered(&place, &["stranger.pcap", file]).0);
    assert_eq!(of_lots["hosts"], beside["hosts"]);
    let (ordered, _) = metered(&place, &["ordered.pcapng"]);
    for packets in [11, 40, 97, 2_000] {
        let row: Vec<String> =
            (0..lots.len().div_ceil(packets)).map(|k| format!("row{packets}_{k}")).collect();
        for (name, part) in row.iter().zip(lots.chunks(packets)) {
            place.write(name, of_interfaces(part));
        }
        let row: Vec<&str> = row.iter().map(String::as_str).rev().collect();
        let (found, err) = metered(&place, &row);
        assert!(err.is_empty(), "{packets}: {err}");
        assert_eq!(
            (&found["hosts"], &found["counters"]),
            (&ordered["hosts"], &ordered["counters"]),
            "{packets}"
        );
        let (found, err) = metered(&place, &[&row[..], &["stranger.pcap"]].concat());
        assert!(err.contains("of 2 interfaces") && !err.contains("nothing tells"), "{packets}: {err}");
        assert_eq!(found["hosts"], beside["hosts"], "{packets}");
    }
}
