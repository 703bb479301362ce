//! The acceptor speaks first: librqbit, utp-rs and libutp, as initiators, say nothing after the answer to their SYN until
//! their application does.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Instant, Seq16, Stream};
use cede_utp::{Config, Connection, ConnectionError, ConnectionState, Endpoint, Event, Handle, Limits, Mtu};
use cede_wire::utp::{Header, Kind, Packet};
use cede_wire::{Payload, pattern_octet};
use common::{Diary, Fate, Recorder, Seen, Setup, Told, World, controller, ms};

/// The number of the answer.
const ANSWER: Seq16 = Seq16(0xffff);

fn header(kind: Kind, connection_id: u16, seq: u16, ack: Seq16) -> Header {
    Header {
        kind,
        connection_id,
        timestamp_us: 5,
        timestamp_difference_us: 0,
        window_bytes: 1 << 20,
        seq: Seq16(seq),
        ack,
    }
}

/// An acceptor whose initiator is written by hand: its SYN has id 100 and number 7.
struct Acceptor {
    connection: Connection,
    now: Instant,
    diary: Diary,
}

impl Acceptor {
    fn new(config: &Config) -> Self {
        let now = Instant::from_secs(1);
        let config = Config { initial_seq: Some(ANSWER), ..config.clone() };
        let syn = header(Kind::Syn, 100, 7, Seq16(0)).encode(&[]).unwrap();
        let syn = Packet::decode(&syn).unwrap();
        let (controller, diary) = Recorder::boxed(100_000);
        let mut random = Stream::named(1, "acceptor");
        let connection = Connection::accept(now, &syn, config, controller, &mut random).unwrap();
        Self { connection, now, diary }
    }

    fn write(&mut self, len: u32) {
        assert_eq!(self.connection.write(Payload::Pattern { start: 0, len }), Ok(len));
    }

    /// What leaves now: kind, number and octets of UDP payload.
    fn sent(&mut self) -> Vec<(Kind, Seq16, u32)> {
        std::iter::from_fn(|| self.connection.poll_transmit(self.now))
            .map(|transmit| {
                let header = Packet::decode(&transmit.head).unwrap().header;
                assert_eq!((header.connection_id, header.ack), (100, Seq16(7)));
                (header.kind, header.seq, transmit.len() as u32)
            })
            .collect()
    }

    fn wait(&mut self, span: Duration) {
        self.now += span;
        self.connection.handle_timeout(self.now);
    }

    /// As [`Acceptor::sent`], when the initiator has been silent for so long that what was held leaves.
    fn sent_early(&mut self) -> Vec<(Kind, Seq16, u32)> {
        assert_eq!(self.sent(), [(Kind::State, ANSWER, 20)]);
        self.wait(ms(250));
        self.sent()
    }

    /// A packet of the initiator's: its next is number 8.
    fn hear(&mut self, kind: Kind, seq: u16, ack: Seq16) {
        let head = header(kind, 101, seq, ack).encode(&[]).unwrap();
        self.connection.handle(self.now, &head, Payload::Empty);
    }
}

