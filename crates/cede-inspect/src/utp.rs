//! Connections of uTP between two sockets, side by side.
//!
//! Source: BEP 29. The side that opens a connection sends a SYN with the id that it wants to be called by, and from then on
//! the next higher id; the other side sends the former. A SYN takes a number, its answer takes none, a FIN does.
//!
//! Segmentation offload hands several packets over as one datagram: the header of the next one is found by its id, its
//! number and its time, which follow from those of the first. The last may belong to another connection of the two sockets.
//!
//! **What it leaves out.** Datagrams that look like uTP and belong to nothing are connections of one direction; they are
//! counted, and listed only where messages are found in them.
//!
//! **How it was validated.** Recorded captures of libutp and libtorrent, libtorrent's and our own transfers, packets by
//! hand (`tests/streams.rs`).

use crate::connection::Connection;
use crate::event::What;
use crate::order::Segment;
use crate::talk::Context;
use cede_meter::{Protocol, Side as Which, Socket};
use cede_wire::utp::{HEADER_BYTES, Kind, Packet};

/// Connections between two sockets that are kept at a time.
const CONNECTIONS_MAX: usize = 256;
/// Two packets of one datagram were made within this where their numbers follow each other,
const OFFLOAD_US_MAX: u32 = 1_000_000;
/// and within this where they do not, as many packets apart at most: a payload may look like a head by chance.
const REPAIR_US_MAX: u32 = 10_000;
const REPAIR_PACKETS_MAX: u16 = 4_096;

/// A connection, and the ids that both sides put into their packets.
#[derive(Debug)]
pub(crate) struct UtpConnection {
    ids: [Option<u16>; 2],
    /// The number of the SYN.
    syn: Option<u16>,
    pub connection: Connection,
}

impl UtpConnection {
    /// Whether packets of both sides were seen, with ids that belong together.
    pub(crate) fn is_paired(&self) -> bool {
        [0, 1].iter().all(|&side| self.ids[side].is_some() && self.connection.carried(side).packets > 0)
    }
}

/// The connections between two sockets.
#[derive(Debug, Default)]
pub(crate) struct UdpFlow {
    pub connections: Vec<UtpConnection>,
    /// Datagrams that are no uTP.
    pub others: u64,
    /// One side is a tracker.
    pub is_tracker: bool,
    /// Memory that the connections hold, about.
    pub bytes: usize,
}

/// A datagram on its way through.
#[derive(Clone, Copy)]
pub(crate) struct Datagram<'a> {
    pub ends: [Socket; 2],
    pub side: Which,
    pub captured: &'a [u8],
    /// Octets of the payload, and of the whole, on the wire.
    pub len: usize,
    pub wire_len: u32,
}

impl UdpFlow {
    /// Takes a datagram of the form of uTP in; answers with a connection that had to make room.
    pub(crate) fn take(
        &mut self,
        datagram: &Datagram<'_>,
        context: &mut Context<'_>,
    ) -> Option<UtpConnection> {
        let overhead = datagram.wire_len.saturating_sub(datagram.len as u32);
        let (mut captured, mut len, mut evicted) = (datagram.captured, datagram.len, None);
        loop {
            let Ok(packet) = Packet::decode(captured) else { return evicted };
            let part = self.joined_at(datagram.side, &packet, captured).unwrap_or(len);
            let front = &captured[..captured.len().min(part)];
            let Ok(packet) = Packet::decode(front) else { return evicted };
            let part_len = part.min(len);
            let wire = (packet, part_len - (front.len() - packet.payload.len()), part_len as u32 + overhead);
            evicted = self.packet(datagram.ends, datagram.side, wire, context).or(evicted);
            captured = captured.get(part..).unwrap_or_default();
            len -= part_len;
            if captured.is_empty() {
                return evicted;
            }
        }
    }

