//! One member of a swarm, for one torrent, as a state machine.
//!
//! An [`Engine`] is told of the time, of connections and of the octets that they bring, of what the tracker and the disk
//! answer; it is asked for [`Action`]s, for octets to send ([`Engine::poll_transmit`]) and for its next deadline.
//!
//! # Drive rule
//! Mutate, then drain: after any call that hands something in, take actions until there are none ([`Engine::poll_action`]),
//! then octets until there are none, then ask [`Engine::poll_timeout`].
//!
//! # Connections
//! The engine asks for a connection with [`Action::Connect`] and hears [`Engine::connected`] or [`Engine::closed`]; one
//! that a peer has opened is offered to [`Engine::accept`]. After each turn the driver says how many octets the transport
//! takes ([`Engine::set_room`]); nothing is queued here beyond control messages and the references of requested blocks.
//!
//! # Content
//! Blocks are not held here. What arrives goes out at once as [`Action::Store`]; once all of a piece is stored there is
//! [`Action::Check`], answered by [`Engine::checked`]. What is sent is named by its place ([`Chunk::Content`]), and the
//! driver supplies the octets: from a disk, or a pattern in simulation.
//!
//! # Sources
//! Servers that have the content, and give any run of it, are no peers: [`Engine::add_source`], [`Engine::claim`] and
//! [`Engine::delivered`] are for who fetches from them.
//!
//! # Extensions
//! The extension protocol's handshake is composed by the driver ([`Setup::extended`]), the peer's is read here
//! ([`Action::Introduced`]); other messages pass through ([`Action::Extended`], [`Engine::send_extended`]). Whoever knows of a way to a peer
//! that could not be reached ([`Action::Unreached`]) has it called ([`Engine::punch`]). A magnet link's metadata has to be fetched before there is an
//! engine, since the number of pieces is not known until then: [`crate::wire`] is enough for that.

mod address;
mod blame;
mod chatter;
mod chokes;
mod conn;
mod crowd;
mod dial;
mod fast;
mod grants;
mod hearsay;
mod hosts;
mod inbound;
mod life;
mod near;
mod offers;
mod outbound;
mod refusals;
mod requests;
mod shares;
mod slots;
mod snubs;
mod sources;
mod stage;
mod turnover;
mod twins;

use crate::bitfield::Bitfield;
use crate::choker::Choker;
use crate::disposition::{Disposition, Transport};
use crate::extension::Extension;
use crate::family::PerFamily;
use crate::geometry::Geometry;
use crate::limiter::Limiter;
use crate::picker::{Begun, Picker};
use crate::profile::Profile;
use crate::wire::{BlockRef, HashRange, Reserved, WireError};
pub use address::PeerAddress;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cede_units::{Duration, Instant, Stream};
use cede_wire::Payload;
use conn::Conn;
pub use conn::{ConnId, ConnView};
pub use crowd::neighbourhood;
use dial::Dials;
pub use outbound::Hearers;
use shares::Shares;
use sources::Source;
pub use sources::SourceId;

/// What an engine is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How the torrent is cut.
    pub geometry: Geometry,
    /// Its name on the wire.
    pub info_hash: [u8; 20],
    /// Ours.
    pub peer_id: [u8; 20],
    /// What is here already, and checked.
    pub have: Bitfield,
    /// How it behaves.
    pub profile: Profile,
    /// Which transports it attempts and accepts.
    pub disposition: Disposition,
    /// Octets per second that it sends at most.
    pub upload_limit: Option<u64>,
    /// The extension handshake, where the extension protocol is spoken.
    pub extended: Option<Vec<u8>>,
    /// Tell of unchokes and chokes ([`Action::Unchoked`]).
    pub notes: bool,
    /// All random numbers come from here.
    pub random: Stream,
}

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The transport failed or the peer closed.
    Transport,
    /// What came was no BitTorrent, or too much of it.
    Wire(WireError),
    /// Another torrent.
    OtherTorrent,
    /// We have met ourselves.
    Ourselves,
    /// There is a better connection to the same peer.
    Duplicate,
    /// Neither wants anything of the other.
    BothComplete,
    /// The peer broke the protocol's rules.
    Misbehaved,
    /// The peer sent data that was not the torrent's.
    Banned,
    /// Nothing was heard for too long.
    Silent,
    /// It was good for nothing, and others want its place.
    Crowded,
    /// It was unchoked, and neither asked for anything nor took anything for too long.
    AsksNothing,
}

