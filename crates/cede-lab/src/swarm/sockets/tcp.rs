//! The TCP connections of a peer.

use super::flow::Flow;
use super::{Newcomer, News, PORT, Place, Sockets, build, note_rtt};
use crate::host::wrap;
use crate::swarm::near::{bring, bring_item};
use cede_bt::Transport;
use cede_bt::engine::ConnId;
use cede_net::{Address, Datagram, Foresight, HostId, Protocol};
use cede_tcp::Ports;
use cede_units::Instant;

/// The first port of connections that a peer opens.
pub(super) const FIRST_EPHEMERAL: u16 = 10_000;

/// A TCP connection with what is known beside it. It stands in the table itself: at each packet one place of memory is
/// looked at instead of two.
#[repr(C, align(64))]
pub(super) struct TcpSlot {
    pub(super) flow: Flow,
    pub(super) conn: Option<ConnId>,
    pub(super) peer: Address,
    dirty: bool,
    /// Octets that may be read.
    readable: u32,
    pub(super) connection: cede_tcp::Connection,
}

impl Sockets {
    pub(super) fn connect_tcp(&mut self, to: HostId, conn: ConnId) -> u32 {
        let ports = Ports { local: self.next_port, remote: PORT };
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
        let config = self.stack.tcp.clone();
        let controller = build(&self.stack.tcp_controller, &config.path(), &mut self.random);
        let connection = cede_tcp::Connection::connect(config, controller, ports, &mut self.random);
        self.insert_tcp(connection, Address::new(to, PORT), Some(conn))
    }

    /// Brings what a segment concerns near.
    pub(in crate::swarm) fn foresee(&self, packet: &Datagram, foresight: Foresight) {
        match foresight {
            Foresight::Sent if packet.protocol == Protocol::Tcp => {
                self.demux.bring(packet.source, packet.destination.port);
            }
            Foresight::Sent => {}
            Foresight::Near | Foresight::Next | Foresight::Arrived => {
                if let Some(index) = self.find(packet) {
                    self.bring_slot(index);
                }
            }
        }
    }

    /// The TCP connection that a packet is for, where there is one.
    pub(in crate::swarm) fn find(&self, packet: &Datagram) -> Option<u32> {
        let is_tcp = packet.protocol == Protocol::Tcp;
        is_tcp.then(|| self.demux.find(packet.source, packet.destination.port)).flatten()
    }

    /// Brings the beginning of a connection near.
    fn bring_slot(&self, index: u32) {
        bring_item(&self.tcp, index as usize);
        self.deadlines.bring(index as usize);
    }

    /// Brings the connection near by which the engine sends next, by the connection's index.
    pub(in crate::swarm) fn bring_sender(&self, conn: usize) {
        if let Some(&Some(Place::Tcp(index))) = self.places.get(conn) {
            self.bring_slot(index);
        }
    }

    /// Brings all of a connection near whose beginning is, and says which it is to the engine.
    pub(in crate::swarm) fn bring_receiver(&self, index: u32) -> Option<ConnId> {
        let slot = self.tcp.get(index as usize)?.as_ref()?;
        bring(&slot.flow, size_of::<TcpSlot>());
        slot.conn
    }

    fn insert_tcp(&mut self, connection: cede_tcp::Connection, peer: Address, conn: Option<ConnId>) -> u32 {
        let index = self.free.pop().unwrap_or(self.tcp.len() as u32);
        if index as usize == self.tcp.len() {
            self.tcp.push(None);
        }
        self.demux.insert(peer, connection.ports().local, index);
        self.tcp[index as usize] =
            Some(TcpSlot { connection, peer, conn, flow: Flow::default(), dirty: false, readable: u32::MAX });
        self.soil(index);
        index
    }

    fn remove_tcp(&mut self, index: u32) {
        let Some(slot) = self.tcp[index as usize].take() else { return };
        self.demux.remove(slot.peer, slot.connection.ports().local);
        self.deadlines.set(index as usize, Instant::NEVER);
        self.free.push(index);
        self.news.extend(slot.conn.map(News::Closed));
    }

