//! What routers and peers say of our datagrams: the kernel's own words, and forged ones.
#![cfg(target_os = "linux")]

mod common;

use cede_cc::ParamValue;
use cede_real::{ConnectError, ControllerChoice, StreamConfig, UtpSocket, UtpStream};
use cede_units::Bytes;
use cede_utp::ConnectionError;
use common::in_time;
use common::puppet::Puppet;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;

/// An address where nobody listens, if the system says so to who sends there.
fn nobody(addr: &str) -> Option<SocketAddr> {
    let local: SocketAddr = addr.parse().unwrap();
    // Who asks for any port is given none so low.
    let first = 10_000 + (std::process::id() % 20_000) as u16;
    let free = |port| std::net::UdpSocket::bind(SocketAddr::new(local.ip(), port)).ok()?.local_addr().ok();
    let at = (first..).take(1_000).find_map(free)?;
    let plain = std::net::UdpSocket::bind(addr).ok()?;
    plain.connect(at).ok()?;
    plain.send(b"anyone?").ok()?;
    plain.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let refused =
        plain.recv(&mut [0; 10]).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    refused.then_some(at)
}

#[tokio::test]
async fn nobody_there_refuses_an_attempt_to_connect() {
    for (ours, theirs) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::]:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0")]
    {
        let Some(at) = nobody(theirs) else {
            println!("SKIPPED {theirs}: this system does not tell that nobody listens there");
            continue;
        };
        in_time(async {
            let socket = UtpSocket::bind(ours).await.unwrap();
            let error = socket.connect(at).await.unwrap_err();
            assert_eq!(error, ConnectError::Failed(ConnectionError::Refused), "{ours} to {theirs}");
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::ConnectionRefused);
            assert!(socket.statistics().icmp_heeded > 0);
        })
        .await;
    }
}

#[tokio::test]
async fn a_peer_that_goes_away_does_not_end_a_stream_by_icmp_nor_keep_others_from_theirs() {
    in_time(async {
        let socket = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let there = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = there.local_addr().unwrap();
        let (stream, puppet) = tokio::join!(socket.connect(addr), Puppet::accept(there));
        let mut stream = stream.unwrap();
        drop(puppet);
        let other = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        // Each write to nobody may be complained of, and each complaint shows in some later call of the system.
        for _ in 0..20 {
            stream.write_all(&[1; 600]).await.unwrap();
            let (opened, accepted) = tokio::join!(socket.connect(other.local_addr()), other.accept());
            drop((opened.unwrap(), accepted.unwrap()));
        }
        assert_eq!(stream.write(b"still there").await.unwrap(), 11);
    })
    .await;
}

/// Waits for something to read from a peer whose program goes without a word.
async fn read_of_who_goes(local: &str) -> io::Result<usize> {
    let socket = UtpSocket::bind(local).await.unwrap();
    let there = UdpSocket::bind(local).await.unwrap();
    let silence = Some(cede_units::Duration::from_millis(500));
    let mut config = StreamConfig::default();
    (config.transport.keepalive, config.transport.keepalive_strangers) = (silence, silence);
    let addr = there.local_addr().unwrap();
    let (stream, puppet) = tokio::join!(socket.connect_with(addr, &config), Puppet::accept(there));
    drop(puppet);
    stream.unwrap().read(&mut [0; 10]).await
}

