//! What a swarm consists of.

/// A congestion controller by name, with its parameters.
pub use crate::scenario::ControllerSpec as ControllerChoice;
use cede_bt::{Disposition, Profile};
use cede_net::QueueLimit;
use cede_units::{Duration, Rate};

/// A swarm, ready to run.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// What it is called.
    pub name: String,
    /// All random numbers come from this.
    pub seed: u64,
    /// The run ends here at the latest.
    pub duration: Duration,
    /// Octets of the torrent.
    pub content_bytes: u64,
    /// Octets of a piece.
    pub piece_bytes: u32,
    /// Whether pieces are really hashed.
    pub hashing: Hashing,
    /// The most peers that the tracker names at a time.
    pub tracker_peers: u32,
    /// How often a peer announces itself again while it is there, and asks for others while it lacks something; `None` for never, which
    /// leaves it to what its profile asks for.
    pub announce_every: Option<Duration>,
    /// The peers, by groups.
    pub groups: Vec<Group>,
    /// What lies between them.
    pub links: Links,
    /// What is written down beyond totals.
    pub records: SwarmRecords,
    /// Queues count from this time on.
    pub measure_from: Duration,
}

/// Whether pieces are really hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hashing {
    /// Each run of octets is compared with the pattern by its place.
    Compare,
    /// The pattern's octets are written out as well and run through SHA-1, as a client would.
    Sha1,
}

/// What is written down beyond totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwarmRecords {
    /// Each dequeue of each uplink and downlink.
    pub queue: bool,
    /// The arrival of each piece at each peer.
    pub pieces: bool,
    /// Unchokes and chokes.
    pub unchokes: bool,
    /// Gaps between sends and sizes of payloads.
    pub sends: bool,
    /// The smoothed RTT each time that data leave, over either transport.
    pub rtt: bool,
    /// The octets of packets.
    pub packets: Packets,
}

/// Which packets of a swarm are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Packets {
    /// None.
    #[default]
    None,
    /// Every packet once, as it leaves its host.
    Sent,
    /// What captures on the seeds see, as it leaves and as it arrives.
    Seeds,
    /// What captures on the leechers see, likewise: packets between two of them appear twice.
    Leechers,
}

/// What a group's peers begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Everything.
    Seed,
    /// Nothing.
    Leecher,
}

/// When a group's peers come.
#[derive(Clone, PartialEq, Debug)]
pub enum Arrival {
    /// All at once, at a time, spread evenly at random over `within`.
    Together {
        /// When.
        at: Duration,
        /// How close together.
        within: Duration,
    },
    /// One by one, with gaps drawn from an exponential distribution.
    Poisson {
        /// Since when.
        from: Duration,
        /// The mean gap.
        gap: Duration,
    },
    /// At stated times; the last one serves for whoever is left.
    Trace(Vec<Duration>),
}

/// When a group's peers leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// Never.
    Stay,
    /// So long after they are complete.
    WhenDone(Duration),
    /// After a time online, drawn from an exponential distribution with this mean, complete or not; leechers that were
    /// not complete come back after as long away, with what they had.
    Churn(Duration),
}

/// Whose decisions a uTP transport takes, beside its controller's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UtpStack {
    /// libutp's (uTorrent, Transmission).
    Libutp,
    /// libtorrent's.
    Libtorrent,
    /// Those of BEP 29 where deployed peers agree with it.
    Standard,
}

/// Which kernel's TCP the peers have, beside its controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpStack {
    /// Linux of 3.2 to 4.17, which counts what arrives beyond a loss.
    Linux,
    /// Linux since 4.18, which finds losses by time, takes back what was in vain, and tells by whole flights whether the window limits
    /// it.
    Linux418,
    /// Linux of 2009: 2.6.25 to 2.6.38.
    Linux26,
}

impl TcpStack {
    pub(super) fn config(self) -> cede_tcp::Config {
        match self {
            Self::Linux => cede_tcp::Config::linux(),
            Self::Linux418 => cede_tcp::Config::linux_4_18(),
            Self::Linux26 => cede_tcp::Config::linux_2_6(),
        }
    }
}

