//! `cede meter`: whose queue it is, from captures or a live interface.

mod ahead;
mod capture;
mod columns;
mod data;
mod lacking;
#[cfg(target_os = "linux")]
mod live;
mod lots;
mod order;
mod page;
mod parquet;
mod reading;
mod show;
mod source;
mod together;
mod unpack;

pub use columns::{COLUMNS, headings};
pub use data::counters;
pub use show::{Count, because, in_all, left_out, many};
pub use source::{Hearer, each as each_packet, read as read_captures, selection};

use crate::captures::Captures;
use crate::failure::Failure;
use crate::screen::{self, Screen};
use crate::veil::Veil;
use cede_meter::{
    Base, Config, Estimator, FlowReport, HostReport, Meter, Protocol, QueueSample, Report, Socket, Visitor,
    Wants,
};
use cede_units::{Bytes, Duration};
use clap::{Args, ValueEnum, ValueHint};
use std::cmp::Ordering;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  cede meter office.pcapng                     remote hosts, the longest queue first
  cede meter day-*.pcap.gz --report day.html   several files as one run; pictures in one file
  tcpdump -w - -s 128 -i eth0 | cede meter -   from another program, until it ends
  cede meter a.pcap --host 203.0.113.7 --flows --plot
  cede meter a.pcap --series > samples.csv     every sample
  cede meter a.pcap --json | jq '.hosts[0].queue.time_mean_ms'
  cede meter day-*.pcap.gz --parquet delays    a data set for Dask, Spark, DuckDB, Polars
  cede meter a.pcap --filter 'udp and not port 53' --pseudonyms=key
  cede meter -i eth0 --ui                      the same live, as a screen that updates
  cede meter -i wan0 -i lan0 --ui              a router's, behind its own queues
  cede meter -i eth0 --prometheus 127.0.0.1:9464      as a line every two seconds, and as metrics

Nothing is sent. A delay is that of all queues between a sender and where the capture was taken,
most of it in the sender's own uplink; hosts on the observer's side of their uplink show none. What
may be wrong with a figure stands in the column of flags: cede explain start-not-seen.

Exit codes: 0 done, of an interface also by Ctrl-C; 1 a capture is damaged or cannot be read, as
where no packet has a link type that is, or the interface is gone (what was read counts); 2 wrong
usage; 3 not permitted; 130 Ctrl-C ended the reading of a capture (what was read counts).";

/// Arguments of `cede meter`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct MeterArgs {
    /// Captures, pcap or pcapng, plain or compressed with gzip or zstd, in any order: they are read by the time of their
    /// first packets, those of the same time together, each as an interface of its own; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "interface", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Only packets that pass [example: --filter 'net 10.0.0.0/8 and udp and not port 53']
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Replace addresses by pseudonyms that share their prefixes, under the key in a file of 32 octets or 64
    /// hexadecimal digits; without a file under a fresh key that nobody keeps
    #[arg(long, value_name = "KEYFILE", num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath)]
    pseudonyms: Option<Option<PathBuf>>,
    #[arg(skip)]
    veil: Veil,
    /// List directions of flows instead of hosts
    #[arg(long)]
    flows: bool,
    /// Print every sample, as CSV or, with --json, as JSON lines
    #[arg(long, conflicts_with_all = ["flows", "plot"])]
    series: bool,
    /// Only what this host sent; may be repeated [example: --host 203.0.113.7]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    host: Vec<IpAddr>,
    /// Only this protocol
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<ProtocolArg>,
    /// Leave out what was seen before this time after the first packet; what delays are counted from is learnt from all [example: --since '90 s']
    #[arg(long, value_name = "TIME")]
    since: Option<Duration>,
    /// Leave out what was seen from this time after the first packet on, likewise [example: --until '10 min']
    #[arg(long, value_name = "TIME")]
    until: Option<Duration>,
    /// How delays are inferred: by the observer's clock, or as the paper does, by the other end's
    #[arg(long, value_name = "HOW", default_value = "direct")]
    estimator: EstimatorArg,
    /// Count delays from the shortest of so much time before each, in place of the shortest of all: for days, in which paths
    /// become longer; a queue that stands for longer is not seen any more [example: --base '10 min']
    #[arg(long, value_name = "TIME", conflicts_with = "interface")]
    base: Option<Duration>,
    /// Hosts with fewer samples are not listed
    #[arg(long, value_name = "N", default_value_t = 20)]
    min_samples: u64,
    /// Memory for flows and samples; beyond it the quietest are given up, and counted
    #[arg(long, value_name = "SIZE", default_value = "512 MiB")]
    memory: Bytes,
    /// Draw the delay of the worst hosts over time in the terminal
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    plot: bool,
    /// Write a page with time series, distributions and tables; it needs nothing but a browser; - prints it, and words on
    /// standard error [example: --report r.html]
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,
    /// Add samples, flows, hosts and histograms to a data set of Parquet files [example: --parquet delays]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    parquet: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    // Last, as what follows would stand under its heading.
    #[command(flatten)]
    live: LiveArgs,
}