    /// Work is to be done at a connection.
    pub(super) fn soil(&mut self, index: u32) {
        if let Some(slot) = &mut self.tcp[index as usize]
            && !core::mem::replace(&mut slot.dirty, true)
        {
            self.dirty.push(index);
        }
    }

    /// Takes a segment in, for the connection that [`Self::find`] has found.
    pub(super) fn handle_tcp(
        &mut self,
        now: Instant,
        datagram: Datagram,
        (known, accepts): (Option<u32>, bool),
    ) -> Option<Datagram> {
        let (segment, _) = cede_wire::tcp::Segment::decode(&datagram.head).ok()?;
        let source = datagram.source;
        if let Some(index) = known {
            if let Some(slot) = &mut self.tcp[index as usize] {
                slot.connection.handle_with_ecn(now, &segment, datagram.payload, datagram.ecn);
            }
            self.soil(index);
            return None;
        }
        if accepts && datagram.destination.port == PORT {
            let config = self.stack.tcp.clone();
            let controller = build(&self.stack.tcp_controller, &config.path(), &mut self.random);
            if let Ok(connection) =
                cede_tcp::Connection::accept(now, config, controller, &segment, &mut self.random)
            {
                self.insert_tcp(connection, source, None);
                return None;
            }
        }
        let refusal = cede_tcp::Connection::refuse(&segment, datagram.payload.len())?;
        Some(wrap(datagram.destination, source, Protocol::Tcp, refusal))
    }

    pub(super) fn work_tcp(&mut self, now: Instant, index: u32, sends: &mut Vec<Datagram>) {
        self.hear_tcp(index);
        let Some(slot) = &mut self.tcp[index as usize] else { return };
        let (first, was_at_rest) = (sends.len(), slot.connection.is_at_rest());
        while let Some(transmit) = slot.connection.poll_transmit(now) {
            let me = Address::new(self.me, slot.connection.ports().local);
            sends.push(wrap(me, slot.peer, Protocol::Tcp, transmit));
        }
        if self.offload_bytes > 0 {
            crate::swarm::offload::merge(sends, first, self.offload_bytes);
        }
        if self.rtts.is_some() && sends[first..].iter().any(|datagram| !datagram.payload.is_empty()) {
            note_rtt(&mut self.rtts, || slot.connection.smoothed_rtt());
        }
        // What has neither sent nor been acknowledged takes as much as before.
        if !was_at_rest && slot.conn.is_some() {
            self.stirred.push(Place::Tcp(index));
        }
        let deadline = slot.connection.poll_timeout().unwrap_or(Instant::NEVER);
        self.deadlines.set(index as usize, deadline);
        if slot.connection.is_closed() {
            self.remove_tcp(index);
        }
    }

    /// So many octets of a connection may be read.
    pub(in crate::swarm) fn read_at_most(&mut self, conn: ConnId, octets: u32) {
        let Some(Place::Tcp(index)) = self.place(conn) else { return };
        if let Some(slot) = &mut self.tcp[index as usize] {
            slot.readable = octets;
        }
        self.soil(index);
    }

    /// Takes in what a connection has to tell and what it has received.
    fn hear_tcp(&mut self, index: u32) {
        use cede_tcp::Event;
        let Some(slot) = &mut self.tcp[index as usize] else { return };
        slot.dirty = false;
        while let Some(event) = slot.connection.poll_event() {
            match (event, slot.conn) {
                (Event::Connected, Some(conn)) => self.news.push_back(News::Connected(conn)),
                (Event::Connected, None) => {
                    let newcomer = Newcomer(Place::Tcp(index));
                    self.news.push_back(News::Arrived(newcomer, slot.peer.host, Transport::Tcp));
                }
                (Event::Failed(_) | Event::PeerFinished | Event::Closed, conn) => {
                    slot.connection.close();
                    self.news.extend(conn.map(News::Closed));
                }
                (Event::Readable | Event::Writable, _) => {}
            }
        }
        let Some(conn) = slot.conn else { return };
        while slot.readable > 0 {
            let Some(payload) = slot.connection.read_up_to(slot.readable) else { break };
            if slot.readable < u32::MAX {
                slot.readable -= payload.len();
            }
            self.news.push_back(News::Received(conn, payload));
        }
    }
}
