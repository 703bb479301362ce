//! Asking a router for a port as UPnP has it: what is sent, and what is read of the answers.
//!
//! Source: UPnP Device Architecture 1.1 (discovery, 1.3, and its annex A for IPv6; control, 3.2), the service WANIPConnection (versions 1 and 2;
//! WANPPPConnection is its like), and WANIPv6FirewallControl 1, by which a firewall lets others in to an address of IPv6. Documents are not parsed as XML: the few elements that matter are looked for by name, whatever
//! their prefixes, in the first [`MAX_BYTES`].
//!
//! **Invariant:** what a device names is on that device: another host in a `LOCATION` or `controlURL` is not asked.
//!
//! **What it leaves out.** Events, other services, AddAnyPortMapping: a port that another has is tried again one higher.
//! How it was validated: the tests below, a fuzz target, and miniupnpd. The crates there are bring an HTTP client with HTTP/2 and
//! internationalised names, 34 crates, to talk to an address in the local network.

use crate::gateway::Protocol;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Where devices listen: 239.255.255.250, port 1900.
pub const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 255, 250), 1900);
/// Octets of a document that are read.
pub const MAX_BYTES: usize = 256 << 10;
/// What is looked for.
pub const TARGETS: [&str; 2] = [
    "urn:schemas-upnp-org:device:InternetGatewayDevice:1",
    "urn:schemas-upnp-org:device:InternetGatewayDevice:2",
];
/// The same of IPv6, on one link: ff02::c.
pub const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xc);
const TRANSLATORS: &[&str] =
    &["urn:schemas-upnp-org:service:WANIPConnection:", "urn:schemas-upnp-org:service:WANPPPConnection:"];
const FIREWALLS: &[&str] = &["urn:schemas-upnp-org:service:WANIPv6FirewallControl:"];
/// The port is taken.
pub const CONFLICT: u16 = 718;
/// A mapping cannot end by itself.
pub const ONLY_PERMANENT: u16 = 725;

/// What is sent to [`GROUP`], or [`GROUP_V6`] and its port, to find a target.
#[must_use]
pub fn search(target: &str, is_v6: bool) -> String {
    let group: SocketAddr = if is_v6 { (GROUP_V6, GROUP.port()).into() } else { GROUP.into() };
    format!("M-SEARCH * HTTP/1.1\r\nHOST: {group}\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: {target}\r\n\r\n")
}

/// Where a device that has answered from this address describes itself.
#[must_use]
pub fn location(octets: &[u8], from: IpAddr) -> Option<String> {
    let text = core::str::from_utf8(octets).ok()?;
    let mut lines = text.lines();
    lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1).filter(|code| *code == "200")?;
    let url = lines.filter_map(|line| line.split_once(':')).find(|(name, _)| is_named(name, "LOCATION"))?.1;
    let url = url.trim();
    (authority(url)?.1 == from && is_plain(url)).then(|| url.to_owned())
}

fn is_named(name: &str, wanted: &str) -> bool {
    name.trim().eq_ignore_ascii_case(wanted)
}

fn is_plain(url: &str) -> bool {
    url.bytes().all(|octet| octet.is_ascii_graphic())
}

/// `http://host:port` of a URL, and the host.
fn authority(url: &str) -> Option<(&str, IpAddr)> {
    let rest = url.strip_prefix("http://")?;
    let name = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let root = &url[..url.len() - rest.len() + name.len()];
    if let Some((host, port)) = name.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let is_port =
            port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        return Some((root, host.parse::<Ipv6Addr>().ok()?.into())).filter(|_| is_port);
    }
    let host = match name.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => name,
    };
    Some((root, host.parse::<Ipv4Addr>().ok()?.into()))
}

/// What is between the tags of the first element of that name, whatever its prefix, and what is behind it.
fn element<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let mut rest = text;
    loop {
        rest = &rest[rest.find('<')? + 1..];
        let (tag, inside) = rest.split_once('>')?;
        let full = tag.split_ascii_whitespace().next().unwrap_or_default();
        let is_it = full.rsplit(':').next() == Some(name) && !full.starts_with('/');
        if is_it && !tag.ends_with('/') {
            let end = format!("</{full}>");
            let (content, behind) = inside.split_once(end.as_str())?;
            return Some((content, behind));
        }
        rest = inside;
    }
}