/// What a tracker is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnnounceEvent {
    /// The first announce.
    Started,
    /// Everything is here now.
    Completed,
    /// More peers are wanted.
    More,
    /// We are reached elsewhere than was told. The engine does not know of that: it is its host's to say.
    Moved,
}

/// What an engine wants done.
#[derive(Clone, Debug)]
pub enum Action<A> {
    /// Open a connection; answer with [`Engine::connected`] or [`Engine::closed`].
    Connect {
        /// Its name from now on.
        conn: ConnId,
        /// Whom to.
        address: A,
        /// Over what.
        transport: Transport,
    },
    /// Close a connection, once what was taken from [`Engine::poll_transmit`] has left. The engine knows it no more.
    Close {
        /// Which.
        conn: ConnId,
        /// Why.
        reason: CloseReason,
    },
    /// Octets of a block arrived: put them there.
    Store {
        /// From whom, if from a peer.
        conn: Option<ConnId>,
        /// Of which block.
        block: BlockRef,
        /// Where in the block they begin.
        at: u32,
        /// They.
        payload: Payload,
    },
    /// A piece is whole: check it and answer with [`Engine::checked`].
    Check {
        /// Which.
        piece: u32,
    },
    /// Ask the tracker, and answer with [`Engine::add_peers`].
    Announce {
        /// What has happened.
        event: AnnounceEvent,
        /// How many peers are wanted.
        want: u32,
    },
    /// The peer's handshake has come and the connection stays.
    Ready {
        /// Which.
        conn: ConnId,
        /// Who.
        peer_id: [u8; 20],
        /// What it understands.
        reserved: Reserved,
    },
    /// The peer's handshake of the extension protocol has come, the first or another.
    Introduced {
        /// Whose.
        conn: ConnId,
        /// What it says.
        extension: Extension,
    },
    /// How much may be read of a connection is another now, as TCP is held back beside uTP ([`crate::mixed`]): ask
    /// [`Engine::may_read`]. Whoever reads on all the same does no harm here.
    MayRead {
        /// Of which.
        conn: ConnId,
    },
    /// A message of an extension.
    Extended {
        /// From whom.
        conn: ConnId,
        /// Under which id, not 0.
        id: u8,
        /// The message.
        payload: Vec<u8>,
    },
    /// A peer asks for hashes of a v2 torrent: answer with [`Engine::send`].
    HashRequest {
        /// Who.
        conn: ConnId,
        /// Which.
        range: HashRange,
    },
    /// The peer's DHT node listens at this port; it is believed a few times.
    DhtPort {
        /// From whom.
        conn: ConnId,
        /// Where.
        port: u16,
    },
    /// A peer could not be reached in any way that we attempt.
    Unreached {
        /// Whom we called.
        address: A,
    },
    /// A peer sent bad data and is not to be talked to any more.
    Banned {
        /// Who.
        address: A,
    },
    /// We unchoked a peer or choked it again, where [`Setup::notes`] asks for it.
    Unchoked {
        /// Whom.
        conn: ConnId,
        /// Which of both.
        unchoked: bool,
        /// It had requests waiting.
        busy: bool,
    },
    /// Everything wanted is here.
    Complete,
}

/// Octets to send.
#[derive(Clone, Debug)]
pub enum Chunk {
    /// These.
    Octets(Payload),
    /// A run of the torrent's content.
    Content {
        /// Where in the torrent it begins.
        offset: u64,
        /// How many octets.
        len: u32,
    },
}

/// What an engine has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Octets of blocks received, by transport ([`Transport::ALL`]).
    pub downloaded: [u64; 2],
    /// Octets of the content received from sources that are no peers.
    pub downloaded_web: u64,
    /// Octets of blocks sent, by transport.
    pub uploaded: [u64; 2],
    /// Octets of blocks that were here already.
    pub redundant: u64,
    /// Octets of blocks that were not here and came to nothing all the same: the rest did not come, or all of it came from another
    /// peer first. What was received is what is here, and this, and what is redundant, where no piece was bad.
    pub cut: u64,
    /// Pieces that turned out bad.
    pub bad_pieces: u32,
    /// Connections that were ready, by transport.
    pub connections: [u32; 2],
    /// HAVE messages for open connections; those that still wait when a connection ends do not leave.
    pub haves_sent: u64,
    /// REQUEST messages sent.
    pub requests_sent: u64,
    /// Requests refused for being too many or impossible.
    pub requests_refused: u64,
}

