//! Devices of UPnP that are asked: one that translates, or one that lets others in.

use super::{Asker, LEASE, Mapping};
use crate::depart::Departing;
use cede_bt::gateway::{Grant, Protocol};
use cede_bt::igd::{self, Action, Kind, Service};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::time::{Duration, Instant};

/// Devices have a second to answer (`MX`).
const SEARCH: Duration = Duration::from_millis(2_500);
/// Others than the first have so long after it.
const OTHERS: Duration = Duration::from_millis(200);
const ANSWER: Duration = Duration::from_secs(5);
/// Devices that are looked at, and ports that are tried where one is taken.
const MAX_DEVICES: usize = 8;
const MAX_PORTS: u16 = 4;

impl Asker {
    /// UPnP, until what is granted has been given back, or nothing is.
    pub(super) async fn ask_device(&mut self) {
        let device = Device { host: self.host, port: self.port };
        let Some(service) = blocking(move || device.find()).await else { return };
        let mut is_over = self.is_over.clone();
        let mut held: Vec<Held> = Vec::new();
        while !*self.is_over.borrow() {
            for protocol in self.protocols.clone() {
                let (service, before) = (service.clone(), held.clone());
                let opened = blocking(move || device.open(&service, protocol, &before)).await;
                held.retain(|held| held.grant.protocol != protocol);
                held.extend(opened);
            }
            if held.is_empty() {
                return;
            }
            let asked = service.clone();
            let address = blocking(move || device.address(&asked)).await;
            let grants = held.iter().map(|held| held.grant).collect();
            self.tell(Mapping { via: "UPnP", address, grants });
            tokio::select! {
                _ = is_over.wait_for(|is_over| *is_over) => break,
                () = tokio::time::sleep(LEASE / 2) => {}
            }
        }
        blocking(move || {
            for held in held {
                let _ = device.act(&service, &held.end());
            }
            None::<()>
        })
        .await;
    }
}

/// What a device has granted.
#[derive(Clone, Copy)]
struct Held {
    grant: Grant,
    /// By which number a firewall knows it.
    id: Option<u16>,
}

