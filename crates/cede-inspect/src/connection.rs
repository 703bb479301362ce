//! A connection: two directions in order, two readers, and what both sides said.
//!
//! Source: for what encryption hides, "Message Stream Encryption" as [`cede_bt::mse`] has it: both sides begin with a public
//! number of 96 octets and at most 512 of padding, and each waits for the other's before it goes on.
//!
//! **What it leaves out.** The secret of an encrypted connection cannot be had from outside, whoever knows the info-hash:
//! it takes one side's private number.
//!
//! **How it was validated.** Conversations by hand (`tests/conversations.rs`), captures of other clients in the clear and
//! encrypted (`docs/inspect.md`).

use crate::event::{Cover, Kind, What};
use crate::order::{Again, Arrival, Fate, Order, Run, Segment, hand_over};
use crate::reader::Reader;
use crate::report::{Carried, ConnectionReport, Speech};
use crate::talk::{Context, Talk};
use cede_bt::mse::{PADDING_MAX, PUBLIC_BYTES};
use cede_meter::{Protocol, Side as Which, Socket};

/// Different octets among the first 96: random ones have 80, give or take seven; text has fewer than 50.
const DISTINCT_MIN: u32 = 60;
/// Captures put packets of several queues out of order by no more than this.
const LATE_NS: u64 = 200_000_000;

/// One direction while it lasts.
#[derive(Debug)]
struct Live {
    order: Order,
    reader: Reader,
    carried: Carried,
    /// Octets that it sent before the other side sent any (the opener), or before the opener went on.
    first_flight: Option<u64>,
    is_over: bool,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    live: [Live; 2],
    pub talk: Talk,
}

impl Live {
    fn new(counts_octets: bool, from_start: bool) -> Self {
        Self {
            order: Order::new(counts_octets),
            reader: Reader::new(from_start),
            carried: Carried::default(),
            first_flight: None,
            is_over: false,
        }
    }
}

impl Carried {
    /// Octets that were taken for news have come before.
    const fn correct(&mut self, again: Again) {
        self.stream_bytes = self.stream_bytes.saturating_sub(again.octets);
        self.repeated_packets += again.packets;
        self.repeated_bytes += again.octets;
    }
}

impl Connection {
    /// A connection whose beginning was seen, with who opened it, or was not; and who was heard first.
    pub(crate) fn new(
        ends: [Socket; 2],
        transport: Protocol,
        began: (Option<Which>, Which),
        now_ns: u64,
    ) -> Self {
        let live = || Live::new(transport == Protocol::Tcp, began.0.is_some());
        Self { live: [live(), live()], talk: Talk::new(ends, transport, began, now_ns) }
    }

    pub(crate) fn order(&mut self, side: Which) -> &mut Order {
        &mut self.live[side].order
    }

    pub(crate) const fn carried(&self, side: Which) -> &Carried {
        &self.live[side].carried
    }

    /// Memory that it holds, about.
    pub(crate) fn bytes(&self) -> usize {
        let of = |side: usize| {
            let live = &self.live[side];
            live.order.waiting_bytes() + live.reader.heap_bytes() + self.talk.heap_bytes(side)
        };
        size_of::<Self>() + of(0) + of(1)
    }

    /// Whether what opened it may be captured still, behind packets that overtook it.
    pub(crate) fn is_young(&self, now_ns: u64) -> bool {
        now_ns.abs_diff(self.talk.first_ns) < LATE_NS
    }

    /// A packet of one side, whatever it carries.
    pub(crate) fn packet(&mut self, side: Which, wire_len: u32, now_ns: u64) {
        let carried = &mut self.live[side].carried;
        carried.packets += 1;
        carried.wire_bytes += u64::from(wire_len);
        self.talk.first_ns = self.talk.first_ns.min(now_ns);
        self.talk.last_ns = self.talk.last_ns.max(now_ns);
    }

    /// Octets of one side's stream.
    pub(crate) fn segment(&mut self, side: Which, segment: &Segment<'_>, context: &mut Context<'_>) {
        self.time_flights(side);
        let Self { live, talk } = self;
        let Live { order, reader, carried, .. } = &mut live[side];
        carried.cut_packets += u64::from(segment.octets.len() < segment.len as usize);
        let mut take = |run: Run<'_>| talk.run(side, reader, &run, context);
        if order.is_next(segment) {
            order.advance(segment.end);
            carried.stream_bytes += u64::from(segment.len);
            let arrival = Arrival { time_ns: segment.time_ns, repairs: 0, at: segment.at };
            hand_over(segment.octets, segment.len, 0, arrival, &mut take);
        } else {
            match order.keep(segment) {
                Fate::New => carried.stream_bytes += u64::from(segment.len),
                Fate::Repeated(octets) => {
                    carried.repeated_packets += 1;
                    carried.repeated_bytes += u64::from(octets);
                    talk.repeated(side, segment.end);
                }
                Fate::Foreign => {}
            }
        }
        self.pop(side, false, context);
    }

    /// One side has everything of the other's stream before `to`.
    pub(crate) fn acknowledge(&mut self, by: Which, to: u64, context: &mut Context<'_>) {
        self.live[1 - by].order.acknowledge(to, context.now_ns);
        self.pop(1 - by, false, context);
    }

