//! Asking a gateway for a port (PCP and NAT-PMP): what is said, how often, and what is believed.
//!
//! Source: RFC 6887 (PCP) and RFC 6886 (NAT-PMP). PCP is asked first; a gateway of the older protocol says that it knows no such
//! version, and one that says nothing is asked in the older one too. One request is under way at a time, sent again after 250 ms, 500 ms and so
//! on (RFC 6886, 3.1), and given up after the fourth, where the RFC goes on for two minutes: whoever waits has another way to ask.
//! What is granted is asked for again at half of its lifetime.
//!
//! From an IPv6 address PCP is spoken alone: it opens the gateway's firewall, and the port is ours itself.
//!
//! **What it leaves out.** PCP's options and other opcodes, announcements of gateways that have begun anew: what such a one has lost is
//! missing until the next renewal.
//! How it was validated: the octets of both RFCs in the tests below, a fuzz target, and miniupnpd.

use alloc::vec::Vec;
use cede_units::{Duration, Instant};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The port that gateways listen at.
pub const PORT: u16 = 5351;
/// What a port is asked for; RFC 6886 proposes two hours, and gateways that begin anew forget.
const LIFETIME_S: u32 = 3_600;
/// Not asked for sooner again, whatever was granted.
const LEAST_RENEWAL: Duration = Duration::from_secs(60);
/// The first wait for an answer; each is twice the one before.
const PATIENCE: Duration = Duration::from_millis(250);
const TRIES: u32 = 4;

/// Whether such an address is seen from the Internet as another: it is private (RFC 1918), or of a carrier's network (RFC 6598).
#[must_use]
pub const fn is_behind(host: Ipv4Addr) -> bool {
    let [first, second, ..] = host.octets();
    host.is_private() || first == 100 && second & 0xc0 == 64
}

/// A protocol whose port is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Its number in IP's header, which is PCP's.
    const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// NAT-PMP's opcode.
    const fn opcode(self) -> u8 {
        match self {
            Self::Udp => 1,
            Self::Tcp => 2,
        }
    }
}

/// What a gateway speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// RFC 6887.
    Pcp,
    /// RFC 6886.
    NatPmp,
}

impl Dialect {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pcp => "PCP",
            Self::NatPmp => "NAT-PMP",
        }
    }
}

/// A port of the gateway that leads to ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Of what.
    pub protocol: Protocol,
    /// It.
    pub port: u16,
}

/// How it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// An answer is waited for.
    Asking,
    /// All is granted, until it is to be renewed.
    Held,
    /// The gateway does not answer.
    Silent,
    /// The gateway refuses, with this result code.
    Refused(u16),
    /// All is given back.
    Released,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Address,
    Map(Protocol),
}

/// One port of ours, and what a gateway grants for it.
#[derive(Debug)]
pub struct Client {
    host: IpAddr,
    port: u16,
    protocols: Vec<Protocol>,
    nonce: [u8; 12],
    dialect: Dialect,
    is_leaving: bool,
    stage: Stage,
    /// What is still to be asked, the first now.
    steps: Vec<Step>,
    tries: u32,
    at: Instant,
    grants: Vec<Grant>,
    renew_in: Duration,
    address: Option<IpAddr>,
}

impl Client {
    /// For a port of `host`, by which the gateway sees us. `nonce` is chance: with PCP it is what a mapping is ours by.
    #[must_use]
    pub fn new(host: IpAddr, port: u16, protocols: &[Protocol], nonce: [u8; 12], now: Instant) -> Self {
        let mut client = Self {
            host,
            port,
            protocols: protocols.to_vec(),
            nonce,
            dialect: Dialect::Pcp,
            is_leaving: false,
            stage: Stage::Asking,
            steps: Vec::new(),
            tries: 0,
            at: now,
            grants: Vec::new(),
            renew_in: Duration::MAX,
            address: None,
        };
        client.begin(now);
        client
    }

