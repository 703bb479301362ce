//! The options of the verbs that carry data.

use cede_carry::DEFAULT_PORT;
use cede_carry::bench::ControllerSpec;
use cede_units::{Bytes, Duration, Rate};
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// A span of time; a bare number is seconds, as with iperf3.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(Duration::from_secs_f64(number)),
        Ok(_) => Err("write seconds, or a time with its unit: 10, \"500 ms\", \"2 min\"".to_owned()),
        Err(_) => text.parse::<Duration>().map_err(|error| error.to_string()),
    }
}

/// An amount; a bare number is octets, as with iperf3.
fn octets(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse::<u64>() {
        return Ok(number);
    }
    text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| match text.chars().last() {
        // iperf3 means 1024 by k, and others 1000.
        Some(unit @ ('k' | 'K' | 'M' | 'G')) => {
            let number = &text[..text.len() - 1];
            let unit = unit.to_ascii_uppercase();
            let si = if unit == 'K' { 'k' } else { unit };
            format!("`{unit}` alone is ambiguous: write {number}{si}B (powers of 1000) or {number}{unit}iB (powers of 1024)")
        }
        _ => error.to_string(),
    })
}

fn rate(text: &str) -> Result<Rate, String> {
    text.parse::<Rate>().map_err(|error| error.to_string())
}

/// `ADDRESS:PORT`, or a port alone, which is one of the loopback.
pub fn loopback_by_default(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| {
        "write ADDRESS:PORT, such as 0.0.0.0:6817 or [::]:6817 for every interface, or PORT for the loopback alone"
            .to_owned()
    })
}

/// Which congestion controller sends.
#[derive(Args, Debug, Default)]
pub struct ControllerArgs {
    /// The congestion controller of what sends (`cede list controllers`) [default: ledbat]
    #[arg(short = 'C', long = "controller", visible_alias = "congestion", value_name = "NAME")]
    pub controller: Option<String>,
    /// The queueing delay that the controller aims at, where it has one [example: --target 25ms]
    #[arg(long, value_name = "TIME")]
    pub target: Option<String>,
    /// Set a parameter of the controller; may be repeated [example: -s gain=0.5]
    #[arg(short = 's', long = "set", value_name = "PARAM=VALUE")]
    pub set: Vec<String>,
}

impl ControllerArgs {
    /// Whether anything was chosen.
    pub const fn is_default(&self) -> bool {
        self.controller.is_none() && self.target.is_none() && self.set.is_empty()
    }

    /// What was chosen.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn spec(&self) -> Result<ControllerSpec, String> {
        let name = self.controller.clone().unwrap_or_else(|| "ledbat".to_owned());
        let target = self.target.iter().map(|value| Ok(("target".to_owned(), value.clone())));
        let set = self.set.iter().map(|text| match text.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(format!("-s {text}: write PARAM=VALUE, such as -s target=25ms")),
        });
        Ok(ControllerSpec { name, params: target.chain(set).collect::<Result<_, _>>()? })
    }
}

/// `[ADDRESS:]PORT`, whatever a port alone may mean.
pub fn address_or_port(text: &str) -> Result<(Option<IpAddr>, u16), String> {
    match text.parse::<u16>() {
        Ok(port) => Ok((None, port)),
        Err(_) => loopback_by_default(text).map(|address| (Some(address.ip()), address.port())),
    }
}

/// The secret that both ends share.
#[derive(Args, Debug, Default)]
pub struct KeyArgs {
    /// Encrypt and authenticate everything by the key in this file, which the other end must have too (`cede key`); the
    /// environment's CEDE_KEY, which holds its text, does the same
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
}

const KEY_EXAMPLES: &str = "\
Examples:
  cede key backup.key                        make a key; copy the file to the other end
  cede serve --dir inbox --key backup.key    there
  cede send film.mkv there --key backup.key  here
  CEDE_KEY=$(pass show backup) cede send film.mkv there

