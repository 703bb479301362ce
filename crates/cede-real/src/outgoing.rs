//! Packets on their way out: those that can leave with one call are put together.
//!
//! One call carries packets for one peer that all have the same size, of which the last may be shorter (Linux
//! `UDP_SEGMENT`). An endpoint is drained connection by connection, so they come in that order by themselves.

use crate::udp::Udp;
use cede_units::Instant;
use cede_utp::Endpoint;
use cede_wire::Transmit;
use cede_wire::utp::{HEADER_BYTES, Kind, Packet};
use std::io;
use std::net::SocketAddr;

/// Octets that one call can carry: the largest payload of UDP over IPv4 (RFC 768, RFC 791).
const BATCH_BYTES: usize = 65_507;

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
    octets: Vec<u8>,
    peer: Option<SocketAddr>,
    segment: usize,
    /// The batch is to take no more.
    sealed: bool,
    /// The first packet that did not fit the batch.
    next: Option<(SocketAddr, Transmit)>,
    pub sent: Sent,
}

impl Outgoing {
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty() && self.next.is_none()
    }

    /// Sends one batch of what the endpoint wants sent.
    pub fn send_batch(&mut self, now: Instant, endpoint: &mut Endpoint<SocketAddr>, udp: &Udp) -> Sending {
        self.gather(now, endpoint, udp.max_segments());
        let Some(peer) = self.peer else { return Sending::Nothing };
        match udp.send(peer, &self.octets, self.segment) {
            Ok(()) => {
                self.sent.calls += 1;
                self.sent.datagrams += self.octets.len().div_ceil(self.segment) as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Sending::Blocked,
            Err(error) if self.octets.len() <= self.segment => {
                self.sent.errors += 1;
                refused(now, endpoint, peer, &self.octets, &error);
            }
            Err(_) => self.send_one_by_one(now, endpoint, udp, peer),
        }
        self.clear();
        Sending::Done
    }

    /// Takes packets for as long as they fit together.
    fn gather(&mut self, now: Instant, endpoint: &mut Endpoint<SocketAddr>, max_segments: usize) {
        while !self.sealed {
            let Some((peer, packet)) = self.next.take().or_else(|| endpoint.poll_transmit(now)) else {
                return;
            };
            if self.fits(peer, packet.len(), max_segments) {
                self.append(peer, &packet);
            } else {
                self.next = Some((peer, packet));
                self.sealed = true;
            }
        }
    }

    fn fits(&self, peer: SocketAddr, bytes: usize, max_segments: usize) -> bool {
        match self.peer {
            None => true,
            Some(other) => {
                peer == other
                    && bytes <= self.segment
                    && self.octets.len() + bytes <= BATCH_BYTES
                    && self.octets.len() < self.segment * max_segments
            }
        }
    }

    fn append(&mut self, peer: SocketAddr, packet: &Transmit) {
        let bytes = packet.len();
        if self.peer.is_none() {
            (self.peer, self.segment) = (Some(peer), bytes.max(1));
        }
        self.sealed = bytes < self.segment;
        self.octets.extend_from_slice(&packet.head);
        let start = self.octets.len();
        self.octets.resize(start + packet.payload.len() as usize, 0);
        packet.payload.copy_to(&mut self.octets[start..]);
    }

    /// The batch was refused as one: which of it is at fault shows when each packet is sent alone. One that would block
    /// now is lost, as any datagram may be.
    fn send_one_by_one(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint<SocketAddr>,
        udp: &Udp,
        peer: SocketAddr,
    ) {
        for packet in self.octets.chunks(self.segment) {
            self.sent.calls += 1;
            match udp.send(peer, packet, packet.len()) {
                Ok(()) => self.sent.datagrams += 1,
                Err(error) => {
                    self.sent.errors += 1;
                    refused(now, endpoint, peer, packet, &error);
                }
            }
        }
    }

    fn clear(&mut self) {
        self.octets.clear();
        self.peer = None;
        self.sealed = false;
    }
}

/// Tells the endpoint of a packet that the system refused. Only attempts to connect end at once where there is no way to
/// the peer: ways come back, and a connection that is up has its timeouts to wait for them.
fn refused(
    now: Instant,
    endpoint: &mut Endpoint<SocketAddr>,
    peer: SocketAddr,
    packet: &[u8],
    error: &io::Error,
) {
    let is_syn = Packet::decode(packet).is_ok_and(|packet| packet.header.kind == Kind::Syn);
    let head = &packet[..packet.len().min(HEADER_BYTES)];
    if quinn_udp::is_msg_size_err(error) {
        endpoint.packet_too_big(now, peer, head, None);
    } else if is_syn && means_unreachable(error.kind()) {
        endpoint.unreachable(peer, head);
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
