//! A file over uTP, checked end to end: its length first, then its octets, then their SHA-256, and back the receiver's word.
//!
//! `cargo run -p cede-real --example send_file` sends its own source over the loopback; `... send_file recv [::]:7007 FILE`
//! and `... send_file send FILE 192.0.2.1:7007` do one each.

use cede_real::{UtpSocket, UtpStream};
use sha2::{Digest, Sha256};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const PIECE_BYTES: usize = 128 << 10;
const DIGEST_BYTES: usize = 32;
/// The receiver's word for a file that arrived as it left.
const GOOD: u8 = 1;

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => over_the_loopback().await,
        ["recv", addr, file] => receive(&UtpSocket::bind(addr).await?, Path::new(file)).await,
        ["send", file, addr] => send(Path::new(file), addr.parse().map_err(io::Error::other)?).await,
        _ => Err(io::Error::other("usage: send_file [recv ADDRESS:PORT FILE | send FILE ADDRESS:PORT]")),
    }
}

async fn over_the_loopback() -> io::Result<()> {
    let copy = std::env::temp_dir().join(format!("cede-send-file-{}", std::process::id()));
    let receiver = UtpSocket::bind("127.0.0.1:0").await?;
    let addr = receiver.local_addr();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/send_file.rs");
    let (sent, received) = tokio::join!(send(&source, addr), receive(&receiver, &copy));
    let same = std::fs::read(&source)? == std::fs::read(&copy)?;
    std::fs::remove_file(&copy)?;
    assert!(same);
    sent.and(received)
}

async fn send(file: &Path, to: SocketAddr) -> io::Result<()> {
    let mut from = File::open(file).await?;
    let len = from.metadata().await?.len();
    let socket = UtpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).await?;
    let mut stream: UtpStream = socket.connect(to).await?;
    stream.write_all(&len.to_be_bytes()).await?;
    let digest = copy(&mut from, &mut stream, len).await?;
    stream.write_all(&digest).await?;
    stream.shutdown().await?;
    // Only now is it known that all has arrived: `shutdown` does not wait.
    match stream.read_u8().await? {
        GOOD => println!("{len} octets arrived; {:?}", stream.statistics()),
        _ => return Err(io::Error::other("what arrived is not what was sent")),
    }
    Ok(())
}

async fn receive(socket: &UtpSocket, file: &Path) -> io::Result<()> {
    let mut stream = socket.accept().await?;
    let len = stream.read_u64().await?;
    let mut to = File::create(file).await?;
    let found = copy(&mut stream, &mut to, len).await?;
    to.flush().await?;
    let mut told = [0; DIGEST_BYTES];
    stream.read_exact(&mut told).await?;
    stream.write_u8(if found == told { GOOD } else { 0 }).await?;
    // Ends our direction too; the socket sees to it that the word arrives, after the stream is dropped as well.
    stream.shutdown().await?;
    if found == told { Ok(()) } else { Err(io::Error::other("what arrived is not what was sent")) }
}

/// Moves `len` octets and returns their digest.
async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    len: u64,
) -> io::Result<[u8; DIGEST_BYTES]> {
    let (mut digest, mut left, mut piece) = (Sha256::new(), len, vec![0; PIECE_BYTES]);
    while left > 0 {
        let room = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let n = from.read(&mut piece[..room]).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        digest.update(&piece[..n]);
        to.write_all(&piece[..n]).await?;
        left -= n as u64;
    }
    Ok(digest.finalize().into())
}
