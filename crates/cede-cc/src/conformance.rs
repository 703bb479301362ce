//! What every controller must satisfy, whatever it is fed.
//!
//! [`check`] drives a controller through a generated sequence of feedback and verifies the [`RULES`] after every call. Half of the
//! sequences come from a plausible transport (packets that were sent are acknowledged or lost in order, delays
//! wander, timers run out), half from a hostile one (any field may hold anything its type can, time stands still or
//! leaps). The same seed gives the same sequence, so a [`Violation`] can be replayed.
//!
//! [`check_on_a_link`] runs it on a small link of its own for half a minute, for what no single call shows, and [`check_unused`] with little to send.
//!
//! The crate's own test runs this for every entry of the [`registry`](crate::registry). To check a controller of
//! your own:
//!
//! ```
//! use cede_cc::conformance::{Subject, check, check_on_a_link};
//! use cede_cc::{Params, registry};
//!
//! let subject = Subject { responsive: true, build: &|path| registry::build("reno", &Params::new(), path).unwrap() };
//! assert_eq!(check(&subject, 1, 1000), Ok(()));
//! assert_eq!(check_on_a_link(&subject, 1), Ok(()));
//! ```

mod link;

pub use link::{LINK_RULES, check_on_a_link, check_unused};

use crate::{
    Allowance, Controller, DelaySamples, Feedback, PacketFact, Path, SendRecord, Sent, Snapshot, Tag, Timeout,
};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use cede_units::{Duration, Instant, Stream};
use core::fmt;

/// The rules, in the words that a [`Violation`] quotes. That no call panics goes without saying.
pub const RULES: &[&str] = &[BOUNDS, FINITE, AGREE, PACING, STALL, GROWTH, LOSS, TIMEOUT, TIMER, DETERMINISM];

const BOUNDS: &str =
    "the window is at least one octet and at most the path's largest, or one packet where that is more";
const FINITE: &str = "windows and thresholds in snapshots are finite and not negative";
const AGREE: &str = "allowance() repeats what the last call answered";
const PACING: &str = "a pacing rate is not zero, and a burst not either";
const STALL: &str = "where feedback is plausible, pacing lets a packet leave at least once a minute";
const GROWTH: &str = "what acknowledges nothing (a departure, an empty feedback, delays alone, a timer) does not raise a window above one packet";
const LOSS: &str = "feedback that reports a loss does not raise the window";
const TIMEOUT: &str = "a timeout does not raise the window above two packets, and lowers one above four";
const TIMER: &str = "on_timer moves the timer on";
const DETERMINISM: &str = "the same calls give the same state";

/// Who lets nothing leave for longer than this has stopped.
const STALLED: Duration = Duration::from_secs(60);

/// What is checked.
pub struct Subject<'a> {
    /// It responds to congestion: the rules on loss and timeouts apply.
    pub responsive: bool,
    /// Builds a fresh one.
    pub build: &'a dyn Fn(&Path) -> Box<dyn Controller>,
}

/// A rule that did not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// The seed of the sequence.
    pub seed: u64,
    /// The number of the call.
    pub step: u32,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} of seed {}: not kept: {}: {}", self.step, self.seed, self.rule, self.detail)
    }
}

impl core::error::Error for Violation {}

/// Feeds a controller `steps` calls of the sequence `seed`; even seeds are plausible, odd ones hostile.
///
/// # Errors
/// The first [`Violation`].
pub fn check(subject: &Subject<'_>, seed: u64, steps: u32) -> Result<(), Violation> {
    let mut random = Stream::named(seed, "conformance");
    let path = random_path(&mut random);
    let mut trial = Trial {
        first: (subject.build)(&path),
        second: (subject.build)(&path),
        responsive: subject.responsive,
        hostile: seed % 2 == 1,
        path,
        mss: path.mss_bytes,
        seed,
        step: 0,
    };
    let mut model = Model::new(random, &path, trial.hostile);
    trial.inspect(trial.first.allowance())?;
    for step in 0..steps {
        trial.step = step;
        let call = model.next_call(trial.first.allowance(), trial.first.timer());
        let tag = trial.make(&call)?;
        if matches!(call, Call::Sent(_)) {
            model.note_tag(tag);
        }
    }
    Ok(())
}

fn random_path(random: &mut Stream) -> Path {
    let mss_bytes = [1, 150, 536, 1382, 1448, 8948, 65_000][random.below(7) as usize];
    let initial_cwnd_bytes = mss_bytes * [0, 1, 2, 3, 10][random.below(5) as usize];
    let max_cwnd_bytes = [0, 1, 100_000, 1 << 20, 1 << 30, u64::MAX][random.below(6) as usize];
    Path { mss_bytes, initial_cwnd_bytes, max_cwnd_bytes }
}

