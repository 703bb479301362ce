//! `cede proxy`: TCP connections of other programs over uTP.

use super::args::ProxyArgs;
use super::{numbers, stream_config, target, unbound, unreached};
use crate::failure::Failure;
use crate::screen;
use cede_carry::relay::{self, RelayError, Traffic};
use cede_carry::{DEFAULT_PORT, DialError, Line, Link, Stop, Target, dial};
use cede_real::{SocketConfig, StreamConfig, UtpSocket, UtpStream};
use cede_units::{Duration, Rate};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Carries connections until the end is asked for.
pub fn proxy(args: &ProxyArgs) -> Result<(), Failure> {
    let (_, config) = stream_config(&args.controller)?;
    let to = target(&args.to, DEFAULT_PORT)?;
    super::run(async |stop| match (args.listen, args.utp_listen) {
        (Some(address), _) => entrance(args, address, to, config, stop).await,
        (None, Some(address)) => exit(args, address, &to, config, stop).await,
        (None, None) => Err(Failure::Usage("give --listen or --utp-listen".to_owned())),
    })
}

/// What both ends have in common: the books, and what is said of them.
struct Office {
    traffic: Arc<Traffic>,
    json: bool,
    interval: Option<std::time::Duration>,
    next: Instant,
    before: Totals,
    connections: JoinSet<()>,
    /// So many at once.
    most: usize,
}

/// The books at one instant.
#[derive(Clone, Copy, PartialEq, Default)]
struct Totals {
    to_utp_bytes: u64,
    to_tcp_bytes: u64,
    connections: u64,
    failures: u64,
}

impl Office {
    fn new(args: &ProxyArgs) -> Self {
        let interval = (!args.interval.is_zero())
            .then(|| std::time::Duration::from_secs_f64(args.interval.as_secs_f64().max(0.05)));
        let next = Instant::now() + interval.unwrap_or_default();
        let (traffic, before, connections) = Default::default();
        let (json, most) = (args.json, usize::from(args.max_connections));
        Self { traffic, json, interval, next, before, connections, most }
    }

    /// What there is to do beside taking up connections.
    async fn keep_house(&mut self) {
        let (interval, next) = (self.interval, self.next);
        let due = async {
            match interval {
                Some(_) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(_) = self.connections.join_next(), if !self.connections.is_empty() => {}
            () = due => self.tell(),
        }
    }

    /// Takes up a program's connection, or resets it where there are enough.
    fn take_tcp(&mut self, tcp: TcpStream, peer: SocketAddr, dialer: &Arc<Dialer>) {
        if self.is_full(peer) {
            let _ = tcp.set_zero_linger();
            return;
        }
        let (dialer, traffic) = (Arc::clone(dialer), Arc::clone(&self.traffic));
        self.connections.spawn(async move {
            let outcome = dialer.carry(tcp, &traffic).await;
            account(outcome, peer, &traffic);
        });
    }

    /// Takes up the other proxy's stream, or resets it where there are enough.
    fn take_utp(&mut self, stream: UtpStream, server: &Arc<str>) {
        let peer = stream.peer_addr();
        if self.is_full(peer) {
            stream.abort();
            return;
        }
        let (server, traffic) = (Arc::clone(server), Arc::clone(&self.traffic));
        self.connections.spawn(async move {
            let outcome = relay::leave(Link::new(stream), &server, &traffic).await;
            account(outcome, peer, &traffic);
        });
    }

    fn is_full(&self, peer: SocketAddr) -> bool {
        let is_full = self.connections.len() >= self.most;
        if is_full {
            screen::mention(&format!("{peer}: reset, {} are open already\n", self.connections.len()));
        }
        is_full
    }

    fn totals(&self) -> Totals {
        Totals {
            to_utp_bytes: self.traffic.to_utp_bytes.load(Relaxed),
            to_tcp_bytes: self.traffic.to_tcp_bytes.load(Relaxed),
            connections: self.traffic.connections.load(Relaxed),
            failures: self.traffic.failures.load(Relaxed),
        }
    }

    /// A line, where there is news, and in JSON always.
    fn tell(&mut self) {
        let now = self.totals();
        let look = Look::new(now, self.before, self.interval.unwrap_or_default(), &self.traffic);
        if self.json {
            let _ = screen::print_json_line(&look.document());
        } else if now != self.before {
            screen::mention(&look.line());
        }
        self.before = now;
        self.next = Instant::now() + self.interval.unwrap_or_default();
    }

    fn farewell(&mut self) -> Failure {
        self.tell();
        let now = self.totals();
        let moved = numbers::amount(now.to_utp_bytes + now.to_tcp_bytes);
        Failure::Interrupted(format!("{} connections were carried, {moved}", now.connections))
    }

    fn begins(&self, text: &str, address: SocketAddr) {
        screen::mention(&format!("{text}\n"));
        if self.json {
            let _ = screen::print_json_line(&json!({ "event": "waiting", "address": address.to_string() }));
        }
    }
}

/// What is told of an interval.
struct Look {
    now: Totals,
    to_utp: Rate,
    to_tcp: Rate,
    open: usize,
    /// Means over the streams that are open, where any are.
    rtt: Option<Duration>,
    queueing_delay: Option<Duration>,
}

impl Look {
    fn new(now: Totals, before: Totals, span: std::time::Duration, traffic: &Traffic) -> Self {
        let snapshots: Vec<_> = traffic.lines().iter().filter_map(Line::snapshot).collect();
        let queues = snapshots.iter().filter_map(|snapshot| snapshot.controller.queueing_delay);
        let span = Duration::from_secs_f64(span.as_secs_f64());
        Self {
            now,
            to_utp: Rate::from_bytes_over(now.to_utp_bytes - before.to_utp_bytes, span),
            to_tcp: Rate::from_bytes_over(now.to_tcp_bytes - before.to_tcp_bytes, span),
            open: snapshots.len(),
            rtt: mean(snapshots.iter().map(|snapshot| snapshot.srtt)),
            queueing_delay: mean(queues),
        }
    }

