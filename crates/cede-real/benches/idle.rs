//! Idle connections: what each costs in memory and CPU time.
//!
//! `cargo bench -p cede-real --bench idle [-- CONNECTIONS]`; 10,000 unless given, opened from ten sockets to one, all in
//! this process. Each has carried 68 octets and idles with both its streams held. Memory is the growth of the resident set
//! over both ends of all connections, once memory that carrying data took has been given back; then what a task costs that
//! waits to read, one for each pair; CPU time that of this process, by `/proc/self`, so there is none elsewhere than on
//! Linux.

use cede_real::{SocketConfig, UtpSocket, UtpStream};
use cede_utp::Limits;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CLIENTS: usize = 10;
const GREETING_BYTES: usize = 68;
/// Longer than the keepalive of 29 s, so that its cost is part of it.
const WATCHED: Duration = Duration::from_secs(60);
const TICKS_PER_SEC: f64 = 100.0;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let connections: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let server = bind(connections).await?;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(bind(connections).await?);
    }
    // What the first connection costs the runtime and the allocator is no connection's cost.
    drop(open(&clients[0], &server).await?);
    let before = resident_bytes();
    let mut held = Vec::with_capacity(connections);
    for i in 0..connections {
        held.push(open(&clients[i % CLIENTS], &server).await?);
    }
    // The rings of packets are given back a timeout after the last acknowledgement.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = resident_bytes();
    let per_end = after.saturating_sub(before) as f64 / (2.0 * connections as f64);
    println!("{connections} connections: {per_end:.0} octets per end");
    let mut kept = Vec::with_capacity(connections);
    for (there, mut here) in held {
        kept.push(there);
        tokio::spawn(async move { here.read_u8().await });
    }
    let per_task = resident_bytes().saturating_sub(after) as f64 / connections as f64;
    println!("a task that waits to read: {per_task:.0} octets more");
    let cpu = cpu_seconds();
    tokio::time::sleep(WATCHED).await;
    let used = (cpu_seconds() - cpu) / WATCHED.as_secs_f64();
    println!("{:.3} % of a processor while they idle, keepalives included", 100.0 * used);
    Ok(())
}

async fn bind(connections: usize) -> io::Result<UtpSocket> {
    let limits = Limits { connections: connections + 1, ..Limits::default() };
    Ok(UtpSocket::bind_with("127.0.0.1:0", SocketConfig { limits, ..SocketConfig::default() }).await?)
}

async fn open(client: &UtpSocket, server: &UtpSocket) -> io::Result<(UtpStream, UtpStream)> {
    let opening = async {
        let mut stream = client.connect(server.local_addr()).await?;
        stream.write_all(&[7; GREETING_BYTES]).await?;
        io::Result::Ok(stream)
    };
    let (there, here) = tokio::join!(opening, server.accept());
    let mut here = here?;
    here.read_exact(&mut [0; GREETING_BYTES]).await?;
    Ok((there?, here))
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    pages * 4096
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields behind the name, which is in brackets: utime and stime are the 12th and 13th of them.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SEC
}
