//! Series of time and clock reading, in small linked blocks.
//!
//! What a sample means depends on what is only known at the end of a flow (its clock's rate and drift, the shortest
//! delay that it ever saw, whether it is uTP at all), so raw readings are kept, nine octets each with the packet's length.
//! Short series take a block of 64 octets, long ones a chain, the blocks of which come by runs.
//!
//! **How it was validated.** Random series against vectors (below).

use crate::pool::{Block, NONE, Pool, WORDS};

const PER_BLOCK: usize = 6;
/// Where the lengths stand in a block, an octet each, and how many samples there are with the upper bits of the first
/// one's time.
const LENGTHS: usize = 2 * PER_BLOCK;
const STATE: usize = LENGTHS + 2;
/// Lengths are kept in units of so many octets.
const LENGTH_UNIT_BYTES: u32 = 8;
/// 256 octets: memory that is read on from where it was read before is fetched ahead. More are gone from the cache before they are filled.
const RUN_BLOCKS_MAX: u32 = 4;
/// Beyond this the difference of two times in microseconds no longer fits 32 bits with a sign.
const GAP_US_MAX: u64 = 1 << 31;

/// A raw sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sample {
    /// Capture time in microseconds since the capture's epoch.
    pub time_us: u64,
    /// A clock reading or a difference of clocks, whatever the series is for.
    pub raw: u32,
    /// The length of its packet.
    pub length: Length,
}

/// The length of a packet on the wire, to eight octets; the longest stands for all beyond 2,040.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Length(u8);

impl Length {
    #[inline]
    pub(crate) fn of(bytes: u32) -> Self {
        Self((bytes / LENGTH_UNIT_BYTES).min(u8::MAX.into()) as u8)
    }

    pub(crate) fn bytes(self) -> f64 {
        f64::from(u32::from(self.0) * LENGTH_UNIT_BYTES)
    }

    pub(crate) const fn from_units(units: u8) -> Self {
        Self(units)
    }

    pub(crate) const fn units(self) -> u8 {
        self.0
    }
}

impl Block {
    /// How many samples there are, in the lowest three bits; above, the upper bits of the first one's time.
    const fn state(&self) -> u32 {
        self.words[STATE]
    }

    const fn used(&self) -> usize {
        (self.state() & 7) as usize
    }

    /// Hands over the samples, with all the bits of their times.
    #[inline]
    fn each(&self, mut take: impl FnMut(Sample)) {
        let mut time_us = u64::from(self.state() >> 3) << 32 | u64::from(self.words[0]);
        let lengths = u64::from(self.words[LENGTHS]) | u64::from(self.words[LENGTHS + 1]) << 32;
        let (pairs, _) = self.words.as_chunks::<2>();
        for (&[low, raw], k) in pairs.iter().take(self.used().min(PER_BLOCK)).zip(0..) {
            let since_us = low.wrapping_sub(time_us as u32).cast_signed();
            time_us = time_us.wrapping_add_signed(i64::from(since_us));
            take(Sample { time_us, raw, length: Length((lengths >> (8 * k)) as u8) });
        }
    }

    /// The times of the samples, with all their bits.
    fn times(&self) -> impl Iterator<Item = u64> + '_ {
        let mut time_us = u64::from(self.state() >> 3) << 32 | u64::from(self.words[0]);
        self.words[..2 * self.used().min(PER_BLOCK)].iter().step_by(2).map(move |&low| {
            time_us = time_us.wrapping_add_signed(i64::from(low.wrapping_sub(time_us as u32).cast_signed()));
            time_us
        })
    }
}

/// Puts a sample behind the `used` ones of a block.
#[inline]
fn put(words: &mut [u32; WORDS], used: usize, sample: &Sample) {
    (words[2 * used], words[2 * used + 1]) = (sample.time_us as u32, sample.raw);
    words[LENGTHS + used / 4] |= u32::from(sample.length.0) << (8 * (used % 4));
    words[STATE] += 1;
}

/// A series of samples in the order in which they came. Behind its last block there may be empty ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series {
    first: u32,
    last: u32,
    len: u32,
    /// Of the last sample, lower 32 bits in units of 256 us: enough to tell a gap.
    last_time: u32,
}

impl Series {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE, len: 0, last_time: 0 };

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    /// How many blocks are taken at once: a quarter of what there is, so that empty ones are few.
    fn run_blocks(&self) -> u32 {
        (self.len / (4 * PER_BLOCK as u32)).clamp(1, RUN_BLOCKS_MAX)
    }

    /// Octets that blocks of it take, if they are full.
    pub(crate) const fn bytes(&self) -> usize {
        self.len().div_ceil(PER_BLOCK) * size_of::<Block>()
    }
}

impl Pool {
    /// From now on samples of a series that come sooner than this after the last one are left out.
    pub(crate) fn set_spacing_us(&mut self, spacing_us: u32) {
        self.spacing = spacing_us >> 8;
    }

    /// Samples that were left out.
    pub(crate) const fn thinned(&self) -> u64 {
        self.thinned
    }

    /// Whether a sample is to be kept; one that is not is counted.
    #[inline]
    pub(crate) fn wants(&mut self, series: &Series, time_us: u64) -> bool {
        if self.spacing == 0 || series.len == 0 {
            return true;
        }
        let gap = ((time_us >> 8) as u32).wrapping_sub(series.last_time).cast_signed();
        let wants = gap < 0 || gap.unsigned_abs() >= self.spacing;
        self.thinned += u64::from(!wants);
        wants
    }

