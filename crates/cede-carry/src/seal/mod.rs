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

pub use crate::error::SealError;
pub use crate::opening::{SEALED_MAGIC as MAGIC, SEALED_VERSION as VERSION};
pub use handshake::{Agreed, answer, call, is_sealed, refusal};
pub use stream::{MAX_RECORD_BYTES, Sealed, record_bytes};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Octets of an authentication tag.
const TAG_BYTES: usize = 16;
