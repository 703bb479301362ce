//! A live interface, through the kernel's packet ring.
//!
//! Source: packet(7), PACKET_RX_RING with TPACKET_V3: the kernel writes packets into memory that it shares with us, a
//! block at a time, stamps them and counts what found no room.
//!
//! **What it leaves out.** Other systems than Linux. Hardware stamps: few cards have them, and their clock is another one.

use crate::failure::Failure;
use cede_wire::link::LinkType;
use cede_wire::pcap::Record;
use netring::{BpfFilter, BpfInsn, Capture, CaptureStats, Error, PacketDirection};
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::LinkAddr;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice, socket, sockopt};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The ring: 64 blocks of half a megabyte, of several that are watched together a part of that each; one that is not full is handed over
/// after 50 ms.
const BLOCK_BYTES: usize = 1 << 19;
const BLOCKS: usize = 64;
const BLOCKS_LEAST: usize = 8;
const BLOCK_TIMEOUT_MS: u32 = 50;
/// What is kept of a packet: headers of a tunnel, of IPv6 with extensions and of TCP with all its options.
const SNAPSHOT_BYTES: u32 = 320;
/// BPF: return a constant, how much of the packet is to be kept.
const BPF_RETURN: u16 = 0x06;

/// What an interface's packets begin with, by the kernel's number of its kind (if_arp.h).
const KIND_ETHERNET: u16 = 1;
const KIND_LOOPBACK: u16 = 772;
/// Those without a header: PPP, tunnels of IP, and none (tun, WireGuard).
const KINDS_BARE: [u16; 5] = [512, 768, 769, 776, KIND_NONE];
const KIND_NONE: u16 = 65534;
/// Nothing is known.
const KIND_VOID: u16 = 65535;

/// An open interface.
pub struct Tap {
    capture: Capture,
    link_type: LinkType,
    /// The kernel shows each packet twice there, when it leaves and when it arrives.
    is_loopback: bool,
    presence: Presence,
    is_up: bool,
}

/// What interfaces told beside packets.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When the last packet came, in microseconds since 1970; zero before the first.
    pub last_us: u64,
    /// What the kernel counted since the rings were opened: packets that found no room there.
    pub lost: u64,
    /// Those that are down, which show nothing.
    pub down: String,
}

/// The interface by its number, which survives another name: whether it is still there. The ring of one that is gone looks like
/// that of one that is silent.
struct Presence {
    name: String,
    index: u32,
    socket: OwnedFd,
}

impl Presence {
    fn of(name: &str) -> std::io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        let index = netdevice::name_to_index(&socket, name)?;
        Ok(Self { name: name.to_string(), index, socket })
    }

    fn check(&self) -> Result<(), Failure> {
        match netdevice::index_to_name(&self.socket, self.index) {
            Err(Errno::NODEV | Errno::NXIO) => Err(Failure::Failed(format!(
                "interface {} is gone; what it showed until then counts",
                self.name
            ))),
            // What cannot be asked says nothing.
            _ => Ok(()),
        }
    }

    /// Whether it is set to work, whatever it is called now.
    fn is_up(&self) -> bool {
        let name = netdevice::index_to_name(&self.socket, self.index);
        name.is_ok_and(|name| told_of(&name).is_some_and(|told| told.flags.contains(InterfaceFlags::IFF_UP)))
    }
}

impl Tap {
    /// Opens an interface, one of so many.
    pub fn open(name: &str, count: usize) -> Result<Self, Failure> {
        let told = told_of(name).ok_or_else(|| unknown(name))?;
        let kind = kind_of(&told);
        let link_type = match kind {
            KIND_ETHERNET | KIND_LOOPBACK => LinkType::ETHERNET,
            bare if KINDS_BARE.contains(&bare) => LinkType::RAW,
            other => {
                return Err(Failure::Failed(format!(
                    "interface {name} has packets of kind {other}, which are not read; Ethernet, loopback, PPP, tun and tunnels of IP are"
                )));
            }
        };
        let presence =
            Presence::of(name).map_err(|error| Failure::Failed(format!("cannot watch {name}: {error}")))?;
        let capture =
            open_ring(name, (BLOCKS / count).max(BLOCKS_LEAST)).map_err(|error| explained(name, &error))?;
        let is_up = told.flags.contains(InterfaceFlags::IFF_UP);
        Ok(Self { capture, link_type, is_loopback: kind == KIND_LOOPBACK, presence, is_up })
    }

