//! What the experiment is made of.

use cede_real::{ControllerChoice, StreamConfig};
use cede_units::{Duration, Rate};

/// A uTP flow, joined for a while by a TCP flow of the kernel's.
#[derive(Clone, Debug)]
pub struct GentleSpec {
    /// The bottleneck's rate. The kernel counts Ethernet frames, the simulated world IP datagrams.
    pub rate: Rate,
    /// The round-trip time of the empty path; zero where there is no delay line.
    pub rtt: Duration,
    /// How long a packet waits in the full buffer.
    pub buffer: Duration,
    /// How long the uTP flow is alone at first.
    pub alone: Duration,
    /// The congestion control of the TCP flow, by the name that the kernel and the registry of `cede-cc` share.
    pub against: String,
    /// How long the TCP flow stays.
    pub joined: Duration,
    /// How long the uTP flow is alone again.
    pub again: Duration,
    /// The delay that uTP aims at; the controller's default where it is not told.
    pub target: Option<Duration>,
    /// The uTP flow's choices.
    pub stream: StreamConfig,
}

impl Default for GentleSpec {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbit(10),
            rtt: Duration::ZERO,
            buffer: Duration::from_secs(1),
            alone: Duration::from_secs(30),
            against: "cubic".to_string(),
            joined: Duration::from_secs(40),
            again: Duration::from_secs(40),
            target: None,
            stream: StreamConfig::default(),
        }
    }
}

impl GentleSpec {
    /// How long it lasts.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.alone + self.joined + self.again
    }

    /// The delay that the uTP flow aims at: what was asked for, or its controller's default; none where it has no target.
    #[must_use]
    pub fn target(&self) -> Option<Duration> {
        let ControllerChoice::Named { name, .. } = self.controller() else { return self.target };
        let params = cede_cc::registry::find(&name)?.params;
        let target = params.iter().find(|param| param.name == "target")?;
        self.target.or_else(|| target.default.parse().ok())
    }

    pub(super) fn stream(&self) -> StreamConfig {
        match self.target {
            Some(target) => self.stream.clone().target(target),
            None => self.stream.clone(),
        }
    }

    pub(super) fn controller(&self) -> ControllerChoice {
        self.stream().controller
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_the_controllers_own() {
        let of =
            |name: &str| GentleSpec { stream: StreamConfig::with_controller(name), ..GentleSpec::default() };
        assert_eq!(of("ledbat").target(), Some(Duration::from_millis(100)));
        assert_eq!(of("cede").target(), Some(Duration::from_millis(15)));
        assert_eq!(of("reno").target(), None);
        let asked = GentleSpec { target: Some(Duration::from_millis(25)), ..of("ledbat") };
        assert_eq!(asked.target(), Some(Duration::from_millis(25)));
    }
}
