//! A node of the distributed hash table (BEP 5), over IPv4, without a socket and a clock of its own.
//!
//! It answers everybody from the first, whatever the length of their transaction ids, and has no say in when a torrent is looked for:
//! [`Node::search`] begins a search, [`Event`]s tell what comes of it. Nodes are known once they have answered; who asks ours, and
//! would find a place, is asked whether it is there.
//!
//! **Ids follow from addresses** (BEP 42): ours does once most of those who answer agree where we are, and is drawn before, and in a private
//! network. Who has another id is asked, answered and told of us like everybody, as BEP 42 has it while not all are new; but it makes room
//! for who has such a one, and is never all that a search asks ([`secure`]).
//!
//! **What it leaves out.** Data (BEP 44). How it was validated: the tests below, tables with the `mainline` crate's nodes and with
//! libtorrent's.
//!
//! **Invariant:** what others say makes nothing grow without a limit, and a query is answered with one datagram to where it came from.

mod lookup;
pub mod message;
pub mod secure;
mod store;
mod table;
mod votes;

use crate::holepunch::{is_peer, is_private};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};
use core::net::{IpAddr, SocketAddr, SocketAddrV4};
use lookup::Lookup;
use message::{Answer, Message, Query};
use sha1::{Digest, Sha1};
use store::Store;
use table::{Table, WIDTH};
use votes::Votes;

/// The name of a node, or the info-hash of a torrent.
pub type Id = [u8; 20];

/// A question is given up after so long.
const PATIENCE: Duration = Duration::from_secs(2);
/// Our own surroundings are looked for again.
const REFRESH: Duration = Duration::from_secs(15 * 60);
/// As long as fewer are known than are asked in a search.
const SMALL: Duration = Duration::from_secs(30);
/// As long as nobody is known.
const ALONE: Duration = Duration::from_secs(5);
/// Between two questions whether somebody is still there.
const DOUBT: Duration = Duration::from_secs(5);
/// Questions of ours that are open at most; what else there is to ask waits or is left out.
const OPEN: usize = 256;
/// Datagrams that wait to be sent at most.
const OUTBOX: usize = 512;
const TRANSACTION_BYTES: usize = 4;

/// What comes of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Somebody has told of peers.
    Peers(Id, Vec<SocketAddr>),
    /// A search is over, and whether somebody has taken what it was told of us.
    Over {
        /// The torrent.
        info_hash: Id,
        /// Whether some node remembers us; not so where it was told nothing.
        is_known: bool,
        /// Nodes that have answered.
        answers: usize,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// Whether it is there.
    Presence,
    /// A search's question.
    Search(u32),
    /// A search's last word.
    Announce(u32),
}

#[derive(Debug)]
struct Pending {
    to: SocketAddrV4,
    until: Instant,
    purpose: Purpose,
}

#[derive(Debug)]
struct Search {
    lookup: Lookup,
    /// A torrent's, not one for our own surroundings.
    is_torrent: bool,
    /// Where we are told of to be.
    port: Option<u16>,
    /// Announces that are waited for, once the search is through.
    announcing: Option<usize>,
    is_known: bool,
}

/// Our node.
#[derive(Debug)]
pub struct Node {
    id: Id,
    secret: [u8; 20],
    votes: Votes,
    table: Table,
    store: Store,
    entries: Vec<SocketAddrV4>,
    searches: BTreeMap<u32, Search>,
    pending: BTreeMap<Vec<u8>, Pending>,
    asked: u64,
    begun: u32,
    refresh_at: Instant,
    doubt_at: Instant,
    outbox: Vec<(SocketAddrV4, Vec<u8>)>,
    events: Vec<Event>,
}

/// How far apart two ids are: the exclusive or of both.
fn distance(a: &Id, b: &Id) -> Id {
    core::array::from_fn(|at| a[at] ^ b[at])
}

/// Whether there can be a node at an address, by what another one says. Of those in its own network alone a local one may speak.
fn is_credible(teller: SocketAddrV4, address: SocketAddrV4) -> bool {
    is_peer(address.into()) && (!is_local(address) || is_local(teller))
}

/// Whether it is in a private network, of this machine or around it.
fn is_local(address: SocketAddrV4) -> bool {
    is_private(IpAddr::V4(*address.ip()))
}

