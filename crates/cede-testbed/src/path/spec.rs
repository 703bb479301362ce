//! What a path is made of, and its two incarnations: the relay's wires and a scenario.

use crate::relay::{RelayConfig, Wire};
use cede_lab::scenario::{Buffer, ControllerSpec, Limit, Protocol, Scenario, Topology};
use cede_net::{Impairments, QueueLimit, Reordering};
use cede_real::StreamConfig;
use cede_units::{Bytes, Duration, Rate};
use cede_utp::{Config, Mtu};
use std::net::SocketAddr;

/// A transfer over a path.
#[derive(Clone, Debug)]
pub struct PathSpec {
    /// The bottleneck's rate, both ways; IP datagrams are counted.
    pub rate: Rate,
    /// Propagation there and back, half of it each way.
    pub rtt: Duration,
    /// The queue in front of the bottleneck, of what the sender sends; acknowledgements have room without limit.
    pub buffer: Buffer,
    /// The probability that a packet of the sender is lost behind the queue.
    pub loss: f64,
    /// Some of the sender's packets are overtaken.
    pub reordering: Option<Reordering>,
    /// IP datagrams of the sender with more octets vanish in silence.
    pub mtu_bytes: u32,
    /// Over IPv6.
    pub ipv6: bool,
    /// How much is sent.
    pub bytes: u64,
    /// Names the random streams.
    pub seed: u64,
    /// The sender's and the receiver's choices.
    pub stream: StreamConfig,
}

/// The scenario that a prediction starts from; what the path says is laid over it.
const SCENARIO: &str = r#"
name = "path"
description = "A transfer over a path"
duration = "1 s"
[topology]
access_rate = "100 Gbit/s"
access_delay = "0 s"
[link]
rate = "1 Mbit/s"
delay = "1 ms"
[return_link]
rate = "1 Mbit/s"
delay = "1 ms"
[[flow]]
name = "utp"
[flow.utp]
mtu_search = true
"#;
/// What IPv6's header has more than IPv4's (RFC 8200 section 3, RFC 791 section 3.1).
const IPV6_MORE_BYTES: u32 = 20;
/// What the loopback would carry beyond an Ethernet frame is not what paths carry.
const ETHERNET_BYTES: u32 = 1500;

impl PathSpec {
    /// A clean path with one bandwidth-delay product of buffer.
    #[must_use]
    pub fn new(rate: Rate, rtt: Duration, bytes: u64) -> Self {
        Self {
            rate,
            rtt,
            buffer: Buffer::Bdp(1.0),
            loss: 0.0,
            reordering: None,
            mtu_bytes: ETHERNET_BYTES,
            ipv6: false,
            bytes,
            seed: 1,
            stream: StreamConfig::default(),
        }
    }

    /// The time that the octets need at the full rate.
    #[must_use]
    pub fn ideal(&self) -> Duration {
        self.rate.time_to_send(self.bytes)
    }

    /// When to give up: a transfer at a twentieth of the rate still ends, and two minutes are always granted.
    pub(super) fn patience(&self) -> Duration {
        self.ideal() * 20 + Duration::from_secs(120)
    }

    fn limit(&self) -> QueueLimit {
        match self.buffer.limit(self.rate, Some(self.rtt)) {
            Some(Limit::Packets(packets)) => QueueLimit::Packets(u32::try_from(packets).unwrap_or(u32::MAX)),
            Some(Limit::Bytes(bytes)) => QueueLimit::Bytes(bytes),
            None => QueueLimit::Unlimited,
        }
    }

    pub(super) fn relay(&self, target: SocketAddr) -> RelayConfig {
        let impairments =
            Impairments { loss: self.loss, reordering: self.reordering, ..Impairments::default() };
        let wire = |limit| Wire::new(self.rate, self.rtt / 2, limit).mtu(self.mtu_bytes);
        let (forward, backward) = (wire(self.limit()).impaired(impairments), wire(QueueLimit::Unlimited));
        RelayConfig { seed: self.seed, ..RelayConfig::new(target, forward, backward) }
    }

    /// The same as a scenario, of this duration at most.
    pub(super) fn scenario(&self, duration: Duration) -> Scenario {
        let mut scenario = Scenario::parse("path", SCENARIO).expect("the scenario of paths is sound");
        scenario.duration = duration;
        scenario.seed = self.seed;
        scenario.record.interval = super::series::INTERVAL;
        self.lay_links(&mut scenario);
        self.lay_flow(&mut scenario);
        scenario
    }

    /// Octets of a full packet in the simulated world. There headers are IPv4's alone: what has as much payload over IPv6 is
    /// longer, and links are narrower there by as much, so that it takes as long.
    fn packet_bytes(&self) -> u32 {
        if self.ipv6 { self.mtu_bytes.saturating_sub(IPV6_MORE_BYTES) } else { self.mtu_bytes }
    }

    fn lay_links(&self, scenario: &mut Scenario) {
        let Topology::Dumbbell(dumbbell) = &mut scenario.topology else { return };
        let (link, back) = (&mut dumbbell.link, &mut dumbbell.return_link);
        let narrower = f64::from(self.packet_bytes()) / f64::from(self.mtu_bytes);
        let rate = self.rate.mul_f64(narrower);
        (link.rate, back.rate) = (rate, rate);
        (link.delay, back.delay) = (self.rtt / 2, self.rtt / 2);
        link.buffer = match self.buffer {
            Buffer::Bytes(bytes) => Buffer::Bytes(Bytes((bytes.0 as f64 * narrower) as u64)),
            // Packets are packets, and the others follow the rate.
            buffer => buffer,
        };
        link.loss = self.loss;
        link.reorder = self.reordering.map(|rule| cede_lab::scenario::Reorder {
            probability: rule.probability,
            extra_delay: rule.extra_delay,
        });
    }

    fn mtu(&self) -> Mtu {
        self.stream.mtu.unwrap_or(if self.ipv6 { Mtu::SEARCH_IPV6 } else { Mtu::SEARCH_IPV4 })
    }

    fn lay_flow(&self, scenario: &mut Scenario) {
        let flow = &mut scenario.flows[0];
        let transport = Config { mtu: self.mtu(), ..self.stream.transport.clone() };
        if let Some((name, params)) = self.stream.controller.named_for(&transport.path()) {
            flow.controller = ControllerSpec { name: name.to_string(), params };
        }
        flow.bytes = Some(Bytes(self.bytes));
        flow.packet_bytes = self.packet_bytes();
        if let Protocol::Utp(options) = &mut flow.protocol {
            // Buffers that grow are as good as grown.
            let (sends, receives) = (transport.send_buffer_limit_bytes, transport.receive_buffer_limit_bytes);
            options.send_buffer = Bytes(sends.unwrap_or(transport.send_buffer_bytes).into());
            options.receive_buffer = Bytes(receives.unwrap_or(transport.receive_buffer_bytes).into());
            options.min_rto = transport.min_rto;
            options.internet = true;
        }
    }
}
