//! Two connections and the network between them, in virtual time.
#![allow(dead_code, missing_docs, clippy::needless_pass_by_value)]

use cede_cc::{
    Allowance, Controller, DelaySamples, Feedback, PacketFact, Params, Sent, Snapshot, Tag, Timeout, registry,
};
use cede_units::{Duration, Instant, Seq16, Stream};
use cede_utp::{Config, Connection, Event};
use cede_wire::utp::{Header, Kind, Packet};
use cede_wire::{Payload, Transmit, pattern_octet};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn controller(name: &str, config: &Config) -> Box<dyn Controller> {
    registry::build(name, &Params::new(), &config.path()).expect("a controller of the registry")
}

/// The header of a packet that somebody made up; it acknowledges packet 0 and has room for a megabyte.
pub fn header(kind: Kind, connection_id: u16, seq: u16) -> Header {
    Header {
        kind,
        connection_id,
        timestamp_us: 5,
        timestamp_difference_us: 0,
        window_bytes: 1 << 20,
        seq: Seq16(seq),
        ack: Seq16(0),
    }
}

/// A packet as the network sees it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    /// The side that sent it.
    pub from: usize,
    pub header: Header,
    pub mask: Option<Vec<u8>>,
    pub close_reason: Option<u16>,
    /// Kinds and lengths of the extensions.
    pub chain: Vec<(u8, usize)>,
    pub payload_bytes: u32,
    /// Octets of UDP payload.
    pub udp_bytes: usize,
    pub dont_fragment: bool,
    pub may_fragment: bool,
    /// Packets of this side before it.
    pub index: usize,
}

impl Seen {
    fn of(at: Instant, from: usize, index: usize, transmit: &Transmit) -> Self {
        let whole = [transmit.head.to_vec(), transmit.payload.to_vec()].concat();
        let packet = Packet::decode(&whole).expect("what we send decodes");
        Self {
            at,
            from,
            header: packet.header,
            mask: packet.extensions.selective_ack().map(|mask| mask.as_bytes().to_vec()),
            close_reason: packet.extensions.close_reason(),
            chain: packet.extensions.iter().map(|extension| (extension.kind, extension.body.len())).collect(),
            payload_bytes: packet.payload.len() as u32,
            udp_bytes: whole.len(),
            dont_fragment: transmit.dont_fragment,
            may_fragment: transmit.may_fragment,
            index,
        }
    }
}

/// What the network does with a packet.
#[derive(Clone, Debug)]
pub enum Fate {
    Deliver,
    Drop,
    Twice,
    /// It arrives so much later than the others.
    Late(Duration),
    /// These octets arrive instead of head and payload.
    Garbled(Vec<u8>),
}

pub struct Side {
    pub connection: Connection,
    pub events: Vec<Event>,
    /// This side's clock is ahead of the world's by this.
    pub clock_offset: Duration,
    /// Pattern octets still to be written.
    pub to_write: u64,
    written: u64,
    pub close_after_writing: bool,
    pub close_after_reading: bool,
    pub reads: bool,
    pub received: u64,
    sent: usize,
}

impl Side {
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            events: Vec::new(),
            clock_offset: Duration::ZERO,
            to_write: 0,
            written: 0,
            close_after_writing: false,
            close_after_reading: false,
            reads: true,
            received: 0,
            sent: 0,
        }
    }

    pub fn has(&self, event: Event) -> bool {
        self.events.contains(&event)
    }

    fn work(&mut self) {
        while self.to_write > 0 {
            let len = self.to_write.min(1 << 20) as u32;
            let Ok(n) = self.connection.write(Payload::Pattern { start: self.written, len }) else { break };
            self.written += u64::from(n);
            self.to_write -= u64::from(n);
        }
        if self.close_after_writing && self.to_write == 0 {
            self.close_after_writing = false;
            self.connection.close();
        }
        while self.reads
            && let Some(payload) = self.connection.read()
        {
            self.check(&payload);
        }
        if self.close_after_reading && self.connection.is_at_end() {
            self.close_after_reading = false;
            self.connection.close();
        }
    }

    /// What arrives must be the pattern, whole and in order.
    fn check(&mut self, payload: &Payload) {
        if let Payload::Pattern { start, .. } = *payload {
            assert_eq!(start, self.received, "the stream has a gap or an overlap");
        } else {
            for octet in payload.to_vec() {
                assert_eq!(octet, pattern_octet(self.received), "octet {}", self.received);
                self.received += 1;
            }
            return;
        }
        self.received += u64::from(payload.len());
    }
}

type Judge = Box<dyn FnMut(&Seen) -> Fate>;

