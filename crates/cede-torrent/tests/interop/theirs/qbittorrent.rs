//! qBittorrent without a window. Its web interface waits on a port that nobody asks.

use super::{Client, Task};
use crate::place::Place;
use cede_bt::Transport;
use tokio::process::Child;

pub fn start(client: &Client, task: &Task<'_>) -> Child {
    let profile = task.settings();
    let config = profile.join("qBittorrent/config");
    std::fs::create_dir_all(&config).unwrap();
    let protocol = match (task.uses(Transport::Tcp), task.uses(Transport::Utp)) {
        (true, true) => "Both",
        (true, false) => "TCP",
        _ => "UTP",
    };
    let (ip, port, encryption) = (task.address.ip(), task.address.port(), u8::from(task.is_enciphered));
    let text = format!(
        "[LegalNotice]\nAccepted=true\n\n[BitTorrent]\nSession\\Port={port}\nSession\\UseRandomPort=false\n\
         Session\\InterfaceAddress={ip}\nSession\\DHTEnabled=false\nSession\\LSDEnabled=false\nSession\\PeXEnabled=false\n\
         Session\\Encryption={encryption}\nSession\\BTProtocol={protocol}\nSession\\MultiConnectionsPerIp=true\n\
         Session\\DefaultSavePath={folder}\nSession\\TempPathEnabled=false\nSession\\Preallocation=false\n\n\
         [Preferences]\nConnection\\UPnP=false\nWebUI\\UseUPnP=false\nWebUI\\Address=127.0.0.1\n",
        folder = task.folder.display(),
    );
    std::fs::write(config.join("qBittorrent.conf"), text).unwrap();
    let mut command = task.command(&client.program);
    command.arg(format!("--profile={}", profile.display())).arg(format!("--webui-port={}", Place::port()));
    command
        .arg(format!("--save-path={}", task.folder.display()))
        .args(["--add-paused=false", "--skip-dialog=true"]);
    command.arg(task.what()).env("HOME", &profile).spawn().unwrap()
}
