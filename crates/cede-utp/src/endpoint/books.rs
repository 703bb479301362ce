//! What an endpoint counts, and how much of it there may be.

/// Limits of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections of all kinds. Default 3000 (libutp).
    pub connections: usize,
    /// Connections that peers have begun to open. Beyond it the oldest is dropped for one of another peer; of more than that of
    /// one peer's the SYN is ignored, or let in where the peer has shown before that it receives. Default 256.
    pub half_open: usize,
    /// Connections that peers have opened and nobody has accepted; beyond it SYNs are ignored, while what was
    /// half-open still comes in. Default 128.
    pub backlog: usize,
    /// Half-open connections that the application is handed at once, so that it can speak first: while there are no more
    /// of them, those that it has already included, and no more than an eighth of [`Limits::half_open`]; beyond it all
    /// wait for the peer to speak. Each costs a peer whose address was forged 1724 octets at most, and 10 s after the SYN
    /// it ends as [`TimedOut`](crate::ConnectionError::TimedOut). With 0 the application hears of none but peers that
    /// have shown that they receive. Default 32.
    pub early: usize,
    /// Octets that have arrived and that nobody has read, of all connections together. Beyond it no receive window grows, and
    /// each connection takes in and advertises as if its buffer had 64 KiB: whoever reads goes on. So there are at most as
    /// many octets as this, and 64 KiB for each connection. Default 256 MiB.
    pub buffered_bytes: u64,
    /// Packets of no connection are answered with a RESET once in a while, so that a peer which still believes in one finds out
    /// at once (libutp); libtorrent says nothing. Default true.
    pub answers_strays: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 3000,
            half_open: 256,
            backlog: 128,
            early: 32,
            buffered_bytes: 256 << 20,
            answers_strays: true,
        }
    }
}

/// What came from strangers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointStatistics {
    /// Datagrams that are no uTP.
    pub unrecognised: u64,
    /// Packets of no connection, RESETs included.
    pub strays: u64,
    /// RESETs that answered them.
    pub resets_sent: u64,
    /// Packets of no connection that would have had a RESET, if they had not been too many or too much alike.
    pub resets_suppressed: u64,
    /// SYNs that opened a connection.
    pub opened: u64,
    /// Of these, such as are answered once and no more unasked, since many others are half-open: they may be forged.
    pub answered_once: u64,
    /// SYNs refused at a limit.
    pub syns_refused: u64,
    /// Half-open connections dropped for newer ones.
    pub half_open_dropped: u64,
    /// Half-open connections whose handshake was never completed.
    pub half_open_expired: u64,
    /// Packets that came while more was buffered than [`Limits::buffered_bytes`]. Those that were dropped for it count among
    /// [`Statistics::discarded_buffer`](crate::Statistics::discarded_buffer).
    pub over_budget: u64,
}
