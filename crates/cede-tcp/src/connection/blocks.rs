//! What lies beyond a gap, or came twice: its blocks beside an acknowledgement, and the place that they leave to data.
//!
//! Source: RFC 2018 section 3, RFC 2883 section 4, RFC 6691 (options come out of the MSS), Linux's `tcp_current_mss`.
//!
//! **What it leaves out.** Linux cuts a full segment in two that leaves again while there is something to report. Boundaries never
//! change here: such a segment reports what it has room for, and where that is nothing the acknowledgement stays owed.
//!
//! **How it was validated.** Two streams against each other with losses both ways, no packet of which is longer than the path's
//! (tests of delivery).

use super::Connection;
use cede_wire::tcp::SackBlocks;

/// SACK blocks that fit beside timestamps, and without (RFC 2018, section 3).
const BLOCKS_BESIDE_TIMESTAMPS: usize = 3;
const BLOCKS_ALONE: usize = 4;
/// Two octets of padding, kind and length; each block's two numbers.
const OPTION_BYTES: u32 = 4;
const BLOCK_BYTES: u32 = 8;

impl Connection {
    /// Payload octets of a full segment that leaves now. Blocks take half of it at most.
    pub(super) fn segment_bytes(&self) -> u32 {
        let full = self.board.mss_bytes();
        let blocks = self.reportable().min(blocks_in(full / 2));
        if blocks == 0 { full } else { full - OPTION_BYTES - BLOCK_BYTES * blocks as u32 }
    }

    /// How many blocks there are to report, as far as they fit beside the other options.
    fn reportable(&self) -> usize {
        if !self.peer.sack {
            return 0;
        }
        let twice = usize::from(self.rack.is_some() && self.reassembly.has_twice());
        let most = if self.peer.timestamps { BLOCKS_BESIDE_TIMESTAMPS } else { BLOCKS_ALONE };
        (twice + self.reassembly.blocks().len()).min(most)
    }

    /// The blocks that leave beside `payload_bytes` of data; `None` where there are some and none has room. What arrived twice
    /// comes first, and is reported once, by whoever finds losses by time, as Linux does.
    pub(super) fn write_blocks(&mut self, payload_bytes: u32) -> Option<SackBlocks> {
        let wanted = self.reportable();
        let fits = match payload_bytes {
            0 => wanted,
            bytes => wanted.min(blocks_in(self.board.mss_bytes().saturating_sub(bytes))),
        };
        if fits == 0 && wanted > 0 {
            return None;
        }
        let twice = self.reassembly.take_twice().filter(|_| self.rack.is_some());
        let first = self.peer.irs.add(1);
        let mut blocks = SackBlocks::NONE;
        for &(start, end) in twice.iter().chain(self.reassembly.blocks()).take(fits) {
            let _ = blocks.push(first.add(start as u32), first.add(end as u32));
        }
        Some(blocks)
    }
}

/// How many blocks have room in so many octets.
const fn blocks_in(bytes: u32) -> usize {
    (bytes.saturating_sub(OPTION_BYTES) / BLOCK_BYTES) as usize
}
