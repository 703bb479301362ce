//! One transfer over an emulated path: measured with real sockets, and predicted by the simulated world.
//!
//! [`measure`] sends through the [relay](crate::relay), [`predict`] runs the same path, controller and buffers in virtual
//! time. Both give a [`Showing`], so the two stand side by side.
//!
//! *What it leaves out of the prediction:* the machine (scheduling, system calls, timers of a millisecond), and that
//! packets above the path's MTU are sent and lost: the simulated search ends at the MTU.
//! *How it was validated:* `tests/path.rs` holds the two against each other, as far as the relay vouches for its own
//! punctuality; the figures in `docs/validation.md` come from `cede lab path`.

mod measure;
mod predict;
mod series;
mod spec;

pub use measure::{Measured, PathError, measure};
pub use predict::predict;
pub use series::{Sample, Showing};
pub use spec::PathSpec;
