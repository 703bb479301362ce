//! Where implementations are known to differ: one experiment for each place and peer.
//!
//! Over nothing but the loopback, so that a retransmission means that something was not understood.

use crate::bittorrent::{Pauses, leech, seed};
use crate::clients::{Client, Ready, Role};
use crate::data::{self, Running as Digester};
use crate::matrix::Peer;
use crate::stack::{Node, Stack, Stream};
use cede_real::{OwnedReadHalf, OwnedWriteHalf, SocketConfig, UtpSocket};
use cede_utp::Statistics;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// More than any receive buffer here, so that a reader who does not read closes the window.
const LARGE: usize = 4 << 20;
const SMALL: usize = 1 << 20;
/// Longer than libutp's keepalive of 29 s, and than librqbit's patience of 10 s.
const SILENCE: Duration = Duration::from_secs(35);
/// How long a reader does not read. Longer than libutp's pause of 15 s between probes.
const DEAFNESS: Duration = Duration::from_secs(20);
/// A FIN that is not acknowledged has been sent again after this.
const FIN_WATCHED: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(90);

/// An experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quirk {
    /// We open a connection with the id 65535, so that the other direction's is 0.
    LastId,
    /// Our path-MTU probes, filled up with extensions of no meaning, are acknowledged.
    PathMtu,
    /// Our FIN is acknowledged.
    Fin,
    /// A connection outlives 35 s of silence after both ends have spoken.
    Silence,
    /// Likewise, where only ours has spoken.
    SilentListener,
    /// Our window is zero for 20 s.
    OurZeroWindow,
    /// Theirs is.
    TheirZeroWindow,
    /// They send after we have ended our direction.
    HalfClose,
}

impl Quirk {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::LastId,
        Self::PathMtu,
        Self::Fin,
        Self::Silence,
        Self::SilentListener,
        Self::OurZeroWindow,
        Self::TheirZeroWindow,
        Self::HalfClose,
    ];

    /// What a report calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LastId => "connection id 65535, opened by ours",
            Self::PathMtu => "our path-MTU probes are acknowledged",
            Self::Fin => "our FIN is acknowledged",
            Self::Silence => "35 s of silence",
            Self::SilentListener => "35 s of silence, theirs having only listened",
            Self::OurZeroWindow => "our window is zero for 20 s",
            Self::TheirZeroWindow => "their window is zero for 20 s",
            Self::HalfClose => "they send after our FIN",
        }
    }
}

impl Quirk {
    /// What ours does about it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::LastId => {
                "never draws 65535 (libutp takes the id after it for 65536); opened by others it works"
            }
            Self::PathMtu => {
                "probes carry their padding in extensions, behind a mask; a lost one is no sign of congestion"
            }
            Self::Fin => "a close reason goes behind a mask, and not again with a repetition",
            Self::Silence => "a keepalive every 29 s to its own kind, every 9 s to others",
            Self::SilentListener => {
                "nothing helps: librqbit's clock starts anew with data alone, and empty DATA it refuses"
            }
            Self::OurZeroWindow => "tells an open window at once, and again",
            Self::TheirZeroWindow => "probes after 1 s, 2 s and so on up to a minute",
            Self::HalfClose => "reads on after its own FIN",
        }
    }
}

/// What an experiment came to: what was seen, or what went wrong.
pub type Finding = Result<String, String>;

/// Runs an experiment; `None` where it makes no sense with this peer. Where it fails, two of theirs do the same, where
/// they are linked in.
pub async fn run(peer: Peer, quirk: Quirk) -> Option<Finding> {
    match peer {
        Peer::Stack(UTP_RS) if quirk == Quirk::TheirZeroWindow => None,
        Peer::Stack(stack) => Some(match limited(with_stack(Stack::Cede, stack, quirk)).await {
            Err(what) => Err(match limited(with_stack(stack, stack, quirk)).await {
                Ok(_) => format!("{what}; between two of theirs it works"),
                Err(among_them) => format!("{what}; theirs, for between two of theirs: {among_them}"),
            }),
            finding => finding,
        }),
        Peer::Client(client) => match limited(with_client(client, quirk)).await {
            Ok(seen) => seen.map(Ok),
            Err(what) => Some(Err(what)),
        },
    }
}

/// It reads to the end or not at all, into memory without limit: its window never closes.
const UTP_RS: Stack = Stack::UtpRs;

