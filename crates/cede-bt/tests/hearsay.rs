//! What strangers say of others, where all of it may be lies.

mod common;

use cede_bt::engine::{Action, ConnId};
use cede_bt::wire::{Handshake, Message, Reserved};
use cede_bt::{Disposition, Engine, Profile, Transport};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use common::setup;
use std::net::{Ipv4Addr, SocketAddr};

/// One that has nothing, and peers that have called it.
struct Listener {
    engine: Engine<SocketAddr>,
    now: Instant,
}

impl Listener {
    fn new() -> Self {
        let profile = Profile { unanswered_max: 100, ..Profile::UTORRENT3 };
        let mut engine = Engine::new(setup(0, false, profile, Disposition::ALL));
        let now = Instant::from_secs(1);
        engine.start(now);
        Self { engine, now }
    }

    fn meet(&mut self, number: u8) -> ConnId {
        let address = SocketAddr::from((Ipv4Addr::new(203, 0, 113, number), 6881));
        let id = self.engine.accept(self.now, address, Transport::Tcp).unwrap();
        let reserved = Reserved::default().with(Reserved::FAST);
        let greeting = Handshake { reserved, info_hash: [7; 20], peer_id: [number; 20] }.encode();
        let words = [&greeting[..], &Message::HaveNone.to_vec()].concat();
        self.engine.received(self.now, id, Payload::copy_from(&words));
        id
    }

    /// Whom it calls now.
    fn calls(&mut self) -> Vec<(ConnId, SocketAddr)> {
        let mut calls = Vec::new();
        while let Some(action) = self.engine.poll_action() {
            calls.extend(match action {
                Action::Connect { conn, address, .. } => Some((conn, address)),
                _ => None,
            });
        }
        calls
    }

    /// Whom it calls in so many seconds where nobody answers, each call at once.
    fn calls_in(&mut self, seconds: u64) -> Vec<SocketAddr> {
        let end = self.now + Duration::from_secs(seconds);
        let mut called = Vec::new();
        while self.now < end {
            let calls = self.calls();
            for (conn, address) in &calls {
                called.push(*address);
                self.engine.closed(self.now, *conn);
            }
            if calls.is_empty() {
                self.now += Duration::from_secs(1);
                self.engine.handle_timeout(self.now);
            }
        }
        called
    }
}

/// Places that nobody is at.
fn lies(from: u32) -> Vec<SocketAddr> {
    let host = |number: u32| Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + number);
    (from..from + 200).map(|number| SocketAddr::from((host(number), 6881))).collect()
}

#[test]
fn whoever_tells_of_thousands_keeps_out_nobody_that_others_name() {
    let mut listener = Listener::new();
    let liars: Vec<ConnId> = (1..=25).map(|number| listener.meet(number)).collect();
    for (id, from) in liars.into_iter().zip((0..).step_by(200)) {
        listener.engine.hear_of_peers(listener.now, id, &lies(from));
    }
    let honest = SocketAddr::from(([192, 0, 2, 1], 6881));
    listener.engine.add_peers(listener.now, &[honest]);
    let (first, _) = listener.calls()[0];
    listener.engine.closed(listener.now, first);
    // All calls are under way and nobody answers; the next that there is room for is the one that a tracker named.
    assert_eq!(listener.calls().first().map(|(_, address)| *address), Some(honest));
}

#[test]
fn who_was_told_of_in_vain_makes_room() {
    let mut listener = Listener::new();
    let mut called = std::collections::BTreeSet::new();
    for (liar, from) in (1..=40).zip((0..).step_by(200)) {
        let id = listener.meet(liar);
        listener.engine.hear_of_peers(listener.now, id, &lies(from));
        let told = lies(from);
        called.extend(listener.calls_in(30).into_iter().filter(|address| told.contains(address)));
    }
    assert_eq!(called.len(), 40 * 200);
}

#[test]
fn of_what_one_host_tells_so_much_is_believed_each_minute() {
    let mut listener = Listener::new();
    let id = listener.meet(1);
    let mut believed = |from| {
        let told: Vec<SocketAddr> = lies(from).into_iter().chain(lies(from + 200)).collect();
        listener.engine.hear_of_peers(listener.now, id, &told);
        let called = listener.calls_in(60).into_iter().filter(|address| told.contains(address));
        called.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!([believed(0), believed(1_000)], [200; 2]);
}

#[test]
fn nobody_is_made_to_call_one_host_at_all_its_ports() {
    let mut listener = Listener::new();
    let id = listener.meet(1);
    let victim = |port| SocketAddr::from(([198, 18, 0, 1], port));
    for from in (1000..9000).step_by(100) {
        let ports: Vec<SocketAddr> = (from..from + 100).map(victim).collect();
        listener.engine.hear_of_peers(listener.now, id, &ports);
    }
    let called: std::collections::BTreeSet<SocketAddr> = listener.calls_in(60).into_iter().collect();
    assert_eq!(called.len(), 16);
}

/// As libtorrent has it: a peer of the Internet knows nobody in the network of ours.
#[test]
fn of_private_networks_only_those_in_one_tell() {
    let router = SocketAddr::from(([192, 168, 1, 1], 80));
    for (teller, believed) in [([203, 0, 113, 1], 0), ([192, 168, 1, 7], 1)] {
        let mut listener = Listener::new();
        let address = SocketAddr::from((teller, 6881));
        let id = listener.engine.accept(listener.now, address, Transport::Tcp).unwrap();
        listener.calls();
        listener.engine.hear_of_peers(listener.now, id, &[router]);
        let calls = listener.calls();
        assert_eq!(calls.iter().any(|(_, address)| *address == router), believed == 1, "{calls:?}");
    }
}
