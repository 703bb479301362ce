//! `cede meter -i`: on the loopback, and between two network namespaces that the test makes and removes. Skipped aloud
//! where the system does not permit it.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// However slow the machine, nothing here takes longer.
const PATIENCE: Duration = Duration::from_secs(90);

/// A meter that runs, and what it says.
struct Watcher {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

fn lines(source: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        BufReader::new(source).lines().map_while(Result::ok).try_for_each(|line| send.send(line))
    });
    receive
}

impl Watcher {
    /// `None`, aloud, where it is not permitted.
    fn begin(mut command: Command) -> Option<Self> {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        let mut watcher = Self { child, out, err };
        loop {
            match watcher.err.recv_timeout(PATIENCE) {
                Ok(line) if line.starts_with("watching") && line.contains("Ctrl-C") => return Some(watcher),
                Ok(line) if line.starts_with("error:") => {
                    println!("SKIPPED: {line}");
                    let code = watcher.child.wait().unwrap().code();
                    assert!(matches!(code, Some(1 | 3)), "{code:?}: {line}");
                    return None;
                }
                Ok(_) => {}
                Err(error) => panic!("the meter does not begin: {error}"),
            }
        }
    }

    /// Waits for a line of JSON that is as wanted.
    fn wait_for(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.out.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let value: Value =
                        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                    if wanted(&value) {
                        return value;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("it never came"),
                Err(RecvTimeoutError::Disconnected) => panic!("the meter ended"),
            }
        }
    }

    /// As Ctrl-C does.
    fn interrupt(&self) {
        let done =
            Command::new("sh").args(["-c", &format!("kill -INT {}", self.child.id())]).status().unwrap();
        assert!(done.success());
    }

    /// The exit code and what came last.
    fn end(mut self) -> (Option<i32>, Value) {
        self.interrupt();
        let code = self.child.wait().unwrap().code();
        let last = self.out.iter().last().expect("a last line");
        (code, serde_json::from_str(&last).expect("JSON"))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cede() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cede"))
}

/// Talks to itself over the loopback until told to stop; the port.
fn chatter(stop: &Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut near = TcpStream::connect(("127.0.0.1", port)).unwrap();
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
    let port = chatter(&stop);
    // A port that is free now; the meter tells if it is not any more.
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut command = cede();
    let filter = format!("tcp port {port}");
    command.args(["meter", "-i", "lo", "--json", "--interval", "300 ms", "--prometheus", &metrics]);
    command.args(["--filter", &filter, "--for", "80 s"]);
    let Some(watcher) = Watcher::begin(command) else { return };
    let line = watcher.wait_for(|line| samples(line, "127.0.0.1") >= 100);
    assert_eq!(line["hosts_in_all"], 1, "{line}");
    assert!(line["flows_remembered"].as_u64().unwrap() >= 1 && line["memory_bytes"].as_u64().unwrap() > 0);
    privileges_are_gone(watcher.child.id());
    let answer = get(&metrics, "/metrics");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("text/plain; version=0.0.4"), "{answer}");
    assert!(answer.contains("cede_meter_host_samples{host=\"127.0.0.1\"}"), "{answer}");
    assert!(
        answer.contains("cede_meter_queue_delay_seconds_bucket{protocol=\"tcp\",le=\"+Inf\"}"),
        "{answer}"
    );
    assert!(get(&metrics, "/elsewhere").starts_with("HTTP/1.1 404"));
    stop.store(true, Ordering::Relaxed);
    let (code, last) = watcher.end();
    assert_eq!(code, Some(0));
    assert!(samples(&last, "127.0.0.1") >= 100, "{last}");
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

impl Namespaces {
    fn make() -> Option<Self> {
        let name = format!("cede-meter-{}", std::process::id());
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

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_remote_host_that_sends_utp_is_seen_under_its_pseudonym_if_asked_for() {
    let Some(namespaces) = Namespaces::make() else { return };
    let quiet = |mut command: Command| {
        Ended(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let watch = |more: &[&str]| {
        let mut command = namespaces.run("a");
        command.args(["meter", "-i", "eth0", "--json", "--interval", "300 ms", "--for", "80 s"]).args(more);
        Watcher::begin(command)
    };
    let Some(open) = watch(&[]) else { return };
    let Some(veiled) = watch(&["--pseudonyms", "--protocol", "utp"]) else { return };
    let mut serve = namespaces.run("a");
    serve.args(["serve"]);
    let _serve = quiet(serve);
    let mut send = namespaces.run("b");
    send.args(["send", "192.0.2.1", "-t", "60"]);
    // The other end may not listen yet: whoever was refused asks again.
    let mut sender = quiet(send);
    let line = loop {
        let line = open.wait_for(|_| true);
        if samples(&line, "192.0.2.2") >= 100 {
            break line;
        }
        if sender.0.try_wait().unwrap().is_some() {
            let mut send = namespaces.run("b");
            send.args(["send", "192.0.2.1", "-t", "60"]);
            sender = quiet(send);
        }
    };
    let remote = host(&line, "192.0.2.2").unwrap();
    assert!(remote["utp"]["samples"].as_u64().unwrap() >= 100 && remote["tcp"].is_null(), "{remote}");
    let line = veiled.wait_for(|line| line["hosts"].as_array().is_some_and(|hosts| !hosts.is_empty()));
    assert!(!line.to_string().contains("192.0.2."), "{line}");
    let (code, last) = open.end();
    assert_eq!(code, Some(0));
    assert!(samples(&last, "192.0.2.2") >= 100, "{last}");
}

#[test]
fn what_is_lacking_is_told() {
    let output = cede().args(["meter", "-i", "no-such-interface"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains("there are: "), "{told}");
    let output = cede().args(["meter", "-i", "lo", "--ui"]).stdout(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
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
