//! Which places of a folder belong to whom, where several torrents are written into one.
//!
//! A file belongs to one torrent, and is no folder of another one's. Names that some file systems take for one another are so where this
//! folder's does: that is seen once one of them is there, so the one that was taken first is made.

use super::files::{Access, Folder, is_same_place};
use super::names::{Taken, folded, kept_path};
use cede_bt::metainfo::File;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// A path below the folder, name by name.
type Names = Vec<String>;

/// What torrents have taken.
#[derive(Default)]
pub struct Claims {
    /// Files, and those of them that lie above others: folders, as often as they are taken. Each by what its name is alike in.
    files: HashMap<Names, Vec<Names>>,
    folders: HashMap<Names, Vec<Names>>,
}

/// What somebody else has taken already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clash {
    /// The file or folder.
    pub path: Vec<String>,
    /// What it is called by whoever has taken it.
    pub taken: Vec<String>,
}

impl Claims {
    /// Takes the places of a torrent's files below a folder, or none of them where one belongs to another torrent.
    ///
    /// # Errors
    /// The first that does.
    pub fn take(
        &mut self,
        folder: &Path,
        files: &[File],
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<(), Clash> {
        let (paths, folders) = places(files, is_wanted);
        let is_one = |taken: &Names, is_folder, path: &Names| are_one(folder, (taken, is_folder), path);
        for path in &paths {
            let key = folded(path);
            let of_files =
                self.files.get(&key).into_iter().flatten().find(|taken| is_one(taken, false, path));
            let mut of_folders = self.folders.get(&key).into_iter().flatten();
            refuse(path, of_files.or_else(|| of_folders.find(|taken| is_one(taken, true, path))))?;
        }
        for path in &folders {
            let mut taken = self.files.get(&folded(path)).into_iter().flatten();
            refuse(path, taken.find(|taken| is_one(taken, false, path)))?;
        }
        paths.into_iter().for_each(|path| self.files.entry(folded(&path)).or_default().push(path));
        for path in folders {
            self.folders.entry(folded(&path)).or_default().push(path);
        }
        Ok(())
    }

    /// Where a torrent's files are below a folder, name by name.
    pub fn paths(files: &[File], is_wanted: impl Fn(usize) -> bool) -> Vec<Vec<String>> {
        places(files, is_wanted).0
    }

    /// Gives back what was taken: nothing comes of the torrent.
    pub fn give_back(&mut self, files: &[File], is_wanted: impl Fn(usize) -> bool) {
        let (paths, folders) = places(files, is_wanted);
        for (taken, given) in [(&mut self.files, paths), (&mut self.folders, folders.into_iter().collect())] {
            for path in given {
                let alike = taken.entry(folded(&path)).or_default();
                alike.iter().position(|other| *other == path).map(|at| alike.swap_remove(at));
            }
        }
    }
}

/// The places of a torrent's files, and the folders above them.
fn places(files: &[File], is_wanted: impl Fn(usize) -> bool) -> (Vec<Names>, BTreeSet<Names>) {
    let wanted = files.iter().enumerate().filter(|(at, file)| !file.is_padding && is_wanted(*at));
    let paths: Vec<Names> = wanted.map(|(_, file)| kept_path(&file.path, Taken::All)).collect();
    let above = |path: &Names| (1..path.len()).map(|len| path[..len].to_vec()).collect::<Vec<_>>();
    let folders = paths.iter().flat_map(above).collect();
    (paths, folders)
}

fn refuse(path: &Names, taken: Option<&Names>) -> Result<(), Clash> {
    taken.map_or(Ok(()), |taken| Err(Clash { path: path.clone(), taken: taken.clone() }))
}

/// Whether two paths, of which the first is taken, are one place. What is wrong with either is told by who uses it.
fn are_one(folder: &Path, (taken, is_folder): (&Names, bool), path: &Names) -> bool {
    if taken == path {
        return true;
    }
    let at = |path: &Names| path.iter().fold(PathBuf::from(folder), |place, name| place.join(name));
    let make = || {
        let below = Folder::open(folder)?;
        if is_folder { below.make_folder(taken) } else { below.file(taken, Access::Write).map(drop) }
    };
    let (taken_at, path_at) = (at(taken), at(path));
    let is_there = |place: &Path| place.symlink_metadata().is_ok();
    let was_there = is_there(&path_at);
    let is_made = !is_there(&taken_at);
    if is_made && make().is_err() {
        return false;
    }
    // What has come with it is the same, although some file systems in user space give both numbers of their own.
    is_made && !was_there && is_there(&path_at) || is_same_place(&taken_at, &path_at)
}
