//! From a magnet link to a torrent: the info dictionary (BEP 9), and the hashes of pieces that are not in it (BEP 52), are fetched
//! from peers before there is an engine.

use crate::agree::Encryption;
use crate::announce::until;
use crate::calls::{Calls, Miss};
use crate::link::Link;
use crate::patience::Asked;
use crate::reach::Reach;
use crate::session::Listener;
use cede_bt::extension::{Extension, Hearsay, UT_METADATA};
use cede_bt::metadata::{self, Fetch, Progress, Wanted};
use cede_bt::metainfo::{self, Info};
use cede_bt::wire::{Decoder, Handshake, HashRange, Item, Message, Reserved, WireLimits};
use cede_bt::{Disposition, Transport, layers, merkle};
use cede_wire::Payload;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Peers that are remembered.
const MAX_KNOWN: usize = 2_000;
/// What one peer takes at most.
const PATIENCE: Duration = Duration::from_secs(60);
/// Who says nothing to the point for so long has nothing to say.
const SILENCE: Duration = Duration::from_secs(10);
/// Who could not tell is asked again after that, and twice that, up to the limit.
const AGAIN: Duration = Duration::from_secs(5);
const MAX_AGAIN: Duration = Duration::from_secs(30 * 60);
/// Peers have so long to notice that a connection ends.
const PARTING: Duration = Duration::from_secs(1);
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
    /// Whether connections are enciphered. What may be is, for peers that hang up on the clear.
    pub encryption: Encryption,
    /// Where uTP is to be had. Best at a port of its own: libtorrent tells peers by address and port, and takes no second
    /// connection from a session at the same ones as long as it has not done with the first.
    pub listener: Option<Rc<Listener>>,
    /// What becomes of calls.
    pub calls: Calls,
}

impl Seeker {
    /// In which ways a peer is tried, the first first.
    fn ways(&self) -> Vec<(Encryption, Transport)> {
        let encryptions: &[Encryption] = match self.encryption {
            Encryption::Allow => &[Encryption::Off, Encryption::Require],
            Encryption::Prefer => &[Encryption::Require, Encryption::Off],
            Encryption::Require => &[Encryption::Require],
            Encryption::Off => &[Encryption::Off],
        };
        let transports = || Transport::ALL.into_iter().filter(|t| self.disposition.attempts(*t));
        encryptions.iter().flat_map(|e| transports().map(|t| (*e, t))).collect()
    }
}

/// What a link stands for, or why that cannot be used.
pub type Told = Result<Info, metainfo::Error>;

/// Fetches the torrent from whoever has it among the peers that come in. Also the peers that came, for the session that
/// follows, first the one that has told: it is there. `None` once no more peers can come and all have failed. Must run within a [`tokio::task::LocalSet`].
pub async fn fetch(
    seeker: &Seeker,
    peers: &mut UnboundedReceiver<Vec<SocketAddr>>,
) -> (Option<Told>, Vec<SocketAddr>) {
    let (over, is_over) = watch::channel(false);
    let mut search = Search::new(seeker.clone(), is_over);
    let mut is_open = true;
    let told = loop {
        let next = search.ask_others();
        // Those that have failed are waited for as long as others may come.
        if !is_open && search.answers.is_empty() {
            break None;
        }
        tokio::select! {
            Some(answer) = search.answers.join_next() => {
                if let Some(told) = answer.ok().and_then(|answer| search.through(answer)) {
                    break Some(told);
                }
            }
            more = peers.recv(), if is_open => match more {
                Some(more) => search.turns.extend(more),
                None => is_open = false,
            },
            () = until(next) => {}
        }
    };
    let _ = over.send(true);
    let answers = &mut search.answers;
    let _ = tokio::time::timeout(PARTING, async { while answers.join_next().await.is_some() {} }).await;
    let teller = search.teller;
    let others = search.turns.known.into_iter().filter(|peer| Some(*peer) != teller);
    (told, teller.into_iter().chain(others).collect())
}

/// What a peer has said that was asked since then.
type Said = (Turn, Instant, io::Result<Told>);

/// Who is asked, and who is to be.
struct Search {
    seeker: Seeker,
    is_over: watch::Receiver<bool>,
    turns: Turns,
    asked: Asked,
    answers: JoinSet<Said>,
    /// Who has told.
    teller: Option<SocketAddr>,
}

