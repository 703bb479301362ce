//! Jitter: delays that differ from packet to packet by more than a target, where nobody queues.
//!
//! Packets that keep their order under jitter wait for one another: few wait for a part of it, many for nearly all of it, which is
//! what a queue looks like that the flow fills itself. What tells them apart shows where the flow is small: a queue that others fill
//! changes over many round trips, so that one sample is much like the one before, or it never ends. Jitter has no memory, and its
//! least sample is the base. So one sample of each round trip is kept while the window is small. Where the last [`SAMPLES`]
//! of them reach from the base to far above the target, are spread over what is between, cross their middle about as often as not, and
//! have no likeness to those soon after them, the largest is jitter, and no queue is what does not exceed it. Flows that make room for one
//! another in turn swing in a few round trips: they are alike at a distance of two or three, if not of one. A queue that was empty once,
//! after half a minute, looks like jitter to the squares of an autocorrelation, but not to its order.
//!
//! A target that allows for some jitter (`target.rs`) may hold the window between small and large. So where each of the last rounds has shown more
//! than a target between its least and its largest sample, a slowdown lasts until enough rounds have been seen: that is a look; a look in vain is not
//! repeated soon, and on long paths, where it would take a quarter of a minute, there is none.
//!
//! Of many packets under jitter even the least waits, so that a round shows a part of the jitter alone: 12 ms of 35 on 20 Mbit/s, and less on faster
//! links. There it is packets that meet (`bunches.rs`) that ask for a look, where a packet of a slowdown has more than a target. No queue does that. So
//! what such a look must tell is how much there is, not what it is: a target is enough, less than others' queues may have, and neither the
//! spread of the samples nor packets' times count. (A receiver that answers pairs tells of the later one of two, which is seldom early.)
//! Where chance has it that they are alike, it goes on for a few rounds.
//!
//! It is looked at again each time the flow is small, and it shrinks to what is seen where slowdowns show less than was found. In the first
//! round behind one the window is large and its queue has not come back: under jitter even the least of many packets waits, and where it does not
//! there is none.
//!
//! On a slow link a few packets of others are as long a time, and flows that share it make room for one another at their smallest windows in ways that have
//! no memory either. So jitter is [`LEAST_PACKETS`] packets' times at least. A packet takes as long as at the largest rate that was delivered, or the
//! least time between two arrivals where that is less: behind a queue it is no less than that, and jitter lets those that it has held up arrive together. With
//! two packets under way a receiver that answers pairs tells of one arrival in a round. Where all else says jitter, four are sent together for
//! some rounds: an answer to the question, and not soon again where it was in vain.
//!
//! Source: of this project. The likeness is the sum of the squared autocorrelations at lags one to six (G. E. P. Box and D. A. Pierce, J. Am. Stat.
//! Assoc. 65, 1970): of 32 samples without memory it is above 0.45 with a probability of about 3 %.
//!
//! *What it leaves out:* a queue that others fill and empty within less than a round trip, again and again, is taken for jitter, up to [`MOST_NS`].
//! A queue of others that is shorter than the jitter is not seen below it.
//! *How it was validated:* unit tests below; the battery (`path/medium-jitter`, `path/more-jitter`; `yields` for what it must not take for jitter).

use super::bunches::Bunches;
use super::{Cede, Stage};
use crate::Feedback;
use cede_units::{Duration, Instant};

