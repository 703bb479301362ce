//! What nodes say to each other: queries, answers and errors in one datagram each.
//!
//! Source: BEP 5, and `nodes6` and `want` (BEP 32), `ip` (BEP 42) and `ro` (BEP 43). Transaction ids are whatever the asker likes, of any length, and are given back as
//! they came: libtorrent's have two octets, those of other clients four.

use super::Id;
use crate::bencode::{Document, Form, Limits, Node};
use crate::family::Family;
use crate::tracker::compact;
use alloc::vec::Vec;
use core::net::SocketAddr;

/// Octets of a node's id.
const ID_BYTES: usize = 20;
/// The longest answer (BEP 32): what there is no room for is left out.
const MAX_BYTES: usize = 1_024;
/// What makes no sense, or has no good token, is refused with this.
pub(super) const PROTOCOL: u32 = 203;
/// The longest transaction id that is given back.
const ECHOED_BYTES: usize = 64;
/// The longest token that is kept.
const TOKEN_BYTES: usize = 128;

/// What one node asks another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Query {
    /// Whether it is there.
    Ping,
    /// Nodes that are near.
    FindNode(Id),
    /// Peers of a torrent, and nodes that are near.
    GetPeers(Id),
    /// Remember that the asker has a torrent, at this port, or where it asks from.
    Announce {
        /// The torrent.
        info_hash: Id,
        /// The peer's port; where there is none it is the one that the query came from.
        port: Option<u16>,
        /// What an answer of the same node to `get_peers` has said.
        token: Vec<u8>,
    },
}

impl Query {
    /// Nodes near what are wanted, where any are.
    #[must_use]
    pub const fn target(&self) -> Option<&Id> {
        match self {
            Self::FindNode(target) | Self::GetPeers(target) => Some(target),
            Self::Ping | Self::Announce { .. } => None,
        }
    }
}

/// Who asks, and what it wants to hear of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asker {
    /// Its name.
    pub id: Id,
    /// Whether it answers nobody itself (BEP 43).
    pub is_silent: bool,
    /// Nodes of which family it wants to hear of (BEP 32): where it says nothing, of that over which it asks.
    pub wants: Vec<Family>,
}

impl Asker {
    /// One that answers, too, and says nothing of what it wants.
    #[must_use]
    pub const fn new(id: Id) -> Self {
        Self { id, is_silent: false, wants: Vec::new() }
    }
}

/// What is answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// Who answers.
    pub id: Id,
    /// Nodes that it knows of.
    pub nodes: Vec<(Id, SocketAddr)>,
    /// Peers that it knows of.
    pub peers: Vec<SocketAddr>,
    /// What an announce has to show.
    pub token: Option<Vec<u8>>,
    /// From where it was asked.
    pub asker: Option<SocketAddr>,
}

/// A datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Somebody asks.
    Query(Asker, Query),
    /// Somebody asks something that makes no sense, or that is not known.
    Odd(u32),
    /// An answer.
    Answer(Answer),
    /// A refusal, and from where it was asked.
    Error(Option<SocketAddr>),
}

/// The message in a datagram and its transaction id.
#[must_use]
pub fn read(octets: &[u8]) -> Option<(Vec<u8>, Message)> {
    let document = Document::parse(octets, Limits::MESSAGE).ok()?;
    let root = document.root();
    let transaction = root.get(b"t")?.bytes().filter(|octets| octets.len() <= ECHOED_BYTES)?.to_vec();
    let message = match root.get(b"y")?.bytes()? {
        b"q" => query(root),
        b"r" => Message::Answer(Answer { asker: asker(root), ..answer(root.get(b"r")?)? }),
        b"e" => Message::Error(asker(root)),
        _ => return None,
    };
    Some((transaction, message))
}

fn asker(root: Node<'_, '_>) -> Option<SocketAddr> {
    compact::peer(root.get(b"ip")?.bytes()?)
}

fn id_of(node: Node<'_, '_>, key: &[u8]) -> Option<Id> {
    node.get(key)?.bytes()?.try_into().ok()
}

fn query(root: Node<'_, '_>) -> Message {
    /// Is not known.
    const UNKNOWN: u32 = 204;
    let (Some(name), Some(said)) = (root.get(b"q").and_then(Node::bytes), root.get(b"a")) else {
        return Message::Odd(PROTOCOL);
    };
    let asked = match name {
        b"ping" => Some(Query::Ping),
        b"find_node" => id_of(said, b"target").map(Query::FindNode),
        b"get_peers" => id_of(said, b"info_hash").map(Query::GetPeers),
        b"announce_peer" => announce(said),
        _ => return Message::Odd(UNKNOWN),
    };
    let is_silent = root.get(b"ro").and_then(Node::int) == Some(1);
    match (id_of(said, b"id"), asked) {
        (Some(id), Some(asked)) => Message::Query(Asker { id, is_silent, wants: wants(said) }, asked),
        _ => Message::Odd(PROTOCOL),
    }
}

fn wants(said: Node<'_, '_>) -> Vec<Family> {
    let listed = |key: &[u8]| {
        let list = said.get(b"want").filter(|list| list.is_list());
        list.into_iter().flat_map(Node::items).any(|name| name.bytes() == Some(key))
    };
    Family::ALL.into_iter().filter(|family| listed(want_of(*family).as_bytes())).collect()
}

/// By what its nodes are asked for.
const fn want_of(family: Family) -> &'static str {
    match family {
        Family::V4 => "n4",
        Family::V6 => "n6",
    }
}

