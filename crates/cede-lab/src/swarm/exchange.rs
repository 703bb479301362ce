//! Peers told by peers (BEP 11), as libtorrent does it.
//!
//! Source: libtorrent 2.0.8, `ut_pex`, as read and as seen in its logs. Within a second of its introduction a peer hears of all who are
//! connected, and once a minute from then on of who has come and gone, which is found out once a minute for all of them together. It is
//! why a seed that was there first calls those who came after it, over the transport that it prefers.

use crate::record::address;
use cede_bt::engine::{ConnId, ConnView};
use cede_bt::extension::{Extension, Hearsay, UT_PEX};
use cede_bt::pex::{self, Contact};
use cede_bt::{Engine, Transport};
use cede_net::HostId;
use cede_units::{Duration, Instant};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// How often a peer hears of others, and how often it is found out who has come and gone.
const EVERY: Duration = Duration::from_secs(60);
/// How soon after its introduction it hears for the first time: the tick of the connections.
const TICK: Duration = Duration::from_secs(1);
/// Where simulated peers take connections.
const PORT: u16 = 6881;

/// What a simulated peer that exchanges others says of itself.
pub(super) fn introduction() -> Vec<u8> {
    let hearsay = Hearsay { exchanges: true, punches: false };
    Extension::ours("cede-lab", Some(PORT), None, hearsay, None)
}

/// A peer that hears of others.
#[derive(Clone, Copy, Debug)]
struct Listener {
    conn: ConnId,
    /// What it calls these messages.
    name: u8,
    host: u32,
    due_at: Instant,
    was_told: bool,
}

/// What one peer tells its peers.
#[derive(Debug)]
pub(super) struct Exchange {
    me: HostId,
    listeners: Vec<Listener>,
    /// When the first of them is due.
    due_at: Instant,
    /// Who was connected when it was last found out, and what had changed by then.
    known: BTreeSet<u32>,
    change: Option<Vec<u8>>,
    found_at: Option<Instant>,
}

impl Exchange {
    pub(super) const fn new(me: HostId) -> Self {
        Self {
            me,
            listeners: Vec::new(),
            due_at: Instant::NEVER,
            known: BTreeSet::new(),
            change: None,
            found_at: None,
        }
    }

    /// When somebody is to be told.
    pub(super) const fn due_at(&self) -> Instant {
        self.due_at
    }

    /// A peer has introduced itself.
    pub(super) fn introduce(&mut self, now: Instant, conn: ConnId, host: u32, extension: &Extension) {
        if extension.ut_pex != 0 && self.listeners.iter().all(|other| other.conn != conn) {
            let (name, due_at) = (extension.ut_pex, now + TICK);
            self.listeners.push(Listener { conn, name, host, due_at, was_told: false });
            self.due_at = self.due_at.min(due_at);
        }
    }

    /// A peer tells of others.
    pub(super) fn hear(&self, now: Instant, engine: &mut Engine<u32>, extension: u8, payload: &[u8]) {
        if extension == UT_PEX {
            let heard = pex::parse(payload).unwrap_or_default();
            let hosts = heard.iter().filter_map(|heard| host_at(heard.address));
            let others: Vec<u32> = hosts.filter(|&host| host != self.me.0).collect();
            engine.add_peers(now, &others);
        }
    }

    /// Tells those who are due.
    pub(super) fn tell(&mut self, now: Instant, engine: &mut Engine<u32>) {
        if self.due_at > now {
            return;
        }
        let is_change_due = self.found_at.is_none_or(|at| now.since(at) >= EVERY);
        let hears_of_all = |listener: &Listener| listener.due_at <= now && !listener.was_told;
        // Most hear of what was found out before: where everybody is connected with everybody, that is not looked up for each of them.
        let contacts = if is_change_due || self.listeners.iter().any(hears_of_all) {
            self.contacts(engine)
        } else {
            Vec::new()
        };
        if is_change_due {
            self.find_change(now, &contacts);
        }
        for listener in self.listeners.iter_mut().filter(|listener| listener.due_at <= now) {
            listener.due_at = now + EVERY;
            let message = if std::mem::replace(&mut listener.was_told, true) {
                self.change.clone()
            } else {
                let others = contacts.iter().filter(|(host, _)| *host != listener.host);
                Some(pex::message(&others.map(|(_, contact)| *contact).collect::<Vec<_>>(), &[]))
            };
            if let Some(message) = message {
                engine.send_extended(now, listener.conn, listener.name, &message);
            }
        }
        self.due_at = self.listeners.iter().map(|listener| listener.due_at).min().unwrap_or(Instant::NEVER);
    }

    /// Those who are connected and have introduced themselves; whoever is gone listens no more.
    fn contacts(&mut self, engine: &Engine<u32>) -> Vec<(u32, Contact)> {
        let pieces = engine.geometry().pieces();
        let views: Vec<ConnView<u32>> = engine.connections().collect();
        // By their numbers, as everybody may be connected with everybody.
        let open = by_number(views.iter().map(|view| view.id));
        self.listeners.retain(|listener| is_among(listener.conn, &open));
        let introduced = by_number(self.listeners.iter().map(|listener| listener.conn));
        let contact = |view: &ConnView<u32>| Contact {
            is_seed: view.pieces == pieces,
            is_utp: view.transport == Transport::Utp,
            is_reached: view.opened_by_us,
            ..contact_at(view.address)
        };
        let known = views.iter().filter(|view| is_among(view.id, &introduced));
        known.map(|view| (view.address, contact(view))).collect()
    }

    /// Finds out who has come and gone since the last time.
    fn find_change(&mut self, now: Instant, contacts: &[(u32, Contact)]) {
        self.found_at = Some(now);
        let hosts: BTreeSet<u32> = contacts.iter().map(|(host, _)| *host).collect();
        let added: Vec<Contact> = contacts
            .iter()
            .filter(|(host, _)| !self.known.contains(host))
            .map(|(_, contact)| *contact)
            .collect();
        let dropped: Vec<SocketAddr> =
            self.known.difference(&hosts).map(|&host| contact_at(host).address).collect();
        self.change = (!added.is_empty() || !dropped.is_empty()).then(|| pex::message(&added, &dropped));
        self.known = hosts;
    }
}

/// Connections in places of their numbers.
fn by_number(conns: impl Iterator<Item = ConnId>) -> Vec<Option<ConnId>> {
    let mut places = Vec::new();
    for conn in conns {
        places.resize(places.len().max(conn.index() + 1), None);
        places[conn.index()] = Some(conn);
    }
    places
}

fn is_among(conn: ConnId, places: &[Option<ConnId>]) -> bool {
    places.get(conn.index()) == Some(&Some(conn))
}

fn contact_at(host: u32) -> Contact {
    let address = SocketAddr::new(IpAddr::V4(address(HostId(host))), PORT);
    Contact { address, is_seed: false, is_utp: false, punches: false, is_reached: false }
}

/// Which host has an address.
fn host_at(place: SocketAddr) -> Option<u32> {
    let IpAddr::V4(ip) = place.ip() else { return None };
    let host = (ip.to_bits() & 0x00ff_ffff).checked_sub(1)?;
    (address(HostId(host)) == ip).then_some(host)
}