Whoever has the key can read, send and receive as either end: one for each pair of ends is best.
Nothing that was carried earlier can be read with it. A new file replaces it: make another and copy
it. The fingerprint, which is no secret, tells whether two ends have the same.";

/// `cede key`.
#[derive(Args, Debug)]
#[command(after_help = KEY_EXAMPLES)]
pub struct MakeKeyArgs {
    /// Where to put it, for its owner alone; what is there is never replaced. - prints it
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub file: PathBuf,
    /// Say whether FILE is a key, and its fingerprint, in place of making one
    #[arg(short, long)]
    pub check: bool,
    /// Print the fingerprint as a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  cede serve                                 answer tests at UDP port 6817, IPv4 and IPv6
  cede serve --once -p 7000                  one test or file, then the end
  cede serve --dir inbox                     take files too: cede send FILE HOST:PORT
  cede serve film.mkv                        give a file: cede recv HOST:PORT -o film.mkv
  cede serve --dir inbox --key backup.key    all of this for those alone who have the key

Without --key whoever reaches the port may use it, and nothing is encrypted. Files are only taken
with --dir, only into that folder, under names that cannot lead out of it, and what is there is not
replaced without --force.
Ctrl-C ends it (exit code 130).";

/// `cede serve`.
#[derive(Args, Debug)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// Files that are given to whoever asks for them by name
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The UDP port; 0 takes a free one and says which
    #[arg(short, long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// The address [default: all, IPv4 and IPv6] [example: --bind 192.0.2.1]
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// End after one test or file
    #[arg(short = '1', long, visible_alias = "one-off")]
    pub once: bool,
    /// Take files into this folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Replace files of the same name
    #[arg(long, requires = "dir")]
    pub force: bool,
    /// Take no file longer than that [example: --max-size 10GB]
    #[arg(long, value_name = "SIZE", value_parser = octets, requires = "dir")]
    pub max_size: Option<u64>,
    /// What this side sends with, where the other does not say
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// The key
    #[command(flatten)]
    pub key: KeyArgs,
    /// Print one JSON document per line for each event
    #[arg(short = 'J', long)]
    pub json: bool,
}

const SEND_EXAMPLES: &str = "\
Examples:
  cede send example.org:6817                 test the way there for 10 s, with LEDBAT
  cede send example.org -t 30 -i 5 -R        30 s, the other end sends, a line every 5 s
  cede send example.org -C cubic -P 4        four streams of a controller that does not yield
  cede send example.org --target 25ms -b 20Mbit --json | jq .end.sum_received
  cede send film.mkv example.org:6817        a file, to `cede serve --dir` or `cede recv`
  tar c photos | cede send - example.org     standard input
  cede send film.mkv there --key backup.key  encrypted, to who has the same key (cede key)

The other end runs `cede serve` for tests, `cede serve --dir FOLDER` or `cede recv` for files.
A file that was interrupted goes on where it ended when the same command is given again.
Columns: what the receiver has acknowledged, its rate, the round trip, how long packets queue (~
where that is the RTT less the smallest, because the controller does not say), packets sent again,
and the congestion window.
Ctrl-C ends a test with what there is (exit code 130).";

