//! `cede pipe`: standard input and output over one uTP stream; without a key nothing is added.

use super::args::{PipeArgs, address_or_port};
use super::{broken, key, listen, place, stream_config, target, unreached};
use crate::failure::Failure;
use crate::screen;
use cede_carry::seal::{self, SealError};
use cede_carry::{DEFAULT_PORT, Door, Key, Line, Stop, dial};
use cede_real::{StreamConfig, UtpSocket};
use serde_json::json;
use std::io::{self, IsTerminal, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Octets of one read.
const PIECE_BYTES: usize = 64 << 10;
/// How long an end that cannot be spoken to may take to hear why.
const LAST_WORD: Duration = Duration::from_secs(2);
/// Pieces between two threads.
const PIECES: usize = 4;

/// Connects or waits, and copies both ways.
pub fn pipe(args: &PipeArgs) -> Result<(), Failure> {
    let (_, config) = stream_config(&args.controller)?;
    super::run(|stop| carry_out(args, config, stop))
}

async fn carry_out(args: &PipeArgs, config: StreamConfig, mut stop: Stop) -> Result<(), Failure> {
    let key = key::load(&args.key)?;
    let is_protected = key.is_some();
    let opened = tokio::select! {
        opened = open(args, config, key) => opened,
        () = stop.asked() => return Err(Failure::Interrupted("nobody was connected".to_owned())),
    };
    let (socket, line) = opened?;
    let pipe = Pipe { line };
    let outcome = tokio::select! {
        outcome = pipe.both_ways(args.no_stdin) => outcome,
        () = stop.asked() => Err(Failure::Interrupted("the pipe was cut".to_owned())),
    };
    match &outcome {
        Ok(()) => pipe.line.ended().await,
        Err(_) => pipe.line.abort(),
    }
    if args.json {
        let document = json!({
            "peer": pipe.line.peer_addr().to_string(),
            "bytes_sent": pipe.line.acked_bytes(),
            "bytes_received": pipe.line.received_bytes(),
            "retransmits": pipe.line.statistics().retransmissions,
            "protected": is_protected,
        });
        screen::mention(&format!("{document}\n"));
    }
    drop(socket);
    // A reset is still to leave.
    tokio::task::yield_now().await;
    outcome
}

async fn open(args: &PipeArgs, config: StreamConfig, key: Option<Key>) -> Result<(UtpSocket, Line), Failure> {
    if !args.listen {
        let target = target(&args.address, DEFAULT_PORT)?;
        let dialled = dial(&target, &config).await;
        let (socket, stream) = dialled.map_err(|error| unreached(&error, "cede pipe -l PORT"))?;
        let line = Line::call(stream, key.as_ref()).await.map_err(|error| broken(&error))?;
        return Ok((socket, line));
    }
    let (bind, port) = listening(&args.address)?;
    let socket = listen(bind, port, config).await?;
    screen::mention(&format!("waiting at {}{}\n", place(&socket), key::under(key.as_ref())));
    let line = first_admitted(&socket, Arc::new(Door::new(key))).await?;
    Ok((socket, line))
}

/// Waits for somebody, or for somebody with the key; those who stand about without it take nobody's place.
async fn first_admitted(socket: &UtpSocket, door: Arc<Door>) -> Result<Line, Failure> {
    let mut guests = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.accept() => {
                let stream = accepted.map_err(|error| Failure::Failed(format!("the socket is gone: {error}")))?;
                let door = Arc::clone(&door);
                guests.spawn(async move { (stream.peer_addr(), door.admit(stream).await) });
            }
            Some(guest) = guests.join_next(), if !guests.is_empty() => match guest {
                Ok((_, Ok(line))) => return Ok(line),
                Ok((peer, Err(error))) => screen::mention(&format!("{peer} was not let in: {error}\n")),
                Err(_) => {}
            }
        }
    }
}

fn listening(text: &str) -> Result<(Option<IpAddr>, u16), Failure> {
    address_or_port(text)
        .map_err(|_| Failure::Usage(format!("-l {text}: write PORT or ADDRESS:PORT, such as [::1]:7000")))
}

struct Pipe {
    line: Line,
}

impl Pipe {
    /// Copies until both directions have ended.
    async fn both_ways(&self, no_stdin: bool) -> Result<(), Failure> {
        let outward = self.outward(no_stdin);
        let inward = self.inward();
        tokio::pin!(outward, inward);
        let is_typed = !no_stdin && io::stdin().is_terminal();
        tokio::select! {
            sent = &mut outward => { sent?; inward.await }
            received = &mut inward => {
                received?;
                // Nobody waits at a terminal for a line that nobody answers.
                if is_typed { self.end().await } else { outward.await }
            }
        }
    }

