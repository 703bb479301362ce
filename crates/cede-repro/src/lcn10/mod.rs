//! "A hands-on assessment of transport protocols with lower than best effort priority" (Carofiglio, Muscariello, Rossi,
//! Testa; LCN 2010): Reno, LEDBAT, NICE and TCP-LP.
//!
//! ```text
//! Request -> plan() -> Plan -> execute() -> Results -> Report::of() -> figures, claims, comparison, files
//! ```
//! * [`setting`] is the paper's scenario with what it leaves open as [`setting::Choices`]; [`measure`] its metrics.
//! * [`plan()`] lists the points of the figures, [`execute()`] runs what the [`Store`] does not hold yet on all cores.
//! * Each `fig` module has its points, its drawing and the paper's claims about it, each claim with a criterion that
//!   is computed from the data; `figures` is what knows them all, `statements` gathers the claims under the paper's 35
//!   statements. `background` shows which rules of TCP-LP and NICE give what, `arithmetic` crosses those that move TCP-LP
//!   most. `others` has the points that only the other simulators have, and why one of them depends on a packet.
//!   [`sensitivity`] measures what the choices change, [`simulators`] holds points of ns-2 and ns-3 for the same
//!   scenarios.
//!
//! **Invariant:** a criterion never looks at what the paper shows, and no parameter depends on a result: a claim that
//! does not hold is reported as such.
//!
//! *What it leaves out:* nothing that the paper measures. *How it was validated:* `docs/validation.md`.

mod arithmetic;
mod background;
mod claim;
mod execute;
mod fig1;
mod fig2;
mod fig3;
mod fig4;
mod fig4_background;
mod fig5;
mod fig6;
mod figures;
pub mod measure;
mod others;
mod panels;
mod plan;
mod report;
mod results;
pub mod sensitivity;
pub mod setting;
pub mod simulators;
mod statements;
mod store;

pub use claim::Claim;
pub use execute::{ExecuteError, execute};
pub use figures::{FigureReport, plan};
pub use measure::Measured;
pub use plan::{FigureNumber, Plan, Point, Request};
pub use report::{ARITHMETIC, Report};
pub use results::{Metric, Results, Spread};
pub use store::{Store, StoreError};
