//! Many connections behind one address.
#![allow(missing_docs)]

mod common;

use cede_units::{Duration, Instant, Stream};
use cede_utp::{Config, ConnectionError, Endpoint, Event, Handle, Limits, Mtu, Verdict};
use cede_wire::utp::{Header, Kind, Packet};
use cede_wire::{Head, Payload, pattern_octet};
use common::{controller, header, ms};

fn endpoint(seed: u64, limits: Limits) -> Endpoint<u32> {
    let mut endpoint = Endpoint::new(limits, Stream::named(seed, "endpoint"));
    endpoint.listen(Config::default(), Box::new(|_| controller("reno", &Config::default())));
    endpoint
}

fn connect(endpoint: &mut Endpoint<u32>, now: Instant, peer: u32) -> Handle {
    let config = Config::default();
    endpoint.connect(now, peer, config.clone(), controller("reno", &config)).unwrap()
}

fn syn(id: u16) -> Head {
    header(Kind::Syn, id, 1000).encode(&[]).unwrap()
}

/// Moves packets between endpoint 1 and endpoint 2 until neither wants to send.
fn exchange(now: Instant, one: &mut Endpoint<u32>, two: &mut Endpoint<u32>) {
    loop {
        let mut quiet = true;
        while let Some((peer, transmit)) = one.poll_transmit(now) {
            assert_eq!(peer, 2);
            two.handle(now, 1, &transmit.head, transmit.payload);
            quiet = false;
        }
        while let Some((peer, transmit)) = two.poll_transmit(now) {
            assert_eq!(peer, 1);
            one.handle(now, 2, &transmit.head, transmit.payload);
            quiet = false;
        }
        if quiet {
            return;
        }
    }
}

#[test]
fn a_hundred_connections_share_an_address_and_keep_their_streams_apart() {
    let mut now = Instant::from_secs(1);
    let (mut one, mut two) = (endpoint(1, Limits::default()), endpoint(2, Limits::default()));
    let handles: Vec<Handle> = (0..100).map(|_| connect(&mut one, now, 2)).collect();
    for (i, &handle) in handles.iter().enumerate() {
        let connection = one.connection_mut(handle).unwrap();
        let octets: Vec<u8> = (0..3000).map(|k| pattern_octet(i as u64 * 10_000 + k)).collect();
        assert_eq!(connection.write_slice(&octets), Ok(3000));
        connection.close();
    }
    let mut streams: Vec<(Handle, Vec<u8>)> = Vec::new();
    for _ in 0..200 {
        now += ms(10);
        one.handle_timeout(now);
        two.handle_timeout(now);
        exchange(now, &mut one, &mut two);
        while let Some(handle) = two.accept() {
            streams.push((handle, Vec::new()));
        }
        for (handle, octets) in &mut streams {
            let Some(connection) = two.connection_mut(*handle) else { continue };
            while let Some(payload) = connection.read() {
                octets.extend(payload.to_vec());
            }
            if connection.is_at_end() {
                connection.close();
            }
        }
    }
    let mut seen: Vec<Vec<u8>> = streams.into_iter().map(|(_, octets)| octets).collect();
    seen.sort();
    let mut expected: Vec<Vec<u8>> =
        (0..100).map(|i| (0..3000).map(|k| pattern_octet(i * 10_000 + k)).collect()).collect();
    expected.sort();
    assert_eq!(seen, expected);
    let closed = std::iter::from_fn(|| one.poll_event()).filter(|(_, event)| *event == Event::Closed).count();
    assert_eq!(closed, 100);
    // They stay until they are released, and cost nothing meanwhile.
    assert_eq!((one.len(), one.poll_timeout()), (100, None));
    handles.into_iter().for_each(|handle| one.release(handle));
    assert!(one.poll_transmit(now).is_none());
    assert!(one.is_empty());
}

