#![no_std]
//! One BitTorrent peer, without socket, clock, disk or random numbers of its own, and the formats around it.
//!
//! * [`bencode`], [`metainfo`], [`magnet`] and [`tracker`] are the formats of torrents, of links to them and of trackers.
//! * [`extension`], [`metadata`], [`pex`] and [`holepunch`] are what peers say to each other beyond BEP 3; [`mse`] hides it. [`local`] is what they call into their network, [`gateway`] and [`igd`] what they ask of their router.
//! * [`dht`] is a node of the distributed hash table.
//! * [`web`] is what the content is called on servers that have it.
//! * [`wire`] is what peers say to each other: handshake and messages (BEP 3, 6, 10, 52).
//! * [`digest`] and [`merkle`] are the hashes of pieces, [`abreast`] what computes them, [`layers`] how those of v2 torrents are had from peers.
//! * [`picker`], [`choker`], [`snub`], [`pipeline`] and [`limiter`] are a client's decisions, each by itself; [`profile`]
//!   puts those of deployed clients together; [`disposition`] is its choice of transports.
//! * [`geometry`], [`bitfield`] and [`rate`] are what those reckon with, [`family`] the versions of the internet protocol.
//! * [`engine`] is the peer: one torrent's member of a swarm, driven by whatever world there is.
//!
//! **Invariant:** nothing here knows a socket, a clock, a file or a simulator, and nothing here decides how much a
//! transport may have under way. No input panics, and nothing that a peer can make grow is without a limit.

extern crate alloc;

pub mod abreast;
pub mod bencode;
pub mod bitfield;
pub mod choker;
pub mod dht;
pub mod digest;
pub mod disposition;
pub mod engine;
pub mod extension;
pub mod family;
pub mod gateway;
pub mod geometry;
pub mod holepunch;
pub mod igd;
pub mod layers;
pub mod limiter;
pub mod local;
pub mod magnet;
pub mod merkle;
pub mod metadata;
pub mod metainfo;
pub mod mixed;
pub mod mse;
pub mod pex;
pub mod picker;
pub mod pipeline;
pub mod profile;
pub mod rate;
pub mod snub;
pub mod tracker;
pub mod web;
pub mod wire;

pub use bitfield::Bitfield;
pub use disposition::{Dialling, Disposition, Duplicates, Transport};
pub use engine::Engine;
pub use family::{Family, PerFamily};
pub use geometry::{BLOCK_BYTES, Geometry};
pub use profile::Profile;
