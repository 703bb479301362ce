//! A port of the router that leads to ours: the sockets around [`cede_bt::gateway`] (PCP, NAT-PMP) and [`cede_bt::igd`] (UPnP).
//!
//! Asked for where the system has a way to the IPv4 Internet from a private address, and otherwise not. PCP and NAT-PMP are tried first,
//! with the default gateway, which is known on Linux alone; then UPnP. What is granted is renewed, and given back in the end. Where there is a way
//! to the IPv6 Internet, the gateway is asked in PCP, and devices of the link in UPnP, to let others in through their firewall to our own address.

mod device;
mod route;

use crate::clock::Clock;
use crate::session::Listener;
use cede_bt::Family;
use cede_bt::gateway::{Client, Grant, Protocol, Stage};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
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
        if !*self.is_over.borrow() {
            self.ask_device().await;
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
}
