//! The instruments that controllers and transports are built from. One file each; none knows a controller.

mod ack_habit;
mod base_history;
mod clock_drift;
mod delay_filter;
mod delay_range;
mod delivery_rate;
mod loss_epoch;
mod pacer;
mod queueing_delay;
mod reordering;
mod round;
mod rtt;
mod signal;
mod timer_guard;
mod windowed;

pub use ack_habit::AckHabit;
pub use base_history::BaseHistory;
pub use clock_drift::{ClockDrift, ClockStep};
pub use delay_filter::{DelayFilter, FilterKind};
pub use delay_range::DelayRange;
pub use delivery_rate::{DeliveryRate, DeliverySample};
pub use loss_epoch::LossEpoch;
pub use pacer::{Pacer, sub_packet_interval};
pub use queueing_delay::{QueueingDelay, QueueingDelayConfig};
pub use reordering::ReorderingWindow;
pub use round::{Round, RoundRtts, RoundSummary};
pub use rtt::{RttConfig, RttEstimator, RttRule};
pub use signal::Signal;
pub use timer_guard::TimerGuard;
pub use windowed::{WindowedMax, WindowedMin};

use alloc::collections::VecDeque;

/// Appends to a history of at most `limit` entries. The first takes the room of one, the second that of all: of many
/// flows most idle, and never have a second.
fn push_sparingly<T>(history: &mut VecDeque<T>, entry: T, limit: usize) {
    if history.len() == history.capacity() {
        let more = if history.is_empty() { 1 } else { limit.saturating_sub(history.len()).max(1) };
        history.reserve_exact(more);
    }
    history.push_back(entry);
}
