//! The ports of flows, which tell their packets apart.

/// The port of flow 0; both ends of flow `n` use the port `FIRST_PORT + n`, which tells its packets from all others.
pub const FIRST_PORT: u16 = 10_000;
/// Flows that there are ports for.
pub const MAX_FLOWS: usize = (u16::MAX - FIRST_PORT) as usize;
