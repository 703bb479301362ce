//! The two bits of the IP header that speak of congestion.

/// Explicit congestion notification (RFC 3168, section 5): what the lower two bits of the traffic class say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// The transport does not understand marks: a queue that wants to signal must drop.
    #[default]
    NotEct = 0b00,
    /// The transport understands marks, codepoint ECT(1).
    Ect1 = 0b01,
    /// The transport understands marks, codepoint ECT(0), which classic senders use.
    Ect0 = 0b10,
    /// A queue on the way has marked the packet: congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// The two bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// What a queue may mark in place of dropping it. A packet that carries a mark already may be marked again.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}
