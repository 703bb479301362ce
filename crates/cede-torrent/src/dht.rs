//! Peers from the distributed hash table (BEP 5), through the `mainline` crate.
//!
//! Only for torrents that are not private. It has a UDP port of its own, and speaks IPv4.

use crate::origin::{Family, Origin};
use mainline::{Dht, Id};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// The table is asked, and told of us, so often; entries live for half an hour.
const EVERY: Duration = Duration::from_secs(15 * 60);
/// As long as nobody is found.
const RETRY: Duration = Duration::from_secs(60);

/// Looks for peers in a thread of its own until nobody listens to `found` any more, and tells the table that we are at `port`, as it is then, where
/// there is one: who does not know yet whether a torrent is private looks and tells nothing. `bootstrap` are nodes to begin with,
/// where not the usual ones. The table is one of IPv4 (BEP 5).
///
/// # Errors
/// No socket, or no thread; the `origin` leads to no IPv4.
pub fn search(
    info_hash: [u8; 20],
    port: impl Fn() -> Option<u16> + Send + 'static,
    (origin, bootstrap): (Origin, &[String]),
    found: UnboundedSender<Vec<SocketAddr>>,
) -> std::io::Result<()> {
    let mut builder = Dht::builder();
    if !origin.reaches(Family::V4) {
        return Err(std::io::Error::other("it is one of IPv4, which does not go out from this address"));
    }
    if let Some(IpAddr::V4(address)) = origin.address() {
        builder.bind_address(address);
    }
    if !bootstrap.is_empty() {
        builder.bootstrap(bootstrap);
    }
    let dht = builder.build()?;
    let work = move || {
        while !found.is_closed() {
            let count = look(&dht, info_hash, &found);
            let port = port();
            if port.is_some() && !found.is_closed() {
                // Nobody to tell is no reason to fail.
                #[allow(deprecated, reason = "the other way needs an executor, and this thread has none")]
                let _ = dht.announce_peer(Id::from(info_hash), port);
            }
            let mut left = if count == 0 { RETRY } else { EVERY };
            while !left.is_zero() && !found.is_closed() {
                std::thread::sleep(Duration::from_millis(500));
                left = left.saturating_sub(Duration::from_millis(500));
            }
        }
    };
    std::thread::Builder::new().name("dht".to_owned()).spawn(work).map(drop)
}

fn look(dht: &Dht, info_hash: [u8; 20], found: &UnboundedSender<Vec<SocketAddr>>) -> usize {
    let mut count = 0;
    #[allow(deprecated, reason = "the other way needs an executor, and this thread has none")]
    for peers in dht.get_peers(Id::from(info_hash)) {
        count += peers.len();
        if found.send(peers.into_iter().map(SocketAddr::V4).collect()).is_err() {
            break;
        }
    }
    count
}
