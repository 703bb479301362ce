//! The two versions of the internet protocol.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::{Index, IndexMut};

/// A version of the internet protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// That of an address. An IPv4 address that is written as an IPv6 one is an IPv4 address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        if address.to_canonical().is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// Any address of its.
    #[must_use]
    pub const fn any(self) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Self::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }

    /// The address of this machine for itself.
    #[must_use]
    pub const fn loopback(self) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Self::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        }
    }
}

/// Something of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PerFamily<T> {
    /// That of IPv4.
    pub v4: T,
    /// That of IPv6.
    pub v6: T,
}

impl<T> Index<Family> for PerFamily<T> {
    type Output = T;

    fn index(&self, family: Family) -> &T {
        match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        }
    }
}

impl<T> IndexMut<Family> for PerFamily<T> {
    fn index_mut(&mut self, family: Family) -> &mut T {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }
}
