use super::*;
use crate::digest::Digest;
use alloc::format;

fn file(path: &[&str], length: u64, offset: u64) -> File {
    File {
        path: path.iter().map(|part| (*part).to_string()).collect(),
        length,
        offset,
        is_padding: false,
        is_executable: false,
    }
}

fn writer(files: Vec<File>) -> Writer {
    let total: u64 = files.iter().map(|file| file.length).sum();
    let count = total.div_ceil(16_384);
    let pieces = (0..count).flat_map(|piece| sha1(&piece.to_be_bytes())).collect();
    Writer { name: "n".to_string(), piece_length: 16_384, pieces, files, ..Writer::default() }
}

#[test]
fn what_was_written_is_read() {
    let mut writer = writer(vec![file(&["n", "a"], 20_000, 0), file(&["n", "d", "b"], 5, 20_000)]);
    writer.trackers = vec![vec!["http://a/".into(), "udp://b:1".into()], vec!["http://c/".into()]];
    writer.is_private = true;
    writer.comment = Some("c".into());
    let octets = writer.encode();
    let metainfo = Metainfo::parse(&octets).unwrap();
    assert_eq!(metainfo.info.files, writer.files);
    assert_eq!(metainfo.trackers, writer.trackers);
    assert!(metainfo.info.is_private && metainfo.info.is_folder);
    assert_eq!(metainfo.info.raw, writer.info().encode());
    assert_eq!(metainfo.info.hash_v1, sha1(&writer.info().encode()));
    assert_eq!((metainfo.info.piece_count(), metainfo.info.piece_bytes(1)), (2, 20_005 - 16_384));
    assert_eq!(metainfo.info.piece_hash(1), Some(Digest::V1(sha1(&1_u64.to_be_bytes()))));
    assert_eq!((metainfo.info.piece_bytes(2), metainfo.info.piece_hash(2)), (0, None));
}

/// As for libtorrent and Transmission: whoever writes another number than 1 does not mean that everybody may be told.
#[test]
fn any_number_but_zero_says_private() {
    let info = |private: &str| {
        let head = "d6:lengthi1e4:name1:x12:piece lengthi16384e6:pieces20:";
        Info::parse(format!("{head}{}{private}e", "h".repeat(20)).as_bytes()).unwrap().is_private
    };
    for private in ["7:privatei1e", "7:privatei2e", "7:privatei-1e"] {
        assert!(info(private), "{private}");
    }
    for private in ["", "7:privatei0e", "7:private1:1"] {
        assert!(!info(private), "{private}");
    }
}

#[test]
fn one_file_is_no_folder() {
    let metainfo = Metainfo::parse(&writer(vec![file(&["n"], 7, 0)]).encode()).unwrap();
    assert!(!metainfo.info.is_folder);
    assert_eq!(metainfo.info.files, [file(&["n"], 7, 0)]);
    let metainfo = Metainfo::parse(&writer(vec![file(&["n", "n"], 7, 0)]).encode()).unwrap();
    assert!(metainfo.info.is_folder);
}

#[test]
fn the_hash_is_that_of_the_octets_with_keys_that_are_not_known() {
    let info =
        format!("d6:lengthi1e4:name1:x12:piece lengthi16384e6:pieces20:{}7:unknowni5ee", "h".repeat(20));
    let metainfo = Metainfo::parse(format!("d4:info{info}e").as_bytes()).unwrap();
    assert_eq!(metainfo.info.hash_v1, sha1(info.as_bytes()));
    // Trackers without a name are none.
    let parse = |head: &str| Metainfo::parse(format!("d{head}4:info{info}e").as_bytes()).unwrap().trackers;
    assert!(parse("8:announce0:").is_empty());
    assert_eq!(parse("8:announce1:a13:announce-listll0:1:bel0:ee"), [["b"]]);
    // White space around one is none of it.
    assert_eq!(parse("8:announce4: a\r\n"), [["a"]]);
    assert_eq!(parse("13:announce-listll1: 3:\tb ee"), [["b"]]);
    let parse = |tail: &str| Metainfo::parse(format!("d4:info{info}{tail}e").as_bytes()).unwrap().web_seeds;
    assert_eq!(parse("8:url-list10: http://w\n"), ["http://w"]);
    assert_eq!(parse("8:url-listl2:a 0:1: 3: b\re"), ["a", "b"]);
    assert!(parse("8:url-list1: ").is_empty());
    let parse =
        |tail: &str| Metainfo::parse(format!("d4:info{info}5:nodesl{tail}ee").as_bytes()).unwrap().nodes;
    assert_eq!(parse("l2: ai6881eel3:::1i7eel5:[::1]i7ee"), ["a:6881", "[::1]:7", "[::1]:7"]);
    // What is no name with a port is none.
    assert!(parse("l1:ai0eel1:ai65536eel1:ael0:i7eel3:a bi7eei7ed1:ai7eel1:ai7ei8ee").is_empty());
    assert_eq!(parse(&"l1:ai7ee".repeat(100)).len(), MAX_NODES);
}

