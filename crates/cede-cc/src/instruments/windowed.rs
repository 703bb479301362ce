//! The largest or smallest of what came in within a window of time or of rounds.
//!
//! Source: a monotonic deque, the exact form of the running extremum that BBR (draft-cardwell-iccrg-bbr-congestion-
//! control, section 4.1.2.1 and 4.1.1) approximates with three samples. The key (nanoseconds, rounds) is the caller's.
//!
//! *What it leaves out:* exactness beyond [`MAX_ENTRIES`] candidates: the least promising goes first.
//! *How it was validated:* against a search through all samples, below.

use alloc::collections::VecDeque;

/// How many candidates are kept.
pub const MAX_ENTRIES: usize = 64;

/// The largest value of the last `length` units of a rising key.
#[derive(Clone, Debug)]
pub struct WindowedMax {
    /// Keys rise, values fall: the front is the maximum.
    entries: VecDeque<(u64, u64)>,
    length: u64,
}

impl WindowedMax {
    /// A window of so many units of the key.
    #[must_use]
    pub fn new(length: u64) -> Self {
        Self { entries: VecDeque::with_capacity(MAX_ENTRIES), length }
    }

    /// Takes a value and answers with the largest of the window that ends at `key`.
    pub fn update(&mut self, key: u64, value: u64) -> u64 {
        self.expire(key);
        while self.entries.back().is_some_and(|&(_, old)| old <= value) {
            self.entries.pop_back();
        }
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_back();
        }
        self.entries.push_back((key, value));
        self.entries[0].1
    }

    /// The largest of the window that ended at the last update or expiry.
    #[must_use]
    pub fn get(&self) -> Option<u64> {
        self.entries.front().map(|&(_, value)| value)
    }

    /// Drops what is more than the length older than `key`.
    pub fn expire(&mut self, key: u64) {
        while self.entries.front().is_some_and(|&(at, _)| key.saturating_sub(at) > self.length) {
            self.entries.pop_front();
        }
    }
}

/// The smallest value of the last `length` units of a rising key.
#[derive(Clone, Debug)]
pub struct WindowedMin(WindowedMax);

impl WindowedMin {
    /// A window of so many units of the key.
    #[must_use]
    pub fn new(length: u64) -> Self {
        Self(WindowedMax::new(length))
    }

    /// Takes a value and answers with the smallest of the window that ends at `key`.
    pub fn update(&mut self, key: u64, value: u64) -> u64 {
        !self.0.update(key, !value)
    }

    /// The smallest of the window that ended at the last update or expiry.
    #[must_use]
    pub fn get(&self) -> Option<u64> {
        self.0.get().map(|inverted| !inverted)
    }

    /// Drops what is more than the length older than `key`.
    pub fn expire(&mut self, key: u64) {
        self.0.expire(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use cede_units::Stream;

    #[test]
    fn both_agree_with_a_search_through_all_samples() {
        let mut random = Stream::named(1, "windowed");
        let (mut largest, mut smallest) = (WindowedMax::new(20), WindowedMin::new(20));
        let mut all: Vec<(u64, u64)> = Vec::new();
        let mut key = 0;
        for _ in 0..5000 {
            key += random.below(4);
            let value = random.below(1000);
            all.push((key, value));
            let live = || all.iter().filter(|&&(at, _)| key - at <= 20).map(|&(_, v)| v);
            assert_eq!(Some(largest.update(key, value)), live().max());
            assert_eq!(Some(smallest.update(key, value)), live().min());
        }
    }
}
