//! One transfer, in this process.

use crate::cost::{Cost, cpu_seconds, meter, overflows, peak_kib};
use crate::{Carrier, Contestant, plain};
use cede_interop::bittorrent::Torrent;
use cede_interop::clients::{Client, Role, Running, Task};
use cede_interop::stack::{Node, Stack, Stream};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PIECE_BYTES: usize = 256 << 10;
/// A contestant that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs a contestant and prints what it took.
pub fn run(contestant: &Contestant) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let result = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let limited = tokio::time::timeout(LIMIT, transfer(contestant)).await;
            limited.unwrap_or_else(|_| Err(io::Error::other(format!("not over after {LIMIT:?}"))))
        })
    });
    match result {
        Ok(cost) => println!("{}", cost.line()),
        Err(error) => eprintln!("{error}"),
    }
    // Without waiting for what a runtime has left to do.
    std::process::exit(0);
}

async fn transfer(contestant: &Contestant) -> io::Result<Cost> {
    let (bytes, buffers) = (contestant.megabytes * 1_000_000, contestant.buffer_bytes);
    match contestant.carrier {
        Carrier::Tcp => plain::tcp(bytes).await,
        Carrier::Udp => plain::udp(bytes, buffers).await,
        Carrier::Cede => utp(Stack::Cede, bytes, buffers).await,
        Carrier::Rqbit => utp(Stack::Rqbit, bytes, buffers).await,
        Carrier::UtpRs => utp(Stack::UtpRs, bytes, buffers).await,
        Carrier::LibtorrentPypi => torrent(Client::LibtorrentPypi, bytes, buffers).await,
        Carrier::LibtorrentDebian => torrent(Client::LibtorrentDebian, bytes, buffers).await,
    }
}

async fn utp(stack: Stack, bytes: u64, buffers: Option<usize>) -> io::Result<Cost> {
    let sender = Node::bind_with_buffers(stack, LOOPBACK, buffers).await?;
    let receiver = Node::bind_with_buffers(stack, LOOPBACK, buffers).await?;
    let target = receiver.addr();
    let (there, here) = tokio::join!(sender.open(target), receiver.accept());
    let (there, mut here) = (there?, here?);
    let done = meter(bytes);
    let sending = tokio::spawn(pour(there, bytes));
    let receiving = tokio::spawn(async move {
        let mut total = 0;
        here.receive(|octets| total += octets.len() as u64).await.map(|()| (total, here))
    });
    let (total, _here) = receiving.await??;
    let cost = done();
    sending.abort();
    if total == bytes { Ok(cost) } else { Err(io::Error::other(format!("{total} B of {bytes} arrived"))) }
}

async fn torrent(client: Client, bytes: u64, buffer_bytes: Option<usize>) -> io::Result<Cost> {
    client.version().map_err(io::Error::other)?;
    let torrent = Torrent::new("bench", 1, bytes as usize, None);
    let task = |role, connect| Task { role, torrent: &torrent, ip: LOOPBACK, connect, buffer_bytes };
    let seeder = Running::start(client, &task(Role::Seed, None)).await?;
    let lost = overflows();
    let cpu_of_seeder = cpu_seconds(&process(&seeder));
    let mut leecher = Running::start(client, &task(Role::Leech, Some(seeder.addr()))).await?;
    let (began, cpu_of_leecher) = (Instant::now(), cpu_seconds(&process(&leecher)));
    leecher.complete(&torrent).await?;
    let cpu = |running: &Running, before| cpu_seconds(&process(running)) - before;
    Ok(Cost {
        bytes,
        seconds: began.elapsed().as_secs_f64(),
        cpu_seconds: cpu(&seeder, cpu_of_seeder) + cpu(&leecher, cpu_of_leecher),
        peak_kib: peak_kib(&process(&seeder)) + peak_kib(&process(&leecher)),
        overflows: overflows() - lost,
    })
}

fn process(running: &Running) -> String {
    running.process_id().map_or_else(String::new, |id| id.to_string())
}

/// Writes `bytes` octets to a stream and ends it.
async fn pour(mut stream: Stream, bytes: u64) -> io::Result<Stream> {
    let piece = vec![0x5a; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let n = left.min(PIECE_BYTES as u64);
        stream.write(&piece[..n as usize]).await?;
        left -= n;
    }
    stream.end().await?;
    Ok(stream)
}
