//! What a swarm came to.

use super::host::HostRecord;
use super::meter::{LinkRecord, QueueEntry, joint_mean_ms};
use super::model::{Group, Role, Swarm};
use super::tracker::TrackerEntry;
use cede_bt::Transport;
use cede_units::Instant;
use std::collections::BTreeSet;

/// A peer at the end.
#[derive(Clone, Debug)]
pub struct PeerOutcome {
    /// What it is called.
    pub name: String,
    /// Its group's place.
    pub group: usize,
    /// What it began with.
    pub role: Role,
    /// What was written down.
    pub record: HostRecord,
}

impl PeerOutcome {
    /// Seconds from its arrival until everything was there.
    #[must_use]
    pub fn completion_s(&self) -> Option<f64> {
        let arrived = self.record.arrived_at?;
        self.record.completed_at.map(|at| at.since(arrived).as_secs_f64())
    }
}

/// What a swarm came to.
#[derive(Clone, Debug)]
pub struct SwarmOutcome {
    /// The peers, in the order of their names.
    pub peers: Vec<PeerOutcome>,
    /// The access links from peers that have one, in the order of the peers.
    pub uplinks: Vec<(usize, LinkRecord)>,
    /// The access links to peers that have one, likewise.
    pub downlinks: Vec<(usize, LinkRecord)>,
    /// Every announce.
    pub tracker: Vec<TrackerEntry>,
    /// Each dequeue of uplinks and downlinks, where they were asked for.
    pub queue: Vec<QueueEntry>,
    /// When the run ended.
    pub ended_at: Instant,
    /// Whoever watched wanted it to end there.
    pub is_interrupted: bool,
    /// Events of the simulated world.
    pub events: u64,
}

/// A swarm in a few numbers.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Summary {
    /// Leechers.
    pub leechers: usize,
    /// Leechers that have everything.
    pub complete: usize,
    /// Mean of the leechers' completion times.
    pub mean_s: f64,
    /// Their standard deviation.
    pub sd_s: f64,
    /// The last.
    pub max_s: f64,
    /// Mean queue at the dequeues of all uplinks, in ms.
    pub queue_mean_ms: f64,
    /// The 95th percentile of the same samples.
    pub queue_p95_ms: f64,
    /// Share of dequeues that left something behind.
    pub busy_share: f64,
    /// Share of TCP in the octets on the uplinks; where a group has none, or nothing was counted, in the octets of blocks.
    pub tcp_share: f64,
    /// Octets of blocks sent by seeds, in torrents.
    pub seed_copies: f64,
    /// Mean queue at the dequeues of seeds' uplinks.
    pub seed_queue_ms: f64,
}

impl SwarmOutcome {
    /// Completion times of the leechers that have everything, in seconds.
    #[must_use]
    pub fn completion_s(&self) -> Vec<f64> {
        self.leechers().filter_map(PeerOutcome::completion_s).collect()
    }

    /// The leechers.
    pub fn leechers(&self) -> impl Iterator<Item = &PeerOutcome> {
        self.peers.iter().filter(|peer| peer.role == Role::Leecher)
    }

    /// Completion times of one group.
    #[must_use]
    pub fn group_completion_s(&self, group: usize) -> Vec<f64> {
        self.peers.iter().filter(|peer| peer.group == group).filter_map(PeerOutcome::completion_s).collect()
    }

    /// Mean queue in ms at the dequeues of the uplinks of those peers.
    #[must_use]
    pub fn queue_mean_ms(&self, of: impl Fn(&PeerOutcome) -> bool) -> Option<f64> {
        let links = self.uplinks.iter().filter(|(peer, _)| of(&self.peers[*peer]));
        joint_mean_ms(links.map(|(_, link)| &link.backlog))
    }

    /// The percentile of all samples of the queue at dequeues.
    #[must_use]
    pub fn queue_percentile_ms(&self, percent: f64) -> Option<f64> {
        let mut all = crate::histogram::Histogram::default();
        self.uplinks.iter().for_each(|(_, link)| all.merge(&link.backlog));
        all.percentile_ms(percent)
    }

    /// Share of TCP in the octets that moved.
    #[must_use]
    pub fn tcp_share(&self) -> f64 {
        let sum = |bytes: [u64; 2], more: [u64; 2]| [bytes[0] + more[0], bytes[1] + more[1]];
        let linked: BTreeSet<usize> = self.uplinks.iter().map(|(peer, _)| self.peers[*peer].group).collect();
        let on_links = self.uplinks.iter().map(|(_, link)| link.bytes).fold([0; 2], sum);
        // What peers without uplinks send is seen on none.
        let is_seen = self.peers.iter().all(|peer| linked.contains(&peer.group)) && on_links != [0; 2];
        let of_blocks = || self.peers.iter().map(|peer| peer.record.totals.uploaded).fold([0; 2], sum);
        let [tcp, utp] = if is_seen { on_links } else { of_blocks() };
        tcp as f64 / ((tcp + utp) as f64).max(1.0)
    }

