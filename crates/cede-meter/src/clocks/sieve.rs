//! Samples that say nothing of a queue: of packets that were overtaken, and what a receiver said that read or acknowledged them late.
//!
//! Sources: a queue keeps packets in order, so one that arrives behind a later one was held up elsewhere; RFC 4737 tells such
//! packets by the same rule. The difference in a uTP header (BEP 29) ends when the receiver reads the packet, which on a busy
//! machine is milliseconds after it arrived. By the observer's clock it is seen when that was, for receivers near the
//! observer as those of the GLOBECOM 2013 paper are: the difference less the direct reading is the receiver's clock less the
//! observer's, a constant, and what the packet waited to be read. A TCP acknowledgement's clock less the segment's has in it what the
//! acknowledgement waited for, in the same way: while its socket is in use, and that of a small message until a program reads it.
//!
//! **What it leaves out.** Receivers whose answers vary throughout (some measure when they answer, not when they read), and a long
//! queue between observer and receiver: there nothing is left out, and the estimates disagree. Packets that overtake others within a
//! tick of TCP's clock.
//!
//! **How it was validated.** Synthetic series (below); the simulated world with packets held back
//! (`cede-repro/tests/bufferbloat.rs`); captures of receivers without a processor to themselves (`docs/bufferbloat.md`).

use crate::clocks::clock::Point;
use core::ops::Range;

/// A clock that is behind for more packets than that was set back.
const OVERTAKERS_MAX: usize = 32;
/// So few packets whose stamps are ahead by this much of those before them and behind them were not stamped by the sender's clock: they
/// were altered on the way, or are somebody else's. No base is to be counted from them.
const STRAYS_MAX: usize = 3;
const STRAY_US: f64 = 200_000.0;
/// Answers are compared within so long, and those that come this much later than the promptest tenth, and a tick of the clock that they
/// are stamped by, were late. Two clocks do not drift apart by that meanwhile. Where answers are many, a shorter time tells more exactly,
/// of those that are left.
const WINDOWS: [Window; 2] = [Window { us: 10e6, late_us: 1_000.0 }, Window { us: 1e6, late_us: 250.0 }];
/// So many answers at least.
const ANSWERS_MIN: usize = 8;
const PROMPT_PART: usize = 10;
/// What waits for a processor shows by a part of the answers that are prompt, and by half of them that are not much later.
const WAIT_US_MAX: f64 = 10_000.0;
const PARTS: usize = 4;
/// What is later than that was stamped by another clock, as of a connection that came later between the same sockets: nobody waits so long
/// for what is kept.
const CLOCK_US_MIN: f64 = 10e6;

/// For how long answers are compared, and how much later than others one is late.
#[derive(Clone, Copy, Debug)]
struct Window {
    us: f64,
    late_us: f64,
}

/// The packets that others overtook, by number, and those whose stamps are of no clock: `points` are arrivals, and how much later each
/// is than its stamp.
pub(crate) fn overtaken(points: &[Point]) -> Vec<usize> {
    let (mut found, mut behind) = (Vec::new(), Vec::new());
    let mut newest = f64::NEG_INFINITY;
    for (k, point) in points.iter().enumerate() {
        let sent = point.t - point.x;
        if sent < newest && behind.len() < OVERTAKERS_MAX {
            behind.push(k);
            continue;
        }
        if !behind.is_empty() {
            if let Some(strays) = strays(points, &behind) {
                found.extend(strays);
            } else if sent >= newest {
                // The order is there again; or it was no packet that was behind, but the clock.
                found.append(&mut behind);
            }
            behind.clear();
        }
        newest = sent;
    }
    match strays(points, &behind) {
        Some(strays) => found.extend(strays),
        None => found.append(&mut behind),
    }
    found
}

/// The numbers of those that packets are behind, where they are the strays: few that are far ahead of those before them, with which the many
/// behind them are in line.
fn strays(points: &[Point], behind: &[usize]) -> Option<Range<usize>> {
    let end = *behind.first().filter(|_| behind.len() > STRAYS_MAX)?;
    let before = |at: usize| at.checked_sub(1).map(|before| points[before]);
    let falls = |from: &usize| before(*from).is_none_or(|before| before.x - points[*from].x > STRAY_US);
    let from = (end.saturating_sub(STRAYS_MAX)..end).rev().find(falls)?;
    let sent = |point: Point| point.t - point.x;
    let is_in_line = before(from).is_none_or(|before| sent(points[end]) >= sent(before));
    (is_in_line && points[end].x - points[end - 1].x > STRAY_US).then_some(from..end)
}

/// Takes out what is told of the points with these numbers.
pub(crate) fn leave_out<T>(values: &mut Vec<T>, numbers: &[usize]) {
    if numbers.is_empty() {
        return;
    }
    let (mut numbers, mut k) = (numbers.iter().peekable(), 0);
    values.retain(|_| {
        let is_kept = numbers.next_if(|&&number| number == k).is_none();
        k += 1;
        is_kept
    });
}

