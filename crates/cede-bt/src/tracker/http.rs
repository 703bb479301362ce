//! Announces over HTTP: the query of a GET request, and a bencoded answer.
//!
//! Source: BEP 3, 7, 23, 24, 31 and 48. How it was validated: both directions against each other, answers of opentracker's form
//! in the tests, fuzz targets for queries and answers.

use super::{Announce, Answer, Event, MAX_NAMED, MAX_PEERS, Tally, compact};
use crate::bencode::{self, Document, Form, Limits, Node};
use crate::magnet::{percent_decoded, percent_encoded};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};

/// The longest answer that is read.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;
/// The longest query that is read.
pub const MAX_QUERY_BYTES: usize = 8 << 10;
const MAX_TRACKER_ID_BYTES: usize = 256;
/// The longest name of a host (RFC 1035).
const MAX_NAME_BYTES: usize = 253;
/// Torrents in one scrape.
const MAX_SCRAPED: usize = 74;

/// The URL to ask, from the tracker's own.
#[must_use]
pub fn url(tracker: &str, announce: &Announce, tracker_id: Option<&[u8]>) -> String {
    let left = announce.left.map_or_else(String::new, |left| alloc::format!("&left={left}"));
    // What is behind a `#` is for whoever shows a page.
    let tracker = tracker.split_once('#').map_or(tracker, |(front, _)| front);
    let separator = if tracker.contains('?') { '&' } else { '?' };
    let mut url = alloc::format!(
        "{tracker}{separator}info_hash={}&peer_id={}&port={}&uploaded={}&downloaded={}{left}&compact=1&key={:08X}",
        percent_encoded(&announce.info_hash),
        percent_encoded(&announce.peer_id),
        announce.port,
        announce.uploaded,
        announce.downloaded,
        announce.key,
    );
    if announce.event != Event::Interval {
        url += &alloc::format!("&event={}", announce.event.name());
    }
    if let Some(wanted) = announce.wanted {
        url += &alloc::format!("&numwant={wanted}");
    }
    if let Some(id) = tracker_id {
        url += &alloc::format!("&trackerid={}", percent_encoded(id));
    }
    url
}

/// When a tracker that refuses wants to be asked again (BEP 31).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetryIn {
    /// After so many minutes, one at least and a day's at most.
    Minutes(u32),
    /// Not at all.
    Never,
}

impl RetryIn {
    /// "never", or a number. None is no such thing: whoever asks knows for itself when.
    fn of(node: Node<'_, '_>) -> Option<Self> {
        if node.bytes() == Some(b"never") {
            return Some(Self::Never);
        }
        let minutes = node.uint().filter(|minutes| *minutes > 0)?;
        Some(Self::Minutes(minutes.min(u64::from(super::INTERVAL_RANGE_S.1 / 60)) as u32))
    }
}

/// Why an answer gives no peers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// It is not bencoded.
    Bencode(bencode::Error),
    /// It is no dictionary.
    Form,
    /// The tracker refuses, and says why.
    Failure(String, Option<RetryIn>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bencode(error) => write!(f, "the tracker's answer is none: {error}"),
            Self::Form => f.write_str("the tracker's answer is none"),
            Self::Failure(reason, retry) => f.write_str(&refusal(reason, *retry)),
        }
    }
}

impl core::error::Error for Error {}

/// That a tracker refuses, why, if it says so, and when it wants to be asked again.
#[must_use]
pub fn refusal(reason: &str, retry: Option<RetryIn>) -> String {
    let reason = reason.trim();
    let (wordless, why) = if reason.is_empty() {
        (" without a word", String::new())
    } else {
        ("", alloc::format!(": {reason}"))
    };
    let wish = match retry {
        None => String::new(),
        Some(RetryIn::Never) => ", and wants not to be asked again".into(),
        Some(RetryIn::Minutes(minutes)) => alloc::format!(", and wants to be asked again in {minutes} min"),
    };
    alloc::format!("the tracker refuses{wordless}{wish}{why}")
}

