//! An echo over uTP: a server that sends back whatever arrives, and a client that counts.
//!
//! `cargo run -p cede-real --example echo` does both over the loopback; `... echo serve [::]:7007` and
//! `... echo call 192.0.2.1:7007` do one each.

use cede_real::{UtpSocket, UtpStream};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MESSAGE_BYTES: usize = 1_000_000;

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let server = UtpSocket::bind("127.0.0.1:0").await?;
            let addr = server.local_addr();
            tokio::spawn(serve(server));
            call(addr).await
        }
        ["serve", addr] => serve(UtpSocket::bind(addr).await?).await,
        ["call", addr] => call(addr.parse().map_err(io::Error::other)?).await,
        _ => Err(io::Error::other("usage: echo [serve ADDRESS:PORT | call ADDRESS:PORT]")),
    }
}

async fn serve(socket: UtpSocket) -> io::Result<()> {
    println!("listening on {}", socket.local_addr());
    loop {
        let stream = socket.accept().await?;
        let peer = stream.peer_addr();
        tokio::spawn(async move {
            match echo(stream).await {
                Ok(bytes) => println!("{peer}: {bytes} octets"),
                Err(error) => eprintln!("{peer}: {error}"),
            }
        });
    }
}

async fn echo(stream: UtpStream) -> io::Result<u64> {
    let (mut from, mut to) = stream.into_split();
    let bytes = tokio::io::copy(&mut from, &mut to).await?;
    to.shutdown().await?;
    Ok(bytes)
}

async fn call(server: SocketAddr) -> io::Result<()> {
    let anything = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UtpSocket::bind(anything).await?;
    let (mut from, mut to) = socket.connect(server).await?.into_split();
    let begun = to.reading();
    let writing = tokio::spawn(async move {
        to.write_all(&vec![b'u'; MESSAGE_BYTES]).await?;
        to.shutdown().await
    });
    let mut heard = Vec::new();
    from.read_to_end(&mut heard).await?;
    writing.await??;
    println!("{} octets came back at {}", heard.len(), from.reading().receive_rate(&begun));
    if let Some(snapshot) = from.snapshot() {
        println!("RTT {}, window {} octets", snapshot.srtt, snapshot.cwnd_bytes);
        println!("queueing delay {:?}", snapshot.controller.queueing_delay);
    }
    Ok(())
}
