//! A packet's own time on the slowest link of its path, which is no queue.
//!
//! Sources: Jacobson, "pathchar" (1997): the least delay of packets of each length grows with the length by the path's time
//! per octet. Dovrolis, Ramanathan, Moore, "What do packet dispersion techniques measure?" (INFOCOM 2001): packets that
//! queued behind each other leave at the distance of that time.
//!
//! Both must agree. The lower edge alone may be that of a queue which long packets always met; the distance alone does
//! not tell whether a packet waits for its own octets, as on a wire, or not, as in a token bucket that has saved
//! tokens for it: there long packets that meet no queue are as fast as short ones, and nothing is taken out.
//!
//! Where the two do not tell, as with a heartbeat, whose messages follow nobody, a length that was met at its least delay in
//! many different seconds has that delay as a base of its own ([`Floors`]): nothing but what a message always takes is in all of
//! these. Longer packets take at least as much.
//!
//! One packet of somebody else's before a flow's first long one makes that as late as its own octets would, where the flow never meets
//! an empty queue again. Other flows of the host that did are asked ([`crate::hosts::quickest`]).
//!
//! **What it leaves out.** Frames larger than packets. Several slow links in a row, of which the edge shows the sum and the
//! distance the slowest: they do not agree, and nothing is taken out. TCP clocks whose ticks are longer than a third of
//! the time in question.
//!
//! **How it was validated.** Synthetic wires and buckets (below), the recorded captures, and the simulated world beside its
//! own log (`docs/bufferbloat.md`).

use crate::clocks::clock::Point;
use crate::packet::length::Length;

/// Lengths that differ by less than this tell too little.
const APART_BYTES_MIN: f64 = 400.0;
/// How far edge and distance may differ, as a part. A full packet that always has just one other before it in a token
/// bucket would differ by the part that the short packet is of it, four in a hundred.
const AGREEMENT: f64 = 0.025;
/// A long packet must be at the edge, within this part of what it tells of it, that did not come behind its own flow: so long after the packet
/// before it had come, as a part of a full one's time, a bucket that this emptied has tokens for half of one again. The first one of many that never meet an empty
/// queue again does: others' packets would have to be before it that take as long as itself.
const AT_EDGE: f64 = 0.03;
const SILENCE: f64 = 0.5;
/// Pairs whose distances differ by no more than this part are at the same distance.
const SAME_DISTANCE: f64 = 0.1;
/// So many pairs of long packets must be at that distance, and no larger part of them may be nearer.
const PAIRS_MIN: usize = 5;
const PART_NEARER_MAX: f64 = 0.02;
const TICKS_MIN: f64 = 3.0;

/// Messages are at most so much longer than what set the base, and an octet takes no longer than on 500 kbit/s: what always
/// takes longer is a queue that is never empty.
const MESSAGE_UNITS: usize = 25;
const US_PER_OCTET_MAX: f64 = 16.0;
/// A message this near the least delay of its length, beside the tick, was as fast; in so many seconds that is the rule.
const AT_FLOOR_US: f64 = 100.0;
const FLOOR_SECONDS_MIN: u32 = 10;
/// How many lengths there are.
const UNITS: usize = 1 << u8::BITS;

/// What messages take longer than the packet whose delay was least, by their length.
pub(crate) struct Floors([f64; UNITS]);

impl Floors {
    /// As far as these packets tell.
    pub(crate) fn of(points: &[Point], lengths: &[Length], tick_us: f64) -> Option<Self> {
        let packets = || points.iter().zip(lengths.iter().map(|length| usize::from(length.units())));
        let (least, base) = packets().min_by(|a, b| a.0.x.total_cmp(&b.0.x))?;
        let are_messages = |units: usize| units > base && units <= base + MESSAGE_UNITS;
        if !packets().any(|(_, units)| are_messages(units)) {
            return None;
        }
        let mut floors = [f64::INFINITY; UNITS];
        packets().for_each(|(point, units)| floors[units] = floors[units].min(point.x - least.x));
        let mut seconds = [(f64::NEG_INFINITY, 0); UNITS];
        for (point, units) in packets() {
            let (last, count) = &mut seconds[units];
            if point.x - least.x <= floors[units] + AT_FLOOR_US + tick_us && point.t - *last >= 1e6 {
                (*last, *count) = (point.t, *count + 1);
            }
        }
        let mut known_us = 0.0_f64;
        for units in base + 1..UNITS {
            let longest_us = US_PER_OCTET_MAX * (Length::from_units(1).bytes() * (units - base + 1) as f64);
            let is_known = are_messages(units) && seconds[units].1 >= FLOOR_SECONDS_MIN;
            if is_known && floors[units] <= longest_us + tick_us {
                known_us = known_us.max(floors[units]);
            }
            floors[units] = known_us;
        }
        floors[..=base].fill(0.0);
        (known_us > AT_FLOOR_US).then_some(Self(floors))
    }