    /// As it was called when it was opened.
    pub fn name(&self) -> &str {
        &self.presence.name
    }

    /// Waits for a block of packets, no longer than this, and hands them over: as they are, or as those of an interface of this number in a capture
    /// of several. It fails where the interface is gone.
    pub fn read(
        &mut self,
        timeout: Duration,
        number: Option<u32>,
        hand: &mut impl FnMut(&Record<'_>),
    ) -> Result<(), Failure> {
        let told = |error| Failure::Failed(format!("the interface cannot be read any more: {error}"));
        let Some(batch) = self.capture.next_batch_blocking(timeout).map_err(told)? else {
            return self.rest();
        };
        // What came just before it went down is handed over after that.
        self.is_up = self.is_up || self.presence.is_up();
        let mut cooked = Vec::new();
        for packet in batch.iter() {
            if self.is_loopback && packet.direction() == PacketDirection::Outgoing {
                continue;
            }
            let time = packet.timestamp();
            let time_ns = u64::from(time.sec) * 1_000_000_000 + u64::from(time.nsec);
            let leaves = packet.direction() == PacketDirection::Outgoing;
            let seen = (self.link_type, packet.data(), packet.original_len() as u32);
            let seen = number.map_or(Some(seen), |number| cook(seen, number, leaves, &mut cooked));
            // What has no whole header is no packet of IP.
            if let Some((link_type, captured, original_len)) = seen {
                hand(&Record { time_ns: Some(time_ns), interface: 0, link_type, captured, original_len });
            }
        }
        Ok(())
    }

    /// When no packet came: whether the interface is there, and up. One that goes down leaves an error with the socket, which no more
    /// waits for packets until somebody has asked for it, neither then nor when the interface is up again.
    fn rest(&mut self) -> Result<(), Failure> {
        let error = sockopt::socket_error(&self.capture);
        if matches!(error, Ok(Err(Errno::NETDOWN))) || !self.is_up {
            self.is_up = self.presence.is_up();
        }
        self.presence.check()
    }

    /// Packets that found no room in the ring.
    pub fn lost(&self) -> u64 {
        self.capture.cumulative_stats().map_or(0, |CaptureStats { drops, .. }| u64::from(drops))
    }

    /// Whether it is up.
    pub const fn is_up(&self) -> bool {
        self.is_up
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.capture.as_fd()
    }
}

/// What a packet begins with, its octets, and how many it had.
type Seen<'a> = (LinkType, &'a [u8], u32);

/// The same as a capture of several interfaces has it (LINKTYPE_LINUX_SLL2), which tells the interface and whether the packet leaves by it.
fn cook<'a>(
    (link_type, octets, len): Seen<'_>,
    number: u32,
    leaves: bool,
    into: &'a mut Vec<u8>,
) -> Option<Seen<'a>> {
    const LEAVES: u8 = 4;
    const TYPE_AT: usize = 12;
    let (protocol, rest) = match (link_type, octets.first()? >> 4) {
        (LinkType::ETHERNET, _) => octets.get(TYPE_AT..)?.split_first_chunk()?,
        (_, 6) => (&[0x86, 0xdd], octets),
        _ => (&[0x08, 0x00], octets),
    };
    let [a, b, c, d] = number.to_be_bytes();
    into.clear();
    into.extend_from_slice(protocol);
    into.extend([0, 0, a, b, c, d, 0, 0, if leaves { LEAVES } else { 0 }, 0]);
    into.extend([0; 8]);
    into.extend_from_slice(rest);
    let longer = into.len() as u32 + (len.saturating_sub(octets.len() as u32));
    Some((LinkType::LINUX_SLL2, into, longer))
}

fn open_ring(name: &str, blocks: usize) -> Result<Capture, Error> {
    let snapshot = BpfInsn { code: BPF_RETURN, jt: 0, jf: 0, k: SNAPSHOT_BYTES };
    Capture::builder()
        .interface(name)
        .block_size(BLOCK_BYTES)
        .block_count(blocks)
        .block_timeout_ms(BLOCK_TIMEOUT_MS)
        .fill_rxhash(false)
        .bpf_filter(BpfFilter::new(vec![snapshot])?)
        .build()
}

