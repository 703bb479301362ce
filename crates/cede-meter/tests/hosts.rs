//! Hosts of many flows, none of which says much by itself.

mod common;

use cede_meter::{Config, Flags};
use common::{A, B, Tap, Tcp};

/// What a host of so many connections is flagged with, each of which sends from when the capture begins, or from a second later
/// than the one before it, for so many seconds into a queue that grows by 10 ms each second.
fn flags(connections: u16, begins_in_the_middle: bool, seconds: u64) -> Flags {
    let mut tap = Tap::new(Config::default());
    let mut packets = Vec::new();
    for flow in 0..connections {
        let begins = if begins_in_the_middle { 0 } else { u64::from(flow) } * 1_000_000 + 10_000_000;
        for k in 0..seconds * 10 {
            let sent = begins + k * 100_000 + u64::from(flow) * 700;
            let opens = k == 0 && !begins_in_the_middle;
            packets.push((
                sent + 300_000 + sent / 100,
                flow,
                sent,
                k as u32,
                if opens { 0x02 } else { 0x18 },
            ));
        }
    }
    packets.sort_unstable();
    for (seen, flow, sent, k, flags) in packets {
        let clock = (sent / 1_000) as u32 + u32::from(flow) * 77_777;
        tap.tcp(seen, (B.0, 7_000 + flow), A, &Tcp { seq: k, ack: 1, flags, clock, echo: 9, len: 1 });
    }
    let (plainly, found) = (tap.0.report(), tap.found());
    assert_eq!(plainly.hosts[0].flags, found.report().hosts[0].flags, "whatever else is asked for");
    assert_eq!(plainly.hosts[0].flows, u32::from(connections));
    plainly.hosts[0].flags
}

#[test]
fn what_holds_of_many_flows_together_holds_of_the_host() {
    let in_the_middle = Flags::START_NOT_SEEN.with(Flags::BASE_NOT_REVISITED);
    for connections in [3, 13, 60] {
        let flagged = flags(connections, true, 20);
        assert!(flagged.has(in_the_middle) && !flagged.has(Flags::SHORT), "{connections}: {flagged:?}");
        // Too few packets each for the clock's rate as well.
        let flagged = flags(connections, false, 1);
        assert!(flagged.has(Flags::SHORT.with(Flags::RATE_ASSUMED)), "{connections}: {flagged:?}");
        assert!(!flagged.has(Flags::START_NOT_SEEN), "{connections}: {flagged:?}");
    }
}
