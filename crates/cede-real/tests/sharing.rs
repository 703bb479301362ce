//! The port shared with another protocol, and a path that loses and reorders.

mod common;

use cede_real::{SocketConfig, StreamConfig, UtpSocket};
use cede_units::Duration;
use common::relay::lossy_relay;
use common::{expect_pattern, in_time, send_pattern};
use std::net::SocketAddr;
use tokio::net::UdpSocket;

const QUERY: &[u8] = b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe";

#[tokio::test]
async fn datagrams_of_another_protocol_are_handed_out_and_sent_from_the_same_port() {
    in_time(async {
        let socket = UtpSocket::bind("[::]:0").await.unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = SocketAddr::from(([127, 0, 0, 1], socket.local_addr().port()));
        let mut foreign = socket.foreign();
        other.send_to(QUERY, at).await.unwrap();
        let query = foreign.recv().await.unwrap();
        assert_eq!((query.peer, &*query.octets), (other.local_addr().unwrap(), QUERY));
        socket.send_foreign(b"answer", query.peer).await.unwrap();
        let mut answer = [0; 100];
        let (n, from) = other.recv_from(&mut answer).await.unwrap();
        assert_eq!((&answer[..n], from), (&b"answer"[..], at));
        drop(socket);
        assert_eq!(foreign.recv().await, None);
    })
    .await;
}

#[tokio::test]
async fn datagrams_that_nobody_takes_are_counted_and_dropped() {
    in_time(async {
        let config = SocketConfig { foreign_backlog: 2, ..SocketConfig::default() };
        let socket = UtpSocket::bind_with("127.0.0.1:0", config).await.unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut foreign = socket.foreign();
        for _ in 0..5 {
            other.send_to(QUERY, socket.local_addr()).await.unwrap();
        }
        while socket.statistics().datagrams_received < 5 {
            tokio::task::yield_now().await;
        }
        assert_eq!(socket.statistics().foreign_dropped, 3);
        assert!(foreign.recv().await.is_some() && foreign.recv().await.is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_loses_and_reorders_still_delivers_everything() {
    in_time(async {
        let bob = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = relay.local_addr().unwrap();
        let relay = tokio::spawn(lossy_relay(relay, bob.local_addr()));
        let alice = UtpSocket::bind("127.0.0.1:0").await.unwrap();
        // With windows this small many losses show by timeout only: its usual half second would make this last.
        let mut config = StreamConfig::default();
        config.transport.min_rto = Duration::from_millis(10);
        let (connected, accepted) = tokio::join!(alice.connect_with(addr, &config), bob.accept());
        let (mut there, mut here) = (connected.unwrap(), accepted.unwrap());
        let (_, heard) = tokio::join!(send_pattern(&mut there, 1_000_000, 9), expect_pattern(&mut here, 9));
        assert_eq!(heard, 1_000_000);
        let statistics = there.statistics();
        assert!(statistics.retransmissions > 0 && here.statistics().out_of_order_received > 0);
        relay.abort();
    })
    .await;
}
