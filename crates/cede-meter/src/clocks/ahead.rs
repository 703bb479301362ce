//! Acknowledgements that a sender stamps ahead of time.
//!
//! Source: Linux's `tcp_output.c` (from 4.20 on). A connection that is paced (BBR, a limit that a program sets) keeps the time at which its next data
//! may leave, and whatever it sends is stamped with no earlier one: data, which leave then, and pure acknowledgements, which leave
//! at once. So those that follow data and carry the first new stamp may be ahead by up to what these data take at the
//! connection's pace, tenths of a second where it recovers; as soon as that time has come stamps are true again.
//! Delays counted from one of them are too long.
//!
//! It shows by acknowledgements of one stamp that come one after the other for longer than its tick, with nothing of the connection
//! between them, and by data of that stamp that come the one time sooner, the other time later. A queue may do the same to others now and then, by
//! somebody else's packets that got in between within a tick; nothing is lost there but what says the same as the data do.
//!
//! **What it leaves out.** A connection that shows it less than [`SHOWN_MIN`] times; messages as short as acknowledgements, which are taken for such;
//! samples thinned for want of memory may hide it.
//!
//! **How it was validated.** Synthetic connections (below); captures of the kernel's BBR and of paced CUBIC both ways beside the truth
//! (`docs/bufferbloat.md`).

use crate::clocks::around::Around;
use crate::clocks::clock::Point;
use crate::clocks::own::Own;
use crate::clocks::sieve;
use crate::packet::length::Length;

/// Packets of up to so much (units of eight octets) may be acknowledgements with addresses of IPv6 and a few options...
const ACK_UNITS_MAX: u8 = 15;
/// ... which make them so much longer than the shortest: three blocks of selective acknowledgement.
const OPTIONS_UNITS: u8 = 4;
/// The same stamp is seen for longer than it stands for.
const TICKS_MIN: f64 = 3.0;
/// Of fewer there is nothing to tell.
const ACKS_MIN: usize = 4;
/// Nor of so few packets: Linux paces from the tenth segment of data on, and most flows are short.
const PACKETS_MIN: usize = 32;
/// So often.
const SHOWN_MIN: usize = 2;
/// Packets of a direction that has data are longer on average.
const MEAN_BYTES_MIN: u64 = 120;

/// Whether a packet is as short as an acknowledgement; nothing where all are, or hardly any is: those that begin and end a connection are as
/// short, too.
fn acknowledges(lengths: &[Length]) -> Option<impl Fn(Length) -> bool + use<>> {
    if lengths.len() < PACKETS_MIN {
        return None;
    }
    let shortest =
        lengths.iter().map(|length| length.units()).min().filter(|units| *units <= ACK_UNITS_MAX)?;
    let is_ack = move |length: Length| length.units() <= shortest + OPTIONS_UNITS;
    let count = lengths.iter().filter(|length| is_ack(**length)).count();
    (ACKS_MIN..lengths.len()).contains(&count).then_some(is_ack)
}

/// Acknowledgements of one stamp that follow data.
struct Group {
    stamp: f64,
    first_t: f64,
    is_wide: bool,
}

/// How often a connection shows that it stamps ahead of time.
#[derive(Default)]
struct Shown {
    count: u32,
    /// How long behind its group data of the same stamp came, by their length.
    data: Vec<(Length, f64)>,
}

impl Shown {
    /// Whether it does. What data take by themselves is in the least of those of one length; within a tick no more comes on top.
    fn into_verdict(mut self, wide_us: f64) -> bool {
        self.data.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let later = |group: &[(Length, f64)]| group.iter().filter(|one| one.1 > group[0].1 + wide_us).count();
        let later: usize = self.data.chunk_by(|a, b| a.0 == b.0).map(later).sum();
        self.count as usize + later >= SHOWN_MIN
    }
}

/// The numbers of the packets that may be stamped ahead of time, where the connection shows that some are: `points` are stamps in ticks, by
/// when they were seen.
fn stamped_ahead(points: &[Point], lengths: &[Length], tick_us: f64) -> Vec<usize> {
    let Some(is_ack) = acknowledges(lengths) else { return Vec::new() };
    let wide_us = TICKS_MIN * tick_us;
    let (mut found, mut shown) = (Vec::new(), Shown::default());
    let (mut follows_data, mut group) = (false, None::<Group>);
    for (k, (point, &length)) in points.iter().zip(lengths).enumerate() {
        let is_ack = is_ack(length);
        let same = group.as_mut().filter(|group| group.stamp == point.x);
        match same {
            Some(group) if is_ack => {
                let is_wide = !group.is_wide && point.t - group.first_t > wide_us;
                (shown.count, group.is_wide) = (shown.count + u32::from(is_wide), group.is_wide || is_wide);
                found.push(k);
            }
            Some(last) => {
                shown.data.extend((!last.is_wide).then_some((length, point.t - last.first_t)));
                group = None;
            }
            None if is_ack && follows_data => {
                group = Some(Group { stamp: point.x, first_t: point.t, is_wide: false });
                found.push(k);
            }
            None => group = None,
        }
        follows_data = !is_ack;
    }
    if shown.into_verdict(wide_us) { found } else { Vec::new() }
}

/// Leaves out of a direction's own readings acknowledgements that may be stamped ahead of time, while readings are in such ticks.
pub(crate) fn leave_out_ahead(own: &mut Own, tick_us: f64) {
    let ahead = stamped_ahead(&own.points, &own.lengths, tick_us);
    sieve::leave_out(&mut own.points, &ahead);
    sieve::leave_out(&mut own.lengths, &ahead);
}

