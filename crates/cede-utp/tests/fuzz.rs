//! Hostile packets: whatever arrives, and whatever the application does meanwhile, nothing panics, nothing spins, and
//! memory keeps its limits. `cargo bolero test hostile_packets` fuzzes with coverage; `cargo test` draws at random.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Instant, Seq16, Stream};
use cede_utp::{Config, Connection, DelayedAck, Endpoint, Limits, Mtu};
use cede_wire::Payload;
use cede_wire::utp::{Header, Kind, Packet};
use common::controller;

const BUFFER_BYTES: u32 = 64 << 10;
/// Two buffers in order and out of order, one for sending, and what the structures around them take.
const MEMORY_BYTES: u64 = 2 << 20;
/// More packets than a window has never leave at once.
const MAX_BURST: usize = 1200;

/// Numbers drawn from the fuzzer's octets; zero after their end.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn half(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Mostly near zero on either side, sometimes anywhere.
    fn offset(&mut self) -> u16 {
        match self.byte() {
            0..=99 => 0,
            n @ 100..=199 => ((i16::from(n) - 150) / 8).cast_unsigned(),
            200..=239 => u16::from(self.byte()).wrapping_sub(128),
            _ => self.half(),
        }
    }

    fn take(&mut self, n: usize) -> Vec<u8> {
        let n = n.min(self.0.len());
        let (front, rest) = self.0.split_at(n);
        self.0 = rest;
        front.to_vec()
    }
}

struct Target {
    connection: Connection,
    now: Instant,
    /// What the next plausible packet would carry.
    peer_seq: Seq16,
    our_seq: Seq16,
    written: u64,
    /// Where the peer's timestamps are made up, what they are made from.
    lies: Option<Stream>,
}

fn config(choice: u8) -> Config {
    let base = match choice % 4 {
        0 => Config::default(),
        1 => Config::libutp(),
        2 => Config::libtorrent(),
        _ => Config::internet(),
    };
    let limit = |limit: Option<u32>| limit.map(|_| BUFFER_BYTES);
    let start = |limit: Option<u32>| if limit.is_some() { BUFFER_BYTES / 4 } else { BUFFER_BYTES };
    Config {
        send_buffer_bytes: start(base.send_buffer_limit_bytes),
        send_buffer_limit_bytes: limit(base.send_buffer_limit_bytes),
        receive_buffer_bytes: start(base.receive_buffer_limit_bytes),
        receive_buffer_limit_bytes: limit(base.receive_buffer_limit_bytes),
        mtu: if choice & 8 == 0 { Mtu::DEFAULT } else { Mtu::SEARCH_IPV4 },
        delayed_ack: (choice & 16 != 0)
            .then_some(DelayedAck { timeout: Duration::from_millis(40), every_packets: 2 }),
        initial_seq: Some(Seq16(0xffe0)),
        connection_id: Some(100),
        ..base
    }
}

fn header(kind: Kind, id: u16, seq: Seq16, ack: Seq16, window_bytes: u32, now: Instant) -> Header {
    let timestamp_us = now.as_micros() as u32;
    Header { kind, connection_id: id, timestamp_us, timestamp_difference_us: 20_000, window_bytes, seq, ack }
}

impl Target {
    /// A connection that has come as far as `choice` says.
    fn new(choice: u8, settings: u8) -> Self {
        let (now, config) = (Instant::from_secs(1), config(settings));
        let name = ["reno", "ledbat", "cubic"][usize::from(settings / 64) % 3];
        let (controller, mut random) = (controller(name, &config), Stream::named(1, "fuzz"));
        let peer_seq = Seq16(0xfff0);
        let connection = if choice & 1 == 0 {
            Connection::connect(now, config, controller, &mut random)
        } else {
            let syn = header(Kind::Syn, 99, peer_seq.sub(1), Seq16(0), 1 << 20, now).encode(&[]).unwrap();
            Connection::accept(now, &Packet::decode(&syn).unwrap(), config, controller, &mut random).unwrap()
        };
        let our_seq = if choice & 1 == 0 { Seq16(0xffe1) } else { Seq16(0xffe0) };
        let lies = (settings & 32 != 0).then(|| Stream::named(u64::from(choice), "lies"));
        let mut target = Self { connection, now, peer_seq, our_seq, written: 0, lies };
        target.drain();
        if choice & 2 != 0 {
            target.packet(Kind::State, 0, target.our_seq.sub(1), 1 << 20, &[], Payload::Empty);
        }
        if choice & 4 != 0 {
            target.write(30_000);
        }
        if choice & 8 != 0 {
            target.connection.close();
        }
        target.drain();
        target
    }

