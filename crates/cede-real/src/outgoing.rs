//! Packets on their way out: those that can leave with one call are put together.
//!
//! One call carries packets for one peer that all have the same size, of which the last may be shorter (Linux
//! `UDP_SEGMENT`). An endpoint is drained connection by connection, so they come in that order by themselves.

use crate::way::Way;
use cede_units::Instant;
use cede_utp::Endpoint;
use cede_wire::Transmit;
use cede_wire::utp::{HEADER_BYTES, Kind, Packet};
use std::io::{self, IoSlice};

/// Octets that one call can carry: the largest payload of UDP over IPv4 (RFC 768, RFC 791).
const BATCH_BYTES: usize = 65_507;

/// Packets that one call can carry (Linux `UDP_MAX_SEGMENTS`, 64 until Linux 6.9).
const MAX_PACKETS: usize = 64;

/// What packets leave through: a UDP socket, or what stands in for one.
pub(crate) trait Wire {
    /// How many datagrams one call can send.
    fn max_segments(&self) -> usize;

    /// Sends datagrams of `segment` octets each, the last perhaps shorter.
    fn send(&self, way: Way, contents: &[u8], segment: usize) -> io::Result<()>;

    /// As [`Wire::send`], from parts; any error but `WouldBlock` where that cannot be had.
    fn send_gathered(&self, way: Way, parts: &[IoSlice<'_>], segment: Option<u16>) -> io::Result<()>;

    /// Whether the network may cut what is sent from now on; an error where there is no such choice.
    fn let_fragment(&self, may: bool) -> io::Result<()>;
}

/// What became of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sending {
    /// There was nothing to send.
    Nothing,
    /// It left, or was refused for good; there may be more.
    Done,
    /// The system takes nothing now.
    Blocked,
}

/// Counters of what left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sent {
    pub datagrams: u64,
    pub calls: u64,
    pub errors: u64,
}

/// The batch in the making.
#[derive(Default)]
pub(crate) struct Outgoing {
    packets: Vec<Transmit>,
    bytes: usize,
    way: Option<Way>,
    segment: usize,
    /// The batch is to take no more.
    sealed: bool,
    /// The first packet that did not fit the batch.
    next: Option<(Way, Transmit)>,
    /// The batch as one, where the system cannot gather it.
    octets: Vec<u8>,
    pub sent: Sent,
}

