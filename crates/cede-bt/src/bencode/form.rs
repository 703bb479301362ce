//! What is written: values whose octets are canonical.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// A value that can be written. Dictionaries are in order by their nature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// An integer.
    Int(i64),
    /// A string.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Form>),
    /// A dictionary.
    Dict(BTreeMap<Vec<u8>, Form>),
    /// What is written already, such as an info dictionary that keeps its hash.
    Raw(Vec<u8>),
}

impl Form {
    /// An empty dictionary.
    #[must_use]
    pub const fn dict() -> Self {
        Self::Dict(BTreeMap::new())
    }

    /// The same with a key more. What is no dictionary stays as it is.
    #[must_use]
    pub fn with(mut self, key: impl AsRef<[u8]>, value: impl Into<Self>) -> Self {
        if let Self::Dict(entries) = &mut self {
            entries.insert(key.as_ref().to_vec(), value.into());
        }
        self
    }

    /// As [`Form::with`], where there is a value.
    #[must_use]
    pub fn with_some(self, key: impl AsRef<[u8]>, value: Option<impl Into<Self>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Its octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    /// Appends its octets.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Self::Int(int) => out.extend_from_slice(alloc::format!("i{int}e").as_bytes()),
            Self::Bytes(bytes) => text_into(bytes, out),
            Self::Raw(raw) => out.extend_from_slice(raw),
            Self::List(items) => {
                out.push(b'l');
                items.iter().for_each(|item| item.encode_into(out));
                out.push(b'e');
            }
            Self::Dict(entries) => {
                out.push(b'd');
                for (key, value) in entries {
                    text_into(key, out);
                    value.encode_into(out);
                }
                out.push(b'e');
            }
        }
    }
}

fn text_into(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(alloc::format!("{}:", text.len()).as_bytes());
    out.extend_from_slice(text);
}

impl From<i64> for Form {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<u64> for Form {
    /// What does not fit becomes the greatest integer of 64 bits.
    fn from(int: u64) -> Self {
        Self::Int(i64::try_from(int).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Form {
    fn from(int: u32) -> Self {
        Self::Int(int.into())
    }
}

impl From<&[u8]> for Form {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<&str> for Form {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<String> for Form {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes())
    }
}

impl From<Vec<u8>> for Form {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<Form>> for Form {
    fn from(items: Vec<Form>) -> Self {
        Self::List(items)
    }
}
