//! What the papers about swarms share: running many swarms on all cores, what is kept of each, and the report.

mod claim;
mod execute;
mod measured;
mod report;

pub use claim::{Claim, correlation, line_fit, show, verdict};
pub use execute::{ExecuteSwarmsError, Job, execute};
pub use measured::{Class, Measured};
pub use report::{Paper, Part, Report};
