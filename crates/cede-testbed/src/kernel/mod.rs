//! Do the models behave as the kernel's own? Two TCP flows of the kernel's, with a congestion control each, at a bottleneck
//! of the kernel's: the first alone, both, the second alone.
//!
//! The layout is that of [`gentle`](crate::gentle), a token bucket on the router's port, with a delay line on the way back,
//! so that the path has a round-trip time of its own. [`predict`] runs the same with the model TCP.
//!
//! *What it leaves out:* loss other than the queue's, and ECN.
//! *How it was validated:* `tests/kernel.rs`; `docs/validation.md` holds the two worlds side by side.

mod measure;
mod predict;
mod showing;
mod spec;

pub use measure::{Measured, measure};
pub use predict::predict;
pub use showing::{PhaseShowing, Sample, Showing};
pub use spec::{KernelSpec, Phase};