    /// How it stands.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// What the gateway speaks, as far as is known.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What is granted.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The gateway's address in front, where it says one.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address.filter(|address| !address.is_unspecified())
    }

    /// Gives back what is granted.
    pub fn release(&mut self, now: Instant) {
        self.is_leaving = true;
        self.begin(now);
        self.steps = self.grants.iter().map(|grant| Step::Map(grant.protocol)).collect();
        if self.steps.is_empty() {
            self.finish(now);
        }
    }

    fn begin(&mut self, now: Instant) {
        let maps = self.protocols.iter().map(|protocol| Step::Map(*protocol));
        // PCP tells the address with each port.
        let asks = (self.dialect == Dialect::NatPmp).then_some(Step::Address);
        self.steps = asks.into_iter().chain(maps).collect();
        (self.stage, self.tries, self.at, self.renew_in) = (Stage::Asking, 0, now, Duration::MAX);
    }

    /// When [`Client::poll_transmit`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        matches!(self.stage, Stage::Asking | Stage::Held).then_some(self.at)
    }

    /// What is to be sent to the gateway, if it is time.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return None;
        }
        if self.stage == Stage::Held {
            self.begin(now);
        }
        if self.tries == TRIES {
            self.on_silence(now);
            return self.poll_transmit(now);
        }
        self.at = now + PATIENCE * (1 << self.tries);
        self.tries += 1;
        self.steps.first().map(|step| self.request(*step))
    }

    fn on_silence(&mut self, now: Instant) {
        if self.has_older_dialect() && self.grants.is_empty() && !self.is_leaving {
            self.dialect = Dialect::NatPmp;
            self.begin(now);
        } else {
            self.stage = if self.is_leaving { Stage::Released } else { Stage::Silent };
        }
    }

    /// NAT-PMP knows nothing of IPv6.
    fn has_older_dialect(&self) -> bool {
        self.dialect == Dialect::Pcp && self.host.is_ipv4()
    }

    fn request(&self, step: Step) -> Vec<u8> {
        let lifetime_s = if self.is_leaving { 0 } else { LIFETIME_S };
        match (self.dialect, step) {
            (_, Step::Address) => alloc::vec![0, 0],
            (Dialect::NatPmp, Step::Map(protocol)) => {
                let mut octets = alloc::vec![0, protocol.opcode(), 0, 0];
                octets.extend(self.port.to_be_bytes());
                octets.extend(self.wish(protocol).to_be_bytes());
                octets.extend(lifetime_s.to_be_bytes());
                octets
            }
            (Dialect::Pcp, Step::Map(protocol)) => {
                let mut octets = alloc::vec![2, 1, 0, 0];
                octets.extend(lifetime_s.to_be_bytes());
                octets.extend(written(self.host));
                octets.extend(self.nonce);
                octets.extend([protocol.number(), 0, 0, 0]);
                octets.extend(self.port.to_be_bytes());
                octets.extend(self.wish(protocol).to_be_bytes());
                octets.extend(written(self.wished_address()));
                octets
            }
        }
    }

    /// What is known of the address in front, in the family that is asked in (RFC 6887, 11.1).
    fn wished_address(&self) -> IpAddr {
        let none = match self.host {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        self.address.filter(|_| !self.is_leaving).unwrap_or(none)
    }

    /// The port that is wished for: what is granted, what another protocol was granted, ours.
    fn wish(&self, protocol: Protocol) -> u16 {
        if self.is_leaving {
            return 0;
        }
        let of = |wanted: Option<Protocol>| {
            self.grants.iter().find(|grant| wanted.is_none_or(|wanted| grant.protocol == wanted))
        };
        of(Some(protocol)).or_else(|| of(None)).map_or(self.port, |grant| grant.port)
    }

    /// The gateway has sent something.
    pub fn receive(&mut self, now: Instant, octets: &[u8]) {
        let Some(&step) = self.steps.first().filter(|_| self.stage == Stage::Asking && self.tries > 0) else {
            return;
        };
        let answer = match self.dialect {
            Dialect::Pcp => self.read_pcp(step, octets),
            Dialect::NatPmp => self.read_nat_pmp(step, octets),
        };
        match answer {
            None => {}
            Some(Answer::OtherVersion) if self.has_older_dialect() && !self.is_leaving => {
                self.dialect = Dialect::NatPmp;
                self.grants.clear();
                self.begin(now);
            }
            Some(Answer::OtherVersion) => self.refuse(now, 1),
            Some(Answer::Refused(code)) => self.refuse(now, code),
            Some(Answer::Address(address)) => {
                self.address = Some(address.into());
                self.go_on(now);
            }
            Some(Answer::Granted(grant, lifetime_s)) => self.on_grant(now, grant, lifetime_s),
        }
    }

    fn refuse(&mut self, now: Instant, code: u16) {
        if self.is_leaving {
            self.go_on(now);
        } else {
            self.stage = Stage::Refused(code);
        }
    }

    fn on_grant(&mut self, now: Instant, grant: Grant, lifetime_s: u32) {
        self.grants.retain(|other| other.protocol != grant.protocol);
        if !self.is_leaving {
            self.grants.push(grant);
            let half = Duration::from_millis(500) * u64::from(lifetime_s.min(LIFETIME_S));
            self.renew_in = self.renew_in.min(half.max(LEAST_RENEWAL));
        }
        self.go_on(now);
    }

    fn go_on(&mut self, now: Instant) {
        self.steps.remove(0);
        (self.tries, self.at) = (0, now);
        if self.steps.is_empty() {
            self.finish(now);
        }
    }

    fn finish(&mut self, now: Instant) {
        self.stage = if self.is_leaving { Stage::Released } else { Stage::Held };
        self.at = now + self.renew_in;
    }

    /// RFC 6887, 7.2 and 11.1.
    fn read_pcp(&mut self, step: Step, octets: &[u8]) -> Option<Answer> {
        let Step::Map(protocol) = step else { return None };
        let (version, result) = (*octets.first()?, *octets.get(3)?);
        // A gateway of NAT-PMP alone answers in its own way (RFC 6886, 3.5).
        if version == 0 {
            return (number(octets, 2)? == 1).then_some(Answer::OtherVersion);
        }
        if version != 2 || octets[1] != 0x81 {
            return None;
        }
        if result == 1 {
            return Some(Answer::OtherVersion);
        }
        let is_ours = octets.get(24..36)? == self.nonce
            && octets.get(36) == Some(&protocol.number())
            && number(octets, 40)? == self.port;
        if !is_ours {
            return None;
        }
        if result != 0 {
            return Some(Answer::Refused(result.into()));
        }
        let port = number(octets, 42)?;
        let address: [u8; 16] = octets.get(44..60)?.try_into().ok()?;
        let address = Ipv6Addr::from(address).to_canonical();
        self.address = Some(address).filter(|it| it.is_ipv4() == self.host.is_ipv4()).or(self.address);
        let lifetime_s = u32::from_be_bytes(octets[4..8].try_into().ok()?);
        granted(protocol, port, lifetime_s, self.is_leaving)
    }

    /// RFC 6886, 3.2 and 3.3.
    fn read_nat_pmp(&self, step: Step, octets: &[u8]) -> Option<Answer> {
        let opcode = match step {
            Step::Address => 0,
            Step::Map(protocol) => protocol.opcode(),
        };
        let (version, answered) = (*octets.first()?, *octets.get(1)?);
        if version != 0 || answered != 128 + opcode {
            return None;
        }
        let result = number(octets, 2)?;
        if result != 0 {
            return Some(Answer::Refused(result));
        }
        let Step::Map(protocol) = step else {
            let address: [u8; 4] = octets.get(8..12)?.try_into().ok()?;
            return Some(Answer::Address(address.into()));
        };
        if number(octets, 8)? != self.port {
            return None;
        }
        let lifetime_s = u32::from_be_bytes(octets.get(12..16)?.try_into().ok()?);
        granted(protocol, number(octets, 10)?, lifetime_s, self.is_leaving)
    }
}

