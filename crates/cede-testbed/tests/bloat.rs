//! A case of the validation in small, where namespaces can be made: both taps see the same packets, and the meter sees a
//! queue. How near it comes takes longer to see than a test may last, and a machine that keeps time; `cede repro
//! bufferbloat` measures it.

use cede_meter::Estimator;
use cede_repro::bufferbloat::setting::{Case, Hidden, Seen};
use cede_testbed::NetnsError;
use cede_testbed::bloat::{Pace, measure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const BRIEF: Pace =
    Pace { duration: Duration::from_secs(8), chirp: Duration::from_secs(1), hidden: Duration::from_secs(2) };

/// A namespace as a run leaves it that was killed; none, aloud, where it cannot be made.
fn left_by_a_dead_process() -> Option<String> {
    let mut dead = Command::new("true").spawn().ok()?;
    let name = format!("cede-{}-0-s", dead.id());
    dead.wait().ok()?;
    let made = Command::new("ip").args(["netns", "add", &name]).output();
    if made.is_ok_and(|made| made.status.success()) {
        return Some(name);
    }
    println!("SKIPPED: no namespace of a dead process can be made");
    None
}

#[test]
fn a_hidden_upload_shows_in_a_heartbeat_and_nothing_is_left_behind() {
    let left = left_by_a_dead_process();
    let case = Case { seen: Seen::TcpHeartbeat, hidden: Hidden::Backlogged };
    let measured = match measure(case, &BRIEF, &|| true) {
        Err(NetnsError::Impossible(why)) => {
            println!("SKIPPED: {why}");
            return;
        }
        other => other.expect("the experiment runs"),
    };
    if let Some(left) = left {
        assert!(!Path::new("/run/netns").join(&left).exists(), "{left} was not swept away");
    }
    assert!(measured.truth.len() > 20, "{} packets passed the uplink", measured.truth.len());
    assert!(measured.longest_ms > 20.0, "{} ms", measured.longest_ms);
    let direct = measured.estimate(Estimator::Direct).expect("heartbeats");
    assert!(direct.errors_ms.len() * 2 >= direct.samples.len(), "samples are of packets that passed");
    let stopped = measure(case, &BRIEF, &|| false);
    assert!(matches!(stopped, Err(NetnsError::Interrupted)), "{stopped:?}");
    let own = format!("cede-{}-", std::process::id());
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    assert_eq!(entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).count(), 0);
}
