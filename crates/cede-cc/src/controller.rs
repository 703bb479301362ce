//! The contract between a transport and a congestion controller.
//!
//! A transport owns reliability: it numbers packets, decides which are lost, estimates the RTT and runs the
//! retransmission timer. A controller owns one question: how much may be under way, and how fast may it leave? It is
//! told of four things ([`Controller::on_sent`], [`Controller::on_feedback`], [`Controller::on_timeout`],
//! [`Controller::on_timer`]) and answers each of the last three with an [`Allowance`], which the transport caches, so
//! sending a packet costs no question. uTP also tells of delays that came without news ([`Controller::on_delays`]),
//! and of packets of which nothing else will be told ([`Controller::on_forgotten`]); who finds losses by time tells of
//! reductions in vain ([`Controller::on_undo`]).
//!
//! After *every* call, `on_sent` included, the transport asks for [`Controller::timer`]; a controller that must change
//! its allowance because a packet left asks for a timer that is due at once.
//!
//! # How particular controllers fit
//! * **TCP-LP** reads [`Feedback::one_way_delay_ns`] and ends its inference phase by comparing [`Feedback::now`] with
//!   `srtt`. Linux's variant computes on the stamps themselves, among them the peer's clock rate: between two
//!   acknowledgements our stamps advance by the change of `now`, the peer's by that less the change of
//!   [`Feedback::reverse_delay_ns`], at the granularity that the transport's stamps have.
//! * **NICE / Vegas** count RTT samples ([`Feedback::rtt`]) per round; a round ends with the first acknowledged
//!   [`PacketFact::number`] at or above the [`Feedback::next_number`] noted at its start. NICE's windows down to 1/48
//!   of a packet are an [`Allowance::cwnd_bytes`] below one packet, which the transport turns into one packet every
//!   `1/w` round trips; where two are to leave every `2/w`, it allows two when its own timer says so, and an octet until then.
//! * **LEDBAT++** takes `rtt` through the same base history and filter as LEDBAT its delays, ends freezes and starts
//!   slowdowns by [`Controller::timer`], and reads [`Feedback::app_limited`].
//! * **BBR** takes delivery-rate samples from the [`SendRecord`] of the newest acknowledged packet
//!   ([`crate::instruments::DeliverySample::of`]) and answers with a window and a pacing rate; its rounds follow
//!   `SendRecord::delivered_bytes`, its restart from idleness shows in [`Sent::in_flight_bytes`], and the state of
//!   recovery in [`Feedback::in_recovery`].
//! * **PCC Vivace and Proteus** return a monitor interval's number from `on_sent` as the packet's [`Tag`], per
//!   transmission, and get it back with that transmission's fate in `acked` or `lost`, or as forgotten; a timeout means that
//!   all that was under way is lost. A new interval, with its rate, opens at a packet's departure: by a timer that
//!   is due at once. Holding back while too many intervals are pending is a window of what is under way. The random
//!   order of probes comes from a [`cede_units::Stream`] seeded by a parameter.

use alloc::string::String;
use cede_units::{Duration, Instant, Rate};

/// A mark that a controller puts on a packet when it leaves, and gets back with the packet's fate.
pub type Tag = u32;

/// What a controller knows of the path before the first packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Payload octets of a full packet (MSS, SMSS).
    pub mss_bytes: u32,
    /// The initial window in octets, where the transport prescribes one (RFC 5681, RFC 6928). Controllers whose
    /// source prescribes its own ignore it.
    pub initial_cwnd_bytes: u32,
    /// The largest window worth having: the send buffer's limit.
    pub max_cwnd_bytes: u64,
}

/// The state of delivery when a packet left, as delivery-rate estimation needs it
/// (draft-cheng-iccrg-delivery-rate-estimation, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendRecord {
    /// Octets delivered on the connection when this packet left.
    pub delivered_bytes: u64,
    /// When the newest of those was acknowledged.
    pub delivered_at: Instant,
    /// When the packet left whose delivery opened the sampling interval.
    pub first_sent_at: Instant,
    /// The sender lacked data, not window, when this packet left.
    pub app_limited: bool,
}

/// What is known of one packet whose fate has been learnt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketFact {
    /// The packet's number: counts transmissions of new data upwards from 0 without wrapping. A retransmission keeps
    /// the number of the data it carries.
    pub number: u64,
    /// Payload octets.
    pub bytes: u32,
    /// When it last left.
    pub sent_at: Instant,
    /// It was sent more than once.
    pub retransmitted: bool,
    /// What [`Controller::on_sent`] answered for its last transmission.
    pub tag: Tag,
    /// The state of delivery at its last transmission.
    pub record: SendRecord,
}

/// A packet is leaving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Now.
    pub now: Instant,
    /// The packet's number, see [`PacketFact::number`].
    pub number: u64,
    /// Payload octets.
    pub bytes: u32,
    /// Octets under way, this packet included.
    pub in_flight_bytes: u64,
    /// It has been sent before.
    pub retransmission: bool,
}