/// What only a live interface has.
#[derive(Args, Debug)]
#[command(next_help_heading = "Live")]
struct LiveArgs {
    /// Watch an interface until Ctrl-C in place of reading files (Linux; needs CAP_NET_RAW); may be repeated, and "any" is all that are up
    /// but the loopback: of what passes two of them the way out counts [example: -i eth0]
    #[arg(short, long = "interface", id = "interface", value_name = "NAME", conflicts_with_all = ["files", "series", "plot", "report", "parquet", "since", "until"])]
    interfaces: Vec<String>,
    /// Show a screen that updates
    #[arg(long, requires = "interface", conflicts_with_all = ["files", "json", "csv"])]
    ui: bool,
    /// Serve metrics for Prometheus [example: --prometheus 127.0.0.1:9464]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listening, requires = "interface", conflicts_with = "files")]
    prometheus: Option<SocketAddr>,
    /// Hosts with metrics of their own; all others are in the totals
    #[arg(long, value_name = "N", requires = "prometheus", conflicts_with = "files", default_value_t = 50)]
    metrics_hosts: usize,
    /// Time between two lines, pictures or sets of metrics
    #[arg(
        long,
        value_name = "TIME",
        requires = "interface",
        conflicts_with = "files",
        default_value = "2 s"
    )]
    interval: Duration,
    /// How far back figures and the shortest delay reach
    #[arg(
        long,
        value_name = "TIME",
        requires = "interface",
        conflicts_with = "files",
        default_value = "10 min"
    )]
    window: Duration,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", requires = "interface", conflicts_with = "files")]
    duration: Option<Duration>,
}

/// An address as it is known, also in brackets, as it stands before a port, or as an IPv4 address that is written as one of IPv6.
fn address(text: &str) -> Result<IpAddr, String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let told = |_| {
        "an IP address is wanted, such as 203.0.113.7 or 2001:db8::7; nets and ports: --filter".to_string()
    };
    bare.parse().map(|address: IpAddr| address.to_canonical()).map_err(told)
}

fn listening(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "an IP address and a port are wanted, such as 127.0.0.1:9464, or [::]:9464 for whoever asks"
            .to_string()
    })
}

/// Which protocol counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ProtocolArg {
    /// uTP over UDP
    Utp,
    /// TCP with timestamps
    Tcp,
}

/// How delays are inferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum EstimatorArg {
    /// The observer's clock less the sender's stamp
    Direct,
    /// uTP: what the receiver says; TCP: the acknowledgement's clock less the segment's (equations 1 to 4 of the paper)
    Echoed,
}

/// What was found, as far as it was asked for.
struct Findings {
    report: Report,
    flows: Vec<FlowReport>,
    /// Delays over time of the hosts, for pictures and series.
    samples: Vec<QueueSample>,
    /// Why the data set is not whole.
    unwritten: Option<Failure>,
    /// Packets of live interfaces that the kernel had no room for.
    lost: Option<u64>,
}

impl Findings {
    /// Whether there is anything to draw: samples are kept of all hosts, but those with too few are not listed.
    const fn has_pictures(&self) -> bool {
        !self.samples.is_empty() && !self.report.hosts.is_empty()
    }
}

