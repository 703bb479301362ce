//! A tracker: HTTP and UDP at one port number, one book behind both.
//!
//! What it leaves out: keep-alive over HTTP (each answer closes its connection), and IPv4 addresses for those who ask over IPv6
//! by UDP. How it was validated: by this crate's own client, libtorrent, Transmission and aria2.

use crate::clock::Clock;
use crate::origin::canonical;
use crate::udp::Udp;
use cede_bt::tracker::book::{Book, Limits};
use cede_bt::tracker::http::{self, Query};
use cede_bt::tracker::share::{Holder, NoPlace, Places};
use cede_bt::tracker::udp::{Asked, CONNECTION_TAKEN_S, MAX_SCRAPED, Request, Response};
use cede_bt::tracker::{Announce, Answer, Tally};
use cede_units::{Instant as Time, Stream as Random};
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Whoever asks over HTTP has asked within that.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections over HTTP at once, of which no address takes all. Where all are taken, the one that has been there for longest ends: whoever asks
/// does so within a round trip.
const MAX_CONNECTIONS: usize = 500;
/// The book is looked through so often.
const EXPIRE_EVERY: Duration = Duration::from_secs(60);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How somebody asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// HTTP.
    Http,
    /// UDP.
    Udp,
}

/// An announce that was answered, or was not.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Who.
    pub from: SocketAddr,
    /// How.
    pub over: Over,
    /// What it said, where that could be read.
    pub announce: Option<Announce>,
    /// How many peers it was told of, or why none.
    pub result: Result<usize, String>,
    /// The torrent's peers after that; none where it could not be told which.
    pub tally: Tally,
}

/// Of a request that is too long, so much is read and thrown away.
const MAX_UNREAD_BYTES: u64 = 1 << 20;
/// What is said over UDP of what cannot be read: its first word fits the shortest request.
const UNREADABLE: &str = "unknown, or too short";
/// Octets of a refusal over UDP in front of its words.
const ERROR_HEAD_BYTES: usize = 8;
/// Ports that are tried where any will do.
const PORT_TRIES: usize = 20;

/// What hears of each announce.
pub type Log = Box<dyn FnMut(&Entry)>;

/// A tracker.
pub struct Tracker {
    tcp: TcpListener,
    udp: Udp,
    state: Rc<State>,
}

struct State {
    book: RefCell<Book>,
    log: RefCell<Log>,
    clock: Clock,
    /// What connection ids are made of.
    secret: [u8; 20],
    connections: RefCell<Connections>,
}

/// Those over HTTP that are being served.
#[derive(Default)]
struct Connections {
    places: Places,
    /// By the order in which they came.
    tasks: BTreeMap<u64, AbortHandle>,
    came: u64,
}

impl Tracker {
    /// Waits at an address for HTTP and UDP; port 0 takes a free one. Only for these torrents, where there are any.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(address: SocketAddr, limits: Limits, only: Vec<[u8; 20]>, log: Log) -> io::Result<Self> {
        let mut bound = sockets(address);
        for _ in 1..PORT_TRIES {
            // A port that is free for TCP may be taken for UDP.
            let is_taken = bound.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
            if address.port() != 0 || !is_taken {
                break;
            }
            bound = sockets(address);
        }
        let (tcp, udp) = bound?;
        let seed = getrandom::u64().map_err(io::Error::other)?;
        let mut secret = [0; 20];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        let state = State {
            book: RefCell::new(Book::new(limits, Random::named(seed, "tracker")).only(only)),
            log: RefCell::new(log),
            clock: Clock::begin(),
            secret,
            connections: RefCell::default(),
        };
        Ok(Self { tcp, udp, state: Rc::new(state) })
    }

    /// Where it waits.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Answers until the future is dropped. Must run within a [`tokio::task::LocalSet`].
    pub async fn run(&self) {
        let expiring = async {
            loop {
                tokio::time::sleep(EXPIRE_EVERY).await;
                self.state.book.borrow_mut().expire(self.state.now());
            }
        };
        tokio::join!(self.answer_http(), self.answer_udp(), expiring);
    }

    async fn answer_http(&self) {
        loop {
            let Ok((stream, from)) = self.tcp.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            self.state.clone().serve_beside(stream, from);
        }
    }

    async fn answer_udp(&self) {
        loop {
            let Ok(heard) = self.udp.receive().await else { continue };
            let is_v6 = heard.from.ip().to_canonical().is_ipv6();
            for octets in heard.datagrams() {
                if let Some((transaction, response)) = self.state.respond_to(heard.from, octets) {
                    let _ = self.udp.answer(&heard, &response.encode(transaction, is_v6)).await;
                }
            }
        }
    }
}