/// Everything that one arriving acknowledgement says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback<'a> {
    /// Now, by the sender's clock.
    pub now: Instant,
    /// Packets acknowledged for the first time by this packet, cumulatively or selectively, by rising number.
    pub acked: &'a [PacketFact],
    /// Packets that the transport declares lost on the strength of this packet, by rising number.
    pub lost: &'a [PacketFact],
    /// Payload octets of `acked`; fewer where the transport has been told to count as libtorrent does (`masks_count_alone` of `cede-utp`).
    pub acked_bytes: u64,
    /// Payload octets of `lost`.
    pub lost_bytes: u64,
    /// Octets under way before this packet was processed. Data that limited transmit (RFC 3042) sent beyond the
    /// window is left out when a loss is being reported, as RFC 5681 section 3.2 asks.
    pub in_flight_before_bytes: u64,
    /// Octets under way after `acked` and `lost` have been taken off.
    pub in_flight_bytes: u64,
    /// Octets delivered on the connection so far, this packet included.
    pub delivered_bytes: u64,
    /// The number the next new packet will carry: all smaller ones have been sent. A loss event is *new* where the
    /// lost number is at or above the value that this had at the previous cut.
    pub next_number: u64,
    /// The RTT sample of the newest packet acknowledged, where it is unambiguous (Karn, or timestamps).
    pub rtt: Option<Duration>,
    /// The smallest RTT among the packets acknowledged here, where there is one.
    pub rtt_min: Option<Duration>,
    /// The transport's smoothed RTT (RFC 6298), after this sample; zero before the first.
    pub srtt: Duration,
    /// The raw one-way delay of what we send, in nanoseconds: the receiver's clock minus ours, unwrapped. The clocks
    /// are not synchronised: the value may be negative, and only differences between samples mean anything.
    pub one_way_delay_ns: Option<i64>,
    /// The raw one-way delay of what the peer sends us (our clock minus the peer's): the other half of the clock
    /// drift between the two.
    pub reverse_delay_ns: Option<i64>,
    /// Packets of `acked` that arrived with Congestion Experienced (RFC 3168).
    pub ce_marked: u32,
    /// The application, not the window, limited what was under way.
    pub app_limited: bool,
    /// Loss-based controllers hold their window: the transport was repairing an earlier loss event when this arrived,
    /// and still is. TCP also sets it outside a repair for an acknowledgement that is selective only and does not advance
    /// the cumulative one (RFC 5681, section 3.1, lets only acknowledgements of new data raise a window), unless it finds losses by
    /// time and segments are late by more than three; uTP, whose
    /// sources know no such rule, does not. The acknowledgement that begins a repair, and that which ends it, are not
    /// covered.
    pub in_recovery: bool,
}

impl Feedback<'_> {
    /// Whether it says that something has arrived; a window grows with nothing else.
    #[must_use]
    pub const fn acknowledges(&self) -> bool {
        self.acked_bytes > 0 || !self.acked.is_empty()
    }
}

/// Delays that came with a packet which says nothing of ours: the answer to a SYN, or data of a peer that has nothing new to
/// acknowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelaySamples {
    /// Now.
    pub now: Instant,
    /// See [`Feedback::one_way_delay_ns`]; of the last of our packets that the peer has had, so it may repeat.
    pub one_way_delay_ns: Option<i64>,
    /// See [`Feedback::reverse_delay_ns`].
    pub reverse_delay_ns: Option<i64>,
}

impl DelaySamples {
    /// Where nothing was told.
    #[must_use]
    pub const fn none(now: Instant) -> Self {
        Self { now, one_way_delay_ns: None, reverse_delay_ns: None }
    }

    /// Those of an acknowledgement.
    #[must_use]
    pub const fn of(feedback: &Feedback<'_>) -> Self {
        let Feedback { now, one_way_delay_ns, reverse_delay_ns, .. } = *feedback;
        Self { now, one_way_delay_ns, reverse_delay_ns }
    }
}

/// The retransmission timer ran out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeout {
    /// Now.
    pub now: Instant,
    /// Octets that were under way by the transport's best estimate, which leaves out what is known to have arrived or to
    /// be lost already; all of them are taken for lost. TCP: RFC 6675's pipe, less RFC 6582's inflation where there is
    /// no SACK, as each duplicate acknowledgement stands for a segment that has arrived.
    pub in_flight_bytes: u64,
    /// Timeouts in a row without an acknowledgement of new data, this one included: 1 for the first. After idleness, how many it lasted for,
    /// as far as the transport knows.
    pub consecutive: u32,
    /// See [`Feedback::next_number`].
    pub next_number: u64,
    /// Nothing was outstanding: the connection has idled for one timeout.
    pub idle: bool,
}

