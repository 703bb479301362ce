//! Peers told by peers (BEP 11): who is connected, and where others can call it.

use super::state::{Inner, State};
use cede_bt::Transport;
use cede_bt::engine::{ConnId, ConnView};
use cede_bt::pex::Contact;
use cede_units::Duration as Span;
use std::net::SocketAddr;
use std::rc::Rc;

/// A peer is told of others once a minute (BEP 11), and clocks are not exact.
const MIN_BETWEEN: Span = Span::from_secs(55);

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
    pub(super) fn contacts(&self, state: &State) -> Vec<(ConnId, Contact)> {
        let pieces = self.info.piece_count();
        let contact = |view: ConnView<SocketAddr>| {
            let conn = Self::conn(state, view.id)?;
            let address = conn.borrow().contact(view.opened_by_us)?;
            let (is_seed, is_utp) =
                (view.upload_only || view.pieces == pieces, view.transport == Transport::Utp);
            let punches = conn.borrow().extension.ut_holepunch != 0;
            Some((view.id, Contact { address, is_seed, is_utp, punches, is_reached: view.opened_by_us }))
        };
        state.engine.connections().filter_map(contact).collect()
    }

    /// Tells a peer of the others, unless it has been told a moment ago.
    pub(super) fn tell_peers(&self, state: &mut State, id: ConnId, contacts: &[(ConnId, Contact)]) {
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