impl Outgoing {
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.next.is_none()
    }

    /// Sends one batch of what the endpoint wants sent.
    pub fn send_batch(&mut self, now: Instant, endpoint: &mut Endpoint<Way>, udp: &impl Wire) -> Sending {
        self.gather(now, endpoint, udp.max_segments());
        let Some(way) = self.way else { return Sending::Nothing };
        // Such a packet leaves alone.
        let may_fragment = self.packets.first().is_some_and(|packet| packet.may_fragment);
        let is_cut = may_fragment && udp.let_fragment(true).is_ok();
        let result = self.send_gathered(udp, way).or_else(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Err(error),
            // Whatever was wrong with it, the other way finds out whether it can be had at all.
            _ => self.send_copied(udp, way),
        });
        let result = result.or_else(|error| match error.kind() {
            // Somebody may have complained of an earlier datagram, perhaps to another peer: Linux tells that once.
            kind if means_unreachable(kind) => self.send_copied(udp, way),
            _ => Err(error),
        });
        if is_cut {
            // What could be changed can be changed back.
            let _ = udp.let_fragment(false);
        }
        match result {
            Ok(()) => {
                self.sent.calls += 1;
                self.sent.datagrams += self.packets.len() as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Sending::Blocked,
            Err(error) if self.packets.len() == 1 => {
                self.sent.errors += 1;
                refused(now, endpoint, way, &self.octets, &error);
            }
            Err(_) => self.send_one_by_one(now, endpoint, udp, way),
        }
        self.clear();
        Sending::Done
    }

    /// Sends the batch from where its parts lie.
    fn send_gathered(&self, udp: &impl Wire, way: Way) -> io::Result<()> {
        let mut parts = [IoSlice::new(&[]); 2 * MAX_PACKETS];
        let mut filled = 0;
        for packet in &self.packets {
            let payload = packet.payload.as_slice().ok_or(io::ErrorKind::Unsupported)?;
            for part in [&packet.head, payload] {
                parts[filled] = IoSlice::new(part);
                filled += usize::from(!part.is_empty());
            }
        }
        let segment = (self.packets.len() > 1).then_some(self.segment as u16);
        udp.send_gathered(way, &parts[..filled], segment)
    }

    /// Sends the batch from a copy.
    fn send_copied(&mut self, udp: &impl Wire, way: Way) -> io::Result<()> {
        self.octets.clear();
        for packet in &self.packets {
            self.octets.extend_from_slice(&packet.head);
            match packet.payload.as_slice() {
                Some(payload) => self.octets.extend_from_slice(payload),
                None => self.octets.extend(packet.payload.to_vec()),
            }
        }
        udp.send(way, &self.octets, self.segment)
    }

    /// Takes packets for as long as they fit together.
    fn gather(&mut self, now: Instant, endpoint: &mut Endpoint<Way>, max_segments: usize) {
        while !self.sealed {
            let Some((way, packet)) = self.next.take().or_else(|| endpoint.poll_transmit(now)) else {
                return;
            };
            if self.fits(way, &packet, max_segments.min(MAX_PACKETS)) {
                self.append(way, packet);
            } else {
                self.next = Some((way, packet));
                self.sealed = true;
            }
        }
    }

    fn fits(&self, way: Way, packet: &Transmit, max_segments: usize) -> bool {
        let bytes = packet.len();
        match self.way {
            None => true,
            Some(other) => {
                !packet.may_fragment
                    && way == other
                    && way.from == other.from
                    && bytes <= self.segment
                    && self.bytes + bytes <= BATCH_BYTES
                    && self.packets.len() < max_segments
            }
        }
    }

    fn append(&mut self, way: Way, packet: Transmit) {
        let bytes = packet.len();
        if self.way.is_none() {
            (self.way, self.segment) = (Some(way), bytes.max(1));
        }
        self.sealed = bytes < self.segment || packet.may_fragment;
        self.bytes += bytes;
        self.packets.push(packet);
    }

    /// The batch was refused as one: which of it is at fault shows when each packet is sent alone. One that would block
    /// now is lost, as any datagram may be.
    fn send_one_by_one(&mut self, now: Instant, endpoint: &mut Endpoint<Way>, udp: &impl Wire, way: Way) {
        for packet in self.octets.chunks(self.segment) {
            self.sent.calls += 1;
            match udp.send(way, packet, packet.len()) {
                Ok(()) => self.sent.datagrams += 1,
                Err(error) => {
                    self.sent.errors += 1;
                    refused(now, endpoint, way, packet, &error);
                }
            }
        }
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.bytes = 0;
        self.way = None;
        self.sealed = false;
    }
}

/// Tells the endpoint of a packet that the system refused. Only attempts to connect end at once where there is no way to
/// the peer: ways come back, and a connection that is up has its timeouts to wait for them.
fn refused(now: Instant, endpoint: &mut Endpoint<Way>, way: Way, packet: &[u8], error: &io::Error) {
    let is_syn = Packet::decode(packet).is_ok_and(|packet| packet.header.kind == Kind::Syn);
    let head = &packet[..packet.len().min(HEADER_BYTES)];
    if quinn_udp::is_msg_size_err(error) {
        endpoint.packet_too_big(now, way, head, None);
    } else if is_syn && means_unreachable(error.kind()) {
        endpoint.unreachable(way, head);
    }
}

fn means_unreachable(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        AddrNotAvailable, ConnectionRefused, HostUnreachable, InvalidInput, NetworkDown, NetworkUnreachable,
        PermissionDenied,
    };
    matches!(
        kind,
        AddrNotAvailable
            | ConnectionRefused
            | HostUnreachable
            | InvalidInput
            | NetworkDown
            | NetworkUnreachable
            | PermissionDenied
    )
}