    fn packet(
        &mut self,
        ends: [Socket; 2],
        side: Which,
        (packet, len, wire_len): (Packet<'_>, usize, u32),
        context: &mut Context<'_>,
    ) -> Option<UtpConnection> {
        let found = self.find(side, &packet).or_else(|| self.find_overtaken(side, &packet, context.now_ns));
        let before = found.map_or(0, |at| self.connections[at].connection.bytes());
        // What refuses a connection that nobody knows opens none.
        if found.is_none() && packet.header.kind == Kind::Reset {
            return None;
        }
        let (index, evicted) =
            found.map_or_else(|| self.begin(ends, side, &packet, context.now_ns), |at| (at, None));
        let UtpConnection { connection, syn, .. } = &mut self.connections[index];
        connection.packet(side, wire_len, context.now_ns);
        begin_order(connection, side, &packet, syn.is_some());
        match packet.header.kind {
            // Its octets have been sent as one before.
            Kind::Data if packet.extensions.part().is_some() => {}
            Kind::Data | Kind::Fin => data(connection, side, (&packet, len), context),
            Kind::Reset => connection.end(side, What::Reset, context),
            Kind::State | Kind::Syn => {}
        }
        if packet.header.kind == Kind::Fin {
            connection.end(side, What::Finished, context);
        }
        acknowledge(connection, side, &packet, context);
        self.bytes = (self.bytes + connection.bytes()).saturating_sub(before);
        evicted
    }

    /// Where the next packet begins in a datagram that holds several. The last may be shorter than the others, such as a FIN or an
    /// acknowledgement. What is sent again stands among what is new, so numbers need not follow each other, and packets to one
    /// address may be those of several connections.
    fn joined_at(&self, side: Which, packet: &Packet<'_>, captured: &[u8]) -> Option<usize> {
        let header = &packet.header;
        let follows = |at: usize| {
            let later_us = time_us(captured, at)?.wrapping_sub(header.timestamp_us);
            if later_us.min(later_us.wrapping_neg()) >= OFFLOAD_US_MAX {
                return None;
            }
            let next = Packet::decode(&captured[at..]).ok()?.header;
            let further = next.seq.0.wrapping_sub(header.seq.0);
            let is_near = further.min(further.wrapping_neg()) < REPAIR_PACKETS_MAX;
            Some(if next.connection_id == header.connection_id {
                later_us < if further == 1 { OFFLOAD_US_MAX } else { REPAIR_US_MAX } && is_near
            } else {
                let is_theirs = |one: &UtpConnection| one.ids[side] == Some(next.connection_id);
                later_us.min(later_us.wrapping_neg()) < REPAIR_US_MAX
                    && self.connections.iter().any(is_theirs)
            })
        };
        let behind = captured.len() - packet.payload.len();
        let last = captured.len().checked_sub(HEADER_BYTES)?;
        // Whatever has no data ends with its head.
        let range = if header.kind == Kind::Data { behind + 1..=last } else { behind..=last.min(behind) };
        range.into_iter().find(|&at| follows(at) == Some(true))
    }

    /// The connection that a packet belongs to; the newest of several.
    fn find(&mut self, side: Which, packet: &Packet<'_>) -> Option<usize> {
        let id = packet.header.connection_id;
        if packet.header.kind == Kind::Syn {
            let is_same = |one: &UtpConnection| {
                one.syn == Some(packet.header.seq.0) && one.ids[side] == Some(id.wrapping_add(1))
            };
            return self.connections.iter().rposition(is_same);
        }
        if let Some(index) = self.connections.iter().rposition(|one| one.ids[side] == Some(id)) {
            return Some(index);
        }
        if packet.header.kind == Kind::Reset {
            // A reset repeats the id of what it refuses.
            return self.connections.iter().rposition(|one| one.ids[1 - side] == Some(id));
        }
        let is_other_half = |one: &UtpConnection| {
            one.ids[side].is_none()
                && one.ids[1 - side].is_some_and(|theirs| matches!(theirs.wrapping_sub(id), 1 | u16::MAX))
        };
        let index = self.connections.iter().rposition(is_other_half)?;
        self.connections[index].ids[side] = Some(id);
        Some(index)
    }

    /// The connection of a SYN which its other packets overtook on their way into the capture: from now on that is known.
    fn find_overtaken(&mut self, side: Which, packet: &Packet<'_>, now_ns: u64) -> Option<usize> {
        if packet.header.kind != Kind::Syn {
            return None;
        }
        let id = packet.header.connection_id;
        let wanted = [(side, id.wrapping_add(1)), (1 - side, id)];
        let is_it = |one: &UtpConnection| {
            let fits = |&(side, id): &(Which, u16)| one.ids[side].is_none_or(|theirs| theirs == id);
            one.syn.is_none() && wanted.iter().all(fits) && one.connection.is_young(now_ns)
        };
        let index = self.connections.iter().rposition(is_it)?;
        let one = &mut self.connections[index];
        one.syn = Some(packet.header.seq.0);
        wanted.iter().for_each(|&(side, id)| one.ids[side] = Some(id));
        one.connection.talk.opener.get_or_insert(side);
        Some(index)
    }

    /// A connection begins, or its middle was captured first.
    fn begin(
        &mut self,
        ends: [Socket; 2],
        side: Which,
        packet: &Packet<'_>,
        now_ns: u64,
    ) -> (usize, Option<UtpConnection>) {
        let id = packet.header.connection_id;
        let is_syn = packet.header.kind == Kind::Syn;
        let mut ids = [None; 2];
        ids[side] = Some(if is_syn { id.wrapping_add(1) } else { id });
        if is_syn {
            ids[1 - side] = Some(id);
        }
        let evicted = (self.connections.len() >= CONNECTIONS_MAX).then(|| self.connections.remove(0));
        let made_room = evicted.as_ref().map_or(0, |one| one.connection.bytes());
        self.bytes = self.bytes.saturating_sub(made_room);
        let connection = Connection::new(ends, Protocol::Utp, (is_syn.then_some(side), side), now_ns);
        self.connections.push(UtpConnection { ids, syn: is_syn.then_some(packet.header.seq.0), connection });
        (self.connections.len() - 1, evicted)
    }
}

/// Where a side's numbers begin.
fn begin_order(connection: &mut Connection, side: Which, packet: &Packet<'_>, has_syn: bool) {
    let order = connection.order(side);
    if order.has_begun() {
        return;
    }
    let seq = u32::from(packet.header.seq.0);
    match packet.header.kind {
        Kind::Syn => order.begin(order.unwrap(seq, 16) + 1),
        // The answer to a SYN bears the number of the first packet with data.
        Kind::State if has_syn => order.begin(order.unwrap(seq, 16)),
        _ => {}
    }
}

fn data(
    connection: &mut Connection,
    side: Which,
    (packet, len): (&Packet<'_>, usize),
    context: &mut Context<'_>,
) {
    let at = connection.order(side).unwrap(packet.header.seq.0.into(), 16);
    let segment =
        Segment { at, end: at + 1, octets: packet.payload, len: len as u32, time_ns: context.now_ns };
    connection.segment(side, &segment, context);
}

fn acknowledge(connection: &mut Connection, side: Which, packet: &Packet<'_>, context: &mut Context<'_>) {
    let order = connection.order(1 - side);
    if order.has_begun() && !matches!(packet.header.kind, Kind::Syn | Kind::Reset) {
        let to = order.unwrap(packet.header.ack.0.into(), 16) + 1;
        connection.acknowledge(side, to, context);
    }
}

/// The time in a header that would begin there.
fn time_us(captured: &[u8], at: usize) -> Option<u32> {
    captured.get(at + 4..)?.first_chunk().map(|time| u32::from_be_bytes(*time))
}
