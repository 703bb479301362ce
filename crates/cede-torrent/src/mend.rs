//! Pieces that files share, once other files are wanted than before.
//!
//! What such a piece has of a file that was not wanted is in the hidden file, of one that was in the file itself, so that its parts
//! are not where they are looked for as soon as the choice is another. They are looked for in both places, and brought to where
//! they belong if what is found has the piece's hash. What one place has may be left over from something else, zeros above all:
//! where both differ, either is tried.

use crate::check::{Watch, is_whole};
use crate::pieces::digest;
use crate::storage::{Home, Slice, Storage, StorageError};
use cede_bt::metainfo::Info;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// What is read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Of so many parts of a piece that differ in both places, either is tried; of others the likelier one.
const MAX_DOUBTFUL: usize = 4;

/// Where each file's part of a piece is.
type Homes = HashMap<usize, Home>;

/// Brings the parts of shared pieces to where they belong, and marks those pieces in `whole` that are there then. `skip` are known
/// to be missing.
///
/// # Errors
/// What was found cannot be written to where it belongs.
pub fn mend(
    storage: &Storage,
    info: &Info,
    (whole, skip): (&mut [bool], &[bool]),
    watch: &Watch,
) -> Result<(), StorageError> {
    if storage.wants_everything() && !storage.has_parts() {
        return Ok(());
    }
    let wanted = storage.wanted_pieces();
    let mut buffer = vec![0; CHUNK_BYTES];
    for piece in storage.layout().shared_pieces() {
        let at = piece as usize;
        let is_due = wanted[at] && !whole[at] && !skip.get(at).copied().unwrap_or(false);
        if !is_due || watch.is_ended.load(Relaxed) {
            continue;
        }
        if let Some(homes) = find(storage, info, piece, &mut buffer) {
            bring_home(storage, piece, &homes, &mut buffer)?;
            whole[at] = is_whole(storage, info, piece, &mut buffer);
        }
    }
    Ok(())
}

/// The parts of a piece that are stored, and where the content that they are parts of begins.
fn parts(storage: &Storage, piece: u32) -> (u64, Vec<Slice>) {
    let range = storage.layout().piece_range(piece);
    let slices = storage.layout().slices(range.start, (range.end - range.start) as usize);
    (range.start, slices.filter(|slice| !slice.is_padding).collect())
}

/// Where the parts of a piece are that together have its hash.
fn find(storage: &Storage, info: &Info, piece: u32, buffer: &mut [u8]) -> Option<Homes> {
    let (start, parts) = parts(storage, piece);
    let mut homes = Homes::new();
    let mut doubtful = Vec::new();
    for slice in &parts {
        let found = look(storage, start, slice);
        homes.insert(slice.file, *found.first()?);
        if let [first, second] = found[..] {
            doubtful.push((slice.file, [first, second]));
        }
    }
    doubtful.truncate(MAX_DOUBTFUL);
    let expected = info.piece_hash(piece)?;
    (0..1_usize << doubtful.len()).find_map(|choice| {
        for (at, (file, places)) in doubtful.iter().enumerate() {
            homes.insert(*file, places[choice >> at & 1]);
        }
        let task = (info.hasher(piece), storage.layout().piece_range(piece));
        let read = |at, octets: &mut [u8]| storage.read_by(at, octets, |file| homes[&file]);
        (digest(task, buffer, read).ok()? == expected).then(|| homes.clone())
    })
}

/// The places that have a part, the likelier one first; one alone where both have the same.
fn look(storage: &Storage, start: u64, slice: &Slice) -> Vec<Home> {
    let belongs = storage.home(slice.file);
    let homes = [belongs, if belongs == Home::Own { Home::Parts } else { Home::Own }];
    let (mut is_there, mut is_blank, mut are_alike) = ([true; 2], [true; 2], true);
    let mut buffers = [vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]];
    for from in slice.range.clone().step_by(CHUNK_BYTES) {
        let len = CHUNK_BYTES.min(slice.range.end - from);
        for (at, buffer) in buffers.iter_mut().enumerate() {
            let octets = &mut buffer[..len];
            is_there[at] &= storage.read_by(start + from as u64, octets, |_| homes[at]).is_ok();
            is_blank[at] &= octets.iter().all(|octet| *octet == 0);
        }
        are_alike &= buffers[0][..len] == buffers[1][..len];
    }
    match is_there {
        [true, true] if are_alike => vec![homes[0]],
        [true, true] if is_blank[0] => vec![homes[1], homes[0]],
        _ => {
            homes.into_iter().zip(is_there).filter(|(_, is_there)| *is_there).map(|(home, _)| home).collect()
        }
    }
}

/// Writes what is elsewhere to where it belongs.
fn bring_home(storage: &Storage, piece: u32, homes: &Homes, buffer: &mut [u8]) -> Result<(), StorageError> {
    let (start, parts) = parts(storage, piece);
    for slice in parts.iter().filter(|slice| homes[&slice.file] != storage.home(slice.file)) {
        for from in slice.range.clone().step_by(CHUNK_BYTES) {
            let octets = &mut buffer[..CHUNK_BYTES.min(slice.range.end - from)];
            storage.read_by(start + from as u64, octets, |file| homes[&file])?;
            storage.write(start + from as u64, octets)?;
        }
    }
    Ok(())
}
