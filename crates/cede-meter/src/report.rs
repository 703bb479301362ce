//! What the meter found out, as plain data.

use crate::intake::Counters;
use crate::packet::key::Socket;
use crate::stats::summary::Summary;
use core::fmt;
use core::net::IpAddr;

/// The transport that carried a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Protocol {
    /// uTP over UDP.
    Utp,
    /// TCP with timestamps.
    Tcp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utp => "uTP",
            Self::Tcp => "TCP",
        })
    }
}

/// How a delay was inferred.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Estimator {
    /// The observer's clock less the sender's stamp.
    Direct,
    /// What the receiver measured and said (uTP), or its clock less that of the segment which it acknowledges (TCP): the
    /// paper's equations.
    Echoed,
}

macro_rules! flags {
    ($($(#[doc = $doc:literal])* $constant:ident = $bit:literal, $name:literal, $text:literal;)*) => {
        impl Flags {
            $($(#[doc = $doc])* pub const $constant: Self = Self(1 << $bit);)*

            /// Every flag with its name and what it means.
            pub const ALL: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$constant, $name, $text)),*];
        }
    };
}

/// What to bear in mind about a figure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u32);

flags! {
    /// The packet that opens the flow was not captured.
    START_NOT_SEEN = 0, "start-not-seen",
        "the capture begins in the middle of the flow, whose queue may never have been empty since: the delay may be too small";
    /// The shortest delay was met in one short time only.
    BASE_NOT_REVISITED = 1, "base-not-revisited",
        "the shortest delay was met only once, so that nothing confirms that the queue was empty then";
    /// Ticks of 4 ms or more.
    COARSE_CLOCK = 2, "coarse-clock",
        "the sender's clock has ticks of 4 ms or more, and the delay is no finer";
    /// Direct and echoed estimates differ.
    ESTIMATORS_DISAGREE = 3, "estimators-disagree",
        "the direct and the echoed estimate differ by more than 10 ms and a fifth: a clock is wrong, or there is a queue between the observer and the receiver, or the direct one alone could be told its base (base-told)";
    /// Too short to tell the clock's rate.
    RATE_ASSUMED = 4, "rate-assumed",
        "the flow is too short to tell the rate of its timestamp clock; that of other flows of the address is assumed, or 1000 ticks a second, which nearly everything has";
    /// The clock runs at a rate that no system has.
    RATE_ODD = 5, "rate-odd",
        "the timestamp clock runs at a rate that no system has, or not at all; its samples are left out";
    /// Drift was found and taken out.
    DRIFT_CORRECTED = 6, "drift-corrected",
        "the sender's clock drifts against the observer's; the drift was measured, in this direction or the other one, or told by other flows of the host, and taken out";
    /// A clock was set, or there was a long silence.
    CLOCK_STEP = 7, "clock-step",
        "a clock was set, the sender's or the observer's, or there was a silence of half an hour: what came after it has a base of its own";
    /// Packets of one direction only.
    ONE_DIRECTION = 8, "one-direction",
        "only one direction was captured: no second estimate, no round trip, and a drift only where a minute or more tells it";
    /// Frames larger than packets.
    OFFLOADED = 9, "offloaded",
        "frames larger than packets of 1500 octets: captured before segmentation or after coalescing, one sample for each frame; or a network with larger packets, where each is one";
    /// The bookkeeping of acknowledgements overflowed.
    LOST_TRACK = 10, "lost-track",
        "more data was under way, or out of order, than is kept track of: some echoed samples are missing";
    /// Samples were given up for want of memory.
    EVICTED = 11, "evicted",
        "earlier samples were given up to stay within the memory allowed (--memory)";
    /// Fewer than 50 samples or ten seconds.
    SHORT = 12, "short",
        "fewer than 50 samples, or less than ten seconds: the queue may never have been seen empty";
    /// Several clocks behind one address.
    SEVERAL_CLOCKS = 13, "several-clocks",
        "clocks of different rates, drifts or offsets, or different hop limits, behind one address at one time: several hosts share it (NAT), and so may their uplink; for uTP, programs on one host whose clocks begin when they do look the same";
    /// The time that packets themselves take on the slowest link was found and taken out.
    TRANSMISSION_REMOVED = 14, "transmission-removed",
        "long packets took longer than short ones where nothing queued, and followed each other at that distance: a packet's own time on the slowest link, which is no queue, was taken out";
    /// Delays exceed the round trips that they are part of.
    BEYOND_ROUND_TRIPS = 15, "beyond-round-trips",
        "delays are on average more than twice as long as the round trips that they are part of, and 100 ms more: a clock was set, or runs at another rate than was found; they are no queue's";
    /// The base was told by other flows of the host.
    BASE_TOLD = 16, "base-told",
        "a queue stood already when the flow was first seen, as others of its host show, which saw it at the same times: its delays are counted from where theirs are";
}

impl Flags {
    /// Both sets of flags.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without others.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// More than the number of any.
    pub(crate) const COUNT: usize = u32::BITS as usize;

    /// A flag by its number.
    pub(crate) const fn numbered(number: usize) -> Self {
        Self(1 << number)
    }

    /// The numbers of the flags that are set.
    pub(crate) fn numbers(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let number = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (number < u32::BITS).then_some(number as usize)
        })
    }

    /// Adds flags if a condition holds.
    pub(crate) fn set_if(&mut self, condition: bool, other: Self) {
        if condition {
            self.0 |= other.0;
        }
    }

    /// True where every flag of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().filter(move |(flag, ..)| self.has(*flag)).map(|&(_, name, _)| name)
    }
}

