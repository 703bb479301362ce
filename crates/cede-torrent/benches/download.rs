//! A gigabyte from a seed to a leecher over the loopback, default socket buffers, beside what is installed of libtorrent and
//! aria2, in one run: `cargo bench -p cede-torrent --bench download [-- FILTER]`. `CEDE_BENCH_BYTES` takes another size,
//! `CEDE_BENCH_FOLDER` another place than memory.
//!
//! Each peer is a process of its own; its processor time and peak memory are read from /proc while it runs, from the moment that
//! both are ready to the moment that the leecher has everything. Transmission is left out: it asks for blocks in pulses of half
//! a second, and takes minutes.

use cede_bt::metainfo::{File, Info, Metainfo, Writer, sha1};
use cede_bt::tracker::book::Limits;
use cede_bt::{Disposition, Profile};
use cede_real::StreamConfig;
use cede_torrent::server::{Entry, Tracker};
use cede_torrent::session::{Choices, Encryption, Listener, Session};
use cede_torrent::storage::Storage;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const PIECE: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(300);
const LIBTORRENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/libtorrent_peer.py");
const ROLE: &str = "CEDE_BENCH_ROLE";

fn bytes() -> usize {
    std::env::var("CEDE_BENCH_BYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000_000)
}

/// What is exchanged: a folder with a torrent file, and the content below `seed`.
struct Subject {
    folder: PathBuf,
}

impl Subject {
    fn make(tracker: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let usual = || if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let base = std::env::var_os("CEDE_BENCH_FOLDER").map_or_else(usual, PathBuf::from);
        let folder = base.join(format!("cede-download-{}", std::process::id()));
        fs::create_dir_all(folder.join("seed")).unwrap();
        let mut random = cede_units::Stream::named(1, "content");
        let mut file = fs::File::create(folder.join("seed/content")).unwrap();
        let (mut pieces, mut left) = (Vec::new(), bytes());
        while left > 0 {
            let piece: Vec<u8> = (0..PIECE / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
            let piece = &piece[..left.min(PIECE)];
            file.write_all(piece).unwrap();
            pieces.extend(sha1(piece));
            left -= piece.len();
        }
        let length = bytes() as u64;
        let content = File {
            path: vec!["content".to_owned()],
            length,
            offset: 0,
            is_padding: false,
            is_executable: false,
        };
        let trackers = vec![vec![tracker.to_owned()]];
        let writer = Writer {
            name: "content".to_owned(),
            piece_length: PIECE as u32,
            pieces,
            files: vec![content],
            trackers,
            ..Writer::default()
        };
        fs::write(folder.join("content.torrent"), writer.encode()).unwrap();
        Self { folder }
    }

    fn torrent(&self) -> PathBuf {
        self.folder.join("content.torrent")
    }

    /// An empty folder. As many octets as the content has are written there and removed: where the machine is a virtual one,
    /// whoever is first to touch a page of its memory waits for the host, three times as long as for all else together.
    fn fresh(&self) -> PathBuf {
        let folder = self.folder.join("leech");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let touched = folder.join("touched");
        let mut file = fs::File::create(&touched).unwrap();
        let octets = vec![0; PIECE];
        (0..bytes().div_ceil(PIECE)).for_each(|_| file.write_all(&octets).unwrap());
        fs::remove_file(touched).unwrap();
        folder
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A process that is watched, and ended when dropped.
struct Peer {
    child: Child,
    last: Usage,
}

#[derive(Clone, Copy, Default)]
struct Usage {
    cpu_s: f64,
    peak_kib: u64,
}

impl Peer {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), last: Usage::default() }
    }

    /// What it has used; after its end, what it had used when it was looked at last.
    fn usage(&mut self) -> Usage {
        let file = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).ok();
        let ticks = file("stat").and_then(|text| {
            let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
            Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
        });
        let peak = file("status").and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("VmHWM:"))?.to_owned();
            line.split_whitespace().nth(1)?.parse().ok()
        });
        if let (Some(ticks), Some(peak_kib)) = (ticks, peak) {
            // Linux counts hundredths of a second for /proc.
            self.last = Usage { cpu_s: ticks as f64 / 100.0, peak_kib };
        }
        self.last
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone, Debug)]
enum Stack {
    Ours,
    Libtorrent(PathBuf),
    Aria2,
}

struct Entrant {
    label: String,
    stack: Stack,
    is_utp: bool,
}

