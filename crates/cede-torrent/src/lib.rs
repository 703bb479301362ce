//! A BitTorrent client on real files and sockets, around the sans-IO peer of `cede-bt`.
//!
//! * [`storage`] keeps a torrent's content in files, below one folder and nowhere else.
//! * [`check`] says which pieces are there, by their hashes.
//! * [`session`] runs a torrent: the engine, driven by TCP and uTP sockets at one port number, a disk and the clock.
//! * [`create`] makes torrents.
//!
//! **Invariant:** nothing here decides whom to unchoke, what to request or what a message means; that is done below, by
//! code that runs unchanged in the simulator.

pub mod check;
pub mod create;
mod disk;
mod link;
pub mod session;
pub mod storage;
