//! Captures of simulated swarms beside what the swarms themselves wrote down: pieces, unchokes, octets by transport, HAVEs.

use cede_bt::wire::Message;
use cede_inspect::{Config, Event, Inspector, Report, Sink, Speech, What};
use cede_lab::scenario::{Overrides, parse_swarm};
use cede_lab::swarm::{Packets, Swarm, SwarmOutcome, run_captured};
use cede_meter::{Protocol, Socket};
use cede_wire::pcap::Reader;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// A seed and a leecher, with the log of pieces and unchokes.
const LONE: &str = r#"
name = "seen"

[swarm]
content = "2 MB"
piece = "64 KiB"

[records]
unchokes = true

[[group]]
name = "seed"
role = "seed"
uplink = "2 Mbit/s"
latency = "10 ms"

[[group]]
name = "tcp"
count = 2
uplink = "1 Mbit/s"
transports = 13
latency = "20 ms"
"#;
/// More leechers beside it.
const MORE: &str = r#"
[[group]]
name = "utp"
count = 2
uplink = "1 Mbit/s"
transports = 14
latency = "5 ms"
"#;

/// What was heard, peers by their numbers.
#[derive(Default)]
struct Heard {
    /// Octets of blocks by who sent them, and by transport: TCP, uTP.
    sent: BTreeMap<u32, [u64; 2]>,
    /// The same by who was to have them.
    received: BTreeMap<u32, [u64; 2]>,
    /// Octets that peers had before.
    redundant: BTreeMap<u32, u64>,
    /// Octets of each peer's pieces, once each, and when the last of them was seen.
    pieces: BTreeMap<(u32, u32), (u64, u64)>,
    /// Chokes and unchokes by who and whom: when, and whether it was an unchoke.
    turns: BTreeMap<(u32, u32), Vec<(u64, bool)>>,
    /// Who told whom of which piece.
    haves: BTreeSet<(u32, u32, u32)>,
    requests: BTreeMap<u32, u64>,
}

/// Host `n` has the address whose last 24 bits are `n + 1`.
fn peer(socket: Socket) -> u32 {
    let IpAddr::V4(address) = socket.address else { panic!("{socket:?}") };
    (address.to_bits() & 0x00ff_ffff) - 1
}

impl Sink for Heard {
    fn event(&mut self, event: &Event<'_>) {
        let (from, to) = (peer(event.from), peer(event.to));
        match event.what {
            What::Block(block) => {
                let (len, by) = (u64::from(block.block.len), usize::from(event.transport != Protocol::Tcp));
                self.sent.entry(from).or_default()[by] += len;
                self.received.entry(to).or_default()[by] += len;
                if block.is_duplicate {
                    *self.redundant.entry(to).or_default() += len;
                } else {
                    let piece = self.pieces.entry((to, block.block.piece)).or_default();
                    *piece = (piece.0 + len, event.time_ns);
                }
            }
            What::Message { message, .. } => match message {
                Message::Choke | Message::Unchoke => {
                    let unchoked = matches!(message, Message::Unchoke);
                    self.turns.entry((from, to)).or_default().push((event.time_ns, unchoked));
                }
                Message::Have(piece) => drop(self.haves.insert((from, to, *piece))),
                Message::Request(_) => *self.requests.entry(from).or_default() += 1,
                _ => {}
            },
            _ => {}
        }
    }
}

/// A swarm's own records, and what its capture says.
struct Played {
    swarm: Swarm,
    outcome: SwarmOutcome,
    report: Report,
    heard: Heard,
}

impl Played {
    fn new(name: &str, text: &str, packets: Packets, set: &[&str]) -> Self {
        let overrides = Overrides::new(set.iter().copied());
        let mut swarm = parse_swarm(name, text, &overrides).unwrap_or_else(|problems| panic!("{problems:?}"));
        swarm.records.packets = packets;
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("simulated-{name}"));
        let outcome = run_captured(&swarm, &folder, &mut ()).unwrap();
        let (report, heard) = inspect(&folder.join("packets.pcapng"));
        fs::remove_dir_all(&folder).unwrap();
        let summary = outcome.summary(swarm.content_bytes);
        assert_eq!(summary.complete, summary.leechers);
        Self { swarm, outcome, report, heard }
    }

    fn piece_len(&self, piece: u32) -> u64 {
        let piece_bytes = u64::from(self.swarm.piece_bytes);
        piece_bytes.min(self.swarm.content_bytes - piece_bytes * u64::from(piece))
    }
}

