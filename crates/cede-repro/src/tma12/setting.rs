//! The swarms of the paper.
//!
//! As it says: 76 hosts with one peer each, one of them the seed; 100 MB; only uplinks limited, to 1, 2 or 5 Mbit/s;
//! buffers of one second, drop-tail; no propagation delay to speak of; all leechers at once, and nobody leaves; uTP's target
//! 100 ms; TCP CUBIC; three repetitions. What it leaves open and how it is read here: pieces of 1 MiB (its section 2 uses
//! them for files of this size), four upload slots and the rest of [`Profile::UTORRENT3`], libutp's transport, and 76 as
//! seed and leechers together.

use crate::swarms::Keyed;
use cede_bt::{Disposition, Duplicates, Profile};
use cede_cc::ParamValue;
use cede_lab::swarm::{
    Arrival, ControllerChoice, Departure, Group, Hashing, Links, Role, Swarm, SwarmRecords, UtpStack,
};
use cede_net::QueueLimit;
use cede_units::{Duration, Rate};

/// A mix of dispositions: how many per cent of the leechers have which, in groups.
pub type Mix = Vec<(u32, u8)>;

/// What differs from run to run.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// What it is called.
    pub key: String,
    /// Shares of the leechers in per cent with their dispositions.
    pub mix: Mix,
    /// The uplinks' capacity.
    pub capacity_mbps: u64,
    /// Leechers.
    pub leechers: u32,
    /// Octets of the file.
    pub content_bytes: u64,
    /// Octets of a piece.
    pub piece_bytes: u32,
    /// uTP's target, per group of the mix; the last serves for the rest.
    pub target_ms: Vec<u32>,
    /// The preference for uTP and the use of a connection by both sides are taken away (A19).
    pub one_way: bool,
    /// Peers that share one uplink (A20): 1 for none.
    pub per_host: u32,
    /// Leechers come and go with this mean time online (A20).
    pub churn_s: Option<u64>,
    /// The second group's uplinks in Mbit/s, where they differ (A20).
    pub other_capacity_mbps: Option<u64>,
    /// The rules of the peers.
    pub profile: Profile,
    /// Queues are measured from this time on.
    pub from_s: u64,
}

impl Keyed for Setting {
    fn key(&self) -> &str {
        &self.key
    }
}

impl Setting {
    /// The paper's swarm with one disposition.
    #[must_use]
    pub fn homogeneous(disposition: u8, capacity_mbps: u64, leechers: u32, content_bytes: u64) -> Self {
        Self {
            key: format!("{disposition} at {capacity_mbps} Mbit/s"),
            mix: vec![(100, disposition)],
            capacity_mbps,
            leechers,
            content_bytes,
            piece_bytes: 1 << 20,
            target_ms: vec![100],
            one_way: false,
            per_host: 1,
            churn_s: None,
            other_capacity_mbps: None,
            profile: Profile::UTORRENT3,
            from_s: 0,
        }
    }

    /// The paper's swarm with so many per cent of peers that attempt TCP (13), and the others uTP (14).
    #[must_use]
    pub fn mixed(tcp_percent: u32, capacity_mbps: u64, leechers: u32, content_bytes: u64) -> Self {
        Self {
            key: format!("{tcp_percent} % of 13 at {capacity_mbps} Mbit/s"),
            mix: vec![(tcp_percent, 13), (100 - tcp_percent, 14)],
            ..Self::homogeneous(31, capacity_mbps, leechers, content_bytes)
        }
    }

    /// The swarm of one repetition.
    #[must_use]
    pub fn swarm(&self, repetition: u32) -> Swarm {
        let mut groups = vec![Group { ..self.group("seed", 1, Role::Seed, 31, 0) }];
        let mut left = self.leechers;
        for (number, &(percent, disposition)) in self.mix.iter().enumerate() {
            let last = number + 1 == self.mix.len();
            let count = if last { left } else { (self.leechers * percent + 50) / 100 };
            left -= count;
            groups.push(self.group(
                &format!("p{disposition}-{number}"),
                count,
                Role::Leecher,
                disposition,
                number,
            ));
        }
        let bound_s = self.content_bytes * 8 / (self.capacity_mbps * 1_000_000);
        Swarm {
            name: self.key.clone(),
            seed: 1 + u64::from(repetition),
            duration: Duration::from_secs(40 * bound_s + 600),
            content_bytes: self.content_bytes,
            piece_bytes: self.piece_bytes,
            hashing: Hashing::Compare,
            tracker_peers: 50,
            announce_every: None,
            groups,
            links: Links::Homogeneous { rtt: Duration::ZERO, loss: 0.0 },
            records: SwarmRecords::default(),
            measure_from: Duration::from_secs(self.from_s),
        }
    }

    fn group(&self, name: &str, count: u32, role: Role, disposition: u8, number: usize) -> Group {
        let other = self.other_capacity_mbps.filter(|_| number == 1);
        let rate = Rate::from_mbit(other.unwrap_or(self.capacity_mbps));
        let mut utp = ControllerChoice::named("ledbat-libutp");
        // Targets differ among the leechers; the seed keeps the paper's.
        let place = if role == Role::Seed { usize::MAX } else { number };
        let target = self.target_ms.get(place).or(self.target_ms.last()).copied().unwrap_or(100);
        utp.params.set("target", ParamValue::Duration(Duration::from_millis(u64::from(target))));
        let mut profile = self.profile;
        if self.one_way {
            profile.duplicates = Duplicates::KeepBoth;
        }
        let leecher = role == Role::Leecher;
        Group {
            uplink: Some(rate),
            // One second of the link's rate.
            buffer: QueueLimit::Bytes(rate.bytes_in(Duration::from_secs(1))),
            latency: Duration::from_micros(250),
            disposition: Disposition(disposition),
            utp,
            utp_stack: UtpStack::Libutp,
            arrival: Arrival::Together {
                at: Duration::from_secs(2 * u64::from(leecher)),
                within: Duration::from_millis(500),
            },
            departure: match self.churn_s.filter(|_| leecher) {
                Some(mean) => Departure::Churn(Duration::from_secs(mean)),
                None => Departure::Stay,
            },
            per_link: if leecher { self.per_host } else { 1 },
            ..Group::new(name, count, role, profile)
        }
    }
}
