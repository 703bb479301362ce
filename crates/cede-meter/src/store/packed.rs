//! Samples in a block of 64 octets: up to ten whose steps are small, or six of any.
//!
//! **Narrow** blocks have the first time and the first two readings in full; each other time as what has passed since the one
//! before, in 16 bits, and each other reading as its difference, in 16 bits with a sign, from the one two samples before: of pairs,
//! both parts are small. **Wide** ones have readings and the lower 32 bits of times in full. Both have an octet for each packet's
//! length. A block begins narrow, and becomes wide where a sample does not fit into it and six have room.
//!
//! **How it was validated.** Random series against vectors (`samples.rs`).

use crate::packet::length::Length;
use crate::store::pool::WORDS;
use crate::store::sample::Sample;

/// What a narrow and a wide block hold.
pub(crate) const NARROW: usize = 10;
pub(crate) const WIDE: usize = 6;
/// How many samples there are, in the lowest four bits; whether it is wide; above, the upper bits of the first time.
const STATE: usize = WORDS - 1;
const COUNT: u32 = 15;
const IS_WIDE: u32 = 16;
const TIME_SHIFT: u32 = 5;
/// Wide: an octet for each length.
const LENGTHS: usize = 2 * WIDE;
/// Narrow: the second reading, the steps to the third sample and all others, and an octet for each length; the upper half of
/// the last of these words is the time that passed to the second sample.
const SECOND: usize = 2;
const STEPS: usize = 3;
const LENGTHS_NARROW: usize = STEPS + NARROW - 2;
const GAP: usize = STATE - 1;
/// Beyond this the difference of two times in microseconds no longer fits 32 bits with a sign.
const GAP_US_MAX: u64 = 1 << 31;

type Words = [u32; WORDS];

/// The sample that came last in a series, and the reading of the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub time_us: u64,
    raws: [u32; 2],
}

impl Last {
    pub(crate) const NONE: Self = Self { time_us: 0, raws: [0; 2] };

    #[inline]
    pub(crate) const fn note(&mut self, sample: &Sample) {
        *self = Self { time_us: sample.time_us, raws: [self.raws[1], sample.raw] };
    }

    /// What passed since then, and the difference of readings, where both are small.
    #[inline]
    fn step(&self, sample: &Sample) -> Option<(u16, i16)> {
        let since = sample.time_us.wrapping_sub(self.time_us);
        let step = sample.raw.wrapping_sub(self.raws[0]).cast_signed();
        u16::try_from(since).ok().zip(i16::try_from(step).ok())
    }
}

/// What is in a block.
pub(crate) struct Held<'a>(pub &'a Words);

impl Held<'_> {
    pub(crate) const fn used(&self) -> usize {
        (self.0[STATE] & COUNT) as usize
    }

    const fn is_wide(&self) -> bool {
        self.0[STATE] & IS_WIDE != 0
    }

    const fn first_us(&self) -> u64 {
        ((self.0[STATE] >> TIME_SHIFT) as u64) << 32 | self.0[0] as u64
    }

    /// The samples, with all the bits of their times, put into `room`.
    // As many steps for a block that is not full: the loops have no branches, and what is behind the last sample is not shown.
    #[inline]
    pub(crate) fn samples<'a>(&self, room: &'a mut [Sample; NARROW]) -> &'a [Sample] {
        if self.is_wide() {
            self.unpack_wide(room);
        } else {
            self.unpack_narrow(room);
        }
        &room[..self.used().min(NARROW)]
    }

    #[inline]
    fn unpack_wide(&self, room: &mut [Sample; NARROW]) {
        let mut time_us = self.first_us();
        let lengths = u64::from(self.0[LENGTHS]) | u64::from(self.0[LENGTHS + 1]) << 32;
        let (pairs, _) = self.0.as_chunks::<2>();
        for ((sample, &[low, raw]), k) in room.iter_mut().zip(&pairs[..WIDE]).zip(0..) {
            let since_us = low.wrapping_sub(time_us as u32).cast_signed();
            time_us = time_us.wrapping_add_signed(i64::from(since_us));
            *sample = Sample { time_us, raw, length: Length::from_units((lengths >> (8 * k)) as u8) };
        }
    }

    #[inline]
    fn unpack_narrow(&self, room: &mut [Sample; NARROW]) {
        let words = self.0;
        let length = |k: usize| Length::from_units((words[LENGTHS_NARROW + k / 4] >> (8 * (k % 4))) as u8);
        let (mut time_us, mut raws) = (self.first_us(), [words[1], words[SECOND]]);
        room[0] = Sample { time_us, raw: raws[0], length: length(0) };
        time_us += u64::from(words[GAP] >> 16);
        room[1] = Sample { time_us, raw: raws[1], length: length(1) };
        for k in 2..NARROW {
            let step = words[STEPS + k - 2];
            time_us += u64::from(step as u16);
            let raw = raws[0].wrapping_add_signed(((step >> 16) as u16).cast_signed().into());
            raws = [raws[1], raw];
            room[k] = Sample { time_us, raw, length: length(k) };
        }
    }

    /// Hands over the samples.
    #[inline]
    pub(crate) fn each(&self, take: impl FnMut(Sample)) {
        let mut room = [Sample::default(); NARROW];
        self.samples(&mut room).iter().copied().for_each(take);
    }

    /// The times of the first and the last sample.
    pub(crate) fn ends_us(&self) -> (u64, u64) {
        let mut last = self.first_us();
        self.each(|sample| last = sample.time_us);
        (self.first_us(), last)
    }

    /// Whether any sample is not older than that.
    pub(crate) fn reaches(&self, time_us: u64) -> bool {
        let mut reaches = false;
        self.each(|sample| reaches |= sample.time_us >= time_us);
        reaches
    }
}

