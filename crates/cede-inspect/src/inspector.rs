//! Packets in, events and a report out.

use crate::aside;
use crate::connection::Connection;
use crate::event::{Aside, Cover, Sink};
use crate::report::{ConnectionReport, Report, Unlisted};
use crate::shared::Shared;
use crate::talk::Context;
use crate::tcp::TcpFlow;
use crate::utp::{Datagram, UdpFlow, UtpConnection};
use cede_meter::{Content, Counters, Key, Seen, Selection, Side as Which, Socket, has_utp_form};
use cede_wire::link::LinkType;
use cede_wire::pcap::Record;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// What is asked of an inspector.
#[derive(Clone, Debug)]
pub struct Config {
    /// Octets that connections may take, half of it for those that are over. Beyond, what was quiet longest is ended, and
    /// reports are given up, and counted.
    pub memory_bytes: usize,
    /// Which packets are looked at.
    pub selection: Selection,
}

impl Default for Config {
    /// 512 MiB, everything.
    fn default() -> Self {
        Self { memory_bytes: 512 << 20, selection: Selection::default() }
    }
}

/// What is between two sockets.
#[derive(Debug)]
struct Flow {
    key: Key,
    last_ns: u64,
    content: FlowContent,
}

#[derive(Debug)]
enum FlowContent {
    Tcp(Box<TcpFlow>),
    Udp(UdpFlow),
}

/// Reads packets, and tells what peers said.
#[derive(Debug)]
pub struct Inspector {
    config: Config,
    counters: Counters,
    hash: RandomState,
    flows: HashTable<Flow>,
    flow_bytes: usize,
    shared: Shared,
    finished: Vec<ConnectionReport>,
    unlisted: Unlisted,
}

impl Inspector {
    /// An inspector that has seen nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            counters: Counters::default(),
            hash: RandomState::default(),
            flows: HashTable::new(),
            flow_bytes: 0,
            shared: Shared::default(),
            finished: Vec::new(),
            unlisted: Unlisted::default(),
        }
    }

    /// What became of the packets so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Takes a record of a capture file in; those without a time are counted and left out.
    pub fn record(&mut self, record: &Record<'_>, sink: &mut dyn Sink) {
        match record.time_ns {
            Some(time_ns) => {
                self.packet(time_ns, record.link_type, record.captured, record.original_len, sink);
            }
            None => self.counters.timeless(),
        }
    }

    /// Takes a packet in: when it was captured (nanoseconds since the capture's epoch), what its octets begin with, the
    /// octets that were captured, and how many it had on the wire.
    pub fn packet(
        &mut self,
        time_ns: u64,
        link_type: LinkType,
        captured: &[u8],
        original_len: u32,
        sink: &mut dyn Sink,
    ) {
        let packet = (link_type, captured, original_len);
        if let Some(seen) = self.counters.admit(&self.config.selection, time_ns, packet) {
            self.take(&seen, time_ns, original_len, sink);
        }
    }

    fn take(&mut self, seen: &Seen<'_>, now_ns: u64, wire_len: u32, sink: &mut dyn Sink) {
        let is_tcp = matches!(seen.content, Content::Tcp(_));
        let (key, side) = Key::of(seen.source, seen.destination, is_tcp);
        let Self { flows, hash, counters, shared, .. } = self;
        let hashed = key.hash(hash);
        let entry = flows.entry(hashed, |flow| flow.key == key, |flow| flow.key.hash(hash));
        let mut is_new = false;
        let flow = entry.or_insert_with(|| {
            is_new = true;
            Flow::new(key)
        });
        let flow = flow.into_mut();
        counters.flows += u64::from(is_new);
        let before = if is_new { 0 } else { flow.bytes() };
        flow.last_ns = flow.last_ns.max(now_ns);
        let ended = flow.take(seen, side, wire_len, &mut Context { now_ns, shared, sink });
        self.flow_bytes = (self.flow_bytes + flow.bytes()).saturating_sub(before);
        if let Some(ended) = ended {
            self.end(ended, now_ns, sink);
        }
        if self.flow_bytes > self.config.memory_bytes / 2 {
            self.make_room(now_ns, sink);
        }
    }

    /// A connection is over: its report is kept if it is worth one.
    fn end(&mut self, mut ended: Ended, now_ns: u64, sink: &mut dyn Sink) {
        let connection = &mut ended.connection;
        if ended.is_lone && connection.talk.number.is_none() {
            self.unlisted.lone_utp += 1;
            return;
        }
        connection.finish(&mut Context { now_ns, shared: &mut self.shared, sink });
        if connection.talk.number.is_none() && connection.cover() == Cover::Foreign {
            self.unlisted.tcp_connections += 1;
            self.unlisted.tcp_bytes += connection.carried(0).wire_bytes + connection.carried(1).wire_bytes;
            return;
        }
        if self.finished.len() * REPORT_BYTES > self.config.memory_bytes / 2 {
            self.unlisted.given_up += 1;
            return;
        }
        self.finished.push(connection.report());
    }

    /// Ends the quieter half of all flows.
    fn make_room(&mut self, now_ns: u64, sink: &mut dyn Sink) {
        let mut times: Vec<u64> = self.flows.iter().map(|flow| flow.last_ns).collect();
        let middle = times.len() / 2;
        let median = *times.select_nth_unstable(middle).1;
        let quiet: Vec<Flow> = self.flows.extract_if(|flow| flow.last_ns <= median).collect();
        self.counters.evicted += quiet.len() as u64;
        for flow in quiet {
            self.flow_bytes = self.flow_bytes.saturating_sub(flow.bytes());
            self.end_flow(flow, now_ns, sink);
        }
        let hash = &self.hash;
        self.flows.shrink_to_fit(|flow| flow.key.hash(hash));
    }

    fn end_flow(&mut self, flow: Flow, now_ns: u64, sink: &mut dyn Sink) {
        match flow.content {
            FlowContent::Tcp(tcp) => {
                if let Some(connection) = tcp.connection {
                    self.end(Ended { connection, is_lone: false }, now_ns, sink);
                }
            }
            FlowContent::Udp(udp) => {
                self.unlisted.datagrams += udp.others;
                for one in udp.connections {
                    self.end(one.into(), now_ns, sink);
                }
            }
        }
    }

    /// The end: what waits is read, and everything is reported.
    #[must_use]
    pub fn finish(mut self, sink: &mut dyn Sink) -> Report {
        let now_ns = self.counters.span_ns.map_or(0, |span| span.1);
        let mut flows: Vec<Flow> = core::mem::take(&mut self.flows).into_iter().collect();
        // The table's order is drawn anew in each run.
        flows.sort_by_key(|flow| (flow.first_ns(), flow.key.socket(0), flow.key.socket(1)));
        for flow in flows {
            self.end_flow(flow, now_ns, sink);
        }
        self.unlisted.unchecked_blocks = self.shared.unchecked_blocks;
        self.finished.sort_by_key(|connection| connection.number);
        Report { counters: self.counters, connections: self.finished, unlisted: self.unlisted }
    }
}

