//! `cede torrent daemon`, with somebody to fetch from and somebody who gives orders.

use super::{Folder, Running};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub const QUIET: [&str; 7] = ["--no-dht", "--no-lsd", "--no-port-mapping", "-p", "0", "-B", "127.0.0.1"];
/// Whatever is waited for comes sooner, unless it never does.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A seed of a torrent in a folder, with options, and where it is called.
pub fn seeding(folder: &Folder, words: &[&str]) -> (Running, String) {
    let mut seed = folder.start(&[&["torrent", "seed"], words, &QUIET].concat());
    let port = seed.says("port ").rsplit(' ').next().unwrap().trim().to_owned();
    (seed, format!("127.0.0.1:{port}"))
}

/// A folder for all, and a seed of `film` in it.
pub struct Place {
    pub folder: Folder,
    pub content: Vec<u8>,
    pub seed: Running,
    pub peer: String,
}

impl Place {
    pub fn new(name: &str, bytes: usize) -> Self {
        let folder = Folder::new(name);
        let content = folder.write_pattern("film", bytes);
        for inner in ["out", "other"] {
            fs::create_dir(folder.path(inner)).unwrap();
        }
        folder.cede(&["torrent", "make", "film", "-l", "16KiB"]).exits(0);
        let (seed, peer) = seeding(&folder, &["film.torrent"]);
        Self { folder, content, seed, peer }
    }

    /// Another seed in place of the one that there was.
    pub fn reseed(&mut self, words: &[&str]) {
        (self.seed, self.peer) = seeding(&self.folder, words);
    }

    pub fn daemon(&self, more: &[&str]) -> Daemon {
        let words = ["torrent", "daemon", "-o", "out", "--state", "state", "--rpc", "127.0.0.1:0"];
        let peer = ["--peer", &self.peer];
        let mut running = self.folder.start(&[&words[..], &peer, &QUIET, more].concat());
        let line = running.says("takes orders at http://");
        let at = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        Daemon { running, at, session: String::new() }
    }

    pub fn torrent(&self) -> String {
        self.folder.path("film.torrent").to_str().unwrap().to_owned()
    }

    pub fn link(&self) -> String {
        let shown = self.folder.cede(&["torrent", "show", "film.torrent", "--json"]).json();
        shown["magnet"].as_str().unwrap().to_owned()
    }
}

pub struct Daemon {
    pub running: Running,
    pub at: String,
    pub session: String,
}

/// An answer: the status, the head, and the body.
pub type Answer = (u16, String, String);

impl Daemon {
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.at) };
        let head = format!("{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{headers}");
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
    }

    /// Gives an order, with the number that an earlier answer has told.
    pub fn post(&mut self, body: &str) -> Value {
        for _ in 0..2 {
            let headers = format!("X-Transmission-Session-Id: {}\r\n", self.session);
            let (status, head, answer) = self.ask("POST", "/transmission/rpc", &headers, body);
            if status == 200 {
                return serde_json::from_str(&answer).unwrap();
            }
            assert_eq!(status, 409, "{answer}");
            let told = head.split("x-transmission-session-id: ").nth(1).unwrap();
            self.session = told.split("\r\n").next().unwrap().to_owned();
        }
        panic!("the number that it tells is not taken");
    }

    pub fn order(&mut self, method: &str, arguments: &Value) -> Value {
        let answer = self.post(&json!({ "method": method, "arguments": arguments, "tag": 7 }).to_string());
        assert_eq!((&answer["result"], &answer["tag"]), (&json!("success"), &json!(7)), "{method}: {answer}");
        answer["arguments"].clone()
    }

    pub fn refused(&mut self, method: &str, arguments: &Value) -> String {
        let answer = self.post(&json!({ "method": method, "arguments": arguments }).to_string());
        let result = answer["result"].as_str().unwrap().to_owned();
        assert_ne!(result, "success", "{method} {arguments}");
        result
    }

    pub fn add(&mut self, filename: &str, more: &Value) -> u64 {
        let mut arguments = more.clone();
        arguments["filename"] = filename.into();
        self.order("torrent-add", &arguments)["torrent-added"]["id"].as_u64().unwrap()
    }

    pub fn torrents(&mut self) -> Vec<Value> {
        let fields = [
            "id",
            "name",
            "status",
            "percentDone",
            "leftUntilDone",
            "sizeWhenDone",
            "haveValid",
            "error",
            "errorString",
            "downloadedEver",
            "uploadedEver",
            "labels",
            "doneDate",
            "isFinished",
            "files",
            "wanted",
            "peers",
            "hashString",
            "rateDownload",
            "downloadDir",
        ];
        self.order("torrent-get", &json!({ "fields": fields }))["torrents"].as_array().unwrap().clone()
    }

    /// Waits until the only torrent is such a one.
    pub fn until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let all = self.torrents();
            if let [torrent] = &all[..]
                && is_so(torrent)
            {
                return torrent.clone();
            }
            assert!(began.elapsed() < PATIENCE, "not {what}: {all:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until all that is wanted of the only torrent is there, and on the disk.
    pub fn until_there(&mut self) -> Value {
        self.until("there", |it| it["status"] == GIVES && it["leftUntilDone"] == 0)
    }

    /// Takes away what there is, its files too.
    pub fn delete_all(&mut self) {
        let ids: Vec<Value> = self.torrents().iter().map(|it| it["id"].clone()).collect();
        self.order("torrent-remove", &json!({ "ids": ids, "delete-local-data": true }));
    }

    pub fn until_none(&mut self) {
        let began = Instant::now();
        while !self.torrents().is_empty() {
            assert!(began.elapsed() < PATIENCE);
        }
    }
}

pub const STOPPED: u64 = 0;
pub const FETCHES: u64 = 4;
pub const GIVES: u64 = 6;
