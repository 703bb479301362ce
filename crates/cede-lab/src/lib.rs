//! Scenarios and what is done with them: the laboratory of Cede.
//!
//! * [`scenario`] is the one format in which every experiment is written down.
//! * [`network`] lays out its hosts and links, [`run`] runs it in the simulated world, [`outcome`] adds up. A [`host`] has
//!   sockets with an application behind each ([`traffic`]); [`meter`] and [`journal`] hear what happens.
//! * [`check`] is the battery: pinned scenarios with pass marks that any background controller should survive.
//! * [`swarm`] is BitTorrent: many peers in the simulated world.
//! * [`record`] keeps a run in a folder, [`report`] turns what it showed into figures, tables, sentences and a page.
//!
//! **Invariant:** nothing here decides what a transport or a controller does; nothing here talks to a terminal.

pub mod check;
pub mod histogram;
pub mod host;
pub mod journal;
pub mod meter;
pub mod network;
pub mod outcome;
pub mod ports;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod swarm;
pub mod traffic;
pub mod view;
