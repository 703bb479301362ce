//! Peers that cannot be reached until somebody introduces us, and what those hear who were called before a router opened a port.

mod common;

use cede_bt::engine::{Action, Chunk, ConnId, Hearers, Setup};
use cede_bt::extension::{Extension, Hearsay};
use cede_bt::wire::{Decoder, Handshake, Item, Message, Reserved, WireLimits};
use cede_bt::{Disposition, Engine, Profile, Transport};
use cede_units::{Duration, Instant};
use cede_wire::Payload;
use common::{geometry, setup};

/// One that calls a peer of which nothing is heard.
struct Caller {
    engine: Engine<usize>,
    now: Instant,
    calls: Vec<(ConnId, Transport)>,
    unreached: usize,
}

const PEER: usize = 5;

impl Caller {
    fn new(profile: Profile, disposition: Disposition) -> Self {
        let extended = Some(greeting(6881));
        let mut engine = Engine::new(Setup { extended, ..setup(1, false, profile, disposition) });
        let now = Instant::from_secs(1);
        engine.start(now);
        Self { engine, now, calls: Vec::new(), unreached: 0 }
    }

    fn settle(&mut self) {
        while let Some(action) = self.engine.poll_action() {
            match action {
                Action::Connect { conn, address: PEER, transport } => self.calls.push((conn, transport)),
                Action::Unreached { address: PEER } => self.unreached += 1,
                _ => {}
            }
        }
    }

    /// All calls fail, and those that are made in their place; over what they were.
    fn fail(&mut self) -> Vec<Transport> {
        let mut over = Vec::new();
        self.settle();
        while !self.calls.is_empty() {
            for (conn, transport) in std::mem::take(&mut self.calls) {
                over.push(transport);
                self.engine.closed(self.now, conn);
            }
            self.settle();
        }
        over
    }

    /// The peer answers the call, and says that it speaks the extension protocol.
    fn answer(&mut self) -> ConnId {
        self.settle();
        let (conn, _) = self.calls.remove(0);
        self.engine.connected(self.now, conn);
        self.greet(conn, 9);
        conn
    }

    fn greet(&mut self, conn: ConnId, id: u8) {
        self.engine.set_room(conn, 1 << 20);
        let reserved = Reserved::default().with(Reserved::EXTENDED);
        let handshake = Handshake { reserved, info_hash: [7; 20], peer_id: [id; 20] };
        self.engine.received(self.now, conn, Payload::copy_from(&handshake.encode()));
        self.settle();
    }

    /// The ports that each connection has been told of since the last time.
    fn ports(&mut self, ears: &mut [(ConnId, Decoder)]) -> Vec<Vec<u16>> {
        let mut ports = vec![Vec::new(); ears.len()];
        while let Some((conn, chunk)) = self.engine.poll_transmit(self.now) {
            let Chunk::Octets(mut octets) = chunk else { continue };
            let at = ears.iter().position(|(id, _)| *id == conn).unwrap();
            while let Some(item) = ears[at].1.next(&mut octets).unwrap() {
                if let Item::Message(Message::Extended(0, text)) = item {
                    ports[at].extend(Extension::parse(&text).unwrap().port);
                }
            }
        }
        ports
    }
}

fn greeting(port: u16) -> Vec<u8> {
    Extension::ours("cede test", Some(port), None, Hearsay { exchanges: true, punches: true }, None)
}

/// A peer that was named by hand may begin later than we.
#[test]
fn whom_somebody_insists_on_is_called_again_at_once() {
    for profile in Profile::ALL {
        let mut caller = Caller::new(profile, Disposition::ALL);
        for round in 0..6 {
            caller.engine.call_peers(caller.now, &[PEER]);
            caller.engine.call_peers(caller.now, &[PEER]);
            let ways = if profile.dialling == cede_bt::Dialling::TcpFirst { 1..=2 } else { 2..=2 };
            let calls = caller.fail().len();
            assert!(ways.contains(&calls), "{}, round {round}: {calls} calls", profile.name);
            caller.engine.add_peers(caller.now, &[PEER]);
            assert!(caller.fail().is_empty(), "{}: others that tell of it change nothing", profile.name);
            caller.now += Duration::from_secs(2);
        }
        caller.engine.call_peers(caller.now, &[PEER]);
        let conn = caller.answer();
        caller.calls.clear();
        caller.engine.call_peers(caller.now, &[PEER]);
        assert!(caller.fail().is_empty(), "{}: there is a connection", profile.name);
        caller.engine.closed(caller.now, conn);
    }
}

#[test]
fn whom_nobody_reaches_is_told_of_once_and_called_once_when_introduced() {
    for profile in Profile::ALL {
        let mut caller = Caller::new(profile, Disposition::ALL);
        caller.engine.add_peers(caller.now, &[PEER]);
        assert!(!caller.fail().is_empty());
        assert_eq!(caller.unreached, 1, "{}: when all ways have failed", profile.name);
        for _ in 0..5 {
            // It would be left alone for a minute by itself, and after three failures for good.
            assert!(caller.engine.punch(caller.now, PEER), "{}", profile.name);
            assert!(!caller.engine.punch(caller.now, PEER), "it is being called");
            assert_eq!(caller.fail(), [Transport::Utp], "{}", profile.name);
        }
        assert_eq!(caller.unreached, 1, "{}: nobody is to be asked for it again", profile.name);
        assert!(caller.engine.punch(caller.now, PEER));
        let conn = caller.answer();
        assert!(!caller.engine.punch(caller.now, PEER), "there is a connection");
        caller.engine.closed(caller.now, conn);
        caller.now += Duration::from_secs(600);
        caller.engine.add_peers(caller.now, &[PEER]);
        assert!(!caller.fail().is_empty());
        assert_eq!(caller.unreached, 2, "{}: a call as any other has failed", profile.name);
    }
}

/// A call over TCP is no reason not to punch, since it opens nothing for uTP.
#[test]
fn a_hole_is_punched_beside_a_call_over_tcp_and_never_without_utp() {
    let profile = Profile { dialling: cede_bt::Dialling::TcpFirst, ..Profile::LIBTORRENT };
    let mut caller = Caller::new(profile, Disposition::ALL);
    caller.engine.add_peers(caller.now, &[PEER]);
    caller.settle();
    assert_eq!(caller.calls.iter().map(|(_, transport)| *transport).collect::<Vec<_>>(), [Transport::Tcp]);
    assert!(caller.engine.punch(caller.now, PEER));
    let mut without = Caller::new(profile, Disposition(0b10101));
    assert!(!without.engine.punch(without.now, PEER));
    assert!(without.fail().is_empty());
}

#[test]
fn those_whom_we_have_called_hear_of_another_port() {
    let mut caller = Caller::new(Profile::LIBTORRENT, Disposition::ALL);
    caller.engine.add_peers(caller.now, &[PEER]);
    let ours = caller.answer();
    let theirs = caller.engine.accept(caller.now, 6, Transport::Tcp).unwrap();
    caller.greet(theirs, 8);
    let ear = |conn| (conn, Decoder::new(WireLimits::of(geometry().pieces())));
    let mut ears = [ear(ours), ear(theirs)];
    assert_eq!(caller.ports(&mut ears), [[6881], [6881]]);
    caller.engine.set_extended(caller.now, greeting(7000), Hearers::Called);
    // A caller knows the port that it has called.
    assert_eq!(caller.ports(&mut ears), [vec![7000], vec![]]);
    let late = caller.engine.accept(caller.now, 7, Transport::Utp).unwrap();
    caller.greet(late, 10);
    assert_eq!(caller.ports(&mut [ear(late)]), [[7000]]);
}
