//! `cede inspect`: what BitTorrent peers said to each other, from captures.

mod asides;
mod data;
mod line;
mod log;
mod names;
mod parquet;
mod show;

pub use data::columns;
pub use log::{LOG_COLUMNS, PIECES_COLUMNS};

use crate::captures::Captures;
use crate::failure::Failure;
use crate::meter::{self, Hearer};
use crate::screen::{self, Screen};
use crate::veil::Veil;
use asides::Asides;
use cede_inspect::{Config, ConnectionReport, Inspector, Report, Speech};
use cede_units::{Bytes, Duration};
use cede_wire::pcap::Record;
use clap::{Args, ValueHint};
use std::net::IpAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  cede inspect swarm.pcapng                   peer pairs, messages by kind, what could not be read
  cede inspect swarm.pcapng --log             every message, a line each
  cede inspect a.pcap --log --json | jq 'select(.type == \"unchoke\")'
  cede inspect day-*.pcap.gz --pieces --csv   every block: requested, first octet, last octet
  cede inspect a.pcap --host 203.0.113.7 --info-hash 8c3f --since '90 s' --until '10 min'
  cede inspect day-*.pcap.gz --parquet said   messages, blocks and directions as a data set
  tcpdump -w - -i eth0 | cede inspect -       from another program, until it ends

Nothing is sent. Peers are found by what they say, whatever their ports. Of encrypted connections
octets and times are listed: what was said in them cannot be told from outside. A capture needs
whole packets (tcpdump -s 0, the default). What a column of --csv is: cede explain threads_lost.

Exit codes: 0 done; 1 a capture is damaged or cannot be read (what was read counts);
2 wrong usage; 3 not permitted; 130 Ctrl-C ended the reading (what was read counts).";

/// Arguments of `cede inspect`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct InspectArgs {
    /// Captures, pcap or pcapng, plain or compressed with gzip or zstd, in the order of time; - is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Print every message, a line each
    #[arg(long, conflicts_with = "pieces")]
    log: bool,
    /// Print every block that was sent, a line each
    #[arg(long)]
    pieces: bool,
    /// Only connections of this address; may be repeated [example: --host 203.0.113.7]
    #[arg(long, value_name = "ADDRESS")]
    host: Vec<IpAddr>,
    /// Only connections about torrents whose info-hash begins so; may be repeated [example: --info-hash 8c3f]
    #[arg(long, value_name = "HEX", value_parser = hex_prefix)]
    info_hash: Vec<String>,
    /// Only packets that pass [example: --filter 'net 10.0.0.0/8 and not port 443']
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Leave out packets before this time after the first [example: --since '90 s']
    #[arg(long, value_name = "TIME")]
    since: Option<Duration>,
    /// Leave out packets from this time after the first on [example: --until '10 min']
    #[arg(long, value_name = "TIME")]
    until: Option<Duration>,
    /// Replace addresses by pseudonyms that share their prefixes, under the key in a file of 32 octets or 64
    /// hexadecimal digits; without a file under a fresh key that nobody keeps. Peer ids are left out then
    #[arg(long, value_name = "KEYFILE", num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath)]
    pseudonyms: Option<Option<PathBuf>>,
    #[arg(skip)]
    veil: Veil,
    /// Memory for connections; beyond it the quietest are ended, and counted
    #[arg(long, value_name = "SIZE", default_value = "512 MiB")]
    memory: Bytes,
    /// Add messages, blocks and directions to a data set of Parquet files [example: --parquet said]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    parquet: Option<PathBuf>,
    /// Print JSON: one document, or a line for each message or block
    #[arg(long)]
    json: bool,
    /// Print CSV: a line for each direction of a connection, message or block
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

fn hex_prefix(text: &str) -> Result<String, String> {
    let is_hex = !text.is_empty() && text.len() <= 40 && text.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("up to 40 hexadecimal digits are wanted".to_string())
    }
}

impl InspectArgs {
    fn config(&self) -> Result<Config, Failure> {
        Ok(Config {
            selection: meter::selection(self.filter.as_deref(), self.since, self.until)?,
            memory_bytes: usize::try_from(self.memory.0).unwrap_or(usize::MAX),
        })
    }

    /// Whether something between two ends about a torrent is asked for.
    fn wants(&self, ends: [IpAddr; 2], info_hash: Option<[u8; 20]>) -> bool {
        let is_host = self.host.is_empty() || ends.iter().any(|end| self.host.contains(end));
        let is_torrent = self.info_hash.is_empty()
            || info_hash.is_some_and(|hash| {
                let hash = names::hex(&hash);
                self.info_hash.iter().any(|prefix| hash.starts_with(prefix))
            });
        is_host && is_torrent
    }

    fn wants_connection(&self, connection: &ConnectionReport) -> bool {
        self.wants(connection.ends.map(|end| end.address), connection.info_hash)
    }
}

/// Reads captures and says what was found.
pub fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    if let Some(file) = &args.pseudonyms {
        args.veil.put_on(file.as_deref())?;
    }
    let inspector = Inspector::new(args.config()?);
    let captures = Captures::named(&args.files);
    let mut reading = Reading { inspector, log: log::Log::new(args, &captures) };
    let mut lacking = meter::each_packet(&captures, &mut reading)?;
    let Reading { inspector, mut log } = reading;
    let is_wanted = log.is_wanted();
    let mut report = inspector.finish(&mut log);
    lacking.note_unread(&captures.files, &report.counters);
    report.connections.retain(|connection| args.wants_connection(connection));
    let (asides, failures) = log.finish(&report);
    let shown = if !is_wanted {
        // Of what was not looked at nothing is said.
        Ok(())
    } else if args.log || args.pieces {
        screen::mention(&show::remark(&report, false));
        Ok(())
    } else {
        publish(args, &report, &asides)
    };
    let [damage, cut] = lacking.failures();
    meter::told(damage.into_iter().chain(failures).chain(shown.err()).chain(cut))
}

/// Packets on their way to lines.
struct Reading<'a> {
    inspector: Inspector,
    log: log::Log<'a>,
}

impl Hearer for Reading<'_> {
    fn record(&mut self, record: &Record<'_>) {
        self.inspector.record(record, &mut self.log);
    }

    fn goes_on(&mut self) -> bool {
        self.log.flush();
        self.log.is_wanted()
    }
}

fn publish(args: &InspectArgs, report: &Report, asides: &Asides) -> Result<(), Failure> {
    if args.json {
        return data::print_json(args, report, asides);
    }
    if args.csv {
        return screen::print(&data::table(args, report).to_csv());
    }
    let screen = Screen::new(false);
    screen.say(&show::text(args, report, asides, &screen))
}

/// Connections whose messages were not read.
fn covered(report: &Report) -> impl Iterator<Item = &ConnectionReport> {
    report.connections.iter().filter(|connection| matches!(connection.speech, Speech::Covered(_)))
}
