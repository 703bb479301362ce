//! What `get` and `seed` need to be part of a swarm.

use super::args::SwarmArgs;
use crate::failure::Failure;
use crate::screen;
use cede_bt::Disposition;
use cede_carry::bench::ControllerSpec;
use cede_real::StreamConfig;
use cede_torrent::announce::Identity;
use cede_torrent::session::{Choices, Listener};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::LocalSet;

/// The bits of the transports that are attempted.
const ATTEMPTS: u8 = 3;
/// Where BitTorrent clients wait by custom.
const DEFAULT_PORT: u16 = 6881;

/// Trackers hear that we leave, if they listen.
pub const GOODBYE: Duration = Duration::from_secs(3);
/// Whoever interrupts does not wait for one that is slow.
const HASTY_GOODBYE: Duration = Duration::from_millis(1_500);

/// Runs a verb on one thread, as sessions need it.
pub fn run(verb: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("no runtime: {error}")))?;
    let outcome = LocalSet::new().block_on(&runtime, verb);
    // A thread may be asking a tracker that does not answer: it is not waited for.
    runtime.shutdown_background();
    outcome
}

/// What we call ourselves.
pub fn client() -> String {
    format!("cede {}", env!("CARGO_PKG_VERSION"))
}

/// A name among peers: the client, its version and chance (BEP 20).
pub fn peer_id() -> Result<[u8; 20], Failure> {
    let mut id = *b"-CE0100-............";
    let chance =
        cede_torrent::chance().map_err(|error| Failure::Failed(format!("no random numbers: {error}")))?;
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijkmnpqrstuvwx";
    for (at, place) in id[8..].iter_mut().enumerate() {
        *place = DIGITS[usize::from(chance[at]) % DIGITS.len()];
    }
    Ok(id)
}

/// Being part of a swarm.
pub struct Swarm;

impl Swarm {
    /// How trackers know us.
    fn identity(info_hash: [u8; 20], peer_id: [u8; 20], listener: &Listener) -> Result<Identity, Failure> {
        let chance =
            cede_torrent::chance().map_err(|error| Failure::Failed(format!("no random numbers: {error}")))?;
        let key = chance.first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets));
        Ok(Identity { info_hash, peer_id, port: listener.port(), key, origin: listener.origin() })
    }

    /// The same under a new name.
    pub fn new_identity(info_hash: [u8; 20], listener: &Listener) -> Result<Identity, Failure> {
        Self::identity(info_hash, peer_id()?, listener)
    }

    /// Waits for peers.
    pub async fn listen(args: &SwarmArgs) -> Result<Rc<Listener>, Failure> {
        let stream = stream_config(args)?;
        let wanted = args.port.unwrap_or(DEFAULT_PORT);
        let mut bound = Listener::bind(args.bind, wanted, args.transport, stream.clone()).await;
        let is_taken = bound.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse);
        if is_taken && args.port.is_none() {
            bound = Listener::bind(args.bind, 0, args.transport, stream).await;
        }
        bound.map(Rc::new).map_err(|error| {
            let hint = if is_taken { "; give another (0 for a free one)" } else { "" };
            let at = args.bind.map_or_else(String::new, |address| format!("{address}, "));
            Failure::of_system(format!("cannot wait at {at}port {wanted}: {error}{hint}"), error.kind())
        })
    }

    /// Opens connections from a port of its own and takes none.
    pub async fn only_attempts(args: &SwarmArgs) -> Result<Rc<Listener>, Failure> {
        let attempts = Disposition(args.transport.0 & ATTEMPTS);
        let bound = Listener::bind(args.bind, 0, attempts, stream_config(args)?).await;
        let failed =
            |error: std::io::Error| Failure::of_system(format!("cannot open a port: {error}"), error.kind());
        bound.map(Rc::new).map_err(failed)
    }

    /// What a session is told.
    pub fn choices(args: &SwarmArgs, peer_id: [u8; 20]) -> Result<Choices, Failure> {
        let chance =
            cede_torrent::chance().map_err(|error| Failure::Failed(format!("no random numbers: {error}")))?;
        Ok(Choices {
            profile: args.profile,
            disposition: args.transport,
            upload_limit: args.up,
            download_limit: args.down,
            encryption: args.encryption.into(),
            pex: !args.no_pex,
            peer_id,
            client: client(),
            seed: chance.first_chunk().map_or(0, |octets| u64::from_be_bytes(*octets)),
        })
    }
}

/// How uTP streams are opened.
fn stream_config(args: &SwarmArgs) -> Result<StreamConfig, Failure> {
    let target = args.utp_target_delay.iter().map(|value| Ok(("target".to_owned(), value.clone())));
    let set = args.set.iter().map(|text| match text.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(Failure::Usage(format!("-s {text}: write PARAM=VALUE, such as -s gain=0.5"))),
    });
    let name = args.controller.clone().unwrap_or_else(|| "ledbat".to_owned());
    let spec = ControllerSpec { name, params: target.chain(set).collect::<Result<_, _>>()? };
    let choice = spec.choice().map_err(|error| Failure::Usage(format!("-C {}: {error}", spec.name)))?;
    Ok(StreamConfig { controller: choice, ..StreamConfig::default() })
}

/// Looks for peers in the distributed hash table, in the background, and tells it of us where it is to be told.
pub fn search_dht(
    args: &SwarmArgs,
    info_hash: [u8; 20],
    (listener, is_told): (&Listener, bool),
    found: &UnboundedSender<Vec<SocketAddr>>,
) {
    let nodes = (listener.origin(), &args.dht_node[..]);
    let outer = listener.outer_port();
    let port = move || is_told.then(&outer);
    if let Err(error) = cede_torrent::dht::search(info_hash, port, nodes, found.clone()) {
        screen::mention(&format!("no distributed hash table: {error}\n"));
    }
}

/// Looks for peers in the local network, in the background, and tells it of a port where one is given.
pub fn search_local(
    info_hash: [u8; 20],
    (listener, port): (&Listener, Option<u16>),
    found: UnboundedSender<Vec<SocketAddr>>,
) {
    if let Err(error) = cede_torrent::local::search(info_hash, port, listener.origin(), found) {
        screen::mention(&format!("no search of the local network: {error}\n"));
    }
}

/// How long trackers are waited for to whom we say goodbye.
pub const fn parting_time(failure: &Failure) -> Duration {
    if matches!(failure, Failure::Interrupted(_)) { HASTY_GOODBYE } else { GOODBYE }
}
