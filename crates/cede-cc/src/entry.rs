//! What a controller's file says of it, for the registry to list.

use crate::params::{ParamDoc, ParamError, Params};
use crate::{Controller, Path};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Builds a controller from parameters for a path.
pub type Build = fn(&Params, &Path) -> Result<Box<dyn Controller>, ParamError>;

/// What is known of one controller.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name that scenarios use.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Its rule.
    pub formula: &'static str,
    /// Where the rule is written down.
    pub source: &'static str,
    /// Its parameters with their defaults.
    pub params: &'static [ParamDoc],
    /// It responds to congestion. What does not is for tests only.
    pub responsive: bool,
    /// Constants of it are unverified.
    pub experimental: bool,
    /// Builds one. Parameters that are not given take their defaults.
    pub build: Build,
}

/// What a controller is built for where only its word is wanted.
const ANY_PATH: Path = Path { mss_bytes: 1_400, initial_cwnd_bytes: 14_000, max_cwnd_bytes: 1 << 24 };

impl Entry {
    /// [`Controller::answers_marks`] of one with default parameters.
    #[must_use]
    pub fn answers_marks(&self) -> bool {
        (self.build)(&Params::new(), &ANY_PATH).is_ok_and(|built| built.answers_marks())
    }

    /// Every parameter at each end of its range, the others at their defaults: for tests. Where one is bound by another, that one
    /// makes room for it.
    #[must_use]
    pub fn at_the_ends(&self, path: &Path) -> Vec<Params> {
        let ends =
            self.params.iter().flat_map(|doc| doc.kind.extremes().into_iter().map(|value| (doc.name, value)));
        let with_room = |alone: Params| match (self.build)(&alone, path) {
            Err(ParamError::Conflict { .. }) => self.made_room(&alone, path).unwrap_or(alone),
            _ => alone,
        };
        ends.map(|(name, value)| with_room(Params::new().with(name, value))).collect()
    }

    fn made_room(&self, alone: &Params, path: &Path) -> Option<Params> {
        let others = self.params.iter().filter(|doc| alone.get(doc.name).is_none());
        let mut beside = others
            .flat_map(|doc| doc.kind.extremes().into_iter().map(|value| alone.clone().with(doc.name, value)));
        beside.find(|params| (self.build)(params, path).is_ok())
    }
}