/// One call of the trait, with what it is handed.
enum Call {
    Sent(Sent),
    Feedback { blank: Feedback<'static>, acked: Vec<PacketFact>, lost: Vec<PacketFact> },
    Delays(DelaySamples),
    Timeout(Timeout),
    Timer(Instant),
    Mss(u32),
}

impl Call {
    /// The answer, and the tag that a departing packet is given.
    fn apply(&self, controller: &mut dyn Controller) -> (Allowance, Tag) {
        let allowance = match self {
            Self::Sent(sent) => {
                let tag = controller.on_sent(sent);
                return (controller.allowance(), tag);
            }
            Self::Delays(samples) => {
                controller.on_delays(samples);
                controller.allowance()
            }
            Self::Feedback { blank, acked, lost } => {
                controller.on_feedback(&Feedback { acked, lost, ..*blank })
            }
            Self::Timeout(timeout) => controller.on_timeout(timeout),
            Self::Timer(now) => controller.on_timer(*now),
            Self::Mss(mss_bytes) => controller.on_mss(*mss_bytes),
        };
        (allowance, 0)
    }
}

impl Call {
    /// Whether the window may grow with it: a timeout has a rule of its own, and another packet size moves a window that is
    /// counted in packets.
    const fn word(&self) -> &'static str {
        match self {
            Self::Sent(_) => "a departure",
            Self::Feedback { .. } => "feedback",
            Self::Delays(_) => "delays",
            Self::Timeout(_) => "a timeout",
            Self::Timer(_) => "a timer",
            Self::Mss(_) => "another packet size",
        }
    }

    fn acknowledges(&self) -> bool {
        match self {
            Self::Sent(_) | Self::Delays(_) | Self::Timer(_) => false,
            Self::Feedback { blank, acked, .. } => Feedback { acked, ..*blank }.acknowledges(),
            Self::Timeout(_) | Self::Mss(_) => true,
        }
    }
}

/// Two controllers of one kind that are called alike.
struct Trial {
    first: Box<dyn Controller>,
    second: Box<dyn Controller>,
    responsive: bool,
    hostile: bool,
    path: Path,
    mss: u32,
    seed: u64,
    step: u32,
}

impl Trial {
    fn require(
        &self,
        kept: bool,
        rule: &'static str,
        detail: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        if kept {
            return Ok(());
        }
        Err(Violation { rule, seed: self.seed, step: self.step, detail: detail() })
    }

    /// Makes a call, and answers with the tag that a departing packet is given.
    fn make(&mut self, call: &Call) -> Result<Tag, Violation> {
        if let Call::Mss(mss_bytes) = call {
            self.mss = *mss_bytes;
        }
        let (before, allowed) = (self.first.snapshot().cwnd_bytes, self.first.allowance().cwnd_bytes);
        let (allowance, tag) = call.apply(&mut *self.first);
        let (_, other_tag) = call.apply(&mut *self.second);
        self.inspect(allowance)?;
        self.inspect_reaction(call, before)?;
        self.inspect_growth(call, before, allowed)?;
        let same = tag == other_tag
            && self.first.snapshot() == self.second.snapshot()
            && self.first.timer() == self.second.timer();
        self.require(same, DETERMINISM, || {
            format!("{:?}, {:?}", self.first.snapshot(), self.second.snapshot())
        })?;
        Ok(tag)
    }

    fn inspect(&self, allowance: Allowance) -> Result<(), Violation> {
        let largest = self.path.max_cwnd_bytes.max(u64::from(self.mss.max(1)));
        let (window, snapshot) = (allowance.cwnd_bytes, self.first.snapshot());
        self.require((1..=largest).contains(&window), BOUNDS, || format!("{window} of {:?}", self.path))?;
        self.require(is_finite(&snapshot), FINITE, || format!("{snapshot:?}"))?;
        let again = self.first.allowance();
        self.require(allowance == again, AGREE, || format!("{allowance:?}, then {again:?}"))?;
        let paced =
            allowance.burst_bytes > 0 && allowance.pacing_rate.is_none_or(|rate| rate.bits_per_sec() > 0);
        self.require(paced, PACING, || format!("{allowance:?}"))?;
        let packet = u64::from(self.mss.max(1));
        let moves =
            self.hostile || allowance.pacing_rate.is_none_or(|rate| rate.time_to_send(packet) <= STALLED);
        self.require(moves, STALL, || format!("{allowance:?}, packet {packet}"))
    }

