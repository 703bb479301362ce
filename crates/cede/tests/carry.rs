//! `serve`, `send`, `recv`, `pipe` and `proxy` as their users meet them: the program run against itself on the loopback.
//!
//! Ports are always free ones, read from what the program says. Every wait has an end, and no assertion is on time.

mod support;

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use support::carried::{
    SLOWLY, connect, echo, port_of, proxies, server, tcp_server, twenty_come_back, wait_for,
};
use support::{Finished, Folder, PATIENCE, free_port, pattern};

fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

#[test]
fn a_test_has_a_line_for_each_interval_and_the_totals_of_both_ends() {
    let place = Folder::new("test");
    let (serve, to) = server(&place, &["--once"]);
    let sent = place.cede(&["send", &to, "-t", "1", "-i", "0.4", "--target", "25ms"]).exits(0);
    let lines: Vec<&str> = sent.text().lines().collect();
    assert!(lines[0].contains("one stream from here to there, ledbat, target 25ms"), "{lines:?}");
    assert!(lines[1].contains("Transfer") && lines[1].contains("Queue") && lines[1].contains("Retr"));
    let rows = lines.iter().filter(|line| line.starts_with("[  1]") && line.contains("bit/s"));
    assert!(rows.count() >= 4, "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains("sender"))
            && lines.iter().any(|line| line.contains("receiver"))
    );
    let serve = serve.end().exits(0);
    let events: Vec<Value> = serve.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.first().unwrap()["event"], "waiting");
    assert_eq!(events.last().unwrap()["event"], "end");
    assert!(events.last().unwrap()["sum"]["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn the_document_of_a_test_that_fails_has_the_same_parts() {
    let place = Folder::new("nobody");
    // A port at which nobody listens.
    let to = format!("127.0.0.1:{}", free_port());
    let document = place.cede(&["send", &to, "-n", "1kB", "--json"]).exits(1).json();
    let parts: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(parts, ["end", "error", "intervals", "start"]);
    assert!(document["end"].as_object().is_some_and(serde_json::Map::is_empty), "{document}");
}

#[test]
fn the_other_end_sends_over_several_streams_and_json_says_what_arrived() {
    let place = Folder::new("reverse");
    let bind = if has_ipv6() { "::1" } else { "127.0.0.1" };
    let mut serve = place.start(&["serve", "-p", "0", "--bind", bind, "--json"]);
    let to = format!("{}:{}", if bind == "::1" { "[::1]" } else { bind }, port_of(&mut serve));
    let arguments = ["send", &to, "-R", "-P", "3", "-n", "1MB", "-i", "0.1", "-C", "cubic", "--json"];
    let document = place.cede(&arguments).exits(0).json();
    assert_eq!(document["start"]["test_start"]["controller"], "cubic");
    assert_eq!(document["end"]["sum_received"]["bytes"], 3_000_000);
    assert_eq!(document["end"]["sum_sent"]["bytes"], 3_000_000);
    assert_eq!(document["end"]["streams"].as_array().unwrap().len(), 3);
    assert_eq!(document["end"]["interrupted"], false);
    let stream = &document["end"]["streams"][2]["sender"];
    assert!(stream["rtt"].as_u64().is_some() && stream["snd_cwnd"].as_u64().unwrap() > 0, "{stream}");
    assert_eq!(stream["queueing_delay_source"], "rtt");
    let moved = |value: &Value| value["bytes"].as_u64().unwrap();
    let intervals = document["intervals"].as_array().unwrap();
    assert_eq!(intervals.iter().map(|interval| moved(&interval["sum"])).sum::<u64>(), 3_000_000);
    let again = place.cede(&["send", &to, "-n", "100kB", "--json"]).exits(0).json();
    assert_eq!(moved(&again["end"]["sum_received"]), 100_000, "it serves more than once");
    place
        .cede(&["send", &to, "-R", "-t", "1", "-C", "fixed"])
        .exits(1)
        .complains("does not respond to congestion");
}

#[test]
fn json_comes_line_by_line_and_a_rate_is_kept() {
    let place = Folder::new("stream");
    let (_serve, to) = server(&place, &[]);
    let sent = place.cede(&["send", &to, "-t", "1", "-i", "0.5", "-b", "2Mbit", "--json-stream"]).exits(0);
    let events: Vec<Value> = sent.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names[0], names[1], *names.last().unwrap()), ("start", "interval", "end"));
    // Twice what fits is more than any delay of a busy machine explains: the writer stops at the rate, whatever happens.
    let bytes = events.last().unwrap()["data"]["sum_sent"]["bytes"].as_u64().unwrap();
    let seconds = events.last().unwrap()["data"]["sum_sent"]["seconds"].as_f64().unwrap();
    assert!(bytes as f64 <= 2e6 / 8.0 * seconds + 10_000.0, "{bytes} octets in {seconds} s");
}

