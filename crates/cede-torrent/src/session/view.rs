//! How a session stands, for whoever watches.

use super::state::{Inner, State};
use crate::calls::Misses;
use cede_bt::Transport;
use cede_bt::engine::{ConnView, Totals};
use std::net::SocketAddr;

/// A session at one instant.
#[derive(Clone, Debug)]
pub struct View {
    /// What has been sent and received.
    pub totals: Totals,
    /// Pieces that are there.
    pub pieces: u32,
    /// Octets that are there, in whole pieces.
    pub bytes: u64,
    /// What is wanted, there or not.
    pub wanted: Part,
    /// What is wanted and not there.
    pub missing: Part,
    /// Octets of what is missing that ready connections have.
    pub available: u64,
    /// Everything wanted is there.
    pub is_complete: bool,
    /// Ready connections.
    pub peers: Vec<PeerView>,
    /// Servers that are asked for content.
    pub web_seeds: Vec<String>,
    /// Peers that sent bad data.
    pub banned: Vec<SocketAddr>,
    /// Peers that were called and have not been heard, by why.
    pub misses: Misses,
}

impl View {
    /// What is wanted and there.
    #[must_use]
    pub const fn wanted_here(&self) -> Part {
        let (all, missing) = (self.wanted, self.missing);
        Part { pieces: all.pieces - missing.pieces, bytes: all.bytes - missing.bytes }
    }
}

/// So many pieces, and their octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// Pieces.
    pub pieces: u32,
    /// Octets.
    pub bytes: u64,
}

/// A peer.
#[derive(Clone, Debug)]
pub struct PeerView {
    /// Where.
    pub address: SocketAddr,
    /// Over what.
    pub transport: Transport,
    /// The connection is enciphered.
    pub is_enciphered: bool,
    /// We opened it.
    pub is_outgoing: bool,
    /// What it calls itself.
    pub client: Option<String>,
    /// Pieces that it has.
    pub pieces: u32,
    /// It gives to us.
    pub unchokes_us: bool,
    /// We give to it.
    pub is_unchoked: bool,
    /// It wants something of us.
    pub is_interested: bool,
    /// We want something of it.
    pub is_interesting: bool,
    /// Octets of blocks per second that it sends and is sent, over twenty seconds.
    pub rates: [u64; 2],
    /// Blocks that it owes us, and that we owe it.
    pub owed: [usize; 2],
}

impl Inner {
    fn part(&self, pieces: impl Iterator<Item = u32>) -> Part {
        pieces.fold(Part::default(), |part, piece| Part {
            pieces: part.pieces + 1,
            bytes: part.bytes + u64::from(self.info.piece_bytes(piece)),
        })
    }

    pub(super) fn view(&self) -> View {
        let state = self.state.borrow();
        let (engine, wanted) = (&state.engine, state.engine.wanted());
        let missing = || wanted.iter().filter(|piece| engine.lacks(*piece));
        let here = self.part(engine.have().iter());
        View {
            totals: *state.engine.totals(),
            pieces: here.pieces,
            bytes: here.bytes,
            wanted: self.part(wanted.iter()),
            missing: self.part(missing()),
            available: self.part(missing().filter(|piece| engine.availability(*piece) > 0)).bytes,
            is_complete: state.engine.is_complete(),
            peers: self.peers(&state),
            web_seeds: state.web_seeds.clone(),
            banned: state.banned.clone(),
            misses: self.calls.misses(),
        }
    }

    fn peers(&self, state: &State) -> Vec<PeerView> {
        let now = self.now();
        let seen = |view: ConnView<SocketAddr>| {
            let conn = Self::conn(state, view.id);
            let conn = conn.as_ref().map(|conn| conn.borrow());
            PeerView {
                address: view.address,
                transport: view.transport,
                is_enciphered: conn.as_ref().is_some_and(|conn| conn.is_enciphered),
                is_outgoing: view.opened_by_us,
                client: conn.and_then(|conn| conn.extension.client.clone()),
                pieces: view.pieces,
                unchokes_us: !view.peer_choking,
                is_unchoked: !view.choking,
                is_interested: view.peer_interested,
                is_interesting: view.interested,
                rates: [view.download, view.upload].map(|measure| measure.rate(now) as u64),
                owed: [view.requests, view.uploads],
            }
        };
        state.engine.connections().map(seen).collect()
    }
}
