//! What the tests of the program share: folders that are gone afterwards, and programs that do not outlive their test.
#![allow(dead_code, reason = "each file of tests uses its part")]

pub mod captures;
pub mod carried;
pub mod daemon;
pub mod nets;

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// What takes longer has failed: many times what it takes on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A scenario: two flows for three seconds.
pub const SHORT: &str = r#"name = "short"
duration = "3 s"
[link]
rate = "5 Mbit/s"
delay = "10 ms"
buffer = "100 ms"
[[flow]]
name = "scavenger"
controller = "ledbat"
[[flow]]
name = "other"
protocol = "tcp"
controller = "reno"
start = "1 s"
"#;

/// Whether a program is installed.
pub fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// The same, said aloud where it is not.
pub fn has(program: &str) -> bool {
    let has = is_there(program);
    if !has {
        println!("SKIPPED: no {program}");
    }
    has
}

fn imports(python: &Path, modules: &str) -> bool {
    let asked =
        Command::new(python).args(["-c", &format!("import {modules}")]).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// The Python of an environment that `./test` makes beside the build, where it has these modules.
pub fn python_beside(venv: &str, modules: &str) -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let mut beside = exe.ancestors().map(|folder| folder.join(venv).join("bin/python"));
    beside.find(|python| imports(python, modules))
}

/// A Python that has PyPI's libtorrent, in an environment that is named or in that of `./test`.
pub fn libtorrent() -> Option<PathBuf> {
    let named = std::env::var_os("CEDE_INTEROP_VENV").map(|venv| PathBuf::from(venv).join("bin/python"));
    named
        .filter(|python| imports(python, "libtorrent"))
        .or_else(|| python_beside("interop-venv", "libtorrent"))
}

/// A port of the loopback that is free, and stays so until somebody asks for it by its number: systems give those who ask for any one
/// beyond 32767.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    let mut ports = (0..1_000).map(|_| first + NEXT.fetch_add(1, Relaxed) % 2_000);
    let is_free = |port: &u16| {
        TcpListener::bind(("127.0.0.1", *port)).is_ok() && UdpSocket::bind(("127.0.0.1", *port)).is_ok()
    };
    ports.find(is_free).expect("a port is free")
}

/// An empty folder that is gone afterwards.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("{}-{name}-{}", env!("CARGO_CRATE_NAME"), std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes the folders above it, too.
    pub fn write(&self, name: &str, octets: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, octets).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// `cede` in this folder, without colours and with nothing to read.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cede"));
        command.args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command.env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1");
        command
    }

    /// Any program in this folder.
    pub fn program(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.0);
        command
    }

    /// A session of libtorrent's in this folder, with these words (`libtorrent_session.py`); it ends with its standard input.
    pub fn libtorrent(&self, python: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/libtorrent_session.py")).args(words);
        command.current_dir(&self.0).stdin(Stdio::piped());
        command
    }
}

impl Folder {
    /// A file of so many octets that repeat nowhere near.
    pub fn write_pattern(&self, name: &str, bytes: usize) -> Vec<u8> {
        let octets = pattern(bytes);
        self.write(name, &octets);
        octets
    }

    /// Begins `cede` with these arguments.
    pub fn start(&self, arguments: &[&str]) -> Running {
        self.start_reading(arguments, Stdio::null())
    }

    pub fn start_reading(&self, arguments: &[&str], stdin: Stdio) -> Running {
        Running::begin(self.command(arguments).stdin(stdin))
    }

    /// Runs `cede` to its end.
    pub fn cede(&self, arguments: &[&str]) -> Finished {
        self.start(arguments).end()
    }

    /// Runs `cede` with this on its standard input.
    pub fn cede_reading(&self, arguments: &[&str], input: &[u8]) -> Finished {
        let mut running = self.start_reading(arguments, Stdio::piped());
        running.stdin().write_all(input).unwrap();
        running.end()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Octets that repeat nowhere near, others for another number of them.
pub fn pattern(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ bytes as u64;
    let mut octets = Vec::with_capacity(bytes + 8);
    while octets.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        octets.extend(state.to_le_bytes());
    }
    octets.truncate(bytes);
    octets
}

/// The lines of a stream as they come, with their ends.
fn lines_of(stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (into, lines) = channel();
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        loop {
            let mut line = Vec::new();
            match stream.read_until(b'\n', &mut line) {
                Ok(1..) if into.send(line).is_ok() => {}
                _ => return,
            }
        }
    });
    lines
}