/// Puts the first sample into a block.
pub(crate) fn begin(words: &mut Words, sample: &Sample) {
    *words = [0; WORDS];
    words[0] = sample.time_us as u32;
    words[1] = sample.raw;
    words[LENGTHS_NARROW] = sample.length.units().into();
    words[STATE] = ((sample.time_us >> 32) as u32) << TIME_SHIFT | 1;
}

/// Puts a sample into a block that has some, behind `last`; `false` where it has no room.
#[inline(always)]
pub(crate) fn put(words: &mut Words, last: &Last, sample: &Sample) -> bool {
    let used = Held(words).used();
    if !Held(words).is_wide()
        && used < NARROW
        && let Some(step) = last.step(sample)
    {
        put_narrow(words, used, step, sample);
        return true;
    }
    put_far(words, used, last, sample)
}

#[inline(never)]
fn put_far(words: &mut Words, used: usize, last: &Last, sample: &Sample) -> bool {
    let has_room = used < WIDE && sample.time_us.abs_diff(last.time_us) < GAP_US_MAX;
    if has_room {
        if !Held(words).is_wide() {
            widen(words);
        }
        put_wide(words, used, sample);
    }
    has_room
}

#[inline]
fn put_narrow(words: &mut Words, used: usize, (since_us, step): (u16, i16), sample: &Sample) {
    if used == 1 {
        (words[SECOND], words[GAP]) = (sample.raw, words[GAP] | u32::from(since_us) << 16);
    } else {
        words[STEPS + used - 2] = u32::from(since_us) | u32::from(step.cast_unsigned()) << 16;
    }
    words[LENGTHS_NARROW + used / 4] |= u32::from(sample.length.units()) << (8 * (used % 4));
    words[STATE] += 1;
}

fn put_wide(words: &mut Words, used: usize, sample: &Sample) {
    (words[2 * used], words[2 * used + 1]) = (sample.time_us as u32, sample.raw);
    words[LENGTHS + used / 4] |= u32::from(sample.length.units()) << (8 * (used % 4));
    words[STATE] += 1;
}

/// Takes the first sample out of a block that has others.
pub(crate) fn drop_first(words: &mut Words) {
    let before = *words;
    let mut last = Last::NONE;
    let mut number = 0;
    Held(&before).each(|sample| {
        match number {
            0 => {}
            1 => begin(words, &sample),
            // What had room behind more samples has room behind fewer.
            _ => {
                let is_put = put(words, &last, &sample);
                debug_assert!(is_put);
            }
        }
        last.note(&sample);
        number += 1;
    });
}

/// Gives the samples of a narrow block, no more than a wide one has room for, the other form.
fn widen(words: &mut Words) {
    let narrow = *words;
    let state = narrow[STATE] & !COUNT | IS_WIDE;
    *words = [0; WORDS];
    words[STATE] = state;
    let mut used = 0;
    Held(&narrow).each(|sample| {
        put_wide(words, used, &sample);
        used += 1;
    });
}
