//! The tracker of a simulated swarm: it answers at once, and logs each announce.

use cede_bt::engine::AnnounceEvent;
use cede_units::{Instant, Stream};

/// An announce.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrackerEntry {
    /// When.
    pub at: Instant,
    /// Who.
    pub peer: u32,
    /// What has happened; `None` for one that leaves.
    pub event: Option<AnnounceEvent>,
    /// How many peers were named in answer.
    pub named: u32,
}

/// The tracker.
#[derive(Debug)]
pub struct Tracker {
    peers: Vec<u32>,
    limit: u32,
    random: Stream,
    log: Vec<TrackerEntry>,
}

impl Tracker {
    /// A tracker that names at most `limit` peers at a time.
    #[must_use]
    pub const fn new(limit: u32, random: Stream) -> Self {
        Self { peers: Vec::new(), limit, random, log: Vec::new() }
    }

    /// Answers an announce with random peers, the asker not among them.
    pub fn announce(&mut self, at: Instant, peer: u32, event: AnnounceEvent, want: u32) -> Vec<u32> {
        let mut others: Vec<u32> = self.peers.iter().copied().filter(|&other| other != peer).collect();
        if others.len() == self.peers.len() {
            self.peers.push(peer);
        }
        let named = (want.min(self.limit) as usize).min(others.len());
        for place in 0..named {
            let drawn = place + self.random.below((others.len() - place) as u64) as usize;
            others.swap(place, drawn);
        }
        others.truncate(named);
        self.log.push(TrackerEntry { at, peer, event: Some(event), named: named as u32 });
        others
    }

    /// A peer leaves.
    pub fn leave(&mut self, at: Instant, peer: u32) {
        self.peers.retain(|&other| other != peer);
        self.log.push(TrackerEntry { at, peer, event: None, named: 0 });
    }

    /// Every announce so far.
    #[must_use]
    pub fn log(&self) -> &[TrackerEntry] {
        &self.log
    }
}
