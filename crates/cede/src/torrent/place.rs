//! Where a torrent's content is, or goes, and what of it is there.

use super::hub::Hub;
use crate::failure::Failure;
use crate::interrupt;
use crate::screen;
use cede_bt::metainfo::Info;
use cede_torrent::check::{self, Watch};
use cede_torrent::mend::mend;
use cede_torrent::session::{Session, stamps};
use cede_torrent::storage::{Allocation, Notes, Storage, StorageError};
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
    /// `None` where nothing is written.
    pub allocation: Option<Allocation>,
    /// Peers are told of a few pieces each.
    pub is_super: bool,
}

/// The content of a torrent.
pub struct Content {
    /// Its files.
    pub storage: Arc<Storage>,
    /// What is written down of it, where it is written to.
    pub notes: Option<Notes>,
    /// The pieces that are there.
    pub whole: Vec<bool>,
}

impl Place {
    /// Whether anything is to come here.
    pub fn want(&self, session: &Session) {
        match self.allocation {
            Some(_) => session.want_files(),
            None if self.is_super => session.super_seed(),
            None => session.want_nothing(),
        }
    }

    /// Opens the content and finds out what is there, when it is this torrent's turn.
    pub async fn open(&self, info: &Arc<Info>, (hub, row): (&Hub, usize)) -> Result<Content, Failure> {
        let storage = Storage::new(&self.folder, info, &self.wanted).map_err(|error| unstored(&error))?;
        let storage = Arc::new(storage);
        let prepared = self.allocation.map(|allocation| prepare(info, &self.folder, (&storage, allocation)));
        let (notes, forbidden) = match prepared.transpose() {
            Ok(notes) => (notes, None),
            // Where all of it is there, nothing need be written.
            Err(error) if error.is_forbidden() && storage.has_all_files() => (None, Some(error)),
            Err(error) => return Err(unstored(&error)),
        };
        let skip = notes
            .as_ref()
            .map(|notes| notes.missing(storage.layout(), &stamps(&storage)))
            .unwrap_or_default();
        let _turn = hub.turns.acquire().await;
        let shown = |part| hub.board(|board| board.checking(row, part));
        let whole = find(info, &storage, (skip, notes.is_some()), shown).await?;
        let is_missing = storage.wanted_pieces().iter().zip(&whole).any(|(wanted, whole)| *wanted && !whole);
        match forbidden.filter(|_| is_missing) {
            Some(error) => Err(unstored(&error)),
            None => Ok(Content { storage, notes, whole }),
        }
    }
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

/// Opens the notes and makes room.
fn prepare(
    info: &Info,
    folder: &Path,
    (storage, allocation): (&Storage, Allocation),
) -> Result<Notes, StorageError> {
    let notes = Notes::open(folder, &info.info_hash())?;
    if let Err(error) = storage.prepare(allocation) {
        // Notes of an earlier run are kept: what is in the way may be moved.
        notes.discard_if_empty();
        return Err(error);
    }
    Ok(notes)
}

/// The pieces that are there. Of those that files share the parts are looked for where they may be, if something is to be written.
async fn find(
    info: &Arc<Info>,
    storage: &Arc<Storage>,
    (skip, is_written): (Vec<bool>, bool),
    show: impl Fn(f64),
) -> Result<Vec<bool>, Failure> {
    let watch = Arc::new(Watch::default());
    let (checked, total) = (watch.clone(), info.total_bytes);
    let (subject, torrent) = (storage.clone(), info.clone());
    let mut checking = tokio::task::spawn_blocking(move || {
        let mut whole = check::check(&subject, &torrent, &skip, &checked);
        let mended =
            if is_written { mend(&subject, &torrent, (&mut whole, &skip), &checked) } else { Ok(()) };
        mended.map(|()| whole)
    });
    let whole = loop {
        tokio::select! {
            whole = &mut checking => break whole,
            () = tokio::time::sleep(TICK) => {}
        }
        watch.is_ended.store(interrupt::is_asked(), Relaxed);
        show(watch.done.load(Relaxed) as f64 / total as f64);
    };
    if interrupt::is_asked() {
        return Err(Failure::Interrupted("what is there was not checked".to_owned()));
    }
    let whole = whole.map_err(|error| Failure::Failed(error.to_string()))?;
    whole.map_err(|error| unstored(&error))
}
