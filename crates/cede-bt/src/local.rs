//! Peers in the local network (local service discovery): what is said there, how often, and what is believed.
//!
//! Source: BEP 14. An announce leaves on each interface at once, after a minute, as datagrams get lost, and from then on every five
//! minutes: never twice within a minute, where libtorrent repeats each one after two and four seconds. Whoever announces is
//! where its datagram came from, at the port that it names, and nowhere else.
//!
//! **Limits.** A datagram of [`MAX_BYTES`] and 64 lines; 8 peers of one address and 32 of all in a minute; 100 datagrams are read in a
//! second ([`Voice::pause`]), and what else comes is the system's to drop.
//!
//! Torrents that are due at the same time are announced together, [`MAX_HASHES`] in a datagram.
//!
//! **How it was validated.** The tests below, a fuzz target, and libtorrent in both directions.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use cede_units::{Duration, Instant};
use core::fmt::Write as _;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The port that announces go to.
pub const PORT: u16 = 6771;
/// The group that they go to over IPv4.
pub const GROUP_V4: Ipv4Addr = Ipv4Addr::new(239, 192, 152, 143);
/// And over IPv6.
pub const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0xefc0, 0x988f);
/// Longer announces are not read; 1,400 octets are the most that should be sent.
pub const MAX_BYTES: usize = 1_500;
const MAX_LINES: usize = 64;
/// Torrents in one announce: it stays within 1,400 octets.
pub const MAX_HASHES: usize = 24;

/// Between two announces on one interface.
const EVERY: Duration = Duration::from_secs(5 * 60);
/// The least time between them, and that between the first two.
const LEAST: Duration = Duration::from_secs(60);
/// Interfaces that are remembered.
const MAX_PLACES: usize = 64;

/// Peers are counted for so long.
const WINDOW: Duration = Duration::from_secs(60);
/// Those of one address: several programs may run behind it.
const MAX_PEERS_OF_ONE: usize = 8;
const MAX_PEERS: usize = 32;
/// Datagrams that are read in a second.
const MAX_READ: u32 = 100;

/// What somebody announces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announce<'a> {
    /// Where it takes connections.
    pub port: u16,
    /// The torrents that it has to do with, as they are called on the wire.
    pub hashes: Vec<[u8; 20]>,
    /// What it knows its own announces by.
    pub cookie: Option<&'a [u8]>,
}

impl<'a> Announce<'a> {
    /// Reads a datagram; `None` where it is no announce.
    #[must_use]
    pub fn parse(octets: &'a [u8]) -> Option<Self> {
        if octets.len() > MAX_BYTES {
            return None;
        }
        // Behind the last end of a line is no line.
        let end = octets.iter().rposition(|octet| *octet == b'\n')?;
        let mut lines = octets[..end].split(|octet| *octet == b'\n').map(<[u8]>::trim_ascii);
        let mut words = lines.next()?.split(|octet| *octet == b' ');
        let is_search = words.next()?.eq_ignore_ascii_case(b"BT-SEARCH") && words.next()? == b"*";
        if !is_search || !words.next()?.starts_with(b"HTTP/") {
            return None;
        }
        let (mut port, mut hashes, mut cookie) = (None, Vec::new(), None);
        for line in lines.take(MAX_LINES) {
            if line.is_empty() {
                return Some(Self { port: port?, hashes, cookie });
            }
            let colon = line.iter().position(|octet| *octet == b':')?;
            let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"Port") {
                port = Some(number(value)?);
            } else if name.eq_ignore_ascii_case(b"Infohash") {
                // One of another length is of a kind that we do not know.
                hashes.extend(hash(value));
            } else if name.eq_ignore_ascii_case(b"cookie") {
                cookie = Some(value);
            }
        }
        None
    }
}

fn number(digits: &[u8]) -> Option<u16> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let number = core::str::from_utf8(digits).ok().filter(|_| is_number)?;
    number.parse().ok().filter(|number| *number > 0)
}

