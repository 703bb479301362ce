//! Captures of several interfaces in which those of each stand in lots, as `dumpcap -i eth0 -i eth1` writes them: put in the order of time.
//!
//! Else what one interface shows of a second comes before what another one shows of it, and the first packets, which met an empty queue, are
//! not known for the same any more once those of the interface behind that queue are read.
//!
//! Of a row of files (`dumpcap -b`) the next one may begin within such a lot, before the last one ends: they are put in order together.
//!
//! **What it leaves out.** Lots of more than a second or 8 MiB; those of one interface, whose order is taken as it stands.

use cede_wire::link::LinkType;
use cede_wire::pcap::Record;
use std::collections::BTreeMap;

/// A packet waits until one so much later has come, or so many octets wait.
pub(super) const WINDOW_NS: u64 = 1_000_000_000;
const WAITING_BYTES_MAX: usize = 8 << 20;
/// So many packets, each so much earlier than one of another interface in front of it, are no chance.
const LATE_MIN: u32 = 8;
const LATE_NS: u64 = 1_000_000;

/// Tells whether packets stand in lots.
#[derive(Debug, Default)]
pub(super) struct Lots {
    /// The latest packet: its time and interface.
    latest: (u64, u32),
    late: u32,
}

impl Lots {
    /// Notes a packet; whether it is the one by which that is sure.
    #[inline]
    pub(super) fn note(&mut self, record: &Record<'_>) -> bool {
        let Some(time_ns) = record.time_ns else { return false };
        if time_ns >= self.latest.0 {
            self.latest = (time_ns, record.interface);
            return false;
        }
        let is_late = record.interface != self.latest.1 && self.latest.0 - time_ns > LATE_NS;
        self.late = self.late.saturating_add(u32::from(is_late));
        is_late && self.late == LATE_MIN
    }
}

/// A packet that waits.
#[derive(Debug)]
struct Waiting {
    time_ns: Option<u64>,
    interface: u32,
    link_type: LinkType,
    original_len: u32,
    captured: Box<[u8]>,
}

/// Hands packets over in the order of time.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    /// By their times, and by the order in which they came.
    waiting: BTreeMap<(u64, u64), Waiting>,
    bytes: usize,
    taken: u64,
    latest_ns: u64,
}

impl Sorter {
    /// Takes a packet, and hands over those that none can precede any more.
    pub(super) fn take(&mut self, record: &Record<'_>, hand: &mut impl FnMut(&Record<'_>)) {
        let Record { time_ns, interface, link_type, original_len, captured } = *record;
        // What has no time stays where it is.
        self.latest_ns = self.latest_ns.max(time_ns.unwrap_or(0));
        self.taken += 1;
        self.bytes += captured.len() + size_of::<Waiting>();
        let captured = Box::from(captured);
        let waiting = Waiting { time_ns, interface, link_type, original_len, captured };
        self.waiting.insert((time_ns.unwrap_or(self.latest_ns), self.taken), waiting);
        self.hand_over_until(self.latest_ns.saturating_sub(WINDOW_NS), hand);
    }

    /// Hands over what is older than a time, and what there is no room for.
    pub(super) fn hand_over_until(&mut self, until_ns: u64, hand: &mut impl FnMut(&Record<'_>)) {
        while let Some(first) = self.waiting.first_entry() {
            if self.bytes <= WAITING_BYTES_MAX && first.key().0 >= until_ns {
                break;
            }
            let first = first.remove();
            self.bytes -= first.captured.len() + size_of::<Waiting>();
            first.hand_over(hand);
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Hands over all that is left.
    pub(super) fn end(&mut self, hand: &mut impl FnMut(&Record<'_>)) {
        std::mem::take(self).waiting.values().for_each(|waiting| waiting.hand_over(hand));
    }
}

impl Waiting {
    fn hand_over(&self, hand: &mut impl FnMut(&Record<'_>)) {
        let &Self { time_ns, interface, link_type, original_len, ref captured } = self;
        hand(&Record { time_ns, interface, link_type, captured, original_len });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time_ns: Option<u64>, interface: u32, captured: &[u8]) -> Record<'_> {
        Record { time_ns, interface, link_type: LinkType::ETHERNET, captured, original_len: 1 }
    }

    #[test]
    fn lots_of_two_interfaces_are_told_and_put_in_order() {
        let (mut lots, mut sorter, mut times) = (Lots::default(), Sorter::default(), Vec::new());
        let mut told = 0;
        for lot in 0..40_u64 {
            for k in 0..20 {
                // A lot of one, then a lot of the other, of the same 200 ms.
                let at_ns = 200_000_000 * (lot / 2) + 10_000_000 * k + lot % 2;
                let record = record(Some(at_ns), (lot % 2) as u32, &[0; 60]);
                told += u32::from(lots.note(&record));
                sorter.take(&record, &mut |record| times.push(record.time_ns.unwrap()));
            }
        }
        assert_eq!(told, 1);
        sorter.end(&mut |record| times.push(record.time_ns.unwrap()));
        assert_eq!(times.len(), 800);
        assert!(times.is_sorted(), "{times:?}");
    }

    #[test]
    fn what_is_in_order_or_of_one_interface_is_none() {
        let mut lots = Lots::default();
        let mut note = |time_ns, interface| lots.note(&record(Some(time_ns), interface, &[]));
        assert!(!(0..1_000).any(|k| note(k, (k % 2) as u32)));
        assert!(!(0..1_000).any(|k| note(1_000_000_000 - 2_000_000 * (k % 2), 1)));
    }

    #[test]
    fn no_more_waits_than_there_is_room_for() {
        let (mut sorter, mut handed, octets) = (Sorter::default(), 0, vec![0; 1 << 20]);
        for k in 0..100_u64 {
            sorter.take(&record((k % 3 > 0).then_some(k), 0, &octets), &mut |_| handed += 1);
            assert!(k + 1 - handed <= 8, "{k} {handed}");
        }
        sorter.end(&mut |_| handed += 1);
        assert_eq!((handed, sorter.bytes), (100, 0));
    }
}
