//! Announces over UDP.
//!
//! Source: BEP 15 and 41. A tracker first gives a connection id, which proves that the asker receives at its address.
//! How it was validated: the lengths and numbers of the BEP in the tests, both directions against each other, a fuzz
//! target, and libtorrent as the asker of our tracker.

use super::{Announce, Answer, Event, Tally, compact};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// What a request to connect begins with.
const PROTOCOL: u64 = 0x0417_2710_1980;
const CONNECT: u32 = 0;
const ANNOUNCE: u32 = 1;
const SCRAPE: u32 = 2;
const ERROR: u32 = 3;
/// Torrents in one scrape.
pub const MAX_SCRAPED: usize = 74;
/// How long an asker uses a connection id, in seconds.
pub const CONNECTION_USED_S: u32 = 60;
/// How long a tracker takes it, in seconds.
pub const CONNECTION_TAKEN_S: u32 = 120;
/// After so many seconds without an answer the first request is repeated, and then after twice the time each.
pub const RETRY_S: u32 = 15;
/// So often.
pub const MAX_RETRIES: u32 = 8;
/// What follows is a part of the tracker's URL (BEP 41).
const URL_DATA: u8 = 2;

/// What is asked of a tracker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// A connection id.
    Connect,
    /// To be known, and to know others.
    Announce(Announce),
    /// How many there are.
    Scrape(Vec<[u8; 20]>),
}

/// A request with its numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The connection id; zero for [`Request::Connect`].
    pub connection: u64,
    /// Comes back with the answer.
    pub transaction: u32,
    /// What is asked.
    pub request: Request,
}

/// What a tracker answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    /// The connection id.
    Connect(u64),
    /// Peers.
    Announce(Answer),
    /// Numbers, in the order of the question.
    Scrape(Vec<Tally>),
    /// It refuses, and says why.
    Error(String),
}

/// Octets that are neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is no message of the UDP tracker protocol")
    }
}

impl core::error::Error for Malformed {}

/// Reads numbers from the beginning of octets.
struct Take<'a>(&'a [u8]);

impl Take<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }
}

impl Asked {
    /// Its octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(98);
        let (connection, action) = match &self.request {
            Request::Connect => (PROTOCOL, CONNECT),
            Request::Announce(_) => (self.connection, ANNOUNCE),
            Request::Scrape(_) => (self.connection, SCRAPE),
        };
        out.extend_from_slice(&connection.to_be_bytes());
        out.extend_from_slice(&action.to_be_bytes());
        out.extend_from_slice(&self.transaction.to_be_bytes());
        match &self.request {
            Request::Connect => {}
            Request::Announce(announce) => push_announce(&mut out, announce),
            Request::Scrape(hashes) => out.extend_from_slice(hashes.as_flattened()),
        }
        out
    }

    /// The same, and behind an announce what follows the host in the tracker's URL (BEP 41), where trackers look for the key that
    /// they know somebody by.
    #[must_use]
    pub fn encode_towards(&self, path: &str) -> Vec<u8> {
        let mut out = self.encode();
        if matches!(self.request, Request::Announce(_)) {
            for part in path.as_bytes().chunks(u8::MAX.into()) {
                out.extend_from_slice(&[URL_DATA, part.len() as u8]);
                out.extend_from_slice(part);
            }
        }
        out
    }

    /// The connection id and the transaction of what may be a request that cannot be read, such as one of an action that nobody knows.
    #[must_use]
    pub fn numbers(octets: &[u8]) -> Option<(u64, u32)> {
        let mut take = Take(octets);
        let (connection, _, transaction) = (take.u64().ok()?, take.u32().ok()?, take.u32().ok()?);
        Some((connection, transaction))
    }

    /// Reads a request. What follows it is ignored.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(octets: &[u8]) -> Result<Self, Malformed> {
        let mut take = Take(octets);
        let (connection, action, transaction) = (take.u64()?, take.u32()?, take.u32()?);
        let request = match action {
            CONNECT if connection == PROTOCOL => Request::Connect,
            ANNOUNCE => Request::Announce(take_announce(&mut take)?),
            SCRAPE => Request::Scrape(take.0.as_chunks().0.iter().take(MAX_SCRAPED).copied().collect()),
            _ => return Err(Malformed),
        };
        let connection = if request == Request::Connect { 0 } else { connection };
        Ok(Self { connection, transaction, request })
    }
}

