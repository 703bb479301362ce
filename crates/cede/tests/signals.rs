//! Signals: what runs until it is interrupted ends in good order, also where its terminal is closed.

mod support;

use std::fs;
use std::net::TcpListener;
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

/// Where a terminal is closed the system says so, and its shell as well.
#[test]
fn several_signals_together_end_it_in_order() {
    let place = Folder::new("signals-together");
    place.write("film", [7; 100]);
    place.cede(&["torrent", "make", "film"]).exits(0);
    // What is told to a tracker that does not answer keeps whoever leaves for a while.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let tracker = format!("http://{}/announce", silent.local_addr().unwrap());
    let quiet = ["--no-dht", "--no-lsd", "--no-port-mapping", "-p", "0", "-B", "127.0.0.1", "--json"];
    let seed = [&["torrent", "seed", "film.torrent", "-t", &tracker][..], &quiet].concat();
    let mut seed = place.start(&seed);
    seed.prints("begin");
    let _connection = silent.accept().unwrap();
    seed.interrupt();
    seed.signal("-TERM");
    let end = seed.end().exits(130).event("end");
    assert_eq!(end["complete"], true);
}

/// A pipe that nobody writes to is waited for; whoever asks for the end again, and not at the same time, gets it.
#[test]
#[cfg(unix)]
fn who_does_not_end_in_order_ends_when_asked_again() {
    let place = Folder::new("signals-again");
    if !Command::new("mkfifo").arg(place.path("pipe")).status().is_ok_and(|status| status.success()) {
        println!("SKIPPED: no pipe can be made");
        return;
    }
    let what = ["none.torrent", "pipe", "--no-port-mapping", "-p", "0", "-B", "127.0.0.1"];
    let mut get = place.start(&[&["torrent", "get"][..], &what].concat());
    get.says("none.torrent: cannot be read");
    let ends = (0..100).any(|_| {
        get.interrupt();
        sleep(Duration::from_millis(300));
        get.has_ended()
    });
    assert!(ends, "nobody who asks again gets it");
    get.end().exits(130);
}

/// What has to be read before anything begins may be a pipe that says nothing.
#[test]
#[cfg(target_os = "linux")]
fn who_has_not_begun_ends_when_asked_once() {
    use std::os::unix::fs::OpenOptionsExt;
    /// open(2): not to wait for a reader, but to fail without one.
    const O_NONBLOCK: i32 = 0o4000;
    let place = Folder::new("signals-once");
    if !Command::new("mkfifo").arg(place.path("pipe")).status().is_ok_and(|status| status.success()) {
        println!("SKIPPED: no pipe can be made");
        return;
    }
    for arguments in [&["run", "pipe"][..], &["meter", "none.pcap", "--pseudonyms=pipe"]] {
        let waiting = place.start(arguments);
        let open = || {
            let opened =
                fs::File::options().write(true).custom_flags(O_NONBLOCK).open(place.path("pipe")).ok();
            sleep(Duration::from_millis(20));
            opened
        };
        let _silent = std::iter::repeat_with(open).take(3_000).find_map(|opened| opened).expect("a reader");
        waiting.interrupt();
        waiting.end().exits(130);
    }
}

/// Without listening to that signal a process ends where it writes beyond what its user may have, and says nothing.
#[test]
#[cfg(unix)]
fn a_file_that_becomes_larger_than_its_user_may_have_is_an_error() {
    let place = Folder::new("signals-size");
    place.write_pattern("film", 10_000_000);
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -f 8; exec "$@""#, "sh", env!("CARGO_BIN_EXE_cede")]);
    command.args(["torrent", "make", "film", "-l", "16KiB"]).current_dir(place.path(""));
    Running::begin(&mut command).end().exits(1).complains("film.torrent").complains("File too large");
    assert!(!place.path("film.torrent").exists());
}