    /// What a packet of this length takes longer.
    pub(crate) fn excess_us(&self, length: Length) -> f64 {
        self.0[usize::from(length.units())]
    }
}

/// A path's time per octet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PerOctet {
    pub us: f64,
    /// The length of the packet whose delay was least.
    base: Length,
}

impl PerOctet {
    /// What a packet's octets take longer than those of the packet that set the base.
    pub(crate) fn excess_us(&self, length: Length) -> f64 {
        self.us * (length.bytes() - self.base.bytes())
    }

    /// Whether packets of these lengths may tell anything, of this or of [`Floors`].
    pub(crate) fn is_worth(lengths: &[Length]) -> bool {
        lengths.len() > PAIRS_MIN && lengths.iter().any(|length| *length != lengths[0])
    }

    /// The time per octet, where edge and distance of these packets tell the same: `points` are arrivals and delays, with an
    /// unknown constant in them and in ticks of `tick_us`.
    pub(crate) fn of(points: &[Point], lengths: &[Length], tick_us: f64) -> Option<Self> {
        let above = Above::of(points, lengths)?;
        let Above { least, base } = above;
        let longest = lengths.iter().copied().max()?;
        let apart_bytes = longest.bytes() - base.bytes();
        if longest == Length::of(u32::MAX) {
            return None;
        }
        let edge = above.slopes(points, lengths).reduce(f64::min)?;
        let distance = per_octet_by_distance(points, lengths, longest)?;
        let tick_per_octet = tick_us / apart_bytes;
        let agree = (edge - distance).abs() <= AGREEMENT * distance + tick_per_octet;
        let near = edge * (1.0 + AT_EDGE) + tick_per_octet;
        let silence_us = SILENCE * distance * longest.bytes() + tick_us;
        let tells = |(pair, &length): (&[Point], &Length)| {
            let is_at_edge = above.slope(&pair[1], length).is_some_and(|slope| slope <= near);
            is_at_edge && is_after_silence(pair, &least, silence_us)
        };
        let is_edge = || points.windows(2).zip(&lengths[1..]).any(tells);
        (agree && distance >= TICKS_MIN * tick_per_octet && is_edge()).then_some(Self { us: distance, base })
    }
}

/// By how much at least an octet makes packets of these lengths later than the one whose delay was least; `None` where they do not differ
/// enough.
pub(crate) fn least_per_octet(points: &[Point], lengths: &[Length]) -> Option<f64> {
    Above::of(points, lengths)?.slopes(points, lengths).reduce(f64::min)
}

/// The packet whose delay was least, above which others are.
#[derive(Clone, Copy)]
struct Above {
    least: Point,
    base: Length,
}

impl Above {
    fn of(points: &[Point], lengths: &[Length]) -> Option<Self> {
        let packets = points.iter().zip(lengths);
        packets.min_by(|a, b| a.0.x.total_cmp(&b.0.x)).map(|(&least, &base)| Self { least, base })
    }

    /// By how much an octet makes a packet later, if it has enough of them.
    fn slope(&self, point: &Point, length: Length) -> Option<f64> {
        let bytes = length.bytes() - self.base.bytes();
        (bytes >= APART_BYTES_MIN).then(|| (point.x - self.least.x) / bytes)
    }

