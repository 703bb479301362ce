//! How much of what is written a controller lets pass to the system's TCP.
//!
//! What one write hands over is one packet to the controller: it is acknowledged once all of it is. The system tells its smoothed
//! round-trip time alone, in which a queue that has run empty for two round trips hardly shows where few segments are under way: what
//! LEDBAT++ drains it for. What has come since it was asked last is taken out of it again.

use super::LOOKS;
use super::told::Told;
use cede_cc::{Allowance, Controller, Feedback, PacketFact, SendRecord, Sent, Snapshot, Timeout, run_timers};
use cede_units::{Duration, Instant};
use std::collections::VecDeque;

/// Fewer segments than these are never held back: the peer may delay a lone one's acknowledgement.
const MIN_SEGMENTS: u64 = 2;
/// Looks at a connection while it has been silent for once more as long, roughly.
const SILENCE_LOOKS: u64 = 16;
/// The system is asked at least so often of one that is held back.
const SELDOM: Duration = Duration::from_millis(100);

/// A controller over a connection of the system's.
pub(super) struct Steer {
    controller: Box<dyn Controller>,
    allowance: Allowance,
    mss_bytes: u32,
    /// What was written and has not been acknowledged, by rising number; whatever was written before is not in it.
    ledger: VecDeque<PacketFact>,
    /// Octets of all that is in the ledger.
    ledger_bytes: u64,
    next_number: u64,
    unacked_bytes: u64,
    delivered_bytes: u64,
    /// Somebody was held back since the system was asked last.
    was_held: bool,
    /// Packets with smaller numbers had been written when the losses were found that are being repaired.
    recover: u64,
    before: Told,
    /// When something was last acknowledged, or written after everything had been.
    heard_at: Instant,
}

