//! One exchange between ours and a client, and one between two of the same client.

use super::tracker::Tracker;
use super::{Client, Role, Running, Task};
use crate::bittorrent::{Download, Pauses, Torrent, leech_rest, seed};
use crate::case::{Case, Direction, Family};
use crate::data;
use crate::relay::Relay;
use crate::transfer::Outcome;
use cede_real::{SocketConfig, UtpSocket, UtpStream};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a client may take to start, under whatever load there is.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Runs an exchange between ours and a client. `Err` says why it cannot be tried here.
///
/// # Errors
/// See above.
pub async fn run(case: &Case, client: Client) -> Result<Outcome, String> {
    let ip = client.meeting_place(case.family.loopback(), !case.ours_opens())?;
    Ok(match timed(case, exchange(case, client, ip)).await {
        Ok((seconds, connections)) => Outcome::Arrived { seconds, connections },
        Err(error) => Outcome::failed(error.to_string()),
    })
}

async fn timed<T>(case: &Case, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(case.limit() + START_LIMIT, work).await {
        Ok(result) => result,
        Err(_) => Err(io::Error::other(format!("not over after {} s", case.limit().as_secs()))),
    }
}

/// How long it took, and how many connections.
async fn exchange(case: &Case, client: Client, ip: IpAddr) -> io::Result<(f64, u32)> {
    let socket = UtpSocket::bind_with((ip, 0), SocketConfig::default()).await.map_err(io::Error::other)?;
    let (peer, known) = watch::channel(None);
    let tracker = Tracker::start(known).await?;
    let announce = (client == Client::Transmission).then_some(tracker.url.as_str());
    let torrent = Torrent::new("cede-interop", case.seed(), case.bytes, announce);
    let role = if case.direction == Direction::ToTheirs { Role::Leech } else { Role::Seed };
    let relay_to_us = (!case.ours_opens()).then(|| relay(case, socket.local_addr())).transpose()?.flatten();
    let us = relay_to_us.as_ref().map_or(socket.local_addr(), Relay::front);
    let connect = (!case.ours_opens()).then_some(us);
    peer.send_replace(connect);
    let task = Task { role, torrent: &torrent, ip, connect, buffer_bytes: None };
    let mut theirs = start(client, &task, &tracker).await?;
    let began = Instant::now();
    let relay_to_them = case.ours_opens().then(|| relay(case, theirs.addr())).transpose()?.flatten();
    let them = relay_to_them.as_ref().map_or(theirs.addr(), Relay::front);
    let opening = case.ours_opens().then_some(them);
    let result = talk(&socket, opening, role, &torrent, &mut theirs).await;
    let connections = result.map_err(|error| io::Error::other(format!("{error} [{}]", theirs.notes())))?;
    Ok((began.elapsed().as_secs_f64(), connections))
}

/// A client that runs its torrent and waits for us at the loopback.
pub struct Ready {
    /// The client.
    pub running: Running,
    /// Its torrent.
    pub torrent: Torrent,
    // Held: a tracker that falls silent is asked again and again.
    _tracker: Tracker,
}

impl Ready {
    /// Starts a client with a torrent of this size.
    ///
    /// # Errors
    /// What kept it from starting.
    pub async fn start(client: Client, role: Role, bytes: usize) -> io::Result<Self> {
        let tracker = Tracker::start(watch::channel(None).1).await?;
        let announce = (client == Client::Transmission).then_some(tracker.url.as_str());
        let torrent = Torrent::new("cede-interop", bytes as u64, bytes, announce);
        let ip = Family::V4.loopback();
        let task = Task { role, torrent: &torrent, ip, connect: None, buffer_bytes: None };
        let running = start(client, &task, &tracker).await?;
        Ok(Self { running, torrent, _tracker: tracker })
    }
}

