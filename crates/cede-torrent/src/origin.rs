//! Which of a machine's addresses connections, announces and lookups go out from.

pub use cede_bt::Family;

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use tokio::net::{TcpSocket, TcpStream};

/// Where everything goes out from: an address of the machine, or whichever the system takes.
///
/// **Invariant:** what is given an address leaves from no other one; peers and trackers that it does not lead to are not asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin(Option<IpAddr>);

impl Origin {
    /// From this address; from any where there is none. `0.0.0.0` is any of IPv4, `::` any at all.
    #[must_use]
    pub fn new(address: Option<IpAddr>) -> Self {
        Self(address.filter(|address| *address != IpAddr::from(Ipv6Addr::UNSPECIFIED)))
    }

    /// Whether it leads to addresses of that family.
    #[must_use]
    pub fn reaches(self, family: Family) -> bool {
        self.0.is_none_or(|address| Family::of(address) == family)
    }

    /// The address itself, where it is one.
    #[must_use]
    pub fn address(self) -> Option<IpAddr> {
        self.0.filter(|address| !address.is_unspecified())
    }

    /// What to bind a socket to that goes there.
    ///
    /// # Errors
    /// `AddrNotAvailable`, where it does not lead there.
    pub fn towards(self, remote: SocketAddr) -> io::Result<SocketAddr> {
        let family = Family::of(remote.ip());
        if !self.reaches(family) {
            let why = format!("no {} from the address that was given", family.name());
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, why));
        }
        Ok(SocketAddr::new(self.address().unwrap_or(family.any()), 0))
    }

    /// The address from which the system sends there now; nothing is sent.
    pub(crate) fn source_towards(self, remote: SocketAddr) -> Option<IpAddr> {
        let socket = UdpSocket::bind(self.towards(remote).ok()?).ok()?;
        socket.connect(remote).ok()?;
        Some(socket.local_addr().ok()?.ip().to_canonical())
    }

    /// The address that we have on the way to the Internet. Nothing is sent: where it would go to is of the ranges for documentation.
    pub(crate) fn outward(self, family: Family) -> Option<IpAddr> {
        self.source_towards(match family {
            Family::V4 => SocketAddr::from(([198, 51, 100, 1], 9)),
            Family::V6 => SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9)),
        })
    }

    pub(crate) async fn connect(self, remote: SocketAddr) -> io::Result<TcpStream> {
        let local = self.towards(remote)?;
        let socket = if remote.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if self.address().is_some() {
            socket.bind(local)?;
        }
        socket.connect(remote).await
    }
}

/// An IPv4 address that is written as an IPv6 one is an IPv4 address.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        // One of a link alone says nothing without its link.
        IpAddr::V6(_) => address,
        v4 @ IpAddr::V4(_) => SocketAddr::new(v4, address.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_its_own_family() {
        let towards = |from: Option<&str>, to: &str| {
            let origin = Origin::new(from.map(|text| text.parse().unwrap()));
            origin.towards(to.parse().unwrap()).map(|local| local.to_string()).map_err(|error| error.kind())
        };
        let (four, six) = ("192.0.2.1:1", "[2001:db8::1]:1");
        assert_eq!(towards(None, four).as_deref(), Ok("0.0.0.0:0"));
        assert_eq!(towards(None, six).as_deref(), Ok("[::]:0"));
        assert_eq!(towards(Some("::"), four).as_deref(), Ok("0.0.0.0:0"));
        assert_eq!(towards(Some("0.0.0.0"), four).as_deref(), Ok("0.0.0.0:0"));
        assert_eq!(towards(Some("198.51.100.7"), four).as_deref(), Ok("198.51.100.7:0"));
        for (from, to) in [("0.0.0.0", six), ("198.51.100.7", six), ("2001:db8::7", four)] {
            assert_eq!(towards(Some(from), to), Err(io::ErrorKind::AddrNotAvailable), "{from} {to}");
        }
    }
}