    /// Whether any queue at a dequeue of an uplink was counted.
    #[must_use]
    pub fn has_queues(&self) -> bool {
        self.uplinks.iter().any(|(_, link)| link.dequeues > 0)
    }

    /// A link of the log of dequeues: whose it is, and whether it is an uplink.
    pub(super) fn link(&self, place: u32) -> Option<(usize, bool)> {
        let place = place as usize;
        match place.checked_sub(self.uplinks.len()) {
            None => self.uplinks.get(place).map(|(peer, _)| (*peer, true)),
            Some(place) => self.downlinks.get(place).map(|(peer, _)| (*peer, false)),
        }
    }

    /// A few numbers.
    #[must_use]
    pub fn summary(&self, content_bytes: u64) -> Summary {
        let times = self.completion_s();
        let (dequeues, busy) = self
            .uplinks
            .iter()
            .fold((0, 0), |(all, busy), (_, link)| (all + link.dequeues, busy + link.busy_dequeues));
        let is_seed = |peer: &PeerOutcome| peer.role == Role::Seed;
        let seeds = self.peers.iter().filter(|peer| is_seed(peer));
        let sent: u64 = seeds.map(|peer| peer.record.totals.sent()).sum();
        Summary {
            leechers: self.leechers().count(),
            complete: times.len(),
            mean_s: mean(&times),
            sd_s: deviation(&times),
            max_s: times.iter().copied().fold(0.0, f64::max),
            queue_mean_ms: self.queue_mean_ms(|_| true).unwrap_or(0.0),
            queue_p95_ms: self.queue_percentile_ms(95.0).unwrap_or(0.0),
            busy_share: busy as f64 / (dequeues as f64).max(1.0),
            tcp_share: self.tcp_share(),
            seed_copies: sent as f64 / content_bytes as f64,
            seed_queue_ms: self.queue_mean_ms(is_seed).unwrap_or(0.0),
        }
    }
}

/// What kept leechers from their end, where some have not got there.
#[must_use]
pub fn unfinished(swarm: &Swarm, outcome: &SwarmOutcome) -> Option<String> {
    let lacking: Vec<&PeerOutcome> =
        outcome.leechers().filter(|peer| peer.record.completed_at.is_none()).collect();
    if lacking.is_empty() {
        return None;
    }
    let count = format!("{} of {} leechers are not complete", lacking.len(), outcome.leechers().count());
    let groups: BTreeSet<usize> = lacking.iter().map(|peer| peer.group).collect();
    let alone: Vec<&str> = groups
        .into_iter()
        .filter(|&group| is_alone(swarm, group))
        .map(|at| &*swarm.groups[at].name)
        .collect();
    let absent = lacking.iter().filter(|peer| peer.record.arrived_at.is_none()).count();
    Some(match (&alone[..], absent) {
        ([], 0) => format!("{count} after {}{}", swarm.duration, seeds_absence(outcome)),
        ([], _) => {
            format!("{count} after {}, and {absent} of them never came: they arrive later", swarm.duration)
        }
        _ => format!("{count}: by their `transports` nobody can connect to {}", alone.join(", ")),
    })
}

/// What is to be said where all seeds have left for good, or none has come.
fn seeds_absence(outcome: &SwarmOutcome) -> String {
    let seeds = || outcome.peers.iter().filter(|peer| peer.role == Role::Seed).map(|peer| &peer.record);
    if seeds().all(|seed| seed.arrived_at.is_none()) {
        return ": no seed ever came, they arrive later".to_string();
    }
    let left: Option<Vec<Instant>> = seeds().map(|seed| seed.left_at).collect();
    let last = left.and_then(|left| left.into_iter().max());
    last.map_or_else(String::new, |at| format!(": the last seed left at {at}"))
}

/// Whether no peer of a group can connect to any other, whoever calls.
fn is_alone(swarm: &Swarm, group: usize) -> bool {
    let ours = &swarm.groups[group];
    let calls = |from: &Group, to: &Group| {
        let carries = |by: &Transport| from.disposition.attempts(*by) && to.disposition.accepts(*by);
        Transport::ALL.iter().any(carries)
    };
    let mut others = swarm.groups.iter().enumerate().filter(|&(at, _)| at != group || ours.count > 1);
    !others.any(|(_, other)| calls(ours, other) || calls(other, ours))
}

/// The mean; 0 of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The value that `percent` of all do not exceed; 0 of nothing.
#[must_use]
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    if values.len() < 2 { 0.0 } else { (squares / (values.len() - 1) as f64).sqrt() }
}