/// Where its nodes are told of, and octets of an address of theirs.
const fn nodes_of(family: Family) -> (&'static str, usize) {
    match family {
        Family::V4 => ("nodes", compact::V4_BYTES),
        Family::V6 => ("nodes6", compact::V6_BYTES),
    }
}

fn announce(said: Node<'_, '_>) -> Option<Query> {
    let token = said.get(b"token")?.bytes()?.to_vec();
    let port = if said.get(b"implied_port").and_then(Node::int).is_some_and(|implied| implied != 0) {
        None
    } else {
        Some(u16::try_from(said.get(b"port")?.uint()?).ok().filter(|port| *port != 0)?)
    };
    Some(Query::Announce { info_hash: id_of(said, b"info_hash")?, port, token })
}

fn answer(said: Node<'_, '_>) -> Option<Answer> {
    let id = id_of(said, b"id")?;
    let nodes = Family::ALL.into_iter().flat_map(|family| nodes(said, family)).collect();
    let values = said.get(b"values").filter(|values| values.is_list());
    let peers = values.into_iter().flat_map(Node::items).filter_map(Node::bytes).filter_map(compact::peer);
    let token = said.get(b"token").and_then(Node::bytes).filter(|token| token.len() <= TOKEN_BYTES);
    let token = token.map(<[u8]>::to_vec);
    Some(Answer { id, nodes, peers: peers.collect(), token, asker: None })
}

/// The nodes of a family. An IPv4 address that is written as an IPv6 one is nobody's.
fn nodes(said: Node<'_, '_>, family: Family) -> Vec<(Id, SocketAddr)> {
    let (key, address_bytes) = nodes_of(family);
    let octets = said.get(key.as_bytes()).and_then(Node::bytes).unwrap_or_default();
    let contacts = octets.chunks_exact(ID_BYTES + address_bytes).filter_map(|octets| {
        let (id, address) = octets.split_first_chunk::<ID_BYTES>()?;
        Some((*id, compact::peer(address)?))
    });
    contacts.filter(|(_, address)| Family::of(address.ip()) == family).collect()
}

fn packed(address: SocketAddr) -> Vec<u8> {
    let mut out = Vec::with_capacity(compact::V6_BYTES);
    compact::push(&mut out, address);
    out
}

/// The octets of a query.
#[must_use]
pub fn ask(transaction: &[u8], asker: &Asker, query: &Query) -> Vec<u8> {
    let said = Form::dict().with("id", &asker.id[..]);
    let (name, said) = match query {
        Query::Ping => ("ping", said),
        Query::FindNode(target) => ("find_node", said.with("target", &target[..])),
        Query::GetPeers(info_hash) => ("get_peers", said.with("info_hash", &info_hash[..])),
        Query::Announce { info_hash, port, token } => {
            let said = said.with("info_hash", &info_hash[..]).with("token", &token[..]);
            let implied = u32::from(port.is_none());
            ("announce_peer", said.with("implied_port", implied).with("port", u32::from(port.unwrap_or(1))))
        }
    };
    let wants: Vec<Form> = asker.wants.iter().map(|family| want_of(*family).into()).collect();
    let said = said.with_some("want", Some(wants).filter(|wants| !wants.is_empty()));
    let whole = Form::dict().with("a", said).with_some("ro", asker.is_silent.then_some(1_u32));
    whole.with("q", name).with("t", transaction).with("y", "q").encode()
}

/// The octets of an answer; of peers it has as many as there is room for.
#[must_use]
pub fn reply(transaction: &[u8], answer: &Answer) -> Vec<u8> {
    let mut said = Form::dict().with("id", &answer.id[..]);
    for family in Family::ALL {
        // Who asks for peers is told of nodes of its own family even where there are none.
        let is_due =
            answer.token.is_some() && answer.asker.is_some_and(|asker| Family::of(asker.ip()) == family);
        let nodes = answer.nodes.iter().filter(|(_, address)| Family::of(address.ip()) == family);
        let octets: Vec<u8> =
            nodes.flat_map(|(id, address)| [id.to_vec(), packed(*address)].concat()).collect();
        said = said.with_some(nodes_of(family).0, Some(octets).filter(|octets| is_due || !octets.is_empty()));
    }
    let said = said.with_some("token", answer.token.clone());
    let whole = |said: Form| {
        let whole = Form::dict().with_some("ip", answer.asker.map(packed));
        whole.with("r", said).with("t", transaction).with("y", "r").encode()
    };
    let without = whole(said.clone());
    let values = values(&answer.peers, MAX_BYTES.saturating_sub(without.len()));
    if values.is_empty() { without } else { whole(said.with("values", values)) }
}

/// Those of the first peers for which there is room.
fn values(peers: &[SocketAddr], room: usize) -> Vec<Form> {
    const NAME_AND_ENDS: usize = b"6:valuesle".len();
    let mut left = room.saturating_sub(NAME_AND_ENDS);
    let packed = peers.iter().map(|peer| Form::from(packed(*peer)));
    let fitting = packed.map_while(|peer| {
        left = left.checked_sub(peer.encode().len())?;
        Some(peer)
    });
    fitting.collect()
}

/// The octets of an error, to whom asked from there.
#[must_use]
pub fn refuse(transaction: &[u8], code: u32, asker: SocketAddr) -> Vec<u8> {
    let why: Vec<Form> = alloc::vec![code.into(), "not understood".into()];
    Form::dict().with("e", why).with("ip", packed(asker)).with("t", transaction).with("y", "e").encode()
}

/// A peer at the host that a query came from.
pub(super) fn peer_at(mut from: SocketAddr, port: Option<u16>) -> SocketAddr {
    from.set_port(port.unwrap_or(from.port()));
    from
}
