//! Peers in the local network (BEP 14): the sockets around [`cede_bt::local`].
//!
//! Only for torrents that are not private, as with libtorrent. Announces leave on each interface, from an address of it; a socket for
//! each family hears what others say there. With an address to leave from, that address' interface and family alone are used. The
//! loopback is used where it is that one's, or where there is nothing else. Interfaces that come later are seen soon.

use crate::clock::Clock;
use crate::origin::{Family, Origin};
use cede_bt::local::{GROUP_V4, GROUP_V6, MAX_BYTES, MAX_HASHES, PORT, Place, Search, Voice};
use if_addrs::Interface;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

/// Interfaces are looked at, and announces made that are due, so often.
const LOOK: Duration = Duration::from_secs(5);
/// Announces go through so many routers, where those pass them on (as libtorrent's).
const HOPS: u32 = 32;

/// The local network, for as many torrents as are looked for. Nothing is heard or said of it once this is gone.
pub struct Local(Rc<Inner>);

struct Inner {
    voice: RefCell<Voice>,
    members: RefCell<Vec<Member>>,
    /// There is a new one, or a new network.
    joined: Notify,
    origin: Origin,
    clock: Clock,
}

struct Member {
    search: Search,
    found: UnboundedSender<Vec<SocketAddr>>,
}

impl Local {
    /// Begins to listen. Must be called within a [`tokio::task::LocalSet`].
    ///
    /// # Errors
    /// No socket, no random numbers.
    pub fn start(origin: Origin) -> io::Result<Self> {
        let voice = RefCell::new(Voice::new(getrandom::u32().map_err(io::Error::other)?));
        let (mut ears, mut last) = (Vec::new(), io::Error::from(io::ErrorKind::AddrNotAvailable));
        for family in Family::ALL.into_iter().filter(|family| origin.reaches(*family)) {
            match Ear::open(family) {
                Ok(ear) => ears.push(Rc::new(ear)),
                Err(error) => last = error,
            }
        }
        if ears.is_empty() {
            return Err(last);
        }
        let (members, joined, clock) = (RefCell::default(), Notify::new(), Clock::begin());
        let inner = Rc::new(Inner { voice, members, joined, origin, clock });
        for ear in &ears {
            tokio::task::spawn_local(hear(Rc::downgrade(&inner), ear.clone()));
        }
        tokio::task::spawn_local(look(Rc::downgrade(&inner), ears));
        Ok(Self(inner))
    }

    /// Looks for peers in the background until nobody listens to `found` any more, and tells the network that we are at `port`, where
    /// one is given: who does not know yet whether a torrent is private listens and tells nothing.
    pub fn search(&self, info_hash: [u8; 20], port: Option<u16>, found: UnboundedSender<Vec<SocketAddr>>) {
        self.0.members.borrow_mut().push(Member { search: Search::new(info_hash, port), found });
        self.0.joined.notify_one();
    }

    /// We are in another network: it hears of us at once.
    pub fn announce_again(&self) {
        self.0.members.borrow_mut().iter_mut().for_each(|member| member.search.move_on());
        self.0.joined.notify_one();
    }
}

/// From which address an announce leaves on each interface.
type Ways = BTreeMap<Place, IpAddr>;