/// Windows that are small enough to see jitter in, and so large that what was seen before says nothing any longer, in packets.
const SMALL_PACKETS: f64 = 8.0;
const LARGE_PACKETS: f64 = 16.0;
/// Rounds that are looked at.
const SAMPLES: usize = 32;
/// What likeness there may be, and over how many rounds.
const MOST_ALIKE: f64 = 0.45;
const LAGS: usize = 6;
/// A tenth of the samples are so many targets at least, and so long: flows like this one keep a queue of about a target, and the
/// queues of others on short paths come and go within milliseconds.
const LEAST_TARGETS: f64 = 2.0;
const LEAST_NS: f64 = 35e6;
/// And as many packets' times: one of four flows on 3 Mbit/s that took the others for jitter kept a queue of 65 to 150 ms, of 16 to 37 packets.
const LEAST_PACKETS: f64 = 48.0;
/// Rounds after which what was seen of arrivals is a stretch older; two are kept.
const STRETCH: u32 = 128;
/// With fewer than so many rounds of the last [`SAMPLES`] arrivals are hardly known.
const GAPS_MIN: u32 = 8;
/// So many packets leave together where arrivals are to be seen.
pub(super) const TOGETHER: f64 = 4.0;
/// Until rounds have been looked at so often: sixteen rounds.
const ASKED: u32 = 2;
/// The middle of all samples is this part of the largest at least, a quarter of them are at most that, and the middle half is so wide.
const LEAST_MIDDLE: f64 = 0.2;
const MOST_QUARTER: f64 = 0.45;
const LEAST_WIDTH: f64 = 0.3;
/// So often at least a sample is on the other side of the middle than the one before: 15 or 16 times is usual, fewer than 10 has a
/// probability of about 2 %.
const CROSSINGS: usize = 10;
/// What is allowed at most: as much as RFC 6817 lets a queue have.
const MOST_NS: i64 = 100_000_000;
/// So many slowdowns show how much is left of it, and this times the most that they showed is kept.
const SLOWDOWNS: u32 = 8;
const KEPT: f64 = 1.25;
/// The part of it that the least of many samples shows, how many they are, and how many come first, which wait for few.
const LEAST_OF_MANY: f64 = 0.3;
const MANY: u32 = 12;
const FIRST: u32 = 5;

/// A look that would take longer is not worth it.
const LONGEST_LOOK: Duration = Duration::from_secs(6);
/// What packets that meet have asked for goes on for so many rounds at most.
const MOST_ROUNDS: usize = 48;
/// The time from a look in vain to the next, which doubles so often at most.
const LOOK_AGAIN: Duration = Duration::from_secs(20);
const MAX_DOUBLINGS: u32 = 5;

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    /// What samples have above the base, in nanoseconds: a ring of the last rounds.
    samples_ns: [i64; SAMPLES],
    /// The least times between two arrivals in rounds of small windows, two of each of the last stretches of rounds.
    gaps_ns: [[i64; 2]; 2],
    /// Rounds of the latest stretch.
    stretch: u32,
    /// Which of the last rounds had two arrivals, the newest in the lowest bit.
    had_gaps: u32,
    count: usize,
    /// When a packet arrived last, and the least time between two in this round.
    arrived_ns: Option<i64>,
    gap_ns: i64,
    allowed_ns: i64,
    bunches: Bunches,
    /// A slowdown lasts until enough rounds have been seen.
    look: Look,
    /// The first packet of this slowdown, and the most that those behind it have above the base and the target.
    slowed_from: u64,
    slowdown_most_ns: i64,
    /// Arrivals are to be seen, so often more, until rounds are looked at: packets leave together.
    asks: u32,
    next_look: Instant,
    looks_in_vain: u32,
    slowdowns: u32,
    slowdowns_peak_ns: i64,
    /// Rounds that have ended since the last slowdown.
    rounds: u32,
    /// The least sample of this round, and how many it had.
    round_least_ns: i64,
    round_samples: u32,
}

/// Why a slowdown lasts until enough rounds have been seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    None,
    /// Samples of each round differ by more than a target.
    Noisy,
    /// Packets meet.
    Met,
}

/// What delays are held against: the target, and a packet's time at the largest rate that was delivered, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Scale {
    target_ns: f64,
    packet_ns: f64,
}

/// What the last rounds show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    None,
    /// All but how far apart packets arrive says jitter, and that is not known.
    Perhaps,
    /// So much.
    Jitter(i64),
}

