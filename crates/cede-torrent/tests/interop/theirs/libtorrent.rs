//! libtorrent, by its Python binding: PyPI's and Debian's.

use super::{Client, Kind, Role, Task};
use cede_bt::Transport;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::Child;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/libtorrent_peer.py");

/// PyPI's is in the environment that `./test` makes beside the build.
fn from_pypi() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let beside = exe.ancestors().map(|folder| folder.join("interop-venv/bin/python"));
    let named = std::env::var_os("CEDE_INTEROP_VENV").map(|venv| PathBuf::from(venv).join("bin/python"));
    named.into_iter().chain(beside).find(|python| version(python).is_some())
}

fn version(python: &PathBuf) -> Option<String> {
    let mut command = std::process::Command::new(python);
    let output = command.args(["-c", "import libtorrent; print(libtorrent.version)"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

pub fn installed() -> Vec<Client> {
    let mut found = Vec::new();
    for (python, origin) in [(from_pypi(), "PyPI"), (Some("/usr/bin/python3".into()), "Debian")] {
        match python.as_ref().and_then(|python| Some((python.clone(), version(python)?))) {
            Some((program, version)) => {
                let label = format!("libtorrent {version} ({origin})");
                found.push(Client { kind: Kind::Libtorrent, label, program });
            }
            None => println!("SKIPPED: libtorrent of {origin} is not installed (./test installs it)"),
        }
    }
    found
}

pub fn start(client: &Client, task: &Task<'_>) -> Child {
    let mut command = task.command(&client.program);
    let over = |transport| if task.uses(transport) { "yes" } else { "no" };
    let role = if task.role == Role::Seed { "seed" } else { "leech" };
    let encryption = if task.is_enciphered { "enciphered" } else { "plain" };
    command.args([SCRIPT, role, &task.what()]).arg(&task.folder);
    command.args([over(Transport::Tcp), over(Transport::Utp), encryption, &task.address.to_string()]);
    command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}
