//! A port of the router that leads to ours: the sockets around [`cede_bt::gateway`] (PCP, NAT-PMP) and [`cede_bt::igd`] (UPnP).
//!
//! Asked for where the system has a way to the IPv4 Internet from a private address, and otherwise not. PCP and NAT-PMP are tried first,
//! with the default gateway, which is known on Linux alone; then UPnP. What is granted is renewed, and given back in the end. Where there is a way
//! to the IPv6 Internet, the gateway is asked in PCP to let others in through its firewall to our own address.

mod route;

use crate::clock::Clock;
use crate::depart::Departing;
use crate::session::Listener;
use cede_bt::Family;
use cede_bt::gateway::{Client, Grant, Protocol, Stage};
use cede_bt::igd::{self, Action, Service};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// What is given back is waited for so long.
const PARTING: Duration = Duration::from_millis(1_500);
/// Where nobody opens a port, that is asked for again.
const AGAIN: Duration = Duration::from_secs(15 * 60);
/// What a port is asked for by UPnP; it is asked for again after half of that.
const LEASE: Duration = Duration::from_secs(3_600);
/// Devices have a second to answer (`MX`).
const SEARCH: Duration = Duration::from_millis(2_500);
/// Others than the first have so long after it.
const OTHERS: Duration = Duration::from_millis(200);
const ANSWER: Duration = Duration::from_secs(5);
/// Devices that are looked at, and ports that are tried where one is taken.
const MAX_DEVICES: usize = 8;
const MAX_PORTS: u16 = 4;

/// Ports of the router that lead to ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// What it was asked in.
    pub via: &'static str,
    /// The router's address in front, where it says one; of IPv6 our own.
    pub address: Option<IpAddr>,
    /// They.
    pub grants: Vec<Grant>,
}

/// Keeps ports open until [`Keeper::end`].
pub struct Keeper {
    over: watch::Sender<bool>,
    again: Rc<Notify>,
    task: JoinHandle<()>,
}

impl Keeper {
    /// We are in another network: its router is asked. What another one has granted ends with its term.
    pub fn ask_again(&self) {
        self.again.notify_one();
    }

    /// Gives back what was granted, as far as that does not take long.
    pub async fn end(self) {
        let _ = self.over.send(true);
        let _ = tokio::time::timeout(PARTING, self.task).await;
    }
}

/// Asks for ports of one family in the background; what is granted goes to `notes` whenever it changes, and IPv4's is told of by the listener
/// from then on. `None` where there is nobody to ask. Must be called within a [`tokio::task::LocalSet`].
#[must_use]
pub fn keep(
    listener: &Rc<Listener>,
    family: Family,
    protocols: Vec<Protocol>,
    notes: UnboundedSender<Mapping>,
) -> Option<Keeper> {
    let host = route::outward(listener.origin(), family)?;
    if protocols.is_empty() || listener.port() == 0 {
        return None;
    }
    let (over, is_over) = watch::channel(false);
    let mut nonce = [0; 12];
    getrandom::fill(&mut nonce).ok()?;
    let (again, port, listener) = (Rc::<Notify>::default(), listener.port(), listener.clone());
    let (told, clock) = (None, Clock::begin());
    let asker = Asker { host, port, protocols, listener, notes, told, nonce, is_over, clock };
    Some(Keeper { over, again: again.clone(), task: tokio::task::spawn_local(asker.run(again)) })
}

struct Asker {
    host: IpAddr,
    port: u16,
    protocols: Vec<Protocol>,
    listener: Rc<Listener>,
    notes: UnboundedSender<Mapping>,
    told: Option<Mapping>,
    /// By which a router knows whose a mapping is (RFC 6887, section 11.2): who asks anew has it still.
    nonce: [u8; 12],
    is_over: watch::Receiver<bool>,
    clock: Clock,
}

impl Asker {
    async fn run(mut self, again: Rc<Notify>) {
        let mut is_over = self.is_over.clone();
        loop {
            tokio::select! {
                () = self.ask() => tokio::select! {
                    _ = is_over.wait_for(|is_over| *is_over) => return,
                    () = tokio::time::sleep(AGAIN) => {}
                    () = again.notified() => {}
                },
                () = again.notified() => self.lose(),
            }
            // Addresses change, IPv6's each day.
            let family = Family::of(self.host);
            self.host = route::outward(self.listener.origin(), family).unwrap_or(self.host);
        }
    }

    /// Until what is granted has been given back or lost, or nothing is.
    async fn ask(&mut self) {
        if let Some(gateway) = route::default_gateway(self.host) {
            // One that cannot be asked is like one that does not answer.
            let _ = self.ask_gateway(gateway).await;
        }
        if let IpAddr::V4(host) = self.host
            && !*self.is_over.borrow()
        {
            self.ask_device(Device { host, port: self.port }).await;
        }
        self.lose();
    }

