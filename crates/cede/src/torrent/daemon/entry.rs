//! A torrent of the daemon, whether it runs or not.

use super::store::Kept;
use super::terms::{RECENTLY_S, STALLED, now_s};
use crate::torrent::duty::Until;
use crate::torrent::job::Sight;
use cede_bt::metainfo::{File, Info, Metainfo};
use cede_torrent::session::{Turn, Turns, View, stamps};
use cede_torrent::storage::Stamp;
use cede_units::Rate;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Peers that are remembered of a torrent.
const PEERS_KEPT: usize = 50;

/// A torrent.
pub struct Entry {
    /// Its number, which is nobody else's as long as the daemon runs.
    pub id: u32,
    /// Its info-hash in digits.
    pub hash: String,
    /// Its place on the screen.
    pub row: usize,
    /// What is remembered of it.
    pub kept: RefCell<Kept>,
    /// The torrent, once it is known.
    pub metainfo: RefCell<Option<Rc<Metainfo>>>,
    /// What it is called as long as that is not known.
    pub called: String,
    /// It runs.
    pub run: RefCell<Option<Run>>,
    /// What is seen of it once its content has been checked.
    pub sight: RefCell<Option<Sight>>,
    /// Why it ended.
    pub error: RefCell<Option<String>>,
    /// When giving it ends.
    pub until: Rc<Cell<Until>>,
    /// It waits for its turn to be fetched.
    pub waits: Cell<bool>,
    /// What is there is to be checked whatever is known of it.
    pub is_to_be_checked: Cell<bool>,
    /// When something was received or sent last in this run of the daemon.
    pub active_at: Cell<Option<Instant>>,
    /// Since when it has moved nothing; from its beginning on, where it never has.
    pub stands_since: Cell<Instant>,
    /// When it came, was ordered something, or became another last.
    pub changed_at: Cell<Instant>,
}

/// A torrent under way.
pub struct Run {
    /// Asks for its end.
    pub stop: Rc<Notify>,
    pub task: JoinHandle<()>,
    /// It was asked to end.
    pub is_ending: bool,
}

/// How it stands, by Transmission's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    Stopped = 0,
    WaitsForCheck = 1,
    Checks = 2,
    WaitsForTurn = 3,
    Fetches = 4,
    Gives = 6,
}

impl Entry {
    /// What it is called.
    pub fn name(&self) -> String {
        self.metainfo.borrow().as_ref().map_or_else(|| self.called.clone(), |known| known.info.name.clone())
    }

    /// Whether it is under way, and has not been asked to end.
    pub fn is_under_way(&self) -> bool {
        self.run.borrow().as_ref().is_some_and(|run| !run.is_ending && !run.task.is_finished())
    }

    /// The run with this stop has nothing more to do but to say goodbye: another may begin behind it.
    pub fn note_ending(&self, stop: &Rc<Notify>) {
        let mut run = self.run.borrow_mut();
        run.iter_mut().filter(|run| Rc::ptr_eq(&run.stop, stop)).for_each(|run| run.is_ending = true);
    }

    /// How it stands; `checked` is how much of its content has been checked, while it is.
    pub fn status(&self, checked: Option<f64>) -> Status {
        match self.sight.borrow().as_ref() {
            _ if self.waits.get() => Status::WaitsForTurn,
            _ if !self.is_under_way() => Status::Stopped,
            Some(sight) if sight.session.is_done() => Status::Gives,
            Some(_) => Status::Fetches,
            None if checked.is_some() => Status::Checks,
            None if self.metainfo.borrow().is_some() => Status::WaitsForCheck,
            None => Status::Fetches,
        }
    }

    /// All that is wanted of it is there, as far as that is known: of one that does not run, or is being checked, from when it was seen last.
    pub fn is_given(&self) -> bool {
        if let Some(sight) = &*self.sight.borrow() {
            return sight.session.is_done();
        }
        let (kept, metainfo) = (self.kept.borrow(), self.metainfo.borrow());
        let Some(known) = metainfo.as_ref().filter(|_| !kept.here.is_empty()) else { return false };
        let is_here = |(number, (_, file)): (usize, (usize, &File))| {
            kept.unwanted.contains(&number) || kept.here.get(number) == Some(&file.length)
        };
        files(&known.info).enumerate().all(is_here)
    }

