//! Content in files: whatever is written is read, wherever files begin and end; nothing leaves the folder; notes are never
//! believed over a hash.

mod support;

use bolero::{TypeGenerator, check, produce};
use cede_bt::Bitfield;
use cede_bt::metainfo::{File, Info, Writer, sha1};
use cede_bt::picker::Begun;
use cede_torrent::check::{Watch, check as check_pieces};
use cede_torrent::create::{CreateError, Plan};
use cede_torrent::storage::{Allocation, Claims, Layout, Notes, Renamed, Stamp, Storage};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use support::{PIECE, Scratch, octets};

/// A torrent of files of these lengths, some of them padding, and its content.
fn torrent(lengths: &[(u64, bool)]) -> (Info, Vec<u8>) {
    let (mut files, mut content) = (Vec::new(), Vec::new());
    for (index, &(length, is_padding)) in lengths.iter().enumerate() {
        let folder = if index % 2 == 0 { "even" } else { "odd" };
        let path = vec!["t".to_owned(), folder.to_owned(), format!("f{index}")];
        files.push(File { path, length, offset: content.len() as u64, is_padding, is_executable: false });
        let part = if is_padding { vec![0; length as usize] } else { octets(length as usize, index as u64) };
        content.extend(part);
    }
    let pieces = content.chunks(PIECE).flat_map(sha1).collect();
    let writer = Writer { name: "t".into(), piece_length: PIECE as u32, pieces, files, ..Writer::default() };
    (Info::parse(&writer.info().encode()).unwrap(), content)
}

fn plain() -> (Info, Vec<u8>) {
    torrent(&[(40_000, false), (0, false), (5, false), (50_000, false)])
}

fn stamps(storage: &Storage, info: &Info) -> Vec<Option<Stamp>> {
    (0..info.files.len()).map(|file| Stamp::of(&storage.path_of(file))).collect()
}

#[derive(Clone, Debug, TypeGenerator)]
struct Case {
    #[generator(produce::<Vec<(u16, bool)>>().with().len(1..=6))]
    lengths: Vec<(u16, bool)>,
    wanted: u8,
    #[generator(produce::<Vec<(u16, u16)>>().with().len(1..=8))]
    writes: Vec<(u16, u16)>,
}

#[test]
fn what_is_written_is_read_wherever_files_begin_and_end() {
    check!().with_iterations(300).with_type::<Case>().for_each(|case| {
        let lengths: Vec<(u64, bool)> =
            case.lengths.iter().map(|(length, pad)| (u64::from(length % 5_000), *pad)).collect();
        if lengths.iter().all(|(length, _)| *length == 0) {
            return;
        }
        let (info, content) = torrent(&lengths);
        let scratch = Scratch::new();
        let wanted: Vec<bool> = (0..lengths.len()).map(|file| case.wanted >> file & 1 == 1).collect();
        let storage = Storage::new(&scratch.0, &info, &wanted).unwrap();
        for (from, len) in &case.writes {
            let from = usize::from(*from) % content.len();
            let part = &content[from..(from + usize::from(*len)).min(content.len())];
            storage.write(from as u64, part).unwrap();
            let mut read = vec![1; part.len()];
            storage.read(from as u64, &mut read).unwrap();
            assert_eq!(read, part);
        }
        storage.write(0, &content).unwrap();
        let whole = check_pieces(&storage, &info, &[], &Watch::default());
        assert!(whole.iter().all(|is_whole| *is_whole));
        for (index, file) in info.files.iter().enumerate() {
            let is_there = storage.path_of(index).exists();
            assert_eq!(is_there, wanted[index] && !file.is_padding && file.length > 0);
        }
    });
}