pub struct World {
    pub now: Instant,
    pub sides: Vec<Side>,
    pub delay: Duration,
    pub judge: Judge,
    pub log: Vec<Seen>,
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>, Payload)>,
    count: u64,
}

pub struct Setup {
    pub configs: [Config; 2],
    pub controller: &'static str,
    pub seed: u64,
    /// The sides' clocks are ahead of the world's by these.
    pub clock_offsets: [Duration; 2],
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            configs: [Config::default(), Config::default()],
            controller: "reno",
            seed: 1,
            clock_offsets: [Duration::ZERO; 2],
        }
    }
}

impl World {
    /// Side 0 has sent its SYN to side 1, which does not exist before it arrives: [`World::run_until`] makes it.
    pub fn new(setup: &Setup) -> Self {
        Self::with(setup, controller(setup.controller, &setup.configs[0]))
    }

    /// The same with another controller for side 0.
    pub fn with(setup: &Setup, controller: Box<dyn Controller>) -> Self {
        let now = Instant::ZERO + setup.clock_offsets[0];
        let mut random = Stream::named(setup.seed, "initiator");
        let config = setup.configs[0].clone();
        let connection = Connection::connect(now, config, controller, &mut random);
        Self {
            now: Instant::ZERO,
            sides: vec![Side { clock_offset: setup.clock_offsets[0], ..Side::new(connection) }],
            delay: ms(10),
            judge: Box::new(|_| Fate::Deliver),
            log: Vec::new(),
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    /// Both sides, with the handshake done over a perfect network.
    pub fn connected(setup: &Setup) -> Self {
        Self::new(setup).shake_hands(setup)
    }

    pub fn connected_with(setup: &Setup, controller: Box<dyn Controller>) -> Self {
        Self::with(setup, controller).shake_hands(setup)
    }

    fn shake_hands(mut self, setup: &Setup) -> Self {
        let world = &mut self;
        world.accept_next(setup);
        world.run_for(ms(100));
        assert!(world.sides.iter().all(|side| side.connection.is_established()));
        self
    }

    /// Lets the SYN leave, and makes the side that answers it.
    pub fn accept_next(&mut self, setup: &Setup) {
        // The SYN reaches a listener that is not modelled here, so side 1 begins with the SYN already in its hands.
        let local = self.local(0);
        let transmit = self.sides[0].connection.poll_transmit(local).expect("a SYN");
        self.accept(setup, &transmit);
    }

    pub fn accept(&mut self, setup: &Setup, transmit: &Transmit) {
        let syn = Packet::decode(&transmit.head).unwrap();
        let mut random = Stream::named(setup.seed, "acceptor");
        let config = setup.configs[1].clone();
        let controller = controller(setup.controller, &config);
        let now = self.now + setup.clock_offsets[1];
        let connection = Connection::accept(now, &syn, config, controller, &mut random).expect("a SYN");
        self.sides.push(Side { clock_offset: setup.clock_offsets[1], ..Side::new(connection) });
    }

    pub fn local(&self, side: usize) -> Instant {
        self.now + self.sides[side].clock_offset
    }

    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span, |_| false);
    }

    /// Runs until `done`, or `end`; true for `done`.
    pub fn run_until(&mut self, end: Instant, mut done: impl FnMut(&Self) -> bool) -> bool {
        loop {
            (0..self.sides.len()).for_each(|side| self.settle(side));
            if done(self) {
                return true;
            }
            let next = self.next_time();
            if next > end {
                self.now = end;
                return false;
            }
            assert!(next >= self.now, "time runs backwards");
            self.now = next;
            self.arrive();
            for side in 0..self.sides.len() {
                let local = self.local(side);
                if self.sides[side].connection.poll_timeout().is_some_and(|at| at <= local) {
                    self.sides[side].connection.handle_timeout(local);
                }
            }
        }
    }

    fn next_time(&self) -> Instant {
        let arrivals = self.flying.keys().next().map(|key| key.0);
        let timeouts = self.sides.iter().filter_map(|side| {
            let at = side.connection.poll_timeout()?;
            // A deadline in the past is due now.
            Some(at.saturating_sub(side.clock_offset).max(self.now))
        });
        timeouts.chain(arrivals).min().unwrap_or(Instant::NEVER)
    }

