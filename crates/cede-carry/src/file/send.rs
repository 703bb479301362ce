//! The sender's side of a transfer.

use super::{Attendant, Moved, Phase, Piece, Source, Ticker, TransferError};
use crate::dial::is_refused;
use crate::error::WireError;
use crate::framed::FrameWriter;
use crate::line::Line;
use crate::link::Link;
use crate::message::Message;
use crate::opening::SILENCE;
use cede_utp::Snapshot;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// After so long a silence, and as often while it lasts, the receiver's host is asked whether anybody listens there.
const ASK_EVERY: Duration = Duration::from_secs(2);

type Reader = crate::framed::FrameReader<Line>;
type Writer = FrameWriter<Line>;

/// Sends a file over a link on which both have greeted.
///
/// # Errors
/// [`TransferError`]; the receiver has been told, as far as it still listens.
pub async fn send(
    link: &mut Link,
    source: Source,
    attendant: &mut Attendant<'_>,
) -> Result<Moved, TransferError> {
    let ticker = Ticker::new(source.offer().bytes);
    let heard = (0, Instant::now());
    let (label, name) = source.names();
    let mut sending = Sending { reader: &mut link.reader, line: &link.line, ticker, heard, attendant };
    let outcome = sending.go(&mut link.writer, source).await;
    let why = match &outcome {
        // Where on this machine it is, is nobody else's business.
        Err(TransferError::Source(text)) => text.replace(&label, &name),
        Err(TransferError::Stopped) => "the sender was stopped".to_owned(),
        _ => return outcome,
    };
    // What is half-way through being written cannot be cut short, but the stream's end says enough then.
    let _ = link.writer.send(&Message::Failed(why)).await;
    outcome
}

struct Sending<'a, 'b> {
    reader: &'a mut Reader,
    line: &'a Line,
    ticker: Ticker,
    /// Packets heard, and since when no more.
    heard: (u64, Instant),
    attendant: &'a mut Attendant<'b>,
}

impl Sending<'_, '_> {
    async fn go(&mut self, writer: &mut Writer, source: Source) -> Result<Moved, TransferError> {
        let offer = source.offer().clone();
        writer.send(&Message::Offer(offer.clone())).await?;
        let present = match self.hear().await? {
            Message::Have(bytes) => bytes,
            _ => return Err(WireError::Unexpected.into()),
        };
        let (source, offset) = self.compare(writer, source, present).await?;
        writer.send(&Message::Begin(offset)).await?;
        self.ticker.progress.resumed = offset;
        self.ticker.progress.phase = Phase::Moving;
        let (bytes, digest) = self.pour(writer, source, offset).await?;
        self.ticker.progress.phase = Phase::Settling;
        self.reader.listen_anew();
        match self.hear().await? {
            Message::Stored => Ok(Moved { name: offer.name, path: None, bytes, resumed: offset, digest }),
            _ => Err(WireError::Unexpected.into()),
        }
    }

    /// Where to begin: behind what the receiver has, if that is what we have.
    async fn compare(
        &mut self,
        writer: &mut Writer,
        mut source: Source,
        present: u64,
    ) -> Result<(Source, u64), TransferError> {
        if present == 0 {
            return Ok((source, 0));
        }
        let most = source.offer().bytes.unwrap_or(0);
        let read = spawn_blocking(move || {
            let ours = source.digest_of_first(present.min(most));
            (source, ours)
        });
        let (mut source, ours) = alive_during(writer, read).await?.map_err(std::io::Error::other)?;
        let ours = ours.map_err(TransferError::Source)?;
        let theirs = match self.hear().await? {
            Message::Digest(theirs) => theirs,
            _ => return Err(WireError::Unexpected.into()),
        };
        if present <= most && ours == theirs {
            return Ok((source, present));
        }
        source.rewind().map_err(TransferError::Source)?;
        Ok((source, 0))
    }

    /// Sends everything from here on.
    async fn pour(
        &mut self,
        writer: &mut Writer,
        source: Source,
        offset: u64,
    ) -> Result<(u64, [u8; super::DIGEST_BYTES]), TransferError> {
        let mut pump = source.pump().map_err(TransferError::Source)?;
        let mut written = offset;
        loop {
            let Ok(piece) = timeout_at(writer.alive_due(), pump.pieces.recv()).await else {
                self.during(written, writer.send(&Message::Alive)).await?;
                continue;
            };
            match piece {
                Some(Piece::Data(mut frame)) => {
                    self.during(written, writer.send_data(&mut frame)).await?;
                    written += frame.len() as u64 - crate::message::HEAD_BYTES as u64;
                    let _ = pump.spent.send(frame);
                }
                Some(Piece::Hole(bytes)) => {
                    self.during(written, writer.send(&Message::Hole(bytes))).await?;
                    written += bytes;
                }
                Some(Piece::End { bytes, digest }) => {
                    self.during(written, writer.send(&Message::End { bytes, digest })).await?;
                    return Ok((bytes, digest));
                }
                Some(Piece::Failed(text)) => return Err(TransferError::Source(text)),
                None => return Err(TransferError::Source("the reading thread is gone".to_owned())),
            }
        }
    }

