//! What a responsive controller must do with a link of its own: a closed loop of one sender, one queue and its
//! acknowledgements, where [`check`](super::check) deals single calls. It finds what no single call shows: losses or marks that are
//! ignored, a slow start that never ends, a window that grows while nobody uses it.

use super::{Subject, TIMER, Violation};
use crate::instruments::TimerGuard;
use crate::{Allowance, Controller, Feedback, PacketFact, Path, SendRecord, Sent, Timeout};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use cede_units::{Duration, Instant, Stream};

/// The rules, in the words that a [`Violation`] quotes.
pub const LINK_RULES: &[&str] = &[LOSSES, MARKS, USE, UNUSED, TIMER];

const LOSSES: &str =
    "a link that drops what it cannot hold does not lose more than a third of all packets for good";
const MARKS: &str = "a queue that marks does not become longer than three seconds within half a minute";
const UNUSED: &str = "a window that the application does not use does not grow beyond ten times what is used";
const USE: &str = "a link without any loss carries something";

const MSS: u32 = 1000;
/// One packet in a millisecond.
const SERVICE: Duration = Duration::from_millis(1);
/// Without any queue; 40 packets.
const BASE_RTT: Duration = Duration::from_millis(40);
/// Half of what is under way on the empty path.
const BUFFER_PACKETS: usize = 20;
/// From this length on a queue marks.
const MARK_PACKETS: usize = 10;
/// What a queue that marks may become: three seconds. That is long, as PCC's primaries know neither marks nor a delay that grows
/// slowly, and have 2.4; what doubles on has four at once.
const MARKED_PACKETS: usize = 3_000;
const RUN: Duration = Duration::from_secs(30);
/// How many times what is used a window may become: BBR keeps what it takes for the path.
const UNUSED_GROWTH: f64 = 10.0;
/// Packets in a round trip of an application that has little to say.
const LITTLE: u32 = 4;
/// As much as the queue that marks could hold, and more.
const LARGEST_WINDOW: u64 = 4_000_000;

/// Runs a controller for half a minute alone on a link of 8 Mbit/s and 40 ms, with a short buffer, and with a long one that
/// marks. Every one that responds to congestion must pass.
///
/// # Errors
/// The first [`Violation`]; its step counts packets.
pub fn check_on_a_link(subject: &Subject<'_>, seed: u64) -> Result<(), Violation> {
    trial(subject, Queue::Drops, false, seed)?;
    trial(subject, Queue::Marks, false, seed)
}

/// The same link under an application that sends four packets in a round trip. RFC 7661 asks this of TCP; the slow start of libutp
/// and the first phase of PCC do grow there.
///
/// # Errors
/// The first [`Violation`]; its step counts packets.
pub fn check_unused(subject: &Subject<'_>, seed: u64) -> Result<(), Violation> {
    trial(subject, Queue::Drops, true, seed)
}