/// What is only read is looked at again, also where others needed its place meanwhile.
#[test]
fn what_others_write_to_is_not_read_on() {
    let (info, content) = torrent(&[(100, false); 200]);
    let scratch = Scratch::new();
    Storage::new(&scratch.0, &info, &[]).unwrap().write(0, &content).unwrap();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let read = |index: u64| storage.read(index * 100, &mut [0; 100]);
    (0..200).for_each(|index| read(index).unwrap());
    let change = |index: usize, length| {
        let path = storage.path_of(index);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(length).unwrap();
        file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(9)).unwrap();
        path
    };
    let [first, last, cut] = [change(0, 100), change(199, 100), change(198, 50)];
    // It is no longer open.
    let error = read(0).unwrap_err();
    assert!(error.path == first && error.to_string().contains("others have written"), "{error}");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let error = read(199).unwrap_err();
    assert!(error.path == last && error.to_string().contains("others have written"), "{error}");
    let error = read(198).unwrap_err();
    assert!(error.path == cut && error.is_cut_short(), "{error}");
    read(197).unwrap();
    // Who writes has changed them, and what others do to a download is not its end.
    storage.write(0, &content).unwrap();
    (0..200).for_each(|index| read(index).unwrap());
    change(0, 100);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    (0..200).for_each(|index| read(index).unwrap());
    // Once nothing more is written it is as before, of files that are open and of others.
    storage.write(0, &content).unwrap();
    storage.settle().unwrap();
    (0..200).for_each(|index| read(index).unwrap());
    let [first, last] = [change(0, 100), change(199, 100)];
    std::thread::sleep(std::time::Duration::from_millis(1100));
    for (index, path) in [(0, first), (199, last)] {
        let error = read(index).unwrap_err();
        assert!(error.path == path && error.to_string().contains("others have written"), "{error}");
    }
    read(100).unwrap();
}

/// Not all of them can be open at once.
#[test]
fn every_file_that_was_written_is_written_out() {
    let (info, content) = torrent(&[(100, false); 200]);
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    storage.write(0, &content).unwrap();
    storage.settle().unwrap();
    storage.write(0, &content).unwrap();
    let path = storage.path_of(0);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    // It cannot be opened again, which nobody would notice who does not.
    assert_eq!(storage.settle().unwrap_err().path, path);
}

