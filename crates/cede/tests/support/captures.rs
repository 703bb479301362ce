//! Recorded captures of a 1 Mbit/s uplink seen from the other end, compressed with gzip.

use flate2::read::GzDecoder;
use std::io::Read;

pub const UTP: &[u8] = include_bytes!("../../../cede-meter/tests/vectors/utp_1m.pcap.gz");
pub const TCP: &[u8] = include_bytes!("../../../cede-meter/tests/vectors/tcp_1m.pcap.gz");

pub fn plain(compressed: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    GzDecoder::new(compressed).read_to_end(&mut octets).unwrap();
    octets
}

/// A classic capture cut in two between records, the second half with a file header of its own.
pub fn halves(capture: &[u8]) -> [Vec<u8>; 2] {
    parts(capture, 2).try_into().unwrap()
}

/// As [`halves`], in so many parts.
pub fn parts(capture: &[u8], count: usize) -> Vec<Vec<u8>> {
    let (head, mut from, mut at) = (&capture[..24], 24, 24);
    let mut parts = Vec::new();
    for k in 1..=count {
        while at < capture.len() / count * k && at < capture.len() {
            at += 16 + u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
        }
        let end = if k == count { capture.len() } else { at };
        parts.push([head, &capture[from..end]].concat());
        from = at;
    }
    parts
}