impl Jitter {
    pub(super) const fn new() -> Self {
        Self {
            samples_ns: [0; SAMPLES],
            gaps_ns: [[i64::MAX; 2]; 2],
            stretch: 0,
            had_gaps: 0,
            count: 0,
            arrived_ns: None,
            gap_ns: i64::MAX,
            allowed_ns: 0,
            slowdowns: 0,
            slowdowns_peak_ns: 0,
            bunches: Bunches::new(),
            look: Look::None,
            slowed_from: 0,
            slowdown_most_ns: 0,
            asks: 0,
            next_look: Instant::ZERO,
            looks_in_vain: 0,
            rounds: 0,
            round_least_ns: i64::MAX,
            round_samples: 0,
        }
    }

    /// What is no queue, in nanoseconds.
    pub(super) fn allowed_ns(&self) -> i64 {
        self.allowed_ns
    }

    /// Any sample, of a packet that arrived then; one that ends a round is of the next.
    fn see(&mut self, above_base_ns: i64, arrived_ns: Option<i64>, ends_round: bool) {
        let last_ns = core::mem::replace(&mut self.arrived_ns, arrived_ns).filter(|_| !ends_round);
        // Who was overtaken did not wait in a queue.
        let gap_ns = last_ns.zip(arrived_ns).map(|(last, next)| (next - last).max(0));
        self.gap_ns = self.gap_ns.min(gap_ns.unwrap_or(i64::MAX));
        self.round_samples = self.round_samples.saturating_add(1);
        if self.round_samples > FIRST {
            self.round_least_ns = self.round_least_ns.min(above_base_ns);
        }
    }

    fn end_round(&mut self) {
        self.bunches.end_round();
        // The round in which a window is restored begins with few packets; where packets meet, a dozen may be too few for all to wait.
        let is_first = self.rounds == 1 && self.round_samples >= MANY && !self.bunches.meet();
        if is_first && (self.round_least_ns as f64) < LEAST_OF_MANY * self.allowed_ns as f64 {
            self.allowed_ns = 0;
        }
        self.rounds = self.rounds.saturating_add(1);
        (self.round_least_ns, self.round_samples) = (i64::MAX, 0);
        self.gap_ns = i64::MAX;
    }

    /// One sample of a round in which the window was small.
    fn add(&mut self, now: Instant, above_base_ns: i64, scale: Scale) {
        self.samples_ns[self.count % SAMPLES] = above_base_ns;
        self.count += 1;
        self.note_gap();
        if self.count < SAMPLES || !self.count.is_multiple_of(SAMPLES / 4) {
            return;
        }
        let found = self.find(scale);
        self.allowed_ns = match found {
            // What is there already is not made less by a look that happened to see less of it.
            Found::Jitter(found_ns) => found_ns.max(self.allowed_ns),
            Found::Perhaps => self.allowed_ns,
            Found::None => 0,
        };
        (self.slowdowns, self.slowdowns_peak_ns) = (0, 0);
        if self.asks == 1 {
            self.has_looked(now);
        }
        let begins =
            self.asks == 0 && found == Found::Perhaps && self.allowed_ns == 0 && now >= self.next_look;
        self.asks = if begins { ASKED } else { self.asks.saturating_sub(1) };
    }

    /// A link's packets take as long as before when the window has been large, so what is known of them stays for some time.
    fn note_gap(&mut self) {
        if self.stretch == STRETCH {
            (self.gaps_ns, self.stretch) = ([[i64::MAX; 2], self.gaps_ns[0]], 0);
        }
        self.stretch += 1;
        self.had_gaps = self.had_gaps << 1 | u32::from(self.gap_ns < i64::MAX);
        let [least, second] = self.gaps_ns[0];
        self.gaps_ns[0] = [least.min(self.gap_ns), second.min(least.max(self.gap_ns))];
    }

    /// As close two arrivals were more than once; a single time may be the doing of acknowledgements that met.
    fn least_gap_ns(&self) -> i64 {
        let [[a, b], [c, d]] = self.gaps_ns;
        b.min(d).min(a.max(c))
    }

