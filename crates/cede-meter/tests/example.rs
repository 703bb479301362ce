//! The example, run on a recorded capture.

use flate2::read::GzDecoder;
use std::io::Read;
use std::process::Command;

#[test]
fn the_sensor_names_the_host_with_the_queue() {
    // Examples lie beside the tests that Cargo builds with them.
    let exe = std::env::current_exe().unwrap();
    let example = exe.ancestors().map(|folder| folder.join("examples/sensor")).find(|path| path.exists());
    let Some(example) = example else {
        println!(
            "SKIPPED: the example was not built (cargo test builds it unless only one test was asked for)"
        );
        return;
    };
    let mut capture = Vec::new();
    let recorded: &[u8] = include_bytes!("vectors/tcp_1m.pcap.gz");
    GzDecoder::new(recorded).read_to_end(&mut capture).unwrap();
    let path = std::env::temp_dir().join(format!("cede-sensor-{}.pcap", std::process::id()));
    std::fs::write(&path, &capture).unwrap();
    let output = Command::new(example).arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("10.0.1.2 has a queue of "), "{said}");
    assert!(!said.contains("10.0.3.2 has a queue"), "{said}");
}
