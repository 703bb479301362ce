//! Messages and blocks, a line each, while packets are read.

use super::InspectArgs;
use super::names::{hex, peer_id, torrent};
use super::parquet::DataSet;
use crate::failure::Failure;
use crate::screen;
use cede_bt::tracker;
use cede_bt::wire::{BlockRef, Message};
use cede_inspect::{About, Aside, Block, Cover, Event, Kind, Report, Sink, What};
use cede_meter::{Protocol, Socket};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Octets that are printed at once.
const BATCH_BYTES: usize = 1 << 16;

const LOG_HEADING: &str = "time,from,to,transport,connection,type,piece,offset,length,detail,info_hash";
const PIECES_HEADING: &str = "from,to,transport,connection,info_hash,piece,offset,length,requested,first_octet,last_octet,latency_ms,transfer_ms,repairs,missing,duplicate";

/// What trackers and the hash table were told.
#[derive(Debug, Default)]
pub struct Asides {
    /// Announces by tracker and torrent: over HTTP and over UDP.
    pub announces: BTreeMap<(String, [u8; 20]), [u64; 2]>,
    /// Messages of the hash table by kind.
    pub dht: BTreeMap<String, u64>,
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

/// A line of the log.
#[derive(Default)]
pub struct Line {
    /// What was said.
    pub kind: String,
    pub piece: Option<u32>,
    pub offset: Option<u32>,
    pub length: Option<u32>,
    /// What else there is to it.
    pub detail: String,
}

impl<'a> Log<'a> {
    pub fn new(args: &'a InspectArgs) -> Self {
        let mut out = String::new();
        if args.csv && (args.log || args.pieces) {
            out = format!("{}\n", if args.log { LOG_HEADING } else { PIECES_HEADING });
        }
        let data_set = args.parquet.as_deref().map(|folder| DataSet::new(folder, &args.files));
        Self { args, out, broken: None, asides: Asides::default(), data_set }
    }

    /// Prints and writes what is left.
    pub fn finish(mut self, report: &Report) -> Result<Asides, Failure> {
        self.flush();
        if let Some(set) = self.data_set {
            set.finish(self.args, report)?;
        }
        self.broken.map_or(Ok(self.asides), Err)
    }

    fn flush(&mut self) {
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

/// Where something happened.
#[derive(Clone, Copy)]
pub struct Place {
    pub transport: &'static str,
    pub connection: Option<u32>,
    pub info_hash: Option<[u8; 20]>,
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
                let tracker = (self.args.end(aside.to), announce.info_hash);
                self.asides.announces.entry(tracker).or_default()[usize::from(!is_http)] += 1;
            }
            About::Dht { kind, .. } => *self.asides.dht.entry(kind.clone()).or_default() += 1,
        }
        if self.args.log || self.data_set.is_some() {
            let transport =
                if matches!(aside.about, About::Announce { is_http: true, .. }) { "TCP" } else { "UDP" };
            let place = Place { transport, connection: None, info_hash };
            self.line(aside.time_ns, [aside.from, aside.to], place, &Line::of_aside(&aside.about));
        }
    }
}

impl Line {
    fn new(kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: kind.into(), detail: detail.into(), ..Self::default() }
    }

    /// The line for people.
    fn words(&self) -> String {
        let numbers =
            [self.piece, self.offset, self.length].into_iter().flatten().map(|number| number.to_string());
        let parts: Vec<String> =
            numbers.chain((!self.detail.is_empty()).then(|| self.detail.clone())).collect();
        format!("{:14} {}", self.kind, parts.join(" ")).trim_end().to_string()
    }

    fn of(what: &What<'_>, args: &InspectArgs) -> Self {
        match what {
            What::Opened => Self::new("opened", ""),
            What::Handshake(handshake) => {
                let id = if args.pseudonyms.is_some() { String::new() } else { peer_id(&handshake.peer_id) };
                let client = cede_inspect::client_of(&handshake.peer_id).unwrap_or_default();
                let detail = format!(
                    "{} reserved {} {id} {client}",
                    hex(&handshake.info_hash),
                    hex(&handshake.reserved.0)
                );
                Self::new(Kind::Handshake.name(), detail.trim_end())
            }
            What::Message { message, extension, is_cut } => Self::of_message(message, *extension, *is_cut),
            What::Block(block) => Self::of_block(Kind::Piece, block.block),
            What::Other { id, len } => Self { length: Some(*len), ..Self::new("other", format!("id {id}")) },
            What::Lost => Self::new("lost", "octets were not captured: nothing is known from here on"),
            What::Resumed { octets } => {
                Self::new("resumed", format!("messages again behind {octets} octets that were not read"))
            }
            What::Covered(Cover::Encrypted) => Self::new("encrypted", "only octets and times can be told"),
            What::Covered(_) => Self::new("unknown", "no message was found"),
            What::Finished => Self::new("fin", ""),
            What::Reset => Self::new("reset", ""),
        }
    }

    fn of_block(kind: Kind, block: BlockRef) -> Self {
        let (piece, offset, length) = (Some(block.piece), Some(block.begin), Some(block.len));
        Self { piece, offset, length, ..Self::new(kind.name(), "") }
    }

    fn of_message(message: &Message, extension: Option<&str>, is_cut: bool) -> Self {
        let kind = Kind::of(message);
        if is_cut {
            return Self::new(kind.name(), "(octets of it were not captured)");
        }
        match message {
            Message::Have(piece) | Message::Suggest(piece) | Message::AllowedFast(piece) => {
                Self { piece: Some(*piece), ..Self::new(kind.name(), "") }
            }
            Message::Request(block) | Message::Cancel(block) | Message::Reject(block) => {
                Self::of_block(kind, *block)
            }
            Message::Bitfield(octets) => {
                let has: u32 = octets.iter().map(|octet| octet.count_ones()).sum();
                Self { length: Some(octets.len() as u32), ..Self::new(kind.name(), format!("{has} pieces")) }
            }
            Message::Port(port) => Self::new(kind.name(), port.to_string()),
            Message::Extended(id, octets) => {
                let name = extension.map_or_else(|| format!("id {id}"), str::to_string);
                Self { length: Some(octets.len() as u32), ..Self::new(kind.name(), name) }
            }
            _ => Self::new(kind.name(), ""),
        }
    }

    fn of_aside(about: &About) -> Self {
        match about {
            About::Announce { announce, is_http } => {
                let event = match announce.event {
                    tracker::Event::Interval => "interval",
                    tracker::Event::Started => "started",
                    tracker::Event::Completed => "completed",
                    tracker::Event::Stopped => "stopped",
                };
                let by = if *is_http { "HTTP" } else { "UDP" };
                let (down, up, left) = (announce.downloaded, announce.uploaded, announce.left);
                Self::new(
                    "announce",
                    format!(
                        "{by} {event} port {} downloaded {down} uploaded {up} left {left}",
                        announce.port
                    ),
                )
            }
            About::Dht { kind, .. } => Self::new("dht", kind.as_str()),
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