async fn limited<T>(experiment: impl Future<Output = io::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(LIMIT, experiment).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!("not over after {} s", LIMIT.as_secs())),
    }
}

/// Our socket's choices for an experiment.
fn choices(quirk: Quirk) -> SocketConfig {
    let mut config = SocketConfig::default();
    if quirk == Quirk::LastId {
        config.stream.transport.connection_id = Some(u16::MAX);
    }
    config
}

/// `opener` is ours, or one of theirs in its place.
async fn with_stack(opener: Stack, other: Stack, quirk: Quirk) -> io::Result<String> {
    let here = match opener {
        Stack::Cede => Node::ours(LOOPBACK, choices(quirk)).await?,
        theirs => Node::bind(theirs, LOOPBACK).await?,
    };
    let there = Node::bind(other, LOOPBACK).await?;
    let (opened, accepted) = tokio::join!(here.open(there.addr()), there.accept());
    let pair = Pair { here: opened?, there: accepted? };
    match quirk {
        Quirk::LastId => pair.bulk(SMALL).await.map(|_| "understood".to_owned()),
        Quirk::PathMtu => pair.bulk(LARGE).await.map(|end| probes(&end)),
        Quirk::Fin => pair.bulk(1000).await.map(|end| fin(end.statistics.timeouts)),
        Quirk::Silence => pair.silence(true).await,
        Quirk::SilentListener => pair.silence(false).await,
        Quirk::OurZeroWindow => pair.deaf_opener().await,
        Quirk::TheirZeroWindow => pair.deaf_acceptor().await,
        Quirk::HalfClose => pair.half_close().await,
    }
}

/// A connection: `here` has opened it.
struct Pair {
    here: Stream,
    there: Stream,
}

/// How our stream looked in the end.
#[derive(Default)]
struct End {
    statistics: Statistics,
    payload_bytes: u32,
}

impl Pair {
    /// What our stream says at the end, where it is ours.
    fn end(&self) -> End {
        match &self.here {
            Stream::Cede(stream) => End {
                statistics: stream.statistics(),
                payload_bytes: stream.snapshot().map_or(0, |snapshot| snapshot.payload_bytes),
            },
            _ => End::default(),
        }
    }

    /// Octets and an end, and two seconds in which an end without an answer would be repeated.
    async fn bulk(mut self, bytes: usize) -> io::Result<End> {
        let octets = data::octets(1, bytes);
        let (sent, got) = tokio::join!(send(&mut self.here, &octets), digest_of(&mut self.there));
        sent?;
        expect(got? == data::digest(&octets), "a digest that differs")?;
        tokio::time::sleep(FIN_WATCHED).await;
        Ok(self.end())
    }

    /// One octet, answered or not, a long silence, and more octets.
    async fn silence(mut self, answered: bool) -> io::Result<String> {
        if answered {
            self.there.write(b"2").await?;
        }
        let sending = async {
            self.here.write(b"1").await?;
            tokio::time::sleep(SILENCE).await;
            send(&mut self.here, &[2; 1000]).await
        };
        let mut bytes = 0;
        let receiving = self.there.receive(|octets| bytes += octets.len());
        let (sent, received) = tokio::join!(sending, receiving);
        received.and(sent)?;
        expect(bytes == 1001, "not all arrived")?;
        Ok(format!("survived, with {} keepalives of ours", self.end().statistics.keepalives_sent))
    }

    async fn deaf_opener(mut self) -> io::Result<String> {
        let octets = data::octets(2, LARGE);
        let receiving = async {
            // It is the opener that speaks first.
            self.here.write(b"go").await?;
            tokio::time::sleep(DEAFNESS).await;
            digest_of(&mut self.here).await
        };
        let (sent, got) = tokio::join!(send(&mut self.there, &octets), receiving);
        expect(got? == data::digest(&octets), "a digest that differs")?;
        sent.map(|()| "went on, and all arrived".to_owned())
    }

    async fn deaf_acceptor(mut self) -> io::Result<String> {
        let octets = data::octets(3, LARGE);
        let receiving = async {
            tokio::time::sleep(DEAFNESS).await;
            digest_of(&mut self.there).await
        };
        let (sent, got) = tokio::join!(send(&mut self.here, &octets), receiving);
        sent?;
        expect(got? == data::digest(&octets), "a digest that differs")?;
        Ok(format!("went on, after {} probes of ours", self.end().statistics.zero_window_probes))
    }