    fn document(&self) -> Value {
        json!({
            "event": "interval",
            "open": self.open,
            "connections": self.now.connections,
            "failures": self.now.failures,
            "to_utp_bytes": self.now.to_utp_bytes,
            "to_tcp_bytes": self.now.to_tcp_bytes,
            "to_utp_bits_per_second": self.to_utp.bits_per_sec(),
            "to_tcp_bits_per_second": self.to_tcp.bits_per_sec(),
            "rtt_ms": self.rtt.map(Duration::as_millis_f64),
            "queueing_delay_ms": self.queueing_delay.map(Duration::as_millis_f64),
        })
    }

    fn line(&self) -> String {
        let span = |span: Option<Duration>| span.map_or("-".to_owned(), numbers::span);
        format!(
            "{} open, {} so far, {} broken; to uTP {} ({}), to TCP {} ({}); RTT {}, queue {}\n",
            self.open,
            self.now.connections,
            self.now.failures,
            numbers::amount(self.now.to_utp_bytes),
            numbers::rate(self.to_utp),
            numbers::amount(self.now.to_tcp_bytes),
            numbers::rate(self.to_tcp),
            span(self.rtt),
            span(self.queueing_delay),
        )
    }
}

fn mean(spans: impl Iterator<Item = Duration>) -> Option<Duration> {
    let (sum, count) = spans.fold((0_u64, 0_u64), |(sum, count), span| (sum + span.as_nanos(), count + 1));
    sum.checked_div(count).map(Duration::from_nanos)
}

/// Says why a connection broke, where that is news.
fn account(outcome: Result<(), RelayError>, peer: SocketAddr, traffic: &Traffic) {
    if let Err(error) = outcome {
        traffic.failures.fetch_add(1, Relaxed);
        screen::mention(&format!("{peer}: {error}\n"));
    }
}

/// From TCP to the other proxy.
async fn entrance(
    args: &ProxyArgs,
    address: SocketAddr,
    to: Target,
    config: StreamConfig,
    mut stop: Stop,
) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await.map_err(|error| untaken(address, &error))?;
    let address = listener.local_addr().unwrap_or(address);
    let mut office = Office::new(args);
    office.begins(&format!("TCP connections to {address} go over uTP to {to}"), address);
    let dialer = Arc::new(Dialer { to, config, known: tokio::sync::Mutex::new(None) });
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((tcp, peer)) => office.take_tcp(tcp, peer, &dialer),
                // Such as too many open files: it passes, and asking again at once would not help.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            },
            () = office.keep_house() => {}
            () = stop.asked() => return Err(office.farewell()),
        }
    }
}

/// Opens streams to the other proxy, all from one socket.
struct Dialer {
    to: Target,
    config: StreamConfig,
    /// The socket, and the address that answered last.
    known: tokio::sync::Mutex<Option<(Arc<UtpSocket>, SocketAddr)>>,
}

impl Dialer {
    async fn carry(&self, tcp: TcpStream, traffic: &Traffic) -> Result<(), RelayError> {
        match self.link().await {
            Ok(link) => relay::enter(tcp, link, traffic).await,
            Err(error) => {
                let _ = tcp.set_zero_linger();
                let failure = unreached(&error, "cede proxy --utp-listen");
                Err(RelayError::Unreached(failure.text().unwrap_or_default().to_owned()))
            }
        }
    }

    /// A stream from the socket that is there, or from a new one where the name has another address by now.
    async fn link(&self) -> Result<Link, DialError> {
        let known = self.known.lock().await.clone();
        if let Some((socket, peer)) = known {
            if let Ok(stream) = socket.connect_with(peer, &self.config).await {
                return Ok(Link::new(stream));
            }
            *self.known.lock().await = None;
        }
        let (socket, stream) = dial(&self.to, &self.config).await?;
        *self.known.lock().await = Some((Arc::new(socket), stream.peer_addr()));
        Ok(Link::new(stream))
    }
}

/// From the other proxy to a TCP server.
async fn exit(
    args: &ProxyArgs,
    address: SocketAddr,
    to: &Target,
    stream: StreamConfig,
    mut stop: Stop,
) -> Result<(), Failure> {
    let config = SocketConfig { stream, ..SocketConfig::default() };
    let bound = UtpSocket::bind_with(address, config).await;
    let socket = bound.map_err(|error| unbound(address, &error))?;
    let mut office = Office::new(args);
    let address = socket.local_addr();
    office.begins(&format!("uTP streams to {address} go over TCP to {to}"), address);
    let server: Arc<str> = to.to_string().into();
    loop {
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok(stream) => office.take_utp(stream, &server),
                Err(error) => return Err(Failure::Failed(format!("the socket is gone: {error}"))),
            },
            () = office.keep_house() => {}
            () = stop.asked() => return Err(office.farewell()),
        }
    }
}

fn untaken(address: SocketAddr, error: &std::io::Error) -> Failure {
    let port = address.port();
    match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::Failed(format!(
            "TCP port {port} is taken; give another (0 for a free one), or see who has it: ss -tlnp 'sport = :{port}'"
        )),
        std::io::ErrorKind::PermissionDenied => {
            Failure::NotPermitted(format!("TCP port {port} is not permitted: {error}; take one above 1023"))
        }
        _ => Failure::Failed(format!("cannot wait at {address} (TCP): {error}")),
    }
}
