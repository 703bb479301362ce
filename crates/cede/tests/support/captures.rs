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
    let mut at = 24;
    while at < capture.len() / 2 {
        at += 16 + u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    [capture[..at].to_vec(), [&capture[..24], &capture[at..]].concat()]
}
