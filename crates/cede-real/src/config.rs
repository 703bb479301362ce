//! What can be chosen about a socket and about each stream.

use cede_cc::{Controller, ParamError, ParamValue, Params, Path, registry};
use cede_units::Duration;
use cede_utp::{Config, Limits, Mtu};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Makes a controller for a path.
pub type MakeController = dyn Fn(&Path) -> Box<dyn Controller> + Send + Sync;

/// Which congestion controller a stream has.
#[derive(Clone)]
pub enum ControllerChoice {
    /// One that `cede_cc::registry` knows, with parameters.
    Named {
        /// Its name.
        name: String,
        /// What differs from its defaults.
        params: Params,
    },
    /// Whatever this makes for each path.
    Custom(Arc<MakeController>),
}

impl ControllerChoice {
    /// The controller of this name, with its defaults, but for `ledbat`: where nothing else is set, it begins with the
    /// transport's first window and has a `fast_start`, since the transport paces. Whether there is one shows when it is
    /// used.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::Named { name: name.to_owned(), params: Params::new() }
    }

    /// The controller of this name with parameters as they are written: `("target", "25 ms")`.
    ///
    /// # Errors
    /// [`ParamError`], which says what is allowed.
    pub fn written<'t>(
        name: &str,
        settings: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<Self, ParamError> {
        let (entry, mut params) = (registry::require(name)?, Params::new());
        for (parameter, value) in settings {
            params.parse_and_set(entry.params, parameter, value)?;
        }
        registry::resolve(name, &params)?;
        Ok(Self::Named { name: name.to_owned(), params })
    }

    /// Controllers of the caller's own.
    #[must_use]
    pub fn custom(make: impl Fn(&Path) -> Box<dyn Controller> + Send + Sync + 'static) -> Self {
        Self::Custom(Arc::new(make))
    }

    /// The same with one parameter set. Custom controllers have none: they stay as they are.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: ParamValue) -> Self {
        if let Self::Named { params, .. } = &mut self {
            params.set(parameter, value);
        }
        self
    }

    /// Builds one for a path.
    ///
    /// # Errors
    /// As [`registry::build`]; they depend on the choice alone, never on the path.
    pub fn build(&self, path: &Path) -> Result<Box<dyn Controller>, ParamError> {
        match self {
            Self::Named { name, params } => registry::build(name, &started_fast(name, params, path), path),
            Self::Custom(make) => Ok(make(path)),
        }
    }

    /// Name and parameters with which [`ControllerChoice::build`] builds one for a path; `None` for custom ones.
    #[must_use]
    pub fn named_for(&self, path: &Path) -> Option<(&str, Params)> {
        match self {
            Self::Named { name, params } => Some((name, started_fast(name, params, path))),
            Self::Custom(_) => None,
        }
    }
}

impl fmt::Debug for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named { name, params } => {
                f.debug_struct("Named").field("name", name).field("params", params).finish()
            }
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}

/// The parameters, with those of a fast start where the controller has it and the caller has said nothing of it.
fn started_fast(name: &str, params: &Params, path: &Path) -> Params {
    let mut params = params.clone();
    let has =
        |wanted| registry::find(name).is_some_and(|entry| entry.params.iter().any(|doc| doc.name == wanted));
    if has(FAST_START) && has(FIRST_WINDOW) {
        let packets = f64::from(path.initial_cwnd_bytes) / f64::from(path.mss_bytes.max(1));
        let first = ParamValue::Number(packets.clamp(1.0, MOST_FIRST_PACKETS));
        for (parameter, value) in [(FAST_START, ParamValue::Switch(true)), (FIRST_WINDOW, first)] {
            if params.get(parameter).is_none() {
                params.set(parameter, value);
            }
        }
    }
    params
}

const FAST_START: &str = "fast_start";
const FIRST_WINDOW: &str = "init_cwnd";
/// What controllers take at most.
const MOST_FIRST_PACKETS: f64 = 1000.0;

/// What can be chosen about one stream.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// The congestion controller. Default `ledbat` (RFC 6817) with a target of 100 ms.
    pub controller: ControllerChoice,
    /// The transport's choices; its `mtu` is replaced by [`StreamConfig::mtu`]. Default [`Config::internet`],
    /// with buffers that begin with 1 and 2 MiB and a pacing granularity of 2 ms: the runtime's timer has one, and a busy system adds to it.
    pub transport: Config,
    /// The size of packets. Default `None`: a search, from a size that passes nearly everywhere up to an Ethernet
    /// frame; the bounds are those of the socket's address family.
    pub mtu: Option<Mtu>,
    /// Where [`StreamConfig::mtu`] is `None`: the search goes on beyond an Ethernet frame, up to
    /// [`LARGEST_DATAGRAM_BYTES`], where the first link carries more (jumbo frames, the loopback) and the peer has said in
    /// its handshake that it takes more, as this library does. Default true.
    pub large_datagrams: bool,
}

/// The largest datagram that the path-MTU search tries, in octets of UDP payload: several still make a batch, and a
/// receive buffer of the system's default size holds more than a dozen.
pub const LARGEST_DATAGRAM_BYTES: u16 = 16_000;

/// What buffers begin with (libutp's). It costs nothing until data wait, and less would be full so often that tasks would be
/// woken for little.
const FIRST_BUFFER_BYTES: u32 = 1 << 20;
/// As much again on the receiving side, where packets beyond a gap wait too while the flow starts up.
const FIRST_RECEIVE_BUFFER_BYTES: u32 = 2 << 20;
/// The runtime's timer fires at whole milliseconds, and the processor is to be had a little later.
const TIMER_GRANULARITY: Duration = Duration::from_millis(2);

