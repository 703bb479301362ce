//! Strangers with a socket: floods of SYNs, of noise and of RESETs, beside a stream that should not notice.

mod common;

use cede_real::{SocketConfig, SocketStatistics, UtpSocket, UtpStream};
use cede_units::Stream;
use cede_utp::Limits;
use cede_wire::utp::{Header, Kind};
use common::in_time;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const TRANSFER_BYTES: u64 = 3_000_000;

/// A thread that sends what `next` makes from sockets of its own until it is dropped.
struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Flood {
    fn on(target: SocketAddr, mut next: impl FnMut(&mut Stream) -> Vec<u8> + Send + 'static) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let sockets: Vec<_> = (0..20).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let thread = std::thread::spawn(move || {
            let mut random = Stream::named(7, "flood");
            for socket in sockets.iter().cycle() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                // Now and then a breath, so that the flood has not the whole of a processor that it shares.
                for _ in 0..50 {
                    let _ = socket.send_to(&next(&mut random), target);
                }
                count.fetch_add(50, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { stop, sent, thread: Some(thread) }
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn header(kind: Kind, random: &mut Stream) -> Vec<u8> {
    let header = Header {
        kind,
        connection_id: random.next_u16(),
        timestamp_us: random.next_u16().into(),
        timestamp_difference_us: 0,
        window_bytes: 1 << 20,
        seq: cede_units::Seq16(random.next_u16()),
        ack: cede_units::Seq16(random.next_u16()),
    };
    header.encode(&[]).unwrap().to_vec()
}

/// The stream of this peer: forged ones may come before it.
async fn accept_from(client: &UtpSocket, server: &UtpSocket) -> std::io::Result<UtpStream> {
    loop {
        let stream = server.accept().await?;
        if stream.peer_addr() == client.local_addr() {
            return Ok(stream);
        }
    }
}

/// Opens a stream under the flood and sends something through it. On a machine so busy that the flood fills the room for
/// half-open connections between two packets of the handshake, that takes more than one attempt.
async fn transfer_under(flood: &Flood, client: &UtpSocket, server: &UtpSocket) {
    while flood.sent() < 2000 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    loop {
        let attempt = tokio::time::timeout(Duration::from_secs(8), try_transfer(client, server)).await;
        match attempt {
            Ok(Ok(())) => return,
            failed => println!("once more: {failed:?}"),
        }
    }
}

async fn try_transfer(client: &UtpSocket, server: &UtpSocket) -> std::io::Result<()> {
    let mut there = client.connect(server.local_addr()).await?;
    let sending = async {
        let octets: Vec<u8> = (0..TRANSFER_BYTES).map(cede_wire::pattern_octet).collect();
        there.write_all(&octets).await?;
        there.shutdown().await
    };
    let receiving = async {
        let (mut here, mut heard) = (accept_from(client, server).await?, Vec::new());
        here.read_to_end(&mut heard).await?;
        let whole = heard.iter().zip(0..).all(|(&octet, at)| octet == cede_wire::pattern_octet(at));
        assert!(whole, "what arrives is what was sent");
        Ok(heard.len() as u64)
    };
    let (_, heard) = tokio::try_join!(sending, receiving)?;
    // A stream of an earlier attempt may have come to be accepted now.
    if heard == TRANSFER_BYTES { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// Waits until the socket has counted what is expected of the flood.
async fn counted(server: &UtpSocket, enough: impl Fn(&SocketStatistics) -> bool) -> SocketStatistics {
    while !enough(&server.statistics()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.statistics()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_syns_neither_keeps_others_out_nor_takes_memory() {
    in_time(async {
        let limits = Limits { half_open: 64, ..Limits::default() };
        let server = SocketConfig { limits, ..SocketConfig::default() };
        let server = UtpSocket::bind_with("127.0.0.1:0", server).await.unwrap();
        let client = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let flood = Flood::on(server.local_addr(), |random| header(Kind::Syn, random));
        transfer_under(&flood, &client, &server).await;
        let statistics = counted(&server, |statistics| statistics.endpoint.half_open_dropped > 500).await;
        drop(flood);
        // Half-open, handed out all the same; and streams of attempts that failed may linger.
        assert!(statistics.connections <= 64 + 8 + 20, "{statistics:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_is_counted_and_an_outlet_that_nobody_reads_does_not_grow() {
    in_time(async {
        let server = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let client = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut unread = server.foreign();
        let flood = Flood::on(server.local_addr(), |random| {
            (0..random.next_u16() % 1400)
                .map(|i| if i == 0 { b'd' } else { random.next_u16() as u8 })
                .collect()
        });
        transfer_under(&flood, &client, &server).await;
        counted(&server, |statistics| {
            statistics.endpoint.unrecognised > 500 && statistics.foreign_dropped > 0
        })
        .await;
        drop(flood);
        drop(server);
        let mut kept = 0;
        while unread.recv().await.is_some() {
            kept += 1;
        }
        assert!(kept <= SocketConfig::default().foreign_backlog);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blind_resets_and_strays_end_nothing_and_are_answered_sparingly() {
    in_time(async {
        let server = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let client = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut kinds = [Kind::Reset, Kind::Data, Kind::State, Kind::Fin].into_iter().cycle();
        let flood =
            Flood::on(server.local_addr(), move |random| header(kinds.next().unwrap_or(Kind::Reset), random));
        transfer_under(&flood, &client, &server).await;
        let statistics = counted(&server, |statistics| statistics.endpoint.strays > 500).await;
        drop(flood);
        let endpoint = statistics.endpoint;
        assert!(endpoint.resets_sent <= endpoint.strays && statistics.connections <= 20, "{statistics:?}");
    })
    .await;
}

#[tokio::test]
async fn resets_from_the_peer_s_own_address_need_the_right_numbers() {
    in_time(async {
        let socket = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let there = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = there.local_addr().unwrap();
        let (stream, puppet) = tokio::join!(socket.connect(addr), common::puppet::Puppet::accept(there));
        let (stream, puppet) = (stream.unwrap(), puppet);
        for wrong in 1..200_u16 {
            let mut reset = puppet.header(Kind::Reset);
            reset.ack = reset.ack.add(wrong.wrapping_mul(300) | 0x4000);
            let head = reset.encode(&[]).unwrap();
            puppet.socket.send_to(&head, puppet.peer).await.unwrap();
        }
        while stream.statistics().discarded_resets < 199 {
            tokio::task::yield_now().await;
        }
        assert!(
            stream.snapshot().is_some_and(|snapshot| snapshot.state != cede_utp::ConnectionState::Closed)
        );
    })
    .await;
}
