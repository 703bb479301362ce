//! Connections from addresses that the machine no longer has: it has gone into another network. Nothing that they send leaves any more, and the
//! system says nothing of it for minutes, so they are given up, and whoever was called is called from the new address.

use super::shared::Shared;
use super::state::{Inner, State};
use cede_bt::engine::ConnId;
use std::cell::RefCell;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::rc::Rc;

/// What of a name tells the client and its version (BEP 20).
const CLIENT_OCTETS: usize = 8;

/// Addresses that connections go out from and that were missing at the last look (one that is missing twice is gone), and peers that were lost
/// with such a one.
#[derive(Default)]
pub(super) struct Away {
    missing: HashSet<IpAddr>,
    lost: HashSet<SocketAddr>,
}

/// Whether the machine has it no more. Interfaces do not list all that it has: the loopback has a whole network, routes may give it others.
fn is_missing(address: IpAddr) -> bool {
    // Of a link alone: it would have to be said which.
    let is_of_a_link = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    let bound = UdpSocket::bind((address, 0));
    !is_of_a_link && bound.is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
}

impl Away {
    /// Gives up what is left behind, and calls those that were lost once there is a way to them again.
    pub fn look(&mut self, inner: &Rc<Inner>) {
        let state = &mut inner.state.borrow_mut();
        let used: HashSet<IpAddr> =
            state.conns.iter().flatten().filter_map(|conn| conn.borrow().from).collect();
        let missing: HashSet<IpAddr> = used.into_iter().filter(|address| is_missing(*address)).collect();
        let gone: HashSet<IpAddr> = missing.intersection(&self.missing).copied().collect();
        self.missing = missing;
        self.lost.extend(inner.leave_behind(state, &gone));
        let origin = state.origin();
        let back: Vec<SocketAddr> =
            self.lost.extract_if(|peer| origin.source_towards(*peer).is_some()).collect();
        if !back.is_empty() {
            let now = inner.now();
            back.into_iter().for_each(|peer| state.engine.call_again(now, peer));
            inner.pump(state);
        }
    }
}

impl Inner {
    /// Connections from these addresses end without a word; where their peers take connections. These believe for minutes that they still have
    /// us, and would not take us for another if we had the same name.
    fn leave_behind(&self, state: &mut State, gone: &HashSet<IpAddr>) -> Vec<SocketAddr> {
        let is_ours = |id: ConnId| state.engine.connections().any(|conn| conn.id == id && conn.opened_by_us);
        let mut contacts = Vec::new();
        for conn in state.conns.iter().flatten() {
            let mut conn = conn.borrow_mut();
            if conn.from.is_some_and(|from| gone.contains(&from)) {
                conn.is_lost = true;
                contacts.extend(conn.contact(is_ours(conn.id)));
                conn.wake();
            }
        }
        // Those that are only being opened have told nobody of us.
        let stays = |conn: &Rc<RefCell<Shared>>| conn.borrow().from.is_some() && !conn.borrow().is_lost;
        let is_left_alone = !gone.is_empty() && !state.conns.iter().flatten().any(stays);
        if is_left_alone && let Ok(chance) = crate::chance() {
            let mut name = self.choices.peer_id;
            name[CLIENT_OCTETS..].copy_from_slice(&chance[CLIENT_OCTETS..]);
            state.engine.set_peer_id(name);
        }
        contacts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_machine_has_no_more_is_missing() {
        for (address, is) in
            [("127.0.0.1", false), ("127.9.8.7", false), ("192.0.2.9", true), ("fe80::1", false)]
        {
            assert_eq!(is_missing(address.parse().unwrap()), is, "{address}");
        }
    }
}
