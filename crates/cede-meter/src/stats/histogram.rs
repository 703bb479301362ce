//! Delays counted in buckets that are the same everywhere, so that counts from any number of captures and machines can be
//! added without loss.
//!
//! Source: the layout of HdrHistogram (Tene): whole microseconds up to 32, then 32 buckets for each doubling, so that no
//! bucket is wider than 1/32 of what is in it.
//!
//! **What it leaves out.** Values past 2^63 us count as the last bucket's.
//!
//! **How it was validated.** Every bucket's ends, quantiles against sorted values, merges in any order (below).

use std::collections::BTreeMap;

const SUB_BITS: u32 = 5;
const SUBS: u64 = 1 << SUB_BITS;

/// Counts of delays by bucket.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    counts: BTreeMap<u16, u64>,
}

/// A bucket with something in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// The least delay that belongs here, in microseconds.
    pub low_us: u64,
    /// The least delay that no longer does.
    pub high_us: u64,
    /// How many there are.
    pub count: u64,
}

impl Histogram {
    /// Counts a delay in microseconds, rounded to a whole one.
    pub fn add(&mut self, queue_us: f64) {
        *self.counts.entry(index(queue_us.max(0.0).round() as u64)).or_default() += 1;
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        for (&index, &count) in &other.counts {
            *self.counts.entry(index).or_default() += count;
        }
    }

    /// The buckets with something in them, the shortest delays first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts.iter().map(|(&index, &count)| {
            let (low_us, high_us) = bounds(index);
            Bucket { low_us, high_us, count }
        })
    }

    /// Delays counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The bucket that holds the delay which this share of all do not exceed; `None` where there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Bucket> {
        let rank = ((share * self.count() as f64).ceil() as u64).max(1);
        let mut passed = 0;
        self.buckets().find(|bucket| {
            passed += bucket.count;
            passed >= rank
        })
    }
}

fn index(us: u64) -> u16 {
    let us = us.min(i64::MAX as u64);
    if us < SUBS {
        return us as u16;
    }
    let shift = us.ilog2() - SUB_BITS;
    // The bit at the front says the doubling, the ones behind it which of its parts.
    ((u64::from(shift) << SUB_BITS) + (us >> shift)) as u16
}

fn bounds(index: u16) -> (u64, u64) {
    let index = u64::from(index);
    if index < SUBS {
        return (index, index + 1);
    }
    let shift = (index >> SUB_BITS) - 1;
    let part = (index & (SUBS - 1)) + SUBS;
    (part << shift, (part + 1) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    #[test]
    fn buckets_touch_each_other_and_are_narrow() {
        let mut end = 0;
        for at in 0..index(1 << 40) {
            let (low, high) = bounds(at);
            assert_eq!(low, end, "bucket {at}");
            assert_eq!((index(low), index(high - 1), index(high)), (at, at, at + 1));
            assert!(high - low == 1 || (high - low) * SUBS <= low);
            end = high;
        }
    }

    #[test]
    fn merges_are_exact_and_quantiles_lie_in_their_buckets() {
        let mut stream = Stream::named(5, "histogram");
        let mut values: Vec<f64> = (0..5_000).map(|_| stream.exponential(200_000.0)).collect();
        let (mut whole, mut parts) = (Histogram::default(), vec![Histogram::default(); 7]);
        for (k, &value) in values.iter().enumerate() {
            whole.add(value);
            parts[k % 7].add(value);
        }
        let merged = parts.iter().rev().fold(Histogram::default(), |mut all, part| {
            all.merge(part);
            all
        });
        assert_eq!(merged, whole);
        values.sort_by(f64::total_cmp);
        for share in [0.01, 0.5, 0.95, 0.99, 1.0] {
            let exact = values[(share * 5_000.0) as usize - 1].round() as u64;
            let bucket = whole.quantile(share).unwrap();
            assert!((bucket.low_us..bucket.high_us).contains(&exact), "{share}: {exact}, {bucket:?}");
        }
        assert_eq!((whole.count(), Histogram::default().quantile(0.5)), (5_000, None));
    }
}
