//! Figures, tables and reports: one description, drawn as SVG, PNG, terminal characters or a page of HTML.
//!
//! **Nothing here knows what a flow or a packet is.** What comes in are names, units and numbers; what goes
//! out are pictures and text. No installed font is needed and nothing is fetched.
//!
//! | part | what it is |
//! |---|---|
//! | [`Figure`], [`Panel`], [`Axis`], [`Series`], [`Legend`] | what is to be shown |
//! | [`Figure::to_svg`], [`Figure::to_png`] | pictures, both drawn from the same layout |
//! | [`Table`], [`Cell`], [`Verdict`], [`Align`] | tables; [`Table::to_markdown`], [`Table::to_csv`] |
//! | [`terminal::chart`], [`terminal::charts`], [`terminal::sparkline`], [`terminal::table`] | the same in a terminal |
//! | [`html::Report`], [`html::Section`] | a self-contained page of prose, figures with read-out, tables, code |
//! | [`ticks`] | tick placement and the printing of numbers |
//!
//! ```
//! use cede_plot::{Axis, Figure, Panel, Series, terminal};
//!
//! let ramp = (0..=60).map(|t| (f64::from(t), 10.0 - f64::from(t) / 10.0));
//! let rates = Panel::new("Rates")
//!     .x(Axis::new("time").unit("s"))
//!     .y(Axis::new("rate").unit("Mbit/s").from(0.0))
//!     .series(Series::line("scavenger", ramp))
//!     .series(Series::steps("other", [(0.0, 0.0), (20.0, 8.0), (60.0, 8.0)]))
//!     .region(20.0, 60.0, "both active")
//!     .hline(10.0, "capacity");
//!
//! println!("{}", terminal::chart(&rates, 80, 16, false));
//!
//! let figure = Figure::new("A flow that yields").caption("One run, seed 1.").panel(rates);
//! let svg = figure.to_svg();
//! assert!(svg.contains("time (s)"));
//! let png = figure.to_png(2.0)?;
//! assert_eq!(&png[1..4], b"PNG");
//! # Ok::<(), cede_plot::PngError>(())
//! ```
//!
//! Equal series names share colour, dash and marker throughout a figure. Data may be degenerate: empty, one
//! point, all equal, not finite, of any magnitude; there is always a picture.

mod decimate;
mod drawing;
mod escape;
mod figure;
mod font;
mod geometry;
pub mod html;
mod layout;
pub mod png;
mod render;
mod scale;
mod series;
mod style;
mod svg;
mod table;
pub mod terminal;
pub mod ticks;

pub use figure::{Axis, Figure, Legend, Panel, Scale, Series};
pub use png::PngError;
pub use style::{Dash, Marker, SLOTS};
pub use table::{Align, Cell, Table, Verdict};
