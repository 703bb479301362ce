//! How a direction's sender's clock runs against the observer's, from what its packets say besides their own stamps.
//!
//! Sources: RFC 7323 section 3.2: a segment echoes the latest stamp of the other end that its sender has. So it was sent no sooner
//! than the packet with that stamp had come, which the observer saw pass: what both are apart has a lower edge, however long the
//! queue is that the segment meets afterwards, and the edge's slope is the drift. Where that packet was not seen, the sender's clock is
//! held against the receiver's, and that one against the observer's (BEP 29's difference says the former in uTP).
//!
//! **What it leaves out.** A queue on the way to the sender that is never empty and grows or shrinks evenly.
//!
//! **How it was validated.** Synthetic echoes (below), recorded captures whose times were stretched (`docs/bufferbloat.md`), and the
//! simulated world's clocks (`cede-repro/tests/bufferbloat.rs`).

use crate::clocks::about::had_come;
use crate::clocks::around::{Around, growth_us_max};
use crate::clocks::clock::{self, Point, put_in_order};
use crate::clocks::rate;
use crate::clocks::shelf::Lent;
use crate::store::sample::Sample;

/// What is found of both clocks of a TCP connection.
#[derive(Default)]
pub(crate) struct Clocks {
    pub receiver_hz: Option<f64>,
    /// The drift of the receiver's against the observer's.
    pub receiver_ppm: Option<f64>,
    /// That of the sender's against the receiver's, where that is asked for.
    pub said_ppm: Option<f64>,
    /// That of the observer's against the sender's.
    pub found_ppm: Option<f64>,
}

impl Clocks {
    pub(crate) fn of(around: &Around<'_>, tick_us: f64, direct: &[Point]) -> Self {
        if !around.with_echoed && !around.is_long(&around.to().direct) {
            return Self::default();
        }
        let receiver = Receiver::of(around);
        let by_echoes = receiver.sender_ppm(around, tick_us, direct);
        let is_alike = by_echoes.is_none() && receiver.hz.is_some_and(|hz| 1e6 / hz == tick_us);
        let said_ppm = if is_alike { reverse_drift(around, tick_us, direct) } else { None };
        let (receiver_hz, receiver_ppm) = (receiver.hz, receiver.drift_ppm());
        let by_both = said_ppm.zip(receiver_ppm).map(|(said, receiver)| receiver - said);
        Self { receiver_hz, receiver_ppm, said_ppm, found_ppm: by_echoes.or(by_both) }
    }
}

/// The clock of who receives a direction.
pub(crate) struct Receiver<'a> {
    /// Ticks per second.
    pub hz: Option<f64>,
    /// Its packets: when they were seen, and their stamps in ticks.
    pub stamps: Lent<'a>,
}

impl<'a> Receiver<'a> {
    pub(crate) fn of(around: &Around<'a>) -> Self {
        let stamps = around.unwrapped_if_many(&around.to().direct);
        let hz = rate::rate(&stamps, growth_us_max(&around.from().rtt), || None).hz();
        Self { hz, stamps }
    }

    /// The drift of the receiver's clock against the observer's.
    fn drift_ppm(mut self) -> Option<f64> {
        against_arrival(&mut self.stamps, 1e6 / self.hz?);
        clock::drift_ppm(&self.stamps)
    }

    /// The drift of the sender's. `direct` is by how much its packets came later than their stamps.
    fn sender_ppm(&self, around: &Around<'_>, tick_us: f64, direct: &[Point]) -> Option<f64> {
        let differences = around.all_if_long(&around.from().reverse);
        let sent = self.sent_after(&differences, tick_us, direct);
        clock::sharp_drift_ppm(&sent, tick_us).map(|ppm| -ppm)
    }

    /// The sender's packets: their stamps, less when those passed whose stamps they echo, by the latter. `differences` are of both
    /// stamps, by when the packet was seen.
    pub(crate) fn sent_after(&self, differences: &[Sample], tick_us: f64, direct: &[Point]) -> Vec<Point> {
        let (mut packets, mut sent) = (direct.iter().peekable(), Vec::with_capacity(differences.len()));
        for difference in differences {
            let t = difference.time_us as f64;
            while packets.next_if(|packet| packet.t < t).is_some() {}
            let Some(packet) = packets.peek().filter(|packet| packet.t == t) else { continue };
            let sent_us = packet.t - packet.x;
            let stamp = (sent_us / tick_us).round() as i64 as u32;
            if let Some(echoed) = self.seen_at(stamp.wrapping_sub(difference.raw)) {
                sent.push(Point { t: echoed, x: sent_us - echoed });
            }
        }
        // One that was held back comes behind those that echo more.
        sent.sort_by(|a, b| a.t.total_cmp(&b.t));
        sent
    }