    fn arrive(&mut self) {
        while let Some(entry) = self.flying.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (to, head, payload) = entry.remove();
            if to < self.sides.len() {
                let local = self.local(to);
                self.sides[to].connection.handle(local, &head, payload);
                self.settle(to);
            }
        }
    }

    /// The drive rule.
    fn settle(&mut self, side: usize) {
        for _ in 0..3 {
            while let Some(event) = self.sides[side].connection.poll_event() {
                self.sides[side].events.push(event);
            }
            self.sides[side].work();
            let local = self.local(side);
            while let Some(transmit) = self.sides[side].connection.poll_transmit(local) {
                self.send(side, transmit);
            }
        }
    }

    fn send(&mut self, from: usize, transmit: Transmit) {
        let seen = Seen::of(self.now, from, self.sides[from].sent, &transmit);
        self.sides[from].sent += 1;
        let fate = (self.judge)(&seen);
        self.log.push(seen);
        let head = transmit.head.to_vec();
        match fate {
            Fate::Drop => {}
            Fate::Deliver => self.fly(1 - from, self.delay, head, transmit.payload),
            Fate::Twice => {
                self.fly(1 - from, self.delay, head.clone(), transmit.payload.clone());
                self.fly(1 - from, self.delay, head, transmit.payload);
            }
            Fate::Late(extra) => self.fly(1 - from, self.delay + extra, head, transmit.payload),
            Fate::Garbled(octets) => self.fly(1 - from, self.delay, octets, Payload::Empty),
        }
    }

    fn fly(&mut self, to: usize, delay: Duration, head: Vec<u8>, payload: Payload) {
        self.count += 1;
        self.flying.insert((self.now + delay, self.count), (to, head, payload));
    }

    /// Puts a packet of a stranger on the wire, to arrive at once.
    pub fn inject(&mut self, to: usize, header: &Header, payload: Payload) {
        let head = header.encode(&[]).unwrap().to_vec();
        self.fly(to, Duration::ZERO, head, payload);
        self.run_for(Duration::ZERO);
    }

    pub fn sent_by(&self, side: usize, kind: Kind) -> Vec<&Seen> {
        self.log.iter().filter(|seen| seen.from == side && seen.header.kind == kind).collect()
    }

    pub fn last_of(&self, side: usize) -> &Seen {
        self.log.iter().rfind(|seen| seen.from == side).expect("this side has sent something")
    }

    /// A header that side `1 - to` could have sent just now.
    pub fn forged(&self, to: usize, kind: Kind) -> Header {
        let last = self.last_of(1 - to).header;
        let answer = self.last_of(to).header;
        Header { kind, connection_id: self.sides[to].connection.receive_id(), ack: answer.seq.sub(1), ..last }
    }
}

/// Sides 0 to 1 carry `bytes` and close both ways, whatever `judge` does; gives the world after it.
pub fn transfer(setup: &Setup, bytes: u64, judge: impl FnMut(&Seen) -> Fate + 'static) -> World {
    let mut world = World::connected(setup);
    world.judge = Box::new(judge);
    world.sides[0].to_write = bytes;
    world.sides[0].close_after_writing = true;
    world.sides[1].close_after_reading = true;
    let end = world.now + Duration::from_secs(3600);
    let closed = world.run_until(end, |world| world.sides.iter().all(|side| side.connection.is_drained()));
    assert!(
        closed,
        "stalled: {:?}",
        world.sides.iter().map(|side| side.connection.snapshot()).collect::<Vec<_>>()
    );
    world
}

/// A controller with a fixed window that writes down all it is told.
pub struct Recorder {
    pub allowance: Allowance,
    /// The window from the first timeout on, where it changes then.
    pub after_timeout_bytes: Option<u64>,
    pub diary: Diary,
}

/// What a [`Recorder`] was told.
pub type Diary = Arc<Mutex<Vec<Told>>>;

#[derive(Clone, Debug)]
pub enum Told {
    Sent(Sent),
    Feedback { acked: Vec<PacketFact>, lost: Vec<PacketFact>, feedback: Feedback<'static> },
    Delays(DelaySamples),
    Forgotten(PacketFact),
    Timeout(Timeout),
    Mss(u32),
}

impl Recorder {
    pub fn boxed(cwnd_bytes: u64) -> (Box<dyn Controller>, Diary) {
        let diary = Diary::default();
        let allowance = Allowance::window(cwnd_bytes);
        (Box::new(Self { allowance, after_timeout_bytes: None, diary: diary.clone() }), diary)
    }

    fn note(&self, told: Told) -> Allowance {
        self.diary.lock().unwrap().push(told);
        self.allowance
    }
}

impl Controller for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.note(Told::Sent(*sent));
        sent.number as Tag + 1000
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance {
        self.note(Told::Feedback {
            acked: feedback.acked.to_vec(),
            lost: feedback.lost.to_vec(),
            feedback: Feedback { acked: &[], lost: &[], ..*feedback },
        })
    }