/// Keeps what the arguments ask for.
struct Keeper<'a> {
    args: &'a MeterArgs,
    flows: Vec<FlowReport>,
    samples: Vec<QueueSample>,
    data_set: Option<parquet::DataSet>,
}

impl MeterArgs {
    const fn estimator(&self) -> Estimator {
        match self.estimator {
            EstimatorArg::Direct => Estimator::Direct,
            EstimatorArg::Echoed => Estimator::Echoed,
        }
    }

    /// What delays are counted from, in words.
    fn counted_from(&self) -> String {
        self.base.map_or("the shortest of all".to_owned(), |base| {
            format!("the shortest of the {base} before each")
        })
    }

    /// The address as it is shown.
    fn shown(&self, address: IpAddr) -> IpAddr {
        self.veil.shown(address)
    }

    fn wants_host(&self, host: IpAddr) -> bool {
        self.host.is_empty() || self.host.contains(&host)
    }

    fn wants(&self, host: IpAddr, protocol: Protocol) -> bool {
        let is_protocol = match self.protocol {
            None => true,
            Some(ProtocolArg::Utp) => protocol == Protocol::Utp,
            Some(ProtocolArg::Tcp) => protocol == Protocol::Tcp,
        };
        is_protocol && self.wants_host(host)
    }

    /// Whether the page is to be printed.
    fn prints_page(&self) -> bool {
        self.report.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    const fn wants_samples(&self) -> bool {
        self.series || self.plot || self.report.is_some()
    }

    fn config(&self) -> Result<Config, Failure> {
        Ok(Config {
            selection: selection(self.filter.as_deref(), self.since, self.until)?,
            memory_bytes: usize::try_from(self.memory.0).unwrap_or(usize::MAX),
            samples_min: self.min_samples,
            base: self.base.map_or(Ok(Base::Whole), base)?,
            estimator: self.estimator(),
            protocol: self.protocol.map(|protocol| match protocol {
                ProtocolArg::Utp => Protocol::Utp,
                ProtocolArg::Tcp => Protocol::Tcp,
            }),
            pseudonyms: self.veil.pseudonyms().cloned(),
        })
    }
}

fn base(window: Duration) -> Result<Base, Failure> {
    const LEAST: Duration = Duration::from_secs(1);
    if window < LEAST {
        return Err(Failure::Usage(format!("--base: {window} is less than {LEAST}")));
    }
    Ok(Base::Sliding(window.as_micros()))
}

impl Keeper<'_> {
    fn shown(&self, socket: Socket) -> Socket {
        Socket { address: self.args.shown(socket.address), ..socket }
    }
}

impl Visitor for Keeper<'_> {
    fn wants(&self) -> Wants {
        if self.args.wants_samples() || self.data_set.is_some() {
            Wants::Samples
        } else if self.args.flows {
            Wants::Flows
        } else {
            Wants::Nothing
        }
    }

    fn sample(&mut self, sample: &QueueSample) {
        if sample.estimator != self.args.estimator()
            || !self.args.wants(sample.source.address, sample.protocol)
        {
            return;
        }
        let (source, destination) = (self.shown(sample.source), self.shown(sample.destination));
        let sample = QueueSample { source, destination, ..*sample };
        if let Some(data_set) = &mut self.data_set {
            data_set.sample(&sample);
        }
        if self.args.wants_samples() {
            self.samples.push(sample);
        }
    }

    fn flow(&mut self, flow: &FlowReport) {
        let lists_flows = self.args.flows || self.args.report.is_some();
        if !(lists_flows || self.data_set.is_some()) || !self.args.wants(flow.source.address, flow.protocol) {
            return;
        }
        let (source, destination) = (self.shown(flow.source), self.shown(flow.destination));
        let flow = FlowReport { source, destination, ..flow.clone() };
        if let Some(data_set) = &mut self.data_set {
            data_set.flow(&flow);
        }
        if lists_flows {
            self.flows.push(flow);
        }
    }
}

