//! A node of the distributed hash table (BEP 5), without a socket and a clock of its own.
//!
//! There is a table of IPv4 and one of IPv6 (BEP 32), which know nothing of each other's peers: whoever takes part in both has a node in
//! each, under two names, as ids follow from addresses. The one tells of the other's nodes who wants to hear of them, and hears of such
//! itself when it looks around: sooner than otherwise as long as the other table has nobody.
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

use crate::engine::neighbourhood;
use crate::family::Family;
use crate::holepunch::{is_peer, is_private};
use crate::tracker::share::Holder;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};
use core::net::{IpAddr, SocketAddr};
use lookup::Lookup;
use message::{Answer, Asker, Message, Query};
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
/// Addresses to begin with that are remembered.
const ENTRIES: usize = 64;
/// Nodes that others have told of, and that wait to be asked whether they are there, at most: one for each host.
const MET: usize = 16;
/// Between two questions to such.
const MEET: Duration = Duration::from_secs(1);

/// What comes of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Somebody is known where nobody was: who looked for something before may look again.
    Entered,
    /// Somebody has told of peers.
    Peers(Id, Vec<SocketAddr>),
    /// Somebody has told of nodes of the other family's table.
    Others(Vec<SocketAddr>),
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
    to: SocketAddr,
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
    family: Family,
    /// Whether there is a node of ours in the other family's table.
    has_other: bool,
    id: Id,
    secret: [u8; 20],
    votes: Votes,
    table: Table,
    store: Store,
    entries: Vec<SocketAddr>,
    met: Vec<SocketAddr>,
    meet_at: Instant,
    searches: BTreeMap<u32, Search>,
    pending: BTreeMap<Vec<u8>, Pending>,
    asked: u64,
    begun: u32,
    refresh_at: Instant,
    /// When others are asked for nodes of the other family's table, and how long after the time before, as long as it has none.
    seek_at: Instant,
    seek_pause: Duration,
    doubt_at: Instant,
    outbox: Vec<(SocketAddr, Vec<u8>)>,
    events: Vec<Event>,
}

/// How far apart two ids are: the exclusive or of both.
fn distance(a: &Id, b: &Id) -> Id {
    core::array::from_fn(|at| a[at] ^ b[at])
}

/// What nobody can guess of an address without knowing the secret.
fn digest(secret: &[u8; 20], what: &[u8], ip: IpAddr) -> [u8; 20] {
    let hash = Sha1::new().chain_update(secret).chain_update(what);
    let hash = match ip {
        IpAddr::V4(ip) => hash.chain_update(ip.octets()),
        IpAddr::V6(ip) => hash.chain_update(ip.octets()),
    };
    hash.finalize().into()
}

/// Whether there can be a node at an address, by what another one says. Of those in its own network alone a local one may speak, and
/// nobody of those of one link, who are nowhere without its name.
fn is_credible(teller: SocketAddr, address: SocketAddr) -> bool {
    let is_of_link = matches!(address.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local());
    is_peer(address) && !is_of_link && (!is_private(address.ip()) || is_private(teller.ip()))
}

/// The nodes nearest to a place in each of the tables that somebody wants to hear of.
fn near(tables: &[Option<&Node>; 2], own: Family, asker: &Asker, target: &Id) -> Vec<(Id, SocketAddr)> {
    let is_wanted = |node: &&Node| match &asker.wants[..] {
        [] => node.family == own,
        wants => wants.contains(&node.family),
    };
    let wanted = tables.iter().copied().flatten().filter(is_wanted);
    wanted.flat_map(|node| node.table.near(target, WIDTH)).collect()
}