fn hash(text: &[u8]) -> Option<[u8; 20]> {
    let digit = |octet: u8| char::from(octet).to_digit(16).map(|digit| digit as u8);
    let mut hash = [0; 20];
    if text.len() != 2 * hash.len() {
        return None;
    }
    for (octet, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *octet = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

/// An interface, by its number, and whether it is about IPv6 there.
pub type Place = (u32, bool);

/// What all torrents of a process have in common there.
#[derive(Debug)]
pub struct Voice {
    cookie: String,
    read: u32,
    read_since: Instant,
}

impl Voice {
    /// `chance` tells our announces from others'.
    #[must_use]
    pub fn new(chance: u32) -> Self {
        // libtorrent reads it as a positive number of 32 bits.
        Self { cookie: format!("{:x}", chance >> 1), read: 0, read_since: Instant::ZERO }
    }

    /// What is to be sent to the group at [`PORT`], of at most [`MAX_HASHES`] torrents that take connections at a port.
    #[must_use]
    pub fn datagram(&self, is_v6: bool, port: u16, hashes: &[[u8; 20]]) -> Vec<u8> {
        let group = if is_v6 { SocketAddr::from((GROUP_V6, PORT)) } else { (GROUP_V4, PORT).into() };
        let mut text = format!("BT-SEARCH * HTTP/1.1\r\nHost: {group}\r\nPort: {port}\r\n");
        for hash in hashes.iter().take(MAX_HASHES) {
            text += "Infohash: ";
            hash.iter().for_each(|octet| {
                let _ = write!(text, "{octet:02x}");
            });
            text += "\r\n";
        }
        let _ = write!(text, "cookie: {}\r\n\r\n\r\n", self.cookie);
        text.into_bytes()
    }

    /// A datagram was heard; `None` where it is no announce, or our own.
    #[must_use]
    pub fn hear<'a>(&self, octets: &'a [u8]) -> Option<Announce<'a>> {
        Announce::parse(octets).filter(|announce| announce.cookie != Some(self.cookie.as_bytes()))
    }

    /// To be asked before each datagram is read: how long nothing more is to be read, as too much has come.
    pub fn pause(&mut self, now: Instant) -> Option<Duration> {
        let second = Duration::from_secs(1);
        if now.since(self.read_since) >= second {
            (self.read, self.read_since) = (0, now);
        }
        self.read += 1;
        (self.read > MAX_READ).then(|| second.saturating_sub(now.since(self.read_since)))
    }
}

/// One torrent's part in it.
#[derive(Debug)]
pub struct Search {
    /// The torrent, as it is called on the wire.
    pub info_hash: [u8; 20],
    /// Where we take connections; without it nobody is told of us.
    pub port: Option<u16>,
    /// When there is to be an announce.
    due: BTreeMap<Place, Instant>,
    /// Peers that were heard in this minute.
    heard: BTreeSet<SocketAddr>,
    heard_since: Instant,
}

impl Search {
    /// For one torrent.
    #[must_use]
    pub fn new(info_hash: [u8; 20], port: Option<u16>) -> Self {
        let (due, heard, heard_since) = (BTreeMap::new(), BTreeSet::new(), Instant::ZERO);
        Self { info_hash, port: port.filter(|port| *port > 0), due, heard, heard_since }
    }

    /// Whether an announce is to leave there now.
    #[must_use]
    pub fn is_due(&self, now: Instant, place: Place) -> bool {
        let is_known_or_fits = self.due.len() < MAX_PLACES || self.due.contains_key(&place);
        self.port.is_some() && is_known_or_fits && self.due.get(&place).is_none_or(|at| *at <= now)
    }

    /// One has left there.
    pub fn announced(&mut self, now: Instant, place: Place) {
        let pause = if self.due.contains_key(&place) { EVERY } else { LEAST };
        self.due.insert(place, now + pause);
    }

    /// We have come to another place: what was said elsewhere is said anew.
    pub fn move_on(&mut self) {
        self.due.clear();
    }

