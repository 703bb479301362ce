//! What the experiment is made of.

use cede_units::{Duration, Rate};

/// Two TCP flows: the first alone, both, the second alone.
#[derive(Clone, Debug)]
pub struct KernelSpec {
    /// The congestion controls, by the names that the kernel and the registry of `cede-cc` share: `cubic`, `reno`, `bbr`.
    pub controls: [String; 2],
    /// The bottleneck's rate. The kernel counts Ethernet frames, the simulated world IP datagrams.
    pub rate: Rate,
    /// The round-trip time of the empty path.
    pub rtt: Duration,
    /// How long a packet waits in the full buffer.
    pub buffer: Duration,
    /// How long each flow is alone.
    pub alone: Duration,
    /// How long both are there.
    pub together: Duration,
}

impl Default for KernelSpec {
    fn default() -> Self {
        Self {
            controls: ["cubic".to_string(), "bbr".to_string()],
            rate: Rate::from_mbit(20),
            rtt: Duration::from_millis(40),
            buffer: Duration::from_millis(200),
            alone: Duration::from_secs(40),
            together: Duration::from_secs(80),
        }
    }
}

/// Who is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The first alone.
    First,
    /// Both.
    Both,
    /// The second alone.
    Second,
}

impl Phase {
    /// In the order of time.
    pub const ALL: [Self; 3] = [Self::First, Self::Both, Self::Second];
}

impl KernelSpec {
    /// When a phase begins and ends.
    #[must_use]
    pub fn span(&self, phase: Phase) -> [Duration; 2] {
        let joined = self.alone + self.together;
        match phase {
            Phase::First => [Duration::ZERO, self.alone],
            Phase::Both => [self.alone, joined],
            Phase::Second => [joined, self.duration()],
        }
    }

    /// How long it lasts.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.alone + self.together + self.alone
    }

    /// When each flow begins and stops.
    pub(super) fn flows(&self) -> [[Duration; 2]; 2] {
        let joined = self.alone + self.together;
        [[Duration::ZERO, joined], [self.alone, self.duration()]]
    }
}