    fn write(&mut self, len: u32) {
        if let Ok(n) = self.connection.write(Payload::Pattern { start: self.written, len }) {
            self.written += u64::from(n);
        }
    }

    fn packet(&mut self, kind: Kind, ahead: u16, ack: Seq16, window: u32, mask: &[u8], payload: Payload) {
        let mut header = header(kind, 100, self.peer_seq.add(ahead), ack, window, self.now);
        if let Some(lies) = &mut self.lies {
            (header.timestamp_us, header.timestamp_difference_us) = (lies.next_u32(), lies.next_u32());
        }
        let mut octets = Vec::new();
        let extensions: &[(u8, &[u8])] = if mask.is_empty() { &[] } else { &[(1, mask)] };
        header.encode_into(extensions, &[], &mut octets).unwrap();
        self.connection.handle(self.now, &octets, payload);
    }

    /// Sends what wants to leave; the latest numbers make the next forged packet plausible.
    fn drain(&mut self) {
        let mut sent = 0;
        while let Some(transmit) = self.connection.poll_transmit(self.now) {
            // The extensions of a path-MTU probe reach into its payload, and long masks do.
            let whole = [transmit.head.to_vec(), transmit.payload.to_vec()].concat();
            let header = Packet::decode(&whole).expect("what we send decodes").header;
            if matches!(header.kind, Kind::Data | Kind::Fin) {
                self.our_seq = header.seq;
            }
            if header.kind != Kind::Syn {
                self.peer_seq = header.ack.add(1);
            }
            sent += 1;
            assert!(sent < MAX_BURST, "it sends without end");
        }
        let events = std::iter::from_fn(|| self.connection.poll_event()).count();
        assert!(events <= 6);
    }

    fn forge(&mut self, source: &mut Source<'_>) {
        // What ends a conversation is rare, so that some last.
        let kind = match source.byte() {
            0..=120 => Kind::Data,
            121..=240 => Kind::State,
            241..=250 => Kind::Syn,
            251..=253 => Kind::Fin,
            _ if source.byte() < 10 => Kind::Reset,
            _ => Kind::State,
        };
        let (ahead, ack) =
            (source.offset(), self.our_seq.sub(u16::from(source.byte() / 10)).add(source.offset()));
        let window = match source.byte() {
            0..=20 => 0,
            21..=60 => u32::from(source.half()),
            _ => u32::MAX,
        };
        let mask_len = match source.byte() {
            n @ 0..=239 => usize::from(n / 8),
            _ => usize::from(source.byte()),
        };
        let mask = source.take(mask_len);
        let payload = match (source.byte(), source.half()) {
            (0..=80, _) => Payload::Empty,
            (81..=200, len) => Payload::copy_from(&vec![7; usize::from(len % 1500)]),
            (_, len) => Payload::Pattern { start: 0, len: u32::from(len) },
        };
        self.packet(kind, ahead, ack, window, &mask, payload);
    }

    fn wait(&mut self, span: Duration) {
        self.now += span;
        self.connection.handle_timeout(self.now);
        self.drain();
        if let Some(at) = self.connection.poll_timeout() {
            assert!(
                at > self.now,
                "it wants to be called at once again: {:?}",
                self.connection.poll_timeout_reason()
            );
        }
    }

    fn step(&mut self, source: &mut Source<'_>) {
        match source.byte() {
            0..=150 => self.forge(source),
            151..=165 => {
                let len = usize::from(source.byte());
                let octets = source.take(len);
                self.connection.handle(self.now, &octets, Payload::Empty);
            }
            166..=190 => self.wait(Duration::from_micros(u64::from(source.half()) * 5)),
            191..=193 => {
                let next = self.connection.poll_timeout().unwrap_or(self.now);
                self.wait(next.since(self.now));
            }
            194..=220 => self.write(u32::from(source.half())),
            221..=240 => drop(self.connection.read()),
            241 => self.rarity(source),
            242 => self.connection.packet_too_big(self.now, Some(u32::from(source.half()))),
            _ => self.drain(),
        }
        self.check();
    }