fn push_announce(out: &mut Vec<u8>, announce: &Announce) {
    out.extend_from_slice(&announce.info_hash);
    out.extend_from_slice(&announce.peer_id);
    for number in [announce.downloaded, announce.left.unwrap_or(u64::MAX), announce.uploaded] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    let event: u32 = match announce.event {
        Event::Interval | Event::Paused => 0,
        Event::Completed => 1,
        Event::Started => 2,
        Event::Stopped => 3,
    };
    // The address is the one that the datagram comes from.
    for number in [event, 0, announce.key, announce.wanted.unwrap_or(u32::MAX)] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.extend_from_slice(&announce.port.to_be_bytes());
}

fn take_announce(take: &mut Take<'_>) -> Result<Announce, Malformed> {
    let (info_hash, peer_id) = (take.array()?, take.array()?);
    let (downloaded, left, uploaded) = (take.u64()?, take.u64()?, take.u64()?);
    let event = match take.u32()? {
        1 => Event::Completed,
        2 => Event::Started,
        3 => Event::Stopped,
        _ => Event::Interval,
    };
    let left = Some(left).filter(|left| *left <= super::MOST_LEFT);
    take.u32()?;
    let (key, wanted, port) = (take.u32()?, take.u32()?, take.u16()?);
    let wanted = Some(wanted).filter(|wanted| *wanted <= i32::MAX as u32);
    Ok(Announce { info_hash, peer_id, port, uploaded, downloaded, left, event, key, wanted })
}

impl Response {
    /// Its octets, in answer to a transaction. Over IPv6 an announce is answered with IPv6 peers alone, and likewise with
    /// IPv4.
    #[must_use]
    pub fn encode(&self, transaction: u32, is_v6: bool) -> Vec<u8> {
        let action = match self {
            Self::Connect(_) => CONNECT,
            Self::Announce(_) => ANNOUNCE,
            Self::Scrape(_) => SCRAPE,
            Self::Error(_) => ERROR,
        };
        let mut out = Vec::new();
        out.extend_from_slice(&action.to_be_bytes());
        out.extend_from_slice(&transaction.to_be_bytes());
        match self {
            Self::Connect(id) => out.extend_from_slice(&id.to_be_bytes()),
            Self::Announce(answer) => push_answer(&mut out, answer, is_v6),
            Self::Scrape(tallies) => {
                for number in tallies.iter().flat_map(|t| [t.seeders, t.completed, t.leechers]) {
                    out.extend_from_slice(&number.to_be_bytes());
                }
            }
            Self::Error(text) => out.extend_from_slice(text.as_bytes()),
        }
        out
    }

    /// Reads an answer that came over IPv6, or IPv4, and says to which transaction.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(octets: &[u8], is_v6: bool) -> Result<(u32, Self), Malformed> {
        let mut take = Take(octets);
        let (action, transaction) = (take.u32()?, take.u32()?);
        let response = match action {
            CONNECT => Self::Connect(take.u64()?),
            ANNOUNCE => Self::Announce(take_answer(&mut take, is_v6)?),
            SCRAPE => {
                let tally = |chunk: &[u8; 12]| {
                    let mut take = Take(chunk);
                    Some(Tally {
                        seeders: take.u32().ok()?,
                        completed: take.u32().ok()?,
                        leechers: take.u32().ok()?,
                    })
                };
                Self::Scrape(take.0.as_chunks().0.iter().take(MAX_SCRAPED).filter_map(tally).collect())
            }
            ERROR => Self::Error(String::from_utf8_lossy(take.0).chars().take(500).collect()),
            _ => return Err(Malformed),
        };
        Ok((transaction, response))
    }
}

