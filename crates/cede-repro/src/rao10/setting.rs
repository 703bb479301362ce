//! The swarms of the paper.
//!
//! As it says: one seed and the tracker on one machine, 300 leechers on three others, 100 each; 50 MB; all at once, and
//! nobody leaves; the mainline client with upload limits of 10 to 100 kB/s; delay on each device at egress and at ingress,
//! loss at ingress alone; MTU 1500, CUBIC; ten iterations. What it leaves open and how it is read here: pieces of 256 KiB
//! (the client's default), kB of 1,024 octets (the client's limiter), 50 MB as 50 x 2^20, connections between all addresses
//! allowed, and release 4.0.2 of the client.

use crate::swarms::Keyed;
use cede_bt::{Disposition, Profile};
use cede_lab::swarm::{
    Arrival, ControllerChoice, Device, Group, Hashing, Links, Role, Swarm, SwarmRecords, TcpStack, UtpStack,
};
use cede_units::Duration;

/// Machines that run leechers.
pub const MACHINES: usize = 3;

/// What differs from run to run.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// What it is called.
    pub key: String,
    /// The seed's upload limit in kB/s.
    pub seed_kbps: u64,
    /// The leechers' upload limit in kB/s.
    pub leecher_kbps: u64,
    /// Devices: the leechers' machines, then the seed's.
    pub devices: Vec<Device>,
    /// Leechers on each machine.
    pub per_machine: u32,
    /// Segmentation offload.
    pub offload: bool,
    /// Octets of a kB of the upload limits.
    pub kilobyte: u64,
    /// Octets of the file.
    pub content_bytes: u64,
    /// Octets of a piece.
    pub piece_bytes: u32,
    /// uTP in place of TCP.
    pub utp: bool,
    /// Which kernel's TCP.
    pub tcp_stack: TcpStack,
    /// Its controller.
    pub tcp: ControllerChoice,
    /// The rules of the peers.
    pub profile: Profile,
    /// What is written down.
    pub records: SwarmRecords,
}

impl Keyed for Setting {
    fn key(&self) -> &str {
        &self.key
    }
}

impl Setting {
    /// The same round-trip time between all peers, `loss` at each ingress.
    #[must_use]
    pub fn homogeneous(kbps: u64, rtt_ms: u64, loss: f64) -> Self {
        // A round trip crosses four devices.
        let quarter = Duration::from_micros(rtt_ms * 250);
        let device = Device { loopback: quarter, ethernet: quarter, loss };
        Self {
            key: format!("{kbps} kB/s, {rtt_ms} ms, {} % loss", loss * 100.0),
            seed_kbps: kbps,
            leecher_kbps: kbps,
            devices: vec![device; MACHINES + 1],
            per_machine: 100,
            offload: false,
            kilobyte: 1_024,
            content_bytes: 50 << 20,
            piece_bytes: 256 << 10,
            utp: false,
            tcp_stack: TcpStack::Linux,
            tcp: ControllerChoice::named("cubic"),
            profile: Profile::MAINLINE4,
            records: SwarmRecords::default(),
        }
    }

    /// The longest round trip between two machines.
    pub(super) fn longest_rtt(&self) -> Duration {
        let mut delays: Vec<Duration> = self.devices.iter().map(|device| device.ethernet).collect();
        delays.sort_unstable();
        delays.iter().rev().take(2).fold(Duration::ZERO, |sum, &delay| sum + delay) * 2
    }

    /// The swarm of one iteration.
    #[must_use]
    pub fn swarm(&self, repetition: u32) -> Swarm {
        let seed_machine = self.devices.len() - 1;
        let mut groups = vec![self.group("seed", 1, Role::Seed, seed_machine, self.seed_kbps)];
        for machine in 0..seed_machine {
            let name = format!("m{machine}");
            groups.push(self.group(&name, self.per_machine, Role::Leecher, machine, self.leecher_kbps));
        }
        let bound_s = self.content_bytes / (self.seed_kbps.min(self.leecher_kbps) * self.kilobyte);
        Swarm {
            name: self.key.clone(),
            seed: 1 + u64::from(repetition),
            duration: Duration::from_secs(8 * bound_s + 600),
            content_bytes: self.content_bytes,
            piece_bytes: self.piece_bytes,
            hashing: Hashing::Compare,
            tracker_peers: 50,
            announce_every: None,
            groups,
            links: self.links(),
            records: self.records,
            measure_from: Duration::ZERO,
        }
    }

    /// Where all devices are alike, every packet crosses two of them and is lost at one: one link does the same in a
    /// third of the events. netem's limit of 10^5 frames, the difference, is never reached.
    fn links(&self) -> Links {
        match self.devices[0] {
            Device { loopback, ethernet, loss }
                if loopback == ethernet && self.devices.iter().all(|device| *device == self.devices[0]) =>
            {
                Links::Homogeneous { rtt: ethernet * 4, loss }
            }
            _ => Links::Devices(self.devices.clone()),
        }
    }

    fn group(&self, name: &str, count: u32, role: Role, machine: usize, kbps: u64) -> Group {
        Group {
            disposition: if self.utp { Disposition::UTP } else { Disposition::TCP },
            utp: ControllerChoice::named("ledbat-libutp"),
            utp_stack: UtpStack::Libutp,
            tcp: self.tcp.clone(),
            tcp_stack: self.tcp_stack,
            upload_limit: Some(kbps * self.kilobyte),
            offload_bytes: if self.offload { 64 << 10 } else { 0 },
            machine,
            arrival: Arrival::Together {
                at: Duration::from_secs(u64::from(role == Role::Leecher)),
                within: Duration::from_secs(1),
            },
            ..Group::new(name, count, role, self.profile)
        }
    }
}