    /// When a packet with a stamp, or else the last before it, was seen first, and the next one after it.
    pub(crate) fn seen_around(&self, stamp: u32) -> Option<(f64, f64)> {
        let first = self.stamps.first()?.x;
        let since = stamp.wrapping_sub(first as i64 as u32).cast_signed();
        let ticks = first + f64::from(since);
        let next = self.stamps.partition_point(|packet| packet.x <= ticks);
        let last = self.stamps[..next].last()?.x;
        let at = self.stamps[..next].partition_point(|packet| packet.x < last);
        Some((self.stamps.get(at)?.t, self.stamps.get(next).map_or(f64::INFINITY, |packet| packet.t)))
    }

    /// When the first packet with a stamp was seen.
    fn seen_at(&self, stamp: u32) -> Option<f64> {
        let first = self.stamps.first()?.x;
        let ticks = first + f64::from(stamp.wrapping_sub(first as i64 as u32));
        let at = self.stamps.partition_point(|packet| packet.x < ticks);
        self.stamps.get(at).filter(|packet| packet.x == ticks).map(|packet| packet.t)
    }
}

/// The drift that the queued direction itself shows, where the other direction does not tell: heartbeats are answered
/// after delays that vary. It is believed only where most seconds saw an empty queue ([`clock::drift_ppm`]), and where asked for
/// if the edge is sharp besides.
pub(crate) fn own_drift(direct: &[Point], must_be_sharp: bool) -> Option<f64> {
    const SECOND_US: f64 = 1e6;
    // Most flows are short: nothing is gathered for them.
    if !clock::is_long_enough(direct) {
        return None;
    }
    let mut least: Vec<Point> = Vec::new();
    for point in direct {
        match least.last_mut() {
            Some(last) if (last.t / SECOND_US).floor() == (point.t / SECOND_US).floor() => {
                if point.x < last.x {
                    *last = *point;
                }
            }
            _ => least.push(*point),
        }
    }
    let ppm = clock::drift_ppm(&least)?;
    (!must_be_sharp || clock::sharp_drift_ppm(&least, 0.0).is_some()).then_some(ppm)
}

/// In uTP the same stands in the difference that the sender says. `asked` are the receiver's own packets, which that is about.
pub(crate) fn said_drift(around: &Around<'_>, direct: &[Point], asked: &[Point]) -> Option<f64> {
    let said = around.unwrapped_if_long(&around.to().echo);
    let told = |mut said: Vec<Point>| {
        put_in_order(&mut said);
        clock::known_drift_ppm(&said, 0.0)
    };
    let sure = when_asked(&said, direct, asked, true);
    // A receiver that sends as rarely as its acknowledgements are asked for is believed not to lose all of them.
    let is_long = clock::span_s(&sure) * 2.0 > clock::span_s(&said);
    told(sure).or_else(|| if is_long { None } else { told(when_asked(&said, direct, asked, false)) })
}

/// A difference comes with a packet of the sender's, behind its queue, and is that of the last of the receiver's packets that had come
/// when it was sent: with a long queue not the last that was seen before, and where the receiver is silent one of long ago. So it is put
/// where the observer saw that one. It came with one of the packets up to the next difference, and that one may be lost: where
/// this leaves open for long which one it is of, it is left out.
pub(crate) fn when_asked(said: &[Point], direct: &[Point], asked: &[Point], may_be_lost: bool) -> Vec<Point> {
    /// What drifts make in this time is within what they are known to.
    const OPEN_US_MAX: f64 = 1e6;
    let (mut rest, [mut early, mut late]) = (direct, [0; 2]);
    let mut groups = said.chunk_by(|a, b| a.t == b.t).peekable();
    let mut moved = Vec::with_capacity(said.len());
    while let Some(group) = groups.next() {
        let until = groups.peek().map_or(f64::INFINITY, |next| next[0].t);
        let behind = |t: f64| move |packet: &&Point| packet.t <= t;
        rest = &rest[rest.iter().take_while(behind(group[0].t)).count()..];
        let with = &rest[..rest.iter().take_while(behind(until)).count()];
        // Each came with one of its own.
        let Some(spare) = with.len().checked_sub(group.len()) else { continue };
        for (k, point) in group.iter().enumerate() {
            early = last_that_came(asked, early, &with[k], point);
            late = last_that_came(asked, late, &with[k + spare], point);
            let open =
                [early.saturating_sub(may_be_lost.into()), early, late].map(|number| asked.get(number));
            if let [Some(from), Some(at), Some(to)] = open
                && to.t - from.t <= OPEN_US_MAX
            {
                moved.push(Point { t: at.t, x: point.x });
            }
        }
    }
    moved
}

