//! The order of several captures: names tell little of it (`tcpdump -C` writes cap, cap1, cap2 ... cap10), their first packets all.

use super::unpack::decompressed;
use cede_meter::Feed;
use cede_wire::pcap::Record;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Captures by the time of their first packet: each one's place among those named. Whatever cannot be read twice (a pipe, `-`) or
/// has no packet with a time keeps its place; so do files that begin at the same time among each other.
pub fn in_order(files: &[PathBuf]) -> Vec<usize> {
    let mut ordered: Vec<usize> = (0..files.len()).collect();
    if files.len() < 2 {
        return ordered;
    }
    let times: Vec<Option<u64>> = files.iter().map(|path| first_ns(path)).collect();
    let places: Vec<usize> = (0..files.len()).filter(|&k| times[k].is_some()).collect();
    let mut sorted = places.clone();
    sorted.sort_by_key(|&k| times[k]);
    places.iter().zip(sorted).for_each(|(&place, k)| ordered[place] = k);
    ordered
}

/// The time of a file's first packet, where it has one and the file can be read again.
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