impl Search {
    fn new(seeker: Seeker, is_over: watch::Receiver<bool>) -> Self {
        let (turns, asked) = (Turns::default(), Asked::default());
        Self { seeker, is_over, turns, asked, answers: JoinSet::new(), teller: None }
    }

    /// Asks as many as may be; when others may, where there are any.
    fn ask_others(&mut self) -> Option<Instant> {
        let now = Instant::now();
        while self.asked.room_at(now).is_some_and(|at| at <= now)
            && let Some(turn) = self.turns.next(now)
        {
            self.asked.begin(now);
            let answer = ask(self.seeker.clone(), turn.peer, self.is_over.clone());
            self.answers.spawn_local(async move { (turn, now, answer.await) });
        }
        Some(self.asked.room_at(now)?.max(self.turns.due_at(now)?))
    }

    fn through(&mut self, (turn, since, answer): Said) -> Option<Told> {
        self.asked.end(since);
        match answer {
            Ok(told) => {
                self.teller = Some(turn.peer);
                Some(told)
            }
            Err(_) => {
                self.turns.put_off(turn, Instant::now());
                None
            }
        }
    }
}

/// A peer that is to be asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Turn {
    peer: SocketAddr,
    /// How long it is left alone if it cannot tell.
    pause: Duration,
}

/// Whose turn it is to be asked. Who cannot tell may be looking for the same, or be back later.
///
/// Those whom one answer names wait by themselves, and one of each is asked by turns: however many somebody names, whoever else names one
/// does not wait for all of them.
#[derive(Default)]
struct Turns {
    known: HashSet<SocketAddr>,
    fresh: VecDeque<VecDeque<SocketAddr>>,
    /// Those that have failed, by when they are asked again.
    later: BTreeSet<(Instant, Turn)>,
}

impl Turns {
    fn extend(&mut self, peers: Vec<SocketAddr>) {
        let mut named = VecDeque::new();
        for peer in peers.into_iter().take(MAX_KNOWN) {
            if self.known.insert(peer) {
                named.push_back(peer);
            }
        }
        if !named.is_empty() {
            self.fresh.push_back(named);
        }
        while self.known.len() > MAX_KNOWN && self.forget_one() {}
    }

    /// Where too many are known, whoever could not tell makes room, first of all those that are left alone for the longest time; where there
    /// is none, one of those that wait with the most others.
    fn forget_one(&mut self) -> bool {
        let failed = self.later.pop_last().map(|(_, turn)| turn.peer);
        let longest = || self.fresh.iter_mut().max_by_key(|named| named.len())?.pop_back();
        let forgotten = failed.or_else(longest);
        forgotten.is_some_and(|peer| self.known.remove(&peer))
    }

    /// The next, where there is one: those that were never asked come first.
    fn next(&mut self, now: Instant) -> Option<Turn> {
        while let Some(mut named) = self.fresh.pop_front() {
            if let Some(peer) = named.pop_front() {
                self.fresh.push_back(named);
                return Some(Turn { peer, pause: AGAIN });
            }
        }
        let is_due = self.next_at().is_some_and(|at| at <= now);
        if is_due { self.later.pop_first().map(|(_, turn)| turn) } else { None }
    }

    /// When somebody is to be asked.
    fn due_at(&self, now: Instant) -> Option<Instant> {
        let is_fresh = self.fresh.iter().any(|named| !named.is_empty());
        if is_fresh { Some(now) } else { self.next_at() }
    }

    /// When the first of those that have failed is asked again.
    fn next_at(&self) -> Option<Instant> {
        self.later.first().map(|(at, _)| *at)
    }

    fn put_off(&mut self, turn: Turn, now: Instant) {
        let pause = (turn.pause * 2).min(MAX_AGAIN);
        self.later.insert((now + turn.pause, Turn { pause, ..turn }));
    }
}

async fn ask(seeker: Seeker, peer: SocketAddr, mut is_over: watch::Receiver<bool>) -> io::Result<Told> {
    tokio::time::timeout(PATIENCE, async {
        let mut last = io::Error::from(io::ErrorKind::Unsupported);
        let mut unreached = HashSet::new();
        for (encryption, transport) in seeker.ways() {
            if unreached.contains(&transport) {
                continue;
            }
            let (miss, error) = match ask_one_way(&seeker, peer, (encryption, transport), &mut is_over).await
            {
                Ok(told) => return Ok(told),
                Err(why) => why,
            };
            seeker.calls.missed(peer, transport, miss);
            if miss == Miss::Ignorant {
                return Err(error);
            }
            // Whoever hangs up on the clear may take what is enciphered; one that is not there does not.
            if encryption == Encryption::Off && miss != Miss::HungUp {
                unreached.insert(transport);
            }
            last = error;
        }
        Err(last)
    })
    .await?
}