    /// It has moved nothing for long, and need not wait for a check to do so.
    pub fn is_stalled(&self) -> bool {
        let is_checked = self.sight.borrow().is_some() || self.metainfo.borrow().is_none();
        is_checked && self.stands_since.get().elapsed() >= STALLED
    }

    /// Something has become of it.
    pub fn note_change(&self) {
        self.changed_at.set(Instant::now());
    }

    /// Whether it has moved something lately, or something has become of it: clients that ask for nothing else are to hear of that, too.
    pub fn is_active(&self) -> bool {
        let latest = self.active_at.get().max(Some(self.changed_at.get()));
        latest.is_some_and(|at| at.elapsed().as_secs() < RECENTLY_S)
    }

    /// When something was received or sent last, in seconds since 1970; 0 where nothing was.
    pub fn active_s(&self) -> i64 {
        self.active_at.get().map_or(0, |at| now_s() - at.elapsed().as_secs() as i64)
    }

    /// Fetches its files in the turns that are kept from now on.
    pub fn take_turns(&self) {
        if let Some(sight) = &*self.sight.borrow() {
            sight.session.take_turns(&turns(&sight.info, &self.kept.borrow()));
        }
    }

    /// Its own limits, and when giving it ends, hold from now on, and where it has none of its own those that all have.
    pub fn apply_terms(&self, session: Until) {
        let kept = self.kept.borrow();
        self.until.set(kept.own.until(session, kept.sent));
        if let Some(sight) = &*self.sight.borrow() {
            let (up, down) = kept.own.limits();
            sight.session.set_limits(up, down);
        }
    }

    /// It was given, or fetched, for so many seconds more.
    pub fn note_time(&self, is_done: bool, seconds: u64) {
        let mut kept = self.kept.borrow_mut();
        *(if is_done { &mut kept.given_s } else { &mut kept.fetched_s }) += seconds;
    }

    /// What its session sees, while there is one.
    pub fn view(&self) -> Option<View> {
        self.sight.borrow().as_ref().map(|sight| sight.session.view())
    }

    /// Octets per second that come and leave.
    pub fn rates(&self) -> (u64, u64) {
        let stands = self.sight.borrow().as_ref().and_then(|sight| sight.stands.get());
        let sum = |rates: &[Rate]| rates.iter().map(|rate| rate.bits_per_sec() / 8).sum();
        let rates = stands.filter(|_| self.is_under_way()).map(|stands| stands.rates);
        rates.map_or((0, 0), |rates| (sum(&rates.down), sum(&rates.up)))
    }

    /// Octets that were received and sent, ever.
    pub fn moved(&self, view: Option<&View>) -> (u64, u64) {
        let kept = self.kept.borrow();
        let totals = view.map(|view| view.totals).unwrap_or_default();
        (kept.received + totals.received(), kept.sent + totals.sent())
    }

    /// Octets of each of its files that are there, in whole pieces: now, or when it ended last.
    pub fn here(&self) -> Vec<u64> {
        match self.sight.borrow().as_ref() {
            Some(sight) => here(&sight.info, &sight.session.whole()),
            None => self.kept.borrow().here.clone(),
        }
    }

    /// Where all of it is there, and on the disk, how its files stand is remembered.
    pub fn note_checked(&self) {
        let sight = self.sight.borrow();
        let Some((sight, storage)) = sight.as_ref().and_then(|it| Some((it, it.storage.as_ref()?))) else {
            return;
        };
        let is_whole = sight.session.is_done()
            && storage.wants_everything()
            && sight.session.whole().iter().all(|is_whole| *is_whole);
        let stand = || stamps(storage).into_iter().map(|stamp| stamp.map(Stamp::numbers)).collect();
        self.kept.borrow_mut().checked = is_whole.then(stand);
    }

