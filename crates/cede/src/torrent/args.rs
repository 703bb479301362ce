//! The options of `cede torrent`.

use super::control::ControlArgs;
use super::daemon::args::DaemonArgs;
use super::duty::UntilArgs;
use cede_bt::metainfo::{MAX_PIECE_BYTES, MIN_PIECE_BYTES};
use cede_bt::{Disposition, Profile};
use cede_torrent::session::Encryption;
use cede_units::{Bytes, Duration, Rate};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  cede torrent make photos -t http://tracker.example:6969/announce
  cede torrent seed photos.torrent                      from this folder, until Ctrl-C
  cede torrent get photos.torrent -o inbox              and elsewhere, this fetches it
  cede torrent get 'magnet:?xt=urn:btih:...' --transport utp
  cede torrent tracker -p 6969                          a tracker of one's own";

/// `cede torrent`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct TorrentArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with torrents.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Download a torrent from its file, its URL or a magnet link
    Get(GetArgs),
    /// Give a torrent's content to others
    Seed(SeedArgs),
    /// Fetch and give torrents as others ask for it: by Transmission's tools and its RPC protocol
    Daemon(DaemonArgs),
    /// Run a tracker, over HTTP and UDP
    Tracker(TrackerArgs),
    /// Make a torrent of a file or folder
    Make(MakeArgs),
    /// Show what a torrent file, its URL or a magnet link says
    Show(ShowArgs),
    /// Check whether files are what a torrent says, and call nobody
    Verify(VerifyArgs),
}

/// The length of pieces: a power of two.
fn piece_length(text: &str) -> Result<u32, String> {
    let bytes = match text.parse::<u64>() {
        Ok(number) => number,
        Err(_) => text.parse::<Bytes>().map_err(|error| error.to_string())?.0,
    };
    let length = u32::try_from(bytes).ok().filter(|length| length.is_power_of_two());
    length
        .filter(|length| (MIN_PIECE_BYTES..=MAX_PIECE_BYTES).contains(length))
        .ok_or_else(|| "take a power of two from 16KiB to 64MiB, such as 256KiB".to_owned())
}

const MAKE_EXAMPLES: &str = "\
Examples:
  cede torrent make film.mkv                            film.mkv.torrent, without a tracker
  cede torrent make photos -t http://a/announce -t udp://b:6969 -o trip.torrent
  cede torrent make photos -t http://a/announce --private --comment 'only for us'
  cede torrent make photos --web-seed http://mirror.example/pub/     photos is in pub

Files are taken in the order of their names; links, pipes and devices are passed over. The length of
pieces is chosen so that there are about 1,500, from 16 KiB to 16 MiB.";

