//! Peers from the distributed hash table (BEP 5): the nodes of [`cede_bt::dht`] at sockets, with a clock.
//!
//! Only for torrents that are not private. There is a table of IPv4 and one of IPv6 (BEP 32), and we are in each that the origin leads to.
//! Each node has a UDP port of its own, 6881 or a free one where that is taken unless it is told otherwise; peers are told of it
//! ([`OurNode::ports`]).
//!
//! Our nodes answer others from the first, as those of deployed clients do, whatever their transaction ids look like. What others have
//! told them is told the one who looks, too.
//!
//! Nodes that peers tell of ([`OurNode::meet`]) are asked whether they are there, so that one peer is enough to enter a table.
//!
//! **What it leaves out.** An address of one's own for IPv6, as BEP 32 would have it: where there is no
//! origin the system takes one for each datagram, so that who goes to another network stays in the table.

use crate::clock::Clock;
use crate::origin::{Origin, canonical};
use cede_bt::dht::{Event, Node};
use cede_bt::{Family, PerFamily};
use cede_units::{Duration as Span, Instant as Time};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::HashSet;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{
    UnboundedReceiver as Receiver, UnboundedSender as Sender, unbounded_channel as channel,
};

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
/// So many torrents are looked for at a time in each table: each lookup asks dozens of nodes.
const AT_ONCE: usize = 8;
/// Our own nodes are asked so often for what others have told them.
const OWN_EVERY: Span = Span::from_secs(1);
/// Where nothing comes it is looked no more often than this what is due: that waits for what else soon will be.
const STEP: Duration = Duration::from_millis(50);
/// Names that lead nowhere are looked up again after so long, and so many times.
const NAMES_AGAIN: Duration = Duration::from_secs(10);
const NAMES_TRIES: usize = 60;
/// The longest message that is read.
const MESSAGE_BYTES: usize = 2048;
/// Datagrams that are read in a second at each socket: a flood costs little.
const READ_PER_SECOND: u32 = 2_000;

/// Our nodes of the tables, for as many torrents as are looked for. Clones are the same ones.
#[derive(Clone, Debug)]
pub struct OurNode {
    orders: Sender<Order>,
    ports: PerFamily<Option<u16>>,
}

impl OurNode {
    /// Begins, with these nodes where there are any, and else with the usual ones; at this UDP port, where one is given. There is a node
    /// of IPv4 and one of IPv6, unless the `origin` leads to one of them alone, or the machine has none of the other.
    ///
    /// # Errors
    /// No socket, or no thread.
    pub fn start(origin: Origin, bootstrap: &[String], port: Option<u16>) -> io::Result<Self> {
        let sockets = open_all(origin, port)?;
        let mut ports = PerFamily::default();
        for (family, socket) in &sockets {
            ports[*family] = Some(socket.local_addr()?.port());
        }
        let (orders, queue) = channel();
        let nodes = sockets.iter().map(|(family, _)| {
            let node = Node::new(*family, crate::chance()?, crate::chance()?);
            Ok(if sockets.len() > 1 { node.beside_another() } else { node })
        });
        let nodes = nodes.collect::<io::Result<Vec<Node>>>()?;
        std::thread::Builder::new().name("dht".to_owned()).spawn(move || {
            let sockets = sockets.into_iter().map(|(_, socket)| socket);
            work(nodes.into_iter().zip(sockets).collect(), queue);
        })?;
        let names =
            if bootstrap.is_empty() { ENTRIES.map(str::to_owned).to_vec() } else { bootstrap.to_vec() };
        let node = Self { orders, ports };
        node.enter(names)?;
        Ok(node)
    }

    /// Begins with these nodes, too, such as those that a torrent names: each a name or an address, and a port. They are looked up in the
    /// background.
    ///
    /// # Errors
    /// No thread.
    pub fn enter(&self, names: Vec<String>) -> io::Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let tell = self.orders.clone();
        std::thread::Builder::new().name("dht-names".to_owned()).spawn(move || look_up(&names, &tell))?;
        Ok(())
    }

    /// The UDP ports that they listen at.
    #[must_use]
    pub const fn ports(&self) -> PerFamily<Option<u16>> {
        self.ports
    }

    /// Looks for peers in the background until nobody listens to `found` any more, and tells each table that we are at `port`, as it
    /// is then for that family, where there is one: who does not know yet whether a torrent is private looks and tells nothing.
    ///
    /// # Errors
    /// Our nodes have ended.
    pub fn search(
        &self,
        info_hash: [u8; 20],
        port: impl Fn(Family) -> Option<u16> + Send + 'static,
        found: Sender<Vec<SocketAddr>>,
    ) -> io::Result<()> {
        let search = Search {
            info_hash,
            port: Box::new(port),
            found,
            told: HashSet::new(),
            stages: PerFamily { v4: Stage::Due(Time::ZERO), v6: Stage::Due(Time::ZERO) },
        };
        self.orders.send(Order::Search(search)).map_err(|_| io::Error::other("our node has ended"))
    }

    /// We are reached elsewhere than the tables were told: they hear of it at once.
    pub fn announce_again(&self) {
        self.orders.send(Order::Again).unwrap_or_default();
    }

    /// A peer says that it has a node at this address. Ours asks whether it is there, soon, if it is not known.
    pub fn meet(&self, node: SocketAddr) {
        // Where our node has ended nobody wants to know.
        self.orders.send(Order::Meet(node)).unwrap_or_default();
    }
}

