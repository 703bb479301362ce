//! What is kept of a swarm.

use cede_lab::swarm::{PeerOutcome, Role, Summary, Swarm, SwarmOutcome, mean};
use serde::{Deserialize, Serialize};

/// The peers of one group.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Class {
    /// The group's name.
    pub name: String,
    /// Completion times in seconds.
    pub completion_s: Vec<f64>,
    /// Mean queue at the dequeues of their access links, in ms.
    pub queue_ms: f64,
    /// Pairs of queue in ms and the share of dequeues that found a longer one, for curves.
    pub queue_ccdf: Vec<(f64, f64)>,
    /// Octets of blocks sent, over TCP and uTP.
    pub uploaded: [u64; 2],
    /// Connections that were ready, over TCP and uTP.
    pub connections: [u64; 2],
    /// Connections that were given up for a better one.
    pub duplicates: u64,
}

/// What is kept of a swarm.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Leechers, and those that have everything.
    pub leechers: [usize; 2],
    /// Mean completion time in seconds.
    pub mean_s: f64,
    /// Its standard deviation.
    pub sd_s: f64,
    /// The last.
    pub max_s: f64,
    /// Mean queue at dequeues, in ms.
    pub queue_ms: f64,
    /// Share of dequeues that left something behind.
    pub busy_share: f64,
    /// Share of TCP in the octets.
    pub tcp_share: f64,
    /// Copies of the file that the seed sent.
    pub seed_copies: f64,
    /// The seed's own queue, in ms.
    pub seed_queue_ms: f64,
    /// The groups.
    pub classes: Vec<Class>,
    /// Pieces at leechers over time: every hundredth of them, when.
    pub pieces: Vec<(f64, f64)>,
    /// Unchokes that the seed ended with nothing queued, whatever their length, for each of its rounds.
    pub seed_idle_ends: f64,
    /// How long the seed's unchokes lasted on average, in seconds.
    pub seed_unchoke_s: f64,
    /// Percentiles of the gap between data packets that a leecher sends, in ms: 10, 25, 50, 75, 90, 99.
    pub gaps_ms: Vec<f64>,
    /// Payload octets of data packets: the mean, and how many of each size were sent.
    pub payload_mean: f64,
    /// Sizes of payloads and their numbers.
    pub payloads: Vec<(u32, u64)>,
    /// Mean of the RTT estimates at sends, in ms.
    pub rtt_ms: f64,
    /// Octets that were not the torrent's.
    pub corrupt_bytes: u64,
    /// Events of the simulated world.
    pub events: u64,
}

impl Measured {
    /// What a swarm came to.
    #[must_use]
    pub fn of(swarm: &Swarm, outcome: &SwarmOutcome) -> Self {
        let Summary { leechers, complete, mean_s, sd_s, max_s, .. } = outcome.summary(swarm.content_bytes);
        let summary = outcome.summary(swarm.content_bytes);
        let (seed_idle_ends, seed_unchoke_s) = seed_turns(outcome);
        let payloads = payloads(outcome);
        Self {
            leechers: [leechers, complete],
            mean_s,
            sd_s,
            max_s,
            queue_ms: summary.queue_mean_ms,
            busy_share: summary.busy_share,
            tcp_share: summary.tcp_share,
            seed_copies: summary.seed_copies,
            seed_queue_ms: summary.seed_queue_ms,
            classes: (0..swarm.groups.len()).map(|group| class(swarm, outcome, group)).collect(),
            pieces: pieces(outcome),
            seed_idle_ends,
            seed_unchoke_s,
            gaps_ms: gaps(outcome),
            payload_mean: payload_mean(&payloads),
            payloads,
            rtt_ms: rtt(outcome),
            corrupt_bytes: outcome.peers.iter().map(|peer| peer.record.corrupt_bytes).sum(),
            events: outcome.events,
        }
    }

    /// A group by its place.
    #[must_use]
    pub fn class(&self, place: usize) -> Option<&Class> {
        self.classes.get(place)
    }

