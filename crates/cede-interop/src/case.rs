//! The axes of the matrix.

use crate::relay::Harm;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Its loopback address.
    #[must_use]
    pub fn loopback(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::LOCALHOST.into(),
            Self::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::V4 { "IPv4" } else { "IPv6" })
    }
}

/// What lies between the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// Nothing.
    Direct,
    /// A relay that loses 1 % each way.
    Lossy,
    /// A relay that loses 3 %, lets others overtake 2 %, and sends 1 % twice, each way.
    Rough,
}

impl Path {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Direct, Self::Lossy, Self::Rough];

    /// What the relay does, where there is one.
    #[must_use]
    pub fn harm(self) -> Option<Harm> {
        match self {
            Self::Direct => None,
            Self::Lossy => Some(Harm { loss: 0.01, reordering: 0.0, duplication: 0.0 }),
            Self::Rough => Some(Harm { loss: 0.03, reordering: 0.02, duplication: 0.01 }),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Lossy => "1 % lost",
            Self::Rough => "3 % lost, 2 % late, 1 % twice",
        })
    }
}

/// Which way the data go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Ours sends.
    ToTheirs,
    /// Theirs sends.
    ToOurs,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::ToTheirs { "ours to theirs" } else { "theirs to ours" })
    }
}

/// Who opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opener {
    /// The end that sends the data.
    Sender,
    /// The end that receives them.
    Receiver,
}

impl fmt::Display for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Sender { "sender" } else { "receiver" })
    }
}

/// One transfer, whoever does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Which way the data go.
    pub direction: Direction,
    /// Who opens the connection.
    pub opener: Opener,
    /// How much.
    pub bytes: usize,
    /// Over what.
    pub family: Family,
    /// Through what.
    pub path: Path,
}

impl Case {
    /// Does ours open the connection?
    #[must_use]
    pub fn ours_opens(&self) -> bool {
        (self.direction == Direction::ToTheirs) == (self.opener == Opener::Sender)
    }

    /// Seeds data and relay: a number that differs between cases, and is the same in each run.
    #[must_use]
    pub fn seed(&self) -> u64 {
        let axes = [self.direction as u64, self.opener as u64, self.family as u64, self.path as u64];
        axes.iter().fold(self.bytes as u64, |seed, axis| seed * 4 + axis)
    }

    /// Large enough to keep a machine busy.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.bytes > 10 << 20
    }

    /// After this it has failed: a stack that recovers by timeouts of seconds alone still has room for dozens.
    #[must_use]
    pub fn limit(&self) -> Duration {
        Duration::from_secs(if self.is_large() { 150 } else { 60 })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, opener, family, path, .. } = self;
        write!(f, "{direction}, {}, {family}, {path}, opened by the {opener}", size(self.bytes))
    }
}

/// A size as people write it.
#[must_use]
pub fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} B") }
}