/// A socket for each family that there is. Of two, one is enough, unless the other one's port is taken.
fn open_all(origin: Origin, port: Option<u16>) -> io::Result<Vec<(Family, std::net::UdpSocket)>> {
    let (mut sockets, mut failure) = (Vec::new(), None);
    for family in Family::ALL.into_iter().filter(|family| origin.reaches(*family)) {
        let open = |port| open(family, SocketAddr::new(origin.address().unwrap_or(family.any()), port));
        match port.map_or_else(|| open(PORT).or_else(|_| open(0)), open) {
            Ok(socket) => sockets.push((family, socket)),
            Err(error) => failure = Some(error),
        }
    }
    let is_final = |error: &io::Error| sockets.is_empty() || error.kind() == io::ErrorKind::AddrInUse;
    failure.filter(is_final).map_or(Ok(sockets), Err)
}

fn open(family: Family, at: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    if family == Family::V6 {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    Ok(socket.into())
}

/// Looks up where the nodes to begin with are.
fn look_up(names: &[String], orders: &Sender<Order>) {
    for _ in 0..NAMES_TRIES {
        let found = names.iter().filter_map(|name| name.to_socket_addrs().ok()).flatten();
        let entries: Vec<SocketAddr> = found.map(entry).collect();
        if !entries.is_empty() {
            // Where our node has ended nobody wants to know.
            orders.send(Order::Enter(entries)).unwrap_or_default();
            return;
        }
        std::thread::sleep(NAMES_AGAIN);
    }
}

/// No address at all is this machine, as everywhere.
fn entry(address: SocketAddr) -> SocketAddr {
    let address = canonical(address);
    let ip = Some(address.ip()).filter(|ip| ip.is_unspecified());
    ip.map_or(address, |ip| SocketAddr::new(Family::of(ip).loopback(), address.port()))
}

/// A table has others than it had, or we are elsewhere: what waits is looked for at once.
fn look_again(searches: &mut [Search], now: Time, family: Family) {
    let stages = searches.iter_mut().map(|search| &mut search.stages[family]);
    stages.filter(|stage| matches!(stage, Stage::Due(_))).for_each(|stage| *stage = Stage::Due(now));
}

enum Order {
    Search(Search),
    Enter(Vec<SocketAddr>),
    Meet(SocketAddr),
    Again,
}

enum Stage {
    Due(Time),
    /// Under way: whether the table is told of us, and how many peers have been found.
    Asking(bool, usize),
}

struct Search {
    info_hash: [u8; 20],
    port: Box<dyn Fn(Family) -> Option<u16> + Send>,
    found: Sender<Vec<SocketAddr>>,
    /// Those that were told of since the table of their family was last asked.
    told: HashSet<SocketAddr>,
    stages: PerFamily<Stage>,
}

impl Search {
    /// Begins anew in one table.
    fn begin(&mut self, family: Family) -> Option<u16> {
        let port = (self.port)(family);
        self.told.retain(|peer| Family::of(peer.ip()) != family);
        self.stages[family] = Stage::Asking(port.is_some(), 0);
        port
    }

    fn tell(&mut self, peers: Vec<SocketAddr>) -> usize {
        let fresh: Vec<SocketAddr> = peers.into_iter().filter(|peer| self.told.insert(*peer)).collect();
        let count = fresh.len();
        if count > 0 {
            // Whom nobody listens to is taken away before the next turn.
            self.found.send(fresh).unwrap_or_default();
        }
        count
    }

    /// A table has named these.
    fn heard(&mut self, family: Family, peers: Vec<SocketAddr>) {
        let count = self.tell(peers);
        if let Stage::Asking(_, found) = &mut self.stages[family] {
            *found += count;
        }
    }

    /// A table has been asked.
    fn over(&mut self, now: Time, family: Family, is_known: bool, answers: usize) {
        let Stage::Asking(is_telling, count) = self.stages[family] else { return };
        let pause = if answers == 0 || is_telling && !is_known {
            ALONE
        } else if count == 0 {
            RETRY
        } else {
            EVERY
        };
        self.stages[family] = Stage::Due(now + pause);
    }
}

/// A node and its socket.
struct Post {
    node: Node,
    socket: UdpSocket,
    /// The second that is counted, and what was read in it.
    read: (Time, u32),
}

impl Post {
    async fn send(&mut self) {
        for (to, octets) in self.node.outgoing() {
            // What does not leave is lost, as on its way, and asked again.
            let _ = self.socket.send_to(&octets, to).await;
        }
    }

    /// Whether one more datagram is read in this second.
    fn may_read(&mut self, now: Time) -> bool {
        if now.since(self.read.0) >= Span::from_secs(1) {
            self.read = (now, 0);
        }
        self.read.1 += 1;
        self.read.1 <= READ_PER_SECOND
    }
}

/// The thread that has the sockets. Where it cannot begin, whoever orders something hears that it has ended.
fn work(nodes: Vec<(Node, std::net::UdpSocket)>, queue: Receiver<Order>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let posts = nodes.into_iter().map(|(node, socket)| {
            Ok(Post { node, socket: UdpSocket::from_std(socket)?, read: (Time::ZERO, 0) })
        });
        if let Ok(posts) = posts.collect::<io::Result<Vec<Post>>>() {
            let (clock, searches) = (Clock::begin(), Vec::new());
            Worker { posts, clock, queue, is_over: false, searches, own_at: Time::ZERO, first: 0 }
                .run()
                .await;
        }
    });
}