    fn slopes(self, points: &[Point], lengths: &[Length]) -> impl Iterator<Item = f64> {
        points.iter().zip(lengths).filter_map(move |(point, &length)| self.slope(point, length))
    }
}

/// Whether the second of two packets was sent so long after the first had come: it has not waited for its own flow, nor for tokens that
/// this took.
fn is_after_silence(pair: &[Point], least: &Point, silence_us: f64) -> bool {
    pair[1].t - (pair[1].x - least.x) - pair[0].t > silence_us
}

/// The time per octet that the shortest usual distance between long packets tells.
fn per_octet_by_distance(points: &[Point], lengths: &[Length], longest: Length) -> Option<f64> {
    let is_long = |length: Length| length.bytes() >= 0.9 * longest.bytes();
    let pairs =
        points.windows(2).zip(lengths.windows(2)).filter(|(_, pair)| pair.iter().all(|&l| is_long(l)));
    let mut per_octet: Vec<f64> =
        pairs.map(|(points, pair)| (points[1].t - points[0].t) / pair[1].bytes()).collect();
    if per_octet.len() < PAIRS_MIN {
        return None;
    }
    let nearest = ((per_octet.len() as f64 * PART_NEARER_MAX) as usize).max(1);
    let (_, &mut low, rest) = per_octet.select_nth_unstable_by(nearest, f64::total_cmp);
    let mut same: Vec<f64> =
        rest.iter().copied().filter(|&value| value <= low * (1.0 + SAME_DISTANCE)).collect();
    if low <= 0.0 || same.len() < PAIRS_MIN {
        return None;
    }
    let middle = same.len() / 2;
    Some(*same.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    const US_PER_OCTET: f64 = 8.0;

    /// Packets through a wire of 1 Mbit/s, or through a bucket of that rate that has saved a packet: each is sent at a time,
    /// and its delay counts from there.
    fn send(packets: impl Iterator<Item = (f64, u32)>, is_wire: bool) -> (Vec<Point>, Vec<Length>) {
        let mut free_at = 0.0_f64;
        let through = |(sent, bytes): (f64, u32)| {
            let takes = f64::from(bytes) * US_PER_OCTET;
            let begins = free_at.max(sent);
            free_at = begins + takes;
            let seen = if is_wire { free_at } else { begins };
            (Point { t: seen, x: 5e6 + seen - sent }, Length::of(bytes))
        };
        packets.map(through).unzip()
    }

    /// A short packet, then bursts of three long ones.
    fn bursts() -> impl Iterator<Item = (f64, u32)> {
        let long = (0..60).map(|k| (1e6 + f64::from(k / 3) * 1e5, 1496));
        core::iter::once((0.0, 64)).chain(long)
    }

    #[test]
    fn a_wire_shows_its_time_per_octet_and_a_bucket_has_none() {
        let (points, lengths) = send(bursts(), true);
        let found = PerOctet::of(&points, &lengths, 0.0).unwrap();
        assert!((found.us - US_PER_OCTET).abs() < 0.01, "{found:?}");
        assert!((found.excess_us(Length::of(1496)) - 8.0 * 1432.0).abs() < 20.0);
        let (points, lengths) = send(bursts(), false);
        assert_eq!(
            PerOctet::of(&points, &lengths, 0.0),
            None,
            "the first of each burst is as fast as a short one"
        );
    }

    /// A flow's first packet is long, and all others meet a queue that is never empty again.
    #[test]
    fn one_long_packet_that_met_no_queue_tells_unless_it_came_behind_its_own_flow() {
        let alone = || [(0.0, 64), (5e5, 1496)].into_iter().chain(bursts().skip(1));
        for is_wire in [true, false] {
            let (mut points, lengths) = send(alone(), is_wire);
            points[2..].iter_mut().for_each(|point| point.x += 40_000.0);
            let found = PerOctet::of(&points, &lengths, 1_000.0);
            assert_eq!(found.is_some(), is_wire);
            assert!(found.is_none_or(|found| (found.us - US_PER_OCTET).abs() < 0.01), "{found:?}");
            points[0].t = points[1].t - 6_000.0;
            assert_eq!(PerOctet::of(&points, &lengths, 1_000.0), None, "it may have waited for that");
        }
    }

    /// Short packets take the tokens that a bucket of 1,600 octets had saved, and long ones follow each other from then on: the first waits for as
    /// many as it has more octets.
    #[test]
    fn a_packet_that_waits_for_the_tokens_of_its_own_flow_is_not_slow_by_itself() {
        const SAVED_BYTES: f64 = 1_600.0;
        let mut packets: Vec<(f64, u32)> = (0..22).map(|k| (1e6 + f64::from(k) * 50.0, 80)).collect();
        packets.extend((0..40).map(|k| (1e6 + 1_920.0 + f64::from(k) * 1e4, 1_496)));
        let (mut tokens, mut at) = (SAVED_BYTES, 0.0_f64);
        let through = |(sent, bytes): (f64, u32)| {
            let begins = sent.max(at);
            tokens = (tokens + (begins - at) / US_PER_OCTET).min(SAVED_BYTES) - f64::from(bytes);
            let seen = begins + (-tokens).max(0.0) * US_PER_OCTET;
            (tokens, at) = (tokens.max(0.0), seen);
            (Point { t: seen, x: 5e6 + seen - sent }, Length::of(bytes))
        };
        let (points, lengths): (Vec<Point>, Vec<Length>) = packets.into_iter().map(through).unzip();
        let first = points[22].x - points[0].x;
        assert!((first / (1_416.0 * US_PER_OCTET) - 1.0).abs() < 0.02, "{first}");
        assert_eq!(PerOctet::of(&points, &lengths, 0.0), None);
    }

    #[test]
    fn a_bucket_that_always_holds_a_packet_is_no_wire() {
        let (mut points, lengths) = send(bursts(), false);
        points[1..].iter_mut().for_each(|point| point.x += 1496.0 * US_PER_OCTET);
        assert_eq!(PerOctet::of(&points, &lengths, 0.0), None);
    }

    #[test]
    fn a_message_that_always_takes_longer_than_a_shorter_packet_has_a_base_of_its_own() {
        let mut stream = Stream::named(6, "messages");
        // Every other one meets a queue.
        let mut packet = |k: u32| {
            let queue_us = if k % 2 == 1 { stream.exponential(20_000.0) } else { 0.0 };
            let bytes = if k == 0 { 48 } else { 148 };
            let t = f64::from(k) * 200_000.0;
            (Point { t, x: 7e6 + queue_us + f64::from(bytes) * US_PER_OCTET }, Length::of(bytes))
        };
        let (points, lengths): (Vec<Point>, Vec<Length>) = (0..300).map(&mut packet).unzip();
        assert_eq!(PerOctet::of(&points, &lengths, 0.0), None);
        let found = Floors::of(&points, &lengths, 0.0).unwrap();
        let excess = [48, 148, 1_496].map(|bytes| found.excess_us(Length::of(bytes)));
        assert_eq!(excess.map(f64::round), [0.0, 800.0, 800.0]);
        assert!(Floors::of(&points[..40], &lengths[..40], 0.0).is_none(), "eight seconds");
        // A queue that is never empty.
        let mut standing = points;
        standing[1..].iter_mut().for_each(|point| point.x += 5_000.0);
        assert!(Floors::of(&standing, &lengths, 0.0).is_none());
    }

    #[test]
    fn what_does_not_tell_is_left_alone() {
        let (points, lengths) = send(bursts(), true);
        assert_eq!(PerOctet::of(&points, &lengths, 5_000.0), None, "ticks of 5 ms");
        assert_eq!(PerOctet::of(&points[1..], &lengths[1..], 0.0), None, "one length");
        assert_eq!(PerOctet::of(&points[..3], &lengths[..3], 0.0), None, "too few");
        assert_eq!(PerOctet::of(&[], &[], 0.0), None);
        // Long packets that always meet somebody else's queue of 40 ms or more.
        let mut stream = Stream::named(5, "queue");
        let (mut points, lengths) = send(bursts(), true);
        points[1..].iter_mut().for_each(|point| point.x += 40_000.0 + stream.exponential(20_000.0));
        assert_eq!(PerOctet::of(&points, &lengths, 0.0), None);
    }
}
