//! `cede torrent make`.

use super::args::MakeArgs;
use super::show::{content_bytes, magnet_of};
use super::shown;
use crate::carry::numbers;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Pace, StatusLine, work};
use crate::screen::{self, Screen};
use crate::whole;
use cede_bt::metainfo::{Metainfo, Writer};
use cede_torrent::create::{CreateError, Plan};
use serde_json::json;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// libtorrent cuts longer names.
const MAX_NAME_BYTES: usize = 240;

/// Makes a torrent.
pub fn make(args: &MakeArgs) -> Result<(), Failure> {
    // What a torrent is written over is not part of it.
    let not = args.output.as_deref().and_then(|path| path.canonicalize().ok());
    let mut plan =
        Plan::scan(&args.path, args.piece_length, not.as_deref()).map_err(|error| failed(&error))?;
    let output = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.torrent", plan.name)));
    let is_stdout = output.as_os_str() == "-";
    if is_stdout && args.json {
        return Err(Failure::Usage(
            "-o -: standard output takes the torrent; name a file for --json".to_owned(),
        ));
    }
    if !is_stdout {
        check_place(&output, args.force)?;
    }
    for path in &plan.passed_over {
        let why =
            if not.as_ref() == Some(path) { "it is to be replaced" } else { "it is neither file nor folder" };
        screen::mention(&format!("passed over, because {why}: {}\n", screen::named(path)));
    }
    mention_odd(&plan);
    if args.no_attributes {
        plan.files.iter_mut().for_each(|file| file.is_executable = false);
    }
    if args.v2 {
        plan.make_v2().map_err(|error| failed(&error))?;
    }
    let octets = writer(args, &plan, hash(&plan)?).encode();
    let metainfo = Metainfo::parse(&octets).map_err(|error| Failure::Failed(error.to_string()))?;
    put(&output, &octets, args.force)?;
    tell(args, &metainfo, &output, is_stdout)
}

/// Whether the torrent can be put there: to find out that it cannot after an hour of hashing is too late.
fn check_place(output: &Path, force: bool) -> Result<(), Failure> {
    let shown = screen::named(output);
    if output.is_dir() {
        return Err(Failure::Usage(format!("-o: {shown} is a folder; name a file in it")));
    }
    if output.exists() && !force {
        return Err(Failure::Failed(format!(
            "{shown} is there already, and is not replaced without --force"
        )));
    }
    match output.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => {
            let folder = screen::named(folder);
            Err(Failure::Usage(format!("-o: there is no folder {folder}; make it: mkdir -p {folder}")))
        }
        None => Ok(()),
    }
}

/// Names that are sound here and not everywhere, and those that differ from another one's in the case of letters alone.
fn mention_odd(plan: &Plan) {
    let folded = |file: &cede_bt::metainfo::File| file.path.join("/").to_lowercase();
    let mut alike: HashMap<String, usize> = HashMap::new();
    plan.files.iter().for_each(|file| *alike.entry(folded(file)).or_default() += 1);
    let is_changed = |file: &&cede_bt::metainfo::File| {
        file.path.iter().any(|name| is_odd(name)) || alike.get(&folded(file)).is_some_and(|files| *files > 1)
    };
    for file in plan.files.iter().filter(is_changed) {
        let name = shown(&file.path);
        screen::mention(&format!("some clients change or refuse the name of {name}\n"));
    }
}

/// Transmission and the file systems of Windows replace some characters, libtorrent leaves out others, which turn the direction of
/// what is written, and cuts what is long.
fn is_odd(name: &str) -> bool {
    let is_turning = |letter| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}');
    let is_replaced =
        |letter: char| letter.is_control() || "\\<>:\"|?*".contains(letter) || is_turning(letter);
    name.len() > MAX_NAME_BYTES || name.contains(is_replaced)
}

fn failed(error: &CreateError) -> Failure {
    match error {
        CreateError::Io(_, inner) => Failure::of_system(error.to_string(), inner.kind()),
        CreateError::Ended => Failure::Interrupted(error.to_string()),
        _ => Failure::Failed(error.to_string()),
    }
}

fn hash(plan: &Plan) -> Result<Vec<u8>, Failure> {
    let mut status = StatusLine::begin(Pace::patient(Duration::from_millis(100)), None);
    let total = plan.total_bytes;
    let hashed = plan.hash(&mut |done| {
        status.show(|elapsed_s| work(done, total, elapsed_s, "hashed"));
        !interrupt::is_asked()
    });
    status.end();
    hashed.map_err(|error| failed(&error))
}

fn writer(args: &MakeArgs, plan: &Plan, pieces: Vec<u8>) -> Writer {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    Writer {
        trackers: args.trackers.iter().map(|url| vec![url.clone()]).collect(),
        web_seeds: args.web_seeds.clone(),
        is_private: args.private,
        comment: args.comment.clone(),
        created_by: Some(format!("cede {}", env!("CARGO_PKG_VERSION"))),
        creation_s: now.filter(|_| !args.no_date).and_then(|now| i64::try_from(now.as_secs()).ok()),
        source: args.source.clone(),
        ..plan.writer(pieces)
    }
}

fn put(path: &Path, octets: &[u8], force: bool) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(octets).and_then(|()| stdout.flush());
        return written.map_err(|error| Failure::Failed(format!("cannot write to standard output: {error}")));
    }
    let anew = || {
        let written = File::create_new(path)?.write_all(octets);
        written.inspect_err(|_| drop(fs::remove_file(path)))
    };
    let written = if force { whole::write(path, octets) } else { anew() };
    written.map_err(|error| {
        Failure::of_system(format!("cannot write {}: {error}", screen::named(path)), error.kind())
    })
}

fn tell(args: &MakeArgs, metainfo: &Metainfo, output: &Path, is_stdout: bool) -> Result<(), Failure> {
    let info = &metainfo.info;
    let magnet = magnet_of(metainfo);
    let files = info.real_files().count();
    if args.json {
        let value = json!({
            "file": output.display().to_string(),
            "info_hash": numbers::hex(&info.info_hash()),
            "info_hash_v2": info.hash_v2.map(|hash| numbers::hex(&hash)),
            "bytes": content_bytes(info),
            "files": files,
            "pieces": info.piece_count(),
            "piece_length": info.piece_length,
            "magnet": magnet.to_string(),
        });
        return screen::print_json(&value);
    }
    let text = format!(
        "{}: {} in {}, {} of {} KiB\ninfo-hash {}\n{magnet}\n",
        if is_stdout { shown(std::slice::from_ref(&info.name)) } else { screen::named(output) },
        numbers::amount(content_bytes(info)),
        numbers::count(files, "file"),
        numbers::count(info.piece_count() as usize, "piece"),
        info.piece_length >> 10,
        info.hash_v2.map_or_else(|| numbers::hex(&info.hash_v1), |hash| numbers::hex(&hash)),
    );
    Screen::new(is_stdout).say(&text)
}