    /// Whether packets are to leave together.
    pub(super) fn asks(&self) -> bool {
        self.asks > 0
    }

    /// What was in vain is not repeated soon.
    fn has_looked(&mut self, now: Instant) {
        self.looks_in_vain = if self.allowed_ns > 0 { 0 } else { self.looks_in_vain + 1 };
        let times = 1 << self.looks_in_vain.min(MAX_DOUBLINGS);
        self.next_look = now + LOOK_AGAIN * times;
    }

    /// The window has become large, or something else has happened: rounds before say nothing.
    fn forget_rounds(&mut self) {
        (self.count, self.asks) = (0, 0);
    }

    /// A sample of a slowdown, in which little is under way: of this packet, or an older one.
    fn in_slowdown(&mut self, newest: u64, above_base_ns: i64) {
        self.slowdowns_peak_ns = self.slowdowns_peak_ns.max(above_base_ns);
        if newest >= self.slowed_from {
            self.slowdown_most_ns = self.slowdown_most_ns.max(above_base_ns);
        }
    }

    /// A slowdown begins with the packet `next_number`. `is_noisy` says whether samples of each of the last rounds differed by more than
    /// the target.
    pub(super) fn begin_slowdown(&mut self, now: Instant, next_number: u64, srtt: Duration, is_noisy: bool) {
        let is_short = srtt * SAMPLES as u64 <= LONGEST_LOOK;
        let may_look = self.allowed_ns == 0 && is_short && now >= self.next_look;
        self.look = match (may_look, self.bunches.meet()) {
            (true, true) => Look::Met,
            (true, false) if is_noisy => Look::Noisy,
            _ => Look::None,
        };
        (self.slowed_from, self.slowdown_most_ns) = (next_number, 0);
        if self.look != Look::None {
            self.forget_rounds();
        }
    }

    /// Whether the slowdown is to last longer.
    pub(super) fn looks(&self, target_ns: f64) -> bool {
        match self.look {
            Look::None => false,
            Look::Noisy => self.count < SAMPLES,
            Look::Met => {
                self.slowdown_most_ns as f64 > target_ns && self.allowed_ns == 0 && self.count < MOST_ROUNDS
            }
        }
    }

    /// Whether the slowdown that ends now was a look.
    pub(super) fn end_look(&mut self, now: Instant) -> bool {
        let looked = self.look != Look::None && self.count >= SAMPLES;
        if looked {
            self.has_looked(now);
        }
        self.look = Look::None;
        looked
    }

    pub(super) fn end_slowdown(&mut self) {
        (self.slowdowns, self.rounds) = (self.slowdowns + 1, 0);
        if self.slowdowns >= SLOWDOWNS {
            self.allowed_ns = self.allowed_ns.min((KEPT * self.slowdowns_peak_ns as f64) as i64);
            (self.slowdowns, self.slowdowns_peak_ns) = (0, 0);
        }
    }

    /// The jitter that the last samples show.
    fn find(&self, Scale { target_ns, packet_ns }: Scale) -> Found {
        let mut ordered = self.samples_ns;
        ordered.sort_unstable();
        let at = |part: f64| ordered[(part * (SAMPLES - 1) as f64) as usize] as f64;
        let (most, far) = (at(1.0), at(0.9));
        // Where packets meet, it is no queue that holds them up.
        let met = self.look == Look::Met;
        let least = if met { target_ns } else { (LEAST_TARGETS * target_ns).max(LEAST_NS) };
        let wide = far >= least && at(0.0) <= target_ns;
        let spread = at(0.5) >= LEAST_MIDDLE * most
            && at(0.25) <= MOST_QUARTER * most
            && at(0.75) - at(0.25) >= LEAST_WIDTH * most;
        let mixed = self.crossings(ordered[SAMPLES / 2]) >= CROSSINGS && self.likeness() <= MOST_ALIKE;
        if !(wide && mixed && (spread || met)) {
            Found::None
        } else if met || far >= LEAST_PACKETS * packet_ns.min(self.least_gap_ns() as f64) {
            Found::Jitter(ordered[SAMPLES - 1].min(MOST_NS))
        } else if self.had_gaps.count_ones() < GAPS_MIN {
            Found::Perhaps
        } else {
            Found::None
        }
    }

