//! What Prometheus is told: sums of all torrents, so that there are always as many lines.

use super::entry::Status;
use super::roster::Daemon;
use std::fmt::Write;

/// Sums of all torrents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub torrents: usize,
    /// Those that run.
    pub under_way: usize,
    pub fetching: usize,
    pub giving: usize,
    /// Those that ended with an error.
    pub failed: usize,
    /// Octets of blocks, ever.
    pub received: u64,
    pub sent: u64,
    /// Octets per second.
    pub down: u64,
    pub up: u64,
    pub peers: usize,
}

impl Daemon {
    /// As they stand.
    pub fn sums(&self) -> Sums {
        let past = self.past.get();
        let mut sums = Sums { received: past.received, sent: past.sent, ..Sums::default() };
        for entry in self.entries() {
            let view = entry.view();
            let ((received, sent), (down, up)) = (entry.moved(view.as_ref()), entry.rates());
            let status = entry.status(self.hub.checked(entry.row));
            sums.torrents += 1;
            sums.under_way += usize::from(!matches!(status, Status::Stopped | Status::WaitsForTurn));
            sums.fetching += usize::from(status == Status::Fetches);
            sums.giving += usize::from(status == Status::Gives);
            sums.failed += usize::from(entry.error.borrow().is_some());
            (sums.received, sums.sent) = (sums.received + received, sums.sent + sent);
            (sums.down, sums.up) = (sums.down + down, sums.up + up);
            sums.peers += view.map_or(0, |view| view.peers.len());
        }
        for entry in self.leaving() {
            let (received, sent) = entry.moved(entry.view().as_ref());
            (sums.received, sums.sent) = (sums.received + received, sums.sent + sent);
        }
        sums
    }
}

/// The text format, version 0.0.4.
pub fn text(daemon: &Daemon) -> String {
    let sums = daemon.sums();
    let mut out = String::new();
    for (name, kind, help, value) in [
        ("torrents", "gauge", "Torrents that there are.", sums.torrents as u64),
        ("torrents_fetching", "gauge", "Torrents of which something is missing.", sums.fetching as u64),
        ("torrents_giving", "gauge", "Torrents that are given.", sums.giving as u64),
        ("torrents_failed", "gauge", "Torrents that ended with an error.", sums.failed as u64),
        ("peers", "gauge", "Ready connections.", sums.peers as u64),
        (
            "received_bytes_total",
            "counter",
            "Octets of blocks that were received, in all runs.",
            sums.received,
        ),
        ("sent_bytes_total", "counter", "Octets of blocks that were sent, in all runs.", sums.sent),
        ("receive_bytes_per_second", "gauge", "Octets per second that come, over five seconds.", sums.down),
        ("send_bytes_per_second", "gauge", "Octets per second that leave, over five seconds.", sums.up),
    ] {
        let _ = writeln!(
            out,
            "# HELP cede_torrent_{name} {help}\n# TYPE cede_torrent_{name} {kind}\ncede_torrent_{name} {value}"
        );
    }
    out
}
