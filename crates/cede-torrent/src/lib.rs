//! A BitTorrent client on real files and sockets, around the sans-IO peer of `cede-bt`.
//!
//! * [`storage`] keeps a torrent's content in files, below one folder and nowhere else.
//! * [`check`] says which pieces are there, by their hashes; [`mend`] finds the parts of those that files share.
//! * [`session`] runs a torrent: the engine, driven by TCP and uTP sockets at one port number, a disk and the clock.
//! * [`limits`] are those that several torrents have together, [`open_files`] one that the system sets; the callers of one port are led to each.
//! * [`ip_filter`] names addresses that are left alone.
//! * [`calls`] tells why peers that were called are not connected.
//! * [`announce`] keeps trackers told, [`ask`] asks one, [`fetch`] what is at a URL, [`origin`] from which address; [`magnet`] fetches what a link does not say, `dht` finds peers without a tracker, [`local`] those in the local network; [`gateway`] has a router lead others to us; [`moves`] says when the machine has come into another network.
//! * [`web`] fetches from servers that have the content.
//! * [`server`] is a tracker.
//! * [`create`] makes torrents.
//!
//! **Invariant:** nothing here decides whom to unchoke, what to request or what a message means; that is done below, by
//! code that runs unchanged in the simulator.

pub mod acquaintance;
mod agree;
pub mod announce;
pub mod ask;
mod bucket;
pub mod calls;
pub mod check;
mod clock;
pub mod create;
mod depart;
#[cfg(feature = "dht")]
pub mod dht;
mod disk;
pub mod fetch;
pub mod gateway;
mod hashing;
pub mod ip_filter;
pub mod limits;
mod link;
mod listener;
pub mod local;
pub mod magnet;
pub mod mend;
pub mod moves;
mod near;
pub mod open_files;
pub mod origin;
mod patience;
mod pieces;
mod proxy;
mod reach;
mod reception;
mod request;
pub mod server;
pub mod session;
pub mod storage;
mod udp;
pub mod web;

/// Random octets of the operating system, for names among peers and seeds.
///
/// # Errors
/// The system has none.
pub fn chance() -> std::io::Result<[u8; 20]> {
    let mut octets = [0; 20];
    getrandom::fill(&mut octets).map_err(std::io::Error::other)?;
    Ok(octets)
}

/// Octets that whoever runs us can still put where a path is.
///
/// # Errors
/// What the system says; elsewhere than on Unix nothing is known.
pub fn free_bytes(path: &std::path::Path) -> std::io::Result<u64> {
    #[cfg(unix)]
    {
        let room = rustix::fs::statvfs(path)?;
        Ok(room.f_bavail.saturating_mul(room.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
