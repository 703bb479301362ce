//! Transfers between ours and other clients, both directions, over TCP and uTP, in the clear and enciphered, by torrent file
//! and by magnet link; aria2 as the seed. What is not installed is skipped aloud. `CEDE_UPDATE=1` writes docs/interop-bittorrent.md.

mod support;

use cede_bt::Disposition;
use cede_bt::magnet::Magnet;
use cede_bt::metadata::Wanted;
use cede_bt::metainfo::{Info, Metainfo, Writer};
use cede_bt::tracker::book::Limits;
use cede_torrent::magnet::{Seeker, fetch};
use cede_torrent::server::Tracker;
use cede_torrent::session::{Choices, Encryption};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{LIMIT, Member, Scratch, choices, run};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/libtorrent_peer.py");
const BYTES: usize = 1_500_000;

/// The Python that has libtorrent: of the environment that `./test` makes, or the system's.
fn python() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let beside = exe.ancestors().map(|folder| folder.join("interop-venv/bin/python"));
    let named = std::env::var_os("CEDE_INTEROP_VENV").map(|venv| PathBuf::from(venv).join("bin/python"));
    let has_it = |python: &PathBuf| {
        let mut command = std::process::Command::new(python);
        let status = command.args(["-c", "import libtorrent"]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    named.into_iter().chain(beside).chain([PathBuf::from("/usr/bin/python3")]).find(has_it)
}

fn version_of(program: &str, args: &[&str]) -> Option<String> {
    let output = std::process::Command::new(program).args(args).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned())
}

/// A torrent with a torrent file, and its content.
struct Torrent {
    info: Arc<Info>,
    content: Vec<u8>,
    scratch: Scratch,
}

impl Torrent {
    fn new(tracker: Option<String>) -> Self {
        let (info, content) = support::torrent(&[BYTES / 3, BYTES - BYTES / 3]);
        let scratch = Scratch::new();
        let writer = Writer {
            name: info.name.clone(),
            piece_length: info.piece_length,
            pieces: info.pieces.clone(),
            files: info.files.clone(),
            trackers: tracker.into_iter().map(|url| vec![url]).collect(),
            ..Writer::default()
        };
        fs::write(scratch.0.join("t.torrent"), writer.encode()).unwrap();
        let info = Arc::new(Metainfo::parse(&writer.encode()).unwrap().info);
        Self { info, content, scratch }
    }

    fn file(&self) -> String {
        self.scratch.0.join("t.torrent").display().to_string()
    }

    fn magnet(&self) -> String {
        Magnet { hash_v1: Some(self.info.hash_v1), ..Magnet::default() }.to_string()
    }

    /// Puts the content where a client expects it.
    fn put(&self) {
        fs::create_dir_all(self.scratch.0.join("t")).unwrap();
        for (file, octets) in self.parts() {
            fs::write(file, octets).unwrap();
        }
    }

    fn parts(&self) -> impl Iterator<Item = (PathBuf, &[u8])> {
        self.info.files.iter().map(|file| {
            let (start, end) = (file.offset as usize, (file.offset + file.length) as usize);
            (self.scratch.0.join(file.path.join("/")), &self.content[start..end])
        })
    }

