//! Addresses that are neither called nor heard, in the forms in which such lists go around.
//!
//! Sources: what Transmission 3.00, qBittorrent 4.5 and libtorrent 2.0.8 read. PeerGuardian's text (`P2P`): `name:first-last`, whatever the
//! name has; eMule's (`DAT`): `first - last , level , name`, with zeros in front of numbers, where a level above 127 means that they may;
//! and networks, addresses and ranges, one to a line (`192.0.2.0/24`), with a remark behind where there is one (`; SBL1`).
//!
//! **What it leaves out.** PeerGuardian's binary form.
//! **How it was validated.** Below, with a fuzz of its own; `cede`'s `torrent_filter`.

use flate2::read::MultiGzDecoder;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// eMule: ranges up to this level are left alone.
const LEVEL_MAX: u32 = 127;
/// Two addresses of IPv6 have fourteen, and one stands in front of them.
const COLONS_MAX: usize = 15;
/// Octets of a list at most, unpacked: the largest that go around have a tenth of it.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Addresses that are left alone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IpFilter {
    /// First and last addresses, in order, none of which overlap or touch.
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

/// What a list came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// The addresses.
    pub filter: IpFilter,
    /// Lines that say something which is no range of addresses.
    pub unread: usize,
    /// The number of the first of those, from one on.
    pub first_unread: Option<usize>,
}

impl IpFilter {
    /// Reads a list, as it is or packed as gzip.
    ///
    /// # Errors
    /// What the system says; `InvalidData` where it is longer than 256 MiB, `UnexpectedEof` and the like where it is packed badly.
    pub fn read(path: &Path) -> io::Result<Listed> {
        let mut octets = Vec::new();
        read_up_to(std::fs::File::open(path)?, &mut octets)?;
        if octets.starts_with(&[0x1f, 0x8b]) {
            let packed = std::mem::take(&mut octets);
            read_up_to(MultiGzDecoder::new(&packed[..]), &mut octets)?;
        }
        Ok(Self::parse(&octets))
    }

    /// Reads a list. Names in it need not be of any encoding.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Listed {
        let mut listed = Listed::default();
        for (number, line) in (1..).zip(octets.split(|octet| *octet == b'\n')) {
            let line = String::from_utf8_lossy(line);
            match Line::of(line.trim_start_matches('\u{feff}').trim()) {
                Line::Range(Range::V4(first, last)) => listed.filter.v4.push((first, last)),
                Line::Range(Range::V6(first, last)) => listed.filter.v6.push((first, last)),
                Line::Nothing => {}
                Line::Unread => {
                    listed.unread += 1;
                    listed.first_unread.get_or_insert(number);
                }
            }
        }
        listed.filter.v4 = joined(listed.filter.v4);
        listed.filter.v6 = joined(listed.filter.v6);
        listed
    }

    /// Whether an address is left alone. One of IPv4 that is written as one of IPv6 is the same.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => is_within(&self.v4, address.to_bits()),
            IpAddr::V6(address) => is_within(&self.v6, address.to_bits()),
        }
    }

    /// How many ranges there are.
    #[must_use]
    pub const fn ranges(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Nothing is left alone.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ranges() == 0
    }
}

fn read_up_to(from: impl Read, octets: &mut Vec<u8>) -> io::Result<()> {
    let read = from.take(LIST_BYTES_MAX + 1).read_to_end(octets)?;
    if read as u64 > LIST_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the list is longer than 256 MiB"));
    }
    Ok(())
}

/// First and last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Range {
    V4(u32, u32),
    V6(u128, u128),
}

/// What a line says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Range(Range),
    /// Nothing, or that somebody is welcome.
    Nothing,
    Unread,
}

impl Line {
    fn of(text: &str) -> Self {
        if text.is_empty() || text.starts_with(['#', ';']) || text.starts_with("//") {
            return Self::Nothing;
        }
        if let Some(range) = network(text).or_else(|| range(text)) {
            return Self::Range(range);
        }
        if let Some((addresses, rest)) = text.split_once(',')
            && let Some(range) = range(addresses)
        {
            let level = rest.split(',').next().unwrap_or_default().trim().parse().unwrap_or(0);
            return if level > LEVEL_MAX { Self::Nothing } else { Self::Range(range) };
        }
        // Names have colons, and so have addresses of IPv6: the longest end that is a range.
        let ends = text.rmatch_indices(':').take(COLONS_MAX).map(|(at, _)| &text[at + 1..]);
        ends.filter_map(range).last().or_else(|| remarked(text)).map_or(Self::Unread, Self::Range)
    }
}

