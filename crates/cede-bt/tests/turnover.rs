//! Whoever takes our calls and gives nothing keeps us from nobody for good.

mod common;

use cede_bt::engine::{Action, ConnId};
use cede_bt::wire::{Handshake, Message, Reserved};
use cede_bt::{Disposition, Engine, Profile};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use common::setup;
use std::net::SocketAddr;

/// Places for connections.
const PLACES: u32 = 10;

/// One that has nothing, and calls.
struct Caller {
    engine: Engine<SocketAddr>,
    now: Instant,
    /// What whoever takes a call says behind its greeting.
    words: Vec<Message>,
    called: Vec<SocketAddr>,
}

impl Caller {
    fn new(words: &[Message]) -> Self {
        let profile = Profile { initiate_max: PLACES, connections_max: PLACES, ..Profile::UTORRENT3 };
        let mut engine = Engine::new(setup(0, false, profile, Disposition::TCP));
        let now = Instant::from_secs(1);
        engine.start(now);
        Self { engine, now, words: words.to_vec(), called: Vec::new() }
    }

    fn hears_of(&mut self, peers: &[String]) {
        let peers: Vec<SocketAddr> = peers.iter().map(|peer| peer.parse().unwrap()).collect();
        self.engine.add_peers(self.now, &peers);
        self.answer();
    }

    /// Everybody takes the calls that there are.
    fn answer(&mut self) {
        while let Some(action) = self.engine.poll_action() {
            if let Action::Connect { conn, address, .. } = action {
                self.called.push(address);
                self.engine.connected(self.now, conn);
                let reserved = Reserved::default().with(Reserved::FAST);
                let number = self.called.len().to_be_bytes();
                let mut greeting = Handshake { reserved, info_hash: [7; 20], peer_id: [0; 20] };
                greeting.peer_id[..number.len()].copy_from_slice(&number);
                greeting.peer_id[19] = 1;
                let words: Vec<u8> = self.words.iter().flat_map(|word| word.to_vec()).collect();
                let octets = [&greeting.encode()[..], &words].concat();
                self.engine.received(self.now, conn, Payload::copy_from(&octets));
            }
        }
    }

    /// Seconds until somebody is called; everybody keeps the connections alive.
    fn seconds_until(&mut self, peer: &str, most: u64) -> Option<u64> {
        let peer: SocketAddr = peer.parse().unwrap();
        (0..=most).find(|_| {
            if self.called.contains(&peer) {
                return true;
            }
            self.now += Duration::from_secs(1);
            let open: Vec<ConnId> = self.engine.connections().map(|view| view.id).collect();
            for conn in open {
                self.engine.received(self.now, conn, Payload::copy_from(&Message::KeepAlive.to_vec()));
            }
            self.engine.handle_timeout(self.now);
            self.engine.make_room_for_calls(self.now);
            self.answer();
            false
        })
    }
}

fn of_one_host() -> Vec<String> {
    (1..=200).map(|port| format!("203.0.113.1:{port}")).collect()
}

const OTHER: &str = "192.0.2.1:1";

#[test]
fn one_host_keeps_nobody_from_being_called() {
    // One that has nothing, and one that has everything and gives none of it.
    for words in [&[Message::HaveNone][..], &[Message::HaveAll]] {
        let mut caller = Caller::new(words);
        caller.hears_of(&of_one_host());
        assert_eq!(caller.engine.connections().count(), PLACES as usize);
        caller.hears_of(&[OTHER.to_owned()]);
        assert!(caller.seconds_until(OTHER, 5).is_some(), "{words:?}");
    }
}

#[test]
fn whoever_has_never_been_good_for_anything_makes_room_for_a_call() {
    let hosts: Vec<String> = (1..=PLACES).map(|host| format!("203.0.113.{host}:1")).collect();
    for (words, seconds) in [(Message::HaveNone, 20..=25), (Message::HaveAll, 300..=305)] {
        let mut caller = Caller::new(&[words]);
        caller.hears_of(&hosts);
        caller.hears_of(&[OTHER.to_owned()]);
        let after = caller.seconds_until(OTHER, 400).expect("it is called");
        assert!(seconds.contains(&after), "{after} s");
    }
}

#[test]
fn nobody_makes_room_where_nobody_waits() {
    let mut caller = Caller::new(&[Message::HaveNone]);
    caller.hears_of(&of_one_host()[..PLACES as usize]);
    assert_eq!(caller.seconds_until(OTHER, 60), None);
    assert_eq!(caller.called.len(), PLACES as usize);
}
