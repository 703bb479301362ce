//! Keys, and `serve`, `send`, `recv`, `pipe` and `proxy` under one, as their users meet them: what works without works with
//! it, who has none or another is refused in words at both ends, and whoever sits on the way reads and changes nothing.

mod support;

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use support::carried::{
    SLOWLY, connect, echo, port_of, proxies, proxy_entrance, proxy_exit, server, tcp_server,
    twenty_come_back, wait_for,
};
use support::{Folder, Running, pattern};

/// A folder with two keys in it: `key`, and another.
fn folder(name: &str) -> Folder {
    let place = Folder::new(name);
    place.cede(&["key", "key"]).exits(0);
    place.cede(&["key", "other"]).exits(0);
    place
}

#[test]
fn a_key_is_its_owner_s_alone_and_never_replaced() {
    let place = Folder::new("make");
    let made = place.cede(&["key", "key"]).exits(0);
    let text = place.text("key");
    assert!(text.len() == 65 && text.starts_with("cedekey1") && text.ends_with('\n'), "{text}");
    place.cede(&["key", "key"]).exits(1).complains("never replaced");
    assert_eq!(place.text("key"), text);
    let checked = place.cede(&["key", "--check", "key", "--json"]).exits(0).json();
    let fingerprint = checked["fingerprint"].as_str().unwrap().to_owned();
    assert!(made.text().contains(&fingerprint) && !made.text().contains(text.trim()), "{made:?}");
    let printed = place.cede(&["key", "-"]).exits(0).complains("fingerprint");
    assert!(printed.text().len() == 65 && printed.text() != text);
    place.cede(&["key", "nowhere/key"]).exits(1).complains("nowhere");
    place.cede(&["key"]).exits(2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |mode| fs::set_permissions(place.path("key"), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(fs::metadata(place.path("key")).unwrap().permissions().mode() & 0o777, 0o600);
        for shared in [0o640, 0o604, 0o660, 0o666] {
            mode(shared);
            place.cede(&["serve", "--key", "key"]).exits(2).complains("chmod 600 key");
        }
        mode(0o400);
        place.cede(&["key", "--check", "key"]).exits(0);
    }
}

#[test]
fn what_is_no_key_is_never_taken_for_none() {
    let place = folder("wrong");
    let text = place.text("key");
    let swapped = if text.as_bytes()[20] == b'a' { "b" } else { "a" };
    let mistyped = format!("{}{swapped}{}", &text[..20], &text[21..]);
    for (wrong, complaint) in [
        (mistyped.as_str(), "checksum"),
        (&text[..40], "not the whole"),
        ("", "no key"),
        ("password\n", "no key"),
    ] {
        place.write("other", wrong);
        for verb in [&["serve"][..], &["send", "127.0.0.1:9"], &["recv"], &["pipe", "127.0.0.1:9"]] {
            let told = place.cede(&[verb, &["--key", "other"]].concat()).exits(2).complains(complaint);
            assert!(!told.err.contains(&text[8..16]), "nothing of the key is repeated: {told:?}");
        }
        let mut proxy = place.command(["proxy", "--listen", "0", "--to", "127.0.0.1:9"]);
        let complaint = if wrong.is_empty() { "is empty" } else { complaint };
        Running::begin(proxy.env("CEDE_KEY", wrong)).end().exits(2).complains(complaint);
    }
    place.cede(&["serve", "--key", "nothing"]).exits(1).complains("cannot read the key nothing");
}

#[test]
fn tests_count_what_they_carry_and_say_that_it_was_protected() {
    let place = folder("test");
    let (serve, to) = server(&place, &["--key", "key"]);
    for reverse in [&[][..], &["-R"]] {
        let arguments = ["send", &to, "-P", "3", "-n", "1MB", "-i", "0.1", "--key", "key", "--json"];
        let document = place.cede(&[&arguments, reverse].concat()).exits(0).json();
        assert_eq!(document["start"]["protected"], true);
        assert_eq!(document["end"]["sum_received"]["bytes"], 3_000_000, "{document}");
        assert_eq!(document["end"]["sum_sent"]["bytes"], 3_000_000, "{document}");
        let intervals = document["intervals"].as_array().unwrap().iter();
        let sum: u64 = intervals.map(|interval| interval["sum"]["bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum, 3_000_000);
    }
    let words = place.cede(&["send", &to, "-t", "0.3", "-b", "5Mbit", "--key", "key"]).exits(0);
    assert!(words.text().contains("under the key"), "{words:?}");
    serve.interrupt();
    let serve = serve.end().exits(130);
    let events: Vec<Value> = serve.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["data"]["protected"], true);
    assert!(events.iter().skip(1).all(|event| event["protected"] == true), "{events:?}");
    assert!(events.iter().filter(|event| event["event"] == "end").count() == 3, "{events:?}");
    let (_serve, to) = server(&place, &[]);
    let document = place.cede(&["send", &to, "-n", "1kB", "--json"]).exits(0).json();
    assert_eq!(document["start"]["protected"], false);
}

#[test]
fn files_go_under_a_key_in_either_direction_and_go_on_where_they_ended() {
    let place = folder("file");
    let octets = place.write_pattern("film", 5 << 20);
    fs::create_dir(place.path("inbox")).unwrap();
    let (serve, to) = server(&place, &["--dir", "inbox", "--key", "key", "film"]);
    let slow = place.start(&[&["send", "film", &to, "--key", "key"], &SLOWLY[..]].concat());
    wait_for(&place.path("inbox/film.part"), 1 << 20);
    slow.kill();
    let mut again = place.command(["send", "film", &to, "--json"]);
    let sent = Running::begin(again.env("CEDE_KEY", place.text("key"))).end().exits(0).json();
    assert!(sent["resumed_bytes"].as_u64().unwrap() >= 1 << 20, "{sent}");
    assert_eq!(sent["protected"], true);
    assert!(place.read("inbox/film") == octets);
    let fetched = place.cede(&["recv", &to, "-o", "copy", "--key", "key", "--json"]).exits(0).json();
    assert_eq!(fetched["protected"], true);
    assert!(place.read("copy") == octets);
    serve.interrupt();
    let serve = serve.end();
    let ends = serve.text().lines().filter(|line| line.contains("\"file_ends\""));
    assert!(
        ends.clone().count() == 2 && ends.clone().all(|line| line.contains("\"protected\":true")),
        "{serve:?}"
    );
}

#[test]
fn who_has_no_key_or_another_is_refused_and_displaces_nobody() {
    let place = folder("refused");
    let octets = place.write_pattern("film", 100_000);
    let mut recv = place.start(&["recv", "-p", "0", "--bind", "127.0.0.1", "-o", "copy", "--key", "key"]);
    let to = format!("127.0.0.1:{}", port_of(&mut recv));
    place.cede(&["send", "film", &to]).exits(1).complains("the other end refuses").complains("--key FILE");
    recv.says("has no key");
    place.cede(&["send", "film", &to, "--key", "other"]).exits(1).complains("another key");
    recv.says("has another key");
    // Somebody who only stands at the door.
    let _idle = place.start_reading(&["pipe", &to], Stdio::piped());
    place.cede(&["send", "film", &to, "--key", "key"]).exits(0).complains("under the key");
    recv.end().exits(0);
    assert!(place.read("copy") == octets);
    // The other way round: who waits has none.
    let (mut serve, to) = server(&place, &["film"]);
    place.cede(&["recv", &to, "--key", "key"]).exits(1).complains("the other end has no key");
    let told = serve.prints("refused");
    assert!(told["error"].as_str().unwrap().contains("--key FILE"), "{told}");
    assert_eq!(told["protected"], false);
    let document = place.cede(&["send", &to, "--key", "key", "--json"]).exits(1).json();
    assert!(document["error"].as_str().unwrap().contains("has no key"), "{document}");
}

#[test]
fn a_pipe_under_a_key_is_for_who_has_it() {
    let place = folder("pipe");
    let mut listener = place.start_reading(&["pipe", "-l", "127.0.0.1:0", "--key", "key"], Stdio::piped());
    let to = format!("127.0.0.1:{}", port_of(&mut listener));
    let _idle = place.start_reading(&["pipe", &to], Stdio::piped());
    let stranger = place.cede_reading(&["pipe", &to], b"for anybody").exits(1).complains("--key FILE");
    assert_eq!(stranger.text(), "", "what it was told is no data");
    listener.says("was not let in");
    place.cede_reading(&["pipe", &to, "--key", "other"], b"for nobody").exits(1).complains("another key");
    let (near, far) = (pattern(1 << 20), pattern(3_000_001));
    let mut caller = place.start_reading(&["pipe", &to, "--key", "key", "--json"], Stdio::piped());
    let (mut into_caller, mut into_listener) = (caller.stdin(), listener.stdin());
    // The caller's direction ends first; all of the other comes later.
    into_caller.write_all(&near).unwrap();
    drop(into_caller);
    thread::sleep(Duration::from_millis(300));
    into_listener.write_all(&far).unwrap();
    drop(into_listener);
    let caller = caller.end().exits(0);
    assert!(caller.out == far);
    assert!(listener.end().exits(0).out == near);
    let totals: Value = serde_json::from_str(caller.err.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&totals["bytes_sent"], &totals["bytes_received"]),
        (&Value::from(1 << 20), &Value::from(3_000_001))
    );
    assert_eq!(totals["protected"], true);
}

#[test]
fn what_is_typed_goes_through_a_pipe_under_a_key_at_once() {
    let place = folder("typed");
    let mut listener = place.start_reading(&["pipe", "-l", "127.0.0.1:0", "--key", "key"], Stdio::piped());
    let to = format!("127.0.0.1:{}", port_of(&mut listener));
    let mut caller = place.start_reading(&["pipe", &to, "--key", "key"], Stdio::piped());
    let (mut into_caller, mut into_listener) = (caller.stdin(), listener.stdin());
    for turn in 0..3 {
        into_caller.write_all(format!("question {turn}\n").as_bytes()).unwrap();
        listener.out_line(&format!("question {turn}"));
        into_listener.write_all(format!("answer {turn}\n").as_bytes()).unwrap();
        caller.out_line(&format!("answer {turn}"));
    }
    drop((into_caller, into_listener));
    caller.end().exits(0);
    listener.end().exits(0);
}

#[test]
fn a_pipe_without_a_key_says_so_to_one_that_has_it() {
    let place = folder("pipes");
    // Where its own direction has ended already, that is all that it can say.
    for (stdin, said) in [(Stdio::piped(), "the other end has no key"), (Stdio::null(), "--key FILE")] {
        let mut listener = place.start_reading(&["pipe", "-l", "127.0.0.1:0"], stdin);
        let to = format!("127.0.0.1:{}", port_of(&mut listener));
        place.cede_reading(&["pipe", &to, "--key", "key"], b"secret").exits(1).complains(said);
        let listener = listener.end().exits(1).complains("speaks under a key");
        assert_eq!(listener.text(), "");
    }
}

#[test]
fn proxies_under_a_key_carry_half_closes_and_resets_for_who_has_it() {
    let place = folder("proxy");
    let keys: [&[&str]; 2] = [&["--key", "key", "--json", "-i", "0.1"], &["--key", "key"]];
    let (mut exit, _entrance, port) = proxies(&place, tcp_server(echo), keys);
    assert_eq!(exit.prints("waiting")["protected"], true);
    twenty_come_back(port);
    let total = 20 * 100_000 + 190;
    let last = exit.prints_such(|line| line["to_tcp_bytes"] == total && line["to_utp_bytes"] == total);
    assert_eq!((&last["failures"], &last["protected"]), (&Value::from(0), &Value::from(true)));
    let impatient = tcp_server(|mut connection| {
        let _ = connection.read_exact(&mut [0; 1]);
    });
    let (_exit, _entrance, port) = proxies(&place, impatient, keys);
    let mut connection = connect(port);
    connection.write_all(&[1; 1000]).unwrap();
    let error = connection.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}

#[test]
fn a_proxy_refuses_who_has_not_its_key_and_gives_it_no_place() {
    let place = folder("strangers");
    let (mut exit, to) = proxy_exit(&place, tcp_server(echo), &["--key", "key", "--max-connections", "1"]);
    let (mut wrong, port) = proxy_entrance(&place, &to, &["--key", "other"]);
    assert!(connect(port).read(&mut [0; 1]).is_err());
    wrong.says("another key");
    exit.says("another key");
    let (mut without, port) = proxy_entrance(&place, &to, &[]);
    assert!(connect(port).read(&mut [0; 1]).is_err());
    without.says("--key FILE");
    let _idle: Vec<_> = (0..3).map(|_| place.start_reading(&["pipe", &to], Stdio::piped())).collect();
    let (_entrance, port) = proxy_entrance(&place, &to, &["--key", "key"]);
    let mut connection = connect(port);
    connection.write_all(b"here").unwrap();
    connection.shutdown(Shutdown::Write).unwrap();
    let mut back = String::new();
    connection.read_to_string(&mut back).unwrap();
    assert_eq!(back, "here");
}

#[test]
fn a_port_alone_is_open_to_others_under_a_key_and_to_nobody_without() {
    let place = folder("open");
    for (key, is_open) in [(&[][..], false), (&["--key", "key"], true)] {
        let arguments = [&["proxy", "--utp-listen", "0", "--to", "127.0.0.1:9"], key].concat();
        let line = place.start(&arguments).says("go over TCP to");
        assert_eq!(!line.starts_with("uTP streams to 127.0.0.1:"), is_open, "{line}");
    }
    let mut proxy = place.start(&["proxy", "--utp-listen", "0.0.0.0:0", "--to", "127.0.0.1:9"]);
    proxy.says("without --key, whoever reaches that port");
}

/// Somebody on the way between one end and another.
struct Way {
    address: String,
    is_over: Arc<AtomicBool>,
    seen: thread::JoinHandle<Vec<u8>>,
}

/// How often whoever carries looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);

impl Way {
    /// It may change what goes to the other end.
    fn to(to: &str, change: impl Fn(&mut [u8]) + Send + 'static) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.connect(to).unwrap();
        let (address, is_over) = (near.local_addr().unwrap().to_string(), Arc::new(AtomicBool::new(false)));
        near.set_read_timeout(Some(LOOK)).unwrap();
        far.set_read_timeout(Some(LOOK)).unwrap();
        let over = is_over.clone();
        let seen = thread::spawn(move || carry(&near, &far, &over, change));
        Self { address, is_over, seen }
    }

    /// What went to the other end, once both ends have ended.
    fn seen(self) -> Vec<u8> {
        self.is_over.store(true, Relaxed);
        self.seen.join().unwrap()
    }
}

fn carry(near: &UdpSocket, far: &UdpSocket, is_over: &AtomicBool, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let (mut seen, mut octets) = (Vec::new(), vec![0; 1 << 16]);
    thread::scope(|scope| {
        let mut has_caller = false;
        while !is_over.load(Relaxed) {
            let Ok((n, from)) = near.recv_from(&mut octets) else { continue };
            if !has_caller {
                has_caller = true;
                scope.spawn(move || carry_back(near, far, from, is_over));
            }
            seen.extend(&octets[..n]);
            change(&mut octets[..n]);
            let _ = far.send(&octets[..n]);
        }
    });
    seen
}

fn carry_back(near: &UdpSocket, far: &UdpSocket, to: SocketAddr, is_over: &AtomicBool) {
    let mut octets = vec![0; 1 << 16];
    while !is_over.load(Relaxed) {
        if let Ok(n) = far.recv(&mut octets) {
            let _ = near.send_to(&octets[..n], to);
        }
    }
}

#[test]
fn who_sits_on_the_way_reads_nothing() {
    let place = folder("way");
    let secret = b"what nobody else may know. ";
    place.write("diary", secret.repeat(2000));
    for (key, is_read) in [(&[][..], true), (&["--key", "key"], false)] {
        let arguments = ["recv", "-p", "0", "--bind", "127.0.0.1", "-o", "copy", "--force"];
        let mut recv = place.start(&[&arguments, key].concat());
        let way = Way::to(&format!("127.0.0.1:{}", port_of(&mut recv)), |_| {});
        place.cede(&[&["send", "diary", &way.address], key].concat()).exits(0);
        recv.end().exits(0);
        let seen = way.seen();
        let holds = |what: &[u8]| seen.windows(what.len()).any(|octets| octets == what);
        assert!(seen.len() > 2000 * secret.len());
        assert_eq!(
            (holds(secret), holds(b"diary")),
            (is_read, is_read),
            "the file's name is no less a secret"
        );
    }
}

#[test]
fn what_is_changed_on_the_way_is_not_taken_and_goes_on_afterwards() {
    let place = folder("change");
    let octets = place.write_pattern("film", 3 << 20);
    fs::create_dir(place.path("inbox")).unwrap();
    let (mut serve, to) = server(&place, &["--dir", "inbox", "--key", "key"]);
    let passed = AtomicUsize::new(0);
    let way = Way::to(&to, move |octets| {
        // The last octet of the packet with which a megabyte and a half has gone by.
        let before = passed.fetch_add(octets.len(), Relaxed);
        let is_it = before < 1_500_000 && before + octets.len() >= 1_500_000;
        if let Some(last) = octets.last_mut().filter(|_| is_it) {
            *last ^= 1;
        }
    });
    place.cede(&[&["send", "film", &way.address, "--key", "key"], &SLOWLY[..]].concat()).exits(1);
    let told = serve.prints("file_error");
    assert!(told["error"].as_str().unwrap().contains("changed on the way"), "{told}");
    drop(way.seen());
    assert!(!place.path("inbox/film").exists());
    let sent = place.cede(&["send", "film", &to, "--key", "key", "--json"]).exits(0).json();
    assert!(sent["resumed_bytes"].as_u64().unwrap() > 0, "{sent}");
    assert!(place.read("inbox/film") == octets);
}
