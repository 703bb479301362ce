//! What `cede repro bufferbloat --world netns` makes is gone in the end, however often it is asked to end. Skipped aloud where
//! namespaces cannot be made.
#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};
use support::{Folder, PATIENCE, Running};

/// Namespaces that a process has made.
fn of(process: u32) -> usize {
    let own = format!("cede-{process}-");
    let names =
        std::fs::read_dir("/run/netns").into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with(&own)).count()
}

/// Waits until there are namespaces; false where the process has ended before.
fn has_begun(run: &mut Running) -> bool {
    let end = Instant::now() + PATIENCE;
    while of(run.id()) == 0 {
        if run.has_ended() {
            return false;
        }
        assert!(Instant::now() < end, "it makes no namespaces");
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn however_many_signals_come_no_namespace_stays() {
    let folder = Folder::new("signals");
    for signals in [&["-INT"][..], &["-TERM", "-TERM"], &["-INT", "-TERM", "-INT", "-INT"]] {
        let mut run = folder.start(&["repro", "bufferbloat", "--world", "netns", "--quick", "-o", "out"]);
        if !has_begun(&mut run) {
            println!("SKIPPED: {}", run.end().exits(3).err);
            return;
        }
        let process = run.id();
        for signal in signals {
            run.signal(signal);
            std::thread::sleep(Duration::from_millis(50));
        }
        let code = run.end().code;
        // 3: they cannot be used here after all.
        assert!(matches!(code, Some(130 | 3)) && of(process) == 0, "{signals:?}: {code:?}");
    }
}