    /// Gives up the front of a series whose samples are all older than a time. The number of samples stays even or odd,
    /// so that pairs stay pairs, and the last block stays.
    pub(crate) fn trim(&mut self, series: &mut Series, before_us: u64) {
        let (mut index, mut passed, mut cut) = (series.first, 0, None);
        while index != NONE && index != series.last {
            let block = *self.block(index);
            if block.times().any(|time_us| time_us >= before_us) {
                break;
            }
            passed += block.state() & 7;
            if passed % 2 == 0 {
                cut = Some((index, passed));
            }
            index = block.next;
        }
        let Some((last, count)) = cut else { return };
        let rest = self.block(last).next;
        self.release(series.first, last);
        (series.first, series.len) = (rest, series.len.saturating_sub(count));
    }

    /// Appends a sample.
    #[inline]
    pub(crate) fn push(&mut self, series: &mut Series, sample: Sample) {
        let time = (sample.time_us >> 8) as u32;
        let gap = u64::from(time.wrapping_sub(series.last_time).cast_signed().unsigned_abs()) << 8;
        series.last_time = time;
        series.len = series.len.saturating_add(1);
        if series.last != NONE && gap < GAP_US_MAX {
            let block = self.block_mut(series.last);
            let used = block.used();
            if used < PER_BLOCK {
                return put(&mut block.words, used, &sample);
            }
        }
        let mut words = [0; WORDS];
        // The year 2554 ends what 29 bits hold.
        words[STATE] = ((sample.time_us >> 32) as u32) << 3;
        put(&mut words, 0, &sample);
        let last = (series.last != NONE).then_some(series.last);
        let spare = last.map_or(NONE, |last| self.block(last).next);
        let index = if spare == NONE { self.take_run(words, series.run_blocks()) } else { spare };
        self.block_mut(index).words = words;
        match last {
            None => series.first = index,
            Some(last) => self.block_mut(last).next = index,
        }
        series.last = index;
    }

    /// Gives the blocks of a series back.
    pub(crate) fn free(&mut self, series: &mut Series) {
        self.release_all(series.first);
        *series = Series::EMPTY;
    }

    /// The samples of a series, times with all their bits.
    pub(crate) fn all(&self, series: &Series) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(series.len());
        self.each(series, 1, |sample| samples.push(sample));
        samples
    }

    /// From the time of the first sample of a series to that of the last one, in microseconds.
    pub(crate) fn span_us(&self, series: &Series) -> f64 {
        let first = || self.block(series.first).times().next();
        let last = || self.block(series.last).times().last();
        let is_empty = series.first == NONE;
        let ends = if is_empty { None } else { first().zip(last()) };
        ends.map_or(0.0, |(first, last)| last as f64 - first as f64)
    }

    /// Hands over the samples of a series; of each so many one. A loop for each block, without an iterator's state between
    /// samples: reports read every sample more than once.
    #[inline]
    pub(crate) fn each(&self, series: &Series, stride: usize, mut take: impl FnMut(Sample)) {
        if stride == 1 {
            return self.chain(series.first).for_each(|block| block.each(&mut take));
        }
        let mut skip = 0;
        for block in self.chain(series.first) {
            block.each(|sample| {
                if skip == 0 {
                    take(sample);
                    skip = stride;
                }
                skip -= 1;
            });
        }
    }

    /// Leaves out what comes sooner after the sample before it than samples may now; pairs are kept or left out as such.
    pub(crate) fn thin(&mut self, series: &mut Series, in_pairs: bool) {
        let samples = self.all(series);
        self.free(series);
        for group in samples.chunks(1 + usize::from(in_pairs)) {
            if self.wants(series, group[0].time_us) {
                group.iter().for_each(|&sample| self.push(series, sample));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    #[test]
    fn series_come_back_as_they_went_in_and_blocks_are_used_again() {
        let mut stream = Stream::named(1, "samples");
        let mut pool = Pool::default();
        let mut series = [Series::EMPTY; 5];
        let mut kept: [Vec<Sample>; 5] = Default::default();
        let mut time_us = 1_700_000_000_000_000_u64;
        for step in 0..20_000 {
            // Out of order by a little, and gaps of an hour now and then.
            time_us = time_us.wrapping_add_signed((stream.below(5_000) as i64) - 500);
            if stream.below(500) == 0 {
                time_us += 3_600_000_000;
            }
            let which = stream.below(5) as usize;
            let sample = Sample { time_us, raw: step, length: Length::of(step) };
            pool.push(&mut series[which], sample);
            kept[which].push(sample);
            if stream.below(2_000) == 0 {
                pool.free(&mut series[which]);
                kept[which].clear();
            }
        }
        for (series, kept) in series.iter().zip(&kept) {
            assert!(pool.all(series).iter().eq(kept));
            for stride in [1, 3] {
                let mut handed = Vec::new();
                pool.each(series, stride, |sample| handed.push(sample));
                assert!(handed.iter().eq(kept.iter().step_by(stride)));
            }
        }
        for (series, kept) in series.iter_mut().zip(&kept) {
            pool.trim(series, time_us - 20_000_000);
            let left = pool.all(series);
            assert!(
                kept.ends_with(&left)
                    && (kept.len() - left.len()).is_multiple_of(2)
                    && left.len() == series.len()
            );
            let old = left.iter().take_while(|sample| sample.time_us < time_us - 20_000_000).count();
            assert!(old < 4 * PER_BLOCK, "{old} old ones of {}", left.len());
        }
        let most = pool.bytes();
        series.iter_mut().for_each(|series| pool.free(series));
        assert!(most > 0 && pool.bytes() == 0);
    }
}
