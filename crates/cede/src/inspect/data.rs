//! What was found, for other programs.

use super::InspectArgs;
use super::asides::Asides;
use super::log::seconds;
use super::names::{hex, torrent};
use crate::failure::Failure;
use crate::meter::counters;
use crate::screen;
use cede_inspect::{ConnectionReport, Kind, Report, SideReport};
use cede_plot::{Cell, Table};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

/// One document. It is printed as it is made: of 87,000 connections it has 330 MB.
pub fn print_json(args: &InspectArgs, report: &Report, asides: &Asides) -> Result<(), Failure> {
    screen::print_with(|out| {
        serde_json::to_writer_pretty(&mut *out, &Document { args, report, asides })?;
        out.write_all(b"\n")
    })
}

struct Document<'a> {
    args: &'a InspectArgs,
    report: &'a Report,
    asides: &'a Asides,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // As in other documents, names are in the order of the alphabet.
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("announces", &self.announces())?;
        map.serialize_entry("cede", env!("CARGO_PKG_VERSION"))?;
        map.serialize_entry("connections", &Connections(self))?;
        map.serialize_entry("counters", &counters(&self.report.counters))?;
        map.serialize_entry("dht", &self.asides.dht)?;
        map.serialize_entry("files", &self.args.veil.names(&self.args.files))?;
        map.serialize_entry("not_listed", &self.not_listed())?;
        map.end()
    }
}

impl Document<'_> {
    fn announces(&self) -> Vec<Value> {
        let announces = self.asides.announces.iter().map(|((tracker, hash), [http, udp])| {
            json!({ "tracker": tracker, "info_hash": hex(hash), "http": http, "udp": udp })
        });
        announces.collect()
    }

    fn not_listed(&self) -> Value {
        let unlisted = &self.report.unlisted;
        json!({
            "tcp_connections": unlisted.tcp_connections,
            "tcp_bytes": unlisted.tcp_bytes,
            "datagrams": unlisted.datagrams,
            "lone_utp_directions": unlisted.lone_utp,
            "connections_given_up": unlisted.given_up,
            "blocks_not_checked": unlisted.unchecked_blocks,
            "announces": self.asides.more_announces.iter().sum::<u64>(),
        })
    }
}

struct Connections<'a>(&'a Document<'a>);

impl Serialize for Connections<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Document { args, report, .. } = self.0;
        serializer.collect_seq(report.connections.iter().map(|one| connection(args, one)))
    }
}

fn connection(args: &InspectArgs, one: &ConnectionReport) -> Value {
    json!({
        "connection": one.number,
        "transport": one.transport.to_string(),
        "speech": one.speech.name(),
        "opened_by_first": one.is_opened_by_first,
        "info_hash": one.info_hash.map(|hash| hex(&hash)),
        "first_ns": one.span_ns.0,
        "last_ns": one.span_ns.1,
        "reset": one.is_reset,
        "sides": [side(args, one, 0), side(args, one, 1)],
    })
}

/// How many messages of each kind it sent.
fn messages(side: &SideReport) -> Map<String, Value> {
    Kind::ALL.iter().map(|&kind| (kind.name().to_string(), side.count(kind).into())).collect()
}

fn side(args: &InspectArgs, one: &ConnectionReport, which: usize) -> Value {
    let side = &one.sides[which];
    json!({
        "address": args.end(one.ends[which]),
        "peer_id": args.peer_id(side),
        "client": side.client,
        "reserved": side.reserved.map(|reserved| hex(&reserved.0)),
        "packets": side.carried.packets,
        "wire_bytes": side.carried.wire_bytes,
        "stream_bytes": side.carried.stream_bytes,
        "block_bytes": side.block_bytes,
        "protocol_bytes": side.protocol_bytes(),
        "repeated_packets": side.carried.repeated_packets,
        "repeated_bytes": side.carried.repeated_bytes,
        "cut_packets": side.carried.cut_packets,
        "messages": messages(side),
        "blocks": side.blocks,
        "broken_blocks": side.broken_blocks,
        "broken_bytes": side.broken_bytes,
        "duplicate_blocks": side.duplicate_blocks,
        "duplicate_bytes": side.duplicate_bytes,
        "unrequested_blocks": side.unrequested_blocks,
        "latency": latency(side),
        "unchokes": side.unchokes,
        "choking_s": side.choking_s.0,
        "not_choking_s": side.choking_s.1,
        "interested_s": side.interested_s.0,
        "not_interested_s": side.interested_s.1,
        "threads_lost": side.losses,
        "unread_bytes": side.unread_bytes,
        "holes": side.holes,
        "missing_bytes": side.missing_bytes,
        "undelivered_bytes": side.undelivered_bytes,
    })
}

