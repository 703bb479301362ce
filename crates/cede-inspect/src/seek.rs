//! Finding messages in a stream whose beginning is not known.
//!
//! Source: BEP 3, 6 and 10: lengths and ids that go together. A place counts as the beginning of a message where so many
//! bits of it are as they must be that chance does not explain it: [`BITS_MIN`] of them, which random octets have once
//! in 10^14 places.
//!
//! **What it leaves out.** Messages whose form says little (keep-alives, extensions, blocks of odd lengths) are not found
//! by themselves, only behind others.
//!
//! **How it was validated.** Streams begun anywhere, and random octets, of which nothing is found (below and `tests/`).

use cede_bt::wire::id;

/// Bits that must be right by themselves.
const BITS_MIN: u32 = 48;
/// Octets of the end of what was searched in vain that may be the beginning of a message.
pub(crate) const TAIL_BYTES: usize = 64;
/// Messages that are looked at behind each other.
const CHAIN_MAX: usize = 8;
/// No block is longer than this, and no block begins behind this in its piece, nor are there more pieces.
const BLOCK_BYTES_MAX: u32 = 1 << 17;
const BEGIN_MAX: u32 = 1 << 25;
const PIECES_MAX: u32 = 1 << 20;
/// What blocks begin at a multiple of.
const BLOCK_BYTES: u32 = 1 << 14;

/// How a connection begins.
const HANDSHAKE: &[u8] = b"\x13BitTorrent protocol";

/// Where the first message begins that is one beyond doubt, or a handshake (`true`).
pub(crate) fn find(octets: &[u8]) -> Option<(usize, bool)> {
    let mut from = 0;
    // Lengths are below 2^24.
    while let Some(at) = octets[from..].iter().position(|&octet| octet == 0 || octet == HANDSHAKE[0]) {
        let at = from + at;
        if octets[at..].starts_with(HANDSHAKE) {
            return Some((at, true));
        }
        if octets[at] == 0 && is_message(&octets[at..]) {
            return Some((at, false));
        }
        from = at + 1;
    }
    None
}

/// Whether messages begin here, as far as can be seen.
fn is_message(mut octets: &[u8]) -> bool {
    let mut bits = 0;
    for k in 0..CHAIN_MAX {
        let Some((head, len)) = octets.first_chunk::<4>().map(|head| (head, u32::from_be_bytes(*head)))
        else {
            return false;
        };
        match evidence(octets, len) {
            // Zeros are everywhere.
            Some(0) if k == 0 => return false,
            Some(more) => bits += more,
            None => return false,
        }
        if bits >= BITS_MIN {
            return true;
        }
        octets = octets.get(head.len() + len as usize..).unwrap_or_default();
    }
    false
}

/// Bits of a message that are as they must be; `None` where it is none.
fn evidence(octets: &[u8], len: u32) -> Option<u32> {
    if len == 0 {
        return Some(0);
    }
    let word = |at: usize| octets.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word));
    let is_piece = |at| word(at).is_some_and(|piece| piece < PIECES_MAX);
    let is_begin = |at| word(at).is_some_and(|begin| begin < BEGIN_MAX);
    let is_len = |at| word(at).is_some_and(|len| (1..=BLOCK_BYTES_MAX).contains(&len));
    match (*octets.get(4)?, len) {
        (id::CHOKE | id::UNCHOKE | id::INTERESTED | id::NOT_INTERESTED | id::HAVE_ALL | id::HAVE_NONE, 1) => {
            Some(37)
        }
        (id::HAVE | id::SUGGEST | id::ALLOWED_FAST, 5) => is_piece(5).then_some(50),
        (id::REQUEST | id::CANCEL | id::REJECT, 13) => {
            (is_piece(5) && is_begin(9) && is_len(13)).then_some(73)
        }
        (id::PORT, 3) => Some(40),
        (id::PIECE, 10..) if len - 9 <= BLOCK_BYTES_MAX && is_piece(5) && is_begin(9) => {
            let is_aligned = word(9).is_some_and(|begin| begin % BLOCK_BYTES == 0);
            Some(42 + if is_aligned { 14 } else { 0 })
        }
        (id::EXTENDED, 3..=0xf_ffff) => {
            let is_dict =
                octets.get(6) == Some(&b'd') && octets.get(7).is_none_or(|next| next.is_ascii_alphanumeric());
            is_dict.then_some(32)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_bt::wire::{BlockRef, Message, piece_header};
    use cede_units::Stream;

    #[test]
    fn a_message_is_found_wherever_it_begins() {
        let block = BlockRef { piece: 7, begin: 1 << 14, len: 1 << 14 };
        let pair = [Message::Unchoke.to_vec(), Message::Interested.to_vec()].concat();
        for octets in [
            Message::Have(9).to_vec(),
            Message::Request(block).to_vec(),
            piece_header(block).to_vec(),
            piece_header(BlockRef { len: 77, ..block }).to_vec(),
            pair,
        ] {
            for before in [0, 1, 5, 300] {
                let stream = [vec![0xa5; before], octets.clone(), vec![1; 9]].concat();
                assert_eq!(find(&stream), Some((before, false)), "{octets:?}");
            }
        }
        assert_eq!(find(b"xx\x13BitTorrent protocol"), Some((2, true)));
        assert_eq!(find(&Message::Unchoke.to_vec()), None);
        assert_eq!(find(&[0; 4096]), None);
    }

    #[test]
    fn chance_makes_no_message() {
        let mut stream = Stream::named(1, "seek");
        let octets: Vec<u8> = (0..4 << 20).map(|_| stream.next_u32() as u8).collect();
        assert_eq!(find(&octets), None);
        let text = "0 0 0 1 the quick brown fox\0\0\0\u{5} jumps".repeat(10_000);
        assert_eq!(find(text.as_bytes()), None);
    }
}
