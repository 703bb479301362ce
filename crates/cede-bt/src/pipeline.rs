//! How many requests a peer has to answer at a time.
//!
//! Sources: mainline 4.0.2: `2 + floor(4 rate / 16384)`, damped beyond 50; libtorrent 2.0.8: four to begin with, one
//! more for each block while the rate grows, and then three seconds' worth, by an average that each second moves a fifth of the way.
//!
//! **What it leaves out.** libtorrent's adjustment by disk queue.
//! **How it was validated.** The values of swarm experiments with these clients at 0, 20 and 100 KiB/s, below.

use crate::geometry::BLOCK_BYTES;
use crate::wire::BlockRef;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// libtorrent's request queue in seconds of the present rate.
const QUEUE_S: u64 = 3;
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
#[derive(Clone, Debug)]
pub struct Pipeline {
    rule: PipelineRule,
    slow_start: bool,
    queue: u32,
    /// Octets of the present second and of the one before.
    second: [u64; 2],
    /// The rate in octets per second, averaged over seconds.
    average: u64,
    /// What the peer is to be asked for next: whole pieces are taken at once, and asked for as fast as it sends.
    planned: VecDeque<BlockRef>,
}

impl Pipeline {
    /// A pipeline before the first request.
    #[must_use]
    pub const fn new(rule: PipelineRule) -> Self {
        Self { rule, slow_start: true, queue: INITIAL, second: [0; 2], average: 0, planned: VecDeque::new() }
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

    /// The rate in octets per second, averaged over seconds.
    #[must_use]
    pub const fn average(&self) -> u64 {
        self.average
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

    /// These blocks are taken for the peer, to be asked for one after the other.
    pub fn plan(&mut self, blocks: impl IntoIterator<Item = BlockRef>) {
        self.planned.extend(blocks);
    }

    /// The next of them.
    pub fn next_planned(&mut self) -> Option<BlockRef> {
        self.planned.pop_front()
    }

    /// How many of them are of this piece.
    #[must_use]
    pub fn planned_of(&self, piece: u32) -> usize {
        self.planned.iter().filter(|block| block.piece == piece).count()
    }

    /// Those of this piece do not count any more.
    pub fn leave_piece(&mut self, piece: u32) {
        self.planned.retain(|block| block.piece != piece);
    }

    /// All of them, which nobody will be asked for.
    pub fn drop_plans(&mut self) -> Vec<BlockRef> {
        core::mem::take(&mut self.planned).into()
    }

    /// Octets of a block arrived.
    pub const fn on_data(&mut self, bytes: u32) {
        self.second[0] += bytes as u64;
    }

    /// The peer is late, or has nothing that is wanted.
    pub const fn end_slow_start(&mut self) {
        self.slow_start = false;
    }

    /// A block is whole.
    pub const fn on_block(&mut self) {
        if self.slow_start && self.queue < MAX {
            self.queue += 1;
        }
    }

    /// A second has passed. Of who chokes us nothing can be expected.
    pub fn on_second(&mut self, choked: bool) {
        let [present, before] = self.second;
        self.second = [0, present];
        // In whole octets, each part rounded down by itself, as there.
        self.average = self.average * 4 / 5 + present / 5;
        if self.slow_start && !choked && before > 0 && present <= before + GROWTH_BYTES {
            self.slow_start = false;
        }
        if !self.slow_start {
            let wanted = QUEUE_S * self.average / u64::from(BLOCK_BYTES);
            self.queue = wanted.clamp(u64::from(MIN), u64::from(MAX)) as u32;
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
        let mut second = |bytes: u32, choked: bool| {
            pipeline.on_data(bytes);
            pipeline.on_second(choked);
            (pipeline.depth(0.0, false), pipeline.average())
        };
        assert_eq!(second(16_384, false), (4, 3_276));
        assert_eq!(second(0, true), (4, 2_620), "who chokes us is not judged by that");
        assert_eq!(second(16_384, false), (4, 5_372));
        assert_eq!(second(21_385, false).0, 4, "it brings more by more than 5,000 octets");
        // No more than that: 3 s of the average, in blocks.
        assert_eq!(second(26_385, false), (2, 12_136));
        for _ in 0..20 {
            second(65_536, false);
        }
        assert_eq!(second(65_536, false), (11, 65_040));
        for _ in 0..20 {
            second(0, false);
        }
        assert_eq!(second(0, false).0, 2);
    }

    #[test]
    fn each_block_adds_a_request_while_the_rate_grows() {
        let mut pipeline = Pipeline::new(PipelineRule::Libtorrent);
        assert_eq!((pipeline.depth(0.0, false), pipeline.depth(0.0, true)), (4, 1));
        (0..3).for_each(|_| pipeline.on_block());
        assert_eq!(pipeline.depth(0.0, false), 7);
        pipeline.end_slow_start();
        pipeline.on_block();
        pipeline.on_second(false);
        assert_eq!(pipeline.depth(0.0, false), 2);
    }
}
