//! Other people's clients: each is started with one torrent, finds its peers through our tracker, and is ended by being dropped.

mod aria2;
mod libtorrent;
mod qbittorrent;
mod transmission;

use crate::place::Place;
use crate::torrent::Torrent;
use cede_bt::Transport;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::{Child, Command};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Libtorrent,
    Aria2,
    Transmission,
    QBittorrent,
}

/// A client that is installed here.
#[derive(Clone, Debug)]
pub struct Client {
    pub kind: Kind,
    /// Its name and version.
    pub label: String,
    /// What is run; for libtorrent the Python that has it.
    pub program: PathBuf,
}

impl Client {
    /// Those that are installed; the others are skipped aloud.
    pub fn all(place: &Place) -> Vec<Self> {
        let mut all = libtorrent::installed();
        let kinds: [(&str, &str, Kind, bool); 3] = [
            ("transmission-daemon", "Transmission", Kind::Transmission, true),
            ("qbittorrent-nox", "qBittorrent", Kind::QBittorrent, false),
            ("aria2c", "aria2", Kind::Aria2, false),
        ];
        for (program, name, kind, wants_namespace) in kinds {
            match version_of(program) {
                Some(_) if wants_namespace && !place.is_own => println!("SKIPPED: {name} needs a namespace"),
                Some(version) => {
                    all.push(Self { kind, label: format!("{name} {version}"), program: program.into() });
                }
                None => println!("SKIPPED: {name} is not installed (./test installs it)"),
            }
        }
        all
    }
}

/// The first word with a digit in front that a program says of its version.
fn version_of(program: &str) -> Option<String> {
    let mut command = std::process::Command::new(program);
    let output = command.arg("--version").env("HOME", std::env::temp_dir()).output().ok()?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    let version = text.split_whitespace().map(|word| word.trim_start_matches('v')).find(is_version)?;
    Some(version.to_owned())
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Seed,
    Leech,
}

/// What a client is to do.
pub struct Task<'a> {
    pub torrent: &'a Torrent,
    /// Where its content is or goes.
    pub folder: PathBuf,
    pub role: Role,
    pub by_magnet: bool,
    pub is_enciphered: bool,
    pub transports: Vec<Transport>,
    /// Where it waits for peers.
    pub address: SocketAddr,
    /// The network namespace that it lives in.
    pub namespace: Option<String>,
}

impl Task<'_> {
    fn uses(&self, transport: Transport) -> bool {
        self.transports.contains(&transport)
    }

    /// What it is told of the torrent. A seed has the torrent file in any case.
    fn what(&self) -> String {
        let is_link = self.by_magnet && self.role == Role::Leech;
        if is_link { self.torrent.magnet() } else { self.torrent.file() }
    }

    /// A program in the task's namespace, silent, ended when dropped.
    pub fn command(&self, program: &std::path::Path) -> Command {
        let mut command = match &self.namespace {
            Some(name) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Where a client may keep its settings.
    fn settings(&self) -> PathBuf {
        let folder = self.folder.with_extension("settings");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }
}

/// A client that runs.
pub struct Theirs {
    _child: Child,
    /// libtorrent's script ends with its input.
    _input: Option<tokio::process::ChildStdin>,
}

impl Theirs {
    pub async fn start(client: &Client, task: &Task<'_>) -> Self {
        let mut child = match client.kind {
            Kind::Libtorrent => libtorrent::start(client, task),
            Kind::Aria2 => aria2::start(client, task),
            Kind::Transmission => transmission::start(client, task).await,
            Kind::QBittorrent => qbittorrent::start(client, task),
        };
        let input = child.stdin.take();
        Self { _child: child, _input: input }
    }
}