#[test]
fn files_that_others_take_away_are_missed() {
    let (info, content) = torrent(&[(40_000, false), (PIECE as u64, false), (0, false), (9_000, false)]);
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    storage.write(0, &content).unwrap();
    storage.settle().unwrap();
    let path = storage.path_of(0);
    let last = info.piece_count() - 1;
    let missed = |what: &str| {
        for lost in [storage.settle(), storage.find_files_of(0)] {
            let error = lost.unwrap_err();
            assert!(error.path == path && error.to_string().contains(what), "{what}: {error}");
        }
        // Pieces that it has no part in are where they were.
        storage.find_files_of(last).unwrap();
    };
    let aside = scratch.0.join("aside");
    fs::rename(&path, &aside).unwrap();
    missed("moved or removed");
    fs::copy(&aside, &path).unwrap();
    missed("another file has taken its place");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    missed("no plain file");
    fs::remove_dir(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
    storage.settle().unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(39_999).unwrap();
    missed("39999 octets of 40000");
    file.set_len(40_001).unwrap();
    missed("the torrent says 40000");
}

/// What is written behind a cut makes the file as long as it was: nothing else would tell of what is lost.
#[test]
fn nothing_is_written_behind_a_cut() {
    let mut lengths = vec![(40_000, false)];
    lengths.extend((0..200).map(|_| (9, false)));
    let (info, content) = torrent(&lengths);
    for (others, by_parts) in [(0, false), (0, true), (1_800, false), (1_800, true)] {
        let scratch = Scratch::new();
        let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
        storage.write(0, &content[..PIECE]).unwrap();
        // So many that the first is no longer open.
        storage.write(40_000, &content[40_000..40_000 + others]).unwrap();
        fs::File::options().write(true).open(storage.path_of(0)).unwrap().set_len(10).unwrap();
        let last = &content[30_000..40_000];
        let written =
            if by_parts { storage.write_parts(30_000, &[last]) } else { storage.write(30_000, last) };
        let error = written.unwrap_err();
        let is_told = error.to_string().contains("10 octets of 40000 now");
        assert!(is_told && error.path == storage.path_of(0), "{others}: {error}");
    }
}

/// The folder of the file before is not looked for again, so that it may be another one by then.
#[test]
#[cfg(unix)]
fn a_folder_that_others_take_away_between_two_of_its_files_is_made_anew_or_missed() {
    let (info, content) = torrent(&[(PIECE as u64, false), (0, false), (PIECE as u64, false)]);
    let write = |storage: &Storage, at: usize| {
        storage.write((at * PIECE) as u64, &content[at * PIECE..(at + 1) * PIECE]).unwrap();
    };
    let begun = |scratch: &Scratch| {
        let storage = Storage::new(&scratch.0, &info, &[true; 3]).unwrap();
        write(&storage, 0);
        storage.find_files_of(0).unwrap();
        (storage, scratch.0.join("t/even"))
    };
    let scratch = Scratch::new();
    let (storage, folder) = begun(&scratch);
    fs::remove_dir_all(&folder).unwrap();
    write(&storage, 1);
    storage.find_files_of(1).unwrap();
    assert_eq!(fs::read(folder.join("f2")).unwrap(), content[PIECE..]);
    assert!(storage.settle().is_err(), "the first file is gone");

    let scratch = Scratch::new();
    let (storage, folder) = begun(&scratch);
    let elsewhere = scratch.0.join("elsewhere");
    fs::rename(&folder, &elsewhere).unwrap();
    std::os::unix::fs::symlink("/", &folder).unwrap();
    write(&storage, 1);
    assert_eq!(fs::read(elsewhere.join("f2")).unwrap(), content[PIECE..], "it is written on to where it is");
    assert!(storage.find_files_of(1).is_err(), "it is not where it belongs");
}

#[test]
fn files_have_their_octets_and_empty_ones_are_made() {
    let (info, content) = plain();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    storage.make_room(Allocation::Full, &[]).unwrap();
    storage.write(0, &content).unwrap();
    storage.settle().unwrap();
    for (index, file) in info.files.iter().enumerate() {
        let (start, end) = (file.offset as usize, (file.offset + file.length) as usize);
        assert_eq!(fs::read(storage.path_of(index)).unwrap(), content[start..end]);
    }
}

#[test]
fn a_check_finds_what_is_whole_and_nothing_else() {
    let (info, content) = plain();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let missing = vec![false; info.piece_count() as usize];
    assert_eq!(check_pieces(&storage, &info, &[], &Watch::default()), missing);
    storage.write(PIECE as u64, &content[PIECE..3 * PIECE]).unwrap();
    storage.write(4 * PIECE as u64 + 7, b"wrong").unwrap();
    let expected = [false, true, true, false, false, false];
    assert_eq!(check_pieces(&storage, &info, &[], &Watch::default()), expected);
    let ended = Watch::default();
    ended.is_ended.store(true, Relaxed);
    assert_eq!(check_pieces(&storage, &info, &[], &ended), missing);
}

#[test]
fn notes_save_work_and_are_never_believed_over_a_hash() {
    let (info, content) = plain();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let (layout, hash) = (Layout::new(&info), info.info_hash());
    storage.write(0, &content).unwrap();
    let notes = Notes::open(&scratch.0, &hash).unwrap();
    let none = vec![false; 6];
    assert_eq!(
        notes.missing(&layout, &stamps(&storage, &info)),
        none,
        "without notes all is to be looked at"
    );
    // Notes that say that pieces 0 and 5 alone are there: the others need not be looked at.
    let claimed = [true, false, false, false, false, true];
    notes.write(&claimed, &[], &stamps(&storage, &info)).unwrap();
    let missing = notes.missing(&layout, &stamps(&storage, &info));
    assert_eq!(missing, claimed.map(|is_there| !is_there));
    // What they call whole is hashed: a piece that was broken behind their back, with the old time, is not offered.
    let path = storage.path_of(0);
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    storage.write(3, b"broken").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let missing = notes.missing(&layout, &stamps(&storage, &info));
    let whole = check_pieces(&storage, &info, &missing, &Watch::default());
    assert_eq!(whole, [false, false, false, false, false, true]);
    // Once a file's time says that something was written, everything is looked at.
    storage.write(3, &content[3..9]).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let missing = notes.missing(&layout, &stamps(&storage, &info));
    assert_eq!(missing, none);
    assert_eq!(check_pieces(&storage, &info, &missing, &Watch::default()), [true; 6]);
}

#[test]
fn notes_of_which_nothing_has_changed_are_not_written_again() {
    let (info, content) = plain();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let notes = Notes::open(&scratch.0, &info.info_hash()).unwrap();
    let path = fs::read_dir(&scratch.0).unwrap().next().unwrap().unwrap().path();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let mut whole = [false; 6];
    let is_written = |whole: &[bool]| {
        fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        notes.write(whole, &[], &stamps(&storage, &info)).unwrap();
        fs::metadata(&path).unwrap().modified().unwrap() != long_ago
    };
    assert_eq!([is_written(&whole), is_written(&whole)], [true, false]);
    whole[1] = true;
    assert_eq!([is_written(&whole), is_written(&whole)], [true, false]);
    storage.write(0, &content).unwrap();
    assert_eq!([is_written(&whole), is_written(&whole)], [true, false]);
}

/// A block each of two pieces of four: of the first it is there, of the second nothing was ever written.
#[test]
fn of_what_was_begun_as_much_counts_as_may_be_there() {
    let (piece, block) = (64 << 10, 16 << 10);
    let content = octets(2 * piece + 10, 1);
    let pieces = content.chunks(piece).flat_map(sha1).collect();
    let path = vec!["t".to_owned()];
    let files =
        vec![File { path, length: content.len() as u64, offset: 0, is_padding: false, is_executable: false }];
    let writer = Writer { name: "t".into(), piece_length: piece as u32, pieces, files, ..Writer::default() };
    let info = Info::parse(&writer.info().encode()).unwrap();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let notes = Notes::open(&scratch.0, &info.info_hash()).unwrap();
    let begun = |piece: u32, numbers: &[u32]| {
        let mut blocks = Bitfield::none(info.geometry.blocks(piece));
        for number in numbers {
            blocks.insert(*number);
        }
        Begun { piece, blocks }
    };
    assert_eq!(notes.begun(&info.geometry), []);
    let noted = [begun(0, &[1]), begun(1, &[0, 2])];
    notes.write(&[false; 3], &noted, &stamps(&storage, &info)).unwrap();
    let read = notes.begun(&info.geometry);
    assert_eq!(read, noted);
    let remains = || read.iter().map(|begun| storage.remains(&info.geometry, begun)).collect::<Vec<_>>();
    assert_eq!(remains(), [begun(0, &[]), begun(1, &[])], "there is no file");
    storage.write(block as u64, &content[block..2 * block]).unwrap();
    assert_eq!(remains(), [begun(0, &[1]), begun(1, &[])], "the file ends before the others");
    storage.write((piece + 2 * block) as u64, &content[piece + 2 * block..piece + 3 * block]).unwrap();
    assert_eq!(remains(), [begun(0, &[1]), begun(1, &[2])], "nothing was written there");
    // What is no list of parts of this torrent's pieces is none of them.
    let mut entries = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
    let notes_path = entries.find(|path| path.to_string_lossy().contains("cede-resume")).unwrap();
    for text in
        ["d5:begunld6:blocks1:@5:piecei9eed6:blocks2:@@5:piecei0eed6:blocks1:@eee", "d5:begun1:xe", ""]
    {
        fs::write(&notes_path, text).unwrap();
        assert_eq!(notes.begun(&info.geometry), [], "{text}");
    }
}

#[test]
fn notes_that_are_damaged_count_for_nothing_and_one_process_has_them() {
    let (info, _) = plain();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let (layout, hash) = (Layout::new(&info), info.info_hash());
    let notes = Notes::open(&scratch.0, &hash).unwrap();
    let taken = Notes::open(&scratch.0, &hash).err().unwrap();
    assert_eq!(taken.error.kind(), ErrorKind::ResourceBusy);
    notes.write(&[false; 6], &[], &stamps(&storage, &info)).unwrap();
    assert_eq!(notes.missing(&layout, &stamps(&storage, &info)), [true; 6]);
    let path = fs::read_dir(&scratch.0).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(notes.missing(&layout, &stamps(&storage, &info)), [false; 6], "cut to {cut}");
    }
    notes.discard();
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_out_of_the_folder() {
    let (info, content) = plain();
    for (place, target) in [("t", ""), ("t/even", ""), ("t/even/f0", "victim")] {
        let (scratch, outside) = (Scratch::new(), Scratch::new());
        let victim = outside.0.join("victim");
        fs::write(&victim, b"mine").unwrap();
        let link = scratch.0.join(place);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(outside.0.join(target), &link).unwrap();
        let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
        assert!(storage.write(0, &content).is_err(), "{place}");
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        assert_eq!(fs::read_dir(&outside.0).unwrap().count(), 1, "{place}");
    }
}

#[cfg(unix)]
#[test]
fn names_that_are_too_long_are_kept_shorter_and_odd_ones_as_they_are() {
    let names = [
        "字".repeat(120) + ".tar.gz",
        "字".repeat(120) + ".tar.bz",
        "x".repeat(255),
        "..\\..\\up".to_owned(),
        "\u{1b}[31m".to_owned(),
        "d".repeat(256) + ". no extension but words",
    ];
    let mut files = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let path = vec!["t".to_owned(), "y".repeat(300), name.clone()];
        files.push(File {
            path,
            length: 5000,
            offset: 5000 * index as u64,
            is_padding: false,
            is_executable: false,
        });
    }
    let content = octets(5000 * names.len(), 4);
    let pieces = content.chunks(PIECE).flat_map(sha1).collect();
    let writer = Writer { name: "t".into(), piece_length: PIECE as u32, pieces, files, ..Writer::default() };
    let info = Info::parse(&writer.info().encode()).unwrap();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    storage.write(0, &content).unwrap();
    for (index, name) in names.iter().enumerate() {
        let path = storage.path_of(index);
        assert_eq!(path.parent().unwrap().parent().unwrap(), scratch.0.join("t"), "nowhere else");
        assert_eq!(fs::read(&path).unwrap(), content[5000 * index..][..5000]);
        let kept = path.file_name().unwrap().to_str().unwrap();
        assert!(kept == name || name.len() > 255 && kept.len() <= 255, "{kept}");
    }
    assert_eq!(storage.path_of(0).extension().unwrap(), "gz");
    assert_eq!(fs::read_dir(storage.path_of(0).parent().unwrap()).unwrap().count(), names.len());
}

