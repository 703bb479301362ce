//! The evaluation published with LEDBAT++ for libutp (Meng, 2020): a scavenger beside CUBIC, BBR and Proteus-P.
//!
//! ```text
//! Request -> execute() -> Results -> Report::of() -> figures, statements, tables, files
//! ```
//! * [`setting`] is the test bed and its script, and duels with BBR that ask why; [`measure`] what a run showed.
//! * `execute` runs everything on all cores. `statements` holds what was published, each statement with a criterion that
//!   is computed from the data. `draw` and `report` show it.
//!
//! **Invariant:** a criterion knows the published figures, and no parameter of a run does.
//!
//! *What it leaves out:* the real link's jitter, and the kernel's own TCP. *How it was validated:* `docs/ledbatpp.md`.

mod draw;
mod execute;
pub mod measure;
mod report;
pub mod setting;
mod statements;

pub use execute::{Request, Results, execute};
pub use measure::Measured;
pub use report::Report;