impl Steer {
    pub(super) fn new(now: Instant, controller: Box<dyn Controller>, told: Told) -> Self {
        Self {
            allowance: controller.allowance(),
            controller,
            mss_bytes: told.mss_bytes.max(1),
            ledger: VecDeque::new(),
            ledger_bytes: 0,
            next_number: 0,
            unacked_bytes: told.unacked_bytes,
            delivered_bytes: 0,
            was_held: false,
            recover: 0,
            before: told,
            heard_at: now,
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }

    /// After how long the system is asked again: less and less often of a peer that takes nothing.
    pub(super) fn every(&self, now: Instant) -> Duration {
        let silence = now.since(self.heard_at);
        let often = (self.before.srtt / 4).clamp(*LOOKS.start(), *LOOKS.end());
        often.max((silence / SILENCE_LOOKS).min(SELDOM))
    }

    /// How many of so many octets may be written now, in whole segments where that is not all; none where they are too few to be worth one.
    pub(super) fn room(&mut self, wanted: usize) -> usize {
        let mss = u64::from(self.mss_bytes);
        let window = self.allowance.cwnd_bytes.max(MIN_SEGMENTS * mss);
        let room = window.saturating_sub(self.unacked_bytes);
        let wanted = wanted as u64;
        if room < wanted.min(mss) {
            self.was_held = true;
            return 0;
        }
        // The system sends what is short of a segment at once if so told, and the peer may delay what acknowledges it.
        let whole = room - room % mss;
        (if wanted > room { whole } else { wanted }) as usize
    }

    /// So many octets were written.
    pub(super) fn wrote(&mut self, now: Instant, octets: usize) {
        let bytes = u32::try_from(octets).unwrap_or(u32::MAX);
        if self.unacked_bytes == 0 {
            self.heard_at = now;
        }
        self.unacked_bytes += u64::from(bytes);
        let number = self.next_number;
        self.next_number += 1;
        let in_flight_bytes = self.unacked_bytes;
        let tag =
            self.controller.on_sent(&Sent { now, number, bytes, in_flight_bytes, retransmission: false });
        let record = SendRecord { delivered_bytes: self.delivered_bytes, ..SendRecord::default() };
        let fact = PacketFact { number, bytes, sent_at: now, retransmitted: false, tag, record };
        self.ledger.push_back(fact);
        self.ledger_bytes += u64::from(bytes);
        self.run_timers(now);
    }

    /// The system has told how the connection stands.
    pub(super) fn hear(&mut self, now: Instant, told: Told) {
        if told.mss_bytes > 0 && told.mss_bytes != self.mss_bytes {
            self.mss_bytes = told.mss_bytes;
            self.allowance = self.controller.on_mss(told.mss_bytes);
        }
        let acked_bytes = self.unacked_bytes.saturating_sub(told.unacked_bytes);
        if acked_bytes > 0 {
            self.heard_at = now;
        }
        self.unacked_bytes = told.unacked_bytes;
        self.delivered_bytes += acked_bytes;
        let acked = self.acknowledge();
        self.tell(now, told, acked_bytes, &acked);
        if told.timeouts > self.before.timeouts {
            self.time_out(now, told);
        }
        self.was_held = false;
        self.before = told;
        self.run_timers(now);
    }

    /// Takes the writes out of the ledger of which everything has been acknowledged.
    fn acknowledge(&mut self) -> Vec<PacketFact> {
        let mut acked = Vec::new();
        while let Some(first) = self.ledger.front().copied() {
            let behind = self.ledger_bytes - u64::from(first.bytes);
            if behind < self.unacked_bytes {
                break;
            }
            self.ledger.pop_front();
            self.ledger_bytes = behind;
            acked.push(first);
        }
        acked
    }

    /// The first segment that may be lost, once for each time that the system begins to repair.
    fn lost(&self, told: Told) -> Option<PacketFact> {
        let oldest =
            self.ledger.front().filter(|oldest| told.in_recovery && oldest.number >= self.recover)?;
        Some(PacketFact { bytes: oldest.bytes.min(self.mss_bytes), ..*oldest })
    }

    /// The controller hears what has arrived and what has not.
    fn tell(&mut self, now: Instant, told: Told, acked_bytes: u64, acked: &[PacketFact]) {
        let lost = self.lost(told);
        if acked_bytes == 0 && lost.is_none() {
            return;
        }
        let in_flight_bytes = told.unacked_bytes.saturating_sub(told.unsent_bytes);
        let rtt = Some(rtt_since(self.before, told)).filter(|rtt| acked_bytes > 0 && !rtt.is_zero());
        // What waits in the system's buffer is held back by its own window, or the peer's.
        let is_full = told.unsent_bytes <= u64::from(2 * self.mss_bytes);
        let feedback = Feedback {
            now,
            acked,
            lost: lost.as_slice(),
            acked_bytes,
            lost_bytes: lost.map_or(0, |fact| u64::from(fact.bytes)),
            in_flight_before_bytes: in_flight_bytes + acked_bytes,
            in_flight_bytes,
            delivered_bytes: self.delivered_bytes,
            next_number: self.next_number,
            rtt,
            rtt_min: rtt,
            srtt: told.srtt,
            one_way_delay_ns: None,
            reverse_delay_ns: None,
            ce_marked: u32::from(told.is_marked && !self.before.is_marked),
            app_limited: !(self.was_held && is_full),
            in_recovery: told.in_recovery && lost.is_none(),
        };
        self.allowance = self.controller.on_feedback(&feedback);
        if lost.is_some() {
            self.recover = self.next_number;
        }
    }

    fn time_out(&mut self, now: Instant, told: Told) {
        let timeout = Timeout {
            now,
            in_flight_bytes: told.unacked_bytes.saturating_sub(told.unsent_bytes),
            consecutive: u32::from(told.timeouts),
            next_number: self.next_number,
            idle: false,
        };
        self.allowance = self.controller.on_timeout(&timeout);
    }

    fn run_timers(&mut self, now: Instant) {
        self.allowance = run_timers(&mut *self.controller, now).unwrap_or(self.allowance);
    }
}

/// The mean of the round-trip times between two moments, the newest with the most weight: each has moved the smoothed one by an eighth of what
/// it was away (RFC 6298, section 2.3). Segments that acknowledged nothing have not, and leave something of the smoothing in it.
fn rtt_since(before: Told, told: Told) -> Duration {
    let came = told.segments_in.wrapping_sub(before.segments_in);
    if came == 0 || before.srtt.is_zero() {
        return told.srtt;
    }
    let (old, new) = (before.srtt.as_nanos() as f64, told.srtt.as_nanos() as f64);
    let rtt = old + (new - old) / (1.0 - 0.875_f64.powf(f64::from(came)));
    Duration::from_nanos(rtt as u64).max(told.min_rtt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ControllerChoice;
    use crate::yielding::{OFFERED, on_rtt, path};

    const MSS: u32 = 1_448;
    /// Octets per millisecond of the narrowest link: 5 Mbit/s.
    const RATE: f64 = 625.0;
    /// The round trip without a queue.
    const TRIP_MS: u64 = 40;
    const TICK_MS: u64 = 10;

    fn steer(name: &str) -> Steer {
        let choice = on_rtt(ControllerChoice::named(name)).unwrap();
        let told = Told { mss_bytes: MSS, srtt: Duration::from_millis(TRIP_MS), ..Told::default() };
        Steer::new(Instant::from_millis(1_000), choice.build(&path(MSS)).unwrap(), told)
    }

    /// The system's TCP and a link, as long as nothing is lost: what is written is in the link's queue at once.
    #[derive(Default)]
    struct World {
        queue: f64,
        /// Octets that have left the queue, tick by tick, and are under way.
        passed: VecDeque<u64>,
        unacked: u64,
        srtt_ms: f64,
    }

    impl World {
        fn tick(&mut self, written: u64) -> Told {
            self.queue += written as f64;
            self.unacked += written;
            let served = self.queue.min(RATE * TICK_MS as f64);
            self.queue -= served;
            self.passed.push_back(served as u64);
            if self.passed.len() as u64 > TRIP_MS / TICK_MS {
                self.unacked -= self.passed.pop_front().unwrap();
            }
            let rtt = TRIP_MS as f64 + self.queue / RATE;
            self.srtt_ms = if self.srtt_ms == 0.0 { rtt } else { self.srtt_ms * 0.75 + rtt * 0.25 };
            let srtt = Duration::from_micros((self.srtt_ms * 1e3) as u64);
            Told { unacked_bytes: self.unacked, mss_bytes: MSS, srtt, ..Told::default() }
        }
    }

    /// Writes whatever it may for so long: the mean queue in ms and the share of the link that was used, of the last half.
    fn run(steer: &mut Steer, world: &mut World, seconds: u64) -> (f64, f64) {
        let (mut queue, mut used, ticks) = (0.0, 0, seconds * 1_000 / TICK_MS);
        for tick in 0..ticks {
            let now = Instant::from_millis(1_000 + tick * TICK_MS);
            let mut written = 0;
            loop {
                let room = steer.room(65_536);
                if room == 0 {
                    break;
                }
                steer.wrote(now, room);
                written += room as u64;
            }
            let told = world.tick(written);
            steer.hear(now, told);
            if tick >= ticks / 2 {
                queue += world.queue / RATE;
                used += world.passed.back().copied().unwrap_or(0);
            }
        }
        let half = (ticks - ticks / 2) as f64;
        (queue / half, used as f64 / (RATE * TICK_MS as f64 * half))
    }

    #[test]
    fn the_link_is_full_and_the_queue_short() {
        for name in OFFERED {
            let (queue, used) = run(&mut steer(name), &mut World::default(), 60);
            assert!(used > 0.9, "{name}: {used}");
            assert!((1.0..=110.0).contains(&queue), "{name}: {queue} ms");
        }
    }

    #[test]
    fn where_the_system_itself_holds_back_the_window_does_not_grow() {
        let mut steer = steer("ledbat");
        let wide = steer.allowance.cwnd_bytes;
        for tick in 0..500 {
            let now = Instant::from_millis(1_000 + tick * TICK_MS);
            let room = steer.room(1 << 20);
            if room > 0 {
                steer.wrote(now, room);
            }
            let unacked_bytes = steer.unacked_bytes.saturating_sub(u64::from(MSS));
            let told = Told { unacked_bytes, unsent_bytes: unacked_bytes, ..steer.before };
            steer.hear(now, told);
        }
        assert!(steer.allowance.cwnd_bytes <= wide, "{} of {wide}", steer.allowance.cwnd_bytes);
    }

    /// Others' queue stands when it comes, and runs empty in its first slowdown, of which four acknowledgements tell: a smoothed round-trip time
    /// that falls by an eighth with each, and would leave more than half of that queue in the base.
    #[test]
    fn a_slowdown_shows_the_round_trip_without_a_queue() {
        const QUEUED_MS: f64 = 200.0;
        let (alone, mut srtt_ms, mut segments_in) = (TRIP_MS as f64, QUEUED_MS, 7_u32);
        let told = |srtt_ms: f64, segments_in| Told {
            mss_bytes: MSS,
            srtt: Duration::from_micros((srtt_ms * 1e3) as u64),
            segments_in,
            ..Told::default()
        };
        let choice = on_rtt(ControllerChoice::named("ledbat++")).unwrap();
        let mut steer = Steer::new(
            Instant::from_millis(1_000),
            choice.build(&path(MSS)).unwrap(),
            told(srtt_ms, segments_in),
        );
        // One look after another, with as many acknowledgements between as say the same.
        for (at, (rtt_ms, acks)) in
            [(QUEUED_MS, 3), (QUEUED_MS, 1), (alone, 1), (alone, 2), (alone, 0), (alone, 1)]
                .into_iter()
                .enumerate()
        {
            let now = Instant::from_millis(1_000 + 20 * at as u64);
            let room = steer.room(2 * MSS as usize);
            steer.wrote(now, room);
            for _ in 0..acks {
                srtt_ms += (rtt_ms - srtt_ms) / 8.0;
            }
            segments_in = segments_in.wrapping_add(acks);
            steer.hear(now, told(srtt_ms, segments_in));
        }
        assert!(srtt_ms > 130.0, "{srtt_ms}");
        let base_ms = steer.snapshot().base_delay_ns.unwrap() as f64 / 1e6;
        assert!((base_ms - alone).abs() < 1.0, "{base_ms}");
    }

    #[test]
    fn what_is_held_back_leaves_in_whole_segments() {
        let (mut steer, mss) = (steer("ledbat"), MSS as usize);
        let window = steer.room(usize::MAX);
        assert_eq!((window % mss, steer.room(700)), (0, 700));
        // Half a segment of somebody's is under way, and what is written is more than fits.
        steer.wrote(Instant::from_millis(1_000), mss / 2);
        assert_eq!(steer.room(usize::MAX), window - mss);
        steer.wrote(Instant::from_millis(1_000), window - mss);
        assert_eq!((steer.room(usize::MAX), steer.room(mss / 2)), (0, mss / 2));
    }

    #[test]
    fn of_a_peer_that_takes_nothing_the_system_is_asked_seldom() {
        let mut steer = steer("ledbat");
        let mut now = Instant::from_millis(1_000);
        let window = steer.room(1 << 20);
        steer.wrote(now, window);
        let often = steer.every(now);
        assert!(LOOKS.contains(&often));
        let mut looks = 0;
        while now < Instant::from_millis(61_000) {
            now += steer.every(now);
            assert_eq!(steer.room(1 << 20), 0);
            steer.hear(now, Told { unacked_bytes: window as u64, ..steer.before });
            looks += 1;
        }
        assert!((600..800).contains(&looks), "{looks}");
        steer.hear(now, Told { unacked_bytes: 0, ..steer.before });
        assert_eq!(steer.every(now), often);
    }

    #[test]
    fn what_cannot_be_is_no_round_trip() {
        let at = |srtt_ms, min_ms, segments_in| Told {
            srtt: Duration::from_millis(srtt_ms),
            min_rtt: Duration::from_millis(min_ms),
            segments_in,
            ..Told::default()
        };
        let ms = |before, told| rtt_since(before, told).as_micros() as f64 / 1e3;
        // Told by a kernel that does not count segments, after none, and of a first one.
        assert_eq!(ms(at(100, 0, 0), at(90, 0, 0)), 90.0);
        assert_eq!(ms(at(100, 10, 5), at(90, 10, 5)), 90.0);
        assert_eq!(ms(at(0, 0, 0), at(90, 90, 2)), 90.0);
        // Below the smallest, below nothing; and the counter begins anew.
        assert_eq!(ms(at(100, 40, 5), at(50, 40, 6)), 40.0);
        assert_eq!(ms(at(1_000, 0, 5), at(50, 0, 6)), 0.0);
        assert_eq!(ms(at(100, 10, u32::MAX), at(90, 10, 0)), 20.0);
        assert!((ms(at(100, 10, 0), at(90, 10, u32::MAX)) - 90.0).abs() < 0.01);
    }

    #[test]
    fn a_loss_counts_once_and_a_timeout_leaves_little() {
        let mut steer = steer("ledbat");
        run(&mut steer, &mut World::default(), 20);
        let before = steer.allowance.cwnd_bytes;
        let told = Told { in_recovery: true, ..steer.before };
        for tick in 0..5 {
            steer.hear(Instant::from_millis(30_000 + tick * TICK_MS), told);
        }
        let halved = steer.allowance.cwnd_bytes;
        assert!(halved < before && halved >= before / 2 - u64::from(MSS), "{before} to {halved}");
        steer.hear(Instant::from_millis(31_000), Told { timeouts: 1, ..steer.before });
        assert!(steer.allowance.cwnd_bytes <= 2 * u64::from(MSS), "{}", steer.allowance.cwnd_bytes);
        assert!(steer.room(usize::MAX) <= 2 * MSS as usize);
    }

    #[test]
    fn a_write_is_acknowledged_once_all_of_it_is() {
        let mut steer = steer("ledbat");
        // Of what was written before nothing is known but how much it is.
        steer.unacked_bytes = 500;
        for octets in [1_000, 2_000, 3_000] {
            steer.wrote(Instant::from_millis(1_000), octets);
        }
        let mut acked_at = |unacked| {
            steer.unacked_bytes = unacked;
            steer.acknowledge().iter().map(|fact| fact.number).collect::<Vec<_>>()
        };
        assert_eq!([acked_at(6_500), acked_at(5_001), acked_at(5_000)], [vec![], vec![], vec![0]]);
        assert_eq!([acked_at(10), acked_at(0)], [vec![1], vec![2]]);
    }
}