/// The number of the last packet from a number on that had come to a packet's sender when it sent that, and had taken as long as it says.
fn last_that_came(asked: &[Point], mut number: usize, packet: &Point, said: &Point) -> usize {
    let had_come = |asked: &Point| asked.t <= said.t && had_come(asked, packet, said);
    while asked.get(number + 1).is_some_and(had_come) {
        number += 1;
    }
    number
}

/// TSval less TSecr in what the sender says: its clock against the receiver's.
fn reverse_drift(around: &Around<'_>, tick_us: f64, direct: &[Point]) -> Option<f64> {
    let whole = Around { stride: 1, ..*around };
    let mut points = whole.unwrapped_if_long(&around.from().reverse);
    points.iter_mut().for_each(|point| point.x *= tick_us);
    when_said(&mut points, direct);
    clock::sharp_drift_ppm(&points, tick_us)
}

/// What a sender says of its clock it knew before its packet had queued: from the time at which it was seen to that at which it
/// was said.
fn when_said(said: &mut [Point], direct: &[Point]) {
    let least = direct.iter().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let mut packets = direct.iter().peekable();
    for point in &mut *said {
        while packets.next_if(|packet| packet.t < point.t).is_some() {}
        point.t -= packets.peek().map_or(0.0, |packet| packet.x - least);
    }
    put_in_order(said);
}