/// Reads an answer.
///
/// # Errors
/// [`Error`].
pub fn parse_answer(octets: &[u8]) -> Result<Answer, Error> {
    let document = Document::parse(octets, Limits::MESSAGE).map_err(Error::Bencode)?;
    let root = document.root();
    if !root.is_dict() {
        return Err(Error::Form);
    }
    let lossy = |key: &[u8]| {
        let bytes = root.get(key).and_then(Node::bytes)?;
        Some(String::from_utf8_lossy(bytes).chars().take(500).collect::<String>())
    };
    if let Some(reason) = lossy(b"failure reason") {
        return Err(Error::Failure(reason, root.get(b"retry in").and_then(RetryIn::of)));
    }
    let number =
        |key: &[u8]| root.get(key).and_then(Node::uint).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let tracker_id = root.get(b"tracker id").and_then(Node::bytes).map(<[u8]>::to_vec);
    Ok(Answer {
        interval_s: number(b"interval").unwrap_or(super::INTERVAL_RANGE_S.1),
        min_interval_s: number(b"min interval"),
        seeders: number(b"complete"),
        leechers: number(b"incomplete"),
        peers: peers(root),
        ids: Vec::new(),
        named: root
            .get(b"peers")
            .into_iter()
            .flat_map(Node::items)
            .filter_map(named)
            .take(MAX_NAMED)
            .collect(),
        external_ip: None,
        warning: lossy(b"warning message"),
        tracker_id: tracker_id.filter(|id| id.len() <= MAX_TRACKER_ID_BYTES),
    })
}

fn peers(root: Node<'_, '_>) -> Vec<SocketAddr> {
    let four = root.get(b"peers");
    let compact4 = four.and_then(Node::bytes).into_iter().flat_map(compact::v4);
    let six = root.get(b"peers6").and_then(Node::bytes).into_iter().flat_map(compact::v6);
    let listed = four.into_iter().flat_map(Node::items).filter_map(listed);
    compact4.chain(listed).chain(six).take(MAX_PEERS).collect()
}

/// A peer of the old, long form, by its address.
fn listed(peer: Node<'_, '_>) -> Option<SocketAddr> {
    let ip: IpAddr = peer.get(b"ip")?.text()?.parse().ok()?;
    Some(SocketAddr::new(ip, port(peer)?))
}

/// A peer of the long form, by its name: letters, digits, hyphens and dots (RFC 1123), and underscores, as some have.
fn named(peer: Node<'_, '_>) -> Option<(String, u16)> {
    let name = peer.get(b"ip")?.text()?;
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_');
    let is_name = name.len() <= MAX_NAME_BYTES
        && name.bytes().all(is_plain)
        && name.bytes().any(|octet| octet.is_ascii_alphabetic());
    is_name.then_some((name.into(), port(peer)?))
}

fn port(peer: Node<'_, '_>) -> Option<u16> {
    u16::try_from(peer.get(b"port")?.uint()?).ok().filter(|port| *port != 0)
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// Writes an answer. Long, with the names of peers (BEP 3), where the peer did not ask for a compact one.
#[must_use]
pub fn answer(answer: &Answer, is_compact: bool) -> Vec<u8> {
    let head = Form::dict()
        .with("interval", answer.interval_s)
        .with_some("min interval", answer.min_interval_s)
        .with_some("complete", answer.seeders)
        .with_some("incomplete", answer.leechers)
        .with_some("warning message", answer.warning.as_deref())
        .with_some("tracker id", answer.tracker_id.clone())
        .with_some("external ip", answer.external_ip.map(octets));
    if !is_compact {
        let mut ids = answer.ids.iter();
        let peer = |peer: &SocketAddr| {
            let ip = peer.ip().to_canonical().to_string();
            let place = Form::dict().with("ip", ip).with("port", u32::from(peer.port()));
            place.with_some("peer id", ids.next().map(|id| id.to_vec()))
        };
        return head.with("peers", answer.peers.iter().map(peer).collect::<Vec<_>>()).encode();
    }
    let (four, six) = compact::strings(answer.peers.iter().copied());
    head.with("peers", four).with_some("peers6", (!six.is_empty()).then_some(six)).encode()
}

/// Writes a refusal.
#[must_use]
pub fn failure(reason: &str) -> Vec<u8> {
    Form::dict().with("failure reason", reason).encode()
}

/// What somebody asks of a tracker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Query {
    /// To be known, and to know others.
    Announce {
        /// What it says of itself.
        announce: Announce,
        /// It wants the compact form.
        is_compact: bool,
    },
    /// How many there are, of these torrents; of all where there are none.
    Scrape(Vec<[u8; 20]>),
}