fn entrants() -> Vec<Entrant> {
    let mut all = Vec::new();
    let mut enter = |label: &str, stack: Stack, is_utp: bool| {
        let label = format!("{label} {}", if is_utp { "uTP" } else { "TCP" });
        all.push(Entrant { label, stack, is_utp });
    };
    for is_utp in [false, true] {
        enter("cede", Stack::Ours, is_utp);
    }
    let exe = std::env::current_exe().unwrap_or_default();
    let beside = exe.ancestors().map(|folder| folder.join("interop-venv/bin/python"));
    let named = std::env::var_os("CEDE_INTEROP_VENV").map(|venv| PathBuf::from(venv).join("bin/python"));
    let pypi = named.into_iter().chain(beside).find_map(|python| Some((libtorrent(&python)?, python)));
    let debian = PathBuf::from("/usr/bin/python3");
    for found in [pypi, libtorrent(&debian).map(|version| (version, debian))] {
        match found {
            Some((version, python)) => {
                for is_utp in [false, true] {
                    enter(&format!("libtorrent {version}"), Stack::Libtorrent(python.clone()), is_utp);
                }
            }
            None => println!("SKIPPED: a libtorrent that is not installed (./test installs them)"),
        }
    }
    match Command::new("aria2c").arg("--version").output() {
        Ok(_) => enter("aria2", Stack::Aria2, false),
        Err(_) => println!("SKIPPED: aria2 is not installed (./test installs it)"),
    }
    all
}

