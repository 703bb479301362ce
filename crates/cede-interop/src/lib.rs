//! Proof that the uTP implementations in use understand ours, and benchmarks beside them.
//!
//! Two kinds of peers. Those in Rust, `librqbit-utp` and `utp-rs`, are linked in ([`stack`]) and exchange plain octets with
//! ours. Those inside BitTorrent clients, libtorrent and Transmission (which carries libutp), run as processes of their
//! own ([`clients`]) and exchange a small torrent with ours, for which [`bittorrent`] speaks as much of BEP 3 as that takes.
//! Either way the digest of what arrived is compared with that of what left.
//!
//! Between them lies nothing, or a [`relay`] that loses, reorders and duplicates datagrams as a seeded stream says. When
//! a transfer fails, [`matrix`] lets two of theirs, and two of ours, do the same: a failure is called theirs only where
//! theirs fail among themselves and ours do not.
//!
//! `cargo run --release -p cede-interop` runs all of it and writes `docs/interop.md`.
//!
//! **Invariant:** nothing here is a dependency of anything.

pub mod bittorrent;
pub mod case;
pub mod clients;
pub mod data;
pub mod log;
pub mod matrix;
pub mod namespace;
pub mod quirks;
pub mod relay;
pub mod report;
pub mod stack;
pub mod transfer;
