//! Where the files of torrents go, and which of them are a torrent's own.

use super::entry::{Entry, files, turns, unpicked, wanted};
use super::roster::Daemon;
use super::store::Kept;
use crate::failure::Failure;
use crate::torrent::place::{Place, Written, make_folder, unstored};
use crate::torrent::real;
use crate::torrent::seek::Source;
use crate::torrent::source::linked;
use cede_bt::metainfo::Info;
use cede_torrent::storage::{Allocation, Stamp, Storage};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::rc::Rc;

impl Daemon {
    /// Where a torrent goes that is known now.
    pub(super) fn place(&self, entry: &Entry, source: &Source) -> Result<Place, Failure> {
        if entry.metainfo.borrow().is_none() {
            let unwanted = unwanted(source, &entry.kept.borrow())?;
            self.store.write_torrent(&entry.hash, &source.metainfo)?;
            entry.metainfo.replace(Some(Rc::new(source.metainfo.clone())));
            let mut kept = entry.kept.borrow_mut();
            (kept.link, kept.unwanted, kept.picked) = (None, unwanted, Vec::new());
            drop(kept);
            self.remember(entry);
        }
        let kept = entry.kept.borrow();
        let allocation = if self.args.preallocate { Allocation::Full } else { Allocation::Sparse };
        make_folder(&kept.folder)?;
        let written = Some(Written { allocation, over_others: false });
        let wanted = wanted(&source.metainfo.info, &kept.unwanted);
        let stamps =
            |stand: &Vec<Option<(u64, i64)>>| stand.iter().map(|it| it.map(Stamp::of_numbers)).collect();
        // What is not wanted is kept elsewhere, and so not where it was when all was.
        let is_known = !entry.is_to_be_checked.take() && kept.unwanted.is_empty();
        let known = kept.checked.as_ref().filter(|_| is_known).map(stamps);
        let turns = turns(&source.metainfo.info, &kept);
        Ok(Place { folder: kept.folder.clone(), wanted, turns, written, is_super: false, known })
    }

    /// Removes a torrent's files. Where it never began there are none, whatever is at their places; nor are those its own that another
    /// torrent has there.
    pub(super) fn delete(&self, entry: &Entry) -> Result<(), Failure> {
        let metainfo = entry.metainfo.borrow().clone();
        let Some(known) = metainfo.filter(|_| entry.has_begun()) else { return Ok(()) };
        let open = |folder: &Path, info: &Info| {
            Storage::new(&real(folder), info, &[]).map_err(|error| unstored(&error))
        };
        let mut of_others = HashSet::new();
        for other in self.entries().iter().filter(|other| other.hash != entry.hash && other.is_in_place()) {
            let metainfo = other.metainfo.borrow().clone();
            let storage = metainfo.map(|known| open(&other.kept.borrow().folder, &known.info));
            if let Some(Ok(storage)) = storage {
                of_others.extend((0..storage.layout().files().len()).map(|file| storage.path_of(file)));
            }
        }
        let storage = open(&entry.kept.borrow().folder, &known.info)?;
        storage.remove_files(|path| of_others.contains(path)).map_err(|error| unstored(&error))
    }
}

/// The files that are not wanted of a torrent that is known now: what was said with its link, or the link itself selects.
fn unwanted(source: &Source, kept: &Kept) -> Result<BTreeSet<usize>, Failure> {
    let info = &source.metainfo.info;
    let picked = match (&kept.picked[..], &source.selected[..]) {
        ([], selected) if !selected.is_empty() => {
            let advice = "remove it, and add the link without that";
            let selected = linked(info, selected, advice)?;
            let numbers = files(info).enumerate().filter(|(_, (at, _))| selected.contains(at));
            numbers.map(|(number, _)| number).collect()
        }
        (picked, _) => picked.to_vec(),
    };
    Ok(unpicked(files(info).count(), picked, kept.unwanted.clone()))
}
