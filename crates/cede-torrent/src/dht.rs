//! Peers from the distributed hash table (BEP 5): the node of [`cede_bt::dht`] at a socket, with a clock.
//!
//! Only for torrents that are not private. It has a UDP port of its own, 6881 or a free one where that is taken unless it is told
//! otherwise, and speaks IPv4. Peers are told of it ([`OurNode::port`]).
//!
//! Our node answers others from the first, as those of deployed clients do, whatever their transaction ids look like. What others have
//! told it is told the one who looks, too.
//!
//! **What it leaves out.** The nodes that peers tell us of.

use crate::clock::Clock;
use crate::origin::{Family, Origin};
use cede_bt::dht::{Event, Node};
use cede_units::{Duration as Span, Instant as Time};
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// The usual port, where it is free.
const PORT: u16 = 6881;
/// The usual nodes to begin with.
const ENTRIES: [&str; 4] = [
    "router.bittorrent.com:6881",
    "dht.transmissionbt.com:6881",
    "dht.libtorrent.org:25401",
    "router.utorrent.com:6881",
];
/// The table is asked, and told of us, so often; entries live for half an hour.
const EVERY: Span = Span::from_secs(15 * 60);
/// As long as nobody is found.
const RETRY: Span = Span::from_secs(60);
/// As long as no node answers, or none takes what it is told of us: there is none yet.
const ALONE: Span = Span::from_secs(5);
/// So many torrents are looked for at a time: each lookup asks dozens of nodes.
const AT_ONCE: usize = 8;
/// Our own node is asked so often for what others have told it.
const OWN_EVERY: Span = Span::from_secs(1);
/// It is looked so often whether there is something to do.
const STEP: Duration = Duration::from_millis(50);
/// Names that lead nowhere are looked up again after so long, and so many times.
const NAMES_AGAIN: Duration = Duration::from_secs(10);
const NAMES_TRIES: usize = 60;
/// The longest message that is read.
const MESSAGE_BYTES: usize = 2048;
/// Datagrams that are read in a second: a flood costs little.
const READ_PER_SECOND: u32 = 2_000;

/// Our node of the table, for as many torrents as are looked for. Clones are the same one.
#[derive(Clone, Debug)]
pub struct OurNode {
    orders: Sender<Order>,
    port: u16,
}

impl OurNode {
    /// Begins, with these nodes where there are any, and else with the usual ones; at this UDP port, where one is given. The table is
    /// one of IPv4 (BEP 5).
    ///
    /// # Errors
    /// No socket, or no thread; the `origin` leads to no IPv4.
    pub fn start(origin: Origin, bootstrap: &[String], port: Option<u16>) -> io::Result<Self> {
        if !origin.reaches(Family::V4) {
            return Err(io::Error::other("it is one of IPv4, which does not go out from this address"));
        }
        let host = match origin.address() {
            Some(IpAddr::V4(address)) => address,
            _ => Ipv4Addr::UNSPECIFIED,
        };
        let socket = match port {
            Some(port) => UdpSocket::bind((host, port)),
            None => UdpSocket::bind((host, PORT)).or_else(|_| UdpSocket::bind((host, 0))),
        }?;
        socket.set_read_timeout(Some(STEP))?;
        let port = socket.local_addr()?.port();
        let (orders, queue) = channel();
        let node = Node::new(crate::chance()?, crate::chance()?);
        let clock = Clock::begin();
        let worker = Worker {
            node,
            socket,
            clock,
            queue,
            searches: Vec::new(),
            own_at: Time::ZERO,
            read: (Time::ZERO, 0),
        };
        std::thread::Builder::new().name("dht".to_owned()).spawn(move || worker.run())?;
        let names =
            if bootstrap.is_empty() { ENTRIES.map(str::to_owned).to_vec() } else { bootstrap.to_vec() };
        let tell = orders.clone();
        std::thread::Builder::new().name("dht-names".to_owned()).spawn(move || look_up(&names, &tell))?;
        Ok(Self { orders, port })
    }

    /// The UDP port that it listens at.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Looks for peers in the background until nobody listens to `found` any more, and tells the table that we are at `port`, as it
    /// is then, where there is one: who does not know yet whether a torrent is private looks and tells nothing.
    ///
    /// # Errors
    /// Our node has ended.
    pub fn search(
        &self,
        info_hash: [u8; 20],
        port: impl Fn() -> Option<u16> + Send + 'static,
        found: UnboundedSender<Vec<SocketAddr>>,
    ) -> io::Result<()> {
        let search = Search {
            info_hash,
            port: Box::new(port),
            found,
            told: HashSet::new(),
            stage: Stage::Due(Time::ZERO),
        };
        self.orders.send(Order::Search(search)).map_err(|_| io::Error::other("our node has ended"))
    }
}