#[test]
fn keys_in_another_order_and_a_new_line_behind_do_no_harm() {
    let info = format!("d6:pieces20:{}12:piece lengthi16384e4:name1:n6:lengthi9ee", "h".repeat(20));
    let metainfo = Metainfo::parse(format!("d4:info{info}8:announce8:http://te\n").as_bytes()).unwrap();
    assert_eq!((metainfo.info.hash_v1, metainfo.trackers.len()), (sha1(info.as_bytes()), 1));
}

#[test]
fn names_that_lead_anywhere_else_are_refused() {
    let cases: [(&[&str], PathError); 7] = [
        (&["n", ".."], PathError::Upwards),
        (&["n", "a", "..", "b"], PathError::Upwards),
        (&["n", "."], PathError::Upwards),
        (&["n", ""], PathError::Empty),
        (&["n", "/etc/passwd"], PathError::Separator("/etc/passwd".into())),
        (&["n", "a/../../b"], PathError::Separator("a/../../b".into())),
        (&["n", "a\0b"], PathError::Separator("a\0b".into())),
    ];
    for (path, error) in cases {
        let octets = writer(vec![file(path, 1, 0), file(&["n", "z"], 1, 1)]).encode();
        assert_eq!(Metainfo::parse(&octets), Err(Error::Path(error)), "{path:?}");
    }
    for name in ["..", "", "/x", "a/b"] {
        let mut writer = writer(vec![file(&["n"], 1, 0)]);
        writer.name = name.to_string();
        assert!(matches!(Metainfo::parse(&writer.encode()), Err(Error::Path(_))), "{name}");
    }
}

#[test]
fn names_in_other_encodings_are_told_apart_and_utf_8_is_better() {
    // "б" and "в" in KOI8-R.
    let octets = |utf8: &str| {
        let entry = |octet: &str, utf8: &str| format!("d6:lengthi1e4:pathl1:{octet}e{utf8}e");
        let names = [utf8.replace('?', "b1"), utf8.replace('?', "b2")];
        let files = entry("\u{1}", &names[0]) + &entry("\u{2}", &names[1]);
        let pieces = "h".repeat(20);
        let text = format!("d4:infod5:filesl{files}e4:name1:n12:piece lengthi16384e6:pieces20:{pieces}ee");
        text.bytes().map(|octet| if octet < 3 { octet + 0xc1 } else { octet }).collect::<Vec<u8>>()
    };
    let paths = |octets: Vec<u8>| {
        let info = Metainfo::parse(&octets).unwrap().info;
        info.files.into_iter().map(|file| file.path.join("/")).collect::<Vec<_>>()
    };
    assert_eq!(paths(octets("")), ["n/Â", "n/Ã"]);
    assert_eq!(paths(octets("10:path.utf-8l2:?e")), ["n/b1", "n/b2"]);
}

#[test]
fn names_that_are_odd_but_plain_are_taken() {
    let long = "x".repeat(300);
    for name in ["a\\b", "..\\..\\b", " ", "...", "-rf", "C:", &long] {
        let octets = writer(vec![file(&["n", name], 1, 0), file(&["n", "z"], 1, 1)]).encode();
        assert_eq!(Metainfo::parse(&octets).unwrap().info.files[0].path, ["n", name]);
    }
}

