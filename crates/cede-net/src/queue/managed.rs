//! Queues that decide: what a discipline is made of, and one face for all of them.

use super::codel::{Codel, Pass};
use super::fq_codel::FqCodel;
use super::pie::Pie;
use super::red::Red;
use super::{
    CodelConfig, Fifo, FqCodelConfig, PieConfig, QueueLimit, RedConfig, Verdicts, Waiting, head_drop,
};
use crate::bucket::{BucketConfig, Shaper, TokenBucket};
use crate::log::{DropCause, Enqueue, LinkLog};
use cede_units::{Instant, Rate, Stream};

/// How a queue decides which packets it takes, keeps, drops and marks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Discipline {
    /// First in, first out; a packet that finds the queue full is dropped.
    #[default]
    DropTail,
    /// First in, first out; a packet that finds the queue full pushes out the oldest.
    HeadDrop,
    /// CoDel (RFC 8289).
    Codel(CodelConfig),
    /// FQ-CoDel (RFC 8290).
    FqCodel(FqCodelConfig),
    /// PIE (RFC 8033).
    Pie(PieConfig),
    /// RED (Floyd and Jacobson, 1993).
    Red(RedConfig),
}

/// What a link does to traffic beside serialising it in its turn. The default does nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TrafficControl {
    /// The queue's discipline.
    pub discipline: Discipline,
    /// Disciplines that drop early mark packets instead whose transport understands that (RFC 3168).
    pub ecn: bool,
    /// Packets beyond a rate are dropped before they reach the queue.
    pub policer: Option<BucketConfig>,
    /// The link's rate is that of a token bucket: after a pause a burst leaves at once.
    pub shaper: Option<Shaper>,
}

/// The queue of a discipline, with its state.
#[derive(Clone, Debug)]
enum Kind<T> {
    DropTail(Fifo<T>),
    HeadDrop(Fifo<T>),
    Codel(CodelConfig, Codel, Fifo<T>),
    FqCodel(FqCodel<T>),
    Pie(Pie, Fifo<T>),
    Red(Red, Fifo<T>),
}

/// A queue that decides at arrival and at departure.
#[derive(Clone, Debug)]
pub(crate) struct Managed<T> {
    limit: QueueLimit,
    ecn: bool,
    policer: Option<TokenBucket>,
    kind: Kind<T>,
}

/// A packet that wants to join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<T> {
    pub(crate) packet: Waiting<T>,
    /// The link is idle: the packet leaves at once, and no limit concerns it.
    pub(crate) idle: bool,
    /// Octets of the packet that is being sent, where it counts.
    pub(crate) in_service: Option<u32>,
}

impl<T> Managed<T> {
    /// An empty queue; `name` and `seed` name its random streams.
    pub(crate) fn new(
        control: &TrafficControl,
        limit: QueueLimit,
        rate: Rate,
        seed: u64,
        name: &str,
    ) -> Self {
        let mut random = Stream::named(seed, &alloc::format!("link {name}/queue"));
        let kind = match control.discipline {
            Discipline::DropTail => Kind::DropTail(Fifo::default()),
            Discipline::HeadDrop => Kind::HeadDrop(Fifo::default()),
            Discipline::Codel(config) => Kind::Codel(config, Codel::new(), Fifo::default()),
            Discipline::FqCodel(config) => Kind::FqCodel(FqCodel::new(config, random.next_u64())),
            Discipline::Pie(config) => Kind::Pie(Pie::new(config, random), Fifo::default()),
            Discipline::Red(config) => Kind::Red(Red::new(config, rate, random), Fifo::default()),
        };
        Self { limit, ecn: control.ecn, policer: control.policer.map(TokenBucket::new), kind }
    }

    pub(crate) const fn on_rate(&mut self, rate: Rate) {
        if let Kind::Red(red, _) = &mut self.kind {
            red.on_rate(rate);
        }
    }

