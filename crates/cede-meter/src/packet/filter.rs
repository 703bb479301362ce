//! Which packets count: a small language, much like that of tcpdump.
//!
//! ```text
//! filter    = all of | any of | one                 "and" and "or" are not mixed without parentheses
//! all of    = one ("and" | "&&") one ...
//! any of    = one ("or" | "||") one ...
//! one       = ("not" | "!") one | "(" filter ")" | test
//! test      = ["tcp" | "udp" | "utp" | "ip" | "ip6"] [["src" | "dst"] what]
//! what      = "host" ADDRESS | "net" ADDRESS/BITS | "port" N | "portrange" N-M
//!           | ADDRESS | ADDRESS/BITS | N            (a number alone: a port, after a test of a port)
//! ```
//!
//! What stands alone has the protocol and the end of the test of its kind before it: "tcp src port 80 or 443" are two ports of senders of TCP.
//!
//! **What it leaves out** of pcap-filter(7): names of hosts and services, masks written as addresses, octets of headers,
//! and its rule that "and" and "or" bind alike: mixed without parentheses, they are an error here.
//!
//! **How it was validated.** Tables of filters and packets, errors with their places (below), arbitrary texts
//! (`tests/fuzz.rs`), and some thousand random filters beside what tcpdump makes of them.

use crate::packet::frame::{Content, Seen};
use crate::packet::key::{Address, End};
use crate::packet::utp;
use core::fmt;
use core::net::IpAddr;

/// Tests of a filter, parentheses and negations within each other.
const OPS_MAX: usize = 512;
const DEPTH_MAX: usize = 60;
const MISSING: &str = "something is missing here, such as `host 192.0.2.1`, `port 80` or `tcp`";
const WORDS: [&str; 14] =
    ["and", "or", "not", "tcp", "udp", "utp", "ip", "ip6", "src", "dst", "host", "net", "port", "portrange"];

/// A filter, ready for use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// In the order in which a stack machine takes them.
    ops: Vec<Op>,
}

/// What is wrong with a filter's text, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterError {
    /// The text.
    pub text: String,
    /// Octets of it before what is wrong.
    pub offset: usize,
    /// Octets of what is wrong; zero at the end of the text.
    pub len: usize,
    /// What is wrong.
    pub problem: String,
}

impl core::error::Error for FilterError {}

/// The problem, and below it the text with what is wrong marked.
impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let columns =
            |range: core::ops::Range<usize>| self.text.get(range).map_or(0, |part| part.chars().count());
        let (before, marked) = (columns(0..self.offset), columns(self.offset..self.offset + self.len).max(1));
        write!(f, "{}\n  {line}\n  {}{}", self.problem, " ".repeat(before), "^".repeat(marked))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Test(Test),
    Not,
    And,
    Or,
}

/// Which end of a packet is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    Either,
    Source,
    Destination,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Test {
    Tcp,
    Udp,
    /// A datagram that has the form of uTP.
    Utp,
    Ip,
    Ip6,
    Net {
        ends: Ends,
        net: Address,
        bits: u32,
    },
    Ports {
        ends: Ends,
        first: u16,
        last: u16,
    },
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser { text, tokens: tokens(text), at: 0, ops: Vec::new(), last: None };
        parser.filter(0)?;
        match parser.peek() {
            None => Ok(Self { ops: parser.ops }),
            Some(")") => Err(parser.wrong("nothing was opened that this could close")),
            Some(_) => Err(parser.wrong("`and` or `or` is missing before this")),
        }
    }

    /// Whether a packet passes.
    #[inline]
    #[must_use]
    pub fn passes(&self, seen: &Seen<'_>) -> bool {
        // A bit for each value on the stack; the parser bounds its depth.
        let mut stack = 0_u64;
        for op in &self.ops {
            stack = match op {
                Op::Test(test) => stack << 1 | u64::from(test.holds(seen)),
                Op::Not => stack ^ 1,
                Op::And => stack >> 1 & (stack | !1),
                Op::Or => stack >> 1 | stack & 1,
            };
        }
        stack & 1 == 1
    }
}

impl core::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Self::parse(text)
    }
}

impl Test {
    fn holds(self, seen: &Seen<'_>) -> bool {
        let any = |ends: Ends, holds: &dyn Fn(End) -> bool| {
            (ends != Ends::Destination && holds(seen.source))
                || (ends != Ends::Source && holds(seen.destination))
        };
        match self {
            Self::Tcp => matches!(seen.content, Content::Tcp(_)),
            Self::Udp => matches!(seen.content, Content::Udp { .. }),
            Self::Utp => match seen.content {
                Content::Udp { payload, payload_len } => utp::has_form(payload, payload_len),
                Content::Tcp(_) => false,
            },
            Self::Ip => seen.source.address.is_v4(),
            Self::Ip6 => !seen.source.address.is_v4(),
            // IPv4 stands within `::/0`, but is none of its addresses.
            Self::Net { ends, net, bits } => {
                any(ends, &|end| end.address.is_v4() == net.is_v4() && end.address.shares(net, bits))
            }
            Self::Ports { ends, first, last } => any(ends, &|end| (first..=last).contains(&end.port)),
        }
    }
}

