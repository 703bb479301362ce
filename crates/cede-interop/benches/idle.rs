//! Idle connections beside others: what each costs in memory and CPU time.
//!
//! `cargo bench -p cede-interop --bench idle [-- CONNECTIONS]`; 10,000 unless given, opened from ten sockets to one. Each
//! implementation runs in a child process of its own that is both ends. Each connection has carried 68 octets, and one end
//! of it waits to read. Memory is the growth of the resident set, for each end; limits and patience of
//! `librqbit-utp` (128 connections, 10 s) are raised, everything else is as it comes. Linux only.

use cede_interop::stack::{Node, Stack, Stream};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::Duration;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const STACKS: [Stack; 3] = [Stack::Cede, Stack::Rqbit, Stack::UtpRs];
const CLIENTS: usize = 10;
const GREETING: [u8; 68] = [0x13; 68];
/// For memory that carrying data took to be given back.
const SETTLING: Duration = Duration::from_secs(5);
/// Longer than the keepalive of 29 s, so that its cost is part of it.
const WATCHED: Duration = Duration::from_secs(40);
const TICKS_PER_SEC: f64 = 100.0;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench").peekable();
    let child = words.next_if(|word| word == "child").and_then(|_| words.next()).and_then(|n| n.parse().ok());
    let connections: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(10_000);
    match child {
        Some(number) => run(STACKS[usize::min(number, 2)], connections),
        None => all(connections),
    }
}

fn all(connections: usize) {
    println!("| {connections} idle connections | octets for each end | CPU ms/s |\n|---|---:|---:|");
    for (number, stack) in STACKS.iter().enumerate() {
        let exe = std::env::current_exe().expect("this process has a file");
        let arguments = ["child".to_owned(), number.to_string(), connections.to_string()];
        let output = Command::new(exe).args(arguments).output();
        let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        println!("| {} | {} |", stack.name(), String::from_utf8_lossy(&text).trim());
    }
}

fn run(stack: Stack, connections: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(measure(stack, connections))) {
        Ok((octets, cpu)) => println!("{octets:.0} | {cpu:.2}"),
        Err(error) => eprintln!("failed: {error} | "),
    }
    // Without saying goodbye ten thousand times.
    std::process::exit(0);
}

async fn measure(stack: Stack, connections: usize) -> io::Result<(f64, f64)> {
    let server = bind(stack, connections).await?;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(bind(stack, connections).await?);
    }
    // What the first connection costs the runtime and the allocator is no connection's cost.
    let first = open(&clients[0], &server).await?;
    let before = resident_bytes();
    let mut held = vec![first];
    for i in 0..connections {
        held.push(open(&clients[i % CLIENTS], &server).await?);
    }
    tokio::time::sleep(SETTLING).await;
    let octets = resident_bytes().saturating_sub(before) as f64 / connections as f64 / 2.0;
    let cpu = cpu_seconds();
    tokio::time::sleep(WATCHED).await;
    Ok((octets, (cpu_seconds() - cpu) * 1000.0 / WATCHED.as_secs_f64()))
}

async fn bind(stack: Stack, connections: usize) -> io::Result<Node> {
    match stack {
        Stack::Cede => {
            let room = connections + 1;
            let limits = cede_utp::Limits { connections: room, ..cede_utp::Limits::default() };
            Node::ours(LOOPBACK, cede_real::SocketConfig { limits, ..Default::default() }).await
        }
        Stack::Rqbit => Node::patient_rqbit(LOOPBACK, connections + 1).await,
        Stack::UtpRs => Node::bind(stack, LOOPBACK).await,
    }
}

/// One connection that has carried a greeting, the far end of which waits to read.
async fn open(client: &Node, server: &Node) -> io::Result<Stream> {
    let greeted = async {
        let mut stream = client.open(server.addr()).await?;
        stream.write(&GREETING).await.map(|()| stream)
    };
    let (there, here) = tokio::join!(greeted, server.accept());
    let mut here = here?;
    tokio::spawn(async move { here.idle().await });
    there
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SEC
}