fn push_answer(out: &mut Vec<u8>, answer: &Answer, is_v6: bool) {
    for number in [answer.interval_s, answer.leechers.unwrap_or(0), answer.seeders.unwrap_or(0)] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    let peers = answer.peers.iter().copied().filter(|peer| peer.ip().to_canonical().is_ipv6() == is_v6);
    peers.for_each(|peer| compact::push(out, peer));
}

fn take_answer(take: &mut Take<'_>, is_v6: bool) -> Result<Answer, Malformed> {
    let (interval_s, leechers, seeders) = (take.u32()?, take.u32()?, take.u32()?);
    let peers = if is_v6 {
        compact::v6(take.0).take(super::MAX_PEERS).collect()
    } else {
        compact::v4(take.0).take(super::MAX_PEERS).collect()
    };
    Ok(Answer { interval_s, leechers: Some(leechers), seeders: Some(seeders), peers, ..Answer::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn announce() -> Announce {
        Announce {
            info_hash: [1; 20],
            peer_id: [2; 20],
            port: 6881,
            uploaded: 5,
            downloaded: 6,
            left: None,
            event: Event::Stopped,
            key: 9,
            wanted: None,
        }
    }

    #[test]
    fn requests_have_the_form_of_the_bep() {
        let connect = Asked { connection: 0, transaction: 0x0102_0304, request: Request::Connect };
        let octets = [0, 0, 4, 0x17, 0x27, 0x10, 0x19, 0x80, 0, 0, 0, 0, 1, 2, 3, 4];
        assert_eq!(connect.encode(), octets);
        assert_eq!(Asked::decode(&octets).as_ref(), Ok(&connect));
        for request in [Request::Announce(announce()), Request::Scrape(vec![[3; 20], [4; 20]])] {
            let asked = Asked { connection: 7, transaction: 8, request };
            assert_eq!(Asked::decode(&asked.encode()), Ok(asked));
        }
        let asked = Asked { connection: 7, transaction: 8, request: Request::Announce(announce()) };
        let mut octets = asked.encode();
        assert_eq!((octets.len(), octets[83], &octets[92..96]), (98, 3, &[0xff; 4][..]));
        octets.extend_from_slice(b"an extension");
        assert_eq!(Asked::decode(&octets).as_ref(), Ok(&asked));
        let long = alloc::format!("/a?{}", "k".repeat(300));
        let (octets, parts) = (asked.encode_towards(&long), long.as_bytes().split_at(255));
        assert_eq!(octets[98..], [&[2, 255], parts.0, &[2, 48], parts.1].concat());
        assert_eq!((Asked::decode(&octets), asked.encode_towards("")), (Ok(asked.clone()), asked.encode()));
        assert_eq!(connect.encode_towards("/a"), connect.encode(), "nothing may follow it");
        assert_eq!(Asked::decode(&octets[..97]), Err(Malformed));
        assert_eq!(Asked::decode(&[0; 16]), Err(Malformed));
    }

    #[test]
    fn responses_are_understood_in_their_family() {
        let peers = vec!["1.2.3.4:5".parse().unwrap(), "[2001:db8::1]:80".parse().unwrap()];
        let answer =
            Answer { interval_s: 60, seeders: Some(1), leechers: Some(2), peers, ..Answer::default() };
        for (is_v6, at) in [(false, 0), (true, 1)] {
            let octets = Response::Announce(answer.clone()).encode(3, is_v6);
            assert_eq!(octets.len(), if is_v6 { 20 + 18 } else { 20 + 6 });
            let heard = Answer { peers: vec![answer.peers[at]], ..answer.clone() };
            assert_eq!(Response::decode(&octets, is_v6), Ok((3, Response::Announce(heard))));
        }
        let tally = Tally { seeders: 1, completed: 2, leechers: 3 };
        for response in
            [Response::Connect(u64::MAX), Response::Scrape(vec![tally, tally]), Response::Error("no".into())]
        {
            assert_eq!(Response::decode(&response.encode(4, false), false), Ok((4, response)));
        }
    }
}
