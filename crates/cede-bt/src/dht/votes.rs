//! Where our node is, by the words of those who have answered it: each says from which address it was asked (`ip`, BEP 42).
//!
//! The first to say so is believed as long as nobody else has said anything: there is nothing to lose yet, and nodes that enforce BEP 42 refuse
//! to answer a drawn id at all. From the second on several have to agree.
//!
//! **Invariant:** one host has one vote, however many nodes it is, and the votes of the last hosts alone are kept.

use crate::tracker::share::Holder;
use alloc::collections::VecDeque;
use core::net::IpAddr;

/// Hosts whose votes are kept.
const VOTERS: usize = 32;
/// So many hosts have to agree, and more than two thirds of all.
const QUORUM: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Votes {
    /// Who has voted, the last at the end, and for which address; of IPv6 for which network.
    cast: VecDeque<(Holder, Holder)>,
}

impl Votes {
    /// Somebody says that we are at an address. Whether so many say so that we are.
    pub fn cast(&mut self, voter: IpAddr, ip: IpAddr) -> bool {
        let (voter, named) = (Holder::of(voter), Holder::of(ip));
        self.cast.retain(|(known, _)| *known != voter);
        self.cast.push_back((voter, named));
        if self.cast.len() > VOTERS {
            self.cast.pop_front();
        }
        let agree = self.cast.iter().filter(|(_, other)| *other == named).count();
        self.cast.len() == 1 || agree >= QUORUM && agree * 3 > self.cast.len() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    fn voter(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0b00_0000 + number).into()
    }

    const TRUTH: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
    const LIE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2));

    #[test]
    fn several_hosts_have_to_agree() {
        let mut votes = Votes::default();
        assert!(votes.cast(voter(0), TRUTH), "there is nobody else");
        assert!((1..3).all(|number| !votes.cast(voter(number), TRUTH)));
        assert!(votes.cast(voter(3), TRUTH));
        assert!((0..100).all(|_| !votes.cast(voter(9), LIE)), "one host, however often");
        let mut votes = Votes::default();
        assert!(votes.cast(voter(9), LIE));
        assert!((0..3).all(|number| !votes.cast(voter(number), TRUTH)));
        assert!(votes.cast(voter(3), TRUTH), "four of five");
        assert!((20..23).all(|number| !votes.cast(voter(number), LIE)));
        assert!(!votes.cast(voter(4), TRUTH), "five of nine");
        // One network of IPv6 is one host.
        let mut votes = Votes::default();
        let six = |number: u16| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number));
        votes.cast(voter(0), TRUTH);
        assert!((0..9).all(|number| !votes.cast(six(number), six(99))));
    }

    #[test]
    fn who_has_moved_is_believed_once_most_of_the_last_say_so() {
        let mut votes = Votes::default();
        assert_eq!((0..1_000).filter(|number| votes.cast(voter(*number), LIE)).count(), 998);
        assert_eq!(votes.cast.len(), VOTERS);
        let moved = (1_000..1_100).position(|number| votes.cast(voter(number), TRUTH));
        assert_eq!(moved, Some(21), "the twenty-second of thirty-two");
    }
}
