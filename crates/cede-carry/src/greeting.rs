//! The first octets in each direction: who speaks, and which version of the protocol.
//!
//! Both sides send [`MAGIC`] and their version. This part never changes, so any two releases can say what is wrong. A
//! program that says something else gets a line of text and the end of the stream.

use crate::error::{SealError, WireError};
use crate::framed::{FrameReader, FrameWriter};
use crate::message::{Message, Purpose, VERSION};
pub use crate::opening::{MAGIC, PATIENCE};
use crate::opening::{OPENING_BYTES, greeting};
use crate::seal;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

/// Greets as the one who connects, and says what for. The number is what the other side's welcome says.
///
/// # Errors
/// [`WireError`]; [`WireError::Refused`] where the other side does not want to.
pub async fn greet<R, W>(
    reader: &mut FrameReader<R>,
    writer: &mut FrameWriter<W>,
    purpose: Purpose,
) -> Result<u64, WireError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut opening = greeting().to_vec();
    opening.extend(Message::Hello(purpose).encode());
    writer.raw(&opening).await?;
    timeout(PATIENCE, hear_answer(reader)).await.map_err(|_| WireError::Silent)?
}

async fn hear_answer<R: AsyncRead + Unpin>(reader: &mut FrameReader<R>) -> Result<u64, WireError> {
    hear_greeting(reader).await?;
    loop {
        match reader.next().await? {
            Message::Welcome(number) => return Ok(number),
            Message::Refused(text) => return Err(WireError::Refused(text)),
            Message::Alive => {}
            _ => return Err(WireError::Unexpected),
        }
    }
}

async fn hear_greeting<R: AsyncRead + Unpin>(reader: &mut FrameReader<R>) -> Result<(), WireError> {
    let mut heard = [0; OPENING_BYTES];
    // What the other side says may be shorter than a greeting: its beginning is compared as it comes.
    let mut filled = 0;
    while filled < OPENING_BYTES {
        let n = reader.raw(&mut heard[filled..]).await?;
        filled += n;
        let compared = filled.min(MAGIC.len());
        if n == 0 && filled == 0 {
            return Err(WireError::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
        match seal::is_sealed(&heard[..filled]) {
            Some(true) => return Err(SealError::KeyNeeded.into()),
            None if n > 0 => continue,
            _ => {}
        }
        if n == 0 || heard[..compared] != MAGIC[..compared] {
            return Err(WireError::Stranger(hear_out(reader, heard[..filled].to_vec()).await));
        }
    }
    match u16::from_be_bytes([heard[MAGIC.len()], heard[MAGIC.len() + 1]]) {
        VERSION => Ok(()),
        theirs => Err(WireError::Version { theirs }),
    }
}

/// What a stranger began to say, and a little of how it goes on.
async fn hear_out<R: AsyncRead + Unpin>(reader: &mut FrameReader<R>, mut heard: Vec<u8>) -> Vec<u8> {
    let mut more = [0; 54];
    let n = timeout(Duration::from_millis(200), reader.raw(&mut more)).await.map_or(0, |n| n.unwrap_or(0));
    heard.extend(&more[..n]);
    heard
}

/// Hears the greeting of whoever has connected, and what it wants. A stranger and another version are answered here;
/// the purpose is for the caller to welcome or to refuse.
///
/// # Errors
/// [`WireError`]: the stream is of no further use.
pub async fn be_greeted<R, W>(
    reader: &mut FrameReader<R>,
    writer: &mut FrameWriter<W>,
) -> Result<Purpose, WireError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let heard = timeout(PATIENCE, hear_greeting(reader)).await.unwrap_or(Err(WireError::Silent));
    match heard {
        Ok(()) => writer.raw(&greeting()).await?,
        Err(WireError::Version { theirs }) => {
            writer.raw(&greeting()).await?;
            return Err(WireError::Version { theirs });
        }
        Err(WireError::Seal(error)) => {
            writer.raw(&seal::refusal()).await?;
            return Err(error.into());
        }
        Err(WireError::Stranger(heard)) => {
            let version = env!("CARGO_PKG_VERSION");
            let text = format!(
                "This port speaks the protocol of cede {version} (version {VERSION}), and what came is none of it.\r\n"
            );
            writer.raw(text.as_bytes()).await?;
            return Err(WireError::Stranger(heard));
        }
        Err(error) => return Err(error),
    }
    match timeout(PATIENCE, reader.next()).await.map_err(|_| WireError::Silent)?? {
        Message::Hello(purpose) => Ok(purpose),
        _ => Err(WireError::Unexpected),
    }
}