    fn on_delays(&mut self, samples: &DelaySamples) {
        self.note(Told::Delays(*samples));
    }

    fn on_forgotten(&mut self, packet: &PacketFact) {
        self.note(Told::Forgotten(*packet));
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance {
        self.allowance.cwnd_bytes = self.after_timeout_bytes.unwrap_or(self.allowance.cwnd_bytes);
        self.note(Told::Timeout(*timeout))
    }

    fn on_mss(&mut self, mss_bytes: u32) -> Allowance {
        self.note(Told::Mss(mss_bytes))
    }

    fn allowance(&self) -> Allowance {
        self.allowance
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
}

/// Numbers acknowledged so far, in the order in which the controller learnt of them.
pub fn acked(diary: &Diary) -> Vec<u64> {
    let told = diary.lock().unwrap();
    told.iter()
        .flat_map(|told| match told {
            Told::Feedback { acked, .. } => acked.iter().map(|fact| fact.number).collect(),
            _ => Vec::new(),
        })
        .collect()
}

/// An established connection without a peer: what the peer would send is written by hand.
pub struct Script {
    pub connection: Connection,
    pub now: Instant,
    pub diary: Diary,
    /// The number of the SYN's successor: the first DATA.
    pub first: Seq16,
    /// The number that the peer will use next.
    pub peer_seq: Seq16,
}

impl Script {
    /// Initiated by us, answered with sequence number `peer_seq`; the window is `cwnd_bytes`.
    pub fn new(config: Config, cwnd_bytes: u64, first: Seq16, peer_seq: Seq16) -> Self {
        let (controller, diary) = Recorder::boxed(cwnd_bytes);
        Self { diary, ..Self::with_controller(config, controller, first, peer_seq) }
    }

    pub fn with_controller(
        config: Config,
        controller: Box<dyn Controller>,
        first: Seq16,
        peer_seq: Seq16,
    ) -> Self {
        let diary = Diary::default();
        let config = Config { initial_seq: Some(first.sub(1)), connection_id: Some(100), ..config };
        let now = Instant::from_secs(1);
        let mut random = Stream::named(1, "script");
        let mut connection = Connection::connect(now, config, controller, &mut random);
        assert!(connection.poll_transmit(now).is_some());
        let mut script = Self { connection, now, diary, first, peer_seq };
        script.wait(ms(50));
        script.state(first.sub(1), &[]);
        assert!(script.connection.is_established());
        script.drain();
        script
    }

    pub fn wait(&mut self, span: Duration) {
        self.now += span;
        self.connection.handle_timeout(self.now);
    }

    pub fn header(&self, kind: Kind, seq: Seq16, ack: Seq16) -> Header {
        Header {
            kind,
            connection_id: 100,
            timestamp_us: self.now.as_micros() as u32,
            timestamp_difference_us: 25_000,
            window_bytes: 1 << 20,
            seq,
            ack,
        }
    }

    /// The peer's STATE, with a mask where one is given.
    pub fn state(&mut self, ack: Seq16, mask: &[u8]) {
        let header = self.header(Kind::State, self.peer_seq, ack);
        self.packet(&header, mask, Payload::Empty);
    }

    pub fn packet(&mut self, header: &Header, mask: &[u8], payload: Payload) {
        let mut octets = Vec::new();
        let extensions: &[(u8, &[u8])] = if mask.is_empty() { &[] } else { &[(1, mask)] };
        header.encode_into(extensions, &[], &mut octets).unwrap();
        self.connection.handle(self.now, &octets, payload);
    }

    /// Everything that wants to leave.
    pub fn drain(&mut self) -> Vec<Seen> {
        let mut sent = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(self.now) {
            sent.push(Seen::of(self.now, 0, sent.len(), &transmit));
        }
        sent
    }

    /// As [`Script::drain`], the sequence numbers of DATA alone.
    pub fn drain_data(&mut self) -> Vec<u16> {
        let sent = self.drain();
        sent.iter().filter(|seen| seen.header.kind == Kind::Data).map(|seen| seen.header.seq.0).collect()
    }

    /// Writes full packets, and sends as many as the windows allow.
    pub fn send_packets(&mut self, n: u32) -> Vec<u16> {
        let len = n * self.connection.snapshot().payload_bytes;
        assert_eq!(self.connection.write(Payload::Pattern { start: 0, len }), Ok(len));
        self.drain_data()
    }
}

/// The sequence number after `seq`.
pub fn next(seq: Seq16) -> Seq16 {
    seq.add(1)
}
