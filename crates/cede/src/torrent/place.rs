//! Where a torrent's content is, or goes, and what of it is there.

use super::hub::{Elsewhere, Hub};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen;
use cede_bt::metainfo::Info;
use cede_bt::picker::Begun;
use cede_torrent::check::{self, Watch};
use cede_torrent::mend::mend;
use cede_torrent::session::{Session, Turns, stamps};
use cede_torrent::storage::{Allocation, Notes, Stamp, Storage, StorageError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How often a check is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Where the content is, or goes.
pub struct Place {
    /// The folder.
    pub folder: PathBuf,
    /// Which files are wanted; all where it is empty.
    pub wanted: Vec<bool>,
    /// Which of them come first.
    pub turns: Turns,
    /// How it is written; `None` where nothing is.
    pub written: Option<Written>,
    /// Peers are told of a few pieces each.
    pub is_super: bool,
    /// How all files stood when all of it was there and checked: where they stand so still, it is not checked again.
    pub known: Option<Vec<Option<Stamp>>>,
}

/// How content is written.
#[derive(Clone, Copy)]
pub struct Written {
    /// How room is made.
    pub allocation: Allocation,
    /// What is there is written over, even where nothing of it is of this torrent.
    pub over_others: bool,
}

/// The content of a torrent.
pub struct Content {
    /// Its files.
    pub storage: Arc<Storage>,
    /// What is written down of it, where it is written to.
    pub notes: Option<Notes>,
    /// The pieces that are there.
    pub whole: Vec<bool>,
    /// What an earlier run left of other pieces.
    pub begun: Vec<Begun>,
}

impl Place {
    /// Whether anything is to come here.
    pub fn want(&self, session: &Session) {
        match self.written {
            Some(_) => {
                session.take_turns(&self.turns);
                session.want_files();
            }
            None if self.is_super => session.super_seed(),
            None => session.want_nothing(),
        }
    }

    /// Opens the content and finds out what is there, when it is this torrent's turn.
    pub async fn open(&self, info: &Arc<Info>, (hub, row): (&Hub, usize)) -> Result<Content, Failure> {
        let storage = Storage::new(&self.folder, info, &self.wanted).map_err(|error| unstored(&error))?;
        let storage = Arc::new(storage);
        let claimed = self.written.map(|_| claim(info, &self.folder, &storage)).transpose();
        let (claimed, forbidden) = match claimed {
            Ok(claimed) => (claimed.zip(self.written), None),
            // Where all of it is there, nothing need be written.
            Err(error) if error.is_forbidden() && storage.has_all_files() => (None, Some(error)),
            Err(error) => return Err(unstored(&error)),
        };
        if claimed.is_some() && self.known.as_ref().is_some_and(|known| *known == stamps(&storage)) {
            storage.rest();
            let notes = claimed.and_then(|(claimed, _)| claimed.keep());
            let whole = vec![true; info.piece_count() as usize];
            return Ok(Content { storage, notes, whole, begun: Vec::new() });
        }
        let _turn = hub.turns.acquire().await;
        let Some((claimed, written)) = claimed else {
            let whole = find((info, &storage), Vec::new(), Purpose::Read, (hub, row)).await?;
            return match forbidden.filter(|_| is_missing(&storage, &whole)) {
                Some(error) => Err(unstored(&error)),
                None => Ok(Content { storage, notes: None, whole, begun: Vec::new() }),
            };
        };
        let notes = claimed.0.as_ref();
        let skip = notes.map(|notes| notes.missing(storage.layout(), &stamps(&storage))).unwrap_or_default();
        // Notes go once everything wanted is there; the ends of pieces stay, and tell of the run, too.
        let is_first = notes.is_some_and(Notes::is_new) && !storage.has_parts();
        let purpose = if is_first && !written.over_others { Purpose::Begin } else { Purpose::Write };
        let whole = find((info, &storage), skip, purpose, (hub, row)).await?;
        make_room(&storage, written.allocation, &whole)?;
        let notes = claimed.keep();
        let begun = notes.as_ref().map(|notes| notes.begun(&info.geometry)).unwrap_or_default();
        Ok(Content { storage, notes, whole, begun })
    }
}

fn is_missing(storage: &Storage, whole: &[bool]) -> bool {
    storage.wanted_pieces().iter().zip(whole).any(|(wanted, whole)| *wanted && !whole)
}

/// The folder is there, or at least the one that it is to be made in.
pub fn check_folder(folder: &Path) -> Result<(), Failure> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = screen::named(folder);
    if folder.is_dir() {
        Ok(())
    } else if folder.symlink_metadata().is_ok() {
        Err(Failure::Usage(format!("-o: {name} is no folder; give the one to put the files into")))
    } else if parent.is_none_or(Path::is_dir) {
        Ok(())
    } else {
        Err(Failure::Usage(format!("-o: there is no folder to make {name} in; make it: mkdir -p {name}")))
    }
}

