//! Which packet of uTP a difference is about that its receiver says.
//!
//! Source: BEP 29: the difference is of the last packet that had come when it was said. So it is of what is acknowledged
//! beside it, where the next number is that of the next packet. And the stamps tell: by the receiver's clock a packet came at its stamp and
//! the difference, and the answer that says it was sent at its own stamp. So none is meant that would have come later, nor one whose
//! follower came before: that was as long behind it as the observer saw. What lies between observer and receiver, such as a queue in front of
//! the answer, makes the last one that was seen another.
//!
//! **What it leaves out.** Where numbers do not tell, an answer is late or packets were sent at one moment, and the queue grew from one to the
//! next, several are possible: by how much these differ is told.
//!
//! **How it was validated.** The simulated world with the observer's own uplink full (`cede-repro/tests/own_queue.rs`).

use crate::clocks::clock::{Point, put_in_order};
use crate::clocks::wraps::{Unwrap, WRAP};
use crate::store::pool::Pool;
use crate::store::samples::Series;
use crate::store::utp::packets_behind;

/// Both clocks have 32 bits, and are read a moment apart.
const MOMENT_US: f64 = 100.0;
/// Whoever answers at once does so within this.
const PROMPT_US: f64 = 1_000.0;
/// So many packets before the last that had come an answer may be about.
const NEAR_PACKETS: usize = 64;
/// Where delays of packets differ by less it is the same which of them an answer is about.
const OPEN_US_MAX: f64 = 1_000.0;

/// A difference, by when the last packet was seen before it was.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Said {
    pub point: Point,
    /// So many packets before that one the acknowledged one came, where the next came in its order.
    behind: Option<usize>,
}

impl Said {
    /// All that a receiver said.
    pub(crate) fn all(pool: &Pool, series: &Series) -> Vec<Self> {
        let (mut unwrap, mut said) = (Unwrap::default(), Vec::with_capacity(series.len()));
        pool.each(series, 1, |sample| {
            let point = Point::at(sample.time_us, unwrap.next(sample.raw));
            said.push(Self { point, behind: packets_behind(&sample) });
        });
        said
    }
}

/// What a difference is about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct About<'a> {
    /// The packet that says it.
    pub answer: &'a Point,
    pub said: &'a Said,
    /// All up to the packet that it is of.
    packets: &'a [Point],
    /// It is another one than the last that was seen.
    pub is_earlier: bool,
    /// So say the numbers.
    is_told: bool,
}

/// When a packet was sent, by its sender's clock.
fn stamp(packet: &Point) -> f64 {
    packet.t - packet.x
}

/// For how long a packet had been there when an answer was sent, if it took as long as is `said`; less than nothing where it had not come.
fn waited_us(packet: &Point, answer: &Point, said: &Point) -> f64 {
    let us = stamp(answer) - stamp(packet) - said.x;
    (us + MOMENT_US + WRAP / 2.0).rem_euclid(WRAP) - WRAP / 2.0
}

/// Whether a packet that took as long as is `said` had come when an answer was sent.
pub(crate) fn had_come(packet: &Point, answer: &Point, said: &Point) -> bool {
    waited_us(packet, answer, said) >= 0.0
}

/// Looks up what was `said`, each by when the last packet was seen before, and what it is about; nothing where no packet had come or no
/// answer was seen.
pub(crate) fn each<'a>(
    said: &'a [Said],
    answers: &'a [Point],
    packets: &'a [Point],
    mut take: impl FnMut(Option<About<'a>>),
) {
    let (mut answer, mut behind, mut at) = (0, 0, 0);
    for said in said {
        answer += answers[answer..].iter().take_while(|answer| answer.t < said.point.t).count();
        behind += packets[behind..].iter().take_while(|packet| packet.t <= said.point.t).count();
        let (Some(answer), Some(last)) = (answers.get(answer), behind.checked_sub(1)) else {
            take(None);
            continue;
        };
        let told = told(&packets[..=last], answer, said);
        let has_come = |at: usize| had_come(&packets[at], answer, &said.point);
        // Answers keep their order, and so do packets: it is near the one before.
        at = told.unwrap_or(if has_come(last) { last } else { at.min(last) });
        if told.is_none() {
            at -= (0..at.min(NEAR_PACKETS)).take_while(|back| !has_come(at - back)).count();
            at += packets[at + 1..=last]
                .iter()
                .take_while(|packet| had_come(packet, answer, &said.point))
                .count();
        }
        let (packets, is_earlier, is_told) = (&packets[..=at], at < last, told.is_some());
        take((is_told || has_come(at)).then_some(About { answer, said, packets, is_earlier, is_told }));
    }
}

