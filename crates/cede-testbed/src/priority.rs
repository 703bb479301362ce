//! Real-time priority for the thread that keeps time.
//!
//! On a loaded machine a thread of ordinary priority wakes up to hundreds of milliseconds late; one under `SCHED_FIFO`
//! a few tens of microseconds. It needs the right to ask for it (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`).

use std::fmt;

/// What a thread runs at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Priority {
    /// `SCHED_FIFO`: nothing of ordinary priority holds it up.
    RealTime,
    /// Like everybody else, and why.
    Ordinary(String),
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime => f.write_str("real-time priority"),
            Self::Ordinary(why) => write!(f, "ordinary priority ({why})"),
        }
    }
}

/// Asks for real-time priority for this thread, and for timers without slack in any case.
#[cfg(target_os = "linux")]
pub(crate) fn raise() -> Priority {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };
    /// Half way up: above ordinary threads, below the kernel's own.
    const LEVEL: u8 = 50;
    // Without effect under SCHED_FIFO, whose timers have none; ordinary threads have 50 us by default.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let Ok(level) = ThreadPriorityValue::try_from(LEVEL) else { return Priority::Ordinary(String::new()) };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    match set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(level), policy) {
        Ok(()) => Priority::RealTime,
        Err(error) => Priority::Ordinary(format!("the system refuses more: {error:?}")),
    }
}

/// As on Linux, where it is not known how.
#[cfg(not(target_os = "linux"))]
pub(crate) fn raise() -> Priority {
    Priority::Ordinary("real-time priority is asked for on Linux alone".to_string())
}
