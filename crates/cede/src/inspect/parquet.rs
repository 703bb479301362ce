//! What peers said as a data set of Parquet files: the tables `directions`, `messages` and `blocks`, each with a folder for
//! each date. `docs/inspect.md` describes the columns.

use super::InspectArgs;
use super::line::{Line, Place};
use super::names::torrent;
use crate::captures::Captures;
use crate::dataset::{Table, Value, date, name_of_run, unwritten};
use crate::failure::Failure;
use crate::veil::Veil;
use cede_inspect::{Block, ConnectionReport, Kind, Report, SideReport};
use cede_meter::Socket;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Every message, and what trackers and the hash table were told.
const MESSAGES: &str = "message messages {
  REQUIRED BINARY run (UTF8);
  REQUIRED INT64 time (TIMESTAMP(NANOS,true));
  OPTIONAL INT64 connection;
  REQUIRED BINARY source (UTF8);
  REQUIRED BINARY destination (UTF8);
  REQUIRED BINARY transport (UTF8);
  REQUIRED BINARY info_hash (UTF8);
  REQUIRED BINARY type (UTF8);
  OPTIONAL INT64 piece;
  OPTIONAL INT64 offset;
  OPTIONAL INT64 length;
  REQUIRED BINARY detail (UTF8);
}";
/// Every block that was sent.
const BLOCKS: &str = "message blocks {
  REQUIRED BINARY run (UTF8);
  REQUIRED INT64 connection;
  REQUIRED BINARY source (UTF8);
  REQUIRED BINARY destination (UTF8);
  REQUIRED BINARY transport (UTF8);
  REQUIRED BINARY info_hash (UTF8);
  REQUIRED INT64 piece;
  REQUIRED INT64 offset;
  REQUIRED INT64 length;
  OPTIONAL INT64 requested (TIMESTAMP(NANOS,true));
  REQUIRED INT64 first_octet (TIMESTAMP(NANOS,true));
  REQUIRED INT64 last_octet (TIMESTAMP(NANOS,true));
  REQUIRED INT64 repairs;
  REQUIRED INT64 missing;
  REQUIRED INT64 duplicate;
}";
/// The columns of `directions` that every run has: what a column is called, and its type.
const DIRECTIONS: [(&str, &str); 32] = [
    ("run", TEXT),
    ("connection", INT),
    ("source", TEXT),
    ("destination", TEXT),
    ("transport", TEXT),
    ("info_hash", TEXT),
    ("speech", TEXT),
    ("peer_id", TEXT),
    ("client", TEXT),
    ("first", TIME),
    ("last", TIME),
    ("packets", INT),
    ("wire_bytes", INT),
    ("stream_bytes", INT),
    ("block_bytes", INT),
    ("protocol_bytes", INT),
    ("repeated_bytes", INT),
    ("cut_packets", INT),
    ("blocks", INT),
    ("broken_blocks", INT),
    ("broken_bytes", INT),
    ("duplicate_blocks", INT),
    ("unrequested_blocks", INT),
    ("unchokes", INT),
    ("threads_lost", INT),
    ("unread_bytes", INT),
    ("missing_bytes", INT),
    ("undelivered_bytes", INT),
    ("latency_mean_ms", "OPTIONAL DOUBLE {}"),
    ("choking_s", "REQUIRED DOUBLE {}"),
    ("not_choking_s", "REQUIRED DOUBLE {}"),
    ("interested_s", "REQUIRED DOUBLE {}"),
];
const TEXT: &str = "REQUIRED BINARY {} (UTF8)";
const INT: &str = "REQUIRED INT64 {}";
const TIME: &str = "REQUIRED INT64 {} (TIMESTAMP(NANOS,true))";

/// The columns of `directions`: those above, and one for each kind of message.
fn directions() -> String {
    let kinds = Kind::ALL.iter().map(|kind| (kind.name().replace('-', "_"), INT));
    let fixed = DIRECTIONS.iter().map(|(name, form)| ((*name).to_owned(), *form));
    let mut schema = "message directions {\n".to_owned();
    for (name, form) in fixed.chain(kinds.map(|(name, form)| (format!("messages_{name}"), form))) {
        let _ = writeln!(schema, "  {};", form.replace("{}", &name));
    }
    schema + "}"
}

/// What was counted of a side, in the order of the columns.
fn counts(side: &SideReport) -> [u64; 17] {
    [
        side.carried.packets,
        side.carried.wire_bytes,
        side.carried.stream_bytes,
        side.block_bytes,
        side.protocol_bytes(),
        side.carried.repeated_bytes,
        side.carried.cut_packets,
        side.blocks,
        side.broken_blocks,
        side.broken_bytes,
        side.duplicate_blocks,
        side.unrequested_blocks,
        side.unchokes,
        side.losses,
        side.unread_bytes,
        side.missing_bytes,
        side.undelivered_bytes,
    ]
}