/// `cede torrent make`.
#[derive(Args, Debug)]
#[command(after_help = MAKE_EXAMPLES)]
pub struct MakeArgs {
    /// The file or folder
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub path: PathBuf,
    /// A tracker's URL (http, https or udp); may be repeated, each is a tier of its own
    #[arg(short, long = "tracker", visible_alias = "announce", value_name = "URL", value_parser = tracker_url)]
    pub trackers: Vec<String>,
    /// A server that has the content: the file's URL, or that of the folder which it is in, with a / at its end; may be repeated
    #[arg(long = "web-seed", value_name = "URL", value_parser = web_url)]
    pub web_seeds: Vec<String>,
    /// Where to put the torrent; - for standard output [default: PATH's name with .torrent]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Octets of a piece, a power of two [default: by the size] [example: -l 256KiB]
    #[arg(short = 'l', long, value_name = "SIZE", value_parser = piece_length)]
    pub piece_length: Option<u32>,
    /// Make a torrent of v2 (BEP 52): SHA-256, a tree of hashes for each file; older clients cannot use it
    #[arg(long)]
    pub v2: bool,
    /// Peers come from the trackers alone: no DHT, no peer exchange, nothing said in the local network (BEP 27)
    #[arg(long)]
    pub private: bool,
    /// Something to say
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// Makes the info-hash another one for the same content, as private trackers ask for
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,
    /// Leave the date out, so that the same content gives the same file
    #[arg(long)]
    pub no_date: bool,
    /// Do not say which files are executable (BEP 47), so that the info-hash does not depend on it
    #[arg(long)]
    pub no_attributes: bool,
    /// Replace a file that is there
    #[arg(long)]
    pub force: bool,
    /// Print what was made as a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  cede torrent show photos.torrent
  cede torrent show photos.torrent --json | jq -r .magnet
  cede torrent show 'magnet:?xt=urn:btih:...'

Hybrid torrents are used by their v1 side.";

/// `cede torrent show`.
#[derive(Args, Debug)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowArgs {
    /// A torrent file, - for standard input, a magnet link, or the URL of either
    #[arg(value_name = "FILE|MAGNET|URL|-", value_hint = ValueHint::FilePath)]
    pub what: String,
    /// Print a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  cede torrent verify photos.torrent                    photos in this folder
  cede torrent verify photos.torrent --data /mnt/archive --json

Exit code 0 where all files are right, 1 where one is not.";

/// `cede torrent verify`.
#[derive(Args, Debug)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct VerifyArgs {
    /// A torrent file, - for standard input
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub what: PathBuf,
    /// The folder that the content is in
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub data: PathBuf,
    /// Print a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// The bitmask of uTorrent's `bt.transp_disposition`, or names.
fn transport(text: &str) -> Result<Disposition, String> {
    let named = |name: &str| match name.trim().to_ascii_lowercase().as_str() {
        "both" | "all" => Some(Disposition::ALL.0),
        "tcp" => Some(Disposition::TCP.0),
        "utp" => Some(Disposition::UTP.0),
        _ => None,
    };
    let names = || text.split(['+', ',']).try_fold(0, |mask, name| Some(mask | named(name)?));
    // The sixteen chooses between uTP's headers, of which there is one.
    let mask = text.parse::<u8>().ok().filter(|mask| mask & 15 != 0 && *mask < 32);
    mask.or_else(names).map(Disposition).ok_or_else(|| {
        "take tcp, utp or both, or the sum of 1 (attempt TCP), 2 (attempt uTP), 4 (accept TCP), 8 (accept uTP)".to_owned()
    })
}

fn profile(text: &str) -> Result<Profile, String> {
    Profile::named(text).ok_or_else(|| {
        let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
        format!("take one of {}", names.join(", "))
    })
}

/// Octets per second.
fn rate(text: &str) -> Result<u64, String> {
    let rate = text.parse::<Rate>().map_err(|error| error.to_string())?;
    match rate.bits_per_sec() / 8 {
        0 => Err("that is no rate to go by; leave it out for no limit".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A peer that was named, and its addresses: a name may have several, of which it takes calls at one alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedPeer {
    /// What it was called.
    pub name: String,
    /// Where it may be.
    pub addresses: Vec<SocketAddr>,
}

/// Addresses of one name that are called.
const ADDRESSES_MAX: usize = 8;

/// A peer's addresses; names are looked up.
fn peer(text: &str) -> Result<NamedPeer, String> {
    let named = |addresses| NamedPeer { name: text.to_owned(), addresses };
    if let Some((address, zone, port)) = zoned(text) {
        return Ok(named(vec![peer_of_link(address, zone, port)?]));
    }
    host_port(text)?;
    let found: Vec<SocketAddr> =
        text.to_socket_addrs().map_err(|error| error.to_string())?.take(ADDRESSES_MAX).collect();
    match found[..] {
        [] => Err("nothing is known by that name".to_owned()),
        [SocketAddr::V6(v6)] if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => Err(format!(
            "an address of a link needs its interface: [{}%eth0]:{}, or its number there",
            v6.ip(),
            v6.port()
        )),
        _ => Ok(named(found)),
    }
}

/// "[fe80::1%eth0]:6881", taken apart.
fn zoned(text: &str) -> Option<(Ipv6Addr, &str, u16)> {
    let (inner, port) = text.strip_prefix('[')?.rsplit_once("]:")?;
    let (address, zone) = inner.split_once('%')?;
    Some((address.parse().ok()?, zone, port.parse().ok().filter(|port| *port > 0)?))
}

/// A peer on the link of an interface, which has a name and a number.
fn peer_of_link(address: Ipv6Addr, zone: &str, port: u16) -> Result<SocketAddr, String> {
    if !address.is_unicast_link_local() {
        return Err(format!("{address} is no address of a link (fe80::/10): leave %{zone} out"));
    }
    // The system's own lookup knows the names on every system, and takes any number.
    let found = (format!("{address}%{zone}"), port).to_socket_addrs().ok().and_then(|mut found| found.next());
    match found {
        Some(SocketAddr::V6(v6)) if v6.scope_id() != 0 && is_interface(v6.scope_id()) => Ok(v6.into()),
        _ => Err(format!("this machine has no interface {zone}")),
    }
}

/// Whether an interface has that number, as far as that can be known.
#[cfg(target_os = "linux")]
fn is_interface(index: u32) -> bool {
    nix::net::if_::if_nameindex().map_or(true, |all| all.iter().any(|interface| interface.index() == index))
}

#[cfg(not(target_os = "linux"))]
const fn is_interface(_index: u32) -> bool {
    true
}

/// An address of this machine.
fn address(text: &str) -> Result<IpAddr, String> {
    let words = "take an address of this machine, such as 192.0.2.1 or 2001:db8::1 (no name, no interface)";
    match text.parse().map_err(|_| words.to_owned())? {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            Err("an address of fe80::/10 holds on one wire alone; take another one of this machine"
                .to_owned())
        }
        address => Ok(address),
    }
}

/// A host and a port.
fn host_port(text: &str) -> Result<String, String> {
    let is_host = |host: &str| match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()),
        None => !host.is_empty() && !host.contains(':'),
    };
    match text.rsplit_once(':') {
        Some((host, port)) if is_host(host) && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(text.to_owned())
        }
        _ => Err("take a host and a port, such as 192.0.2.1:6881 or [2001:db8::1]:6881".to_owned()),
    }
}

