//! Messages of extensions: metadata for those who have a magnet link, and hashes; peers told by peers are in `pex`, holes in `punch`.

use super::punch;
use super::state::{Inner, State};
use crate::origin::canonical;
use cede_bt::engine::ConnId;
use cede_bt::extension::{Extension, UT_HOLEPUNCH, UT_METADATA, UT_PEX};
use cede_bt::metadata;
use cede_bt::pex;
use cede_bt::wire::{self, HashRange};
use std::net::SocketAddr;
use std::rc::Rc;

/// Parts of the info dictionary, and hashes, for one peer: all of them a few times.
const TIMES: u64 = 4;

/// A message of an extension has come.
pub(super) fn receive(inner: &Rc<Inner>, state: &mut State, id: ConnId, extension: u8, payload: &[u8]) {
    match extension {
        UT_METADATA => answer(inner, state, id, payload),
        UT_PEX if inner.exchanges_peers() => {
            let heard = pex::parse(payload).unwrap_or_default();
            punch::learn(inner, state, id, &heard);
            let peers: Vec<SocketAddr> = heard.iter().map(|heard| canonical(heard.address)).collect();
            state.engine.hear_of_peers(inner.now(), id, &peers);
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
