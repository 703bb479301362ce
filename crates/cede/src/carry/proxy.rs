//! `cede proxy`: TCP connections of other programs over uTP.

use super::args::ProxyArgs;
use super::{key, listen, numbers, stream_config, target, unreached};
use crate::failure::Failure;
use crate::screen;
use cede_carry::relay::{self, RelayError, Traffic};
use cede_carry::{DEFAULT_PORT, DialError, Door, Key, Line, Link, Stop, Target, dial};
use cede_real::{StreamConfig, UtpSocket, UtpStream};
use cede_units::{Duration, Rate};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Carries connections until the end is asked for.
pub fn proxy(args: &ProxyArgs) -> Result<(), Failure> {
    let (_, config) = stream_config(&args.controller)?;
    let to = target(&args.to, DEFAULT_PORT)?;
    let key = key::load(&args.key)?;
    super::run(async |stop| match (args.listen, args.utp_listen) {
        (Some(address), _) => entrance(args, address, Way { to, config, key }, stop).await,
        (None, Some(place)) => exit(args, place, Way { to, config, key }, stop).await,
        (None, None) => Err(Failure::Usage("give --listen or --utp-listen".to_owned())),
    })
}

/// Whereto, and how.
struct Way {
    to: Target,
    config: StreamConfig,
    key: Option<Key>,
}

/// What both ends have in common: the books, and what is said of them.
struct Office {
    traffic: Arc<Traffic>,
    json: bool,
    interval: Option<std::time::Duration>,
    next: Instant,
    before: Totals,
    /// When that was.
    told: Instant,
    connections: JoinSet<()>,
    /// Places for connections; whoever has not shown a key yet has none.
    places: Arc<Semaphore>,
    is_protected: bool,
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
    fn new(args: &ProxyArgs, key: Option<&Key>) -> Self {
        let interval = (!args.interval.is_zero())
            .then(|| std::time::Duration::from_secs_f64(args.interval.as_secs_f64().max(0.05)));
        let told = Instant::now();
        let next = told + interval.unwrap_or_default();
        let (traffic, before, connections) = Default::default();
        let (json, is_protected) = (args.json, key.is_some());
        let places = Arc::new(Semaphore::new(usize::from(args.max_connections)));
        Self { traffic, json, interval, next, before, told, connections, places, is_protected }
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
        relay::break_off_when_dropped(&tcp);
        let Some(place) = take_place(&self.places, peer) else { return };
        let (dialer, traffic) = (Arc::clone(dialer), Arc::clone(&self.traffic));
        self.connections.spawn(async move {
            let outcome = dialer.carry(tcp, &traffic).await;
            account(outcome, peer, &traffic);
            drop(place);
        });
    }

    /// Takes up the other proxy's stream once it has shown the key, or resets it where there are enough.
    fn take_utp(&mut self, stream: UtpStream, door: &Arc<Door>, server: &Arc<str>) {
        let peer = stream.peer_addr();
        let (door, server, traffic) = (Arc::clone(door), Arc::clone(server), Arc::clone(&self.traffic));
        let places = Arc::clone(&self.places);
        self.connections.spawn(async move {
            let line = match door.admit(stream).await {
                Ok(line) => line,
                Err(error) => return account(Err(error.into()), peer, &traffic),
            };
            let Some(_place) = take_place(&places, peer) else { return line.abort() };
            let outcome = relay::leave(Link::new(line), &server, &traffic).await;
            account(outcome, peer, &traffic);
        });
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
        // The last one before the end is shorter than the others.
        let look = Look::new(now, self.before, self.told.elapsed(), &self.traffic);
        if self.json {
            screen::report_json_line(&look.document(self.is_protected));
        } else if now != self.before {
            screen::mention(&look.line());
        }
        (self.before, self.told) = (now, Instant::now());
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
            let address = address.to_string();
            screen::report_json_line(
                &json!({ "event": "waiting", "address": address, "protected": self.is_protected }),
            );
        }
    }
}

/// A connection's place, where one is free.
fn take_place(places: &Arc<Semaphore>, peer: SocketAddr) -> Option<OwnedSemaphorePermit> {
    let place = Arc::clone(places).try_acquire_owned().ok();
    if place.is_none() {
        screen::mention(&format!("{peer}: reset, so many are open already as --max-connections allows\n"));
    }
    place
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

    fn document(&self, is_protected: bool) -> Value {
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
            "protected": is_protected,
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
async fn entrance(args: &ProxyArgs, address: SocketAddr, way: Way, mut stop: Stop) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await.map_err(|error| untaken(address, &error))?;
    let address = listener.local_addr().unwrap_or(address);
    let mut office = Office::new(args, way.key.as_ref());
    let under = key::under(way.key.as_ref());
    office.begins(&format!("TCP connections to {address} go over uTP to {}{under}", way.to), address);
    let dialer = Arc::new(Dialer { way, known: tokio::sync::Mutex::new(None) });
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
    way: Way,
    /// The socket, and the address that answered last.
    known: tokio::sync::Mutex<Option<(Arc<UtpSocket>, SocketAddr)>>,
}

impl Dialer {
    async fn carry(&self, tcp: TcpStream, traffic: &Traffic) -> Result<(), RelayError> {
        relay::enter(tcp, self.link().await?, traffic).await
    }

    /// A link over a stream of its own.
    async fn link(&self) -> Result<Link, RelayError> {
        let stream = self.stream().await.map_err(|error| {
            let failure = unreached(&error, "cede proxy --utp-listen");
            RelayError::Unreached(failure.text().unwrap_or_default().to_owned())
        })?;
        Ok(Link::new(Line::call(stream, self.way.key.as_ref()).await?))
    }

    /// A stream from the socket that is there, or from a new one where the name has another address by now.
    async fn stream(&self) -> Result<UtpStream, DialError> {
        let known = self.known.lock().await.clone();
        if let Some((socket, peer)) = known {
            if let Ok(stream) = socket.connect_with(peer, &self.way.config).await {
                return Ok(stream);
            }
            *self.known.lock().await = None;
        }
        let (socket, stream) = dial(&self.way.to, &self.way.config).await?;
        *self.known.lock().await = Some((Arc::new(socket), stream.peer_addr()));
        Ok(stream)
    }
}

/// From the other proxy to a TCP server.
async fn exit(
    args: &ProxyArgs,
    (bind, port): (Option<IpAddr>, u16),
    way: Way,
    mut stop: Stop,
) -> Result<(), Failure> {
    // Without a key whoever reaches the port reaches the server: only who names an address opens it to others.
    let loopback = way.key.is_none().then_some(IpAddr::from(Ipv4Addr::LOCALHOST));
    let socket = listen(bind.or(loopback), port, way.config).await?;
    let mut office = Office::new(args, way.key.as_ref());
    let (address, to, under) = (socket.local_addr(), way.to, key::under(way.key.as_ref()));
    office.begins(&format!("uTP streams to {address} go over TCP to {to}{under}"), address);
    if way.key.is_none() && !address.ip().to_canonical().is_loopback() {
        screen::mention(&format!("without --key, whoever reaches that port reaches {to}\n"));
    }
    let (server, door): (Arc<str>, _) = (to.to_string().into(), Arc::new(Door::new(way.key)));
    loop {
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok(stream) => office.take_utp(stream, &door, &server),
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
