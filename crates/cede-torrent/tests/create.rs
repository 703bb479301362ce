//! Making torrents and checking content, on all cores: the hashes are those of the octets one after the other, wherever
//! files begin and end; holes are zeros; what changes meanwhile is told.

mod support;

use cede_bt::metainfo::{Info, Writer, sha1};
use cede_torrent::check::{Watch, check};
use cede_torrent::create::{CreateError, Plan};
use cede_torrent::storage::Storage;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use support::{PIECE, Scratch, octets};

/// Files of these lengths, in a folder, in their order.
fn put(folder: &Path, lengths: &[usize]) {
    for (index, length) in lengths.iter().enumerate() {
        fs::write(folder.join(format!("f{index:03}")), octets(*length, index as u64)).unwrap();
    }
}

fn plan(path: &Path) -> Plan {
    Plan::scan(path, Some(PIECE as u32), None).unwrap()
}

/// The hashes of what a plan's files hold, read one after the other.
fn expected(plan: &Plan) -> Vec<u8> {
    let content: Vec<u8> = plan.places.iter().flat_map(|place| fs::read(place).unwrap()).collect();
    content.chunks(PIECE).flat_map(sha1).collect()
}

/// The hashes that are made, and are those of the content.
fn hashed(path: &Path) -> (Plan, Vec<u8>) {
    let (plan, mut told) = (plan(path), Vec::new());
    let pieces = plan.hash(&mut |done| {
        told.push(done);
        true
    });
    let pieces = pieces.unwrap();
    assert!(pieces == expected(&plan), "other hashes");
    assert!(told.is_sorted() && told.last() == Some(&plan.total_bytes), "{told:?}");
    (plan, pieces)
}

#[test]
fn one_file_around_the_ends_of_pieces_and_portions_has_its_hashes() {
    let scratch = Scratch::new();
    let file = scratch.0.join("f");
    for length in [1, 2 * PIECE, 17 * PIECE, 40 * PIECE] {
        for length in [length - 1, length, length + 1].into_iter().filter(|length| *length > 0) {
            fs::write(&file, octets(length, 1)).unwrap();
            let (_, pieces) = hashed(&file);
            assert_eq!(pieces.len(), length.div_ceil(PIECE) * 20);
        }
    }
}

#[test]
fn files_that_end_around_the_ends_of_pieces_have_their_hashes() {
    for first in [PIECE - 1, PIECE, PIECE + 1] {
        for second in [0, 1, PIECE - 1, PIECE, 3 * PIECE + 5] {
            let scratch = Scratch::new();
            put(&scratch.0, &[first, second, 0, 7, 2 * PIECE - second % PIECE, 1]);
            hashed(&scratch.0);
        }
    }
}

#[test]
fn pieces_of_many_small_files_have_their_hashes() {
    let scratch = Scratch::new();
    put(&scratch.0, &(0..400).map(|index| index * 7 % 900).collect::<Vec<_>>());
    hashed(&scratch.0);
}

/// A file with holes: at its beginning, inside, before what is not a whole piece, and at its end.
fn sparse(path: &Path, length: usize) {
    let mut file = File::create(path).unwrap();
    for (at, len) in [(PIECE * 8, PIECE * 4), (PIECE * 20 + 5, 100), (PIECE * 33 - 1, 2)] {
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&octets(len, at as u64)).unwrap();
    }
    file.set_len(length as u64).unwrap();
}