/// Over one transport, enciphered or not; why it cannot tell, or was not reached.
async fn ask_one_way(
    seeker: &Seeker,
    peer: SocketAddr,
    (encryption, transport): (Encryption, Transport),
    is_over: &mut watch::Receiver<bool>,
) -> Result<Told, (Miss, io::Error)> {
    let (listener, info_hash) = (seeker.listener.as_deref(), seeker.info_hash);
    let reach = Reach { listener, info_hash, encryption, is_deaf: false };
    let opened = tokio::select! {
        opened = reach.open(peer, transport) => opened,
        _ = is_over.wait_for(|is_over| *is_over) => return Err((Miss::Ignorant, io::ErrorKind::Interrupted.into())),
    };
    let link = opened.map_err(|missed| (missed.miss(seeker.encryption), missed.error()))?;
    let told = converse_until(seeker, link, is_over).await;
    told.map_err(|error| (if is_deaf(&error) { Miss::HungUp } else { Miss::Ignorant }, error))
}

/// One peer, until it has told everything or somebody else has; then the connection is ended well.
async fn converse_until(
    seeker: &Seeker,
    mut link: Link,
    is_over: &mut watch::Receiver<bool>,
) -> io::Result<Told> {
    let outcome = tokio::select! {
        outcome = converse(seeker, &mut link) => outcome,
        _ = is_over.wait_for(|is_over| *is_over) => Err(io::ErrorKind::Interrupted.into()),
    };
    if !outcome.as_ref().is_err_and(is_deaf) {
        part(link).await;
    }
    outcome
}

/// Ends a connection and waits until the peer has noticed: as long as it has not, many refuse the one that the session opens.
async fn part(mut link: Link) {
    let parting = async {
        let _ = poll_fn(|cx| link.stream.poll_shutdown(cx)).await;
        let mut buffer = [0; 2048];
        while link.receive(&mut buffer).await.is_ok_and(|n| n > 0) {}
    };
    let _ = tokio::time::timeout(PARTING, parting).await;
}

/// The peer has hung up, as those do that want another form of encryption.
fn is_deaf(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

/// One peer, from the handshake to the last hash.
async fn converse(seeker: &Seeker, link: &mut Link) -> io::Result<Told> {
    let reserved = Reserved::default().with(Reserved::EXTENDED).with(Reserved::FAST);
    let (info_hash, peer_id) = (seeker.info_hash, seeker.peer_id);
    link.send(&mut Handshake { reserved, info_hash, peer_id }.encode()).await?;
    let mut talk = Talk { seeker, fetch: None, hashes: None, name: 0, output: Vec::new() };
    let mut decoder = Decoder::new(WireLimits::default());
    let mut buffer = vec![0; READ_BYTES];
    let mut heard_at = Instant::now();
    loop {
        let n = tokio::time::timeout_at(heard_at + SILENCE, link.receive(&mut buffer)).await??;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut input = Payload::copy_from(&buffer[..n]);
        while let Some(item) = decoder.next(&mut input).map_err(io::Error::other)? {
            if is_to_the_point(&item) {
                heard_at = Instant::now();
            }
            if let Some(told) = talk.on(&item)? {
                return Ok(told);
            }
        }
        link.send(&mut std::mem::take(&mut talk.output)).await?;
    }
}

/// Whether it may lead to what is asked for. Whoever says nothing else is silent: that it is alive helps nobody.
const fn is_to_the_point(item: &Item) -> bool {
    matches!(item, Item::Handshake(_) | Item::Message(Message::Extended(..) | Message::Hashes(..)))
}

struct Talk<'a> {
    seeker: &'a Seeker,
    fetch: Option<Fetch>,
    /// The dictionary has come, and these hashes are still to come.
    hashes: Option<(Info, layers::Fetch)>,
    /// The peer's id for messages about metadata.
    name: u8,
    output: Vec<u8>,
}

