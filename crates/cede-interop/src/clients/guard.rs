//! Clients end with us, however we end.

use super::process::Folder;
use std::io;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Waits for the end of its input, which comes with the end of whoever holds it, a kill included; then clears away.
const SCRIPT: &str = r#"trap "" INT TERM HUP; read -r _; kill -9 "$1"; rm -rf "$2""#;

/// A shell that outlives this process, ends a client and removes its folder. Dropped before either, it does nothing.
pub(super) struct Guard {
    // Held: killed when dropped, before its input ends.
    _shell: Child,
}

impl Guard {
    /// Watches over a client.
    pub(super) fn over(client: &Child, folder: &Folder) -> io::Result<Self> {
        let process_id = client.id().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "guard", &process_id.to_string()]).arg(&folder.path);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        Ok(Self { _shell: command.spawn()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bittorrent::Torrent;
    use crate::clients::{Role, Task};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    fn folder() -> Folder {
        let torrent = Torrent::new("guarded", 1, 1, None);
        let ip = Ipv4Addr::LOCALHOST.into();
        let task = Task { role: Role::Seed, torrent: &torrent, ip, connect: None, buffer_bytes: None };
        Folder::new(&task).unwrap()
    }

    fn client() -> Child {
        Command::new("sleep").arg("600").kill_on_drop(true).spawn().unwrap()
    }

    /// What a kill of this process does to the shell is that its input ends.
    #[tokio::test]
    async fn a_client_ends_and_its_folder_goes_when_nobody_holds_the_guard_s_input() {
        let (folder, mut client) = (folder(), client());
        let mut guard = Guard::over(&client, &folder).unwrap();
        drop(guard._shell.stdin.take());
        let ended = tokio::time::timeout(Duration::from_secs(60), client.wait()).await;
        assert!(ended.is_ok_and(|status| !status.unwrap().success()));
        let shell = tokio::time::timeout(Duration::from_secs(60), guard._shell.wait()).await;
        assert!(shell.is_ok() && !folder.path.exists());
    }

    #[tokio::test]
    async fn a_guard_that_is_dropped_does_nothing() {
        let (folder, mut client) = (folder(), client());
        drop(Guard::over(&client, &folder).unwrap());
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(client.try_wait().unwrap().is_none() && folder.path.exists());
    }
}
