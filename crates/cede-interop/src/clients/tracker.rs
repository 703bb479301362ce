//! A tracker (BEP 3, 7, 23) that knows one peer and names it to whoever asks.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A running tracker; ends when dropped.
pub struct Tracker {
    /// What a torrent names it by.
    pub url: String,
    task: JoinHandle<()>,
    asked: watch::Receiver<bool>,
}

impl Tracker {
    /// Starts one; `peer` may still be unknown, and comes by the channel.
    pub(super) async fn start(peer: watch::Receiver<Option<SocketAddr>>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}/announce", listener.local_addr()?);
        let (asks, asked) = watch::channel(false);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let peer = *peer.borrow();
                // A client that does not listen to the answer is no concern of the tracker's.
                let _ = answer(stream, peer).await;
                asks.send_replace(true);
            }
        });
        Ok(Self { url, task, asked })
    }

    /// Waits until a client has asked: it runs its torrent then, and not before.
    pub(super) async fn has_been_asked(&self) {
        let _ = self.asked.clone().wait_for(|&asked| asked).await;
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, peer: Option<SocketAddr>) -> io::Result<()> {
    let mut question = vec![0; 4096];
    let _ = stream.read(&mut question).await?;
    let mut body = b"d8:intervali60e".to_vec();
    if let Some(peer) = peer {
        let (key, octets) = match peer.ip() {
            IpAddr::V4(ip) => ("5:peers6:", ip.octets().to_vec()),
            IpAddr::V6(ip) => ("5:peers0:6:peers618:", ip.octets().to_vec()),
        };
        body.extend([key.as_bytes(), &octets, &peer.port().to_be_bytes()].concat());
    }
    body.push(b'e');
    let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), &body].concat()).await?;
    stream.shutdown().await
}
