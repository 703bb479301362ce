//! Many connections behind one address.
//!
//! Source: BEP 29 for the ids, libutp for what strangers get: SYNs open connections up to a limit, other packets of no
//! connection are answered with a RESET once in a while.
//!
//! A packet belongs to a connection by its sender's address and the id it carries. Connections that nobody has accepted
//! yet are few: a flood of SYNs pushes out the oldest of those that have not completed their handshake, and what is
//! kept of each is bounded. While there is no sign of a flood, the application need not wait for the handshake.
//!
//! **What it leaves out.** Sockets, and addresses (`P` is whatever the host calls its peers by).
//! **How it was validated.** `tests/endpoint.rs`; checks 7, 11 and 12 of `tests/checks.rs`.

mod books;
mod budget;
mod deadlines;
mod demux;
mod hearsay;
mod incoming;
mod keepalives;
mod slots;
mod strays;

pub use books::{EndpointStatistics, Limits};
pub use slots::Handle;

use crate::config::Config;
use crate::connection::{Connection, WholeDatagram};
use crate::event::Event;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use budget::Budget;
use cede_cc::{Controller, Path};
use cede_units::{Instant, Stream};
use cede_wire::utp::{Header, Kind, Packet};
use cede_wire::{Payload, Transmit};
use core::hash::Hash;
use deadlines::Deadlines;
use demux::Demux;
use keepalives::Kept;
use slots::{Slots, Stage};
use strays::Strays;

/// Makes the controllers of connections that peers open.
pub type ControllerFactory = Box<dyn FnMut(&Path) -> Box<dyn Controller> + Send>;

/// Decides about each connection that a peer wants to open, by the peer's address: how it is set up, or `None` to leave
/// the SYN unanswered.
pub type Admission<P> = Box<dyn FnMut(&P) -> Option<(Config, Box<dyn Controller>)> + Send>;

/// What an endpoint made of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It went to a connection.
    Taken(Handle),
    /// It opened one.
    Opened(Handle),
    /// It is uTP and belongs to no connection.
    Stray,
    /// A SYN that a limit keeps from opening a connection.
    Refused,
    /// It is no uTP: another protocol on the same port may know it.
    Unrecognised,
}

/// Many connections behind one address, driven as one: the rules are those of [`Connection`].
///
/// A connection stays until the application [`release`](Self::release)s it; before that, what arrived can be read even
/// after the end. Connections that peers open belong to the application once [`accept`](Self::accept) has handed them
/// out. They get that far once their handshake is complete, or before while few are half-open ([`Limits::early`]): an
/// application that has something to say then says it, and others need not care.
pub struct Endpoint<P> {
    accepting: Option<Admission<P>>,
    limits: Limits,
    /// The configuration that was given last: most connections of an endpoint have the same, and share it.
    shared: Option<Arc<Config>>,
    random: Stream,
    slots: Slots<P>,
    demux: Demux,
    /// The demultiplexer's latest answer: packets come in bursts.
    latest: Option<((P, u16), u32)>,
    /// Connections that may want to send.
    active: VecDeque<u32>,
    /// Connections that may have events.
    eventful: VecDeque<u32>,
    deadlines: Deadlines,
    half_open: VecDeque<Handle>,
    /// Connections that the application has, and whose peers have yet to show that they receive.
    early: usize,
    backlog: VecDeque<Handle>,
    budget: Budget,
    strays: Strays<P>,
    statistics: EndpointStatistics,
}

impl<P: Copy + Ord + Hash> Endpoint<P> {
    /// An endpoint that opens connections and takes none up. All its random numbers come from `random`.
    #[must_use]
    pub fn new(limits: Limits, random: Stream) -> Self {
        Self {
            accepting: None,
            limits,
            shared: None,
            demux: Demux::new(&random),
            random,
            slots: Slots::new(),
            latest: None,
            active: VecDeque::new(),
            eventful: VecDeque::new(),
            deadlines: Deadlines::new(),
            half_open: VecDeque::new(),
            early: 0,
            backlog: VecDeque::new(),
            budget: Budget::default(),
            strays: Strays::new(),
            statistics: EndpointStatistics::default(),
        }
    }

