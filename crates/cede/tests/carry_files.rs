//! Files that are not as files usually are, given and taken by `cede send`, `serve` and `recv`.

mod support;

use std::fs;
use std::process::Command;
use std::thread;
use support::carried::{SLOWLY, server, wait_for};
use support::{Folder, free_port};

/// Files of `/proc` call themselves empty, and are not.
#[cfg(target_os = "linux")]
#[test]
fn what_calls_itself_empty_is_read_to_its_end() {
    let place = Folder::new("unmeasured");
    fs::create_dir(place.path("inbox")).unwrap();
    let (_serve, to) = server(&place, &["--dir", "inbox"]);
    place.cede(&["send", "/proc/version", &to]).exits(0);
    let version = fs::read("/proc/version").unwrap();
    assert!(!version.is_empty() && place.read("inbox/version") == version);
}

#[test]
fn who_gets_a_file_does_not_hear_where_it_lay() {
    let place = Folder::new("where-it-lay");
    fs::create_dir(place.path("secret")).unwrap();
    fs::create_dir(place.path("inbox")).unwrap();
    place.write_pattern("secret/film", 5 << 20);
    let (serve, to) = server(&place, &["--dir", "inbox", "--once"]);
    let path = place.path("secret/film");
    let slow = place.start(&[&["send", path.to_str().unwrap(), &to], &SLOWLY[..]].concat());
    wait_for(&place.path("inbox/film.part"), 1 << 20);
    fs::File::options().write(true).open(&path).unwrap().set_len(2 << 20).unwrap();
    slow.end().exits(1).complains("secret/film became shorter");
    let told = serve.end().exits(1);
    let error = told.last()["error"].to_string();
    assert!(error.contains("film became shorter") && !error.contains("secret"), "{error}");
}

/// Who only looked whether a pipe can be read would take its writer away.
#[cfg(unix)]
#[test]
fn a_pipe_is_given_to_who_asks_for_it() {
    let place = Folder::new("given-pipe");
    let pipe = place.path("pipe");
    if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        println!("SKIPPED: no pipe can be made");
        return;
    }
    let (_serve, from) = server(&place, &["pipe"]);
    let writer = thread::spawn(move || fs::write(pipe, "film"));
    place.cede(&["recv", &from, "-o", "copy"]).exits(0);
    writer.join().unwrap().unwrap();
    assert_eq!(place.read("copy"), b"film");
}

#[test]
fn whatever_goes_wrong_has_a_document_where_one_is_wanted() {
    let place = Folder::new("fetch-document");
    place.write("there", "there");
    let from = format!("127.0.0.1:{}", free_port());
    for (output, complaint) in [("there", "--force"), ("copy", "cede serve FILE")] {
        let document = place.cede(&["recv", &from, "-o", output, "--json"]).exits(1).json();
        assert!(document["error"].as_str().unwrap().contains(complaint), "{document}");
    }
}
