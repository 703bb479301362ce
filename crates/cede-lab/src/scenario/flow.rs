//! What a scenario says about flows: protocol, controller, traffic.

use super::words::words;
use cede_cc::{ParamValue, Params};
use cede_units::{Bytes, Duration, Rate};

/// A flow, or several alike.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Its name. Where `count` is above 1 the flows are called `NAME-1`, `NAME-2` and so on.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// The transport.
    pub protocol: Protocol,
    /// Who decides how much may be under way.
    pub controller: ControllerSpec,
    /// The hosts that it joins; none in a dumbbell, where each flow has hosts of its own.
    pub ends: Option<Ends>,
    /// When it opens its connection, counted from the beginning of the run.
    pub start: Duration,
    /// When it stops offering data, counted from the beginning of the run; none for never.
    pub stop: Option<Duration>,
    /// `start` is moved by a random time, uniform in `0..=start_jitter`, on a stream that bears the flow's name.
    pub start_jitter: Duration,
    /// How much it has to send; none for no end.
    pub bytes: Option<Bytes>,
    /// The size of a full packet as an IP datagram, in octets.
    pub packet_bytes: u32,
    /// When the application has data.
    pub traffic: Traffic,
    /// Dumbbell only: the sender's access link.
    pub access: FlowAccess,
}

/// Which controller a flow has, and what it is told.
#[derive(Clone, PartialEq, Debug)]
pub struct ControllerSpec {
    /// The name in the registry.
    pub name: String,
    /// The parameters that the scenario gives; the controller's defaults hold for the others.
    pub params: Params,
}

impl ControllerSpec {
    /// A controller with its default parameters.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_string(), params: Params::new() }
    }

    /// The controller that stands for the kernel's of this name, with the rules that the kernel has.
    #[must_use]
    pub fn of_kernel(name: &str) -> Self {
        let mut model = Self::named(name);
        if name == "cubic" {
            model.params.set("rules", ParamValue::Word("linux".to_string()));
        }
        model
    }
}

/// The hosts that a flow joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
}

/// What a flow of a dumbbell says of its sender's access link; the topology's values where it says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowAccess {
    /// Rate, both ways.
    pub rate: Option<Rate>,
    /// Propagation delay of what the flow sends.
    pub delay: Option<Duration>,
    /// Propagation delay of what comes back: makes round-trip times differ on the return path alone.
    pub return_delay: Option<Duration>,
}

/// The transport and its options.
#[derive(Clone, PartialEq, Debug)]
pub enum Protocol {
    /// uTP (BEP 29).
    Utp(UtpOptions),
    /// The model TCP.
    Tcp(TcpOptions),
}

impl Protocol {
    /// Which one it is.
    #[must_use]
    pub fn kind(&self) -> ProtocolKind {
        match self {
            Self::Utp(_) => ProtocolKind::Utp,
            Self::Tcp(_) => ProtocolKind::Tcp,
        }
    }
}

words! {
    /// A transport.
    ProtocolKind, PROTOCOL_WORDS {
        Utp = "utp": "uTP (BEP 29) over UDP",
        Tcp = "tcp": "the model TCP",
    }
}

words! {
    /// When a TCP receiver acknowledges.
    TcpAck, TCP_ACK_WORDS {
        Every = "every": "each segment at once",
        Delayed = "delayed": "every second full segment, or after `ack_delay` (RFC 1122, RFC 5681)",
        Linux = "linux": "as Linux: at once in the first 16 segments, then delayed by an adaptive 40 to 200 ms",
    }
}

words! {
    /// When a uTP receiver acknowledges.
    UtpAck, UTP_ACK_WORDS {
        Every = "every": "each packet at once",
        Delayed = "delayed": "every `ack_packets` packets, or after `ack_delay`",
    }
}

