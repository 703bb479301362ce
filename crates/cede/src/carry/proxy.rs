//! `cede proxy`: TCP connections of other programs over uTP.

use super::args::ProxyArgs;
use super::{numbers, send::print, stream_config, target, unbound, unreached};
use crate::failure::Failure;
use crate::screen::Screen;
use cede_carry::relay::{self, RelayError, Traffic};
use cede_carry::{DEFAULT_PORT, DialError, Link, Stop, Target, dial};
use cede_real::{SocketConfig, StreamConfig, UtpSocket};
use cede_units::{Duration, Rate};
use serde_json::json;
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
    screen: Screen,
    json: bool,
    interval: Option<std::time::Duration>,
    next: Instant,
    before: Totals,
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
        let screen = Screen::new(true);
        Self { traffic: Arc::default(), screen, json: args.json, interval, next, before: Totals::default() }
    }

    /// When the next line is due.
    async fn due(&self) {
        match self.interval {
            Some(_) => sleep_until(self.next).await,
            None => std::future::pending().await,
        }
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
        let (now, before) = (self.totals(), self.before);
        let lines = self.traffic.lines();
        let snapshots: Vec<_> = lines.iter().filter_map(cede_carry::Line::snapshot).collect();
        let count = snapshots.len() as u64;
        let mean = |spans: u64| Duration::from_nanos(spans.checked_div(count).unwrap_or(0));
        let rtt = mean(snapshots.iter().map(|snapshot| snapshot.srtt.as_nanos()).sum());
        let queues = snapshots.iter().filter_map(|snapshot| snapshot.controller.queueing_delay);
        let queue = mean(queues.map(Duration::as_nanos).sum());
        let span = self.interval.map_or(Duration::ZERO, |span| Duration::from_secs_f64(span.as_secs_f64()));
        let rates = [
            Rate::from_bytes_over(now.to_utp_bytes - before.to_utp_bytes, span),
            Rate::from_bytes_over(now.to_tcp_bytes - before.to_tcp_bytes, span),
        ];
        if self.json {
            let _ = print(
                &json!({
                    "event": "interval",
                    "open": lines.len(),
                    "connections": now.connections,
                    "failures": now.failures,
                    "to_utp_bytes": now.to_utp_bytes,
                    "to_tcp_bytes": now.to_tcp_bytes,
                    "to_utp_bits_per_second": rates[0].bits_per_sec(),
                    "to_tcp_bits_per_second": rates[1].bits_per_sec(),
                    "rtt_ms": (count > 0).then(|| rtt.as_millis_f64()),
                    "queueing_delay_ms": (count > 0).then(|| queue.as_millis_f64()),
                }),
                false,
            );
        } else if now != before {
            self.screen.say(&format!(
                "{} open, {} so far, {} broken; to uTP {} ({}), to TCP {} ({}); RTT {}, queue {}\n",
                lines.len(),
                now.connections,
                now.failures,
                numbers::amount(now.to_utp_bytes),
                numbers::rate(rates[0]),
                numbers::amount(now.to_tcp_bytes),
                numbers::rate(rates[1]),
                numbers::span(rtt),
                numbers::span(queue),
            ));
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
        self.screen.say(&format!("{text}\n"));
        if self.json {
            let _ = print(&json!({ "event": "waiting", "address": address.to_string() }), false);
        }
    }
}

/// Says why a connection broke, where that is news.
fn account(outcome: Result<(), RelayError>, peer: SocketAddr, traffic: &Traffic, screen: Screen) {
    if let Err(error) = outcome {
        traffic.failures.fetch_add(1, Relaxed);
        screen.say(&format!("{peer}: {error}\n"));
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
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((tcp, peer)) if connections.len() < usize::from(args.max_connections) => {
                    let (dialer, traffic, screen) = (Arc::clone(&dialer), Arc::clone(&office.traffic), office.screen);
                    connections.spawn(async move {
                        let outcome = dialer.carry(tcp, &traffic).await;
                        account(outcome, peer, &traffic, screen);
                    });
                }
                Ok((tcp, peer)) => {
                    let _ = tcp.set_zero_linger();
                    office.screen.say(&format!("{peer}: reset, {} are open already\n", connections.len()));
                }
                // Such as too many open files: it passes, and asking again at once would not help.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = office.due() => office.tell(),
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
        if let Some((socket, peer)) = known
            && let Ok(stream) = socket.connect_with(peer, &self.config).await
        {
            return Ok(Link::new(stream));
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
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.accept() => {
                let stream = accepted.map_err(|error| Failure::Failed(format!("the socket is gone: {error}")))?;
                if connections.len() >= usize::from(args.max_connections) {
                    stream.abort();
                    continue;
                }
                let (peer, server) = (stream.peer_addr(), Arc::clone(&server));
                let (traffic, screen) = (Arc::clone(&office.traffic), office.screen);
                connections.spawn(async move {
                    let outcome = relay::leave(Link::new(stream), &server, &traffic).await;
                    account(outcome, peer, &traffic, screen);
                });
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = office.due() => office.tell(),
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