#[test]
fn ids_of_a_pair_never_collide_and_run_out_in_the_end() {
    let limits = Limits { connections: 100_000, ..Limits::default() };
    let mut endpoint = endpoint(1, limits);
    let now = Instant::from_secs(1);
    let config = Config { connection_id: Some(7), ..Config::default() };
    let forced = endpoint.connect(now, 9, config.clone(), controller("reno", &config)).unwrap();
    assert_eq!(endpoint.connection(forced).unwrap().receive_id(), 7);
    assert!(endpoint.connect(now, 9, config.clone(), controller("reno", &config)).is_none());
    let mut ids: Vec<u16> = (0..2000)
        .map(|_| {
            let handle = connect(&mut endpoint, now, 9);
            endpoint.connection(handle).unwrap().receive_id()
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2000);
    assert!(!ids.contains(&7) && !ids.contains(&6));
}

#[test]
fn the_last_id_wraps() {
    let now = Instant::from_secs(1);
    let (mut one, mut two) = (endpoint(1, Limits::default()), endpoint(2, Limits::default()));
    let config = Config { connection_id: Some(0xffff), ..Config::default() };
    let handle = one.connect(now, 2, config.clone(), controller("reno", &config)).unwrap();
    one.connection_mut(handle).unwrap().write_slice(b"over the edge").unwrap();
    exchange(now, &mut one, &mut two);
    let accepted = two.accept().unwrap();
    assert_eq!(two.connection(accepted).unwrap().receive_id(), 0);
    assert_eq!(two.connection_mut(accepted).unwrap().read().unwrap().to_vec(), b"over the edge");
}

#[test]
fn the_last_id_is_not_chosen_for_libutp_would_not_understand_it() {
    let draws_the_last = |seed: &u64| Stream::named(*seed, "endpoint").next_u16() == u16::MAX;
    let seed = (0..1_000_000).find(draws_the_last).expect("one of 65,536 does");
    let mut endpoint = endpoint(seed, Limits::default());
    let handle = connect(&mut endpoint, Instant::from_secs(1), 9);
    assert_eq!(endpoint.connection(handle).unwrap().receive_id(), 0);
}

#[test]
fn where_it_is_not_wanted_nobody_accepts_what_has_not_completed_its_handshake() {
    let now = Instant::from_secs(1);
    let mut endpoint = endpoint(1, Limits { early: 0, ..Limits::default() });
    assert!(matches!(endpoint.handle(now, 5, &syn(10), Payload::Empty), Verdict::Opened(_)));
    assert!(endpoint.poll_transmit(now).is_some());
    assert_eq!(endpoint.accept(), None);
    assert_eq!(endpoint.poll_event(), None);
    // A repeated SYN goes to the same connection.
    assert!(matches!(endpoint.handle(now, 5, &syn(10), Payload::Empty), Verdict::Taken(_)));
    assert_eq!(endpoint.len(), 1);
    assert_eq!(std::iter::from_fn(|| endpoint.poll_transmit(now)).count(), 1);
    // Ten seconds later nothing is left of it.
    let later = now + Duration::from_secs(10);
    endpoint.handle_timeout(later);
    assert!(endpoint.poll_transmit(later).is_none());
    assert!(endpoint.is_empty());
    assert_eq!(endpoint.statistics().half_open_expired, 1);
}

#[test]
fn a_flood_of_syns_is_bounded_and_lets_others_in() {
    let limits = Limits { half_open: 50, ..Limits::default() };
    let (mut now, mut server) = (Instant::from_secs(1), endpoint(1, limits));
    let mut client = endpoint(2, Limits::default());
    for i in 0..20_000_u32 {
        now += Duration::from_micros(100);
        server.handle(now, 1000 + i % 5000, &syn(i as u16), Payload::Empty);
        while server.poll_transmit(now).is_some() {}
        assert!(server.len() <= 50);
    }
    assert!(server.statistics().half_open_dropped > 10_000);
    // An honest peer answers before fifty others have come.
    let handle = connect(&mut client, now, 2);
    client.connection_mut(handle).unwrap().write_slice(b"let me in").unwrap();
    exchange(now, &mut client, &mut server);
    let accepted = server.accept().unwrap();
    assert_eq!(server.connection_mut(accepted).unwrap().read().unwrap().to_vec(), b"let me in");
}

#[test]
fn limits_of_connections_and_backlog_hold() {
    let now = Instant::from_secs(1);
    let limits = Limits { connections: 10, backlog: 4, ..Limits::default() };
    let (mut one, mut two) = (endpoint(1, Limits::default()), endpoint(2, limits));
    let handles: Vec<Handle> = (0..6).map(|_| connect(&mut one, now, 2)).collect();
    handles.iter().for_each(|&handle| assert!(one.connection_mut(handle).unwrap().write_slice(b"x").is_ok()));
    exchange(now, &mut one, &mut two);
    // All six SYNs came before any handshake was complete: their peer takes them for open, and nobody hangs up on it.
    assert_eq!(two.len(), 6);
    assert!(handles.iter().all(|&handle| one.connection(handle).unwrap().is_established()));
    let late = connect(&mut one, now, 2);
    exchange(now, &mut one, &mut two);
    assert_eq!((two.len(), two.statistics().syns_refused), (6, 1));
    assert!(!one.connection(late).unwrap().is_established());
    assert_eq!(std::iter::from_fn(|| two.accept()).count(), 6);
    for _ in 0..8 {
        connect(&mut one, now, 2);
        exchange(now, &mut one, &mut two);
        two.accept();
    }
    assert_eq!(two.len(), 10);
    let config = Config::default();
    assert!(two.connect(now, 1, config.clone(), controller("reno", &config)).is_none());
}

#[test]
fn whoever_opens_thousands_at_once_gets_them_all() {
    let mut now = Instant::from_secs(1);
    let limits = Limits { connections: 5000, half_open: 5000, backlog: 5000, ..Limits::default() };
    let (mut one, mut two) = (endpoint(1, limits), endpoint(2, Limits::default()));
    let handles: Vec<Handle> = (0..2000).map(|_| connect(&mut one, now, 2)).collect();
    handles.iter().for_each(|&handle| assert!(one.connection_mut(handle).unwrap().write_slice(b"x").is_ok()));
    let mut accepted = 0;
    for _ in 0..10 {
        exchange(now, &mut one, &mut two);
        accepted += std::iter::from_fn(|| two.accept()).count();
        now += ms(1000);
        one.handle_timeout(now);
        two.handle_timeout(now);
    }
    exchange(now, &mut one, &mut two);
    assert_eq!(accepted, 2000);
    assert!(handles.iter().all(|&handle| one.connection(handle).unwrap().is_established()));
    assert_eq!(two.statistics().half_open_dropped, 0);
}

#[test]
fn without_listening_syns_are_refused() {
    let now = Instant::from_secs(1);
    let mut endpoint = endpoint(1, Limits::default());
    endpoint.stop_listening();
    assert_eq!(endpoint.handle(now, 5, &syn(10), Payload::Empty), Verdict::Refused);
    assert!(endpoint.poll_transmit(now).is_none());
}

#[test]
fn a_restarted_peer_is_answered_with_a_reset_which_ends_the_old_connection() {
    let now = Instant::from_secs(1);
    let (mut one, mut two) = (endpoint(1, Limits::default()), endpoint(2, Limits::default()));
    let handle = connect(&mut one, now, 2);
    one.connection_mut(handle).unwrap().write_slice(b"x").unwrap();
    exchange(now, &mut one, &mut two);
    let mut restarted = endpoint(3, Limits::default());
    one.connection_mut(handle).unwrap().write_slice(b"anyone there?").unwrap();
    exchange(now, &mut one, &mut restarted);
    // The RESET echoes the id that we send with.
    let events: Vec<Event> = std::iter::from_fn(|| one.poll_event()).map(|(_, event)| event).collect();
    assert_eq!(events, [Event::Connected, Event::Failed(ConnectionError::Reset)]);
    assert_eq!(restarted.statistics().resets_sent, 1);
}

/// libtorrent says nothing to packets of connections that it does not know.
#[test]
fn who_does_not_answer_strays_lets_the_peer_find_out_by_itself() {
    let now = Instant::from_secs(1);
    let (mut one, mut two) = (endpoint(1, Limits::default()), endpoint(2, Limits::default()));
    let handle = connect(&mut one, now, 2);
    one.connection_mut(handle).unwrap().write_slice(b"x").unwrap();
    exchange(now, &mut one, &mut two);
    let mut restarted = endpoint(3, Limits { answers_strays: false, ..Limits::default() });
    one.connection_mut(handle).unwrap().write_slice(b"anyone there?").unwrap();
    exchange(now, &mut one, &mut restarted);
    assert!(one.connection(handle).is_some_and(|connection| connection.error().is_none()));
    let statistics = restarted.statistics();
    assert_eq!((statistics.strays, statistics.resets_sent, statistics.resets_suppressed), (1, 0, 0));
}

#[test]
fn a_released_connection_goes_when_it_is_drained_and_its_handle_names_nothing() {
    let mut now = Instant::from_secs(1);
    let (mut one, mut two) = (endpoint(1, Limits::default()), endpoint(2, Limits::default()));
    let handle = connect(&mut one, now, 2);
    one.connection_mut(handle).unwrap().write_slice(b"farewell").unwrap();
    exchange(now, &mut one, &mut two);
    let accepted = two.accept().unwrap();
    one.release(handle);
    two.release(accepted);
    for _ in 0..100 {
        exchange(now, &mut one, &mut two);
        let Some(at) = [one.poll_timeout(), two.poll_timeout()].into_iter().flatten().min() else { break };
        now = at;
        one.handle_timeout(now);
        two.handle_timeout(now);
    }
    assert!(one.is_empty() && two.is_empty());
    assert!(one.connection_mut(handle).is_none());
    let other = connect(&mut one, now, 2);
    assert_ne!(other, handle);
    assert!(one.connection(handle).is_none() && one.peer(other) == Some(2));
}

#[test]
fn idle_connections_are_not_called() {
    let now = Instant::from_secs(1);
    let limits = Limits { connections: 5000, backlog: 5000, half_open: 5000, ..Limits::default() };
    let (mut one, mut two) = (endpoint(1, limits), endpoint(2, limits));
    let handles: Vec<Handle> = (0..1000).map(|_| connect(&mut one, now, 2)).collect();
    exchange(now, &mut one, &mut two);
    assert!(handles.iter().all(|&handle| one.connection(handle).unwrap().is_established()));
    // The keepalive is the only deadline of each.
    assert_eq!(one.poll_timeout(), Some(now + Duration::from_secs(29)));
    let early = now + Duration::from_secs(28);
    one.handle_timeout(early);
    assert!(one.poll_transmit(early).is_none());
    let due = now + Duration::from_secs(29);
    one.handle_timeout(due);
    assert_eq!(std::iter::from_fn(|| one.poll_transmit(due)).count(), 1000);
    assert_eq!(one.poll_timeout(), Some(due + Duration::from_secs(29)));
}

#[test]
fn keepalives_of_connections_that_fell_silent_apart_leave_together() {
    let limits = Limits { connections: 5000, backlog: 5000, half_open: 5000, ..Limits::default() };
    let (mut one, mut two) = (endpoint(1, limits), endpoint(2, limits));
    let config = Config { keepalive_step: Duration::from_secs(1), ..Config::default() };
    for i in 0..1000 {
        let now = Instant::from_millis(1000 + i);
        one.connect(now, 2, config.clone(), controller("reno", &config)).unwrap();
        exchange(now, &mut one, &mut two);
    }
    // Never later than 29 s after the last packet, nor more than a second earlier. Which part of a millisecond, is the
    // peer's: the first of all is due before it in the next second.
    let mut left = Vec::new();
    while let Some(at) = one.poll_timeout().filter(|&at| at < Instant::from_secs(40)) {
        one.handle_timeout(at);
        left.push((at, std::iter::from_fn(|| one.poll_transmit(at)).count()));
    }
    assert_eq!(left.iter().map(|&(_, packets)| packets).collect::<Vec<_>>(), [1, 999]);
    let [first, second] = [left[0].0, left[1].0];
    assert!(first < Instant::from_secs(29) + ms(1) && second == first + Duration::from_secs(1), "{left:?}");
}

#[test]
fn what_icmp_tells_finds_its_connection() {
    let now = Instant::from_secs(1);
    let (mut one, mut two) = (endpoint(1, Limits::default()), endpoint(2, Limits::default()));
    let config = Config { mtu: Mtu::SEARCH_IPV4, ..Config::default() };
    let handle = one.connect(now, 2, config.clone(), controller("reno", &config)).unwrap();
    let (_, syn) = one.poll_transmit(now).unwrap();
    assert!(Packet::decode(&syn.head).is_ok());
    one.unreachable(3, &syn.head);
    assert!(one.connection(handle).unwrap().error().is_none(), "another peer");
    one.unreachable(2, &syn.head[..8]);
    assert!(one.connection(handle).unwrap().error().is_none(), "too little to tell");
    one.unreachable(2, &syn.head);
    assert_eq!(one.connection(handle).unwrap().error(), Some(ConnectionError::Refused));
    let other = one.connect(now, 2, config.clone(), controller("fixed", &config)).unwrap();
    exchange(now, &mut one, &mut two);
    one.connection_mut(other).unwrap().write_slice(&[1; 20_000]).unwrap();
    let probe =
        std::iter::from_fn(|| one.poll_transmit(now)).find(|(_, transmit)| transmit.dont_fragment).unwrap().1;
    one.packet_too_big(now, 2, &probe.head, Some(700));
    let later = std::iter::from_fn(|| one.poll_transmit(now)).find(|(_, transmit)| transmit.dont_fragment);
    assert!(later.is_none_or(|(_, transmit)| transmit.len() <= 700));
    assert!(one.connection(other).unwrap().is_established());
}

#[test]
fn reading_through_the_endpoint_tells_a_blocked_peer() {
    let now = Instant::from_secs(1);
    let (mut one, mut two) = (endpoint(1, Limits::default()), endpoint(2, Limits::default()));
    let config = Config { receive_buffer_bytes: 4000, ..Config::default() };
    two.listen(config, Box::new(|_| controller("fixed", &Config::default())));
    let fixed = Config::default();
    let handle = one.connect(now, 2, fixed.clone(), controller("fixed", &fixed)).unwrap();
    let octets: Vec<u8> = (0..20_000).map(pattern_octet).collect();
    one.connection_mut(handle).unwrap().write_slice(&octets).unwrap();
    let mut received = Vec::new();
    exchange(now, &mut one, &mut two);
    let accepted = two.accept().unwrap();
    while received.len() < octets.len() {
        let payload = two.read(accepted).expect("the window opened at once");
        received.extend(payload.to_vec());
        exchange(now, &mut one, &mut two);
    }
    assert_eq!(received, octets);
    assert!(two.read(accepted).is_none());
    assert_eq!(one.poll_event(), Some((handle, Event::Connected)));
}

/// Moves the packets of two endpoints, without delay, and time, until neither has a deadline before `end`; what the second
/// sends has to be `heard`.
fn run(
    [one, two]: [&mut Endpoint<u32>; 2],
    end: Instant,
    mut now: Instant,
    mut heard: impl FnMut(&Header) -> bool,
) {
    loop {
        let mut quiet = true;
        while let Some((_, transmit)) = one.poll_transmit(now) {
            two.handle(now, 1, &transmit.head, transmit.payload);
            quiet = false;
        }
        while let Some((_, transmit)) = two.poll_transmit(now) {
            quiet = false;
            if heard(&Packet::decode(&transmit.head).unwrap().header) {
                one.handle(now, 2, &transmit.head, transmit.payload);
            }
        }
        if !quiet {
            continue;
        }
        let next = [one.poll_timeout(), two.poll_timeout()].into_iter().flatten().min();
        let Some(at) = next.filter(|&at| at <= end) else { return };
        now = now.max(at);
        one.handle_timeout(now);
        two.handle_timeout(now);
    }
}

#[test]
fn who_reads_for_an_end_that_was_lost_with_its_connection_learns_it() {
    let [mut one, mut two] = [1, 2].map(|seed| {
        let mut endpoint = Endpoint::new(Limits::default(), Stream::named(seed, "endpoint"));
        endpoint.listen(Config::internet(), Box::new(|_| controller("reno", &Config::internet())));
        endpoint
    });
    let start = Instant::from_secs(1);
    let config = Config::internet();
    let reader = one.connect(start, 2, config.clone(), controller("reno", &config)).unwrap();
    exchange(start, &mut one, &mut two);
    let writer = two.accept().expect("the handshake is over");
    // The one has ended its stream and reads; the other goes, and each of its FINs is lost.
    one.connection_mut(reader).unwrap().write_slice(b"question").unwrap();
    one.connection_mut(reader).unwrap().shutdown();
    exchange(start, &mut one, &mut two);
    two.release(writer);
    let mut fins = 0;
    let end = start + Duration::from_secs(600);
    run([&mut one, &mut two], end, start, |header| {
        fins += u32::from(header.kind == Kind::Fin);
        header.kind != Kind::Fin
    });
    assert!(two.is_empty() && fins > 5, "{fins} FINs");
    let last = std::iter::from_fn(|| one.poll_event()).last();
    assert_eq!(last, Some((reader, Event::Failed(ConnectionError::Reset))));
}
