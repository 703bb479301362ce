//! Wireshark as the judge of `--pcap`. Without `tshark` on this machine the test says that it was skipped.

use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cede"));
    let output = command.arg("run").args(arguments).arg("-o").arg(folder).output().unwrap();
    let code = output.status.code();
    // The scenario's assertions are not what this is about.
    assert!(matches!(code, Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What `tshark` prints of a folder's capture; `None`, said aloud, where there is no `tshark`.
fn tshark(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(folder.join("packets.pcapng"));
    command.args(["-d", "udp.port==10000-10010,bt-utp", "-o", "bt-utp.max_window_size:ffffffff"]);
    for preference in ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE", "tcp.check_checksum:TRUE"] {
        command.args(["-o", preference]);
    }
    match command.args(arguments).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("skipped: tshark is not installed");
            None
        }
        Err(error) => panic!("tshark did not start: {error}"),
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
    }
}

fn frames(folder: &Path, filter: &str) -> Option<u64> {
    tshark(folder, &["-Y", filter, "-T", "fields", "-e", "frame.number"])
        .map(|text| text.lines().count() as u64)
}

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("capture-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

/// The last value of a column of `flows.csv` for a flow.
fn last(folder: &Path, flow: &str, column: &str) -> u64 {
    let text = fs::read_to_string(folder.join("flows.csv")).unwrap();
    let place = text.lines().next().unwrap().split(',').position(|name| name == column).unwrap();
    let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    rows.rev().find(|row| row[1] == flow).unwrap()[place].parse().unwrap()
}

#[test]
fn wireshark_finds_what_the_flows_counted_and_nothing_wrong() {
    let folder = folder("sent");
    run(&folder, &["demo", "--pcap", "-s", "link.loss=0.002"]);
    let faults = "_ws.malformed or _ws.expert.group == \"Malformed\" or _ws.expert.group == \"Checksum\" or \
                  tcp.analysis.ack_lost_segment or tcp.analysis.lost_segment or tcp.analysis.zero_window";
    let Some(found) = tshark(&folder, &["-Y", faults]) else { return };
    assert_eq!(found, "");
    assert_eq!(frames(&folder, "udp and not bt-utp"), Some(0));
    assert_eq!(frames(&folder, "bt-utp.type == 0"), Some(last(&folder, "ledbat", "data_packets_sent")));
    assert_eq!(frames(&folder, "tcp.len > 0"), Some(last(&folder, "cubic", "data_packets_sent")));
    let retransmissions = last(&folder, "cubic", "retransmissions");
    assert!(retransmissions > 0);
    assert_eq!(frames(&folder, "tcp.analysis.retransmission"), Some(retransmissions));
    let names = tshark(&folder, &["-T", "fields", "-e", "frame.interface_name"]).unwrap();
    for name in ["ledbat-sender", "ledbat-receiver", "cubic-sender", "cubic-receiver"] {
        assert!(names.lines().any(|line| line == name), "{name}");
    }
}

#[test]
fn the_vantage_decides_what_is_seen() {
    let folders = ["sent", "senders", "receivers"].map(|vantage| {
        let folder = folder(&format!("vantage-{vantage}"));
        run(&folder, &["demo", &format!("--pcap={vantage}"), "-s", "link.loss=0.002"]);
        folder
    });
    let [sent, senders, receivers] = &folders;
    let (Some(all), Some(leaving)) = (frames(sent, "bt-utp.type == 0"), frames(senders, "bt-utp.type == 0"))
    else {
        return;
    };
    let arriving = frames(receivers, "bt-utp.type == 0").unwrap();
    assert_eq!(all, leaving);
    assert!(arriving < leaving, "{arriving} of {leaving} arrive: some are lost");
    assert!(frames(receivers, "frame.interface_name contains \"sender\"") == Some(0));
    // At the senders an acknowledgement arrives half a round trip after it was sent.
    let first_ack = |folder: &Path| {
        let fields = ["-Y", "bt-utp.type == 2", "-c", "100", "-T", "fields", "-e", "frame.time_epoch"];
        tshark(folder, &fields).unwrap().lines().next().unwrap().parse::<f64>().unwrap()
    };
    assert!(first_ack(senders) > first_ack(sent) + 0.02);
}

#[test]
fn the_scenario_can_ask_for_packets() {
    let folder = folder("asked");
    run(&folder, &["alone", "-s", "record.packets=true", "-s", "warmup=0 s", "-s", "duration=2 s"]);
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    assert!(manifest["files"].as_array().unwrap().iter().any(|file| file == "packets.pcapng"));
    let octets = fs::read(folder.join("packets.pcapng")).unwrap();
    assert_eq!(octets[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
}