    async fn half_close(mut self) -> io::Result<String> {
        let answer = data::octets(4, SMALL);
        send(&mut self.here, b"the question").await?;
        self.there.receive(|_| {}).await?;
        let (sent, got) = tokio::join!(send(&mut self.there, &answer), digest_of(&mut self.here));
        sent.map_err(|error| io::Error::other(format!("theirs cannot: {error}")))?;
        expect(got? == data::digest(&answer), "a digest that differs")?;
        Ok("the answer arrived".to_owned())
    }
}

async fn send(stream: &mut Stream, octets: &[u8]) -> io::Result<()> {
    stream.write(octets).await?;
    stream.end().await
}

async fn digest_of(stream: &mut Stream) -> io::Result<data::Digest> {
    let mut digester = Digester::default();
    stream.receive(|octets| digester.add(octets)).await?;
    Ok(digester.finish())
}

fn probes(end: &End) -> String {
    let (sent, lost) = (end.statistics.mtu_probes_sent, end.statistics.mtu_probes_lost);
    format!("{sent} probes, {lost} not acknowledged; payload {} B at the end", end.payload_bytes)
}

fn fin(timeouts: u64) -> String {
    match timeouts {
        0 => "acknowledged".to_owned(),
        n => format!("sent {} times in {} s without an answer", n + 1, FIN_WATCHED.as_secs()),
    }
}

fn expect(it: bool, otherwise: &str) -> io::Result<()> {
    if it { Ok(()) } else { Err(io::Error::other(otherwise.to_owned())) }
}

/// What a client is asked to do in an experiment, and what we do meanwhile.
async fn with_client(client: Client, quirk: Quirk) -> io::Result<Option<String>> {
    let none = Pauses::default();
    let (role, bytes, pauses) = match quirk {
        Quirk::PathMtu => (Role::Leech, LARGE, none),
        Quirk::LastId | Quirk::Fin => (Role::Seed, SMALL, none),
        Quirk::Silence => (Role::Seed, SMALL, Pauses { before_asking: SILENCE, ..none }),
        Quirk::OurZeroWindow => (Role::Seed, LARGE, Pauses { before_reading: DEAFNESS, ..none }),
        // Nobody can tell a client to stop reading or speaking, or to send to someone who has left.
        Quirk::TheirZeroWindow | Quirk::HalfClose | Quirk::SilentListener => return Ok(None),
    };
    let exchange = Exchange::start(client, role, bytes, choices(quirk)).await?;
    if role == Role::Leech {
        exchange.give().await.map(Some)
    } else {
        exchange.take(quirk, pauses).await.map(Some)
    }
}

/// A client and a connection of ours to it.
struct Exchange {
    theirs: Ready,
    from: OwnedReadHalf,
    out: OwnedWriteHalf,
    _socket: UtpSocket,
}

impl Exchange {
    async fn start(client: Client, role: Role, bytes: usize, config: SocketConfig) -> io::Result<Self> {
        let theirs = Ready::start(client, role, bytes).await?;
        let socket = UtpSocket::bind_with((LOOPBACK, 0), config).await.map_err(io::Error::other)?;
        let stream = socket.connect(theirs.running.addr()).await.map_err(io::Error::other)?;
        let (from, out) = stream.into_split();
        Ok(Self { theirs, from, out, _socket: socket })
    }

    async fn give(mut self) -> io::Result<String> {
        tokio::select! {
            complete = self.theirs.running.complete(&self.theirs.torrent) => complete?,
            Err(error) = seed(self.from, &mut self.out, &self.theirs.torrent) => return Err(error),
        }
        let payload_bytes = self.out.snapshot().map_or(0, |snapshot| snapshot.payload_bytes);
        Ok(probes(&End { statistics: self.out.statistics(), payload_bytes }))
    }

    async fn take(mut self, quirk: Quirk, pauses: Pauses) -> io::Result<String> {
        let got = leech(self.from, &mut self.out, &self.theirs.torrent, pauses).await?;
        expect(got == self.theirs.torrent.octets, "a torrent that differs")?;
        let before = self.out.statistics();
        tokio::time::sleep(FIN_WATCHED).await;
        let after = self.out.statistics();
        Ok(match quirk {
            Quirk::Fin => fin(after.timeouts - before.timeouts),
            Quirk::Silence => format!("survived, with {} keepalives of ours", after.keepalives_sent),
            Quirk::OurZeroWindow => "went on, and all arrived".to_owned(),
            _ => "understood".to_owned(),
        })
    }
}
