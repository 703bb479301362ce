//! A delay, as samples tell it.

/// A queueing delay at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delay {
    /// When the packet was captured, in microseconds since the capture's epoch.
    pub time_us: u64,
    /// How long it had queued, in microseconds.
    pub queue_us: f64,
}
