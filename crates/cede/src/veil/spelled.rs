//! Addresses that names of files spell, as `tcpdump-203.0.113.7.pcap`, in place of which pseudonyms are shown.
//!
//! IPv4 with points, hyphens or low lines between its numbers, zeros before these or not; IPv6 with these or colons.
//!
//! **What it leaves out.** Addresses as one number. What looks like an address and is none, as a time with hyphens may, is replaced all the same.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

const OF_V4: [char; 3] = ['.', '-', '_'];
const OF_V6: [char; 3] = [':', '-', '_'];

/// A name with every address that it spells replaced.
pub fn replaced(name: &str, shown: impl Fn(IpAddr) -> IpAddr) -> String {
    let (mut out, mut rest) = (String::new(), name);
    while let Some((at, address, between)) = first(rest) {
        let plain = if address.is_ipv4() { "." } else { ":" };
        out += &rest[..at.start];
        out += &shown(address).to_string().replace(plain, between.encode_utf8(&mut [0; 4]));
        rest = &rest[at.end..];
    }
    out + rest
}

/// The first address, where it stands, and what is between its numbers.
fn first(name: &str) -> Option<(Range<usize>, IpAddr, char)> {
    let mut last = ' ';
    name.char_indices().find_map(|(start, digit)| {
        let before = std::mem::replace(&mut last, digit);
        let (rest, is_within) =
            (&name[start..], [before, digit].map(|digit| digit.is_ascii_hexdigit()) == [true; 2]);
        let v4 = || OF_V4.iter().filter(|_| !before.is_ascii_digit()).find_map(|&between| v4(rest, between));
        let v6 = || OF_V6.iter().filter(|_| !is_within).find_map(|&between| v6(rest, between));
        let (len, address, between) = v6().or_else(v4)?;
        Some((start..start + len, address, between))
    })
}

type Spelled = (usize, IpAddr, char);

fn v4(text: &str, between: char) -> Option<Spelled> {
    let (mut octets, mut len) = ([0; 4], 0);
    for (k, octet) in octets.iter_mut().enumerate() {
        let rest = &text[len..];
        let number = if k > 0 { rest.strip_prefix(between)? } else { rest };
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 3 {
            return None;
        }
        *octet = number[..digits].parse().ok()?;
        len += rest.len() - number.len() + digits;
    }
    Some((len, Ipv4Addr::from(octets).into(), between))
}

/// The longest there is from here on.
fn v6(text: &str, between: char) -> Option<Spelled> {
    let run =
        text.bytes().take_while(|&octet| octet.is_ascii_hexdigit() || char::from(octet) == between).count();
    let spelled = text[..run.min(V6_MAX)].replace(between, ":");
    (2..=spelled.len()).rev().find_map(|len| {
        let address: Ipv6Addr = spelled[..len].parse().ok()?;
        Some((len, address.into(), between))
    })
}

/// Letters of an address at most.
const V6_MAX: usize = 39;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_names_are_replaced_and_other_numbers_are_not() {
        let shown = |address: IpAddr| -> IpAddr {
            if address.is_ipv4() { [9, 8, 7, 6].into() } else { Ipv6Addr::from_bits(0xfe << 120 | 5).into() }
        };
        for (name, wanted) in [
            ("tcpdump-203.0.113.7.pcap", "tcpdump-9.8.7.6.pcap"),
            ("010.001.002.003.05001-192.168.0.1.pcap", "9.8.7.6.05001-9.8.7.6.pcap"),
            ("host_10_0_0_1_b", "host_9_8_7_6_b"),
            ("10-0-0-1 and 10-0-0-2", "9-8-7-6 and 9-8-7-6"),
            ("x2001:db8::17.pcapng", "xfe00::5.pcapng"),
            ("2001-db8-0-0-0-0-0-1.pcap", "fe00--5.pcap"),
            ("2026-11-27-12.pcap", "2026-11-27-12.pcap"),
            ("day-1.2.3.pcap.gz", "day-1.2.3.pcap.gz"),
            ("é256.0.0.1 ü", "é256.0.0.1 ü"),
            ("", ""),
        ] {
            assert_eq!(replaced(name, shown), wanted, "{name}");
        }
    }
}