#[test]
fn ctrl_c_ends_a_test_with_what_there_is() {
    let place = Folder::new("interrupt");
    let (serve, to) = server(&place, &[]);
    let mut send = place.start(&["send", &to, "-t", "600", "-i", "0.2"]);
    send.out_line("bit/s");
    send.interrupt();
    let sent = send.end().exits(130);
    assert!(sent.text().contains("receiver"), "{}", sent.text());
    serve.interrupt();
    serve.end().exits(130);
}

/// Whichever is seen first, that somebody asks for the end or what that cuts off.
#[test]
fn ctrl_c_ends_who_serves_once_like_any_other() {
    let place = Folder::new("once");
    for _ in 0..4 {
        let (serve, to) = server(&place, &["--once"]);
        let mut send = place.start(&["send", &to, "-t", "600", "-i", "0.2"]);
        send.out_line("bit/s");
        serve.interrupt();
        let served = serve.end().exits(130);
        assert_eq!(served.last()["error"], "the server was stopped");
        send.end().exits(1).complains("the other end gave up: the server was stopped");
    }
}

#[test]
fn files_of_all_sizes_arrive_as_they_are_and_nothing_is_overwritten() {
    let place = Folder::new("sizes");
    fs::create_dir(place.path("inbox")).unwrap();
    let (_serve, to) = server(&place, &["--dir", "inbox"]);
    for (name, bytes) in [("none", 0), ("one", 1), ("mebi", 1 << 20), ("thirty", 30 << 20)] {
        let octets = place.write_pattern(name, bytes);
        let sent = place.cede(&["send", name, &to, "--json"]).exits(0).json();
        assert_eq!((sent["bytes"].as_u64(), sent["resumed_bytes"].as_u64()), (Some(bytes as u64), Some(0)));
        let arrived = format!("inbox/{name}");
        assert!(place.read(&arrived) == octets, "{name} differs");
        assert_eq!(sent["blake3"].as_str().unwrap().len(), 64);
        let modified = |path: &str| fs::metadata(place.path(path)).unwrap().modified().unwrap();
        assert_eq!(modified(name), modified(&arrived), "{name}");
        assert!(!place.path(&format!("{arrived}.part")).exists());
    }
    place.write_pattern("other", 10);
    place
        .cede(&["send", "other", &to, "--as", "one"])
        .exits(1)
        .complains(": one is there already, and is not replaced without --force");
    assert_eq!(place.read("inbox/one").len(), 1);
    place.cede(&["send", "other", &to, "--as", "../../outside"]).exits(0);
    assert_eq!(place.read("inbox/outside").len(), 10);
}

#[test]
fn a_sparse_file_of_more_than_four_gibibytes_stays_sparse() {
    let place = Folder::new("sparse");
    let bytes = (4_u64 << 30) + 12_345;
    let mut file = fs::File::create(place.path("sparse")).unwrap();
    file.write_all(b"begin").unwrap();
    if file.set_len(bytes).is_err() {
        println!("SKIPPED: the file system has no room for a sparse file of 4 GiB");
        return;
    }
    drop(file);
    let mut recv = place.start(&["recv", "-p", "0", "--bind", "127.0.0.1", "-o", "copy"]);
    let to = format!("127.0.0.1:{}", port_of(&mut recv));
    place.cede(&["send", "sparse", &to]).exits(0);
    recv.end().exits(0);
    let copy = fs::metadata(place.path("copy")).unwrap();
    assert_eq!(copy.len(), bytes);
    #[cfg(unix)]
    assert!(std::os::unix::fs::MetadataExt::blocks(&copy) * 512 < 64 << 20, "the copy is no longer sparse");
}

