//! What a controller is fed: the calls of a transport that is plausible, or hostile.

use crate::{
    Allowance, Controller, DelaySamples, Feedback, PacketFact, Path, SendRecord, Sent, Tag, Timeout,
};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cede_units::{Duration, Instant, Stream};

/// One call of the trait, with what it is handed.
pub(super) enum Call {
    Sent(Sent),
    Feedback { blank: Feedback<'static>, acked: Vec<PacketFact>, lost: Vec<PacketFact> },
    Delays(DelaySamples),
    Forgotten(PacketFact),
    Undo,
    Timeout(Timeout),
    Timer(Instant),
    Mss(u32),
}

impl Call {
    /// The answer, and the tag that a departing packet is given.
    pub(super) fn apply(&self, controller: &mut dyn Controller) -> (Allowance, Tag) {
        let allowance = match self {
            Self::Sent(sent) => {
                let tag = controller.on_sent(sent);
                return (controller.allowance(), tag);
            }
            Self::Delays(samples) => {
                controller.on_delays(samples);
                controller.allowance()
            }
            Self::Forgotten(packet) => {
                controller.on_forgotten(packet);
                controller.allowance()
            }
            Self::Feedback { blank, acked, lost } => {
                controller.on_feedback(&Feedback { acked, lost, ..*blank })
            }
            Self::Undo => controller.on_undo(),
            Self::Timeout(timeout) => controller.on_timeout(timeout),
            Self::Timer(now) => controller.on_timer(*now),
            Self::Mss(mss_bytes) => controller.on_mss(*mss_bytes),
        };
        (allowance, 0)
    }

    /// What it is called.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Sent(_) => "a departure",
            Self::Feedback { .. } => "feedback",
            Self::Delays(_) => "delays",
            Self::Forgotten(_) => "a forgotten packet",
            Self::Undo => "a loss that was none",
            Self::Timeout(_) => "a timeout",
            Self::Timer(_) => "a timer",
            Self::Mss(_) => "another packet size",
        }
    }

    /// Whether the window may grow with it: a timeout has a rule of its own, another packet size moves a window that is counted in
    /// packets, and a loss that was none gives back what it took.
    pub(super) fn acknowledges(&self) -> bool {
        match self {
            Self::Sent(_) | Self::Delays(_) | Self::Forgotten(_) | Self::Timer(_) => false,
            Self::Feedback { blank, acked, .. } => Feedback { acked, ..*blank }.acknowledges(),
            Self::Undo | Self::Timeout(_) | Self::Mss(_) => true,
        }
    }
}

/// A transport of which only the talk with its controller exists.
pub(super) struct Model {
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
    /// The link all but stops at times, and the whole of a round trip beyond its way back is queue then; else delays wander by
    /// themselves, within half a second.
    stalls: bool,
    stalled: bool,
    srtt: Duration,
}

/// No more packets than this are under way.
const MAX_UNDER_WAY: usize = 64;
/// Once in some hundred calls a link that stalls does so, or goes on; then a call takes minutes, and a round trip hours.
const STALL_BEGINS_OR_ENDS: f64 = 0.005;
const STALLED_STEP: Duration = Duration::from_secs(600);
/// What the way back takes, and by what the sender's clock is ahead.
const WAY_BACK: Duration = Duration::from_millis(20);
const CLOCKS_APART_NS: i64 = 5_000_000_000;

impl Model {
    pub(super) fn new(mut random: Stream, path: &Path, hostile: bool) -> Self {
        let stalls = !hostile && random.chance(0.5);
        Self {
            random,
            stalls,
            stalled: false,
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

    pub(super) fn next_call(&mut self, allowance: Allowance, timer: Option<Instant>) -> Call {
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
            41 => self.forget(),
            42 => Call::Undo,
            _ => self.feed(),
        }
    }

    fn pass_time(&mut self) {
        self.stalled ^= self.stalls && self.random.chance(STALL_BEGINS_OR_ENDS);
        let step = match self.random.below(if self.hostile { 8 } else { 6 }) {
            0 => 0,
            1 | 2 if self.stalled => self.random.below(STALLED_STEP.as_nanos()),
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
    pub(super) fn note_tag(&mut self, tag: Tag) {
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

    /// Of one of the packets under way nothing more will be told.
    fn forget(&mut self) -> Call {
        let at = self.random.below(self.under_way.len() as u64) as usize;
        let Some(mut packet) = self.under_way.remove(at) else { return self.send() };
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(u64::from(packet.bytes));
        if self.hostile && self.random.chance(0.5) {
            packet.bytes = self.any() as u32;
        }
        Call::Forgotten(packet)
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
        let queue_ns = match rtt {
            Some(rtt) if self.stalls => rtt.saturating_sub(WAY_BACK).as_nanos(),
            _ => self.queue_ns,
        };
        let forward_ns = queue_ns.min(i64::MAX as u64) as i64 - CLOCKS_APART_NS;
        let reverse_ns = WAY_BACK.as_nanos() as i64 + CLOCKS_APART_NS;
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
            one_way_delay_ns: self.random.chance(0.9).then_some(forward_ns),
            reverse_delay_ns: self.random.chance(0.9).then_some(reverse_ns),
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
