//! Peers from the distributed hash table (BEP 5), through the `mainline` crate.
//!
//! Only for torrents that are not private. It has a UDP port of its own, 6881 or a free one where that is taken unless it is told
//! otherwise, and speaks IPv4. Peers are told of it ([`OurNode::port`]).
//!
//! Our node answers others from the first, as those of deployed clients do: the crate's own way, to be silent for a quarter of an
//! hour and until its own port was seen to be reached, leaves two that know of each other alone without anybody who answers. What
//! others have told our node is asked of it as well: the crate's lookups ask other nodes only.
//!
//! **What it leaves out.** A node that asks us, and that no other node tells us of, is not told of us; nor are the nodes that peers
//! tell us of, which the crate cannot be handed once it runs.

use crate::origin::{Family, Origin};
use cede_bt::bencode::{Document, Form, Limits, Node};
use cede_bt::tracker::compact;
use mainline::{Dht, Id};
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

/// The table is asked, and told of us, so often; entries live for half an hour.
const EVERY: Duration = Duration::from_secs(15 * 60);
/// As long as nobody is found.
const RETRY: Duration = Duration::from_secs(60);
/// As long as no node takes what it is told of us: there is none yet.
const ALONE: Duration = Duration::from_secs(5);
/// So many torrents are looked for at a time: each lookup asks dozens of nodes.
const AT_ONCE: usize = 8;
/// Our own node is asked so often for what others have told it.
const OWN_EVERY: Duration = Duration::from_secs(1);
/// On this machine an answer takes no longer than the node takes to look.
const OWN_PATIENCE: Duration = Duration::from_millis(200);
/// The search sees so soon that it is over.
const STEP: Duration = Duration::from_millis(500);
/// The longest message that a node sends.
const MESSAGE_BYTES: usize = 2048;

/// Our node of the table, for as many torrents as are looked for. Clones are the same one.
#[derive(Clone)]
pub struct OurNode {
    dht: Dht,
    turns: Arc<Semaphore>,
}

impl OurNode {
    /// Begins, with these nodes where there are any, and else with the usual ones; at this UDP port, where one is given. The table is
    /// one of IPv4 (BEP 5).
    ///
    /// # Errors
    /// No socket; the `origin` leads to no IPv4.
    pub fn start(origin: Origin, bootstrap: &[String], port: Option<u16>) -> io::Result<Self> {
        let mut builder = Dht::builder();
        if !origin.reaches(Family::V4) {
            return Err(io::Error::other("it is one of IPv4, which does not go out from this address"));
        }
        if let Some(IpAddr::V4(address)) = origin.address() {
            builder.bind_address(address);
        }
        if !bootstrap.is_empty() {
            builder.bootstrap(bootstrap);
        }
        if let Some(port) = port {
            builder.port(port);
        }
        let (dht, turns) = (builder.server_mode().build()?, Arc::new(Semaphore::new(AT_ONCE)));
        Ok(Self { dht, turns })
    }

    /// The UDP port that it listens at.
    #[must_use]
    pub fn port(&self) -> u16 {
        bound(&self.dht).port()
    }

    /// Looks for peers in a thread of its own until nobody listens to `found` any more, and tells the table that we are at `port`, as it
    /// is then, where there is one: who does not know yet whether a torrent is private looks and tells nothing.
    ///
    /// # Errors
    /// No socket, or no thread.
    pub fn search(
        &self,
        info_hash: [u8; 20],
        port: impl Fn() -> Option<u16> + Send + 'static,
        found: UnboundedSender<Vec<SocketAddr>>,
    ) -> io::Result<()> {
        let own = OwnNode::of(&self.dht, info_hash)?;
        let search = Search { dht: self.dht.clone(), turns: self.turns.clone(), own, info_hash, found };
        std::thread::Builder::new().name("dht".to_owned()).spawn(move || search.run(&port)).map(drop)
    }
}

fn bound(dht: &Dht) -> SocketAddrV4 {
    #[allow(deprecated, reason = "the other way needs an executor, and here is none")]
    dht.info().local_addr()
}