#[test]
fn files_at_one_place_are_refused() {
    for clash in [["n", "a"].as_slice(), ["n", "a", "b"].as_slice()] {
        let octets = writer(vec![file(&["n", "a"], 1, 0), file(clash, 1, 1)]).encode();
        assert_eq!(Metainfo::parse(&octets), Err(Error::Path(PathError::Clash("n/a".into()))));
    }
    // A name that merely begins alike is another name.
    let octets = writer(vec![file(&["n", "a"], 1, 0), file(&["n", "a.b"], 1, 1)]).encode();
    assert!(Metainfo::parse(&octets).is_ok());
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let parse = |lengths: &[u64], pieces: usize, piece_length: u64| {
        let files: Vec<_> = lengths
            .iter()
            .enumerate()
            .map(|(k, length)| file(&["n", &format!("f{k}")], *length, 0))
            .collect();
        let pieces = vec![0; pieces * 20];
        let writer = Writer { name: "n".to_string(), pieces, files, ..Writer::default() };
        let octets = writer.info().with("piece length", piece_length).encode();
        Info::parse(&octets)
    };
    assert_eq!(parse(&[0], 0, 16_384), Err(Error::Nothing));
    assert_eq!(parse(&[16_385], 1, 16_384), Err(Error::Pieces));
    assert_eq!(parse(&[16_384], 2, 16_384), Err(Error::Pieces));
    assert_eq!(parse(&[1], 1, 0), Err(Error::Key("piece length")));
    assert_eq!(parse(&[1], 1, 1 << 33), Err(Error::Limit("piece length")));
    let most = i64::MAX as u64;
    assert_eq!(parse(&[most, most, 7], 1, 16_384), Err(Error::Limit("length")));
    assert_eq!(parse(&[1 << 50], 1, 1), Err(Error::Limit("number of pieces")));
    assert!(parse(&[16_384], 1, 16_384).is_ok());
}

#[test]
fn padding_is_told_and_links_are_refused() {
    let mut files = vec![file(&["n", "a"], 1, 0), file(&["n", ".pad", "1"], 16_383, 1)];
    files.push(file(&["n", "b"], 1, 16_384));
    files[1].is_padding = true;
    let octets = writer(files.clone()).encode();
    assert_eq!(Metainfo::parse(&octets).unwrap().info.files, files);
    let link = "d5:filesld4:attr1:l6:lengthi1e4:pathl1:aeee4:name1:x12:piece lengthi16384e6:pieces20:";
    let octets = format!("{link}{}e", "h".repeat(20));
    assert_eq!(Info::parse(octets.as_bytes()), Err(Error::Path(PathError::Link)));
}

#[test]
fn what_fills_a_piece_up_is_not_counted() {
    // Lengths of files, those below zero of padding; octets of each piece.
    let cases: [(&[i64], &[u32]); 8] = [
        (&[1, -16_383, 1], &[1, 1]),
        (&[1, -16_383, 1, -5], &[1, 1]),
        (&[1, -100, -16_283, 1], &[1, 1]),
        (&[1, -100, 1], &[102]),
        (&[1, -100, 0, 1], &[102]),
        (&[-16_384, 16_384, -3], &[16_384, 16_384, 3]),
        (&[1, -40_000, 1], &[1, 16_384, 7_234]),
        (&[16_384, -16_384], &[16_384, 16_384]),
    ];
    for (lengths, pieces) in cases {
        let (mut files, mut offset) = (Vec::new(), 0);
        for (at, length) in lengths.iter().enumerate() {
            let name = format!("f{at}");
            let bytes = length.unsigned_abs();
            files.push(File { is_padding: *length < 0, ..file(&["n", &name], bytes, offset) });
            offset += bytes;
        }
        let info = Info::parse(&writer(files).info().encode()).unwrap();
        let found: Vec<u32> = (0..info.piece_count()).map(|piece| info.piece_bytes(piece)).collect();
        assert_eq!(found, pieces, "{lengths:?}");
        assert_eq!(info.total_bytes, pieces.iter().map(|len| u64::from(*len)).sum::<u64>(), "{lengths:?}");
        assert_eq!(info.geometry.total_bytes(), offset, "{lengths:?}");
    }
}

/// A torrent of one file, or of a folder with one, whose attributes are what stands there.
fn attributed(is_folder: bool, attributes: &str) -> Result<Info, Error> {
    let pieces = "h".repeat(20);
    let rest = format!("4:name1:x12:piece lengthi16384e6:pieces20:{pieces}");
    let octets = if is_folder {
        format!("d5:filesld4:attr{attributes}6:lengthi1e4:pathl1:aeee{rest}e")
    } else {
        format!("d4:attr{attributes}6:lengthi1e{rest}e")
    };
    Info::parse(octets.as_bytes())
}

