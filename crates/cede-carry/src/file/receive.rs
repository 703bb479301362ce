//! The receiver's side of a transfer.

use super::part::{Place, Sink, Written};
use super::send::alive_during;
use super::{Attendant, Destination, Moved, Offer, Phase, Piece, Ticker, TransferError};
use crate::error::WireError;
use crate::link::Link;
use crate::message::Message;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

/// Receives a file over a link on which both have greeted. `open` is asked for a place once it is known what is offered.
///
/// # Errors
/// [`TransferError`]; the sender has been told, as far as it still listens.
pub async fn receive(
    link: &mut Link,
    to: &Destination,
    most_bytes: Option<u64>,
    attendant: &mut Attendant<'_>,
) -> Result<Moved, TransferError> {
    link.reader.listen_anew();
    let offer = offered(link, attendant).await?;
    receive_offered(link, &offer, to, most_bytes, attendant).await
}

/// Waits for what is offered.
pub(crate) async fn offered(link: &mut Link, attendant: &mut Attendant<'_>) -> Result<Offer, TransferError> {
    let mut receiving = Receiving { link, ticker: Ticker::new(None), attendant };
    match receiving.hear().await? {
        Message::Offer(offer) => Ok(offer),
        _ => Err(WireError::Unexpected.into()),
    }
}

/// As [`receive`], once it is known what is offered.
pub(crate) async fn receive_offered(
    link: &mut Link,
    offer: &Offer,
    to: &Destination,
    most_bytes: Option<u64>,
    attendant: &mut Attendant<'_>,
) -> Result<Moved, TransferError> {
    let ticker = Ticker::new(offer.bytes);
    let mut receiving = Receiving { link, ticker, attendant };
    let outcome = match to.open(offer, most_bytes) {
        Ok(place) => receiving.go(offer, place).await,
        Err(text) => Err(TransferError::Destination(text)),
    };
    let why = match &outcome {
        Err(TransferError::Destination(text)) => to.without_folder(text),
        Err(TransferError::Stopped) => "the receiver was stopped".to_owned(),
        _ => return outcome,
    };
    let _ = link.writer.send(&Message::Failed(why)).await;
    outcome
}

/// Ends the writing, and says why again. A part is kept, and its lock given back, before anything is said of it; a pipe that nobody
/// reads would be waited for without end.
async fn leave(sink: Sink, why: TransferError) -> TransferError {
    drop(sink.pieces);
    if sink.is_kept {
        let _ = sink.outcome.await;
    }
    why
}

struct Receiving<'a, 'b> {
    link: &'a mut Link,
    ticker: Ticker,
    attendant: &'a mut Attendant<'b>,
}

impl Receiving<'_, '_> {
    async fn go(&mut self, offer: &Offer, place: Place) -> Result<Moved, TransferError> {
        let name =
            place.target().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
        let (place, offset) = self.agree(offer, place).await?;
        self.ticker.progress.resumed = offset;
        self.ticker.progress.done = offset;
        self.ticker.progress.phase = Phase::Moving;
        let sink = place.sink().map_err(TransferError::Destination)?;
        let written = self.take_all(sink).await?;
        self.link.writer.send(&Message::Stored).await?;
        Ok(Moved {
            name: name.unwrap_or_else(|| super::safe_name(&offer.name)),
            path: written.path,
            bytes: written.bytes,
            resumed: offset,
            digest: written.digest,
        })
    }

    /// Says what is there already, and hears where the sender begins.
    async fn agree(&mut self, offer: &Offer, mut place: Place) -> Result<(Place, u64), TransferError> {
        let present = match offer.bytes {
            Some(_) => place.present_bytes().map_err(TransferError::Destination)?,
            None => 0,
        };
        self.link.writer.send(&Message::Have(present)).await?;
        if present > 0 {
            let read = spawn_blocking(move || {
                let digest = place.digest_of_first(present);
                (place, digest)
            });
            let (returned, digest) =
                alive_during(&mut self.link.writer, read).await?.map_err(std::io::Error::other)?;
            place = returned;
            let digest = digest.map_err(TransferError::Destination)?;
            self.link.writer.send(&Message::Digest(digest)).await?;
        }
        self.link.reader.listen_anew();
        let offset = match self.hear().await? {
            Message::Begin(offset) => offset,
            _ => return Err(WireError::Unexpected.into()),
        };
        place.begin(offset).map_err(TransferError::Destination)?;
        Ok((place, offset))
    }

    /// Hands everything on to the thread that writes.
    async fn take_all(&mut self, mut sink: Sink) -> Result<Written, TransferError> {
        loop {
            let piece = match self.hear().await {
                Ok(message) => self.piece(&message, &sink),
                Err(error) => Err(error),
            };
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => return Err(leave(sink, error).await),
            };
            let is_last = matches!(piece, Piece::End { .. });
            // Refused where the thread has ended: why is its outcome.
            let is_refused = tokio::select! {
                biased;
                sent = sink.pieces.send(piece) => sent.is_err(),
                () = self.attendant.stop.asked() => return Err(leave(sink, TransferError::Stopped).await),
            };
            if is_last || is_refused {
                self.ticker.progress.phase = Phase::Settling;
                let outcome = tokio::select! {
                    outcome = alive_during(&mut self.link.writer, &mut sink.outcome) => outcome?,
                    () = self.attendant.stop.asked(), if !sink.is_kept => return Err(TransferError::Stopped),
                };
                let gone = |_| TransferError::Destination("the writing thread is gone".to_owned());
                return outcome.map_err(gone)?.map_err(TransferError::Destination);
            }
        }
    }

    fn piece(&mut self, message: &Message, sink: &Sink) -> Result<Piece, TransferError> {
        let done = &mut self.ticker.progress.done;
        match *message {
            Message::Data => {
                let octets = self.link.reader.swap_data(sink.spent.try_recv().unwrap_or_default());
                *done += octets.len() as u64;
                Ok(Piece::Data(octets))
            }
            Message::Hole(bytes) => {
                *done += bytes;
                Ok(Piece::Hole(bytes))
            }
            Message::End { bytes, digest } => Ok(Piece::End { bytes, digest }),
            _ => Err(WireError::Unexpected.into()),
        }
    }

    /// The next message that says something.
    async fn hear(&mut self) -> Result<Message, TransferError> {
        loop {
            if Instant::now() >= self.ticker.next {
                self.tell();
            }
            tokio::select! {
                biased;
                () = self.attendant.stop.asked() => return Err(TransferError::Stopped),
                heard = self.link.reader.next_in_time() => match heard? {
                    Message::Alive => {}
                    Message::Failed(text) => return Err(WireError::Failed(text).into()),
                    Message::Refused(text) => return Err(WireError::Refused(text).into()),
                    message => return Ok(message),
                },
                () = sleep_until(self.ticker.next) => self.tell(),
            }
        }
    }

    fn tell(&mut self) {
        let progress = &mut self.ticker.progress;
        progress.stream = self.link.line.snapshot();
        progress.retransmissions = self.link.line.statistics().retransmissions;
        progress.silent = self.link.reader.heard().elapsed();
        self.ticker.tell(self.attendant);
    }
}