impl Connections {
    /// A connection begins: its number.
    fn enter(&mut self, holder: Holder) -> u64 {
        self.places.take(holder);
        self.came += 1;
        self.came
    }

    fn end_oldest(&mut self) {
        if let Some((_, task)) = self.tasks.pop_first() {
            task.abort();
        }
    }
}

/// A connection that is served; its place is free when this is dropped, as it is however that ends.
struct Served {
    state: Rc<State>,
    holder: Holder,
    number: u64,
}

impl Drop for Served {
    fn drop(&mut self) {
        let mut connections = self.state.connections.borrow_mut();
        connections.places.give_back(self.holder);
        connections.tasks.remove(&self.number);
    }
}

/// Both sockets, at one port.
fn sockets(address: SocketAddr) -> io::Result<(TcpListener, Udp)> {
    let tcp = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    #[cfg(unix)]
    tcp.set_reuse_address(true)?;
    prepare(&tcp, address)?;
    tcp.listen(256)?;
    let tcp = TcpListener::from_std(tcp.into())?;
    let address = SocketAddr::new(address.ip(), tcp.local_addr()?.port());
    let udp = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    prepare(&udp, address)?;
    Ok((tcp, Udp::new(udp)?))
}

fn prepare(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())
}

impl State {
    /// Serves a connection over HTTP, unless whoever is there has too many. One that was given up may have its place for a moment longer.
    fn serve_beside(self: Rc<Self>, stream: TcpStream, from: SocketAddr) {
        let holder = Holder::of(from.ip());
        let mut connections = self.connections.borrow_mut();
        match connections.places.check(holder, MAX_CONNECTIONS) {
            Ok(()) => {}
            Err(NoPlace::Share) => return,
            Err(NoPlace::Full) => connections.end_oldest(),
        }
        let served = Served { state: self.clone(), holder, number: connections.enter(holder) };
        let number = served.number;
        let task = tokio::task::spawn_local(async move {
            let _ = tokio::time::timeout(PATIENCE, serve(&served.state, stream, from)).await;
        });
        connections.tasks.insert(number, task.abort_handle());
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn announce(&self, from: SocketAddr, over: Over, announce: &Announce) -> Result<Answer, &'static str> {
        let from = canonical(from);
        let mut book = self.book.borrow_mut();
        // A datagram has room for addresses of its own family.
        let can_be_told = |ip: IpAddr| over == Over::Http || ip.is_ipv4() == from.is_ipv4();
        let answered = book
            .announce_among(self.now(), from.ip(), announce, can_be_told)
            .map_err(|refusal| refusal.text());
        let tally = book.tally(&announce.info_hash);
        drop(book);
        let result = answered.as_ref().map(|answer| answer.peers.len()).map_err(|why| (*why).to_owned());
        self.tell(&Entry { from, over, announce: Some(announce.clone()), result, tally });
        answered
    }

    fn tell(&self, entry: &Entry) {
        (self.log.borrow_mut())(entry);
    }

    /// The id of whoever receives at an address, during one span of time.
    fn connection(&self, from: IpAddr, epoch: u64) -> u64 {
        let mut octets = self.secret.to_vec();
        octets.extend_from_slice(from.to_string().as_bytes());
        octets.extend_from_slice(&epoch.to_be_bytes());
        cede_bt::metainfo::sha1(&octets).first_chunk().map_or(0, |id| u64::from_be_bytes(*id))
    }

    fn epoch(&self) -> u64 {
        self.clock.elapsed().as_secs() / u64::from(CONNECTION_TAKEN_S / 2)
    }

    /// Whether an id is that of whoever receives there. Two spans are taken, so that one lives between one and two of them.
    fn is_known(&self, ip: IpAddr, connection: u64) -> bool {
        let epoch = self.epoch();
        [epoch, epoch.wrapping_sub(1), epoch.wrapping_sub(2)]
            .iter()
            .any(|epoch| self.connection(ip, *epoch) == connection)
    }

