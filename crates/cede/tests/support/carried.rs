//! What the tests of the verbs that carry data share: servers, proxies, and who speaks to them.

use super::{Folder, PATIENCE, Running, pattern};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The port that it says it waits at.
pub fn port_of(program: &mut Running) -> u16 {
    let line = program.says("waiting ");
    let digits =
        |word: &str| word.trim_end_matches(':').rsplit(':').next().and_then(|port| port.parse().ok());
    line.split(' ').find_map(digits).unwrap_or_else(|| panic!("no port in \"{line}\""))
}

/// A server on the loopback whose words go to standard error.
pub fn server(place: &Folder, more: &[&str]) -> (Running, String) {
    let mut serve = place.start(&[&["serve", "-p", "0", "--bind", "127.0.0.1", "--json"], more].concat());
    let port = port_of(&mut serve);
    (serve, format!("127.0.0.1:{port}"))
}

/// Waits until a part has grown to so much.
pub fn wait_for(part: &Path, bytes: u64) {
    let until = Instant::now() + PATIENCE;
    while fs::metadata(part).map_or(0, |found| found.len()) < bytes {
        assert!(Instant::now() < until, "{} does not grow", part.display());
        thread::sleep(Duration::from_millis(10));
    }
}

/// Options that let a file take its time: a megabyte in half a second.
pub const SLOWLY: [&str; 4] = ["-C", "fixed", "-s", "rate=16Mbit/s"];

/// A TCP server that does this with each connection.
pub fn tcp_server(serve: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || serve(connection));
        }
    });
    port
}

/// Sends back what comes, after its end: what is not half-closed never comes back.
pub fn echo(mut connection: TcpStream) {
    let mut octets = Vec::new();
    if connection.read_to_end(&mut octets).is_ok() {
        let _ = connection.write_all(&octets);
    }
}

/// A proxy in front of a TCP server, and where it takes uTP streams.
pub fn proxy_exit(place: &Folder, server: u16, more: &[&str]) -> (Running, String) {
    let to = format!("127.0.0.1:{server}");
    let arguments = [&["proxy", "--utp-listen", "127.0.0.1:0", "--to", &to], more].concat();
    let mut exit = place.start(&arguments);
    let line = exit.says("go over TCP to");
    let between = line.split(' ').find(|word| word.starts_with("127.0.0.1:"));
    (exit, between.unwrap_or_else(|| panic!("{line}")).to_owned())
}

/// The proxy before it, and the port where it takes TCP connections.
pub fn proxy_entrance(place: &Folder, to: &str, more: &[&str]) -> (Running, u16) {
    let mut entrance = place.start(&[&["proxy", "--listen", "0", "--to", to], more].concat());
    let line = entrance.says("go over uTP to");
    let port = line.split(' ').find_map(|word| word.strip_prefix("127.0.0.1:")?.parse().ok());
    (entrance, port.unwrap_or_else(|| panic!("{line}")))
}

/// Both, with more options of the one near the server and of the other.
pub fn proxies(place: &Folder, server: u16, [far, near]: [&[&str]; 2]) -> (Running, Running, u16) {
    let (exit, between) = proxy_exit(place, server, far);
    let (entrance, port) = proxy_entrance(place, &between, near);
    (exit, entrance, port)
}

pub fn connect(port: u16) -> TcpStream {
    let connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection
}

/// Twenty connections at once to an [`echo`] behind this port: of 100,000 octets, 100,001 and so on, which come back.
pub fn twenty_come_back(port: u16) {
    thread::scope(|scope| {
        for number in 0..20_usize {
            scope.spawn(move || {
                let octets = pattern(100_000 + number);
                let mut connection = connect(port);
                connection.write_all(&octets).unwrap();
                connection.shutdown(Shutdown::Write).unwrap();
                let mut back = Vec::new();
                connection.read_to_end(&mut back).unwrap();
                assert!(back == octets, "connection {number}");
            });
        }
    });
}
