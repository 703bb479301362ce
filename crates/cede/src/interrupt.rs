//! Ctrl-C: the first asks for an orderly end, the second ends at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

const EXIT_CODE: i32 = 130;

/// Begins to listen. Where the system does not let us, Ctrl-C ends the process as ever.
pub fn listen() {
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag that the first one raised.
        let _ = flag::register_conditional_shutdown(signal, EXIT_CODE, &ASKED);
        let _ = flag::register(signal, &ASKED);
    }
}

/// Whether somebody has asked for the end.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
