//! A test instrument: one drop-tail bottleneck and flows that send without end, each steered by a controller.
//!
//! Every packet is one event, its acknowledgement. The link is a FIFO whose departures are computed on arrival. The
//! transport is an idealised one with selective acknowledgements: a packet is lost when three later ones have been
//! acknowledged; what was lost counts as sent, since only rates and delays are measured here. One host's clock may
//! run at another pace than the other's, and may be set.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use cede_cc::instruments::{DeliveryRate, Pacer, RttConfig, RttEstimator};
use cede_cc::{Allowance, Controller, Feedback, PacketFact, Params, Path, Sent, Timeout, registry};
use cede_units::{Duration, Instant, Rate, Stream};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub const MSS: u32 = 1448;
pub const WIRE_BYTES: u64 = 1500;

/// A controller by name, with parameters as people write them.
pub fn build(name: &str, params: &[(&str, &str)]) -> Box<dyn Controller> {
    let entry = registry::find(name).unwrap();
    let mut given = Params::new();
    for (param, text) in params {
        given.parse_and_set(entry.params, param, text).unwrap();
    }
    let path = Path { mss_bytes: MSS, initial_cwnd_bytes: 3 * MSS, max_cwnd_bytes: 1 << 24 };
    registry::build(name, &given, &path).unwrap()
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn s(s: u64) -> Instant {
    Instant::from_secs(s)
}

/// A flow and what has been measured of it since the meters were last reset.
pub struct Flow {
    pub controller: Box<dyn Controller>,
    pub start: Instant,
    pub stop: Instant,
    /// How much faster the receiver's clock runs, and by how much it is ahead.
    pub skew: f64,
    pub offset_ns: i64,
    /// Whether the transport has delay samples of the reverse direction.
    pub has_reverse: bool,
    /// The granularity of stamps in nanoseconds.
    pub stamp_ns: i64,
    pub delivered: u64,
    pub lost: u64,
    outstanding: VecDeque<PacketFact>,
    next_number: u64,
    recover: u64,
    rtt: RttEstimator,
    allowance: Allowance,
    pacer: Pacer,
    delivery: DeliveryRate,
    /// A departure is scheduled.
    waits: bool,
    last_progress: Instant,
    timeouts: u32,
    last_sent: Instant,
    last_arrival: Instant,
    last_return: Instant,
}

impl Flow {
    pub fn new(controller: Box<dyn Controller>) -> Self {
        let allowance = controller.allowance();
        let mut pacer = Pacer::new();
        pacer.set(&allowance);
        let config = RttConfig { min_rto: Duration::from_millis(500), ..RttConfig::default() };
        Self {
            controller,
            start: Instant::ZERO,
            stop: Instant::NEVER,
            skew: 0.0,
            offset_ns: 3_000_000_000,
            has_reverse: true,
            stamp_ns: 1,
            delivered: 0,
            lost: 0,
            outstanding: VecDeque::new(),
            next_number: 0,
            recover: 0,
            rtt: RttEstimator::new(config),
            allowance,
            pacer,
            delivery: DeliveryRate::new(),
            waits: false,
            last_progress: Instant::ZERO,
            timeouts: 0,
            last_sent: Instant::ZERO,
            last_arrival: Instant::ZERO,
            last_return: Instant::ZERO,
        }
    }

    pub fn starting_at(self, start: Instant) -> Self {
        Self { start, ..self }
    }

    pub fn stopping_at(self, stop: Instant) -> Self {
        Self { stop, ..self }
    }

    pub fn with_skew(self, skew: f64) -> Self {
        Self { skew, ..self }
    }

    fn remote_stamp(&self, now: Instant) -> i64 {
        let ns = now.as_nanos() as i64;
        let clock = ns + (self.skew * ns as f64) as i64 + self.offset_ns;
        clock.div_euclid(self.stamp_ns) * self.stamp_ns
    }

    fn local_stamp(&self, now: Instant) -> i64 {
        (now.as_nanos() as i64).div_euclid(self.stamp_ns) * self.stamp_ns
    }

    fn in_flight(&self) -> u64 {
        self.outstanding.len() as u64 * u64::from(MSS)
    }

    /// Takes over what the controller answered.
    fn adopt(&mut self, allowance: Allowance) {
        self.allowance = allowance;
        self.pacer.set(&allowance);
    }

    /// Calls a timer of the controller's that is due.
    fn run_timer(&mut self, now: Instant) {
        if self.controller.timer().is_some_and(|at| at <= now) {
            let allowance = self.controller.on_timer(now);
            self.adopt(allowance);
        }
    }

    /// When the next packet may leave.
    fn may_send_at(&self, now: Instant) -> Option<Instant> {
        let running = self.start <= now && now < self.stop;
        if running && self.in_flight() + u64::from(MSS) <= self.allowance.cwnd_bytes {
            return Some(self.pacer.departure(now, u64::from(MSS)));
        }
        // Below one packet: one every MSS / cwnd smoothed round trips.
        let wait = self.rtt.srtt().mul_f64(f64::from(MSS) / self.allowance.cwnd_bytes.max(1) as f64);
        (running && self.outstanding.is_empty()).then(|| (self.last_sent + wait).max(now))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ack { flow: usize, number: u64, received: Instant, sent: Instant },
    Timer { flow: usize },
    Departure { flow: usize },
}

/// The link, its flows and its meters.
pub struct World {
    pub now: Instant,
    pub forward: Duration,
    pub backward: Duration,
    pub flows: Vec<Flow>,
    /// Packets are delayed by up to this at random on either way, without overtaking each other.
    pub jitter: Duration,
    /// The probability that a packet is lost on the way; and the share that is lost at regular distances.
    pub loss: f64,
    pub regular_loss: f64,
    regular_due: f64,
    random: Stream,
    rate: Rate,
    buffer: Duration,
    busy_until: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    order: u64,
    meters_since: Instant,
    queue_sum_ns: f64,
    queue_samples: u64,
    carried_bytes: u64,
}

impl World {
    /// `rtt` without queueing, split evenly; `buffer` in time at the link's rate.
    pub fn new(rate: Rate, rtt: Duration, buffer: Duration, flows: Vec<Flow>) -> Self {
        let mut world = Self {
            now: Instant::ZERO,
            forward: rtt / 2,
            backward: rtt / 2,
            flows,
            jitter: Duration::ZERO,
            loss: 0.0,
            regular_loss: 0.0,
            regular_due: 0.0,
            random: Stream::named(1, "jitter"),
            rate,
            buffer,
            busy_until: Instant::ZERO,
            events: BinaryHeap::new(),
            order: 0,
            meters_since: Instant::ZERO,
            queue_sum_ns: 0.0,
            queue_samples: 0,
            carried_bytes: 0,
        };
        for flow in 0..world.flows.len() {
            let start = world.flows[flow].start;
            world.schedule(start, Event::Timer { flow });
        }
        world
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    pub fn run_until(&mut self, end: Instant) {
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            match event {
                Event::Ack { flow, number, received, sent } => self.acknowledge(flow, number, received, sent),
                Event::Timer { flow } => self.timer(flow),
                Event::Departure { flow } => {
                    self.flows[flow].waits = false;
                    self.send(flow);
                }
            }
        }
        self.now = end;
    }

    pub fn reset_meters(&mut self) {
        self.meters_since = self.now;
        (self.queue_sum_ns, self.queue_samples, self.carried_bytes) = (0.0, 0, 0);
        for flow in &mut self.flows {
            (flow.delivered, flow.lost) = (0, 0);
        }
    }

    /// Runs on and answers with (mean queueing delay in ms, utilisation) of that time.
    pub fn measure_until(&mut self, end: Instant) -> (f64, f64) {
        self.reset_meters();
        self.run_until(end);
        let seconds = self.now.since(self.meters_since).as_secs_f64();
        let utilisation = self.carried_bytes as f64 * 8.0 / seconds / self.rate.bits_per_sec() as f64;
        (self.queue_sum_ns / self.queue_samples.max(1) as f64 / 1e6, utilisation)
    }

    /// The share of flow `i` in what was delivered since the meters were reset.
    pub fn share(&self, i: usize) -> f64 {
        let all: u64 = self.flows.iter().map(|flow| flow.delivered).sum();
        self.flows[i].delivered as f64 / all.max(1) as f64
    }

    fn timer(&mut self, i: usize) {
        let flow = &mut self.flows[i];
        let rto = flow.rtt.rto();
        let silent = !flow.outstanding.is_empty() && self.now.since(flow.last_progress) >= rto;
        if silent {
            flow.timeouts += 1;
            let timeout = Timeout {
                now: self.now,
                in_flight_bytes: flow.in_flight(),
                consecutive: flow.timeouts,
                next_number: flow.next_number,
                idle: false,
            };
            flow.rtt.back_off();
            flow.last_progress = self.now;
            flow.outstanding.clear();
            let allowance = flow.controller.on_timeout(&timeout);
            flow.adopt(allowance);
        }
        flow.run_timer(self.now);
        self.send(i);
        self.schedule(self.now + Duration::from_millis(100), Event::Timer { flow: i });
    }

    fn send(&mut self, i: usize) {
        while let Some(at) = self.flows[i].may_send_at(self.now) {
            if at > self.now {
                // The periodic timer asks again where a window of less than a packet holds it back.
                let flow = &mut self.flows[i];
                if flow.allowance.pacing_rate.is_some() && !core::mem::replace(&mut flow.waits, true) {
                    self.schedule(at, Event::Departure { flow: i });
                }
                return;
            }
            self.transmit(i);
        }
    }

    fn transmit(&mut self, i: usize) {
        let waiting = self.busy_until.since(self.now);
        let transmission = self.rate.time_to_send(WIRE_BYTES);
        let departure = self.now + waiting + transmission;
        let dropped = waiting + transmission > self.buffer + transmission;
        let number = self.flows[i].next_number;
        self.note_sent(i);
        if dropped || self.is_lost() {
            return;
        }
        self.busy_until = departure;
        self.queue_sum_ns += waiting.as_nanos() as f64;
        self.queue_samples += 1;
        self.carried_bytes += WIRE_BYTES;
        let jitter = [self.random_delay(), self.random_delay()];
        let flow = &mut self.flows[i];
        // A path that becomes shorter does not reorder here.
        let received = (departure + self.forward + jitter[0]).max(flow.last_arrival);
        flow.last_arrival = received;
        let returned = (received + self.backward + jitter[1]).max(flow.last_return);
        flow.last_return = returned;
        let event = Event::Ack { flow: i, number, received, sent: self.now };
        self.schedule(returned, event);
    }

    fn is_lost(&mut self) -> bool {
        self.regular_due += self.regular_loss;
        let due = self.regular_due >= 1.0;
        self.regular_due -= f64::from(u8::from(due));
        due || (self.loss > 0.0 && self.random.chance(self.loss))
    }

    fn random_delay(&mut self) -> Duration {
        Duration::from_nanos(self.random.below(self.jitter.as_nanos() + 1))
    }

    fn note_sent(&mut self, i: usize) {
        let flow = &mut self.flows[i];
        if flow.outstanding.is_empty() {
            flow.last_progress = self.now;
        }
        let record = flow.delivery.record(self.now, flow.in_flight());
        let in_flight_bytes = flow.in_flight() + u64::from(MSS);
        let (now, number, bytes, retransmission) = (self.now, flow.next_number, MSS, false);
        let tag = flow.controller.on_sent(&Sent { now, number, bytes, in_flight_bytes, retransmission });
        let fact = PacketFact { number, bytes, sent_at: now, retransmitted: false, tag, record };
        flow.outstanding.push_back(fact);
        flow.last_sent = now;
        flow.pacer.on_sent(now, u64::from(MSS));
        flow.run_timer(now);
        flow.next_number += 1;
    }

    fn acknowledge(&mut self, i: usize, number: u64, received: Instant, sent: Instant) {
        let now = self.now;
        let flow = &mut self.flows[i];
        let before = flow.in_flight();
        let mut lost = Vec::new();
        while let Some(packet) = flow.outstanding.front().filter(|packet| packet.number + 3 <= number) {
            lost.push(*packet);
            flow.outstanding.pop_front();
        }
        let Some(index) = flow.outstanding.iter().position(|packet| packet.number == number) else {
            return;
        };
        let packet = flow.outstanding.remove(index).unwrap();
        flow.rtt.update(now.since(sent));
        flow.last_progress = now;
        flow.timeouts = 0;
        flow.delivered += 1;
        flow.delivery.on_delivered(now, &packet);
        flow.lost += lost.len() as u64;
        let in_recovery = lost.is_empty() && number < flow.recover;
        if lost.iter().any(|packet| packet.number >= flow.recover) {
            flow.recover = flow.next_number;
        }
        let forward = flow.remote_stamp(received) - flow.local_stamp(sent);
        let reverse = flow.local_stamp(now) - flow.remote_stamp(received);
        let feedback = Feedback {
            now,
            acked: &[packet],
            lost: &lost,
            acked_bytes: u64::from(MSS),
            lost_bytes: lost.len() as u64 * u64::from(MSS),
            in_flight_before_bytes: before,
            in_flight_bytes: flow.in_flight(),
            delivered_bytes: flow.delivery.delivered_bytes(),
            next_number: flow.next_number,
            rtt: Some(now.since(sent)),
            rtt_min: Some(now.since(sent)),
            srtt: flow.rtt.srtt(),
            one_way_delay_ns: Some(forward),
            reverse_delay_ns: flow.has_reverse.then_some(reverse),
            ce_marked: 0,
            app_limited: now >= flow.stop,
            in_recovery,
        };
        let allowance = flow.controller.on_feedback(&feedback);
        flow.adopt(allowance);
        flow.run_timer(now);
        self.send(i);
    }
}
