//! What is remembered of hosts that are gone.

use alloc::collections::BTreeMap;
use cede_units::Instant;
use core::net::IpAddr;

/// Hosts that are remembered; a further one takes the place of the oldest.
const HOSTS_MAX: usize = 1_000;

/// A number for each host, and when it was noted.
#[derive(Debug, Default)]
pub(super) struct Hosts(BTreeMap<IpAddr, (Instant, u32)>);

impl Hosts {
    pub(super) fn note(&mut self, now: Instant, host: IpAddr, number: u32) {
        if self.0.len() >= HOSTS_MAX && !self.0.contains_key(&host) {
            let first = self.0.iter().min_by_key(|(_, (since, _))| *since).map(|(host, _)| *host);
            first.map(|host| self.0.remove(&host));
        }
        self.0.insert(host, (now, number));
    }

    pub(super) fn get(&self, host: IpAddr) -> Option<(Instant, u32)> {
        self.0.get(&host).copied()
    }

    pub(super) fn forget(&mut self, host: IpAddr) {
        self.0.remove(&host);
    }
}