/// The scheme of a URL, if it is one of these in whatever case (RFC 3986, section 3.1), and what stands behind it.
pub(super) fn of_schemes<'a>(text: &'a str, schemes: &[&str]) -> Option<(&'a str, &'a str)> {
    let (scheme, rest) = text.split_once("://")?;
    schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some((scheme, rest))
}

/// A tracker's URL.
fn tracker_url(text: &str) -> Result<String, String> {
    let (scheme, rest) = of_schemes(text, &["http", "https", "udp"])
        .ok_or("a tracker's URL begins with http://, https:// or udp://")?;
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if host.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(
            "that names no host, or has a space in it; write http://tracker.example/announce".to_owned()
        );
    }
    if scheme.eq_ignore_ascii_case("udp") && host_port(host).is_err() {
        return Err("a UDP tracker is named with its port, such as udp://tracker.example:6969".to_owned());
    }
    Ok(text.to_owned())
}

/// A web seed's URL.
fn web_url(text: &str) -> Result<String, String> {
    let parts = of_schemes(text, &["http", "https"]);
    let host = parts.and_then(|(_, rest)| rest.split(['/', '?']).next()).filter(|host| !host.is_empty());
    if host.is_none() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(
            "a web seed is an http or https URL without spaces, such as http://mirror.example/films/"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

/// What peers wait between two announces.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = text.parse::<Duration>().map_err(|error| error.to_string())?;
    if interval < Duration::from_secs(1) {
        return Err("take at least 1s: peers would ask without a pause".to_owned());
    }
    Ok(interval)
}

/// Whether connections are enciphered.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EncryptionArg {
    /// Never
    Off,
    /// If the peer begins so and offers nothing else, or has hung up on the clear
    Allow,
    /// Tried first, in the clear where that fails
    Prefer,
    /// Always
    Require,
}

