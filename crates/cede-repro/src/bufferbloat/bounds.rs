//! How near the meter must come to the queue's log, whatever clocks, acknowledgements, loss and reordering do.
//!
//! The errors of 99 of 100 samples lie within the time of one packet, over TCP and one tick of its clock; means over time within six
//! in a hundred of the true one, or a twelfth of a packet where the queue is mostly shorter than one. What was held back behind the
//! queue by itself, so that no packet of its flow overtook it, looks as if it had queued: these are few.

use super::measure::{Estimate, Measured};
use super::setting::{Case, Conditions, PACKET_MS, TICK_MS};
use cede_meter::Estimator;

/// The part of the samples whose errors are bounded.
pub const SHARE: f64 = 0.99;
const MEAN_TOLERANCE: f64 = 0.06;
const MEAN_TOLERANCE_MS: f64 = PACKET_MS / 12.0;
/// So many samples are of packets that the log knows, at the time at which they arrived; but for those that were held back, of few
/// samples as many more as chance has it (standard deviations).
const MATCHED: f64 = 0.98;
const CHANCE: f64 = 3.0;

/// How an estimate stands beside what it must keep to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judged {
    /// [`SHARE`] of the errors are no larger, in milliseconds.
    pub error_ms: f64,
    /// The mean over time, as a part of the true one.
    pub mean_ratio: f64,
    /// The errors are within their bound.
    pub is_near: bool,
    /// So is the mean. The paper's estimate lacks what it is not told, and is not asked for it.
    pub is_mean_near: bool,
    /// Nearly all samples are of packets that the log knows.
    pub is_matched: bool,
}

impl Judged {
    /// Judges an estimate of a case under conditions.
    #[must_use]
    pub fn of(case: &Case, estimate: &Estimate, conditions: &Conditions) -> Self {
        let bound_ms = if case.seen.is_utp() { PACKET_MS } else { PACKET_MS + TICK_MS };
        let (error_ms, mean_ratio) = (estimate.error_ms(SHARE), estimate.mean_ratio());
        let (count, held_back) = (estimate.samples.len() as f64, conditions.held_back);
        let matched = estimate.errors_ms.len() as f64 / count;
        let chance = CHANCE * (held_back * (1.0 - held_back) / count).sqrt();
        let tolerance = MEAN_TOLERANCE.max(MEAN_TOLERANCE_MS / estimate.true_mean_ms);
        Self {
            error_ms,
            mean_ratio,
            is_near: error_ms <= bound_ms,
            is_mean_near: estimate.estimator == Estimator::Echoed || (mean_ratio - 1.0).abs() <= tolerance,
            is_matched: matched >= MATCHED - held_back - chance,
        }
    }

    /// Whether it keeps to everything.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        self.is_near && self.is_mean_near && self.is_matched
    }

    /// A line for whoever reads along.
    #[must_use]
    pub fn line(&self, measured: &Measured, estimate: &Estimate, conditions: &str) -> String {
        let Self { error_ms, mean_ratio, .. } = self;
        format!(
            "{:<40} {conditions:<12} {:<6} {:6} samples, errors {:6.2} {:6.2} {error_ms:6.2} ms, mean {:5.1} % of {:7.1} ms{}",
            measured.case.title(),
            format!("{:?}", estimate.estimator),
            estimate.samples.len(),
            estimate.error_ms(0.5),
            estimate.error_ms(0.95),
            100.0 * mean_ratio,
            estimate.true_mean_ms,
            if self.is_good() { "" } else { "  <-- no" }
        )
    }
}