impl Node {
    /// A node by this name until it knows where it is, whose tokens and transaction ids nobody else can guess as long as the secret is one.
    #[must_use]
    pub fn new(family: Family, id: Id, secret: [u8; 20]) -> Self {
        Self {
            family,
            has_other: false,
            id,
            secret,
            votes: Votes::default(),
            table: Table::new(id),
            store: Store::new(secret),
            entries: Vec::new(),
            met: Vec::new(),
            meet_at: Instant::ZERO,
            searches: BTreeMap::new(),
            pending: BTreeMap::new(),
            asked: 0,
            begun: 0,
            refresh_at: Instant::ZERO,
            seek_at: Instant::ZERO,
            seek_pause: ALONE,
            doubt_at: Instant::ZERO,
            outbox: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The same beside a node of ours in the other family's table: others are asked for nodes of both ([`Event::Others`]).
    #[must_use]
    pub fn beside_another(mut self) -> Self {
        self.has_other = true;
        self
    }

    /// Whose table it is one of.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    fn is_ours(&self, address: SocketAddr) -> bool {
        Family::of(address.ip()) == self.family
    }

    /// Its name.
    #[must_use]
    pub const fn id(&self) -> Id {
        self.id
    }

    /// Addresses of nodes to begin with, beside those of before, which are asked behind them.
    pub fn enter(&mut self, now: Instant, entries: &[SocketAddr]) {
        let mut fresh: Vec<SocketAddr> =
            entries.iter().copied().filter(|entry| self.is_ours(*entry)).take(ENTRIES).collect();
        self.entries.retain(|known| !fresh.contains(known));
        fresh.append(&mut self.entries);
        fresh.truncate(ENTRIES);
        self.entries = fresh;
        self.refresh_at = now;
    }

    /// There may be a node at this address: it is asked, soon. Of one host the last counts.
    pub fn meet(&mut self, address: SocketAddr) {
        if is_peer(address) && self.is_ours(address) && !self.table.knows(address) {
            let host = Holder::of(address.ip());
            self.met.retain(|met| is_private(met.ip()) && *met != address || Holder::of(met.ip()) != host);
            self.met.push(address);
            self.met.truncate(MET);
        }
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
    pub fn outgoing(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        core::mem::take(&mut self.outbox)
    }

    /// What has happened.
    pub fn events(&mut self) -> Vec<Event> {
        core::mem::take(&mut self.events)
    }

    /// When [`Node::tick`] has something to do, if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let late_at = self.pending.values().map(|pending| pending.until).min().unwrap_or(Instant::NEVER);
        let meet_at = if self.met.is_empty() { Instant::NEVER } else { self.meet_at };
        late_at.min(meet_at).min(self.refresh_at).min(self.seek_at).min(self.doubt_at)
    }

    /// Time has passed. Our node in the other family's table, where there is one, may have nobody yet.
    pub fn tick(&mut self, now: Instant, other: Option<&Self>) {
        let late = self.pending.extract_if(.., |_, asked| asked.until <= now);
        for (_, pending) in late.collect::<Vec<_>>() {
            self.table.missed(pending.to);
            self.fail(now, &pending);
        }
        self.look_around(now, other);
        if now >= self.meet_at && !self.met.is_empty() {
            self.meet_at = now + MEET;
            let met = self.met.remove(0);
            self.ask(now, met, Purpose::Presence, &Query::Ping);
        }
        if now >= self.doubt_at {
            self.doubt_at = now + DOUBT;
            if let Some(address) = self.table.doubtful(now) {
                self.ask(now, address, Purpose::Presence, &Query::Ping);
            }
        }
    }

    /// Who is asked at first may know nobody of the other table yet. Where there is nothing to be had of it, such as on a machine that has
    /// addresses of its family and no way out, it is soon asked for as rarely as our own surroundings are.
    fn look_around(&mut self, now: Instant, other: Option<&Self>) {
        let is_sought = !self.table.is_empty() && other.is_some_and(|other| other.table.is_empty());
        if !is_sought {
            (self.seek_at, self.seek_pause) = (now + ALONE, ALONE);
        }
        if now >= self.refresh_at || now >= self.seek_at {
            self.refresh_at = now + self.until_refresh();
            if is_sought {
                self.seek_pause = (self.seek_pause * 2).min(REFRESH);
                self.seek_at = now + self.seek_pause;
            }
            self.begin(now, self.id, None, false);
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

    /// A datagram has come. Our node in the other family's table, where there is one, is told of to whoever wants to hear of it.
    pub fn receive(&mut self, now: Instant, from: SocketAddr, octets: &[u8], other: Option<&Self>) {
        let is_good = from.port() != 0 && self.is_ours(from);
        let Some((transaction, message)) = message::read(octets).filter(|_| is_good) else { return };
        match message {
            Message::Query(asker, query) => {
                let tables = [Some(&*self), other];
                let near = |target: &Id| near(&tables, self.family, &asker, target);
                let nodes = query.target().map(near).unwrap_or_default();
                self.answer(now, from, &transaction, &query, nodes);
                self.asked_by(now, from, &asker);
            }
            Message::Odd(code) => self.send(from, message::refuse(&transaction, code, from)),
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
    fn seen(&mut self, now: Instant, by: SocketAddr, at: Option<SocketAddr>) {
        let Some(at) = at.filter(|at| self.is_ours(*at) && is_peer(*at) && !is_private(at.ip())) else {
            return;
        };
        if !is_private(by.ip()) && self.votes.cast(by.ip(), at.ip()) && !secure::fits(&self.id, at.ip()) {
            self.rename(now, at.ip());
        }
    }

    /// Our id is to follow from our address. At the same address it is the same again.
    fn rename(&mut self, now: Instant, ip: IpAddr) {
        self.id = secure::fitting(digest(&self.secret, b"id", neighbourhood(ip)), ip);
        self.table.rename(self.id);
        // Others are near now.
        self.refresh_at = now;
    }

    fn take_pending(&mut self, transaction: &[u8], from: SocketAddr) -> Option<Pending> {
        self.pending.get(transaction).filter(|pending| pending.to == from)?;
        self.pending.remove(transaction)
    }

    fn answer(
        &mut self,
        now: Instant,
        from: SocketAddr,
        transaction: &[u8],
        query: &Query,
        nodes: Vec<(Id, SocketAddr)>,
    ) {
        let mut answer = Answer { id: self.id, nodes, asker: Some(from), ..Answer::default() };
        match query {
            Query::Ping | Query::FindNode(_) => {}
            Query::GetPeers(info_hash) => {
                answer.peers = self.store.peers(now, info_hash);
                answer.token = Some(self.store.token(now, from));
            }
            Query::Announce { info_hash, port, token } => {
                if !self.store.is_good(now, from, token) {
                    return self.send(from, message::refuse(transaction, message::PROTOCOL, from));
                }
                self.store.add(now, *info_hash, message::peer_at(from, *port));
            }
        }
        self.send(from, message::reply(transaction, &answer));
    }

    /// Whoever asks, and would find a place, is asked whether it is there.
    fn asked_by(&mut self, now: Instant, from: SocketAddr, asker: &Asker) {
        let is_asked = self.pending.values().any(|pending| pending.to == from);
        if !asker.is_silent && !is_asked && self.table.wants(&asker.id, from) {
            self.ask(now, from, Purpose::Presence, &Query::Ping);
        }
    }

    fn heard(&mut self, now: Instant, pending: &Pending, answer: Answer) {
        if answer.id == self.id {
            return self.fail(now, pending);
        }
        let was_alone = self.table.is_empty();
        self.table.heard(now, answer.id, pending.to);
        if was_alone {
            self.events.push(Event::Entered);
            self.refresh_at = now + self.until_refresh();
            // Whoever was the first knows others, perhaps.
            if pending.purpose == Purpose::Presence {
                self.begin(now, self.id, None, false);
            }
        }
        match pending.purpose {
            Purpose::Presence => {}
            Purpose::Announce(key) => self.announced(key, true),
            Purpose::Search(key) => self.found(now, key, pending.to, answer),
        }
    }

    /// A search's question has had an answer.
    fn found(&mut self, now: Instant, key: u32, from: SocketAddr, answer: Answer) {
        let is_good = |(id, address): &(Id, SocketAddr)| *id != self.id && is_credible(from, *address);
        let (nodes, others): (Vec<_>, Vec<_>) =
            answer.nodes.into_iter().filter(is_good).partition(|(_, address)| self.is_ours(*address));
        if self.has_other && !others.is_empty() {
            self.events.push(Event::Others(others.into_iter().map(|(_, address)| address).collect()));
        }
        let Some(search) = self.searches.get_mut(&key) else { return };
        if search.is_torrent && !answer.peers.is_empty() {
            self.events.push(Event::Peers(search.lookup.target, answer.peers));
        }
        search.lookup.answered(from, answer.id, answer.token, &nodes);
        self.drive(now, key);
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
        let takers: Vec<(SocketAddr, Vec<u8>)> = takers.map(|(to, token)| (to, token.to_vec())).collect();
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
    fn ask(&mut self, now: Instant, to: SocketAddr, purpose: Purpose, query: &Query) -> bool {
        if self.pending.len() >= OPEN {
            return false;
        }
        self.asked += 1;
        let hash = Sha1::new().chain_update(self.secret).chain_update(self.asked.to_le_bytes()).finalize();
        let transaction = hash[..TRANSACTION_BYTES].to_vec();
        let is_looking_around = matches!(query, Query::FindNode(_));
        let wants = if self.has_other && is_looking_around { Family::ALL.to_vec() } else { Vec::new() };
        self.send(to, message::ask(&transaction, &Asker { wants, ..Asker::new(self.id) }, query));
        self.pending.insert(transaction, Pending { to, until: now + PATIENCE, purpose });
        true
    }

    fn send(&mut self, to: SocketAddr, octets: Vec<u8>) {
        if self.outbox.len() < OUTBOX {
            self.outbox.push((to, octets));
        }
    }
}

#[cfg(test)]
mod tests;
