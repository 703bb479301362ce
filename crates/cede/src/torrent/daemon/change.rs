//! Orders that change something.

use super::chosen::chosen;
use super::entry::{Entry, files, unpicked};
use super::own::{self, Own, is_true};
use super::roster::{Daemon, called};
use super::store::Kept;
use super::terms::{Arguments, now_s, said};
use crate::carry::numbers;
use crate::failure::Failure;
use crate::screen;
use crate::torrent::source::{Asked, Fetched, fetch};
use crate::torrent::{read_metainfo, source_name};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use cede_bt::magnet::Magnet;
use cede_bt::metainfo::Metainfo;
use cede_torrent::session::Turn;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// As lenient as other clients are.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn usage(text: String) -> Failure {
    Failure::Usage(text)
}

/// An order that says something which is not known here is not carried out at all.
pub fn refuse_unknown(arguments: &Arguments, known: &[&str]) -> Result<(), Failure> {
    match arguments.keys().find(|key| !known.contains(&&***key)) {
        Some(key) => Err(usage(format!("{key} is not known here"))),
        None => Ok(()),
    }
}

/// Numbers of files in a list.
fn numbers_of(arguments: &Arguments, key: &str) -> Result<Option<Vec<usize>>, Failure> {
    let number = |number: &Value| number.as_u64().and_then(|number| usize::try_from(number).ok());
    said(arguments, key, |list| list.as_array()?.iter().map(number).collect(), "a list of numbers of files")
}

/// When files are fetched, as orders call it.
const TURNS: [(&str, Turn); 3] =
    [("priority-high", Turn::First), ("priority-normal", Turn::Usual), ("priority-low", Turn::Last)];

/// The files whose turns change; an empty list means all.
fn turns_of(arguments: &Arguments) -> Result<Vec<(Vec<usize>, Turn)>, Failure> {
    let one = |(key, turn): (&str, Turn)| Ok(numbers_of(arguments, key)?.map(|numbers| (numbers, turn)));
    TURNS.into_iter().filter_map(|turn| one(turn).transpose()).collect()
}

/// Changes them, of a torrent with so many files, where that is known; numbers that none has count for nothing.
fn give_turns(kept: &mut Kept, turns: &[(Vec<usize>, Turn)], count: Option<usize>) {
    for (numbers, turn) in turns {
        let all = if numbers.is_empty() { (0..count.unwrap_or(0)).collect() } else { numbers.clone() };
        kept.give_turn(all.into_iter().filter(|number| count.is_none_or(|count| *number < count)), *turn);
    }
}

fn text<'a>(arguments: &'a Arguments, key: &str) -> Option<&'a str> {
    arguments.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn labels(arguments: &Arguments) -> Result<Option<Vec<String>>, Failure> {
    let label = |label: &Value| label.as_str().map(str::to_owned);
    said(arguments, "labels", |list| list.as_array()?.iter().map(label).collect(), "a list of words")
}

/// A folder that torrents go into: by its whole path, as nobody knows from where a client means another.
fn folder(daemon: &Daemon, arguments: &Arguments) -> Result<PathBuf, Failure> {
    match text(arguments, "download-dir").map(Path::new) {
        None => Ok(daemon.folder.clone()),
        Some(path) if path.is_absolute() => Ok(path.to_path_buf()),
        Some(_) => Err(usage("download-dir: take a path from / on".to_owned())),
    }
}

/// What is to be added.
struct Wanted {
    hash: String,
    called: String,
    link: Option<String>,
    metainfo: Option<Metainfo>,
}

impl Wanted {
    fn torrent(metainfo: Metainfo) -> Self {
        let hash = numbers::hex(&metainfo.info.info_hash());
        Self { hash, called: metainfo.info.name.clone(), link: None, metainfo: Some(metainfo) }
    }