    /// What may be sent may fall short of the window for a while (a train of packets), and catch up with it.
    fn inspect_growth(&self, call: &Call, before: f64, allowed: u64) -> Result<(), Violation> {
        if call.acknowledges() {
            return Ok(());
        }
        let (after, now_allowed) = (self.first.snapshot().cwnd_bytes, self.first.allowance().cwnd_bytes);
        let packet = u64::from(self.mss.max(1));
        let most = allowed.max(before as u64).max(packet);
        self.require(after <= before.max(packet as f64) && now_allowed <= most, GROWTH, || {
            format!("{}: {before} -> {after}, allowed {allowed} -> {now_allowed}", call.word())
        })
    }

    fn inspect_reaction(&self, call: &Call, before: f64) -> Result<(), Violation> {
        let after = self.first.snapshot().cwnd_bytes;
        let moved = || format!("{before} -> {after}, packet {}", self.mss);
        let packet = f64::from(self.mss.max(1));
        match call {
            Call::Feedback { lost, .. } if self.responsive && !lost.is_empty() => {
                self.require(after <= before, LOSS, moved)
            }
            Call::Timeout(timeout) if self.responsive => {
                let lowered = timeout.idle || before <= 4.0 * packet || after < before;
                self.require(after <= before.max(2.0 * packet) && lowered, TIMEOUT, moved)
            }
            Call::Timer(now) => {
                let later = self.first.timer().is_none_or(|at| at > *now);
                self.require(later, TIMER, || format!("{:?} at {now}", self.first.timer()))
            }
            _ => Ok(()),
        }
    }
}

fn is_finite(snapshot: &Snapshot) -> bool {
    let fine = |octets: f64| octets.is_finite() && octets >= 0.0;
    fine(snapshot.cwnd_bytes) && snapshot.ssthresh_bytes.is_none_or(fine)
}

/// A transport of which only the talk with its controller exists.
struct Model {
    random: Stream,
    hostile: bool,
    now: Instant,
    mss: u32,
    under_way: VecDeque<PacketFact>,
    in_flight_bytes: u64,
    next_number: u64,
    delivered_bytes: u64,
    recover: u64,
    timeouts: u32,
    queue_ns: u64,
    srtt: Duration,
}

/// No more packets than this are under way.
const MAX_UNDER_WAY: usize = 64;

impl Model {
    fn new(random: Stream, path: &Path, hostile: bool) -> Self {
        Self {
            random,
            hostile,
            now: Instant::from_secs(1),
            mss: path.mss_bytes,
            under_way: VecDeque::new(),
            in_flight_bytes: 0,
            next_number: 0,
            delivered_bytes: 0,
            recover: 0,
            timeouts: 0,
            queue_ns: 0,
            srtt: Duration::ZERO,
        }
    }

    fn next_call(&mut self, allowance: Allowance, timer: Option<Instant>) -> Call {
        self.pass_time();
        if let Some(at) = timer.filter(|&at| at <= self.now) {
            return Call::Timer(self.now.max(at));
        }
        let may_send = self.in_flight_bytes < allowance.cwnd_bytes && self.under_way.len() < MAX_UNDER_WAY;
        match self.random.below(100) {
            0 => self.time_out(),
            1 => self.change_mss(),
            2 | 3 => self.tell_delays(),
            4..=40 if may_send => self.send(),
            _ if self.under_way.is_empty() => self.send(),
            _ => self.feed(),
        }
    }

    fn pass_time(&mut self) {
        let step = match self.random.below(if self.hostile { 8 } else { 6 }) {
            0 => 0,
            1..=4 => self.random.below(5_000_000),
            5 => self.random.below(400_000_000),
            6 => self.random.below(100_000_000_000_000),
            _ => self.random.next_u64() >> 8,
        };
        self.now += Duration::from_nanos(step);
        let delta = self.random.below(4_000_000);
        let rises = self.random.chance(0.5);
        self.queue_ns = if rises {
            (self.queue_ns + delta).min(500_000_000)
        } else {
            self.queue_ns.saturating_sub(delta)
        };
    }

    fn tell_delays(&mut self) -> Call {
        let mut blank = self.blank(self.in_flight_bytes, false, None);
        if self.hostile {
            self.spoil(&mut blank);
        }
        Call::Delays(DelaySamples::of(&blank))
    }

    fn send(&mut self) -> Call {
        let packet = PacketFact {
            number: self.next_number,
            bytes: self.mss,
            sent_at: self.now,
            retransmitted: self.random.chance(0.05),
            tag: 0,
            record: SendRecord { delivered_bytes: self.delivered_bytes, ..SendRecord::default() },
        };
        self.next_number += 1;
        self.in_flight_bytes += u64::from(self.mss);
        self.under_way.push_back(packet);
        Call::Sent(Sent {
            now: self.now,
            number: packet.number,
            bytes: packet.bytes,
            in_flight_bytes: self.in_flight_bytes,
            retransmission: packet.retransmitted,
        })
    }

