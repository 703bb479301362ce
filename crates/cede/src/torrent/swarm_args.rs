//! The options of whoever takes part in swarms.

use super::control::ControlArgs;
use super::forms::{address, host_port, tracker_url};
use cede_bt::{Disposition, Profile};
use cede_torrent::session::Encryption;
use cede_units::Rate;
use clap::{Args, ValueEnum, ValueHint};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

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
    /// Neither call nor hear the addresses in this list: ranges or networks by the line, P2P or DAT, also packed as gzip [example: --ip-filter level1.gz]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ip_filter: Option<PathBuf>,
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
        }
    }
}
