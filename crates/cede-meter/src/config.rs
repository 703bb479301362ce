//! What a meter is asked to do.

use crate::intake::Selection;
use crate::pseudonyms::Pseudonyms;
use crate::report::{Estimator, Protocol};

/// What a meter is asked to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Octets that flows, samples and the making of the report may take: thirteen sixteenths for flows and samples.
    /// Beyond, samples that come soon after others are left out, and what was quiet longest is forgotten.
    pub memory_bytes: usize,
    /// Which packets are looked at.
    pub selection: Selection,
    /// A host with fewer samples is not listed.
    pub samples_min: u64,
    /// What delays are counted from.
    pub base: Base,
    /// Which estimate the hosts' figures are made of.
    pub estimator: Estimator,
    /// Only this protocol, if any.
    pub protocol: Option<Protocol>,
    /// Under what names whoever is handed hosts and flows shows them, if not under their own: they come in the order of these then, as
    /// that of true addresses would tell of each which half of a net it is in.
    pub pseudonyms: Option<Pseudonyms>,
}

/// Where a direction's queue is taken to have been empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Base {
    /// At the shortest delay of all that was seen: the best there is once everything was seen.
    #[default]
    Whole,
    /// At the shortest delay of so many microseconds before each sample, and up to a tenth more; at the beginning of that first
    /// stretch. A path that becomes longer shows as a queue for that long, a queue that is never empty for longer as none.
    Sliding(u64),
    /// At the shortest delay so far, as one must say who speaks at once.
    Running,
}

impl Default for Config {
    /// 512 MiB, from the first packet to the last, hosts with 20 samples, by the direct estimate.
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            selection: Selection::default(),
            samples_min: 20,
            base: Base::Whole,
            estimator: Estimator::Direct,
            protocol: None,
            pseudonyms: None,
        }
    }
}
