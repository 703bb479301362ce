//! Pieces that files share are used wherever their parts are, whichever files were wanted before.

mod support;

use cede_bt::metainfo::Info;
use cede_torrent::check::{Watch, check};
use cede_torrent::mend::mend;
use cede_torrent::session::stamps;
use cede_torrent::storage::{Allocation, Layout, Notes, Storage};
use std::fs;
use std::path::Path;
use support::{Member, PIECE, Scratch, choices, run, torrent};

/// Three files: the first two meet in piece 1, and all three in piece 2.
const LENGTHS: [usize; 3] = [PIECE + 5000, PIECE + 3000, 2 * PIECE];

/// Which pieces are found where these files are wanted.
fn found(folder: &Path, info: &Info, wanted: &[bool], allocation: Allocation) -> (Storage, Vec<bool>) {
    let storage = Storage::new(folder, info, wanted).unwrap();
    storage.claim().unwrap();
    let mut whole = check(&storage, info, &[], &Watch::default());
    mend(&storage, info, (&mut whole, &[]), &Watch::default()).unwrap();
    storage.make_room(allocation, &whole).unwrap();
    (storage, whole)
}

/// Stores pieces as a download of these files does.
fn store(folder: &Path, info: &Info, content: &[u8], wanted: &[bool]) {
    let storage = Storage::new(folder, info, wanted).unwrap();
    for (piece, _) in (0..).zip(storage.wanted_pieces()).filter(|(_, is_wanted)| *is_wanted) {
        let range = storage.layout().piece_range(piece);
        storage.write(range.start, &content[range.start as usize..range.end as usize]).unwrap();
    }
}

fn wanted_of(mask: usize) -> Vec<bool> {
    (0..3).map(|file| mask >> file & 1 == 1).collect()
}

#[test]
fn what_was_fetched_for_some_files_is_there_for_others() {
    let (info, content) = torrent(&LENGTHS);
    for (before, after) in (1..8).flat_map(|before| (1..8).map(move |after| (before, after))) {
        for allocation in [Allocation::Sparse, Allocation::Full] {
            let scratch = Scratch::new();
            let (before, after) = (wanted_of(before), wanted_of(after));
            store(&scratch.0, &info, &content, &before);
            let had = Storage::new(&scratch.0, &info, &before).unwrap().wanted_pieces();
            let (storage, whole) = found(&scratch.0, &info, &after, allocation);
            for piece in 0..info.piece_count() {
                let at = piece as usize;
                let expected = had[at] && storage.wanted_pieces()[at];
                let is_there = whole[at] && storage.wanted_pieces()[at];
                assert_eq!(is_there, expected, "piece {piece}, {before:?}, then {after:?}, {allocation:?}");
                let range = storage.layout().piece_range(piece);
                let mut read = vec![0; (range.end - range.start) as usize];
                if expected {
                    storage.read(range.start, &mut read).unwrap();
                    assert_eq!(read, content[range.start as usize..range.end as usize]);
                }
            }
            // It goes on so, from choice to choice.
            let (_, all) = found(&scratch.0, &info, &[], allocation);
            assert!(
                all.iter().zip(&had).all(|(is_there, had)| is_there >= had),
                "{before:?}, {after:?}, all"
            );
        }
    }
}

/// A part that is gone, or is not what it was, is fetched again, whatever the other place has.
#[test]
fn what_is_missing_is_not_taken_for_there() {
    let (info, content) = torrent(&LENGTHS);
    let shared = 1;
    for damage in ["gone", "other", "hidden gone"] {
        let scratch = Scratch::new();
        store(&scratch.0, &info, &content, &[true, false, false]);
        let first = Storage::new(&scratch.0, &info, &[]).unwrap().path_of(0);
        let hidden = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
        let hidden = hidden.filter(|path| path.extension().is_some_and(|end| end == "cede-parts")).last();
        match damage {
            "gone" => fs::remove_file(&first).unwrap(),
            "other" => fs::write(&first, &content[1..LENGTHS[0]]).unwrap(),
            _ => fs::remove_file(hidden.unwrap()).unwrap(),
        }
        let (_, whole) = found(&scratch.0, &info, &[false, true, false], Allocation::Sparse);
        assert!(!whole[shared], "{damage}");
    }
}

/// Either place may have something that is not the torrent's beside what is.
#[test]
fn where_both_places_have_something_the_hash_decides() {
    let (info, content) = torrent(&LENGTHS);
    let scratch = Scratch::new();
    store(&scratch.0, &info, &content, &[true, false, false]);
    // What would be the second file's own is another's.
    let other = Storage::new(&scratch.0, &info, &[]).unwrap().path_of(1);
    fs::write(&other, vec![7; LENGTHS[1]]).unwrap();
    let (storage, whole) = found(&scratch.0, &info, &[true, true, false], Allocation::Sparse);
    assert!(whole[1]);
    let own = fs::read(storage.path_of(1)).unwrap();
    let here = 2 * PIECE - LENGTHS[0];
    assert_eq!(own[..here], content[LENGTHS[0]..2 * PIECE]);
    assert!(own[here..].iter().all(|octet| *octet == 7), "nothing else of it is touched");
}

/// Notes of a run that did not want a file do not say that it is missing.
#[test]
fn a_file_that_was_not_wanted_is_looked_at_when_it_is() {
    run(async {
        let (info, content) = torrent(&LENGTHS);
        let wanted = [false, false, true];
        let mut member = Member::new(&info, None, &wanted, choices(1, 5)).await;
        let folder = &member.scratch.0;
        store(folder, &info, &content, &[true, false, false]);
        let mut driver = member.driver.take().unwrap();
        driver.keep_notes(Some(Notes::open(folder, &info.info_hash()).unwrap()));
        driver.write_last_notes();
        let all = Storage::new(folder, &info, &[]).unwrap();
        let missing = driver.take_notes().unwrap().missing(&Layout::new(&info), &stamps(&all));
        assert_eq!(missing, [false, false, true, true, true]);
        assert!(check(&all, &info, &missing, &Watch::default())[0]);
    });
}
