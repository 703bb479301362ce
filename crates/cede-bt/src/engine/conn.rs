//! A connection as the engine knows it.

use super::chatter::Chatter;
use super::grants::Grants;
use super::offers::Offered;
use super::refusals::Refusals;
use super::stage::Stage;
use crate::bitfield::Bitfield;
use crate::disposition::{Contender, Transport};
use crate::mixed::Quota;
use crate::pipeline::{Pipeline, PipelineRule};
use crate::rate::RateMeasure;
use crate::snub::Wait;
use crate::wire::{BlockRef, Decoder, Reserved, WireLimits};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cede_units::Instant;

/// The name of a connection; never given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl ConnId {
    /// A small number, free again once the connection is gone: for tables beside the engine's.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

/// What is being sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) block: BlockRef,
    /// Octets of the message that have left, its head included.
    pub(super) sent: u32,
}

/// What waits to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// The transport hears nothing of who is to take it.
    pub(super) is_unheard: bool,
    pub(super) control: Vec<u8>,
    pub(super) sending: Option<Sending>,
    pub(super) uploads: VecDeque<BlockRef>,
    /// Octets that the transport takes.
    pub(super) room: u32,
    pub(super) in_ring: bool,
    /// It is among those whose control messages wait for no turn.
    pub(super) is_prompt: bool,
    /// What it is sent although it is choked.
    pub(super) granted: Grants,
    /// What it was told of, where we seem to have nothing.
    pub(super) offered: Option<Offered>,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.control.is_empty() && !self.has_blocks()
    }

    pub(super) fn has_blocks(&self) -> bool {
        self.sending.is_some() || !self.uploads.is_empty()
    }
}

/// What is counted, for the choker above all.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Tally {
    pub(super) last_data_at: Option<Instant>,
    /// Octets of the block that is coming which were of use.
    pub(super) part: u32,
    pub(super) round_download: u64,
    pub(super) round_upload: u64,
    pub(super) turn_upload: u64,
    pub(super) unchoke_round: u64,
    pub(super) unchoked_at: Option<Instant>,
    pub(super) optimistic_at: Option<Instant>,
    /// When it last asked for something.
    pub(super) requested_at: Option<Instant>,
    /// Slots that it had and did not use, since it last used one.
    pub(super) unused_slots: u32,
    /// How often it has said where its node of the distributed hash table listens.
    pub(super) ports_heard: u8,
    /// It says that it wants nothing of anybody (BEP 21).
    pub(super) upload_only: bool,
    /// What it says for nothing.
    pub(super) chatter: Chatter,
}

/// When something was last heard and said.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) heard_at: Instant,
    pub(super) said_at: Instant,
    /// Content moved, either way, or metadata was given; at first, when the connection began.
    pub(super) content_at: Instant,
}

/// A connection. Its parts stand in the order in which rounds, ticks and packets ask for them: most connections of a swarm are idle,
/// and what a look at one costs are the lines of memory that it reaches into.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Conn<A> {
    pub(super) id: ConnId,
    pub(super) address: A,
    pub(super) stage: Stage,
    pub(super) choking: bool,
    pub(super) interested: bool,
    pub(super) peer_choking: bool,
    pub(super) peer_interested: bool,
    pub(super) transport: Transport,
    pub(super) opened_by_us: bool,
    pub(super) fast: bool,
    /// It is late, under libtorrent's rule.
    pub(super) snubbed: bool,
    pub(super) we_sent_handshake: bool,
    /// It calls the torrent by the beginning of its v2 hash.
    pub(super) is_v2: bool,
    /// Pieces that it has and we lack.
    pub(super) wanted: u32,
    pub(super) times: Times,

    pub(super) tally: Tally,
    pub(super) owed: Vec<BlockRef>,
    pub(super) out: Outbox,
    pub(super) decoder: Decoder,
    pub(super) have: Bitfield,
    pub(super) download: RateMeasure,
    pub(super) upload: RateMeasure,
    pub(super) wait: Wait,
    /// Those of the blocks owed that are late and that others may be asked for.
    pub(super) overdue: Vec<BlockRef>,
    pub(super) allowed_fast: Vec<u32>,
    pub(super) refusals: Refusals,
    pub(super) pipeline: Pipeline,
    /// How many requests it answers at a time, once its handshake of the extension protocol has come.
    pub(super) request_limit: Option<u32>,
    pub(super) reserved: Reserved,
    pub(super) peer_id: [u8; 20],
    /// What it may move up and down while TCP is held back ([`crate::mixed`]).
    pub(super) quotas: [Quota; 2],
}