/// Words, numbers and addresses, and signs, each with its place.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_sign = |c: char| matches!(c, '(' | ')' | '!' | '&' | '|');
        let len = match first {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '&' | '|' => rest.chars().take(2).take_while(|&c| c == first).count(),
            c if is_sign(c) => 1,
            _ => rest.find(|c: char| c.is_whitespace() || is_sign(c)).unwrap_or(rest.len()),
        };
        tokens.push((at, &rest[..len]));
        at += len;
    }
    tokens
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, &'a str)>,
    at: usize,
    ops: Vec<Op>,
    /// What a number or an address alone is another one of.
    last: Option<Told>,
}

/// What the last test of ports or addresses said besides.
#[derive(Clone, Copy)]
struct Told {
    is_of_ports: bool,
    protocol: Option<Test>,
    ends: Ends,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|token| token.1)
    }

    fn next_is(&mut self, words: &[&str]) -> bool {
        let is = self.peek().is_some_and(|token| words.contains(&token));
        self.at += usize::from(is);
        is
    }

    /// What is wrong with the token that comes next.
    fn wrong(&self, problem: impl Into<String>) -> FilterError {
        let (offset, len) =
            self.tokens.get(self.at).map_or((self.text.len(), 0), |(at, word)| (*at, word.len()));
        FilterError { text: self.text.to_string(), offset, len, problem: problem.into() }
    }

    fn push(&mut self, op: Op) -> Result<(), FilterError> {
        if self.ops.len() >= OPS_MAX {
            return Err(self.wrong(format!("the filter has more than {OPS_MAX} parts")));
        }
        self.ops.push(op);
        Ok(())
    }

    fn filter(&mut self, depth: usize) -> Result<(), FilterError> {
        self.one(depth)?;
        let mut joined = None;
        loop {
            let op = match self.peek() {
                Some("and" | "&&") => Op::And,
                Some("or" | "||") => Op::Or,
                _ => return Ok(()),
            };
            if joined.is_some_and(|joined| joined != op) {
                return Err(self.wrong("`and` and `or` together need parentheses"));
            }
            joined = Some(op);
            self.at += 1;
            self.one(depth)?;
            self.push(op)?;
        }
    }

    fn one(&mut self, depth: usize) -> Result<(), FilterError> {
        if depth > DEPTH_MAX {
            return Err(self.wrong("parentheses and negations are too deep"));
        }
        if self.next_is(&["not", "!"]) {
            self.one(depth + 1)?;
            return self.push(Op::Not);
        }
        if self.next_is(&["("]) {
            let last = self.last;
            self.filter(depth + 1)?;
            // What stands within says nothing of what stands behind.
            self.last = last;
            return if self.next_is(&[")"]) { Ok(()) } else { Err(self.wrong("`)` is missing here")) };
        }
        self.test()
    }

    fn test(&mut self) -> Result<(), FilterError> {
        let kind = match self.peek() {
            Some("tcp") => Some(Test::Tcp),
            Some("udp") => Some(Test::Udp),
            Some("utp") => Some(Test::Utp),
            Some("ip") => Some(Test::Ip),
            Some("ip6") => Some(Test::Ip6),
            _ => None,
        };
        let Some(kind) = kind else { return self.ends(None) };
        self.at += 1;
        // `tcp port 80` means both.
        let goes_on = self
            .peek()
            .is_some_and(|token| matches!(token, "src" | "dst" | "host" | "net" | "port" | "portrange"));
        if goes_on { self.ends(Some(kind)) } else { self.push(Op::Test(kind)) }
    }

    fn ends(&mut self, protocol: Option<Test>) -> Result<(), FilterError> {
        let ends = match self.peek() {
            Some("src") => Some(Ends::Source),
            Some("dst") => Some(Ends::Destination),
            _ => None,
        };
        self.at += usize::from(ends.is_some());
        let last = self.last.take().filter(|_| ends.is_none());
        let none = Told { is_of_ports: false, protocol, ends: ends.unwrap_or(Ends::Either) };
        let alone = |is_of_ports| last.filter(|last| last.is_of_ports == is_of_ports);
        let (told, test) = match self.peek() {
            Some("host") => (none, self.behind(|parser| parser.net(none.ends, false))),
            Some("net") => (none, self.behind(|parser| parser.net(none.ends, true))),
            Some("port") => (none, self.behind(|parser| parser.port(none.ends))),
            Some("portrange") => (none, self.behind(|parser| parser.port_range(none.ends))),
            Some(token) if token.parse::<u16>().is_ok() => match alone(true) {
                Some(last) => (last, self.port(last.ends)),
                None => return Err(self.wrong(format!("a number alone: `port {token}`?"))),
            },
            Some(token) if token.contains(['.', ':']) => {
                let last = alone(false).unwrap_or(none);
                (last, self.net(last.ends, false))
            }
            Some(token) => return Err(self.wrong(unknown(token))),
            None => return Err(self.wrong(MISSING)),
        };
        self.push_told(told, test?)
    }

    fn push_told(&mut self, told: Told, test: Test) -> Result<(), FilterError> {
        self.last = Some(Told { is_of_ports: matches!(test, Test::Ports { .. }), ..told });
        self.push(Op::Test(test))?;
        if let Some(protocol) = told.protocol {
            self.push(Op::Test(protocol))?;
            self.push(Op::And)?;
        }
        Ok(())
    }

    fn behind<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.at += 1;
        read(self)
    }

    fn net(&mut self, ends: Ends, needs_bits: bool) -> Result<Test, FilterError> {
        let token = self.peek().ok_or_else(|| self.wrong("an address is missing here"))?;
        let (address, bits) =
            token.split_once('/').map_or((token, None), |(address, bits)| (address, Some(bits)));
        let not_one = || self.wrong(format!("`{address}` is no address; names are not looked up"));
        let address: IpAddr = address.parse().map_err(|_| not_one())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if needs_bits && bits.is_none() {
            return Err(self.wrong(format!("how many bits of it? `{token}/{}`", most / 4)));
        }
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|&bits| bits <= most));
        let bits =
            bits.ok_or_else(|| self.wrong(format!("the bits of this network are a number up to {most}")))?;
        self.at += 1;
        // IPv4 stands in the last 32 of 128 bits.
        Ok(Test::Net { ends, net: Address::of(address), bits: bits + 128 - most })
    }

    fn number(&self, text: &str) -> Result<u16, FilterError> {
        text.parse().map_err(|_| self.wrong("a port is a number up to 65535; names are not looked up"))
    }

    fn port(&mut self, ends: Ends) -> Result<Test, FilterError> {
        let token = self.peek().ok_or_else(|| self.wrong("the port is missing here"))?;
        if token.contains('-') {
            return self.port_range(ends);
        }
        let port = self.number(token)?;
        self.at += 1;
        Ok(Test::Ports { ends, first: port, last: port })
    }

    fn port_range(&mut self, ends: Ends) -> Result<Test, FilterError> {
        let token = self.peek().ok_or_else(|| self.wrong("the ports are missing here"))?;
        let (first, last) =
            token.split_once('-').ok_or_else(|| self.wrong("ports are written as `6881-6889`"))?;
        let (first, last) = (self.number(first)?, self.number(last)?);
        if first > last {
            return Err(self.wrong("the first port is higher than the last one"));
        }
        self.at += 1;
        Ok(Test::Ports { ends, first, last })
    }
}

