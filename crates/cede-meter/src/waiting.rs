//! A packet between its reading and the look-up of its flow.

use crate::packet::Packet;
use crate::packet::key::Key;
use crate::packet::view::View;

/// A packet that was read, and whose flow was not looked up yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub key: Key,
    pub hash: u64,
    pub packet: Packet,
    /// The capture ends before what is looked for.
    pub is_cut: bool,
    pub view: Option<View>,
}

impl Waiting {
    /// None.
    pub(crate) const NONE: Self =
        Self { key: Key::NONE, hash: 0, packet: Packet::SILENT, is_cut: false, view: None };
}