    fn rarity(&mut self, source: &mut Source<'_>) {
        match source.byte() {
            0..=20 => self.connection.close(),
            21..=40 => self.connection.shutdown(),
            41..=60 => self.connection.stop_reading(),
            61..=65 => self.connection.abort(),
            66..=70 => self.connection.unreachable(),
            _ => {}
        }
    }

    fn check(&self) {
        let snapshot = self.connection.snapshot();
        let buffer = u64::from(BUFFER_BYTES);
        assert!(snapshot.readable_bytes <= 2 * buffer && snapshot.reordered_bytes <= buffer);
        assert!(snapshot.queued_bytes + snapshot.unacked_bytes <= buffer);
        assert!(snapshot.in_flight_bytes <= snapshot.unacked_bytes);
        assert!(snapshot.window_bytes <= BUFFER_BYTES);
    }
}

fn run(octets: &[u8]) {
    let memory = allocation_counter::measure(|| {
        let mut source = Source(octets);
        let (choice, settings) = (source.byte(), source.byte());
        let mut target = Target::new(choice, settings);
        while !source.0.is_empty() {
            target.step(&mut source);
        }
        finish(&mut target);
    });
    assert!(
        memory.bytes_max < MEMORY_BYTES + 2 * octets.len() as u64,
        "{} octets of memory",
        memory.bytes_max
    );
}

/// Whatever was done to it: left alone by its peer, a connection that is closed comes to an end.
fn finish(target: &mut Target) {
    target.connection.close();
    target.connection.stop_reading();
    target.drain();
    let end = target.now + Duration::from_secs(3600);
    while !target.connection.is_drained() {
        let at = target.connection.poll_timeout().expect("something ends it");
        assert!(at <= end, "it stalls: {:?}", target.connection.snapshot());
        target.wait(at.since(target.now));
    }
}

#[test]
fn hostile_packets() {
    bolero::check!().for_each(run);
}

#[test]
fn long_hostile_conversations() {
    let mut random = Stream::named(1, "hostile");
    for _ in 0..400 {
        let octets: Vec<u8> = (0..4000).map(|_| random.next_u32() as u8).collect();
        run(&octets);
    }
}

/// An endpoint among strangers who send well-formed and ill-formed packets.
fn run_endpoint(octets: &[u8]) {
    let limits = Limits { connections: 20, half_open: 8, backlog: 4, early: 4, ..Limits::default() };
    let mut endpoint: Endpoint<u8> = Endpoint::new(limits, Stream::named(1, "fuzz"));
    endpoint.listen(config(0), Box::new(|_| controller("reno", &Config::default())));
    let (mut source, mut now) = (Source(octets), Instant::from_secs(1));
    while !source.0.is_empty() {
        let peer = source.byte() % 4;
        let kind = Kind::from_number(source.byte() % 5).unwrap();
        let (id, seq, ack) = (source.byte() % 8, source.offset(), source.offset());
        let head = header(kind, id.into(), Seq16(seq), Seq16(ack), 1 << 16, now).encode(&[]).unwrap();
        endpoint.handle(now, peer, &head, Payload::Empty);
        let len = usize::from(source.byte() / 8);
        endpoint.handle(now, peer, &source.take(len), Payload::Empty);
        if source.byte() < 40 {
            now += Duration::from_millis(u64::from(source.byte()) * 20);
            endpoint.handle_timeout(now);
        }
        match source.byte() {
            0..=20 => {
                let config = config(source.byte());
                let controller = controller("reno", &config);
                endpoint.connect(now, peer, config, controller);
            }
            21..=60 => {
                if let Some(handle) = endpoint.accept() {
                    endpoint.release(handle);
                }
            }
            61..=200 => assert!(std::iter::from_fn(|| endpoint.poll_transmit(now)).count() < MAX_BURST),
            _ => {}
        }
        while let Some((handle, _)) = endpoint.poll_event() {
            endpoint.release(handle);
        }
        assert!(endpoint.len() <= 20);
    }
}

#[test]
fn hostile_strangers() {
    bolero::check!().for_each(run_endpoint);
    let mut random = Stream::named(2, "hostile");
    for _ in 0..200 {
        let octets: Vec<u8> = (0..4000).map(|_| random.next_u32() as u8).collect();
        run_endpoint(&octets);
    }
}