struct Search {
    dht: Dht,
    turns: Arc<Semaphore>,
    own: OwnNode,
    info_hash: [u8; 20],
    found: UnboundedSender<Vec<SocketAddr>>,
}

impl Search {
    fn run(mut self, port: &impl Fn() -> Option<u16>) {
        while !self.found.is_closed() {
            let Ok(turn) = self.turns.clone().try_acquire_owned() else {
                std::thread::sleep(STEP);
                continue;
            };
            self.own.told.clear();
            let count = self.look();
            let is_alone = port().is_some_and(|port| !self.announce(port));
            drop(turn);
            let pause = if is_alone {
                ALONE
            } else if count == 0 {
                RETRY
            } else {
                EVERY
            };
            self.wait_until(Instant::now() + pause);
        }
    }

    fn look(&self) -> usize {
        let mut count = 0;
        #[allow(deprecated, reason = "the other way needs an executor, and this thread has none")]
        for peers in self.dht.get_peers(Id::from(self.info_hash)) {
            count += peers.len();
            if self.found.send(peers.into_iter().map(SocketAddr::V4).collect()).is_err() {
                break;
            }
        }
        count
    }

    /// Tells the table of us; whether some node has taken it.
    fn announce(&self, port: u16) -> bool {
        #[allow(deprecated, reason = "the other way needs an executor, and this thread has none")]
        let outcome = self.dht.announce_peer(Id::from(self.info_hash), Some(port));
        outcome.is_ok()
    }

    /// Waits, and hears meanwhile of those who tell our own node of themselves.
    fn wait_until(&mut self, end: Instant) {
        let mut own_at = Instant::now();
        while Instant::now() < end && !self.found.is_closed() {
            if Instant::now() >= own_at {
                own_at = Instant::now() + OWN_EVERY;
                let fresh = self.own.fresh();
                if !fresh.is_empty() && self.found.send(fresh).is_err() {
                    return;
                }
            }
            std::thread::sleep(STEP);
        }
    }
}

/// Our own node, which is asked for what others have told it as any other would be.
struct OwnNode {
    socket: UdpSocket,
    question: Vec<u8>,
    /// Those that were told of since the table was last asked.
    told: HashSet<SocketAddr>,
}

impl OwnNode {
    fn of(dht: &Dht, info_hash: [u8; 20]) -> io::Result<Self> {
        let bound = bound(dht);
        let host = if bound.ip().is_unspecified() { Ipv4Addr::LOCALHOST } else { *bound.ip() };
        let socket = UdpSocket::bind((host, 0))?;
        socket.connect(SocketAddrV4::new(host, bound.port()))?;
        socket.set_read_timeout(Some(OWN_PATIENCE))?;
        Ok(Self { socket, question: question(crate::chance()?, info_hash), told: HashSet::new() })
    }

    /// Peers that it knows of and that were not told of before. One that does not answer knows of nobody.
    fn fresh(&mut self) -> Vec<SocketAddr> {
        let mut answer = [0; MESSAGE_BYTES];
        let asked = self.socket.send(&self.question).and_then(|_| self.socket.recv(&mut answer));
        let peers = asked.map_or_else(|_| Vec::new(), |len| peers_of(&answer[..len]));
        peers.into_iter().filter(|peer| self.told.insert(*peer)).collect()
    }
}

/// `get_peers` of somebody who answers nothing himself (BEP 43).
fn question(id: [u8; 20], info_hash: [u8; 20]) -> Vec<u8> {
    let arguments = Form::dict().with("id", &id[..]).with("info_hash", &info_hash[..]);
    let query = Form::dict().with("a", arguments).with("q", "get_peers").with("ro", 1_u32);
    query.with("t", "cede").with("y", "q").encode()
}

/// The peers of an answer.
fn peers_of(octets: &[u8]) -> Vec<SocketAddr> {
    let Ok(document) = Document::parse(octets, Limits::MESSAGE) else { return Vec::new() };
    let answer = document.root().get(b"r");
    let values = answer.and_then(|answer| answer.get(b"values")).filter(|values| values.is_list());
    let texts = values.into_iter().flat_map(Node::items).filter_map(Node::bytes);
    texts.filter(|text| text.len() == 6).flat_map(compact::v4).collect()
}