/// An address as PCP has it: IPv4's are mapped.
fn written(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// A port that is none, or for no time, is none where one is asked for.
fn granted(protocol: Protocol, port: u16, lifetime_s: u32, is_leaving: bool) -> Option<Answer> {
    let is_meant = is_leaving || port > 0 && lifetime_s > 0;
    is_meant.then_some(Answer::Granted(Grant { protocol, port }, lifetime_s))
}

enum Answer {
    OtherVersion,
    Refused(u16),
    Address(Ipv4Addr),
    Granted(Grant, u32),
}

fn number(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 2);
    const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

    fn client() -> Client {
        Client::new(HOST.into(), 6881, &BOTH, *b"twelve chars", at(0))
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(10_000 + ms)
    }

    /// What a gateway that grants everything would answer, at another port by `shift`.
    fn pcp_answer(request: &[u8], shift: u16) -> Vec<u8> {
        let mut answer = request.to_vec();
        answer[1] |= 0x80;
        answer[8..24].fill(0);
        answer[24..36].copy_from_slice(&request[24..36]);
        let port = u16::from_be_bytes([request[42], request[43]]) + shift;
        answer[42..44].copy_from_slice(&port.to_be_bytes());
        answer[44..60].copy_from_slice(&Ipv4Addr::new(203, 0, 113, 9).to_ipv6_mapped().octets());
        answer
    }

    #[test]
    fn pcp_is_spoken_as_rfc_6887_has_it() {
        let mut client = client();
        let request = client.poll_transmit(at(0)).unwrap();
        let mut expected = alloc::vec![2, 1, 0, 0, 0, 0, 14, 16];
        expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 168, 1, 2]);
        expected.extend(b"twelve chars");
        expected.extend([6, 0, 0, 0, 0x1a, 0xe1, 0x1a, 0xe1]);
        expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0]);
        assert_eq!(request, expected);
        client.receive(at(1), &pcp_answer(&request, 5));
        assert_eq!(client.grants(), [Grant { protocol: Protocol::Tcp, port: 6886 }]);
        let request = client.poll_transmit(at(1)).unwrap();
        // The port that TCP has is wished for UDP.
        assert_eq!((request[36], &request[42..44]), (17, &6886_u16.to_be_bytes()[..]));
        client.receive(at(2), &pcp_answer(&request, 0));
        assert_eq!((client.stage(), client.grants().len()), (Stage::Held, 2));
        assert_eq!(client.address(), Some([203, 0, 113, 9].into()));
        let renewal = client.poll_timeout().unwrap();
        assert_eq!(renewal, at(2) + Duration::from_secs(1_800));
        assert!(client.poll_transmit(renewal).is_some() && client.stage() == Stage::Asking);
    }

    /// RFC 6887, 11.1: addresses are IPv6's own, none at all where none is wished for.
    #[test]
    fn a_firewall_is_opened_for_an_ipv6_address_in_pcp_alone() {
        let host: Ipv6Addr = "2001:db8::7".parse().unwrap();
        let six = || Client::new(host.into(), 6881, &BOTH, *b"twelve chars", at(0));
        let mut client = six();
        for _ in BOTH {
            let request = client.poll_transmit(at(0)).unwrap();
            assert_eq!((&request[8..24], request.len()), (&host.octets()[..], 60));
            let known = client.address().map_or([0; 16], |_| host.octets());
            assert_eq!(request[44..60], known);
            let mut answer = pcp_answer(&request, 0);
            answer[44..60].copy_from_slice(&host.octets());
            client.receive(at(0), &answer);
        }
        assert_eq!((client.stage(), client.grants().len()), (Stage::Held, 2));
        assert_eq!(client.address(), Some(host.into()));
        // One that says nothing, and one of the older protocol alone.
        let mut client = six();
        let mut count = 0;
        while let Some(time) = client.poll_timeout() {
            count += u32::from(client.poll_transmit(time).is_some());
        }
        assert_eq!((client.stage(), count), (Stage::Silent, TRIES));
        let mut client = six();
        client.poll_transmit(at(0)).unwrap();
        client.receive(at(1), &[0, 129, 0, 1, 0, 0, 0, 9]);
        assert_eq!(client.stage(), Stage::Refused(1));
    }

    #[test]
    fn what_is_granted_is_given_back() {
        let mut client = client();
        for _ in 0..2 {
            let request = client.poll_transmit(at(0)).unwrap();
            client.receive(at(0), &pcp_answer(&request, 0));
        }
        client.release(at(11));
        for protocol in [6, 17] {
            let request = client.poll_transmit(at(11)).unwrap();
            assert_eq!((request[36], &request[4..8], &request[42..44]), (protocol, &[0; 4][..], &[0; 2][..]));
            client.receive(at(11), &pcp_answer(&request, 0));
        }
        assert_eq!((client.stage(), client.grants().len()), (Stage::Released, 0));
        assert_eq!(client.poll_timeout(), None);
    }

    #[test]
    fn a_gateway_of_the_older_protocol_is_spoken_to_in_it() {
        let mut client = client();
        client.poll_transmit(at(0)).unwrap();
        client.receive(at(1), &[0, 129, 0, 1, 0, 0, 0, 9]);
        assert_eq!(client.dialect(), Dialect::NatPmp);
        assert_eq!(client.poll_transmit(at(1)).unwrap(), [0, 0]);
        client.receive(at(2), &[0, 128, 0, 0, 0, 0, 0, 9, 203, 0, 113, 7]);
        assert_eq!(client.address(), Some([203, 0, 113, 7].into()));
        let tcp = client.poll_transmit(at(2)).unwrap();
        assert_eq!(tcp, [0, 2, 0, 0, 0x1a, 0xe1, 0x1a, 0xe1, 0, 0, 14, 16]);
        // Another's port, and an answer to something else.
        client.receive(at(3), &[0, 130, 0, 0, 0, 0, 0, 9, 0, 1, 0, 1, 0, 0, 14, 16]);
        client.receive(at(3), &[0, 129, 0, 0, 0, 0, 0, 9, 0x1a, 0xe1, 0x1a, 0xe2, 0, 0, 14, 16]);
        assert_eq!(client.grants().len(), 0);
        client.receive(at(3), &[0, 130, 0, 0, 0, 0, 0, 9, 0x1a, 0xe1, 0x1a, 0xe2, 0, 0, 1, 0]);
        assert_eq!(client.grants(), [Grant { protocol: Protocol::Tcp, port: 6882 }]);
        let udp = client.poll_transmit(at(3)).unwrap();
        assert_eq!(udp, [0, 1, 0, 0, 0x1a, 0xe1, 0x1a, 0xe2, 0, 0, 14, 16]);
        client.receive(at(4), &[0, 129, 0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(client.stage(), Stage::Refused(2));
    }

    #[test]
    fn silence_is_waited_for_a_few_seconds_in_both_protocols() {
        let mut client = client();
        let mut sent = Vec::new();
        while let Some(time) = client.poll_timeout() {
            if let Some(octets) = client.poll_transmit(time) {
                sent.push((time.since(at(0)).as_millis(), octets.len()));
            }
        }
        let (pcp, nat_pmp) = (60, 2);
        let expected = [(0, pcp), (250, pcp), (750, pcp), (1_750, pcp)];
        assert_eq!(sent[..4], expected);
        assert_eq!(sent[4..], expected.map(|(ms, _)| (ms + 3_750, nat_pmp)));
        assert_eq!(client.stage(), Stage::Silent);
    }
}