/// From ticks to how much later they were seen.
pub(crate) fn against_arrival(points: &mut [Point], tick_us: f64) {
    points.iter_mut().for_each(|point| point.x = point.t - point.x * tick_us);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::length::Length;
    use cede_units::Stream;

    const TICK_US: f64 = 1_000.0;
    const HEARTBEAT_US: f64 = 200_000.0;

    /// A heartbeat whose clock the observer's is ahead of by `ppm`, behind a queue of four to six seconds. Each message is answered at once,
    /// and the answer is there 10 ms later.
    fn found_ppm(ppm: f64, seconds: u32) -> Option<f64> {
        let long_us = |k: u32, any: f64| 5e6 + 1e6 * (f64::from(k) / 37.0).sin() + any * 12_000.0;
        found_behind(ppm, (seconds * 5, HEARTBEAT_US), 10_000.0, long_us)
    }

    /// So many messages, one each so often, behind a queue that is as long as told by their number and by chance.
    fn found_behind(
        ppm: f64,
        (count, period_us): (u32, f64),
        back_us: f64,
        queue_us: impl Fn(u32, f64) -> f64,
    ) -> Option<f64> {
        let mut stream = Stream::named(8, "echoes");
        let (from_us, late) = (1.7e15, 1.0 - ppm / 1e6);
        let ticks = |us: f64| (us / TICK_US).floor();
        // When each message is sent and seen, by the observer's clock.
        let message = |k: u32| {
            let sent_us = f64::from(k) * period_us / late;
            (sent_us, (sent_us + queue_us(k, stream.unit())).round())
        };
        let messages: Vec<(f64, f64)> = (0..count).map(message).collect();
        let mut seen: Vec<f64> = messages.iter().map(|message| message.1).collect();
        seen.sort_by(f64::total_cmp);
        let stamps: Vec<Point> =
            seen.iter().map(|us| Point { t: from_us + us, x: ticks(*us) + 4e9 }).collect();
        let receiver = Receiver { hz: Some(1e3), stamps: stamps.into() };
        let (mut direct, mut differences) = (Vec::new(), Vec::<Sample>::new());
        for (sent_us, seen_us) in messages {
            let stamp = ticks(sent_us * late) + 7e6;
            direct.push(Point { t: from_us + seen_us, x: from_us + seen_us - stamp * TICK_US });
            let there = seen.partition_point(|us| us + back_us <= sent_us);
            let Some(echoed) = there.checked_sub(1) else { continue };
            let raw = (stamp - ticks(seen[echoed]) - 4e9) as i64 as u32;
            differences.push(Sample { time_us: (from_us + seen_us) as u64, raw, length: Length::default() });
        }
        differences.sort_by_key(|difference| difference.time_us);
        direct.sort_by(|a, b| a.t.total_cmp(&b.t));
        let mut least: Vec<Sample> = Vec::new();
        for second in differences.chunk_by(|a, b| a.time_us / 1_000_000 == b.time_us / 1_000_000) {
            least.extend(second.iter().min_by_key(|difference| difference.raw.cast_signed()));
        }
        let sent = receiver.sent_after(&least, TICK_US, &direct);
        clock::sharp_drift_ppm(&sent, TICK_US).map(|ppm| -ppm)
    }

    #[test]
    fn echoes_tell_the_drift_of_a_sender_whose_queue_is_never_empty() {
        for ppm in [-100.0, -30.0, 30.0, 60.0] {
            let found = found_ppm(ppm, 330);
            // Two milliseconds in all.
            assert!(found.is_some_and(|found| (found - ppm).abs() < 6.5), "{ppm}: {found:?}");
        }
        assert_eq!((found_ppm(0.0, 330), found_ppm(100.0, 50)), (None, None), "none, and too short");
    }

    /// A queue that is nearly as long as the time between two messages, as LEDBAT's of 100 ms is: the echo in each message is as old as
    /// the one is longer than the other, some milliseconds, and its age wanders as the queue does.
    #[test]
    fn echoes_whose_age_follows_a_queue_tell_no_drift() {
        const COUNT: u32 = 700;
        for wander_us in [-900.0, 900.0] {
            let later_us = |k: u32| if k < COUNT / 2 { 0.0 } else { wander_us };
            let queue_us = |k: u32, any: f64| 98_000.0 + later_us(k) - any * 20_000.0;
            let found = found_behind(0.0, (COUNT, 100_140.0), 50.0, queue_us);
            assert!(found.is_none_or(|ppm| ppm.abs() < 8.0), "{wander_us}: {found:?}");
        }
    }

    /// A sender behind a queue of six seconds says a difference of long ago, as the receiver, which only answers, has been silent since; what
    /// it sent meanwhile is not there yet.
    #[test]
    fn a_difference_is_of_a_packet_that_had_come_when_it_was_said() {
        const WAY_US: f64 = 20_000.0;
        const QUEUE_US: f64 = 6e6;
        const PPM: f64 = 100.0;
        let clock = |us: f64| us * (1.0 + PPM / 1e6) + 3e6;
        // Thrice within a moment every half a minute. Once all that is sent is lost, and then sent before the receiver's next one has come.
        let times =
            |begin: f64| (0..36).map(move |k| begin + f64::from(k / 3) * 30e6 + f64::from(k % 3) * 0.3e6);
        let asked: Vec<Point> = times(1e6).map(|t| Point { t, x: 5e5 }).collect();
        let is_seen = |sent: &f64| *sent < 30e6 || *sent > 40e6;
        let mut all_sent: Vec<f64> = times(1.1e6).chain([59e6]).filter(is_seen).collect();
        all_sent.sort_by(f64::total_cmp);
        let difference = |asked: &Point| clock(asked.t + WAY_US) - (asked.t - asked.x);
        let (mut direct, mut said, mut reported) = (Vec::new(), Vec::<Point>::new(), f64::NAN);
        for sent in all_sent {
            let seen = sent + WAY_US + QUEUE_US;
            direct.push(Point { t: seen, x: seen - clock(sent) });
            let last = |before: f64| asked.iter().rfind(|asked| asked.t <= before);
            let (Some(come), Some(passed)) = (last(sent - WAY_US), last(seen)) else { continue };
            if difference(come) != reported {
                reported = difference(come);
                said.push(Point { t: passed.t, x: reported });
            }
        }
        let found = clock::sharp_drift_ppm(&when_asked(&said, &direct, &asked, true), 0.0);
        assert!(found.is_some_and(|ppm| (ppm - PPM).abs() < 1.0), "{found:?}");
    }
}