    fn link(link: &str) -> Result<Self, Failure> {
        let magnet = Magnet::parse(link).map_err(|error| usage(error.to_string()))?;
        let hash = numbers::hex(&magnet.info_hash());
        Ok(Self { called: called(link, &hash), hash, link: Some(link.to_owned()), metainfo: None })
    }

    /// As the arguments say: a torrent itself, the name of a file here, a URL, or a link.
    async fn of(daemon: &Daemon, arguments: &Arguments) -> Result<Self, Failure> {
        if let Some(octets) = text(arguments, "metainfo") {
            let octets: String = octets.chars().filter(|it| !it.is_ascii_whitespace()).collect();
            let octets = BASE64.decode(octets).map_err(|error| usage(format!("metainfo: {error}")))?;
            let metainfo = Metainfo::parse(&octets).map_err(|error| usage(error.to_string()))?;
            return Ok(Self::torrent(metainfo));
        }
        let what = text(arguments, "filename").ok_or_else(|| usage("no filename or metainfo".to_owned()))?;
        let named = |failure: Failure| failure.about(&source_name(what));
        match Asked::of(what)? {
            Asked::Link(link) => Self::link(&link),
            // A pipe would be waited for, and all torrents with it.
            Asked::File(path) if path.as_os_str() == "-" || path.metadata().is_ok_and(|it| !it.is_file()) => {
                Err(named(usage("is no file".to_owned())))
            }
            Asked::File(path) => Ok(Self::torrent(read_metainfo(path).map_err(named)?)),
            Asked::Url(url) => match fetch(url, daemon.hub.listener.origin()).await.map_err(named)? {
                Fetched::Torrent(metainfo) => Ok(Self::torrent(*metainfo)),
                Fetched::Link(link) => Self::link(&link),
            },
        }
    }
}

/// `torrent-add`. Cookies, priorities of torrents and limits of peers are passed over, as clients send them unasked.
pub async fn add(daemon: &Rc<Daemon>, arguments: &Arguments) -> Result<Arguments, Failure> {
    let folder = folder(daemon, arguments)?;
    let (picked, left) = (numbers_of(arguments, "files-wanted")?, numbers_of(arguments, "files-unwanted")?);
    let (turns, labels) = (turns_of(arguments)?, labels(arguments)?);
    let Wanted { hash, called, link, metainfo } = Wanted::of(daemon, arguments).await?;
    let named = |key: &str, entry: &Entry| {
        let about = json!({ "id": entry.id, "name": entry.name(), "hashString": entry.hash });
        Map::from_iter([(key.to_owned(), about)])
    };
    if let Some(known) = daemon.find(&hash) {
        return Ok(named("torrent-duplicate", &known));
    }
    if metainfo.is_none() && turns.iter().any(|(numbers, _)| numbers.is_empty()) {
        return Err(usage(
            "of a link it is not known yet which files there are: say which come first".to_owned(),
        ));
    }
    let count = metainfo.as_ref().map_or(0, |known| files(&known.info).count());
    let (picked, left) = (picked.unwrap_or_default(), left.into_iter().flatten().collect());
    let mut kept = Kept {
        link,
        folder,
        is_paused: arguments.get("paused").map_or(!daemon.terms.get().starts_added, is_true),
        picked: if metainfo.is_none() { picked.clone() } else { Vec::new() },
        unwanted: unpicked(count, picked, left),
        added_s: now_s(),
        labels: labels.unwrap_or_default(),
        ..Kept::default()
    };
    give_turns(&mut kept, &turns, metainfo.as_ref().map(|_| count));
    let entry = daemon.add((hash, called), kept, metainfo)?;
    Ok(named("torrent-added", &entry))
}