/// "192.0.2.0/24 ; SBL1": with a remark behind it, as Spamhaus has them.
fn remarked(text: &str) -> Option<Range> {
    let (addresses, _) = text.split_once([';', '#'])?;
    let addresses = addresses.trim();
    network(addresses).or_else(|| range(addresses))
}

/// "192.0.2.0/24", or an address alone.
fn network(text: &str) -> Option<Range> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.trim().parse::<u32>().ok()?)),
        None => (text, None),
    };
    match self::address(address)? {
        IpAddr::V4(address) => {
            let spare = u32::MAX.checked_shr(length.unwrap_or(32)).unwrap_or(0);
            let fits = length.is_none_or(|length| length <= 32);
            fits.then_some(Range::V4(address.to_bits() & !spare, address.to_bits() | spare))
        }
        IpAddr::V6(address) => {
            let spare = u128::MAX.checked_shr(length.unwrap_or(128)).unwrap_or(0);
            let fits = length.is_none_or(|length| length <= 128);
            fits.then(|| of_v6(address.to_bits() & !spare, address.to_bits() | spare))
        }
    }
}

/// "192.0.2.1 - 192.0.2.7".
fn range(text: &str) -> Option<Range> {
    let (first, last) = text.split_once('-')?;
    match (address(first)?, address(last)?) {
        (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
            Some(Range::V4(first.to_bits(), last.to_bits()))
        }
        (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
            Some(of_v6(first.to_bits(), last.to_bits()))
        }
        _ => None,
    }
}

/// A range of IPv6; one of addresses of IPv4 that are written so is one of IPv4.
fn of_v6(first: u128, last: u128) -> Range {
    let mapped = |bits: u128| Ipv6Addr::from_bits(bits).to_ipv4_mapped().map(Ipv4Addr::to_bits);
    match (mapped(first), mapped(last)) {
        (Some(first), Some(last)) => Range::V4(first, last),
        _ => Range::V6(first, last),
    }
}

/// An address; numbers of IPv4 are decimal whatever zeros are in front of them.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let part = |part: &str| {
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|octet| octet.is_ascii_digit());
        is_number.then(|| part.parse::<u8>().ok()).flatten()
    };
    let parts: Option<Vec<u8>> = text.split('.').map(part).collect();
    let octets: [u8; 4] = parts?.try_into().ok()?;
    Some(Ipv4Addr::from(octets).into())
}

/// Numbers of addresses.
trait Number: Copy + Ord {
    /// Whether another follows this one at once, or comes before that.
    fn reaches(self, other: Self) -> bool;
}

impl Number for u32 {
    fn reaches(self, other: Self) -> bool {
        self.saturating_add(1) >= other
    }
}

impl Number for u128 {
    fn reaches(self, other: Self) -> bool {
        self.saturating_add(1) >= other
    }
}

/// The same in order, and those as one that overlap or touch.
fn joined<N: Number>(mut ranges: Vec<(N, N)>) -> Vec<(N, N)> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, before| {
        let is_one = before.1.reaches(next.0);
        if is_one {
            before.1 = before.1.max(next.1);
        }
        is_one
    });
    ranges.shrink_to_fit();
    ranges
}