impl Node {
    /// A node by this name until it knows where it is, whose tokens and transaction ids nobody else can guess as long as the secret is one.
    #[must_use]
    pub fn new(id: Id, secret: [u8; 20]) -> Self {
        Self {
            id,
            secret,
            votes: Votes::default(),
            table: Table::new(id),
            store: Store::new(secret),
            entries: Vec::new(),
            searches: BTreeMap::new(),
            pending: BTreeMap::new(),
            asked: 0,
            begun: 0,
            refresh_at: Instant::ZERO,
            doubt_at: Instant::ZERO,
            outbox: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Its name.
    #[must_use]
    pub const fn id(&self) -> Id {
        self.id
    }

    /// Addresses of nodes to begin with.
    pub fn enter(&mut self, now: Instant, entries: Vec<SocketAddrV4>) {
        self.entries = entries;
        self.refresh_at = now;
    }

    /// Looks for a torrent's peers, and tells those nearest to it that we have it, where there is a port.
    pub fn search(&mut self, now: Instant, info_hash: Id, port: Option<u16>) {
        self.begin(now, info_hash, port, true);
    }

    /// Peers that others have told our node of.
    #[must_use]
    pub fn told(&self, now: Instant, info_hash: &Id) -> Vec<SocketAddr> {
        self.store.peers(now, info_hash)
    }

    /// What is to be sent, and where.
    pub fn outgoing(&mut self) -> Vec<(SocketAddrV4, Vec<u8>)> {
        core::mem::take(&mut self.outbox)
    }

    /// What has happened.
    pub fn events(&mut self) -> Vec<Event> {
        core::mem::take(&mut self.events)
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        let late = self.pending.extract_if(.., |_, asked| asked.until <= now);
        for (_, pending) in late.collect::<Vec<_>>() {
            self.table.missed(pending.to);
            self.fail(now, &pending);
        }
        if now >= self.refresh_at {
            self.refresh_at = now + self.until_refresh();
            self.begin(now, self.id, None, false);
        }
        if now >= self.doubt_at {
            self.doubt_at = now + DOUBT;
            if let Some(address) = self.table.doubtful(now) {
                self.ask(now, address, Purpose::Presence, &Query::Ping);
            }
        }
    }

    /// A small table knows little of what there is.
    fn until_refresh(&self) -> Duration {
        match self.table.near(&self.id, WIDTH).len() {
            0 => ALONE,
            WIDTH.. => REFRESH,
            _ => SMALL,
        }
    }

    /// A datagram has come.
    pub fn receive(&mut self, now: Instant, from: SocketAddrV4, octets: &[u8]) {
        let Some((transaction, message)) = message::read(octets).filter(|_| from.port() != 0) else { return };
        match message {
            Message::Query(id, is_silent, query) => {
                self.answer(now, from, &transaction, (id, is_silent), query);
            }
            Message::Odd(code) => self.send(from, message::refuse(&transaction, code, from.into())),
            Message::Answer(answer) => {
                if let Some(pending) = self.take_pending(&transaction, from) {
                    self.seen(now, from, answer.asker);
                    self.heard(now, &pending, answer);
                }
            }
            Message::Error(asker) => {
                if let Some(pending) = self.take_pending(&transaction, from) {
                    self.seen(now, from, asker);
                    self.fail(now, &pending);
                }
            }
        }
    }

    /// Somebody whom we have asked says from where. In a private network others see us elsewhere than all the rest.
    fn seen(&mut self, now: Instant, by: SocketAddrV4, at: Option<SocketAddr>) {
        let Some(at) = at.filter(|at| at.is_ipv4() && is_peer(*at) && !is_private(at.ip())) else { return };
        if !is_local(by) && self.votes.cast(IpAddr::V4(*by.ip()), at.ip()) && !secure::fits(&self.id, at.ip())
        {
            self.rename(now, at.ip());
        }
    }

    /// Our id is to follow from our address. At the same address it is the same again.
    fn rename(&mut self, now: Instant, ip: IpAddr) {
        let hash = Sha1::new().chain_update(self.secret).chain_update(b"id");
        let drawn = match ip {
            IpAddr::V4(ip) => hash.chain_update(ip.octets()),
            IpAddr::V6(ip) => hash.chain_update(&ip.octets()[..8]),
        };
        self.id = secure::fitting(drawn.finalize().into(), ip);
        self.table.rename(self.id);
        // Others are near now.
        self.refresh_at = now;
    }

    fn take_pending(&mut self, transaction: &[u8], from: SocketAddrV4) -> Option<Pending> {
        self.pending.get(transaction).filter(|pending| pending.to == from)?;
        self.pending.remove(transaction)
    }

    fn answer(
        &mut self,
        now: Instant,
        from: SocketAddrV4,
        transaction: &[u8],
        who: (Id, bool),
        query: Query,
    ) {
        let mut answer = Answer { id: self.id, asker: Some(from.into()), ..Answer::default() };
        match query {
            Query::Ping => {}
            Query::FindNode(target) => answer.nodes = self.table.near(&target, WIDTH),
            Query::GetPeers(info_hash) => {
                answer.nodes = self.table.near(&info_hash, WIDTH);
                answer.peers = self.store.peers(now, &info_hash);
                answer.token = Some(self.store.token(now, from));
            }
            Query::Announce { info_hash, port, token } => {
                if !self.store.is_good(now, from, &token) {
                    return self.send(from, message::refuse(transaction, message::PROTOCOL, from.into()));
                }
                self.store.add(now, info_hash, message::peer_at(from, port));
            }
        }
        self.send(from, message::reply(transaction, &answer));
        let (id, is_silent) = who;
        let is_asked = self.pending.values().any(|pending| pending.to == from);
        if !is_silent && !is_asked && self.table.wants(&id, from) {
            self.ask(now, from, Purpose::Presence, &Query::Ping);
        }
    }

    fn heard(&mut self, now: Instant, pending: &Pending, mut answer: Answer) {
        if answer.id == self.id {
            return self.fail(now, pending);
        }
        answer.nodes.retain(|(id, address)| *id != self.id && is_credible(pending.to, *address));
        let was_alone = self.table.is_empty();
        self.table.heard(now, answer.id, pending.to);
        if was_alone {
            self.refresh_at = now + self.until_refresh();
            // Whoever was the first knows others, perhaps.
            if pending.purpose == Purpose::Presence {
                self.begin(now, self.id, None, false);
            }
        }
        match pending.purpose {
            Purpose::Presence => {}
            Purpose::Announce(key) => self.announced(key, true),
            Purpose::Search(key) => {
                let Some(search) = self.searches.get_mut(&key) else { return };
                if search.is_torrent && !answer.peers.is_empty() {
                    self.events.push(Event::Peers(search.lookup.target, answer.peers));
                }
                search.lookup.answered(pending.to, answer.id, answer.token, &answer.nodes);
                self.drive(now, key);
            }
        }
    }

    /// A question has had no answer, or a refusal.
    fn fail(&mut self, now: Instant, pending: &Pending) {
        match pending.purpose {
            Purpose::Presence => {}
            Purpose::Announce(key) => self.announced(key, false),
            Purpose::Search(key) => {
                if let Some(search) = self.searches.get_mut(&key) {
                    search.lookup.failed(pending.to);
                    self.drive(now, key);
                }
            }
        }
    }

    fn begin(&mut self, now: Instant, target: Id, port: Option<u16>, is_torrent: bool) {
        let known = self.table.near(&target, WIDTH);
        let entries = if known.len() < WIDTH { &self.entries[..] } else { &[] };
        let lookup = Lookup::new(target, &known, entries);
        self.begun = self.begun.wrapping_add(1);
        let search = Search { lookup, is_torrent, port, announcing: None, is_known: false };
        self.searches.insert(self.begun, search);
        self.drive(now, self.begun);
    }

    /// Asks whoever is next, or ends the search.
    fn drive(&mut self, now: Instant, key: u32) {
        while let Some(search) = self.searches.get_mut(&key).filter(|search| search.announcing.is_none()) {
            let Some(next) = search.lookup.next() else { break };
            let target = search.lookup.target;
            let query = if search.is_torrent { Query::GetPeers(target) } else { Query::FindNode(target) };
            if !self.ask(now, next, Purpose::Search(key), &query)
                && let Some(search) = self.searches.get_mut(&key)
            {
                search.lookup.failed(next);
            }
        }
        let is_over = |search: &&Search| search.announcing.is_none() && search.lookup.is_over();
        if self.searches.get(&key).filter(is_over).is_some() {
            self.tell(now, key);
        }
    }

    /// The search is through: those nearest are told of us.
    fn tell(&mut self, now: Instant, key: u32) {
        let Some(search) = self.searches.get(&key) else { return };
        let (info_hash, port) = (search.lookup.target, search.port);
        let takers = search.lookup.takers().filter(|_| port.is_some());
        let takers: Vec<(SocketAddrV4, Vec<u8>)> = takers.map(|(to, token)| (to, token.to_vec())).collect();
        let mut count = 0;
        for (to, token) in takers {
            let query = Query::Announce { info_hash, port, token };
            count += usize::from(self.ask(now, to, Purpose::Announce(key), &query));
        }
        if let Some(search) = self.searches.get_mut(&key) {
            search.announcing = Some(count);
        }
        self.end_if_told(key);
    }

    fn announced(&mut self, key: u32, is_known: bool) {
        if let Some(search) = self.searches.get_mut(&key) {
            search.announcing = search.announcing.map(|left| left.saturating_sub(1));
            search.is_known |= is_known;
            self.end_if_told(key);
        }
    }

    fn end_if_told(&mut self, key: u32) {
        if self.searches.get(&key).is_none_or(|search| search.announcing != Some(0)) {
            return;
        }
        if let Some(search) = self.searches.remove(&key).filter(|search| search.is_torrent) {
            let (info_hash, answers) = (search.lookup.target, search.lookup.answers());
            self.events.push(Event::Over { info_hash, is_known: search.is_known, answers });
        }
    }

    /// Asks a node; not where too much is open already.
    fn ask(&mut self, now: Instant, to: SocketAddrV4, purpose: Purpose, query: &Query) -> bool {
        if self.pending.len() >= OPEN {
            return false;
        }
        self.asked += 1;
        let hash = Sha1::new().chain_update(self.secret).chain_update(self.asked.to_le_bytes()).finalize();
        let transaction = hash[..TRANSACTION_BYTES].to_vec();
        self.send(to, message::ask(&transaction, self.id, query));
        self.pending.insert(transaction, Pending { to, until: now + PATIENCE, purpose });
        true
    }

    fn send(&mut self, to: SocketAddrV4, octets: Vec<u8>) {
        if self.outbox.len() < OUTBOX {
            self.outbox.push((to, octets));
        }
    }
}

#[cfg(test)]
mod tests;
