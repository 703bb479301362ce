//! Which packets are looked at, and what became of the others.

use crate::packet::filter::Filter;
use crate::packet::frame::{self, Mute, Seen};
use cede_wire::link::LinkType;
use core::ops::Range;

/// Which packets are looked at.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Packets before this time after the first packet, and at or after the other, are left out.
    pub since_ns: u64,
    /// See `since_ns`.
    pub until_ns: u64,
    /// The time of the first packet in nanoseconds since the capture's epoch, where it is not the first one handed in.
    pub origin_ns: Option<u64>,
    /// Packets outside that time are looked at all the same: whoever shows only what is inside it learns from them. The meter does.
    pub learns_outside: bool,
    /// Only packets that pass, if any.
    pub filter: Option<Filter>,
}

impl Selection {
    /// From when until when packets are asked for, in microseconds since the capture's epoch; `None` where all are.
    pub(crate) fn within_us(&self, first_ns: Option<u64>) -> Option<Range<u64>> {
        let is_all = (self.since_ns, self.until_ns) == (0, u64::MAX);
        let origin_ns = self.origin_ns.or(first_ns).filter(|_| !is_all)?;
        // As samples have it: what came with the first of that time is in.
        let at_us = |since_ns: u64| origin_ns.saturating_add(since_ns) / 1000;
        Some(at_us(self.since_ns)..at_us(self.until_ns))
    }
}

impl Default for Selection {
    /// All, from the first to the last.
    fn default() -> Self {
        Self { since_ns: 0, until_ns: u64::MAX, origin_ns: None, learns_outside: false, filter: None }
    }
}

/// What became of the packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets handed in.
    pub packets: u64,
    /// Octets of them on the wire.
    pub bytes: u64,
    /// Packets outside the time asked for.
    pub outside: u64,
    /// TCP and UDP that does not pass the filter.
    pub filtered: u64,
    /// Neither TCP nor UDP over IP.
    pub other: u64,
    /// Later parts of fragmented packets.
    pub fragments: u64,
    /// Cut off within the headers, by the meter also before their stamps, or with headers that make no sense.
    pub cut: u64,
    /// Of link types that are not read.
    pub unread: u64,
    /// The last such link type.
    pub unknown_link_type: Option<u16>,
    /// Without a time.
    pub timeless: u64,
    /// Seen at another interface of the machine that captured, where they say more ([`crate::Meter`] keeps one view of each).
    pub seen_twice: u64,
    /// Seen before a queue when the capture behind it had ended: what they say of the other direction counts, and when they were seen does not.
    pub early: u64,
    /// Of flows that several interfaces show and that came back when it had been forgotten, for want of memory, which one shows them best:
    /// they may count twice.
    pub taken_again: u64,
    /// Flows seen. One that was given up and came back counts once, as long as it is remembered that it was.
    pub flows: u64,
    /// Flows whose samples, or which themselves, were given up for want of memory.
    pub evicted: u64,
    /// Samples that were left out because they came too soon after others ([`crate::Meter::set_spacing_us`]).
    pub thinned: u64,
    /// Time of the packet that was handed in first, in nanoseconds since the capture's epoch.
    pub first_ns: Option<u64>,
    /// Time of the earliest and the latest packet, in nanoseconds since the capture's epoch.
    pub span_ns: Option<(u64, u64)>,
}

impl Counters {
    /// Counts a packet that was captured at this time, in nanoseconds since the capture's epoch: what its octets begin with,
    /// the octets that were captured, and how many it had on the wire. It is read where it was asked for and is TCP or UDP.
    #[inline(always)]
    pub fn admit<'a>(
        &mut self,
        selection: &Selection,
        time_ns: u64,
        (link_type, captured, original_len): (LinkType, &'a [u8], u32),
    ) -> Option<Seen<'a>> {
        if self.arrives(selection, time_ns, original_len) {
            self.read(selection, link_type, captured, original_len)
        } else {
            None
        }
    }

    /// Counts a packet; whether it was asked for.
    #[inline(always)]
    pub(crate) fn arrives(&mut self, selection: &Selection, time_ns: u64, original_len: u32) -> bool {
        self.packets += 1;
        self.bytes += u64::from(original_len);
        let first_ns = *self.first_ns.get_or_insert(time_ns);
        let since_origin_ns = time_ns.saturating_sub(selection.origin_ns.unwrap_or(first_ns));
        if (selection.since_ns..selection.until_ns).contains(&since_origin_ns) {
            self.spans(time_ns);
            return true;
        }
        self.outside += 1;
        selection.learns_outside
    }

    /// Reads one that was.
    pub(crate) fn read<'a>(
        &mut self,
        selection: &Selection,
        link_type: LinkType,
        captured: &'a [u8],
        original_len: u32,
    ) -> Option<Seen<'a>> {
        match frame::read(link_type, captured, original_len) {
            Ok(seen) if selection.filter.as_ref().is_some_and(|filter| !filter.passes(&seen)) => {
                self.filtered += 1;
                None
            }
            Ok(seen) => Some(seen),
            Err(mute) => {
                self.silent(mute);
                None
            }
        }
    }

    #[inline(always)]
    fn spans(&mut self, time_ns: u64) {
        match &mut self.span_ns {
            Some((first, last)) => (*first, *last) = ((*first).min(time_ns), (*last).max(time_ns)),
            none => *none = Some((time_ns, time_ns)),
        }
    }

    /// Counts a packet without a time.
    pub const fn timeless(&mut self) {
        self.packets += 1;
        self.timeless += 1;
    }

    const fn silent(&mut self, mute: Mute) {
        match mute {
            Mute::Other => self.other += 1,
            Mute::Fragment => self.fragments += 1,
            Mute::Cut => self.cut += 1,
            Mute::UnknownLinkType(number) => {
                self.unread += 1;
                self.unknown_link_type = Some(number);
            }
        }
    }
}