#[cfg(unix)]
#[test]
fn what_may_be_run_is_made_so_within_the_mask_and_nothing_that_was_there_is_changed() {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    let (mut info, content) = torrent(&[(100, false), (100, false), (0, false), (100, false)]);
    for (file, is_executable) in info.files.iter_mut().zip([true, false, true, true]) {
        file.is_executable = is_executable;
    }
    for allocation in [Allocation::Sparse, Allocation::Full] {
        let scratch = Scratch::new();
        // What the system makes of all bits under the mask of this process.
        let (most, plain) = (scratch.0.join("most"), scratch.0.join("plain"));
        fs::OpenOptions::new().write(true).create_new(true).mode(0o7777).open(&most).unwrap();
        fs::write(&plain, "").unwrap();
        let (most, plain) = (mode(&most) & !0o7000, mode(&plain));
        let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
        let old = storage.path_of(3);
        fs::create_dir_all(old.parent().unwrap()).unwrap();
        fs::write(&old, "").unwrap();
        storage.make_room(allocation, &[]).unwrap();
        storage.write(0, &content).unwrap();
        let modes: Vec<u32> = (0..4).map(|file| mode(&storage.path_of(file))).collect();
        assert_eq!(modes, [most, plain, most, plain]);
        assert_ne!(most & 0o100, 0);
    }
}

