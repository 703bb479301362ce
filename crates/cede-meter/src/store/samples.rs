//! Series of times and clock readings, in small blocks.
//!
//! What a sample means depends on what is only known at the end of a flow (its clock's rate and drift, the shortest
//! delay that it ever saw, whether it is uTP at all), so raw readings are kept, in blocks of 64 octets: some six octets each with the
//! packet's length where packets follow each other closely, else eleven.
//!
//! **How it was validated.** Random series against vectors (below).

use crate::store::low::Low;
use crate::store::packed::{self, Held, Last, NARROW};
use crate::store::pool::{Block, NONE, Pool};
use crate::store::sample::Sample;

/// So many lines of memory a processor waits for side by side.
const BLOCKS_AT_ONCE: usize = 16;

/// A series of samples in the order in which they came.
#[derive(Debug)]
pub(crate) struct Series {
    /// The first and the last block.
    first: u32,
    last: u32,
    len: u32,
    newest: Last,
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
    /// The first and the last block; [`NONE`] where there is none.
    pub(crate) const fn ends(&self) -> [u32; 2] {
        [self.first, self.last]
    }

    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE, len: 0, newest: Last::NONE, more: None };

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether its newest sample is so much older than a time, or younger: then the clock was set back.
    #[inline]
    pub(crate) const fn is_silent_for(&self, time_us: u64, spacing_us: u64) -> bool {
        self.len == 0 || time_us.wrapping_sub(self.newest.time_us) >= spacing_us
    }

    /// Octets that blocks of it take.
    pub(crate) fn bytes(&self) -> usize {
        (usize::from(self.first != NONE) + self.more().len()) * size_of::<Block>()
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
        let gap = ((time_us >> 8) as u32).wrapping_sub((series.newest.time_us >> 8) as u32).cast_signed();
        let wants = gap < 0 || gap.unsigned_abs() >= self.spacing;
        self.thinned += u64::from(!wants);
        wants
    }

    /// As [`Self::wants`], of a packet's own delay: one that is shorter than all before it is kept, too.
    #[inline]
    pub(crate) fn wants_or_is_low(
        &mut self,
        series: &Series,
        sample: &Sample,
        low: &mut Low,
        is_tcp: bool,
    ) -> bool {
        if self.spacing == 0 {
            return true;
        }
        let wants = self.wants(series, sample.time_us);
        let is_low = low.note(sample, is_tcp, series.len(), wants);
        self.thinned -= u64::from(is_low);
        wants || is_low
    }

    /// Gives up the front of a series, block by block, whose samples are all older than a time. The number of samples stays
    /// even or odd, so that pairs stay pairs: where the blocks hold an odd number, the sample behind them goes as well. The
    /// last block stays.
    pub(crate) fn trim(&mut self, series: &mut Series, before_us: u64) {
        let (mut passed, mut cut) = (0, None);
        for k in 0..series.more().len() {
            let block = self.held(series.block(k));
            if block.reaches(before_us) {
                break;
            }
            passed += block.used() as u32;
            if passed.is_multiple_of(2) || self.held(series.block(k + 1)).used() > 1 {
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
        if !count.is_multiple_of(2) {
            packed::drop_first(&mut self.block_mut(series.first).words);
            series.len = series.len.saturating_sub(1);
        }
    }

    #[inline]
    fn held(&self, block: u32) -> Held<'_> {
        Held(&self.block(block).words)
    }

    /// Appends a sample.
    #[inline(always)]
    pub(crate) fn push(&mut self, series: &mut Series, sample: Sample) {
        let is_put = series.last != NONE
            && packed::put(&mut self.block_mut(series.last).words, &series.newest, &sample);
        if !is_put {
            self.push_block(series, &sample);
        }
        series.len = series.len.saturating_add(1);
        series.newest.note(&sample);
    }

    /// Appends a sample in a block of its own.
    #[inline(never)]
    fn push_block(&mut self, series: &mut Series, sample: &Sample) {
        let index = self.take();
        packed::begin(&mut self.block_mut(index).words, sample);
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

    /// The first samples of a series, in whole blocks: until there are so many of them.
    pub(crate) fn first(&self, series: &Series, count: usize) -> Vec<Sample> {
        let (mut samples, mut room) = (Vec::with_capacity(count + NARROW), [Sample::default(); NARROW]);
        let blocks = [series.first].into_iter().chain(series.more().iter().copied());
        for index in blocks.filter(|&index| index != NONE) {
            if samples.len() >= count {
                break;
            }
            samples.extend_from_slice(self.held(index).samples(&mut room));
        }
        samples
    }

    /// From the time of the first sample of a series to that of the last one, in microseconds.
    pub(crate) fn span_us(&self, series: &Series) -> f64 {
        if series.first == NONE {
            return 0.0;
        }
        let ends = [series.first, series.last].map(|index| self.held(index).ends_us());
        ends[1].1 as f64 - ends[0].0 as f64
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

    #[inline]
    fn each_of_all(&self, series: &Series, mut take: impl FnMut(Sample)) {
        self.each_block(series, |samples| samples.iter().copied().for_each(&mut take));
    }

    /// Hands over the samples of a series, block by block.
    #[inline]
    pub(crate) fn each_block(&self, series: &Series, mut take: impl FnMut(&[Sample])) {
        let mut room = [Sample::default(); NARROW];
        if series.first != NONE {
            take(self.held(series.first).samples(&mut room));
        }
        for several in series.more().chunks(BLOCKS_AT_ONCE) {
            let used = |&index: &u32| self.held(index).used();
            // The memory is asked for all of them before anything waits for the first.
            core::hint::black_box(several.iter().map(used).sum::<usize>());
            several.iter().for_each(|&index| take(self.held(index).samples(&mut room)));
        }
    }

    /// As [`Self::thin`], of packets' own delays, the shortest of which stay.
    pub(crate) fn thin_direct(&mut self, series: &mut Series, is_tcp: bool) -> Low {
        let (samples, mut low) = (self.all(series), Low::default());
        self.free(series);
        for sample in samples {
            if self.wants_or_is_low(series, &sample, &mut low, is_tcp) {
                self.push(series, sample);
            }
        }
        low
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
    use crate::packet::length::Length;
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
            // Readings that jump, too, to make blocks wide.
            let raw = if stream.below(30) == 0 { stream.next_u32() } else { step };
            let sample = Sample { time_us, raw, length: Length::of(step) };
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
            assert!(old < 40, "{old} old ones of {}", left.len());
        }
        let most = pool.bytes();
        series.iter_mut().for_each(|series| pool.free(series));
        assert!(most > 0 && pool.bytes() == 0);
    }
}