fn is_within<N: Number>(ranges: &[(N, N)], number: N) -> bool {
    let behind = ranges.partition_point(|(first, _)| *first <= number);
    behind.checked_sub(1).is_some_and(|at| ranges[at].1 >= number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    fn has(filter: &IpFilter, address: &str) -> bool {
        filter.has(address.parse().unwrap())
    }

    #[test]
    fn lists_of_each_form_are_read() {
        let list = b"# a remark\r\n\
            Some, Inc: of-the-world:192.0.2.4-192.0.2.7\r\n\
            caf\xe9:198.51.100.0 - 198.51.100.255\n\
            002.000.000.001 - 002.000.000.009 , 100 , somebody\n\
            3.0.0.1 - 3.0.0.9 , 200 , who may\n\
            \n// 4.0.0.0/8\n\
            5.6.0.0/16\n7.7.7.7\n8.0.0.1-8.0.0.2\n10.1.0.0/16 ; SBL1\n10.3.0.1-10.3.0.2# both\n\
            2001:db8:1::/48\nlong:2001:db8:2::1-2001:db8:2::ff\n2001:db8:3::1\n::ffff:9.9.9.0-::ffff:9.9.9.9\n\
            ::ffff:10.1.0.0/112\n";
        let Listed { filter, unread, first_unread } = IpFilter::parse(list);
        assert_eq!((unread, first_unread, filter.ranges()), (0, None, 12), "{filter:?}");
        for address in [
            "192.0.2.4",
            "192.0.2.7",
            "198.51.100.99",
            "2.0.0.1",
            "2.0.0.9",
            "5.6.255.255",
            "7.7.7.7",
            "8.0.0.2",
            "10.1.2.3",
            "10.3.0.2",
            "2001:db8:1:ffff::1",
            "2001:db8:2::ff",
            "2001:db8:3::1",
            "9.9.9.5",
            "::ffff:7.7.7.7",
            "10.1.255.255",
        ] {
            assert!(has(&filter, address), "{address}");
        }
        for address in [
            "192.0.2.3",
            "192.0.2.8",
            "2.0.0.10",
            "3.0.0.5",
            "4.1.1.1",
            "5.7.0.0",
            "7.7.7.8",
            "0.0.0.0",
            "255.255.255.255",
            "2001:db8:2::100",
            "2001:db8:3::",
            "::",
            "::1",
        ] {
            assert!(!has(&filter, address), "{address}");
        }
    }

    #[test]
    fn what_is_no_range_is_counted() {
        let list =
            b"1.1.1.9-1.1.1.1\n1.1.1.1/33\n2001:db8::/129\n1.1.1\n1.1.1.1.1\n1.1.1.256\nhello\n1.1.1.1-::2\n\
            0000.1.1.1\n+1.1.1.1\n\x80\n1.2.3.4\n";
        let listed = IpFilter::parse(list);
        assert_eq!((listed.unread, listed.first_unread, listed.filter.ranges()), (11, Some(1), 1));
        assert!(IpFilter::parse(b"").filter.is_empty());
    }

    #[test]
    fn everything_and_what_touches_is_one_range() {
        let all = IpFilter::parse(b"0.0.0.0/0\n255.255.255.255\n::/0\n").filter;
        assert_eq!(all.ranges(), 2);
        assert!(has(&all, "0.0.0.0") && has(&all, "255.255.255.255") && has(&all, "ffff::"));
        let touching = IpFilter::parse(b"1.0.0.4-1.0.0.7\n1.0.0.1-1.0.0.3\n1.0.0.2\n1.0.0.9\n").filter;
        assert_eq!(touching.v4, [(0x0100_0001, 0x0100_0007), (0x0100_0009, 0x0100_0009)]);
    }

    /// Against a naive look through all ranges, on lines that are made of pieces of lines.
    #[test]
    fn any_list_is_read_as_its_lines_are() {
        const PARTS: [&str; 14] = [
            "1.0.0.1",
            "1.0.0.9",
            "1.0.1.0",
            "001.0.0.3",
            "-",
            " - ",
            ",",
            "100",
            "200",
            ":",
            "/24",
            "::5",
            "::9",
            "x",
        ];
        let mut random = Stream::named(7, "ip filter");
        let probes: Vec<IpAddr> = (0..=255u8)
            .flat_map(|last| [IpAddr::from([1, 0, 0, last]), IpAddr::from([1, 0, 1, last])])
            .chain((0..12u16).map(|last| IpAddr::from([0, 0, 0, 0, 0, 0, 0, last])))
            .collect();
        for _ in 0..400 {
            let line = |random: &mut Stream| -> String {
                (0..=random.below(5)).map(|_| PARTS[random.below(PARTS.len() as u64) as usize]).collect()
            };
            let lines: Vec<String> = (0..8).map(|_| line(&mut random)).collect();
            let together = IpFilter::parse(lines.join("\n").as_bytes()).filter;
            let alone: Vec<IpFilter> =
                lines.iter().map(|line| IpFilter::parse(line.as_bytes()).filter).collect();
            for probe in &probes {
                assert_eq!(
                    together.has(*probe),
                    alone.iter().any(|one| one.has(*probe)),
                    "{probe} {lines:?}"
                );
            }
        }
    }
}