/// Peers that are alike.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is called.
    pub name: String,
    /// How many.
    pub count: u32,
    /// What they begin with.
    pub role: Role,
    /// Seeds tell each peer of two pieces at a time (BEP 16).
    pub super_seeds: bool,
    /// The access link's rate from the peer; `None` for no access link.
    pub uplink: Option<Rate>,
    /// Peers that share one access link from them: 1 where each has its own.
    pub per_link: u32,
    /// The access link's rate to the peer; `None` for no limit.
    pub downlink: Option<Rate>,
    /// How much waits before the access link, in each direction that has one.
    pub buffer: QueueLimit,
    /// How much waits before the access link to the peer, where that is another amount.
    pub downlink_buffer: Option<QueueLimit>,
    /// Octets that may leave an access link at once after a pause, which a token bucket lets through (Linux's tbf and htb) and which take no
    /// time then; 0 for a line that serialises each packet.
    pub burst_bytes: u64,
    /// Propagation from the peer to the network, and back where there is a downlink or loss.
    pub latency: Duration,
    /// Loss on the way to the peer.
    pub loss: f64,
    /// Whose rules the peers follow.
    pub profile: Profile,
    /// Which transports they attempt and accept.
    pub disposition: Disposition,
    /// The controller of their uTP.
    pub utp: ControllerChoice,
    /// Whose decisions their uTP takes.
    pub utp_stack: UtpStack,
    /// The controller of their TCP.
    pub tcp: ControllerChoice,
    /// Which kernel's TCP it is.
    pub tcp_stack: TcpStack,
    /// Octets per second that a peer sends at most.
    pub upload_limit: Option<u64>,
    /// When they come.
    pub arrival: Arrival,
    /// When they leave.
    pub departure: Departure,
    /// Octets of a full packet, all headers included.
    pub packet_bytes: u32,
    /// Segments of TCP that leave in a row travel as one, up to so many octets; 0 for no such offload.
    pub offload_bytes: u32,
    /// What a peer keeps written ahead of its transports, in octets per connection; of TCP where it is held back beside uTP
    /// ([`cede_bt::mixed`]), it is what Linux's buffer takes.
    pub write_ahead_bytes: u32,
    /// The machine that the peers run on, where links are devices; the group's place in a matrix is its own.
    pub machine: usize,
}

impl Group {
    /// A group with a peer's usual properties: no access link, CUBIC and LEDBAT with their defaults, everything
    /// attempted and accepted, and a stay to the end.
    #[must_use]
    pub fn new(name: &str, count: u32, role: Role, profile: Profile) -> Self {
        Self {
            name: name.to_string(),
            count,
            role,
            super_seeds: false,
            uplink: None,
            per_link: 1,
            downlink: None,
            buffer: QueueLimit::Unlimited,
            downlink_buffer: None,
            latency: Duration::ZERO,
            loss: 0.0,
            disposition: Disposition::ALL,
            utp: Self::controller_of(&profile),
            utp_stack: UtpStack::Libtorrent,
            tcp: ControllerChoice::named("cubic"),
            tcp_stack: TcpStack::Linux,
            upload_limit: None,
            arrival: Arrival::Together { at: Duration::ZERO, within: Duration::ZERO },
            departure: Departure::Stay,
            packet_bytes: 1500,
            offload_bytes: 0,
            burst_bytes: 0,
            write_ahead_bytes: 32 << 10,
            machine: 0,
            profile,
        }
    }

    /// The controller that peers of a profile have over uTP.
    #[must_use]
    pub fn controller_of(profile: &Profile) -> ControllerChoice {
        let is_libtorrent = profile.name == Profile::LIBTORRENT.name;
        ControllerChoice::named(if is_libtorrent { "ledbat-libtorrent" } else { "ledbat" })
    }
}

/// A netem-like device that the peers of one machine share: each packet is delayed when it leaves by it and when it
/// comes in by it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Device {
    /// Delay of the loopback device, at egress and at ingress.
    pub loopback: Duration,
    /// Delay of the Ethernet device, at egress and at ingress.
    pub ethernet: Duration,
    /// Loss at ingress.
    pub loss: f64,
}

/// What lies between the access links.
#[derive(Clone, PartialEq, Debug)]
pub enum Links {
    /// The same round-trip time between all peers, beside that of their access links.
    Homogeneous {
        /// The round-trip time.
        rtt: Duration,
        /// Loss, each way.
        loss: f64,
    },
    /// Round-trip times between groups (autonomous systems), by their places in the list of groups.
    Matrix {
        /// Row by row.
        rtt: Vec<Vec<Duration>>,
        /// Loss, each way.
        loss: f64,
    },
    /// Machines with devices; groups say on which machine they run.
    Devices(Vec<Device>),
}