    /// The packets that wait in a single line, and none for queues of another form.
    const fn fifo(&self) -> Option<&Fifo<T>> {
        match &self.kind {
            Kind::DropTail(fifo)
            | Kind::HeadDrop(fifo)
            | Kind::Codel(_, _, fifo)
            | Kind::Pie(_, fifo)
            | Kind::Red(_, fifo) => Some(fifo),
            Kind::FqCodel(_) => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::FqCodel(queues) => queues.len(),
            _ => self.fifo().map_or(0, Fifo::len),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match &self.kind {
            Kind::FqCodel(queues) => queues.bytes(),
            _ => self.fifo().map_or(0, Fifo::bytes),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a packet in.
    ///
    /// # Errors
    /// The packet, and why it is dropped.
    pub(crate) fn enqueue<L: LinkLog<T>>(
        &mut self,
        mut arrival: Arrival<T>,
        verdicts: &mut Verdicts<'_, T, L>,
    ) -> Result<(), (Waiting<T>, DropCause)> {
        let now = arrival.packet.since;
        if self.policer.as_mut().is_some_and(|policer| !policer.admit(now, arrival.packet.bytes)) {
            return Err((arrival.packet, DropCause::Policed));
        }
        if self.signals(now) {
            let marks = self.ecn && self.may_mark() && verdicts.mark(&mut arrival.packet, now);
            if !marks {
                return Err((arrival.packet, DropCause::Early));
            }
        }
        if !self.makes_room(&arrival, verdicts) {
            return Err((arrival.packet, DropCause::QueueFull));
        }
        let Arrival { packet, in_service, idle } = arrival;
        verdicts.log.enqueued(&packet.token, &self.joining(packet.bytes, now, idle));
        match &mut self.kind {
            Kind::FqCodel(queues) => queues.enqueue(self.limit, packet, in_service, verdicts),
            Kind::DropTail(fifo)
            | Kind::HeadDrop(fifo)
            | Kind::Codel(_, _, fifo)
            | Kind::Pie(_, fifo)
            | Kind::Red(_, fifo) => fifo.push(packet),
        }
        Ok(())
    }

    /// What is told of a packet that joins now.
    fn joining(&self, bytes: u32, at: Instant, idle: bool) -> Enqueue {
        let (packets, octets) = if idle { (0, 0) } else { (1, u64::from(bytes)) };
        Enqueue {
            at,
            bytes,
            queued_packets: self.len() as u32 + packets,
            queued_bytes: self.bytes() + octets,
        }
    }

    /// Whether the discipline wants to signal congestion through the packet that arrives now.
    fn signals(&mut self, now: Instant) -> bool {
        match &mut self.kind {
            Kind::Pie(pie, fifo) => {
                pie.catch_up(now, fifo.bytes());
                pie.signals(fifo.bytes())
            }
            Kind::Red(red, fifo) => red.signals(now, fifo.len()),
            _ => false,
        }
    }

    fn may_mark(&self) -> bool {
        match &self.kind {
            Kind::Pie(pie, _) => pie.may_mark(),
            _ => true,
        }
    }

    fn makes_room<L: LinkLog<T>>(&mut self, arrival: &Arrival<T>, verdicts: &mut Verdicts<'_, T, L>) -> bool {
        if arrival.idle {
            return true;
        }
        let (limit, bytes, in_service) = (self.limit, arrival.packet.bytes, arrival.in_service);
        match &mut self.kind {
            // FQ-CoDel takes every packet and drops others afterwards.
            Kind::FqCodel(_) => true,
            Kind::HeadDrop(fifo) => {
                head_drop::make_room(fifo, limit, arrival.packet.since, bytes, in_service, verdicts)
            }
            Kind::DropTail(fifo) | Kind::Codel(_, _, fifo) | Kind::Pie(_, fifo) | Kind::Red(_, fifo) => {
                limit.admits(fifo.len(), fifo.bytes(), bytes, in_service)
            }
        }
    }

    /// The packet that leaves at `now`.
    pub(crate) fn dequeue<L: LinkLog<T>>(
        &mut self,
        now: Instant,
        verdicts: &mut Verdicts<'_, T, L>,
    ) -> Option<Waiting<T>> {
        match &mut self.kind {
            Kind::DropTail(fifo) | Kind::HeadDrop(fifo) => fifo.pop(),
            Kind::Codel(config, codel, fifo) => {
                let mut pass = Pass { config, ecn: self.ecn, now, verdicts };
                pass.dequeue(codel, || fifo.pop().map(|packet| (packet, fifo.bytes())))
            }
            Kind::FqCodel(queues) => queues.dequeue(now, self.ecn, verdicts),
            Kind::Pie(pie, fifo) => {
                pie.catch_up(now, fifo.bytes());
                let packet = fifo.pop()?;
                pie.on_departure(now, &packet, fifo.bytes());
                Some(packet)
            }
            Kind::Red(red, fifo) => {
                let packet = fifo.pop()?;
                red.on_departure(now, fifo.len());
                Some(packet)
            }
        }
    }
}