impl Totals {
    /// Octets of the content received, from whomever.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.downloaded.iter().sum::<u64>() + self.downloaded_web
    }

    /// Octets of blocks sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.uploaded.iter().sum()
    }
}

impl core::ops::AddAssign for Totals {
    fn add_assign(&mut self, more: Self) {
        for at in 0..2 {
            self.downloaded[at] += more.downloaded[at];
            self.uploaded[at] += more.uploaded[at];
            self.connections[at] += more.connections[at];
        }
        self.downloaded_web += more.downloaded_web;
        self.redundant += more.redundant;
        self.cut += more.cut;
        self.bad_pieces += more.bad_pieces;
        self.haves_sent += more.haves_sent;
        self.requests_sent += more.requests_sent;
        self.requests_refused += more.requests_refused;
    }
}

/// What is made of a message: something may be wrong with the peer.
type Verdict = Result<(), CloseReason>;

/// One member of a swarm. `A` is whatever the driver calls peers by.
#[derive(Debug)]
pub struct Engine<A> {
    geometry: Geometry,
    profile: Profile,
    disposition: Disposition,
    info_hash: [u8; 20],
    /// What a hybrid torrent is called by those who know its v2 side.
    info_hash_v2: Option<[u8; 20]>,
    peer_id: [u8; 20],
    greeting: Greeting,
    notes: bool,
    picker: Picker,
    choker: Choker,
    limiter: Limiter,
    shares: Shares,
    random: Stream,
    slots: Vec<Option<Box<Conn<A>>>>,
    sources: Vec<Source>,
    generation: u32,
    /// Ready connections in the choker's order.
    list: Vec<u32>,
    /// Connections of any kind.
    open: u32,
    dials: Dials<A>,
    /// Connections with something to send and room for it.
    ring: VecDeque<u32>,
    /// Connections with control messages that wait for no turn.
    prompt: VecDeque<u32>,
    /// Whose turn it is, and how many octets are left of it.
    turn: Option<(u32, u32)>,
    actions: VecDeque<Action<A>>,
    scratch: Vec<BlockRef>,
    timers: Timers,
    complete: bool,
    /// Peers are told of a few pieces each (BEP 16).
    is_super_seed: bool,
    totals: Totals,
}

/// What newcomers hear of us beside what we have, where there is something to say.
#[derive(Debug)]
struct Greeting {
    /// The extension handshake.
    extended: Option<Vec<u8>>,
    /// Where our nodes of the distributed hash table listen.
    dht_ports: PerFamily<Option<u16>>,
}

/// When what is due.
#[derive(Debug)]
struct Timers {
    round_at: Instant,
    tick_at: Instant,
    announce_at: Instant,
}

/// The time between looks at silence, snubs and pipelines.
const TICK: Duration = Duration::from_secs(1);

