//! One case of the validation.

use super::watch::Watch;
use crate::netns::{Bulk, Namespaces, NetnsError, Pattern, RECEIVER};
use cede_real::StreamConfig;
use cede_repro::bufferbloat::Measured;
use cede_repro::bufferbloat::setting::{BUFFER_S, Case, Hidden, Seen, UPLINK_MBPS};
use cede_units::Rate;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Whom hidden traffic is for.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 3);
const HEARTBEAT_BYTES: u64 = 100;
const HEARTBEAT: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(100);
/// A chirp's packets, of this much payload.
const SEGMENT_BYTES: u64 = 1_448;
const CUBIC: &str = "cubic";
/// Whose slow start fills any buffer; CUBIC leaves it when delays grow.
const RENO: &str = "reno";

/// How long a case lasts, and what happens when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// The whole.
    pub duration: Duration,
    /// Between two bursts of a chirp, each twice the one before.
    pub chirp: Duration,
    /// When hidden traffic begins.
    pub hidden: Duration,
}

impl Pace {
    /// Ten bursts, the last of 512 packets: six seconds of queue.
    pub const FULL: Self = Self {
        duration: Duration::from_secs(125),
        chirp: Duration::from_secs(12),
        hidden: Duration::from_secs(5),
    };
    /// Eight bursts, the last of 128 packets.
    pub const QUICK: Self = Self {
        duration: Duration::from_secs(36),
        chirp: Duration::from_secs(4),
        hidden: Duration::from_secs(3),
    };

    const fn seen(&self, seen: Seen) -> Pattern {
        match seen {
            Seen::UtpBacklogged | Seen::TcpBacklogged => Pattern::Backlogged,
            Seen::TcpChirp => self.chirp(),
            Seen::UtpHeartbeat | Seen::TcpHeartbeat => {
                Pattern::Heartbeat { period: HEARTBEAT, bytes: HEARTBEAT_BYTES }
            }
        }
    }

    const fn chirp(&self) -> Pattern {
        Pattern::Chirp { period: self.chirp, bytes: SEGMENT_BYTES }
    }
}

/// Runs cases at the same time: each has a queue of its own, and none needs much of a processor. `watch` hears how long they
/// have run and says whether to go on; once one has failed, the others end, too.
///
/// # Errors
/// The first [`NetnsError`] that is the cause of the end.
pub fn measure_all(
    cases: &[Case],
    pace: &Pace,
    watch: &(dyn Fn(Duration) -> bool + Sync),
) -> Result<Vec<Measured>, NetnsError> {
    let began = Instant::now();
    let has_failed = AtomicBool::new(false);
    let goes_on = || !has_failed.load(Ordering::Relaxed) && watch(began.elapsed());
    let run = &|case: Case| {
        let measured = measure(case, pace, &goes_on);
        has_failed.fetch_or(measured.is_err(), Ordering::Relaxed);
        measured
    };
    let all: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = cases.iter().map(|&case| scope.spawn(move || run(case))).collect();
        running.into_iter().filter_map(|case| case.join().ok()).collect()
    });
    let (mut done, mut failure) = (Vec::new(), None);
    for measured in all {
        match measured {
            Ok(measured) => done.push(measured),
            // Most were given up because of another one, which knows why.
            Err(NetnsError::Interrupted) if failure.is_some() => {}
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(done), Err)
}

/// Runs a case; `goes_on` is asked now and then. Whatever was made is gone afterwards.
///
/// # Errors
/// [`NetnsError`].
pub fn measure(case: Case, pace: &Pace, goes_on: &(dyn Fn() -> bool + Sync)) -> Result<Measured, NetnsError> {
    let rate = Rate::from_bits_per_sec((UPLINK_MBPS * 1e6) as u64);
    let namespaces = Namespaces::where_possible(rate, cede_units::Duration::from_secs_f64(BUFFER_S))?;
    namespaces.add_receiver(ELSEWHERE)?;
    let watch = Watch::begin(&namespaces)?;
    let began = Instant::now();
    let mut flows = vec![seen_flow(&namespaces, case.seen, pace)?];
    while began.elapsed() < pace.duration {
        thread::sleep(LOOK);
        if !goes_on() {
            return Err(NetnsError::Interrupted);
        }
        if flows.len() == 1 && began.elapsed() >= pace.hidden {
            flows.extend(hidden_flow(&namespaces, case.hidden, pace)?);
        }
        if let Some(error) = flows.iter_mut().find_map(Bulk::failure) {
            return Err(error.into());
        }
    }
    // What is seen of their end would be of no case.
    let seen = watch.end()?;
    drop(flows);
    match seen.missed {
        0 => Ok(seen.judge(case)),
        missed => Err(NetnsError::Impossible(format!(
            "this machine is too slow, {missed} packets were not captured"
        ))),
    }
}

fn seen_flow(namespaces: &Namespaces, seen: Seen, pace: &Pace) -> std::io::Result<Bulk> {
    let pattern = pace.seen(seen);
    if seen.is_utp() {
        return Bulk::utp(namespaces, &StreamConfig::default(), pattern);
    }
    let control = if matches!(seen, Seen::TcpChirp) { RENO } else { CUBIC };
    Bulk::tcp(namespaces, control, RECEIVER, pattern)
}

fn hidden_flow(namespaces: &Namespaces, hidden: Hidden, pace: &Pace) -> std::io::Result<Option<Bulk>> {
    let (control, pattern) = match hidden {
        Hidden::Nothing => return Ok(None),
        Hidden::Chirp => (RENO, pace.chirp()),
        Hidden::Backlogged => (CUBIC, Pattern::Backlogged),
    };
    Bulk::tcp(namespaces, control, ELSEWHERE, pattern).map(Some)
}
