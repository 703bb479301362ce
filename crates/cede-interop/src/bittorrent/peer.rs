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
    let mut from = BufReader::with_capacity(1 << 16, reader);
    write_handshake(out, &torrent.info_hash).await?;
    expect_handshake(&mut from, &torrent.info_hash).await?;
    out.write_all(&Message::Interested.octets()).await?;
    let mut wanted = Wanted::all_of(torrent);
    while wanted.missing > 0 {
        let message = read_message(&mut from).await?;
        let was_unchoked = wanted.is_unchoked;
        match message.ok_or(io::ErrorKind::UnexpectedEof)? {
            Message::Choke => wanted.is_unchoked = false,
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
    wanted.check(torrent)?;
    out.shutdown().await?;
    Ok(wanted.octets)
}

/// What is still to come.
struct Wanted {
    octets: Vec<u8>,
    missing: usize,
    is_unchoked: bool,
    ahead: VecDeque<Block>,
    under_way: usize,
}

impl Wanted {
    fn all_of(torrent: &Torrent) -> Self {
        let len = torrent.octets.len();
        let ahead = (0..len).step_by(BLOCK_BYTES).map(|at| Block {
            index: (at / torrent.piece_bytes) as u32,
            begin: (at % torrent.piece_bytes) as u32,
            bytes: BLOCK_BYTES.min(len - at) as u32,
        });
        Self { octets: vec![0; len], missing: len, is_unchoked: false, ahead: ahead.collect(), under_way: 0 }
    }

    /// What may be asked for now, as octets for the wire.
    fn requests(&mut self) -> Vec<u8> {
        let room = if self.is_unchoked { PIPELINE - self.under_way } else { 0 };
        let now = self.ahead.drain(..room.min(self.ahead.len()));
        let octets: Vec<Vec<u8>> = now.map(|block| Message::Request(block).octets()).collect();
        self.under_way += octets.len();
        octets.concat()
    }

    fn take(&mut self, torrent: &Torrent, index: u32, begin: u32, octets: &[u8]) -> io::Result<()> {
        let at = index as usize * torrent.piece_bytes + begin as usize;
        let place = self.octets.get_mut(at..at + octets.len());
        place.ok_or_else(|| io::Error::other("a block beyond the end"))?.copy_from_slice(octets);
        self.missing = self.missing.saturating_sub(octets.len());
        self.under_way = self.under_way.saturating_sub(1);
        Ok(())
    }

    fn check(&self, torrent: &Torrent) -> io::Result<()> {
        let pieces = self.octets.chunks(torrent.piece_bytes).map(data::digest);
        match pieces.zip(&torrent.digests).position(|(found, &expected)| found != expected) {
            Some(piece) => Err(io::Error::other(format!("piece {piece} has a wrong digest"))),
            None => Ok(()),
        }
    }
}