fn choose(interfaces: &[Interface], origin: Origin) -> Ways {
    let is_of = |interface: &&Interface| match origin.address() {
        Some(address) => interface.ip() == address,
        // Behind a tunnel is no local network.
        None => !interface.is_p2p() && origin.reaches(Family::of(interface.ip())),
    };
    let collect = |is_loopback: bool| {
        let mut ways = Ways::new();
        for interface in interfaces.iter().filter(is_of).filter(|it| it.is_loopback() == is_loopback) {
            let Some(index) = interface.index else { continue };
            let (place, ip) = ((index, interface.ip().is_ipv6()), interface.ip());
            // Peers in other parts of the network may call an address of larger scope.
            let is_better = |old: &IpAddr| is_link_local(*old) && !is_link_local(ip);
            if ways.get(&place).is_none_or(is_better) {
                ways.insert(place, ip);
            }
        }
        ways
    };
    let ways = collect(false);
    if ways.is_empty() { collect(true) } else { ways }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// A socket that hears the group.
struct Ear {
    socket: UdpSocket,
    family: Family,
}

impl Ear {
    fn open(family: Family) -> io::Result<Self> {
        let (domain, group) = match family {
            Family::V4 => (Domain::IPV4, IpAddr::from(GROUP_V4)),
            Family::V6 => (Domain::IPV6, GROUP_V6.into()),
        };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        if family == Family::V6 {
            socket.set_only_v6(true)?;
        }
        // Other clients of this machine are there, too.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        // Bound to the group, it hears nothing that was sent to us alone, from afar; elsewhere than on Unix that cannot be.
        let at = if cfg!(unix) { SocketAddr::new(group, PORT) } else { SocketAddr::new(family.any(), PORT) };
        socket.bind(&at.into())?;
        // Groups that others have joined, on interfaces that we have not.
        #[cfg(target_os = "linux")]
        match family {
            Family::V4 => socket.set_multicast_all_v4(false)?,
            Family::V6 => socket.set_multicast_all_v6(false)?,
        }
        let socket = UdpSocket::from_std(socket.into())?;
        Ok(Self { socket, family })
    }

    /// Hears these interfaces from now on.
    fn join(&self, ways: &Ways) {
        let socket = socket2::SockRef::from(&self.socket);
        for (index, is_v6) in ways.keys() {
            // One that is joined already says that it is; one that cannot be may be able to later.
            let _ = match (self.family, is_v6) {
                (Family::V4, false) => {
                    socket.join_multicast_v4_n(&GROUP_V4, &InterfaceIndexOrAddress::Index(*index))
                }
                (Family::V6, true) => socket.join_multicast_v6(&GROUP_V6, *index),
                _ => continue,
            };
        }
    }
}

/// Announces when it is time, on whatever interfaces there are then.
async fn look(local: Weak<Inner>, ears: Vec<Rc<Ear>>) {
    loop {
        let Some(inner) = local.upgrade() else { return };
        inner.members.borrow_mut().retain(|member| !member.found.is_closed());
        let ways = choose(&if_addrs::get_if_addrs().unwrap_or_default(), inner.origin);
        ears.iter().for_each(|ear| ear.join(&ways));
        ways.into_iter().for_each(|(place, from)| inner.announce_all(place, from));
        // A new torrent is announced at once, others when they are due.
        let _ = tokio::time::timeout(LOOK, inner.joined.notified()).await;
    }
}

async fn hear(local: Weak<Inner>, ear: Rc<Ear>) {
    let mut octets = [0; MAX_BYTES + 1];
    loop {
        let Some(inner) = local.upgrade() else { return };
        let pause = inner.voice.borrow_mut().pause(inner.clock.now());
        drop(inner);
        if let Some(pause) = pause {
            tokio::time::sleep(Duration::from_nanos(pause.as_nanos())).await;
            continue;
        }
        let Ok((len, from)) = ear.socket.recv_from(&mut octets).await else { continue };
        let Some(inner) = local.upgrade() else { return };
        inner.receive(from, &octets[..len]);
    }
}

impl Inner {
    /// Announces whatever is due at a place.
    fn announce_all(&self, place: Place, from: IpAddr) {
        let now = self.clock.now();
        let mut members = self.members.borrow_mut();
        let due =
            members.iter_mut().map(|member| &mut member.search).filter(|search| search.is_due(now, place));
        let mut due: Vec<&mut Search> = due.collect();
        due.sort_by_key(|search| search.port);
        for of_port in due.chunk_by_mut(|a, b| a.port == b.port) {
            for part in of_port.chunks_mut(MAX_HASHES) {
                let hashes: Vec<[u8; 20]> = part.iter().map(|search| search.info_hash).collect();
                let port = part[0].port.unwrap_or_default();
                let octets = self.voice.borrow().datagram(place.1, port, &hashes);
                // A network that takes none, or no address of which can be used yet, is asked again at the next look.
                if announce(place, from, &octets).is_ok() {
                    part.iter_mut().for_each(|search| search.announced(now, place));
                }
            }
        }
    }

    fn receive(&self, from: SocketAddr, octets: &[u8]) {
        let (voice, now) = (self.voice.borrow(), self.clock.now());
        let Some(heard) = voice.hear(octets) else { return };
        for Member { search, found } in &mut *self.members.borrow_mut() {
            if let Some(peer) = search.receive(now, from, &heard) {
                let _ = found.send(vec![peer]);
            }
        }
    }
}

fn announce((index, _): Place, from: IpAddr, octets: &[u8]) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address((from, 0).into()), Type::DGRAM, Some(Protocol::UDP))?;
    let group = match from {
        IpAddr::V4(from) => {
            socket.bind(&SocketAddr::from((from, 0)).into())?;
            socket.set_multicast_if_v4(&from)?;
            socket.set_multicast_ttl_v4(HOPS)?;
            SocketAddr::from((GROUP_V4, PORT))
        }
        IpAddr::V6(from) => {
            let scope = if from.is_unicast_link_local() { index } else { 0 };
            socket.bind(&SocketAddr::from(SocketAddrV6::new(from, 0, 0, scope)).into())?;
            socket.set_multicast_if_v6(index)?;
            socket.set_multicast_hops_v6(HOPS)?;
            SocketAddrV6::new(GROUP_V6, PORT, 0, index).into()
        }
    };
    socket.set_nonblocking(true)?;
    socket.send_to(octets, &group.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use if_addrs::{IfAddr, IfOperStatus, Ifv4Addr, Ifv6Addr};

    fn interface(index: u32, ip: &str, is_p2p: bool) -> Interface {
        let addr = match ip.parse().unwrap() {
            IpAddr::V4(ip) => {
                IfAddr::V4(Ifv4Addr { ip, netmask: [255; 4].into(), prefixlen: 32, broadcast: None })
            }
            IpAddr::V6(ip) => {
                IfAddr::V6(Ifv6Addr { ip, netmask: [255; 16].into(), prefixlen: 128, broadcast: None })
            }
        };
        Interface { name: index.to_string(), addr, index: Some(index), oper_status: IfOperStatus::Up, is_p2p }
    }

    #[test]
    fn each_interface_of_the_local_network_is_spoken_to_from_one_of_its_addresses() {
        let all = [
            interface(1, "127.0.0.1", false),
            interface(1, "::1", false),
            interface(2, "192.0.2.1", false),
            interface(2, "192.0.2.2", false),
            interface(2, "fe80::1", false),
            interface(2, "2001:db8::1", false),
            interface(3, "10.0.0.1", true),
            interface(4, "198.51.100.1", false),
        ];
        let chosen = |interfaces: &[Interface], from: Option<&str>| {
            let origin = Origin::new(from.map(|text| text.parse().unwrap()));
            let ways = choose(interfaces, origin).into_iter();
            ways.map(|((index, _), ip)| format!("{index} {ip}")).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&all, None), ["2 192.0.2.1", "2 2001:db8::1", "4 198.51.100.1"]);
        assert_eq!(chosen(&all, Some("0.0.0.0")), ["2 192.0.2.1", "4 198.51.100.1"]);
        for one in ["1 127.0.0.1", "2 192.0.2.2", "2 fe80::1", "3 10.0.0.1"] {
            assert_eq!(chosen(&all, Some(&one[2..])), [one]);
        }
        assert_eq!(chosen(&all[..2], None), ["1 127.0.0.1", "1 ::1"], "there is nothing else");
        assert_eq!(chosen(&all[..2], Some("192.0.2.1")), [""; 0]);
    }
}