impl<A: PeerAddress> Engine<A> {
    /// A member that knows nobody yet.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let Setup { geometry, profile, mut random, .. } = setup;
        let choices = Stream::named(random.next_u64(), "picker");
        let picker = Picker::new(geometry.clone(), profile.picker, setup.have, choices);
        Self {
            complete: picker.is_complete(),
            picker,
            geometry,
            profile,
            disposition: setup.disposition,
            info_hash: setup.info_hash,
            info_hash_v2: None,
            peer_id: setup.peer_id,
            greeting: Greeting { extended: setup.extended, dht_ports: PerFamily::default() },
            notes: setup.notes,
            choker: Choker::new(profile.choker),
            limiter: Limiter::new(profile.limiter, setup.upload_limit),
            shares: Shares::new(profile.mixed),
            random,
            slots: Vec::new(),
            sources: Vec::new(),
            generation: 0,
            list: Vec::new(),
            open: 0,
            dials: Dials::new(&profile),
            ring: VecDeque::new(),
            prompt: VecDeque::new(),
            turn: None,
            actions: VecDeque::new(),
            scratch: Vec::new(),
            timers: Timers { round_at: Instant::NEVER, tick_at: Instant::NEVER, announce_at: Instant::NEVER },
            is_super_seed: false,
            totals: Totals::default(),
        }
    }

    /// The torrent is a hybrid one: peers may call by the beginning of its v2 hash (BEP 52), and are answered by that. Those that
    /// we call by its v1 hash may answer so as well, as libtorrent does to whoever has asked it for the dictionary by that one.
    pub const fn set_hybrid(&mut self, info_hash_v2: [u8; 20]) {
        self.info_hash_v2 = Some(info_hash_v2);
    }

    /// Joins the swarm: the tracker is asked, and rounds begin.
    pub fn start(&mut self, now: Instant) {
        self.timers.round_at = now + self.profile.choker.interval();
        self.timers.tick_at = now + TICK;
        self.timers.announce_at = now + self.profile.reannounce;
        self.act(Action::Announce { event: AnnounceEvent::Started, want: self.profile.want_peers });
    }

    /// What the torrent looks like.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What is here and has been checked.
    #[must_use]
    pub const fn have(&self) -> &Bitfield {
        self.picker.have()
    }

    /// What is wanted, here or not.
    #[must_use]
    pub const fn wanted(&self) -> &Bitfield {
        self.picker.wanted()
    }

    /// Whether a piece is wanted and not here.
    #[must_use]
    pub fn lacks(&self, piece: u32) -> bool {
        self.picker.lacks(piece)
    }

    /// Whether peers are to be told that nothing more is wanted (BEP 21). Who seems to have nothing would be left at once by those that
    /// have the few pieces that they were told of.
    #[must_use]
    pub const fn is_upload_only(&self) -> bool {
        self.complete && !self.is_super_seeding()
    }

    /// Whether everything wanted is here.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// What has been done so far.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Octets that came of blocks and pieces that are not whole: lost to whoever begins again with what is checked.
    #[must_use]
    pub fn unfinished_bytes(&self) -> u64 {
        let parts = self.slots.iter().flatten().map(|conn| u64::from(conn.tally.part));
        let parts = parts.chain(self.sources.iter().map(Source::part));
        self.picker.unfinished_bytes() + parts.sum::<u64>()
    }

    /// What is here of pieces that are not known to be whole: what another engine may [`Engine::resume`].
    #[must_use]
    pub fn unfinished(&self) -> Vec<Begun> {
        self.picker.unfinished()
    }

    /// Takes up a piece where an earlier run ended. Its blocks are believed until the piece is whole and checked; where it turns out
    /// bad nobody is banned for it. Whether it was taken up: it must have as many blocks, and be neither here nor begun.
    pub fn resume(&mut self, begun: &Begun) -> bool {
        self.picker.resume(begun)
    }

    /// How many peers have a piece.
    #[must_use]
    pub fn availability(&self, piece: u32) -> u32 {
        self.picker.availability(piece)
    }

    /// Rounds of the choker so far.
    #[must_use]
    pub const fn rounds(&self) -> u64 {
        self.choker.round()
    }

    /// Ready connections.
    pub fn connections(&self) -> impl Iterator<Item = ConnView<A>> + '_ {
        self.list.iter().filter_map(|&index| self.slots[index as usize].as_deref()).map(Conn::view)
    }

    /// Who is at the other end of a ready connection.
    #[must_use]
    pub fn peer_at(&self, conn: ConnId) -> Option<A> {
        let found = self.peek(conn.index).filter(|found| found.id == conn && found.stage.is_ready());
        found.map(|found| found.address)
    }

    /// Changes the upload limit in octets per second.
    pub const fn set_upload_limit(&mut self, limit: Option<u64>) {
        self.limiter.set(limit);
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action<A>> {
        let action = self.actions.pop_front();
        if action.is_none() {
            // An empty queue begins again where it began, in memory that is near.
            self.actions.clear();
        }
        action
    }

    /// Whether [`Engine::poll_action`] has one.
    #[must_use]
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// When [`Engine::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let mut at = self.timers.round_at.min(self.timers.tick_at).min(self.timers.announce_at);
        if (!self.ring.is_empty() || self.turn.is_some()) && self.limiter.limit().is_some() {
            at = at.min(self.limiter.next_turn());
        }
        at = at.min(self.shares.next_at());
        (at != Instant::NEVER).then_some(at)
    }

    fn act(&mut self, action: Action<A>) {
        self.actions.push_back(action);
    }

    fn conn(&mut self, id: ConnId) -> Option<&mut Conn<A>> {
        self.slots.get_mut(id.index as usize)?.as_deref_mut().filter(|conn| conn.id == id)
    }

    /// As [`Self::at`], to be looked at.
    fn peek(&self, index: u32) -> Option<&Conn<A>> {
        self.slots.get(index as usize)?.as_deref()
    }

    fn at(&mut self, index: u32) -> Option<&mut Conn<A>> {
        self.slots.get_mut(index as usize)?.as_deref_mut()
    }
}