    /// Takes up connections that peers open from now on, each with this configuration and a controller of its own.
    pub fn listen(&mut self, config: Config, mut controllers: ControllerFactory) {
        let path = config.path();
        self.accepting = Some(Box::new(move |_| Some((config.clone(), controllers(&path)))));
    }

    /// As [`Endpoint::listen`], with a decision about each peer. It is asked at each SYN that no limit keeps out, those of
    /// a flood included, so it should be quick.
    pub fn listen_with(&mut self, admission: Admission<P>) {
        self.accepting = Some(admission);
    }

    /// Takes up no more connections.
    pub fn stop_listening(&mut self) {
        self.accepting = None;
    }

    /// Opens a connection to `peer`. The id is one that is free towards that peer, unless `config` gives it.
    ///
    /// `None` where there are [`Limits::connections`] already, or every id towards the peer is taken.
    pub fn connect(
        &mut self,
        now: Instant,
        peer: P,
        mut config: Config,
        controller: Box<dyn Controller>,
    ) -> Option<Handle> {
        if self.slots.len() >= self.limits.connections {
            return None;
        }
        let id = self.free_id(peer, config.connection_id.take())?;
        let config = self.share(config);
        let connection = Connection::connect_as(now, id, config, controller, &mut self.random);
        Some(self.insert(peer, connection, true))
    }

    /// The connection behind a handle; `None` after its release. Whatever is done with it, the endpoint looks at it
    /// again in the next [`Endpoint::poll_transmit`].
    pub fn connection_mut(&mut self, handle: Handle) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(handle)?;
        // What it has to tell afterwards is noticed when it is settled.
        if !core::mem::replace(&mut slot.active, true) {
            self.active.push_back(handle.index());
        }
        Some(&mut slot.connection)
    }

    /// As [`Connection::read`], without making the endpoint look at the connection again where reading has no
    /// consequence, which is most often.
    pub fn read(&mut self, handle: Handle) -> Option<Payload> {
        let slot = self.slots.get_mut(handle)?;
        let payload = slot.connection.read()?;
        if slot.connection.owes_state() && !core::mem::replace(&mut slot.active, true) {
            self.active.push_back(handle.index());
        }
        self.account(handle.index());
        Some(payload)
    }

    /// The connection behind a handle, to look at.
    #[must_use]
    pub fn connection(&self, handle: Handle) -> Option<&Connection> {
        self.slots.get(handle).map(|slot| &*slot.connection)
    }

    /// The peer of a connection.
    #[must_use]
    pub fn peer(&self, handle: Handle) -> Option<P> {
        self.slots.get(handle).map(|slot| slot.peer)
    }

    /// The application has no more use for a connection: it is closed if need be, what arrives is dropped, and it goes
    /// once it is drained.
    pub fn release(&mut self, handle: Handle) {
        let Some(slot) = self.slots.get_mut(handle) else { return };
        slot.owned = false;
        slot.connection.close();
        slot.connection.stop_reading();
        self.touch(handle.index());
    }

    /// Connections, the finished ones that nobody has released included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True for no connections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What came from strangers so far.
    #[must_use]
    pub fn statistics(&self) -> &EndpointStatistics {
        &self.statistics
    }

    /// Takes one datagram from `peer`. Head and payload are as for [`Connection::handle`].
    pub fn handle(&mut self, now: Instant, peer: P, head: &[u8], payload: Payload) -> Verdict {
        self.handle_stamped(now, now, peer, head, payload)
    }

    /// As [`Endpoint::handle`], for a host that knows when the datagram came: see [`Connection::handle_stamped`].
    pub fn handle_stamped(
        &mut self,
        now: Instant,
        arrived_at: Instant,
        peer: P,
        head: &[u8],
        payload: Payload,
    ) -> Verdict {
        match Packet::decode(head) {
            Ok(packet) => self.handle_packet([now, arrived_at], peer, &packet, payload),
            Err(error) => match WholeDatagram::of(error, head, &payload) {
                Some(whole) => self.handle_stamped(now, arrived_at, peer, whole.octets(), Payload::Empty),
                None => {
                    self.statistics.unrecognised += 1;
                    Verdict::Unrecognised
                }
            },
        }
    }

    #[inline]
    fn handle_packet(
        &mut self,
        times: [Instant; 2],
        peer: P,
        packet: &Packet<'_>,
        payload: Payload,
    ) -> Verdict {
        let [now, _] = times;
        match self.find(peer, &packet.header) {
            Some(index) => self.pass_on(times, index, packet, payload),
            None if packet.header.kind == Kind::Syn => self.on_syn(now, peer, packet),
            None => {
                self.on_stray(now, peer, packet);
                Verdict::Stray
            }
        }
    }

    /// Takes the next packet to send, and whom it is for; `None` where nothing may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(P, Transmit)> {
        if let Some(reset) = self.strays.pop() {
            return Some(reset);
        }
        while let Some(&index) = self.active.front() {
            let Some(slot) = self.slots.at_mut(index) else {
                self.active.pop_front();
                continue;
            };
            if let Some(transmit) = slot.connection.poll_transmit(now) {
                return Some((slot.peer, transmit));
            }
            slot.active = false;
            self.active.pop_front();
            self.settle(index);
        }
        None
    }

    /// When [`Endpoint::handle_timeout`] wants to be called. Ask after `poll_transmit` has given `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.earliest()
    }

    /// Does what is due by `now`. Connections whose time has not come cost nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut kept = Kept::default();
        while let Some(index) = self.deadlines.take_due(now) {
            if !self.leaves_keepalive_to_other(now, index, &mut kept) {
                self.with_connection(index, |connection| connection.handle_timeout(now));
                self.note_keepalive(index, &mut kept);
            }
        }
    }

    /// Takes the next event of any connection that the application owns. Ask after `poll_transmit` has given `None`:
    /// what was done through [`Endpoint::connection_mut`] may have events that are noticed there.
    pub fn poll_event(&mut self) -> Option<(Handle, Event)> {
        while let Some(&index) = self.eventful.front() {
            if let Some(slot) = self.slots.at_mut(index) {
                if let Some(event) = slot.connection.poll_event().filter(|_| slot.owned) {
                    return Some((slot.handle, event));
                }
                slot.eventful = false;
            }
            self.eventful.pop_front();
        }
        None
    }
}

