//! Addresses of peers as octets: 6 each over IPv4 (BEP 23), 18 over IPv6 (BEP 7).

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

/// Octets of an IPv4 address with its port.
pub const V4_BYTES: usize = 6;
/// Octets of an IPv6 address with its port.
pub const V6_BYTES: usize = 18;

/// The addresses in a string of IPv4 ones. Those with port zero are left out, and so is an incomplete last one.
pub fn v4(octets: &[u8]) -> impl Iterator<Item = SocketAddr> {
    octets.chunks_exact(V4_BYTES).filter_map(peer)
}

/// Likewise, of IPv6 ones.
pub fn v6(octets: &[u8]) -> impl Iterator<Item = SocketAddr> {
    octets.chunks_exact(V6_BYTES).filter_map(peer)
}

/// One address, of the family that its length tells, whatever its port.
#[must_use]
pub fn any(octets: &[u8]) -> Option<SocketAddr> {
    let (ip, port) = octets.split_at_checked(octets.len().checked_sub(2)?)?;
    let ip = match ip.len() {
        4 => IpAddr::from(*ip.first_chunk::<4>()?),
        16 => IpAddr::from(*ip.first_chunk::<16>()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port.first_chunk()?)))
}

/// As [`any`]; nobody is at port zero.
#[must_use]
pub fn peer(octets: &[u8]) -> Option<SocketAddr> {
    any(octets).filter(|address| address.port() != 0)
}

/// Appends an address in the form of its family. An IPv4 address that is written as an IPv6 one is an IPv4 address.
pub fn push(out: &mut Vec<u8>, peer: SocketAddr) {
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
    }
    out.extend_from_slice(&peer.port().to_be_bytes());
}

/// Addresses as two strings, IPv4 and IPv6.
#[must_use]
pub fn strings(peers: impl IntoIterator<Item = SocketAddr>) -> (Vec<u8>, Vec<u8>) {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for peer in peers {
        push(if peer.ip().to_canonical().is_ipv4() { &mut v4 } else { &mut v6 }, peer);
    }
    (v4, v6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_were_written() {
        let peers: Vec<SocketAddr> =
            ["1.2.3.4:5", "[2001:db8::1]:80", "255.0.0.1:65535"].map(|text| text.parse().unwrap()).into();
        let (four, six) = strings(peers.clone());
        assert_eq!(four, [1, 2, 3, 4, 0, 5, 255, 0, 0, 1, 255, 255]);
        assert_eq!(v4(&four).collect::<Vec<_>>(), [peers[0], peers[2]]);
        assert_eq!(v6(&six).collect::<Vec<_>>(), [peers[1]]);
        assert_eq!(strings(["[::ffff:1.2.3.4]:5".parse().unwrap()]).0, [1, 2, 3, 4, 0, 5]);
    }

    #[test]
    fn port_zero_and_odd_ends_are_left_out() {
        assert_eq!(v4(&[1, 2, 3, 4, 0, 0]).count(), 0);
        assert_eq!(v4(&[1, 2, 3, 4, 0, 5, 9, 9]).count(), 1);
    }
}
