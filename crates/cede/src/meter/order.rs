//! The order of several captures: names tell little of it (`tcpdump -C` writes cap, cap1, cap2 ... cap10), their first packets all.

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

/// Files that follow each other may have packets of the same moment.
pub const OVERLAP_NS: u64 = 100_000_000;

/// For each capture in order when the next one has begun for certain; never where none that is known follows.
pub fn limits(first_ns: impl DoubleEndedIterator<Item = Option<u64>>) -> Vec<u64> {
    let mut next = None;
    let limit = |first: Option<u64>| {
        let limit = next.map_or(u64::MAX, |next: u64| next.saturating_add(OVERLAP_NS));
        next = first.or(next);
        limit
    };
    let mut limits: Vec<u64> = first_ns.rev().map(limit).collect();
    limits.reverse();
    limits
}

/// The time of a file's first packet, where it has one; none of what cannot be read twice, as a pipe or `-`.
pub fn first_ns(path: &Path) -> Option<u64> {
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
            return first.flatten();
        }
    }
}