    /// Whether its content has ever been opened, and what is there of it is its own.
    pub fn has_begun(&self) -> bool {
        !self.kept.borrow().here.is_empty()
    }

    /// Whether the places of its files are its own, or are to be.
    pub fn is_in_place(&self) -> bool {
        self.has_begun() || self.is_under_way()
    }

    /// It ends: what it has done is remembered.
    pub fn settle(&self) {
        self.note_checked();
        let Some(sight) = self.sight.take() else { return };
        let view = sight.session.view();
        let (received, sent) = self.moved(Some(&view));
        let mut kept = self.kept.borrow_mut();
        (kept.received, kept.sent) = (received, sent);
        kept.here = here(&sight.info, &sight.session.whole());
        // Where others have called us from, nobody need be waiting.
        let called = view.peers.iter().filter(|peer| peer.is_outgoing).map(|peer| peer.address);
        let peers: Vec<SocketAddr> = called.take(PEERS_KEPT).collect();
        if !peers.is_empty() {
            kept.peers = peers;
        }
    }
}

/// The files that have a number here: those that are no padding, with their places in the torrent.
pub fn files(info: &Info) -> impl Iterator<Item = (usize, &File)> {
    info.files.iter().enumerate().filter(|(_, file)| !file.is_padding)
}

/// Which of the torrent's files are wanted, padding as well.
pub fn wanted(info: &Info, unwanted: &BTreeSet<usize>) -> Vec<bool> {
    let mut wanted = vec![true; info.files.len()];
    for (number, (at, _)) in files(info).enumerate() {
        wanted[at] = !unwanted.contains(&number);
    }
    wanted
}

/// When each of the torrent's files is fetched, padding as well.
pub fn turns(info: &Info, kept: &Kept) -> Turns {
    let mut turns = vec![Turn::Usual; info.files.len()];
    for (number, (at, _)) in files(info).enumerate() {
        turns[at] = kept.turn(number);
    }
    Turns { files: turns, in_order: false }
}

/// The files that are not wanted of so many: all but those that are picked, where any are, and those that are left.
pub fn unpicked(count: usize, picked: Vec<usize>, left: BTreeSet<usize>) -> BTreeSet<usize> {
    let (mut unwanted, picked) = (left, BTreeSet::from_iter(picked));
    if !picked.is_empty() {
        unwanted.extend((0..count).filter(|at| !picked.contains(at)));
    }
    unwanted
}

/// Octets of each file in pieces that are whole.
fn here(info: &Info, whole: &[bool]) -> Vec<u64> {
    let length = u64::from(info.piece_length);
    let of = |file: &File| {
        let (begin, end) = (file.offset, file.offset + file.length);
        let pieces = begin / length..end.div_ceil(length);
        let part = |piece: u64| (end.min((piece + 1) * length)).saturating_sub(begin.max(piece * length));
        let is_whole = |piece: &u64| whole.get(*piece as usize) == Some(&true);
        pieces.filter(is_whole).map(part).sum()
    };
    files(info).map(|(_, file)| of(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_bt::metainfo::Writer;

    fn info() -> Info {
        let file = |name: &str, length, offset, is_padding| File {
            path: vec!["n".to_owned(), name.to_owned()],
            length,
            offset,
            is_padding,
            is_executable: false,
        };
        let files = vec![
            file("a", 20_000, 0, false),
            file("p", 12_768, 20_000, true),
            file("b", 20_000, 32_768, false),
        ];
        let writer = Writer {
            name: "n".to_owned(),
            piece_length: 16_384,
            pieces: vec![0; 80],
            files,
            ..Writer::default()
        };
        Metainfo::parse(&writer.encode()).unwrap().info
    }

    #[test]
    fn padding_has_no_number_and_is_not_counted() {
        let info = info();
        assert_eq!(here(&info, &[true, false, true, true]), [16_384, 20_000]);
        assert_eq!(here(&info, &[false, true, false, true]), [3_616, 3_616]);
        assert_eq!(wanted(&info, &BTreeSet::from([1])), [true, true, false]);
    }
}
