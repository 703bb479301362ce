//! Does uTP make way? A real bottleneck of the kernel's, a uTP flow, and a kernel TCP flow that comes and goes, with a
//! congestion control of the kernel's.
//!
//! Three network namespaces: sender, router, receiver. The bottleneck is a token bucket (`tbf`) on the *router's* port: on
//! the sender's own interface, today's kernel tells its TCP of local drops and keeps its queue short, and the picture is
//! false. [`measure`] lays them out, runs the traffic in threads that have entered them, and removes them, whatever
//! happens. It needs root and iproute2; where it cannot run it says so ([`NetnsError::Impossible`](crate::NetnsError::Impossible)).
//!
//! [`predict`] runs the same in the simulated world; both give a [`Showing`].
//!
//! The round trip is the queue alone, or has the delay line of [`kernel`](crate::kernel) on the way back.
//!
//! *What it leaves out:* loss other than the queue's, and ECN.
//! *How it was validated:* `tests/gentle.rs`; `docs/validation.md` holds the two worlds side by side.

mod measure;
mod predict;
mod showing;
mod spec;

pub use measure::{Measured, measure};
pub use predict::predict;
pub use showing::{Sample, Showing};
pub use spec::GentleSpec;
