//! `cede meter -i`: on the loopback, and between two network namespaces that the test makes and removes. Skipped aloud
//! where the system does not permit it.
#![cfg(target_os = "linux")]

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::{Finished, Folder, PATIENCE, Running};

/// A meter that watches; `None`, aloud, where that is not permitted.
fn watch(command: &mut Command) -> Option<Running> {
    let mut meter = Running::begin(command.stdin(Stdio::null()));
    if meter.hears("Ctrl-C").is_some() {
        return Some(meter);
    }
    let Finished { code, err, .. } = meter.end();
    println!("SKIPPED: {err}");
    assert!(matches!(code, Some(1 | 3)), "{code:?}: {err}");
    None
}

/// Ends as by Ctrl-C; what came last.
fn last_of(meter: Running) -> Value {
    meter.interrupt();
    meter.end().exits(0).last()
}

/// Talks to an address of the loopback until told to stop; the port.
fn chatter(address: Ipv4Addr, stop: &Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut near = TcpStream::connect((address, port)).unwrap();
        let mut far = listener.accept().unwrap().0;
        let (mut octets, began) = ([7_u8; 400], Instant::now());
        while !stop.load(Ordering::Relaxed) && began.elapsed() < PATIENCE {
            near.write_all(&octets).unwrap();
            far.read_exact(&mut octets).unwrap();
            far.write_all(&octets[..1]).unwrap();
            near.read_exact(&mut octets[..1]).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    port
}

fn host<'a>(line: &'a Value, address: &str) -> Option<&'a Value> {
    line["hosts"].as_array()?.iter().find(|host| host["address"] == address)
}

fn samples(line: &Value, address: &str) -> u64 {
    host(line, address).and_then(|host| host["queue"]["samples"].as_u64()).unwrap_or(0)
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_loopback_is_watched_served_as_metrics_and_summed_up_in_the_end() {
    let stop = Arc::new(AtomicBool::new(false));
    let port = chatter(Ipv4Addr::LOCALHOST, &stop);
    let metrics = free_port();
    // Another test's listeners may have the same port, at addresses of their own.
    let filter = format!("tcp port {port} and not net 127.20.0.0/16");
    let folder = Folder::new("loopback");
    let mut command =
        folder.command(["meter", "-i", "lo", "--json", "--interval", "300 ms", "--prometheus", &metrics]);
    command.args(["--filter", &filter, "--for", "80 s"]);
    let Some(mut meter) = watch(&mut command) else { return };
    let line = meter.prints_such(|line| samples(line, "127.0.0.1") >= 100);
    assert_eq!(line["hosts_in_all"], 1, "{line}");
    assert!(line["flows_remembered"].as_u64().unwrap() >= 1 && line["memory_bytes"].as_u64().unwrap() > 0);
    privileges_are_gone(meter.id());
    let answer = get(&metrics, "/metrics");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("text/plain; version=0.0.4"), "{answer}");
    assert!(answer.contains("cede_meter_host_samples{host=\"127.0.0.1\"}"), "{answer}");
    assert!(
        answer.contains("cede_meter_queue_delay_seconds_bucket{protocol=\"tcp\",le=\"+Inf\"}"),
        "{answer}"
    );
    assert!(get(&metrics, "/elsewhere").starts_with("HTTP/1.1 404"));
    stop.store(true, Ordering::Relaxed);
    let last = last_of(meter);
    assert!(samples(&last, "127.0.0.1") >= 100, "{last}");
}

/// As in `cede meter -i eth0 --json | head -1`; whoever serves metrics goes on.
#[test]
fn who_reads_no_more_ends_the_watch() {
    let folder = Folder::new("unread");
    let begin = |more: &[&str]| {
        let mut command = folder.command(["meter", "-i", "lo", "--interval", "200 ms", "--for", "100 s"]);
        let mut child = command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let watches = said.any(|line| line.unwrap().contains("Ctrl-C"));
        drop(child.stdout.take());
        (child, watches)
    };
    let metrics = free_port();
    let (mut served, watches) = begin(&["--prometheus", &metrics]);
    if !watches {
        println!("SKIPPED: this user may not watch");
        return;
    }
    for form in ["--json", "--pseudonyms"] {
        let (mut child, _) = begin(&[form]);
        let end = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "{form} goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(child.wait().unwrap().success());
    }
    assert!(served.try_wait().unwrap().is_none());
    served.kill().unwrap();
    served.wait().unwrap();
}

/// One that is free now; the meter tells if it is not any more.
fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn metrics_are_no_more_however_many_hosts_there_are() {
    let stop = Arc::new(AtomicBool::new(false));
    for last in 1..=9 {
        let _ = chatter(Ipv4Addr::new(127, 20, 0, last), &stop);
    }
    let (folder, metrics) = (Folder::new("labels"), free_port());
    let mut command =
        folder.command(["meter", "-i", "lo", "--json", "--interval", "300 ms", "--for", "80 s"]);
    command.args([
        "--filter",
        "tcp and src net 127.20.0.0/16",
        "--prometheus",
        &metrics,
        "--metrics-hosts",
        "4",
    ]);
    let Some(mut meter) = watch(&mut command) else { return };
    meter.prints_such(|line| line["hosts_in_all"] == 9);
    let answer = get(&metrics, "/metrics");
    stop.store(true, Ordering::Relaxed);
    let series: Vec<_> = answer.lines().filter(|line| line.contains("{host=")).collect();
    let labels: BTreeSet<_> = series.iter().filter_map(|line| line.split('"').nth(1)).collect();
    assert!(labels.len() == 4 && series.len() <= 5 * 4, "{answer}");
    let has = |line: &str| answer.lines().any(|other| other == line);
    assert!(has("cede_meter_labelled_hosts 4") && has("cede_meter_unlabelled_hosts 5"), "{answer}");
    last_of(meter);
}

