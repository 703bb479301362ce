//! Data across a connection: whole and in order, whatever the network does within reason.
#![allow(missing_docs)]

mod common;

use cede_units::Stream;
use cede_utp::Event;
use common::{Fate, Setup, ms, transfer};

#[test]
fn a_perfect_network_delivers_without_a_retransmission() {
    for name in ["reno", "ledbat", "cubic", "fixed"] {
        let world = transfer(&Setup { controller: name, ..Setup::default() }, 3_000_000, |_| Fate::Deliver);
        assert_eq!(world.sides[1].received, 3_000_000);
        let sent = world.sides[0].connection.statistics();
        assert_eq!((sent.retransmissions, sent.losses, sent.timeouts), (0, 0, 0), "{name}");
        assert!(world.sides.iter().all(|side| side.has(Event::Closed)));
    }
}

#[test]
fn a_bad_network_delivers_all_the_same() {
    for seed in 0..20 {
        let mut random = Stream::named(seed, "network");
        let judge = move |_: &common::Seen| match random.below(100) {
            0..5 => Fate::Drop,
            5..10 => Fate::Twice,
            10..20 => Fate::Late(ms(random.below(30))),
            _ => Fate::Deliver,
        };
        let world = transfer(&Setup { seed, ..Setup::default() }, 500_000, judge);
        assert_eq!(world.sides[1].received, 500_000, "{seed}");
    }
}
