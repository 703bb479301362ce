//! Finding peers: whom to dial and over what.

use super::address::KNOWN_MAX;
use super::chatter::Chatterers;
use super::conn::{Conn, ConnId};
use super::crowd::Idlers;
use super::hearsay::Tellers;
use super::stage::Stage;
use super::{Action, AnnounceEvent, CloseReason, Engine, PeerAddress};
use crate::disposition::{Contender, Dialling, Duplicates, Transport};
use crate::profile::Profile;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// A peer is not called again sooner than that after the last time, or the last connection's end
/// ([`Profile::rests_after_end`]); one that could not be reached is left alone for as long, once
/// more for each failure (libtorrent).
const RETRY: Duration = Duration::from_secs(60);
/// Whoever is there answers within that, nearly always; who is not takes several seconds to be given up.
const ANSWER: Duration = Duration::from_millis(500);
/// After so many failures in a row it is left alone until somebody tells of it again: then it is tried once (libtorrent).
const FAILURES_MAX: u8 = 3;

/// What is remembered of an address.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Connections and attempts there are.
    live: u8,
    /// Those of them that we have opened.
    ours: u8,
    /// It waits to be dialled.
    queued: bool,
    utp_failed: bool,
    tcp_failed: bool,
    /// It was to be called over both at once, and there was room for uTP alone.
    owes_tcp: bool,
    failures: u8,
    not_before: Instant,
    /// Neither of us can want anything of the other.
    useless: bool,
    /// We wait there.
    ourselves: bool,
    /// Somebody has told us of it; it has not only called us from there.
    told: bool,
    /// Nobody but other peers has.
    is_hearsay: bool,
    /// It is being called over uTP because somebody has introduced us.
    punched: bool,
}

/// Whom we know, and whom we shall dial.
#[derive(Debug)]
pub(super) struct Dials<A> {
    pub(super) known: BTreeMap<A, Known>,
    pub(super) queue: VecDeque<A>,
    /// Those that nobody but peers has told of, which are called after all others.
    hearsay: VecDeque<A>,
    pub(super) tellers: Tellers,
    pub(super) tokens: u32,
    pub(super) banned: BTreeSet<A>,
    /// Who is gone and has sent something of a piece that has not been checked.
    pub(super) departed: BTreeMap<u32, A>,
    /// Connections beside another to the same peer, and until when that may decide which of the two stays.
    pub(super) twins: Vec<(Instant, ConnId)>,
    /// Callers that are gone and let slots go by.
    pub(super) idlers: Idlers,
    /// Hosts of callers that were let go for what they said without end.
    pub(super) chatterers: Chatterers,
}

impl Known {
    /// Whether it is not to be called at all; `complete` where we have everything.
    const fn is_barred(&self, complete: bool) -> bool {
        self.useless && complete || self.ourselves
    }

    /// Somebody tells of it: where it could not be reached, it is tried once more.
    pub(super) fn note_told(&mut self, by_a_peer: bool) {
        self.is_hearsay = by_a_peer && (self.is_hearsay || !self.told);
        (self.told, self.failures) = (true, self.failures.min(FAILURES_MAX - 1));
    }

    /// It was called in vain, and waits for nothing.
    const fn has_failed(&self) -> bool {
        self.live == 0 && self.failures > 0 && !self.queued
    }
}