struct Worker {
    /// One for each family, of which there are one or two.
    posts: Vec<Post>,
    clock: Clock,
    queue: Receiver<Order>,
    /// Nobody orders anything any more.
    is_over: bool,
    searches: Vec<Search>,
    own_at: Time,
    /// The post that is read first, by turns.
    first: usize,
}

impl Worker {
    async fn run(mut self) {
        while !self.is_over || !self.searches.is_empty() {
            self.searches.retain(|search| !search.found.is_closed());
            self.begin_due();
            let now = self.clock.now();
            for at in 0..self.posts.len() {
                let Some((post, other)) = self.post(at) else { break };
                post.node.tick(now, other);
                post.send().await;
            }
            self.receive().await;
            self.hand_over();
        }
    }

    fn heed_order(&mut self, order: Order) {
        match order {
            Order::Search(search) => self.searches.push(search),
            Order::Enter(entries) => self.enter(&entries),
            Order::Meet(node) => self.meet(node),
            Order::Again => self.begin_again(),
        }
    }

    fn begin_again(&mut self) {
        let now = self.clock.now();
        self.posts.iter().for_each(|post| look_again(&mut self.searches, now, post.node.family()));
    }

    fn enter(&mut self, entries: &[SocketAddr]) {
        let now = self.clock.now();
        for post in &mut self.posts {
            post.node.enter(now, entries);
            look_again(&mut self.searches, now, post.node.family());
        }
    }

    fn begin_due(&mut self) {
        let now = self.clock.now();
        for Post { node, .. } in &mut self.posts {
            let family = node.family();
            let is_asking = |search: &&Search| matches!(search.stages[family], Stage::Asking(..));
            let free = AT_ONCE.saturating_sub(self.searches.iter().filter(is_asking).count());
            let is_due = |search: &&mut Search| matches!(search.stages[family], Stage::Due(at) if at <= now);
            for search in self.searches.iter_mut().filter(is_due).take(free) {
                let port = search.begin(family);
                node.search(now, search.info_hash, port);
            }
        }
    }

    /// How long there is nothing to do, unless something comes.
    fn pause(&self) -> Duration {
        let due_at = |post: &Post| {
            let stages = self.searches.iter().map(|search| &search.stages[post.node.family()]);
            let due = stages.filter_map(|stage| if let Stage::Due(at) = stage { Some(*at) } else { None });
            due.fold(post.node.poll_timeout(), Time::min)
        };
        let next = self.posts.iter().map(due_at).fold(self.own_at, Time::min);
        Duration::from_nanos(next.since(self.clock.now()).as_nanos()).max(STEP)
    }

