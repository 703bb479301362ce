//! Requests that a peer refuses although it has unchoked us (BEP 6, "Reject Request").
//!
//! The extension leaves it to a peer what it refuses and why. Asked again at once, one that refuses everything would be asked as
//! fast as the connection carries it: so it is not asked for that piece for a minute, unless it chokes and unchokes us meanwhile;
//! and who refuses many in a row, and sends nothing in between, is let go. Without the extension, a choke takes back all requests, and
//! counts as one refusal.

use super::inbound::Verdict;
use super::{CloseReason, Engine, PeerAddress};
use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// Who refuses so often in a row, and has sent nothing for as long, is let go. Transmission refuses all that waits before it chokes,
/// hundreds of requests at once: from who sent something a moment ago more is taken.
const ROW_MAX: u32 = 64;
const BARREN: Duration = Duration::from_secs(60);
const ROW_MAX_OF_GIVERS: u32 = 1024;
/// So long a peer is not asked for a piece that it has refused a block of.
const PAUSE: Duration = Duration::from_secs(60);

/// What a peer has refused.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Pieces, and until when they are not asked for. Each costs a refusal and a row of them is short, but data ends a row: at
    /// most all pieces are here, once each.
    pieces: Vec<(u32, Instant)>,
    row: u32,
}

impl Refusals {
    pub(super) fn pieces(&self) -> impl Iterator<Item = u32> + '_ {
        self.pieces.iter().map(|&(piece, _)| piece)
    }

    /// The peer has unchoked us anew.
    pub(super) fn forgive(&mut self) {
        self.pieces.clear();
    }

    /// One more; is it too much of who has sent content at that time, or came then?
    pub(super) fn count(&mut self, now: Instant, content_at: Instant) -> Verdict {
        self.row += 1;
        let most = if now.since(content_at) >= BARREN { ROW_MAX } else { ROW_MAX_OF_GIVERS };
        if self.row >= most { Err(CloseReason::Misbehaved) } else { Ok(()) }
    }

    pub(super) fn end_row(&mut self) {
        self.row = 0;
    }

    pub(super) fn forget_old(&mut self, now: Instant) {
        self.pieces.retain(|&(_, until)| until > now);
    }
}

impl<A: PeerAddress> Engine<A> {
    pub(super) fn note_refusal(&mut self, now: Instant, index: u32, piece: u32) -> Verdict {
        let Some(conn) = self.at(index) else { return Ok(()) };
        conn.refusals.pieces.retain(|&(other, _)| other != piece);
        conn.refusals.pieces.push((piece, now + PAUSE));
        let (peer, verdict) = (conn.id.generation, conn.refusals.count(now, conn.times.content_at));
        self.take_suspects(peer);
        verdict
    }
}
