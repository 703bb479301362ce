//! From a stream to one that is sealed, or to the words that say why not.

use super::stream::{EMPTY_RECORD_BYTES, HEAD_BYTES, Sealed, record_bytes};
use super::{MAGIC, PATTERN, TAG_BYTES, VERSION};
use crate::error::{SealError, WireError};
use crate::key::Key;
use crate::message::Message;
use crate::opening::{self, OPENING_BYTES, PATIENCE};
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, TransportState};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

/// An ephemeral key of 32 octets, and a tag.
const NOISE_BYTES: usize = 32 + TAG_BYTES;

/// What a responder makes of an opening.
mod verdict {
    pub const GO_ON: u8 = 0;
    pub const NO_KEY_HERE: u8 = 1;
    pub const OTHER_KEY: u8 = 2;
    pub const OTHER_VERSION: u8 = 3;
    pub const KEY_NEEDED: u8 = 4;
}

fn answering(verdict: u8) -> Vec<u8> {
    [&opening::sealed()[..], &[verdict]].concat()
}

/// What an end without a key answers to one that has begun to speak under a key.
#[must_use]
pub fn refusal() -> Vec<u8> {
    answering(verdict::NO_KEY_HERE)
}

/// Whether these first octets are of a conversation under a key; `None` while they are too few to tell.
#[must_use]
pub fn is_sealed(heard: &[u8]) -> Option<bool> {
    let compared = heard.len().min(MAGIC.len());
    if heard[..compared] == MAGIC[..compared] {
        (compared == MAGIC.len()).then_some(true)
    } else {
        Some(false)
    }
}

/// The handshake's beginning, on either side.
pub(super) fn builder<'a>(key: &'a Key, prologue: &'a [u8]) -> Result<Builder<'a>, snow::Error> {
    let pattern: NoiseParams = PATTERN.parse()?;
    Builder::new(pattern).psk(0, key.octets())?.prologue(prologue)
}

/// Primitives fail only where the system gives no randomness.
fn failed(_: snow::Error) -> WireError {
    SealError::Failed.into()
}

fn write_noise(noise: &mut HandshakeState) -> Result<[u8; NOISE_BYTES], WireError> {
    let mut message = [0; NOISE_BYTES];
    match noise.write_message(&[], &mut message) {
        Ok(NOISE_BYTES) => Ok(message),
        Ok(_) => Err(SealError::Failed.into()),
        Err(error) => Err(failed(error)),
    }
}

/// Seals a stream as the one who has connected.
///
/// # Errors
/// [`WireError::Seal`] where the other end has no key or another, is no `cede`, or does not answer in time; and those of
/// the stream.
pub async fn call<S: AsyncRead + AsyncWrite + Unpin>(stream: S, key: &Key) -> Result<Sealed<S>, WireError> {
    let prologue = opening::sealed();
    let noise = builder(key, &prologue).and_then(Builder::build_initiator).map_err(failed)?;
    call_with(stream, noise, key).await
}

pub(super) async fn call_with<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    mut noise: HandshakeState,
    key: &Key,
) -> Result<Sealed<S>, WireError> {
    let message = write_noise(&mut noise)?;
    stream.write_all(&[&opening::sealed()[..], &message].concat()).await?;
    let heard = timeout(PATIENCE, hear_verdict(&mut stream, key));
    let message = heard.await.map_err(|_| WireError::from(SealError::Silent))??;
    noise.read_message(&message, &mut []).map_err(|_| SealError::Forged)?;
    let written = OPENING_BYTES + NOISE_BYTES;
    let mut sealed = Sealed::new(stream, noise.into_transport_mode().map_err(failed)?, written);
    sealed.confirm().await?;
    Ok(sealed)
}

/// The responder's message, where it goes on.
async fn hear_verdict<R: AsyncRead + Unpin>(
    stream: &mut R,
    key: &Key,
) -> Result<[u8; NOISE_BYTES], WireError> {
    let (opening, filled) = hear_opening(stream).await?;
    match is_sealed(&opening[..filled]) {
        Some(true) if filled == OPENING_BYTES => {}
        _ => return Err(SealError::NotSealed(hear_out(stream, &opening[..filled]).await).into()),
    }
    let theirs = u16::from_be_bytes([opening[OPENING_BYTES - 2], opening[OPENING_BYTES - 1]]);
    let error = match stream.read_u8().await? {
        verdict::GO_ON if theirs == VERSION => {
            let mut message = [0; NOISE_BYTES];
            stream.read_exact(&mut message).await?;
            return Ok(message);
        }
        verdict::NO_KEY_HERE => SealError::NoKeyThere,
        verdict::OTHER_KEY => SealError::OtherKey(key.fingerprint()),
        verdict::OTHER_VERSION => SealError::Version(theirs),
        _ => SealError::Forged,
    };
    Err(error.into())
}

/// The first octets, until they are all there, are none of ours, or end.
async fn hear_opening<R: AsyncRead + Unpin>(stream: &mut R) -> io::Result<([u8; OPENING_BYTES], usize)> {
    let (mut heard, mut filled) = ([0; OPENING_BYTES], 0);
    while filled < OPENING_BYTES {
        let n = stream.read(&mut heard[filled..]).await?;
        filled += n;
        if n == 0 || !begins_with_either(&heard[..filled]) {
            break;
        }
    }
    Ok((heard, filled))
}

