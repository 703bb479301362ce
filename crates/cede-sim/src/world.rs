//! The loop: the next event happens, hosts answer, packets move on.

use crate::observe::PacketEvent;
use crate::pool::{PacketId, Pool};
use crate::route::{Hop, Routes};
use crate::schedule::{Scheduler, Tournament};
use crate::{Clock, LinkId, Observer, Tape};
use alloc::vec::Vec;
use cede_net::{
    Counters, Datagram, Dequeue, DropCause, Ecn, Enqueue, Foresight, Host, HostId, Input, Link, LinkChange,
    LinkLog, Output,
};
use cede_units::{Duration, Instant};

/// What a link knows of a packet: where it lies, where its path goes on, and its octets on the wire. A hop touches
/// nothing else of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    packet: PacketId,
    hop: Hop,
    bytes: u32,
}

/// A host with what the world keeps for it.
#[derive(Debug)]
struct Seat<H> {
    host: H,
    clock: Clock,
    /// When the host wants to be woken, in the world's time.
    deadline: Instant,
    /// When it is scheduled to be: never later than `deadline`, and left as it is while the deadline only moves away.
    armed: Instant,
}

/// A link with whether anybody listens.
#[derive(Debug)]
struct Wire {
    link: Link<Token>,
    watched: bool,
    /// When the link is scheduled to act.
    armed: Instant,
}

/// A simulated world of hosts of type `H`, heard by `O`, in the order of `S`.
#[derive(Debug)]
pub struct World<H, O = (), S = Tournament> {
    now: Instant,
    wires: Vec<Wire>,
    seats: Vec<Seat<H>>,
    routes: Routes,
    pool: Pool,
    scheduler: S,
    observer: O,
    output: Output,
    tape: Option<Tape>,
    started: bool,
    events: u64,
    unroutable: u64,
}

/// Lends a link's events to the observer, which wants datagrams and not tokens.
struct Ear<'a, O> {
    observer: &'a mut O,
    pool: &'a mut Pool,
    tape: &'a mut Option<Tape>,
    link: LinkId,
    watched: bool,
}

impl<O: Observer> LinkLog<Token> for Ear<'_, O> {
    fn enqueued(&mut self, token: &Token, event: &Enqueue) {
        if self.watched {
            self.observer.enqueued(self.link, self.pool.get(token.packet), event);
        }
    }
    fn dequeued(&mut self, token: &Token, event: &Dequeue) {
        self.pool.wait(token.packet, event.waited);
        if self.watched {
            self.observer.dequeued(self.link, self.pool.get(token.packet), event);
        }
    }
    fn dropped(&mut self, token: &Token, at: Instant, cause: DropCause) {
        if let Some(tape) = self.tape {
            tape.dropped(at, self.link.0);
        }
        self.observer.dropped(self.link, self.pool.get(token.packet), at, cause);
    }
    fn mark(&mut self, token: &mut Token, at: Instant) -> bool {
        let datagram = self.pool.get_mut(token.packet);
        if !datagram.ecn.is_capable() {
            return false;
        }
        datagram.ecn = Ecn::Ce;
        if let Some(tape) = self.tape {
            tape.marked(at, self.link.0);
        }
        if self.watched {
            self.observer.marked(self.link, datagram, at);
        }
        true
    }
    fn flow_key(&self, token: &Token) -> u64 {
        self.pool.get(token.packet).flow_key()
    }
}

impl<H: Host, O: Observer, S: Scheduler> World<H, O, S> {
    pub(crate) fn new(hosts: Vec<(H, Clock)>, links: Vec<Link<Token>>, routes: Routes, observer: O) -> Self {
        let wire =
            |(link, index)| Wire { link, watched: observer.watches(LinkId(index)), armed: Instant::NEVER };
        let wires: Vec<Wire> = links.into_iter().zip(0..).map(wire).collect();
        let seat = |(host, clock)| Seat { host, clock, deadline: Instant::NEVER, armed: Instant::NEVER };
        let seats: Vec<Seat<H>> = hosts.into_iter().map(seat).collect();
        Self {
            now: Instant::ZERO,
            scheduler: S::with_sources(wires.len() + seats.len()),
            wires,
            seats,
            routes,
            pool: Pool::default(),
            observer,
            output: Output::default(),
            tape: None,
            started: false,
            events: 0,
            unroutable: 0,
        }
    }

    /// Keeps a [`Tape`] from now on.
    pub fn record_tape(&mut self) {
        self.tape = Some(Tape::default());
    }

    /// The tape, where one is kept.
    #[must_use]
    pub const fn tape(&self) -> Option<&Tape> {
        self.tape.as_ref()
    }

    /// The world's time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Events that have happened.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Packets that were sent to where no route leads.
    #[must_use]
    pub const fn unroutable_packets(&self) -> u64 {
        self.unroutable
    }

