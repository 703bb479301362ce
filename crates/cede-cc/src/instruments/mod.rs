//! The instruments that controllers and transports are built from. One file each; none knows a controller.

mod base_history;
mod clock_drift;
mod delay_filter;
mod delivery_rate;
mod loss_epoch;
mod pacer;
mod queueing_delay;
mod rtt;
mod windowed;

pub use base_history::BaseHistory;
pub use clock_drift::{ClockDrift, ClockStep};
pub use delay_filter::{DelayFilter, FilterKind};
pub use delivery_rate::{DeliveryRate, DeliverySample};
pub use loss_epoch::LossEpoch;
pub use pacer::{Pacer, sub_packet_interval};
pub use queueing_delay::{QueueingDelay, QueueingDelayConfig};
pub use rtt::{RttConfig, RttEstimator};
pub use windowed::{WindowedMax, WindowedMin};