/// Takes out what is told of packets that came at these times.
pub(crate) fn leave_out_at<T>(told: &mut Vec<T>, times: &[f64], at: impl Fn(&T) -> f64) {
    if !times.is_empty() {
        told.retain(|one| times.binary_search_by(|t| t.total_cmp(&at(one))).is_err());
    }
}

/// Takes out of `echoed`, what a receiver said of packets by the time of their arrival, what it said late by its clock of such ticks, and
/// what it said of packets that were overtaken.
pub(crate) fn leave_out_late(echoed: &mut Vec<Point>, direct: &[Point], overtaken_t: &[f64], tick_us: f64) {
    leave_out_at(echoed, overtaken_t, |point| point.t);
    for window in WINDOWS {
        let late = late(echoed, direct, tick_us, window);
        leave_out(echoed, &late);
    }
}

fn late(echoed: &[Point], direct: &[Point], tick_us: f64, within: Window) -> Vec<usize> {
    let (mut late, mut window) = (Vec::new(), Vec::new());
    let mut packets = direct.iter().peekable();
    let mut began = f64::NEG_INFINITY;
    for (k, answer) in echoed.iter().enumerate() {
        if answer.t - began > within.us {
            close(&mut window, &mut late, within.late_us + tick_us);
            began = answer.t;
        }
        let mut packet = None;
        while let Some(next) = packets.next_if(|next| next.t <= answer.t) {
            packet = Some(next);
        }
        if let Some(packet) = packet.filter(|packet| packet.t == answer.t) {
            window.push((k, answer.x - packet.x));
        }
    }
    close(&mut window, &mut late, within.late_us + tick_us);
    late
}

