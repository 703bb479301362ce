//! The flows: threads that have entered a namespace each.

use super::namespaces::{Namespaces, Place, RECEIVER};
use super::pattern::Pattern;
use cede_real::{SocketConfig, StreamConfig, UtpSocket};
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CHUNK_BYTES: usize = 64 << 10;
/// How often a flow that is blocked looks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);

/// A flow from the sender's namespace to the receiver's.
pub(crate) struct Bulk {
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Bulk {
    /// A uTP flow.
    pub fn utp(namespaces: &Namespaces, stream: &StreamConfig, pattern: Pattern) -> io::Result<Self> {
        let config = SocketConfig { stream: stream.clone(), ..SocketConfig::default() };
        let mut bulk = Self::new();
        let (tell, told) = mpsc::channel();
        let (received, there) = (Arc::clone(&bulk.received), config.clone());
        bulk.thread(namespaces.place("d"), move |stop| within(&stop, receive_utp(there, tell, received)));
        let Ok(address) = told.recv() else { return Err(bulk.why()) };
        bulk.thread(namespaces.place("s"), move |stop| within(&stop, send_utp(config, address, pattern)));
        Ok(bulk)
    }

    /// A kernel TCP flow to an address of the receiver's, with a congestion control that the kernel knows by this name.
    pub fn tcp(namespaces: &Namespaces, control: &str, to: Ipv4Addr, pattern: Pattern) -> io::Result<Self> {
        let mut bulk = Self::new();
        let (tell, told) = mpsc::channel();
        let received = Arc::clone(&bulk.received);
        bulk.thread(namespaces.place("d"), move |stop| receive_tcp(to, &tell, &received, &stop));
        let Ok(address) = told.recv() else { return Err(bulk.why()) };
        let control = control.to_string();
        bulk.thread(namespaces.place("s"), move |stop| send_tcp(address, &control, pattern, &stop));
        Ok(bulk)
    }

    fn new() -> Self {
        Self { received: Arc::default(), stop: Arc::default(), threads: Vec::new() }
    }

    fn thread(
        &mut self,
        place: Place,
        work: impl FnOnce(Arc<AtomicBool>) -> io::Result<()> + Send + 'static,
    ) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::spawn(move || place.go().and_then(|()| work(stop))));
    }

    /// Why it could not begin.
    fn why(&mut self) -> io::Error {
        let ended = self.threads.pop().and_then(|thread| thread.join().ok());
        ended.and_then(Result::err).unwrap_or_else(|| io::Error::other("a flow did not begin"))
    }

    /// Payload that has arrived.
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Why the flow has ended too soon, if it has. Its other end may end well for that very reason: all are asked.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.threads.iter().any(JoinHandle::is_finished).then(|| {
            self.stop.store(true, Ordering::Relaxed);
            let ends: Vec<_> = self.threads.drain(..).map(JoinHandle::join).collect();
            let error = ends.into_iter().find_map(|end| match end {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(_) => Some(io::Error::other("a flow has panicked")),
            });
            error.unwrap_or_else(|| io::Error::other("a flow has ended by itself"))
        })
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Runs a task in this thread's namespace until it ends or is to stop.
fn within(stop: &AtomicBool, task: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stopped = async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    };
    runtime.block_on(async {
        tokio::select! {
            ended = task => ended,
            stopped = stopped => stopped,
        }
    })
}

async fn receive_utp(
    config: SocketConfig,
    tell: mpsc::Sender<SocketAddr>,
    received: Arc<AtomicU64>,
) -> io::Result<()> {
    let socket = UtpSocket::bind_with((RECEIVER, 0), config).await?;
    let _ = tell.send(socket.local_addr());
    let mut stream = socket.accept().await?;
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        received.fetch_add(n as u64, Ordering::Relaxed);
    }
}

async fn send_utp(config: SocketConfig, to: SocketAddr, pattern: Pattern) -> io::Result<()> {
    let socket = UtpSocket::bind_with("0.0.0.0:0", config).await?;
    let mut stream = socket.connect(to).await?;
    let chunk = vec![0; CHUNK_BYTES];
    let began = Instant::now();
    for (at, mut left) in pattern.messages() {
        tokio::time::sleep(at.saturating_sub(began.elapsed())).await;
        while left > 0 {
            let bytes = left.min(CHUNK_BYTES as u64);
            stream.write_all(&chunk[..bytes as usize]).await?;
            left -= bytes;
        }
        stream.flush().await?;
    }
    Ok(())
}

fn receive_tcp(
    at: Ipv4Addr,
    tell: &mpsc::Sender<SocketAddr>,
    received: &AtomicU64,
    stop: &AtomicBool,
) -> io::Result<()> {
    let listener = TcpListener::bind((at, 0))?;
    let _ = tell.send(listener.local_addr()?);
    listener.set_nonblocking(true)?;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(LOOK),
            Err(error) => return Err(error),
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut buffer = vec![0; CHUNK_BYTES];
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => drop(received.fetch_add(n as u64, Ordering::Relaxed)),
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A connection; none where it is to stop first. Where no packet comes through the kernel goes on trying for two minutes.
fn connect(to: SocketAddr, stop: &AtomicBool) -> io::Result<Option<TcpStream>> {
    let mut connected = None;
    within(stop, async {
        connected = Some(tokio::net::TcpStream::connect(to).await?.into_std()?);
        Ok(())
    })?;
    connected.map(|stream| stream.set_nonblocking(false).map(|()| stream)).transpose()
}

fn send_tcp(to: SocketAddr, control: &str, pattern: Pattern, stop: &AtomicBool) -> io::Result<()> {
    let Some(mut stream) = connect(to, stop)? else { return Ok(()) };
    let socket = socket2::SockRef::from(&stream);
    use_control(&socket, control)?;
    // At its end the flow is gone at once, and not with the megabytes that the kernel has taken.
    socket.set_linger(Some(Duration::ZERO))?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(LOOK))?;
    let chunk = vec![0; CHUNK_BYTES];
    let began = Instant::now();
    for (at, mut left) in pattern.messages() {
        while !stop.load(Ordering::Relaxed) && began.elapsed() < at {
            thread::sleep(at.saturating_sub(began.elapsed()).min(LOOK));
        }
        while left > 0 && !stop.load(Ordering::Relaxed) {
            match stream.write(&chunk[..left.min(CHUNK_BYTES as u64) as usize]) {
                Ok(n) => left -= n as u64,
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn use_control(socket: &socket2::Socket, name: &str) -> io::Result<()> {
    let unknown = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("this kernel's TCP has no congestion control `{name}`"))
        }
        _ => error,
    };
    socket.set_tcp_congestion(name.as_bytes()).map_err(unknown)
}

#[cfg(not(target_os = "linux"))]
fn use_control(_: &socket2::Socket, _: &str) -> io::Result<()> {
    Ok(())
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
