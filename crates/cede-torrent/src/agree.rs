//! Agreeing with a peer on the encryption of a stream: what is common to who calls and who is called.

use crate::link::{Link, Stream};
use cede_bt::mse::{Handshake, Outcome, PADDING_MAX, Secrets};
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// A handshake of the encryption takes a few round trips; a peer has as long to say which torrent it means.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Whether connections are enciphered (MSE).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encryption {
    /// Never.
    Off,
    /// If the peer begins so and offers nothing else, and with peers that have hung up on the clear.
    #[default]
    Allow,
    /// Tried first; in the clear where that fails.
    Prefer,
    /// Always.
    Require,
}

/// What the handshake needs that is not to be guessed.
pub(crate) fn secrets() -> io::Result<Secrets> {
    let mut private = [0; 20];
    getrandom::fill(&mut private).map_err(io::Error::other)?;
    let len = getrandom::u32().map_err(io::Error::other)? as usize % (PADDING_MAX + 1);
    let mut padding = vec![0; len];
    getrandom::fill(&mut padding).map_err(io::Error::other)?;
    Ok(Secrets { private, padding })
}

/// Carries a handshake of the encryption to its end.
pub(crate) async fn converse(stream: Stream, mut handshake: Handshake) -> io::Result<(Stream, Outcome)> {
    let talk = async {
        let mut link = Link::plain(stream, Vec::new());
        let mut buffer = [0; 2048];
        loop {
            link.send(&mut handshake.take_output()).await?;
            let n = link.receive(&mut buffer).await?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(outcome) = handshake.receive(&buffer[..n]).map_err(io::Error::other)? {
                link.send(&mut handshake.take_output()).await?;
                return Ok((link.stream, outcome));
            }
        }
    };
    timeout(PATIENCE, talk).await?
}