    /// Nobody leads others to us. Whoever hears of that may have told our own port meanwhile: what is granted next is news, whatever it is.
    fn lose(&mut self) {
        self.told = None;
        if self.host.is_ipv4() {
            self.listener.set_outer_port(None);
        }
    }

    fn tell(&mut self, mapping: Mapping) {
        // One number is told of for both, that of TCP where there is one.
        let port = mapping.grants.iter().find(|grant| grant.protocol == Protocol::Tcp);
        if self.host.is_ipv4() {
            self.listener.set_outer_port(port.or(mapping.grants.first()).map(|grant| grant.port));
        }
        if self.told.as_ref() != Some(&mapping) {
            self.told = Some(mapping.clone());
            let _ = self.notes.send(mapping);
        }
    }

    /// PCP and NAT-PMP, until what is granted has been given back, or nothing is.
    async fn ask_gateway(&mut self, gateway: SocketAddr) -> io::Result<()> {
        let socket = UdpSocket::bind((self.host, 0)).await?;
        socket.connect(gateway).await?;
        let mut client = Client::new(self.host, self.port, &self.protocols, self.nonce, self.clock.now());
        let (mut octets, mut is_over, mut is_leaving) = ([0; 1_100], self.is_over.clone(), false);
        loop {
            while let Some(request) = client.poll_transmit(self.clock.now()) {
                // What cannot be sent is not answered.
                let _ = socket.send(&request).await;
            }
            if client.stage() == Stage::Held {
                let via = client.dialect().name();
                self.tell(Mapping { via, address: client.address(), grants: client.grants().to_vec() });
            }
            let Some(at) = client.poll_timeout() else { return Ok(()) };
            let wait = Duration::from_nanos(at.since(self.clock.now()).as_nanos());
            tokio::select! {
                heard = socket.recv(&mut octets) => match heard {
                    Ok(len) => client.receive(self.clock.now(), &octets[..len]),
                    // The gateway says that nobody listens.
                    Err(error) if client.grants().is_empty() => return Err(error),
                    Err(_) => {}
                },
                () = tokio::time::sleep(wait) => {}
                _ = is_over.wait_for(|is_over| *is_over), if !is_leaving => {
                    is_leaving = true;
                    client.release(self.clock.now());
                }
            }
        }
    }

    /// UPnP, until what is granted has been given back, or nothing is.
    async fn ask_device(&mut self, device: Device) {
        let Some(service) = blocking(move || device.find()).await else { return };
        let mut is_over = self.is_over.clone();
        let mut grants: Vec<Grant> = Vec::new();
        while !*self.is_over.borrow() {
            for protocol in self.protocols.clone() {
                let held = |grants: &[Grant]| grants.iter().find(|grant| grant.protocol == protocol).copied();
                let wish = held(&grants).or_else(|| grants.first().copied()).map_or(self.port, |it| it.port);
                let service = service.clone();
                let port = blocking(move || device.add(&service, protocol, wish)).await;
                grants.retain(|grant| grant.protocol != protocol);
                grants.extend(port.map(|port| Grant { protocol, port }));
            }
            if grants.is_empty() {
                return;
            }
            let asked = service.clone();
            let address = blocking(move || device.address(&asked)).await.map(IpAddr::from);
            self.tell(Mapping { via: "UPnP", address, grants: grants.clone() });
            tokio::select! {
                _ = is_over.wait_for(|is_over| *is_over) => break,
                () = tokio::time::sleep(LEASE / 2) => {}
            }
        }
        blocking(move || {
            for Grant { protocol, port } in grants {
                let _ = device.act(&service, &Action::Delete { protocol, port });
            }
            None::<()>
        })
        .await;
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

/// Who asks devices of UPnP, on threads of its own.
#[derive(Clone, Copy)]
struct Device {
    host: Ipv4Addr,
    port: u16,
}

impl Device {
    /// Looks for a device that opens ports.
    fn find(self) -> Option<Service> {
        let places = self.search().unwrap_or_default();
        places.iter().find_map(|url| {
            let mut response = self.agent().get(url).call().ok()?;
            let text =
                response.body_mut().with_config().limit(igd::MAX_BYTES as u64).read_to_string().ok()?;
            Service::find(&text, url)
        })
    }

    /// Where devices describe themselves.
    fn search(self) -> io::Result<Vec<String>> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        socket.bind(&SocketAddr::from((self.host, 0)).into())?;
        socket.set_multicast_if_v4(&self.host)?;
        socket.set_multicast_ttl_v4(2)?;
        let socket = std::net::UdpSocket::from(socket);
        for target in igd::TARGETS {
            socket.send_to(igd::search(target).as_bytes(), igd::GROUP)?;
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
        Departing::from(IpAddr::from(self.host)).agent(config.build())
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

    fn add(self, service: &Service, protocol: Protocol, wish: u16) -> Option<u16> {
        let to = SocketAddrV4::new(self.host, self.port);
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

    fn address(self, service: &Service) -> Option<Ipv4Addr> {
        igd::external_address(&self.act(service, &Action::Address).ok()?)
    }
}
