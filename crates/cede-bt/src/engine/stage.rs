//! The stages of a connection.

/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The transport is being opened.
    Dialling,
    /// The peer's handshake has not come.
    Handshaking,
    /// Both handshakes have been exchanged; the first message may be a bitfield.
    Greeted,
    /// Anything but a bitfield may come.
    Talking,
}

impl Stage {
    pub(super) const fn is_ready(self) -> bool {
        matches!(self, Self::Greeted | Self::Talking)
    }
}
