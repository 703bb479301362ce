//! Datagrams to trackers and of the distributed hash table.
//!
//! Source: BEP 15 (connect, announce) and BEP 5 (KRPC), read with `cede_bt`'s own decoders.
//!
//! **What it leaves out.** Answers of trackers. An announce whose connect was not seen counts if its peer id begins as peer
//! ids do. **How it was validated.** Both messages by hand (`tests/conversations.rs`).

use crate::event::About;
use cede_bt::bencode::{Document, Limits, Node};
use cede_bt::tracker::udp::{Asked, Request};

/// Values of a message; those of the hash table have a few dozen.
const LIMITS: Limits = Limits { depth: 8, values: 400, canonical: false };
/// Octets of an announce over UDP.
const ANNOUNCE_BYTES: usize = 98;

/// What a datagram is that is no uTP, if it is known here. `is_tracker` says whether a connect was seen between both ends,
/// and is set by one.
pub(crate) fn read(payload: &[u8], is_tracker: &mut bool) -> Option<About> {
    if payload.starts_with(b"d1:") && payload.ends_with(b"e") {
        return krpc(payload);
    }
    // Connect and announce are numbers 0 and 1.
    if !matches!(payload.get(8..12)?, [0, 0, 0, 0 | 1]) {
        return None;
    }
    match Asked::decode(payload).ok()?.request {
        Request::Connect => {
            *is_tracker = true;
            None
        }
        Request::Announce(announce) => {
            let first = announce.peer_id[0];
            let is_one = *is_tracker
                || (payload.len() >= ANNOUNCE_BYTES && (first == b'-' || first.is_ascii_alphabetic()));
            is_one.then(|| About::Announce { announce: Box::new(announce), is_http: false })
        }
        Request::Scrape(_) => None,
    }
}

fn krpc(payload: &[u8]) -> Option<About> {
    let document = Document::parse(payload, LIMITS).ok()?;
    let root = document.root();
    let kind = match root.get(b"y").and_then(Node::bytes)? {
        b"q" => crate::side::plain(root.get(b"q").and_then(Node::bytes)?, 32),
        b"r" => "response".to_string(),
        b"e" => "error".to_string(),
        _ => return None,
    };
    let info_hash = root.get(b"a").and_then(|asked| asked.get(b"info_hash")).and_then(Node::bytes);
    Some(About::Dht { kind, info_hash: info_hash.and_then(|hash| hash.try_into().ok()) })
}