fn words(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// A program that runs; it does not outlive the test.
pub struct Running {
    child: Child,
    name: String,
    out: Receiver<Vec<u8>>,
    err: Receiver<Vec<u8>>,
    printed: Vec<u8>,
    said: String,
}

/// The first line that is as wanted; what came is put to `before`.
fn until(
    lines: &Receiver<Vec<u8>>,
    name: &str,
    wanted: impl Fn(&str) -> bool,
    mut before: impl FnMut(&[u8]),
) -> Option<String> {
    let end = Instant::now() + PATIENCE;
    loop {
        let line = lines.recv_timeout(end.saturating_duration_since(Instant::now())).ok()?;
        before(&line);
        let line = words(&line);
        if wanted(&line) {
            return Some(line.trim_end().to_owned());
        }
        assert!(Instant::now() < end, "{name} talks for ever");
    }
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

impl Running {
    pub fn begin(command: &mut Command) -> Self {
        let name = format!("{command:?}");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines_of(child.stdout.take().unwrap()), lines_of(child.stderr.take().unwrap()));
        Self { child, name, out, err, printed: Vec::new(), said: String::new() }
    }

    /// Waits for a line on standard error that has this in it; `None` where it says no more.
    pub fn hears(&mut self, what: &str) -> Option<String> {
        let said = &mut self.said;
        until(&self.err, &self.name, |line| line.contains(what), |line| said.push_str(&words(line)))
    }

    /// Waits for a line on standard error that has this in it.
    pub fn says(&mut self, what: &str) -> String {
        self.hears(what).unwrap_or_else(|| panic!("{}: no \"{what}\" in {}", self.name, self.said))
    }

    /// Waits for a line of JSON on standard output that has this in it.
    pub fn prints(&mut self, what: &str) -> Value {
        json(&self.line(what, |line| line.contains(what)))
    }

    /// Waits for a line of JSON on standard output that is as wanted; all lines are JSON.
    pub fn prints_such(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        json(&self.line("such line", |line| wanted(&json(line))))
    }

    fn line(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let printed = &mut self.printed;
        let line = until(&self.out, &self.name, wanted, |line| printed.extend(line));
        line.unwrap_or_else(|| panic!("{}: no \"{what}\" in {}", self.name, words(&self.printed)))
    }

    /// Waits for a line on standard output that has this in it.
    pub fn out_line(&mut self, what: &str) -> String {
        self.line(what, |line| line.contains(what))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// What Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal("-INT");
    }

    pub fn signal(&self, signal: &str) {
        let killed = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(killed.unwrap().success());
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub fn end(mut self) -> Finished {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "{} does not end; it said {}", self.name, self.said);
            thread::sleep(Duration::from_millis(10));
        };
        let mut out = std::mem::take(&mut self.printed);
        self.out.iter().for_each(|line| out.extend(line));
        self.err.iter().for_each(|line| self.said.push_str(&words(&line)));
        Finished { code: status.code(), out, err: std::mem::take(&mut self.said) }
    }
}

/// Waits until the program at its other end has taken everything out of a pipe.
#[cfg(target_os = "linux")]
pub fn until_taken(pipe: &ChildStdin) {
    let end = Instant::now() + PATIENCE;
    while rustix::io::ioctl_fionread(pipe).unwrap() > 0 {
        assert!(Instant::now() < end, "nobody reads");
        thread::sleep(Duration::from_millis(10));
    }
}

/// As on Linux, where the system does not tell: in the time that is given afterwards.
#[cfg(not(target_os = "linux"))]
pub fn until_taken(_: &ChildStdin) {}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a program left behind.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
}

impl Finished {
    pub fn of(output: Output) -> Self {
        Self { code: output.status.code(), out: output.stdout, err: words(&output.stderr) }
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", words(&self.out), self.err);
        self
    }

    /// Standard error has this in it.
    #[track_caller]
    pub fn complains(self, of: &str) -> Self {
        assert!(self.err.contains(of), "no \"{of}\" in: {}", self.err);
        self
    }

    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        json(self.text())
    }

    /// The last line of JSON on standard output.
    #[track_caller]
    pub fn last(&self) -> Value {
        json(self.text().lines().last().expect("a line"))
    }

    /// What a line of JSON on standard output tells of this event.
    #[track_caller]
    pub fn event(&self, name: &str) -> Value {
        let lines = self.text().lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut found = lines.filter(|line| line["event"] == name);
        found.next().unwrap_or_else(|| panic!("no event {name}: {}", self.text()))["data"].clone()
    }

    /// Its exit code and what it wrote.
    pub fn told(self) -> (i32, String, String) {
        (self.code.unwrap_or(-1), words(&self.out), self.err)
    }
}
