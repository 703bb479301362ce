//! A soak: streams come and go over a path that loses and reorders, and neither memory nor descriptors are lost.
//!
//! 1,000 streams in the tests. For an hour: `CEDE_SOAK_S=3600 cargo test --release -p cede-real --test soak -- --nocapture`.

mod common;

use cede_real::{SocketConfig, StreamConfig, UtpSocket};
use cede_units::Duration as Span;
use common::relay::lossy_relay;
use common::{expect_pattern, send_pattern};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

const STREAMS: u64 = 1_000;
const STREAMS_AT_ONCE: u64 = 20;
/// Until then the allocator, the runtime and the sockets have taken what they take.
const WARM_AFTER: u64 = 200;
/// On a machine so busy that the streams take longer than this, fewer have to do.
const AT_MOST: Duration = Duration::from_secs(90);
/// A round takes a second or two.
const ROUND_LIMIT: Duration = Duration::from_secs(180);
/// What the allocator may keep for itself. 800 streams that each left 24 KiB behind, a small part of what one
/// holds while it works, would be more.
const SLACK_BYTES: u64 = 16 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_come_and_go_and_leave_nothing_behind() {
    let seconds = std::env::var("CEDE_SOAK_S").ok().and_then(|text| text.parse().ok());
    let (begun, wanted) = (Instant::now(), seconds.map(Duration::from_secs));
    let server = Arc::new(UtpSocket::bind_with("127.0.0.1:0", config()).await.unwrap());
    let first = Use::now();
    let (mut streams, mut warm, mut relays) = (0, None, Vec::new());
    while wanted.map_or(streams < STREAMS && begun.elapsed() < AT_MOST, |wanted| begun.elapsed() < wanted) {
        let Ok(relay) = tokio::time::timeout(ROUND_LIMIT, round(&server, streams)).await else {
            panic!("after {streams} streams a round does not end: {:#?}", server.statistics());
        };
        relays.push(relay);
        streams += STREAMS_AT_ONCE;
        if streams % WARM_AFTER == 0 {
            settle(&server, &mut relays, first).await;
            warm = warm.or(Use::now());
        }
        if streams % 10_000 == 0 {
            println!("{streams} streams, {:?}, {:?}", begun.elapsed(), Use::now());
        }
    }
    settle(&server, &mut relays, first).await;
    let now = Use::now();
    println!("{streams} streams in {:?}: {first:?}, {warm:?} when warm, {now:?} now", begun.elapsed());
    let (Some(first), Some(warm), Some(now)) = (first, warm, now) else {
        println!("SKIPPED the comparison: no /proc/self, or too few streams");
        return;
    };
    assert!(now.descriptors <= first.descriptors, "{first:?}, {now:?}");
    assert!(now.resident_bytes <= warm.resident_bytes + SLACK_BYTES, "{warm:?}, {now:?}");
}

/// Waits until nothing is left but the server.
async fn settle(server: &UtpSocket, relays: &mut Vec<JoinHandle<()>>, first: Option<Use>) {
    let begun = Instant::now();
    while server.statistics().connections > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "connections stay: {:#?}", server.statistics());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    relays.drain(..).for_each(|relay| relay.abort());
    // Sockets close a little after their last stream.
    for _ in 0..600 {
        if Use::now().is_none_or(|now| first.is_some_and(|first| now.descriptors <= first.descriptors)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Impatient enough that lost packets do not make the soak last; patient enough for a machine that lets this process wait for
/// seconds: a stream that gives up here leaves the other side waiting for one that never comes.
fn config() -> SocketConfig {
    let mut stream = StreamConfig::default();
    stream.transport.syn_rto = Span::from_millis(200);
    stream.transport.max_syn_retransmissions = 8;
    stream.transport.initial_rto = Span::from_millis(200);
    stream.transport.min_rto = Span::from_millis(20);
    stream.transport.max_retransmissions = 9;
    stream.transport.handshake_timeout = Span::from_secs(20);
    stream.transport.linger_min = Span::from_millis(400);
    SocketConfig { stream, ..SocketConfig::default() }
}

/// A socket comes, opens streams through a bad path, and goes. What the path is, goes on.
async fn round(server: &Arc<UtpSocket>, salt: u64) -> JoinHandle<()> {
    let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addr = relay.local_addr().unwrap();
    let relay = tokio::spawn(lossy_relay(relay, server.local_addr()));
    let client = UtpSocket::bind_with("127.0.0.1:0", config()).await.unwrap();
    let serving: Vec<_> = (0..STREAMS_AT_ONCE)
        .map(|_| {
            let server = Arc::clone(server);
            tokio::spawn(async move {
                let mut stream = server.accept().await.unwrap();
                expect_pattern(&mut stream, 1).await
            })
        })
        .collect();
    let client = Arc::new(client);
    let calling: Vec<_> = (0..STREAMS_AT_ONCE)
        .map(|i| tokio::spawn(call(Arc::clone(&client), addr, 1 + (salt + i) * 37 % 30_000, i % 3 == 0)))
        .collect();
    let (mut sent, mut heard) = (0, 0);
    for called in calling {
        sent += called.await.unwrap();
    }
    for served in serving {
        heard += served.await.unwrap();
    }
    assert_eq!(heard, sent);
    relay
}

/// Opens a stream and sends so much; some wait for the other side's end and abort what is over, most just go.
async fn call(client: Arc<UtpSocket>, addr: SocketAddr, len: u64, waits: bool) -> u64 {
    let mut stream = client.connect(addr).await.unwrap();
    send_pattern(&mut stream, len, 1).await;
    if waits {
        expect_pattern(&mut stream, 0).await;
        stream.abort();
    }
    len
}

/// What this process has of the system.
#[derive(Clone, Copy, Debug)]
struct Use {
    resident_bytes: u64,
    descriptors: usize,
}

impl Use {
    fn now() -> Option<Self> {
        let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        let descriptors = std::fs::read_dir("/proc/self/fd").ok()?.count();
        Some(Self { resident_bytes: pages * 4096, descriptors })
    }
}
