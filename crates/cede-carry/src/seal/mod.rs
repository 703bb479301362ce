//! Streams that are encrypted and authenticated by a key which both ends have.
//!
//! # The conversation
//! The one who connects is the initiator of the Noise handshake `NNpsk0_25519_ChaChaPoly_BLAKE2s` (the Noise Protocol
//! Framework, revision 34, sections 5, 7.4 and 9), the other the responder. Numbers are in network order.
//!
//! ```text
//! ->  magic (8 octets), version (2), Noise message 1 (48: an ephemeral key, and the tag of nothing)
//! <-  magic, version, verdict (1 octet), and where that is 0, Noise message 2 (48)
//! ->  a record of nothing: the initiator has understood, and is no recording of an earlier one
//! <-> records, and in each direction a record of nothing as its end
//! record  octets that follow (2), Noise transport message: up to 8192 octets, encrypted, and a tag (16)
//! ```
//! The prologue, which both ends authenticate, is the initiator's magic and version.
//!
//! # Why this pattern
//! Whoever has the key is who is meant, so there are no identities to be shown or hidden, and `NN` has none. `psk0` mixes
//! the key in before anything else: already the tag of message 1 shows who has it, at the cost of some hashes and without
//! a multiplication on the curve, so a stranger learns nothing and costs next to nothing. What follows from it:
//!
//! * *Somebody on the way* can read nothing, change nothing and put nothing in between; what is left is to cut the
//!   connection, or to pretend that it was refused (verdicts are in the clear). An end is a record of its own, so a cut
//!   is never taken for it; numbers of records are implicit, so none can be repeated, left out or exchanged.
//! * *A recording* is of no use: message 1 can be repeated, but what follows takes its ephemeral secret. Therefore the
//!   responder counts nobody as there before the first record, and nothing is sent along with the handshake.
//! * *A key that gets out later* opens no recording, since both ephemeral secrets are gone with their connection. Whoever
//!   has it can from then on pretend to be either end, until it is replaced: one key for each pair of ends bounds that.
//! * *Guessing* is hopeless, with 256 bits; therefore keys are made, and not chosen.
//!
//! ChaCha20-Poly1305 needs no tables and no instructions of its own, so it is fast on the small machines too that many keep
//! their backups on. AES-GCM takes a third of the time where a processor has instructions for it; one cipher for all
//! leaves nothing to agree upon, and nothing to be talked down to.
//!
//! Records are counted by 64 bits, beyond which Noise sends nothing, and a direction is over at the first forged one: it
//! is never necessary to renew keys (RFC 8439 section 4; RFC 9001 section 6.6).
//!
//! Records are short so that on a path of 300 octets per second no record takes as long as [`SILENCE`](crate::SILENCE).

mod handshake;
mod stream;
#[cfg(test)]
mod tests;

pub use handshake::{Agreed, answer, call, is_sealed, refusal};
pub use stream::{MAX_RECORD_BYTES, Sealed, record_bytes};

use crate::greeting::PATIENCE;
use crate::untrusted::printable;
use std::{fmt, io};

/// What a sealed conversation begins with, in each direction.
pub const MAGIC: [u8; 8] = *b"\xceseal\r\n\x1a";
/// The version of the handshake and the records.
pub const VERSION: u16 = 1;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Octets of an authentication tag.
const TAG_BYTES: usize = 16;

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
                "the other end speaks version {theirs} of the protocol under a key and this one version {VERSION}: install \
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
