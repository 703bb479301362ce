//! Bencoding: strings, integers, lists and dictionaries as octets.
//!
//! Source: BEP 3 and BEP 52, "bencoding". [`Document`] is the view: it points into the octets that were read and says of
//! each value where it begins and ends, so that an info dictionary can be hashed as it came. [`Form`] is what is written:
//! its dictionaries are ordered, so its octets are canonical.
//!
//! What it leaves out: numbers beyond 64 bits are passed over as values, not read. How it was validated: the vectors of
//! the BEPs, a fuzz target (every document that is read canonically is written as the same octets), and the metainfo
//! files and tracker answers of other implementations.

mod form;

pub use form::Form;

use alloc::vec::Vec;
use core::fmt;

/// How much a document may hold, and how exactly it has to keep to the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Lists and dictionaries inside each other.
    pub depth: usize,
    /// Values, keys included.
    pub values: usize,
    /// Keys of a dictionary ascend and are there once, and nothing is behind the value. Others do not keep to that, so what
    /// they made is read as it is: the first of equal keys counts, and space behind the value does not.
    pub canonical: bool,
}

impl Limits {
    /// For metainfo.
    pub const METAINFO: Self = Self { depth: 128, values: 4_000_000, canonical: false };
    /// For what we wrote ourselves.
    pub const CANONICAL: Self = Self { canonical: true, ..Self::METAINFO };
    /// For what trackers and peers send.
    pub const MESSAGE: Self = Self { depth: 32, values: 20_000, canonical: false };
}

/// Why octets are no document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// They end within a value.
    Truncated,
    /// Something else was expected at this octet.
    Unexpected(usize),
    /// The integer at this octet has a leading zero, is minus zero, or has no digits.
    Integer(usize),
    /// The length of the string at this octet is none.
    Length(usize),
    /// The key at this octet is not greater than the one before.
    Order(usize),
    /// There are octets behind the value, from this one on.
    Trailing(usize),
    /// Lists and dictionaries lie too deep in each other.
    Deep,
    /// There are too many values.
    Many,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bencoded value ends too early"),
            Self::Unexpected(at) => write!(f, "octet {at} begins no bencoded value"),
            Self::Integer(at) => write!(f, "the integer at octet {at} is not written as one"),
            Self::Length(at) => write!(f, "the length of the string at octet {at} is not written as one"),
            Self::Order(at) => write!(f, "the keys do not ascend at octet {at}"),
            Self::Trailing(at) => write!(f, "something follows the value at octet {at}"),
            Self::Deep => f.write_str("lists and dictionaries lie too deep in each other"),
            Self::Many => f.write_str("there are too many values"),
        }
    }
}

impl core::error::Error for Error {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Integer,
    /// Its octets begin here.
    Text(u32),
    List,
    Dict,
}

/// A value: where it lies, and where the one behind it and all that it holds is.
#[derive(Clone, Copy, Debug)]
struct Token {
    kind: Kind,
    start: u32,
    end: u32,
    next: u32,
}

/// A value that has been read, with all that it holds. It borrows the octets.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    octets: &'a [u8],
    tokens: Vec<Token>,
}

impl<'a> Document<'a> {
    /// Reads one value that takes all octets, but for space behind it.
    ///
    /// # Errors
    /// [`Error`].
    pub fn parse(octets: &'a [u8], limits: Limits) -> Result<Self, Error> {
        let (document, len) = Self::parse_prefix(octets, limits)?;
        let rest = &octets[len..];
        let is_space = !limits.canonical && rest.iter().all(u8::is_ascii_whitespace);
        if !rest.is_empty() && !is_space {
            return Err(Error::Trailing(len));
        }
        Ok(document)
    }

    /// Reads one value at the beginning of the octets, and says how many it takes.
    ///
    /// # Errors
    /// [`Error`].
    pub fn parse_prefix(octets: &'a [u8], limits: Limits) -> Result<(Self, usize), Error> {
        if u32::try_from(octets.len()).is_err() {
            return Err(Error::Many);
        }
        let mut reader = Reader { octets, at: 0, limits, tokens: Vec::new(), open: Vec::new() };
        while !reader.step()? {}
        let (tokens, len) = (reader.tokens, reader.at);
        Ok((Self { octets, tokens }, len))
    }

