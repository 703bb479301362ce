//! `cede torrent show`.

use super::args::ShowArgs;
use super::source::{Asked, Fetched, fetch};
use super::{read_metainfo, shown, source_name, swarm};
use crate::carry::numbers;
use crate::failure::Failure;
use crate::screen::{self, Screen};
use cede_bt::magnet::Magnet;
use cede_bt::metainfo::{Info, Metainfo, Version};
use cede_torrent::origin::Origin;
use serde_json::{Value, json};
use std::fmt::Write;

/// Files that are listed for people; programs get all.
const MAX_LISTED: usize = 200;

/// Shows a torrent or a link.
pub fn show(args: &ShowArgs) -> Result<(), Failure> {
    let named = |failure: Failure| failure.about(&source_name(&args.what));
    let (value, text) = match Asked::of(&args.what)? {
        Asked::Link(link) => of_link(&link)?,
        Asked::File(path) => of_torrent(&read_metainfo(path).map_err(named)?),
        Asked::Url(url) => match swarm::run(fetch(url, Origin::default())).map_err(named)? {
            Fetched::Torrent(metainfo) => of_torrent(&metainfo),
            Fetched::Link(link) => of_link(&link)?,
        },
    };
    if args.json { screen::print_json(&value) } else { Screen::new(false).say(&text) }
}

fn of_link(link: &str) -> Result<(Value, String), Failure> {
    let magnet = Magnet::parse(link).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok((magnet_document(&magnet), magnet_text(&magnet)))
}

fn of_torrent(metainfo: &Metainfo) -> (Value, String) {
    (document(metainfo), text(metainfo))
}

/// The link that names the same torrent.
pub fn magnet_of(metainfo: &Metainfo) -> Magnet {
    let info = &metainfo.info;
    Magnet {
        hash_v1: (info.version != Version::V2).then_some(info.hash_v1),
        hash_v2: info.hash_v2,
        name: Some(info.name.clone()),
        trackers: metainfo.trackers.iter().flatten().cloned().collect(),
        web_seeds: metainfo.web_seeds.clone(),
        ..Magnet::default()
    }
}

fn document(metainfo: &Metainfo) -> Value {
    let info = &metainfo.info;
    let file = |file: &cede_bt::metainfo::File| {
        json!({
            "path": file.path.join("/"),
            "length": file.length,
            "padding": file.is_padding,
            "executable": file.is_executable,
        })
    };
    json!({
        "name": info.name,
        "version": match info.version { Version::V1 => "v1", Version::V2 => "v2", Version::Hybrid => "hybrid" },
        "info_hash": numbers::hex(&info.info_hash()),
        "info_hash_v2": info.hash_v2.map(|hash| numbers::hex(&hash)),
        "bytes": content_bytes(info),
        "piece_length": info.piece_length,
        "pieces": info.piece_count(),
        "private": info.is_private,
        "files": info.files.iter().map(file).collect::<Vec<_>>(),
        "trackers": metainfo.trackers,
        "web_seeds": metainfo.web_seeds,
        "nodes": metainfo.nodes,
        "comment": metainfo.comment,
        "created_by": metainfo.created_by,
        "creation_s": metainfo.creation_s,
        "magnet": magnet_of(metainfo).to_string(),
    })
}

/// Octets of all files; padding is none.
pub fn content_bytes(info: &Info) -> u64 {
    info.real_files().map(|file| file.length).sum()
}

fn web_seeds(out: &mut String, urls: &[String]) {
    urls.iter().for_each(|url| line(out, "web seed", url));
}

fn line(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "{name:<13} {}", shown(&[value.to_owned()]));
}

fn text(metainfo: &Metainfo) -> String {
    let info = &metainfo.info;
    let mut out = String::new();
    line(&mut out, "name", &info.name);
    line(&mut out, "version", &version(info));
    line(&mut out, "info-hash", &numbers::hex(&info.info_hash()));
    if let Some(hash) = info.hash_v2 {
        line(&mut out, "v2 info-hash", &numbers::hex(&hash));
    }
    let files = info.real_files().count();
    let amount = numbers::amount(content_bytes(info));
    line(&mut out, "content", &format!("{amount} in {}", numbers::count(files, "file")));
    let pieces = numbers::count(info.piece_count() as usize, "piece");
    line(&mut out, "pieces", &format!("{pieces} of {} B", info.piece_length));
    if info.is_private {
        line(&mut out, "private", "yes: peers come from the trackers alone");
    }
    for (tier, urls) in metainfo.trackers.iter().enumerate() {
        urls.iter().for_each(|url| line(&mut out, &format!("tracker {}", tier + 1), url));
    }
    web_seeds(&mut out, &metainfo.web_seeds);
    metainfo.nodes.iter().for_each(|node| line(&mut out, "DHT node", node));
    for (name, value) in [("comment", &metainfo.comment), ("made by", &metainfo.created_by)] {
        value.iter().for_each(|value| line(&mut out, name, value));
    }
    line(&mut out, "magnet link", &magnet_of(metainfo).to_string());
    out + &list(info)
}

fn version(info: &Info) -> String {
    match info.version {
        Version::V1 => "v1".to_owned(),
        Version::V2 if info.lacks_hashes() => "v2, without the hashes of its pieces".to_owned(),
        Version::V2 => "v2".to_owned(),
        Version::Hybrid => "hybrid: its v1 side is used, and its v2 hashes are not checked".to_owned(),
    }
}

/// The files with the numbers by which they are selected.
fn list(info: &Info) -> String {
    let mut out = String::new();
    let numbered = info.numbered();
    let files = numbered.iter().map(|at| &info.files[*at]).enumerate();
    let real = files.filter(|(_, file)| !file.is_padding);
    for (index, file) in real.clone().take(MAX_LISTED) {
        let mark = if file.is_executable { '*' } else { ' ' };
        let amount = numbers::amount(file.length);
        let _ = writeln!(out, "{index:>6} {amount:>9} {mark}{}", shown(&file.path));
    }
    if real.clone().any(|(_, file)| file.is_executable) {
        out += "* executable\n";
    }
    let more = real.count().saturating_sub(MAX_LISTED);
    if more > 0 {
        let _ = writeln!(out, "and {}; --json lists all", numbers::count(more, "more file"));
    }
    out
}

fn magnet_document(magnet: &Magnet) -> Value {
    json!({
        "name": magnet.name,
        "info_hash": numbers::hex(&magnet.info_hash()),
        "info_hash_v2": magnet.hash_v2.map(|hash| numbers::hex(&hash)),
        "trackers": magnet.trackers,
        "peers": magnet.peers,
        "web_seeds": magnet.web_seeds,
        "selected": magnet.selected,
        "magnet": magnet.to_string(),
    })
}

fn magnet_text(magnet: &Magnet) -> String {
    let mut out = String::new();
    magnet.name.iter().for_each(|name| line(&mut out, "name", name));
    line(&mut out, "info-hash", &numbers::hex(&magnet.info_hash()));
    magnet.hash_v2.iter().for_each(|hash| line(&mut out, "v2 info-hash", &numbers::hex(hash)));
    magnet.trackers.iter().for_each(|url| line(&mut out, "tracker", url));
    magnet.peers.iter().for_each(|peer| line(&mut out, "peer", peer));
    web_seeds(&mut out, &magnet.web_seeds);
    out + "Names, sizes and files are known once a peer has told them: cede torrent get\n"
}
