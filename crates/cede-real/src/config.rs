//! What can be chosen about a socket and about each stream.

use cede_cc::{Controller, ParamError, ParamValue, Params, Path, registry};
use cede_units::Duration;
use cede_utp::{Config, ControllerFactory, Limits, Mtu};
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
    /// The controller of this name, with its defaults. Whether there is one shows when it is used.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::Named { name: name.to_owned(), params: Params::new() }
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
            Self::Named { name, params } => registry::build(name, params, path),
            Self::Custom(make) => Ok(make(path)),
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

/// What can be chosen about one stream.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// The congestion controller. Default `ledbat` (RFC 6817) with a target of 100 ms.
    pub controller: ControllerChoice,
    /// The transport's choices; its `mtu` is replaced by [`StreamConfig::mtu`].
    pub transport: Config,
    /// The size of packets. Default `None`: a search, from a size that passes nearly everywhere up to an Ethernet
    /// frame; the bounds are those of the socket's address family.
    pub mtu: Option<Mtu>,
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self { controller: ControllerChoice::named("ledbat"), transport: Config::default(), mtu: None }
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

    /// What the endpoint is given, for a socket bound to `local`.
    pub(crate) fn transport_for(&self, local: SocketAddr) -> Config {
        let search = if local.is_ipv4() { Mtu::SEARCH_IPV4 } else { Mtu::SEARCH_IPV6 };
        Config { mtu: self.mtu.unwrap_or(search), ..self.transport.clone() }
    }

    /// What makes the controllers of streams that peers open.
    ///
    /// # Errors
    /// As [`ControllerChoice::build`].
    pub(crate) fn factory(&self, path: &Path) -> Result<ControllerFactory, ParamError> {
        self.controller.build(path)?;
        let choice = self.controller.clone();
        Ok(Box::new(move |path| {
            // Errors do not depend on the path, and there were none a moment ago.
            choice.build(path).expect("the choice has been checked")
        }))
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
            foreign_backlog: 256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> Path {
        Config::default().path()
    }

    #[test]
    fn a_target_reaches_the_controller_and_is_refused_where_there_is_none() {
        let ledbat = StreamConfig::default().target(Duration::from_millis(25));
        assert!(ledbat.factory(&path()).is_ok());
        let reno = StreamConfig::with_controller("reno").target(Duration::from_millis(25));
        assert!(matches!(reno.factory(&path()), Err(ParamError::UnknownParameter { .. })));
    }

    #[test]
    fn the_search_begins_where_the_address_family_allows() {
        let config = StreamConfig::default();
        let v4 = config.transport_for(SocketAddr::from(([127, 0, 0, 1], 1)));
        let v6 = config.transport_for(SocketAddr::from(([0_u16; 8], 1)));
        assert_eq!((v4.mtu, v6.mtu), (Mtu::SEARCH_IPV4, Mtu::SEARCH_IPV6));
        let fixed = StreamConfig { mtu: Some(Mtu::Fixed(1000)), ..config };
        assert_eq!(fixed.transport_for(SocketAddr::from(([0_u16; 8], 1))).mtu, Mtu::Fixed(1000));
    }
}
