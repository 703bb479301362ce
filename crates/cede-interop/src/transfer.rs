//! One transfer between two stacks that are linked in.

use crate::case::{Case, Opener};
use crate::data::{self, Running};
use crate::relay::Relay;
use crate::stack::{Node, Stack, Stream};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How long the sender's end may take once everything has arrived: its FIN and the answer may have been lost.
const END_LIMIT: Duration = Duration::from_secs(20);

/// What became of a transfer.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// Everything arrived as it left, and both ends agree that it is over.
    Arrived {
        /// From the first packet to the end of the stream at the receiver.
        seconds: f64,
        /// How many connections it took: a client opens another where it has given one up.
        connections: u32,
    },
    /// It did not.
    Failed {
        /// What went wrong, and how far it had got.
        what: String,
    },
}

impl Outcome {
    /// A failure.
    #[must_use]
    pub fn failed(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into() }
    }

    /// Did everything arrive?
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Arrived { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrived { seconds, .. } => write!(f, "ok, {seconds:.2} s"),
            Self::Failed { what } => f.write_str(what),
        }
    }
}

/// How far a transfer is, for whoever asks after it got stuck.
type Progress = Arc<Mutex<Running>>;

/// Runs a transfer from one stack to another.
pub async fn run(case: &Case, sender: Stack, receiver: Stack) -> Outcome {
    match bind(case, sender, receiver).await {
        Ok((sender, receiver)) => between(case, sender, receiver).await,
        Err(error) => Outcome::failed(format!("binding: {error}")),
    }
}

async fn bind(case: &Case, sender: Stack, receiver: Stack) -> io::Result<(Node, Node)> {
    let ip = case.family.loopback();
    Ok((Node::bind(sender, ip).await?, Node::bind(receiver, ip).await?))
}

/// Runs a transfer from one node to another.
pub async fn between(case: &Case, sender: Node, receiver: Node) -> Outcome {
    let target = if case.opener == Opener::Sender { receiver.addr() } else { sender.addr() };
    let relay = case.path.harm().map(|harm| Relay::start(target, harm, case.seed()));
    let relay = match relay.transpose() {
        Ok(relay) => relay,
        Err(error) => return Outcome::failed(format!("relay: {error}")),
    };
    let target = relay.as_ref().map_or(target, Relay::front);
    let progress = Progress::default();
    let transfer = Transfer { case: *case, target, progress: Arc::clone(&progress) };
    match tokio::time::timeout(case.limit(), transfer.run(sender, receiver)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let bytes = progress.lock().expect("no panic holds it").bytes;
            Outcome::failed(format!("not over after {} s; {bytes} B had arrived", case.limit().as_secs()))
        }
    }
}

struct Transfer {
    case: Case,
    target: SocketAddr,
    progress: Progress,
}

impl Transfer {
    async fn run(self, sender: Node, receiver: Node) -> Outcome {
        let began = Instant::now();
        let (over, receiver_is_done) = oneshot::channel();
        let case = self.case;
        let octets = data::octets(case.seed(), case.bytes);
        let digest = data::digest(&octets);
        let target = (case.opener == Opener::Sender).then_some(self.target);
        let mut sending = JoinSet::new();
        sending.spawn(async move {
            let mut stream = stream(&sender, target).await?;
            stream.write(&octets).await?;
            stream.end().await?;
            // Dropping earlier could be taken by some stack for giving up.
            let _ = receiver_is_done.await;
            Ok(())
        });
        let target = (case.opener == Opener::Receiver).then_some(self.target);
        let received = self.receive(&receiver, target, digest).await;
        let seconds = began.elapsed().as_secs_f64();
        let _ = over.send(());
        if let Err(what) = received {
            let sent = sender_error(sending).await;
            return Outcome::failed(format!("{what}{sent}"));
        }
        match tokio::time::timeout(END_LIMIT, sending.join_next()).await {
            Ok(Some(Ok(Ok(())))) => Outcome::Arrived { seconds, connections: 1 },
            Ok(Some(Ok(Err(error)))) => Outcome::failed(format!("all arrived, but the sender says: {error}")),
            Ok(Some(Err(panic))) => Outcome::failed(format!("all arrived, but the sender panicked: {panic}")),
            Ok(None) | Err(_) => Outcome::failed("all arrived, but the sender does not come to its end"),
        }
    }

    async fn receive(
        &self,
        node: &Node,
        target: Option<SocketAddr>,
        digest: data::Digest,
    ) -> Result<(), String> {
        let mut stream = stream(node, target).await.map_err(|error| format!("receiver: {error}"))?;
        let result =
            stream.receive(|octets| self.progress.lock().expect("no panic holds it").add(octets)).await;
        let arrived = self.progress.lock().expect("no panic holds it").clone();
        let bytes = arrived.bytes;
        result.map_err(|error| format!("receiver after {bytes} B: {error}"))?;
        if arrived.finish() != digest {
            return Err(format!("{bytes} B arrived, and they are not those that left"));
        }
        // The other direction ends too, without having carried anything; some stacks have ended it by themselves.
        match stream.end().await {
            Err(error) if matches!(stream, Stream::Cede(_)) => {
                Err(format!("all arrived, but ending the way back: {error}"))
            }
            _ => Ok(()),
        }
    }
}

/// Opens a stream to the target, or takes the one that is opened.
async fn stream(node: &Node, target: Option<SocketAddr>) -> io::Result<Stream> {
    match target {
        Some(target) => node.open(target).await,
        None => node.accept().await,
    }
}

/// What the sender has to say about a failure that the receiver noticed, if it says something at once.
async fn sender_error(mut sending: JoinSet<io::Result<()>>) -> String {
    match tokio::time::timeout(Duration::from_secs(1), sending.join_next()).await {
        Ok(Some(Ok(Err(error)))) => format!("; sender: {error}"),
        Ok(Some(Err(panic))) => format!("; sender panicked: {panic}"),
        Ok(Some(Ok(Ok(())))) => "; sender: no complaint".to_owned(),
        Ok(None) | Err(_) => String::new(),
    }
}