    fn pop(&mut self, side: Which, gives_up: bool, context: &mut Context<'_>) {
        let Self { live, talk } = self;
        let Live { order, reader, carried, .. } = &mut live[side];
        let now_ns = context.now_ns;
        let mut take = |run: Run<'_>| talk.run(side, reader, &run, context);
        while order.pop(now_ns, gives_up, &mut take) {}
        carried.correct(order.take_again());
        if talk.number.is_some() {
            live[1 - side].reader.know();
        }
    }

    /// How much each side says before it hears the other.
    fn time_flights(&mut self, side: Which) {
        let other = &mut self.live[1 - side];
        if other.carried.stream_bytes > 0 {
            other.first_flight.get_or_insert(other.carried.stream_bytes);
        }
    }

    /// A FIN, or a reset.
    pub(crate) fn end(&mut self, side: Which, what: What<'_>, context: &mut Context<'_>) {
        self.talk.is_reset |= matches!(what, What::Reset);
        if !core::mem::replace(&mut self.live[side].is_over, true) && self.talk.number.is_some() {
            self.talk.tell(side, context.now_ns, what, context);
        }
    }

    /// Nothing more comes: what waits is read, as of the connection's last packet.
    pub(crate) fn finish(&mut self, context: &mut Context<'_>) {
        context.now_ns = context.now_ns.min(self.talk.last_ns);
        for side in 0..2 {
            self.pop(side, true, context);
            if self.talk.number.is_some() {
                self.talk.sides[side].told.unread_bytes += self.live[side].reader.unread_bytes();
            }
            let Live { order, carried, .. } = &mut self.live[side];
            self.talk.sides[side].told.undelivered_bytes += order.abandon();
            carried.correct(order.take_again());
            self.talk.sides[side].drop_coming();
            self.talk.sides[side].shrink();
        }
        if self.talk.number.is_none() && self.cover() != Cover::Foreign {
            self.talk.number(context);
            let cover = self.cover();
            let opener = self.talk.opener.unwrap_or(0);
            self.talk.tell(opener, self.talk.last_ns, What::Covered(cover), context);
        }
    }

    /// What can be said where no message was found.
    pub(crate) fn cover(&self) -> Cover {
        let is_random = self.live.iter().all(|live| looks_random(live.reader.front()));
        let is_tcp = self.talk.transport == Protocol::Tcp;
        if self.live.iter().any(|live| is_other_protocol(live.reader.front())) {
            return Cover::Foreign;
        }
        match self.talk.opener {
            Some(opener) if is_random && self.has_flights(opener) => Cover::Encrypted,
            Some(_) if is_tcp => Cover::Foreign,
            None if is_tcp && !is_random => Cover::Foreign,
            _ => Cover::Unknown,
        }
    }

    /// What was found, as plain data.
    pub(crate) fn report(&self) -> ConnectionReport {
        let talk = &self.talk;
        let first = talk.opener.unwrap_or(talk.heard);
        let has_messages = talk.sides.iter().any(|side| side.told.counts.iter().any(|&count| count > 0));
        let speech = match (has_messages, talk.is_found_late) {
            (true, false) => Speech::Plain,
            (true, true) if talk.sides.iter().any(|side| side.told.counts[Kind::Handshake as usize] > 0) => {
                Speech::PlainBehind
            }
            (true, true) => Speech::PlainLater,
            (false, _) => Speech::Covered(self.cover()),
        };
        let side = |which: Which| talk.sides[which].report(*self.carried(which), talk.last_ns);
        ConnectionReport {
            number: talk.number.unwrap_or(u32::MAX),
            ends: [talk.ends[first], talk.ends[1 - first]],
            is_opened_by_first: talk.opener.is_some(),
            transport: talk.transport,
            speech,
            info_hash: talk.info_hash,
            span_ns: (talk.first_ns, talk.last_ns),
            is_reset: talk.is_reset,
            sides: [side(first), side(1 - first)],
        }
    }

    /// Whether both sides begin with a public number and padding.
    fn has_flights(&self, opener: Which) -> bool {
        let range = PUBLIC_BYTES as u64..=(PUBLIC_BYTES + PADDING_MAX) as u64;
        let flight =
            |side: Which| self.live[side].first_flight.unwrap_or(self.live[side].carried.stream_bytes);
        range.contains(&flight(opener)) && range.contains(&flight(1 - opener))
    }
}

/// Whether octets are as random ones are.
fn looks_random(octets: &[u8]) -> bool {
    let Some(front) = octets.first_chunk::<PUBLIC_BYTES>() else { return false };
    let mut seen = [false; 256];
    front.iter().for_each(|&octet| seen[usize::from(octet)] = true);
    seen.iter().map(|&is| u32::from(is)).sum::<u32>() >= DISTINCT_MIN
}

/// Whether a stream begins as other protocols do: TLS (RFC 8446, section 5.1), HTTP, SSH (RFC 4253, section 4.2).
fn is_other_protocol(front: &[u8]) -> bool {
    matches!(front, [0x14..=0x17, 3, 0..=4, ..])
        || [&b"GET "[..], b"POST ", b"HEAD ", b"PUT ", b"HTTP/", b"SSH-", b"CONNECT ", b"OPTIONS ", b"PRI * "]
            .iter()
            .any(|word| front.starts_with(word))
}