/// What a part of a device does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Leads a port in front to one behind it, over IPv4.
    Translator,
    /// Lets others in to an address behind it, over IPv6.
    Firewall,
}

impl Kind {
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Translator => TRANSLATORS,
            Self::Firewall => FIREWALLS,
        }
    }
}

/// The part of a device that opens ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Service {
    kind: String,
    /// Where it is asked.
    pub url: String,
}

impl Service {
    /// The first of a kind in the description that was found at a URL.
    #[must_use]
    pub fn find(description: &str, url: &str, wanted: Kind) -> Option<Self> {
        let (root, host) = authority(url)?;
        let mut rest = description;
        while let Some((service, behind)) = element(rest, "service") {
            rest = behind;
            let kind = element(service, "serviceType").map_or("", |(kind, _)| kind.trim());
            let is_it = wanted
                .names()
                .iter()
                .any(|known| kind.strip_prefix(known).is_some_and(|version| version.parse::<u8>().is_ok()));
            let Some((path, _)) = element(service, "controlURL").filter(|_| is_it) else { continue };
            let path = path.trim().replace("&amp;", "&");
            let url = match authority(&path) {
                Some((_, other)) if other == host => path,
                None if !path.contains("://") => format!("{root}/{}", path.trim_start_matches('/')),
                _ => continue,
            };
            if is_plain(&url) {
                return Some(Self { kind: kind.to_owned(), url });
            }
        }
        None
    }

    /// The header `SOAPAction` of an action.
    #[must_use]
    pub fn header(&self, action: &Action) -> String {
        format!("\"{}#{}\"", self.kind, action.name())
    }

    /// What is posted.
    #[must_use]
    pub fn body(&self, action: &Action) -> String {
        let (kind, name) = (&self.kind, action.name());
        let arguments = action.arguments();
        format!(
            "<?xml version=\"1.0\"?>\r\n<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" \
             s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\"><s:Body><u:{name} xmlns:u=\"{kind}\">\
             {arguments}</u:{name}></s:Body></s:Envelope>\r\n"
        )
    }
}

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A port of the router that leads to ours.
    Add {
        /// Of what.
        protocol: Protocol,
        /// The router's.
        port: u16,
        /// Ours.
        to: SocketAddrV4,
        /// For how long; 0 for ever.
        lease_s: u32,
    },
    /// No such port any more.
    Delete {
        /// Of what.
        protocol: Protocol,
        /// The router's.
        port: u16,
    },
    /// The router's address in front.
    Address,
    /// Others are let in to our port.
    Admit {
        /// Of what.
        protocol: Protocol,
        /// Ours.
        to: SocketAddrV6,
        /// For how long, a day at most.
        lease_s: u32,
    },
    /// They are let in for longer.
    Prolong {
        /// The number that the firewall has given.
        id: u16,
        /// From now on.
        lease_s: u32,
    },
    /// They are no longer.
    Dismiss {
        /// The number that the firewall has given.
        id: u16,
    },
}

