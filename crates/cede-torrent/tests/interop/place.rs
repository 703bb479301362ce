//! Where the transfers happen: a network namespace of the test's own, with an address that does not look like the loopback's
//! (Transmission believes no tracker that names one), or the loopback where the system makes none.

use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Set for who is inside already.
const INSIDE: &str = "CEDE_INTEROP_INSIDE";
/// Of the range kept for documentation.
pub const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// Makes the namespace's network and becomes the test again.
const SETUP: &str = r#"ip link set lo up && ip addr add 198.51.100.2/32 dev lo && ip route add default dev lo src 198.51.100.2 \
&& mount -t tmpfs none /run && exec "$@""#;
const WAY: [&str; 6] = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The address of everybody.
    pub ip: IpAddr,
    /// It is a namespace of our own, by root.
    pub is_own: bool,
}

impl Place {
    /// A port that nobody else uses: ports are given out one after the other.
    pub fn port() -> u16 {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let first = if std::env::var_os(INSIDE).is_some() {
            20_001
        } else {
            20_001 + std::process::id() as u16 % 200 * 50
        };
        first + NEXT.fetch_add(1, Relaxed)
    }
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(WAY).args(["sh", "-c", SETUP, "sh"]);
    command
}

/// The place, for who is inside. Else the test runs again inside a namespace, and there is none; or where there can be no
/// namespace, the loopback.
pub fn enter(test: &str) -> Option<Place> {
    if std::env::var_os(INSIDE).is_some() {
        return Some(Place { ip: OWN_ADDRESS.into(), is_own: true });
    }
    let works = unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !works {
        println!(
            "SKIPPED: the system makes no network namespaces (root, ip and unshare are needed): no Transmission, no mixed swarm"
        );
        return Some(Place { ip: Ipv4Addr::LOCALHOST.into(), is_own: false });
    }
    let exe = std::env::current_exe().unwrap();
    let status = unshare().arg(exe).args(["--exact", test, "--nocapture"]).env(INSIDE, "1").status().unwrap();
    assert!(status.success(), "{test} failed inside its namespace");
    None
}
