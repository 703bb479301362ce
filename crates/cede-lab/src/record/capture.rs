//! Simulated packets as a capture, with the octets that real ones would have.
//!
//! Host `n` (from 0, in the order of the topology) has the address `10.x.y.z` whose last 24 bits are `n + 1`, and an
//! interface of its own in the capture, which bears its name. Times count from the beginning of the run.
//!
//! **What it leaves out.** The octets of a payload are the pattern that the simulation moves; no link layer.
//!
//! **How it was validated.** Wireshark finds no malformed packet and no bad checksum, and its TCP analysis finds the
//! retransmissions that the sender counted (the command line's tests).

use super::folder::Folder;
use super::output::{Output, RecordError};
use crate::meter::PacketTap;
use crate::network::Network;
use crate::ports::FIRST_PORT;
use crate::scenario::Scenario;
use cede_net::{Datagram, HostId, Protocol};
use cede_units::Instant;
use cede_wire::ip::{Addresses, Envelope};
use cede_wire::link::LinkType;
use cede_wire::pcapng::{Captured, Interface, InterfaceId, Section, Sink, Writer};
use std::cell::RefCell;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::Path;
use std::rc::Rc;

/// Where the packets of a capture are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Vantage {
    /// Every packet once, as it leaves its host.
    #[default]
    Sent,
    /// What a capture on the hosts that send data sees: data as they leave, acknowledgements as they arrive.
    Senders,
    /// What a capture on the hosts that receive data sees: data as they arrive, acknowledgements as they leave.
    Receivers,
}

/// An [`Output`] keeps its error to itself until the end.
impl Sink for Output {
    type Error = Infallible;

    fn write_all(&mut self, octets: &[u8]) -> Result<(), Infallible> {
        self.write(octets);
        Ok(())
    }
}

/// `packets.pcapng`.
#[derive(Debug)]
pub(crate) struct Capture {
    writer: Writer<Output>,
    scope: Scope,
    octets: Octets,
}

/// Which packets a capture holds.
#[derive(Debug)]
pub(crate) enum Scope {
    /// Those of flows, the hosts that send their data by the flows' numbers.
    Flows(Vantage, Vec<HostId>),
    /// Every packet once, as it leaves its host.
    Sent,
    /// What leaves and reaches these hosts: whether it is one, by its number.
    At(Vec<bool>),
}

/// Simulated packets as the octets that real ones would have, for captures and for whatever reads those.
#[derive(Debug, Default)]
pub struct Octets {
    /// IPv4's identification of each host's next packet.
    identifications: Vec<u16>,
    /// Scratch: the packet in the making.
    octets: Vec<u8>,
}

impl Octets {
    /// The IP packet that `datagram` is.
    pub fn of(&mut self, datagram: &Datagram) -> &[u8] {
        self.octets.clear();
        let source = datagram.source.host.0 as usize;
        self.identifications.resize(self.identifications.len().max(source + 1), 0);
        let identification = &mut self.identifications[source];
        *identification = identification.wrapping_add(1);
        let envelope = Envelope {
            identification: *identification,
            dont_fragment: datagram.dont_fragment,
            traffic_class: datagram.ecn.bits(),
            ..Envelope::new(Addresses::V4 {
                source: address(datagram.source.host),
                destination: address(datagram.destination.host),
            })
        };
        let (from, to) = (datagram.source.port, datagram.destination.port);
        let built = match datagram.protocol {
            Protocol::Udp => envelope.put_udp(from, to, &datagram.head, &datagram.payload, &mut self.octets),
            Protocol::Tcp => envelope.put_tcp(&datagram.head, &datagram.payload, &mut self.octets),
        };
        // A scenario's packets are at most 65,535 octets long, and a segment's head is a TCP header.
        debug_assert!(built.is_ok());
        &self.octets
    }
}

impl Capture {
    pub fn create(
        folder: &Folder,
        scenario: &Scenario,
        network: &Network,
        vantage: Vantage,
    ) -> Result<Self, RecordError> {
        let comment = format!("scenario {}, seed {}", scenario.name, scenario.seed);
        let names: Vec<&str> = network.topology.host_names().collect();
        let mut senders = vec![HostId(0); network.flows.len()];
        for plan in &network.flows {
            senders[plan.number] = plan.sender.host;
        }
        Self::open(folder.path(), &comment, &names, Scope::Flows(vantage, senders))
    }

    /// Begins `packets.pcapng` with an interface for each host, by name in the order of their numbers.
    pub fn open(folder: &Path, comment: &str, names: &[&str], scope: Scope) -> Result<Self, RecordError> {
        let output = Output::create(folder, "packets.pcapng")?;
        let application = concat!("cede ", env!("CARGO_PKG_VERSION"));
        let Ok(mut writer) = Writer::new(output, &Section { application, comment });
        for (name, number) in names.iter().zip(0..) {
            let description = address(HostId(number)).to_string();
            let interface = Interface { name, description: &description, link_type: LinkType::RAW };
            let Ok(_) = writer.add_interface(&interface);
        }
        Ok(Self { writer, scope, octets: Octets::default() })
    }

    pub fn has_failed(&self) -> bool {
        self.output().has_failed()
    }

    pub fn finish(&mut self) -> Result<String, RecordError> {
        self.writer.sink_mut().finish()
    }

    const fn output(&self) -> &Output {
        self.writer.sink()
    }

    fn wants(&self, host: HostId, outbound: bool, datagram: &Datagram) -> bool {
        let flow = usize::from(datagram.source.port.saturating_sub(FIRST_PORT));
        match &self.scope {
            Scope::Sent | Scope::Flows(Vantage::Sent, _) => outbound,
            Scope::Flows(Vantage::Senders, senders) => senders.get(flow) == Some(&host),
            Scope::Flows(Vantage::Receivers, senders) => senders.get(flow) != Some(&host),
            Scope::At(hosts) => hosts.get(host.0 as usize) == Some(&true),
        }
    }

    fn write(&mut self, at: Instant, host: HostId, datagram: &Datagram) {
        let octets = self.octets.of(datagram);
        let packet = Captured {
            interface: InterfaceId(host.0),
            time_ns: at.as_nanos(),
            octets,
            original_len: octets.len() as u32,
            comment: "",
        };
        // The sink keeps its errors, the interface exists, and an IP packet fits a block.
        let _ = self.writer.write_packet(&packet);
    }
}

impl PacketTap for Rc<RefCell<Capture>> {
    fn packet(&mut self, at: Instant, host: HostId, outbound: bool, datagram: &Datagram) {
        let mut capture = self.borrow_mut();
        if capture.wants(host, outbound, datagram) {
            capture.write(at, host, datagram);
        }
    }
}

/// The address of a host in captures: `10.x.y.z`; worlds with 2^24 hosts are beyond any scenario.
pub const fn address(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from_bits((10 << 24) | ((host.0 + 1) & 0x00ff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_addresses_of_their_own() {
        assert_eq!(address(HostId(0)), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(address(HostId(255)), Ipv4Addr::new(10, 0, 1, 0));
        assert_eq!(address(HostId(65_537)), Ipv4Addr::new(10, 1, 0, 2));
    }
}