/// Starts a client, and waits until it runs its torrent: Transmission turns peers away before that.
async fn start(client: Client, task: &Task<'_>, tracker: &Tracker) -> io::Result<Running> {
    let starting = async {
        let running = Running::start(client, task).await?;
        if client == Client::Transmission {
            tracker.has_been_asked().await;
        }
        Ok(running)
    };
    match tokio::time::timeout(START_LIMIT, starting).await {
        Ok(started) => started,
        Err(_) => Err(io::Error::other("the client did not start")),
    }
}

fn relay(case: &Case, target: SocketAddr) -> io::Result<Option<Relay>> {
    case.path.harm().map(|harm| Relay::start(target, harm, case.seed())).transpose()
}

/// Our side of it, and how many connections it took. The client may open several at once; one will do.
async fn talk(
    socket: &UtpSocket,
    opening: Option<SocketAddr>,
    role: Role,
    torrent: &Torrent,
    theirs: &mut Running,
) -> io::Result<u32> {
    if role == Role::Seed {
        return take(socket, opening, torrent).await;
    }
    let ours = async {
        let (from, mut out) = first(socket, opening).await?.into_split();
        seed(from, &mut out, torrent).await
    };
    tokio::select! {
        complete = theirs.complete(torrent) => complete.map(|()| 1),
        Err(error) = ours => Err(error),
    }
}

async fn first(socket: &UtpSocket, opening: Option<SocketAddr>) -> io::Result<UtpStream> {
    match opening {
        Some(peer) => socket.connect(peer).await.map_err(io::Error::other),
        None => socket.accept().await,
    }
}

/// Takes the torrent, over further connections where the client gives one up and opens another: that it is silent on the
/// first from then on need not be waited for.
async fn take(socket: &UtpSocket, opening: Option<SocketAddr>, torrent: &Torrent) -> io::Result<u32> {
    let mut download = Download::new(torrent);
    let mut stream = first(socket, opening).await?;
    for connections in 1.. {
        let (from, mut out) = stream.into_split();
        let leeching = leech_rest(from, &mut out, torrent, Pauses::default(), &mut download);
        stream = tokio::select! {
            biased;
            // Whatever went wrong with this one: whether there is another chance is the client's to say.
            ended = leeching => match ended {
                Ok(()) => {
                    let got = download.finish(torrent)?;
                    let is_it = data::digest(&got) == data::digest(&torrent.octets);
                    return if is_it { Ok(connections) } else { Err(io::Error::other("a torrent that differs")) };
                }
                Err(error) if opening.is_some() => return Err(error),
                Err(_) => socket.accept().await?,
            },
            next = socket.accept() => next?,
        };
    }
    unreachable!("the loop ends by its returns")
}

/// The same exchange between two of the same client: one that opens the connection, one that takes it.
///
/// # Errors
/// Why it cannot be tried here.
pub async fn control(case: &Case, client: Client) -> Result<Outcome, String> {
    let ip = client.meeting_place(case.family.loopback(), true)?;
    Ok(match timed(case, between_theirs(case, client, ip)).await {
        Ok(seconds) => Outcome::Arrived { seconds, connections: 1 },
        Err(error) => Outcome::failed(error.to_string()),
    })
}

async fn between_theirs(case: &Case, client: Client, ip: IpAddr) -> io::Result<f64> {
    let (peer, known) = watch::channel(None);
    let tracker = Tracker::start(known).await?;
    let announce = (client == Client::Transmission).then_some(tracker.url.as_str());
    let torrent = Torrent::new("cede-interop", case.seed(), case.bytes, announce);
    let seeding = Task { role: Role::Seed, torrent: &torrent, ip, connect: None, buffer_bytes: None };
    let seeder = start(client, &seeding, &tracker).await?;
    let relay = relay(case, seeder.addr())?;
    let connect = Some(relay.as_ref().map_or(seeder.addr(), Relay::front));
    peer.send_replace(connect);
    let leeching = Task { role: Role::Leech, torrent: &torrent, ip, connect, buffer_bytes: None };
    let began = Instant::now();
    let mut leecher = Running::start(client, &leeching).await?;
    leecher.complete(&torrent).await?;
    Ok(began.elapsed().as_secs_f64())
}