    /// From standard input.
    async fn outward(&self, no_stdin: bool) -> Result<(), Failure> {
        if no_stdin {
            return self.end().await;
        }
        let (pieces_in, mut pieces) = mpsc::channel::<io::Result<Vec<u8>>>(PIECES);
        thread::spawn(move || read_all(&pieces_in));
        let mut line = self.line.clone();
        while let Some(piece) = pieces.recv().await {
            let piece =
                piece.map_err(|error| Failure::Failed(format!("cannot read standard input: {error}")))?;
            line.write_all(&piece).await.map_err(|error| lost(&error))?;
            line.flush().await.map_err(|error| lost(&error))?;
        }
        self.end().await
    }

    async fn end(&self) -> Result<(), Failure> {
        self.line.clone().shutdown().await.map_err(|error| lost(&error))
    }

    /// Tells an end that speaks under a key that this one has none.
    async fn turn_away(&self) -> Failure {
        let mut line = self.line.clone();
        let tell = async {
            let _ = line.write_all(&seal::refusal()).await;
            let _ = line.shutdown().await;
            self.line.delivered().await;
        };
        let _ = tokio::time::timeout(LAST_WORD, tell).await;
        Failure::Failed(SealError::KeyNeeded.to_string())
    }

    /// To standard output.
    async fn inward(&self) -> Result<(), Failure> {
        let (pieces, mut pieces_out) = mpsc::channel::<Vec<u8>>(PIECES);
        let writer = tokio::task::spawn_blocking(move || {
            let mut stdout = io::stdout().lock();
            while let Some(piece) = pieces_out.blocking_recv() {
                stdout.write_all(&piece).and_then(|()| stdout.flush())?;
            }
            Ok::<(), io::Error>(())
        });
        let mut line = self.line.clone();
        let mut buffer = vec![0; PIECE_BYTES];
        let mut first = First::new(line.is_sealed());
        let outcome = loop {
            let n = match line.read(&mut buffer).await {
                Ok(n) => n,
                Err(error) => break Err(lost(&error)),
            };
            let Some(piece) = first.piece(&buffer[..n]) else { break Err(self.turn_away().await) };
            // Refused where the thread has ended: it says why.
            if !piece.is_empty() && pieces.send(piece).await.is_err() || n == 0 {
                break Ok(());
            }
        };
        drop(pieces);
        let written = writer.await.map_err(|error| Failure::Failed(error.to_string()))?;
        written.map_err(|error| Failure::Failed(format!("cannot write to standard output: {error}")))?;
        outcome
    }
}

/// The first octets that come in the clear, until it is known that they are not those of an end that has a key.
struct First {
    held: Vec<u8>,
    is_known: bool,
}

impl First {
    const fn new(is_known: bool) -> Self {
        Self { held: Vec::new(), is_known }
    }

    /// What may be written by now, after these octets or, where there are none, the end; `None` where they begin a
    /// conversation under a key.
    fn piece(&mut self, octets: &[u8]) -> Option<Vec<u8>> {
        if self.is_known {
            return Some(octets.to_vec());
        }
        self.held.extend(octets);
        match seal::is_sealed(&self.held) {
            Some(true) => None,
            None if !octets.is_empty() => Some(Vec::new()),
            _ => {
                self.is_known = true;
                Some(std::mem::take(&mut self.held))
            }
        }
    }
}

fn read_all(pieces: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut stdin = io::stdin().lock();
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let read = stdin.read(&mut piece);
        let is_retried = matches!(&read, Err(error) if error.kind() == io::ErrorKind::Interrupted);
        let sent = match read {
            Ok(0) => return,
            Ok(n) => {
                piece.truncate(n);
                pieces.blocking_send(Ok(piece))
            }
            Err(_) if is_retried => continue,
            Err(error) => pieces.blocking_send(Err(error)),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn lost(error: &io::Error) -> Failure {
    Failure::Failed(format!("the connection broke: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_the_clear_is_held_back_only_while_it_may_begin_otherwise() {
        let mut first = First::new(false);
        assert_eq!(first.piece(&seal::MAGIC[..3]), Some(vec![]));
        assert_eq!(first.piece(b"x"), Some([&seal::MAGIC[..3], b"x"].concat()));
        assert_eq!(first.piece(&seal::MAGIC), Some(seal::MAGIC.to_vec()));
        let mut short = First::new(false);
        assert_eq!(short.piece(&seal::MAGIC[..7]), Some(vec![]));
        assert_eq!(short.piece(&[]), Some(seal::MAGIC[..7].to_vec()), "the end is no beginning");
        let mut sealed = First::new(false);
        assert_eq!(sealed.piece(&seal::MAGIC[..7]), Some(vec![]));
        assert_eq!(sealed.piece(&seal::MAGIC[7..]), None);
        assert_eq!(First::new(true).piece(&seal::MAGIC), Some(seal::MAGIC.to_vec()));
    }

    #[test]
    fn a_port_alone_is_one_of_every_address() {
        assert_eq!(listening("7000").unwrap(), (None, 7000));
        assert_eq!(listening("127.0.0.1:7").unwrap(), (Some(IpAddr::from([127, 0, 0, 1])), 7));
        assert!(matches!(listening("everywhere"), Err(Failure::Usage(_))));
    }
}
