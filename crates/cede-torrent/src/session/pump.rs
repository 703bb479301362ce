//! Between the engine and everything else: what it wants done, and what it has to send.

use super::error::SessionError;
use super::shared::Shared;
use super::state::{Inner, State, Wish};
use super::{dial, extend, punch};
use crate::disk::{Part, Report};
use crate::storage::StorageError;
use cede_bt::engine::{Action, Chunk, ConnId};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

impl Inner {
    /// Takes out of the engine whatever there is: actions, then octets, until there is nothing.
    pub fn pump(self: &Rc<Self>, state: &mut State) {
        loop {
            while let Some(action) = state.engine.poll_action() {
                self.act(state, action);
            }
            let Some((id, chunk)) = state.engine.poll_transmit(self.now()) else { break };
            Self::fill(state, id, chunk);
        }
        let next = state.engine.poll_timeout();
        if next.is_some_and(|next| state.armed.is_none_or(|armed| next < armed)) {
            self.alarm.notify_one();
        }
    }

    /// Hands what has arrived to the disk. Connections do so once for several reads: to wake the thread costs more than to
    /// write.
    pub fn store(state: &mut State) {
        if !state.stores.is_empty() {
            state.disk.store(std::mem::take(&mut state.stores));
        }
    }

    /// Hands octets to a connection. Content is read when it is about to leave.
    fn fill(state: &mut State, id: ConnId, chunk: Chunk) {
        let Some(conn) = Self::conn(state, id) else { return };
        let mut conn = conn.borrow_mut();
        match chunk {
            Chunk::Octets(payload) => match payload.as_slice() {
                Some(octets) => conn.out.push(octets, &mut state.spare),
                None => conn.out.push(&payload.to_vec(), &mut state.spare),
            },
            Chunk::Content { offset, len } => conn.out.leave_room(offset, len as usize, &mut state.spare),
        }
        conn.wake();
    }

    /// Everything ends: a file cannot be read or written.
    pub fn fail(&self, state: &mut State, error: StorageError) {
        state.error.get_or_insert(SessionError::Storage(error));
        self.alarm.notify_one();
    }

    fn act(self: &Rc<Self>, state: &mut State, action: Action<SocketAddr>) {
        match action {
            Action::Store { block, at, payload, .. } => state.stores.push(Part { block, at, payload }),
            Action::Check { piece } => {
                Self::store(state);
                state.disk.check(piece);
            }
            // Those who were let go at the end are called by nobody.
            Action::Connect { .. } if state.left.is_some() => {}
            Action::Connect { conn, address, transport } => dial::dial(self, state, conn, address, transport),
            Action::Close { conn, .. } => Self::close(state, conn),
            Action::Announce { event, want } => {
                let _ = state.wishes.send(Wish { event, want });
            }
            Action::Introduced { conn, extension } => extend::introduce(self, state, conn, extension),
            Action::Extended { conn, id, payload } => extend::receive(self, state, conn, id, &payload),
            Action::HashRequest { conn, range } => extend::tell_hashes(self, state, conn, &range),
            Action::Unreached { address } => punch::unreached(self, state, address),
            Action::Banned { address } => state.ban(address),
            Action::Complete => {
                state.is_complete = true;
                Self::store(state);
                state.disk.sync();
            }
            Action::DhtPort { conn, port } => Self::hear_of_node(state, conn, port),
            Action::Ready { .. } | Action::Unchoked { .. } | Action::MayRead { .. } => {}
        }
    }

    /// A peer has a node of the distributed hash table at its host.
    fn hear_of_node(state: &State, conn: ConnId, port: u16) {
        if let (Some(hear), Some(conn)) = (&state.hears_of_nodes, Self::conn(state, conn)) {
            let mut address = conn.borrow().address;
            address.set_port(port);
            hear(address);
        }
    }

    /// The engine knows the connection no more: it ends once everything has left.
    fn close(state: &mut State, id: ConnId) {
        state.puncher.leave(id);
        let place = state.conns.get_mut(id.index());
        let conn = place.and_then(|place| place.take_if(|conn| conn.borrow().id == id));
        if let Some(conn) = conn {
            let mut conn = conn.borrow_mut();
            conn.is_closing = true;
            if let Some(dial) = conn.dial.take() {
                dial.abort();
            }
            conn.wake();
        }
    }

    /// The session is over, and the process may go on: its connections would live for as long as their peers like, be given what they ask
    /// for, and hold the files open. What is on its way to them still leaves.
    pub fn close_all(self: &Rc<Self>, state: &mut State) {
        let ids: Vec<ConnId> = state.conns.iter().flatten().map(|conn| conn.borrow().id).collect();
        for id in ids {
            state.engine.closed(self.now(), id);
            Self::close(state, id);
        }
        self.pump(state);
    }

    /// Puts a connection into the table.
    pub fn enter(state: &mut State, shared: Shared) -> Rc<RefCell<Shared>> {
        let index = shared.id.index();
        if state.conns.len() <= index {
            state.conns.resize_with(index + 1, || None);
        }
        let shared = Rc::new(RefCell::new(shared));
        state.conns[index] = Some(shared.clone());
        shared
    }

    /// The disk has said something.
    pub fn on_report(self: &Rc<Self>, report: Option<Report>) {
        let mut state = self.state.borrow_mut();
        match report {
            Some(Report::Checked { piece, good }) => {
                let now = self.now();
                state.engine.checked(now, piece, good);
            }
            Some(Report::Eased) => state.waiting.drain(..).for_each(std::task::Waker::wake),
            Some(Report::Synced) => {
                state.is_synced = true;
                self.arrived.notify_one();
            }
            Some(Report::Failed(error)) => self.fail(&mut state, error),
            None => {}
        }
        self.pump(&mut state);
    }

    /// Something is due.
    pub fn on_deadline(self: &Rc<Self>) {
        let mut state = self.state.borrow_mut();
        let now = self.now();
        state.engine.handle_timeout(now);
        self.pump(&mut state);
    }

    /// Whoever takes our calls and is good for nothing makes room for others.
    pub fn turn_over(self: &Rc<Self>) {
        let mut state = self.state.borrow_mut();
        let now = self.now();
        state.engine.make_room_for_calls(now);
        self.pump(&mut state);
    }
}
