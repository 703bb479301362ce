//! Waiting for datagrams or for a moment, whichever comes first.

use cede_units::Duration;
use std::io;
use std::net::UdpSocket;

/// Sleeps until one of the sockets has something to read or `span` has passed, and notes in `ready` which have.
///
/// # Errors
/// The system's; an interruption is none.
#[cfg(target_os = "linux")]
pub(crate) fn wait<'a>(
    sockets: impl Iterator<Item = &'a UdpSocket>,
    span: Duration,
    ready: &mut Vec<usize>,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let span = std::time::Duration::from(span);
    let timeout = Timespec { tv_sec: span.as_secs().cast_signed(), tv_nsec: i64::from(span.subsec_nanos()) };
    let mut entries: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    ready.clear();
    match poll(&mut entries, Some(&timeout)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let readable = entries.iter().enumerate().filter(|(_, entry)| !entry.revents().is_empty());
    ready.extend(readable.map(|(index, _)| index));
    Ok(())
}

/// As on Linux, by short naps: all sockets count as ready.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wait<'a>(
    sockets: impl Iterator<Item = &'a UdpSocket>,
    span: Duration,
    ready: &mut Vec<usize>,
) -> io::Result<()> {
    const NAP: Duration = Duration::from_micros(200);
    std::thread::sleep(span.min(NAP).into());
    ready.clear();
    ready.extend(0..sockets.count());
    Ok(())
}
