//! A network of the run's own.
//!
//! In a network namespace nobody else's traffic is in the way, and the loopback can have addresses that look global
//! (of the ranges kept for documentation): without one Transmission opens no socket for IPv6, and believes no tracker.

use std::process::{Command, Stdio};

/// Set for who is inside already.
const INSIDE: &str = "CEDE_INTEROP_INSIDE";
/// What makes the namespace's network, and then becomes this program again.
const SETUP: &str = r#"
ip link set lo up &&
ip addr add 198.51.100.2/32 dev lo && ip route add default dev lo src 198.51.100.2 &&
{ ip addr add 2001:db8::2/128 dev lo nodad && ip -6 route add default dev lo src 2001:db8::2 || true; } &&
exec "$@""#;
/// By root, and by whom the system lets be root of a namespace.
const WAYS: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];

/// Becomes this program in a namespace of its own, where it is not in one and the system makes one.
///
/// # Errors
/// Why it stays where it is.
pub fn enter() -> Result<(), String> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(());
    }
    let way = WAYS.into_iter().find(|way| works(way)).ok_or("the system makes no network namespaces")?;
    let exe = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.args(way).args(["sh", "-c", SETUP, "sh"]).arg(exe).args(std::env::args_os().skip(1));
    Err(become_it(command.env(INSIDE, "1")))
}

fn works(way: &[&str]) -> bool {
    let mut command = Command::new("unshare");
    command.args(way).args(["sh", "-c", SETUP, "sh", "true"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(unix)]
fn become_it(command: &mut Command) -> String {
    use std::os::unix::process::CommandExt as _;
    command.exec().to_string()
}

#[cfg(not(unix))]
fn become_it(_: &mut Command) -> String {
    "there are none on this system".to_owned()
}