#[test]
fn a_name_that_is_made_to_meet_a_shortened_one_is_refused() {
    let long = "x".repeat(300);
    let of = |name: &str| {
        let path = |name: &str| vec!["t".to_owned(), name.to_owned()];
        let file = |name: &str, offset| File {
            path: path(name),
            length: 1,
            offset,
            is_padding: false,
            is_executable: false,
        };
        let (files, pieces) = (vec![file(&long, 0), file(name, 1)], vec![0; 20]);
        let name = "t".into();
        let writer = Writer { name, piece_length: PIECE as u32, pieces, files, ..Writer::default() };
        Info::parse(&writer.info().encode()).unwrap()
    };
    let scratch = Scratch::new();
    let kept = Storage::new(&scratch.0, &of("z"), &[]).unwrap().path_of(0);
    let error =
        Storage::new(&scratch.0, &of(kept.file_name().unwrap().to_str().unwrap()), &[]).err().unwrap();
    assert!(error.to_string().contains("two files"), "{error}");
}

/// A file in the folder "t".
fn in_t(name: &str, length: u64, offset: u64) -> File {
    let path = vec!["t".to_owned(), name.to_owned()];
    File { path, length, offset, is_padding: false, is_executable: false }
}

/// Two names of one file stand in for a file system that does not look at the case of letters.
#[test]
#[cfg(unix)]
fn names_that_lead_to_one_file_are_refused_and_others_that_are_alike_are_not() {
    let files = vec![in_t("README", 9, 0), in_t("other", 5, 9), in_t("readme", 7, 14)];
    let pieces = sha1(&octets(21, 0)).to_vec();
    let writer = Writer { name: "t".into(), piece_length: PIECE as u32, pieces, files, ..Writer::default() };
    let info = Info::parse(&writer.info().encode()).unwrap();
    let scratch = Scratch::new();
    let at = |name: &str| scratch.0.join("t").join(name);
    let claim = |wanted: &[bool]| Storage::new(&scratch.0, &info, wanted).unwrap().claim();
    claim(&[]).unwrap();
    assert!(!at("README").exists() && !at("readme").exists(), "nothing stays that was made to find out");
    fs::write(at("README"), "").unwrap();
    fs::hard_link(at("README"), at("readme")).unwrap();
    let error = claim(&[]).unwrap_err().to_string();
    assert!(
        error.contains("t/readme: in this folder it is the same file as ") && error.contains("t/README;"),
        "{error}"
    );
    claim(&[true, true, false]).unwrap();
    fs::remove_file(at("readme")).unwrap();
    fs::write(at("readme"), "x").unwrap();
    claim(&[]).unwrap();
}

