//! Addresses that names of files spell, as `tcpdump-203.0.113.7.pcap`, in place of which pseudonyms are shown.
//!
//! IPv4 with points, hyphens or low lines between its numbers, zeros before these or not; IPv6 with hyphens, low lines or colons. What has
//! points is found first: behind two hyphens (`office--203.0.113.7`) the letters before them and a first number look like IPv6. Of more than
//! four numbers in a row (`day3.203.0.113.7`) nobody knows which are the address: none is left.
//!
//! **What it leaves out.** Addresses as one number. What looks like an address and is none, as a time with hyphens may, is replaced all the same.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

const OF_V4: [char; 2] = ['-', '_'];
const OF_V6: [char; 3] = [':', '-', '_'];

/// A name with every address that it spells replaced.
pub fn replaced(name: &str, shown: impl Fn(IpAddr) -> IpAddr) -> String {
    let (mut out, mut rest) = (String::new(), name);
    while let Some((len, numbers)) = first(rest, with_points) {
        out += &replaced_in(&rest[..len.start], &shown);
        out += &written(&numbers, '.', &shown);
        rest = &rest[len.end..];
    }
    out + &replaced_in(rest, &shown)
}

/// The same, where no address has points.
fn replaced_in(name: &str, shown: &impl Fn(IpAddr) -> IpAddr) -> String {
    let (mut out, mut rest) = (String::new(), name);
    while let Some((at, (found, between))) = first(rest, without_points) {
        out += &rest[..at.start];
        out += &match found {
            Found::V4(numbers) => written(&numbers, between, shown),
            Found::V6(address) => with(shown(address.into()), ":", between),
        };
        rest = &rest[at.end..];
    }
    out + rest
}

/// An address as it is shown, with this between its numbers.
fn with(address: IpAddr, plain: &str, between: char) -> String {
    address.to_string().replace(plain, between.encode_utf8(&mut [0; 4]))
}

/// Numbers in a row as they are shown: four by four, and of what is left over each as the last of the four that end with it.
fn written(numbers: &[u8], between: char, shown: &impl Fn(IpAddr) -> IpAddr) -> String {
    let of = |four: &[u8]| {
        let address: [u8; 4] = four.try_into().unwrap_or_default();
        with(shown(Ipv4Addr::from(address).into()), ".", between)
    };
    let whole = numbers.len() / 4 * 4;
    let left = (whole..numbers.len()).map(|last| {
        let address = of(&numbers[last - 3..=last]);
        address.rsplit(between).next().unwrap_or_default().to_owned()
    });
    numbers.chunks_exact(4).map(of).chain(left).collect::<Vec<_>>().join(between.encode_utf8(&mut [0; 4]))
}

enum Found {
    /// Four numbers and more.
    V4(Vec<u8>),
    V6(Ipv6Addr),
}

/// The first place of a name at which something is spelled, and what; the reader is told of the letter before.
fn first<T>(name: &str, read: impl Fn(&str, char) -> Option<(usize, T)>) -> Option<(Range<usize>, T)> {
    let mut last = ' ';
    name.char_indices().find_map(|(start, digit)| {
        let before = std::mem::replace(&mut last, digit);
        let (len, found) = read(&name[start..], before)?;
        Some((start..start + len, found))
    })
}

fn with_points(rest: &str, before: char) -> Option<(usize, Vec<u8>)> {
    if before.is_ascii_digit() { None } else { v4(rest, '.') }
}

fn without_points(rest: &str, before: char) -> Option<(usize, (Found, char))> {
    let is_within = before.is_ascii_hexdigit() && rest.starts_with(|digit: char| digit.is_ascii_hexdigit());
    let v6 = |between| v6(rest, between).map(|(len, address)| (len, (Found::V6(address), between)));
    let v4 = |between| v4(rest, between).map(|(len, numbers)| (len, (Found::V4(numbers), between)));
    let v4 = OF_V4.into_iter().filter(|_| !before.is_ascii_digit()).filter_map(v4);
    // Nine numbers have an address of IPv6 in front.
    v4.chain(OF_V6.into_iter().filter(|_| !is_within).filter_map(v6)).max_by_key(|found| found.0)
}

/// Four numbers and more, as many as there are.
fn v4(text: &str, between: char) -> Option<(usize, Vec<u8>)> {
    let (mut numbers, mut len) = (Vec::new(), 0);
    while let Some((octet, longer)) = number(&text[len..], between, !numbers.is_empty()) {
        numbers.push(octet);
        len += longer;
    }
    (numbers.len() >= 4).then_some((len, numbers))
}

/// The next number, and how much of the text it is.
fn number(text: &str, between: char, is_behind: bool) -> Option<(u8, usize)> {
    let digits = if is_behind { text.strip_prefix(between)? } else { text };
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    let octet = if len > 3 { None } else { digits[..len].parse().ok() };
    octet.map(|octet| (octet, text.len() - digits.len() + len))
}

/// The longest there is from here on.
fn v6(text: &str, between: char) -> Option<(usize, Ipv6Addr)> {
    let run =
        text.bytes().take_while(|&octet| octet.is_ascii_hexdigit() || char::from(octet) == between).count();
    let spelled = text[..run.min(V6_MAX)].replace(between, ":");
    (2..=spelled.len()).rev().find_map(|len| Some((len, spelled[..len].parse().ok()?)))
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
            ("office--203.0.113.7.pcap", "offife00--59.8.7.6.pcap"),
            ("2001-db8--1-203.0.113.7", "fe00--5-9.8.7.6"),
            ("::ffff:203.0.113.7", "fe00::5:9.8.7.6"),
            ("day3.203.0.113.7.pcap", "day9.8.7.6.6.pcap"),
            ("203.0.113.7.80-10.0.0.1.443", "9.8.7.6.6-9.8.7.6.443"),
            ("11-27-12-30-45-10-0-0-1", "9-8-7-6-9-8-7-6-6"),
            ("2026-11-27-12.pcap", "2026-11-27-12.pcap"),
            ("day-1.2.3.pcap.gz", "day-1.2.3.pcap.gz"),
            ("é256.0.0.1 ü", "é256.0.0.1 ü"),
            ("", ""),
        ] {
            assert_eq!(replaced(name, shown), wanted, "{name}");
        }
    }
}
