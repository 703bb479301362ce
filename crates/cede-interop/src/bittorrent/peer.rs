//! Our peer: one that gives everything, or one that wants everything.

use super::torrent::Torrent;
use super::wire::{Block, Message, expect_handshake, read_message, write_handshake};
use crate::data;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

const BLOCK_BYTES: usize = 16 << 10;
/// Requests under way: 2 MiB, more than any window here.
const PIPELINE: usize = 128;

/// Gives the torrent to whoever is at the other end, until that one has closed; then closes.
///
/// # Errors
/// The stream's; a peer that asks for what is not in the torrent.
pub async fn seed(
    reader: impl AsyncRead + Unpin,
    out: &mut (impl AsyncWrite + Unpin),
    torrent: &Torrent,
) -> io::Result<()> {
    let mut from = BufReader::with_capacity(1 << 16, reader);
    write_handshake(out, &torrent.info_hash).await?;
    expect_handshake(&mut from, &torrent.info_hash).await?;
    out.write_all(&Message::Bitfield(torrent.full_bitfield()).octets()).await?;
    while let Some(message) = read_message(&mut from).await? {
        match message {
            Message::Interested => out.write_all(&Message::Unchoke.octets()).await?,
            Message::Request(block) => out.write_all(&answer(torrent, block)?.octets()).await?,
            _ => {}
        }
    }
    out.shutdown().await
}

fn answer(torrent: &Torrent, block: Block) -> io::Result<Message> {
    let start = block.index as usize * torrent.piece_bytes + block.begin as usize;
    let octets = torrent.octets.get(start..start + block.bytes as usize);
    let octets = octets.ok_or_else(|| io::Error::other(format!("a request beyond the end: {block:?}")))?;
    Ok(Message::Piece { index: block.index, begin: block.begin, octets: octets.to_vec() })
}

/// Where a leech does nothing for a while, the first time that it may ask.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pauses {
    /// Neither side says anything meanwhile.
    pub before_asking: Duration,
    /// The seed sends until our window is zero.
    pub before_reading: Duration,
}

/// Takes the torrent from whoever is at the other end, and ends our direction. The end of the other is not waited for:
/// Transmission's libutp, once it has seen ours, sends none.
///
/// # Errors
/// The stream's; a peer that ends too early or gives what is not in the torrent.
pub async fn leech(
    reader: impl AsyncRead + Unpin,
    out: &mut (impl AsyncWrite + Unpin),
    torrent: &Torrent,
    pauses: Pauses,
) -> io::Result<Vec<u8>> {
    let mut wanted = Download::new(torrent);
    leech_rest(reader, out, torrent, pauses, &mut wanted).await?;
    wanted.finish(torrent)
}

/// As [`leech`], for what is missing still after connections that have ended before their time.
///
/// # Errors
/// As [`leech`].
pub async fn leech_rest(
    reader: impl AsyncRead + Unpin,
    out: &mut (impl AsyncWrite + Unpin),
    torrent: &Torrent,
    pauses: Pauses,
    wanted: &mut Download,
) -> io::Result<()> {
    let mut from = BufReader::with_capacity(1 << 16, reader);
    write_handshake(out, &torrent.info_hash).await?;
    expect_handshake(&mut from, &torrent.info_hash).await?;
    out.write_all(&Message::Interested.octets()).await?;
    wanted.forget_requests();
    while wanted.missing > 0 {
        let message = read_message(&mut from).await?;
        let was_unchoked = wanted.is_unchoked;
        match message.ok_or(io::ErrorKind::UnexpectedEof)? {
            Message::Choke => wanted.forget_requests(),
            Message::Unchoke => wanted.is_unchoked = true,
            Message::Piece { index, begin, octets } => wanted.take(torrent, index, begin, &octets)?,
            _ => {}
        }
        let begins = wanted.is_unchoked && !was_unchoked;
        if begins {
            tokio::time::sleep(pauses.before_asking).await;
        }
        out.write_all(&wanted.requests()).await?;
        if begins {
            tokio::time::sleep(pauses.before_reading).await;
        }
    }
    out.shutdown().await
}

/// What has come, and what is still to come.
pub struct Download {
    octets: Vec<u8>,
    missing: usize,
    is_unchoked: bool,
    ahead: VecDeque<Block>,
    /// Asked for on this connection.
    under_way: Vec<Block>,
}

impl Download {
    /// All of a torrent is still to come.
    #[must_use]
    pub fn new(torrent: &Torrent) -> Self {
        let len = torrent.octets.len();
        let ahead = (0..len).step_by(BLOCK_BYTES).map(|at| Block {
            index: (at / torrent.piece_bytes) as u32,
            begin: (at % torrent.piece_bytes) as u32,
            bytes: BLOCK_BYTES.min(len - at) as u32,
        });
        let (ahead, under_way) = (ahead.collect(), Vec::new());
        Self { octets: vec![0; len], missing: len, is_unchoked: false, ahead, under_way }
    }

    /// Requests are void: on a new connection, or since we are choked. What they were for is asked for first.
    fn forget_requests(&mut self) {
        self.is_unchoked = false;
        self.under_way.drain(..).rev().for_each(|block| self.ahead.push_front(block));
    }

    /// What may be asked for now, as octets for the wire.
    fn requests(&mut self) -> Vec<u8> {
        let room = if self.is_unchoked { PIPELINE - self.under_way.len() } else { 0 };
        let now = self.ahead.drain(..room.min(self.ahead.len())).inspect(|&block| self.under_way.push(block));
        now.flat_map(|block| Message::Request(block).octets()).collect()
    }

    fn take(&mut self, torrent: &Torrent, index: u32, begin: u32, octets: &[u8]) -> io::Result<()> {
        let Some(block) = self.cross_out(index, begin) else { return Ok(()) };
        if block.bytes as usize != octets.len() {
            return Err(io::Error::other(format!("{} octets for {block:?}", octets.len())));
        }
        let at = index as usize * torrent.piece_bytes + begin as usize;
        self.octets[at..at + octets.len()].copy_from_slice(octets);
        self.missing -= octets.len();
        Ok(())
    }

    /// Takes a block off the lists; `None` where it has come before. One that was under way when we were choked is on the
    /// other list again.
    fn cross_out(&mut self, index: u32, begin: u32) -> Option<Block> {
        let is_it = |block: &Block| (block.index, block.begin) == (index, begin);
        match self.under_way.iter().position(is_it) {
            Some(place) => Some(self.under_way.remove(place)),
            None => self.ahead.iter().position(is_it).and_then(|place| self.ahead.remove(place)),
        }
    }

    /// All of it, once it has come.
    ///
    /// # Errors
    /// A piece that is not the torrent's.
    pub fn finish(self, torrent: &Torrent) -> io::Result<Vec<u8>> {
        let pieces = self.octets.chunks(torrent.piece_bytes).map(data::digest);
        match pieces.zip(&torrent.digests).position(|(found, &expected)| found != expected) {
            Some(piece) => Err(io::Error::other(format!("piece {piece} has a wrong digest"))),
            None => Ok(self.octets),
        }
    }
}
