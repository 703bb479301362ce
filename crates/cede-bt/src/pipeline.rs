//! How many requests a peer has to answer at a time.
//!
//! Sources: mainline 4.0.2: `2 + floor(4 rate / 16384)`, damped beyond 50; libtorrent 2.0.8: four to begin with, one
//! more for each block while the rate grows, and then three seconds' worth.
//!
//! **What it leaves out.** libtorrent's adjustment by disk queue.
//! **How it was validated.** The values of swarm experiments with these clients at 0, 20 and 100 KiB/s, below.

use crate::geometry::BLOCK_BYTES;

/// libtorrent's request queue in seconds of the present rate.
const QUEUE_S: f64 = 3.0;
/// libtorrent's first queue, in requests.
const INITIAL: u32 = 4;
/// libtorrent's bounds.
const MIN: u32 = 2;
const MAX: u32 = 500;
/// Slow start is over once a second brings so few more octets than the one before.
const GROWTH_BYTES: u64 = 5_000;

/// How the number of requests follows the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PipelineRule {
    /// The mainline client.
    Mainline4,
    /// libtorrent.
    Libtorrent,
    /// Always so many.
    Fixed(u32),
}

/// The pipeline towards one peer.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    rule: PipelineRule,
    slow_start: bool,
    queue: u32,
    /// Octets of the present second and of the one before.
    second: [u64; 2],
}

impl Pipeline {
    /// A pipeline before the first request.
    #[must_use]
    pub const fn new(rule: PipelineRule) -> Self {
        Self { rule, slow_start: true, queue: INITIAL, second: [0; 2] }
    }

    /// How many requests may be outstanding at this rate in octets per second.
    #[must_use]
    pub fn depth(&self, rate: f64, snubbed: bool) -> u32 {
        match self.rule {
            PipelineRule::Fixed(depth) => depth,
            PipelineRule::Mainline4 => mainline_depth(rate),
            PipelineRule::Libtorrent if snubbed => 1,
            PipelineRule::Libtorrent => self.queue,
        }
    }

    /// How many requests a round that has begun may bring the total to.
    #[must_use]
    pub const fn fill(&self, depth: u32) -> u32 {
        match self.rule {
            // A round asks for one piece's blocks in a burst (mainline's Downloader).
            PipelineRule::Mainline4 => depth.saturating_sub(2) * 5 + 2,
            PipelineRule::Libtorrent | PipelineRule::Fixed(_) => depth,
        }
    }

    /// Octets of a block arrived.
    pub const fn on_data(&mut self, bytes: u32) {
        self.second[0] += bytes as u64;
    }

    /// The peer is late.
    pub const fn end_slow_start(&mut self) {
        self.slow_start = false;
    }

    /// A block is whole.
    pub const fn on_block(&mut self) {
        if self.slow_start && self.queue < MAX {
            self.queue += 1;
        }
    }

    /// A second has passed.
    pub fn on_second(&mut self) {
        let [present, before] = self.second;
        self.second = [0, present];
        if self.slow_start && before > 0 && present < before + GROWTH_BYTES {
            self.slow_start = false;
        }
        if !self.slow_start {
            let wanted = QUEUE_S * present.max(before) as f64 / f64::from(BLOCK_BYTES);
            self.queue = (wanted as u32).clamp(MIN, MAX);
        }
    }
}

fn mainline_depth(rate: f64) -> u32 {
    let depth = 2 + (4.0 * rate / f64::from(BLOCK_BYTES)) as u32;
    if depth > 50 { ((0.075 * f64::from(depth)) as u32).max(50) } else { depth }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mainline_backlog_follows_the_rate() {
        let pipeline = Pipeline::new(PipelineRule::Mainline4);
        let depth = |rate| pipeline.depth(rate, false);
        assert_eq!([depth(0.0), depth(20_480.0), depth(102_400.0)], [2, 7, 27]);
        assert_eq!([depth(5_000.0), depth(1e6), depth(1e7)], [3, 50, 183]);
        assert_eq!([pipeline.fill(2), pipeline.fill(7)], [2, 27]);
    }

    #[test]
    fn libtorrent_grows_by_block_and_then_asks_for_three_seconds() {
        let mut pipeline = Pipeline::new(PipelineRule::Libtorrent);
        assert_eq!((pipeline.depth(0.0, false), pipeline.depth(0.0, true)), (4, 1));
        for _ in 0..6 {
            (0..4).for_each(|_| pipeline.on_block());
            pipeline.on_data(65_536);
            pipeline.on_second();
        }
        assert_eq!(pipeline.depth(0.0, false), 12);
        (0..9).for_each(|_| pipeline.on_second());
        assert_eq!(pipeline.depth(0.0, false), 2);
    }
}