impl<A> Dials<A> {
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            known: BTreeMap::new(),
            queue: VecDeque::new(),
            hearsay: VecDeque::new(),
            tellers: Tellers::default(),
            tokens: profile.dials_per_second.unwrap_or(u32::MAX),
            banned: BTreeSet::new(),
            departed: BTreeMap::new(),
            twins: Vec::new(),
            idlers: Idlers::default(),
            chatterers: Chatterers::default(),
        }
    }

    /// Whether there is a place for one more of whom peers alone tell: in place of those that were called in vain, if there is no other.
    pub(super) fn make_room_for_hearsay(&mut self, most: usize) -> bool
    where
        A: Ord,
    {
        let is_room = |dials: &Self| {
            let hearsay = dials.known.values().filter(|known| known.is_hearsay).count();
            hearsay < most && dials.known.len() < KNOWN_MAX
        };
        if !is_room(self) {
            self.known.retain(|_, known| !(known.is_hearsay && known.has_failed()));
        }
        is_room(self)
    }

    /// Makes room for those of whom somebody else tells: callers and those that were called in vain go first, then hearsay.
    fn make_room(&mut self)
    where
        A: Ord,
    {
        self.known.retain(|_, known| known.told && !known.has_failed() || known.live > 0);
        if self.known.len() >= KNOWN_MAX {
            self.known.retain(|_, known| !known.is_hearsay || known.live > 0);
            self.hearsay.retain(|address| self.known.contains_key(address));
        }
    }

    /// Whom to call next.
    fn next(&mut self) -> Option<A> {
        self.queue.pop_front().or_else(|| self.hearsay.pop_front())
    }

    /// Puts the first of those that wait and count least before all others; how little that is, where somebody waits.
    pub(super) fn bring_forward(&mut self, count: impl Fn(&A) -> u32) -> Option<u32> {
        let queue = if self.queue.is_empty() { &mut self.hearsay } else { &mut self.queue };
        let (least, place) =
            queue.iter().enumerate().map(|(place, address)| (count(address), place)).min()?;
        let first = queue.remove(place)?;
        queue.push_front(first);
        Some(least)
    }

    /// We wait at this address: it is not called any more.
    pub(super) fn note_ourselves(&mut self, address: &A)
    where
        A: Ord,
    {
        if let Some(known) = self.known.get_mut(address) {
            known.ourselves = true;
        }
    }
}

impl<A: PeerAddress> Engine<A> {
    /// The tracker, or somebody else, knows of these peers.
    pub fn add_peers(&mut self, now: Instant, peers: &[A]) {
        if self.dials.known.len() >= KNOWN_MAX {
            self.dials.make_room();
        }
        for &address in peers {
            if self.dials.known.len() < KNOWN_MAX || self.dials.known.contains_key(&address) {
                let known = self.dials.known.entry(address).or_default();
                let waits_behind = known.is_hearsay && core::mem::take(&mut known.queued);
                known.note_told(false);
                if waits_behind {
                    self.dials.hearsay.retain(|&other| other != address);
                }
                self.queue(now, address);
            }
        }
        self.dial(now);
    }

    /// Peers that somebody insists on: where there is no connection they are called now, however lately and often they could not be
    /// reached.
    pub fn call_peers(&mut self, now: Instant, peers: &[A]) {
        for address in peers {
            if let Some(known) = self.dials.known.get_mut(address).filter(|known| known.live == 0) {
                (known.failures, known.not_before) = (0, now);
            }
        }
        self.add_peers(now, peers);
    }

    /// These peers are in the local network: they are dialled before others.
    pub fn add_near_peers(&mut self, now: Instant, peers: &[A]) {
        let mut others = core::mem::take(&mut self.dials.queue);
        others.retain(|other| {
            let is_near = peers.contains(other);
            if let Some(known) = self.dials.known.get_mut(other).filter(|_| is_near) {
                known.queued = false;
            }
            !is_near
        });
        self.add_peers(now, peers);
        self.dials.queue.append(&mut others);
        self.dial(now);
    }

    /// A peer has opened a connection. `None` where it is not wanted and should be closed.
    pub fn accept(&mut self, now: Instant, address: A, transport: Transport) -> Option<ConnId> {
        let refused = !self.disposition.accepts(transport)
            || self.taken(now) >= self.profile.connections_max
            || self.dials.banned.contains(&address);
        if refused {
            return None;
        }
        if self.dials.known.len() < KNOWN_MAX {
            self.dials.known.entry(address).or_default();
        }
        let id = self.open(now, address, transport, false);
        self.at(id.index)?.stage = Stage::Handshaking;
        self.recall(now, id.index);
        if self.profile.duplicates == Duplicates::KeepBoth {
            self.queue(now, address);
            self.dial(now);
        }
        Some(id)
    }

