//! The LEDBATs, and what they share: a window steered by a queueing delay (`delay_window.rs`), and the delays and
//! the window as libutp and its fork have them (`delay_hist.rs`, `utp_window.rs`).

mod delay_hist;
mod delay_window;
pub(crate) mod draft;
pub(crate) mod fledbat;
pub(crate) mod libtorrent;
pub(crate) mod libutp;
pub(crate) mod plus_plus;
pub(crate) mod plus_plus_libutp;
pub(crate) mod rfc6817;
mod utp_window;

pub(crate) use delay_window::packets_param;
