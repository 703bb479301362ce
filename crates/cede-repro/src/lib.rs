//! Papers whose experiments are run again, one module each, and of each claim whether it holds.
//!
//! * [`lcn10`]: LEDBAT, TCP-LP and NICE compared by simulation (LCN 2010).
//! * [`ledbatpp`]: the evaluation of a libutp with LEDBAT++.
//! * [`bufferbloat`]: passive measurement of remote queues (GLOBECOM 2013).
//! * [`tma12`] and [`rao10`]: BitTorrent swarms over TCP and uTP (TMA 2012), under latency and loss (P2P 2010); what both
//!   share is in [`swarms`].
//!
//! Each has a setting (the paper's, with what it leaves open), an execution that keeps what it has measured, statements with
//! criteria, and a report.
//!
//! **Invariant:** what is measured is `cede-lab`'s and `cede-meter`'s; nothing here decides what a controller or a peer does.

pub mod bufferbloat;
pub mod lcn10;
pub mod ledbatpp;
pub mod rao10;
pub mod swarms;
pub mod tma12;

mod parallel;
mod statement;

pub use parallel::Progress;
pub use statement::{Judgement, Statement, Statements, Tally, known};
use statement::{lead, tally};

use cede_plot::Figure;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file that is to be written: its name and what is in it.
type File = (String, Vec<u8>);

/// A picture as SVG and as PNG.
fn drawn(name: &str, picture: &Figure) -> io::Result<[File; 2]> {
    let png = picture.to_png(2.0).map_err(io::Error::other)?;
    Ok([(format!("{name}.svg"), picture.to_svg().into_bytes()), (format!("{name}.png"), png)])
}

/// Writes files into a folder, which is made if it is not there, and answers with their paths in the same order.
fn write_all(folder: &Path, files: Vec<File>) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let write = |(name, content): File| {
        let path = folder.join(name);
        fs::write(&path, content).map(|()| path)
    };
    files.into_iter().map(write).collect()
}

/// A report's page, its tables as Markdown, and everything as JSON.
fn pages(name: &str, html: String, markdown: String, json: &Value) -> Vec<File> {
    vec![
        (format!("{name}.html"), html.into_bytes()),
        (format!("{name}.md"), markdown.into_bytes()),
        (format!("{name}.json"), format!("{json:#}\n").into_bytes()),
    ]
}