    /// Somebody was heard: where a peer of our torrent is that was not heard in this minute.
    pub fn receive(&mut self, now: Instant, from: SocketAddr, announce: &Announce<'_>) -> Option<SocketAddr> {
        if !announce.hashes.contains(&self.info_hash) || !is_one_host(from.ip()) {
            return None;
        }
        if now.since(self.heard_since) >= WINDOW {
            self.heard.clear();
            self.heard_since = now;
        }
        let mut peer = from;
        peer.set_port(announce.port);
        let of_one = self.heard.iter().filter(|other| other.ip() == peer.ip()).count();
        let is_taken = self.heard.len() < MAX_PEERS && of_one < MAX_PEERS_OF_ONE && self.heard.insert(peer);
        is_taken.then_some(peer)
    }
}

const fn is_one_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast()
        }
        IpAddr::V6(address) => !address.is_unspecified() && !address.is_multicast(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: [u8; 20] = [0xab; 20];

    fn text(lines: &str) -> Vec<u8> {
        format!("BT-SEARCH * HTTP/1.1\r\n{}\r\n\r\n", lines.replace('\n', "\r\n")).into_bytes()
    }

    fn hex(octet: u8) -> String {
        format!("{octet:02x}").repeat(20)
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(1_000 + seconds)
    }

    #[test]
    fn announces_are_as_the_specification_has_them() {
        let voice = Voice::new(0x20);
        let said = |is_v6| String::from_utf8(voice.datagram(is_v6, 6881, &[HASH])).unwrap();
        let rest = format!("Port: 6881\r\nInfohash: {}\r\ncookie: 10\r\n\r\n\r\n", hex(0xab));
        assert_eq!(said(false), format!("BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\n{rest}"));
        assert_eq!(said(true), format!("BT-SEARCH * HTTP/1.1\r\nHost: [ff15::efc0:988f]:6771\r\n{rest}"));
        for is_v6 in [false, true] {
            let octets = voice.datagram(is_v6, 6881, &[HASH]);
            let ours = Announce { port: 6881, hashes: alloc::vec![HASH], cookie: Some(b"10") };
            assert_eq!(Announce::parse(&octets), Some(ours));
        }
        let many: Vec<[u8; 20]> = (0..100).map(|number| [number; 20]).collect();
        let octets = Voice::new(u32::MAX).datagram(true, u16::MAX, &many);
        assert!(octets.len() <= 1_400, "{}", octets.len());
        assert_eq!(Announce::parse(&octets).unwrap().hashes, many[..MAX_HASHES]);
    }

    #[test]
    fn several_torrents_odd_cases_and_unknown_lines_are_understood() {
        let many = text(&format!(
            "HOST: x\nport:  7 \nInfohash: {}\nINFOHASH:{}\nInfohash: beef\nx-more: y\n",
            hex(1),
            hex(0xCD).to_uppercase()
        ));
        let heard = Announce::parse(&many).unwrap();
        assert_eq!((heard.port, heard.hashes), (7, alloc::vec![[1; 20], [0xcd; 20]]));
        assert_eq!(heard.cookie, None);
        let good = format!("Port: 7\nInfohash: {}\n", hex(1));
        assert!(Announce::parse(&text(&good)).is_some());
        for bad in ["Port: 0\n", "Port: 65536\n", "Port: +7\n", "Port: \n", "Infohash: ab\n", "Port 7\n"] {
            assert_eq!(Announce::parse(&text(bad)), None, "{bad}");
        }
        let good = text(&good);
        assert_eq!(Announce::parse(&good[..good.len() - 4]), None, "cut short");
        assert_eq!(Announce::parse(&good[1..]), None);
        assert_eq!(Announce::parse(&text(&"x: y\n".repeat(MAX_LINES))), None);
        assert_eq!(Announce::parse(&[good, alloc::vec![b' '; MAX_BYTES]].concat()), None);
    }

    #[test]
    fn no_interface_has_two_announces_in_a_minute() {
        let mut search = Search::new(HASH, Some(1));
        let mut sent = Vec::new();
        for second in 0..1_000 {
            if search.is_due(at(second), (3, false)) {
                search.announced(at(second), (3, false));
                sent.push(second);
            }
        }
        assert_eq!(sent, [0, 60, 360, 660, 960]);
        assert!(search.is_due(at(1_000), (3, true)) && search.is_due(at(1_000), (4, false)));
        for place in (0..1_000).map(|index| (index, false)) {
            if search.is_due(at(1_001), place) {
                search.announced(at(1_001), place);
            }
        }
        assert!(search.due.len() == MAX_PLACES && !search.is_due(at(1_002), (2_000, false)));
        assert!(!Search::new(HASH, None).is_due(at(0), (3, false)), "nobody is told of who takes no calls");
    }

    #[test]
    fn a_peer_is_where_its_announce_came_from_and_is_told_once_a_minute() {
        let (voice, mut search) = (Voice::new(0x20), Search::new(HASH, Some(1)));
        let mut receive =
            |now, from, octets: &[u8]| voice.hear(octets).and_then(|it| search.receive(now, from, &it));
        let from = SocketAddr::from(([192, 0, 2, 1], 6771));
        let theirs = text(&format!("Host: 203.0.113.9:1\nPort: 5\nInfohash: {}\n", hex(0xab)));
        let peer = SocketAddr::from(([192, 0, 2, 1], 5));
        assert_eq!(receive(at(0), from, &theirs), Some(peer));
        assert_eq!(receive(at(59), from, &theirs), None);
        assert_eq!(receive(at(60), from, &theirs), Some(peer));
        let own = voice.datagram(false, 1, &[HASH]);
        assert_eq!(receive(at(120), from, &own), None, "our own");
        let other = text(&format!("Port: 5\nInfohash: {}\n", hex(7)));
        assert_eq!(receive(at(120), from, &other), None, "another torrent");
        for group in ["0.0.0.0:1", "239.192.152.143:1", "255.255.255.255:1", "[::]:1", "[ff15::1]:1"] {
            assert_eq!(receive(at(120), group.parse().unwrap(), &theirs), None, "{group}");
        }
        let scoped: SocketAddr = "[fe80::1%7]:9".parse().unwrap();
        assert_eq!(receive(at(120), scoped, &theirs), Some("[fe80::1%7]:5".parse().unwrap()));
    }

    /// Whatever a network says, it is told of few peers, and little of it is read.
    #[test]
    fn a_flood_costs_little() {
        let (mut voice, mut search) = (Voice::new(1), Search::new(HASH, Some(1)));
        let mut peers = BTreeSet::new();
        let (mut read, mut now) = (0, at(0));
        for number in 0..30_000_u32 {
            if let Some(pause) = voice.pause(now) {
                now += pause;
                continue;
            }
            read += 1;
            let octets = text(&format!("Port: {}\nInfohash: {}\n", number % 60_000 + 1, hex(0xab)));
            let from = SocketAddr::from(([10, 0, 0, (number % 3) as u8], 1));
            peers.extend(voice.hear(&octets).and_then(|it| search.receive(now, from, &it)));
        }
        let seconds = now.since(at(0)).as_secs_f64();
        assert!(f64::from(read) <= f64::from(MAX_READ) * (seconds + 1.0), "{read} in {seconds} s");
        let minutes = (seconds / 60.0).ceil() as usize;
        assert!(!peers.is_empty() && peers.len() <= minutes * 3 * MAX_PEERS_OF_ONE, "{}", peers.len());
        let mut search = Search::new(HASH, Some(1));
        let hosts = (0..1_000_u32).map(|number| SocketAddr::from((Ipv4Addr::from_bits(number + 1), 1)));
        let octets = text(&format!("Port: 1\nInfohash: {}\n", hex(0xab)));
        let announce = voice.hear(&octets).unwrap();
        assert_eq!(hosts.filter_map(|host| search.receive(at(0), host, &announce)).count(), MAX_PEERS);
    }
}
