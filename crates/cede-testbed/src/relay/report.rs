//! What a relay has done, and how late it was.

use crate::overflow::overflows;
use crate::priority::Priority;
use crate::summary::Summary;
use cede_net::Counters;
use cede_units::Duration;
use std::net::SocketAddr;

/// What one direction has done. Octets are those of IP datagrams.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DirectionReport {
    /// Datagrams that came to the relay.
    pub arrived_datagrams: u64,
    /// Their octets.
    pub arrived_bytes: u64,
    /// Of these, larger than the path's MTU.
    pub too_large: u64,
    /// Of these, offered to the link twice.
    pub duplicated: u64,
    /// What the link did.
    pub link: Counters,
    /// Packets that wait in its queue.
    pub queued_packets: u32,
    /// How long each packet waited in its queue.
    pub queueing: Summary,
    /// Datagrams sent on.
    pub delivered_datagrams: u64,
    /// Their octets.
    pub delivered_bytes: u64,
    /// Datagrams that the system refused to send.
    pub send_failures: u64,
}

/// What a relay has done.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Since the relay started.
    pub elapsed: Duration,
    /// From the clients to the target.
    pub forward: DirectionReport,
    /// From the target to the clients.
    pub backward: DirectionReport,
    /// How much later than scheduled datagrams left.
    pub departures_late: Summary,
    /// How long datagrams lay in the kernel before the relay read them.
    pub arrivals_late: Summary,
    /// Clients seen.
    pub clients: usize,
    /// Datagrams of clients beyond the limit, and of strangers at the ports towards the target.
    pub refused: u64,
    /// Calls to receive that failed.
    pub receive_errors: u64,
    /// Datagrams that the kernel dropped because the relay did not read fast enough; `None` where it does not say.
    pub overflowed: Option<u64>,
    /// What the relay runs at.
    pub priority: Priority,
    pub(super) ports: Vec<SocketAddr>,
}

impl Report {
    pub(super) fn count_overflows(&mut self) {
        self.overflowed = overflows(&self.ports);
    }

    /// What the relay itself lost, beyond what its links are there to lose.
    #[must_use]
    pub fn own_losses(&self) -> u64 {
        let refused = self.refused + self.forward.send_failures + self.backward.send_failures;
        refused + self.overflowed.unwrap_or_default()
    }
}