    /// Packets under way.
    #[must_use]
    pub fn packets_under_way(&self) -> usize {
        self.pool.len()
    }

    /// What a link has done so far.
    ///
    /// # Panics
    /// Where the link is not of this world.
    #[must_use]
    pub fn link_counters(&self, link: LinkId) -> &Counters {
        self.wires[link.0 as usize].link.counters()
    }

    /// A host.
    ///
    /// # Panics
    /// Where the host is not of this world.
    #[must_use]
    pub fn host(&self, host: HostId) -> &H {
        &self.seats[host.0 as usize].host
    }

    /// The clock of a host.
    ///
    /// # Panics
    /// Where the host is not of this world.
    #[must_use]
    pub fn clock(&self, host: HostId) -> Clock {
        self.seats[host.0 as usize].clock
    }

    /// Changes what a link is like, from now on.
    ///
    /// # Panics
    /// Where the link is not of this world.
    pub fn change_link(&mut self, link: LinkId, change: &LinkChange) {
        self.with_ear(link, |link, now, ear| link.change(now, change, ear));
        self.rearm_link(link);
    }

    /// Steps the clock of a host by so many nanoseconds, as NTP does to a clock that is far off. A clock never shows
    /// less than zero.
    ///
    /// # Panics
    /// Where the host is not of this world.
    pub fn step_clock(&mut self, host: HostId, step_ns: i64) {
        let seat = &mut self.seats[host.0 as usize];
        let asked_for = (seat.deadline != Instant::NEVER).then(|| seat.clock.local(seat.deadline));
        seat.clock.offset_ns = seat.clock.offset_ns.saturating_add_signed(step_ns);
        if let Some(at) = asked_for {
            seat.deadline = seat.clock.world(at).max(self.now);
            self.rearm_host(host);
        }
    }

    /// The observer.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, to be changed between events.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends the world and gives the observer back.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// The last time that [`World::run_until`] can reach: the scheduler's horizon.
    #[must_use]
    pub fn horizon(&self) -> Instant {
        self.scheduler.horizon()
    }

    /// Runs every event up to and including `until`, and brings all queues up to that time.
    ///
    /// # Panics
    /// Where `until` lies beyond the [horizon](World::horizon).
    pub fn run_until(&mut self, until: Instant) {
        self.run_some(until, u64::MAX);
    }

    /// The same, but no more than so many events, one at least, and queues up to where it stops. Says whether that is `until`: who looks on may want an
    /// end in a second that has more of them than can be waited for.
    ///
    /// # Panics
    /// As [`World::run_until`].
    pub fn run_some(&mut self, until: Instant, events: u64) -> bool {
        assert!(until <= self.horizon(), "{until} is beyond the horizon of {}", self.horizon());
        self.start();
        let last = self.events.saturating_add(events.max(1));
        let mut is_there = true;
        while let Some((source, at)) = self.scheduler.next() {
            if at > until {
                break;
            }
            if self.events >= last {
                is_there = false;
                break;
            }
            self.now = at;
            self.events += 1;
            if (source as usize) < self.wires.len() {
                self.link_acts(LinkId(source));
            } else {
                self.host_wakes(HostId(source - self.wires.len() as u32));
            }
        }
        if is_there {
            self.now = self.now.max(until);
        }
        for index in 0..self.wires.len() as u32 {
            self.with_ear(LinkId(index), |link, now, ear| link.advance(now, ear));
        }
        is_there
    }

    fn start(&mut self) {
        if !core::mem::replace(&mut self.started, true) {
            for index in 0..self.seats.len() as u32 {
                self.tell(HostId(index), Input::Start);
            }
        }
    }

    /// A link's head packet arrives: it goes on to the next link, or to its host.
    fn link_acts(&mut self, id: LinkId) {
        let arrived = self.with_ear(id, |link, now, ear| link.take_arrived(now, ear));
        if self.foresees() {
            self.look_ahead(id, arrived.as_ref());
        }
        match arrived.map(|token| (token, self.routes.step(token.hop))) {
            Some((token, Some((next, hop)))) => self.offer(next, Token { hop, ..token }),
            Some((token, None)) => self.deliver(token.packet),
            None => {}
        }
        // At last: an answer may have gone over this very link, which then is woken for that at once.
        self.rearm_link(id);
    }

    fn foresees(&self) -> bool {
        self.seats.first().is_some_and(|seat| seat.host.foresees())
    }

    /// Tells hosts of what has `arrived` over a link, and of what comes behind it, while others are at work.
    fn look_ahead(&self, id: LinkId, arrived: Option<&Token>) {
        let next = self.wires[id.0 as usize].link.under_way();
        let next = next.zip([Foresight::Next, Foresight::Near, Foresight::Sent]);
        for (token, foresight) in arrived.map(|token| (token, Foresight::Arrived)).into_iter().chain(next) {
            if self.routes.step(token.hop).is_none() {
                self.foresee(self.pool.get(token.packet), foresight);
            }
        }
    }