/// `cede send`.
#[derive(Args, Debug)]
#[command(
    after_help = SEND_EXAMPLES,
    override_usage = "cede send [OPTIONS] HOST[:PORT]          test the way there\n       cede send [OPTIONS] FILE HOST[:PORT]     send a file; - is standard input"
)]
pub struct SendArgs {
    /// A file to be sent, or - for standard input; without one the way is tested. Then whereto
    #[arg(value_names = ["FILE", "HOST:PORT"], num_args = 1..=2, required = true, value_hint = ValueHint::AnyPath)]
    pub what: Vec<OsString>,
    /// The port where HOST has none
    #[arg(short, long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// How long to test [default: 10]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "bytes")]
    pub time: Option<Duration>,
    /// How much to send on each stream instead [example: -n 100MB]
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = octets)]
    pub bytes: Option<u64>,
    /// How often to print a line; 0 for none before the end [default: 1]
    #[arg(short = 'i', long, value_name = "SECONDS", value_parser = seconds)]
    pub interval: Option<Duration>,
    /// The other end sends
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// How many streams at once
    #[arg(short = 'P', long, value_name = "N")]
    pub parallel: Option<u16>,
    /// Send no faster on each stream [example: -b 10Mbit]
    #[arg(short = 'b', long = "bitrate", value_name = "RATE", value_parser = rate)]
    pub rate: Option<Rate>,
    /// What sends with
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// The key
    #[command(flatten)]
    pub key: KeyArgs,
    /// The name that a file has at the receiver [default: its own]
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    /// Print one JSON document at the end, and words on standard error
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Print one JSON document per line: start, each interval, end
    #[arg(long, conflicts_with = "json")]
    pub json_stream: bool,
}

const RECV_EXAMPLES: &str = "\
Examples:
  cede recv -o film.mkv                      wait for one file at UDP port 6817
  cede recv -p 7000                          under the name that the sender gives, in this folder
  cede recv -o - | tar x                     to standard output
  cede recv example.org:6817 -o film.mkv     fetch it from `cede serve film.mkv`
  cede recv -o film.mkv --key backup.key     from nobody but who has the same key (cede key)

While it comes it is in FILE.part. After an interruption of either end the same commands go on where
it ended: the parts at both ends are compared by their digest first. The whole is checked by its
BLAKE3 digest before it gets its name.";

/// `cede recv`.
#[derive(Args, Debug)]
#[command(after_help = RECV_EXAMPLES)]
pub struct RecvArgs {
    /// Fetch from there in place of waiting
    #[arg(value_name = "HOST:PORT")]
    pub from: Option<String>,
    /// Where to put it: a file, a folder, or - for standard output [default: the sender's name for it, in this folder]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long)]
    pub force: bool,
    /// The UDP port to wait at, or that of HOST where it has none; 0 takes a free one and says which
    #[arg(short, long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// The address to wait at [default: all, IPv4 and IPv6]
    #[arg(short = 'B', long, value_name = "ADDRESS", conflicts_with = "from")]
    pub bind: Option<IpAddr>,
    /// Which of several files to fetch
    #[arg(long, value_name = "NAME", requires = "from")]
    pub name: Option<String>,
    /// Take no file longer than that [example: --max-size 10GB]
    #[arg(long, value_name = "SIZE", value_parser = octets)]
    pub max_size: Option<u64>,
    /// The key
    #[command(flatten)]
    pub key: KeyArgs,
    /// Print what came as a JSON document, and words on standard error
    #[arg(short = 'J', long)]
    pub json: bool,
}

const PIPE_EXAMPLES: &str = "\
Examples:
  cede pipe -l 7000 > copy                   wait for somebody at UDP port 7000
  cede pipe example.org:7000 < original      and this is somebody
  cede pipe -l 127.0.0.1:7000                on the loopback alone
  cede pipe -l 7000 --key backup.key         for who has the same key (cede key) and runs cede pipe

Without --key nothing is encrypted and nothing is added on the wire: any program that speaks uTP can
be at the other end. With it both ends must be cede and have the same key. The end of
standard input ends this direction and leaves the other open; the pipe ends when both have ended.
Where standard input is a terminal, it ends when the other end has. Without --key nothing is checked
but what uTP checks; for files there are `cede send` and `cede recv`.";

/// `cede pipe`.
#[derive(Args, Debug)]
#[command(after_help = PIPE_EXAMPLES)]
pub struct PipeArgs {
    /// Whereto, or with -l where to wait: PORT or ADDRESS:PORT
    #[arg(value_name = "HOST:PORT|PORT")]
    pub address: String,
    /// Wait for somebody
    #[arg(short, long)]
    pub listen: bool,
    /// Read nothing from standard input: this direction ends at once
    #[arg(short = 'd', long, visible_alias = "recv-only")]
    pub no_stdin: bool,
    /// What this side sends with
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// The key
    #[command(flatten)]
    pub key: KeyArgs,
    /// Print totals as a JSON document on standard error at the end
    #[arg(short = 'J', long)]
    pub json: bool,
}

