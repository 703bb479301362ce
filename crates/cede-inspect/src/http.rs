//! Announces to trackers among the requests of one direction of a TCP connection.
//!
//! Source: BEP 3; RFC 9112, sections 2.1 and 3 (a line, fields, an empty line). Clients that keep a connection to their
//! tracker send one request behind the other.
//!
//! **What it leaves out.** Bodies: a GET has none. Answers. Behind a hole, requests are read again from the next empty line
//! on. **How it was validated.** Requests by hand, cut anywhere (the tests below, `tests/conversations.rs`).

use cede_bt::tracker::Announce;
use cede_bt::tracker::http::{MAX_QUERY_BYTES, Query, parse_query};

/// A request's first line.
const MAX_LINE_BYTES: usize = MAX_QUERY_BYTES + 64;

/// Reads one direction.
#[derive(Debug)]
pub(crate) enum Requests {
    /// The first line of a request, as far as it has come.
    Line(Vec<u8>),
    /// Fields up to an empty line: octets of the line that is being passed over, its end left out.
    Fields(usize),
    /// These are no requests.
    Other,
}

impl Default for Requests {
    fn default() -> Self {
        Self::Line(Vec::new())
    }
}

impl Requests {
    /// Reads octets, and tells of each announce in them.
    pub(crate) fn octets(&mut self, octets: &[u8], tell: &mut dyn FnMut(Announce)) {
        for part in octets.split_inclusive(|&octet| octet == b'\n') {
            let is_ended = part.ends_with(b"\n");
            match self {
                Self::Other => return,
                Self::Fields(len) => {
                    *len += part.iter().filter(|octet| !b"\r\n".contains(octet)).count();
                    match (is_ended, *len) {
                        (true, 0) => *self = Self::default(),
                        (true, _) => *len = 0,
                        (false, _) => {}
                    }
                }
                Self::Line(line) => {
                    line.extend_from_slice(&part[..part.len().min(MAX_LINE_BYTES)]);
                    self.judge(is_ended, tell);
                }
            }
        }
    }

    /// Octets are missing.
    pub(crate) fn missing(&mut self) {
        if !matches!(self, Self::Other) {
            *self = Self::Fields(1);
        }
    }

    /// Memory that it holds.
    pub(crate) const fn heap_bytes(&self) -> usize {
        match self {
            Self::Line(line) => line.capacity(),
            _ => 0,
        }
    }

    /// Looks at a first line, or the beginning of one.
    fn judge(&mut self, is_ended: bool, tell: &mut dyn FnMut(Announce)) {
        let Self::Line(line) = self else { return };
        let front = line.len().min(4);
        if line[..front] != b"GET "[..front] || line.len() > MAX_LINE_BYTES {
            *self = Self::Other;
        } else if is_ended {
            let announce = announce_of(line);
            *self = Self::Fields(0);
            announce.into_iter().for_each(tell);
        }
    }
}

fn announce_of(line: &[u8]) -> Option<Announce> {
    let target = core::str::from_utf8(line.strip_prefix(b"GET ")?).ok()?;
    let (target, _) = target.split_once(" HTTP/")?;
    match parse_query(target) {
        Ok(Query::Announce { announce, .. }) => Some(announce),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "%09%09%09%09%09%09%09%09%09%09%09%09%09%09%09%09%09%09%09%09";

    fn request(left: u64) -> String {
        let query = format!(
            "info_hash={HASH}&peer_id=-XX1000-abcdefghijkl&port=1&uploaded=0&downloaded=0&left={left}"
        );
        format!("GET /announce?{query} HTTP/1.1\r\nHost: t\r\nAccept: */*\r\n\r\n")
    }

    fn heard(parts: &[&[u8]]) -> Vec<u64> {
        let (mut requests, mut left) = (Requests::default(), Vec::new());
        for part in parts {
            if part.is_empty() {
                requests.missing();
            }
            requests.octets(part, &mut |announce| left.extend(announce.left));
        }
        left
    }

    #[test]
    fn each_request_of_a_connection_is_read_wherever_it_is_cut() {
        let text =
            [request(3), "GET /favicon.ico HTTP/1.1\r\n\r\n".to_owned(), request(2), request(1)].concat();
        for cut in [1, 2, 3, 7, 50, 1_000] {
            let parts: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            assert_eq!(heard(&parts), [3, 2, 1], "cut into {cut}");
        }
    }

    #[test]
    fn what_is_no_request_costs_nothing() {
        let mut requests = Requests::default();
        requests.octets(b"\x13BitTorrent protocol", &mut |_| panic!());
        assert!(matches!(requests, Requests::Other));
        let mut requests = Requests::default();
        requests.octets(b"GET ", &mut |_| panic!());
        requests.octets(&[b'x'; 1 << 20], &mut |_| panic!());
        assert_eq!(requests.heap_bytes(), 0, "a line without an end");
    }

    #[test]
    fn behind_a_hole_the_next_request_counts() {
        let (first, second) = (request(3), request(2));
        let torn = &first.as_bytes()[first.len() - 20..];
        assert_eq!(heard(&[&first.as_bytes()[..30], b"", torn, second.as_bytes()]), [2]);
    }
}