impl From<EncryptionArg> for Encryption {
    fn from(argument: EncryptionArg) -> Self {
        match argument {
            EncryptionArg::Off => Self::Off,
            EncryptionArg::Allow => Self::Allow,
            EncryptionArg::Prefer => Self::Prefer,
            EncryptionArg::Require => Self::Require,
        }
    }
}

/// What is common to `get` and `seed`.
#[derive(Args, Clone, Debug)]
pub struct SwarmArgs {
    /// TCP and UDP port; 0 takes a free one [default: 6881, or a free one where that is taken]
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
    /// The address to wait at, and that all connections and announces go out from [default: all, IPv4 and IPv6]
    #[arg(short = 'B', long, value_name = "ADDRESS", value_parser = address)]
    pub bind: Option<IpAddr>,
    /// Transports: tcp, utp, both, or the sum of 1 attempt TCP, 2 attempt uTP, 4 accept TCP, 8 accept uTP
    #[arg(long, value_name = "WHICH", default_value = "31", value_parser = transport)]
    pub transport: Disposition,
    /// How it behaves among peers: mainline4, libtorrent (uTP first, TCP if that fails) or utorrent3 (both race, uTP wins)
    #[arg(long, value_name = "NAME", default_value = "utorrent3", value_parser = profile)]
    pub profile: Profile,
    /// What steers how much is sent.
    #[command(flatten)]
    pub control: ControlArgs,
    /// Send no faster, all peers and torrents together [example: --up 500kB/s]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub up: Option<u64>,
    /// Read no faster, all peers and torrents together [example: --down 10Mbit/s]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub down: Option<u64>,
    /// Connections at most, of all torrents together [default: 500, and for each what its profile has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_peers: Option<u32>,
    /// Whether connections are enciphered (MSE)
    #[arg(long, value_name = "WHEN", value_enum, default_value = "allow")]
    pub encryption: EncryptionArg,
    /// A further tracker; may be repeated
    #[arg(short, long = "tracker", value_name = "URL", value_parser = tracker_url)]
    pub trackers: Vec<String>,
    /// A peer to connect to; may be repeated [example: --peer '[fe80::1%eth0]:6881']
    #[arg(long = "peer", value_name = "HOST:PORT", value_parser = peer)]
    pub peers: Vec<NamedPeer>,
    /// Do not look for peers in the distributed hash table
    #[arg(long)]
    pub no_dht: bool,
    /// A node of the table to begin with, in place of the usual ones; may be repeated
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    pub dht_node: Vec<String>,
    /// The UDP port of our nodes of the table, over IPv4 and IPv6; 0 for a free one of each [default: 6881, or a free one where that is taken]
    #[arg(long, value_name = "PORT", conflicts_with = "no_dht")]
    pub dht_port: Option<u16>,
    /// Do not look for peers in the local network (local service discovery)
    #[arg(long)]
    pub no_lsd: bool,
    /// Do not ask the router to lead others to our port (PCP, NAT-PMP, UPnP)
    #[arg(long)]
    pub no_port_mapping: bool,
    /// Do not exchange peers with peers
    #[arg(long)]
    pub no_pex: bool,
    /// Do not fetch from the servers that a torrent or link names (web seeds, BEP 19)
    #[arg(long)]
    pub no_web_seeds: bool,
    /// Print one JSON document per line for each event, and words on standard error
    #[arg(short = 'J', long)]
    pub json: bool,
}

const GET_EXAMPLES: &str = "\
Examples:
  cede torrent get photos.torrent -o inbox
  cede torrent get *.torrent -o inbox --down 20Mbit/s   all of them at once, 20 Mbit/s together
  cede torrent get 'magnet:?xt=urn:btih:...&tr=udp://tracker.example:6969'
  cede torrent get http://example.org/photos.torrent --files 0,3-5
  cede torrent get photos.torrent --transport utp --utp-target-delay 25ms -C ledbat++
  cede torrent get photos.torrent --up 100kB/s --seed   goes on giving when it has everything
  cede torrent get photos.torrent --seed-ratio 1.5      until half as much again was sent