    /// The newest packet bears this tag; a hostile transport may mix it up.
    fn note_tag(&mut self, tag: Tag) {
        let mixed_up = self.hostile && self.random.chance(0.05);
        let tag = if mixed_up { self.any() as Tag } else { tag };
        if let Some(packet) = self.under_way.back_mut() {
            packet.tag = tag;
        }
    }

    fn take(&mut self, most: u64) -> Vec<PacketFact> {
        let count = self.random.below(most + 1) as usize;
        self.under_way.drain(..count.min(self.under_way.len())).collect()
    }

    fn feed(&mut self) -> Call {
        let before = self.in_flight_bytes;
        let lost = if self.random.chance(0.1) { self.take(3) } else { Vec::new() };
        let acked = self.take(4);
        let bytes_of =
            |packets: &[PacketFact]| packets.iter().map(|packet| u64::from(packet.bytes)).sum::<u64>();
        let (acked_bytes, lost_bytes) = (bytes_of(&acked), bytes_of(&lost));
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(acked_bytes + lost_bytes);
        self.delivered_bytes += acked_bytes;
        self.timeouts = 0;
        if !lost.is_empty() {
            self.recover = self.next_number;
        }
        let in_recovery = acked.last().is_some_and(|packet| packet.number < self.recover);
        let mut blank = self.blank(before, in_recovery, acked.last());
        (blank.acked_bytes, blank.lost_bytes) = (acked_bytes, lost_bytes);
        if self.hostile {
            self.spoil(&mut blank);
        }
        Call::Feedback { blank, acked, lost }
    }

    fn blank(&mut self, before: u64, in_recovery: bool, newest: Option<&PacketFact>) -> Feedback<'static> {
        let rtt = newest.map(|packet| self.now.since(packet.sent_at));
        self.srtt = rtt.map_or(self.srtt, |rtt| (self.srtt * 7 + rtt) / 8);
        Feedback {
            now: self.now,
            acked: &[],
            lost: &[],
            acked_bytes: 0,
            lost_bytes: 0,
            in_flight_before_bytes: before,
            in_flight_bytes: self.in_flight_bytes,
            delivered_bytes: self.delivered_bytes,
            next_number: self.next_number,
            rtt,
            rtt_min: rtt,
            srtt: self.srtt,
            one_way_delay_ns: self.random.chance(0.9).then_some(self.queue_ns as i64 - 5_000_000_000),
            reverse_delay_ns: self.random.chance(0.9).then_some(5_020_000_000),
            ce_marked: u32::from(self.random.chance(0.02)),
            app_limited: self.random.chance(0.1),
            in_recovery,
        }
    }

    /// Any number that a field can hold, the ends of its range more often than chance.
    fn any(&mut self) -> u64 {
        let raw = self.random.next_u64();
        match self.random.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => i64::MAX as u64,
            3 => i64::MIN as u64,
            _ => raw >> self.random.below(64),
        }
    }

    fn spoil(&mut self, feedback: &mut Feedback<'_>) {
        let value = self.any();
        match self.random.below(14) {
            0 => feedback.now = Instant::from_nanos(value),
            1 => feedback.acked_bytes = value,
            2 => feedback.lost_bytes = value,
            3 => feedback.in_flight_before_bytes = value,
            4 => feedback.in_flight_bytes = value,
            5 => feedback.next_number = value >> 1,
            6 => feedback.rtt = Some(Duration::from_nanos(value)),
            7 => feedback.rtt_min = Some(Duration::from_nanos(value)),
            8 => feedback.srtt = Duration::from_nanos(value),
            9 => feedback.one_way_delay_ns = Some(value as i64),
            10 => feedback.reverse_delay_ns = Some(value as i64),
            11 => feedback.ce_marked = value as u32,
            12 => feedback.delivered_bytes = value,
            _ => (feedback.app_limited, feedback.in_recovery) = (value & 1 == 0, value & 2 == 0),
        }
    }

    fn time_out(&mut self) -> Call {
        let idle = self.under_way.is_empty();
        self.timeouts += u32::from(!idle);
        let timeout = Timeout {
            now: self.now,
            in_flight_bytes: if self.hostile { self.any() } else { self.in_flight_bytes },
            consecutive: self.timeouts,
            next_number: self.next_number,
            idle,
        };
        self.under_way.clear();
        self.in_flight_bytes = 0;
        self.recover = self.next_number;
        Call::Timeout(timeout)
    }

    fn change_mss(&mut self) -> Call {
        let choice = self.random.below(if self.hostile { 6 } else { 4 }) as usize;
        self.mss = [576, 1280, 1448, 1452, 0, 1 << 20][choice];
        Call::Mss(self.mss)
    }
}