    fn foresee(&self, packet: &Datagram, foresight: Foresight) {
        if let Some(seat) = self.seats.get(packet.destination.host.0 as usize) {
            seat.host.foresee(packet, foresight);
        }
    }

    fn host_wakes(&mut self, id: HostId) {
        let seat = &mut self.seats[id.0 as usize];
        seat.armed = Instant::NEVER;
        if seat.deadline > self.now {
            return self.rearm_host(id);
        }
        seat.deadline = Instant::NEVER;
        self.tell(id, Input::Timeout);
    }

    fn deliver(&mut self, packet: PacketId) {
        let waited = self.pool.waited(packet);
        let datagram = self.pool.remove(packet);
        let host = datagram.destination.host;
        if let Some(tape) = &mut self.tape {
            tape.delivered(self.now, host, &datagram);
        }
        self.observer.delivered(&PacketEvent { at: self.now, host, datagram: &datagram, waited });
        self.tell(host, Input::Datagram(datagram));
    }

    /// Hands an input to a host and does what it asks for.
    fn tell(&mut self, id: HostId, input: Input) {
        let seat = &mut self.seats[id.0 as usize];
        self.output.wake_at = None;
        seat.host.handle(seat.clock.local(self.now), input, &mut self.output);
        seat.deadline = self.output.wake_at.map_or(Instant::NEVER, |at| seat.clock.world(at).max(self.now));
        self.rearm_host(id);
        if !self.output.sends.is_empty() {
            self.send_all(id);
        }
    }

    fn send_all(&mut self, from: HostId) {
        let mut sends = core::mem::take(&mut self.output.sends);
        for datagram in sends.drain(..) {
            self.send(from, datagram);
        }
        self.output.sends = sends;
    }

    fn send(&mut self, from: HostId, datagram: Datagram) {
        let waited = Duration::ZERO;
        self.observer.sent(&PacketEvent { at: self.now, host: from, datagram: &datagram, waited });
        let Some((first, hop)) = self.routes.path(from, datagram.destination.host) else {
            self.unroutable += 1;
            return;
        };
        if self.foresees() {
            self.foresee(&datagram, Foresight::Sent);
        }
        let bytes = datagram.wire_bytes();
        let packet = self.pool.insert(datagram);
        self.offer(first, Token { packet, hop, bytes });
    }

    /// Offers a packet to a link, twice where the link duplicates.
    fn offer(&mut self, id: LinkId, token: Token) {
        if self.wires[id.0 as usize].link.duplicates() {
            let packet = self.pool.duplicate(token.packet);
            self.enqueue(id, Token { packet, ..token });
        }
        self.enqueue(id, token);
        self.rearm_link(id);
    }

    fn enqueue(&mut self, id: LinkId, token: Token) {
        let refused = self.with_ear(id, |link, now, ear| link.offer(now, token, token.bytes, ear).err());
        if let Some(token) = refused {
            self.pool.remove(token.packet);
        }
    }

    #[cold]
    #[inline(never)]
    fn reclaim_lost(&mut self, id: LinkId) {
        while let Some(token) = self.wires[id.0 as usize].link.take_lost() {
            self.pool.remove(token.packet);
        }
    }

    fn with_ear<R>(
        &mut self,
        id: LinkId,
        act: impl FnOnce(&mut Link<Token>, Instant, &mut Ear<'_, O>) -> R,
    ) -> R {
        let wire = &mut self.wires[id.0 as usize];
        let mut ear = Ear {
            observer: &mut self.observer,
            pool: &mut self.pool,
            tape: &mut self.tape,
            link: id,
            watched: wire.watched,
        };
        act(&mut wire.link, self.now, &mut ear)
    }

    /// After a link has done something: what it has lost is given back, and it is woken when it wants to be.
    fn rearm_link(&mut self, id: LinkId) {
        let wire = &mut self.wires[id.0 as usize];
        let next = wire.link.next_event();
        let has_lost = wire.link.has_lost();
        if next != wire.armed {
            wire.armed = next;
            self.scheduler.set(id.0, next);
        }
        if has_lost {
            self.reclaim_lost(id);
        }
    }

    /// Timers are re-armed lazily: most deadlines only ever move away, and waking once too early costs less than
    /// moving the event each time.
    fn rearm_host(&mut self, id: HostId) {
        let seat = &mut self.seats[id.0 as usize];
        if seat.deadline < seat.armed || seat.armed == Instant::NEVER {
            seat.armed = seat.deadline;
            self.scheduler.set(self.wires.len() as u32 + id.0, seat.armed);
        }
    }
}