#[test]
fn one_small_packet_leaves_and_is_repeated_with_the_answer_until_it_is_given_up() {
    for config in
        [Config::default(), Config::internet(), Config { mtu: Mtu::SEARCH_IPV6, ..Config::internet() }]
    {
        let mut acceptor = Acceptor::new(&config);
        acceptor.write(50_000);
        acceptor.connection.close();
        let burst = [(Kind::State, ANSWER, 20), (Kind::Data, ANSWER, 548)];
        assert_eq!(acceptor.sent(), burst[..1]);
        assert!(acceptor.sent().is_empty());
        let (begun, mut log) = (acceptor.now, Vec::new());
        while let Some(at) = acceptor.connection.poll_timeout() {
            acceptor.wait(at.since(acceptor.now));
            let sent = acceptor.sent();
            if !sent.is_empty() {
                assert_eq!(sent, burst);
                log.push(acceptor.now.since(begun));
            }
        }
        assert_eq!(log, [ms(250), ms(1250), ms(3250)]);
        assert_eq!(acceptor.now.since(begun), Duration::from_secs(10));
        assert_eq!(acceptor.connection.error(), Some(ConnectionError::TimedOut));
        // Its controller hears of every transmission but the last that it is under way no more.
        let told = acceptor.diary.lock().unwrap();
        let numbers = told.iter().filter_map(|told| match told {
            Told::Sent(sent) => Some(sent.number as i64),
            Told::Forgotten(packet) => Some(-1 - packet.number as i64),
            _ => None,
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [0, -1, 0, -1, 0]);
    }
}

#[test]
fn what_is_written_late_is_repeated_less_and_nothing_exceeds_the_bound() {
    for written_at in (0..10_000).step_by(250) {
        let mut acceptor = Acceptor::new(&Config::default());
        let mut octets = 0;
        for at in (0..11_000).step_by(10) {
            if at == written_at {
                acceptor.write(5000);
            }
            octets += acceptor.sent().iter().map(|(_, _, octets)| octets).sum::<u32>();
            acceptor.wait(ms(10));
        }
        assert!((3 * 20 + 548..=4 * 20 + 3 * 548).contains(&octets), "{octets} when written at {written_at}");
        assert!(acceptor.connection.is_drained());
    }
}

#[test]
fn who_speaks_soon_meets_nothing_but_the_answer() {
    let mut acceptor = Acceptor::new(&Config::default());
    acceptor.write(5000);
    assert_eq!(acceptor.sent(), [(Kind::State, ANSWER, 20)]);
    acceptor.wait(ms(249));
    assert!(acceptor.sent().is_empty());
    acceptor.hear(Kind::Data, 8, ANSWER.sub(1));
    let sent = acceptor.connection.poll_transmit(acceptor.now).unwrap();
    // All that it says from here on follows the number of the answer, which has arrived.
    assert_eq!(Packet::decode(&sent.head).unwrap().header.seq, ANSWER);
    assert!(acceptor.connection.is_established());
}

#[test]
fn a_repeated_syn_gets_the_number_that_the_data_begin_with() {
    let mut acceptor = Acceptor::new(&Config::default());
    acceptor.write(100);
    assert_eq!(acceptor.sent_early().len(), 2);
    let syn = header(Kind::Syn, 100, 7, Seq16(0)).encode(&[]).unwrap();
    acceptor.connection.handle(acceptor.now, &syn, Payload::Empty);
    assert_eq!(acceptor.sent(), [(Kind::State, ANSWER, 20)]);
}

#[test]
fn only_who_has_heard_the_answer_can_speak_for_the_initiator() {
    let fits = [ANSWER.sub(1), ANSWER];
    for kind in [Kind::Data, Kind::State, Kind::Fin] {
        for ack in (0..=u16::MAX).map(Seq16) {
            let mut acceptor = Acceptor::new(&Config::default());
            acceptor.write(5000);
            acceptor.sent_early();
            // Numbers that were delivered before say nothing at all, whatever they acknowledge.
            acceptor.hear(kind, 7, ack);
            assert_eq!(acceptor.connection.state(), ConnectionState::SynReceived);
            assert_eq!(acceptor.connection.statistics().packets_acked, 0);
            acceptor.hear(kind, 8, ack);
            assert_eq!(acceptor.connection.is_established(), fits.contains(&ack), "{kind:?} {ack:?}");
            assert_eq!(acceptor.connection.statistics().packets_acked, u64::from(ack == ANSWER));
        }
    }
}

#[test]
fn once_the_initiator_is_heard_the_rest_follows_and_the_first_packet_has_its_timer() {
    let mut acceptor = Acceptor::new(&Config::default());
    acceptor.write(528 + 3 * 1382);
    assert_eq!(acceptor.sent_early().len(), 2);
    acceptor.wait(ms(30));
    // It speaks at the same time: what we sent has not arrived yet, and never does.
    acceptor.hear(Kind::Data, 8, ANSWER.sub(1));
    let data: Vec<u32> = std::iter::from_fn(|| acceptor.connection.poll_transmit(acceptor.now))
        .map(|transmit| transmit.payload.len())
        .filter(|&len| len > 0)
        .collect();
    assert_eq!(data.iter().sum::<u32>(), 3 * 1382);
    let at = acceptor.connection.poll_timeout().unwrap();
    acceptor.wait(at.since(acceptor.now));
    let again = acceptor.connection.poll_transmit(acceptor.now).unwrap();
    assert_eq!(Packet::decode(&again.head).unwrap().header.seq, ANSWER);
    assert_eq!(again.payload.len(), 528);
}

#[test]
fn a_stream_without_octets_may_end_first() {
    let mut acceptor = Acceptor::new(&Config::default());
    acceptor.connection.close();
    assert_eq!(acceptor.sent_early(), [(Kind::State, ANSWER, 20), (Kind::Fin, ANSWER, 20)]);
    acceptor.hear(Kind::State, 8, ANSWER);
    acceptor.hear(Kind::Fin, 8, ANSWER);
    let events: Vec<Event> = std::iter::from_fn(|| acceptor.connection.poll_event()).collect();
    assert_eq!(events, [Event::Connected, Event::PeerFinished, Event::Closed]);
}

/// The acceptor sends, and ends; the initiator says nothing but acknowledgements of what it got.
fn download(mut judge: impl FnMut(&Seen) -> Fate + 'static) -> World {
    let setup = Setup { configs: [Config::internet(), Config::internet()], ..Setup::default() };
    let mut world = World::new(&setup);
    world.accept_next(&setup);
    let first = world.sides[1].connection.send_id();
    world.judge = Box::new(move |seen| {
        assert_eq!(seen.header.connection_id, if seen.from == 1 { first } else { first.wrapping_add(1) });
        judge(seen)
    });
    world.sides[1].to_write = 1 << 20;
    world.sides[1].close_after_writing = true;
    world.sides[0].close_after_reading = true;
    let end = world.now + Duration::from_secs(600);
    let closed = world.run_until(end, |world| world.sides.iter().all(|side| side.connection.is_drained()));
    let ends: Vec<_> = world.sides.iter().map(|side| (side.connection.snapshot(), &side.events)).collect();
    assert!(closed && world.sides[0].received == 1 << 20, "{ends:?}");
    assert!(world.sides.iter().all(|side| side.has(Event::Closed)));
    world
}

#[test]
fn an_initiator_that_does_not_acknowledge_the_answer_itself_gets_the_stream() {
    let mut answers = 0;
    let world = download(move |seen| {
        // Ours would acknowledge the answer: that is lost each time.
        answers += u32::from(seen.from == 0);
        if seen.from == 0 && answers == 1 { Fate::Drop } else { Fate::Deliver }
    });
    assert!(world.now < Instant::from_secs(60));
}

#[test]
fn whatever_is_lost_of_the_first_packets_the_stream_is_whole() {
    // Each combination of the first three packets of either side, the SYN aside.
    for lost in 0..64_u32 {
        download(move |seen| {
            let place = if seen.from == 1 { Some(seen.index) } else { seen.index.checked_sub(1) };
            let bit = place.filter(|&place| place < 3).map(|place| place + 3 * seen.from);
            if bit.is_some_and(|bit| lost >> bit & 1 == 1) { Fate::Drop } else { Fate::Deliver }
        });
    }
}

fn endpoint(seed: u64, limits: Limits) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(limits, Stream::named(seed, "endpoint"));
    endpoint.listen(Config::internet(), Box::new(|_| controller("reno", &Config::internet())));
    endpoint
}

