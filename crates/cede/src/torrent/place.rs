//! Where a torrent's content is, or goes, and what of it is there.

use super::hub::{Elsewhere, Hub};
use crate::failure::Failure;
use crate::interrupt;
use crate::screen;
use cede_bt::metainfo::Info;
use cede_bt::picker::Begun;
use cede_torrent::check::{self, Watch};
use cede_torrent::mend::mend;
use cede_torrent::session::{Session, stamps};
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
            Some(_) => session.want_files(),
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
            Ok(notes) => (notes.zip(self.written), None),
            // Where all of it is there, nothing need be written.
            Err(error) if error.is_forbidden() && storage.has_all_files() => (None, Some(error)),
            Err(error) => return Err(unstored(&error)),
        };
        let claimed = match claimed {
            Some((notes, _)) if self.known.as_ref().is_some_and(|known| *known == stamps(&storage)) => {
                storage.rest();
                let whole = vec![true; info.piece_count() as usize];
                return Ok(Content { storage, notes: Some(notes), whole, begun: Vec::new() });
            }
            claimed => claimed,
        };
        let _turn = hub.turns.acquire().await;
        if let Some(claimed) = claimed {
            return resume((info, storage), claimed, (hub, row)).await;
        }
        let whole = find((info, &storage), Vec::new(), Purpose::Read, (hub, row)).await?;
        match forbidden.filter(|_| is_missing(&storage, &whole)) {
            Some(error) => Err(unstored(&error)),
            None => Ok(Content { storage, notes: None, whole, begun: Vec::new() }),
        }
    }
}

/// Goes on with what is there.
async fn resume(
    (info, storage): (&Arc<Info>, Arc<Storage>),
    (notes, written): (Notes, Written),
    (hub, row): (&Hub, usize),
) -> Result<Content, Failure> {
    let skip = notes.missing(storage.layout(), &stamps(&storage));
    // Notes go once everything wanted is there; the ends of pieces stay, and tell of the run, too.
    let is_first = notes.is_new() && !storage.has_parts();
    let purpose = if is_first && !written.over_others { Purpose::Begin } else { Purpose::Write };
    let found = find((info, &storage), skip, purpose, (hub, row)).await;
    let made = found.and_then(|whole| make_room(&storage, written.allocation, &whole).map(|()| whole));
    match made {
        Ok(whole) => {
            let begun = notes.begun(&info.geometry);
            Ok(Content { storage, notes: Some(notes), whole, begun })
        }
        Err(failure) => {
            notes.discard_if_new();
            Err(failure)
        }
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

/// Opens the notes, and sees that nothing is in the way.
fn claim(info: &Info, folder: &Path, storage: &Storage) -> Result<Notes, StorageError> {
    let notes = Notes::open(folder, &info.info_hash())?;
    if let Err(error) = storage.claim() {
        notes.discard_if_new();
        return Err(error);
    }
    Ok(notes)
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
