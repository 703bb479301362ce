//! Going on behind what is damaged: where records stand, told by their headers alone.
//!
//! Classic pcap has nothing that marks a record's beginning, so a place is taken for one where several headers in a row fit: each
//! leads to the next, says no more octets than packets have, and a time near the one before. Random octets pass for a header of
//! pcap once in 2^40 places and for two in a row never; blocks of pcapng repeat their length at their end besides. A record that is odd by
//! itself (it says a fraction of more than a second, more octets than were on the wire, a time far from the last one) is believed
//! if those behind it fit and are alike.
//!
//! **What it leaves out.** A capture within a packet of a capture, made at nearly the same time, could be taken for the rest of the file where
//! just that packet's own header is damaged. Where a section header or an interface of pcapng is lost, packets behind it are those of
//! interfaces described before, if their times are near, or are passed over.
//!
//! **How it was validated.** Damaged files, octet by octet and by runs: every record that is found and that the damage did not touch
//! is one of the whole file (`cede-meter`, `tests/fuzz_damage.rs`).

use super::{Decoder, Format};

/// So many headers in a row must fit.
const ROW: usize = 4;
/// Behind an odd record so many must.
const ROW_BEHIND_ODD: usize = 3;
/// How far before and behind the time of the record before it the next one's may be: clocks are set, and captures are silent.
const EARLIER_NS_MAX: u64 = 3_600_000_000_000;
const LATER_NS_MAX: u64 = 30 * 86_400_000_000_000;
/// No packet is longer on the wire: IPv6 jumbograms of a system to itself have half a mebioctet.
const WIRE_BYTES_MAX: u32 = 1 << 20;

/// Whether a record says lengths that no capture program writes.
#[inline]
pub(super) const fn is_odd(captured_len: u32, original_len: u32) -> bool {
    captured_len > original_len || original_len.wrapping_sub(1) >= WIRE_BYTES_MAX
}

/// What stands at a place, by its header.
pub(super) enum Look {
    /// A record or a block of so many octets.
    Fits(Seen),
    /// None.
    Unlike,
    /// The octets end too early to tell.
    Short,
}

/// A record or a block.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub len: usize,
    pub time_ns: Option<u64>,
    /// It says what no capture program writes.
    pub is_odd: bool,
    /// All is new from here on.
    pub is_section: bool,
}

/// Whether something is as it seems.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// What stands behind it fits.
    Fits,
    /// It does not.
    Unlike,
    /// More octets would tell.
    Undecided,
}

/// Where to go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Resume {
    /// Records stand from this offset on.
    At(usize),
    /// None stands before this offset; more octets are needed to tell of the rest.
    Undecided(usize),
    /// There are none.
    Never,
}

/// Octets of a capture, and whether it has no more.
#[derive(Clone, Copy, Debug)]
pub struct Rest<'a> {
    /// What there is.
    pub octets: &'a [u8],
    /// No more will come.
    pub is_all: bool,
}

impl Decoder {
    /// Where the last record begins, and whether it says what no capture program writes, so that [`Self::judge`] is worth asking.
    #[must_use]
    #[inline]
    pub const fn last(&self) -> (usize, bool) {
        match &self.format {
            Some(Format::Classic(layout)) => layout.last,
            Some(Format::Ng(section)) => section.last,
            None => (0, false),
        }
    }

    fn look(&self, octets: &[u8], at: usize) -> Look {
        match &self.format {
            Some(Format::Classic(layout)) => layout.look(octets, at),
            Some(Format::Ng(section)) => section.look(octets, at),
            None => Look::Unlike,
        }
    }

    /// Whether an odd record, which begins at `at`, is to be believed: what is behind it fits, and is as odd or nearer to it
    /// in time than to the record before it.
    #[must_use]
    pub fn judge(&self, rest: Rest<'_>, at: usize, last_ns: Option<u64>) -> Verdict {
        let Look::Fits(odd) = self.look(rest.octets, at) else { return Verdict::Unlike };
        let mut at = at.saturating_add(odd.len);
        for place in 0..ROW_BEHIND_ODD {
            let next = match self.look(rest.octets, at) {
                Look::Unlike => return Verdict::Unlike,
                // The end, exactly or behind two that fit: a length that is wrong leads beyond it, too.
                Look::Short if rest.is_all && (place > 1 || at == rest.octets.len()) => return Verdict::Fits,
                Look::Short if rest.is_all => return Verdict::Unlike,
                Look::Short => return Verdict::Undecided,
                Look::Fits(next) if next.is_section => return Verdict::Fits,
                Look::Fits(next) => next,
            };
            if place == 0 && (odd.is_odd && !next.is_odd || is_astray(last_ns, odd.time_ns, next.time_ns)) {
                return Verdict::Unlike;
            }
            at = at.saturating_add(next.len);
        }
        Verdict::Fits
    }

    /// The first place from `from` on where records stand, after one of this time. The decoder can go on there.
    #[must_use]
    pub fn resume(&self, rest: Rest<'_>, from: usize, last_ns: Option<u64>) -> Resume {
        for at in from..rest.octets.len() {
            match self.row(rest, at, last_ns) {
                Verdict::Fits => return Resume::At(at),
                Verdict::Undecided => return Resume::Undecided(at),
                Verdict::Unlike => {}
            }
        }
        if rest.is_all { Resume::Never } else { Resume::Undecided(from.max(rest.octets.len())) }
    }

    /// Whether several records in a row stand from here on, or up to the end.
    fn row(&self, rest: Rest<'_>, mut at: usize, mut last_ns: Option<u64>) -> Verdict {
        for place in 0..ROW {
            if place > 0 && rest.is_all && at == rest.octets.len() {
                return Verdict::Fits;
            }
            match self.look(rest.octets, at) {
                Look::Fits(seen) if seen.is_section => return Verdict::Fits,
                Look::Fits(seen) if !seen.is_odd && is_near(last_ns, seen.time_ns) => {
                    last_ns = seen.time_ns.or(last_ns);
                    at = at.saturating_add(seen.len);
                }
                Look::Fits(_) | Look::Unlike => return Verdict::Unlike,
                Look::Short if !rest.is_all => return Verdict::Undecided,
                // The last one is cut off.
                Look::Short => return if place >= 2 { Verdict::Fits } else { Verdict::Unlike },
            }
        }
        Verdict::Fits
    }
}

/// What has no time is near.
fn is_near(last_ns: Option<u64>, next_ns: Option<u64>) -> bool {
    let (Some(last), Some(next)) = (last_ns, next_ns) else { return true };
    (last.saturating_sub(EARLIER_NS_MAX)..last.saturating_add(LATER_NS_MAX)).contains(&next)
}

/// Whether a time that is far from those around it is a wrong one: the next is nearer to the last.
fn is_astray(last_ns: Option<u64>, odd_ns: Option<u64>, next_ns: Option<u64>) -> bool {
    let (Some(last), Some(odd), Some(next)) = (last_ns, odd_ns, next_ns) else { return false };
    Decoder::is_far(last, odd) && next.abs_diff(odd) > next.abs_diff(last)
}

impl Decoder {
    /// Whether a time is so far from the last one that [`Self::judge`] is worth asking.
    #[must_use]
    #[inline]
    pub const fn is_far(last_ns: u64, time_ns: u64) -> bool {
        time_ns.abs_diff(last_ns) > EARLIER_NS_MAX
    }
}
