//! A peer of a simulated swarm as a host of the world.

use super::exchange::Exchange;
use super::model::{Departure, Hashing};
use super::near::bring;
use super::sockets::{News, Sockets};
use super::tracker::Tracker;
use crate::histogram::Histogram;
use cede_bt::engine::{Action, AnnounceEvent, Chunk, CloseReason, ConnId, Setup, Totals};
use cede_bt::extension::Extension;
use cede_bt::{Bitfield, Engine, Transport};
use cede_net::{Datagram, Foresight, Host, HostId, Input, Output, Protocol};
use cede_units::{Duration, Instant, Stream};
use cede_wire::Payload;
use cede_wire::utp::Packet;
use sha1::{Digest, Sha1};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a peer's life is like.
pub(super) struct Life {
    pub(super) setup: Setup,
    /// It tells each peer of two pieces at a time, where it has everything.
    pub(super) super_seeds: bool,
    pub(super) arrives_at: Instant,
    pub(super) announce_every: Option<Duration>,
    pub(super) departure: Departure,
    pub(super) hashing: Hashing,
    pub(super) random: Stream,
    pub(super) records: super::SwarmRecords,
}

impl Life {
    fn engine(&self, setup: Setup) -> Engine<u32> {
        let mut engine = Engine::new(setup);
        if self.super_seeds {
            engine.super_seed();
        }
        engine
    }
}

/// What was written down at a peer.
#[derive(Clone, Debug, Default)]
pub struct HostRecord {
    /// When everything was there.
    pub completed_at: Option<Instant>,
    /// When it came.
    pub arrived_at: Option<Instant>,
    /// When it left for good.
    pub left_at: Option<Instant>,
    /// When each piece was there, and which.
    pub pieces: Vec<(Instant, u32)>,
    /// Unchokes and chokes: when, whom, whether it was an unchoke, and whether requests waited.
    pub unchokes: Vec<(Instant, u32, bool, bool)>,
    /// Rounds of the choker, over all of its stays.
    pub rounds: u64,
    /// Gaps between data packets that left.
    pub gaps: Option<Box<Histogram>>,
    /// Payload octets of data packets that left, and how many there were of each size.
    pub payloads: BTreeMap<u32, u64>,
    /// Connections that ended, by reason.
    pub duplicates_closed: u32,
    /// Connections that were closed for breaking rules.
    pub misbehaved: u32,
    /// What its engines counted, one for each stay.
    pub totals: Totals,
    /// Octets that were not the torrent's.
    pub corrupt_bytes: u64,
    /// The smoothed RTT at each time that data left: over uTP at each packet, over TCP once for all segments that left at once.
    pub rtts: Option<Box<Histogram>>,
}

/// A peer of a simulated swarm.
pub struct SwarmHost {
    me: HostId,
    engine: Engine<u32>,
    sockets: Sockets,
    tracker: Rc<RefCell<Tracker>>,
    life: Life,
    online: bool,
    leaves_at: Instant,
    returns_at: Instant,
    announces_at: Instant,
    /// When the first of its plans is due: to come or leave, to announce itself, to tell its peers of others.
    plans_at: Instant,
    record: HostRecord,
    last_send: Option<Instant>,
    /// The size of the last data packets that left, and how many of it in a row are not in the record yet.
    alike: (u32, u64),
    /// Who stands behind each connection, for records.
    peers: Vec<u32>,
    /// Pieces of which something was not the torrent's.
    spoilt: Vec<u32>,
    /// What it tells its peers of others, if it does.
    exchange: Exchange,
}

impl SwarmHost {
    pub(super) fn new(me: HostId, life: Life, sockets: Sockets, tracker: Rc<RefCell<Tracker>>) -> Self {
        Self {
            me,
            engine: life.engine(life.setup.clone()),
            sockets,
            tracker,
            online: false,
            leaves_at: Instant::NEVER,
            returns_at: life.arrives_at,
            announces_at: Instant::NEVER,
            plans_at: life.arrives_at,
            record: HostRecord::default(),
            last_send: None,
            alike: (0, 0),
            peers: Vec::new(),
            spoilt: Vec::new(),
            exchange: Exchange::new(me),
            life,
        }
    }

    /// What was written down, with the engine's own counts.
    #[must_use]
    pub fn record(&self) -> HostRecord {
        let mut record = self.record.clone();
        count(&mut record.payloads, self.alike);
        record.totals += *self.engine.totals();
        record.rounds += self.engine.rounds();
        record.rtts = self.sockets.rtt_estimates();
        record
    }

    /// The engine, to look at.
    #[must_use]
    pub const fn engine(&self) -> &Engine<u32> {
        &self.engine
    }

    /// When everything was there.
    #[must_use]
    pub const fn completed_at(&self) -> Option<Instant> {
        self.record.completed_at
    }

