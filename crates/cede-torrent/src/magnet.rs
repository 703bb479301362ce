//! From a magnet link to a torrent: the info dictionary is fetched from peers (BEP 9) before there is an engine.

use crate::link::Stream;
use crate::session::{Listener, connect_by};
use cede_bt::extension::{Extension, UT_METADATA};
use cede_bt::metadata::{self, Fetch, Progress, Wanted};
use cede_bt::wire::{Decoder, Handshake, Item, Message, Reserved, WireLimits};
use cede_bt::{Disposition, Transport};
use cede_wire::Payload;
use std::collections::{HashSet, VecDeque};
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

/// Peers that are asked at once.
const MAX_ASKED: usize = 10;
/// Peers that are remembered.
const MAX_KNOWN: usize = 2_000;
/// What one peer takes at most.
const PATIENCE: Duration = Duration::from_secs(60);
/// Dictionaries come in messages of little more than 16 KiB; bitfields of torrents of unknown size may be longer.
const READ_BYTES: usize = 32 << 10;

/// Who asks, and for what.
#[derive(Clone)]
pub struct Seeker {
    /// The dictionary.
    pub wanted: Wanted,
    /// Its torrent, as it is called on the wire.
    pub info_hash: [u8; 20],
    /// Our name among peers.
    pub peer_id: [u8; 20],
    /// What we call ourselves.
    pub client: String,
    /// Which transports are attempted.
    pub disposition: Disposition,
    /// Where uTP is to be had.
    pub listener: Option<Rc<Listener>>,
}

/// Fetches the dictionary from whoever has it among the peers that come in. Also the peers that came, for the session that
/// follows. `None` once no more peers can come and all have failed. Must run within a [`tokio::task::LocalSet`].
pub async fn fetch(
    seeker: &Seeker,
    peers: &mut UnboundedReceiver<Vec<SocketAddr>>,
) -> (Option<Vec<u8>>, Vec<SocketAddr>) {
    let (mut known, mut queue, mut asked) = (HashSet::new(), VecDeque::new(), JoinSet::new());
    let mut is_open = true;
    let raw = loop {
        while asked.len() < MAX_ASKED
            && let Some(peer) = queue.pop_front()
        {
            asked.spawn_local(ask(seeker.clone(), peer));
        }
        tokio::select! {
            answer = next_answer(&mut asked) => match answer {
                Some(raw) => break Some(raw),
                None if !is_open && asked.is_empty() && queue.is_empty() => break None,
                None => {}
            },
            more = peers.recv(), if is_open => match more {
                Some(more) => {
                    let fresh = more.into_iter().filter(|peer| known.len() < MAX_KNOWN && known.insert(*peer));
                    queue.extend(fresh);
                }
                None => is_open = false,
            },
        }
        if !is_open && asked.is_empty() && queue.is_empty() {
            break None;
        }
    };
    (raw, known.into_iter().collect())
}

/// The next peer that is done, with the dictionary or without; nothing comes where none is asked.
async fn next_answer(asked: &mut JoinSet<io::Result<Vec<u8>>>) -> Option<Vec<u8>> {
    match asked.join_next().await {
        Some(answer) => answer.ok().and_then(Result::ok),
        None => pending().await,
    }
}

async fn ask(seeker: Seeker, peer: SocketAddr) -> io::Result<Vec<u8>> {
    tokio::time::timeout(PATIENCE, async {
        let mut last = io::Error::from(io::ErrorKind::Unsupported);
        for transport in Transport::ALL.into_iter().filter(|t| seeker.disposition.attempts(*t)) {
            match connect_by(seeker.listener.as_deref(), peer, transport).await {
                Ok(Stream::Tcp(stream)) => return converse(&seeker, stream).await,
                Ok(Stream::Utp(stream)) => return converse(&seeker, *stream).await,
                Err(error) => last = error,
            }
        }
        Err(last)
    })
    .await?
}

/// One peer, from the handshake to the dictionary.
async fn converse(
    seeker: &Seeker,
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
) -> io::Result<Vec<u8>> {
    let reserved = Reserved::default().with(Reserved::EXTENDED).with(Reserved::FAST);
    let (info_hash, peer_id) = (seeker.info_hash, seeker.peer_id);
    stream.write_all(&Handshake { reserved, info_hash, peer_id }.encode()).await?;
    let mut talk = Talk { seeker, fetch: None, name: 0, output: Vec::new() };
    let mut decoder = Decoder::new(WireLimits::default());
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut input = Payload::copy_from(&buffer[..n]);
        while let Some(item) = decoder.next(&mut input).map_err(io::Error::other)? {
            if let Some(raw) = talk.on(&item)? {
                return Ok(raw);
            }
        }
        stream.write_all(&std::mem::take(&mut talk.output)).await?;
    }
}

struct Talk<'a> {
    seeker: &'a Seeker,
    fetch: Option<Fetch>,
    /// The peer's id for messages about metadata.
    name: u8,
    output: Vec<u8>,
}

impl Talk<'_> {
    fn on(&mut self, item: &Item) -> io::Result<Option<Vec<u8>>> {
        match item {
            Item::Handshake(handshake) => self.on_handshake(handshake).map(|()| None),
            Item::Message(Message::Extended(0, payload)) => self.on_extension(payload).map(|()| None),
            Item::Message(Message::Extended(UT_METADATA, payload)) => self.on_metadata(payload),
            _ => Ok(None),
        }
    }

    fn on_handshake(&mut self, handshake: &Handshake) -> io::Result<()> {
        if handshake.info_hash != self.seeker.info_hash || !handshake.reserved.has(Reserved::EXTENDED) {
            return Err(useless());
        }
        // With the fast extension something has to be said of what we have, and first.
        if handshake.reserved.has(Reserved::FAST) {
            Message::HaveNone.encode(&mut self.output);
        }
        let ours = Extension::ours(&self.seeker.client, None, None, true);
        Message::Extended(0, ours).encode(&mut self.output);
        Ok(())
    }

    fn on_extension(&mut self, payload: &[u8]) -> io::Result<()> {
        let extension = Extension::parse(payload).unwrap_or_default();
        if self.fetch.is_some() {
            return Ok(());
        }
        self.name = extension.ut_metadata;
        let size = extension.metadata_size.filter(|_| self.name != 0).ok_or_else(useless)?;
        let mut fetch = Fetch::begin(self.seeker.wanted, size).ok_or_else(useless)?;
        self.request(&fetch.due());
        self.fetch = Some(fetch);
        Ok(())
    }

    fn on_metadata(&mut self, payload: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let (Some(fetch), Some(message)) = (&mut self.fetch, metadata::Message::parse(payload)) else {
            return Ok(None);
        };
        match fetch.receive(&message) {
            Progress::Ask(parts) => {
                self.request(&parts);
                Ok(None)
            }
            Progress::Done(raw) => Ok(Some(raw)),
            Progress::Failed => Err(useless()),
        }
    }

    fn request(&mut self, parts: &[u32]) {
        for part in parts {
            let request = metadata::Message::Request(*part).encode();
            Message::Extended(self.name, request).encode(&mut self.output);
        }
    }
}

fn useless() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the peer cannot give the metadata")
}
