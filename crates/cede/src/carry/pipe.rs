//! `cede pipe`: standard input and output over one uTP stream, without anything added.

use super::args::PipeArgs;
use super::{listen, place, stream_config, target, unreached};
use crate::failure::Failure;
use crate::screen;
use cede_carry::{DEFAULT_PORT, Line, Stop, dial};
use cede_real::{StreamConfig, UtpSocket, UtpStream};
use serde_json::json;
use std::io::{self, IsTerminal, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// Octets of one read.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces between two threads.
const PIECES: usize = 4;

/// Connects or waits, and copies both ways.
pub fn pipe(args: &PipeArgs) -> Result<(), Failure> {
    let (_, config) = stream_config(&args.controller)?;
    super::run(|stop| carry_out(args, config, stop))
}

async fn carry_out(args: &PipeArgs, config: StreamConfig, mut stop: Stop) -> Result<(), Failure> {
    let opened = tokio::select! {
        opened = open(args, config) => opened,
        () = stop.asked() => return Err(Failure::Interrupted("nobody was connected".to_owned())),
    };
    let (socket, stream) = opened?;
    let pipe = Pipe::new(stream);
    let outcome = tokio::select! {
        outcome = pipe.both_ways(args.no_stdin) => outcome,
        () = stop.asked() => Err(Failure::Interrupted("the pipe was cut".to_owned())),
    };
    match &outcome {
        Ok(()) => pipe.line.ended().await,
        Err(_) => pipe.line.abort(),
    }
    let statistics = pipe.line.statistics();
    if args.json {
        let document = json!({
            "peer": pipe.line.peer_addr().to_string(),
            "bytes_sent": statistics.bytes_acked,
            "bytes_received": statistics.bytes_delivered,
            "retransmits": statistics.retransmissions,
        });
        screen::mention(&format!("{document}\n"));
    }
    drop(socket);
    // A reset is still to leave.
    tokio::task::yield_now().await;
    outcome
}

async fn open(args: &PipeArgs, config: StreamConfig) -> Result<(UtpSocket, UtpStream), Failure> {
    if !args.listen {
        let target = target(&args.address, DEFAULT_PORT)?;
        return dial(&target, &config).await.map_err(|error| unreached(&error, "cede pipe -l PORT"));
    }
    let (bind, port) = listening(&args.address)?;
    let socket = listen(bind, port, config).await?;
    screen::mention(&format!("waiting at {}\n", place(&socket)));
    let accepted = socket.accept().await;
    let stream = accepted.map_err(|error| Failure::Failed(format!("the socket is gone: {error}")))?;
    Ok((socket, stream))
}

fn listening(text: &str) -> Result<(Option<IpAddr>, u16), Failure> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok((None, port));
    }
    let address: Result<SocketAddr, _> = text.parse();
    let address = address
        .map_err(|_| Failure::Usage(format!("-l {text}: write PORT or ADDRESS:PORT, such as [::1]:7000")))?;
    Ok((Some(address.ip()), address.port()))
}

struct Pipe {
    line: Line,
}

impl Pipe {
    fn new(stream: UtpStream) -> Self {
        Self { line: Line::new(stream) }
    }

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
        }
        self.end().await
    }

    async fn end(&self) -> Result<(), Failure> {
        self.line.clone().shutdown().await.map_err(|error| lost(&error))
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
        let outcome = loop {
            match line.read(&mut buffer).await {
                Ok(0) => break Ok(()),
                // Refused where the thread has ended: it says why.
                Ok(n) if pieces.send(buffer[..n].to_vec()).await.is_err() => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(lost(&error)),
            }
        };
        drop(pieces);
        let written = writer.await.map_err(|error| Failure::Failed(error.to_string()))?;
        written.map_err(|error| Failure::Failed(format!("cannot write to standard output: {error}")))?;
        outcome
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
    fn a_port_alone_is_one_of_every_address() {
        assert_eq!(listening("7000").unwrap(), (None, 7000));
        assert_eq!(listening("127.0.0.1:7").unwrap(), (Some(IpAddr::from([127, 0, 0, 1])), 7));
        assert!(matches!(listening("everywhere"), Err(Failure::Usage(_))));
    }
}
