//! Messages of extensions: metadata for those who have a magnet link, and peers told by peers; holes are in `punch`.

use super::conn::Shared;
use super::{Inner, State, canonical, punch};
use cede_bt::engine::ConnId;
use cede_bt::extension::{Extension, UT_HOLEPUNCH, UT_METADATA, UT_PEX};
use cede_bt::pex::{self, Contact};
use cede_bt::wire::{self, HashRange};
use cede_bt::{Transport, metadata};
use cede_units::Duration as Span;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// Parts of the info dictionary, and hashes, for one peer: all of them a few times.
const TIMES: u64 = 4;
/// A peer is told of others once a minute (BEP 11), and clocks are not exact.
const MIN_BETWEEN: Span = Span::from_secs(55);

/// A message of an extension has come.
pub(super) fn receive(inner: &Rc<Inner>, state: &mut State, id: ConnId, extension: u8, payload: &[u8]) {
    match extension {
        UT_METADATA => answer(inner, state, id, payload),
        UT_PEX if inner.exchanges_peers() => {
            let heard = pex::parse(payload).unwrap_or_default();
            punch::learn(inner, state, id, &heard);
            let peers: Vec<SocketAddr> = heard.iter().map(|heard| canonical(heard.address)).collect();
            state.engine.add_peers(inner.now(), &peers);
        }
        UT_HOLEPUNCH => punch::receive(inner, state, id, payload),
        _ => {}
    }
}

/// A peer has introduced itself.
pub(super) fn introduce(inner: &Inner, state: &mut State, id: ConnId, extension: Extension) {
    let Some(conn) = Inner::conn(state, id) else { return };
    conn.borrow_mut().extension = extension;
    // A newcomer does not wait for the minute to be over.
    if inner.exchanges_peers() {
        inner.tell_peers(state, id, &inner.contacts(state));
    }
    if std::mem::replace(&mut conn.borrow_mut().was_introduced, true) {
        return;
    }
    // Over uTP, Transmission 3.00 looks at what came in one read with our handshake only once something more has come: without
    // that it knows of no metadata, and has nothing to be unchoked for.
    state.engine.send(inner.now(), id, &wire::Message::KeepAlive);
}

/// Somebody asks for a part of the info dictionary.
fn answer(inner: &Inner, state: &mut State, id: ConnId, payload: &[u8]) {
    let Some(metadata::Message::Request(part)) = metadata::Message::parse(payload) else { return };
    let Some(conn) = Inner::conn(state, id) else { return };
    let mut conn = conn.borrow_mut();
    let name = conn.extension.ut_metadata;
    let parts = (inner.info.raw.len() as u64).div_ceil(metadata::PART_BYTES.into());
    let reply = if conn.metadata_sent < parts * TIMES {
        conn.metadata_sent += 1;
        state.engine.note_service(inner.now(), id);
        metadata::Message::answer(part, &inner.info.raw)
    } else {
        metadata::Message::Reject(part)
    };
    drop(conn);
    if name != 0 {
        state.engine.send_extended(inner.now(), id, name, &reply.encode());
    }
}

/// Somebody asks for hashes of a v2 torrent.
pub(super) fn tell_hashes(inner: &Inner, state: &mut State, id: ConnId, range: &HashRange) {
    let Some(conn) = Inner::conn(state, id) else { return };
    conn.borrow_mut().hashes_asked += 1;
    let is_due = conn.borrow().hashes_asked <= (state.hashes.requests() + 1) * TIMES;
    let answer = if is_due {
        state.engine.note_service(inner.now(), id);
        state.hashes.answer(&inner.info, range)
    } else {
        wire::Message::HashReject(*range)
    };
    state.engine.send(inner.now(), id, &answer);
}

/// Where a peer takes connections, as far as that is known and others can call it there.
pub(super) fn contact_of(shared: &Shared, opened_by_us: bool) -> Option<SocketAddr> {
    if matches!(shared.address.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local()) {
        return None;
    }
    if opened_by_us {
        return Some(shared.address);
    }
    shared.extension.port.map(|port| SocketAddr::new(shared.address.ip(), port))
}

impl Inner {
    pub(super) fn exchanges_peers(&self) -> bool {
        self.choices.hearsay(&self.info).exchanges
    }

    /// Tells each peer who has come and gone.
    pub fn exchange_peers(self: &Rc<Self>) {
        if !self.exchanges_peers() {
            return;
        }
        let mut state = self.state.borrow_mut();
        let contacts = self.contacts(&state);
        let ids: Vec<ConnId> = state.conns.iter().flatten().map(|conn| conn.borrow().id).collect();
        ids.into_iter().for_each(|id| self.tell_peers(&mut state, id, &contacts));
        self.pump(&mut state);
    }

    /// Peers that are connected, and where they are reached.
    fn contacts(&self, state: &State) -> Vec<(ConnId, Contact)> {
        let pieces = self.info.piece_count();
        let contact = |view: cede_bt::engine::ConnView<SocketAddr>| {
            let conn = Self::conn(state, view.id)?;
            let address = contact_of(&conn.borrow(), view.opened_by_us)?;
            let (is_seed, is_utp) = (view.pieces == pieces, view.transport == Transport::Utp);
            let punches = conn.borrow().extension.ut_holepunch != 0;
            Some((view.id, Contact { address, is_seed, is_utp, punches, is_reached: view.opened_by_us }))
        };
        state.engine.connections().filter_map(contact).collect()
    }

    /// Tells a peer of the others, unless it has been told a moment ago.
    fn tell_peers(&self, state: &mut State, id: ConnId, contacts: &[(ConnId, Contact)]) {
        let (Some(conn), now) = (Self::conn(state, id), self.now()) else { return };
        let mut conn = conn.borrow_mut();
        let name = conn.extension.ut_pex;
        let is_due = conn.told_at.is_none_or(|at| now.since(at) >= MIN_BETWEEN);
        if name == 0 || !is_due {
            return;
        }
        let others: Vec<Contact> =
            contacts.iter().filter(|(other, _)| *other != id).map(|(_, contact)| *contact).collect();
        let Some(message) = conn.told.update(&others) else { return };
        conn.told_at = Some(now);
        drop(conn);
        state.engine.send_extended(now, id, name, &message);
    }
}
