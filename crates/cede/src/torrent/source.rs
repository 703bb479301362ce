//! What is to be downloaded: a torrent from a file, a URL or a magnet link, and which of its files.

use super::args::GetArgs;
use super::forms::of_schemes;
use super::hub::Hub;
use super::seek::{Source, follow, nothing_came};
use super::{read_metainfo, source_name};
use crate::carry::numbers;
use crate::failure::Failure;
use crate::{screen, whole};
use cede_bt::magnet::Magnet;
use cede_bt::metainfo::{File, Info, Metainfo};
use cede_torrent::fetch::{Download, download};
use cede_torrent::origin::Origin;
use cede_torrent::session::{Turn, Turns};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

/// What a torrent is asked for by.
pub enum Asked<'a> {
    /// A magnet link.
    Link(Cow<'a, str>),
    /// An HTTP URL.
    Url(&'a str),
    /// The name of a torrent file.
    File(&'a Path),
}

impl<'a> Asked<'a> {
    pub fn of(what: &'a str) -> Result<Self, Failure> {
        let exists = |what: &str| Path::new(what).exists();
        // A link that was copied has spaces and line ends around it at times, a file's name hardly ever.
        let what = if exists(what) { what } else { what.trim() };
        if what.is_empty() {
            return Err(Failure::Usage(
                "an empty name; give a torrent file, its URL or a magnet link".to_owned(),
            ));
        }
        if what.get(..7).is_some_and(|head| head.eq_ignore_ascii_case("magnet:")) {
            return Ok(Self::Link(what.into()));
        }
        // A hash alone is a link without the rest.
        let link = format!("magnet:?xt=urn:btih:{what}");
        let is_word = what.bytes().all(|octet| octet.is_ascii_alphanumeric());
        if is_word && Magnet::parse(&link).is_ok() && !exists(what) {
            return Ok(Self::Link(link.into()));
        }
        if let Some((scheme, _)) = what.split_once("://").filter(|_| !exists(what)) {
            if of_schemes(what, &["http", "https"]).is_some() {
                return Ok(Self::Url(what));
            }
            let text = format!("{scheme} is no way that torrents are fetched: take an http or https URL");
            return Err(Failure::Usage(text));
        }
        Ok(Self::File(Path::new(what)))
    }
}

/// What is at a URL.
pub enum Fetched {
    Torrent(Box<Metainfo>),
    /// The server sends on to this magnet link.
    Link(String),
}

/// Fetches what a URL leads to, unless Ctrl-C comes sooner. What is wrong with it does not name it.
pub async fn fetch(url: &str, origin: Origin) -> Result<Fetched, Failure> {
    let fetched = tokio::select! {
        fetched = download(url, origin) => fetched,
        () = crate::interrupt::asked() => return Err(nothing_came()),
    };
    match fetched {
        Ok(Download::Octets(octets)) => {
            let metainfo = Metainfo::parse(&octets);
            let metainfo = metainfo.map_err(|error| Failure::Failed(error.to_string()))?;
            Ok(Fetched::Torrent(Box::new(metainfo)))
        }
        Ok(Download::Magnet(link)) => Ok(Fetched::Link(link)),
        Err(error) => Err(Failure::Failed(screen::printable(&format!("cannot be fetched: {error}")))),
    }
}

/// Finds out what there is to download; a magnet link is followed to its torrent.
pub async fn open(what: &str, (hub, row): (&Rc<Hub>, usize)) -> Result<Source, Failure> {
    // Of several, whoever tells of a failure names each.
    let named = |failure: Failure| if hub.is_shared() { failure } else { failure.about(&source_name(what)) };
    match Asked::of(what)? {
        Asked::Link(link) => follow(&link, (hub, row)).await,
        Asked::File(path) => read_metainfo(path).map(Source::of).map_err(named),
        Asked::Url(url) => match fetch(url, hub.listener.origin()).await.map_err(named)? {
            Fetched::Torrent(metainfo) => Ok(Source::of(*metainfo)),
            Fetched::Link(link) => follow(&link, (hub, row)).await,
        },
    }
}

/// Whether there is a place for the torrent file: what is behind a link may be known only after hours. What is there already may be the
/// same torrent's, if it is a torrent file at all.
pub fn check_saving(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        let text = format!("--save-torrent: {} is a folder; name a file in it", screen::named(path));
        return Err(Failure::Usage(text));
    }
    if path.exists() && read_metainfo(path).is_err() {
        let text = format!(
            "--save-torrent: {} is there already, and no torrent file: take another name",
            screen::named(path)
        );
        return Err(Failure::Failed(text));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => {
            let name = screen::named(folder);
            Err(Failure::Usage(format!(
                "--save-torrent: there is no folder {name}; make it: mkdir -p {name}"
            )))
        }
        None => Ok(()),
    }
}

/// Writes a torrent file. That one is there already is as good, if it is the same torrent's.
pub fn save(path: &Path, metainfo: &Metainfo) -> Result<(), Failure> {
    if path.exists() {
        let is_same = read_metainfo(path).is_ok_and(|there| there.info.raw == metainfo.info.raw);
        let name = screen::named(path);
        let other =
            format!("--save-torrent: {name} is there already, and not this torrent's: take another name");
        return if is_same { Ok(()) } else { Err(Failure::Failed(other)) };
    }
    whole::write(path, &metainfo.encode()).map_err(|error| {
        Failure::of_system(
            format!("--save-torrent: cannot write {}: {error}", screen::named(path)),
            error.kind(),
        )
    })
}

/// Which files are wanted: by number, by ranges of numbers, or by a part of their names.
pub fn wanted(args: &GetArgs, source: &Source) -> Result<Vec<bool>, Failure> {
    let info = &source.metainfo.info;
    let mut wanted = vec![false; info.files.len()];
    match (&args.files[..], &source.selected[..]) {
        ([], []) => wanted.fill(true),
        ([], selected) => {
            linked(info, selected, "choose by --files")?.into_iter().for_each(|at| wanted[at] = true);
        }
        (named, _) => {
            for at in listed(info, named, "--files")? {
                wanted[at] = true;
            }
        }
    }
    Ok(wanted)
}

/// Which files come before others.
pub fn turns(args: &GetArgs, source: &Source, wanted: &[bool]) -> Result<Turns, Failure> {
    let info = &source.metainfo.info;
    let mut files = vec![Turn::Usual; info.files.len()];
    for (option, list, turn) in [("--first", &args.first, Turn::First), ("--last", &args.last, Turn::Last)] {
        for at in listed(info, list, option)? {
            let name = || screen::printable(&info.files[at].path.join("/"));
            if !wanted[at] {
                let text =
                    format!("{option}: {} is none of the files that are fetched; add it to --files", name());
                return Err(Failure::Usage(text));
            }
            if files[at] == Turn::First && turn == Turn::Last {
                return Err(Failure::Usage(format!(
                    "--first and --last both have {}; take one of them",
                    name()
                )));
            }
            files[at] = turn;
        }
    }
    Ok(Turns { files, in_order: args.in_order })
}

/// What is no padding of these numbers: that has numbers too, but nobody wants the ends of pieces that go with it.
fn content(info: &Info, numbers: Range<usize>) -> Vec<usize> {
    let numbered = info.numbered();
    let range = numbers.start.min(numbered.len())..numbers.end.min(numbered.len());
    numbered[range].iter().copied().filter(|at| !info.files[*at].is_padding).collect()
}

/// The files that a link selects. Where there are none, what can be done about it depends on who asks.
pub fn linked(info: &Info, selected: &[(u32, u32)], advice: &str) -> Result<Vec<usize>, Failure> {
    let of = |(first, last): &(u32, u32)| content(info, *first as usize..*last as usize + 1);
    let found: Vec<usize> = selected.iter().flat_map(of).collect();
    if found.is_empty() {
        let count = numbers::count(info.numbered().len(), "file");
        let text =
            format!("the link selects files (so=) that are not there: the torrent has {count}; {advice}");
        return Err(Failure::Usage(text));
    }
    Ok(found)
}

/// The files that an option lists.
fn listed(info: &Info, list: &[String], option: &str) -> Result<Vec<usize>, Failure> {
    let found: Result<Vec<_>, Failure> = list.iter().map(|text| chosen(info, text, option)).collect();
    Ok(found?.concat())
}

/// The files that one word of such a list means.
fn chosen(info: &Info, text: &str, option: &str) -> Result<Vec<usize>, Failure> {
    let files = &info.files;
    let found = match range(text) {
        Some((first, last)) if last < info.numbered().len() => content(info, first..last + 1),
        Some(_) => Vec::new(),
        None if text.trim().is_empty() => Vec::new(),
        None => (0..files.len()).filter(|at| is_named(&files[*at], text)).collect(),
    };
    if found.is_empty() {
        let text = format!("{option} '{text}': there is no such file; see: cede torrent show");
        return Err(Failure::Usage(text));
    }
    Ok(found)
}

/// Padding has a name that nobody gave it.
fn is_named(file: &File, part: &str) -> bool {
    !file.is_padding && file.path.join("/").contains(part)
}

/// "3" or "3-5".
fn range(text: &str) -> Option<(usize, usize)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_no_name() {
        for what in ["", " ", "\n"] {
            assert!(matches!(Asked::of(what), Err(Failure::Usage(_))), "{what:?}");
        }
        assert!(matches!(Asked::of("-"), Ok(Asked::File(_))));
    }
}
