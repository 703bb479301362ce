//! aria2, which has no uTP.

use super::{Client, Role, Task};
use tokio::process::Child;

pub fn start(client: &Client, task: &Task<'_>) -> Child {
    let mut command = task.command(&client.program);
    command.args([
        "--enable-dht=false",
        "--enable-dht6=false",
        "--bt-enable-lpd=false",
        "--enable-peer-exchange=false",
    ]);
    command.args([
        "--no-conf=true",
        "--quiet",
        "--file-allocation=none",
        "--follow-torrent=mem",
        "--seed-ratio=0.0",
    ]);
    command.args(["--bt-tracker-interval=2", &format!("--listen-port={}", task.address.port())]);
    if task.role == Role::Seed {
        command.arg("--check-integrity=true");
    }
    if task.is_enciphered {
        command.arg("--bt-force-encryption=true");
    }
    command.arg("-d").arg(&task.folder).arg(task.what()).spawn().unwrap()
}