impl Held {
    /// What gives it back.
    const fn end(self) -> Action {
        let Grant { protocol, port } = self.grant;
        match self.id {
            Some(id) => Action::Dismiss { id },
            None => Action::Delete { protocol, port },
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

/// Who asks devices of UPnP, on threads of its own.
#[derive(Clone, Copy)]
struct Device {
    host: IpAddr,
    port: u16,
}

impl Device {
    /// Looks for a device that opens ports: one that translates, or over IPv6 one that lets others in.
    fn find(self) -> Option<Service> {
        let kind = if self.host.is_ipv4() { Kind::Translator } else { Kind::Firewall };
        let places = self.search().unwrap_or_default();
        places.iter().find_map(|url| {
            let mut response = self.agent().get(url).call().ok()?;
            let text =
                response.body_mut().with_config().limit(igd::MAX_BYTES as u64).read_to_string().ok()?;
            Service::find(&text, url, kind)
        })
    }

    /// The number of our interface, where the address alone does not say which one it is.
    fn link(self) -> u32 {
        let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
        let own = interfaces.into_iter().find(|interface| interface.ip() == self.host);
        own.and_then(|interface| interface.index).unwrap_or(0)
    }

    /// What devices are looked for with.
    fn searching(self) -> io::Result<std::net::UdpSocket> {
        let socket = Socket::new(Domain::for_address((self.host, 0).into()), Type::DGRAM, None)?;
        socket.bind(&SocketAddr::from((self.host, 0)).into())?;
        match self.host {
            IpAddr::V4(host) => {
                socket.set_multicast_if_v4(&host)?;
                socket.set_multicast_ttl_v4(2)?;
            }
            IpAddr::V6(_) => socket.set_multicast_if_v6(self.link())?,
        }
        Ok(socket.into())
    }

    /// Where devices describe themselves.
    fn search(self) -> io::Result<Vec<String>> {
        let socket = self.searching()?;
        let group: SocketAddr = match self.host {
            IpAddr::V4(_) => igd::GROUP.into(),
            IpAddr::V6(_) => SocketAddrV6::new(igd::GROUP_V6, igd::GROUP.port(), 0, self.link()).into(),
        };
        for target in igd::TARGETS {
            socket.send_to(igd::search(target, group.is_ipv6()).as_bytes(), group)?;
        }
        let (mut end, mut places) = (Instant::now() + SEARCH, Vec::new());
        let mut octets = [0; 2_048];
        while places.len() < MAX_DEVICES {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            let Ok((len, from)) = socket.recv_from(&mut octets) else { break };
            let place = igd::location(&octets[..len], from.ip());
            let is_known = place.as_ref().is_none_or(|place| places.contains(place));
            if !is_known {
                places.extend(place);
                // A router answers at once; whoever else does has little time left.
                end = end.min(Instant::now() + OTHERS);
            }
        }
        Ok(places)
    }

    fn agent(self) -> ureq::Agent {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(ANSWER))
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(None);
        Departing::from(self.host).on_link(self.link()).agent(config.build())
    }

    /// Has something done: what is answered, or the number of a refusal.
    fn act(self, service: &Service, action: &Action) -> Result<String, u16> {
        let request = self
            .agent()
            .post(&service.url)
            .header("SOAPAction", service.header(action))
            .header("Content-Type", "text/xml; charset=\"utf-8\"");
        let mut response = request.send(service.body(action)).map_err(|_| 0_u16)?;
        let is_done = response.status().is_success();
        let text = response.body_mut().with_config().limit(igd::MAX_BYTES as u64).read_to_string();
        let text = text.map_err(|_| 0_u16)?;
        if is_done { Ok(text) } else { Err(igd::error_code(&text).unwrap_or(0)) }
    }

    /// Has a port opened, or kept open that is held.
    fn open(self, service: &Service, protocol: Protocol, held: &[Held]) -> Option<Held> {
        let before = held.iter().find(|held| held.grant.protocol == protocol);
        match self.host {
            IpAddr::V4(host) => {
                // Both have one number, if that can be.
                let wish = before.or(held.first()).map_or(self.port, |held| held.grant.port);
                let port = self.add(service, protocol, (host, wish))?;
                Some(Held { grant: Grant { protocol, port }, id: None })
            }
            IpAddr::V6(host) => {
                let id = self.admit(service, protocol, (host, before.and_then(|held| held.id)))?;
                Some(Held { grant: Grant { protocol, port: self.port }, id: Some(id) })
            }
        }
    }

    fn add(self, service: &Service, protocol: Protocol, (host, wish): (Ipv4Addr, u16)) -> Option<u16> {
        let to = SocketAddrV4::new(host, self.port);
        let mut lease_s = LEASE.as_secs() as u32;
        let mut port = wish;
        for _ in 0..=MAX_PORTS {
            match self.act(service, &Action::Add { protocol, port, to, lease_s }) {
                Ok(_) => return Some(port),
                Err(igd::CONFLICT) => port = port.checked_add(1)?,
                Err(igd::ONLY_PERMANENT) if lease_s > 0 => lease_s = 0,
                Err(_) => return None,
            }
        }
        None
    }

    /// Lets others in, for longer where they are already: by which number.
    fn admit(
        self,
        service: &Service,
        protocol: Protocol,
        (host, before): (Ipv6Addr, Option<u16>),
    ) -> Option<u16> {
        let lease_s = LEASE.as_secs() as u32;
        if let Some(id) = before
            && self.act(service, &Action::Prolong { id, lease_s }).is_ok()
        {
            return Some(id);
        }
        let to = SocketAddrV6::new(host, self.port, 0, 0);
        igd::admitted(&self.act(service, &Action::Admit { protocol, to, lease_s }).ok()?)
    }

    /// Where others reach us: at the device's address in front, or our own.
    fn address(self, service: &Service) -> Option<IpAddr> {
        if self.host.is_ipv6() {
            return Some(self.host);
        }
        igd::external_address(&self.act(service, &Action::Address).ok()?).map(IpAddr::from)
    }
}