/// What the system tells of interfaces, those of our own network namespace: what lies under `/sys` may be another one's, as behind
/// `nsenter --net`.
fn interfaces() -> Vec<InterfaceAddress> {
    let all = getifaddrs().into_iter().flatten();
    // Beside these there is one for each IP address.
    all.filter(|one| one.address.is_none_or(|address| address.as_link_addr().is_some())).collect()
}

/// The names of those that are up and can be read, but for the loopback.
pub fn all_up() -> Vec<String> {
    let is_read = |one: &InterfaceAddress| {
        let kind = kind_of(one);
        one.flags.contains(InterfaceFlags::IFF_UP) && (kind == KIND_ETHERNET || KINDS_BARE.contains(&kind))
    };
    interfaces().into_iter().filter(is_read).map(|one| one.interface_name).collect()
}

fn told_of(name: &str) -> Option<InterfaceAddress> {
    interfaces().into_iter().find(|one| one.interface_name == name)
}

/// The kind of an interface. Of one without addresses of its own the system does not tell it; those from one point to another (tun,
/// WireGuard, PPP) are bare.
fn kind_of(told: &InterfaceAddress) -> u16 {
    let told_kind = told.address.as_ref().and_then(|address| address.as_link_addr()).map(LinkAddr::hatype);
    let is_bare = told.flags.contains(InterfaceFlags::IFF_POINTOPOINT);
    told_kind.unwrap_or(if is_bare { KIND_NONE } else { KIND_VOID })
}

fn unknown(name: &str) -> Failure {
    let mut there: Vec<String> = interfaces().into_iter().map(|one| one.interface_name).collect();
    there.sort();
    there.dedup();
    Failure::Usage(format!("there is no interface `{name}`; there are: {}", there.join(", ")))
}

fn explained(name: &str, error: &Error) -> Failure {
    let source = std::error::Error::source(error);
    let of_system = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    let is_refused = matches!(error, Error::PermissionDenied)
        || of_system.is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    if is_refused {
        return Failure::NotPermitted(lacking(name));
    }
    let why = source.map(|source| format!(": {source}")).unwrap_or_default();
    Failure::Failed(format!("cannot watch {name}: {error}{why}"))
}

fn lacking(name: &str) -> String {
    let program =
        std::env::current_exe().map_or_else(|_| "cede".to_string(), |path| path.display().to_string());
    format!(
        "watching {name} needs the capability CAP_NET_RAW, which this process lacks. One of these gives it:\n  \
         sudo setcap cap_net_raw+ep {program}      once, for whoever may run it\n  \
         sudo {program} meter -i {name}            it gives root up as soon as the interface is open\n  \
         sudo tcpdump -i {name} -s 320 -w - | {program} meter -"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_wire::link::ip_packet;

    #[test]
    fn what_several_interfaces_show_is_told_as_a_capture_of_them_has_it() {
        let ip = [0x45, 0, 0, 60, 7, 7];
        let ethernet = [&[2; 12][..], &[0x08, 0x00], &ip].concat();
        let mut cooked = Vec::new();
        for (link_type, octets, leaves) in
            [(LinkType::ETHERNET, &ethernet[..], true), (LinkType::RAW, &ip[..], false)]
        {
            // All but six octets were cut off.
            let len = octets.len() as u32 + 54;
            let (told, captured, told_len) =
                cook((link_type, octets, len), 0x0102_0304, leaves, &mut cooked).unwrap();
            assert_eq!((told, ip_packet(told, captured)), (LinkType::LINUX_SLL2, Ok(&ip[..])));
            assert_eq!(
                (&captured[4..8], captured[10], told_len),
                (&[1, 2, 3, 4][..], if leaves { 4 } else { 0 }, 80)
            );
            (0..octets.len() - ip.len()).for_each(|cut| {
                assert!(cook((link_type, &octets[..cut], len), 1, leaves, &mut cooked).is_none(), "{cut}");
            });
        }
        assert!(cook((LinkType::RAW, &[], 0), 1, false, &mut cooked).is_none());
    }
}