    /// Other clients say that they are done before all of it is in the file.
    fn assert_there(&self) {
        let began = Instant::now();
        for (file, octets) in self.parts() {
            while fs::read(&file).map_or(true, |there| there != octets) {
                assert!(began.elapsed() < LIMIT, "{} is not what was sent", file.display());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// A libtorrent session.
struct Libtorrent {
    port: u16,
    lines: Lines<BufReader<ChildStdout>>,
    _input: ChildStdin,
    _child: Child,
}

impl Libtorrent {
    async fn start(python: &PathBuf, torrent: &Torrent, case: &Case, peer: &str) -> Self {
        let (role, transport) = (if case.is_theirs { "seed" } else { "leech" }, case.transport);
        let what = if case.by_magnet && !case.is_theirs { torrent.magnet() } else { torrent.file() };
        let folder = torrent.scratch.0.display().to_string();
        let encryption = if case.is_enciphered { "enciphered" } else { "plain" };
        let mut command = Command::new(python);
        command.args([SCRIPT, role, &what, &folder, transport, encryption, peer]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let input = child.stdin.take().unwrap();
        let mut this = Self { port: 0, lines, _input: input, _child: child };
        let line = this.until("port").await;
        this.port = line.split(' ').nth(1).unwrap().parse().unwrap();
        this
    }

    async fn until(&mut self, word: &str) -> String {
        let reading = async {
            loop {
                let line = self.lines.next_line().await.unwrap().expect("libtorrent has ended");
                if line.starts_with(word) {
                    return line;
                }
            }
        };
        tokio::time::timeout(LIMIT, reading).await.unwrap_or_else(|_| panic!("no {word} from libtorrent"))
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    /// The other client has the content.
    is_theirs: bool,
    transport: &'static str,
    is_enciphered: bool,
    by_magnet: bool,
}

impl Case {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for is_theirs in [true, false] {
            for transport in ["tcp", "utp"] {
                for (is_enciphered, by_magnet) in [(false, false), (true, false), (false, true)] {
                    all.push(Self { is_theirs, transport, is_enciphered, by_magnet });
                }
            }
        }
        all
    }

    fn choices(self) -> Choices {
        let encryption = if self.is_enciphered { Encryption::Require } else { Encryption::Off };
        Choices { encryption, ..choices(1, if self.transport == "tcp" { 5 } else { 10 }) }
    }

    fn row(self, client: &str) -> String {
        let way = if self.is_theirs { "theirs to ours" } else { "ours to theirs" };
        let cipher = if self.is_enciphered { "enciphered" } else { "in the clear" };
        let by = if self.by_magnet { "magnet link" } else { "torrent file" };
        format!("| {client} | {way} | {} | {cipher} | {by} | equal |\n", self.transport)
    }
}

async fn exchange(python: &PathBuf, case: Case) {
    let torrent = Torrent::new(None);
    if case.is_theirs {
        torrent.put();
        let theirs = Libtorrent::start(python, &torrent, &case, "").await;
        let address = SocketAddr::from(([127, 0, 0, 1], theirs.port));
        let mut ours = Member::new(&torrent.info, None, &[], case.choices()).await;
        if case.by_magnet {
            follow(&torrent, case, &ours, address).await;
        }
        ours.start();
        ours.session.add_peers(&[address]);
        ours.done().await;
        assert_eq!(ours.content(torrent.content.len()), torrent.content, "{case:?}");
    } else {
        let mut ours = Member::new(&torrent.info, Some(&torrent.content), &[], case.choices()).await;
        ours.start();
        let mut theirs = Libtorrent::start(python, &torrent, &case, &ours.address.to_string()).await;
        theirs.until("complete").await;
        torrent.assert_there();
    }
}

/// The dictionary from libtorrent is the torrent's.
async fn follow(torrent: &Torrent, case: Case, ours: &Member, address: SocketAddr) {
    let seeker = Seeker {
        wanted: Wanted::V1(torrent.info.hash_v1),
        info_hash: torrent.info.info_hash(),
        peer_id: [2; 20],
        client: "cede test".to_owned(),
        disposition: Disposition(if case.transport == "tcp" { 5 } else { 10 }),
        listener: Some(ours.listener.clone()),
    };
    let (found, mut peers) = mpsc::unbounded_channel();
    found.send(vec![address]).unwrap();
    let fetched = tokio::time::timeout(LIMIT, fetch(&seeker, &mut peers)).await.unwrap().0;
    assert_eq!(fetched.as_deref(), Some(&torrent.info.raw[..]), "{case:?}");
}

/// aria2, which has the content, and ours find each other through our tracker.
async fn exchange_with_aria2() {
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let limits = Limits { interval: cede_units::Duration::from_secs(5), ..Limits::default() };
    let tracker = Tracker::bind(local, limits, Vec::new(), Box::new(|_| {})).unwrap();
    let url = format!("http://{}/announce", tracker.local_addr().unwrap());
    tokio::task::spawn_local(async move { tracker.run().await });
    let torrent = Torrent::new(Some(url.clone()));
    torrent.put();
    let mut ours = Member::new(&torrent.info, None, &[], choices(1, 5)).await;
    announce_ours(&mut ours, &torrent, url);
    ours.start();
    let mut command = Command::new("aria2c");
    command.args(["--enable-dht=false", "--bt-enable-lpd=false", "--enable-peer-exchange=false", "--quiet"]);
    command.args(["--seed-ratio=0.0", "--check-integrity=true", "--bt-tracker-interval=2"]);
    command.args(["--file-allocation=none", "--no-conf=true", "--listen-port=6991-6999", "-d"]);
    command.arg(&torrent.scratch.0).arg(torrent.file());
    let _child = command.stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    ours.done().await;
    assert_eq!(ours.content(torrent.content.len()), torrent.content);
}

/// Ours at the tracker, asked again as often as it says.
fn announce_ours(ours: &mut Member, torrent: &Torrent, url: String) {
    use cede_torrent::announce::{Amounts, Identity, Note, run};
    let (notes, mut noted) = mpsc::unbounded_channel::<Note>();
    let session = ours.session.clone();
    tokio::task::spawn_local(async move {
        while let Some(note) = noted.recv().await {
            session.add_peers(&note.result.map(|answer| answer.peers).unwrap_or_default());
        }
    });
    let (_, closed) = mpsc::unbounded_channel();
    let wishes = std::mem::replace(&mut ours.wishes, closed);
    let port = ours.address.port();
    let identity = Identity { info_hash: torrent.info.info_hash(), peer_id: [1; 20], port, key: 1 };
    let amounts = || Amounts { left: 1, ..Amounts::default() };
    tokio::task::spawn_local(run(vec![vec![url]], identity, amounts, wishes, notes));
}

const HEAD: &str = "# BitTorrent with other clients\n\n\
Each row is a transfer of 1.5 MB between `cede-torrent` and another client, on the loopback; equal means that all octets are.\n\
Made by `CEDE_UPDATE=1 cargo test -p cede-torrent --test interop`, which also runs in the test suite.\n\n\
| client | way | transport | encryption | known by | content |\n|---|---|---|---|---|---|\n";

#[test]
fn other_clients_and_ours_exchange_torrents() {
    let mut table = HEAD.to_owned();
    match python() {
        Some(python) => {
            let script = "import libtorrent; print(libtorrent.version)";
            let version = version_of(&python.display().to_string(), &["-c", script]).unwrap_or_default();
            for case in Case::all() {
                println!("libtorrent: {case:?}");
                run(exchange(&python, case));
                table += &case.row(&format!("libtorrent {version}"));
            }
        }
        None => println!("SKIPPED: libtorrent is not installed (./test installs it)"),
    }
    match version_of("aria2c", &["--version"]) {
        Some(version) => {
            let version = version.replace("version ", "");
            run(exchange_with_aria2());
            let case = Case { is_theirs: true, transport: "tcp", is_enciphered: false, by_magnet: false };
            table += &case.row(&version);
        }
        None => println!("SKIPPED: aria2 is not installed (./test installs it)"),
    }
    if std::env::var_os("CEDE_UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/interop-bittorrent.md");
        fs::write(path, table).unwrap();
    }
}
