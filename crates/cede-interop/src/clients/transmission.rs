//! Transmission's daemon, told what to do by `transmission-remote`.
//!
//! TCP cannot be switched off, but ours has a UDP port only: whatever is exchanged goes over uTP. It takes peers of its
//! own choice from a tracker alone, and believes no tracker that names a loopback address: where it is to open the
//! connection, both meet at an address of one of this machine's interfaces, over which the packets still never leave it.

use super::guard::Guard;
use super::process::{Folder, version_of};
use super::{Role, Task};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

const PAUSE: Duration = Duration::from_millis(200);
/// Tries until the daemon answers.
const TRIES: u32 = 100;

pub(super) fn version() -> Result<String, String> {
    version_of(std::process::Command::new("transmission-remote").arg("--version"))?;
    version_of(std::process::Command::new("transmission-daemon").arg("--version"))
}

/// An address of this machine that is not a loopback address: the one that packets to the world would leave from. None
/// are sent for that.
pub(super) fn believable(loopback: IpAddr) -> Result<IpAddr, String> {
    let (any, world) = match loopback {
        IpAddr::V4(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
        IpAddr::V6(_) => {
            (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)))
        }
    };
    let socket = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((world, 9))?;
        socket.local_addr()
    });
    let addr = socket
        .map_err(|error| format!("no address but loopback ({error}), which it takes from no tracker"))?;
    match addr.ip() {
        IpAddr::V6(ip) if ip.segments()[0] & 0xe000 != 0x2000 => {
            Err(format!("{ip} is not a global unicast address, without which it opens no socket for IPv6"))
        }
        ip => Ok(ip),
    }
}

/// A daemon with one torrent.
pub struct Daemon {
    /// Where it takes connections.
    pub addr: SocketAddr,
    rpc: SocketAddr,
    // Dropped before what it watches over.
    _guard: Guard,
    // Held: killed when dropped, and before its folder goes.
    child: Child,
    folder: Folder,
}

impl Daemon {
    pub(super) async fn start(task: &Task<'_>, folder: Folder) -> io::Result<Self> {
        let (addr, rpc) = (free_port(task.ip)?, free_port(Ipv4Addr::LOCALHOST.into())?);
        std::fs::write(folder.path.join("settings.json"), settings(addr, rpc.port()))?;
        let mut command = Command::new("transmission-daemon");
        command.args(["--foreground", "--config-dir"]).arg(&folder.path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let child = command.spawn()?;
        let daemon = Self { addr, rpc, _guard: Guard::over(&child, &folder)?, child, folder };
        daemon.until(|answer| answer.contains("Daemon version"), &["--session-info"]).await?;
        let (metainfo, data) = (daemon.folder.metainfo(), daemon.folder.data());
        daemon
            .ask(&["--add", &metainfo.to_string_lossy(), "--download-dir", &data.to_string_lossy()])
            .await?;
        if task.role == Role::Seed {
            // It looks at what is there first.
            daemon
                .until(|answer| answer.contains("Percent Done: 100%"), &["--torrent", "1", "--info"])
                .await?;
        }
        Ok(daemon)
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        self.child.id()
    }

    pub(super) async fn complete(&mut self) -> io::Result<&Folder> {
        loop {
            if self.ask(&["--torrent", "1", "--info"]).await?.contains("Percent Done: 100%") {
                return Ok(&self.folder);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn until(&self, is_it: impl Fn(&str) -> bool, question: &[&str]) -> io::Result<()> {
        let mut last = String::new();
        for _ in 0..TRIES {
            last = self.ask(question).await?;
            if is_it(&last) {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(io::Error::other(format!("transmission-daemon answers {question:?} with {last:?}")))
    }

    async fn ask(&self, question: &[&str]) -> io::Result<String> {
        let mut command = Command::new("transmission-remote");
        command.arg(self.rpc.to_string()).args(question).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}

/// A port that was free for both protocols a moment ago: Transmission must be told a number.
fn free_port(ip: IpAddr) -> io::Result<SocketAddr> {
    for _ in 0..TRIES {
        let addr = UdpSocket::bind((ip, 0))?.local_addr()?;
        if TcpListener::bind(addr).is_ok() {
            return Ok(addr);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

fn settings(addr: SocketAddr, rpc_port: u16) -> String {
    let (v4, v6) = match addr.ip() {
        IpAddr::V4(ip) => (ip, Ipv6Addr::LOCALHOST),
        IpAddr::V6(ip) => (Ipv4Addr::LOCALHOST, ip),
    };
    let port = addr.port();
    format!(
        r#"{{"bind-address-ipv4": "{v4}", "bind-address-ipv6": "{v6}", "peer-port": {port}, "utp-enabled": true,
        "encryption": 0, "dht-enabled": false, "lpd-enabled": false, "pex-enabled": false,
        "port-forwarding-enabled": false, "rpc-bind-address": "127.0.0.1", "rpc-port": {rpc_port},
        "rpc-whitelist-enabled": false, "rpc-host-whitelist-enabled": false, "rpc-authentication-required": false}}"#
    )
}
