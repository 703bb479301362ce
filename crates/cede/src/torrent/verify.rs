//! `cede torrent verify`: whether the files of a torrent are what it says.

use super::args::VerifyArgs;
use super::place::{check_data, unstored};
use super::{read_metainfo, shown, source_name};
use crate::carry::numbers;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{self, Pace, StatusLine};
use crate::screen::{self, Screen};
use cede_bt::metainfo::Info;
use cede_torrent::check::{self, Watch};
use cede_torrent::storage::{Storage, StorageError};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Files that are listed for people; programs get all.
const MAX_LISTED: usize = 200;
/// How often the work is looked at.
const TICK: Duration = Duration::from_millis(50);

/// Why files cannot be read.
type Errors = HashMap<PathBuf, String>;

/// How a file stands.
struct Standing {
    path: Vec<String>,
    length: u64,
    /// As long as it is, where it is there.
    found: Option<u64>,
    pieces: usize,
    right: usize,
    /// Why it cannot be read.
    error: Option<String>,
}

impl Standing {
    fn of(storage: &Storage, whole: &[bool], errors: &Errors, index: usize) -> Self {
        let file = &storage.layout().files()[index];
        let path = storage.path_of(index);
        let metadata = path.symlink_metadata().ok();
        let pieces = storage.layout().pieces_of(index);
        Self {
            path: file.path.clone(),
            length: file.length,
            found: metadata.filter(|metadata| metadata.is_file()).map(|metadata| metadata.len()),
            pieces: pieces.len(),
            right: pieces.filter(|piece| whole[*piece as usize]).count(),
            error: errors.get(&path).cloned(),
        }
    }

    fn is_whole(&self) -> bool {
        self.right == self.pieces && self.found == Some(self.length)
    }

    /// What is wrong with it.
    fn fault(&self) -> String {
        let pieces = format!("{} of {} right", self.right, numbers::count(self.pieces, "piece"));
        match self.found {
            None => "is not there".to_owned(),
            Some(found) if found > self.length => format!("has {found} octets, and not {}", self.length),
            Some(_) if let Some(error) = &self.error => format!("cannot be read: {error}"),
            Some(found) if found < self.length => format!("has {found} octets of {}; {pieces}", self.length),
            Some(_) => pieces,
        }
    }

    fn document(&self) -> Value {
        json!({
            "path": self.path.join("/"), "length": self.length, "found_length": self.found,
            "pieces": self.pieces, "pieces_right": self.right, "whole": self.is_whole(),
            "error": self.error,
        })
    }
}

/// Checks the files of a torrent; that something is wrong with them is a failure.
pub fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    check_data(&args.data)?;
    let name = args.what.display().to_string();
    let info = read_metainfo(&args.what).map_err(|failure| failure.about(&source_name(&name)))?.info;
    let storage = Storage::new(&args.data, &info, &[]).map_err(|error| unstored(&error))?;
    let (whole, unread) = hash(&storage, &info)?;
    let files = 0..storage.layout().files().len();
    let files = files.filter(|index| !storage.layout().files()[*index].is_padding);
    let errors = storage.in_the_way(usize::MAX).into_iter().chain(unread);
    let errors: Errors = errors.map(|error| (error.path, error.error.to_string())).collect();
    let files: Vec<Standing> = files.map(|index| Standing::of(&storage, &whole, &errors, index)).collect();
    let wrong: Vec<&Standing> = files.iter().filter(|file| !file.is_whole()).collect();
    if args.json {
        screen::print_json(&document(&info, &whole, &files, wrong.is_empty()))?;
    } else {
        Screen::new(false).say(&text(&info, &whole, &wrong))?;
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let folder = screen::named(&args.data);
    let how_many =
        format!("{} of {} differ or are missing", wrong.len(), numbers::count(files.len(), "file"));
    let advice = if wrong.iter().all(|file| file.found.is_none()) {
        format!("--data names the folder that they are in, which is {folder} now")
    } else {
        let what = if name == "-" { "FILE".to_owned() } else { screen::named(&args.what) };
        format!("`cede torrent get {what} -o {folder}` fetches what is not right")
    };
    Err(Failure::Failed(format!("{how_many}: {advice}")))
}

/// Which pieces are right, told of as it goes on, and what could not be read of a file that is there.
fn hash(storage: &Storage, info: &Info) -> Result<(Vec<bool>, Option<StorageError>), Failure> {
    let (mut watch, total) = (Watch::default(), info.total_bytes);
    let mut status = StatusLine::begin(Pace::patient(Duration::from_millis(100)), None);
    let whole = std::thread::scope(|scope| {
        let work = scope.spawn(|| check::check(storage, info, &[], &watch));
        while !work.is_finished() {
            std::thread::sleep(TICK);
            watch.is_ended.store(interrupt::is_asked(), Relaxed);
            status.show(|elapsed_s| progress::work(watch.done.load(Relaxed), total, elapsed_s, "checked"));
        }
        work.join()
    });
    status.end();
    if interrupt::is_asked() {
        return Err(Failure::Interrupted("not everything was checked".to_owned()));
    }
    whole.map(|whole| (whole, watch.unread.take())).map_err(|panic| std::panic::resume_unwind(panic))
}

fn document(info: &Info, whole: &[bool], files: &[Standing], is_whole: bool) -> Value {
    json!({
        "name": info.name,
        "info_hash": numbers::hex(&info.info_hash()),
        "whole": is_whole,
        "pieces": whole.len(),
        "pieces_right": whole.iter().filter(|right| **right).count(),
        "files": files.iter().map(Standing::document).collect::<Vec<_>>(),
    })
}

fn text(info: &Info, whole: &[bool], wrong: &[&Standing]) -> String {
    let mut text = String::new();
    for file in wrong.iter().take(MAX_LISTED) {
        let _ = writeln!(text, "{}: {}", shown(&file.path), file.fault());
    }
    if wrong.len() > MAX_LISTED {
        let _ = writeln!(text, "and {} more", wrong.len() - MAX_LISTED);
    }
    let (right, all) = (whole.iter().filter(|right| **right).count(), numbers::count(whole.len(), "piece"));
    let (name, bytes) = (screen::printable(&info.name), numbers::amount(super::show::content_bytes(info)));
    let _ = writeln!(text, "{name}: {right} of {all} right, {bytes} in all");
    text
}
