//! Holes: peers that could not be reached are asked for at those who told of them, and peers that ask for each other are introduced.

use super::state::{Inner, State};
use crate::origin::canonical;
use cede_bt::Transport;
use cede_bt::engine::{ConnId, ConnView};
use cede_bt::holepunch::{Message, Reason, is_peer};
use cede_bt::pex::Heard;
use std::net::SocketAddr;
use std::rc::Rc;

/// A peer has told of others: those that let themselves be introduced can be asked for at it, if it introduces.
pub(super) fn learn(inner: &Inner, state: &mut State, id: ConnId, heard: &[Heard]) {
    let Some(host) = Inner::conn(state, id).map(|conn| conn.borrow().address.ip()) else { return };
    if name_of(state, id) != 0 && inner.punches() {
        for heard in heard.iter().filter(|heard| heard.punches) {
            state.puncher.learn(inner.now(), (id, host), canonical(heard.address));
        }
    }
}

/// A peer could not be reached: whoever told of it is asked.
pub(super) fn unreached(inner: &Inner, state: &mut State, address: SocketAddr) {
    if inner.punches()
        && let Some(relay) = state.puncher.unreached(inner.now(), address)
    {
        say(inner, state, relay, Message::Rendezvous(address));
    }
}

/// A message has come.
pub(super) fn receive(inner: &Rc<Inner>, state: &mut State, id: ConnId, payload: &[u8]) {
    let Some(host) = Inner::conn(state, id).map(|conn| conn.borrow().address.ip()) else { return };
    let (message, now) = (Message::parse(payload), inner.now());
    // Who does not say that it takes such messages sends none.
    if name_of(state, id) == 0 || !inner.punches() {
        return;
    }
    match message {
        Some(Message::Rendezvous(wanted)) => introduce(inner, state, id, wanted),
        Some(Message::Connect(peer)) => {
            let is_called = !state.is_banned(peer) && state.puncher.introduced(now, (id, host), peer);
            if is_called {
                state.engine.punch(now, peer);
            }
        }
        Some(Message::Error(peer, _)) => {
            if let Some(next) = state.puncher.refused(now, id, peer) {
                say(inner, state, next, Message::Rendezvous(peer));
            }
        }
        None => {}
    }
}

/// Two peers that we are connected to hear of each other, because one of them asks for the other.
fn introduce(inner: &Inner, state: &mut State, asker: ConnId, wanted: SocketAddr) {
    let now = inner.now();
    if !state.puncher.may_ask(now, asker) {
        return;
    }
    let found = find(state, wanted).zip(find_asker(state, asker));
    let Some(((other, there), here)) = found else {
        let reason = if is_peer(wanted) { Reason::NotConnected } else { Reason::NoSuchPeer };
        return say(inner, state, asker, Message::Error(wanted, reason));
    };
    if other == asker {
        say(inner, state, asker, Message::Error(wanted, Reason::NoSelf));
    } else if name_of(state, other) == 0 {
        say(inner, state, asker, Message::Error(wanted, Reason::NoSupport));
    } else if state.puncher.may_introduce(now, other) {
        say(inner, state, asker, Message::Connect(there));
        say(inner, state, other, Message::Connect(here));
    }
}

/// The connection to a peer that others know by this address, and where it is called over uTP. What its connection comes from goes
/// before what it says of itself.
fn find(state: &State, wanted: SocketAddr) -> Option<(ConnId, SocketAddr)> {
    let places = || state.engine.connections().filter_map(|view| Some((view.id, place_of(state, &view)?)));
    let by_connection = state.engine.connections().find(|view| view.address == wanted).map(|view| view.id);
    let by_word = || places().find(|(_, (_, word))| *word == Some(wanted)).map(|(id, _)| id);
    let id = by_connection.or_else(by_word)?;
    places().find(|(other, _)| *other == id).map(|(id, (place, _))| (id, place))
}

fn find_asker(state: &State, asker: ConnId) -> Option<SocketAddr> {
    let view = state.engine.connections().find(|view| view.id == asker)?;
    place_of(state, &view).map(|(place, _)| place)
}

/// Where a peer is called over uTP, and where others are told that it is. A stream of uTP comes from the port that its peer is called
/// at, as its router shows it; one of TCP does not.
fn place_of(state: &State, view: &ConnView<SocketAddr>) -> Option<(SocketAddr, Option<SocketAddr>)> {
    let conn = Inner::conn(state, view.id)?;
    let conn = conn.borrow();
    let word = conn.contact(view.opened_by_us);
    let is_direct = view.opened_by_us || view.transport == Transport::Utp;
    Some((if is_direct { conn.address } else { word? }, word))
}

/// Under which id a peer takes such messages; 0 for none.
fn name_of(state: &State, id: ConnId) -> u8 {
    Inner::conn(state, id).map_or(0, |conn| conn.borrow().extension.ut_holepunch)
}

fn say(inner: &Inner, state: &mut State, id: ConnId, message: Message) {
    let name = name_of(state, id);
    if name != 0 {
        state.engine.send_extended(inner.now(), id, name, &message.encode());
    }
}

impl Inner {
    fn punches(&self) -> bool {
        self.choices.hearsay(&self.info).punches
    }
}