impl Talk<'_> {
    fn on(&mut self, item: &Item) -> io::Result<Option<Told>> {
        match item {
            Item::Handshake(handshake) => self.on_handshake(handshake).map(|()| None),
            Item::Message(Message::Extended(0, payload)) => self.on_extension(payload).map(|()| None),
            Item::Message(Message::Extended(UT_METADATA, payload)) => self.on_metadata(payload),
            Item::Message(Message::Hashes(range, hashes)) => self.on_hashes(range, hashes),
            Item::Message(Message::HashReject(_)) if self.hashes.is_some() => Err(useless()),
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
        let ours = Extension::ours(&self.seeker.client, None, None, Hearsay::default(), None);
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

    fn on_metadata(&mut self, payload: &[u8]) -> io::Result<Option<Told>> {
        let (Some(fetch), Some(message)) = (&mut self.fetch, metadata::Message::parse(payload)) else {
            return Ok(None);
        };
        match fetch.receive(&message) {
            Progress::Ask(parts) => {
                self.request(&parts);
                Ok(None)
            }
            Progress::Done(raw) => self.on_dictionary(&raw),
            Progress::Failed => Err(useless()),
        }
    }

    /// The dictionary is what was asked for. If it cannot be used, nobody else's can.
    fn on_dictionary(&mut self, raw: &[u8]) -> io::Result<Option<Told>> {
        let info = match Info::parse(raw) {
            Ok(info) if info.lacks_hashes() => info,
            told => return Ok(Some(told)),
        };
        let mut fetch = layers::Fetch::begin(&info);
        self.ask(fetch.due());
        self.hashes = Some((info, fetch));
        Ok(None)
    }

    fn on_hashes(&mut self, range: &HashRange, hashes: &[merkle::Hash]) -> io::Result<Option<Told>> {
        let Some((mut info, mut fetch)) = self.hashes.take() else { return Ok(None) };
        match fetch.receive(range, hashes) {
            layers::Progress::Ask(ranges) => {
                self.ask(ranges);
                self.hashes = Some((info, fetch));
                Ok(None)
            }
            layers::Progress::Done => Ok(Some(info.set_layers(|root| fetch.layer(root)).map(|()| info))),
            layers::Progress::Failed => Err(useless()),
        }
    }

    fn ask(&mut self, ranges: Vec<HashRange>) {
        ranges.into_iter().for_each(|range| Message::HashRequest(range).encode(&mut self.output));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_could_not_tell_is_asked_again_later_and_later() {
        let peer = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let (mut turns, began) = (Turns::default(), Instant::now());
        turns.extend(vec![peer(1), peer(2), peer(1)]);
        let mut at = began;
        for pause in [AGAIN, AGAIN * 2, AGAIN * 4] {
            let turn = turns.next(at).unwrap();
            assert_eq!((turn.peer, turn.pause), (peer(1), pause));
            turns.put_off(turn, at);
            turns.extend(vec![peer(1)]);
            // The other was never asked, or is due at the same time.
            turns.next(at).map(|turn| turns.put_off(turn, at)).unwrap();
            assert_eq!(turns.next(at + pause - Duration::from_nanos(1)), None);
            at += pause;
            assert_eq!(turns.next_at(), Some(at));
        }
        for _ in 0..20 {
            let turn = turns.next(at).unwrap();
            turns.put_off(turn, at);
            at = turns.next_at().unwrap();
        }
        assert_eq!(turns.next(at).unwrap().pause, MAX_AGAIN);
    }

    fn many(host: u8) -> Vec<SocketAddr> {
        (1..=MAX_KNOWN as u16).map(|port| SocketAddr::from(([192, 0, 2, host], port))).collect()
    }

    #[test]
    fn whoever_names_many_keeps_nobody_else_waiting() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        turns.extend(many(1));
        let other = SocketAddr::from(([203, 0, 113, 1], 1));
        turns.extend(vec![other]);
        turns.extend(many(2));
        let asked: Vec<_> = (0..3).filter_map(|_| turns.next(now)).map(|turn| turn.peer).collect();
        assert!(asked.contains(&other), "{asked:?}");
        assert_eq!(turns.known.len(), MAX_KNOWN);
    }

    #[test]
    fn those_that_could_not_tell_make_room() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        turns.extend(many(1));
        while let Some(turn) = turns.next(now) {
            turns.put_off(turn, now);
        }
        turns.extend(many(2));
        let fresh = std::iter::from_fn(|| turns.next(now)).filter(|turn| many(2).contains(&turn.peer));
        assert_eq!(fresh.count(), MAX_KNOWN);
    }
}