#[test]
fn a_file_is_fetched_and_streams_go_from_standard_input_to_standard_output() {
    let place = Folder::new("fetch");
    let octets = place.write_pattern("film", 300_000);
    place.write_pattern("other", 3);
    let (serve, from) = server(&place, &["film", "other"]);
    place.cede(&["recv", &from]).exits(1).complains("film, other");
    place.cede(&["recv", &from, "--name", "film", "-o", "copy"]).exits(0);
    assert!(place.read("copy") == octets);
    place.cede(&["recv", &from, "--name", "film", "-o", "copy"]).exits(1).complains("--force");
    place.cede(&["send", "film", &from]).exits(1).complains("--dir");
    drop(serve);
    let mut recv = place.start(&["recv", "-p", "0", "--bind", "127.0.0.1", "-o", "-"]);
    let to = format!("127.0.0.1:{}", port_of(&mut recv));
    let mut send = place.start_reading(&["send", "-", &to], Stdio::piped());
    send.stdin().write_all(&octets).unwrap();
    send.end().exits(0);
    assert!(recv.end().exits(0).out == octets);
}

#[test]
fn a_file_goes_on_where_it_ended_after_the_receiver_was_killed() {
    let place = Folder::new("receiver");
    let octets = place.write_pattern("film", 5 << 20);
    fs::create_dir(place.path("inbox")).unwrap();
    let (serve, to) = server(&place, &["--dir", "inbox"]);
    let slow = place.start(&[&["send", "film", &to], &SLOWLY[..]].concat());
    wait_for(&place.path("inbox/film.part"), 1 << 20);
    serve.kill();
    // Its host says that nobody listens; uTP alone would go on for more than a minute.
    slow.end().exits(1).complains("nobody listens there any more");
    assert!(!place.path("inbox/film").exists());
    let (_serve, to) = server(&place, &["--dir", "inbox"]);
    let sent = place.cede(&["send", "film", &to, "--json"]).exits(0).json();
    assert!(sent["resumed_bytes"].as_u64().unwrap() >= 1 << 20, "{sent}");
    assert!(place.read("inbox/film") == octets);
    assert!(!place.path("inbox/film.part").exists());
}

#[test]
fn a_file_goes_on_where_it_ended_after_the_sender_was_killed() {
    let place = Folder::new("sender");
    let octets = place.write_pattern("film", 5 << 20);
    let mut recv = place.start(&["recv", "-p", "0", "--bind", "127.0.0.1", "-o", "copy", "--json"]);
    let to = format!("127.0.0.1:{}", port_of(&mut recv));
    let slow = place.start(&[&["send", "film", &to], &SLOWLY[..]].concat());
    wait_for(&place.path("copy.part"), 1 << 20);
    slow.kill();
    // The receiver still waits for the sender that is gone; another takes its place.
    place.cede(&["send", "film", &to]).exits(0);
    let received = recv.end().exits(0).json();
    assert!(received["resumed_bytes"].as_u64().unwrap() >= 1 << 20, "{received}");
    assert!(place.read("copy") == octets);
}

/// While one sender is slow another comes; what was received into this.
fn received_beside_another(output: &str, name: &str) -> Vec<u8> {
    let place = Folder::new(name);
    fs::write(place.path("other"), "other").unwrap();
    let mut recv = place.start(&["recv", "-p", "0", "--bind", "127.0.0.1", "-o", output]);
    let to = format!("127.0.0.1:{}", port_of(&mut recv));
    let mut first = place.start_reading(&["send", "-", &to], Stdio::piped());
    let mut typed = first.stdin();
    typed.write_all(b"one ").unwrap();
    recv.says("sends stdin");
    place.cede(&["send", "other", &to]).exits(1).complains("somebody else");
    typed.write_all(b"two").unwrap();
    drop(typed);
    first.end().exits(0);
    let received = recv.end().exits(0);
    match output {
        "-" => received.out,
        "." => place.read("stdin"),
        name => place.read(name),
    }
}

#[test]
fn another_sender_does_not_end_what_is_being_received() {
    assert_eq!(received_beside_another("copy", "another-ends"), b"one two");
    assert_eq!(received_beside_another(".", "another-ends"), b"one two");
}

#[test]
fn another_sender_does_not_mix_with_what_is_being_received() {
    assert_eq!(received_beside_another("-", "another-mixes"), b"one two");
}

