//! A swarm without a network: engines joined by pipes that carry everything at once.
#![allow(dead_code, reason = "each test file uses a part of it")]

use cede_bt::engine::{Action, Chunk, CloseReason, ConnId, Setup};
use cede_bt::{Bitfield, Disposition, Engine, Geometry, Profile, Transport};
use cede_units::{Duration, Instant, Stream};
use cede_wire::Payload;
use std::collections::{BTreeMap, VecDeque};

pub const PIECE_BYTES: u32 = 64 << 10;

pub fn geometry() -> Geometry {
    Geometry::new(40 * u64::from(PIECE_BYTES) + 1_000, PIECE_BYTES).unwrap()
}

pub fn setup(number: u8, seed: bool, profile: Profile, disposition: Disposition) -> Setup {
    let geometry = geometry();
    let pieces = geometry.pieces();
    Setup {
        geometry,
        info_hash: [7; 20],
        peer_id: [number; 20],
        have: if seed { Bitfield::all(pieces) } else { Bitfield::none(pieces) },
        profile,
        disposition,
        upload_limit: None,
        extended: None,
        notes: false,
        random: Stream::named(1, &format!("peer {number}")),
    }
}

/// A member with what a driver keeps for it.
pub struct Member {
    pub engine: Engine<usize>,
    /// Octets stored, per piece.
    pub stored: BTreeMap<u32, u64>,
    /// Sends other content than the torrent's.
    pub lies: bool,
    /// In one block of so many.
    pub lies_in: u64,
    /// Sends no more content than that, and says nothing of it.
    pub content_max: u64,
    /// Pieces in which something was not the torrent's.
    spoilt: Vec<u32>,
    pub closed: Vec<CloseReason>,
    pub banned: Vec<usize>,
}

/// Which member and connection stand at the other end of each.
type Wires = BTreeMap<(usize, ConnId), (usize, ConnId)>;

pub struct Swarm {
    pub now: Instant,
    pub members: Vec<Member>,
    pub wires: Wires,
    pub transports: BTreeMap<(usize, ConnId), Transport>,
    dials: VecDeque<(usize, ConnId, usize, Transport)>,
    closes: VecDeque<(usize, ConnId)>,
}

impl Swarm {
    pub fn new(setups: Vec<Setup>) -> Self {
        let member = |setup| Member {
            engine: Engine::new(setup),
            stored: BTreeMap::new(),
            lies: false,
            lies_in: 1,
            content_max: u64::MAX,
            spoilt: Vec::new(),
            closed: Vec::new(),
            banned: Vec::new(),
        };
        Self {
            now: Instant::from_secs(1),
            members: setups.into_iter().map(member).collect(),
            wires: BTreeMap::new(),
            transports: BTreeMap::new(),
            dials: VecDeque::new(),
            closes: VecDeque::new(),
        }
    }

    /// Everybody hears of everybody, and time goes on until all are complete or `limit` has passed.
    pub fn run(&mut self, limit: Duration) -> bool {
        let is_done = |member: &Member| member.lies || member.engine.is_complete();
        self.run_until(limit, |members| members.iter().all(is_done))
    }

    /// The same until something else is so.
    pub fn run_until(&mut self, limit: Duration, mut is_over: impl FnMut(&[Member]) -> bool) -> bool {
        let everybody: Vec<usize> = (0..self.members.len()).collect();
        for at in 0..self.members.len() {
            self.members[at].engine.start(self.now);
        }
        for at in 0..self.members.len() {
            let others: Vec<usize> = everybody.iter().copied().filter(|&other| other != at).collect();
            self.members[at].engine.add_peers(self.now, &others);
        }
        let end = self.now + limit;
        while self.now < end {
            self.settle();
            if is_over(&self.members) {
                return true;
            }
            let due = self.members.iter().filter_map(|member| member.engine.poll_timeout()).min();
            self.now = due.unwrap_or(end).max(self.now + Duration::from_millis(1));
            let now = self.now;
            self.members.iter_mut().for_each(|member| member.engine.handle_timeout(now));
        }
        false
    }

    fn settle(&mut self) {
        for _ in 0..1_000_000 {
            let mut busy = false;
            for at in 0..self.members.len() {
                busy |= self.act(at);
                busy |= self.transmit(at);
            }
            busy |= self.join();
            if !busy {
                return;
            }
        }
        panic!("the swarm does not come to rest");
    }

    fn act(&mut self, at: usize) -> bool {
        let mut busy = false;
        while let Some(action) = self.members[at].engine.poll_action() {
            busy = true;
            self.do_action(at, action);
        }
        busy
    }

    fn do_action(&mut self, at: usize, action: Action<usize>) {
        let now = self.now;
        let member = &mut self.members[at];
        match action {
            Action::Connect { conn, address, transport } => {
                self.dials.push_back((at, conn, address, transport));
            }
            Action::Close { conn, reason } => {
                member.closed.push(reason);
                self.closes.push_back((at, conn));
            }
            Action::Store { block, at: start, payload, .. } => {
                *member.stored.entry(block.piece).or_default() += u64::from(payload.len());
                let offset = member.engine.geometry().offset(block.piece, block.begin + start);
                let honest = matches!(payload, Payload::Pattern { start, .. } if start == offset);
                if !honest {
                    member.spoilt.push(block.piece);
                }
            }
            Action::Check { piece } => {
                let bad = member.spoilt.contains(&piece);
                member.spoilt.retain(|&other| other != piece);
                member.engine.checked(now, piece, !bad);
            }
            Action::Banned { address } => member.banned.push(address),
            _ => {}
        }
    }

    fn join(&mut self) -> bool {
        let mut busy = false;
        while let Some((from, conn, to, transport)) = self.dials.pop_front() {
            busy = true;
            match self.members[to].engine.accept(self.now, from, transport) {
                Some(theirs) => {
                    self.wires.insert((from, conn), (to, theirs));
                    self.wires.insert((to, theirs), (from, conn));
                    for end in [(from, conn), (to, theirs)] {
                        self.transports.insert(end, transport);
                        self.members[end.0].engine.set_room(end.1, u32::MAX);
                    }
                    self.members[from].engine.connected(self.now, conn);
                }
                None => self.members[from].engine.closed(self.now, conn),
            }
        }
        while let Some(end) = self.closes.pop_front() {
            busy = true;
            if let Some(other) = self.wires.remove(&end) {
                self.wires.remove(&other);
                self.members[other.0].engine.closed(self.now, other.1);
            }
        }
        busy
    }

    fn transmit(&mut self, at: usize) -> bool {
        let mut busy = false;
        while let Some((conn, chunk)) = self.members[at].engine.poll_transmit(self.now) {
            busy = true;
            let member = &mut self.members[at];
            let payload = match chunk {
                Chunk::Octets(payload) => payload,
                Chunk::Content { offset, len } => {
                    let lie = member.lies && (offset >> 14).is_multiple_of(member.lies_in);
                    Payload::Pattern { start: offset + u64::from(lie), len }
                }
            };
            let uploaded: u64 = member.engine.totals().uploaded.iter().sum();
            // The head of a block alone would be a broken message: who falls silent says nothing at all.
            if uploaded > member.content_max {
                continue;
            }
            member.engine.set_room(conn, u32::MAX);
            if let Some(&(to, theirs)) = self.wires.get(&(at, conn)) {
                self.members[to].engine.received(self.now, theirs, payload);
                self.act(to);
            }
        }
        busy
    }
}