/// The number of the packet that is acknowledged, of those up to the last that was seen; nothing where the stamps contradict, as where the next
/// one was lost on its way to the receiver.
fn told(packets: &[Point], answer: &Point, said: &Said) -> Option<usize> {
    let behind = said.behind?;
    let at = packets.len().checked_sub(behind + 1)?;
    let Some(follower) = packets.get(at + 1) else { return Some(at) };
    let waited_us = waited_us(&packets[at], answer, &said.point);
    (0.0..follower.t - packets[at].t + MOMENT_US).contains(&waited_us).then_some(at)
}

/// What was `said`, put where the packets were seen that it is about, where it is told well enough which they are.
pub(crate) fn put_where_seen(said: &[Said], answers: &[Point], packets: &[Point]) -> Vec<Point> {
    /// Who answers at once is told by fewer that are about earlier packets.
    const EARLIER_PART: usize = 20;
    let [mut open, mut earlier, mut known] = [0; 3];
    if said.iter().any(|said| said.behind != Some(0)) {
        each(said, answers, packets, |about| {
            open += usize::from(about.is_none_or(|about| !about.is_told));
            earlier += usize::from(about.is_some_and(|about| about.is_earlier));
            known += usize::from(about.is_some_and(|about| !about.is_told));
        });
    }
    // Whose clocks fit nothing is not understood.
    if earlier == 0 || known * 2 < open {
        return said.iter().map(|said| said.point).collect();
    }
    let mut moved = Vec::with_capacity(said.len());
    let are_many = earlier * EARLIER_PART >= said.len();
    each(said, answers, packets, |about| {
        let is_told = |about: &About<'_>| !about.is_earlier && !are_many || about.open_us() <= OPEN_US_MAX;
        moved.extend(about.filter(is_told).map(|about| Point { t: about.packet().t, x: about.said.point.x }));
    });
    put_in_order(&mut moved);
    // What was said again is about the same.
    moved.dedup_by_key(|point| point.t);
    moved
}

