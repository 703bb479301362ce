//! The shortest delays among samples that are left out for want of time or memory: all others are counted from them.

use crate::store::sample::Sample;

/// A delay counts as shorter if it is by so much: a clock that drifts would make one of each packet.
const SHORTER_US: i32 = 100;
/// Of each so many samples that are kept one may be kept for this alone, and the first ones: where a clock's rate is not the one that is
/// assumed, each may look shorter than the one before.
const SAMPLES_EACH: u32 = 16;
const FIRST: u32 = 64;
/// Microseconds of a tick of TCP's clocks, of those that nearly everything has.
const TICK_US: u32 = 1_000;

/// Follows a direction, as long as samples of it are left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Low {
    /// The shortest so far, in microseconds with an unknown constant in them.
    least_us: Option<u32>,
    kept: u32,
}

impl Low {
    /// Notes a sample: whether it is to be kept although it came too soon, behind so many others.
    pub(crate) fn note(&mut self, sample: &Sample, is_tcp: bool, samples: usize, is_kept: bool) -> bool {
        let stamp_us = sample.raw.wrapping_mul(TICK_US);
        let us = if is_tcp { (sample.time_us as u32).wrapping_sub(stamp_us) } else { sample.raw };
        let shorter = |least: u32| least.wrapping_sub(us).cast_signed();
        let by_us = self.least_us.map_or(i32::MAX, shorter);
        let is_new = !is_kept && by_us >= SHORTER_US && self.kept < FIRST + samples as u32 / SAMPLES_EACH;
        if is_new || (is_kept && by_us > 0) {
            self.least_us = Some(us);
            self.kept += u32::from(is_new);
        }
        is_new
    }
}
