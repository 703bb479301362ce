//! Transmission's daemon, told what to do by `transmission-remote`. Its TCP cannot be switched off.

use super::{Client, Task};
use crate::place::Place;
use crate::support::LIMIT;
use cede_bt::Transport;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::process::Child;

pub async fn start(client: &Client, task: &Task<'_>) -> Child {
    let (rpc, settings) = (Place::port(), task.settings());
    let encryption = if task.is_enciphered { 2 } else { 0 };
    let text = format!(
        r#"{{"bind-address-ipv4":"{}","bind-address-ipv6":"::1","peer-port":{},"peer-port-random-on-start":false,
        "port-forwarding-enabled":false,"dht-enabled":false,"lpd-enabled":false,"pex-enabled":false,"utp-enabled":{},
        "encryption":{encryption},"rpc-port":{rpc},"rpc-bind-address":"127.0.0.1","download-dir":{:?},
        "ratio-limit-enabled":false,"idle-seeding-limit-enabled":false}}"#,
        task.address.ip(),
        task.address.port(),
        task.uses(Transport::Utp),
        task.folder.display().to_string(),
    );
    std::fs::write(settings.join("settings.json"), text).unwrap();
    let mut command = task.command(&client.program);
    command.args(["--foreground", "--config-dir"]).arg(&settings);
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut spawned = began;
    while !add(task, rpc).await {
        assert!(began.elapsed() < LIMIT, "Transmission does not take the torrent: {:?}", child.try_wait());
        tokio::time::sleep(Duration::from_millis(200)).await;
        // Now and then, on a busy machine, one does not answer at its port, or has ended: another does.
        if spawned.elapsed() > LIMIT / 4 {
            println!("Transmission, begun again: {:?}", child.try_wait());
            let _ = child.kill().await;
            (child, spawned) = (command.spawn().unwrap(), Instant::now());
        }
    }
    child
}

async fn add(task: &Task<'_>, rpc: u16) -> bool {
    let mut command = task.command(Path::new("transmission-remote"));
    command.args([&format!("127.0.0.1:{rpc}"), "--add", &task.what()]);
    command.status().await.is_ok_and(|status| status.success())
}