impl Action {
    const fn name(&self) -> &'static str {
        match self {
            Self::Add { .. } => "AddPortMapping",
            Self::Delete { .. } => "DeletePortMapping",
            Self::Address => "GetExternalIPAddress",
            Self::Admit { .. } => "AddPinhole",
            Self::Prolong { .. } => "UpdatePinhole",
            Self::Dismiss { .. } => "DeletePinhole",
        }
    }

    fn arguments(&self) -> String {
        let place = |protocol: Protocol, port: u16| {
            let name = match protocol {
                Protocol::Tcp => "TCP",
                Protocol::Udp => "UDP",
            };
            argument("NewRemoteHost", "")
                + &argument("NewExternalPort", &port.to_string())
                + &argument("NewProtocol", name)
        };
        match *self {
            Self::Address => String::new(),
            Self::Admit { protocol, to, lease_s } => pinhole(protocol, to, lease_s),
            Self::Prolong { id, lease_s } => {
                argument("UniqueID", &id.to_string()) + &argument("NewLeaseTime", &lease_s.to_string())
            }
            Self::Dismiss { id } => argument("UniqueID", &id.to_string()),
            Self::Delete { protocol, port } => place(protocol, port),
            Self::Add { protocol, port, to, lease_s } => {
                place(protocol, port)
                    + &argument("NewInternalPort", &to.port().to_string())
                    + &argument("NewInternalClient", &to.ip().to_string())
                    + &argument("NewEnabled", "1")
                    + &argument("NewPortMappingDescription", "cede")
                    + &argument("NewLeaseDuration", &lease_s.to_string())
            }
        }
    }
}

/// A firewall's opening, from anybody's port.
fn pinhole(protocol: Protocol, to: SocketAddrV6, lease_s: u32) -> String {
    let number = match protocol {
        Protocol::Tcp => "6",
        Protocol::Udp => "17",
    };
    argument("RemoteHost", "")
        + &argument("RemotePort", "0")
        + &argument("InternalClient", &to.ip().to_string())
        + &argument("InternalPort", &to.port().to_string())
        + &argument("Protocol", number)
        + &argument("LeaseTime", &lease_s.to_string())
}

fn argument(name: &str, value: &str) -> String {
    format!("<{name}>{value}</{name}>")
}

/// The number that a refusal names.
#[must_use]
pub fn error_code(answer: &str) -> Option<u16> {
    element(answer, "errorCode")?.0.trim().parse().ok()
}

/// What an answer to [`Action::Admit`] says: the number to prolong and to dismiss by.
#[must_use]
pub fn admitted(answer: &str) -> Option<u16> {
    element(answer, "UniqueID")?.0.trim().parse().ok()
}

