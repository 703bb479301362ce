//! The battery: pinned scenarios with pass marks that any background controller should survive.
//!
//! [`battery`] checks a controller, from the registry or from anywhere else, over uTP; [`Battery`] does the same with
//! parameters, over TCP, in part, on several cores and with somebody listening. Each [`Case`] tells the story that it
//! guards against, with the public incident where there is one, and argues its marks. The marks stand beside their
//! reasons in `marks`, and in the file of a family where only that needs them; `docs/controllers.md` says
//! which were set when results were known.
//!
//! Every run is a scenario of the laboratory's own format: [`Findings::scenarios`] and [`Battery::scenarios`] hold their
//! texts, to be run again with `cede run`.
//!
//! [`Battery::vary`] runs the same cases on links whose rates, delays and buffers are drawn anew; [`ablations`] names what a
//! controller's parts are worth.
//!
//! **What it leaves out.** Radio links whose rate changes by the millisecond, paths with several bottlenecks, and swarms
//! with hundreds of connections: they are sweeps of their own. Marks are pass or fail: a controller that passes two
//! times over is not told from one that passes just so, except by its figures.
//!
//! **How it was validated.** A window that ignores everything fails to yield and fails every mark on delay; Reno passes
//! what asks for throughput and fails what asks for yielding (tests).

mod ablate;
mod alone;
mod application;
mod bench;
mod buffers;
mod case;
mod clock;
mod execute;
mod feedback;
mod loss;
pub mod marks;
mod path;
mod queues;
mod setup;
mod sharing;
mod vary;
mod yields;

pub use ablate::{Difference, ablations, differences};
pub use bench::{Staged, Subject};
pub use case::{Case, Family, Finding, Mark, Missing};
pub use execute::{Battery, Findings, Progress};

use crate::run::RunError;
use cede_cc::registry::Entry;

/// Every case, family by family.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    let families = [
        alone::CASES,
        yields::CASES,
        loss::CASES,
        path::CASES,
        clock::CASES,
        feedback::CASES,
        sharing::CASES,
        buffers::CASES,
        queues::CASES,
        application::CASES,
    ];
    families.into_iter().flatten()
}

/// Checks a controller with its default parameters over uTP, in every case, on all cores. The entry need not be in the
/// registry: whoever writes a controller elsewhere can check it by the same marks.
///
/// # Errors
/// [`RunError`] where a scenario could not be run.
pub fn battery(entry: &Entry) -> Result<Vec<Findings>, RunError> {
    Battery::new(Subject::new(entry)).run(&|_| true)
}