/// Files that were begun on another file system are found under the names that they have there, and no others are taken for them.
#[test]
#[cfg(unix)]
fn substitutes_for_odd_names_are_found_and_nothing_else_is() {
    let files = vec![in_t("a:b", 5, 0), in_t("a_b", 5, 5), in_t("what?", 7, 10)];
    let content = octets(17, 0);
    let pieces = sha1(&content).to_vec();
    let writer = Writer { name: "t".into(), piece_length: PIECE as u32, pieces, files, ..Writer::default() };
    let info = Info::parse(&writer.info().encode()).unwrap();
    let scratch = Scratch::new();
    let at = |name: &str| scratch.0.join("t").join(name);
    let kept = || {
        let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
        storage.claim().unwrap();
        ([0, 2].map(|file| storage.path_of(file)), storage)
    };
    // Of the torrent itself, and somebody else's.
    fs::create_dir(scratch.0.join("t")).unwrap();
    fs::write(at("a_b"), &content[5..10]).unwrap();
    fs::write(at("what_"), "longer than it").unwrap();
    let (names, storage) = kept();
    assert_eq!(names, [at("a:b"), at("what?")]);
    assert_eq!((storage.renamed(0), fs::read_dir(scratch.0.join("t")).unwrap().count()), (None, 2));
    fs::remove_file(at("a_b")).unwrap();
    fs::write(at("what_"), &content[10..]).unwrap();
    let wanted = [true, false, true];
    let storage = Storage::new(&scratch.0, &info, &wanted).unwrap();
    storage.claim().unwrap();
    assert_eq!([0, 2].map(|file| storage.path_of(file)), [at("a_b"), at("what_")]);
    assert_eq!(storage.renamed(2), Some(Renamed::Odd));
    let mut read = vec![0; 7];
    storage.read(10, &mut read).unwrap();
    assert_eq!(read, content[10..]);
}