/// Ends a window of answers, each with the time by which the receiver's clock was ahead when it read the packet.
fn close(window: &mut Vec<(usize, f64)>, late: &mut Vec<usize>, late_us: f64) {
    if window.len() >= ANSWERS_MIN {
        let mut ahead: Vec<f64> = window.iter().map(|answer| answer.1).collect();
        let tenth = ahead.len() / PROMPT_PART;
        let prompt = *ahead.select_nth_unstable_by(tenth, f64::total_cmp).1;
        let middle = ahead.len() / 2;
        let median = *ahead.select_nth_unstable_by(middle, f64::total_cmp).1;
        let is_late =
            |answer: &&(usize, f64)| answer.1 - prompt > late_us && answer.1 - prompt < CLOCK_US_MIN;
        let prompt_answers = window.len() - window.iter().filter(is_late).count();
        if prompt_answers * PARTS >= window.len() && median - prompt <= WAIT_US_MAX {
            late.extend(window.iter().filter(is_late).map(|answer| answer.0));
        }
    }
    window.clear();
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    /// A packet each 10 ms, through a queue that grows.
    fn in_order(count: u32) -> Vec<Point> {
        let at = |k: u32| (f64::from(k) * 10_000.0, f64::from(k % 100) * 50.0);
        (0..count).map(at).map(|(sent, queue)| Point { t: 5e15 + sent + queue, x: 7e6 + queue }).collect()
    }

    #[test]
    fn packets_that_were_held_back_are_told_from_a_clock_that_was() {
        let mut points = in_order(500);
        assert!(overtaken(&points).is_empty());
        // Two are held back: one by 35 ms, one at the end for ever.
        for (k, held_us) in [(100, 35_000.0), (497, 35_000.0)] {
            points[k].t += held_us;
            points[k].x += held_us;
        }
        points.sort_by(|a, b| a.t.total_cmp(&b.t));
        assert_eq!(overtaken(&points), [103, 499]);
        let mut numbers: Vec<usize> = (0..500).collect();
        leave_out(&mut numbers, &[103, 499]);
        assert_eq!((numbers.len(), numbers.contains(&103), numbers.last()), (498, false, Some(&498)));
        // A clock that is set back by two seconds is behind for good.
        let mut points = in_order(500);
        points[200..].iter_mut().for_each(|point| point.x += 2e6);
        assert!(overtaken(&points).is_empty());
    }

    #[test]
    fn stamps_of_no_clock_are_told_from_a_clock_that_was_set() {
        for ahead_us in [0.3e6, 9e6, 1e9] {
            for (from, count) in [(0, 1), (1, 3), (200, 1), (200, 3), (470, 2)] {
                let mut points = in_order(500);
                points[from..from + count].iter_mut().for_each(|point| point.x -= ahead_us);
                let strays: Vec<usize> = (from..from + count).collect();
                assert_eq!(overtaken(&points), strays, "{ahead_us} {from}");
                // Behind others the same says nothing of these.
                points[from..from + count].iter_mut().for_each(|point| point.x += 2.0 * ahead_us);
                assert_eq!(overtaken(&points), if from == 0 { vec![] } else { strays });
            }
        }
        // A clock that runs ahead for longer was set, and set back; so many packets are no strays.
        let mut points = in_order(500);
        points[200..300].iter_mut().for_each(|point| point.x -= 9e6);
        assert!(overtaken(&points).is_empty());
        // What comes after a silence finds a queue that has drained.
        let mut points = in_order(500);
        points[..200].iter_mut().for_each(|point| (point.t, point.x) = (point.t - 2e6, point.x + 2e6));
        assert!(overtaken(&points).is_empty());
    }

    /// A system's clock of milliseconds acknowledges a packet each 10 ms at once, but one of ten up to a millisecond later.
    #[test]
    fn what_was_acknowledged_a_little_late_is_left_out_where_answers_are_many() {
        let (direct, mut stream) = (in_order(3_000), Stream::named(10, "late"));
        let mut late_by = |part: f64| {
            let late_us: Vec<f64> =
                (0..3_000)
                    .map(|_| {
                        if stream.chance(part) { 400.0 + 600.0 * stream.unit() } else { 10.0 * stream.unit() }
                    })
                    .collect();
            let stamp = |at: f64| (at / 1e3).floor() * 1e3;
            let said = |(point, late_us): (&Point, &f64)| {
                // It gains 100 ppm, so that more than a second tells less.
                let clock = stamp((point.t - 5e15) * (1.0 + 1e-4) + late_us);
                Point { t: point.t, x: point.x + 3e6 + clock - (point.t - 5e15) }
            };
            let mut echoed: Vec<Point> = direct.iter().zip(&late_us).map(said).collect();
            leave_out_late(&mut echoed, &direct, &[], 1e3);
            let is_left =
                |k: &usize| echoed.binary_search_by(|point| point.t.total_cmp(&direct[*k].t)).is_ok();
            let left = |is_late: bool| {
                (0..3_000).filter(|&k| (late_us[k] > 100.0) == is_late).filter(is_left).count()
            };
            (left(false), left(true), late_us.iter().filter(|us| **us > 100.0).count())
        };
        let (prompt, late, all_late) = late_by(0.1);
        assert!(prompt + all_late >= 2_990 && late * 4 < all_late * 3, "{prompt} {late} of {all_late}");
        // Where most is late by as much, there is a queue behind the observer.
        let (prompt, late, all_late) = late_by(0.9);
        assert!(prompt + all_late >= 2_990 && late * 10 >= all_late * 9, "{prompt} {late} of {all_late}");
    }

    /// A heartbeat of ten a second, most of which a program reads after some milliseconds, as a loaded machine lets it.
    #[test]
    fn a_small_message_is_acknowledged_when_it_is_read() {
        let mut stream = Stream::named(11, "read");
        let direct: Vec<Point> = in_order(3_000).into_iter().step_by(10).collect();
        let mut late = 0;
        let mut said = |point: &Point| {
            let waits_us =
                if stream.chance(0.6) { 3_000.0 + stream.exponential(3_000.0) } else { 20.0 * stream.unit() };
            late += usize::from(waits_us > 100.0);
            let read = ((point.t - 5e15 + waits_us) / 1e3).floor() * 1e3;
            Point { t: point.t, x: point.x + 3e6 + read - (point.t - 5e15) }
        };
        let mut echoed: Vec<Point> = direct.iter().map(&mut said).collect();
        leave_out_late(&mut echoed, &direct, &[], 1e3);
        assert!(late > 150 && echoed.len() == direct.len() - late, "{late} {}", echoed.len());
    }

    #[test]
    fn what_was_read_late_is_left_out_where_most_is_not() {
        let mut stream = Stream::named(9, "late");
        let direct = in_order(3_000);
        // The receiver's clock is ahead by 3 s and gains 100 ppm; one of six packets it reads late.
        let mut told = |part: f64| {
            let mut wrong = 0;
            let mut said = |point: &Point| {
                let is_late = stream.chance(part);
                let late_us =
                    if is_late { 2_000.0 + stream.exponential(5_000.0) } else { stream.unit() * 100.0 };
                wrong += usize::from(is_late);
                Point { t: point.t, x: point.x + 3e6 + late_us + 1e-4 * (point.t - 5e15) }
            };
            let echoed: Vec<Point> = direct.iter().map(&mut said).collect();
            (echoed, wrong)
        };
        let (mut echoed, wrong) = told(0.16);
        leave_out_late(&mut echoed, &direct, &[direct[7].t], 0.0);
        assert!(
            wrong > 300 && (2_999 - wrong..=3_000 - wrong).contains(&echoed.len()),
            "{wrong} {}",
            echoed.len()
        );
        assert!(echoed.iter().all(|point| point.t != direct[7].t));
        let (mut echoed, wrong) = told(0.6);
        leave_out_late(&mut echoed, &direct, &[], 0.0);
        assert_eq!(echoed.len(), 3_000 - wrong, "while some are prompt");
        let (mut echoed, _) = told(0.9);
        leave_out_late(&mut echoed, &direct, &[], 0.0);
        assert_eq!(echoed.len(), 3_000, "who is hardly ever prompt is not known to be late");
    }
}