fn drain(endpoint: &mut Endpoint<u32>, now: Instant) -> u64 {
    std::iter::from_fn(|| endpoint.poll_transmit(now)).map(|(_, transmit)| transmit.len() as u64).sum()
}

#[test]
fn an_endpoint_hands_out_half_open_connections_while_they_are_few() {
    let now = Instant::from_secs(1);
    for (limits, few) in [
        (Limits::default(), 32),
        (Limits { early: 5, ..Limits::default() }, 5),
        (Limits { half_open: 80, ..Limits::default() }, 10),
        (Limits { early: 0, ..Limits::default() }, 0),
    ] {
        let mut server = endpoint(1, limits);
        let mut taken = 0;
        for peer in 0..100 {
            let syn = header(Kind::Syn, 100, 7, Seq16(0)).encode(&[]).unwrap();
            server.handle(now, peer, &syn, Payload::Empty);
            taken += usize::from(server.has_incoming());
            assert_eq!(server.accept().is_some(), taken == peer as usize + 1);
            drain(&mut server, now);
        }
        assert_eq!(taken, few);
        // When those have gone, nobody asks for the others, which go too.
        let later = now + Duration::from_secs(10);
        server.handle_timeout(later);
        drain(&mut server, later);
        assert_eq!((server.len(), server.accept()), (taken, None));
        assert!(server.statistics().half_open_expired >= taken as u64);
        let failed = std::iter::from_fn(|| server.poll_event())
            .filter(|(_, event)| *event == Event::Failed(ConnectionError::TimedOut));
        assert_eq!(failed.count(), taken);
    }
}

