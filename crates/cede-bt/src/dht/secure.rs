//! Ids that follow from addresses (BEP 42): whoever wants many nodes near a torrent needs many addresses in many networks.
//!
//! Source: BEP 42, with the CRC of RFC 3720. Addresses that mean something in one network alone are exempt; beside those that BEP 42 lists
//! carriers' (RFC 6598) and those of IPv6 that are local (RFC 4193, of a link, of this machine), as in libtorrent.
//! How it was validated: the vectors of BEP 42, ids of the `mainline` crate and of libtorrent.

use super::Id;
use crate::holepunch::is_private;
use core::net::IpAddr;

/// Which bits of an address count: fewer in front, where somebody may have many networks.
const V4_MASK: [u8; 4] = [0x03, 0x0f, 0x3f, 0xff];
/// Likewise, of the network of 64 bits.
const V6_MASK: [u8; 8] = [0x01, 0x03, 0x07, 0x0f, 0x1f, 0x3f, 0x7f, 0xff];
/// The last octet of an id has as many bits that are chosen, so that several nodes at one address differ.
const CHOSEN: u8 = 0x07;

/// Castagnoli's CRC (RFC 3720).
fn crc32c(octets: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let shift = |crc: u32, _| crc >> 1 ^ POLYNOMIAL & (crc & 1).wrapping_neg();
    !octets.iter().fold(!0, |crc, octet| (0..8).fold(crc ^ u32::from(*octet), shift))
}

/// The 21 bits that an id at this address begins with, where it ends with that octet.
fn front(ip: IpAddr, last: u8) -> [u8; 3] {
    let (mut octets, len) = ([0; 8], if ip.to_canonical().is_ipv4() { 4 } else { 8 });
    match ip.to_canonical() {
        IpAddr::V4(ip) => mask(&mut octets, &ip.octets(), &V4_MASK),
        IpAddr::V6(ip) => mask(&mut octets, &ip.octets(), &V6_MASK),
    }
    octets[0] |= (last & CHOSEN) << 5;
    let [first, second, third, _] = crc32c(&octets[..len]).to_be_bytes();
    [first, second, third & 0xf8]
}

fn mask(out: &mut [u8], octets: &[u8], mask: &[u8]) {
    out.iter_mut().zip(octets.iter().zip(mask)).for_each(|(out, (octet, mask))| *out = octet & mask);
}

/// Whether a node at this address may have that id.
#[must_use]
pub fn fits(id: &Id, ip: IpAddr) -> bool {
    let [first, second, third, .., last] = *id;
    is_private(ip) || [first, second, third & 0xf8] == front(ip, last)
}

/// An id for a node at this address; what does not follow from it is as in `drawn`.
#[must_use]
pub fn fitting(drawn: Id, ip: IpAddr) -> Id {
    let [first, second, third] = front(ip, drawn[19]);
    let mut id = drawn;
    (id[0], id[1], id[2]) = (first, second, third | drawn[2] & 0x07);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The addresses, last octets and ids of BEP 42.
    const VECTORS: [(&str, u8, &str); 5] = [
        ("124.31.75.21", 1, "5fbfbff10c5d6a4ec8a88e4c6ab4c28b95eee401"),
        ("21.75.31.124", 86, "5a3ce9c14e7a08645677bbd1cfe7d8f956d53256"),
        ("65.23.51.170", 22, "a5d43220bc8f112a3d426c84764f8c2a1150e616"),
        ("84.124.73.14", 65, "1b0321dd1bb1fe518101ceef99462b947a01ff41"),
        ("43.213.53.83", 90, "e56f6cbf5b7c4be0237986d5243b87aa6d51305a"),
    ];

    fn id(digits: &str) -> Id {
        core::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
    }

    #[test]
    fn ids_are_those_of_bep_42() {
        for (ip, last, digits) in VECTORS {
            let (ip, id) = (ip.parse().unwrap(), id(digits));
            assert_eq!(id[19], last);
            assert_eq!(fitting(id, ip), id, "{ip}");
            assert!(fits(&id, ip), "{ip}");
            for bit in 0..21 {
                let mut other = id;
                other[bit / 8] ^= 0x80 >> (bit % 8);
                assert!(!fits(&other, ip), "{ip} {bit}");
                assert_eq!(fitting(other, ip), id, "{ip} {bit}");
            }
        }
    }

    /// RFC 3720, B.4.
    #[test]
    fn the_crc_is_that_of_rfc_3720() {
        let rising: [u8; 32] = core::array::from_fn(|at| at as u8);
        let crcs = [crc32c(&[0; 32]), crc32c(&[0xff; 32]), crc32c(&rising)];
        assert_eq!(crcs.map(u32::swap_bytes), [0xaa36_918a, 0x43ab_a862, 0x4e79_dd46]);
    }

    #[test]
    fn of_ipv6_the_network_counts_and_nothing_else() {
        let drawn = id(VECTORS[0].2);
        let at = |text: &str| fitting(drawn, text.parse().unwrap());
        assert_eq!(at("2001:db8:1:2::1"), at("2001:db8:1:2:ffff::"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        // By hand: 20010db800010002 & 0103070f1f3f7fff | 1 << 61.
        let octets = [0x20, 0x01, 0x05, 0x08, 0, 0x01, 0, 0x02];
        assert_eq!(at("2001:db8:1:2::1")[..2], crc32c(&octets).to_be_bytes()[..2]);
    }

    #[test]
    fn in_a_private_network_any_id_fits() {
        let local = "10.0.0.1 172.16.9.9 192.168.1.1 169.254.0.1 127.0.0.1 100.64.0.1 ::1 fe80::1 fd00::1";
        for ip in local.split(' ') {
            assert!(fits(&[0; 20], ip.parse().unwrap()), "{ip}");
        }
        for ip in ["11.0.0.1", "172.32.0.1", "2001:db8::1", "::ffff:11.0.0.1"] {
            assert!(!fits(&[0; 20], ip.parse().unwrap()), "{ip}");
        }
    }
}
