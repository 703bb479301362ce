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

use crate::event::{About, Aside, Block, Event, Kind, Sink, What};
use crate::http::Requests;
use crate::order::{Arrival, Fate, Order, Run, Segment, hand_over};
use crate::reader::{Reader, Said};
use crate::shared::{Shared, Who};
use crate::side::{Coming, Side};
use cede_bt::mse::{PADDING_MAX, PUBLIC_BYTES};
use cede_bt::wire::{BlockRef, Handshake, Message, Reserved};
use cede_meter::{Protocol, Side as Which, Socket};

/// Different octets among the first 96: random ones have 80, give or take seven; text has fewer than 50.
const DISTINCT_MIN: u32 = 60;

/// What can be said of a connection in which no message was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cover {
    /// Both sides begin as message stream encryption does: with as many random octets as its public numbers and padding.
    Encrypted,
    /// Its beginning was not captured, or it has no form that is known here.
    Unknown,
    /// It is something else: TLS, HTTP, SSH, or of a form that BitTorrent does not have.
    Foreign,
}

/// Where packets, and what is found in them, go.
pub(crate) struct Context<'a> {
    pub now_ns: u64,
    pub shared: &'a mut Shared,
    pub sink: &'a mut dyn Sink,
}

/// What is counted of a direction beneath its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Packets.
    pub packets: u64,
    /// Octets of them on the wire.
    pub wire_bytes: u64,
    /// Octets of the stream, each once.
    pub stream_bytes: u64,
    /// Packets whose octets were seen before.
    pub repeated_packets: u64,
    /// Octets that were seen before.
    pub repeated_bytes: u64,
    /// Packets of whose octets the capture has only the first.
    pub cut_packets: u64,
}

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

/// What both sides said.
#[derive(Debug)]
pub(crate) struct Talk {
    pub ends: [Socket; 2],
    pub transport: Protocol,
    /// Who opened it.
    pub opener: Option<Which>,
    pub first_ns: u64,
    pub last_ns: u64,
    /// The number that it got when it was found to be BitTorrent.
    pub number: Option<u32>,
    pub info_hash: Option<[u8; 20]>,
    pub sides: [Side; 2],
    pub is_reset: bool,
    /// Messages were found behind a beginning that has none.
    pub is_found_late: bool,
    /// What each side asks of a tracker.
    requests: [Requests; 2],
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

impl Connection {
    /// A connection whose beginning was seen, with who opened it, or was not.
    pub(crate) fn new(ends: [Socket; 2], transport: Protocol, opener: Option<Which>, now_ns: u64) -> Self {
        let live = || Live::new(transport == Protocol::Tcp, opener.is_some());
        let talk = Talk {
            ends,
            transport,
            opener,
            first_ns: now_ns,
            last_ns: now_ns,
            number: None,
            info_hash: None,
            sides: Default::default(),
            is_reset: false,
            is_found_late: false,
            requests: Default::default(),
        };
        Self { live: [live(), live()], talk }
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
            live.order.waiting_bytes()
                + live.reader.heap_bytes()
                + self.talk.sides[side].heap_bytes()
                + self.talk.requests[side].heap_bytes()
        };
        size_of::<Self>() + of(0) + of(1)
    }