    /// Writes while the receiver may say that it gives up, the user that it is enough, and progress is told.
    async fn during(
        &mut self,
        written: u64,
        write: impl Future<Output = std::io::Result<()>>,
    ) -> Result<(), TransferError> {
        let gone = gone(self.line);
        tokio::pin!(write, gone);
        loop {
            tokio::select! {
                biased;
                () = self.attendant.stop.asked() => return Err(TransferError::Stopped),
                () = sleep_until(self.ticker.next) => self.tell(written),
                done = &mut write => match done {
                    Ok(()) => return Ok(()),
                    // Why it broke may have been said before it did.
                    Err(error) => return Err(self.last_word().await.unwrap_or_else(|| error.into())),
                },
                heard = self.reader.next() => match heard? {
                    Message::Alive => {}
                    Message::Failed(text) => return Err(WireError::Failed(text).into()),
                    _ => return Err(WireError::Unexpected.into()),
                },
                error = &mut gone => return Err(error.into()),
            }
        }
    }

    async fn last_word(&mut self) -> Option<TransferError> {
        match self.reader.next_in_time().await {
            Ok(Message::Failed(text)) => Some(WireError::Failed(text).into()),
            _ => None,
        }
    }

    /// The next message that says something.
    async fn hear(&mut self) -> Result<Message, TransferError> {
        loop {
            tokio::select! {
                () = sleep_until(self.ticker.next) => self.tell(self.ticker.progress.done),
                () = self.attendant.stop.asked() => return Err(TransferError::Stopped),
                heard = self.reader.next_in_time() => match heard? {
                    Message::Alive => {}
                    Message::Failed(text) => return Err(WireError::Failed(text).into()),
                    Message::Refused(text) => return Err(WireError::Refused(text).into()),
                    message => return Ok(message),
                },
            }
        }
    }

    fn tell(&mut self, written: u64) {
        let progress = &mut self.ticker.progress;
        progress.stream = self.line.snapshot();
        progress.retransmissions = self.line.statistics().retransmissions;
        let waits = progress.stream.as_ref().map_or(0, Snapshot::undelivered_bytes);
        progress.done = written.saturating_sub(waits).max(progress.resumed);
        self.heard = heard_since(self.line, self.heard);
        progress.silent = self.heard.1.elapsed();
        self.ticker.tell(self.attendant);
    }
}

/// Packets that have been heard, and since when no more, although some are awaited: from a receiver that has room.
fn heard_since(line: &Line, before: (u64, Instant)) -> (u64, Instant) {
    let packets = line.statistics().packets_received;
    let awaits = |stream: &Snapshot| stream.unacked_bytes > 0 && stream.peer_window_bytes > 0;
    let is_awaited = line.snapshot().as_ref().is_some_and(awaits);
    if is_awaited && packets == before.0 { before } else { (packets, Instant::now()) }
}

/// Ends where the receiver is gone: nothing is heard for as long as it would wait itself, or its host says, asked after a little
/// silence, that nobody listens there. uTP alone would take more than a minute to give up.
async fn gone(line: &Line) -> WireError {
    let mut heard = (0, Instant::now());
    loop {
        sleep(ASK_EVERY).await;
        heard = heard_since(line, heard);
        let silent = heard.1.elapsed();
        if silent >= SILENCE {
            return WireError::Silent;
        }
        let asks = silent >= ASK_EVERY / 2;
        if asks && let Ok(Ok(true)) = timeout(ASK_EVERY, is_refused(line.peer_addr())).await {
            let nobody = "nobody listens there any more";
            return WireError::Lost(io::Error::new(io::ErrorKind::ConnectionRefused, nobody));
        }
    }
}

/// Says every second that this side is alive, until some work is done.
pub(super) async fn alive_during<T>(
    writer: &mut Writer,
    work: impl Future<Output = T>,
) -> std::io::Result<T> {
    tokio::pin!(work);
    loop {
        match timeout_at(writer.alive_due(), &mut work).await {
            Ok(done) => return Ok(done),
            Err(_) => writer.send(&Message::Alive).await?,
        }
    }
}
