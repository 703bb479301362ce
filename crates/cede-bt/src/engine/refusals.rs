//! Requests that a peer refuses although it has unchoked us (BEP 6, "Reject Request").
//!
//! The extension leaves it to a peer what it refuses and why. Most have been asked for more than they take at a time: libtorrent
//! refuses what is beyond its `reqq`. So a peer that refuses is asked for no more at a time than it has not refused, and for the
//! block again as soon as that leaves room; a minute later it is tried with as many as before. Asked again at once and for ever, one
//! that refuses everything would be asked as fast as the connection carries it: so a piece that it refuses a second time, or
//! when it had nothing else to answer, is not asked of it for a minute, unless it chokes and unchokes us meanwhile; and who
//! refuses many in a row, and sends nothing in between, is let go. Without the extension, a choke takes back all requests, and
//! counts as one refusal.

use super::{CloseReason, Engine, PeerAddress, Verdict};
use alloc::vec::Vec;
use cede_units::{Duration, Instant};

/// Who refuses so often in a row, and has sent nothing for as long, is let go. Transmission refuses all that waits before it chokes,
/// hundreds of requests at once: from who sent something a moment ago more is taken.
const ROW_MAX: u32 = 64;
const BARREN: Duration = Duration::from_secs(60);
const ROW_MAX_OF_GIVERS: u32 = 1024;
/// So long a peer is not asked for a piece that it does not give, nor for more blocks at a time than it has taken.
const PAUSE: Duration = Duration::from_secs(60);

/// What a peer has refused.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Each costs a refusal and a row of them is short, but data ends a row: at most all pieces are here, once each.
    pieces: Vec<Refused>,
    /// How many requests it has had to answer without refusing one, and until when that counts.
    fewer: Option<(u32, Instant)>,
    row: u32,
}

/// A piece of which a block was refused.
#[derive(Clone, Copy, Debug)]
struct Refused {
    piece: u32,
    stage: Stage,
    until: Instant,
}

/// What is made of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// There may have been too many requests.
    Excused,
    /// It is asked for again.
    AskedAgain,
    /// It is not to be had.
    Closed,
}

impl Refusals {
    /// Pieces that are not asked for.
    pub(super) fn pieces(&self) -> impl Iterator<Item = u32> + '_ {
        self.pieces.iter().filter(|it| it.stage == Stage::Closed).map(|it| it.piece)
    }

    /// How many requests it may have to answer at a time, as far as refusals tell.
    pub(super) fn requests_max(&self) -> u32 {
        self.fewer.map_or(u32::MAX, |(most, _)| most)
    }

    /// The peer has unchoked us anew.
    pub(super) fn forgive(&mut self) {
        self.pieces.clear();
        self.fewer = None;
    }

    /// A block of the piece is asked for.
    pub(super) fn note_request(&mut self, piece: u32) {
        let excused = self.pieces.iter_mut().find(|it| it.piece == piece && it.stage == Stage::Excused);
        if let Some(excused) = excused {
            excused.stage = Stage::AskedAgain;
        }
    }

    /// A block of the piece has come: it is not the piece that is refused.
    pub(super) fn note_block(&mut self, piece: u32) {
        self.pieces.retain(|it| it.piece != piece || it.stage == Stage::Closed);
    }

    /// A block of a piece was refused, and so many others are still to be answered.
    fn note(&mut self, now: Instant, piece: u32, others: u32) {
        let until = now + PAUSE;
        let before = self.pieces.iter().find(|it| it.piece == piece).map(|it| it.stage);
        let stage = match before {
            None if others == 0 => Stage::Closed,
            // Of one that is excused, all that was asked for together may be refused: it is asked for once more, by itself.
            None | Some(Stage::Excused) => Stage::Excused,
            Some(_) => Stage::Closed,
        };
        if stage == Stage::Excused {
            self.fewer = Some((others.max(1), until));
        } else if others == 0 {
            // It is not for their number that requests are refused.
            self.fewer = None;
        }
        self.pieces.retain(|it| it.piece != piece);
        self.pieces.push(Refused { piece, stage, until });
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
        self.pieces.retain(|it| it.until > now);
        self.fewer.take_if(|(_, until)| *until <= now);
    }
}

impl<A: PeerAddress> Engine<A> {
    pub(super) fn note_refusal(&mut self, now: Instant, index: u32, piece: u32) -> Verdict {
        let Some(conn) = self.at(index) else { return Ok(()) };
        conn.refusals.note(now, piece, conn.owed.len() as u32);
        let (peer, verdict) = (conn.id.generation, conn.refusals.count(now, conn.times.content_at));
        self.drop_plans(index);
        self.take_suspects(peer);
        // Who refuses everything is asked for a block of each piece; others are to finish one before they begin the next.
        self.picker.leave_untouched();
        verdict
    }
}