#[cfg(unix)]
#[test]
fn what_its_owner_may_run_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    put(&scratch.0, &[5; 4]);
    for (name, mode) in [("f000", 0o700), ("f001", 0o644), ("f002", 0o677), ("f003", 0o4755)] {
        fs::set_permissions(scratch.0.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let marks: Vec<bool> = plan(&scratch.0).files.iter().map(|file| file.is_executable).collect();
    assert_eq!(marks, [true, false, false, true]);
}

#[test]
fn holes_are_zeros_and_are_found_to_be_there() {
    for length in [48 * PIECE - 1, 48 * PIECE, 48 * PIECE + 1] {
        let scratch = Scratch::new();
        let folder = scratch.0.join("t");
        fs::create_dir(&folder).unwrap();
        sparse(&folder.join("a"), length);
        sparse(&folder.join("b"), length + 3);
        let (plan, pieces) = hashed(&folder);
        let Plan { name, files, piece_length, .. } = plan;
        let writer = Writer { name, piece_length, pieces, files, ..Writer::default() };
        let info = Info::parse(&writer.info().encode()).unwrap();
        let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
        let whole = || check(&storage, &info, &[], &Watch::default());
        assert!(whole().iter().all(|is_whole| *is_whole));
        // What should be there and is a hole is missing.
        sparse(&folder.join("a"), 0);
        File::options().write(true).open(folder.join("a")).unwrap().set_len(length as u64).unwrap();
        let missing: Vec<usize> =
            whole().iter().enumerate().filter(|(_, is_whole)| !**is_whole).map(|(piece, _)| piece).collect();
        assert_eq!(missing, [8, 9, 10, 11, 20, 32, 33]);
        // A file that ends in the middle of a hole is shorter than it should be.
        File::options().write(true).open(folder.join("b")).unwrap().set_len(40 * PIECE as u64).unwrap();
        assert!(!whole()[(length + 40 * PIECE).div_ceil(PIECE)]);
    }
}

#[test]
fn files_that_change_before_they_have_been_read_are_told() {
    let changes: [fn(&Path); 4] = [
        |file| File::options().write(true).open(file).unwrap().set_len(PIECE as u64).unwrap(),
        |file| File::options().append(true).open(file).unwrap().write_all(b"more").unwrap(),
        |file| {
            // As long as before, and written later.
            let file = File::options().write(true).open(file).unwrap();
            file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5)).unwrap();
        },
        |file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        // An empty file is never opened, and is looked at nevertheless.
        for (changed, lengths) in [("f001", [4, 2 * PIECE, 9]), ("f002", [4, 2 * PIECE, 0])] {
            let scratch = Scratch::new();
            put(&scratch.0, &lengths);
            let plan = plan(&scratch.0);
            change(&scratch.0.join(changed));
            match plan.hash(&mut |_| true) {
                Err(CreateError::Changed(path)) => assert!(path.ends_with(changed), "{path:?}"),
                other => panic!("change {number} of {changed}: {other:?}"),
            }
        }
    }
}

#[test]
fn files_that_come_before_all_have_been_read_are_told() {
    let scratch = Scratch::new();
    put(&scratch.0, &[4, 2 * PIECE, 9]);
    let torrent = scratch.0.join("t.torrent");
    let plan = || Plan::scan(&scratch.0, Some(PIECE as u32), Some(&torrent)).unwrap();
    let first = plan();
    // The torrent itself is left out, and what is passed over is no file.
    fs::write(&torrent, "").unwrap();
    fs::create_dir_all(scratch.0.join("empty/folder")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("f001", scratch.0.join("link")).unwrap();
    first.hash(&mut |_| true).unwrap();
    for name in ["empty/new", "a", "z"] {
        let plan = plan();
        let place = scratch.0.join(name);
        fs::write(&place, "new").unwrap();
        match plan.hash(&mut |_| true) {
            Err(CreateError::Appeared(path)) => assert!(path.ends_with(name), "{path:?}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let scratch = Scratch::new();
    put(&scratch.0, &[PIECE; 50]);
    let plan = plan(&scratch.0);
    fs::remove_file(scratch.0.join("f017")).unwrap();
    let error = plan.hash(&mut |_| true).unwrap_err();
    assert!(error.to_string().contains("f017: No such file"), "{error}");
}

#[test]
fn a_file_in_a_folder_of_its_own_name_is_made_a_v2_torrent_of_by_itself() {
    let scratch = Scratch::new();
    let (alone, two) = (scratch.0.join("alone"), scratch.0.join("two"));
    for folder in [&alone, &two] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join(folder.file_name().unwrap()), octets(10, 1)).unwrap();
    }
    fs::write(two.join("other"), "").unwrap();
    let told = plan(&alone).make_v2().unwrap_err();
    assert!(matches!(&told, CreateError::Alone(path) if path.ends_with("alone/alone")), "{told}");
    plan(&alone.join("alone")).make_v2().unwrap();
    plan(&two).make_v2().unwrap();
}