    /// A connection that this address had opened is over, and it was a port that nobody waits at: it need not be remembered,
    /// unless somebody has told us of it.
    pub fn forget_caller(&mut self, address: A) {
        if self.dials.known.get(&address).is_some_and(|known| known.live == 0 && !known.told) {
            self.dials.known.remove(&address);
        }
    }

    /// A connection that was asked for is open: the engine speaks first.
    pub fn connected(&mut self, now: Instant, id: ConnId) {
        let Some(conn) = self.conn(id).filter(|conn| conn.stage == Stage::Dialling) else { return };
        conn.stage = Stage::Handshaking;
        conn.times.heard_at = now;
        let address = conn.address;
        if let Some(known) = self.dials.known.get_mut(&address) {
            known.punched = false;
        }
        self.send_handshake(now, id.index);
    }

    /// A connection or an attempt is over.
    pub fn closed(&mut self, now: Instant, id: ConnId) {
        let Some(conn) = self.conn(id) else { return };
        let (address, transport, stage) = (conn.address, conn.transport, conn.stage);
        let opened_by_us = conn.opened_by_us;
        self.forget(now, id.index);
        if stage.is_ready() {
            self.rest(now, address);
        } else if stage == Stage::Dialling && opened_by_us {
            self.call_failed(now, address, transport);
        } else if opened_by_us {
            self.note_failure(now, address);
        }
        self.dial(now);
    }

    /// A connection that was good for something is over: it is no failure, and the peer may be called again.
    fn rest(&mut self, now: Instant, address: A) {
        let rests = self.profile.rests_after_end;
        let Some(known) = self.dials.known.get_mut(&address) else { return };
        known.failures = 0;
        known.not_before = if rests { now + RETRY } else { known.not_before };
    }

    fn call_failed(&mut self, now: Instant, address: A, transport: Transport) {
        let Some(known) = self.dials.known.get_mut(&address) else { return };
        match transport {
            Transport::Tcp => known.tcp_failed = true,
            Transport::Utp => known.utp_failed = true,
        }
        known.owes_tcp &= transport == Transport::Utp;
        let was_introduced = transport == Transport::Utp && core::mem::take(&mut known.punched);
        if was_introduced {
            self.note_failure(now, address);
        } else if !self.falls_back(now, address) {
            self.note_failure(now, address);
            self.act(Action::Unreached { address });
        }
    }

    /// Somebody has introduced a peer to us, which calls us as we call it: it is called once, over uTP, however often it could not be
    /// reached, unless there is a connection or such a call already. Whether it is called.
    pub fn punch(&mut self, now: Instant, address: A) -> bool {
        let mut calls = self.slots.iter().flatten().filter(|conn| conn.address == address);
        let is_in_hand = calls.any(|conn| conn.stage != Stage::Dialling || conn.transport == Transport::Utp);
        let is_full = self.dials.known.len() >= KNOWN_MAX && !self.dials.known.contains_key(&address);
        if is_in_hand || is_full || self.dials.banned.contains(&address) {
            return false;
        }
        let known = self.dials.known.entry(address).or_default();
        if known.is_barred(self.complete) {
            return false;
        }
        let is_called = self.attempt(now, address, Transport::Utp);
        if let Some(known) = self.dials.known.get_mut(&address) {
            known.punched = is_called;
        }
        is_called
    }

    /// A peer that was called, and hung up, may be called in another way: at once, and that it hung up is no failure.
    pub fn call_again(&mut self, now: Instant, address: A) {
        let Some(known) = self.dials.known.get_mut(&address) else { return };
        (known.failures, known.not_before) = (known.failures.saturating_sub(1), now);
        self.queue(now, address);
        self.dial(now);
    }