/// Options of the model TCP.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpOptions {
    /// Selective acknowledgements and the recovery of RFC 6675; NewReno (RFC 6582) without them.
    pub sack: bool,
    /// When the receiver acknowledges.
    pub ack: TcpAck,
    /// How long an acknowledgement waits with `ack = "delayed"`.
    pub ack_delay: Duration,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// With SACK, losses are found by time (RFC 8985).
    pub rack: bool,
    /// Proportional rate reduction in repairs with SACK (RFC 6937).
    pub prr: bool,
    /// The initial window in full segments.
    pub initial_window_packets: u32,
    /// The smallest retransmission timeout.
    pub min_rto: Duration,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// The timestamps option (RFC 7323).
    pub timestamps: bool,
    /// One tick of the timestamp clock.
    pub timestamp_tick: Duration,
    /// The timestamp clock begins at a random value; it reads the host's clock otherwise.
    pub timestamp_random: bool,
    /// How much unacknowledged data the sender keeps.
    pub send_buffer: Bytes,
    /// How much unread data the receiver keeps: the largest window it advertises.
    pub receive_buffer: Bytes,
}

/// Options of uTP.
#[derive(Clone, PartialEq, Debug)]
pub struct UtpOptions {
    /// When the receiver acknowledges.
    pub ack: UtpAck,
    /// How long an acknowledgement waits with `ack = "delayed"`.
    pub ack_delay: Duration,
    /// How many packets one acknowledgement may answer with `ack = "delayed"`.
    pub ack_packets: u32,
    /// The smallest retransmission timeout.
    pub min_rto: Duration,
    /// Find the largest packet that passes; `packet` is the upper bound then, and every packet's size otherwise.
    pub mtu_search: bool,
    /// As on real sockets: RACK, paced windows, and a first window of ten packets.
    pub internet: bool,
    /// How much unacknowledged data the sender keeps.
    pub send_buffer: Bytes,
    /// How much unread data the receiver keeps: the largest window it advertises.
    pub receive_buffer: Bytes,
}

/// When an application has data to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Traffic {
    /// Always.
    Backlogged,
    /// A burst every `period`: burst `k`, counted from 0, has `first * growth^k` packets, rounded down, and at most
    /// `max`.
    Chirp {
        /// From one burst to the next.
        period: Duration,
        /// Packets of the first burst.
        first_packets: u64,
        /// The ratio of one burst to the one before it.
        growth: f64,
        /// No burst is larger.
        max_packets: u64,
    },
    /// A message of `bytes` every `period`.
    Heartbeat {
        /// From one message to the next.
        period: Duration,
        /// Payload octets of a message.
        bytes: Bytes,
    },
    /// Messages of `message` octets at regular intervals that make up `rate`.
    Paced {
        /// Payload bits a second.
        rate: Rate,
        /// Payload octets of a message.
        message: Bytes,
    },
    /// Data for a while, then none for a while.
    OnOff {
        /// How long a time with data lasts, on average.
        on: Duration,
        /// How long a time without data lasts, on average.
        off: Duration,
        /// Payload bits a second while on; none for as much as the connection takes.
        rate: Option<Rate>,
        /// How the times are drawn.
        distribution: Distribution,
    },
}

words! {
    /// How the times of on/off traffic are drawn, on a stream that bears the flow's name.
    Distribution, DISTRIBUTION_WORDS {
        Constant = "constant": "always the mean",
        Exponential = "exponential": "exponentially distributed about the mean",
    }
}

words! {
    /// A model of traffic.
    TrafficKind, TRAFFIC_WORDS {
        Backlogged = "backlogged": "always has data",
        Chirp = "chirp": "a burst every `period`, each `growth` times the one before",
        Heartbeat = "heartbeat": "a message of `bytes` every `period`",
        Paced = "paced": "messages of `message` octets at a steady `rate`",
        OnOff = "on_off": "data for a time `on`, none for a time `off`, and so on",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_that_is_offered_has_a_model() {
        for name in ["cubic", "reno", "bbr"] {
            let ControllerSpec { name, params } = ControllerSpec::of_kernel(name);
            let path = cede_cc::Path { mss_bytes: 1448, initial_cwnd_bytes: 14_480, max_cwnd_bytes: 1 << 20 };
            assert_eq!(cede_cc::registry::build(&name, &params, &path).unwrap().name(), name);
        }
    }
}
