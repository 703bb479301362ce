//! What a host's figures need of a short flow, read from what is kept of its packets without the state that it would have
//! ([`crate::store::flow::Flow`]): there may be a million such flows, and most say nothing that would need it.
//!
//! **How it was validated.** Beside the whole state, on random packets (below) and wherever flows are listed.

use crate::clocks::clock::Point;
use crate::clocks::doubt::How;
use crate::clocks::own::Own;
use crate::clocks::wraps::Unwrap;
use crate::packet::key::Side;
use crate::packet::length::Length;
use crate::packet::rtt::Rtt;
use crate::packet::{Marks, Said};
use crate::store::embryo::Embryo;
use crate::store::flow::TRIP_SPACING_US;
use crate::store::place::ENTRIES_MAX;
use crate::store::pool::Pool;
use crate::store::utp::{Evidence, UtpSide};

/// One direction's own readings, and the round trips to who sent it.
pub(crate) struct Glance {
    pub own: Own,
    /// Of the other direction.
    pub rtt: Rtt,
}

impl Glance {
    /// Of each `stride` samples one.
    pub(crate) fn of(embryo: &Embryo, side: Side, pool: &Pool, stride: usize) -> Self {
        let count = embryo.entries();
        let has_lengths = !embryo.marks.has(Marks::OFFLOADED);
        let (mut points, mut lengths) = (Vec::with_capacity(count), [Length::default(); ENTRIES_MAX]);
        let (mut rtt, mut unwrap, mut number) = (Rtt::default(), Unwrap::default(), 0);
        embryo.each(
            pool,
            #[inline(always)]
            |packet| {
                let now = packet.time_us as u32;
                if packet.side != side {
                    return packet.said.ask(&mut rtt, now);
                }
                let _ = packet.said.answer(&mut rtt, now);
                if let Some(raw) = packet.said.reading(packet.time_us) {
                    if number % stride == 0 {
                        lengths[points.len()] = packet.length;
                        points.push(Point::at(packet.time_us, unwrap.next(raw)));
                    }
                    number += 1;
                }
            },
        );
        let lengths = &lengths[..points.len()];
        Self { own: Own::new(points, lengths, has_lengths), rtt }
    }
}

/// Round trips to who sent a direction, by when they ended.
pub(crate) fn trips(embryo: &Embryo, side: Side, pool: &Pool, how: How) -> Vec<Point> {
    let (mut rtts, mut trips) = ([Rtt::default(); 2], Vec::<Point>::new());
    // What so few packets say besides is not looked at.
    if how == How::Said {
        return trips;
    }
    embryo.each(
        pool,
        #[inline(always)]
        |packet| {
            let [low, high] = &mut rtts;
            let (from, to) = if packet.side == 0 { (low, high) } else { (high, low) };
            let trip = packet.said.time_round_trip(from, to, packet.time_us as u32);
            let t = packet.time_us as f64;
            let is_apart =
                trips.last().is_none_or(|last| !(0.0..TRIP_SPACING_US as f64).contains(&(t - last.t)));
            trips
                .extend(trip.filter(|_| packet.side == side && is_apart).map(|us| Point { t, x: us.into() }));
        },
    );
    trips
}

/// Which directions of a flow of datagrams are uTP with samples; `None` where that cannot be told at a glance.
pub(crate) fn utp_sides(embryo: &Embryo, pool: &Pool) -> Option<[bool; 2]> {
    let (mut sides, mut evidence) = ([UtpSide::default(); 2], Evidence::default());
    let mut has_samples = [false; 2];
    embryo.each(
        pool,
        #[inline(always)]
        |packet| {
            has_samples[packet.side] |= packet.said.reading(packet.time_us).is_some();
            if let Said::Utp(said) = packet.said {
                let [low, high] = &mut sides;
                let (mine, theirs) = if packet.side == 0 { (low, high) } else { (high, low) };
                evidence.add(theirs, &said);
                mine.note(&said, theirs);
            }
        },
    );
    match has_samples {
        [true, true] => Some([evidence.is_enough(); 2]),
        [false, false] => Some([false; 2]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::around::{self, Around};
    use crate::clocks::shelf::Shelf;
    use crate::clocks::stamps::stamps_follow_time;
    use crate::store::embryo::testing::{key, packet};
    use cede_units::Stream;

    #[test]
    fn a_glance_sees_what_the_whole_state_has() {
        let mut stream = Stream::named(8, "glance");
        let (mut compared, mut judged, shelf) = (0, [0; 2], Shelf::default());
        for round in 0..3_000 {
            let key = key(round % 2 == 0);
            let mut time_us = 1_700_000_000_000_000;
            let (mut embryo, mut log) = (Embryo::new(key, time_us), Pool::default());
            for _ in 0..stream.below(24) {
                let _ = embryo.take(&packet(&mut stream, key.is_tcp(), time_us), &mut log);
                time_us += stream.below(100_000);
            }
            let mut pool = Pool::default();
            let flow = embryo.grown(&embryo.copy_entries(&log), &mut pool);
            for side in [0, 1] {
                let glance = Glance::of(&embryo, side, &log, 1);
                let around =
                    Around { flow: &flow, side, pool: &pool, shelf: &shelf, stride: 1, with_echoed: false };
                let own = Own::read(&around);
                compared += own.points.len();
                assert_eq!((glance.own.points, glance.own.lengths), (own.points, own.lengths));
                assert_eq!(format!("{:?}", glance.rtt), format!("{:?}", flow.sides[1 - side].rtt));
                assert_eq!(trips(&embryo, side, &log, How::Timed), around::trips(&around, How::Timed));
            }
            if let (false, Some(sides)) = (key.is_tcp(), utp_sides(&embryo, &log)) {
                let is_utp = flow.is_utp(|side| stamps_follow_time(side, &pool), |_| false);
                assert_eq!(sides, [is_utp; 2]);
                judged[usize::from(is_utp)] += 1;
            }
        }
        assert!(compared > 20_000 && judged[0] > 300, "{compared} {judged:?}");
    }
}
