//! Runs of the simulated world beside what is measured.

use cede_lab::outcome::Outcome;
use cede_lab::run::{Run, RunError, Watcher};
use cede_lab::scenario::Scenario;
use cede_units::Instant;

/// What becomes of a scenario in virtual time. `go_on` is asked now and then.
///
/// # Errors
/// [`RunError::Interrupted`] where `go_on` said no.
pub(crate) fn outcome_of(scenario: &Scenario, go_on: &mut dyn FnMut() -> bool) -> Result<Outcome, RunError> {
    Run::new(scenario).go(&mut Asking(go_on)).map(|(outcome, _)| outcome)
}

struct Asking<'a>(&'a mut dyn FnMut() -> bool);

impl Watcher for Asking<'_> {
    fn progress(&mut self, _: Instant, _: Instant) -> bool {
        (self.0)()
    }
}

/// Payload in what each of two flows delivered: the series count packets with their headers, the receivers' counters of a measurement
/// payload.
pub(crate) fn payload_shares(outcome: &Outcome) -> [f64; 2] {
    [0, 1].map(|flow: usize| {
        let flow = &outcome.flows[flow];
        if flow.rate_mbps > 0.0 { flow.goodput_mbps / flow.rate_mbps } else { 0.0 }
    })
}