fn trial(subject: &Subject<'_>, queue: Queue, has_little: bool, seed: u64) -> Result<(), Violation> {
    if !subject.responsive {
        return Ok(());
    }
    let path = Path { mss_bytes: MSS, initial_cwnd_bytes: 2 * MSS, max_cwnd_bytes: LARGEST_WINDOW };
    let mut link = Link::new((subject.build)(&path), queue, has_little, seed);
    let ran = link.run();
    ran.and_then(|()| link.judge()).map_err(|(rule, detail)| Violation {
        rule,
        seed,
        step: link.number as u32,
        detail,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    Drops,
    Marks,
}

/// A rule that did not hold, and what was seen.
type Broken = (&'static str, String);

/// A packet on its way, and when its acknowledgement arrives.
struct Flight {
    packet: PacketFact,
    back_at: Instant,
    one_way: Duration,
    marked: bool,
    dropped: bool,
}

struct Link {
    controller: Box<dyn Controller>,
    queue: Queue,
    has_little: bool,
    now: Instant,
    began: Instant,
    /// When the queue will have been served.
    free_at: Instant,
    flights: VecDeque<Flight>,
    in_flight: u64,
    number: u64,
    delivered: u64,
    next_send: Instant,
    cut_below: u64,
    srtt: Duration,
    /// In the second half: packets that left, that were lost, and the longest queue.
    sent: u64,
    lost: u64,
    longest: usize,
}

impl Link {
    fn new(controller: Box<dyn Controller>, queue: Queue, has_little: bool, seed: u64) -> Self {
        // A start between ticks, and another for each seed.
        let began = Instant::from_nanos(1_000_000_000 + Stream::named(seed, "link").below(1_000_000_000));
        Self {
            controller,
            queue,
            has_little,
            now: began,
            began,
            free_at: began,
            flights: VecDeque::new(),
            in_flight: 0,
            number: 0,
            delivered: 0,
            next_send: began,
            cut_below: 0,
            srtt: Duration::ZERO,
            sent: 0,
            lost: 0,
            longest: 0,
        }
    }

    /// In steps of a quarter of a packet's time: what is due arrives, timers run out, and what may leave does.
    fn run(&mut self) -> Result<(), Broken> {
        let step = SERVICE / 4;
        while self.now.since(self.began) < RUN {
            self.now += step;
            self.run_timers()?;
            while self.flights.front().is_some_and(|flight| flight.back_at <= self.now) {
                self.arrive();
            }
            self.send_all();
        }
        Ok(())
    }

    /// A timer that never moves on would keep the link from everything else.
    fn run_timers(&mut self) -> Result<(), Broken> {
        let mut guard = TimerGuard::default();
        while let Some(at) = self.controller.timer().filter(|&at| at <= self.now) {
            if guard.spins(self.now) {
                return Err((TIMER, format!("{at} again and again, at {}", self.now)));
            }
            self.controller.on_timer(self.now);
        }
        Ok(())
    }

    fn send_all(&mut self) {
        for _ in 0..64 {
            let allowance = self.controller.allowance();
            let is_open = self.in_flight == 0 || self.fits(allowance);
            let is_due = allowance.pacing_rate.is_none() || self.next_send <= self.now;
            if !is_open || !is_due || (self.has_little && self.in_flight >= u64::from(LITTLE * MSS)) {
                return;
            }
            self.send(allowance);
        }
    }

    fn fits(&self, allowance: Allowance) -> bool {
        self.in_flight + u64::from(MSS) <= allowance.cwnd_bytes
    }

    fn send(&mut self, allowance: Allowance) {
        let record = SendRecord {
            delivered_bytes: self.delivered,
            delivered_at: self.now,
            first_sent_at: self.now,
            app_limited: self.has_little,
        };
        let number = self.number;
        self.number += 1;
        self.in_flight += u64::from(MSS);
        let sent = Sent {
            now: self.now,
            number,
            bytes: MSS,
            in_flight_bytes: self.in_flight,
            retransmission: false,
        };
        let tag = self.controller.on_sent(&sent);
        let packet = PacketFact { number, bytes: MSS, sent_at: self.now, retransmitted: false, tag, record };
        if let Some(rate) = allowance.pacing_rate {
            self.next_send = self.next_send.max(self.now) + rate.time_to_send(u64::from(MSS));
        }
        self.enqueue(packet);
    }

    fn enqueue(&mut self, packet: PacketFact) {
        let begins = self.free_at.max(self.now);
        let waiting = (begins.since(self.now).as_nanos() / SERVICE.as_nanos()) as usize;
        let room = if self.queue == Queue::Drops { BUFFER_PACKETS } else { MARKED_PACKETS * 4 };
        let dropped = waiting >= room;
        if !dropped {
            self.free_at = begins + SERVICE;
        }
        let half = BASE_RTT / 2;
        let one_way = begins.since(self.now) + SERVICE + half;
        let marked = self.queue == Queue::Marks && waiting >= MARK_PACKETS;
        if self.now.since(self.began) > RUN / 2 {
            self.sent += 1;
            self.lost += u64::from(dropped);
            self.longest = self.longest.max(waiting);
        }
        let back_at = self.now + one_way + half;
        self.flights.push_back(Flight { packet, back_at, one_way, marked, dropped });
    }

    /// The acknowledgement of a packet, with the drops before it; a drop at the end is found when its acknowledgement would
    /// have come.
    fn arrive(&mut self) {
        let mut lost = Vec::new();
        let mut arrived = None;
        while arrived.is_none() {
            match self.flights.pop_front() {
                Some(flight) if flight.dropped => lost.push(flight.packet),
                Some(flight) => arrived = Some(flight),
                None => break,
            }
        }
        let before = self.in_flight;
        let Some(flight) = arrived else {
            self.in_flight = 0;
            let timeout = Timeout {
                now: self.now,
                in_flight_bytes: before,
                consecutive: 1,
                next_number: self.number,
                idle: false,
            };
            self.controller.on_timeout(&timeout);
            return;
        };
        self.now = self.now.max(flight.back_at);
        self.report(before, &lost, &flight);
    }

    fn report(&mut self, before: u64, lost: &[PacketFact], flight: &Flight) {
        let lost_bytes = lost.len() as u64 * u64::from(MSS);
        self.in_flight = before.saturating_sub(lost_bytes + u64::from(MSS));
        self.delivered += u64::from(MSS);
        let rtt = self.now.since(flight.packet.sent_at);
        self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
        let in_recovery = lost.is_empty() && flight.packet.number < self.cut_below;
        if !lost.is_empty() {
            self.cut_below = self.number;
        }
        let acked = [flight.packet];
        let feedback = Feedback {
            now: self.now,
            acked: &acked,
            lost,
            acked_bytes: u64::from(MSS),
            lost_bytes,
            in_flight_before_bytes: before,
            in_flight_bytes: self.in_flight,
            delivered_bytes: self.delivered,
            next_number: self.number,
            rtt: Some(rtt),
            rtt_min: Some(rtt),
            srtt: self.srtt,
            one_way_delay_ns: Some(flight.one_way.as_nanos() as i64),
            reverse_delay_ns: Some((BASE_RTT / 2).as_nanos() as i64),
            ce_marked: u32::from(flight.marked),
            app_limited: self.has_little,
            in_recovery,
        };
        self.controller.on_feedback(&feedback);
    }

    fn judge(&self) -> Result<(), Broken> {
        let require = |kept: bool, rule, detail: String| if kept { Ok(()) } else { Err((rule, detail)) };
        if self.has_little {
            let (window, most) =
                (self.controller.snapshot().cwnd_bytes, UNUSED_GROWTH * f64::from(LITTLE * MSS));
            return require(window <= most, UNUSED, format!("{window} of {most}"));
        }
        require(self.sent > 0, USE, format!("{} packets", self.sent))?;
        require(
            self.queue == Queue::Marks || self.lost * 3 <= self.sent,
            LOSSES,
            format!("{} of {}", self.lost, self.sent),
        )?;
        require(self.longest <= MARKED_PACKETS, MARKS, format!("{} packets", self.longest))
    }
}