    /// What is answered to a datagram, and to which transaction. A refusal is no longer than what it answers, as nobody knows whether who asks
    /// without an id is where the datagram says; what cannot be read is answered to nobody else but who has one.
    fn respond_to(&self, from: SocketAddr, octets: &[u8]) -> Option<(u32, Response)> {
        let (connection, transaction) = Asked::numbers(octets)?;
        let response = match Asked::decode(octets) {
            Ok(asked) => self.respond(from, &asked)?,
            Err(_) if self.is_known(from.ip(), connection) => Response::Error(UNREADABLE.to_owned()),
            Err(_) => return None,
        };
        Some((transaction, cut(response, octets.len())))
    }

    fn respond(&self, from: SocketAddr, asked: &Asked) -> Option<Response> {
        let ip = from.ip();
        if asked.request == Request::Connect {
            return Some(Response::Connect(self.connection(ip, self.epoch())));
        }
        if !self.is_known(ip, asked.connection) {
            return Some(Response::Error("the connection id is none, or too old".to_owned()));
        }
        Some(match &asked.request {
            Request::Connect => return None,
            Request::Announce(announce) => match self.announce(from, Over::Udp, announce) {
                Ok(answer) => Response::Announce(fitting(answer, ip)),
                Err(why) => Response::Error(why.to_owned()),
            },
            Request::Scrape(hashes) => {
                let book = self.book.borrow();
                Response::Scrape(hashes.iter().take(MAX_SCRAPED).map(|hash| book.tally(hash)).collect())
            }
        })
    }

    fn answer(&self, from: SocketAddr, target: &str) -> (u16, Vec<u8>) {
        match http::parse_query(target) {
            Ok(Query::Announce { announce, is_compact }) => {
                match self.announce(from, Over::Http, &announce) {
                    Ok(answer) => {
                        let answer = Answer { external_ip: Some(from.ip()), ..answer };
                        (200, http::answer(&answer, is_compact))
                    }
                    Err(why) => (200, http::failure(why)),
                }
            }
            Ok(Query::Scrape(hashes)) => {
                let book = self.book.borrow();
                let all: Vec<[u8; 20]> =
                    if hashes.is_empty() { book.torrents().copied().collect() } else { hashes };
                let tallies: Vec<_> = all.into_iter().map(|hash| (hash, book.tally(&hash))).collect();
                (200, http::scrape_answer(&tallies))
            }
            Err(error) => {
                if error != http::QueryError::Path {
                    // One that cannot be read is told of as well.
                    let (from, result) = (canonical(from), Err(error.to_string()));
                    let tally = Tally::default();
                    self.tell(&Entry { from, over: Over::Http, announce: None, result, tally });
                }
                (status_of(error), http::failure(&error.to_string()))
            }
        }
    }
}

/// Clients read the words of a refusal under 200 alone: libtorrent, and whoever is built on it, shows the number of any other. Others are
/// for what asks no tracker.
const fn status_of(error: http::QueryError) -> u16 {
    match error {
        http::QueryError::Parameter(_) => 200,
        http::QueryError::Path => 404,
        http::QueryError::Long => 414,
    }
}

/// A refusal that is no longer than a request of so many octets.
fn cut(response: Response, request: usize) -> Response {
    match response {
        Response::Error(mut why) => {
            why.truncate(why.floor_char_boundary(request.saturating_sub(ERROR_HEAD_BYTES)));
            Response::Error(why.trim_end_matches([' ', ',']).to_owned())
        }
        other => other,
    }
}

/// As many peers as fit an unfragmented datagram.
fn fitting(mut answer: Answer, to: IpAddr) -> Answer {
    let each = if to.to_canonical().is_ipv4() { 6 } else { 18 };
    answer.peers.truncate((1_200 - 20) / each);
    answer
}

/// One request over HTTP.
async fn serve(state: &State, mut stream: TcpStream, from: SocketAddr) -> io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    let mut is_too_long = false;
    while !is_too_long && !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        head.extend_from_slice(&buffer[..n]);
        is_too_long = head.len() > 2 * http::MAX_QUERY_BYTES;
    }
    let line = head.split(|octet| *octet == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (status, body) = match (words.next(), words.next()) {
        _ if is_too_long => (414, http::failure("that is too long: ask for fewer torrents at a time")),
        (Some("GET"), Some(target)) => state.answer(from, target),
        _ => (405, http::failure("ask with GET")),
    };
    stream.write_all(&response(status, &body)).await?;
    stream.shutdown().await?;
    if is_too_long {
        // What is left unread would have the connection reset, and the answer may be lost by that.
        tokio::io::copy(&mut stream.take(MAX_UNREAD_BYTES), &mut tokio::io::sink()).await?;
    }
    Ok(())
}

fn response(status: u16, body: &[u8]) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "URI Too Long",
    };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