/// Whether it can be the beginning of a conversation of `cede`, under a key or not.
fn begins_with_either(heard: &[u8]) -> bool {
    let compared = heard.len().min(MAGIC.len());
    [MAGIC, opening::MAGIC].iter().any(|magic| heard[..compared] == magic[..compared])
}

/// What a stranger began to say, and a little of how it goes on.
async fn hear_out<R: AsyncRead + Unpin>(stream: &mut R, heard: &[u8]) -> Vec<u8> {
    let mut more = [0; 54];
    let read = timeout(Duration::from_millis(200), stream.read(&mut more)).await;
    let n = read.map_or(0, |n| n.unwrap_or(0));
    [heard, &more[..n]].concat()
}

/// What a responder has agreed upon with whoever has shown the key.
#[derive(Debug)]
pub struct Agreed(TransportState);

impl Agreed {
    /// The stream, sealed; the one on which it was agreed.
    pub fn seal<S>(self, stream: S) -> Sealed<S> {
        Sealed::new(stream, self.0, ANSWER_BYTES)
    }
}

/// Hears who has opened a stream, until it has shown the key. Who has none, or another, is told before this fails, and the
/// stream has ended then. All that is kept of a stranger meanwhile is what fits into its two messages.
///
/// # Errors
/// As [`call`].
pub async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    key: &Key,
) -> Result<Agreed, WireError> {
    // For all of it together: who sends an octet now and then is gone as early as who sends none.
    let until = Instant::now() + PATIENCE;
    let called = timeout_at(until, be_called(stream, key)).await;
    let error = match called.unwrap_or_else(|_| Err(SealError::Silent.into())) {
        Ok(noise) => {
            let noise = noise.into_transport_mode().map_err(failed)?;
            let confirmed = timeout_at(until, confirmed(stream, noise)).await;
            return confirmed.unwrap_or_else(|_| Err(SealError::Silent.into()));
        }
        Err(error) => error,
    };
    // Who neither reads nor goes away is not waited for.
    let _ = timeout(Duration::from_secs(1), send_away(stream, &error)).await;
    Err(error)
}

/// Waits until the initiator has shown that it is no recording. Nothing of it is read ahead.
pub(super) async fn confirmed<R>(stream: &mut R, mut noise: TransportState) -> Result<Agreed, WireError>
where
    R: AsyncRead + Unpin,
{
    let mut record = [0; EMPTY_RECORD_BYTES];
    stream.read_exact(&mut record).await?;
    let is_empty = record_bytes([record[0], record[1]])? == EMPTY_RECORD_BYTES;
    match noise.read_message(&record[HEAD_BYTES..], &mut []) {
        Ok(0) if is_empty => Ok(Agreed(noise)),
        _ => Err(SealError::Forged.into()),
    }
}

const ANSWER_BYTES: usize = OPENING_BYTES + 1 + NOISE_BYTES;

async fn be_called<S>(stream: &mut S, key: &Key) -> Result<HandshakeState, WireError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let prologue = opening::sealed();
    let noise = builder(key, &prologue).and_then(Builder::build_responder).map_err(failed)?;
    be_called_with(stream, noise, key).await
}

pub(super) async fn be_called_with<S>(
    stream: &mut S,
    mut noise: HandshakeState,
    key: &Key,
) -> Result<HandshakeState, WireError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (heard, filled) = hear_opening(stream).await?;
    let heard = &heard[..filled];
    if !matches!((is_sealed(heard), filled), (Some(true), OPENING_BYTES)) {
        let is_clear = heard.starts_with(&opening::MAGIC);
        let error = if is_clear { SealError::NoKeyThere } else { SealError::NotSealed(heard.to_vec()) };
        return Err(error.into());
    }
    if *heard != opening::sealed() {
        return Err(SealError::Version(u16::from_be_bytes([heard[8], heard[9]])).into());
    }
    let mut message = [0; NOISE_BYTES];
    stream.read_exact(&mut message).await?;
    noise.read_message(&message, &mut []).map_err(|_| SealError::OtherKey(key.fingerprint()))?;
    let message = write_noise(&mut noise)?;
    stream.write_all(&[&answering(verdict::GO_ON)[..], &message].concat()).await?;
    Ok(noise)
}

/// The last word to who cannot be spoken to.
async fn send_away<S: AsyncWrite + Unpin>(stream: &mut S, error: &WireError) -> io::Result<()> {
    const NEEDS_KEY: &str =
        "this end speaks under a key, and the other has none: give both the same, by --key FILE or CEDE_KEY";
    let words = match error {
        WireError::Seal(SealError::Version(_)) => answering(verdict::OTHER_VERSION),
        WireError::Seal(SealError::OtherKey(_)) => answering(verdict::OTHER_KEY),
        WireError::Seal(SealError::NoKeyThere) => {
            [&opening::greeting()[..], &Message::Refused(NEEDS_KEY.to_owned()).encode()].concat()
        }
        // A `cede pipe` without a key knows the first octets, and whoever else it is can read the rest.
        WireError::Seal(SealError::NotSealed(_) | SealError::Silent) => [
            &answering(verdict::KEY_NEEDED)[..],
            b"\r\nThis port speaks the protocol of cede under a key.\r\n",
        ]
        .concat(),
        _ => return Ok(()),
    };
    stream.write_all(&words).await?;
    stream.shutdown().await
}
