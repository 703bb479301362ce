//! What the kernel carries by itself: TCP, and datagrams in batches with as much flow control as keeps them from being lost.

use crate::cost::Cost;
use crate::cost::meter;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

const PIECE_BYTES: usize = 256 << 10;
/// What a full uTP packet of libutp carries, with its header, per datagram,
const SEGMENT_BYTES: usize = 1402;
/// datagrams per system call: 64 KB,
const SEGMENTS: usize = 46;
/// and calls under way before the receiver must have said that they arrived: what a default buffer holds.
const CALLS_UNDER_WAY: u64 = 2;
/// Credit that takes longer was lost, or what it is for was.
const PATIENCE: Duration = Duration::from_millis(100);

/// One way over kernel TCP.
pub async fn tcp(bytes: u64) -> io::Result<Cost> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let (there, here) = tokio::join!(TcpStream::connect(listener.local_addr()?), listener.accept());
    let (mut there, (mut here, _)) = (there?, here?);
    let done = meter(bytes);
    let sending = tokio::spawn(async move {
        let piece = vec![0x5a; PIECE_BYTES];
        let mut left = bytes;
        while left > 0 {
            let n = left.min(PIECE_BYTES as u64);
            there.write_all(&piece[..n as usize]).await?;
            left -= n;
        }
        there.shutdown().await
    });
    let (mut buffer, mut total) = (vec![0; PIECE_BYTES], 0);
    while total < bytes {
        total += here.read(&mut buffer).await? as u64;
    }
    let cost = done();
    sending.await??;
    Ok(cost)
}

/// A socket with the kernel's offloads.
struct Batched {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Batched {
    fn bind(buffers: Option<usize>) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let reference = socket2::SockRef::from(&socket);
        if let Some(bytes) = buffers {
            reference.set_recv_buffer_size(bytes)?;
            reference.set_send_buffer_size(bytes)?;
        }
        let state = UdpSocketState::new((&socket).into())?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket: UdpSocket::from_std(socket)?, state })
    }

    async fn send(&self, to: SocketAddr, contents: &[u8]) -> io::Result<()> {
        let segment_size = (contents.len() > SEGMENT_BYTES).then_some(SEGMENT_BYTES);
        let transmit = Transmit { destination: to, ecn: None, contents, segment_size, src_ip: None };
        loop {
            self.socket.writable().await?;
            let sent = self
                .socket
                .try_io(Interest::WRITABLE, || self.state.try_send((&self.socket).into(), &transmit));
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    /// Receives one batch into `buffer`; how many octets, and from whom.
    async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        loop {
            self.socket.readable().await?;
            let mut metas = [RecvMeta::default()];
            let mut slices = [IoSliceMut::new(buffer)];
            let received = self.socket.try_io(Interest::READABLE, || {
                self.state.recv((&self.socket).into(), &mut slices, &mut metas)
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other.map(|_| (metas[0].len, metas[0].addr)),
            }
        }
    }
}

/// One way over plain UDP. Each batch that arrives gives credit for the next; what is lost is counted as arrived by
/// nobody, and the sender sends until enough has arrived.
pub async fn udp(bytes: u64, buffers: Option<usize>) -> io::Result<Cost> {
    let (there, here) = (Batched::bind(buffers)?, Batched::bind(buffers)?);
    let target = here.socket.local_addr()?;
    let done = meter(bytes);
    let sending = tokio::spawn(async move {
        let batch = vec![0x5a; SEGMENTS * SEGMENT_BYTES];
        let (mut sent, mut credited, mut buffer) = (0_u64, 0_u64, [0; 64]);
        loop {
            while sent < credited + CALLS_UNDER_WAY {
                there.send(target, &batch).await?;
                sent += 1;
            }
            match tokio::time::timeout(PATIENCE, there.receive(&mut buffer)).await {
                Ok(received) => credited += received.map(|(len, _)| len as u64)?,
                Err(_) => credited = sent,
            }
        }
        #[expect(unreachable_code, reason = "says what the task's errors are")]
        io::Result::Ok(())
    });
    let (mut buffer, mut total, mut uncredited) = (vec![0; 65_536], 0, 0);
    while total < bytes {
        let (len, from) = here.receive(&mut buffer).await?;
        total += len as u64;
        uncredited += len;
        while uncredited >= SEGMENTS * SEGMENT_BYTES {
            uncredited -= SEGMENTS * SEGMENT_BYTES;
            here.send(from, &[0]).await?;
        }
    }
    sending.abort();
    Ok(done())
}
