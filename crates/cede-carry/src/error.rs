//! Why a conversation ends before its end, or does not begin.

use crate::message::{DecodeError, VERSION};
use crate::opening::{PATIENCE, SEALED_VERSION, SILENCE};
use crate::untrusted::printable;
use std::{fmt, io};

/// Why a conversation ended before its end.
#[derive(Debug)]
pub enum WireError {
    /// The stream broke.
    Lost(io::Error),
    /// The other side has been silent for [`SILENCE`].
    Silent,
    /// What came is no message.
    Decode(DecodeError),
    /// A message came that has no place here.
    Unexpected,
    /// The other side is no `cede`: what it said first.
    Stranger(Vec<u8>),
    /// The other side speaks another version.
    Version {
        /// Which one.
        theirs: u16,
    },
    /// The other side does not want to: why.
    Refused(String),
    /// The other side gave up: why.
    Failed(String),
    /// This side gave up: why.
    GaveUp(String),
    /// One side has a key and the other none, or they have not the same.
    Seal(SealError),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(error) => write!(f, "the connection broke: {error}"),
            Self::Silent => write!(f, "the other end has said nothing for {} s", SILENCE.as_secs()),
            Self::Decode(error) => write!(f, "the other end does not keep to the protocol: {error}"),
            Self::Unexpected => {
                f.write_str("the other end does not keep to the protocol: a message came out of turn")
            }
            Self::Stranger(heard) => {
                write!(f, "the other end speaks uTP, but is no cede: it began with \"{}\"", printable(heard))
            }
            Self::Version { theirs } => write!(
                f,
                "the other end speaks version {theirs} of the protocol and this one version {VERSION}: install the same \
                 release of cede at both ends"
            ),
            Self::Refused(text) => write!(f, "the other end refuses: {}", printable(text.as_bytes())),
            Self::Failed(text) => write!(f, "the other end gave up: {}", printable(text.as_bytes())),
            Self::GaveUp(text) => f.write_str(text),
            Self::Seal(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WireError {}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl From<SealError> for WireError {
    fn from(error: SealError) -> Self {
        Self::Seal(error)
    }
}

impl From<DecodeError> for WireError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// Why nothing can be said under a key, or no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SealError {
    /// The other end has a key, and this one none.
    KeyNeeded,
    /// This end has a key, and the other none.
    NoKeyThere,
    /// Both have, but not the same; this end's fingerprint.
    OtherKey(String),
    /// The other end speaks another version of this.
    Version(u16),
    /// What the other end said first is no answer to a handshake.
    NotSealed(Vec<u8>),
    /// The other end did not answer, or did not go on, in time.
    Silent,
    /// It had shown no key yet when there was no more room or time for it.
    Displaced,
    /// Something is not what the other end sent: it was changed, repeated, exchanged, or comes from somebody else.
    Forged,
    /// The stream ended before its end.
    CutOff,
    /// Something follows the end.
    Trailing,
    /// A record cannot have this length.
    Length(usize),
    /// The primitives failed, or the system has no randomness to give.
    Failed,
}

impl SealError {
    /// What is said of it, where it is the same always.
    const fn words(&self) -> &'static str {
        match self {
            Self::KeyNeeded => {
                "the other end speaks under a key, and this one has none: give both the same, by --key FILE or CEDE_KEY"
            }
            Self::NoKeyThere => {
                "the other end has no key, and this one has: give both the same, by --key FILE or CEDE_KEY"
            }
            Self::Displaced => "it had shown no key yet when it had to go",
            Self::Forged => "what came is not what the other end sent: it was changed on the way",
            Self::CutOff => "it was cut off before its end",
            Self::Trailing => "something came behind its end",
            Self::Failed => "the handshake cannot be computed",
            Self::OtherKey(_) | Self::Version(_) | Self::NotSealed(_) | Self::Silent | Self::Length(_) => "",
        }
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HINT: &str = "if it is cede, give it the same --key FILE";
        match self {
            Self::OtherKey(ours) => write!(
                f,
                "the other end has another key than this one, whose fingerprint is {ours}: give both the same (`cede key \
                 --check FILE` prints the fingerprint)"
            ),
            Self::Version(theirs) => write!(
                f,
                "the other end speaks version {theirs} of the protocol under a key and this one version {SEALED_VERSION}: install \
                 the same release of cede at both ends"
            ),
            Self::NotSealed(heard) if heard.is_empty() => {
                write!(f, "the other end ended at once, without showing a key; {HINT}")
            }
            Self::NotSealed(heard) => {
                let heard = printable(heard);
                write!(f, "the other end speaks uTP, but not under a key: it began with \"{heard}\"; {HINT}")
            }
            Self::Silent => {
                let seconds = PATIENCE.as_secs();
                write!(f, "the other end has not shown within {seconds} s that it has the key; {HINT}")
            }
            Self::Length(bytes) => {
                write!(f, "a record cannot have {bytes} octets: it was changed on the way")
            }
            same => f.write_str(same.words()),
        }
    }
}

impl std::error::Error for SealError {}

impl From<SealError> for io::Error {
    fn from(error: SealError) -> Self {
        let kind = match error {
            SealError::CutOff => io::ErrorKind::UnexpectedEof,
            _ => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