/// Whoever watches is not root, and can do nothing that others cannot.
fn privileges_are_gone(process: u32) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim();
    for name in ["CapEff:", "CapPrm:", "CapInh:"] {
        assert_eq!(field(name), "0000000000000000", "{name}");
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    // In a namespace where there is no other user to become it stays who it was.
    if !field("Uid:").starts_with("0\t") {
        assert!(!field("Uid:").split('\t').any(|id| id == "0"), "{}", field("Uid:"));
    }
}

/// Two namespaces with a cable between them, removed in the end.
struct Namespaces(String);

/// Those of two tests have different names.
static MADE: AtomicU32 = AtomicU32::new(0);

impl Namespaces {
    fn make() -> Option<Self> {
        let name = format!("cede-meter-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let made = Self(name.clone());
        for arguments in [
            format!("netns add {name}-a"),
            format!("netns add {name}-b"),
            format!("link add eth0 netns {name}-a type veth peer name eth0 netns {name}-b"),
            format!("-n {name}-a addr add 192.0.2.1/24 dev eth0"),
            format!("-n {name}-b addr add 192.0.2.2/24 dev eth0"),
            format!("-n {name}-a link set eth0 up"),
            format!("-n {name}-b link set eth0 up"),
        ] {
            let done = Command::new("ip").args(arguments.split(' ')).output();
            if !done.as_ref().is_ok_and(|output| output.status.success()) {
                let why = done.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_string());
                println!("SKIPPED: network namespaces cannot be made: ip {arguments}: {why:?}");
                return None;
            }
        }
        Some(made)
    }

    fn run(&self, end: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}-{end}", self.0), env!("CARGO_BIN_EXE_cede")]);
        command
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for end in ["a", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &format!("{}-{end}", self.0)]).output();
        }
    }
}

#[test]
fn a_remote_host_that_sends_utp_is_seen_under_its_pseudonym_if_asked_for() {
    let Some(namespaces) = Namespaces::make() else { return };
    let watch = |more: &[&str]| {
        let mut command = namespaces.run("a");
        command.args(["meter", "-i", "eth0", "--json", "--interval", "300 ms", "--for", "80 s"]).args(more);
        watch(&mut command)
    };
    let begin = |end: &str, arguments: &[&str]| {
        Running::begin(namespaces.run(end).args(arguments).stdin(Stdio::null()))
    };
    let Some(mut open) = watch(&[]) else { return };
    let Some(mut veiled) = watch(&["--pseudonyms", "--protocol", "utp"]) else { return };
    let _serve = begin("a", &["serve"]);
    let send = || begin("b", &["send", "192.0.2.1", "-t", "60"]);
    // The other end may not listen yet: whoever was refused asks again.
    let mut sender = send();
    let line = loop {
        let line = open.prints_such(|_| true);
        if samples(&line, "192.0.2.2") >= 100 {
            break line;
        }
        if sender.has_ended() {
            sender = send();
        }
    };
    let remote = host(&line, "192.0.2.2").unwrap();
    assert!(remote["utp"]["samples"].as_u64().unwrap() >= 100 && remote["tcp"].is_null(), "{remote}");
    let line = veiled.prints_such(|line| line["hosts"].as_array().is_some_and(|hosts| !hosts.is_empty()));
    assert!(!line.to_string().contains("192.0.2."), "{line}");
    let last = last_of(open);
    assert!(samples(&last, "192.0.2.2") >= 100, "{last}");
}

#[test]
fn an_interface_that_is_gone_ends_the_watch_with_what_there_is() {
    let Some(namespaces) = Namespaces::make() else { return };
    let watching = |more: &[&str]| {
        let mut command = namespaces.run("a");
        watch(command.args(["meter", "-i", "eth0", "--interval", "300 ms", "--for", "80 s"]).args(more))
    };
    let (Some(mut lines), Some(table)) = (watching(&["--json"]), watching(&[])) else { return };
    lines.prints_such(|_| true);
    let name = format!("{}-a", namespaces.0);
    let done = Command::new("ip").args(["-n", &name, "link", "del", "eth0"]).status();
    assert!(done.unwrap().success());
    let last = lines.end().exits(1).complains("interface eth0 is gone").last();
    assert!(last["cede"].is_string() && last["interface"] == "eth0", "{last}");
    let shown = table.end().exits(1).complains("interface eth0 is gone");
    assert!(shown.text().contains("No host says anything about its queue"), "{}", shown.text());
}

#[test]
fn what_is_lacking_is_told() {
    let folder = Folder::new("lacking");
    folder.cede(&["meter", "-i", "no-such-interface"]).exits(2).complains("there are: ");
    folder.cede(&["meter", "-i", "lo", "--ui"]).exits(2);
    // Without privileges: 3 and how to get them. Where there is no other user to become, nothing is shown.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_cede")]);
    match command.args(["meter", "-i", "lo", "--for", "1 s"]).output() {
        Ok(output) if output.status.code() == Some(3) => {
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(told.contains("CAP_NET_RAW") && told.contains("setcap cap_net_raw+ep"), "{told}");
        }
        other => println!("SKIPPED: setpriv does not run the program as another user: {other:?}"),
    }
}