    /// Waits for a datagram, at whichever socket, for an order, or until something is due.
    async fn receive(&mut self) {
        let mut octets = [0; MESSAGE_BYTES];
        let pause = self.pause();
        self.first += 1;
        let read = poll_fn(|context| match self.poll_orders(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => self.poll_read(context, &mut octets).map(Some),
        });
        let Ok(Some((at, from, len))) = tokio::time::timeout(pause, read).await else { return };
        let now = self.clock.now();
        if self.posts[at].may_read(now)
            && let Some((post, other)) = self.post(at)
        {
            post.node.receive(now, from, &octets[..len], other);
        }
    }

    /// Does what was ordered; ready where something was.
    fn poll_orders(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut outcome = Poll::Pending;
        while !self.is_over
            && let Poll::Ready(order) = self.queue.poll_recv(context)
        {
            outcome = Poll::Ready(());
            match order {
                Some(order) => self.heed_order(order),
                None => self.is_over = true,
            }
        }
        outcome
    }

    /// At which socket a datagram has come, from where, and its octets.
    fn poll_read(&self, context: &mut Context<'_>, octets: &mut [u8]) -> Poll<(usize, SocketAddr, usize)> {
        let count = self.posts.len();
        for at in (0..count).map(|at| (at + self.first) % count) {
            let mut buffer = ReadBuf::new(octets);
            let read = self.posts[at].socket.poll_recv_from(context, &mut buffer);
            if let Poll::Ready(Ok(from)) = read {
                return Poll::Ready((at, from, buffer.filled().len()));
            }
        }
        Poll::Pending
    }

    /// One of them, and the node of the other.
    fn post(&mut self, at: usize) -> Option<(&mut Post, Option<&Node>)> {
        let (before, rest) = self.posts.split_at_mut(at);
        let (post, after) = rest.split_first_mut()?;
        Some((post, before.first().or(after.first()).map(|other| &other.node)))
    }

    fn hand_over(&mut self) {
        let now = self.clock.now();
        for at in 0..self.posts.len() {
            let family = self.posts[at].node.family();
            for event in self.posts[at].node.events() {
                self.heed(now, family, event);
            }
        }
        if now >= self.own_at {
            self.own_at = now + OWN_EVERY;
            for search in &mut self.searches {
                for post in &self.posts {
                    search.tell(post.node.told(now, &search.info_hash));
                }
            }
        }
    }

    /// Something has happened at the node of that family.
    fn heed(&mut self, now: Time, family: Family, event: Event) {
        match event {
            Event::Entered => look_again(&mut self.searches, now, family),
            Event::Peers(of, peers) => {
                self.those_for(of).for_each(|search| search.heard(family, peers.clone()));
            }
            Event::Over { info_hash, is_known, answers } => {
                self.those_for(info_hash).for_each(|search| search.over(now, family, is_known, answers));
            }
            Event::Others(nodes) => nodes.into_iter().for_each(|node| self.meet(node)),
        }
    }

    fn those_for(&mut self, info_hash: [u8; 20]) -> impl Iterator<Item = &mut Search> {
        self.searches.iter_mut().filter(move |search| search.info_hash == info_hash)
    }

    /// There may be a node at this address. Ours of its family asks.
    fn meet(&mut self, node: SocketAddr) {
        self.posts.iter_mut().for_each(|post| post.node.meet(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever looked while a table had nobody, and would look again seconds later, does so once it has somebody.
    #[test]
    fn what_found_nobody_is_looked_for_again_once_somebody_is_known() {
        let ((_, queue), (found, _peers)) = (channel(), channel());
        let later = || Stage::Due(Time::from_secs(100));
        let stages =
            [PerFamily { v4: later(), v6: later() }, PerFamily { v4: Stage::Asking(true, 0), v6: later() }];
        let searches = stages.map(|stages| Search {
            info_hash: [9; 20],
            port: Box::new(|_| None),
            found: found.clone(),
            told: HashSet::new(),
            stages,
        });
        let (clock, searches) = (Clock::begin(), searches.into());
        let mut worker = Worker {
            posts: Vec::new(),
            clock,
            queue,
            is_over: false,
            searches,
            own_at: Time::ZERO,
            first: 0,
        };
        let now = Time::from_secs(7);
        worker.heed(now, Family::V4, Event::Entered);
        let due = |stage: &Stage| if let Stage::Due(at) = stage { Some(*at) } else { None };
        let stages = worker.searches.iter().map(|search| [&search.stages.v4, &search.stages.v6].map(due));
        let later = Some(Time::from_secs(100));
        assert_eq!(stages.collect::<Vec<_>>(), [[Some(now), later], [None, later]]);
    }
}
