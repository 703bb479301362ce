//! Messages and blocks, a line each, while packets are read.

use super::InspectArgs;
use super::asides::Asides;
use super::line::{Line, Place};
use super::names::torrent;
use super::parquet::DataSet;
use crate::captures::Captures;
use crate::failure::Failure;
use crate::screen;
use cede_bt::wire::BlockRef;
use cede_inspect::{About, Aside, Block, Event, Report, Sink, What};
use cede_meter::{Protocol, Socket};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Octets that are printed at once.
const BATCH_BYTES: usize = 1 << 16;

/// A column of a table for programs: its name, and what it is.
type Column = (&'static str, &'static str);

const CONNECTION: [Column; 3] = [
    ("from", "Address and port of the sender of this direction."),
    ("to", "Address and port of its receiver."),
    ("connection", "Number of the connection, in the order in which connections were found."),
];
const BLOCK: [Column; 3] = [
    ("piece", "Number of the piece."),
    ("offset", "Where in the piece it begins, in octets."),
    ("length", "Octets of the block; of other messages octets of what they hold."),
];
const TRANSPORT: Column = ("transport", "What carried it: TCP, uTP, or UDP.");
const INFO_HASH: Column = ("info_hash", "The torrent, where it is known.");

/// Columns of `--log --csv`.
pub const LOG_COLUMNS: [Column; 11] = [
    (
        "time",
        "When the last octet of the message could be read in order, in seconds since 1970 (JSON: nanoseconds).",
    ),
    CONNECTION[0],
    CONNECTION[1],
    TRANSPORT,
    CONNECTION[2],
    ("type", "What was said: a kind of message, or what became of the connection."),
    BLOCK[0],
    BLOCK[1],
    BLOCK[2],
    ("detail", "What else there is to the message."),
    INFO_HASH,
];

/// Columns of `--pieces --csv`.
pub const PIECES_COLUMNS: [Column; 16] = [
    CONNECTION[0],
    CONNECTION[1],
    TRANSPORT,
    CONNECTION[2],
    INFO_HASH,
    BLOCK[0],
    BLOCK[1],
    BLOCK[2],
    (
        "requested",
        "When the block was requested, in seconds since 1970 (JSON: nanoseconds); empty where that was not seen.",
    ),
    ("first_octet", "When the first octet of the block was captured, likewise."),
    ("last_octet", "When the last octet of the block was captured, likewise."),
    ("latency_ms", "Milliseconds from the request's last octet to the block's last octet."),
    ("transfer_ms", "Milliseconds from the block's first octet to its last."),
    ("repairs", "Packets with octets of the block that were sent again or came late."),
    ("missing", "Octets of the block that the capture does not have."),
    ("duplicate", "Whether its receiver had the block before, over any connection."),
];

/// The line of headings.
fn heading(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.0).collect();
    names.join(",") + "\n"
}

/// Prints what was asked for, and counts the rest.
pub struct Log<'a> {
    args: &'a InspectArgs,
    out: String,
    /// What went wrong first; nothing is printed after it.
    broken: Option<Failure>,
    asides: Asides,
    data_set: Option<DataSet>,
}

impl<'a> Log<'a> {
    pub fn new(args: &'a InspectArgs, captures: &Captures) -> Self {
        let mut out = String::new();
        if args.csv && (args.log || args.pieces) {
            out = if args.log { heading(&LOG_COLUMNS) } else { heading(&PIECES_COLUMNS) };
        }
        let data_set = args.parquet.as_deref().map(|folder| DataSet::new(folder, captures, &args.veil));
        Self { args, out, broken: None, asides: Asides::default(), data_set }
    }

    /// Prints and writes what is left. What went wrong with either takes nothing of what was found.
    pub fn finish(mut self, report: &Report) -> (Asides, impl Iterator<Item = Failure>) {
        self.flush();
        let unwritten = self.data_set.and_then(|set| set.finish(self.args, report).err());
        (self.asides, unwritten.into_iter().chain(self.broken))
    }

    /// Whether anything more can be told: not where lines are all that was asked for, and nobody takes them.
    pub fn is_wanted(&self) -> bool {
        let is_lines_alone = (self.args.log || self.args.pieces) && self.data_set.is_none();
        !is_lines_alone || (self.broken.is_none() && !screen::is_unread())
    }

    /// Prints what there is: what a pipe brings is read as it comes.
    pub fn flush(&mut self) {
        if self.broken.is_none() && !self.out.is_empty() {
            self.broken = screen::print(&self.out).err();
        }
        self.out.clear();
    }