    /// Whether nothing more is to be waited for: it is complete, or it has left for good.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.record.completed_at.is_some() || self.record.left_at.is_some()
    }

    /// Octets per second that it sends at most, from now on.
    pub const fn set_upload_limit(&mut self, limit: Option<u64>) {
        self.engine.set_upload_limit(limit);
    }

    fn come(&mut self, now: Instant) {
        self.returns_at = Instant::NEVER;
        self.plan_to_announce(now);
        self.online = true;
        self.record.arrived_at.get_or_insert(now);
        if let Departure::Churn(mean) = self.life.departure {
            self.leaves_at = now + self.draw(mean);
        }
        if self.engine.is_complete() {
            self.complete(now);
        }
        self.engine.start(now);
    }

    fn draw(&mut self, mean: Duration) -> Duration {
        Duration::from_secs_f64(self.life.random.exponential(mean.as_secs_f64()).max(1.0))
    }

    /// Leaves: every connection is closed. Who is to come back keeps what it has.
    fn leave(&mut self, now: Instant) {
        self.online = false;
        (self.leaves_at, self.announces_at) = (Instant::NEVER, Instant::NEVER);
        self.tracker.borrow_mut().leave(now, self.me.0);
        self.sockets.close_all();
        let back = match self.life.departure {
            Departure::Churn(mean) if !self.engine.is_complete() => Some(mean),
            _ => None,
        };
        let have = self.engine.have().clone();
        let random = Stream::named(self.life.random.next_u64(), "engine");
        let Some(mean) = back else {
            self.record.left_at = Some(now);
            return;
        };
        // Whoever comes back counts on, and begins with whole pieces.
        self.record.totals += *self.engine.totals();
        self.record.totals.cut += self.engine.unfinished_bytes();
        self.record.rounds += self.engine.rounds();
        self.exchange = Exchange::new(self.me);
        self.engine = self.life.engine(Setup { have, random, ..self.life.setup.clone() });
        self.returns_at = now + self.draw(mean);
    }

    /// Does what is due by the peer's own plans.
    fn live(&mut self, now: Instant) {
        let has_plans = self.plans_at <= now;
        if has_plans {
            self.come_or_leave(now);
        }
        if self.online && self.engine.poll_timeout().is_some_and(|at| at <= now) {
            self.engine.handle_timeout(now);
        }
        if has_plans {
            self.tell(now);
            self.look_ahead();
        }
    }

    #[cold]
    fn come_or_leave(&mut self, now: Instant) {
        if self.returns_at <= now {
            self.come(now);
        }
        if self.leaves_at <= now {
            self.leave(now);
        }
    }

    /// Tells the tracker that it is still there, and its peers of each other.
    #[cold]
    fn tell(&mut self, now: Instant) {
        if self.announces_at <= now {
            self.announce_again(now);
        }
        if self.online {
            self.exchange.tell(now, &mut self.engine);
        }
    }

    /// Looks which of its plans is due first.
    fn look_ahead(&mut self) {
        let told_at = if self.online { self.exchange.due_at() } else { Instant::NEVER };
        self.plans_at = self.leaves_at.min(self.returns_at).min(self.announces_at).min(told_at);
    }

    /// Lets engine and transports talk until neither has anything to say.
    fn settle(&mut self, now: Instant, output: &mut Output) {
        // Most often nothing has come of it that would keep anybody busy.
        while self.talk(now, output) && self.is_stirred() {}
    }

    /// One turn of it. Says whether anything came of it. What is not called for most of the time is not laid into this one: all
    /// that each of them needs would be made ready at every event.
    #[inline(never)]
    fn talk(&mut self, now: Instant, output: &mut Output) -> bool {
        let first = output.sends.len();
        let mut busy = self.sockets.work(now, &mut output.sends);
        self.note_sends(now, &output.sends[first..]);
        if self.sockets.has_news() {
            self.hear(now);
            busy = true;
        }
        if self.online {
            if self.engine.has_actions() {
                self.act(now);
                busy = true;
            }
            busy |= self.say(now);
        }
        busy
    }

    /// Whether there is something to do at the connections, to hear of, or to act upon.
    fn is_stirred(&self) -> bool {
        self.sockets.is_stirred() || self.online && self.engine.has_actions()
    }

    #[inline(never)]
    fn hear(&mut self, now: Instant) {
        while let Some(news) = self.sockets.next_news() {
            match news {
                News::Arrived(newcomer, peer, transport) => {
                    let taken = match self.online {
                        true => self.engine.accept(now, peer.0, transport),
                        false => None,
                    };
                    match taken {
                        Some(conn) => {
                            self.note_peer(conn, peer.0);
                            self.sockets.adopt(newcomer, conn);
                        }
                        None => self.sockets.turn_away(newcomer),
                    }
                }
                News::Connected(conn) => self.engine.connected(now, conn),
                News::Received(conn, payload) => self.engine.received(now, conn, payload),
                News::Closed(conn) => {
                    self.sockets.close(conn);
                    self.engine.closed(now, conn);
                }
            }
        }
    }

    #[inline(never)]
    fn act(&mut self, now: Instant) {
        while let Some(action) = self.engine.poll_action() {
            self.do_action(now, action);
        }
    }

    fn do_action(&mut self, now: Instant, action: Action<u32>) {
        match action {
            Action::Store { block, at, payload, .. } => {
                let offset = self.engine.geometry().offset(block.piece, block.begin + at);
                if !is_content(&payload, offset) {
                    self.record.corrupt_bytes += u64::from(payload.len());
                    self.spoilt.push(block.piece);
                }
            }
            Action::Check { piece } => self.check(now, piece),
            Action::Connect { conn, address, transport } => {
                self.note_peer(conn, address);
                self.sockets.connect(now, conn, HostId(address), transport);
            }
            Action::Close { conn, reason } => {
                self.note_close(reason);
                self.sockets.close(conn);
            }
            Action::MayRead { conn } => self.sockets.read_at_most(conn, self.engine.may_read(conn)),
            Action::Announce { event, want } => self.announce(now, event, want),
            Action::Unchoked { conn, unchoked, busy } => {
                let peer = self.peers.get(conn.index()).copied().unwrap_or(u32::MAX);
                self.record.unchokes.push((now, peer, unchoked, busy));
            }
            Action::Complete => self.complete(now),
            Action::Introduced { conn, extension } => self.introduce(now, conn, &extension),
            Action::Extended { id, payload, .. } => self.exchange.hear(now, &mut self.engine, id, &payload),
            Action::Ready { .. }
            | Action::HashRequest { .. }
            | Action::DhtPort { .. }
            | Action::Unreached { .. }
            | Action::Banned { .. } => {}
        }
    }

    fn introduce(&mut self, now: Instant, conn: ConnId, extension: &Extension) {
        if let Some(address) = self.engine.peer_at(conn).filter(|_| self.life.setup.profile.exchanges) {
            self.exchange.introduce(now, conn, address, extension);
            self.look_ahead();
        }
    }

    fn note_close(&mut self, reason: CloseReason) {
        let is_misbehaviour =
            matches!(reason, CloseReason::Misbehaved | CloseReason::Wire(_) | CloseReason::Banned);
        self.record.duplicates_closed += u32::from(reason == CloseReason::Duplicate);
        self.record.misbehaved += u32::from(is_misbehaviour);
    }

    fn announce(&mut self, now: Instant, event: AnnounceEvent, want: u32) {
        let named = self.tracker.borrow_mut().announce(now, self.me.0, event, want);
        self.engine.add_peers(now, &named);
    }

    fn plan_to_announce(&mut self, now: Instant) {
        self.announces_at = self.life.announce_every.map_or(Instant::NEVER, |every| now + every);
    }

    /// An interval of the tracker is over.
    fn announce_again(&mut self, now: Instant) {
        self.plan_to_announce(now);
        let want = if self.engine.is_complete() { 0 } else { self.life.setup.profile.want_peers };
        self.announce(now, AnnounceEvent::More, want);
    }

    fn complete(&mut self, now: Instant) {
        self.record.completed_at.get_or_insert(now);
        if let Departure::WhenDone(after) = self.life.departure {
            self.leaves_at = now + after;
            self.look_ahead();
        }
    }

    fn check(&mut self, now: Instant, piece: u32) {
        let mut good = !self.spoilt.contains(&piece);
        self.spoilt.retain(|&other| other != piece);
        if self.life.hashing == Hashing::Sha1 {
            good &= hash_of(&self.engine, piece) != [0; 20];
        }
        self.engine.checked(now, piece, good);
        if good && self.life.records.pieces {
            self.record.pieces.push((now, piece));
        }
    }

    #[inline(never)]
    fn say(&mut self, now: Instant) -> bool {
        while let Some((conn, room)) = self.sockets.next_room() {
            self.engine.set_room(conn, room);
        }
        let mut busy = false;
        while let Some((conn, chunk)) = self.engine.poll_transmit(now) {
            busy = true;
            let payload = match chunk {
                Chunk::Octets(payload) => payload,
                Chunk::Content { offset, len } => Payload::Pattern { start: offset, len },
            };
            self.sockets.write(conn, payload);
        }
        busy
    }

    fn note_peer(&mut self, conn: ConnId, peer: u32) {
        if self.life.records.unchokes {
            if self.peers.len() <= conn.index() {
                self.peers.resize(conn.index() + 1, u32::MAX);
            }
            self.peers[conn.index()] = peer;
        }
    }

    fn note_sends(&mut self, now: Instant, sends: &[Datagram]) {
        if !self.life.records.sends {
            return;
        }
        // Acknowledgements and control messages are short; what is of interest is the content's.
        for bytes in sends.iter().filter_map(content_bytes) {
            // Most are as long as the one before: the map is looked at where one is not.
            if self.alike.0 != bytes {
                count(&mut self.record.payloads, core::mem::replace(&mut self.alike, (bytes, 0)));
            }
            self.alike.1 += 1;
            if let Some(last) = self.last_send.replace(now) {
                self.record.gaps.get_or_insert_default().record(now.since(last));
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let engine = if self.online { self.engine.poll_timeout() } else { None };
        let at = self.sockets.deadline().min(self.plans_at);
        let at = at.min(engine.unwrap_or(Instant::NEVER));
        (at != Instant::NEVER).then_some(at)
    }

    /// Brings the connection near whose turn to send is next.
    fn foresee_turn(&self) {
        if let Some(conn) = self.engine.next_to_send() {
            self.sockets.bring_sender(conn);
            self.bring_connection(conn);
        }
    }

    /// Brings all of the connection near that a packet is for, where it is known.
    fn bring_receiver(&self, known: Option<u32>) {
        if let Some(conn) = known.and_then(|index| self.sockets.bring_receiver(index)) {
            self.bring_connection(conn.index());
        }
    }

    fn bring_connection(&self, conn: usize) {
        if let Some(beginning) = self.engine.beginning_of(conn) {
            bring(beginning, Engine::<u32>::CONNECTION_BYTES);
        }
    }
}

impl Host for SwarmHost {
    fn handle(&mut self, now: Instant, input: Input, output: &mut Output) {
        match input {
            Input::Start => {}
            Input::Datagram(datagram) => {
                let known = self.sockets.find(&datagram);
                self.bring_receiver(known);
                let accepts = self.online && self.life.setup.disposition.accepts(Transport::Tcp);
                if let Some(answer) = self.sockets.handle(now, datagram, (known, accepts)) {
                    output.sends.push(answer);
                }
            }
            Input::Timeout => {
                self.foresee_turn();
                self.sockets.handle_timeout(now);
            }
        }
        self.live(now);
        self.settle(now, output);
        output.wake_at = self.deadline();
    }

    fn foresees(&self) -> bool {
        true
    }

    fn foresee(&self, packet: &Datagram, foresight: Foresight) {
        if foresight == Foresight::Next {
            self.bring_receiver(self.sockets.find(packet));
        } else {
            self.sockets.foresee(packet, foresight);
        }
    }
}

/// Counts packets of one size in.
fn count(sizes: &mut BTreeMap<u32, u64>, (size, packets): (u32, u64)) {
    if packets > 0 {
        *sizes.entry(size).or_default() += packets;
    }
}

/// Packets with no more behind their headers are no data packets.
const CONTROL_BYTES: u32 = 200;

/// Octets behind the headers of a data packet.
fn content_bytes(datagram: &Datagram) -> Option<u32> {
    let mut bytes = datagram.payload.len();
    if bytes > CONTROL_BYTES && datagram.protocol == Protocol::Udp && datagram.dont_fragment {
        bytes = probed_bytes(datagram);
    }
    (bytes > CONTROL_BYTES).then_some(bytes)
}

/// The same of a search for the path's MTU: what fills it up is an extension, of which the octets that the head does not hold go before the
/// payload.
#[cold]
fn probed_bytes(datagram: &Datagram) -> u32 {
    let octets = [&datagram.head[..], &datagram.payload.to_vec()].concat();
    Packet::decode(&octets).map_or(datagram.payload.len(), |packet| packet.payload.len() as u32)
}

/// The octets of a piece through SHA-1, as a client would.
fn hash_of(engine: &Engine<u32>, piece: u32) -> [u8; 20] {
    let geometry = engine.geometry();
    let content = Payload::Pattern { start: geometry.offset(piece, 0), len: geometry.piece_len(piece) };
    Sha1::digest(content.to_vec()).into()
}

/// Whether octets are the torrent's from `offset` on.
fn is_content(payload: &Payload, offset: u64) -> bool {
    let is_pattern =
        |octets: &[u8]| octets.iter().zip(offset..).all(|(&octet, at)| octet == cede_wire::pattern_octet(at));
    match payload {
        Payload::Pattern { start, .. } => *start == offset,
        other => other.as_slice().map_or_else(|| is_pattern(&other.to_vec()), is_pattern),
    }
}

/// A bitfield for a role.
pub(super) fn begins_with(seed: bool, pieces: u32) -> Bitfield {
    if seed { Bitfield::all(pieces) } else { Bitfield::none(pieces) }
}
