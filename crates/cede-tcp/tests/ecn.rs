//! Explicit congestion notification, as packet scripts (RFC 3168, section 6.1).

use cede_cc::{Params, registry};
use cede_tcp::{AckPolicy, Config, Connection, Ports, Segment};
use cede_units::{Duration, Instant, Stream};
use cede_wire::tcp::Flags;
use cede_wire::{Ecn, Payload, Transmit};

const PORTS: Ports = Ports { local: 40_000, remote: 80 };
const ECHO: Flags = Flags::ECE;
const REDUCED: Flags = Flags::CWR;

fn config(ecn: bool) -> Config {
    Config { ecn, ack_policy: AckPolicy::Every, ..Config::default() }
}

struct Pair {
    now: Instant,
    client: Connection,
    server: Connection,
    /// Flags of the SYN and of its answer.
    opening: [Flags; 2],
}

fn segment(transmit: &Transmit) -> Segment {
    Segment::decode(&transmit.head).unwrap().0
}

/// Everything that a connection sends now.
fn drain(connection: &mut Connection, now: Instant) -> Vec<Transmit> {
    std::iter::from_fn(|| connection.poll_transmit(now)).take(1_000).collect()
}

impl Pair {
    fn open(client_ecn: bool, server_ecn: bool) -> Self {
        Self::with("reno", client_ecn, server_ecn)
    }

    /// The client's data goes out under this controller.
    fn with(controller: &str, client_ecn: bool, server_ecn: bool) -> Self {
        let mut random = Stream::named(1, "ecn");
        let reno = |config: &Config| registry::build("reno", &Params::new(), &config.path()).unwrap();
        let (mine, theirs) = (config(client_ecn), config(server_ecn));
        let own = registry::build(controller, &Params::new(), &mine.path()).unwrap();
        let mut client = Connection::connect(mine, own, PORTS, &mut random);
        let now = Instant::from_secs(1);
        let syn = segment(&client.poll_transmit(now).unwrap());
        let mut server = Connection::accept(now, theirs.clone(), reno(&theirs), &syn, &mut random).unwrap();
        let answer = segment(&server.poll_transmit(now).unwrap());
        let now = now + Duration::from_millis(50);
        client.handle(now, &answer, Payload::Empty);
        let mut pair = Self { now, client, server, opening: [syn.flags, answer.flags] };
        let acks = drain(&mut pair.client, now);
        pair.arrive_at_server(acks, |_| Ecn::NotEct);
        pair
    }

    fn arrive_at_server(&mut self, transmits: Vec<Transmit>, ecn: impl Fn(usize) -> Ecn) {
        for (index, transmit) in transmits.into_iter().enumerate() {
            let header = segment(&transmit);
            self.server.handle_with_ecn(self.now, &header, transmit.payload, ecn(index));
            while self.server.read().is_some() {}
        }
    }

    /// One round trip: what the client sent, and the acknowledgements' flags. The data of `marked` indices is marked.
    fn round(&mut self, marked: impl Fn(usize) -> bool) -> (Vec<Transmit>, Vec<Flags>) {
        let sent = drain(&mut self.client, self.now);
        self.now += Duration::from_millis(25);
        let mut flags = Vec::new();
        for (index, transmit) in sent.iter().enumerate() {
            let ecn = if marked(index) { Ecn::Ce } else { transmit.ecn };
            self.arrive_at_server(vec![transmit.clone()], |_| ecn);
            let acks = drain(&mut self.server, self.now);
            flags.extend(acks.iter().map(|ack| segment(ack).flags));
            let at = self.now + Duration::from_millis(25);
            acks.into_iter().for_each(|ack| self.client.handle(at, &segment(&ack), ack.payload));
        }
        self.now += Duration::from_millis(25);
        (sent, flags)
    }

    fn cwnd(&self) -> f64 {
        self.client.snapshot().controller.cwnd_bytes
    }
}