    /// Whether everything that arrived was the torrent's.
    #[must_use]
    pub const fn is_intact(&self) -> bool {
        self.corrupt_bytes == 0
    }
}

fn class(swarm: &Swarm, outcome: &SwarmOutcome, group: usize) -> Class {
    let members = || outcome.peers.iter().filter(move |peer| peer.group == group);
    let sum = |of: &dyn Fn(&PeerOutcome) -> u64| members().map(of).sum::<u64>();
    let mut queue = cede_lab::histogram::Histogram::default();
    for (peer, link) in &outcome.uplinks {
        if outcome.peers[*peer].group == group {
            queue.merge(&link.backlog);
        }
    }
    let steps = (0..100).map(f64::from);
    Class {
        name: swarm.groups[group].name.clone(),
        completion_s: outcome.group_completion_s(group),
        queue_ms: outcome.queue_mean_ms(|peer| peer.group == group).unwrap_or(0.0),
        queue_ccdf: steps
            .filter_map(|percent| Some((queue.percentile_ms(percent)?, 1.0 - percent / 100.0)))
            .collect(),
        uploaded: [0, 1].map(|at| sum(&|peer| peer.record.totals.uploaded[at])),
        connections: [0, 1].map(|at| sum(&|peer| u64::from(peer.record.totals.connections[at]))),
        duplicates: sum(&|peer| u64::from(peer.record.duplicates_closed)),
    }
}

/// When every hundredth part of all pieces was at the leechers.
fn pieces(outcome: &SwarmOutcome) -> Vec<(f64, f64)> {
    let mut times: Vec<f64> =
        outcome.leechers().flat_map(|peer| &peer.record.pieces).map(|(at, _)| at.as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    let step = (times.len() / 100).max(1);
    times.iter().enumerate().step_by(step).map(|(at, &time)| (time, at as f64)).collect()
}

/// Turns at the seed that ended with nothing queued, per round, and the mean turn in seconds.
fn seed_turns(outcome: &SwarmOutcome) -> (f64, f64) {
    let (mut early, mut rounds, mut turns) = (0.0, 0.0, Vec::new());
    for seed in outcome.peers.iter().filter(|peer| peer.role == Role::Seed) {
        rounds += seed.record.rounds as f64;
        let mut began = std::collections::BTreeMap::new();
        for &(at, peer, unchoked, busy) in &seed.record.unchokes {
            if unchoked {
                began.insert(peer, at);
            } else if let Some(since) = began.remove(&peer) {
                let turn_s = at.since(since).as_secs_f64();
                turns.push(turn_s);
                early += f64::from(u8::from(!busy));
            }
        }
    }
    (early / f64::max(rounds, 1.0), mean(&turns))
}

fn gaps(outcome: &SwarmOutcome) -> Vec<f64> {
    let mut all = cede_lab::histogram::Histogram::default();
    outcome.leechers().filter_map(|peer| peer.record.gaps.as_deref()).for_each(|gaps| all.merge(gaps));
    [10.0, 25.0, 50.0, 75.0, 90.0, 99.0].iter().filter_map(|&percent| all.percentile_ms(percent)).collect()
}

fn payloads(outcome: &SwarmOutcome) -> Vec<(u32, u64)> {
    let mut sizes = std::collections::BTreeMap::new();
    for (&size, &count) in outcome.peers.iter().flat_map(|peer| &peer.record.payloads) {
        *sizes.entry(size).or_insert(0) += count;
    }
    sizes.into_iter().collect()
}

fn payload_mean(payloads: &[(u32, u64)]) -> f64 {
    let count: u64 = payloads.iter().map(|(_, count)| count).sum();
    let bytes: f64 = payloads.iter().map(|&(size, count)| f64::from(size) * count as f64).sum();
    bytes / (count as f64).max(1.0)
}

fn rtt(outcome: &SwarmOutcome) -> f64 {
    let mut all = cede_lab::histogram::Histogram::default();
    outcome.peers.iter().filter_map(|peer| peer.record.rtts.as_deref()).for_each(|rtts| all.merge(rtts));
    all.mean_ms().unwrap_or(0.0)
}
