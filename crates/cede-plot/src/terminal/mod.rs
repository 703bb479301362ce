//! Charts, sparklines and tables in a terminal's characters.
//!
//! No line is ever wider than asked for. Colour means ANSI escape sequences; without it, lines are told
//! apart by marks set on them. Control characters in labels are not passed on.

mod canvas;
mod chart;
mod plot;
mod row;
mod spark;
mod table;

pub use chart::{chart, charts};
pub use spark::sparkline;
pub use table::table;
