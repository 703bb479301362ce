//! Signals: what runs until it is interrupted ends in good order, also where its terminal is closed.

mod support;

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use support::{Folder, Running};

const TRACKER: [&str; 6] = ["torrent", "tracker", "-p", "0", "-B", "127.0.0.1"];

/// Whether SIGHUP, the first of the signals, is not ignored here, and so not by what is begun here.
fn hears_its_terminal() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 0)
}

#[test]
fn whoever_is_asked_to_end_does_so_in_order() {
    let place = Folder::new("signals");
    for signal in ["-INT", "-TERM", "-HUP"] {
        if signal == "-HUP" && !hears_its_terminal() {
            println!(
                "SKIPPED: these tests are to outlive their terminal themselves, or the system does not say so"
            );
            continue;
        }
        let mut tracker = place.start(&TRACKER);
        tracker.says("tracker at");
        tracker.signal(signal);
        tracker.end().exits(130).complains("the tracker has ended");
    }
}

#[test]
fn help_says_what_ends_it_and_with_which_code() {
    let place = Folder::new("signals-help");
    for verb in ["get", "seed", "tracker"] {
        let help = place.cede(&["torrent", verb, "--help"]).exits(0);
        let words: Vec<&str> = help.text().split_whitespace().collect();
        let words = words.join(" ");
        for word in ["Ctrl-C", "SIGTERM", "SIGHUP", "(exit code 130)"] {
            assert!(words.contains(word), "{verb}: {word}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn who_is_to_outlive_its_terminal_does() {
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" HUP; exec "$@""#, "sh", env!("CARGO_BIN_EXE_cede")]).args(TRACKER);
    let mut tracker = Running::begin(&mut command);
    tracker.says("tracker at");
    tracker.signal("-HUP");
    sleep(Duration::from_millis(500));
    assert!(!tracker.has_ended());
    tracker.interrupt();
    tracker.end().exits(130);
}