#[tokio::test]
async fn who_only_reads_learns_that_the_other_program_is_gone() {
    let learns = async |local: &str| {
        if nobody(local).is_none() {
            return println!("SKIPPED {local}: this system does not tell that nobody listens there");
        }
        let error = in_time(read_of_who_goes(local)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{local}");
    };
    tokio::join!(learns("127.0.0.1:0"), learns("[::1]:0"));
}

/// "Fragmentation needed" (RFC 792 with RFC 1191) about a datagram between two addresses that began with `quoted`.
fn fragmentation_needed(from: SocketAddr, to: SocketAddr, mtu: u16, quoted: &[u8]) -> Vec<u8> {
    let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, to) else { unreachable!("both are IPv4") };
    let mut octets = vec![3, 4, 0, 0, 0, 0];
    octets.extend(mtu.to_be_bytes());
    octets.extend([0x45, 0, 5, 0xdc, 0, 1, 0x40, 0, 64, 17, 0, 0]);
    octets.extend(from.ip().octets());
    octets.extend(to.ip().octets());
    octets.extend(from.port().to_be_bytes());
    octets.extend(to.port().to_be_bytes());
    octets.extend([5, 0xc8, 0, 0]);
    octets.extend(quoted);
    let sum: u32 =
        octets.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    octets[2..4].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// A stream whose packets have grown, to a puppet that has fallen silent with some of them under way.
async fn grown(socket: &UtpSocket, at: Ipv4Addr) -> (UtpStream, Puppet) {
    let there = UdpSocket::bind((at, 0)).await.unwrap();
    let window = ParamValue::Bytes(Bytes(20_000));
    let controller = ControllerChoice::named("fixed").with("cwnd", window);
    let config = StreamConfig { controller, ..StreamConfig::default() };
    let addr = there.local_addr().unwrap();
    let (stream, puppet) = tokio::join!(socket.connect_with(addr, &config), Puppet::accept(there));
    let (mut stream, mut puppet) = (stream.unwrap(), puppet);
    while stream.snapshot().unwrap().payload_bytes < 1300 {
        stream.write_all(&[1; 3000]).await.unwrap();
        while stream.snapshot().unwrap().unacked_bytes > 0 {
            // What was acknowledged last may be on its way still.
            let _ = tokio::time::timeout(Duration::from_millis(20), puppet.hear_and_acknowledge()).await;
        }
    }
    stream.write_all(&[1; 6000]).await.unwrap();
    while puppet.hear().await.seq != puppet.ack.add(1) {}
    (stream, puppet)
}

#[tokio::test]
async fn too_large_is_believed_of_a_packet_that_is_under_way_and_of_no_other() {
    let Ok(raw) = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)) else {
        println!("SKIPPED: forging ICMP takes a raw socket, which takes privileges");
        return;
    };
    in_time(async {
        let socket = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        // The kernel believes it too, and remembers: an address that nobody else uses.
        let [a, b] = (std::process::id() as u16).to_be_bytes();
        let (mut stream, puppet) = grown(&socket, Ipv4Addr::new(127, 177, a, b.clamp(1, 254))).await;
        let (from, to) = (socket.local_addr(), puppet.socket.local_addr().unwrap());
        let say = |mtu, quoted: &[u8]| {
            let octets = fragmentation_needed(from, to, mtu, quoted);
            raw.send_to(&octets, &SockAddr::from(SocketAddr::new(from.ip(), 0))).unwrap();
        };
        let before = stream.snapshot().unwrap().payload_bytes;
        let mut wrong_number = puppet.heard_header().to_vec();
        wrong_number[16] ^= 0x40;
        let mut wrong_id = puppet.heard_header().to_vec();
        wrong_id[2] ^= 0x40;
        for forged in [&wrong_number[..], &wrong_id, &puppet.heard_header()[..10]] {
            let ignored = socket.statistics().icmp_ignored;
            say(1000, forged);
            while socket.statistics().icmp_ignored == ignored {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(stream.snapshot().unwrap().payload_bytes, before);
        say(1000, puppet.heard_header());
        while socket.statistics().icmp_heeded == 0 {
            tokio::task::yield_now().await;
        }
        assert!(stream.snapshot().unwrap().payload_bytes <= 1000 - 28 - 20);
        say(800, puppet.heard_header());
        say(68, puppet.heard_header());
        while socket.statistics().icmp_heeded < 3 {
            tokio::task::yield_now().await;
        }
        assert!((528..=800 - 28 - 20).contains(&stream.snapshot().unwrap().payload_bytes));
        assert_eq!(stream.write(b"and goes on").await.unwrap(), 11);
    })
    .await;
}