    /// A packet of one side, whatever it carries.
    pub(crate) fn packet(&mut self, side: Which, wire_len: u32, now_ns: u64) {
        let carried = &mut self.live[side].carried;
        carried.packets += 1;
        carried.wire_bytes += u64::from(wire_len);
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
        let Live { order, reader, .. } = &mut live[side];
        let now_ns = context.now_ns;
        let mut take = |run: Run<'_>| talk.run(side, reader, &run, context);
        while order.pop(now_ns, gives_up, &mut take) {}
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

    /// Nothing more comes: what waits is read.
    pub(crate) fn finish(&mut self, context: &mut Context<'_>) {
        for side in 0..2 {
            self.pop(side, true, context);
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

    /// Whether both sides begin with a public number and padding.
    fn has_flights(&self, opener: Which) -> bool {
        let range = PUBLIC_BYTES as u64..=(PUBLIC_BYTES + PADDING_MAX) as u64;
        let flight =
            |side: Which| self.live[side].first_flight.unwrap_or(self.live[side].carried.stream_bytes);
        range.contains(&flight(opener)) && range.contains(&flight(1 - opener))
    }
}

impl Talk {
    /// Reads what came next in order.
    fn run(&mut self, side: Which, reader: &mut Reader, run: &Run<'_>, context: &mut Context<'_>) {
        match run {
            Run::Octets(octets, arrival) => {
                self.ask(side, octets, context);
                reader.octets(octets, &mut |said| self.said(side, said, arrival, context));
            }
            Run::Missing(len) => {
                self.requests[side].missing();
                self.sides[side].told.holes += 1;
                self.sides[side].told.missing_bytes += len.unwrap_or(0);
                let arrival = Arrival { time_ns: context.now_ns, repairs: 0, at: 0 };
                reader.missing(*len, &mut |said| self.said(side, said, &arrival, context));
            }
        }
    }

    /// Looks for announces to a tracker.
    fn ask(&mut self, side: Which, octets: &[u8], context: &mut Context<'_>) {
        if self.transport == Protocol::Tcp {
            let (time_ns, from, to) = (context.now_ns, self.ends[side], self.ends[1 - side]);
            self.requests[side].octets(octets, &mut |announce| {
                let about = About::Announce { announce: Box::new(announce), is_http: true };
                context.sink.aside(&Aside { time_ns, from, to, about });
            });
        }
    }

    fn said(&mut self, side: Which, said: Said, arrival: &Arrival, context: &mut Context<'_>) {
        let now_ns = context.now_ns;
        match said {
            Said::Handshake(handshake) => self.handshake(side, handshake, context),
            Said::Message(message, is_cut) => self.message(side, &message, is_cut, context),
            Said::Data(block, at, len, is_captured) => {
                self.data(side, (block, at, len), is_captured, arrival, context);
            }
            Said::Unknown(id, len) => {
                self.sides[side].count(Kind::Other);
                self.tell(side, now_ns, What::Other { id, len }, context);
            }
            Said::Lost => {
                self.sides[side].lose(now_ns);
                self.tell(side, now_ns, What::Lost, context);
            }
            Said::Resumed(octets) => {
                self.is_found_late |= self.number.is_none();
                self.number(context);
                self.sides[side].told.unread_bytes += octets;
                self.tell(side, now_ns, What::Resumed { octets }, context);
            }
            Said::GivenUp => {}
        }
    }

    /// It is found to be worth listing.
    fn number(&mut self, context: &mut Context<'_>) {
        if self.number.is_some() {
            return;
        }
        self.number = Some(context.shared.next_number());
        if let Some(opener) = self.opener {
            self.tell(opener, self.first_ns, What::Opened, context);
        }
    }

    fn tell(&self, side: Which, time_ns: u64, what: What<'_>, context: &mut Context<'_>) {
        context.sink.event(&Event {
            time_ns,
            connection: self.number.unwrap_or(u32::MAX),
            from: self.ends[side],
            to: self.ends[1 - side],
            transport: self.transport,
            info_hash: self.info_hash,
            what,
        });
    }

    fn handshake(&mut self, side: Which, handshake: Handshake, context: &mut Context<'_>) {
        self.number(context);
        self.info_hash.get_or_insert(handshake.info_hash);
        let now_ns = context.now_ns;
        let said = &mut self.sides[side];
        said.handshake = Some(handshake);
        said.count(Kind::Handshake);
        said.chokes.begin(true, now_ns);
        said.wants.begin(false, now_ns);
        self.tell(side, now_ns, What::Handshake(&handshake), context);
    }

    fn message(&mut self, side: Which, message: &Message, is_cut: bool, context: &mut Context<'_>) {
        self.sides[side].count(Kind::of(message));
        if !is_cut {
            self.note(side, message, context.now_ns);
        }
        let extension = match message {
            Message::Extended(id, _) => self.sides[1 - side].name_of(*id),
            _ => None,
        };
        // An extension's name is the receiver's, and says what the sender's octets mean.
        let extension = extension.map(str::to_string);
        let what = What::Message { message, extension: extension.as_deref(), is_cut };
        self.tell(side, context.now_ns, what, context);
    }

    /// What a message changes.
    fn note(&mut self, side: Which, message: &Message, now_ns: u64) {
        let is_fast = self.is_fast();
        let [mine, theirs] = self.both(side);
        match message {
            Message::Choke => {
                mine.chokes.set(true, now_ns);
                if !is_fast {
                    theirs.forget_requests();
                }
            }
            Message::Unchoke => mine.chokes.set(false, now_ns),
            Message::Interested => mine.wants.set(true, now_ns),
            Message::NotInterested => mine.wants.set(false, now_ns),
            Message::Request(block) => mine.request(*block, now_ns),
            Message::Reject(block) => drop(theirs.settle(block)),
            Message::Extended(0, octets) => mine.learn(octets),
            _ => {}
        }
    }

    /// Whether both sides speak the fast extension.
    fn is_fast(&self) -> bool {
        let speaks =
            |side: &Side| side.handshake.is_some_and(|handshake| handshake.reserved.has(Reserved::FAST));
        self.sides.iter().all(speaks)
    }

    /// One side and the other.
    const fn both(&mut self, side: Which) -> [&mut Side; 2] {
        let [a, b] = &mut self.sides;
        if side == 0 { [a, b] } else { [b, a] }
    }

    fn data(
        &mut self,
        side: Which,
        (block, at, len): (BlockRef, u32, u32),
        is_captured: bool,
        arrival: &Arrival,
        context: &mut Context<'_>,
    ) {
        let coming = self.sides[side].coming.get_or_insert(Coming {
            block,
            first_ns: arrival.time_ns,
            place: arrival.at,
            repairs: 0,
            missing: 0,
        });
        coming.repairs += arrival.repairs;
        coming.missing += if is_captured { 0 } else { len };
        if at + len == block.len
            && let Some(coming) = self.sides[side].coming.take()
        {
            self.block(side, &coming, context);
        }
    }

    /// What tells a peer from others: where it takes connections, and its id.
    fn who(&self, side: Which) -> Who {
        let Socket { address, port } = self.ends[side];
        let is_listening = self.transport == Protocol::Utp || self.opener == Some(1 - side);
        let port = if is_listening { Some(port) } else { self.sides[side].port };
        let peer_id = self.sides[side].handshake.map(|handshake| handshake.peer_id);
        Who { info_hash: self.info_hash, address, port, peer_id }
    }

    /// Octets were sent again that end there.
    fn repeated(&mut self, side: Which, end: u64) {
        if let Some(coming) = self.sides[side].coming.as_mut().filter(|coming| end > coming.place) {
            coming.repairs += 1;
        }
    }

    /// A block is there.
    fn block(&mut self, side: Which, coming: &Coming, context: &mut Context<'_>) {
        let is_duplicate = context.shared.is_duplicate(&self.who(1 - side), &coming.block);
        let [mine, theirs] = self.both(side);
        let requested_ns = theirs.settle(&coming.block);
        mine.add_block(coming, requested_ns, context.now_ns, is_duplicate);
        let block = Block {
            connection: self.number.unwrap_or(u32::MAX),
            from: self.ends[side],
            to: self.ends[1 - side],
            transport: self.transport,
            info_hash: self.info_hash,
            block: coming.block,
            requested_ns,
            first_ns: coming.first_ns,
            last_ns: context.now_ns,
            repairs: coming.repairs,
            missing: coming.missing,
            is_duplicate,
        };
        self.tell(side, context.now_ns, What::Block(&block), context);
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