#[test]
fn a_flood_draws_little_from_an_application_that_speaks_first() {
    let (mut server, mut now) = (endpoint(1, Limits::default()), Instant::from_secs(1));
    let (mut sent, mut received, mut taken): (u64, u64, Vec<Handle>) = (0, 0, Vec::new());
    // 60 s of 20 SYNs a second: too few for the half-open limit to drop any before its time.
    for i in 0..1200_u32 {
        now += ms(50);
        server.handle_timeout(now);
        let syn = header(Kind::Syn, i as u16, 7, Seq16(0)).encode(&[]).unwrap();
        server.handle(now, i, &syn, Payload::Empty);
        received += 20;
        while let Some(handle) = server.accept() {
            let connection = server.connection_mut(handle).unwrap();
            connection.write_slice(&[1; 100_000]).unwrap();
            taken.push(handle);
        }
        sent += drain(&mut server, now);
        while let Some((handle, event)) = server.poll_event() {
            assert_eq!(event, Event::Failed(ConnectionError::TimedOut));
            server.release(handle);
        }
        drain(&mut server, now);
    }
    // At most 32 such connections in any ten seconds, and the answers: three for the first few, one for the others.
    assert!(taken.len() <= 32 * 6, "{} taken", taken.len());
    assert!(sent <= received + 32 * 6 * 1724, "{sent} octets for {received}");
    assert!(server.len() <= 256 + 32);
}

#[test]
fn a_connection_taken_early_goes_on_as_any_other() {
    let mut now = Instant::from_secs(1);
    let (mut server, mut client) = (endpoint(1, Limits::default()), endpoint(2, Limits::default()));
    let config = Config::internet();
    let opened = client.connect(now, 2, config.clone(), controller("reno", &config)).unwrap();
    let (_, syn) = client.poll_transmit(now).unwrap();
    server.handle(now, 1, &syn.head, Payload::Empty);
    let taken = server.accept().expect("at once");
    let octets: Vec<u8> = (0..20_000).map(pattern_octet).collect();
    assert_eq!(server.connection_mut(taken).unwrap().write_slice(&octets), Ok(20_000));
    server.release(taken);
    let mut received = Vec::new();
    for _ in 0..100 {
        now += ms(10);
        server.handle_timeout(now);
        client.handle_timeout(now);
        while let Some((_, packet)) = server.poll_transmit(now) {
            client.handle(now, 2, &packet.head, packet.payload);
        }
        while let Some((_, packet)) = client.poll_transmit(now) {
            server.handle(now, 1, &packet.head, packet.payload);
        }
        while let Some(payload) = client.read(opened) {
            received.extend(payload.to_vec());
        }
    }
    assert_eq!(received, octets);
    assert!(client.connection(opened).unwrap().is_at_end());
    assert_eq!(server.statistics().half_open_expired, 0);
}
