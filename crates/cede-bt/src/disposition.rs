//! Which transports a peer attempts and accepts, and which of two connections to a peer stays.
//!
//! Source: uTorrent's `bt.transp_disposition` as the TMA 2012 paper describes it (section 2.2): bits 1 and 2 attempt
//! TCP and uTP, 4 and 8 accept them; 16 chooses uTP's newer header. Where both transports of an attempt succeed, the
//! TCP connection is closed. A connection carries data both ways, whoever opened it.
//!
//! **What it leaves out.** Bit 16: there is one header.
//! **How it was validated.** All pairs of connections below; the paper's Table 1 in its reproduction.

/// What carries a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// uTP.
    Utp,
}

impl Transport {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Tcp, Self::Utp];

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Utp => "utp",
        }
    }
}

/// The bit mask of transports attempted and accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Disposition(pub u8);

impl Disposition {
    /// Everything: the default.
    pub const ALL: Self = Self(31);
    /// TCP alone.
    pub const TCP: Self = Self(5);
    /// uTP alone.
    pub const UTP: Self = Self(10);

    /// Whether a transport is attempted.
    #[must_use]
    pub const fn attempts(self, transport: Transport) -> bool {
        self.0
            & match transport {
                Transport::Tcp => 1,
                Transport::Utp => 2,
            }
            != 0
    }

    /// Whether a transport is accepted.
    #[must_use]
    pub const fn accepts(self, transport: Transport) -> bool {
        self.0
            & match transport {
                Transport::Tcp => 4,
                Transport::Utp => 8,
            }
            != 0
    }
}

/// How a peer is dialled where several transports may be attempted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialling {
    /// All at once (uTorrent 3).
    Race,
    /// uTP, and TCP once that has failed (libtorrent).
    UtpFirst,
    /// TCP, and uTP once that has failed.
    TcpFirst,
}

/// Which of two connections between the same two peers stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplicates {
    /// uTP rather than TCP; of equals the one that the peer with the larger id has opened.
    PreferUtp,
    /// The one that the peer with the larger id has opened, whatever carries it; of two that it has opened that over uTP, else the older.
    ByPeerId,
    /// As a peer that has called us says who it is, also against a call to its host that is still under way, and drawn: libtorrent
    /// compares the ports at which both take connections, and draws where they are alike, as they are in swarms of namespaces. Each end
    /// draws for itself, so that both connections may be closed. What is left is decided as by [`Self::ByPeerId`].
    Drawn,
    /// Both, each for the data of the side that opened it. No client does so; it takes away what the TMA paper's
    /// section 3.3 holds responsible for the fairness between transports.
    KeepBoth,
}

/// What decides between two connections to the same peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contender {
    /// What carries it.
    pub transport: Transport,
    /// Whether the side that asks has opened it.
    pub opened_by_us: bool,
}

impl Duplicates {
    /// Whether `newer` replaces `older`; `None` where both stay. Both ends come to the same answer, whatever order
    /// they learn of the two in, as long as the rule tells the two apart.
    #[must_use]
    pub fn newer_wins(self, older: Contender, newer: Contender, our_id_is_larger: bool) -> Option<bool> {
        let differ = older.transport != newer.transport;
        match self {
            Self::KeepBoth => (older.opened_by_us == newer.opened_by_us).then_some(false),
            Self::PreferUtp if differ => Some(newer.transport == Transport::Utp),
            // Which of the two is the older one the ends may see differently.
            Self::ByPeerId if differ && older.opened_by_us == newer.opened_by_us => {
                Some(newer.transport == Transport::Utp)
            }
            Self::PreferUtp | Self::ByPeerId | Self::Drawn => {
                Some(older.opened_by_us != newer.opened_by_us && newer.opened_by_us == our_id_is_larger)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same connection as the other end sees it.
    fn mirrored(seen: Contender) -> Contender {
        Contender { opened_by_us: !seen.opened_by_us, ..seen }
    }

    #[test]
    fn both_ends_keep_the_same_connection_in_whatever_order_they_learn_of_the_two() {
        let all = Transport::ALL
            .map(|transport| [true, false].map(|opened_by_us| Contender { transport, opened_by_us }))
            .concat();
        for rule in [Duplicates::PreferUtp, Duplicates::ByPeerId] {
            for one in &all {
                for two in &all {
                    agree(rule, *one, *two);
                }
            }
        }
    }

    fn agree(rule: Duplicates, one: Contender, two: Contender) {
        if one.transport == two.transport && one.opened_by_us == two.opened_by_us {
            return;
        }
        for larger in [true, false] {
            let here = rule.newer_wins(one, two, larger).expect("one of them stays");
            let there = [(one, two), (two, one)]
                .map(|(older, newer)| rule.newer_wins(mirrored(older), mirrored(newer), !larger));
            assert_eq!(there, [Some(here), Some(!here)], "{rule:?}: {one:?} {two:?}");
        }
    }
}