impl Default for StreamConfig {
    fn default() -> Self {
        Self {
            controller: ControllerChoice::named("ledbat"),
            transport: Config {
                pacing_granularity: TIMER_GRANULARITY,
                send_buffer_bytes: FIRST_BUFFER_BYTES,
                receive_buffer_bytes: FIRST_RECEIVE_BUFFER_BYTES,
                ..Config::internet()
            },
            mtu: None,
            large_datagrams: true,
        }
    }
}

impl StreamConfig {
    /// The defaults with another controller.
    #[must_use]
    pub fn with_controller(name: &str) -> Self {
        Self { controller: ControllerChoice::named(name), ..Self::default() }
    }

    /// The same with another target delay: the controller's parameter `target`. A controller without one is refused
    /// when the configuration is used; a custom one is not changed.
    #[must_use]
    pub fn target(mut self, target: Duration) -> Self {
        self.controller = self.controller.with("target", ParamValue::Duration(target));
        self
    }

    /// What the endpoint is given, for a stream to or from `peer`.
    pub(crate) fn transport_for(&self, peer: SocketAddr) -> Config {
        let search = if peer.ip().to_canonical().is_ipv4() { Mtu::SEARCH_IPV4 } else { Mtu::SEARCH_IPV6 };
        let limit = (self.mtu.is_none() && self.large_datagrams).then_some(LARGEST_DATAGRAM_BYTES);
        Config {
            mtu: self.mtu.unwrap_or(search),
            datagram_limit_bytes: self.transport.datagram_limit_bytes.or(limit),
            ..self.transport.clone()
        }
    }

    /// Transport and controller for a stream to or from `peer`.
    ///
    /// # Errors
    /// As [`ControllerChoice::build`].
    pub(crate) fn build_for(&self, peer: SocketAddr) -> Result<(Config, Box<dyn Controller>), ParamError> {
        let transport = self.transport_for(peer);
        let controller = self.controller.build(&transport.path())?;
        Ok((transport, controller))
    }
}

/// What can be chosen about a socket.
#[derive(Clone, Debug)]
pub struct SocketConfig {
    /// Streams that peers open, and those of [`UtpSocket::connect`](crate::UtpSocket::connect).
    pub stream: StreamConfig,
    /// Streams that peers open are taken up. Default true.
    pub accepts: bool,
    /// How many connections there may be.
    pub limits: Limits,
    /// A socket bound to an IPv6 address speaks IPv4 too, where that address allows it. Default true.
    pub dual_stack: bool,
    /// Room for datagrams that wait to be read (`SO_RCVBUF`), in octets, as far as the system grants it; `None` leaves
    /// the system's default. Default 4 MiB.
    pub receive_buffer_bytes: Option<usize>,
    /// Room for datagrams that wait to leave (`SO_SNDBUF`), likewise. Default 4 MiB.
    pub send_buffer_bytes: Option<usize>,
    /// Delays are measured from when the kernel got a datagram, where it says so, rather than from when the driver got
    /// round to it. Default true.
    pub kernel_timestamps: bool,
    /// What routers and peers say of our datagrams (ICMP) is heeded, where the system hands it out: nobody there ends an
    /// attempt to connect, and, said four times, a stream that has nothing under way; what is too large for the path lowers
    /// the path-MTU search. Default true.
    pub heeds_icmp: bool,
    /// Datagrams of other protocols that wait for [`Foreign::recv`](crate::Foreign::recv); more are dropped and
    /// counted. Default 256.
    pub foreign_backlog: usize,
}

impl Default for SocketConfig {
    fn default() -> Self {
        Self {
            stream: StreamConfig::default(),
            accepts: true,
            limits: Limits::default(),
            dual_stack: true,
            receive_buffer_bytes: Some(4 << 20),
            send_buffer_bytes: Some(4 << 20),
            kernel_timestamps: true,
            heeds_icmp: true,
            foreign_backlog: 256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(addr: &str) -> SocketAddr {
        addr.parse().unwrap()
    }

    #[test]
    fn a_target_reaches_the_controller_and_is_refused_where_there_is_none() {
        let ledbat = StreamConfig::default().target(Duration::from_millis(25));
        assert!(ledbat.build_for(peer("127.0.0.1:1")).is_ok());
        let reno = StreamConfig::with_controller("reno").target(Duration::from_millis(25));
        assert!(matches!(reno.build_for(peer("[::1]:1")), Err(ParamError::UnknownParameter { .. })));
    }

    #[test]
    fn the_search_begins_where_the_peer_s_address_family_allows() {
        let config = StreamConfig::default();
        for (addr, mtu) in [
            ("127.0.0.1:1", Mtu::SEARCH_IPV4),
            ("[::ffff:127.0.0.1]:1", Mtu::SEARCH_IPV4),
            ("[::1]:1", Mtu::SEARCH_IPV6),
        ] {
            let transport = config.transport_for(peer(addr));
            assert_eq!((transport.mtu, transport.datagram_limit_bytes), (mtu, Some(LARGEST_DATAGRAM_BYTES)));
        }
        let fixed = StreamConfig { mtu: Some(Mtu::Fixed(1000)), ..config }.transport_for(peer("[::1]:1"));
        assert_eq!((fixed.mtu, fixed.datagram_limit_bytes), (Mtu::Fixed(1000), None));
    }
}