#[test]
fn what_may_be_run_is_told_and_odd_attributes_count_for_nothing() {
    let many = format!("1000000:{}x", "h".repeat(999_999));
    for (attributes, is_executable) in [
        ("1:x", true),
        ("2:hx", true),
        ("3:xxx", true),
        ("0:", false),
        ("1:X", false),
        ("5:04777", false),
        ("4:\0\0\0\0", false),
        ("i73e", false),
        ("l1:xe", false),
        ("d1:x1:xe", false),
        (many.as_str(), true),
    ] {
        for is_folder in [false, true] {
            let info = attributed(is_folder, attributes).unwrap();
            assert_eq!(info.files[0].is_executable, is_executable, "{is_folder} {attributes:.20}");
        }
    }
    for is_folder in [false, true] {
        for attributes in ["1:l", "2:xl", "2:lp"] {
            assert_eq!(attributed(is_folder, attributes), Err(Error::Path(PathError::Link)), "{attributes}");
        }
    }
    // Padding is not written, and not run.
    let padding = attributed(true, "2:px").unwrap().files.remove(0);
    assert!(padding.is_padding && !padding.is_executable);
}

#[test]
fn attributes_stand_in_the_tree_of_v2_too() {
    let parse = |attributes: &str| {
        let file = Form::dict().with("attr", attributes).with("length", 3_u32);
        let leaf = Form::dict().with("", file.with("pieces root", vec![7_u8; 32]));
        let info = Form::dict().with("file tree", Form::dict().with("a", leaf)).with("meta version", 2_u32);
        Info::parse(&info.with("name", "n").with("piece length", 16_384_u32).encode())
    };
    assert!(parse("x").unwrap().files[0].is_executable);
    assert!(!parse("h").unwrap().files[0].is_executable);
    assert_eq!(parse("l"), Err(Error::Path(PathError::Link)));
}

#[test]
fn a_v2_torrent_is_shown_with_its_own_hash() {
    let leaf = |length: u32| {
        Form::dict().with("", Form::dict().with("length", length).with("pieces root", vec![7_u8; 32]))
    };
    let tree = Form::dict().with("a", leaf(20_000)).with("d", Form::dict().with("b", leaf(3)));
    let info = Form::dict().with("file tree", tree).with("meta version", 2_u32).with("name", "n");
    let octets = info.with("piece length", 16_384_u32).encode();
    let info = Info::parse(&octets).unwrap();
    assert_eq!(info.version, Version::V2);
    let padding = File { is_padding: true, ..file(&["n", ".pad", "12768"], 12_768, 20_000) };
    let last = File { is_padding: true, ..file(&["n", ".pad", "16381"], 16_381, 32_771) };
    assert_eq!(info.files, [file(&["n", "a"], 20_000, 0), padding, file(&["n", "d", "b"], 3, 32_768), last]);
    assert_eq!((info.total_bytes, info.geometry.total_bytes(), info.piece_count()), (20_003, 49_152, 3));
    assert_eq!([0, 1, 2, 3].map(|piece| info.piece_bytes(piece)), [16_384, 3_616, 3, 0]);
    assert_eq!(info.info_hash(), info.hash_v2.unwrap()[..20]);
    assert_eq!(info.hybrid_hash(), None);
    assert!(info.lacks_hashes());
}

#[test]
fn a_hybrid_torrent_is_known_by_its_v1_hash() {
    let leaf = Form::dict().with("", Form::dict().with("length", 3_u32).with("pieces root", vec![7_u8; 32]));
    let info = writer(vec![file(&["n"], 3, 0)]).info().with("meta version", 2_u32);
    let octets = info.with("file tree", Form::dict().with("n", leaf.clone())).encode();
    let info = Info::parse(&octets).unwrap();
    assert_eq!((info.version, info.info_hash()), (Version::Hybrid, sha1(&octets)));
    assert_eq!(info.hybrid_hash().unwrap(), info.hash_v2.unwrap()[..20]);
    let other = writer(vec![file(&["n"], 4, 0)]).info().with("meta version", 2_u32);
    let octets = other.with("file tree", Form::dict().with("n", leaf)).encode();
    assert_eq!(Info::parse(&octets), Err(Error::Sides));
}

