//! The pass marks that several families share, each with its reason. Public so that a controller that is run elsewhere (over
//! another transport, on real links) can be held to the same ones.

/// An idle link: the part of it that must be used, in steady state.
///
/// What a design that drains its queue now and then gives away on purpose is a tenth (LEDBAT++: slowdowns take at most
/// a tenth of the time by its draft); as much again is allowed for sawteeth and headers of acknowledgements that
/// share nothing with the flow. A transfer that takes longer than a quarter more than it need is not finished in the
/// night in which it might have been, and people turn it off.
pub const IDLE_LINK_USED: f64 = 0.8;

/// The same where the path does something to the flow that nobody can answer perfectly: shakes, steps, changes. Half of
/// what the above leaves for imperfection is added.
pub const HARD_LINK_USED: f64 = 0.7;

/// The queueing delay that a background flow may hold up by itself, at the 95th percentile.
///
/// RFC 6817, section 2.5: the target is 100 ms or less. A tenth is added because
/// what is measured is the delay of packets, which come in lumps, and not the controller's idea of it.
pub const OWN_DELAY_MS: f64 = 110.0;

/// Packets that two packets' serialisation may add to [`OWN_DELAY_MS`] on slow links: one that is being sent when
/// another arrives, and one between the controller's sample and its reaction.
#[must_use]
pub fn own_delay_ms(rate_mbps: f64) -> f64 {
    OWN_DELAY_MS + 2.0 * 1_500.0 * 8.0 / (rate_mbps * 1e3)
}

/// What a foreground flow keeps of the rate that it has alone.
///
/// Nine tenths: the download that takes an hour alone takes less than seven minutes more. Differences of that size are
/// within what the same path varies by from hour to hour, so whoever waits cannot tell that somebody else is there,
/// which is what "background" means.
pub const FOREGROUND_KEEPS: f64 = 0.9;

/// The share that a background flow may take where delay does not tell it of the other (a shallow or a managed queue).
///
/// One third: it may not be pushed to the tenth above, for all it can see are losses, which the other sees as well; but
/// "lower than best effort" must mean clearly less than the half that an equal would take.
pub const BLIND_SHARE: f64 = 1.0 / 3.0;

/// What the other keeps there of the rate that it has alone.
///
/// Two thirds are what [`BLIND_SHARE`] leaves it; a tenth of that is allowed for what the two lose to each other at a queue that
/// neither of them sees. Without this mark whoever sends without end and loses nearly all of it passes by its small share.
pub const BLIND_KEEPS: f64 = 0.6;

/// Seconds within which the link is taken back once the foreground is gone, to three quarters of its capacity.
///
/// Additive increase of one packet per round trip needs a bandwidth-delay product's worth of round trips: 67 packets
/// at 20 Mbit/s and 40 ms, 2.7 s. Ten seconds leaves room for a controller that is careful (LEDBAT++ grows at a
/// sixteenth of that, but from a threshold that it remembers) and is short beside the pauses of people who browse.
pub const TAKE_BACK_S: f64 = 10.0;
/// The same on a path of 600 ms, where ten seconds are 17 round trips: a hundred round trips.
///
/// A bandwidth-delay product there is a thousand packets. One packet per round trip needs ten minutes, and a download that had
/// to make room for a minute would not come back while anybody waits; a window that grows by a tenth of itself per round trip
/// needs 72 from a single packet on, and a threshold that is remembered less.
pub const TAKE_BACK_FAR_S: f64 = 60.0;
/// What counts as having taken it back.
pub const TAKEN_BACK: f64 = 0.75;

/// The part that a flow must keep of what Reno has, where packets are lost or overtaken without congestion.
///
/// Nobody needs what is left unused there, so yielding is no excuse; but a loss cannot be told from congestion by itself,
/// so Reno's law is the measure, and half of it the least. It is measured in the same run of the same transport.
pub const PART_OF_RENO: f64 = 0.5;

/// Jain's index of flows of one kind: 0.8 is 3 to 1 between two flows.
///
/// Nobody owes equals equality in a background service, but whoever gets less than a third of the other's rate
/// notices.
pub const EQUALS_JAIN: f64 = 0.8;
