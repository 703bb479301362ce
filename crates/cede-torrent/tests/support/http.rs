//! A small server of HTTP for tests: keeps connections, knows ranges, and does what it is told in place of what it should.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What came.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    /// The octets that it asks for.
    pub range: Option<Range<usize>>,
    /// How many requests came before it, over all connections.
    pub number: usize,
    /// Over which connection.
    pub connection: usize,
    /// What it says of who asks.
    pub authorization: Option<String>,
}

/// What goes back: a head without its end, and what follows.
pub struct Answer {
    pub head: String,
    pub body: Vec<u8>,
    /// Nothing more comes over the connection, and it stays open for so long.
    pub stays: Option<Duration>,
    /// The body never ends.
    pub is_endless: bool,
}

impl Answer {
    pub fn new(status: &str, headers: &str, body: &[u8]) -> Self {
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n", body.len());
        Self { head, body: body.to_vec(), stays: None, is_endless: false }
    }

    pub fn status(status: &str) -> Self {
        Self::new(status, "", b"")
    }
}

/// As a server should: whole, or in part.
pub fn honest(content: &[u8], request: &Request) -> Answer {
    match request.range.clone() {
        Some(range) if range.start < content.len() => {
            let range = range.start..range.end.min(content.len());
            let told =
                format!("Content-Range: bytes {}-{}/{}\r\n", range.start, range.end - 1, content.len());
            Answer::new("206 Partial Content", &told, &content[range])
        }
        Some(_) => Answer::status("416 Range Not Satisfiable"),
        None => Answer::new("200 OK", "", content),
    }
}

/// A server that runs until the process ends.
pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (requests, answer) = (seen.clone(), Arc::new(answer));
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().flatten().enumerate() {
                let (requests, answer) = (requests.clone(), answer.clone());
                thread::spawn(move || converse(&stream, connection, &requests, &*answer));
            }
        });
        Self { address, seen }
    }

    /// One that has these files.
    pub fn of(files: HashMap<String, Vec<u8>>) -> Self {
        Self::start(move |request| match files.get(&request.path) {
            Some(content) => honest(content, request),
            None => Answer::status("404 Not Found"),
        })
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn converse(
    mut stream: &TcpStream,
    connection: usize,
    seen: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request) -> Answer,
) {
    let mut lines = BufReader::new(stream);
    while let Some(request) = hear(&mut lines, connection, seen) {
        let Answer { head, body, stays, is_endless } = answer(&request);
        if stream.write_all(format!("{head}\r\n").as_bytes()).and_then(|()| stream.write_all(&body)).is_err()
        {
            return;
        }
        while is_endless && stream.write_all(&[7; 4096]).is_ok() {}
        if let Some(stays) = stays {
            thread::sleep(stays);
            return;
        }
    }
}

fn hear(lines: &mut BufReader<&TcpStream>, connection: usize, seen: &Mutex<Vec<Request>>) -> Option<Request> {
    let mut next = || {
        let mut line = String::new();
        let n = lines.read_line(&mut line).ok()?;
        (n > 0).then(|| line.trim_end().to_owned())
    };
    let first = next()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let (mut range, mut authorization) = (None, None);
    loop {
        let line = next()?;
        if line.is_empty() {
            break;
        }
        if let Some((_, told)) =
            line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            authorization = Some(told.to_owned());
        }
        let line = line.to_ascii_lowercase();
        if let Some(told) = line.strip_prefix("range: bytes=") {
            let (from, to) = told.split_once('-')?;
            range = Some(from.parse().ok()?..to.parse::<usize>().ok()? + 1);
        }
    }
    let mut seen = seen.lock().unwrap();
    let request = Request { path, range, number: seen.len(), connection, authorization };
    seen.push(request.clone());
    Some(request)
}