/// `torrent-set`: which files are wanted, when each is fetched, labels, limits of its own, and when giving it ends.
pub fn set(daemon: &Rc<Daemon>, arguments: &Arguments) -> Result<Arguments, Failure> {
    let known = ["ids", "files-wanted", "files-unwanted", "labels", "honorsSessionLimits"];
    refuse_unknown(arguments, &[&known[..], &TURNS.map(|(key, _)| key), &own::KEYS].concat())?;
    if arguments.get("honorsSessionLimits").is_some_and(|value| !is_true(value)) {
        return Err(usage("honorsSessionLimits: the limits of all hold for each".to_owned()));
    }
    let (picked, left) = (numbers_of(arguments, "files-wanted")?, numbers_of(arguments, "files-unwanted")?);
    let (turns, labels) = (turns_of(arguments)?, labels(arguments)?);
    let chosen = chosen(daemon, arguments)?;
    let is_about_files = picked.is_some() || left.is_some() || !turns.is_empty();
    if is_about_files && chosen.iter().any(|entry| entry.metainfo.borrow().is_none()) {
        return Err(usage("it is not known yet which files there are".to_owned()));
    }
    let owns = chosen.iter().map(|entry| entry.kept.borrow().own.after(arguments));
    let owns: Result<Vec<Own>, Failure> = owns.collect();
    let mut recorded = Ok(());
    for (entry, own) in chosen.into_iter().zip(owns?) {
        if let Some(labels) = &labels {
            entry.kept.borrow_mut().labels.clone_from(labels);
        }
        if std::mem::replace(&mut entry.kept.borrow_mut().own, own) != own {
            entry.apply_terms(daemon.terms.get().until);
        }
        set_turns(&entry, &turns);
        let before = entry.kept.borrow().unwanted.clone();
        let after = picking(&entry, before.clone(), picked.as_deref(), left.as_deref());
        entry.kept.borrow_mut().unwanted.clone_from(&after);
        recorded = recorded.and(daemon.record(&entry));
        if after != before {
            daemon.restart(&entry);
        }
    }
    recorded.map(|()| Map::new())
}

/// Changes when files are fetched, also of a torrent that is under way.
fn set_turns(entry: &Entry, turns: &[(Vec<usize>, Turn)]) {
    if !turns.is_empty() {
        let count = entry.metainfo.borrow().as_ref().map(|known| files(&known.info).count());
        give_turns(&mut entry.kept.borrow_mut(), turns, count);
        entry.take_turns();
    }
}

/// The files that are not wanted, after these are, and those are not; an empty list means all.
fn picking(
    entry: &Entry,
    mut unwanted: BTreeSet<usize>,
    picked: Option<&[usize]>,
    left: Option<&[usize]>,
) -> BTreeSet<usize> {
    let count = entry.metainfo.borrow().as_ref().map_or(0, |known| files(&known.info).count());
    match picked {
        Some([]) => unwanted.clear(),
        Some(picked) => unwanted.retain(|at| !picked.contains(at)),
        None => {}
    }
    match left {
        Some([]) => unwanted = (0..count).collect(),
        Some(left) => unwanted.extend(left.iter().filter(|at| **at < count)),
        None => {}
    }
    unwanted
}

/// `torrent-remove`. Without `ids` nothing is removed.
pub fn remove(daemon: &Rc<Daemon>, arguments: &Arguments) -> Result<Arguments, Failure> {
    if arguments.get("ids").is_none_or(Value::is_null) {
        return Err(usage("ids: say which torrents".to_owned()));
    }
    let with_files = arguments.get("delete-local-data").is_some_and(is_true);
    chosen(daemon, arguments)?.into_iter().try_for_each(|entry| daemon.remove(entry, with_files))?;
    Ok(Map::new())
}

/// `free-space`.
pub fn free_space(arguments: &Arguments) -> Result<Arguments, Failure> {
    let path = text(arguments, "path").ok_or_else(|| usage("path: say of which folder".to_owned()))?;
    let free = cede_torrent::free_bytes(Path::new(path)).map_err(|error| {
        let name = screen::printable(path);
        Failure::of_system(format!("{name}: {error}"), error.kind())
    })?;
    let told = json!({ "path": path, "size-bytes": free });
    Ok(told.as_object().cloned().unwrap_or_default())
}