    /// The samples in their order.
    fn at(&self, place: usize) -> i64 {
        self.samples_ns[(self.count + place) % SAMPLES]
    }

    /// How often the delay went from one side of the middle to the other.
    fn crossings(&self, middle_ns: i64) -> usize {
        let above = |place| self.at(place) >= middle_ns;
        (1..SAMPLES).filter(|&place| above(place) != above(place - 1)).count()
    }

    /// The sum of the squared autocorrelations of the samples in their order.
    fn likeness(&self) -> f64 {
        let mean = self.samples_ns.iter().map(|ns| *ns as f64).sum::<f64>() / SAMPLES as f64;
        let apart = |place: usize| self.at(place) as f64 - mean;
        let product = |lag: usize| (lag..SAMPLES).map(|place| apart(place - lag) * apart(place)).sum::<f64>();
        let all = product(0).max(1.0);
        (1..=LAGS).map(|lag| (product(lag) / all) * (product(lag) / all)).sum()
    }
}

impl Cede {
    /// What a round is held against.
    fn scale(&self, target_ns: f64) -> Scale {
        Scale { target_ns, packet_ns: self.packet_ns() }
    }

    /// Slowdowns, small windows, and large ones behind a slowdown show what of a delay is jitter.
    pub(super) fn watch_jitter(&mut self, feedback: &Feedback<'_>, above_base_ns: i64, ends_round: bool) {
        if !self.config.allow_jitter {
            return;
        }
        let packets = self.cwnd / self.bounds.mss;
        let arrived_ns = self.trains.arrived_ns(feedback);
        let newest = feedback.acked.last();
        if let Some((newest, arrived_ns)) = newest.zip(arrived_ns) {
            self.jitter.bunches.see(newest.sent_at, arrived_ns);
        }
        self.jitter.see(above_base_ns, arrived_ns, ends_round);
        let (now, number) = (feedback.now, newest.map_or(0, |newest| newest.number));
        match self.stage {
            Stage::Slowdown { .. } => {
                self.jitter.in_slowdown(number, above_base_ns);
                if self.jitter.look != Look::None && ends_round && number >= self.jitter.slowed_from {
                    let scale = self.scale(self.target.wanted_ns(self.queue.base_rtt()));
                    self.jitter.add(now, above_base_ns, scale);
                }
            }
            Stage::Steady if packets <= SMALL_PACKETS && ends_round => {
                let scale = self.scale(self.target_ns(now));
                self.jitter.add(now, above_base_ns, scale);
            }
            _ if packets > LARGE_PACKETS => self.jitter.forget_rounds(),
            _ => {}
        }
        if ends_round {
            self.jitter.end_round();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const TARGET_NS: f64 = 15e6;

    /// Between 0 and 80 ms, without memory (Marsaglia's xorshift).
    fn jittered(count: usize) -> impl Iterator<Item = i64> {
        let next = |state: &u64| {
            let mut x = *state;
            x ^= x << 13;
            x ^= x >> 7;
            Some(x ^ x << 17)
        };
        core::iter::successors(Some(88_172_645_463_325_252), next)
            .take(count)
            .map(|x| (x >> 11) as i64 % (80 * MS))
    }

    /// A round of such a sample on a fast link, with two arrivals so far apart.
    fn round(jitter: &mut Jitter, ns: i64, gap_ns: i64) {
        jitter.gap_ns = gap_ns;
        jitter.add(Instant::from_secs(100), ns, Scale { target_ns: TARGET_NS, packet_ns: 2e6 });
    }

    fn found(samples: impl IntoIterator<Item = i64>) -> i64 {
        let mut jitter = Jitter::new();
        samples.into_iter().for_each(|ns| round(&mut jitter, ns, MS / 10));
        jitter.allowed_ns()
    }

    #[test]
    fn what_a_few_packets_of_others_take_is_none() {
        let mut jitter = Jitter::new();
        jittered(64).for_each(|ns| round(&mut jitter, ns, 4 * MS));
        assert!(jitter.allowed_ns() == 0 && !jitter.asks(), "arrivals are as far apart as on 3 Mbit/s");
        // One arrival in each round: it is asked for more.
        jitter = Jitter::new();
        jittered(32).for_each(|ns| round(&mut jitter, ns, i64::MAX));
        assert!(jitter.allowed_ns() == 0 && jitter.asks());
        let mut slow = jitter.clone();
        jittered(64).for_each(|ns| round(&mut jitter, ns, 0));
        assert!(jitter.allowed_ns() > 60 * MS && !jitter.asks(), "they arrive together");
        jittered(64).for_each(|ns| round(&mut slow, ns, 8 * MS));
        assert!(slow.allowed_ns() == 0 && !slow.asks());
        jittered(64).for_each(|ns| round(&mut slow, ns, i64::MAX));
        assert!(!slow.asks(), "not so soon again");
        // What is known of arrivals stays for a stretch, and a single pair that met is nothing.
        let (mut known, mut met) = (Jitter::new(), Jitter::new());
        for n in 0..2 * STRETCH {
            let gap_ns = if n < 2 { MS / 10 } else { 8 * MS };
            round(&mut known, 0, gap_ns);
            round(&mut met, 0, if n == 7 { 0 } else { 8 * MS });
        }
        assert_eq!((known.least_gap_ns(), met.least_gap_ns()), (MS / 10, 8 * MS));
        round(&mut known, 0, 8 * MS);
        assert_eq!(known.least_gap_ns(), 8 * MS, "it was long ago");
        // Arrivals of one round are held against one another.
        jitter.end_round();
        for (arrived_ns, gap_ns) in [(None, i64::MAX), (Some(50), i64::MAX), (Some(57), 7), (Some(54), 0)] {
            jitter.see(0, arrived_ns, false);
            assert_eq!(jitter.gap_ns, gap_ns, "{arrived_ns:?}");
        }
        jitter.end_round();
        jitter.see(0, Some(60), true);
        assert_eq!(jitter.gap_ns, i64::MAX, "of the round before");
        jitter.see(0, Some(62), false);
        assert_eq!(jitter.gap_ns, 2);
    }

    #[test]
    fn delays_without_memory_that_reach_the_base_are_jitter() {
        let allowed = found(jittered(64));
        assert!((70 * MS..=80 * MS).contains(&allowed), "{allowed}");
        assert_eq!(found(jittered(31)), 0, "too few");
        assert_eq!(found(jittered(64).map(|ns| ns + 20 * MS)), 0, "somebody's queue below it");
        assert_eq!(found(jittered(64).map(|ns| ns / 10)), 0, "less than the target");
    }

    /// Ten rounds of packets, of which the four before each fifth one wait for it, or do not.
    fn watched(waited: bool) -> Jitter {
        let mut jitter = Jitter::new();
        for packet in 0..400_u64 {
            let arrives = if waited { packet.next_multiple_of(5) } else { packet };
            jitter.bunches.see(Instant::from_millis(packet), arrives as i64 * MS);
            if packet % 40 == 39 {
                jitter.end_round();
            }
        }
        jitter
    }

    /// What a slowdown behind that shows of packets with such delays, and the rounds for which it lasts.
    fn slowed(waited: bool, srtt_ms: u64, samples: impl IntoIterator<Item = i64>) -> (i64, usize) {
        let mut jitter = watched(waited);
        let (now, scale) = (Instant::from_secs(100), Scale { target_ns: TARGET_NS, packet_ns: 2e6 });
        jitter.begin_slowdown(now, 400, Duration::from_millis(srtt_ms), false);
        // An older packet with the flow's own queue.
        jitter.in_slowdown(399, 90 * MS);
        let mut rounds = 0;
        let mut samples = samples.into_iter();
        // Two round trips of any slowdown.
        samples.by_ref().take(4).for_each(|ns| jitter.in_slowdown(400, ns));
        for ns in samples {
            jitter.in_slowdown(400, ns);
            if !jitter.looks(TARGET_NS) {
                break;
            }
            jitter.add(now, ns, scale);
            rounds += 1;
        }
        assert_eq!(jitter.end_look(now), rounds > 0);
        (jitter.allowed_ns(), rounds)
    }

    #[test]
    fn packets_that_meet_ask_how_much_jitter_there_is() {
        let thirty = || jittered(64).map(|ns| ns * 3 / 8);
        let (allowed_ns, rounds) = slowed(true, 60, thirty());
        assert!((26 * MS..=30 * MS).contains(&allowed_ns) && rounds == SAMPLES, "{allowed_ns} {rounds}");
        assert_eq!(slowed(false, 60, thirty()), (0, 0), "a queue could be so long");
        assert_eq!(slowed(true, 60, thirty().map(|ns| ns / 3)), (0, 0), "a target allows for that");
        assert_eq!(slowed(true, 250, thirty()), (0, 0), "it would take too long");
        let swings = (0..64).map(|n| [4, 30, 50, 25][n % 4] * MS);
        assert_eq!(slowed(true, 60, swings), (0, MOST_ROUNDS), "flows that make room in turn");
    }

    #[test]
    fn where_packets_meet_a_round_of_few_ends_nothing() {
        for (waited, left_ns) in [(true, 40 * MS), (false, 0)] {
            let mut jitter = watched(waited);
            (jitter.allowed_ns, jitter.rounds) = (40 * MS, 1);
            (0..i64::from(MANY)).for_each(|n| jitter.see((5 + n) * MS, None, false));
            jitter.end_round();
            assert_eq!(jitter.allowed_ns(), left_ns, "{waited}");
        }
    }

    #[test]
    fn saw_teeth_and_bursts_are_none() {
        let teeth = (0..64).map(|n| i64::from(n % 20) * 4 * MS);
        assert_eq!(found(teeth), 0, "a queue that others fill");
        let visited = (0..64).map(|n| if n % 20 == 9 { 2 * MS } else { (50 + n) * MS });
        assert_eq!(found(visited), 0, "a queue that was empty once");
        let swings = (0..64).map(|n| [4, 30, 50, 25][n % 4] * MS);
        assert_eq!(found(swings), 0, "flows that make room in turn");
        let bursts = (0..64).map(|n| if n % 9 == 0 { 50 * MS } else { MS });
        assert_eq!(found(bursts), 0, "others' bursts now and then");
    }

    #[test]
    fn it_is_over_when_small_windows_or_slowdowns_show_none() {
        let mut jitter = Jitter::new();
        jittered(64).for_each(|ns| round(&mut jitter, ns, 0));
        let full = jitter.allowed_ns();
        for _ in 0..8 {
            jitter.in_slowdown(0, 20 * MS);
            assert_eq!(jitter.allowed_ns(), full);
            jitter.end_slowdown();
        }
        assert_eq!(jitter.allowed_ns(), 25 * MS);
        (0..32).for_each(|_| round(&mut jitter, 40 * MS, 0));
        assert_eq!(jitter.allowed_ns(), 0);
        jittered(64).for_each(|ns| round(&mut jitter, ns, 0));
        for (rounds, least_ms, samples, left_ns, what) in [
            (0, 10, 50, full, "the round in which it is restored"),
            (2, 10, 50, full, "a later one"),
            (1, 10, 5, full, "few packets"),
            (1, 60, 50, full, "all wait"),
            (1, 10, 50, 0, "some do not wait"),
        ] {
            jitter.rounds = rounds;
            (0..samples).for_each(|n| jitter.see((least_ms + n) * MS, None, false));
            jitter.end_round();
            assert_eq!(jitter.allowed_ns(), left_ns, "{what}");
        }
    }
}
