//! Idle connections: what each costs in memory and CPU time.
//!
//! `cargo bench -p cede-real --bench idle [-- CONNECTIONS]`; 10,000 unless given, opened from ten sockets to one, all in
//! this process. Each has carried 68 octets and idles with both its streams held. Memory is the growth of the resident set
//! over both ends of all connections, once memory that carrying data took has been given back; then what a task costs that
//! waits to read, one for each pair; then the CPU time of this process while all of them idle, and what it sends meanwhile.
//! Both are of both ends: of 20,000 connections for 10,000. By `/proc/self`, so there is nothing elsewhere than on Linux.

use cede_real::{SocketConfig, UtpSocket, UtpStream};
use cede_utp::Limits;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CLIENTS: usize = 10;
const GREETING_BYTES: usize = 68;
/// Twice the keepalive of 29 s and more, so that its cost is part of it.
const WATCHED: Duration = Duration::from_secs(60);

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
    watch(&clients, &server).await;
    Ok(())
}

/// What idling costs, both ends together.
async fn watch(clients: &[UtpSocket], server: &UtpSocket) {
    let sent = || {
        let all = clients.iter().chain([server]).map(UtpSocket::statistics);
        all.fold((0, 0), |(datagrams, calls), one| (datagrams + one.datagrams_sent, calls + one.send_calls))
    };
    let (cpu, before) = (cpu_seconds(), sent());
    tokio::time::sleep(WATCHED).await;
    let (used, after, seconds) = (cpu_seconds() - cpu, sent(), WATCHED.as_secs_f64());
    println!("{:.4} % of a processor while they idle, keepalives included", 100.0 * used / seconds);
    let per_second = |count: u64| count as f64 / seconds;
    println!("{:.1} datagrams a second", per_second(after.0 - before.0));
    println!("{:.1} calls a second that send them", per_second(after.1 - before.1));
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

/// To the nanosecond, as the scheduler counts it, of all threads.
fn cpu_seconds() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_thread = |path: std::path::PathBuf| -> Option<f64> {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    threads.filter_map(|thread| of_thread(thread.path())).sum::<f64>() / 1e9
}
