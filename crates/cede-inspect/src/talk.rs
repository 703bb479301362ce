//! What both sides of a connection say: messages in their order become events, and change what is known of each side.
//!
//! **What it leaves out.** What [`crate::side`] leaves out. **How it was validated.** Conversations by hand
//! (`tests/conversations.rs`), captures of other clients (`docs/inspect.md`).

use crate::event::{About, Aside, Block, Event, Kind, Sink, What};
use crate::http::Requests;
use crate::order::{Arrival, Run};
use crate::reader::{CutHandshake, Reader, Said};
use crate::shared::{Shared, Who};
use crate::side::{Coming, Side};
use cede_bt::wire::{BlockRef, Handshake, Message, Reserved};
use cede_meter::{Protocol, Side as Which, Socket};

/// Where packets, and what is found in them, go.
pub(crate) struct Context<'a> {
    pub now_ns: u64,
    pub shared: &'a mut Shared,
    pub sink: &'a mut dyn Sink,
}

/// What both sides said.
#[derive(Debug)]
pub(crate) struct Talk {
    pub ends: [Socket; 2],
    pub transport: Protocol,
    /// Who opened it.
    pub opener: Option<Which>,
    /// Who was heard first.
    pub heard: Which,
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

impl Talk {
    /// Nothing was said yet: who opened it, where that is known, and who was heard first.
    pub(crate) fn new(
        ends: [Socket; 2],
        transport: Protocol,
        (opener, heard): (Option<Which>, Which),
        now_ns: u64,
    ) -> Self {
        Self {
            ends,
            transport,
            opener,
            heard,
            first_ns: now_ns,
            last_ns: now_ns,
            number: None,
            info_hash: None,
            sides: Default::default(),
            is_reset: false,
            is_found_late: false,
            requests: Default::default(),
        }
    }

    /// Octets that are held of one side besides its own.
    pub(crate) fn heap_bytes(&self, side: Which) -> usize {
        self.sides[side].heap_bytes() + self.requests[side].heap_bytes()
    }

    /// Reads what came next in order.
    pub(crate) fn run(&mut self, side: Which, reader: &mut Reader, run: &Run<'_>, context: &mut Context<'_>) {
        match run {
            Run::Octets(octets, arrival) => {
                self.sides[side].told.ordered_bytes += octets.len() as u64;
                self.ask(side, octets, context);
                reader.octets(octets, &mut |said| self.said(side, said, arrival, context));
            }
            Run::Missing(len) => {
                self.requests[side].missing();
                let told = &mut self.sides[side].told;
                told.holes += 1;
                told.missing_bytes += len.unwrap_or(0);
                told.ordered_bytes += len.unwrap_or(0);
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
            Said::CutHandshake(cut) => self.cut_handshake(side, cut, context),
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
    pub(crate) fn number(&mut self, context: &mut Context<'_>) {
        if self.number.is_some() {
            return;
        }
        self.number = Some(context.shared.next_number());
        if let Some(opener) = self.opener {
            self.tell(opener, self.first_ns, What::Opened, context);
        }
    }

    pub(crate) fn tell(&self, side: Which, time_ns: u64, what: What<'_>, context: &mut Context<'_>) {
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
        self.sides[side].handshake = Some(handshake);
        self.greeted(side, Some(handshake.info_hash), Some(handshake.reserved), context);
        self.tell(side, context.now_ns, What::Handshake(&handshake), context);
    }

    fn cut_handshake(&mut self, side: Which, cut: CutHandshake, context: &mut Context<'_>) {
        let CutHandshake { reserved, info_hash } = cut;
        self.greeted(side, info_hash, reserved, context);
        self.tell(side, context.now_ns, What::CutHandshake { reserved, info_hash }, context);
    }

    /// A handshake begins what a side says.
    fn greeted(
        &mut self,
        side: Which,
        info_hash: Option<[u8; 20]>,
        reserved: Option<Reserved>,
        context: &mut Context<'_>,
    ) {
        self.info_hash = self.info_hash.or(info_hash);
        self.number(context);
        let said = &mut self.sides[side];
        said.reserved = reserved;
        said.count(Kind::Handshake);
        said.chokes.begin(true, context.now_ns);
        said.wants.begin(false, context.now_ns);
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
        let speaks = |side: &Side| side.reserved.is_some_and(|reserved| reserved.has(Reserved::FAST));
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
            got: 0,
            repairs: 0,
            missing: 0,
        });
        coming.got = at + len;
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
    pub(crate) fn repeated(&mut self, side: Which, end: u64) {
        if let Some(coming) = self.sides[side].coming.as_mut().filter(|coming| end > coming.place) {
            coming.repairs += 1;
        }
    }

    /// A block is there.
    fn block(&mut self, side: Which, coming: &Coming, context: &mut Context<'_>) {
        let is_duplicate = context.shared.is_duplicate(&self.who(1 - side), &coming.block);
        // In captures of several queues a packet stands behind one of later time.
        let last_ns = context.now_ns.max(coming.first_ns);
        let [mine, theirs] = self.both(side);
        let requested_ns = theirs.settle(&coming.block);
        mine.add_block(coming, requested_ns, last_ns, is_duplicate);
        let block = Block {
            connection: self.number.unwrap_or(u32::MAX),
            from: self.ends[side],
            to: self.ends[1 - side],
            transport: self.transport,
            info_hash: self.info_hash,
            block: coming.block,
            requested_ns,
            first_ns: coming.first_ns,
            last_ns,
            repairs: coming.repairs,
            missing: coming.missing,
            is_duplicate,
        };
        self.tell(side, last_ns, What::Block(&block), context);
    }
}