impl<P: Copy + Ord + Hash> Endpoint<P> {
    /// The configuration in good order, and the one before where it is the same.
    fn share(&mut self, config: Config) -> Arc<Config> {
        let config = Config::checked(Arc::new(config));
        let same = self.shared.take().filter(|shared| *shared == config);
        Arc::clone(self.shared.insert(same.unwrap_or(config)))
    }

    fn insert(&mut self, peer: P, mut connection: Connection, owned: bool) -> Handle {
        connection.set_keepalive_phase(self.demux.hash(&peer));
        let hash = self.demux.hash(&(peer, connection.receive_id()));
        let handle = self.slots.insert(peer, Box::new(connection), owned);
        self.demux.insert(hash, handle.index());
        self.touch(handle.index());
        handle
    }

    /// An id R such that neither R nor R + 1 is taken towards this peer, nor sent with (a RESET may carry either), near the one that was asked for or drawn.
    fn free_id(&mut self, peer: P, wanted: Option<u16>) -> Option<u16> {
        let first = wanted.unwrap_or_else(|| self.random.next_u16());
        let is_free = |id: u16| self.named((peer, id)).is_none();
        // Not 65535, unless asked for: libutp takes the id after it for 65536, answers the SYN, and resets the first DATA.
        let mut candidates = (0..=u16::MAX).map(|step| first.wrapping_add(step)).filter(|&id| id != u16::MAX);
        match wanted {
            Some(id) => is_free(id).then_some(id),
            None => {
                candidates.find(|&id| [id, id.wrapping_add(1), id.wrapping_sub(1)].into_iter().all(is_free))
            }
        }
    }

    /// The connection that a packet belongs to.
    fn find(&mut self, peer: P, header: &Header) -> Option<u32> {
        let id = header.connection_id;
        match header.kind {
            Kind::Syn => self.look_up(peer, id.wrapping_add(1)),
            Kind::Reset => self.look_up(peer, id).or_else(|| self.find_by_send_id(peer, id)),
            _ => self.look_up(peer, id),
        }
    }