/// Of several torrents in one folder no file is another's file or folder. Two names of one file stand in for a file system that does not
/// look at the case of letters.
#[test]
#[cfg(unix)]
fn no_file_belongs_to_two_torrents() {
    let files = |paths: &[&str]| -> Vec<File> {
        let path = |path: &str| path.split('/').map(str::to_owned).collect();
        let file = |text: &&str| File {
            path: path(text),
            length: 1,
            offset: 0,
            is_padding: false,
            is_executable: false,
        };
        paths.iter().map(file).collect()
    };
    let scratch = Scratch::new();
    let mut claims = Claims::default();
    let mut take = |paths: &[&str], wanted: &[bool]| {
        let taken = claims.take(&scratch.0, &files(paths), |at| wanted.get(at).copied().unwrap_or(true));
        taken.map_err(|clash| (clash.path.join("/"), clash.taken.join("/")))
    };
    let clash = |path: &str, taken: &str| Err((path.to_owned(), taken.to_owned()));
    assert_eq!(take(&["film", "t/a", "t/u/b", "v/w/y"], &[true, true, true, false]), Ok(()));
    assert_eq!(take(&["film"], &[]), clash("film", "film"));
    assert_eq!(take(&["t/a/c"], &[]), clash("t/a", "t/a"));
    assert_eq!(take(&["t/u"], &[]), clash("t/u", "t/u"));
    assert_eq!(take(&["other", "t/u"], &[true, false]), Ok(()), "what is not wanted has no place");
    assert_eq!(take(&["v/w"], &[]), Ok(()), "nor has what was not");
    // Here these are others.
    assert_eq!(take(&["Film", "T/a", "t/U"], &[]), Ok(()));
    let there = |name: &str| scratch.0.join(name);
    assert!(there("film").exists() && !there("Film").exists(), "what was taken first is made");
    fs::hard_link(there("film"), there("FILM")).unwrap();
    assert_eq!(take(&["FILM"], &[]), clash("FILM", "film"));
    assert_eq!(take(&["FILM/x"], &[]), clash("FILM", "film"));
    // What stands in the way of that is told by who uses it.
    fs::remove_dir_all(there("t")).unwrap();
    fs::write(there("t"), "").unwrap();
    assert_eq!(take(&["t/A"], &[]), Ok(()));
    // What was taken in vain is free again, but for folders that others are in, too.
    assert_eq!(take(&["g/h/one"], &[]), Ok(()));
    assert_eq!(take(&["g/h/two"], &[]), Ok(()));
    let mut give_back = |path: &str| claims.give_back(&files(&[path]), |_| true);
    give_back("g/h/one");
    let mut take = |path: &str| {
        claims.take(&scratch.0, &files(&[path]), |_| true).map_err(|clash| clash.taken.join("/"))
    };
    assert_eq!(take("g/h"), Err("g/h".to_owned()));
    assert_eq!(take("g/h/one"), Ok(()));
    for path in ["g/h/one", "g/h/two"] {
        claims.give_back(&files(&[path]), |_| true);
    }
    assert_eq!(claims.take(&scratch.0, &files(&["g/h"]), |_| true), Ok(()));
}

/// What was right of one was written over with the other's, and both were taken for whole.
#[test]
#[cfg(unix)]
fn files_that_are_one_by_a_hard_link_are_refused_where_something_is_missing() {
    let (info, content) = torrent(&[(2 * PIECE as u64, false); 2]);
    let scratch = Scratch::new();
    Storage::new(&scratch.0, &info, &[]).unwrap().write(0, &content).unwrap();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let paths = [0, 1].map(|index| storage.path_of(index));
    fs::remove_file(&paths[1]).unwrap();
    fs::hard_link(&paths[0], &paths[1]).unwrap();
    for whole in [[true, true, false, false], [false, true, true, true]] {
        let error = storage.make_room(Allocation::Sparse, &whole).unwrap_err();
        assert!(error.path == paths[1] && error.to_string().contains("hard link"), "{error}");
    }
    // As it is with files that are alike, which somebody has made one.
    storage.make_room(Allocation::Sparse, &[true; 4]).unwrap();
    // Other names may be elsewhere.
    fs::rename(&paths[1], scratch.0.join("elsewhere")).unwrap();
    storage.make_room(Allocation::Sparse, &[false; 4]).unwrap();
}

#[test]
fn what_is_there_is_not_set_aside_again() {
    let (info, content) = plain();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    storage.write(0, &content).unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    for index in 0..info.files.len() {
        let file = fs::File::options().write(true).create(true).truncate(false).open(storage.path_of(index));
        file.unwrap().set_modified(long_ago).unwrap();
    }
    let again = Storage::new(&scratch.0, &info, &[]).unwrap();
    again.make_room(Allocation::Full, &vec![true; info.piece_count() as usize]).unwrap();
    for index in 0..info.files.len() {
        assert_eq!(fs::metadata(storage.path_of(index)).unwrap().modified().unwrap(), long_ago);
    }
}

#[test]
fn a_longer_file_of_the_same_name_is_not_touched() {
    let (info, content) = plain();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let path = storage.path_of(2);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, b"somebody's").unwrap();
    let error = storage.write(0, &content).unwrap_err();
    assert_eq!((error.path, error.error.kind()), (path.clone(), ErrorKind::AlreadyExists));
    // Nobody has to be called to find that out.
    let error = storage.claim().unwrap_err();
    assert_eq!((error.path, error.error.kind()), (path.clone(), ErrorKind::AlreadyExists));
    assert_eq!(fs::read(&path).unwrap(), b"somebody's");
    // Nor does who gives the content overlook it, or a folder. What is not there is not in the way.
    let folder = storage.path_of(3);
    fs::create_dir_all(&folder).unwrap();
    let named = |most| storage.in_the_way(most).into_iter().map(|error| error.path).collect::<Vec<_>>();
    assert_eq!((named(5), named(1)), (vec![path.clone(), folder], vec![path]));
}

