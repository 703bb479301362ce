//! What the papers about swarms share: running many swarms on all cores, what is kept of each, and the report.

mod cells;
mod claim;
mod execute;
mod measured;
mod plan;
mod report;

pub use cells::Cells;
#[cfg(test)]
pub use cells::{assert_in_place, numbered};
#[cfg(test)]
pub use claim::assert_open;
pub use claim::{Claim, Shown, correlation, line_fit, show};
pub use execute::{ExecuteSwarmsError, execute};
pub use measured::{Class, Measured};
pub use plan::{Job, Keyed, Selection, jobs};
pub use report::{Command, Paper, Part, Report};
