//! A peer moved by hand, packet by packet.

use cede_units::Seq16;
use cede_wire::utp::{HEADER_BYTES, Header, Kind, Packet};
use std::net::SocketAddr;
use tokio::net::UdpSocket;

/// A peer whose packets a test writes.
pub struct Puppet {
    pub socket: UdpSocket,
    pub peer: SocketAddr,
    /// In what it sends.
    pub id: u16,
    pub seq: Seq16,
    pub ack: Seq16,
    /// The latest packet that it received, as octets.
    pub heard: Vec<u8>,
}

impl Puppet {
    /// Waits for a SYN and answers it.
    pub async fn accept(socket: UdpSocket) -> Self {
        let mut buffer = [0; 65_536];
        loop {
            let (n, peer) = socket.recv_from(&mut buffer).await.unwrap();
            let Ok(packet) = Packet::decode(&buffer[..n]) else { continue };
            if packet.header.kind == Kind::Syn {
                let (id, ack) = (packet.header.connection_id, packet.header.seq);
                let heard = buffer[..n].to_vec();
                let mut puppet = Self { socket, peer, id, seq: Seq16(77), ack, heard };
                puppet.send(Kind::State).await;
                return puppet;
            }
        }
    }

    pub fn header(&self, kind: Kind) -> Header {
        Header {
            kind,
            connection_id: self.id,
            timestamp_us: 1,
            timestamp_difference_us: 1000,
            window_bytes: 1 << 20,
            seq: self.seq,
            ack: self.ack,
        }
    }

    pub async fn send(&mut self, kind: Kind) {
        let head = self.header(kind).encode(&[]).unwrap();
        self.socket.send_to(&head, self.peer).await.unwrap();
    }

    /// The next packet's header; its octets stay in `heard`.
    pub async fn hear(&mut self) -> Header {
        let mut buffer = [0; 65_536];
        loop {
            let (n, _) = self.socket.recv_from(&mut buffer).await.unwrap();
            if let Ok(packet) = Packet::decode(&buffer[..n]) {
                self.heard = buffer[..n].to_vec();
                return packet.header;
            }
        }
    }

    /// Takes the next packet in and acknowledges it, as long as they come in order.
    pub async fn hear_and_acknowledge(&mut self) -> Header {
        let header = self.hear().await;
        if matches!(header.kind, Kind::Data | Kind::Fin) && header.seq == self.ack.add(1) {
            self.ack = header.seq;
        }
        self.send(Kind::State).await;
        header
    }

    /// The first octets of the latest packet.
    pub fn heard_header(&self) -> &[u8] {
        &self.heard[..HEADER_BYTES]
    }
}
