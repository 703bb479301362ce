//! The interface for C, used from C: `tests/interface.c` says what holds, and `examples/copy.c` copies.

#![cfg(target_os = "linux")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// A compiler of C, which the workspace's other crates need to be built, and what it is told.
fn compile(source: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = Path::new(source).file_stem().unwrap().to_str().unwrap();
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{name}"));
    let libraries = env::current_exe().unwrap().parent().unwrap().to_owned();
    let status = Command::new(env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-D_POSIX_C_SOURCE=200809L",
            "-O1",
            "-pthread",
            "-I",
        ])
        .arg(package.join("include"))
        .arg(package.join(source))
        .arg("-L")
        .arg(&libraries)
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .args(["-lcede_c", "-o"])
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success(), "{source} does not compile");
    program
}

#[test]
fn what_the_header_promises_holds() {
    let output = Command::new(compile("tests/interface.c")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout, b"all holds\n", "{said}");
}

#[test]
fn a_name_is_looked_up_within_the_time_of_the_call() {
    let output = Command::new(compile("tests/slow_names.c")).output().unwrap();
    assert_eq!(output.stdout, b"in time\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_function_of_the_header_is_there_and_no_other() {
    let header = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/cede.h")).unwrap();
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let names = |text: &str, before: &str| {
        let mut names: Vec<String> = text
            .lines()
            .filter(|line| line.starts_with(before) || before.is_empty())
            .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next().map(str::to_owned))
            .filter(|name| name.starts_with("cede_"))
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let declared: Vec<String> =
        names(&header.lines().filter(|line| line.ends_with(");")).collect::<Vec<_>>().join("\n"), "");
    let defined = names(&source.replace("pub unsafe extern", "pub extern"), "pub extern \"C\" fn");
    assert!(declared.len() > 10);
    assert_eq!(declared, defined);
}

#[test]
fn the_example_copies() {
    let copy = compile("examples/copy.c");
    // Nobody who asks for any port is given one so low.
    let mut ports = (10_000 + (std::process::id() % 20_000) as u16..).take(1_000);
    let is_free = |port: &u16| std::net::UdpSocket::bind(("127.0.0.1", *port)).is_ok();
    let address = format!("127.0.0.1:{}", ports.find(is_free).expect("a port is free"));
    let octets: Vec<u8> = (0..1_000_000_u32).map(|k| (k.wrapping_mul(k) >> 7) as u8).collect();
    let listening = Command::new(&copy)
        .args(["listen", &address])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    // It may not listen yet; what nobody was there for is refused at once.
    loop {
        let mut sending = Command::new(&copy)
            .args(["send", &address])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = sending.stdin.take().unwrap();
        let given = octets.clone();
        let writing = thread::spawn(move || drop(stdin.write_all(&given)));
        let output = sending.wait_with_output().unwrap();
        writing.join().unwrap();
        if output.status.success() {
            break;
        }
        assert!(Instant::now() < deadline, "{}", String::from_utf8_lossy(&output.stderr));
        thread::sleep(Duration::from_millis(50));
    }
    let output = listening.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == octets, "{} octets", output.stdout.len());
}