/// Who came while a file was being received does not replace what came, also where that may be replaced.
#[test]
fn another_sender_does_not_replace_what_has_just_come() {
    for output in [&["-o", "stdin"][..], &[]] {
        let place = Folder::new("another-replaces");
        fs::write(place.path("stdin"), "before").unwrap();
        fs::create_dir(place.path("from")).unwrap();
        fs::write(place.path("from/stdin"), "other").unwrap();
        let words = [&["recv", "--force", "-p", "0", "--bind", "127.0.0.1"], output].concat();
        let mut recv = place.start(&words);
        let to = format!("127.0.0.1:{}", port_of(&mut recv));
        let mut first = place.start_reading(&["send", "-", &to], Stdio::piped());
        let mut typed = first.stdin();
        typed.write_all(b"one ").unwrap();
        recv.says("sends stdin");
        let second = place.start(&["send", "from/stdin", &to]);
        // It has offered its file by then, or else is refused all the same.
        thread::sleep(Duration::from_millis(700));
        typed.write_all(b"two").unwrap();
        drop(typed);
        first.end().exits(0);
        second.end().exits(1).complains("somebody else");
        recv.end().exits(0);
        assert_eq!(place.read("stdin"), b"one two", "{output:?}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_who_waits_for_a_pipe_that_nobody_reads() {
    let place = Folder::new("unread");
    fs::write(place.path("film"), "film").unwrap();
    if !Command::new("mkfifo").arg(place.path("pipe")).status().is_ok_and(|status| status.success()) {
        return;
    }
    let mut recv = place.start(&["recv", "-p", "0", "--bind", "127.0.0.1", "-o", "pipe"]);
    let to = format!("127.0.0.1:{}", port_of(&mut recv));
    let send = place.start(&["send", "film", &to]);
    recv.says("sends film");
    recv.interrupt();
    recv.end().exits(130);
    send.end().exits(1).complains("the receiver was stopped");
}

#[test]
fn a_part_that_is_not_the_beginning_is_sent_anew_and_ctrl_c_keeps_it() {
    let place = Folder::new("differs");
    let octets = place.write_pattern("film", 3 << 20);
    fs::create_dir(place.path("inbox")).unwrap();
    fs::write(place.path("inbox/film.part"), vec![b'x'; 1000]).unwrap();
    let (_serve, to) = server(&place, &["--dir", "inbox"]);
    let slow = place.start(&[&["send", "film", &to], &SLOWLY[..]].concat());
    wait_for(&place.path("inbox/film.part"), 1 << 20);
    slow.interrupt();
    slow.end().exits(130).complains("go on");
    let sent = place.cede(&["send", "film", &to, "--json"]).exits(0).json();
    assert!(sent["resumed_bytes"].as_u64().unwrap() >= 1 << 20, "{sent}");
    assert!(place.read("inbox/film") == octets);
}

/// Nobody but root may read it from now on.
fn forbid(path: &Path) {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    #[cfg(not(unix))]
    let _ = path;
}

#[test]
fn what_cannot_be_read_or_written_is_said_in_words() {
    let place = Folder::new("errors");
    place.cede(&["send", "no-such-file", "127.0.0.1"]).exits(1).complains("cannot read no-such-file");
    place.cede(&["send", ".", "127.0.0.1"]).exits(1).complains("tar c");
    place.cede(&["serve", "--dir", "nowhere"]).exits(2).complains("mkdir");
    place.cede(&["recv", "-o", "nowhere/file"]).exits(2).complains("mkdir");
    place.cede(&["recv", "127.0.0.1:1", "-o", "nowhere/"]).exits(2).complains("mkdir");
    let document = place.cede(&["send", "no-such-file", "127.0.0.1", "--json"]).exits(1).json();
    assert!(document["error"].as_str().unwrap().contains("no-such-file"), "{document}");
    place.write_pattern("there", 1);
    place.cede(&["serve", "there", "./there"]).exits(2).complains("both be asked for as there");
    forbid(&place.path("there"));
    if fs::File::open(place.path("there")).is_err() {
        place.cede(&["serve", "there"]).exits(3).complains("cannot read there");
    }
    place.cede(&["recv", "-o", "there"]).exits(1).complains("--force");
    fs::create_dir(place.path("inbox")).unwrap();
    let (_serve, to) = server(&place, &["--dir", "inbox", "--max-size", "10B"]);
    place.write_pattern("long", 11);
    place.cede(&["send", "long", &to]).exits(1).complains("11 octets are more than the 10");
    // A disk that is full.
    if Path::new("/dev/full").exists() {
        let mut recv = place.start(&["recv", "-p", "0", "--bind", "127.0.0.1", "-o", "/dev/full"]);
        let to = format!("127.0.0.1:{}", port_of(&mut recv));
        place.cede(&["send", "long", &to]).exits(1).complains("No space left");
        let told = recv.end().exits(1).complains("make room");
        assert!(!told.err.contains("kept"), "{}", told.err);
        let (_serve, to) = server(&place, &[]);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut send = place.command(["send", &to, "-t", "1", "-i", "0.2", "--json-stream"]);
        let sent = Finished::of(send.stdout(full).stderr(Stdio::piped()).output().unwrap());
        assert_eq!(sent.exits(1).err.matches("error: cannot write to standard output").count(), 1);
    }
}

/// A name that is no Unicode, as file systems of Linux permit, and one that would be two lines.
#[cfg(target_os = "linux")]
#[test]
fn a_file_may_be_called_anything() {
    use std::os::unix::ffi::OsStrExt;
    let place = Folder::new("called");
    fs::create_dir(place.path("inbox")).unwrap();
    let (_serve, to) = server(&place, &["--dir", "inbox"]);
    for (name, kept) in [(&b"caf\xe9"[..], "caf\u{fffd}"), (b"two\nlines", "two_lines")] {
        let name = std::ffi::OsStr::from_bytes(name);
        fs::write(place.path("").join(name), pattern(1_000)).unwrap();
        let sent = Finished::of(place.command(["send"]).arg(name).arg(&to).output().unwrap()).exits(0);
        let (_, _, words) = sent.told();
        assert!(words.contains("sent ") && !words.contains("two\nlines"), "{words}");
        assert_eq!(fs::read(place.path("inbox").join(kept)).unwrap(), pattern(1_000));
        let mut alone = place.command(["send"]);
        Finished::of(alone.arg(name).output().unwrap()).exits(2).complains("cede send");
    }
}

/// While it comes it has a longer name; where it is known here is nobody else's business.
#[test]
fn a_file_may_have_the_longest_name() {
    let place = Folder::new("longest-name");
    let (octets, name) = (place.write_pattern("film", 100_000), "n".repeat(255));
    let mut recv = place.start(&["recv", "-p", "0", "--bind", "127.0.0.1", "-o", &name]);
    let to = format!("127.0.0.1:{}", port_of(&mut recv));
    place.cede(&["send", "film", &to]).exits(0);
    recv.end().exits(0);
    assert!(place.read(&name) == octets);
}

#[test]
fn who_asks_for_a_file_does_not_hear_where_it_lies() {
    let place = Folder::new("where-it-lies");
    fs::create_dir(place.path("secret")).unwrap();
    place.write("secret/film", "film");
    let path = place.path("secret/film");
    let mut serve =
        place.start(&["serve", path.to_str().unwrap(), "-p", "0", "--bind", "127.0.0.1", "--json"]);
    let to = format!("127.0.0.1:{}", port_of(&mut serve));
    fs::remove_file(&path).unwrap();
    let told = place.cede(&["recv", &to, "-o", "copy"]).exits(1).complains("cannot read film");
    assert!(!told.err.contains("secret"), "{}", told.err);
}

#[test]
fn wrong_words_are_usage_errors_that_say_what_is_right() {
    let place = Folder::new("usage");
    for (arguments, complaint) in [
        (&["send", "127.0.0.1", "-n", "10M"][..], "10MiB"),
        (&["send", "127.0.0.1", "-b", "10"], "Mbit/s"),
        (&["send", "127.0.0.1", "-t", "5 parsec"], "ms"),
        (&["send", "127.0.0.1", "-t", "0"], "test of"),
        (&["send", "127.0.0.1", "-P", "1000"], "1 to 128"),
        (&["send", "127.0.0.1", "-C", "ledbatt"], "ledbat"),
        (&["send", "127.0.0.1", "-C", "reno", "--target", "25ms"], "target"),
        (&["send", "127.0.0.1", "-s", "gain"], "PARAM=VALUE"),
        (&["send", "127.0.0.1:99999"], "65535"),
        (&["send", "file", "127.0.0.1", "-t", "5"], "-t is for tests"),
        (&["send", "127.0.0.1", "--as", "file"], "--as is for files"),
        (&["pipe", "-l", "everywhere"], "ADDRESS:PORT"),
        (&["proxy", "--to", "127.0.0.1:1"], "--listen"),
        (&["proxy", "--listen", "everywhere", "--to", "127.0.0.1:1"], "loopback"),
    ] {
        place.cede(arguments).exits(2).complains(complaint);
    }
    place.write_pattern("file", 1);
    place.cede(&["send", "file"]).exits(2).complains("cede send file HOST:PORT");
}

#[test]
fn nobody_there_no_such_name_and_a_taken_port_are_said_in_words() {
    let place = Folder::new("nobody");
    let free = format!("127.0.0.1:{}", free_port());
    let nobody = place.cede(&["send", &free, "-t", "1"]).exits(1);
    // Where ICMP does not come through, it is the silence that tells.
    assert!(nobody.err.contains("nobody listens") || nobody.err.contains("no answer"), "{}", nobody.err);
    assert!(nobody.err.contains("cede serve"), "{}", nobody.err);
    place.cede(&["send", "no-such-host.invalid", "-t", "1"]).exits(1).complains("does not resolve");
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    place.cede(&["serve", "--bind", "127.0.0.1", "-p", &port]).exits(1).complains("is taken");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    place.cede(&["proxy", "--listen", &port, "--to", "127.0.0.1:1"]).exits(1).complains("is taken");
}

/// A pipe between two ends: what each writes, and what each got.
fn piped(place: &Folder, near: &[u8], far: &[u8]) -> (Finished, Finished) {
    let mut listener = place.start_reading(&["pipe", "-l", "127.0.0.1:0"], Stdio::piped());
    let to = format!("127.0.0.1:{}", port_of(&mut listener));
    let mut caller = place.start_reading(&["pipe", &to], Stdio::piped());
    let (mut into_caller, mut into_listener) = (caller.stdin(), listener.stdin());
    thread::scope(|scope| {
        scope.spawn(|| into_caller.write_all(near).unwrap());
        scope.spawn(|| into_listener.write_all(far).unwrap());
    });
    drop((into_caller, into_listener));
    (caller.end(), listener.end())
}

#[test]
fn a_pipe_carries_both_directions_and_ends_when_both_have() {
    let place = Folder::new("pipe");
    let (near, far) = (pattern(1 << 20), pattern(3_000_001));
    let (caller, listener) = piped(&place, &near, &far);
    assert!(caller.exits(0).out == far);
    assert!(listener.exits(0).out == near);
    let (caller, listener) = piped(&place, b"", b"one way");
    assert_eq!((caller.exits(0).out, listener.exits(0).out), (b"one way".to_vec(), Vec::new()));
}

#[test]
fn half_a_pipe_stays_open_when_the_other_half_has_ended() {
    let place = Folder::new("half");
    let mut listener = place.start_reading(&["pipe", "-l", "127.0.0.1:0"], Stdio::piped());
    let to = format!("127.0.0.1:{}", port_of(&mut listener));
    let mut into_listener = listener.stdin();
    // The caller ends its direction at once; only then is anything written the other way.
    let caller = place.start(&["pipe", &to]);
    thread::sleep(Duration::from_millis(500));
    into_listener.write_all(b"still here").unwrap();
    drop(into_listener);
    assert_eq!(caller.end().exits(0).out, b"still here");
    listener.end().exits(0);
}

#[test]
fn a_program_that_is_no_cede_is_told_so_by_either_end() {
    let place = Folder::new("stranger");
    let (_serve, to) = server(&place, &[]);
    let mut stranger = place.start_reading(&["pipe", &to], Stdio::piped());
    stranger.stdin().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let told = stranger.end().exits(0);
    assert!(told.text().contains("speaks the protocol of cede"), "{told:?}");
    let mut listener = place.start_reading(&["pipe", "-l", "127.0.0.1:0"], Stdio::piped());
    let to = format!("127.0.0.1:{}", port_of(&mut listener));
    listener.stdin().write_all(b"220 mail.example.org").unwrap();
    place.cede(&["send", &to, "-t", "1"]).exits(1).complains("220 mail.example.org");
}

#[test]
fn proxies_carry_many_connections_at_once_and_their_half_closes() {
    let place = Folder::new("proxy");
    let (_exit, entrance, port) = proxies(&place, tcp_server(echo), [&[], &["--json", "-i", "0.2"]]);
    twenty_come_back(port);
    entrance.interrupt();
    let entrance = entrance.end().exits(130).complains("20 connections were carried");
    let last: Value = serde_json::from_str(entrance.text().lines().last().unwrap()).unwrap();
    assert_eq!(last["connections"], 20, "{last}");
    assert_eq!(last["to_utp_bytes"], 20 * 100_000 + 190, "{last}");
    assert_eq!((&last["to_tcp_bytes"], &last["failures"]), (&last["to_utp_bytes"], &Value::from(0)));
}

/// The last interval ends with the proxy, and is shorter than the others.
#[test]
fn rates_of_a_proxy_are_those_of_the_time_that_has_passed() {
    let place = Folder::new("rates");
    for interval in ["0", "3600"] {
        let (_exit, entrance, port) = proxies(&place, tcp_server(echo), [&[], &["--json", "-i", interval]]);
        twenty_come_back(port);
        entrance.interrupt();
        let last = entrance.end().exits(130).last();
        // No test lasts ten minutes.
        assert!(last["to_utp_bits_per_second"].as_u64().unwrap() > 2_000_190 * 8 / 600, "{last}");
    }
}

#[test]
fn proxies_carry_resets_and_say_when_the_server_is_not_there() {
    let place = Folder::new("reset");
    // A connection that is closed with something unread is reset.
    let server = tcp_server(|mut connection| {
        let _ = connection.read_exact(&mut [0; 1]);
    });
    let (_exit, _entrance, port) = proxies(&place, server, [&[], &[]]);
    let mut connection = connect(port);
    connection.write_all(&[1; 1000]).unwrap();
    let error = connection.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    let (_exit, mut entrance, port) = proxies(&place, free_port(), [&[], &[]]);
    assert!(connect(port).read(&mut [0; 1]).is_err());
    let told = entrance.says("refuses");
    assert!(told.contains("cannot connect to 127.0.0.1:"), "{told}");
}

/// A cut is no end, for a program as for its server.
#[test]
fn connections_of_a_proxy_that_ends_are_reset() {
    for (is_exit, is_killed) in [(true, true), (true, false), (false, true), (false, false)] {
        let place = Folder::new("proxy-ends");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (exit, entrance, port) = proxies(&place, listener.local_addr().unwrap().port(), [&[], &[]]);
        let mut near = connect(port);
        near.write_all(b"x").unwrap();
        let (mut far, _) = listener.accept().unwrap();
        far.set_read_timeout(Some(PATIENCE)).unwrap();
        far.read_exact(&mut [0; 1]).unwrap();
        let (proxy, connection) = if is_exit { (&exit, &mut far) } else { (&entrance, &mut near) };
        proxy.signal(if is_killed { "-KILL" } else { "-INT" });
        let error = connection.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{is_exit} {is_killed}: {error}");
    }
}

#[test]
fn connections_beyond_the_limit_are_reset() {
    let place = Folder::new("limit");
    let (_exit, mut entrance, port) = proxies(&place, tcp_server(echo), [&[], &["--max-connections", "1"]]);
    let mut first = connect(port);
    first.write_all(b"x").unwrap();
    // The first is taken up before the second comes: connections are accepted in their order.
    assert!(connect(port).read(&mut [0; 1]).is_err());
    entrance.says("open already");
    first.shutdown(Shutdown::Write).unwrap();
    assert_eq!(first.read(&mut [0; 1]).unwrap(), 1);
}

#[test]
fn each_verb_has_examples_and_says_what_it_cannot_do() {
    let place = Folder::new("help");
    for verb in ["serve", "send", "recv", "pipe", "proxy", "key"] {
        let help = place.cede(&[verb, "--help"]).exits(0);
        assert!(help.text().contains("Examples"), "{verb}");
    }
    let help = place.cede(&["proxy", "--help"]).exits(0);
    for said in ["Both ends must run it", "neither encrypted nor authenticated", "loopback"] {
        assert!(help.text().contains(said), "{said}");
    }
}
