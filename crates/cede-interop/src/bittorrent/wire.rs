//! The wire protocol's handshake and messages.

use crate::data::Digest;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const PROTOCOL: &[u8; 20] = b"\x13BitTorrent protocol";
/// More than any message that we cause: a block of 16 KiB with its head, or a bitfield.
const MAX_MESSAGE_BYTES: u32 = 1 << 17;

/// A part of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Block {
    pub index: u32,
    pub begin: u32,
    pub bytes: u32,
}

/// What peers say to each other, as far as we listen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    Choke,
    Unchoke,
    Interested,
    Bitfield(Vec<u8>),
    Request(Block),
    Piece { index: u32, begin: u32, octets: Vec<u8> },
    Other,
}

pub(super) async fn write_handshake(out: &mut (impl AsyncWrite + Unpin), hash: &Digest) -> io::Result<()> {
    let reserved = [0; 8];
    out.write_all(&[PROTOCOL, &reserved[..], hash, b"-CD0001-interoptest1"].concat()).await
}

pub(super) async fn expect_handshake(from: &mut (impl AsyncRead + Unpin), hash: &Digest) -> io::Result<()> {
    let mut octets = [0; 68];
    from.read_exact(&mut octets).await?;
    let is_ours = octets.starts_with(PROTOCOL) && octets[28..48] == hash[..];
    if is_ours { Ok(()) } else { Err(io::Error::other(format!("a strange handshake: {octets:02x?}"))) }
}

/// The next message; `None` at the end of the stream. Keepalives are passed over.
pub(super) async fn read_message(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Message>> {
    loop {
        let len = match from.read_u32().await {
            Ok(0) => continue,
            Ok(len) if len > MAX_MESSAGE_BYTES => return Err(io::Error::other("a message too long")),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut body = vec![0; len as usize];
        from.read_exact(&mut body).await?;
        return Ok(Some(parse(&body)));
    }
}

fn parse(body: &[u8]) -> Message {
    let word =
        |at: usize| body.get(at..at + 4).map_or(0, |w| u32::from_be_bytes(w.try_into().unwrap_or_default()));
    match (body[0], body.len()) {
        (0, _) => Message::Choke,
        (1, _) => Message::Unchoke,
        (2, _) => Message::Interested,
        (5, _) => Message::Bitfield(body[1..].to_vec()),
        (6, 13) => Message::Request(Block { index: word(1), begin: word(5), bytes: word(9) }),
        (7, 9..) => Message::Piece { index: word(1), begin: word(5), octets: body[9..].to_vec() },
        _ => Message::Other,
    }
}

impl Message {
    /// The message as it goes over the wire.
    pub fn octets(&self) -> Vec<u8> {
        let words = |id: u8, words: &[u32], tail: &[u8]| {
            let len = 1 + 4 * words.len() + tail.len();
            let mut octets = (len as u32).to_be_bytes().to_vec();
            octets.push(id);
            words.iter().for_each(|word| octets.extend(word.to_be_bytes()));
            octets.extend_from_slice(tail);
            octets
        };
        match self {
            Self::Choke => words(0, &[], &[]),
            Self::Unchoke => words(1, &[], &[]),
            Self::Interested => words(2, &[], &[]),
            Self::Bitfield(bits) => words(5, &[], bits),
            Self::Request(block) => words(6, &[block.index, block.begin, block.bytes], &[]),
            Self::Piece { index, begin, octets } => words(7, &[*index, *begin], octets),
            Self::Other => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_read_as_they_were_written() {
        let request = Message::Request(Block { index: 1, begin: 16_384, bytes: 16_384 });
        assert_eq!(request.octets(), [0, 0, 0, 13, 6, 0, 0, 0, 1, 0, 0, 0x40, 0, 0, 0, 0x40, 0]);
        let piece = Message::Piece { index: 3, begin: 9, octets: vec![1, 2] };
        for message in [request, piece, Message::Unchoke, Message::Bitfield(vec![0x80])] {
            let wire = [&[0; 4][..], &message.octets()].concat();
            assert_eq!(read_message(&mut &wire[..]).await.unwrap(), Some(message));
        }
        assert_eq!(read_message(&mut &b""[..]).await.unwrap(), None);
    }
}