#[test]
fn both_ends_must_offer_it() {
    let both = Pair::open(true, true);
    assert!(both.opening[0].has(ECHO.with(REDUCED)));
    assert!(both.opening[1].has(ECHO) && !both.opening[1].has(REDUCED));
    for (mine, theirs) in [(true, false), (false, true), (false, false)] {
        let mut pair = Pair::open(mine, theirs);
        assert!(!pair.opening[1].has(ECHO));
        pair.client.write(Payload::Pattern { start: 0, len: 5_000 }).unwrap();
        let (sent, flags) = pair.round(|_| true);
        assert!(sent.iter().all(|transmit| transmit.ecn == Ecn::NotEct));
        assert!(flags.iter().all(|flags| !flags.has(ECHO)));
    }
}

#[test]
fn a_mark_is_echoed_until_the_sender_has_reduced_and_said_so() {
    let mut pair = Pair::open(true, true);
    pair.client.write(Payload::Pattern { start: 0, len: 1_000_000 }).unwrap();
    let (sent, flags) = pair.round(|index| index == 3);
    assert!(sent.len() >= 8 && sent.iter().all(|transmit| transmit.ecn == Ecn::Ect0));
    assert!(
        flags[..3].iter().all(|flags| !flags.has(ECHO)) && flags[3..].iter().all(|flags| flags.has(ECHO))
    );
    let after_one = pair.cwnd();
    let (sent, flags) = pair.round(|_| false);
    assert!(segment(&sent[0]).flags.has(REDUCED), "the first new segment says so");
    assert!(sent[1..].iter().all(|transmit| !segment(transmit).flags.has(REDUCED)));
    assert!(flags.iter().all(|flags| !flags.has(ECHO)), "and ends the echo");
    assert!(pair.cwnd() > after_one, "growing again");
    assert_eq!(pair.client.statistics().retransmissions, 0);
}

#[test]
fn marks_of_one_window_reduce_it_once() {
    let cwnd_after = |marked: fn(usize) -> bool| {
        let mut pair = Pair::open(true, true);
        pair.client.write(Payload::Pattern { start: 0, len: 1_000_000 }).unwrap();
        (0..3).for_each(|_| drop(pair.round(|_| false)));
        let before = pair.cwnd();
        pair.round(marked);
        pair.cwnd() / before
    };
    let one = cwnd_after(|index| index == 5);
    let all = cwnd_after(|index| index >= 5);
    assert!((0.4..0.8).contains(&one), "{one}");
    assert!((one - all).abs() < 0.05, "{one} {all}");
}

#[test]
fn retransmissions_and_acknowledgements_may_not_be_marked() {
    let mut pair = Pair::open(true, true);
    pair.client.write(Payload::Pattern { start: 0, len: 20_000 }).unwrap();
    let mut sent = drain(&mut pair.client, pair.now);
    sent.remove(0);
    pair.now += Duration::from_millis(25);
    pair.arrive_at_server(sent, |_| Ecn::Ect0);
    let acks = drain(&mut pair.server, pair.now);
    assert!(acks.iter().all(|ack| ack.ecn == Ecn::NotEct));
    pair.now += Duration::from_millis(25);
    acks.into_iter().for_each(|ack| pair.client.handle(pair.now, &segment(&ack), ack.payload));
    let again = drain(&mut pair.client, pair.now);
    assert!(pair.client.statistics().retransmissions > 0);
    assert_eq!(again[0].ecn, Ecn::NotEct);
    // A loss brings the window down as well, of which the next new segment tells.
    let new = again.iter().find(|transmit| transmit.ecn == Ecn::Ect0);
    assert!(new.is_none_or(|transmit| segment(transmit).flags.has(REDUCED)));
}

#[test]
fn what_a_controller_sends_that_ignores_marks_may_not_be_marked() {
    let mut ignoring = 0;
    for entry in registry::all() {
        let mut pair = Pair::with(entry.name, true, true);
        let answers = pair.client.controller().answers_marks();
        pair.client.write(Payload::Pattern { start: 0, len: 100_000 }).unwrap();
        let (sent, _) = pair.round(|_| false);
        let expected = if answers { Ecn::Ect0 } else { Ecn::NotEct };
        assert!(!sent.is_empty() && sent.iter().all(|transmit| transmit.ecn == expected), "{}", entry.name);
        ignoring += usize::from(!answers);
    }
    assert_eq!(ignoring, 6, "BBR, the four of PCC, and the fixed one");
}