    /// Prints a line in the form that is asked for; `words` is that for people.
    fn print(&mut self, fields: &[(&str, Field)], words: impl FnOnce() -> String) {
        let _ = if self.args.json {
            let object: Map<_, _> =
                fields.iter().map(|(name, field)| ((*name).to_string(), field.to_json())).collect();
            writeln!(self.out, "{}", Value::Object(object))
        } else if self.args.csv {
            let row: Vec<String> = fields.iter().map(|(_, field)| field.to_csv()).collect();
            writeln!(self.out, "{}", row.join(","))
        } else {
            writeln!(self.out, "{}", words())
        };
        if self.out.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// A line with when and where it was.
    fn line(&mut self, time_ns: u64, ends: [Socket; 2], place: Place, line: &Line) {
        let [from, to] = ends.map(|end| self.args.end(end));
        if let Some(set) = &mut self.data_set {
            set.message(time_ns, [from.clone(), to.clone()], &place, line);
        }
        if !self.args.log || self.broken.is_some() {
            return;
        }
        let fields = [
            ("time", Field::Time(Some(time_ns))),
            ("from", Field::Text(from.clone())),
            ("to", Field::Text(to.clone())),
            ("transport", Field::Text(place.transport.to_string())),
            ("connection", Field::Number(place.connection)),
            ("type", Field::Text(line.kind.clone())),
            ("piece", Field::Number(line.piece)),
            ("offset", Field::Number(line.offset)),
            ("length", Field::Number(line.length)),
            ("detail", Field::Text(line.detail.clone())),
            ("info_hash", Field::Text(torrent(place.info_hash))),
        ];
        let words = || format!("{} {from} > {to} {} {}", seconds(time_ns), place.transport, line.words());
        self.print(&fields, words);
    }

    fn block(&mut self, block: &Block) {
        let [from, to] = [block.from, block.to].map(|end| self.args.end(end));
        if let Some(set) = &mut self.data_set {
            set.block([from.clone(), to.clone()], block);
        }
        if !self.args.pieces || self.broken.is_some() {
            return;
        }
        let BlockRef { piece, begin, len } = block.block;
        let latency_ms = block.latency_ns().map(|ns| ns as f64 / 1e6);
        let fields = [
            ("from", Field::Text(from.clone())),
            ("to", Field::Text(to.clone())),
            ("transport", Field::Text(block.transport.to_string())),
            ("connection", Field::Number(Some(block.connection))),
            ("info_hash", Field::Text(torrent(block.info_hash))),
            ("piece", Field::Number(Some(piece))),
            ("offset", Field::Number(Some(begin))),
            ("length", Field::Number(Some(len))),
            ("requested", Field::Time(block.requested_ns)),
            ("first_octet", Field::Time(Some(block.first_ns))),
            ("last_octet", Field::Time(Some(block.last_ns))),
            ("latency_ms", Field::Ms(latency_ms)),
            ("transfer_ms", Field::Ms(Some((block.last_ns - block.first_ns) as f64 / 1e6))),
            ("repairs", Field::Number(Some(block.repairs))),
            ("missing", Field::Number(Some(block.missing))),
            ("duplicate", Field::Flag(block.is_duplicate)),
        ];
        self.print(&fields, || words_of(block, &from, &to));
    }
}

/// A block for people.
fn words_of(block: &Block, from: &str, to: &str) -> String {
    let BlockRef { piece, begin, len } = block.block;
    let requested = block.requested_ns.map_or_else(|| "-".to_string(), seconds);
    let latency =
        block.latency_ns().map_or_else(|| "-".to_string(), |ns| format!("{:.3} ms", ns as f64 / 1e6));
    let (first, last) = (seconds(block.first_ns), seconds(block.last_ns));
    let (repairs, transport) = (block.repairs, block.transport);
    let duplicate = if block.is_duplicate { ", duplicate" } else { "" };
    format!(
        "{from} > {to} {transport} {piece} {begin} {len}: requested {requested}, first {first}, last {last}, latency {latency}, \
         repairs {repairs}{duplicate}"
    )
}

/// A value of a line.
enum Field {
    Time(Option<u64>),
    Number(Option<u32>),
    Ms(Option<f64>),
    Text(String),
    Flag(bool),
}

impl Field {
    /// Times in nanoseconds.
    fn to_json(&self) -> Value {
        match self {
            Self::Time(ns) => (*ns).into(),
            Self::Number(number) => (*number).into(),
            Self::Ms(ms) => (*ms).into(),
            Self::Text(text) if text.is_empty() => Value::Null,
            Self::Text(text) => text.as_str().into(),
            Self::Flag(is) => (*is).into(),
        }
    }

    /// Times in seconds.
    fn to_csv(&self) -> String {
        match self {
            Self::Time(ns) => ns.map_or_else(String::new, seconds),
            Self::Number(number) => number.map_or_else(String::new, |number| number.to_string()),
            Self::Ms(ms) => ms.map_or_else(String::new, |ms| format!("{ms:.3}")),
            Self::Text(text) => quoted(text),
            Self::Flag(is) => is.to_string(),
        }
    }
}

impl Sink for Log<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let is_kept = self.args.log || self.args.pieces || self.data_set.is_some();
        if !is_kept || !self.args.wants([event.from.address, event.to.address], event.info_hash) {
            return;
        }
        if let What::Block(block) = event.what {
            self.block(block);
        }
        if self.args.log || self.data_set.is_some() {
            let transport = if event.transport == Protocol::Tcp { "TCP" } else { "uTP" };
            let place = Place { transport, connection: Some(event.connection), info_hash: event.info_hash };
            let line = Line::of(&event.what, self.args);
            self.line(event.time_ns, [event.from, event.to], place, &line);
        }
    }

    fn aside(&mut self, aside: &Aside) {
        let info_hash = match &aside.about {
            About::Announce { announce, .. } => Some(announce.info_hash),
            About::Dht { info_hash, .. } => *info_hash,
        };
        if !self.args.wants([aside.from.address, aside.to.address], info_hash) {
            return;
        }
        match &aside.about {
            About::Announce { announce, is_http } => {
                self.asides.add_announce(self.args.end(aside.to), announce.info_hash, *is_http);
            }
            About::Dht { kind, .. } => self.asides.add_dht(kind),
        }
        if self.args.log || self.data_set.is_some() {
            let transport =
                if matches!(aside.about, About::Announce { is_http: true, .. }) { "TCP" } else { "UDP" };
            let place = Place { transport, connection: None, info_hash };
            self.line(aside.time_ns, [aside.from, aside.to], place, &Line::of_aside(&aside.about));
        }
    }
}

/// Seconds since the capture's epoch.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A field of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}
