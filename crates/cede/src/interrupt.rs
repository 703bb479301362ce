//! Ctrl-C: the first asks for an orderly end, the second ends at once, but where something must be put away first.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

static ASKED: AtomicBool = AtomicBool::new(false);
/// What makes the second signal end the process.
static AT_ONCE: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

const EXIT_CODE: i32 = 130;

/// Begins to listen. Where the system does not let us, Ctrl-C ends the process as ever.
pub fn listen() {
    let mut at_once = AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag that the first one raised.
        at_once.extend(flag::register_conditional_shutdown(signal, EXIT_CODE, &ASKED));
        let _ = flag::register(signal, &ASKED);
    }
}

/// From now on no number of these signals ends the process at once: it makes what would outlive it, and puts it away in
/// the end. (Ctrl-\ ends it all the same.)
pub fn insist_on_order() {
    let mut at_once = AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    for action in at_once.drain(..) {
        let _ = low_level::unregister(action);
    }
}

/// Whether somebody has asked for the end.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