/// The entry of a file of three octets in a tree.
fn leaf() -> Form {
    Form::dict().with("", Form::dict().with("length", 3_u32).with("pieces root", vec![7_u8; 32]))
}

#[test]
fn a_hybrid_torrents_v1_side_tells_that_its_only_file_is_in_a_folder_of_the_same_name() {
    let hybrid = |path: &[&str], in_tree: &str| {
        let info = writer(vec![file(path, 3, 0)]).info().with("meta version", 2_u32);
        Info::parse(&info.with("file tree", Form::dict().with(in_tree, leaf())).encode())
    };
    assert_eq!(hybrid(&["n", "n"], "n").unwrap().files, [file(&["n", "n"], 3, 0)]);
    assert_eq!(hybrid(&["n", "a"], "a").unwrap().files, [file(&["n", "a"], 3, 0)]);
    for (path, in_tree) in [(&["n"][..], "a"), (&["n", "n"], "a"), (&["n", "a"], "n")] {
        assert_eq!(hybrid(path, in_tree), Err(Error::Sides), "{path:?}, {in_tree}");
    }
}

/// As libtorrent has it. Padding behind the last file may be there or not, and an empty file is in no place.
#[test]
fn the_sides_of_a_hybrid_torrent_have_the_same_files_in_the_same_places() {
    let padding = |offset: u64| File { is_padding: true, ..file(&["n", ".pad", "16381"], 16_381, offset) };
    let (a, b) = (file(&["n", "a"], 3, 0), |at| file(&["n", "b"], 3, at));
    let (c, empty) =
        (|at| file(&["n", "c"], 0, at), Form::dict().with("", Form::dict().with("length", 0_u32)));
    let parse = |files: Vec<File>| {
        let tree = Form::dict().with("a", leaf()).with("b", leaf()).with("c", empty.clone());
        Info::parse(&writer(files).info().with("meta version", 2_u32).with("file tree", tree).encode())
    };
    for files in [
        vec![a.clone(), padding(3), b(16_384), c(16_387)],
        vec![a.clone(), padding(3), b(16_384), padding(16_387), c(32_768)],
    ] {
        assert_eq!(parse(files.clone()).unwrap().files, files);
    }
    for files in [
        vec![a.clone(), b(3), c(6)],
        vec![b(0), padding(3), file(&["n", "a"], 3, 16_384), c(16_387)],
        vec![a.clone(), padding(3), b(16_384)],
        vec![a.clone(), padding(3), c(16_384), b(16_384)],
        vec![a, padding(3), file(&["n", "b"], 4, 16_384), c(16_388)],
    ] {
        assert_eq!(parse(files.clone()), Err(Error::Sides), "{files:?}");
    }
}

#[test]
fn a_file_of_a_tree_has_nothing_beside_it() {
    let parse = |entry: Form| {
        let info = Form::dict().with("file tree", Form::dict().with("a", entry)).with("meta version", 2_u32);
        Info::parse(&info.with("name", "n").with("piece length", 16_384_u32).encode())
    };
    assert!(parse(leaf()).is_ok());
    assert_eq!(parse(leaf().with("b", leaf())), Err(Error::Key("file tree")));
}

#[test]
fn a_torrent_of_a_later_version_is_called_that() {
    let parse = |version: u32, info: Form| Info::parse(&info.with("meta version", version).encode());
    let tree = Form::dict().with("file tree", Form::dict().with("a", leaf()));
    let later = tree.with("name", "n").with("piece length", 16_384_u32);
    assert_eq!(parse(3, later.clone()), Err(Error::Version));
    assert!(parse(2, later).is_ok());
    // What it has of v1 is of use all the same.
    assert_eq!(parse(3, writer(vec![file(&["n"], 3, 0)]).info()).unwrap().version, Version::V1);
}

#[test]
fn pieces_are_of_a_sane_length() {
    let cases = [(1, 16_384), (20_000_000, 16_384), (100_000_000, 131_072), (1 << 30, 1 << 20)];
    for (total, piece_length) in cases {
        assert_eq!(piece_length_for(total), piece_length, "{total}");
    }
    assert_eq!(piece_length_for(1 << 40), 16 << 20);
}

use crate::bencode::Form;