/// The round trip between the observer and a host: propagation and queues both ways, and the host's own time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RoundTrip {
    /// Measurements.
    pub samples: u32,
    /// The shortest, in milliseconds.
    pub min_ms: f64,
    /// The mean, in milliseconds.
    pub mean_ms: f64,
}

/// One direction of a flow: the delay of what `source` sent.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowReport {
    /// Who sent the packets, and has the queue.
    pub source: Socket,
    /// Who they were for.
    pub destination: Socket,
    /// What carried them.
    pub protocol: Protocol,
    /// Packets of this direction.
    pub packets: u32,
    /// Octets of them on the wire.
    pub bytes: u64,
    /// When the flow's first packet of either direction was seen, and the last one of this direction, in microseconds since the
    /// capture's epoch.
    pub span_us: (u64, u64),
    /// By the direct estimate.
    pub direct: Option<Summary>,
    /// By the echoed estimate.
    pub echoed: Option<Summary>,
    /// Ticks per second of the sender's clock.
    pub clock_hz: Option<f64>,
    /// How much faster the observer's clock runs than the sender's, in parts per million, where that could be told.
    pub drift_ppm: Option<f64>,
    /// The round trip between observer and source.
    pub round_trip: Option<RoundTrip>,
    /// What to bear in mind.
    pub flags: Flags,
}

/// A host: what all flows that it sent say of its uplink.
#[derive(Clone, PartialEq, Debug)]
pub struct HostReport {
    /// The host's address.
    pub address: IpAddr,
    /// How many directions of flows there were.
    pub flows: u32,
    /// All samples together.
    pub all: Summary,
    /// Those of uTP.
    pub utp: Option<Summary>,
    /// Those of TCP.
    pub tcp: Option<Summary>,
    /// Ticks per second of its TCP timestamp clock, where there is one.
    pub clock_hz: Option<f64>,
    /// The shortest round trip between observer and host, and the mean of the flows' means.
    pub round_trip: Option<RoundTrip>,
    /// What to bear in mind about any of the flows that count.
    pub flags: Flags,
}

/// Everything.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// What became of the packets.
    pub counters: Counters,
    /// Hosts, the worst first.
    pub hosts: Vec<HostReport>,
    /// Hosts that sent something, but too little to say anything of.
    pub hosts_with_too_little: u64,
    /// Flows of UDP that are no uTP.
    pub other_udp_flows: u64,
    /// Flows of TCP without timestamps.
    pub timeless_tcp_flows: u64,
    /// Directions of TCP flows whose timestamps run at a rate that no system has; their samples are left out.
    pub odd_tcp_clocks: u64,
}
