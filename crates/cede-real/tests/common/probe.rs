//! A peer that opens a connection and writes its packets octet by octet.

use cede_units::Seq16;
use cede_wire::utp::{Header, Kind, Packet};
use std::net::SocketAddr;
use tokio::net::UdpSocket;

/// Extensions, in their order.
pub type Chain<'a> = &'a [(u8, &'a [u8])];

/// What a packet said.
#[derive(Debug)]
pub struct Heard {
    pub header: Header,
    pub payload: Vec<u8>,
}

/// The opener of a connection, as a test writes it.
pub struct Probe {
    pub socket: UdpSocket,
    /// The SYN's id: packets that we hear carry it, packets that we send one more.
    pub id: u16,
    /// Our next number.
    pub seq: Seq16,
    /// The last number that we have in order.
    pub ack: Seq16,
    pub window_bytes: u32,
    pub timestamps: (u32, u32),
}

impl Probe {
    pub async fn new(server: SocketAddr, id: u16, syn: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(server).await.unwrap();
        let timestamps = (1, 1000);
        Self { socket, id, seq: Seq16(syn), ack: Seq16(0), window_bytes: 1 << 20, timestamps }
    }

    pub fn header(&self, kind: Kind) -> Header {
        Header {
            kind,
            connection_id: if kind == Kind::Syn { self.id } else { self.id.wrapping_add(1) },
            timestamp_us: self.timestamps.0,
            timestamp_difference_us: self.timestamps.1,
            window_bytes: self.window_bytes,
            seq: self.seq,
            ack: self.ack,
        }
    }

    pub async fn send(&self, header: &Header, chain: Chain<'_>, payload: &[u8]) {
        let mut octets = Vec::new();
        header.encode_into(chain, payload, &mut octets).unwrap();
        self.socket.send(&octets).await.unwrap();
    }

    /// The SYN, which takes a number, and the answer to it, which takes none.
    pub async fn open(&mut self, chain: Chain<'_>) -> Header {
        let syn = self.header(Kind::Syn);
        self.send(&syn, chain, &[]).await;
        let answer = self.hear(|heard| heard.header.kind == Kind::State).await.header;
        assert_eq!((answer.connection_id, answer.ack), (self.id, syn.seq));
        (self.seq, self.ack) = (self.seq.add(1), answer.seq.sub(1));
        answer
    }

    pub async fn state(&self, chain: Chain<'_>) {
        self.send(&self.header(Kind::State), chain, &[]).await;
    }

    /// DATA or FIN, as the next number.
    pub async fn numbered(&mut self, kind: Kind, chain: Chain<'_>, payload: &[u8]) {
        self.send(&self.header(kind), chain, payload).await;
        self.seq = self.seq.add(1);
    }

    /// The next packet that is wanted; others are passed over.
    pub async fn hear(&self, wanted: impl Fn(&Heard) -> bool) -> Heard {
        let mut buffer = [0; 65_536];
        loop {
            let n = self.socket.recv(&mut buffer).await.unwrap();
            let Ok(packet) = Packet::decode(&buffer[..n]) else { continue };
            let heard = Heard { header: packet.header, payload: packet.payload.to_vec() };
            if wanted(&heard) {
                return heard;
            }
        }
    }

    /// Waits until everything that we sent is acknowledged.
    pub async fn hear_all_acknowledged(&self) {
        self.hear(|heard| heard.header.ack == self.seq.sub(1)).await;
    }

    /// Takes DATA in order and acknowledges each, until there are so many octets.
    pub async fn take(&mut self, bytes: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        while taken.len() < bytes {
            let expected = self.ack.add(1);
            let heard = self.hear(|heard| heard.header.kind == Kind::Data).await;
            if heard.header.seq == expected {
                self.ack = expected;
                taken.extend(heard.payload);
            }
            self.state(&[]).await;
        }
        taken
    }
}