    fn note_failure(&mut self, now: Instant, address: A) {
        let Some(known) = self.dials.known.get_mut(&address) else { return };
        known.failures = known.failures.saturating_add(1);
        known.not_before = now + RETRY * u64::from(known.failures);
        (known.tcp_failed, known.utp_failed) = (false, false);
    }

    /// Tries the other transport where one has failed, by the profile's rule.
    fn falls_back(&mut self, now: Instant, address: A) -> bool {
        let Some(known) = self.dials.known.get(&address).copied() else { return false };
        let second = match self.profile.dialling {
            Dialling::Race if known.live == 0 && known.owes_tcp => Transport::Tcp,
            Dialling::Race => return known.live > 0,
            Dialling::UtpFirst if known.utp_failed && !known.tcp_failed => Transport::Tcp,
            Dialling::TcpFirst if known.tcp_failed && !known.utp_failed => Transport::Utp,
            _ => return false,
        };
        self.attempt(now, address, second)
    }

    /// Whether there is a connection already that does for one that we might open.
    fn is_served(&self, known: &Known) -> bool {
        match self.profile.duplicates {
            Duplicates::KeepBoth => known.ours > 0,
            Duplicates::PreferUtp | Duplicates::ByPeerId | Duplicates::Drawn => known.live > 0,
        }
    }

    /// Puts an address in the queue where it is worth dialling.
    pub(super) fn queue(&mut self, now: Instant, address: A) {
        let served = self.dials.known.get(&address).is_none_or(|known| self.is_served(known));
        let Some(known) = self.dials.known.get_mut(&address) else { return };
        let worth = !served
            && !known.queued
            && known.failures < FAILURES_MAX
            && known.not_before <= now
            && !known.is_barred(self.complete);
        if worth && !self.dials.banned.contains(&address) {
            known.queued = true;
            let queue = if known.is_hearsay { &mut self.dials.hearsay } else { &mut self.dials.queue };
            queue.push_back(address);
        }
    }

    /// Looks again at those that could not be reached, and at how many connections there are.
    pub(super) fn look_for_peers(&mut self, now: Instant) {
        self.timers.announce_at = now + self.profile.reannounce;
        if (self.list.len() as u32) < self.profile.peers_min && !self.complete {
            self.act(Action::Announce { event: AnnounceEvent::More, want: self.profile.want_peers });
        }
    }

    /// Dials as long as there is somebody to dial and room.
    pub(super) fn dial(&mut self, now: Instant) {
        while self.may_call(now) && self.dials.tokens > 0 {
            let Some(address) = self.dials.next() else { return };
            let Some(known) = self.dials.known.get_mut(&address) else { continue };
            known.queued = false;
            let known = *known;
            if !self.is_served(&known) && !self.dials.banned.contains(&address) && self.dial_one(now, address)
            {
                self.dials.tokens -= u32::from(self.profile.dials_per_second.is_some());
            }
        }
    }

    pub(super) fn may_call(&self, now: Instant) -> bool {
        let taken = if self.list.is_empty() { self.taken(now) } else { self.open };
        taken < self.profile.initiate_max
    }

    /// Places that are taken: by connections, and by calls that may well be answered.
    pub(super) fn taken(&self, now: Instant) -> u32 {
        let most = self.profile.unanswered_max as usize;
        if most == 0 {
            return self.open;
        }
        let waits = |conn: &&Conn<A>| {
            conn.opened_by_us && !conn.stage.is_ready() && now.since(conn.times.heard_at) >= ANSWER
        };
        let unanswered = self.slots.iter().flatten().map(|conn| &**conn).filter(waits).count();
        self.open - unanswered.min(most) as u32
    }

