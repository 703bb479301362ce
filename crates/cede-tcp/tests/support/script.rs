//! A sender whose peer is the test.

use super::{PORTS, controller};
use cede_tcp::{Config, Connection, Segment, TimeoutReason};
use cede_units::{Duration, Instant, Seq32, Stream};
use cede_wire::Payload;
use cede_wire::tcp::{Flags, Options, SackBlocks};

pub const SMSS: u64 = 1000;

/// A sender whose peer is the test.
pub struct Script {
    pub connection: Connection,
    pub isn: Seq32,
    pub now: Instant,
    /// The highest segment that has left, counted from 1.
    pub highest: u64,
    /// The window that the peer offers, as the header has it.
    pub offers: u16,
}

impl Script {
    /// An established connection with this controller and segments of 1000 octets, that has much to send.
    pub fn new(config: &Config, name: &str) -> Self {
        Self::with(config, |config| controller(name, config))
    }

    pub fn with(config: &Config, controller: impl Fn(&Config) -> Box<dyn cede_cc::Controller>) -> Self {
        let mut script = Self::established(config, controller);
        script.write(1000);
        script
    }

    /// As [`Script::new`], that has nothing to send.
    pub fn bare(config: &Config, name: &str) -> Self {
        Self::established(config, |config| controller(name, config))
    }

    fn established(config: &Config, controller: impl Fn(&Config) -> Box<dyn cede_cc::Controller>) -> Self {
        let config = Config { mss_bytes: 1000, timestamps: false, ..config.clone() };
        let controller = controller(&config);
        let mut connection = Connection::connect(config, controller, PORTS, &mut Stream::named(1, "script"));
        let now = Instant::from_secs(1);
        let syn = connection.poll_transmit(now).unwrap();
        let (syn, _) = Segment::decode(&syn.head).unwrap();
        let mut script = Self { connection, isn: syn.seq, now, highest: 0, offers: 0xffff };
        let options =
            Options { mss: Some(1000), sack_permitted: true, window_scale: Some(7), ..Options::default() };
        script.hand(0, Flags::SYN.with(Flags::ACK), options);
        script
    }

    /// Hands the sender so many segments to send.
    pub fn write(&mut self, segments: u64) {
        let len = (segments * SMSS) as u32;
        assert_eq!(self.connection.write(Payload::Pattern { start: 0, len }), Ok(len));
    }

    /// Lets time pass until the sender's next deadline; answers what that is for, how much later it is, and what leaves then.
    pub fn wait(&mut self) -> (TimeoutReason, Duration, Vec<u64>) {
        let (at, reason) = self.connection.poll_timeout_reason().unwrap();
        let span = at.since(self.now);
        self.now = at;
        self.connection.handle_timeout(at);
        (reason, span, self.sent())
    }

    /// Hands the sender a segment that acknowledges its stream up to `offset`.
    pub fn hand(&mut self, offset: u64, flags: Flags, options: Options) {
        self.now += Duration::from_millis(1);
        let syn = flags.has(Flags::SYN);
        let segment = Segment {
            src_port: PORTS.remote,
            dst_port: PORTS.local,
            seq: Seq32(u32::from(!syn)),
            ack: self.isn.add(1 + offset as u32),
            flags,
            window: self.offers,
            options,
        };
        self.connection.handle(self.now, &segment, Payload::Empty);
    }

    /// A pure acknowledgement of `segments` segments, and SACK of these segments, counted from 1.
    pub fn ack(&mut self, segments: u64, sacked: &[(u64, u64)]) -> Vec<u64> {
        let mut sack = SackBlocks::NONE;
        for &(first, last) in sacked {
            let edge = |number: u64| self.isn.add(1 + (SMSS * number) as u32);
            sack.push(edge(first - 1), edge(last)).unwrap();
        }
        self.hand(segments * SMSS, Flags::ACK, Options { sack, ..Options::default() });
        self.sent()
    }

    /// The segments that leave now, counted from 1.
    pub fn sent(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(self.now) {
            let (segment, _) = Segment::decode(&transmit.head).unwrap();
            if !transmit.payload.is_empty() {
                let number = u64::from(segment.seq.distance_from(self.isn.add(1))) / SMSS + 1;
                numbers.push(number);
                self.highest = self.highest.max(number);
            }
        }
        numbers
    }

    /// The segments that are not cumulatively acknowledged, counted from 1.
    pub fn outstanding(&mut self) -> std::ops::Range<u64> {
        let snapshot = self.connection.snapshot();
        let next = self.highest + 1;
        next - snapshot.flight_bytes / SMSS..next
    }

    pub fn window(&self) -> u64 {
        self.connection.snapshot().window_bytes
    }
}
