//! From a name to a stream: addresses are tried side by side, and a port at which nobody listens is noticed early.
//!
//! uTP's own answer to silence is to repeat the SYN for 20 s. What the system learns from ICMP ("port unreachable") most
//! systems tell only to sockets that are connected to one peer, and a uTP socket is not. So a second socket, which is,
//! sends one empty datagram: no uTP program answers it, and a host without the port refuses it.

use cede_real::{BindError, ConnectError, SocketConfig, StreamConfig, UtpSocket, UtpStream};
use cede_utp::ConnectionError;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The pause before the next address of a name is tried (RFC 8305 section 5: 250 ms).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);
/// How long somebody may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(12);
/// Addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// A host and a port, as people write them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// A name or an address; that of one link with the interface that leads there: `fe80::1%eth0`.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Target {
    /// Reads `HOST:PORT`, `HOST`, `[IPv6]:PORT` or an IPv6 address alone; `default_port` stands in for a port. An IPv6 address
    /// may have a scope (RFC 4007): `[fe80::1%eth0]:PORT`.
    ///
    /// # Errors
    /// What is wrong, and how it is written.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        let (bare, port) = match text.rsplit_once("]:") {
            Some((bare, port)) => (bare.strip_prefix('[').unwrap_or(text), port.parse().ok()),
            None => (
                text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text),
                Some(default_port),
            ),
        };
        if let (Some(address), Some(port)) = (scoped(bare), port) {
            return Self::new(address?, port);
        }
        let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        let port = match port.map(u16::from_str) {
            None => default_port,
            Some(Ok(port)) => port,
            Some(Err(_)) => return Err(format!("`{}` is no port: 1 to 65535", port.unwrap_or_default())),
        };
        let is_name = !host.is_empty() && !host.contains([':', '/', ' ', '[', ']']);
        if is_name {
            Self::new(host.to_owned(), port)
        } else {
            Err("write HOST:PORT, such as example.org:6817, 192.0.2.1:6817 or [2001:db8::1]:6817".to_owned())
        }
    }

    fn new(host: String, port: u16) -> Result<Self, String> {
        if port == 0 { Err("port 0 is nobody's: 1 to 65535".to_owned()) } else { Ok(Self { host, port }) }
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, DialError> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let unknown = |why: String| DialError::Unknown { host: self.host.clone(), why };
        let mut found: Vec<SocketAddr> = found.map_err(|error| unknown(error.to_string()))?.collect();
        found.dedup();
        found.truncate(MAX_ADDRESSES);
        if found.is_empty() { Err(unknown("it has no address".to_owned())) } else { Ok(found) }
    }
}