/// A data set that is added to.
pub struct DataSet {
    folder: PathBuf,
    run: ByteArray,
    messages: Table,
    blocks: Table,
    directions: Table,
    /// What went wrong first; nothing is written after it.
    broken: Option<ParquetError>,
}

impl DataSet {
    /// The data set in a folder, which is made where it is not there.
    pub fn new(folder: &Path, captures: &Captures, veil: &Veil) -> Self {
        let run = name_of_run(captures, veil);
        let table = |name: &str, schema: String| Table::new(folder.join(name), schema, &run);
        Self {
            folder: folder.to_path_buf(),
            messages: table("messages", MESSAGES.to_owned()),
            blocks: table("blocks", BLOCKS.to_owned()),
            directions: table("directions", directions()),
            run: run.as_str().into(),
            broken: None,
        }
    }

    /// Takes a message, or what else is a line of the log.
    pub fn message(&mut self, time_ns: u64, ends: [String; 2], place: &Place, line: &Line) {
        let number = |number: Option<u32>| Value::MaybeInt(number.map(i64::from));
        let [from, to] = ends;
        let row = [
            Value::Text(self.run.clone()),
            time(time_ns),
            number(place.connection),
            text(&from),
            text(&to),
            text(place.transport),
            text(&torrent(place.info_hash)),
            text(&line.kind),
            number(line.piece),
            number(line.offset),
            number(line.length),
            text(&line.detail),
        ];
        self.keep(|set| set.messages.push(&date(time_ns / 1_000), row));
    }

    /// Takes a block.
    pub fn block(&mut self, ends: [String; 2], block: &Block) {
        let [from, to] = ends;
        let row = [
            Value::Text(self.run.clone()),
            Value::Int(block.connection.into()),
            text(&from),
            text(&to),
            text(&block.transport.to_string()),
            text(&torrent(block.info_hash)),
            Value::Int(block.block.piece.into()),
            Value::Int(block.block.begin.into()),
            Value::Int(block.block.len.into()),
            Value::MaybeInt(block.requested_ns.map(u64::cast_signed)),
            time(block.first_ns),
            time(block.last_ns),
            Value::Int(block.repairs.into()),
            Value::Int(block.missing.into()),
            Value::Int(block.is_duplicate.into()),
        ];
        self.keep(|set| set.blocks.push(&date(block.last_ns / 1_000), row));
    }

    /// Takes both directions of the connections, and ends all files.
    pub fn finish(mut self, args: &InspectArgs, report: &Report) -> Result<(), Failure> {
        for one in &report.connections {
            for which in [0, 1] {
                let row = self.direction(args, one, which);
                self.keep(|set| set.directions.push(&date(one.span_ns.0 / 1_000), row));
            }
        }
        self.keep(|set| {
            [&mut set.messages, &mut set.blocks, &mut set.directions]
                .into_iter()
                .try_for_each(Table::conclude)
        });
        self.broken.map_or(Ok(()), |error| Err(unwritten(&self.folder, error)))
    }

    fn direction(&self, args: &InspectArgs, one: &ConnectionReport, which: usize) -> Vec<Value> {
        let side = &one.sides[which];
        let end = |socket: Socket| text(&args.end(socket));
        let count = |count: u64| Value::Int(count.cast_signed());
        let who = [
            Value::Text(self.run.clone()),
            Value::Int(one.number.into()),
            end(one.ends[which]),
            end(one.ends[1 - which]),
            text(&one.transport.to_string()),
            text(&torrent(one.info_hash)),
            text(one.speech.name()),
            text(&args.peer_id(side).unwrap_or_default()),
            text(side.client.as_deref().unwrap_or_default()),
            time(one.span_ns.0),
            time(one.span_ns.1),
        ];
        let seconds = [side.choking_s.0, side.choking_s.1, side.interested_s.0];
        let kinds = Kind::ALL.iter().map(|&kind| count(side.count(kind)));
        who.into_iter()
            .chain(counts(side).map(count))
            .chain([Value::Maybe(side.latency_mean_ms)])
            .chain(seconds.map(Value::Float))
            .chain(kinds)
            .collect()
    }

    /// Does it if nothing went wrong so far.
    fn keep(&mut self, work: impl FnOnce(&mut Self) -> Result<(), ParquetError>) {
        if self.broken.is_none() {
            self.broken = work(self).err();
        }
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

const fn time(ns: u64) -> Value {
    Value::Int(ns.cast_signed())
}