/// Why a request is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryError {
    /// Neither `/announce` nor `/scrape`.
    Path,
    /// Too long.
    Long,
    /// A parameter is missing, or is none.
    Parameter(&'static str),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("ask /announce or /scrape"),
            Self::Long => f.write_str("the request is too long"),
            Self::Parameter(name) => write!(f, "the request has no usable {name}"),
        }
    }
}

impl core::error::Error for QueryError {}

/// Reads the path and query of a request, as in "/announce?info_hash=...".
///
/// # Errors
/// [`QueryError`].
pub fn parse_query(target: &str) -> Result<Query, QueryError> {
    if target.len() > MAX_QUERY_BYTES {
        return Err(QueryError::Long);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    match path.rsplit('/').next() {
        Some("announce") => announce(&pairs.collect::<Vec<_>>()),
        Some("scrape") => {
            let hashes = pairs.filter(|(key, _)| *key == "info_hash");
            let hashes = hashes.filter_map(|(_, value)| id(value)).take(MAX_SCRAPED);
            Ok(Query::Scrape(hashes.collect()))
        }
        _ => Err(QueryError::Path),
    }
}

/// A plus is a space, as forms have it: octets that are a plus are always encoded.
fn id(value: &str) -> Option<[u8; 20]> {
    percent_decoded(&value.replace('+', " ")).try_into().ok()
}

fn announce(pairs: &[(&str, &str)]) -> Result<Query, QueryError> {
    let find = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let number = |name: &str| find(name).and_then(|value| value.parse::<u64>().ok());
    let said = [Event::Started, Event::Completed, Event::Stopped, Event::Paused];
    let event = said.into_iter().find(|event| find("event") == Some(event.name())).unwrap_or_default();
    let port = number("port").and_then(|port| u16::try_from(port).ok());
    let wanted = number("numwant").map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let announce = Announce {
        info_hash: find("info_hash").and_then(id).ok_or(QueryError::Parameter("info_hash"))?,
        peer_id: find("peer_id").and_then(id).ok_or(QueryError::Parameter("peer_id"))?,
        port: port.ok_or(QueryError::Parameter("port"))?,
        uploaded: number("uploaded").unwrap_or(0),
        downloaded: number("downloaded").unwrap_or(0),
        left: number("left").filter(|left| *left <= super::MOST_LEFT),
        event,
        key: find("key").and_then(|key| u32::from_str_radix(key, 16).ok()).unwrap_or(0),
        wanted,
    };
    // Everybody reads compact answers nowadays; who does not says so.
    Ok(Query::Announce { announce, is_compact: find("compact") != Some("0") })
}

/// Writes an answer to a scrape.
#[must_use]
pub fn scrape_answer(tallies: &[([u8; 20], Tally)]) -> Vec<u8> {
    let files = tallies.iter().fold(Form::dict(), |files, (hash, tally)| {
        let file = Form::dict()
            .with("complete", tally.seeders)
            .with("downloaded", tally.completed)
            .with("incomplete", tally.leechers);
        files.with(hash, file)
    });
    Form::dict().with("files", files).encode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// `left` may be missing, or no number of octets that anybody lacks: then it is not known.
    #[test]
    fn what_is_left_may_be_senseless() {
        let query = |left: &str| {
            let id = "%01".repeat(20);
            alloc::format!("/announce?info_hash={id}&peer_id={id}&port=1{left}")
        };
        let left = |text: &str| match parse_query(&query(text)) {
            Ok(Query::Announce { announce, .. }) => announce.left,
            other => panic!("{other:?}"),
        };
        for text in ["", "&left=", "&left=-5", "&left=99999999999999999999", "&left=18446744073709551615"] {
            assert_eq!(left(text), None, "{text}");
        }
        assert_eq!((left("&left=0"), left("&left=7")), (Some(0), Some(7)));
    }

    fn example() -> Announce {
        Announce {
            info_hash: core::array::from_fn(|k| k as u8 * 12),
            peer_id: *b"-CE0001-abcdefghijkl",
            port: 6881,
            uploaded: 1,
            downloaded: 2,
            left: Some(3),
            event: Event::Started,
            key: 0xdead_beef,
            wanted: Some(50),
        }
    }

    #[test]
    fn what_is_asked_is_understood() {
        for event in [Event::Started, Event::Interval, Event::Completed, Event::Stopped, Event::Paused] {
            let announce = Announce { event, ..example() };
            let url = url("http://t.example:6969/x/announce", &announce, None);
            let target = url.strip_prefix("http://t.example:6969").unwrap();
            assert_eq!(parse_query(target), Ok(Query::Announce { announce, is_compact: true }));
        }
        let url = url("http://t/announce?pass=1", &example(), Some(b"a&b"));
        assert!(url.starts_with("http://t/announce?pass=1&info_hash=%00%0C"), "{url}");
        assert!(url.ends_with("&trackerid=a%26b"), "{url}");
        let url = super::url("http://t/announce#top", &example(), None);
        assert!(url.starts_with("http://t/announce?info_hash="), "{url}");
    }

    #[test]
    fn what_is_answered_is_understood() {
        let peers = ["1.2.3.4:5", "9.9.9.9:9", "[2001:db8::1]:80"].map(|text| text.parse().unwrap()).to_vec();
        let sent = Answer {
            interval_s: 1800,
            min_interval_s: Some(60),
            seeders: Some(3),
            leechers: Some(4),
            peers,
            ids: Vec::new(),
            named: Vec::new(),
            external_ip: None,
            warning: Some("slow".into()),
            tracker_id: Some(vec![1, 2]),
        };
        assert_eq!(parse_answer(&answer(&sent, true)), Ok(sent.clone()));
        assert_eq!(parse_answer(&answer(&sent, false)), Ok(sent.clone()));
        let sent = Answer { ids: (1..=3).map(|id| [id; 20]).collect(), ..sent };
        let octets = answer(&sent, false);
        let long = Document::parse(&octets, Limits::MESSAGE).unwrap();
        let peers = long.root().get(b"peers").unwrap().items();
        let ids: Vec<_> = peers.map(|peer| peer.get(b"peer id").and_then(Node::bytes)).collect();
        assert_eq!(ids, [1, 2, 3].map(|id| [id; 20]).each_ref().map(|id| Some(&id[..])));
    }

    #[test]
    fn peers_are_listed_by_address_or_name() {
        let peer = |ip: &str, port: u32| Form::dict().with("ip", ip).with("port", port);
        let long = "a".repeat(254);
        let peers = [
            peer("192.0.2.1", 1),
            peer("peer-1.example", 2),
            peer("no name", 3),
            peer("", 4),
            peer("1.2.3", 5),
            peer(&long, 6),
            peer("zero.example", 0),
            peer("2001:db8::1", 7),
        ];
        let octets = Form::dict().with("interval", 60_u32).with("peers", peers.to_vec()).encode();
        let answer = parse_answer(&octets).unwrap();
        assert_eq!(answer.peers, ["192.0.2.1:1", "[2001:db8::1]:7"].map(|text| text.parse().unwrap()));
        assert_eq!(answer.named, [("peer-1.example".to_string(), 2)]);
        let many: Vec<Form> = (1..100).map(|port| peer("peer.example", port)).collect();
        let answer = parse_answer(&Form::dict().with("peers", many).encode()).unwrap();
        assert_eq!(answer.named.len(), MAX_NAMED);
    }

    #[test]
    fn refusals_and_nonsense_are_told_apart() {
        assert_eq!(parse_answer(&failure("not here")), Err(Error::Failure("not here".into(), None)));
        assert_eq!(parse_answer(b"le"), Err(Error::Form));
        assert!(matches!(parse_answer(b"<html>"), Err(Error::Bencode(_))));
        let bare =
            parse_answer(b"d8:completei1e10:incompletei0e8:intervali1763e5:peers6:\x7f\0\0\x01\x1a\xe1e");
        assert_eq!(bare.unwrap().peers, ["127.0.0.1:6881".parse().unwrap()]);
    }

    #[test]
    fn a_refusal_may_have_no_words() {
        assert_eq!(refusal("no such torrent", None), "the tracker refuses: no such torrent");
        assert_eq!(refusal(" ", None), "the tracker refuses without a word");
        let never = refusal("", Some(RetryIn::Never));
        assert_eq!(never, "the tracker refuses without a word, and wants not to be asked again");
        let later = refusal("busy", Some(RetryIn::Minutes(5)));
        assert_eq!(later, "the tracker refuses, and wants to be asked again in 5 min: busy");
    }

    #[test]
    fn whoever_refuses_says_when_it_wants_to_be_asked_again() {
        let told = |value: &str| {
            let octets = alloc::format!("d14:failure reason4:busy8:retry in{value}e");
            match parse_answer(octets.as_bytes()) {
                Err(Error::Failure(_, retry)) => retry,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(told("i5e"), Some(RetryIn::Minutes(5)));
        assert_eq!(told("5:never"), Some(RetryIn::Never));
        assert_eq!(told("i99999999999e"), Some(RetryIn::Minutes(24 * 60)));
        for nonsense in ["i0e", "i-5e", "4:soon", "le"] {
            assert_eq!(told(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn requests_without_the_necessary_are_refused() {
        assert_eq!(parse_query("/"), Err(QueryError::Path));
        assert_eq!(parse_query("/announce?port=1"), Err(QueryError::Parameter("info_hash")));
        let query = alloc::format!("/announce?info_hash={0}&peer_id={0}&port=70000", "a".repeat(20));
        assert_eq!(parse_query(&query), Err(QueryError::Parameter("port")));
        assert_eq!(parse_query(&"/announce?".repeat(1000)), Err(QueryError::Long));
        let query = alloc::format!("/scrape?info_hash={}&info_hash=short", "a".repeat(20));
        assert_eq!(parse_query(&query), Ok(Query::Scrape(vec![[b'a'; 20]])));
        let query = alloc::format!("/scrape?info_hash={}%2b%20+", "a".repeat(17));
        let hash = *b"aaaaaaaaaaaaaaaaa+  ";
        assert_eq!(parse_query(&query), Ok(Query::Scrape(vec![hash])));
    }

    #[test]
    fn a_scrape_lists_torrents_by_their_octets() {
        let tally = Tally { seeders: 1, completed: 2, leechers: 3 };
        let octets = scrape_answer(&[([b'b'; 20], tally), ([b'a'; 20], tally)]);
        let text = alloc::format!(
            "d5:filesd20:{}d8:completei1e10:downloadedi2e10:incompletei3ee20:{}d8:completei1e10:downloadedi2e10:incompletei3eeee",
            "a".repeat(20),
            "b".repeat(20)
        );
        assert_eq!(octets, text.as_bytes());
    }
}
