//! What is known of the terminal, and printing to it.

use crate::failure::Failure;
use serde_json::Value;
use std::borrow::Cow;
use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Standard output has been closed at its other end.
static UNREAD: AtomicBool = AtomicBool::new(false);
/// Why standard output did not take something of what goes on.
static UNTOLD: OnceLock<Failure> = OnceLock::new();

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
    /// How wide tables may be: where nobody looks at them at once, as wide as they are.
    pub width: usize,
}

impl Screen {
    /// The screen of a command: with `json` standard output belongs to programs, and words go to standard error.
    pub fn new(json: bool) -> Self {
        let terminal = if json { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
        let told = told_columns(terminal);
        let columns = told.unwrap_or(DEFAULT_COLUMNS).clamp(MIN_COLUMNS, MAX_COLUMNS);
        let width = told.map_or(usize::MAX, |told| told.max(MIN_COLUMNS));
        Self { to_stderr: json, colour: wants_colour(terminal), columns, width }
    }

    /// Prints a text. Whoever has stopped reading (`| head`) is no error.
    ///
    /// # Errors
    /// As [`print()`]; what standard error does not take is lost.
    pub fn say(&self, text: &str) -> Result<(), Failure> {
        let text = tame(text, self.colour);
        if self.to_stderr {
            let _ = io::stderr().write_all(text.as_bytes());
            return Ok(());
        }
        print(&text)
    }

    /// A text in bold, where there are colours.
    pub fn bold(&self, text: &str) -> String {
        let text = tame(text, false);
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A text in lines that fit, each with a line feed; the first begins with `head`, the others with as much room.
    pub fn wrap(&self, head: &str, text: &str) -> String {
        wrapped(head, text, self.columns)
    }

    /// A text with its `**strong**` parts in bold, or without the stars where there are no colours.
    pub fn strong(&self, text: &str) -> String {
        let parts = text.split("**").enumerate();
        parts.map(|(k, part)| if k % 2 == 1 { self.bold(part) } else { part.to_string() }).collect()
    }
}

/// A text in lines of at most `columns`, each with a line feed. The first begins with `head`, the others with as much
/// room. Escape sequences take no room, and a hard space is no place to break.
pub fn wrapped(head: &str, text: &str, columns: usize) -> String {
    let indent = width(head);
    let (mut out, mut used) = (head.to_string(), indent);
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        if used > indent && used + 1 + width(word) > columns {
            out += &format!("\n{}", " ".repeat(indent));
            used = indent;
        } else if used > indent {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += width(word);
    }
    out.replace('\u{a0}', " ") + "\n"
}

/// Columns that a text takes, without escape sequences.
fn width(text: &str) -> usize {
    text.replace("\x1b[1m", "").replace("\x1b[0m", "").chars().count()
}

/// Somebody else's words in a line: what a terminal would take for a command does not reach it.
pub fn printable(text: &str) -> String {
    text.replace(commands, REPLACED)
}

/// The name of a file in a line.
pub fn named(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// What stands for a character that is not shown.
const REPLACED: &str = "\u{fffd}";

fn commands(c: char) -> bool {
    // Marks that turn the order of writing round make one file's name look like another's.
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns(c)
}

/// Words for people, as a terminal may have them: the names of files and what others say are in them, in errors of any crate, too.
/// Nothing passes that a terminal takes for a command but ends of lines, tabs and, where there are colours, what sets them.
pub fn tame(text: &str, colour: bool) -> Cow<'_, str> {
    let is_wild = |c| commands(c) && !matches!(c, '\n' | '\t');
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(is_wild) {
        let (plain, wild) = rest.split_at(at);
        let whole = wild.chars().next().map_or(0, char::len_utf8);
        let (kept, after) = match paint(wild).filter(|_| colour) {
            Some(bytes) => wild.split_at(bytes),
            None => (REPLACED, &wild[whole..]),
        };
        out += plain;
        out += kept;
        rest = after;
    }
    if out.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(out + rest) }
}

/// Octets of the sequence that sets colours (SGR, ECMA-48 section 8.3.117) which a text begins with, if it does.
fn paint(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then(|| "\x1b[".len() + end + 1)
}

/// Prints data to standard output. Whoever has stopped reading is no error.
///
/// # Errors
/// What else the system says, such as a full disk.
pub fn print(text: &str) -> Result<(), Failure> {
    print_with(|out| out.write_all(text.as_bytes()))
}

/// Prints a JSON document, laid out for people too.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// Prints a JSON document as one line of several.
///
/// # Errors
/// As [`print()`].
pub fn print_json_line(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

/// As [`print()`], of what goes on whether or not it can be told. That it cannot is said once, and [`all_told()`] knows it.
pub fn report(text: &str) {
    if let Err(failure) = print(text)
        && UNTOLD.get().is_none()
    {
        complain(&failure.words());
        let _ = UNTOLD.set(failure);
    }
}

/// The same of a JSON document, as one line of several.
pub fn report_json_line(value: &Value) {
    report(&format!("{value}\n"));
}

/// Whether standard output has taken all that was reported.
///
/// # Errors
/// It has not.
pub fn all_told() -> Result<(), Failure> {
    let text = |failure: &Failure| format!("not all was told: {}", failure.text().unwrap_or_default());
    UNTOLD.get().map_or(Ok(()), |failure| Err(Failure::Failed(text(failure))))
}

/// As [`print()`], for what is written piece by piece.
///
/// # Errors
/// As [`print()`].
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut stdout = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            UNREAD.store(true, Relaxed);
            Ok(())
        }
        Err(error) => Err(Failure::Failed(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Whether whoever read standard output has stopped: what runs until it is interrupted need not run any longer.
pub fn is_unread() -> bool {
    UNREAD.load(Relaxed)
}

/// Says something beside the data, to standard error. What that does not take is lost.
pub fn mention(text: &str) {
    let _ = io::stderr().write_all(tame(text, false).as_bytes());
}

/// Prints to standard error; "error:" at the beginning of a line is red where there are colours.
pub fn complain(text: &str) {
    let colour = wants_colour(io::stderr().is_terminal());
    for line in tame(text, false).lines() {
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
    forced || (is_terminal && obeys(env::var_os("TERM").as_deref()))
}

/// Whether a terminal of this name does more than show text: one that calls itself dumb takes no commands.
fn obeys(name: Option<&OsStr>) -> bool {
    name.is_none_or(|name| name != "dumb")
}

/// Whether a line on standard error can be drawn over.
pub fn draws_over() -> bool {
    io::stderr().is_terminal() && obeys(env::var_os("TERM").as_deref())
}

/// How wide the terminal is that standard error is shown on.
pub fn columns_of_terminal() -> usize {
    told_columns(true).unwrap_or(DEFAULT_COLUMNS)
}

/// How wide the terminal is, or how wide `COLUMNS` says that it is.
fn told_columns(is_terminal: bool) -> Option<usize> {
    let told = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    told.or_else(|| is_terminal.then(measured).flatten())
}

#[cfg(test)]
mod tests {
    use super::{obeys, tame, wrapped};
    use std::ffi::OsStr;

    #[test]
    fn a_dumb_terminal_takes_no_commands() {
        let of = |name: &'static str| obeys(Some(OsStr::new(name)));
        assert_eq!((of("dumb"), of("xterm-256color"), obeys(None)), (false, true, true));
    }

    #[test]
    fn paragraphs_are_wrapped_without_counting_colours() {
        assert_eq!(wrapped("", "ab cd ef", 5), "ab cd\nef\n");
        assert_eq!(wrapped("", "\x1b[1mab\x1b[0m cd ef", 5), "\x1b[1mab\x1b[0m cd\nef\n");
        assert_eq!(wrapped("", "a 13\u{a0}% b", 5), "a\n13 %\nb\n");
        assert_eq!(wrapped("", "longer than that", 3), "longer\nthan\nthat\n");
        assert_eq!(wrapped("- ", "ab cd ef", 7), "- ab cd\n  ef\n");
    }
    #[test]
    fn nothing_that_a_terminal_obeys_is_shown_but_colours_of_our_own() {
        // A title that is set, a cursor that is moved, the second set of control characters, a turn of the order of writing.
        let wild = "a\x1b]0;title\x07b\x1b[2Jc\u{9b}5Ad\u{202e}e\r";
        let shown = "a\u{fffd}]0;title\u{fffd}b\u{fffd}[2Jc\u{fffd}5Ad\u{fffd}e\u{fffd}";
        assert_eq!((tame(wild, false), tame(wild, true)), (shown.into(), shown.into()));
        let painted = "\x1b[1;31merror:\x1b[0m a\tb\n";
        assert_eq!(tame(painted, true), painted);
        assert_eq!(tame(painted, false), "\u{fffd}[1;31merror:\u{fffd}[0m a\tb\n");
        assert_eq!(tame("\x1b[1", true), "\u{fffd}[1");
    }
}