    /// Attempts what the disposition allows, in the profile's way.
    fn dial_one(&mut self, now: Instant, address: A) -> bool {
        let order = match self.profile.dialling {
            Dialling::TcpFirst => [Transport::Tcp, Transport::Utp],
            Dialling::UtpFirst | Dialling::Race => [Transport::Utp, Transport::Tcp],
        };
        let mut called = None;
        for transport in order {
            if (called.is_none() || self.profile.dialling == Dialling::Race)
                && self.attempt(now, address, transport)
            {
                called = Some(transport);
            }
        }
        if let Some(known) = self.dials.known.get_mut(&address) {
            known.owes_tcp = called == Some(Transport::Utp) && self.disposition.attempts(Transport::Tcp);
        }
        called.is_some()
    }

    fn attempt(&mut self, now: Instant, address: A, transport: Transport) -> bool {
        if !self.disposition.attempts(transport) || self.taken(now) >= self.profile.connections_max {
            return false;
        }
        let conn = self.open(now, address, transport, true);
        if let Some(known) = self.dials.known.get_mut(&address) {
            known.not_before = now + RETRY;
        }
        self.act(Action::Connect { conn, address, transport });
        true
    }

    fn open(&mut self, now: Instant, address: A, transport: Transport, by_us: bool) -> ConnId {
        let index = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if index == self.slots.len() {
            self.slots.push(None);
        }
        self.generation += 1;
        let id = ConnId { index: index as u32, generation: self.generation };
        let how = Contender { transport, opened_by_us: by_us };
        let (rule, pieces) = (self.profile.pipeline, self.geometry.pieces());
        self.slots[index] = Some(Box::new(Conn::new(id, address, how, rule, pieces, now)));
        self.open += 1;
        if let Some(known) = self.dials.known.get_mut(&address) {
            known.live = known.live.saturating_add(1);
            known.ours = known.ours.saturating_add(u8::from(by_us));
        }
        id
    }

    /// The connection is gone: what it owed is free again.
    pub(super) fn forget(&mut self, now: Instant, index: u32) {
        self.drop_plans(index);
        let Some(conn) = self.slots.get_mut(index as usize).and_then(Option::take) else { return };
        self.open -= 1;
        self.totals.cut += u64::from(conn.tally.part);
        self.picker.release(&conn.reserved_blocks());
        self.picker.disown(conn.id.generation);
        if self.picker.has_part(conn.id.generation) {
            self.dials.departed.insert(conn.id.generation, conn.address);
        }
        self.remember(now, &conn);
        self.leave_shares(index);
        self.ring.retain(|&other| other != index);
        self.turn = self.turn.filter(|&(other, _)| other != index);
        if let Some(known) = self.dials.known.get_mut(&conn.address) {
            known.live = known.live.saturating_sub(1);
            known.ours = known.ours.saturating_sub(u8::from(conn.opened_by_us));
        }
        if conn.stage.is_ready() {
            self.picker.lose_all(&conn.have);
            self.list.retain(|&other| other != index);
            if !conn.choking && conn.peer_interested {
                self.rechoke_at_event(now);
            }
        }
        if !conn.owed.is_empty() {
            self.ask_everybody(now);
        }
    }

    /// Ends a connection from our side.
    pub(super) fn close(&mut self, now: Instant, index: u32, reason: CloseReason) {
        let Some(conn) = self.at(index) else { return };
        let (id, address) = (conn.id, conn.address);
        if let Some(known) = self.dials.known.get_mut(&address) {
            known.useless |= reason == CloseReason::BothComplete;
        }
        match reason {
            CloseReason::Duplicate | CloseReason::BothComplete => {}
            CloseReason::AsksNothing => self.rest(now, address),
            _ => self.note_failure(now, address),
        }
        self.act(Action::Close { conn: id, reason });
        self.forget(now, index);
    }

    /// Those that may be dialled again are.
    pub(super) fn retry(&mut self, now: Instant) {
        let due = |known: &Known| !self.is_served(known) && !known.queued && known.not_before <= now;
        let due: Vec<A> =
            self.dials.known.iter().filter(|(_, known)| due(known)).map(|(&address, _)| address).collect();
        due.into_iter().for_each(|address| self.queue(now, address));
        self.dial(now);
    }
}
