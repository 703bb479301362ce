//! Connections of TCP between two sockets, one after the other.
//!
//! Source: RFC 9293, sections 3.4 and 3.10 (a SYN and a FIN take a number each).
//!
//! **What it leaves out.** Data of a SYN's first packet count from the octet behind the SYN (RFC 7413).
//!
//! **How it was validated.** Streams by hand (`tests/streams.rs`), Wireshark's counts of messages (`tests/tshark.rs`).

use crate::connection::Connection;
use crate::event::What;
use crate::order::Segment;
use crate::talk::Context;
use cede_meter::{Protocol, Side as Which, Socket, Tcp};

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
/// Captures put a SYN behind no more than so many octets of what follows it.
const LATE_OCTETS: u32 = 1 << 20;
/// Octets that are further behind are no repetition: no window is that large.
const BEHIND_MAX: i32 = 1 << 30;

/// The connection between two sockets.
#[derive(Debug, Default)]
pub(crate) struct TcpFlow {
    pub connection: Option<Connection>,
    /// The numbers of both SYNs.
    syn: [Option<u32>; 2],
    /// The lowest number that either side's octets were seen with, or acknowledged up to.
    low: [Option<u32>; 2],
    /// The numbers of both FINs, behind their segments' octets.
    end: [Option<u32>; 2],
}

impl TcpFlow {
    /// Takes a segment in; answers with a connection that is over because another one begins.
    pub(crate) fn take(
        &mut self,
        ends: [Socket; 2],
        side: Which,
        (tcp, wire_len): (&Tcp<'_>, u32),
        context: &mut Context<'_>,
    ) -> Option<Connection> {
        let before = self.make_way(ends, side, tcp, context.now_ns);
        let is_new = self.connection.is_none();
        let connection = self
            .connection
            .get_or_insert_with(|| Connection::new(ends, Protocol::Tcp, (None, side), context.now_ns));
        // A reset for a port where nobody listens is no connection.
        if is_new && tcp.flags & RST != 0 {
            self.connection = None;
            return before;
        }
        connection.packet(side, wire_len, context.now_ns);
        if tcp.flags & SYN != 0 {
            self.syn[side] = Some(tcp.seq);
        }
        if tcp.flags & FIN != 0 {
            self.end[side] = Some(tcp.seq.wrapping_add(tcp.payload_len));
        }
        note_lows(&mut self.low, side, tcp);
        follow(connection, side, tcp, context);
        before
    }

    /// A SYN with a number of its own begins another connection, and so do octets that cannot be of one that has ended.
    fn make_way(&mut self, ends: [Socket; 2], side: Which, tcp: &Tcp<'_>, now_ns: u64) -> Option<Connection> {
        if self.is_beyond_end(side, tcp) {
            return self.replace(Connection::new(ends, Protocol::Tcp, (None, side), now_ns));
        }
        if tcp.flags & (SYN | RST) != SYN || self.syn[side] == Some(tcp.seq) {
            return None;
        }
        let is_answer = tcp.flags & ACK != 0;
        // The answer to a SYN that was seen belongs to it.
        if is_answer && self.connection.is_some() && self.syn[side].is_none() && self.syn[1 - side].is_some()
        {
            return None;
        }
        let opener = if is_answer { 1 - side } else { side };
        if self.is_late(side, tcp.seq, now_ns) {
            let connection = self.connection.as_mut()?;
            connection.talk.opener.get_or_insert(opener);
            connection.talk.first_ns = connection.talk.first_ns.min(now_ns);
            return None;
        }
        self.replace(Connection::new(ends, Protocol::Tcp, (Some(opener), side), now_ns))
    }

    fn replace(&mut self, next: Connection) -> Option<Connection> {
        let before = self.connection.take();
        *self = Self { connection: Some(next), ..Self::default() };
        before
    }

    /// Whether octets are none of the stream that a FIN has ended: the SYN of another one was not captured.
    fn is_beyond_end(&self, side: Which, tcp: &Tcp<'_>) -> bool {
        let further = self.end[side].map(|end| tcp.seq.wrapping_sub(end).cast_signed());
        tcp.payload_len > 0
            && tcp.flags & (SYN | RST) == 0
            && further.is_some_and(|further| !(-BEHIND_MAX..=0).contains(&further))
    }

    /// Whether a SYN is that of the connection that is there, which its other packets overtook on their way into the capture.
    fn is_late(&self, side: Which, seq: u32, now_ns: u64) -> bool {
        let is_before = |low: u32| low.wrapping_sub(seq.wrapping_add(1)) < LATE_OCTETS;
        self.syn[side].is_none()
            && self.connection.as_ref().is_some_and(|one| one.is_young(now_ns))
            && self.low[side].is_some_and(is_before)
    }
}

/// Where the streams are seen to begin, as long as their SYNs are not.
fn note_lows(low: &mut [Option<u32>; 2], side: Which, tcp: &Tcp<'_>) {
    let mut note = |side: Which, number: u32| {
        let low = low[side].get_or_insert(number);
        if number.wrapping_sub(*low).cast_signed() < 0 {
            *low = number;
        }
    };
    if tcp.flags & (SYN | RST) == 0 {
        note(side, tcp.seq);
    }
    if tcp.flags & (ACK | RST) == ACK {
        note(1 - side, tcp.ack);
    }
}

/// What a segment says: octets, an acknowledgement, an end.
fn follow(connection: &mut Connection, side: Which, tcp: &Tcp<'_>, context: &mut Context<'_>) {
    let order = connection.order(side);
    if tcp.flags & SYN != 0 && !order.has_begun() {
        order.begin(order.unwrap(tcp.seq.wrapping_add(1), 32));
    }
    if tcp.payload_len > 0 && tcp.flags & RST == 0 {
        data(connection, side, tcp, context);
    }
    acknowledge(connection, side, tcp, context);
    if tcp.flags & RST != 0 {
        connection.end(side, What::Reset, context);
    } else if tcp.flags & FIN != 0 {
        connection.end(side, What::Finished, context);
    }
}

fn data(connection: &mut Connection, side: Which, tcp: &Tcp<'_>, context: &mut Context<'_>) {
    let first = tcp.seq.wrapping_add(u32::from(tcp.flags & SYN != 0));
    let at = connection.order(side).unwrap(first, 32);
    let segment = Segment {
        at,
        end: at + u64::from(tcp.payload_len),
        octets: tcp.payload,
        len: tcp.payload_len,
        time_ns: context.now_ns,
    };
    connection.segment(side, &segment, context);
}

fn acknowledge(connection: &mut Connection, side: Which, tcp: &Tcp<'_>, context: &mut Context<'_>) {
    let order = connection.order(1 - side);
    if tcp.flags & ACK != 0 && order.has_begun() {
        let to = order.unwrap(tcp.ack, 32);
        connection.acknowledge(side, to, context);
    }
}