impl<'a> About<'a> {
    /// The packet that it is of.
    pub(crate) const fn packet(&self) -> &'a Point {
        &self.packets[self.packets.len() - 1]
    }

    /// By how much the delays of packets differ from that one's which it may be about as well.
    pub(crate) fn open_us(&self) -> f64 {
        let packet = self.packet();
        if self.is_told {
            return 0.0;
        }
        let waited_us = |packet: &Point| waited_us(packet, self.answer, &self.said.point) - MOMENT_US;
        let was_prompt = waited_us(packet) <= PROMPT_US;
        let (mut follower, mut open_us) = (packet, 0.0_f64);
        for before in self.packets.iter().rev().skip(1).take(NEAR_PACKETS) {
            let waited_us = waited_us(before);
            if was_prompt && waited_us > PROMPT_US {
                break;
            }
            if waited_us < follower.t - before.t {
                open_us = open_us.max((packet.x - before.x).abs());
            }
            follower = before;
        }
        open_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    const SENDERS_US: f64 = 7e6;
    const RECEIVERS_US: f64 = 4.2e9;
    const EPOCH_US: f64 = 1e15;

    /// A packet's arrival, by a sender whose clock is ahead of the observer's.
    fn seen(sent_us: f64, queue_us: f64, ahead_us: f64) -> Point {
        Point { t: EPOCH_US + sent_us + queue_us, x: queue_us - ahead_us }
    }

    /// A packet each 20 ms, or two at once, through a queue that grows and shrinks; answers to each after a while, behind a queue of up to a
    /// second: packets, answers, and what these say, by when the last packet was seen before.
    fn played(at_once: u32, late_us: f64) -> (Vec<Point>, Vec<Point>, Vec<Said>) {
        let mut stream = Stream::named(5, "about");
        let packet = |k: u32| {
            let (burst, place) = (f64::from(k / at_once), f64::from(k % at_once));
            let sent_us = burst * 20_000.0 * f64::from(at_once) + place * 15.0;
            let queue_us = 60_000.0 * (1.0 + (burst / 90.0).sin()) + place * 12_000.0;
            seen(sent_us, queue_us, SENDERS_US)
        };
        let packets: Vec<Point> = (0..3_000).map(packet).collect();
        let last = |t: f64| packets.partition_point(|packet| packet.t <= t) - 1;
        let mut answer = |packet: &Point| {
            let sent_t = packet.t + 30.0 + late_us * stream.unit();
            let own_us = 500_000.0 * (1.0 + ((sent_t - EPOCH_US) / 1e6).cos());
            (seen(sent_t - EPOCH_US, own_us, RECEIVERS_US), packets[last(sent_t)].x + RECEIVERS_US)
        };
        let mut answers: Vec<(Point, f64)> = packets.iter().map(&mut answer).collect();
        answers.sort_by(|a, b| a.0.t.total_cmp(&b.0.t));
        let said = |&(answer, x): &(Point, f64)| Said {
            point: Point { t: packets[last(answer.t)].t, x },
            behind: None,
        };
        // What is said again before another packet is seen counts once.
        let mut said: Vec<Said> = answers.iter().map(said).collect();
        said.dedup_by_key(|said| said.point.t);
        let answers = answers.into_iter().map(|answer| answer.0).collect();
        (packets, answers, said)
    }

    /// Every difference is that of the packet it is put at.
    fn assert_right(moved: &[Point], packets: &[Point]) {
        for point in moved {
            let at = packets.partition_point(|packet| packet.t < point.t);
            let off_us = point.x - RECEIVERS_US - packets[at].x;
            assert!(off_us.abs() <= OPEN_US_MAX, "{off_us} at {}", point.t);
        }
    }

    #[test]
    fn what_is_said_behind_a_queue_is_put_where_its_packet_was_seen() {
        for (late_us, least) in [(0.0, 9), (40_000.0, 5)] {
            let (packets, answers, said) = played(1, late_us);
            let moved = put_where_seen(&said, &answers, &packets);
            assert_right(&moved, &packets);
            // Answers that are sent later say less.
            assert!(moved.len() * 10 > said.len() * least, "{late_us}: {} of {}", moved.len(), said.len());
        }
    }

    #[test]
    fn of_packets_that_were_sent_at_one_moment_nothing_is_put_at_the_wrong_one() {
        let (packets, answers, said) = played(2, 0.0);
        let moved = put_where_seen(&said, &answers, &packets);
        assert_right(&moved, &packets);
        assert!(moved.len() * 10 < said.len(), "{} of {}", moved.len(), said.len());
        // The numbers tell which one.
        let number = |t: f64| packets.partition_point(|packet| packet.t < t);
        let is_of = |said: &Said| packets.iter().position(|packet| packet.x + RECEIVERS_US == said.point.x);
        let numbered =
            |said: &Said| Said { behind: is_of(said).map(|at| number(said.point.t) - at), ..*said };
        let said: Vec<Said> = said.iter().map(numbered).collect();
        let moved = put_where_seen(&said, &answers, &packets);
        assert_right(&moved, &packets);
        assert!(moved.len() * 10 > said.len() * 9, "{} of {}", moved.len(), said.len());
    }

    #[test]
    fn clocks_that_fit_nothing_and_acknowledgements_of_the_last_packet_move_nothing() {
        let (packets, answers, said) = played(1, 0.0);
        let unmoved: Vec<Point> = said.iter().map(|said| said.point).collect();
        // A receiver whose differences are of another clock than its stamps.
        let odd: Vec<Said> = said
            .iter()
            .map(|said| Said { point: Point { x: said.point.x + 2e9, ..said.point }, ..*said })
            .collect();
        let odd_points: Vec<Point> = odd.iter().map(|said| said.point).collect();
        assert_eq!(put_where_seen(&odd, &answers, &packets), odd_points);
        let of_last: Vec<Said> = said.iter().map(|said| Said { behind: Some(0), ..*said }).collect();
        assert_eq!(put_where_seen(&of_last, &answers, &packets), unmoved);
    }
}
