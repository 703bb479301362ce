//! Connections of the HTTP client that leave from a given address of the machine, which `ureq` has no option for.
//!
//! Its interface for that is its own, below `unversioned`: it may change with any minor version, and the manifest holds it.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Agent, Error};

/// Opens connections from one address.
#[derive(Debug)]
pub(crate) struct Departing {
    from: IpAddr,
    /// The interface by which addresses of a link are reached; 0 for none in particular.
    link: u32,
}

impl From<IpAddr> for Departing {
    fn from(from: IpAddr) -> Self {
        Self { from, link: 0 }
    }
}

impl Departing {
    /// The same, where an address may be one of a link's.
    pub const fn on_link(self, link: u32) -> Self {
        Self { link, ..self }
    }

    /// A client all of whose connections leave from the address, those to a proxy as well.
    pub fn agent(self, config: Config) -> Agent {
        let chain = ().chain(ConnectProxyConnector::default()).chain(self);
        #[cfg(feature = "https")]
        let chain = chain.chain(ureq::unversioned::transport::RustlsConnector::default());
        Agent::with_parts(config, chain, DefaultResolver::default())
    }

    fn open(&self, mut address: SocketAddr, timeout: Option<Duration>) -> io::Result<TcpStream> {
        if let SocketAddr::V6(address) = &mut address
            && address.ip().is_unicast_link_local()
        {
            address.set_scope_id(self.link);
        }
        let domain = socket2::Domain::for_address(address);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
        socket.bind(&SocketAddr::new(self.from, 0).into())?;
        match timeout {
            Some(timeout) => socket.connect_timeout(&address.into(), timeout)?,
            None => socket.connect(&address.into())?,
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl<In: Transport> Connector<In> for Departing {
    type Out = Either<In, Departed>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        if let Some(through_proxy) = chained {
            return Ok(Some(Either::A(through_proxy)));
        }
        let timeout = details.timeout.not_zero().map(|timeout| *timeout);
        // Each address has its part of the time.
        let share = timeout.map(|timeout| timeout / u32::try_from(details.addrs.len()).unwrap_or(1).max(1));
        let mut last = Error::HostNotFound;
        for address in details.addrs.iter() {
            match self.open(*address, share) {
                Ok(stream) => {
                    let (input, output) =
                        (details.config.input_buffer_size(), details.config.output_buffer_size());
                    let buffers = LazyBuffers::new(input, output);
                    return Ok(Some(Either::B(Departed { stream, buffers })));
                }
                Err(error) if is_late(&error) => last = Error::Timeout(details.timeout.reason),
                Err(error) => last = Error::Io(error),
            }
        }
        Err(last)
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

/// A connection that has left from there.
#[derive(Debug)]
pub(crate) struct Departed {
    stream: TcpStream,
    buffers: LazyBuffers,
}

impl Transport for Departed {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.set_write_timeout(timeout.not_zero().map(|timeout| *timeout))?;
        let sent = self.stream.write_all(&self.buffers.output()[..amount]);
        sent.map_err(|error| if is_late(&error) { Error::Timeout(timeout.reason) } else { Error::Io(error) })
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.set_read_timeout(timeout.not_zero().map(|timeout| *timeout))?;
        let input = self.buffers.input_append_buf();
        match self.stream.read(input) {
            Ok(amount) => {
                self.buffers.input_appended(amount);
                Ok(amount > 0)
            }
            Err(error) if is_late(&error) => Err(Error::Timeout(timeout.reason)),
            Err(error) => Err(Error::Io(error)),
        }
    }

    /// Whether it may be used again: it is open, and nothing has come that nobody asked for.
    fn is_open(&mut self) -> bool {
        let is_idle = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let is_silent = is_idle.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        self.stream.set_nonblocking(false).is_ok() && is_silent
    }
}