fn inspect(path: &Path) -> (Report, Heard) {
    let octets = fs::read(path).unwrap();
    let (mut inspector, mut heard) = (Inspector::new(Config::default()), Heard::default());
    for record in Reader::new(&octets).unwrap() {
        inspector.record(&record.unwrap(), &mut heard);
    }
    (inspector.finish(&mut heard), heard)
}

/// Octets of a block.
const BLOCK_BYTES: u64 = 16_384;
const PROFILES: [&str; 3] = ["libtorrent", "mainline4", "utorrent3"];

impl Played {
    fn nothing_is_unread(&self) {
        assert!(self.report.connections.iter().all(|one| one.speech == Speech::Plain));
        let sides = self.report.connections.iter().flat_map(|one| &one.sides);
        assert!(sides.clone().all(|side| (side.holes, side.losses, side.unread_bytes) == (0, 0, 0)));
    }

    /// Blocks from a peer to another that were cut short as the connection or the run ended, by transport.
    fn broken(&self, from: u32, to: u32) -> [u64; 2] {
        let mut broken = [0; 2];
        for one in &self.report.connections {
            for which in [0, 1] {
                if (peer(one.ends[which]), peer(one.ends[1 - which])) == (from, to) {
                    broken[usize::from(one.transport != Protocol::Tcp)] += one.sides[which].broken_blocks;
                }
            }
        }
        broken
    }

    /// Whether messages to that peer may wait behind a block that did not get through.
    fn waits(&self, from: u32, to: u32) -> bool {
        self.broken(from, to) != [0; 2]
    }

    fn peers(&self) -> std::ops::Range<u32> {
        0..self.outcome.peers.len() as u32
    }

    /// Every piece that a peer got was seen whole, its last octet no later than the peer had it.
    fn pieces_are_those_of(&self, n: u32) {
        let record = &self.outcome.peers[n as usize].record;
        assert_eq!(self.heard.pieces.keys().filter(|key| key.0 == n).count(), record.pieces.len());
        for &(at, piece) in &record.pieces {
            let (octets, seen_ns) = self.heard.pieces[&(n, piece)];
            assert_eq!(octets, self.piece_len(piece), "peer {n}, piece {piece}");
            assert!(seen_ns < at.as_nanos(), "peer {n}, piece {piece}");
        }
    }

    /// Every choke and unchoke was seen, in order, no earlier than it was decided; but what waits in the end was not, nor
    /// what was decided once both were complete, as they part.
    fn turns_are_those_of(&self, n: u32) {
        let record = &self.outcome.peers[n as usize].record;
        let done_at = |peer: u32| self.outcome.peers[peer as usize].record.completed_at;
        let mut own: BTreeMap<u32, Vec<(u64, bool)>> = BTreeMap::new();
        for (at, whom, unchoked, _) in &record.unchokes {
            own.entry(*whom).or_default().push((at.as_nanos(), *unchoked));
        }
        assert!(self.heard.turns.keys().all(|key| key.0 != n || own.contains_key(&key.1)));
        let none = Vec::new();
        for (whom, own) in own {
            let seen = self.heard.turns.get(&(n, whom)).unwrap_or(&none);
            assert!(own.iter().zip(seen).all(|(own, seen)| own.1 == seen.1), "{own:?} {seen:?}");
            let rest = own.get(seen.len()..).expect("no more than was decided");
            let both_done = done_at(n).map(|done| done.max(done_at(whom).unwrap_or_default()).as_nanos());
            let is_parting = rest.iter().all(|turn| both_done.is_some_and(|done| turn.0 >= done));
            assert!(is_parting || self.waits(n, whom), "{n} to {whom}: {rest:?}");
            assert!(own.iter().zip(seen).all(|(own, seen)| own.0 <= seen.0), "{own:?} {seen:?}");
        }
    }

    /// Octets of blocks by transport. A peer counts what it hands to a connection: when that is closed, as both ends are
    /// complete, a block and what was written ahead of the transport behind it may never leave.
    fn octets_are_those_of(&self, n: u32) {
        let one = &self.outcome.peers[n as usize];
        let ahead = u64::from(self.swarm.groups[one.group].write_ahead_bytes);
        let sent = self.heard.sent.get(&n).copied().unwrap_or_default();
        for by in [0, 1] {
            let broken: u64 = self.peers().map(|to| self.broken(n, to)[by]).sum();
            let unseen = one.record.totals.uploaded[by].checked_sub(sent[by]).expect("no more than was sent");
            assert!(unseen <= broken * (BLOCK_BYTES + ahead), "peer {n}: {unseen} octets, {broken} blocks");
        }
        let Some(received) = self.heard.received.get(&n) else { return };
        let redundant = self.heard.redundant.get(&n).copied().unwrap_or(0);
        assert_eq!(received.iter().sum::<u64>() - redundant, self.swarm.content_bytes, "peer {n}");
    }

