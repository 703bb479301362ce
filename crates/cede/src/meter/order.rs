//! The order of several captures: names tell little of it (`tcpdump -C` writes cap, cap1, cap2 ... cap10), their first packets all.

use super::lots::WINDOW_NS;
use super::unpack::decompressed;
use cede_meter::Feed;
use cede_wire::pcap::Record;
use std::fs::File;
use std::path::Path;

/// Sorts by their times those that have one. The rest keep their places, and so do those of the same time among each other.
pub fn sort_known<T>(list: &mut [T], time: impl Fn(&T) -> Option<u64>) {
    let places: Vec<usize> = (0..list.len()).filter(|&k| time(&list[k]).is_some()).collect();
    for sorted in 1..places.len() {
        for pair in places[..=sorted].windows(2).rev() {
            if time(&list[pair[0]]) <= time(&list[pair[1]]) {
                break;
            }
            list.swap(pair[0], pair[1]);
        }
    }
}

/// What a capture begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Front {
    /// The time of its first packet, where that is known.
    pub first_ns: Option<u64>,
    /// How many interfaces it describes.
    pub interfaces: usize,
}

/// Files that follow each other may have packets of the same moment.
const OVERLAP_NS: u64 = 100_000_000;

/// From a file's first packet on, how long another one may go on which it follows: where both have several interfaces, which may stand in lots, as
/// long as these are.
pub const fn overlap_ns(interfaces: [usize; 2]) -> u64 {
    let have_lots = interfaces[0] > 1 && interfaces[0] == interfaces[1];
    if have_lots { WINDOW_NS } else { OVERLAP_NS }
}

/// For each capture in order when the next one has begun for certain; never where none that is known follows.
pub fn limits(fronts: impl DoubleEndedIterator<Item = Front>) -> Vec<u64> {
    let mut next = None;
    let limit = |front: Front| {
        let begun = |(first_ns, interfaces): (u64, usize)| {
            first_ns.saturating_add(overlap_ns([front.interfaces, interfaces]))
        };
        let limit = next.map_or(u64::MAX, begun);
        next = front.first_ns.map(|first_ns| (first_ns, front.interfaces)).or(next);
        limit
    };
    let mut limits: Vec<u64> = fronts.rev().map(limit).collect();
    limits.reverse();
    limits
}

/// What a file begins with; nothing is known of what cannot be read twice, as a pipe or `-`.
pub fn front(path: &Path) -> Front {
    read_front(path).unwrap_or_default()
}

fn read_front(path: &Path) -> Option<Front> {
    if path.as_os_str() == "-" || !std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut feed = Feed::new(decompressed(Box::new(File::open(path).ok()?)).ok()?);
    let mut first = None;
    loop {
        let goes_on = feed.step_into(&mut |record: &Record<'_>| {
            first.get_or_insert(record.time_ns);
        });
        if first.is_some() || !matches!(goes_on, Ok(true)) || crate::interrupt::is_asked() {
            return Some(Front { first_ns: first.flatten(), interfaces: feed.interfaces() });
        }
    }
}