/// Looks up where the nodes to begin with are.
fn look_up(names: &[String], orders: &Sender<Order>) {
    for _ in 0..NAMES_TRIES {
        let found = names.iter().filter_map(|name| name.to_socket_addrs().ok()).flatten();
        let entries: Vec<SocketAddrV4> = found.filter_map(v4).collect();
        if !entries.is_empty() {
            // Where our node has ended nobody wants to know.
            orders.send(Order::Enter(entries)).unwrap_or_default();
            return;
        }
        std::thread::sleep(NAMES_AGAIN);
    }
}

/// No address at all is this machine, as everywhere.
fn v4(address: SocketAddr) -> Option<SocketAddrV4> {
    match address {
        SocketAddr::V4(any) if any.ip().is_unspecified() => {
            Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, any.port()))
        }
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    }
}

enum Order {
    Search(Search),
    Enter(Vec<SocketAddrV4>),
}

enum Stage {
    Due(Time),
    /// Under way: whether the table is told of us, and how many peers have been found.
    Asking(bool, usize),
}

struct Search {
    info_hash: [u8; 20],
    port: Box<dyn Fn() -> Option<u16> + Send>,
    found: UnboundedSender<Vec<SocketAddr>>,
    /// Those that were told of since the table was last asked.
    told: HashSet<SocketAddr>,
    stage: Stage,
}

impl Search {
    fn tell(&mut self, peers: Vec<SocketAddr>) -> usize {
        let fresh: Vec<SocketAddr> = peers.into_iter().filter(|peer| self.told.insert(*peer)).collect();
        let count = fresh.len();
        if count > 0 {
            // Whom nobody listens to is taken away before the next turn.
            self.found.send(fresh).unwrap_or_default();
        }
        count
    }

    /// The table has been asked.
    fn over(&mut self, now: Time, is_known: bool, answers: usize) {
        let Stage::Asking(is_telling, count) = self.stage else { return };
        let pause = if answers == 0 || is_telling && !is_known {
            ALONE
        } else if count == 0 {
            RETRY
        } else {
            EVERY
        };
        self.stage = Stage::Due(now + pause);
    }
}

/// The thread that has the socket.
struct Worker {
    node: Node,
    socket: UdpSocket,
    clock: Clock,
    queue: Receiver<Order>,
    searches: Vec<Search>,
    own_at: Time,
    /// The second that is counted, and what was read in it.
    read: (Time, u32),
}

impl Worker {
    fn run(mut self) {
        while self.take_orders() || !self.searches.is_empty() {
            self.searches.retain(|search| !search.found.is_closed());
            let now = self.clock.now();
            self.begin_due(now);
            self.node.tick(now);
            for (to, octets) in self.node.outgoing() {
                // What does not leave is lost, as on its way, and asked again.
                self.socket.send_to(&octets, to).unwrap_or_default();
            }
            self.receive();
            self.hand_over();
        }
    }

    /// Whether there may be further ones.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.queue.try_recv() {
                Ok(Order::Search(search)) => self.searches.push(search),
                Ok(Order::Enter(entries)) => self.enter(entries),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn enter(&mut self, entries: Vec<SocketAddrV4>) {
        let now = self.clock.now();
        self.node.enter(now, entries);
        for search in self.searches.iter_mut().filter(|search| matches!(search.stage, Stage::Due(_))) {
            search.stage = Stage::Due(now);
        }
    }

    fn begin_due(&mut self, now: Time) {
        let asking = self.searches.iter().filter(|search| matches!(search.stage, Stage::Asking(..))).count();
        let is_due = |search: &&mut Search| matches!(search.stage, Stage::Due(at) if at <= now);
        for search in self.searches.iter_mut().filter(is_due).take(AT_ONCE.saturating_sub(asking)) {
            let port = (search.port)();
            search.told.clear();
            search.stage = Stage::Asking(port.is_some(), 0);
            self.node.search(now, search.info_hash, port);
        }
    }

    fn receive(&mut self) {
        let mut octets = [0; MESSAGE_BYTES];
        let Ok((len, SocketAddr::V4(from))) = self.socket.recv_from(&mut octets) else { return };
        let now = self.clock.now();
        if now.since(self.read.0) >= Span::from_secs(1) {
            self.read = (now, 0);
        }
        self.read.1 += 1;
        if self.read.1 <= READ_PER_SECOND {
            self.node.receive(now, from, &octets[..len]);
        }
    }

    fn hand_over(&mut self) {
        let now = self.clock.now();
        for event in self.node.events() {
            let (Event::Peers(of, _) | Event::Over { info_hash: of, .. }) = event;
            for search in self.searches.iter_mut().filter(|search| search.info_hash == of) {
                match &event {
                    Event::Peers(_, peers) => {
                        let count = search.tell(peers.clone());
                        if let Stage::Asking(_, found) = &mut search.stage {
                            *found += count;
                        }
                    }
                    Event::Over { is_known, answers, .. } => search.over(now, *is_known, *answers),
                }
            }
        }
        if now >= self.own_at {
            self.own_at = now + OWN_EVERY;
            for search in &mut self.searches {
                search.tell(self.node.told(now, &search.info_hash));
            }
        }
    }
}