/// What an answer to [`Action::Address`] says.
#[must_use]
pub fn external_address(answer: &str) -> Option<Ipv4Addr> {
    let address: Ipv4Addr = element(answer, "NewExternalIPAddress")?.0.trim().parse().ok()?;
    (!address.is_unspecified()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(kind: &str, path: &str) -> String {
        format!(
            "<service><serviceType>{kind}</serviceType><serviceId>x</serviceId><controlURL>{path}</controlURL></service>"
        )
    }

    fn found(services: &str) -> Option<String> {
        let text = format!("<root xmlns=\"u\"><device><serviceList>{services}</serviceList></device></root>");
        Service::find(&text, "http://192.168.1.1:5000/desc.xml", Kind::Translator).map(|service| service.url)
    }

    #[test]
    fn a_device_is_believed_of_itself_alone() {
        let said = |code: &str, url: &str| {
            let text = format!("HTTP/1.1 {code} OK\r\nST: x\r\nLocation: {url}\r\n\r\n");
            location(text.as_bytes(), IpAddr::from([192, 168, 1, 1]))
        };
        let url = "http://192.168.1.1:5000/desc.xml";
        assert_eq!(said("200", url).as_deref(), Some(url));
        assert!(said("200", "http://192.168.1.1/x").is_some());
        assert_eq!(said("404", url), None);
        for url in ["http://192.168.1.2:5000/", "http://192.168.1.1@evil/", "https://192.168.1.1/", "", "x"] {
            assert_eq!(said("200", url), None, "{url}");
        }
        assert_eq!(location(b"NOTIFY * HTTP/1.1\r\n", IpAddr::from([192, 168, 1, 1])), None);
    }

    #[test]
    fn the_service_is_found_where_it_is() {
        let (ip, ppp) = (
            "urn:schemas-upnp-org:service:WANIPConnection:2",
            "urn:schemas-upnp-org:service:WANPPPConnection:1",
        );
        let other = service("urn:schemas-upnp-org:service:Layer3Forwarding:1", "/no");
        assert_eq!(
            found(&(other.clone() + &service(ip, "/ctl?a=1&amp;b"))).as_deref(),
            Some("http://192.168.1.1:5000/ctl?a=1&b")
        );
        assert_eq!(found(&service(ppp, "ctl")).as_deref(), Some("http://192.168.1.1:5000/ctl"));
        let whole = "http://192.168.1.1:80/ctl";
        assert_eq!(found(&service(ip, whole)).as_deref(), Some(whole));
        for bad in ["http://192.168.1.2/ctl", "https://192.168.1.1/ctl", "/c t l"] {
            assert_eq!(found(&service(ip, bad)), None, "{bad}");
        }
        assert_eq!(found(&other), None);
        assert_eq!(found("<service><serviceType>"), None);
    }

    #[test]
    fn a_firewall_of_ipv6_is_asked_by_its_own_address() {
        let from = IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 1]);
        let said =
            |url: &str| location(format!("HTTP/1.1 200 OK\r\nLOCATION: {url}\r\n\r\n").as_bytes(), from);
        let url = "http://[fe80::1]:5000/desc.xml";
        assert_eq!(said(url).as_deref(), Some(url));
        assert!(said("http://[fe80::1]/x").is_some());
        for url in [
            "http://[fe80::2]:5000/",
            "http://[fe80::1]5000/",
            "http://[fe80::1",
            "http://fe80::1/",
            "http://[]/",
        ] {
            assert_eq!(said(url), None, "{url}");
        }
        let firewall = service("urn:schemas-upnp-org:service:WANIPv6FirewallControl:1", "/ctl6");
        let ports = service("urn:schemas-upnp-org:service:WANIPConnection:2", "/ctl4");
        let both = ports + &firewall;
        let found = Service::find(&both, url, Kind::Firewall).unwrap();
        assert_eq!(found.url, "http://[fe80::1]:5000/ctl6");
        let to = SocketAddrV6::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2), 6881, 0, 0);
        let body = found.body(&Action::Admit { protocol: Protocol::Udp, to, lease_s: 60 });
        for (name, value) in [
            ("InternalClient", "2001:db8::2"),
            ("InternalPort", "6881"),
            ("Protocol", "17"),
            ("RemotePort", "0"),
        ] {
            assert_eq!(element(&body, name).unwrap().0, value);
        }
        assert_eq!(admitted(&argument("UniqueID", " 7 ")), Some(7));
        assert_eq!(element(&found.body(&Action::Dismiss { id: 7 }), "UniqueID").unwrap().0, "7");
        assert!(search(TARGETS[1], true).contains("HOST: [ff02::c]:1900\r\n"));
    }

    #[test]
    fn actions_and_answers_are_as_the_service_has_them() {
        let service = Service { kind: "urn:k:1".to_owned(), url: String::new() };
        let to = SocketAddrV4::new(Ipv4Addr::new(192, 168, 1, 2), 6881);
        let add = Action::Add { protocol: Protocol::Tcp, port: 7, to, lease_s: 60 };
        assert_eq!(service.header(&add), "\"urn:k:1#AddPortMapping\"");
        let body = service.body(&add);
        assert_eq!(element(&body, "NewInternalClient").unwrap().0, "192.168.1.2");
        assert_eq!(element(&body, "NewExternalPort").unwrap().0, "7");
        assert_eq!(element(&body, "NewProtocol").unwrap().0, "TCP");
        assert!(
            body.contains("<u:AddPortMapping xmlns:u=\"urn:k:1\">") && body.contains("</u:AddPortMapping>")
        );
        assert_eq!(element(&service.body(&Action::Address), "GetExternalIPAddress").unwrap().0, "");
        assert_eq!(error_code("<s:Fault><e:errorCode> 718 </e:errorCode></s:Fault>"), Some(CONFLICT));
        assert_eq!(error_code("<errorCode/>"), None);
        let told = |text: &str| external_address(&argument("NewExternalIPAddress", text));
        assert_eq!(told("203.0.113.7"), Some(Ipv4Addr::new(203, 0, 113, 7)));
        assert_eq!((told(""), told("0.0.0.0")), (None, None));
    }
}