#[test]
fn many_files_need_few_handles() {
    let lengths: Vec<(u64, bool)> = (0..300).map(|index| (100 + index % 7, false)).collect();
    let (info, content) = torrent(&lengths);
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    storage.write(0, &content).unwrap();
    let mut read = vec![0; content.len()];
    storage.read(0, &mut read).unwrap();
    assert_eq!(read, content);
}

fn made(path: &Path) -> (Plan, Vec<u8>) {
    let plan = Plan::scan(path, Some(PIECE as u32), None).unwrap();
    let mut last = 0;
    let pieces = plan.hash(&mut |done| {
        last = done;
        true
    });
    assert_eq!(last, plan.total_bytes);
    let pieces = pieces.unwrap();
    (plan, pieces)
}

#[test]
fn a_torrent_of_a_folder_has_the_hashes_of_its_content() {
    let (info, content) = plain();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    storage.make_room(Allocation::Sparse, &[]).unwrap();
    storage.write(0, &content).unwrap();
    let (plan, pieces) = made(&scratch.0.join("t"));
    let names: Vec<String> = plan.files.iter().map(|file| file.path.join("/")).collect();
    assert_eq!(names, ["t/even/f0", "t/even/f2", "t/odd/f1", "t/odd/f3"]);
    let ordered: Vec<u8> = plan.places.iter().flat_map(|place| fs::read(place).unwrap()).collect();
    assert_eq!(pieces, ordered.chunks(PIECE).flat_map(sha1).collect::<Vec<u8>>());
    let (plan, pieces) = made(&scratch.0.join("t/even/f0"));
    assert_eq!(plan.files[0].path, ["f0"]);
    assert_eq!(pieces, content[..40_000].chunks(PIECE).flat_map(sha1).collect::<Vec<u8>>());
}

#[test]
fn what_cannot_be_shared_says_why() {
    let scratch = Scratch::new();
    assert!(matches!(Plan::scan(&scratch.0, None, None), Err(CreateError::Empty(_))));
    assert!(matches!(Plan::scan(&scratch.0.join("none"), None, None), Err(CreateError::Io(..))));
    fs::write(scratch.0.join("a"), octets(100_000, 1)).unwrap();
    let plan = Plan::scan(&scratch.0, None, None).unwrap();
    assert!(matches!(plan.hash(&mut |_| false), Err(CreateError::Ended)));
    fs::write(scratch.0.join("a"), b"shorter").unwrap();
    assert!(matches!(plan.hash(&mut |_| true), Err(CreateError::Changed(_))));
}

/// What is set aside and not written reads as zeros; whoever begins a torrent elsewhere leaves such files.
#[test]
fn what_is_not_blank_is_told_of_and_what_is_set_aside_is_not() {
    let (info, content) = plain();
    let scratch = Scratch::new();
    let storage = Storage::new(&scratch.0, &info, &[]).unwrap();
    let going_on = AtomicBool::new(false);
    assert_eq!(storage.stranger(&going_on), None, "nothing is there");
    storage.make_room(Allocation::Full, &[]).unwrap();
    let (whole, part) = (storage.path_of(0), storage.path_of(2));
    fs::write(&whole, vec![0; 40_000]).unwrap();
    assert_eq!(storage.stranger(&going_on), None, "holes, and zeros that were written");
    // At its end, and behind a hole.
    let file = fs::OpenOptions::new().write(true).open(&part).unwrap();
    file.write_at(&content[..1], file.metadata().unwrap().len() - 1).unwrap();
    assert_eq!(storage.stranger(&going_on), Some(part));
    assert_eq!(storage.stranger(&AtomicBool::new(true)), None, "nobody waits for it any more");
    let others = Storage::new(&scratch.0, &info, &[true, true, false, true]).unwrap();
    assert_eq!(others.stranger(&going_on), None, "it is not wanted, and not written over");
}