An interrupted download goes on where it ended when the same command is given again: what is there
is checked by its hashes. Nothing is written outside of the folder. The numbers of files are those
of `cede torrent show`. Ctrl-C, SIGTERM or a closed terminal (SIGHUP) ends it in order (exit code
130) and keeps what has come, also where everything has; one more, 2 s later, ends it at once.";

/// `cede torrent get`.
#[derive(Args, Clone, Debug)]
#[command(after_help = GET_EXAMPLES)]
pub struct GetArgs {
    /// A torrent file, its http URL, or a magnet link; several share the port and the limits
    #[arg(value_name = "FILE|MAGNET|URL", value_hint = ValueHint::FilePath, required = true)]
    pub what: Vec<String>,
    /// The folder to put it into
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub output: PathBuf,
    /// Which files, by their numbers or a part of their names [default: all] [example: --files 0,3-5,readme]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub files: Vec<String>,
    /// Set all room aside at the beginning
    #[arg(long)]
    pub preallocate: bool,
    /// Write over files that are there already, though they hold no piece of this torrent
    #[arg(long)]
    pub overwrite: bool,
    /// Write the torrent file of a link or URL there [example: --save-torrent photos.torrent]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save_torrent: Option<PathBuf>,
    /// Go on giving when everything is there
    #[arg(long)]
    pub seed: bool,
    /// Until when
    #[command(flatten)]
    pub until: UntilArgs,
    /// How it is fetched
    #[command(flatten)]
    pub swarm: SwarmArgs,
}

const SEED_EXAMPLES: &str = "\
Examples:
  cede torrent seed photos.torrent                      from photos in this folder
  cede torrent seed photos.torrent --data /mnt/archive --up 2Mbit/s
  cede torrent seed *.torrent --data /mnt/archive       all of them, at one port
  cede torrent seed photos.torrent --super-seed         the first seed: little is sent twice
  cede torrent seed photos.torrent --seed-time 8h       for a night

The content is checked first; pieces that are missing or different are not given. Ctrl-C, SIGTERM or
a closed terminal (SIGHUP) ends it in order (exit code 130); one more, 2 s later, ends it at once.";

/// `cede torrent seed`.
#[derive(Args, Clone, Debug)]
#[command(after_help = SEED_EXAMPLES)]
pub struct SeedArgs {
    /// A torrent file; several share the port and the limits
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required = true)]
    pub what: Vec<String>,
    /// The folder that the content is in
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".", alias = "output", short_alias = 'o')]
    pub data: PathBuf,
    /// Seem to have nothing, and tell each peer of two pieces at a time: for the first seed of a new torrent (BEP 16)
    #[arg(long)]
    pub super_seed: bool,
    /// Until when
    #[command(flatten)]
    pub until: UntilArgs,
    /// How it is given
    #[command(flatten)]
    pub swarm: SwarmArgs,
}

const TRACKER_EXAMPLES: &str = "\
Examples:
  cede torrent tracker                       http://HOST:6969/announce and udp://HOST:6969
  cede torrent tracker --interval 60s --json | tee announces.jsonl
  cede torrent tracker --only photos.torrent

Each announce is a line: when (UTC), who, over what, which torrent, why, what is left, how many
peers it heard of. Ctrl-C, SIGTERM or a closed terminal (SIGHUP) ends it (exit code 130).";

