//! One connection over the loopback, one way: goodput and CPU time of both ends together, beside the kernel's TCP.
//!
//! `cargo bench -p cede-real --bench loopback [-- MEGABYTES [CONTROLLER [frames|large [default|4mib]]]]`; 1000 MB and
//! `ledbat` unless given. With `frames` datagrams are no larger than an Ethernet frame, as they are towards other
//! implementations. CPU time is user and system time of this process by `/proc/self/stat`, so there is none elsewhere than
//! on Linux. Everything is done twice, with the system's default socket buffers and with 4 MiB, unless one is named: alone,
//! and without TCP beside it, for a profile.

use cede_real::{SocketConfig, SocketStatistics, StreamConfig, UtpSocket};
use cede_utp::{Snapshot, Statistics};
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PIECE_BYTES: usize = 256 << 10;
/// Ticks of `/proc/self/stat` in a second: fixed on Linux, whatever the kernel's own are.
const TICKS_PER_SEC: f64 = 100.0;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let megabytes: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let controller = arguments.next().unwrap_or_else(|| "ledbat".to_owned());
    let mut stream = StreamConfig::with_controller(&controller);
    stream.large_datagrams = arguments.next().as_deref() != Some("frames");
    let bytes = megabytes * 1_000_000;
    if let Some(named) = arguments.next() {
        let buffers = (named != "default").then_some(4 << 20);
        let (cost, end) = utp(bytes, &stream, buffers).await?;
        cost.print(&named, bytes);
        end.print();
        return Ok(());
    }
    let tcp = kernel_tcp(bytes).await?;
    tcp.print("kernel TCP", bytes);
    for (name, buffers) in [("uTP, default buffers", None), ("uTP, 4 MiB buffers", Some(4 << 20))] {
        let (cost, end) = utp(bytes, &stream, buffers).await?;
        cost.print(name, bytes);
        end.print();
        let (goodput, cpu) = (tcp.seconds / cost.seconds, cost.cpu_seconds / tcp.cpu_seconds);
        println!("  beside TCP: goodput x {goodput:.3}, CPU x {cpu:.2}");
    }
    Ok(())
}

/// What a transfer took.
struct Cost {
    seconds: f64,
    cpu_seconds: f64,
}

impl Cost {
    fn print(&self, name: &str, bytes: u64) {
        let goodput = bytes as f64 / 1e6 / self.seconds;
        let cpu = self.cpu_seconds / (bytes as f64 / 1e9);
        println!("{name}: {goodput:.0} MB/s, {cpu:.3} CPU s/GB (both ends)");
    }
}

/// How a uTP connection looked when all had arrived.
struct End {
    statistics: Statistics,
    snapshot: Option<Snapshot>,
    sender: SocketStatistics,
    receiver: SocketStatistics,
}

impl End {
    fn print(&self) {
        let s = &self.statistics;
        println!(
            "  {} data packets, {} sent again, {} timeouts, {} MTU probes lost",
            s.data_packets_sent, s.retransmissions, s.timeouts, s.mtu_probes_lost
        );
        let per_call = |datagrams, calls| datagrams as f64 / (calls as f64).max(1.0);
        println!(
            "  datagrams per call: data {:.1} out, {:.1} in; acknowledgements {:.1} out, {:.1} in; {} in all",
            per_call(self.sender.datagrams_sent, self.sender.send_calls),
            per_call(self.receiver.datagrams_received, self.receiver.receive_calls),
            per_call(self.receiver.datagrams_sent, self.receiver.send_calls),
            per_call(self.sender.datagrams_received, self.sender.receive_calls),
            self.receiver.datagrams_sent,
        );
        if let Some(snapshot) = &self.snapshot {
            println!(
                "  payload {} B, cwnd {} B, srtt {}, queueing delay {:?}",
                snapshot.payload_bytes,
                snapshot.cwnd_bytes,
                snapshot.srtt,
                snapshot.controller.queueing_delay
            );
        }
    }
}

async fn kernel_tcp(bytes: u64) -> io::Result<Cost> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    let (there, here) = tokio::join!(TcpStream::connect(addr), listener.accept());
    transfer(there?, here?.0, bytes).await.map(|(cost, _)| cost)
}

async fn utp(bytes: u64, stream: &StreamConfig, buffer_bytes: Option<usize>) -> io::Result<(Cost, End)> {
    let config = SocketConfig {
        stream: stream.clone(),
        receive_buffer_bytes: buffer_bytes,
        send_buffer_bytes: buffer_bytes,
        ..SocketConfig::default()
    };
    let alice = UtpSocket::bind_with("127.0.0.1:0", config.clone()).await?;
    let bob = UtpSocket::bind_with("127.0.0.1:0", config).await?;
    let (there, here) = tokio::join!(alice.connect(bob.local_addr()), bob.accept());
    let (cost, there) = transfer(there?, here?, bytes).await?;
    let (statistics, snapshot) = (there.statistics(), there.snapshot());
    let end = End { statistics, snapshot, sender: alice.statistics(), receiver: bob.statistics() };
    Ok((cost, end))
}

async fn transfer<S>(mut there: S, mut here: S, bytes: u64) -> io::Result<(Cost, S)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (start, cpu) = (Instant::now(), cpu_time());
    let sending = tokio::spawn(async move {
        let piece = vec![0x5a; PIECE_BYTES];
        let mut left = bytes;
        while left > 0 {
            let n = left.min(PIECE_BYTES as u64);
            there.write_all(&piece[..n as usize]).await?;
            left -= n;
        }
        there.shutdown().await.map(|()| there)
    });
    let receiving = tokio::spawn(async move {
        let (mut buffer, mut total) = (vec![0; PIECE_BYTES], 0);
        loop {
            match here.read(&mut buffer).await? {
                0 => return io::Result::Ok((total, here)),
                n => total += n as u64,
            }
        }
    });
    let (total, _here) = receiving.await??;
    let cost = Cost {
        seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: cpu_time().saturating_sub(cpu).as_secs_f64(),
    };
    assert_eq!(total, bytes);
    Ok((cost, sending.await??))
}

/// User and system time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields behind the name, which is in brackets: utime and stime are the 12th and 13th of them.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_secs_f64(ticks as f64 / TICKS_PER_SEC)
}