/// An address as it is looked up, with its scope; `None` where the text is no address. One of a single link means nothing without.
fn scoped(text: &str) -> Option<Result<String, String>> {
    let (address, scope) = text.split_once('%').map_or((text, ""), |(address, scope)| (address, scope));
    let address = IpAddr::from_str(address).ok()?;
    let is_of_a_link = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    Some(match (is_of_a_link, text.contains('%'), scope.is_empty()) {
        (true, true, false) => Ok(format!("{address}%{scope}")),
        (false, false, _) => Ok(address.to_string()),
        (true, ..) => Err(format!(
            "{address} is on every link: say which interface leads there, such as {address}%eth0"
        )),
        (false, true, _) => Err(format!("{address} has no interface: leave out %{scope}")),
    })
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Why there is no stream.
#[derive(Debug)]
pub enum DialError {
    /// The name has no address.
    Unknown {
        /// The name.
        host: String,
        /// What the system says.
        why: String,
    },
    /// The host says that nobody listens at the port, or somebody there refuses connections.
    NobodyThere(SocketAddr),
    /// Nobody answered.
    Silent(Vec<SocketAddr>),
    /// The socket cannot be made.
    Bind(BindError),
    /// Anything else.
    Connect(ConnectError),
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { host, why } => write!(f, "the name {host} does not resolve: {why}"),
            Self::NobodyThere(address) => write!(f, "nobody listens at {address} (UDP)"),
            Self::Silent(addresses) => {
                let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
                let seconds = PATIENCE.as_secs();
                write!(f, "no answer from {} within {seconds} s", all.join(" or "))
            }
            Self::Bind(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DialError {}

/// Opens a stream to the first address of a name that answers. The socket comes with it, for more streams to the same
/// place; it takes up none of others.
///
/// # Errors
/// [`DialError`]; where all addresses failed, that of the first.
pub async fn dial(target: &Target, config: &StreamConfig) -> Result<(UtpSocket, UtpStream), DialError> {
    let addresses = target.addresses().await?;
    let mut attempts = JoinSet::new();
    for (number, &address) in addresses.iter().enumerate() {
        let (config, pause) = (config.clone(), NEXT_ADDRESS_AFTER * number as u32);
        attempts.spawn(async move {
            sleep(pause).await;
            (number, attempt(address, &config).await)
        });
    }
    let mut failures = Vec::new();
    while let Some(outcome) = attempts.join_next().await {
        match outcome {
            Ok((_, Ok(made))) => return Ok(made),
            Ok((number, Err(error))) => failures.push((number, error)),
            Err(_) => {}
        }
    }
    failures.sort_by_key(|(number, _)| *number);
    Err(first_failure(failures.into_iter().map(|(_, error)| error), addresses))
}

/// That a host says no tells more than another's silence.
fn first_failure(failures: impl Iterator<Item = DialError>, addresses: Vec<SocketAddr>) -> DialError {
    let (silent, telling): (Vec<_>, Vec<_>) =
        failures.partition(|error| matches!(error, DialError::Silent(_)));
    drop(silent);
    telling.into_iter().next().unwrap_or(DialError::Silent(addresses))
}

async fn attempt(address: SocketAddr, config: &StreamConfig) -> Result<(UtpSocket, UtpStream), DialError> {
    let socket_config = SocketConfig { stream: config.clone(), accepts: false, ..SocketConfig::default() };
    let socket = UtpSocket::bind_with(anywhere(address), socket_config).await.map_err(DialError::Bind)?;
    let connected = tokio::select! {
        connected = timeout(PATIENCE, socket.connect(address)) => connected,
        () = refusal(address) => return Err(DialError::NobodyThere(address)),
    };
    match connected {
        Ok(Ok(stream)) => Ok((socket, stream)),
        Err(_) | Ok(Err(ConnectError::Failed(ConnectionError::TimedOut))) => {
            Err(DialError::Silent(vec![address]))
        }
        Ok(Err(ConnectError::Failed(ConnectionError::Refused))) => Err(DialError::NobodyThere(address)),
        Ok(Err(error)) => Err(DialError::Connect(error)),
    }
}

/// Any port of any address of the same family.
pub(crate) fn anywhere(peer: SocketAddr) -> SocketAddr {
    let address = match peer {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(address, 0)
}

/// Ends when the host at the address says that nobody listens at the port; never where it says nothing.
async fn refusal(address: SocketAddr) {
    if !is_refused(address).await.is_ok_and(|refused| refused) {
        std::future::pending::<()>().await;
    }
}

/// Does the host at the address say that nobody listens at the port? Waits for ever where it says nothing.
///
/// # Errors
/// Whatever else the system says.
pub(crate) async fn is_refused(address: SocketAddr) -> io::Result<bool> {
    let socket = UdpSocket::bind(anywhere(address)).await?;
    socket.connect(address).await?;
    socket.send(&[]).await?;
    match socket.recv(&mut [0; 1]).await {
        // Whoever answers an empty datagram is there.
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Result<(String, u16), String> {
        Target::parse(text, 6817).map(|target| (target.host, target.port))
    }

    #[test]
    fn hosts_and_ports_are_read_as_people_write_them() {
        assert_eq!(target("example.org:7"), Ok(("example.org".into(), 7)));
        assert_eq!(target("example.org"), Ok(("example.org".into(), 6817)));
        assert_eq!(target("[::1]:7"), Ok(("::1".into(), 7)));
        assert_eq!(target("[::1]"), Ok(("::1".into(), 6817)));
        assert_eq!(target("::1"), Ok(("::1".into(), 6817)));
        assert_eq!(target("192.0.2.1:65535"), Ok(("192.0.2.1".into(), 65535)));
    }

    #[test]
    fn an_address_of_one_link_keeps_its_interface() {
        assert_eq!(target("[fe80::1%eth0]:7"), Ok(("fe80::1%eth0".into(), 7)));
        assert_eq!(target("[FE80::1%3]"), Ok(("fe80::1%3".into(), 6817)));
        assert_eq!(target("fe80::1%eth0"), Ok(("fe80::1%eth0".into(), 6817)));
        assert!(target("[fe80::1]:7").unwrap_err().contains("fe80::1%eth0"));
        assert!(target("[fe80::1%]:7").is_err() && target("[2001:db8::1%eth0]:7").is_err());
    }

    #[tokio::test]
    async fn the_interface_is_in_the_address_that_is_dialled() {
        // The loopback's number is 1 on Linux; names are looked up by the system.
        let found = Target::parse("[fe80::1%1]:7", 1).unwrap().addresses().await.unwrap();
        let scopes: Vec<_> =
            found.iter().map(|at| matches!(at, SocketAddr::V6(v6) if v6.scope_id() == 1)).collect();
        assert!(!scopes.is_empty() && scopes.iter().all(|&is_kept| is_kept), "{found:?}");
    }

    #[test]
    fn what_is_no_host_and_port_is_refused_with_how_to_write_it() {
        for text in ["a:b", "a:65536", "a:0", "127.0.0.1:0", ":7", "", "a b:7", "/dev/null", "a:::7"] {
            assert!(target(text).is_err(), "{text}");
        }
        assert!(target("a:99999").unwrap_err().contains("65535"));
    }

    #[test]
    fn a_target_is_printed_as_it_is_read() {
        for text in ["example.org:7", "[::1]:7", "192.0.2.1:7", "[fe80::1%eth0]:7"] {
            assert_eq!(Target::parse(text, 1).unwrap().to_string(), text);
        }
    }
}
