//! What the tests of disciplines share: packets by number, and an ear for their fates.

use super::{Verdicts, Waiting};
use crate::log::{Counters, DropCause, LinkLog};
use alloc::vec::Vec;
use cede_units::Instant;

/// A packet of this number.
pub(crate) fn waiting(token: u64, bytes: u32, since: Instant) -> Waiting<u64> {
    Waiting { token, bytes, since }
}

/// Hears of drops; no packet understands marks.
#[derive(Default)]
pub(crate) struct Listening {
    pub(crate) dropped: Vec<(u64, DropCause)>,
}

impl LinkLog<u64> for Listening {
    fn dropped(&mut self, &packet: &u64, _: Instant, cause: DropCause) {
        self.dropped.push((packet, cause));
    }

    fn flow_key(&self, packet: &u64) -> u64 {
        packet >> 32
    }
}

/// Every packet understands marks.
#[derive(Default)]
pub(crate) struct Marking {
    pub(crate) marked: Vec<u64>,
}

impl LinkLog<u64> for Marking {
    fn mark(&mut self, &mut packet: &mut u64, _: Instant) -> bool {
        self.marked.push(packet);
        true
    }
}

/// What a discipline's verdicts go to.
#[derive(Default)]
pub(crate) struct Desk<L = Listening> {
    pub(crate) log: L,
    pub(crate) counters: Counters,
    pub(crate) lost: Vec<u64>,
}

impl<L> Desk<L> {
    pub(crate) fn verdicts(&mut self) -> Verdicts<'_, u64, L> {
        Verdicts { log: &mut self.log, counters: &mut self.counters, lost: &mut self.lost }
    }
}

impl Desk {
    pub(crate) fn dropped(&self) -> &[(u64, DropCause)] {
        &self.log.dropped
    }
}

/// `tests/vectors/aqm.json`.
pub(crate) fn vectors() -> serde_json::Value {
    serde_json::from_str(include_str!("../../tests/vectors/aqm.json")).expect("it is JSON")
}

/// One of its lists.
pub(crate) fn vector(name: &str) -> Vec<serde_json::Value> {
    vectors()[name].as_array().unwrap_or_else(|| panic!("no list is called {name}")).clone()
}

pub(crate) fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}
