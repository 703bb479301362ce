//! Series of time and clock reading, in small linked blocks.
//!
//! What a sample means depends on what is only known at the end of a flow (its clock's rate and drift, the shortest
//! delay that it ever saw, whether it is uTP at all), so raw readings are kept, nine octets each with the packet's length.
//! Short series take a block of 64 octets, long ones as many as they need.
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
/// So many lines of memory a processor waits for side by side.
const BLOCKS_AT_ONCE: usize = 16;
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

/// The samples in a block.
struct Held<'a>(&'a [u32; WORDS]);

impl Held<'_> {
    /// How many there are, in the lowest three bits; above, the upper bits of the first one's time.
    const fn state(&self) -> u32 {
        self.0[STATE]
    }

    const fn used(&self) -> usize {
        (self.state() & 7) as usize
    }

    /// Hands over the samples, with all the bits of their times.
    #[inline]
    fn each(&self, mut take: impl FnMut(Sample)) {
        let mut time_us = u64::from(self.state() >> 3) << 32 | u64::from(self.0[0]);
        let lengths = u64::from(self.0[LENGTHS]) | u64::from(self.0[LENGTHS + 1]) << 32;
        let (pairs, _) = self.0.as_chunks::<2>();
        for (&[low, raw], k) in pairs.iter().take(self.used().min(PER_BLOCK)).zip(0..) {
            let since_us = low.wrapping_sub(time_us as u32).cast_signed();
            time_us = time_us.wrapping_add_signed(i64::from(since_us));
            take(Sample { time_us, raw, length: Length((lengths >> (8 * k)) as u8) });
        }
    }

    /// The times of the samples, with all their bits.
    fn times(&self) -> impl Iterator<Item = u64> + '_ {
        let mut time_us = u64::from(self.state() >> 3) << 32 | u64::from(self.0[0]);
        self.0[..2 * self.used().min(PER_BLOCK)].iter().step_by(2).map(move |&low| {
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

/// A series of samples in the order in which they came.
#[derive(Debug)]
pub(crate) struct Series {
    /// The first and the last block.
    first: u32,
    last: u32,
    len: u32,
    /// Of the last sample, lower 32 bits in units of 256 us: enough to tell a gap.
    last_time: u32,
    /// All blocks behind the first.
    more: Option<Box<More>>,
}

/// Where blocks are. They are not chained: whoever reads a chain waits for each block to learn where the next one is.
#[derive(Debug, Default)]
struct More(Vec<u32>);

impl More {
    /// Octets of it.
    const fn bytes(&self) -> usize {
        size_of::<Self>() + self.0.capacity() * size_of::<u32>()
    }
}

impl Series {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE, len: 0, last_time: 0, more: None };

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Octets that blocks of it take, if they are full.
    pub(crate) const fn bytes(&self) -> usize {
        self.len().div_ceil(PER_BLOCK) * size_of::<Block>()
    }

    fn more(&self) -> &[u32] {
        self.more.as_ref().map_or(&[], |more| &more.0)
    }

    /// Where its block of this number is.
    fn block(&self, number: usize) -> u32 {
        number.checked_sub(1).map_or(self.first, |behind| self.more()[behind])
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
        let (mut passed, mut cut) = (0, None);
        for k in 0..series.more().len() {
            let block = self.held(series.block(k));
            if block.times().any(|time_us| time_us >= before_us) {
                break;
            }
            passed += block.state() & 7;
            if passed % 2 == 0 {
                cut = Some((k + 1, passed));
            }
        }
        let Some((blocks, count)) = cut else { return };
        (0..blocks).for_each(|k| self.release(series.block(k)));
        series.first = series.block(blocks);
        series.len = series.len.saturating_sub(count);
        if let Some(more) = &mut series.more {
            more.0.drain(..blocks);
        }
    }

    #[inline]
    fn held(&self, block: u32) -> Held<'_> {
        Held(&self.block(block).words)
    }

    /// Appends a sample.
    #[inline]
    pub(crate) fn push(&mut self, series: &mut Series, sample: Sample) {
        let time = (sample.time_us >> 8) as u32;
        let gap = u64::from(time.wrapping_sub(series.last_time).cast_signed().unsigned_abs()) << 8;
        series.last_time = time;
        series.len = series.len.saturating_add(1);
        if series.last != NONE && gap < GAP_US_MAX {
            let words = &mut self.block_mut(series.last).words;
            let used = Held(words).used();
            if used < PER_BLOCK {
                return put(words, used, &sample);
            }
        }
        self.push_block(series, &sample);
    }

    /// Appends a sample in a block of its own.
    fn push_block(&mut self, series: &mut Series, sample: &Sample) {
        let index = self.take();
        let words = &mut self.block_mut(index).words;
        // The year 2554 ends what 29 bits hold.
        words[STATE] = ((sample.time_us >> 32) as u32) << 3;
        put(words, 0, sample);
        if core::mem::replace(&mut series.last, index) == NONE {
            series.first = index;
            return;
        }
        let before = series.more.as_ref().map_or(0, |more| more.bytes());
        let more = series.more.get_or_insert_default();
        more.0.push(index);
        self.beside_bytes += more.bytes() - before;
    }

    /// Gives the blocks of a series back.
    pub(crate) fn free(&mut self, series: &mut Series) {
        let Series { first, more, .. } = core::mem::replace(series, Series::EMPTY);
        if first != NONE {
            self.release(first);
        }
        if let Some(more) = more {
            more.0.iter().for_each(|&index| self.release(index));
            self.beside_bytes -= more.bytes();
        }
    }

    /// The samples of a series, times with all their bits.
    pub(crate) fn all(&self, series: &Series) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(series.len());
        self.each(series, 1, |sample| samples.push(sample));
        samples
    }

    /// From the time of the first sample of a series to that of the last one, in microseconds.
    pub(crate) fn span_us(&self, series: &Series) -> f64 {
        if series.first == NONE {
            return 0.0;
        }
        let first = self.held(series.first).times().next();
        let last = self.held(series.last).times().last();
        first.zip(last).map_or(0.0, |(first, last)| last as f64 - first as f64)
    }

    /// Hands over the samples of a series; of each so many one.
    #[inline]
    pub(crate) fn each(&self, series: &Series, stride: usize, mut take: impl FnMut(Sample)) {
        if stride == 1 {
            return self.each_of_all(series, take);
        }
        let mut skip = 0;
        self.each_of_all(series, |sample| {
            if skip == 0 {
                take(sample);
                skip = stride;
            }
            skip -= 1;
        });
    }

    /// A loop for each block, without an iterator's state between samples: reports read every sample more than once.
    #[inline]
    fn each_of_all(&self, series: &Series, mut take: impl FnMut(Sample)) {
        if series.first != NONE {
            self.held(series.first).each(&mut take);
        }
        for several in series.more().chunks(BLOCKS_AT_ONCE) {
            let used = |&index: &u32| self.held(index).used();
            // The memory is asked for all of them before anything waits for the first.
            core::hint::black_box(several.iter().map(used).sum::<usize>());
            several.iter().for_each(|&index| self.held(index).each(&mut take));
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
