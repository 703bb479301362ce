//! What the meter found as a data set of Parquet files, in folders by table and date, to which any number of runs on any
//! number of machines can add.
//!
//! Sources: the Apache Parquet format; folders in Hive's manner (`date=2026-01-31`), which Spark, Dask, DuckDB, Polars and
//! pyarrow all read as a column. `docs/meter.md` describes every column.
//!
//! Sums, seconds and histograms of one host can be added over captures without loss, so means over time and quantiles of
//! a thousand captures are those of one.

use super::{MeterArgs, show};
use crate::captures::Captures;
use crate::dataset::{DAY_US, Table, Value, date, name_of_run, unwritten};
use crate::failure::Failure;
use cede_meter::{Delay, Estimator, FlowReport, Histogram, Protocol, QueueSample, Summary};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Every sample.
const SAMPLES: &str = "message samples {
  REQUIRED INT64 time (TIMESTAMP(MICROS,true));
  REQUIRED BINARY source (UTF8);
  REQUIRED INT64 source_port;
  REQUIRED BINARY destination (UTF8);
  REQUIRED INT64 destination_port;
  REQUIRED BINARY protocol (UTF8);
  REQUIRED BINARY estimator (UTF8);
  REQUIRED DOUBLE queue_us;
}";
/// Each direction of each flow.
const FLOWS: &str = "message flows {
  REQUIRED BINARY run (UTF8);
  REQUIRED BINARY source (UTF8);
  REQUIRED INT64 source_port;
  REQUIRED BINARY destination (UTF8);
  REQUIRED INT64 destination_port;
  REQUIRED BINARY protocol (UTF8);
  REQUIRED INT64 packets;
  REQUIRED INT64 bytes;
  REQUIRED INT64 first (TIMESTAMP(MICROS,true));
  REQUIRED INT64 last (TIMESTAMP(MICROS,true));
  REQUIRED INT64 samples;
  OPTIONAL DOUBLE mean_ms;
  OPTIONAL DOUBLE p50_ms;
  OPTIONAL DOUBLE p95_ms;
  OPTIONAL DOUBLE p99_ms;
  OPTIONAL DOUBLE max_ms;
  OPTIONAL DOUBLE covered_s;
  OPTIONAL DOUBLE rtt_min_ms;
  OPTIONAL DOUBLE clock_hz;
  OPTIONAL DOUBLE drift_ppm;
  REQUIRED BINARY flags (UTF8);
}";
/// Each host of a date under each protocol, in what can be added.
const HOSTS: &str = "message hosts {
  REQUIRED BINARY run (UTF8);
  REQUIRED BINARY host (UTF8);
  REQUIRED BINARY protocol (UTF8);
  REQUIRED INT64 samples;
  REQUIRED DOUBLE sum_ms;
  REQUIRED DOUBLE area_ms_s;
  REQUIRED DOUBLE covered_s;
  REQUIRED DOUBLE above_100ms_s;
  REQUIRED DOUBLE max_ms;
}";
/// The distribution of a host's samples.
const HISTOGRAMS: &str = "message histograms {
  REQUIRED BINARY run (UTF8);
  REQUIRED BINARY host (UTF8);
  REQUIRED BINARY protocol (UTF8);
  REQUIRED INT64 low_us;
  REQUIRED INT64 high_us;
  REQUIRED INT64 samples;
}";

/// A data set that is added to.
pub struct DataSet {
    folder: PathBuf,
    run: ByteArray,
    estimator: Estimator,
    samples: Table,
    flows: Table,
    hosts: Table,
    histograms: Table,
    /// The host whose samples are handed in, and those of uTP and of TCP so far.
    host: Option<IpAddr>,
    delays: [Vec<Delay>; 2],
    /// The ends of the last sample, in writing.
    ends: Option<(cede_meter::Socket, cede_meter::Socket, [ByteArray; 2])>,
    /// What went wrong first; nothing is written after it.
    broken: Option<ParquetError>,
}

impl DataSet {
    /// The files of this run are named after its first capture and a digest of all that it reads: whoever reads the same
    /// captures again replaces the files, so that nothing counts twice.
    pub fn new(folder: &Path, args: &MeterArgs, captures: &Captures) -> Self {
        let run = name_of_run(captures, &args.veil);
        let table = |name: &str, schema| Table::new(folder.join(name), schema, &run);
        Self {
            folder: folder.to_path_buf(),
            estimator: args.estimator(),
            samples: table("samples", SAMPLES),
            flows: table("flows", FLOWS),
            hosts: table("hosts", HOSTS),
            histograms: table("histograms", HISTOGRAMS),
            run: run.as_str().into(),
            host: None,
            delays: Default::default(),
            ends: None,
            broken: None,
        }
    }

    /// Takes a sample, those of one host after each other.
    pub fn sample(&mut self, sample: &QueueSample) {
        if self.host != Some(sample.source.address) {
            self.end_host();
            self.host = Some(sample.source.address);
        }
        self.delays[usize::from(sample.protocol == Protocol::Tcp)].push(sample.delay);
        let row = self.row_of(sample);
        let date = date(sample.delay.time_us);
        self.keep(|set| set.samples.push(&date, row));
    }