const PROXY_EXAMPLES: &str = "\
Examples, with a backup through ssh as the case in point:
  there:  cede proxy --utp-listen 6817 --to 127.0.0.1:22 --key backup.key
  here:   cede proxy --listen 2222 --to there.example.org:6817 --key backup.key
  here:   rsync -e 'ssh -p 2222' -a photos localhost:photos

What it cannot do:
  * Both ends must run it: uTP is not TCP, and nothing on the way translates.
  * Without --key it is neither encrypted nor authenticated, and whoever reaches the --utp-listen
    end reaches the server behind it: a port alone means the loopback there, and with --key every
    interface.
  * --listen speaks TCP in the clear, and whoever reaches it speaks with your key: a port alone
    means the loopback.
  * It carries TCP and nothing else, to one server, which sees the proxy's address.
  * Conversations of short questions and answers gain nothing: a line is taken back slowly.";

/// `cede proxy`.
#[derive(Args, Debug)]
#[command(
    after_help = PROXY_EXAMPLES,
    override_usage = "cede proxy [OPTIONS] --listen [ADDRESS:]PORT --to HOST:PORT       from TCP to the other proxy\n       cede proxy [OPTIONS] --utp-listen [ADDRESS:]PORT --to HOST:PORT   from the other proxy to TCP"
)]
pub struct ProxyArgs {
    /// Take TCP connections here and carry them over uTP to the proxy at --to
    #[arg(short, long, value_name = "[ADDRESS:]PORT", value_parser = loopback_by_default, required_unless_present = "utp_listen", conflicts_with = "utp_listen")]
    pub listen: Option<SocketAddr>,
    /// Take what the other proxy carries over uTP here, and connect it to the TCP server at --to
    #[arg(short, long, value_name = "[ADDRESS:]PORT", value_parser = address_or_port)]
    pub utp_listen: Option<(Option<IpAddr>, u16)>,
    /// Whereto: the other proxy, or the TCP server
    #[arg(long, value_name = "HOST:PORT")]
    pub to: String,
    /// How many connections at once; more are reset
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=2500))]
    pub max_connections: u16,
    /// How often to print a line where something moves; 0 for none before the end
    #[arg(short = 'i', long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub interval: Duration,
    /// What this side sends with
    #[command(flatten)]
    pub controller: ControllerArgs,
    /// The key
    #[command(flatten)]
    pub key: KeyArgs,
    /// Print a JSON document per line for each interval, and words on standard error
    #[arg(short = 'J', long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_amounts_are_read_as_iperf3_reads_them_or_with_their_units() {
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(seconds("2 min"), Ok(Duration::from_secs(120)));
        assert!(seconds("-1").is_err() && seconds("10 MB").is_err());
        assert_eq!(octets("1000"), Ok(1000));
        assert_eq!(octets("1 MiB"), Ok(1 << 20));
        assert!(octets("10M").unwrap_err().contains("10MiB"));
        assert!(octets("10k").unwrap_err().contains("10kB"));
        assert!(octets("5s").is_err());
    }

    #[test]
    fn a_port_alone_is_one_of_the_loopback() {
        assert_eq!(loopback_by_default("7"), Ok(SocketAddr::from(([127, 0, 0, 1], 7))));
        assert_eq!(loopback_by_default("[::]:7"), Ok(SocketAddr::from(([0_u16; 8], 7))));
        assert!(loopback_by_default("everywhere").is_err());
        assert_eq!(address_or_port("7"), Ok((None, 7)));
        assert_eq!(address_or_port("[::]:7"), Ok((Some(IpAddr::from([0_u16; 8])), 7)));
        assert!(address_or_port("everywhere").is_err());
    }
}