/// The stamps of the receiver's acknowledgements that may be ahead of time, each with when the last such one came.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Vec<(u32, f64)>);

impl Ahead {
    /// Of who receives a direction, whose clock has such ticks.
    pub(crate) fn of_receiver(around: &Around<'_>, tick_us: f64) -> Self {
        let totals = &around.to().totals;
        if totals.bytes < MEAN_BYTES_MIN * u64::from(totals.packets) {
            return Self::default();
        }
        let own = Own::read(&Around { side: 1 - around.side, ..*around });
        let numbers = stamped_ahead(&own.points, &own.lengths, tick_us);
        let mut stamps: Vec<(u32, f64)> = numbers
            .into_iter()
            .map(|k| own.points[k])
            .map(|point| (point.x as i64 as u32, point.t))
            .collect();
        // The last of each.
        stamps.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        stamps.dedup_by_key(|stamp| stamp.0);
        Self(stamps)
    }

    /// Whether the packet with this stamp that acknowledged what was seen at a time may be one of them, not the data that left at last.
    pub(crate) fn has(&self, stamp: u32, t: f64) -> bool {
        let found = self.0.binary_search_by_key(&stamp, |ahead| ahead.0);
        found.is_ok_and(|k| t <= self.0[k].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_units::Stream;

    const TICK_US: f64 = 1e3;

    /// A connection that sends a packet each time that its pace of `apart_us` allows, for a minute, and acknowledges another one each 24 ms,
    /// on an empty path. Its packets, whether each is an acknowledgement, and by how much it was stamped ahead of time.
    fn connection(apart_us: f64, is_paced: bool, seed: u64) -> (Vec<Point>, Vec<Length>, Vec<f64>) {
        let mut stream = Stream::named(seed, "ahead");
        let mut sent = Vec::new();
        let (mut data_at, mut ack_at, mut next_stamp) = (0.0_f64, 5e3_f64, 0.0_f64);
        while sent.len() < 2_000 {
            let is_ack = ack_at < data_at;
            let now = if is_ack { ack_at } else { data_at };
            let stamped = if is_paced { now.max(next_stamp) } else { now };
            sent.push((now, stamped, is_ack));
            if is_ack {
                ack_at += 23e3 + 2e3 * stream.unit();
            } else {
                next_stamp = now + apart_us;
                // A program has nothing to send at times.
                data_at = next_stamp + if stream.chance(0.3) { 2.0 * apart_us * stream.unit() } else { 0.0 };
            }
        }
        let points =
            sent.iter().map(|(now, stamped, _)| Point { t: 5e15 + now, x: (stamped / TICK_US).floor() });
        let lengths = sent.iter().map(|(.., is_ack)| Length::of(if *is_ack { 52 } else { 1_500 }));
        (points.collect(), lengths.collect(), sent.iter().map(|(now, stamped, _)| stamped - now).collect())
    }

    #[test]
    fn what_is_stamped_ahead_is_left_out_and_most_of_the_rest_is_not() {
        for (seed, apart_us) in [(1, 30e3), (2, 100e3), (3, 400e3)] {
            let (points, lengths, ahead_us) = connection(apart_us, true, seed);
            let found = stamped_ahead(&points, &lengths, TICK_US);
            let is_ahead = |k: &usize| ahead_us[*k] > TICK_US;
            let missed = (0..points.len()).filter(|k| is_ahead(k) && found.binary_search(k).is_err());
            assert_eq!(missed.count(), 0, "{apart_us}");
            let data = found.iter().filter(|&&k| lengths[k] == Length::of(1_500)).count();
            let (all, ahead) = (found.len(), found.iter().filter(|k| is_ahead(k)).count());
            assert!(data == 0 && ahead > 200 && all < 2 * ahead, "{apart_us} {data} {ahead} of {all}");
        }
    }

    #[test]
    fn who_does_not_pace_loses_nothing() {
        let (mut points, mut lengths, _) = connection(30e3, false, 4);
        assert!(stamped_ahead(&points, &lengths, TICK_US).is_empty());
        // Two acknowledgements of a tick once, with somebody else's packet between them.
        let after = lengths.windows(2).position(|pair| pair[0] > pair[1]).unwrap() + 1;
        points.insert(after + 1, Point { t: points[after].t + 12e3, ..points[after] });
        lengths.insert(after + 1, lengths[after]);
        assert!(stamped_ahead(&points, &lengths, TICK_US).is_empty());
    }

    #[test]
    fn packets_of_one_kind_are_passed_over() {
        let (points, mut lengths, _) = connection(100e3, true, 5);
        for bytes in [52, 1_500] {
            lengths.fill(Length::of(bytes));
            assert!(stamped_ahead(&points, &lengths, TICK_US).is_empty());
        }
        assert!(stamped_ahead(&[], &[], TICK_US).is_empty());
    }

    #[test]
    fn the_data_that_left_at_last_may_acknowledge() {
        let ahead = Ahead(vec![(7, 50.0), (9, 80.0)]);
        assert!(
            ahead.has(7, 49.0) && !ahead.has(7, 51.0),
            "what came after the last of them it did not acknowledge"
        );
        assert!(!ahead.has(8, 40.0) && ahead.has(9, 80.0));
    }
}