    fn look_up(&mut self, peer: P, id: u16) -> Option<u32> {
        let key = (peer, id);
        if let Some((latest, index)) = self.latest
            && latest == key
        {
            return Some(index);
        }
        let index = self.named(key)?;
        self.latest = Some((key, index));
        Some(index)
    }

    fn named(&self, (peer, id): (P, u16)) -> Option<u32> {
        let is_it =
            |index| self.slots.at(index).is_some_and(|slot| (slot.peer, slot.receive_id) == (peer, id));
        self.demux.find(self.demux.hash(&(peer, id)), is_it)
    }

    /// RESETs for unknown ids echo what we sent: the connection is the one that sends with this id.
    fn find_by_send_id(&mut self, peer: P, id: u16) -> Option<u32> {
        [id.wrapping_add(1), id.wrapping_sub(1)].into_iter().find_map(|receive_id| {
            let index = self.look_up(peer, receive_id)?;
            (self.slots.at_mut(index)?.connection.send_id() == id).then_some(index)
        })
    }

    fn pass_on(
        &mut self,
        [now, arrived_at]: [Instant; 2],
        index: u32,
        packet: &Packet<'_>,
        payload: Payload,
    ) -> Verdict {
        let is_exceeded = self.is_exceeded();
        self.statistics.over_budget += u64::from(is_exceeded);
        let Some(slot) = self.slots.at_mut(index) else { return Verdict::Stray };
        let handle = slot.handle;
        slot.connection.hold_back(is_exceeded);
        slot.connection.handle_stamped(now, arrived_at, packet, payload);
        if !core::mem::replace(&mut slot.active, true) {
            self.active.push_back(index);
        }
        if slot.has_news() {
            self.eventful.push_back(index);
        }
        if slot.stage != Stage::Settled && slot.connection.is_established() {
            self.on_handshake_complete(handle);
        }
        self.account(index);
        Verdict::Taken(handle)
    }

    #[cold]
    fn on_stray(&mut self, now: Instant, peer: P, packet: &Packet<'_>) {
        self.statistics.strays += 1;
        if !self.limits.answers_strays {
            return;
        }
        if self.strays.answer(now, peer, packet, &mut self.random) {
            self.statistics.resets_sent += 1;
        } else if packet.header.kind != Kind::Reset {
            self.statistics.resets_suppressed += 1;
        }
    }

    fn with_connection(&mut self, index: u32, call: impl FnOnce(&mut Connection)) {
        if let Some(slot) = self.slots.at_mut(index) {
            call(&mut slot.connection);
            self.touch(index);
        }
    }

    /// The connection has been called: it may want to send, and may have events.
    fn touch(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else { return };
        if !core::mem::replace(&mut slot.active, true) {
            self.active.push_back(index);
        }
        if slot.has_news() {
            self.eventful.push_back(index);
        }
    }

    /// The connection wants to send nothing more for now: its deadline is known, or its end.
    fn settle(&mut self, index: u32) {
        self.account(index);
        let Some(slot) = self.slots.at_mut(index) else { return };
        if slot.has_news() {
            self.eventful.push_back(index);
        }
        if slot.connection.is_drained() {
            self.deadlines.set(index, Instant::NEVER);
            self.settle_drained(index);
        } else {
            let deadline = slot.connection.poll_timeout().unwrap_or(Instant::NEVER);
            self.deadlines.set(index, deadline);
        }
    }

    /// A connection that is over gets no more packets; without an owner it goes.
    fn settle_drained(&mut self, index: u32) {
        let Some(slot) = self.slots.at_mut(index) else { return };
        let (key, handle) = ((slot.peer, slot.receive_id), slot.handle);
        let waits_for_owner = self.backlog.contains(&handle);
        let owned = slot.owned;
        self.demux.remove(self.demux.hash(&key), index);
        self.latest = None;
        if self.leave_stage(handle) != Stage::Settled {
            self.statistics.half_open_expired += 1;
        }
        if !owned && !waits_for_owner {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: u32) {
        if let Some(slot) = self.slots.remove(index) {
            self.demux.remove(self.demux.hash(&(slot.peer, slot.receive_id)), index);
            self.close_account(slot.held_steps);
        }
        self.latest = None;
        self.deadlines.set(index, Instant::NEVER);
    }
}

impl<P> core::fmt::Debug for Endpoint<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.slots.len())
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}
