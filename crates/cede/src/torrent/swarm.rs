//! What `get` and `seed` need to be part of swarms.

use super::swarm_args::SwarmArgs;
use crate::failure::Failure;
use crate::screen;
use cede_bt::{Disposition, Family};
use cede_torrent::ip_filter::IpFilter;
use cede_torrent::origin::Origin;
use cede_torrent::session::Listener;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::LocalSet;

/// The bits of the transports that are attempted.
const ATTEMPTS: u8 = 3;
/// Where BitTorrent clients wait by custom.
const DEFAULT_PORT: u16 = 6881;

/// Trackers hear that we leave, if they listen.
pub const GOODBYE: Duration = Duration::from_secs(3);
/// Whoever interrupts does not wait for one that is slow.
const HASTY_GOODBYE: Duration = Duration::from_millis(1_500);

/// It is looked so often whether somebody reads.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Waits until nobody reads standard output any more.
pub async fn unread() {
    while !screen::is_unread() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Runs a verb on one thread, as sessions need it.
pub fn run<T>(verb: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
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

/// Random octets.
pub fn chance() -> Result<[u8; 20], Failure> {
    cede_torrent::chance().map_err(|error| Failure::Failed(format!("no random numbers: {error}")))
}

/// A name among peers: the client, its version and chance (BEP 20).
pub fn peer_id() -> Result<[u8; 20], Failure> {
    let mut id = *b"-CE0100-............";
    let chance = chance()?;
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijkmnpqrstuvwx";
    for (at, place) in id[8..].iter_mut().enumerate() {
        *place = DIGITS[usize::from(chance[at]) % DIGITS.len()];
    }
    Ok(id)
}

/// Where the peers are that were named by hand.
pub fn peers(args: &SwarmArgs) -> Vec<SocketAddr> {
    args.peers.iter().flat_map(|peer| peer.addresses.clone()).collect()
}

/// Whoever names a peer means it to be called: one that the address to go out from does not lead to never would be.
fn check_peers(args: &SwarmArgs) -> Result<(), Failure> {
    let origin = Origin::new(args.bind);
    let reaches = |address: &SocketAddr| origin.reaches(Family::of(address.ip()));
    match (args.peers.iter().find(|peer| !peer.addresses.iter().any(reaches)), args.bind) {
        (Some(peer), Some(from)) => {
            let name = screen::printable(&peer.name);
            Err(Failure::Usage(format!("--peer {name}: it has no address that {from} (-B) leads to")))
        }
        _ => Ok(()),
    }
}

/// Waits for peers, but for those that are left alone.
pub async fn listen(args: &SwarmArgs, filter: Rc<IpFilter>) -> Result<Rc<Listener>, Failure> {
    check_peers(args)?;
    let stream = args.control.stream_config()?;
    let wanted = args.port.unwrap_or(DEFAULT_PORT);
    let mut bound = Listener::bind(args.bind, wanted, args.transport, stream.clone()).await;
    let is_taken = bound.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse);
    if is_taken && args.port.is_none() {
        bound = Listener::bind(args.bind, 0, args.transport, stream).await;
    }
    bound.map(|listener| Rc::new(listener.leaving_alone(filter))).map_err(|error| {
        let hint = if is_taken { "; give another (0 for a free one)" } else { "" };
        let at = args.bind.map_or_else(String::new, |address| format!("{address}, "));
        Failure::of_system(format!("cannot wait at {at}port {wanted}: {error}{hint}"), error.kind())
    })
}

/// Opens connections from a port of its own and takes none.
pub async fn only_attempts(args: &SwarmArgs, filter: Rc<IpFilter>) -> Result<Rc<Listener>, Failure> {
    let attempts = Disposition(args.transport.0 & ATTEMPTS);
    let bound = Listener::bind(args.bind, 0, attempts, args.control.stream_config()?).await;
    let failed =
        |error: std::io::Error| Failure::of_system(format!("cannot open a port: {error}"), error.kind());
    bound.map(|listener| Rc::new(listener.leaving_alone(filter))).map_err(failed)
}

/// How long trackers are waited for to whom we say goodbye.
pub const fn parting_time(failure: &Failure) -> Duration {
    if matches!(failure, Failure::Interrupted(_)) { HASTY_GOODBYE } else { GOODBYE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torrent::swarm_args::NamedPeer;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        swarm: SwarmArgs,
    }

    /// A name may have an address that nobody listens at, or that nothing leads to, before the one that is right.
    #[test]
    fn all_addresses_of_a_named_peer_are_called_and_one_has_to_be_reached() {
        let mut args = Line::parse_from(["cede", "-B", "127.0.0.1"]).swarm;
        let [six, four] = ["[::1]:7", "127.0.0.1:7"].map(|text| text.parse().unwrap());
        let peer = |addresses| NamedPeer { name: "both:7".to_owned(), addresses };
        args.peers = vec![peer(vec![six, four])];
        assert_eq!(peers(&args), [six, four]);
        assert!(check_peers(&args).is_ok());
        args.peers.push(peer(vec![six]));
        assert!(check_peers(&args).is_err_and(|failure| failure.exit_code() == 2));
        args.bind = None;
        assert!(check_peers(&args).is_ok());
    }
}
