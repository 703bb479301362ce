//! What nodes say to each other: queries, answers and errors in one datagram each.
//!
//! Source: BEP 5, and `ip` (BEP 42) and `ro` (BEP 43). Transaction ids are whatever the asker likes, of any length, and are given back as
//! they came: libtorrent's have two octets, those of other clients four.

use super::Id;
use crate::bencode::{Document, Form, Limits, Node};
use crate::tracker::compact;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr, SocketAddrV4};

/// Octets of a node's id and address.
const CONTACT_BYTES: usize = 20 + compact::V4_BYTES;
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

/// What is answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// Who answers.
    pub id: Id,
    /// Nodes that it knows of.
    pub nodes: Vec<(Id, SocketAddrV4)>,
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
    /// Somebody asks: its id, whether it answers nobody itself, and what.
    Query(Id, bool, Query),
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
        (Some(id), Some(asked)) => Message::Query(id, is_silent, asked),
        _ => Message::Odd(PROTOCOL),
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
    let nodes = said.get(b"nodes").and_then(Node::bytes).unwrap_or_default();
    let nodes = nodes.chunks_exact(CONTACT_BYTES).filter_map(contact).collect();
    let values = said.get(b"values").filter(|values| values.is_list());
    let texts = values.into_iter().flat_map(Node::items).filter_map(Node::bytes);
    let peers = texts.filter(|text| text.len() == compact::V4_BYTES).flat_map(compact::v4).collect();
    let token = said.get(b"token").and_then(Node::bytes).filter(|token| token.len() <= TOKEN_BYTES);
    Some(Answer { id, nodes, peers, token: token.map(<[u8]>::to_vec), asker: None })
}

fn contact(octets: &[u8]) -> Option<(Id, SocketAddrV4)> {
    let (id, address) = octets.split_first_chunk::<20>()?;
    match compact::peer(address)? {
        SocketAddr::V4(address) => Some((*id, address)),
        SocketAddr::V6(_) => None,
    }
}

fn packed(address: SocketAddr) -> Vec<u8> {
    let mut out = Vec::with_capacity(compact::V4_BYTES);
    compact::push(&mut out, address);
    out
}

/// The octets of a query.
#[must_use]
pub fn ask(transaction: &[u8], id: Id, query: &Query) -> Vec<u8> {
    let said = Form::dict().with("id", &id[..]);
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
    Form::dict().with("a", said).with("q", name).with("t", transaction).with("y", "q").encode()
}

/// The octets of an answer.
#[must_use]
pub fn reply(transaction: &[u8], answer: &Answer) -> Vec<u8> {
    let mut said = Form::dict().with("id", &answer.id[..]);
    if !answer.nodes.is_empty() || answer.token.is_some() {
        let octets = answer.nodes.iter().flat_map(|(id, at)| [id.to_vec(), packed((*at).into())].concat());
        said = said.with("nodes", octets.collect::<Vec<u8>>());
    }
    if !answer.peers.is_empty() {
        let values: Vec<Form> = answer.peers.iter().map(|peer| packed(*peer).into()).collect();
        said = said.with("values", values);
    }
    let said = said.with_some("token", answer.token.clone());
    let whole = Form::dict().with_some("ip", answer.asker.map(packed));
    whole.with("r", said).with("t", transaction).with("y", "r").encode()
}

/// The octets of an error, to whom asked from there.
#[must_use]
pub fn refuse(transaction: &[u8], code: u32, asker: SocketAddr) -> Vec<u8> {
    let why: Vec<Form> = alloc::vec![code.into(), "not understood".into()];
    Form::dict().with("e", why).with("ip", packed(asker)).with("t", transaction).with("y", "e").encode()
}

/// A peer at the host that a query came from.
pub(super) fn peer_at(from: SocketAddrV4, port: Option<u16>) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(*from.ip()), port.unwrap_or(from.port()))
}