fn unknown(token: &str) -> String {
    match token {
        ")" => "something is missing before this".to_string(),
        "and" | "or" | "&&" | "||" => format!("something is missing before `{token}`"),
        _ if WORDS.contains(&token) => format!("`{token}` does not belong here"),
        _ => {
            let shared = |word: &str| word.chars().filter(|&c| token.contains(c)).count();
            let is_near =
                |word: &&&str| word.len().abs_diff(token.len()) <= 1 && shared(word) * 2 > word.len();
            let near = WORDS.iter().filter(is_near).max_by_key(|word| shared(word));
            let guess = near.map_or_else(String::new, |word| format!("; did you mean `{word}`?"));
            format!("`{token}` is no word of a filter{guess}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::frame;
    use cede_wire::link::LinkType;

    /// An IPv4 packet from 10.1.2.3:6881 to 192.0.2.9:443, or an IPv6 one between 2001:db8::1 and ::2.
    fn packet(is_tcp: bool, is_v6: bool) -> Vec<u8> {
        let protocol = if is_tcp { 6 } else { 17 };
        let mut out = if is_v6 {
            let end = |last: u8| [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[last]].concat();
            [&[0x60, 0, 0, 0, 0, 40, protocol, 64][..], &end(1), &end(2)].concat()
        } else {
            vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 1, 2, 3, 192, 0, 2, 9]
        };
        out.extend([6881_u16.to_be_bytes(), 443_u16.to_be_bytes()].concat());
        out.extend(if is_tcp { [0; 8] } else { [0, 40, 0, 0, 1, 0, 0, 7] });
        out.extend([0x50; 28]);
        out
    }

    fn passes(filter: &str, packet: &[u8]) -> bool {
        let filter = Filter::parse(filter).unwrap_or_else(|error| panic!("{error}"));
        filter.passes(&frame::read(LinkType::RAW, packet, packet.len() as u32).expect("a packet"))
    }

    #[test]
    fn every_test_is_about_what_it_says() {
        let tcp = packet(true, false);
        for filter in [
            "tcp",
            "ip",
            "not udp",
            "! ip6",
            "host 10.1.2.3",
            "src host 10.1.2.3",
            "dst net 192.0.2.0/24",
            "10.0.0.0/8",
            "net 0.0.0.0/0",
            "port 443",
            "dst port 443",
            "src portrange 6881-6889",
            "port 6000-7000",
            "tcp port 443",
            "tcp src port 6881 and dst 192.0.2.9",
            "udp or tcp",
            "port 80 or 443",
            "tcp src port 80 or 6881",
            "dst 10.1.2.3 or 192.0.2.9",
            "dst port 80 or 10.1.2.3",
            "(udp or tcp) and not (port 80 || port 8080)",
            "tcp&&ip",
            "!!tcp",
            "not not not udp",
        ] {
            assert!(passes(filter, &tcp), "{filter}");
            assert!(!passes(&format!("not ({filter})"), &tcp), "{filter}");
        }
        for filter in [
            "udp",
            "utp",
            "ip6",
            "dst host 10.1.2.3",
            "src port 443",
            "net 10.2.0.0/16",
            "tcp and udp",
            "udp port 443",
            "host 2001:db8::1",
            "net ::/0 and ip6",
            "port 80 or port 8080",
            "src port 80 or 443",
            "udp port 80 or 443",
            "udp src port 80 or (dst port 80 or 6881)",
            "dst 192.0.2.8 or 10.1.2.3",
            "udp host 192.0.2.8 or 10.1.2.3",
            "src net 192.0.0.0/8 or 192.0.2.0/24",
            "src port 80 or (dst port 80) or 443",
            "net ::/0",
            "net ::/64",
        ] {
            assert!(!passes(filter, &tcp), "{filter}");
        }
        let v6 = packet(false, true);
        for filter in
            ["ip6", "udp", "net 2001:db8::/32", "src host 2001:db8::1", "dst 2001:db8::2 and port 443"]
        {
            assert!(passes(filter, &v6), "{filter}");
        }
        assert!(passes("utp", &packet(false, false)) && !passes("net 0.0.0.0/0", &v6));
    }

    #[test]
    fn what_is_wrong_is_marked() {
        for (text, marked, problem) in [
            ("", "", "something is missing here"),
            ("host", "", "an address is missing"),
            ("host example.org", "example.org", "names are not looked up"),
            ("prot 80", "prot", "did you mean `port`?"),
            ("tcp udp", "udp", "`and` or `or` is missing"),
            ("src tcp", "tcp", "does not belong here"),
            ("tcp src 80", "80", "`port 80`?"),
            ("(port 80) or 81", "81", "`port 81`?"),
            ("src port 80 or dst 81", "81", "`port 81`?"),
            ("tcp and port 80 or port 81", "or", "need parentheses"),
            ("(tcp and udp", "", "`)` is missing"),
            ("tcp)", ")", "nothing was opened"),
            ("net 10.0.0.0", "10.0.0.0", "`10.0.0.0/8`"),
            ("net 10.0.0.0/33", "10.0.0.0/33", "up to 32"),
            ("port 70000", "70000", "up to 65535"),
            ("portrange 9-2", "9-2", "higher than the last"),
            ("tcp and", "", "something is missing"),
            ("and tcp", "and", "missing before `and`"),
            ("443", "443", "`port 443`?"),
            ("tcp & udp", "&", "`and` or `or` is missing"),
        ] {
            let error = Filter::parse(text).unwrap_err();
            assert_eq!(&text[error.offset..error.offset + error.len], marked, "{text}: {error}");
            assert!(error.problem.contains(problem), "{text}: {error}");
        }
        let shown = Filter::parse("tcp and prot 80").unwrap_err().to_string();
        assert!(shown.ends_with("\n  tcp and prot 80\n          ^^^^"), "{shown}");
        assert!(
            Filter::parse(&"(".repeat(10_000)).is_err() && Filter::parse(&"tcp or ".repeat(10_000)).is_err()
        );
    }
}