const SHARES: [(&str, f64); 4] = [("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99), ("max_ms", 1.0)];

/// The middle of the bucket that holds a quantile, in milliseconds.
fn quantile_ms(side: &SideReport, share: f64) -> Option<f64> {
    side.latency.quantile(share).map(|bucket| (bucket.low_us + bucket.high_us) as f64 / 2e3)
}

fn latency(side: &SideReport) -> Value {
    let mut object = json!({ "blocks": side.latency.count(), "mean_ms": side.latency_mean_ms });
    for (name, share) in SHARES {
        object[name] = quantile_ms(side, share).into();
    }
    object
}

/// A direction of a connection.
struct Row<'a> {
    args: &'a InspectArgs,
    one: &'a ConnectionReport,
    which: usize,
}

impl Row<'_> {
    const fn side(&self) -> &SideReport {
        &self.one.sides[self.which]
    }
}

/// Its name, what it is, and its value.
type Column = (&'static str, &'static str, fn(&Row<'_>) -> Cell);

/// The columns before the counts of messages.
const COLUMNS: [Column; 39] = [
    ("connection", "Number of the connection, in the order in which connections were found.", |row| {
        count(row.one.number.into())
    }),
    ("from", "Address and port of the sender of this direction.", |row| {
        row.args.end(row.one.ends[row.which]).into()
    }),
    ("to", "Address and port of its receiver.", |row| row.args.end(row.one.ends[1 - row.which]).into()),
    ("transport", "What carried the connection: TCP or uTP.", |row| row.one.transport.to_string().into()),
    (
        "speech",
        "What could be read: `plain`; `plain, late handshake` (behind an encrypted beginning); `plain, no handshake` (begun before the capture, or the handshake was not captured or not in the clear); `encrypted`; `unknown`.",
        |row| row.one.speech.name().into(),
    ),
    (
        "opener",
        "Whether the sender opened the connection; false as well where that was not captured.",
        |row| (row.one.is_opened_by_first && row.which == 0).to_string().into(),
    ),
    ("info_hash", "The torrent, by a handshake.", |row| torrent(row.one.info_hash).into()),
    (
        "peer_id",
        "The sender's peer id, octets that are no letters, digits or signs as %ff; left out with --pseudonyms.",
        |row| row.args.peer_id(row.side()).unwrap_or_default().into(),
    ),
    ("client", "The client, by its own words in the extension handshake, or else by its peer id.", |row| {
        row.side().client.clone().unwrap_or_default().into()
    }),
    ("first_s", "Time of the connection's first packet, in seconds since the capture's epoch.", |row| {
        seconds(row.one.span_ns.0).into()
    }),
    ("last_s", "Time of the connection's last packet, in seconds since the capture's epoch.", |row| {
        seconds(row.one.span_ns.1).into()
    }),
    ("packets", "Packets of this direction.", |row| count(row.side().carried.packets)),
    ("wire_bytes", "Octets of its packets on the wire, headers included.", |row| {
        count(row.side().carried.wire_bytes)
    }),
    ("stream_bytes", "Octets of its stream, each once.", |row| count(row.side().carried.stream_bytes)),
    ("block_bytes", "Octets of the stream that are data of blocks which were seen whole.", |row| {
        count(row.side().block_bytes)
    }),
    (
        "protocol_bytes",
        "Octets of messages beside the data of blocks, as far as they were read; all octets where nothing was.",
        |row| count(row.side().protocol_bytes()),
    ),
    ("repeated_packets", "Packets with octets that were in the capture before.", |row| {
        count(row.side().carried.repeated_packets)
    }),
    ("repeated_bytes", "Octets that were in the capture before: sent again, or captured twice.", |row| {
        count(row.side().carried.repeated_bytes)
    }),
    ("cut_packets", "Packets of whose octets the capture has only the first (its snapshot length).", |row| {
        count(row.side().carried.cut_packets)
    }),
    ("blocks", "Blocks that were seen whole, each as often as it was sent.", |row| count(row.side().blocks)),
    (
        "broken_blocks",
        "Blocks of which the end was not seen: the connection or the capture ended, or octets are missing.",
        |row| count(row.side().broken_blocks),
    ),
    ("broken_bytes", "Octets that were seen of those blocks.", |row| count(row.side().broken_bytes)),
    ("duplicate_blocks", "Blocks that their receiver had before, over any connection.", |row| {
        count(row.side().duplicate_blocks)
    }),
    (
        "unrequested_blocks",
        "Blocks whose request was not seen, or did not count any more (a choke without the fast extension, a reject).",
        |row| count(row.side().unrequested_blocks),
    ),
    (
        "latency_mean_ms",
        "Mean time from a request's last octet to the last octet of its block, both as captured.",
        |row| maybe(row.side().latency_mean_ms),
    ),
    ("latency_p50_ms", "Median of that time, to the width of a bucket.", |row| {
        maybe(quantile_ms(row.side(), SHARES[0].1))
    }),
    ("latency_p95_ms", "Its 95th percentile.", |row| maybe(quantile_ms(row.side(), SHARES[1].1))),
    ("latency_p99_ms", "Its 99th percentile.", |row| maybe(quantile_ms(row.side(), SHARES[2].1))),
    ("latency_max_ms", "The longest, to the width of a bucket.", |row| {
        maybe(quantile_ms(row.side(), SHARES[3].1))
    }),
    ("unchokes", "Times that the sender unchoked the receiver.", |row| count(row.side().unchokes)),
    ("choking_s", "Seconds for which the sender choked the receiver, as far as that is known.", |row| {
        Cell::number(row.side().choking_s.0, 6)
    }),
    ("not_choking_s", "Seconds for which it did not.", |row| Cell::number(row.side().choking_s.1, 6)),
    (
        "interested_s",
        "Seconds for which the sender was interested in what the receiver has, as far as that is known.",
        |row| Cell::number(row.side().interested_s.0, 6),
    ),
    ("not_interested_s", "Seconds for which it was not.", |row| Cell::number(row.side().interested_s.1, 6)),
    ("threads_lost", "Times that nothing more could be read, as a message's head was not captured.", |row| {
        count(row.side().losses)
    }),
    (
        "unread_bytes",
        "Octets that were not read until messages were found (again), or to the end; those that were not captured among them, as far as they can be counted.",
        |row| count(row.side().unread_bytes),
    ),
    ("holes", "Holes in what was captured of this direction: its receiver has these octets.", |row| {
        count(row.side().holes)
    }),
    (
        "missing_bytes",
        "Octets of these holes, as far as they can be counted: nobody knows the length of a uTP packet that is missing.",
        |row| count(row.side().missing_bytes),
    ),
    (
        "undelivered_bytes",
        "Octets behind some that the network lost and nobody sent again, as where a connection ends: the receiver could not read them.",
        |row| count(row.side().undelivered_bytes),
    ),
];

fn count(value: u64) -> Cell {
    Cell::number(value as f64, 0)
}

fn maybe(value: Option<f64>) -> Cell {
    value.map_or_else(|| Cell::from(""), |value| Cell::number(value, 3))
}

/// Names of all columns, and what they are.
pub fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    let kinds =
        Kind::ALL.iter().map(|kind| (kind.name(), "Messages of this kind that were sent in this direction."));
    COLUMNS.iter().map(|&(name, text, _)| (name, text)).chain(kinds)
}

/// A line for each direction.
pub fn table(args: &InspectArgs, report: &Report) -> Table {
    let mut table = Table::new(columns().map(|(name, _)| name));
    for one in &report.connections {
        for which in [0, 1] {
            let row = Row { args, one, which };
            let counts = Kind::ALL.iter().map(|&kind| count(row.side().count(kind)));
            table.push(COLUMNS.iter().map(|column| (column.2)(&row)).chain(counts));
        }
    }
    table
}
