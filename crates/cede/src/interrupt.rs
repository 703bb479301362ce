//! Ctrl-C: the first asks for an orderly end, the second ends at once, but where something must be put away first. A terminal
//! that is closed asks likewise (SIGHUP), unless whoever has begun this wants it to go on, as `nohup` does; only Linux tells that.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

static ASKED: AtomicBool = AtomicBool::new(false);
/// Nothing has begun that would have to be put away, and somebody is waited for.
static WAITS: AtomicBool = AtomicBool::new(false);
/// What makes the second signal end the process.
static AT_ONCE: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

const EXIT_CODE: i32 = 130;
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// An orderly end takes no longer, where everything is as it should be.
const TOGETHER: Duration = Duration::from_secs(2);
#[cfg(unix)]
const HANG_UP: Option<i32> = Some(signal_hook::consts::SIGHUP);
#[cfg(not(unix))]
const HANG_UP: Option<i32> = None;
/// A file would become larger than a user may have any (`ulimit -f`): a process that does not listen to it ends without a word.
#[cfg(unix)]
const TOO_LARGE: Option<i32> = Some(signal_hook::consts::SIGXFSZ);
#[cfg(not(unix))]
const TOO_LARGE: Option<i32> = None;

/// Whether the system says that a signal is not ignored.
fn is_heard(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 0)
}

fn signals() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM].into_iter().chain(HANG_UP.filter(|signal| is_heard(*signal)))
}

/// Begins to listen. Where the system does not let us, Ctrl-C ends the process as ever.
pub fn listen() {
    // What is written says then why it cannot be.
    let _ = TOO_LARGE.map(|signal| flag::register(signal, Arc::default()));
    let mut at_once = AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in signals() {
        let _ = flag::register_conditional_shutdown(signal, EXIT_CODE, &WAITS);
        // In this order: the second signal finds the flag that the first one raised.
        at_once.extend(flag::register_conditional_shutdown(signal, EXIT_CODE, &ASKED));
        let _ = flag::register(signal, &ASKED);
    }
}

/// Reads what has to be there before anything begins. The first signal ends the process meanwhile: a pipe waits for whoever writes to it, and
/// standard input for a person.
pub fn while_reading<T>(read: impl FnOnce() -> T) -> T {
    WAITS.store(true, Ordering::Relaxed);
    let read = read();
    WAITS.store(false, Ordering::Relaxed);
    read
}

/// From now on no number of these signals ends the process at once: it makes what would outlive it, and puts it away in
/// the end. (Ctrl-\ ends it all the same.)
pub fn insist_on_order() {
    let mut at_once = AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    for action in at_once.drain(..) {
        let _ = low_level::unregister(action);
    }
}

/// From now on signals that come within a little of the first ask for the same as that: whoever is asked by several at a time, as where a
/// terminal is closed and its shell says so as well, ends in order. Later ones end the process at once, whatever it waits for.
pub fn bear_with_several() {
    let wait = || {
        while !is_asked() {
            std::thread::sleep(LOOK_EVERY);
        }
        std::thread::sleep(TOGETHER);
        insist_no_more();
    };
    if std::thread::Builder::new().name("signals".to_owned()).spawn(wait).is_ok() {
        insist_on_order();
    }
}

/// What would outlive the process is put away: after the first signal the next one ends it at once again.
pub fn insist_no_more() {
    let mut at_once = AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    at_once.extend(
        signals().filter_map(|signal| flag::register_conditional_shutdown(signal, EXIT_CODE, &ASKED).ok()),
    );
}

/// Whether somebody has asked for the end.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Waits until somebody asks for the end. Must run within a runtime of tokio with everything enabled.
pub async fn asked() {
    #[cfg(unix)]
    {
        use std::task::Poll;
        use tokio::signal::unix::{SignalKind, signal};
        // Before the look at what came until now, so that nothing falls between.
        let heard = signals().filter_map(|number| signal(SignalKind::from_raw(number)).ok());
        let mut heard: Vec<_> = heard.collect();
        if !heard.is_empty() && !is_asked() {
            std::future::poll_fn(|cx| {
                let comes = heard.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
                if comes { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }
    while !is_asked() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