/// libtorrent's default for what a peer may owe; a peer can say otherwise (BEP 10, `reqq`).
pub(super) const REQUEST_LIMIT: u32 = 250;

impl<A: Copy> Conn<A> {
    pub fn new(id: ConnId, at: A, how: Contender, rule: PipelineRule, pieces: u32, now: Instant) -> Self {
        Self {
            id,
            address: at,
            transport: how.transport,
            opened_by_us: how.opened_by_us,
            stage: Stage::Dialling,
            decoder: Decoder::new(WireLimits::of(pieces)),
            peer_id: [0; 20],
            reserved: Reserved::default(),
            fast: false,
            we_sent_handshake: false,
            is_v2: false,
            out: Outbox::default(),
            have: Bitfield::none(pieces),
            wanted: 0,
            choking: true,
            interested: false,
            peer_choking: true,
            peer_interested: false,
            owed: Vec::new(),
            overdue: Vec::new(),
            wait: Wait::new(now),
            snubbed: false,
            allowed_fast: Vec::new(),
            refusals: Refusals::default(),
            request_limit: None,
            quotas: [Quota::NONE; 2],
            pipeline: Pipeline::new(rule),
            download: RateMeasure::new(now),
            upload: RateMeasure::new(now),
            tally: Tally::default(),
            times: Times { heard_at: now, said_at: now, content_at: now },
        }
    }

    /// Since when it could have asked for something and has not: it is unchoked and wants something, and is owed nothing.
    pub(super) fn asks_nothing_since(&self) -> Option<Instant> {
        let could_ask = !self.choking && self.peer_interested && !self.out.has_blocks();
        self.tally.unchoked_at.max(self.tally.requested_at).filter(|_| could_ask)
    }

    /// It wants nothing of anybody, by what it has or by its own word.
    pub(super) fn is_sated(&self) -> bool {
        self.tally.upload_only || self.have.is_full()
    }

    pub(super) const fn contender(&self) -> Contender {
        Contender { transport: self.transport, opened_by_us: self.opened_by_us }
    }

    /// What can be seen from outside.
    pub(super) fn view(&self) -> ConnView<A> {
        ConnView {
            id: self.id,
            address: self.address,
            transport: self.transport,
            opened_by_us: self.opened_by_us,
            peer_id: self.peer_id,
            pieces: self.have.count(),
            upload_only: self.tally.upload_only,
            choking: self.choking,
            interested: self.interested,
            peer_choking: self.peer_choking,
            peer_interested: self.peer_interested,
            download: self.download,
            upload: self.upload,
            requests: self.owed.len(),
            uploads: self.out.uploads.len() + usize::from(self.out.sending.is_some()),
        }
    }
}

/// A connection as seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct ConnView<A> {
    /// Which.
    pub id: ConnId,
    /// Who.
    pub address: A,
    /// Over what.
    pub transport: Transport,
    /// We opened it.
    pub opened_by_us: bool,
    /// What the peer calls itself.
    pub peer_id: [u8; 20],
    /// How many pieces the peer has.
    pub pieces: u32,
    /// It says that it wants nothing of anybody.
    pub upload_only: bool,
    /// We choke the peer.
    pub choking: bool,
    /// We want something of the peer.
    pub interested: bool,
    /// The peer chokes us.
    pub peer_choking: bool,
    /// The peer wants something of us.
    pub peer_interested: bool,
    /// How fast the peer sends blocks.
    pub download: RateMeasure,
    /// How fast we send blocks.
    pub upload: RateMeasure,
    /// Blocks that the peer owes us.
    pub requests: usize,
    /// Blocks that we owe the peer.
    pub uploads: usize,
}
