//! Delays are those of the network, not those of a driver that is late.

mod common;

use cede_real::{SocketConfig, UtpSocket};
use common::in_time;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LATE: Duration = Duration::from_millis(300);

/// A socket in a runtime of its own that reads whatever comes.
fn reader() -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let socket = UtpSocket::bind("127.0.0.1:0").await.unwrap();
            tell.send(socket.local_addr()).unwrap();
            let mut stream = socket.accept().await.unwrap();
            while stream.read(&mut [0; 1000]).await.is_ok_and(|n| n > 0) {}
        });
    });
    told.recv().unwrap()
}

/// The RTT of octets whose acknowledgement arrives while this runtime's only thread is busy with something else.
async fn rtt_while_busy(kernel_timestamps: bool) -> Duration {
    let mut config = SocketConfig { kernel_timestamps, ..SocketConfig::default() };
    // What is sent again gives no sample, so nothing is.
    config.stream.transport.rack = false;
    config.stream.transport.initial_rto = cede_units::Duration::from_secs(30);
    config.stream.transport.min_rto = cede_units::Duration::from_secs(30);
    let socket = UtpSocket::bind_with("127.0.0.1:0", config).await.unwrap();
    let mut stream = socket.connect(reader()).await.unwrap();
    stream.write_all(&[1; 100]).await.unwrap();
    std::thread::sleep(LATE);
    while stream.statistics().bytes_acked < 100 {
        tokio::task::yield_now().await;
    }
    Duration::from_nanos(stream.snapshot().unwrap().rtt_latest.as_nanos())
}

#[tokio::test]
async fn without_kernel_timestamps_a_late_driver_shows() {
    in_time(async { assert!(rtt_while_busy(false).await >= LATE) }).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn with_kernel_timestamps_it_does_not() {
    in_time(async {
        // The other thread may itself be late on a busy machine, but not each time.
        let mut shortest = Duration::MAX;
        for _ in 0..50 {
            shortest = shortest.min(rtt_while_busy(true).await);
            if shortest < LATE / 2 {
                return;
            }
        }
        panic!("never less than {shortest:?}");
    })
    .await;
}