/// What a report takes, about: its histograms have some 40 buckets each.
const REPORT_BYTES: usize = size_of::<ConnectionReport>() + 2048;

/// A connection that is over.
struct Ended {
    connection: Connection,
    /// Datagrams of one direction that look like uTP.
    is_lone: bool,
}

impl From<UtpConnection> for Ended {
    fn from(one: UtpConnection) -> Self {
        Self { is_lone: !one.is_paired(), connection: one.connection }
    }
}

impl Flow {
    fn new(key: Key) -> Self {
        let content = if key.is_tcp() {
            FlowContent::Tcp(Box::default())
        } else {
            FlowContent::Udp(UdpFlow::default())
        };
        Self { key, last_ns: 0, content }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.content {
                FlowContent::Tcp(tcp) => tcp.connection.as_ref().map_or(0, Connection::bytes),
                FlowContent::Udp(udp) => udp.bytes,
            }
    }

    fn first_ns(&self) -> u64 {
        match &self.content {
            FlowContent::Tcp(tcp) => tcp.connection.as_ref().map_or(0, |connection| connection.talk.first_ns),
            FlowContent::Udp(udp) => udp.connections.first().map_or(0, |one| one.connection.talk.first_ns),
        }
    }

    /// Takes a packet in; answers with a connection that is over.
    fn take(
        &mut self,
        seen: &Seen<'_>,
        side: Which,
        wire_len: u32,
        context: &mut Context<'_>,
    ) -> Option<Ended> {
        let ends = [self.key.socket(0), self.key.socket(1)];
        match (&mut self.content, &seen.content) {
            (FlowContent::Tcp(flow), Content::Tcp(tcp)) => {
                let ended = flow.take(ends, side, (tcp, wire_len), context);
                ended.map(|connection| Ended { connection, is_lone: false })
            }
            (FlowContent::Udp(flow), &Content::Udp { payload, payload_len }) => {
                if is_utp(flow, payload, payload_len) {
                    let datagram = Datagram { ends, side, captured: payload, len: payload_len, wire_len };
                    return flow.take(&datagram, context).map(Ended::from);
                }
                beside(flow, ends, side, payload, context);
                None
            }
            _ => None,
        }
    }
}

fn is_utp(flow: &UdpFlow, payload: &[u8], payload_len: usize) -> bool {
    !flow.is_tracker && has_utp_form(payload, payload_len)
}

fn beside(flow: &mut UdpFlow, ends: [Socket; 2], side: Which, payload: &[u8], context: &mut Context<'_>) {
    match aside::read(payload, &mut flow.is_tracker) {
        Some(about) => {
            let [from, to] = [ends[side], ends[1 - side]];
            context.sink.aside(&Aside { time_ns: context.now_ns, from, to, about });
        }
        None => flow.others += 1,
    }
}
