//! One search: ever nearer nodes are asked until the eight nearest that answer have been, and the eight nearest whose ids follow from
//! their addresses (BEP 42). So whoever draws ids that are near is not all that is asked, and who has no such id is not left out.

use super::table::WIDTH;
use super::{Id, distance, secure};
use alloc::vec::Vec;
use core::net::SocketAddr;

/// Questions that are open at a time.
const ABREAST: usize = 4;
/// Nodes that a search knows of at most; of those that have not been asked the farthest make room, before all whose ids do not fit.
const KNOWN: usize = 128;
/// Nodes of one answer that are listened to.
const NAMED: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    New,
    Asked,
    Answered,
    Failed,
}

#[derive(Debug)]
struct Candidate {
    /// Those that a search begins with are known by their addresses alone.
    id: Option<Id>,
    address: SocketAddr,
    stage: Stage,
    token: Option<Vec<u8>>,
}

impl Candidate {
    /// Whose id is not known yet is taken at its word once it is.
    fn fits(&self) -> bool {
        self.id.is_none_or(|id| secure::fits(&id, self.address.ip()))
    }
}

/// The nearest, and the nearest that fit, of those that come nearest first.
fn nearest<C: core::borrow::Borrow<Candidate>>(
    candidates: impl Iterator<Item = C>,
) -> impl Iterator<Item = C> {
    let (mut all, mut fitting) = (0, 0);
    candidates.filter(move |candidate| {
        let fits = candidate.borrow().fits();
        (all, fitting) = (all + 1, fitting + usize::from(fits));
        all <= WIDTH || fits && fitting <= WIDTH
    })
}

/// A search for what is near `target`.
#[derive(Debug)]
pub(super) struct Lookup {
    pub target: Id,
    candidates: Vec<Candidate>,
}

impl Lookup {
    /// Begins with nodes that are known, and with addresses at which there are some.
    pub fn new(target: Id, known: &[(Id, SocketAddr)], entries: &[SocketAddr]) -> Self {
        let mut lookup = Self { target, candidates: Vec::new() };
        known.iter().for_each(|(id, address)| lookup.add(Some(*id), *address));
        entries.iter().for_each(|address| lookup.add(None, *address));
        lookup
    }

    fn add(&mut self, id: Option<Id>, address: SocketAddr) {
        if self.candidates.iter().any(|known| known.address == address) {
            return;
        }
        self.candidates.push(Candidate { id, address, stage: Stage::New, token: None });
        self.sort();
        if self.candidates.len() > KNOWN {
            self.drop_farthest();
        }
    }

    fn drop_farthest(&mut self) {
        let is_new = |known: &Candidate| known.stage == Stage::New;
        let farthest = self.candidates.iter().rposition(|known| is_new(known) && !known.fits());
        if let Some(at) = farthest.or_else(|| self.candidates.iter().rposition(is_new)) {
            self.candidates.remove(at);
        }
    }

    /// Nearest first; before all those who are known by their addresses alone: an empty table has nobody else.
    fn sort(&mut self) {
        let target = self.target;
        self.candidates.sort_by_key(|known| known.id.map(|id| distance(&id, &target)));
    }

    /// Who is to be asked now.
    pub fn next(&mut self) -> Option<SocketAddr> {
        if self.candidates.iter().filter(|known| known.stage == Stage::Asked).count() >= ABREAST {
            return None;
        }
        let living = self.candidates.iter_mut().filter(|known| known.stage != Stage::Failed);
        let next = nearest(living).find(|known| known.stage == Stage::New)?;
        next.stage = Stage::Asked;
        Some(next.address)
    }

    /// Whether nobody is left to be asked, or to be waited for.
    pub fn is_over(&self) -> bool {
        let living = self.candidates.iter().filter(|known| known.stage != Stage::Failed);
        nearest(living).all(|known| known.stage == Stage::Answered)
    }

    pub fn answered(&mut self, from: SocketAddr, id: Id, token: Option<Vec<u8>>, nodes: &[(Id, SocketAddr)]) {
        let Some(known) = self.candidates.iter_mut().find(|known| known.address == from) else { return };
        (known.id, known.stage, known.token) = (Some(id), Stage::Answered, token);
        self.sort();
        nodes.iter().take(NAMED).for_each(|(id, address)| self.add(Some(*id), *address));
    }

    pub fn failed(&mut self, address: SocketAddr) {
        if let Some(known) = self.candidates.iter_mut().find(|known| known.address == address) {
            known.stage = Stage::Failed;
        }
    }

    /// How many have answered.
    pub fn answers(&self) -> usize {
        self.candidates.iter().filter(|known| known.stage == Stage::Answered).count()
    }

    /// The nearest that have answered, with their tokens.
    pub fn takers(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let answered = self.candidates.iter().filter(|known| known.stage == Stage::Answered);
        let takers = nearest(answered.filter(|known| known.token.is_some()));
        takers.filter_map(|known| Some((known.address, known.token.as_deref()?)))
    }
}