/// Whether content that is to be given may be there; whatever is missed is told of when it is looked for.
pub fn check_data(data: &Path) -> Result<(), Failure> {
    if data.exists() && !data.is_dir() {
        let name = screen::named(data);
        return Err(Failure::Usage(format!(
            "--data: {name} is no folder; give the one that the content is in"
        )));
    }
    Ok(())
}

/// Makes the folder where it is not there.
pub fn make_folder(folder: &Path) -> Result<(), Failure> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Failure::of_system(format!("cannot make {}: {error}", screen::named(folder)), error.kind()))
        }
        _ => Ok(()),
    }
}

/// What a storage says.
pub fn unstored(error: &StorageError) -> Failure {
    Failure::of_system(screen::printable(&error.to_string()), error.error.kind())
}

/// Notes of a torrent that has not begun yet. Where nothing comes of it, nobody waiting for it any more among that, new ones go: they would
/// say that what is there is of an earlier run.
struct Claimed(Option<Notes>);

impl Claimed {
    fn keep(mut self) -> Option<Notes> {
        self.0.take()
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Notes::discard_if_new);
    }
}

/// Opens the notes, and sees that nothing is in the way.
fn claim(info: &Info, folder: &Path, storage: &Storage) -> Result<Claimed, StorageError> {
    let claimed = Claimed(Some(Notes::open(folder, &info.info_hash())?));
    storage.claim()?;
    Ok(claimed)
}

/// Makes room for what is missing. Where nothing is, nothing need be written.
fn make_room(storage: &Storage, allocation: Allocation, whole: &[bool]) -> Result<(), Failure> {
    let is_missing = is_missing(storage, whole);
    match storage.make_room(allocation, whole) {
        Err(error) if error.is_forbidden() && storage.has_all_files() && !is_missing => {}
        made => made.map_err(|error| unstored(&error))?,
    }
    if !is_missing {
        storage.rest();
    }
    Ok(())
}

/// What pieces are looked for for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Nothing is written.
    Read,
    /// An earlier run is gone on with.
    Write,
    /// Nothing tells of an earlier run: what is there may be somebody else's.
    Begin,
}

/// A check whose outcome nobody waits for any more ends.
struct Abandoned(Arc<Watch>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.is_ended.store(true, Relaxed);
    }
}

/// The pieces that are there. Of those that files share the parts are looked for where they may be, if something is to be written.
async fn find(
    (info, storage): (&Arc<Info>, &Arc<Storage>),
    skip: Vec<bool>,
    purpose: Purpose,
    (hub, row): (&Hub, usize),
) -> Result<Vec<bool>, Failure> {
    let watch = Arc::new(Watch::default());
    let _abandoned = Abandoned(watch.clone());
    let (checked, subject, torrent, advice) = (watch.clone(), storage.clone(), info.clone(), hub.elsewhere());
    let mut checking = tokio::task::spawn_blocking(move || {
        let mut whole = check::check(&subject, &torrent, &skip, &checked);
        if purpose != Purpose::Read {
            mend(&subject, &torrent, (&mut whole, &skip), &checked).map_err(|error| unstored(&error))?;
        }
        let is_strange = purpose == Purpose::Begin && !whole.contains(&true);
        match is_strange.then(|| subject.stranger(&checked.is_ended)).flatten() {
            Some(path) => Err(stranger(&path, advice)),
            None => Ok(whole),
        }
    });
    let whole = loop {
        tokio::select! {
            whole = &mut checking => break whole,
            () = tokio::time::sleep(TICK) => {}
        }
        watch.is_ended.store(interrupt::is_asked(), Relaxed);
        let part = watch.done.load(Relaxed) as f64 / info.total_bytes as f64;
        hub.board(|board| board.checking(row, part));
    };
    mention_unread(hub, info, &watch);
    if interrupt::is_asked() {
        return Err(Failure::Interrupted("what is there was not checked".to_owned()));
    }
    whole.map_err(|error| Failure::Failed(error.to_string()))?
}

/// What is there and cannot be read is fetched again, or not given: a person should know that it is not simply missing.
fn mention_unread(hub: &Hub, info: &Info, watch: &Watch) {
    if let Some(error) = watch.unread.get() {
        let error = screen::printable(&error.to_string());
        hub.say_of(&info.name, &format!("taken for missing: {error}"));
    }
}

/// Something is where a torrent's file belongs that is no part of it.
fn stranger(path: &Path, advice: Elsewhere) -> Failure {
    let name = screen::named(path);
    let Elsewhere { folder, over } = advice;
    Failure::Failed(format!(
        "{name} is there already, and no piece of this torrent: move it away, {folder}{over}"
    ))
}
