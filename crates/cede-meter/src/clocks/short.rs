//! How a sender's clock runs against the observer's where less than a minute of it was seen.
//!
//! The same edges are looked for as in [`super::drift`], of the other direction alone, which nobody's queue is in; but a slope is believed only
//! where what the points near it leave open is little, and taken out only where it is at least twice that. So what is taken out wrongly is less
//! than what was there.
//!
//! **What it leaves out.** The queued direction itself; TCP whose echoes are of packets that were not seen; another queue on the way to the
//! sender, that grows or shrinks evenly for all that time.
//!
//! **How it was validated.** The recorded captures, cut and stretched (`tests/ground_truth.rs`); simulated ones with queues on either side
//! (`cede-repro/tests/own_queue.rs`).

use crate::clocks::around::Around;
use crate::clocks::clock::{self, DRIFT_US_MIN, Edge, Point, put_in_order};
use crate::clocks::drift::{Receiver, against_arrival, when_asked};

/// What is left open must be no more than this.
const OPEN_PPM_MAX: f64 = 10.0;

/// What is found of both clocks; nothing where that is within what is not known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Short {
    /// The drift of the observer's clock against the sender's.
    pub found_ppm: f64,
    /// And of the receiver's.
    pub echoed_ppm: f64,
}

impl Short {
    /// From the sender's clock against one of the two others, and the receiver's against the observer's.
    fn of(found: Edge, echoed: Edge) -> Option<Self> {
        let known = |edge: Edge| if edge.ppm.abs() >= 2.0 * edge.open_ppm { edge.ppm } else { 0.0 };
        let is_known = found.open_ppm.max(echoed.open_ppm) <= OPEN_PPM_MAX;
        is_known.then(|| Self { found_ppm: known(found), echoed_ppm: known(echoed) })
    }

    /// What a uTP sender says of the packets that it got.
    pub(crate) fn of_utp(around: &Around<'_>, direct: &[Point]) -> Option<Self> {
        if !clock::is_short(direct) {
            return None;
        }
        let [asked, said] =
            [&around.to().direct, &around.to().echo].map(|series| around.unwrapped_if_many(series));
        let told = |may_be_lost| {
            let mut said = when_asked(&said, direct, &asked, may_be_lost);
            put_in_order(&mut said);
            clock::short_edge(&said, 0.0)
        };
        let echoed = told(true).or_else(|| told(false))?.negative();
        let receiver = clock::short_edge(&asked, 0.0)?;
        Self::of(echoed.and(receiver), echoed)
    }

    /// What a TCP sender echoes.
    pub(crate) fn of_tcp(around: &Around<'_>, tick_us: f64, direct: &[Point]) -> Option<Self> {
        if !clock::is_short(direct) {
            return None;
        }
        let receiver = Receiver::of(around);
        let differences = around.pool.all(&around.from().reverse);
        let found =
            clock::short_edge(&receiver.sent_after(&differences, tick_us, direct), tick_us)?.negative();
        let tick_us = 1e6 / receiver.hz?;
        let mut stamps = receiver.stamps;
        against_arrival(&mut stamps, tick_us);
        let receiver = clock::short_edge(&stamps, tick_us)?;
        let is_worth_it = |short: &Self| short.found_ppm.abs() * clock::span_s(direct) >= DRIFT_US_MIN;
        Self::of(found, found.and(receiver.negative())).filter(is_worth_it)
    }
}
