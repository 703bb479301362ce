//! libtorrent, through its Python binding and a script of ours.

use super::guard::Guard;
use super::process::{Folder, version_of};
use super::{Client, Role, Task};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const SCRIPT: &str = include_str!("libtorrent_peer.py");
/// Debian's packages are for this one.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";
/// Notes kept for a report.
const MAX_NOTES: usize = 4;

/// The Python that has the libtorrent in question. The virtual environment is where `./test` makes it: beside the build.
fn python(client: Client) -> Result<PathBuf, String> {
    if client == Client::LibtorrentDebian {
        return Ok(SYSTEM_PYTHON.into());
    }
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let named = std::env::var_os("CEDE_INTEROP_VENV").map(PathBuf::from);
    let beside = exe.ancestors().map(|folder| folder.join("interop-venv"));
    let found = named.into_iter().chain(beside).map(|venv| venv.join("bin/python")).find(|p| p.exists());
    found.ok_or_else(|| "there is no virtual environment interop-venv beside the build".to_owned())
}

pub(super) fn version(client: Client) -> Result<String, String> {
    let mut command = std::process::Command::new(python(client)?);
    version_of(command.args(["-c", "import libtorrent; print(libtorrent.version)"]))
}

/// A session with one torrent.
pub struct Session {
    events: Lines<BufReader<ChildStdout>>,
    /// Where it takes connections.
    pub addr: SocketAddr,
    /// What happened to its connections, the latest last.
    pub notes: Vec<String>,
    // Dropped before what it watches over.
    _guard: Guard,
    // Held: the session ends with its input, or when it is killed, and before its folder goes.
    _input: ChildStdin,
    child: Child,
    folder: Folder,
}

impl Session {
    pub(super) async fn start(client: Client, task: &Task<'_>, folder: Folder) -> io::Result<Self> {
        let mut child = command(python(client).map_err(io::Error::other)?, task, &folder)?.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let events = BufReader::new(output).lines();
        let addr = SocketAddr::new(task.ip, 0);
        let guard = Guard::over(&child, &folder)?;
        let notes = Vec::new();
        let mut session = Self { events, addr, notes, _guard: guard, _input: input, child, folder };
        let line = session.until("listening").await?;
        let port = line.rsplit("\"port\": ").next().and_then(|tail| tail.trim_end_matches('}').parse().ok());
        session.addr.set_port(port.ok_or_else(|| io::Error::other(line))?);
        Ok(session)
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        self.child.id()
    }

    pub(super) async fn complete(&mut self) -> io::Result<&Folder> {
        self.until("complete").await?;
        Ok(&self.folder)
    }

    /// The next line about this event; notes on the way are kept.
    async fn until(&mut self, event: &str) -> io::Result<String> {
        let wanted = format!("{{\"event\": \"{event}\"");
        loop {
            let line = self.events.next_line().await?;
            let line = line.ok_or_else(|| io::Error::other("libtorrent's process has ended"))?;
            if line.starts_with(&wanted) {
                return Ok(line);
            }
            if self.notes.len() == MAX_NOTES {
                self.notes.remove(0);
            }
            self.notes.push(line);
        }
    }
}

fn command(python: PathBuf, task: &Task<'_>, folder: &Folder) -> io::Result<Command> {
    let script = folder.path.join("peer.py");
    std::fs::write(&script, SCRIPT)?;
    let role = if task.role == Role::Seed { "seed" } else { "leech" };
    let (host, port) = task.connect.map_or(("-".to_owned(), 0), |peer| (peer.ip().to_string(), peer.port()));
    let mut command = Command::new(python);
    command.arg(script).arg(role).arg(folder.metainfo()).arg(folder.data());
    let buffer_bytes = task.buffer_bytes.unwrap_or(0);
    command.args([task.ip.to_string(), host, port.to_string(), buffer_bytes.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    Ok(command)
}
