//! What is known of the terminal, and printing to it.

use std::env;
use std::io::{self, IsTerminal, Write};

/// Columns where nothing tells how many there are.
const DEFAULT_COLUMNS: usize = 100;
/// Pictures are not drawn wider than this: on a very wide terminal they would be flat.
const MAX_COLUMNS: usize = 110;
const MIN_COLUMNS: usize = 40;

/// Where words for people go.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    to_stderr: bool,
    /// ANSI colours may be used.
    pub colour: bool,
    /// How wide lines may be.
    pub columns: usize,
}

impl Screen {
    /// The screen of a command: with `json` standard output belongs to programs, and words go to standard error.
    pub fn new(json: bool) -> Self {
        let terminal = if json { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
        Self { to_stderr: json, colour: wants_colour(terminal), columns: columns(terminal) }
    }

    /// Prints a text. Whoever has stopped reading (`| head`) is no error.
    pub fn say(&self, text: &str) {
        let _ = if self.to_stderr { io::stderr().write_all(text.as_bytes()) } else { print(text) };
    }

    /// A text in bold, where there are colours.
    pub fn bold(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A text with its `**strong**` parts in bold, or without the stars where there are no colours.
    pub fn strong(&self, text: &str) -> String {
        let parts = text.split("**").enumerate();
        parts.map(|(k, part)| if k % 2 == 1 { self.bold(part) } else { part.to_string() }).collect()
    }
}

/// Prints data to standard output. Whoever has stopped reading is no error.
///
/// # Errors
/// What else the system says, such as a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Prints to standard error; "error:" at the beginning of a line is red where there are colours.
pub fn complain(text: &str) {
    let colour = wants_colour(io::stderr().is_terminal());
    for line in text.lines() {
        let _ = match line.strip_prefix("error:") {
            Some(rest) if colour => writeln!(io::stderr(), "\x1b[1;31merror:\x1b[0m{rest}"),
            _ => writeln!(io::stderr(), "{line}"),
        };
    }
}

/// See <https://no-color.org> and <https://bixense.com/clicolors>.
fn wants_colour(is_terminal: bool) -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("NO_COLOR") {
        return false;
    }
    let forced = env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    forced || (is_terminal && env::var_os("TERM").is_none_or(|term| term != "dumb"))
}

fn columns(is_terminal: bool) -> usize {
    let told = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let columns = told.or_else(|| is_terminal.then(measured).flatten()).unwrap_or(DEFAULT_COLUMNS);
    columns.clamp(MIN_COLUMNS, MAX_COLUMNS)
}