/// `cede torrent tracker`.
#[derive(Args, Debug)]
#[command(after_help = TRACKER_EXAMPLES)]
pub struct TrackerArgs {
    /// TCP and UDP port; 0 takes a free one and says which
    #[arg(short, long, value_name = "PORT", default_value_t = 6969)]
    pub port: u16,
    /// The address [default: all, IPv4 and IPv6]
    #[arg(short = 'B', long, value_name = "ADDRESS", value_parser = address)]
    pub bind: Option<IpAddr>,
    /// What peers are told to wait between two announces
    #[arg(long, value_name = "TIME", default_value = "30 min", value_parser = interval)]
    pub interval: Duration,
    /// Only for these torrents; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub only: Vec<PathBuf>,
    /// Print one JSON document per line for each announce
    #[arg(short = 'J', long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_names_or_a_bitmask() {
        assert_eq!(transport("utp"), Ok(Disposition(10)));
        assert_eq!(transport("13"), Ok(Disposition(13)));
        assert_eq!((transport("TCP"), transport("tcp+uTP")), (Ok(Disposition(5)), Ok(Disposition(15))));
        assert!(transport("16").is_err() && transport("").is_err() && transport("tcp,").is_err());
        assert!(transport("0").is_err() && transport("32").is_err() && transport("quic").is_err());
        assert_eq!(rate("100kB/s"), Ok(100_000));
        assert!(rate("100").is_err() && rate("1bit/s").is_err());
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let addresses = |text| peer(text).map(|peer| peer.addresses);
        assert_eq!(addresses("192.0.2.1:6881"), Ok(vec![SocketAddr::from(([192, 0, 2, 1], 6881))]));
        assert!(addresses("[::1]:6881").is_ok_and(|found| found[0].is_ipv6() && found.len() == 1));
        assert!(addresses("localhost:6881").is_ok_and(|found| found.iter().all(|it| it.ip().is_loopback())));
        // The system's lookup of "lo" is the same everywhere on Linux.
        #[cfg(target_os = "linux")]
        for text in ["[fe80::1%lo]:6881", "[fe80::1%1]:6881"] {
            assert_eq!(
                addresses(text).map(|found| found[0].to_string()),
                Ok("[fe80::1%1]:6881".to_owned()),
                "{text}"
            );
        }
        for (text, words) in [
            ("[fe80::1%no-such-one]:6881", "no interface no-such-one"),
            ("[fe80::1%]:6881", "no interface"),
            ("[fe80::1%0]:6881", "no interface 0"),
            ("[fe80::1]:6881", "[fe80::1%eth0]:6881"),
            ("[2001:db8::1%lo]:6881", "leave %lo out"),
            ("[fe80::1%lo]:0", "such as"),
            ("[fe80::1%lo]", "such as"),
        ] {
            assert!(peer(text).is_err_and(|told| told.contains(words)), "{text}: {:?}", peer(text));
        }
        #[cfg(target_os = "linux")]
        assert!(peer("[fe80::1%4294967295]:6881").is_err());
        for text in ["192.0.2.1", "6881", ":6881", "192.0.2.1:0", "192.0.2.1:x", "[::1]", "::1", "[x]:1", ""]
        {
            assert!(peer(text).is_err_and(|told| told.contains("such as")), "{text}");
            assert!(host_port(text).is_err(), "{text}");
        }
        for url in
            ["udp://a:1", "udp://[::1]:1/announce", "http://a", "https://a:1/x?y=z", "UDP://a:1", "Http://a"]
        {
            assert!(tracker_url(url).is_ok(), "{url}");
        }
        for url in
            ["ftp://a", "a:1", "http://", "http:///x", "udp://a", "udp://a/x", "UDP://a", "http://a b/x", ""]
        {
            assert!(tracker_url(url).is_err(), "{url}");
        }
        assert!(web_url("https://a/d/").is_ok() && web_url("HTTP://a").is_ok());
        for url in ["ftp://a/d", "http:///d", "http://a b", "a/d", ""] {
            assert!(web_url(url).is_err(), "{url}");
        }
        assert!(address("2001:db8::1").is_ok() && address("fe80::1").is_err() && address("a").is_err());
        assert!(interval("1s").is_ok() && interval("0s").is_err() && interval("soon").is_err());
    }

    #[test]
    fn pieces_are_powers_of_two() {
        assert_eq!(piece_length("256KiB"), Ok(1 << 18));
        assert_eq!(piece_length("16384"), Ok(1 << 14));
        for text in ["250kB", "8KiB", "128MiB", "0", "x"] {
            assert!(piece_length(text).is_err(), "{text}");
        }
    }
}