    /// Every request was seen, but what waits in the end.
    fn requests_are_those_of(&self, n: u32) {
        let own = self.outcome.peers[n as usize].record.totals.requests_sent;
        let seen = self.heard.requests.get(&n).copied().unwrap_or(0);
        assert!(own >= seen, "peer {n}: {own}, {seen}");
        assert!(own == seen || self.peers().any(|to| self.waits(n, to)), "peer {n}: {own}, {seen}");
    }

    /// Every HAVE was seen, but what waits in the end, and that of a leecher's last piece to peers that are complete as
    /// well: a peer counts it, and closes those connections in the same instant, before anything more leaves, be it what
    /// waited there before.
    fn haves_are_those_of(&self, n: u32) {
        let one = &self.outcome.peers[n as usize];
        let pieces = &one.record.pieces;
        let mut expected = 0;
        for whom in self.peers() {
            let seen = |piece: u32| self.heard.haves.contains(&(n, whom, piece));
            let Some(last) = pieces.iter().rposition(|&(_, piece)| seen(piece)) else { continue };
            let untold = pieces.len() - 1 - last;
            let done = self.outcome.peers[whom as usize].record.completed_at;
            let is_closed = done.is_some_and(|done| Some(done) < one.record.completed_at);
            assert!(untold == 0 || is_closed || self.waits(n, whom), "{n} to {whom}: {untold}");
            expected += pieces.iter().filter(|(_, piece)| seen(*piece)).count() + untold;
        }
        assert_eq!(one.record.totals.haves_sent, expected as u64, "peer {n}");
    }
}

#[test]
fn a_capture_says_what_a_mixed_swarm_wrote_down() {
    for (profile, loss) in PROFILES.into_iter().flat_map(|profile| [(profile, "0"), (profile, "0.01")]) {
        let set = [format!("group.*.profile={profile}"), format!("links.loss={loss}")];
        let text = [LONE, MORE].concat();
        let played = Played::new("mixed", &text, Packets::Sent, &[&set[0], &set[1]]);
        played.nothing_is_unread();
        for n in played.peers() {
            played.pieces_are_those_of(n);
            played.turns_are_those_of(n);
            played.octets_are_those_of(n);
            played.haves_are_those_of(n);
            played.requests_are_those_of(n);
        }
        let both: [u64; 2] =
            played.heard.sent.values().fold([0; 2], |sum, sent| [sum[0] + sent[0], sum[1] + sent[1]]);
        assert!(both.iter().all(|&octets| octets > played.swarm.content_bytes), "{both:?}");
    }
}

/// With one leecher there is no end game and nothing is cut short: what is captured at it is equal, to the nanosecond.
#[test]
fn a_capture_at_a_single_leecher_is_its_own_record() {
    for (profile, transports, by) in
        PROFILES.into_iter().flat_map(|profile| [(profile, 13, 0), (profile, 14, 1)])
    {
        let set = [
            format!("group.*.profile={profile}"),
            format!("group.*.transports={transports}"),
            "group.tcp.count=1".to_string(),
        ];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let played = Played::new("single", LONE, Packets::Leechers, &set);
        played.nothing_is_unread();
        let [seed, leecher] = &played.outcome.peers[..] else { panic!("{:?}", played.outcome.peers) };
        let content = played.swarm.content_bytes;
        let mut moved = [0; 2];
        moved[by] = content;
        assert_eq!(seed.record.totals.uploaded, moved);
        assert_eq!((played.heard.sent[&0], played.heard.received[&1]), (moved, moved));
        let seen = leecher.record.pieces.iter().map(|&(_, piece)| played.heard.pieces[&(1, piece)]);
        let own = leecher.record.pieces.iter().map(|&(at, piece)| (played.piece_len(piece), at.as_nanos()));
        assert!(own.eq(seen));
        played.turns_are_those_of(0);
        played.turns_are_those_of(1);
        played.haves_are_those_of(1);
        played.requests_are_those_of(1);
    }
}