/// Reads captures, or watches an interface, and says what was found.
pub fn meter(args: &MeterArgs) -> Result<(), Failure> {
    if let Some(file) = &args.pseudonyms {
        args.veil.put_on(file.as_deref())?;
    }
    if args.live.interfaces.is_empty() { read(args) } else { watch(args) }
}

#[cfg(target_os = "linux")]
fn watch(args: &MeterArgs) -> Result<(), Failure> {
    live::run(args)
}

#[cfg(not(target_os = "linux"))]
fn watch(args: &MeterArgs) -> Result<(), Failure> {
    Err(Failure::Usage(format!(
        "live interfaces are read on Linux only; elsewhere: tcpdump -i {} -s 320 -w - | cede meter -",
        args.live.interfaces.join(" ")
    )))
}

fn read(args: &MeterArgs) -> Result<(), Failure> {
    if args.prints_page() && (args.json || args.csv || args.series) {
        let what =
            "--report -: standard output has room for the page alone, without --json, --csv or --series";
        return Err(Failure::Usage(what.to_owned()));
    }
    let captures = Captures::named(&args.files);
    let (meter, mut lacking) = source::read(&captures, &args.config()?)?;
    let mut findings = find(args, &captures, &meter);
    lacking.note_unread(&captures.files, &findings.report.counters);
    // To take a million flows apart is slower than to end.
    std::mem::forget(meter);
    let page = args.report.as_ref().map_or(Ok(()), |path| page::write(path, &page::page(args, &findings)));
    print(args, &findings)?;
    // A disk that is full takes nothing of what was found.
    let [damage, cut] = lacking.failures();
    told([damage, findings.unwritten.take(), page.err(), cut].into_iter().flatten())
}

/// All that went wrong is told; the last gives the exit code.
pub fn told(failures: impl Iterator<Item = Failure>) -> Result<(), Failure> {
    let mut last = None;
    for failure in failures {
        if let Some(before) = last.replace(failure) {
            screen::complain(&before.words());
        }
    }
    last.map_or(Ok(()), Err)
}

fn print(args: &MeterArgs, findings: &Findings) -> Result<(), Failure> {
    let screen = Screen::new(args.json || args.csv || args.series || args.prints_page());
    if args.series {
        show::mention_missing(findings);
        data::series(&findings.samples, args.json)
    } else if args.json {
        data::print_json(args, findings)
    } else if args.csv {
        show::print_csv(args, findings)
    } else {
        screen.say(&show::text(args, findings, &screen))
    }
}

fn find(args: &MeterArgs, captures: &Captures, meter: &Meter) -> Findings {
    let data_set = args.parquet.as_deref().map(|folder| parquet::DataSet::new(folder, args, captures));
    let mut keeper = Keeper { args, flows: Vec::new(), samples: Vec::new(), data_set };
    let mut report = meter.report_to(&mut keeper);
    let unwritten = keeper.data_set.and_then(|data_set| data_set.finish().err());
    report.hosts.retain(|host| args.wants_host(host.address));
    report.hosts.iter_mut().for_each(|host| host.address = args.shown(host.address));
    report.hosts.sort_by(worst_first);
    let mut flows = keeper.flows;
    let mean = |flow: &FlowReport| summary_of(args, flow).map_or(-1.0, |summary| summary.time_mean_ms);
    flows.sort_by(|a, b| mean(b).total_cmp(&mean(a)).then(a.source.cmp(&b.source)));
    Findings { report, flows, samples: keeper.samples, unwritten, lost: None }
}

/// The worst host first; of those that are alike, by what they are called.
fn worst_first(a: &HostReport, b: &HostReport) -> Ordering {
    b.all.time_mean_ms.total_cmp(&a.all.time_mean_ms).then(a.address.cmp(&b.address))
}

/// A flow's summary by the estimator that was asked for.
const fn summary_of<'a>(args: &MeterArgs, flow: &'a FlowReport) -> Option<&'a cede_meter::Summary> {
    match args.estimator {
        EstimatorArg::Direct => flow.direct.as_ref(),
        EstimatorArg::Echoed => flow.echoed.as_ref(),
    }
}
