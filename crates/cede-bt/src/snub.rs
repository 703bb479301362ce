//! When a peer that owes blocks is given up for the moment.
//!
//! Sources: mainline 4.0.2: whoever has sent nothing for 30 s. libtorrent 2.0.8: a block may take as long as those before it,
//! the mean and four mean deviations, at most a minute; and without any octet for 20 s a peer is snubbed as well. A snubbed
//! peer is asked for one block at a time, the commonest first; the last block that it owes of a piece of which everything
//! else has been asked for becomes free for others, one each second, though it may still come.
//!
//! **What it leaves out.** Blocks that libtorrent has chosen and not yet asked for; here none wait.
//! **How it was validated.** The estimate by hand, below; swarms of 8 to 76 real leechers (`docs/swarms.md`).

use cede_units::{Duration, Instant};

/// When a peer is snubbed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnubRule {
    /// It has sent nothing for so long, or never anything (mainline).
    Silent {
        /// How long.
        after: Duration,
    },
    /// It owes blocks and none of them has come, whole, for so long; what it owes is asked of others. In the end game, where somebody
    /// has nothing else to do, [`DOUBTFUL_AFTER`] is enough.
    Owing {
        /// How long.
        after: Duration,
    },
    /// It is late with a block, or has sent nothing at all; what it owes is asked of others (libtorrent).
    Late {
        /// A block may take so long at most.
        block: Duration,
        /// Something must come within so long.
        anything: Duration,
    },
}

/// A block may take at least so long: it is looked at once a second (libtorrent).
const PATIENCE_MIN: Duration = Duration::from_secs(2);
/// Whoever has owed blocks for so long, and none has come, does not keep others from them at the end of a download, under
/// [`SnubRule::Owing`]. Ours: a sixth of the minute after which libtorrent gives a request up, as nothing else is left to be done.
pub const DOUBTFUL_AFTER: Duration = Duration::from_secs(10);
/// Blocks that the averages run over (libtorrent).
const GAIN: i64 = 20;
/// Averages are kept in parts of a millisecond (libtorrent).
const PARTS: i64 = 64;

/// How long a peer's blocks take.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockTimes {
    samples: i64,
    mean: i64,
    deviation: i64,
}

impl BlockTimes {
    /// A block has taken so long.
    pub const fn add(&mut self, time: Duration) {
        let sample = (time.as_nanos() / 1_000_000) as i64 * PARTS;
        let deviation = if self.samples > 0 { (self.mean - sample).abs() } else { 0 };
        if self.samples < GAIN {
            self.samples += 1;
        }
        self.mean += (sample - self.mean) / self.samples;
        if self.samples > 1 {
            self.deviation += (deviation - self.deviation) / (self.samples - 1);
        }
    }

    /// How long the next may take, and never longer than `longest`.
    #[must_use]
    pub fn patience(&self, longest: Duration) -> Duration {
        let parts = match self.samples {
            0 => return longest,
            1 => self.mean + self.mean / 5,
            _ => self.mean + 4 * self.deviation,
        };
        let seconds = (parts / PARTS + 999) / 1000;
        Duration::from_secs(seconds.max(0) as u64).min(longest).max(PATIENCE_MIN)
    }
}

/// What is waited for from one peer.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Its blocks so far.
    pub times: BlockTimes,
    /// Since when the next block is waited for.
    pub block_since: Instant,
    /// When something last came or was asked for.
    pub anything_since: Instant,
    /// Since when it owes blocks of which none has come whole. What comes in parts, or unasked, does not count.
    pub fruitless_since: Option<Instant>,
    /// It has been asked for something.
    pub was_asked: bool,
}

impl Wait {
    /// Nothing is waited for yet.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            times: BlockTimes::default(),
            block_since: now,
            anything_since: now,
            fruitless_since: None,
            was_asked: false,
        }
    }

    /// Whether blocks have been owed for longer than that without one of them coming.
    #[must_use]
    pub fn is_fruitless(&self, now: Instant, after: Duration) -> bool {
        self.fruitless_since.is_some_and(|since| now.since(since) >= after)
    }

    /// Nothing is owed any more, though not for having come. Who was doubtful by then stays so until it sends something.
    pub fn excuse(&mut self, now: Instant) {
        if !self.is_fruitless(now, DOUBTFUL_AFTER) {
            self.fruitless_since = None;
        }
    }

    /// Whether a block has come within the time that it had, under libtorrent's rule.
    #[must_use]
    pub fn is_in_time(&self, now: Instant, rule: SnubRule) -> bool {
        match rule {
            SnubRule::Late { block, .. } => now.since(self.block_since) < self.times.patience(block),
            _ => true,
        }
    }

    /// For how many reasons a peer that owes blocks is late, under libtorrent's rule: for each, one block is asked of others.
    #[must_use]
    pub fn reasons(&self, now: Instant, rule: SnubRule) -> u32 {
        let SnubRule::Late { block, anything } = rule else { return 0 };
        let late = now.since(self.block_since) > self.times.patience(block);
        let silent = now.since(self.anything_since) > anything;
        u32::from(late) + u32::from(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(60);

    #[test]
    fn patience_follows_the_blocks() {
        let mut times = BlockTimes::default();
        assert_eq!(times.patience(LONGEST), LONGEST);
        times.add(Duration::from_millis(10_000));
        assert_eq!(times.patience(LONGEST), Duration::from_secs(12));
        // Mean 11 s, deviation 2 s.
        times.add(Duration::from_millis(12_000));
        assert_eq!(times.patience(LONGEST), Duration::from_secs(19));
        (0..200).for_each(|_| times.add(Duration::from_millis(100)));
        assert_eq!(times.patience(LONGEST), PATIENCE_MIN);
        (0..200).for_each(|_| times.add(Duration::from_secs(100)));
        assert_eq!(times.patience(LONGEST), LONGEST);
    }

    #[test]
    fn a_peer_is_late_for_a_block_and_for_silence() {
        let rule = SnubRule::Late { block: LONGEST, anything: Duration::from_secs(20) };
        let mut wait = Wait::new(Instant::ZERO);
        let at = Instant::from_secs;
        assert_eq!([20, 21, 60, 61].map(|s| wait.reasons(at(s), rule)), [0, 1, 1, 2]);
        assert_eq!(wait.reasons(at(500), SnubRule::Owing { after: LONGEST }), 0);
        wait.times.add(Duration::from_secs(5));
        wait.anything_since = at(5);
        assert_eq!([6, 7, 26].map(|s| wait.reasons(at(s), rule)), [0, 1, 2]);
        assert!(wait.is_in_time(at(5), rule) && !wait.is_in_time(at(6), rule));
    }
}