/// How much a controller allows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Allowance {
    /// The congestion window: octets that may be under way. A fraction of a packet means one packet every
    /// `packet / cwnd` smoothed round trips.
    pub cwnd_bytes: u64,
    /// Packets leave no faster than this; none where the window alone rules.
    pub pacing_rate: Option<Rate>,
    /// Octets that may leave back to back under `pacing_rate`.
    pub burst_bytes: u32,
}

impl Allowance {
    /// A window without pacing.
    #[must_use]
    pub const fn window(cwnd_bytes: u64) -> Self {
        Self { cwnd_bytes, pacing_rate: None, burst_bytes: u32::MAX }
    }
}

/// Where a controller stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// Growing exponentially from the start or after a timeout.
    #[default]
    SlowStart,
    /// The controller's steady rule.
    CongestionAvoidance,
    /// Repairing a loss event.
    Recovery,
    /// A controller's own phase, by name.
    Named(&'static str),
}

/// A controller's state for whoever records.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// The congestion window in octets, with its fraction.
    pub cwnd_bytes: f64,
    /// The slow-start threshold in octets, where one has been set.
    pub ssthresh_bytes: Option<f64>,
    /// The pacing rate, where there is one.
    pub pacing_rate: Option<Rate>,
    /// The base delay in nanoseconds on the raw scale of [`Feedback::one_way_delay_ns`] (or of the RTT).
    pub base_delay_ns: Option<i64>,
    /// The queueing delay that the controller believes in.
    pub queueing_delay: Option<Duration>,
    /// Where it stands.
    pub phase: Phase,
    /// Anything else worth a line in a trace.
    pub note: Option<String>,
}

/// Decides how much may be under way.
///
/// Object-safe: transports hold a `Box<dyn Controller>`. No method may panic whatever the feedback, and every
/// implementation passes the crate's conformance suite.
pub trait Controller: Send {
    /// The name under which the registry knows it.
    fn name(&self) -> &'static str;

    /// A packet leaves. The answer comes back with the packet's fate; controllers without use for it keep the default.
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        let _ = sent;
        0
    }

    /// An acknowledgement arrived, or a loss was found.
    fn on_feedback(&mut self, feedback: &Feedback<'_>) -> Allowance;

    /// A packet came that says nothing of ours, and tells delays all the same. RFC 6817 takes them from acknowledgements of
    /// data alone; libtorrent wherever they come from (so does libutp, but its answer to a SYN, which would come first, tells
    /// none). Nothing is allowed by it.
    fn on_delays(&mut self, samples: &DelaySamples) {
        let _ = samples;
    }

    /// A transmission leaves the flight, neither acknowledged nor lost: a path-MTU probe that was too large, a packet that has become
    /// so or that the peer had no room for, one that a tail probe repeated and of which the answers leave open whether it arrived.
    /// Nothing is allowed by it; who waits for each packet's fate waits no longer for this one's. As with a loss, it may be
    /// acknowledged all the same before it leaves again.
    fn on_forgotten(&mut self, packet: &PacketFact) {
        let _ = packet;
    }

    /// The last reduction for a loss or a timeout was in vain: nothing had been lost, packets had overtaken one another or were slow.
    /// Who takes it back (RFC 9438, section 4.9.2; Linux) has the window again that it had, or a larger one. Told where losses are
    /// found by time; of timeouts by TCP alone. It may come long after the reduction, or without one.
    fn on_undo(&mut self) -> Allowance {
        self.allowance()
    }

    /// The transport's retransmission timer ran out.
    fn on_timeout(&mut self, timeout: &Timeout) -> Allowance;

    /// The controller's own timer ran out.
    fn on_timer(&mut self, now: Instant) -> Allowance {
        let _ = now;
        self.allowance()
    }

    /// When the controller wants [`Controller::on_timer`]; asked again after each call. A transport ends the connection where this
    /// never lets time pass ([`crate::instruments::TimerGuard`]).
    fn timer(&self) -> Option<Instant> {
        None
    }

    /// The path's packet size changed (path-MTU search).
    fn on_mss(&mut self, mss_bytes: u32) -> Allowance;

    /// What is allowed now, without news.
    fn allowance(&self) -> Allowance;

    /// It answers [`Feedback::ce_marked`] as it would a loss. For one that does not, a transport must not announce ECN on what it
    /// sends: RFC 3168, section 5, asks of whoever does that a mark have the effect of a loss.
    fn answers_marks(&self) -> bool {
        true
    }

    /// The state, for records.
    fn snapshot(&self) -> Snapshot;
}

/// Timers that may run out at one call of [`run_timers`]; a controller that wants more waits for the next.
const TIMERS_AT_ONCE: u32 = 8;

/// For transports without timers of their own, which ask at each event: has whatever is due run. What is allowed then, where something was.
pub fn run_timers(controller: &mut dyn Controller, now: Instant) -> Option<Allowance> {
    let mut allowance = None;
    for _ in 0..TIMERS_AT_ONCE {
        if controller.timer().is_none_or(|due| due > now) {
            break;
        }
        allowance = Some(controller.on_timer(now));
    }
    allowance
}