fn libtorrent(python: &Path) -> Option<String> {
    let mut command = Command::new(python);
    let output = command.args(["-c", "import libtorrent; print(libtorrent.version)"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Entrant {
    fn command(&self, subject: &Subject, folder: &Path, port: u16, is_seed: bool) -> Command {
        let role = if is_seed { "seed" } else { "leech" };
        let yes = |is_so: bool| if is_so { "yes" } else { "no" };
        let address = format!("127.0.0.1:{port}");
        match &self.stack {
            Stack::Ours => {
                let mut command = Command::new(std::env::current_exe().unwrap());
                let torrent = subject.torrent().display().to_string();
                let told =
                    [role, &torrent, &folder.display().to_string(), yes(self.is_utp), &port.to_string()];
                command.env(ROLE, told.join("\n"));
                command
            }
            Stack::Libtorrent(python) => {
                let mut command = Command::new(python);
                command.args([LIBTORRENT, role]).arg(subject.torrent()).arg(folder);
                command.args([yes(!self.is_utp), yes(self.is_utp), "plain", &address]);
                command
            }
            Stack::Aria2 => {
                let mut command = Command::new("aria2c");
                command.args(["--enable-dht=false", "--bt-enable-lpd=false", "--enable-peer-exchange=false"]);
                command.args([
                    "--no-conf=true",
                    "--quiet",
                    "--file-allocation=none",
                    "--bt-tracker-interval=1",
                ]);
                command.arg(if is_seed { "--seed-ratio=0.0" } else { "--seed-time=0" });
                command.arg(format!("--check-integrity={is_seed}")).arg(format!("--listen-port={port}"));
                command.arg("-d").arg(folder).arg(subject.torrent());
                command
            }
        }
    }

    /// One download: seconds, and what each end used.
    fn run(&self, subject: &Subject, seeds: &mpsc::Receiver<u16>) -> Option<(f64, Usage, Usage)> {
        let ports = [free_port(), free_port()];
        let mut seed = Peer::start(self.command(subject, &subject.folder.join("seed"), ports[0], true));
        while seeds.recv_timeout(PATIENCE).ok()? != ports[0] {}
        let before = seed.usage();
        let folder = subject.fresh();
        let mut leech = Peer::start(self.command(subject, &folder, ports[1], false));
        let lines = BufReader::new(leech.child.stdout.take()?);
        let (said, heard) = mpsc::channel();
        std::thread::spawn(move || {
            // "complete", or the end of the process.
            let _ = lines.lines().map_while(Result::ok).find(|line| line.contains("complete"));
            let _ = said.send(());
        });
        let content = folder.join("content");
        let mut began = None;
        let limit = Instant::now() + PATIENCE;
        while heard.recv_timeout(Duration::from_millis(10)).is_err() {
            leech.usage();
            if began.is_none() && content.exists() {
                began = Some(Instant::now());
            }
            if Instant::now() > limit {
                return None;
            }
        }
        let took = began?.elapsed().as_secs_f64();
        let (mut sent, received) = (seed.usage(), leech.usage());
        sent.cpu_s -= before.cpu_s;
        (fs::metadata(&content).ok()?.len() == bytes() as u64).then_some((took, sent, received))
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// One end of ours.
fn peer(told: &str) {
    let words: Vec<&str> = told.split('\n').collect();
    let (is_seed, folder, is_utp) = (words[0] == "seed", Path::new(words[2]), words[3] == "yes");
    let metainfo = Metainfo::parse(&fs::read(words[1]).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let port = words[4].parse().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, take_part(metainfo, folder, (is_seed, is_utp, port)));
}

async fn take_part(metainfo: Metainfo, folder: &Path, (is_seed, is_utp, port): (bool, bool, u16)) {
    use cede_torrent::announce::{Amounts, Identity, run};
    use cede_torrent::origin::Origin;
    let info: Arc<Info> = Arc::new(metainfo.info);
    let storage = Arc::new(Storage::new(folder, &info, &[]).unwrap());
    let disposition = if is_utp { Disposition::UTP } else { Disposition::TCP };
    let local = "127.0.0.1".parse().unwrap();
    let listener =
        Rc::new(Listener::bind(Some(local), port, disposition, StreamConfig::default()).await.unwrap());
    let peer_id = cede_torrent::chance().unwrap();
    let choices = Choices {
        profile: Profile::UTORRENT3,
        disposition,
        upload_limit: None,
        download_limit: None,
        tcp_yields: None,
        encryption: Encryption::Off,
        pex: false,
        peer_id,
        client: "cede".to_owned(),
        seed: port.into(),
    };
    let whole = vec![is_seed; info.piece_count() as usize];
    let (session, wishes, mut driver) =
        Session::new(&info, &storage, &whole, Some(listener), choices).unwrap();
    let (notes, mut noted) = tokio::sync::mpsc::unbounded_channel::<cede_torrent::announce::Note>();
    let identity = Identity { info_hash: info.info_hash(), peer_id, port, key: 1, origin: Origin::default() };
    let left = if is_seed { 0 } else { info.total_bytes };
    let amounts = move || Amounts { left, ..Amounts::default() };
    let tiers = metainfo.trackers.into_iter().map(Into::into).collect();
    tokio::task::spawn_local(run(tiers, identity, amounts, wishes, notes));
    tokio::task::spawn_local(async move { driver.run().await.unwrap() });
    let asked = session.clone();
    tokio::task::spawn_local(async move {
        while let Some(note) = noted.recv().await {
            asked.add_peers(&note.result.map(|answer| answer.peers).unwrap_or_default());
        }
    });
    while is_seed || !session.is_done() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("complete");
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await;
}

/// A tracker on a thread of its own, and the ports of seeds that it hears of.
fn tracker() -> (String, mpsc::Receiver<u16>) {
    let (heard, seeds) = mpsc::channel();
    let (bound, url) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let limits = Limits { interval: cede_units::Duration::from_secs(5), ..Limits::default() };
            let log = Box::new(move |entry: &Entry| {
                if let Some(announce) = entry.announce.as_ref().filter(|announce| announce.left == Some(0)) {
                    let _ = heard.send(announce.port);
                }
            });
            let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
            let tracker = Tracker::bind(local, limits, Vec::new(), log).unwrap();
            bound.send(format!("http://{}/announce", tracker.local_addr().unwrap())).unwrap();
            tracker.run().await;
        });
    });
    (url.recv().unwrap(), seeds)
}

fn main() {
    if let Ok(told) = std::env::var(ROLE) {
        return peer(&told);
    }
    let filter = std::env::args().skip(1).find(|text| !text.starts_with('-')).unwrap_or_default();
    let (url, seeds) = tracker();
    let subject = Subject::make(&url);
    let gigabytes = bytes() as f64 / 1e9;
    println!(
        "{:<26} {:>7} {:>9} {:>9} {:>9} {:>12} {:>12}",
        "", "MB/s", "CPU s/GB", "seed", "leech", "seed MiB", "leech MiB"
    );
    for entrant in entrants().iter().filter(|entrant| entrant.label.contains(&filter)) {
        let Some((took, seed, leech)) = entrant.run(&subject, &seeds) else {
            println!("{:<26} did not finish within {PATIENCE:?}", entrant.label);
            continue;
        };
        let per_gb = |usage: Usage| usage.cpu_s / gigabytes;
        println!(
            "{:<26} {:>7.0} {:>9.2} {:>9.2} {:>9.2} {:>12.1} {:>12.1}",
            entrant.label,
            bytes() as f64 / 1e6 / took,
            per_gb(seed) + per_gb(leech),
            per_gb(seed),
            per_gb(leech),
            seed.peak_kib as f64 / 1024.0,
            leech.peak_kib as f64 / 1024.0
        );
    }
}