    fn row_of(&mut self, sample: &QueueSample) -> [Value; 8] {
        let (source, destination) = (sample.source, sample.destination);
        let written = match &self.ends {
            Some((from, to, written)) if (*from, *to) == (source, destination) => written.clone(),
            _ => [text(&source.address), text(&destination.address)],
        };
        self.ends = Some((source, destination, written.clone()));
        let [from, to] = written;
        [
            Value::Int(sample.delay.time_us as i64),
            Value::Text(from),
            Value::Int(source.port.into()),
            Value::Text(to),
            Value::Int(destination.port.into()),
            Value::Text(protocol(sample.protocol)),
            Value::Text(if sample.estimator == Estimator::Direct { "direct" } else { "echoed" }.into()),
            Value::Float(sample.delay.queue_us),
        ]
    }

    /// Takes a direction of a flow.
    pub fn flow(&mut self, flow: &FlowReport) {
        let summary = match self.estimator {
            Estimator::Direct => flow.direct.as_ref(),
            Estimator::Echoed => flow.echoed.as_ref(),
        };
        let row: Vec<Value> = [Value::Text(self.run.clone())]
            .into_iter()
            .chain(who_and_when(flow))
            .chain(figures(summary))
            .chain([
                Value::Maybe(flow.round_trip.map(|trip| trip.min_ms)),
                Value::Maybe(flow.clock_hz),
                Value::Maybe(flow.drift_ppm),
                Value::Text(show::names(flow.flags).as_str().into()),
            ])
            .collect();
        let date = date(flow.span_us.0);
        self.keep(|set| set.flows.push(&date, row));
    }

    /// Writes what is known of the host whose samples came last.
    fn end_host(&mut self) {
        let Some(host) = self.host.take() else { return };
        let host = text(&host);
        for (delays, of) in std::mem::take(&mut self.delays).into_iter().zip([Protocol::Utp, Protocol::Tcp]) {
            let mut delays = delays;
            delays.sort_by_key(|delay| delay.time_us);
            let days = || delays.chunk_by(|a, b| a.time_us / DAY_US == b.time_us / DAY_US);
            for (day, summary) in days().zip(Summary::of_pieces(days())) {
                self.day(&host, of, day, &summary);
            }
        }
    }

    fn day(&mut self, host: &ByteArray, of: Protocol, delays: &[Delay], summary: &Summary) {
        let date = date(delays[0].time_us);
        let who = || [&self.run, host, &protocol(of)].map(|text| Value::Text(text.clone()));
        let sums = [
            Value::Int(summary.samples as i64),
            Value::Float(summary.sample_mean_ms * summary.samples as f64),
            Value::Float(summary.time_mean_ms * summary.covered_s),
            Value::Float(summary.covered_s),
            Value::Float(summary.bloated_s),
            Value::Float(summary.max_ms),
        ];
        let row: Vec<Value> = who().into_iter().chain(sums).collect();
        let mut histogram = Histogram::default();
        delays.iter().for_each(|delay| histogram.add(delay.queue_us));
        let buckets = histogram.buckets().map(|bucket| {
            let counts = [bucket.low_us, bucket.high_us, bucket.count].map(|count| Value::Int(count as i64));
            who().into_iter().chain(counts).collect::<Vec<_>>()
        });
        let buckets: Vec<Vec<Value>> = buckets.collect();
        self.keep(|set| {
            set.hosts.push(&date, row)?;
            buckets.into_iter().try_for_each(|row| set.histograms.push(&date, row))
        });
    }

    /// Does it if nothing went wrong so far.
    fn keep(&mut self, work: impl FnOnce(&mut Self) -> Result<(), ParquetError>) {
        if self.broken.is_none() {
            self.broken = work(self).err();
        }
    }

    /// Ends all files.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.end_host();
        self.keep(|set| {
            [&mut set.samples, &mut set.flows, &mut set.hosts, &mut set.histograms]
                .into_iter()
                .try_for_each(Table::conclude)
        });
        let Some(error) = self.broken else { return Ok(()) };
        Err(unwritten(&self.folder, error))
    }
}

fn who_and_when(flow: &FlowReport) -> [Value; 9] {
    [
        Value::Text(text(&flow.source.address)),
        Value::Int(flow.source.port.into()),
        Value::Text(text(&flow.destination.address)),
        Value::Int(flow.destination.port.into()),
        Value::Text(protocol(flow.protocol)),
        Value::Int(flow.packets.into()),
        Value::Int(flow.bytes as i64),
        Value::Int(flow.span_us.0 as i64),
        Value::Int(flow.span_us.1 as i64),
    ]
}

fn figures(summary: Option<&Summary>) -> [Value; 7] {
    let of = |value: fn(&Summary) -> f64| Value::Maybe(summary.map(value));
    [
        Value::Int(summary.map_or(0, |summary| summary.samples as i64)),
        of(|s| s.time_mean_ms),
        of(|s| s.p50_ms),
        of(|s| s.p95_ms),
        of(|s| s.p99_ms),
        of(|s| s.max_ms),
        of(|s| s.covered_s),
    ]
}

fn text(address: &IpAddr) -> ByteArray {
    address.to_string().as_str().into()
}

fn protocol(protocol: Protocol) -> ByteArray {
    match protocol {
        Protocol::Utp => "uTP",
        Protocol::Tcp => "TCP",
    }
    .into()
}