    /// The outermost value.
    #[must_use]
    pub fn root(&self) -> Node<'_, 'a> {
        Node { document: self, index: 0 }
    }
}

/// A list or dictionary whose end has not come.
struct Open {
    index: usize,
    /// In a dictionary: a key has been read, and its value is awaited.
    has_key: bool,
    /// The key before, by its token.
    last_key: Option<usize>,
}

struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
    limits: Limits,
    tokens: Vec<Token>,
    open: Vec<Open>,
}

impl Reader<'_> {
    /// Reads one token; true where that ended the outermost value.
    fn step(&mut self) -> Result<bool, Error> {
        let start = self.at;
        match self.octets.get(start).copied().ok_or(Error::Truncated)? {
            b'e' => return self.close(),
            b'0'..=b'9' => {
                let body = self.text()?;
                self.push(Kind::Text(body as u32), start)?;
            }
            _ if self.awaits_key() => return Err(Error::Unexpected(start)),
            b'i' => {
                self.integer()?;
                self.push(Kind::Integer, start)?;
            }
            octet @ (b'l' | b'd') => {
                self.at += 1;
                self.push(if octet == b'l' { Kind::List } else { Kind::Dict }, start)?;
                if self.open.len() >= self.limits.depth {
                    return Err(Error::Deep);
                }
                self.open.push(Open { index: self.tokens.len() - 1, has_key: false, last_key: None });
                return Ok(false);
            }
            _ => return Err(Error::Unexpected(start)),
        }
        self.settle()
    }

    fn awaits_key(&self) -> bool {
        let top = self.open.last();
        top.is_some_and(|top| self.tokens[top.index].kind == Kind::Dict && !top.has_key)
    }

    fn push(&mut self, kind: Kind, start: usize) -> Result<(), Error> {
        if self.tokens.len() >= self.limits.values {
            return Err(Error::Many);
        }
        let next = self.tokens.len() as u32 + 1;
        self.tokens.push(Token { kind, start: start as u32, end: self.at as u32, next });
        Ok(())
    }

    /// A value or key is over.
    fn settle(&mut self) -> Result<bool, Error> {
        let awaits_key = self.awaits_key();
        let newest = self.tokens.len() - 1;
        let Some(top) = self.open.last_mut() else { return Ok(true) };
        if !awaits_key {
            top.has_key = false;
            return Ok(false);
        }
        top.has_key = true;
        let before = top.last_key.replace(newest);
        let ascends = before.is_none_or(|before| self.body(before) < self.body(newest));
        if self.limits.canonical && !ascends {
            return Err(Error::Order(self.tokens[newest].start as usize));
        }
        Ok(false)
    }

    fn body(&self, index: usize) -> &[u8] {
        body(self.octets, self.tokens[index])
    }

    fn close(&mut self) -> Result<bool, Error> {
        let open = self.open.pop().filter(|open| !open.has_key).ok_or(Error::Unexpected(self.at))?;
        self.at += 1;
        let next = self.tokens.len() as u32;
        let token = &mut self.tokens[open.index];
        (token.end, token.next) = (self.at as u32, next);
        let Some(outer) = self.open.last_mut() else { return Ok(true) };
        outer.has_key = false;
        Ok(false)
    }

    /// The digits from here on: where they end. No leading zero.
    fn digits(&self, from: usize) -> Option<usize> {
        let count = self.octets[from..].iter().take_while(|octet| octet.is_ascii_digit()).count();
        let is_plain = count == 1 || (count > 1 && self.octets[from] != b'0');
        is_plain.then_some(from + count)
    }

    /// Passes over an integer.
    fn integer(&mut self) -> Result<(), Error> {
        let start = self.at;
        let is_negative = self.octets.get(start + 1) == Some(&b'-');
        let from = start + 1 + usize::from(is_negative);
        if from >= self.octets.len() {
            return Err(Error::Truncated);
        }
        let end = self.digits(from).ok_or(Error::Integer(start))?;
        if is_negative && self.octets[from] == b'0' {
            return Err(Error::Integer(start));
        }
        match self.octets.get(end) {
            Some(b'e') => self.at = end + 1,
            Some(_) => return Err(Error::Integer(start)),
            None => return Err(Error::Truncated),
        }
        Ok(())
    }

    /// Passes over a string, and says where its octets begin.
    fn text(&mut self) -> Result<usize, Error> {
        let start = self.at;
        let end = self.digits(start).ok_or(Error::Length(start))?;
        match self.octets.get(end) {
            Some(b':') => {}
            Some(_) => return Err(Error::Length(start)),
            None => return Err(Error::Truncated),
        }
        let len = number(&self.octets[start..end]).and_then(|len| usize::try_from(len).ok());
        let body = end + 1;
        let after = len.and_then(|len| body.checked_add(len)).filter(|after| *after <= self.octets.len());
        self.at = after.ok_or(Error::Truncated)?;
        Ok(body)
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

fn body(octets: &[u8], token: Token) -> &[u8] {
    match token.kind {
        Kind::Text(body) => &octets[body as usize..token.end as usize],
        _ => &[],
    }
}

/// One value of a [`Document`].
#[derive(Clone, Copy, Debug)]
pub struct Node<'d, 'a> {
    document: &'d Document<'a>,
    index: usize,
}

impl<'d, 'a> Node<'d, 'a> {
    fn token(self) -> Token {
        self.document.tokens[self.index]
    }

    /// The octets that it was written with.
    #[must_use]
    pub fn raw(self) -> &'a [u8] {
        let token = self.token();
        &self.document.octets[token.start as usize..token.end as usize]
    }

    /// Its octets, where it is a string.
    #[must_use]
    pub fn bytes(self) -> Option<&'a [u8]> {
        let token = self.token();
        matches!(token.kind, Kind::Text(_)).then(|| body(self.document.octets, token))
    }

    /// Its text, where it is a string of UTF-8.
    #[must_use]
    pub fn text(self) -> Option<&'a str> {
        core::str::from_utf8(self.bytes()?).ok()
    }

    /// Its number, where it is an integer of 64 bits.
    #[must_use]
    pub fn int(self) -> Option<i64> {
        let raw = self.raw();
        if self.token().kind != Kind::Integer {
            return None;
        }
        number(&raw[1..raw.len() - 1])
    }

    /// As [`Node::int`], where it is not negative.
    #[must_use]
    pub fn uint(self) -> Option<u64> {
        self.int().and_then(|int| u64::try_from(int).ok())
    }

    /// Is it a dictionary?
    #[must_use]
    pub fn is_dict(self) -> bool {
        self.token().kind == Kind::Dict
    }

    /// Is it a list?
    #[must_use]
    pub fn is_list(self) -> bool {
        self.token().kind == Kind::List
    }

    /// What it holds, where it is a list; nothing where it is none.
    pub fn items(self) -> impl Iterator<Item = Node<'d, 'a>> + use<'d, 'a> {
        let range = if self.is_list() { (self.index + 1, self.token().next as usize) } else { (0, 0) };
        Children { document: self.document, at: range.0, end: range.1 }
    }

    /// Its keys and their values, where it is a dictionary; nothing where it is none.
    pub fn entries(self) -> impl Iterator<Item = (&'a [u8], Node<'d, 'a>)> + use<'d, 'a> {
        let range = if self.is_dict() { (self.index + 1, self.token().next as usize) } else { (0, 0) };
        let mut children = Children { document: self.document, at: range.0, end: range.1 };
        core::iter::from_fn(move || {
            let key = children.next()?;
            Some((key.bytes()?, children.next()?))
        })
    }

    /// The value of a key. The first, where there are several.
    #[must_use]
    pub fn get(self, key: &[u8]) -> Option<Self> {
        self.entries().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

struct Children<'d, 'a> {
    document: &'d Document<'a>,
    at: usize,
    end: usize,
}

impl<'d, 'a> Iterator for Children<'d, 'a> {
    type Item = Node<'d, 'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = (self.at < self.end).then_some(self.at)?;
        self.at = self.document.tokens[index].next as usize;
        Some(Node { document: self.document, index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec;

    fn canonical(octets: &[u8]) -> Result<Document<'_>, Error> {
        Document::parse(octets, Limits::CANONICAL)
    }

    fn form(node: Node<'_, '_>) -> Form {
        if node.is_dict() {
            return Form::Dict(node.entries().map(|(key, value)| (key.to_vec(), form(value))).collect());
        }
        if node.is_list() {
            return Form::List(node.items().map(form).collect());
        }
        node.int().map(Form::Int).unwrap_or_else(|| Form::Bytes(node.bytes().unwrap().to_vec()))
    }

    #[test]
    fn what_is_bencoded_is_read_and_written_as_the_same_octets() {
        let texts: [&[u8]; 9] = [
            b"4:spam",
            b"0:",
            b"i3e",
            b"i-3e",
            b"i0e",
            b"l4:spam4:eggse",
            b"d3:cow3:moo4:spam4:eggse",
            b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe",
            b"lld1:aleee0:e",
        ];
        for octets in texts {
            assert_eq!(form(canonical(octets).unwrap().root()).encode(), octets);
        }
    }

    #[test]
    fn what_is_not_bencoded_is_refused_for_its_reason() {
        let cases: [(&[u8], Error); 16] = [
            (b"", Error::Truncated),
            (b"i-0e", Error::Integer(0)),
            (b"i03e", Error::Integer(0)),
            (b"ie", Error::Integer(0)),
            (b"i-e", Error::Integer(0)),
            (b"i1", Error::Truncated),
            (b"-1:a", Error::Unexpected(0)),
            (b"01:a", Error::Length(0)),
            (b"5:abc", Error::Truncated),
            (b"99999999999999999999:abc", Error::Truncated),
            (b"d1:b0:1:a0:e", Error::Order(6)),
            (b"d1:a0:1:a0:e", Error::Order(6)),
            (b"di1e0:e", Error::Unexpected(1)),
            (b"d1:ae", Error::Unexpected(4)),
            (b"e", Error::Unexpected(0)),
            (b"i1ei2e", Error::Trailing(3)),
        ];
        for (octets, error) in cases {
            assert_eq!(canonical(octets).unwrap_err(), error, "{}", String::from_utf8_lossy(octets));
        }
    }

    #[test]
    fn depth_and_number_of_values_are_limited() {
        let levels = Limits::CANONICAL.depth + 1;
        let deep = [vec![b'l'; levels], vec![b'e'; levels]].concat();
        assert_eq!(canonical(&deep).unwrap_err(), Error::Deep);
        let limits = Limits { values: 3, ..Limits::MESSAGE };
        assert!(Document::parse(b"li1ei2ee", limits).is_ok());
        assert_eq!(Document::parse(b"li1ei2ei3ee", limits).unwrap_err(), Error::Many);
    }

    #[test]
    fn answers_may_have_unordered_keys_and_the_first_counts() {
        let document = Document::parse(b"d1:bi1e1:ai2e1:ai3ee", Limits::MESSAGE).unwrap();
        assert_eq!(document.root().get(b"a").and_then(Node::int), Some(2));
        assert!(Document::parse(b"de\r\n", Limits::MESSAGE).is_ok());
        assert_eq!(Document::parse(b"de\n.", Limits::MESSAGE).unwrap_err(), Error::Trailing(2));
        assert_eq!(canonical(b"de\n").unwrap_err(), Error::Trailing(2));
    }

    #[test]
    fn a_value_knows_its_octets_and_what_follows() {
        let octets = b"d8:msg_typei1e5:piecei0eerest";
        let (document, len) = Document::parse_prefix(octets, Limits::MESSAGE).unwrap();
        assert_eq!(&octets[len..], b"rest");
        assert_eq!(document.root().raw(), &octets[..len]);
        assert_eq!(document.root().get(b"piece").unwrap().raw(), b"i0e");
        assert_eq!(document.root().get(b"none").map(Node::raw), None);
    }

    #[test]
    fn integers_beyond_64_bits_are_passed_over() {
        let document = canonical(b"li99999999999999999999999ei7ee").unwrap();
        let ints: Vec<_> = document.root().items().map(Node::int).collect();
        assert_eq!(ints, [None, Some(7)]);
    }
}
